package xnnpack

import (
	"fmt"
	"math"
	"slices"

	"github.com/lathe-ml/lathe/codegen/fb/xnnpack"
	"github.com/lathe-ml/lathe/codegen/xnnpayload"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/partition"
)

var convRules = map[ops.ID]rule{
	ops.AtenConv1dDefault:          wide(conv),
	ops.AtenConv2dDefault:          wide(conv),
	ops.AtenConv1dPadding:          wide(conv),
	ops.AtenConv2dPadding:          wide(conv),
	ops.AtenConvTranspose1dDefault: wide(conv),
	ops.AtenConvTranspose2dInput:   wide(conv),
	ops.AtenConvolutionDefault:     wide(conv),
}

// convolution is a convolution over two dimensions, the first of size 1 where there is one.
type convolution struct {
	x, bias    *ir.Value
	w          *ir.Input
	dims       int // of space: 1 or 2
	transposed bool
	groups     int64
	// kernel, stride, dilation and extra are by height and width, pad is top, right, bottom, left.
	kernel, stride, dilation, extra [2]int64
	pad                             [4]int64
	in, out                         int64 // channels
}

// spatial is the constants at argument i for the given number of dimensions, as height and width.
func (m *match) spatial(i, dims int, otherwise int64) ([2]int64, bool) {
	p, ok := m.pair(i, [2]int64{otherwise, otherwise})
	if dims == 1 {
		p[0] = otherwise
	}
	return p, ok
}

func readConv(m *match) (*convolution, bool) {
	n := m.n
	c := &convolution{x: m.in(0), bias: n.In(2)}
	w := m.in(1)
	c.w = partition.Weight(w)
	if c.w == nil {
		m.no("a weight that is computed")
		return nil, false
	}
	if c.bias != nil && !isConst(c.bias) {
		m.no("a bias that is computed")
		return nil, false
	}
	c.dims = w.Type.Rank() - 2
	if c.dims != 1 && c.dims != 2 || c.x.Type.Rank() != c.dims+2 {
		m.no("a convolution of %d dimensions over a tensor of %d", c.dims, c.x.Type.Rank())
		return nil, false
	}
	if c.dims == 1 && (symbolic(c.x.Type.Shape) > 1 || symbolic(m.out().Shape) > 1) {
		m.no("a shape with several sizes that vary")
		return nil, false
	}
	sizes := c.w.Data.Sizes
	c.kernel = [2]int64{1, sizes[len(sizes)-1]}
	if c.dims == 2 {
		c.kernel[0] = sizes[2]
	}
	var ok, ok2, ok3, ok4, ok5 bool
	c.stride, ok = m.spatial(3, c.dims, 1)
	var pad [2]int64
	ok2, ok4, ok5 = true, true, true
	text, named := n.Arg(4).Str()
	if !named {
		pad, ok2 = m.spatial(4, c.dims, 0)
	}
	at := func(name string) int { return n.Info().ArgIndex(name) }
	c.dilation, ok3 = m.spatial(at("dilation"), c.dims, 1)
	if i := at("output_padding"); i >= 0 {
		c.extra, ok4 = m.spatial(i, c.dims, 0)
	}
	c.groups, ok5 = n.Arg(at("groups")).Int()
	if !ok || !ok2 || !ok3 || !ok4 || !ok5 {
		m.no("arguments that are computed")
		return nil, false
	}
	c.pad = [4]int64{pad[0], pad[1], pad[0], pad[1]}
	if named {
		switch text {
		case "valid":
		case "same":
			for d := range 2 {
				total := c.dilation[d] * (c.kernel[d] - 1)
				// torch pads more behind where it does not come out even.
				c.pad[[2]int{0, 3}[d]], c.pad[[2]int{2, 1}[d]] = total/2, total-total/2
			}
		default:
			m.no("padding %q", text)
			return nil, false
		}
	}
	c.transposed = transposes(n)
	c.out, c.in = sizes[0], sizes[1]*c.groups
	if c.transposed {
		c.in, c.out = sizes[0], sizes[1]*c.groups
	}
	for _, k := range []int64{c.pad[0], c.pad[1], c.pad[2], c.pad[3], c.extra[0], c.extra[1]} {
		if k < 0 {
			m.no("a negative padding")
			return nil, false
		}
	}
	if c.groups < 1 || c.in%c.groups != 0 || c.out%c.groups != 0 {
		m.no("%d groups", c.groups)
		return nil, false
	}
	if c.transposed && (c.extra[0] >= c.stride[0] && c.extra[0] > 0 || c.extra[1] >= c.stride[1] && c.extra[1] > 0) {
		m.no("an output padding as large as the stride")
		return nil, false
	}
	return c, true
}

