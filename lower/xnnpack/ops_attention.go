package xnnpack

import (
	"math"

	"github.com/lathe-ml/lathe/codegen/fb/xnnpack"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

var attentionRules = map[ops.ID]rule{
	ops.AtenScaledDotProductAttentionDefault: wide(attention),
}

// attention is softmax(q kT scale + mask) v. The mask is one that is added, and hides no row whole: the pass
// attention-masks makes it so.
func attention(m *match) emit {
	if !m.floats() {
		return nil
	}
	q, k, v, mask := m.in(0), m.in(1), m.in(2), m.in(3)
	rank := q.Type.Rank()
	if rank < 2 || k.Type.Rank() != rank || v.Type.Rank() != rank {
		return m.no("tensors of several ranks")
	}
	p, ok := m.n.ArgNamed("dropout_p").Float()
	causal, ok2 := m.n.ArgNamed("is_causal").Bool()
	shared, ok3 := m.n.ArgNamed("enable_gqa").Bool()
	switch {
	case !ok || !ok2 || !ok3 || p != 0:
		return m.no("dropout")
	case causal:
		return m.no("a causal mask that is not written out")
	case mask != nil && !m.taken && !finite(mask):
		return m.no("a mask with elements that may be infinite")
	}
	width, constant := q.Type.Shape[rank-1].IsConst()
	scale := 1 / math.Sqrt(float64(width))
	if a := m.n.ArgNamed("scale"); !a.IsNone() {
		if scale, constant = a.Float(); !constant {
			return m.no("a scale that is computed")
		}
	}
	if !constant {
		return m.no("a width that varies")
	}
	if shared && rank >= 3 && !q.Type.Shape[rank-3].Equal(k.Type.Shape[rank-3]) {
		if a := m.sharing(q.Type, k, v, mask); a != nil {
			return func(b *builder) { b.attendShared(a, scale) }
		}
		return m.no("heads that share keys, with sizes that vary")
	}
	if k0, v0 := repeated(k), repeated(v); k0 != nil && v0 != nil {
		if a := m.sharing(q.Type, k0, v0, mask); a != nil {
			return func(b *builder) { b.attendShared(a, scale) }
		}
	}
	return func(b *builder) {
		x := b.in(q)
		x = b.binary(nodeMultiply, x, b.scalar(scale), b.like(x))
		s := append(b.values[x].shape[:rank-1:rank-1], k.Type.Shape[rank-2])
		t := b.temp(s, b.float())
		b.node(nodeMatmul(xnnpack.XNNBinary{Input1ID: x, Input2ID: b.in(k), OutputID: t, Flags: flagTransposeWeights}))
		if mask != nil {
			t = b.binary(nodeAdd, t, b.in(mask), b.like(t))
		}
		t = b.apply(nodeSoftmax, t, b.like(t))
		b.node(nodeMatmul(xnnpack.XNNBinary{Input1ID: t, Input2ID: b.in(v), OutputID: b.out(0)}))
	}
}

// sharedAttention is attention in which groups of query heads share keys and values.
type sharedAttention struct {
	k, v, mask   *ir.Value
	heads, group int64 // of keys, and query heads to each
}

// sharing reads attention over keys and values of fewer heads than the queries; nil where the delegate cannot have it so.
func (m *match) sharing(q ir.Type, k, v, mask *ir.Value) *sharedAttention {
	if len(q.Shape) != 4 || k.Type.Rank() != 4 || v.Type.Rank() != 4 {
		return nil
	}
	h, ok := q.Shape[1].IsConst()
	n, ok2 := k.Type.Shape[1].IsConst()
	if !ok || !ok2 || n == 0 || h%n != 0 || !v.Type.Shape[1].Equal(k.Type.Shape[1]) {
		return nil
	}
	if symbolic(q.Shape) > 1 || symbolic(k.Type.Shape) > 1 || symbolic(v.Type.Shape) > 1 || symbolic(m.out().Shape) > 1 {
		return nil
	}
	if mask != nil {
		// The mask spreads over groups by itself where it is the same for all heads and batches.
		s := mask.Type.Shape
		for i := range len(s) - 2 {
			if !s[i].IsConstValue(1) {
				return nil
			}
		}
	}
	return &sharedAttention{k, v, mask, n, h / n}
}

// repeated is what v repeats for each head of a group, as the models write it: a dimension added, expanded and joined.
func repeated(v *ir.Value) *ir.Value {
	d := v.Def
	for d != nil && (d.Op == ops.AtenCloneDefault || d.Op == ops.AtenContiguousDefault) {
		d = d.In(0).Def
	}
	if d == nil || d.Op != ops.AtenViewDefault && d.Op != ops.AtenReshapeDefault && d.Op != ops.AtenUnderUnsafeViewDefault {
		return nil
	}
	e := d.In(0).Def
	for e != nil && (e.Op == ops.AtenCloneDefault || e.Op == ops.AtenContiguousDefault) {
		e = e.In(0).Def
	}
	if e == nil || e.Op != ops.AtenExpandDefault {
		return nil
	}
	u := e.In(0).Def
	if u == nil || u.Op != ops.AtenUnsqueezeDefault && u.Op != ops.AtenViewDefault {
		return nil
	}
	x := u.In(0)
	from, wide, to := x.Type.Shape, e.Out().Type.Shape, v.Type.Shape
	if len(from) != 4 || len(wide) != 5 || len(to) != 4 || !u.Out().Type.Shape[2].IsConstValue(1) {
		return nil
	}
	// [b, n, s, e] -> [b, n, g, s, e] -> [b, n g, s, e]
	for i, j := range []int{0, 1, 3, 4} {
		if !from[i].Equal(wide[j]) || !from[i].Equal(u.Out().Type.Shape[j]) {
			return nil
		}
	}
	if !to[0].Equal(from[0]) || !to[2].Equal(from[2]) || !to[3].Equal(from[3]) || !to[1].Equal(sym.Mul(wide[1], wide[2])) {
		return nil
	}
	return x
}

// attendShared writes attention with the groups as a dimension of their own over which keys and values spread.
func (b *builder) attendShared(a *sharedAttention, scale float64) {
	q := b.n.In(0)
	grouped := func(s []sym.Expr, n, g int64) []sym.Expr {
		return []sym.Expr{s[0], sym.Const(n), sym.Const(g), s[2], s[3]}
	}
	x := b.reshaped(b.in(q), grouped(q.Type.Shape, a.heads, a.group)...)
	x = b.binary(nodeMultiply, x, b.scalar(scale), b.like(x))
	k := b.reshaped(b.in(a.k), grouped(a.k.Type.Shape, a.heads, 1)...)
	v := b.reshaped(b.in(a.v), grouped(a.v.Type.Shape, a.heads, 1)...)
	s := append(b.values[x].shape[:4:4], a.k.Type.Shape[2])
	t := b.temp(s, b.float())
	b.node(nodeMatmul(xnnpack.XNNBinary{Input1ID: x, Input2ID: k, OutputID: t, Flags: flagTransposeWeights}))
	if a.mask != nil {
		t = b.binary(nodeAdd, t, b.in(a.mask), b.like(t))
	}
	t = b.apply(nodeSoftmax, t, b.like(t))
	y := b.temp(grouped(b.n.Out().Type.Shape, a.heads, a.group), b.float())
	b.node(nodeMatmul(xnnpack.XNNBinary{Input1ID: t, Input2ID: v, OutputID: y}))
	b.reshapeTo(y, b.out(0))
}
