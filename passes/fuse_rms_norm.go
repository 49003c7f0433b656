package passes

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ops"
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

// rmsNormOf takes n = x * rsqrt(mean(x*x, -1, keepdim) + eps) apart.
func rmsNormOf(n *ir.Node) (x *ir.Value, eps float64, ok bool) {
	if n == nil || n.Op != ops.AtenMulTensor {
		return nil, 0, false
	}
	for i := range 2 {
		x, r := n.In(i), n.In(1-i)
		if x == nil || r == nil || r.Def == nil || x.Type.Rank() == 0 || !ir.EqualShape(x.Type.Shape, n.Out().Type.Shape) || x.Type.DType != n.Out().Type.DType {
			continue
		}
		sum := rsqrtArg(r.Def)
		if sum == nil || sum.Def == nil || sum.Def.Op != ops.AtenAddTensor && sum.Def.Op != ops.AtenAddScalar {
			continue
		}
		add := sum.Def
		if f, ok := add.ArgNamed("alpha").Float(); ok && f != 1 {
			continue
		}
		mean, eps, ok := add.In(0), 0.0, false
		if eps, ok = add.Arg(1).Float(); !ok {
			mean = add.In(1)
			if eps, ok = add.Arg(0).Float(); !ok {
				continue
			}
		}
		if mean == nil || mean.Def == nil || mean.Def.Op != ops.AtenMeanDim {
			continue
		}
		keep, _ := mean.Def.ArgNamed("keepdim").Bool()
		dims, isConst := mean.Def.ArgNamed("dim").IntList()
		if !keep || !isConst || len(dims) != 1 || dims[0] != -1 && dims[0] != int64(x.Type.Rank()-1) {
			continue
		}
		if squared(mean.Def.In(0)) == x {
			return x, eps, true
		}
	}
	return nil, 0, false
}

// rsqrtArg is the argument of 1/sqrt, in its forms.
func rsqrtArg(n *ir.Node) *ir.Value {
	switch n.Op {
	case ops.AtenRsqrtDefault:
		return n.In(0)
	case ops.AtenPowTensorScalar:
		if f, ok := n.Arg(1).Float(); ok && f == -0.5 {
			return n.In(0)
		}
	}
	return nil
}

// squared is what v is the square of.
func squared(v *ir.Value) *ir.Value {
	if v == nil || v.Def == nil {
		return nil
	}
	switch n := v.Def; n.Op {
	case ops.AtenSquareDefault:
		return n.In(0)
	case ops.AtenPowTensorScalar:
		if f, ok := n.Arg(1).Float(); ok && f == 2 {
			return n.In(0)
		}
	case ops.AtenMulTensor:
		if n.In(0) == n.In(1) {
			return n.In(0)
		}
	}
	return nil
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
