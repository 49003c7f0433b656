package mlx

import (
	"github.com/lathe-ml/lathe/codegen/fb/mlx"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ops"
)

var sortRules = map[ops.ID]rule{
	ops.AtenSortDefault:    sortRule,
	ops.AtenSortStable:     sortRule,
	ops.AtenArgsortDefault: argsort,
	ops.AtenArgsortStable:  argsort,
	ops.AtenTopkDefault:    topk,
}

// ascending gives x so that its ascending order is the one that is asked for: negated where that is descending.
func (b *builder) ascending(x *ir.Value, descending bool) mlx.Tid {
	t := b.in(x)
	if !descending {
		return t
	}
	if d := b.dtype(t); d == ops.Bool || d == ops.Uint8 || d == ops.Uint32 {
		t = b.cast(t, ops.Int64)
	}
	out := b.temp(b.dtype(t))
	b.emit(&mlx.NegNode{X: t, Out: out})
	return out
}

func (m *match) sortDim() (d int, descending, ok bool) {
	rank := m.typ(0).Rank()
	if rank == 0 {
		m.no("a tensor without dimensions")
		return 0, false, false
	}
	k, ok := m.n.ArgNamed("dim").Int()
	if !ok {
		m.no("a computed dimension")
		return 0, false, false
	}
	d, ok = m.axis(k, rank)
	return d, flagged(m.n.ArgNamed("descending")), ok
}

func sortRule(m *match) emit {
	x := m.in(0)
	d, descending, ok := m.sortDim()
	if !ok {
		return nil
	}
	return func(b *builder) {
		if b.n.Outs[1].NumUses() == 0 {
			t := b.ascending(x, descending)
			if !descending {
				b.emit(&mlx.SortNode{X: t, Out: b.out(0), Axis: int32(d)})
				return
			}
			s, neg := b.temp(b.dtype(t)), b.temp(b.dtype(t))
			b.emit(&mlx.SortNode{X: t, Out: s, Axis: int32(d)})
			b.emit(&mlx.NegNode{X: s, Out: neg})
			b.finally(0, neg)
			return
		}
		at := b.outAs(1, ops.Uint32)
		b.emit(&mlx.ArgsortNode{X: b.ascending(x, descending), Out: at, Axis: int32(d)})
		b.emit(&mlx.TakeAlongAxisNode{X: b.in(x), Indices: at, Out: b.out(0), Axis: int32(d)})
	}
}

func argsort(m *match) emit {
	x := m.in(0)
	d, descending, ok := m.sortDim()
	if !ok {
		return nil
	}
	return func(b *builder) {
		b.emit(&mlx.ArgsortNode{X: b.ascending(x, descending), Out: b.outAs(0, ops.Uint32), Axis: int32(d)})
	}
}

// topk is the head of the order.
func topk(m *match) emit {
	x := m.in(0)
	k, ok := m.arg(1).Expr()
	if !ok || x.Type.Rank() == 0 {
		return m.no("a computed count, or a tensor without dimensions")
	}
	d, ok := m.dim(2, x.Type.Rank())
	if !ok {
		return nil
	}
	largest := flagged(m.arg(3))
	return func(b *builder) {
		order := b.temp(ops.Uint32)
		b.emit(&mlx.ArgsortNode{X: b.ascending(x, largest), Out: order, Axis: int32(d)})
		s := mlx.NewSliceNode()
		s.X, s.Axis, s.Start, s.Stop, s.Out = order, lit(int64(d)), lit(0), b.int(k), b.outAs(1, ops.Uint32)
		b.emit(s)
		b.emit(&mlx.TakeAlongAxisNode{X: b.in(x), Indices: s.Out, Out: b.out(0), Axis: int32(d)})
	}
}
