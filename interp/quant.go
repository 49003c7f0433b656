package interp

import (
	"math"
	"slices"

	"github.com/lathe-ml/lathe/ops"
)

// arith applies a binary element-wise function with torch's promotion: the quantization operators are chains of these, each
// rounding to its own type.
func arith(name string, a, b Value) *Tensor {
	x, y := wrapFor(a), wrapFor(b)
	d := resultType(x, y)
	f := binaries[name]
	if f.i == nil {
		d = floatType(d)
	}
	return f.apply(x, y, d)
}

func roundEven(t *Tensor) *Tensor {
	if classOf(t.DType) == classInt {
		return t
	}
	return mapFloats(t, t.DType, math.RoundToEven)
}

func clampTo(t *Tensor, lo, hi Value) *Tensor { return arith("minimum", arith("maximum", t, lo), hi) }

// single is the number of a scale or zero point that may be a tensor of one element.
func single(v Value) Value {
	if t, ok := v.(*Tensor); ok {
		return t.item()
	}
	return v
}

// channelView gives a vector the shape that spreads it along an axis.
func channelView(v *Tensor, axis, rank int) *Tensor {
	sizes := ones(rank)
	sizes[axis] = v.Numel()
	return reshape(v, sizes)
}

// widen32 makes half types float32.
func widen32(t *Tensor) *Tensor {
	if half(t.DType) {
		return cast(t, ops.Float32)
	}
	return t
}

// evalQuantize rounds to integers with scale and zero point: quantize_per_tensor, _per_channel, _per_token and
// _per_channel_group.
func evalQuantize(c *Call) ([]Value, error) {
	t := c.T(0)
	lo, hi := single(c.arg("quant_min")), single(c.arg("quant_max"))
	d := c.dtypeOr(c.index("dtype"), ops.DTypeNone)
	var q *Tensor
	switch c.base() {
	case "quantize_per_tensor":
		t = widen32(t)
		inv := 1 / mustFloat(single(c.Args[1]))
		q = clampTo(arith("add", roundEven(arith("mul", t, inv)), single(c.Args[2])), lo, hi)
	case "quantize_per_channel":
		t = widen32(t)
		axis := dim(c.Int(3), t.Rank())
		s, z := channelView(c.T(1), axis, t.Rank()), channelView(c.T(2), axis, t.Rank())
		q = clampTo(arith("add", roundEven(arith("mul", t, arith("div", 1.0, s))), z), lo, hi)
	case "quantize_per_token":
		q = clampTo(roundEven(arith("add", arith("mul", t, arith("div", 1.0, c.T(1))), c.T(2))), lo, hi)
	case "quantize_per_channel_group":
		g := groups(t, c.T(1), c.Int(c.index("group_size")))
		s, z := reshape(c.T(1), []int64{-1, 1}), reshape(c.T(2), []int64{-1, 1})
		q = clampTo(roundEven(arith("add", arith("mul", g, arith("div", 1.0, s)), z)), lo, hi)
		q = compact(q).withSizes(t.Sizes...)
	}
	return one(cast(q, d))
}

// groups sees the rows of a matrix as groups.
func groups(t, scales *Tensor, size int64) *Tensor {
	need(t, 2, "the grouped matrix")
	if size > t.Sizes[1] && scales.Rank() > 0 && scales.Sizes[scales.Rank()-1] == 1 {
		size = t.Sizes[1]
	}
	if size < 1 || t.Sizes[1]%size != 0 {
		fail("rows of %d in groups of %d", t.Sizes[1], size)
	}
	return reshape(t, []int64{-1, size})
}

// evalDequantize makes numbers of quantized integers.
func evalDequantize(c *Call) ([]Value, error) {
	t := c.T(0)
	if d := c.dtypeOr(c.index("dtype"), t.DType); d != t.DType && (c.base() == "dequantize_per_tensor" || c.base() == "dequantize_per_channel") {
		fail("a quantized tensor is %s, the operator says %s", t.DType, d)
	}
	out := ops.Float32
	for _, n := range []string{"out_dtype", "output_dtype"} {
		if i := c.index(n); i >= 0 {
			out = c.dtypeOr(i, out)
		}
	}
	switch c.base() {
	case "dequantize_per_tensor":
		return one(arith("mul", arith("sub", cast(t, out), single(c.Args[2])), mustFloat(single(c.Args[1]))))
	case "dequantize_per_channel":
		axis := dim(c.Int(3), t.Rank())
		v := t
		if z := c.optT(2); z != nil {
			v = arith("sub", v, channelView(z, axis, t.Rank()))
		}
		return one(cast(arith("mul", v, channelView(c.T(1), axis, t.Rank())), out))
	case "dequantize_per_token":
		return one(cast(arith("mul", arith("sub", t, c.T(2)), c.T(1)), out))
	}
	return one(dequantizeGroups(t, c.T(1), c.optT(2), c.Int(c.index("group_size")), out))
}

