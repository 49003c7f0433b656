package passes

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ops"
)

// CollapseCasts makes one conversion of two where that gives the same elements.
var CollapseCasts = Pass{
	Name: "collapse-casts",
	Doc: "Skips conversions to types that hold all values of the one before: from there on, and back. Conversions that round, or drop " +
		"bits, stay.",
	Run: func(ctx *Context, g *ir.Graph) error {
		if g.Stage == ops.StageAten {
			return nil
		}
		return each(g, func(n *ir.Node) error { return collapseCast(ctx, n) })
	},
}

func collapseCast(ctx *Context, n *ir.Node) error {
	x := castOf(n)
	if x == nil {
		return nil
	}
	src := x
	for src.Def != nil {
		in := castOf(src.Def)
		if in == nil || !holdsAll(src.Type.DType, in.Type.DType) {
			break
		}
		src = in
	}
	if src == x {
		return nil
	}
	to := n.Out().Type.DType
	if src.Type.DType == to {
		dropNode(ctx, n, src, "back")
		return nil
	}
	b, ok := ctx.Rewrite(n, "through")
	if !ok {
		return nil
	}
	return ctx.replace(b, n, op.AtenUnderToCopyDefault(b, src, op.KW("dtype", ir.DTypeArg(to))))
}

// castOf is what n converts to another element type and nothing else.
func castOf(n *ir.Node) *ir.Value {
	if !isConversion(n) && n.Op != ops.AtenToDevice {
		return nil
	}
	x := n.In(0)
	if f, _ := n.ArgNamed("memory_format").Str(); x == nil || !x.Type.IsTensor() || f != "" && f != "preserve_format" {
		return nil
	}
	return x
}
