package interp

import (
	"slices"

	"github.com/lathe-ml/lathe/ir"
)

// Floats gives the elements of any real type as float64, row-major. The slice is the caller's.
func (t *Tensor) Floats() []float64 { return slices.Clone(t.floats()) }

// FromFloats makes a tensor of row-major values, each rounded once to the type.
func FromFloats(d DType, sizes []int64, v []float64) (t *Tensor, err error) {
	defer catch(&err)
	return fromFloats(d, sizes, slices.Clone(v)), nil
}

// Constant is a constant argument that is no list as operators take it.
func Constant(a ir.Arg) Value {
	switch a.Kind() {
	case ir.ArgDType:
		d, _ := a.DType()
		return d
	case ir.ArgComplex:
		re, im, _ := a.Complex()
		return complex(re, im)
	}
	return ConstValue(a)
}
