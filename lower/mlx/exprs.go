package mlx

import (
	"fmt"
	"math"

	"github.com/lathe-ml/lathe/codegen/fb/mlx"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
)

// The delegate computes sizes with five operations on 32-bit integers: sum, difference, product, floor division and
// remainder. Comparisons, and what is made of them, come from these: for |x| below far, x//far is -1 where x is negative
// and 0 elsewhere.
const far = math.MaxInt32

// expressible tells why e cannot be computed so, "" where it can.
func expressible(e sym.Expr) string {
	op, args := e.Parts()
	switch op {
	case sym.OpConst:
		if k, ok := e.IsConst(); ok && (k > math.MaxInt32 || k < math.MinInt32) && k != math.MaxInt64 && k != math.MinInt64 {
			return fmt.Sprintf("it has no number %d", k)
		}
		return ""
	case sym.OpSymbol:
		if e.Kind() != sym.Int {
			return fmt.Sprintf("it computes no %s", e)
		}
		return ""
	case sym.OpAdd, sym.OpMul, sym.OpFloorDiv, sym.OpMod, sym.OpMax, sym.OpMin, sym.OpAbs, sym.OpWhere, sym.OpEq, sym.OpNe,
		sym.OpLe, sym.OpGe, sym.OpLt, sym.OpGt, sym.OpAnd, sym.OpOr, sym.OpNot:
	case sym.OpFloor, sym.OpCeil:
		q, parts := args[0].Parts()
		if q != sym.OpTrueDiv {
			return fmt.Sprintf("it computes no %s", e)
		}
		args = nil
		for _, p := range parts {
			args = append(args, intOperand(p))
		}
	case sym.OpPow:
		if k, ok := args[1].IsConst(); !ok || k < 0 || k > 8 {
			return fmt.Sprintf("it computes no %s", e)
		}
		args = args[:1]
	default:
		return fmt.Sprintf("it computes no %s", e)
	}
	for _, a := range args {
		if a.Kind() == sym.Float {
			return fmt.Sprintf("it computes no %s", e)
		}
		if why := expressible(a); why != "" {
			return why
		}
	}
	return ""
}

// intOperand drops a conversion to float.
func intOperand(e sym.Expr) sym.Expr {
	if op, args := e.Parts(); op == sym.OpToFloat {
		return args[0]
	}
	return e
}

// lit is a literal.
func lit(k int64) *mlx.IntOrVid { return &mlx.IntOrVid{Literal: k} }

func lits(ks []int64) []*mlx.IntOrVid {
	out := make([]*mlx.IntOrVid, len(ks))
	for i, k := range ks {
		out[i] = lit(k)
	}
	return out
}

func vidOf(v mlx.Vid) *mlx.IntOrVid { return &mlx.IntOrVid{Vid: &v, IsVid: true} }

type computed struct {
	e   sym.Expr
	vid mlx.Vid
}

// int is the number that e stands for: a literal or a value slot. Each expression is computed once in a chain.
func (b *builder) int(e sym.Expr) *mlx.IntOrVid {
	if k, ok := e.IsConst(); ok {
		return lit(k)
	}
	if v, ok := e.IsBool(); ok {
		if v {
			return lit(1)
		}
		return lit(0)
	}
	if v, ok := b.lookup(e); ok {
		return vidOf(v)
	}
	x := b.compute(e)
	if x.IsVid {
		s := b.scopes[len(b.scopes)-1]
		s[e.Hash()] = append(s[e.Hash()], computed{e, *x.Vid})
	}
	return x
}

func (b *builder) lookup(e sym.Expr) (mlx.Vid, bool) {
	for i := len(b.scopes) - 1; i >= 0; i-- {
		for _, c := range b.scopes[i][e.Hash()] {
			if c.e.Equal(e) {
				return c.vid, true
			}
		}
	}
	return mlx.Vid{}, false
}

func (b *builder) ints(es []sym.Expr) []*mlx.IntOrVid {
	out := make([]*mlx.IntOrVid, len(es))
	for i, e := range es {
		out[i] = b.int(e)
	}
	return out
}

