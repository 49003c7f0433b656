package passes

import (
	"math"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ir/sym"
)

// lastDims are the n last dimensions of a tensor of rank r.
func lastDims(r, n int) []int {
	var out []int
	for i := r - n; i < r; i++ {
		out = append(out, i)
	}
	return out
}

// moments are mean and biased variance over dims, kept.
func (d *Decomp) moments(x *ir.Value, dims ...int) (mean, variance *ir.Value) {
	mean = d.mean(x, true, dims...)
	c := d.sub(x, mean)
	return mean, d.mean(d.mul(c, c), true, dims...)
}

// affine is x*weight + bias for those that there are, in the type that x is computed in.
func (d *Decomp) affine(x, weight, bias *ir.Value) *ir.Value {
	if weight != nil {
		x = d.mul(x, d.cast(weight, x.Type.DType))
	}
	if bias != nil {
		x = d.add(x, d.cast(bias, x.Type.DType))
	}
	return x
}

func decompLayerNorm(d *Decomp) []*ir.Value {
	x, w, b := d.in(0), d.N.In(2), d.N.In(3)
	// The kernel takes one type for all.
	t := x.Type.DType
	if w != nil {
		w = d.cast(w, t)
	}
	if b != nil {
		b = d.cast(b, t)
	}
	return d.outs(op.AtenNativeLayerNormDefault(d.Builder, x, d.N.Arg(1), w, b, d.named("eps")))[:1]
}

func decompNativeLayerNorm(d *Decomp) []*ir.Value {
	x := d.opmath(d.in(0))
	if x != d.in(0) {
		o := d.outs(op.AtenNativeLayerNormDefault(d.Builder, x, d.N.Arg(1), d.wide(2), d.wide(3), d.N.Arg(4)))
		return d.narrow(o)
	}
	dims := lastDims(x.Type.Rank(), len(d.N.Arg(1).List()))
	mean, variance := d.moments(x, dims...)
	r := d.rsqrt(d.add(variance, floatArg(d.N.Arg(4), 1e-5)))
	y := d.affine(d.mul(d.sub(x, mean), r), d.N.In(2), d.N.In(3))
	return []*ir.Value{d.back(y)[0], d.stat(1, mean), d.stat(2, r)}
}

// wide is the optional operand i in the type that half precision is computed in.
func (d *Decomp) wide(i int) *ir.Value {
	v := d.N.In(i)
	if v == nil {
		return nil
	}
	return d.opmath(v)
}

// narrow gives values the types of the node's results; nil for those that nobody reads.
func (d *Decomp) narrow(vs []*ir.Value) []*ir.Value {
	out := make([]*ir.Value, len(vs))
	for i, v := range vs {
		if o := d.N.Outs[i]; i == 0 || o.NumUses() > 0 {
			out[i] = d.cast(v, o.Type.DType)
		}
	}
	return out
}

// stat is a statistic in the form of result i.
func (d *Decomp) stat(i int, v *ir.Value) *ir.Value {
	t := d.N.Outs[i].Type
	if !t.IsTensor() || d.N.Outs[i].NumUses() == 0 {
		return nil
	}
	return d.view(d.cast(v, t.DType), t.Shape...)
}

func decompGroupNorm(d *Decomp) []*ir.Value {
	x, w, b := d.in(0), d.N.In(2), d.N.In(3)
	t := x.Type.DType
	if w != nil {
		w = d.cast(w, t)
	}
	if b != nil {
		b = d.cast(b, t)
	}
	s := x.Type.Shape
	return d.outs(op.AtenNativeGroupNormDefault(d.Builder, x, w, b, ir.SymInt(s[0]), ir.SymInt(s[1]), ir.SymInt(sym.Prod(s[2:]...)), d.N.Arg(1), d.named("eps")))[:1]
}

