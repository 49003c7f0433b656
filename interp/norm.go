package interp

import (
	"math"
	"slices"
	"strings"

	"github.com/lathe-ml/lathe/ops"
)

// evalSoftmax computes softmax and log_softmax over a dimension. _safe_softmax gives zeros for rows of -inf alone.
func evalSoftmax(c *Call) ([]Value, error) {
	t := c.T(0)
	d := t.DType
	if i := c.index("dtype"); i >= 0 {
		d = c.dtypeOr(i, d)
	}
	if classOf(d) == classInt {
		fail("%s has no meaning for %s", c.base(), d)
	}
	if d != t.DType && half(d) {
		t = cast(t, d)
	}
	if i := c.index("half_to_float"); i >= 0 && c.Bool(i) {
		d = ops.Float32
	}
	k := dim(c.Int(1), t.Rank())
	return one(softmax(t, k, d, strings.Contains(c.base(), "log_softmax"), c.base() == "_safe_softmax"))
}

func softmax(t *Tensor, d int, dt DType, logs, safe bool) *Tensor {
	v := t.floats()
	out := make([]float64, len(v))
	along(t.Sizes, d, func(line []int64) {
		m := math.Inf(-1)
		for _, k := range line {
			m = maxNaN(m, v[k])
		}
		if safe && math.IsInf(m, -1) {
			return
		}
		s := 0.0
		for _, k := range line {
			e := math.Exp(v[k] - m)
			out[k] = e
			s += e
		}
		ls := math.Log(s)
		for _, k := range line {
			if logs {
				out[k] = v[k] - m - ls
			} else {
				out[k] /= s
			}
		}
	})
	return fromFloats(dt, t.Sizes, out)
}

// evalMaskedSoftmax leaves masked elements out.
func evalMaskedSoftmax(c *Call) ([]Value, error) {
	t, mask := c.T(0), c.T(1)
	d := t.Rank() - 1
	if c.has(2) {
		d = dim(c.Int(2), t.Rank())
	}
	if mask.Rank() == 2 && t.Rank() == 4 {
		if c.intOr(3, -1) == 0 { // [L, L]
			mask = reshape(mask, []int64{1, 1, mask.Sizes[0], mask.Sizes[1]})
		} else { // [B, L]
			mask = reshape(mask, []int64{mask.Sizes[0], 1, 1, mask.Sizes[1]})
		}
	}
	filled := choose(mask, scalarTensor(t.DType, math.Inf(-1)), t, t.Sizes)
	return one(softmax(filled, d, t.DType, false, true))
}

func normTail(t *Tensor, shape []int64) (rows, inner int64) {
	k := t.Rank() - len(shape)
	if k < 0 || !slices.Equal(t.Sizes[k:], shape) {
		fail("input %v does not end in normalized_shape %v", t.Sizes, shape)
	}
	return numel(t.Sizes[:k]), numel(shape)
}

// layerNorm normalizes rows of inner elements; affine weights are one an element of a row.
func layerNorm(t *Tensor, rows, inner int64, w, b *Tensor, eps float64) (o *Tensor, means, rstds []float64) {
	v := t.floats()
	out := make([]float64, len(v))
	means, rstds = make([]float64, rows), make([]float64, rows)
	var wv, bv []float64
	if w != nil {
		wv = w.floats()
	}
	if b != nil {
		bv = b.floats()
	}
	for i := range rows {
		row, dst := v[i*inner:(i+1)*inner], out[i*inner:(i+1)*inner]
		mu, m2 := moments(row)
		r := 1 / math.Sqrt(m2/float64(inner)+eps)
		means[i], rstds[i] = mu, r
		for k, x := range row {
			y := (x - mu) * r
			if wv != nil {
				y *= wv[k]
			}
			if bv != nil {
				y += bv[k]
			}
			dst[k] = y
		}
	}
	return fromFloats(t.DType, t.Sizes, out), means, rstds
}

