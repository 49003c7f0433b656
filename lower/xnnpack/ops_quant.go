package xnnpack

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/lathe-ml/lathe/codegen/fb/xnnpack"
	"github.com/lathe-ml/lathe/codegen/xnnpayload"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/partition"
)

// quantRules is a function: the rules ask for those of the nodes around.
func quantRules() map[ops.ID]rule {
	return map[ops.ID]rule{
		ops.QuantizedDecomposedQuantizePerTensorDefault:                        quantizeStatic,
		ops.QuantizedDecomposedDequantizePerTensorDefault:                      dequantizeStatic,
		ops.QuantizedDecomposedDequantizePerChannelDefault:                     dequantizeWeight,
		ops.QuantizedDecomposedDequantizePerChannelGroupDefault:                dequantizeWeight,
		ops.TorchaoDequantizeAffineDefault:                                     dequantizeAffine,
		ops.QuantizedDecomposedChooseQparamsTensor:                             dynamicPart,
		ops.QuantizedDecomposedChooseQparamsPerTokenAsymmetricDefault:          dynamicPart,
		ops.QuantizedDecomposedUnderChooseQparamsPerTokenAsymmetricImplDefault: dynamicPart,
		ops.TorchaoChooseQparamsAffineDefault:                                  dynamicPart,
		ops.QuantizedDecomposedQuantizePerTensorTensor:                         dynamicPart,
		ops.QuantizedDecomposedQuantizePerTokenDefault:                         dynamicPart,
		ops.TorchaoQuantizeAffineDefault:                                       dynamicPart,
		ops.QuantizedDecomposedDequantizePerTensorTensor:                       dynamicPart,
		ops.QuantizedDecomposedDequantizePerTokenDefault:                       dynamicPart,
	}
}

// scale is scale and zero point of a whole tensor.
type scale struct {
	scale float64
	zero  int64
}

// staticScale reads quantization with constants to all of int8.
func staticScale(n *ir.Node) (scale, bool) {
	s, ok := n.Arg(1).Float()
	z, ok2 := n.Arg(2).Int()
	lo, ok3 := n.ArgNamed("quant_min").Int()
	hi, ok4 := n.ArgNamed("quant_max").Int()
	d, ok5 := n.ArgNamed("dtype").DType()
	f := float32(s)
	return scale{s, z}, ok && ok2 && ok3 && ok4 && ok5 && d == ops.Int8 && lo == -128 && hi == 127 && z >= -128 && z <= 127 &&
		f > 0 && !math.IsInf(float64(f), 0) && 1/f < math.MaxFloat32
}

func isDequantize(n *ir.Node) bool { return n.Op == ops.QuantizedDecomposedDequantizePerTensorDefault }

// tensorScale is how int8 value v stands for numbers, by what made it or by those who read it, where all agree.
func tensorScale(v *ir.Value) (scale, bool) {
	var s scale
	known := false
	agree := func(n *ir.Node) bool {
		t, ok := staticScale(n)
		if !ok || known && s != t {
			return false
		}
		s, known = t, true
		return true
	}
	if v.Def != nil && v.Def.Op == ops.QuantizedDecomposedQuantizePerTensorDefault && !agree(v.Def) {
		return s, false
	}
	for _, u := range v.Users() {
		if isDequantize(u) && !agree(u) {
			return s, false
		}
	}
	return s, known
}

func (b *builder) quantOf(v *ir.Value) xnnpack.XNNQuantParams {
	if v.Type.DType != ops.Int8 {
		return nil
	}
	s := b.scales[v]
	return &xnnpack.PerTensorQuant{Scale: float32(s.scale), ZeroPoint: int32(s.zero)}
}

func (m *match) heldBytes(v *ir.Value) bool {
	t := v.Type
	if !t.IsTensor() || t.DType != ops.Int8 || t.Rank() > maxRank || m.filled(t) != "" {
		m.no("quantized numbers other than int8")
		return false
	}
	if _, ok := tensorScale(v); !ok {
		m.no("scales that differ, or do not use all of int8")
		return false
	}
	return true
}

