package pt2

import (
	"fmt"
	"strconv"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/pt2/schema"
)

// arg converts an argument as it is written, without regard to an operator's schema.
func (s *scope) arg(a *schema.Argument) (ir.Arg, error) {
	switch a.Arm {
	case schema.ArgumentAsNone:
		return ir.None, nil
	case schema.ArgumentAsTensor:
		return s.ref(a.AsTensor().Name, ir.KindTensor)
	case schema.ArgumentAsTensors:
		return s.tensorList(a.AsTensors())
	case schema.ArgumentAsNestedTensors:
		return each(a.AsNestedTensors(), func(l []schema.TensorArgument) (ir.Arg, error) { return s.tensorList(l) })
	case schema.ArgumentAsOptionalTensor:
		return s.optional(a.AsOptionalTensor())
	case schema.ArgumentAsOptionalTensors:
		return each(a.AsOptionalTensors(), func(o schema.OptionalTensorArgument) (ir.Arg, error) { return s.optional(&o) })
	case schema.ArgumentAsInt:
		return ir.Int(a.AsInt()), nil
	case schema.ArgumentAsInts:
		return ir.Ints(a.AsInts()...), nil
	case schema.ArgumentAsIntLists:
		return each(a.AsIntLists(), func(l []int64) (ir.Arg, error) { return ir.Ints(l...), nil })
	case schema.ArgumentAsSymInt:
		return s.symInt(*a.AsSymInt())
	case schema.ArgumentAsSymInts:
		return each(a.AsSymInts(), s.symInt)
	case schema.ArgumentAsFloat:
		return ir.Float(a.AsFloat()), nil
	case schema.ArgumentAsFloats:
		return floats(a.AsFloats())
	case schema.ArgumentAsFloatLists:
		return each(a.AsFloatLists(), floats)
	case schema.ArgumentAsSymFloat:
		return s.symFloat(*a.AsSymFloat())
	case schema.ArgumentAsSymFloats:
		return each(a.AsSymFloats(), s.symFloat)
	case schema.ArgumentAsBool:
		return ir.Bool(a.AsBool()), nil
	case schema.ArgumentAsBools:
		return each(a.AsBools(), func(b bool) (ir.Arg, error) { return ir.Bool(b), nil })
	case schema.ArgumentAsSymBool:
		return s.symBool(*a.AsSymBool())
	case schema.ArgumentAsSymBools:
		return each(a.AsSymBools(), s.symBool)
	case schema.ArgumentAsComplex:
		c := a.AsComplex()
		return ir.Complex(c.Real, c.Imag), nil
	case schema.ArgumentAsString:
		return ir.Str(a.AsString()), nil
	case schema.ArgumentAsStrings:
		return each(a.AsStrings(), func(t string) (ir.Arg, error) { return ir.Str(t), nil })
	case schema.ArgumentAsOperator:
		return ir.Str(target(a.AsOperator())), nil
	case schema.ArgumentAsScalarType:
		d := dtypeOf(a.AsScalarType())
		if d == ops.DTypeNone {
			return ir.None, fmt.Errorf("element type %s", a.AsScalarType())
		}
		return ir.DTypeArg(d), nil
	case schema.ArgumentAsMemoryFormat:
		return named(a.AsMemoryFormat(), memoryFormats, ir.MemoryFormat)
	case schema.ArgumentAsLayout:
		return named(a.AsLayout(), layouts, ir.Layout)
	case schema.ArgumentAsDevice:
		d := a.AsDevice()
		if d.Index.OK {
			return ir.Device(d.Type + ":" + strconv.FormatInt(d.Index.V, 10)), nil
		}
		return ir.Device(d.Type), nil
	case schema.ArgumentAsGraph:
		g, err := s.nested(a.AsGraph())
		return ir.GraphArg(g), err
	}
	return ir.None, fmt.Errorf("%s cannot be compiled", a.Arm)
}

func each[T any](l []T, f func(T) (ir.Arg, error)) (ir.Arg, error) {
	as := make([]ir.Arg, len(l))
	for i, e := range l {
		a, err := f(e)
		if err != nil {
			return ir.None, fmt.Errorf("element %d: %w", i, err)
		}
		as[i] = a
	}
	return ir.List(as...), nil
}

func floats(l []float64) (ir.Arg, error) {
	return each(l, func(f float64) (ir.Arg, error) { return ir.Float(f), nil })
}

// ref is a reference to a named value of the given kind.
func (s *scope) ref(name string, kind ir.Kind) (ir.Arg, error) {
	v, err := s.value(name)
	if err != nil {
		return ir.None, err
	}
	if v == nil {
		return ir.None, nil // an effect token
	}
	if v.Type.Kind != kind {
		return ir.None, fmt.Errorf("value %q is a %s where a %s should be", name, v.Type.Kind, kind)
	}
	return ir.Ref(v), nil
}

func (s *scope) tensorList(l []schema.TensorArgument) (ir.Arg, error) {
	return each(l, func(t schema.TensorArgument) (ir.Arg, error) { return s.ref(t.Name, ir.KindTensor) })
}

func (s *scope) optional(o *schema.OptionalTensorArgument) (ir.Arg, error) {
	if o.Arm == schema.OptionalTensorArgumentAsNone {
		return ir.None, nil
	}
	return s.ref(o.AsTensor().Name, ir.KindTensor)
}

func (s *scope) symInt(i schema.SymIntArgument) (ir.Arg, error) {
	if i.Arm == schema.SymIntArgumentAsInt {
		return ir.Int(i.AsInt()), nil
	}
	return s.ref(i.AsName(), ir.KindInt)
}

func (s *scope) symFloat(f schema.SymFloatArgument) (ir.Arg, error) {
	if f.Arm == schema.SymFloatArgumentAsFloat {
		return ir.Float(f.AsFloat()), nil
	}
	return s.ref(f.AsName(), ir.KindFloat)
}

