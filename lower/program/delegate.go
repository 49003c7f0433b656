package program

import (
	"github.com/lathe-ml/lathe/codegen/pte"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/partition"
)

// delegate calls a region: its inputs, then its outputs.
func (m *method) delegate(n *ir.Node) {
	d := n.Attr.(*partition.Lowered)
	idx, ok := m.delegates[d]
	if !ok {
		idx = int32(len(m.plan.Delegates))
		m.delegates[d] = idx
		out := &pte.Delegate{ID: d.ID, Payload: d.Payload}
		for _, s := range d.Specs {
			out.Specs = append(out.Specs, pte.CompileSpec{Key: s.Key, Value: s.Value})
		}
		m.plan.Delegates = append(m.plan.Delegates, out)
		for _, x := range d.Named {
			if m.named[x.Key] {
				continue
			}
			m.named[x.Key] = true
			if m.data != nil {
				m.data.Entries = append(m.data.Entries, pte.DataEntry{Key: x.Key, Data: x.Data, Align: x.Align})
				continue
			}
			m.prog.Named = append(m.prog.Named, pte.NamedData{Key: x.Key, Data: x.Data, Align: x.Align})
		}
	}
	var args []int32
	var feed func(a ir.Arg)
	feed = func(a ir.Arg) {
		if a.Kind() == ir.ArgList {
			for _, e := range a.List() {
				feed(e)
			}
			return
		}
		args = append(args, m.scalar(a))
	}
	for _, a := range n.Args() {
		feed(a)
	}
	for _, o := range n.Outs {
		if o.Type.IsTensor() {
			args = append(args, m.result(o).index)
			continue
		}
		i := m.newScalar(o.Type)
		m.scalars[o] = i
		args = append(args, i)
	}
	m.emit(pte.DelegateCall{Delegate: idx, Args: args}, args...)
}
