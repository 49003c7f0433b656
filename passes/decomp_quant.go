package passes

import (
	"math"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// Quantization written out in arithmetic. The order of operations, and the type that each is done in, is that of the
// operators' definitions, since a rounding that falls the other way is an error of a whole step.

// blocks is how a tensor is divided: the shape that has each divided dimension in two, which dimensions of it lie inside
// a block, and the number of blocks along each dimension of the tensor.
type blocks struct {
	shape  []sym.Expr
	inside []int
	grid   []sym.Expr
}

func (d *Decomp) blocksOf(x *ir.Value, a ir.Arg) blocks {
	sizes, ok := a.ExprList()
	if !ok || len(sizes) != x.Type.Rank() {
		panic(bail{})
	}
	var b blocks
	for i, n := range x.Type.Shape {
		k, constant := sizes[i].IsConst()
		switch {
		case constant && k == -1 || sizes[i].Equal(n):
			b.inside = append(b.inside, len(b.shape))
			b.shape, b.grid = append(b.shape, n), append(b.grid, one1)
		case constant && k == 1:
			b.shape, b.grid = append(b.shape, n), append(b.grid, n)
		default:
			g := sym.FloorDiv(n, sizes[i])
			b.inside = append(b.inside, len(b.shape)+1)
			b.shape, b.grid = append(b.shape, g, sizes[i]), append(b.grid, g)
		}
	}
	return b
}

// spread gives a parameter that each block has one of the shape that broadcasts over the blocks.
func (d *Decomp) spread(p *ir.Value, b blocks) *ir.Value {
	shape := append([]sym.Expr(nil), b.shape...)
	for _, i := range b.inside {
		shape[i] = one1
	}
	return d.view(p, shape...)
}

func (d *Decomp) round(x *ir.Value) *ir.Value { return d.v(op.AtenRoundDefault(d.Builder, x)) }

// present tells whether an optional tensor is there with elements.
func present(a ir.Arg) *ir.Value {
	v := a.Value()
	if v == nil || !v.Type.IsTensor() {
		return nil
	}
	if n, ok := v.Type.Numel().IsConst(); ok && n == 0 {
		return nil
	}
	return v
}

// qrange is quant_min and quant_max, by default the range of the integer type.
func (d *Decomp) qrange(t ir.DType) (lo, hi float64) {
	switch {
	case t.IsInt() && t.IsSigned():
		hi = math.Ldexp(1, int(8*t.Size()-1)) - 1
		lo = -hi - 1
	case t.IsInt():
		hi = math.Ldexp(1, int(8*t.Size())) - 1
	case d.named("quant_min").IsNone() || d.named("quant_max").IsNone():
		panic(bail{})
	}
	return floatArg(d.named("quant_min"), lo), floatArg(d.named("quant_max"), hi)
}

// number is a bound as Python has it: an integer where it is one.
func number(f float64) any {
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return int64(f)
	}
	return f
}

func (d *Decomp) dtypeArg(name string, none ir.DType) ir.DType {
	if t, ok := d.named(name).DType(); ok {
		return t
	}
	return none
}

// like gives x the shape of the node's result i.
func (d *Decomp) like(x *ir.Value, i int) *ir.Value {
	return d.view(x, d.N.Outs[i].Type.Shape...)
}

func decompQuantizeAffine(d *Decomp) []*ir.Value {
	x, b := d.in(0), blocks{}
	b = d.blocksOf(x, d.N.Arg(1))
	lo, hi := d.qrange(d.dtypeArg("output_dtype", ops.Int8))
	q := d.round(d.mul(d.view(x, b.shape...), d.div(1.0, d.spread(d.in(2), b))))
	if z := present(d.N.Arg(3)); z != nil {
		q = d.add(q, d.spread(z, b))
	}
	return d.back(d.like(d.clamp(q, number(lo), number(hi)), 0))
}

func decompDequantizeAffine(d *Decomp) []*ir.Value {
	x := d.in(0)
	b := d.blocksOf(x, d.N.Arg(1))
	t := d.dtypeArg("output_dtype", ops.Float32)
	v := d.cast(d.view(x, b.shape...), t)
	if z := present(d.N.Arg(3)); z != nil {
		v = d.sub(v, d.cast(d.spread(z, b), t))
	}
	return d.back(d.like(d.mul(v, d.spread(d.in(2), b)), 0))
}

