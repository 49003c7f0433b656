// Package xnnpack lowers regions of a graph to the payload of ExecuTorch's XNNPACK delegate.
//
// The rules of one family of operators stand in one file, ops_<family>.go: a rule looks at a node's types and arguments
// and gives what writes the node into a payload, or says why the delegate cannot have it.
package xnnpack

import (
	"context"
	"fmt"
	"slices"

	"github.com/lathe-ml/lathe/codegen/xnnpayload"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/partition"
	"github.com/lathe-ml/lathe/passes"
)

// Name is what a user types.
const Name = "xnnpack"

// backendID is the name under which the runtime knows the delegate.
const backendID = "XnnpackBackend"

// Backend is the XNNPACK delegate.
type Backend struct{}

var (
	_ partition.Backend = Backend{}
	_ partition.Thrifty = Backend{}
	_ partition.Mover   = Backend{}
)

// Name is what a user types.
func (Backend) Name() string { return Name }

// Caps answers what the delegate takes.
func (Backend) Caps() partition.Caps { return Caps{} }

// Pipeline is the passes before partitioning.
func (Backend) Pipeline() passes.Pipeline { return Pipeline() }

// Moves tells nodes that compute nothing.
func (Backend) Moves(n *ir.Node) bool { return moves[n.Op] }

// Decline gives back regions that only move data: a kernel does that where it lies, or for nothing. A program that is nothing
// but rearranging, as the official lowering would delegate it, needs no kernel and stays.
func (Backend) Decline(nodes []*ir.Node) string {
	if g := nodes[0].Graph(); g.Parent == nil && g.NumNodes() == len(nodes) && !slices.ContainsFunc(nodes, func(n *ir.Node) bool { return !rearranges[n.Op] }) {
		return ""
	}
	for _, n := range nodes {
		if !moves[n.Op] {
			return ""
		}
	}
	return "a region that computes nothing costs more than it gives"
}

// Lower makes the payload of a region.
func (Backend) Lower(ctx context.Context, g *ir.Graph) (*partition.Lowered, error) {
	b := newBuilder(g)
	if err := b.build(ctx); err != nil {
		return nil, err
	}
	payload, err := b.payload.Marshal()
	if err != nil {
		return nil, err
	}
	// What is checked is what was written, read as the runtime reads it.
	read, err := xnnpayload.Unmarshal(payload)
	if err == nil {
		err = check(read, b.named, len(b.inputs)+len(g.Outputs))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", g.Name, err)
	}
	return &partition.Lowered{ID: backendID, Payload: memBlob(payload), Named: b.named}, nil
}
