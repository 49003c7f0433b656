package interp

import (
	"math"
	"slices"
	"strings"

	"github.com/lathe-ml/lathe/ops"
)

// tapWeights says how one output place of a dimension is made: from places with weights.
type tapWeights struct {
	at []int64
	w  []float64
}

// scaleOf is the distance of output places in input places.
func scaleOf(in, out int64, align bool, scale float64) float64 {
	if align {
		if out > 1 {
			return float64(in-1) / float64(out-1)
		}
		return 0
	}
	if scale > 0 {
		return 1 / scale
	}
	return float64(in) / float64(out)
}

func sourceAt(s float64, i int64, align, cubic bool) float64 {
	if align {
		return s * float64(i)
	}
	x := s*(float64(i)+0.5) - 0.5
	if x < 0 && !cubic {
		return 0
	}
	return x
}

// cubicWeights are those of the four neighbours of a point t past the second.
func cubicWeights(t, a float64) [4]float64 {
	near := func(x float64) float64 { return ((a+2)*x-(a+3))*x*x + 1 }
	far := func(x float64) float64 { return ((a*x-5*a)*x+8*a)*x - 4*a }
	return [4]float64{far(t + 1), near(t), near(1 - t), far(2 - t)}
}

// resizeTaps gives the taps of each output place of a dimension.
func resizeTaps(mode string, in, out int64, align bool, scale float64) []tapWeights {
	taps := make([]tapWeights, out)
	s := scaleOf(in, out, align, scale)
	f32 := func(x float64) float64 { return float64(float32(x)) }
	for i := range taps {
		o := int64(i)
		switch mode {
		case "nearest":
			// torch computes the place in float32.
			k := int64(math.Floor(f32(float64(o) * f32(s))))
			if in == out && scale == 0 {
				k = o
			}
			taps[i] = tapWeights{[]int64{min(k, in-1)}, []float64{1}}
		case "nearest_exact":
			k := int64(math.Floor(f32((float64(o) + 0.5) * f32(s))))
			taps[i] = tapWeights{[]int64{min(k, in-1)}, []float64{1}}
		case "linear":
			x := sourceAt(s, o, align, false)
			k := min(int64(x), in-1)
			k2 := min(k+1, in-1)
			l := min(max(x-float64(k), 0), 1)
			taps[i] = tapWeights{[]int64{k, k2}, []float64{1 - l, l}}
		case "cubic":
			x := sourceAt(s, o, align, true)
			fl := math.Floor(x)
			w := cubicWeights(x-fl, -0.75)
			var t tapWeights
			for k := range int64(4) {
				t.at = append(t.at, min(max(int64(fl)-1+k, 0), in-1))
				t.w = append(t.w, w[k])
			}
			taps[i] = t
		case "linear_aa", "cubic_aa":
			half := 1.0
			filter := func(x float64) float64 { return max(0, 1-math.Abs(x)) }
			if mode == "cubic_aa" {
				half = 2
				filter = func(x float64) float64 {
					const a = -0.5
					x = math.Abs(x)
					switch {
					case x < 1:
						return ((a+2)*x-(a+3))*x*x + 1
					case x < 2:
						return (((x-5)*x+8)*x - 4) * a
					}
					return 0
				}
			}
			support, inv := half, 1.0
			if s >= 1 {
				support, inv = half*s, 1/s
			}
			center := s * (float64(o) + 0.5)
			lo := max(int64(center-support+0.5), 0)
			hi := min(int64(center+support+0.5), in)
			var t tapWeights
			sum := 0.0
			for k := lo; k < hi; k++ {
				w := filter((float64(k) - center + 0.5) * inv)
				t.at, t.w = append(t.at, k), append(t.w, w)
				sum += w
			}
			for k := range t.w {
				t.w[k] /= sum
			}
			taps[i] = t
		}
	}
	return taps
}

