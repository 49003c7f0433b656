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
		if g == nil {
			return m.no("a branch that is no graph")
		}
		for n := range g.Nodes() {
			if _, why := plan(n); why != nil {
				m.why = why
				return nil
			}
		}
		for i := range g.Outputs {
			if v := g.Ret().In(i); v == nil || !v.Type.IsTensor() {
				return m.no("a branch whose result is no tensor")
			}
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
