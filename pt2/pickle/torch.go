package pickle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lathe-ml/lathe/ops"
)

// Tensor is a view of a storage, as torch pickles it.
type Tensor struct {
	DType ops.DType
	// Key names the storage's record, data/KEY beside the pickle.
	Key            string
	Sizes, Strides []int64
	Offset         int64 // in elements
}

// Subclass is a tensor subclass that wraps other tensors, as torchao pickles its weights.
type Subclass struct {
	// Class is the class, module.Name.
	Class string
	// DType and Sizes are what the model sees.
	DType          ops.DType
	Sizes, Strides []int64
	// Attrs are the inner tensors and other attributes by name.
	Attrs []Attr
}

// Attr is an attribute of a Subclass. Value is nil, a bool, int64, float64, string, []any, *Tensor, *Subclass, DType, or
// an *Object, which is only a name with data.
type Attr struct {
	Name  string
	Value any
}

// DType is an element type. Torch's small integers, of which it has no tensors, are only a name.
type DType struct {
	DType ops.DType
	Name  string
}

// Base is the class's name without its module.
func (s *Subclass) Base() string { return s.Class[strings.LastIndexByte(s.Class, '.')+1:] }

// Attr finds an attribute.
func (s *Subclass) Attr(name string) (any, bool) {
	for _, a := range s.Attrs {
		if a.Name == name {
			return a.Value, true
		}
	}
	return nil, false
}

// What a weight may be made of: torch's own constructors by name, classes of torchao and of ExecuTorch's exporter by module.
var (
	constructors = []string{
		"torch._tensor._rebuild_from_type_v2", "torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_tensor_v3",
		"torch._utils._rebuild_parameter", "torch._utils._rebuild_parameter_with_state", "torch._utils._rebuild_wrapper_subclass",
		"torch.serialization._get_layout", "torch.device", "torch.Size", "torch.Tensor", "torch.nn.parameter.Parameter",
		"torch.nn.Parameter", "torch.storage.UntypedStorage", "torch.UntypedStorage", "torch.strided", "collections.OrderedDict",
		"torch.contiguous_format", "torch.preserve_format", "torch.per_tensor_affine", "torch.per_channel_affine",
	}
	modules = []string{"torchao.", "executorch.extension.llm.export."}
)

// AllowWeights allows what pickled weights are made of.
func AllowWeights(g Global) bool {
	if slices.Contains(constructors, g.String()) {
		return true
	}
	if g.Module == "torch" {
		if _, ok := storages[g.Name]; ok {
			return true
		}
		_, ok := dtype(g)
		return ok
	}
	for _, m := range modules {
		// A dotted name could reach through an imported module to something else.
		if strings.HasPrefix(g.Module+".", m) && !strings.Contains(g.Name, ".") {
			return true
		}
	}
	return false
}

var storages = map[string]ops.DType{
	"FloatStorage": ops.Float32, "DoubleStorage": ops.Float64, "HalfStorage": ops.Float16, "BFloat16Storage": ops.BFloat16,
	"LongStorage": ops.Int64, "IntStorage": ops.Int32, "ShortStorage": ops.Int16, "CharStorage": ops.Int8,
	"ByteStorage": ops.Uint8, "BoolStorage": ops.Bool, "ComplexFloatStorage": ops.Complex64, "ComplexDoubleStorage": ops.Complex128,
}

func dtype(g Global) (DType, bool) {
	if g.Module != "torch" {
		return DType{}, false
	}
	// The table knows short names too, which are none of torch's.
	if d, ok := ops.ParseDType(g.Name); ok && d.Torch() == g.Name {
		return DType{d, g.Name}, true
	}
	n := strings.TrimPrefix(g.Name, "u")
	if len(n) == 4 && strings.HasPrefix(n, "int") && n[3] >= '1' && n[3] <= '7' {
		return DType{Name: g.Name}, true
	}
	return DType{}, false
}

// Nesting deeper, or more values than this, is no weight. A short pickle can stand for very many values by referring to
// one twice, and that to another.
const (
	maxDepth  = 32
	maxValues = 1 << 20
)

// Torch makes of a loaded value what torch means by it: *Tensor, *Subclass, DType, []any for lists and tuples, *Dict with
// such values; other objects stay what they are.
func Torch(v any) (any, error) { return new(converter).torch(v, 0) }

type converter struct{ values int }

