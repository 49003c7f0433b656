package infer

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// sumType is the type that integers are summed in.
func sumType(d ops.DType) ops.DType {
	if category(d) < 2 {
		return ops.Int64
	}
	return d
}

// reduced is a shape without the dimensions ds, or with ones there; no dimension means all.
func reduced(shape []sym.Expr, ds []int, all, keep bool) []sym.Expr {
	cut := make([]bool, len(shape))
	for _, d := range ds {
		if d < len(cut) {
			cut[d] = true
		}
	}
	var out []sym.Expr
	for i, e := range shape {
		switch {
		case !all && !cut[i]:
			out = append(out, e)
		case keep:
			out = append(out, sym.Const(1))
		}
	}
	return out
}

// reduce is the type of a reduction over the argument dim (absent or empty: all dimensions).
func (c *Call) reduce(d ops.DType, x ir.Type) ir.Type {
	var ds []int
	if a := c.arg("dim"); a.Kind() == ir.ArgList {
		ds, _ = c.dims("dim", x.Rank())
	} else if !a.IsNone() {
		ds = []int{c.dim("dim", x.Rank())}
	}
	keep := false
	if c.has("keepdim") {
		keep = c.bool("keepdim")
	}
	return c.reduceTo(d, x, ds, len(ds) == 0, keep)
}

func (c *Call) reduceTo(d ops.DType, x ir.Type, ds []int, all, keep bool) ir.Type {
	return ir.TensorType(d, reduced(x.Shape, ds, all, keep)...)
}

func inferSumAll(c *Call) ([]ir.Type, error) {
	return one(ir.TensorType(c.dtypeOr("dtype", sumType(c.x().DType))))
}

func inferSum(c *Call) ([]ir.Type, error) {
	x := c.x()
	return one(c.reduce(c.dtypeOr("dtype", sumType(x.DType)), x))
}

func (c *Call) meanType(x ir.Type) ops.DType {
	d := c.dtypeOr("dtype", x.DType)
	floating("the mean's type", d)
	return d
}

func inferMeanAll(c *Call) ([]ir.Type, error) { return one(ir.TensorType(c.meanType(c.x()))) }

func inferMean(c *Call) ([]ir.Type, error) {
	x := c.x()
	return one(c.reduce(c.meanType(x), x))
}

// notEmpty fails where a dimension without elements is reduced by an operator without a neutral element.
func (c *Call) notEmpty(x ir.Type, d int) {
	if d < x.Rank() && x.Shape[d].IsConstValue(0) {
		failf("dimension %d has no elements to choose from", d)
	}
}

func inferReduceDims(c *Call) ([]ir.Type, error) {
	x := c.x()
	noComplex(x.DType)
	return one(c.reduce(x.DType, x))
}

func inferAminmax(c *Call) ([]ir.Type, error) {
	x := c.x()
	noComplex(x.DType)
	t := c.reduce(x.DType, x)
	return []ir.Type{t, t}, nil
}

func inferReduceAll(c *Call) ([]ir.Type, error) {
	x := c.x()
	noComplex(x.DType)
	if c.empty(x) && c.Op != ops.AtenMedianDefault && c.Op != ops.AtenNanmedianDefault {
		failf("a tensor without elements has no extremum")
	}
	return one(ir.TensorType(x.DType))
}

func inferMaxDim(c *Call) ([]ir.Type, error) {
	x := c.x()
	noComplex(x.DType)
	d := c.dim("dim", x.Rank())
	c.notEmpty(x, d)
	t := c.reduceTo(x.DType, x, []int{d}, false, c.bool("keepdim"))
	i := t
	i.DType = ops.Int64
	return []ir.Type{t, i}, nil
}

func inferKthvalue(c *Call) ([]ir.Type, error) {
	x := c.x()
	d := c.dim("dim", x.Rank())
	if k, ok := c.expr("k").IsConst(); ok && x.Rank() > 0 {
		if n, ok := x.Shape[d].IsConst(); ok && (k < 1 || k > n) {
			failf("k is %d, dimension %d has %d elements", k, d, n)
		}
	}
	return inferMaxDim(c)
}

