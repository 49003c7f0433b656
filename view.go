package lathe

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"io"
	"path/filepath"
	"strings"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/text"
)

//go:embed view.html
var viewPage string

// viewGraph is a graph as the page shows it.
type viewGraph struct {
	Name   string     `json:"name"`
	Head   []string   `json:"head"`
	Nodes  []viewNode `json:"nodes"`
	Output []int      `json:"output"`
}

type viewNode struct {
	Text   string `json:"text"`
	Op     string `json:"op"`
	Module string `json:"module,omitempty"`
	Where  string `json:"where,omitempty"`
	Code   string `json:"code,omitempty"`
	Rules  string `json:"rules,omitempty"`
	// In are the nodes whose results this one reads, by their place.
	In    []int `json:"in,omitempty"`
	Depth int   `json:"depth,omitempty"` // of nesting
}

// View writes a page for a browser that shows a file: each graph's nodes with their lines of the model, what each reads
// and who reads it, searchable. The page needs nothing else.
func View(w io.Writer, path string) error {
	f, err := Sniff(path)
	if err != nil {
		return err
	}
	var graphs []viewGraph
	if f == FormatPTE {
		info, err := InspectProgram(path)
		if err != nil {
			return err
		}
		graphs = viewProgram(info)
	} else {
		m, err := Open(path)
		if err != nil {
			return err
		}
		defer m.Close()
		for _, g := range m.Methods {
			graphs = append(graphs, viewOf(g))
		}
	}
	data, err := json.Marshal(graphs) // Marshal escapes what could end the script
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := page("view", viewPage).Execute(&b, map[string]string{"Title": filepath.Base(path), "Data": string(data)}); err != nil {
		return err
	}
	_, err = b.WriteTo(w)
	return err
}

func viewOf(g *ir.Graph) viewGraph {
	v := viewGraph{Name: g.Name}
	for _, s := range g.Syms.All() {
		v.Head = append(v.Head, "sym "+s.Name+" in "+s.Range.String())
	}
	names := text.Names(g)
	for _, in := range g.Inputs {
		line := "%" + names[in.Value] + ": " + in.Value.Type.String() + " " + in.Kind.String()
		if in.Target != "" {
			line += " " + in.Target
		}
		v.Head = append(v.Head, line)
	}
	place, line := map[*ir.Node]int{}, text.Lines(g)
	var walk func(h *ir.Graph, depth int)
	walk = func(h *ir.Graph, depth int) {
		for n := range h.Nodes() {
			place[n] = len(v.Nodes)
			vn := viewNode{Text: line(n), Op: n.OpName(), Where: n.Origin.Where(), Depth: depth}
			if o := n.Origin; o != nil {
				vn.Module, vn.Rules = o.Module, strings.Join(o.Chain(), ", ")
				if fr := o.Frame(); fr != nil {
					vn.Code = fr.Code
				}
			}
			for x := range n.Inputs() {
				if x.Def != nil {
					vn.In = append(vn.In, place[x.Def])
				}
			}
			v.Nodes = append(v.Nodes, vn)
			for _, k := range n.Graphs() {
				walk(k, depth+1)
			}
		}
	}
	walk(g, 0)
	for x := range g.Ret().Inputs() {
		if x.Def != nil {
			v.Output = append(v.Output, place[x.Def])
		}
	}
	return v
}

// viewProgram shows a plan's instructions, and each delegate's payload as text.
func viewProgram(info *ProgramInfo) []viewGraph {
	var out []viewGraph
	for _, p := range info.Plans {
		v := viewGraph{Name: p.Name}
		for i, x := range p.Inputs {
			v.Head = append(v.Head, "input "+joinInts([]int{i}, "")+" "+x.Name+" "+x.typeText()+" "+x.Layout)
		}
		writer := map[string]int{}
		for _, in := range p.Instructions {
			op, args, _ := strings.Cut(in, "(")
			n := viewNode{Text: in, Op: op}
			names := strings.Split(strings.TrimSuffix(args, ")"), ", ")
			for _, a := range names {
				if k, ok := writer[a]; ok {
					n.In = append(n.In, k)
				}
			}
			if len(names) > 0 {
				writer[names[len(names)-1]] = len(v.Nodes)
			}
			v.Nodes = append(v.Nodes, n)
		}
		out = append(out, v)
		for i, d := range p.Delegates {
			g := viewGraph{Name: p.Name + ": delegate " + joinInts([]int{i}, "") + " " + d.ID}
			for _, l := range strings.Split(strings.TrimSpace(d.text), "\n") {
				g.Nodes = append(g.Nodes, viewNode{Text: l})
			}
			out = append(out, g)
		}
	}
	return out
}
