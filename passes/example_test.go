package passes_test

import (
	"fmt"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/text"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/passes"
)

// DropDoubleNeg is the running example of docs/add-a-pass.md.
var DropDoubleNeg = passes.Pass{
	Name: "drop-double-neg",
	Doc:  "Removes a negation of a negation.",
	Run: func(ctx *passes.Context, g *ir.Graph) error {
		g.Walk(func(h *ir.Graph) {
			for n := range h.Nodes() {
				if n.Op != ops.AtenNegDefault || n.In(0).Def == nil || n.In(0).Def.Op != ops.AtenNegDefault {
					continue
				}
				if ctx.Allow(n, "twice") {
					h.Replace(n, n.In(0).Def.In(0))
				}
			}
		})
		return nil
	},
}

func Example_addAPass() {
	g, err := text.Parse(`graph @f(%x: f32[2] user) -> (%3) stage edge {
  %1 = aten.neg(%x) : f32[2]
  %2 = aten.neg(%1) : f32[2]
  %3 = aten.relu(%2) : f32[2]
}`, text.Options{})
	if err != nil {
		panic(err)
	}
	pipe, err := passes.Parse("drop-double-neg,dce", DropDoubleNeg)
	if err != nil {
		panic(err)
	}
	if err := pipe.Run(&passes.Context{Hooks: []passes.Hook{passes.VerifyHook()}}, g); err != nil {
		panic(err)
	}
	fmt.Print(text.String(g))
	// Output:
	// graph @f(%x: f32[2] user) -> (%1) stage edge {
	//   %1 = aten.relu(%x)                                : f32[2]
	// }
}
