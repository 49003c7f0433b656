package xnnpack

import (
	"github.com/lathe-ml/lathe/passes"
)

// Pipeline is the passes before partitioning.
func Pipeline() passes.Pipeline {
	return passes.Pipeline{
		passes.InlineWrappers, passes.RemoveAsserts, passes.Functionalize, passes.ExpandVmap, passes.CanonicalizeCopies, passes.RemoveDetach,
		passes.DropoutEval, passes.RemoveNoops, passes.ComplexToReal, passes.MoeBatchedMM, AttentionMasks, FoldWeights, passes.Decompose,
		passes.RemoveNoops, passes.FoldViews, passes.CSE, OwnWeights, passes.DCE,
	}
}
