package mlxrt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/lathe-ml/lathe/codegen/mlxpayload"
	"github.com/lathe-ml/lathe/codegen/pte"
	"github.com/lathe-ml/lathe/internal/etrt"
	"github.com/lathe-ml/lathe/ops"
)

// delegateID is the name the MLX delegate registers under.
const delegateID = "MLXBackend"

// maxSteps bounds the instructions of one call: jumps may form loops, and a wrong one would not end.
const maxSteps = 10_000_000

// Program is a loaded program. Methods keep their state between runs.
type Program struct {
	rt      *Runtime
	ctx     context.Context
	file    *pte.File
	python  *process
	kernels *etrt.Program
	methods map[string]*method
	handles int
}

// Load reads a program. Cancelling ctx ends what runs it.
func (r *Runtime) Load(ctx context.Context, path string) (*Program, error) {
	f, err := pte.Open(path)
	if err != nil {
		return nil, err
	}
	return &Program{rt: r, ctx: ctx, file: f, methods: map[string]*method{}}, nil
}

// Close ends the processes.
func (p *Program) Close() {
	if p.python != nil {
		p.python.close()
	}
	if p.kernels != nil {
		p.kernels.Close()
	}
	p.file.Close() //nolint:errcheck // only read
}

// tensor is the state of a tensor value: its bytes are a part of an arena, of the file, or its own.
type tensor struct {
	spec  *pte.Tensor
	shape []int64
	data  []byte // as many bytes as the bound of the shape needs
}

func (t *tensor) value() etrt.Value {
	e := &etrt.Tensor{DType: etrt.DType(t.spec.Type), Shape: slices.Clone(t.shape)}
	e.Strides = strides(t.shape, t.spec.DimOrder)
	e.Data = t.data[:e.Numel()*int64(e.DType.Size())]
	return etrt.TensorValue(e)
}

func (t *tensor) bound() []int64 {
	b := make([]int64, len(t.spec.Sizes))
	for i, s := range t.spec.Sizes {
		b[i] = int64(s)
	}
	return b
}

// resize gives the tensor another shape, as far as its kind allows. Like the runtime it holds bounded tensors to the number
// of their elements, not to each size.
func (t *tensor) resize(shape []int64) error {
	bound := t.bound()
	if len(shape) != len(bound) {
		return fmt.Errorf("rank %d becomes %d", len(bound), len(shape))
	}
	n, most := int64(1), int64(1)
	for i := range shape {
		n, most = n*shape[i], most*bound[i]
	}
	if t.spec.Dynamism == pte.Static && !slices.Equal(shape, bound) || t.spec.Dynamism == pte.DynamicBound && n > most {
		return fmt.Errorf("%s tensor of shape %v cannot become %v", t.spec.Dynamism, bound, shape)
	}
	t.shape = slices.Clone(shape)
	return nil
}

func strides(shape []int64, order []uint8) []int64 {
	sorted := true
	for i, d := range order {
		sorted = sorted && int(d) == i
	}
	if sorted {
		return nil
	}
	st := make([]int64, len(shape))
	step := int64(1)
	for i := len(order) - 1; i >= 0; i-- {
		st[order[i]] = step
		step *= shape[order[i]]
	}
	return st
}

// method is a loaded plan.
type method struct {
	p        *Program
	plan     *pte.Plan
	tensors  []*tensor    // by value index
	scalars  []etrt.Value // by value index, for what is no tensor and no list
	delegate []int        // handles by delegate
}

func blobBytes(b pte.Blob) ([]byte, error) {
	if m, ok := b.(pte.Mapped); ok {
		return m.Bytes(), nil
	}
	var w bytes.Buffer
	_, err := b.WriteTo(&w)
	return w.Bytes(), err
}

