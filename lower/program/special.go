package program

import (
	"fmt"
	"sync"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/partition"
)

// special are the operators that need no kernel, at least for some arguments. A rule that gives neither plan nor
// diagnostic leaves the node to the kernels.
var special = sync.OnceValue(func() map[ops.ID]func(*ir.Node) (*plan, *ir.Diag) {
	m := map[ops.ID]func(*ir.Node) (*plan, *ir.Diag){}
	add := func(rule func(*ir.Node) (*plan, *ir.Diag), names ...string) {
		for _, name := range names {
			if id := ops.Lookup(name); id != ops.Unknown {
				m[id] = rule
			}
		}
	}
	add(matchSame, "aten.view", "aten.reshape", "aten._unsafe_view", "aten._reshape_alias", "aten.unsqueeze", "aten.squeeze",
		"aten.squeeze.dim", "aten.squeeze.dims", "aten.flatten.using_ints", "aten.unflatten.int", "aten.alias", "aten.detach",
		"aten.lift_fresh", "aten.lift_fresh_copy", "aten.contiguous", "aten.clone", "aten.ravel", "aten.view_as",
		"aten.reshape_as", "aten.atleast_1d", "aten.atleast_2d", "aten.atleast_3d")
	add(matchCast, "aten._to_copy", "aten.to.dtype", "aten.to.dtype_layout", "aten.to.device", "aten.to.other", "aten.type_as")
	add(matchExpand, "aten.expand", "aten.broadcast_to", "aten.expand_as")
	add(matchPermute, "aten.permute", "aten.transpose.int", "aten.t", "aten.movedim.intlist", "aten.movedim.int")
	add(matchPart, "aten.select.int", "aten.slice.Tensor", "aten.narrow", "aten.split.Tensor", "aten.split_with_sizes",
		"aten.split.sizes", "aten.chunk", "aten.unbind.int")
	add(matchItem, "aten._local_scalar_dense", "aten.item")
	for name, prim := range scalarOps {
		add(func(n *ir.Node) (*plan, *ir.Diag) { return matchScalar(n, prim) }, name)
	}
	add(matchCond, "higher_order.cond")
	add(matchWhile, "higher_order.while_loop")
	add(matchScan, "higher_order.scan")
	add(matchMap, "higher_order.map_impl", "higher_order.map")
	return m
})

// scalarOps are the operators on Python numbers that the runtime has.
var scalarOps = map[string]string{
	"_operator.add": "add.Scalar", "_operator.sub": "sub.Scalar", "_operator.mul": "mul.Scalar",
	"_operator.floordiv": "floordiv.Scalar", "_operator.truediv": "truediv.Scalar", "_operator.neg": "neg.Scalar",
	"_operator.eq": "eq.Scalar", "_operator.lt": "lt.Scalar", "_operator.le": "le.Scalar", "_operator.gt": "gt.Scalar",
	"_operator.ge": "ge.Scalar", "_operator.not_": "sym_not.Scalar", "torch.sym_not": "sym_not.Scalar",
	"torch.sym_float": "sym_float.Scalar", "torch.sym_max": "sym_max.Scalar", "torch.sym_min": "sym_min.Scalar",
	"torch.sym_ite": "sym_ite.Scalar", "math.ceil": "ceil.Scalar", "math.trunc": "trunc.Scalar", "torch.sym_int": "trunc.Scalar",
	"_operator.round": "round.Scalar",
}

func matchSpecial(n *ir.Node) (*plan, *ir.Diag, bool) {
	if _, ok := n.Attr.(*partition.Lowered); ok {
		return &plan{kind: planDelegate}, nil, true
	}
	if rule, ok := special()[n.Op]; ok && n.Op != ops.Unknown {
		p, d := rule(n)
		return p, d, p != nil || d != nil
	}
	if p := needless(n); p != nil {
		return p, nil, true
	}
	return nil, nil, false
}

// needless recognises nodes that do nothing at run time: results that are expressions over symbols which inputs or other
// results tell, or no result at all.
func needless(n *ir.Node) *plan {
	if n.Op == ops.Unknown || len(n.Outs) == 0 && n.Info().Effect {
		return nil
	}
	for _, o := range n.Outs {
		if o.Type.Kind != ir.KindNone && (o.Type.Kind != ir.KindInt || !o.Type.Known) {
			return nil
		}
	}
	return &plan{kind: planNothing}
}

func matchSame(n *ir.Node) (*plan, *ir.Diag) {
	return &plan{kind: planReshape}, nil
}

func matchCast(n *ir.Node) (*plan, *ir.Diag) {
	if x := n.In(0); x != nil && x.Type.DType == n.Out().Type.DType {
		return &plan{kind: planReshape}, nil
	}
	return nil, nil
}

func matchExpand(n *ir.Node) (*plan, *ir.Diag) {
	if x := n.In(0); x != nil && x.Type.Numel().Equal(n.Out().Type.Numel()) {
		return &plan{kind: planReshape}, nil
	}
	return nil, nil
}

// matchPermute takes permutations that move only dimensions of size one.
func matchPermute(n *ir.Node) (*plan, *ir.Diag) {
	x := n.In(0)
	if x == nil {
		return nil, nil
	}
	strip := func(es []sym.Expr) []sym.Expr {
		var out []sym.Expr
		for _, e := range es {
			if !e.IsConstValue(1) {
				out = append(out, e)
			}
		}
		return out
	}
	perm, ok := permutation(n)
	if !ok {
		return nil, nil
	}
	last := -1
	for _, d := range perm {
		if x.Type.Shape[d].IsConstValue(1) {
			continue
		}
		if d < last {
			return nil, nil
		}
		last = d
	}
	if !ir.EqualShape(strip(x.Type.Shape), strip(n.Out().Type.Shape)) {
		return nil, nil
	}
	return &plan{kind: planReshape}, nil
}

