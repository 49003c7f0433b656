package infer

import (
	"math"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// sizes are the argument size, none of them negative.
func (c *Call) sizes(name string) []sym.Expr {
	es := c.exprs(name)
	for i, e := range es {
		if c.never(sym.Ge(e, sym.Const(0))) {
			failf("size %s of dimension %d is negative", e, i)
		}
	}
	return es
}

func inferFull(c *Call) ([]ir.Type, error) {
	c.checkLayout()
	v := c.operand("fill_value")
	d := v.dtype
	if v.number && d == ops.Int64 && c.arg("fill_value").Kind() == ir.ArgBool {
		d = ops.Bool
	}
	return one(ir.TensorType(c.dtypeOr("dtype", d), c.sizes("size")...))
}

// inferLike is the rule of tensors like another.
func inferLike(c *Call) ([]ir.Type, error) {
	c.checkLayout()
	x := c.x()
	f := c.str("memory_format")
	if f == "" {
		f = "preserve_format"
	}
	return one(c.withFormat(f, c.dtypeOr("dtype", x.DType), x.Shape, &x))
}

// inferZeros is the rule of factories without a value.
func inferZeros(c *Call) ([]ir.Type, error) {
	c.checkLayout()
	return one(c.withFormat(c.str("memory_format"), c.dtypeOr("dtype", ops.Float32), c.sizes("size"), nil))
}

func (c *Call) strided(d ops.DType) ir.Type {
	t := ir.Type{DType: d, Shape: c.sizes("size"), Strides: c.exprs("stride")}
	if len(t.Shape) != len(t.Strides) {
		failf("%d sizes and %d strides", len(t.Shape), len(t.Strides))
	}
	if t.NormStrides() == nil {
		t.Strides = nil
	}
	return t
}

func inferEmptyStrided(c *Call) ([]ir.Type, error) {
	return one(c.strided(c.dtypeOr("dtype", ops.Float32)))
}

func inferNewEmptyStrided(c *Call) ([]ir.Type, error) {
	return one(c.strided(c.dtypeOr("dtype", c.x().DType)))
}

func inferEmptyPermuted(c *Call) ([]ir.Type, error) {
	size := c.sizes("size")
	order, _ := c.dims("physical_layout", len(size))
	if len(order) != len(size) {
		failf("physical_layout names %d dimensions of %d", len(order), len(size))
	}
	return one(dense(c.dtypeOr("dtype", ops.Float32), size, order))
}

func inferNew(c *Call) ([]ir.Type, error) {
	c.checkLayout()
	return one(ir.TensorType(c.dtypeOr("dtype", c.x().DType), c.sizes("size")...))
}

// number is a numeric argument: a constant float or an integer expression.
type number struct {
	isInt bool
	x     sym.Expr
	f     float64
	known bool
}

func (c *Call) number(name string, def int64) number {
	a := c.arg(name)
	if a.IsNone() {
		return number{isInt: true, x: sym.Const(def), f: float64(def), known: true}
	}
	if e, ok := a.Expr(); ok {
		k, isConst := e.IsConst()
		if f, ok := e.IsFloat(); ok {
			return number{x: e, f: f, known: true}
		}
		return number{isInt: e.Kind() != sym.Float, x: e, f: float64(k), known: isConst}
	}
	if f, ok := a.Float(); ok {
		return number{x: sym.ConstFloat(f), f: f, known: true}
	}
	if o, ok := scalarOperand(a); ok {
		return number{isInt: o.dtype != ops.Float32}
	}
	failf("argument %s is no number", name)
	return number{}
}

// truncated is a number known as a float without its fraction.
func (n number) truncated() number {
	if n.known && !n.isInt {
		f := math.Trunc(n.f)
		return number{isInt: true, known: true, x: sym.Const(int64(f)), f: f}
	}
	return n
}

// steps is the number of elements from start to end in steps. whole tells that torch drops the fractions of the three
// before it counts.
func (c *Call) steps(start, end, step number, closed, whole bool) sym.Expr {
	if step.known && step.f == 0 {
		failf("step is zero")
	}
	if whole {
		start, end, step = start.truncated(), end.truncated(), step.truncated()
	}
	if start.known && end.known && step.known && !(start.isInt && end.isInt && step.isInt) {
		n := (end.f - start.f) / step.f
		if n < 0 || math.IsNaN(n) || n > 1<<62 {
			failf("the bounds %v and %v do not fit the step %v", start.f, end.f, step.f)
		}
		if closed {
			return sym.Const(int64(math.Floor(n)) + 1)
		}
		return sym.Const(int64(math.Ceil(n)))
	}
	if !start.isInt || !end.isInt || !step.isInt {
		return c.fresh(sym.Range{Min: 0, Max: math.MaxInt64})
	}
	span := sym.Sub(end.x, start.x)
	neg := c.never(sym.Ge(step.x, sym.Const(0)))
	st := step.x
	if neg {
		span, st = sym.Neg(span), sym.Neg(st)
	}
	if c.never(sym.Ge(span, sym.Const(0))) {
		failf("the bounds %s and %s do not fit the step %s", start.x, end.x, step.x)
	}
	if closed {
		return c.simp(sym.Add(sym.FloorDiv(span, st), sym.Const(1)))
	}
	if st.IsConstValue(1) {
		return c.simp(span)
	}
	return c.simp(sym.CeilDiv(span, st))
}

func (c *Call) counted(closed bool) ([]ir.Type, error) {
	c.checkLayout()
	start, end, step := c.number("start", 0), c.number("end", 0), c.number("step", 1)
	d := ops.Int64
	if !start.isInt || !end.isInt || !step.isInt {
		d = ops.Float32
	}
	if closed {
		d = ops.Float32
	}
	d = c.dtypeOr("dtype", d)
	return one(ir.TensorType(d, c.steps(start, end, step, closed, d == ops.Int64 && !closed)))
}

func inferArange(c *Call) ([]ir.Type, error) { return c.counted(false) }

func inferRange(c *Call) ([]ir.Type, error) { return c.counted(true) }

func inferLinspace(c *Call) ([]ir.Type, error) {
	n := c.expr("steps")
	if c.never(sym.Ge(n, sym.Const(0))) {
		failf("steps is %s", n)
	}
	return one(ir.TensorType(c.dtypeOr("dtype", ops.Float32), n))
}

func inferEye(c *Call) ([]ir.Type, error) {
	n := c.expr("n")
	m := n
	if c.has("m") {
		m = c.expr("m")
	}
	return one(ir.TensorType(c.dtypeOr("dtype", ops.Float32), n, m))
}

func inferScalarTensor(c *Call) ([]ir.Type, error) {
	d := c.operand("s").dtype
	if a := c.arg("dtype"); a.IsNone() && d != ops.Complex64 {
		// torch makes the default float of every number without a dtype, bools and integers too.
		d = ops.Float32
	}
	return one(ir.TensorType(c.dtypeOr("dtype", d)))
}

func inferTrilIndices(c *Call) ([]ir.Type, error) {
	h, w, off := c.int("row"), c.int("col"), c.int("offset")
	upper := c.Op == ops.AtenTriuIndicesDefault
	n := int64(0)
	for i := range h {
		// Columns up to i+off are in the lower triangle.
		low := min(max(i+off+1, 0), w)
		if upper {
			low = w - min(max(i+off, 0), w)
		}
		n += low
	}
	return one(ir.StaticType(c.dtypeOr("dtype", ops.Int64), 2, n))
}

func inferWindow(c *Call) ([]ir.Type, error) {
	n := c.expr("window_length")
	return one(ir.TensorType(c.dtypeOr("dtype", ops.Float32), n))
}
