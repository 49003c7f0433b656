package mlx

import (
	"github.com/lathe-ml/lathe/codegen/fb/mlx"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/partition"
)

var convRules = map[ops.ID]rule{
	ops.AtenConv1dDefault:          convN(1),
	ops.AtenConv2dDefault:          convN(2),
	ops.AtenConv3dDefault:          convN(3),
	ops.AtenConv1dPadding:          convN(1),
	ops.AtenConv2dPadding:          convN(2),
	ops.AtenConv3dPadding:          convN(3),
	ops.AtenConvTranspose1dDefault: convTransposeN(1),
	ops.AtenConvTranspose2dInput:   convTransposeN(2),
	ops.AtenConvTranspose3dInput:   convTransposeN(3),
	ops.AtenConvolutionDefault:     convolution,
}

// conv is a convolution as torch has it: batch, channels, space; weights out, in/groups, space.
type conv struct {
	x, w, bias                       *ir.Value
	stride, pad, dilation, outputPad []int64
	groups                           int64
	transposed                       bool
}

func (m *match) perDim(i, n int) ([]int64, bool) {
	ks, ok := m.ints(i)
	if !ok {
		return nil, false
	}
	if len(ks) == 1 {
		for len(ks) < n {
			ks = append(ks, ks[0])
		}
	}
	if len(ks) != n {
		m.no("argument %s has %d numbers for %d dimensions", m.argName(i), len(ks), n)
		return nil, false
	}
	return ks, true
}

func convN(n int) rule {
	return func(m *match) emit {
		c := conv{x: m.in(0), w: m.in(1), bias: m.in(2), outputPad: make([]int64, n)}
		var ok, ok2, ok3 bool
		c.stride, ok = m.perDim(3, n)
		c.dilation, ok2 = m.perDim(5, n)
		c.groups, ok3 = m.intArg(6)
		if !ok || !ok2 || !ok3 {
			return nil
		}
		behind := make([]int64, n)
		if s, isText := m.arg(4).Str(); isText {
			c.pad = make([]int64, n)
			if s == "same" {
				sizes, ok := m.static(c.w.Type, "a filter")
				if !ok {
					return nil
				}
				for i := range n {
					total := c.dilation[i] * (sizes[2+i] - 1)
					// The odd one goes behind; the node pads both sides alike.
					c.pad[i], behind[i] = total/2, total%2
				}
			} else if s != "valid" {
				return m.no("padding %q", s)
			}
		} else if c.pad, ok = m.perDim(4, n); !ok {
			return nil
		}
		return m.conv(&c, behind)
	}
}

func convTransposeN(n int) rule {
	return func(m *match) emit {
		c := conv{x: m.in(0), w: m.in(1), bias: m.in(2), transposed: true}
		var ok [5]bool
		c.stride, ok[0] = m.perDim(3, n)
		c.pad, ok[1] = m.perDim(4, n)
		c.outputPad, ok[2] = m.perDim(5, n)
		c.groups, ok[3] = m.intArg(6)
		c.dilation, ok[4] = m.perDim(7, n)
		for _, o := range ok {
			if !o {
				return nil
			}
		}
		return m.conv(&c, make([]int64, n))
	}
}

func convolution(m *match) emit {
	n := m.typ(1).Rank() - 2
	c := conv{x: m.in(0), w: m.in(1), bias: m.in(2)}
	var ok [6]bool
	c.stride, ok[0] = m.perDim(3, n)
	c.pad, ok[1] = m.perDim(4, n)
	c.dilation, ok[2] = m.perDim(5, n)
	c.transposed, ok[3] = m.arg(6).Bool()
	c.outputPad, ok[4] = m.perDim(7, n)
	c.groups, ok[5] = m.intArg(8)
	for _, o := range ok {
		if !o {
			return m.no("computed settings")
		}
	}
	return m.conv(&c, make([]int64, n))
}

