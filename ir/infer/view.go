package infer

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// inferAlias is the rule of operators that give their input back.
func inferAlias(c *Call) ([]ir.Type, error) { return one(c.x()) }

// viewSize fills in the one size of -1 so that the number of elements stays.
func (c *Call) viewSize(x ir.Type, size []sym.Expr) []sym.Expr {
	n := x.Numel()
	hole := -1
	rest := sym.Const(1)
	out := make([]sym.Expr, len(size))
	for i, e := range size {
		if e.IsConstValue(-1) {
			if hole >= 0 {
				failf("more than one size of -1 in %s", shapeString(size))
			}
			hole = i
			continue
		}
		if c.never(sym.Ge(e, sym.Const(0))) {
			failf("size %s of dimension %d is negative", e, i)
		}
		out[i] = e
		rest = sym.Mul(rest, e)
	}
	if hole < 0 {
		if c.differ(n, rest) {
			failf("shape %s has %s elements, the input %s has %s", shapeString(size), rest, shapeString(x.Shape), n)
		}
		return out
	}
	if rest.IsConstValue(0) {
		failf("the size of -1 in %s cannot be told: there are no elements", shapeString(size))
	}
	q := sym.FloorDiv(n, rest)
	if r := sym.Mod(n, rest); c.never(sym.Eq(r, sym.Const(0))) {
		failf("shape %s does not fit the %s elements of %s", shapeString(size), n, shapeString(x.Shape))
	}
	out[hole] = c.simp(q)
	return out
}

// view is x under another shape. Where PyTorch would refuse, because the dimensions are not adjacent in memory, the result
// is contiguous: a traced program has no such view, and those that passes make stand for values, which have no memory.
// view is x in another shape. Beyond the first stage views are values and a pass may have changed the input's layout: what
// cannot be a view of it then is a contiguous copy.
func (c *Call) view(x ir.Type, shape []sym.Expr) ir.Type {
	st, ok := c.viewStrides(x, shape)
	if !ok && c.G.Stage > ops.StageAten {
		return ir.Type{DType: x.DType, Shape: shape, Quant: x.Quant}
	}
	if !ok {
		st = nil
	}
	return ir.Type{DType: x.DType, Shape: shape, Strides: st, Quant: x.Quant}
}

func inferView(c *Call) ([]ir.Type, error) {
	x := c.x()
	return one(c.view(x, c.viewSize(x, c.exprs("size"))))
}

// inferUnsafeView is the rule of views whose result is fresh.
func inferUnsafeView(c *Call) ([]ir.Type, error) {
	x := c.x()
	shape := c.viewSize(x, c.exprs(c.first("size", "shape")))
	if st, ok := c.viewStrides(x, shape); ok {
		return one(ir.Type{DType: x.DType, Shape: shape, Strides: st})
	}
	return one(ir.TensorType(x.DType, shape...))
}

func (c *Call) reshape(x ir.Type, shape []sym.Expr) ir.Type {
	if st, ok := c.viewStrides(x, shape); ok {
		return ir.Type{DType: x.DType, Shape: shape, Strides: st}
	}
	return ir.TensorType(x.DType, shape...)
}

func inferReshape(c *Call) ([]ir.Type, error) {
	x := c.x()
	return one(c.reshape(x, c.viewSize(x, c.exprs("shape"))))
}

func inferReshapeAlias(c *Call) ([]ir.Type, error) {
	return one(ir.Type{DType: c.x().DType, Shape: c.exprs("size"), Strides: c.exprs("stride")})
}

func inferViewAs(c *Call) ([]ir.Type, error) {
	x, o := c.x(), c.tensor("other")
	c.viewSize(x, o.Shape)
	return one(c.reshape(x, o.Shape))
}

