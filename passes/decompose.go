// Package passes holds the graph passes, their manager and the pipelines.
package passes

import (
	"fmt"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ops"
)

// Decomp is what a decomposition sees: the node to take apart and a builder in front of it.
type Decomp struct {
	*ir.Builder
	N *ir.Node
	// Target is the backend that the pipeline is for.
	Target string
}

// DecompFn takes a node one step apart and gives the values that replace its results; nil where it declines.
type DecompFn func(d *Decomp) []*ir.Value

// maxSteps bounds how often what comes of one node is taken apart again; a chain that long goes in circles.
const maxSteps = 40

// Decompose takes apart what the backend cannot have whole.
var Decompose = Pass{
	Name: "decompose",
	Doc:  "Replaces each node that neither the backend nor a kernel takes by simpler ones, one step at a time.",
	Run: func(ctx *Context, g *ir.Graph) error {
		if g.Stage == ops.StageAten {
			return &OrderError{First: "functionalize", Then: ctx.pass, Why: "it needs a graph without mutation"}
		}
		return each(g, func(n *ir.Node) error { return decompose(ctx, n, maxSteps) })
	},
}

// HasDecomp tells whether the operator has a decomposition.
func HasDecomp(id ops.ID) bool { return int(id) < len(dispatch) && dispatch[id] != nil }

// DecomposeOnce takes n one step apart whether it is legal or not. ok is false where it has no decomposition or that
// declines; n is unchanged then. The new nodes stand from first up to where n stood.
func DecomposeOnce(ctx *Context, n *ir.Node) (first *ir.Node, ok bool, err error) {
	if !HasDecomp(n.Op) {
		return nil, false, nil
	}
	if ctx.pass == "" {
		ctx.pass = "decompose"
	}
	g, before, after := n.Graph(), n.Prev(), n.Next()
	b, ok := ctx.Rewrite(n, n.Info().Schema.Base)
	if !ok {
		return nil, false, nil
	}
	vs := (&Decomp{Builder: b, N: n, Target: ctx.Target}).run()
	if b.Err == nil && vs == nil {
		// A rule declines before it builds anything, or leaves dead nodes behind for dce.
		return nil, false, nil
	}
	if b.Err == nil && len(vs) != len(n.Outs) {
		b.Fail(fmt.Errorf("%d values for %d results", len(vs), len(n.Outs)))
	}
	if err := ctx.replace(b, n, vs...); err != nil {
		return nil, false, err
	}
	first = g.First()
	if before != nil {
		first = before.Next()
	}
	return first, first != after, nil
}

// bail ends a decomposition whose builder has failed.
type bail struct{}

func (d *Decomp) run() []*ir.Value {
	return d.protect(func() []*ir.Value { return dispatch[d.N.Op](d) })
}

// protect runs a rule up to where its builder fails.
func (d *Decomp) protect(rule func() []*ir.Value) (vs []*ir.Value) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(bail); !ok {
				panic(r)
			}
			vs = nil
		}
	}()
	return rule()
}

// decompose takes n apart until everything that comes of it is legal or has no decomposition.
func decompose(ctx *Context, n *ir.Node, steps int) error {
	if n.Op == ops.Unknown {
		return nil
	}
	if ok, err := emptied(ctx, n); ok || err != nil {
		return err
	}
	if ok, err := joinedRest(ctx, n); ok || err != nil {
		return err
	}
	if ctx.legal(n) == nil {
		return nil
	}
	if steps == 0 {
		return fmt.Errorf("%s: its decomposition goes in circles", n.OpName())
	}
	end := n.Next()
	first, ok, err := DecomposeOnce(ctx, n)
	if err != nil || !ok {
		return err
	}
	for m := first; m != end; {
		next := m.Next()
		for _, h := range m.Graphs() {
			if err := each(h, func(n *ir.Node) error { return decompose(ctx, n, steps-1) }); err != nil {
				return err
			}
		}
		if err := decompose(ctx, m, steps-1); err != nil {
			return err
		}
		m = next
	}
	return nil
}

// emptied makes new tensors of results that have no elements: what they are computed from says nothing about them, and
// kernels refuse some such operands.
func emptied(ctx *Context, n *ir.Node) (bool, error) {
	if len(n.Outs) == 0 || !n.Info().Pure() || len(n.Graphs()) > 0 || n.Op == ops.AtenFullDefault {
		return false, nil
	}
	// A sum of no products is zero, and so is attention over nothing; the kernels leave what was there.
	nothing := (n.Op == ops.AtenMmDefault || n.Op == ops.AtenBmmDefault) && ir.Dim(n.In(0), -1).IsConstValue(0) ||
		n.Op == ops.AtenScaledDotProductAttentionDefault && (n.In(1).Type.Numel().IsConstValue(0) || n.In(2).Type.Numel().IsConstValue(0))
	for _, o := range n.Outs {
		if nothing {
			continue
		}
		if !o.Type.IsTensor() || !o.Type.Numel().IsConstValue(0) {
			return false, nil
		}
		for _, e := range o.Type.Shape {
			if _, ok := e.IsConst(); !ok {
				return false, nil
			}
		}
	}
	b, ok := ctx.Rewrite(n, "empty")
	if !ok {
		return false, nil
	}
	vs := make([]*ir.Value, len(n.Outs))
	for i, o := range n.Outs {
		vs[i] = op.AtenFullDefault(b, ir.SymInts(o.Type.Shape...), zeroOf(o.Type.DType, 0), op.KW("dtype", ir.DTypeArg(o.Type.DType)))
	}
	return true, ctx.replace(b, n, vs...)
}

// joinedRest leaves out of a cat what has no elements, as the half that a rotation of all dimensions leaves.
func joinedRest(ctx *Context, n *ir.Node) (bool, error) {
	if n.Op != ops.AtenCatDefault {
		return false, nil
	}
	t := n.Out().Type.DType
	var rest []*ir.Value
	vs := n.Arg(0).Values()
	for _, v := range vs {
		if v.Type.DType != t {
			return false, nil
		}
		if !v.Type.Numel().IsConstValue(0) {
			rest = append(rest, v)
		}
	}
	if len(rest) == len(vs) || len(rest) == 0 {
		return false, nil
	}
	b, ok := ctx.Rewrite(n, "joined")
	if !ok {
		return false, nil
	}
	if len(rest) == 1 {
		return true, ctx.replace(b, n, rest[0])
	}
	return true, ctx.replace(b, n, op.AtenCatDefault(b, rest, op.KW("dim", n.Arg(1))))
}

// TableLegal is the legality that the operator table alone tells: a runtime kernel that takes the element type of the first
// tensor.
func TableLegal(n *ir.Node) *ir.Diag {
	info := n.Info()
	if n.Op == ops.Unknown {
		return n.Diag("unknown-op", "Lathe does not know the operator", "")
	}
	if info.Kernel == "" {
		if !HasDecomp(n.Op) {
			return nil // for the lowering to say
		}
		return n.Diag("no-kernel", "the runtime has no kernel for it", "")
	}
	k := ops.LookupKernel(info.Kernel)
	for v := range n.Inputs() {
		if v.Type.IsTensor() {
			if k != nil && !k.DTypes.Has(v.Type.DType) {
				return n.Diag("no-kernel", fmt.Sprintf("the kernel %s does not take %s", info.Kernel, v.Type.DType), "")
			}
			break
		}
	}
	return nil
}
