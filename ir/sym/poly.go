package sym

import (
	"math"
	"math/bits"
	"slices"
)

// Add returns a + b.
func Add(a, b Expr) Expr {
	if a.n == nil && b.n == nil {
		if s, ok := addInt(a.k, b.k); ok {
			return Const(s)
		}
		return mk(opAddBig, Int, sorted2(a, b)...)
	}
	if e, done := numeric("+", a, b); done {
		return e
	}
	if a.Kind() == Float || b.Kind() == Float {
		return floatAdd(a, b)
	}
	if a.IsConstValue(0) {
		return b
	}
	if b.IsConstValue(0) {
		return a
	}
	ts, ok := mergeTerms(polyOf(a), polyOf(b), 1)
	if !ok {
		return mk(opAddBig, Int, sorted2(a, b)...)
	}
	return fromTerms(ts)
}

// Sub returns a - b.
func Sub(a, b Expr) Expr {
	if a.n == nil && b.n == nil {
		if k, ok := subInt(a.k, b.k); ok {
			return Const(k)
		}
	}
	if a.Kind() == Int && b.Kind() == Int {
		if ts, ok := mergeTerms(polyOf(a), polyOf(b), -1); ok {
			return fromTerms(ts)
		}
	}
	return Add(a, Neg(b))
}

// Neg returns -a.
func Neg(a Expr) Expr { return Mul(Const(-1), a) }

// Mul returns a * b.
func Mul(a, b Expr) Expr {
	if a.n == nil && b.n == nil {
		if p, ok := mulInt(a.k, b.k); ok {
			return Const(p)
		}
		return mk(opMulBig, Int, sorted2(a, b)...)
	}
	if e, done := numeric("*", a, b); done {
		return e
	}
	if a.Kind() == Float || b.Kind() == Float {
		return floatMul(a, b)
	}
	switch {
	case a.IsConstValue(0), b.IsConstValue(0):
		return Const(0)
	case a.IsConstValue(1):
		return b
	case b.IsConstValue(1):
		return a
	}
	if ts, ok := mulTerms(polyOf(a), polyOf(b)); ok {
		return fromTerms(ts)
	}
	return mk(opMulBig, Int, sorted2(a, b)...)
}

// Sum returns the sum of xs, 0 when there are none.
func Sum(xs ...Expr) Expr {
	if len(xs) > 2 {
		var ts []term
		ints := true
		for _, x := range xs {
			if ints = ints && x.Kind() == Int; ints {
				ts = append(ts, polyOf(x)...)
			}
		}
		if ints {
			if ts, ok := combine(ts); ok {
				return fromTerms(ts)
			}
		}
	}
	if len(xs) == 0 {
		return Const(0)
	}
	s := xs[0]
	for _, x := range xs[1:] {
		s = Add(s, x)
	}
	return s
}

// Prod returns the product of xs, 1 when there are none.
func Prod(xs ...Expr) Expr {
	if len(xs) == 0 {
		return Const(1)
	}
	p := xs[0]
	for _, x := range xs[1:] {
		p = Mul(p, x)
	}
	return p
}

// numeric passes on an invalid operand, and makes one of an operand that is not
// a number.
func numeric(what string, xs ...Expr) (Expr, bool) {
	for _, x := range xs {
		if x.isBad() {
			return x, true
		}
	}
	for _, x := range xs {
		if x.Kind() == Bool {
			return bad("operand of %s is a bool: %s", what, short(x)), true
		}
	}
	return Expr{}, false
}

func sorted2(a, b Expr) []Expr {
	if compare(b, a) < 0 {
		a, b = b, a
	}
	return []Expr{a, b}
}

// polyOf returns the terms of an integer expression.
func polyOf(e Expr) []term {
	switch {
	case e.n == nil && e.k == 0:
		return nil
	case e.n == nil:
		return []term{{c: e.k}}
	case e.n.op == opPoly:
		return e.n.terms
	}
	return []term{{c: 1, m: []factor{{x: e, p: 1}}}}
}

// fromTerms returns the sum of ts, which must be sorted and combined.
func fromTerms(ts []term) Expr {
	switch len(ts) {
	case 0:
		return Const(0)
	case 1:
		t := ts[0]
		if len(t.m) == 0 {
			return Const(t.c)
		}
		if t.c == 1 && len(t.m) == 1 && t.m[0].p == 1 {
			return t.m[0].x
		}
	}
	return mkPoly(ts)
}

// mergeTerms returns a + sign*b, and false if a coefficient overflows.
func mergeTerms(a, b []term, sign int64) ([]term, bool) {
	out := make([]term, 0, len(a)+len(b))
	for len(a) > 0 || len(b) > 0 {
		c := 0
		switch {
		case len(a) == 0:
			c = 1
		case len(b) == 0:
			c = -1
		default:
			c = compareMonomials(a[0].m, b[0].m)
		}
		if c < 0 {
			out = append(out, a[0])
			a = a[1:]
			continue
		}
		t := b[0]
		ok := true
		if t.c, ok = mulInt(t.c, sign); !ok {
			return nil, false
		}
		b = b[1:]
		if c == 0 {
			if t.c, ok = addInt(t.c, a[0].c); !ok {
				return nil, false
			}
			a = a[1:]
		}
		if t.c != 0 {
			out = append(out, t)
		}
	}
	return out, true
}

