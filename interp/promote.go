package interp

import "github.com/lathe-ml/lathe/ops"

// promoteTypes is torch's promote_types.
func promoteTypes(a, b DType) DType {
	switch {
	case a == b || b == ops.DTypeNone:
		return a
	case a == ops.DTypeNone:
		return b
	case a == ops.Bool:
		return b
	case b == ops.Bool:
		return a
	}
	eight := func(d DType) bool { return d >= ops.Float8E4M3FN }
	if eight(a) || eight(b) {
		fail("%s and %s have no common type", a, b)
	}
	ca, cb := classOf(a), classOf(b)
	if ca < cb {
		a, b, ca, cb = b, a, cb, ca
	}
	switch {
	case ca == classComplex && cb == classFloat:
		return max(a, b.ToComplex())
	case ca == classComplex && cb == classComplex:
		return max(a, b)
	case ca != cb:
		return a
	case ca == classFloat:
		if a == ops.Float16 && b == ops.BFloat16 || a == ops.BFloat16 && b == ops.Float16 {
			return ops.Float32
		}
		return max(a, b)
	}
	if wide := func(d DType) bool { return d >= ops.Uint16 && d <= ops.Uint64 }; wide(a) || wide(b) {
		fail("%s and %s have no common type", a, b)
	}
	if a == ops.Uint8 || b == ops.Uint8 {
		o := a
		if a == ops.Uint8 {
			o = b
		}
		if o == ops.Int8 {
			return ops.Int16
		}
		return o
	}
	return max(a, b)
}

// numberType is the dtype of a Python number by itself.
func numberType(v Value) DType {
	switch v.(type) {
	case bool:
		return ops.Bool
	case int64:
		return ops.Int64
	case float64:
		return ops.Float32
	case complex128:
		return ops.Complex64
	}
	fail("%T is no number", v)
	return 0
}

// resultType is torch's result_type over tensors and numbers: tensors with dimensions decide, those without and numbers
// only raise the category.
func resultType(vs ...Value) DType {
	var dim, zero, wrapped DType
	for _, v := range vs {
		switch x := v.(type) {
		case nil:
		case *Tensor:
			switch {
			case x.wrapped:
				wrapped = promoteTypes(wrapped, defaultOf(x.DType))
			case x.Rank() == 0:
				zero = promoteTypes(zero, x.DType)
			default:
				dim = promoteTypes(dim, x.DType)
			}
		default:
			wrapped = promoteTypes(wrapped, numberType(x))
		}
	}
	return combine(dim, combine(zero, wrapped))
}

// defaultOf is what a Python number of the kind of d counts as.
func defaultOf(d DType) DType {
	switch classOf(d) {
	case classFloat:
		return ops.Float32
	case classComplex:
		return ops.Complex64
	}
	return d
}

func combine(higher, lower DType) DType {
	switch {
	case higher == ops.DTypeNone:
		return lower
	case lower == ops.DTypeNone || higher.IsComplex():
		return higher
	case higher.IsFloat():
		if lower.IsComplex() {
			return higher.ToComplex()
		}
		return higher
	case higher == ops.Bool || lower.IsFloat() || lower.IsComplex():
		return promoteTypes(higher, lower)
	}
	return higher
}

// floatType is d, or the default float where d is an integer type or bool.
func floatType(d DType) DType {
	if classOf(d) == classInt {
		return ops.Float32
	}
	return d
}
