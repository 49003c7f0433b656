// Package pte writes and reads ExecuTorch program files (.pte) and the data files
// that stand beside them (.ptd). It knows the format, never a graph.
//
// A [Program] is the file as plain values. Weight bytes are not part of it in
// memory: they are named by [Blob] values that know how to write themselves, so a
// program over gigabytes of mapped weights stays small.
package pte

// Program is one .pte file: methods, and the data they share.
type Program struct {
	// Version is the schema version; the runtime of 1.5.1 writes and expects 0.
	Version uint32
	// Plans are the methods, in file order.
	Plans []*Plan
	// Constants are the bytes of constant tensors. Index 0 is reserved for "no
	// data" and must be nil; [Program.AddConstant] keeps that rule. Equal contents
	// are stored once by the writer, whatever their indices.
	Constants []Blob
	// Initial are the first values of mutable tensors, copied into planned memory
	// when a method is loaded. Index 0 is reserved, as for Constants.
	Initial []Blob
	// Named is data found by key at run time: delegates ask for their weights so.
	Named []NamedData
}

// AddConstant appends b and returns its index for [Tensor.Data].
func (p *Program) AddConstant(b Blob) uint32 {
	if len(p.Constants) == 0 {
		p.Constants = append(p.Constants, nil)
	}
	p.Constants = append(p.Constants, b)
	return uint32(len(p.Constants) - 1)
}

// AddInitial appends the first value of a mutable tensor and returns its index for
// [Tensor.Data] of a tensor that has an [Allocation].
func (p *Program) AddInitial(b Blob) uint32 {
	if len(p.Initial) == 0 {
		p.Initial = append(p.Initial, nil)
	}
	p.Initial = append(p.Initial, b)
	return uint32(len(p.Initial) - 1)
}

// NamedData is a blob that the runtime's named data map serves under Key.
type NamedData struct {
	Key  string
	Data Blob
	// Align is the alignment in bytes that the data needs within the file, a power
	// of two; 0 stands for the segment alignment of the writer, which is also the
	// least that is used. The reader leaves it 0: the file does not keep it.
	Align int
}

// Plan is one method ("forward") of a program.
type Plan struct {
	Name string
	// InputSpec and OutputSpec are the pytree specs of arguments and result as JSON
	// text; "" where not known.
	InputSpec, OutputSpec string
	// Values is the table that everything else in the plan indexes.
	Values []Value
	// Inputs and Outputs index Values.
	Inputs, Outputs []int32
	// Chains hold the instructions. Programs for the runtime of 1.5.1 have one.
	Chains    []*Chain
	Operators []Operator
	Delegates []*Delegate
	// BufferSizes are the bytes of the planned memory areas. Index 0 is reserved
	// and ignored by the runtime; memory id k of an [Allocation] is BufferSizes[k].
	BufferSizes []int64
	// BufferDevices places planned buffers on devices; empty means CPU for all.
	BufferDevices []BufferDevice
}

// BufferDevice says on which device the planned buffer of that index lives.
type BufferDevice struct {
	Buffer int32
	Device DeviceType
	Index  int8
}

// Operator names a kernel: "aten::add" with overload "out".
type Operator struct {
	Name, Overload string
}

// Delegate is one lowered region: who runs it and the payload it gets.
type Delegate struct {
	// ID is the registered name of the backend, for example "XnnpackBackend".
	ID string
	// Payload is what the backend's init receives. Equal payloads are stored once.
	Payload Blob
	Specs   []CompileSpec
}

// CompileSpec is an option handed to a backend together with its payload.
type CompileSpec struct {
	Key   string
	Value []byte
}

// Chain is a sequence of instructions.
type Chain struct {
	// Inputs and Outputs index the plan's values; the runtime does not read them.
	Inputs, Outputs []int32
	Instructions    []Instruction
	// Stack, when not empty, has the source frames of each instruction.
	Stack [][]Frame
}

// Frame is a line of the user's model.
type Frame struct {
	File    string
	Line    int32
	Name    string
	Context string
}

