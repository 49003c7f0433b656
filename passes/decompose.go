// Package passes holds the graph passes, their manager and the pipelines.
package passes

import "github.com/lathe-ml/lathe/ir"

// Decomp is what a decomposition sees: the node to take apart and a builder in front of it.
type Decomp struct {
	*ir.Builder
	N *ir.Node
}

// DecompFn takes a node one step apart and gives the values that replace its results; nil where it declines.
type DecompFn func(d *Decomp) []*ir.Value