// transposes tells transposed convolutions.
func transposes(n *ir.Node) bool {
	switch n.Op {
	case ops.AtenConvTranspose1dDefault, ops.AtenConvTranspose2dInput:
		return true
	case ops.AtenConvolutionDefault:
		t, _ := n.Arg(6).Bool()
		return t
	}
	return false
}

func conv(m *match) emit {
	if !m.floats() {
		return nil
	}
	c, ok := readConv(m)
	if !ok {
		return nil
	}
	return func(b *builder) { b.convolve(c) }
}

// convolve writes the node at hand, with the pad before it, and the batch norm and the activation behind it.
func (b *builder) convolve(c *convolution) {
	var bounded func(*xnnpack.XNode)
	var filter, bias uint32
	var out *ir.Value
	dynamic := false
	if op := b.intConv(c, &filter, &bias); op != nil {
		c.x, out, bounded = op.x[0], op.out, op.bound
	} else if f := c.dynamic(); f != nil {
		ch := dynamicInput(c.x)
		c.x, out = ch.x, b.fusedOut(b.n)
		filter, bias = b.dynamicFilter(f)
		n := b.n
		bounded = func(x *xnnpack.XNode) { b.boundOf(x, n) }
		dynamic = true
	} else {
		tail := b.n
		norm := b.normBehind(b.n)
		if norm != nil {
			b.fused[norm.n] = true
			tail = norm.n
		}
		filter, bias = b.filter(c, norm)
		out = b.fusedOut(tail)
		bounded = func(x *xnnpack.XNode) { b.boundOf(x, tail) }
	}
	x := c.x
	if !c.transposed && !dynamic {
		x = b.foldPad(c)
	}
	in := b.space(x)
	if dynamic {
		in = b.quantizedImage(in)
	}
	shape := innermost(out.Type.Shape)
	dst := uint32(0)
	if c.dims == 2 {
		dst = b.outNHWC(out)
	} else {
		kind := datatype(out.Type.DType)
		if kind != xnnpack.XNNDatatypeQint8 {
			kind = b.float()
		}
		dst = b.declare(value{[]sym.Expr{shape[0], sym.Const(1), shape[1], shape[2]}, kind, b.quantOf(out)}, xnnpayload.InvalidID, 0, 0)
	}
	n := xnnpack.XNNConvolution{
		PaddingTop: uint32(c.pad[0]), PaddingRight: uint32(c.pad[1]), PaddingBottom: uint32(c.pad[2]), PaddingLeft: uint32(c.pad[3]),
		KernelHeight: uint32(c.kernel[0]), KernelWidth: uint32(c.kernel[1]),
		SubsamplingHeight: uint32(c.stride[0]), SubsamplingWidth: uint32(c.stride[1]),
		DilationHeight: uint32(c.dilation[0]), DilationWidth: uint32(c.dilation[1]),
		GroupInputChannels: uint32(c.in / c.groups), GroupOutputChannels: uint32(c.out / c.groups), Groups: uint32(c.groups),
		AdjustmentHeight: uint32(c.extra[0]), AdjustmentWidth: uint32(c.extra[1]),
		Input1ID: in, FilterID: filter, BiasID: bias, OutputID: dst,
	}
	var u xnnpack.XNodeUnion
	switch {
	case c.transposed:
		t := xnnpack.XNNConvTranspose2d(n)
		u = &t
	case c.depthwise():
		t := xnnpack.XNNDepthwiseConv2d(n)
		u = &t
	default:
		t := xnnpack.XNNConv2d(n)
		u = &t
	}
	bounded(b.node(u))
	if c.dims == 1 {
		b.reshapeTo(dst, b.outNHWC(out))
	}
}

// dynamic is the filter of a convolution over an image that is quantized when the program runs, nil for others. The delegate
// makes a linear layer of a convolution of single pixels, for which it would find scales for each pixel.
func (c *convolution) dynamic() *intFilter {
	ch := dynamicInput(c.x)
	if ch == nil || !ch.together || c.dims != 2 || c.groups != 1 || ch.x.Type.DType != ops.Float32 || !ch.x.Type.Shape[0].IsConstValue(1) ||
		!c.transposed && c.kernel == [2]int64{1, 1} && c.stride == [2]int64{1, 1} {
		return nil
	}
	if c.bias != nil && c.bias.Type.DType != ops.Float32 {
		return nil
	}
	f, ok := c.intFilter()
	if !ok {
		return nil
	}
	return f
}

