package lathe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/lathe-ml/lathe/internal/etrt"
	"github.com/lathe-ml/lathe/interp"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/passes"
)

// The engines that run programs: the reference interpreter and the stock ExecuTorch runtime.
const (
	EngineReference  = "reference"
	EngineExecuTorch = "executorch"
)

// RunOptions choose what is run and how.
type RunOptions struct {
	// Engine is one of the engines; empty means the reference for models and ExecuTorch for .pte files.
	Engine string
	// Method may be empty where there is one.
	Method string
	// Seed feeds random operators, and random weights of IR text that came without.
	Seed uint64
	// Threads of the ExecuTorch runtime; zero leaves that to it.
	Threads int
	// ExternalWeights is the data file (.ptd) of a .pte file whose weights are kept apart.
	ExternalWeights string
	// Compile are the options with which a model is compiled for ExecuTorch; inputs and output are set.
	Compile Options
}

// Runner is a program made ready to run. It keeps the program's state from call to call.
type Runner struct {
	inputs []slot
	syms   *sym.Table
	call   func(ctx context.Context, inputs []Value) ([]Value, error)
	reset  func(ctx context.Context) error
	closes []func()
	// Notes are what compiling the program remarked.
	Notes []string
	// recorded are the inputs of the export, nil where the file has none.
	recorded []Value
}

// slot is an input of a program.
type slot struct {
	ValueInfo
	typ      ir.Type
	fixed    Value
	hasFixed bool
}

// OpenRunner makes the program at path ready.
func OpenRunner(ctx context.Context, path string, o RunOptions) (*Runner, error) {
	f, err := Sniff(path)
	if err != nil {
		return nil, err
	}
	if o.Engine == "" {
		o.Engine = EngineReference
		if f == FormatPTE {
			o.Engine = EngineExecuTorch
		}
	}
	if err := o.check(f); err != nil {
		return nil, err
	}
	if f == FormatPTE {
		return openProgram(ctx, path, o)
	}
	m, err := Open(path)
	if err != nil {
		return nil, err
	}
	g, err := m.method(o.Method)
	if err != nil {
		m.Close()
		return nil, err
	}
	if err := bindDims(g, o.Compile.Dims); err != nil {
		m.Close()
		return nil, err
	}
	if o.Engine == EngineReference {
		notes, err := o.quantize(ctx, path, g)
		if err != nil {
			m.Close()
			return nil, err
		}
		recorded := m.Recorded(g)
		r := NewReference(g, o.Seed)
		r.Notes, r.recorded = notes, recorded
		r.closes = append(r.closes, m.Close)
		return r, nil
	}
	slots, syms, recorded := modelSlots(g), g.Syms, m.Recorded(g)
	name := g.Name
	m.Close()
	r, err := compileAndOpen(ctx, path, name, o)
	if err != nil {
		return nil, err
	}
	// The archive knows more of its inputs than the program does.
	r.inputs, r.syms, r.recorded = slots, syms, recorded
	return r, nil
}

// quantize makes integers of the weights of a model for the reference engine, where that is asked for.
func (o RunOptions) quantize(ctx context.Context, path string, g *ir.Graph) (notes []string, err error) {
	c := o.Compile
	c.Inputs = []Input{{Path: path}}
	layers := 0
	c.ran = func(_ string, pc *passes.Context) { layers, notes = layers+pc.Quantized, append(notes, pc.Notes...) }
	if err := c.run(ctx, c.quantizeOnly(), g, nil); err != nil {
		return nil, err
	}
	return notes, c.noneQuantized(layers, notes)
}

// check refuses what the engine would not look at.
func (o RunOptions) check(f Format) error {
	program := f == FormatPTE
	switch {
	case program && o.Engine == EngineReference:
		return &UsageError{errors.New("the reference engine runs .pt2 and .ir files; a .pte file takes --engine executorch")}
	case program && len(o.Compile.Dims) > 0:
		return &UsageError{errors.New("--dim bounds the sizes of a model; those of a .pte file were fixed when it was compiled")}
	case program && o.Compile.Quantize != (passes.Quantization{}):
		return &UsageError{errors.New("--quantize is for models; the weights of a .pte file are what they were made when it was compiled")}
	case !program && o.ExternalWeights != "":
		return &UsageError{errors.New("--external-weights goes with a .pte file; a model has its weights in it")}
	case o.Threads != 0 && o.Engine == EngineReference:
		return &UsageError{errors.New("--threads is for --engine executorch; the reference engine takes none")}
	case o.Threads < 0:
		return &UsageError{fmt.Errorf("--threads %d: want a positive number", o.Threads)}
	}
	return nil
}