// conv writes a convolution. The delegate has channels last, in data and weights: constant weights are stored so, the data
// is permuted before and after. behind is padding behind the data only.
func (m *match) conv(c *conv, behind []int64) emit {
	n := c.w.Type.Rank() - 2
	d := m.out().DType
	if n < 1 || n > 3 || !d.IsFloat() {
		return m.no("a convolution over %d dimensions of %s", n, d)
	}
	if n == 3 && c.groups != 1 {
		return m.no("a 3-d convolution in groups")
	}
	batched := c.x.Type.Rank() == n+2
	if !batched && c.x.Type.Rank() != n+1 {
		return m.no("data of rank %d", c.x.Type.Rank())
	}
	for i := range n {
		if c.pad[i] < 0 || c.outputPad[i] < 0 {
			return m.no("negative padding")
		}
	}
	wsizes, ok := m.static(c.w.Type, "a filter")
	if !ok {
		return nil
	}
	weight := partition.Weight(c.w)
	if c.transposed && c.groups != 1 && weight == nil {
		return m.no("a transposed convolution in groups with a computed filter")
	}
	// Padding of a transposed convolution cuts its result. The node cuts no more than the filter reaches over the edge.
	cut := make([]int64, n)
	if c.transposed {
		pad := append([]int64(nil), c.pad...)
		for i := range n {
			if reach := c.dilation[i] * (wsizes[2+i] - 1); pad[i] > reach {
				cut[i], pad[i] = pad[i]-reach, reach
			}
		}
		c.pad = pad
	}
	toLast := channelsLast(n)
	toFirst := channelsFirst(n)
	return func(b *builder) {
		x := b.in(c.x)
		perm, back := toLast, toFirst
		if !batched {
			t := b.temp(d)
			b.emit(&mlx.ExpandDimsNode{X: x, Out: t})
			x = t
		}
		last := b.temp(d)
		b.emit(&mlx.TransposeNode{X: x, Out: last, Perm: perm})
		x = last
		x = b.padBehind(x, d, behind)
		w := b.filter(c, weight, wsizes)
		y := b.temp(d)
		b.emit(c.node(x, w, y, n))
		for i, k := range cut {
			if k > 0 {
				s := mlx.NewSliceNode()
				s.X, s.Axis, s.Start, s.Stop, s.Out = y, lit(int64(1+i)), lit(k), lit(-k), b.temp(d)
				b.emit(s)
				y = s.Out
			}
		}
		if c.bias != nil {
			// One bias a channel, and channels are last.
			sum := b.temp(d)
			b.emit(addNode(y, b.in(c.bias), sum))
			y = sum
		}
		if !batched {
			t := b.temp(d)
			b.emit(&mlx.TransposeNode{X: y, Out: t, Perm: back})
			b.emit(&mlx.SqueezeNode{X: t, Out: b.out(0), Dims: []int32{0}})
			return
		}
		b.emit(&mlx.TransposeNode{X: y, Out: b.out(0), Perm: back})
	}
}

func channelsLast(n int) []int32 {
	p := []int32{0}
	for i := range n {
		p = append(p, int32(2+i))
	}
	return append(p, 1)
}

func channelsFirst(n int) []int32 {
	p := []int32{0, int32(n + 1)}
	for i := range n {
		p = append(p, int32(1+i))
	}
	return p
}

func (b *builder) padBehind(x mlx.Tid, d ops.DType, behind []int64) mlx.Tid {
	any := false
	width := []int64{0, 0}
	for _, k := range behind {
		any = any || k > 0
		width = append(width, 0, k)
	}
	if !any {
		return x
	}
	out := b.temp(d)
	b.emit(&mlx.PadNode{X: x, Out: out, Mode: "constant", PadWidth: lits(append(width, 0, 0))})
	return out
}

// filter is the weights with input channels last.
func (b *builder) filter(c *conv, in *ir.Input, sizes []int64) mlx.Tid {
	n := len(sizes) - 2
	if !c.transposed {
		perm := channelsLast(n)
		if in != nil {
			return b.weight(in, &form{perm: ints(perm)})
		}
		w := b.temp(b.dtype(b.in(c.w)))
		b.emit(&mlx.TransposeNode{X: b.in(c.w), Out: w, Perm: perm})
		return w
	}
	if c.groups == 1 {
		perm := []int32{1}
		for i := range n {
			perm = append(perm, int32(2+i))
		}
		perm = append(perm, 0)
		if in != nil {
			return b.weight(in, &form{perm: ints(perm)})
		}
		w := b.temp(b.dtype(b.in(c.w)))
		b.emit(&mlx.TransposeNode{X: b.in(c.w), Out: w, Perm: perm})
		return w
	}
	// torch: groups*in, out, space. Wanted: groups*out, space, in.
	g := c.groups
	split := append([]int64{g, sizes[0] / g}, sizes[1:]...)
	perm := []int{0, 2}
	for i := range n {
		perm = append(perm, 3+i)
	}
	perm = append(perm, 1)
	merged := append([]int64{g * sizes[1]}, sizes[2:]...)
	merged = append(merged, sizes[0]/g)
	return b.weight(in, &form{split: split, perm: perm, sizes: merged})
}

func ints(ks []int32) []int {
	out := make([]int, len(ks))
	for i, k := range ks {
		out[i] = int(k)
	}
	return out
}

