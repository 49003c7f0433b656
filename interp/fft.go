package interp

import (
	"math"
	"math/cmplx"
	"slices"
	"strings"

	"github.com/lathe-ml/lathe/ops"
)

// dft transforms in place: powers of two by halves, other lengths as a convolution (Bluestein).
func dft(x []complex128, inverse bool) {
	n := len(x)
	if n <= 1 {
		return
	}
	sign := -1.0
	if inverse {
		sign = 1
	}
	if n&(n-1) == 0 {
		radix2(x, sign)
		return
	}
	m := 1
	for m < 2*n-1 {
		m *= 2
	}
	w := make([]complex128, n)
	for i := range w {
		// The square is reduced first, so that the angle stays exact.
		k := (i * i) % (2 * n)
		w[i] = cmplx.Rect(1, sign*math.Pi*float64(k)/float64(n))
	}
	a, b := make([]complex128, m), make([]complex128, m)
	for i := range x {
		a[i] = x[i] * w[i]
	}
	b[0] = cmplx.Conj(w[0])
	for i := 1; i < n; i++ {
		b[i] = cmplx.Conj(w[i])
		b[m-i] = b[i]
	}
	radix2(a, -1)
	radix2(b, -1)
	for i := range a {
		a[i] *= b[i]
	}
	radix2(a, 1)
	for i := range x {
		x[i] = a[i] * w[i] / complex(float64(m), 0)
	}
}

func radix2(x []complex128, sign float64) {
	n := len(x)
	for i, j := 1, 0; i < n; i++ {
		bit := n >> 1
		for ; j&bit != 0; bit >>= 1 {
			j ^= bit
		}
		j ^= bit
		if i < j {
			x[i], x[j] = x[j], x[i]
		}
	}
	for size := 2; size <= n; size *= 2 {
		half := size / 2
		tw := make([]complex128, half)
		for k := range tw {
			tw[k] = cmplx.Rect(1, sign*2*math.Pi*float64(k)/float64(size))
		}
		for i := 0; i < n; i += size {
			for k := range half {
				u, v := x[i+k], x[i+k+half]*tw[k]
				x[i+k], x[i+k+half] = u+v, u-v
			}
		}
	}
}

// resizeDim cuts a dimension or fills it up with zeros.
func resizeDim(t *Tensor, d int, n int64) *Tensor {
	if n < 1 {
		fail("a transform of %d points", n)
	}
	switch {
	case t.Sizes[d] > n:
		return slice(t, d, 0, n, 1)
	case t.Sizes[d] < n:
		ps := make([]int64, 2*(t.Rank()-d))
		ps[len(ps)-1] = n - t.Sizes[d]
		return pad(t, ps, "constant", int64(0))
	}
	return t
}

// fftAlong transforms along a dimension and scales.
func fftAlong(v []complex128, sizes []int64, d int, inverse bool, scale float64) {
	along(sizes, d, func(line []int64) {
		x := make([]complex128, len(line))
		for i, k := range line {
			x[i] = v[k]
		}
		dft(x, inverse)
		for i, k := range line {
			v[k] = x[i] * complex(scale, 0)
		}
	})
}

// fftScale is the factor of a transform of n points: norm is "backward" (or empty), "ortho" or "forward".
func fftScale(norm string, n float64, inverse bool) float64 {
	switch norm {
	case "", "backward":
		if inverse {
			return 1 / n
		}
	case "forward":
		if !inverse {
			return 1 / n
		}
	case "ortho":
		return 1 / math.Sqrt(n)
	default:
		fail("norm %q is not known", norm)
	}
	return 1
}

// complexTransform transforms over dimensions in complex arithmetic.
func complexTransform(t *Tensor, ds []int, inverse bool, scale float64) *Tensor {
	v := slices.Clone(t.complexes())
	for i, d := range ds {
		s := 1.0
		if i == 0 {
			s = scale
		}
		fftAlong(v, t.Sizes, d, inverse, s)
	}
	if len(ds) == 0 && scale != 1 {
		for i := range v {
			v[i] *= complex(scale, 0)
		}
	}
	return fromComplexes(floatType(t.DType).ToComplex(), t.Sizes, v)
}

