package interp

import (
	"math"
	"slices"

	"github.com/lathe-ml/lathe/ops"
)

// attention computes softmax(q kᵀ scale + mask) v for q [B, Hq, L, E], k and v [B, Hk, S, …], where Hk divides Hq. bias gives
// what is added to a score, -inf where nothing is attended to. Rows that attend to nothing give nan0. lse receives the
// logarithms of the rows' sums.
func attention(q, k, v *Tensor, scale float64, bias func(b, h, i, j int) float64, nan0 float64, lse []float64) *Tensor {
	bn, hq, l, e := int(q.Sizes[0]), int(q.Sizes[1]), int(q.Sizes[2]), int(q.Sizes[3])
	hk, s, ev := int(k.Sizes[1]), int(k.Sizes[2]), int(v.Sizes[3])
	if int(k.Sizes[0]) != bn || int(v.Sizes[0]) != bn || int(v.Sizes[1]) != hk || int(k.Sizes[3]) != e || int(v.Sizes[2]) != s || hk == 0 || hq%hk != 0 {
		fail("attention of query %v, key %v, value %v", q.Sizes, k.Sizes, v.Sizes)
	}
	qv, kv, vv := q.floats(), k.floats(), v.floats()
	out := make([]float64, bn*hq*l*ev)
	parallel(bn*hq, max(1, 1<<14/(l*s*e+1)), func(lo, hi int) {
		w := make([]float64, s)
		for bh := lo; bh < hi; bh++ {
			b, h := bh/hq, bh%hq
			kh := b*hk + h/(hq/hk)
			for i := range l {
				qr := qv[(bh*l+i)*e : (bh*l+i+1)*e]
				m := math.Inf(-1)
				for j := range s {
					x := dot(qr, kv[(kh*s+j)*e:(kh*s+j+1)*e]) * scale
					if bias != nil {
						x += bias(b, h, i, j)
					}
					w[j] = x
					m = maxNaN(m, x)
				}
				dst := out[(bh*l+i)*ev : (bh*l+i+1)*ev]
				if math.IsInf(m, -1) {
					for c := range dst {
						dst[c] = nan0
					}
					if lse != nil {
						lse[bh*l+i] = m
					}
					continue
				}
				sum := 0.0
				for j := range w {
					w[j] = math.Exp(w[j] - m)
					sum += w[j]
				}
				for j, x := range w {
					if x == 0 {
						continue
					}
					p := x / sum
					for c, y := range vv[(kh*s+j)*ev : (kh*s+j+1)*ev] {
						dst[c] += p * y
					}
				}
				if lse != nil {
					lse[bh*l+i] = m + math.Log(sum)
				}
			}
		}
	})
	return fromFloats(q.DType, []int64{int64(bn), int64(hq), int64(l), int64(ev)}, out)
}

// maskBias reads a mask that broadcasts to [B, H, L, S]: bools let pass where true, numbers are added.
func maskBias(mask *Tensor, sizes []int64) func(b, h, i, j int) float64 {
	full := expandTo(mask, sizes)
	// The mask is read through its strides, so that broadcast dimensions cost nothing.
	m := compact(mask)
	m = expandTo(m, sizes)
	st := m.Strides
	if full.DType == ops.Bool {
		v := flat[uint8](compact(mask))
		return func(b, h, i, j int) float64 {
			if v[int64(b)*st[0]+int64(h)*st[1]+int64(i)*st[2]+int64(j)*st[3]] != 0 {
				return 0
			}
			return math.Inf(-1)
		}
	}
	v := compact(mask).floats()
	return func(b, h, i, j int) float64 {
		return v[int64(b)*st[0]+int64(h)*st[1]+int64(i)*st[2]+int64(j)*st[3]]
	}
}

// fourD gives q, k, v the dimensions batch and heads.
func fourD(ts ...*Tensor) (out []*Tensor, lead []int64) {
	lead = ts[0].Sizes[:max(ts[0].Rank()-2, 0)]
	for _, t := range ts {
		if t.Rank() < 2 {
			fail("attention of a tensor of %d dimensions", t.Rank())
		}
		r := t.Rank()
		h := int64(1)
		if r > 2 {
			h = t.Sizes[r-3]
		}
		n := int64(1)
		if r > 3 {
			n = numel(t.Sizes[:r-3])
		}
		out = append(out, reshape(t, []int64{n, h, t.Sizes[r-2], t.Sizes[r-1]}))
	}
	return out, lead
}