func dequantizeGroups(t, scales, zeros *Tensor, size int64, out DType) *Tensor {
	v := groups(t, scales, size)
	if zeros != nil {
		v = arith("sub", v, reshape(zeros, []int64{-1, 1}))
	}
	return cast(compact(arith("mul", v, reshape(scales, []int64{-1, 1}))).withSizes(t.Sizes...), out)
}

// evalChooseQparams chooses scale and zero point for a whole tensor.
func evalChooseQparams(c *Call) ([]Value, error) {
	t := c.T(0)
	qmin, qmax, eps := c.Int(1), c.Int(2), c.Float(3)
	d := c.dtypeOr(4, ops.Int8)
	lo, _ := extreme(t, dims(nil, t.Rank()), false, true)
	hi, _ := extreme(t, dims(nil, t.Rank()), false, false)
	zero := int64(0)
	lo, hi = arith("minimum", lo, NewTensor(t.DType)), arith("maximum", hi, NewTensor(t.DType))
	// eps is a float32 tensor of one element, which a 0-d tensor of a half type yields to.
	e := reshape(scalarTensor(ops.Float32, eps), []int64{1})
	var scale *Tensor
	if c.base() == "choose_qparams_symmetric" {
		m := arith("maximum", mapFloats(lo, lo.DType, func(x float64) float64 { return -x }), hi)
		scale = arith("maximum", arith("div", m, float64(qmax-qmin)/2), e)
		if d == ops.Uint8 {
			zero = 128
		}
	} else {
		scale = arith("maximum", arith("div", arith("sub", hi, lo), float64(qmax-qmin)), e)
		z := roundEven(arith("div", lo, scale)).ints()[0]
		zero = min(max(qmin-z, qmin), qmax)
	}
	return []Value{cast(reshape(scale, []int64{1}), ops.Float64), fromInts(ops.Int64, []int64{1}, []int64{zero})}, nil
}

// evalChooseQparamsPerToken chooses scale and zero point for each row.
func evalChooseQparamsPerToken(c *Call) ([]Value, error) {
	t := c.T(0)
	last := only(t.Rank()-1, t.Rank())
	if c.base() == "choose_qparams_per_token" {
		if d := c.dtypeOr(1, ops.Int8); d != ops.Int8 {
			fail("%s has no per-token parameters", d)
		}
		s, _ := extreme(mapFloats(t, t.DType, math.Abs), last, true, false)
		if s.DType == ops.Float16 {
			s = cast(s, ops.Float32)
		}
		s = arith("div", arith("maximum", s, 1e-5), int64(127))
		return []Value{s, NewTensor(s.DType, s.Sizes...)}, nil
	}
	const qmin, qmax = int64(-128), int64(127)
	lo, _ := extreme(t, last, true, true)
	hi, _ := extreme(t, last, true, false)
	zeros := NewTensor(t.DType, lo.Sizes...)
	lo, hi = arith("minimum", lo, zeros), arith("maximum", hi, zeros)
	scale := arith("maximum", arith("div", arith("sub", hi, lo), float64(qmax-qmin)), 0x1p-23)
	dlo, dhi := arith("div", lo, scale), arith("div", hi, scale)
	e := arith("add", arith("add", dlo, qmin), arith("add", dhi, qmax))
	pick := fromBools(e.Sizes, mapSlice(e.floats(), func(x float64) bool { return x > 0 }))
	z := choose(pick, arith("sub", qmin, dlo), arith("sub", qmax, dhi), e.Sizes)
	z = roundEven(clampTo(z, qmin, qmax))
	return []Value{cast(scale, ops.Float64), cast(z, ops.Int64)}, nil
}

