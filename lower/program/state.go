package program

import (
	"math"
	"slices"

	"github.com/lathe-ml/lathe/codegen/pte"
	"github.com/lathe-ml/lathe/ir"
)

// donate finds, for each input that is written back, whether the node that makes the new contents can write them straight
// into the input's memory: nobody may want the old contents after it, and the kernel must bear to write what it reads.
func (m *method) donate() {
	m.g.Number()
	for i, o := range m.g.Outputs {
		if o.Kind == ir.OutputUser || !m.written[o.Target] {
			continue
		}
		v := m.g.Ret().In(i)
		old := o.Target.Value
		to := m.places[o.Target]
		if v == nil || to == nil || !plainOrder(to.meta.DimOrder) || v.Type.DType != old.Type.DType || !ir.EqualShape(v.Type.Shape, old.Type.Shape) {
			continue
		}
		// A value that is only another shape of the node's result lies in the same memory.
		root := v
		for root.Def != nil && root.Def.Graph() == m.g {
			p, d := match(root.Def)
			if d != nil || p.kind != planReshape || root.Def.In(0).Type.DType != root.Type.DType {
				break
			}
			root = root.Def.In(0)
		}
		n := root.Def
		if n == nil || n.Graph() != m.g || m.results[root] != nil {
			continue
		}
		p, d := match(n)
		if d != nil || p.kind != planKernel || !m.mayOverwrite(n, p, root, old) {
			continue
		}
		switch {
		case root == v:
			m.results[root] = to
		case to.buf != nil && to.meta.Dynamism == pte.Static && root.Type.Static():
			m.results[root] = m.newTensorAt(root.Type, to.buf, to.off)
		}
	}
}

// mayOverwrite tells whether n may write its result out into the memory of old.
func (m *method) mayOverwrite(n *ir.Node, p *plan, out, old *ir.Value) bool {
	// The aliases of old: what shares its memory.
	work := []*ir.Value{old}
	for len(work) > 0 {
		x := work[len(work)-1]
		work = work[:len(work)-1]
		for _, u := range x.Users() {
			if u.IsReturn() || u.Order() > n.Order() {
				return false
			}
			if u == n {
				if x != old || !bearsOverwrite(n, p, out, old) {
					return false
				}
				continue
			}
			if q, d := match(u); d == nil && (q.kind == planReshape || q.kind == planPart) || len(u.Graphs()) > 0 {
				work = append(work, u.Outs...)
			}
		}
	}
	return true
}

// elementwise are kernels that read of an operand as large as the result only the element that they are about to write.
var elementwise = map[string]bool{}

func init() {
	for _, name := range []string{
		"abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_not", "bitwise_or",
		"bitwise_xor", "ceil", "clamp", "cos", "cosh", "div", "elu", "erf", "exp", "expm1", "floor", "floor_divide", "fmod",
		"gelu", "hardtanh", "leaky_relu", "log", "log10", "log1p", "log2", "logical_and", "logical_not", "logical_or",
		"logical_xor", "masked_fill", "maximum", "minimum", "mul", "neg", "pow", "reciprocal", "relu", "remainder", "round",
		"rsqrt", "rsub", "sigmoid", "sign", "sin", "sinh", "sqrt", "sub", "tan", "tanh", "trunc", "where",
	} {
		elementwise[name] = true
	}
	// Not element-wise, but each row is read in full before it is written.
	elementwise["_softmax"] = true
}

// elementwiseFirst are kernels of several results that read of their first argument only the element of the first result
// that they are about to write; the other results are of their own.
var elementwiseFirst = map[string]bool{"_native_batch_norm_legit_no_training": true}

// copiesFirst are kernels that begin by copying their first argument to the result.
var copiesFirst = map[string]bool{
	"index_put": true, "slice_scatter": true, "select_scatter": true, "scatter": true, "scatter_add": true, "masked_scatter": true,
}

const manyUses = 64

// reuse gives an element-wise node's first result the memory of an operand that nobody wants after it.
func (m *method) reuse(n *ir.Node, p *plan) {
	switch base := p.kernel.Schema.Base; {
	case elementwise[base] && len(n.Outs) == 1, elementwiseFirst[base]:
	default:
		return
	}
	out := n.Outs[0]
	if m.results[out] != nil {
		return
	}
next:
	for v := range n.Inputs() {
		t := m.tensors[v]
		if m.lasts.kept[out] {
			t = m.lasts.held[v]
		}
		if t == nil || t.buf == nil || t.buf.kept || t.off != 0 || v.Type.DType != out.Type.DType || !ir.EqualShape(v.Type.Shape, out.Type.Shape) {
			continue
		}
		if len(t.buf.values) > manyUses {
			continue
		}
		for _, w := range t.buf.values {
			// A value with many users is hardly dead after this one, and asking them all each time would take long.
			if w.Graph() != n.Graph() || w.NumUses() > manyUses {
				continue next
			}
			for _, u := range w.Users() {
				if u.IsReturn() || u.Order() > n.Order() || u == n && w != v {
					continue next
				}
			}
		}
		if n, err := t.meta.NBytes(); err != nil || n != t.buf.size {
			continue
		}
		m.results[out] = m.newTensorAt(out.Type, t.buf, 0)
		m.results[out].meta.DimOrder = slices.Clone(t.meta.DimOrder)
		return
	}
}

