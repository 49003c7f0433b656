package passes

import (
	"fmt"
	"slices"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// ExpandVmap makes the hidden dimensions of vmap visible.
var ExpandVmap = Pass{
	Name: "expand-vmap",
	Doc: "Replaces the brackets of torch.vmap: each value between them gets the hidden dimensions in front, of size one where it does " +
		"not depend on them, so that element-wise operators broadcast over them.",
	Run: func(ctx *Context, g *ir.Graph) error {
		if g.Stage == ops.StageAten {
			return nil
		}
		var err error
		g.Walk(func(h *ir.Graph) {
			if err == nil {
				err = (&vmapper{ctx: ctx, g: h, of: map[*ir.Value]*mapped{}}).run()
			}
		})
		return err
	},
}

// mapped is a value under vmap: a tensor with one dimension in front for each level, in the order of levels, then the
// dimensions that the program sees.
type mapped struct {
	v      *ir.Value
	levels []int64
}

type vmapper struct {
	ctx  *Context
	g    *ir.Graph
	of   map[*ir.Value]*mapped
	dead []*ir.Node
}

func (m *vmapper) run() error {
	for n := range m.g.Nodes() {
		if err := m.node(n); err != nil {
			return err
		}
	}
	for i := len(m.dead) - 1; i >= 0; i-- {
		unused := true
		for _, o := range m.dead[i].Outs {
			unused = unused && o.NumUses() == 0
		}
		if unused {
			m.g.Erase(m.dead[i])
		}
	}
	return nil
}

// level is a level argument: a number, or the result of the node that entered it.
func (m *vmapper) level(a ir.Arg) (int64, bool) {
	if k, ok := a.Int(); ok {
		return k, true
	}
	if v := a.Value(); v != nil && v.Def != nil && v.Def.Op == ops.TorchFunctorchPredispatchUnderVmapIncrementNestingDefault {
		depth := int64(0)
		for n := m.g.First(); n != v.Def; n = n.Next() {
			switch n.Op {
			case ops.TorchFunctorchPredispatchUnderVmapIncrementNestingDefault:
				depth++
			case ops.TorchFunctorchPredispatchUnderVmapDecrementNestingDefault:
				depth--
			}
		}
		return depth + 1, true
	}
	return 0, false
}

func (m *vmapper) node(n *ir.Node) error {
	b := ir.NewBuilder(m.g, n, n.Origin.Derive(m.ctx.pass+"#vmap"))
	switch n.Op {
	case ops.TorchFunctorchPredispatchUnderVmapIncrementNestingDefault, ops.TorchFunctorchPredispatchUnderVmapDecrementNestingDefault:
		m.dead = append(m.dead, n)
		return nil
	case ops.TorchFunctorchPredispatchUnderAddBatchDimDefault:
		m.enter(b, n)
	case ops.TorchFunctorchPredispatchUnderRemoveBatchDimDefault:
		m.leave(b, n)
	default:
		touched := false
		for v := range n.Inputs() {
			touched = touched || m.of[v] != nil
		}
		if !touched {
			return nil
		}
		m.compute(b, n)
	}
	if b.Err != nil {
		return fmt.Errorf("%s at %s: %w", n.OpName(), n.Origin, b.Err)
	}
	return nil
}

func (m *vmapper) refuse(n *ir.Node, why string) {
	m.ctx.Report(n.Diag("vmap", why, "write the computation with explicit dimensions instead of torch.vmap"))
}

func (m *vmapper) get(v *ir.Value) *mapped {
	if w := m.of[v]; w != nil {
		return w
	}
	return &mapped{v: v}
}

func permuteTo(b *ir.Builder, v *ir.Value, perm []int) *ir.Value {
	if v == nil || isIdentity(perm) {
		return v
	}
	return op.AtenPermuteDefault(b, v, intArgs(perm))
}

// enter hides a dimension: it moves in front, to its level's place.
func (m *vmapper) enter(b *ir.Builder, n *ir.Node) {
	level, ok := m.level(n.Arg(2))
	dim, okD := n.Arg(1).Int()
	if !ok || !okD || n.In(0) == nil {
		m.refuse(n, "a level or dimension of vmap is not constant")
		return
	}
	x := m.get(n.In(0))
	front := len(x.levels)
	d := wrapDim(dim, x.v.Type.Rank()-front) + front
	at, _ := slices.BinarySearch(x.levels, level)
	perm := slices.Insert(slices.Delete(allDims(x.v.Type.Rank()), d, d+1), at, d)
	m.of[n.Out()] = &mapped{permuteTo(b, x.v, perm), slices.Insert(slices.Clone(x.levels), at, level)}
	m.dead = append(m.dead, n)
}

// leave shows a level's dimension again at the place asked for.
func (m *vmapper) leave(b *ir.Builder, n *ir.Node) {
	level, ok := m.level(n.Arg(1))
	out, okD := n.Arg(3).Int()
	size, okS := n.Arg(2).Expr()
	if !ok || !okD || !okS || n.In(0) == nil {
		m.refuse(n, "a level or dimension of vmap is not constant")
		return
	}
	x := m.get(n.In(0))
	at, found := slices.BinarySearch(x.levels, level)
	v, levels := x.v, slices.Clone(x.levels)
	if !found {
		// The value does not depend on the level: it is the same for all of it.
		shape := insert(v.Type.Shape, at, size)
		v = op.AtenUnsqueezeDefault(b, v, ir.Int(int64(at)))
		if v != nil {
			v = op.AtenExpandDefault(b, v, ir.SymInts(shape...))
		}
		levels = slices.Insert(levels, at, level)
	} else if !v.Type.Shape[at].Equal(size) {
		v = op.AtenExpandDefault(b, v, ir.SymInts(with(v.Type.Shape, at, size)...))
	}
	if v == nil {
		return
	}
	levels = slices.Delete(levels, at, at+1)
	front := len(levels)
	d := wrapDim(out, v.Type.Rank()-front) + front
	perm := slices.Insert(slices.Delete(allDims(v.Type.Rank()), at, at+1), d, at)
	v = permuteTo(b, v, perm)
	m.dead = append(m.dead, n)
	if front > 0 {
		m.of[n.Out()] = &mapped{v, levels}
		return
	}
	m.ctx.changes++
	n.Out().ReplaceAllUses(v)
}

// align gives a value the dimensions of all levels, and as many of its own as rank.
func (m *vmapper) align(b *ir.Builder, x *mapped, levels []int64, rank int) *ir.Value {
	own := x.v.Type.Shape[len(x.levels):]
	if len(x.levels) == 0 && len(own) <= rank {
		return x.v // broadcasting adds what is missing in front
	}
	var shape []sym.Expr
	for _, l := range levels {
		if at, ok := slices.BinarySearch(x.levels, l); ok {
			shape = append(shape, x.v.Type.Shape[at])
		} else {
			shape = append(shape, one1)
		}
	}
	for range rank - len(own) {
		shape = append(shape, one1)
	}
	shape = append(shape, own...)
	if ir.EqualShape(shape, x.v.Type.Shape) {
		return x.v
	}
	return op.AtenViewDefault(b, x.v, ir.SymInts(shape...))
}

// inputsOf are the levels of all inputs and the largest rank that the program sees.
func (m *vmapper) inputsOf(n *ir.Node) (levels []int64, rank int) {
	for v := range n.Inputs() {
		if !v.Type.IsTensor() {
			continue
		}
		x := m.get(v)
		rank = max(rank, x.v.Type.Rank()-len(x.levels))
		for _, l := range x.levels {
			if at, ok := slices.BinarySearch(levels, l); !ok {
				levels = slices.Insert(levels, at, l)
			}
		}
	}
	return levels, rank
}

// compute builds a node over mapped values.
func (m *vmapper) compute(b *ir.Builder, n *ir.Node) {
	levels, rank := m.inputsOf(n)
	info := n.Info()
	args := slices.Clone(n.Args())
	switch base := info.Schema.Base; {
	case elementwise[base]:
		for i, a := range args {
			args[i] = m.alignArg(b, a, levels, rank)
		}
	case base == "expand" || base == "broadcast_to":
		size, ok := args[1].ExprList()
		x := m.get(n.In(0))
		if !ok {
			m.refuse(n, "sizes under vmap are not known")
			return
		}
		v := m.align(b, x, levels, len(size))
		if v == nil {
			return
		}
		own := n.Out().Type.Shape
		args[0], args[1] = ir.Ref(v), ir.SymInts(append(slices.Clone(v.Type.Shape[:len(levels)]), own...)...)
	case base == "unsqueeze":
		dim, _ := args[1].Int()
		x := m.get(n.In(0))
		at := wrapDim(dim, x.v.Type.Rank()-len(x.levels)+1) + len(x.levels)
		args[0], args[1] = ir.Ref(x.v), ir.Int(int64(at))
	case base == "index":
		if !m.index(n, args, levels) {
			return
		}
	case len(n.Outs) == 1 && (base == "new_ones" || base == "new_zeros" || base == "new_full" || base == "new_empty"):
		// Only the type of the input counts.
		args[0] = ir.Ref(m.get(n.In(0)).v)
		levels = nil
	default:
		m.refuse(n, "the operator is used under torch.vmap, where Lathe knows element-wise operators and indexing only")
		return
	}
	c := op.New(b, n.Op, args)
	if c == nil {
		return
	}
	for i, o := range n.Outs {
		m.of[o] = &mapped{c.Outs[i], levels}
	}
	m.dead = append(m.dead, n)
}

func (m *vmapper) alignArg(b *ir.Builder, a ir.Arg, levels []int64, rank int) ir.Arg {
	if v := a.Value(); v != nil && v.Type.IsTensor() {
		return ir.Ref(m.align(b, m.get(v), levels, rank))
	}
	return a
}

// index aligns the indices, which broadcast with each other. What is indexed must not be mapped, and the indices must stand
// for its first dimensions.
func (m *vmapper) index(n *ir.Node, args []ir.Arg, levels []int64) bool {
	if x := m.get(n.In(0)); len(x.levels) > 0 {
		m.refuse(n, "a tensor that depends on the level is indexed under torch.vmap")
		return false
	}
	b := ir.NewBuilder(m.g, n, n.Origin.Derive(m.ctx.pass+"#vmap"))
	l := slices.Clone(args[1].List())
	rank := 0
	for _, e := range l {
		v := e.Value()
		if v == nil || v.Type.DType == ops.Bool {
			m.refuse(n, "only whole number indices of the first dimensions are known under torch.vmap")
			return false
		}
		x := m.get(v)
		rank = max(rank, x.v.Type.Rank()-len(x.levels))
	}
	for i, e := range l {
		l[i] = m.alignArg(b, e, levels, rank)
	}
	args[1] = ir.List(l...)
	return b.Err == nil
}

// elementwise are the operators that compute each element alone, broadcasting their operands.
var elementwise = func() map[string]bool {
	m := map[string]bool{}
	for _, s := range []string{
		"abs", "add", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "clamp", "clamp_max", "clamp_min", "clone", "cos", "div", "eq", "exp",
		"floor", "floor_divide", "fmod", "ge", "gelu", "gt", "le", "log", "logical_and", "logical_not", "logical_or", "logical_xor", "lt", "maximum",
		"minimum", "mul", "ne", "neg", "pow", "reciprocal", "relu", "remainder", "round", "rsqrt", "rsub", "sigmoid", "sign", "silu", "sin", "sqrt", "sub",
		"tanh", "to", "_to_copy", "trunc", "type_as", "where", "__and__", "__or__", "__xor__", "detach", "alias", "masked_fill", "isnan", "isinf", "contiguous",
		"ones_like", "zeros_like", "full_like",
	} {
		m[s] = true
	}
	return m
}()