func (b *builder) argInt(a ir.Arg) *mlx.IntOrVid {
	e, _ := a.Expr()
	return b.int(e)
}

func (b *builder) compute(e sym.Expr) *mlx.IntOrVid {
	op, args := e.Parts()
	fold := func(f func(x, y *mlx.IntOrVid) *mlx.IntOrVid) *mlx.IntOrVid {
		acc := b.int(args[0])
		for _, a := range args[1:] {
			acc = f(acc, b.int(a))
		}
		return acc
	}
	switch op {
	case sym.OpSymbol:
		name, _ := e.IsSymbol()
		return b.symbol(name)
	case sym.OpAdd:
		// Positive terms come first; a term with the factor -1 is subtracted.
		acc := b.int(args[0])
		for _, a := range args[1:] {
			if neg, ok := negated(a); ok {
				acc = b.sub(acc, b.int(neg))
			} else {
				acc = b.add(acc, b.int(a))
			}
		}
		return acc
	case sym.OpMul:
		return fold(b.mul)
	case sym.OpFloorDiv:
		return b.floorDiv(b.int(args[0]), b.int(args[1]))
	case sym.OpMod:
		return b.value(func(out mlx.Vid, x, y *mlx.IntOrVid) mlx.OpNode { return &mlx.ModIntNode{A: x, B: y, Out: out} }, b.int(args[0]), b.int(args[1]))
	case sym.OpMax:
		return fold(func(x, y *mlx.IntOrVid) *mlx.IntOrVid { return b.choose(b.less(x, y), y, x) })
	case sym.OpMin:
		return fold(func(x, y *mlx.IntOrVid) *mlx.IntOrVid { return b.choose(b.less(x, y), x, y) })
	case sym.OpAbs:
		x := b.int(args[0])
		return b.choose(b.less(x, lit(0)), b.sub(lit(0), x), x)
	case sym.OpWhere:
		return b.choose(b.int(args[0]), b.int(args[1]), b.int(args[2]))
	case sym.OpLt:
		return b.less(b.int(args[0]), b.int(args[1]))
	case sym.OpGt:
		return b.less(b.int(args[1]), b.int(args[0]))
	case sym.OpLe:
		return b.not(b.less(b.int(args[1]), b.int(args[0])))
	case sym.OpGe:
		return b.not(b.less(b.int(args[0]), b.int(args[1])))
	case sym.OpEq, sym.OpNe:
		x, y := b.int(args[0]), b.int(args[1])
		ne := b.add(b.less(x, y), b.less(y, x))
		if op == sym.OpNe {
			return ne
		}
		return b.not(ne)
	case sym.OpAnd:
		return fold(b.mul)
	case sym.OpOr:
		return fold(func(x, y *mlx.IntOrVid) *mlx.IntOrVid { return b.not(b.mul(b.not(x), b.not(y))) })
	case sym.OpNot:
		return b.not(b.int(args[0]))
	case sym.OpFloor:
		_, q := args[0].Parts()
		return b.floorDiv(b.int(intOperand(q[0])), b.int(intOperand(q[1])))
	case sym.OpCeil:
		_, q := args[0].Parts()
		return b.sub(lit(0), b.floorDiv(b.sub(lit(0), b.int(intOperand(q[0]))), b.int(intOperand(q[1]))))
	case sym.OpPow:
		k, _ := args[1].IsConst()
		acc := lit(1)
		for range k {
			acc = b.mul(acc, b.int(args[0]))
		}
		return acc
	}
	b.failf("size %s has no form in the delegate", e)
	return lit(0)
}

func negated(e sym.Expr) (sym.Expr, bool) {
	op, args := e.Parts()
	if op == sym.OpMul && len(args) > 0 && args[0].IsConstValue(-1) {
		return sym.Neg(e), true
	}
	return e, false
}

