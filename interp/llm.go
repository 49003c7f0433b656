package interp

import (
	"math"
	"slices"

	"github.com/lathe-ml/lathe/ops"
)

// evalKvUpdate writes new keys or values into a cache in place.
func evalKvUpdate(c *Call) ([]Value, error) {
	switch c.base() {
	case "kv_cache_update": // [B, H, S, D]
		cache, v, start, ring := c.T(0), c.T(1), c.Int(2), c.intOr(3, 0)
		need(cache, 4, "cache")
		n := v.Sizes[2]
		if ring > 0 {
			at := ((start % ring) + ring) % ring
			first := min(n, ring-at)
			writeInto(slice(cache, 2, at, at+first, 1), slice(v, 2, 0, first, 1))
			if first < n {
				writeInto(slice(cache, 2, 0, n-first, 1), slice(v, 2, first, n, 1))
			}
		} else {
			if start < 0 || start+n > cache.Sizes[2] {
				fail("positions [%d, %d) of a cache of %d", start, start+n, cache.Sizes[2])
			}
			writeInto(slice(cache, 2, start, start+n, 1), v)
		}
		return one(NewTensor(v.DType, 1))
	case "update_cross_attn_cache":
		v, cache := c.T(0), c.T(1)
		writeInto(slice(cache, 2, 0, v.Sizes[2], 1), v)
		return one(alias(cache))
	}
	v, cache, start := c.T(0), c.T(1), c.Int(2) // [B, S, H, D]
	need(cache, 4, "cache")
	if c.base() == "update_cache_with_indices" {
		idx := c.T(3).ints()
		b, s := v.Sizes[0], v.Sizes[1]
		for i := range b {
			for j := range s {
				if k := idx[i*s+j]; k >= 0 && k < cache.Sizes[1] {
					writeInto(selectDim(selectDim(cache, 0, i), 0, k), selectDim(selectDim(v, 0, i), 0, j))
				}
			}
		}
		return one(NewTensor(v.DType, 1))
	}
	n := v.Sizes[1]
	if start < 0 || start+n > cache.Sizes[1] {
		fail("positions [%d, %d) of a cache of %d", start, start+n, cache.Sizes[1])
	}
	writeInto(slice(cache, 1, start, start+n, 1), v)
	return one(NewTensor(v.DType, 1))
}

// causalFrom hides what comes after position start + i.
func causalFrom(start int64) func(b, h, i, j int) float64 {
	return func(_, _, i, j int) float64 {
		if int64(j) > start+int64(i) {
			return math.Inf(-1)
		}
		return 0
	}
}

// evalCustomSdpa attends over the first start_pos + length positions of a cache: mlx.custom_sdpa with heads before
// positions, llama.custom_sdpa after.
func evalCustomSdpa(c *Call) ([]Value, error) {
	q, k, v, start := c.T(0), c.T(1), c.T(2), c.Int(3)
	mask, causal := c.optT(4), c.Bool(6)
	scale := c.floatOr(7, 1/math.Sqrt(float64(q.Sizes[q.Rank()-1])))
	if c.Op.Info().Schema.NS == "mlx" {
		end := start + q.Sizes[2]
		return one(sdpaCache(q, k, v, mask, causal, scale, start, end, true))
	}
	return one(llamaSdpa(q, k, v, mask, causal, scale, start))
}

// llamaSdpa takes [B, S, H, D].
func llamaSdpa(q, k, v, mask *Tensor, causal bool, scale float64, start int64) *Tensor {
	sw := func(t *Tensor) *Tensor { return transpose(t, 1, 2) }
	end := start + q.Sizes[1]
	if mask != nil {
		end = k.Sizes[1]
	}
	return compact(sw(sdpaCache(sw(q), sw(k), sw(v), mask, causal, scale, start, end, false)))
}

func sdpaCache(q, k, v, mask *Tensor, causal bool, scale float64, start, end int64, cutMask bool) *Tensor {
	if start < 0 || end > k.Sizes[2] {
		fail("positions up to %d of a cache of %d", end, k.Sizes[2])
	}
	k, v = slice(k, 2, 0, end, 1), slice(v, 2, 0, end, 1)
	var bias func(b, h, i, j int) float64
	switch {
	case causal:
		bias = causalFrom(start)
	case mask != nil:
		if !cutMask && mask.Rank() == 2 && mask.Sizes[1] > end {
			mask = slice(mask, 1, 0, end, 1)
		}
		bias = maskBias(mask, []int64{q.Sizes[0], q.Sizes[1], q.Sizes[2], end})
	}
	return attention(q, k, v, scale, bias, 0, nil)
}