// inferViewDtype: the last dimension grows or shrinks with the element size.
func inferViewDtype(c *Call) ([]ir.Type, error) {
	x := c.x()
	d := c.dtypeOr("dtype", x.DType)
	from, to := x.DType.Size(), d.Size()
	t := ir.Type{DType: d, Shape: append([]sym.Expr(nil), x.Shape...)}
	if from == to {
		t.Strides = x.Strides
		return one(t)
	}
	n := x.Rank()
	if n == 0 {
		failf("a tensor without dimensions cannot be seen as %s: the element sizes differ", d)
	}
	st := append([]sym.Expr(nil), strides(x)...)
	if !c.is(st[n-1], 1) {
		failf("the last dimension has to be contiguous to be seen as %s", d)
	}
	if from > to {
		k := sym.Const(from / to)
		t.Shape[n-1] = sym.Mul(x.Shape[n-1], k)
		for i := range n - 1 {
			st[i] = sym.Mul(st[i], k)
		}
	} else {
		k := sym.Const(to / from)
		if c.never(sym.Eq(sym.Mod(x.Shape[n-1], k), sym.Const(0))) {
			failf("the last dimension of %s elements cannot be seen as %s: it is no multiple of %s", x.Shape[n-1], d, k)
		}
		t.Shape[n-1] = c.simp(sym.FloorDiv(x.Shape[n-1], k))
		for i := range n - 1 {
			st[i] = c.simp(sym.FloorDiv(st[i], k))
		}
	}
	if x.Strides != nil {
		t.Strides = st
	}
	return one(t)
}

func inferFlatten(c *Call) ([]ir.Type, error) {
	x := c.x()
	s, e := c.dim("start_dim", x.Rank()), c.dim("end_dim", x.Rank())
	if s > e {
		failf("start_dim %d comes after end_dim %d", s, e)
	}
	if x.Rank() == 0 {
		return one(ir.TensorType(x.DType, sym.Const(1)))
	}
	if s == e {
		return one(x)
	}
	shape := append([]sym.Expr(nil), x.Shape[:s]...)
	shape = append(shape, sym.Prod(x.Shape[s:e+1]...))
	shape = append(shape, x.Shape[e+1:]...)
	return one(c.reshape(x, shape))
}

func inferRavel(c *Call) ([]ir.Type, error) {
	x := c.x()
	return one(ir.TensorType(x.DType, x.Numel()))
}

func inferUnflatten(c *Call) ([]ir.Type, error) {
	x := c.x()
	d := c.dim("dim", x.Rank())
	if x.Rank() == 0 {
		failf("a tensor without dimensions has none to split")
	}
	part := c.viewSize(ir.TensorType(x.DType, x.Shape[d]), c.exprs("sizes"))
	shape := append([]sym.Expr(nil), x.Shape[:d]...)
	shape = append(shape, part...)
	shape = append(shape, x.Shape[d+1:]...)
	return one(c.view(x, shape))
}

// without is t without the dimensions that cut names.
func without(t ir.Type, cut func(i int) bool) ir.Type {
	st := t.Strides
	r := ir.Type{DType: t.DType, Quant: t.Quant}
	for i, e := range t.Shape {
		if cut(i) {
			continue
		}
		r.Shape = append(r.Shape, e)
		if st != nil {
			r.Strides = append(r.Strides, st[i])
		}
	}
	return r
}

func inferSqueeze(c *Call) ([]ir.Type, error) {
	x := c.x()
	return one(without(x, func(i int) bool { return c.is(x.Shape[i], 1) }))
}

func inferSqueezeDims(c *Call) ([]ir.Type, error) {
	x := c.x()
	ds, _ := c.dims("dim", x.Rank())
	return one(without(x, func(i int) bool {
		for _, d := range ds {
			if d == i {
				return c.is(x.Shape[i], 1)
			}
		}
		return false
	}))
}

func inferUnsqueeze(c *Call) ([]ir.Type, error) {
	x := c.x()
	d := wrapDim("dim", c.int("dim"), x.Rank()+1)
	return one(unsqueezed(x, d))
}

func unsqueezed(x ir.Type, d int) ir.Type {
	t := ir.Type{DType: x.DType, Quant: x.Quant, Shape: inserted(x.Shape, d, sym.Const(1))}
	if x.Strides != nil {
		s := sym.Const(1)
		if d < x.Rank() {
			s = sym.Mul(x.Shape[d], x.Strides[d])
		}
		t.Strides = inserted(x.Strides, d, s)
	}
	return t
}

func inserted(es []sym.Expr, at int, e sym.Expr) []sym.Expr {
	r := make([]sym.Expr, 0, len(es)+1)
	r = append(r, es[:at]...)
	r = append(r, e)
	return append(r, es[at:]...)
}

