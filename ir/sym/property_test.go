package sym

import (
	"errors"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// tree is an expression as written, evaluated without any simplification.
type tree struct {
	op   string
	k    int64
	name string
	args []*tree
}

var errNaive = errors.New("no value")

func (x *tree) eval(env MapEnv) (*big.Int, error) {
	switch x.op {
	case "const":
		return big.NewInt(x.k), nil
	case "sym":
		return big.NewInt(env[x.name]), nil
	}
	a := make([]*big.Int, len(x.args))
	for i, y := range x.args {
		v, err := y.eval(env)
		if err != nil {
			return nil, err
		}
		a[i] = v
	}
	truth := func(b bool) (*big.Int, error) {
		if b {
			return big.NewInt(1), nil
		}
		return new(big.Int), nil
	}
	r := new(big.Int)
	switch x.op {
	case "+":
		return r.Add(a[0], a[1]), nil
	case "-":
		return r.Sub(a[0], a[1]), nil
	case "*":
		return r.Mul(a[0], a[1]), nil
	case "//", "ceildiv", "%":
		if a[1].Sign() == 0 {
			return nil, errNaive
		}
		q := new(big.Int)
		// Python: the remainder has the sign of the divisor.
		m := new(big.Int).Abs(a[1])
		r.Mod(a[0], m)
		if a[1].Sign() < 0 && r.Sign() != 0 {
			r.Add(r, a[1])
		}
		q.Quo(new(big.Int).Sub(a[0], r), a[1])
		switch {
		case x.op == "%":
			return r, nil
		case x.op == "ceildiv" && r.Sign() != 0:
			q.Add(q, big.NewInt(1))
		}
		return q, nil
	case "max":
		if a[0].Cmp(a[1]) > 0 {
			return a[0], nil
		}
		return a[1], nil
	case "min":
		if a[0].Cmp(a[1]) < 0 {
			return a[0], nil
		}
		return a[1], nil
	case "abs":
		return r.Abs(a[0]), nil
	case "square":
		return r.Mul(a[0], a[0]), nil
	case "cube":
		return r.Mul(a[0], r.Mul(a[0], a[0])), nil
	case "bitand":
		return r.And(a[0], a[1]), nil
	case "bitor":
		return r.Or(a[0], a[1]), nil
	case "bitxor":
		return r.Xor(a[0], a[1]), nil
	case "where":
		if a[0].Sign() != 0 {
			return a[1], nil
		}
		return a[2], nil
	case "==":
		return truth(a[0].Cmp(a[1]) == 0)
	case "!=":
		return truth(a[0].Cmp(a[1]) != 0)
	case "<":
		return truth(a[0].Cmp(a[1]) < 0)
	case "<=":
		return truth(a[0].Cmp(a[1]) <= 0)
	case ">":
		return truth(a[0].Cmp(a[1]) > 0)
	case ">=":
		return truth(a[0].Cmp(a[1]) >= 0)
	case "and":
		return truth(a[0].Sign() != 0 && a[1].Sign() != 0)
	case "or":
		return truth(a[0].Sign() != 0 || a[1].Sign() != 0)
	case "not":
		return truth(a[0].Sign() == 0)
	}
	panic(x.op)
}

func (x *tree) build() Expr {
	switch x.op {
	case "const":
		return Const(x.k)
	case "sym":
		return Symbol(x.name)
	}
	a := make([]Expr, len(x.args))
	for i, y := range x.args {
		a[i] = y.build()
	}
	switch x.op {
	case "+":
		return Add(a[0], a[1])
	case "-":
		return Sub(a[0], a[1])
	case "*":
		return Mul(a[0], a[1])
	case "//":
		return FloorDiv(a[0], a[1])
	case "ceildiv":
		return CeilDiv(a[0], a[1])
	case "%":
		return Mod(a[0], a[1])
	case "max":
		return Max(a...)
	case "min":
		return Min(a...)
	case "abs":
		return Abs(a[0])
	case "square":
		return Pow(a[0], Const(2))
	case "cube":
		return Pow(a[0], Const(3))
	case "bitand":
		return BitAnd(a[0], a[1])
	case "bitor":
		return BitOr(a[0], a[1])
	case "bitxor":
		return BitXor(a[0], a[1])
	case "where":
		return Where(a[0], a[1], a[2])
	case "and":
		return And(a...)
	case "or":
		return Or(a...)
	case "not":
		return Not(a[0])
	}
	return relation(relOps[x.op], a[0], a[1])
}

var treeSyms = []string{"s0", "s1", "u2"}

func drawTree(t *rapid.T, depth int) *tree {
	if depth == 0 || rapid.IntRange(0, 4).Draw(t, "leaf") == 0 {
		if rapid.Bool().Draw(t, "sym") {
			return &tree{op: "sym", name: rapid.SampledFrom(treeSyms).Draw(t, "name")}
		}
		small := rapid.Int64Range(-12, 12)
		k := rapid.OneOf(small, small, small, small, small, rapid.Int64()).Draw(t, "k")
		return &tree{op: "const", k: k}
	}
	o := rapid.SampledFrom([]string{
		"+", "+", "-", "-", "*", "*", "//", "//", "//", "%", "%", "ceildiv", "max", "min", "abs", "square", "cube",
		"bitand", "bitor", "bitxor", "where",
	}).Draw(t, "op")
	x := &tree{op: o}
	switch o {
	case "abs", "square", "cube":
		x.args = []*tree{drawTree(t, depth-1)}
	case "where":
		x.args = []*tree{drawBool(t, depth-1), drawTree(t, depth-1), drawTree(t, depth-1)}
	default:
		x.args = []*tree{drawTree(t, depth-1), drawTree(t, depth-1)}
	}
	return x
}

func drawBool(t *rapid.T, depth int) *tree {
	depth = max(depth, 1)
	o := rapid.SampledFrom([]string{"==", "!=", "<", "<=", ">", ">=", "and", "or", "not"}).Draw(t, "boolop")
	switch {
	case o == "not":
		if depth > 1 {
			return &tree{op: o, args: []*tree{drawBool(t, depth-1)}}
		}
		o = "=="
	case o == "and" || o == "or":
		if depth > 1 {
			return &tree{op: o, args: []*tree{drawBool(t, depth-1), drawBool(t, depth-1)}}
		}
		o = "<="
	}
	return &tree{op: o, args: []*tree{drawTree(t, depth-1), drawTree(t, depth-1)}}
}

// drawEnv draws ranges of the symbols and values inside them.
func drawEnv(t *rapid.T) (*Table, MapEnv) {
	table, env := &Table{}, MapEnv{}
	for _, name := range treeSyms {
		end := rapid.OneOf(rapid.Int64Range(-15, 15), rapid.Int64Range(-15, 15), rapid.Int64())
		a, b, c := end.Draw(t, "a"), end.Draw(t, "b"), end.Draw(t, "c")
		r := Range{min(a, b, c), max(a, b, c)}
		env[name] = a + b + c - r.Min - r.Max
		if rapid.IntRange(0, 3).Draw(t, "unbounded") == 0 {
			r.Max = NoRange.Max
		}
		if err := table.Add(Sym{Name: name, Range: r}); err != nil {
			t.Fatal(err)
		}
	}
	return table, env
}

func drawAny(t *rapid.T) *tree {
	if rapid.IntRange(0, 3).Draw(t, "bool") == 0 {
		return drawBool(t, 4)
	}
	return drawTree(t, 4)
}

// sameValue checks that e is want, where want fits 64 bits.
func sameValue(t *rapid.T, what string, e Expr, env Env, want *big.Int) {
	got, err := Eval(e, env)
	switch {
	case !want.IsInt64():
		if err == nil {
			t.Fatalf("%s: %s is %d, want an overflow", what, e, got)
		}
	case err != nil || got != want.Int64():
		t.Fatalf("%s: %s is %d (%v), want %v", what, e, got, err, want)
	}
}

func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawAny(t)
		table, env := drawEnv(t)
		e := x.build()
		if err := e.Err(); err != nil {
			t.Skip(err)
		}
		back, err := Parse(e.String())
		if err != nil || !back.Equal(e) {
			t.Fatalf("%s is read back as %s, %v", e, back, err)
		}
		if h := Subst(e, map[string]Expr{"absent": Const(1)}).Hash(); h != back.Hash() {
			t.Fatalf("hashes of %s differ", e)
		}
		want, err := x.eval(env)
		if err != nil || want.BitLen() > 1000 {
			return
		}
		sameValue(t, "as built", e, env, want)
		sameValue(t, "simplified", table.Simplify(e), env, want)
		if want.IsInt64() {
			for _, r := range []Range{Bounds(e, table.SymRange), table.Range(e)} {
				if !r.Contains(want.Int64()) {
					t.Fatalf("%s is %v, outside %v", e, want, r)
				}
			}
		}
		if e.Kind() == Bool {
			if v, known := table.Prove(e); known && v != (want.Sign() != 0) {
				t.Fatalf("%s is %v, proved %v", e, want, v)
			}
		}
		with := map[string]Expr{}
		for name, v := range env {
			with[name] = Sub(Symbol("q"), Const(3))
			if k, ok := addInt(v, 3); ok && rapid.Bool().Draw(t, "shift") {
				sub := Subst(e, map[string]Expr{name: with[name]})
				env2 := MapEnv{"q": k}
				for n, v := range env {
					if n != name {
						env2[n] = v
					}
				}
				if sub.Err() == nil {
					sameValue(t, "substituted", sub, env2, want)
				}
			}
		}
	})
}

