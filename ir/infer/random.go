package infer

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

func inferRandint(c *Call) ([]ir.Type, error) {
	c.checkLayout()
	low := sym.Const(0)
	if c.has("low") {
		low = c.expr("low")
	}
	if high := c.expr("high"); c.never(sym.Lt(low, high)) {
		failf("no integer is in [%s, %s)", low, high)
	}
	return one(ir.TensorType(c.dtypeOr("dtype", ops.Int64), c.sizes("size")...))
}

func inferRandperm(c *Call) ([]ir.Type, error) {
	return one(ir.TensorType(c.dtypeOr("dtype", ops.Int64), c.expr("n")))
}

// inferRandUnary is the rule of random numbers like the input.
func inferRandUnary(c *Call) ([]ir.Type, error) {
	x := c.x()
	if c.Op.Info().Mutates {
		return one(x)
	}
	if c.Op == ops.AtenBernoulliDefault {
		return one(ir.TensorType(x.DType, x.Shape...))
	}
	return one(c.preserved(x.DType, x))
}

func inferNormal(c *Call) ([]ir.Type, error) {
	if c.has("size") {
		return inferZeros(c)
	}
	a, b := c.operand("mean"), c.operand("std")
	switch {
	case a.number:
		return one(ir.TensorType(b.dtype, b.t.Shape...))
	case b.number:
		return one(ir.TensorType(a.dtype, a.t.Shape...))
	}
	return one(ir.TensorType(a.dtype, c.broadcast(a.t.Shape, b.t.Shape)...))
}

func inferMultinomial(c *Call) ([]ir.Type, error) {
	x := c.x()
	rank("self", x, 1, 2)
	if !x.DType.IsFloat() {
		failf("self is %s, a floating point type is needed", x.DType)
	}
	n := c.expr("num_samples")
	if !c.bool("replacement") && c.never(sym.Le(n, x.Shape[x.Rank()-1])) {
		failf("%s samples cannot be drawn from %s without replacement", n, x.Shape[x.Rank()-1])
	}
	return one(ir.TensorType(ops.Int64, append(append([]sym.Expr(nil), x.Shape[:x.Rank()-1]...), n)...))
}
