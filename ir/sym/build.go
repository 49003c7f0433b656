package sym

import (
	"math"
	"slices"
)

// integer passes on an invalid operand, and makes one of an operand that is not
// an integer.
func integer(what string, xs ...Expr) (Expr, bool) {
	for _, x := range xs {
		if x.isBad() {
			return x, true
		}
	}
	for _, x := range xs {
		if x.Kind() != Int {
			return bad("operand of %s is a %s: %s", what, x.Kind(), short(x)), true
		}
	}
	return Expr{}, false
}

func boolean(what string, xs ...Expr) (Expr, bool) {
	for _, x := range xs {
		if x.isBad() {
			return x, true
		}
	}
	for _, x := range xs {
		if x.Kind() != Bool {
			return bad("operand of %s is not a bool: %s", what, short(x)), true
		}
	}
	return Expr{}, false
}

// FloorDiv returns a // b, rounded towards minus infinity. Division by the
// constant 0 stays as written; evaluating it is an error.
func FloorDiv(a, b Expr) Expr {
	if a.n == nil && b.n == nil && b.k != 0 {
		if q, ok := floorDivInt(a.k, b.k); ok {
			return Const(q)
		}
	}
	if e, done := integer("//", a, b); done {
		return e
	}
	if c, ok := b.IsConst(); ok {
		switch {
		case c == 0 || c == math.MinInt64:
			return mk(opFloorDiv, Int, a, b)
		case c == 1:
			return a
		case c == -1:
			return Neg(a)
		case c < 0:
			return floorDivConst(Neg(a), -c)
		}
		return floorDivConst(a, c)
	}
	if a.IsConstValue(0) {
		return a
	}
	ta, tb := polyOf(a), polyOf(b)
	if q, ok := divTerms(ta, tb); ok {
		return fromTerms(q)
	}
	if tb[0].c < 0 {
		if na, nb := Neg(a), Neg(b); !na.is(opMulBig) && !nb.is(opMulBig) {
			return FloorDiv(na, nb)
		}
	}
	if g := gcdTerms(ta, tb); g.c != 1 || len(g.m) > 0 {
		return FloorDiv(fromTerms(divByTerm(ta, g)), fromTerms(divByTerm(tb, g)))
	}
	if len(tb) == 1 {
		// The terms b divides leave whole quotients.
		var whole, rest []term
		for _, t := range ta {
			if q, ok := divTerm(t, tb[0]); ok {
				whole = append(whole, q)
			} else {
				rest = append(rest, t)
			}
		}
		if len(whole) > 0 {
			return Add(fromTerms(whole), FloorDiv(fromTerms(rest), b))
		}
	}
	return mk(opFloorDiv, Int, a, b)
}

