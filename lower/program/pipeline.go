package program

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/passes"
)

// Pipeline is the passes before lowering when nothing is delegated.
func Pipeline() passes.Pipeline {
	return passes.Portable()
}

// Legal tells why the runtime cannot run n as it is, nil where it can.
func Legal(n *ir.Node) *ir.Diag {
	_, d := match(n)
	return d
}
