package interp

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// Options say how a session runs.
type Options struct {
	// State holds the parameters, buffers and constants; nil makes one of the graph's own. Sessions of several methods of a
	// program share one.
	State *State
	// RandomData fills parameters, buffers and constants that came without contents with numbers that depend on Seed and on
	// their name. Without it they are an error.
	RandomData bool
	// Seed also feeds the random operators.
	Seed uint64
	// Observe is called after each node with its results, nested graphs included. An error stops the run.
	Observe func(n *ir.Node, outs []Value) error
	// CheckTypes compares every result with the type that the graph says it has.
	CheckTypes bool
	// AllOutputs makes Run give the values written back, too, in the order of the graph's outputs.
	AllOutputs bool
}

// State is what a program keeps between calls: its parameters, buffers and constants by name.
type State struct {
	tensors  map[string]*Tensor
	storages map[any]*Storage // by what they are loaded from
	// history is the keys and values of caches that live outside of the graph, by layer.
	history map[int64][2]*Tensor
}

// NewState makes an empty state; sessions add to it what their graphs name.
func NewState() *State {
	return &State{tensors: map[string]*Tensor{}, storages: map[any]*Storage{}, history: map[int64][2]*Tensor{}}
}

// Tensor is the parameter, buffer or constant of that name, or nil.
func (s *State) Tensor(name string) *Tensor { return s.tensors[name] }

// SetTensor replaces one.
func (s *State) SetTensor(name string, t *Tensor) { s.tensors[name] = t }

// load makes a tensor of an input's contents. Inputs over one storage alias each other.
func (s *State) load(d *ir.Data) (*Tensor, error) {
	var key any
	if m, ok := d.Storage.(ir.MemStorage); ok {
		key = unsafe.SliceData(m)
	} else if reflect.TypeOf(d.Storage).Comparable() {
		key = d.Storage
	}
	st := s.storages[key]
	if st == nil || key == nil {
		b, err := d.Storage.Bytes()
		if err != nil {
			return nil, err
		}
		st = NewStorage(b)
		if key != nil {
			s.storages[key] = st
		}
	}
	strides := d.Strides
	if strides == nil {
		strides = contiguous(d.Sizes)
	}
	return NewView(d.DType, d.Sizes, strides, d.Offset, st)
}

// Session runs one graph. It is for one goroutine at a time.
type Session struct {
	g     *ir.Graph
	opts  Options
	state *State
	plans map[*ir.Graph]*plan
	rng   *rng
}

// plan is what is known of a graph before it runs: after which node each value is dead.
type plan struct {
	dead map[*ir.Node][]*ir.Value
}

// New makes a session with the initial state.
func New(g *ir.Graph, opts Options) (*Session, error) {
	s := &Session{g: g, opts: opts, state: opts.State, plans: map[*ir.Graph]*plan{}, rng: newRNG(opts.Seed)}
	if s.state == nil {
		s.state = NewState()
	}
	for _, in := range g.Inputs {
		if in.Kind == ir.InputUser || in.Kind == ir.InputOperand || s.state.tensors[in.Target] != nil {
			continue
		}
		t, err := s.initial(in)
		if err != nil {
			d := &ir.Diag{Code: "no-data", Msg: fmt.Sprintf("%s %q: %v", in.Kind, in.Target, err), File: g.File, Entry: g.Entry}
			if in.Data != nil {
				d.Entry = in.Data.Entry
			}
			return nil, d
		}
		if t != nil {
			s.state.tensors[in.Target] = t
		}
	}
	return s, nil
}

func (s *Session) initial(in *ir.Input) (t *Tensor, err error) {
	if in.Data != nil {
		return s.state.load(in.Data)
	}
	if !in.Value.Type.IsTensor() {
		return nil, nil
	}
	if !s.opts.RandomData {
		return nil, errors.New("has no contents")
	}
	sizes, ok := in.Value.Type.Sizes()
	if !ok {
		return nil, errors.New("has no contents and no constant shape")
	}
	defer catch(&err)
	return Random(s.opts.Seed, in.Target, in.Value.Type.DType, sizes), nil
}

func catch(err *error) {
	switch r := recover().(type) {
	case nil:
	case *opError:
		*err = r
	default:
		*err = fmt.Errorf("internal error: %v", r)
	}
}

// State is what the session keeps between calls.
func (s *Session) State() *State { return s.state }