// evalFakeQuantPerChannel quantizes and dequantizes.
func evalFakeQuantPerChannel(c *Call) ([]Value, error) {
	t := c.T(0)
	axis := dim(c.Int(3), t.Rank())
	s := channelView(cast(c.T(1), ops.Float32), axis, t.Rank())
	z := channelView(cast(c.T(2), ops.Int32), axis, t.Rank())
	q := clampTo(arith("add", roundEven(arith("mul", t, arith("div", 1.0, s))), z), c.Int(4), c.Int(5))
	return one(arith("mul", arith("sub", q, z), s))
}

// evalFakeQuantPerTensor is that with one scale, a number or a tensor of one element.
func evalFakeQuantPerTensor(c *Call) ([]Value, error) {
	t := c.T(0)
	s, z := NewTensor(ops.Float32), single(c.Args[2])
	flat[float32](s)[0] = float32(mustFloat(single(c.Args[1])))
	q := clampTo(arith("add", roundEven(arith("mul", widen32(t), arith("div", 1.0, s))), z), c.Int(3), c.Int(4))
	return one(cast(arith("mul", arith("sub", q, z), s), t.DType))
}

// evalQuantizedAdd adds quantized tensors: add, add_relu, add.scalar.
func evalQuantizedAdd(c *Call) ([]Value, error) {
	deq := func(t *Tensor, scale, zero Value) *Tensor {
		return arith("mul", arith("sub", cast(t, ops.Float32), zero), mustFloat(scale))
	}
	a := deq(c.T(0), c.Args[1], c.Args[2])
	var s *Tensor
	if c.overload() == "scalar" {
		s = arith("add", a, c.arg("b"))
	} else {
		s = arith("add", a, deq(c.T(c.index("b")), c.arg("b_scale"), c.arg("b_zero_point")))
	}
	if c.base() == "add_relu" {
		s = mapFloats(s, s.DType, relu)
	}
	q := clampTo(arith("add", roundEven(arith("mul", s, 1/mustFloat(c.arg("out_scale")))), c.arg("out_zero_point")), c.arg("out_quant_min"), c.arg("out_quant_max"))
	return one(cast(q, c.T(0).DType))
}

// unpackWeight gives the integers of a packed embedding table.
func unpackWeight(w *Tensor, bits int) *Tensor {
	if bits == 8 {
		return w
	}
	per := 8 / bits
	src := w.ints()
	out := make([]int64, 0, len(src)*per)
	for _, b := range src {
		if bits == 4 { // the even element in the high half
			out = append(out, b>>4&15-8, b&15-8)
			continue
		}
		for k := range per {
			out = append(out, b>>(2*k)&3-2)
		}
	}
	return fromInts(ops.Int8, []int64{w.Sizes[0], w.Sizes[1] * int64(per)}, out)
}

// evalEmbeddingQuantized looks rows of a quantized table up: embedding_byte, _4bit, _2bit.
func evalEmbeddingQuantized(c *Call) ([]Value, error) {
	bits := map[string]int{"embedding_byte": 8, "embedding_4bit": 4, "embedding_2bit": 2}[c.base()]
	scales, zeros, idx := c.T(1), c.optT(2), c.T(5)
	need(c.T(0), 2, "weight")
	w := unpackWeight(c.T(0), bits)
	size := w.Sizes[1]
	if scales.Rank() == 2 {
		size /= max(scales.Sizes[1], 1)
	}
	d := scales.DType
	if i := c.index("dtype"); i >= 0 {
		d = c.dtypeOr(i, d)
	}
	rows := indexRows(w, 0, idx.ints())
	pickRows := func(t *Tensor) *Tensor {
		if t == nil {
			return nil
		}
		return indexRows(t, 0, idx.ints())
	}
	if rows.Numel() == 0 {
		return one(NewTensor(d, append(slices.Clone(idx.Sizes), w.Sizes[1])...))
	}
	o := dequantizeGroups(rows, pickRows(scales), pickRows(zeros), size, d)
	return one(o.withSizes(append(slices.Clone(idx.Sizes), w.Sizes[1])...))
}