// value adds an instruction that makes a number of two.
func (b *builder) value(f func(out mlx.Vid, x, y *mlx.IntOrVid) mlx.OpNode, x, y *mlx.IntOrVid) *mlx.IntOrVid {
	out := b.newVid()
	b.emit(f(out, b.copyInt(x), b.copyInt(y)))
	return vidOf(out)
}

// copyInt is x for one more instruction: slots are renumbered in place, so none is shared.
func (b *builder) copyInt(x *mlx.IntOrVid) *mlx.IntOrVid {
	if x.IsVid {
		return vidOf(*x.Vid)
	}
	return lit(x.Literal)
}

func (b *builder) add(x, y *mlx.IntOrVid) *mlx.IntOrVid {
	switch {
	case !x.IsVid && !y.IsVid:
		return lit(x.Literal + y.Literal)
	case !x.IsVid && x.Literal == 0:
		return y
	case !y.IsVid && y.Literal == 0:
		return x
	case !y.IsVid && y.Literal < 0:
		return b.sub(x, lit(-y.Literal))
	}
	return b.value(func(out mlx.Vid, x, y *mlx.IntOrVid) mlx.OpNode { return &mlx.AddIntNode{A: x, B: y, Out: out} }, x, y)
}

func (b *builder) sub(x, y *mlx.IntOrVid) *mlx.IntOrVid {
	switch {
	case !x.IsVid && !y.IsVid:
		return lit(x.Literal - y.Literal)
	case !y.IsVid && y.Literal == 0:
		return x
	}
	return b.value(func(out mlx.Vid, x, y *mlx.IntOrVid) mlx.OpNode { return &mlx.SubtractIntNode{A: x, B: y, Out: out} }, x, y)
}

func (b *builder) mul(x, y *mlx.IntOrVid) *mlx.IntOrVid {
	switch {
	case !x.IsVid && !y.IsVid:
		return lit(x.Literal * y.Literal)
	case !x.IsVid && x.Literal == 1:
		return y
	case !y.IsVid && y.Literal == 1:
		return x
	}
	return b.value(func(out mlx.Vid, x, y *mlx.IntOrVid) mlx.OpNode { return &mlx.MultiplyIntNode{A: x, B: y, Out: out} }, x, y)
}

func (b *builder) floorDiv(x, y *mlx.IntOrVid) *mlx.IntOrVid {
	if !y.IsVid && y.Literal == 1 {
		return x
	}
	return b.value(func(out mlx.Vid, x, y *mlx.IntOrVid) mlx.OpNode { return &mlx.FloorDivideIntNode{A: x, B: y, Out: out} }, x, y)
}

// less is 1 where x < y, else 0.
func (b *builder) less(x, y *mlx.IntOrVid) *mlx.IntOrVid {
	return b.sub(lit(0), b.floorDiv(b.sub(x, y), lit(far)))
}

func (b *builder) not(x *mlx.IntOrVid) *mlx.IntOrVid { return b.sub(lit(1), x) }

// choose is x where cond is 1, y where it is 0.
func (b *builder) choose(cond, x, y *mlx.IntOrVid) *mlx.IntOrVid {
	return b.add(y, b.mul(cond, b.sub(x, y)))
}

// symbol is the slot of a symbol: a size of a tensor, an integer input, a number that a node makes.
func (b *builder) symbol(name string) *mlx.IntOrVid {
	bind, ok := b.bindings[name]
	if !ok {
		b.failf("size %s comes from nowhere in the region", name)
		return lit(0)
	}
	var x *mlx.IntOrVid
	if v := bind.Value; v.Type.IsTensor() {
		out := b.newVid()
		b.emit(&mlx.SymSizeNode{A: b.raw(v), Dim: int32(bind.Dim), Out: out})
		x = vidOf(out)
	} else if vid, ok := b.vids[v]; ok {
		x = vidOf(vid)
	} else {
		b.failf("size %s is used before it is known", name)
		return lit(0)
	}
	if bind.A == 1 && bind.B == 0 {
		return x
	}
	return b.floorDiv(b.sub(x, lit(bind.B)), lit(bind.A))
}
