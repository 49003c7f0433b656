package sym

import (
	"math"
	"math/bits"
	"strconv"
)

// Range is the set of integers from Min to Max, both included. Min of
// math.MinInt64 and Max of math.MaxInt64 mean no bound on that side.
type Range struct{ Min, Max int64 }

// NoRange has no bounds.
var NoRange = Range{math.MinInt64, math.MaxInt64}

// Empty reports that no integer is in r.
func (r Range) Empty() bool { return r.Min > r.Max }

// Contains reports whether v is in r.
func (r Range) Contains(v int64) bool { return r.Min <= v && v <= r.Max }

// HasMax reports whether r is bounded above.
func (r Range) HasMax() bool { return r.Max != math.MaxInt64 }

// HasMin reports whether r is bounded below.
func (r Range) HasMin() bool { return r.Min != math.MinInt64 }

// Intersect returns the integers in both r and s.
func (r Range) Intersect(s Range) Range { return Range{max(r.Min, s.Min), min(r.Max, s.Max)} }

// Union returns the least range that contains r and s.
func (r Range) Union(s Range) Range { return Range{min(r.Min, s.Min), max(r.Max, s.Max)} }

// String returns r as [min, max], with inf where there is no bound.
func (r Range) String() string {
	b := []byte{'['}
	if r.HasMin() {
		b = strconv.AppendInt(b, r.Min, 10)
	} else {
		b = append(b, "-inf"...)
	}
	b = append(b, ", "...)
	if r.HasMax() {
		b = strconv.AppendInt(b, r.Max, 10)
	} else {
		b = append(b, "inf"...)
	}
	return string(append(b, ']'))
}

func (r Range) within(limit int64) bool { return r.Min >= -limit && r.Max <= limit }

// The ends of ranges are numbers with two infinities; arithmetic on them
// saturates, so that a bound is never on the wrong side.

const (
	minusInf = math.MinInt64
	plusInf  = math.MaxInt64
)

func isInf(a int64) bool { return a == minusInf || a == plusInf }

func satNeg(a int64) int64 {
	switch a {
	case minusInf:
		return plusInf
	case plusInf:
		return minusInf
	}
	return -a
}

// satAdd adds ends of the same side: never opposite infinities.
func satAdd(a, b int64) int64 {
	switch {
	case isInf(a):
		return a
	case isInf(b):
		return b
	}
	s, ok := addInt(a, b)
	if !ok {
		if a < 0 {
			return minusInf
		}
		return plusInf
	}
	return s
}

func satMul(a, b int64) int64 {
	if a == 0 || b == 0 {
		return 0
	}
	if !isInf(a) && !isInf(b) {
		if p, ok := mulInt(a, b); ok {
			return p
		}
	}
	if (a < 0) == (b < 0) {
		return plusInf
	}
	return minusInf
}

// sound moves an end that saturated on the wrong side: every integer may be
// above a Min of plusInf's neighbour, none is above plusInf.
func (r Range) sound() Range {
	if r.Min == plusInf {
		r.Min--
	}
	if r.Max == minusInf {
		r.Max++
	}
	return r
}

func addRange(r, s Range) Range {
	return Range{satAdd(r.Min, s.Min), satAdd(r.Max, s.Max)}.sound()
}

func mulRange(r, s Range) Range {
	a, b, c, d := satMul(r.Min, s.Min), satMul(r.Min, s.Max), satMul(r.Max, s.Min), satMul(r.Max, s.Max)
	return Range{min(a, b, c, d), max(a, b, c, d)}.sound()
}

func powRange(r Range, n int64) Range {
	even := n%2 == 0
	p := func(a int64) int64 {
		v := int64(1)
		for range min(n, 64) { // beyond 64, only 0 and ±1 have not saturated
			if v = satMul(v, a); v == 0 || isInf(v) {
				break
			}
		}
		if a == -1 && !even {
			return -1
		}
		if a < 0 && v != 0 {
			// The sign of a saturated power is that of its parity.
			if even && v < 0 {
				return plusInf
			}
			if !even && v > 0 {
				return minusInf
			}
		}
		return v
	}
	lo, hi := p(r.Min), p(r.Max)
	if !even {
		return Range{lo, hi}
	}
	out := Range{min(lo, hi), max(lo, hi)}
	if r.Contains(0) {
		out.Min = 0
	}
	return out
}

// floorDivEnd divides ends; b is not 0.
func floorDivEnd(a, b int64) int64 {
	switch {
	case isInf(a):
		if (a < 0) == (b < 0) {
			return plusInf
		}
		return minusInf
	case isInf(b):
		if a != 0 && (a < 0) != (b < 0) {
			return -1
		}
		return 0
	}
	q, ok := floorDivInt(a, b)
	if !ok {
		return plusInf
	}
	return q
}

// floorDivRange bounds a // b over the nonzero divisors in s. The quotient is
// monotone in each operand while the divisor keeps its sign.
func floorDivRange(r, s Range) Range {
	out, any := Range{}, false
	part := func(s Range) {
		if s.Empty() {
			return
		}
		a, b, c, d := floorDivEnd(r.Min, s.Min), floorDivEnd(r.Min, s.Max), floorDivEnd(r.Max, s.Min), floorDivEnd(r.Max, s.Max)
		q := Range{min(a, b, c, d), max(a, b, c, d)}
		if any {
			q = q.Union(out)
		}
		out, any = q, true
	}
	part(s.Intersect(Range{1, plusInf}))
	part(s.Intersect(Range{minusInf, -1}))
	if !any {
		return NoRange
	}
	return out
}

