package sym

import (
	"math"
	"math/big"
	"slices"
)

// floatConst returns the float64 value of a constant number.
func floatConst(e Expr) (float64, bool) {
	if k, ok := e.IsConst(); ok {
		return float64(k), true
	}
	return e.IsFloat()
}

func floatAdd(a, b Expr) Expr {
	x, okx := floatConst(a)
	y, oky := floatConst(b)
	if okx && oky {
		return ConstFloat(x + y)
	}
	return mk(opFloatAdd, Float, sorted2(a, b)...)
}

func floatMul(a, b Expr) Expr {
	x, okx := floatConst(a)
	y, oky := floatConst(b)
	if okx && oky {
		return ConstFloat(x * y)
	}
	if a.IsConstValue(1) {
		return b
	}
	if b.IsConstValue(1) {
		return a
	}
	return mk(opFloatMul, Float, sorted2(a, b)...)
}

// floatExtremum takes operands in order, without repetition.
func floatExtremum(o op, xs []Expr) Expr {
	acc, seen, out := 0.0, false, []Expr(nil)
	for _, x := range xs {
		f, ok := floatConst(x)
		switch {
		case !ok:
			out = append(out, x)
		case !seen:
			acc, seen = f, true
		case o == opMax:
			acc = math.Max(acc, f)
		default:
			acc = math.Min(acc, f)
		}
	}
	if seen {
		out = append(out, ConstFloat(acc))
		slices.SortFunc(out, compare)
	}
	if len(out) == 1 {
		return ToFloat(out[0])
	}
	return mk(o, Float, out...)
}

func floatRelation(o op, a, b Expr) Expr {
	x, okx := floatConst(a)
	y, oky := floatConst(b)
	if okx && oky {
		return ConstBool(holdsFloat(o, x, y))
	}
	switch o {
	case opGt:
		return mk(opLt, Bool, b, a)
	case opGe:
		return mk(opLe, Bool, b, a)
	}
	if (o == opEq || o == opNe) && compare(b, a) < 0 {
		a, b = b, a
	}
	return mk(o, Bool, a, b)
}

func holdsFloat(o op, x, y float64) bool {
	switch o {
	case opEq:
		return x == y
	case opNe:
		return x != y
	case opLt:
		return x < y
	case opLe:
		return x <= y
	case opGt:
		return x > y
	}
	return x >= y
}

// TrueDiv returns a / b as a float. Two integers are divided exactly and
// rounded once, as Python does.
func TrueDiv(a, b Expr) Expr {
	if e, done := numeric("/", a, b); done {
		return e
	}
	if x, ok := a.IsConst(); ok {
		if y, ok := b.IsConst(); ok && y != 0 {
			return ConstFloat(divInts(big.NewInt(x), big.NewInt(y)))
		}
	}
	x, okx := floatConst(a)
	y, oky := floatConst(b)
	if okx && oky && y != 0 {
		return ConstFloat(x / y)
	}
	return mk(opTrueDiv, Float, a, b)
}

func divInts(a, b *big.Int) float64 {
	f, _ := new(big.Rat).SetFrac(a, b).Float64()
	return f
}

// ToFloat returns a as a float.
func ToFloat(a Expr) Expr {
	if e, done := numeric("float", a); done {
		return e
	}
	if a.Kind() == Float {
		return a
	}
	if k, ok := a.IsConst(); ok {
		return ConstFloat(float64(k))
	}
	return mk(opToFloat, Float, a)
}

// Floor returns the largest integer that is at most a.
func Floor(a Expr) Expr { return toInt(opFloor, a) }

// Ceil returns the smallest integer that is at least a.
func Ceil(a Expr) Expr { return toInt(opCeil, a) }

// Trunc returns a rounded towards zero, as an integer.
func Trunc(a Expr) Expr { return toInt(opTrunc, a) }

// Round returns a rounded to the nearest integer, halves to the even one.
func Round(a Expr) Expr { return toInt(opRound, a) }

func toInt(o op, a Expr) Expr {
	if e, done := numeric(opNames[o], a); done {
		return e
	}
	if a.Kind() == Int {
		return a
	}
	if f, ok := a.IsFloat(); ok {
		if f = roundFloat(o, f); f >= -(1<<63) && f < 1<<63 {
			return Const(int64(f))
		}
	}
	if a.is(opToFloat) && Bounds(a.n.args[0], unbounded).within(1<<53) {
		return a.n.args[0]
	}
	return mk(o, Int, a)
}

func roundFloat(o op, f float64) float64 {
	switch o {
	case opFloor:
		return math.Floor(f)
	case opCeil:
		return math.Ceil(f)
	case opRound:
		return math.RoundToEven(f)
	}
	return math.Trunc(f)
}

// TruncFloat returns a rounded towards zero, as a float.
func TruncFloat(a Expr) Expr {
	if e, done := numeric("truncf", a); done {
		return e
	}
	if f, ok := floatConst(a); ok {
		return ConstFloat(math.Trunc(f))
	}
	return mk(opTruncFloat, Float, a)
}

// RoundDecimal returns a rounded to digits decimal places, as Python's round
// does: correctly, halves of the exact binary value to even.
func RoundDecimal(a, digits Expr) Expr {
	if e, done := numeric("round", a); done {
		return e
	}
	if e, done := integer("round", digits); done {
		return e
	}
	f, okf := floatConst(a)
	d, okd := digits.IsConst()
	if okf && okd {
		return ConstFloat(roundDecimal(f, d))
	}
	return mk(opRoundDecimal, Float, a, digits)
}

// Unary returns the float function name (sqrt, exp, log, log2, sin, …) of a.
func Unary(name string, a Expr) Expr {
	fn, ok := unaryFuncs[name]
	if !ok {
		return bad("unknown function %.40q", name)
	}
	if e, done := numeric(name, a); done {
		return e
	}
	if f, ok := floatConst(a); ok {
		return ConstFloat(fn(f))
	}
	return mkNamed(opUnary, Float, name, a)
}

var unaryFuncs = map[string]func(float64) float64{
	"sqrt": math.Sqrt, "exp": math.Exp, "log": math.Log, "log2": math.Log2,
	"sin": math.Sin, "cos": math.Cos, "tan": math.Tan,
	"sinh": math.Sinh, "cosh": math.Cosh, "tanh": math.Tanh,
	"asin": math.Asin, "acos": math.Acos, "atan": math.Atan, "asinh": math.Asinh,
}
