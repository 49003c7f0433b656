// Package program turns graphs into ExecuTorch methods: kernel calls in place of nodes, planned memory in place of values.
// What a node becomes is what Caps.Match plans for it; whatever that refuses is refused here with the same words.
package program

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/lathe-ml/lathe/codegen/pte"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/partition"
)

// Options are choices of the lowering. The zero value is what the official emitter does by default.
type Options struct {
	// CallerInputs leaves the memory of tensor inputs to the caller, who then need not copy into the plan; mutated inputs
	// are written where they lie.
	CallerInputs bool
	// External keeps parameters, buffers and constants out of the program, in a data file beside it.
	External bool
}

// Result is a lowered program.
type Result struct {
	Program *pte.Program
	// Data is what stands outside of the program; nil unless asked for.
	Data    *pte.Data
	Methods []MethodReport
}

// MethodReport is the report of one method.
type MethodReport struct {
	Name         string
	Instructions int
	// Planned is the bytes of planned memory, Peak the most bytes needed at one time.
	Planned, Peak int64
	// Exported is the bytes that a plan for the sizes at export alone would take; as Planned where all sizes have bounds.
	Exported int64
	// Kernels counts the calls by operator.
	Kernels map[string]int
	// Assumed are sizes without a bound in the program and the bound that memory was planned for.
	Assumed []AssumedBound
	// Notes are restrictions that the runtime imposes.
	Notes []string
}

// AssumedBound is a bound that the program did not state.
type AssumedBound struct {
	Symbol string
	// Max is the size that memory is planned for when all sizes without a bound are as large, Alone that when the others
	// are as at export.
	Max, Alone int64
	// Exported is the size at export.
	Exported int64
}

// Lower makes a program of p's graphs. Errors are ir.Diags, all that there are.
func Lower(p *ir.Program, opts Options) (*Result, error) {
	l := &lowering{
		prog: &pte.Program{}, opts: opts, constants: map[*ir.Data]uint32{}, initial: map[*ir.Data]uint32{}, named: map[string]bool{},
		external: map[string]*ir.Data{}, shared: map[string]int64{},
	}
	l.share(p)
	if opts.External {
		l.data = &pte.Data{}
	}
	res := &Result{Program: l.prog, Data: l.data}
	var diags ir.Diags
	for _, g := range p.Methods {
		m := newMethod(l, g)
		m.lower()
		if len(m.diags) > 0 {
			diags = append(diags, m.diags...)
			continue
		}
		l.prog.Plans = append(l.prog.Plans, m.plan)
		res.Methods = append(res.Methods, m.report())
	}
	if err := diags.Err(); err != nil {
		return nil, err
	}
	return res, nil
}

// lowering is what the methods of a program share.
type lowering struct {
	prog      *pte.Program
	opts      Options
	constants map[*ir.Data]uint32
	initial   map[*ir.Data]uint32
	named     map[string]bool
	data      *pte.Data
	external  map[string]*ir.Data
	// shared is the state that one method writes and another knows, by the name in the model: where it lies in a memory of its
	// own, at the same place in every method, so that whoever loads the program can give them all the same. sharedSize is the
	// bytes of that memory.
	shared     map[string]int64
	sharedSize int64
}

// share finds the state that methods have in common.
func (l *lowering) share(p *ir.Program) {
	if len(p.Methods) < 2 {
		return
	}
	written := map[string]bool{}
	users := map[string][]*ir.Input{}
	var names []string
	for _, g := range p.Methods {
		for i, o := range g.Outputs {
			if o.Kind == ir.OutputBufferMutation && g.Ret().In(i) != o.Target.Value {
				written[o.Target.Target] = true
			}
		}
		for _, in := range g.Inputs {
			if in.Kind != ir.InputUser {
				if users[in.Target] == nil {
					names = append(names, in.Target)
				}
				users[in.Target] = append(users[in.Target], in)
			}
		}
	}
	for _, name := range names {
		ins := users[name]
		n, static := ins[0].Value.Type.Numel().IsConst()
		if !written[name] || len(ins) < 2 || !static || !alike(ins) {
			continue
		}
		l.shared[name] = l.sharedSize
		l.sharedSize += roundUp(n * ins[0].Value.Type.DType.Size())
	}
}

