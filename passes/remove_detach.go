package passes

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ops"
)

// RemoveDetach drops what only matters to gradients.
var RemoveDetach = Pass{
	Name: "remove-detach",
	Doc:  "Removes detach, alias, lift_fresh and their copies, which mean nothing without gradients.",
	Run: func(ctx *Context, g *ir.Graph) error {
		if g.Stage == ops.StageAten {
			return nil // aliases matter as long as they may be written to
		}
		return each(g, func(n *ir.Node) error {
			switch n.Info().Schema.Base {
			case "detach", "detach_copy", "alias", "alias_copy", "lift", "lift_fresh", "lift_fresh_copy", "positive", "resolve_conj", "resolve_neg",
				"pin_memory", "_pin_memory", "cpu", "_h2d_copy", "_d2h_copy":
				dropNode(ctx, n, n.In(0), "gradient")
			}
			return nil
		})
	},
}

// dropNode replaces n's result by a value of the same meaning.
func dropNode(ctx *Context, n *ir.Node, v *ir.Value, rule string) {
	if v == nil || len(n.Outs) != 1 || v.Type.DType != n.Out().Type.DType || !ir.EqualShape(v.Type.Shape, n.Out().Type.Shape) {
		return
	}
	if ctx.Allow(n, rule) {
		n.Graph().Replace(n, v)
	}
}
