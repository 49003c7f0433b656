package passes

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// ints are the n numbers of a pooling argument; an empty stride is the kernel.
func (d *Decomp) ints(name string, n int, empty []int64) ([]int64, bool) {
	a := d.named(name)
	if a.Kind() == ir.ArgList && len(a.List()) == 0 {
		return empty, empty != nil
	}
	ks, ok := spread(a, n).IntList()
	return ks, ok && len(ks) == n
}

// flatten3 makes [*, C, spatial…] one batch of two spatial dimensions [N, 1, a, b].
func (d *Decomp) flatten3(x *ir.Value, a, b sym.Expr, lead []sym.Expr) *ir.Value {
	return d.view(x, sym.Prod(lead...), one1, a, b)
}

func decompAvgPool1d(d *Decomp) []*ir.Value {
	x := d.unsqueeze(d.in(0), -2)
	k, okK := d.ints("kernel_size", 1, nil)
	s, okS := d.ints("stride", 1, k)
	p, okP := d.ints("padding", 1, nil)
	if !okK || !okS || !okP {
		return nil
	}
	y := d.v(op.AtenAvgPool2dDefault(d.Builder, x, ir.Ints(1, k[0]), op.KW("stride", ir.Ints(1, s[0])), op.KW("padding", ir.Ints(0, p[0])),
		op.KW("ceil_mode", d.named("ceil_mode")), op.KW("count_include_pad", d.named("count_include_pad"))))
	return one(d.squeeze(y, -2))
}

func decompAvgPool2d(d *Decomp) []*ir.Value { return d.widened() }

// decompAvgPool3d averages height and width, then depth: a window's mean is the mean of its means, and the counts of
// elements multiply.
func decompAvgPool3d(d *Decomp) []*ir.Value {
	if vs := d.widened(); vs != nil {
		return vs
	}
	x := d.in(0)
	if kindOf(x.Type.DType) < 2 {
		return nil // means of means round twice
	}
	k, okK := d.ints("kernel_size", 3, nil)
	s, okS := d.ints("stride", 3, k)
	p, okP := d.ints("padding", 3, nil)
	if !okK || !okS || !okP {
		return nil
	}
	out := d.N.Out().Type.Shape
	r := x.Type.Rank()
	lead := x.Type.Shape[:r-3]
	in := x.Type.Shape[r-3:]
	o := out[r-3:]
	kws := func(stride, pad ir.Arg) []ir.Named {
		kw := []ir.Named{op.KW("stride", stride), op.KW("padding", pad), op.KW("ceil_mode", d.named("ceil_mode")), op.KW("count_include_pad", d.named("count_include_pad"))}
		if !d.named("divisor_override").IsNone() {
			kw = append(kw, op.KW("divisor_override", ir.Int(1)))
		}
		return kw
	}
	y := d.flatten3(x, in[1], in[2], join(lead, in[:1]))
	y = d.v(op.AtenAvgPool2dDefault(d.Builder, y, ir.Ints(k[1:]...), kws(ir.Ints(s[1:]...), ir.Ints(p[1:]...))...))
	y = d.flatten3(y, in[0], sym.Mul(o[1], o[2]), lead)
	y = d.v(op.AtenAvgPool2dDefault(d.Builder, y, ir.Ints(k[0], 1), kws(ir.Ints(s[0], 1), ir.Ints(p[0], 0))...))
	if n, ok := d.named("divisor_override").Int(); ok {
		y = d.div(y, float64(n))
	}
	return one(d.view(y, out...))
}

func decompMaxPool(d *Decomp) []*ir.Value {
	x := d.in(0)
	kw := []ir.Named{op.KW("stride", d.named("stride")), op.KW("padding", d.named("padding")), op.KW("dilation", d.named("dilation")), op.KW("ceil_mode", d.named("ceil_mode"))}
	switch d.N.Op {
	case ops.AtenMaxPool1dDefault:
		return d.outs(op.AtenMaxPool1dWithIndicesDefault(d.Builder, x, d.N.Arg(1), kw...))[:1]
	case ops.AtenMaxPool2dDefault:
		return d.outs(op.AtenMaxPool2dWithIndicesDefault(d.Builder, x, d.N.Arg(1), kw...))[:1]
	}
	return d.outs(op.AtenMaxPool3dWithIndicesDefault(d.Builder, x, d.N.Arg(1), kw...))[:1]
}

