package mlx

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ops"
)

// promote is the element type that MLX computes two tensors in.
func promote(a, c ops.DType) ops.DType {
	if a == c {
		return a
	}
	if rank(a) > rank(c) {
		a, c = c, a
	}
	switch {
	case a == ops.Bool:
		return c
	case c == ops.Float16 && a == ops.BFloat16, c == ops.BFloat16 && a == ops.Float16:
		return ops.Float32
	case c.IsFloat():
		return c
	case a == ops.Uint8 && c == ops.Int8:
		return ops.Int16
	case c == ops.Uint32 && a != ops.Uint8:
		return ops.Int64
	}
	return c
}

func rank(d ops.DType) int {
	for i, x := range []ops.DType{
		ops.Bool, ops.Uint8, ops.Int8, ops.Int16, ops.Int32, ops.Uint32, ops.Int64, ops.Float16, ops.BFloat16, ops.Float32,
	} {
		if x == d {
			return i
		}
	}
	return -1
}

// torchPromote is the element type that torch computes operands in: tensors with dimensions count before those without,
// these before numbers, as long as the kind of number is the same.
func torchPromote(args ...ir.Arg) ops.DType {
	var dims, zero, num ops.DType
	join := func(d *ops.DType, e ops.DType) {
		if *d == ops.DTypeNone {
			*d = e
		} else {
			*d = promoteTorch(*d, e)
		}
	}
	for _, a := range args {
		v := a.Value()
		switch {
		case v != nil && v.Type.IsTensor() && v.Type.Rank() > 0:
			join(&dims, v.Type.DType)
		case v != nil && v.Type.IsTensor():
			join(&zero, v.Type.DType)
		case a.Kind() == ir.ArgBool:
			join(&num, ops.Bool)
		case a.Kind() == ir.ArgFloat:
			join(&num, ops.Float32)
		default:
			join(&num, ops.Int64)
		}
	}
	out := dims
	for _, d := range []ops.DType{zero, num} {
		switch {
		case d == ops.DTypeNone:
		case out == ops.DTypeNone:
			out = d
		case kindOf(d) > kindOf(out):
			out = promoteTorch(out, d)
		}
	}
	return out
}

func kindOf(d ops.DType) int {
	switch {
	case d == ops.Bool:
		return 0
	case d.IsFloat():
		return 2
	}
	return 1
}

// promoteTorch is torch's promotion of two tensors of equal standing.
func promoteTorch(a, c ops.DType) ops.DType {
	if a.IsInt() && c.IsInt() && a != c {
		switch {
		case a == ops.Bool:
			return c
		case c == ops.Bool:
			return a
		case a == ops.Uint8 && c == ops.Int8 || a == ops.Int8 && c == ops.Uint8:
			return ops.Int16
		case a.Size() >= c.Size():
			return a
		}
		return c
	}
	return promote(a, c)
}
