package ops

import "strings"

// DType is the element type of a tensor. The order is that of torch's type promotion within a category; the codes of the
// archive schema and of the runtime are mapped where those formats are read and written.
type DType uint8

// The element types that torch's archive schema can name.
const (
	DTypeNone DType = iota
	Bool
	Uint8
	Int8
	Int16
	Int32
	Int64
	Uint16
	Uint32
	Uint64
	Float16
	BFloat16
	Float32
	Float64
	ComplexHalf
	Complex64
	Complex128
	Float8E4M3FN
	Float8E5M2
	Float8E4M3FNUZ
	Float8E5M2FNUZ
	Float8E8M0FNU
	Float4E2M1FNX2
	numDTypes
)

var dtypeNames = [numDTypes]struct {
	short, torch string
	size         int8
}{
	DTypeNone:      {"none", "none", 0},
	Bool:           {"bool", "bool", 1},
	Uint8:          {"u8", "uint8", 1},
	Int8:           {"i8", "int8", 1},
	Int16:          {"i16", "int16", 2},
	Int32:          {"i32", "int32", 4},
	Int64:          {"i64", "int64", 8},
	Uint16:         {"u16", "uint16", 2},
	Uint32:         {"u32", "uint32", 4},
	Uint64:         {"u64", "uint64", 8},
	Float16:        {"f16", "float16", 2},
	BFloat16:       {"bf16", "bfloat16", 2},
	Float32:        {"f32", "float32", 4},
	Float64:        {"f64", "float64", 8},
	ComplexHalf:    {"c32", "complex32", 4},
	Complex64:      {"c64", "complex64", 8},
	Complex128:     {"c128", "complex128", 16},
	Float8E4M3FN:   {"f8e4m3fn", "float8_e4m3fn", 1},
	Float8E5M2:     {"f8e5m2", "float8_e5m2", 1},
	Float8E4M3FNUZ: {"f8e4m3fnuz", "float8_e4m3fnuz", 1},
	Float8E5M2FNUZ: {"f8e5m2fnuz", "float8_e5m2fnuz", 1},
	Float8E8M0FNU:  {"f8e8m0fnu", "float8_e8m0fnu", 1},
	Float4E2M1FNX2: {"f4e2m1fnx2", "float4_e2m1fn_x2", 1},
}

// String is the short name of the IR text: f32, bf16, i64, bool.
func (d DType) String() string {
	if d < numDTypes {
		return dtypeNames[d].short
	}
	return "dtype?"
}

// Torch is the name torch prints without its prefix: float32, bfloat16, int64, bool.
func (d DType) Torch() string {
	if d < numDTypes {
		return dtypeNames[d].torch
	}
	return "dtype?"
}

// Size is the bytes of one element; a Float4E2M1FNX2 element is a byte that holds two values.
func (d DType) Size() int64 { return int64(dtypeNames[d].size) }

// IsFloat tells real floating types, the eight-bit ones included.
func (d DType) IsFloat() bool {
	return d >= Float16 && d <= Float64 || d >= Float8E4M3FN && d <= Float4E2M1FNX2
}

// IsComplex tells complex types.
func (d DType) IsComplex() bool { return d >= ComplexHalf && d <= Complex128 }

// ToComplex is the complex dtype whose parts have dtype d; a complex dtype is its own. Like torch, complex64 for
// dtypes that are no floats, bfloat16 included.
func (d DType) ToComplex() DType {
	switch d {
	case Float16:
		return ComplexHalf
	case Float64:
		return Complex128
	case ComplexHalf, Complex64, Complex128:
		return d
	}
	return Complex64
}

// ToReal is the dtype of a complex dtype's parts; others are their own.
func (d DType) ToReal() DType {
	switch d {
	case ComplexHalf:
		return Float16
	case Complex64:
		return Float32
	case Complex128:
		return Float64
	}
	return d
}

// IsInt tells integer types; Bool is none.
func (d DType) IsInt() bool { return d >= Uint8 && d <= Uint64 }

// IsSigned tells types that hold negative values.
func (d DType) IsSigned() bool {
	return d >= Int8 && d <= Int64 || d.IsFloat() || d.IsComplex()
}

// ParseDType reads a short or torch name.
func ParseDType(s string) (DType, bool) {
	s = strings.TrimPrefix(s, "torch.")
	for d := Bool; d < numDTypes; d++ {
		if dtypeNames[d].short == s || dtypeNames[d].torch == s {
			return d, true
		}
	}
	return DTypeNone, false
}

// DTypeSet is a set of element types.
type DTypeSet uint32

// Set makes a DTypeSet.
func Set(ds ...DType) DTypeSet {
	var s DTypeSet
	for _, d := range ds {
		s |= 1 << d
	}
	return s
}

// Has tells whether d is in s. The empty set means that nothing was said and holds every type.
func (s DTypeSet) Has(d DType) bool { return s == 0 || s&(1<<d) != 0 }

// List gives the members in order.
func (s DTypeSet) List() []DType {
	var l []DType
	for d := Bool; d < numDTypes; d++ {
		if s&(1<<d) != 0 {
			l = append(l, d)
		}
	}
	return l
}

// Common sets.
const (
	Floats   DTypeSet = 1<<Float16 | 1<<BFloat16 | 1<<Float32 | 1<<Float64
	Ints     DTypeSet = 1<<Uint8 | 1<<Int8 | 1<<Int16 | 1<<Int32 | 1<<Int64
	Uints    DTypeSet = 1<<Uint16 | 1<<Uint32 | 1<<Uint64
	Complex  DTypeSet = 1<<ComplexHalf | 1<<Complex64 | 1<<Complex128
	Bools    DTypeSet = 1 << Bool
	Real              = Floats | Ints
	RealBool          = Real | Bools
	AnyDType          = RealBool | Complex | Uints | 1<<Float8E4M3FN | 1<<Float8E5M2 | 1<<Float8E4M3FNUZ | 1<<Float8E5M2FNUZ | 1<<Float8E8M0FNU | 1<<Float4E2M1FNX2
)
