package passes

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ops"
)

// FoldViews makes one view of several.
var FoldViews = Pass{
	Name: "fold-views",
	Doc:  "Joins views of views, permutations of permutations, and gives both one form (view, permute).",
	Run: func(ctx *Context, g *ir.Graph) error {
		if g.Stage == ops.StageAten {
			return nil
		}
		return each(g, func(n *ir.Node) error { return foldView(ctx, n) })
	},
}

func foldView(ctx *Context, n *ir.Node) error {
	in := n.In(0)
	if in == nil || len(n.Outs) != 1 || !in.Type.IsTensor() {
		return nil
	}
	kind := viewKindOf(n)
	if n.Arg(0).Kind() == ir.ArgList || kind != viewShape && kind != viewPermute {
		return nil
	}
	src := in.Def
	joined := src != nil && len(src.Outs) == 1 && src.Arg(0).Kind() != ir.ArgList && viewKindOf(src) == kind && src.In(0) != nil && src.In(0).Type.IsTensor()
	if kind == viewShape {
		x := in
		if joined {
			x = src.In(0)
		}
		if ir.EqualShape(x.Type.Shape, n.Out().Type.Shape) {
			dropNode(ctx, n, x, "same-shape")
			return nil
		}
		if !joined && keepsForm(n) {
			return nil
		}
		b, ok := ctx.Rewrite(n, "view")
		if !ok {
			return nil
		}
		return ctx.replace(b, n, op.AtenViewDefault(b, x, shapeArg(n.Out())))
	}
	perm, ok := permOf(n)
	if !ok {
		return nil
	}
	x := in
	if joined {
		if q, ok := permOf(src); ok {
			x = src.In(0)
			both := make([]int, len(perm))
			for i, k := range perm {
				both[i] = q[k]
			}
			perm = both
		} else {
			joined = false
		}
	}
	if isIdentity(perm) {
		dropNode(ctx, n, x, "same-order")
		return nil
	}
	if !joined && n.Op == ops.AtenPermuteDefault {
		return nil
	}
	b, ok := ctx.Rewrite(n, "permute")
	if !ok {
		return nil
	}
	return ctx.replace(b, n, op.AtenPermuteDefault(b, x, intArgs(perm)))
}

// keepsForm tells views of shape that stay as they are: view itself, and those that say without sizes which dimension they
// make or drop.
func keepsForm(n *ir.Node) bool {
	switch n.Info().Schema.Base {
	case "view", "unsqueeze":
		return true
	case "squeeze":
		return n.Info().Schema.Overload != ""
	}
	return false
}
