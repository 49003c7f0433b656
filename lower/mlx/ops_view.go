package mlx

import (
	"github.com/lathe-ml/lathe/codegen/fb/mlx"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

var viewRules = map[ops.ID]rule{
	ops.AtenViewDefault:             reshape,
	ops.AtenReshapeDefault:          reshape,
	ops.AtenUnderUnsafeViewDefault:  reshape,
	ops.AtenFlattenUsingInts:        reshape,
	ops.AtenUnflattenInt:            reshape,
	ops.AtenUnsqueezeDefault:        unsqueeze,
	ops.AtenSqueezeDefault:          reshape,
	ops.AtenSqueezeDim:              squeeze,
	ops.AtenSqueezeDims:             squeeze,
	ops.AtenPermuteDefault:          permute,
	ops.AtenTransposeInt:            transpose,
	ops.AtenTDefault:                transpose,
	ops.AtenExpandDefault:           expand,
	ops.AtenExpandAsDefault:         expand,
	ops.AtenSliceTensor:             slice,
	ops.AtenNarrowDefault:           narrowRule,
	ops.AtenSelectInt:               selectRule,
	ops.AtenUnbindInt:               unbind,
	ops.AtenSplitTensor:             split,
	ops.AtenSplitWithSizesDefault:   split,
	ops.AtenChunkDefault:            split,
	ops.AtenCatDefault:              cat,
	ops.AtenStackDefault:            stack,
	ops.AtenRepeatDefault:           repeat,
	ops.AtenTileDefault:             repeat,
	ops.AtenRepeatInterleaveSelfInt: repeatInterleave,
	ops.AtenRollDefault:             roll,
	ops.AtenFlipDefault:             flip,
	ops.AtenConstantPadNdDefault:    pad,
	ops.AtenUnfoldDefault:           unfold,
	ops.AtenAsStridedDefault:        asStrided,
}

func reshape(m *match) emit {
	x, shape := m.in(0), m.out().Shape
	if x.Type.DType != m.out().DType {
		return m.no("it reads the bytes as another type")
	}
	return func(b *builder) {
		b.emit(&mlx.ReshapeNode{X: b.raw(x), Out: b.outLike(0, x), Shape: b.viewShape(shape)})
	}
}

// outLike is the tensor of result i with the element type that x has in the delegate, where both have the same in the graph.
func (b *builder) outLike(i int, x *ir.Value) mlx.Tid { return b.outAs(i, b.dtype(b.raw(x))) }

// viewShape is a shape with the same number of elements as the tensor had: one size need not be computed.
func (b *builder) viewShape(shape []sym.Expr) []*mlx.IntOrVid {
	free := -1
	for i, e := range shape {
		if _, ok := e.IsConst(); ok {
			if e.IsConstValue(0) {
				free = -1
				break
			}
			continue
		}
		if b.g.Syms.Range(e).Min < 1 {
			free = -1
			break
		}
		if _, ok := b.lookup(e); !ok || free < 0 {
			free = i
		}
	}
	out := make([]*mlx.IntOrVid, len(shape))
	for i, e := range shape {
		if i == free {
			out[i] = lit(-1)
			continue
		}
		out[i] = b.int(e)
	}
	return out
}

func unsqueeze(m *match) emit {
	x := m.in(0)
	d, ok := m.dim(1, x.Type.Rank()+1)
	if !ok {
		return nil
	}
	return func(b *builder) { b.emit(&mlx.ExpandDimsNode{X: b.raw(x), Out: b.outLike(0, x), Axis: int32(d)}) }
}

func squeeze(m *match) emit {
	x := m.in(0)
	ks, ok := m.ints(1)
	if !ok {
		return nil
	}
	var dims []int32
	for _, k := range ks {
		if x.Type.Rank() == 0 {
			break
		}
		d, ok := m.axis(k, x.Type.Rank())
		if !ok {
			return nil
		}
		if x.Type.Shape[d].IsConstValue(1) {
			dims = append(dims, int32(d))
		}
	}
	if len(dims) != x.Type.Rank()-m.out().Rank() {
		return m.no("whether a size is one is not known")
	}
	if len(dims) == 0 {
		return identity(m)
	}
	return func(b *builder) { b.emit(&mlx.SqueezeNode{X: b.raw(x), Out: b.outLike(0, x), Dims: dims}) }
}

func permute(m *match) emit {
	ks, ok := m.ints(1)
	if !ok {
		return nil
	}
	perm := make([]int32, len(ks))
	for i, k := range ks {
		d, ok := m.axis(k, len(ks))
		if !ok {
			return nil
		}
		perm[i] = int32(d)
	}
	return transposed(m, perm)
}

func transposed(m *match, perm []int32) emit {
	x := m.in(0)
	same := true
	for i, p := range perm {
		same = same && int(p) == i
	}
	if same {
		return identity(m)
	}
	return func(b *builder) { b.emit(&mlx.TransposeNode{X: b.raw(x), Out: b.outLike(0, x), Perm: perm}) }
}

func transpose(m *match) emit {
	rank := m.typ(0).Rank()
	perm := make([]int32, rank)
	for i := range perm {
		perm[i] = int32(i)
	}
	i, j := 0, 1
	switch {
	case rank < 2:
		return identity(m)
	case m.n.NumArgs() == 3:
		var ok, okj bool
		i, ok = m.dim(1, rank)
		j, okj = m.dim(2, rank)
		if !ok || !okj {
			return nil
		}
	}
	perm[i], perm[j] = perm[j], perm[i]
	return transposed(m, perm)
}

func expand(m *match) emit {
	x, shape := m.in(0), m.out().Shape
	if ir.EqualShape(x.Type.Shape, shape) {
		return identity(m)
	}
	return func(b *builder) {
		n := &mlx.BroadcastToNode{X: b.raw(x), Shape: make([]*mlx.IntOrVid, len(shape))}
		off := len(shape) - x.Type.Rank()
		for i, e := range shape {
			if _, ok := e.IsConst(); !ok && i >= off && x.Type.Shape[i-off].Equal(e) {
				n.Shape[i] = lit(-1)
				continue
			}
			n.Shape[i] = b.int(e)
		}
		n.Out = b.outLike(0, x)
		b.emit(n)
	}
}

// slice is x[start:end:step] along a dimension, with Python's rules for ends beyond the tensor's.
func slice(m *match) emit {
	x := m.in(0)
	d, ok := m.dim(1, x.Type.Rank())
	if !ok {
		return nil
	}
	step, ok := m.intArg(4)
	if !ok || step < 1 {
		return m.no("a step below one")
	}
	start, stop := sym.Const(0), x.Type.Shape[d]
	if a := m.arg(2); !a.IsNone() {
		if start, ok = a.Expr(); !ok {
			return m.no("its start is computed")
		}
	}
	if a := m.arg(3); !a.IsNone() {
		if stop, ok = a.Expr(); !ok {
			return m.no("its end is computed")
		}
	}
	if x.Type.Shape[d].Equal(m.out().Shape[d]) && step == 1 {
		return identity(m)
	}
	return func(b *builder) {
		n := mlx.NewSliceNode()
		n.X, n.Axis, n.Start, n.Step = b.raw(x), lit(int64(d)), b.int(start), int32(step)
		n.Stop = b.stop(stop, x.Type.Shape[d])
		n.Out = b.outLike(0, x)
		b.emit(n)
	}
}

// stop is where a slice ends: a literal beyond all sizes where it ends with the tensor.
func (b *builder) stop(e, size sym.Expr) *mlx.IntOrVid {
	if k, ok := e.IsConst(); ok {
		return lit(min(k, far))
	}
	if e.Equal(size) {
		return lit(far)
	}
	return b.int(e)
}

func narrowRule(m *match) emit {
	x := m.in(0)
	d, ok := m.dim(1, x.Type.Rank())
	if !ok {
		return nil
	}
	start, ok := m.arg(2).Expr()
	length, ok2 := m.arg(3).Expr()
	if !ok || !ok2 {
		return m.no("its range is computed")
	}
	if k, ok := start.IsConst(); ok && k < 0 {
		start = sym.Add(start, x.Type.Shape[d])
	}
	return func(b *builder) {
		n := mlx.NewSliceNode()
		n.X, n.Axis, n.Start = b.raw(x), lit(int64(d)), b.int(start)
		n.Stop = b.stop(sym.Add(start, length), x.Type.Shape[d])
		n.Out = b.outLike(0, x)
		b.emit(n)
	}
}

func selectRule(m *match) emit {
	x := m.in(0)
	d, ok := m.dim(1, x.Type.Rank())
	if !ok {
		return nil
	}
	i, ok := m.arg(2).Expr()
	if !ok {
		return m.no("its index is computed")
	}
	return func(b *builder) {
		b.emit(&mlx.TakeNode{X: b.raw(x), Index: index(b.int(i)), Out: b.outLike(0, x), Axis: int32(d)})
	}
}

func index(x *mlx.IntOrVid) *mlx.IntOrVidOrTid {
	if x.IsVid {
		v := *x.Vid
		return &mlx.IntOrVidOrTid{Kind: 1, Vid: &v}
	}
	return &mlx.IntOrVidOrTid{Literal: x.Literal}
}

func indexTensor(t mlx.Tid) *mlx.IntOrVidOrTid { return &mlx.IntOrVidOrTid{Kind: 2, Tid: &t} }

func unbind(m *match) emit {
	x := m.in(0)
	d, ok := m.dim(1, x.Type.Rank())
	if !ok {
		return nil
	}
	return func(b *builder) {
		for i, o := range b.n.Outs {
			if o.NumUses() > 0 {
				b.emit(&mlx.TakeNode{X: b.raw(x), Index: index(lit(int64(i))), Out: b.outLike(i, x), Axis: int32(d)})
			}
		}
	}
}

// split is split, split_with_sizes and chunk: the results' types say how long each part is.
func split(m *match) emit {
	x := m.in(0)
	d, ok := m.dim(2, x.Type.Rank())
	if !ok {
		return nil
	}
	outs := m.n.Outs
	if len(outs) == 1 {
		return identity(m)
	}
	return func(b *builder) {
		n := &mlx.SplitNode{X: b.raw(x), Axis: int32(d)}
		for i, o := range outs {
			n.Outs = append(n.Outs, b.outLike(i, x))
			n.Sizes = append(n.Sizes, b.int(o.Type.Shape[d]))
		}
		b.emit(n)
	}
}

func cat(m *match) emit {
	d := m.out().DType
	rank := m.out().Rank()
	axis, ok := m.dim(1, rank)
	if !ok {
		return nil
	}
	var vs []*ir.Value
	for _, v := range m.arg(0).Values() {
		// torch passes over an empty vector among tensors of another rank.
		if v.Type.Rank() != rank || v.Type.Shape[axis].IsConstValue(0) {
			continue
		}
		vs = append(vs, v)
	}
	if len(vs) == 0 {
		return m.no("nothing to join")
	}
	if len(vs) == 1 {
		return func(b *builder) { b.result(0, b.inAs(vs[0], d)) }
	}
	return func(b *builder) {
		n := &mlx.ConcatenateNode{Axis: int32(axis)}
		for _, v := range vs {
			n.Tensors = append(n.Tensors, b.inAs(v, d))
		}
		n.Out = b.out(0)
		b.emit(n)
	}
}

func stack(m *match) emit {
	d := m.out().DType
	axis, ok := m.dim(1, m.out().Rank())
	if !ok {
		return nil
	}
	vs := m.arg(0).Values()
	return func(b *builder) {
		n := &mlx.StackNode{Axis: int32(axis)}
		for _, v := range vs {
			n.Tensors = append(n.Tensors, b.inAs(v, d))
		}
		n.Out = b.out(0)
		b.emit(n)
	}
}

func repeat(m *match) emit {
	x := m.in(0)
	reps, ok := m.arg(1).ExprList()
	if !ok {
		return m.no("its counts are computed")
	}
	for _, r := range reps {
		if r.IsConstValue(0) {
			return m.no("an empty result")
		}
	}
	return func(b *builder) { b.emit(&mlx.TileNode{X: b.raw(x), Out: b.outLike(0, x), Reps: b.ints(reps)}) }
}

func repeatInterleave(m *match) emit {
	x := m.in(0)
	r, ok := m.arg(1).Expr()
	if !ok {
		return m.no("its count is computed")
	}
	if m.n.ArgNamed("dim").IsNone() || x.Type.Rank() == 0 {
		return func(b *builder) {
			flat := b.temp(b.dtype(b.raw(x)))
			b.emit(&mlx.ReshapeNode{X: b.raw(x), Out: flat, Shape: []*mlx.IntOrVid{lit(-1)}})
			b.emit(&mlx.RepeatNode{X: flat, Out: b.outLike(0, x), Repeats: b.int(r)})
		}
	}
	k, ok := m.n.ArgNamed("dim").Int()
	if !ok {
		return m.no("its dimension is not constant")
	}
	d, ok := m.axis(k, x.Type.Rank())
	if !ok {
		return nil
	}
	return func(b *builder) {
		b.emit(&mlx.RepeatNode{X: b.raw(x), Out: b.outLike(0, x), Repeats: b.int(r), Axis: int32(d)})
	}
}

func roll(m *match) emit {
	x := m.in(0)
	shifts, ok := m.arg(1).ExprList()
	if !ok {
		return m.no("its shifts are computed")
	}
	ks, ok := m.ints(2)
	if !ok {
		return nil
	}
	if len(ks) == 0 {
		shape := m.out().Shape
		return func(b *builder) {
			d := b.dtype(b.raw(x))
			flat, rolled := b.temp(d), b.temp(d)
			b.emit(&mlx.ReshapeNode{X: b.raw(x), Out: flat, Shape: []*mlx.IntOrVid{lit(-1)}})
			b.emit(&mlx.RollNode{X: flat, Out: rolled, Shift: b.ints(shifts), Axes: []int32{0}})
			b.emit(&mlx.ReshapeNode{X: rolled, Out: b.outLike(0, x), Shape: b.viewShape(shape)})
		}
	}
	if len(ks) != len(shifts) {
		return m.no("%d shifts for %d dimensions", len(shifts), len(ks))
	}
	axes := make([]int32, len(ks))
	for i, k := range ks {
		d, ok := m.axis(k, x.Type.Rank())
		if !ok {
			return nil
		}
		axes[i] = int32(d)
	}
	return func(b *builder) {
		b.emit(&mlx.RollNode{X: b.raw(x), Out: b.outLike(0, x), Shift: b.ints(shifts), Axes: axes})
	}
}

func flip(m *match) emit {
	x := m.in(0)
	ks, ok := m.ints(1)
	if !ok {
		return nil
	}
	if len(ks) == 0 || x.Type.Rank() == 0 {
		return identity(m)
	}
	axes := make([]int32, len(ks))
	for i, k := range ks {
		d, ok := m.axis(k, x.Type.Rank())
		if !ok {
			return nil
		}
		axes[i] = int32(d)
	}
	return func(b *builder) { b.emit(&mlx.FlipNode{X: b.raw(x), Out: b.outLike(0, x), Axes: axes}) }
}

// pad is constant_pad_nd: pairs from the last dimension on, negative ones cut off.
func pad(m *match) emit {
	x, d := m.in(0), m.out().DType
	pads, ok := m.arg(1).ExprList()
	v, okv := m.arg(2).Float()
	if !ok || !okv {
		return m.no("its widths or its value are computed")
	}
	rank := x.Type.Rank()
	if len(pads)%2 != 0 || len(pads) > 2*rank {
		return m.no("%d widths for a tensor of rank %d", len(pads), rank)
	}
	syms := m.n.Graph().Root().Syms
	cuts, adds := false, false
	for _, p := range pads {
		r := syms.Range(p)
		switch {
		case r.Min >= 0:
			adds = adds || r.Max > 0
		case r.Max <= 0:
			cuts = true
		default:
			return m.no("whether it adds or cuts is not known")
		}
	}
	if d.IsInt() && (v > 1<<24 || v < -1<<24) {
		return m.no("a value that a 32-bit float does not hold")
	}
	shape := x.Type.Shape
	return func(b *builder) {
		t := b.in(x)
		if cuts {
			for i := 0; i < len(pads); i += 2 {
				axis := rank - 1 - i/2
				lo, hi := sym.Max(sym.Neg(pads[i]), sym.Const(0)), sym.Min(pads[i+1], sym.Const(0))
				if lo.IsConstValue(0) && hi.IsConstValue(0) {
					continue
				}
				s := mlx.NewSliceNode()
				s.X, s.Axis, s.Start, s.Stop = t, lit(int64(axis)), b.int(lo), b.int(sym.Add(shape[axis], hi))
				s.Out = b.temp(d)
				b.emit(s)
				t = s.Out
			}
		}
		if !adds {
			b.result(0, t)
			return
		}
		n := &mlx.PadNode{X: t, Mode: "constant", ConstantValue: float32(v), PadWidth: make([]*mlx.IntOrVid, 2*rank)}
		for i := range n.PadWidth {
			n.PadWidth[i] = lit(0)
		}
		for i, p := range pads {
			n.PadWidth[2*(rank-1-i/2)+i%2] = b.int(sym.Max(p, sym.Const(0)))
		}
		n.Out = b.out(0)
		b.emit(n)
	}
}

// unfold makes windows along a dimension, as a last dimension.
func unfold(m *match) emit {
	x := m.in(0)
	sizes, ok := m.static(x.Type, "windows over a tensor")
	if !ok || len(sizes) == 0 {
		return m.no("a tensor without dimensions")
	}
	d, ok := m.dim(1, len(sizes))
	size, ok2 := m.intArg(2)
	step, ok3 := m.intArg(3)
	if !ok || !ok2 || !ok3 {
		return nil
	}
	strides := ir.RowMajor(sizes)
	st := append(append([]int64(nil), strides...), strides[d])
	st[d] *= step
	shape := append(append([]int64(nil), sizes...), size)
	shape[d] = (sizes[d]-size)/step + 1
	return func(b *builder) {
		b.emit(&mlx.AsStridedNode{X: b.raw(x), Out: b.outLike(0, x), Shape: lits(shape), Strides: lits(st)})
	}
}

func asStrided(m *match) emit {
	x := m.in(0)
	shape, ok := m.ints(1)
	strides, ok2 := m.ints(2)
	if !ok || !ok2 {
		return nil
	}
	off := int64(0)
	if a := m.arg(3); !a.IsNone() {
		if off, ok = m.intArg(3); !ok {
			return nil
		}
	}
	if !x.Type.Contiguous() || x.Def != nil && x.Def.Info().View {
		return m.no("strides over memory that is no whole tensor")
	}
	return func(b *builder) {
		b.emit(&mlx.AsStridedNode{X: b.raw(x), Out: b.outLike(0, x), Shape: lits(shape), Strides: lits(strides), Offset: uint64(off)})
	}
}
