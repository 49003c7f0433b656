package mlx

import (
	"fmt"
	"sync"

	"github.com/lathe-ml/lathe/codegen/msl"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/partition"
)

// Caps is what the delegate takes.
type Caps struct {
	kernels map[string]*msl.Manifest
}

// emit writes the node that a rule matched into a payload.
type emit func(b *builder)

// rule gives the way to write m's node, or nil after m.no said why there is none.
type rule func(m *match) emit

// match is a node that a rule looks at.
type match struct {
	n    *ir.Node
	why  *ir.Diag
	caps Caps
}

// families are the rules by file.
func families() []map[ops.ID]rule {
	return []map[ops.ID]rule{
		unaryRules, binaryRules, reduceRules, viewRules, indexRules, matmulRules, expertRules, convRules, poolRules, resizeRules, normRules,
		attentionRules, createRules, randomRules, sortRules, controlRules(), customRules, quantRules,
	}
}

// The rule of an operator may ask for that of another, for the nodes of a branch: the table is made when it is first asked.
var (
	ruleOnce sync.Once
	ruleMap  partition.Rules[rule]
)

func rules() partition.Rules[rule] {
	ruleOnce.Do(func() { ruleMap = partition.JoinRules(families()...) })
	return ruleMap
}

// Match gives the plan for n, an emit, or says why the delegate does not take it.
func (c Caps) Match(n *ir.Node) (partition.Plan, *ir.Diag) {
	e, d := c.plan(n)
	if d != nil {
		return nil, d
	}
	return e, nil
}

func (c Caps) plan(n *ir.Node) (emit, *ir.Diag) {
	m := &match{n: n, caps: c}
	r, _ := rules().Of(n.Op)
	if k := c.kernels[n.OpName()]; k != nil {
		r = custom(k)
	}
	if r == nil {
		m.no("the delegate has no node for it")
		return nil, m.why
	}
	// A rule of quantized weights looks at their constants itself: their element types never reach the delegate.
	if _, quantized := quantRules[n.Op]; !quantized && !m.types() {
		return nil, m.why
	}
	e := r(m)
	if e == nil && m.why == nil {
		m.no("its arguments have no form in the delegate")
	}
	if m.why != nil {
		return nil, m.why
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
		m.why = m.n.Diag("mlx", "not for the MLX delegate: "+fmt.Sprintf(format, args...), "")
	}
	return nil
}

// types refuses what no node of the delegate can hold: other element types, computed floats, sizes that its arithmetic
// does not reach.
func (m *match) types() bool {
	ok := true
	look := func(v *ir.Value) {
		if why := heldType(v.Type); why != "" && ok {
			ok = false
			m.no("%s", why)
		}
	}
	for v := range m.n.Inputs() {
		look(v)
	}
	for _, o := range m.n.Outs {
		if o.Type.Kind == ir.KindInt && o.Type.Known || o.Type.Kind == ir.KindNone {
			continue
		}
		look(o)
	}
	visit := func(e sym.Expr) {
		if why := expressible(e); why != "" && ok {
			ok = false
			m.no("%s", why)
		}
	}
	for _, a := range m.n.Args() {
		a.EachExpr(visit)
	}
	for _, o := range m.n.Outs {
		for _, e := range o.Type.Shape {
			visit(e)
		}
	}
	return ok
}

func heldType(t ir.Type) string {
	switch {
	case t.Kind == ir.KindInt && t.Known:
		return ""
	case !t.IsTensor():
		return fmt.Sprintf("a computed %s", t.Kind)
	case t.Quant != nil:
		return fmt.Sprintf("a tensor quantized as %s", t.Quant.Scheme)
	case scalarType(t.DType) < 0:
		return fmt.Sprintf("it has no %s", t.DType)
	}
	return ""
}

// scalarType is the code of an element type in the payload, -1 for those that the delegate has not.
func scalarType(d ops.DType) int8 {
	switch d {
	case ops.Uint8:
		return 0
	case ops.Int8:
		return 1
	case ops.Int16:
		return 2
	case ops.Int32:
		return 3
	case ops.Int64:
		return 4
	case ops.Float16:
		return 5
	case ops.Float32:
		return 6
	case ops.Bool:
		return 11
	case ops.BFloat16:
		return 15
	case ops.Uint32:
		return 28
	}
	return -1
}

// Arguments of the node at hand.

func (m *match) in(i int) *ir.Value { return m.n.In(i) }
func (m *match) arg(i int) ir.Arg   { return m.n.Arg(i) }
func (m *match) out() ir.Type       { return m.n.Out().Type }
func (m *match) typ(i int) ir.Type  { return m.n.In(i).Type }

// intArg is a constant integer argument; a symbolic one is refused.
func (m *match) intArg(i int) (int64, bool) {
	k, ok := m.arg(i).Int()
	if !ok {
		m.no("argument %s is not constant", m.argName(i))
	}
	return k, ok
}

func (m *match) ints(i int) ([]int64, bool) {
	ks, ok := m.arg(i).IntList()
	if !ok {
		if k, one := m.arg(i).Int(); one {
			return []int64{k}, true
		}
		m.no("argument %s is not constant", m.argName(i))
	}
	return ks, ok
}

func (m *match) argName(i int) string {
	s := &m.n.Info().Schema
	if i < len(s.Args) {
		return s.Args[i].Name
	}
	return fmt.Sprint(i)
}

// dim is a dimension argument counted from the front, for a tensor of the given rank.
func (m *match) dim(i, rank int) (int, bool) {
	k, ok := m.intArg(i)
	if !ok {
		return 0, false
	}
	return m.axis(k, rank)
}

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

// static gives the sizes of t where they are constant.
func (m *match) static(t ir.Type, what string) ([]int64, bool) {
	ks, ok := t.Sizes()
	if !ok {
		m.no("%s of a size that is not constant", what)
	}
	return ks, ok
}
