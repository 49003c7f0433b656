package mlx

import (
	"github.com/lathe-ml/lathe/codegen/fb/mlx"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ops"
)

type reduceNode func(x, out mlx.Tid, axes []int32, keep bool) mlx.OpNode

func sumNode(x, out mlx.Tid, axes []int32, keep bool) mlx.OpNode {
	return &mlx.SumNode{X: x, Out: out, Axes: axes, Keepdims: keep}
}

func meanNode(x, out mlx.Tid, axes []int32, keep bool) mlx.OpNode {
	return &mlx.MeanNode{X: x, Out: out, Axes: axes, Keepdims: keep}
}

func prodNode(x, out mlx.Tid, axes []int32, keep bool) mlx.OpNode {
	return &mlx.ProdNode{X: x, Out: out, Axes: axes, Keepdims: keep}
}

func maxReduce(x, out mlx.Tid, axes []int32, keep bool) mlx.OpNode {
	return &mlx.MaxNode{X: x, Out: out, Axes: axes, Keepdims: keep}
}

func minReduce(x, out mlx.Tid, axes []int32, keep bool) mlx.OpNode {
	return &mlx.MinNode{X: x, Out: out, Axes: axes, Keepdims: keep}
}

func anyNode(x, out mlx.Tid, axes []int32, keep bool) mlx.OpNode {
	return &mlx.AnyNode{X: x, Out: out, Axes: axes, Keepdims: keep}
}

func allNode(x, out mlx.Tid, axes []int32, keep bool) mlx.OpNode {
	return &mlx.AllNode{X: x, Out: out, Axes: axes, Keepdims: keep}
}

func logSumExpNode(x, out mlx.Tid, axes []int32, keep bool) mlx.OpNode {
	return &mlx.LogSumExpNode{X: x, Out: out, Axes: axes, Keepdims: keep}
}

var reduceRules = map[ops.ID]rule{
	ops.AtenSumDefault:             reduce(sumNode),
	ops.AtenSumDimIntList:          reduce(sumNode),
	ops.AtenMeanDefault:            reduce(meanNode),
	ops.AtenMeanDim:                reduce(meanNode),
	ops.AtenProdDefault:            reduce(prodNode),
	ops.AtenProdDimInt:             reduce(prodNode),
	ops.AtenAmaxDefault:            reduce(maxReduce),
	ops.AtenAminDefault:            reduce(minReduce),
	ops.AtenMaxDefault:             reduce(maxReduce),
	ops.AtenMinDefault:             reduce(minReduce),
	ops.AtenAnyDefault:             reduce(anyNode),
	ops.AtenAnyDim:                 reduce(anyNode),
	ops.AtenAnyDims:                reduce(anyNode),
	ops.AtenAllDefault:             reduce(allNode),
	ops.AtenAllDim:                 reduce(allNode),
	ops.AtenAllDims:                reduce(allNode),
	ops.AtenLogsumexpDefault:       reduce(logSumExpNode),
	ops.AtenVarDefault:             variance(false),
	ops.AtenVarDim:                 variance(false),
	ops.AtenVarCorrection:          variance(false),
	ops.AtenStdDefault:             variance(true),
	ops.AtenStdDim:                 variance(true),
	ops.AtenStdCorrection:          variance(true),
	ops.AtenArgmaxDefault:          arg(true),
	ops.AtenArgminDefault:          arg(false),
	ops.AtenMaxDim:                 extreme(true),
	ops.AtenMinDim:                 extreme(false),
	ops.AtenCumsumDefault:          cumsum,
	ops.AtenSoftmaxInt:             softmax,
	ops.AtenUnderSoftmaxDefault:    softmax,
	ops.AtenLogSoftmaxInt:          logSoftmax,
	ops.AtenUnderLogSoftmaxDefault: logSoftmax,
}

// axes gives the dimensions that a reduction is over, all of them where it names none, and whether they stay as ones.
func (m *match) axes() (axes []int32, keep, ok bool) {
	keep, _ = m.n.ArgNamed("keepdim").Bool()
	rank := m.typ(0).Rank()
	a := m.n.ArgNamed("dim")
	if a.IsNone() {
		return nil, keep, true
	}
	ks, ok := a.IntList()
	if !ok {
		k, one := a.Int()
		if !one {
			m.no("its dimensions are not constant")
			return nil, false, false
		}
		ks = []int64{k}
	}
	for _, k := range ks {
		if rank == 0 {
			continue
		}
		d, ok := m.axis(k, rank)
		if !ok {
			return nil, false, false
		}
		axes = append(axes, int32(d))
	}
	if len(axes) == 0 && keep && rank > 0 && len(ks) == 0 {
		for d := range rank {
			axes = append(axes, int32(d))
		}
	}
	return axes, keep, true
}

func reduce(node reduceNode) rule {
	return func(m *match) emit {
		x, d := m.in(0), m.out().DType
		axes, keep, ok := m.axes()
		if !ok {
			return nil
		}
		if a := m.n.ArgNamed("dim"); (m.n.Op == ops.AtenAnyDims || m.n.Op == ops.AtenAllDims) && a.Kind() == ir.ArgList && len(a.List()) == 0 {
			return m.no("no dimension, which is each element for itself")
		}
		if d == ops.Bool && x.Type.DType != ops.Bool {
			// any and all, on any type
			return func(b *builder) { b.emit(node(b.inAs(x, ops.Bool), b.out(0), axes, keep)) }
		}
		return func(b *builder) { b.emit(node(b.inAs(x, d), b.out(0), axes, keep)) }
	}
}

