package infer

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// x is the first argument as a tensor.
func (c *Call) x() ir.Type { return c.tensor(c.Op.Info().Schema.Args[0].Name) }

// map1 is the result of a function of every element of x.
func (c *Call) map1(d ops.DType, x ir.Type) ([]ir.Type, error) {
	return one(c.elementwise(d, x.Shape, operand{t: x}))
}

// mapN is the result of a function of the elements of operands that broadcast.
func (c *Call) mapN(d ops.DType, xs ...operand) ([]ir.Type, error) {
	shapes := make([][]sym.Expr, len(xs))
	for i, x := range xs {
		shapes[i] = x.t.Shape
	}
	return one(c.elementwise(d, c.broadcast(shapes...), xs...))
}

// pair is the first two arguments as operands.
func (c *Call) pair() (a, b operand) {
	s := c.Op.Info().Schema.Args
	return c.operand(s[0].Name), c.operand(s[1].Name)
}

// inferUnary is the rule of functions that keep the element type.
func inferUnary(c *Call) ([]ir.Type, error) {
	x := c.x()
	return c.map1(x.DType, x)
}

// inferUnaryReal is that of functions that keep the element type and know no complex numbers.
func inferUnaryReal(c *Call) ([]ir.Type, error) {
	x := c.x()
	noComplex(x.DType)
	return c.map1(x.DType, x)
}

// inferUnaryFloat is that of functions whose result is floating for integers too.
func inferUnaryFloat(c *Call) ([]ir.Type, error) {
	x := c.x()
	return c.map1(floatOf(x.DType), x)
}

// inferUnaryBool is that of predicates.
func inferUnaryBool(c *Call) ([]ir.Type, error) { return c.map1(ops.Bool, c.x()) }

// inferFloatOnly is that of functions that are defined for floating types alone.
func inferFloatOnly(c *Call) ([]ir.Type, error) {
	x := c.x()
	if !x.DType.IsFloat() {
		failf("%s is %s, a floating point type is needed", c.Op.Info().Schema.Args[0].Name, x.DType)
	}
	return c.map1(x.DType, x)
}

func noComplex(d ops.DType) {
	if d.IsComplex() {
		failf("complex numbers (%s) are not supported", d)
	}
}

func noBool(d ops.DType) {
	if d == ops.Bool {
		failf("bool tensors are not supported")
	}
}

func inferAbs(c *Call) ([]ir.Type, error) {
	x := c.x()
	return c.map1(x.DType.ToReal(), x)
}

func inferNeg(c *Call) ([]ir.Type, error) {
	x := c.x()
	noBool(x.DType)
	return c.map1(x.DType, x)
}

func inferPositive(c *Call) ([]ir.Type, error) {
	x := c.x()
	noBool(x.DType)
	return one(x)
}

// inferSquare: square is pow(x, 2), so bools become int64.
func inferSquare(c *Call) ([]ir.Type, error) {
	x := c.x()
	return c.map1(resultType(operand{dtype: x.DType, t: x}, operand{dtype: ops.Int64, number: true}), x)
}

func inferBitwiseNot(c *Call) ([]ir.Type, error) {
	x := c.x()
	bits(x.DType)
	return c.map1(x.DType, x)
}

func bits(d ops.DType) {
	if d != ops.Bool && !d.IsInt() {
		failf("bitwise operators need integers or bools, not %s", d)
	}
}

// inferConj: the conjugate of real numbers is the input itself.
func inferConj(c *Call) ([]ir.Type, error) { return one(c.x()) }

func inferAngle(c *Call) ([]ir.Type, error) {
	x := c.x()
	return c.map1(floatOf(x.DType).ToReal(), x)
}