func quantizeStatic(m *match) emit {
	if !m.held(m.in(0)) || !m.heldBytes(m.n.Out()) {
		return nil
	}
	if m.in(0).Type.DType != ops.Float32 {
		return m.no("numbers of %s quantized", m.in(0).Type.DType)
	}
	return func(b *builder) { b.map1(b.convert) }
}

func (b *builder) convert(x, out uint32) {
	n := xnnpack.XNNConvert{InputID: x, OutputID: out}
	b.node(&n)
}

// dequantizeStatic is written when somebody wants the numbers.
func dequantizeStatic(m *match) emit {
	if isConst(m.in(0)) {
		return dequantizeWeight(m)
	}
	if d := m.n.ArgNamed("out_dtype"); !d.IsNone() {
		if t, _ := d.DType(); t != ops.Float32 {
			return m.no("a result of %s", t)
		}
	}
	if !m.heldBytes(m.in(0)) || !m.held(m.n.Out()) {
		return nil
	}
	return func(b *builder) {
		x, out := b.n.In(0), b.n.Out()
		b.later[out] = func() {
			if b.prefersNHWC(x) {
				b.convert(b.inNHWC(x), b.outNHWC(out))
				return
			}
			in := b.in(x)
			b.convert(in, b.outOf(out))
		}
	}
}

// quantWeight is a weight matrix of integers: rows are output channels, a scale for each row or for each group of a row.
type quantWeight struct {
	data, scale *ir.Input
	uniform     float64 // the scale of all, where scale is nil
	rows, cols  int64
	group       int64
	bits        int
}

// readWeight reads what dequantizes a constant matrix, symmetric ones only.
func readWeight(v *ir.Value) (*quantWeight, bool) {
	n := v.Def
	if n == nil || v.Type.Rank() != 2 || heldType(v.Type) != "" || n.In(0) == nil {
		return nil, false
	}
	w := &quantWeight{data: partition.Weight(n.In(0))}
	if w.data == nil || w.data.Data.DType != ops.Int8 || len(w.data.Data.Sizes) != 2 {
		return nil, false
	}
	w.rows, w.cols = w.data.Data.Sizes[0], w.data.Data.Sizes[1]
	w.group = w.cols
	var zero ir.Arg
	switch n.Op {
	case ops.QuantizedDecomposedDequantizePerTensorDefault:
		s, ok := n.Arg(1).Float()
		z, ok2 := n.Arg(2).Int()
		if !ok || !ok2 || z != 0 {
			return nil, false
		}
		w.uniform = s
	case ops.QuantizedDecomposedDequantizePerChannelDefault:
		if axis, ok := n.ArgNamed("axis").Int(); !ok || axis != 0 {
			return nil, false
		}
		w.scale, zero = partition.Weight(n.In(1)), n.ArgNamed("zero_points")
	case ops.QuantizedDecomposedDequantizePerChannelGroupDefault:
		g, ok := n.ArgNamed("group_size").Int()
		if !ok {
			return nil, false
		}
		w.group, w.scale, zero = g, partition.Weight(n.In(1)), n.ArgNamed("zero_points")
	case ops.TorchaoDequantizeAffineDefault:
		block, ok := n.ArgNamed("block_size").IntList()
		if !ok || len(block) != 2 || block[0] != 1 {
			return nil, false
		}
		w.group, w.scale, zero = block[1], partition.Weight(n.ArgNamed("scale").Value()), n.ArgNamed("zero_point")
	default:
		return nil, false
	}
	if w.group <= 0 || w.cols%w.group != 0 {
		return nil, false
	}
	if n.Op != ops.QuantizedDecomposedDequantizePerTensorDefault {
		if w.scale == nil || heldType(w.scale.Value.Type) != "" || w.scale.Data.Numel() != w.rows*(w.cols/w.group) {
			return nil, false
		}
	}
	if z := zero.Value(); z != nil {
		in := partition.Weight(z)
		if in == nil || !allZero(in.Data) {
			return nil, false
		}
	}
	if w.scale != nil && !usable(w.scale.Data) || w.scale == nil && !(w.uniform > 0x1p-126 && w.uniform < math.MaxFloat32) {
		return nil, false
	}
	lo, ok := n.ArgNamed("quant_min").Int()
	hi, ok2 := n.ArgNamed("quant_max").Int()
	w.bits = 8
	if ok && ok2 && lo >= -8 && hi <= 7 {
		w.bits = 4
	}
	return w, true
}