func decompNativeGroupNorm(d *Decomp) []*ir.Value {
	x := d.opmath(d.in(0))
	if x != d.in(0) {
		a := d.N.Args()
		return d.narrow(d.outs(op.AtenNativeGroupNormDefault(d.Builder, x, d.wide(1), d.wide(2), a[3], a[4], a[5], a[6], a[7])))
	}
	n, okN := d.N.Arg(3).Expr()
	c, okC := d.N.Arg(4).Expr()
	hw, okH := d.N.Arg(5).Expr()
	g, okG := d.N.Arg(6).Expr()
	if !okN || !okC || !okH || !okG {
		return nil
	}
	shape := x.Type.Shape
	per := sym.FloorDiv(c, g)
	flat := d.view(x, n, g, sym.Mul(per, hw))
	mean, variance := d.moments(flat, 2)
	r := d.rsqrt(d.add(variance, floatArg(d.N.Arg(7), 1e-5)))
	y := d.view(d.mul(d.sub(flat, mean), r), shape...)
	y = d.affine(y, d.perChannel(d.N.In(1), len(shape)), d.perChannel(d.N.In(2), len(shape)))
	return []*ir.Value{d.back(y)[0], d.stat(1, mean), d.stat(2, r)}
}

// perChannel gives a vector the form [1, C, 1, …]; nil stays nil.
func (d *Decomp) perChannel(v *ir.Value, rank int) *ir.Value {
	if v == nil {
		return nil
	}
	shape := make([]sym.Expr, rank)
	for i := range shape {
		shape[i] = one1
	}
	if rank == 1 {
		return v
	}
	shape[1] = v.Type.Shape[0]
	return d.view(v, shape...)
}

func decompBatchNorm(d *Decomp) []*ir.Value {
	a := d.N.Args()
	x, mean, variance := d.in(0), d.N.In(3), d.N.In(4)
	train, ok := a[5].Bool()
	if !ok {
		return nil
	}
	if train || mean == nil {
		if mean != nil {
			return nil // functionalize has made the statistics' new values
		}
		return d.outs(op.AtenUnderNativeBatchNormLegitNoStats(d.Builder, x, d.N.In(1), d.N.In(2), ir.Bool(true), a[6], a[7]))[:1]
	}
	return d.outs(op.AtenUnderNativeBatchNormLegitNoTrainingDefault(d.Builder, x, d.N.In(1), d.N.In(2), mean, variance, a[6], a[7]))[:1]
}

func decompNativeBatchNorm(d *Decomp) []*ir.Value {
	a := d.N.Args()
	train, ok := a[5].Bool()
	if !ok || train && d.N.In(3) != nil {
		return nil
	}
	if d.N.In(3) == nil {
		return d.outs(op.AtenUnderNativeBatchNormLegitNoStats(d.Builder, d.in(0), d.N.In(1), d.N.In(2), ir.Bool(true), a[6], a[7]))
	}
	return d.outs(op.AtenUnderNativeBatchNormLegitNoTrainingDefault(d.Builder, d.in(0), d.N.In(1), d.N.In(2), d.N.In(3), d.N.In(4), a[6], a[7]))
}

func decompBatchNormNoUpdate(d *Decomp) []*ir.Value {
	a := d.N.Args()
	if d.N.Outs[3].NumUses() > 0 || d.N.In(3) == nil {
		return nil
	}
	o := d.outs(op.AtenUnderNativeBatchNormLegitNoTrainingDefault(d.Builder, d.in(0), d.N.In(1), d.N.In(2), d.N.In(3), d.N.In(4), a[5], a[6]))
	return []*ir.Value{o[0], o[1], o[2], nil}
}

func decompNativeBatchNormNoTraining(d *Decomp) []*ir.Value {
	if d.N.Outs[1].NumUses() > 0 || d.N.Outs[2].NumUses() > 0 {
		return nil
	}
	// As eager has it: what is known of a channel becomes one factor and one summand.
	x := d.opmath(d.in(0))
	r := x.Type.Rank()
	scale := d.rsqrt(d.add(d.opmath(d.N.In(4)), floatArg(d.N.Arg(6), 1e-5)))
	if w := d.wide(1); w != nil {
		scale = d.mul(scale, w)
	}
	shift := d.mul(d.opmath(d.N.In(3)), scale)
	if b := d.wide(2); b != nil {
		shift = d.sub(b, shift)
	} else {
		shift = d.neg(shift)
	}
	return []*ir.Value{d.back(d.add(d.mul(x, d.perChannel(scale, r)), d.perChannel(shift, r)))[0], nil, nil}
}

