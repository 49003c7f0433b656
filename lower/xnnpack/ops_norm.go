package xnnpack

import (
	"slices"

	"github.com/lathe-ml/lathe/codegen/fb/xnnpack"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/partition"
)

var normRules = map[ops.ID]rule{
	ops.AtenBatchNormDefault:                           wide(batchNormRule),
	ops.AtenUnderNativeBatchNormLegitNoTrainingDefault: wide(batchNormRule),
	ops.AtenLayerNormDefault:                           wide(layerNorm),
	ops.AtenNativeLayerNormDefault:                     wide(layerNorm),
	ops.AtenRmsNormDefault:                             wide(rmsNorm),
	ops.AtenUnderFusedRmsNormDefault:                   wide(rmsNorm),
	ops.AtenGroupNormDefault:                           wide(groupNorm),
}

// firstOnly refuses nodes whose other results are read, and what the delegate does not hold among the rest.
func (m *match) firstOnly() bool {
	for _, o := range m.n.Outs[1:] {
		if o.NumUses() > 0 {
			m.no("a second result that is read")
			return false
		}
	}
	for v := range m.n.Inputs() {
		if !m.held(v) || !m.sameType(v) {
			return false
		}
	}
	return m.held(m.n.Out())
}

// batchNormRule is x scale + shift for each channel.
func batchNormRule(m *match) emit {
	if !m.held(m.in(0)) || !m.held(m.n.Out()) || !m.sameType(m.in(0)) {
		return nil
	}
	norm, ok := readNorm(m.n)
	rank := m.in(0).Type.Rank()
	if !ok || rank < 2 {
		return m.no("statistics that are computed")
	}
	return func(b *builder) {
		x := b.n.In(0)
		nhwc := b.prefersNHWC(x)
		n := norm.channels()
		sizes := []int64{n}
		if !nhwc {
			for range rank - 2 {
				sizes = append(sizes, 1)
			}
		}
		scale := b.constant("scale of "+norm.key(), sizes, xnnpack.XNNDatatypeFp32, func() partition.Blob {
			return &madeBlob{4 * n, func() ([]byte, error) { s, _, err := norm.factors(); return floatBytes(s), err }}
		})
		shift := b.constant("shift of "+norm.key(), sizes, xnnpack.XNNDatatypeFp32, func() partition.Blob {
			return &madeBlob{4 * n, func() ([]byte, error) { _, s, err := norm.factors(); return floatBytes(s), err }}
		})
		add := func(x, out uint32) {
			t := b.binary(nodeMultiply, x, scale, b.like(x))
			b.bound(b.node(nodeAdd(xnnpack.XNNBinary{Input1ID: t, Input2ID: shift, OutputID: out})))
		}
		if nhwc {
			in := b.inNHWC(x)
			add(in, b.fuseNHWC())
			return
		}
		in := b.in(x)
		add(in, b.fuse())
	}
}

// rows is a tensor with its trailing dimensions, of constant sizes, joined.
func (b *builder) rows(x uint32, trailing int) uint32 {
	shape := b.values[x].shape
	if trailing == 1 {
		return x
	}
	n := sym.Const(1)
	for _, e := range shape[len(shape)-trailing:] {
		n = sym.Mul(n, e)
	}
	return b.reshaped(x, append(slices.Clone(shape[:len(shape)-trailing]), n)...)
}

// rowSum is the sum over the last dimension times a factor, kept with size 1. A product with a vector of one number is
// what the delegate does fastest, whatever the other sizes.
func (b *builder) rowSum(x uint32, factor float64) uint32 {
	shape := slices.Clone(b.values[x].shape)
	n := b.rowLen(x)
	shape[len(shape)-1] = sym.Const(1)
	return b.rowSumTo(x, n, factor, b.resized(x, shape))
}

// rowLen is the size of the last dimension, a constant.
func (b *builder) rowLen(x uint32) int64 {
	shape := b.values[x].shape
	n, _ := shape[len(shape)-1].IsConst()
	return n
}

func (b *builder) rowSumTo(x uint32, n int64, factor float64, out uint32) uint32 {
	w := make([]float32, n)
	for i := range w {
		w[i] = float32(factor)
	}
	raw := floatBytes(w)
	filter := b.packed(contentKey(raw), []int64{1, n}, xnnpack.XNNDatatypeFp32, func() partition.Blob { return memBlob(raw) })
	b.node(&xnnpack.XNNFullyConnected{Input1ID: x, FilterID: filter, BiasID: noValue, OutputID: out})
	return out
}

// rowMean is the mean over the last dimension, kept with size 1.
func (b *builder) rowMean(x uint32) uint32 {
	return b.rowSum(x, 1/float64(b.rowLen(x)))
}

