package xnnpack

import (
	"math"

	"github.com/lathe-ml/lathe/codegen/fb/xnnpack"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ops"
)

var attentionRules = map[ops.ID]rule{
	ops.AtenScaledDotProductAttentionDefault: attention,
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
	case mask != nil && !hidesNoRow(mask):
		return m.no("a mask that may hide all of a row")
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
		return m.no("heads that share keys")
	}
	return func(b *builder) {
		x := b.in(q)
		x = b.binary(nodeMultiply, x, b.scalar(scale), b.like(x))
		s := append(b.values[x].shape[:rank-1:rank-1], k.Type.Shape[rank-2])
		t := b.temp(s, xnnpack.XNNDatatypeFp32)
		b.node(nodeMatmul(xnnpack.XNNBinary{Input1ID: x, Input2ID: b.in(k), OutputID: t, Flags: flagTransposeWeights}))
		if mask != nil {
			t = b.binary(nodeAdd, t, b.in(mask), b.like(t))
		}
		t = b.apply(nodeSoftmax, t, b.like(t))
		b.node(nodeMatmul(xnnpack.XNNBinary{Input1ID: t, Input2ID: b.in(v), OutputID: b.out(0)}))
	}
}

// hidesNoRow tells masks whose elements are all finite, as the pass attention-masks leaves them.
func hidesNoRow(v *ir.Value) bool {
	n := v.Def
	if n == nil {
		return false
	}
	switch n.Op {
	case ops.AtenClampDefault:
		lo, ok := n.Arg(1).Float()
		return ok && lo >= -math.MaxFloat32
	case ops.AtenWhereSelf, ops.AtenWhereScalar:
		return n.Op == ops.AtenWhereScalar
	}
	return false
}
