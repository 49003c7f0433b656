package passes

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// GatherExperts multiplies rows with matrices that indices pick, without copies of the matrices.
var GatherExperts = Pass{
	Name: "gather-experts",
	Doc: "Replaces batched products with matrices that were picked by an index, and grouped products of sorted rows, by products that " +
		"read each picked matrix where it lies.",
	Run: func(ctx *Context, g *ir.Graph) error {
		if g.Stage == ops.StageAten {
			return nil
		}
		return each(g, func(n *ir.Node) error {
			switch n.Op {
			case ops.AtenBmmDefault, ops.AtenMatmulDefault:
				return gatherBatched(ctx, n)
			case ops.TransformersGroupedMmFallbackDefault, ops.AtenUnderGroupedMmDefault:
				return gatherGrouped(ctx, n)
			}
			return nil
		})
	},
}

// picked is a stack of matrices that index picks from w: w[index].
type picked struct {
	w, index *ir.Value
	swapped  bool // rows and columns exchanged afterwards
}

// pickedMatrices recognises w[index], perhaps with its matrices transposed. Places from the end have no form in gather_mm.
func pickedMatrices(v *ir.Value) (p picked, ok bool) {
	for v.Def != nil && viewKindOf(v.Def) == viewPermute && v.Type.Rank() == 3 {
		perm, isPerm := permOf(v.Def)
		if !isPerm || perm[0] != 0 {
			return p, false
		}
		p.swapped = p.swapped != (perm[1] == 2)
		v = v.Def.In(0)
	}
	n := v.Def
	if n == nil || v.Type.Rank() != 3 {
		return p, false
	}
	switch n.Op {
	case ops.AtenIndexTensor:
		if l := n.Arg(1).List(); len(l) == 1 {
			p.w, p.index = n.In(0), l[0].Value()
		}
	case ops.AtenIndexSelectDefault:
		if d, isConst := n.Arg(1).Int(); isConst && wrapDim(d, 3) == 0 {
			p.w, p.index = n.In(0), n.In(2)
		}
	}
	if p.w == nil || p.index == nil || p.w.Type.Rank() != 3 || p.index.Type.Rank() != 1 || !p.index.Type.DType.IsInt() {
		return p, false
	}
	_, ok = placesBelow(p.index, 12)
	return p, ok
}

// placesBelow bounds indices that are known not to be negative: they are places along a dimension of n elements. An n of zero
// stands for an unknown one.
func placesBelow(v *ir.Value, depth int) (n int64, ok bool) {
	if depth == 0 || v.Def == nil || v.Def.Op == ops.Unknown {
		return 0, false
	}
	d := v.Def
	along := func(i int) (int64, bool) {
		k, isConst := d.Arg(i).Int()
		if x := d.In(0); isConst && x.Type.Rank() > 0 {
			n, _ := ir.Dim(x, wrapDim(k, x.Type.Rank())-x.Type.Rank()).IsConst()
			return n, true
		}
		return 0, false
	}
	switch d.Op {
	case ops.AtenTopkDefault:
		if v.Index == 1 {
			return along(2)
		}
	case ops.AtenSortDefault:
		if v.Index == 1 {
			return along(1)
		}
		return placesBelow(d.In(0), depth-1)
	case ops.AtenArgmaxDefault, ops.AtenArgsortDefault:
		return along(1)
	case ops.AtenIndexTensor, ops.AtenIndexSelectDefault, ops.AtenGatherDefault, ops.AtenCloneDefault, ops.AtenRepeatInterleaveSelfInt:
		return placesBelow(d.In(0), depth-1)
	case ops.AtenToDtype, ops.AtenToDevice, ops.AtenUnderToCopyDefault:
		if x := d.In(0).Type.DType; x.IsInt() && v.Type.DType.IsInt() && x.Size() <= v.Type.DType.Size() {
			return placesBelow(d.In(0), depth-1)
		}
	case ops.AtenClampDefault:
		low, isLow := d.Arg(1).Int()
		high, isHigh := d.Arg(2).Int()
		if !isLow || low < 0 {
			return 0, false
		}
		if isHigh && high >= low {
			n = high + 1
		}
		return n, true
	}
	switch viewKindOf(d) {
	case viewSame, viewShape, viewPermute, viewSlice, viewSelect, viewExpand:
		if in := viewed(d, v.Index); in != nil {
			return placesBelow(in, depth-1)
		}
	}
	return 0, false
}

