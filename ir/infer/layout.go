package infer

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// strides are the strides of a type, written out.
func strides(t ir.Type) []sym.Expr {
	if t.Strides != nil {
		return t.Strides
	}
	return ir.ContiguousStrides(t.Shape)
}

// dense makes a tensor type whose dimensions lie in memory in the given order, outermost first, without gaps.
func dense(d ops.DType, shape []sym.Expr, order []int) ir.Type {
	t := ir.Type{DType: d, Shape: shape}
	sorted := true
	for i, x := range order {
		sorted = sorted && x == i
	}
	if sorted {
		return t
	}
	phys := make([]sym.Expr, len(shape))
	for i, x := range order {
		phys[i] = shape[x]
	}
	ps := ir.ContiguousStrides(phys)
	t.Strides = make([]sym.Expr, len(shape))
	for i, x := range order {
		t.Strides[x] = ps[i]
	}
	return t
}

// channelsLastOrder is the order of dimensions of channels-last tensors of four or five dimensions, or of images and
// volumes of any count.
func channelsLastOrder(rank int) []int {
	o := []int{0}
	for i := 2; i < rank; i++ {
		o = append(o, i)
	}
	return append(o, 1)
}

// inOrder tells whether the tensor is dense in the given order of dimensions; the strides of sizes of one do not matter.
func (c *Call) inOrder(t ir.Type, order []int) bool {
	if t.Strides == nil {
		sorted := true
		for i, x := range order {
			sorted = sorted && x == i
		}
		if sorted {
			return true
		}
	}
	st := strides(t)
	want := sym.Const(1)
	for i := len(order) - 1; i >= 0; i-- {
		d := order[i]
		if c.is(t.Shape[d], 1) {
			continue
		}
		if !c.eq(st[d], want) {
			return false
		}
		want = sym.Mul(want, t.Shape[d])
	}
	return true
}

func identity(n int) []int {
	o := make([]int, n)
	for i := range o {
		o[i] = i
	}
	return o
}

func (c *Call) contiguous(t ir.Type) bool {
	return t.Strides == nil || c.inOrder(t, identity(t.Rank())) || c.empty(t)
}

func (c *Call) empty(t ir.Type) bool {
	for _, e := range t.Shape {
		if e.IsConstValue(0) {
			return true
		}
	}
	return false
}

// channelsLast tells whether a tensor of four or five dimensions is dense with its channels innermost.
func (c *Call) channelsLast(t ir.Type) bool {
	return (t.Rank() == 4 || t.Rank() == 5) && c.inOrder(t, channelsLastOrder(t.Rank()))
}

// suggestsChannelsLast is torch's suggest_memory_format: the strides are those of channels-last, gaps allowed.
func (c *Call) suggestsChannelsLast(t ir.Type) bool {
	n := t.Rank()
	if n != 4 && n != 5 || t.Strides == nil {
		return false
	}
	st := t.Strides
	if c.is(st[1], 0) {
		return false
	}
	least := sym.Const(0)
	order := channelsLastOrder(n)
	for i := n - 1; i >= 0; i-- {
		d := order[i]
		if c.is(t.Shape[d], 0) || !c.holds(sym.Ge(st[d], least)) {
			return false
		}
		// An N of one with contiguous strides, or 1x1 images, are taken to be contiguous.
		if d == 0 && c.eq(least, st[1]) {
			return false
		}
		least = st[d]
		if c.holds(sym.Gt(t.Shape[d], sym.Const(1))) {
			least = sym.Mul(least, t.Shape[d])
		}
	}
	return true
}

// preserved is the type of a tensor like t in torch's preserve_format: the same strides where t is dense, otherwise the
// order of its dimensions without gaps.
func (c *Call) preserved(d ops.DType, t ir.Type) ir.Type {
	if t.Strides == nil {
		return ir.Type{DType: d, Shape: t.Shape}
	}
	if c.contiguous(t) && !c.channelsLast(t) {
		return ir.Type{DType: d, Shape: t.Shape}
	}
	order := c.strideOrder(t.Shape, [][]sym.Expr{t.Strides})
	if c.inOrder(t, order) {
		return ir.Type{DType: d, Shape: t.Shape, Strides: t.Strides}
	}
	return dense(d, t.Shape, order)
}

// strideOrder sorts dimensions by the strides of the operands, outermost first, as torch's element-wise operators do:
// broadcast dimensions do not count, ties keep their order.
func (c *Call) strideOrder(shape []sym.Expr, operands [][]sym.Expr) []int {
	n := len(shape)
	ge := func(a, b sym.Expr) bool {
		switch {
		case c.is(b, 0):
			return true
		case c.is(a, 0):
			return false
		}
		return c.holds(sym.Ge(a, b)) || c.holds(sym.Eq(sym.Mod(a, b), sym.Const(0)))
	}
	swap := func(a, b int) int {
		for _, st := range operands {
			sa, sb := st[a], st[b]
			if c.is(sa, 0) || c.is(sb, 0) {
				continue
			}
			if c.eq(sa, sb) {
				if ge(shape[b], shape[a]) {
					continue
				}
				return 1
			}
			if ge(sb, sa) {
				return -1
			}
			if ge(sa, sb) {
				return 1
			}
		}
		return 0
	}
	perm := make([]int, n)
	for i := range perm {
		perm[i] = n - 1 - i
	}
	for i := 1; i < n; i++ {
		d1 := i
		for d0 := i - 1; d0 >= 0; d0-- {
			k := swap(perm[d0], perm[d1])
			if k > 0 {
				perm[d0], perm[d1] = perm[d1], perm[d0]
				d1 = d0
			} else if k < 0 {
				break
			}
		}
	}
	for i, j := 0, n-1; i < j; i, j = i+1, j-1 {
		perm[i], perm[j] = perm[j], perm[i]
	}
	return perm
}

