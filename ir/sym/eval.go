package sym

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
)

// Env gives symbols their values.
type Env interface {
	Lookup(name string) (int64, bool)
}

// FloatEnv is an Env that also has values for float symbols.
type FloatEnv interface {
	Env
	LookupFloat(name string) (float64, bool)
}

// MapEnv is an Env of the symbols of a map.
type MapEnv map[string]int64

// Lookup returns the value of the symbol of that name.
func (m MapEnv) Lookup(name string) (int64, bool) {
	v, ok := m[name]
	return v, ok
}

// Errors of evaluation, found with errors.Is.
var (
	ErrDivideByZero = errors.New("division by zero")
	ErrOverflow     = errors.New("value does not fit 64 bits")
	ErrUnknown      = errors.New("unknown symbol")
)

// maxBits bounds intermediate results.
const maxBits = 1 << 12

// Eval returns the integer e under env. The result is exact: only a final value
// (or an absurdly large intermediate one) that does not fit is ErrOverflow. A
// bool counts as 0 or 1; a float is an error.
func Eval(e Expr, env Env) (int64, error) {
	if e.n == nil {
		return e.k, nil
	}
	switch e.Kind() {
	case Bool:
		b, err := EvalBool(e, env)
		if b {
			return 1, err
		}
		return 0, err
	case Float:
		return 0, fmt.Errorf("%s is a float, not an integer", short(e))
	}
	if v, ok := evalFast(e, env); ok {
		return v, nil
	}
	v, err := evalBig(e, env)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", short(e), err)
	}
	if !v.IsInt64() {
		return 0, fmt.Errorf("%s: %w", short(e), ErrOverflow)
	}
	return v.Int64(), nil
}

// evalFast evaluates the common operations in 64 bits; false means to take the
// exact way, which also finds the error.
func evalFast(e Expr, env Env) (int64, bool) {
	n := e.n
	if n == nil {
		return e.k, true
	}
	switch n.op {
	case opSymbol:
		return env.Lookup(n.name)
	case opPoly:
		var sum int64
		for _, t := range n.terms {
			v := t.c
			for _, f := range t.m {
				x, ok := evalFast(f.x, env)
				if !ok {
					return 0, false
				}
				for range f.p {
					if v, ok = mulInt(v, x); !ok {
						return 0, false
					}
					if v == 0 {
						break
					}
				}
			}
			var ok bool
			if sum, ok = addInt(sum, v); !ok {
				return 0, false
			}
		}
		return sum, true
	case opFloorDiv, opMod:
		a, oka := evalFast(n.args[0], env)
		b, okb := evalFast(n.args[1], env)
		if !oka || !okb || b == 0 {
			return 0, false
		}
		if n.op == opMod {
			return modInt(a, b), true
		}
		return floorDivInt(a, b)
	case opMax, opMin:
		var best int64
		for i, a := range n.args {
			v, ok := evalFast(a, env)
			if !ok {
				return 0, false
			}
			if i == 0 || (v > best) == (n.op == opMax) {
				best = v
			}
		}
		return best, true
	}
	return 0, false
}

