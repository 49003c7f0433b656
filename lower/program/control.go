package program

import (
	"github.com/lathe-ml/lathe/codegen/pte"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
)

func matchCond(n *ir.Node) (*plan, *ir.Diag)  { return matchControl(n, planCond) }
func matchWhile(n *ir.Node) (*plan, *ir.Diag) { return matchControl(n, planWhile) }
func matchScan(n *ir.Node) (*plan, *ir.Diag)  { return matchControl(n, planScan) }
func matchMap(n *ir.Node) (*plan, *ir.Diag)   { return matchControl(n, planMap) }

// matchControl takes the nodes whose graphs return as many values as they have to. What stands in the graphs is matched
// node by node.
func matchControl(n *ir.Node, kind planKind) (*plan, *ir.Diag) {
	for _, g := range n.Graphs() {
		want := len(n.Outs)
		if kind == planWhile && g == n.ArgNamed("cond_fn").Graph() {
			want = 1
		}
		if got := g.Ret().NumArgs(); got != want {
			return nil, n.Diag("control-flow", "a graph inside does not return what the operator does", "")
		}
	}
	for _, o := range n.Outs {
		if d := checkResult(n, o); d != nil {
			return nil, d
		}
	}
	return &plan{kind: kind}, nil
}

func (m *method) control(n *ir.Node, p *plan) {
	switch p.kind {
	case planCond:
		m.cond(n)
	case planWhile:
		m.while(n)
	case planScan:
		m.scan(n, n.ArgNamed("combine_fn").Graph(), n.ArgNamed("init").List(), n.ArgNamed("xs").List(), n.ArgNamed("additional_inputs").List())
	case planMap:
		m.scan(n, n.ArgNamed("f").Graph(), nil, n.ArgNamed("xs").List(), n.ArgNamed("pos_args").List())
	}
	m.at = n
}

// bindInputs makes the inputs of a nested graph stand for operands that are values of the plan already.
func (m *method) bindInputs(g *ir.Graph, operands []operand) {
	for i, in := range g.Inputs {
		if i >= len(operands) {
			m.failf("internal", "", "a nested graph has more inputs than operands")
			return
		}
		if t := operands[i].t; t != nil {
			m.set(in.Value, t)
		} else {
			m.scalars[in.Value] = operands[i].index
		}
	}
	for name, b := range g.Bindings() {
		if _, ok := m.binds[name]; !ok {
			m.binds[name] = b
		}
	}
}

// operand is a value of the plan.
type operand struct {
	t     *tensor // nil for scalars
	index int32
}

func (m *method) operand(a ir.Arg) operand {
	if v := a.Value(); v != nil && v.Type.IsTensor() {
		t := m.tensor(v)
		return operand{t, t.index}
	}
	return operand{index: m.scalar(a)}
}

func (m *method) operands(as ...ir.Arg) []operand {
	os := make([]operand, len(as))
	for i, a := range as {
		os[i] = m.operand(a)
	}
	return os
}

// jump emits a jump whose target is set by the function returned; a nil condition always jumps.
func (m *method) jump(cond int32) (land func()) {
	at := len(m.chain.Instructions)
	m.emit(pte.JumpFalseCall{Cond: cond}, cond)
	return func() {
		m.chain.Instructions[at] = pte.JumpFalseCall{Cond: cond, Target: int32(len(m.chain.Instructions))}
	}
}

func (m *method) always() int32 { return m.intern(pte.Bool(false)) }

// body lowers the nodes of a nested graph and gives what it returns.
func (m *method) body(g *ir.Graph) []operand {
	m.nodes(g)
	return m.operands(g.Ret().Args()...)
}

func (m *method) push() { m.scopes = append(m.scopes, scope{}) }
func (m *method) pop()  { m.scopes = m.scopes[:len(m.scopes)-1] }