// permutation gives, for each dimension of the result, that of the argument.
func permutation(n *ir.Node) ([]int, bool) {
	r := n.In(0).Type.Rank()
	wrap := func(k int64) (int, bool) {
		if k < 0 {
			k += int64(r)
		}
		return int(k), k >= 0 && k < int64(r)
	}
	id := make([]int, r)
	for i := range id {
		id[i] = i
	}
	switch n.OpName() {
	case "aten.permute.default":
		dims, ok := n.Arg(1).IntList()
		if !ok || len(dims) != r {
			return nil, false
		}
		for i, k := range dims {
			if id[i], ok = wrap(k); !ok {
				return nil, false
			}
		}
		return id, true
	case "aten.t.default":
		if r == 2 {
			id[0], id[1] = 1, 0
		}
		return id, true
	case "aten.transpose.int":
		a, oka := n.Arg(1).Int()
		b, okb := n.Arg(2).Int()
		if !oka || !okb {
			return nil, false
		}
		if r == 0 {
			return id, true
		}
		i, oka := wrap(a)
		j, okb := wrap(b)
		if !oka || !okb {
			return nil, false
		}
		id[i], id[j] = id[j], id[i]
		return id, true
	}
	return nil, false
}

// matchPart takes slices of the outermost dimension that is not one: their elements lie together, so that a result of
// constant shape is a tensor inside the other's memory.
func matchPart(n *ir.Node) (*plan, *ir.Diag) {
	if x := n.In(0); x != nil && len(n.Outs) == 1 && ir.EqualShape(x.Type.Shape, n.Out().Type.Shape) {
		if step, ok := n.ArgNamed("step").Int(); ok && step == 1 || n.ArgNamed("step").IsNone() {
			return &plan{kind: planReshape}, nil // all of it
		}
	}
	if _, ok := partOffsets(n); !ok {
		return nil, nil
	}
	p := &plan{kind: planPart}
	// Where the argument turns out to have no place of its own (a constant, the caller's memory), the kernel copies.
	if k := ops.LookupKernel(n.Info().Kernel); k != nil {
		if kp, d := matchKernel(n, k); d == nil {
			p.kernel, p.args = kp.kernel, kp.args
			return p, nil
		}
	}
	return nil, nil
}

// partOffsets gives the distance in elements of each result from the argument's begin.
func partOffsets(n *ir.Node) ([]int64, bool) {
	x := n.In(0)
	if x == nil || !x.Type.IsTensor() || !x.Type.Static() {
		return nil, false
	}
	sizes, _ := x.Type.Sizes()
	dimArg := n.ArgNamed("dim")
	d, ok := dimArg.Int()
	if !ok {
		return nil, false
	}
	if d < 0 {
		d += int64(len(sizes))
	}
	if d < 0 || d >= int64(len(sizes)) {
		return nil, false
	}
	for _, s := range sizes[:d] {
		if s != 1 {
			return nil, false
		}
	}
	inner := int64(1)
	for _, s := range sizes[d+1:] {
		inner *= s
	}
	clamp := func(k int64) int64 {
		if k < 0 {
			k += sizes[d]
		}
		return min(max(k, 0), sizes[d])
	}
	start := int64(0)
	switch n.OpName() {
	case "aten.select.int":
		if start, ok = n.ArgNamed("index").Int(); !ok {
			return nil, false
		}
		start = clamp(start)
	case "aten.slice.Tensor":
		if step, ok := n.ArgNamed("step").Int(); !ok || step != 1 {
			return nil, false
		}
		if a := n.ArgNamed("start"); !a.IsNone() {
			if start, ok = a.Int(); !ok {
				return nil, false
			}
			start = clamp(start)
		}
	case "aten.narrow.default":
		if start, ok = n.ArgNamed("start").Int(); !ok {
			return nil, false
		}
		start = clamp(start)
	}
	offs := make([]int64, len(n.Outs))
	for i, o := range n.Outs {
		numel, ok := o.Type.Numel().IsConst()
		if !ok || !o.Type.Static() {
			return nil, false
		}
		offs[i] = start * inner
		if inner > 0 {
			start += numel / inner
		}
	}
	return offs, true
}

func matchItem(n *ir.Node) (*plan, *ir.Diag) {
	if x := n.In(0); x == nil || !x.Type.IsTensor() {
		return nil, n.Diag("kernel-limit", "the argument is no tensor", "")
	} else if k := ops.LookupKernel("aten::_local_scalar_dense"); k != nil && !k.DTypes.Has(x.Type.DType) {
		return nil, n.Diag("kernel-limit", fmt.Sprintf("the runtime reads no numbers from %s", x.Type.DType), "")
	}
	return &plan{kind: planItem}, nil
}

func matchScalar(n *ir.Node, prim string) (*plan, *ir.Diag) {
	for i, a := range n.Args() {
		if v := a.Value(); v != nil && v.Type.IsTensor() {
			return nil, n.Diag("kernel-limit", fmt.Sprintf("argument %d is a tensor; the operator is for numbers", i), "")
		}
	}
	if p := needless(n); p != nil {
		return p, nil
	}
	return &plan{kind: planScalar, prim: prim}, nil
}
