package mlx

import (
	"math"

	"github.com/lathe-ml/lathe/codegen/fb/mlx"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/partition"
)

var attentionRules = map[ops.ID]rule{
	ops.AtenScaledDotProductAttentionDefault: sdpa,
	ops.MlxCustomSdpaDefault:                 customSdpa,
	ops.MlxRopeDefault:                       rope,
	ops.LatheRopeDefault:                     rotary,
}

// sdpa is scaled dot product attention of rank 2 to 4. The delegate's causal mask ends where the keys end, torch's begins
// where they begin, so keys beyond the queries are cut off.
func sdpa(m *match) emit {
	q, k, v, mask := m.in(0), m.in(1), m.in(2), m.in(3)
	d := m.out().DType
	dropout, ok := m.arg(4).Float()
	causal, ok2 := m.arg(5).Bool()
	if !ok || !ok2 || dropout != 0 {
		return m.no("dropout, or a computed setting")
	}
	rank := q.Type.Rank()
	if rank < 2 || rank > 4 || k.Type.Rank() != rank || v.Type.Rank() != rank {
		return m.no("queries, keys and values of ranks %d, %d and %d: 2 to 4 and alike are wanted", rank, k.Type.Rank(), v.Type.Rank())
	}
	size, ok := ir.Dim(q, -1).IsConst()
	if !ok || !d.IsFloat() {
		return m.no("a head size that is not constant, or integers")
	}
	scale := 1 / math.Sqrt(float64(size))
	if a := m.n.ArgNamed("scale"); !a.IsNone() {
		if scale, ok = a.Float(); !ok {
			return m.no("a computed scale")
		}
	}
	if mask != nil && mask.Type.Rank() > 4 {
		return m.no("a mask of rank %d", mask.Type.Rank())
	}
	mask = narrowMask(mask)
	rows, cols := ir.Dim(q, -2), ir.Dim(k, -2)
	syms := m.n.Graph().Root().Syms
	if causal && !rows.Equal(cols) {
		if rank < 4 {
			return m.no("a causal mask over %s queries and %s keys", rows, cols)
		}
		if yes, known := syms.ProveLe(rows, cols); !known || !yes {
			return m.no("a causal mask over %s queries and %s keys", rows, cols)
		}
	}
	if rank == 4 {
		for _, o := range []*ir.Value{k, v} {
			if !o.Type.Shape[0].Equal(q.Type.Shape[0]) {
				return m.no("batches of different sizes")
			}
		}
		if kb, vb, ok := unrepeat(k, v); ok {
			k, v = kb, vb
		}
	}
	if rank >= 3 {
		var heads [3]int64
		for i, o := range []*ir.Value{q, k, v} {
			if heads[i], ok = ir.Dim(o, -3).IsConst(); !ok && !ir.Dim(o, -3).Equal(ir.Dim(q, -3)) {
				return m.no("a number of heads that is not constant")
			}
			if !ok {
				heads[i] = -1
			}
		}
		if heads[1] == 0 || heads[1] != heads[2] || heads[1] > 0 && heads[0]%heads[1] != 0 {
			return m.no("%d query heads over %d and %d of keys and values", heads[0], heads[1], heads[2])
		}
	}
	return func(b *builder) {
		ts := make([]mlx.Tid, 3)
		for i, o := range []*ir.Value{q, k, v} {
			ts[i] = b.inAs(o, d)
			for range 4 - rank {
				t := b.temp(d)
				b.emit(&mlx.ExpandDimsNode{X: ts[i], Out: t})
				ts[i] = t
			}
		}
		if causal && !rows.Equal(cols) {
			for i := 1; i < 3; i++ {
				ts[i] = b.firstRows(ts[i], b.int(rows))
			}
		}
		n := &mlx.SdpaNode{Q: ts[0], K: ts[1], V: ts[2], Scale: float32(scale), Causal: causal, Mask: b.optional(mask)}
		if rank == 4 {
			n.Out = b.out(0)
			b.emit(n)
			return
		}
		n.Out = b.temp(d)
		b.emit(n)
		s := &mlx.SqueezeNode{X: n.Out, Out: b.out(0)}
		for i := range 4 - rank {
			s.Dims = append(s.Dims, int32(i))
		}
		b.emit(s)
	}
}