func (p *Program) method(name string) (*method, error) {
	if m, ok := p.methods[name]; ok {
		return m, nil
	}
	i := slices.IndexFunc(p.file.Plans, func(q *pte.Plan) bool { return q.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("the program has no method %q", name)
	}
	plan := p.file.Plans[i]
	m := &method{p: p, plan: plan, tensors: make([]*tensor, len(plan.Values)), scalars: make([]etrt.Value, len(plan.Values))}
	arenas := make([][]byte, len(plan.BufferSizes))
	for k, size := range plan.BufferSizes {
		if k > 0 {
			fill := byte(0)
			if p.rt.Poison {
				fill = 0xA5
			}
			arenas[k] = bytes.Repeat([]byte{fill}, int(size))
		}
	}
	for i, v := range plan.Values {
		switch v := v.(type) {
		case pte.Int:
			m.scalars[i] = etrt.IntValue(int64(v))
		case pte.Bool:
			m.scalars[i] = etrt.BoolValue(bool(v))
		case pte.Double:
			m.scalars[i] = etrt.FloatValue(float64(v))
		case pte.String:
			m.scalars[i] = etrt.StringValue(string(v))
		case *pte.Tensor:
			t, err := m.place(v, arenas)
			if err != nil {
				return nil, fmt.Errorf("value %d: %w", i, err)
			}
			m.tensors[i] = t
		}
	}
	for i, d := range plan.Delegates {
		if d.ID != delegateID {
			return nil, fmt.Errorf("delegate %d is for %s: this runs %s alone", i, d.ID, delegateID)
		}
		payload, err := blobBytes(d.Payload)
		if err != nil {
			return nil, err
		}
		g, err := mlxpayload.Unmarshal(payload)
		if err != nil {
			return nil, fmt.Errorf("delegate %d: %w", i, err)
		}
		if p.python == nil {
			if p.python, err = p.rt.start(p.ctx); err != nil {
				return nil, err
			}
		}
		if err := p.python.load(p.handles, g.Graph, p.named); err != nil {
			return nil, fmt.Errorf("delegate %d: %w", i, err)
		}
		m.delegate = append(m.delegate, p.handles)
		p.handles++
	}
	p.methods[name] = m
	return m, nil
}

func (p *Program) named(name string) ([]byte, error) {
	for _, n := range p.file.Named {
		if n.Key == name {
			return blobBytes(n.Data)
		}
	}
	return nil, &Error{Reason: fmt.Sprintf("the program has no named data %q", name)}
}

func (m *method) place(v *pte.Tensor, arenas [][]byte) (*tensor, error) {
	t := &tensor{spec: v}
	t.shape = t.bound()
	n, err := v.NBytes()
	if err != nil {
		return nil, err
	}
	program := m.p.file.Program
	switch {
	case v.Extra != nil && v.Extra.Location == pte.External:
		t.data, err = m.p.named(v.Extra.Name)
	case v.Alloc != nil:
		a := v.Alloc
		if int(a.Memory) >= len(arenas) || a.Offset > uint64(len(arenas[a.Memory])) || uint64(n) > uint64(len(arenas[a.Memory]))-a.Offset {
			return nil, fmt.Errorf("%d bytes at %d of memory %d lie outside of it", n, a.Offset, a.Memory)
		}
		t.data = arenas[a.Memory][a.Offset : a.Offset+uint64(n)]
		if v.Data > 0 {
			var initial []byte
			if initial, err = blobBytes(program.Initial[v.Data]); err == nil {
				copy(t.data, initial)
			}
		}
	case v.Data > 0:
		t.data, err = blobBytes(program.Constants[v.Data])
	default:
		t.data = make([]byte, n)
	}
	if err == nil && int64(len(t.data)) < n {
		err = fmt.Errorf("%d bytes for a tensor of %d", len(t.data), n)
	}
	return t, err
}

// Run executes a method, as etrt.Program.Run does.
func (p *Program) Run(name string, inputs []etrt.Value) ([]etrt.Value, error) {
	m, err := p.method(name)
	if err != nil {
		return nil, fmt.Errorf("method %s: %w", name, err)
	}
	if len(inputs) != len(m.plan.Inputs) {
		return nil, fmt.Errorf("method %s takes %d inputs, %d given", name, len(m.plan.Inputs), len(inputs))
	}
	for i, v := range inputs {
		if err := m.input(int(m.plan.Inputs[i]), v); err != nil {
			return nil, fmt.Errorf("method %s, input %d: %w", name, i, err)
		}
	}
	if err := m.run(); err != nil {
		return nil, fmt.Errorf("method %s: %w", name, err)
	}
	outs := make([]etrt.Value, len(m.plan.Outputs))
	for i, o := range m.plan.Outputs {
		v, err := m.value(int(o))
		if err != nil {
			return nil, fmt.Errorf("method %s, output %d: %w", name, i, err)
		}
		if v.Kind == etrt.KindTensor {
			v.Tensor.Data = slices.Clone(v.Tensor.Data)
		}
		outs[i] = v
	}
	return outs, nil
}

func (m *method) input(i int, v etrt.Value) error {
	t := m.tensors[i]
	if t == nil {
		return m.fixed(v, m.plan.Values[i])
	}
	if v.Kind != etrt.KindTensor {
		return fmt.Errorf("%s given, a tensor expected", v.Kind)
	}
	if v.Tensor.DType != etrt.DType(t.spec.Type) {
		return fmt.Errorf("%s given, %s expected", v.Tensor.DType, etrt.DType(t.spec.Type))
	}
	if err := t.resize(v.Tensor.Shape); err != nil {
		return err
	}
	if t.spec.Alloc == nil && t.spec.Data == 0 {
		t.data = make([]byte, len(t.data))
	}
	copy(t.data, v.Tensor.Data)
	return nil
}

// fixed compares an input that is no tensor with the value in the program: the runtime takes no other.
func (m *method) fixed(v etrt.Value, want pte.Value) error {
	same := false
	switch w := want.(type) {
	case pte.Null:
		same = v.Kind == etrt.KindNone
	case pte.Int:
		same = v.Kind == etrt.KindInt && v.Int == int64(w)
	case pte.Double:
		same = v.Kind == etrt.KindFloat && math.Abs(v.Float-float64(w)) < 1e-4
	case pte.Bool:
		same = v.Kind == etrt.KindBool && v.Bool == bool(w)
	case pte.String:
		same = v.Kind == etrt.KindString && v.Str == string(w)
	}
	if !same {
		return fmt.Errorf("the program was made for %v", want)
	}
	return nil
}

// value gives a value as the runtime would pass it.
func (m *method) value(i int) (etrt.Value, error) {
	if t := m.tensors[i]; t != nil {
		return t.value(), nil
	}
	list := func(kind etrt.Kind, idx []int32) (etrt.Value, error) {
		v := etrt.Value{Kind: kind}
		for _, k := range idx {
			var e *etrt.Tensor
			if k >= 0 {
				if m.tensors[k] == nil {
					return v, fmt.Errorf("value %d in a list is no tensor", k)
				}
				e = m.tensors[k].value().Tensor
			}
			v.Tensors = append(v.Tensors, e)
		}
		return v, nil
	}
	switch v := m.plan.Values[i].(type) {
	case pte.IntList:
		r := etrt.Value{Kind: etrt.KindInts}
		for _, k := range v {
			r.Ints = append(r.Ints, m.scalars[k].Int)
		}
		return r, nil
	case pte.DoubleList:
		return etrt.Value{Kind: etrt.KindFloats, Floats: v}, nil
	case pte.BoolList:
		return etrt.Value{Kind: etrt.KindBools, Bools: v}, nil
	case pte.TensorList:
		return list(etrt.KindTensors, v)
	case pte.OptionalTensorList:
		return list(etrt.KindOptionalTensors, v)
	}
	return m.scalars[i], nil
}

func (m *method) run() error {
	if len(m.plan.Chains) != 1 {
		return fmt.Errorf("%d chains, the runtime takes one", len(m.plan.Chains))
	}
	code := m.plan.Chains[0].Instructions
	for pc, steps := 0, 0; pc < len(code); steps++ {
		if steps == maxSteps {
			return errors.New("the program does not end")
		}
		next := pc + 1
		var err error
		switch in := code[pc].(type) {
		case pte.KernelCall:
			err = m.kernel(in)
		case pte.DelegateCall:
			err = m.call(in)
		case pte.MoveCall:
			m.tensors[in.To], m.scalars[in.To] = m.tensors[in.From], m.scalars[in.From]
		case pte.JumpFalseCall:
			var truth bool
			if truth, err = m.truth(int(in.Cond)); err == nil && !truth {
				next = int(in.Target)
			}
		case pte.FreeCall:
		default:
			err = fmt.Errorf("instruction %T", in)
		}
		if err != nil {
			return fmt.Errorf("instruction %d: %w", pc, err)
		}
		pc = next
	}
	return nil
}

func (m *method) truth(i int) (bool, error) {
	if t := m.tensors[i]; t != nil {
		if t.spec.Type != pte.ScalarBool {
			return false, errors.New("a condition that is no bool tensor")
		}
		return !slices.Contains(t.value().Tensor.Data, 0), nil
	}
	if m.scalars[i].Kind != etrt.KindBool {
		return false, errors.New("a condition that is no bool")
	}
	return m.scalars[i].Bool, nil
}

func (m *method) call(in pte.DelegateCall) error {
	d := int(in.Delegate)
	g := m.plan.Delegates[d]
	payload, err := blobBytes(g.Payload)
	if err != nil {
		return err
	}
	graph, err := mlxpayload.Unmarshal(payload)
	if err != nil {
		return err
	}
	n := len(graph.Graph.InputMap)
	if len(in.Args) != n+len(graph.Graph.OutputMap) {
		return fmt.Errorf("delegate %d takes %d arguments, %d given", d, n+len(graph.Graph.OutputMap), len(in.Args))
	}
	var args, wanted []etrt.Value
	for k, a := range in.Args {
		v, err := m.value(int(a))
		if err != nil {
			return err
		}
		if k >= n {
			wanted = append(wanted, v)
			continue
		}
		if v.Kind == etrt.KindTensor && v.Tensor.Strides != nil {
			return &Error{Reason: fmt.Sprintf("delegate %d, input %d is not contiguous", d, k)}
		}
		args = append(args, v)
	}
	outs, err := m.p.python.run(m.delegate[d], args, wanted)
	if err != nil {
		return fmt.Errorf("delegate %d: %w", d, err)
	}
	for k, v := range outs {
		if err := m.store(int(in.Args[n+k]), v); err != nil {
			return fmt.Errorf("delegate %d, output %d: %w", d, k, err)
		}
	}
	return nil
}

// store assigns what a kernel or a delegate left in a value.
func (m *method) store(i int, v etrt.Value) error {
	t := m.tensors[i]
	if t == nil {
		m.scalars[i] = v
		return nil
	}
	if v.Kind != etrt.KindTensor {
		return fmt.Errorf("a %s for a tensor", v.Kind)
	}
	if t.spec.Alloc == nil && t.spec.Data > 0 {
		return errors.New("a constant is written")
	}
	if err := t.resize(v.Tensor.Shape); err != nil {
		return err
	}
	copy(t.data, v.Tensor.Data)
	return nil
}

func (m *method) kernel(in pte.KernelCall) error {
	op := m.plan.Operators[in.Op]
	name := op.Name
	if op.Overload != "" {
		name += "." + op.Overload
	}
	k := ops.LookupKernel(name)
	if k == nil {
		return fmt.Errorf("no kernel %s", name)
	}
	if m.p.kernels == nil {
		if m.p.rt.et == nil {
			return etrt.ErrNotBuilt
		}
		var err error
		if m.p.kernels, err = m.p.rt.et.Start(m.p.ctx); err != nil {
			return err
		}
	}
	scalar := k.Schema.NS == "executorch_prim" || k.Schema.Base == "sym_size" || k.Schema.Base == "sym_numel" || k.Schema.Base == "_local_scalar_dense"
	idx := in.Args
	if !scalar {
		// The result stands once more at the end.
		if len(idx) != len(k.Schema.Args)+1 {
			return fmt.Errorf("%s takes %d arguments, %d given", name, len(k.Schema.Args)+1, len(idx))
		}
		idx = idx[:len(idx)-1]
	}
	args := make([]etrt.Value, len(idx))
	for j, a := range idx {
		var err error
		if args[j], err = m.argument(k, j, int(a)); err != nil {
			return fmt.Errorf("%s, argument %d: %w", name, j, err)
		}
	}
	outs, err := m.p.kernels.CallKernel(name, args)
	if err != nil {
		return err
	}
	for j, a := range idx {
		if !scalar && !k.Schema.Args[j].Write {
			// The wrapper leaves the result of a kernel without an out argument in the last argument's place.
			continue
		}
		if err := m.changed(int(a), args[j], outs[j]); err != nil {
			return fmt.Errorf("%s, argument %d: %w", name, j, err)
		}
	}
	return nil
}

// argument gives a kernel's argument; out arguments have the bound of their shape, which the kernel cuts down.
func (m *method) argument(k *ops.KernelInfo, j, i int) (etrt.Value, error) {
	out := j < len(k.Schema.Args) && k.Schema.Args[j].Write && (k.Schema.Args[j].KwOnly || k.Schema.NS == "executorch_prim")
	grow := func(v int) {
		if t := m.tensors[v]; t != nil && out {
			t.shape = t.bound()
		}
	}
	grow(i)
	if l, ok := m.plan.Values[i].(pte.TensorList); ok {
		for _, v := range l {
			grow(int(v))
		}
	}
	return m.value(i)
}

// changed writes back what the kernel changed of an argument: inputs that share memory with an output must not be.
func (m *method) changed(i int, before, after etrt.Value) error {
	same := func(a, b *etrt.Tensor) bool {
		return a == nil || b == nil || slices.Equal(a.Shape, b.Shape) && bytes.Equal(a.Data, b.Data)
	}
	switch before.Kind {
	case etrt.KindTensor:
		if same(before.Tensor, after.Tensor) {
			return nil
		}
	case etrt.KindTensors, etrt.KindOptionalTensors:
		var idx []int32
		switch l := m.plan.Values[i].(type) {
		case pte.TensorList:
			idx = l
		case pte.OptionalTensorList:
			idx = l
		}
		for k, v := range idx {
			if v >= 0 && !same(before.Tensors[k], after.Tensors[k]) {
				if err := m.store(int(v), etrt.TensorValue(after.Tensors[k])); err != nil {
					return err
				}
			}
		}
		return nil
	case etrt.KindInts, etrt.KindFloats, etrt.KindBools, etrt.KindString:
		return nil
	}
	return m.store(i, after)
}
