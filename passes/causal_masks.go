package passes

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// CausalMasks finds masks that are computed although the attention knows them.
var CausalMasks = Pass{
	Name: "causal-masks",
	Doc: "Replaces a mask that lets each query see the keys up to its own place, the last query all of them, by attention that is causal, and " +
		"drops it where there is one query alone.",
	Run: func(ctx *Context, g *ir.Graph) error {
		if g.Stage == ops.StageAten {
			return nil
		}
		return each(g, func(n *ir.Node) error {
			if n.Op == ops.AtenScaledDotProductAttentionDefault {
				return causalMask(ctx, n)
			}
			return nil
		})
	},
}

func causalMask(ctx *Context, n *ir.Node) error {
	q, k, v, mask := n.In(0), n.In(1), n.In(2), n.In(3)
	causal, _ := n.ArgNamed("is_causal").Bool()
	if mask == nil || causal || q.Type.Rank() != 4 || k.Type.Rank() != 4 || v.Type.Rank() != 4 || !q.Type.Shape[0].Equal(k.Type.Shape[0]) {
		return nil
	}
	rows, cols := ir.Dim(q, -2), ir.Dim(k, -2)
	if !isCausal(mask, rows, cols, 12) {
		return nil
	}
	b, ok := ctx.Rewrite(n, "causal")
	if !ok {
		return nil
	}
	args := append([]ir.Arg(nil), n.Args()...)
	args[3] = ir.None
	if !rows.IsConstValue(1) {
		if !rows.Equal(cols) {
			// The operator's own causal mask has the first query see the first key alone.
			y := op.MlxCustomSdpaDefault(b, q, k, v, ir.SymInt(sym.Sub(cols, rows)), op.KW("is_causal", ir.Bool(true)), op.KW("scale", n.ArgNamed("scale")),
				op.KW("dropout_p", n.ArgNamed("dropout_p")))
			return ctx.replace(b, n, y)
		}
		args[5] = ir.Bool(true)
	}
	m := op.New(b, n.Op, args)
	if m == nil {
		return b.Err
	}
	return ctx.replace(b, n, m.Out())
}

// isCausal tells whether element (i, j) of the last two dimensions of v says that j is not beyond i, where the last of rows
// sees the last of cols.
func isCausal(v *ir.Value, rows, cols sym.Expr, depth int) bool {
	if depth == 0 || v.Def == nil || v.Type.DType != ops.Bool || len(v.Def.Outs) != 1 {
		return false
	}
	n := v.Def
	places := func(key, query *ir.Value) bool {
		if key == nil || query == nil {
			return false
		}
		if r := key.Type.Rank(); r < 1 || !onlyAlong(key, r-1, cols) || query.Type.Rank() < 2 || !onlyAlong(query, query.Type.Rank()-2, rows) {
			return false
		}
		from, ok := countedFrom(key)
		to, ok2 := countedFrom(query)
		return ok && ok2 && sym.Add(to, rows).Equal(sym.Add(from, cols))
	}
	switch n.Op {
	case ops.AtenLeTensor:
		return places(n.In(0), n.In(1))
	case ops.AtenGeTensor:
		return places(n.In(1), n.In(0))
	case ops.AtenBitwiseAndTensor, ops.AtenLogicalAndDefault, ops.AtenDunderAndTensor:
		for i := range 2 {
			if isTrue(n.In(i)) && n.In(1-i) != nil && isCausal(n.In(1-i), rows, cols, depth-1) {
				return true
			}
		}
		return false
	}
	if in := sameRows(v); in != nil && in.Type.Rank() >= 2 && v.Type.Rank() >= 2 && ir.Dim(in, -1).Equal(ir.Dim(v, -1)) && ir.Dim(in, -2).Equal(ir.Dim(v, -2)) {
		return isCausal(in, rows, cols, depth-1)
	}
	return false
}

// onlyAlong tells whether v has n elements along dim and one along all others.
func onlyAlong(v *ir.Value, dim int, n sym.Expr) bool {
	for i, e := range v.Type.Shape {
		if i == dim && !e.Equal(n) || i != dim && !e.IsConstValue(1) {
			return false
		}
	}
	return true
}

// isTrue tells whether v is made of true alone.
func isTrue(v *ir.Value) bool {
	if v == nil || v.Def == nil || v.Type.DType != ops.Bool {
		return false
	}
	switch v.Def.Op {
	case ops.AtenNewOnesDefault, ops.AtenOnesDefault, ops.AtenOnesLikeDefault:
		return true
	case ops.AtenFullDefault:
		f, ok := v.Def.Arg(1).Float()
		yes, isBool := v.Def.Arg(1).Bool()
		return ok && f == 1 || isBool && yes
	}
	return false
}
