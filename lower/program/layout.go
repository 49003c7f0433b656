package program

import (
	"slices"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ops"
)

// Inside a method all is contiguous, but for what comes channels-last from the caller: as long as kernels take that and
// give results in the same layout, it is kept, and undone where something else reads the value. That is worth it where it
// does not make more or larger copies than undoing it at once.

// keptLayouts says what lies channels-last.
type keptLayouts struct {
	// kept are the values that do.
	kept map[*ir.Value]bool
	// undone are those of them that something wants contiguous.
	undone map[*ir.Value]bool
	// held are the tensors that hold kept values.
	held map[*ir.Value]*tensor
}

// layoutFirst are kernels that take their first argument channels-last, whatever the layout of the others, and give a first
// result of the same layout. Average pooling and batch normalization refuse it.
var layoutFirst = map[string]bool{"convolution": true, "max_pool2d_with_indices": true}

// layoutAll are kernels that go through the elements as they lie, where all tensors are of one shape and layout.
var layoutAll = map[string]bool{
	"abs": true, "add": true, "clamp": true, "div": true, "elu": true, "exp": true, "gelu": true, "hardtanh": true, "leaky_relu": true,
	"mul": true, "neg": true, "relu": true, "rsqrt": true, "sigmoid": true, "sqrt": true, "sub": true, "tanh": true,
}

// keepLayouts decides which values stay channels-last.
func (m *method) keepLayouts() {
	l := keptLayouts{kept: map[*ir.Value]bool{}, undone: map[*ir.Value]bool{}, held: map[*ir.Value]*tensor{}}
	var order []*ir.Value
	var atOnce int64
	for _, in := range m.g.Inputs {
		t := m.places[in]
		if t != nil && len(t.meta.DimOrder) == 4 && !plainOrder(t.meta.DimOrder) && in.Value.NumUses() > 0 && !m.written[in] {
			l.kept[in.Value] = true
			order = append(order, in.Value)
			atOnce += t.exported
		}
	}
	inputs := len(order)
	if inputs == 0 {
		return
	}
	through := map[*ir.Node]bool{}
	for n := range m.g.Nodes() {
		if m.keepsLayout(n, l.kept) {
			through[n] = true
			l.kept[n.Outs[0]] = true
			order = append(order, n.Outs[0])
		}
	}
	var later int64
	for _, v := range order {
		if slices.ContainsFunc(v.Users(), func(u *ir.Node) bool { return !through[u] }) {
			l.undone[v] = true
			later += product(m.rooms.exported(v.Type.Shape)) * v.Type.DType.Size()
		}
	}
	if len(l.undone) > inputs || later > atOnce {
		return
	}
	m.lasts = l
	for _, v := range order[:inputs] {
		l.held[v] = m.tensors[v]
		delete(m.tensors, v)
		m.undo(v)
	}
}

// keepsLayout tells whether n reads its operands channels-last and makes its result so.
func (m *method) keepsLayout(n *ir.Node, kept map[*ir.Value]bool) bool {
	p, d := match(n)
	if d != nil || p.kind != planKernel || n.In(0) == nil || !kept[n.In(0)] {
		return false
	}
	base := p.kernel.Schema.Base
	all := layoutAll[base]
	if !all && !layoutFirst[base] {
		return false
	}
	for i, o := range n.Outs {
		if i == 0 && (m.results[o] != nil || o.Type.Rank() != 4) || i > 0 && o.NumUses() > 0 {
			return false
		}
	}
	out := n.Outs[0].Type
	for i, f := range p.args {
		switch f.kind {
		case feedOut, feedConst:
			continue
		case feedArg:
		default:
			return false
		}
		v := n.In(f.arg)
		switch {
		case v == nil:
		case all && p.kernel.Schema.Args[i].Type == ops.TTensor:
			if !kept[v] || v.Type.DType != out.DType || !ir.EqualShape(v.Type.Shape, out.Shape) {
				return false
			}
		case f.arg > 0 && kept[v]:
			return false
		}
	}
	return true
}

// heldBy is the tensor that n reads v from: as it lies where n keeps the layout.
func (l *keptLayouts) heldBy(n *ir.Node, v *ir.Value) *tensor {
	if v == nil || len(n.Outs) == 0 || !l.kept[n.Outs[0]] {
		return nil
	}
	return l.held[v]
}

// resultAsItLies is the tensor for a result that stays channels-last.
func (m *method) resultAsItLies(o *ir.Value) *tensor {
	t, ok := m.results[o]
	if !ok {
		t = m.newTensor(o.Type, m.newBuffer())
		t.meta.DimOrder = []uint8{0, 2, 3, 1}
	}
	m.lasts.held[o] = t
	if t.buf != nil {
		t.buf.values = append(t.buf.values, o)
	}
	return t
}

// undo makes the contiguous tensor of a kept value, if something wants it.
func (m *method) undo(v *ir.Value) {
	if t := m.lasts.held[v]; t != nil && m.lasts.undone[v] {
		c := m.newTensorLike(t)
		m.cloneTo(c, t)
		m.set(v, c)
	}
}
