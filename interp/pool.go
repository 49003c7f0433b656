package interp

import (
	"math"
	"slices"
	"strings"

	"github.com/lathe-ml/lathe/ops"
)

// planes sees the last nd dimensions as planes: batch and channels merged.
func planes(t *Tensor, nd int, what string) (v *Tensor, lead, space []int64) {
	if t.Rank() != nd+1 && t.Rank() != nd+2 {
		fail("%s of shape %v", what, t.Sizes)
	}
	k := t.Rank() - nd
	lead, space = t.Sizes[:k], t.Sizes[k:]
	return compact(t).withSizes(append([]int64{numel(lead)}, space...)...), lead, space
}

// poolSize is the number of windows along a dimension.
func poolSize(in, k, pad, stride, dilation int64, ceil bool) int64 {
	span := in + 2*pad - dilation*(k-1) - 1
	if stride <= 0 {
		fail("pooling with stride %d", stride)
	}
	n := span / stride
	if span%stride != 0 && (span < 0) { // round towards minus infinity
		n--
	}
	if ceil && span%stride != 0 {
		n++
	}
	n++
	if ceil && (n-1)*stride >= in+pad { // the last window must begin inside
		n--
	}
	if n < 1 {
		fail("pooling a dimension of %d by windows of %d leaves nothing", in, k)
	}
	return n
}

// evalMaxPool takes the largest element of each window, and its place where asked.
func evalMaxPool(c *Call) ([]Value, error) {
	nd := int(c.base()[len("max_pool")] - '0')
	t := c.T(0)
	k := c.intsN(1, nd)
	stride := k
	if c.has(2) && len(c.Ints(2)) > 0 {
		stride = c.intsN(2, nd)
	}
	pad, dil, ceil := c.intsN(3, nd), c.intsN(4, nd), c.Bool(5)
	v, lead, space := planes(t, nd, c.base())
	out := make([]int64, nd)
	for i := range out {
		if pad[i] < 0 || pad[i] > ((k[i]-1)*dil[i]+1)/2 {
			fail("padding %v is more than half of the kernel %v", pad, k)
		}
		out[i] = poolSize(space[i], k[i], pad[i], stride[i], dil[i], ceil)
	}
	np, ip := numel(out), numel(space)
	vals, at := make([]float64, v.Sizes[0]*np), make([]int64, v.Sizes[0]*np)
	src := v.floats()
	cv := conv{stride: stride, pad: pad, padAfter: pad, dilation: dil}
	taps := cv.taps(space, k, out)
	kp := numel(k)
	for p := range v.Sizes[0] {
		plane := src[p*ip : (p+1)*ip]
		for o := range np {
			m, place := math.Inf(-1), int64(-1)
			for _, a := range taps[o*kp : (o+1)*kp] {
				if a < 0 {
					continue
				}
				if x := plane[a]; place < 0 || x > m || math.IsNaN(x) {
					m, place = x, int64(a)
				}
			}
			vals[p*np+o], at[p*np+o] = m, place
		}
	}
	sizes := append(slices.Clone(lead), out...)
	o := fromFloats(t.DType, sizes, vals)
	if strings.HasSuffix(c.base(), "_with_indices") {
		return []Value{o, fromInts(ops.Int64, sizes, at)}, nil
	}
	return one(o)
}

