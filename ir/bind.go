package ir

import "github.com/lathe-ml/lathe/ir/sym"

// Binding tells how a symbol's value is got while a program runs: the size of Dim of Value, or the value itself where Dim
// is negative, is A*symbol + B.
type Binding struct {
	Symbol string
	Value  *Value
	Dim    int
	A, B   int64
}

// Bindings finds for each symbol of the root graph the first place that tells its value: a user input's size or value,
// then results of nodes (unbacked symbols). Symbols that occur in no input or result, or only in expressions that cannot
// be solved for them, are missing.
func (g *Graph) Bindings() map[string]Binding {
	bs := map[string]Binding{}
	for _, in := range g.Inputs {
		bindValue(bs, in.Value)
	}
	for n := range g.Nodes() {
		for _, o := range n.Outs {
			bindValue(bs, o)
		}
	}
	return bs
}

func bindValue(bs map[string]Binding, v *Value) {
	try := func(e sym.Expr, dim int) {
		if _, ok := e.IsConst(); ok {
			return
		}
		s, ok := e.IsSymbol()
		if ok {
			if old, have := bs[s]; !have || old.Value == v && old.A != 1 {
				bs[s] = Binding{Symbol: s, Value: v, Dim: dim, A: 1}
			}
			return
		}
		names := sym.Symbols(e)
		if len(names) != 1 {
			return
		}
		if _, have := bs[names[0]]; have {
			return
		}
		if a, b, ok := sym.SolveLinear(e, names[0]); ok && a != 0 {
			bs[names[0]] = Binding{Symbol: names[0], Value: v, Dim: dim, A: a, B: b}
		}
	}
	switch v.Type.Kind {
	case KindTensor:
		for i, e := range v.Type.Shape {
			try(e, i)
		}
	case KindInt:
		if v.Type.Known {
			try(v.Type.Sym, -1)
		}
	}
}

// EachSymbol calls f for every expression with symbols in t.
func (t Type) EachSymbol(f func(sym.Expr)) {
	visit := func(e sym.Expr) {
		if _, ok := e.IsConst(); !ok {
			f(e)
		}
	}
	for _, e := range t.Shape {
		visit(e)
	}
	for _, e := range t.Strides {
		visit(e)
	}
	if t.Known {
		visit(t.Sym)
	}
}
