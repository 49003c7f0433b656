package passes

import (
	"math"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

func (d *Decomp) keep() bool { return boolArg(d.named("keepdim")) }

func decompSumAll(d *Decomp) []*ir.Value {
	x := d.in(0)
	return one(d.v(op.AtenSumDimIntList(d.Builder, x, intArgs(allDims(x.Type.Rank())), op.KW("dtype", ir.DTypeArg(d.N.Out().Type.DType)))))
}

// decompSum sums over one dimension as over two, one of them of size one: the kernel sums one alone in single precision.
func decompSum(d *Decomp) []*ir.Value {
	x, o := d.in(0), d.N.Out()
	dims := d.dims(d.N.Arg(1), x)
	if len(dims) != 1 || x.Type.Rank() == 0 {
		return nil
	}
	r := x.Type.Rank()
	y := d.view(x, append(x.Type.Shape[:r:r], one1)...)
	s := d.v(op.AtenSumDimIntList(d.Builder, y, intArgs([]int{dims[0], r}), op.KW("keepdim", ir.Bool(true)), op.KW("dtype", ir.DTypeArg(o.Type.DType))))
	return one(d.view(s, o.Type.Shape...))
}

func decompMeanAll(d *Decomp) []*ir.Value {
	x := d.cast(d.in(0), d.N.Out().Type.DType)
	return one(d.mean(x, false, allDims(x.Type.Rank())...))
}

// numbers is x with zeros for what is not a number, and where it is one.
func (d *Decomp) numbers(x *ir.Value) (y, valid *ir.Value) {
	if kindOf(x.Type.DType) < 2 {
		return x, nil
	}
	nan := d.isNaN(x)
	return d.where(nan, 0.0, x), d.not(nan)
}

func decompNansum(d *Decomp) []*ir.Value {
	x := d.in(0)
	y, _ := d.numbers(x)
	return one(d.v(op.AtenSumDimIntList(d.Builder, y, intArgs(d.dims(d.N.Arg(1), x)), op.KW("keepdim", d.named("keepdim")), op.KW("dtype", ir.DTypeArg(d.N.Out().Type.DType)))))
}

func decompNanmean(d *Decomp) []*ir.Value {
	x := d.cast(d.in(0), d.N.Out().Type.DType)
	dims := d.dims(d.N.Arg(1), x)
	y, valid := d.numbers(x)
	if valid == nil {
		return one(d.mean(x, d.keep(), dims...))
	}
	return one(d.div(d.sum(y, d.keep(), dims...), d.sum(d.cast(valid, x.Type.DType), d.keep(), dims...)))
}

func decompAminmax(d *Decomp) []*ir.Value {
	x := d.in(0)
	dims := d.dims(d.named("dim"), x)
	return []*ir.Value{d.amin(x, d.keep(), dims...), d.amax(x, d.keep(), dims...)}
}

func decompAll(d *Decomp) []*ir.Value {
	x := d.in(0)
	a := ir.None
	if d.N.Op != ops.AtenAllDefault {
		a = d.named("dim")
	}
	all := d.not(d.any(d.not(x), d.keep(), d.dims(a, x)...))
	return d.back(all)
}

func decompAny(d *Decomp) []*ir.Value {
	x := d.in(0)
	a := ir.None
	if d.N.Op != ops.AtenAnyDefault {
		a = d.named("dim")
	}
	return d.back(d.any(x, d.keep(), d.dims(a, x)...))
}

// decompAnyDims is any over no dimension, which is each element for itself; no dimension given means all of them.
func decompAnyDims(d *Decomp) []*ir.Value {
	a := d.named("dim")
	if a.Kind() != ir.ArgList || len(a.List()) > 0 {
		return nil
	}
	return d.back(d.cast(d.in(0), ops.Bool))
}

func decompAllDims(d *Decomp) []*ir.Value {
	if vs := decompAnyDims(d); vs != nil {
		return vs
	}
	return decompAll(d)
}

func decompIsAllTrue(d *Decomp) []*ir.Value {
	x := d.in(0)
	return one(d.not(d.any(d.not(x), false, allDims(x.Type.Rank())...)))
}

func decompIsAnyTrue(d *Decomp) []*ir.Value {
	x := d.in(0)
	return one(d.any(x, false, allDims(x.Type.Rank())...))
}

func decompCountNonzero(d *Decomp) []*ir.Value {
	x := d.in(0)
	return one(d.sum(d.cast(d.ne(x, zeroOf(x.Type.DType, 0)), ops.Int64), false, d.dims(d.named("dim"), x)...))
}

func decompLogsumexp(d *Decomp) []*ir.Value {
	x := d.opmath(d.in(0))
	dims := d.dims(d.N.Arg(1), x)
	m := d.amax(x, true, dims...)
	// An infinite maximum would make differences that are not numbers.
	m = d.where(d.eq(d.abs(m), math.Inf(1)), 0.0, m)
	s := d.log(d.sum(d.exp(d.sub(x, m)), true, dims...))
	return d.back(d.view(d.add(s, m), d.N.Out().Type.Shape...))
}

// correction is what a variance takes off the number of elements.
func (d *Decomp) correction() float64 {
	if a := d.named("correction"); !a.IsNone() {
		return floatArg(a, 1)
	}
	if a := d.named("unbiased"); !a.IsNone() && !boolArg(a) {
		return 0
	}
	return 1
}

// varMean is the variance and the mean over the dimensions that the node names.
func (d *Decomp) varMean(keep bool) (variance, mean *ir.Value) {
	x := d.opmath(d.in(0))
	dims := d.dims(d.named("dim"), x)
	mean = d.mean(x, true, dims...)
	c := d.sub(x, mean)
	n := sym.Const(1)
	for _, k := range dims {
		n = sym.Mul(n, x.Type.Shape[k])
	}
	s := d.sum(d.mul(c, c), true, dims...)
	if k, ok := n.IsConst(); ok {
		div := math.Max(float64(k)-d.correction(), 0)
		variance = d.div(s, div)
	} else {
		count := d.scalar(n, s.Type.DType)
		variance = d.div(s, d.max(d.sub(count, d.correction()), 0.0))
	}
	if !keep {
		var shape []sym.Expr
		for _, k := range otherDims(x.Type.Rank(), dims) {
			shape = append(shape, x.Type.Shape[k])
		}
		variance, mean = d.view(variance, shape...), d.view(mean, shape...)
	}
	return variance, mean
}

func (d *Decomp) varKernel() *ir.Value {
	x := d.in(0)
	return d.v(op.AtenVarCorrection(d.Builder, x, op.KW("dim", intArgs(d.dims(d.named("dim"), x))), op.KW("correction", ir.Float(d.correction())), op.KW("keepdim", ir.Bool(d.keep()))))
}

func decompVar(d *Decomp) []*ir.Value {
	if d.N.Op != ops.AtenVarCorrection {
		return one(d.varKernel())
	}
	v, _ := d.varMean(d.keep())
	return d.back(v)
}

func decompStd(d *Decomp) []*ir.Value {
	return d.back(d.sqrt(d.opmath(d.varKernel())))
}

func decompVarMean(d *Decomp) []*ir.Value {
	v, m := d.varMean(d.keep())
	t := d.N.Out().Type.DType
	return []*ir.Value{d.cast(v, t), d.cast(m, t)}
}

func decompStdMean(d *Decomp) []*ir.Value {
	v, m := d.varMean(d.keep())
	t := d.N.Out().Type.DType
	return []*ir.Value{d.cast(d.sqrt(v), t), d.cast(m, t)}
}

func decompNorm(d *Decomp) []*ir.Value {
	x := d.cast(d.in(0), d.N.Out().Type.DType)
	p := floatArg(d.N.Arg(1), 2)
	return d.back(d.pnorm(d.opmath(x), p, d.keep(), d.dims(d.named("dim"), x)...))
}

func decompVectorNorm(d *Decomp) []*ir.Value {
	x := d.in(0)
	if x.Type.DType.IsComplex() {
		x = d.abs(x)
	}
	x = d.opmath(d.cast(x, d.N.Out().Type.DType))
	return d.back(d.pnorm(x, floatArg(d.N.Arg(1), 2), d.keep(), d.dims(d.named("dim"), x)...))
}

func decompFrobeniusNorm(d *Decomp) []*ir.Value {
	x := d.opmath(d.in(0))
	return d.back(d.pnorm(x, 2, d.keep(), d.dims(d.N.Arg(1), x)...))
}

// matrixNorm is the norms of matrices that need no singular values.
func (d *Decomp) matrixNorm(ord any, dims []int) []*ir.Value {
	x := d.opmath(d.cast(d.in(0), d.N.Out().Type.DType))
	rows, cols := dims[0], dims[1]
	sums := func(over, then int, reduce func(*ir.Value, bool, ...int) *ir.Value) *ir.Value {
		y := reduce(d.sum(d.abs(x), true, over), true, then)
		return d.view(y, d.N.Out().Type.Shape...)
	}
	switch ord {
	case "fro":
		return d.back(d.pnorm(x, 2, d.keep(), rows, cols))
	case 1.0:
		return d.back(sums(rows, cols, d.amax))
	case -1.0:
		return d.back(sums(rows, cols, d.amin))
	case math.Inf(1):
		return d.back(sums(cols, rows, d.amax))
	case math.Inf(-1):
		return d.back(sums(cols, rows, d.amin))
	}
	return nil
}

func decompMatrixNorm(d *Decomp) []*ir.Value {
	dims := d.dimList(2, d.in(0))
	if len(dims) != 2 {
		return nil
	}
	if s, ok := d.N.Arg(1).Str(); ok {
		return d.matrixNorm(s, dims)
	}
	return d.matrixNorm(floatArg(d.N.Arg(1), 2), dims)
}

func decompLinalgNorm(d *Decomp) []*ir.Value {
	x := d.in(0)
	if x.Type.Numel().IsConstValue(0) {
		return d.filledWith(0) // where there is nothing to sum or to choose from, the norm is zero
	}
	s, isStr := d.N.Arg(1).Str()
	dims := d.dims(d.named("dim"), x)
	if d.N.Arg(1).IsNone() {
		return d.back(d.pnorm(d.opmath(d.cast(x, d.N.Out().Type.DType)), 2, d.keep(), dims...))
	}
	if len(dims) == 2 {
		if isStr {
			return d.matrixNorm(s, dims)
		}
		return d.matrixNorm(floatArg(d.N.Arg(1), 2), dims)
	}
	if isStr || len(dims) != 1 {
		return nil
	}
	return d.back(d.pnorm(d.opmath(d.cast(x, d.N.Out().Type.DType)), floatArg(d.N.Arg(1), 2), d.keep(), dims...))
}

func decompDist(d *Decomp) []*ir.Value {
	x := d.opmath(d.sub(d.in(0), d.in(1)))
	return d.back(d.pnorm(x, floatArg(d.N.Arg(2), 2), false, allDims(x.Type.Rank())...))
}

// sorted are the k smallest or largest elements along a dimension with their places.
func (d *Decomp) sorted(x *ir.Value, k sym.Expr, dim int, largest bool) []*ir.Value {
	return d.outs(op.AtenTopkDefault(d.Builder, x, ir.SymInt(k), op.KW("dim", ir.Int(int64(dim))), op.KW("largest", ir.Bool(largest)), op.KW("sorted", ir.Bool(true))))
}

// kth is the k-th smallest element along a dimension, which goes away.
func (d *Decomp) kth(x *ir.Value, k sym.Expr, dim int) (value, index *ir.Value) {
	if x.Type.Rank() == 0 {
		return x, d.full(0, ops.Int64)
	}
	s := d.sorted(x, k, dim, false)
	last := sym.Sub(k, one1)
	return d.pickAt(s[0], dim, last), d.pickAt(s[1], dim, last)
}

// anyNaN propagates what is not a number along a dimension, and its place.
func (d *Decomp) anyNaN(x *ir.Value, dim int, v, i *ir.Value) (value, index *ir.Value) {
	if kindOf(x.Type.DType) < 2 || x.Type.Rank() == 0 {
		return v, i
	}
	nan := d.isNaN(x)
	first := d.v(op.AtenArgmaxDefault(d.Builder, d.cast(nan, ops.Int32), op.KW("dim", ir.Int(int64(dim)))))
	has := d.any(nan, false, dim)
	return d.where(has, math.NaN(), v), d.where(has, first, i)
}

func (d *Decomp) kthResult(x *ir.Value, k sym.Expr, dim int, v, i *ir.Value) []*ir.Value {
	s0, s1 := d.N.Outs[0].Type.Shape, d.N.Outs[1].Type.Shape
	return []*ir.Value{d.view(v, s0...), d.view(i, s1...)}
}

func decompMedian(d *Decomp) []*ir.Value {
	x := d.in(0)
	n := x.Type.Numel()
	flat := d.view(x, n)
	v, i := d.kth(flat, sym.FloorDiv(sym.Add(n, one1), sym.Const(2)), 0)
	v, _ = d.anyNaN(flat, 0, v, i)
	return one(v)
}

func decompMedianDim(d *Decomp) []*ir.Value {
	x := d.in(0)
	dim := d.dim(1, x)
	n := one1
	if x.Type.Rank() > 0 {
		n = x.Type.Shape[dim]
	}
	k := sym.FloorDiv(sym.Add(n, one1), sym.Const(2))
	v, i := d.kth(x, k, dim)
	v, i = d.anyNaN(x, dim, v, i)
	return d.kthResult(x, k, dim, v, i)
}

// numbersFirst sorts along a dimension with what is not a number behind the rest; count, a float, is how much of it is a number.
func (d *Decomp) numbersFirst(x *ir.Value, dim int) (sorted []*ir.Value, count *ir.Value) {
	nan := d.isNaN(x)
	s := d.sorted(d.where(nan, math.Inf(1), x), x.Type.Shape[dim], dim, false)
	t := ops.Float32
	if x.Type.DType == ops.Float64 {
		t = ops.Float64
	}
	return s, d.sum(d.cast(d.not(nan), t), true, dim)
}

// nanMedian is the lower median of what is a number along dim, and its place; both keep the dimension.
func (d *Decomp) nanMedian(x *ir.Value, dim int) (v, i *ir.Value) {
	s, count := d.numbersFirst(x, dim)
	at := d.cast(d.max(d.floor(d.div(d.sub(count, 1.0), 2.0)), 0.0), ops.Int64)
	pick := func(y *ir.Value) *ir.Value { return d.v(op.AtenGatherDefault(d.Builder, y, ir.Int(int64(dim)), at)) }
	return d.where(d.eq(count, 0.0), math.NaN(), pick(s[0])), pick(s[1])
}

func decompNanmedian(d *Decomp) []*ir.Value {
	x := d.in(0)
	if kindOf(x.Type.DType) < 2 {
		return one(d.v(op.AtenMedianDefault(d.Builder, x)))
	}
	v, _ := d.nanMedian(d.view(x, x.Type.Numel()), 0)
	return one(d.view(v))
}

func decompNanmedianDim(d *Decomp) []*ir.Value {
	x := d.in(0)
	if kindOf(x.Type.DType) < 2 || x.Type.Rank() == 0 {
		return d.outs(op.AtenMedianDim(d.Builder, x, d.N.Arg(1), op.KW("keepdim", d.N.Arg(2))))
	}
	v, i := d.nanMedian(x, d.dim(1, x))
	return []*ir.Value{d.view(v, d.N.Outs[0].Type.Shape...), d.view(i, d.N.Outs[1].Type.Shape...)}
}

// decompNanquantile reads sorted numbers at places that depend on how many there are.
func decompNanquantile(d *Decomp) []*ir.Value {
	x := d.vector(d.in(0))
	mode, _ := d.named("interpolation").Str()
	dim := 0
	if d.N.Arg(2).IsNone() {
		x = d.view(x, x.Type.Numel())
	} else {
		dim = d.dim(2, x)
	}
	t := x.Type.DType
	var q *ir.Value
	if v := d.N.In(1); v != nil && v.Type.IsTensor() {
		q = d.vector(v)
	} else {
		q = d.full(floatArg(d.N.Arg(1), 0), t, one1)
	}
	if dim != 0 {
		x = d.swap(x, 0, dim)
	}
	s, count := d.numbersFirst(x, 0)
	m, rest := q.Type.Shape[0], x.Type.Shape[1:]
	ones := []sym.Expr{m}
	for range rest {
		ones = append(ones, one1)
	}
	rank := d.mul(d.expand(d.view(q, ones...), join(dimsOf(m), rest)...), d.max(d.sub(count, 1.0), 0.0))
	lo := d.floor(rank)
	frac := d.sub(rank, lo)
	switch mode {
	case "linear":
	case "lower":
		frac = d.mul(frac, 0.0)
	case "higher":
		frac = d.cast(d.gt(frac, 0.0), t)
	case "nearest":
		frac = d.sub(d.round(rank), lo)
	case "midpoint":
		frac = d.mul(d.cast(d.gt(frac, 0.0), t), 0.5)
	default:
		return nil
	}
	at := func(p *ir.Value) *ir.Value {
		return d.v(op.AtenGatherDefault(d.Builder, s[0], ir.Int(0), d.cast(p, ops.Int64)))
	}
	a := at(lo)
	b := at(d.v(op.AtenCeilDefault(d.Builder, rank)))
	v := d.where(d.gt(frac, 0.0), d.add(a, d.mul(d.sub(b, a), frac)), a)
	v = d.where(d.eq(count, 0.0), math.NaN(), v)
	if dim != 0 {
		// The dimension that went to the front gave its place to the first.
		v = d.swap(d.unsqueeze(v, 1), 1, dim+1)
	}
	return one(d.view(v, d.N.Out().Type.Shape...))
}

// decompMode counts for each element those that equal it: the least of the most frequent, at its last place.
func decompMode(d *Decomp) []*ir.Value {
	x := d.in(0)
	if x.Type.Rank() == 0 {
		return []*ir.Value{x, d.full(int64(0), ops.Int64)}
	}
	dim := d.dim(1, x)
	n := x.Type.Shape[dim]
	same := d.eq(d.unsqueeze(x, dim), d.unsqueeze(x, dim+1))
	if kindOf(x.Type.DType) == 2 {
		nan := d.isNaN(x)
		same = d.or(same, d.and(d.unsqueeze(nan, dim), d.unsqueeze(nan, dim+1)))
	}
	count := d.sum(d.cast(same, ops.Int64), false, dim+1)
	often := d.eq(count, d.amax(count, true, dim))
	work := x
	if x.Type.DType == ops.Bool {
		work = d.cast(x, ops.Uint8)
	}
	cand := d.where(often, work, highest(work.Type.DType))
	if kindOf(x.Type.DType) == 2 {
		// What is not a number comes last, behind infinity.
		number := d.and(often, d.not(d.isNaN(x)))
		least := d.amin(d.where(number, work, math.Inf(1)), true, dim)
		cand = d.where(d.any(number, true, dim), least, math.NaN())
	} else {
		cand = d.amin(cand, true, dim)
	}
	hit := d.eq(work, cand)
	if kindOf(x.Type.DType) == 2 {
		hit = d.or(hit, d.and(d.isNaN(work), d.isNaN(cand)))
	}
	at := d.amax(d.where(hit, d.grid(n, dim, x.Type.Rank()), int64(-1)), false, dim)
	return []*ir.Value{d.view(d.cast(cand, x.Type.DType), d.N.Outs[0].Type.Shape...), d.view(at, d.N.Outs[1].Type.Shape...)}
}

func decompKthvalue(d *Decomp) []*ir.Value {
	x := d.in(0)
	k, ok := d.N.Arg(1).Expr()
	if !ok {
		return nil
	}
	dim := d.dim(2, x)
	v, i := d.kth(x, k, dim)
	return d.kthResult(x, k, dim, v, i)
}

// decompQuantile reads sorted values at the places of the quantiles, between two of them as the interpolation says.
func decompQuantile(d *Decomp) []*ir.Value {
	x := d.in(0)
	mode, _ := d.named("interpolation").Str()
	out := d.N.Out().Type
	if x.Type.Rank() == 0 {
		return one(d.expand(x, out.Shape...))
	}
	dim := 0
	if d.N.Arg(2).IsNone() {
		x = d.view(x, x.Type.Numel())
	} else {
		dim = d.dim(2, x)
	}
	n, ok := x.Type.Shape[dim].IsConst()
	if !ok || n < 1 {
		return nil
	}
	if q, ok := d.N.Arg(1).Float(); ok {
		rank := q * float64(n-1)
		lo := int64(math.Floor(rank))
		hi := min(lo+1, n-1)
		frac := rank - float64(lo)
		switch mode {
		case "linear":
		case "lower":
			frac = 0
		case "higher":
			frac = math.Ceil(frac)
		case "nearest":
			frac = math.RoundToEven(rank) - float64(lo)
		case "midpoint":
			if frac > 0 {
				frac = 0.5
			}
		default:
			return nil
		}
		s := d.sorted(x, sym.Const(hi+1), dim, false)[0]
		v := d.pickAt(s, dim, lo)
		if frac > 0 {
			v = d.add(v, d.mul(d.sub(d.pickAt(s, dim, hi), v), frac))
		}
		v, _ = d.anyNaN(x, dim, v, d.full(0, ops.Int64))
		return one(d.view(v, out.Shape...))
	}
	q := d.in(1)
	rank := d.mul(d.view(q, q.Type.Numel()), float64(n-1))
	lo := d.floor(rank)
	frac := d.sub(rank, lo)
	switch mode {
	case "linear":
	case "lower":
		frac = d.mul(frac, 0.0)
	case "higher":
		frac = d.cast(d.gt(frac, 0.0), x.Type.DType)
	case "nearest":
		frac = d.sub(d.v(op.AtenRoundDefault(d.Builder, rank)), lo)
	case "midpoint":
		frac = d.mul(d.cast(d.gt(frac, 0.0), x.Type.DType), 0.5)
	default:
		return nil
	}
	s := d.sorted(x, sym.Const(n), dim, false)[0]
	r := x.Type.Rank()
	perm := []int{dim}
	shape := ir.Consts(make([]int64, r)...)
	shape[0] = q.Type.Numel()
	for i := range r {
		if i != dim {
			perm = append(perm, i)
		}
	}
	for i := 1; i < r; i++ {
		shape[i] = one1
	}
	s = d.permute(s, perm...)
	a := d.take(s, 0, d.cast(lo, ops.Int64))
	b := d.take(s, 0, d.cast(d.clamp(d.add(lo, 1.0), 0.0, float64(n-1)), ops.Int64))
	step := d.mul(d.sub(b, a), d.view(frac, shape...))
	v := d.where(d.expand(d.view(d.gt(frac, 0.0), shape...), a.Type.Shape...), d.add(a, step), a)
	nan := d.any(d.isNaN(x), false, dim)
	v = d.where(d.expand(d.unsqueeze(nan, 0), v.Type.Shape...), math.NaN(), v)
	return one(d.view(v, out.Shape...))
}

// scan combines each element with all before it by doubling steps: an associative f needs as many as the size has bits.
// Each state is a list of tensors; fill says what stands before the first element.
func (d *Decomp) scan(dim int, state []*ir.Value, fill []ir.Arg, f func(before, at []*ir.Value) []*ir.Value) []*ir.Value {
	size := state[0].Type.Shape[dim]
	r := state[0].Type.Rank()
	if n, ok := size.IsConst(); ok {
		for step := int64(1); step < n; step *= 2 {
			before := make([]*ir.Value, len(state))
			for i, x := range state {
				pads := make([]sym.Expr, 2*(r-dim))
				pads[2*(r-1-dim)] = sym.Const(step)
				before[i] = d.padded(d.slice(x, dim, 0, n-step), fill[i], pads...)
			}
			state = f(before, state)
		}
		return state
	}
	// A size that varies may be less than a step: places before the first are read at the first and filled.
	most := d.G.Syms.Range(size)
	if !most.HasMax() || most.Max > 1<<16 {
		return nil
	}
	at := d.arange(size, ops.Int64)
	for step := int64(1); step < most.Max; step *= 2 {
		from := d.sub(at, step)
		ones := make([]sym.Expr, r)
		for i := range ones {
			ones[i] = one1
		}
		inside := d.view(d.ge(from, 0), with(ones, dim, size)...)
		from = d.max(from, 0)
		before := make([]*ir.Value, len(state))
		for i, x := range state {
			before[i] = d.where(inside, d.take(x, dim, from), fill[i])
		}
		state = f(before, state)
	}
	return state
}

func decompCumsum(d *Decomp) []*ir.Value {
	if vs := d.widened(); vs != nil {
		return vs
	}
	x := d.cast(d.in(0), d.N.Out().Type.DType)
	if x.Type.Rank() == 0 {
		return one(x)
	}
	s := d.scan(d.dim(1, x), []*ir.Value{x}, []ir.Arg{zeroOf(x.Type.DType, 0)}, func(a, b []*ir.Value) []*ir.Value { return one(d.add(a[0], b[0])) })
	return s
}

func decompCumprod(d *Decomp) []*ir.Value {
	x := d.cast(d.in(0), d.N.Out().Type.DType)
	if x.Type.Rank() == 0 {
		return one(x)
	}
	w := d.opmathFloat(x)
	s := d.scan(d.dim(1, x), []*ir.Value{w}, []ir.Arg{zeroOf(w.Type.DType, 1)}, func(a, b []*ir.Value) []*ir.Value { return one(d.mul(a[0], b[0])) })
	if s == nil {
		return nil
	}
	return d.back(s[0])
}

// opmathFloat is opmath for floats only.
func (d *Decomp) opmathFloat(x *ir.Value) *ir.Value {
	if kindOf(x.Type.DType) == 2 {
		return d.opmath(x)
	}
	return x
}

func (d *Decomp) cumExtreme(better func(x, y any) *ir.Value, worst float64) []*ir.Value {
	x := d.in(0)
	if x.Type.Rank() == 0 {
		return []*ir.Value{x, d.full(0, ops.Int64)}
	}
	dim := d.dim(1, x)
	fill := ir.Float(worst)
	if kindOf(x.Type.DType) < 2 {
		k := int64(math.MinInt64)
		if x.Type.DType.Size() < 8 {
			k = -1 << (8*x.Type.DType.Size() - 1)
		}
		if worst > 0 {
			k = -(k + 1)
		}
		if !x.Type.DType.IsSigned() {
			if worst < 0 {
				k = 0
			} else {
				k = 1<<(8*x.Type.DType.Size()) - 1
			}
		}
		fill = ir.Int(k)
	}
	idx := d.expand(d.grid(x.Type.Shape[dim], dim, x.Type.Rank()), x.Type.Shape...)
	s := d.scan(dim, []*ir.Value{x, idx}, []ir.Arg{fill, ir.Int(-1)}, func(a, b []*ir.Value) []*ir.Value {
		// The later one wins among equals, and what is not a number wins always.
		win := better(b[0], a[0])
		if kindOf(x.Type.DType) == 2 {
			win = d.or(win, d.isNaN(b[0]))
			win = d.and(win, d.or(d.not(d.isNaN(a[0])), d.isNaN(b[0])))
		}
		win = d.or(win, d.eq(a[1], -1))
		return []*ir.Value{d.where(win, b[0], a[0]), d.where(win, b[1], a[1])}
	})
	return s
}

func decompCummax(d *Decomp) []*ir.Value { return d.cumExtreme(d.ge, negInf) }

func decompCummin(d *Decomp) []*ir.Value { return d.cumExtreme(d.le, math.Inf(1)) }

func decompLogcumsumexp(d *Decomp) []*ir.Value {
	x := d.opmath(d.in(0))
	if x.Type.Rank() == 0 {
		return d.back(x)
	}
	s := d.scan(d.dim(1, x), []*ir.Value{x}, []ir.Arg{ir.Float(negInf)}, func(a, b []*ir.Value) []*ir.Value {
		return one(d.v(op.AtenLogaddexpDefault(d.Builder, a[0], b[0])))
	})
	if s == nil {
		return nil
	}
	return d.back(s[0])
}

func decompTrace(d *Decomp) []*ir.Value {
	g := d.v(op.AtenDiagonalDefault(d.Builder, d.in(0)))
	return one(d.v(op.AtenSumDimIntList(d.Builder, g, ir.Ints(0), op.KW("dtype", ir.DTypeArg(d.N.Out().Type.DType)))))
}

// decompHistc counts the elements of each bin by comparing all elements with all bins.
func decompHistc(d *Decomp) []*ir.Value {
	in := d.in(0)
	x := d.opmath(in)
	n, ok := d.N.Arg(1).Int()
	lo, okL := d.N.Arg(2).Float()
	hi, okH := d.N.Arg(3).Float()
	if !ok || !okL || !okH || n < 1 {
		return nil
	}
	if lo >= hi {
		return nil // the bounds are then those of the data
	}
	flat := d.view(x, x.Type.Numel())
	bin := d.floor(d.div(d.mul(d.sub(flat, lo), float64(n)), hi-lo))
	bin = d.where(d.eq(flat, hi), float64(n-1), bin)
	inside := d.and(d.ge(flat, lo), d.le(flat, hi))
	bin = d.where(inside, bin, -1.0)
	hit := d.eq(d.unsqueeze(bin, 1), d.cast(d.arange(sym.Const(n), ops.Int64), x.Type.DType))
	return d.back(d.sum(d.cast(hit, ops.Float32), false, 0))
}

func decompTrapezoid(d *Decomp) []*ir.Value {
	y := d.in(0)
	k, ok := d.named("dim").Int()
	if !ok {
		return nil
	}
	dim := wrapDim(k, y.Type.Rank())
	n := y.Type.Shape[dim]
	sum := d.add(d.slice(y, dim, 1, n), d.slice(y, dim, 0, sym.Sub(n, one1)))
	if x := d.named("x").Value(); x != nil {
		xd := 0
		if x.Type.Rank() > 1 {
			xd = dim
		}
		w := d.sub(d.slice(x, xd, 1, n), d.slice(x, xd, 0, sym.Sub(n, one1)))
		if x.Type.Rank() == 1 {
			shape := make([]sym.Expr, y.Type.Rank())
			for i := range shape {
				shape[i] = one1
			}
			shape[dim] = w.Type.Shape[0]
			w = d.view(w, shape...)
		}
		return d.back(d.div(d.sum(d.mul(sum, w), false, dim), 2.0))
	}
	return d.back(d.mul(d.sum(sum, false, dim), floatArg(d.named("dx"), 1)/2))
}

// covariance of rows as variables.
func (d *Decomp) covariance(x *ir.Value, correction float64) *ir.Value {
	if x.Type.Rank() < 2 {
		x = d.view(x, one1, x.Type.Numel())
	}
	n, ok := x.Type.Shape[1].IsConst()
	if !ok {
		return nil
	}
	c := d.sub(x, d.mean(x, true, 1))
	return d.div(d.mm(c, d.swap(c, 0, 1)), math.Max(float64(n)-correction, 0))
}

func decompCov(d *Decomp) []*ir.Value {
	if !d.named("fweights").IsNone() || !d.named("aweights").IsNone() {
		return nil
	}
	y := d.covariance(d.opmath(d.in(0)), floatArg(d.named("correction"), 1))
	if y == nil {
		return nil
	}
	return d.back(d.view(y, d.N.Out().Type.Shape...))
}

func decompCorrcoef(d *Decomp) []*ir.Value {
	x := d.opmath(d.in(0))
	c := d.covariance(x, 1)
	if c == nil {
		return nil
	}
	s := d.sqrt(d.v(op.AtenDiagonalDefault(d.Builder, c)))
	y := d.div(d.div(c, d.unsqueeze(s, 1)), s)
	return d.back(d.view(d.clamp(y, -1.0, 1.0), d.N.Out().Type.Shape...))
}

func decompRenorm(d *Decomp) []*ir.Value {
	in := d.in(0)
	x := d.opmath(in)
	p, okP := d.N.Arg(1).Float()
	limit, okM := d.N.Arg(3).Float()
	if !okP || !okM {
		return nil
	}
	dim := d.dim(2, x)
	n := d.pnorm(x, p, true, otherDims(x.Type.Rank(), []int{dim})...)
	scale := d.where(d.gt(n, limit), d.div(limit, d.add(n, 1e-7)), 1.0)
	return d.back(d.mul(x, scale))
}

func decompSumToSize(d *Decomp) []*ir.Value {
	x := d.in(0)
	out := d.N.Out().Type.Shape
	lead := x.Type.Rank() - len(out)
	var dims []int
	for i, s := range x.Type.Shape {
		if i < lead || out[i-lead].IsConstValue(1) && !s.IsConstValue(1) {
			dims = append(dims, i)
		}
	}
	if len(dims) > 0 {
		x = d.sum(x, true, dims...)
	}
	return d.back(d.view(x, out...))
}

// extremeAt is max.dim or min.dim for element types that the kernel does not take.
func (d *Decomp) extremeAt(largest bool) []*ir.Value {
	x := d.in(0)
	dim := d.dim(1, x)
	pick := op.AtenArgmaxDefault
	if !largest {
		pick = op.AtenArgminDefault
	}
	i := d.v(pick(d.Builder, x, op.KW("dim", ir.Int(int64(dim))), op.KW("keepdim", ir.Bool(true))))
	v := d.v(op.AtenGatherDefault(d.Builder, x, ir.Int(int64(dim)), i))
	return []*ir.Value{d.view(v, d.N.Outs[0].Type.Shape...), d.view(i, d.N.Outs[1].Type.Shape...)}
}

func decompMaxDim(d *Decomp) []*ir.Value { return d.extremeAt(true) }

func decompMinDim(d *Decomp) []*ir.Value { return d.extremeAt(false) }

// decompProd multiplies all elements, one dimension after the other.
func decompProd(d *Decomp) []*ir.Value {
	x := d.cast(d.in(0), d.N.Out().Type.DType)
	if x.Type.Rank() == 0 {
		return one(x)
	}
	flat := d.view(x, x.Type.Numel())
	return one(d.v(op.AtenProdDimInt(d.Builder, flat, ir.Int(0))))
}

// Sorting.

// order are all elements along a dimension in order, equal ones as they came.
func (d *Decomp) order(dimArg int) (vals, places *ir.Value) {
	x := d.in(0)
	if x.Type.Rank() == 0 {
		return x, d.full(0, ops.Int64)
	}
	dim := d.dim(dimArg, x)
	s := d.sorted(x, x.Type.Shape[dim], dim, boolArg(d.named("descending")))
	return s[0], s[1]
}

// ranked is sort where the order of equal elements is to be kept: the place of an element is the number of those before it.
func (d *Decomp) ranked(dimArg int) (vals, places *ir.Value) {
	x := d.in(0)
	if x.Type.Rank() == 0 {
		return x, d.full(0, ops.Int64)
	}
	dim := d.dim(dimArg, x)
	r := x.Type.Rank()
	n, ok := x.Type.Shape[dim].IsConst()
	if !ok || n > 2048 {
		return d.order(dimArg)
	}
	y := x
	if dim != r-1 {
		y = d.swap(x, dim, r-1)
	}
	key := y
	if y.Type.DType == ops.Bool {
		key = d.cast(y, ops.Int32)
	}
	a, b := d.unsqueeze(key, r), d.unsqueeze(key, r-1) // element i against element j
	less, same := d.lt(b, a), d.eq(b, a)
	if kindOf(key.Type.DType) == 2 {
		nanA, nanB := d.isNaN(a), d.isNaN(b)
		less = d.or(less, d.and(nanA, d.not(nanB)))
		same = d.or(same, d.and(nanA, nanB))
	}
	if boolArg(d.named("descending")) {
		less = d.not(d.or(less, same))
	}
	earlier := d.lt(d.grid(sym.Const(n), 1, 2), d.grid(sym.Const(n), 0, 2))
	before := d.or(less, d.and(same, earlier))
	rank := d.sum(d.cast(before, ops.Int64), false, r)
	// The places in order are the inverse of the ranks.
	idx := d.expand(d.grid(sym.Const(n), r-1, r), y.Type.Shape...)
	places = d.v(op.AtenScatterSrc(d.Builder, d.full(0, ops.Int64, y.Type.Shape...), ir.Int(int64(r-1)), rank, idx))
	vals = d.v(op.AtenGatherDefault(d.Builder, y, ir.Int(int64(r-1)), places))
	if dim != r-1 {
		vals, places = d.swap(vals, dim, r-1), d.swap(places, dim, r-1)
	}
	return vals, places
}

func (d *Decomp) sortDim() int {
	for i := range d.N.Info().Schema.Args {
		if d.N.Info().Schema.Args[i].Name == "dim" {
			return i
		}
	}
	return -1
}

func decompSort(d *Decomp) []*ir.Value {
	v, i := d.ranked(d.sortDim())
	return []*ir.Value{v, i}
}

func decompArgsort(d *Decomp) []*ir.Value {
	_, i := d.ranked(d.sortDim())
	return one(i)
}

func decompMsort(d *Decomp) []*ir.Value {
	x := d.in(0)
	if x.Type.Rank() == 0 {
		return one(x)
	}
	if x.Type.DType == ops.Bool {
		x = d.cast(x, ops.Uint8)
	}
	return d.back(d.sorted(x, x.Type.Shape[0], 0, false)[0])
}

// decompProdDim multiplies in int64 what the kernel does not give.
func decompProdDim(d *Decomp) []*ir.Value {
	t := d.N.Out().Type.DType
	if t == ops.Int64 || !t.IsInt() && t != ops.Bool {
		return nil
	}
	x := d.cast(d.cast(d.in(0), t), ops.Int64)
	return d.back(d.v(op.AtenProdDimInt(d.Builder, x, d.N.Arg(1), op.KW("keepdim", d.N.Arg(2)))))
}
