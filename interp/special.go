package interp

import "math"

func lgamma(x float64) float64 {
	if math.IsInf(x, -1) {
		return math.Inf(1)
	}
	v, _ := math.Lgamma(x)
	return v
}

func digamma(x float64) float64 {
	switch {
	case x == 0:
		return math.Copysign(math.Inf(1), -x)
	case math.IsInf(x, 1) || math.IsNaN(x):
		return x
	case math.IsInf(x, -1):
		return math.NaN()
	case x < 0:
		if x == math.Floor(x) {
			return math.NaN()
		}
		return digamma(1-x) - math.Pi/math.Tan(math.Pi*math.Mod(x, 1))
	}
	// The recurrence up to where the asymptotic series is exact to a double.
	s := 0.0
	for x < 10 {
		s -= 1 / x
		x++
	}
	y := 1 / (x * x)
	series := y * (1.0/12 - y*(1.0/120-y*(1.0/252-y*(1.0/240-y*(1.0/132-y*(691.0/32760-y/12))))))
	return s + math.Log(x) - 0.5/x - series
}

// zeta is the Hurwitz zeta function for x > 1.
func zeta(x, q float64) float64 {
	switch {
	case x == 1:
		return math.Inf(1)
	case x < 1 || math.IsNaN(x) || math.IsNaN(q):
		return math.NaN()
	case q <= 0:
		if q == math.Floor(q) {
			return math.Inf(1)
		}
		if x != math.Floor(x) {
			return math.NaN()
		}
	}
	// Euler-Maclaurin: a direct sum of n terms, the integral of the rest, and its corrections.
	const n = 12
	s := 0.0
	for k := range n {
		s += math.Pow(q+float64(k), -x)
	}
	w := q + n
	s += math.Pow(w, 1-x)/(x-1) + 0.5*math.Pow(w, -x)
	bernoulli := [...]float64{1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730, 7.0 / 6, -3617.0 / 510}
	term, fact := x*math.Pow(w, -x-1), 2.0
	for k, b := range bernoulli {
		s += b * term / fact
		j := float64(2 * (k + 1))
		term *= (x + j - 1) * (x + j) / (w * w)
		fact *= (j + 1) * (j + 2)
	}
	return s
}

func polygamma(n int, x float64) float64 {
	if n == 0 {
		return digamma(x)
	}
	s := 1.0
	if n%2 == 0 {
		s = -1
	}
	return s * math.Exp(lgamma(float64(n)+1)) * zeta(float64(n)+1, x)
}

func sinc(x float64) float64 {
	if x == 0 {
		return 1
	}
	p := math.Pi * x
	return math.Sin(p) / p
}

// besselI sums the power series of the modified Bessel function of order k; past where it is accurate, the asymptotic one.
func besselI(k int, x float64) float64 {
	a := math.Abs(x)
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return math.NaN() // as PyTorch's product of an exponential and a rest has it
	}
	var v float64
	if a < 30 {
		term := 1.0
		for i := 1; i <= k; i++ {
			term *= a / 2 / float64(i)
		}
		for m := 1; m < 500; m++ {
			v += term
			term *= a * a / 4 / float64(m) / float64(m+k)
			if term <= v*1e-18 {
				break
			}
		}
	} else {
		mu := float64(4 * k * k)
		term, sum := 1.0, 1.0
		for m := 1; m < 30; m++ {
			f := float64(2*m - 1)
			next := -term * (mu - f*f) / (float64(m) * 8 * a)
			if math.Abs(next) > math.Abs(term) {
				break
			}
			term = next
			sum += term
		}
		v = math.Exp(a) / math.Sqrt(2*math.Pi*a) * sum
	}
	if k%2 == 1 && x < 0 {
		return -v
	}
	return v
}

// besselIe is besselI times exp(-|x|).
func besselIe(k int, x float64) float64 {
	if math.IsInf(x, 0) {
		return 0
	}
	return besselI(k, x) * math.Exp(-math.Abs(x))
}

func besselI0(x float64) float64 { return besselI(0, x) }

func besselI1(x float64) float64 { return besselI(1, x) }

func erfcx(x float64) float64 {
	if x < 25 {
		return math.Exp(x*x) * math.Erfc(x)
	}
	y := 1 / (x * x)
	return (1 - y/2*(1-y*1.5)) / (x * math.Sqrt(math.Pi))
}

func logNdtr(x float64) float64 {
	if x < -1 {
		return math.Log(erfcx(-x/math.Sqrt2)/2) - x*x/2
	}
	return math.Log1p(-math.Erfc(x/math.Sqrt2) / 2)
}

func entr(x float64) float64 {
	switch {
	case math.IsNaN(x):
		return x
	case x > 0:
		return -x * math.Log(x)
	case x == 0:
		return 0
	}
	return math.Inf(-1)
}

// gammaInc gives the regularized incomplete gamma functions P(a, x) and Q(a, x).
func gammaInc(a, x float64) (p, q float64) {
	nan := math.NaN()
	switch {
	case math.IsNaN(a) || math.IsNaN(x) || a < 0 || x < 0:
		return nan, nan
	case a == 0:
		if x > 0 {
			return 1, 0
		}
		return nan, nan
	case x == 0:
		return 0, 1
	case math.IsInf(a, 1):
		if math.IsInf(x, 1) {
			return nan, nan
		}
		return 0, 1
	case math.IsInf(x, 1):
		return 1, 0
	}
	front := math.Exp(a*math.Log(x) - x - lgamma(a))
	if x < a+1 { // power series
		term, sum := 1/a, 1/a
		for n := 1; n < 10000; n++ {
			term *= x / (a + float64(n))
			sum += term
			if math.Abs(term) < math.Abs(sum)*1e-17 {
				break
			}
		}
		p = front * sum
		return p, 1 - p
	}
	// Continued fraction by the modified Lentz method.
	const tiny = 1e-300
	b := x + 1 - a
	c, d := 1/tiny, 1/b
	h := d
	for i := 1; i < 10000; i++ {
		an := -float64(i) * (float64(i) - a)
		b += 2
		if d = an*d + b; math.Abs(d) < tiny {
			d = tiny
		}
		if c = b + an/c; math.Abs(c) < tiny {
			c = tiny
		}
		d = 1 / d
		delta := d * c
		h *= delta
		if math.Abs(delta-1) < 1e-16 {
			break
		}
	}
	q = front * h
	return 1 - q, q
}
