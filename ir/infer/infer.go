// Package infer holds the shape and dtype rules: for each operator of the table, the types of its results from the types
// and values of its arguments. A rule also checks what torch checks, so that a node that cannot be is refused.
//
// Strides follow torch's meta functions: views have those of the view, element-wise operators keep the layout of their
// inputs, all else is contiguous unless torch says otherwise.
package infer

import (
	"errors"
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

	rules   []Rule // dispatch, which rules themselves cannot name
	predict bool   // symbols are not entered in the table
	made    int    // symbols made so far
}

// Rule gives the types of the results, those of Tensor[] in line.
type Rule func(c *Call) ([]ir.Type, error)

// ErrNoRule is the error of an operator without a rule.
var ErrNoRule = errors.New("no shape rule")

// Has tells whether an operator has a rule.
func Has(id ops.ID) bool { return int(id) < len(dispatch) && dispatch[id] != nil }

// Types runs the rule of an operator. Operators whose result depends on data (nonzero, item, …) add fresh symbols to the
// graph's table on every call.
func Types(g *ir.Graph, id ops.ID, args []ir.Arg) ([]ir.Type, error) {
	return run(g, id, args, false)
}

// Predict is Types without an effect on the symbol table: symbols for what depends on data are not entered there. It is
// for comparing with types that are known.
func Predict(g *ir.Graph, id ops.ID, args []ir.Arg) ([]ir.Type, error) {
	return run(g, id, args, true)
}

func run(g *ir.Graph, id ops.ID, args []ir.Arg, predict bool) (ts []ir.Type, err error) {
	if !Has(id) {
		return nil, ErrNoRule
	}
	if want := len(id.Info().Schema.Args); len(args) != want {
		return nil, fmt.Errorf("%d arguments, the schema has %d", len(args), want)
	}
	defer func() {
		if r := recover(); r != nil {
			f, ok := r.(failure)
			if !ok {
				panic(r)
			}
			ts, err = nil, f.error
		}
	}()
	c := &Call{Op: id, Args: args, G: g, rules: dispatch[:], predict: predict}
	ts, err = dispatch[id](c)
	if err == nil {
		ts = c.written(ts)
	}
	return ts, err
}

// written makes the results of an in-place operator those of the argument that it writes to: the rule is that of the pure
// twin, whose result has to fit.
func (c *Call) written(ts []ir.Type) []ir.Type {
	info := c.Op.Info()
	if !info.Mutates || info.Functional == ops.Unknown || info.Functional.Info().View {
		return ts
	}
	s := &info.Schema
	for i := range s.Rets {
		r := &s.Rets[i]
		if !r.Write || r.List || i >= len(ts) {
			continue
		}
		for k := range s.Args {
			a := &s.Args[k]
			if a.Alias != r.Alias {
				continue
			}
			t := c.tensor(a.Name)
			if category(ts[i].DType) > category(t.DType) {
				failf("a result of type %s cannot be written to %s of type %s", ts[i].DType, a.Name, t.DType)
			}
			if len(ts[i].Shape) != len(t.Shape) {
				failf("a result of shape %s cannot be written to %s of shape %s", shapeString(ts[i].Shape), a.Name, shapeString(t.Shape))
			}
			for d := range t.Shape {
				c.same(fmt.Sprintf("a result of shape %s cannot be written to %s of shape %s", shapeString(ts[i].Shape), a.Name,
					shapeString(t.Shape)), ts[i].Shape[d], t.Shape[d])
			}
			ts[i] = t
		}
	}
	return ts
}

// failure carries an error out of a rule's helpers; Types turns it back.
type failure struct{ error }

// failf ends the rule with an error.
func failf(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

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