// evalAvgPool averages each window.
func evalAvgPool(c *Call) ([]Value, error) {
	nd := int(c.base()[len("avg_pool")] - '0')
	t := c.T(0)
	k := c.intsN(1, nd)
	stride := k
	if c.has(2) && len(c.Ints(2)) > 0 {
		stride = c.intsN(2, nd)
	}
	pad, ceil, includePad := c.intsN(3, nd), c.Bool(4), c.Bool(5)
	divisor := c.intOr(6, 0)
	if c.has(6) && divisor == 0 {
		fail("divisor_override is zero")
	}
	v, lead, space := planes(t, nd, c.base())
	out := make([]int64, nd)
	for i := range out {
		if pad[i] < 0 || pad[i] > k[i]/2 {
			fail("padding %v is more than half of the kernel %v", pad, k)
		}
		out[i] = poolSize(space[i], k[i], pad[i], stride[i], 1, ceil)
	}
	np, ip := numel(out), numel(space)
	res := make([]float64, v.Sizes[0]*np)
	src := v.floats()
	taps := conv{stride: stride, pad: pad, padAfter: pad, dilation: ones(nd)}.taps(space, k, out)
	kp := numel(k)
	oi := make([]int64, nd)
	for o := range np {
		tp := taps[o*kp : (o+1)*kp]
		div := divisor
		if div == 0 {
			// Windows are clipped to the padded input; without the padding, to the input.
			div = 1
			for i := range nd {
				lo := oi[i]*stride[i] - pad[i]
				hi := min(lo+k[i], space[i]+pad[i])
				if !includePad {
					lo, hi = max(lo, 0), min(hi, space[i])
				}
				div *= hi - lo
			}
		}
		for p := range v.Sizes[0] {
			s := 0.0
			plane := src[p*ip : (p+1)*ip]
			for _, a := range tp {
				if a >= 0 {
					s += plane[a]
				}
			}
			if classOf(t.DType) == classInt {
				res[p*np+o] = float64(int64(s) / div)
			} else {
				res[p*np+o] = s / float64(div)
			}
		}
		count(oi, out)
	}
	return one(fromFloats(t.DType, append(slices.Clone(lead), out...), res))
}

// evalAdaptivePool pools to a given size: adaptive_avg_pool and adaptive_max_pool, which gives places, too.
func evalAdaptivePool(c *Call) ([]Value, error) {
	name := strings.TrimPrefix(c.base(), "_")
	nd := int(name[len("adaptive_avg_pool")] - '0')
	isMax := strings.HasPrefix(name, "adaptive_max")
	t := c.T(0)
	v, lead, space := planes(t, nd, c.base())
	out := slices.Clone(c.intsN(1, nd))
	for i, n := range out {
		if n < 0 {
			out[i] = space[i]
		}
	}
	np, ip := numel(out), numel(space)
	vals, at := make([]float64, v.Sizes[0]*np), make([]int64, v.Sizes[0]*np)
	src := v.floats()
	oi := make([]int64, nd)
	lo, size, idx := make([]int64, nd), make([]int64, nd), make([]int64, nd)
	for o := range np {
		for i := range nd {
			lo[i] = oi[i] * space[i] / out[i]
			size[i] = ((oi[i]+1)*space[i]+out[i]-1)/out[i] - lo[i]
		}
		for p := range v.Sizes[0] {
			plane := src[p*ip : (p+1)*ip]
			s, m, place := 0.0, math.Inf(-1), int64(-1)
			clear(idx)
			for range numel(size) {
				a := int64(0)
				for i := range nd {
					a = a*space[i] + lo[i] + idx[i]
				}
				x := plane[a]
				s += x
				if place < 0 || x > m || math.IsNaN(x) {
					m, place = x, a
				}
				count(idx, size)
			}
			vals[p*np+o], at[p*np+o] = s/float64(numel(size)), place
			if isMax {
				vals[p*np+o] = m
			}
		}
		count(oi, out)
	}
	sizes := append(slices.Clone(lead), out...)
	o := fromFloats(t.DType, sizes, vals)
	if isMax {
		return []Value{o, fromInts(ops.Int64, sizes, at)}, nil
	}
	return one(o)
}

// evalMaxUnpool puts values back where max pooling found them.
func evalMaxUnpool(c *Call) ([]Value, error) {
	nd := int(c.base()[len("max_unpool")] - '0')
	t, at := c.T(0), c.T(1)
	out := c.intsN(2, nd)
	v, lead, space := planes(t, nd, c.base())
	np, ip := numel(out), numel(space)
	src, idx := v.floats(), at.ints()
	res := make([]float64, v.Sizes[0]*np)
	for i, x := range src {
		k := idx[i]
		if k < 0 || k >= np {
			fail("index %d is outside of the result %v", k, out)
		}
		res[int64(i)/ip*np+k] = x
	}
	return one(fromFloats(t.DType, append(slices.Clone(lead), out...), res))
}
