package interp

import (
	"math"
	"slices"

	"github.com/lathe-ml/lathe/ops"
)

func fill(d DType, sizes []int64, v Value) *Tensor {
	o := NewTensor(d, sizes...)
	if v != nil && o.Numel() > 0 {
		writeInto(o, scalarTensor(d, v))
		o.storage.written = false
	}
	return o
}

// evalFull makes tensors of one value: zeros, ones, full, empty, new_*, *_like and their like.
func evalFull(c *Call) ([]Value, error) {
	name := c.pure()
	var v Value
	switch name {
	case "full", "full_like", "new_full":
		v = c.Args[c.index("fill_value")]
		if t, ok := v.(*Tensor); ok {
			v = t.item()
		}
	case "ones", "ones_like", "new_ones":
		v = int64(1)
	}
	d := ops.Float32
	var sizes []int64
	format := ""
	var like *Tensor
	if i := c.index("self"); i >= 0 {
		like = c.T(i)
		d, sizes, format = like.DType, like.Sizes, c.format()
	} else if name == "full" {
		d = numberType(v)
	}
	if i := c.index("size"); i >= 0 {
		sizes, like = c.Ints(i), nil
	}
	if i := c.index("dtype"); i >= 0 {
		d = c.dtypeOr(i, d)
	}
	o := fill(d, sizes, v)
	if like != nil {
		o.Strides = denseStrides(like, format)
	}
	return one(o)
}

// evalFill gives a tensor of self's shape and dtype filled with a value: fill, zero.
func evalFill(c *Call) ([]Value, error) {
	t := c.T(0)
	o := NewTensor(t.DType, t.Sizes...)
	if c.pure() == "fill" {
		v := c.T(1)
		if v.Rank() != 0 {
			fail("fill with a tensor of %d dimensions", v.Rank())
		}
		writeInto(o, v)
	}
	return one(o)
}

func evalScalarTensor(c *Call) ([]Value, error) {
	return one(scalarTensor(c.dtypeOr(1, ops.Float32), c.Args[0]))
}

// evalArange counts from start to before end: arange, and range, which includes the end.
func evalArange(c *Call) ([]Value, error) {
	var start, end, step Value = int64(0), nil, int64(1)
	if i := c.index("start"); i >= 0 {
		start = c.Args[i]
	}
	end = c.Args[c.index("end")]
	if i := c.index("step"); i >= 0 && c.has(i) {
		step = c.Args[i]
	}
	isInt := func(v Value) bool { _, ok := v.(int64); return ok }
	d := ops.Float32
	if isInt(start) && isInt(end) && isInt(step) && c.base() == "arange" {
		d = ops.Int64
	}
	d = c.dtypeOr(c.index("dtype"), d)
	if classOf(d) == classInt && isInt(start) && isInt(end) && isInt(step) {
		a, b, s := start.(int64), end.(int64), step.(int64)
		if s == 0 || (b-a)/s < 0 || s > 0 && b < a || s < 0 && b > a {
			fail("arange from %d to %d in steps of %d", a, b, s)
		}
		n := (b - a) / s
		if (b-a)%s != 0 {
			n++
		}
		if c.base() == "range" {
			n = (b-a)/s + 1
		}
		v := make([]int64, checkLen(n))
		for i := range v {
			v[i] = a + int64(i)*s
		}
		return one(fromInts(d, []int64{n}, v))
	}
	a, b, s := mustFloat(start), mustFloat(end), mustFloat(step)
	if d == ops.Int64 && c.base() == "arange" {
		a, b, s = math.Trunc(a), math.Trunc(b), math.Trunc(s)
	}
	if s == 0 || s > 0 && b < a || s < 0 && b > a || math.IsNaN(a+b+s) || math.IsInf(a, 0) || math.IsInf(b, 0) {
		fail("arange from %v to %v in steps of %v", a, b, s)
	}
	n := int64(math.Ceil((b - a) / s))
	if c.base() == "range" {
		n = int64((b-a)/s) + 1
	}
	v := make([]float64, checkLen(n))
	if classOf(d) == classInt {
		// Integers are made from truncated start and step.
		a, s = math.Trunc(a), math.Trunc(s)
	}
	for i := range v {
		v[i] = a + float64(i)*s
	}
	return one(fromFloats(d, []int64{n}, v))
}

func checkLen(n int64) int64 {
	if n < 0 || n > maxBytes/8 {
		fail("a tensor of %d elements", n)
	}
	return n
}

func mustFloat(v Value) float64 {
	f, ok := asFloat(v)
	if !ok {
		fail("%s is no number", kindName(v))
	}
	return f
}

// evalLinspace gives steps numbers from start to end: linspace, logspace.
func evalLinspace(c *Call) ([]Value, error) {
	a, b, n := c.Float(0), c.Float(1), c.Int(2)
	d := c.dtypeOr(c.index("dtype"), ops.Float32)
	if c.base() == "logspace" && classOf(d) == classInt {
		// Integers give the ends, float32 the exponents between them.
		base := c.floatOr(c.index("base"), 10)
		v := linspace(math.Trunc(a), math.Trunc(b), n, ops.Float32)
		for i := range v {
			v[i] = math.Pow(base, v[i])
		}
		return one(fromFloats(d, []int64{n}, v))
	}
	v := linspace(a, b, n, d)
	if c.base() == "logspace" {
		base := c.floatOr(c.index("base"), 10)
		for i := range v {
			v[i] = math.Pow(base, v[i])
		}
	}
	return one(fromFloats(d, []int64{n}, v))
}

