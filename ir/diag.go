package ir

import (
	"errors"
	"strings"
)

// Diag is one thing wrong with the user's input, with all that is known of where it is.
type Diag struct {
	// Code is a short stable key for tools: "no-kernel", "bad-archive", "static-cache".
	Code string
	// Msg says what is wrong.
	Msg string
	// Op and Node name the operator and the value; empty where it is not about one.
	Op, Node string
	Origin   *Origin
	// File is the file that was read and Entry the archive entry in it; where a file is no archive, Entry is the file.
	File, Entry string
	// Try says what the user may do.
	Try string
}

// Error is the message on one line.
func (d *Diag) Error() string {
	var b strings.Builder
	if d.Op != "" {
		b.WriteString(d.Op + ": ")
	}
	b.WriteString(d.Msg)
	if w := d.Origin.Where(); w != "" {
		b.WriteString(" at " + w)
	}
	if d.Origin != nil && d.Origin.Module != "" {
		b.WriteString(" in module " + d.Origin.Module)
	}
	switch {
	case d.File != "" && d.Entry != "":
		b.WriteString(" (" + d.File + ": " + d.Entry + ")")
	case d.Entry != "":
		b.WriteString(" (" + d.Entry + ")")
	}
	return b.String()
}

// Diags is several diagnostics as one error.
type Diags []*Diag

// Error joins the messages, a line each.
func (ds Diags) Error() string {
	lines := make([]string, len(ds))
	for i, d := range ds {
		lines[i] = d.Error()
	}
	return strings.Join(lines, "\n")
}

// Err gives nil for no diagnostics.
func (ds Diags) Err() error {
	if len(ds) == 0 {
		return nil
	}
	return ds
}

// AsDiags finds the diagnostics in an error.
func AsDiags(err error) (Diags, bool) {
	var ds Diags
	if errors.As(err, &ds) {
		return ds, true
	}
	var d *Diag
	if errors.As(err, &d) {
		return Diags{d}, true
	}
	return nil, false
}

// Diag makes a diagnostic about n.
func (n *Node) Diag(code, msg, try string) *Diag {
	d := &Diag{Code: code, Msg: msg, Op: n.OpName(), Origin: n.Origin, Try: try, File: n.graph.Root().File, Entry: n.graph.Root().Entry}
	if o := n.Out(); o != nil {
		d.Node = o.Name
	}
	return d
}
