package pte

import (
	"fmt"
	"math"
	"math/bits"
)

// ScalarType is a dtype, numbered as in PyTorch.
type ScalarType int8

// The dtypes that a program can hold.
const (
	ScalarByte           ScalarType = 0
	ScalarChar           ScalarType = 1
	ScalarShort          ScalarType = 2
	ScalarInt            ScalarType = 3
	ScalarLong           ScalarType = 4
	ScalarHalf           ScalarType = 5
	ScalarFloat          ScalarType = 6
	ScalarDouble         ScalarType = 7
	ScalarComplexHalf    ScalarType = 8
	ScalarComplexFloat   ScalarType = 9
	ScalarComplexDouble  ScalarType = 10
	ScalarBool           ScalarType = 11
	ScalarQInt8          ScalarType = 12
	ScalarQUInt8         ScalarType = 13
	ScalarQInt32         ScalarType = 14
	ScalarBFloat16       ScalarType = 15
	ScalarQUInt4x2       ScalarType = 16
	ScalarQUInt2x4       ScalarType = 17
	ScalarBits16         ScalarType = 22
	ScalarFloat8E5M2     ScalarType = 23
	ScalarFloat8E4M3FN   ScalarType = 24
	ScalarFloat8E5M2FNUZ ScalarType = 25
	ScalarFloat8E4M3FNUZ ScalarType = 26
	ScalarUInt16         ScalarType = 27
	ScalarUInt32         ScalarType = 28
	ScalarUInt64         ScalarType = 29
)

var scalarTypes = map[ScalarType]struct {
	name string
	size int
}{
	ScalarByte: {"Byte", 1}, ScalarChar: {"Char", 1}, ScalarShort: {"Short", 2}, ScalarInt: {"Int", 4},
	ScalarLong: {"Long", 8}, ScalarHalf: {"Half", 2}, ScalarFloat: {"Float", 4}, ScalarDouble: {"Double", 8},
	ScalarComplexHalf: {"ComplexHalf", 4}, ScalarComplexFloat: {"ComplexFloat", 8}, ScalarComplexDouble: {"ComplexDouble", 16},
	ScalarBool: {"Bool", 1}, ScalarQInt8: {"QInt8", 1}, ScalarQUInt8: {"QUInt8", 1}, ScalarQInt32: {"QInt32", 4},
	ScalarBFloat16: {"BFloat16", 2}, ScalarQUInt4x2: {"QUInt4x2", 1}, ScalarQUInt2x4: {"QUInt2x4", 1}, ScalarBits16: {"Bits16", 2},
	ScalarFloat8E5M2: {"Float8_e5m2", 1}, ScalarFloat8E4M3FN: {"Float8_e4m3fn", 1}, ScalarFloat8E5M2FNUZ: {"Float8_e5m2fnuz", 1},
	ScalarFloat8E4M3FNUZ: {"Float8_e4m3fnuz", 1}, ScalarUInt16: {"UInt16", 2}, ScalarUInt32: {"UInt32", 4}, ScalarUInt64: {"UInt64", 8},
}

// String gives PyTorch's name of the dtype ("Float"), or ScalarType(n).
func (t ScalarType) String() string {
	if s, ok := scalarTypes[t]; ok {
		return s.name
	}
	return fmt.Sprintf("ScalarType(%d)", int8(t))
}

// Size is the bytes of one element, 0 for an unknown type.
func (t ScalarType) Size() int { return scalarTypes[t].size }

// NBytes is the size in bytes of a contiguous tensor. See [Tensor.NBytes].
func NBytes(t ScalarType, sizes []int32) (int64, error) {
	if t.Size() == 0 {
		return 0, fmt.Errorf("%v has no element size", t)
	}
	n := uint64(t.Size())
	zero := false
	for i, s := range sizes {
		if s < 0 {
			return 0, fmt.Errorf("size %d of dimension %d is negative", s, i)
		}
		if s == 0 {
			zero = true
			continue
		}
		hi, lo := bits.Mul64(n, uint64(s))
		if hi != 0 || lo > math.MaxInt64 {
			return 0, fmt.Errorf("shape %v of %v does not fit in memory", sizes, t)
		}
		n = lo
	}
	if zero {
		return 0, nil
	}
	return int64(n), nil
}

// Dynamism says how far a tensor's shape is known.
type Dynamism int8

// Static: the shape is fixed. DynamicBound: the sizes are upper bounds.
// DynamicUnbound: the runtime allocates.
const (
	Static Dynamism = iota
	DynamicBound
	DynamicUnbound
)

// String names the dynamism as the schema does.
func (d Dynamism) String() string {
	switch d {
	case Static:
		return "STATIC"
	case DynamicBound:
		return "DYNAMIC_BOUND"
	case DynamicUnbound:
		return "DYNAMIC_UNBOUND"
	}
	return fmt.Sprintf("Dynamism(%d)", int8(d))
}

// DataLocation says where a tensor's bytes are.
type DataLocation int8

// InSegment: in the program file. External: in a data file, by name.
const (
	InSegment DataLocation = iota
	External
)

// String names the location as the schema does.
func (l DataLocation) String() string {
	switch l {
	case InSegment:
		return "SEGMENT"
	case External:
		return "EXTERNAL"
	}
	return fmt.Sprintf("DataLocation(%d)", int8(l))
}

// DeviceType is where memory lives.
type DeviceType int8

// The devices of the schema.
const (
	CPU DeviceType = iota
	CUDA
)

// String names the device as the schema does.
func (d DeviceType) String() string {
	switch d {
	case CPU:
		return "CPU"
	case CUDA:
		return "CUDA"
	}
	return fmt.Sprintf("DeviceType(%d)", int8(d))
}
