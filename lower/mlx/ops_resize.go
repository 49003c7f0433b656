package mlx

import (
	"math"

	"github.com/lathe-ml/lathe/codegen/fb/mlx"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ops"
)

var resizeRules = map[ops.ID]rule{
	ops.AtenUpsampleNearest1dDefault:      nearest(1),
	ops.AtenUpsampleNearest1dVec:          nearest(1),
	ops.AtenUpsampleNearest2dDefault:      nearest(2),
	ops.AtenUpsampleNearest2dVec:          nearest(2),
	ops.AtenUpsampleNearest3dDefault:      nearest(3),
	ops.AtenUpsampleNearest3dVec:          nearest(3),
	ops.AtenUpsampleLinear1dDefault:       interpolate(1, linearRow),
	ops.AtenUpsampleLinear1dVec:           interpolate(1, linearRow),
	ops.AtenUpsampleBilinear2dDefault:     interpolate(2, linearRow),
	ops.AtenUpsampleBilinear2dVec:         interpolate(2, linearRow),
	ops.AtenUpsampleTrilinear3dDefault:    interpolate(3, linearRow),
	ops.AtenUpsampleTrilinear3dVec:        interpolate(3, linearRow),
	ops.AtenUpsampleBicubic2dDefault:      interpolate(2, cubicRow),
	ops.AtenUpsampleBicubic2dVec:          interpolate(2, cubicRow),
	ops.AtenAdaptiveAvgPool1dDefault:      adaptiveAvg(1),
	ops.AtenAdaptiveAvgPool2dDefault:      adaptiveAvg(2),
	ops.AtenAdaptiveAvgPool3dDefault:      adaptiveAvg(3),
	ops.AtenUnderAdaptiveAvgPool2dDefault: adaptiveAvg(2),
	ops.AtenUnderAdaptiveAvgPool3dDefault: adaptiveAvg(3),
}

// spaces gives the last n sizes of the first argument and of the result.
func (m *match) spaces(n int) (in, out []int64, ok bool) {
	x := m.in(0).Type
	if x.Rank() < n {
		m.no("data of rank %d", x.Rank())
		return nil, nil, false
	}
	in, ok = ir.ConstInts(x.Shape[x.Rank()-n:])
	o := m.out().Shape
	out, ok2 := ir.ConstInts(o[len(o)-n:])
	if !ok || !ok2 {
		m.no("sizes that are not constant")
		return nil, nil, false
	}
	return in, out, true
}

// scales are the factors that a resize was given, zero where it was given sizes.
func (m *match) scales(n int) ([]float64, bool) {
	out := make([]float64, n)
	if a := m.n.ArgNamed("scale_factors"); !a.IsNone() {
		for i, e := range a.List() {
			f, ok := e.Float()
			if !ok || i >= n {
				m.no("computed factors")
				return nil, false
			}
			out[i] = f
		}
		return out, true
	}
	names := [][]string{{"scales"}, {"scales_h", "scales_w"}, {"scales_d", "scales_h", "scales_w"}}[n-1]
	for i, name := range names {
		if a := m.n.ArgNamed(name); !a.IsNone() {
			f, ok := a.Float()
			if !ok {
				m.no("computed factors")
				return nil, false
			}
			out[i] = f
		}
	}
	return out, true
}

// ratio is how far the source moves for each step of the result, in the precision that torch has it.
func ratio(in, out int64, scale float64) float32 {
	if scale > 0 {
		return float32(1 / scale)
	}
	return float32(in) / float32(out)
}

func nearest(n int) rule {
	return func(m *match) emit {
		x := m.in(0)
		in, out, ok := m.spaces(n)
		scales, ok2 := m.scales(n)
		if !ok || !ok2 {
			return nil
		}
		rank := x.Type.Rank()
		return func(b *builder) {
			t := b.raw(x)
			for i := range n {
				r := ratio(in[i], out[i], scales[i])
				var p []byte
				same := in[i] == out[i]
				for o := range out[i] {
					k := min(int64(float32(o)*r), in[i]-1)
					same = same && k == o
					e, _ := encode(ops.Int32, ir.Int(k))
					p = append(p, e...)
				}
				if same {
					continue
				}
				y := b.temp(b.dtype(t))
				take(b, t, b.bytes(ops.Int32, []int64{out[i]}, p), y, rank-n+i)
				t = y
			}
			b.result(0, t)
		}
	}
}

