package passes

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// typed are the tensors of a list argument in the type of the result.
func (d *Decomp) typed() []*ir.Value {
	t := d.N.Out().Type.DType
	vs := append([]*ir.Value(nil), d.N.Arg(0).Values()...)
	for i, v := range vs {
		vs[i] = d.cast(v, t)
	}
	return vs
}

// decompCat serves tensors of several types, which no kernel joins.
func decompCat(d *Decomp) []*ir.Value {
	vs := d.typed()
	mixed := false
	var kept []*ir.Value
	for i, v := range vs {
		mixed = mixed || v != d.N.Arg(0).Values()[i]
		// An empty vector fits to everything.
		if v.Type.Rank() == 1 && v.Type.Shape[0].IsConstValue(0) && d.N.Out().Type.Rank() != 1 {
			mixed = true
			continue
		}
		kept = append(kept, v)
	}
	if !mixed || len(kept) == 0 {
		return nil
	}
	k, _ := d.N.Arg(1).Int()
	return one(d.cat(wrapDim(k, d.N.Out().Type.Rank()), kept...))
}

func decompStack(d *Decomp) []*ir.Value {
	k, ok := d.N.Arg(1).Int()
	if !ok {
		return nil
	}
	dim := wrapDim(k, d.N.Out().Type.Rank())
	vs := d.typed()
	for i, v := range vs {
		vs[i] = d.unsqueeze(v, dim)
	}
	return one(d.cat(dim, vs...))
}

func decompStackAlias(d *Decomp) []*ir.Value {
	k, _ := d.N.Arg(1).Int()
	return one(d.stack(int(k), d.typed()...))
}

// atLeast views each tensor with at least n dimensions, as torch places the new ones.
func (d *Decomp) atLeast(vs []*ir.Value, n int) []*ir.Value {
	for i, v := range vs {
		s := v.Type.Shape
		switch {
		case n == 1 && len(s) == 0:
			v = d.view(v, one1)
		case n == 2 && len(s) == 0:
			v = d.view(v, one1, one1)
		case n == 2 && len(s) == 1:
			v = d.view(v, one1, s[0])
		case n == 3 && len(s) == 0:
			v = d.view(v, one1, one1, one1)
		case n == 3 && len(s) == 1:
			v = d.view(v, one1, s[0], one1)
		case n == 3 && len(s) == 2:
			v = d.view(v, s[0], s[1], one1)
		}
		vs[i] = v
	}
	return vs
}

func decompHstack(d *Decomp) []*ir.Value {
	vs := d.atLeast(d.typed(), 1)
	if vs[0].Type.Rank() == 1 {
		return one(d.cat(0, vs...))
	}
	return one(d.cat(1, vs...))
}

func decompVstack(d *Decomp) []*ir.Value { return one(d.cat(0, d.atLeast(d.typed(), 2)...)) }

func decompDstack(d *Decomp) []*ir.Value { return one(d.cat(2, d.atLeast(d.typed(), 3)...)) }

func decompColumnStack(d *Decomp) []*ir.Value {
	vs := d.typed()
	for i, v := range vs {
		if v.Type.Rank() <= 1 {
			vs[i] = d.view(v, v.Type.Numel(), one1)
		}
	}
	return one(d.cat(1, vs...))
}

// padded adds zeros (or another number) around: pairs from the last dimension on.
func (d *Decomp) padded(x *ir.Value, value ir.Arg, pads ...sym.Expr) *ir.Value {
	return d.v(op.AtenConstantPadNdDefault(d.Builder, x, ir.SymInts(pads...), op.KW("value", value)))
}

func decompBlockDiag(d *Decomp) []*ir.Value {
	vs := d.atLeast(d.typed(), 2)
	out := d.N.Out().Type
	col := sym.Const(0)
	for i, v := range vs {
		w := v.Type.Shape[1]
		vs[i] = d.padded(v, zeroOf(out.DType, 0), col, sym.Sub(out.Shape[1], sym.Add(col, w)))
		col = sym.Add(col, w)
	}
	return one(d.cat(0, vs...))
}

