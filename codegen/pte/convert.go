package pte

import (
	"fmt"
	"math"

	fbp "github.com/lathe-ml/lathe/codegen/fb/program"
)

// planToWire gives the plan's table; delegate payloads are referenced by the caller.
func planToWire(p *Plan) (*fbp.ExecutionPlan, error) {
	w := &fbp.ExecutionPlan{
		Name:                p.Name,
		ContainerMetaType:   &fbp.ContainerMetadata{EncodedInpStr: p.InputSpec, EncodedOutStr: p.OutputSpec},
		Values:              make([]*fbp.EValue, len(p.Values)),
		Inputs:              nonNil(p.Inputs),
		Outputs:             nonNil(p.Outputs),
		Chains:              make([]*fbp.Chain, len(p.Chains)),
		Operators:           make([]*fbp.Operator, len(p.Operators)),
		Delegates:           make([]*fbp.BackendDelegate, len(p.Delegates)),
		NonConstBufferSizes: nonNil(p.BufferSizes),
	}
	for i, v := range p.Values {
		u, err := valueToWire(v)
		if err != nil {
			return nil, fmt.Errorf("values[%d]: %w", i, err)
		}
		w.Values[i] = &fbp.EValue{Val: u}
	}
	for i, c := range p.Chains {
		wc, err := chainToWire(c)
		if err != nil {
			return nil, fmt.Errorf("chains[%d]: %w", i, err)
		}
		w.Chains[i] = wc
	}
	for i, o := range p.Operators {
		w.Operators[i] = &fbp.Operator{Name: o.Name, Overload: o.Overload}
	}
	for i, d := range p.Delegates {
		wd := &fbp.BackendDelegate{ID: d.ID, CompileSpecs: make([]*fbp.CompileSpec, len(d.Specs))}
		for j, s := range d.Specs {
			wd.CompileSpecs[j] = &fbp.CompileSpec{Key: s.Key, Value: nonNil(s.Value)}
		}
		w.Delegates[i] = wd
	}
	for _, b := range p.BufferDevices {
		w.NonConstBufferDevice = append(w.NonConstBufferDevice, &fbp.NonConstBufferDevice{
			BufferIdx: b.Buffer, DeviceType: fbp.DeviceType(b.Device), DeviceIndex: b.Index,
		})
	}
	return w, nil
}

// nonNil makes an empty vector of a nil one: the runtime follows most of them
// without asking whether they are there.
func nonNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

func valueToWire(v Value) (fbp.KernelTypes, error) {
	switch v := v.(type) {
	case Null:
		return &fbp.Null{}, nil
	case Int:
		return &fbp.Int{IntVal: int64(v)}, nil
	case Bool:
		return &fbp.Bool{BoolVal: bool(v)}, nil
	case Double:
		return &fbp.Double{DoubleVal: float64(v)}, nil
	case String:
		return &fbp.String{StringVal: string(v)}, nil
	case IntList:
		return &fbp.IntList{Items: nonNil(v)}, nil
	case DoubleList:
		return &fbp.DoubleList{Items: nonNil(v)}, nil
	case BoolList:
		return &fbp.BoolList{Items: nonNil(v)}, nil
	case TensorList:
		return &fbp.TensorList{Items: nonNil(v)}, nil
	case OptionalTensorList:
		return &fbp.OptionalTensorList{Items: nonNil(v)}, nil
	case *Tensor:
		if v == nil {
			break
		}
		w := &fbp.Tensor{
			ScalarType:     fbp.ScalarType(v.Type),
			StorageOffset:  v.StorageOffset,
			Sizes:          nonNil(v.Sizes),
			DimOrder:       nonNil(v.DimOrder),
			RequiresGrad:   v.RequiresGrad,
			DataBufferIdx:  v.Data,
			Layout:         v.Layout,
			ShapeDynamism:  fbp.TensorShapeDynamism(v.Dynamism),
			AllocationInfo: allocToWire(v.Alloc),
		}
		if x := v.Extra; x != nil {
			w.ExtraTensorInfo = &fbp.ExtraTensorInfo{
				FullyQualifiedName: x.Name,
				Location:           fbp.TensorDataLocation(x.Location),
				DeviceType:         fbp.DeviceType(x.Device),
				DeviceIndex:        x.DeviceIndex,
			}
		}
		return w, nil
	}
	return nil, fmt.Errorf("no value of a program: %T", v)
}

func allocToWire(a *Allocation) *fbp.AllocationDetails {
	if a == nil {
		return nil
	}
	return &fbp.AllocationDetails{
		MemoryID:         a.Memory,
		MemoryOffsetLow:  uint32(a.Offset),
		MemoryOffsetHigh: uint32(a.Offset >> 32),
	}
}

func chainToWire(c *Chain) (*fbp.Chain, error) {
	w := &fbp.Chain{
		Inputs: nonNil(c.Inputs), Outputs: nonNil(c.Outputs),
		Instructions: make([]*fbp.Instruction, len(c.Instructions)),
	}
	for i, in := range c.Instructions {
		var u fbp.InstructionArguments
		switch in := in.(type) {
		case KernelCall:
			u = &fbp.KernelCall{OpIndex: in.Op, Args: nonNil(in.Args)}
		case DelegateCall:
			u = &fbp.DelegateCall{DelegateIndex: in.Delegate, Args: nonNil(in.Args)}
		case MoveCall:
			u = &fbp.MoveCall{MoveFrom: in.From, MoveTo: in.To}
		case JumpFalseCall:
			u = &fbp.JumpFalseCall{CondValueIndex: in.Cond, DestinationInstruction: in.Target}
		case FreeCall:
			u = &fbp.FreeCall{ValueIndex: in.Value}
		default:
			return nil, fmt.Errorf("instructions[%d]: no instruction: %T", i, in)
		}
		w.Instructions[i] = &fbp.Instruction{InstrArgs: u}
	}
	for _, frames := range c.Stack {
		l := &fbp.FrameList{Items: make([]*fbp.Frame, len(frames))}
		for i, f := range frames {
			l.Items[i] = &fbp.Frame{Filename: f.File, Lineno: f.Line, Name: f.Name, Context: f.Context}
		}
		w.Stacktrace = append(w.Stacktrace, l)
	}
	return w, nil
}