// run is one call of a session.
type run struct {
	s    *Session
	ctx  context.Context
	syms map[string]int64
	// given are the symbols that the user's inputs decide; others may change each time a nested graph runs.
	given map[string]bool
	// levels counts the vmaps entered.
	levels int64
}

// Lookup makes a run the environment of size expressions.
func (r *run) Lookup(name string) (int64, bool) {
	v, ok := r.syms[name]
	return v, ok
}

// Run calls the graph with the user's inputs in order and gives the user's outputs. Writes to state stay; inputs that the
// program mutates are written to.
func (s *Session) Run(ctx context.Context, inputs []Value) ([]Value, error) {
	g := s.g
	users := g.UserInputs()
	if len(inputs) != len(users) {
		return nil, &ir.Diag{Code: "bad-input", Msg: fmt.Sprintf("%d inputs, the program takes %d", len(inputs), len(users)), File: g.File, Entry: g.Entry}
	}
	r := &run{s: s, ctx: ctx, syms: map[string]int64{}}
	given := slices.Clone(inputs)
	if err := r.bindInputs(users, given); err != nil {
		return nil, err
	}
	r.given = make(map[string]bool, len(r.syms))
	for k := range r.syms {
		r.given[k] = true
	}
	args := make([]Value, len(g.Inputs))
	next := 0
	for i, in := range g.Inputs {
		if in.Kind == ir.InputUser {
			args[i] = given[next]
			next++
			continue
		}
		if t := s.state.tensors[in.Target]; t != nil {
			args[i] = t
		}
	}
	outs, err := r.graph(g, args)
	if err != nil {
		return nil, err
	}
	for i, v := range given {
		// An input was laid out anew where its strides were not those of the program: what was written goes back.
		if t, ok := v.(*Tensor); ok && v != inputs[i] && t.storage.written {
			writeInto(inputs[i].(*Tensor), t)
		}
	}
	return r.finish(inputs, users, outs)
}

// finish applies the write-backs. Values that alias what is written are copied first: an output is what it was when the
// graph returned.
func (r *run) finish(inputs []Value, users []*ir.Input, outs []Value) (res []Value, err error) {
	defer catch(&err)
	g := r.s.g
	targets := make([]*Tensor, len(outs))
	written := map[*Storage]bool{}
	for i, o := range g.Outputs {
		if o.Kind == ir.OutputUser || o.Target == nil {
			continue
		}
		switch o.Kind {
		case ir.OutputBufferMutation:
			targets[i] = r.s.state.tensors[o.Target.Target]
		case ir.OutputInputMutation:
			for k, in := range users {
				if in == o.Target {
					targets[i], _ = inputs[k].(*Tensor)
				}
			}
		}
		if targets[i] == nil {
			return nil, &ir.Diag{Code: "bad-graph", Msg: fmt.Sprintf("output %d writes to %q, which holds no tensor", i, o.Target.Target), File: g.File, Entry: g.Entry}
		}
		written[targets[i].storage] = true
	}
	for i, v := range outs {
		if t, ok := v.(*Tensor); ok && written[t.storage] {
			outs[i] = compactCopy(t)
		}
	}
	for i, t := range targets {
		if t == nil {
			continue
		}
		v, ok := outs[i].(*Tensor)
		if !ok {
			return nil, &ir.Diag{Code: "bad-graph", Msg: fmt.Sprintf("output %d writes %s to %q", i, kindName(outs[i]), g.Outputs[i].Target.Target), File: g.File, Entry: g.Entry}
		}
		if v.DType != t.DType || !slices.Equal(v.Sizes, t.Sizes) {
			return nil, &ir.Diag{Code: "bad-graph", Msg: fmt.Sprintf("output %d writes %s to %q, which is %s", i, v, g.Outputs[i].Target.Target, t), File: g.File, Entry: g.Entry}
		}
		writeInto(t, v)
	}
	for i, v := range outs {
		if r.s.opts.AllOutputs || g.Outputs[i].Kind == ir.OutputUser {
			res = append(res, v)
		}
	}
	return res, nil
}

