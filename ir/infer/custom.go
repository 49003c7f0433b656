package infer

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// updates checks that value fits into cache but for one dimension, which may be shorter.
func (c *Call) updates(cache, value ir.Type, along int) {
	sameDType("the cache", cache, "the new values", value)
	rank("the cache", cache, 4)
	rank("the new values", value, 4)
	for i := range cache.Shape {
		if i != along {
			c.same("the sizes of the cache and the new values", cache.Shape[i], value.Shape[i])
		} else if c.never(sym.Le(value.Shape[i], cache.Shape[i])) {
			failf("%s new entries do not fit a cache of %s", value.Shape[i], cache.Shape[i])
		}
	}
}

// inferCacheUpdate: the result has no meaning of its own.
func inferCacheUpdate(c *Call) ([]ir.Type, error) {
	v := c.tensor("new_values")
	c.updates(c.tensor("cache"), v, 2)
	return one(ir.StaticType(v.DType, 1))
}

func inferLlamaUpdateCache(c *Call) ([]ir.Type, error) {
	v := c.tensor("value")
	c.updates(c.tensor("cache"), v, 1)
	return one(ir.StaticType(v.DType, 1))
}

func inferMlxSdpa(c *Call) ([]ir.Type, error) {
	q, k, v := c.tensor("query"), c.tensor("key"), c.tensor("value")
	rank("query", q, 4)
	rank("key", k, 4)
	rank("value", v, 4)
	c.same("the feature sizes of query and key", q.Shape[3], k.Shape[3])
	c.multiple(q.Shape[1], k.Shape[1], "key")
	return one(ir.TensorType(q.DType, q.Shape[0], q.Shape[1], q.Shape[2], v.Shape[3]))
}

func inferMlxRope(c *Call) ([]ir.Type, error) {
	x := c.tensor("x")
	rank("x", x, 4)
	n := c.expr("dims")
	if c.never(sym.Le(n, x.Shape[3])) {
		failf("dims is %s, x has %s features", n, x.Shape[3])
	}
	return one(ir.TensorType(x.DType, x.Shape...))
}

func inferRope(c *Call) ([]ir.Type, error) {
	x, f := c.tensor("x"), c.tensor("inv_freq")
	rank("x", x, 4)
	rank("inv_freq", f, 1)
	if c.never(sym.Le(sym.Mul(sym.Const(2), f.Shape[0]), x.Shape[3])) {
		failf("%s frequencies rotate pairs, x has %s features", f.Shape[0], x.Shape[3])
	}
	if starts, ok := c.optTensor("starts"); ok {
		rank("starts", starts, 1)
		if !starts.Shape[0].IsConstValue(1) && c.never(sym.Eq(starts.Shape[0], x.Shape[0])) {
			failf("%s starts for a batch of %s", starts.Shape[0], x.Shape[0])
		}
	}
	return one(ir.TensorType(x.DType, x.Shape...))
}

func (c *Call) gathered(x, w ir.Type, n sym.Expr) ([]ir.Type, error) {
	if x.Rank() < 2 || w.Rank() < 2 {
		failf("both factors need two dimensions, they are %s and %s", shapeString(x.Shape), shapeString(w.Shape))
	}
	batch := w.Shape[:w.Rank()-2]
	if i, ok := c.optTensor("rhs_indices"); ok {
		batch = i.Shape
	}
	return one(ir.TensorType(x.DType, append(append([]sym.Expr(nil), batch...), x.Shape[x.Rank()-2], n)...))
}

func inferMlxGatherMm(c *Call) ([]ir.Type, error) {
	a, b := c.tensor("a"), c.tensor("b")
	if a.Rank() >= 2 && b.Rank() >= 2 {
		c.inner(a, b, a.Shape[a.Rank()-1], b.Shape[b.Rank()-2])
	}
	n := sym.Const(0)
	if b.Rank() > 0 {
		n = b.Shape[b.Rank()-1]
	}
	return c.gathered(a, b, n)
}

func inferMlxGatherQmm(c *Call) ([]ir.Type, error) {
	x, w := c.tensor("x"), c.tensor("w")
	n := sym.Const(0)
	if w.Rank() >= 2 {
		n = w.Shape[w.Rank()-1]
		if c.bool("transpose") {
			n = w.Shape[w.Rank()-2]
		}
	}
	return c.gathered(x, w, n)
}

func inferMlxMoeGather(c *Call) ([]ir.Type, error) {
	x := c.tensor("x")
	rank("x", x, 2)
	n := sym.Mul(x.Shape[0], c.expr("top_k"))
	return []ir.Type{
		ir.TensorType(x.DType, n, sym.Const(1), x.Shape[1]), ir.TensorType(ops.Int32, n), ir.TensorType(ops.Int32),
		ir.TensorType(ops.Int32, n),
	}, nil
}

