package passes

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ops"
)

// InlineWrappers puts the bodies of wrappers that mean nothing to a compiler in their place.
var InlineWrappers = Pass{
	Name: "inline-wrappers",
	Doc:  "Inlines the bodies of wrap_with_set_grad_enabled and wrap_with_autocast (whose casts already stand in the body) and drops Python-only markers.",
	Run: func(ctx *Context, g *ir.Graph) error {
		return each(g, func(n *ir.Node) error {
			switch n.Op {
			case ops.HigherOrderWrapWithSetGradEnabledDefault:
				inline(ctx, n, n.Arg(1).Graph(), n.Arg(2).List())
			case ops.HigherOrderWrapWithAutocastDefault:
				inline(ctx, n, n.Arg(4).Graph(), n.Arg(5).List())
			case ops.TorchFunctorchPredispatchLazyLoadDecompositionsDefault:
				if ctx.Allow(n, "marker") {
					n.Graph().Erase(n)
				}
			}
			return nil
		})
	},
}

// inline replaces n by the nodes of h with args in place of its inputs.
func inline(ctx *Context, n *ir.Node, h *ir.Graph, args []ir.Arg) {
	if h == nil || len(args) != len(h.Inputs) || len(h.Outputs) != len(n.Outs) || !ctx.Allow(n, "inline") {
		return
	}
	g := n.Graph()
	to := make(map[*ir.Value]ir.Arg, len(args)+h.NumNodes())
	for i, in := range h.Inputs {
		to[in.Value] = args[i]
	}
	for m := range h.Nodes() {
		as := make([]ir.Arg, m.NumArgs())
		for i, a := range m.Args() {
			as[i] = substitute(a, to)
		}
		types := make([]ir.Type, len(m.Outs))
		for i, o := range m.Outs {
			types[i] = o.Type
		}
		c := g.NewNode(n, m.Op, as, types, m.Origin)
		c.Target, c.ArgNames, c.Attr = m.Target, m.ArgNames, m.Attr
		for i, o := range m.Outs {
			c.Outs[i].Name = o.Name
			to[o] = ir.RefAny(c.Outs[i])
		}
	}
	for i, a := range h.Ret().Args() {
		r := substitute(a, to)
		if v := r.Value(); v != nil {
			n.Outs[i].ReplaceAllUses(v)
			continue
		}
		for _, u := range n.Outs[i].Users() {
			for k, ua := range u.Args() {
				u.SetArg(k, substitute(ua, map[*ir.Value]ir.Arg{n.Outs[i]: r}))
			}
		}
	}
	g.Erase(n)
}

// substitute is a with the values of to replaced by arguments.
func substitute(a ir.Arg, to map[*ir.Value]ir.Arg) ir.Arg {
	if v := a.Value(); v != nil {
		if r, ok := to[v]; ok {
			return r
		}
		return a
	}
	if a.Kind() != ir.ArgList {
		return a
	}
	l := make([]ir.Arg, len(a.List()))
	for i, e := range a.List() {
		l[i] = substitute(e, to)
	}
	return ir.List(l...)
}