// rounded is a statistic with the digits that eager keeps of it: it stores them in type t before it uses them.
func (d *Decomp) rounded(v *ir.Value, t ir.DType) *ir.Value {
	if t.Size() >= v.Type.DType.Size() {
		return v
	}
	return d.cast(d.cast(v, t), v.Type.DType)
}

// channelStats are mean and biased variance of each channel, as vectors.
func (d *Decomp) channelStats(x *ir.Value) (mean, variance *ir.Value) {
	var dims []int
	for i := range x.Type.Rank() {
		if i != 1 {
			dims = append(dims, i)
		}
	}
	mean, variance = d.moments(x, dims...)
	c := x.Type.Shape[1]
	return d.view(mean, c), d.view(variance, c)
}

func decompNativeBatchNormNoStats(d *Decomp) []*ir.Value {
	x := d.opmath(d.in(0))
	r := x.Type.Rank()
	mean, variance := d.channelStats(x)
	t := d.N.Outs[1].Type.DType
	inv := d.rounded(d.rsqrt(d.add(variance, floatArg(d.N.Arg(5), 1e-5))), t)
	mean = d.rounded(mean, t)
	y := d.mul(d.sub(x, d.perChannel(mean, r)), d.perChannel(inv, r))
	y = d.affine(y, d.perChannel(d.N.In(1), r), d.perChannel(d.N.In(2), r))
	return []*ir.Value{d.back(y)[0], d.stat(1, mean), d.stat(2, inv)}
}

// decompNativeBatchNormFunctional is batch norm in training mode with the new running statistics as results.
func decompNativeBatchNormFunctional(d *Decomp) []*ir.Value {
	a := d.N.Args()
	if train, ok := a[5].Bool(); !ok || !train {
		o := d.outs(op.AtenUnderNativeBatchNormLegitNoTrainingDefault(d.Builder, d.in(0), d.N.In(1), d.N.In(2), d.N.In(3), d.N.In(4), a[6], a[7]))
		return []*ir.Value{o[0], o[1], o[2], d.N.In(3), d.N.In(4)}
	}
	x := d.opmath(d.in(0))
	r := x.Type.Rank()
	mean, variance := d.channelStats(x)
	inv := d.rsqrt(d.add(variance, floatArg(a[7], 1e-5)))
	y := d.mul(d.sub(x, d.perChannel(mean, r)), d.perChannel(inv, r))
	y = d.affine(y, d.perChannel(d.N.In(1), r), d.perChannel(d.N.In(2), r))
	n := sym.FloorDiv(x.Type.Numel(), x.Type.Shape[1])
	k, ok := n.IsConst()
	if !ok || k < 2 {
		return nil
	}
	m := floatArg(a[6], 0.1)
	blend := func(old, fresh *ir.Value) *ir.Value {
		return d.cast(d.add(d.mul(old, 1-m), d.mul(fresh, m)), old.Type.DType)
	}
	unbiased := d.mul(variance, float64(k)/float64(k-1))
	return []*ir.Value{d.back(y)[0], d.stat(1, mean), d.stat(2, inv), blend(d.N.In(3), mean), blend(d.N.In(4), unbiased)}
}

