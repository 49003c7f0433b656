package etrt

import (
	"fmt"
	"strconv"
)

// DType is an element type by ExecuTorch's (and ATen's) ScalarType number.
type DType int8

// The element types the runtime knows.
const (
	U8          DType = 0
	I8          DType = 1
	I16         DType = 2
	I32         DType = 3
	I64         DType = 4
	F16         DType = 5
	F32         DType = 6
	F64         DType = 7
	ComplexHalf DType = 8
	Complex64   DType = 9
	Complex128  DType = 10
	Bool        DType = 11
	BF16        DType = 15
	F8E5M2      DType = 23
	F8E4M3      DType = 24
	U16         DType = 27
	U32         DType = 28
	U64         DType = 29
)

var dtypes = map[DType]struct {
	name string
	size int
}{
	U8: {"uint8", 1}, I8: {"int8", 1}, I16: {"int16", 2}, I32: {"int32", 4}, I64: {"int64", 8},
	F16: {"float16", 2}, F32: {"float32", 4}, F64: {"float64", 8},
	ComplexHalf: {"complex32", 4}, Complex64: {"complex64", 8}, Complex128: {"complex128", 16},
	Bool: {"bool", 1}, BF16: {"bfloat16", 2}, F8E5M2: {"float8_e5m2", 1}, F8E4M3: {"float8_e4m3fn", 1},
	U16: {"uint16", 2}, U32: {"uint32", 4}, U64: {"uint64", 8},
}

// ParseDType returns the element type torch calls by this name ("float32", "int64", "bfloat16", …).
func ParseDType(name string) (DType, error) {
	for d, t := range dtypes {
		if t.name == name {
			return d, nil
		}
	}
	return 0, fmt.Errorf("the runtime has no element type %q", name)
}

// String returns torch's name of the element type.
func (d DType) String() string {
	if t, ok := dtypes[d]; ok {
		return t.name
	}
	return "dtype(" + strconv.Itoa(int(d)) + ")"
}

// Size is the number of bytes of one element, 0 for a type not listed here.
func (d DType) Size() int { return dtypes[d].size }

// Tensor is a dense tensor. Data holds the elements in memory order, little-endian: in index order when Strides is nil,
// otherwise in the order the strides say. Strides (in elements) must be those of a permutation of the dimensions without
// gaps or overlap, the only layouts the runtime takes.
type Tensor struct {
	DType   DType
	Shape   []int64
	Strides []int64
	Data    []byte
}

// Numel is the number of elements.
func (t *Tensor) Numel() int64 {
	n := int64(1)
	for _, s := range t.Shape {
		n *= s
	}
	return n
}

// DimOrder returns the dimensions from outermost to innermost in memory, or an error when the strides are not those of
// a dense tensor.
func (t *Tensor) DimOrder() ([]uint8, error) {
	rank := len(t.Shape)
	order := make([]uint8, rank)
	for i := range order {
		order[i] = uint8(i)
	}
	if t.Strides == nil || t.Numel() == 0 {
		return order, nil
	}
	if len(t.Strides) != rank {
		return nil, fmt.Errorf("%d strides for %d dimensions", len(t.Strides), rank)
	}
	if dense(t.Shape, t.Strides, order) {
		return order, nil // index order wins where sizes of 1 leave a choice
	}
	// Dimensions of size 1 may carry any stride. Those a permuted layout leaves undecided keep their place relative to
	// the index order: insert by stride, stable.
	for i := 1; i < rank; i++ {
		for k := i; k > 0 && t.Strides[order[k]] > t.Strides[order[k-1]]; k-- {
			order[k], order[k-1] = order[k-1], order[k]
		}
	}
	if dense(t.Shape, t.Strides, order) {
		return order, nil
	}
	return nil, fmt.Errorf("strides %v of shape %v are not dense: make the tensor contiguous", t.Strides, t.Shape)
}

