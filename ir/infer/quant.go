package infer

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// quantized is x as an integer type, laid out as x is.
func (c *Call) quantized(to string) ([]ir.Type, error) {
	x := c.x()
	if !x.DType.IsFloat() {
		failf("input is %s, a floating point type is needed", x.DType)
	}
	return c.map1(c.dtypeOr(to, x.DType), x)
}

// dequantized is x as a floating type; the integers have to be of the type that the arguments say.
func (c *Call) dequantized(from, to string, def ops.DType) ([]ir.Type, error) {
	x := c.x()
	if d := c.dtypeOr(from, x.DType); d != x.DType {
		failf("input is %s, argument %s says %s", x.DType, from, d)
	}
	return c.map1(c.dtypeOr(to, def), x)
}

func inferQuantizePerTensor(c *Call) ([]ir.Type, error) { return c.quantized("dtype") }

func inferDequantizePerTensor(c *Call) ([]ir.Type, error) {
	return c.dequantized("dtype", "out_dtype", ops.Float32)
}

// perAxis checks the vector of scales for an axis.
func (c *Call) perAxis() {
	x, s := c.x(), c.tensor("scales")
	d := c.dim("axis", x.Rank())
	rank("scales", s, 1)
	if x.Rank() > 0 {
		c.same("the number of scales and the size of axis", s.Shape[0], x.Shape[d])
	}
}

func inferQuantizePerChannel(c *Call) ([]ir.Type, error) {
	c.perAxis()
	return c.quantized("dtype")
}

func inferDequantizePerChannel(c *Call) ([]ir.Type, error) {
	c.perAxis()
	return c.dequantized("dtype", "out_dtype", ops.Float32)
}

func (c *Call) perGroup() {
	x := c.x()
	if x.Rank() == 0 {
		failf("input has no dimensions")
	}
	g := c.int("group_size")
	c.divides("the last size of input", x.Shape[x.Rank()-1], g)
}

func inferQuantizePerGroup(c *Call) ([]ir.Type, error) {
	c.perGroup()
	x := c.x()
	return one(ir.TensorType(c.dtypeOr("dtype", x.DType), x.Shape...))
}

func inferDequantizePerGroup(c *Call) ([]ir.Type, error) {
	c.perGroup()
	x := c.x()
	return one(ir.TensorType(c.dtypeOr("output_dtype", ops.Float32), x.Shape...))
}

func inferQuantizePerToken(c *Call) ([]ir.Type, error) { return c.quantized("dtype") }

func inferDequantizePerToken(c *Call) ([]ir.Type, error) {
	return c.map1(c.dtypeOr("output_dtype", ops.Float32), c.x())
}

// inferChooseQparams: a scale and a zero point, each a vector of one.
func inferChooseQparams(c *Call) ([]ir.Type, error) {
	floating("input", c.x().DType)
	return []ir.Type{ir.StaticType(ops.Float64, 1), ir.StaticType(ops.Int64, 1)}, nil
}

func inferChooseQparamsPerToken(c *Call) ([]ir.Type, error) {
	x := c.x()
	floating("input", x.DType)
	if x.Rank() == 0 {
		failf("input has no dimensions")
	}
	shape := append(append([]sym.Expr(nil), x.Shape[:x.Rank()-1]...), sym.Const(1))
	return []ir.Type{ir.TensorType(ops.Float64, shape...), ir.TensorType(ops.Int64, shape...)}, nil
}

func inferConvertElementType(c *Call) ([]ir.Type, error) {
	x := c.x()
	return one(c.preserved(c.dtypeOr("dtype", x.DType), x))
}

func inferQuantizedAdd(c *Call) ([]ir.Type, error) {
	a, b := c.operand("a"), c.operand("b")
	sameDType("a", a.t, "b", b.t)
	return c.mapN(a.dtype, a, b)
}

func inferQuantizedAddScalar(c *Call) ([]ir.Type, error) {
	x := c.x()
	return c.map1(c.dtypeOr("out_dtype", x.DType), x)
}

func inferMixedMm(c *Call) ([]ir.Type, error) {
	x, w := c.x(), c.tensor("weight")
	rank("input", x, 2)
	rank("weight", w, 2)
	c.inner(x, w, x.Shape[1], w.Shape[0])
	return one(ir.TensorType(x.DType, x.Shape[0], w.Shape[1]))
}

func inferMixedLinear(c *Call) ([]ir.Type, error) {
	x, w := c.x(), c.tensor("weight")
	rank("weight", w, 2)
	if x.Rank() == 0 {
		failf("input has no dimensions")
	}
	n := x.Rank() - 1
	c.inner(x, w, x.Shape[n], w.Shape[1])
	return one(ir.TensorType(c.dtypeOr("dtype", x.DType), append(append([]sym.Expr(nil), x.Shape[:n]...), w.Shape[0])...))
}

// rows are the rows of a packed weight at indices, with per values in a byte.
func (c *Call) rows(per int64) ([]ir.Type, error) {
	w, i := c.tensor("weight"), c.tensor("indices")
	rank("weight", w, 2)
	indexType("indices", i.DType)
	d := c.tensor("weight_scales").DType
	if c.has("dtype") {
		d = c.dtypeOr("dtype", d)
	}
	return one(ir.TensorType(d, append(append([]sym.Expr(nil), i.Shape...), sym.Mul(w.Shape[1], sym.Const(per)))...))
}