// hermitian completes the half of a spectrum that a real transform stores, to n points.
func hermitian(t *Tensor, d int, n int64) *Tensor {
	t = resizeDim(t, d, n/2+1)
	v := t.complexes()
	sizes := slices.Clone(t.Sizes)
	sizes[d] = n
	out := make([]complex128, numel(sizes))
	var lines [][]int64
	along(t.Sizes, d, func(line []int64) { lines = append(lines, slices.Clone(line)) })
	i := 0
	along(sizes, d, func(line []int64) {
		src := lines[i]
		i++
		for k := range n {
			if k <= n/2 {
				out[line[k]] = v[src[k]]
			} else {
				out[line[k]] = cmplx.Conj(v[src[n-k]])
			}
		}
		// The parts that must be real are taken as real.
		out[line[0]] = complex(real(out[line[0]]), 0)
		if n%2 == 0 {
			out[line[n/2]] = complex(real(out[line[n/2]]), 0)
		}
	})
	return fromComplexes(ops.Complex128, sizes, out)
}

func realPart(t *Tensor, d DType) *Tensor {
	return fromFloats(d, t.Sizes, mapSlice(t.complexes(), func(z complex128) float64 { return real(z) }))
}

// evalFft computes the family of discrete Fourier transforms.
func evalFft(c *Call) ([]Value, error) {
	t := c.T(0)
	kind := strings.TrimPrefix(c.base(), "fft_")
	norm := c.Str(c.index("norm"))
	rank := t.Rank()
	many := strings.HasSuffix(kind, "2") || strings.HasSuffix(kind, "n")
	kind = strings.TrimRight(kind, "2n")
	var ds []int
	var sizes []int64
	if many {
		si, di := c.index("s"), c.index("dim")
		if c.has(si) {
			sizes = c.Ints(si)
		}
		switch {
		case c.has(di):
			for _, d := range c.Ints(di) {
				ds = append(ds, dim(d, rank))
			}
		case sizes != nil:
			for k := rank - len(sizes); k < rank; k++ {
				ds = append(ds, k)
			}
		default:
			for k := range rank {
				ds = append(ds, k)
			}
		}
	} else {
		ds = []int{dim(c.intOr(c.index("dim"), -1), rank)}
		if i := c.index("n"); c.has(i) {
			sizes = []int64{c.Int(i)}
		}
	}
	if rank == 0 || sizes != nil && len(sizes) != len(ds) {
		fail("%s over %d dimensions of shape %v", c.base(), len(ds), t.Sizes)
	}
	inverse := strings.HasPrefix(kind, "i")
	switch kind {
	case "fft", "ifft", "rfft", "ihfft":
		if kind == "rfft" || kind == "ihfft" {
			if t.DType.IsComplex() {
				fail("%s of complex numbers", c.base())
			}
		}
		points := 1.0
		for i, d := range ds {
			if sizes != nil && sizes[i] != -1 {
				t = resizeDim(t, d, sizes[i])
			}
			points *= float64(t.Sizes[d])
		}
		o := complexTransform(t, ds, inverse, fftScale(norm, points, inverse))
		if kind == "rfft" || kind == "ihfft" {
			last := ds[len(ds)-1]
			o = compact(slice(o, last, 0, o.Sizes[last]/2+1, 1))
		}
		return one(o)
	case "irfft", "hfft":
		last := ds[len(ds)-1]
		n := 2 * (t.Sizes[last] - 1)
		if sizes != nil && sizes[len(sizes)-1] != -1 {
			n = sizes[len(sizes)-1]
		}
		if n < 1 {
			fail("a transform of %d points", n)
		}
		d := floatType(t.DType).ToComplex().ToReal()
		points := float64(n)
		for i, k := range ds[:len(ds)-1] {
			if sizes != nil && sizes[i] != -1 {
				t = resizeDim(t, k, sizes[i])
			}
			points *= float64(t.Sizes[k])
		}
		inv := kind == "irfft"
		t = cast(t, ops.Complex128)
		t = complexTransform(t, ds[:len(ds)-1], inv, fftScale(norm, points, inv))
		if !inv {
			t = conj(t)
		}
		return one(realPart(complexTransform(hermitian(t, last, n), []int{last}, true, 1), d))
	}
	fail("no transform %s", c.base())
	return nil, nil
}