// floorDivConst returns a // c for c > 0 in this form: the terms c divides are
// outside, the constant left is in [0, c), the leading coefficient is positive,
// coefficients and divisor have no common factor, and a floor division by a
// constant inside is merged. So every way of writing the size of a strided
// window comes out the same.
func floorDivConst(a Expr, c int64) Expr {
	if a.isBad() || a.is(opMulBig) {
		return mk(opFloorDiv, Int, a, Const(c))
	}
	var whole, rest []term
	var k, g int64
	g = c
	for _, t := range polyOf(a) {
		if len(t.m) == 0 {
			q, _ := floorDivInt(t.c, c)
			k = modInt(t.c, c)
			if q != 0 {
				whole = append(whole, term{c: q})
			}
			continue
		}
		if t.c%c == 0 {
			whole = append(whole, term{t.c / c, t.m})
			continue
		}
		g = gcd(g, t.c)
		rest = append(rest, t)
	}
	w := fromTerms(whole)
	if len(rest) == 0 {
		return w
	}
	if rest[0].c < 0 {
		// -r // c == -((r + c-1) // c)
		neg, ok := negTerms(rest)
		if !ok {
			return mk(opFloorDiv, Int, a, Const(c))
		}
		return Sub(w, floorDivConst(Add(fromTerms(neg), Const(c-1-k)), c))
	}
	if g > 1 {
		r := make([]term, len(rest))
		for i, t := range rest {
			r[i] = term{t.c / g, t.m}
		}
		q := Add(fromTerms(r), Const(k/g))
		if c == g {
			return Add(w, q)
		}
		return Add(w, floorDivConst(q, c/g))
	}
	// (x//d + p) // c == (x + d*p) // (c*d)
	inner, n := -1, 0
	for i, t := range rest {
		if len(t.m) == 1 && t.m[0].p == 1 && t.m[0].x.is(opFloorDiv) {
			if d, ok := t.m[0].x.n.args[1].IsConst(); ok && d > 0 {
				n++
				if t.c == 1 {
					inner = i
				}
			}
		}
	}
	if n == 1 && inner >= 0 {
		fd := rest[inner].m[0].x.n
		d, _ := fd.args[1].IsConst()
		if cd, ok := mulInt(c, d); ok {
			p := Add(fromTerms(slices.Delete(slices.Clone(rest), inner, inner+1)), Const(k))
			if p = Add(fd.args[0], Mul(Const(d), p)); !p.isBad() && !p.is(opAddBig) && !p.is(opMulBig) {
				return Add(w, floorDivConst(p, cd))
			}
		}
	}
	if k != 0 {
		rest = append(rest, term{c: k})
	}
	return Add(w, mk(opFloorDiv, Int, fromTerms(rest), Const(c)))
}

// CeilDiv returns a / b rounded towards plus infinity.
func CeilDiv(a, b Expr) Expr { return Neg(FloorDiv(Neg(a), b)) }

// Mod returns a % b with the sign of b, as Python has it.
func Mod(a, b Expr) Expr {
	if a.n == nil && b.n == nil && b.k != 0 {
		return Const(modInt(a.k, b.k))
	}
	if e, done := integer("%", a, b); done {
		return e
	}
	if c, ok := b.IsConst(); ok {
		switch {
		case c == 0 || c == math.MinInt64:
			return mk(opMod, Int, a, b)
		case c == 1 || c == -1:
			return Const(0)
		}
		if c < 0 {
			return Neg(modConst(Neg(a), -c))
		}
		return modConst(a, c)
	}
	if a.IsConstValue(0) {
		return a
	}
	ta, tb := polyOf(a), polyOf(b)
	if _, ok := divTerms(ta, tb); ok {
		return Const(0)
	}
	if len(tb) == 1 {
		rest := slices.DeleteFunc(slices.Clone(ta), func(t term) bool {
			_, ok := divTerm(t, tb[0])
			return ok
		})
		a = fromTerms(rest)
	}
	return mk(opMod, Int, a, b)
}

// modConst returns a % c for c > 1.
func modConst(a Expr, c int64) Expr {
	if a.isBad() || a.is(opMulBig) {
		return mk(opMod, Int, a, Const(c))
	}
	var rest []term
	var k int64
	g := c
	for _, t := range polyOf(a) {
		if len(t.m) == 0 {
			k = modInt(t.c, c)
			continue
		}
		if t.c %= c; t.c == 0 {
			continue
		}
		if len(t.m) == 1 && t.m[0].p == 1 && t.m[0].x.is(opMod) {
			// (x % d) % c == x % c where c divides d
			in := t.m[0].x.n.args
			if d, ok := in[1].IsConst(); ok && d > 0 && d%c == 0 {
				others, ok := mergeTerms(polyOf(a), []term{t}, -1)
				if x := Mul(Const(t.c), in[0]); ok && !x.isBad() && !x.is(opMulBig) {
					return modConst(Add(fromTerms(others), x), c)
				}
			}
		}
		g = gcd(g, t.c)
		rest = append(rest, t)
	}
	if len(rest) == 0 {
		return Const(k)
	}
	if g > 1 {
		// (g*r + k) % c == g*((r + k//g) % (c/g)) + k%g
		r := make([]term, len(rest))
		for i, t := range rest {
			r[i] = term{t.c / g, t.m}
		}
		var m Expr
		if c != g {
			m = modConst(Add(fromTerms(r), Const(k/g)), c/g)
		}
		return Add(Mul(Const(g), m), Const(k%g))
	}
	if k != 0 {
		rest = append(rest, term{c: k})
	}
	p := fromTerms(rest)
	if r := Bounds(p, unbounded); r.Min >= 0 && r.Max < c {
		return p
	}
	return mk(opMod, Int, p, Const(c))
}

