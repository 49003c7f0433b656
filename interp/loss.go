package interp

import (
	"math"
	"slices"

	"github.com/lathe-ml/lathe/ops"
)

// reduceLoss applies a loss's reduction: 0 none, 1 mean, 2 sum.
func reduceLoss(t *Tensor, reduction int64, d DType) *Tensor {
	switch reduction {
	case 0:
		return cast(t, d)
	case 1:
		return mean(t, dims(nil, t.Rank()), false, d, false)
	case 2:
		return reduceSum(t, nil, false, d)
	}
	fail("reduction %d is not known", reduction)
	return nil
}

// evalLoss computes the element-wise losses.
func evalLoss(c *Call) ([]Value, error) {
	x, y := c.T(0), c.T(1)
	d := resultType(x, y)
	red := c.intOr(c.index("reduction"), 1)
	num := func(name string, def float64) float64 { return c.floatOr(c.index(name), def) }
	var f func(a, b float64) float64
	switch c.base() {
	case "l1_loss":
		f = func(a, b float64) float64 { return math.Abs(a - b) }
	case "mse_loss":
		f = func(a, b float64) float64 { return (a - b) * (a - b) }
	case "smooth_l1_loss":
		beta := num("beta", 1)
		f = func(a, b float64) float64 {
			z := math.Abs(a - b)
			if z < beta {
				return 0.5 * z * z / beta
			}
			return z - 0.5*beta
		}
	case "huber_loss":
		delta := num("delta", 1)
		f = func(a, b float64) float64 {
			z := math.Abs(a - b)
			if z <= delta {
				return 0.5 * z * z
			}
			return delta * (z - 0.5*delta)
		}
	case "kl_div":
		if c.Bool(c.index("log_target")) {
			f = func(a, b float64) float64 { return math.Exp(b) * (b - a) }
		} else {
			f = func(a, b float64) float64 { return xlogy(b, b) - b*a }
		}
	case "soft_margin_loss":
		f = func(a, b float64) float64 { return math.Log1p(math.Exp(-b * a)) }
	case "hinge_embedding_loss":
		m := num("margin", 1)
		f = func(a, b float64) float64 {
			v := 0.0
			if b != 1 {
				v += max(0, m-a)
			}
			if b != -1 {
				v += a
			}
			return v
		}
	case "poisson_nll_loss":
		logIn, full, eps := c.Bool(2), c.Bool(3), c.Float(4)
		f = func(a, b float64) float64 {
			v := a - b*math.Log(a+eps)
			if logIn {
				v = math.Exp(a) - b*a
			}
			if full && b > 1 {
				v += b*math.Log(b) - b + 0.5*math.Log(2*math.Pi*b)
			}
			return v
		}
	case "margin_ranking_loss":
		t := c.T(2)
		m := num("margin", 0)
		sizes := broadcast(x.Sizes, y.Sizes, t.Sizes)
		a, b, s := expandTo(x, sizes).floats(), expandTo(y, sizes).floats(), expandTo(t, sizes).floats()
		v := make([]float64, len(a))
		for i := range v {
			v[i] = max(0, -s[i]*(a[i]-b[i])+m)
		}
		return one(reduceLoss(fromFloats(ops.Float64, sizes, v), red, floatType(d)))
	case "binary_cross_entropy", "binary_cross_entropy_with_logits":
		f = func(a, b float64) float64 {
			return (b-1)*max(math.Log1p(-a), -100) - b*max(math.Log(a), -100)
		}
		var pos *Tensor
		if c.base() == "binary_cross_entropy_with_logits" {
			pos = c.optT(c.index("pos_weight"))
			f = func(a, b float64) float64 { return (1-b)*a - logSigmoid(a) }
		}
		sizes := broadcast(x.Sizes, y.Sizes)
		a, b := expandTo(x, sizes).floats(), expandTo(y, sizes).floats()
		v := make([]float64, len(a))
		var pw []float64
		if pos != nil {
			pw = expandTo(pos, sizes).floats()
		}
		for i := range v {
			if pw != nil {
				lw := (pw[i]-1)*b[i] + 1
				v[i] = (1-b[i])*a[i] - lw*logSigmoid(a[i])
				continue
			}
			v[i] = f(a[i], b[i])
		}
		if w := c.optT(2); w != nil {
			for i, k := range expandTo(w, sizes).floats() {
				v[i] *= k
			}
		}
		return one(reduceLoss(fromFloats(ops.Float64, sizes, v), red, d))
	default:
		fail("no loss %s", c.base())
	}
	p, q, sizes := pair(x, y)
	v := zip(numel(sizes), p.floats(), q.floats(), f)
	return one(reduceLoss(fromFloats(ops.Float64, sizes, v), red, floatType(d)))
}

