package mlx

import (
	"math"
	"slices"

	"github.com/lathe-ml/lathe/codegen/fb/mlx"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

var createRules = map[ops.ID]rule{
	ops.AtenFullDefault:         fullRule(1),
	ops.AtenNewFullDefault:      fullRule(2),
	ops.AtenFullLikeDefault:     fullRule(1),
	ops.AtenZerosDefault:        filled(0),
	ops.AtenNewZerosDefault:     filled(0),
	ops.AtenZerosLikeDefault:    filled(0),
	ops.AtenOnesDefault:         filled(1),
	ops.AtenNewOnesDefault:      filled(1),
	ops.AtenOnesLikeDefault:     filled(1),
	ops.AtenEmptyMemoryFormat:   filled(0),
	ops.AtenEmptyLikeDefault:    filled(0),
	ops.AtenNewEmptyDefault:     filled(0),
	ops.AtenScalarTensorDefault: fullRule(0),
	ops.AtenArangeDefault:       arange,
	ops.AtenArangeStart:         arange,
	ops.AtenArangeStartStep:     arange,
	ops.AtenTrilDefault:         triangle(true),
	ops.AtenTriuDefault:         triangle(false),
}

// mayBeZero tells that the bounds of a size do not keep it from zero.
func (m *match) mayBeZero(e sym.Expr) bool { return m.n.Graph().Root().Syms.Range(e).Min < 1 }

func filled(v int64) rule { return func(m *match) emit { return m.fill(ir.Int(v)) } }

func fullRule(at int) rule { return func(m *match) emit { return m.fill(m.arg(at)) } }

// fill is a tensor of one number. The delegate's number is a 32-bit float: an integer that it does not hold is a constant
// spread out.
func (m *match) fill(v ir.Arg) emit {
	d, shape := m.out().DType, m.out().Shape
	if !numeric(v, d) && !(d == ops.Bool && v.Kind() == ir.ArgInt) {
		return m.no("the value does not fit %s", d)
	}
	if v.Value() != nil && v.Value().Type.IsTensor() {
		return m.no("the value is computed")
	}
	mayBeEmpty := slices.ContainsFunc(shape, m.mayBeZero)
	f, isConst := v.Float()
	exact := isConst && (!d.IsInt() || math.Abs(f) <= 1<<24)
	return func(b *builder) {
		if mayBeEmpty { // FullNode makes none
			b.emit(&mlx.BroadcastToNode{X: b.operand(v, d), Out: b.out(0), Shape: b.ints(shape)})
			return
		}
		if isConst && !exact {
			if len(shape) == 0 {
				b.result(0, b.scalar(d, v))
				return
			}
			b.emit(&mlx.BroadcastToNode{X: b.scalar(d, v), Out: b.out(0), Shape: b.ints(shape)})
			return
		}
		if isConst && len(shape) == 0 {
			b.result(0, b.scalar(d, v))
			return
		}
		n := &mlx.FullNode{Shape: b.ints(shape), V: &mlx.FloatOrVid{Literal: f}, ScalarType: scalarType(d)}
		if !isConst {
			x := b.argInt(v)
			if x.IsVid {
				n.V = &mlx.FloatOrVid{IsVid: true, Vid: &mlx.Vid{Idx: x.Vid.Idx}}
			} else {
				n.V.Literal = float64(x.Literal)
			}
		}
		n.Out = b.out(0)
		b.emit(n)
	}
}

// arange counts; with fractions the numbers are a constant.
func arange(m *match) emit {
	d := m.out().DType
	start, step := ir.Int(0), ir.Int(1)
	end := m.arg(0)
	switch m.n.Op {
	case ops.AtenArangeStart:
		start, end = m.arg(0), m.arg(1)
	case ops.AtenArangeStartStep:
		start, end, step = m.arg(0), m.arg(1), m.arg(2)
	}
	var es [3]sym.Expr
	whole := true
	for i, a := range []ir.Arg{start, end, step} {
		if a.Kind() == ir.ArgFloat {
			f, _ := a.Float()
			if f == math.Trunc(f) && math.Abs(f) < far {
				a = ir.Int(int64(f))
			}
		}
		e, ok := a.Expr()
		if a.Value() != nil || !ok {
			whole = false
			continue
		}
		es[i] = e
	}
	count := m.out().Shape[0]
	if count.IsConstValue(0) {
		return m.no("an empty tensor")
	}
	if whole {
		if k, ok := es[2].IsConst(); !ok || k == 0 {
			return m.no("a computed step")
		}
		if m.mayBeZero(count) { // ARangeNode makes one element at least
			return func(b *builder) {
				t, some := scalarType(d), b.temp(d)
				stop := sym.Add(es[0], sym.Mul(es[2], sym.Max(count, sym.Const(1))))
				b.emit(&mlx.ARangeNode{Start: b.int(es[0]), Stop: b.int(stop), Step: b.int(es[2]), ScalarType: &t, Out: some})
				b.emit(&mlx.SliceNode{X: some, Out: b.out(0), Axis: lit(0), Start: lit(0), Stop: b.int(count), Step: 1})
			}
		}
		return func(b *builder) {
			t := scalarType(d)
			b.emit(&mlx.ARangeNode{Start: b.int(es[0]), Stop: b.int(es[1]), Step: b.int(es[2]), ScalarType: &t, Out: b.out(0)})
		}
	}
	s, ok := start.Float()
	p, ok2 := step.Float()
	n, ok3 := count.IsConst()
	if !ok || !ok2 || !ok3 || n > 1<<16 || !d.IsFloat() {
		return m.no("fractions that are computed")
	}
	fs := make([]float64, n)
	for i := range fs {
		fs[i] = s + float64(i)*p
	}
	return func(b *builder) { b.result(0, b.floats(d, []int64{n}, fs)) }
}

func triangle(lower bool) rule {
	return func(m *match) emit {
		x := m.in(0)
		k, ok := m.intArg(1)
		if !ok || x.Type.Rank() < 2 {
			return m.no("a computed diagonal, or a rank below two")
		}
		return func(b *builder) {
			if lower {
				b.emit(&mlx.TrilNode{X: b.in(x), Out: b.out(0), K: int32(k)})
				return
			}
			b.emit(&mlx.TriuNode{X: b.in(x), Out: b.out(0), K: int32(k)})
		}
	}
}