func decompChooseQparamsAffine(d *Decomp) []*ir.Value {
	x := d.in(0)
	kind, _ := d.N.Arg(1).Str()
	b := d.blocksOf(x, d.N.Arg(2))
	lo, hi := d.qrange(d.dtypeArg("target_dtype", ops.Int8))
	smallest := map[ir.DType]float64{ops.Float16: 0x1p-14, ops.Float64: 0x1p-1022}[x.Type.DType]
	if smallest == 0 {
		smallest = 0x1p-126
	}
	eps := floatArg(d.named("eps"), smallest)
	v := d.view(x, b.shape...)
	low, high := v, v
	if len(b.inside) > 0 {
		low, high = d.amin(v, true, b.inside...), d.amax(v, true, b.inside...)
	}
	low, high = d.min(low, 0), d.max(high, 0)
	var scale, zero *ir.Value
	zt := x.Type.DType
	switch kind {
	case "SYMMETRIC":
		scale = d.max(d.div(d.max(d.neg(low), high), (hi-lo)/2), eps)
	case "SYMMETRIC_NO_CLIPPING_ERR":
		scale = d.max(d.max(d.div(low, lo), d.div(high, hi)), eps)
	case "ASYMMETRIC":
		scale = d.max(d.div(d.sub(high, low), hi-lo), eps)
		zero = d.clamp(d.sub(number(lo), d.round(d.div(low, scale))), number(lo), number(hi))
		zt = ops.Int32
	default:
		return nil
	}
	scale = d.cast(d.like(scale, 0), d.dtypeArg("scale_dtype", x.Type.DType))
	zt = d.dtypeArg("zero_point_dtype", zt)
	if zero == nil {
		zero = d.full(number(math.Trunc((hi+lo+1)/2)), zt, d.N.Outs[1].Type.Shape...)
	} else {
		zero = d.cast(d.like(zero, 1), zt)
	}
	return []*ir.Value{scale, zero}
}

// quantize rounds x/scale + zero into the node's range. early adds the zero point before rounding, as the per-token and
// per-group operators do.
func (d *Decomp) quantize(x, inverse, zero any, early bool) *ir.Value {
	q := d.mul(x, inverse)
	if early {
		q = d.round(d.add(q, zero))
	} else {
		q = d.add(d.round(q), zero)
	}
	return d.clamp(q, d.named("quant_min"), d.named("quant_max"))
}

func decompQuantizePerTensor(d *Decomp) []*ir.Value {
	x := d.opmath(d.in(0))
	if !constantNumber(d.named("quant_min")) || !constantNumber(d.named("quant_max")) {
		return nil
	}
	var inverse, zero any = nil, d.N.Arg(2)
	if s := d.N.Arg(1); isTensor(s) {
		// The scale becomes a Python float and its inverse is taken in double precision.
		inverse = d.cast(d.div(1.0, d.cast(d.flat(s.Value()), ops.Float64)), ops.Float32)
		zero = d.flat(d.N.Arg(2).Value())
	} else if f, ok := s.Float(); ok {
		inverse = 1 / f
	} else {
		return nil
	}
	return d.back(d.like(d.quantize(x, inverse, zero, false), 0))
}

func constantNumber(a ir.Arg) bool { _, ok := a.Float(); return ok }

// flat is a tensor of one element without dimensions.
func (d *Decomp) flat(x *ir.Value) *ir.Value { return d.view(x) }

func decompDequantizePerTensor(d *Decomp) []*ir.Value {
	t := d.N.Out().Type.DType
	x := d.cast(d.in(0), t)
	if s := d.N.Arg(1); isTensor(s) {
		zero := d.flat(d.N.Arg(2).Value())
		return d.back(d.mul(d.sub(x, d.cast(zero, t)), d.cast(d.flat(s.Value()), t)))
	}
	return d.back(d.mul(d.sub(x, d.N.Arg(2)), d.N.Arg(1)))
}

// channel gives a parameter a channel the shape that broadcasts over x.
func (d *Decomp) channel(p, x *ir.Value, axis int) *ir.Value {
	shape := make([]sym.Expr, x.Type.Rank())
	for i := range shape {
		shape[i] = one1
	}
	shape[axis] = x.Type.Shape[axis]
	return d.view(p, shape...)
}

func decompQuantizePerChannel(d *Decomp) []*ir.Value {
	x := d.opmath(d.in(0))
	axis := d.dim(3, x)
	return d.back(d.quantize(x, d.div(1.0, d.channel(d.in(1), x, axis)), d.channel(d.in(2), x, axis), false))
}

func decompDequantizePerChannel(d *Decomp) []*ir.Value {
	x := d.in(0)
	axis := d.dim(3, x)
	v := d.cast(x, ops.Float32)
	if z := present(d.N.Arg(2)); z != nil {
		v = d.sub(v, d.cast(d.channel(z, x, axis), ops.Float32))
	}
	return d.back(d.mul(v, d.channel(d.in(1), x, axis)))
}

func decompQuantizePerToken(d *Decomp) []*ir.Value {
	return d.back(d.quantize(d.in(0), d.div(1.0, d.in(1)), d.in(2), true))
}

