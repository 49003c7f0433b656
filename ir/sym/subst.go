package sym

import "slices"

// Subst replaces symbols by expressions and simplifies again.
func Subst(e Expr, with map[string]Expr) Expr {
	if len(with) == 0 {
		return e
	}
	return rebuild(e, func(x Expr) Expr {
		if name, ok := x.IsSymbol(); ok {
			if y, ok := with[name]; ok {
				return y
			}
		}
		return x
	}, map[*node]Expr{})
}

// rebuild maps e from the leaves up, each node once.
func rebuild(e Expr, f func(Expr) Expr, memo map[*node]Expr) Expr {
	n := e.n
	if n == nil || n.op == opBool || n.op == opFloat || n.op == opBad {
		return e
	}
	if r, ok := memo[n]; ok {
		return r
	}
	r := e
	switch n.op {
	case opSymbol:
	case opPoly:
		changed := false
		xs := make([][]Expr, len(n.terms))
		for i, t := range n.terms {
			xs[i] = make([]Expr, len(t.m))
			for j, fac := range t.m {
				xs[i][j] = rebuild(fac.x, f, memo)
				changed = changed || xs[i][j].n != fac.x.n || xs[i][j].k != fac.x.k
			}
		}
		if changed {
			r = Const(0)
			for i, t := range n.terms {
				p := Const(t.c)
				for j, fac := range t.m {
					p = Mul(p, Pow(xs[i][j], Const(int64(fac.p))))
				}
				r = Add(r, p)
			}
		}
	default:
		changed := false
		args := make([]Expr, len(n.args))
		for i, a := range n.args {
			args[i] = rebuild(a, f, memo)
			changed = changed || args[i].n != a.n || args[i].k != a.k
		}
		if changed {
			r = build(n.op, n.name, args)
		}
	}
	r = f(r)
	memo[n] = r
	return r
}

// build applies the constructor of o.
func build(o op, name string, a []Expr) Expr {
	switch o {
	case opFloorDiv:
		return FloorDiv(a[0], a[1])
	case opMod:
		return Mod(a[0], a[1])
	case opMax:
		return Max(a...)
	case opMin:
		return Min(a...)
	case opAbs:
		return Abs(a[0])
	case opPow, opFloatPow:
		return Pow(a[0], a[1])
	case opAddBig, opFloatAdd:
		return Add(a[0], a[1])
	case opMulBig, opFloatMul:
		return Mul(a[0], a[1])
	case opBitAnd, opBitOr, opBitXor:
		return bitwise(o, a[0], a[1])
	case opDense:
		return NonOverlappingAndDense(a[:len(a)/2], a[len(a)/2:])
	case opWhere:
		return Where(a[0], a[1], a[2])
	case opEq, opNe, opLe, opGe, opLt, opGt:
		return relation(o, a[0], a[1])
	case opAnd, opOr:
		return junction(o, a)
	case opNot:
		return Not(a[0])
	case opToFloat:
		return ToFloat(a[0])
	case opTrueDiv:
		return TrueDiv(a[0], a[1])
	case opFloor, opCeil, opTrunc, opRound:
		return toInt(o, a[0])
	case opTruncFloat:
		return TruncFloat(a[0])
	case opRoundDecimal:
		return RoundDecimal(a[0], a[1])
	case opUnary:
		return Unary(name, a[0])
	}
	return bad("cannot rebuild %q", opNames[min(o, opBad)])
}

// Symbols returns the names of the symbols of e, sorted, s2 before s10.
func Symbols(e Expr) []string {
	if e.n == nil {
		return nil
	}
	if e.n.op == opSymbol {
		return []string{e.n.name}
	}
	var names []string
	seen := map[*node]bool{}
	var walk func(Expr)
	walk = func(e Expr) {
		if e.n == nil || seen[e.n] {
			return
		}
		seen[e.n] = true
		if e.n.op == opSymbol {
			names = append(names, e.n.name)
		}
		for _, a := range e.n.args {
			walk(a)
		}
		for _, t := range e.n.terms {
			for _, f := range t.m {
				walk(f.x)
			}
		}
	}
	walk(e)
	slices.SortFunc(names, compareNames)
	return slices.Compact(names)
}

// SolveLinear returns a and b of e = a*sym + b, and false when e does not have
// that form with constants a and b.
func SolveLinear(e Expr, sym string) (a, b int64, ok bool) {
	if e.Kind() != Int {
		return 0, 0, false
	}
	for _, t := range polyOf(e) {
		switch {
		case len(t.m) == 0:
			b = t.c
		case len(t.m) == 1 && t.m[0].p == 1 && t.m[0].x.is(opSymbol) && t.m[0].x.n.name == sym:
			a = t.c
		default:
			return 0, 0, false
		}
	}
	return a, b, true
}

// CoeffOf splits e into a*x + b, for a constant a, where b has no term that is a
// multiple of x alone. x must be a symbol or another atom.
func CoeffOf(e, x Expr) (a int64, b Expr) {
	if e.Kind() != Int || x.n == nil || x.is(opPoly) {
		return 0, e
	}
	var rest []term
	for _, t := range polyOf(e) {
		if len(t.m) == 1 && t.m[0].p == 1 && t.m[0].x.Equal(x) {
			a = t.c
		} else {
			rest = append(rest, t)
		}
	}
	return a, fromTerms(rest)
}