// cond runs one of two graphs. Both write their results to the same place.
func (m *method) cond(n *ir.Node) {
	pred := m.scalar(n.ArgNamed("pred"))
	args := m.operands(n.ArgNamed("operands").List()...)
	outs := make([]operand, len(n.Outs))
	for i, o := range n.Outs {
		if o.Type.IsTensor() {
			t := m.result(o)
			outs[i] = operand{t, t.index}
		} else {
			outs[i] = operand{index: m.newScalar(o.Type)}
			m.scalars[o] = outs[i].index
		}
	}
	toElse := m.jump(pred)
	m.branch(n.ArgNamed("true_fn").Graph(), args, outs)
	toEnd := m.jump(m.always())
	toElse()
	m.branch(n.ArgNamed("false_fn").Graph(), args, outs)
	toEnd()
}

func (m *method) branch(g *ir.Graph, args, outs []operand) {
	m.push()
	defer m.pop()
	m.bindInputs(g, args)
	for i, out := range outs {
		r := g.Ret().In(i)
		if out.t != nil && r != nil && m.writable(g, r, out.t) {
			m.results[r] = out.t
		}
	}
	m.store(outs, m.body(g))
}

// writable tells whether the node that makes r can write it to t.
func (m *method) writable(g *ir.Graph, r *ir.Value, t *tensor) bool {
	if r.Def == nil || r.Def.Graph() != g || m.results[r] != nil || scalarTypes[r.Type.DType] != t.meta.Type || r.Type.Rank() != len(t.meta.Sizes) {
		return false
	}
	p, d := match(r.Def)
	return d == nil && (p.kind == planKernel || p.kind == planCond || p.kind == planDelegate)
}

// store moves values to where they are wanted, all at once: none is overwritten before it is moved.
func (m *method) store(to, from []operand) {
	from = append([]operand(nil), from...)
	for i := range from {
		if same(to[i], from[i]) {
			continue
		}
		for j := range i + 1 {
			if !same(to[j], from[j]) && m.share(from[i], to[j]) {
				from[i] = m.saveOperand(from[i])
				break
			}
		}
	}
	for i := range to {
		switch {
		case same(to[i], from[i]):
		case to[i].t != nil && from[i].t != nil:
			m.cloneTo(to[i].t, from[i].t)
		default:
			m.emit(pte.MoveCall{From: from[i].index, To: to[i].index}, from[i].index, to[i].index)
		}
	}
}

func same(a, b operand) bool { return a.index == b.index }

// share tells whether writing b changes a.
func (m *method) share(a, b operand) bool {
	if a.t == nil || b.t == nil {
		return a.index == b.index
	}
	return a.t == b.t || a.t.buf != nil && b.t.buf != nil && a.t.buf == b.t.buf
}

func (m *method) saveOperand(o operand) operand {
	if o.t == nil {
		var kind pte.Value
		switch v := m.plan.Values[o.index].(type) {
		case pte.Int, pte.Bool, pte.Double:
			kind = v
		default:
			return o
		}
		i := m.add(kind)
		m.emit(pte.MoveCall{From: o.index, To: i})
		return operand{index: i}
	}
	t := m.newTensorLike(o.t)
	m.cloneTo(t, o.t)
	return operand{t, t.index}
}

// newTensorLike is a tensor of the same type and shape with memory of its own.
func (m *method) newTensorLike(t *tensor) *tensor {
	meta := *t.meta
	meta.Data, meta.Alloc = 0, nil
	meta.DimOrder = nil
	for i := range meta.Sizes {
		meta.DimOrder = append(meta.DimOrder, uint8(i))
	}
	x := &tensor{meta: &meta, buf: m.newBuffer()}
	x.index = m.add(&meta)
	m.byIndex[x.index] = x
	x.buf.size, _ = meta.NBytes()
	x.exported, x.buf.exported = t.exported, t.exported
	return x
}

// cloneTo copies t's elements and sizes to another tensor, in that one's layout.
func (m *method) cloneTo(to, t *tensor) {
	m.call("dim_order_ops::_clone_dim_order", "out", t.index, m.intern(pte.Bool(false)), m.dimOrder(to), to.index, to.index)
}