// variance is var and std with any correction.
func variance(std bool) rule {
	return func(m *match) emit {
		x := m.in(0)
		axes, keep, ok := m.axes()
		if !ok {
			return nil
		}
		ddof := int64(1)
		if a := m.n.ArgNamed("correction"); !a.IsNone() {
			f, ok := a.Float()
			ddof = int64(f)
			if !ok || float64(ddof) != f {
				return m.no("a correction that is no integer")
			}
		}
		if u, ok := m.n.ArgNamed("unbiased").Bool(); ok && !u {
			ddof = 0
		}
		return func(b *builder) {
			// The delegate rounds the mean to the type of its operand: in half precision that alone can be most of the variance.
			wide := b.inAs(x, ops.Float32)
			out := b.temp(ops.Float32)
			if std {
				b.emit(&mlx.StdNode{X: wide, Out: out, Axes: axes, Keepdims: keep, Ddof: int32(ddof)})
			} else {
				b.emit(&mlx.VarNode{X: wide, Out: out, Axes: axes, Keepdims: keep, Ddof: int32(ddof)})
			}
			b.finally(0, out)
		}
	}
}

func argNode(largest bool, x, out mlx.Tid, axis int, keep bool) mlx.OpNode {
	if largest {
		return &mlx.ArgmaxNode{X: x, Out: out, Axis: int32(axis), Keepdims: keep}
	}
	return &mlx.ArgminNode{X: x, Out: out, Axis: int32(axis), Keepdims: keep}
}

// arg is argmax and argmin; the delegate counts in 32 unsigned bits.
func arg(largest bool) rule {
	return func(m *match) emit {
		x := m.in(0)
		keep, _ := m.arg(2).Bool()
		rank := x.Type.Rank()
		if m.arg(1).IsNone() || rank == 0 {
			shape := m.out().Shape
			return func(b *builder) {
				flat := b.temp(x.Type.DType)
				b.emit(&mlx.ReshapeNode{X: b.in(x), Out: flat, Shape: []*mlx.IntOrVid{lit(-1)}})
				if len(shape) == 0 {
					b.emit(argNode(largest, flat, b.outAs(0, ops.Uint32), 0, false))
					return
				}
				t := b.temp(ops.Uint32)
				b.emit(argNode(largest, flat, t, 0, false))
				b.emit(&mlx.ReshapeNode{X: t, Out: b.outAs(0, ops.Uint32), Shape: b.ints(shape)})
			}
		}
		d, ok := m.dim(1, rank)
		if !ok {
			return nil
		}
		return func(b *builder) { b.emit(argNode(largest, b.in(x), b.outAs(0, ops.Uint32), d, keep)) }
	}
}

// extreme is max and min over a dimension, values and places.
func extreme(largest bool) rule {
	return func(m *match) emit {
		x := m.in(0)
		if x.Type.Rank() == 0 {
			return m.no("a tensor without dimensions")
		}
		d, ok := m.dim(1, x.Type.Rank())
		if !ok {
			return nil
		}
		keep, _ := m.arg(2).Bool()
		return func(b *builder) {
			node := reduceNode(minReduce)
			if largest {
				node = maxReduce
			}
			b.emit(node(b.in(x), b.out(0), []int32{int32(d)}, keep))
			b.emit(argNode(largest, b.in(x), b.outAs(1, ops.Uint32), d, keep))
		}
	}
}

func cumsum(m *match) emit {
	x, d := m.in(0), m.out().DType
	if x.Type.Rank() == 0 {
		return func(b *builder) { b.result(0, b.inAs(x, d)) }
	}
	axis, ok := m.dim(1, x.Type.Rank())
	if !ok {
		return nil
	}
	return func(b *builder) {
		n := mlx.NewCumsumNode()
		n.X, n.Out, n.Axis = b.inAs(x, d), b.out(0), int32(axis)
		b.emit(n)
	}
}

func softmax(m *match) emit {
	x, d := m.in(0), m.out().DType
	if x.Type.Rank() == 0 || !d.IsFloat() {
		return m.no("a tensor without dimensions, or of integers")
	}
	axis, ok := m.dim(1, x.Type.Rank())
	if !ok {
		return nil
	}
	return func(b *builder) {
		b.emit(&mlx.SoftmaxNode{X: b.inAs(x, d), Out: b.out(0), Axis: int32(axis), Precise: d != ops.Float32})
	}
}

func logSoftmax(m *match) emit {
	x, d := m.in(0), m.out().DType
	if x.Type.Rank() == 0 || !d.IsFloat() {
		return m.no("a tensor without dimensions, or of integers")
	}
	axis, ok := m.dim(1, x.Type.Rank())
	if !ok {
		return nil
	}
	return func(b *builder) {
		t := b.temp(d)
		b.emit(logSumExpNode(b.inAs(x, d), t, []int32{int32(axis)}, true))
		b.emit(subNode(b.inAs(x, d), t, b.out(0)))
	}
}

// flagged tells whether a is the constant true.
func flagged(a ir.Arg) bool {
	v, _ := a.Bool()
	return v
}
