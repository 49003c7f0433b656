package infer

import "github.com/lathe-ml/lathe/ir"

// inferBinary is the rule of element-wise operators of two operands.
func inferBinary(c *Call) ([]ir.Type, error) {
	a, err := c.T(0)
	if err != nil {
		return nil, err
	}
	return []ir.Type{ir.TensorType(a.DType, a.Shape...)}, nil
}
