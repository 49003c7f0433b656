package passes

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// CentreNorms takes the mean off what the runtime's kernels normalise. They compute the variance as a difference of squares,
// of which nothing is left where the mean is much larger than the spread. That is so of a program's inputs (a temperature in
// kelvins, a date), not behind weights, which training keeps near zero; there two more instructions would give nothing.
var CentreNorms = Pass{
	Name: "centre-norms",
	Doc:  "Subtracts its mean from an input that a layer, group or batch norm in single precision is taken of, because the kernels' variance has no digits where the mean is large.",
	Run: func(ctx *Context, g *ir.Graph) error {
		if g.Stage == ops.StageAten {
			return nil
		}
		return centreNorms(ctx, g, map[*ir.Value]bool{})
	},
}

// centreNorms looks at a graph and those in it. raw holds the values so far that may have any mean.
func centreNorms(ctx *Context, g *ir.Graph, raw map[*ir.Value]bool) error {
	for _, in := range g.Inputs {
		raw[in.Value] = in.Kind == ir.InputUser
	}
	for n := range g.Nodes() {
		for _, h := range n.Graphs() {
			if err := centreNorms(ctx, h, raw); err != nil {
				return err
			}
		}
		given := !weighs[n.Op] && givesRaw(n, raw)
		for _, o := range n.Outs {
			raw[o] = given
		}
		switch n.Op {
		case ops.AtenNativeLayerNormDefault, ops.AtenNativeGroupNormDefault, ops.AtenUnderNativeBatchNormLegitNoStats:
			if x := n.In(0); raw[x] && x.Type.DType == ops.Float32 {
				if err := centreNorm(ctx, n, x); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// givesRaw tells whether a raw operand's scale is that of what the node computes. Integers beside floats are indices.
func givesRaw(n *ir.Node, raw map[*ir.Value]bool) bool {
	ints, floats, float := false, false, false
	for v := range n.Inputs() {
		if !v.Type.IsTensor() {
			continue
		}
		if v.Type.DType.IsFloat() {
			float, floats = true, floats || raw[v]
		} else if v.Type.DType.IsInt() {
			ints = ints || raw[v]
		}
	}
	return floats || ints && !float
}

// weighs are the operators behind which values have the scale of weights, or of the operator itself.
var weighs = map[ops.ID]bool{
	ops.AtenLinearDefault: true, ops.AtenAddmmDefault: true, ops.AtenMmDefault: true, ops.AtenBmmDefault: true, ops.AtenMatmulDefault: true,
	ops.AtenConvolutionDefault: true, ops.AtenConv1dDefault: true, ops.AtenConv2dDefault: true, ops.AtenConv3dDefault: true,
	ops.AtenNativeLayerNormDefault: true, ops.AtenNativeGroupNormDefault: true, ops.AtenUnderNativeBatchNormLegitNoStats: true,
	ops.AtenUnderNativeBatchNormLegitNoTrainingDefault: true, ops.AtenRmsNormDefault: true, ops.AtenScaledDotProductAttentionDefault: true,
	ops.AtenUnderSoftmaxDefault: true, ops.AtenSigmoidDefault: true, ops.AtenTanhDefault: true,
}

func centreNorm(ctx *Context, n *ir.Node, x *ir.Value) error {
	b, ok := ctx.Rewrite(n, "centre")
	if !ok {
		return nil
	}
	d := &Decomp{Builder: b, N: n, Target: ctx.Target}
	vs := d.protect(func() []*ir.Value {
		// The rows that have one mean each, and the dimensions that they run over.
		rows, dims := x, []int{2}
		switch n.Op {
		case ops.AtenNativeLayerNormDefault:
			k := x.Type.Rank() - len(n.Arg(1).List())
			if k < x.Type.Rank()-1 {
				rows = d.view(x, append(x.Type.Shape[:k:k], sym.Prod(x.Type.Shape[k:]...))...)
			}
			dims = []int{k}
		case ops.AtenNativeGroupNormDefault:
			s, _ := n.Arg(3).Expr()
			g, _ := n.Arg(6).Expr()
			rows = d.view(x, s, g, sym.FloorDiv(sym.Prod(x.Type.Shape[1:]...), g))
		default:
			dims = otherDims(x.Type.Rank(), []int{1})
		}
		mean := d.mean(rows, true, dims...)
		args := append([]ir.Arg(nil), n.Args()...)
		args[0] = ir.Ref(d.view(d.sub(rows, mean), x.Type.Shape...))
		vs := d.outs(op.New(b, n.Op, args))
		if n.Outs[1].NumUses() > 0 {
			vs = []*ir.Value{vs[0], d.add(vs[1], d.stat(1, mean)), vs[2]}
		}
		return vs
	})
	return ctx.replace(b, n, vs...)
}
