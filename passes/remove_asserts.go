package passes

import (
	"strings"

	"github.com/lathe-ml/lathe/ir"
)

// RemoveAsserts drops checks that the exporting process has made or that the runtime makes anyway.
var RemoveAsserts = Pass{
	Name: "remove-asserts",
	Doc:  "Removes assertions on metadata and symbol ranges: the ranges stand in the symbol table, the metadata in the types.",
	Run: func(ctx *Context, g *ir.Graph) error {
		return each(g, func(n *ir.Node) error {
			s := &n.Info().Schema
			if s.NS != "aten" {
				return nil
			}
			switch {
			case s.Base == "_assert_async" || s.Base == "_assert_scalar" || s.Base == "_assert_tensor_metadata" || s.Base == "_print",
				strings.HasPrefix(s.Base, "sym_constrain_range"):
				if ctx.Allow(n, "assert") {
					n.Graph().Erase(n)
				}
			case strings.HasPrefix(s.Base, "_functional_assert") || strings.HasPrefix(s.Base, "_functional_sym_constrain"):
				if token := n.ArgNamed("dep_token").Value(); token != nil && ctx.Allow(n, "assert") {
					n.Graph().Replace(n, token)
				}
			}
			return nil
		})
	},
}
