package passes

import (
	"math"
	"slices"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

func decompRelu6(d *Decomp) []*ir.Value {
	return one(d.v(op.AtenHardtanhDefault(d.Builder, d.in(0), op.KW("min_val", ir.Float(0)), op.KW("max_val", ir.Float(6)))))
}

// sixth is clamp(x+3, 0, 6)/6.
func (d *Decomp) sixth(x *ir.Value) *ir.Value { return d.div(d.clamp(d.add(x, 3.0), 0.0, 6.0), 6.0) }

func decompHardsigmoid(d *Decomp) []*ir.Value { return d.back(d.sixth(d.opmath(d.in(0)))) }

func decompHardswish(d *Decomp) []*ir.Value {
	x := d.opmath(d.in(0))
	return d.back(d.div(d.mul(x, d.clamp(d.add(x, 3.0), 0.0, 6.0)), 6.0))
}

func decompSilu(d *Decomp) []*ir.Value {
	x := d.opmath(d.in(0))
	return d.back(d.mul(x, d.sigmoid(x)))
}

func decompSelu(d *Decomp) []*ir.Value {
	return one(d.v(op.AtenEluDefault(d.Builder, d.in(0), op.KW("alpha", ir.Float(1.6732632423543772848170429916717)), op.KW("scale", ir.Float(1.0507009873554804934193349852946)))))
}

func decompCelu(d *Decomp) []*ir.Value {
	alpha := floatArg(d.N.Arg(1), 1)
	return one(d.v(op.AtenEluDefault(d.Builder, d.in(0), op.KW("alpha", ir.Float(alpha)), op.KW("scale", ir.Float(1)), op.KW("input_scale", ir.Float(1/alpha)))))
}

// decompElu is written out for element types that the kernel does not take.
func decompElu(d *Decomp) []*ir.Value {
	x := d.opmath(d.in(0))
	alpha, scale, in := floatArg(d.N.Arg(1), 1), floatArg(d.N.Arg(2), 1), floatArg(d.N.Arg(3), 1)
	neg := d.mul(d.v(op.AtenExpm1Default(d.Builder, d.mul(d.min(x, 0.0), in))), alpha*scale)
	return d.back(d.where(d.gt(x, 0.0), d.mul(x, scale), neg))
}

func decompPrelu(d *Decomp) []*ir.Value {
	x, w := d.in(0), d.in(1)
	if r := x.Type.Rank(); w.Type.Rank() == 1 && r != 1 {
		var shape []sym.Expr
		for i := range r {
			if i == 1 {
				shape = append(shape, w.Type.Shape[0])
			} else {
				shape = append(shape, one1)
			}
		}
		w = d.view(w, shape...)
	}
	return one(d.where(d.gt(x, 0.0), x, d.mul(x, w)))
}

func decompPreluKernel(d *Decomp) []*ir.Value {
	x, w := d.in(0), d.in(1)
	return one(d.where(d.gt(x, 0.0), x, d.mul(x, w)))
}

func decompRrelu(d *Decomp) []*ir.Value {
	if boolArg(d.named("training")) {
		return nil
	}
	lo, hi := floatArg(d.named("lower"), 1.0/8), floatArg(d.named("upper"), 1.0/3)
	return one(d.v(op.AtenLeakyReluDefault(d.Builder, d.in(0), op.KW("negative_slope", ir.Float((lo+hi)/2)))))
}

func decompLeakyRelu(d *Decomp) []*ir.Value {
	x := d.in(0)
	return one(d.where(d.gt(x, 0.0), x, d.mul(x, d.N.Arg(1))))
}

func decompThreshold(d *Decomp) []*ir.Value {
	x := d.in(0)
	return one(d.where(d.le(x, d.N.Arg(1)), d.N.Arg(2), x))
}

func decompSoftplus(d *Decomp) []*ir.Value {
	x := d.opmath(d.in(0))
	beta, threshold := floatArg(d.N.Arg(1), 1), floatArg(d.N.Arg(2), 20)
	bx := x
	if beta != 1 {
		bx = d.mul(x, beta)
	}
	soft := d.log1p(d.exp(bx))
	if beta != 1 {
		soft = d.div(soft, beta)
	}
	return d.back(d.where(d.gt(bx, threshold), x, soft))
}

func decompSoftshrink(d *Decomp) []*ir.Value {
	x := d.in(0)
	l := floatArg(d.N.Arg(1), 0.5)
	// x*0 keeps what is not a number.
	return one(d.where(d.gt(x, l), d.sub(x, l), d.where(d.lt(x, -l), d.add(x, l), d.mul(x, 0.0))))
}

func decompHardshrink(d *Decomp) []*ir.Value {
	x := d.in(0)
	l := floatArg(d.N.Arg(1), 0.5)
	return one(d.where(d.le(d.abs(x), l), 0.0, x))
}

func decompMish(d *Decomp) []*ir.Value {
	x := d.opmath(d.in(0))
	return d.back(d.mul(x, d.tanh(d.v(op.AtenSoftplusDefault(d.Builder, x)))))
}

func decompLogSigmoid(d *Decomp) []*ir.Value {
	x := d.opmath(d.in(0))
	return d.back(d.sub(d.min(x, 0.0), d.log1p(d.exp(d.neg(d.abs(x))))))
}

func decompLogSigmoidForward(d *Decomp) []*ir.Value {
	x := d.opmath(d.in(0))
	e := d.exp(d.neg(d.abs(x)))
	return []*ir.Value{d.back(d.sub(d.min(x, 0.0), d.log1p(e)))[0], d.cast(e, d.N.Outs[1].Type.DType)}
}

func decompGlu(d *Decomp) []*ir.Value {
	x := d.in(0)
	dim := d.dim(1, x)
	half := d.N.Out().Type.Shape[dim]
	return one(d.mul(d.slice(x, dim, 0, half), d.sigmoid(d.slice(x, dim, half, sym.Add(half, half)))))
}

// decompGelu serves element types that the kernel does not take.
func decompGelu(d *Decomp) []*ir.Value {
	x := d.opmath(d.in(0))
	if s, _ := d.named("approximate").Str(); s == "tanh" {
		inner := d.mul(d.add(x, d.mul(d.mul(d.mul(x, x), x), 0.044715)), math.Sqrt(2/math.Pi))
		return d.back(d.mul(d.mul(x, 0.5), d.add(d.tanh(inner), 1.0)))
	}
	return d.back(d.mul(d.mul(x, 0.5), d.add(d.v(op.AtenErfDefault(d.Builder, d.mul(x, math.Sqrt2/2))), 1.0)))
}

func decompSoftmax(d *Decomp) []*ir.Value {
	x := d.cast(d.in(0), d.N.Out().Type.DType)
	return one(d.softmax(x, d.dim(1, x)))
}

func decompLogSoftmax(d *Decomp) []*ir.Value {
	x := d.cast(d.in(0), d.N.Out().Type.DType)
	return one(d.v(op.AtenUnderLogSoftmaxDefault(d.Builder, x, ir.Int(int64(d.dim(1, x))), ir.Bool(false))))
}

// decompSafeSoftmax is softmax with zeros in rows that are minus infinity all over.
func decompSafeSoftmax(d *Decomp) []*ir.Value {
	x := d.cast(d.in(0), d.N.Out().Type.DType)
	dim := d.dim(1, x)
	some := d.any(d.ne(x, negInf), true, dim)
	return one(d.where(some, d.softmax(x, dim), 0.0))
}

func decompMaskedSoftmax(d *Decomp) []*ir.Value {
	x, mask := d.in(0), d.in(1)
	if !d.named("mask_type").IsNone() && !d.N.Arg(3).IsNone() {
		if k, _ := d.N.Arg(3).Int(); k != 2 {
			return nil
		}
	}
	if !ir.EqualShape(x.Type.Shape, mask.Type.Shape) {
		return nil
	}
	dim := x.Type.Rank() - 1
	if !d.N.Arg(2).IsNone() {
		dim = d.dim(2, x)
	}
	return one(d.softmax(d.where(mask, negInf, x), dim))
}

func decompUnderSoftmax(d *Decomp) []*ir.Value {
	x := d.opmath(d.in(0))
	dim := d.dim(1, x)
	e := d.exp(d.sub(x, d.amax(x, true, dim)))
	return d.back(d.div(e, d.sum(e, true, dim)))
}

func decompUnderLogSoftmax(d *Decomp) []*ir.Value {
	x := d.opmath(d.in(0))
	dim := d.dim(1, x)
	c := d.sub(x, d.amax(x, true, dim))
	return d.back(d.sub(c, d.log(d.sum(d.exp(c), true, dim))))
}

func decompDropout(d *Decomp) []*ir.Value {
	if !inactive(d.N) {
		return nil
	}
	return one(d.in(0))
}

func decompNativeDropout(d *Decomp) []*ir.Value {
	if !inactive(d.N) {
		return nil
	}
	x := d.in(0)
	return []*ir.Value{x, d.full(true, ops.Bool, x.Type.Shape...)}
}

// Binary operators.

func decompRsub(d *Decomp) []*ir.Value {
	x, alpha := d.in(0), d.N.Arg(2)
	if !alpha.Equal(ir.Int(1)) {
		x = d.mul(x, alpha)
	}
	if !isTensor(d.N.Arg(1)) {
		return one(d.sub(d.scalar(d.N.Arg(1), d.N.Out().Type.DType), x))
	}
	return one(d.sub(d.N.Arg(1), x))
}

func decompAddScalar(d *Decomp) []*ir.Value {
	return d.scaled(d.add)
}

func decompSubScalar(d *Decomp) []*ir.Value {
	return d.scaled(d.sub)
}

// scaled is x op alpha*y with plain numbers for both.
func (d *Decomp) scaled(f func(x, y any) *ir.Value) []*ir.Value {
	x, y, alpha := d.in(0), d.in(1), d.N.Arg(2)
	if !alpha.Equal(ir.Int(1)) {
		y = d.mul(y, alpha)
	}
	return one(f(x, y))
}

func decompFloatPower(d *Decomp) []*ir.Value {
	t := d.N.Out().Type.DType
	a, b := d.N.Arg(0), d.N.Arg(1)
	if isTensor(a) {
		a = ir.Ref(d.cast(a.Value(), t))
	}
	if isTensor(b) {
		b = ir.Ref(d.cast(b.Value(), t))
	}
	return d.back(d.pow(a, b))
}

func decompMaxOther(d *Decomp) []*ir.Value {
	return one(d.v(op.AtenMaximumDefault(d.Builder, d.in(0), d.in(1))))
}

func decompMinOther(d *Decomp) []*ir.Value {
	return one(d.v(op.AtenMinimumDefault(d.Builder, d.in(0), d.in(1))))
}

// common are the operands in the type of the result.
func (d *Decomp) common() (x, y *ir.Value) {
	t := d.N.Out().Type.DType
	return d.cast(d.in(0), t), d.cast(d.in(1), t)
}

func decompFmax(d *Decomp) []*ir.Value {
	x, y := d.common()
	if kindOf(x.Type.DType) < 2 {
		return one(d.max(x, y))
	}
	// A NaN loses against a number.
	return one(d.where(d.or(d.ge(x, y), d.isNaN(y)), x, y))
}

func decompFmin(d *Decomp) []*ir.Value {
	x, y := d.common()
	if kindOf(x.Type.DType) < 2 {
		return one(d.min(x, y))
	}
	return one(d.where(d.or(d.le(x, y), d.isNaN(y)), x, y))
}

func decompMaximum(d *Decomp) []*ir.Value {
	x, y := d.common()
	if kindOf(x.Type.DType) < 2 {
		return one(d.where(d.ge(x, y), x, y))
	}
	return one(d.where(d.or(d.ge(x, y), d.isNaN(x)), x, y))
}

func decompMinimum(d *Decomp) []*ir.Value {
	x, y := d.common()
	if kindOf(x.Type.DType) < 2 {
		return one(d.where(d.le(x, y), x, y))
	}
	return one(d.where(d.or(d.le(x, y), d.isNaN(x)), x, y))
}

func decompHypot(d *Decomp) []*ir.Value {
	x, y := d.common()
	x, y = d.abs(d.opmath(x)), d.abs(d.opmath(y))
	// Scaled by the larger one, so that squares do not overflow.
	big, small := d.max(x, y), d.min(x, y)
	r := d.div(small, big)
	h := d.mul(big, d.sqrt(d.add(d.mul(r, r), 1.0)))
	inf := d.eq(big, math.Inf(1))
	return d.back(d.where(d.or(d.eq(big, 0.0), inf), big, h))
}

// negative tells the sign bit: of zeros by the reciprocal.
func (d *Decomp) negative(x *ir.Value) *ir.Value {
	return d.or(d.lt(x, 0.0), d.and(d.eq(x, 0.0), d.lt(d.reciprocal(x), 0.0)))
}

func decompCopysign(d *Decomp) []*ir.Value {
	x, y := d.common()
	a := d.abs(x)
	return one(d.where(d.negative(y), d.neg(a), a))
}

func decompSignbit(d *Decomp) []*ir.Value {
	x := d.in(0)
	if kindOf(x.Type.DType) < 2 {
		return one(d.lt(x, 0))
	}
	return one(d.negative(x))
}

func decompLogaddexp(d *Decomp) []*ir.Value {
	x, y := d.common()
	x, y = d.opmath(x), d.opmath(y)
	m := d.max(x, y)
	s := d.add(m, d.log1p(d.exp(d.neg(d.abs(d.sub(x, y))))))
	// Two equal infinities have no difference.
	return d.back(d.where(d.and(d.eq(x, y), d.v(op.AtenIsinfDefault(d.Builder, x))), x, s))
}

func decompLogaddexp2(d *Decomp) []*ir.Value {
	x, y := d.common()
	x, y = d.opmath(x), d.opmath(y)
	m := d.max(x, y)
	e := d.pow(2.0, d.neg(d.abs(d.sub(x, y))))
	s := d.add(m, d.div(d.log1p(e), math.Ln2))
	return d.back(d.where(d.and(d.eq(x, y), d.v(op.AtenIsinfDefault(d.Builder, x))), x, s))
}

// decompGcd runs Euclid's algorithm as many steps as the largest numbers of the type need.
func decompGcd(d *Decomp) []*ir.Value {
	x, y := d.common()
	a, b := d.abs(x), d.abs(y)
	steps := map[int64]int{1: 12, 2: 24, 4: 46, 8: 92}[x.Type.DType.Size()]
	for range steps {
		zero := d.eq(b, 0)
		rest := d.v(op.AtenFmodTensor(d.Builder, a, d.where(zero, 1, b)))
		a, b = d.where(zero, a, b), d.where(zero, b, rest)
	}
	return one(a)
}

func decompLcm(d *Decomp) []*ir.Value {
	x, y := d.common()
	g := d.v(op.AtenGcdDefault(d.Builder, x, y))
	zero := d.eq(g, 0)
	return one(d.where(zero, 0, d.abs(d.mul(d.floorDiv(x, d.where(zero, 1, g)), y))))
}

func decompHeaviside(d *Decomp) []*ir.Value {
	x, v := d.common()
	step := d.cast(d.gt(x, 0), x.Type.DType)
	y := d.where(d.eq(x, 0), v, step)
	if kindOf(x.Type.DType) == 2 {
		y = d.where(d.isNaN(x), 0.0, y)
	}
	return one(y)
}

func decompLdexp(d *Decomp) []*ir.Value {
	return d.back(d.mul(d.in(0), d.pow(2.0, d.in(1))))
}

func decompXlogy(d *Decomp) []*ir.Value {
	t := d.N.Out().Type.DType
	x, y := d.cast(d.in(0), t), d.cast(d.in(1), t)
	z := d.where(d.eq(x, 0.0), 0.0, d.mul(x, d.log(y)))
	return one(d.where(d.isNaN(y), y, z))
}

func decompXlog1py(d *Decomp) []*ir.Value {
	t := d.N.Out().Type.DType
	x, y := d.cast(d.in(0), t), d.cast(d.in(1), t)
	z := d.where(d.eq(x, 0.0), 0.0, d.mul(x, d.log1p(y)))
	return one(d.where(d.isNaN(y), y, z))
}

// decompShift multiplies or divides by powers of two, for types and kernels that do not shift. Negative counts and those
// past the width are not defined.
// decompShift multiplies or divides by a power of two. Beyond the bits of the type nothing is left but the sign, of a shift to
// the left nothing at all.
func decompShift(d *Decomp) []*ir.Value {
	t := d.N.Out().Type.DType
	left := slices.Contains([]string{"bitwise_left_shift", "__lshift__"}, d.N.Info().Schema.Base)
	y := d.cast(d.cast(d.in(0), t), ops.Int64)
	const most = 62 // the largest power of two in 64 bits
	if n, ok := d.N.Arg(1).Int(); ok && n >= 0 && n <= most {
		if left {
			return d.back(d.mul(y, int64(1)<<n))
		}
		return d.back(d.floorDiv(y, int64(1)<<n))
	}
	k := d.cast(d.cast(d.in(1), t), ops.Int64)
	zero := d.scalar(0, ops.Int64)
	two := d.cast(d.pow(d.full(2, ops.Int64), d.clamp(k, 0, most)), ops.Int64)
	in := d.and(d.ge(k, 0), d.le(k, most))
	if left {
		z := d.mul(y, two)
		if t == ops.Int64 {
			top := d.eq(k, most+1)
			z = d.where(top, d.mul(d.mul(y, two), 2), z)
			in = d.or(in, top)
		}
		return d.back(d.where(in, z, zero))
	}
	return d.back(d.where(in, d.floorDiv(y, two), d.where(d.lt(y, 0), d.scalar(-1, ops.Int64), zero)))
}

func decompDunder(d *Decomp) []*ir.Value {
	base := map[string]string{
		"__and__": "bitwise_and", "__or__": "bitwise_or", "__xor__": "bitwise_xor",
		"__lshift__": "bitwise_left_shift", "__rshift__": "bitwise_right_shift",
	}[d.N.Info().Schema.Base]
	over := ".Tensor"
	if !isTensor(d.N.Arg(1)) {
		over = ".Scalar"
		if base == "bitwise_left_shift" || base == "bitwise_right_shift" {
			over = ".Tensor_Scalar"
		}
	}
	id := ops.Lookup("aten." + base + over)
	if id == ops.Unknown {
		return nil
	}
	n := op.New(d.Builder, id, []ir.Arg{ir.Ref(d.in(0)), d.N.Arg(1)})
	return d.outs(n)
}

func decompLerp(d *Decomp) []*ir.Value {
	a, b, w := d.in(0), d.in(1), d.N.Arg(2)
	out := d.N.Out().Type.DType
	x, y := d.opmath(a), d.opmath(b)
	if v := w.Value(); v != nil && v.Type.IsTensor() {
		w = ir.Ref(d.opmath(v))
	}
	return one(d.cast(d.add(x, d.mul(d.sub(y, x), w)), out))
}

func (d *Decomp) addProduct(f func(x, y any) *ir.Value) []*ir.Value {
	x, a, b, value := d.opmathFloat(d.in(0)), d.opmathFloat(d.in(1)), d.opmathFloat(d.in(2)), d.N.Arg(3)
	p := f(a, b)
	if !value.Equal(ir.Int(1)) {
		p = d.mul(p, value)
	}
	return d.back(d.add(x, p))
}

func decompAddcmul(d *Decomp) []*ir.Value { return d.addProduct(d.mul) }

func decompAddcdiv(d *Decomp) []*ir.Value { return d.addProduct(d.div) }

func decompWhereScalar(d *Decomp) []*ir.Value {
	t := d.N.Out().Type.DType
	side := func(a ir.Arg) *ir.Value {
		if isTensor(a) {
			return d.cast(a.Value(), t)
		}
		return d.scalar(a, t)
	}
	return one(d.v(op.AtenWhereSelf(d.Builder, d.in(0), side(d.N.Arg(1)), side(d.N.Arg(2)))))
}

// decompFloorDivide serves numbers in place of tensors.
// truncated tells where the truncating quotient is one more than floored q = x/y: where that is negative and not exact.
func (d *Decomp) truncated(x *ir.Value, y any, q *ir.Value) *ir.Value {
	return d.cast(d.and(d.lt(q, 0), d.ne(d.mul(q, y), x)), ops.Int64)
}

// wideOperands are the operands of a node on integers as int64; a number stays one.
func (d *Decomp) wideOperands() (x *ir.Value, y any) {
	x = d.cast(d.in(0), ops.Int64)
	if isTensor(d.N.Arg(1)) {
		return x, d.cast(d.in(1), ops.Int64)
	}
	return x, d.N.Arg(1)
}

// decompDivMode truncates quotients of integers without going through floating point. Others are the kernel's.
func decompDivMode(d *Decomp) []*ir.Value {
	mode, _ := d.named("rounding_mode").Str()
	if kindOf(d.N.Out().Type.DType) != 1 || mode != "trunc" {
		return nil
	}
	x, y := d.wideOperands()
	q := d.floorDiv(x, y)
	return d.back(d.add(q, d.truncated(x, y, q)))
}

// decompFmod is the remainder of truncating division of integers. Others are the kernel's.
func decompFmod(d *Decomp) []*ir.Value {
	if kindOf(d.N.Out().Type.DType) != 1 {
		return nil
	}
	x, y := d.wideOperands()
	q := d.floorDiv(x, y)
	return d.back(d.sub(x, d.mul(d.add(q, d.truncated(x, y, q)), y)))
}

// decompRound leaves integers as they are. Others are the kernel's.
func decompRound(d *Decomp) []*ir.Value {
	if x := d.in(0); kindOf(x.Type.DType) == 1 {
		return one(x)
	}
	return nil
}

func decompFloorDivide(d *Decomp) []*ir.Value {
	return one(d.v(op.AtenDivTensorMode(d.Builder, d.in(0), d.in(1), ir.Str("floor"))))
}

// Unary operators.

func decompExp2(d *Decomp) []*ir.Value {
	x := d.cast(d.in(0), d.N.Out().Type.DType)
	return d.back(d.pow(2.0, x))
}

func decompErfc(d *Decomp) []*ir.Value {
	x := d.opmath(d.in(0))
	return d.back(d.sub(1.0, d.v(op.AtenErfDefault(d.Builder, x))))
}

// poly evaluates a polynomial, the highest coefficient first.
func (d *Decomp) poly(x *ir.Value, cs ...float64) *ir.Value {
	var y *ir.Value
	for i, c := range cs {
		switch i {
		case 0:
			y = d.mul(x, c)
		case len(cs) - 1:
			y = d.add(y, c)
		default:
			y = d.mul(d.add(y, c), x)
		}
	}
	return y
}

// decompErfinv approximates by Giles's polynomials, then improves by two steps of Newton's method.
func decompErfinv(d *Decomp) []*ir.Value {
	x := d.opmath(d.in(0))
	w := d.neg(d.log(d.mul(d.sub(1.0, x), d.add(x, 1.0))))
	a := d.sub(w, 2.5)
	p := d.poly(a, 2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164, 0.246640727, 1.50140941)
	b := d.sub(d.sqrt(w), 3.0)
	q := d.poly(b, -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047, 1.00167406, 2.83297682)
	y := d.mul(d.where(d.lt(w, 5.0), p, q), x)
	for range 2 {
		e := d.sub(d.v(op.AtenErfDefault(d.Builder, y)), x)
		step := d.div(e, d.mul(d.exp(d.neg(d.mul(y, y))), 2/math.Sqrt(math.Pi)))
		// At the ends, where the derivative vanishes, the step is not a number.
		y = d.where(d.lt(d.abs(step), 0.1), d.sub(y, step), y)
	}
	inf := math.Inf(1)
	y = d.where(d.eq(x, 1.0), inf, d.where(d.eq(x, -1.0), -inf, y))
	return d.back(y)
}

// lgammaPos is Lanczos's approximation for x >= 0.5.
func (d *Decomp) lgammaPos(x *ir.Value) *ir.Value {
	z := d.sub(x, 1.0)
	s := d.add(d.mul(z, 0.0), 0.99999999999980993)
	for i, c := range []float64{676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059, 12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7} {
		s = d.add(s, d.div(c, d.add(z, float64(i+1))))
	}
	t := d.add(z, 7.5)
	return d.add(d.sub(d.mul(d.add(z, 0.5), d.log(t)), t), d.add(d.log(s), 0.5*math.Log(2*math.Pi)))
}

func decompLgamma(d *Decomp) []*ir.Value {
	x := d.opmath(d.in(0))
	// Below one half by reflection: lgamma(x) = log(pi/|sin(pi x)|) - lgamma(1-x).
	small := d.lt(x, 0.5)
	g := d.lgammaPos(d.where(small, d.sub(1.0, x), x))
	frac := d.sub(x, d.floor(x))
	refl := d.sub(math.Log(math.Pi), d.add(d.log(d.abs(d.sin(d.mul(frac, math.Pi)))), g))
	y := d.where(small, refl, g)
	inf := math.Inf(1)
	pole := d.and(d.le(x, 0.0), d.eq(frac, 0.0))
	y = d.where(d.or(pole, d.v(op.AtenIsinfDefault(d.Builder, x))), inf, y)
	return d.back(d.where(d.or(d.eq(x, 1.0), d.eq(x, 2.0)), 0.0, y))
}

func decompDigamma(d *Decomp) []*ir.Value {
	x := d.opmath(d.in(0))
	small := d.lt(x, 0.5)
	z := d.where(small, d.sub(1.0, x), x)
	// Raised above six by the recurrence, then the asymptotic series.
	sum := d.mul(z, 0.0)
	for range 6 {
		low := d.lt(z, 6.0)
		sum = d.where(low, d.sub(sum, d.reciprocal(z)), sum)
		z = d.where(low, d.add(z, 1.0), z)
	}
	inv := d.reciprocal(d.mul(z, z))
	series := d.mul(inv, d.poly(inv, -1.0/132, 1.0/240, -1.0/252, 1.0/120, -1.0/12))
	y := d.add(sum, d.add(d.sub(d.log(z), d.div(0.5, z)), series))
	frac := d.sub(x, d.floor(x))
	a := d.mul(frac, math.Pi)
	refl := d.sub(y, d.mul(d.div(d.cos(a), d.sin(a)), math.Pi))
	y = d.where(small, refl, y)
	y = d.where(d.eq(x, 0.0), d.neg(d.reciprocal(x)), d.where(d.and(d.lt(x, 0.0), d.eq(frac, 0.0)), math.NaN(), y))
	return d.back(y)
}

func decompMvlgamma(d *Decomp) []*ir.Value {
	x := d.cast(d.in(0), d.N.Out().Type.DType)
	p, ok := d.N.Arg(1).Int()
	if !ok || p < 1 || p > 64 {
		return nil
	}
	var y *ir.Value
	for j := range p {
		t := d.v(op.AtenLgammaDefault(d.Builder, d.sub(x, float64(j)/2)))
		if y == nil {
			y = t
		} else {
			y = d.add(y, t)
		}
	}
	return one(d.add(y, float64(p)*float64(p-1)/4*math.Log(math.Pi)))
}

func decompSinc(d *Decomp) []*ir.Value {
	x := d.opmath(d.in(0))
	a := d.mul(x, math.Pi)
	return d.back(d.where(d.eq(x, 0.0), 1.0, d.div(d.sin(a), a)))
}

func decompEntr(d *Decomp) []*ir.Value {
	x := d.opmath(d.in(0))
	y := d.where(d.gt(x, 0.0), d.neg(d.mul(x, d.log(x))), d.where(d.eq(x, 0.0), 0.0, negInf))
	return d.back(d.where(d.isNaN(x), x, y))
}

func decompNdtr(d *Decomp) []*ir.Value {
	x := d.opmath(d.in(0))
	return d.back(d.mul(d.add(d.v(op.AtenErfDefault(d.Builder, d.mul(x, math.Sqrt2/2))), 1.0), 0.5))
}

func decompNdtri(d *Decomp) []*ir.Value {
	x := d.opmath(d.in(0))
	return d.back(d.mul(d.v(op.AtenErfinvDefault(d.Builder, d.sub(d.mul(x, 2.0), 1.0))), math.Sqrt2))
}

func decompLogit(d *Decomp) []*ir.Value {
	x := d.opmath(d.in(0))
	if eps, ok := d.N.Arg(1).Float(); ok {
		x = d.clamp(x, eps, 1-eps)
	}
	return d.back(d.log(d.div(x, d.sub(1.0, x))))
}

func decompDeg2rad(d *Decomp) []*ir.Value { return d.back(d.mul(d.opmath(d.in(0)), math.Pi/180)) }

func decompRad2deg(d *Decomp) []*ir.Value { return d.back(d.mul(d.opmath(d.in(0)), 180/math.Pi)) }

func decompRoundDecimals(d *Decomp) []*ir.Value {
	x := d.in(0)
	k, ok := d.named("decimals").Int()
	if !ok {
		return nil
	}
	if kindOf(x.Type.DType) < 2 {
		if k >= 0 {
			return one(x)
		}
		return nil
	}
	x = d.opmath(x)
	round := func(v *ir.Value) *ir.Value { return d.v(op.AtenRoundDefault(d.Builder, v)) }
	if k == 0 {
		return d.back(round(x))
	}
	ten := math.Pow(10, math.Abs(float64(k)))
	if k > 0 {
		return d.back(d.div(round(d.mul(x, ten)), ten))
	}
	return d.back(d.mul(round(d.div(x, ten)), ten))
}

func decompFrac(d *Decomp) []*ir.Value {
	x := d.in(0)
	return one(d.sub(x, d.v(op.AtenTruncDefault(d.Builder, x))))
}

func decompSgn(d *Decomp) []*ir.Value {
	x := d.in(0)
	if x.Type.DType.IsComplex() {
		return nil
	}
	return one(d.v(op.AtenSignDefault(d.Builder, x)))
}

func decompSign(d *Decomp) []*ir.Value {
	x := d.in(0)
	return one(d.sub(d.cast(d.gt(x, 0), x.Type.DType), d.cast(d.lt(x, 0), x.Type.DType)))
}

func decompSquare(d *Decomp) []*ir.Value {
	x := d.in(0)
	return d.back(d.mul(x, x))
}

func decompIsfinite(d *Decomp) []*ir.Value {
	x := d.in(0)
	if kindOf(x.Type.DType) < 2 {
		return one(d.full(true, ops.Bool, x.Type.Shape...))
	}
	return one(d.lt(d.abs(x), math.Inf(1)))
}

func (d *Decomp) isInfinity(inf float64) []*ir.Value {
	x := d.in(0)
	if kindOf(x.Type.DType) < 2 {
		return one(d.full(false, ops.Bool, x.Type.Shape...))
	}
	return one(d.eq(x, inf))
}

func decompIsneginf(d *Decomp) []*ir.Value { return d.isInfinity(negInf) }

func decompIsposinf(d *Decomp) []*ir.Value { return d.isInfinity(math.Inf(1)) }

func decompIsreal(d *Decomp) []*ir.Value {
	x := d.in(0)
	if x.Type.DType.IsComplex() {
		return nil
	}
	return one(d.full(true, ops.Bool, x.Type.Shape...))
}

func decompNanToNum(d *Decomp) []*ir.Value {
	x := d.in(0)
	if kindOf(x.Type.DType) < 2 {
		return one(x)
	}
	largest := map[ir.DType]float64{ops.Float16: 65504, ops.BFloat16: 3.3895313892515355e+38, ops.Float32: math.MaxFloat32, ops.Float64: math.MaxFloat64}[x.Type.DType]
	if largest == 0 {
		return nil
	}
	y := d.where(d.isNaN(x), floatArg(d.N.Arg(1), 0), x)
	y = d.where(d.eq(x, math.Inf(1)), floatArg(d.N.Arg(2), largest), y)
	return one(d.where(d.eq(x, negInf), floatArg(d.N.Arg(3), -largest), y))
}

func decompClampMax(d *Decomp) []*ir.Value { return d.back(d.min(d.in(0), d.N.Arg(1))) }

func decompClampMin(d *Decomp) []*ir.Value { return d.back(d.max(d.in(0), d.N.Arg(1))) }

func decompIsclose(d *Decomp) []*ir.Value {
	x, y := d.in(0), d.in(1)
	close := d.eq(x, y)
	if boolArg(d.named("equal_nan")) && kindOf(x.Type.DType) == 2 {
		close = d.or(close, d.and(d.isNaN(x), d.isNaN(y)))
	}
	rtol, atol := floatArg(d.named("rtol"), 1e-5), floatArg(d.named("atol"), 1e-8)
	if rtol == 0 && atol == 0 {
		return one(close)
	}
	fx, fy := d.opmath(x), d.opmath(y)
	bound := d.add(d.abs(d.mul(fy, rtol)), atol)
	diff := d.abs(d.sub(fx, fy))
	near := d.and(d.lt(diff, math.Inf(1)), d.le(diff, bound))
	return one(d.or(close, near))
}

func decompIsin(d *Decomp) []*ir.Value {
	var elems, test *ir.Value
	elems, test = d.in(0), d.in(1)
	r := elems.Type.Rank()
	flat := d.view(test, test.Type.Numel())
	hit := d.any(d.eq(d.unsqueeze(elems, r), flat), false, r)
	if boolArg(d.named("invert")) {
		hit = d.not(hit)
	}
	return one(hit)
}

func decompZero(d *Decomp) []*ir.Value {
	x := d.in(0)
	return one(d.full(0, x.Type.DType, x.Type.Shape...))
}

// Complex numbers.

func decompPolar(d *Decomp) []*ir.Value {
	r, a := d.in(0), d.in(1)
	return one(d.v(op.AtenComplexDefault(d.Builder, d.mul(r, d.cos(a)), d.mul(r, d.sin(a)))))
}

func decompComplex(d *Decomp) []*ir.Value {
	re, im := d.in(0), d.in(1)
	shape := d.N.Out().Type.Shape
	pair := d.stack(len(shape), d.expand(re, shape...), d.expand(im, shape...))
	return one(d.v(op.AtenViewAsComplexDefault(d.Builder, pair)))
}

func (d *Decomp) part(i int) []*ir.Value {
	x := d.in(0)
	if !x.Type.DType.IsComplex() {
		if i == 0 {
			return one(x)
		}
		return nil
	}
	p := d.v(op.AtenViewAsRealDefault(d.Builder, x))
	return one(d.pickAt(p, x.Type.Rank(), i))
}

func decompReal(d *Decomp) []*ir.Value { return d.part(0) }

func decompImag(d *Decomp) []*ir.Value { return d.part(1) }

func decompConj(d *Decomp) []*ir.Value {
	x := d.in(0)
	if !x.Type.DType.IsComplex() {
		return one(x)
	}
	return one(d.v(op.AtenUnderConjPhysicalDefault(d.Builder, x)))
}

func decompAngle(d *Decomp) []*ir.Value {
	x := d.in(0)
	if !x.Type.DType.IsComplex() {
		y := d.where(d.lt(x, 0), math.Pi, d.full(0.0, d.N.Out().Type.DType))
		y = d.cast(y, d.N.Out().Type.DType)
		if kindOf(x.Type.DType) == 2 {
			y = d.where(d.isNaN(x), x, y)
		}
		return one(y)
	}
	p := d.v(op.AtenViewAsRealDefault(d.Builder, x))
	r := x.Type.Rank()
	return one(d.v(op.AtenAtan2Default(d.Builder, d.pickAt(p, r, 1), d.pickAt(p, r, 0))))
}