// bindInputs checks the user's inputs against the graph's types and finds the values of its symbols. Inputs laid out
// otherwise than the type says are replaced in given by copies.
func (r *run) bindInputs(users []*ir.Input, given []Value) error {
	var diags ir.Diags
	bad := func(i int, format string, args ...any) {
		name := users[i].Value.Name
		if names := r.s.g.InputNames; i < len(names) {
			name = names[i]
		}
		diags = append(diags, &ir.Diag{
			Code: "bad-input", Msg: fmt.Sprintf("input %d (%s): ", i, name) + fmt.Sprintf(format, args...), Node: users[i].Value.Name, File: r.s.g.File, Entry: r.s.g.Entry,
		})
	}
	for i, in := range users {
		if in.HasFixed {
			if want := ConstValue(in.Fixed); !sameScalar(want, given[i]) {
				bad(i, "is %s, the program was exported for %v", show(given[i]), show(want))
			}
			continue
		}
		t := in.Value.Type
		switch t.Kind {
		case ir.KindTensor:
			x, ok := given[i].(*Tensor)
			if !ok {
				bad(i, "is %s, a tensor %s is wanted", kindName(given[i]), t)
				continue
			}
			if x.DType != t.DType || len(x.Sizes) != len(t.Shape) {
				bad(i, "is %s, %s is wanted", x, t)
				continue
			}
			for d, e := range t.Shape {
				if msg := r.bind(e, x.Sizes[d]); msg != "" {
					bad(i, "dimension %d: %s", d, msg)
				}
			}
		case ir.KindInt:
			k, ok := given[i].(int64)
			if !ok {
				bad(i, "is %s, an int is wanted", kindName(given[i]))
				continue
			}
			if t.Known {
				if msg := r.bind(t.Sym, k); msg != "" {
					bad(i, "%s", msg)
				}
			}
		case ir.KindFloat:
			switch k := given[i].(type) {
			case float64:
			case int64:
				given[i] = float64(k)
			default:
				bad(i, "is %s, a float is wanted", kindName(given[i]))
			}
		case ir.KindBool:
			if _, ok := given[i].(bool); !ok {
				bad(i, "is %s, a bool is wanted", kindName(given[i]))
			}
		case ir.KindStr:
			if _, ok := given[i].(string); !ok {
				bad(i, "is %s, a string is wanted", kindName(given[i]))
			}
		case ir.KindNone:
			if given[i] != nil {
				bad(i, "is %s, None is wanted", kindName(given[i]))
			}
		}
	}
	if len(diags) == 0 {
		// Expressions over several symbols could not be solved; now their symbols are known.
		for i, in := range users {
			x, ok := given[i].(*Tensor)
			if !ok || in.HasFixed {
				continue
			}
			for d, e := range in.Value.Type.Shape {
				if want, err := sym.Eval(e, r); err == nil && want != x.Sizes[d] {
					bad(i, "dimension %d is %d, %s = %d is wanted", d, x.Sizes[d], e, want)
				}
			}
			if st := in.Value.Type.NormStrides(); st != nil || !x.IsContiguous() {
				given[i] = r.layOut(x, in.Value.Type)
			}
		}
	}
	return diags.Err()
}

// layOut gives x with the strides of its type; x itself where it has them.
func (r *run) layOut(x *Tensor, t ir.Type) *Tensor {
	want := contiguous(x.Sizes)
	if st := t.NormStrides(); st != nil {
		for i, e := range st {
			k, err := sym.Eval(e, r)
			if err != nil || k <= 0 {
				return x // unknown or overlapping strides: the caller's stay
			}
			want[i] = k
		}
	}
	same := true
	for i, n := range x.Sizes {
		same = same && (n == 1 || x.Strides[i] == want[i])
	}
	if same {
		return x
	}
	hi := int64(1)
	for i, n := range x.Sizes {
		if n == 0 {
			return x
		}
		hi += (n - 1) * want[i]
	}
	c := &Tensor{DType: x.DType, Sizes: x.Sizes, Strides: want, storage: &Storage{b: alignedBytes(hi * x.DType.Size())}}
	writeInto(c, x)
	c.storage.written = false
	return c
}

// bind notes that e has the value k. A text is what is wrong.
func (r *run) bind(e sym.Expr, k int64) string {
	if c, ok := e.IsConst(); ok {
		if c != k {
			return fmt.Sprintf("is %d, %d is wanted", k, c)
		}
		return ""
	}
	names := sym.Symbols(e)
	var open []string
	for _, n := range names {
		if _, ok := r.syms[n]; !ok {
			open = append(open, n)
		}
	}
	if len(open) == 1 && len(names) == 1 {
		a, b, ok := sym.SolveLinear(e, names[0])
		if ok && a != 0 {
			if (k-b)%a != 0 {
				return fmt.Sprintf("is %d, which is not %s for an integer %s", k, e, names[0])
			}
			v := (k - b) / a
			// A lower bound of 2 only says that the export did not specialise on 0 or 1; torch does not check it either.
			if rg := r.s.g.Syms.SymRange(names[0]); v < 0 || v > rg.Max || rg.Min > 2 && v < rg.Min {
				return fmt.Sprintf("is %d, so that %s = %d is outside of %v", k, names[0], v, rg)
			}
			r.syms[names[0]] = v
			return ""
		}
	}
	if len(open) == 0 {
		v, err := sym.Eval(e, r)
		if err != nil {
			return err.Error()
		}
		if v != k {
			return fmt.Sprintf("is %d, %s = %d is wanted by an earlier input", k, e, v)
		}
	}
	return ""
}

