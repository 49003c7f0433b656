package sym

// Op says how an expression is made, for those who compute it elsewhere, by a runtime's instructions for one.
type Op uint8

// The operations of integer and boolean expressions, and those that lead through floats. The arguments of OpAdd and OpMul
// are two or more, those of OpMax, OpMin, OpAnd and OpOr likewise; the others have as many as their name says.
const (
	OpOther Op = iota // what has no meaning outside this package
	OpConst
	OpSymbol
	OpAdd
	OpMul
	OpFloorDiv
	OpMod
	OpMax
	OpMin
	OpAbs
	OpPow
	OpBitAnd
	OpBitOr
	OpBitXor
	OpWhere
	OpEq
	OpNe
	OpLe
	OpGe
	OpLt
	OpGt
	OpAnd
	OpOr
	OpNot
	OpToFloat
	OpTrueDiv
	OpFloor
	OpCeil
	OpTrunc
	OpRound
)

var partOps = map[op]Op{
	opSymbol: OpSymbol, opFloorDiv: OpFloorDiv, opMod: OpMod, opMax: OpMax, opMin: OpMin, opAbs: OpAbs, opPow: OpPow,
	opAddBig: OpAdd, opFloatAdd: OpAdd, opMulBig: OpMul, opFloatMul: OpMul, opFloatPow: OpPow,
	opBitAnd: OpBitAnd, opBitOr: OpBitOr, opBitXor: OpBitXor, opWhere: OpWhere,
	opEq: OpEq, opNe: OpNe, opLe: OpLe, opGe: OpGe, opLt: OpLt, opGt: OpGt, opAnd: OpAnd, opOr: OpOr, opNot: OpNot,
	opToFloat: OpToFloat, opTrueDiv: OpTrueDiv, opFloor: OpFloor, opCeil: OpCeil, opTrunc: OpTrunc, opRound: OpRound,
	opBool: OpConst, opFloat: OpConst,
}

// Parts takes e one step apart. A polynomial is the sum of its monomials, those with a positive coefficient first; a
// monomial is the product of its coefficient, where that is not one, and its factors, each as often as its power says.
func (e Expr) Parts() (Op, []Expr) {
	if e.n == nil {
		return OpConst, nil
	}
	if e.n.op != opPoly {
		return partOps[e.n.op], e.n.args
	}
	ts := e.n.terms
	if len(ts) > 1 {
		var pos, neg []Expr
		for _, t := range ts {
			x := fromTerms([]term{t})
			if t.c > 0 {
				pos = append(pos, x)
			} else {
				neg = append(neg, x)
			}
		}
		return OpAdd, append(pos, neg...)
	}
	var fs []Expr
	for _, t := range ts {
		if t.c != 1 {
			fs = append(fs, Const(t.c))
		}
		for _, f := range t.m {
			for range f.p {
				fs = append(fs, f.x)
			}
		}
	}
	return OpMul, fs
}
