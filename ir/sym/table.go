package sym

import (
	"fmt"
	"slices"
)

// Sym is one symbol of a program.
type Sym struct {
	Name    string
	Range   Range
	Hint    int64 // the value at export
	HasHint bool
}

// Table holds the symbols of a program in order, with what is known of them.
// The zero value is empty and ready to use.
type Table struct {
	syms  []Sym
	index map[string]int
	// facts are bounds of expressions, and byBase their places by the hash of what is left without the constant.
	facts  []fact
	byBase map[uint64][]int
}

type fact struct {
	e Expr
	r Range
}

// Add adds a symbol, or replaces the one of that name, keeping its place.
func (t *Table) Add(s Sym) error {
	if err := Symbol(s.Name).Err(); err != nil {
		return err
	}
	if s.Range.Empty() {
		return fmt.Errorf("symbol %s: range %v is empty", s.Name, s.Range)
	}
	if i, ok := t.index[s.Name]; ok {
		t.syms[i] = s
		return nil
	}
	if t.index == nil {
		t.index = map[string]int{}
	}
	t.index[s.Name] = len(t.syms)
	t.syms = append(t.syms, s)
	return nil
}

// Get returns the symbol of that name.
func (t *Table) Get(name string) (Sym, bool) {
	if t == nil {
		return Sym{}, false
	}
	i, ok := t.index[name]
	if !ok {
		return Sym{}, false
	}
	return t.syms[i], true
}

// All returns the symbols in order. The slice is the table's own.
func (t *Table) All() []Sym {
	if t == nil {
		return nil
	}
	return t.syms
}

// Len returns the number of symbols.
func (t *Table) Len() int { return len(t.All()) }

// Clone returns a copy that can be changed on its own.
func (t *Table) Clone() *Table {
	c := &Table{index: make(map[string]int, t.Len())}
	for i, s := range t.All() {
		c.syms = append(c.syms, s)
		c.index[s.Name] = i
	}
	if t != nil {
		c.facts = slices.Clone(t.facts)
		if t.byBase != nil {
			c.byBase = make(map[uint64][]int, len(t.byBase))
			for k, at := range t.byBase {
				c.byBase[k] = slices.Clone(at)
			}
		}
	}
	return c
}

// SymRange returns the range of the symbol of that name; a symbol that is not in
// the table has no bounds.
func (t *Table) SymRange(name string) Range {
	if s, ok := t.Get(name); ok {
		return s.Range
	}
	return NoRange
}

// Range returns bounds of e.
func (t *Table) Range(e Expr) Range {
	r := Bounds(e, t.SymRange)
	if t == nil || e.n == nil || e.Kind() != Int {
		return r
	}
	if len(t.facts) == 0 {
		return r
	}
	base, _ := constantPart(e)
	for _, i := range t.byBase[base.Hash()] {
		f := &t.facts[i]
		// e = f + k has the bounds of f, shifted.
		if k, ok := Sub(e, f.e).IsConst(); ok {
			r = r.Intersect(addRange(f.r, Range{k, k}.sound()))
		}
	}
	return r
}

// Constrain records that e is within r. A constraint on a*s + b narrows the
// range of s; other expressions are remembered as they are. It returns an error
// when no value is left.
func (t *Table) Constrain(e Expr, r Range) error {
	if err := e.Err(); err != nil {
		return err
	}
	if e.Kind() != Int {
		return fmt.Errorf("range of %s, which is not an integer", short(e))
	}
	if left := t.Range(e).Intersect(r); left.Empty() {
		return fmt.Errorf("no value of %s is in %v: it is in %v", short(e), r, t.Range(e))
	}
	names := Symbols(e)
	if len(names) == 1 {
		if a, b, ok := SolveLinear(e, names[0]); ok && a != 0 {
			i, known := t.index[names[0]]
			if !known {
				if err := t.Add(Sym{Name: names[0], Range: NoRange}); err != nil {
					return err
				}
				i = t.index[names[0]]
			}
			d := addRange(r, Range{satNeg(b), satNeg(b)}.sound())
			if a < 0 {
				d, a = Range{satNeg(d.Max), satNeg(d.Min)}, satNeg(a)
			}
			// ceil(d.Min / a) <= s <= floor(d.Max / a)
			lo, hi := d.Min, d.Max
			if d.HasMin() {
				lo = satNeg(floorDivEnd(satNeg(d.Min), a))
			}
			if d.HasMax() {
				hi = floorDivEnd(d.Max, a)
			}
			left := t.syms[i].Range.Intersect(Range{lo, hi})
			if left.Empty() {
				return fmt.Errorf("no value of %s leaves %s in %v", names[0], short(e), r)
			}
			t.syms[i].Range = left
			return nil
		}
	}
	if len(names) == 0 {
		return nil
	}
	base, _ := constantPart(e)
	key := base.Hash()
	for _, i := range t.byBase[key] {
		if f := &t.facts[i]; f.e.Equal(e) {
			f.r = f.r.Intersect(r)
			return nil
		}
	}
	if t.byBase == nil {
		t.byBase = map[uint64][]int{}
	}
	t.byBase[key] = append(t.byBase[key], len(t.facts))
	t.facts = append(t.facts, fact{e, r})
	return nil
}