// method finds a method by name; the only one, or forward, without.
func (m *Model) method(name string) (*ir.Graph, error) {
	if name == "" {
		if len(m.Methods) == 1 {
			return m.Methods[0], nil
		}
		name = "forward"
	}
	if g := m.Program.Method(name); g != nil {
		return g, nil
	}
	var names []string
	for _, g := range m.Methods {
		names = append(names, g.Name)
	}
	return nil, noMethod(name, m.Path, names)
}

func noMethod(name, path string, have []string) error {
	return &ir.Diag{Code: "no-method", Msg: fmt.Sprintf("no method %q", name), Entry: path, Try: "its methods are " + strings.Join(have, ", ")}
}

func modelSlots(g *ir.Graph) []slot {
	var out []slot
	paths := leafPaths(g)
	for i, in := range g.UserInputs() {
		s := slot{ValueInfo: valueInfo(in.Value), typ: in.Value.Type, hasFixed: in.HasFixed}
		if in.HasFixed {
			s.fixed = argValue(in.Fixed)
		}
		if i < len(paths) {
			s.Path = paths[i]
		}
		out = append(out, s)
	}
	return out
}

func argValue(a ir.Arg) Value {
	switch a.Kind() {
	case ir.ArgInt:
		if k, ok := a.Int(); ok {
			return k
		}
	case ir.ArgFloat:
		if f, ok := a.Float(); ok {
			return f
		}
	case ir.ArgBool:
		if b, ok := a.Bool(); ok {
			return b
		}
	case ir.ArgStr:
		if s, ok := a.Str(); ok {
			return s
		}
	}
	return nil
}

// NewReference makes a graph ready to run in the reference engine. Weights that have no contents are random.
func NewReference(g *ir.Graph, seed uint64) *Runner {
	var s *interp.Session
	r := &Runner{inputs: modelSlots(g), syms: g.Syms}
	r.reset = func(context.Context) (err error) {
		s, err = interp.New(g, interp.Options{Seed: seed, RandomData: true})
		return err
	}
	r.call = func(ctx context.Context, in []Value) ([]Value, error) {
		if s == nil {
			if err := r.reset(ctx); err != nil {
				return nil, err
			}
		}
		return s.Run(ctx, in)
	}
	return r
}

// compileAndOpen compiles a model to a file that goes away with the runner, and opens one method of it.
func compileAndOpen(ctx context.Context, path, method string, o RunOptions) (*Runner, error) {
	if _, err := etrt.Open(); err != nil {
		return nil, err
	}
	rep, remove, err := compileAside(ctx, path, o.Compile)
	if err != nil {
		return nil, err
	}
	o.Method = method
	r, err := openProgram(ctx, rep.Output, o)
	if err != nil {
		remove()
		return nil, err
	}
	r.Notes = rep.Notes
	r.closes = append(r.closes, remove)
	return r, nil
}

// compileAside compiles a model to a file in a folder of its own, which the function removes.
func compileAside(ctx context.Context, path string, o Options) (*Report, func(), error) {
	dir, err := os.MkdirTemp("", "lathe-run-")
	if err != nil {
		return nil, nil, err
	}
	remove := func() { os.RemoveAll(dir) } // a temporary folder that stays does no harm
	o.Inputs, o.Output = []Input{{Path: path}}, filepath.Join(dir, "program.pte")
	rep, err := Compile(ctx, o)
	if err != nil {
		remove()
		return nil, nil, err
	}
	return rep, remove, nil
}