// gatherBatched rewrites bmm(x, w[index]) and bmm(w[index], x).
func gatherBatched(ctx *Context, n *ir.Node) error {
	a, c := n.In(0), n.In(1)
	if a.Type.Rank() != 3 || c.Type.Rank() != 3 || !n.Out().Type.DType.IsFloat() {
		return nil
	}
	left := false
	p, ok := pickedMatrices(c)
	if !ok {
		if p, ok = pickedMatrices(a); !ok {
			return nil
		}
		left, a = true, c
	}
	if !a.Type.Shape[0].Equal(p.index.Type.Shape[0]) {
		return nil
	}
	b, ok := ctx.Rewrite(n, "picked")
	if !ok {
		return nil
	}
	w := p.w
	if p.swapped != left {
		w = op.AtenPermuteDefault(b, w, ir.Ints(0, 2, 1))
	}
	if left {
		a = turned(b, a)
	}
	y := op.MlxGatherMmDefault(b, a, w, op.KW("rhs_indices", ir.Ref(p.index)))
	if left {
		y = turned(b, y)
	}
	return ctx.replace(b, n, y)
}

// turned is x with rows and columns exchanged: a view of its shape where there is one row or column alone.
func turned(b *ir.Builder, x *ir.Value) *ir.Value {
	if x == nil {
		return nil
	}
	s := x.Type.Shape
	if s[1].IsConstValue(1) || s[2].IsConstValue(1) {
		return op.AtenViewDefault(b, x, ir.SymInts(s[0], s[2], s[1]))
	}
	return op.AtenPermuteDefault(b, x, ir.Ints(0, 2, 1))
}

// gatherGrouped rewrites a grouped product: each row multiplies with the matrix of its group, the groups in order.
func gatherGrouped(ctx *Context, n *ir.Node) error {
	x, w, offs := n.In(0), n.In(1), n.ArgNamed("offs").Value()
	if x.Type.Rank() != 2 || w.Type.Rank() != 3 || offs == nil || n.Out().Type.DType != x.Type.DType || !x.Type.DType.IsFloat() ||
		n.Op == ops.AtenUnderGroupedMmDefault && !n.ArgNamed("bias").IsNone() {
		return nil
	}
	groups, ok := w.Type.Shape[0].IsConst()
	if !ok || groups < 1 {
		return nil
	}
	b, ok := ctx.Rewrite(n, "grouped")
	if !ok {
		return nil
	}
	d := &Decomp{Builder: b, N: n}
	vs := d.protect(func() []*ir.Value {
		ids, below := sortedGroups(offs, x.Type.Shape[0], groups)
		if ids == nil {
			ids = d.groupOf(x, offs)
		}
		// Rows after the last group belong to none.
		var inside *ir.Value
		if below == 0 || below > groups {
			inside = d.lt(ids, int(groups))
			ids = d.where(inside, ids, int(groups-1))
		}
		one := sym.Const(1)
		rows, cols := x.Type.Shape[0], w.Type.Shape[2]
		order := d.v(op.AtenFullDefault(b, ir.Ints(), ir.Bool(true), op.KW("dtype", ir.DTypeArg(ops.Bool))))
		y := d.v(op.MlxGatherMmDefault(b, d.view(x, rows, one, x.Type.Shape[1]), w, op.KW("rhs_indices", ir.Ref(ids)), op.KW("sorted_indices", ir.Ref(order))))
		y = d.view(y, rows, cols)
		if inside != nil {
			y = d.where(d.unsqueeze(inside, 1), y, 0.0)
		}
		return d.back(y)
	})
	if b.Err == nil && vs == nil {
		return nil
	}
	return ctx.replace(b, n, vs...)
}

// sortedGroups finds the groups of sorted rows whose ends are the running sum of a histogram over the groups; below bounds
// them as placesBelow does.
func sortedGroups(offs *ir.Value, rows sym.Expr, groups int64) (ids *ir.Value, below int64) {
	strip := func(v *ir.Value) *ir.Value {
		for v.Def != nil && (isConversion(v.Def) || v.Def.Op == ops.AtenToDevice) {
			v = v.Def.In(0)
		}
		return v
	}
	sum := strip(offs).Def
	if sum == nil || sum.Op != ops.AtenCumsumDefault {
		return nil, 0
	}
	h := strip(sum.In(0)).Def
	if h == nil || h.Op != ops.AtenHistcDefault {
		return nil, 0
	}
	bins, okB := h.ArgNamed("bins").Int()
	low, okL := h.ArgNamed("min").Float()
	high, okH := h.ArgNamed("max").Float()
	ids = strip(h.In(0))
	s := ids.Def
	if !okB || !okL || !okH || bins != groups || groups < 2 || low != 0 || high != float64(groups-1) || s == nil || s.Op != ops.AtenSortDefault ||
		ids.Index != 0 || ids.Type.Rank() != 1 || !ids.Type.Shape[0].Equal(rows) || !ids.Type.DType.IsInt() || groups > 1<<20 {
		return nil, 0
	}
	if down, ok := s.ArgNamed("descending").Bool(); !ok || down {
		return nil, 0
	}
	below, ok := placesBelow(ids, 12)
	if !ok {
		return nil, 0
	}
	return ids, below
}