// evalSdpaWithKvCache updates both caches and attends.
func evalSdpaWithKvCache(c *Call) ([]Value, error) {
	q, k, v, kc, vc, start := c.T(0), c.T(1), c.T(2), c.T(3), c.T(4), c.Int(5)
	n := k.Sizes[1]
	if start < 0 || start+n > kc.Sizes[1] {
		fail("positions [%d, %d) of a cache of %d", start, start+n, kc.Sizes[1])
	}
	writeInto(slice(kc, 1, start, start+n, 1), k)
	writeInto(slice(vc, 1, start, start+n, 1), v)
	scale := c.floatOr(10, 1/math.Sqrt(float64(q.Sizes[3])))
	return one(llamaSdpa(q, kc, vc, c.optT(7), c.Bool(9), scale, start))
}

// evalLlamaQuantizedSdpa attends over quantized queries, keys and values.
func evalLlamaQuantizedSdpa(c *Call) ([]Value, error) {
	part := func(i int, zp, sc string) *Tensor {
		t := c.T(i)
		s := c.optT(c.index(sc))
		if s == nil {
			return cast(t, ops.Float32)
		}
		v := arith("mul", arith("sub", t, c.T(c.index(zp))), s)
		return cast(v, ops.Float32)
	}
	q, k, v := part(0, "q_zero_points", "q_scales"), part(1, "k_zero_points", "k_scales"), part(2, "v_zero_points", "v_scales")
	start := c.Int(3)
	scale := c.floatOr(c.index("scale"), 1/math.Sqrt(float64(q.Sizes[3])))
	mask, causal := c.optT(c.index("attn_mask")), c.Bool(c.index("is_causal"))
	if c.Bool(c.index("is_seq_at_dim_2")) {
		end := start + q.Sizes[2]
		if mask != nil {
			end = k.Sizes[2]
		}
		return one(sdpaCache(q, k, v, mask, causal, scale, start, end, false))
	}
	return one(llamaSdpa(q, k, v, mask, causal, scale, start))
}

// evalUpdateAndAttend appends to the layer's history, which lives outside of the graph, and attends over it. New
// positions see what is at or before them.
func evalUpdateAndAttend(c *Call) ([]Value, error) {
	q, k, v, pos, layer := c.T(0), c.T(1), c.T(2), c.T(3), c.Int(4)
	if c.run == nil {
		fail("the cache needs a session")
	}
	st := c.run.s.state
	old := st.history[layer]
	at := int64(0)
	if old[0] != nil {
		at = old[0].Sizes[2]
	}
	if first := pos.ints(); len(first) > 0 && first[0] < at {
		at = first[0] // a sequence begins anew, or goes back
	}
	join := func(h, x *Tensor) *Tensor {
		x = cast(x, ops.Float32)
		if h == nil {
			return compactCopy(x)
		}
		return cat([]*Tensor{slice(h, 2, 0, at, 1), x}, 2)
	}
	hist := [2]*Tensor{join(old[0], k), join(old[1], v)}
	st.history[layer] = hist
	o := attention(cast(q, ops.Float32), hist[0], hist[1], c.Float(5), causalFrom(at), 0, nil)
	return one(cast(o, c.dtypeOr(6, q.DType)))
}

// evalRope rotates pairs of features by angles that grow with the position.
func evalRope(c *Call) ([]Value, error) {
	x, n, pos := c.T(0), c.Int(1), c.Int(2)
	need(x, 4, "x")
	traditional, base, scale, freqs := c.Bool(3), c.Float(4), c.Float(5), c.optT(6)
	t, half := x.Sizes[2], n/2
	if n < 0 || n > x.Sizes[3] || n%2 != 0 {
		fail("rotation of %d of %d features", n, x.Sizes[3])
	}
	f32 := func(f float64) float64 { return float64(float32(f)) }
	angles := make([]float64, t*half)
	var fv []float64
	if freqs != nil {
		fv = freqs.floats()
	}
	for i := range t {
		for j := range half {
			var a float64
			switch {
			case freqs == nil:
				a = f32(f32(float64(pos+i)*f32(math.Pow(base, f32(f32(-2*float64(j))/float64(n))))) * scale)
			case freqs.Rank() == 1:
				a = f32(f32(float64(pos+i)*f32(1/f32(fv[j]))) * scale)
			default:
				a = f32(fv[i*half+j])
			}
			angles[i*half+j] = a
		}
	}
	return one(rotated(x, n, fromFloats(ops.Float32, []int64{1, 1, t, half}, angles), traditional))
}