// elementwise is the type of an element-wise operator's result over operands that broadcast to shape.
func (c *Call) elementwise(d ops.DType, shape []sym.Expr, xs ...operand) ir.Type {
	t := ir.Type{DType: d, Shape: shape}
	allCont, allLast := true, true
	var full []ir.Type // those with dimensions
	for _, x := range xs {
		if x.number || x.t.Rank() == 0 {
			continue
		}
		full = append(full, x.t)
		allCont = allCont && c.contiguous(x.t)
		allLast = allLast && x.t.Rank() == len(shape) && c.channelsLast(x.t)
	}
	switch {
	case len(shape) < 2 || len(full) == 0 || c.empty(t):
		return t
	case allCont && !allLast:
		return t
	case allLast && !allCont:
		return dense(d, shape, channelsLastOrder(len(shape)))
	case len(full) == 1 && ir.EqualShape(full[0].Shape, shape):
		return c.preserved(d, full[0])
	}
	lists := make([][]sym.Expr, len(full))
	for i, x := range full {
		lists[i] = c.expandStrides(x, shape)
	}
	return dense(d, shape, c.strideOrder(shape, lists))
}

// expandStrides are the strides of t expanded to shape.
func (c *Call) expandStrides(t ir.Type, shape []sym.Expr) []sym.Expr {
	st := strides(t)
	r := make([]sym.Expr, len(shape))
	off := len(shape) - t.Rank()
	for i := range shape {
		if i < off {
			continue
		}
		if c.is(t.Shape[i-off], 1) && !c.is(shape[i], 1) {
			continue
		}
		r[i] = st[i-off]
	}
	return r
}

// broadcast is the common shape of shapes. A size that is not known to be one is taken not to be, as torch does.
func (c *Call) broadcast(shapes ...[]sym.Expr) []sym.Expr {
	n := 0
	for _, s := range shapes {
		n = max(n, len(s))
	}
	out := make([]sym.Expr, n)
	for i := range out {
		out[i] = sym.Const(1)
	}
	for k, s := range shapes {
		off := n - len(s)
		for i, e := range s {
			o := out[off+i]
			switch {
			case o.Equal(e), c.is(e, 1):
			case c.is(o, 1):
				out[off+i] = e
			default:
				if c.differ(o, e) {
					failf("shapes cannot be broadcast: %s of argument %d does not fit %s (sizes %s and %s)",
						shapeString(s), k+1, shapeString(out), e, o)
				}
				if _, ok := e.IsConst(); ok {
					out[off+i] = e
				}
			}
		}
	}
	return out
}

// withFormat gives t the strides of a memory format argument; preserve keeps the order of from's dimensions.
func (c *Call) withFormat(format string, d ops.DType, shape []sym.Expr, from *ir.Type) ir.Type {
	switch format {
	case "", "contiguous_format":
		return ir.Type{DType: d, Shape: shape}
	case "preserve_format":
		if from != nil {
			return c.preserved(d, ir.Type{DType: d, Shape: shape, Strides: from.Strides})
		}
		return ir.Type{DType: d, Shape: shape}
	case "channels_last", "channels_last_3d":
		want := 4
		if format == "channels_last_3d" {
			want = 5
		}
		if len(shape) != want {
			failf("memory format %s needs %d dimensions, the tensor has %d", format, want, len(shape))
		}
		return dense(d, shape, channelsLastOrder(want))
	}
	failf("memory format %s is not known", format)
	return ir.Type{}
}

// viewStrides are the strides of a tensor seen in another shape, or false where that takes a copy.
func (c *Call) viewStrides(t ir.Type, shape []sym.Expr) ([]sym.Expr, bool) {
	if t.Strides == nil || c.contiguous(t) {
		return nil, true
	}
	old, st := t.Shape, t.Strides
	out := make([]sym.Expr, len(shape))
	if len(old) == 0 {
		for i := range out {
			out[i] = sym.Const(1)
		}
		return out, true
	}
	v := len(shape) - 1
	base := st[len(st)-1]
	tn, vn := sym.Const(1), sym.Const(1)
	for d := len(old) - 1; d >= 0; d-- {
		tn = sym.Mul(tn, old[d])
		if d > 0 && (c.is(old[d-1], 1) || c.eq(st[d-1], sym.Mul(tn, base))) {
			continue
		}
		for v >= 0 && (c.is(shape[v], 1) || c.holds(sym.Lt(vn, tn))) {
			out[v] = sym.Mul(vn, base)
			vn = sym.Mul(vn, shape[v])
			v--
		}
		if !c.eq(vn, tn) {
			return nil, false
		}
		if d > 0 {
			base = st[d-1]
			tn, vn = sym.Const(1), sym.Const(1)
		}
	}
	return out, v == -1
}