// allZero tells whether all zero points are zero. They are few, and part of what the operator means.
func allZero(d *ir.Data) bool {
	p, err := d.Compact()
	if err != nil {
		return false
	}
	for _, x := range p {
		if x != 0 {
			return false
		}
	}
	return true
}

// usable tells whether the delegate takes all of these scales: it refuses to load others.
func usable(d *ir.Data) bool {
	fs, err := readFloats(d)
	if err != nil {
		return false
	}
	for _, f := range fs {
		if !(f >= 0x1p-126 && f <= math.MaxFloat32) {
			return false
		}
	}
	return true
}

// perRow tells weights with one scale for each row.
func (w *quantWeight) perRow() bool { return w.group == w.cols }

// forDynamic tells whether the delegate multiplies w with rows that are quantized when the program runs.
func (w *quantWeight) forDynamic() bool {
	return w.perRow() || w.bits == 4 && w.group%32 == 0
}

// forFloats tells whether the delegate multiplies w with floats.
func (w *quantWeight) forFloats() bool { return w.perRow() }

// quantizedLinear gives the way to write a linear layer over integers, nil where there is none.
func quantizedLinear(m *match) emit {
	x, v, bias := m.in(0), m.in(1), m.in(2)
	w, ok := readWeight(v)
	if !ok || bias != nil && !isConst(bias) || x.Type.Rank() == 0 {
		return nil
	}
	if c := dynamicInput(x); c != nil && w.forDynamic() {
		if !c.together {
			return func(b *builder) { b.quantLinear(b.quantized(c.x), w, bias) }
		}
		if w.perRow() && symbolic(x.Type.Shape) <= 1 {
			return func(b *builder) { b.quantConv(c.x, w, bias) }
		}
	}
	if w.forFloats() {
		return func(b *builder) {
			if !b.intLinear(x, w, bias) {
				b.floatLinear(b.in(x), w, bias)
			}
		}
	}
	return nil
}

// floatLinear multiplies floats with a weight of integers. The delegate's kernel applies the scale to the bias as well,
// which is therefore added behind it.
func (b *builder) floatLinear(x uint32, w *quantWeight, bias *ir.Value) {
	n := &xnnpack.XNNFullyConnected{Input1ID: x, FilterID: b.channelWeight(w, false), BiasID: noValue}
	if bias == nil {
		n.OutputID = b.fuse()
		b.bound(b.node(n))
		return
	}
	n.OutputID = b.temp(b.n.Out().Type.Shape, b.float())
	b.node(n)
	b.bound(b.node(nodeAdd(xnnpack.XNNBinary{Input1ID: n.OutputID, Input2ID: b.in(bias), OutputID: b.fuse()})))
}

// quantized is x quantized when the program runs, a scale for each row.
func (b *builder) quantized(x *ir.Value) uint32 {
	in := b.in(x)
	if id, ok := b.dynamic[in]; ok {
		return id
	}
	out := b.declare(value{x.Type.Shape, xnnpack.XNNDatatypeQdint8, &xnnpack.PerTokenDynamicQuant{NumNonbatchDims: 1}}, xnnpayload.InvalidID, 0, 0)
	b.convert(in, out)
	b.dynamic[in] = out
	return out
}

