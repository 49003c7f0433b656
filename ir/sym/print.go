package sym

import (
	"math"
	"strconv"
	"strings"
)

// opNames are the functions and operators of the text syntax.
var opNames = [...]string{
	opFloorDiv: "//", opMod: "%", opMax: "max", opMin: "min", opAbs: "abs", opPow: "**",
	opAddBig: "+", opMulBig: "*",
	opBitAnd: "bitand", opBitOr: "bitor", opBitXor: "bitxor", opDense: "dense", opWhere: "where",
	opEq: "==", opNe: "!=", opLe: "<=", opGe: ">=", opLt: "<", opGt: ">",
	opAnd: "and", opOr: "or", opNot: "not",
	opToFloat: "float", opTrueDiv: "/", opFloatAdd: "+", opFloatMul: "*", opFloatPow: "**",
	opFloor: "floor", opCeil: "ceil", opTrunc: "trunc", opRound: "round",
	opTruncFloat: "truncf", opRoundDecimal: "round",
	opBad: "",
}

// reserved words cannot be symbols.
var reserved = map[string]bool{
	"and": true, "or": true, "not": true, "true": true, "false": true, "inf": true, "nan": true,
}

// Binding strengths, weakest first.
const (
	precOr = iota
	precAnd
	precNot
	precCompare
	precSum
	precProduct
	precNegative // a negative number
	precPower
	precAtom
)

// String returns e in the text syntax of the IR; Parse reads it back.
func (e Expr) String() string {
	if e.n == nil {
		return strconv.FormatInt(e.k, 10)
	}
	return string(e.Append(nil))
}

// Append appends the text of e to b.
func (e Expr) Append(b []byte) []byte { return appendExpr(b, e, precOr) }

func short(e Expr) string {
	s := e.String()
	if len(s) > 60 {
		s = s[:57] + "..."
	}
	return s
}

func precedence(e Expr) int {
	if e.n == nil {
		if e.k < 0 {
			return precNegative
		}
		return precAtom
	}
	switch n := e.n; n.op {
	case opFloat:
		if math.Signbit(n.f) {
			return precNegative
		}
	case opPoly:
		if len(n.terms) > 1 {
			return precSum
		}
		if t := n.terms[0]; t.c == 1 && len(t.m) == 1 {
			return precPower
		}
		return precProduct
	case opAddBig, opFloatAdd:
		return precSum
	case opMulBig, opFloatMul, opFloorDiv, opMod, opTrueDiv:
		return precProduct
	case opPow, opFloatPow:
		return precPower
	case opEq, opNe, opLe, opGe, opLt, opGt:
		return precCompare
	case opAnd:
		return precAnd
	case opOr:
		return precOr
	case opNot:
		return precNot
	}
	return precAtom
}

// appendExpr prints e where anything that binds weaker than least needs parentheses.
func appendExpr(b []byte, e Expr, least int) []byte {
	if precedence(e) < least {
		b = append(b, '(')
		b = appendExpr(b, e, precOr)
		return append(b, ')')
	}
	n := e.n
	if n == nil {
		return strconv.AppendInt(b, e.k, 10)
	}
	switch n.op {
	case opSymbol:
		return append(b, n.name...)
	case opBool:
		return strconv.AppendBool(b, e.k != 0)
	case opFloat:
		return appendFloat(b, n.f)
	case opPoly:
		return appendPoly(b, n.terms)
	case opAddBig, opMulBig, opFloatAdd, opFloatMul, opFloorDiv, opMod, opTrueDiv, opPow, opFloatPow:
		name, least := opNames[n.op], precPower
		if n.op == opPow || n.op == opFloatPow {
			least = precAtom
		}
		b = appendExpr(b, n.args[0], least)
		switch n.op {
		case opPow, opFloatPow, opFloorDiv, opMulBig, opFloatMul:
			b = append(b, name...)
		default:
			b = append(b, ' ')
			b = append(b, name...)
			b = append(b, ' ')
		}
		return appendExpr(b, n.args[1], least)
	case opEq, opNe, opLe, opGe, opLt, opGt:
		b = appendExpr(b, n.args[0], precSum)
		b = append(b, ' ')
		b = append(b, opNames[n.op]...)
		b = append(b, ' ')
		return appendExpr(b, n.args[1], precSum)
	case opAnd, opOr:
		for i, a := range n.args {
			if i > 0 {
				b = append(b, ' ')
				b = append(b, opNames[n.op]...)
				b = append(b, ' ')
			}
			b = appendExpr(b, a, precedence(e)+1)
		}
		return b
	case opNot:
		b = append(b, "not "...)
		return appendExpr(b, n.args[0], precCompare)
	case opBad:
		b = append(b, "invalid("...)
		b = strconv.AppendQuote(b, n.name)
		return append(b, ')')
	}
	name := opNames[min(n.op, opBad)]
	if n.op == opUnary {
		name = n.name
	}
	b = append(b, name...)
	b = append(b, '(')
	for i, a := range n.args {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = appendExpr(b, a, precOr)
	}
	return append(b, ')')
}

// appendPoly prints a positive term first where there is one.
func appendPoly(b []byte, ts []term) []byte {
	first := 0
	for i, t := range ts {
		if t.c > 0 {
			first = i
			break
		}
	}
	b = appendTerm(b, ts[first], true)
	for i, t := range ts {
		if i != first {
			b = appendTerm(b, t, false)
		}
	}
	return b
}

func appendTerm(b []byte, t term, first bool) []byte {
	abs := absInt(t.c)
	switch {
	case first && t.c < 0:
		b = append(b, '-')
	case t.c == math.MinInt64: // its magnitude alone is not an integer
		b = append(b, " + -"...)
	case !first && t.c < 0:
		b = append(b, " - "...)
	case !first:
		b = append(b, " + "...)
	}
	if len(t.m) == 0 {
		return strconv.AppendUint(b, abs, 10)
	}
	least := precPower
	if abs == 1 && len(t.m) == 1 && t.m[0].p == 1 && !(first && t.c < 0) {
		least = precProduct
	}
	if abs != 1 {
		b = strconv.AppendUint(b, abs, 10)
		b = append(b, '*')
	}
	for i, f := range t.m {
		if i > 0 {
			b = append(b, '*')
		}
		if f.p == 1 {
			b = appendExpr(b, f.x, least)
			continue
		}
		b = appendExpr(b, f.x, precAtom)
		b = append(b, "**"...)
		b = strconv.AppendInt(b, int64(f.p), 10)
	}
	return b
}

func appendFloat(b []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(b, "nan"...)
	case math.IsInf(f, 1):
		return append(b, "inf"...)
	case math.IsInf(f, -1):
		return append(b, "-inf"...)
	}
	s := strconv.FormatFloat(f, 'g', -1, 64)
	b = append(b, s...)
	if !strings.ContainsAny(s, ".e") {
		b = append(b, ".0"...)
	}
	return b
}
