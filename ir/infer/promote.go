package infer

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// operand is a tensor or a number among the operands of an element-wise operator.
type operand struct {
	dtype  ops.DType
	number bool
	t      ir.Type
}

// scalarOperand makes an operand of a number.
func scalarOperand(a ir.Arg) (operand, bool) {
	o := operand{number: true}
	switch a.Kind() {
	case ir.ArgInt:
		o.dtype = ops.Int64
		switch x, _ := a.Expr(); x.Kind() {
		case sym.Float:
			o.dtype = ops.Float32
		case sym.Bool:
			o.dtype = ops.Bool
		}
	case ir.ArgFloat:
		o.dtype = ops.Float32
	case ir.ArgBool:
		o.dtype = ops.Bool
	case ir.ArgComplex:
		o.dtype = ops.Complex64
	case ir.ArgValue:
		switch a.Value().Type.Kind {
		case ir.KindInt:
			o.dtype = ops.Int64
		case ir.KindFloat:
			o.dtype = ops.Float32
		case ir.KindBool:
			o.dtype = ops.Bool
		default:
			return o, false
		}
	default:
		return o, false
	}
	o.t = ir.TensorType(o.dtype)
	return o, true
}

// operand is the argument of that name as an operand.
func (c *Call) operand(name string) operand {
	a := c.arg(name)
	if v := a.Value(); v != nil && v.Type.IsTensor() {
		return operand{dtype: v.Type.DType, t: v.Type}
	}
	o, ok := scalarOperand(a)
	if !ok {
		failf("argument %s is neither a tensor nor a number", name)
	}
	return o
}

// category orders types: bool, integers, floats, complex.
func category(d ops.DType) int {
	switch {
	case d == ops.DTypeNone:
		return -1
	case d.IsComplex():
		return 3
	case d.IsFloat():
		return 2
	case d == ops.Bool:
		return 0
	}
	return 1
}

func isFloat8(d ops.DType) bool { return d >= ops.Float8E4M3FN }

func isWideUnsigned(d ops.DType) bool { return d == ops.Uint16 || d == ops.Uint32 || d == ops.Uint64 }

// Promote is the smallest type that holds both, torch's promote_types.
func Promote(a, b ops.DType) (ops.DType, bool) {
	switch {
	case a == b, b == ops.DTypeNone:
		return a, true
	case a == ops.DTypeNone:
		return b, true
	case isFloat8(a) || isFloat8(b):
		return 0, false
	}
	if category(a) > category(b) {
		a, b = b, a
	}
	// b is of the category that wins.
	switch category(b) {
	case 3:
		if category(a) == 3 {
			return max(a, b), true
		}
		if category(a) < 2 {
			return b, true
		}
		switch {
		case a == ops.Float64:
			return ops.Complex128, true
		case a == ops.Float16:
			return b, true
		case b == ops.ComplexHalf:
			return ops.Complex64, true
		}
		return b, true
	case 2:
		if category(a) < 2 {
			return b, true
		}
		if a == ops.Float16 && b == ops.BFloat16 || a == ops.BFloat16 && b == ops.Float16 {
			return ops.Float32, true
		}
		return max(a, b), true
	case 1:
		if category(a) == 0 {
			return b, true
		}
		if isWideUnsigned(a) || isWideUnsigned(b) {
			return 0, false
		}
		if a == ops.Uint8 && b == ops.Int8 || a == ops.Int8 && b == ops.Uint8 {
			return ops.Int16, true
		}
		return max(a, b), true
	}
	return b, true
}

func promote(a, b ops.DType) ops.DType {
	d, ok := Promote(a, b)
	if !ok {
		failf("%s and %s have no common type in torch's promotion; convert one of them", a, b)
	}
	return d
}

// resultType is torch's result_type: tensors with dimensions count before those without, and these before numbers, unless
// the later is of a higher category.
func resultType(xs ...operand) ops.DType {
	var dim, zero, num ops.DType
	for _, x := range xs {
		switch {
		case x.number:
			num = promote(num, x.dtype)
		case x.t.Rank() == 0:
			zero = promote(zero, x.dtype)
		default:
			dim = promote(dim, x.dtype)
		}
	}
	return combine(dim, combine(zero, num))
}

func combine(higher, lower ops.DType) ops.DType {
	switch {
	case higher == ops.DTypeNone:
		return lower
	case lower == ops.DTypeNone, category(higher) >= category(lower):
		return higher
	case category(higher) == 2 && category(lower) == 3:
		return higher.ToComplex()
	}
	return promote(higher, lower)
}

// floatOf is the type that a function like sin computes in: integers become the default float32.
func floatOf(d ops.DType) ops.DType {
	if category(d) < 2 {
		return ops.Float32
	}
	return d
}