// evalFftRaw computes the transforms that the others are made of; normalization 0 is none, 1 by the root of the points, 2
// by the points.
func evalFftRaw(c *Call) ([]Value, error) {
	t := c.T(0)
	var ds []int
	for _, d := range c.Ints(1) {
		ds = append(ds, dim(d, t.Rank()))
	}
	points := 1.0
	last := -1
	if len(ds) > 0 {
		last = ds[len(ds)-1]
	}
	n := int64(0)
	if c.base() == "_fft_c2r" {
		n = c.Int(3)
	}
	for _, d := range ds {
		if d == last && n > 0 {
			points *= float64(n)
		} else {
			points *= float64(t.Sizes[d])
		}
	}
	scale := map[int64]float64{0: 1, 1: 1 / math.Sqrt(points), 2: 1 / points}[c.Int(2)]
	switch c.base() {
	case "_fft_c2c":
		return one(complexTransform(t, ds, !c.Bool(3), scale))
	case "_fft_r2c":
		o := complexTransform(t, ds, false, scale)
		if c.Bool(3) {
			o = compact(slice(o, last, 0, o.Sizes[last]/2+1, 1))
		}
		return one(o)
	}
	d := t.DType.ToReal()
	x := complexTransform(cast(t, ops.Complex128), ds[:len(ds)-1], true, scale)
	return one(realPart(complexTransform(hermitian(x, last, n), []int{last}, true, 1), d))
}

// evalFftFreq lists the frequencies of a transform's points.
func evalFftFreq(c *Call) ([]Value, error) {
	n := c.Int(0)
	d := c.floatOr(1, 1)
	v := make([]float64, checkLen(n))
	for i := range v {
		k := int64(i)
		if k >= (n+1)/2 {
			k -= n
		}
		v[i] = float64(k) / (float64(n) * d)
	}
	if c.base() == "fft_rfftfreq" {
		v = make([]float64, n/2+1)
		for i := range v {
			v[i] = float64(i) / (float64(n) * d)
		}
	}
	return one(fromFloats(c.dtypeOr(c.index("dtype"), ops.Float32), []int64{int64(len(v))}, v))
}

// evalFftShift moves the zero frequency to the middle or back.
func evalFftShift(c *Call) ([]Value, error) {
	t := c.T(0)
	in := dims(nil, t.Rank())
	if c.has(1) {
		in = dims(c.Ints(1), t.Rank())
	}
	for d, on := range in {
		if on {
			n := t.Sizes[d]
			k := n / 2
			if c.base() == "fft_ifftshift" {
				k = (n + 1) / 2
			}
			t = roll(t, d, k)
		}
	}
	return one(compactCopy(t))
}

// window is the analysis window of a short-time transform, laid in the middle of n_fft points.
func (c *Call) stftWindow(n, win int64) []float64 {
	w := make([]float64, n)
	var v []float64
	if t := c.optT(c.index("window")); t != nil {
		if t.Numel() != win {
			fail("a window of %d points, win_length is %d", t.Numel(), win)
		}
		v = t.floats()
	}
	at := (n - win) / 2
	for i := range win {
		w[at+i] = 1
		if v != nil {
			w[at+i] = v[i]
		}
	}
	return w
}