// alike tells whether inputs are one buffer of one model: of one type, with the same first contents.
func alike(ins []*ir.Input) bool {
	a := ins[0]
	for _, b := range ins[1:] {
		if !a.Value.Type.Equal(b.Value.Type) || (a.Data == nil) != (b.Data == nil) {
			return false
		}
		if a.Data == b.Data {
			continue
		}
		x, errx := a.Data.Compact()
		y, erry := b.Data.Compact()
		if errx != nil || erry != nil || !bytes.Equal(x, y) {
			return false
		}
		b.Data = a.Data
	}
	return true
}

// method is a graph being lowered.
type method struct {
	*lowering
	g     *ir.Graph
	plan  *pte.Plan
	chain *pte.Chain

	interned map[string]int32
	key      []byte
	opIndex  map[pte.Operator]int32

	tensors map[*ir.Value]*tensor
	byIndex map[int32]*tensor
	scalars map[*ir.Value]int32
	// results are tensors decided before the node that makes the value is lowered: a buffer's own memory, a branch's result.
	results map[*ir.Value]*tensor
	scopes  []scope
	binds   map[string]ir.Binding
	bufs    []*buffer
	written map[*ir.Input]bool
	// places are the tensors of inputs as the caller or the state has them, whatever their layout.
	places    map[*ir.Input]*tensor
	delegates map[*partition.Lowered]int32
	rooms     *rooms
	lasts     keptLayouts
	pinned    []string
	at        *ir.Node // what is being lowered, for diagnostics
	diags     ir.Diags
	peak      int64
	// exported is the bytes planned for the sizes at export.
	exported int64
}

// tensor is a tensor value of the plan.
type tensor struct {
	index int32
	meta  *pte.Tensor
	// buf is the planned memory and off the tensor's place in it, in bytes; nil for constants and for the caller's memory.
	buf *buffer
	off int64
	// data is a constant's contents and name what the model calls it.
	data *ir.Data
	name string
	// exported is the bytes of a planned tensor at the sizes of the export.
	exported int64
}

func newMethod(l *lowering, g *ir.Graph) *method {
	return &method{
		lowering: l, g: g,
		plan:     &pte.Plan{Name: g.Name, InputSpec: g.InSpec, OutputSpec: g.OutSpec},
		chain:    &pte.Chain{},
		interned: map[string]int32{}, opIndex: map[pte.Operator]int32{},
		tensors: map[*ir.Value]*tensor{}, byIndex: map[int32]*tensor{}, scalars: map[*ir.Value]int32{},
		results: map[*ir.Value]*tensor{}, scopes: []scope{{}}, binds: g.Bindings(), written: map[*ir.Input]bool{},
		places: map[*ir.Input]*tensor{}, delegates: map[*partition.Lowered]int32{},
		rooms: newRooms(g.Syms),
	}
}

func (m *method) fail(d *ir.Diag) {
	m.diags = append(m.diags, d)
}

func (m *method) failf(code, try, format string, args ...any) {
	msg := fmt.Sprintf(format, args...)
	if m.at != nil {
		m.fail(m.at.Diag(code, msg, try))
		return
	}
	m.fail(&ir.Diag{Code: code, Msg: "method " + m.g.Name + ": " + msg, File: m.g.File, Entry: m.g.Entry, Try: try})
}

// now is the place of the next instruction in time. Inputs arrive at 0.
func (m *method) now() int { return len(m.chain.Instructions) + 1 }

func (m *method) lower() {
	for i, o := range m.g.Outputs {
		if o.Kind != ir.OutputUser && m.g.Ret().In(i) != o.Target.Value {
			m.written[o.Target] = true
		}
	}
	m.g.Walk(m.sink)
	for _, in := range m.g.Inputs {
		m.input(in)
	}
	m.donate()
	m.keepLayouts()
	for _, in := range m.g.Inputs {
		// Another layout of the caller's, if it is not kept, is undone once.
		if t := m.places[in]; t != nil && !plainOrder(t.meta.DimOrder) && in.Value.NumUses() > 0 && !m.lasts.kept[in.Value] {
			c := m.newTensorLike(t)
			m.cloneTo(c, t)
			m.set(in.Value, c)
		}
	}
	m.nodes(m.g)
	m.at = nil
	if len(m.diags) > 0 {
		return
	}
	m.outputs()
	m.place()
	m.plan.Chains = []*pte.Chain{m.chain}
}