func evalBig(e Expr, env Env) (*big.Int, error) {
	n := e.n
	if n == nil {
		return big.NewInt(e.k), nil
	}
	if n.kind == Bool {
		b, err := EvalBool(e, env)
		if b {
			return big.NewInt(1), err
		}
		return new(big.Int), err
	}
	switch n.op {
	case opBad:
		return nil, e.Err()
	case opSymbol:
		v, ok := env.Lookup(n.name)
		if !ok {
			return nil, fmt.Errorf("%w %s", ErrUnknown, n.name)
		}
		return big.NewInt(v), nil
	case opPoly:
		sum := new(big.Int)
		for _, t := range n.terms {
			v := big.NewInt(t.c)
			for _, f := range t.m {
				x, err := evalBig(f.x, env)
				if err != nil {
					return nil, err
				}
				if x, err = powBig(x, int64(f.p)); err != nil {
					return nil, err
				}
				if v.Mul(v, x); v.BitLen() > maxBits {
					return nil, ErrOverflow
				}
			}
			sum.Add(sum, v)
		}
		return sum, nil
	case opWhere:
		c, err := EvalBool(n.args[0], env)
		if err != nil {
			return nil, err
		}
		if c {
			return evalBig(n.args[1], env)
		}
		return evalBig(n.args[2], env)
	case opFloor, opCeil, opTrunc, opRound:
		f, err := EvalFloat(n.args[0], env)
		if err != nil {
			return nil, err
		}
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, fmt.Errorf("cannot convert float %v to integer", f)
		}
		v, _ := big.NewFloat(roundFloat(n.op, f)).Int(nil)
		return v, nil
	}
	args := make([]*big.Int, len(n.args))
	for i, a := range n.args {
		v, err := evalBig(a, env)
		if err != nil {
			return nil, err
		}
		args[i] = v
	}
	a, b := args[0], args[len(args)-1]
	switch n.op {
	case opFloorDiv, opMod:
		if b.Sign() == 0 {
			return nil, ErrDivideByZero
		}
		q, r := new(big.Int).QuoRem(a, b, new(big.Int))
		if r.Sign() != 0 && r.Sign() != b.Sign() {
			q.Sub(q, big.NewInt(1))
			r.Add(r, b)
		}
		if n.op == opMod {
			return r, nil
		}
		return q, nil
	case opMax, opMin:
		best := args[0]
		for _, v := range args[1:] {
			if (v.Cmp(best) > 0) == (n.op == opMax) {
				best = v
			}
		}
		return best, nil
	case opAbs:
		return new(big.Int).Abs(a), nil
	case opPow:
		if b.Sign() < 0 {
			return nil, fmt.Errorf("negative exponent %v", b)
		}
		if a.BitLen() <= 1 || b.Sign() == 0 { // -1, 0, 1
			return new(big.Int).Exp(a, new(big.Int).Add(new(big.Int).And(b, big.NewInt(1)), signum2(b)), nil), nil
		}
		if !b.IsInt64() {
			return nil, ErrOverflow
		}
		return powBig(a, b.Int64())
	case opAddBig:
		return new(big.Int).Add(a, b), nil
	case opMulBig:
		v := new(big.Int).Mul(a, b)
		if v.BitLen() > maxBits {
			return nil, ErrOverflow
		}
		return v, nil
	case opBitAnd:
		return new(big.Int).And(a, b), nil
	case opBitOr:
		return new(big.Int).Or(a, b), nil
	case opBitXor:
		return new(big.Int).Xor(a, b), nil
	case opDense:
		vals := make([]int64, len(args))
		for i, v := range args {
			if !v.IsInt64() {
				return nil, ErrOverflow
			}
			vals[i] = v.Int64()
		}
		if isDense(vals[:len(vals)/2], vals[len(vals)/2:]) {
			return big.NewInt(1), nil
		}
		return new(big.Int), nil
	}
	return nil, fmt.Errorf("no integer value for %q", opNames[n.op])
}

// signum2 returns 2 for a positive number, so that the small exponent with the
// same parity is positive too, and 0 for 0.
func signum2(b *big.Int) *big.Int { return big.NewInt(int64(2 * b.Sign())) }

func powBig(a *big.Int, n int64) (*big.Int, error) {
	if n == 1 {
		return a, nil
	}
	if a.BitLen() > 1 && n > maxBits || int64(a.BitLen())*min(n, maxBits) > 2*maxBits {
		return nil, ErrOverflow
	}
	if a.BitLen() <= 1 {
		n = min(n, 2+n%2)
	}
	return new(big.Int).Exp(a, big.NewInt(n), nil), nil
}

// EvalBool returns the truth value e under env; a number is true unless it is 0.
func EvalBool(e Expr, env Env) (bool, error) {
	if e.Kind() == Int {
		v, err := evalBig(e, env)
		return err == nil && v.Sign() != 0, err
	}
	if e.Kind() == Float {
		v, err := EvalFloat(e, env)
		return v != 0, err
	}
	n := e.n
	switch n.op {
	case opBad:
		return false, e.Err()
	case opBool:
		return e.k != 0, nil
	case opNot:
		v, err := EvalBool(n.args[0], env)
		return !v && err == nil, err
	case opAnd, opOr:
		for _, a := range n.args {
			v, err := EvalBool(a, env)
			if err != nil {
				return false, err
			}
			if v == (n.op == opOr) {
				return v, nil
			}
		}
		return n.op == opAnd, nil
	}
	a, b := n.args[0], n.args[1]
	switch {
	case a.Kind() == Bool:
		x, err := EvalBool(a, env)
		if err != nil {
			return false, err
		}
		y, err := EvalBool(b, env)
		return err == nil && (x == y) == (n.op == opEq), err
	case a.Kind() == Float || b.Kind() == Float:
		x, err := EvalFloat(a, env)
		if err != nil {
			return false, err
		}
		y, err := EvalFloat(b, env)
		return err == nil && holdsFloat(n.op, x, y), err
	}
	x, err := evalBig(a, env)
	if err != nil {
		return false, err
	}
	y, err := evalBig(b, env)
	if err != nil {
		return false, err
	}
	return holds(n.op, x.Cmp(y)), nil
}

