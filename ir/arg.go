package ir

import (
	"math"

	"github.com/lathe-ml/lathe/ir/sym"
)

// ArgKind tells what an argument holds.
type ArgKind uint8

// The kinds of arguments.
const (
	ArgNone    ArgKind = iota
	ArgValue           // another value of the graph
	ArgInt             // an integer, constant or an expression over symbols
	ArgFloat           // a constant
	ArgBool            // a constant
	ArgStr             // a string
	ArgDType           // an element type
	ArgLayout          // a layout name
	ArgMemory          // a memory format name
	ArgDevice          // a device name
	ArgComplex         // a constant
	ArgList            // a list of arguments, possibly of values
	ArgGraph           // a nested graph
)

// Arg is one argument of a node. The zero Arg is None. Integers are expressions, so a size that depends on a symbol needs
// no node; floats and bools that are computed are values.
type Arg struct {
	kind ArgKind
	v    *Value
	x    sym.Expr
	f    float64
	ext  *argExt
}

// argExt is what few arguments have, kept out of Arg so that it stays small.
type argExt struct {
	s    string
	list []Arg
	g    *Graph
	f2   float64
}

var noExt argExt

func (a Arg) more() *argExt {
	if a.ext == nil {
		return &noExt
	}
	return a.ext
}

// None is the absent argument.
var None = Arg{}

// Ref is a reference to a value. An integer value whose expression is known becomes that expression.
func Ref(v *Value) Arg {
	if v == nil {
		return None
	}
	if v.Type.Kind == KindInt && v.Type.Known {
		return SymInt(v.Type.Sym)
	}
	return Arg{kind: ArgValue, v: v}
}

// RefAny is a reference to a value even where its expression is known.
func RefAny(v *Value) Arg { return Arg{kind: ArgValue, v: v} }

// Int is a constant integer.
func Int(k int64) Arg { return Arg{kind: ArgInt, x: sym.Const(k)} }

// SymInt is an integer expression.
func SymInt(e sym.Expr) Arg { return Arg{kind: ArgInt, x: e} }

// Float is a constant float.
func Float(f float64) Arg { return Arg{kind: ArgFloat, f: f} }

// Complex is a constant complex number.
func Complex(re, im float64) Arg { return Arg{kind: ArgComplex, f: re, ext: &argExt{f2: im}} }

// Bool is a constant bool.
func Bool(b bool) Arg {
	if b {
		return Arg{kind: ArgBool, f: 1}
	}
	return Arg{kind: ArgBool}
}

// Str is a string.
func Str(s string) Arg { return Arg{kind: ArgStr, ext: &argExt{s: s}} }

// DTypeArg is an element type.
func DTypeArg(d DType) Arg { return Arg{kind: ArgDType, f: float64(d)} }

// Layout is a layout: "strided", "sparse_coo", …
func Layout(s string) Arg { return Arg{kind: ArgLayout, ext: &argExt{s: s}} }

// MemoryFormat is a memory format: "contiguous_format", "preserve_format", "channels_last", "channels_last_3d".
func MemoryFormat(s string) Arg { return Arg{kind: ArgMemory, ext: &argExt{s: s}} }

// Device is a device: "cpu", "cuda:0".
func Device(s string) Arg { return Arg{kind: ArgDevice, ext: &argExt{s: s}} }

// List is a list; the elements are not copied.
func List(as ...Arg) Arg { return Arg{kind: ArgList, ext: &argExt{list: as}} }

// Ints is a list of constants.
func Ints(ks ...int64) Arg {
	l := make([]Arg, len(ks))
	for i, k := range ks {
		l[i] = Int(k)
	}
	return List(l...)
}

// SymInts is a list of expressions.
func SymInts(es ...sym.Expr) Arg {
	l := make([]Arg, len(es))
	for i, e := range es {
		l[i] = SymInt(e)
	}
	return List(l...)
}

// Refs is a list of values.
func Refs(vs ...*Value) Arg {
	l := make([]Arg, len(vs))
	for i, v := range vs {
		l[i] = Ref(v)
	}
	return List(l...)
}

// GraphArg is a nested graph.
func GraphArg(g *Graph) Arg { return Arg{kind: ArgGraph, ext: &argExt{g: g}} }

// Kind tells what a holds.
func (a Arg) Kind() ArgKind { return a.kind }

// IsNone tells the absent argument.
func (a Arg) IsNone() bool { return a.kind == ArgNone }

// Value is the referenced value, or nil.
func (a Arg) Value() *Value { return a.v }

// Int is the constant integer (a constant bool counts as 0 or 1).
func (a Arg) Int() (int64, bool) {
	switch a.kind {
	case ArgInt:
		return a.x.IsConst()
	case ArgBool:
		return int64(a.f), true
	}
	return 0, false
}

// Expr is the integer expression.
func (a Arg) Expr() (sym.Expr, bool) {
	switch a.kind {
	case ArgInt:
		return a.x, true
	case ArgBool:
		return sym.Const(int64(a.f)), true
	}
	return sym.Expr{}, false
}

