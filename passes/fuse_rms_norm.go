package passes

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/passes/pattern"
)

// FuseRMSNorm finds root mean square norms that are written out.
var FuseRMSNorm = Pass{
	Name: "fuse-rms-norm",
	Doc: "Replaces x * rsqrt(mean(x*x) + eps) over the last dimension by rms_norm, with the weight where it is multiplied in the same " +
		"precision, and with the conversions to single precision and back.",
	Run: func(ctx *Context, g *ir.Graph) error {
		if g.Stage == ops.StageAten {
			return nil
		}
		return each(g, func(n *ir.Node) error { return fuseRMSNorm(ctx, n) })
	},
}

// rmsNorm is x * rsqrt(mean(x*x, -1, keepdim) + eps) in the forms that it is written in.
var rmsNorm = func() *pattern.Pattern {
	x := pattern.Any("x")
	square := pattern.OneOf(pattern.Op(ops.AtenSquareDefault, x), pattern.Op(ops.AtenPowTensorScalar, x, pattern.Is(2)), pattern.Op(ops.AtenMulTensor, x, x))
	mean := pattern.Op(ops.AtenMeanDim, square).As("mean").With("keepdim", pattern.True)
	sum := pattern.Op(ops.AtenAddTensor, mean, pattern.Number("eps")).Commutes().Or(ops.AtenAddScalar).With("alpha", pattern.Equals(1))
	root := pattern.OneOf(pattern.Op(ops.AtenRsqrtDefault, sum), pattern.Op(ops.AtenPowTensorScalar, sum, pattern.Is(-0.5)))
	return pattern.Op(ops.AtenMulTensor, x, root).Commutes()
}()

// rmsNormOf takes n apart where it is such a norm over the last dimension.
func rmsNormOf(n *ir.Node) (x *ir.Value, eps float64, ok bool) {
	if n.Op != ops.AtenMulTensor {
		return nil, 0, false
	}
	m, ok := rmsNorm.Match(n.Out())
	if !ok {
		return nil, 0, false
	}
	x = m.Value("x")
	dims, isConst := m.Value("mean").Def.ArgNamed("dim").IntList()
	if !isConst || len(dims) != 1 || x.Type.Rank() == 0 || wrapDim(dims[0], x.Type.Rank()) != x.Type.Rank()-1 {
		return nil, 0, false
	}
	if !ir.EqualShape(x.Type.Shape, n.Out().Type.Shape) || x.Type.DType != n.Out().Type.DType {
		return nil, 0, false
	}
	return x, m.Number("eps"), true
}

func isConversion(n *ir.Node) bool {
	return n != nil && (n.Op == ops.AtenToDtype || n.Op == ops.AtenUnderToCopyDefault)
}

func fuseRMSNorm(ctx *Context, n *ir.Node) error {
	x, eps, ok := rmsNormOf(n)
	if !ok {
		return nil
	}
	size, ok := ir.Dim(x, -1).IsConst()
	if !ok {
		return nil
	}
	d := x.Type.DType
	end, weight := n, ir.None
	src := x
	switch users := n.Out().Users(); {
	case len(users) != 1 || users[0].IsReturn():
	case isConversion(users[0]) && isConversion(x.Def):
		// Rounded once at the end, whatever the precision in between.
		if in := x.Def.In(0); in.Type.DType == users[0].Out().Type.DType && in.Type.DType.Size() < d.Size() && d == ops.Float32 {
			src, end = in, users[0]
		}
	case users[0].Op == ops.AtenMulTensor:
		m := users[0]
		w := m.In(0)
		if w == n.Out() {
			w = m.In(1)
		}
		if w != nil && w.Type.DType == d && w.Type.Rank() == 1 && w.Type.Shape[0].IsConstValue(size) && w != n.Out() {
			weight, end = ir.Ref(w), m
		}
	}
	b, ok := ctx.Rewrite(end, "rms-norm")
	if !ok {
		return nil
	}
	y := op.AtenRmsNormDefault(b, src, ir.Ints(size), op.KW("weight", weight), op.KW("eps", ir.Float(eps)))
	return ctx.replace(b, end, y)
}
