package infer

import (
	"math"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

func (c *Call) sorted() (v, i ir.Type) {
	x := c.x()
	noComplex(x.DType)
	c.dim("dim", x.Rank())
	v = c.preserved(x.DType, x)
	i = v
	i.DType = ops.Int64
	return v, i
}

func inferSort(c *Call) ([]ir.Type, error) {
	v, i := c.sorted()
	return []ir.Type{v, i}, nil
}

func inferArgsort(c *Call) ([]ir.Type, error) {
	_, i := c.sorted()
	return one(i)
}

func inferTopk(c *Call) ([]ir.Type, error) {
	x := c.x()
	noComplex(x.DType)
	d := c.dim("dim", x.Rank())
	k := c.expr("k")
	if c.never(sym.Ge(k, sym.Const(0))) {
		failf("k is %s", k)
	}
	shape := append([]sym.Expr(nil), x.Shape...)
	if x.Rank() > 0 {
		if c.never(sym.Le(k, x.Shape[d])) {
			failf("k is %s, dimension %d has %s elements", k, d, x.Shape[d])
		}
		shape[d] = k
	}
	return []ir.Type{ir.TensorType(x.DType, shape...), ir.TensorType(ops.Int64, shape...)}, nil
}

// distinct is the number of different elements: at least one of something.
func (c *Call) distinct() sym.Expr { return c.fresh(sym.Range{Min: 0, Max: math.MaxInt64}) }

// uniqueTypes are values, inverse indices and counts; those not asked for are empty.
func (c *Call) uniqueTypes(values ir.Type, n sym.Expr, inverse []sym.Expr) []ir.Type {
	inv, cnt := ir.TensorType(ops.Int64, sym.Const(0)), ir.TensorType(ops.Int64, sym.Const(0))
	if c.bool("return_inverse") {
		inv = ir.TensorType(ops.Int64, inverse...)
	}
	if c.has("return_counts") && c.bool("return_counts") {
		cnt = ir.TensorType(ops.Int64, n)
	}
	return []ir.Type{values, inv, cnt}
}

func inferUniqueConsecutive(c *Call) ([]ir.Type, error) {
	if !c.arg("dim").IsNone() {
		return inferUniqueDim(c)
	}
	x, n := c.x(), c.distinct()
	return c.uniqueTypes(ir.TensorType(x.DType, n), n, x.Shape), nil
}

func inferUnique2(c *Call) ([]ir.Type, error) {
	x, n := c.x(), c.distinct()
	return c.uniqueTypes(ir.TensorType(x.DType, n), n, x.Shape), nil
}

func inferUnique(c *Call) ([]ir.Type, error) {
	x, n := c.x(), c.distinct()
	return c.uniqueTypes(ir.TensorType(x.DType, n), n, x.Shape)[:2], nil
}

func inferUniqueDim(c *Call) ([]ir.Type, error) {
	x, n := c.x(), c.distinct()
	d := c.dim("dim", x.Rank())
	shape := append([]sym.Expr(nil), x.Shape...)
	if len(shape) == 0 {
		failf("self has no dimensions")
	}
	inv := []sym.Expr{shape[d]}
	shape[d] = n
	if c.Op == ops.AtenUniqueDimDefault {
		// Inverse indices and counts are given whatever was asked for.
		return []ir.Type{ir.TensorType(x.DType, shape...), ir.TensorType(ops.Int64, inv...), ir.TensorType(ops.Int64, n)}, nil
	}
	return c.uniqueTypes(ir.TensorType(x.DType, shape...), n, inv), nil
}