// evalLayerNorm normalizes over the last dimensions; native_layer_norm gives mean and 1/std, too.
func evalLayerNorm(c *Call) ([]Value, error) {
	t, shape := c.T(0), c.Ints(1)
	rows, inner := normTail(t, shape)
	o, mean, rstd := layerNorm(t, rows, inner, c.optT(2), c.optT(3), c.Float(4))
	if c.base() == "layer_norm" {
		return one(o)
	}
	sizes := slices.Clone(t.Sizes)
	for i := t.Rank() - len(shape); i < t.Rank(); i++ {
		sizes[i] = 1
	}
	d := t.DType
	if w := c.optT(2); half(d) && w != nil && w.DType == ops.Float32 {
		d = ops.Float32
	}
	return []Value{o, fromFloats(d, sizes, mean), fromFloats(d, sizes, rstd)}, nil
}

// evalRmsNorm divides by the root of the mean square: rms_norm, and _fused_rms_norm, which gives 1/rms, too.
func evalRmsNorm(c *Call) ([]Value, error) {
	t, shape := c.T(0), c.Ints(1)
	rows, inner := normTail(t, shape)
	w := c.optT(2)
	d := t.DType
	if w != nil {
		d = resultType(t, w)
	}
	eps := 0.0
	if c.has(3) {
		eps = c.Float(3)
	} else if t.DType == ops.Float64 {
		eps = 0x1p-52
	} else {
		eps = 0x1p-23
	}
	v := t.floats()
	out := make([]float64, len(v))
	rstd := make([]float64, rows)
	var wv []float64
	if w != nil {
		wv = w.floats()
	}
	for i := range rows {
		row := v[i*inner : (i+1)*inner]
		s := 0.0
		for _, x := range row {
			s += x * x
		}
		r := 1 / math.Sqrt(s/float64(inner)+eps)
		rstd[i] = r
		for k, x := range row {
			y := x * r
			if wv != nil {
				y *= wv[k]
			}
			out[i*inner+int64(k)] = y
		}
	}
	o := fromFloats(d, t.Sizes, out)
	if c.base() == "rms_norm" {
		return one(o)
	}
	sizes := slices.Clone(t.Sizes)
	for i := t.Rank() - len(shape); i < t.Rank(); i++ {
		sizes[i] = 1
	}
	rd := ops.Float32
	if t.DType == ops.Float64 {
		rd = ops.Float64
	}
	return []Value{o, fromFloats(rd, sizes, rstd)}, nil
}

// channelwise applies f to each element with its channel (dimension 1).
func channelwise(t *Tensor, d DType, f func(x float64, ch int) float64) *Tensor {
	if t.Rank() < 2 {
		fail("input of shape %v has no channels", t.Sizes)
	}
	v := t.floats()
	out := make([]float64, len(v))
	inner, ch := numel(t.Sizes[2:]), t.Sizes[1]
	for p := range t.Sizes[0] * ch {
		k := int(p % ch)
		for i := p * inner; i < (p+1)*inner; i++ {
			out[i] = f(v[i], k)
		}
	}
	return fromFloats(d, t.Sizes, out)
}

// channelStats gives mean and variance of each channel.
func channelStats(t *Tensor) (means, vars []float64, n float64) {
	in := make([]bool, t.Rank())
	for i := range in {
		in[i] = i != 1
	}
	r := t.reduction(in, false)
	means, vars = make([]float64, r.outer), make([]float64, r.outer)
	r.rows(func(i int64, row []float64) {
		mu, m2 := moments(row)
		means[i], vars[i] = mu, m2/float64(len(row))
	})
	return means, vars, float64(r.inner)
}

func optFloats(t *Tensor) []float64 {
	if t == nil {
		return nil
	}
	return t.floats()
}

// batchNorm normalizes channels by the given statistics.
func batchNorm(t *Tensor, mean, variance, w, b []float64, eps float64) *Tensor {
	scale, shift := make([]float64, len(mean)), make([]float64, len(mean))
	for k := range scale {
		r := 1 / math.Sqrt(variance[k]+eps)
		scale[k], shift[k] = r, 0
		if w != nil {
			scale[k] = r * w[k]
		}
		if b != nil {
			shift[k] = b[k]
		}
	}
	if t.Rank() < 2 || int(t.Sizes[1]) != len(mean) {
		fail("batch norm of shape %v with %d channels' statistics", t.Sizes, len(mean))
	}
	return channelwise(t, t.DType, func(x float64, ch int) float64 { return (x-mean[ch])*scale[ch] + shift[ch] })
}