// dynamicFilter is a filter for an image that is quantized when the program runs, and a bias of numbers.
func (b *builder) dynamicFilter(f *intFilter) (filter, bias uint32) {
	scales := f.scales
	if len(scales) == 1 {
		scales = slices.Repeat(scales, int(f.data.Sizes[f.channel]))
	}
	raw := memBlob(floatBytes(scales))
	q := &xnnpack.PerChannelQuant{
		Scale: []float32{}, ChannelDim: int32(f.channel), NumScales: uint32(len(scales)),
		ScaleBufferIdx: b.data("scale "+contentKey(raw), func() partition.Blob { return raw }),
	}
	filter = b.declare(value{ir.Consts(f.data.Sizes...), xnnpack.XNNDatatypeQcint8, q}, xnnpayload.InvalidID, 0,
		b.data(f.key, func() partition.Blob { return dataBlob(f.data) }))
	bias = noValue
	if f.bias != nil {
		bias = b.packedWeight(f.bias, nil)
	}
	return filter, bias
}

// quantizedImage is an image quantized when the program runs, with one scale.
func (b *builder) quantizedImage(x uint32) uint32 {
	if id, ok := b.dynamic[x]; ok {
		return id
	}
	id := b.declare(value{b.values[x].shape, xnnpack.XNNDatatypeQdint8, &xnnpack.PerTokenDynamicQuant{NumNonbatchDims: 3}}, xnnpayload.InvalidID, 0, 0)
	b.convert(x, id)
	b.dynamic[x] = id
	return id
}

// depthwise tells convolutions that take each channel by itself.
func (c *convolution) depthwise() bool { return !c.transposed && c.in == c.groups && c.groups > 1 }

// space is x as a tensor of four dimensions with the channels innermost.
func (b *builder) space(x *ir.Value) uint32 {
	id := b.inNHWC(x)
	if x.Type.Rank() == 4 {
		return id
	}
	s := b.values[id].shape
	return b.reshaped(id, s[0], sym.Const(1), s[1], s[2])
}

// foldPad takes a pad with zeros in front of the convolution into its own padding, and gives what is to be read.
func (b *builder) foldPad(c *convolution) *ir.Value {
	p := c.x.Def
	if p == nil || p.Op != ops.AtenConstantPadNdDefault || c.x.NumUses() != 1 || b.later[c.x] == nil {
		return c.x
	}
	ks, _ := p.Arg(1).IntList()
	value, _ := p.Arg(2).Float()
	if value != 0 || len(ks) > 2*c.dims {
		return c.x
	}
	for i, k := range ks {
		// Width comes first: left, right, top, bottom.
		c.pad[[4]int{3, 1, 0, 2}[i]] += k
	}
	delete(b.later, c.x)
	return p.In(0)
}

// batchNorm is a batch norm in inference: x scale + shift for each channel.
type batchNorm struct {
	n                        *ir.Node
	weight, bias, mean, var_ *ir.Input
	eps                      float64
}

// readNorm reads a batch norm that is a constant for each channel.
func readNorm(n *ir.Node) (*batchNorm, bool) {
	switch n.Op {
	case ops.AtenBatchNormDefault:
		if training, ok := n.Arg(5).Bool(); !ok || training {
			return nil, false
		}
	case ops.AtenUnderNativeBatchNormLegitNoTrainingDefault:
		for _, o := range n.Outs[1:] {
			if o.NumUses() > 0 {
				return nil, false
			}
		}
	default:
		return nil, false
	}
	eps, ok := n.ArgNamed("eps").Float()
	if !ok {
		return nil, false
	}
	v := &batchNorm{n: n, eps: eps}
	for i, to := range []**ir.Input{&v.weight, &v.bias, &v.mean, &v.var_} {
		if n.In(i+1) == nil {
			continue
		}
		if *to = partition.Weight(n.In(i + 1)); *to == nil || heldType((*to).Value.Type) != "" {
			return nil, false
		}
	}
	return v, v.mean != nil && v.var_ != nil
}

func (v *batchNorm) channels() int64 { return v.mean.Data.Numel() }