// expandTo is x expanded to a shape; -1 keeps a size.
func (c *Call) expandTo(x ir.Type, size []sym.Expr) ir.Type {
	off := len(size) - x.Rank()
	if off < 0 {
		failf("%d sizes are fewer than the %d dimensions of the input", len(size), x.Rank())
	}
	st := strides(x)
	t := ir.Type{DType: x.DType, Shape: make([]sym.Expr, len(size)), Strides: make([]sym.Expr, len(size)), Quant: x.Quant}
	for i, e := range size {
		keep := e.IsConstValue(-1)
		if i < off {
			if keep {
				failf("size -1 of dimension %d, which the input does not have", i)
			}
			t.Shape[i] = e
			continue
		}
		have := x.Shape[i-off]
		switch {
		case keep:
			t.Shape[i], t.Strides[i] = have, st[i-off]
		case have.Equal(e) || !c.is(have, 1):
			if c.differ(have, e) {
				failf("size %s of dimension %d cannot be expanded to %s", have, i, e)
			}
			t.Shape[i], t.Strides[i] = e, st[i-off]
		case c.is(e, 1):
			t.Shape[i], t.Strides[i] = e, st[i-off]
		default:
			t.Shape[i] = e
		}
	}
	// New and repeated dimensions have a stride of zero; leading ones of size one keep what comes after them.
	for i := off - 1; i >= 0; i-- {
		if c.is(t.Shape[i], 1) {
			t.Strides[i] = sym.Const(1)
			if i+1 < len(size) {
				t.Strides[i] = sym.Mul(t.Shape[i+1], t.Strides[i+1])
			}
		}
	}
	if t.NormStrides() == nil {
		t.Strides = nil
	}
	return t
}

func inferExpand(c *Call) ([]ir.Type, error) { return one(c.expandTo(c.x(), c.exprs("size"))) }

func inferExpandAs(c *Call) ([]ir.Type, error) {
	return one(c.expandTo(c.x(), c.tensor("other").Shape))
}

func inferBroadcastTensors(c *Call) ([]ir.Type, error) {
	ts := c.tensors("tensors")
	shapes := make([][]sym.Expr, len(ts))
	for i, t := range ts {
		shapes[i] = t.Shape
	}
	shape := c.broadcast(shapes...)
	out := make([]ir.Type, len(ts))
	for i, t := range ts {
		out[i] = c.expandTo(t, shape)
	}
	return out, nil
}

// permuted is x with its dimensions in another order.
func permuted(x ir.Type, order []int) ir.Type {
	st := strides(x)
	t := ir.Type{DType: x.DType, Quant: x.Quant, Shape: make([]sym.Expr, len(order)), Strides: make([]sym.Expr, len(order))}
	for i, d := range order {
		t.Shape[i], t.Strides[i] = x.Shape[d], st[d]
	}
	if t.NormStrides() == nil {
		t.Strides = nil
	}
	return t
}

func inferPermute(c *Call) ([]ir.Type, error) {
	x := c.x()
	ds, _ := c.dims("dims", x.Rank())
	if len(ds) != x.Rank() {
		failf("dims has %d elements, the input has %d dimensions", len(ds), x.Rank())
	}
	return one(permuted(x, ds))
}

func inferTranspose(c *Call) ([]ir.Type, error) {
	x := c.x()
	a, b := c.dim(c.first("dim0", "axis0"), x.Rank()), c.dim(c.first("dim1", "axis1"), x.Rank())
	if x.Rank() == 0 {
		return one(x)
	}
	return one(swapped(x, a, b))
}

func swapped(x ir.Type, a, b int) ir.Type {
	o := identity(x.Rank())
	o[a], o[b] = o[b], o[a]
	return permuted(x, o)
}

func inferT(c *Call) ([]ir.Type, error) {
	x := c.x()
	rank("self", x, 0, 1, 2)
	if x.Rank() < 2 {
		return one(x)
	}
	return one(swapped(x, 0, 1))
}

func inferReverseDims(c *Call) ([]ir.Type, error) {
	x := c.x()
	o := identity(x.Rank())
	for i := range o {
		o[i] = len(o) - 1 - i
	}
	return one(permuted(x, o))
}

func inferMT(c *Call) ([]ir.Type, error) {
	x := c.x()
	if x.Rank() == 0 {
		return one(x)
	}
	if x.Rank() < 2 {
		failf("a matrix is needed, self has %d dimensions", x.Rank())
	}
	return one(swapped(x, x.Rank()-2, x.Rank()-1))
}