func sameScalar(want, got Value) bool {
	if want == got {
		return true
	}
	a, okA := asFloat(want)
	b, okB := asFloat(got)
	_, isT := got.(*Tensor)
	return okA && okB && !isT && (a == b || a != a && b != b)
}

func show(v Value) string {
	if v == nil {
		return "None"
	}
	return fmt.Sprint(v)
}

// ConstValue is a constant argument as the interpreter's value: int64, float64, bool, string, or nil for None.
func ConstValue(a ir.Arg) Value {
	switch a.Kind() {
	case ir.ArgInt:
		k, _ := a.Int()
		return k
	case ir.ArgFloat:
		f, _ := a.Float()
		return f
	case ir.ArgBool:
		b, _ := a.Bool()
		return b
	case ir.ArgStr, ir.ArgLayout, ir.ArgMemory, ir.ArgDevice:
		s, _ := a.Str()
		return s
	}
	return nil
}

func (s *Session) plan(g *ir.Graph) *plan {
	if p := s.plans[g]; p != nil {
		return p
	}
	p := &plan{dead: map[*ir.Node][]*ir.Value{}}
	seen := map[*ir.Value]bool{}
	for v := range g.Ret().Inputs() {
		seen[v] = true
	}
	for n := range g.Backward() {
		for _, o := range n.Outs {
			if !seen[o] {
				seen[o] = true
				p.dead[n] = append(p.dead[n], o)
			}
		}
		for v := range n.Inputs() {
			if !seen[v] {
				seen[v] = true
				p.dead[n] = append(p.dead[n], v)
			}
		}
	}
	s.plans[g] = p
	return p
}

// graph runs g on its inputs and gives its outputs.
func (r *run) graph(g *ir.Graph, args []Value) ([]Value, error) {
	if len(args) != len(g.Inputs) {
		return nil, &opError{fmt.Sprintf("%d arguments for a graph of %d inputs", len(args), len(g.Inputs))}
	}
	p := r.s.plan(g)
	env := make(map[*ir.Value]Value, 64)
	for i, in := range g.Inputs {
		env[in.Value] = args[i]
		if in.Kind == ir.InputOperand {
			r.bindResult(in.Value.Type, args[i])
		}
	}
	for n := range g.Nodes() {
		if err := r.ctx.Err(); err != nil {
			return nil, err
		}
		if err := r.node(n, env); err != nil {
			return nil, err
		}
		for _, v := range p.dead[n] {
			delete(env, v)
		}
	}
	outs := make([]Value, len(g.Ret().Args()))
	for i, a := range g.Ret().Args() {
		v, err := r.value(a, env)
		if err != nil {
			return nil, g.Ret().Diag("bad-graph", err.Error(), "")
		}
		outs[i] = v
	}
	return outs, nil
}

// needless tells a node that sees no tensor, so has none to write to, and whose results nobody reads: aten.promote_types, as
// the exporter leaves it behind.
func needless(n *ir.Node) bool {
	for v := range n.Inputs() {
		if v.Type.IsTensor() {
			return false
		}
	}
	for _, o := range n.Outs {
		if o.NumUses() > 0 {
			return false
		}
	}
	return true
}