// planFromWire is the inverse of planToWire. initialBase gives, for each mutable data
// segment, what to add to its indices to get those of Program.Initial.
func planFromWire(w *fbp.ExecutionPlan, initialBase []uint32) (*Plan, error) {
	p := &Plan{
		Name: w.Name, Inputs: w.Inputs, Outputs: w.Outputs, BufferSizes: w.NonConstBufferSizes,
		Values: make([]Value, len(w.Values)),
	}
	if m := w.ContainerMetaType; m != nil {
		p.InputSpec, p.OutputSpec = m.EncodedInpStr, m.EncodedOutStr
	}
	for i, v := range w.Values {
		u, err := valueFromWire(v.Val, initialBase)
		if err != nil {
			return nil, fmt.Errorf("values[%d]: %w", i, err)
		}
		p.Values[i] = u
	}
	for i, c := range w.Chains {
		pc := &Chain{Inputs: c.Inputs, Outputs: c.Outputs}
		for j, in := range c.Instructions {
			var x Instruction
			switch in := in.InstrArgs.(type) {
			case *fbp.KernelCall:
				x = KernelCall{in.OpIndex, in.Args}
			case *fbp.DelegateCall:
				x = DelegateCall{in.DelegateIndex, in.Args}
			case *fbp.MoveCall:
				x = MoveCall{in.MoveFrom, in.MoveTo}
			case *fbp.JumpFalseCall:
				x = JumpFalseCall{in.CondValueIndex, in.DestinationInstruction}
			case *fbp.FreeCall:
				x = FreeCall{in.ValueIndex}
			default:
				return nil, fmt.Errorf("chains[%d].instructions[%d] is empty", i, j)
			}
			pc.Instructions = append(pc.Instructions, x)
		}
		for _, l := range c.Stacktrace {
			frames := make([]Frame, len(l.Items))
			for k, f := range l.Items {
				frames[k] = Frame{File: f.Filename, Line: f.Lineno, Name: f.Name, Context: f.Context}
			}
			pc.Stack = append(pc.Stack, frames)
		}
		p.Chains = append(p.Chains, pc)
	}
	for _, o := range w.Operators {
		p.Operators = append(p.Operators, Operator{o.Name, o.Overload})
	}
	for _, d := range w.Delegates {
		pd := &Delegate{ID: d.ID}
		for _, s := range d.CompileSpecs {
			pd.Specs = append(pd.Specs, CompileSpec{s.Key, s.Value})
		}
		p.Delegates = append(p.Delegates, pd)
	}
	for _, b := range w.NonConstBufferDevice {
		p.BufferDevices = append(p.BufferDevices, BufferDevice{b.BufferIdx, DeviceType(b.DeviceType), b.DeviceIndex})
	}
	return p, nil
}

func valueFromWire(u fbp.KernelTypes, initialBase []uint32) (Value, error) {
	switch u := u.(type) {
	case nil:
		// The runtime refuses it too.
		return nil, fmt.Errorf("value without a type")
	case *fbp.Null:
		return Null{}, nil
	case *fbp.Int:
		return Int(u.IntVal), nil
	case *fbp.Bool:
		return Bool(u.BoolVal), nil
	case *fbp.Double:
		return Double(u.DoubleVal), nil
	case *fbp.String:
		return String(u.StringVal), nil
	case *fbp.IntList:
		return IntList(u.Items), nil
	case *fbp.DoubleList:
		return DoubleList(u.Items), nil
	case *fbp.BoolList:
		return BoolList(u.Items), nil
	case *fbp.TensorList:
		return TensorList(u.Items), nil
	case *fbp.OptionalTensorList:
		return OptionalTensorList(u.Items), nil
	case *fbp.Tensor:
		t := &Tensor{
			Type: ScalarType(u.ScalarType), StorageOffset: u.StorageOffset, Sizes: u.Sizes, DimOrder: u.DimOrder,
			RequiresGrad: u.RequiresGrad, Data: u.DataBufferIdx, Layout: u.Layout, Dynamism: Dynamism(u.ShapeDynamism),
		}
		if a := u.AllocationInfo; a != nil {
			t.Alloc = &Allocation{Memory: a.MemoryID, Offset: uint64(a.MemoryOffsetHigh)<<32 | uint64(a.MemoryOffsetLow)}
		}
		seg := uint64(0)
		if x := u.ExtraTensorInfo; x != nil {
			seg = x.MutableDataSegmentsIdx
			extra := TensorExtra{
				Name: x.FullyQualifiedName, Location: DataLocation(x.Location),
				Device: DeviceType(x.DeviceType), DeviceIndex: x.DeviceIndex,
			}
			if extra != (TensorExtra{}) {
				t.Extra = &extra
			}
		}
		if t.Alloc != nil && t.Data != 0 {
			if seg >= uint64(len(initialBase)) {
				return nil, fmt.Errorf("mutable data segment %d of %d", seg, len(initialBase))
			}
			if t.Data > math.MaxUint32-initialBase[seg] {
				return nil, fmt.Errorf("first value %d of mutable data segment %d", t.Data, seg)
			}
			t.Data += initialBase[seg]
		}
		return t, nil
	}
	return nil, fmt.Errorf("no value of a program: %T", u)
}