// evalMixedMm multiplies by a quantized matrix: mixed_mm, and mixed_linear, whose weight has its outputs first.
func evalMixedMm(c *Call) ([]Value, error) {
	x, w, scales, zeros := c.T(0), c.T(1), c.T(2), c.optT(3)
	d := x.DType
	if i := c.index("dtype"); i >= 0 {
		d = c.dtypeOr(i, scales.DType)
	}
	var v *Tensor = w
	if scales.Rank() == 2 && c.base() == "mixed_linear" {
		v = dequantizeGroups(w, scales, zeros, w.Sizes[1]/max(scales.Sizes[1], 1), d)
	} else {
		axis := 0
		if c.base() == "mixed_mm" {
			axis = 1
		}
		if zeros != nil {
			v = arith("sub", v, channelView(zeros, axis, 2))
		}
		v = cast(arith("mul", v, channelView(scales, axis, 2)), d)
	}
	if c.base() == "mixed_linear" {
		return one(linear(cast(x, d), v, nil))
	}
	return one(matmul(x, cast(v, x.DType)))
}

// evalWeightInt8packMm multiplies by an int8 matrix with a scale a row.
func evalWeightInt8packMm(c *Call) ([]Value, error) {
	x, w, s := c.T(0), c.T(1), c.T(2)
	o := product(unsqueeze(x, 0), unsqueeze(cast(w, x.DType), 0), ops.Float32, nil).withSizes(x.Sizes[0], w.Sizes[0])
	return one(cast(arith("mul", o, cast(s, ops.Float32)), x.DType))
}

// evalScaledMm multiplies float8 matrices with scales.
func evalScaledMm(c *Call) ([]Value, error) {
	a, b := c.T(0), c.T(1)
	sa, sb := c.T(c.index("scale_a")), c.T(c.index("scale_b"))
	x, y := arith("mul", cast(a, ops.Float32), sa), arith("mul", cast(b, ops.Float32), sb)
	d := c.dtypeOr(c.index("out_dtype"), a.DType)
	o := product(unsqueeze(x, 0), transpose(unsqueeze(y, 0), 1, 2), ops.Float32, nil).withSizes(a.Sizes[0], b.Sizes[1])
	if bias := c.optT(c.index("bias")); bias != nil {
		o = arith("add", o, cast(bias, ops.Float32))
	}
	if s := c.optT(c.index("scale_result")); s != nil {
		o = arith("mul", o, s)
	}
	return one(cast(o, d))
}

// blockShape divides each dimension into blocks: the shape to see a tensor in, and which dimensions of it are blocks.
func blockShape(block, sizes []int64) (shape []int64, reduced []bool) {
	if len(block) != len(sizes) {
		fail("blocks %v of a tensor of shape %v", block, sizes)
	}
	for i, b := range block {
		switch {
		case b == -1 || b == sizes[i]:
			shape, reduced = append(shape, sizes[i]), append(reduced, sizes[i] != 1)
		case b == 1:
			shape, reduced = append(shape, sizes[i]), append(reduced, false)
		default:
			if b <= 0 || sizes[i]%b != 0 {
				fail("blocks of %d in a dimension of %d", b, sizes[i])
			}
			shape, reduced = append(shape, sizes[i]/b, b), append(reduced, false, true)
		}
	}
	return shape, reduced
}

// perBlock gives a parameter of each block the shape that spreads it over the blocks.
func perBlock(p *Tensor, shape []int64, reduced []bool) *Tensor {
	s := slices.Clone(shape)
	for i, r := range reduced {
		if r {
			s[i] = 1
		}
	}
	return reshape(p, s)
}

// qrange reads quant_min and quant_max, by default the whole range of the type.
func (c *Call) qrange(d DType) (lo, hi float64) {
	if classOf(d) == classFloat {
		lo, hi = finiteRange(d)
	} else {
		a, b := intRange(d)
		lo, hi = float64(a), float64(b)
	}
	return c.floatOr(c.index("quant_min"), lo), c.floatOr(c.index("quant_max"), hi)
}

// boundValue is a bound as a Python number: an integer where it is one.
func boundValue(f float64) Value {
	if f == math.Trunc(f) && math.Abs(f) < 0x1p53 {
		return int64(f)
	}
	return f
}

// evalQuantizeAffine quantizes blocks with a scale and zero point each.
func evalQuantizeAffine(c *Call) ([]Value, error) {
	t := c.T(0)
	d := c.dtypeOr(c.index("output_dtype"), ops.Int8)
	shape, red := blockShape(c.Ints(1), t.Sizes)
	lo, hi := c.qrange(d)
	q := roundEven(arith("mul", reshape(t, shape), arith("div", 1.0, perBlock(c.T(2), shape, red))))
	if z := c.optT(3); z != nil && z.Numel() > 0 {
		q = arith("add", q, perBlock(z, shape, red))
	}
	q = clampTo(q, boundValue(lo), boundValue(hi))
	return one(compact(cast(q, d)).withSizes(t.Sizes...))
}

