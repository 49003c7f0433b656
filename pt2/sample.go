package pt2

import (
	"errors"
	"fmt"
	"strings"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/pt2/pickle"
	"github.com/lathe-ml/lathe/pt2/pytree"
)

// Sample is one recorded input: a tensor, or a constant (None, int, float, bool or string).
type Sample struct {
	Tensor *ir.Data
	Value  ir.Arg
}

// SampleInputs gives the inputs with which a program of the archive was exported, one for each of the graph's user inputs
// in order. It fails where there are none, or where they are kept in containers that are not known.
func (a *Archive) SampleInputs(g *ir.Graph) ([]Sample, error) {
	e, err := a.c.Get("data/sample_inputs/" + strings.TrimSuffix(strings.TrimPrefix(g.Entry, "models/"), ".json") + ".pt")
	if err != nil {
		return nil, archiveDiag(a.c.Path(), err)
	}
	bad := func(format string, args ...any) ([]Sample, error) {
		return nil, a.diag(CodeArchive, e.Name(), "give the inputs in a file", "sample inputs: %s", fmt.Sprintf(format, args...))
	}
	// The classes of the user's containers are only names here.
	p, err := a.openAllowing(e, func(pickle.Global) bool { return true })
	if err != nil {
		return nil, err
	}
	spec, err := pytree.Parse(g.InSpec)
	if err != nil {
		return bad("%v", err)
	}
	leaves, err := flatten(spec, p.value, nil)
	if err != nil {
		return bad("%v", err)
	}
	users := g.UserInputs()
	if len(leaves) != len(users) {
		return bad("%d of %d", len(leaves), len(users))
	}
	out := make([]Sample, len(leaves))
	for i, v := range leaves {
		switch v := v.(type) {
		case *pickle.Tensor:
			d, err := a.view(p, v)
			if err != nil {
				return bad("%v", err)
			}
			t := users[i].Value.Type
			if !t.IsTensor() || t.DType != d.DType || t.Rank() != len(d.Sizes) {
				return bad("input %d is %s%v where %s should be", i, d.DType, d.Sizes, t)
			}
			out[i].Tensor = d
		case nil:
		case int64:
			out[i].Value = ir.Int(v)
		case float64:
			out[i].Value = ir.Float(v)
		case bool:
			out[i].Value = ir.Bool(v)
		case string:
			out[i].Value = ir.Str(v)
		default:
			return bad("input %d is a %T", i, v)
		}
	}
	return out, nil
}

var errContainer = errors.New("container is not known")

// flatten takes a value apart as the spec says.
func flatten(s *pytree.Spec, v any, out []any) ([]any, error) {
	if s.Leaf() {
		return append(out, v), nil
	}
	children, err := children(s, v)
	if err != nil {
		// A class with a state of its own: where it holds as many tensors as the spec has leaves, they are these in order.
		c := collector{left: 1 << 16}
		if o, ok := v.(*pickle.Object); ok {
			c.collect(o, 0)
		}
		if len(c.found) != s.Leaves() || c.left == 0 {
			return nil, fmt.Errorf("%s: %w", clean(s.Type), err)
		}
		return append(out, c.found...), nil
	}
	for i, c := range s.Children {
		if out, err = flatten(c, children[i], out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// children are the values of a container's children.
func children(s *pytree.Spec, v any) ([]any, error) {
	byName := func(d *pickle.Dict) ([]any, error) {
		out := make([]any, 0, len(s.Children))
		for _, k := range s.Keys() {
			e, ok := d.Get(k)
			if !ok {
				break
			}
			out = append(out, e)
		}
		if len(out) == len(s.Children) {
			return out, nil
		}
		// Keys that are no strings stand in the order of the dictionary.
		if len(d.Values) == len(s.Children) {
			return d.Values, nil
		}
		return nil, errContainer
	}
	switch v := v.(type) {
	case []any:
		if len(v) == len(s.Children) {
			return v, nil
		}
	case *pickle.Dict:
		return byName(v)
	case *pickle.Object:
		for _, d := range []any{v.State, &v.Dict, v.Args} {
			d, err := pickle.Torch(d)
			if err != nil {
				return nil, err
			}
			switch d := d.(type) {
			case *pickle.Dict:
				if out, err := byName(d); err == nil && len(d.Keys) > 0 {
					return out, nil
				}
			case []any:
				if len(d) == len(s.Children) && len(d) > 0 {
					return d, nil
				}
			}
		}
	}
	return nil, errContainer
}

// collector finds the tensors in a value, in the order in which they were pickled.
type collector struct {
	found []any
	left  int // values that may still be looked at
}

func (c *collector) collect(v any, depth int) {
	v, err := pickle.Torch(v)
	if err != nil || depth > 16 || c.left == 0 {
		return
	}
	c.left--
	switch v := v.(type) {
	case *pickle.Tensor:
		c.found = append(c.found, v)
	case []any:
		for _, e := range v {
			c.collect(e, depth+1)
		}
	case *pickle.Dict:
		for _, e := range v.Values {
			c.collect(e, depth+1)
		}
	case *pickle.Object:
		for _, e := range []any{v.Args, v.State, &v.List, &v.Dict} {
			c.collect(e, depth+1)
		}
	}
}