func inferArgmax(c *Call) ([]ir.Type, error) {
	x := c.x()
	noComplex(x.DType)
	if c.arg("dim").IsNone() {
		if c.empty(x) {
			failf("a tensor without elements has no extremum")
		}
		return one(c.reduceTo(ops.Int64, x, nil, true, c.bool("keepdim")))
	}
	d := c.dim("dim", x.Rank())
	c.notEmpty(x, d)
	return one(c.reduceTo(ops.Int64, x, []int{d}, false, c.bool("keepdim")))
}

// inferAny: uint8 stays, all else becomes bool.
func inferAny(c *Call) ([]ir.Type, error) {
	x := c.x()
	d := ops.Bool
	if x.DType == ops.Uint8 {
		d = ops.Uint8
	}
	if a := c.arg("dim"); a.Kind() == ir.ArgList && len(a.List()) == 0 {
		// any.dims over no dimension is element-wise.
		return one(ir.TensorType(d, x.Shape...))
	}
	return one(c.reduce(d, x))
}

func inferIsAllTrue(c *Call) ([]ir.Type, error) {
	x := c.x()
	if x.DType != ops.Bool {
		failf("self is %s, bool is needed", x.DType)
	}
	return one(ir.TensorType(ops.Bool))
}

func inferCountNonzero(c *Call) ([]ir.Type, error) { return one(c.reduce(ops.Int64, c.x())) }

func inferLogsumexp(c *Call) ([]ir.Type, error) {
	x := c.x()
	return one(c.reduce(floatOf(x.DType), x))
}

func (c *Call) varType(x ir.Type) (vt, mt ir.Type) {
	floating(c.Op.Info().Schema.Args[0].Name, x.DType)
	return c.reduce(x.DType.ToReal(), x), c.reduce(x.DType, x)
}

func inferVar(c *Call) ([]ir.Type, error) {
	t, _ := c.varType(c.x())
	return one(t)
}

func inferVarMean(c *Call) ([]ir.Type, error) {
	v, m := c.varType(c.x())
	return []ir.Type{v, m}, nil
}

func inferNorm(c *Call) ([]ir.Type, error) {
	x := c.x()
	d := c.dtypeOr("dtype", x.DType)
	floating("the norm's type", d)
	return one(c.reduce(d.ToReal(), x))
}

func inferVectorNorm(c *Call) ([]ir.Type, error) {
	x := c.x()
	d := c.dtypeOr("dtype", x.DType)
	floating("the norm's type", d)
	return one(c.reduce(d.ToReal(), x))
}

// inferLinalgNorm: without dim all elements, or the last two dimensions of a matrix where ord is given.
func inferLinalgNorm(c *Call) ([]ir.Type, error) {
	x := c.x()
	d := c.dtypeOr("dtype", x.DType).ToReal()
	floating("the norm's type", d)
	if c.arg("dim").IsNone() && !c.arg("ord").IsNone() {
		rank("self", x, 1, 2)
	}
	return one(c.reduce(d, x))
}

func inferMatrixNorm(c *Call) ([]ir.Type, error) {
	x := c.x()
	d := c.dtypeOr("dtype", x.DType).ToReal()
	floating("the norm's type", d)
	ds, ok := c.dims("dim", x.Rank())
	if !ok || len(ds) != 2 {
		failf("dim has to name two dimensions")
	}
	return one(c.reduceTo(d, x, ds, false, c.bool("keepdim")))
}

func inferFrobeniusNorm(c *Call) ([]ir.Type, error) {
	x := c.x()
	floating("self", x.DType)
	return one(c.reduce(x.DType.ToReal(), x))
}

func inferDist(c *Call) ([]ir.Type, error) {
	a, b := c.pair()
	d := resultType(a, b)
	floating("the distance's type", d)
	c.broadcast(a.t.Shape, b.t.Shape)
	return one(ir.TensorType(d.ToReal()))
}

