// Package partition groups the nodes that a backend takes into regions, and says what stayed outside and why.
package partition

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ops"
)

// Plan is how a node will be lowered. What it holds is the backend's own: Match makes it, the backend's lowering consumes
// it, so that what is claimed and what is done cannot disagree.
type Plan any

// Caps answers whether a backend takes a node.
type Caps interface {
	// Match gives the plan for n, or a diagnostic that says why n is not taken. It sees types and arguments, never the
	// bytes of weights, and is cheap.
	Match(n *ir.Node) (Plan, *ir.Diag)
}

// Lister is a Caps that knows of an operator, without a node, whether it takes any node of it. Match then looks at types and
// arguments.
type Lister interface {
	Takes(op ops.ID) bool
}
