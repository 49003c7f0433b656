package program

import (
	"encoding/binary"
	"math"

	"github.com/lathe-ml/lathe/codegen/pte"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ops"
)

// add appends a value to the table.
func (m *method) add(v pte.Value) int32 {
	m.plan.Values = append(m.plan.Values, v)
	return int32(len(m.plan.Values) - 1)
}

// intern gives the index of a value that never changes; equal ones are one.
func (m *method) intern(v pte.Value) int32 {
	b := m.key[:0]
	switch v := v.(type) {
	case pte.Null:
		b = append(b, 'n')
	case pte.Int:
		b = binary.LittleEndian.AppendUint64(append(b, 'i'), uint64(v))
	case pte.Double:
		b = binary.LittleEndian.AppendUint64(append(b, 'd'), math.Float64bits(float64(v)))
	case pte.Bool:
		b = append(b, 'b', '0')
		if v {
			b[1] = '1'
		}
	case pte.String:
		b = append(append(b, 's'), v...)
	case pte.IntList:
		b = append(b, 'I')
		for _, k := range v {
			b = binary.AppendVarint(b, k)
		}
	case pte.TensorList:
		b = append(b, 'T')
		for _, k := range v {
			b = binary.AppendVarint(b, int64(k))
		}
	case pte.OptionalTensorList:
		b = append(b, 'O')
		for _, k := range v {
			b = binary.AppendVarint(b, int64(k))
		}
	case pte.DoubleList:
		b = append(b, 'D')
		for _, f := range v {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(f))
		}
	case pte.BoolList:
		b = append(b, 'B')
		for _, x := range v {
			if x {
				b = append(b, 1)
			} else {
				b = append(b, 0)
			}
		}
	}
	m.key = b
	if i, ok := m.interned[string(b)]; ok {
		return i
	}
	i := m.add(v)
	m.interned[string(b)] = i
	return i
}

func (m *method) int(k int64) int32 { return m.intern(pte.Int(k)) }

func (m *method) ints(ks ...int64) int32 {
	l := make(pte.IntList, len(ks))
	for i, k := range ks {
		l[i] = int64(m.int(k))
	}
	return m.intern(l)
}

func (m *method) none() int32 { return m.intern(pte.Null{}) }

// scalar gives the index of a number, bool, string or None as it stands, for a kernel's Scalar or for an output.
func (m *method) scalar(a ir.Arg) int32 {
	switch a.Kind() {
	case ir.ArgNone:
		return m.none()
	case ir.ArgValue:
		return m.value(a.Value())
	case ir.ArgInt:
		e, _ := a.Expr()
		return m.expr(e)
	case ir.ArgFloat:
		f, _ := a.Float()
		return m.intern(pte.Double(f))
	case ir.ArgBool:
		b, _ := a.Bool()
		return m.intern(pte.Bool(b))
	case ir.ArgDType:
		d, _ := a.DType()
		return m.int(int64(scalarTypes[d]))
	case ir.ArgMemory:
		s, _ := a.Str()
		return m.int(memoryFormats[s])
	case ir.ArgLayout:
		s, _ := a.Str()
		return m.int(layouts[s])
	case ir.ArgStr:
		s, _ := a.Str()
		return m.intern(pte.String(s))
	}
	return m.none()
}

// elem gives the index of an argument of kernel type t that is no list.
func (m *method) elem(t ops.ArgType, a ir.Arg) int32 {
	switch t {
	case ops.TFloat:
		if f, ok := a.Float(); ok {
			return m.intern(pte.Double(f))
		}
		if e, ok := a.Expr(); ok {
			out := m.add(pte.Double(0))
			m.call("executorch_prim::sym_float", "Scalar", m.expr(e), out)
			return out
		}
	case ops.TBool:
		if b, ok := a.Bool(); ok {
			return m.intern(pte.Bool(b))
		}
	case ops.TInt:
		if k, ok := a.Int(); ok {
			return m.int(k)
		}
	case ops.TDevice, ops.TGenerator:
		return m.none()
	}
	return m.scalar(a)
}

// argument gives the index of what kernel argument ka is given for a.
func (m *method) argument(ka *ops.Arg, a ir.Arg) int32 {
	if a.IsNone() {
		return m.none()
	}
	if !ka.List {
		return m.elem(ka.Type, a)
	}
	items := a.List()
	if a.Kind() != ir.ArgList {
		items = make([]ir.Arg, ka.Size)
		for i := range items {
			items[i] = a
		}
	}
	switch ka.Type {
	case ops.TTensor:
		if ka.ElemOpt {
			l := make(pte.OptionalTensorList, len(items))
			for i, e := range items {
				l[i] = -1
				if !e.IsNone() {
					l[i] = m.elem(ops.TTensor, e)
				}
			}
			return m.intern(l)
		}
		l := make(pte.TensorList, len(items))
		for i, e := range items {
			l[i] = m.elem(ops.TTensor, e)
		}
		return m.intern(l)
	case ops.TFloat:
		l := make(pte.DoubleList, len(items))
		for i, e := range items {
			l[i], _ = e.Float()
		}
		return m.intern(l)
	case ops.TBool:
		l := make(pte.BoolList, len(items))
		for i, e := range items {
			l[i], _ = e.Bool()
		}
		return m.intern(l)
	}
	l := make(pte.IntList, len(items))
	for i, e := range items {
		l[i] = int64(m.elem(ka.Type, e))
	}
	return m.intern(l)
}