func decompTile(d *Decomp) []*ir.Value {
	x := d.in(0)
	reps, ok := d.N.Arg(1).ExprList()
	if !ok {
		return nil
	}
	for len(reps) < x.Type.Rank() {
		reps = append([]sym.Expr{one1}, reps...)
	}
	return one(d.v(op.AtenRepeatDefault(d.Builder, x, ir.SymInts(reps...))))
}

// decompRepeat inserts a dimension before each, expands and joins them.
func decompRepeat(d *Decomp) []*ir.Value {
	x := d.in(0)
	reps, ok := d.N.Arg(1).ExprList()
	if !ok || len(reps) < x.Type.Rank() {
		return nil
	}
	shape := x.Type.Shape
	for len(shape) < len(reps) {
		shape = insert(shape, 0, one1)
	}
	var ones, wide []sym.Expr
	for i, r := range reps {
		ones, wide = append(ones, one1, shape[i]), append(wide, r, shape[i])
	}
	return one(d.view(d.expand(d.view(x, ones...), wide...), d.N.Out().Type.Shape...))
}

func decompRepeatInterleaveSelfInt(d *Decomp) []*ir.Value {
	x := d.in(0)
	n, ok := d.N.Arg(1).Expr()
	if !ok {
		return nil
	}
	dim := 0
	if d.N.Arg(2).IsNone() {
		x = d.view(x, x.Type.Numel())
	} else {
		dim = d.dim(2, x)
	}
	s := x.Type.Shape
	y := d.expand(d.unsqueeze(x, dim+1), insert(s, dim+1, n)...)
	return one(d.view(y, d.N.Out().Type.Shape...))
}

func decompRepeatInterleaveSelfTensor(d *Decomp) []*ir.Value {
	x, reps := d.in(0), d.in(1)
	dim := 0
	if d.N.Arg(2).IsNone() {
		x = d.view(x, x.Type.Numel())
	} else {
		dim = d.dim(2, x)
	}
	size := x.Type.Shape[dim]
	if reps.Type.Rank() == 0 || !reps.Type.Shape[0].Equal(size) {
		reps = d.expand(reps, size)
	}
	// The number of places is the result's size, which the exporting process named.
	n := d.N.Out().Type.Shape[dim]
	r := d.Raw(ops.AtenRepeatInterleaveTensor, []ir.Arg{ir.Ref(reps), ir.SymInt(n)}, ir.TensorType(reps.Type.DType, n)).Out()
	y := d.take(x, dim, r)
	if !ir.EqualShape(y.Type.Shape, d.N.Out().Type.Shape) {
		return nil
	}
	return one(y)
}

func decompFliplr(d *Decomp) []*ir.Value { return one(d.flip(d.in(0), 1)) }

func decompFlipud(d *Decomp) []*ir.Value { return one(d.flip(d.in(0), 0)) }

func (d *Decomp) flip(x *ir.Value, dims ...int) *ir.Value {
	return d.v(op.AtenFlipDefault(d.Builder, x, intArgs(dims)))
}

// decompFlip picks the places from the last to the first.
func decompFlip(d *Decomp) []*ir.Value {
	x := d.in(0)
	for _, dim := range d.dimList(1, x) {
		n := x.Type.Shape[dim]
		x = d.take(x, dim, d.sub(sym.Sub(n, one1), d.arange(n, ops.Int64)))
	}
	return one(x)
}

func decompRoll(d *Decomp) []*ir.Value {
	x := d.in(0)
	shifts, ok := d.N.Arg(1).ExprList()
	if e, isOne := d.N.Arg(1).Expr(); isOne {
		shifts, ok = []sym.Expr{e}, true
	}
	if !ok {
		return nil
	}
	dims := d.dimList(2, x)
	flat := len(dims) == 0
	if flat {
		x, dims = d.view(x, x.Type.Numel()), []int{0}
	}
	if len(shifts) != len(dims) {
		return nil
	}
	for i, dim := range dims {
		n := x.Type.Shape[dim]
		if n.IsConstValue(0) {
			continue
		}
		k := sym.Mod(shifts[i], n)
		if k.IsConstValue(0) {
			continue
		}
		cut := sym.Sub(n, k)
		x = d.cat(dim, d.slice(x, dim, cut, n), d.slice(x, dim, 0, cut))
	}
	return one(d.view(x, d.N.Out().Type.Shape...))
}

