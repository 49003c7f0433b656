package lathe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/lathe-ml/lathe/partition"
)

// reportFile is a report as it stands in a file.
type reportFile struct {
	Output  string         `json:"output"`
	Backend string         `json:"backend"`
	Bytes   int64          `json:"bytes"`
	Notes   []string       `json:"notes,omitempty"`
	Methods []reportMethod `json:"methods"`
	Regions []reportRegion `json:"regions"`
	Outside []reportNode   `json:"outside"`
}

type reportMethod struct {
	Name         string         `json:"name"`
	Instructions int            `json:"instructions"`
	Planned      int64          `json:"planned_bytes"`
	Peak         int64          `json:"peak_bytes"`
	Kernels      []OpCount      `json:"kernels"`
	Assumed      map[string]int `json:"assumed_bounds,omitempty"`
}

type reportRegion struct {
	Name string       `json:"name"`
	Ops  []OpCount    `json:"ops"`
	Ends []reportNode `json:"ends,omitempty"`
}

type reportNode struct {
	Op     string `json:"op"`
	Node   string `json:"node,omitempty"`
	Where  string `json:"where,omitempty"`
	Module string `json:"module,omitempty"`
	Code   string `json:"code,omitempty"`
	Why    string `json:"why,omitempty"`
	Try    string `json:"try,omitempty"`
}

func (r *Report) file() *reportFile {
	f := &reportFile{Output: filepath.Base(r.Output), Backend: r.Backend, Bytes: r.Bytes, Notes: r.Notes}
	for _, m := range r.Methods {
		rm := reportMethod{Name: m.Name, Instructions: m.Instructions, Planned: m.Planned, Peak: m.Peak, Kernels: counts(m.Kernels)}
		for _, a := range m.Assumed {
			if rm.Assumed == nil {
				rm.Assumed = map[string]int{}
			}
			rm.Assumed[a.Symbol] = int(a.Max)
			if len(m.Assumed) == 1 {
				rm.Assumed[a.Symbol] = int(a.Alone)
			}
		}
		f.Methods = append(f.Methods, rm)
	}
	for _, g := range r.Regions {
		f.Regions = append(f.Regions, reportRegion{Name: g.Name, Ops: counts(g.Ops), Ends: outside(g.Ends)})
	}
	f.Outside = outside(r.Outside)
	return f
}

func counts(m map[string]int) []OpCount {
	var cs []OpCount
	for op, n := range m {
		cs = append(cs, OpCount{Op: op, Count: n, Known: true})
	}
	sortCounts(cs)
	return cs
}

func outside(list []partition.Outside) []reportNode {
	var out []reportNode
	for _, o := range list {
		n := reportNode{Op: o.Node.OpName(), Where: o.Node.Origin.Where()}
		if v := o.Node.Out(); v != nil {
			n.Node = v.Name
		}
		if o.Node.Origin != nil {
			n.Module = o.Node.Origin.Module
		}
		if o.Why != nil {
			n.Code, n.Why, n.Try = o.Why.Code, o.Why.Msg, o.Why.Try
		}
		out = append(out, n)
	}
	return out
}

// CheckReportName tells whether a report can be written under that name.
func CheckReportName(path string) error {
	switch filepath.Ext(path) {
	case ".html", ".json", ".md":
		return nil
	}
	return &UsageError{fmt.Errorf("report %s: the name has to end in .html, .json or .md", path)}
}

// WriteFile writes the report in the form that the name's ending asks for.
func (r *Report) WriteFile(path string) error {
	if err := CheckReportName(path); err != nil {
		return err
	}
	f := r.file()
	var b bytes.Buffer
	switch filepath.Ext(path) {
	case ".json":
		enc := json.NewEncoder(&b)
		enc.SetIndent("", " ")
		if err := enc.Encode(f); err != nil {
			return err
		}
	case ".md":
		f.markdown(&b)
	case ".html":
		if err := reportPage.Execute(&b, f); err != nil {
			return err
		}
	}
	return WriteFile(path, b.Bytes())
}

func (f *reportFile) markdown(b *bytes.Buffer) {
	fmt.Fprintf(b, "# %s\n\nBackend %s, %s.\n", f.Output, f.Backend, sizeText(f.Bytes))
	for _, n := range f.Notes {
		fmt.Fprintf(b, "\n> %s\n", n)
	}
	table := func(cs []OpCount) {
		b.WriteString("\n| op | count |\n|---|---|\n")
		for _, c := range cs {
			fmt.Fprintf(b, "| `%s` | %d |\n", c.Op, c.Count)
		}
	}
	nodes := func(ns []reportNode) {
		b.WriteString("\n| op | where | why | try |\n|---|---|---|---|\n")
		cell := func(s string) string {
			return strings.NewReplacer("|", `\|`, "\n", " ").Replace(s)
		}
		for _, n := range ns {
			fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", n.Op, cell(strings.TrimSpace(n.Where+" "+n.Module)), cell(n.Why), cell(n.Try))
		}
	}
	for _, m := range f.Methods {
		fmt.Fprintf(b, "\n## Method %s\n\n%d instructions, %s planned.\n", m.Name, m.Instructions, sizeText(m.Planned))
		table(m.Kernels)
	}
	for _, r := range f.Regions {
		fmt.Fprintf(b, "\n## Region %s\n", r.Name)
		table(r.Ops)
		if len(r.Ends) > 0 {
			b.WriteString("\nIt ends at:\n")
			nodes(r.Ends)
		}
	}
	if len(f.Outside) > 0 {
		b.WriteString("\n## Not delegated\n")
		nodes(f.Outside)
	}
}

// pages is what pages for a browser begin with.
var pages = template.Must(template.New("pages").Funcs(template.FuncMap{"size": sizeText}).Parse(`{{define "open"}}<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{{html .}}</title>
{{end}}`))

// page is a page of its own kind.
func page(name, body string) *template.Template {
	return template.Must(template.Must(pages.Clone()).New(name).Parse(body))
}

var reportPage = page("report", `{{template "open" .Output}}<style>body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:70em;padding:0 1em;color:#222}table{border-collapse:collapse;margin:.5em 0}
td,th{border:1px solid #ccc;padding:.2em .6em;text-align:left;vertical-align:top}code{font-family:ui-monospace,monospace}.note{color:#666}</style>
<h1>{{html .Output}}</h1><p>Backend {{html .Backend}}, {{size .Bytes}}.</p>
{{range .Notes}}<p class="note">{{html .}}</p>{{end}}
{{define "ops"}}<table><tr><th>op<th>count{{range .}}<tr><td><code>{{html .Op}}</code><td>{{html .Count}}{{end}}</table>{{end}}
{{define "nodes"}}<table><tr><th>op<th>where<th>why<th>try{{range .}}<tr><td><code>{{html .Op}}</code><td>{{html .Where}} {{html .Module}}<td>{{html .Why}}<td>{{html .Try}}{{end}}</table>{{end}}
{{range .Methods}}<h2>Method {{html .Name}}</h2><p>{{html .Instructions}} instructions, {{size .Planned}} planned.</p>{{template "ops" .Kernels}}{{end}}
{{range .Regions}}<h2>Region {{html .Name}}</h2>{{template "ops" .Ops}}{{if .Ends}}<p>It ends at:</p>{{template "nodes" .Ends}}{{end}}{{end}}
{{if .Outside}}<h2>Not delegated</h2>{{template "nodes" .Outside}}{{end}}
</html>
`)
