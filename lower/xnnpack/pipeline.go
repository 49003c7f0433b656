package xnnpack

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/passes"
)

// Pipeline is the passes before partitioning.
func Pipeline() passes.Pipeline {
	return passes.Pipeline{
		passes.InlineWrappers, passes.RemoveAsserts, passes.Functionalize, passes.ExpandVmap, passes.CanonicalizeCopies, passes.RemoveDetach,
		passes.DropoutEval, passes.RemoveNoops, passes.ComplexToReal, passes.MoeBatchedMM, passes.QuantizedEmbedding, AttentionMasks, FoldWeights, passes.Decompose,
		passes.RemoveNoops, passes.FoldViews, ConstFold, passes.CSE, OwnWeights, passes.DCE,
	}
}

// ConstFold computes masks and the like when the program is compiled.
var ConstFold = passes.Pass{
	Name: "const-fold-for-xnnpack",
	Doc:  "Computes what depends on constants alone, as const-fold does, but keeps quantized weights as they are where the delegate multiplies with integers.",
	Run: func(ctx *passes.Context, g *ir.Graph) error {
		before := ctx.FoldLimit
		defer func() { ctx.FoldLimit = before }()
		for n := range g.Nodes() {
			if len(n.Outs) != 1 {
				continue
			}
			if _, ok := readWeight(n.Out()); ok {
				ctx.FoldLimit = 1
			}
		}
		return passes.ConstFold.Run(ctx, g)
	},
}
