package mlx

import (
	"github.com/lathe-ml/lathe/codegen/fb/mlx"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

var expertRules = map[ops.ID]rule{
	ops.TransformersGroupedMmFallbackDefault: groupedMm,
	ops.AtenUnderGroupedMmDefault:            groupedMm,
}

// groupedMm multiplies each row with the matrix of its group: the groups' ends at or before the row are counted. Rows after the
// last end are zero.
func groupedMm(m *match) emit {
	x, w, d := m.in(0), m.in(1), m.out().DType
	offs := m.n.ArgNamed("offs").Value()
	if offs == nil || x.Type.Rank() != 2 || w.Type.Rank() != 3 || !d.IsFloat() || x.Type.DType != d || w.Type.DType != d {
		return m.no("groups along another dimension than the rows, or element types that differ")
	}
	if m.n.ArgNamed("bias").Value() != nil {
		return m.no("a bias")
	}
	groups, ok := w.Type.Shape[0].IsConst()
	if !ok || groups < 1 || m.mayBeZero(x.Type.Shape[0]) {
		return m.no("a number of groups that is not constant, or perhaps no rows")
	}
	rows, in, out := x.Type.Shape[0], x.Type.Shape[1], w.Type.Shape[2]
	one := sym.Const(1)
	return func(b *builder) {
		i32, code := ops.Int32, scalarType(ops.Int32)
		row, column, passed := b.temp(i32), b.temp(i32), b.temp(ops.Bool)
		b.emit(&mlx.ARangeNode{Start: lit(0), Stop: b.int(rows), Step: lit(1), ScalarType: &code, Out: row})
		b.emit(&mlx.ExpandDimsNode{X: row, Out: column, Axis: 1})
		b.emit(&mlx.GreaterEqualNode{A: column, B: b.inAs(offs, i32), Out: passed})
		number, count, group, inside := b.temp(i32), b.temp(i32), b.temp(i32), b.temp(ops.Bool)
		b.emit(&mlx.AsTypeNode{X: passed, Out: number, ScalarType: code})
		b.emit(&mlx.SumNode{X: number, Out: count, Axes: []int32{1}})
		b.emit(ltNode(count, b.scalar(i32, ir.Int(groups)), inside))
		b.emit(&mlx.MinimumNode{A: count, B: b.scalar(i32, ir.Int(groups-1)), Out: group})
		wide, product, narrow, mask := b.temp(d), b.temp(d), b.temp(d), b.temp(ops.Bool)
		b.emit(&mlx.ReshapeNode{X: b.in(x), Out: wide, Shape: b.ints([]sym.Expr{rows, one, in})})
		b.emit(&mlx.GatherMmNode{A: wide, B: b.in(w), RhsIndices: &group, SortedIndices: true, Out: product})
		b.emit(&mlx.ReshapeNode{X: product, Out: narrow, Shape: b.ints([]sym.Expr{rows, out})})
		b.emit(&mlx.ExpandDimsNode{X: inside, Out: mask, Axis: 1})
		b.emit(&mlx.WhereNode{Condition: mask, X: narrow, Y: b.float(d, 0), Out: b.out(0)})
	}
}

// picked is an operand of a batched product whose matrices are picked from others by indices: w[at], or its transpose.
type picked struct {
	w, at   *ir.Value
	swapped bool
}

// swapsLast tells that n gives each matrix of a batch transposed.
func swapsLast(n *ir.Node) bool {
	if n.In(0) == nil || n.In(0).Type.Rank() != 3 {
		return false
	}
	switch n.Op {
	case ops.AtenTransposeInt:
		a, okA := n.Arg(1).Int()
		c, okC := n.Arg(2).Int()
		return okA && okC && (a+3)%3+(c+3)%3 == 3 && (a+3)%3 != 0 && (c+3)%3 != 0
	case ops.AtenPermuteDefault:
		p, ok := n.Arg(1).IntList()
		return ok && len(p) == 3 && (p[0]+3)%3 == 0 && (p[1]+3)%3 == 2
	}
	return false
}

func pickedBy(v *ir.Value) *picked {
	p := &picked{}
	n := v.Def
	if n != nil && swapsLast(n) {
		p.swapped, n = true, n.In(0).Def
	}
	if n == nil {
		return nil
	}
	switch n.Op {
	case ops.AtenIndexTensor:
		at := n.Arg(1).Values()
		if len(at) == 0 || at[0] == nil {
			return nil
		}
		for _, v := range at[1:] {
			if v != nil {
				return nil
			}
		}
		p.at = at[0]
	case ops.AtenIndexSelectDefault:
		if k, ok := n.Arg(1).Int(); !ok || k != 0 {
			return nil
		}
		p.at = n.In(2)
	default:
		return nil
	}
	p.w = n.In(0)
	if p.w.Type.Rank() != 3 || p.at.Type.Rank() != 1 || !p.at.Type.DType.IsInt() || p.at.Type.DType == ops.Uint8 {
		return nil
	}
	return p
}

// pickedMm is a product with matrices that indices pick, as the experts of each token, without a copy of each. Nil where no
// operand is picked, or both are.
func pickedMm(m *match) emit {
	x, y, d := m.in(0), m.in(1), m.out().DType
	if x.Type.Rank() != 3 || y.Type.Rank() != 3 || x.Type.DType != d || y.Type.DType != d {
		return nil
	}
	left, right := pickedBy(x), pickedBy(y)
	if (left == nil) == (right == nil) {
		return nil
	}
	p := left
	if p == nil {
		p = right
	}
	// The other operand's matrices go one by one with the indices.
	count, ok := p.w.Type.Shape[0].IsConst()
	other := y
	if left == nil {
		other = x
	}
	if !ok || count < 1 || !other.Type.Shape[0].Equal(p.at.Type.Shape[0]) || m.mayBeZero(p.at.Type.Shape[0]) {
		return nil
	}
	return func(b *builder) {
		w := b.in(p.w)
		if p.swapped {
			t := b.temp(d)
			b.emit(&mlx.TransposeNode{X: w, Out: t, Perm: []int32{0, 2, 1}})
			w = t
		}
		at := b.index(p.at)
		if !counted(p.at) {
			// Places from the end are those from the front here.
			whole := b.temp(b.dtype(at))
			b.emit(&mlx.RemainderNode{A: at, B: b.scalar(b.dtype(at), ir.Int(count)), Out: whole})
			at = whole
		}
		n := &mlx.GatherMmNode{A: w, LhsIndices: &at, B: b.in(other), Out: b.out(0)}
		if left == nil {
			n.A, n.LhsIndices, n.B, n.RhsIndices = b.in(other), nil, w, &at
		}
		b.emit(n)
	}
}

// counted tells that indices are places that an operator counted, none of them below zero.
func counted(v *ir.Value) bool {
	for v.Def != nil {
		n := v.Def
		switch n.Op {
		case ops.AtenTopkDefault, ops.AtenSortDefault, ops.AtenSortStable:
			return v == n.Outs[1]
		case ops.AtenArgsortDefault, ops.AtenArgmaxDefault, ops.AtenArangeDefault:
			return true
		case ops.AtenViewDefault, ops.AtenReshapeDefault, ops.AtenFlattenUsingInts, ops.AtenUnsqueezeDefault, ops.AtenSqueezeDim,
			ops.AtenCloneDefault, ops.AtenContiguousDefault, ops.AtenSelectInt, ops.AtenSliceTensor:
			v = n.In(0)
		case ops.AtenUnderToCopyDefault:
			if v.Type.DType.Size() < 4 {
				return false // the number may wrap
			}
			v = n.In(0)
		default:
			return false
		}
	}
	return false
}