func inferMovedim(c *Call) ([]ir.Type, error) {
	x := c.x()
	src, _ := c.dims("source", x.Rank())
	dst, _ := c.dims("destination", x.Rank())
	if len(src) != len(dst) {
		failf("source names %d dimensions, destination %d", len(src), len(dst))
	}
	if x.Rank() == 0 {
		return one(x)
	}
	order := make([]int, x.Rank())
	from, to := make([]bool, x.Rank()), make([]bool, x.Rank())
	for i := range src {
		order[dst[i]] = src[i]
		from[src[i]], to[dst[i]] = true, true
	}
	k := 0
	for i := range order {
		if to[i] {
			continue
		}
		for from[k] {
			k++
		}
		order[i] = k
		k++
	}
	return one(permuted(x, order))
}

// clampIndex is an index of a slice made non-negative and at most n, as Python does. Where the ranges leave it open, the
// sizes at export decide, as they did for torch.
func (c *Call) clampIndex(e, n sym.Expr) sym.Expr {
	if k, ok := e.IsConst(); ok && k >= 1<<62 {
		return n
	}
	zero := sym.Const(0)
	if neg, known := c.decide(sym.Lt(e, zero)); known && neg {
		e = sym.Add(e, n)
	} else if !known {
		e = sym.Where(sym.Lt(e, zero), sym.Add(e, n), e)
	}
	return c.limit(e, zero, n)
}

// limit is e within [low, high].
func (c *Call) limit(e, low, high sym.Expr) sym.Expr {
	switch v, known := c.decide(sym.Lt(e, low)); {
	case known && v:
		return low
	case !known:
		e = sym.Max(e, low)
	}
	switch v, known := c.decide(sym.Gt(e, high)); {
	case known && v:
		return high
	case !known:
		e = sym.Min(e, high)
	}
	return c.simp(e)
}

// sliceOf is the type of a slice.
func (c *Call) sliceOf(x ir.Type, d int, start, end, step sym.Expr) ir.Type {
	k, ok := step.IsConst()
	if !ok || k < 1 {
		failf("step is %s, a positive constant is needed", step)
	}
	n := x.Shape[d]
	s, e := c.clampIndex(start, n), c.clampIndex(end, n)
	length := sym.Sub(e, s)
	switch neg, known := c.decide(sym.Lt(length, sym.Const(0))); {
	case known && neg:
		length = sym.Const(0)
	case !known:
		length = sym.Max(length, sym.Const(0))
	}
	if k != 1 {
		length = sym.FloorDiv(sym.Add(length, sym.Const(k-1)), step)
	}
	length = c.simp(length)
	t := ir.Type{DType: x.DType, Shape: append([]sym.Expr(nil), x.Shape...), Quant: x.Quant}
	t.Shape[d] = length
	if c.eq(length, n) && k == 1 {
		t.Strides = x.Strides
		return t
	}
	t.Strides = append([]sym.Expr(nil), strides(x)...)
	t.Strides[d] = sym.Mul(t.Strides[d], step)
	if t.NormStrides() == nil {
		t.Strides = nil
	}
	return t
}

func inferSlice(c *Call) ([]ir.Type, error) {
	x := c.x()
	if x.Rank() == 0 {
		failf("a tensor without dimensions cannot be sliced")
	}
	d := c.dim("dim", x.Rank())
	start, ok := c.optExpr("start")
	if !ok {
		start = sym.Const(0)
	}
	end, ok := c.optExpr("end")
	if !ok {
		end = x.Shape[d]
	}
	return one(c.sliceOf(x, d, start, end, c.expr("step")))
}

func inferSelect(c *Call) ([]ir.Type, error) {
	x := c.x()
	if x.Rank() == 0 {
		failf("a tensor without dimensions has none to select from")
	}
	d := c.dim("dim", x.Rank())
	i, n := c.expr("index"), x.Shape[d]
	if c.never(sym.Lt(i, n)) || c.never(sym.Ge(i, sym.Neg(n))) {
		failf("index %s is out of range for dimension %d of size %s", i, d, n)
	}
	t := ir.Type{DType: x.DType, Strides: strides(x), Shape: x.Shape, Quant: x.Quant}
	t = without(t, func(k int) bool { return k == d })
	if t.NormStrides() == nil {
		t.Strides = nil
	}
	return one(t)
}

