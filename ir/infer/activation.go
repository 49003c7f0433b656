package infer

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// inferSilu: silu takes complex numbers too.
func inferSilu(c *Call) ([]ir.Type, error) {
	x := c.x()
	floating("self", x.DType)
	return c.map1(x.DType, x)
}

func inferRelu(c *Call) ([]ir.Type, error) {
	x := c.x()
	noBool(x.DType)
	noComplex(x.DType)
	return c.map1(x.DType, x)
}

func inferPrelu(c *Call) ([]ir.Type, error) {
	x, w := c.x(), c.tensor("weight")
	sameDType("self", x, "weight", w)
	floating("self", x.DType)
	if w.Rank() > 1 {
		failf("weight has %d dimensions, at most one is allowed", w.Rank())
	}
	if n := w.Numel(); !c.is(n, 1) {
		ch := sym.Const(1)
		if x.Rank() > 1 {
			ch = x.Shape[1]
		}
		c.same("the size of weight and the number of channels", n, ch)
	}
	return c.map1(x.DType, x)
}

func inferPreluKernel(c *Call) ([]ir.Type, error) {
	x, w := c.x(), c.tensor("weight")
	sameDType("self", x, "weight", w)
	return c.mapN(x.DType, operand{dtype: x.DType, t: x}, operand{dtype: w.DType, t: w})
}

func inferLogSigmoidForward(c *Call) ([]ir.Type, error) {
	x := c.x()
	floating("self", x.DType)
	t := c.elementwise(x.DType, x.Shape, operand{t: x})
	return []ir.Type{t, t}, nil
}

func inferGlu(c *Call) ([]ir.Type, error) {
	x := c.x()
	if x.Rank() == 0 {
		failf("self has no dimensions")
	}
	d := c.dim("dim", x.Rank())
	half := c.divides("the size of dimension dim", x.Shape[d], 2)
	shape := append([]sym.Expr(nil), x.Shape...)
	shape[d] = half
	// Both halves are slices; the result is laid out as an element-wise operator over them would be.
	part := ir.Type{DType: x.DType, Shape: shape, Strides: strides(x)}
	if part.NormStrides() == nil {
		part.Strides = nil
	}
	o := operand{t: part}
	return one(c.elementwise(x.DType, shape, o, o))
}

func inferSoftmax(c *Call) ([]ir.Type, error) {
	x := c.x()
	c.dim("dim", x.Rank())
	d := c.dtypeOr("dtype", x.DType)
	floating("the result's type", d)
	return one(c.softmaxLayout(d, x))
}

// softmaxLayout: the result lies in torch's suggested format of the input.
func (c *Call) softmaxLayout(d ops.DType, x ir.Type) ir.Type {
	t := c.keepsFormat(x, x.Shape)
	t.DType = d
	return t
}

func inferUnderSoftmax(c *Call) ([]ir.Type, error) {
	x := c.x()
	c.dim("dim", x.Rank())
	floating("self", x.DType)
	d := x.DType
	if c.bool("half_to_float") {
		if d != ops.Float16 {
			failf("half_to_float needs float16, self is %s", d)
		}
		d = ops.Float32
	}
	return one(c.softmaxLayout(d, x))
}

func inferMaskedSoftmax(c *Call) ([]ir.Type, error) {
	x := c.x()
	if m := c.tensor("mask"); m.DType != ops.Bool {
		failf("mask is %s, bool is needed", m.DType)
	}
	return one(ir.TensorType(x.DType, x.Shape...))
}

// inferDropout: without training the input itself.
func inferDropout(c *Call) ([]ir.Type, error) {
	x := c.x()
	p, ok := c.arg("p").Float()
	if ok && (p < 0 || p > 1) {
		failf("p is %v, a probability is needed", p)
	}
	if !c.bool("train") || ok && p == 0 {
		return one(x)
	}
	return c.map1(x.DType, x)
}

func inferNativeDropout(c *Call) ([]ir.Type, error) {
	x := c.x()
	t := c.elementwise(x.DType, x.Shape, operand{t: x})
	m := t
	m.DType = ops.Bool
	return []ir.Type{t, m}, nil
}
