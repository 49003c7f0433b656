// Package judge runs exported programs in the reference interpreter: as they are, and after a pipeline of passes, and
// compares both with what PyTorch gave.
package judge

import (
	"context"

	"github.com/lathe-ml/lathe"
	"github.com/lathe-ml/lathe/internal/etrt"
	"github.com/lathe-ml/lathe/interp"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/tools/oracle/cases"
)

// program is an interpreter session behind the interface of a loaded program.
type program struct{ s *interp.Session }

// Run calls the graph.
func (p program) Run(_ string, inputs []etrt.Value) ([]etrt.Value, error) {
	in, err := lathe.FromRuntime(inputs)
	if err != nil {
		return nil, err
	}
	out, err := p.s.Run(context.Background(), in)
	if err != nil {
		return nil, err
	}
	return lathe.ToRuntime(out)
}

// Close does nothing.
func (program) Close() {}

// Check interprets g on the calls of a case and compares.
func Check(c *cases.Case, g *ir.Graph, opts interp.Options) error {
	return c.CheckWith(func() (cases.Program, error) {
		s, err := interp.New(g, opts)
		if err != nil {
			return nil, err
		}
		return program{s}, nil
	})
}