// EvalFloat returns the number e under env as a float64.
func EvalFloat(e Expr, env Env) (float64, error) {
	if e.n == nil {
		return float64(e.k), nil
	}
	n := e.n
	if n.kind != Float {
		v, err := evalBig(e, env)
		if err != nil {
			return 0, err
		}
		f, _ := new(big.Float).SetInt(v).Float64()
		return f, nil
	}
	switch n.op {
	case opFloat:
		return n.f, nil
	case opSymbol:
		if fe, ok := env.(FloatEnv); ok {
			if f, ok := fe.LookupFloat(n.name); ok {
				return f, nil
			}
		}
		return 0, fmt.Errorf("%w %s", ErrUnknown, n.name)
	case opWhere:
		c, err := EvalBool(n.args[0], env)
		if err != nil {
			return 0, err
		}
		if c {
			return EvalFloat(n.args[1], env)
		}
		return EvalFloat(n.args[2], env)
	case opTrueDiv:
		if n.args[0].Kind() == Int && n.args[1].Kind() == Int {
			a, err := evalBig(n.args[0], env)
			if err != nil {
				return 0, err
			}
			b, err := evalBig(n.args[1], env)
			if err != nil {
				return 0, err
			}
			if b.Sign() == 0 {
				return 0, ErrDivideByZero
			}
			return divInts(a, b), nil
		}
	}
	args := make([]float64, len(n.args))
	for i, a := range n.args {
		f, err := EvalFloat(a, env)
		if err != nil {
			return 0, err
		}
		args[i] = f
	}
	a, b := args[0], args[len(args)-1]
	switch n.op {
	case opToFloat:
		return a, nil
	case opTrueDiv:
		if b == 0 {
			return 0, ErrDivideByZero
		}
		return a / b, nil
	case opFloatAdd:
		return a + b, nil
	case opFloatMul:
		return a * b, nil
	case opFloatPow:
		return math.Pow(a, b), nil
	case opAbs:
		return math.Abs(a), nil
	case opMax, opMin:
		for _, v := range args[1:] {
			if n.op == opMax {
				a = math.Max(a, v)
			} else {
				a = math.Min(a, v)
			}
		}
		return a, nil
	case opTruncFloat:
		return math.Trunc(a), nil
	case opRoundDecimal:
		d, err := Eval(n.args[1], env)
		if err != nil {
			return 0, err
		}
		return roundDecimal(a, d), nil
	case opUnary:
		return unaryFuncs[n.name](a), nil
	}
	return 0, fmt.Errorf("no float value for %q", opNames[min(n.op, opBad)])
}

// roundDecimal rounds by way of the decimal text, which is exact.
func roundDecimal(f float64, digits int64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) || f == 0 || digits > 330 {
		return f
	}
	if digits < -310 {
		return math.Copysign(0, f)
	}
	if digits >= 0 {
		r, err := strconv.ParseFloat(strconv.FormatFloat(f, 'f', int(digits), 64), 64)
		if err != nil {
			return f
		}
		return r
	}
	// Round the exact rational to a multiple of 10**-digits, halves to even.
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(-digits), nil)
	r := new(big.Rat).SetFloat64(f)
	r.Quo(r, new(big.Rat).SetInt(unit))
	q, m := new(big.Int).DivMod(r.Num(), r.Denom(), new(big.Int))
	if c := m.Lsh(m, 1).Cmp(r.Denom()); c > 0 || c == 0 && q.Bit(0) == 1 {
		q.Add(q, big.NewInt(1))
	}
	out, _ := new(big.Float).SetInt(q.Mul(q, unit)).Float64()
	if out == 0 {
		return math.Copysign(0, f)
	}
	return out
}