func inferMlxMoeScatter(c *Call) ([]ir.Type, error) {
	x := c.tensor("down")
	if x.Rank() == 0 {
		failf("down has no dimensions")
	}
	k := c.int("top_k")
	return one(ir.TensorType(x.DType, c.divides("the leading size of down", x.Shape[0], k), sym.Const(k), x.Shape[x.Rank()-1]))
}

func inferMlxSample(c *Call) ([]ir.Type, error) {
	x := c.tensor("logits")
	if x.Rank() == 0 {
		failf("logits has no dimensions")
	}
	return one(ir.TensorType(ops.Int64, x.Shape[:x.Rank()-1]...))
}

func inferMlxGatedDeltaRule(c *Call) ([]ir.Type, error) {
	q, v := c.tensor("q"), c.tensor("v")
	rank("q", q, 4)
	rank("v", v, 4)
	return one(ir.TensorType(v.DType, q.Shape[0], q.Shape[1], v.Shape[2], v.Shape[3]))
}

// lastSize is x with another last size.
func lastSize(name string, x ir.Type, f func(sym.Expr) sym.Expr) []sym.Expr {
	if x.Rank() == 0 {
		failf("%s has no dimensions", name)
	}
	shape := append([]sym.Expr(nil), x.Shape...)
	shape[len(shape)-1] = f(shape[len(shape)-1])
	return shape
}

func inferMlxTq4Compress(c *Call) ([]ir.Type, error) {
	x := c.tensor("values")
	b := c.tensor("boundaries")
	rank("boundaries", b, 1)
	c.same("the number of boundaries", b.Shape[0], sym.Const(15))
	return one(ir.TensorType(ops.Uint8, lastSize("values", x, func(n sym.Expr) sym.Expr {
		return c.divides("the last size of values", n, 2)
	})...))
}

func inferMlxTqDequant(c *Call) ([]ir.Type, error) {
	x := c.tensor("packed")
	return one(ir.TensorType(c.tensor("norms").DType, lastSize("packed", x, func(n sym.Expr) sym.Expr {
		return sym.Mul(n, sym.Const(2))
	})...))
}

func inferMlxTqNorm(c *Call) ([]ir.Type, error) {
	x := c.tensor("x")
	return one(ir.TensorType(x.DType, lastSize("x", x, func(sym.Expr) sym.Expr { return sym.Const(1) })...))
}

// inferLlamaSdpa: batch, length, heads, features; the result is like the query.
func inferLlamaSdpa(c *Call) ([]ir.Type, error) {
	q, k := c.tensor("query"), c.tensor("key")
	rank("query", q, 4)
	rank("key", k, 4)
	d := q.DType
	if !d.IsFloat() {
		d = ops.Float32
	}
	return one(c.preserved(d, q))
}

func inferLlamaSdpaCache(c *Call) ([]ir.Type, error) {
	c.updates(c.tensor("key_cache"), c.tensor("key"), 1)
	c.updates(c.tensor("value_cache"), c.tensor("value"), 1)
	q := c.tensor("query")
	return one(c.preserved(q.DType, q))
}

func inferLlamaGatedDeltaRule(c *Call) ([]ir.Type, error) {
	q, v, s := c.tensor("query"), c.tensor("value"), c.tensor("initial_state")
	rank("query", q, 4)
	rank("value", v, 4)
	return []ir.Type{ir.TensorType(q.DType, q.Shape[0], q.Shape[1], q.Shape[2], v.Shape[3]), c.preserved(s.DType, s)}, nil
}

func inferKvcacheAttend(c *Call) ([]ir.Type, error) {
	q, v := c.tensor("q"), c.tensor("v")
	rank("q", q, 4)
	rank("v", v, 4)
	return one(ir.TensorType(c.dtypeOr("out_dtype", q.DType), q.Shape[0], q.Shape[1], q.Shape[2], v.Shape[3]))
}

func inferExecutorchAlias(c *Call) ([]ir.Type, error) {
	return []ir.Type{c.tensor("x"), c.tensor("y")}, nil
}

func inferUpdateCrossAttnCache(c *Call) ([]ir.Type, error) {
	x := c.tensor("cache")
	return one(c.preserved(x.DType, x))
}

func inferTileCrop(c *Call) ([]ir.Type, error) {
	x := c.x()
	rank("input", x, 3)
	k := c.int("tile_size")
	h, w := c.divides("the height", x.Shape[1], k), c.divides("the width", x.Shape[2], k)
	return one(ir.TensorType(x.DType, sym.Mul(h, w), x.Shape[0], sym.Const(k), sym.Const(k)))
}