// update moves running statistics towards those of a batch.
func update(running *Tensor, batch []float64, momentum float64, unbias float64) *Tensor {
	v := slices.Clone(running.floats())
	for k := range v {
		v[k] = (1-momentum)*v[k] + momentum*batch[k]*unbias
	}
	return fromFloats(running.DType, running.Sizes, v)
}

// evalBatchNorm computes batch_norm and the native variants, which also give the batch's mean and 1/std.
func evalBatchNorm(c *Call) ([]Value, error) {
	t := c.T(0)
	get := func(name string) *Tensor { return c.optT(c.index(name)) }
	w, b, rm, rv := get("weight"), get("bias"), get("running_mean"), get("running_var")
	training := c.base() == "_batch_norm_no_update" || c.overload() == "no_stats"
	if i := c.index("training"); i >= 0 {
		training = c.Bool(i)
	}
	if c.base() == "_native_batch_norm_legit_no_training" || c.base() == "_batch_norm_no_update" {
		training = false
	}
	eps := c.Float(c.index("eps"))
	momentum := c.floatOr(c.index("momentum"), 0)
	sd := t.DType // of the statistics
	if half(sd) && (w != nil && w.DType == ops.Float32 || rm != nil && rm.DType == ops.Float32) {
		sd = ops.Float32
	}
	var outs []Value
	if !training {
		if rm == nil || rv == nil {
			fail("%s without running statistics", c.base())
		}
		o := batchNorm(t, rm.floats(), rv.floats(), optFloats(w), optFloats(b), eps)
		outs = []Value{o, NewTensor(sd, 0), NewTensor(sd, 0)}
		if c.base() == "_native_batch_norm_legit_functional" {
			outs = append(outs, compactCopy(rm), compactCopy(rv))
		}
		if c.base() == "_batch_norm_no_update" {
			outs = append(outs, NewTensor(ops.Uint8, 0))
		}
	} else {
		mean, variance, n := channelStats(t)
		if half(sd) { // the statistics are rounded before they are used
			r := halfRounder(sd)
			mean = mapSlice(mean, r)
			variance = mapSlice(variance, func(x float64) float64 { k := r(1 / math.Sqrt(x+eps)); return 1/(k*k) - eps })
		}
		if n <= 1 && c.base() == "batch_norm" {
			fail("batch norm in training needs more than one value a channel")
		}
		o := batchNorm(t, mean, variance, optFloats(w), optFloats(b), eps)
		rstd := mapSlice(variance, func(x float64) float64 { return 1 / math.Sqrt(x+eps) })
		ch := []int64{t.Sizes[1]}
		outs = []Value{o, fromFloats(sd, ch, slices.Clone(mean)), fromFloats(sd, ch, rstd)}
		var nm, nv *Tensor
		if rm != nil {
			nm = update(rm, mean, momentum, 1)
		}
		if rv != nil {
			nv = update(rv, variance, momentum, n/max(n-1, 1))
		}
		switch c.base() {
		case "_native_batch_norm_legit_functional":
			outs = append(outs, nm, nv)
		case "batch_norm", "native_batch_norm", "_native_batch_norm_legit":
			if rm != nil {
				writeInto(rm, nm)
			}
			if rv != nil {
				writeInto(rv, nv)
			}
		}
	}
	if c.base() == "batch_norm" {
		return one(outs[0])
	}
	return outs, nil
}

// evalGroupNorm normalizes groups of channels; native_group_norm gives mean and 1/std, too.
func evalGroupNorm(c *Call) ([]Value, error) {
	t := c.T(0)
	var w, b *Tensor
	var groups int64
	var eps float64
	if c.base() == "group_norm" {
		groups, w, b, eps = c.Int(1), c.optT(2), c.optT(3), c.Float(4)
	} else {
		w, b, groups, eps = c.optT(1), c.optT(2), c.Int(6), c.Float(7)
	}
	if t.Rank() < 2 || groups <= 0 || t.Sizes[1]%groups != 0 {
		fail("group norm of shape %v in %d groups", t.Sizes, groups)
	}
	rows := t.Sizes[0] * groups
	inner := int64(0)
	if rows > 0 {
		inner = t.Numel() / rows
	}
	wide := cast(t, ops.Float64)
	o, mean, rstd := layerNorm(wide, rows, inner, nil, nil, eps)
	wv, bv := optFloats(w), optFloats(b)
	o = channelwise(o, t.DType, func(x float64, ch int) float64 {
		if wv != nil {
			x *= wv[ch]
		}
		if bv != nil {
			x += bv[ch]
		}
		return x
	})
	if c.base() == "group_norm" {
		return one(o)
	}
	d := t.DType
	if half(d) && w != nil && w.DType == ops.Float32 {
		d = ops.Float32
	}
	sizes := []int64{t.Sizes[0], groups}
	return []Value{o, fromFloats(d, sizes, mean), fromFloats(d, sizes, rstd)}, nil
}