// evalDequantizeAffine makes numbers of quantized blocks.
func evalDequantizeAffine(c *Call) ([]Value, error) {
	t := c.T(0)
	d := c.dtypeOr(c.index("output_dtype"), ops.Float32)
	shape, red := blockShape(c.Ints(1), t.Sizes)
	v := cast(reshape(t, shape), d)
	if z := c.optT(3); z != nil && z.Numel() > 0 {
		v = arith("sub", v, cast(perBlock(z, shape, red), d))
	}
	v = arith("mul", v, perBlock(c.T(2), shape, red))
	return one(cast(compact(v).withSizes(t.Sizes...), d))
}

// evalChooseQparamsAffine chooses a scale and zero point for each block.
func evalChooseQparamsAffine(c *Call) ([]Value, error) {
	t := c.T(0)
	kind := c.Str(1)
	target := c.dtypeOr(3, ops.Int8)
	shape, red := blockShape(c.Ints(2), t.Sizes)
	lo, hi := c.qrange(target)
	sd := c.dtypeOr(c.index("scale_dtype"), t.DType)
	eps := c.floatOr(c.index("eps"), smallestNormal(t.DType))
	keep := c.Bool(c.index("keepdim"))
	v := reshape(t, shape)
	mn, _ := extreme(v, red, keep, true)
	mx, _ := extreme(v, red, keep, false)
	zeros := NewTensor(t.DType, mn.Sizes...)
	mn, mx = arith("minimum", mn, zeros), arith("maximum", mx, zeros)
	var scale, zero *Tensor
	var zd DType
	switch kind {
	case "SYMMETRIC", "SYMMETRIC_NO_CLIPPING_ERR":
		if kind == "SYMMETRIC" {
			mx = arith("maximum", mapFloats(mn, mn.DType, func(x float64) float64 { return -x }), mx)
			scale = arith("div", mx, (hi-lo)/2)
		} else {
			scale = arith("maximum", arith("div", mn, lo), arith("div", mx, hi))
		}
		zero = fill(scale.DType, scale.Sizes, math.Trunc((hi+lo+1)/2))
		scale = arith("maximum", scale, eps)
		zd = zero.DType
	case "ASYMMETRIC":
		scale = arith("maximum", arith("div", arith("sub", mx, mn), hi-lo), eps)
		zero = arith("sub", boundValue(lo), roundEven(arith("div", mn, scale)))
		zero = clampTo(zero, boundValue(lo), boundValue(hi))
		zd = ops.Int32
	default:
		fail("mapping %q is not known", kind)
	}
	if keep {
		sizes := make([]int64, t.Rank())
		for i, b := range c.Ints(2) {
			sizes[i] = 1
			if b > 0 {
				sizes[i] = t.Sizes[i] / b
			}
		}
		scale, zero = compact(scale).withSizes(sizes...), compact(zero).withSizes(sizes...)
	}
	zd = c.dtypeOr(c.index("zero_point_dtype"), zd)
	return []Value{cast(scale, sd), cast(zero, zd)}, nil
}

func smallestNormal(d DType) float64 {
	switch d {
	case ops.Float16:
		return 0x1p-14
	case ops.Float64:
		return 0x1p-1022
	}
	return 0x1p-126
}

// evalChooseScaleFloat8 chooses a scale for each block of float8 numbers.
func evalChooseScaleFloat8(c *Call) ([]Value, error) {
	t := c.T(0)
	block := c.Ints(1)
	shape, red := blockShape(block, t.Sizes)
	_, limit := finiteRange(c.dtypeOr(2, ops.Float8E4M3FN))
	m, _ := extreme(mapFloats(reshape(t, shape), t.DType, math.Abs), red, true, false)
	if c.has(4) {
		m = arith("maximum", m, c.Float(4))
	}
	if c.has(5) {
		m = arith("minimum", m, c.Float(5))
	}
	s := arith("div", m, limit)
	sizes := make([]int64, t.Rank())
	for i, n := range t.Sizes {
		sizes[i] = n / block[i]
	}
	s = compact(s).withSizes(sizes...)
	if c.dtypeOr(3, ops.Float32) == ops.Float8E8M0FNU {
		s = mapFloats(roundEven(mapFloats(s, s.DType, math.Log2)), s.DType, math.Exp2)
	}
	return one(cast(s, ops.Float32))
}