func inferEmbeddingByte(c *Call) ([]ir.Type, error) { return c.rows(1) }

func inferEmbedding4bit(c *Call) ([]ir.Type, error) { return c.rows(2) }

func inferEmbedding2bit(c *Call) ([]ir.Type, error) { return c.rows(4) }

// blocks is the shape of what there is one of for each block: whole dimensions go away or become one.
func (c *Call) blocks(x ir.Type, keep bool) []sym.Expr {
	bs := c.exprs("block_size")
	if len(bs) != x.Rank() {
		failf("block_size has %d elements, input %d dimensions", len(bs), x.Rank())
	}
	var shape []sym.Expr
	for i, b := range bs {
		n := x.Shape[i]
		switch {
		case c.is(b, 1):
			shape = append(shape, n)
		case c.eq(b, n):
			if keep {
				shape = append(shape, sym.Const(1))
			}
		default:
			if c.never(sym.Eq(sym.Mod(n, b), sym.Const(0))) {
				failf("dimension %d of size %s is no multiple of the block size %s", i, n, b)
			}
			shape = append(shape, c.simp(sym.FloorDiv(n, b)))
		}
	}
	return shape
}

func inferChooseQparamsAffine(c *Call) ([]ir.Type, error) {
	x := c.x()
	switch m := c.str("mapping_type"); m {
	case "SYMMETRIC", "SYMMETRIC_NO_CLIPPING_ERR", "ASYMMETRIC":
	default:
		failf("mapping_type is %q; SYMMETRIC, SYMMETRIC_NO_CLIPPING_ERR and ASYMMETRIC are known", m)
	}
	shape := c.blocks(x, c.bool("keepdim"))
	return []ir.Type{
		ir.TensorType(c.dtypeOr("scale_dtype", x.DType), shape...), ir.TensorType(c.dtypeOr("zero_point_dtype", ops.Int32), shape...),
	}, nil
}

func inferQuantizeAffine(c *Call) ([]ir.Type, error) {
	x := c.x()
	c.blocks(x, true)
	return one(ir.TensorType(c.dtypeOr("output_dtype", x.DType), x.Shape...))
}

func inferDequantizeAffine(c *Call) ([]ir.Type, error) {
	x := c.x()
	c.blocks(x, true)
	return one(ir.TensorType(c.dtypeOr("output_dtype", ops.Float32), x.Shape...))
}

func inferChooseScaleFloat8(c *Call) ([]ir.Type, error) {
	return one(ir.TensorType(c.dtypeOr("scale_dtype", ops.Float32), c.blocks(c.x(), true)...))
}

func inferQuantizeFloat8(c *Call) ([]ir.Type, error) {
	x := c.x()
	return one(ir.TensorType(c.dtypeOr("float8_dtype", ops.Float8E4M3FN), x.Shape...))
}

func inferDequantizeFloat8(c *Call) ([]ir.Type, error) {
	x := c.x()
	return one(ir.TensorType(c.dtypeOr("output_dtype", ops.Float32), x.Shape...))
}

// unpacked is a matrix whose rows hold per values an element.
func (c *Call) unpacked(x ir.Type, per int64) ([]ir.Type, error) {
	rank("the packed weight", x, 2)
	return one(ir.TensorType(c.dtypeOr("output_dtype", ops.Float32), x.Shape[0], sym.Mul(x.Shape[1], sym.Const(per))))
}

// inferDequantizeNvfp4: two values a byte.
func inferDequantizeNvfp4(c *Call) ([]ir.Type, error) {
	x := c.x()
	return c.unpacked(x, 2*x.DType.Size())
}

func inferDequantizeMx(c *Call) ([]ir.Type, error) { return c.unpacked(c.x(), 1) }

func inferDequantizeInt4(c *Call) ([]ir.Type, error) { return c.unpacked(c.x(), 2) }

// ggufBlock is the bytes of a block of 256 values.
var ggufBlock = map[string]int64{"q4_k": 144, "q5_k": 176, "q6_k": 210}

func inferDequantizeGguf(c *Call) ([]ir.Type, error) {
	x := c.x()
	rank("weight", x, 2)
	b, ok := ggufBlock[c.str("ggml_type")]
	if !ok {
		failf("ggml_type is %q; q4_k, q5_k and q6_k are known", c.str("ggml_type"))
	}
	n := c.divides("the bytes of a row", x.Shape[1], b)
	return one(ir.TensorType(c.dtypeOr("output_dtype", ops.BFloat16), x.Shape[0], sym.Mul(n, sym.Const(256))))
}

func inferIntScaledMm(c *Call) ([]ir.Type, error) {
	a, b, s := c.x(), c.tensor("b"), c.tensor("scales1")
	rank("a", a, 2)
	rank("b", b, 2)
	c.inner(a, b, a.Shape[1], b.Shape[0])
	return one(ir.TensorType(s.DType, a.Shape[0], b.Shape[1]))
}
