// Package ir is the typed graph that every stage of Lathe works on: programs, graphs, nodes, values, types, origins and
// diagnostics, and the editing of them.
package ir

import (
	"math"
	"strings"

	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// DType is the element type of a tensor.
type DType = ops.DType

// Kind tells what a value is.
type Kind uint8

// The kinds of values. Lists have no kind of their own: an operator that returns Tensor[] has one result a tensor.
const (
	KindTensor Kind = iota
	KindInt         // Python int or SymInt
	KindFloat
	KindBool
	KindStr
	KindNone
	KindObject // a custom object; only carried
)

var kindNames = [...]string{"tensor", "int", "float", "bool", "str", "none", "object"}

// String is the kind's name in IR text.
func (k Kind) String() string { return kindNames[k] }

// Quant says that a tensor's elements stand for real numbers.
type Quant struct {
	Scheme     string // affine, nvfp4, mx
	Block      []int64
	QMin, QMax int64
	Real       DType // the type it dequantizes to
}

// Type is all that is known of a value before it is computed.
type Type struct {
	Kind  Kind
	DType DType
	// Shape has one expression a dimension; empty for a 0-d tensor.
	Shape []sym.Expr
	// Strides are in elements; nil means contiguous (row-major).
	Strides []sym.Expr
	Quant   *Quant
	// Sym is the expression of a KindInt value; the zero Expr with Known false where nothing is known.
	Sym   sym.Expr
	Known bool
}

// TensorType is a contiguous tensor's type.
func TensorType(d DType, shape ...sym.Expr) Type { return Type{DType: d, Shape: shape} }

// StaticType is a contiguous tensor's type with constant sizes.
func StaticType(d DType, sizes ...int64) Type { return Type{DType: d, Shape: Consts(sizes...)} }

// IntType is an integer's type with its expression.
func IntType(e sym.Expr) Type { return Type{Kind: KindInt, Sym: e, Known: true} }

// ScalarType is the type of a float, bool, string, None or an integer of unknown value.
func ScalarType(k Kind) Type { return Type{Kind: k} }

// Consts makes a list of constant expressions.
func Consts(ks ...int64) []sym.Expr {
	es := make([]sym.Expr, len(ks))
	for i, k := range ks {
		es[i] = sym.Const(k)
	}
	return es
}

// IsTensor tells tensors from scalars.
func (t Type) IsTensor() bool { return t.Kind == KindTensor }

// Rank is the number of dimensions.
func (t Type) Rank() int { return len(t.Shape) }

// Sizes gives the shape where it is constant.
func (t Type) Sizes() ([]int64, bool) { return ConstInts(t.Shape) }

// Static tells whether all sizes are constant.
func (t Type) Static() bool {
	for _, e := range t.Shape {
		if _, ok := e.IsConst(); !ok {
			return false
		}
	}
	return true
}

// Numel is the number of elements.
func (t Type) Numel() sym.Expr {
	n := sym.Const(1)
	for _, e := range t.Shape {
		n = sym.Mul(n, e)
	}
	return n
}

// ConstInts gives the values of es where all are constant.
func ConstInts(es []sym.Expr) ([]int64, bool) {
	ks := make([]int64, len(es))
	for i, e := range es {
		k, ok := e.IsConst()
		if !ok {
			return nil, false
		}
		ks[i] = k
	}
	return ks, true
}

// EqualShape compares two shapes as expressions.
func EqualShape(a, b []sym.Expr) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !a[i].Equal(b[i]) {
			return false
		}
	}
	return true
}

// Equal compares types; strides that say contiguous equal nil ones.
func (t Type) Equal(u Type) bool {
	if t.Kind != u.Kind || t.DType != u.DType || !EqualShape(t.Shape, u.Shape) {
		return false
	}
	if t.Kind == KindInt && (t.Known != u.Known || t.Known && !t.Sym.Equal(u.Sym)) {
		return false
	}
	return EqualShape(t.NormStrides(), u.NormStrides())
}