// spreadScale repeats the scales of blocks over their elements.
func spreadScale(s *Tensor, sizes []int64) *Tensor {
	if s.Numel() == 1 || s.Rank() != len(sizes) {
		return s
	}
	for i, n := range sizes {
		k := s.Sizes[i]
		if k == n || k == 1 {
			continue
		}
		if n%k != 0 {
			fail("scales %v for shape %v", s.Sizes, sizes)
		}
		idx := make([]int64, n)
		for j := range idx {
			idx[j] = int64(j) / (n / k)
		}
		s = indexRows(s, i, idx)
	}
	return s
}

// evalQuantizeAffineFloat8 divides by scales and rounds to float8.
func evalQuantizeAffineFloat8(c *Call) ([]Value, error) {
	t, d := c.T(0), c.dtypeOr(2, ops.Float8E4M3FN)
	_, limit := finiteRange(d)
	v := arith("div", cast(t, ops.Float32), spreadScale(c.T(1), t.Sizes))
	return one(cast(clampTo(v, -limit, limit), d))
}

// evalDequantizeAffineFloat8 multiplies float8 numbers by scales.
func evalDequantizeAffineFloat8(c *Call) ([]Value, error) {
	t := c.T(0)
	return one(cast(arith("mul", cast(t, ops.Float32), spreadScale(c.T(1), t.Sizes)), c.dtypeOr(2, ops.Float32)))
}

var float4 = [16]float64{0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6}

// unpackFloat4 gives the numbers of packed 4-bit floats; the even element is in the low half.
func unpackFloat4(t *Tensor) *Tensor {
	rows := t.Sizes[0]
	b := t.Bytes()
	out := make([]float64, 0, 2*len(b))
	for _, x := range b {
		out = append(out, float4[x&15], float4[x>>4])
	}
	// Minus zero is the code 8.
	for i, x := range b {
		if x&15 == 8 {
			out[2*i] = math.Copysign(0, -1)
		}
		if x>>4 == 8 {
			out[2*i+1] = math.Copysign(0, -1)
		}
	}
	cols := int64(0)
	if rows > 0 {
		cols = int64(len(out)) / rows
	}
	return fromFloats(ops.Float32, []int64{rows, cols}, out)
}

// scaleBlocks multiplies groups of a row by a float32 scale each.
func scaleBlocks(v, scales *Tensor, block int64, out DType) *Tensor {
	if block <= 0 || v.Sizes[1]%block != 0 || v.Sizes[0]*(v.Sizes[1]/block) != scales.Numel() {
		fail("%v scales for blocks of %d of shape %v", scales.Sizes, block, v.Sizes)
	}
	g := reshape(v, []int64{-1, block})
	return cast(compact(arith("mul", g, reshape(scales, []int64{-1, 1}))).withSizes(v.Sizes...), out)
}

// evalDequantizeNvfp4 makes numbers of 4-bit floats with a float8 scale a block and one scale for all.
func evalDequantizeNvfp4(c *Call) ([]Value, error) {
	q, scale, all := c.T(0), c.T(1), c.T(2)
	need(q, 2, "qdata")
	if scale.DType == ops.Uint8 {
		scale = bitcast(scale, ops.Float8E4M3FN)
	}
	s := arith("mul", all, reshape(cast(scale, ops.Float32), []int64{-1, 1}))
	return one(scaleBlocks(unpackFloat4(q), s, c.Int(3), c.dtypeOr(4, ops.Float32)))
}

// evalDequantizeMx makes numbers of elements with a power-of-two scale a block.
func evalDequantizeMx(c *Call) ([]Value, error) {
	q, scale := c.T(0), c.T(1)
	need(q, 2, "qdata")
	elem := c.dtypeOr(2, ops.Float8E4M3FN)
	if scale.DType == ops.Uint8 {
		scale = bitcast(scale, ops.Float8E8M0FNU)
	}
	var v *Tensor
	switch elem {
	case ops.Float8E4M3FN, ops.Float8E5M2:
		if q.DType == ops.Uint8 {
			q = bitcast(q, elem)
		}
		v = cast(q, ops.Float32)
	case ops.Float4E2M1FNX2:
		v = unpackFloat4(q)
	default:
		fail("microscaling elements of %s are not known", elem)
	}
	return one(scaleBlocks(v, cast(scale, ops.Float32), c.Int(3), c.dtypeOr(4, ops.Float32)))
}

