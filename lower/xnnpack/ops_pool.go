package xnnpack

import (
	"github.com/lathe-ml/lathe/codegen/fb/xnnpack"
	"github.com/lathe-ml/lathe/codegen/xnnpayload"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// noValue is the id of a bias that is not there.
const noValue = xnnpayload.InvalidID

var poolRules = map[ops.ID]rule{
	ops.AtenMaxPool1dDefault:            maxPool,
	ops.AtenMaxPool2dDefault:            maxPool,
	ops.AtenMaxPool2dWithIndicesDefault: maxPool,
	ops.AtenAvgPool1dDefault:            wide(avgPool),
	ops.AtenAvgPool2dDefault:            wide(avgPool),
	ops.AtenAdaptiveAvgPool1dDefault:    wide(adaptiveAvgPool),
	ops.AtenAdaptiveAvgPool2dDefault:    wide(adaptiveAvgPool),
	ops.AtenUpsampleBilinear2dDefault:   wide(bilinear),
	ops.AtenUpsampleBilinear2dVec:       wide(bilinear),
}

// pool is a pool over two dimensions, the first of size 1 where there is one.
type pool struct {
	dims             int
	kernel, stride   [2]int64
	dilation, before [2]int64
	after            [2]int64 // padding at the bottom and at the right
}

// readPool reads what the pools have in common and refuses other forms.
func readPool(m *match, dims int) (*pool, bool) {
	x := m.in(0).Type
	p := &pool{dims: dims}
	if x.Rank() != dims+2 {
		m.no("a tensor of %d dimensions", x.Rank())
		return nil, false
	}
	if dims == 1 && (symbolic(x.Shape) > 1 || symbolic(m.out().Shape) > 1) {
		m.no("a shape with several sizes that vary")
		return nil, false
	}
	var ok, ok2, ok3 bool
	p.kernel, ok = m.spatial(1, dims, 1)
	p.stride = p.kernel
	ok2 = true
	if ks, isList := m.arg(2).IntList(); !isList || len(ks) > 0 {
		if !m.arg(2).IsNone() {
			p.stride, ok2 = m.spatial(2, dims, 1)
		}
	}
	p.before, ok3 = m.spatial(3, dims, 0)
	p.after, p.dilation = p.before, [2]int64{1, 1}
	return p, ok && ok2 && ok3
}

// fill adds what the last window lacks at the end where sizes are rounded up.
func (p *pool) fill(m *match, ceil bool) bool {
	if !ceil {
		return true
	}
	x, out := m.in(0).Type.Shape, m.out().Shape
	for d := range 2 {
		if p.dims == 1 && d == 0 {
			continue
		}
		i := len(x) - 2 + d
		have, ok := x[i].IsConst()
		want, ok2 := out[i].IsConst()
		if !ok || !ok2 {
			m.no("sizes that are rounded up and vary")
			return false
		}
		lacks := (want-1)*p.stride[d] + p.dilation[d]*(p.kernel[d]-1) + 1 - have - 2*p.before[d]
		p.after[d] += max(lacks, 0)
	}
	return true
}

func (b *builder) pooled(p *pool, x, out *ir.Value, write func(n xnnpack.XNNPooling2D) xnnpack.XNodeUnion) {
	in := b.space(x)
	shape := innermost(out.Type.Shape)
	dst := uint32(0)
	if p.dims == 2 {
		dst = b.outNHWC(out)
	} else {
		dst = b.resized(in, []sym.Expr{shape[0], sym.Const(1), shape[1], shape[2]})
	}
	b.node(write(xnnpack.XNNPooling2D{
		PaddingTop: uint32(p.before[0]), PaddingLeft: uint32(p.before[1]), PaddingBottom: uint32(p.after[0]), PaddingRight: uint32(p.after[1]),
		PoolingHeight: uint32(p.kernel[0]), PoolingWidth: uint32(p.kernel[1]), StrideHeight: uint32(p.stride[0]), StrideWidth: uint32(p.stride[1]),
		DilationHeight: uint32(p.dilation[0]), DilationWidth: uint32(p.dilation[1]), InputID: in, OutputID: dst, Flags: flagKeepDims,
	}))
	if p.dims == 1 {
		b.reshapeTo(dst, b.outNHWC(out))
	}
}

func maxPool(m *match) emit {
	if !m.firstOnly() {
		return nil
	}
	dims := 2
	if m.n.Op == ops.AtenMaxPool1dDefault {
		dims = 1
	}
	p, ok := readPool(m, dims)
	if !ok {
		return m.no("arguments that are computed")
	}
	if p.dilation, ok = m.spatial(4, dims, 1); !ok {
		return nil
	}
	ceil, ok := m.arg(5).Bool()
	if !ok || !p.fill(m, ceil) {
		return nil
	}
	if p.kernel[0]*p.kernel[1] == 1 && p.stride != [2]int64{1, 1} {
		return m.no("windows of one element")
	}
	if p.stride[0] > p.kernel[0] || p.stride[1] > p.kernel[1] {
		return m.no("a stride larger than the window")
	}
	return func(b *builder) {
		b.pooled(p, b.n.In(0), b.n.Out(), func(n xnnpack.XNNPooling2D) xnnpack.XNodeUnion {
			x := xnnpack.XNNMaxPooling2d(n)
			return &x
		})
	}
}

func nodeAvgPool(n xnnpack.XNNPooling2D) xnnpack.XNodeUnion {
	x := xnnpack.XNNAvgPooling2d(n)
	return &x
}

// avgPool: the delegate leaves the padding out of the mean.
func avgPool(m *match) emit {
	if !m.floats() {
		return nil
	}
	dims := 2
	if m.n.Op == ops.AtenAvgPool1dDefault {
		dims = 1
	}
	p, ok := readPool(m, dims)
	if !ok {
		return m.no("arguments that are computed")
	}
	ceil, ok1 := m.arg(4).Bool()
	counted, ok2 := m.arg(5).Bool()
	if !ok1 || !ok2 {
		return m.no("arguments that are computed")
	}
	if ceil {
		return m.no("sizes that are rounded up")
	}
	if counted && (p.before[0] > 0 || p.before[1] > 0) {
		return m.no("padding that counts for the mean")
	}
	if d := m.n.ArgNamed("divisor_override"); !d.IsNone() {
		if k, ok := d.Int(); !ok || k != p.kernel[0]*p.kernel[1] {
			return m.no("another divisor than the window's size")
		}
	}
	if p.kernel[0]*p.kernel[1] == 1 {
		return m.no("windows of one element")
	}
	p.dilation = [2]int64{}
	return func(b *builder) { b.pooled(p, b.n.In(0), b.n.Out(), nodeAvgPool) }
}

// adaptiveAvgPool is the mean over all, or a pool where the sizes come out even.
func adaptiveAvgPool(m *match) emit {
	if !m.floats() {
		return nil
	}
	dims := 2
	if m.n.Op == ops.AtenAdaptiveAvgPool1dDefault {
		dims = 1
	}
	x, out := m.in(0).Type.Shape, m.out().Shape
	if len(x) != dims+2 {
		return m.no("a tensor of %d dimensions", len(x))
	}
	if dims == 1 && (symbolic(x) > 1 || symbolic(out) > 1) {
		return m.no("a shape with several sizes that vary")
	}
	all := true
	for _, e := range out[2:] {
		all = all && e.IsConstValue(1)
	}
	if all {
		return func(b *builder) {
			if dims == 2 && b.intMean(true) {
				return
			}
			in, out := b.space(b.n.In(0)), b.n.Out()
			if dims == 2 {
				n := xnnpack.XNNUnary{InputID: in, OutputID: b.outNHWC(out), Flags: flagKeepDims}
				b.node(nodePool(n))
				return
			}
			s := innermost(out.Type.Shape)
			t := b.temp([]sym.Expr{s[0], s[2]}, b.float())
			b.node(nodePool(xnnpack.XNNUnary{InputID: in, OutputID: t}))
			b.reshapeTo(t, b.outNHWC(out))
		}
	}
	p := &pool{dims: dims, kernel: [2]int64{1, 1}, stride: [2]int64{1, 1}}
	for i, e := range out[2:] {
		have, ok := x[i+2].IsConst()
		want, ok2 := e.IsConst()
		if !ok || !ok2 || have%want != 0 {
			return m.no("windows of several sizes")
		}
		d := 2 - dims + i
		p.kernel[d], p.stride[d] = have/want, have/want
	}
	if p.kernel[0]*p.kernel[1] == 1 {
		return m.no("windows of one element")
	}
	return func(b *builder) { b.pooled(p, b.n.In(0), b.n.Out(), nodeAvgPool) }
}

// bilinear resizes to a constant size.
func bilinear(m *match) emit {
	if !m.floats() {
		return nil
	}
	x, out := m.in(0).Type.Shape, m.out().Shape
	if len(x) != 4 {
		return m.no("a tensor of %d dimensions", len(x))
	}
	h, ok := out[2].IsConst()
	w, ok2 := out[3].IsConst()
	have, ok3 := x[2].IsConst()
	wide, ok4 := x[3].IsConst()
	align, ok5 := m.n.ArgNamed("align_corners").Bool()
	if !ok || !ok2 || !ok3 || !ok4 || !ok5 {
		return m.no("sizes that vary")
	}
	if m.n.Op == ops.AtenUpsampleBilinear2dVec && !m.evenScales(m.n.ArgNamed("scale_factors"), []int64{have, wide}, []int64{h, w}) ||
		m.n.Op == ops.AtenUpsampleBilinear2dDefault && (!m.evenScale(m.n.ArgNamed("scales_h"), have, h) || !m.evenScale(m.n.ArgNamed("scales_w"), wide, w)) {
		return m.no("scales other than the quotient of the sizes")
	}
	var flags uint32
	if align {
		flags = flagAlignCorners
	}
	return func(b *builder) {
		in := b.inNHWC(b.n.In(0))
		b.node(&xnnpack.XNNStaticResizeBilinear2D{
			NewHeight: uint32(h), NewWidth: uint32(w), InputID: in, OutputID: b.outNHWC(b.n.Out()), Flags: flags,
		})
	}
}

func (m *match) evenScales(a ir.Arg, have, want []int64) bool {
	if a.IsNone() {
		return true
	}
	for i, e := range a.List() {
		if i < len(have) && !m.evenScale(e, have[i], want[i]) {
			return false
		}
	}
	return true
}

// evenScale tells whether a scale given is that of the sizes, which is the one that the delegate takes.
func (m *match) evenScale(a ir.Arg, have, want int64) bool {
	if a.IsNone() {
		return true
	}
	f, ok := a.Float()
	return ok && f*float64(have) == float64(want)
}
