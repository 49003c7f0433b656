package infer

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// attends checks query, key and value with sequence and features last, and gives the output's shape.
func (c *Call) attends() (q, k, v ir.Type, shape []sym.Expr) {
	q, k, v = c.tensor("query"), c.tensor("key"), c.tensor("value")
	sameDType("query", q, "key", k)
	sameDType("query", q, "value", v)
	n := q.Rank()
	if n < 2 || k.Rank() < 2 || v.Rank() < 2 {
		failf("query, key and value need two dimensions, they are %s, %s and %s", shapeString(q.Shape), shapeString(k.Shape), shapeString(v.Shape))
	}
	c.same("the feature sizes of query and key", q.Shape[n-1], k.Shape[k.Rank()-1])
	c.same("the lengths of key and value", k.Shape[k.Rank()-2], v.Shape[v.Rank()-2])
	if c.bool("is_causal") && !c.arg("attn_mask").IsNone() {
		failf("attn_mask and is_causal exclude each other")
	}
	if k.Numel().IsConstValue(0) || v.Numel().IsConstValue(0) {
		// Attention over nothing is zero, whatever the other sizes are.
		return q, k, v, append(append([]sym.Expr(nil), q.Shape[:n-1]...), v.Shape[v.Rank()-1])
	}
	ql, kl, vl := q.Shape[:n-2], k.Shape[:k.Rank()-2], v.Shape[:v.Rank()-2]
	if c.has("enable_gqa") && c.bool("enable_gqa") && len(ql) > 0 && len(kl) == len(ql) && len(vl) == len(ql) {
		h := len(ql) - 1
		c.multiple(ql[h], kl[h], "key")
		c.multiple(ql[h], vl[h], "value")
		kl, vl = append(append([]sym.Expr(nil), kl[:h]...), ql[h]), append(append([]sym.Expr(nil), vl[:h]...), ql[h])
	}
	lead := c.broadcast(ql, kl, vl)
	shape = append(append([]sym.Expr(nil), lead...), q.Shape[n-2], v.Shape[v.Rank()-1])
	if m, ok := c.optTensor("attn_mask"); ok {
		if m.DType != ops.Bool && m.DType != q.DType && m.DType != ops.Float32 {
			failf("attn_mask is %s, bool or %s is needed", m.DType, q.DType)
		}
		c.broadcast(append(append([]sym.Expr(nil), lead...), q.Shape[n-2], k.Shape[k.Rank()-2]), m.Shape)
	}
	return q, k, v, shape
}

func (c *Call) multiple(q, k sym.Expr, what string) {
	if kk, ok := k.IsConst(); ok && kk > 0 {
		c.divides("the number of query heads, by those of "+what+",", q, kk)
	}
}

// inferSdpa: torch's flash attention would keep the query's layout, its plain kernel gives a contiguous result; which one an
// export met is not recorded, and what takes the operator apart or runs it gives the latter.
func inferSdpa(c *Call) ([]ir.Type, error) {
	q, _, _, shape := c.attends()
	return one(ir.TensorType(q.DType, shape...))
}

// likeQuery is the query's layout with the output's features.
func (c *Call) likeQuery(q ir.Type, shape []sym.Expr) ir.Type {
	return c.preserved(q.DType, ir.Type{DType: q.DType, Shape: shape, Strides: q.Strides})
}

func inferSdpaMath(c *Call) ([]ir.Type, error) {
	q, k, _, shape := c.attends()
	n := len(shape)
	w := append(append([]sym.Expr(nil), shape[:n-1]...), k.Shape[k.Rank()-2])
	return []ir.Type{ir.TensorType(q.DType, shape...), ir.TensorType(q.DType, w...)}, nil
}

// lse is the type of the log-sum-exp of flash attention.
func (c *Call) lse(q ir.Type) ir.Type {
	return dense(ops.Float32, []sym.Expr{q.Shape[0], q.Shape[1], q.Shape[2]}, []int{0, 2, 1})
}

func inferSdpaFlashCpu(c *Call) ([]ir.Type, error) {
	q, _, _, shape := c.attends()
	rank("query", q, 4)
	return []ir.Type{c.likeQuery(q, shape), c.lse(q)}, nil
}

func inferSdpaFused(c *Call) ([]ir.Type, error) {
	q, k, _, shape := c.attends()
	rank("query", q, 4)
	n := ir.IntType
	return []ir.Type{
		c.likeQuery(q, shape), ir.TensorType(ops.Float32, q.Shape[:3]...), ir.TensorType(ops.Int32, sym.Add(q.Shape[0], sym.Const(1))),
		ir.TensorType(ops.Int32, sym.Add(q.Shape[0], sym.Const(1))), n(q.Shape[2]), n(k.Shape[2]),
		ir.TensorType(ops.Int64), ir.TensorType(ops.Int64), ir.TensorType(ops.Float32),
	}, nil
}

func inferNativeMha(c *Call) ([]ir.Type, error) {
	q, k := c.tensor("query"), c.tensor("key")
	rank("query", q, 3)
	rank("key", k, 3)
	out := ir.TensorType(q.DType, q.Shape...)
	if !c.bool("need_weights") {
		return []ir.Type{out, ir.ScalarType(ir.KindNone)}, nil
	}
	w := []sym.Expr{q.Shape[0], c.expr("num_head"), q.Shape[1], k.Shape[1]}
	if c.bool("average_attn_weights") {
		w = []sym.Expr{q.Shape[0], q.Shape[1], k.Shape[1]}
	}
	return []ir.Type{out, ir.TensorType(q.DType, w...)}, nil
}

func inferTransformerEncoderLayer(c *Call) ([]ir.Type, error) {
	x := c.tensor("src")
	rank("src", x, 3)
	return one(ir.TensorType(x.DType, x.Shape...))
}

func inferTransformBiasRescaleQkv(c *Call) ([]ir.Type, error) {
	x := c.tensor("qkv")
	rank("qkv", x, 3)
	h := c.int("num_heads")
	d := c.divides("the packed features", x.Shape[2], 3*h)
	t := ir.TensorType(x.DType, x.Shape[0], sym.Const(h), x.Shape[1], d)
	return []ir.Type{t, t, t}, nil
}