func modRange(r, s Range) Range {
	out := Range{0, 0}
	if s.Max > 0 {
		out.Max = s.Max
		if s.HasMax() {
			out.Max--
		}
		if s.Min > 0 && r.Min >= 0 {
			if r.HasMax() && r.Max < s.Min {
				return r
			}
			out.Max = min(out.Max, r.Max)
		}
	}
	if s.Min < 0 {
		out.Min = s.Min
		if s.HasMin() {
			out.Min++
		}
		if r.Min >= 0 && s.Max < 0 || r.Max > 0 {
			// nothing tighter is worth the cases
			return out
		}
	}
	return out
}

// Bounds returns a range that contains every value the integer (or bool, as 0
// or 1) expression e takes while each symbol is within ranges(name). It is
// sound, not always tight. Expressions of other kinds have no bounds.
func Bounds(e Expr, ranges func(name string) Range) Range {
	return bounds(e, ranges).sound()
}

func bounds(e Expr, ranges func(name string) Range) Range {
	n := e.n
	if n == nil {
		return Range{e.k, e.k}
	}
	if n.kind == Bool {
		if v, known := boundsBool(e, ranges); known {
			if v {
				return Range{1, 1}
			}
			return Range{0, 0}
		}
		return Range{0, 1}
	}
	if n.kind != Int {
		return NoRange
	}
	arg := func(i int) Range { return Bounds(n.args[i], ranges) }
	switch n.op {
	case opSymbol:
		return ranges(n.name)
	case opPoly:
		var sum Range
		for _, t := range n.terms {
			p := Range{t.c, t.c}.sound()
			for _, f := range t.m {
				b := Bounds(f.x, ranges)
				if f.p > 1 {
					b = powRange(b, int64(f.p)).sound()
				}
				p = mulRange(p, b)
			}
			sum = addRange(sum, p)
		}
		return sum
	case opAddBig:
		return addRange(arg(0), arg(1))
	case opMulBig:
		return mulRange(arg(0), arg(1))
	case opFloorDiv:
		return floorDivRange(arg(0), arg(1))
	case opMod:
		return modRange(arg(0), arg(1))
	case opMax, opMin:
		r := arg(0)
		for i := range n.args[1:] {
			s := arg(i + 1)
			if n.op == opMax {
				r = Range{max(r.Min, s.Min), max(r.Max, s.Max)}
			} else {
				r = Range{min(r.Min, s.Min), min(r.Max, s.Max)}
			}
		}
		return r
	case opAbs:
		r := arg(0)
		neg := Range{satNeg(r.Max), satNeg(r.Min)}
		out := Range{max(r.Min, neg.Min, 0), max(r.Max, neg.Max)}
		return out
	case opPow:
		b, x := arg(0), arg(1)
		if x.Min == x.Max && x.Min >= 0 && !isInf(x.Min) {
			return powRange(b, x.Min)
		}
		if b.Min >= 1 {
			lo, hi := powRange(b, max(x.Min, 0)), Range{plusInf, plusInf}
			if x.HasMax() && x.Max >= 0 {
				hi = powRange(b, x.Max)
			}
			return Range{lo.Min, max(lo.Max, hi.Max)}
		}
		if b.Min >= 0 {
			return Range{0, plusInf}
		}
	case opBitAnd:
		a, b := arg(0), arg(1)
		switch {
		case a.Min >= 0 && b.Min >= 0:
			return Range{0, min(a.Max, b.Max)}
		case a.Min >= 0:
			return Range{0, a.Max}
		case b.Min >= 0:
			return Range{0, b.Max}
		}
	case opBitOr, opBitXor:
		a, b := arg(0), arg(1)
		if a.Min >= 0 && b.Min >= 0 {
			r := Range{0, plusInf}
			if a.HasMax() && b.HasMax() {
				r.Max = 1<<bits.Len64(uint64(a.Max|b.Max)) - 1
			}
			if n.op == opBitOr {
				r.Min = max(a.Min, b.Min)
			}
			return r
		}
	case opDense:
		return Range{0, 1}
	case opWhere:
		if v, known := boundsBool(n.args[0], ranges); known {
			if v {
				return arg(1)
			}
			return arg(2)
		}
		return arg(1).Union(arg(2))
	}
	return NoRange
}

// boundsBool decides a truth value from the ranges of the symbols.
func boundsBool(e Expr, ranges func(string) Range) (value, known bool) {
	n := e.n
	switch n.op {
	case opBool:
		return e.k != 0, true
	case opNot:
		v, known := boundsBool(n.args[0], ranges)
		return !v && known, known
	case opAnd, opOr:
		all := true
		for _, a := range n.args {
			v, known := boundsBool(a, ranges)
			if known && v == (n.op == opOr) {
				return v, true
			}
			all = all && known
		}
		return n.op == opAnd && all, all
	case opEq, opNe, opLe, opGe, opLt, opGt:
		a, b := n.args[0], n.args[1]
		if a.Kind() == Int && b.Kind() == Int {
			return decide(n.op, a, b, ranges)
		}
		if a.Kind() == Bool {
			x, okx := boundsBool(a, ranges)
			y, oky := boundsBool(b, ranges)
			if okx && oky {
				return (x == y) == (n.op == opEq), true
			}
		}
	}
	return false, false
}