// evalSdpa computes scaled dot product attention and its backend variants.
func evalSdpa(c *Call) ([]Value, error) {
	q, k, v := c.T(0), c.T(1), c.T(2)
	sameTypes("attention", q, k, v)
	get := func(names ...string) int {
		for _, n := range names {
			if i := c.index(n); i >= 0 {
				return i
			}
		}
		return -1
	}
	mask := c.optT(get("attn_mask", "attn_bias"))
	causal := c.Bool(get("is_causal"))
	scale := c.floatOr(get("scale"), 1/math.Sqrt(float64(q.Sizes[q.Rank()-1])))
	if c.floatOr(get("dropout_p"), 0) > 0 && c.base() == "scaled_dot_product_attention" {
		fail("attention with dropout has no reference result")
	}
	if mask != nil && causal {
		fail("attention with both a mask and is_causal")
	}
	if (k.Numel() == 0 || v.Numel() == 0) && c.base() == "scaled_dot_product_attention" {
		return one(NewTensor(q.DType, append(slices.Clone(q.Sizes[:q.Rank()-1]), v.Sizes[v.Rank()-1])...))
	}
	gqa := c.Bool(get("enable_gqa")) || c.base() != "scaled_dot_product_attention"
	// Batch dimensions of the operands may differ where they broadcast.
	r := max(q.Rank(), k.Rank(), v.Rank())
	if r > 4 || q.Rank() != k.Rank() || k.Rank() != v.Rank() || !gqa {
		lead := broadcast(q.Sizes[:q.Rank()-2], k.Sizes[:k.Rank()-2], v.Sizes[:v.Rank()-2])
		spread := func(t *Tensor) *Tensor {
			return expandTo(t, append(slices.Clone(lead), t.Sizes[t.Rank()-2:]...))
		}
		q, k, v = spread(q), spread(k), spread(v)
	}
	qs := q.Sizes
	ts, lead := fourD(q, k, v)
	var bias func(b, h, i, j int) float64
	switch {
	case mask != nil:
		full := append(slices.Clone(lead), qs[len(qs)-2], k.Sizes[k.Rank()-2])
		m := mask
		if mask.Rank() > len(full) {
			fail("attention mask %v for scores of shape %v", mask.Sizes, full)
		}
		if len(full) != 4 {
			m = reshape(expandTo(mask, full), []int64{ts[0].Sizes[0], ts[0].Sizes[1], ts[0].Sizes[2], ts[1].Sizes[2]})
		}
		bias = maskBias(m, []int64{ts[0].Sizes[0], ts[0].Sizes[1], ts[0].Sizes[2], ts[1].Sizes[2]})
	case causal:
		bias = func(_, _, i, j int) float64 {
			if j > i {
				return math.Inf(-1)
			}
			return 0
		}
	}
	lse := make([]float64, numel(ts[0].Sizes[:3]))
	o := attention(ts[0], ts[1], ts[2], scale, bias, 0, lse)
	o = o.withSizes(append(slices.Clone(qs[:len(qs)-1]), v.Sizes[v.Rank()-1])...)
	switch c.base() {
	case "scaled_dot_product_attention":
		return one(o)
	case "_scaled_dot_product_flash_attention_for_cpu":
		d := ops.Float32
		if q.DType == ops.Float64 {
			d = q.DType
		}
		return []Value{o, fromFloats(d, ts[0].Sizes[:3], lse)}, nil
	case "_scaled_dot_product_attention_math":
		var b2 func(b, h, i, j int) float64 = bias
		w := attentionWeights(ts[0], ts[1], scale, b2)
		return []Value{o, w.withSizes(append(slices.Clone(qs[:len(qs)-1]), k.Sizes[k.Rank()-2])...)}, nil
	}
	fail("no attention %s", c.base())
	return nil, nil
}

// attentionWeights are the probabilities alone.
func attentionWeights(q, k *Tensor, scale float64, bias func(b, h, i, j int) float64) *Tensor {
	n, s := k.Sizes[0]*k.Sizes[1], k.Sizes[2]
	eye := NewTensor(ops.Float64, k.Sizes[0], k.Sizes[1], s, s)
	for p := range n {
		for i := range s {
			flat[float64](eye)[(p*s+i)*s+i] = 1
		}
	}
	return attention(q, k, eye, scale, bias, 0, nil)
}

func gelu(x float64) float64 { return 0.5 * x * math.Erfc(-x/math.Sqrt2) }
