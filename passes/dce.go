package passes

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// DCE removes what nobody needs.
var DCE = Pass{
	Name: "dce",
	Doc:  "Removes nodes whose results nobody reads, and parameters, buffers and constants that nobody uses.",
	Run: func(ctx *Context, g *ir.Graph) error {
		live := map[string]bool{}
		sweepDead(ctx, g, live)
		removeDeadInputs(g)
		return nil
	},
}

// sweepDead removes dead nodes from the last to the first. used collects the symbols that what stays refers to: a node that
// alone tells the value of one of them stays too.
func sweepDead(ctx *Context, g *ir.Graph, used map[string]bool) {
	binds := map[*ir.Node][]string{}
	for s, b := range g.Bindings() {
		if b.Value.Def != nil {
			binds[b.Value.Def] = append(binds[b.Value.Def], s)
		}
	}
	use := func(e sym.Expr) {
		for _, s := range sym.Symbols(e) {
			used[s] = true
		}
	}
	keep := func(n *ir.Node) {
		for _, o := range n.Outs {
			o.Type.EachSymbol(use)
		}
		for _, a := range n.Args() {
			a.EachExpr(use)
		}
	}
	keep(g.Ret())
	for n := range g.Backward() {
		live := hasEffect(n)
		for _, o := range n.Outs {
			live = live || o.NumUses() > 0
		}
		for _, s := range binds[n] {
			live = live || used[s]
		}
		if !live && ctx.Allow(n, "dead") {
			g.Erase(n)
			continue
		}
		keep(n)
		for _, h := range n.Graphs() {
			sweepDead(ctx, h, used)
		}
	}
}

// hasEffect tells nodes that must stay although nobody reads their results. Random numbers nobody reads are no effect.
func hasEffect(n *ir.Node) bool {
	if n.Op == ops.Unknown {
		// What it does is not known, but without a tensor it has none to write to: aten.promote_types of two types.
		for v := range n.Inputs() {
			if v.Type.IsTensor() {
				return true
			}
		}
		return false
	}
	info := n.Info()
	if info.Effect || info.Mutates {
		return true
	}
	for _, h := range n.Graphs() {
		for m := range h.Nodes() {
			if hasEffect(m) {
				return true
			}
		}
	}
	return false
}

// removeDeadInputs takes out unused inputs that no caller feeds.
func removeDeadInputs(g *ir.Graph) {
	target := map[*ir.Input]bool{}
	for _, o := range g.Outputs {
		if o.Target != nil {
			target[o.Target] = true
		}
	}
	g.RemoveInputs(func(in *ir.Input) bool {
		return in.Kind != ir.InputUser && in.Kind != ir.InputOperand && in.Value.NumUses() == 0 && !target[in]
	})
}
