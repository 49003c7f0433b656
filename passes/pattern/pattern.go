// Package pattern matches trees of operators against the graph.
//
// A pattern describes a value by the operator that makes it and patterns for that operator's arguments in the schema's
// order; arguments without a pattern are not looked at. The same name stands for the same value wherever it occurs.
//
//	x := pattern.Any("x")
//	silu := pattern.Op(ops.AtenMulTensor, x, pattern.Op(ops.AtenSigmoidDefault, x)).Commutes()
//	if m, ok := silu.Match(v); ok {
//		m.Value("x") …
//	}
package pattern

import (
	"slices"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ops"
)

// Pattern describes an argument: a value, or a number.
type Pattern struct {
	kind     kind
	name     string
	ids      []ops.ID
	args     []*Pattern
	attrs    []attr
	either   []*Pattern
	commutes bool
	once     bool
	number   float64
}

type kind uint8

const (
	anyValue kind = iota
	anyNumber
	number
	operator
	alternatives
)

type attr struct {
	name string
	ok   func(ir.Arg) bool
}

// Any matches every value; all places of one name must be the same value. The empty name does not bind.
func Any(name string) *Pattern { return &Pattern{kind: anyValue, name: name} }

// Number matches every constant number and binds it.
func Number(name string) *Pattern { return &Pattern{kind: anyNumber, name: name} }

// Is matches one number.
func Is(f float64) *Pattern { return &Pattern{kind: number, number: f} }

// Op matches a result of an operator whose first arguments match args; nil matches everything.
func Op(id ops.ID, args ...*Pattern) *Pattern {
	return &Pattern{kind: operator, ids: []ops.ID{id}, args: args}
}

// OneOf matches what one of several patterns matches, tried in order.
func OneOf(ps ...*Pattern) *Pattern { return &Pattern{kind: alternatives, either: ps} }

// Or gives an operator pattern another operator with the same arguments.
func (p *Pattern) Or(id ops.ID) *Pattern {
	q := *p
	q.ids = append(slices.Clone(p.ids), id)
	return &q
}

// Commutes lets the first two arguments stand in either order.
func (p *Pattern) Commutes() *Pattern {
	q := *p
	q.commutes = true
	return &q
}

// Once asks that the value has one user only.
func (p *Pattern) Once() *Pattern {
	q := *p
	q.once = true
	return &q
}

// As binds the value that an operator pattern matches.
func (p *Pattern) As(name string) *Pattern {
	q := *p
	q.name = name
	return &q
}

// With asks for an argument by name.
func (p *Pattern) With(name string, ok func(ir.Arg) bool) *Pattern {
	q := *p
	q.attrs = append(slices.Clone(p.attrs), attr{name, ok})
	return &q
}

// True is an argument that is the constant true.
func True(a ir.Arg) bool {
	v, ok := a.Bool()
	return ok && v
}

// Equals is an argument equal to a number; a missing one counts as its operator's default and is not asked.
func Equals(f float64) func(ir.Arg) bool {
	return func(a ir.Arg) bool {
		g, ok := a.Float()
		return ok && f == g
	}
}

// Match is what a pattern bound.
type Match struct{ env *binding }

type binding struct {
	name string
	arg  ir.Arg
	next *binding
}

func (e *binding) find(name string) (ir.Arg, bool) {
	for ; e != nil; e = e.next {
		if e.name == name {
			return e.arg, true
		}
	}
	return ir.Arg{}, false
}

// Value is the value of that name, or nil.
func (m Match) Value(name string) *ir.Value {
	a, _ := m.env.find(name)
	return a.Value()
}

// Number is the number of that name, or 0.
func (m Match) Number(name string) float64 {
	a, _ := m.env.find(name)
	f, _ := a.Float()
	return f
}

// Match tells whether v is as the pattern describes.
func (p *Pattern) Match(v *ir.Value) (Match, bool) {
	var found *binding
	ok := p.match(ir.RefAny(v), nil, func(e *binding) bool {
		found = e
		return true
	})
	return Match{found}, ok
}

// match calls then for each way in which a fits, until that is content.
func (p *Pattern) match(a ir.Arg, env *binding, then func(*binding) bool) bool {
	switch p.kind {
	case anyValue:
		if a.Value() == nil {
			return false
		}
		return p.bind(a, env, then)
	case anyNumber:
		if _, ok := a.Float(); !ok {
			return false
		}
		return p.bind(a, env, then)
	case number:
		f, ok := a.Float()
		return ok && f == p.number && then(env)
	case alternatives:
		for _, q := range p.either {
			if q.match(a, env, then) {
				return true
			}
		}
		return false
	}
	v := a.Value()
	if v == nil || v.Def == nil || v.Index != 0 || !slices.Contains(p.ids, v.Def.Op) || p.once && v.NumUses() != 1 {
		return false
	}
	n := v.Def
	for _, at := range p.attrs {
		if !at.ok(n.ArgNamed(at.name)) {
			return false
		}
	}
	return p.bind(a, env, func(env *binding) bool {
		if p.matchArgs(n.Args(), p.args, env, then) {
			return true
		}
		if !p.commutes || len(p.args) < 2 {
			return false
		}
		swapped := slices.Clone(p.args)
		swapped[0], swapped[1] = swapped[1], swapped[0]
		return p.matchArgs(n.Args(), swapped, env, then)
	})
}

func (p *Pattern) matchArgs(args []ir.Arg, ps []*Pattern, env *binding, then func(*binding) bool) bool {
	if len(ps) == 0 {
		return then(env)
	}
	if len(args) == 0 {
		return false
	}
	rest := func(env *binding) bool { return p.matchArgs(args[1:], ps[1:], env, then) }
	if ps[0] == nil {
		return rest(env)
	}
	return ps[0].match(args[0], env, rest)
}

// bind notes what a name stands for, or checks that it is the same as before.
func (p *Pattern) bind(a ir.Arg, env *binding, then func(*binding) bool) bool {
	if p.name == "" {
		return then(env)
	}
	if old, ok := env.find(p.name); ok {
		return old.Equal(a) && then(env)
	}
	return then(&binding{p.name, a, env})
}
