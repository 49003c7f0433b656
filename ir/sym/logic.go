package sym

import "slices"

// Eq returns a == b, of numbers or of bools.
func Eq(a, b Expr) Expr { return relation(opEq, a, b) }

// Ne returns a != b, of numbers or of bools.
func Ne(a, b Expr) Expr { return relation(opNe, a, b) }

// Lt returns a < b.
func Lt(a, b Expr) Expr { return relation(opLt, a, b) }

// Le returns a <= b.
func Le(a, b Expr) Expr { return relation(opLe, a, b) }

// Gt returns a > b.
func Gt(a, b Expr) Expr { return relation(opGt, a, b) }

// Ge returns a >= b.
func Ge(a, b Expr) Expr { return relation(opGe, a, b) }

func relation(o op, a, b Expr) Expr {
	if a.isBad() {
		return a
	}
	if b.isBad() {
		return b
	}
	switch {
	case a.Kind() == Bool && b.Kind() == Bool && (o == opEq || o == opNe):
		return boolEq(o, a, b)
	case a.Kind() == Bool || b.Kind() == Bool:
		return bad("%s of a bool: %s, %s", opNames[o], short(a), short(b))
	case a.Kind() == Float || b.Kind() == Float:
		return floatRelation(o, a, b)
	}
	return intRelation(o, a, b)
}

func boolEq(o op, a, b Expr) Expr {
	if v, ok := a.IsBool(); ok {
		if v == (o == opEq) {
			return b
		}
		return Not(b)
	}
	if _, ok := b.IsBool(); ok {
		return boolEq(o, b, a)
	}
	if a.Equal(b) {
		return ConstBool(o == opEq)
	}
	return mk(o, Bool, sorted2(a, b)...)
}

// intRelation builds a == b, a != b, a <= b or a >= b with the terms that have
// positive coefficients on the left, the first of them leading, the rest and the
// constant on the right, and no common factor. Strict relations become others:
// the operands are integers.
func intRelation(o op, a, b Expr) Expr {
	written := o
	asWritten := func() Expr { return mk(written, Bool, a, b) } // where a number would overflow
	ts, ok := mergeTerms(polyOf(a), polyOf(b), -1)
	if ok {
		switch o {
		case opLt: // d < 0 as d+1 <= 0
			o = opLe
			ts, ok = mergeTerms(ts, []term{{c: 1}}, 1)
		case opGt:
			o = opGe
			ts, ok = mergeTerms(ts, []term{{c: 1}}, -1)
		}
	}
	if !ok {
		return asWritten()
	}
	k, g := int64(0), int64(0)
	var rest []term
	for _, t := range ts {
		if len(t.m) == 0 {
			k = t.c
		} else {
			g = gcd(g, t.c)
			rest = append(rest, t)
		}
	}
	if len(rest) == 0 {
		return ConstBool(holds(o, cmpInt(k, 0)))
	}
	if g < 0 { // every coefficient is the smallest integer
		return asWritten()
	}
	if rest[0].c < 0 {
		neg, ok1 := negTerms(rest)
		nk, ok2 := mulInt(k, -1)
		if !ok1 || !ok2 {
			return asWritten()
		}
		rest, k = neg, nk
		switch o {
		case opLe:
			o = opGe
		case opGe:
			o = opLe
		}
	}
	if g > 1 {
		for i := range rest {
			rest[i].c /= g
		}
		q, _ := floorDivInt(k, g)
		if modInt(k, g) != 0 {
			switch o {
			case opEq:
				return ConstBool(false)
			case opNe:
				return ConstBool(true)
			case opLe:
				q++ // r <= -k/g as r <= -ceil(k/g)
			}
		}
		k = q
	}
	var lhs, rhs []term
	for _, t := range rest {
		if t.c > 0 {
			lhs = append(lhs, t)
			continue
		}
		if t.c, ok = mulInt(t.c, -1); !ok {
			return asWritten()
		}
		rhs = append(rhs, t)
	}
	if k, ok = mulInt(k, -1); !ok {
		return asWritten()
	}
	if k != 0 {
		rhs = append(rhs, term{c: k})
	}
	l, r := fromTerms(lhs), fromTerms(rhs)
	if v, known := decide(o, l, r, unbounded); known {
		return ConstBool(v)
	}
	return mk(o, Bool, l, r)
}

// holds reports whether a relation holds of operands whose comparison is c.
func holds(o op, c int) bool {
	switch o {
	case opEq:
		return c == 0
	case opNe:
		return c != 0
	case opLt:
		return c < 0
	case opLe:
		return c <= 0
	case opGt:
		return c > 0
	}
	return c >= 0
}

// decide decides a relation of integers by the bounds of their difference.
func decide(o op, a, b Expr, ranges func(string) Range) (value, known bool) {
	r := Bounds(Sub(a, b), ranges)
	return decideRange(o, r)
}

// decideRange decides a relation with 0 of a value in r.
func decideRange(o op, r Range) (value, known bool) {
	switch o {
	case opEq, opNe:
		switch {
		case r.Min > 0 || r.Max < 0:
			return o == opNe, true
		case r.Min == 0 && r.Max == 0:
			return o == opEq, true
		}
	case opLt, opGe:
		switch {
		case r.Max < 0:
			return o == opLt, true
		case r.Min >= 0:
			return o == opGe, true
		}
	case opLe, opGt:
		switch {
		case r.Max <= 0:
			return o == opLe, true
		case r.Min > 0:
			return o == opGt, true
		}
	}
	return false, false
}

// Not returns the negation of a.
func Not(a Expr) Expr {
	if e, done := boolean("not", a); done {
		return e
	}
	if v, ok := a.IsBool(); ok {
		return ConstBool(!v)
	}
	n := a.n
	switch n.op {
	case opNot:
		return n.args[0]
	case opEq:
		return Ne(n.args[0], n.args[1])
	case opNe:
		return Eq(n.args[0], n.args[1])
	}
	if (n.op == opLe || n.op == opGe || n.op == opLt || n.op == opGt) && n.args[0].Kind() == Int && n.args[1].Kind() == Int {
		// Not so for floats: both a < b and a >= b are false of a NaN.
		switch n.op {
		case opLe:
			return Gt(n.args[0], n.args[1])
		case opGe:
			return Lt(n.args[0], n.args[1])
		case opLt:
			return Ge(n.args[0], n.args[1])
		default:
			return Le(n.args[0], n.args[1])
		}
	}
	return mk(opNot, Bool, a)
}

// And returns the conjunction of xs, true when there are none.
func And(xs ...Expr) Expr { return junction(opAnd, xs) }

// Or returns the disjunction of xs, false when there are none.
func Or(xs ...Expr) Expr { return junction(opOr, xs) }

func junction(o op, xs []Expr) Expr {
	if e, done := boolean(opNames[o], xs...); done {
		return e
	}
	absorbing := o == opOr
	var flat []Expr
	for _, x := range xs {
		if v, ok := x.IsBool(); ok {
			if v == absorbing {
				return ConstBool(absorbing)
			}
			continue
		}
		if x.is(o) {
			flat = append(flat, x.n.args...)
		} else {
			flat = append(flat, x)
		}
	}
	slices.SortFunc(flat, compare)
	flat = slices.CompactFunc(flat, Expr.Equal)
	switch len(flat) {
	case 0:
		return ConstBool(!absorbing)
	case 1:
		return flat[0]
	}
	return mk(o, Bool, flat...)
}