func decompRot90(d *Decomp) []*ir.Value {
	x := d.in(0)
	k, ok := d.N.Arg(1).Int()
	dims := d.dimList(2, x)
	if !ok || len(dims) != 2 {
		return nil
	}
	switch (k%4 + 4) % 4 {
	case 1:
		x = d.swap(d.flip(x, dims[1]), dims[0], dims[1])
	case 2:
		x = d.flip(x, dims...)
	case 3:
		x = d.flip(d.swap(x, dims[0], dims[1]), dims[1])
	}
	return one(x)
}

func decompPad(d *Decomp) []*ir.Value {
	mode, _ := d.N.Arg(2).Str()
	return d.pad(mode, d.named("value"))
}

func decompPadEnum(d *Decomp) []*ir.Value {
	k, _ := d.N.Arg(2).Int()
	if k < 0 || k > 3 {
		return nil
	}
	return d.pad([]string{"reflect", "replicate", "circular", "constant"}[k], d.named("value"))
}

func decompPadCircular(d *Decomp) []*ir.Value { return d.pad("circular", ir.None) }

func (d *Decomp) pad(mode string, value ir.Arg) []*ir.Value {
	x := d.in(0)
	pads, ok := d.N.Arg(1).ExprList()
	if !ok || len(pads)%2 != 0 {
		return nil
	}
	if mode == "constant" {
		if value.IsNone() {
			value = zeroOf(x.Type.DType, 0)
		}
		if f, isF := value.Float(); isF && kindOf(x.Type.DType) < 2 {
			value = zeroOf(x.Type.DType, int64(f))
		}
		return one(d.padded(x, value, pads...))
	}
	if id := padKernel(mode, len(pads)/2); id != ops.Unknown {
		n := op.New(d.Builder, id, []ir.Arg{ir.Ref(x), ir.SymInts(pads...)})
		return d.outs(n)
	}
	for i := 0; i < len(pads); i += 2 {
		if x = d.padDim(x, mode, x.Type.Rank()-1-i/2, pads[i], pads[i+1]); x == nil {
			return nil
		}
	}
	return one(x)
}

func padKernel(mode string, n int) ops.ID {
	ids := map[string][]ops.ID{
		"reflect":   {ops.AtenReflectionPad1dDefault, ops.AtenReflectionPad2dDefault, ops.AtenReflectionPad3dDefault},
		"replicate": {ops.AtenReplicationPad1dDefault, ops.AtenReplicationPad2dDefault, ops.AtenReplicationPad3dDefault},
	}[mode]
	if n < 1 || n > len(ids) {
		return ops.Unknown
	}
	return ids[n-1]
}

// padDim pads one dimension by picking places inside of it.
func (d *Decomp) padDim(x *ir.Value, mode string, dim int, before, after sym.Expr) *ir.Value {
	n := x.Type.Shape[dim]
	total := sym.Add(n, sym.Add(before, after))
	if before.IsConstValue(0) && after.IsConstValue(0) {
		return x
	}
	if mode == "circular" {
		// What is cut off does not come back on the other side.
		start, end := sym.Const(0), n
		if k, ok := before.IsConst(); ok && k < 0 {
			start, before = sym.Const(-k), sym.Const(0)
		}
		if k, ok := after.IsConst(); ok && k < 0 {
			end = sym.Add(n, after)
		}
		if !start.IsConstValue(0) || !end.Equal(n) {
			x = d.slice(x, dim, start, end)
			n = x.Type.Shape[dim]
		}
	}
	i := d.sub(d.arange(total, ops.Int64), before)
	last := sym.Sub(n, one1)
	switch mode {
	case "reflect":
		// |i| on the left, mirrored at the last place on the right.
		i = d.sub(last, d.abs(d.sub(last, d.abs(i))))
	case "replicate":
		i = d.clamp(i, 0, last)
	case "circular":
		i = d.v(op.AtenRemainderScalar(d.Builder, i, ir.SymInt(n)))
	default:
		return nil
	}
	return d.take(x, dim, i)
}