// evalInstanceNorm normalizes each channel of each sample.
func evalInstanceNorm(c *Call) ([]Value, error) {
	t := c.T(0)
	w, b, rm, rv := c.optT(1), c.optT(2), c.optT(3), c.optT(4)
	useInput, eps := c.Bool(5), c.Float(7)
	if !useInput {
		return one(batchNorm(t, rm.floats(), rv.floats(), optFloats(w), optFloats(b), eps))
	}
	rows := t.Sizes[0] * t.Sizes[1]
	wide := cast(t, ops.Float64)
	o, mean, rstd := layerNorm(wide, rows, numel(t.Sizes[2:]), nil, nil, eps)
	if half(t.DType) && (w == nil || w.DType == t.DType) {
		// It is a batch norm, whose statistics are rounded before they are used.
		r := halfRounder(t.DType)
		inner := numel(t.Sizes[2:])
		v := slices.Clone(wide.floats())
		for i := range v {
			k := int64(i) / inner
			v[i] = (v[i] - r(mean[k])) * r(rstd[k])
		}
		o = fromFloats(ops.Float64, t.Sizes, v)
	}
	wv, bv := optFloats(w), optFloats(b)
	o = channelwise(o, t.DType, func(x float64, ch int) float64 {
		if wv != nil {
			x *= wv[ch]
		}
		if bv != nil {
			x += bv[ch]
		}
		return x
	})
	if rm != nil && rv != nil {
		ch := int(t.Sizes[1])
		m, v := make([]float64, ch), make([]float64, ch)
		for i := range mean {
			m[i%ch] += mean[i] / float64(t.Sizes[0])
			v[i%ch] += (1/(rstd[i]*rstd[i]) - eps) / float64(t.Sizes[0])
		}
		n := float64(numel(t.Sizes[2:]))
		writeInto(rm, update(rm, m, c.Float(6), 1))
		writeInto(rv, update(rv, v, c.Float(6), n/max(n-1, 1)))
	}
	return one(o)
}

// evalWeightNorm scales v to the length g over all dimensions but one.
func evalWeightNorm(c *Call) ([]Value, error) {
	v, g := c.T(0), c.T(1)
	d := c.intOr(2, 0)
	in := dims(nil, v.Rank())
	if d != -1 {
		in[dim(d, v.Rank())] = false
	}
	n := vectorNorm(v, 2, in, true, ops.Float64)
	f := binary{f: func(a, b float64) float64 { return a / b }}
	scale := f.apply(g, n, ops.Float64)
	o := binaries["mul"].apply(v, scale, ops.Float64)
	if c.base() == "_weight_norm_interface" {
		return []Value{cast(o, v.DType), cast(n, v.DType)}, nil
	}
	return one(cast(o, v.DType))
}

func evalNormExceptDim(c *Call) ([]Value, error) {
	v := c.T(0)
	in := dims(nil, v.Rank())
	d := c.intOr(2, 0)
	if d != -1 {
		in[dim(d, v.Rank())] = false
	}
	return one(vectorNorm(v, c.floatOr(1, 2), in, d != -1, v.DType))
}

// evalRenorm shrinks slices whose norm is too large.
func evalRenorm(c *Call) ([]Value, error) {
	t, p, limit := c.T(0), c.Float(1), c.Float(3)
	d := dim(c.Int(2), t.Rank())
	in := dims(nil, t.Rank())
	in[d] = false
	n := vectorNorm(t, p, in, true, ops.Float64)
	scale := mapFloats(n, ops.Float64, func(x float64) float64 {
		if x > limit {
			return limit / (x + 1e-7)
		}
		return 1
	})
	return one(cast(binaries["mul"].apply(t, scale, ops.Float64), t.DType))
}
