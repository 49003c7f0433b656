package main

import (
	"encoding/json"
	"fmt"
	"strings"

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
	// Entry is the archive entry, or the place in a text.
	Entry      string `json:"entry,omitempty"`
	Try        string `json:"try,omitempty"`
	Reproducer string `json:"reproducer,omitempty"`
}

func fromDiag(d *ir.Diag) diagnostic {
	r := diagnostic{Severity: "error", Code: d.Code, Message: d.Msg, Op: d.Op, Node: d.Node, Entry: d.Entry, Try: d.Try}
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
		e.report(diagnostic{Severity: "error", Message: err.Error()})
		return
	}
	for _, d := range ds {
		e.report(fromDiag(d))
	}
}

func (e *env) note(text string) { e.report(diagnostic{Severity: "note", Message: text}) }

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
		b.WriteString(d.Op + ": ")
	}
	b.WriteString(d.Message + "\n")
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "  %-7s %s\n", name, value)
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
	row("entry", d.Entry)
	row("wrote", d.Reproducer)
	row("try", d.Try)
	fmt.Fprint(e.stderr, b.String())
}