// evalDequantizeInt4Tensor makes numbers of packed 4-bit integers with scale and zero point a group.
func evalDequantizeInt4Tensor(c *Call) ([]Value, error) {
	q := c.T(0)
	need(q, 2, "qdata")
	b := q.Bytes()
	out := make([]float64, 0, 2*len(b))
	for _, x := range b {
		out = append(out, float64(x&15), float64(x>>4))
	}
	v := fromFloats(ops.Float32, []int64{q.Sizes[0], q.Sizes[1] * 2}, out)
	par := func(t *Tensor) *Tensor { // [groups, rows]
		return reshape(compact(transpose(cast(t, ops.Float32), 0, 1)), []int64{-1, 1})
	}
	g := reshape(v, []int64{-1, c.Int(3)})
	w := arith("mul", arith("sub", g, par(c.T(2))), par(c.T(1)))
	return one(cast(compact(w).withSizes(v.Sizes...), c.dtypeOr(4, ops.BFloat16)))
}

// evalDequantizeGguf makes numbers of GGUF's k-quants: super-blocks of 256 elements with float16 scales.
func evalDequantizeGguf(c *Call) ([]Value, error) {
	t := c.T(0)
	need(t, 2, "weight")
	kind := c.Str(1)
	size := map[string]int{"q4_k": 144, "q5_k": 176, "q6_k": 210}[kind]
	if size == 0 {
		fail("the GGUF type %q is not known", kind)
	}
	if t.Sizes[1]%int64(size) != 0 {
		fail("rows of %d bytes are no whole number of %s blocks", t.Sizes[1], kind)
	}
	raw := t.Bytes()
	out := make([]float64, 0, len(raw)/size*256)
	for len(raw) >= size {
		blk := raw[:size]
		raw = raw[size:]
		if kind == "q6_k" {
			out = append(out, q6k(blk)...)
		} else {
			out = append(out, q45k(blk, kind == "q5_k")...)
		}
	}
	return one(fromFloats(c.dtypeOr(2, ops.BFloat16), []int64{t.Sizes[0], t.Sizes[1] / int64(size) * 256}, out))
}

func half16(b []byte) float32 { return f16to32(uint16(b[0]) | uint16(b[1])<<8) }

// q45k: two half scales, 8 packed pairs of 6-bit scale and minimum, for five bits a plane of high bits, low halves.
func q45k(b []byte, five bool) []float64 {
	d, dmin := half16(b), half16(b[2:])
	s := b[4:16]
	low := b[16:]
	var high []byte
	if five {
		high, low = b[16:48], b[48:]
	}
	out := make([]float64, 256)
	for g := range 8 {
		var sc, mn byte
		if g < 4 {
			sc, mn = s[g]&63, s[g+4]&63
		} else {
			sc, mn = s[g+4]&15|s[g-4]>>6<<4, s[g+4]>>4|s[g]>>6<<4
		}
		scale, minimum := d*float32(sc), dmin*float32(mn)
		for i := range 32 {
			q := low[g/2*32+i]
			if g%2 == 1 {
				q >>= 4
			}
			q &= 15
			if five {
				q |= high[i] >> g & 1 << 4
			}
			out[g*32+i] = float64(scale*float32(q) - minimum)
		}
	}
	return out
}

// q6k: low halves, two high bits, 16 signed scales, one half scale.
func q6k(b []byte) []float64 {
	d := half16(b[208:])
	out := make([]float64, 256)
	for h := range 2 {
		ql, qh := b[h*64:h*64+64], b[128+h*32:128+h*32+32]
		for k := range 4 {
			for i := range 32 {
				lo := ql[k%2*32+i]
				if k >= 2 {
					lo >>= 4
				}
				q := int(lo&15|qh[i]>>(2*k)&3<<4) - 32
				at := h*128 + k*32 + i
				out[at] = float64(d * float32(int8(b[192+at/16])) * float32(q))
			}
		}
	}
	return out
}

// evalAccessSubclassInnerTensor is for weights that were made plain: the tensor itself.
func evalAccessSubclassInnerTensor(c *Call) ([]Value, error) { return one(alias(c.T(0))) }
