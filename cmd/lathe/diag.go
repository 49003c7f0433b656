package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lathe-ml/lathe/ir"
)

// diagnostic is how tools get a diagnostic with --json, one a line on standard error.
type diagnostic struct {
	Severity string `json:"severity"` // error, note, bug
	Code     string `json:"code,omitempty"`
	Message  string `json:"message"`
	Op       string `json:"op,omitempty"`
	Node     string `json:"node,omitempty"`
	// File, Line, Function and Source are the line of the model.
	File     string   `json:"file,omitempty"`
	Line     int      `json:"line,omitempty"`
	Function string   `json:"function,omitempty"`
	Source   string   `json:"source,omitempty"`
	Module   string   `json:"module,omitempty"`
	Rules    []string `json:"rules,omitempty"`
	// Archive is the file that was read and Entry the entry in it, or the place in a text.
	Archive    string `json:"archive,omitempty"`
	Entry      string `json:"entry,omitempty"`
	Try        string `json:"try,omitempty"`
	Reproducer string `json:"reproducer,omitempty"`
}

func fromDiag(d *ir.Diag) diagnostic {
	r := diagnostic{Severity: "error", Code: d.Code, Message: d.Msg, Op: d.Op, Node: d.Node, Archive: d.File, Entry: d.Entry, Try: d.Try}
	if f := d.Origin.Frame(); f != nil {
		r.File, r.Line, r.Function, r.Source = f.File, f.Line, f.Func, f.Code
	}
	if d.Origin != nil {
		r.Module, r.Rules = d.Origin.Module, d.Origin.Chain()
	}
	return r
}

// reportError tells all diagnostics in err, or err itself.
func (e *env) reportError(err error) {
	ds, ok := ir.AsDiags(err)
	if !ok {
		d := diagnostic{Severity: "error", Message: err.Error()}
		var p *fs.PathError
		if errors.As(err, &p) {
			d.Code, d.Entry, d.Try = "file", p.Path, "check the path, the permissions and the room"
		}
		e.report(d)
		return
	}
	for _, d := range ds {
		e.report(fromDiag(d))
	}
}

func (e *env) note(text string) { e.report(diagnostic{Severity: "note", Message: text}) }

// A diagnostic is to be read: names out of a damaged file may be of any length.
const maxMessage, maxRow = 4000, 1000

// plain is text as a terminal may get it: what is not printable escaped, cut at n bytes. Line breaks stay, indented.
func plain(s string, n int) string {
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "") + "…"
	}
	odd := func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) || r == utf8.RuneError }
	if !strings.ContainsFunc(s, odd) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if odd(r) {
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func (e *env) report(d diagnostic) {
	if e.JSON {
		b, err := json.Marshal(d)
		if err == nil {
			fmt.Fprintf(e.stderr, "%s\n", b)
		}
		return
	}
	var b strings.Builder
	b.WriteString(d.Severity)
	if d.Code != "" && d.Severity == "error" {
		b.WriteString("[" + d.Code + "]")
	}
	b.WriteString(": ")
	if d.Op != "" {
		b.WriteString(plain(d.Op, 200) + ": ")
	}
	b.WriteString(plain(d.Message, maxMessage) + "\n")
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "  %-7s %s\n", name, plain(value, maxRow))
		}
	}
	if d.File != "" {
		row("at", fmt.Sprintf("%s:%d %s", d.File, d.Line, d.Function))
	}
	row("code", strings.TrimSpace(d.Source))
	row("module", d.Module)
	if d.Node != "" {
		row("value", "%"+d.Node)
	}
	row("rules", strings.Join(d.Rules, " "))
	row("file", d.Archive)
	row("entry", d.Entry)
	row("wrote", d.Reproducer)
	row("try", d.Try)
	fmt.Fprint(e.stderr, b.String())
}