func (d *Decomp) padByPlaces(mode string) []*ir.Value {
	x := d.in(0)
	pads, ok := d.N.Arg(1).ExprList()
	if !ok {
		return nil
	}
	for i := 0; i+1 < len(pads); i += 2 {
		x = d.padDim(x, mode, x.Type.Rank()-1-i/2, pads[i], pads[i+1])
	}
	return one(x)
}

func decompReflectionPad(d *Decomp) []*ir.Value { return d.padByPlaces("reflect") }

func decompReplicationPad(d *Decomp) []*ir.Value { return d.padByPlaces("replicate") }

// decompConstantPad cuts where pads are negative and joins blocks where they are not.
func decompConstantPad(d *Decomp) []*ir.Value {
	x := d.in(0)
	pads, ok := d.N.Arg(1).ExprList()
	if !ok {
		return nil
	}
	value := d.N.Arg(2)
	rest := append([]sym.Expr(nil), pads...)
	cut := false
	for i := 0; i+1 < len(pads); i += 2 {
		dim := x.Type.Rank() - 1 - i/2
		start, end := sym.Const(0), x.Type.Shape[dim]
		if k, isC := pads[i].IsConst(); isC && k < 0 {
			start, rest[i] = sym.Const(-k), sym.Const(0)
		}
		if k, isC := pads[i+1].IsConst(); isC && k < 0 {
			end, rest[i+1] = sym.Add(end, pads[i+1]), sym.Const(0)
		}
		if !start.IsConstValue(0) || !end.Equal(x.Type.Shape[dim]) {
			x, cut = d.slice(x, dim, start, end), true
		}
	}
	if !cut {
		for i := 0; i+1 < len(rest); i += 2 {
			dim := x.Type.Rank() - 1 - i/2
			var parts []*ir.Value
			block := func(n sym.Expr) {
				if !n.IsConstValue(0) {
					parts = append(parts, d.full(value, x.Type.DType, with(x.Type.Shape, dim, n)...))
				}
			}
			block(rest[i])
			parts = append(parts, x)
			block(rest[i+1])
			x = d.cat(dim, parts...)
		}
		return one(x)
	}
	for _, e := range rest {
		if !e.IsConstValue(0) {
			return one(d.padded(x, value, rest...))
		}
	}
	return one(x)
}

func decompPixelShuffle(d *Decomp) []*ir.Value {
	x := d.in(0)
	k, ok := d.N.Arg(1).Int()
	if !ok {
		return nil
	}
	r := x.Type.Rank()
	s, out, up := x.Type.Shape, d.N.Out().Type.Shape, sym.Const(k)
	y := d.view(x, join(s[:r-3], dimsOf(out[r-3], up, up, s[r-2], s[r-1]))...)
	b := r - 3
	perm := append(allDims(b), b, b+3, b+1, b+4, b+2)
	return one(d.view(d.permute(y, perm...), out...))
}

func decompPixelUnshuffle(d *Decomp) []*ir.Value {
	x := d.in(0)
	k, ok := d.N.Arg(1).Int()
	if !ok {
		return nil
	}
	r := x.Type.Rank()
	s, out, down := x.Type.Shape, d.N.Out().Type.Shape, sym.Const(k)
	y := d.view(x, join(s[:r-3], dimsOf(s[r-3], out[r-2], down, out[r-1], down))...)
	b := r - 3
	perm := append(allDims(b), b, b+2, b+4, b+1, b+3)
	return one(d.view(d.permute(y, perm...), out...))
}