func openProgram(ctx context.Context, path string, o RunOptions) (*Runner, error) {
	rt, err := etrt.Open()
	if err != nil {
		return nil, err
	}
	var opts []etrt.Option
	if o.Threads > 0 {
		opts = append(opts, etrt.WithThreads(o.Threads))
	}
	if o.ExternalWeights != "" {
		if f, err := Sniff(o.ExternalWeights); err != nil {
			return nil, err
		} else if f != FormatPTD {
			return nil, &ir.Diag{Code: "wrong-format", Msg: "no data file", Entry: o.ExternalWeights, Try: "give the .ptd file that compile --external-weights wrote"}
		}
		opts = append(opts, etrt.WithData(o.ExternalWeights))
	}
	var p *etrt.Program
	r := &Runner{}
	r.reset = func(ctx context.Context) (err error) {
		if p != nil {
			p.Close()
		}
		p, err = rt.Load(ctx, path, opts...)
		return runtimeDiag(path, err)
	}
	if err := r.reset(ctx); err != nil {
		return nil, err
	}
	r.closes = append(r.closes, func() { p.Close() })
	ms, err := p.Methods()
	if err != nil {
		r.Close()
		return nil, runtimeDiag(path, err)
	}
	var names []string
	for _, m := range ms {
		names = append(names, m.Name)
	}
	name := o.Method
	if name == "" && len(ms) == 1 {
		name = ms[0].Name
	} else if name == "" {
		name = "forward"
	}
	i := slices.Index(names, name)
	if i < 0 {
		r.Close()
		return nil, noMethod(name, path, names)
	}
	for _, in := range ms[i].Inputs {
		s, err := metaSlot(in)
		if err != nil {
			r.Close()
			return nil, runtimeDiag(path, err)
		}
		r.inputs = append(r.inputs, s)
	}
	r.call = func(_ context.Context, in []Value) ([]Value, error) {
		vs, err := ToRuntime(in)
		if err != nil {
			return nil, err
		}
		outs, err := p.Run(name, vs)
		if err != nil {
			return nil, runtimeDiag(path, err)
		}
		return FromRuntime(outs)
	}
	return r, nil
}

func runtimeDiag(path string, err error) error {
	if err == nil {
		return nil
	}
	d := &ir.Diag{Code: "runtime", Msg: "the ExecuTorch runtime: " + err.Error(), Entry: path}
	var e *etrt.Error
	switch {
	case !errors.As(err, &e):
	case len(e.Missing) > 0:
		d.Try = "the runtime lacks kernels: " + strings.Join(e.Missing, ", ")
	case strings.Contains(e.Error(), "external_data_map"):
		d.Try = "its weights are in a file of their own: give that with --external-weights FILE.ptd"
	case e.Name == etrt.NotFound && e.Stage == "load method" && !strings.Contains(e.Error(), "is not registered"):
		d.Try = "its weights are not in the files that were given: give the file that was written with it, with --external-weights FILE.ptd"
	case strings.Contains(e.Error(), "maximum capacity"):
		d.Try = "an input is larger than the program keeps memory for: compile again with --dim NAME=MIN..MAX; lathe inspect of the model names its sizes"
	case e.ExitInfo != "" && strings.HasPrefix(e.Stage, "method "):
		// A delegate that looks for its weights where no file was given ends so.
		d.Try = "if its weights are in a file of their own, give that with --external-weights FILE.ptd"
	case e.Name == etrt.NotFound && e.Stage == "load method":
		d.Code = codeNoDelegate
		d.Try = "this runtime was built without the program's delegate: run the program where it is, or the model in the reference engine"
	}
	return d
}

// codeNoDelegate is the diagnostic of a runtime that lacks a delegate of the program.
const codeNoDelegate = "no-delegate"

func lacksDelegate(err error) bool {
	var d *ir.Diag
	return errors.As(err, &d) && d.Code == codeNoDelegate
}

var metaKinds = map[etrt.Kind]ir.Kind{
	etrt.KindNone: ir.KindNone, etrt.KindTensor: ir.KindTensor, etrt.KindInt: ir.KindInt, etrt.KindFloat: ir.KindFloat,
	etrt.KindBool: ir.KindBool, etrt.KindString: ir.KindStr,
}

// metaSlot is an input as the program file has it: the shape is the upper bound of what may come.
func metaSlot(m etrt.Meta) (slot, error) {
	kind, ok := metaKinds[m.Kind]
	if !ok {
		return slot{}, fmt.Errorf("an input of kind %s", m.Kind)
	}
	t := ir.Type{Kind: kind}
	if kind == ir.KindTensor {
		d, ok := ops.ParseDType(m.DType.String())
		if !ok {
			return slot{}, fmt.Errorf("element type %s is not known", m.DType)
		}
		t.DType, t.Shape = d, ir.Consts(m.Shape...)
		if m.Strides != nil {
			t.Strides = ir.Consts(m.Strides...)
		}
	}
	s := slot{ValueInfo: valueInfo(&ir.Value{Name: m.Name, Type: t}), typ: t}
	s.hasFixed = kind == ir.KindNone
	return s, nil
}

// Inputs describes the program's inputs.
func (r *Runner) Inputs() []ValueInfo {
	out := make([]ValueInfo, len(r.inputs))
	for i, s := range r.inputs {
		out[i] = s.ValueInfo
	}
	return out
}

