package passes

import (
	"math"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// scaleOf is the number of input places a step of the output makes along spatial dimension i, as torch computes it.
func (d *Decomp) scaleOf(i, n int, in, out int64) float64 {
	if s := d.named("scale_factors"); !s.IsNone() {
		if l := s.List(); i < len(l) {
			if f, ok := l[i].Float(); ok && f > 0 {
				return 1 / f
			}
		}
	}
	names := map[int][]string{1: {"scales"}, 2: {"scales_h", "scales_w"}, 3: {"scales_d", "scales_h", "scales_w"}}[n]
	if f, ok := d.named(names[i]).Float(); ok && f > 0 {
		return 1 / f
	}
	return float64(in) / float64(out)
}

// spatial tells the sizes of the last n dimensions before and after, where they are constant.
func (d *Decomp) spatial(n int) (in, out []int64, ok bool) {
	x := d.in(0)
	r := x.Type.Rank()
	in, okI := ir.ConstInts(x.Type.Shape[r-n:])
	out, okO := ir.ConstInts(d.N.Out().Type.Shape[r-n:])
	return in, out, okI && okO
}

func (d *Decomp) planes() int { return d.N.Out().Type.Rank() - 2 }

// decompUpsampleNearest picks places along each dimension; two dimensions have a kernel.
func decompUpsampleNearest(d *Decomp) []*ir.Value {
	x := d.in(0)
	n := d.planes()
	exact := d.N.Info().Schema.Base[0] == '_'
	r := x.Type.Rank()
	if !exact && n <= 2 && d.N.Op != ops.AtenUpsampleNearest2dVec {
		// As the kernel's form; one dimension becomes the last of two.
		out := d.N.Out().Type.Shape[r-n:]
		y := x
		if n == 1 {
			y, out = d.unsqueeze(x, 2), append([]sym.Expr{one1}, out...)
		}
		if scale, ok := d.kernelScales(n); ok {
			y = d.v(op.AtenUpsampleNearest2dVec(d.Builder, y, ir.SymInts(out...), scale))
			if y != nil {
				return one(d.view(y, d.N.Out().Type.Shape...))
			}
		}
	}
	in, out, ok := d.spatial(n)
	if !ok {
		return nil
	}
	for i := range n {
		scale := d.scaleOf(i, n, in[i], out[i])
		at := make([]float64, out[i])
		for k := range at {
			p := float64(k)
			if exact {
				p += 0.5
			}
			at[k] = math.Min(math.Floor(float64(float32(p)*float32(scale))), float64(in[i]-1))
		}
		idx, ok := d.constant("places", ops.Int64, out[i:i+1], at)
		if !ok {
			return nil
		}
		x = d.take(x, r-n+i, idx)
	}
	return one(x)
}

// kernelScales are scale factors for the kernels' vec form: none, which means that the sizes tell.
func (d *Decomp) kernelScales(n int) (ir.Arg, bool) {
	in, out, ok := d.spatial(n)
	if !ok {
		return ir.None, d.named("scale_factors").IsNone() && d.named("scales").IsNone() && d.named("scales_h").IsNone()
	}
	for i := range n {
		if math.Abs(d.scaleOf(i, n, in[i], out[i])-float64(in[i])/float64(out[i])) > 1e-9 {
			return ir.None, false
		}
	}
	return ir.None, true
}

// resize multiplies the last n dimensions by matrices of weights, one row for each place of the output.
func (d *Decomp) resize(n int, weights func(i int, in, out int64, scale float64) []float64) []*ir.Value {
	in, out, ok := d.spatial(n)
	if !ok {
		return nil
	}
	x := d.opmath(d.in(0))
	bytes := d.in(0).Type.DType == ops.Uint8
	r := x.Type.Rank()
	for i := n - 1; i >= 0; i-- {
		w, ok := d.constant("weights", x.Type.DType, []int64{in[i], out[i]}, transpose(weights(i, in[i], out[i], d.scaleOf(i, n, in[i], out[i])), out[i], in[i]))
		if !ok {
			return nil
		}
		dim := r - n + i
		if dim != r-1 {
			x = d.swap(x, dim, r-1)
		}
		x = d.matmul(x, w)
		if dim != r-1 {
			x = d.swap(x, dim, r-1)
		}
		if bytes {
			// torch resizes images a dimension at a time and rounds to bytes after each.
			x = d.floor(d.add(d.clamp(x, 0.0, 255.0), 0.5))
		}
	}
	return d.back(x)
}

func transpose(m []float64, rows, cols int64) []float64 {
	t := make([]float64, len(m))
	for i := range rows {
		for j := range cols {
			t[j*rows+i] = m[i*cols+j]
		}
	}
	return t
}

// source is the place in the input of output place k.
func source(k, in, out int64, scale float64, corners bool) float64 {
	if corners {
		if out <= 1 {
			return 0
		}
		return float64(k) * float64(in-1) / float64(out-1)
	}
	return (float64(k)+0.5)*scale - 0.5
}

func linearWeights(in, out int64, scale float64, corners bool) []float64 {
	w := make([]float64, in*out)
	for k := range out {
		p := math.Max(source(k, in, out, scale, corners), 0)
		lo := min(int64(p), in-1)
		hi := min(lo+1, in-1)
		f := p - float64(lo)
		w[k*in+lo] += 1 - f
		w[k*in+hi] += f
	}
	return w
}

func cubic(a, x float64) float64 {
	x = math.Abs(x)
	switch {
	case x <= 1:
		return ((a+2)*x-(a+3))*x*x + 1
	case x < 2:
		return ((a*x-5*a)*x+8*a)*x - 4*a
	}
	return 0
}

func cubicWeights(in, out int64, scale float64, corners bool) []float64 {
	w := make([]float64, in*out)
	for k := range out {
		p := source(k, in, out, scale, corners)
		base := math.Floor(p)
		for j := int64(-1); j <= 2; j++ {
			at := min(max(int64(base)+j, 0), in-1)
			w[k*in+at] += cubic(-0.75, p-base-float64(j))
		}
	}
	return w
}

// antialiased spreads a filter over as many places as the output skips.
func antialiased(in, out int64, scale float64, corners bool, support float64, filter func(float64) float64) []float64 {
	if corners && out > 1 {
		scale = float64(in-1) / float64(out-1)
	} else if corners {
		scale = 0
	}
	w := make([]float64, in*out)
	width, inv := support, 1.0
	if scale >= 1 {
		width, inv = support*scale, 1/scale
	}
	for k := range out {
		center := scale * (float64(k) + 0.5)
		lo := max(int64(center-width+0.5), 0)
		hi := min(int64(center+width+0.5), in)
		sum := 0.0
		for j := lo; j < hi; j++ {
			f := filter((float64(j) - center + 0.5) * inv)
			w[k*in+j] = f
			sum += f
		}
		for j := lo; j < hi && sum != 0; j++ {
			w[k*in+j] /= sum
		}
	}
	return w
}

func decompUpsampleLinear(d *Decomp) []*ir.Value {
	corners := boolArg(d.named("align_corners"))
	n := d.planes()
	if n == 2 && d.N.Op != ops.AtenUpsampleBilinear2dVec && d.in(0).Type.DType != ops.Uint8 {
		if scale, ok := d.kernelScales(n); ok {
			out := d.N.Out().Type.Shape
			return one(d.v(op.AtenUpsampleBilinear2dVec(d.Builder, d.in(0), ir.SymInts(out[len(out)-2:]...), ir.Bool(corners), scale)))
		}
	}
	if n == 1 {
		if scale, ok := d.kernelScales(n); ok {
			out := d.N.Out().Type.Shape
			y := d.v(op.AtenUpsampleBilinear2dVec(d.Builder, d.unsqueeze(d.in(0), 2), ir.SymInts(one1, out[2]), ir.Bool(corners), scale))
			return one(d.view(y, out...))
		}
	}
	return d.resize(n, func(_ int, in, out int64, scale float64) []float64 { return linearWeights(in, out, scale, corners) })
}

func decompUpsampleBicubic(d *Decomp) []*ir.Value {
	corners := boolArg(d.named("align_corners"))
	return d.resize(2, func(_ int, in, out int64, scale float64) []float64 { return cubicWeights(in, out, scale, corners) })
}

func decompUpsampleAa(d *Decomp) []*ir.Value {
	corners := boolArg(d.named("align_corners"))
	support, filter := 1.0, func(x float64) float64 { return math.Max(0, 1-math.Abs(x)) }
	if d.N.Info().Schema.Base == "_upsample_bicubic2d_aa" {
		support, filter = 2, func(x float64) float64 { return cubic(-0.5, x) }
	}
	return d.resize(2, func(_ int, in, out int64, scale float64) []float64 {
		return antialiased(in, out, scale, corners, support, filter)
	})
}

func decompGridSampler(d *Decomp) []*ir.Value {
	a := d.N.Args()
	if d.in(0).Type.Rank() == 5 {
		return one(d.v(op.AtenGridSampler3dDefault(d.Builder, d.in(0), d.in(1), a[2], a[3], a[4])))
	}
	return one(d.v(op.AtenGridSampler2dDefault(d.Builder, d.in(0), d.in(1), a[2], a[3], a[4])))
}

// gridPlace turns a coordinate in [-1, 1] into a place along a dimension, inside of it as the padding mode asks.
func (d *Decomp) gridPlace(g *ir.Value, size int64, padding int64, corners bool) *ir.Value {
	n := float64(size)
	var p *ir.Value
	if corners {
		p = d.mul(d.add(g, 1.0), (n-1)/2)
	} else {
		p = d.div(d.sub(d.mul(d.add(g, 1.0), n), 1.0), 2.0)
	}
	switch padding {
	case 1:
		p = d.clamp(p, 0.0, n-1)
	case 2:
		lo, span := 0.0, n-1
		if !corners {
			lo, span = -0.5, n
		}
		if span > 0 {
			q := d.abs(d.sub(p, lo))
			flips := d.floor(d.div(q, span))
			rest := d.sub(q, d.mul(flips, span))
			odd := d.gt(d.sub(flips, d.mul(d.floor(d.div(flips, 2.0)), 2.0)), 0.5)
			p = d.add(d.where(odd, d.sub(span, rest), rest), lo)
		} else {
			p = d.mul(p, 0.0)
		}
		p = d.clamp(p, 0.0, n-1)
	}
	return p
}

// decompGridSampler2d samples images and volumes where the kernel declines: linear and nearest.
func decompGridSampler2d(d *Decomp) []*ir.Value {
	if vs := d.widened(); vs != nil {
		return vs
	}
	x, g := d.in(0), d.in(1)
	mode, okM := d.N.Arg(2).Int()
	padding, okP := d.N.Arg(3).Int()
	sizes, okS := ir.ConstInts(x.Type.Shape[2:])
	if !okM || !okP || !okS || mode > 1 {
		return nil
	}
	corners := boolArg(d.N.Arg(4))
	k := len(sizes)
	places := make([]*ir.Value, k)
	all := int64(1)
	for i, s := range sizes {
		// The grid names the last dimension first.
		places[i] = d.gridPlace(d.pickAt(g, k+1, k-1-i), s, padding, corners)
		all *= s
	}
	n, c := x.Type.Shape[0], x.Type.Shape[1]
	out := g.Type.Shape[1 : k+1]
	flat := d.view(x, n, c, sym.Const(all))
	at := func(ps []*ir.Value) *ir.Value {
		var inside, i *ir.Value
		for j, p := range ps {
			top := float64(sizes[j] - 1)
			in, q := d.and(d.ge(p, 0.0), d.le(p, top)), d.cast(d.clamp(p, 0.0, top), ops.Int64)
			if i == nil {
				inside, i = in, q
				continue
			}
			inside, i = d.and(inside, in), d.add(d.mul(i, sizes[j]), q)
		}
		idx := d.expand(d.view(i, n, one1, sym.Prod(out...)), n, c, sym.Prod(out...))
		v := d.view(d.v(op.AtenGatherDefault(d.Builder, flat, ir.Int(2), idx)), join(dimsOf(n, c), out)...)
		return d.where(d.unsqueeze(inside, 1), v, 0.0)
	}
	if mode == 1 {
		for i, p := range places {
			places[i] = d.round(p)
		}
		return d.back(at(places))
	}
	var sum *ir.Value
	lower, upper := make([]*ir.Value, k), make([]*ir.Value, k)
	far, near := make([]*ir.Value, k), make([]*ir.Value, k)
	for i, p := range places {
		lower[i] = d.floor(p)
		upper[i] = d.add(lower[i], 1.0)
		far[i] = d.sub(p, lower[i])
		near[i] = d.sub(1.0, far[i])
	}
	for corner := range 1 << k {
		var w *ir.Value
		ps := make([]*ir.Value, k)
		for i := range k {
			p, f := lower[i], near[i]
			if corner>>(k-1-i)&1 == 1 {
				p, f = upper[i], far[i]
			}
			ps[i] = p
			if w == nil {
				w = f
			} else {
				w = d.mul(w, f)
			}
		}
		v := d.mul(at(ps), d.unsqueeze(w, 1))
		if sum == nil {
			sum = v
		} else {
			sum = d.add(sum, v)
		}
	}
	return d.back(sum)
}

func decompAffineGrid(d *Decomp) []*ir.Value {
	theta := d.in(0)
	size, ok := d.N.Arg(1).IntList()
	if !ok || len(size) < 4 {
		return nil
	}
	corners := boolArg(d.N.Arg(2))
	n := len(size) - 2
	spatial := ir.Consts(size[2:]...)
	var cols []*ir.Value
	for i := n - 1; i >= 0; i-- {
		k := size[2+i]
		vals := make([]float64, k)
		for j := range vals {
			switch {
			case corners && k == 1:
				vals[j] = 0
			case corners:
				vals[j] = -1 + 2*float64(j)/float64(k-1)
			default:
				vals[j] = (2*float64(j)+1)/float64(k) - 1
			}
		}
		v, ok := d.constant("grid", theta.Type.DType, []int64{k}, vals)
		if !ok {
			return nil
		}
		ones := make([]sym.Expr, n)
		for j := range ones {
			ones[j] = one1
		}
		ones[i] = sym.Const(k)
		cols = append(cols, d.expand(d.view(v, ones...), spatial...))
	}
	cols = append(cols, d.full(1.0, theta.Type.DType, spatial...))
	base := d.view(d.stack(n, cols...), sym.Prod(spatial...), sym.Const(int64(n+1)))
	base = d.expand(base, theta.Type.Shape[0], base.Type.Shape[0], base.Type.Shape[1])
	y := d.bmm(base, d.swap(theta, 1, 2))
	return one(d.view(y, d.N.Out().Type.Shape...))
}
