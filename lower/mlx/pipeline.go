package mlx

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/passes"
)

func pipeline(caps Caps) passes.Pipeline {
	return passes.Pipeline{
		passes.RejectStaticCache, passes.InlineWrappers, passes.RemoveAsserts, passes.Functionalize, passes.ExpandVmap, passes.CanonicalizeCopies, passes.RemoveDetach,
		passes.DropoutEval, passes.RemoveNoops, passes.CollapseCasts, passes.CausalMasks, passes.FuseRope, passes.FuseRMSNorm, passes.GatherExperts, passes.ComplexToReal, passes.DCE, decompose(caps),
		passes.RemoveNoops, passes.FoldViews, ConstFold, passes.CSE, passes.DCE,
	}
}

// decompose takes apart what the delegate declines whole, as long as it has another form: a kernel of the runtime beside
// the delegate would cut the region in two.
func decompose(caps Caps) passes.Pass {
	return passes.Pass{
		Name: "decompose-for-mlx",
		Doc:  "Replaces each node that the MLX delegate declines by simpler ones, one step at a time, also where a kernel takes it whole.",
		Run: func(ctx *passes.Context, g *ir.Graph) error {
			before := ctx.Legal
			defer func() { ctx.Legal = before }()
			ctx.Legal = func(n *ir.Node) *ir.Diag {
				_, why := caps.plan(n)
				if why == nil {
					return nil
				}
				if passes.HasDecomp(n.Op) && held(n) {
					return why
				}
				if before != nil {
					return before(n)
				}
				return passes.TableLegal(n)
			}
			return passes.Decompose.Run(ctx, g)
		},
	}
}

// ConstFold leaves weights packed.
var ConstFold = passes.Pass{
	Name: "const-fold-for-mlx",
	Doc:  "Computes what depends on constants alone, as const-fold does, but for what is made of quantized weights: these stay packed.",
	Run: func(ctx *passes.Context, g *ir.Graph) error {
		before := ctx.FoldLimit
		defer func() { ctx.FoldLimit = before }()
		for n := range g.Nodes() {
			if _, quantized := quantRules[n.Op]; quantized {
				ctx.FoldLimit = 1
			}
		}
		return passes.ConstFold.Run(ctx, g)
	},
}

// held tells whether the delegate can hold what n reads and makes: taken apart, it would be no nearer to it otherwise.
func held(n *ir.Node) bool {
	for v := range n.Inputs() {
		if v.Type.IsTensor() && heldType(v.Type) != "" {
			return false
		}
	}
	for _, o := range n.Outs {
		if o.Type.IsTensor() && heldType(o.Type) != "" {
			return false
		}
	}
	return true
}
