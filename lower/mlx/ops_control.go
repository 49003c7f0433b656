package mlx

import (
	"context"

	"github.com/lathe-ml/lathe/codegen/fb/mlx"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/partition"
)

func controlRules() map[ops.ID]rule {
	return map[ops.ID]rule{
		ops.AtenItemDefault:                  itemRule,
		ops.AtenUnderLocalScalarDenseDefault: itemRule,
		ops.HigherOrderCondDefault:           cond,
		ops.HigherOrderMapImplDefault:        mapRule,
		ops.HigherOrderScanDefault:           scan,
	}
}

// itemRule is the only element of a tensor as a size.
func itemRule(m *match) emit {
	x, o := m.in(0), m.n.Out()
	if o.Type.Kind != ir.KindInt {
		return m.no("a %s that leaves the graph of tensors", o.Type.Kind)
	}
	return func(b *builder) { b.vids[b.n.Out()] = b.item(b.raw(x)) }
}

// item is the value of a tensor's only element. The delegate reads 32 bits: what has less is widened first, of 64 these are
// the low ones.
func (b *builder) item(t mlx.Tid) mlx.Vid {
	switch b.dtype(t) {
	case ops.Int32, ops.Int64, ops.Uint32:
	default:
		t = b.cast(t, ops.Int32)
	}
	out := b.newVid()
	b.emit(&mlx.ItemIntNode{X: t, Out: out})
	return out
}

// cond runs one of two graphs.
func cond(m *match) emit {
	pred := m.arg(0)
	if v := pred.Value(); v == nil || !v.Type.IsTensor() {
		return m.no("a condition that is no tensor")
	}
	branches := []*ir.Graph{m.arg(1).Graph(), m.arg(2).Graph()}
	for _, g := range branches {
		if !m.body(g) {
			return nil
		}
	}
	operands := m.n.ArgNamed("operands").List()
	return func(b *builder) {
		n := b.n
		flag := b.item(b.in(pred.Value()))
		var outs []mlx.Tid
		for i := range n.Outs {
			outs = append(outs, b.out(i))
		}
		for _, o := range operands {
			if v := o.Value(); v != nil && v.Type.IsTensor() {
				b.raw(v)
			}
		}
		run := func(g *ir.Graph) func() {
			return func() {
				for i, in := range g.Inputs {
					v := operands[i].Value()
					if v == nil || !v.Type.IsTensor() || partition.Weight(in.Value) != nil {
						continue
					}
					b.of[in.Value] = b.raw(v).Idx
				}
				b.nodes(context.Background(), g)
				b.n = n
				if b.err != nil {
					return
				}
				for i, o := range n.Outs {
					b.emit(&mlx.IdCopyNode{X: b.inAs(g.Ret().In(i), o.Type.DType), Out: outs[i]})
				}
			}
		}
		b.ifElse(vidOf(flag), run(branches[0]), run(branches[1]))
	}
}

// body tells whether the delegate takes all of a nested graph, with tensors for results.
func (m *match) body(g *ir.Graph) bool {
	if g == nil {
		m.no("a body that is no graph")
		return false
	}
	for n := range g.Nodes() {
		if _, why := m.caps.plan(n); why != nil {
			m.why = why
			return false
		}
	}
	for i := range g.Outputs {
		if v := g.Ret().In(i); v == nil || !v.Type.IsTensor() {
			m.no("a body whose result is no tensor")
			return false
		}
	}
	return true
}

// mapRule runs a graph for each slice along the first dimension.
func mapRule(m *match) emit {
	return m.scan(m.arg(0).Graph(), nil, m.arg(1).List(), m.arg(2).List())
}

// scan runs a graph for each slice along the first dimension and hands values from one round to the next.
func scan(m *match) emit {
	return m.scan(m.arg(0).Graph(), m.arg(1).List(), m.arg(2).List(), m.arg(3).List())
}

func (m *match) scan(g *ir.Graph, carried, moving, fixed []ir.Arg) emit {
	if !m.body(g) {
		return nil
	}
	for _, l := range [][]ir.Arg{carried, moving, fixed} {
		for _, a := range l {
			if v := a.Value(); v == nil || !v.Type.IsTensor() {
				return m.no("an operand that is no tensor")
			}
		}
	}
	if len(moving) == 0 || len(g.Inputs) != len(carried)+len(moving)+len(fixed) || len(g.Outputs) != len(m.n.Outs) {
		return m.no("nothing to run along, or a body of another form")
	}
	if m.n.Graph().Root().Syms.Range(moving[0].Value().Type.Shape[0]).Min < 1 {
		return m.no("no round at all, perhaps")
	}
	return func(b *builder) {
		n := b.n
		node := &mlx.ScanNode{}
		state := make([]mlx.Tid, len(carried))
		for i, a := range carried {
			d := n.Outs[i].Type.DType
			state[i] = b.outAs(i, d)
			b.emit(&mlx.IdCopyNode{X: b.inAs(a.Value(), d), Out: state[i]})
			b.of[g.Inputs[i].Value] = state[i].Idx
			node.Carry = append(node.Carry, state[i])
		}
		for i, a := range moving {
			v := a.Value()
			t := b.raw(v)
			slice := b.temp(b.dtype(t))
			node.Originals, node.Sliced = append(node.Originals, t), append(node.Sliced, slice)
			b.of[g.Inputs[len(carried)+i].Value] = slice.Idx
		}
		for i, a := range fixed {
			in := g.Inputs[len(carried)+len(moving)+i].Value
			if partition.Weight(in) == nil {
				b.of[in] = b.raw(a.Value()).Idx
			}
		}
		for i := len(carried); i < len(n.Outs); i++ {
			node.Outputs = append(node.Outputs, b.out(i))
		}
		node.BodyChainIdx = int32(b.inside(func() {
			b.nodes(context.Background(), g)
			b.n = n
			if b.err != nil {
				return
			}
			next := make([]mlx.Tid, len(carried))
			for i := range carried {
				next[i] = b.inAs(g.Ret().In(i), n.Outs[i].Type.DType)
				for _, s := range state {
					if s == next[i] {
						// Another value's place may be written before this one is read.
						next[i] = b.temp(b.dtype(s))
						b.emit(&mlx.IdCopyNode{X: s, Out: next[i]})
						break
					}
				}
			}
			for i, o := range node.Outputs {
				v := n.Outs[len(carried)+i]
				b.emit(&mlx.IdCopyNode{X: b.inAs(g.Ret().In(len(carried)+i), v.Type.DType), Out: o})
			}
			for i, s := range state {
				b.emit(&mlx.IdCopyNode{X: next[i], Out: s})
			}
		}))
		b.emit(node)
	}
}
