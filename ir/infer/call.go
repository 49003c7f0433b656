package infer

import (
	"fmt"
	"math"
	"strconv"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// one is what most rules return.
func one(t ir.Type) ([]ir.Type, error) { return []ir.Type{t}, nil }

// has tells whether the schema has an argument of that name.
func (c *Call) has(name string) bool { return c.Op.Info().ArgIndex(name) >= 0 }

// arg is the argument of that name, None where the schema has none.
func (c *Call) arg(name string) ir.Arg {
	i := c.Op.Info().ArgIndex(name)
	if i < 0 {
		return ir.None
	}
	return c.Args[i]
}

// first is the first name that the schema has: overloads call the same argument by different names.
func (c *Call) first(names ...string) string {
	for _, n := range names {
		if c.has(n) {
			return n
		}
	}
	failf("the schema has none of the arguments %v", names)
	return ""
}

// tensor is the type of a tensor argument.
func (c *Call) tensor(name string) ir.Type {
	a := c.arg(name)
	if v := a.Value(); v != nil {
		if !v.Type.IsTensor() {
			failf("argument %s is a %s, not a tensor", name, v.Type.Kind)
		}
		return v.Type
	}
	// A number stands for a tensor without dimensions.
	if o, ok := scalarOperand(a); ok {
		return ir.TensorType(o.dtype)
	}
	failf("argument %s is missing", name)
	return ir.Type{}
}

// optTensor is the type of a tensor argument that may be None.
func (c *Call) optTensor(name string) (ir.Type, bool) {
	if c.arg(name).IsNone() {
		return ir.Type{}, false
	}
	return c.tensor(name), true
}

// tensors are the types of a list of tensors.
func (c *Call) tensors(name string) []ir.Type {
	a := c.arg(name)
	if a.Kind() != ir.ArgList {
		if v := a.Value(); v != nil && v.Type.IsTensor() {
			return []ir.Type{v.Type}
		}
		failf("argument %s is no list of tensors", name)
	}
	ts := make([]ir.Type, len(a.List()))
	for i, e := range a.List() {
		v := e.Value()
		if v == nil || !v.Type.IsTensor() {
			failf("element %d of argument %s is no tensor", i, name)
		}
		ts[i] = v.Type
	}
	return ts
}

// expr is an integer argument. A computed integer of unknown value gets a fresh symbol.
func (c *Call) expr(name string) sym.Expr {
	e, ok := c.exprOf(c.arg(name))
	if !ok {
		failf("argument %s is no integer", name)
	}
	return e
}

func (c *Call) exprOf(a ir.Arg) (sym.Expr, bool) {
	if e, ok := a.Expr(); ok {
		return e, true
	}
	if v := a.Value(); v != nil {
		switch {
		case v.Type.Kind == ir.KindInt && v.Type.Known:
			return v.Type.Sym, true
		case v.Type.Kind == ir.KindInt, v.Type.IsTensor() && v.Type.Rank() == 0:
			return c.fresh(sym.NoRange), true
		}
	}
	if f, ok := a.Float(); ok && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return sym.Const(int64(f)), true
	}
	return sym.Expr{}, false
}

// optExpr is an integer argument that may be None.
func (c *Call) optExpr(name string) (sym.Expr, bool) {
	if c.arg(name).IsNone() {
		return sym.Expr{}, false
	}
	return c.expr(name), true
}

// int is an integer argument that must be constant.
func (c *Call) int(name string) int64 {
	k, ok := c.constOf(c.expr(name))
	if !ok {
		failf("argument %s depends on a size; it has to be constant", name)
	}
	return k
}

// constOf is the value of an expression that can be one only.
func (c *Call) constOf(e sym.Expr) (int64, bool) {
	if k, ok := e.IsConst(); ok {
		return k, true
	}
	if r := c.Syms().Range(e); r.Min == r.Max {
		return r.Min, true
	}
	return 0, false
}

