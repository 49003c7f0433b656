package infer

import (
	"math"
	"strings"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
)

// scaled is a size times a factor, rounded down.
func (c *Call) scaled(n sym.Expr, f float64) sym.Expr {
	if f == math.Trunc(f) {
		return sym.Mul(n, sym.Const(int64(f)))
	}
	if k, ok := n.IsConst(); ok {
		return sym.Const(int64(float64(k) * f))
	}
	return c.simp(sym.Trunc(sym.Mul(sym.ToFloat(n), sym.ConstFloat(f))))
}

func inferUpsample(c *Call) ([]ir.Type, error) {
	x := c.x()
	n := c.dimsOf()
	rank("input", x, n+2)
	shape := append([]sym.Expr(nil), x.Shape[:2]...)
	size, sized := c.optExprs("output_size")
	switch {
	case sized:
		if len(size) != n {
			failf("output_size has %d elements, %d are needed", len(size), n)
		}
		shape = append(shape, size...)
	case c.has("scale_factors") && !c.arg("scale_factors").IsNone():
		fs := c.arg("scale_factors").List()
		if len(fs) != n {
			failf("scale_factors has %d elements, %d are needed", len(fs), n)
		}
		for i, a := range fs {
			f, ok := a.Float()
			if !ok || f <= 0 {
				failf("scale_factors[%d] has to be a positive constant", i)
			}
			shape = append(shape, c.scaled(x.Shape[2+i], f))
		}
	default:
		failf("one of output_size and scale_factors has to be given")
	}
	for i, e := range shape[2:] {
		if c.never(sym.Gt(e, sym.Const(0))) {
			failf("output size %s of dimension %d", e, i)
		}
	}
	if n >= 2 {
		return one(c.keepsFormat(x, shape))
	}
	if strings.Contains(c.Op.Info().Schema.Base, "nearest") && x.Strides != nil && c.has("scale_factors") {
		// Torch's form with scales takes the operator apart: the nearest element is indexing: what is not indexed keeps its order.
		st := x.Strides
		return one(dense(x.DType, shape, c.strideOrder(shape, [][]sym.Expr{{st[0], st[1], {}}, {{}, {}, sym.Const(1)}})))
	}
	return one(ir.TensorType(x.DType, shape...))
}

func inferGridSampler(c *Call) ([]ir.Type, error) {
	x, g := c.x(), c.tensor("grid")
	rank("input", x, 4, 5)
	if g.Rank() != x.Rank() {
		failf("grid has %d dimensions, input %d", g.Rank(), x.Rank())
	}
	n := x.Rank() - 2
	c.same("the batch sizes of input and grid", x.Shape[0], g.Shape[0])
	c.same("the last size of grid", g.Shape[n+1], sym.Const(int64(n)))
	shape := append(append([]sym.Expr(nil), x.Shape[:2]...), g.Shape[1:n+1]...)
	return one(ir.TensorType(x.DType, shape...))
}

func inferAffineGrid(c *Call) ([]ir.Type, error) {
	t := c.tensor("theta")
	rank("theta", t, 3)
	size := c.exprs("size")
	if len(size) != 4 && len(size) != 5 {
		failf("size has %d elements, 4 or 5 are needed", len(size))
	}
	shape := append(append([]sym.Expr{size[0]}, size[2:]...), sym.Const(int64(len(size)-2)))
	return one(ir.TensorType(t.DType, shape...))
}