func (b *builder) quantLinear(x uint32, w *quantWeight, bias *ir.Value) {
	n := &xnnpack.XNNFullyConnected{Input1ID: x, BiasID: noValue}
	if bias != nil {
		n.BiasID = b.packedWeight(partition.Weight(bias), nil)
	}
	if w.perRow() {
		n.FilterID = b.channelWeight(w, true)
		n.OutputID = b.fuse()
		b.bound(b.node(n))
		return
	}
	// Scales of groups are bfloat16 there. What that rounds off is a second product over the same integers where the matrix is
	// small; of a large one it is less than what rounding the rows to int8 changes.
	split := w.splitScales
	if w.rows*w.cols >= manyWeights {
		split = w.roundScales
	}
	coarse, fine, err := split()
	if err != nil {
		b.failf("%v", err)
		return
	}
	n.FilterID = b.groupWeight(w, coarse)
	if fine == nil {
		n.OutputID = b.fuse()
		b.bound(b.node(n))
		return
	}
	shape := b.n.Out().Type.Shape
	first, second := b.temp(shape, b.float()), b.temp(shape, b.float())
	n.OutputID = first
	b.node(n)
	b.node(&xnnpack.XNNFullyConnected{Input1ID: x, FilterID: b.groupWeight(w, fine), BiasID: noValue, OutputID: second})
	b.bound(b.node(nodeAdd(xnnpack.XNNBinary{Input1ID: first, Input2ID: second, OutputID: b.fuse()})))
}

// channelWeight is a filter with a scale for each row, in 4 bits where that is asked for and they hold it. Rows of an odd
// number of those are written as bytes: the delegate reads them wrongly.
func (b *builder) channelWeight(w *quantWeight, small bool) uint32 {
	if small && w.bits == 4 && w.cols%2 == 0 {
		v := value{ir.Consts(w.rows, w.cols), xnnpack.XNNDatatypeQcint4, b.channelScales(w)}
		return b.declare(v, xnnpayload.InvalidID, 0, b.data("nibbles "+partition.WeightKey(w.data), w.nibbles))
	}
	return b.channelFilter(w, ir.Consts(w.rows, w.cols))
}

// channelFilter is a filter of int8 with a scale for each row, under the shape that its node wants.
func (b *builder) channelFilter(w *quantWeight, shape []sym.Expr) uint32 {
	d := w.data.Data
	v := value{shape, xnnpack.XNNDatatypeQcint8, b.channelScales(w)}
	return b.declare(v, xnnpayload.InvalidID, 0, b.data(partition.WeightKey(w.data), func() partition.Blob { return dataBlob(d) }))
}

func (b *builder) channelScales(w *quantWeight) *xnnpack.PerChannelQuant {
	q := &xnnpack.PerChannelQuant{Scale: []float32{}, NumScales: uint32(w.rows)}
	if w.scale != nil {
		d, key := shaped(w.scale, &form{sizes: []int64{w.rows}})
		q.ScaleBufferIdx = b.data("scale "+key, func() partition.Blob {
			if isHalf(w.scale.Value.Type) {
				return widened(d)
			}
			return dataBlob(d)
		})
	} else {
		fs := make([]float32, w.rows)
		for i := range fs {
			fs[i] = float32(w.uniform)
		}
		raw := memBlob(floatBytes(fs))
		q.ScaleBufferIdx = b.data("scale "+contentKey(raw), func() partition.Blob { return raw })
	}
	return q
}

func (b *builder) groupWeight(w *quantWeight, scales []uint16) uint32 {
	raw := make([]byte, 0, 2*len(scales))
	for _, s := range scales {
		raw = binary.LittleEndian.AppendUint16(raw, s)
	}
	q := &xnnpack.PerChannelGroupQuant{
		Scale: []float32{}, GroupSize: int32(w.group), NumScales: uint32(len(scales)),
		ScaleBufferIdx: b.data("scale "+contentKey(raw), func() partition.Blob { return memBlob(raw) }),
	}
	v := value{ir.Consts(w.rows, w.cols), xnnpack.XNNDatatypeQbint4, q}
	return b.declare(v, xnnpayload.InvalidID, 0, b.data("nibbles "+partition.WeightKey(w.data), w.nibbles))
}

// nibbles are the integers, plus 8, two to a byte, the first one low. They are packed while they are written.
func (w *quantWeight) nibbles() partition.Blob { return nibbleBlob{w} }

type nibbleBlob struct{ w *quantWeight }

func (b nibbleBlob) Size() int64 { return b.w.rows * b.w.cols / 2 }