// optInt is a constant integer argument that may be None.
func (c *Call) optInt(name string) (int64, bool) {
	if c.arg(name).IsNone() {
		return 0, false
	}
	return c.int(name), true
}

// exprs is a list of integers; a single one stands for a list of one.
func (c *Call) exprs(name string) []sym.Expr {
	a := c.arg(name)
	if a.Kind() != ir.ArgList {
		return []sym.Expr{c.expr(name)}
	}
	es := make([]sym.Expr, len(a.List()))
	for i, x := range a.List() {
		e, ok := c.exprOf(x)
		if !ok {
			failf("element %d of argument %s is no integer", i, name)
		}
		es[i] = e
	}
	return es
}

// optExprs is a list of integers that may be None.
func (c *Call) optExprs(name string) ([]sym.Expr, bool) {
	if c.arg(name).IsNone() {
		return nil, false
	}
	return c.exprs(name), true
}

// exprsN is a list of n integers, where one stands for all.
func (c *Call) exprsN(name string, n int) []sym.Expr {
	es := c.exprs(name)
	if len(es) == 1 && n > 1 {
		r := make([]sym.Expr, n)
		for i := range r {
			r[i] = es[0]
		}
		return r
	}
	if len(es) != n {
		failf("argument %s has %d elements, %d are needed", name, len(es), n)
	}
	return es
}

// ints is a list of constants.
func (c *Call) ints(name string) []int64 {
	es := c.exprs(name)
	ks := make([]int64, len(es))
	for i, e := range es {
		k, ok := c.constOf(e)
		if !ok {
			failf("element %d of argument %s depends on a size; it has to be constant", i, name)
		}
		ks[i] = k
	}
	return ks
}

// optInts is a list of constants that may be None.
func (c *Call) optInts(name string) ([]int64, bool) {
	if c.arg(name).IsNone() {
		return nil, false
	}
	return c.ints(name), true
}

// bool is a constant bool argument; None is false.
func (c *Call) bool(name string) bool {
	a := c.arg(name)
	if a.IsNone() {
		return false
	}
	b, ok := a.Bool()
	if !ok {
		failf("argument %s is no constant bool", name)
	}
	return b
}

// str is a string argument, empty for None.
func (c *Call) str(name string) string {
	s, _ := c.arg(name).Str()
	return s
}

// dtypeOr is a dtype argument, or the given one for None.
func (c *Call) dtypeOr(name string, d ops.DType) ops.DType {
	a := c.arg(name)
	if a.IsNone() {
		return d
	}
	x, ok := a.DType()
	if !ok {
		failf("argument %s is no element type", name)
	}
	return x
}

// wrapDim makes a dimension non-negative. A tensor without dimensions has one to speak of.
func wrapDim(name string, d int64, rank int) int {
	n := int64(max(rank, 1))
	if d < -n || d >= n {
		failf("%s is %d, but the tensor has %d dimensions (%d to %d are allowed)", name, d, rank, -n, n-1)
	}
	if d < 0 {
		d += n
	}
	return int(d)
}

// dim is a dimension argument of a tensor of that rank.
func (c *Call) dim(name string, rank int) int { return wrapDim(name, c.int(name), rank) }

// dims is a list of different dimensions; ok is false where the argument is None.
func (c *Call) dims(name string, rank int) (ds []int, ok bool) {
	ks, ok := c.optInts(name)
	if !ok {
		return nil, false
	}
	seen := make([]bool, max(rank, 1))
	for _, k := range ks {
		d := wrapDim(name, k, rank)
		if seen[d] {
			failf("dimension %d appears twice in %s", k, name)
		}
		seen[d] = true
		ds = append(ds, d)
	}
	return ds, true
}

// indexDims is dims for a tensor that has to have dimensions.
func (c *Call) indexDims(name string, x ir.Type) (ds []int, ok bool) {
	ds, ok = c.dims(name, x.Rank())
	if len(ds) > 0 && x.Rank() == 0 {
		failf("a tensor without dimensions has none for %s to name", name)
	}
	return ds, ok
}

