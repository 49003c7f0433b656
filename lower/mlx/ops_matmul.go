package mlx

import (
	"github.com/lathe-ml/lathe/codegen/fb/mlx"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ops"
)

var matmulRules = map[ops.ID]rule{
	ops.AtenLinearDefault:  linear,
	ops.AtenAddmmDefault:   addmm,
	ops.AtenBaddbmmDefault: addmm,
	ops.AtenMmDefault:      matmul,
	ops.AtenBmmDefault:     matmul,
	ops.AtenMatmulDefault:  matmul,
	ops.AtenMvDefault:      matmul,
	ops.AtenDotDefault:     matmul,
}

// linear is x·wᵀ + bias. The transpose is a view and costs nothing.
func linear(m *match) emit {
	if e := quantizedLinear(m); e != nil || m.why != nil {
		return e
	}
	x, w, bias, d := m.in(0), m.in(1), m.in(2), m.out().DType
	if !d.IsFloat() || x.Type.Rank() == 0 || w.Type.Rank() != 2 {
		return m.no("integers, or a tensor without dimensions")
	}
	return func(b *builder) {
		n := mlx.NewAddmmNode()
		n.Mat1, n.Mat2, n.Bias = b.in(x), b.transposedWeight(w), b.optional(bias)
		n.Out = b.out(0)
		b.emit(n)
	}
}

// transposedWeight is the matrix w transposed, once for all who want it so.
func (b *builder) transposedWeight(w *ir.Value) mlx.Tid {
	t := b.in(w)
	if out, ok := b.transposes[t.Idx]; ok && len(b.scopes) == 1 {
		return out
	}
	out := b.temp(b.dtype(t))
	b.emit(&mlx.TransposeNode{X: t, Out: out, Perm: []int32{1, 0}})
	if len(b.scopes) == 1 {
		b.transposes[t.Idx] = out
	}
	return out
}

// addmm is beta*c + alpha*a·b.
func addmm(m *match) emit {
	c, x, y, d := m.in(0), m.in(1), m.in(2), m.out().DType
	beta, ok := m.n.ArgNamed("beta").Float()
	alpha, ok2 := m.n.ArgNamed("alpha").Float()
	if !ok || !ok2 || !d.IsFloat() {
		return m.no("integers, or computed factors")
	}
	return func(b *builder) {
		t := b.in(c)
		b.emit(&mlx.AddmmNode{Mat1: b.in(x), Mat2: b.in(y), Bias: &t, Out: b.out(0), Alpha: float32(alpha), Beta: float32(beta)})
	}
}

func matmul(m *match) emit {
	x, y, d := m.in(0), m.in(1), m.out().DType
	if !d.IsFloat() {
		return m.no("a product of integers")
	}
	if x.Type.Rank() == 0 || y.Type.Rank() == 0 {
		return m.no("a tensor without dimensions")
	}
	if e := pickedMm(m); e != nil {
		return e
	}
	return func(b *builder) {
		n := mlx.NewAddmmNode()
		n.Mat1, n.Mat2, n.Out = b.in(x), b.in(y), b.out(0)
		b.emit(n)
	}
}