func dense(shape, strides []int64, order []uint8) bool {
	step := int64(1)
	for i := len(order) - 1; i >= 0; i-- {
		d := order[i]
		if shape[d] != 1 && strides[d] != step {
			return false
		}
		step *= shape[d]
	}
	return true
}

// Contiguous returns the tensor with its elements in index order, itself when they are already.
func (t *Tensor) Contiguous() (*Tensor, error) {
	order, err := t.DimOrder()
	if err != nil {
		return nil, err
	}
	sorted := true
	for i, d := range order {
		sorted = sorted && int(d) == i
	}
	out := &Tensor{DType: t.DType, Shape: t.Shape, Data: t.Data}
	if sorted {
		return out, nil
	}
	out.Data = Permute(t.Data, t.DType.Size(), t.Shape, order, true)
	return out, nil
}

// Permute copies elements of the given size between index order and the memory order dimOrder. toIndex says which way:
// true reads memory order and writes index order.
func Permute(data []byte, size int, shape []int64, dimOrder []uint8, toIndex bool) []byte {
	rank := len(shape)
	strides := make([]int64, rank)
	step := int64(1)
	for i := rank - 1; i >= 0; i-- {
		strides[dimOrder[i]] = step
		step *= shape[dimOrder[i]]
	}
	out := make([]byte, len(data))
	idx := make([]int64, rank)
	for n := int64(0); n < step; n++ {
		m := int64(0)
		for d, i := range idx {
			m += i * strides[d]
		}
		if toIndex {
			copy(out[n*int64(size):(n+1)*int64(size)], data[m*int64(size):])
		} else {
			copy(out[m*int64(size):(m+1)*int64(size)], data[n*int64(size):])
		}
		for d := rank - 1; d >= 0; d-- {
			if idx[d]++; idx[d] < shape[d] {
				break
			}
			idx[d] = 0
		}
	}
	return out
}

// Kind says what a Value holds; the numbers are the runtime's tags.
type Kind uint8

// The kinds of values a method takes and returns.
const (
	KindNone            Kind = 0
	KindTensor          Kind = 1
	KindString          Kind = 2
	KindFloat           Kind = 3
	KindInt             Kind = 4
	KindBool            Kind = 5
	KindBools           Kind = 6
	KindFloats          Kind = 7
	KindInts            Kind = 8
	KindTensors         Kind = 9
	KindOptionalTensors Kind = 11
)

var kindNames = map[Kind]string{
	KindNone: "none", KindTensor: "tensor", KindString: "str", KindFloat: "float", KindInt: "int", KindBool: "bool",
	KindBools: "bool list", KindFloats: "float list", KindInts: "int list", KindTensors: "tensor list",
	KindOptionalTensors: "optional tensor list",
}

// String names the kind.
func (k Kind) String() string {
	if s, ok := kindNames[k]; ok {
		return s
	}
	return "kind(" + strconv.Itoa(int(k)) + ")"
}

// Value is one input or output: the field its Kind names is set, the others are zero. In Tensors an entry is nil where an
// optional tensor is absent.
type Value struct {
	Kind    Kind
	Tensor  *Tensor
	Str     string
	Float   float64
	Int     int64
	Bool    bool
	Bools   []bool
	Floats  []float64
	Ints    []int64
	Tensors []*Tensor
}

// Constructors, one per kind a method's input can have.

// None is the absent value.
func None() Value { return Value{} }

// TensorValue wraps a tensor.
func TensorValue(t *Tensor) Value { return Value{Kind: KindTensor, Tensor: t} }

// IntValue wraps an integer.
func IntValue(i int64) Value { return Value{Kind: KindInt, Int: i} }

// FloatValue wraps a float.
func FloatValue(f float64) Value { return Value{Kind: KindFloat, Float: f} }

// BoolValue wraps a bool.
func BoolValue(b bool) Value { return Value{Kind: KindBool, Bool: b} }

// StringValue wraps a string.
func StringValue(s string) Value { return Value{Kind: KindString, Str: s} }

// IntsValue wraps a list of integers.
func IntsValue(v []int64) Value { return Value{Kind: KindInts, Ints: v} }
