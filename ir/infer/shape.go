package infer

import (
	"slices"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// commonType is the promoted type of a list of tensors.
func commonType(ts []ir.Type) ops.DType {
	xs := make([]operand, len(ts))
	for i, t := range ts {
		xs[i] = operand{dtype: t.DType, t: t}
	}
	return resultType(xs...)
}

// catTypes joins tensors along d.
func (c *Call) catTypes(ts []ir.Type, d int) ir.Type {
	dt := commonType(ts)
	first := ts[0]
	total := sym.Const(0)
	for i, t := range ts {
		if t.Rank() != first.Rank() {
			failf("tensor %d has %d dimensions, tensor 0 has %d", i, t.Rank(), first.Rank())
		}
		for k := range t.Shape {
			if k != d && c.differ(t.Shape[k], first.Shape[k]) {
				failf("tensor %d has size %s in dimension %d, tensor 0 has %s; only dimension %d may differ", i, t.Shape[k], k,
					first.Shape[k], d)
			}
		}
		total = sym.Add(total, t.Shape[d])
	}
	out := ir.TensorType(dt, append([]sym.Expr(nil), first.Shape...)...)
	out.Shape[d] = c.simp(total)
	for k := range out.Shape {
		// A constant size tells more than a symbol that has to equal it.
		for _, t := range ts {
			if _, ok := t.Shape[k].IsConst(); ok && k != d {
				out.Shape[k] = t.Shape[k]
			}
		}
	}
	// The layout is that which all inputs have in common.
	last := out.Rank() == 4 || out.Rank() == 5
	for _, t := range ts {
		last = last && c.suggestsChannelsLast(t)
	}
	if last {
		return dense(dt, out.Shape, channelsLastOrder(out.Rank()))
	}
	return out
}

func inferCat(c *Call) ([]ir.Type, error) {
	all := c.tensors("tensors")
	if len(all) == 0 {
		failf("an empty list of tensors")
	}
	dt := commonType(all)
	// Vectors without elements are left out, whatever the others' rank.
	ts := slices.DeleteFunc(slices.Clone(all), func(t ir.Type) bool { return t.Rank() == 1 && t.Shape[0].IsConstValue(0) })
	if len(ts) == 0 {
		return one(ir.TensorType(dt, sym.Const(0)))
	}
	if ts[0].Rank() == 0 {
		failf("tensors without dimensions cannot be joined; use stack")
	}
	t := c.catTypes(ts, c.dim("dim", ts[0].Rank()))
	t.DType = dt
	return one(t)
}

func inferStack(c *Call) ([]ir.Type, error) {
	ts := c.tensors("tensors")
	if len(ts) == 0 {
		failf("an empty list of tensors")
	}
	d := wrapDim("dim", c.int("dim"), ts[0].Rank()+1)
	for i, t := range ts {
		if t.Rank() != ts[0].Rank() {
			failf("tensor %d has %d dimensions, tensor 0 has %d", i, t.Rank(), ts[0].Rank())
		}
		for k := range t.Shape {
			if c.differ(t.Shape[k], ts[0].Shape[k]) {
				failf("tensor %d is %s, tensor 0 %s; all have to be of one shape", i, shapeString(t.Shape), shapeString(ts[0].Shape))
			}
		}
	}
	return one(ir.TensorType(commonType(ts), inserted(ts[0].Shape, d, sym.Const(int64(len(ts))))...))
}

func (c *Call) joined(dim func(rank int) int, up func(t ir.Type) ir.Type) ([]ir.Type, error) {
	ts := slices.Clone(c.tensors("tensors"))
	if len(ts) == 0 {
		failf("an empty list of tensors")
	}
	for i, t := range ts {
		ts[i] = up(t)
	}
	return one(c.catTypes(ts, dim(ts[0].Rank())))
}

func grown(t ir.Type, n int) ir.Type {
	switch {
	case n >= 1 && t.Rank() == 0:
		t = ir.TensorType(t.DType, sym.Const(1))
	}
	if n >= 2 && t.Rank() == 1 {
		t = unsqueezed(t, 0)
	}
	if n >= 3 && t.Rank() == 2 {
		t = unsqueezed(t, 2)
	}
	return t
}

func inferHstack(c *Call) ([]ir.Type, error) {
	return c.joined(func(r int) int { return min(r-1, 1) }, func(t ir.Type) ir.Type { return grown(t, 1) })
}

func inferVstack(c *Call) ([]ir.Type, error) {
	return c.joined(func(int) int { return 0 }, func(t ir.Type) ir.Type { return grown(t, 2) })
}

func inferDstack(c *Call) ([]ir.Type, error) {
	return c.joined(func(int) int { return 2 }, func(t ir.Type) ir.Type { return grown(t, 3) })
}

func inferColumnStack(c *Call) ([]ir.Type, error) {
	return c.joined(func(int) int { return 1 }, func(t ir.Type) ir.Type {
		if t.Rank() < 2 {
			return ir.TensorType(t.DType, t.Numel(), sym.Const(1))
		}
		return t
	})
}

func inferBlockDiag(c *Call) ([]ir.Type, error) {
	ts := c.tensors("tensors")
	h, w := sym.Const(0), sym.Const(0)
	for i, t := range ts {
		if t.Rank() > 2 {
			failf("tensor %d has %d dimensions, at most two are allowed", i, t.Rank())
		}
		t = grown(t, 2)
		h, w = sym.Add(h, t.Shape[0]), sym.Add(w, t.Shape[1])
	}
	return one(ir.TensorType(commonType(ts), h, w))
}

func (c *Call) repeated(x ir.Type, times []sym.Expr) ir.Type {
	off := len(times) - x.Rank()
	if off < 0 {
		failf("%d repeats are fewer than the %d dimensions of the input", len(times), x.Rank())
	}
	shape := make([]sym.Expr, len(times))
	for i, k := range times {
		if c.never(sym.Ge(k, sym.Const(0))) {
			failf("dimension %d is repeated %s times", i, k)
		}
		shape[i] = k
		if i >= off {
			shape[i] = sym.Mul(k, x.Shape[i-off])
		}
	}
	return ir.TensorType(x.DType, shape...)
}

func inferRepeat(c *Call) ([]ir.Type, error) { return one(c.repeated(c.x(), c.exprs("repeats"))) }

func inferTile(c *Call) ([]ir.Type, error) {
	x := c.x()
	times := c.exprs("dims")
	for len(times) < x.Rank() {
		times = inserted(times, 0, sym.Const(1))
	}
	return one(c.repeated(x, times))
}

// total is the number of results of repeats that only running tells.
func (c *Call) total() sym.Expr {
	if e, ok := c.optExpr("output_size"); ok {
		return e
	}
	return c.fresh(sym.Range{Min: 0, Max: sym.NoRange.Max})
}

func inferRepeatInterleaveT(c *Call) ([]ir.Type, error) {
	r := c.tensor("repeats")
	rank("repeats", r, 1)
	return one(ir.TensorType(r.DType, c.total()))
}

func (c *Call) interleaved(n sym.Expr) ([]ir.Type, error) {
	x := c.x()
	if c.arg("dim").IsNone() {
		return one(ir.TensorType(x.DType, n))
	}
	d := c.dim("dim", x.Rank())
	if x.Rank() == 0 {
		return one(ir.TensorType(x.DType, n))
	}
	shape := append([]sym.Expr(nil), x.Shape...)
	shape[d] = n
	return one(ir.TensorType(x.DType, shape...))
}

func inferRepeatInterleaveSelfTensor(c *Call) ([]ir.Type, error) {
	r := c.tensor("repeats")
	rank("repeats", r, 0, 1)
	indexType("repeats", r.DType)
	return c.interleaved(c.total())
}

func inferRepeatInterleaveSelfInt(c *Call) ([]ir.Type, error) {
	x := c.x()
	n := x.Numel()
	if !c.arg("dim").IsNone() && x.Rank() > 0 {
		n = x.Shape[c.dim("dim", x.Rank())]
	}
	return c.interleaved(c.simp(sym.Mul(n, c.expr("repeats"))))
}

func inferFlip(c *Call) ([]ir.Type, error) {
	x := c.x()
	if c.has("dims") {
		c.dims("dims", x.Rank())
	} else if x.Rank() == 0 || x.Rank() == 1 && c.Op == ops.AtenFliplrDefault {
		failf("self has %d dimensions, more are needed", x.Rank())
	}
	return one(c.preserved(x.DType, x))
}

func inferRoll(c *Call) ([]ir.Type, error) {
	x := c.x()
	shifts, ds := c.exprs("shifts"), c.ints("dims")
	if len(ds) > 0 && len(shifts) != len(ds) || len(ds) == 0 && len(shifts) != 1 {
		failf("%d shifts and %d dims", len(shifts), len(ds))
	}
	for _, d := range ds {
		wrapDim("dims", d, x.Rank())
	}
	return c.map1(x.DType, x)
}

func inferRot90(c *Call) ([]ir.Type, error) {
	x := c.x()
	ds, _ := c.dims("dims", x.Rank())
	if len(ds) != 2 || x.Rank() < 2 {
		failf("dims has to name two dimensions")
	}
	switch (c.int("k")%4 + 4) % 4 {
	case 1:
		return one(swapped(c.preserved(x.DType, x), ds[0], ds[1]))
	case 2:
		return one(c.preserved(x.DType, x))
	case 3:
		return one(c.preserved(x.DType, swapped(x, ds[0], ds[1])))
	}
	return one(ir.TensorType(x.DType, x.Shape...))
}

// padded is x with amounts added from the last dimension on.
func (c *Call) padded(x ir.Type, pad []sym.Expr) []sym.Expr {
	if len(pad)%2 != 0 || len(pad)/2 > x.Rank() {
		failf("pad has %d elements; pairs for at most %d dimensions are needed", len(pad), x.Rank())
	}
	shape := append([]sym.Expr(nil), x.Shape...)
	for i := 0; i < len(pad)/2; i++ {
		d := x.Rank() - 1 - i
		shape[d] = c.simp(sym.Sum(shape[d], pad[2*i], pad[2*i+1]))
		if c.never(sym.Ge(shape[d], sym.Const(0))) {
			failf("padding makes the size of dimension %d negative (%s)", d, shape[d])
		}
	}
	return shape
}

func (c *Call) keepsFormat(x ir.Type, shape []sym.Expr) ir.Type {
	if c.suggestsChannelsLast(x) {
		return dense(x.DType, shape, channelsLastOrder(len(shape)))
	}
	return ir.TensorType(x.DType, shape...)
}

func inferPad(c *Call) ([]ir.Type, error) {
	x := c.x()
	pad := c.exprs("pad")
	shape := c.padded(x, pad)
	mode := c.str("mode")
	switch mode {
	case "", "constant":
	case "reflect", "replicate", "circular":
		if n := len(pad) / 2; x.Rank() != n+1 && x.Rank() != n+2 {
			failf("mode %s of %d values needs %d or %d dimensions, the input has %d", mode, len(pad), n+1, n+2, x.Rank())
		}
		c.checkReflect(x, pad, mode == "reflect")
		if mode == "circular" {
			return one(ir.TensorType(x.DType, shape...))
		}
	default:
		failf("mode is %q; constant, reflect, replicate and circular are known", mode)
	}
	if c.padsNothing(pad) {
		return one(c.preserved(x.DType, x))
	}
	return one(c.keepsFormat(x, shape))
}

func (c *Call) padsNothing(pad []sym.Expr) bool {
	for _, p := range pad {
		if !c.is(p, 0) {
			return false
		}
	}
	return true
}

func (c *Call) checkReflect(x ir.Type, pad []sym.Expr, reflect bool) {
	if !reflect {
		return
	}
	for i, p := range pad {
		d := x.Rank() - 1 - i/2
		if c.never(sym.Lt(p, x.Shape[d])) {
			failf("reflecting %s elements needs more than the %s of dimension %d", p, x.Shape[d], d)
		}
	}
}

func (c *Call) borderPad(reflect bool) ([]ir.Type, error) {
	x := c.x()
	pad := c.exprs("padding")
	n := int(c.Op.Info().Schema.Base[len("reflection_pad")] - '0')
	if !reflect {
		n = int(c.Op.Info().Schema.Base[len("replication_pad")] - '0')
	}
	if len(pad) != 2*n {
		failf("padding has %d elements, %d are needed", len(pad), 2*n)
	}
	rank("self", x, n+1, n+2)
	c.checkReflect(x, pad, reflect)
	shape := c.padded(x, pad)
	if n == 2 && x.Rank() == 4 || n == 3 && x.Rank() == 5 {
		return one(c.keepsFormat(x, shape))
	}
	return one(ir.TensorType(x.DType, shape...))
}

func inferReflectionPad(c *Call) ([]ir.Type, error) { return c.borderPad(true) }

func inferReplicationPad(c *Call) ([]ir.Type, error) { return c.borderPad(false) }

// divides fails where e is known not to be a multiple of k.
func (c *Call) divides(what string, e sym.Expr, k int64) sym.Expr {
	if k < 1 || c.never(sym.Eq(sym.Mod(e, sym.Const(k)), sym.Const(0))) {
		failf("%s is %s, a multiple of %d is needed", what, e, k)
	}
	return c.simp(sym.FloorDiv(e, sym.Const(k)))
}

func inferPixelShuffle(c *Call) ([]ir.Type, error) {
	x := c.x()
	n := x.Rank()
	if n < 3 {
		failf("self has %d dimensions, three are needed", n)
	}
	r := c.int("upscale_factor")
	shape := append([]sym.Expr(nil), x.Shape...)
	shape[n-3] = c.divides("the number of channels", shape[n-3], r*r)
	shape[n-2] = sym.Mul(shape[n-2], sym.Const(r))
	shape[n-1] = sym.Mul(shape[n-1], sym.Const(r))
	return one(c.keepsFormat(x, shape))
}

func inferPixelUnshuffle(c *Call) ([]ir.Type, error) {
	x := c.x()
	n := x.Rank()
	if n < 3 {
		failf("self has %d dimensions, three are needed", n)
	}
	r := c.int("downscale_factor")
	shape := append([]sym.Expr(nil), x.Shape...)
	shape[n-3] = sym.Mul(shape[n-3], sym.Const(r*r))
	shape[n-2] = c.divides("the height", shape[n-2], r)
	shape[n-1] = c.divides("the width", shape[n-1], r)
	return one(ir.TensorType(x.DType, shape...))
}

func inferChannelShuffle(c *Call) ([]ir.Type, error) {
	x := c.x()
	if x.Rank() < 3 {
		failf("self has %d dimensions, three are needed", x.Rank())
	}
	c.divides("the number of channels", x.Shape[1], c.int("groups"))
	return one(c.keepsFormat(x, x.Shape))
}

func inferTriangle(c *Call) ([]ir.Type, error) {
	x := c.x()
	if x.Rank() < 2 {
		failf("self has %d dimensions, two are needed", x.Rank())
	}
	return one(ir.TensorType(x.DType, x.Shape...))
}

func inferDiag(c *Call) ([]ir.Type, error) {
	x := c.x()
	rank("self", x, 1, 2)
	k := c.expr("diagonal")
	if x.Rank() == 2 {
		t := c.diagonal(x, 0, 1, k)
		t.Strides = nil
		return one(t)
	}
	n := c.simp(sym.Add(x.Shape[0], sym.Abs(k)))
	return one(ir.TensorType(x.DType, n, n))
}

func inferDiagEmbed(c *Call) ([]ir.Type, error) {
	x := c.x()
	if x.Rank() == 0 {
		failf("self has no dimensions")
	}
	n := x.Rank() + 1
	a, b := wrapDim("dim1", c.int("dim1"), n), wrapDim("dim2", c.int("dim2"), n)
	if a == b {
		failf("dim1 and dim2 are the same")
	}
	k := c.simp(sym.Add(x.Shape[x.Rank()-1], sym.Abs(c.expr("offset"))))
	shape := append([]sym.Expr(nil), x.Shape[:x.Rank()-1]...)
	shape = inserted(shape, min(a, b), k)
	shape = inserted(shape, max(a, b), k)
	return one(ir.TensorType(x.DType, shape...))
}

func inferDiagflat(c *Call) ([]ir.Type, error) {
	x := c.x()
	n := c.simp(sym.Add(x.Numel(), sym.Abs(c.expr("offset"))))
	return one(ir.TensorType(x.DType, n, n))
}

func inferMeshgrid(c *Call) ([]ir.Type, error) {
	ts := c.tensors("tensors")
	if len(ts) == 0 {
		failf("an empty list of tensors")
	}
	shape := make([]sym.Expr, len(ts))
	for i, t := range ts {
		rank("tensors", t, 0, 1)
		sameDType("tensors[0]", ts[0], "another", t)
		shape[i] = sym.Const(1)
		if t.Rank() == 1 {
			shape[i] = t.Shape[0]
		}
	}
	xy := false
	if c.has("indexing") {
		switch s := c.str("indexing"); s {
		case "xy":
			xy = len(ts) > 1
		case "ij":
		default:
			failf("indexing is %q; ij and xy are known", s)
		}
	}
	out := make([]ir.Type, len(ts))
	for i, t := range ts {
		st := make([]sym.Expr, len(ts))
		if t.Rank() == 1 {
			st[i] = strides(t)[0]
		} else {
			st[i] = sym.Const(1)
		}
		o := ir.Type{DType: t.DType, Shape: append([]sym.Expr(nil), shape...), Strides: st}
		if xy {
			o = swapped(o, 0, 1)
		}
		if o.NormStrides() == nil {
			o.Strides = nil
		}
		out[i] = o
	}
	return out, nil
}

func inferCartesianProd(c *Call) ([]ir.Type, error) {
	ts := c.tensors("tensors")
	n := sym.Const(1)
	for _, t := range ts {
		rank("tensors", t, 1)
		n = sym.Mul(n, t.Shape[0])
	}
	if len(ts) == 1 {
		return one(ts[0])
	}
	return one(ir.TensorType(commonType(ts), n, sym.Const(int64(len(ts)))))
}

func inferCombinations(c *Call) ([]ir.Type, error) {
	x := c.x()
	rank("self", x, 1)
	r := c.int("r")
	n, ok := x.Shape[0].IsConst()
	if !ok {
		return one(ir.TensorType(x.DType, c.fresh(sym.Range{Min: 0, Max: sym.NoRange.Max}), sym.Const(r)))
	}
	if c.bool("with_replacement") {
		n += r - 1
	}
	k := int64(1)
	for i := int64(0); i < r; i++ {
		k = k * (n - i) / (i + 1)
	}
	return one(ir.TensorType(x.DType, sym.Const(max(k, 0)), sym.Const(r)))
}

func inferKron(c *Call) ([]ir.Type, error) {
	a, b := c.x(), c.tensor("other")
	n := max(a.Rank(), b.Rank())
	shape := make([]sym.Expr, n)
	at := func(t ir.Type, i int) sym.Expr {
		if k := i - (n - t.Rank()); k >= 0 {
			return t.Shape[k]
		}
		return sym.Const(1)
	}
	for i := range shape {
		shape[i] = sym.Mul(at(a, i), at(b, i))
	}
	return one(ir.TensorType(resultType(operand{dtype: a.DType, t: a}, operand{dtype: b.DType, t: b}), shape...))
}

func inferDiff(c *Call) ([]ir.Type, error) {
	x := c.x()
	if x.Rank() == 0 {
		failf("self has no dimensions")
	}
	d := c.dim("dim", x.Rank())
	n := x.Shape[d]
	for _, s := range []string{"prepend", "append"} {
		if t, ok := c.optTensor(s); ok {
			if t.Rank() != x.Rank() {
				failf("%s has %d dimensions, self %d", s, t.Rank(), x.Rank())
			}
			n = sym.Add(n, t.Shape[d])
		}
	}
	shape := append([]sym.Expr(nil), x.Shape...)
	if c.expr("n").IsConstValue(0) {
		return one(x) // nothing is put to it either
	}
	shape[d] = c.simp(sym.Max(sym.Sub(n, c.expr("n")), sym.Const(0)))
	// The difference of two slices lies as they do.
	return one(c.preserved(x.DType, ir.Type{DType: x.DType, Shape: shape, Strides: x.Strides}))
}

// window is the number of places of a kernel.
func (c *Call) window(n, k, stride, pad, dil sym.Expr) sym.Expr {
	span := sym.Add(sym.Mul(dil, sym.Sub(k, sym.Const(1))), sym.Const(1))
	room := sym.Sub(sym.Add(n, sym.Mul(pad, sym.Const(2))), span)
	return c.simp(sym.Add(sym.FloorDiv(room, stride), sym.Const(1)))
}

func inferIm2col(c *Call) ([]ir.Type, error) {
	x := c.x()
	rank("self", x, 3, 4)
	k, dil := c.exprsN("kernel_size", 2), c.exprsN("dilation", 2)
	pad, st := c.exprsN("padding", 2), c.exprsN("stride", 2)
	n := x.Rank()
	h := c.window(x.Shape[n-2], k[0], st[0], pad[0], dil[0])
	w := c.window(x.Shape[n-1], k[1], st[1], pad[1], dil[1])
	shape := append([]sym.Expr(nil), x.Shape[:n-3]...)
	shape = append(shape, sym.Prod(x.Shape[n-3], k[0], k[1]), sym.Mul(h, w))
	return one(ir.TensorType(x.DType, shape...))
}

func inferCol2im(c *Call) ([]ir.Type, error) {
	x := c.x()
	rank("self", x, 2, 3)
	k, o := c.exprsN("kernel_size", 2), c.exprsN("output_size", 2)
	n := x.Rank()
	area := sym.Mul(k[0], k[1])
	if c.never(sym.Eq(sym.Mod(x.Shape[n-2], area), sym.Const(0))) {
		failf("%s rows are no multiple of the kernel's %s elements", x.Shape[n-2], area)
	}
	shape := append([]sym.Expr(nil), x.Shape[:n-2]...)
	shape = append(shape, c.simp(sym.FloorDiv(x.Shape[n-2], area)), o[0], o[1])
	return one(ir.TensorType(x.DType, shape...))
}

func inferPadSequence(c *Call) ([]ir.Type, error) {
	ts := c.tensors("sequences")
	if len(ts) == 0 || ts[0].Rank() == 0 {
		failf("sequences has to hold tensors with dimensions")
	}
	n := ts[0].Shape[0]
	for i, t := range ts {
		if t.Rank() != ts[0].Rank() {
			failf("sequence %d has %d dimensions, sequence 0 has %d", i, t.Rank(), ts[0].Rank())
		}
		n = sym.Max(n, t.Shape[0])
	}
	lead := []sym.Expr{c.simp(n), sym.Const(int64(len(ts)))}
	if c.bool("batch_first") {
		lead[0], lead[1] = lead[1], lead[0]
	}
	return one(ir.TensorType(ts[0].DType, append(lead, ts[0].Shape[1:]...)...))
}

func inferCross(c *Call) ([]ir.Type, error) {
	a, b := c.x(), c.tensor("other")
	d := resultType(operand{dtype: a.DType, t: a}, operand{dtype: b.DType, t: b})
	return one(ir.TensorType(d, c.broadcast(a.Shape, b.Shape)...))
}

func inferVander(c *Call) ([]ir.Type, error) {
	x := c.x()
	rank("x", x, 1)
	n, ok := c.optExpr("N")
	if !ok {
		n = x.Shape[0]
	}
	return one(ir.TensorType(x.DType, x.Shape[0], n))
}

// inferCopy: the result lies as self does.
func inferCopy(c *Call) ([]ir.Type, error) {
	x, s := c.x(), c.tensor("src")
	c.copies(x, s)
	return one(c.preserved(x.DType, x))
}

func (c *Call) copies(to, from ir.Type) {
	if from.Rank() > to.Rank() {
		failf("a tensor of shape %s cannot be copied to one of shape %s", shapeString(from.Shape), shapeString(to.Shape))
	}
	off := to.Rank() - from.Rank()
	for i, e := range from.Shape {
		if !c.is(e, 1) {
			c.same("a tensor of shape "+shapeString(from.Shape)+" cannot be copied to one of shape "+shapeString(to.Shape), e, to.Shape[off+i])
		}
	}
}

func inferCopyInplace(c *Call) ([]ir.Type, error) {
	x, s := c.x(), c.tensor("src")
	c.copies(x, s)
	return one(x)
}

func inferClone(c *Call) ([]ir.Type, error) {
	x := c.x()
	f := c.str("memory_format")
	if f == "" {
		f = "preserve_format"
	}
	return one(c.withFormat(f, x.DType, x.Shape, &x))
}

// inferContiguous gives the input itself where it has the format already.
func inferContiguous(c *Call) ([]ir.Type, error) {
	x := c.x()
	f := c.str("memory_format")
	t := c.withFormat(f, x.DType, x.Shape, &x)
	if c.hasFormat(x, f) {
		return one(x)
	}
	return one(t)
}

func (c *Call) hasFormat(x ir.Type, f string) bool {
	switch f {
	case "", "contiguous_format":
		return c.contiguous(x)
	case "channels_last", "channels_last_3d":
		return c.channelsLast(x)
	}
	return true
}

// converted is x as another type and format; a conversion that changes nothing gives x itself unless a copy is asked for.
func (c *Call) converted(x ir.Type, d ops.DType, format string, copies bool) ir.Type {
	keep := format == "" || format == "preserve_format"
	if !copies && d == x.DType && (keep || c.suggestsFormat(x, format)) {
		return x
	}
	if keep {
		format = "preserve_format"
	}
	return c.withFormat(format, d, x.Shape, &x)
}

// suggestsFormat tells whether torch takes the tensor to have a format already.
func (c *Call) suggestsFormat(x ir.Type, f string) bool {
	if f == "channels_last" || f == "channels_last_3d" {
		return c.suggestsChannelsLast(x)
	}
	return !c.suggestsChannelsLast(x)
}

func (c *Call) checkLayout() {
	if c.has("layout") {
		if s := c.str("layout"); s != "" && s != "strided" {
			failf("layout %s is not supported, strided is", s)
		}
	}
}

func inferToDtype(c *Call) ([]ir.Type, error) {
	x := c.x()
	return one(c.converted(x, c.dtypeOr("dtype", x.DType), c.str("memory_format"), c.bool("copy")))
}

func inferToDtypeLayout(c *Call) ([]ir.Type, error) {
	c.checkLayout()
	return inferToDtype(c)
}

func inferToOther(c *Call) ([]ir.Type, error) {
	x, o := c.x(), c.tensor("other")
	return one(c.converted(x, o.DType, c.str("memory_format"), c.bool("copy")))
}

func inferToCopy(c *Call) ([]ir.Type, error) {
	c.checkLayout()
	x := c.x()
	return one(c.converted(x, c.dtypeOr("dtype", x.DType), c.str("memory_format"), true))
}

func inferTypeAs(c *Call) ([]ir.Type, error) {
	x, o := c.x(), c.tensor("other")
	return one(c.converted(x, o.DType, "", false))
}

func inferAutocastFull(c *Call) ([]ir.Type, error) {
	x := c.x()
	if x.DType != ops.Float16 && x.DType != ops.BFloat16 {
		return one(x)
	}
	return one(c.converted(x, ops.Float32, "", false))
}

func inferAutocastReduced(c *Call) ([]ir.Type, error) {
	x := c.x()
	if x.DType != ops.Float32 {
		return one(x)
	}
	return one(c.converted(x, c.dtypeOr("cpu_dtype", ops.BFloat16), "", false))
}

func inferToCpu(c *Call) ([]ir.Type, error) { return c.tensors("tensors"), nil }

func inferResize(c *Call) ([]ir.Type, error) {
	return one(c.withFormat(c.str("memory_format"), c.x().DType, c.exprs("size"), nil))
}

func inferLiftFreshCopy(c *Call) ([]ir.Type, error) {
	x := c.x()
	return one(c.preserved(x.DType, x))
}

func intTypes(es []sym.Expr) []ir.Type {
	ts := make([]ir.Type, len(es))
	for i, e := range es {
		ts[i] = ir.IntType(e)
	}
	return ts
}

func inferSymSizeAll(c *Call) ([]ir.Type, error) { return intTypes(c.x().Shape), nil }

func inferSymSize(c *Call) ([]ir.Type, error) {
	x := c.x()
	d := c.dim("dim", x.Rank())
	if x.Rank() == 0 {
		failf("a tensor without dimensions has no size %d", d)
	}
	return one(ir.IntType(x.Shape[d]))
}

func inferSymStride(c *Call) ([]ir.Type, error) {
	x := c.x()
	d := c.dim("dim", x.Rank())
	if x.Rank() == 0 {
		failf("a tensor without dimensions has no stride %d", d)
	}
	return one(ir.IntType(strides(x)[d]))
}

func inferSymStrideAll(c *Call) ([]ir.Type, error) { return intTypes(strides(c.x())), nil }

func inferSymNumel(c *Call) ([]ir.Type, error) { return one(ir.IntType(c.x().Numel())) }

// inferSymStorageOffset: types say nothing of offsets.
func inferSymStorageOffset(c *Call) ([]ir.Type, error) { return one(ir.ScalarType(ir.KindInt)) }

func inferDim(c *Call) ([]ir.Type, error) { return one(ir.IntType(sym.Const(int64(c.x().Rank())))) }

func inferShapeAsTensor(c *Call) ([]ir.Type, error) {
	return one(ir.StaticType(ops.Int64, int64(c.x().Rank())))
}