// narrowMask is a mask before it was spread out: the delegate does that by itself.
func narrowMask(v *ir.Value) *ir.Value {
	if v != nil && v.Def != nil && v.Def.Op == ops.AtenExpandDefault {
		if x := v.Def.In(0); x.Type.Rank() == v.Type.Rank() {
			return x
		}
	}
	return v
}

// firstRows is x[:, :, :stop].
func (b *builder) firstRows(x mlx.Tid, stop *mlx.IntOrVid) mlx.Tid {
	s := mlx.NewSliceNode()
	s.X, s.Axis, s.Start, s.Stop, s.Out = x, lit(2), lit(0), stop, b.temp(b.dtype(x))
	b.emit(s)
	return s.Out
}

// unrepeat finds the heads that keys and values were repeated from: the delegate shares them among queries by itself.
func unrepeat(k, v *ir.Value) (kb, vb *ir.Value, ok bool) {
	kb, kn, _ := repeatedHeads(k)
	vb, vn, _ := repeatedHeads(v)
	if kb == nil || vb == nil || !kn.Equal(vn) {
		return nil, nil, false
	}
	return kb, vb, true
}

// repeatedHeads is the tensor of rank 4 whose dimension 1 was repeated, each element n times in a row, to make v.
func repeatedHeads(v *ir.Value) (base *ir.Value, n sym.Expr, ok bool) {
	n0 := v.Def
	if n0 == nil {
		return nil, sym.Expr{}, false
	}
	if n0.Op == ops.AtenRepeatInterleaveSelfInt {
		r, isInt := n0.Arg(1).Expr()
		d, isDim := n0.ArgNamed("dim").Int()
		if x := n0.In(0); isInt && isDim && d == 1 && x.Type.Rank() == 4 {
			return x, r, true
		}
		return nil, sym.Expr{}, false
	}
	// view(expand(unsqueeze(x, 2))), copies between them.
	view := skipCopies(v)
	if view.Def == nil || !isReshape(view.Def) || view.Type.Rank() != 4 {
		return nil, sym.Expr{}, false
	}
	wide := skipCopies(view.Def.In(0))
	if wide.Def == nil || wide.Def.Op != ops.AtenExpandDefault || wide.Type.Rank() != 5 {
		return nil, sym.Expr{}, false
	}
	one := skipCopies(wide.Def.In(0))
	if one.Def == nil || one.Type.Rank() != 5 || !one.Type.Shape[2].IsConstValue(1) {
		return nil, sym.Expr{}, false
	}
	if one.Def.Op != ops.AtenUnsqueezeDefault && !isReshape(one.Def) {
		return nil, sym.Expr{}, false
	}
	x := one.Def.In(0)
	w, s := wide.Type.Shape, x.Type.Shape
	if x.Type.Rank() != 4 || !w[0].Equal(s[0]) || !w[1].Equal(s[1]) || !w[3].Equal(s[2]) || !w[4].Equal(s[3]) {
		return nil, sym.Expr{}, false
	}
	f := view.Type.Shape
	if !f[0].Equal(w[0]) || !f[1].Equal(sym.Mul(w[1], w[2])) || !f[2].Equal(w[3]) || !f[3].Equal(w[4]) {
		return nil, sym.Expr{}, false
	}
	return x, w[2], true
}

func isReshape(n *ir.Node) bool {
	switch n.Op {
	case ops.AtenViewDefault, ops.AtenReshapeDefault, ops.AtenUnderUnsafeViewDefault:
		return true
	}
	return false
}

func skipCopies(v *ir.Value) *ir.Value {
	for v.Def != nil && (v.Def.Op == ops.AtenCloneDefault || v.Def.Op == ops.AtenContiguousDefault) {
		v = v.Def.In(0)
	}
	return v
}