func decompChannelShuffle(d *Decomp) []*ir.Value {
	x := d.in(0)
	g, ok := d.N.Arg(1).Expr()
	if !ok {
		return nil
	}
	s := x.Type.Shape
	y := d.view(x, join(s[:1], dimsOf(g, sym.FloorDiv(s[1], g)), s[2:])...)
	return one(d.view(d.swap(y, 1, 2), s...))
}

// triangle tells the places on and below (or above) a diagonal of the last two dimensions.
func (d *Decomp) triangle(x *ir.Value, lower bool) *ir.Value {
	diag, ok := d.N.Arg(1).Expr()
	if !ok {
		return nil
	}
	row, col := d.grid(ir.Dim(x, -2), 0, 2), d.grid(ir.Dim(x, -1), 1, 2)
	if !diag.IsConstValue(0) {
		row = d.add(row, diag)
	}
	if lower {
		return d.le(col, row)
	}
	return d.ge(col, row)
}

func decompTriu(d *Decomp) []*ir.Value {
	x := d.in(0)
	m := d.triangle(x, false)
	if m == nil {
		return nil
	}
	return one(d.where(m, x, zeroOf(x.Type.DType, 0)))
}

func decompTril(d *Decomp) []*ir.Value {
	x := d.in(0)
	m := d.triangle(x, true)
	if m == nil {
		return nil
	}
	return one(d.where(m, x, zeroOf(x.Type.DType, 0)))
}

func decompDiag(d *Decomp) []*ir.Value {
	x := d.in(0)
	if x.Type.Rank() == 1 {
		return one(d.v(op.AtenDiagEmbedDefault(d.Builder, x, op.KW("offset", d.N.Arg(1)))))
	}
	return one(d.v(op.AtenDiagonalDefault(d.Builder, x, op.KW("offset", d.N.Arg(1)))))
}

func decompDiagflat(d *Decomp) []*ir.Value {
	x := d.in(0)
	return one(d.v(op.AtenDiagEmbedDefault(d.Builder, d.view(x, x.Type.Numel()), op.KW("offset", d.N.Arg(1)))))
}

// onDiagonal tells the places of a square's diagonal, and for each the index along it.
func (d *Decomp) onDiagonal(rows, cols sym.Expr, off int64) (mask, index *ir.Value) {
	row, col := d.grid(rows, 0, 2), d.grid(cols, 1, 2)
	if off >= 0 {
		return d.eq(d.add(row, off), col), row
	}
	return d.eq(row, d.add(col, -off)), col
}

func decompDiagEmbed(d *Decomp) []*ir.Value {
	x := d.in(0)
	off, okO := d.N.Arg(1).Int()
	a, okA := d.N.Arg(2).Int()
	b, okB := d.N.Arg(3).Int()
	if !okO || !okA || !okB {
		return nil
	}
	r := d.N.Out().Type.Rank()
	n := ir.Dim(x, -1)
	k := off
	if k < 0 {
		k = -k
	}
	size := sym.Add(n, sym.Const(k))
	// The vector along rows, padded to the size of the square; everything off the diagonal is zero.
	mask, _ := d.onDiagonal(size, size, off)
	zero := zeroOf(x.Type.DType, 0)
	long := x
	if k > 0 {
		long = d.padded(x, zero, sym.Const(0), sym.Const(k))
	}
	if off >= 0 {
		long = d.unsqueeze(long, r-1) // an element for each row
	} else {
		long = d.unsqueeze(long, r-2)
	}
	y := d.where(mask, long, zero)
	return one(d.fromLastTwo(y, wrapDim(a, r), wrapDim(b, r)))
}

// fromLastTwo moves the last two dimensions to a and b.
func (d *Decomp) fromLastTwo(x *ir.Value, a, b int) *ir.Value {
	r := x.Type.Rank()
	perm := make([]int, r)
	next := 0
	for i := range r {
		switch i {
		case a:
			perm[i] = r - 2
		case b:
			perm[i] = r - 1
		default:
			perm[i] = next
			next++
		}
	}
	return d.permute(x, perm...)
}

