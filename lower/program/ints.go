package program

import (
	"math"

	"github.com/lathe-ml/lathe/codegen/pte"
	"github.com/lathe-ml/lathe/ir/sym"
)

// scope holds the expressions computed in one straight run of instructions; what a branch computed is not there after it.
type scope map[uint64][]computed

type computed struct {
	e     sym.Expr
	index int32
}

func (m *method) lookup(e sym.Expr) (int32, bool) {
	for i := len(m.scopes) - 1; i >= 0; i-- {
		for _, c := range m.scopes[i][e.Hash()] {
			if c.e.Equal(e) {
				return c.index, true
			}
		}
	}
	return 0, false
}

func (m *method) remember(e sym.Expr, index int32) {
	s := m.scopes[len(m.scopes)-1]
	s[e.Hash()] = append(s[e.Hash()], computed{e, index})
}

// known tells whether e needs no instruction.
func (m *method) known(e sym.Expr) bool {
	if _, ok := e.IsConst(); ok {
		return true
	}
	_, ok := m.lookup(e)
	return ok
}

func (m *method) prim(name string, args ...int32) {
	base, overload := name, ""
	for i := range name {
		if name[i] == '.' {
			base, overload = name[:i], name[i+1:]
			break
		}
	}
	m.call("executorch_prim::"+base, overload, args...)
}

// expr is the index of the number that e stands for. Each expression is computed once, before its first use.
func (m *method) expr(e sym.Expr) int32 {
	if k, ok := e.IsConst(); ok {
		return m.int(k)
	}
	if b, ok := e.IsBool(); ok {
		return m.intern(pte.Bool(b))
	}
	if f, ok := e.IsFloat(); ok {
		return m.intern(pte.Double(f))
	}
	if i, ok := m.lookup(e); ok {
		return i
	}
	i := m.compute(e)
	m.remember(e, i)
	return i
}

// op1 emits an operator on scalars and gives its result.
func (m *method) op1(name string, kind sym.Kind, args ...int32) int32 {
	var out int32
	switch kind {
	case sym.Bool:
		out = m.add(pte.Bool(false))
	case sym.Float:
		out = m.add(pte.Double(0))
	default:
		out = m.add(pte.Int(0))
	}
	m.prim(name, append(args, out)...)
	return out
}