// inferRealPart: a view of every other element; of real input the input itself.
func inferRealPart(c *Call) ([]ir.Type, error) {
	x := c.x()
	if !x.DType.IsComplex() {
		if c.Op == ops.AtenImagDefault {
			failf("the imaginary part needs complex numbers, not %s", x.DType)
		}
		return one(x)
	}
	st := make([]sym.Expr, x.Rank())
	for i, s := range strides(x) {
		st[i] = sym.Mul(s, sym.Const(2))
	}
	return one(ir.Type{DType: x.DType.ToReal(), Shape: x.Shape, Strides: st})
}

func inferPolygamma(c *Call) ([]ir.Type, error) {
	x := c.tensor("self")
	return c.map1(floatOf(x.DType), x)
}

func inferFrexp(c *Call) ([]ir.Type, error) {
	x := c.x()
	floating("self", x.DType)
	t := c.elementwise(x.DType, x.Shape, operand{t: x})
	e := t
	e.DType = ops.Int32
	return []ir.Type{t, e}, nil
}

func inferClamp(c *Call) ([]ir.Type, error) {
	x := c.operand("self")
	noComplex(x.dtype)
	xs := []operand{x}
	for _, n := range []string{"min", "max"} {
		if !c.arg(n).IsNone() {
			xs = append(xs, c.operand(n))
		}
	}
	if len(xs) == 1 {
		failf("one of min and max has to be given")
	}
	return c.mapN(resultType(xs...), xs...)
}

func inferClampOne(c *Call) ([]ir.Type, error) {
	a, b := c.pair()
	noComplex(a.dtype)
	return c.mapN(resultType(a, b), a, b)
}

// inferBinary is the rule of functions of two operands with type promotion.
func inferBinary(c *Call) ([]ir.Type, error) {
	a, b := c.pair()
	return c.mapN(resultType(a, b), a, b)
}

// inferArith is inferBinary with a check of alpha.
func inferArith(c *Call) ([]ir.Type, error) {
	a, b := c.pair()
	d := resultType(a, b)
	c.checkAlpha("alpha", d)
	return c.mapN(d, a, b)
}

// checkAlpha refuses a factor of a higher category than the result.
func (c *Call) checkAlpha(name string, d ops.DType) {
	if a := c.arg(name); !a.IsNone() {
		if o, ok := scalarOperand(a); ok && category(o.dtype) > category(d) && category(d) < 2 && category(o.dtype) >= 2 {
			failf("%s is %s, which the result's type %s cannot hold", name, o.dtype, d)
		}
	}
}

func inferSub(c *Call) ([]ir.Type, error) {
	a, b := c.pair()
	if a.dtype == ops.Bool && b.dtype == ops.Bool {
		failf("bools cannot be subtracted; use logical_xor")
	}
	d := resultType(a, b)
	c.checkAlpha("alpha", d)
	return c.mapN(d, a, b)
}

func inferDivMode(c *Call) ([]ir.Type, error) {
	switch m := c.str("rounding_mode"); m {
	case "":
		return inferBinaryFloat(c)
	case "trunc", "floor":
		return inferBinary(c)
	default:
		failf("rounding_mode is %q; trunc, floor and None are known", m)
	}
	return nil, nil
}

// inferBinaryFloat is that of functions of two operands whose result is floating for integers too.
func inferBinaryFloat(c *Call) ([]ir.Type, error) {
	a, b := c.pair()
	return c.mapN(floatOf(resultType(a, b)), a, b)
}

func inferBinaryFloatOnly(c *Call) ([]ir.Type, error) {
	a, b := c.pair()
	d := resultType(a, b)
	floating("the operands' common type", d)
	return c.mapN(d, a, b)
}

func inferPow(c *Call) ([]ir.Type, error) {
	a, b := c.pair()
	d := resultType(a, b)
	if k, ok := c.arg("exponent").Int(); ok && k < 0 && !d.IsFloat() && !d.IsComplex() {
		failf("integers to the power of a negative integer (%d)", k)
	}
	return c.mapN(d, a, b)
}

func inferFloatPower(c *Call) ([]ir.Type, error) {
	a, b := c.pair()
	d := ops.Float64
	if a.dtype.IsComplex() || b.dtype.IsComplex() {
		d = ops.Complex128
	}
	return c.mapN(d, a, b)
}

