package passes

import (
	"math"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// filled is a tensor of the result's type with one value everywhere.
func (d *Decomp) filled(value any) []*ir.Value {
	t := d.N.Out().Type
	return one(d.full(value, t.DType, t.Shape...))
}

// zeroOf is a number of the kind that a tensor of type t holds.
func zeroOf(t ir.DType, k int64) ir.Arg {
	switch kindOf(t) {
	case 0:
		return ir.Bool(k != 0)
	case 1:
		return ir.Int(k)
	}
	return ir.Float(float64(k))
}

func (d *Decomp) filledWith(k int64) []*ir.Value { return d.filled(zeroOf(d.N.Out().Type.DType, k)) }

func decompZeros(d *Decomp) []*ir.Value     { return d.filledWith(0) }
func decompZerosLike(d *Decomp) []*ir.Value { return d.filledWith(0) }
func decompOnes(d *Decomp) []*ir.Value      { return d.filledWith(1) }
func decompOnesLike(d *Decomp) []*ir.Value  { return d.filledWith(1) }

// The elements of empty tensors have no meaning; zeros are as good as any.
func decompEmpty(d *Decomp) []*ir.Value     { return d.filledWith(0) }
func decompEmptyLike(d *Decomp) []*ir.Value { return d.filledWith(0) }

func decompFullLike(d *Decomp) []*ir.Value { return d.filled(d.named("fill_value")) }

func decompFill(d *Decomp) []*ir.Value {
	if v := d.N.In(1); v != nil && v.Type.IsTensor() {
		t := d.N.Out().Type
		return one(d.expand(d.cast(v, t.DType), t.Shape...))
	}
	return d.filled(d.N.Arg(1))
}

func decompNew(d *Decomp) []*ir.Value {
	switch d.N.Info().Schema.Base {
	case "new_full":
		return d.filled(d.named("fill_value"))
	case "new_ones":
		return d.filledWith(1)
	}
	return d.filledWith(0)
}

func decompArange(d *Decomp) []*ir.Value {
	start, step := d.named("start"), d.named("step")
	if start.IsNone() {
		start = zeroOf(d.N.Out().Type.DType, 0)
	}
	if step.IsNone() {
		step = zeroOf(d.N.Out().Type.DType, 1)
	}
	return one(d.v(op.AtenArangeStartStep(d.Builder, start, d.named("end"), op.KW("step", step), op.KW("dtype", ir.DTypeArg(d.N.Out().Type.DType)))))
}

// decompArangeStep makes integers of the bounds where the result holds integers, and numbers of bools. torch drops the
// fractions of the start and the step, and has counted the elements then.
func decompArangeStep(d *Decomp) []*ir.Value {
	t := d.N.Out().Type
	bound := map[string]ir.Arg{}
	some := false
	for _, name := range []string{"start", "end", "step"} {
		a := d.named(name)
		f, isFloat := a.Float()
		b, isBool := a.Bool()
		switch {
		case a.Kind() == ir.ArgBool && isBool:
			some, a = true, ir.Int(0)
			if b {
				a = ir.Int(1)
			}
		case a.Kind() == ir.ArgFloat && isFloat && !t.DType.IsFloat():
			some, a = true, ir.Int(int64(f))
		}
		bound[name] = a
	}
	start, okStart := bound["start"].Int()
	step, okStep := bound["step"].Int()
	if n, ok := t.Shape[0].IsConst(); ok && okStart && okStep && !t.DType.IsFloat() {
		bound["end"] = ir.Int(start + n*step)
	}
	if !some {
		return nil
	}
	return one(d.v(op.AtenArangeStartStep(d.Builder, bound["start"], bound["end"], op.KW("step", bound["step"]), op.KW("dtype", ir.DTypeArg(t.DType)))))
}

func decompRange(d *Decomp) []*ir.Value {
	t := d.N.Out().Type
	i := d.cast(d.arange(t.Shape[0], ops.Int64), t.DType)
	step := d.named("step")
	if step.IsNone() {
		step = ir.Int(1)
	}
	return d.back(d.add(d.mul(i, step), d.named("start")))
}

// ramp is start + i*step for i below n.
func decompLinspace(d *Decomp) []*ir.Value {
	t := d.N.Out().Type
	work := t.DType
	if kindOf(work) < 2 || work.Size() < 4 {
		work = ops.Float32
	}
	n, ok := t.Shape[0].IsConst()
	if !ok {
		return nil
	}
	side := func(name string) ir.Arg {
		a := d.named(name)
		if v := a.Value(); v != nil && v.Type.IsTensor() {
			return ir.Ref(d.cast(v, work))
		}
		return a
	}
	start, end := side("start"), side("end")
	if n == 1 {
		return d.back(d.add(d.full(0.0, work, one1), start))
	}
	if n == 0 {
		return d.filledWith(0)
	}
	// The second half counts from the end, so that the end is exact.
	i := d.cast(d.arange(sym.Const(n), ops.Int64), work)
	a, okA := start.Float()
	b, okB := end.Float()
	var up, down *ir.Value
	if okA && okB {
		step := (b - a) / float64(n-1)
		up = d.add(d.mul(i, step), a)
		down = d.add(d.mul(d.sub(i, float64(n-1)), step), b)
	} else {
		step := d.div(d.sub(d.add(d.full(0.0, work), end), start), float64(n-1))
		up = d.add(d.mul(i, step), start)
		down = d.add(d.mul(d.sub(i, float64(n-1)), step), end)
	}
	y := d.where(d.lt(i, float64(n/2)), up, down)
	if kindOf(t.DType) < 2 {
		y = d.v(op.AtenTruncDefault(d.Builder, y))
	}
	return d.back(y)
}

func decompLogspace(d *Decomp) []*ir.Value {
	t := d.N.Out().Type
	id := map[string]ops.ID{
		"": ops.AtenLinspaceDefault, "Tensor_Tensor": ops.AtenLinspaceTensorTensor, "Tensor_Scalar": ops.AtenLinspaceTensorScalar, "Scalar_Tensor": ops.AtenLinspaceScalarTensor,
	}[d.N.Info().Schema.Overload]
	if id == ops.Unknown {
		return nil
	}
	if kindOf(t.DType) < 2 {
		// Integers give the ends, float32 the exponents between them.
		start, end := d.in(0), d.in(1)
		trunc := func(x *ir.Value) *ir.Value { return d.cast(d.cast(x, ops.Int64), ops.Float32) }
		n := d.outs(op.New(d.Builder, ops.AtenLinspaceTensorTensor, []ir.Arg{ir.Ref(trunc(start)), ir.Ref(trunc(end)), d.N.Arg(2), ir.DTypeArg(ops.Float32), ir.None, ir.None, ir.None}))
		return d.back(d.v(op.AtenTruncDefault(d.Builder, d.pow(floatArg(d.named("base"), 10), d.cast(n[0], ops.Float64)))))
	}
	args := op.Defaults(id)
	args[0], args[1], args[2], args[3] = d.N.Arg(0), d.N.Arg(1), d.N.Arg(2), ir.DTypeArg(t.DType)
	n := op.New(d.Builder, id, args)
	return d.back(d.pow(floatArg(d.named("base"), 10), d.outs(n)[0]))
}

func decompEye(d *Decomp) []*ir.Value {
	s := d.N.Out().Type.Shape
	return d.back(d.eq(d.grid(s[0], 0, 2), d.grid(s[1], 1, 2)))
}

// decompTrilIndices lists the places of a triangle, which constants say.
func decompTrilIndices(d *Decomp) []*ir.Value {
	rows, okR := d.named("row").Int()
	cols, okC := d.named("col").Int()
	off, okO := d.named("offset").Int()
	if !okR || !okC || !okO || rows*cols > 1<<22 {
		return nil
	}
	lower := d.N.Info().Schema.Base == "tril_indices"
	var r, c []float64
	for i := range rows {
		for j := range cols {
			if lower == (j <= i+off) && (lower || j >= i+off) || !lower && j == i+off {
				r, c = append(r, float64(i)), append(c, float64(j))
			}
		}
	}
	n := int64(len(r))
	v, ok := d.constant("indices", ops.Int64, []int64{2, n}, append(r, c...))
	if !ok {
		return nil
	}
	return d.back(v)
}

// window is a constant made of a formula of i and the number of steps.
func (d *Decomp) window(f func(i, n float64) float64) []*ir.Value {
	n, ok := d.N.Arg(0).Int()
	if !ok || n < 0 || n > 1<<22 {
		return nil
	}
	periodic := true
	if a := d.named("periodic"); !a.IsNone() {
		periodic = boolArg(a)
	}
	steps := float64(n)
	if !periodic {
		steps--
	}
	vals := make([]float64, n)
	for i := range vals {
		vals[i] = f(float64(i), steps)
		if n == 1 {
			vals[i] = 1
		}
	}
	v, ok := d.constant("window", ops.Float64, []int64{n}, vals)
	if !ok {
		return nil
	}
	return d.back(v)
}

func decompHannWindow(d *Decomp) []*ir.Value {
	return d.window(func(i, n float64) float64 { return 0.5 - 0.5*math.Cos(2*math.Pi*i/n) })
}

func decompHammingWindow(d *Decomp) []*ir.Value {
	a, b := floatArg(d.named("alpha"), 0.54), floatArg(d.named("beta"), 0.46)
	return d.window(func(i, n float64) float64 { return a - b*math.Cos(2*math.Pi*i/n) })
}

func decompBlackmanWindow(d *Decomp) []*ir.Value {
	return d.window(func(i, n float64) float64 {
		return 0.42 - 0.5*math.Cos(2*math.Pi*i/n) + 0.08*math.Cos(4*math.Pi*i/n)
	})
}

func decompBartlettWindow(d *Decomp) []*ir.Value {
	return d.window(func(i, n float64) float64 { return 1 - math.Abs(2*i/n-1) })
}

// Random numbers.

func (d *Decomp) shapeLike() ir.Arg { return ir.SymInts(d.N.Out().Type.Shape...) }

func (d *Decomp) rand() *ir.Value {
	t := d.N.Out().Type.DType
	if kindOf(t) != 2 {
		t = ops.Float32
	}
	return d.v(op.AtenRandDefault(d.Builder, d.shapeLike(), op.KW("dtype", ir.DTypeArg(t))))
}

func (d *Decomp) randn() *ir.Value {
	t := d.N.Out().Type.DType
	return d.v(op.AtenRandnDefault(d.Builder, d.shapeLike(), op.KW("dtype", ir.DTypeArg(t))))
}

func decompRandLike(d *Decomp) []*ir.Value { return one(d.rand()) }

func decompRandnLike(d *Decomp) []*ir.Value { return one(d.randn()) }

func (d *Decomp) randint(low, high ir.Arg) []*ir.Value {
	a, okA := low.Expr()
	b, okB := high.Expr()
	if !okA || !okB {
		return nil
	}
	x := d.floor(d.mul(d.rand(), sym.Sub(b, a)))
	return d.back(d.add(x, a))
}

func decompRandint(d *Decomp) []*ir.Value {
	low := d.named("low")
	if low.IsNone() {
		low = ir.Int(0)
	}
	return d.randint(low, d.named("high"))
}

func decompRandintLike(d *Decomp) []*ir.Value { return decompRandint(d) }

func decompBernoulli(d *Decomp) []*ir.Value {
	p := d.N.Arg(0)
	if d.N.Info().Schema.Overload == "p" {
		p = d.N.Arg(1)
	}
	return d.back(d.lt(d.rand(), p))
}

func decompNormal(d *Decomp) []*ir.Value {
	return d.back(d.add(d.mul(d.randn(), d.named("std")), d.named("mean")))
}

func decompNormalFunctional(d *Decomp) []*ir.Value { return decompNormal(d) }

func decompUniform(d *Decomp) []*ir.Value {
	lo, hi := floatArg(d.named("from"), 0), floatArg(d.named("to"), 1)
	return d.back(d.add(d.mul(d.rand(), hi-lo), lo))
}

func decompExponential(d *Decomp) []*ir.Value {
	return d.back(d.div(d.log1p(d.neg(d.rand())), -floatArg(d.named("lambd"), 1)))
}