func inferQuantile(c *Call) ([]ir.Type, error) {
	x := c.x()
	if x.DType != ops.Float32 && x.DType != ops.Float64 {
		failf("self is %s, float32 or float64 is needed", x.DType)
	}
	q := c.operand("q")
	if q.t.Rank() > 1 {
		failf("q has %d dimensions, at most one is allowed", q.t.Rank())
	}
	var t ir.Type
	if c.arg("dim").IsNone() {
		t = c.reduceTo(x.DType, x, nil, true, c.bool("keepdim"))
	} else {
		t = c.reduceTo(x.DType, x, []int{c.dim("dim", x.Rank())}, false, c.bool("keepdim"))
	}
	if q.t.Rank() == 1 {
		t = ir.TensorType(x.DType, append([]sym.Expr{q.t.Shape[0]}, t.Shape...)...)
	}
	return one(t)
}

func inferCumsum(c *Call) ([]ir.Type, error) {
	x := c.x()
	c.dim("dim", x.Rank())
	return one(ir.TensorType(c.dtypeOr("dtype", sumType(x.DType)), x.Shape...))
}

func inferCummax(c *Call) ([]ir.Type, error) {
	x := c.x()
	noComplex(x.DType)
	c.dim("dim", x.Rank())
	return []ir.Type{ir.TensorType(x.DType, x.Shape...), ir.TensorType(ops.Int64, x.Shape...)}, nil
}

func inferLogcumsumexp(c *Call) ([]ir.Type, error) {
	x := c.x()
	floating("self", x.DType)
	c.dim("dim", x.Rank())
	return one(ir.TensorType(x.DType, x.Shape...))
}

func inferTrace(c *Call) ([]ir.Type, error) {
	x := c.x()
	rank("self", x, 2)
	return one(ir.TensorType(sumType(x.DType)))
}

func inferHistc(c *Call) ([]ir.Type, error) {
	x := c.x()
	noComplex(x.DType)
	return one(ir.TensorType(x.DType, c.expr("bins")))
}

func inferBincount(c *Call) ([]ir.Type, error) {
	x := c.x()
	rank("self", x, 1)
	d := ops.Int64
	if w, ok := c.optTensor("weights"); ok {
		d = ops.Float64
		if w.DType == ops.Float32 {
			d = ops.Float32
		}
	}
	least, ok := c.expr("minlength").IsConst()
	if !ok {
		least = 0
	}
	return one(ir.TensorType(d, c.fresh(sym.Range{Min: least, Max: sym.NoRange.Max})))
}

func inferTrapezoid(c *Call) ([]ir.Type, error) {
	y := c.tensor("y")
	d := c.dim("dim", y.Rank())
	xs := []operand{{dtype: y.DType, t: y}}
	if c.has("x") {
		x := c.tensor("x")
		xs = append(xs, operand{dtype: x.DType, t: x})
	} else {
		xs = append(xs, c.operand("dx"))
	}
	dt := resultType(xs...)
	if category(dt) < 2 {
		dt = ops.Float32
	}
	return one(ir.TensorType(dt, reduced(y.Shape, []int{d}, false, false)...))
}

func inferCov(c *Call) ([]ir.Type, error) {
	x := c.x()
	rank("self", x, 0, 1, 2)
	d := floatOf(x.DType)
	if x.Rank() < 2 {
		return one(ir.TensorType(d))
	}
	return one(ir.TensorType(d, x.Shape[0], x.Shape[0]))
}

func inferHashTensor(c *Call) ([]ir.Type, error) { return one(c.reduce(ops.Uint64, c.x())) }

func inferSumToSize(c *Call) ([]ir.Type, error) {
	x := c.x()
	size := c.exprs("size")
	if ir.EqualShape(size, x.Shape) && len(size) > 0 {
		return one(x)
	}
	return one(ir.TensorType(sumType(x.DType), size...))
}
