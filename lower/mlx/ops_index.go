package mlx

import (
	"github.com/lathe-ml/lathe/codegen/fb/mlx"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

var indexRules = map[ops.ID]rule{
	ops.AtenEmbeddingDefault:     embedding,
	ops.AtenIndexTensor:          indexRule,
	ops.AtenIndexSelectDefault:   indexSelect,
	ops.AtenGatherDefault:        gather,
	ops.AtenScatterAddDefault:    scatterAdd,
	ops.AtenSliceScatterDefault:  sliceScatter,
	ops.AtenSelectScatterDefault: selectScatter,
	ops.AtenIndexCopyDefault:     indexCopy,
	ops.AtenIndexPutDefault:      indexPut,
	ops.AtenIndexAddDefault:      indexAdd,
}

// take is rows of x picked along an axis.
func take(b *builder, x mlx.Tid, at mlx.Tid, out mlx.Tid, axis int) {
	b.emit(&mlx.TakeNode{X: x, Index: indexTensor(at), Out: out, Axis: int32(axis)})
}

func embedding(m *match) emit {
	if e := quantizedEmbedding(m); e != nil {
		return e
	}
	w, at := m.in(0), m.in(1)
	if w.Type.Rank() != 2 {
		return m.no("weights of rank %d", w.Type.Rank())
	}
	return func(b *builder) { take(b, b.raw(w), b.index(at), b.outLike(0, w), 0) }
}

func indexSelect(m *match) emit {
	x, at := m.in(0), m.in(2)
	if x.Type.Rank() == 0 || at.Type.Rank() != 1 {
		return m.no("a tensor or indices without dimensions")
	}
	d, ok := m.dim(1, x.Type.Rank())
	if !ok {
		return nil
	}
	return func(b *builder) { take(b, b.raw(x), b.index(at), b.outLike(0, x), d) }
}

// indexRule is x[i, :, j]: one index takes rows, several gather elements.
func indexRule(m *match) emit {
	x := m.in(0)
	var at []*ir.Value
	var axes []int
	for d, v := range m.arg(1).Values() {
		if v == nil {
			continue
		}
		if v.Type.DType == ops.Bool || v.Type.DType == ops.Uint8 {
			return m.no("a mask as an index: the size of the result depends on it")
		}
		at, axes = append(at, v), append(axes, d)
	}
	switch len(at) {
	case 0:
		return identity(m)
	case 1:
		return func(b *builder) { take(b, b.raw(x), b.index(at[0]), b.outLike(0, x), axes[0]) }
	}
	sizes := make([]int32, x.Type.Rank())
	indexed := map[int]bool{}
	for _, a := range axes {
		indexed[a] = true
	}
	for d, e := range x.Type.Shape {
		if indexed[d] {
			sizes[d] = 1
			continue
		}
		k, ok := e.IsConst()
		if !ok {
			return m.no("several indices, and a dimension beside them of a size that is not constant")
		}
		sizes[d] = int32(k)
	}
	for i := 1; i < len(axes); i++ {
		if axes[i] != axes[i-1]+1 && axes[0] != 0 {
			return m.no("indices that stand apart after the first dimension")
		}
	}
	out := m.out().Shape
	broadcast := out[:0:0]
	rank := 0
	for _, v := range at {
		rank = max(rank, v.Type.Rank())
	}
	// Where the indices stand together their dimensions go in their place, else to the front.
	together := axes[len(axes)-1]-axes[0] == len(axes)-1
	front := 0
	if together {
		front = axes[0]
	}
	broadcast = append(broadcast, out[front:front+rank]...)
	return func(b *builder) {
		n := &mlx.GatherNode{X: b.raw(x), SliceSizes: sizes}
		for i, v := range at {
			t := b.index(v)
			if !ir.EqualShape(v.Type.Shape, broadcast) {
				wide := b.temp(b.dtype(t))
				b.emit(&mlx.BroadcastToNode{X: t, Out: wide, Shape: b.ints(broadcast)})
				t = wide
			}
			n.Indices, n.Axes = append(n.Indices, t), append(n.Axes, int32(axes[i]))
		}
		n.Out = b.temp(b.dtype(n.X))
		b.emit(n)
		// The indices' dimensions come first, then one of size one for each indexed dimension.
		if front == 0 {
			b.emit(&mlx.ReshapeNode{X: n.Out, Out: b.outLike(0, x), Shape: b.viewShape(out)})
			return
		}
		flat := append(append([]sym.Expr(nil), broadcast...), out[:front]...)
		flat = append(flat, out[front+rank:]...)
		t, perm := b.temp(b.dtype(n.X)), []int32{}
		b.emit(&mlx.ReshapeNode{X: n.Out, Out: t, Shape: b.viewShape(flat)})
		for i := range front {
			perm = append(perm, int32(rank+i))
		}
		for i := range rank {
			perm = append(perm, int32(i))
		}
		for i := rank + front; i < len(flat); i++ {
			perm = append(perm, int32(i))
		}
		b.emit(&mlx.TransposeNode{X: t, Out: b.outLike(0, x), Perm: perm})
	}
}

// cut is x cut to shape in every dimension but one: gather and scatter_add leave out what the indices do not reach.
func (b *builder) cut(x mlx.Tid, from, to []sym.Expr, but int) mlx.Tid {
	for d := range from {
		if d == but || from[d].Equal(to[d]) {
			continue
		}
		s := mlx.NewSliceNode()
		s.X, s.Axis, s.Start, s.Stop, s.Out = x, lit(int64(d)), lit(0), b.int(to[d]), b.temp(b.dtype(x))
		b.emit(s)
		x = s.Out
	}
	return x
}

func gather(m *match) emit {
	x, at := m.in(0), m.in(2)
	if x.Type.Rank() == 0 || at.Type.Rank() != x.Type.Rank() {
		return m.no("a tensor or indices without dimensions")
	}
	d, ok := m.dim(1, x.Type.Rank())
	if !ok {
		return nil
	}
	return func(b *builder) {
		t := b.cut(b.raw(x), x.Type.Shape, at.Type.Shape, d)
		b.emit(&mlx.TakeAlongAxisNode{X: t, Indices: b.index(at), Out: b.outLike(0, x), Axis: int32(d)})
	}
}

func scatterAdd(m *match) emit {
	x, at, src := m.in(0), m.in(2), m.in(3)
	if x.Type.Rank() == 0 || at.Type.Rank() != x.Type.Rank() {
		return m.no("a tensor or indices without dimensions")
	}
	d, ok := m.dim(1, x.Type.Rank())
	if !ok {
		return nil
	}
	for i, e := range at.Type.Shape {
		if i != d && !e.Equal(x.Type.Shape[i]) {
			return m.no("indices that do not reach all of the tensor")
		}
	}
	return func(b *builder) {
		s := b.cut(b.in(src), src.Type.Shape, at.Type.Shape, -1)
		b.emit(&mlx.ScatterAddNode{X: b.in(x), Indices: b.index(at), Updates: s, Out: b.out(0), Axis: int32(d)})
	}
}

// target is the tensor of v as one that a node may write over: never a constant.
func (b *builder) target(v *ir.Value) mlx.Tid {
	t := b.in(v)
	if b.tensors[t.Idx].kind != kindConst {
		return t
	}
	c := b.temp(b.dtype(t))
	b.emit(&mlx.IdCopyNode{X: t, Out: c})
	return c
}

func sliceScatter(m *match) emit {
	x, src := m.in(0), m.in(1)
	rank := x.Type.Rank()
	d, ok := m.dim(2, rank)
	if !ok {
		return nil
	}
	step, ok := m.intArg(5)
	if !ok || step < 1 {
		return m.no("a step below one")
	}
	start, stop := sym.Const(0), x.Type.Shape[d]
	if a := m.arg(3); !a.IsNone() {
		if start, ok = a.Expr(); !ok {
			return m.no("its start is computed")
		}
	}
	if a := m.arg(4); !a.IsNone() {
		if stop, ok = a.Expr(); !ok {
			return m.no("its end is computed")
		}
	}
	if ir.EqualShape(src.Type.Shape, x.Type.Shape) && step == 1 && start.IsConstValue(0) {
		dt := m.out().DType
		return func(b *builder) { b.result(0, b.inAs(src, dt)) }
	}
	return func(b *builder) {
		n := mlx.NewSliceUpdateNode()
		n.Dst, n.Update = b.target(x), b.inAs(src, x.Type.DType)
		n.Axis, n.Start, n.Stop, n.Step = lit(int64(d)), b.int(start), b.stop(stop, x.Type.Shape[d]), int32(step)
		n.Out = b.out(0)
		b.emit(n)
	}
}

func selectScatter(m *match) emit {
	x, src := m.in(0), m.in(1)
	d, ok := m.dim(2, x.Type.Rank())
	if !ok {
		return nil
	}
	at, ok := m.arg(3).Expr()
	if !ok {
		return m.no("its index is computed")
	}
	if k, ok := at.IsConst(); ok && k < 0 {
		at = sym.Add(at, x.Type.Shape[d])
	}
	return func(b *builder) {
		u := b.temp(x.Type.DType)
		b.emit(&mlx.ExpandDimsNode{X: b.inAs(src, x.Type.DType), Out: u, Axis: int32(d)})
		n := mlx.NewSliceUpdateNode()
		n.Dst, n.Update, n.Axis, n.Start, n.Stop = b.target(x), u, lit(int64(d)), b.int(at), b.int(sym.Add(at, sym.Const(1)))
		n.Out = b.out(0)
		b.emit(n)
	}
}

func indexCopy(m *match) emit {
	x, at, src := m.in(0), m.in(2), m.in(3)
	rank := x.Type.Rank()
	if rank == 0 || at.Type.Rank() != 1 || src.Type.Rank() != rank {
		return m.no("a tensor, indices or a source without dimensions")
	}
	d, ok := m.dim(1, rank)
	if !ok {
		return nil
	}
	return func(b *builder) {
		b.emit(&mlx.IndexCopyNode{
			Dst: b.target(x), Update: b.inAs(src, x.Type.DType), Indices: b.inAs(at, ops.Int64), Out: b.out(0), Axis: int32(d),
		})
	}
}

func indexAdd(m *match) emit {
	x, at, src := m.in(0), m.in(2), m.in(3)
	rank := x.Type.Rank()
	if rank == 0 || at.Type.Rank() != 1 || src.Type.Rank() != rank {
		return m.no("a tensor, indices or a source without dimensions")
	}
	if f, ok := m.n.ArgNamed("alpha").Float(); !ok || f != 1 {
		return m.no("a factor other than 1")
	}
	d, ok := m.dim(1, rank)
	if !ok {
		return nil
	}
	shape := src.Type.Shape
	return func(b *builder) {
		dt := b.dtype(b.index(at))
		col, wide := b.temp(dt), b.temp(dt)
		ones := make([]*mlx.IntOrVid, rank)
		for i := range ones {
			ones[i] = lit(1)
		}
		ones[d] = lit(-1)
		b.emit(&mlx.ReshapeNode{X: b.index(at), Out: col, Shape: ones})
		b.emit(&mlx.BroadcastToNode{X: col, Out: wide, Shape: b.ints(shape)})
		b.emit(&mlx.ScatterAddNode{X: b.in(x), Indices: wide, Updates: b.inAs(src, x.Type.DType), Out: b.out(0), Axis: int32(d)})
	}
}

// indexPut is x[:, i, :, j] = values: with the indexed dimensions in front, the others are one block that is written or
// added to at places along one axis. A mask over leading dimensions chooses with where.
func indexPut(m *match) emit {
	x, values := m.in(0), m.in(2)
	accumulate := flagged(m.arg(3))
	var at []*ir.Value
	var axes []int
	for i, v := range m.arg(1).Values() {
		if v != nil {
			at, axes = append(at, v), append(axes, i)
		}
	}
	k := len(at)
	if k == 1 && at[0].Type.DType == ops.Bool && axes[0] == 0 {
		return maskPut(m, x, at[0], values, accumulate)
	}
	if k == 0 {
		return m.no("no index")
	}
	n := 0
	for _, v := range at {
		if v.Type.DType == ops.Bool || v.Type.DType == ops.Uint8 {
			return m.no("a mask beside other indices, or after the first dimension")
		}
		n = max(n, v.Type.Rank())
	}
	// The indices' own shape, and where its dimensions stand among those of the values: in place of the indexed ones where
	// these stand together, in front elsewhere.
	var places []sym.Expr
	for d := range n {
		e := sym.Const(1)
		for _, v := range at {
			if j := d - (n - v.Type.Rank()); j >= 0 && !v.Type.Shape[j].IsConstValue(1) {
				e = v.Type.Shape[j]
			}
		}
		places = append(places, e)
	}
	front := 0
	if axes[k-1]-axes[0] == k-1 {
		front = axes[0]
	}
	rank := x.Type.Rank()
	perm := append([]int(nil), axes...)
	var block []sym.Expr
	indexed := map[int]bool{}
	for _, a := range axes {
		indexed[a] = true
	}
	for d := range rank {
		if !indexed[d] {
			perm, block = append(perm, d), append(block, x.Type.Shape[d])
		}
	}
	back := make([]int32, rank)
	moved := false
	forth := make([]int32, rank)
	for i, p := range perm {
		back[p], forth[i] = int32(i), int32(p)
		moved = moved || p != i
	}
	lead := ir.Permuted(x.Type.Shape, axes)
	count, rows := sym.Prod(places...), sym.Prod(lead...)
	if why := expressible(sym.Mul(count, rows)); why != "" {
		return m.no("%s", why)
	}
	full := append(append(append([]sym.Expr(nil), block[:front]...), places...), block[front:]...)
	dt := x.Type.DType
	return func(b *builder) {
		var place mlx.Tid
		for i, v := range at {
			p := b.inAs(v, ops.Int64)
			if k > 1 {
				// Places from the end count from the end of their own dimension.
				neg, wrapped, nonneg := b.temp(ops.Bool), b.temp(ops.Int64), b.temp(ops.Int64)
				b.emit(ltNode(p, b.scalar(ops.Int64, ir.Int(0)), neg))
				b.emit(addNode(p, b.operand(ir.SymInt(lead[i]), ops.Int64), wrapped))
				b.emit(&mlx.WhereNode{Condition: neg, X: wrapped, Y: p, Out: nonneg})
				p = nonneg
			}
			if i > 0 {
				scaled, sum := b.temp(ops.Int64), b.temp(ops.Int64)
				b.emit(mulNode(place, b.operand(ir.SymInt(lead[i]), ops.Int64), scaled))
				b.emit(addNode(scaled, p, sum))
				p = sum
			}
			place = p
		}
		if n != 1 {
			flat := b.temp(ops.Int64)
			b.emit(&mlx.ReshapeNode{X: place, Out: flat, Shape: []*mlx.IntOrVid{lit(-1)}})
			place = flat
		}
		vals := b.inAs(values, dt)
		if !ir.EqualShape(values.Type.Shape, full) {
			wide := b.temp(dt)
			b.emit(&mlx.BroadcastToNode{X: vals, Out: wide, Shape: b.ints(full)})
			vals = wide
		}
		if front > 0 {
			p := make([]int32, 0, len(full))
			for i := range n {
				p = append(p, int32(front+i))
			}
			for i := range full {
				if i < front || i >= front+n {
					p = append(p, int32(i))
				}
			}
			t := b.temp(dt)
			b.emit(&mlx.TransposeNode{X: vals, Out: t, Perm: p})
			vals = t
		}
		if n != 1 {
			flat := b.temp(dt)
			b.emit(&mlx.ReshapeNode{X: vals, Out: flat, Shape: b.ints(append([]sym.Expr{count}, block...))})
			vals = flat
		}
		dst := b.target(x)
		if moved {
			t := b.temp(dt)
			b.emit(&mlx.TransposeNode{X: dst, Out: t, Perm: forth})
			dst = t
		}
		if k > 1 {
			flat := b.temp(dt)
			b.emit(&mlx.ReshapeNode{X: dst, Out: flat, Shape: b.ints(append([]sym.Expr{rows}, block...))})
			dst = flat
		}
		out := b.out(0)
		if k > 1 || moved {
			out = b.temp(dt)
		}
		if accumulate {
			if len(block) > 0 {
				ones := []*mlx.IntOrVid{lit(-1)}
				for range block {
					ones = append(ones, lit(1))
				}
				col, wide := b.temp(ops.Int64), b.temp(ops.Int64)
				b.emit(&mlx.ReshapeNode{X: place, Out: col, Shape: ones})
				b.emit(&mlx.BroadcastToNode{X: col, Out: wide, Shape: b.ints(append([]sym.Expr{count}, block...))})
				place = wide
			}
			b.emit(&mlx.ScatterAddNode{X: dst, Indices: place, Updates: vals, Out: out})
		} else {
			b.emit(&mlx.IndexCopyNode{Dst: dst, Update: vals, Indices: place, Out: out})
		}
		if k > 1 {
			last := b.out(0)
			if moved {
				last = b.temp(dt)
			}
			b.emit(&mlx.ReshapeNode{X: out, Out: last, Shape: b.ints(append(append([]sym.Expr(nil), lead...), block...))})
			out = last
		}
		if moved {
			b.emit(&mlx.TransposeNode{X: out, Out: b.out(0), Perm: back})
		}
	}
}

func maskPut(m *match, x, mask, values *ir.Value, accumulate bool) emit {
	if accumulate {
		return m.no("a mask that adds")
	}
	for _, e := range values.Type.Shape {
		if !e.IsConstValue(1) {
			return m.no("a mask with values for each place: how many there are depends on the mask")
		}
	}
	dt, rank := x.Type.DType, x.Type.Rank()
	return func(b *builder) {
		t := b.in(mask)
		if k := mask.Type.Rank(); k < rank {
			shape := b.ints(mask.Type.Shape)
			for range rank - k {
				shape = append(shape, lit(1))
			}
			u := b.temp(ops.Bool)
			b.emit(&mlx.ReshapeNode{X: t, Out: u, Shape: shape})
			t = u
		}
		b.emit(&mlx.WhereNode{Condition: t, X: b.inAs(values, dt), Y: b.in(x), Out: b.out(0)})
	}
}
