package passes

// All lists the passes of this package in the order of their names.
func All() []Pass {
	return []Pass{
		CanonicalizeCopies, CausalMasks, CentreNorms, CollapseCasts, ComplexToReal, ConstFold, CSE, DCE, Decompose, DropoutEval, ExpandVmap, FoldViews, Functionalize, FuseRMSNorm, FuseRope, GatherExperts, GroupHeads,
		InlineWrappers, MoeBatchedMM, QuantizedEmbedding, RejectStaticCache, RemoveAsserts, RemoveDetach, RemoveNoops,
	}
}

// Portable is the pipeline for programs without a delegate.
func Portable() Pipeline {
	return Pipeline{
		InlineWrappers, RemoveAsserts, Functionalize, ExpandVmap, CanonicalizeCopies, RemoveDetach, DropoutEval, RemoveNoops,
		ComplexToReal, MoeBatchedMM, QuantizedEmbedding, Decompose, RemoveNoops, GroupHeads, FoldViews, ConstFold, CentreNorms, CSE, DCE,
	}
}

// Order is what is known of the order of passes, for all pipelines.
func Order() []OrderFact {
	return []OrderFact{
		{"inline-wrappers", "functionalize", "a wrapper's body may write to its operands"},
		{"remove-asserts", "dce", "an assertion keeps what it reads alive"},
		{"functionalize", "canonicalize-copies", "as long as tensors are written to, a copy is not a view"},
		{"functionalize", "remove-detach", "as long as tensors are written to, an alias is one"},
		{"functionalize", "dropout-eval", "an inactive dropout aliases its input"},
		{"functionalize", "remove-noops", "as long as tensors are written to, a copy is not its original"},
		{"functionalize", "cse", "two equal tensors may be written to separately"},
		{"functionalize", "fuse-rope", "rotations are found by their values, and tables are woven in place"},
		{"remove-noops", "fuse-rope", "conversions that change nothing hide what is rotated"},
		{"fuse-rope", "decompose", "the parts of pairs are easier to find before stacks are taken apart"},
		{"fuse-rope", "const-fold", "a table of counted positions becomes a constant"},
		{"functionalize", "gather-experts", "what picks a matrix must still pick it where it is used"},
		{"gather-experts", "decompose", "grouped products and histograms are taken apart there"},
		{"functionalize", "causal-masks", "a mask may be written to before it is used"},
		{"causal-masks", "const-fold", "a mask of fixed sizes becomes a constant"},
		{"functionalize", "collapse-casts", "a converted tensor that is written to is not its original"},
		{"functionalize", "expand-vmap", "a view under vmap is written through like any other"},
		{"expand-vmap", "decompose", "decompositions see the dimensions that the operators see"},
		{"functionalize", "decompose", "decompositions know no aliases"},
		{"canonicalize-copies", "decompose", "the table has one decomposition for each meaning"},
		{"decompose", "group-heads", "attention is products only after it"},
		{"group-heads", "fold-views", "it leaves views of views behind"},
		{"moe-batched-mm", "decompose", "what it leaves is multiplied with all experts"},
		{"quantized-embedding", "decompose", "it makes numbers of whole tables"},
		{"complex-to-real", "decompose", "decompositions know real numbers only"},
		{"canonicalize-copies", "complex-to-real", "its rules go by one name for each meaning"},
		{"decompose", "fold-views", "decompositions leave views of views behind"},
		{"decompose", "const-fold", "what no backend takes is computed before the program runs"},
		{"const-fold", "dce", "the weights that went into a constant are no longer used"},
		{"decompose", "centre-norms", "the norms that kernels compute come of it"},
		{"centre-norms", "cse", "norms of the same tensor share its mean"},
		{"fold-views", "cse", "views in one form are equal more often"},
		{"cse", "dce", "what is shared leaves nothing dead behind"},
	}
}