// resample applies taps along dimension d of row-major values.
func resample(v []float64, sizes []int64, d int, taps []tapWeights) []float64 {
	inner, outer := numel(sizes[d+1:]), numel(sizes[:d])
	n, m := sizes[d], int64(len(taps))
	out := make([]float64, outer*m*inner)
	for o := range outer {
		for i, t := range taps {
			dst := out[(o*m+int64(i))*inner : (o*m+int64(i)+1)*inner]
			for k, at := range t.at {
				w := t.w[k]
				src := v[(o*n+at)*inner : (o*n+at+1)*inner]
				if len(t.at) == 1 {
					copy(dst, src)
					continue
				}
				for j, x := range src {
					dst[j] += w * x
				}
			}
		}
	}
	return out
}

// evalUpsample resizes space: nearest, linear, cubic and their antialiased forms, by sizes or factors.
func evalUpsample(c *Call) ([]Value, error) {
	t := c.T(0)
	b := strings.TrimPrefix(c.base(), "_")
	nd := 2
	for k, n := range map[string]int{"1d": 1, "2d": 2, "3d": 3} {
		if strings.Contains(b, k) {
			nd = n
		}
	}
	mode := "linear"
	switch {
	case strings.Contains(b, "nearest_exact"):
		mode = "nearest_exact"
	case strings.Contains(b, "nearest"):
		mode = "nearest"
	case strings.Contains(b, "bicubic"):
		mode = "cubic"
	}
	if strings.HasSuffix(b, "_aa") {
		mode += "_aa"
	}
	need(t, nd+2, "the resized tensor")
	space := t.Sizes[2:]
	align := false
	if i := c.index("align_corners"); i >= 0 {
		align = c.Bool(i)
	}
	out, scales := make([]int64, nd), make([]float64, nd)
	if i := c.index("scale_factors"); i >= 0 {
		l, _ := c.Args[i].([]Value)
		switch {
		case c.has(1) && len(c.Ints(1)) > 0:
			copy(out, c.intsN(1, nd))
		case len(l) > 0:
			for k := range nd {
				v := l[min(k, len(l)-1)]
				scales[k] = mustFloat(v)
				out[k] = int64(float64(space[k]) * scales[k])
			}
		default:
			fail("neither sizes nor factors to resize to")
		}
	} else {
		copy(out, c.intsN(1, nd))
		names := [][]string{{"scales"}, {"scales_h", "scales_w"}, {"scales_d", "scales_h", "scales_w"}}[nd-1]
		for k, n := range names {
			scales[k] = c.floatOr(c.index(n), 0)
		}
	}
	v, sizes := t.floats(), slices.Clone(t.Sizes)
	for i := range nd {
		k := i
		if t.DType == ops.Uint8 {
			k = nd - 1 - i
		}
		if out[k] <= 0 || space[k] <= 0 {
			fail("resizing %v to %v", space, out)
		}
		taps := resizeTaps(mode, space[k], out[k], align, scales[k])
		if half(t.DType) && (mode == "cubic" || mode == "linear" && nd == 3) { // weights are kept in the tensor's type
			for i := range taps {
				taps[i].w = mapSlice(taps[i].w, halfRounder(t.DType))
			}
		}
		v = resample(v, sizes, 2+k, taps)
		sizes[2+k] = out[k]
		if t.DType == ops.Uint8 {
			// torch resizes images a dimension at a time, the last one first, and rounds to bytes after each.
			v = mapSlice(v, func(x float64) float64 { return math.Floor(min(max(x, 0), 255) + 0.5) })
		}
	}
	return one(fromFloats(t.DType, sizes, slices.Clone(v)))
}

// reflectInto folds a coordinate into [lo, hi].
func reflectInto(x, lo, hi float64) float64 {
	if lo == hi {
		return 0
	}
	span := hi - lo
	x = math.Abs(x - lo)
	extra := math.Mod(x, span)
	if int64(math.Floor(x/span))%2 == 0 {
		return extra + lo
	}
	return span - extra + lo
}