func logSigmoid(x float64) float64 { return -softplus(-x, 1, math.Inf(1)) }

// evalLogSigmoidForward gives log_sigmoid and the buffer that its gradient uses.
func evalLogSigmoidForward(c *Call) ([]Value, error) {
	t := c.T(0)
	buf := mapFloats(t, t.DType, func(x float64) float64 { return math.Exp(-math.Abs(x)) })
	return []Value{mapFloats(t, t.DType, logSigmoid), buf}, nil
}

// nll picks the negative logarithms of the targets' classes: x is [N, C, …], targets [N, …].
func nll(x, target, weight *Tensor, reduction, ignore int64) (o, total *Tensor) {
	if x.Rank() == 1 {
		o, total = nll(unsqueeze(x, 0), reshape(target, []int64{1}), weight, reduction, ignore)
		if reduction == 0 {
			o = o.withSizes()
		}
		return o, total
	}
	n, ch := x.Sizes[0], x.Sizes[1]
	inner := numel(x.Sizes[2:])
	if target.Numel() != n*inner {
		fail("targets %v for scores %v", target.Sizes, x.Sizes)
	}
	v, ts := x.floats(), target.ints()
	wv := optFloats(weight)
	out := make([]float64, len(ts))
	sum, wsum := 0.0, 0.0
	for i, k := range ts {
		if k == ignore {
			continue
		}
		if k < 0 || k >= ch {
			fail("class %d of %d", k, ch)
		}
		w := 1.0
		if wv != nil {
			w = wv[k]
		}
		b, p := int64(i)/inner, int64(i)%inner
		out[i] = -v[(b*ch+k)*inner+p] * w
		sum += out[i]
		wsum += w
	}
	total = fromFloats(x.DType, nil, []float64{wsum})
	switch reduction {
	case 0:
		return fromFloats(x.DType, target.Sizes, out), fromFloats(x.DType, nil, []float64{0})
	case 1:
		return fromFloats(x.DType, nil, []float64{sum / wsum}), total
	}
	return fromFloats(x.DType, nil, []float64{sum}), total
}

// evalNllLoss computes the negative log likelihood; the forward forms also give the sum of weights.
func evalNllLoss(c *Call) ([]Value, error) {
	o, total := nll(c.T(0), c.T(1), c.optT(2), c.intOr(3, 1), c.intOr(4, -100))
	if c.base() == "nll_loss_forward" || c.base() == "nll_loss2d_forward" {
		return []Value{o, total}, nil
	}
	return one(o)
}

