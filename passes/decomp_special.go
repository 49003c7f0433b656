package passes

import (
	"math"
	"strings"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ops"
)

// Special functions without a kernel are sums of Chebyshev polynomials, whose coefficients are computed here: as many as a
// double can use.

// chebyshev are the coefficients of f over [-1, 1].
func chebyshev(n int, f func(t float64) float64) []float64 {
	vals := make([]float64, 4*n)
	for i := range vals {
		vals[i] = f(math.Cos(math.Pi * (float64(i) + 0.5) / float64(len(vals))))
	}
	c := make([]float64, n)
	for k := range c {
		for i, v := range vals {
			c[k] += v * math.Cos(math.Pi*float64(k)*(float64(i)+0.5)/float64(len(vals)))
		}
		c[k] *= 2 / float64(len(vals))
	}
	c[0] /= 2
	return c
}

// series sums coefficients times the Chebyshev polynomials of t, by Clenshaw's recurrence.
func (d *Decomp) series(t *ir.Value, c []float64) *ir.Value {
	last := len(c) - 1
	for last > 1 && math.Abs(c[last]) < 1e-17 {
		last--
	}
	twice := d.mul(t, 2.0)
	b1 := d.add(d.mul(t, 0.0), c[last])
	b2 := d.mul(t, 0.0)
	for k := last - 1; k > 0; k-- {
		b1, b2 = d.add(d.sub(d.mul(twice, b1), b2), c[k]), b1
	}
	return d.add(d.sub(d.mul(t, b1), b2), c[0])
}

// scaledBessel is the modified Bessel function of order k times exp(-x), for x >= 0: the mean of its integral form, which
// the trapezoidal rule gives to the last digit.
func scaledBessel(k int, x float64) float64 {
	const n = 4096
	s := 0.0
	for i := range n {
		a := math.Pi * (float64(i) + 0.5) / n
		s += math.Exp(x*(math.Cos(a)-1)) * math.Cos(float64(k)*a)
	}
	return s / n
}

// decompBesselI serves i0, i0e, i1 and i1e: one series up to 8, another in 1/x behind it.
func decompBesselI(d *Decomp) []*ir.Value {
	x := d.opmath(d.in(0))
	name := strings.TrimPrefix(d.N.Info().Schema.Base, "special_")
	k := 0
	if strings.HasPrefix(name, "i1") {
		k = 1
	}
	near := chebyshev(30, func(t float64) float64 { return scaledBessel(k, 4*(t+1)) })
	far := chebyshev(25, func(t float64) float64 {
		y := 16 / (t + 1)
		return scaledBessel(k, y) * math.Sqrt(y)
	})
	a := d.abs(x)
	lo := d.series(d.sub(d.mul(d.min(a, 8.0), 0.25), 1.0), near)
	big := d.max(a, 8.0)
	hi := d.mul(d.series(d.sub(d.div(16.0, big), 1.0), far), d.rsqrt(big))
	y := d.where(d.le(a, 8.0), lo, hi)
	if k == 1 {
		y = d.where(d.lt(x, 0.0), d.neg(y), y)
	}
	if !strings.HasSuffix(name, "e") {
		y = d.mul(y, d.exp(a))
	}
	return d.back(y)
}

// scaledErfc is erfc(x) exp(x²) for x >= 0, a series in (x-4)/(x+4).
func (d *Decomp) scaledErfc(x *ir.Value) *ir.Value {
	c := chebyshev(40, func(t float64) float64 {
		if y := 4 * (1 + t) / (1 - t); y < 20 {
			return math.Exp(y*y) * math.Erfc(y)
		} else {
			z := 1 / (2 * y * y)
			return (1 - z*(1-3*z*(1-5*z*(1-7*z)))) / (y * math.Sqrt(math.Pi))
		}
	})
	big := d.min(x, 1e30)
	return d.series(d.sub(1.0, d.div(8.0, d.add(big, 4.0))), c)
}

func decompErfcx(d *Decomp) []*ir.Value {
	x := d.opmath(d.in(0))
	y := d.scaledErfc(d.abs(x))
	return d.back(d.where(d.lt(x, 0.0), d.sub(d.mul(d.exp(d.mul(x, x)), 2.0), y), y))
}

// decompLogNdtr is the logarithm of the normal distribution function; far below zero through the scaled error function.
func decompLogNdtr(d *Decomp) []*ir.Value {
	x := d.opmath(d.in(0))
	low := d.min(x, -1.0)
	below := d.sub(d.log(d.mul(d.scaledErfc(d.mul(low, -math.Sqrt2/2)), 0.5)), d.mul(d.mul(low, low), 0.5))
	erfc := d.sub(1.0, d.v(op.AtenErfDefault(d.Builder, d.mul(x, math.Sqrt2/2))))
	above := d.log1p(d.mul(erfc, -0.5))
	return d.back(d.where(d.lt(x, -1.0), below, above))
}

// decompFrexp divides by powers of two in double precision; the logarithm may be off by one next to a power.
func decompFrexp(d *Decomp) []*ir.Value {
	x := d.in(0)
	w := d.cast(x, ops.Float64)
	a := d.abs(w)
	plain := d.and(d.gt(a, 0.0), d.lt(a, math.Inf(1)))
	a = d.where(plain, a, 1.0)
	e := d.add(d.floor(d.v(op.AtenLog2Default(d.Builder, a))), 1.0)
	// Two steps, so that no power overflows.
	scaled := func(v, e *ir.Value) *ir.Value {
		half := d.floor(d.mul(e, 0.5))
		return d.div(d.div(v, d.pow(2.0, half)), d.pow(2.0, d.sub(e, half)))
	}
	m := scaled(a, e)
	e = d.add(e, d.sub(d.cast(d.ge(m, 1.0), ops.Float64), d.cast(d.lt(m, 0.5), ops.Float64)))
	m = d.where(plain, scaled(w, e), w)
	e = d.where(plain, e, 0.0)
	return []*ir.Value{d.cast(m, x.Type.DType), d.cast(e, ops.Int32)}
}
