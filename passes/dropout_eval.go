package passes

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ops"
)

// DropoutEval drops dropouts that let everything through.
var DropoutEval = Pass{
	Name: "dropout-eval",
	Doc:  "Removes dropouts outside of training or with probability zero.",
	Run: func(ctx *Context, g *ir.Graph) error {
		if g.Stage == ops.StageAten {
			return nil
		}
		return each(g, func(n *ir.Node) error {
			switch n.Info().Schema.Base {
			case "dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout":
				if inactive(n) {
					dropNode(ctx, n, n.In(0), "dropout")
				}
			case "native_dropout":
				if !inactive(n) {
					return nil
				}
				if n.Outs[1].NumUses() == 0 {
					if ctx.Allow(n, "native_dropout") {
						n.Graph().Replace(n, n.In(0), nil)
					}
					return nil
				}
				b, ok := ctx.Rewrite(n, "native_dropout")
				if !ok {
					return nil
				}
				mask := op.AtenFullDefault(b, shapeArg(n.In(0)), ir.Bool(true), op.KW("dtype", ir.DTypeArg(ops.Bool)))
				return ctx.replace(b, n, n.In(0), mask)
			}
			return nil
		})
	},
}

// inactive tells a dropout that lets everything through.
func inactive(n *ir.Node) bool {
	train, ok := n.ArgNamed("train").Bool()
	p, known := n.ArgNamed("p").Float()
	return ok && !train || known && p == 0
}