func decompDequantizePerToken(d *Decomp) []*ir.Value {
	v := d.sub(d.cast(d.in(0), ops.Float32), d.cast(d.in(2), ops.Float32))
	return d.back(d.mul(v, d.in(1)))
}

// groupRows sees a matrix as rows of one group each; a group longer than a row that has one scale is the row.
func (d *Decomp) groupRows(x, scales *ir.Value) *ir.Value {
	size, ok := d.named("group_size").Int()
	if !ok || x.Type.Rank() != 2 {
		panic(bail{})
	}
	g := sym.Const(size)
	if cols, ok := x.Type.Shape[1].IsConst(); ok && size > cols {
		g = x.Type.Shape[1]
	}
	return d.view(x, sym.FloorDiv(x.Type.Numel(), g), g)
}

// column is a parameter a group, one a row.
func (d *Decomp) column(p *ir.Value) *ir.Value { return d.view(p, p.Type.Numel(), one1) }

func decompQuantizePerGroup(d *Decomp) []*ir.Value {
	x, s := d.in(0), d.in(1)
	q := d.quantize(d.groupRows(x, s), d.div(1.0, d.column(s)), d.column(d.in(2)), true)
	return d.back(d.like(q, 0))
}

func decompDequantizePerGroup(d *Decomp) []*ir.Value {
	x, s := d.in(0), d.in(1)
	v := d.cast(d.groupRows(x, s), ops.Float32)
	if z := present(d.N.Arg(2)); z != nil {
		v = d.sub(v, d.cast(d.column(z), ops.Float32))
	}
	return d.back(d.like(d.mul(v, d.column(s)), 0))
}

func decompChooseQparams(d *Decomp) []*ir.Value {
	x := d.in(0)
	all := allDims(x.Type.Rank())
	lo, hi := d.min(d.amin(x, false, all...), 0), d.max(d.amax(x, false, all...), 0)
	qmin, qmax := floatArg(d.N.Arg(1), 0), floatArg(d.N.Arg(2), 0)
	scale := d.max(d.div(d.sub(hi, lo), qmax-qmin), d.full(floatArg(d.N.Arg(3), 0), ops.Float32, one1))
	zero := d.clamp(d.sub(qmin, d.round(d.div(lo, scale))), qmin, qmax)
	return []*ir.Value{d.cast(d.like(scale, 0), ops.Float64), d.cast(d.like(zero, 1), ops.Int64)}
}

func decompChooseQparamsSymmetric(d *Decomp) []*ir.Value {
	x := d.in(0)
	all := allDims(x.Type.Rank())
	lo, hi := d.min(d.amin(x, false, all...), 0), d.max(d.amax(x, false, all...), 0)
	qmin, qmax := floatArg(d.N.Arg(1), 0), floatArg(d.N.Arg(2), 0)
	scale := d.max(d.div(d.max(d.neg(lo), hi), (qmax-qmin)/2), d.full(floatArg(d.N.Arg(3), 0), ops.Float32, one1))
	zero := 0
	if t, _ := d.N.Arg(4).DType(); t == ops.Uint8 {
		zero = 128
	}
	return []*ir.Value{d.cast(d.like(scale, 0), ops.Float64), d.full(zero, ops.Int64, d.N.Outs[1].Type.Shape...)}
}

func decompChooseQparamsPerToken(d *Decomp) []*ir.Value {
	m := d.amax(d.abs(d.in(0)), true, d.in(0).Type.Rank()-1)
	if m.Type.DType == ops.Float16 {
		m = d.cast(m, ops.Float32)
	}
	s := d.div(d.max(m, 1e-5), 127)
	return []*ir.Value{s, d.full(0, s.Type.DType, s.Type.Shape...)}
}

func decompChooseQparamsPerTokenAsymmetric(d *Decomp) []*ir.Value {
	x := d.in(0)
	last := x.Type.Rank() - 1
	lo, hi := d.min(d.amin(x, true, last), 0), d.max(d.amax(x, true, last), 0)
	scale := d.max(d.div(d.sub(hi, lo), 255.0), 0x1p-23)
	dlo, dhi := d.div(lo, scale), d.div(hi, scale)
	err := d.add(d.add(dlo, -128), d.add(dhi, 127))
	z := d.where(d.gt(err, 0), d.sub(-128, dlo), d.sub(127, dhi))
	z = d.round(d.clamp(z, -128, 127))
	return []*ir.Value{d.cast(scale, ops.Float64), d.cast(z, ops.Int64)}
}

func decompFakeQuantPerChannel(d *Decomp) []*ir.Value {
	x := d.in(0)
	axis := d.dim(3, x)
	s := d.channel(d.cast(d.in(1), ops.Float32), x, axis)
	z := d.channel(d.cast(d.in(2), ops.Int32), x, axis)
	q := d.quantize(x, d.div(1.0, s), z, false)
	return d.back(d.mul(d.sub(q, z), s))
}

