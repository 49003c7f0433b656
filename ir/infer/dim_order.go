package infer

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// ordered is a tensor in the argument dim_order, or like another tensor where that is None.
func (c *Call) ordered(d ops.DType, shape []sym.Expr, like *ir.Type) ([]ir.Type, error) {
	order, ok := c.dims("dim_order", len(shape))
	if !ok {
		return one(c.withFormat("preserve_format", d, shape, like))
	}
	if len(order) != len(shape) {
		failf("dim_order names %d dimensions of %d", len(order), len(shape))
	}
	return one(dense(d, shape, order))
}

func inferToDimOrderCopy(c *Call) ([]ir.Type, error) {
	c.checkLayout()
	x := c.x()
	return c.ordered(c.dtypeOr("dtype", x.DType), x.Shape, &x)
}

func inferCloneDimOrder(c *Call) ([]ir.Type, error) {
	x := c.x()
	return c.ordered(x.DType, x.Shape, &x)
}

func inferEmptyDimOrder(c *Call) ([]ir.Type, error) {
	c.checkLayout()
	return c.ordered(c.dtypeOr("dtype", ops.Float32), c.sizes("size"), nil)
}