func (b nibbleBlob) WriteTo(out io.Writer) (int64, error) {
	p := &nibblePacker{w: bufio.NewWriterSize(out, 1<<16)}
	if _, err := b.w.data.Data.WriteTo(p); err != nil {
		return p.n, fmt.Errorf("weight %q: %w", b.w.data.Target, err)
	}
	return p.n, p.w.Flush()
}

// nibblePacker packs the integers that are written to it, which are of an even number in all.
type nibblePacker struct {
	w    *bufio.Writer
	n    int64
	low  byte
	half bool
}

func (p *nibblePacker) Write(xs []byte) (int, error) {
	for i, b := range xs {
		x := int8(b)
		if x < -8 || x > 7 {
			return i, errors.New("a number outside of 4 bits")
		}
		if p.half = !p.half; p.half {
			p.low = byte(x + 8)
			continue
		}
		if err := p.w.WriteByte(p.low | byte(x+8)<<4); err != nil {
			return i, err
		}
		p.n++
	}
	return len(xs), nil
}

// splitScales gives the scales as bfloat16, and what they lack, likewise; nil where they lack nothing.
func (w *quantWeight) splitScales() (coarse, fine []uint16, err error) {
	fs, err := readFloats(w.scale.Data)
	if err != nil {
		return nil, nil, err
	}
	coarse, fine = make([]uint16, len(fs)), make([]uint16, len(fs))
	exact := true
	for i, f := range fs {
		coarse[i] = toBFloat16(f)
		rest := f - fromBFloat16(coarse[i])
		fine[i] = max(toBFloat16(rest), leastScale)
		exact = exact && rest == 0
	}
	if exact {
		fine = nil
	}
	return coarse, fine, nil
}

// manyWeights is the size of a matrix from which on a second product costs more than microseconds.
const manyWeights = 1 << 16

// roundScales gives the scales rounded to bfloat16.
func (w *quantWeight) roundScales() (scales, none []uint16, err error) {
	fs, err := readFloats(w.scale.Data)
	if err != nil {
		return nil, nil, err
	}
	scales = make([]uint16, len(fs))
	for i, f := range fs {
		bits := math.Float32bits(f)
		if up := bits + 0x7fff + bits>>16&1; up < math.Float32bits(float32(math.Inf(1))) {
			bits = up
		}
		scales[i] = uint16(bits >> 16)
	}
	return scales, nil, nil
}

// leastScale is the smallest scale that the delegate takes, as bfloat16: it stands for nothing, too.
const leastScale = 0x0080

// toBFloat16 cuts off: the rest keeps the sign of the scale, which the delegate wants positive.
func toBFloat16(f float32) uint16 { return uint16(math.Float32bits(f) >> 16) }

func fromBFloat16(x uint16) float32 { return math.Float32frombits(uint32(x) << 16) }

// dynamicInput is the chain that v ends, nil for other values.
func dynamicInput(v *ir.Value) *chain {
	if v.Def == nil {
		return nil
	}
	return dynamicChain(v.Def)
}

// chain is quantization and back with scales found when the program runs: for each row, or for all rows together.
type chain struct {
	x                            *ir.Value
	choose, quantize, dequantize *ir.Node
	together                     bool
}

// quantConv is a linear layer over rows that share a scale: the delegate has one for an image, so that the rows are the
// rows of one and the layer a convolution of one pixel. The stride along its width of one keeps the delegate from making a
// linear layer of it, for which it would find scales for each row.
func (b *builder) quantConv(x *ir.Value, w *quantWeight, bias *ir.Value) {
	lead := product(x.Type.Shape[:x.Type.Rank()-1])
	flat := b.reshaped(b.in(x), sym.Const(1), lead, sym.Const(1), sym.Const(w.cols))
	in := b.quantizedImage(flat)
	v := b.channelFilter(w, ir.Consts(w.rows, 1, 1, w.cols))
	n := xnnpack.XNNConv2d{
		KernelHeight: 1, KernelWidth: 1, SubsamplingHeight: 1, SubsamplingWidth: 2, DilationHeight: 1, DilationWidth: 1, Groups: 1,
		GroupInputChannels: uint32(w.cols), GroupOutputChannels: uint32(w.rows), Input1ID: in, FilterID: v, BiasID: noValue,
	}
	if bias != nil {
		n.BiasID = b.packedWeight(partition.Weight(bias), nil)
	}
	n.OutputID = b.temp([]sym.Expr{sym.Const(1), lead, sym.Const(1), sym.Const(w.rows)}, xnnpack.XNNDatatypeFp32)
	b.bound(b.node(&n))
	b.reshapeTo(n.OutputID, b.fuse())
}