// customSdpa attends to the first start_pos + length entries of a cache.
func customSdpa(m *match) emit {
	q, k, v, mask := m.in(0), m.in(1), m.in(2), m.n.ArgNamed("attn_mask").Value()
	start, ok := m.arg(3).Expr()
	causal, ok2 := m.n.ArgNamed("is_causal").Bool()
	dropout, ok3 := m.n.ArgNamed("dropout_p").Float()
	size, ok4 := ir.Dim(q, -1).IsConst()
	if !ok || !ok2 || !ok3 || !ok4 || dropout != 0 || q.Type.Rank() != 4 {
		return m.no("dropout, computed settings, or a rank other than 4")
	}
	scale := 1 / math.Sqrt(float64(size))
	if a := m.n.ArgNamed("scale"); !a.IsNone() {
		if scale, ok = a.Float(); !ok {
			return m.no("a computed scale")
		}
	}
	stop := sym.Add(start, q.Type.Shape[2])
	all := stop.Equal(k.Type.Shape[2])
	if causal {
		mask = nil
	}
	if kb, vb, ok := unrepeat(k, v); ok {
		k, v = kb, vb
	}
	return func(b *builder) {
		d := q.Type.DType
		n := &mlx.SdpaNode{Q: b.in(q), Scale: float32(scale), Causal: causal, Mask: b.optional(mask)}
		n.K, n.V = b.inAs(k, d), b.inAs(v, d)
		if !all {
			n.K, n.V = b.firstRows(n.K, b.int(stop)), b.firstRows(n.V, b.int(stop))
		}
		n.Out = b.out(0)
		b.emit(n)
	}
}

func rope(m *match) emit {
	x := m.in(0)
	dims, ok := m.intArg(1)
	pos, ok2 := m.arg(2).Expr()
	traditional, ok3 := m.arg(3).Bool()
	base, ok4 := m.arg(4).Float()
	scale, ok5 := m.arg(5).Float()
	if !ok || !ok2 || !ok3 || !ok4 || !ok5 {
		return m.no("computed settings")
	}
	freqs := m.in(6)
	if freqs != nil && freqs.Type.Rank() != 1 {
		return m.no("frequencies of rank %d: one for each pair is wanted", freqs.Type.Rank())
	}
	return func(b *builder) {
		n := mlx.NewRopeNode()
		n.X, n.Dims, n.Traditional, n.Base, n.Scale = b.in(x), int32(dims), traditional, float32(base), float32(scale)
		if freqs != nil {
			t := b.inAs(freqs, ops.Float32)
			n.Freqs = &t
		}
		n.Offset = b.offset(pos)
		n.Out = b.out(0)
		b.emit(n)
	}
}

// rotary is a rope whose frequencies are given; the node wants their inverses.
func rotary(m *match) emit {
	x, inv, starts := m.in(0), m.in(1), m.in(3)
	start, ok := m.arg(2).Expr()
	traditional, ok2 := m.arg(4).Bool()
	half, ok3 := inv.Type.Shape[0].IsConst()
	if !ok || !ok2 || !ok3 || !x.Type.DType.IsFloat() || half == 0 {
		return m.no("computed settings, or integers")
	}
	if starts != nil && !start.IsConstValue(0) {
		return m.no("a start beside starts for each sequence")
	}
	return func(b *builder) {
		n := mlx.NewRopeNode()
		n.X, n.Dims, n.Traditional, n.Scale = b.in(x), int32(2*half), traditional, 1
		freqs := b.inverse(inv)
		n.Freqs = &freqs
		n.Offset = b.offset(start)
		if starts != nil {
			t := b.inAs(starts, ops.Int32)
			n.Offset = &mlx.VidOrTid{Tid: &t}
		}
		n.Out = b.out(0)
		b.emit(n)
	}
}

// offset is a position as a rope's.
func (b *builder) offset(pos sym.Expr) *mlx.VidOrTid {
	at := b.int(pos)
	if at.IsVid {
		v := *at.Vid
		return &mlx.VidOrTid{IsVid: true, Vid: &v}
	}
	t := b.scalar(ops.Int32, ir.Int(at.Literal))
	return &mlx.VidOrTid{Tid: &t}
}

// inverse is one over each of v's elements: of constants those floats whose own inverses are v's, as far as there are any.
func (b *builder) inverse(v *ir.Value) mlx.Tid {
	const d = ops.Float32
	if in := partition.Weight(v); in != nil && in.Data != nil && in.Data.DType == d {
		p, err := in.Data.Compact()
		if err != nil {
			b.failf("%s: %v", in.Target, err)
			return mlx.Tid{}
		}
		fs, _ := decode(d, p)
		for i, f := range fs {
			fs[i] = float64(inverseOf(float32(f)))
		}
		return b.floats(d, in.Data.Sizes, fs)
	}
	out := b.temp(d)
	b.emit(&mlx.ReciprocalNode{X: b.inAs(v, d), Out: out})
	return out
}

func inverseOf(f float32) float32 {
	c := 1 / f
	for _, to := range []float32{float32(math.Inf(1)), 0} {
		if near := math.Nextafter32(c, to); 1/c != f && 1/near == f {
			return near
		}
	}
	return c
}