// eq decides equality of two sizes: by their form, the symbols' ranges, at last by the sizes at export.
func (c *Call) eq(a, b sym.Expr) bool {
	if a.Equal(b) {
		return true
	}
	if _, ok := a.IsConst(); ok {
		if _, ok := b.IsConst(); ok {
			return false
		}
	}
	if v, known := c.Syms().ProveEq(a, b); known {
		return v
	}
	v, err := sym.EvalBool(sym.Eq(a, b), c.Syms())
	return err == nil && v
}

// is tells that a size is k.
func (c *Call) is(a sym.Expr, k int64) bool {
	if v, ok := a.IsConst(); ok {
		return v == k
	}
	return c.holds(sym.Eq(a, sym.Const(k)))
}

// decide tells what a predicate is by proof, else by the sizes at export; known is false where both fail.
func (c *Call) decide(p sym.Expr) (value, known bool) {
	if v, ok := c.Syms().Prove(p); ok {
		return v, true
	}
	v, err := sym.EvalBool(p, c.Syms())
	return v, err == nil
}

// holds decides a predicate as torch's export does: what is proven, else what held for the sizes at export, else false.
func (c *Call) holds(p sym.Expr) bool {
	v, known := c.decide(p)
	return known && v
}

// never tells that a predicate is proven false.
func (c *Call) never(p sym.Expr) bool {
	v, ok := c.Syms().Prove(p)
	return ok && !v
}

// differ tells that two sizes are proven to be unequal.
func (c *Call) differ(a, b sym.Expr) bool {
	if a.Equal(b) {
		return false
	}
	v, known := c.Syms().ProveEq(a, b)
	return known && !v
}

// simp is e with what the ranges decide.
func (c *Call) simp(e sym.Expr) sym.Expr {
	if _, ok := e.IsConst(); ok {
		return e
	}
	return c.Syms().Simplify(e)
}

// fresh is a new symbol for a value that only running tells.
func (c *Call) fresh(r sym.Range) sym.Expr {
	t := c.Syms()
	for i := t.Len() + c.made; ; i++ {
		name := "u" + strconv.Itoa(i)
		if _, ok := t.Get(name); ok {
			continue
		}
		c.made++
		if c.predict {
			return sym.Symbol(name)
		}
		if err := t.Add(sym.Sym{Name: name, Range: r}); err != nil {
			failf("symbol %s: %v", name, err)
		}
		return sym.Symbol(name)
	}
}

// rank fails unless the tensor has one of the given numbers of dimensions.
func rank(name string, t ir.Type, want ...int) {
	for _, w := range want {
		if t.Rank() == w {
			return
		}
	}
	list := ""
	for i, w := range want {
		if i > 0 {
			list += " or "
		}
		list += strconv.Itoa(w)
	}
	failf("%s has %d dimensions (%s), %s are needed", name, t.Rank(), t, list)
}

// same fails where two sizes are known to differ.
func (c *Call) same(what string, a, b sym.Expr) {
	if c.differ(a, b) {
		failf("%s: %s and %s differ", what, a, b)
	}
}

// sameDType fails unless both tensors have one element type.
func sameDType(an string, a ir.Type, bn string, b ir.Type) {
	if a.DType != b.DType {
		failf("%s is %s and %s is %s; both have to be the same", an, a.DType, bn, b.DType)
	}
}

// floating fails unless the element type is floating or complex.
func floating(name string, d ops.DType) {
	if !d.IsFloat() && !d.IsComplex() {
		failf("%s is %s, a floating point type is needed", name, d)
	}
}

// index fails unless the element type can be an index.
func indexType(name string, d ops.DType) {
	if d != ops.Int64 && d != ops.Int32 {
		failf("%s is %s, int64 or int32 is needed", name, d)
	}
}

func shapeString(s []sym.Expr) string {
	return fmt.Sprint(ir.TensorType(ops.DTypeNone, s...))[len("none"):]
}