// Instruction is one of KernelCall, DelegateCall, MoveCall, JumpFalseCall, FreeCall.
type Instruction interface{ isInstruction() }

// KernelCall runs operator Op of the plan on the values Args, out arguments and the
// returned values included, in the order of the operator's schema.
type KernelCall struct {
	Op   int32
	Args []int32
}

// DelegateCall runs delegate Delegate on the values Args: inputs, then outputs.
type DelegateCall struct {
	Delegate int32
	Args     []int32
}

// MoveCall assigns value From to value To.
type MoveCall struct{ From, To int32 }

// JumpFalseCall sets the program counter to Target when value Cond is false. Cond
// is a Bool or a bool tensor (false when any element is false).
type JumpFalseCall struct{ Cond, Target int32 }

// FreeCall gives back the memory of a tensor without a bound on its shape.
type FreeCall struct{ Value int32 }

func (KernelCall) isInstruction()    {}
func (DelegateCall) isInstruction()  {}
func (MoveCall) isInstruction()      {}
func (JumpFalseCall) isInstruction() {}
func (FreeCall) isInstruction()      {}

// Value is one of Null, Int, Bool, Double, String, IntList, DoubleList, BoolList,
// TensorList, OptionalTensorList and *Tensor.
type Value interface{ isValue() }

type (
	// Null is None.
	Null struct{}
	// Int is an int argument or a symbolic size.
	Int int64
	// Bool is a bool argument.
	Bool bool
	// Double is a float argument.
	Double float64
	// String is a str argument.
	String string
	// IntList is int[]: its elements are indices of Int values, not the ints
	// themselves, so that symbolic sizes can stand among them.
	IntList []int64
	// DoubleList is float[]: the floats themselves.
	DoubleList []float64
	// BoolList is bool[]: the bools themselves.
	BoolList []bool
	// TensorList is Tensor[]: indices of tensor values.
	TensorList []int32
	// OptionalTensorList is Tensor?[]: indices of tensor values, -1 for None.
	OptionalTensorList []int32
)

func (Null) isValue()               {}
func (Int) isValue()                {}
func (Bool) isValue()               {}
func (Double) isValue()             {}
func (String) isValue()             {}
func (IntList) isValue()            {}
func (DoubleList) isValue()         {}
func (BoolList) isValue()           {}
func (TensorList) isValue()         {}
func (OptionalTensorList) isValue() {}
func (*Tensor) isValue()            {}

// Tensor is a tensor value.
type Tensor struct {
	Type ScalarType
	// StorageOffset is in elements; the runtime takes only 0.
	StorageOffset int32
	// Sizes is the shape, or the upper bound of it when Dynamism is DynamicBound.
	Sizes []int32
	// DimOrder lists dimensions from outermost to innermost in memory.
	DimOrder     []uint8
	RequiresGrad bool
	// Data is 0 for none; without Alloc an index into Program.Constants, with Alloc
	// an index into Program.Initial.
	Data uint32
	// Alloc is the planned place of the tensor's bytes; nil for constants and for
	// tensors whose memory the caller gives.
	Alloc    *Allocation
	Layout   int8
	Dynamism Dynamism
	// Extra is nil for most tensors.
	Extra *TensorExtra
}

// NBytes is the size in bytes of a contiguous tensor of that type and shape (for a
// bounded dynamic shape: the most it can be). It fails when the type has no whole
// byte size, a size is negative or the product does not fit 63 bits.
func (t *Tensor) NBytes() (int64, error) {
	return NBytes(t.Type, t.Sizes)
}

// Allocation is a place in planned memory.
type Allocation struct {
	// Memory is the memory id, from 1.
	Memory uint32
	// Offset is in bytes from the start of that memory.
	Offset uint64
}

// TensorExtra is what few tensors need.
type TensorExtra struct {
	// Name is the tensor's fully qualified name: the key of its bytes when Location
	// is External.
	Name     string
	Location DataLocation
	Device   DeviceType
	// DeviceIndex is the n-th device of that type.
	DeviceIndex int8
}