// mulTerms returns a * b, and false if a coefficient overflows or there would be
// too many terms.
func mulTerms(a, b []term) ([]term, bool) {
	if len(a) > 1 && len(b) > 1 && len(a)*len(b) > maxTerms {
		return nil, false
	}
	out := make([]term, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			c, ok := mulInt(x.c, y.c)
			if !ok {
				return nil, false
			}
			m, ok := mulMonomials(x.m, y.m)
			if !ok {
				return nil, false
			}
			out = append(out, term{c, m})
		}
	}
	return combine(out)
}

func combine(ts []term) ([]term, bool) {
	slices.SortStableFunc(ts, func(x, y term) int { return compareMonomials(x.m, y.m) })
	out := ts[:0]
	for _, t := range ts {
		if n := len(out); n > 0 && compareMonomials(out[n-1].m, t.m) == 0 {
			c, ok := addInt(out[n-1].c, t.c)
			if !ok {
				return nil, false
			}
			out[n-1].c = c
			continue
		}
		out = append(out, t)
	}
	return slices.DeleteFunc(out, func(t term) bool { return t.c == 0 }), true
}

func mulMonomials(a, b []factor) ([]factor, bool) {
	if len(a) == 0 {
		return b, true
	}
	if len(b) == 0 {
		return a, true
	}
	out := make([]factor, 0, len(a)+len(b))
	for len(a) > 0 || len(b) > 0 {
		c := 0
		switch {
		case len(a) == 0:
			c = 1
		case len(b) == 0:
			c = -1
		default:
			c = compare(a[0].x, b[0].x)
		}
		switch {
		case c < 0:
			out, a = append(out, a[0]), a[1:]
		case c > 0:
			out, b = append(out, b[0]), b[1:]
		default:
			out = append(out, factor{a[0].x, a[0].p + b[0].p})
			a, b = a[1:], b[1:]
		}
	}
	return out, degree(out) <= maxPower
}

// divMonomials returns a / b, and false if b does not divide a.
func divMonomials(a, b []factor) ([]factor, bool) {
	if len(b) == 0 {
		return a, true
	}
	out := make([]factor, 0, len(a))
	for _, f := range a {
		if len(b) > 0 {
			switch c := compare(f.x, b[0].x); {
			case c > 0:
				return nil, false
			case c == 0:
				if f.p < b[0].p {
					return nil, false
				}
				f.p -= b[0].p
				b = b[1:]
			}
		}
		if f.p > 0 {
			out = append(out, f)
		}
	}
	return out, len(b) == 0
}

func degree(m []factor) int64 {
	var d int64
	for _, f := range m {
		d += int64(f.p)
	}
	return d
}

// compareMonomials orders by falling degree, then by the factors. The order is
// compatible with multiplication, which polynomial division needs.
func compareMonomials(a, b []factor) int {
	if c := cmpInt(degree(b), degree(a)); c != 0 {
		return c
	}
	for i := range min(len(a), len(b)) {
		if c := compare(a[i].x, b[i].x); c != 0 {
			return c
		}
		if c := cmpInt(int64(b[i].p), int64(a[i].p)); c != 0 {
			return c
		}
	}
	return cmpInt(int64(len(a)), int64(len(b)))
}

func addInt(a, b int64) (int64, bool) {
	s := a + b
	return s, (a^s)&(b^s) >= 0
}

func subInt(a, b int64) (int64, bool) {
	d := a - b
	return d, (a^b)&(a^d) >= 0
}

func mulInt(a, b int64) (int64, bool) {
	if a == 0 || b == 0 {
		return 0, true
	}
	hi, lo := bits.Mul64(absInt(a), absInt(b))
	if hi != 0 {
		return 0, false
	}
	if (a < 0) == (b < 0) {
		return int64(lo), lo <= math.MaxInt64
	}
	return -int64(lo), lo <= 1<<63
}

func absInt(a int64) uint64 {
	if a < 0 {
		return -uint64(a)
	}
	return uint64(a)
}

// floorDivInt returns a // b as Python does, for b != 0; false on overflow.
func floorDivInt(a, b int64) (int64, bool) {
	if a == math.MinInt64 && b == -1 {
		return 0, false
	}
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q, true
}

// modInt returns a % b as Python does, for b != 0.
func modInt(a, b int64) int64 {
	if b == -1 {
		return 0
	}
	r := a % b
	if r != 0 && (r < 0) != (b < 0) {
		r += b
	}
	return r
}