// bearsOverwrite tells whether the kernel gives the right result where its argument old lies in the result's memory.
func bearsOverwrite(n *ir.Node, p *plan, out, old *ir.Value) bool {
	if old.Type.DType != out.Type.DType || !ir.EqualShape(old.Type.Shape, out.Type.Shape) || len(n.Outs) != 1 {
		return false
	}
	base := p.kernel.Schema.Base
	if elementwise[base] {
		return true
	}
	if !copiesFirst[base] || n.In(0) != old {
		return false
	}
	uses := 0
	for v := range n.Inputs() {
		if v == old {
			uses++
		}
	}
	return uses == 1
}

// outputs writes back what is not in its place yet, and lists what the method returns: mutated user inputs, then the
// user's results.
func (m *method) outputs() {
	ret := m.g.Ret()
	// The places that are still to be overwritten.
	backs := map[int]*tensor{}
	for i, o := range m.g.Outputs {
		if o.Kind == ir.OutputUser || !m.written[o.Target] {
			continue
		}
		v := ret.In(i)
		if v == nil || !v.Type.IsTensor() {
			m.failf("kernel-limit", "", "%q is assigned a number", o.Target.Target)
			return
		}
		if to := m.places[o.Target]; !m.inPlace(v, to) {
			backs[i] = to
		}
	}
	// What shows contents that will be overwritten is saved first.
	written, writtenBufs := map[*tensor]bool{}, map[*buffer]bool{}
	for _, b := range backs {
		if b != nil {
			written[b] = true
			writtenBufs[b.buf] = b.buf != nil
		}
	}
	stale := func(t *tensor) bool { return written[t] || writtenBufs[t.buf] }
	saved := map[*tensor]*tensor{}
	results := make([]int32, len(m.g.Outputs))
	sources := map[int]*tensor{}
	for i, o := range m.g.Outputs {
		v := ret.In(i)
		if v == nil || !v.Type.IsTensor() {
			results[i] = m.scalar(ret.Arg(i))
			continue
		}
		if o.Kind != ir.OutputUser && backs[i] == nil {
			continue
		}
		t := m.tensor(v)
		if stale(t) {
			if saved[t] == nil {
				saved[t] = m.newTensorLike(t)
				m.cloneTo(saved[t], t)
			}
			t = saved[t]
		}
		results[i], sources[i] = t.index, t
	}
	for i := range m.g.Outputs {
		if b := backs[i]; b != nil {
			m.copyTo(b, sources[i])
		}
	}
	for i, o := range m.g.Outputs {
		if o.Kind == ir.OutputBufferMutation {
			continue
		}
		idx := results[i]
		if o.Kind == ir.OutputInputMutation {
			if t := m.places[o.Target]; t != nil {
				idx = t.index
			}
		}
		m.touch(idx, math.MaxInt32)
		m.plan.Outputs = append(m.plan.Outputs, idx)
	}
}

// inPlace tells whether the node that made v has written it to the tensor to.
func (m *method) inPlace(v *ir.Value, to *tensor) bool {
	t := m.results[source(v)]
	return t != nil && (t == to || m.share(operand{t: t}, operand{t: to}))
}

// source follows v through shapes to the node result that it is.
func source(v *ir.Value) *ir.Value {
	for v.Def != nil {
		p, d := match(v.Def)
		if d != nil || p.kind != planReshape {
			break
		}
		v = v.Def.In(0)
	}
	return v
}

// place plans memory and tells every tensor its place.
func (m *method) place() {
	end := m.now()
	var roots []*buffer
	for _, b := range m.bufs {
		b.first = min(max(b.first, 0), end)
		b.last = min(max(b.last, b.first), end)
		if b.memory == ownMemory {
			roots = append(roots, b)
		}
	}
	total := planMemory(roots)
	m.peak, m.exported = peak(roots), total
	if len(m.rooms.free) > 0 {
		small := make([]*buffer, len(roots))
		for i, b := range roots {
			small[i] = &buffer{size: b.exported, first: b.first, last: b.last}
		}
		m.exported = planMemory(small)
	}
	any := false
	for i := range m.plan.Values {
		x, ok := m.byIndex[int32(i)]
		if !ok || x.buf == nil {
			continue
		}
		any = true
		x.meta.Alloc = &pte.Allocation{Memory: x.buf.memory, Offset: uint64(x.buf.offset + x.off)}
	}
	m.plan.BufferSizes = []int64{0}
	if any || m.sharedSize > 0 {
		m.plan.BufferSizes = append(m.plan.BufferSizes, max(total, align))
	}
	if m.sharedSize > 0 {
		m.plan.BufferSizes = append(m.plan.BufferSizes, m.sharedSize)
	}
}
