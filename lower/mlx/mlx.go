// Package mlx lowers regions of a graph to the payload of ExecuTorch's MLX delegate.
//
// The rules of one family of operators stand in one file, ops_<family>.go: a rule looks at a node's types and arguments
// and gives what writes the node into a payload, or says why the delegate cannot have it.
package mlx

//go:generate go run ../../tools/mlxdoc

import (
	"context"
	"fmt"

	"github.com/lathe-ml/lathe/codegen/mlxpayload"
	"github.com/lathe-ml/lathe/codegen/msl"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/partition"
	"github.com/lathe-ml/lathe/passes"
)

// Name is what a user types.
const Name = "mlx"

// backendID is the name under which the runtime knows the delegate.
const backendID = "MLXBackend"

// Backend is the MLX delegate. The zero value is ready to use.
type Backend struct {
	// Kernels are Metal kernels by the operators that they compute, beside or instead of the delegate's nodes. The runtime runs
	// kernels only where it was built to.
	Kernels map[string]*msl.Manifest
	// FuseKernels makes one Metal kernel of each chain of element-wise operators.
	FuseKernels bool
}

var (
	_ partition.Backend  = Backend{}
	_ partition.Stateful = Backend{}
)

// Name is what a user types.
func (Backend) Name() string { return Name }

// Caps answers what the delegate takes.
func (b Backend) Caps() partition.Caps { return Caps{b.Kernels} }

// Pipeline is the passes before partitioning.
func (b Backend) Pipeline() passes.Pipeline { return pipeline(Caps{b.Kernels}) }

// OwnsBuffer tells whether the delegate can keep a buffer from call to call.
func (Backend) OwnsBuffer(in *ir.Input) bool {
	t := in.Value.Type
	if !t.IsTensor() || t.Quant != nil || scalarType(t.DType) < 0 || in.Data == nil {
		return false
	}
	sizes, static := t.Sizes()
	if !static {
		return false
	}
	n := t.DType.Size()
	for _, s := range sizes {
		if s <= 0 || s > maxAllocation/n {
			return false
		}
		n *= s
	}
	return true
}

// maxAllocation is the number of bytes that the delegate makes a tensor of at most.
const maxAllocation = 4 << 30

// Lower makes the payload of a region.
func (backend Backend) Lower(ctx context.Context, g *ir.Graph) (*partition.Lowered, error) {
	b := newBuilder(g, Caps{backend.Kernels})
	b.fuse = backend.FuseKernels
	if err := b.build(ctx); err != nil {
		return nil, err
	}
	graph, named, err := b.finish()
	if err != nil {
		return nil, err
	}
	if err := check(graph, named); err != nil {
		return nil, fmt.Errorf("%s: %w", g.Name, err)
	}
	payload, err := (&mlxpayload.Payload{Graph: graph}).Marshal()
	if err != nil {
		return nil, err
	}
	return &partition.Lowered{ID: backendID, Payload: memBlob(payload), Named: named}, nil
}