// evalCrossEntropyLoss is log_softmax and nll_loss, with class probabilities and label smoothing.
func evalCrossEntropyLoss(c *Call) ([]Value, error) {
	x, target, w := c.T(0), c.T(1), c.optT(2)
	red, ignore, smooth := c.intOr(3, 1), c.intOr(4, -100), c.floatOr(5, 0)
	d := x.DType
	ch := 1
	if x.Rank() == 1 {
		ch = 0
	}
	logs := softmax(x, ch, ops.Float64, true, false)
	classes := x.Sizes[ch]
	if slices.Equal(x.Sizes, target.Sizes) && classOf(target.DType) == classFloat {
		t := target.floats()
		lv := logs.floats()
		inner := numel(x.Sizes[ch+1:])
		wv := optFloats(w)
		sizes := slices.Delete(slices.Clone(x.Sizes), ch, ch+1)
		out := make([]float64, numel(sizes))
		for i := range lv {
			k := int64(i) / inner % classes
			p := t[i]*(1-smooth) + smooth/float64(classes)
			if wv != nil {
				p *= wv[k]
			}
			out[int64(i)/(inner*classes)*inner+int64(i)%inner] -= p * lv[i]
		}
		o := fromFloats(ops.Float64, sizes, out)
		if red == 1 {
			n := float64(o.Numel())
			return one(fromFloats(d, nil, []float64{sumFloats(o.floats()) / n}))
		}
		return one(reduceLoss(o, red, d))
	}
	o, total := nll(logs, target, w, red, ignore)
	if smooth > 0 {
		// The uniform part: the mean of the (weighted) losses of all classes.
		inner := numel(x.Sizes[ch+1:])
		lv, wv, ts := logs.floats(), optFloats(w), target.ints()
		u := make([]float64, len(ts))
		for i := range lv {
			k := int64(i) / inner % classes
			at := int64(i)/(inner*classes)*inner + int64(i)%inner
			p := -lv[i]
			if wv != nil {
				p *= wv[k]
			}
			if ts[at] != ignore {
				u[at] += p
			}
		}
		uni := fromFloats(ops.Float64, target.Sizes, u)
		var sm *Tensor
		switch red {
		case 0:
			sm = uni
		case 1:
			n := 0.0
			for _, k := range ts {
				if k != ignore {
					n++
				}
			}
			if w != nil {
				n = total.floats()[0]
			}
			sm = fromFloats(ops.Float64, nil, []float64{sumFloats(u) / n})
		default:
			sm = fromFloats(ops.Float64, nil, []float64{sumFloats(u)})
		}
		a, b := o.floats(), sm.floats()
		mix := make([]float64, len(a))
		for i := range mix {
			mix[i] = (1-smooth)*a[i] + smooth/float64(classes)*b[i]
		}
		o = fromFloats(ops.Float64, o.Sizes, mix)
	}
	return one(cast(o, d))
}

// pairwise is the norm of x - y + eps over the last dimension.
func pairwise(x, y *Tensor, p, eps float64, keep bool) *Tensor {
	d := resultType(x, y)
	diff := binary{f: func(a, b float64) float64 { return a - b + eps }}.apply(x, y, ops.Float64)
	return vectorNorm(diff, p, only(diff.Rank()-1, diff.Rank()), keep, floatType(d))
}

// evalPairwise computes pairwise_distance and cosine_similarity.
func evalPairwise(c *Call) ([]Value, error) {
	x, y := c.T(0), c.T(1)
	if c.base() == "pairwise_distance" {
		return one(pairwise(x, y, c.floatOr(2, 2), c.floatOr(3, 1e-6), c.Bool(4)))
	}
	return one(cosine(x, y, c.intOr(2, 1), c.floatOr(3, 1e-8)))
}

func cosine(x, y *Tensor, d int64, eps float64) *Tensor {
	dt := floatType(resultType(x, y))
	sizes := broadcast(x.Sizes, y.Sizes)
	x, y = expandTo(x, sizes), expandTo(y, sizes)
	in := only(dim(d, len(sizes)), len(sizes))
	a, b := x.reduction(in, false), y.reduction(in, false)
	av, bv := a.t.floats(), b.t.floats()
	out := make([]float64, a.outer)
	for i := range out {
		p, q := av[int64(i)*a.inner:int64(i+1)*a.inner], bv[int64(i)*a.inner:int64(i+1)*a.inner]
		out[i] = dot(p, q) / (max(norm(p, 2), eps) * max(norm(q, 2), eps))
	}
	return fromFloats(dt, a.sizes, out)
}