// Assumptions that hold for some values never exclude those values.
func TestAssumeProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table, env := drawEnv(t)
		for range 3 {
			p := drawBool(t, 2)
			v, err := p.eval(env)
			if err != nil || v.Sign() == 0 {
				continue
			}
			if err := table.Assume(p.build()); err != nil {
				t.Fatalf("assuming %s, true at %v: %v", p.build(), env, err)
			}
		}
		for _, s := range table.All() {
			if !s.Range.Contains(env[s.Name]) {
				t.Fatalf("%s = %d left %v", s.Name, env[s.Name], s.Range)
			}
		}
		x := drawTree(t, 2)
		if want, err := x.eval(env); err == nil && want.IsInt64() {
			if e := x.build(); !table.Range(e).Contains(want.Int64()) {
				t.Fatalf("%s is %v, outside %v", e, want, table.Range(e))
			}
		}
	})
}

// Polynomials come out the same however they are written.
func TestPolynomialsAreCanonical(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := make([]Expr, rapid.IntRange(2, 4).Draw(t, "n"))
		for i := range xs {
			xs[i] = Add(Mul(Const(rapid.Int64Range(-5, 5).Draw(t, "c")), Symbol(rapid.SampledFrom(treeSyms).Draw(t, "s"))),
				Const(rapid.Int64Range(-9, 9).Draw(t, "k")))
		}
		a, b := xs[0], xs[1]
		if l, r := Mul(Add(a, b), Sub(a, b)), Sub(Mul(a, a), Mul(b, b)); !l.Equal(r) || l.Hash() != r.Hash() || l.String() != r.String() {
			t.Fatalf("%s and %s differ", l, r)
		}
		l, r := Sum(xs...), Const(0)
		for i := range xs {
			r = Add(xs[len(xs)-1-i], r)
		}
		if !l.Equal(r) {
			t.Fatalf("%s and %s differ", l, r)
		}
		if p := Mul(a, b); !b.Equal(Const(0)) && !FloorDiv(p, b).Equal(a) {
			t.Fatalf("(%s)//(%s) = %s, want %s", p, b, FloorDiv(p, b), a)
		}
	})
}