// Max returns the largest of xs, which must not be empty.
func Max(xs ...Expr) Expr { return extremum(opMax, xs, unbounded) }

// Min returns the smallest of xs, which must not be empty.
func Min(xs ...Expr) Expr { return extremum(opMin, xs, unbounded) }

func unbounded(string) Range { return NoRange }

// extremum builds a maximum or minimum, leaving out what the ranges of the
// symbols show to be beaten by another operand.
func extremum(o op, xs []Expr, ranges func(string) Range) Expr {
	name := "max"
	if o == opMin {
		name = "min"
	}
	if len(xs) == 0 {
		return bad("%s of nothing", name)
	}
	if e, done := numeric(name, xs...); done {
		return e
	}
	kind := Int
	for _, x := range xs {
		if x.Kind() == Float {
			kind = Float
		}
	}
	var flat []Expr
	for _, x := range xs {
		if x.is(o) && x.n.kind == kind {
			flat = append(flat, x.n.args...)
		} else {
			flat = append(flat, x)
		}
	}
	slices.SortFunc(flat, compare)
	flat = slices.CompactFunc(flat, Expr.Equal)
	if kind == Float {
		return floatExtremum(o, flat)
	}
	const manyOperands = 16
	kept := flat[:0]
	for i, x := range flat {
		beaten := false
		if len(flat) <= manyOperands {
			// flat[:i] holds kept, which has already lost its beaten operands.
			for _, y := range kept {
				beaten = beaten || beats(o, y, x, ranges)
			}
			for _, y := range flat[i+1:] {
				beaten = beaten || beats(o, y, x, ranges)
			}
		} else if k, ok := x.IsConst(); ok && len(kept) > 0 {
			if j, ok := kept[len(kept)-1].IsConst(); ok {
				kept = kept[:len(kept)-1]
				if o == opMax {
					k = max(k, j)
				} else {
					k = min(k, j)
				}
				x = Const(k)
			}
		}
		if !beaten {
			kept = append(kept, x)
		}
	}
	if len(kept) == 1 {
		return kept[0]
	}
	return mk(o, Int, slices.Clone(kept)...)
}

// beats reports that y makes x redundant in a maximum or minimum.
func beats(o op, y, x Expr, ranges func(string) Range) bool {
	d := Sub(y, x)
	if o == opMin {
		d = Sub(x, y)
	}
	return Bounds(d, ranges).Min >= 0
}

// Abs returns the absolute value of a.
func Abs(a Expr) Expr {
	if e, done := numeric("abs", a); done {
		return e
	}
	if f, ok := a.IsFloat(); ok {
		return ConstFloat(math.Abs(f))
	}
	if a.Kind() == Float {
		return mk(opAbs, Float, a)
	}
	r := Bounds(a, unbounded)
	switch {
	case r.Min >= 0:
		return a
	case r.Max <= 0 && a.n != nil:
		return Neg(a)
	}
	if k, ok := a.IsConst(); ok {
		if k == math.MinInt64 {
			return mk(opAbs, Int, a)
		}
		return Const(-k)
	}
	if n := Neg(a); compare(n, a) < 0 {
		a = n
	}
	return mk(opAbs, Int, a)
}

