package infer

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// inferItem: an integer becomes a symbol.
func inferItem(c *Call) ([]ir.Type, error) {
	x := c.x()
	if c.differ(x.Numel(), sym.Const(1)) {
		failf("self has %s elements, one is needed", x.Numel())
	}
	switch category(x.DType) {
	case 0:
		return one(ir.ScalarType(ir.KindBool))
	case 1:
		return one(ir.IntType(c.fresh(sym.NoRange)))
	case 2:
		return one(ir.ScalarType(ir.KindFloat))
	}
	failf("complex numbers (%s) cannot be taken out of a tensor here", x.DType)
	return nil, nil
}

func inferNothing(c *Call) ([]ir.Type, error) { return nil, nil }

func inferDepToken(c *Call) ([]ir.Type, error) { return one(c.tensor("dep_token")) }

func inferMakeDepToken(c *Call) ([]ir.Type, error) {
	return one(ir.TensorType(c.dtypeOr("dtype", ops.Float32)))
}

// graph is a nested graph.
func (c *Call) graph(name string) *ir.Graph {
	g := c.arg(name).Graph()
	if g == nil {
		failf("argument %s is no graph", name)
	}
	return g
}

// outs are the types of what a graph returns.
func (c *Call) outs(g *ir.Graph) []ir.Type {
	ts := make([]ir.Type, g.Ret().NumArgs())
	for i, a := range g.Ret().Args() {
		ts[i] = c.argType(a)
	}
	return ts
}

// argType is the type of an argument as a value.
func (c *Call) argType(a ir.Arg) ir.Type {
	if v := a.Value(); v != nil {
		return v.Type
	}
	switch a.Kind() {
	case ir.ArgInt:
		e, _ := a.Expr()
		return ir.IntType(e)
	case ir.ArgFloat:
		return ir.ScalarType(ir.KindFloat)
	case ir.ArgBool:
		return ir.ScalarType(ir.KindBool)
	case ir.ArgStr:
		return ir.ScalarType(ir.KindStr)
	}
	return ir.ScalarType(ir.KindNone)
}

// takes checks that a graph has as many inputs as it is given arguments, of the same kinds and element types.
func (c *Call) takes(name string, g *ir.Graph, args []ir.Type) {
	if len(g.Inputs) != len(args) {
		failf("graph %s takes %d inputs and is given %d", name, len(g.Inputs), len(args))
	}
	for i, in := range g.Inputs {
		t := in.Value.Type
		if t.Kind != args[i].Kind || t.IsTensor() && (t.DType != args[i].DType || t.Rank() != args[i].Rank()) {
			failf("input %d of graph %s is %s and is given %s", i, name, t, args[i])
		}
	}
}

func (c *Call) argTypes(name string) []ir.Type {
	a := c.arg(name)
	if a.Kind() != ir.ArgList {
		if a.IsNone() {
			return nil
		}
		return []ir.Type{c.argType(a)}
	}
	ts := make([]ir.Type, len(a.List()))
	for i, e := range a.List() {
		ts[i] = c.argType(e)
	}
	return ts
}

// merged is the type of a value that is one of two: sizes that differ become symbols.
func (c *Call) merged(i int, a, b ir.Type) ir.Type {
	if a.Kind != b.Kind || a.IsTensor() && (a.DType != b.DType || a.Rank() != b.Rank()) {
		failf("result %d is %s in one branch and %s in the other", i, a, b)
	}
	if a.Kind == ir.KindInt {
		if a.Known && b.Known && a.Sym.Equal(b.Sym) {
			return a
		}
		return ir.IntType(c.fresh(sym.NoRange))
	}
	if !a.IsTensor() {
		return a
	}
	t := ir.TensorType(a.DType, append([]sym.Expr(nil), a.Shape...)...)
	for d := range t.Shape {
		if !c.eq(a.Shape[d], b.Shape[d]) {
			t.Shape[d] = c.fresh(sym.Range{Min: 0, Max: sym.NoRange.Max})
		}
	}
	if ir.EqualShape(strides(a), strides(b)) {
		t.Strides = a.Strides
	}
	return t
}

func inferCond(c *Call) ([]ir.Type, error) {
	if p := c.arg("pred"); p.Value() != nil {
		if t := p.Value().Type; t.IsTensor() && (t.DType != ops.Bool || c.differ(t.Numel(), sym.Const(1))) {
			failf("the condition is %s, one bool is needed", t)
		}
	}
	yes, no := c.graph("true_fn"), c.graph("false_fn")
	args := c.argTypes("operands")
	c.takes("true_fn", yes, args)
	c.takes("false_fn", no, args)
	ts, us := c.outs(yes), c.outs(no)
	if len(ts) != len(us) {
		failf("one branch returns %d values, the other %d", len(ts), len(us))
	}
	for i := range ts {
		ts[i] = c.merged(i, ts[i], us[i])
	}
	return ts, nil
}