func (r *run) node(n *ir.Node, env map[*ir.Value]Value) error {
	c := &Call{Op: n.Op, Args: make([]Value, n.NumArgs()), Results: len(n.Outs), run: r}
	for i, a := range n.Args() {
		v, err := r.value(a, env)
		if err != nil {
			return n.Diag("bad-graph", err.Error(), "")
		}
		c.Args[i] = v
	}
	if n.Op == ops.Unknown && needless(n) {
		return nil
	}
	if n.Op == ops.Unknown {
		return n.Diag("unknown-op", "the interpreter does not know the operator", "register it in ops/table with a function, or replace it in the model")
	}
	outs, err := apply(c)
	if err != nil {
		if nested := (*nestedError)(nil); errors.As(err, &nested) {
			return nested.err
		}
		return n.Diag("eval", err.Error(), "")
	}
	if len(outs) != len(n.Outs) {
		return n.Diag("eval", fmt.Sprintf("%d results, the node has %d", len(outs), len(n.Outs)), "")
	}
	for i, o := range n.Outs {
		r.bindResult(o.Type, outs[i])
		if r.s.opts.CheckTypes {
			if msg := r.mismatch(o.Type, outs[i]); msg != "" {
				return n.Diag("type", fmt.Sprintf("result %d is %s, its type says %s: %s", i, describe(outs[i]), o.Type, msg), "")
			}
		}
		env[o] = outs[i]
	}
	if r.s.opts.Observe != nil {
		return r.s.opts.Observe(n, outs)
	}
	return nil
}

func describe(v Value) string {
	switch x := v.(type) {
	case *Tensor:
		return x.String()
	case nil:
		return "None"
	case []Value:
		parts := make([]string, len(x))
		for i, e := range x {
			parts[i] = describe(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case *ir.Graph, *batched:
		return kindName(v)
	}
	return fmt.Sprint(v)
}

// bindResult gives symbols that first occur in the type of a result their value. In a nested graph that runs again they
// get a new one.
func (r *run) bindResult(t ir.Type, v Value) {
	set := func(e sym.Expr, k int64) {
		if _, ok := e.IsConst(); ok {
			return
		}
		if s, ok := e.IsSymbol(); ok {
			if !r.given[s] {
				r.syms[s] = k
			}
			return
		}
		names := sym.Symbols(e)
		if len(names) != 1 {
			return
		}
		if _, have := r.syms[names[0]]; have {
			return
		}
		if a, b, ok := sym.SolveLinear(e, names[0]); ok && a != 0 && (k-b)%a == 0 {
			r.syms[names[0]] = (k - b) / a
		}
	}
	switch x := v.(type) {
	case *Tensor:
		if t.IsTensor() && len(t.Shape) == len(x.Sizes) {
			for i, e := range t.Shape {
				set(e, x.Sizes[i])
			}
		}
	case int64:
		if t.Kind == ir.KindInt && t.Known {
			set(t.Sym, x)
		}
	}
}

// mismatch says how a result is not of its type.
func (r *run) mismatch(t ir.Type, v Value) string {
	if _, ok := v.(*batched); ok {
		return "" // its type does not show the hidden dimension
	}
	switch t.Kind {
	case ir.KindTensor:
		x, ok := v.(*Tensor)
		if !ok {
			return "no tensor"
		}
		if x.DType != t.DType {
			return "another dtype"
		}
		if len(x.Sizes) != len(t.Shape) {
			return "another rank"
		}
		for i, e := range t.Shape {
			if k, err := sym.Eval(e, r); err == nil && k != x.Sizes[i] {
				return fmt.Sprintf("dimension %d is %d", i, k)
			}
		}
	case ir.KindInt:
		x, ok := v.(int64)
		if !ok {
			return "no int"
		}
		if t.Known {
			if k, err := sym.Eval(t.Sym, r); err == nil && k != x {
				return fmt.Sprintf("it is %d", k)
			}
		}
	case ir.KindFloat:
		if _, ok := v.(float64); !ok {
			return "no float"
		}
	case ir.KindBool:
		if _, ok := v.(bool); !ok {
			return "no bool"
		}
	case ir.KindNone:
		if v != nil {
			return "not None"
		}
	}
	return ""
}

// value evaluates an argument.
func (r *run) value(a ir.Arg, env map[*ir.Value]Value) (Value, error) {
	switch a.Kind() {
	case ir.ArgValue:
		v := a.Value()
		x, ok := env[v]
		if !ok {
			return nil, fmt.Errorf("value %%%s is used before it is computed", v.Name)
		}
		return x, nil
	case ir.ArgInt:
		e, _ := a.Expr()
		return sym.Eval(e, r)
	case ir.ArgDType:
		d, _ := a.DType()
		return d, nil
	case ir.ArgComplex:
		re, im, _ := a.Complex()
		return complex(re, im), nil
	case ir.ArgGraph:
		return a.Graph(), nil
	case ir.ArgList:
		l := make([]Value, len(a.List()))
		for i, e := range a.List() {
			v, err := r.value(e, env)
			if err != nil {
				return nil, err
			}
			l[i] = v
		}
		return l, nil
	}
	return ConstValue(a), nil
}