func decompMeshgrid(d *Decomp) []*ir.Value {
	vs := d.N.Arg(0).Values()
	var out []*ir.Value
	mode, _ := d.named("indexing").Str()
	for i, v := range vs {
		shape := d.N.Outs[i].Type.Shape
		ones := make([]sym.Expr, len(shape))
		for k := range ones {
			ones[k] = one1
		}
		at := i
		if mode == "xy" && i < 2 && len(vs) > 1 {
			at = 1 - i
		}
		ones[at] = v.Type.Numel()
		out = append(out, d.expand(d.view(v, ones...), shape...))
	}
	return out
}

func decompCartesianProd(d *Decomp) []*ir.Value {
	vs := d.typed()
	if len(vs) == 1 {
		return one(vs[0])
	}
	var sizes []sym.Expr
	for _, v := range vs {
		sizes = append(sizes, v.Type.Shape[0])
	}
	var cols []*ir.Value
	for i, v := range vs {
		ones := make([]sym.Expr, len(vs))
		for k := range ones {
			ones[k] = one1
		}
		ones[i] = sizes[i]
		cols = append(cols, d.view(d.expand(d.view(v, ones...), sizes...), sym.Prod(sizes...)))
	}
	return one(d.stack(1, cols...))
}

func decompKron(d *Decomp) []*ir.Value {
	x, y := d.in(0), d.in(1)
	r := max(x.Type.Rank(), y.Type.Rank())
	grow := func(s []sym.Expr) []sym.Expr {
		for len(s) < r {
			s = insert(s, 0, one1)
		}
		return s
	}
	sx, sy := grow(x.Type.Shape), grow(y.Type.Shape)
	var ax, ay []sym.Expr
	for i := range r {
		ax, ay = append(ax, sx[i], one1), append(ay, one1, sy[i])
	}
	return one(d.view(d.mul(d.view(x, ax...), d.view(y, ay...)), d.N.Out().Type.Shape...))
}

func decompDiff(d *Decomp) []*ir.Value {
	x := d.in(0)
	n, ok := d.N.Arg(1).Int()
	if !ok {
		return nil
	}
	if n == 0 {
		return one(x)
	}
	dim := d.dim(2, x)
	var parts []*ir.Value
	for _, v := range []*ir.Value{d.N.In(3), x, d.N.In(4)} {
		if v != nil {
			parts = append(parts, v)
		}
	}
	if len(parts) > 1 {
		x = d.cat(dim, parts...)
	}
	for range n {
		size := x.Type.Shape[dim]
		if size.IsConstValue(0) {
			break
		}
		a, b := d.slice(x, dim, 1, size), d.slice(x, dim, 0, sym.Sub(size, one1))
		if x.Type.DType == ops.Bool {
			x = d.v(op.AtenLogicalXorDefault(d.Builder, a, b))
		} else {
			x = d.sub(a, b)
		}
	}
	return one(x)
}

// im2colPlaces are the places in the padded input of each element of a column, [kernel, blocks] along one dimension.
func (d *Decomp) im2colPlaces(blocks sym.Expr, kernel, dilation, stride int64) *ir.Value {
	at := d.mul(d.grid(sym.Const(kernel), 0, 2), dilation)
	return d.add(at, d.mul(d.grid(blocks, 1, 2), stride))
}

func (d *Decomp) foldArgs(first int) (k, dil, pad, stride []int64, ok bool) {
	var l [4][]int64
	for i := range l {
		if l[i], ok = spread(d.N.Arg(first+i), 2).IntList(); !ok || len(l[i]) != 2 {
			return nil, nil, nil, nil, false
		}
	}
	return l[0], l[1], l[2], l[3], true
}

func blocksOf(size sym.Expr, k, dil, pad, stride int64) sym.Expr {
	return sym.Add(sym.FloorDiv(sym.Add(size, sym.Const(2*pad-dil*(k-1)-1)), sym.Const(stride)), one1)
}