// Pow returns a ** b. An integer to an integer power is an integer, and the
// exponent must not be negative when it is evaluated; with a float on either
// side the result is a float.
func Pow(a, b Expr) Expr {
	if e, done := numeric("**", a, b); done {
		return e
	}
	if a.Kind() == Float || b.Kind() == Float {
		x, okx := floatConst(a)
		y, oky := floatConst(b)
		if okx && oky {
			return ConstFloat(math.Pow(x, y))
		}
		return mk(opFloatPow, Float, a, b)
	}
	n, ok := b.IsConst()
	if !ok || n < 0 {
		if a.IsConstValue(1) {
			return a
		}
		return mk(opPow, Int, a, b)
	}
	switch {
	case n == 0:
		return Const(1)
	case n == 1:
		return a
	case a.IsConstValue(0), a.IsConstValue(1):
		return a
	}
	if ts, ok := powTerms(polyOf(a), n); ok {
		return fromTerms(ts)
	}
	return mk(opPow, Int, a, b)
}

func powTerms(ts []term, n int64) ([]term, bool) {
	if len(ts) == 1 {
		t := term{c: 1}
		for range n {
			if t.c == 1 && ts[0].c == 1 {
				break
			}
			ok := true
			if t.c, ok = mulInt(t.c, ts[0].c); !ok {
				return nil, false
			}
			if ts[0].c == -1 {
				t.c = 1 - 2*(n%2)
				break
			}
		}
		if n > maxPower || degree(ts[0].m)*n > maxPower {
			return nil, false
		}
		t.m = make([]factor, len(ts[0].m))
		for i, f := range ts[0].m {
			t.m[i] = factor{f.x, f.p * int32(n)}
		}
		return []term{t}, true
	}
	if n > 4 {
		return nil, false
	}
	out, ok := ts, true
	for range n - 1 {
		if out, ok = mulTerms(out, ts); !ok {
			return nil, false
		}
	}
	return out, true
}

// Where returns a if cond, else b.
func Where(cond, a, b Expr) Expr {
	if e, done := boolean("where", cond); done {
		return e
	}
	if a.isBad() {
		return a
	}
	if b.isBad() {
		return b
	}
	if (a.Kind() == Bool) != (b.Kind() == Bool) {
		return bad("where of a bool and a number: %s, %s", short(a), short(b))
	}
	if a.Kind() != b.Kind() {
		a, b = ToFloat(a), ToFloat(b)
	}
	if v, ok := cond.IsBool(); ok {
		if v {
			return a
		}
		return b
	}
	if a.Equal(b) {
		return a
	}
	if a.Kind() == Bool {
		return Or(And(cond, a), And(Not(cond), b))
	}
	return mk(opWhere, a.Kind(), cond, a, b)
}

// BoolToInt returns 1 if b is true, else 0. Integers are returned as they are.
func BoolToInt(b Expr) Expr {
	if b.Kind() == Int {
		return b
	}
	return Where(b, Const(1), Const(0))
}

// BitAnd returns the bitwise and of integers, in two's complement, or And of bools.
func BitAnd(a, b Expr) Expr { return bitwise(opBitAnd, a, b) }

// BitOr returns the bitwise or of integers, in two's complement, or Or of bools.
func BitOr(a, b Expr) Expr { return bitwise(opBitOr, a, b) }

// BitXor returns the bitwise exclusive or of integers, in two's complement, or
// the inequality of bools.
func BitXor(a, b Expr) Expr { return bitwise(opBitXor, a, b) }

func bitwise(o op, a, b Expr) Expr {
	if a.Kind() == Bool && b.Kind() == Bool {
		switch o {
		case opBitAnd:
			return And(a, b)
		case opBitOr:
			return Or(a, b)
		}
		return Ne(a, b)
	}
	if a.Kind() == Bool {
		a = BoolToInt(a)
	}
	if b.Kind() == Bool {
		b = BoolToInt(b)
	}
	if e, done := integer(opNames[o], a, b); done {
		return e
	}
	if x, ok := a.IsConst(); ok {
		if y, ok := b.IsConst(); ok {
			switch o {
			case opBitAnd:
				return Const(x & y)
			case opBitOr:
				return Const(x | y)
			}
			return Const(x ^ y)
		}
	}
	return mk(o, Int, sorted2(a, b)...)
}