func (c *converter) torch(v any, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d levels", maxDepth)
	}
	if c.values++; c.values > maxValues {
		return nil, fmt.Errorf("more than %d values", maxValues)
	}
	list := func(items []any) (any, error) {
		out := make([]any, len(items))
		for i, e := range items {
			var err error
			if out[i], err = c.torch(e, depth+1); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	switch v := v.(type) {
	case Tuple:
		return list(v)
	case *List:
		return list(v.Items)
	case *Dict:
		d := &Dict{Keys: v.Keys, Values: make([]any, len(v.Values))}
		for i, e := range v.Values {
			var err error
			if d.Values[i], err = c.torch(e, depth+1); err != nil {
				return nil, err
			}
		}
		return d, nil
	case Global:
		if d, ok := dtype(v); ok {
			return d, nil
		}
		return v, nil
	case *Object:
		return c.object(v, depth)
	}
	return v, nil
}

func (c *converter) object(o *Object, depth int) (any, error) {
	arg := func(i int) any {
		if i < len(o.Args) {
			return o.Args[i]
		}
		return nil
	}
	switch o.Class.String() {
	case "torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_tensor_v3":
		return tensor(o)
	case "torch._utils._rebuild_parameter", "torch._utils._rebuild_parameter_with_state":
		return c.torch(arg(0), depth+1)
	case "torch._tensor._rebuild_from_type_v2":
		f, ok := arg(0).(Global)
		args, ok2 := arg(2).(Tuple)
		if !ok || !ok2 {
			return nil, fmt.Errorf("%s: arguments %d of another form", o.Class, len(o.Args))
		}
		if f.String() != "torch._utils._rebuild_wrapper_subclass" {
			return c.torch(&Object{Class: f, Args: args}, depth+1)
		}
		return c.subclass(args, arg(3), depth)
	case "collections.OrderedDict":
		return c.torch(&Dict{Keys: o.Dict.Keys, Values: o.Dict.Values}, depth+1)
	case "torch.Size":
		return c.torch(arg(0), depth+1)
	case "torch.device":
		if s, ok := arg(0).(string); ok {
			return s, nil
		}
	}
	return o, nil
}

func ints(v any) ([]int64, bool) {
	var items []any
	switch v := v.(type) {
	case Tuple:
		items = v
	case *List:
		items = v.Items
	case *Object:
		if v.Class.String() == "torch.Size" && len(v.Args) == 1 {
			return ints(v.Args[0])
		}
		return nil, false
	default:
		return nil, false
	}
	ks := make([]int64, len(items))
	for i, e := range items {
		k, ok := e.(int64)
		if !ok || k < 0 {
			return nil, false
		}
		ks[i] = k
	}
	return ks, true
}

// tensor reads (storage, offset, sizes, strides, requires_grad, hooks[, dtype[, metadata]]).
func tensor(o *Object) (*Tensor, error) {
	bad := func(what string) (*Tensor, error) { return nil, fmt.Errorf("%s: bad %s", o.Class, what) }
	if len(o.Args) < 6 {
		return bad("arguments")
	}
	p, _ := o.Args[0].(Persistent)
	id, _ := p.ID.(Tuple)
	if len(id) < 5 || id[0] != "storage" {
		return bad("storage")
	}
	class, ok := id[1].(Global)
	if !ok {
		return bad("storage class")
	}
	t := &Tensor{}
	if t.Key, ok = id[2].(string); !ok {
		return bad("storage key")
	}
	t.DType, ok = storages[class.Name]
	if o.Class.Name == "_rebuild_tensor_v3" {
		if len(o.Args) < 7 {
			return bad("arguments")
		}
		g, isGlobal := o.Args[6].(Global)
		var d DType
		if d, ok = dtype(g); !isGlobal || !ok || d.DType == ops.DTypeNone {
			return bad("element type")
		}
		t.DType = d.DType
	} else if !ok {
		return bad("storage class")
	}
	var okOff, okSizes, okStrides bool
	t.Offset, okOff = o.Args[1].(int64)
	t.Sizes, okSizes = ints(o.Args[2])
	t.Strides, okStrides = ints(o.Args[3])
	if !okOff || t.Offset < 0 || !okSizes || !okStrides || len(t.Sizes) != len(t.Strides) {
		return bad("sizes, strides or offset")
	}
	return t, nil
}

// subclass reads (class, dtype, sizes, strides, offset, layout, device, requires_grad) and the attributes.
func (c *converter) subclass(args Tuple, state any, depth int) (*Subclass, error) {
	bad := func(what string) (*Subclass, error) { return nil, fmt.Errorf("tensor subclass: bad %s", what) }
	if len(args) < 4 {
		return bad("arguments")
	}
	class, ok := args[0].(Global)
	if !ok {
		return bad("class")
	}
	s := &Subclass{Class: class.String()}
	g, _ := args[1].(Global)
	d, ok := dtype(g)
	if !ok || d.DType == ops.DTypeNone {
		return bad("element type")
	}
	s.DType = d.DType
	var okSizes, okStrides bool
	s.Sizes, okSizes = ints(args[2])
	s.Strides, okStrides = ints(args[3])
	if !okSizes || !okStrides || len(s.Sizes) != len(s.Strides) {
		return bad("sizes or strides")
	}
	// With __slots__ the state is a pair, of which the first is the dictionary.
	if t, ok := state.(Tuple); ok && len(t) == 2 {
		state = t[0]
	}
	attrs, ok := state.(*Dict)
	if !ok {
		return bad("state")
	}
	for i, k := range attrs.Keys {
		name, ok := k.(string)
		if !ok {
			return bad("attribute name")
		}
		v, err := c.torch(attrs.Values[i], depth+1)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		s.Attrs = append(s.Attrs, Attr{name, v})
	}
	return s, nil
}