func (c *Call) narrow(start sym.Expr) ([]ir.Type, error) {
	x := c.x()
	if x.Rank() == 0 {
		failf("a tensor without dimensions cannot be narrowed")
	}
	d := c.dim("dim", x.Rank())
	n, l := x.Shape[d], c.expr("length")
	if c.never(sym.Ge(l, sym.Const(0))) {
		failf("length is %s", l)
	}
	if c.holds(sym.Lt(start, sym.Const(0))) {
		start = sym.Add(start, n)
	}
	if c.never(sym.Le(sym.Add(start, l), n)) {
		failf("%s elements from %s exceed dimension %d of size %s", l, start, d, n)
	}
	t := c.sliceOf(x, d, start, sym.Add(start, l), sym.Const(1))
	t.Shape[d] = l
	return one(t)
}

func inferNarrow(c *Call) ([]ir.Type, error) { return c.narrow(c.expr("start")) }

func inferNarrowTensor(c *Call) ([]ir.Type, error) { return c.narrow(c.fresh(sym.NoRange)) }

// parts are consecutive slices of x of the given sizes.
func (c *Call) parts(x ir.Type, d int, sizes []sym.Expr, viewed bool) []ir.Type {
	out := make([]ir.Type, len(sizes))
	for i, s := range sizes {
		t := ir.Type{DType: x.DType, Shape: append([]sym.Expr(nil), x.Shape...)}
		t.Shape[d] = s
		if viewed {
			t.Strides = strides(x)
			if t.NormStrides() == nil {
				t.Strides = nil
			}
		}
		out[i] = t
	}
	return out
}

// equalParts are the sizes of chunks of size s, the last may be smaller.
func (c *Call) equalParts(n, s sym.Expr) []sym.Expr {
	if c.never(sym.Ge(s, sym.Const(0))) {
		failf("a chunk of size %s", s)
	}
	if n.IsConstValue(0) {
		return []sym.Expr{n}
	}
	if c.is(s, 0) {
		failf("chunks of no elements cannot split a dimension of size %s", n)
	}
	k, ok := c.constOf(sym.CeilDiv(n, s))
	if !ok {
		v, err := sym.Eval(sym.CeilDiv(n, s), c.Syms())
		if err != nil {
			failf("the number of chunks of size %s in a dimension of size %s cannot be told", s, n)
		}
		k = v
	}
	if k > 1<<20 {
		failf("%d chunks", k)
	}
	out := make([]sym.Expr, k)
	for i := range out {
		out[i] = s
	}
	if k > 0 {
		out[k-1] = c.simp(sym.Sub(n, sym.Mul(s, sym.Const(k-1))))
	}
	return out
}

func (c *Call) splitDim(x ir.Type) int {
	if x.Rank() == 0 {
		failf("a tensor without dimensions cannot be split")
	}
	return c.dim("dim", x.Rank())
}

func inferSplit(c *Call) ([]ir.Type, error) {
	x := c.x()
	d := c.splitDim(x)
	return c.parts(x, d, c.equalParts(x.Shape[d], c.expr("split_size")), true), nil
}

func inferSplitSizes(c *Call) ([]ir.Type, error) {
	x := c.x()
	d := c.splitDim(x)
	sizes := c.exprs(c.first("split_sizes", "split_size"))
	if c.differ(sym.Sum(sizes...), x.Shape[d]) {
		failf("the sizes %s sum up to %s, dimension %d has %s elements", shapeString(sizes), sym.Sum(sizes...), d, x.Shape[d])
	}
	return c.parts(x, d, sizes, true), nil
}

func inferChunk(c *Call) ([]ir.Type, error) {
	x := c.x()
	d := c.splitDim(x)
	k := c.int("chunks")
	if k < 1 {
		failf("chunks is %d", k)
	}
	n := x.Shape[d]
	s := c.simp(sym.CeilDiv(n, sym.Const(k)))
	if s.IsConstValue(0) {
		// A dimension without elements still gives the asked number of chunks.
		z := make([]sym.Expr, k)
		return c.parts(x, d, z, true), nil
	}
	return c.parts(x, d, c.equalParts(n, s), true), nil
}