// LShift returns a << b.
func LShift(a, b Expr) Expr { return Mul(a, Pow(Const(2), b)) }

// RShift returns a >> b.
func RShift(a, b Expr) Expr { return FloorDiv(a, Pow(Const(2), b)) }

// NonOverlappingAndDense returns 1 if a tensor of those sizes and strides covers
// a block of memory with each element in its own place, else 0.
func NonOverlappingAndDense(sizes, strides []Expr) Expr {
	if len(sizes) != len(strides) {
		return bad("dense: %d sizes, %d strides", len(sizes), len(strides))
	}
	args := slices.Concat(sizes, strides)
	if e, done := integer("dense", args...); done {
		return e
	}
	vals := make([]int64, len(args))
	for i, a := range args {
		k, ok := a.IsConst()
		if !ok {
			return mk(opDense, Int, args...)
		}
		vals[i] = k
	}
	if isDense(vals[:len(sizes)], vals[len(sizes):]) {
		return Const(1)
	}
	return Const(0)
}

func isDense(sizes, strides []int64) bool {
	dims := make([][2]int64, len(sizes))
	for i := range dims {
		dims[i] = [2]int64{strides[i], sizes[i]}
	}
	if len(dims) == 1 {
		return strides[0] == 1 || sizes[0] < 2
	}
	slices.SortStableFunc(dims, func(a, b [2]int64) int { return cmpInt(a[0], b[0]) })
	want := int64(1)
	for _, d := range dims {
		if d[1] == 1 {
			continue
		}
		if d[0] != want {
			return false
		}
		var ok bool
		if want, ok = mulInt(want, d[1]); !ok {
			return false
		}
	}
	return true
}

func gcd(a, b int64) int64 {
	x, y := absInt(a), absInt(b)
	for y != 0 {
		x, y = y, x%y
	}
	return int64(x) // callers pass a positive number first
}

func negTerms(ts []term) ([]term, bool) { return mergeTerms(nil, ts, -1) }

// divTerm returns t / d if d divides t.
func divTerm(t, d term) (term, bool) {
	if t.c%d.c != 0 || d.c == -1 && t.c == math.MinInt64 {
		return term{}, false
	}
	m, ok := divMonomials(t.m, d.m)
	return term{t.c / d.c, m}, ok
}

// divTerms returns a / b if b divides a as a polynomial.
func divTerms(a, b []term) ([]term, bool) {
	var q []term
	for steps := 0; len(a) > 0; steps++ {
		t, ok := divTerm(a[0], b[0])
		if !ok || steps > maxTerms || len(a) > maxTerms {
			return nil, false
		}
		p, ok := mulTerms([]term{t}, b)
		if !ok {
			return nil, false
		}
		if a, ok = mergeTerms(a, p, -1); !ok {
			return nil, false
		}
		q = append(q, t)
	}
	return q, true // in order: leading terms fall
}

// gcdTerms returns the greatest term that divides every term of a and b.
func gcdTerms(a, b []term) term {
	g := term{m: b[0].m}
	for _, ts := range [][]term{b, a} {
		for _, t := range ts {
			if t.c == math.MinInt64 {
				return term{c: 1}
			}
			g.c = gcd(g.c, t.c)
			g.m = gcdMonomials(g.m, t.m)
		}
	}
	return g
}

func gcdMonomials(a, b []factor) []factor {
	var out []factor
	for len(a) > 0 && len(b) > 0 {
		switch c := compare(a[0].x, b[0].x); {
		case c < 0:
			a = a[1:]
		case c > 0:
			b = b[1:]
		default:
			out = append(out, factor{a[0].x, min(a[0].p, b[0].p)})
			a, b = a[1:], b[1:]
		}
	}
	return out
}

// divByTerm returns ts / g, where g divides every term.
func divByTerm(ts []term, g term) []term {
	out := make([]term, 0, len(ts))
	for _, t := range ts {
		if q, ok := divTerm(t, g); ok {
			out = append(out, q)
		}
	}
	return out
}