func (d *Decomp) maxPool2d(x *ir.Value, k, s, p, dil []int64) []*ir.Value {
	return d.outs(op.AtenMaxPool2dWithIndicesDefault(d.Builder, x, ir.Ints(k...), op.KW("stride", ir.Ints(s...)), op.KW("padding", ir.Ints(p...)),
		op.KW("dilation", ir.Ints(dil...)), op.KW("ceil_mode", d.named("ceil_mode"))))
}

func (d *Decomp) maxPoolArgs(n int) (k, s, p, dil []int64, ok bool) {
	k, okK := d.ints("kernel_size", n, nil)
	s, okS := d.ints("stride", n, k)
	p, okP := d.ints("padding", n, nil)
	dil, okD := d.ints("dilation", n, nil)
	return k, s, p, dil, okK && okS && okP && okD
}

func decompMaxPool1dIndices(d *Decomp) []*ir.Value {
	k, s, p, dil, ok := d.maxPoolArgs(1)
	if !ok {
		return nil
	}
	// The index within one row is the index in the input.
	o := d.maxPool2d(d.unsqueeze(d.in(0), -2), []int64{1, k[0]}, []int64{1, s[0]}, []int64{0, p[0]}, []int64{1, dil[0]})
	return []*ir.Value{d.squeeze(o[0], -2), d.squeeze(o[1], -2)}
}

// decompMaxPool3dIndices takes the maximum of height and width, then of depth. The index of the maximum comes along: the
// place within the plane is picked by the place along depth.
func decompMaxPool3dIndices(d *Decomp) []*ir.Value {
	k, s, p, dil, ok := d.maxPoolArgs(3)
	if !ok {
		return nil
	}
	x := d.in(0)
	out := d.N.Out().Type.Shape
	r := x.Type.Rank()
	lead, in, o := x.Type.Shape[:r-3], x.Type.Shape[r-3:], out[r-3:]
	plane := d.maxPool2d(d.flatten3(x, in[1], in[2], join(lead, in[:1])), k[1:], s[1:], p[1:], dil[1:])
	hw := sym.Mul(o[1], o[2])
	deep := d.maxPool2d(d.flatten3(plane[0], in[0], hw, lead), []int64{k[0], 1}, []int64{s[0], 1}, []int64{p[0], 0}, []int64{dil[0], 1})
	vals := d.view(deep[0], out...)
	if d.N.Outs[1].NumUses() == 0 {
		return []*ir.Value{vals, nil}
	}
	n := sym.Prod(lead...)
	// deep's index is depth*hw + column; the plane's index at that place is y*W + x.
	at := d.view(deep[1], n, sym.Mul(o[0], hw))
	within := d.v(op.AtenGatherDefault(d.Builder, d.view(plane[1], n, sym.Mul(in[0], hw)), ir.Int(1), at))
	idx := d.add(d.mul(d.floorDiv(at, hw), sym.Mul(in[1], in[2])), within)
	return []*ir.Value{vals, d.view(idx, out...)}
}

func decompAdaptiveAvgPool1d(d *Decomp) []*ir.Value {
	size := spread(d.N.Arg(1), 1).List()[0]
	y := d.v(op.AtenAdaptiveAvgPool2dDefault(d.Builder, d.unsqueeze(d.in(0), -2), ir.List(ir.Int(1), size)))
	return one(d.squeeze(y, -2))
}

func decompAdaptiveAvgPool2d(d *Decomp) []*ir.Value {
	x := d.in(0)
	r := x.Type.Rank()
	out := d.N.Out().Type.Shape
	if out[r-1].IsConstValue(1) && out[r-2].IsConstValue(1) {
		return one(d.mean(x, true, r-2, r-1))
	}
	if d.N.Op == ops.AtenAdaptiveAvgPool2dDefault {
		return one(d.v(op.AtenUnderAdaptiveAvgPool2dDefault(d.Builder, x, ir.SymInts(out[r-2:]...))))
	}
	y := d.adaptive(x, r-2, out[r-2], d.mean)
	if y == nil {
		return nil
	}
	if y = d.adaptive(y, r-1, out[r-1], d.mean); y == nil {
		return nil
	}
	return one(y)
}

