package interp

import (
	"hash/fnv"
	"math"

	"github.com/lathe-ml/lathe/ops"
)

// rng is PyTorch's generator on the CPU, the Mersenne Twister, so that a seed gives PyTorch's numbers where an operator draws
// them one after the other.
type rng struct {
	mt   [624]uint32
	i    int
	next float64 // the second of a pair of normal numbers
	has  bool
}

func newRNG(seed uint64) *rng {
	r := &rng{i: 624}
	r.mt[0] = uint32(seed)
	for i := 1; i < len(r.mt); i++ {
		r.mt[i] = 1812433253*(r.mt[i-1]^r.mt[i-1]>>30) + uint32(i)
	}
	return r
}

func (r *rng) bits32() uint32 {
	const n, m = 624, 397
	if r.i == n {
		for k := range n {
			y := r.mt[k]&0x80000000 | r.mt[(k+1)%n]&0x7fffffff
			v := r.mt[(k+m)%n] ^ y>>1
			if y&1 != 0 {
				v ^= 0x9908b0df
			}
			r.mt[k] = v
		}
		r.i = 0
	}
	y := r.mt[r.i]
	r.i++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

func (r *rng) bits64() uint64 {
	hi := uint64(r.bits32())
	return hi<<32 | uint64(r.bits32())
}

// float is uniform in [0, 1) with all the bits of a float64.
func (r *rng) float() float64 { return float64(r.bits64()&(1<<53-1)) * 0x1p-53 }

// uniform is uniform in [0, 1) with the bits that a type holds.
func (r *rng) uniform(d DType) float64 {
	switch d {
	case ops.Float64:
		return r.float()
	case ops.Float16:
		return float64(r.bits32()&(1<<11-1)) * 0x1p-11
	case ops.BFloat16:
		return float64(r.bits32()&(1<<8-1)) * 0x1p-8
	}
	return float64(r.bits32()&(1<<24-1)) * 0x1p-24
}

func (r *rng) normal() float64 {
	if r.has {
		r.has = false
		return r.next
	}
	u1 := r.float()
	u2 := r.float()
	rad, theta := math.Sqrt(-2*math.Log1p(-u2)), 2*math.Pi*u1
	r.next, r.has = rad*math.Sin(theta), true
	return rad * math.Cos(theta)
}

// normals fills v with standard normal numbers: PyTorch makes long runs in blocks of 16 from uniform ones.
func (r *rng) normals(v []float64, d DType) {
	if len(v) < 16 {
		for i := range v {
			v[i] = r.normal()
		}
		return
	}
	block := func(v []float64) {
		for j := range 8 {
			rad, theta := math.Sqrt(-2*math.Log(1-v[j])), 2*math.Pi*v[j+8]
			v[j], v[j+8] = rad*math.Cos(theta), rad*math.Sin(theta)
		}
	}
	for i := range v {
		v[i] = r.uniform(d)
	}
	for i := 0; i+16 <= len(v); i += 16 {
		block(v[i : i+16])
	}
	if len(v)%16 != 0 {
		tail := v[len(v)-16:]
		for i := range tail {
			tail[i] = r.uniform(d)
		}
		block(tail)
	}
}

// Random makes a tensor of numbers that depend on seed and name alone: floats uniform in [-1/2, 1/2), small integers, bools.
func Random(seed uint64, name string, d DType, sizes []int64) *Tensor {
	h := fnv.New64a()
	h.Write([]byte(name))
	r := newRNG(seed ^ h.Sum64())
	n := numel(sizes)
	switch classOf(d) {
	case classFloat:
		v := make([]float64, n)
		for i := range v {
			v[i] = r.float() - 0.5
		}
		return fromFloats(d, sizes, v)
	case classComplex:
		v := make([]complex128, n)
		for i := range v {
			re := r.float() - 0.5
			v[i] = complex(re, r.float()-0.5)
		}
		return fromComplexes(d, sizes, v)
	}
	v := make([]int64, n)
	for i := range v {
		v[i] = int64(r.bits32() >> 28) // 0 to 15
		if d == ops.Bool {
			v[i] &= 1
		}
	}
	return fromInts(d, sizes, v)
}

// fillRandom makes a tensor of draws.
func fillRandom(d DType, sizes []int64, draw func(i int) float64) *Tensor {
	v := make([]float64, numel(sizes))
	for i := range v {
		v[i] = draw(i)
	}
	return fromFloats(d, sizes, v)
}

// evalRandom draws from the session's stream: rand, randn, randint, normal, uniform, exponential, poisson and their like.
// The numbers are not PyTorch's; their distribution is.
func evalRandom(c *Call) ([]Value, error) {
	r := c.rng()
	name := c.pure()
	d := ops.Float32
	var sizes []int64
	var like *Tensor
	if i := c.index("self"); i >= 0 {
		like = c.T(i)
		d, sizes = like.DType, like.Sizes
	}
	if i := c.index("size"); i >= 0 {
		sizes = c.Ints(i)
	}
	if name == "randint" {
		d = ops.Int64
	}
	if i := c.index("dtype"); i >= 0 {
		d = c.dtypeOr(i, d)
	}
	num := func(arg string, def float64) float64 { return c.floatOr(c.index(arg), def) }
	switch name {
	case "rand", "rand_like":
		return one(fillRandom(d, sizes, func(int) float64 { return r.uniform(d) }))
	case "randn", "randn_like":
		n := numel(sizes)
		if d.IsComplex() {
			v, parts := make([]complex128, n), make([]float64, 2*n)
			r.normals(parts, d.ToReal())
			for i := range v {
				v[i] = complex(parts[2*i]*math.Sqrt(0.5), parts[2*i+1]*math.Sqrt(0.5))
			}
			return one(fromComplexes(d, sizes, v))
		}
		v := make([]float64, n)
		r.normals(v, d)
		return one(fromFloats(d, sizes, v))
	case "randint", "randint_like":
		lo, hi := c.intOr(c.index("low"), 0), c.Int(c.index("high"))
		return one(drawInts(r, d, sizes, lo, hi))
	case "random":
		lo, hi := int64(0), int64(0)
		if i := c.index("from"); i >= 0 {
			lo = c.Int(i)
		}
		if i := c.index("to"); c.has(i) {
			hi = c.Int(i)
		} else if classOf(d) == classFloat {
			hi = map[DType]int64{ops.Float16: 1<<11 + 1, ops.BFloat16: 1<<8 + 1, ops.Float32: 1<<24 + 1}[d]
			if hi == 0 {
				hi = 1<<53 + 1
			}
		} else {
			_, hi = intRange(d)
		}
		return one(drawInts(r, d, sizes, lo, hi))
	case "uniform":
		lo, hi := num("from", 0), num("to", 1)
		return one(fillRandom(d, sizes, func(int) float64 { return lo + (hi-lo)*r.uniform(d) }))
	case "exponential":
		l := num("lambd", 1)
		return one(fillRandom(d, sizes, func(int) float64 { return -math.Log1p(-r.float()) / l }))
	case "normal", "normal_functional":
		at := func(arg string, def float64) func(i int) float64 {
			k := c.index(arg)
			if t, ok := c.arg(arg).(*Tensor); ok {
				return reader(t)
			}
			f := c.floatOr(k, def)
			return func(int) float64 { return f }
		}
		mean, std := at("mean", 0), at("std", 1)
		var shapes [][]int64
		for _, arg := range []string{"mean", "std"} {
			if t, ok := c.arg(arg).(*Tensor); ok {
				shapes = append(shapes, t.Sizes)
				d = t.DType
			}
		}
		if len(shapes) > 0 {
			sizes = broadcast(shapes...)
			spread := func(arg string, f func(int) float64) func(int) float64 {
				if t, ok := c.arg(arg).(*Tensor); ok {
					return reader(expandTo(t, sizes))
				}
				return f
			}
			mean, std = spread("mean", mean), spread("std", std)
		}
		z := make([]float64, numel(sizes))
		r.normals(z, d)
		return one(fillRandom(d, sizes, func(i int) float64 { return mean(i) + std(i)*z[i] }))
	case "poisson":
		rate := like.floats()
		return one(fillRandom(d, sizes, func(i int) float64 {
			limit, p, k := math.Exp(-rate[i]), 1.0, -1.0
			for p > limit || k < 0 {
				p *= r.float()
				k++
			}
			return k
		}))
	}
	fail("no random numbers %s", name)
	return nil, nil
}

// reader reads a tensor by place.
func reader(t *Tensor) func(i int) float64 {
	v := t.floats()
	return func(i int) float64 { return v[i] }
}

func drawInts(r *rng, d DType, sizes []int64, lo, hi int64) *Tensor {
	if hi <= lo {
		fail("random integers from %d to below %d", lo, hi)
	}
	v := make([]int64, numel(sizes))
	for i := range v {
		if n := uint64(hi - lo); n >= 1<<32 {
			v[i] = lo + int64(r.bits64()%n)
		} else {
			v[i] = lo + int64(uint64(r.bits32())%n)
		}
	}
	return fromInts(d, sizes, v)
}

// evalRandperm shuffles the integers below n.
func evalRandperm(c *Call) ([]Value, error) {
	r, n := c.rng(), c.Int(0)
	v := make([]int64, checkLen(n))
	for i := range v {
		v[i] = int64(i)
	}
	for i := 0; i+1 < len(v); i++ {
		j := i + int(r.bits32()%uint32(len(v)-i))
		v[i], v[j] = v[j], v[i]
	}
	return one(fromInts(c.dtypeOr(c.index("dtype"), ops.Int64), []int64{n}, v))
}

// evalBernoulli draws zeros and ones.
func evalBernoulli(c *Call) ([]Value, error) {
	t, r := c.T(0), c.rng()
	var p func(i int) float64
	if i := c.index("p"); i >= 0 {
		if x, ok := c.Args[i].(*Tensor); ok {
			p = reader(expandTo(x, t.Sizes))
		} else {
			f := c.Float(i)
			p = func(int) float64 { return f }
		}
	} else {
		p = reader(t)
	}
	return one(fillRandom(t.DType, t.Sizes, func(i int) float64 {
		if r.float() < p(i) {
			return 1
		}
		return 0
	}))
}

// evalMultinomial draws categories by weight.
func evalMultinomial(c *Call) ([]Value, error) {
	t, n, r := c.T(0), c.Int(1), c.rng()
	last := t.Rank() - 1
	if last < 0 || last > 1 {
		fail("multinomial of a tensor of %d dimensions", t.Rank())
	}
	red := t.reduction(only(last, t.Rank()), false)
	if !c.Bool(2) && n > red.inner {
		fail("%d draws of %d without replacement", n, red.inner)
	}
	out := make([]int64, 0, red.outer*n)
	red.rows(func(_ int64, row []float64) {
		w := append([]float64(nil), row...)
		for range n {
			x := r.float() * sumFloats(w)
			k := -1
			for j, p := range w {
				if p > 0 {
					k = j
					if x < p {
						break
					}
				}
				x -= p
			}
			if k < 0 {
				fail("weights without a positive one")
			}
			out = append(out, int64(k))
			if !c.Bool(2) {
				w[k] = 0
			}
		}
	})
	return one(fromInts(ops.Int64, append(append([]int64(nil), red.sizes...), n), out))
}

// evalDropout is the identity outside of training.
func evalDropout(c *Call) ([]Value, error) {
	t := c.T(0)
	p := c.floatOr(1, 0.5)
	train := c.Bool(2)
	native := c.base() == "native_dropout"
	if native && !c.has(2) {
		train = true
	}
	if !train {
		if native {
			return []Value{compactCopy(t), fill(ops.Bool, t.Sizes, int64(1))}, nil
		}
		if c.Op.Info().Mutates {
			return one(t)
		}
		return one(alias(t))
	}
	r := c.rng()
	keep := make([]bool, t.Numel())
	inner := int64(1)
	if c.base() == "feature_dropout" || c.base() == "feature_dropout_" || c.base() == "feature_alpha_dropout" {
		inner = numel(t.Sizes[min(2, t.Rank()):])
	}
	for i := int64(0); i < t.Numel(); i += inner {
		k := r.float() >= p
		for j := range inner {
			keep[i+j] = k
		}
	}
	v := t.floats()
	out := make([]float64, len(v))
	for i, x := range v {
		if keep[i] && p < 1 {
			out[i] = x / (1 - p)
		}
	}
	o := fromFloats(t.DType, t.Sizes, out)
	if native {
		return []Value{o, fromBools(t.Sizes, keep)}, nil
	}
	return one(o)
}