// input makes the value of a graph input that the caller or the state feeds. Constants are made when they are used.
func (m *method) input(in *ir.Input) {
	v := in.Value
	if in.Kind != ir.InputUser {
		place, shared := m.shared[in.Target]
		if m.written[in] || shared {
			t := m.newTensor(v.Type, m.newBuffer())
			if shared {
				t.buf.memory, t.buf.offset = sharedMemory, place
			}
			m.set(v, t)
			m.places[in] = t
			t.buf.first, t.buf.last, t.buf.kept = 0, math.MaxInt32, true
			if in.Data != nil {
				t.meta.Data = m.initialData(in.Data)
			}
		}
		return
	}
	var idx int32
	switch {
	case in.HasFixed && !v.Type.IsTensor():
		idx = m.fixed(in.Fixed)
		m.scalars[v] = idx
	case v.Type.IsTensor():
		var t *tensor
		if m.opts.CallerInputs {
			t = m.newTensor(v.Type, nil)
		} else {
			t = m.newTensor(v.Type, m.newBuffer())
			t.buf.touch(0)
			t.buf.kept = m.written[in]
		}
		idx = t.index
		m.set(v, t)
		m.places[in] = t
		if order := channelsLast(v.Type); order != nil {
			t.meta.DimOrder = order
		}
	default:
		idx = m.newScalar(v.Type)
		if v.Type.Kind == ir.KindInt && v.Type.Known {
			if k, err := sym.Eval(v.Type.Sym, m.g.Syms); err == nil {
				m.plan.Values[idx] = pte.Int(k)
				m.pinned = append(m.pinned, fmt.Sprintf("the runtime takes number %d among the inputs only as %d, its value at export", len(m.plan.Inputs), k))
			}
		}
		m.scalars[v] = idx
	}
	m.plan.Inputs = append(m.plan.Inputs, idx)
}

// fixed makes an input of the value that the export saw; each input has a value of its own.
func (m *method) fixed(a ir.Arg) int32 {
	switch a.Kind() {
	case ir.ArgInt:
		k, _ := a.Int()
		return m.add(pte.Int(k))
	case ir.ArgFloat:
		f, _ := a.Float()
		return m.add(pte.Double(f))
	case ir.ArgBool:
		b, _ := a.Bool()
		return m.add(pte.Bool(b))
	case ir.ArgStr:
		s, _ := a.Str()
		return m.add(pte.String(s))
	}
	return m.add(pte.Null{})
}

func (m *method) newScalar(t ir.Type) int32 {
	switch t.Kind {
	case ir.KindInt:
		return m.add(pte.Int(0))
	case ir.KindFloat:
		return m.add(pte.Double(0))
	case ir.KindBool:
		return m.add(pte.Bool(false))
	case ir.KindStr:
		return m.add(pte.String(""))
	}
	return m.add(pte.Null{})
}

func (m *method) newBuffer() *buffer {
	b := &buffer{first: math.MaxInt32, last: -1, memory: ownMemory}
	m.bufs = append(m.bufs, b)
	return b
}

// The memories of a plan: of the method alone, and of state that methods share.
const (
	ownMemory    = 1
	sharedMemory = 2
)

// newTensor makes a tensor value of type t, contiguous, in buf.
func (m *method) newTensor(t ir.Type, buf *buffer) *tensor {
	return m.newTensorAt(t, buf, 0)
}

func (m *method) newTensorAt(t ir.Type, buf *buffer, off int64) *tensor {
	meta := &pte.Tensor{Type: scalarTypes[t.DType]}
	sizes, dynamic := m.rooms.upper(t.Shape)
	for i, size := range sizes {
		if size < 0 || size > upperLimit {
			names := sym.Symbols(t.Shape[i])
			try := ""
			if len(names) > 0 {
				try = fmt.Sprintf("give it a bound: --dim %s=1..128, or torch.export.Dim(min=, max=), or torch._check in the model", names[0])
			}
			m.failf("size", try, "nothing says how large dimension %d of %s may be; memory is planned when the program is loaded", i, t)
			size = 0
		}
		meta.Sizes = append(meta.Sizes, int32(size))
		meta.DimOrder = append(meta.DimOrder, uint8(i))
	}
	if dynamic {
		meta.Dynamism = pte.DynamicBound
	}
	x := &tensor{meta: meta, buf: buf, off: off}
	x.index = m.add(meta)
	m.byIndex[x.index] = x
	if buf != nil {
		n, err := meta.NBytes()
		if err != nil {
			m.failf("size", "", "%v", err)
		}
		buf.size = max(buf.size, off+n)
		x.exported = n
		if dynamic {
			x.exported = product(m.rooms.exported(t.Shape)) * t.DType.Size()
		}
		buf.exported = max(buf.exported, off+x.exported)
	}
	return x
}