// dynamicChain reads the chain that ends with d.
func dynamicChain(d *ir.Node) *chain {
	c := &chain{dequantize: d}
	var scales func(n *ir.Node) (s, z *ir.Value)
	third := func(n *ir.Node) (s, z *ir.Value) { return n.In(1), n.In(2) }
	affine := func(n *ir.Node) (s, z *ir.Value) {
		return n.ArgNamed("scale").Value(), n.ArgNamed("zero_point").Value()
	}
	var quantize, choose []ops.ID
	switch d.Op {
	case ops.QuantizedDecomposedDequantizePerTensorTensor:
		c.together = true
		scales, quantize = third, []ops.ID{ops.QuantizedDecomposedQuantizePerTensorTensor}
		choose = []ops.ID{ops.QuantizedDecomposedChooseQparamsTensor}
	case ops.QuantizedDecomposedDequantizePerTokenDefault:
		scales, quantize = third, []ops.ID{ops.QuantizedDecomposedQuantizePerTokenDefault}
		choose = []ops.ID{
			ops.QuantizedDecomposedChooseQparamsPerTokenAsymmetricDefault, ops.QuantizedDecomposedUnderChooseQparamsPerTokenAsymmetricImplDefault,
		}
	case ops.TorchaoDequantizeAffineDefault:
		scales, quantize = affine, []ops.ID{ops.TorchaoQuantizeAffineDefault}
		choose = []ops.ID{ops.TorchaoChooseQparamsAffineDefault}
	default:
		return nil
	}
	is := func(n *ir.Node, ids []ops.ID) bool {
		for _, id := range ids {
			if n != nil && n.Op == id {
				return true
			}
		}
		return false
	}
	if d.In(0) == nil {
		return nil
	}
	c.quantize = d.In(0).Def
	s, z := scales(d)
	if !is(c.quantize, quantize) || s == nil || z == nil || s.Def == nil {
		return nil
	}
	s2, z2 := scales(c.quantize)
	c.choose, c.x = s.Def, c.quantize.In(0)
	if !is(c.choose, choose) || z.Def != c.choose || s2 != s || z2 != z || s.Index != 0 || z.Index != 1 || c.choose.In(0) != c.x {
		return nil
	}
	t := c.x.Type
	if heldType(t) != "" || t.Rank() == 0 || d.Out().Type.DType != t.DType {
		return nil
	}
	for _, n := range []*ir.Node{c.choose, c.quantize, d} {
		for name, want := range map[string]int64{"quant_min": -128, "quant_max": 127} {
			if i := n.Info().ArgIndex(name); i >= 0 {
				if k, ok := n.Arg(i).Int(); !ok || k != want {
					return nil
				}
			}
		}
		for _, name := range []string{"dtype", "target_dtype", "input_dtype"} {
			if i := n.Info().ArgIndex(name); i >= 0 {
				if k, ok := n.Arg(i).DType(); !ok || k != ops.Int8 {
					return nil
				}
			}
		}
		if i := n.Info().ArgIndex("block_size"); i >= 0 && !wholeRows(n.Arg(i), t.Shape) {
			return nil
		}
		if how, ok := n.ArgNamed("mapping_type").Str(); ok && how != "ASYMMETRIC" {
			return nil
		}
	}
	return c
}

// wholeRows tells blocks that are rows of a tensor.
func wholeRows(a ir.Arg, shape []sym.Expr) bool {
	es, ok := a.ExprList()
	if !ok || len(es) != len(shape) {
		return false
	}
	for i, e := range es {
		if i < len(es)-1 && !e.IsConstValue(1) || i == len(es)-1 && !e.Equal(shape[i]) {
			return false
		}
	}
	return true
}