func decompInstanceNorm(d *Decomp) []*ir.Value {
	x := d.opmath(d.in(0))
	r := x.Type.Rank()
	input, _ := d.N.Arg(5).Bool()
	w, b := d.perChannel(d.N.In(1), r), d.perChannel(d.N.In(2), r)
	eps := floatArg(d.N.Arg(7), 1e-5)
	var mean, variance *ir.Value
	if input {
		mean, variance = d.moments(x, lastDims(r, r-2)...)
		if t := d.in(0).Type.DType; d.N.In(1) == nil || d.N.In(1).Type.DType == t {
			// It is a batch norm of one sample's channels.
			return d.back(d.affine(d.mul(d.sub(x, d.rounded(mean, t)), d.rounded(d.rsqrt(d.add(variance, eps)), t)), w, b))
		}
	} else {
		if d.N.In(3) == nil || d.N.In(4) == nil {
			return nil
		}
		mean, variance = d.perChannel(d.opmath(d.N.In(3)), r), d.perChannel(d.opmath(d.N.In(4)), r)
	}
	return d.back(d.affine(d.mul(d.sub(x, mean), d.rsqrt(d.add(variance, eps))), w, b))
}

// rms is x/sqrt(mean(x^2)+eps)*w and the inverse root.
func (d *Decomp) rms(eps ir.Arg) (y, r *ir.Value) {
	in := d.in(0)
	x := d.opmath(in)
	e, ok := eps.Float()
	if !ok {
		// torch takes the machine epsilon of the type that it computes in.
		e = map[int64]float64{4: 0x1p-23, 8: 0x1p-52}[x.Type.DType.Size()]
	}
	dims := lastDims(x.Type.Rank(), len(d.N.Arg(1).List()))
	r = d.rsqrt(d.add(d.mean(d.mul(x, x), true, dims...), e))
	y = d.mul(x, r)
	if w := d.N.In(2); w != nil {
		y = d.mul(y, d.cast(w, y.Type.DType))
	}
	return d.cast(y, d.N.Out().Type.DType), r
}

func decompRmsNorm(d *Decomp) []*ir.Value {
	y, _ := d.rms(d.N.Arg(3))
	return one(y)
}

func decompFusedRmsNorm(d *Decomp) []*ir.Value {
	y, r := d.rms(d.N.Arg(3))
	return []*ir.Value{y, d.stat(1, r)}
}

// exceptDim is the 2-norm of v over all dimensions but one, kept; over all for -1.
func (d *Decomp) exceptDim(v *ir.Value, p float64, dim int) *ir.Value {
	if dim == -1 {
		return d.pnorm(v, p, false, allDims(v.Type.Rank())...)
	}
	return d.pnorm(v, p, true, otherDims(v.Type.Rank(), []int{wrapDim(int64(dim), v.Type.Rank())})...)
}

func decompWeightNorm(d *Decomp) []*ir.Value {
	v := d.in(0)
	k, ok := d.N.Arg(2).Int()
	if !ok {
		return nil
	}
	return d.back(d.mul(v, d.div(d.in(1), d.exceptDim(v, 2, int(k)))))
}

func decompWeightNormInterface(d *Decomp) []*ir.Value {
	v := d.in(0)
	k, ok := d.N.Arg(2).Int()
	if !ok {
		return nil
	}
	n := d.exceptDim(v, 2, int(k))
	return []*ir.Value{d.back(d.mul(v, d.div(d.in(1), n)))[0], d.stat(1, n)}
}

func decompNormExceptDim(d *Decomp) []*ir.Value {
	p, okP := d.N.Arg(1).Float()
	k, okK := d.N.Arg(2).Int()
	if !okP || !okK {
		return nil
	}
	return d.back(d.exceptDim(d.in(0), p, int(k)))
}

// pnorm is the p-norm over dims.
func (d *Decomp) pnorm(x *ir.Value, p float64, keep bool, dims ...int) *ir.Value {
	switch {
	case p == 2:
		return d.sqrt(d.sum(d.mul(x, x), keep, dims...))
	case p == 1:
		return d.sum(d.abs(x), keep, dims...)
	case p == 0:
		return d.sum(d.cast(d.ne(x, 0.0), x.Type.DType), keep, dims...)
	case math.IsInf(p, 1):
		return d.amax(d.abs(x), keep, dims...)
	case math.IsInf(p, -1):
		return d.amin(d.abs(x), keep, dims...)
	}
	return d.pow(d.sum(d.pow(d.abs(x), p), keep, dims...), 1/p)
}
