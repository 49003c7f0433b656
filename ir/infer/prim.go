package infer

import (
	"strings"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
)

// scalar is a number among the arguments: its kind, and its value as an expression where that is known.
type scalar struct {
	kind  ir.Kind
	x     sym.Expr
	known bool
}

func (c *Call) scalar(name string, a ir.Arg) scalar {
	if e, ok := a.Expr(); ok {
		k := ir.KindInt
		switch {
		case a.Kind() == ir.ArgBool:
			b, _ := a.Bool()
			return scalar{ir.KindBool, sym.ConstBool(b), true}
		case e.Kind() == sym.Float:
			k = ir.KindFloat
		case e.Kind() == sym.Bool:
			k = ir.KindBool
		}
		return scalar{k, e, true}
	}
	if f, ok := a.Float(); ok {
		return scalar{ir.KindFloat, sym.ConstFloat(f), true}
	}
	if v := a.Value(); v != nil {
		switch t := v.Type; t.Kind {
		case ir.KindInt:
			return scalar{ir.KindInt, t.Sym, t.Known}
		case ir.KindFloat, ir.KindBool:
			return scalar{kind: t.Kind}
		}
	}
	failf("argument %s is no number", name)
	return scalar{}
}

// inferNumber is the rule of Python's operators on numbers.
func inferNumber(c *Call) ([]ir.Type, error) {
	s := &c.Op.Info().Schema
	var xs []scalar
	for i, a := range c.Args {
		if a.IsNone() {
			continue
		}
		if a.Kind() == ir.ArgList {
			for _, e := range a.List() {
				xs = append(xs, c.scalar(s.Args[i].Name, e))
			}
			continue
		}
		xs = append(xs, c.scalar(s.Args[i].Name, a))
	}
	known, float := true, false
	es := make([]sym.Expr, len(xs))
	for i, x := range xs {
		es[i] = x.x
		known = known && x.known
		float = float || x.kind == ir.KindFloat
	}
	arith := func(e func() sym.Expr) ([]ir.Type, error) {
		switch {
		case float:
			return one(ir.ScalarType(ir.KindFloat))
		case !known:
			return one(ir.ScalarType(ir.KindInt))
		}
		r := e()
		if err := r.Err(); err != nil {
			return nil, err
		}
		return one(ir.IntType(c.simp(r)))
	}
	two := func(f func(a, b sym.Expr) sym.Expr) ([]ir.Type, error) {
		if len(xs) != 2 {
			failf("%d operands, two are needed", len(xs))
		}
		return arith(func() sym.Expr { return f(es[0], es[1]) })
	}
	whole := func(f func(sym.Expr) sym.Expr) ([]ir.Type, error) {
		if xs[0].kind != ir.KindFloat {
			return arith(func() sym.Expr { return f(es[0]) })
		}
		if known {
			if r := f(es[0]); r.Err() == nil && r.Kind() == sym.Int {
				return one(ir.IntType(c.simp(r)))
			}
		}
		return one(ir.ScalarType(ir.KindInt))
	}
	if len(xs) == 0 {
		failf("no operands")
	}
	switch base := strings.TrimSuffix(s.Base, "_"); base {
	case "eq", "ne", "lt", "le", "gt", "ge", "not", "sym_not":
		return one(ir.ScalarType(ir.KindBool))
	case "and", "or", "xor":
		if xs[0].kind == ir.KindBool && len(xs) == 2 && xs[1].kind == ir.KindBool {
			return one(ir.ScalarType(ir.KindBool))
		}
		return two(map[string]func(a, b sym.Expr) sym.Expr{"and": sym.BitAnd, "or": sym.BitOr, "xor": sym.BitXor}[base])
	case "add":
		return two(sym.Add)
	case "sub":
		return two(sym.Sub)
	case "mul":
		return two(sym.Mul)
	case "floordiv":
		return two(sym.FloorDiv)
	case "mod":
		return two(sym.Mod)
	case "lshift":
		return two(sym.LShift)
	case "rshift":
		return two(sym.RShift)
	case "pow":
		if k, ok := es[len(es)-1].IsConst(); ok && k < 0 && len(xs) == 2 {
			return one(ir.ScalarType(ir.KindFloat))
		}
		return two(sym.Pow)
	case "truediv":
		return one(ir.ScalarType(ir.KindFloat))
	case "neg":
		return arith(func() sym.Expr { return sym.Neg(es[0]) })
	case "pos":
		return arith(func() sym.Expr { return es[0] })
	case "abs":
		return arith(func() sym.Expr { return sym.Abs(es[0]) })
	case "trunc", "sym_int":
		return whole(sym.Trunc)
	case "ceil":
		return whole(sym.Ceil)
	case "floor":
		return whole(sym.Floor)
	case "round":
		if len(xs) > 1 {
			return one(ir.ScalarType(ir.KindFloat))
		}
		return whole(sym.Round)
	case "sym_max":
		return two(func(a, b sym.Expr) sym.Expr { return sym.Max(a, b) })
	case "sym_min":
		return two(func(a, b sym.Expr) sym.Expr { return sym.Min(a, b) })
	case "sym_sum":
		return arith(func() sym.Expr { return sym.Sum(es...) })
	case "sym_ite":
		if len(xs) != 3 {
			failf("%d operands, three are needed", len(xs))
		}
		if xs[1].kind == ir.KindBool {
			return one(ir.ScalarType(ir.KindBool))
		}
		return arith(func() sym.Expr { return sym.Where(es[0], es[1], es[2]) })
	case "sym_fresh_size":
		return one(ir.IntType(c.fresh(sym.Range{Min: 0, Max: sym.NoRange.Max})))
	}
	// The rest are functions of floats.
	return one(ir.ScalarType(ir.KindFloat))
}