// evalStft transforms overlapping frames of a signal.
func evalStft(c *Call) ([]Value, error) {
	t := c.T(0)
	n := c.Int(1)
	hop := c.intOr(c.index("hop_length"), n/4)
	win := c.intOr(c.index("win_length"), n)
	single := t.Rank() == 1
	if single {
		t = unsqueeze(t, 0)
	}
	need(t, 2, "the signal")
	if i := c.index("center"); i >= 0 && c.Bool(i) {
		t = pad(t, []int64{n / 2, n / 2}, c.Str(c.index("pad_mode")), int64(0))
	}
	if n <= 0 || n > t.Sizes[1] || hop <= 0 || win <= 0 || win > n {
		fail("frames of %d every %d in %d samples", n, hop, t.Sizes[1])
	}
	w := c.stftWindow(n, win)
	onesided := !t.DType.IsComplex()
	if i := c.index("onesided"); c.has(i) {
		onesided = c.Bool(i)
	}
	frames := (t.Sizes[1]-n)/hop + 1
	v := t.complexes()
	bins := n
	if onesided {
		bins = n/2 + 1
	}
	scale := complex(1, 0)
	if c.Bool(c.index("normalized")) {
		scale = complex(1/math.Sqrt(float64(n)), 0)
	}
	out := make([]complex128, t.Sizes[0]*bins*frames)
	for b := range t.Sizes[0] {
		for f := range frames {
			x := make([]complex128, n)
			for i := range x {
				x[i] = v[b*t.Sizes[1]+f*hop+int64(i)] * complex(w[i], 0)
			}
			dft(x, false)
			for k := range bins {
				out[(b*bins+k)*frames+f] = x[k] * scale
			}
		}
	}
	sizes := []int64{t.Sizes[0], bins, frames}
	if single {
		sizes = sizes[1:]
	}
	o := fromComplexes(floatType(t.DType).ToComplex(), sizes, out)
	if i := c.index("return_complex"); i >= 0 && c.has(i) && !c.Bool(i) {
		return one(asReal(o))
	}
	return one(o)
}

// evalIstft adds overlapping frames back up to a signal.
func evalIstft(c *Call) ([]Value, error) {
	t := c.T(0)
	n := c.Int(1)
	hop := c.intOr(c.index("hop_length"), n/4)
	win := c.intOr(c.index("win_length"), n)
	single := t.Rank() == 2
	if single {
		t = unsqueeze(t, 0)
	}
	need(t, 3, "the spectrum")
	w := c.stftWindow(n, win)
	onesided := t.Sizes[1] != n
	if i := c.index("onesided"); c.has(i) {
		onesided = c.Bool(i)
	}
	scale := 1 / float64(n)
	if c.Bool(c.index("normalized")) {
		scale = 1 / math.Sqrt(float64(n))
	}
	batch, frames := t.Sizes[0], t.Sizes[2]
	total := n + hop*(frames-1)
	v := t.complexes()
	bins := t.Sizes[1]
	center := c.Bool(c.index("center"))
	start, end := int64(0), total
	if center {
		start, end = n/2, total-n/2
	}
	if i := c.index("length"); c.has(i) {
		end = start + c.Int(i)
	}
	var out []float64
	norm := make([]float64, max(total, end))
	for f := range frames {
		for i := range n {
			norm[f*hop+i] += w[i] * w[i]
		}
	}
	for b := range batch {
		y := make([]float64, max(total, end))
		for f := range frames {
			x := make([]complex128, n)
			for k := range n {
				switch {
				case k < bins:
					x[k] = v[(b*bins+k)*frames+f]
				case onesided:
					x[k] = cmplx.Conj(v[(b*bins+n-k)*frames+f])
				}
			}
			if onesided {
				x[0] = complex(real(x[0]), 0)
			}
			dft(x, true)
			for i := range n {
				y[f*hop+i] += real(x[i]) * scale * w[i]
			}
		}
		for i := start; i < end; i++ {
			if norm[i] > 1e-11 {
				out = append(out, y[i]/norm[i])
			} else {
				out = append(out, y[i])
			}
		}
	}
	sizes := []int64{batch, end - start}
	if single {
		sizes = sizes[1:]
	}
	return one(fromFloats(t.DType.ToReal(), sizes, out))
}