func decompIm2col(d *Decomp) []*ir.Value {
	x := d.in(0)
	k, dil, pad, stride, ok := d.foldArgs(1)
	if !ok {
		return nil
	}
	batched := x.Type.Rank() == 4
	if !batched {
		x = d.unsqueeze(x, 0)
	}
	s := x.Type.Shape
	bh, bw := blocksOf(s[2], k[0], dil[0], pad[0], stride[0]), blocksOf(s[3], k[1], dil[1], pad[1], stride[1])
	if pad[0] != 0 || pad[1] != 0 {
		x = d.padded(x, zeroOf(x.Type.DType, 0), ir.Consts(pad[1], pad[1], pad[0], pad[0])...)
	}
	kh, kw := sym.Const(k[0]), sym.Const(k[1])
	x = d.take(x, 2, d.view(d.im2colPlaces(bh, k[0], dil[0], stride[0]), sym.Mul(kh, bh)))
	x = d.take(x, 3, d.view(d.im2colPlaces(bw, k[1], dil[1], stride[1]), sym.Mul(kw, bw)))
	x = d.permute(d.view(x, s[0], s[1], kh, bh, kw, bw), 0, 1, 2, 4, 3, 5)
	return one(d.view(x, d.N.Out().Type.Shape...))
}

// decompCol2im adds each column back to its places, by one slice of the padded image for each place of the kernel.
func decompCol2im(d *Decomp) []*ir.Value {
	x := d.in(0)
	size, okS := spread(d.N.Arg(1), 2).IntList()
	k, dil, pad, stride, ok := d.foldArgs(2)
	if !ok || !okS {
		return nil
	}
	batched := x.Type.Rank() == 3
	if !batched {
		x = d.unsqueeze(x, 0)
	}
	n := x.Type.Shape[0]
	c := sym.FloorDiv(x.Type.Shape[1], sym.Const(k[0]*k[1]))
	h, w := size[0]+2*pad[0], size[1]+2*pad[1]
	bh := (h-dil[0]*(k[0]-1)-1)/stride[0] + 1
	bw := (w-dil[1]*(k[1]-1)-1)/stride[1] + 1
	x = d.view(x, n, c, sym.Const(k[0]*k[1]), sym.Const(bh), sym.Const(bw))
	y := d.full(zeroOf(x.Type.DType, 0), x.Type.DType, n, c, sym.Const(h), sym.Const(w))
	// Rows and columns of the image are added at places; the same place comes up once for each place of the kernel.
	for i := range k[0] {
		for j := range k[1] {
			part := d.pickAt(x, 2, i*k[1]+j)
			rows := d.add(d.mul(d.arange(sym.Const(bh), ops.Int64), stride[0]), i*dil[0])
			cols := d.add(d.mul(d.arange(sym.Const(bw), ops.Int64), stride[1]), j*dil[1])
			y = d.v(op.AtenIndexPutDefault(d.Builder, y, ir.List(ir.None, ir.None, ir.Ref(d.unsqueeze(rows, 1)), ir.Ref(cols)), part, op.KW("accumulate", ir.Bool(true))))
		}
	}
	if pad[0] != 0 || pad[1] != 0 {
		y = d.slice(d.slice(y, 2, pad[0], pad[0]+size[0]), 3, pad[1], pad[1]+size[1])
	}
	return one(d.view(y, d.N.Out().Type.Shape...))
}

func decompPadSequence(d *Decomp) []*ir.Value {
	vs := d.typed()
	out := d.N.Out().Type.Shape
	first := boolArg(d.named("batch_first"))
	side, _ := d.named("padding_side").Str()
	dim := 0
	n := out[0]
	if first {
		n = out[1]
	} else {
		dim = 1
	}
	for i, v := range vs {
		extra := sym.Sub(n, v.Type.Shape[0])
		pads := make([]sym.Expr, 2*v.Type.Rank())
		if side == "left" {
			pads[len(pads)-2] = extra
		} else {
			pads[len(pads)-1] = extra
		}
		vs[i] = d.padded(v, d.named("padding_value"), pads...)
	}
	return one(d.stack(dim, vs...))
}