// Run calls the program with its inputs in order and gives its outputs. A tensor that lies in memory in another order
// than the program was made for is refused: the runtime would not see it.
func (r *Runner) Run(ctx context.Context, inputs []Value) ([]Value, error) {
	if len(inputs) != len(r.inputs) {
		return nil, &ir.Diag{
			Code: "bad-input", Msg: fmt.Sprintf("%d inputs, the program takes %d", len(inputs), len(r.inputs)), Try: "lathe inspect lists them",
		}
	}
	var diags ir.Diags
	for i, s := range r.inputs {
		x, ok := inputs[i].(*interp.Tensor)
		if !ok || !s.typ.IsTensor() || len(x.Sizes) != s.typ.Rank() {
			continue // the engine tells what does not fit
		}
		if sameOrder(x, s.typ) {
			continue
		}
		got := ir.Type{DType: x.DType, Shape: ir.Consts(x.Sizes...), Strides: ir.Consts(x.Strides...)}
		diags = append(diags, &ir.Diag{
			Code: "wrong-layout", Node: s.Name,
			Msg: fmt.Sprintf("input %s lies in memory %s, dim order %s; the program was made for %s, dim order %s",
				s.label(i), Layout(got), dimOrder(got), Layout(s.typ), dimOrder(s.typ)),
			Try: "lay the tensor out " + Layout(s.typ) + ", or export the model with an input that is " + Layout(got),
		})
	}
	if err := diags.Err(); err != nil {
		return nil, err
	}
	return r.call(ctx, inputs)
}

func cmpName(s slot) string {
	if s.Path != "" {
		return s.Path
	}
	return s.Name
}

// label names an input by its place, and by its name where the file tells it: a program file does not.
func (s slot) label(i int) string {
	if name := cmpName(s); name != "" {
		return fmt.Sprintf("%d (%s)", i, name)
	}
	return strconv.Itoa(i)
}

func dimOrder(t ir.Type) string {
	order, _ := t.DimOrder()
	return "[" + joinInts(order, ", ") + "]"
}

// sameOrder tells whether x lies as t says. Dimensions of size one do not matter.
func sameOrder(x *interp.Tensor, t ir.Type) bool {
	want, dense := t.DimOrder()
	if !dense {
		return true // the program itself makes the input contiguous first
	}
	n := int64(1)
	for i := len(want) - 1; i >= 0; i-- {
		d := want[i]
		if x.Sizes[d] > 1 && x.Strides[d] != n {
			return x.Numel() == 0
		}
		n *= x.Sizes[d]
	}
	return true
}

// Reset gives the program its initial state back.
func (r *Runner) Reset(ctx context.Context) error { return r.reset(ctx) }

// Close ends the program.
func (r *Runner) Close() {
	for _, f := range r.closes {
		f()
	}
}

// Bind finds the program's inputs among arrays, for one call or several. An input is found under its name, its path
// (past_key_values.0), argI, inputI or arr_I; with names like c0_in_000 the array belongs to call 0. Scalars are arrays of one
// element. Arrays are laid out as the program wants them, but for those whose layout is not row-major: they stay as they are.
func (r *Runner) Bind(as Arrays) ([][]Value, error) {
	calls := 1
	for name := range as {
		var c, i int
		if _, err := fmt.Sscanf(name, "c%d_in_%d", &c, &i); err == nil {
			calls = max(calls, c+1)
		}
	}
	var diags ir.Diags
	out := make([][]Value, calls)
	for c := range out {
		for i, s := range r.inputs {
			v, err := r.bindOne(as, c, i, s)
			if err != nil {
				diags = append(diags, &ir.Diag{Code: "bad-input", Node: s.Name, Msg: fmt.Sprintf("input %s: %v", s.label(i), err)})
			}
			out[c] = append(out[c], v)
		}
	}
	return out, diags.Err()
}

func (r *Runner) bindOne(as Arrays, call, i int, s slot) (Value, error) {
	n := strconv.Itoa(i)
	for _, name := range []string{fmt.Sprintf("c%d_in_%03d", call, i), s.Name, s.Path, "arg" + n, "input" + n, "arr_" + n} {
		x, ok := as[name]
		if !ok || name == "" {
			continue
		}
		if s.typ.IsTensor() {
			return s.layOut(x), nil
		}
		return s.scalar(x)
	}
	if s.hasFixed {
		return s.fixed, nil
	}
	return nil, fmt.Errorf("not among the arrays; wanted %s as %q", s.typeText(), cmp.Or(cmpName(s), "arg"+n))
}