// ContiguousStrides are the row-major strides of a shape. A size of zero counts as one, as in torch; symbolic sizes are
// taken not to be zero, for then no stride matters.
func ContiguousStrides(shape []sym.Expr) []sym.Expr {
	s := make([]sym.Expr, len(shape))
	n := sym.Const(1)
	for i := len(shape) - 1; i >= 0; i-- {
		s[i] = n
		if !shape[i].IsConstValue(0) {
			n = sym.Mul(n, shape[i])
		}
	}
	return s
}

// NormStrides gives nil for strides that are contiguous (sizes of one do not matter, and a size that may be zero may count
// as one), otherwise the strides.
func (t Type) NormStrides() []sym.Expr {
	if t.Strides == nil {
		return nil
	}
	want, or := sym.Const(1), sym.Const(1)
	for i := len(t.Shape) - 1; i >= 0; i-- {
		e, st := t.Shape[i], t.Strides[i]
		if e.IsConstValue(1) {
			continue
		}
		switch {
		case st.Equal(want):
		case st.Equal(or):
			want = or
		default:
			return t.Strides
		}
		if e.IsConstValue(0) {
			e = sym.Const(1)
		}
		want, or = sym.Mul(want, e), sym.Mul(want, sym.Max(e, sym.Const(1)))
	}
	return nil
}

// Contiguous tells whether the tensor lies row-major without gaps.
func (t Type) Contiguous() bool { return t.NormStrides() == nil }

// DimOrder is the order of dimensions from the outermost to the innermost in memory, as the runtime has it, and whether
// the tensor is dense in that order.
func (t Type) DimOrder() (order []int, dense bool) {
	n := len(t.Shape)
	order = make([]int, n)
	for i := range order {
		order[i] = i
	}
	st := t.NormStrides()
	if st == nil {
		return order, true
	}
	// Insertion sort by decreasing stride: stable, ranks are small. Unknown order of two symbolic strides keeps theirs.
	greater := func(a, b sym.Expr) bool {
		ka, oka := a.IsConst()
		kb, okb := b.IsConst()
		if oka && okb {
			return ka > kb
		}
		r := sym.Bounds(sym.Sub(a, b), func(string) sym.Range { return sym.Range{Min: 1, Max: math.MaxInt64} })
		return r.Min > 0
	}
	for i := 1; i < n; i++ {
		for j := i; j > 0 && greater(st[order[j]], st[order[j-1]]); j-- {
			order[j], order[j-1] = order[j-1], order[j]
		}
	}
	expect := sym.Const(1)
	for i := n - 1; i >= 0; i-- {
		d := order[i]
		if k, ok := t.Shape[d].IsConst(); ok && k == 1 {
			continue
		}
		if !st[d].Equal(expect) {
			return order, false
		}
		expect = sym.Mul(expect, t.Shape[d])
	}
	return order, true
}

// String prints the type as in IR text: f32[s0, 4]{1, s0}, int(s0 + 1), bool.
func (t Type) String() string {
	var b strings.Builder
	switch t.Kind {
	case KindTensor:
		b.WriteString(t.DType.String())
		writeExprs(&b, '[', t.Shape, ']')
		if s := t.NormStrides(); s != nil {
			writeExprs(&b, '{', s, '}')
		}
		if t.Quant != nil {
			b.WriteString("!" + t.Quant.Scheme)
		}
	case KindInt:
		b.WriteString("int")
		if t.Known {
			b.WriteString("(" + t.Sym.String() + ")")
		}
	default:
		b.WriteString(t.Kind.String())
	}
	return b.String()
}

func writeExprs(b *strings.Builder, open byte, es []sym.Expr, closing byte) {
	b.WriteByte(open)
	for i, e := range es {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(e.String())
	}
	b.WriteByte(closing)
}
