package infer

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
)

// recurrent is the output of a recurrent network and the shape of its states.
func (c *Call) recurrent(hidden ir.Type) ir.Type {
	x := c.tensor("input")
	rank("input", x, 3)
	rank("hx", hidden, 3)
	layers := c.int("num_layers")
	dirs := int64(1)
	if c.bool("bidirectional") {
		dirs = 2
	}
	c.same("the leading size of hx and layers times directions", hidden.Shape[0], sym.Const(layers*dirs))
	per := 2
	if c.bool("has_biases") {
		per = 4
	}
	n := int64(len(c.tensors("params")))
	if n != int64(per)*layers*dirs && n != int64(per+1)*layers*dirs {
		failf("params has %d tensors, %d are needed", n, int64(per)*layers*dirs)
	}
	feat := sym.Mul(hidden.Shape[2], sym.Const(dirs))
	t := ir.TensorType(x.DType, x.Shape[0], x.Shape[1], feat)
	if c.bool("batch_first") {
		c.same("the batch sizes of input and hx", x.Shape[0], hidden.Shape[1])
		return dense(x.DType, t.Shape, []int{1, 0, 2})
	}
	c.same("the batch sizes of input and hx", x.Shape[1], hidden.Shape[1])
	return t
}

func inferLstm(c *Call) ([]ir.Type, error) {
	hs := c.tensors("hx")
	if len(hs) != 2 {
		failf("hx has %d tensors, two are needed", len(hs))
	}
	t := c.recurrent(hs[0])
	return []ir.Type{t, ir.TensorType(hs[0].DType, hs[0].Shape...), ir.TensorType(hs[1].DType, hs[1].Shape...)}, nil
}

func inferGru(c *Call) ([]ir.Type, error) {
	h := c.tensor("hx")
	return []ir.Type{c.recurrent(h), ir.TensorType(h.DType, h.Shape...)}, nil
}

func inferLstmCell(c *Call) ([]ir.Type, error) {
	hs := c.tensors("hx")
	if len(hs) != 2 {
		failf("hx has %d tensors, two are needed", len(hs))
	}
	return []ir.Type{ir.TensorType(hs[0].DType, hs[0].Shape...), ir.TensorType(hs[1].DType, hs[1].Shape...)}, nil
}

func inferRnnCell(c *Call) ([]ir.Type, error) {
	h := c.tensor("hx")
	return one(ir.TensorType(h.DType, h.Shape...))
}
