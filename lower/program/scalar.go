package program

import (
	"github.com/lathe-ml/lathe/codegen/pte"
	"github.com/lathe-ml/lathe/ops"
)

// scalarTypes are the runtime's codes of the element types it can hold.
var scalarTypes = map[ops.DType]pte.ScalarType{
	ops.Bool: pte.ScalarBool, ops.Uint8: pte.ScalarByte, ops.Int8: pte.ScalarChar, ops.Int16: pte.ScalarShort,
	ops.Int32: pte.ScalarInt, ops.Int64: pte.ScalarLong, ops.Uint16: pte.ScalarUInt16, ops.Uint32: pte.ScalarUInt32,
	ops.Uint64: pte.ScalarUInt64, ops.Float16: pte.ScalarHalf, ops.BFloat16: pte.ScalarBFloat16, ops.Float32: pte.ScalarFloat,
	ops.Float64: pte.ScalarDouble, ops.ComplexHalf: pte.ScalarComplexHalf, ops.Complex64: pte.ScalarComplexFloat,
	ops.Complex128: pte.ScalarComplexDouble, ops.Float8E4M3FN: pte.ScalarFloat8E4M3FN, ops.Float8E5M2: pte.ScalarFloat8E5M2,
	ops.Float8E4M3FNUZ: pte.ScalarFloat8E4M3FNUZ, ops.Float8E5M2FNUZ: pte.ScalarFloat8E5M2FNUZ,
}

// DType is the element type that a code of the runtime stands for; false for types that hold no plain numbers.
func DType(t pte.ScalarType) (ops.DType, bool) {
	for d, s := range scalarTypes {
		if s == t {
			return d, true
		}
	}
	return ops.DTypeNone, false
}

// memoryFormats are torch's codes.
var memoryFormats = map[string]int64{
	"contiguous_format": 0, "preserve_format": 1, "channels_last": 2, "channels_last_3d": 3,
}

// layouts are torch's codes.
var layouts = map[string]int64{"strided": 0}