// layOut gives a row-major x the layout of the input's type.
func (s slot) layOut(x *interp.Tensor) *interp.Tensor {
	order, dense := s.typ.DimOrder()
	if !x.IsContiguous() || !dense || len(order) != len(x.Sizes) || sameOrder(x, s.typ) {
		return x
	}
	bytes := make([]uint8, len(order))
	strides := make([]int64, len(order))
	n := int64(1)
	for k := len(order) - 1; k >= 0; k-- {
		bytes[k] = uint8(order[k])
		strides[order[k]] = n
		n *= max(x.Sizes[order[k]], 1)
	}
	data := etrt.Permute(x.Bytes(), int(x.DType.Size()), x.Sizes, bytes, false)
	y, err := interp.NewView(x.DType, x.Sizes, strides, 0, interp.NewStorage(data))
	if err != nil {
		return x
	}
	return y
}

func (s slot) scalar(x *interp.Tensor) (Value, error) {
	if x.Numel() != 1 {
		return nil, fmt.Errorf("is %s, one element is wanted", x)
	}
	rv, err := toRuntime(x)
	if err != nil {
		return nil, err
	}
	fs, err := rv.Tensor.Floats()
	if err != nil {
		return nil, err
	}
	switch s.typ.Kind {
	case ir.KindInt:
		if fs[0] != math.Trunc(fs[0]) {
			return nil, fmt.Errorf("is %g, an integer is wanted", fs[0])
		}
		return int64(fs[0]), nil
	case ir.KindFloat:
		return fs[0], nil
	case ir.KindBool:
		return fs[0] != 0, nil
	}
	return nil, fmt.Errorf("an array cannot be a %s", s.typ.Kind)
}

// Recorded gives the inputs with which the program was exported; nil where its file has none.
func (r *Runner) Recorded() []Value { return r.recorded }

// maxRandom bounds the elements of a random input.
const maxRandom = 1 << 28

// Random makes inputs that depend on the program and the seed alone. Dynamic sizes are those at export.
func (r *Runner) Random(seed uint64) ([]Value, error) {
	env := sym.MapEnv{}
	for _, s := range r.syms.All() {
		k := max(s.Range.Min, min(2, s.Range.Max))
		if s.HasHint && s.Range.Contains(s.Hint) {
			k = s.Hint
		}
		env[s.Name] = k
	}
	var diags ir.Diags
	var out []Value
	for i, s := range r.inputs {
		v, err := s.random(seed, env)
		if err != nil {
			diags = append(diags, &ir.Diag{Code: "bad-input", Node: s.Name, Msg: fmt.Sprintf("input %s: %v", s.label(i), err), Try: "give inputs with --inputs"})
		}
		out = append(out, v)
	}
	return out, diags.Err()
}

func (s slot) random(seed uint64, env sym.MapEnv) (Value, error) {
	if s.hasFixed {
		return s.fixed, nil
	}
	switch s.typ.Kind {
	case ir.KindInt:
		if s.typ.Known {
			return sym.Eval(s.typ.Sym, env)
		}
		return int64(1), nil
	case ir.KindFloat:
		return 0.5, nil
	case ir.KindBool:
		return true, nil
	case ir.KindNone:
		return nil, nil
	case ir.KindTensor:
	default:
		return nil, fmt.Errorf("no random %s", s.typ.Kind)
	}
	sizes, n := []int64{}, int64(1)
	for _, e := range s.typ.Shape {
		k, err := sym.Eval(e, env)
		if err != nil {
			return nil, err
		}
		if sizes = append(sizes, k); k < 0 || k > 0 && n > maxRandom/k {
			return nil, fmt.Errorf("a random tensor of %v would be too large", s.typ)
		}
		n *= k
	}
	x := interp.Random(seed, s.Name, s.typ.DType, sizes)
	if s.typ.DType.IsInt() {
		x = smallInts(x)
	}
	return s.layOut(x), nil
}

// smallInts keeps random indices within even small tables.
func smallInts(x *interp.Tensor) *interp.Tensor {
	b := slices.Clone(x.Bytes())
	for i := range b {
		if int64(i)%x.DType.Size() == 0 {
			b[i] &= 3
		}
	}
	y, err := interp.FromBytes(x.DType, x.Sizes, b)
	if err != nil {
		return x
	}
	return y
}
