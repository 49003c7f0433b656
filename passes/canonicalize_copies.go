package passes

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ops"
)

// CanonicalizeCopies gives every operation one name.
var CanonicalizeCopies = Pass{
	Name: "canonicalize-copies",
	Doc:  "Replaces operators that have the same meaning as another by that: permute_copy by permute, absolute by abs.",
	Run: func(ctx *Context, g *ir.Graph) error {
		if g.Stage == ops.StageAten {
			return nil // a view in place of a copy would let writes through
		}
		return each(g, func(n *ir.Node) error {
			id := n.Info().SameAs
			if n.Op == ops.Unknown || id == ops.Unknown || n.NumArgs() != len(id.Info().Schema.Args) {
				return nil
			}
			if ctx.Allow(n, "same-as") {
				n.Op = id
			}
			return nil
		})
	},
}
