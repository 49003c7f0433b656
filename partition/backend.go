package partition

import (
	"context"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/passes"
)

// Backend is a delegate that Lathe compiles for. One value a backend, listed once in the root package.
type Backend interface {
	// Name is what a user types: xnnpack, mlx, cuda.
	Name() string
	// Caps answers what the delegate takes.
	Caps() Caps
	// Pipeline is the passes before partitioning.
	Pipeline() passes.Pipeline
	// Lower makes the delegate's payload of a region. The graph is the region's own: its inputs are what the region reads,
	// weights included, its outputs what others want of it, write-backs to buffers it owns first.
	Lower(ctx context.Context, region *ir.Graph) (*Lowered, error)
}
