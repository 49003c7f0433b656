package ir

import (
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// Builder makes nodes at one place of a graph, all with one origin. The first error sticks: later calls do nothing, so
// that a rule can be written without a check at each line. The typed constructors are in package ir/op.
type Builder struct {
	G      *Graph
	At     *Node // new nodes go before it
	Origin *Origin
	// Err is the first error.
	Err error
}

// NewBuilder makes a builder that inserts before at; nil means at the end.
func NewBuilder(g *Graph, at *Node, origin *Origin) *Builder {
	if at == nil {
		at = g.ret
	}
	return &Builder{G: g, At: at, Origin: origin}
}

// Raw makes a node with results of the given types.
func (b *Builder) Raw(op ops.ID, args []Arg, types ...Type) *Node {
	return b.G.NewNode(b.At, op, args, types, b.Origin)
}

// Fail records an error unless there is one.
func (b *Builder) Fail(err error) {
	if b.Err == nil {
		b.Err = err
	}
}

// Dim is the size of v's dimension d, negative ones counted from the end.
func Dim(v *Value, d int) sym.Expr {
	if d < 0 {
		d += len(v.Type.Shape)
	}
	return v.Type.Shape[d]
}

// NameValues gives every value of the graph and its nested graphs a name that is unique in the whole program, keeping
// those that are. Names depend on the graph alone.
func (g *Graph) NameValues() {
	taken := map[string]bool{}
	var unnamed []*Value
	visit := func(v *Value) {
		if v.Name == "" || taken[v.Name] {
			unnamed = append(unnamed, v)
			return
		}
		taken[v.Name] = true
	}
	g.Walk(func(h *Graph) {
		for _, in := range h.Inputs {
			visit(in.Value)
		}
		for n := range h.Nodes() {
			for _, o := range n.Outs {
				visit(o)
			}
		}
	})
	next := 1
	for _, v := range unnamed {
		base := v.Name
		for {
			name := itoa(next)
			if base != "" {
				name = base + "_" + name
			}
			next++
			if !taken[name] {
				v.Name = name
				taken[name] = true
				break
			}
		}
	}
}

func itoa(i int) string {
	if i < 10 {
		return string(rune('0' + i))
	}
	return itoa(i/10) + string(rune('0'+i%10))
}

// Walk calls f for g and every graph nested in it, outer before inner, in order.
func (g *Graph) Walk(f func(*Graph)) {
	f(g)
	for n := range g.Nodes() {
		for _, h := range n.Graphs() {
			h.Walk(f)
		}
	}
}
