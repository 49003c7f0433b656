// Package infer holds the shape and dtype rules: for each operator of the table, the types of its results from the types
// and values of its arguments. A rule also checks what torch checks, so that a node that cannot be is refused.
package infer

import (
	"fmt"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// Call is what a rule sees: the operator and its complete arguments in schema order.
type Call struct {
	Op   ops.ID
	Args []ir.Arg
	// G is the graph that the node is or will be in; rules use its symbol table only.
	G *ir.Graph
}

// Rule gives the types of the results, those of Tensor[] in line.
type Rule func(c *Call) ([]ir.Type, error)

// Has tells whether the operator has a rule.
func Has(id ops.ID) bool { return int(id) < len(dispatch) && dispatch[id] != nil }

// Types runs the rule of an operator.
func Types(g *ir.Graph, id ops.ID, args []ir.Arg) ([]ir.Type, error) {
	if int(id) >= len(dispatch) || dispatch[id] == nil {
		return nil, fmt.Errorf("no shape rule")
	}
	if want := len(id.Info().Schema.Args); len(args) != want {
		return nil, fmt.Errorf("%d arguments, the schema has %d", len(args), want)
	}
	return dispatch[id](&Call{Op: id, Args: args, G: g})
}

// Syms is the symbol table.
func (c *Call) Syms() *sym.Table { return c.G.Syms }

// Arg is argument i.
func (c *Call) Arg(i int) ir.Arg { return c.Args[i] }

// T is the tensor type at argument i.
func (c *Call) T(i int) (ir.Type, error) {
	v := c.Args[i].Value()
	if v == nil || !v.Type.IsTensor() {
		return ir.Type{}, fmt.Errorf("argument %s is no tensor", c.Op.Info().Schema.Args[i].Name)
	}
	return v.Type, nil
}
