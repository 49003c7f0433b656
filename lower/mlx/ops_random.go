package mlx

import (
	"math"
	"slices"

	"github.com/lathe-ml/lathe/codegen/fb/mlx"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ops"
)

// The numbers drawn are others than PyTorch's: the runtime has its own generator, whose sequence goes on from call to call.
var randomRules = map[ops.ID]rule{
	ops.AtenRandDefault:    random((*builder).uniform),
	ops.AtenRandGenerator:  random((*builder).uniform),
	ops.AtenRandnDefault:   random((*builder).normal),
	ops.AtenRandnGenerator: random((*builder).normal),
}

func random(draw func(b *builder, shape []*mlx.IntOrVid, d ops.DType) mlx.Tid) rule {
	return func(m *match) emit {
		d, shape := m.out().DType, m.out().Shape
		if !d.IsFloat() || slices.ContainsFunc(shape, m.mayBeZero) {
			return m.no("random numbers that are no floats, or perhaps none at all")
		}
		if g := m.n.ArgNamed("generator"); !g.IsNone() {
			return m.no("a generator of its own")
		}
		return func(b *builder) { b.result(0, draw(b, b.ints(shape), d)) }
	}
}

// uniform draws from [0, 1): as many bits as d holds exactly, so that one is never rounded to.
func (b *builder) uniform(shape []*mlx.IntOrVid, d ops.DType) mlx.Tid {
	digits := map[ops.DType]int{ops.Float16: 11, ops.BFloat16: 8, ops.Float32: 24}[d]
	word, whole, u := b.temp(ops.Uint32), b.temp(ops.Uint32), b.temp(d)
	b.emit(&mlx.RandomBitsNode{Out: word, Shape: shape, Width: 4})
	b.emit(&mlx.FloorDivideNode{A: word, B: b.scalar(ops.Uint32, ir.Int(1<<(32-digits))), Out: whole})
	b.emit(mulNode(b.cast(whole, d), b.float(d, math.Ldexp(1, -digits)), u))
	return u
}

// normal draws by the transform of Box and Muller, in single precision.
func (b *builder) normal(shape []*mlx.IntOrVid, d ops.DType) mlx.Tid {
	const f32 = ops.Float32
	t := func() mlx.Tid { return b.temp(f32) }
	// One minus the draw is never zero.
	rest, log, square, radius, angle, cos, out := t(), t(), t(), t(), t(), t(), t()
	b.emit(&mlx.SubtractNode{A: b.float(f32, 1), B: b.uniform(shape, f32), Out: rest})
	b.emit(&mlx.LogNode{X: rest, Out: log})
	b.emit(mulNode(log, b.float(f32, -2), square))
	b.emit(&mlx.SqrtNode{X: square, Out: radius})
	b.emit(mulNode(b.uniform(shape, f32), b.float(f32, 2*math.Pi), angle))
	b.emit(&mlx.CosNode{X: angle, Out: cos})
	b.emit(mulNode(radius, cos, out))
	return b.cast(out, d)
}
