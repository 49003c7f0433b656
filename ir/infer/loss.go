package infer

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
)

// reduction is t, or a number where the losses are averaged or summed.
func (c *Call) reduction(t ir.Type) ([]ir.Type, error) {
	switch r := c.int("reduction"); r {
	case 0:
		return one(t)
	case 1, 2:
		return one(ir.TensorType(t.DType))
	default:
		failf("reduction is %d; 0 (none), 1 (mean) and 2 (sum) are known", r)
	}
	return nil, nil
}

// inferLoss is the rule of losses of two operands that broadcast.
func inferLoss(c *Call) ([]ir.Type, error) {
	a, b := c.pair()
	d := floatOf(resultType(a, b)).ToReal()
	return c.reduction(c.elementwise(d, c.broadcast(a.t.Shape, b.t.Shape), a, b))
}

func inferMarginRankingLoss(c *Call) ([]ir.Type, error) {
	a, b, t := c.operand("input1"), c.operand("input2"), c.operand("target")
	return c.reduction(ir.TensorType(floatOf(resultType(a, b, t)), c.broadcast(a.t.Shape, b.t.Shape, t.t.Shape)...))
}

func inferCosineEmbeddingLoss(c *Call) ([]ir.Type, error) {
	a, t := c.tensor("input1"), c.tensor("target")
	rank("input1", a, 1, 2)
	return c.reduction(ir.TensorType(floatOf(a.DType).ToReal(), t.Shape...))
}

func inferTripletMarginLoss(c *Call) ([]ir.Type, error) {
	a, p, n := c.tensor("anchor"), c.tensor("positive"), c.tensor("negative")
	shape := c.broadcast(a.Shape, p.Shape, n.Shape)
	if len(shape) == 0 {
		failf("anchor has no dimensions")
	}
	return c.reduction(ir.TensorType(floatOf(commonType([]ir.Type{a, p, n})).ToReal(), shape[:len(shape)-1]...))
}

// classes is the shape of the losses of class indices: the input's without the class dimension.
func (c *Call) classes(x, t ir.Type) []sym.Expr {
	if x.Rank() == 0 {
		failf("self has no dimensions")
	}
	d := min(1, x.Rank()-1)
	shape := reduced(x.Shape, []int{d}, false, false)
	// Probabilities have the input's own shape.
	if !t.DType.IsFloat() || !ir.EqualShape(t.Shape, x.Shape) {
		if len(shape) != t.Rank() {
			failf("target has %d dimensions, %d are needed", t.Rank(), len(shape))
		}
		for i := range shape {
			c.same("the sizes of target and self without its classes", shape[i], t.Shape[i])
		}
	}
	if w, ok := c.optTensor("weight"); ok {
		rank("weight", w, 1)
		c.same("the size of weight and the number of classes", w.Shape[0], x.Shape[d])
	}
	return shape
}

func inferCrossEntropy(c *Call) ([]ir.Type, error) {
	x, t := c.x(), c.tensor("target")
	floating("self", x.DType)
	return c.reduction(ir.TensorType(x.DType, c.classes(x, t)...))
}

func inferNllLossForward(c *Call) ([]ir.Type, error) {
	x, t := c.x(), c.tensor("target")
	ts, err := c.reduction(ir.TensorType(x.DType, c.classes(x, t)...))
	return append(ts, ir.TensorType(x.DType)), err
}
