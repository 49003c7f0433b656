package infer

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// channelParam checks a vector with an element for each channel.
func (c *Call) channelParam(name string, n sym.Expr) {
	if t, ok := c.optTensor(name); ok {
		rank(name, t, 1)
		c.same("the size of "+name+" and the number of channels", t.Shape[0], n)
	}
}

// statType is the type that statistics of d are kept in.
func statType(d ops.DType) ops.DType {
	if d == ops.Float16 || d == ops.BFloat16 {
		return ops.Float32
	}
	return d
}

func (c *Call) channels(x ir.Type) sym.Expr {
	if x.Rank() < 2 {
		failf("input has %d dimensions, two are needed", x.Rank())
	}
	floating("input", x.DType)
	n := x.Shape[1]
	for _, p := range []string{"weight", "bias", "running_mean", "running_var"} {
		if c.has(p) {
			c.channelParam(p, n)
		}
	}
	return n
}

func inferBatchNorm(c *Call) ([]ir.Type, error) {
	x := c.tensor("input")
	if c.empty(x) {
		return one(c.preserved(x.DType, x))
	}
	c.channels(x)
	return one(c.normLayout(x))
}

// normLayout: normalised images keep their layout.
func (c *Call) normLayout(x ir.Type) ir.Type { return c.keepsFormat(x, x.Shape) }

// inferNativeBatchNorm: with running statistics in use nothing is saved.
func inferNativeBatchNorm(c *Call) ([]ir.Type, error) {
	x := c.tensor("input")
	n := c.channels(x)
	d := x.DType
	if w, ok := c.optTensor("weight"); ok {
		d = promote(d, w.DType)
	} else if m, ok := c.optTensor("running_mean"); ok {
		d = promote(d, m.DType)
	}
	stat := ir.TensorType(d, n)
	if c.has("training") && !c.bool("training") || c.Op == ops.AtenUnderNativeBatchNormLegitNoTrainingDefault {
		stat = ir.TensorType(d, sym.Const(0))
	}
	return []ir.Type{c.normLayout(x), stat, stat}, nil
}

func inferNativeBatchNormFunctional(c *Call) ([]ir.Type, error) {
	ts, err := inferNativeBatchNorm(c)
	return append(ts, c.tensor("running_mean"), c.tensor("running_var")), err
}

func inferBatchNormNoUpdate(c *Call) ([]ir.Type, error) {
	ts, err := inferNativeBatchNorm(c)
	return append(ts, ir.TensorType(ops.Uint8, sym.Const(0))), err
}

// normalized checks that the last sizes are normalized_shape and gives their number.
func (c *Call) normalized(x ir.Type) int {
	s := c.exprs("normalized_shape")
	if len(s) == 0 || len(s) > x.Rank() {
		failf("normalized_shape %s does not fit input %s", shapeString(s), shapeString(x.Shape))
	}
	off := x.Rank() - len(s)
	for i, e := range s {
		c.same("normalized_shape "+shapeString(s)+" does not fit input "+shapeString(x.Shape), e, x.Shape[off+i])
	}
	for _, p := range []string{"weight", "bias"} {
		if !c.has(p) {
			continue
		}
		if t, ok := c.optTensor(p); ok {
			if t.Rank() != len(s) {
				failf("%s has shape %s, %s is needed", p, shapeString(t.Shape), shapeString(s))
			}
			for i, e := range s {
				c.same("the shape of "+p+" and normalized_shape", t.Shape[i], e)
			}
		}
	}
	return len(s)
}

func inferLayerNorm(c *Call) ([]ir.Type, error) {
	x := c.tensor("input")
	floating("input", x.DType)
	c.normalized(x)
	return one(ir.TensorType(x.DType, x.Shape...))
}

func inferNativeLayerNorm(c *Call) ([]ir.Type, error) {
	x := c.tensor("input")
	floating("input", x.DType)
	n := c.normalized(x)
	shape := append([]sym.Expr(nil), x.Shape[:x.Rank()-n]...)
	for range n {
		shape = append(shape, sym.Const(1))
	}
	d := x.DType
	if w, ok := c.optTensor("weight"); ok && d != w.DType {
		d = promote(d, w.DType)
	}
	st := ir.TensorType(d, shape...)
	return []ir.Type{ir.TensorType(x.DType, x.Shape...), st, st}, nil
}

func inferGroupNorm(c *Call) ([]ir.Type, error) {
	x := c.tensor("input")
	n := c.channels(x)
	c.divides("the number of channels", n, c.int("num_groups"))
	return one(ir.TensorType(x.DType, x.Shape...))
}

func inferNativeGroupNorm(c *Call) ([]ir.Type, error) {
	x := c.tensor("input")
	floating("input", x.DType)
	n, g := c.expr("N"), c.expr("group")
	c.channelParam("weight", c.expr("C"))
	c.channelParam("bias", c.expr("C"))
	c.same("input and N*C*HxW elements", x.Numel(), sym.Prod(n, c.expr("C"), c.expr("HxW")))
	st := ir.TensorType(x.DType, n, g)
	return []ir.Type{c.preserved(x.DType, x), st, st}, nil
}

func inferInstanceNorm(c *Call) ([]ir.Type, error) {
	x := c.tensor("input")
	c.channels(x)
	return one(c.normLayout(x))
}

func inferRmsNorm(c *Call) ([]ir.Type, error) {
	x := c.tensor("input")
	floating("input", x.DType)
	c.normalized(x)
	xs := []operand{{dtype: x.DType, t: x}}
	if w, ok := c.optTensor("weight"); ok {
		xs = append(xs, operand{dtype: w.DType, t: w})
	}
	return one(ir.TensorType(resultType(xs...), x.Shape...))
}

func inferFusedRmsNorm(c *Call) ([]ir.Type, error) {
	x := c.tensor("input")
	floating("input", x.DType)
	n := c.normalized(x)
	shape := append([]sym.Expr(nil), x.Shape[:x.Rank()-n]...)
	for range n {
		shape = append(shape, sym.Const(1))
	}
	return []ir.Type{ir.TensorType(x.DType, x.Shape...), ir.TensorType(statType(x.DType), shape...)}, nil
}

func inferWeightNorm(c *Call) ([]ir.Type, error) {
	v, g := c.tensor("v"), c.tensor("g")
	sameDType("v", v, "g", g)
	return one(c.elementwise(v.DType, v.Shape, operand{t: v}, operand{t: g}))
}

func inferWeightNormInterface(c *Call) ([]ir.Type, error) {
	v, g := c.tensor("v"), c.tensor("g")
	d := g.DType
	if d == ops.BFloat16 {
		d = ops.Float32
	}
	return []ir.Type{c.preserved(v.DType, v), c.preserved(d, g)}, nil
}

func inferNormExceptDim(c *Call) ([]ir.Type, error) {
	v := c.tensor("v")
	if v.Rank() == 0 {
		failf("v has no dimensions")
	}
	d := c.int("dim")
	if d == -1 {
		return one(ir.TensorType(v.DType))
	}
	shape := make([]sym.Expr, v.Rank())
	for i := range shape {
		shape[i] = sym.Const(1)
	}
	k := wrapDim("dim", d, v.Rank())
	shape[k] = v.Shape[k]
	return one(ir.TensorType(v.DType, shape...))
}