// nearlyEqual are the sizes of k chunks that differ by at most one.
func (c *Call) nearlyEqual(n sym.Expr, k int64) []sym.Expr {
	if k < 1 || k > 1<<20 {
		failf("sections is %d", k)
	}
	out := make([]sym.Expr, k)
	for i := range out {
		// The first n mod k chunks have one more.
		lo := sym.FloorDiv(n, sym.Const(k))
		if m, ok := n.IsConst(); ok {
			out[i] = sym.Const(m / k)
			if int64(i) < m%k {
				out[i] = sym.Const(m/k + 1)
			}
			continue
		}
		if c.holds(sym.Gt(sym.Mod(n, sym.Const(k)), sym.Const(int64(i)))) {
			lo = sym.Add(lo, sym.Const(1))
		}
		out[i] = c.simp(lo)
	}
	return out
}

func inferTensorSplitSections(c *Call) ([]ir.Type, error) {
	x := c.x()
	d := c.splitDim(x)
	return c.parts(x, d, c.nearlyEqual(x.Shape[d], c.int("sections")), true), nil
}

func (c *Call) splitAt(x ir.Type, d int, at []sym.Expr) []ir.Type {
	out := make([]ir.Type, 0, len(at)+1)
	start := sym.Const(0)
	for i := 0; i <= len(at); i++ {
		end := x.Shape[d]
		if i < len(at) {
			end = at[i]
		}
		out = append(out, c.sliceOf(x, d, start, end, sym.Const(1)))
		start = end
	}
	return out
}

func inferTensorSplitIndices(c *Call) ([]ir.Type, error) {
	x := c.x()
	return c.splitAt(x, c.splitDim(x), c.exprs("indices")), nil
}

// inferXsplit: hsplit, vsplit and dsplit name the dimension.
func inferXsplit(c *Call) ([]ir.Type, error) {
	x := c.x()
	d := 0
	switch c.Op.Info().Schema.Base {
	case "hsplit":
		if x.Rank() > 1 {
			d = 1
		}
	case "dsplit":
		d = 2
	}
	if x.Rank() <= d {
		failf("self has %d dimensions, more are needed", x.Rank())
	}
	if c.has("sections") {
		k := c.int("sections")
		if k < 1 || c.never(sym.Eq(sym.Mod(x.Shape[d], sym.Const(k)), sym.Const(0))) {
			failf("dimension %d of size %s cannot be split into %d equal parts", d, x.Shape[d], k)
		}
		return c.parts(x, d, c.nearlyEqual(x.Shape[d], k), true), nil
	}
	return c.splitAt(x, d, c.exprs("indices")), nil
}

func inferUnbind(c *Call) ([]ir.Type, error) {
	x := c.x()
	d := c.splitDim(x)
	n, ok := c.constOf(x.Shape[d])
	if !ok {
		v, err := sym.Eval(x.Shape[d], c.Syms())
		if err != nil {
			failf("the number of tensors along dimension %d is not known", d)
		}
		n = v
	}
	if n > 1<<20 {
		failf("%d results", n)
	}
	t := ir.Type{DType: x.DType, Shape: x.Shape, Strides: strides(x)}
	t = without(t, func(i int) bool { return i == d })
	if t.NormStrides() == nil {
		t.Strides = nil
	}
	out := make([]ir.Type, n)
	for i := range out {
		out[i] = t
	}
	return out, nil
}

func (c *Call) diagonal(x ir.Type, a, b int, offset sym.Expr) ir.Type {
	if a == b {
		failf("the diagonal of dimension %d with itself", a)
	}
	h, w := x.Shape[a], x.Shape[b]
	var n sym.Expr
	if c.holds(sym.Ge(offset, sym.Const(0))) {
		n = sym.Min(h, sym.Sub(w, offset))
	} else {
		n = sym.Min(sym.Add(h, offset), w)
	}
	n = c.simp(sym.Max(n, sym.Const(0)))
	st := strides(x)
	t := without(ir.Type{DType: x.DType, Shape: x.Shape, Strides: st}, func(i int) bool { return i == a || i == b })
	t.Shape = append(t.Shape, n)
	t.Strides = append(t.Strides, sym.Add(st[a], st[b]))
	if t.NormStrides() == nil {
		t.Strides = nil
	}
	return t
}

func inferDiagonal(c *Call) ([]ir.Type, error) {
	x := c.x()
	if x.Rank() < 2 {
		failf("self has %d dimensions, two are needed", x.Rank())
	}
	return one(c.diagonal(x, c.dim("dim1", x.Rank()), c.dim("dim2", x.Rank()), c.expr("offset")))
}