// channelsLast is the dim order of a channels-last type, nil for others. The runtime takes no third layout.
func channelsLast(t ir.Type) []uint8 {
	order, dense := t.DimOrder()
	want := map[int][]uint8{4: {0, 2, 3, 1}, 5: {0, 2, 3, 4, 1}}[len(order)]
	if !dense || want == nil {
		return nil
	}
	for i, d := range order {
		if uint8(d) != want[i] {
			return nil
		}
	}
	return want
}

func plainOrder(order []uint8) bool {
	for i, d := range order {
		if int(d) != i {
			return false
		}
	}
	return true
}

// set says that t holds v.
func (m *method) set(v *ir.Value, t *tensor) {
	m.tensors[v] = t
	if t.buf != nil {
		t.buf.values = append(t.buf.values, v)
	}
}

// tensor is the contiguous tensor that holds v.
func (m *method) tensor(v *ir.Value) *tensor {
	t, ok := m.tensors[v]
	if !ok {
		if v.Input == nil || v.Input.Kind == ir.InputUser || v.Input.Kind == ir.InputOperand {
			m.failf("internal", "", "value %s is used before it is made", v.Name)
			t = m.newTensor(v.Type, m.newBuffer())
		} else {
			t = m.constant(v)
		}
		m.set(v, t)
	}
	return t
}

func (m *method) constant(v *ir.Value) *tensor {
	if v.Input.Data == nil {
		m.failf("no-data", "compile the archive itself, or a graph with its weights", "%s %q comes without its contents", v.Input.Kind, v.Input.Target)
		return m.newTensor(v.Type, m.newBuffer())
	}
	t := m.newTensor(v.Type, nil)
	t.data, t.name = v.Input.Data, v.Input.Target
	m.hold(t)
	return t
}

// value is the index of v.
func (m *method) value(v *ir.Value) int32 {
	switch v.Type.Kind {
	case ir.KindTensor:
		return m.tensor(v).index
	case ir.KindNone:
		return m.none()
	}
	if i, ok := m.scalars[v]; ok {
		return i
	}
	if v.Type.Kind == ir.KindInt && v.Type.Known {
		return m.expr(v.Type.Sym)
	}
	m.failf("internal", "", "value %s is used before it is made", v.Name)
	return m.none()
}

func (m *method) operator(name, overload string) int32 {
	o := pte.Operator{Name: name, Overload: overload}
	i, ok := m.opIndex[o]
	if !ok {
		i = int32(len(m.plan.Operators))
		m.plan.Operators = append(m.plan.Operators, o)
		m.opIndex[o] = i
	}
	return i
}

func (m *method) call(name, overload string, args ...int32) {
	m.emit(pte.KernelCall{Op: m.operator(name, overload), Args: args}, args...)
}

// emit appends an instruction that refers to the values.
func (m *method) emit(i pte.Instruction, values ...int32) {
	at := m.now()
	for _, v := range values {
		m.touch(v, at)
	}
	m.chain.Instructions = append(m.chain.Instructions, i)
}

func (m *method) touch(v int32, at int) {
	switch x := m.plan.Values[v].(type) {
	case *pte.Tensor:
		if t := m.byIndex[v]; t.buf != nil {
			t.buf.touch(at)
		}
	case pte.TensorList:
		for _, e := range x {
			m.touch(e, at)
		}
	case pte.OptionalTensorList:
		for _, e := range x {
			if e >= 0 {
				m.touch(e, at)
			}
		}
	}
}

func (m *method) dimOrder(t *tensor) int32 {
	ks := make([]int64, len(t.meta.DimOrder))
	for i, d := range t.meta.DimOrder {
		ks[i] = int64(d)
	}
	return m.ints(ks...)
}

func (m *method) nodes(g *ir.Graph) {
	g.Number()
	for n := range g.Nodes() {
		m.at = n
		if m.idle(n) {
			continue
		}
		p, d := match(n)
		if d != nil {
			m.fail(d)
			// The results stand in, so that what follows is checked as well.
			for _, o := range n.Outs {
				m.standIn(o)
			}
			continue
		}
		m.node(n, p)
	}
}

