package infer

import (
	"strings"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// poolSize is the number of places of a pooling window.
func (c *Call) poolSize(n, k, stride, pad, dil sym.Expr, ceil bool) sym.Expr {
	if c.never(sym.Gt(stride, sym.Const(0))) {
		failf("stride is %s", stride)
	}
	if c.never(sym.Le(sym.Mul(pad, sym.Const(2)), k)) {
		failf("padding %s is more than half of the kernel's %s", pad, k)
	}
	span := sym.Add(sym.Mul(dil, sym.Sub(k, sym.Const(1))), sym.Const(1))
	room := sym.Sub(sym.Add(n, sym.Mul(pad, sym.Const(2))), span)
	var out sym.Expr
	if ceil {
		out = sym.Add(sym.FloorDiv(sym.Add(room, sym.Sub(stride, sym.Const(1))), stride), sym.Const(1))
		// The last window has to start inside the input or its left padding.
		if c.holds(sym.Ge(sym.Mul(sym.Sub(out, sym.Const(1)), stride), sym.Add(n, pad))) {
			out = sym.Sub(out, sym.Const(1))
		}
	} else {
		out = sym.Add(sym.FloorDiv(room, stride), sym.Const(1))
	}
	out = c.simp(out)
	if c.never(sym.Ge(out, sym.Const(1))) {
		failf("a window of %s elements does not fit the padded input of %s", span, sym.Add(n, sym.Mul(pad, sym.Const(2))))
	}
	return out
}

// pooled is the shape after pooling over the last dimensions.
func (c *Call) pooled(n int, dilated bool) ir.Type {
	x := c.x()
	rank("self", x, n+1, n+2)
	k := c.exprsN("kernel_size", n)
	st := k
	if a := c.arg("stride"); !a.IsNone() && !(a.Kind() == ir.ArgList && len(a.List()) == 0) {
		st = c.exprsN("stride", n)
	}
	pad := c.exprsN("padding", n)
	dil := make([]sym.Expr, n)
	for i := range dil {
		dil[i] = sym.Const(1)
	}
	if dilated {
		dil = c.exprsN("dilation", n)
	}
	shape := append([]sym.Expr(nil), x.Shape...)
	for i := range n {
		d := x.Rank() - n + i
		shape[d] = c.poolSize(x.Shape[d], k[i], st[i], pad[i], dil[i], c.bool("ceil_mode"))
	}
	if n == 2 && x.Rank() == 4 || n == 3 && dilated && x.Rank() == 5 {
		return c.keepsFormat(x, shape)
	}
	return ir.TensorType(x.DType, shape...)
}

// dimsOf is the number of dimensions in an operator's name: avg_pool2d has two.
func (c *Call) dimsOf() int {
	b := c.Op.Info().Schema.Base
	i := strings.IndexByte(b, 'd')
	for ; i > 0; i = i + 1 + strings.IndexByte(b[i+1:], 'd') {
		if k := b[i-1]; k >= '1' && k <= '3' {
			return int(k - '0')
		}
		if strings.IndexByte(b[i+1:], 'd') < 0 {
			break
		}
	}
	failf("the operator's name says nothing of dimensions")
	return 0
}

func inferAvgPool(c *Call) ([]ir.Type, error) {
	if a := c.arg("divisor_override"); !a.IsNone() && c.is(c.expr("divisor_override"), 0) {
		failf("divisor_override is zero")
	}
	return one(c.pooled(c.dimsOf(), false))
}

func inferMaxPool(c *Call) ([]ir.Type, error) { return one(c.pooled(c.dimsOf(), true)) }

func inferMaxPoolIndices(c *Call) ([]ir.Type, error) {
	t := c.pooled(c.dimsOf(), true)
	i := t
	i.DType = ops.Int64
	return []ir.Type{t, i}, nil
}

func (c *Call) adaptive() ir.Type {
	x := c.x()
	n := c.dimsOf()
	rank("self", x, n+1, n+2)
	shape := append([]sym.Expr(nil), x.Shape[:x.Rank()-n]...)
	for i, e := range c.exprsN("output_size", n) {
		if c.never(sym.Ge(e, sym.Const(0))) {
			failf("output_size[%d] is %s", i, e)
		}
		shape = append(shape, e)
	}
	if n == 2 && x.Rank() == n+2 {
		return c.keepsFormat(x, shape)
	}
	return ir.TensorType(x.DType, shape...)
}

func inferAdaptiveAvgPool(c *Call) ([]ir.Type, error) { return one(c.adaptive()) }

func inferAdaptiveMaxPool(c *Call) ([]ir.Type, error) {
	t := c.adaptive()
	i := t
	i.DType = ops.Int64
	return []ir.Type{t, i}, nil
}

func inferFractionalMaxPool(c *Call) ([]ir.Type, error) {
	x := c.x()
	rank("self", x, 3, 4)
	shape := append(append([]sym.Expr(nil), x.Shape[:x.Rank()-2]...), c.exprsN("output_size", 2)...)
	return []ir.Type{ir.TensorType(x.DType, shape...), ir.TensorType(ops.Int64, shape...)}, nil
}

func inferMaxUnpool(c *Call) ([]ir.Type, error) {
	x, i := c.x(), c.tensor("indices")
	n := c.dimsOf()
	rank("self", x, n+1, n+2)
	if i.DType != ops.Int64 {
		failf("indices is %s, int64 is needed", i.DType)
	}
	shape := append(append([]sym.Expr(nil), x.Shape[:x.Rank()-n]...), c.exprsN("output_size", n)...)
	return one(ir.TensorType(x.DType, shape...))
}