func (c *conv) node(x, w, out mlx.Tid, n int) mlx.OpNode {
	at := func(ks []int64, i int) int32 { return int32(ks[i]) }
	s, p, l, o, g := c.stride, c.pad, c.dilation, c.outputPad, int32(c.groups)
	switch {
	case n == 1 && c.transposed:
		return &mlx.ConvTranspose1DNode{X: x, W: w, Out: out, Stride: at(s, 0), Padding: at(p, 0), Dilation: at(l, 0), OutputPadding: at(o, 0), Groups: g}
	case n == 1:
		return &mlx.Conv1DNode{X: x, W: w, Out: out, Stride: at(s, 0), Padding: at(p, 0), Dilation: at(l, 0), Groups: g}
	case n == 2 && c.transposed:
		return &mlx.ConvTranspose2DNode{
			X: x, W: w, Out: out, StrideH: at(s, 0), StrideW: at(s, 1), PaddingH: at(p, 0), PaddingW: at(p, 1),
			DilationH: at(l, 0), DilationW: at(l, 1), OutputPaddingH: at(o, 0), OutputPaddingW: at(o, 1), Groups: g,
		}
	case n == 2:
		return &mlx.Conv2DNode{
			X: x, W: w, Out: out, StrideH: at(s, 0), StrideW: at(s, 1), PaddingH: at(p, 0), PaddingW: at(p, 1),
			DilationH: at(l, 0), DilationW: at(l, 1), Groups: g,
		}
	case c.transposed:
		return &mlx.ConvTranspose3DNode{
			X: x, W: w, Out: out, StrideD: at(s, 0), StrideH: at(s, 1), StrideW: at(s, 2), PaddingD: at(p, 0), PaddingH: at(p, 1),
			PaddingW: at(p, 2), DilationD: at(l, 0), DilationH: at(l, 1), DilationW: at(l, 2), OutputPaddingD: at(o, 0),
			OutputPaddingH: at(o, 1), OutputPaddingW: at(o, 2), Groups: g,
		}
	}
	return &mlx.Conv3DNode{
		X: x, W: w, Out: out, StrideD: at(s, 0), StrideH: at(s, 1), StrideW: at(s, 2), PaddingD: at(p, 0), PaddingH: at(p, 1),
		PaddingW: at(p, 2), DilationD: at(l, 0), DilationH: at(l, 1), DilationW: at(l, 2), Groups: g,
	}
}

var poolRules = map[ops.ID]rule{
	ops.AtenMaxPool1dDefault:            maxPool(1),
	ops.AtenMaxPool2dDefault:            maxPool(2),
	ops.AtenMaxPool3dDefault:            maxPool(3),
	ops.AtenMaxPool1dWithIndicesDefault: maxPool(1),
	ops.AtenMaxPool2dWithIndicesDefault: maxPool(2),
	ops.AtenMaxPool3dWithIndicesDefault: maxPool(3),
	ops.AtenAvgPool1dDefault:            avgPool(1),
	ops.AtenAvgPool2dDefault:            avgPool(2),
	ops.AtenAvgPool3dDefault:            avgPool(3),
}

// window is the geometry of a pooling over the last n dimensions.
type window struct {
	kernel, stride, pad, dilation []int64
	ceil                          bool
}

func (m *match) window(n int, dilated bool) (*window, bool) {
	w := &window{dilation: make([]int64, n)}
	var ok bool
	if w.kernel, ok = m.perDim(1, n); !ok {
		return nil, false
	}
	if l := m.arg(2).List(); m.arg(2).Kind() == ir.ArgList && len(l) == 0 || m.arg(2).IsNone() {
		w.stride = w.kernel
	} else if w.stride, ok = m.perDim(2, n); !ok {
		return nil, false
	}
	if w.pad, ok = m.perDim(3, n); !ok {
		return nil, false
	}
	for i := range w.dilation {
		w.dilation[i] = 1
	}
	at := 4
	if dilated {
		if w.dilation, ok = m.perDim(4, n); !ok {
			return nil, false
		}
		at = 5
	}
	w.ceil = flagged(m.arg(at))
	return w, true
}