func (s *scope) symBool(b schema.SymBoolArgument) (ir.Arg, error) {
	if b.Arm == schema.SymBoolArgumentAsBool {
		return ir.Bool(b.AsBool()), nil
	}
	return s.ref(b.AsName(), ir.KindBool)
}

var memoryFormats = map[schema.MemoryFormat]string{
	schema.MemoryFormatContiguousFormat: "contiguous_format", schema.MemoryFormatChannelsLast: "channels_last",
	schema.MemoryFormatChannelsLast3d: "channels_last_3d", schema.MemoryFormatPreserveFormat: "preserve_format",
}

var layouts = map[schema.Layout]string{
	schema.LayoutStrided: "strided", schema.LayoutSparseCoo: "sparse_coo", schema.LayoutSparseCsr: "sparse_csr",
	schema.LayoutSparseCsc: "sparse_csc", schema.LayoutSparseBsr: "sparse_bsr", schema.LayoutSparseBsc: "sparse_bsc",
	schema.LayoutMkldnn: "mkldnn",
}

func named[T interface {
	comparable
	String() string
}](code T, names map[T]string, f func(string) ir.Arg) (ir.Arg, error) {
	n, ok := names[code]
	if !ok {
		return ir.None, fmt.Errorf("%s cannot be compiled", code)
	}
	return f(n), nil
}

// fit makes an argument what the operator's schema says: a single number stands for a list of a known size, an integer
// for a float; a number may stand where a tensor is asked for and stays a number (its type does not take part in type
// promotion as a tensor's does).
func fit(a ir.Arg, want *ops.Arg) (ir.Arg, error) {
	if want.Type == ops.TAny {
		return a, nil
	}
	if a.IsNone() {
		if want.Opt || want.HasDefault && want.Default == "None" || want.Type == ops.TGenerator {
			return a, nil
		}
		return a, fmt.Errorf("no value (None) where %s should be", describe(want))
	}
	if !want.List {
		return fitOne(a, want)
	}
	if a.Kind() != ir.ArgList {
		if want.Size == 0 {
			return a, fmt.Errorf("a single value where %s should be", describe(want))
		}
		e, err := fitOne(a, want)
		l := make([]ir.Arg, want.Size)
		for i := range l {
			l[i] = e
		}
		return ir.List(l...), err
	}
	same := true
	out := make([]ir.Arg, len(a.List()))
	for i, e := range a.List() {
		if e.IsNone() && want.ElemOpt {
			continue
		}
		f, err := fitOne(e, want)
		if err != nil {
			return a, fmt.Errorf("element %d: %w", i, err)
		}
		out[i] = f
		same = same && f.Kind() == e.Kind()
	}
	if same {
		return a, nil
	}
	return ir.List(out...), nil
}

func fitOne(a ir.Arg, want *ops.Arg) (ir.Arg, error) {
	k := a.Kind()
	number := k == ir.ArgInt || k == ir.ArgFloat || k == ir.ArgBool || k == ir.ArgComplex
	scalar := false // a computed number
	if v := a.Value(); v != nil {
		switch v.Type.Kind {
		case ir.KindInt, ir.KindFloat, ir.KindBool:
			scalar = true
		}
	}
	ok := false
	switch want.Type {
	case ops.TTensor:
		ok = number || k == ir.ArgValue
	case ops.TScalar:
		ok = number || scalar
	case ops.TInt:
		if b, isBool := a.Bool(); k == ir.ArgBool && isBool {
			n := int64(0)
			if b {
				n = 1
			}
			return ir.Int(n), nil
		}
		ok = k == ir.ArgInt || scalar && a.Value().Type.Kind == ir.KindInt
	case ops.TFloat:
		if f, isNum := a.Float(); isNum && k != ir.ArgFloat {
			return ir.Float(f), nil
		}
		ok = k == ir.ArgFloat || k == ir.ArgInt || scalar
	case ops.TBool:
		if b, isNum := a.Bool(); isNum && k == ir.ArgInt {
			return ir.Bool(b), nil
		}
		ok = k == ir.ArgBool || scalar && a.Value().Type.Kind == ir.KindBool
	case ops.TStr:
		ok = k == ir.ArgStr
	case ops.TDType:
		ok = k == ir.ArgDType
	case ops.TLayout:
		ok = k == ir.ArgLayout
	case ops.TMemoryFormat:
		ok = k == ir.ArgMemory
	case ops.TDevice:
		ok = k == ir.ArgDevice
		if t, isStr := a.Str(); isStr && k == ir.ArgStr {
			return ir.Device(t), nil
		}
	case ops.TGraph:
		ok = k == ir.ArgGraph
	}
	if !ok {
		return a, fmt.Errorf("%s where %s should be", kindName(a), describe(want))
	}
	return a, nil
}

func describe(want *ops.Arg) string {
	n := argTypes[want.Type]
	if want.List {
		return "a list of " + n
	}
	return n
}

var argTypes = map[ops.ArgType]string{
	ops.TTensor: "tensor", ops.TInt: "int", ops.TFloat: "float", ops.TBool: "bool", ops.TScalar: "number", ops.TStr: "string",
	ops.TDType: "element type", ops.TLayout: "layout", ops.TDevice: "device", ops.TMemoryFormat: "memory format",
	ops.TGenerator: "generator", ops.TGraph: "graph",
}

func kindName(a ir.Arg) string {
	if v := a.Value(); v != nil {
		return v.Type.Kind.String()
	}
	return [...]string{
		"None", "value", "int", "float", "bool", "string", "element type", "layout", "memory format", "device", "complex number",
		"list", "graph",
	}[a.Kind()]
}
