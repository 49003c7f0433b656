package passes

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ops"
)

// MoeBatchedMM gives mixtures of experts the form of batched products.
var MoeBatchedMM = Pass{
	Name: "moe-batched-mm",
	Doc: "Replaces a grouped product of few rows by a batched one: each row multiplies with the matrix of its group, so that only the experts " +
		"in use are read.",
	Run: func(ctx *Context, g *ir.Graph) error {
		if g.Stage == ops.StageAten {
			return nil
		}
		return each(g, func(n *ir.Node) error {
			if n.Op != ops.TransformersGroupedMmFallbackDefault && n.Op != ops.AtenUnderGroupedMmDefault || ctx.Legal != nil && ctx.legal(n) == nil {
				return nil
			}
			if !fewRows(n) {
				return nil
			}
			b, ok := ctx.Rewrite(n, "batched")
			if !ok {
				return nil
			}
			d := &Decomp{Builder: b, N: n}
			vs := d.protect(d.batchedExperts)
			if b.Err == nil && vs == nil {
				return nil
			}
			return ctx.replace(b, n, vs...)
		})
	},
}

// fewRows tells grouped products where gathering a matrix for each row reads less than all groups together, give or take a
// factor of two for their being read once in the other form.
func fewRows(n *ir.Node) bool {
	x, w := n.In(0), n.In(1)
	if x == nil || w == nil || x.Type.Rank() != 2 || w.Type.Rank() != 3 || n.ArgNamed("offs").IsNone() || !n.ArgNamed("bias").IsNone() {
		return false
	}
	rows, okR := x.Type.Shape[0].IsConst()
	groups, okG := w.Type.Shape[0].IsConst()
	return okR && okG && rows <= 2*groups
}

// groupOf is the group of each row: the number of ends at or before it.
func (d *Decomp) groupOf(x, offs *ir.Value) *ir.Value {
	rows := d.unsqueeze(d.arange(x.Type.Shape[0], ops.Int64), 1)
	return d.sum(d.cast(d.ge(rows, d.cast(offs, ops.Int64)), ops.Int64), false, 1)
}

// batchedExperts multiplies each row with the matrix of its group. Rows after the last group belong to none.
func (d *Decomp) batchedExperts() []*ir.Value {
	x, w := d.in(0), d.in(1)
	groups := w.Type.Shape[0]
	group := d.groupOf(x, d.named("offs").Value())
	inside := d.lt(group, groups)
	group = d.where(inside, group, 0)
	y := d.squeeze(d.bmm(d.unsqueeze(x, 1), d.take(w, 0, group)), 1)
	return d.back(d.where(d.unsqueeze(inside, 1), y, 0.0))
}