// pool reduces windows: the padded data is viewed as windows by strides, and these are reduced.
func (m *match) pool(w *window, n int, fill float64, node reduceNode, scale func(b *builder, t mlx.Tid) mlx.Tid) emit {
	x, d := m.in(0), m.out().DType
	rank := x.Type.Rank()
	if !d.IsFloat() {
		return m.no("windows over integers")
	}
	if rank < n+1 {
		return m.no("data of rank %d", rank)
	}
	lead, space := x.Type.Shape[:rank-n], x.Type.Shape[rank-n:]
	outs := m.out().Shape[rank-n:]
	var padded, more []sym.Expr
	padding := false
	for i := range n {
		// With ceil_mode the last window may reach beyond the padding.
		need := sym.Add(sym.Mul(sym.Sub(outs[i], sym.Const(1)), sym.Const(w.stride[i])), sym.Const(w.dilation[i]*(w.kernel[i]-1)+1))
		have := sym.Add(space[i], sym.Const(2*w.pad[i]))
		extra := sym.Const(0)
		if w.ceil {
			extra = sym.Max(sym.Sub(need, have), sym.Const(0))
		}
		padding = padding || w.pad[i] > 0 || !extra.IsConstValue(0)
		more = append(more, sym.Add(sym.Const(w.pad[i]), extra))
		padded = append(padded, sym.Add(have, extra))
	}
	for _, e := range append(append([]sym.Expr(nil), padded...), more...) {
		if why := expressible(e); why != "" {
			return m.no("%s", why)
		}
	}
	return func(b *builder) {
		t := b.in(x)
		if padding {
			p := &mlx.PadNode{X: t, Out: b.temp(d), Mode: "constant", ConstantValue: float32(fill)}
			for range lead {
				p.PadWidth = append(p.PadWidth, lit(0), lit(0))
			}
			for i := range n {
				p.PadWidth = append(p.PadWidth, lit(w.pad[i]), b.int(more[i]))
			}
			b.emit(p)
			t = p.Out
		}
		whole := append(append([]sym.Expr(nil), lead...), padded...)
		strides := make([]sym.Expr, rank)
		acc := sym.Const(1)
		for i := rank - 1; i >= 0; i-- {
			strides[i] = acc
			acc = sym.Mul(acc, whole[i])
		}
		shape := append(append([]sym.Expr(nil), lead...), outs...)
		st := append([]sym.Expr(nil), strides...)
		for i := range n {
			st[rank-n+i] = sym.Mul(strides[rank-n+i], sym.Const(w.stride[i]))
		}
		axes := make([]int32, n)
		for i := range n {
			shape = append(shape, sym.Const(w.kernel[i]))
			st = append(st, sym.Mul(strides[rank-n+i], sym.Const(w.dilation[i])))
			axes[i] = int32(rank + i)
		}
		view := b.temp(d)
		b.emit(&mlx.AsStridedNode{X: t, Out: view, Shape: b.ints(shape), Strides: b.ints(st)})
		if scale == nil {
			b.emit(node(view, b.out(0), axes, false))
			return
		}
		y := b.temp(d)
		b.emit(node(view, y, axes, false))
		b.result(0, scale(b, y))
	}
}

func maxPool(n int) rule {
	return func(m *match) emit {
		w, ok := m.window(n, true)
		if !ok {
			return nil
		}
		if len(m.n.Outs) > 1 && m.n.Outs[1].NumUses() > 0 {
			return m.no("the places of the maxima")
		}
		return m.pool(w, n, -inf, maxReduce, nil)
	}
}

func avgPool(n int) rule {
	return func(m *match) emit {
		w, ok := m.window(n, false)
		if !ok {
			return nil
		}
		countPad := flagged(m.n.ArgNamed("count_include_pad"))
		divisor, fixed := m.n.ArgNamed("divisor_override").Int()
		padding := w.ceil
		area := int64(1)
		for i := range n {
			padding = padding || w.pad[i] > 0
			area *= w.kernel[i]
		}
		d := m.out().DType
		switch {
		case fixed:
			return m.pool(w, n, 0, sumNode, func(b *builder, t mlx.Tid) mlx.Tid {
				out := b.out(0)
				b.emit(divNode(t, b.float(d, float64(divisor)), out))
				return out
			})
		case !padding || countPad && !w.ceil:
			return m.pool(w, n, 0, meanNode, nil)
		}
		// The number of elements in each window, padding in or out, stands in a constant.
		x := m.in(0)
		rank := x.Type.Rank()
		space, ok := ir.ConstInts(x.Type.Shape[rank-n:])
		outs, ok2 := ir.ConstInts(m.out().Shape[rank-n:])
		if !ok || !ok2 {
			return m.no("an average that leaves out padding, over sizes that are not constant")
		}
		counts := windowCounts(w, space, outs, countPad)
		return m.pool(w, n, 0, sumNode, func(b *builder, t mlx.Tid) mlx.Tid {
			out := b.out(0)
			b.emit(divNode(t, b.floats(d, outs, counts), out))
			return out
		})
	}
}

// windowCounts is the number of elements that an average divides by, for each place of the result.
func windowCounts(w *window, space, outs []int64, countPad bool) []float64 {
	per := make([][]int64, len(outs))
	for i := range outs {
		for o := range outs[i] {
			lo := o*w.stride[i] - w.pad[i]
			hi := min(lo+w.kernel[i], space[i]+w.pad[i])
			if !countPad {
				lo, hi = max(lo, 0), min(hi, space[i])
			}
			per[i] = append(per[i], hi-lo)
		}
	}
	counts := []float64{1}
	for i := range per {
		var next []float64
		for _, c := range counts {
			for _, k := range per[i] {
				next = append(next, c*float64(k))
			}
		}
		counts = next
	}
	return counts
}