// evalGridSampler reads an image at the places that a grid names in [-1, 1].
func evalGridSampler(c *Call) ([]Value, error) {
	t, grid := c.T(0), c.T(1)
	interp, padding, align := c.Int(2), c.Int(3), c.Bool(4)
	nd := t.Rank() - 2
	if nd != 2 && nd != 3 || grid.Rank() != nd+2 || grid.Sizes[nd+1] != int64(nd) || grid.Sizes[0] != t.Sizes[0] {
		fail("grid %v for input %v", grid.Sizes, t.Sizes)
	}
	space := t.Sizes[2:]
	img, gv := t.floats(), grid.floats()
	n, ch, plane := t.Sizes[0], t.Sizes[1], numel(space)
	places := numel(grid.Sizes[1 : nd+1])
	out := make([]float64, n*ch*places)
	unnormalize := func(x float64, size int64) float64 {
		if align {
			return (x + 1) / 2 * float64(size-1)
		}
		return ((x+1)*float64(size) - 1) / 2
	}
	fold := func(x float64, size int64) float64 {
		switch padding {
		case 1:
			x = min(max(x, 0), float64(size-1))
		case 2:
			if align {
				x = reflectInto(x, 0, float64(size-1))
			} else {
				x = reflectInto(x, -0.5, float64(size)-0.5)
			}
			x = min(max(x, 0), float64(size-1))
		}
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return -100
		}
		return x
	}
	for b := range n {
		for p := range places {
			// Coordinates in the order of the dimensions; the grid has the last dimension first.
			taps := make([]tapWeights, nd)
			for k := range nd {
				size := space[k]
				x := unnormalize(gv[(b*places+p)*int64(nd)+int64(nd-1-k)], size)
				switch interp {
				case 1:
					taps[k] = tapWeights{[]int64{int64(math.RoundToEven(fold(x, size)))}, []float64{1}}
				case 2:
					fl := math.Floor(x)
					w := cubicWeights(x-fl, -0.75)
					for j := range 4 {
						taps[k].at = append(taps[k].at, int64(fold(fl-1+float64(j), size)))
						taps[k].w = append(taps[k].w, w[j])
					}
				default:
					x = fold(x, size)
					fl := math.Floor(x)
					taps[k] = tapWeights{[]int64{int64(fl), int64(fl) + 1}, []float64{1 - (x - fl), x - fl}}
				}
			}
			idx, sizes := make([]int64, nd), make([]int64, nd)
			for k := range nd {
				sizes[k] = int64(len(taps[k].at))
			}
			for range numel(sizes) {
				w, at, inside := 1.0, int64(0), true
				for k := range nd {
					j := taps[k].at[idx[k]]
					inside = inside && j >= 0 && j < space[k]
					w *= taps[k].w[idx[k]]
					at = at*space[k] + j
				}
				if inside {
					for q := range ch {
						out[(b*ch+q)*places+p] += w * img[(b*ch+q)*plane+at]
					}
				}
				count(idx, sizes)
			}
		}
	}
	return one(fromFloats(t.DType, append([]int64{n, ch}, grid.Sizes[1:nd+1]...), out))
}

// evalAffineGridGenerator makes the grid of an affine map.
func evalAffineGridGenerator(c *Call) ([]Value, error) {
	theta, size, align := c.T(0), c.Ints(1), c.Bool(2)
	nd := len(size) - 2
	if nd != 2 && nd != 3 || theta.Rank() != 3 || theta.Sizes[1] != int64(nd) || theta.Sizes[2] != int64(nd+1) {
		fail("an affine grid of size %v by %v", size, theta.Sizes)
	}
	space := size[2:]
	m := theta.floats()
	places := numel(space)
	out := make([]float64, 0, size[0]*places*int64(nd))
	for b := range size[0] {
		idx := make([]int64, nd)
		for range places {
			v := make([]float64, nd+1)
			v[nd] = 1
			for k := range nd {
				n := float64(space[nd-1-k])
				x := 0.0
				if n > 1 {
					x = -1 + 2*float64(idx[nd-1-k])/(n-1)
				}
				if !align {
					x *= (n - 1) / n
				}
				v[k] = x
			}
			for r := range nd {
				row := m[(int(b)*nd+r)*(nd+1):]
				out = append(out, dot(v, row[:nd+1]))
			}
			count(idx, space)
		}
	}
	return one(fromFloats(theta.DType, append(append([]int64{size[0]}, space...), int64(nd)), out))
}
