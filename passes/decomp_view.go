package passes

import (
	"cmp"
	"slices"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

func decompIdentity(d *Decomp) []*ir.Value { return one(d.in(0)) }

func decompClone(d *Decomp) []*ir.Value { return one(d.in(0)) }

func decompContiguous(d *Decomp) []*ir.Value { return one(d.in(0)) }

func decompTo(d *Decomp) []*ir.Value { return d.back(d.in(0)) }

func decompTypeAs(d *Decomp) []*ir.Value { return d.back(d.in(0)) }

func decompAutocast(d *Decomp) []*ir.Value { return d.back(d.in(0)) }

func decompToCpu(d *Decomp) []*ir.Value { return d.N.Arg(0).Values() }

// reshaped is every view of shape: the result's type says the shape.
func (d *Decomp) reshaped() []*ir.Value { return one(d.view(d.in(0), d.N.Out().Type.Shape...)) }

func decompUnsafeView(d *Decomp) []*ir.Value   { return d.reshaped() }
func decompReshape(d *Decomp) []*ir.Value      { return d.reshaped() }
func decompReshapeAlias(d *Decomp) []*ir.Value { return d.reshaped() }
func decompViewAs(d *Decomp) []*ir.Value       { return d.reshaped() }
func decompFlatten(d *Decomp) []*ir.Value      { return d.reshaped() }
func decompRavel(d *Decomp) []*ir.Value        { return d.reshaped() }
func decompUnflatten(d *Decomp) []*ir.Value    { return d.reshaped() }
func decompSqueeze(d *Decomp) []*ir.Value      { return d.reshaped() }

func decompAtleast(d *Decomp) []*ir.Value {
	if d.N.Arg(0).Kind() != ir.ArgList {
		return d.reshaped()
	}
	var out []*ir.Value
	for i, v := range d.N.Arg(0).Values() {
		out = append(out, d.view(v, d.N.Outs[i].Type.Shape...))
	}
	return out
}

func (d *Decomp) expanded() []*ir.Value { return one(d.expand(d.in(0), d.N.Out().Type.Shape...)) }

func decompExpandAs(d *Decomp) []*ir.Value    { return d.expanded() }
func decompBroadcastTo(d *Decomp) []*ir.Value { return d.expanded() }

func decompBroadcastTensors(d *Decomp) []*ir.Value {
	var out []*ir.Value
	for i, v := range d.N.Arg(0).Values() {
		out = append(out, d.expand(v, d.N.Outs[i].Type.Shape...))
	}
	return out
}

func (d *Decomp) permuted() []*ir.Value {
	perm, ok := permOf(d.N)
	if !ok {
		return nil
	}
	return one(d.permute(d.in(0), perm...))
}

func decompNumpyT(d *Decomp) []*ir.Value   { return d.permuted() }
func decompMT(d *Decomp) []*ir.Value       { return d.permuted() }
func decompMovedim(d *Decomp) []*ir.Value  { return d.permuted() }
func decompSwapaxes(d *Decomp) []*ir.Value { return d.permuted() }

func decompMH(d *Decomp) []*ir.Value {
	vs := d.permuted()
	if vs != nil && vs[0].Type.DType.IsComplex() {
		vs[0] = d.v(op.AtenUnderConjPhysicalDefault(d.Builder, vs[0]))
	}
	return vs
}

func decompNarrow(d *Decomp) []*ir.Value {
	dim, start, end, _, ok := sliceOf(d.N, 0)
	if !ok {
		return nil
	}
	return one(d.slice(d.in(0), dim, start, end))
}

// splitInto divides a dimension into the sizes that the results have.
func (d *Decomp) splitInto(dim int) []*ir.Value {
	sizes := make([]sym.Expr, len(d.N.Outs))
	for i, o := range d.N.Outs {
		sizes[i] = o.Type.Shape[dim]
	}
	if len(sizes) == 1 {
		return one(d.in(0))
	}
	return d.outs(op.AtenSplitWithSizesDefault(d.Builder, d.in(0), ir.SymInts(sizes...), op.KW("dim", ir.Int(int64(dim)))))
}

func (d *Decomp) splitAtDim() []*ir.Value {
	k, ok := d.named("dim").Int()
	if !ok {
		return nil
	}
	return d.splitInto(wrapDim(k, d.in(0).Type.Rank()))
}

func decompSplit(d *Decomp) []*ir.Value       { return d.splitAtDim() }
func decompSplitSizes(d *Decomp) []*ir.Value  { return d.splitAtDim() }
func decompChunk(d *Decomp) []*ir.Value       { return d.splitAtDim() }
func decompTensorSplit(d *Decomp) []*ir.Value { return d.splitAtDim() }

func decompXsplit(d *Decomp) []*ir.Value {
	dim, _, _, _, ok := sliceOf(d.N, 0)
	if !ok {
		return nil
	}
	return d.splitInto(dim)
}

func decompSplitWithSizes(d *Decomp) []*ir.Value {
	var out []*ir.Value
	for i := range d.N.Outs {
		dim, start, end, _, ok := sliceOf(d.N, i)
		if !ok {
			return nil
		}
		out = append(out, d.slice(d.in(0), dim, start, end))
	}
	return out
}

func decompUnbind(d *Decomp) []*ir.Value {
	var out []*ir.Value
	for i := range d.N.Outs {
		dim, index, ok := selectOf(d.N, i)
		if !ok {
			return nil
		}
		out = append(out, d.pickAt(d.in(0), dim, index))
	}
	return out
}

func decompLinalgDiagonal(d *Decomp) []*ir.Value {
	return one(d.v(op.AtenDiagonalDefault(d.Builder, d.in(0), op.KW("offset", d.named("offset")), op.KW("dim1", d.named("dim1")), op.KW("dim2", d.named("dim2")))))
}

func decompTranspose(d *Decomp) []*ir.Value { return d.permuted() }

func decompSqueezeDims(d *Decomp) []*ir.Value { return d.reshaped() }

func decompUnsqueeze(d *Decomp) []*ir.Value { return d.reshaped() }

// decompAsStrided picks elements of the flat input by places that the strides give.
// inMemory is x with its dimensions in the order that they have in memory, nil where they leave gaps or overlap.
func (d *Decomp) inMemory(x *ir.Value) *ir.Value {
	if x.Type.Contiguous() {
		return x
	}
	strides, okT := ir.ConstInts(x.Type.Strides)
	sizes, okS := x.Type.Sizes()
	if !okT || !okS {
		return nil
	}
	perm := allDims(len(sizes))
	slices.SortStableFunc(perm, func(a, b int) int { return cmp.Compare(strides[b], strides[a]) })
	next := int64(1)
	for i := len(perm) - 1; i >= 0; i-- {
		if k := perm[i]; sizes[k] != 1 {
			if strides[k] != next {
				return nil
			}
			next *= sizes[k]
		}
	}
	return d.permute(x, perm...)
}

func decompAsStrided(d *Decomp) []*ir.Value {
	x := d.inMemory(d.in(0))
	if x == nil {
		return nil
	}
	return d.strided(x)
}

// strided is what as_strided shows of x, whose elements lie in memory in order.
func (d *Decomp) strided(x *ir.Value) []*ir.Value {
	sizes, st, off, ok := d.stridedArgs()
	if !ok {
		return nil
	}
	return one(d.view(d.take(d.view(x, x.Type.Numel()), 0, d.places(sizes, st, off)), sizes...))
}

func (d *Decomp) stridedArgs() (sizes, st []sym.Expr, off sym.Expr, ok bool) {
	sizes, okS := d.named("size").ExprList()
	st, okT := d.named("stride").ExprList()
	if e, isExpr := d.named("storage_offset").Expr(); isExpr {
		off = e
	}
	return sizes, st, off, okS && okT && len(sizes) == len(st)
}

// places is the flat list of offsets of a strided tensor's elements.
func (d *Decomp) places(sizes, strides []sym.Expr, off sym.Expr) *ir.Value {
	n := sym.Const(1)
	var sum *ir.Value
	for i, s := range sizes {
		n = sym.Mul(n, s)
		p := d.grid(s, i, len(sizes))
		if !strides[i].IsConstValue(1) {
			p = d.mul(p, strides[i])
		}
		if sum == nil {
			sum = p
		} else {
			sum = d.add(sum, p)
		}
	}
	if sum == nil {
		sum = d.full(0, ops.Int64)
	}
	if !off.IsConstValue(0) {
		sum = d.add(sum, off)
	}
	return d.view(d.expand(sum, sizes...), n)
}

func decompAsStridedScatter(d *Decomp) []*ir.Value {
	if !d.in(0).Type.Contiguous() {
		return nil
	}
	return d.stridedWrite(d.in(0), d.in(1))
}

// stridedWrite is x with src in the places that as_strided shows.
func (d *Decomp) stridedWrite(x, src *ir.Value) []*ir.Value {
	sizes, st, off, ok := d.stridedArgs()
	if !ok {
		return nil
	}
	p := d.places(sizes, st, off)
	y := d.v(op.AtenIndexPutDefault(d.Builder, d.view(x, x.Type.Numel()), ir.Refs(p), d.view(src, src.Type.Numel())))
	return one(d.view(y, x.Type.Shape...))
}

func decompDiagonal(d *Decomp) []*ir.Value {
	x := d.in(0)
	r := x.Type.Rank()
	off, okO := d.named("offset").Int()
	a, okA := d.named("dim1").Int()
	b, okB := d.named("dim2").Int()
	if !okO || !okA || !okB || r < 2 {
		return nil
	}
	y := d.lastTwo(x, wrapDim(a, r), wrapDim(b, r))
	// Flat places of the diagonal within the last two dimensions.
	rows, cols := ir.Dim(y, -2), ir.Dim(y, -1)
	n := ir.Dim(d.N.Out(), -1)
	start := sym.Const(off)
	if off < 0 {
		start = sym.Mul(sym.Const(-off), cols)
	}
	idx := d.add(d.mul(d.arange(n, ops.Int64), sym.Add(cols, one1)), start)
	lead := y.Type.Shape[:r-2]
	flat := d.view(y, join(lead, dimsOf(sym.Mul(rows, cols)))...)
	return one(d.take(flat, r-2, idx))
}

// lastTwo moves dimensions a and b to the end.
func (d *Decomp) lastTwo(x *ir.Value, a, b int) *ir.Value {
	var perm []int
	for i := range x.Type.Rank() {
		if i != a && i != b {
			perm = append(perm, i)
		}
	}
	return d.permute(x, append(perm, a, b)...)
}