func inferUnfold(c *Call) ([]ir.Type, error) {
	x := c.x()
	d := c.dim("dimension", x.Rank())
	size, step := c.expr("size"), c.expr("step")
	if c.never(sym.Gt(step, sym.Const(0))) {
		failf("step is %s", step)
	}
	if x.Rank() == 0 {
		return one(ir.TensorType(x.DType, size))
	}
	n := x.Shape[d]
	if c.never(sym.Le(size, n)) {
		failf("windows of %s elements exceed dimension %d of size %s", size, d, n)
	}
	st := append([]sym.Expr(nil), strides(x)...)
	t := ir.Type{DType: x.DType, Shape: append([]sym.Expr(nil), x.Shape...)}
	t.Shape[d] = c.simp(sym.Add(sym.FloorDiv(sym.Sub(n, size), step), sym.Const(1)))
	t.Shape = append(t.Shape, size)
	last := st[d]
	st[d] = sym.Mul(st[d], step)
	t.Strides = append(st, last)
	if t.NormStrides() == nil {
		t.Strides = nil
	}
	return one(t)
}

func inferAsStrided(c *Call) ([]ir.Type, error) {
	x := c.x()
	t := ir.Type{DType: x.DType, Shape: c.exprs("size"), Strides: c.exprs("stride")}
	if len(t.Shape) != len(t.Strides) {
		failf("%d sizes and %d strides", len(t.Shape), len(t.Strides))
	}
	if t.NormStrides() == nil {
		t.Strides = nil
	}
	return one(t)
}

func inferViewAsReal(c *Call) ([]ir.Type, error) {
	x := c.x()
	if !x.DType.IsComplex() {
		failf("self is %s, a complex type is needed", x.DType)
	}
	t := ir.Type{DType: x.DType.ToReal(), Shape: inserted(x.Shape, x.Rank(), sym.Const(2))}
	if x.Strides != nil {
		for _, s := range x.Strides {
			t.Strides = append(t.Strides, sym.Mul(s, sym.Const(2)))
		}
		t.Strides = append(t.Strides, sym.Const(1))
	}
	return one(t)
}

func inferViewAsComplex(c *Call) ([]ir.Type, error) {
	x := c.x()
	if d := x.DType; d != ops.Float16 && d != ops.Float32 && d != ops.Float64 {
		failf("%s cannot be seen as complex", d)
	}
	n := x.Rank()
	if n == 0 || c.differ(x.Shape[n-1], sym.Const(2)) {
		failf("the last dimension of %s has to be 2", shapeString(x.Shape))
	}
	t := ir.Type{DType: x.DType.ToComplex(), Shape: x.Shape[:n-1]}
	if x.Strides != nil {
		if !c.is(x.Strides[n-1], 1) {
			failf("the last dimension has to be contiguous")
		}
		for _, s := range x.Strides[:n-1] {
			if c.never(sym.Eq(sym.Mod(s, sym.Const(2)), sym.Const(0))) {
				failf("stride %s is odd, complex numbers need an even one", s)
			}
			t.Strides = append(t.Strides, sym.FloorDiv(s, sym.Const(2)))
		}
	}
	return one(t)
}

// atLeast inserts dimensions of one as atleast_1d, _2d and _3d do.
func (c *Call) atLeast(x ir.Type) ir.Type {
	switch c.Op.Info().Schema.Base {
	case "atleast_1d":
		if x.Rank() == 0 {
			return ir.TensorType(x.DType, sym.Const(1))
		}
	case "atleast_2d":
		switch x.Rank() {
		case 0:
			return ir.StaticType(x.DType, 1, 1)
		case 1:
			return unsqueezed(x, 0)
		}
	case "atleast_3d":
		switch x.Rank() {
		case 0:
			return ir.StaticType(x.DType, 1, 1, 1)
		case 1:
			return unsqueezed(unsqueezed(x, 0), 2)
		case 2:
			return unsqueezed(x, 2)
		}
	}
	return x
}

func inferAtleast(c *Call) ([]ir.Type, error) { return one(c.atLeast(c.x())) }

func inferAtleastSeq(c *Call) ([]ir.Type, error) {
	ts := c.tensors("tensors")
	for i, t := range ts {
		ts[i] = c.atLeast(t)
	}
	return ts, nil
}
