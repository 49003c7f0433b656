package passes

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// GroupHeads multiplies all query heads of a group with their one key or value head, instead of repeating that.
var GroupHeads = Pass{
	Name: "group-heads",
	Doc:  "Takes the repetition of key and value heads out of batched products: the rows of a group's heads are multiplied together.",
	Run: func(ctx *Context, g *ir.Graph) error {
		if g.Stage == ops.StageAten {
			return nil
		}
		return each(g, func(n *ir.Node) error {
			switch n.Op {
			case ops.AtenUnderToCopyDefault, ops.AtenMulScalar:
				return repeatLater(ctx, n)
			case ops.AtenBmmDefault:
				return groupHeads(ctx, n)
			}
			return nil
		})
	},
}

// repeatedHeads is a value whose rows stand several times: x of shape [..., 1, ...] expanded to times at dim, under a shape in
// which dim and the one before it are joined or all up to dim are.
type repeatedHeads struct {
	x     *ir.Value
	dim   int
	times int64
	expand,
	view *ir.Node
}

// asRepeated recognises view(expand(x)) where one dimension is repeated and joined with the one before it.
func asRepeated(v *ir.Value) (r repeatedHeads, ok bool) {
	n := v.Def
	for n != nil && viewKindOf(n) == viewShape && n.In(0) != nil {
		if r.view == nil {
			r.view = n
		}
		n = n.In(0).Def
	}
	if n == nil || r.view == nil || viewKindOf(n) != viewExpand || n.In(0) == nil {
		return r, false
	}
	x, e := n.In(0), n.Out()
	if x.Type.Rank() != e.Type.Rank() {
		return r, false
	}
	r.x, r.expand, r.dim = x, n, -1
	for i, s := range e.Type.Shape {
		if x.Type.Shape[i].Equal(s) {
			continue
		}
		k, isConst := s.IsConst()
		if r.dim >= 0 || !x.Type.Shape[i].IsConstValue(1) || !isConst {
			return r, false
		}
		r.dim, r.times = i, k
	}
	return r, r.dim > 0
}

// repeatLater computes a number for each element before the elements are repeated.
func repeatLater(ctx *Context, n *ir.Node) error {
	v := n.In(0)
	if v == nil || v.NumUses() != 1 || !ir.EqualShape(v.Type.Shape, n.Out().Type.Shape) {
		return nil
	}
	r, ok := asRepeated(v)
	if !ok || r.expand.Out().NumUses() != 1 {
		return nil
	}
	b, ok := ctx.Rewrite(n, "repeat-later")
	if !ok {
		return nil
	}
	args := append([]ir.Arg(nil), n.Args()...)
	args[0] = ir.Ref(r.x)
	y := op.New(b, n.Op, args)
	if y == nil {
		return b.Err
	}
	e := op.AtenExpandDefault(b, y.Out(), shapeArg(r.expand.Out()))
	return ctx.replace(b, n, op.AtenViewDefault(b, e, shapeArg(n.Out())))
}

// groupHeads rewrites bmm(a, b) where b's matrices stand several times in a row.
func groupHeads(ctx *Context, n *ir.Node) error {
	a, v := n.In(0), n.In(1)
	batch := v.Type.Shape[0]
	// [B*K*G, X, Y], perhaps with X and Y exchanged after the repetition.
	swapped := false
	src := v
	for src.Def != nil && viewKindOf(src.Def) == viewShape && src.Def.In(0) != nil {
		in := src.Def.In(0)
		if k := in.Type.Rank(); k < 3 || in.Def == nil || viewKindOf(in.Def) != viewShape && viewKindOf(in.Def) != viewPermute {
			break
		}
		src = in
	}
	if p := src.Def; p != nil && viewKindOf(p) == viewPermute && p.In(0) != nil {
		perm, ok := permOf(p)
		if !ok || len(perm) < 3 {
			return nil
		}
		last := len(perm) - 1
		perm[last], perm[last-1] = perm[last-1], perm[last]
		if !isIdentity(perm) {
			return nil
		}
		swapped = true
		src = p.In(0)
	} else {
		src = v
	}
	r, ok := asRepeated(src)
	// The matrices are the last two dimensions, what is repeated stands right before them.
	if !ok || r.dim != r.x.Type.Rank()-3 {
		return nil
	}
	xs := r.x.Type.Shape
	rows, cols := xs[r.dim+1], xs[r.dim+2]
	s := src.Type.Shape
	if k := len(s); k < 3 || !s[k-2].Equal(rows) || !s[k-1].Equal(cols) {
		return nil
	}
	heads := sym.Const(1)
	for _, e := range xs[:r.dim] {
		heads = sym.Mul(heads, e)
	}
	if !sym.Mul(heads, sym.Const(r.times)).Equal(batch) {
		return nil
	}
	x, y := v.Type.Shape[1], v.Type.Shape[2]
	if swapped && (!x.Equal(cols) || !y.Equal(rows)) || !swapped && (!x.Equal(rows) || !y.Equal(cols)) {
		return nil
	}
	b, ok := ctx.Rewrite(n, "group")
	if !ok {
		return nil
	}
	m := op.AtenViewDefault(b, r.x, ir.SymInts(heads, rows, cols))
	if swapped {
		m = op.AtenPermuteDefault(b, m, ir.Ints(0, 2, 1))
	}
	group := sym.Mul(sym.Const(r.times), a.Type.Shape[1])
	q := op.AtenViewDefault(b, a, ir.SymInts(heads, group, a.Type.Shape[2]))
	out := op.AtenBmmDefault(b, q, m)
	return ctx.replace(b, n, op.AtenViewDefault(b, out, shapeArg(n.Out())))
}
