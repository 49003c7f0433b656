package xnnpack

import (
	"fmt"
	"sync"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/partition"
)

// Caps is what the delegate takes.
type Caps struct{}

var _ partition.Caps = Caps{}

// emit writes the node that a rule matched into a payload.
type emit func(b *builder)

// rule gives the way to write m's node, or nil after m.no said why there is none.
type rule func(m *match) emit

// match is a node that a rule looks at.
type match struct {
	n   *ir.Node
	why *ir.Diag
	// taken is set when the node stands in a region: what told of its operands may have stayed outside.
	taken bool
	// bytes is set when the node, which only moves data, does so with int8.
	bytes bool
}

// maxRank is the number of dimensions that the delegate's tensors have at most.
const maxRank = 6

var (
	ruleOnce sync.Once
	ruleMap  partition.Rules[rule]
)

// rules are those of all families.
func rules() partition.Rules[rule] {
	ruleOnce.Do(func() {
		ruleMap = partition.JoinRules(
			unaryRules, binaryRules, matmulRules, convRules, poolRules, viewRules, reduceRules, normRules, attentionRules, halfRules, quantRules(),
		)
	})
	return ruleMap
}

// Match gives the plan for n, an emit, or says why the delegate does not take it.
func (Caps) Match(n *ir.Node) (partition.Plan, *ir.Diag) {
	e, d := plan(n)
	if d != nil {
		return nil, d
	}
	return e, nil
}

func plan(n *ir.Node) (emit, *ir.Diag) { return planOf(&match{n: n}) }

func planOf(m *match) (emit, *ir.Diag) {
	n := m.n
	r, ok := rules().Of(n.Op)
	if !ok {
		m.no("it has no node for it")
		return nil, m.why
	}
	e := r(m)
	if e == nil && m.why == nil {
		m.no("its arguments have no form there")
	}
	if m.why != nil {
		return nil, m.why
	}
	if m.brain() {
		return widely(e), nil
	}
	return e, nil
}

// Takes tells whether there is a rule for nodes of an operator.
func (Caps) Takes(op ops.ID) bool {
	_, ok := rules().Of(op)
	return ok
}

// no says why the node stays outside.
func (m *match) no(format string, args ...any) emit {
	if m.why == nil {
		m.why = m.n.Diag("xnnpack", "not for the XNNPACK delegate: "+fmt.Sprintf(format, args...), "")
	}
	return nil
}

// floats refuses tensors that the delegate does not hold or compute on, results included. All have one type.
func (m *match) floats() bool {
	for v := range m.n.Inputs() {
		if !m.held(v) || !m.sameType(v) {
			return false
		}
	}
	for _, o := range m.n.Outs {
		if !m.held(o) || !m.sameType(o) {
			return false
		}
	}
	return true
}

// sameType refuses values of another type than the node's first result.
func (m *match) sameType(v *ir.Value) bool {
	if want := m.n.Outs[0].Type.DType; v.Type.DType != want {
		m.no("tensors of %s and %s", v.Type.DType, want)
		return false
	}
	return true
}

// isHalf tells tensors of 16-bit floats.
func isHalf(t ir.Type) bool { return t.DType == ops.Float16 || t.DType == ops.BFloat16 }

func (m *match) held(v *ir.Value) bool {
	if why := heldType(v.Type); why != "" && !(m.bytes && v.Type.DType == ops.Int8) {
		m.no("%s", why)
		return false
	}
	if why := m.filled(v.Type); why != "" {
		m.no("%s", why)
		return false
	}
	return true
}

func heldType(t ir.Type) string {
	switch {
	case !t.IsTensor():
		return fmt.Sprintf("a computed %s", t.Kind)
	case t.Quant != nil:
		return fmt.Sprintf("a tensor quantized as %s", t.Quant.Scheme)
	case t.DType != ops.Float32 && !isHalf(t):
		return fmt.Sprintf("it does not compute on %s", t.DType)
	case t.Rank() > maxRank:
		return fmt.Sprintf("a tensor of %d dimensions; it has up to %d", t.Rank(), maxRank)
	}
	return ""
}

// filled refuses tensors without elements and sizes that only the kernels know.
func (m *match) filled(t ir.Type) string {
	for _, e := range t.Shape {
		if k, ok := e.IsConst(); ok && k <= 0 {
			return "a tensor without elements"
		}
	}
	return ""
}

// Arguments of the node at hand.

func (m *match) in(i int) *ir.Value { return m.n.In(i) }
func (m *match) arg(i int) ir.Arg   { return m.n.Arg(i) }
func (m *match) out() ir.Type       { return m.n.Out().Type }

// isTensor tells whether argument i is a tensor.
func (m *match) isTensor(i int) bool {
	v := m.n.In(i)
	return v != nil && v.Type.IsTensor()
}

// number is a constant number at argument i.
func (m *match) number(i int) (float64, bool) {
	f, ok := m.arg(i).Float()
	if !ok {
		m.no("argument %s is no constant number", m.argName(i))
	}
	return f, ok
}

func (m *match) argName(i int) string {
	s := &m.n.Info().Schema
	if i < len(s.Args) {
		return s.Args[i].Name
	}
	return fmt.Sprint(i)
}

// axis is dimension k counted from the front.
func (m *match) axis(k int64, rank int) (int, bool) {
	if k < 0 {
		k += int64(rank)
	}
	if k < 0 || k >= int64(rank) {
		m.no("dimension %d of a tensor of rank %d", k, rank)
		return 0, false
	}
	return int(k), true
}

// dim is the dimension at argument i.
func (m *match) dim(i, rank int) (int, bool) {
	k, ok := m.arg(i).Int()
	if !ok {
		m.no("argument %s is not constant", m.argName(i))
		return 0, false
	}
	return m.axis(k, rank)
}

// pair is the one or two constants at argument i.
func (m *match) pair(i int, otherwise [2]int64) ([2]int64, bool) {
	a := m.arg(i)
	ks, ok := a.IntList()
	if k, one := a.Int(); one {
		ks, ok = []int64{k}, true
	}
	switch {
	case a.IsNone(), ok && len(ks) == 0:
		return otherwise, true
	case ok && len(ks) == 1:
		return [2]int64{ks[0], ks[0]}, true
	case ok && len(ks) == 2:
		return [2]int64{ks[0], ks[1]}, true
	}
	m.no("argument %s is not constant", m.argName(i))
	return otherwise, false
}

// isConst tells values whose contents are known when the program is compiled.
func isConst(v *ir.Value) bool { return v != nil && partition.Weight(v) != nil }

// symbolic counts the sizes that are not constant.
func symbolic(shape []sym.Expr) int {
	n := 0
	for _, e := range shape {
		if _, ok := e.IsConst(); !ok {
			n++
		}
	}
	return n
}