func (v *batchNorm) key() string {
	key := fmt.Sprintf("bn %v", v.eps)
	for _, in := range []*ir.Input{v.weight, v.bias, v.mean, v.var_} {
		if in == nil {
			key += " -"
			continue
		}
		key += " " + partition.WeightKey(in)
	}
	return key
}

// factors are scale and shift of each channel.
func (v *batchNorm) factors() (scale, shift []float32, err error) {
	read := func(in *ir.Input, otherwise float32) []float32 {
		var fs []float32
		if in != nil {
			var e error
			if fs, e = readFloats(in.Data); e != nil && err == nil {
				err = e
			}
		}
		if int64(len(fs)) != v.channels() {
			fs = make([]float32, v.channels())
			for i := range fs {
				fs[i] = otherwise
			}
		}
		return fs
	}
	w, c, mean, variance := read(v.weight, 1), read(v.bias, 0), read(v.mean, 0), read(v.var_, 1)
	if err != nil {
		return nil, nil, err
	}
	scale, shift = make([]float32, len(w)), make([]float32, len(w))
	for i := range w {
		s := float64(w[i]) / math.Sqrt(float64(variance[i])+v.eps)
		scale[i], shift[i] = float32(s), float32(float64(c[i])-float64(mean[i])*s)
	}
	return scale, shift, nil
}

// normBehind is the batch norm that alone reads n's result.
func (b *builder) normBehind(n *ir.Node) *batchNorm {
	v := n.Out()
	if v.NumUses() != 1 || v.IsOutput() {
		return nil
	}
	u := v.Users()[0]
	if u.Graph() != b.g || u.In(0) != v {
		return nil
	}
	norm, ok := readNorm(u)
	if !ok {
		return nil
	}
	return norm
}

// form is how the delegate wants the filter to lie, and the dimension of the output's channels then.
func (c *convolution) form() (f *form, channel int) {
	f = &form{perm: []int{0, 2, 3, 1}}
	sizes := c.w.Data.Sizes
	kh, kw := c.kernel[0], c.kernel[1]
	f.split = []int64{sizes[0], sizes[1], kh, kw}
	switch {
	case c.transposed:
		f.split = []int64{c.groups, c.in / c.groups, c.out / c.groups, kh, kw}
		f.perm, f.sizes = []int{0, 2, 3, 4, 1}, []int64{c.out, kh, kw, c.in / c.groups}
	case c.depthwise():
		f.perm, channel = []int{1, 2, 3, 0}, 3
	}
	return f, channel
}

// filter gives the filter and the bias as the delegate wants them, those of a batch norm behind worked in.
func (b *builder) filter(c *convolution, norm *batchNorm) (filter, bias uint32) {
	f, channel := c.form()
	bias = xnnpayload.InvalidID
	if norm == nil {
		if c.bias != nil {
			bias = b.packedWeight(partition.Weight(c.bias), nil)
		}
		return b.packedWeight(c.w, f), bias
	}
	d, key := shaped(c.w, f)
	kind := b.float()
	made := func() ([]byte, error) {
		fs, err := readFloats(d)
		if err != nil {
			return nil, err
		}
		scale, _, err := norm.factors()
		if err != nil {
			return nil, err
		}
		inner := int64(1)
		for _, k := range d.Sizes[channel+1:] {
			inner *= k
		}
		for i := range fs {
			fs[i] *= scale[int64(i)/inner%c.out]
		}
		return numberBytes(fs, kind), nil
	}
	name := fmt.Sprintf("%s * %s", kind, norm.key())
	filter = b.packed(key+" "+name, d.Sizes, kind, func() partition.Blob {
		return &madeBlob{numberSize(kind) * d.Numel(), made}
	})
	biasKey := "bias of " + name
	if c.bias != nil {
		biasKey += " " + partition.WeightKey(partition.Weight(c.bias))
	}
	bias = b.packed(biasKey, []int64{c.out}, kind, func() partition.Blob {
		return &madeBlob{numberSize(kind) * c.out, func() ([]byte, error) {
			scale, shift, err := norm.factors()
			if err != nil || c.bias == nil {
				return numberBytes(shift, kind), err
			}
			fs, err := readFloats(partition.Weight(c.bias).Data)
			if err != nil {
				return nil, err
			}
			for i := range shift {
				shift[i] += fs[i] * scale[i]
			}
			return numberBytes(shift, kind), nil
		}}
	})
	return filter, bias
}