// evalRotary is evalRope with frequencies instead of their inverses, and with a start for each sequence.
func evalRotary(c *Call) ([]Value, error) {
	x, inv, start, starts, traditional := c.T(0), c.T(1), c.Int(2), c.optT(3), c.Bool(4)
	need(x, 4, "x")
	need(inv, 1, "inv_freq")
	half, t, batch := inv.Sizes[0], x.Sizes[2], int64(1)
	if 2*half > x.Sizes[3] {
		fail("rotation of %d of %d features", 2*half, x.Sizes[3])
	}
	from := []int64{0}
	if starts != nil {
		need(starts, 1, "starts")
		if from, batch = starts.ints(), starts.Sizes[0]; batch != 1 && batch != x.Sizes[0] {
			fail("%d starts for a batch of %d", batch, x.Sizes[0])
		}
	}
	fs := cast(inv, ops.Float32).floats()
	angles := make([]float64, 0, batch*t*half)
	for _, s := range from {
		for i := range t {
			for _, f := range fs {
				angles = append(angles, float64(float32(float64(float32(start+s+i))*f)))
			}
		}
	}
	return one(rotated(x, 2*half, fromFloats(ops.Float32, []int64{batch, 1, t, half}, angles), traditional))
}

// rotated rotates pairs of the first n features by angles, whose sines and cosines are rounded to x's type.
func rotated(x *Tensor, n int64, at *Tensor, traditional bool) *Tensor {
	half := n / 2
	cs := cast(mapFloats(at, ops.Float32, math.Cos), x.DType)
	sn := cast(mapFloats(at, ops.Float32, math.Sin), x.DType)
	rot := slice(x, 3, 0, n, 1)
	var x1, x2 *Tensor
	if traditional {
		x1, x2 = slice(rot, 3, 0, n, 2), slice(rot, 3, 1, n, 2)
	} else {
		x1, x2 = slice(rot, 3, 0, half, 1), slice(rot, 3, half, n, 1)
	}
	re := arith("sub", arith("mul", x1, cs), arith("mul", x2, sn))
	im := arith("add", arith("mul", x1, sn), arith("mul", x2, cs))
	var o *Tensor
	if traditional {
		o = reshape(stack([]*Tensor{re, im}, -1), rot.Sizes)
	} else {
		o = cat([]*Tensor{re, im}, 3)
	}
	if n < x.Sizes[3] {
		o = cat([]*Tensor{o, slice(x, 3, n, x.Sizes[3], 1)}, 3)
	}
	return compact(o)
}

// takeFirst indexes the first dimension by a tensor of any shape.
func takeFirst(t, idx *Tensor) *Tensor {
	if t == nil || idx == nil {
		return t
	}
	o := indexRows(t, 0, wrapIndices(idx.ints(), t.Sizes[0]))
	return o.withSizes(append(slices.Clone(idx.Sizes), t.Sizes[1:]...)...)
}

// evalGatherMm multiplies by the matrices that indices pick.
func evalGatherMm(c *Call) ([]Value, error) {
	a, b := c.T(0), c.T(1)
	return one(matmul(takeFirst(a, c.optT(3)), takeFirst(b, c.optT(2))))
}

// evalGatherQmm does so by quantized matrices.
func evalGatherQmm(c *Call) ([]Value, error) {
	x, w, scales, biases := c.T(0), c.T(1), c.T(2), c.optT(3)
	idx := c.optT(4)
	w, scales, biases = takeFirst(w, idx), takeFirst(scales, idx), takeFirst(biases, idx)
	x = takeFirst(x, c.optT(5))
	group, bits := c.intOr(7, 32), c.intOr(8, 4)
	if w.DType == ops.Uint8 {
		if bits != 4 {
			fail("packed weights of %d bits", bits)
		}
		src := w.ints()
		out := make([]int64, 0, 2*len(src))
		for _, b := range src {
			out = append(out, b&15-8, b>>4&15-8)
		}
		sizes := slices.Clone(w.Sizes)
		sizes[len(sizes)-1] *= 2
		w = fromInts(ops.Int16, sizes, out)
	}
	last := w.Rank() - 1
	n := w.Sizes[last]
	spread := func(s *Tensor) *Tensor {
		i := make([]int64, n)
		for k := range i {
			i[k] = int64(k) / group
		}
		return indexRows(s, last, i)
	}
	v := arith("mul", cast(w, x.DType), spread(scales))
	if biases != nil {
		v = arith("add", v, spread(biases))
	}
	if c.Bool(6) {
		v = transpose(v, last-1, last)
	}
	return one(matmul(x, cast(v, x.DType)))
}

