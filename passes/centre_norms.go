package passes

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// CentreNorms takes the mean off what the runtime's kernels normalise. They compute the variance as a difference of squares,
// of which nothing is left where the mean is much larger than the spread.
var CentreNorms = Pass{
	Name: "centre-norms",
	Doc:  "Subtracts its mean from what a layer, group or batch norm in single precision is taken of, because the kernels' variance has no digits where the mean is large.",
	Run: func(ctx *Context, g *ir.Graph) error {
		if g.Stage == ops.StageAten {
			return nil
		}
		return each(g, func(n *ir.Node) error {
			switch n.Op {
			case ops.AtenNativeLayerNormDefault, ops.AtenNativeGroupNormDefault, ops.AtenUnderNativeBatchNormLegitNoStats:
				return centreNorm(ctx, n)
			}
			return nil
		})
	},
}

func centreNorm(ctx *Context, n *ir.Node) error {
	x := n.In(0)
	if x == nil || x.Type.DType != ops.Float32 {
		return nil
	}
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