// trailing reads the sizes of the trailing dimensions that a norm runs over.
func (m *match) trailing(i int) (int, bool) {
	ks, ok := m.arg(i).IntList()
	shape := m.in(0).Type.Shape
	if !ok || len(ks) == 0 || len(ks) > len(shape) {
		m.no("normalized sizes that are not constant")
		return 0, false
	}
	for i, e := range shape[len(shape)-len(ks):] {
		if !e.IsConstValue(ks[i]) {
			m.no("normalized sizes that are not constant")
			return 0, false
		}
	}
	if len(ks) > 1 && symbolic(shape) > 1 {
		m.no("a shape with several sizes that vary")
		return 0, false
	}
	return len(ks), true
}

// layerNorm is (x - mean) / sqrt(var + eps) w + b over trailing dimensions.
func layerNorm(m *match) emit {
	if !m.firstOnly() {
		return nil
	}
	n, ok := m.trailing(1)
	eps, ok2 := m.number(4)
	if !ok || !ok2 {
		return nil
	}
	w, c := m.in(2), m.in(3)
	return func(b *builder) {
		x := b.rows(b.in(b.n.In(0)), n)
		t := b.centered(x)
		r := b.spread(t, eps)
		b.affine(t, r, w, c, n)
	}
}

// centered is x less its mean over the last dimension, which is nothing for rows of one number: a sum of quotients would leave
// some, and a norm behind it make that large.
func (b *builder) centered(x uint32) uint32 {
	t := b.rowSum(x, 1)
	t = b.binary(nodeDivide, t, b.scalar(float64(b.rowLen(x))), b.like(t))
	return b.binary(nodeSubtract, x, t, b.like(x))
}

// spread is 1/sqrt(mean(x^2) + eps) over the last dimension.
func (b *builder) spread(x uint32, eps float64) uint32 {
	v := b.rowMean(b.apply(nodeSquare, x, b.like(x)))
	v = b.binary(nodeAdd, v, b.scalar(eps), b.like(v))
	return b.apply(nodeRsqrt, v, b.like(v))
}

// affine writes t r w + c as the result of the node at hand. The trailing dimensions of t are joined.
func (b *builder) affine(t, r uint32, w, c *ir.Value, trailing int) {
	steps := []func(out uint32) uint32{
		func(out uint32) uint32 { return b.binary(nodeMultiply, t, r, out) },
	}
	flat := func(v *ir.Value) uint32 { return b.rows(b.in(v), v.Type.Rank()) }
	if w != nil {
		steps = append(steps, func(out uint32) uint32 { return b.binary(nodeMultiply, t, flat(w), out) })
	}
	if c != nil {
		steps = append(steps, func(out uint32) uint32 { return b.binary(nodeAdd, t, flat(c), out) })
	}
	for i, s := range steps {
		if i < len(steps)-1 || trailing > 1 {
			t = s(b.like(t))
			continue
		}
		s(b.out(0))
		return
	}
	b.reshapeTo(t, b.out(0))
}

// rmsNorm is x / sqrt(mean(x^2) + eps) w over trailing dimensions.
func rmsNorm(m *match) emit {
	if !m.firstOnly() {
		return nil
	}
	n, ok := m.trailing(1)
	if !ok {
		return nil
	}
	eps := 0x1p-23 // of float32
	if !m.arg(3).IsNone() {
		if eps, ok = m.number(3); !ok {
			return nil
		}
	}
	w := m.in(2)
	return func(b *builder) {
		x := b.rows(b.in(b.n.In(0)), n)
		b.affine(x, b.spread(x, eps), w, nil, n)
	}
}

// groupNorm normalizes groups of channels.
func groupNorm(m *match) emit {
	if !m.firstOnly() {
		return nil
	}
	x := m.in(0)
	shape := x.Type.Shape
	groups, ok := m.arg(1).Int()
	eps, ok2 := m.number(4)
	if !ok || !ok2 || len(shape) < 2 {
		return m.no("arguments that are computed")
	}
	row := sym.Const(1)
	for _, e := range shape[1:] {
		row = sym.Mul(row, e)
	}
	k, constant := row.IsConst()
	if !constant || k%groups != 0 {
		return m.no("sizes of channels and space that vary")
	}
	w, c := m.in(2), m.in(3)
	if w != nil && !isConst(w) || c != nil && !isConst(c) {
		return m.no("a weight that is computed")
	}
	return func(b *builder) {
		x := b.n.In(0)
		t := b.reshaped(b.in(x), shape[0], sym.Const(groups), sym.Const(k/groups))
		t = b.centered(t)
		t = b.binary(nodeMultiply, t, b.spread(t, eps), b.like(t))
		if w == nil && c == nil {
			b.reshapeTo(t, b.out(0))
			return
		}
		t = b.reshaped(t, shape...)
		channel := func(v *ir.Value) uint32 {
			in := partition.Weight(v)
			sizes := []int64{in.Data.Numel()}
			for range len(shape) - 2 {
				sizes = append(sizes, 1)
			}
			return b.weight(in, &form{sizes: sizes})
		}
		if w != nil {
			if c == nil {
				b.binary(nodeMultiply, t, channel(w), b.out(0))
				return
			}
			t = b.binary(nodeMultiply, t, channel(w), b.like(t))
		}
		b.binary(nodeAdd, t, channel(c), b.out(0))
	}
}
