package interp

import (
	"hash/fnv"
	"math"

	"github.com/lathe-ml/lathe/ops"
)

// rng is SplitMix64: small, and the same on every machine.
type rng struct{ s uint64 }

func newRNG(seed uint64) rng { return rng{seed} }

func (r *rng) next() uint64 {
	r.s += 0x9e3779b97f4a7c15
	z := r.s
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// float is uniform in [0, 1).
func (r *rng) float() float64 { return float64(r.next()>>11) * 0x1p-53 }

func (r *rng) normal() float64 {
	return math.Sqrt(-2*math.Log(1-r.float())) * math.Cos(2*math.Pi*r.float())
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
			v[i] = complex(r.float()-0.5, r.float()-0.5)
		}
		return fromComplexes(d, sizes, v)
	}
	v := make([]int64, n)
	for i := range v {
		v[i] = int64(r.next() >> 60) // 0 to 15
		if d == ops.Bool {
			v[i] &= 1
		}
	}
	return fromInts(d, sizes, v)
}