func decompCross(d *Decomp) []*ir.Value {
	t := d.N.Out().Type
	x, y := d.expand(d.cast(d.in(0), t.DType), t.Shape...), d.expand(d.cast(d.in(1), t.DType), t.Shape...)
	dim := -1
	if k, ok := d.named("dim").Int(); ok {
		dim = wrapDim(k, len(t.Shape))
	} else {
		for i, s := range t.Shape {
			if s.IsConstValue(3) {
				dim = i
				break
			}
		}
	}
	if dim < 0 {
		return nil
	}
	at := func(v *ir.Value, i int) *ir.Value { return d.slice(v, dim, i, i+1) }
	var parts []*ir.Value
	for i := range 3 {
		a, b := (i+1)%3, (i+2)%3
		parts = append(parts, d.sub(d.mul(at(x, a), at(y, b)), d.mul(at(x, b), at(y, a))))
	}
	return one(d.cat(dim, parts...))
}

func decompVander(d *Decomp) []*ir.Value {
	x := d.in(0)
	n, ok := ir.Dim(d.N.Out(), -1).IsConst()
	if !ok || n > 4096 {
		return nil
	}
	var cols []*ir.Value
	p := d.full(zeroOf(d.N.Out().Type.DType, 1), d.N.Out().Type.DType, x.Type.Shape...)
	for range n {
		cols = append(cols, p)
		p = d.cast(d.mul(p, x), d.N.Out().Type.DType)
	}
	if !boolArg(d.named("increasing")) {
		for i, j := 0, len(cols)-1; i < j; i, j = i+1, j-1 {
			cols[i], cols[j] = cols[j], cols[i]
		}
	}
	return one(d.stack(1, cols...))
}

func decompCopy(d *Decomp) []*ir.Value {
	t := d.N.Out().Type
	return one(d.expand(d.cast(d.in(1), t.DType), t.Shape...))
}

// decompUnfold picks windows of a dimension.
func decompUnfold(d *Decomp) []*ir.Value {
	x := d.in(0)
	if x.Type.Rank() == 0 {
		return one(d.view(x, d.N.Out().Type.Shape...))
	}
	dim := d.dim(1, x)
	size, okS := d.N.Arg(2).Expr()
	step, okT := d.N.Arg(3).Expr()
	if !okS || !okT {
		return nil
	}
	n := d.N.Out().Type.Shape[dim]
	at := d.add(d.mul(d.grid(n, 0, 2), step), d.grid(size, 1, 2))
	y := d.take(x, dim, d.view(at, sym.Mul(n, size)))
	y = d.view(y, join(x.Type.Shape[:dim], dimsOf(n, size), x.Type.Shape[dim+1:])...)
	r := y.Type.Rank()
	perm := append(otherDims(r, []int{dim + 1}), dim+1)
	return one(d.permute(y, perm...))
}

// decompCombinations reads the elements of each place of the rows.
func decompCombinations(d *Decomp) []*ir.Value {
	x := d.in(0)
	r, okR := d.N.Arg(1).Int()
	size, okN := x.Type.Numel().IsConst()
	rows, okO := d.N.Out().Type.Shape[0].IsConst()
	if !okR || !okN || !okO || r < 1 || rows > 1<<16 || rows < 1 {
		return nil
	}
	idx := make([]float64, 0, rows*r)
	pick := make([]int64, r)
	step := int64(1)
	if boolArg(d.N.Arg(2)) {
		step = 0
	}
	var choose func(k, from int64)
	choose = func(k, from int64) {
		if k == r {
			for _, p := range pick {
				idx = append(idx, float64(p))
			}
			return
		}
		for i := from; i < size; i++ {
			pick[k] = i
			choose(k+1, i+step)
		}
	}
	choose(0, 0)
	at, ok := d.constant("combinations", ops.Int64, []int64{rows * r}, idx)
	if !ok {
		return nil
	}
	return one(d.view(d.take(x, 0, at), d.N.Out().Type.Shape...))
}