// Assume records what a true predicate says of integers: a relation with a
// constant bounds, the parts of a conjunction one by one. What it cannot use is
// ignored. It returns an error when the predicate cannot hold.
func (t *Table) Assume(p Expr) error {
	if p.isBad() {
		return p.Err()
	}
	if v, ok := p.IsBool(); ok {
		if !v {
			return fmt.Errorf("assumption is false")
		}
		return nil
	}
	if p.Kind() != Bool {
		return fmt.Errorf("assumption %s is not a bool", short(p))
	}
	switch n := p.n; n.op {
	case opAnd:
		for _, a := range n.args {
			if err := t.Assume(a); err != nil {
				return err
			}
		}
	case opEq, opLe, opGe:
		if n.args[0].Kind() != Int || n.args[1].Kind() != Int {
			return nil
		}
		d := Sub(n.args[0], n.args[1])
		if d.isBad() {
			return nil
		}
		// Facts are kept of the part without the constant.
		d, k := constantPart(d)
		nk := satNeg(k)
		r := Range{nk, nk}.sound()
		switch n.op {
		case opLe:
			r.Min = minusInf
		case opGe:
			r.Max = plusInf
		}
		return t.Constrain(d, r)
	}
	return nil
}

// constantPart takes the constant out of an integer sum.
func constantPart(e Expr) (base Expr, k int64) {
	if ts := polyOf(e); len(ts) > 0 && len(ts[len(ts)-1].m) == 0 {
		return fromTerms(ts[:len(ts)-1]), ts[len(ts)-1].c
	}
	return e, 0
}

// Lookup returns the hint of a symbol, so that a table is an Env of the sizes at
// export.
func (t *Table) Lookup(name string) (int64, bool) {
	s, ok := t.Get(name)
	return s.Hint, ok && s.HasHint
}

// Prove decides a truth value for all values of the symbols; known is false when
// it depends on them or the bounds do not tell.
func (t *Table) Prove(p Expr) (value, known bool) {
	if p.Kind() != Bool {
		return false, false
	}
	n := p.n
	switch n.op {
	case opNot:
		v, known := t.Prove(n.args[0])
		return !v && known, known
	case opAnd, opOr:
		all := true
		for _, a := range n.args {
			v, known := t.Prove(a)
			if known && v == (n.op == opOr) {
				return v, true
			}
			all = all && known
		}
		return n.op == opAnd && all, all
	case opEq, opNe, opLe, opGe, opLt, opGt:
		if n.args[0].Kind() == Int && n.args[1].Kind() == Int {
			return decideRange(n.op, t.Range(Sub(n.args[0], n.args[1])))
		}
	}
	return boundsBool(p, t.SymRange)
}

// ProveEq decides a == b.
func (t *Table) ProveEq(a, b Expr) (value, known bool) {
	if a.Equal(b) && !a.isBad() {
		return true, true
	}
	if v, known := t.Prove(Eq(a, b)); known {
		return v, true
	}
	// What the ranges decide inside of a and b may make them alike.
	if a, b = t.Simplify(a), t.Simplify(b); a.Equal(b) && !a.isBad() {
		return true, true
	}
	return t.Prove(Eq(a, b))
}

// ProveNe decides a != b.
func (t *Table) ProveNe(a, b Expr) (value, known bool) { return t.Prove(Ne(a, b)) }

// ProveLt decides a < b.
func (t *Table) ProveLt(a, b Expr) (value, known bool) { return t.Prove(Lt(a, b)) }

// ProveLe decides a <= b.
func (t *Table) ProveLe(a, b Expr) (value, known bool) { return t.Prove(Le(a, b)) }

// ProveGt decides a > b.
func (t *Table) ProveGt(a, b Expr) (value, known bool) { return t.Prove(Gt(a, b)) }

// ProveGe decides a >= b.
func (t *Table) ProveGe(a, b Expr) (value, known bool) { return t.Prove(Ge(a, b)) }

// Simplify rebuilds e with what the ranges of the symbols decide: operands of
// maxima and minima that cannot win, remainders of small dividends, relations.
func (t *Table) Simplify(e Expr) Expr {
	return rebuild(e, func(x Expr) Expr {
		if x.n == nil {
			return x
		}
		switch x.n.kind {
		case Bool:
			if v, known := t.Prove(x); known {
				return ConstBool(v)
			}
			return x
		case Int:
			if r := t.Range(x); r.Min == r.Max && !isInf(r.Min) {
				return Const(r.Min)
			}
		default:
			return x
		}
		switch n := x.n; n.op {
		case opMax, opMin:
			return extremum(n.op, n.args, t.SymRange)
		case opMod:
			a, b := t.Range(n.args[0]), t.Range(n.args[1])
			if b.Min > 0 && a.Min >= 0 && a.Max < b.Min {
				return n.args[0]
			}
		case opAbs:
			r := t.Range(n.args[0])
			if r.Min >= 0 {
				return n.args[0]
			}
			if r.Max <= 0 {
				return Neg(n.args[0])
			}
		}
		return x
	}, map[*node]Expr{})
}
