package passes

import (
	"math"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

func decompUnsafeIndex(d *Decomp) []*ir.Value {
	return one(d.v(op.AtenIndexTensor(d.Builder, d.in(0), d.N.Arg(1))))
}

func decompUnsafeIndexPut(d *Decomp) []*ir.Value {
	return one(d.v(op.AtenIndexPutDefault(d.Builder, d.in(0), d.N.Arg(1), d.in(2), op.KW("accumulate", d.named("accumulate")))))
}

// insideIndices are indices with zero where the mask hides them.
func (d *Decomp) insideIndices(a ir.Arg, mask *ir.Value) ir.Arg {
	var l []ir.Arg
	for _, e := range a.List() {
		v := e.Value()
		if v == nil {
			l = append(l, e)
			continue
		}
		l = append(l, ir.Ref(d.where(mask, v, 0)))
	}
	return ir.List(l...)
}

func decompUnsafeMaskedIndex(d *Decomp) []*ir.Value {
	x, mask := d.in(0), d.in(1)
	y := d.v(op.AtenIndexTensor(d.Builder, x, d.insideIndices(d.N.Arg(2), mask)))
	return one(d.where(mask, y, d.N.Arg(3)))
}

func decompUnsafeMaskedIndexPut(d *Decomp) []*ir.Value {
	x, mask := d.in(0), d.in(1)
	vals := d.where(mask, d.in(3), zeroOf(x.Type.DType, 0))
	return one(d.v(op.AtenIndexPutDefault(d.Builder, x, d.insideIndices(d.N.Arg(2), mask), vals, op.KW("accumulate", ir.Bool(true)))))
}

// indexAt is the list of indices with one at dimension dim and None before it.
func indexAt(dim int, idx *ir.Value) ir.Arg {
	l := make([]ir.Arg, dim+1)
	l[dim] = ir.Ref(idx)
	return ir.List(l...)
}

// vector is an index as a vector.
func (d *Decomp) vector(v *ir.Value) *ir.Value {
	if v.Type.Rank() == 0 {
		return d.view(v, one1)
	}
	return v
}

func (d *Decomp) put(x *ir.Value, dim int, idx, src *ir.Value, add bool) *ir.Value {
	return d.v(op.AtenIndexPutDefault(d.Builder, x, indexAt(dim, idx), src, op.KW("accumulate", ir.Bool(add))))
}

func decompIndexCopy(d *Decomp) []*ir.Value {
	x := d.in(0)
	if x.Type.Rank() == 0 {
		return one(d.view(d.in(3)))
	}
	dim, idx, src := d.dim(1, x), d.vector(d.in(2)), d.in(3)
	return one(d.put(x, dim, idx, d.view(src, with(x.Type.Shape, dim, idx.Type.Shape[0])...), false))
}

func decompIndexAdd(d *Decomp) []*ir.Value {
	x := d.in(0)
	if x.Type.Rank() == 0 {
		return nil
	}
	dim, idx, src := d.dim(1, x), d.vector(d.in(2)), d.in(3)
	if alpha := d.named("alpha"); !alpha.Equal(ir.Int(1)) {
		src = d.mul(src, alpha)
	}
	src = d.view(d.cast(src, x.Type.DType), with(x.Type.Shape, dim, idx.Type.Shape[0])...)
	return one(d.put(x, dim, idx, src, true))
}

func decompIndexFill(d *Decomp) []*ir.Value {
	x := d.in(0)
	dim, idx := d.dim(1, x), d.vector(d.in(2))
	var v *ir.Value
	if t := d.N.In(3); t != nil && t.Type.IsTensor() {
		v = d.cast(t, x.Type.DType)
	} else {
		v = d.scalar(d.N.Arg(3), x.Type.DType)
	}
	return one(d.put(x, dim, idx, d.expand(v, with(x.Type.Shape, dim, idx.Type.Shape[0])...), false))
}

func decompTake(d *Decomp) []*ir.Value {
	x, idx := d.in(0), d.in(1)
	n := x.Type.Numel()
	flat := d.view(idx, idx.Type.Numel())
	flat = d.where(d.lt(flat, 0), d.add(flat, n), flat)
	return one(d.view(d.take(d.view(x, n), 0, flat), idx.Type.Shape...))
}

func decompTakeAlongDim(d *Decomp) []*ir.Value {
	x, idx := d.in(0), d.in(1)
	if d.N.Arg(2).IsNone() {
		return one(d.v(op.AtenGatherDefault(d.Builder, d.view(x, x.Type.Numel()), ir.Int(0), d.view(idx, idx.Type.Numel()))))
	}
	dim := d.dim(2, x)
	out := d.N.Out().Type.Shape
	x = d.expand(x, with(out, dim, x.Type.Shape[dim])...)
	idx = d.expand(idx, with(out, dim, idx.Type.Shape[dim])...)
	return one(d.v(op.AtenGatherDefault(d.Builder, x, ir.Int(int64(dim)), idx)))
}

func decompPut(d *Decomp) []*ir.Value {
	x, idx, src := d.in(0), d.in(1), d.in(2)
	y := d.v(op.AtenIndexPutDefault(d.Builder, d.view(x, x.Type.Numel()), ir.Refs(d.view(idx, idx.Type.Numel())), d.view(src, src.Type.Numel()), op.KW("accumulate", d.named("accumulate"))))
	return one(d.view(y, x.Type.Shape...))
}

func decompDiagonalScatter(d *Decomp) []*ir.Value {
	x, src := d.in(0), d.in(1)
	r := x.Type.Rank()
	off, okO := d.N.Arg(2).Int()
	ka, okA := d.N.Arg(3).Int()
	kb, okB := d.N.Arg(4).Int()
	if !okO || !okA || !okB {
		return nil
	}
	a, b := wrapDim(ka, r), wrapDim(kb, r)
	y := d.lastTwo(x, a, b)
	rows, cols := ir.Dim(y, -2), ir.Dim(y, -1)
	n := ir.Dim(src, -1)
	start := sym.Const(off)
	if off < 0 {
		start = sym.Mul(sym.Const(-off), cols)
	}
	at := d.add(d.mul(d.arange(n, ops.Int64), sym.Add(cols, one1)), start)
	lead := y.Type.Shape[:r-2]
	flat := d.view(y, join(lead, dimsOf(sym.Mul(rows, cols)))...)
	z := d.view(d.put(flat, r-2, at, src, false), y.Type.Shape...)
	return one(d.fromLastTwo(z, a, b))
}

func decompMaskedFillTensor(d *Decomp) []*ir.Value {
	x := d.in(0)
	return one(d.where(d.in(1), d.cast(d.in(2), x.Type.DType), x))
}

func decompMaskedFill(d *Decomp) []*ir.Value {
	return one(d.where(d.in(1), d.N.Arg(2), d.in(0)))
}

func decompArgwhere(d *Decomp) []*ir.Value {
	t := d.N.Out().Type
	return d.Raw(ops.AtenNonzeroDefault, []ir.Arg{ir.Ref(d.in(0))}, ir.TensorType(t.DType, t.Shape...)).Outs
}

func decompOneHot(d *Decomp) []*ir.Value {
	x := d.in(0)
	n := ir.Dim(d.N.Out(), -1)
	return d.back(d.eq(d.unsqueeze(x, x.Type.Rank()), d.arange(n, x.Type.DType)))
}

// below counts, for each number, the boundaries that lie before it.
func (d *Decomp) below(x, bounds *ir.Value, right bool, shape []sym.Expr) []*ir.Value {
	r := bounds.Type.Rank()
	b := d.unsqueeze(bounds, r-1)
	v := x
	if r == 1 {
		v = d.view(x, x.Type.Numel(), one1)
	} else {
		v = d.unsqueeze(x, x.Type.Rank())
	}
	var before *ir.Value
	if right {
		before = d.le(b, v)
	} else {
		before = d.lt(b, v)
	}
	if kindOf(x.Type.DType) == 2 {
		before = d.or(before, d.isNaN(v)) // what is not a number comes last
	}
	n := d.sum(d.cast(before, ops.Int64), false, before.Type.Rank()-1)
	return d.back(d.view(n, shape...))
}

func decompBucketize(d *Decomp) []*ir.Value {
	return d.below(d.in(0), d.in(1), boolArg(d.named("right")), d.N.Out().Type.Shape)
}

func decompSearchsorted(d *Decomp) []*ir.Value {
	bounds := d.in(0)
	if s := d.named("sorter").Value(); s != nil {
		bounds = d.v(op.AtenGatherDefault(d.Builder, bounds, ir.Int(int64(bounds.Type.Rank()-1)), s))
	}
	side, _ := d.named("side").Str()
	return d.below(d.in(1), bounds, boolArg(d.named("right")) || side == "right", d.N.Out().Type.Shape)
}

// decompEmbeddingBag sums, averages or takes maxima over bags of rows. A bag is where the number of offsets at or before a
// place is its number.
func decompEmbeddingBag(d *Decomp) []*ir.Value {
	w, idx, offs := d.in(0), d.in(1), d.in(2)
	mode, ok := d.named("mode").Int()
	for _, o := range d.N.Outs[1:] {
		if o.NumUses() > 0 {
			return nil
		}
	}
	if !ok || idx.Type.Rank() != 1 || offs.Type.Rank() != 1 {
		return nil
	}
	n, bags := idx.Type.Shape[0], d.N.Out().Type.Shape[0]
	offs = d.cast(offs, ops.Int64)
	rows := d.take(w, 0, idx)
	if s := d.named("per_sample_weights").Value(); s != nil {
		rows = d.mul(rows, d.unsqueeze(s, 1))
	}
	// The last offset that is not after a place names its bag. With include_last_offset there is one offset more, and places
	// after it are in no bag.
	bag := d.sub(d.sum(d.cast(d.ge(d.unsqueeze(d.arange(n, ops.Int64), 1), offs), ops.Int64), false, 1), 1)
	in := d.eq(d.unsqueeze(d.arange(bags, ops.Int64), 1), bag) // bags, places
	if k, okP := d.named("padding_idx").Int(); okP && k >= 0 {
		in = d.and(in, d.ne(idx, k))
	}
	t := w.Type.DType
	out := make([]*ir.Value, len(d.N.Outs))
	switch mode {
	case 2:
		all := d.where(d.unsqueeze(in, 2), rows, negInf)
		y := d.amax(all, false, 1)
		out[0] = d.where(d.any(in, true, 1), y, 0.0)
	default:
		work := d.opmath(rows)
		y := d.mm(d.cast(in, work.Type.DType), work)
		if mode == 1 {
			counted := in
			if boolArg(d.named("include_last_offset")) {
				// PyTorch counts the last bag up to the end of the indices, whatever the last offset says.
				past := d.and(d.eq(d.unsqueeze(d.arange(bags, ops.Int64), 1), d.sub(bag, 1)), d.ge(bag, bags))
				counted = d.or(in, past)
			}
			count := d.sum(d.cast(counted, work.Type.DType), true, 1)
			y = d.div(y, d.max(count, 1.0))
		}
		out[0] = d.cast(y, t)
	}
	return out
}

// decompEmbedding picks rows where the kernel declines.
func decompEmbedding(d *Decomp) []*ir.Value {
	w, idx := d.in(0), d.in(1)
	flat := d.view(idx, idx.Type.Numel())
	return one(d.view(d.take(w, 0, flat), d.N.Out().Type.Shape...))
}

func decompSelectScatter(d *Decomp) []*ir.Value {
	x, src := d.in(0), d.in(1)
	dim := d.dim(2, x)
	i, ok := d.N.Arg(3).Expr()
	if !ok {
		return nil
	}
	if k, isC := i.IsConst(); isC && k < 0 {
		i = sym.Add(i, x.Type.Shape[dim])
	}
	at := d.eq(d.grid(x.Type.Shape[dim], dim, x.Type.Rank()), i)
	return one(d.where(at, d.cast(d.unsqueeze(src, dim), x.Type.DType), x))
}

func decompSliceScatter(d *Decomp) []*ir.Value {
	x, src := d.in(0), d.in(1)
	dim := d.dim(2, x)
	size := x.Type.Shape[dim]
	start, okS := sliceBound(d.G.Syms, d.N.Arg(3), size, sym.Const(0))
	step, okT := d.N.Arg(5).Expr()
	if !okS || !okT {
		return nil
	}
	n := src.Type.Shape[dim]
	at := d.add(d.mul(d.arange(n, ops.Int64), step), start)
	return one(d.put(x, dim, at, d.cast(src, x.Type.DType), false))
}

// decompScatterReduce serves the reductions that index_put can make; others have no kernel.
// decompScatterValue spreads the number as a tensor.
func decompScatterValue(d *Decomp) []*ir.Value {
	x, idx := d.in(0), d.in(2)
	src := d.expand(d.scalar(d.N.Arg(3), x.Type.DType), idx.Type.Shape...)
	return one(d.v(op.AtenScatterSrc(d.Builder, x, ir.Int(int64(d.dim(1, x))), idx, src)))
}

func decompScatterReduce(d *Decomp) []*ir.Value {
	x, idx := d.in(0), d.in(2)
	how, _ := d.named("reduce").Str()
	incl := true
	if a := d.named("include_self"); !a.IsNone() {
		incl = boolArg(a)
	}
	var src *ir.Value
	if v := d.N.In(3); v != nil && v.Type.IsTensor() {
		src = v
	} else {
		src = d.expand(d.scalar(d.N.Arg(3), x.Type.DType), idx.Type.Shape...)
	}
	k := d.dim(1, x)
	if incl && (how == "sum" || how == "add") {
		return one(d.v(op.AtenScatterAddDefault(d.Builder, x, ir.Int(int64(k)), idx, src)))
	}
	rank := x.Type.Rank()
	if rank == 0 || kindOf(x.Type.DType) == 0 || kindOf(x.Type.DType) > 2 {
		return nil
	}
	// The index may be smaller than self, but along the dimension, and than src.
	part := x
	var cut []int
	for i := range rank {
		n := idx.Type.Shape[i]
		if !n.Equal(src.Type.Shape[i]) {
			src = d.slice(src, i, 0, n)
		}
		if i != k && !n.Equal(x.Type.Shape[i]) {
			part, cut = d.slice(part, i, 0, n), append(cut, i)
		}
	}
	r := d.scattered(part, k, idx, src, how, incl)
	if r == nil {
		return nil
	}
	var put func(base *ir.Value, cut []int) *ir.Value
	put = func(base *ir.Value, cut []int) *ir.Value {
		if len(cut) == 0 {
			return r
		}
		n := ir.SymInt(idx.Type.Shape[cut[0]])
		inner := put(d.slice(base, cut[0], 0, n), cut[1:])
		return d.v(op.AtenSliceScatterDefault(d.Builder, base, inner, op.KW("dim", ir.Int(int64(cut[0]))), op.KW("start", ir.Int(0)), op.KW("end", n)))
	}
	return one(put(x, cut))
}

// scattered reduces src into x along dimension k: each element of x looks at all of src that name it. Sizes are equal but
// along k.
func (d *Decomp) scattered(x *ir.Value, k int, idx, src *ir.Value, how string, incl bool) *ir.Value {
	t := x.Type.DType
	size := x.Type.Shape[k]
	hit := d.eq(d.unsqueeze(idx, k), d.grid(size, k, x.Type.Rank()+1)) // [.., size, n, ..]
	at := func(none any) *ir.Value { return d.where(hit, d.unsqueeze(src, k), none) }
	var least, most any = math.Inf(-1), math.Inf(1)
	var nought, unit any = 0.0, 1.0
	if t.IsInt() {
		nought, unit = 0, 1
		bits := 8 * int(t.Size())
		least, most = int64(math.MinInt64)>>(64-bits), int64(math.MaxInt64)>>(64-bits)
		if !t.IsSigned() {
			if bits == 64 {
				return nil
			}
			least, most = int64(0), int64(1)<<bits-1
		}
	}
	scalar := func(v any) *ir.Value { return d.scalar(v, t) }
	var r *ir.Value
	both := func(a, b *ir.Value) *ir.Value { return d.add(a, b) }
	switch how {
	case "sum", "add", "mean":
		r = d.cast(d.sum(at(scalar(nought)), false, k+1), t)
	case "prod", "multiply":
		r = d.cast(d.v(op.AtenProdDimInt(d.Builder, at(scalar(unit)), ir.Int(int64(k+1)))), t)
		both = func(a, b *ir.Value) *ir.Value { return d.mul(a, b) }
	case "amax":
		r = d.amax(at(scalar(least)), false, k+1)
		both = func(a, b *ir.Value) *ir.Value { return d.max(a, b) }
	case "amin":
		r = d.amin(at(scalar(most)), false, k+1)
		both = func(a, b *ir.Value) *ir.Value { return d.min(a, b) }
	default:
		return nil
	}
	count := d.sum(d.cast(hit, ops.Int64), false, k+1)
	out := r
	if incl {
		out = both(x, r)
	}
	if how == "mean" {
		n := count
		if incl {
			n = d.add(count, 1)
		}
		n = d.cast(d.max(n, 1), t)
		if t.IsInt() {
			out = d.floorDiv(out, n)
		} else {
			out = d.div(out, n)
		}
	}
	if incl {
		return out
	}
	return d.where(d.gt(count, 0), out, x)
}
