package sym

import "testing"

// Putting the parts together again must give the expression, whatever it is.
func TestParts(t *testing.T) {
	a, b := Symbol("s0"), Symbol("s1")
	var again func(e Expr) Expr
	again = func(e Expr) Expr {
		o, args := e.Parts()
		as := make([]Expr, len(args))
		for i, x := range args {
			as[i] = again(x)
		}
		switch o {
		case OpConst, OpSymbol:
			return e
		case OpAdd:
			return Sum(as...)
		case OpMul:
			return Prod(as...)
		case OpFloorDiv:
			return FloorDiv(as[0], as[1])
		case OpMod:
			return Mod(as[0], as[1])
		case OpMax:
			return Max(as...)
		case OpMin:
			return Min(as...)
		case OpWhere:
			return Where(as[0], as[1], as[2])
		case OpLt:
			return Lt(as[0], as[1])
		case OpLe:
			return Le(as[0], as[1])
		case OpGt:
			return Gt(as[0], as[1])
		case OpGe:
			return Ge(as[0], as[1])
		}
		t.Fatalf("%s: operation %d", e, o)
		return e
	}
	for _, e := range []Expr{
		Const(7),
		a,
		Add(Mul(Const(3), Mul(a, a)), Sub(b, Const(4))),
		Sub(Const(0), a),
		FloorDiv(Add(a, b), Const(3)),
		Mod(Mul(a, b), b),
		Max(a, Min(b, Const(5)), Const(2)),
		Where(Lt(a, b), a, Mul(Const(2), b)),
	} {
		if got := again(e); !got.Equal(e) {
			t.Errorf("%s came back as %s", e, got)
		}
	}
}