// interpolate resizes by one matrix a dimension, whose rows hold the weights of the source for one place of the result.
func interpolate(n int, row func(w []float64, o, in, out int64, r float32, align bool)) rule {
	return func(m *match) emit {
		in, out, ok := m.spaces(n)
		scales, ok2 := m.scales(n)
		align, ok3 := m.n.ArgNamed("align_corners").Bool()
		if !ok || !ok2 || !ok3 || !m.out().DType.IsFloat() {
			return m.no("integers or computed settings")
		}
		mats := make([][]float64, n)
		for i := range n {
			r := ratio(in[i], out[i], scales[i])
			if align {
				r = 0
				if out[i] > 1 {
					r = float32(in[i]-1) / float32(out[i]-1)
				}
			}
			for o := range out[i] {
				w := make([]float64, in[i])
				row(w, o, in[i], out[i], r, align)
				mats[i] = append(mats[i], w...)
			}
		}
		return m.resize(in, out, mats)
	}
}

func linearRow(w []float64, o, in, _ int64, r float32, align bool) {
	src := float32(o) * r
	if !align {
		src = max((float32(o)+0.5)*r-0.5, 0)
	}
	k := min(int64(src), in-1)
	f := min(max(src-float32(k), 0), 1)
	w[k] += float64(1 - f)
	w[min(k+1, in-1)] += float64(f)
}

func cubicRow(w []float64, o, in, _ int64, r float32, align bool) {
	src := float32(o) * r
	if !align {
		src = (float32(o)+0.5)*r - 0.5
	}
	base := math.Floor(float64(src))
	t := float64(src) - base
	const a = -0.75
	near := func(x float64) float64 { return ((a+2)*x-(a+3))*x*x + 1 }
	far := func(x float64) float64 { return ((a*x-5*a)*x+8*a)*x - 4*a }
	for i, c := range []float64{far(t + 1), near(t), near(1 - t), far(2 - t)} {
		k := min(max(int64(base)-1+int64(i), 0), in-1)
		w[k] += c
	}
}

func adaptiveAvg(n int) rule {
	return func(m *match) emit {
		x, d := m.in(0), m.out().DType
		if !d.IsFloat() {
			return m.no("an average of integers")
		}
		rank := x.Type.Rank()
		ones, axes := true, make([]int32, n)
		for i := range n {
			ones = ones && m.out().Shape[rank-n+i].IsConstValue(1)
			axes[i] = int32(rank - n + i)
		}
		if ones {
			return func(b *builder) { b.emit(meanNode(b.in(x), b.out(0), axes, true)) }
		}
		in, out, ok := m.spaces(n)
		if !ok {
			return nil
		}
		mats := make([][]float64, n)
		for i := range n {
			for o := range out[i] {
				w := make([]float64, in[i])
				lo, hi := o*in[i]/out[i], ((o+1)*in[i]+out[i]-1)/out[i]
				for k := lo; k < hi; k++ {
					w[k] = 1 / float64(hi-lo)
				}
				mats[i] = append(mats[i], w...)
			}
		}
		return m.resize(in, out, mats)
	}
}

// resize multiplies the last dimensions by a matrix each, rows out, columns in.
func (m *match) resize(in, out []int64, mats [][]float64) emit {
	x, d := m.in(0), m.out().DType
	n := len(in)
	if n == 3 {
		if _, ok := m.static(x.Type, "data"); !ok {
			return nil
		}
	}
	shape := m.out().Shape
	return func(b *builder) {
		t := b.in(x)
		mul := func(a, c mlx.Tid) mlx.Tid {
			node := mlx.NewAddmmNode()
			node.Mat1, node.Mat2, node.Out = a, c, b.temp(d)
			b.emit(node)
			return node.Out
		}
		for i := n - 1; i >= 0; i-- {
			if in[i] == out[i] && isUnit(mats[i], in[i]) {
				continue
			}
			switch {
			case i == n-1:
				t = mul(t, b.floats(d, []int64{in[i], out[i]}, flipMatrix(mats[i], out[i], in[i])))
			case i == n-2:
				t = mul(b.floats(d, []int64{out[i], in[i]}, mats[i]), t)
			default:
				lead := shape[:len(shape)-n]
				flat, back := b.temp(d), b.temp(d)
				b.emit(&mlx.ReshapeNode{X: t, Out: flat, Shape: append(b.ints(lead), lit(in[i]), lit(out[1]*out[2]))})
				y := mul(b.floats(d, []int64{out[i], in[i]}, mats[i]), flat)
				b.emit(&mlx.ReshapeNode{X: y, Out: back, Shape: b.ints(shape)})
				t = back
			}
		}
		b.result(0, t)
	}
}

func isUnit(w []float64, n int64) bool {
	for i, f := range w {
		want := 0.0
		if int64(i)/n == int64(i)%n {
			want = 1
		}
		if f != want {
			return false
		}
	}
	return true
}

func flipMatrix(w []float64, rows, cols int64) []float64 {
	out := make([]float64, len(w))
	for r := range rows {
		for c := range cols {
			out[c*rows+r] = w[r*cols+c]
		}
	}
	return out
}