func linspace(a, b float64, n int64, d DType) []float64 {
	v := make([]float64, checkLen(n))
	if n == 1 {
		v[0] = a
		return v
	}
	step := (b - a) / float64(n-1)
	if d != ops.Float64 && classOf(d) == classFloat {
		step = float64((float32(b) - float32(a)) / float32(n-1))
	}
	for i := range v {
		// From both ends, so that both are hit exactly.
		if int64(i) < n/2 {
			v[i] = a + float64(i)*step
		} else {
			v[i] = b - float64(n-1-int64(i))*step
		}
	}
	return v
}

// evalEye gives the identity matrix.
func evalEye(c *Call) ([]Value, error) {
	n := c.Int(0)
	m := n
	if c.overload() == "m" {
		m = c.Int(1)
	}
	d := c.dtypeOr(c.index("dtype"), ops.Float32)
	o := NewTensor(d, n, m)
	if min(n, m) > 0 {
		writeInto(diagonal(o, 0, 0, 1), scalarTensor(d, int64(1)))
	}
	return one(o)
}

// evalTri keeps the lower or upper triangle.
func evalTri(c *Call) ([]Value, error) {
	t := c.T(0)
	k := c.intOr(1, 0)
	if t.Rank() < 2 {
		fail("%s of a tensor of %d dimensions", c.pure(), t.Rank())
	}
	lower := c.pure() == "tril"
	o := compactCopy(t)
	sz := t.DType.Size()
	rows, cols := t.Sizes[t.Rank()-2], t.Sizes[t.Rank()-1]
	b := o.storage.b
	for r := int64(0); cols > 0 && r < o.Numel()/cols; r++ {
		row := b[r*cols*sz : (r+1)*cols*sz]
		edge := min(max(r%rows+k, -1), cols-1) // the last column of the lower triangle
		if lower {
			clear(row[(edge+1)*sz:])
		} else {
			clear(row[:min(max(r%rows+k, 0), cols)*sz])
		}
	}
	return one(o)
}

// evalTriIndices lists the places of a triangle.
func evalTriIndices(c *Call) ([]Value, error) {
	rows, cols, k := c.Int(0), c.Int(1), c.intOr(2, 0)
	var r, cl []int64
	for i := range rows {
		for j := range cols {
			if in := j-i <= k; c.base() == "tril_indices" && in || c.base() == "triu_indices" && j-i >= k {
				r, cl = append(r, i), append(cl, j)
			}
		}
	}
	return one(fromInts(c.dtypeOr(3, ops.Int64), []int64{2, int64(len(r))}, append(r, cl...)))
}

// evalWindow makes the window functions of signal processing.
func evalWindow(c *Call) ([]Value, error) {
	n := c.Int(0)
	d := c.dtypeOr(c.index("dtype"), ops.Float32)
	periodic := true
	if i := c.index("periodic"); i >= 0 {
		periodic = c.Bool(i)
	}
	m := float64(n - 1)
	if periodic {
		m = float64(n)
	}
	num := func(name string, def float64) float64 { return c.floatOr(c.index(name), def) }
	v := make([]float64, checkLen(n))
	for i := range v {
		x := float64(i)
		if n == 1 {
			v[i] = 1
			continue
		}
		switch c.base() {
		case "hann_window":
			v[i] = 0.5 - 0.5*math.Cos(2*math.Pi*x/m)
		case "hamming_window":
			v[i] = num("alpha", 0.54) - num("beta", 0.46)*math.Cos(2*math.Pi*x/m)
		case "blackman_window":
			v[i] = 0.42 - 0.5*math.Cos(2*math.Pi*x/m) + 0.08*math.Cos(4*math.Pi*x/m)
		case "bartlett_window":
			v[i] = 1 - math.Abs(2*x/m-1)
		case "kaiser_window":
			b := num("beta", 12)
			r := 2*x/m - 1
			v[i] = besselI0(b*math.Sqrt(max(0, 1-r*r))) / besselI0(b)
		}
	}
	return one(fromFloats(d, []int64{n}, v))
}

// evalComplex makes complex numbers from two real tensors: complex, polar.
func evalComplex(c *Call) ([]Value, error) {
	a, b := c.T(0), c.T(1)
	d := promoteTypes(a.DType, b.DType).ToComplex()
	x, y, sizes := pair(a, b)
	f := func(p, q float64) complex128 { return complex(p, q) }
	if c.base() == "polar" {
		f = func(p, q float64) complex128 { return complex(p*math.Cos(q), p*math.Sin(q)) }
	}
	return one(fromComplexes(d, sizes, zip(numel(sizes), x.floats(), y.floats(), f)))
}

// evalAngle gives the argument of complex numbers.
func evalAngle(c *Call) ([]Value, error) {
	t := c.T(0)
	if t.DType.IsComplex() {
		return one(fromFloats(t.DType.ToReal(), t.Sizes, mapSlice(t.complexes(), func(z complex128) float64 { return math.Atan2(imag(z), real(z)) })))
	}
	return one(mapFloats(t, floatType(t.DType), func(x float64) float64 {
		switch {
		case math.IsNaN(x):
			return x
		case x < 0:
			return math.Pi
		}
		return 0
	}))
}

// evalOneHot marks classes in a new last dimension.
func evalOneHot(c *Call) ([]Value, error) {
	t := c.T(0)
	n := c.intOr(1, -1)
	v := t.ints()
	for _, k := range v {
		if k < 0 {
			fail("class %d is negative", k)
		}
		if c.intOr(1, -1) < 0 {
			n = max(n, k+1)
		} else if k >= n {
			fail("class %d of %d", k, n)
		}
	}
	o := NewTensor(ops.Int64, append(slices.Clone(t.Sizes), n)...)
	w := flat[int64](o)
	for i, k := range v {
		w[int64(i)*n+k] = 1
	}
	return one(o)
}