// evalMoeGatherInputs repeats each token for its experts, sorted by expert when there are many.
func evalMoeGatherInputs(c *Call) ([]Value, error) {
	x, experts, k := c.T(0), c.T(1), c.Int(2)
	n := x.Sizes[0]
	flatE := experts.ints()
	m := int64(len(flatE))
	order := make([]int64, m)
	for i := range order {
		order[i] = int64(i)
	}
	sorted := int64(0)
	if n > c.Int(3) {
		sorted = 1
		slices.SortStableFunc(order, func(a, b int64) int { return int(flatE[a] - flatE[b]) })
	}
	inv, idx, rows := make([]int64, m), make([]int64, m), make([]int64, m)
	for i, o := range order {
		inv[o], idx[i], rows[i] = int64(i), flatE[o], o/k
	}
	in := unsqueeze(indexRows(x, 0, rows), 1)
	return []Value{in, fromInts(ops.Int32, []int64{m}, idx), fromInts(ops.Int32, nil, []int64{sorted}), fromInts(ops.Int32, []int64{m}, inv)}, nil
}

// evalMoeScatterOutputs brings the experts' results back into the order of the tokens.
func evalMoeScatterOutputs(c *Call) ([]Value, error) {
	down, k := c.T(0), c.Int(3)
	down = squeeze(down, only(down.Rank()-2, down.Rank()))
	if c.T(1).bools()[0] {
		down = indexRows(down, 0, c.T(2).ints())
	}
	return one(compactCopy(reshape(down, []int64{down.Sizes[0] / k, k, -1})))
}

// evalSample draws a token by the Gumbel-max rule after top-k and top-p; at temperature zero it is the largest logit.
func evalSample(c *Call) ([]Value, error) {
	logits := c.T(0)
	temp, topP := c.T(1).floats()[0], c.T(3).floats()[0]
	last := only(logits.Rank()-1, logits.Rank())
	if temp <= 0 {
		_, i := extreme(logits, last, false, false)
		return one(i)
	}
	r := c.rng()
	if s := c.optT(4); s != nil {
		r = newRNG(uint64(s.ints()[0]))
	}
	red := logits.reduction(last, false)
	at := make([]int64, red.outer)
	topK := c.T(2).ints()[0]
	red.rows(func(i int64, row []float64) {
		scaled := mapSlice(row, func(x float64) float64 { return x / temp })
		desc := slices.Clone(scaled)
		slices.SortFunc(desc, func(a, b float64) int { return cmpFloat(b, a) })
		kth := desc[min(max(topK, 1), int64(len(desc)))-1]
		sum := 0.0
		p := make([]float64, len(scaled))
		for j, x := range scaled {
			if x >= kth {
				p[j] = math.Exp(x - desc[0])
				sum += p[j]
			}
		}
		for j := range p {
			p[j] /= sum
		}
		byP := slices.Clone(p)
		slices.SortFunc(byP, func(a, b float64) int { return cmpFloat(b, a) })
		thresh, cum := math.Inf(1), 0.0
		for _, x := range byP {
			if cum <= topP {
				thresh = min(thresh, x)
			}
			cum += x
		}
		best, where := math.Inf(-1), int64(0)
		for j, x := range scaled {
			g := -math.Log(-math.Log(r.uniform(ops.Float32)))
			if p[j] >= thresh && p[j] > 0 && x+g > best {
				best, where = x+g, int64(j)
			}
		}
		at[i] = where
	})
	return one(fromInts(ops.Int64, red.sizes, at))
}

func cmpFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// evalGatedDeltaRule runs the gated delta recurrence: mlx's over [B, T, H, D] with a state [B, H, V, K] written in place,
// llama's over [B, H, T, D] with a state [B, H, K, V] that it gives back. States and sums round to the tensors' type at
// each step, as the reference does.
func evalGatedDeltaRule(c *Call) ([]Value, error) {
	q, k, v, g, beta, state := c.T(0), c.T(1), c.T(2), c.T(3), c.T(4), c.T(5)
	mlx := c.Op.Info().Schema.NS == "mlx"
	timeDim, headDim := 2, 1
	if mlx {
		timeDim, headDim = 1, 2
	}
	steps := q.Sizes[timeDim]
	rep := func(t *Tensor, n int64, d int) *Tensor {
		k := t.Sizes[d]
		if n == k {
			return t
		}
		if k == 0 || n%k != 0 {
			fail("%d heads over %d", n, k)
		}
		idx := make([]int64, n)
		for i := range idx {
			idx[i] = int64(i) / (n / k)
		}
		return indexRows(t, d, idx)
	}
	if mlx {
		n := v.Sizes[2]
		q, k = rep(q, n, 2), rep(k, n, 2)
	} else if g.Rank() == 3 {
		g = expandTo(unsqueeze(g, 3), k.Sizes)
	}
	s := compactCopy(state)
	last := []int64{-1}
	var ys []*Tensor
	for t := range steps {
		at := func(x *Tensor) *Tensor { return selectDim(x, timeDim, t) }
		qt, kt, vt, gt, bt := at(q), at(k), at(v), at(g), at(beta)
		if mlx {
			s = arith("mul", s, unsqueeze(unsqueeze(gt, 2), 3))
			krow := unsqueeze(kt, 2)
			mem := reduceSum(arith("mul", s, krow), last, false, s.DType)
			delta := arith("mul", arith("sub", vt, mem), unsqueeze(bt, 2))
			s = arith("add", s, arith("mul", krow, unsqueeze(delta, 3)))
			ys = append(ys, reduceSum(arith("mul", s, unsqueeze(qt, 2)), last, false, s.DType))
			continue
		}
		s = arith("mul", s, unsqueeze(gt, 3))
		kcol := unsqueeze(kt, 3)
		pred := reduceSum(arith("mul", s, kcol), []int64{-2}, false, s.DType)
		delta := arith("mul", arith("sub", vt, pred), unsqueeze(bt, 2))
		s = arith("add", s, arith("mul", kcol, unsqueeze(delta, 2)))
		ys = append(ys, reduceSum(arith("mul", rep(s, q.Sizes[headDim], 1), unsqueeze(qt, 3)), []int64{-2}, false, s.DType))
	}
	if len(ys) == 0 {
		fail("no steps")
	}
	y := stack(ys, int64(timeDim))
	if mlx {
		writeInto(state, s)
		return one(y)
	}
	return []Value{y, cast(s, state.DType)}, nil
}

// evalTq4Compress finds the bucket of each number and packs two a byte, the even one in the high half.
func evalTq4Compress(c *Call) ([]Value, error) {
	t, bounds := c.T(0), c.T(1).floats()
	v := t.floats()
	bucket := func(x float64) int64 {
		n := int64(0)
		for _, b := range bounds {
			if b < x {
				n++
			}
		}
		return n
	}
	sizes := slices.Clone(t.Sizes)
	if len(sizes) == 0 || sizes[len(sizes)-1]%2 != 0 {
		fail("shape %v does not end in an even dimension", t.Sizes)
	}
	sizes[len(sizes)-1] /= 2
	out := make([]int64, len(v)/2)
	for i := range out {
		out[i] = bucket(v[2*i])<<4 | bucket(v[2*i+1])
	}
	return one(fromInts(ops.Uint8, sizes, out))
}

// evalTqDequant looks packed indices up among centroids and multiplies by norms.
func evalTqDequant(c *Call) ([]Value, error) {
	packed, norms, cent := c.T(0), c.T(1), c.T(2)
	var idx []int64
	for _, b := range packed.ints() {
		idx = append(idx, b>>4, b&15)
	}
	sizes := slices.Clone(packed.Sizes)
	sizes[len(sizes)-1] *= 2
	return one(arith("mul", indexRows(cent, 0, idx).withSizes(sizes...), norms))
}

// evalTqNorm is the length of each row.
func evalTqNorm(c *Call) ([]Value, error) {
	t := c.T(0)
	return one(vectorNorm(t, 2, only(t.Rank()-1, t.Rank()), true, t.DType))
}

// evalFastHadamardTransform transforms rows by the orthonormal Hadamard matrix.
func evalFastHadamardTransform(c *Call) ([]Value, error) {
	t := c.T(0)
	n := int(t.Sizes[t.Rank()-1])
	if n == 0 || n&(n-1) != 0 {
		fail("rows of %d elements, which is no power of two", n)
	}
	v := slices.Clone(t.floats())
	for r := 0; r < len(v); r += n {
		row := v[r : r+n]
		for h := 1; h < n; h *= 2 {
			for i := 0; i < n; i += 2 * h {
				for j := i; j < i+h; j++ {
					row[j], row[j+h] = row[j]+row[j+h], row[j]-row[j+h]
				}
			}
		}
		for i := range row {
			row[i] /= math.Sqrt(float64(n))
		}
	}
	return one(fromFloats(t.DType, t.Sizes, v))
}
