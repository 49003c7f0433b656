package pt2

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/infer"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/tools/oracle/cases"
)

// TestTypes runs the shape rules over every node of every handed program and compares element type, shape and strides with
// what the archive says.
func TestTypes(t *testing.T) {
	dir := root(t)
	names, err := cases.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	nodes, agree := 0, 0
	bad := map[string][]string{}
	for _, n := range names {
		if strings.HasPrefix(n, "hostile/") {
			continue
		}
		c, err := cases.Load(filepath.Join(dir, filepath.FromSlash(n)))
		if err != nil {
			t.Fatal(err)
		}
		p, a, err := load(c.Model())
		if err != nil {
			c.Close()
			continue // TestCases tells
		}
		for _, m := range p.Methods {
			m.Walk(func(g *ir.Graph) {
				for node := range g.Nodes() {
					nodes++
					if why := disagrees(g, node); why != "" {
						bad[node.OpName()] = append(bad[node.OpName()], n+": "+why)
					} else {
						agree++
					}
				}
			})
		}
		a.Close()
		c.Close()
	}
	var opNames []string
	for o := range bad {
		opNames = append(opNames, o)
	}
	sort.Strings(opNames)
	for _, o := range opNames {
		t.Errorf("%s: %d nodes, such as %s", o, len(bad[o]), bad[o][0])
		if os.Getenv("LATHE_ALL") == o {
			t.Log(strings.Join(bad[o], "\n"))
		}
	}
	t.Logf("%d of %d nodes agree", agree, nodes)
}

func disagrees(g *ir.Graph, n *ir.Node) string {
	if n.Op == ops.Unknown {
		return "no row"
	}
	args := make([]string, n.NumArgs())
	for i, a := range n.Args() {
		args[i] = n.Info().Schema.Args[i].Name + "=" + show(a)
	}
	ctx := strings.Join(args, " ")
	want, err := infer.Predict(g, n.Op, n.Args())
	if err != nil {
		return err.Error() + " (" + ctx + ")"
	}
	if len(want) != len(n.Outs) {
		return fmt.Sprintf("%d results, the rule gives %d (%s)", len(n.Outs), len(want), ctx)
	}
	for i, w := range want {
		got := n.Outs[i].Type
		if got.Kind == ir.KindNone {
			continue
		}
		same := got.Kind == w.Kind
		if same && got.IsTensor() {
			same = got.DType == w.DType && got.Rank() == w.Rank()
			for d := 0; same && d < got.Rank(); d++ {
				eq, known := g.Syms.ProveEq(got.Shape[d], w.Shape[d])
				same = eq || !known && fresh(g, w.Shape[d].String())
			}
			gs, ws := got.NormStrides(), w.NormStrides()
			if n.Op == ops.AtenScaledDotProductAttentionDefault && ir.EqualShape(gs, n.In(0).Type.Strides) {
				continue // laid out as the query is where the exporting process chose the flash kernel
			}
			if same && (gs != nil || ws != nil) {
				if gs == nil {
					gs = ir.ContiguousStrides(got.Shape)
				}
				if ws == nil {
					ws = ir.ContiguousStrides(got.Shape)
				}
				for d := range gs {
					if got.Shape[d].IsConstValue(1) {
						continue
					}
					eq, _ := g.Syms.ProveEq(gs[d], ws[d])
					same = same && eq
				}
			}
		}
		if same && got.Kind == ir.KindInt && got.Known && w.Known {
			eq, known := g.Syms.ProveEq(got.Sym, w.Sym)
			same = eq || !known
		}
		if !same {
			return fmt.Sprintf("%s is %s, the rule gives %s (%s)", n.Outs[i].Name, got, w, ctx)
		}
	}
	return ""
}

// fresh tells a symbol of the rule's own.
func fresh(g *ir.Graph, s string) bool {
	if !strings.HasPrefix(s, "u") {
		return false
	}
	_, known := g.Syms.Get(s)
	return !known
}

func show(a ir.Arg) string {
	if v := a.Value(); v != nil {
		return v.Type.String()
	}
	if a.Kind() == ir.ArgList {
		var l []string
		for _, e := range a.List() {
			l = append(l, show(e))
		}
		return "[" + strings.Join(l, ", ") + "]"
	}
	if e, ok := a.Expr(); ok {
		return e.String()
	}
	if f, ok := a.Float(); ok {
		return fmt.Sprint(f)
	}
	if s, ok := a.Str(); ok {
		return s
	}
	if d, ok := a.DType(); ok {
		return d.String()
	}
	return "-"
}
