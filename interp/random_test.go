package interp

import (
	"math"
	"testing"

	"github.com/lathe-ml/lathe/ops"
)

// TestSeed checks draws against torch.manual_seed(7).
func TestSeed(t *testing.T) {
	for _, c := range []struct {
		name string
		draw func(r *rng) []float64
		want []float64
	}{
		{"rand", func(r *rng) []float64 {
			return []float64{r.uniform(ops.Float32), r.uniform(ops.Float32), r.uniform(ops.Float32)}
		}, []float64{0.5349225401878357, 0.19880318641662598, 0.6592116951942444}},
		{"rand float64", func(r *rng) []float64 { return []float64{r.uniform(ops.Float64), r.uniform(ops.Float64)} }, []float64{0.279380429906404, 0.27369371365176565}},
		{"randn", func(r *rng) []float64 { v := make([]float64, 3); r.normals(v, ops.Float32); return v }, []float64{-0.1467950940132141, 0.7861412763595581, 0.9468216300010681}},
		{"randn of 18", func(r *rng) []float64 {
			v := make([]float64, 18)
			r.normals(v, ops.Float32)
			return []float64{v[0], v[1], v[9], v[17]}
		}, []float64{-0.8201345205307007, 0.39563116431236267, -1.2169294357299805, -0.5640066862106323}},
		{"randint", func(r *rng) []float64 { return drawInts(r, ops.Int64, []int64{4}, 0, 1000).floats() }, []float64{615.0, 892.0, 721.0, 286.0}},
	} {
		got := c.draw(newRNG(7))
		for i, w := range c.want {
			if math.Abs(got[i]-w) > 1e-6*math.Abs(w) {
				t.Errorf("%s: %v, want %v", c.name, got, c.want)
				break
			}
		}
	}
}