// idle tells nodes that nothing comes of: neither a value that is used nor a size.
func (m *method) idle(n *ir.Node) bool {
	if len(n.Outs) == 0 || n.Op == ops.Unknown || !n.Info().Pure() {
		return false
	}
	for _, o := range n.Outs {
		if o.NumUses() > 0 {
			return false
		}
		binds := false
		o.Type.EachSymbol(func(e sym.Expr) {
			for _, s := range sym.Symbols(e) {
				binds = binds || m.binds[s].Value == o
			}
		})
		if binds {
			return false
		}
	}
	return true
}

func (m *method) standIn(o *ir.Value) {
	if o.Type.IsTensor() {
		t := o.Type
		if _, ok := scalarTypes[t.DType]; !ok {
			t.DType = ops.Float32
		}
		m.set(o, m.newTensor(t, m.newBuffer()))
		return
	}
	m.scalars[o] = m.newScalar(o.Type)
}

// result is the tensor that n's result goes to.
func (m *method) result(o *ir.Value) *tensor {
	t, ok := m.results[o]
	if !ok {
		t = m.newTensor(o.Type, m.newBuffer())
	}
	m.set(o, t)
	return t
}

func (m *method) node(n *ir.Node, p *plan) {
	switch p.kind {
	case planNothing:
	case planKernel:
		m.kernel(n, p)
	case planReshape:
		m.reshape(n.In(0), n.Out())
	case planPart:
		m.part(n, p)
	case planItem:
		out := m.newScalar(n.Out().Type)
		x := m.tensor(n.In(0)).index
		m.call("aten::_local_scalar_dense", "", x, out)
		m.scalars[n.Out()] = out
	case planScalar:
		var args []int32
		for _, a := range n.Args() {
			args = append(args, m.scalar(a))
		}
		out := m.newScalar(n.Out().Type)
		m.prim(p.prim, append(args, out)...)
		m.scalars[n.Out()] = out
	case planDelegate:
		m.delegate(n)
	default:
		m.control(n, p)
	}
}

func (m *method) kernel(n *ir.Node, p *plan) {
	k := p.kernel
	m.reuse(n, p)
	args := make([]int32, 0, len(p.args)+1)
	var outs []int32
	next := 0
	for i, f := range p.args {
		ka := &k.Schema.Args[i]
		switch f.kind {
		case feedArg:
			if t := m.lasts.heldBy(n, n.In(f.arg)); t != nil {
				args = append(args, t.index)
				continue
			}
			args = append(args, m.argument(ka, m.simplified(n, k, ka, n.Arg(f.arg))))
		case feedConst:
			args = append(args, m.argument(ka, f.val))
		case feedWrap:
			d, _ := f.val.DType()
			args = append(args, m.wrap(d, n.Arg(f.arg)))
		case feedOut:
			make := m.result
			if m.lasts.kept[n.Outs[next]] {
				make = m.resultAsItLies
			}
			o := make(n.Outs[next])
			next++
			outs = append(outs, o.index)
			args = append(args, o.index)
		case feedOuts:
			l := make(pte.TensorList, len(n.Outs))
			for i, o := range n.Outs {
				l[i] = m.result(o).index
			}
			args = append(args, m.intern(l))
			outs = append(outs, args[len(args)-1])
		case feedDimOrder:
			t, ok := m.results[n.Out()]
			if !ok {
				t = &tensor{meta: &pte.Tensor{DimOrder: make([]uint8, n.Out().Type.Rank())}}
				for i := range t.meta.DimOrder {
					t.meta.DimOrder[i] = uint8(i)
				}
			}
			args = append(args, m.dimOrder(t))
		}
	}
	// The runtime's wrappers take what the operator returns once more.
	switch {
	case len(outs) == 1:
		args = append(args, outs[0])
	case len(outs) > 1:
		args = append(args, m.intern(pte.TensorList(outs)))
	}
	m.call(k.Schema.NS+"::"+k.Schema.Base, k.Schema.Overload, args...)
	if len(n.Outs) > 0 {
		m.undo(n.Outs[0])
	}
}