// dynamicPart is a node of quantization and back of what only linear layers read, which then quantize for themselves.
func dynamicPart(m *match) emit {
	if m.taken {
		return func(*builder) {}
	}
	ends := map[*ir.Node]bool{}
	var follow func(n *ir.Node, depth int) bool
	follow = func(n *ir.Node, depth int) bool {
		if dynamicChain(n) != nil {
			ends[n] = true
			return true
		}
		if depth == 0 {
			return false
		}
		for _, o := range n.Outs {
			if o.IsOutput() {
				return false
			}
			for _, u := range o.Users() {
				if u.IsReturn() || !follow(u, depth-1) {
					return false
				}
			}
		}
		return true
	}
	if !follow(m.n, 2) || len(ends) == 0 {
		return m.no("numbers quantized when the program runs, in a form that it has not")
	}
	for d := range ends {
		c := dynamicChain(d)
		if m.n != d && m.n != c.quantize && m.n != c.choose {
			return m.no("numbers quantized when the program runs, in a form that it has not")
		}
		if d.Out().IsOutput() || d.Out().NumUses() == 0 {
			return m.no("numbers quantized and back that are given out")
		}
		for _, u := range d.Out().Users() {
			if !takesDynamic(u, d.Out()) {
				return m.no("numbers quantized when the program runs that %s reads", u.OpName())
			}
		}
	}
	return func(*builder) {}
}

// takesDynamic tells linear layers over v that quantize for themselves.
func takesDynamic(n *ir.Node, v *ir.Value) bool {
	if convRules[n.Op] != nil {
		c, ok := readConv(&match{n: n})
		return ok && c.x == v && n.In(1) != v && n.In(2) != v && c.dynamic() != nil
	}
	if !readsDynamic(n, v) {
		return false
	}
	// The weight comes along only if all who read it take it so.
	_, why := plan(n.In(1).Def)
	return why == nil
}

// allReadDynamic tells weights that only such layers read.
func allReadDynamic(w *ir.Value) bool {
	for _, u := range w.Users() {
		if u.IsReturn() || !readsDynamic(u, u.In(0)) || u.In(1) != w {
			return false
		}
	}
	return true
}

// readsDynamic tells linear layers over v that could quantize for themselves.
func readsDynamic(n *ir.Node, v *ir.Value) bool {
	if n.Op != ops.AtenLinearDefault || n.In(0) != v || n.In(1) == v || n.In(2) == v {
		return false
	}
	w, ok := readWeight(n.In(1))
	if !ok || !w.forDynamic() || n.In(2) != nil && !isConst(n.In(2)) || heldType(n.Out().Type) != "" || n.Out().Type.DType != v.Type.DType {
		return false
	}
	if c := dynamicInput(v); c == nil || c.together && (!w.perRow() || symbolic(v.Type.Shape) > 1) {
		return false
	}
	return true
}

// dequantizeWeight is part of the linear layers that read it.
func dequantizeWeight(m *match) emit {
	if m.taken {
		return func(*builder) {}
	}
	v := m.n.Out()
	w, ok := readWeight(v)
	if !ok {
		return m.no("quantized weights in a form that it has not")
	}
	if v.IsOutput() || v.NumUses() == 0 {
		return m.no("a weight that is given out")
	}
	if isHalf(v.Type) && !allReadDynamic(v) {
		return m.no("quantized weights of %s beside numbers", v.Type.DType)
	}
	for _, u := range v.Users() {
		if u.Op != ops.AtenLinearDefault || u.In(1) != v || u.In(0) == v || u.In(2) != nil && !isConst(u.In(2)) || heldType(u.Out().Type) != "" ||
			heldType(u.In(0).Type) != "" {
			return m.no("quantized weights that %s reads", u.OpName())
		}
		if !w.forFloats() && (dynamicInput(u.In(0)) == nil || !w.forDynamic()) {
			return m.no("quantized weights with scales for groups and floats beside them")
		}
	}
	return func(*builder) {}
}

func dequantizeAffine(m *match) emit {
	if partition.Weight(m.n.In(0)) != nil {
		return dequantizeWeight(m)
	}
	return dynamicPart(m)
}