func decompConvertElementType(d *Decomp) []*ir.Value { return d.back(d.in(0)) }

func decompQuantizedAdd(d *Decomp) []*ir.Value {
	deq := func(x *ir.Value, scale, zero ir.Arg) *ir.Value {
		return d.mul(d.sub(d.cast(x, ops.Float32), zero), scale)
	}
	s := deq(d.in(0), d.N.Arg(1), d.N.Arg(2))
	if b := d.named("b"); isTensor(b) {
		s = d.add(s, deq(b.Value(), d.named("b_scale"), d.named("b_zero_point")))
	} else {
		s = d.add(s, b)
	}
	if d.N.Op == ops.QuantizedDecomposedAddReluDefault {
		s = d.max(s, 0)
	}
	scale, ok := d.named("out_scale").Float()
	if !ok {
		return nil
	}
	q := d.clamp(d.add(d.round(d.mul(s, 1/scale)), d.named("out_zero_point")), d.named("out_quant_min"), d.named("out_quant_max"))
	return d.back(q)
}

// dequantizeRows makes numbers of integer rows with a scale, and maybe a zero point, for each group of a row.
func (d *Decomp) dequantizeRows(w, scales, zeros *ir.Value, t ir.DType) *ir.Value {
	r := w.Type.Rank()
	cols := w.Type.Shape[r-1]
	groups := one1
	if scales.Type.Rank() == r {
		groups = scales.Type.Shape[r-1]
	}
	rows := append([]sym.Expr(nil), w.Type.Shape[:r-1]...)
	v := d.cast(d.view(w, append(rows[:r-1:r-1], groups, sym.FloorDiv(cols, groups))...), ops.Float32)
	par := append(rows[:r-1:r-1], groups, one1)
	if zeros != nil {
		v = d.sub(v, d.cast(d.view(zeros, par...), ops.Float32))
	}
	return d.cast(d.view(d.mul(v, d.view(scales, par...)), w.Type.Shape...), t)
}

func decompEmbeddingByte(d *Decomp) []*ir.Value {
	idx := d.in(5)
	flat := d.view(idx, idx.Type.Numel())
	var zeros *ir.Value
	if z := present(d.N.Arg(2)); z != nil {
		zeros = d.take(z, 0, flat)
	}
	v := d.dequantizeRows(d.take(d.in(0), 0, flat), d.take(d.in(1), 0, flat), zeros, d.N.Out().Type.DType)
	return one(d.like(v, 0))
}

func decompMixedMm(d *Decomp) []*ir.Value {
	x, w := d.in(0), d.in(1)
	v := d.cast(w, ops.Float32)
	if z := present(d.N.Arg(3)); z != nil {
		v = d.sub(v, d.cast(d.channel(z, w, 1), ops.Float32))
	}
	return d.back(d.matmul(x, d.cast(d.mul(v, d.channel(d.in(2), w, 1)), x.Type.DType)))
}

func decompMixedLinear(d *Decomp) []*ir.Value {
	t := d.N.Out().Type.DType
	var zeros *ir.Value
	if z := present(d.N.Arg(3)); z != nil {
		zeros = z
	}
	w := d.dequantizeRows(d.in(1), d.in(2), zeros, t)
	return one(d.v(op.AtenLinearDefault(d.Builder, d.cast(d.in(0), t), w)))
}

// nibbles gives the low and the high halves of bytes in turn along the last dimension, as integers.
func (d *Decomp) nibbles(q *ir.Value) *ir.Value {
	w := d.cast(q, ops.Int32)
	if q.Type.DType != ops.Uint8 {
		w = d.v(op.AtenBitwiseAndScalar(d.Builder, w, ir.Int(255)))
	}
	high := d.floorDiv(w, 16)
	low := d.sub(w, d.mul(high, 16))
	r := q.Type.Rank()
	shape := append([]sym.Expr(nil), q.Type.Shape...)
	shape[r-1] = sym.Mul(shape[r-1], sym.Const(2))
	return d.view(d.stack(r, low, high), shape...)
}

func decompDequantizeInt4(d *Decomp) []*ir.Value {
	size, ok := d.named("group_size").Int()
	if !ok || d.in(0).Type.Rank() != 2 {
		return nil
	}
	v := d.cast(d.nibbles(d.in(0)), ops.Float32)
	g := d.view(v, sym.FloorDiv(v.Type.Numel(), sym.Const(size)), sym.Const(size))
	par := func(p *ir.Value) *ir.Value { return d.column(d.swap(d.cast(p, ops.Float32), 0, 1)) }
	return d.back(d.like(d.mul(d.sub(g, par(d.in(2))), par(d.in(1))), 0))
}