// simplified replaces sizes that the kernel finds out for itself, so that nothing has to be computed for them.
func (m *method) simplified(n *ir.Node, k *ops.KernelInfo, ka *ops.Arg, a ir.Arg) ir.Arg {
	if k.Schema.Base != "expand_copy" || ka.Name != "size" {
		return a
	}
	x := n.In(0)
	out := n.Out().Type.Shape
	lead := len(out) - x.Type.Rank()
	items := append([]ir.Arg(nil), a.List()...)
	for i := range items {
		if _, ok := items[i].Int(); ok || i < lead || i >= len(out) {
			continue
		}
		if out[i].Equal(x.Type.Shape[i-lead]) {
			items[i] = ir.Int(-1)
		}
	}
	return ir.List(items...)
}

// reshape gives out the bytes of x under another shape.
func (m *method) reshape(x, out *ir.Value) {
	t := m.tensor(x)
	if want, ok := m.results[out]; ok && want.buf != t.buf {
		// Its place is decided, and is another: the bytes have to move.
		m.copyTo(want, m.shaped(t, x, out))
		m.set(out, want)
		return
	}
	m.set(out, m.shaped(t, x, out))
}

// shaped gives a tensor of out's type over the bytes of t, which holds x.
func (m *method) shaped(t *tensor, x, out *ir.Value) *tensor {
	if ir.EqualShape(x.Type.Shape, out.Type.Shape) {
		return t
	}
	if t.buf == nil && t.data == nil {
		// The caller's memory has no place in the plan.
		y := m.newTensor(out.Type, m.newBuffer())
		m.call("aten::view_copy", "out", t.index, m.viewSize(out.Type.Shape), y.index, y.index)
		return y
	}
	y := m.newTensorAt(out.Type, t.buf, t.off)
	if t.data != nil {
		y.data, y.name = t.data, t.name
		m.hold(y)
	}
	if y.meta.Dynamism != pte.Static {
		m.prim("et_view.default", t.index, m.viewSize(out.Type.Shape), y.index)
	}
	return y
}

// viewSize is the size argument of a reshape. One size is left to the kernel, so that nothing has to be computed where
// only one varies.
func (m *method) viewSize(shape []sym.Expr) int32 {
	l := make(pte.IntList, len(shape))
	left := -1
	cost := 0
	empty := slices.ContainsFunc(shape, func(e sym.Expr) bool { return e.IsConstValue(0) })
	for i, e := range shape {
		if _, ok := e.IsConst(); ok || empty { // the kernel infers no size of a tensor without elements
			continue
		}
		if c := len(e.String()); c > cost && !m.known(e) {
			left, cost = i, c
		}
	}
	if left < 0 && !empty {
		for i, e := range shape {
			if _, ok := e.IsConst(); !ok {
				left = i
			}
		}
	}
	for i, e := range shape {
		if i == left {
			l[i] = int64(m.int(-1))
			continue
		}
		l[i] = int64(m.expr(e))
	}
	return m.intern(l)
}

// part gives n's results the bytes of its argument where they lie.
func (m *method) part(n *ir.Node, p *plan) {
	t := m.tensor(n.In(0))
	placed := false
	for _, o := range n.Outs {
		_, ok := m.results[o]
		placed = placed || ok
	}
	if t.buf == nil || placed {
		m.kernel(n, p)
		return
	}
	offs, _ := partOffsets(n)
	for i, o := range n.Outs {
		if o.NumUses() == 0 {
			continue
		}
		m.set(o, m.newTensorAt(o.Type, t.buf, t.off+offs[i]*int64(t.meta.Type.Size())))
	}
}

// copyTo moves the elements of t, of the same shape, to the tensor to.
func (m *method) copyTo(to, t *tensor) {
	if !plainOrder(to.meta.DimOrder) {
		m.cloneTo(to, t)
		return
	}
	m.call("aten::copy_", "", to.index, t.index, m.intern(pte.Bool(false)), to.index)
}

func (m *method) report() MethodReport {
	r := MethodReport{Name: m.plan.Name, Instructions: len(m.chain.Instructions), Peak: m.peak, Kernels: map[string]int{}, Notes: m.pinned}
	for _, i := range m.chain.Instructions {
		if k, ok := i.(pte.KernelCall); ok {
			o := m.plan.Operators[k.Op]
			name := o.Name
			if o.Overload != "" {
				name += "." + o.Overload
			}
			r.Kernels[name]++
		}
	}
	for _, n := range m.plan.BufferSizes {
		r.Planned += n
	}
	r.Exported = min(m.exported+m.sharedSize, r.Planned)
	for _, s := range m.g.Syms.All() {
		if a := m.rooms.free[s.Name]; a != nil {
			r.Assumed = append(r.Assumed, *a)
		}
	}
	return r
}