func evalCosineEmbeddingLoss(c *Call) ([]Value, error) {
	x, y, t := c.T(0), c.T(1), c.T(2)
	margin := c.floatOr(3, 0)
	d := int64(1)
	if t.Rank() == 0 {
		d = 0
	}
	cs := cosine(cast(x, ops.Float64), cast(y, ops.Float64), d, 1e-12)
	v := zip(cs.Numel(), cs.floats(), t.floats(), func(a, s float64) float64 {
		switch s {
		case 1:
			return 1 - a
		case -1:
			return max(0, a-margin)
		}
		return 0
	})
	return one(reduceLoss(fromFloats(ops.Float64, cs.Sizes, v), c.intOr(4, 1), floatType(x.DType)))
}

func evalTripletMarginLoss(c *Call) ([]Value, error) {
	a, p, n := c.T(0), c.T(1), c.T(2)
	margin, pw, eps := c.floatOr(3, 1), c.floatOr(4, 2), c.floatOr(5, 1e-6)
	dist := func(x, y *Tensor) *Tensor {
		if classOf(x.DType) == classInt && classOf(y.DType) == classInt { // the difference wraps around before it is a float
			x = binaries["sub"].apply(x, y, promoteTypes(x.DType, y.DType))
			y = NewTensor(x.DType, x.Sizes...)
		}
		return pairwise(cast(x, ops.Float64), cast(y, ops.Float64), pw, eps, false)
	}
	dp, dn := dist(a, p), dist(a, n)
	if c.Bool(6) {
		dn = binaries["minimum"].apply(dn, dist(p, n), ops.Float64)
	}
	v := zip(dp.Numel(), dp.floats(), dn.floats(), func(x, y float64) float64 { return max(0, margin+x-y) })
	return one(reduceLoss(fromFloats(ops.Float64, dp.Sizes, v), c.intOr(7, 1), floatType(resultType(a, p, n))))
}

// evalCdist gives the distances of all pairs of rows: cdist of two tensors, pdist within one.
func evalCdist(c *Call) ([]Value, error) {
	x := c.T(0)
	if c.base() == "pdist" || c.base() == "_pdist_forward" {
		need(x, 2, "self")
		p := c.floatOr(1, 2)
		n, m := x.Sizes[0], x.Sizes[1]
		v := x.floats()
		var out []float64
		for i := range n {
			for j := i + 1; j < n; j++ {
				row := make([]float64, m)
				for k := range row {
					row[k] = v[i*m+int64(k)] - v[j*m+int64(k)]
				}
				out = append(out, norm(row, p))
			}
		}
		return one(fromFloats(x.DType, []int64{int64(len(out))}, out))
	}
	y := c.T(1)
	p := c.floatOr(c.index("p"), 2)
	rx, ry := x.Rank(), y.Rank()
	if rx < 2 || ry < 2 || x.Sizes[rx-1] != y.Sizes[ry-1] {
		fail("cdist of shapes %v and %v", x.Sizes, y.Sizes)
	}
	n, m, k := x.Sizes[rx-2], y.Sizes[ry-2], x.Sizes[rx-1]
	lead := broadcast(x.Sizes[:rx-2], y.Sizes[:ry-2])
	xv := expandTo(x, append(slices.Clone(lead), n, k)).floats()
	yv := expandTo(y, append(slices.Clone(lead), m, k)).floats()
	out := make([]float64, numel(lead)*n*m)
	row := make([]float64, k)
	for b := range numel(lead) {
		for i := range n {
			for j := range m {
				for q := range row {
					row[q] = xv[(b*n+i)*k+int64(q)] - yv[(b*m+j)*k+int64(q)]
				}
				out[(b*n+i)*m+j] = norm(row, p)
			}
		}
	}
	return one(fromFloats(resultType(x, y), append(slices.Clone(lead), n, m), out))
}