func inferHeaviside(c *Call) ([]ir.Type, error) {
	a, b := c.pair()
	sameDType("self", a.t, "values", b.t)
	noComplex(a.dtype)
	return c.mapN(a.dtype, a, b)
}

// inferLdexp: self * 2.0**other.
func inferLdexp(c *Call) ([]ir.Type, error) {
	a, b := c.pair()
	p := b
	p.dtype = resultType(operand{dtype: ops.Float32, number: true}, b)
	return c.mapN(resultType(a, p), a, b)
}

func inferBitwise(c *Call) ([]ir.Type, error) {
	a, b := c.pair()
	d := resultType(a, b)
	bits(d)
	return c.mapN(d, a, b)
}

func inferShift(c *Call) ([]ir.Type, error) {
	a, b := c.pair()
	d := resultType(a, b)
	noBool(d)
	bits(d)
	return c.mapN(d, a, b)
}

func inferLerp(c *Call) ([]ir.Type, error) {
	a, b := c.operand("self"), c.operand("end")
	sameDType("self", a.t, "end", b.t)
	floating("self", a.dtype)
	w := c.operand("weight")
	if !w.number {
		sameDType("self", a.t, "weight", w.t)
	}
	return c.mapN(a.dtype, a, b, w)
}

func inferTernary(c *Call) ([]ir.Type, error) {
	xs := []operand{c.operand("self"), c.operand("tensor1"), c.operand("tensor2")}
	d := resultType(xs...)
	if c.Op.Info().Schema.Base[:7] == "addcdiv" && !xs[1].dtype.IsFloat() && !xs[2].dtype.IsFloat() && !d.IsFloat() && !d.IsComplex() {
		failf("addcdiv of integers is not defined; use true or floor division")
	}
	return c.mapN(d, xs...)
}

func inferWhere(c *Call) ([]ir.Type, error) {
	cond := c.operand("condition")
	if cond.dtype != ops.Bool && cond.dtype != ops.Uint8 {
		failf("condition is %s, bool is needed", cond.dtype)
	}
	a, b := c.operand("self"), c.operand("other")
	return c.mapN(resultType(a, b), cond, a, b)
}

func inferComplex(c *Call) ([]ir.Type, error) {
	a, b := c.pair()
	names := c.Op.Info().Schema.Args
	sameDType(names[0].Name, a.t, names[1].Name, b.t)
	if d := a.dtype; d != ops.Float16 && d != ops.Float32 && d != ops.Float64 {
		failf("complex numbers cannot be made of %s", d)
	}
	return c.mapN(a.dtype.ToComplex(), a, b)
}

// inferCompare is the rule of comparisons.
func inferCompare(c *Call) ([]ir.Type, error) {
	a, b := c.pair()
	resultType(a, b)
	return c.mapN(ops.Bool, a, b)
}

func inferCompareOrdered(c *Call) ([]ir.Type, error) {
	a, b := c.pair()
	noComplex(a.dtype)
	noComplex(b.dtype)
	return inferCompare(c)
}

func inferCompareSame(c *Call) ([]ir.Type, error) {
	a, b := c.pair()
	sameDType("self", a.t, "other", b.t)
	return c.mapN(ops.Bool, a, b)
}

func inferBoolScalar(c *Call) ([]ir.Type, error) { return one(ir.ScalarType(ir.KindBool)) }

func inferIsin(c *Call) ([]ir.Type, error) {
	a := c.operand(c.first("elements", "element"))
	return one(ir.TensorType(ops.Bool, a.t.Shape...))
}

// inferCopyTwin is the rule of a view's _copy twin: the view's shape, laid out contiguously.
func inferCopyTwin(c *Call) ([]ir.Type, error) {
	twin := *c
	twin.Op = c.Op.Info().SameAs
	ts, err := c.rules[twin.Op](&twin)
	for i := range ts {
		ts[i].Strides = nil
	}
	return ts, err
}