func (m *method) compute(e sym.Expr) int32 {
	if name, ok := e.IsSymbol(); ok {
		return m.symbol(name)
	}
	op, args := e.Parts()
	kind := e.Kind()
	switch op {
	case sym.OpAdd:
		acc := m.expr(args[0])
		for _, a := range args[1:] {
			if kind == sym.Int {
				if k, ok := a.IsConst(); ok && k < 0 && k != math.MinInt64 {
					acc = m.op1("sub.Scalar", kind, acc, m.int(-k))
					continue
				}
				if n := sym.Neg(a); negative(a) {
					acc = m.op1("sub.Scalar", kind, acc, m.expr(n))
					continue
				}
			}
			acc = m.op1("add.Scalar", kind, acc, m.expr(a))
		}
		return acc
	case sym.OpMul:
		if len(args) == 2 && args[0].IsConstValue(-1) {
			return m.op1("sub.Scalar", kind, m.int(0), m.expr(args[1]))
		}
		acc := m.expr(args[0])
		for _, a := range args[1:] {
			acc = m.op1("mul.Scalar", kind, acc, m.expr(a))
		}
		return acc
	case sym.OpFloorDiv:
		return m.op1("floordiv.Scalar", kind, m.expr(args[0]), m.expr(args[1]))
	case sym.OpMod:
		a, b := args[0], args[1]
		if m.g.Syms.Range(a).Min >= 0 && m.g.Syms.Range(b).Min > 0 {
			return m.op1("mod.Scalar", kind, m.expr(a), m.expr(b))
		}
		// The runtime's remainder has the sign of the dividend.
		q := m.op1("floordiv.Scalar", kind, m.expr(a), m.expr(b))
		return m.op1("sub.Scalar", kind, m.expr(a), m.op1("mul.Scalar", kind, q, m.expr(b)))
	case sym.OpMax, sym.OpMin:
		name := "sym_max.Scalar"
		if op == sym.OpMin {
			name = "sym_min.Scalar"
		}
		acc := m.expr(args[0])
		for _, a := range args[1:] {
			acc = m.op1(name, kind, acc, m.expr(a))
		}
		return acc
	case sym.OpAbs:
		a := m.expr(args[0])
		return m.op1("sym_max.Scalar", kind, a, m.op1("sub.Scalar", kind, m.int(0), a))
	case sym.OpWhere:
		return m.op1("sym_ite.Scalar", kind, m.expr(args[0]), m.expr(args[1]), m.expr(args[2]))
	case sym.OpEq, sym.OpLt, sym.OpLe, sym.OpGt, sym.OpGe:
		name := map[sym.Op]string{sym.OpEq: "eq", sym.OpLt: "lt", sym.OpLe: "le", sym.OpGt: "gt", sym.OpGe: "ge"}[op]
		return m.op1(name+".Scalar", sym.Bool, m.expr(args[0]), m.expr(args[1]))
	case sym.OpNe:
		return m.op1("sym_not.Scalar", sym.Bool, m.op1("eq.Scalar", sym.Bool, m.expr(args[0]), m.expr(args[1])))
	case sym.OpNot:
		return m.op1("sym_not.Scalar", sym.Bool, m.expr(args[0]))
	case sym.OpAnd, sym.OpOr:
		acc := m.expr(args[0])
		for _, a := range args[1:] {
			if op == sym.OpAnd {
				acc = m.op1("sym_ite.Scalar", sym.Bool, acc, m.expr(a), m.intern(pte.Bool(false)))
			} else {
				acc = m.op1("sym_ite.Scalar", sym.Bool, acc, m.intern(pte.Bool(true)), m.expr(a))
			}
		}
		return acc
	case sym.OpToFloat:
		return m.op1("sym_float.Scalar", sym.Float, m.expr(args[0]))
	case sym.OpTrueDiv:
		return m.op1("truediv.Scalar", sym.Float, m.expr(args[0]), m.expr(args[1]))
	case sym.OpCeil:
		return m.op1("ceil.Scalar", sym.Int, m.expr(args[0]))
	case sym.OpTrunc:
		return m.op1("trunc.Scalar", sym.Int, m.expr(args[0]))
	case sym.OpFloor:
		up := m.op1("ceil.Scalar", sym.Int, m.op1("neg.Scalar", sym.Float, m.expr(args[0])))
		return m.op1("sub.Scalar", sym.Int, m.int(0), up)
	case sym.OpRound:
		return m.op1("round.Scalar", sym.Int, m.expr(args[0]))
	}
	m.failf("no-kernel", "", "the runtime cannot compute %s", e)
	return m.none()
}

// negative tells monomials with a negative coefficient.
func negative(e sym.Expr) bool {
	op, args := e.Parts()
	if op != sym.OpMul {
		return false
	}
	k, ok := args[0].IsConst()
	return ok && k < 0
}

// symbol finds the value of a symbol where the caller or a node gave it.
func (m *method) symbol(name string) int32 {
	b, ok := m.binds[name]
	if !ok {
		m.failf("unbound-symbol", "", "nothing at run time tells the size %s", name)
		return m.none()
	}
	var x int32
	if b.Dim >= 0 {
		t, ok := m.tensors[b.Value]
		if !ok {
			t, ok = m.lasts.held[b.Value]
		}
		if !ok {
			m.failf("internal", "", "size %s is used before %s is made", name, b.Value.Name)
			return m.none()
		}
		x = m.add(pte.Int(0))
		// Sizes stay readable when the memory is given to others.
		m.chain.Instructions = append(m.chain.Instructions,
			pte.KernelCall{Op: m.operator("aten::sym_size", "int"), Args: []int32{t.index, m.int(int64(b.Dim)), x}})
	} else {
		i, ok := m.scalars[b.Value]
		if !ok {
			m.failf("internal", "", "number %s is used before %s is made", name, b.Value.Name)
			return m.none()
		}
		x = i
	}
	if b.B != 0 {
		x = m.op1("sub.Scalar", sym.Int, x, m.int(b.B))
	}
	if b.A != 1 {
		x = m.op1("floordiv.Scalar", sym.Int, x, m.int(b.A))
	}
	return x
}
