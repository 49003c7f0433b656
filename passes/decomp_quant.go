package passes

import (
	"math"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

func (d *Decomp) round(x *ir.Value) *ir.Value { return d.v(op.AtenRoundDefault(d.Builder, x)) }

// intLimits are the least and the largest number of an integer type.
func intLimits(t ir.DType) (lo, hi float64) {
	bits := float64(8 * t.Size())
	if t.IsSigned() {
		return -math.Exp2(bits - 1), math.Exp2(bits-1) - 1
	}
	return 0, math.Exp2(bits) - 1
}

// param is a scale or zero point: a number, or a tensor that spreads over x along axis (or over everything).
func (d *Decomp) param(a ir.Arg, axis, rank int) any {
	v := a.Value()
	if v == nil || !v.Type.IsTensor() {
		return a
	}
	if v.Type.Numel().IsConstValue(1) && axis < 0 {
		return d.view(v)
	}
	if axis < 0 {
		return v
	}
	shape := make([]sym.Expr, rank)
	for i := range shape {
		shape[i] = one1
	}
	shape[axis] = v.Type.Numel()
	return d.view(v, shape...)
}

// quantized is clamp(round(x/scale) + zero) in steps that multiply by the inverse scale, as PyTorch does.
func (d *Decomp) quantized(x *ir.Value, scale, zero any, lo, hi any, t ir.DType) *ir.Value {
	var inv any
	if f, ok := d.arg(scale).Float(); ok {
		inv = 1 / f
	} else {
		s := d.arg(scale).Value()
		if x.Type.DType == ops.Float32 {
			s = d.opmath(s)
		}
		inv = d.reciprocal(s)
	}
	q := d.round(d.mul(x, inv))
	if z := d.arg(zero); !z.IsNone() {
		if isTensor(z) {
			zero = d.cast(z.Value(), q.Type.DType)
		}
		q = d.add(q, zero)
	}
	for i, b := range []any{lo, hi} {
		v := d.arg(b)
		if !isTensor(v) {
			continue
		}
		// The schemes with tensors for everything; their bounds have one element.
		w := d.cast(d.view(v.Value()), q.Type.DType)
		if i == 0 {
			q, lo = d.max(q, w), negInf
		} else {
			q, hi = d.min(q, w), math.Inf(1)
		}
	}
	return d.cast(d.clamp(q, lo, hi), t)
}

// dequantized is (q - zero) * scale in float32.
func (d *Decomp) dequantized(q *ir.Value, scale, zero any, t ir.DType) *ir.Value {
	x := d.cast(q, ops.Float32)
	if z := d.arg(zero); !z.IsNone() {
		if isTensor(z) {
			zero = d.cast(z.Value(), ops.Float32)
		}
		x = d.sub(x, zero)
	}
	if isTensor(d.arg(scale)) {
		scale = d.cast(d.arg(scale).Value(), ops.Float32)
	}
	return d.cast(d.mul(x, scale), t)
}

func (d *Decomp) qbounds() (lo, hi any, ok bool) {
	if l, h := d.named("quant_min"), d.named("quant_max"); isTensor(l) && isTensor(h) {
		return l, h, true
	}
	a, okA := d.named("quant_min").Float()
	b, okB := d.named("quant_max").Float()
	return a, b, okA && okB
}

func decompQuantizePerTensor(d *Decomp) []*ir.Value {
	x := d.opmath(d.in(0))
	lo, hi, ok := d.qbounds()
	if !ok {
		return nil
	}
	return one(d.quantized(x, d.param(d.N.Arg(1), -1, 0), d.param(d.N.Arg(2), -1, 0), lo, hi, d.N.Out().Type.DType))
}

func decompDequantizePerTensor(d *Decomp) []*ir.Value {
	return one(d.dequantized(d.in(0), d.param(d.N.Arg(1), -1, 0), d.param(d.N.Arg(2), -1, 0), d.N.Out().Type.DType))
}

func decompQuantizePerChannel(d *Decomp) []*ir.Value {
	x := d.opmath(d.in(0))
	lo, hi, ok := d.qbounds()
	if !ok {
		return nil
	}
	axis, r := d.dim(3, x), x.Type.Rank()
	return one(d.quantized(x, d.param(d.N.Arg(1), axis, r), d.param(d.N.Arg(2), axis, r), lo, hi, d.N.Out().Type.DType))
}

func decompDequantizePerChannel(d *Decomp) []*ir.Value {
	q := d.in(0)
	axis, r := d.dim(3, q), q.Type.Rank()
	return one(d.dequantized(q, d.param(d.N.Arg(1), axis, r), d.param(d.N.Arg(2), axis, r), d.N.Out().Type.DType))
}

func decompFakeQuantPerChannel(d *Decomp) []*ir.Value {
	x := d.opmath(d.in(0))
	lo, hi, ok := d.qbounds()
	if !ok {
		return nil
	}
	axis, r := d.dim(3, x), x.Type.Rank()
	s, z := d.param(d.N.Arg(1), axis, r), d.param(d.N.Arg(2), axis, r)
	return d.back(d.dequantized(d.quantized(x, s, z, lo, hi, ops.Float32), s, z, ops.Float32))
}

func decompFakeQuantPerTensor(d *Decomp) []*ir.Value {
	x := d.opmath(d.in(0))
	lo, hi, ok := d.qbounds()
	if !ok {
		return nil
	}
	s, z := d.param(d.N.Arg(1), -1, 0), d.param(d.N.Arg(2), -1, 0)
	return d.back(d.dequantized(d.quantized(x, s, z, lo, hi, ops.Float32), s, z, ops.Float32))
}

// grouped views x as rows of groups and a parameter as one for each.
func (d *Decomp) grouped(x *ir.Value, size int64) (rows *ir.Value, param func(ir.Arg) any) {
	n := sym.FloorDiv(x.Type.Numel(), sym.Const(size))
	return d.view(x, n, sym.Const(size)), func(a ir.Arg) any {
		if v := a.Value(); v != nil && v.Type.IsTensor() {
			return d.view(v, n, one1)
		}
		return a
	}
}

func decompQuantizePerGroup(d *Decomp) []*ir.Value {
	x := d.opmath(d.in(0))
	size, ok := d.named("group_size").Int()
	lo, hi, okB := d.qbounds()
	if !ok || !okB {
		return nil
	}
	rows, param := d.grouped(x, size)
	return one(d.view(d.quantized(rows, param(d.N.Arg(1)), param(d.N.Arg(2)), lo, hi, d.N.Out().Type.DType), x.Type.Shape...))
}

func decompDequantizePerGroup(d *Decomp) []*ir.Value {
	x := d.in(0)
	size, ok := d.named("group_size").Int()
	if !ok {
		return nil
	}
	rows, param := d.grouped(x, size)
	return one(d.view(d.dequantized(rows, param(d.N.Arg(1)), param(d.N.Arg(2)), d.N.Out().Type.DType), x.Type.Shape...))
}

func decompQuantizePerToken(d *Decomp) []*ir.Value {
	x := d.opmath(d.in(0))
	lo, hi, ok := d.qbounds()
	if !ok {
		return nil
	}
	return one(d.quantized(x, d.in(1), d.in(2), lo, hi, d.N.Out().Type.DType))
}

func decompDequantizePerToken(d *Decomp) []*ir.Value {
	return one(d.dequantized(d.in(0), d.in(1), d.in(2), d.N.Out().Type.DType))
}

// statistic is a parameter in the form of result i.
func (d *Decomp) statistic(i int, v *ir.Value) *ir.Value {
	t := d.N.Outs[i].Type
	return d.view(d.cast(v, t.DType), t.Shape...)
}

func (d *Decomp) chooseQparams(symmetric bool) []*ir.Value {
	x := d.opmath(d.in(0))
	qmin, ok := d.named("quant_min").Float()
	qmax, okM := d.named("quant_max").Float()
	eps, okE := d.N.Arg(3).Float()
	if !ok || !okM || !okE {
		return nil
	}
	dims := allDims(x.Type.Rank())
	mn, mx := d.min(d.amin(x, false, dims...), 0.0), d.max(d.amax(x, false, dims...), 0.0)
	if symmetric {
		scale := d.max(d.div(d.max(d.neg(mn), mx), (qmax-qmin)/2), eps)
		zero := 0
		if t, _ := d.N.Arg(4).DType(); t == ops.Uint8 {
			zero = 128
		}
		z := d.N.Outs[1].Type
		return []*ir.Value{d.statistic(0, scale), d.full(zero, z.DType, z.Shape...)}
	}
	scale := d.max(d.div(d.sub(mx, mn), qmax-qmin), eps)
	zero := d.clamp(d.sub(qmin, d.round(d.div(mn, scale))), qmin, qmax)
	return []*ir.Value{d.statistic(0, scale), d.statistic(1, zero)}
}

func decompChooseQparams(d *Decomp) []*ir.Value { return d.chooseQparams(false) }

func decompChooseQparamsSymmetric(d *Decomp) []*ir.Value { return d.chooseQparams(true) }

func decompChooseQparamsPerToken(d *Decomp) []*ir.Value {
	x := d.opmath(d.in(0))
	s := d.div(d.max(d.amax(d.abs(x), true, x.Type.Rank()-1), 1e-5), 127.0)
	z := d.N.Outs[1].Type
	return []*ir.Value{d.statistic(0, s), d.full(zeroOf(z.DType, 0), z.DType, z.Shape...)}
}

func decompChooseQparamsPerTokenAsymmetric(d *Decomp) []*ir.Value {
	x := d.opmath(d.in(0))
	last := x.Type.Rank() - 1
	const qmin, qmax = -128.0, 127.0
	lo, hi := d.min(d.amin(x, true, last), 0.0), d.max(d.amax(x, true, last), 0.0)
	scale := d.max(d.div(d.sub(hi, lo), qmax-qmin), 0x1p-23)
	a, b := d.div(lo, scale), d.div(hi, scale)
	e := d.add(d.add(a, qmin), d.add(b, qmax))
	zero := d.where(d.gt(e, 0.0), d.sub(qmin, a), d.sub(qmax, b))
	zero = d.round(d.clamp(zero, qmin, qmax))
	return []*ir.Value{d.statistic(0, scale), d.statistic(1, zero)}
}

func decompConvertElementType(d *Decomp) []*ir.Value { return d.back(d.in(0)) }

// decompQuantizedAdd adds the numbers that two quantized tensors stand for.
func decompQuantizedAdd(d *Decomp) []*ir.Value {
	a := d.dequantized(d.in(0), d.N.Arg(1), d.N.Arg(2), ops.Float32)
	var sum *ir.Value
	if d.N.Info().Schema.Overload == "scalar" {
		sum = d.add(a, d.named("b"))
	} else {
		sum = d.add(a, d.dequantized(d.named("b").Value(), d.named("b_scale"), d.named("b_zero_point"), ops.Float32))
	}
	if d.N.Info().Schema.Base == "add_relu" {
		sum = d.v(op.AtenReluDefault(d.Builder, sum))
	}
	return one(d.quantized(sum, d.named("out_scale"), d.named("out_zero_point"), d.named("out_quant_min"), d.named("out_quant_max"), d.N.Out().Type.DType))
}

// spreadGroups dequantizes a matrix whose scales are one for each row, or for each group of a row.
func (d *Decomp) spreadGroups(w, scales, zeros *ir.Value, t ir.DType) *ir.Value {
	shape := w.Type.Shape
	if scales.Type.Rank() == 1 {
		scales = d.unsqueeze(scales, 1)
		if zeros != nil {
			zeros = d.unsqueeze(zeros, 1)
		}
	}
	g := scales.Type.Shape[1]
	x := d.view(w, shape[0], g, sym.FloorDiv(shape[1], g))
	var z any = ir.None
	if zeros != nil {
		z = d.unsqueeze(zeros, 2)
	}
	return d.view(d.dequantized(x, d.unsqueeze(scales, 2), z, t), shape...)
}

func decompMixedMm(d *Decomp) []*ir.Value {
	x := d.in(0)
	w := d.spreadGroups(d.in(1), d.in(2), d.N.In(3), x.Type.DType)
	return d.back(d.mm(x, w))
}

func decompMixedLinear(d *Decomp) []*ir.Value {
	x := d.in(0)
	w := d.spreadGroups(d.in(1), d.in(2), d.N.In(3), x.Type.DType)
	return d.back(d.linear(x, w, nil))
}

func (d *Decomp) embeddingRows(unpack func(rows *ir.Value) *ir.Value) []*ir.Value {
	w, scales, zeros, idx := d.in(0), d.in(1), d.N.In(2), d.named("indices").Value()
	flat := d.view(idx, idx.Type.Numel())
	rows := unpack(d.take(w, 0, flat))
	s := d.take(scales, 0, flat)
	var z *ir.Value
	if zeros != nil {
		z = d.take(zeros, 0, flat)
	}
	out := d.N.Out().Type
	return one(d.view(d.spreadGroups(rows, s, z, out.DType), out.Shape...))
}

func decompEmbeddingByte(d *Decomp) []*ir.Value {
	return d.embeddingRows(func(rows *ir.Value) *ir.Value { return rows })
}

// nibbles unpacks numbers of the given bits from bytes, the first from the highest bits where high is set.
func (d *Decomp) unpacked(rows *ir.Value, bits int, high bool) *ir.Value {
	b := d.cast(rows, ops.Int32)
	per := 8 / bits
	var parts []*ir.Value
	for i := range per {
		k := i
		if high {
			k = per - 1 - i
		}
		p := b
		if k > 0 {
			p = d.floorDiv(p, int64(1)<<(k*bits))
		}
		parts = append(parts, d.v(op.AtenRemainderScalar(d.Builder, p, ir.Int(int64(1)<<bits))))
	}
	s := rows.Type.Shape
	return d.view(d.stack(len(s), parts...), with(s, len(s)-1, sym.Mul(s[len(s)-1], sym.Const(int64(per))))...)
}

func decompEmbedding4bit(d *Decomp) []*ir.Value {
	return d.embeddingRows(func(rows *ir.Value) *ir.Value { return d.sub(d.unpacked(rows, 4, true), 8) })
}

func decompEmbedding2bit(d *Decomp) []*ir.Value {
	return d.embeddingRows(func(rows *ir.Value) *ir.Value { return d.sub(d.unpacked(rows, 2, false), 2) })
}

// blocks views x in the blocks of an affine scheme: the shape, and that of one parameter a block.
func (d *Decomp) blocks(x *ir.Value, block ir.Arg) (shape, params []sym.Expr, reduced []int, ok bool) {
	bs, isList := block.ExprList()
	if !isList || len(bs) != x.Type.Rank() {
		return nil, nil, nil, false
	}
	for i, b := range bs {
		size := x.Type.Shape[i]
		switch {
		case b.IsConstValue(-1) || b.Equal(size):
			reduced = append(reduced, len(shape))
			shape, params = append(shape, size), append(params, one1)
		case b.IsConstValue(1):
			shape, params = append(shape, size), append(params, size)
		default:
			n := sym.FloorDiv(size, b)
			reduced = append(reduced, len(shape)+1)
			shape, params = append(shape, n, b), append(params, n, one1)
		}
	}
	return shape, params, reduced, true
}

// zeroPoint is the argument as one for each block, none where there is none.
func (d *Decomp) zeroPoint(i int, params []sym.Expr) any {
	z := d.N.In(i)
	if z == nil || z.Type.Numel().IsConstValue(0) {
		return ir.None
	}
	return d.view(z, params...)
}

func decompDequantizeAffine(d *Decomp) []*ir.Value {
	x := d.in(0)
	shape, params, _, ok := d.blocks(x, d.N.Arg(1))
	if !ok {
		return nil
	}
	y := d.dequantized(d.view(x, shape...), d.view(d.in(2), params...), d.zeroPoint(3, params), d.N.Out().Type.DType)
	return one(d.view(y, x.Type.Shape...))
}

// affineRange is quant_min and quant_max, by default the whole range of the type.
func (d *Decomp) affineRange(t ir.DType) (lo, hi float64) {
	lo, hi = intLimits(t)
	return floatArg(d.named("quant_min"), lo), floatArg(d.named("quant_max"), hi)
}

// The affine functions compute in the type of their input and round to it after each step, as theirs do in eager.

func decompQuantizeAffine(d *Decomp) []*ir.Value {
	x := d.in(0)
	shape, params, _, ok := d.blocks(x, d.N.Arg(1))
	t := d.N.Out().Type.DType
	if !ok || kindOf(t) != 1 {
		return nil
	}
	lo, hi := d.affineRange(t)
	q := d.quantized(d.view(x, shape...), d.view(d.in(2), params...), d.zeroPoint(3, params), lo, hi, t)
	return one(d.view(q, x.Type.Shape...))
}

func decompChooseQparamsAffine(d *Decomp) []*ir.Value {
	x := d.in(0)
	_, _, reduced, ok := d.blocks(x, d.N.Arg(2))
	shape, _, _, _ := d.blocks(x, d.N.Arg(2))
	target, okT := d.named("target_dtype").DType()
	mapping, _ := d.named("mapping_type").Str()
	if !ok || !okT || kindOf(target) != 1 {
		return nil
	}
	lo, hi := d.affineRange(target)
	tiny := map[ir.DType]float64{ops.Float16: 0x1p-14, ops.Float64: 0x1p-1022}[x.Type.DType]
	if tiny == 0 {
		tiny = 0x1p-126
	}
	eps := floatArg(d.named("eps"), tiny)
	v := d.view(x, shape...)
	mn, mx := d.min(d.amin(v, true, reduced...), 0.0), d.max(d.amax(v, true, reduced...), 0.0)
	var scale, zero *ir.Value
	switch mapping {
	case "SYMMETRIC":
		scale = d.max(d.div(d.max(d.neg(mn), mx), (hi-lo)/2), eps)
		zero = d.full(math.Trunc((hi+lo+1)/2), scale.Type.DType, scale.Type.Shape...)
	case "SYMMETRIC_NO_CLIPPING_ERR":
		scale = d.max(d.max(d.div(mn, lo), d.div(mx, hi)), eps)
		zero = d.full(math.Trunc((hi+lo+1)/2), scale.Type.DType, scale.Type.Shape...)
	case "ASYMMETRIC":
		scale = d.max(d.div(d.sub(mx, mn), hi-lo), eps)
		zero = d.clamp(d.sub(lo, d.round(d.div(mn, scale))), lo, hi)
	default:
		return nil
	}
	return []*ir.Value{d.statistic(0, scale), d.statistic(1, zero)}
}

func decompIntMatmul(d *Decomp) []*ir.Value { return decompIntMm(d) }

func decompIntScaledMm(d *Decomp) []*ir.Value {
	y := d.v(op.AtenUnderIntMmDefault(d.Builder, d.in(0), d.in(1)))
	s := d.in(2)
	return d.back(d.mul(d.cast(y, s.Type.DType), s))
}

// decompDequantizeInt4 unpacks two numbers a byte, the first from the low half, with scales and zero points by group and
// row.
func decompDequantizeInt4(d *Decomp) []*ir.Value {
	q := d.in(0)
	size, ok := d.named("group_size").Int()
	if !ok || q.Type.DType != ops.Uint8 {
		return nil
	}
	w := d.cast(d.unpacked(q, 4, false), ops.Float32)
	s := w.Type.Shape
	g := d.view(w, s[0], sym.FloorDiv(s[1], sym.Const(size)), sym.Const(size))
	param := func(i int) *ir.Value { return d.unsqueeze(d.swap(d.cast(d.in(i), ops.Float32), 0, 1), 2) }
	return d.back(d.view(d.mul(d.sub(g, param(2)), param(1)), s...))
}

func decompMlxTestVadd(d *Decomp) []*ir.Value { return one(d.add(d.in(0), d.in(1))) }
