package passes

import (
	"math"
	"slices"

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

// vector is a tensor without dimensions as a vector; others are as they are.
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
	x := d.vector(d.in(0))
	dim, idx, src := d.dim(1, x), d.vector(d.in(2)), d.in(3)
	if alpha := d.named("alpha"); !alpha.Equal(ir.Int(1)) {
		src = d.mul(src, alpha)
	}
	src = d.view(d.cast(src, x.Type.DType), with(x.Type.Shape, dim, idx.Type.Shape[0])...)
	return one(d.view(d.put(x, dim, idx, src, true), d.N.Out().Type.Shape...))
}

func decompIndexFill(d *Decomp) []*ir.Value {
	x := d.vector(d.in(0))
	dim, idx := d.dim(1, x), d.vector(d.in(2))
	var v *ir.Value
	if t := d.N.In(3); t != nil && t.Type.IsTensor() {
		v = d.cast(t, x.Type.DType)
	} else {
		v = d.scalar(d.N.Arg(3), x.Type.DType)
	}
	y := d.put(x, dim, idx, d.expand(v, with(x.Type.Shape, dim, idx.Type.Shape[0])...), false)
	return one(d.view(y, d.N.Out().Type.Shape...))
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
	// Negative places count from the end here, not in gather.
	idx = d.where(d.lt(idx, 0), d.add(idx, x.Type.Shape[dim]), idx)
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
	if k, okP := d.named("padding_idx").Int(); okP {
		switch {
		case k >= 0:
			in = d.and(in, d.ne(idx, k))
		case d.N.Op == ops.AtenEmbeddingBagPaddingIdx: // counted from the end; in the others it is none
			in = d.and(in, d.ne(idx, d.arg(sym.Add(w.Type.Shape[0], sym.Const(k)))))
		}
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

// decompScatterValue spreads the number as a tensor.
func decompScatterValue(d *Decomp) []*ir.Value {
	x, idx := d.in(0), d.cast(d.in(2), ops.Int64)
	src := d.expand(d.scalar(d.N.Arg(3), x.Type.DType), idx.Type.Shape...)
	return one(d.v(op.AtenScatterSrc(d.Builder, x, ir.Int(int64(d.dim(1, x))), idx, src)))
}

// decompScatterReduce takes reductions apart. Sums and means are scattered additions; for products and extremes every place
// of a dimension is compared with every index.
func decompScatterReduce(d *Decomp) []*ir.Value {
	x, idx := d.vector(d.in(0)), d.cast(d.vector(d.in(2)), ops.Int64)
	dim := d.dim(1, x)
	how, _ := d.named("reduce").Str()
	t := x.Type.DType
	var src *ir.Value
	if v := d.N.In(3); v != nil && v.Type.IsTensor() {
		src = d.vector(v)
	} else {
		src = d.expand(d.scalar(d.N.Arg(3), t), idx.Type.Shape...)
	}
	for i, n := range idx.Type.Shape {
		src = d.prefix(src, i, n)
	}
	incl := d.named("include_self")
	keep := incl.IsNone() || boolArg(incl)
	add := func(x, src *ir.Value) *ir.Value {
		return d.v(op.AtenScatterAddDefault(d.Builder, x, ir.Int(int64(dim)), idx, src))
	}
	// forget gives the places that are written to a neutral value where self does not count.
	forget := func(neutral any) *ir.Value {
		if keep {
			return x
		}
		hit := d.v(op.AtenScatterValue(d.Builder, d.full(int64(0), ops.Int64, x.Type.Shape...), ir.Int(int64(dim)), idx, ir.Int(1)))
		return d.where(d.ne(hit, int64(0)), neutral, x)
	}
	whole := func(y *ir.Value) []*ir.Value { return one(d.view(d.cast(y, t), d.N.Out().Type.Shape...)) }
	switch how {
	case "sum", "add":
		return whole(add(forget(zeroOf(t, 0)), src))
	case "mean":
		if t == ops.Bool {
			return nil
		}
		first := int64(0)
		if keep {
			first = 1
		}
		count := add(d.full(first, ops.Int64, x.Type.Shape...), d.full(int64(1), ops.Int64, idx.Type.Shape...))
		sum, count := add(forget(zeroOf(t, 0)), src), d.max(count, int64(1))
		if t.IsInt() {
			return whole(d.floorDiv(sum, count))
		}
		return whole(d.div(sum, d.cast(count, t)))
	case "prod", "multiply", "amax", "amin":
		if t.IsComplex() {
			return nil
		}
		neutral, join := oneOf(t), d.mul
		work := x.Type.DType
		switch how {
		case "amax":
			neutral, join = lowest(t), d.max
		case "amin":
			neutral, join = highest(t), d.min
		default:
			if t.IsInt() || t == ops.Bool {
				work = ops.Int64
			}
		}
		// Only as much of the other dimensions as the indices have is written.
		y := forget(neutral)
		part := y
		for i, n := range idx.Type.Shape {
			if i != dim {
				part = d.prefix(part, i, n)
			}
		}
		hit := d.eq(d.unsqueeze(idx, dim), d.grid(x.Type.Shape[dim], dim, x.Type.Rank()+1))
		vals := d.where(hit, d.unsqueeze(src, dim), neutral)
		switch how {
		case "amax":
			vals = d.amax(vals, false, dim+1)
		case "amin":
			vals = d.amin(vals, false, dim+1)
		default:
			vals = d.v(op.AtenProdDimInt(d.Builder, d.cast(vals, work), ir.Int(int64(dim+1))))
			part = d.cast(part, work)
		}
		part = d.cast(join(part, vals), t)
		for i, n := range idx.Type.Shape {
			if i == dim || n.Equal(x.Type.Shape[i]) {
				continue
			}
			// What the indices do not reach stays.
			rest := d.slice(y, i, n, x.Type.Shape[i])
			for j := i + 1; j < len(idx.Type.Shape); j++ {
				if j != dim {
					rest = d.prefix(rest, j, idx.Type.Shape[j])
				}
			}
			part = d.cat(i, part, rest)
		}
		return whole(part)
	}
	return nil
}

// prefix is the first n of a dimension.
func (d *Decomp) prefix(x *ir.Value, dim int, n sym.Expr) *ir.Value {
	if n.Equal(x.Type.Shape[dim]) {
		return x
	}
	return d.slice(x, dim, int64(0), n)
}

// oneOf, lowest and highest are neutral for products, maxima and minima in an element type.
func oneOf(t ir.DType) ir.Arg {
	switch {
	case t == ops.Bool:
		return ir.Bool(true)
	case t.IsInt():
		return ir.Int(1)
	}
	return ir.Float(1)
}

func lowest(t ir.DType) ir.Arg  { return extreme(t, false) }
func highest(t ir.DType) ir.Arg { return extreme(t, true) }

func extreme(t ir.DType, high bool) ir.Arg {
	switch {
	case t == ops.Bool:
		return ir.Bool(high)
	case t.IsInt():
		bits := 8 * t.Size()
		switch {
		case t.IsSigned() && high:
			return ir.Int(1<<(bits-1) - 1)
		case t.IsSigned():
			return ir.Int(-1 << (bits - 1))
		case high:
			return ir.Int(1<<min(bits, 63) - 1)
		}
		return ir.Int(0)
	case high:
		return ir.Float(math.Inf(1))
	}
	return ir.Float(negInf)
}

// decompIndexReduce spreads the index over the source.
func decompIndexReduce(d *Decomp) []*ir.Value {
	x := d.vector(d.in(0))
	dim, idx := d.dim(1, x), d.vector(d.in(2))
	src := d.view(d.in(3), with(x.Type.Shape, dim, idx.Type.Shape[0])...)
	shape := make([]sym.Expr, x.Type.Rank())
	for i := range shape {
		shape[i] = one1
	}
	shape[dim] = idx.Type.Shape[0]
	at := d.cast(d.expand(d.view(idx, shape...), src.Type.Shape...), ops.Int64)
	y := d.v(op.AtenScatterReduceTwo(d.Builder, x, ir.Int(int64(dim)), at, src, d.named("reduce"), op.KW("include_self", d.named("include_self"))))
	return one(d.view(y, d.N.Out().Type.Shape...))
}

// decompEmbeddingRenorm shrinks the rows that are named to a largest norm.
func decompEmbeddingRenorm(d *Decomp) []*ir.Value {
	w, idx := d.in(0), d.in(1)
	limit, okL := d.N.Arg(2).Float()
	p, okP := d.N.Arg(3).Float()
	if !okL || !okP {
		return nil
	}
	n := w.Type.Shape[0]
	flat := d.view(idx, idx.Type.Numel())
	named := d.any(d.eq(d.unsqueeze(d.arange(n, ops.Int64), 1), flat), true, 1)
	norm := d.v(op.AtenLinalgVectorNormDefault(d.Builder, d.opmath(w), op.KW("ord", ir.Float(p)), op.KW("dim", ir.Ints(1)), op.KW("keepdim", ir.Bool(true))))
	scale := d.where(d.gt(norm, limit), d.div(limit, d.add(norm, 1e-7)), 1.0)
	return one(d.where(named, d.cast(d.mul(w, scale), w.Type.DType), w))
}

// decompScatterSrc writes with one index for each dimension: the given one, and counts beside it. First an index of 32 bits
// gets 64, which is all that some kernels lack.
func decompScatterSrc(d *Decomp) []*ir.Value {
	if wide := decompWideIndex(d); wide != nil {
		return wide
	}
	x, idx, src := d.in(0), d.in(2), d.in(3)
	r := x.Type.Rank()
	if r == 0 || idx.Type.DType != ops.Int64 {
		return nil
	}
	dim := d.dim(1, x)
	var l []ir.Arg
	for i, n := range idx.Type.Shape {
		src = d.prefix(src, i, n)
		if i == dim {
			l = append(l, ir.Ref(idx))
		} else {
			l = append(l, ir.Ref(d.grid(n, i, r)))
		}
	}
	return one(d.v(op.AtenIndexPutDefault(d.Builder, x, ir.List(l...), src)))
}

// decompMaskedScatter counts the places before each one: that many elements of the source are gone.
func decompMaskedScatter(d *Decomp) []*ir.Value {
	x, mask, src := d.in(0), d.in(1), d.in(2)
	out := d.N.Out().Type.Shape
	n := src.Type.Numel()
	if d.N.Graph().Root().Syms.Range(n).Min < 1 {
		return nil
	}
	flat := d.view(d.expand(d.cast(mask, ops.Int64), out...), sym.Prod(out...))
	at := d.sub(d.v(op.AtenCumsumDefault(d.Builder, flat, ir.Int(0))), int64(1))
	taken := d.take(d.view(src, n), 0, d.clamp(at, int64(0), sym.Sub(n, one1)))
	return one(d.where(mask, d.view(taken, out...), x))
}

// decompWideIndex gives an index of 32 bits 64.
func decompWideIndex(d *Decomp) []*ir.Value {
	idx := d.named("index").Value()
	if idx == nil || idx.Type.DType == ops.Int64 || !idx.Type.DType.IsInt() {
		return nil
	}
	args := slices.Clone(d.N.Args())
	for i, a := range args {
		if a.Value() == idx {
			args[i] = ir.Ref(d.cast(idx, ops.Int64))
		}
	}
	return d.outs(op.New(d.Builder, d.N.Op, args))
}