// Float is the constant number as a float: of a float, integer or bool argument.
func (a Arg) Float() (float64, bool) {
	switch a.kind {
	case ArgFloat, ArgBool:
		return a.f, true
	case ArgInt:
		k, ok := a.x.IsConst()
		return float64(k), ok
	}
	return 0, false
}

// Complex is the constant number as real and imaginary part.
func (a Arg) Complex() (re, im float64, ok bool) {
	if a.kind == ArgComplex {
		return a.f, a.more().f2, true
	}
	re, ok = a.Float()
	return re, 0, ok
}

// Bool is the constant bool (an integer counts as not zero).
func (a Arg) Bool() (val, ok bool) {
	switch a.kind {
	case ArgBool:
		return a.f != 0, true
	case ArgInt:
		k, c := a.x.IsConst()
		return k != 0, c
	}
	return false, false
}

// Str is the text of a string, layout, memory format or device.
func (a Arg) Str() (string, bool) {
	switch a.kind {
	case ArgStr, ArgLayout, ArgMemory, ArgDevice:
		return a.more().s, true
	}
	return "", false
}

// DType is the element type.
func (a Arg) DType() (DType, bool) {
	if a.kind == ArgDType {
		return DType(a.f), true
	}
	return 0, false
}

// List is the elements of a list; the slice is not to be written to.
func (a Arg) List() []Arg { return a.more().list }

// Graph is the nested graph, or nil.
func (a Arg) Graph() *Graph { return a.more().g }

// IntList is the constants of a list of integers.
func (a Arg) IntList() ([]int64, bool) {
	if a.kind != ArgList {
		return nil, false
	}
	ks := make([]int64, len(a.more().list))
	for i, e := range a.more().list {
		k, ok := e.Int()
		if !ok {
			return nil, false
		}
		ks[i] = k
	}
	return ks, true
}

// ExprList is the expressions of a list of integers.
func (a Arg) ExprList() ([]sym.Expr, bool) {
	if a.kind != ArgList {
		return nil, false
	}
	es := make([]sym.Expr, len(a.more().list))
	for i, e := range a.more().list {
		x, ok := e.Expr()
		if !ok {
			return nil, false
		}
		es[i] = x
	}
	return es, true
}

// Values are the values of a list, nil for elements that are none, or the single value.
func (a Arg) Values() []*Value {
	if a.kind != ArgList {
		if a.v != nil {
			return []*Value{a.v}
		}
		return nil
	}
	vs := make([]*Value, len(a.more().list))
	for i, e := range a.more().list {
		vs[i] = e.v
	}
	return vs
}

// Each calls f for every value that a refers to, those of lists included, not those inside nested graphs.
func (a Arg) Each(f func(*Value)) {
	if a.v != nil {
		f(a.v)
	}
	for _, e := range a.more().list {
		e.Each(f)
	}
}

// EachExpr calls f for every integer expression that is not constant.
func (a Arg) EachExpr(f func(sym.Expr)) {
	if a.kind == ArgInt {
		if _, ok := a.x.IsConst(); !ok {
			f(a.x)
		}
	}
	for _, e := range a.more().list {
		e.EachExpr(f)
	}
}

// Map gives a with every referenced value replaced by f's result.
func (a Arg) Map(f func(*Value) *Value) Arg {
	switch {
	case a.v != nil:
		if w := f(a.v); w != a.v {
			return RefAny(w)
		}
	case a.kind == ArgList:
		var out []Arg
		for i, e := range a.more().list {
			m := e.Map(f)
			if out == nil && !sameRef(m, e) {
				out = append(make([]Arg, 0, len(a.more().list)), a.more().list[:i]...)
			}
			if out != nil {
				out = append(out, m)
			}
		}
		if out != nil {
			return List(out...)
		}
	}
	return a
}

func sameRef(a, b Arg) bool {
	if a.kind != b.kind || a.v != b.v || len(a.more().list) != len(b.more().list) {
		return false
	}
	return len(a.more().list) == 0 || &a.more().list[0] == &b.more().list[0]
}

// Equal compares two arguments; nested graphs are equal only to themselves, NaN equals NaN.
func (a Arg) Equal(b Arg) bool {
	if a.kind != b.kind {
		return false
	}
	switch a.kind {
	case ArgValue:
		return a.v == b.v
	case ArgInt:
		return a.x.Equal(b.x)
	case ArgFloat, ArgComplex:
		return math.Float64bits(a.f) == math.Float64bits(b.f) && math.Float64bits(a.more().f2) == math.Float64bits(b.more().f2)
	case ArgBool, ArgDType:
		return a.f == b.f
	case ArgStr, ArgLayout, ArgMemory, ArgDevice:
		return a.more().s == b.more().s
	case ArgGraph:
		return a.more().g == b.more().g
	case ArgList:
		if len(a.more().list) != len(b.more().list) {
			return false
		}
		for i := range a.more().list {
			if !a.more().list[i].Equal(b.more().list[i]) {
				return false
			}
		}
	}
	return true
}

// Named is an argument with the schema's name, for builders.
type Named struct {
	Name string
	Arg  Arg
}
