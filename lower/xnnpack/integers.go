package xnnpack

import (
	"encoding/binary"
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

// A model quantized beforehand says of each tensor that it is rounded to int8 and taken as numbers again. Between the two
// the delegate need not leave the integers: what only moves data moves int8 (moveIntegers), and an operation whose operands
// come from int8 and whose result goes there is computed on them (integers). Everything else is computed on numbers, as the
// model says, with conversions around it.

//
// Sums of products on int8 are a step off in one of some hundred results: the delegate holds the bias as an integer. Regions
// that multiply little, where both ways take microseconds, therefore compute them on numbers, which gives what the model
// says.

// fewProducts is the number of multiplications below which a region computes sums of products on numbers.
const fewProducts = 1 << 16

// intScales are scales of int8 values.
type intScales map[*ir.Value]scale

// moveIntegers rewrites a region so that moves between numbers that int8 stands for move the int8. It gives the scales of
// all int8 values.
func moveIntegers(g *ir.Graph) intScales {
	scales := intScales{}
	learn := func(v *ir.Value) {
		if v.Type.IsTensor() && v.Type.DType == ops.Int8 {
			if s, ok := tensorScale(v); ok {
				scales[v] = s
			}
		}
	}
	for _, in := range g.Inputs {
		learn(in.Value)
	}
	for n := range g.Nodes() {
		for _, o := range n.Outs {
			learn(o)
		}
	}
	for n := g.First(); n != nil && !n.IsReturn(); {
		next := n.Next()
		switch {
		case n.Op == ops.QuantizedDecomposedQuantizePerTensorDefault:
			if x, s, ok := scales.behind(n.In(0)); ok && s == scales[n.Out()] {
				g.Replace(n, x)
			}
		case movesIntegers(n, scales):
			scales.move(g, n)
		}
		n = next
	}
	for n := range g.Backward() {
		if isDequantize(n) && n.Out().NumUses() == 0 {
			g.Erase(n)
		}
	}
	return scales
}

// behind is the int8 value whose numbers v holds.
func (s intScales) behind(v *ir.Value) (*ir.Value, scale, bool) {
	if v == nil || v.Def == nil || !isDequantize(v.Def) || v.Type.DType != ops.Float32 {
		return nil, scale{}, false
	}
	x := v.Def.In(0)
	q, ok := s[x]
	return x, q, ok && !isConst(x)
}

// shared is the scale that all tensors n reads are quantized with.
func (s intScales) shared(n *ir.Node) (scale, bool) {
	var q scale
	some := false
	for v := range n.Inputs() {
		_, t, ok := s.behind(v)
		if !ok || some && t != q {
			return q, false
		}
		q, some = t, true
	}
	return q, some
}

// movesIntegers tells nodes that give the same when they are done on the int8 behind their operands.
func movesIntegers(n *ir.Node, scales intScales) bool {
	s, ok := scales.shared(n)
	if !ok {
		return false
	}
	switch n.Op {
	case ops.AtenConstantPadNdDefault:
		value, ok := n.Arg(2).Float()
		return n.Arg(2).IsNone() || ok && value == 0
	case ops.AtenMaxPool1dDefault, ops.AtenMaxPool2dDefault, ops.AtenMaxPool2dWithIndicesDefault:
		return true
	}
	if lo, hi, ok := bounds(n); ok {
		// A bound between two steps is one of them only after the result is rounded.
		if n.Out().NumUses() == 0 || n.Out().IsOutput() || s.round(lo) >= s.round(hi) {
			return false
		}
		for _, u := range n.Out().Users() {
			if u.Op != ops.QuantizedDecomposedQuantizePerTensorDefault || scales[u.Out()] != s {
				return false
			}
		}
		return true
	}
	return moves[n.Op]
}

// round is the step of a number.
func (s scale) round(f float64) float64 {
	return min(max(math.RoundToEven(f/s.scale)+float64(s.zero), -128), 127)
}

// move puts n on integers, with nodes behind it that give the numbers.
func (s intScales) move(g *ir.Graph, n *ir.Node) {
	var dequantize *ir.Node
	q, _ := s.shared(n)
	args := make([]ir.Arg, n.NumArgs())
	for i, a := range n.Args() {
		args[i] = a.Map(func(v *ir.Value) *ir.Value {
			dequantize = v.Def
			return v.Def.In(0)
		})
	}
	types := make([]ir.Type, len(n.Outs))
	for i, o := range n.Outs {
		types[i] = o.Type
		if i == 0 || o.Type.DType == ops.Float32 {
			types[i].DType = ops.Int8
		}
	}
	c := g.NewNode(n, n.Op, args, types, n.Origin)
	c.Target, c.ArgNames, c.Attr = n.Target, n.ArgNames, n.Attr
	for i, o := range n.Outs {
		c.Outs[i].Name = o.Name
		if types[i].DType != ops.Int8 {
			continue
		}
		s[c.Outs[i]] = q
		as := slices.Clone(dequantize.Args())
		as[0] = ir.Ref(c.Outs[i])
		d := g.NewNode(n, dequantize.Op, as, []ir.Type{o.Type}, dequantize.Origin)
		d.Target, d.ArgNames = dequantize.Target, dequantize.ArgNames
		o.ReplaceAllUses(d.Out())
	}
	g.Erase(n)
}

// products counts the multiplications of convolutions and linear layers that read what int8 stands for, at the sizes of the
// export.
func (s intScales) products(g *ir.Graph) int64 {
	total := int64(0)
	size := func(e sym.Expr) int64 {
		k, err := sym.Eval(e, g.Root().Syms)
		if err != nil {
			return 1
		}
		return k
	}
	for n := range g.Nodes() {
		if convRules[n.Op] == nil && n.Op != ops.AtenLinearDefault {
			continue
		}
		if _, _, ok := s.behind(n.In(0)); !ok || n.In(1) == nil || n.In(1).Type.Rank() == 0 {
			continue
		}
		// Each element of the result sums as many products as an output channel has weights; transposed, each operand goes
		// into as many as its channel has.
		each, w := n.Out().Type, n.In(1).Type
		if transposes(n) {
			each = n.In(0).Type
		}
		total += size(each.Numel()) * size(w.Numel()) / max(size(w.Shape[0]), 1)
	}
	return total
}

// integerOp is an operation on int8.
type integerOp struct {
	b *builder
	// x are the operands that stand first, from their scales.
	x    []*ir.Value
	from []scale
	// out is the int8 result.
	out *ir.Value
	to  scale
	// act clamps the result before quantize rounds it; it may be nil.
	act, quantize *ir.Node
}

// integers reads the node at hand as an operation on int8 from the first so many operands; nil where one is no such, or where
// somebody wants the result as numbers.
func (b *builder) integers(operands ...*ir.Value) *integerOp {
	op := &integerOp{b: b}
	for _, v := range operands {
		x, s, ok := b.scales.behind(v)
		if !ok {
			return nil
		}
		op.x, op.from = append(op.x, x), append(op.from, s)
	}
	if !op.rounds(b.n.Out()) {
		return nil
	}
	return op
}

// rounds finds the quantization that alone reads v, or the activation that alone does.
func (op *integerOp) rounds(v *ir.Value) bool {
	if v.Type.DType != ops.Float32 {
		return false
	}
	lo, hi := math.Inf(-1), math.Inf(1)
	if op.act = op.b.activation(op.b.n); op.act != nil {
		v = op.act.Out()
		lo, hi, _ = bounds(op.act)
	}
	if v.NumUses() != 1 || v.IsOutput() {
		return false
	}
	q := v.Users()[0]
	if q.Graph() != op.b.g || q.Op != ops.QuantizedDecomposedQuantizePerTensorDefault || q.In(0) != v {
		return false
	}
	op.quantize, op.out = q, q.Out()
	var ok bool
	op.to, ok = op.b.scales[op.out]
	return ok && op.to.round(lo) < op.to.round(hi)
}

// done marks what the operation does besides its own node.
func (op *integerOp) done() {
	if op.act != nil {
		op.b.fused[op.act] = true
	}
	op.b.fused[op.quantize] = true
}

// bound gives x the bounds of the activation.
func (op *integerOp) bound(x *xnnpack.XNode) {
	if op.act != nil {
		lo, hi, _ := bounds(op.act)
		x.OutputMinMax = &xnnpack.OutputMinMax{OutputMin: float32(lo), OutputMax: float32(hi)}
	}
}

// intFilter is a filter of int8 that stands for numbers with a scale for all, or one for each channel of the output.
type intFilter struct {
	data   *ir.Data // as the delegate wants it to lie
	key    string
	scales []float32 // one, or one a channel
	// channel is the dimension of data with the output's channels.
	channel int
	bias    *ir.Input
}

// filter gives the ids of filter and bias, false where the delegate could not compute so: it holds the bias as steps of the
// product of the scales of input and filter, and scales sums by what that product is of the output's.
func (op *integerOp) filter(f *intFilter) (filter, bias uint32, ok bool) {
	b := op.b
	products := make([]float32, len(f.scales))
	for i, s := range f.scales {
		products[i] = s * float32(op.from[0].scale)
		if r := float64(products[i]) / op.to.scale; !(products[i] >= 0x1p-126 && r >= 0x1p-32 && r < 256) {
			return 0, 0, false
		}
	}
	var steps []int32
	if f.bias != nil {
		fs, err := readFloats(f.bias.Data)
		if err != nil {
			b.failf("%v", err)
			return 0, 0, false
		}
		steps = make([]int32, len(fs))
		for i, x := range fs {
			k := math.RoundToEven(float64(x) / float64(products[i%len(products)]))
			if !(math.Abs(k) <= 1<<30) {
				return 0, 0, false
			}
			steps[i] = int32(k)
		}
	}
	quant := func(scales []float32, dim int) xnnpack.XNNQuantParams {
		if len(scales) == 1 {
			return &xnnpack.PerTensorQuant{Scale: scales[0]}
		}
		raw := memBlob(floatBytes(scales))
		return &xnnpack.PerChannelQuant{
			Scale: []float32{}, ChannelDim: int32(dim), NumScales: uint32(len(scales)),
			ScaleBufferIdx: b.data("scale "+contentKey(raw), func() partition.Blob { return raw }),
		}
	}
	kind, biasKind := xnnpack.XNNDatatypeQint8, xnnpack.XNNDatatypeQint32
	if len(f.scales) > 1 {
		kind, biasKind = xnnpack.XNNDatatypeQcint8, xnnpack.XNNDatatypeQcint32
	}
	d := f.data
	filter = b.declare(value{ir.Consts(d.Sizes...), kind, quant(f.scales, f.channel)}, xnnpayload.InvalidID, 0,
		b.data(f.key, func() partition.Blob { return dataBlob(d) }))
	bias = noValue
	if f.bias != nil {
		raw := make(memBlob, 0, 4*len(steps))
		for _, k := range steps {
			raw = binary.LittleEndian.AppendUint32(raw, uint32(k))
		}
		bias = b.declare(value{ir.Consts(int64(len(steps))), biasKind, quant(products, 0)}, xnnpayload.InvalidID, 0,
			b.data("bias "+contentKey(raw), func() partition.Blob { return raw }))
	}
	return filter, bias, true
}

// intWeight reads a constant that int8 stands for, with zero points of 0: the int8 under another form, and the scales, one or
// one for each index of an axis of the constant.
func intWeight(in *ir.Input) (w *dequantized, scales []float32, ok bool) {
	w, ok = in.Data.Storage.(*dequantized)
	if !ok || !in.Data.Contiguous() || !slices.Equal(in.Data.Sizes, w.data.Data.Sizes) {
		return nil, nil, false
	}
	if w.scale == nil {
		return w, []float32{float32(w.uniform.scale)}, w.uniform.zero == 0 && w.uniform.scale > 0
	}
	if w.zero != nil && !allZero(w.zero.Data) || !usable(w.scale.Data) {
		return nil, nil, false
	}
	scales, err := readFloats(w.scale.Data)
	return w, scales, err == nil
}

// intConv reads a convolution over int8 and gives its filter and bias; nil where it is none.
func (b *builder) intConv(c *convolution, filter, bias *uint32) *integerOp {
	op := b.integers(c.x)
	if op == nil || b.exact {
		return nil
	}
	f, ok := c.intFilter()
	if !ok {
		return nil
	}
	if *filter, *bias, ok = op.filter(f); !ok {
		return nil
	}
	op.done()
	return op
}

func (c *convolution) intFilter() (*intFilter, bool) {
	w, scales, ok := intWeight(c.w)
	if !ok {
		return nil, false
	}
	out := &intFilter{scales: scales}
	switch {
	case len(scales) == 1 && w.scale == nil:
	case c.transposed && w.axis == 1 && c.groups == 1, !c.transposed && w.axis == 0:
		if int64(len(scales)) != c.out {
			return nil, false
		}
	default:
		return nil, false
	}
	f, channel := c.form()
	out.channel = channel
	if c.bias != nil {
		out.bias = partition.Weight(c.bias)
	}
	out.data, out.key = reshapedData(w.data.Data, "int8 "+partition.WeightKey(c.w), f)
	return out, true
}

// intLinear writes a linear layer over int8; false where it is none.
func (b *builder) intLinear(x *ir.Value, w *quantWeight, bias *ir.Value) bool {
	op := b.integers(x)
	if op == nil || b.exact || !w.perRow() {
		return false
	}
	f := &intFilter{data: w.data.Data, key: partition.WeightKey(w.data), scales: []float32{float32(w.uniform)}}
	if w.scale != nil {
		var err error
		if f.scales, err = readFloats(w.scale.Data); err != nil {
			b.failf("%v", err)
			return false
		}
	}
	if bias != nil {
		f.bias = partition.Weight(bias)
	}
	n := &xnnpack.XNNFullyConnected{}
	var ok bool
	if n.FilterID, n.BiasID, ok = op.filter(f); !ok {
		return false
	}
	op.done()
	n.Input1ID = b.in(op.x[0])
	n.OutputID = b.outOf(op.out)
	op.bound(b.node(n))
	return true
}

// intElementwise writes a sum, a difference or a product of int8; false where it is none.
func (b *builder) intElementwise(f binaryNode, x, y ir.Arg, alpha float64) bool {
	ratio, least := sumRatios, 0x1p-10
	switch f(xnnpack.XNNBinary{}).(type) {
	case *xnnpack.XNNAdd, *xnnpack.XNNSubtract:
	case *xnnpack.XNNMultiply:
		ratio, least = productRatio, 0x1p-16
	default:
		return false
	}
	if alpha != 1 {
		return false
	}
	op := &integerOp{b: b}
	rank := b.n.Out().Type.Rank()
	var read [2]func(nhwc bool) uint32
	var votes []*ir.Value
	for i, a := range []ir.Arg{x, y} {
		v := a.Value()
		if v == nil {
			return false
		}
		if q, s, ok := b.scales.behind(v); ok {
			op.from = append(op.from, s)
			votes = append(votes, q)
			read[i] = func(nhwc bool) uint32 {
				if nhwc && q.Type.Rank() == rank {
					return b.inNHWC(q)
				}
				return b.in(q)
			}
			continue
		}
		in := partition.Weight(v)
		if in == nil {
			return false
		}
		w, ok := in.Data.Storage.(*dequantized)
		if !ok || w.scale != nil || !in.Data.Contiguous() || !slices.Equal(in.Data.Sizes, w.data.Data.Sizes) || w.uniform.zero < -128 || w.uniform.zero > 127 {
			return false
		}
		op.from = append(op.from, w.uniform)
		read[i] = func(nhwc bool) uint32 { return b.intConstant(in, w, rank, nhwc) }
	}
	if len(votes) == 0 || !op.rounds(b.n.Out()) {
		return false
	}
	for _, r := range ratio(op.from[0], op.from[1], op.to) {
		if !(r >= least && r < 256) {
			return false
		}
	}
	nhwc := channelsIn[rank] != nil && b.prefersNHWC(votes...)
	for _, v := range votes {
		nhwc = nhwc && (v.Type.Rank() == rank || v.Type.Rank() == 0)
	}
	op.done()
	n := xnnpack.XNNBinary{Input1ID: read[0](nhwc), Input2ID: read[1](nhwc)}
	if nhwc {
		n.OutputID = b.outNHWC(op.out)
	} else {
		n.OutputID = b.outOf(op.out)
	}
	op.bound(b.node(f(n)))
	return true
}

// The delegate takes these ratios of scales within bounds.
func sumRatios(x, y, to scale) []float64 { return []float64{x.scale / to.scale, y.scale / to.scale} }

func productRatio(x, y, to scale) []float64 { return []float64{x.scale * y.scale / to.scale} }

// intConstant is a constant of int8 for an operation on rank dimensions.
func (b *builder) intConstant(in *ir.Input, w *dequantized, rank int, nhwc bool) uint32 {
	f := &form{}
	sizes := in.Data.Sizes
	if nhwc && len(sizes) > 0 {
		sizes = append(slices.Repeat([]int64{1}, rank-len(sizes)), sizes...)
		f.split, f.perm = sizes, channelsIn[rank]
	}
	d, key := reshapedData(w.data.Data, "int8 "+partition.WeightKey(in), f)
	q := &xnnpack.PerTensorQuant{Scale: float32(w.uniform.scale), ZeroPoint: int32(w.uniform.zero)}
	name := fmt.Sprintf("%s/%v", key, *q)
	if id, ok := b.consts[name]; ok {
		return id
	}
	id := b.declare(value{ir.Consts(d.Sizes...), xnnpack.XNNDatatypeQint8, q}, xnnpayload.InvalidID, 0, b.data(key, func() partition.Blob { return dataBlob(d) }))
	b.consts[name] = id
	return id
}

// intMean writes a mean over the two spatial dimensions of int8; false where it is none.
func (b *builder) intMean(keep bool) bool {
	op := b.integers(b.n.In(0))
	if op == nil || op.act != nil {
		return false
	}
	if r := op.from[0].scale / op.to.scale; !(r >= 0x1p-8 && r < 256) {
		return false
	}
	op.done()
	n := xnnpack.XNNUnary{InputID: b.inNHWC(op.x[0])}
	if keep {
		n.Flags, n.OutputID = flagKeepDims, b.outNHWC(op.out)
	} else {
		n.OutputID = b.outOf(op.out)
	}
	b.node(nodePool(n))
	return true
}