// loop emits body between a head, which gives the condition to go on, and the jump back. What was there before and is
// used inside stays to the end.
func (m *method) loop(head func() int32, body func()) {
	m.push()
	start := m.now()
	first := int32(len(m.chain.Instructions))
	exit := m.jump(head())
	body()
	m.emit(pte.JumpFalseCall{Cond: m.always(), Target: first})
	end := m.now()
	exit()
	m.pop()
	for _, b := range m.bufs {
		if b.first < start && b.last >= start {
			b.touch(end)
		}
	}
}

// carry makes the values that a loop carries, with their first contents.
func (m *method) carry(inits []operand, types []ir.Type) []operand {
	cs := make([]operand, len(inits))
	for i, a := range inits {
		if types[i].IsTensor() && a.t != nil {
			t := m.newTensor(types[i], m.newBuffer())
			t.buf.kept = true
			m.cloneTo(t, a.t)
			cs[i] = operand{t, t.index}
			continue
		}
		c := m.newScalar(types[i])
		m.emit(pte.MoveCall{From: a.index, To: c}, a.index, c)
		cs[i] = operand{index: c}
	}
	return cs
}

func (m *method) while(n *ir.Node) {
	init := m.operands(n.ArgNamed("carried_inputs").List()...)
	extra := m.operands(n.ArgNamed("additional_inputs").List()...)
	cond, body := n.ArgNamed("cond_fn").Graph(), n.ArgNamed("body_fn").Graph()
	types := make([]ir.Type, len(n.Outs))
	for i, o := range n.Outs {
		types[i] = o.Type
	}
	carried := m.carry(init, types)
	args := append(append([]operand(nil), carried...), extra...)
	m.loop(func() int32 {
		m.bindInputs(cond, args)
		return m.body(cond)[0].index
	}, func() {
		m.bindInputs(body, args)
		m.store(carried, m.body(body))
	})
	m.define(n.Outs, carried)
}

func (m *method) define(outs []*ir.Value, os []operand) {
	for i, o := range outs {
		if t := os[i].t; t != nil {
			m.set(o, t)
		} else {
			m.scalars[o] = os[i].index
		}
	}
}

// scan runs a graph for each slice along the first dimension of xs; what it returns beyond the carried values is stacked.
func (m *method) scan(n *ir.Node, g *ir.Graph, init, xs, extra []ir.Arg) {
	if len(xs) == 0 || xs[0].Value() == nil || xs[0].Value().Type.Rank() == 0 {
		m.failf("control-flow", "", "there is nothing to scan over")
		return
	}
	steps := m.expr(xs[0].Value().Type.Shape[0])
	types := make([]ir.Type, len(n.Outs))
	for i, o := range n.Outs {
		types[i] = o.Type
	}
	carried := m.carry(m.operands(init...), types[:len(init)])
	seqs := m.operands(xs...)
	more := m.operands(extra...)
	stacks := make([]operand, 0, len(n.Outs)-len(init))
	for _, o := range n.Outs[len(init):] {
		t := m.newTensor(o.Type, m.newBuffer())
		// It grows slice by slice.
		t.meta.Dynamism = pte.DynamicBound
		t.buf.touch(m.now())
		t.buf.kept = true
		stacks = append(stacks, operand{t, t.index})
	}
	i := m.add(pte.Int(0))
	m.emit(pte.MoveCall{From: m.int(0), To: i})
	m.loop(func() int32 {
		return m.op1("lt.Scalar", sym.Bool, i, steps)
	}, func() {
		args := append([]operand(nil), carried...)
		for k, s := range seqs {
			in := g.Inputs[len(carried)+k].Value
			t := m.newTensor(in.Type, m.newBuffer())
			m.call("aten::select_copy", "int_out", s.index, m.int(0), i, t.index, t.index)
			args = append(args, operand{t, t.index})
		}
		m.bindInputs(g, append(args, more...))
		res := m.body(g)
		for k, s := range stacks {
			m.prim("et_copy_index.tensor", s.index, res[len(carried)+k].index, i)
		}
		m.store(carried, res[:len(carried)])
		m.prim("add.Scalar", i, m.int(1), i)
	})
	m.define(n.Outs, append(carried, stacks...))
}