func decompAdaptiveAvgPool3d(d *Decomp) []*ir.Value {
	x := d.in(0)
	r := x.Type.Rank()
	out := d.N.Out().Type.Shape
	lead, in, o := x.Type.Shape[:r-3], x.Type.Shape[r-3:], out[r-3:]
	if o[0].IsConstValue(1) && o[1].IsConstValue(1) && o[2].IsConstValue(1) {
		return one(d.mean(x, true, r-3, r-2, r-1))
	}
	y := d.v(op.AtenAdaptiveAvgPool2dDefault(d.Builder, d.flatten3(x, in[1], in[2], join(lead, in[:1])), ir.SymInts(o[1:]...)))
	hw := sym.Mul(o[1], o[2])
	y = d.v(op.AtenAdaptiveAvgPool2dDefault(d.Builder, d.flatten3(y, in[0], hw, lead), ir.SymInts(o[0], hw)))
	return one(d.view(y, out...))
}

// adaptive reduces dimension dim to n windows, each from floor(i*size/n) to ceil((i+1)*size/n).
func (d *Decomp) adaptive(x *ir.Value, dim int, n sym.Expr, reduce func(*ir.Value, bool, ...int) *ir.Value) *ir.Value {
	size, okS := x.Type.Shape[dim].IsConst()
	k, okN := n.IsConst()
	if !okS || !okN || k > 4096 {
		return nil
	}
	if k == size {
		return x
	}
	if k > 0 && size%k == 0 {
		y := d.view(x, join(x.Type.Shape[:dim], ir.Consts(k, size/k), x.Type.Shape[dim+1:])...)
		return reduce(y, false, dim+1)
	}
	parts := make([]*ir.Value, k)
	for i := range k {
		parts[i] = reduce(d.slice(x, dim, i*size/k, ((i+1)*size+k-1)/k), true, dim)
	}
	return d.cat(dim, parts...)
}

// decompAdaptiveMaxPool takes maxima of windows one dimension after the other. Indices come along as a second tensor that
// is picked by the place of the maximum.
func decompAdaptiveMaxPool(d *Decomp) []*ir.Value {
	x := d.in(0)
	r := x.Type.Rank()
	out := d.N.Out().Type.Shape
	n := map[string]int{"adaptive_max_pool1d": 1, "adaptive_max_pool2d": 2, "adaptive_max_pool3d": 3}[d.N.Info().Schema.Base]
	if d.N.Outs[1].NumUses() == 0 {
		for i := r - n; i < r; i++ {
			if x = d.adaptive(x, i, out[i], d.amax); x == nil {
				return nil
			}
		}
		return []*ir.Value{x, nil}
	}
	spatial := x.Type.Shape[r-n:]
	idx := d.view(d.arange(sym.Prod(spatial...), ops.Int64), spatial...)
	idx = d.expand(idx, x.Type.Shape...)
	for i := r - 1; i >= r-n; i-- {
		size, okS := x.Type.Shape[i].IsConst()
		k, okN := out[i].IsConst()
		if !okS || !okN || k > 4096 {
			return nil
		}
		var vals, places []*ir.Value
		for j := range k {
			lo, hi := j*size/k, ((j+1)*size+k-1)/k
			m := d.outs(op.AtenMaxDim(d.Builder, d.slice(x, i, lo, hi), ir.Int(int64(i)), op.KW("keepdim", ir.Bool(true))))
			vals = append(vals, m[0])
			places = append(places, d.v(op.AtenGatherDefault(d.Builder, d.slice(idx, i, lo, hi), ir.Int(int64(i)), m[1])))
		}
		x, idx = d.cat(i, vals...), d.cat(i, places...)
	}
	return []*ir.Value{x, idx}
}

// decompMaxUnpool puts values at flat places of each plane.
func decompMaxUnpool(d *Decomp) []*ir.Value {
	x, idx := d.in(0), d.in(1)
	out := d.N.Out().Type.Shape
	n := 2
	if d.N.Info().Schema.Base == "max_unpool3d" {
		n = 3
	}
	r := x.Type.Rank()
	lead := sym.Prod(x.Type.Shape[:r-n]...)
	size := sym.Prod(x.Type.Shape[r-n:]...)
	flat := d.full(0, x.Type.DType, lead, sym.Prod(out[r-n:]...))
	y := d.v(op.AtenScatterSrc(d.Builder, flat, ir.Int(1), d.view(idx, lead, size), d.view(x, lead, size)))
	return one(d.view(y, out...))
}