func inferWhileLoop(c *Call) ([]ir.Type, error) {
	carried := c.argTypes("carried_inputs")
	args := append(append([]ir.Type(nil), carried...), c.argTypes("additional_inputs")...)
	test, body := c.graph("cond_fn"), c.graph("body_fn")
	c.takes("cond_fn", test, args)
	c.takes("body_fn", body, args)
	ts := c.outs(body)
	if len(ts) != len(carried) {
		failf("the body returns %d values, %d are carried", len(ts), len(carried))
	}
	for i := range ts {
		in := body.Inputs[i].Value.Type
		switch {
		case ts[i].Kind != carried[i].Kind || ts[i].IsTensor() && (ts[i].DType != carried[i].DType || ts[i].Rank() != carried[i].Rank()):
			failf("carried value %d is %s and becomes %s", i, carried[i], ts[i])
		case ts[i].Kind == ir.KindInt:
			ts[i] = ir.IntType(c.fresh(sym.NoRange))
		case ts[i].IsTensor():
			t := ir.TensorType(ts[i].DType, append([]sym.Expr(nil), carried[i].Shape...)...)
			for d := range t.Shape {
				if !c.eq(in.Shape[d], carried[i].Shape[d]) || !c.eq(ts[i].Shape[d], in.Shape[d]) {
					t.Shape[d] = c.fresh(sym.Range{Min: 0, Max: sym.NoRange.Max})
				}
			}
			ts[i] = t
		}
	}
	return ts, nil
}

// scanned is the number of slices of the tensors that a loop runs over.
func (c *Call) scanned(name string) (xs []ir.Type, n sym.Expr) {
	xs = c.argTypes(name)
	for i, x := range xs {
		if !x.IsTensor() || x.Rank() == 0 {
			failf("element %d of %s has no dimension to run over", i, name)
		}
		if i > 0 {
			c.same("the leading sizes of "+name, x.Shape[0], n)
		} else {
			n = x.Shape[0]
		}
	}
	return xs, n
}

func slice0(xs []ir.Type) []ir.Type {
	out := make([]ir.Type, len(xs))
	for i, x := range xs {
		out[i] = without(x, func(d int) bool { return d == 0 })
	}
	return out
}

func stacked(t ir.Type, n sym.Expr) ir.Type {
	if !t.IsTensor() {
		return t
	}
	return ir.TensorType(t.DType, inserted(t.Shape, 0, n)...)
}

func inferScan(c *Call) ([]ir.Type, error) {
	init := c.argTypes("init")
	xs, n := c.scanned("xs")
	g := c.graph("combine_fn")
	args := append(append([]ir.Type(nil), init...), slice0(xs)...)
	c.takes("combine_fn", g, append(args, c.argTypes("additional_inputs")...))
	ts := c.outs(g)
	if len(ts) < len(init) {
		failf("the graph returns %d values, %d are carried", len(ts), len(init))
	}
	for i := range ts {
		if i < len(init) {
			if ts[i].Kind != init[i].Kind || ts[i].DType != init[i].DType || ts[i].Rank() != init[i].Rank() {
				failf("carried value %d is %s and becomes %s", i, init[i], ts[i])
			}
			ts[i].Strides = nil
			continue
		}
		ts[i] = stacked(ts[i], n)
	}
	return ts, nil
}

func inferAssociativeScan(c *Call) ([]ir.Type, error) {
	xs, _ := c.scanned("xs")
	g := c.graph("combine_fn")
	if len(c.outs(g)) != len(xs) {
		failf("the graph returns %d values, %d are combined", len(c.outs(g)), len(xs))
	}
	out := make([]ir.Type, len(xs))
	for i, x := range xs {
		out[i] = ir.TensorType(x.DType, x.Shape...)
	}
	return out, nil
}

func inferMapImpl(c *Call) ([]ir.Type, error) {
	xs, n := c.scanned("xs")
	g := c.graph("f")
	c.takes("f", g, append(slice0(xs), c.argTypes("pos_args")...))
	ts := c.outs(g)
	for i := range ts {
		ts[i] = stacked(ts[i], n)
	}
	return ts, nil
}

func inferWrap(c *Call) ([]ir.Type, error) {
	g := c.graph("wrapped_func")
	c.takes("wrapped_func", g, c.argTypes("args"))
	return c.outs(g), nil
}

func inferAddBatchDim(c *Call) ([]ir.Type, error) {
	x := c.x()
	if x.Rank() == 0 {
		failf("self has no dimension to hide")
	}
	d := c.dim("batch_dim", x.Rank())
	t := ir.Type{DType: x.DType, Shape: x.Shape, Strides: strides(x)}
	t = without(t, func(i int) bool { return i == d })
	if t.NormStrides() == nil {
		t.Strides = nil
	}
	return one(t)
}

func inferRemoveBatchDim(c *Call) ([]ir.Type, error) {
	x := c.x()
	d := wrapDim("out_dim", c.int("out_dim"), x.Rank()+1)
	return one(ir.TensorType(x.DType, inserted(x.Shape, d, c.expr("batch_size"))...))
}

func inferVmapNesting(c *Call) ([]ir.Type, error) { return one(ir.ScalarType(ir.KindInt)) }
