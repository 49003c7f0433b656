package passes

import (
	"math"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// reduced applies a loss's reduction: 0 none, 1 mean, 2 sum.
func (d *Decomp) reduced(x *ir.Value) []*ir.Value {
	k, ok := d.named("reduction").Int()
	if !ok {
		return nil
	}
	dims := allDims(x.Type.Rank())
	switch k {
	case 1:
		x = d.mean(x, false, dims...)
	case 2:
		x = d.sum(x, false, dims...)
	}
	return d.back(x)
}

func decompMseLoss(d *Decomp) []*ir.Value {
	e := d.sub(d.in(0), d.in(1))
	return d.reduced(d.mul(e, e))
}

func decompL1Loss(d *Decomp) []*ir.Value { return d.reduced(d.abs(d.sub(d.in(0), d.in(1)))) }

func decompSmoothL1Loss(d *Decomp) []*ir.Value {
	e := d.abs(d.sub(d.in(0), d.in(1)))
	beta := floatArg(d.named("beta"), 1)
	if beta == 0 {
		return d.reduced(e)
	}
	return d.reduced(d.where(d.lt(e, beta), d.mul(d.mul(e, e), 0.5/beta), d.sub(e, 0.5*beta)))
}

func decompHuberLoss(d *Decomp) []*ir.Value {
	e := d.abs(d.sub(d.in(0), d.in(1)))
	delta := floatArg(d.named("delta"), 1)
	return d.reduced(d.where(d.le(e, delta), d.mul(d.mul(e, e), 0.5), d.mul(d.sub(e, 0.5*delta), delta)))
}

func decompKlDiv(d *Decomp) []*ir.Value {
	x, t := d.in(0), d.in(1)
	if boolArg(d.named("log_target")) {
		return d.reduced(d.mul(d.exp(t), d.sub(t, x)))
	}
	return d.reduced(d.sub(d.v(op.AtenXlogyTensor(d.Builder, t, t)), d.mul(t, x)))
}

func decompBce(d *Decomp) []*ir.Value {
	x, t := d.in(0), d.in(1)
	// Logarithms are cut off at -100, as PyTorch does.
	l := d.neg(d.add(d.mul(t, d.max(d.log(x), -100.0)), d.mul(d.sub(1.0, t), d.max(d.log1p(d.neg(x)), -100.0))))
	if w := d.named("weight").Value(); w != nil {
		l = d.mul(l, w)
	}
	return d.reduced(l)
}

func decompBceLogits(d *Decomp) []*ir.Value {
	x, t := d.in(0), d.in(1)
	soft := d.sub(d.log1p(d.exp(d.neg(d.abs(x)))), d.min(x, 0.0)) // -log(sigmoid(x))
	if p := d.named("pos_weight").Value(); p != nil {
		w := d.add(d.mul(t, d.sub(p, 1.0)), 1.0)
		soft = d.mul(soft, w)
	}
	l := d.add(d.mul(d.sub(1.0, t), x), soft)
	if w := d.named("weight").Value(); w != nil {
		l = d.mul(l, w)
	}
	return d.reduced(l)
}

func decompSoftMarginLoss(d *Decomp) []*ir.Value {
	return d.reduced(d.log1p(d.exp(d.neg(d.mul(d.in(0), d.in(1))))))
}

func decompHingeEmbeddingLoss(d *Decomp) []*ir.Value {
	x, t := d.in(0), d.in(1)
	m := floatArg(d.named("margin"), 1)
	neg := d.where(d.ne(t, 1), d.max(d.sub(m, x), 0.0), 0.0)
	return d.reduced(d.add(neg, d.where(d.ne(t, -1), x, 0.0)))
}

func decompMarginRankingLoss(d *Decomp) []*ir.Value {
	m := floatArg(d.named("margin"), 0)
	return d.reduced(d.max(d.add(d.mul(d.neg(d.in(2)), d.sub(d.in(0), d.in(1))), m), 0.0))
}

func decompCosineEmbeddingLoss(d *Decomp) []*ir.Value {
	x, y, t := d.in(0), d.in(1), d.in(2)
	r := x.Type.Rank()
	sum := func(a, b *ir.Value) *ir.Value { return d.sum(d.mul(a, b), false, r-1) }
	eps := 1e-12
	cos := d.div(sum(x, y), d.sqrt(d.mul(d.add(sum(x, x), eps), d.add(sum(y, y), eps))))
	m := floatArg(d.named("margin"), 0)
	pos := d.where(d.eq(t, 1), d.sub(1.0, cos), 0.0)
	return d.reduced(d.add(pos, d.where(d.eq(t, -1), d.max(d.sub(cos, m), 0.0), 0.0)))
}

func decompTripletMarginLoss(d *Decomp) []*ir.Value {
	a, p, n := d.in(0), d.in(1), d.in(2)
	dist := func(x, y *ir.Value) *ir.Value {
		e := d.add(d.sub(x, y), floatArg(d.named("eps"), 1e-6))
		return d.pnorm(e, floatArg(d.named("p"), 2), false, e.Type.Rank()-1)
	}
	pos, neg := dist(a, p), dist(a, n)
	if boolArg(d.named("swap")) {
		neg = d.min(neg, dist(p, n))
	}
	return d.reduced(d.max(d.add(d.sub(pos, neg), floatArg(d.named("margin"), 1)), 0.0))
}

func decompPoissonNllLoss(d *Decomp) []*ir.Value {
	x, t := d.in(0), d.in(1)
	eps := floatArg(d.named("eps"), 1e-8)
	var l *ir.Value
	if boolArg(d.named("log_input")) {
		l = d.sub(d.exp(x), d.mul(t, x))
	} else {
		l = d.sub(x, d.mul(t, d.log(d.add(x, eps))))
	}
	if boolArg(d.named("full")) {
		s := d.add(d.sub(d.mul(t, d.log(t)), t), d.mul(d.log(d.mul(t, 2*math.Pi)), 0.5))
		l = d.add(l, d.where(d.le(t, 1.0), 0.0, s))
	}
	return d.reduced(l)
}

// nll is the negative log likelihood with classes along dimension 1: the loss of each place and its weight.
func (d *Decomp) nll(x, target, weight *ir.Value, ignore int64) (loss, w *ir.Value) {
	dim := 1
	if x.Type.Rank() == 1 {
		dim = 0
	}
	valid := d.ne(target, ignore)
	safe := d.where(valid, target, 0)
	picked := d.v(op.AtenGatherDefault(d.Builder, x, ir.Int(int64(dim)), d.unsqueeze(safe, dim)))
	loss = d.neg(d.view(picked, target.Type.Shape...))
	if weight != nil {
		flat := d.view(safe, safe.Type.Numel())
		w = d.view(d.take(weight, 0, flat), target.Type.Shape...)
		loss = d.mul(loss, w)
		w = d.where(valid, w, 0.0)
	} else {
		w = d.cast(valid, x.Type.DType)
	}
	return d.where(valid, loss, 0.0), w
}

func (d *Decomp) nllReduced(loss, w *ir.Value) []*ir.Value {
	k, ok := d.named("reduction").Int()
	if !ok {
		return nil
	}
	dims := allDims(loss.Type.Rank())
	switch k {
	case 1:
		loss = d.div(d.sum(loss, false, dims...), d.sum(w, false, dims...))
	case 2:
		loss = d.sum(loss, false, dims...)
	}
	return d.back(loss)
}

func decompNllLossNd(d *Decomp) []*ir.Value {
	ignore, ok := d.named("ignore_index").Int()
	if !ok {
		return nil
	}
	loss, w := d.nll(d.in(0), d.in(1), d.N.In(2), ignore)
	return d.nllReduced(loss, w)
}

func decompNllLossForward(d *Decomp) []*ir.Value {
	ignore, ok := d.named("ignore_index").Int()
	if !ok {
		return nil
	}
	loss, w := d.nll(d.in(0), d.in(1), d.N.In(2), ignore)
	res := d.nllReduced(loss, w)
	if res == nil {
		return nil
	}
	total := d.sum(w, false, allDims(w.Type.Rank())...)
	if k, _ := d.named("reduction").Int(); k == 0 {
		total = d.full(0.0, total.Type.DType)
	}
	return append(res, total)
}

func decompCrossEntropy(d *Decomp) []*ir.Value {
	x, target := d.in(0), d.in(1)
	dim := 1
	if x.Type.Rank() == 1 {
		dim = 0
	}
	logp := d.v(op.AtenLogSoftmaxInt(d.Builder, x, ir.Int(int64(dim))))
	smooth := floatArg(d.named("label_smoothing"), 0)
	weight := d.N.In(2)
	classes, okC := x.Type.Shape[dim].IsConst()
	if target.Type.DType.IsFloat() {
		// Probabilities in place of classes.
		if smooth != 0 {
			if !okC {
				return nil
			}
			target = d.add(d.mul(target, 1-smooth), smooth/float64(classes))
		}
		l := d.mul(logp, target)
		if weight != nil {
			l = d.mul(l, d.perChannel(weight, x.Type.Rank()))
		}
		l = d.neg(d.sum(l, false, dim))
		k, _ := d.named("reduction").Int()
		if k == 1 {
			n := sym.FloorDiv(x.Type.Numel(), x.Type.Shape[dim])
			return d.back(d.div(d.sum(l, false, allDims(l.Type.Rank())...), d.scalar(n, l.Type.DType)))
		}
		return d.reduced(l)
	}
	ignore, ok := d.named("ignore_index").Int()
	if !ok {
		return nil
	}
	loss, w := d.nll(logp, target, weight, ignore)
	if smooth == 0 {
		return d.nllReduced(loss, w)
	}
	if !okC {
		return nil
	}
	l := logp
	if weight != nil {
		l = d.mul(l, d.perChannel(weight, x.Type.Rank()))
	}
	all := d.where(d.ne(target, ignore), d.neg(d.sum(l, false, dim)), 0.0)
	k, _ := d.named("reduction").Int()
	mix := func(a, b *ir.Value) *ir.Value { return d.add(d.mul(a, 1-smooth), d.mul(b, smooth/float64(classes))) }
	dims := allDims(loss.Type.Rank())
	switch k {
	case 1:
		n := d.sum(w, false, dims...)
		return d.back(mix(d.div(d.sum(loss, false, dims...), n), d.div(d.sum(all, false, dims...), n)))
	case 2:
		return d.back(mix(d.sum(loss, false, dims...), d.sum(all, false, dims...)))
	}
	return d.back(mix(loss, all))
}

// decompScalarFirst makes a tensor of a number that stands first.
func decompScalarFirst(d *Decomp) []*ir.Value {
	t := d.N.Out().Type.DType
	id := ops.Lookup("aten." + d.N.Info().Schema.Base + ".Tensor")
	return d.outs(op.New(d.Builder, id, []ir.Arg{ir.Ref(d.cast(d.in(0), t)), ir.Ref(d.cast(d.in(1), t))}))
}

// decompRemainder gives the remainder the sign of the divisor, for kernels that give it that of the dividend.
func decompRemainder(d *Decomp) []*ir.Value {
	t := d.N.Out().Type.DType
	x := d.cast(d.in(0), t)
	y := d.N.Arg(1)
	if isTensor(y) {
		y = ir.Ref(d.cast(y.Value(), t))
	}
	if kindOf(t) < 2 {
		w := x
		if t != ops.Int64 {
			w = d.cast(x, ops.Int64)
			if isTensor(y) {
				y = ir.Ref(d.cast(y.Value(), ops.Int64))
			}
		}
		// Floored division in 64 bits.
		return d.back(d.sub(w, d.mul(d.floorDiv(w, y), y)))
	}
	m := d.pick(ops.AtenFmodTensor, ops.AtenFmodScalar, x, y)
	wrong := d.and(d.ne(m, 0.0), d.v(op.AtenLogicalXorDefault(d.Builder, d.lt(m, 0.0), d.lt(d.tensor(y), 0.0))))
	return one(d.where(wrong, d.add(m, y), m))
}

// powInt multiplies integers with themselves, which wraps where the power does not fit the type.
func (d *Decomp) powInt(e int64) []*ir.Value {
	square := d.cast(d.in(0), d.N.Out().Type.DType)
	if e < 1 {
		return nil
	}
	var p *ir.Value
	for ; e > 0; e >>= 1 {
		if e&1 == 1 && p == nil {
			p = square
		} else if e&1 == 1 {
			p = d.mul(p, square)
		}
		if e > 1 {
			square = d.mul(square, square)
		}
	}
	return one(p)
}

// decompPowInt raises integers to integer powers by squaring, with zero and ones where the exponent is negative, as torch has
// them. Other powers are the kernel's.
func decompPowInt(d *Decomp) []*ir.Value {
	t := d.N.Out().Type.DType
	if kindOf(t) != 1 {
		return nil
	}
	if e, ok := d.N.Arg(1).Int(); ok {
		return d.powInt(e)
	}
	if !isTensor(d.N.Arg(1)) {
		return nil
	}
	x, y := d.cast(d.in(0), ops.Int64), d.cast(d.in(1), ops.Int64)
	half := func(e *ir.Value) (h, bit *ir.Value) {
		h = d.floorDiv(e, 2)
		return h, d.sub(e, d.mul(h, 2))
	}
	_, odd := half(y)
	// Beyond 63 only the powers of 0, 1 and -1 do not overflow; they need no more than the last bit.
	e := d.where(d.gt(y, 62), d.add(odd, 62), d.max(y, 0))
	p := d.scalar(1, ops.Int64)
	square := x
	for range 6 { // e has six bits
		h, bit := half(e)
		p = d.mul(p, d.where(d.ne(bit, 0), square, d.scalar(1, ops.Int64)))
		e, square = h, d.mul(square, square)
	}
	negative := d.where(d.eq(x, 1), d.scalar(1, ops.Int64), d.where(d.eq(x, -1), d.sub(d.scalar(1, ops.Int64), d.mul(odd, 2)), d.scalar(0, ops.Int64)))
	return d.back(d.where(d.lt(y, 0), negative, p))
}
