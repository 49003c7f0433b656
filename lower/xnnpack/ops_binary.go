package xnnpack

import (
	"math"

	"github.com/lathe-ml/lathe/codegen/fb/xnnpack"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/partition"
)

// binaryNode makes a node of two inputs and one output.
type binaryNode func(x xnnpack.XNNBinary) xnnpack.XNodeUnion

var (
	nodeAdd      binaryNode = func(x xnnpack.XNNBinary) xnnpack.XNodeUnion { n := xnnpack.XNNAdd(x); return &n }
	nodeSubtract binaryNode = func(x xnnpack.XNNBinary) xnnpack.XNodeUnion { n := xnnpack.XNNSubtract(x); return &n }
	nodeMultiply binaryNode = func(x xnnpack.XNNBinary) xnnpack.XNodeUnion { n := xnnpack.XNNMultiply(x); return &n }
	nodeDivide   binaryNode = func(x xnnpack.XNNBinary) xnnpack.XNodeUnion { n := xnnpack.XNNDiv(x); return &n }
	nodeMinimum  binaryNode = func(x xnnpack.XNNBinary) xnnpack.XNodeUnion { n := xnnpack.XNNMinimum(x); return &n }
	nodeMaximum  binaryNode = func(x xnnpack.XNNBinary) xnnpack.XNodeUnion { n := xnnpack.XNNMaximum(x); return &n }
	nodeMatmul   binaryNode = func(x xnnpack.XNNBinary) xnnpack.XNodeUnion { n := xnnpack.XNNBatchMatrixMultiply(x); return &n }
)

var binaryRules = map[ops.ID]rule{
	ops.AtenAddTensor:      unlessExact(scaled(nodeAdd)),
	ops.AtenAddScalar:      unlessExact(scaled(nodeAdd)),
	ops.AtenSubTensor:      unlessExact(scaled(nodeSubtract)),
	ops.AtenSubScalar:      unlessExact(scaled(nodeSubtract)),
	ops.AtenRsubTensor:     unlessExact(reversed),
	ops.AtenRsubScalar:     unlessExact(reversed),
	ops.AtenMulTensor:      unlessExact(plainBinary(nodeMultiply)),
	ops.AtenMulScalar:      unlessExact(plainBinary(nodeMultiply)),
	ops.AtenDivTensor:      unlessExact(plainBinary(nodeDivide)),
	ops.AtenDivScalar:      unlessExact(plainBinary(nodeDivide)),
	ops.AtenMinimumDefault: unlessExact(plainBinary(nodeMinimum)),
	ops.AtenMaximumDefault: unlessExact(plainBinary(nodeMaximum)),
}

// unlessExact has r's node computed in float32 where float16 does not hold the numbers among its arguments: PyTorch rounds
// the result alone.
func unlessExact(r rule) rule {
	return func(m *match) emit {
		for _, a := range m.n.Args() {
			if f, ok := a.Float(); ok && !exactly(f) {
				return wide(r)(m)
			}
		}
		if alpha, ok := m.n.ArgNamed("alpha").Float(); ok && alpha != 1 {
			return wide(r)(m)
		}
		return r(m)
	}
}

// binary writes a node from x and y to out.
func (b *builder) binary(f binaryNode, x, y, out uint32) uint32 {
	b.node(f(xnnpack.XNNBinary{Input1ID: x, Input2ID: y, OutputID: out}))
	return out
}

// operandsOK refuses operands other than tensors that the delegate holds and constant numbers.
func (m *match) operandsOK(is ...int) bool {
	some := false
	for _, i := range is {
		if m.isTensor(i) {
			some = true
			continue
		}
		if f, ok := m.number(i); !ok || math.Abs(f) > math.MaxFloat32 && !math.IsInf(f, 0) {
			m.no("a number that is computed, or too large")
			return false
		}
	}
	if !some {
		m.no("no tensor among its operands")
		return false
	}
	return m.floats()
}

func plainBinary(f binaryNode) rule {
	return func(m *match) emit {
		if !m.operandsOK(0, 1) {
			return nil
		}
		return func(b *builder) { b.elementwise(f, b.n.Arg(0), b.n.Arg(1), 1) }
	}
}

// scaled is x + alpha y and x - alpha y.
func scaled(f binaryNode) rule {
	return func(m *match) emit {
		if !m.operandsOK(0, 1) {
			return nil
		}
		alpha, ok := m.n.ArgNamed("alpha").Float()
		if !ok {
			return m.no("a factor that is computed")
		}
		return func(b *builder) { b.elementwise(f, b.n.Arg(0), b.n.Arg(1), alpha) }
	}
}

// reversed is y - alpha x.
func reversed(m *match) emit {
	if !m.operandsOK(0, 1) {
		return nil
	}
	alpha, ok := m.n.ArgNamed("alpha").Float()
	if !ok {
		return m.no("a factor that is computed")
	}
	return func(b *builder) { b.elementwise(nodeSubtract, b.n.Arg(1), b.n.Arg(0), alpha) }
}

// elementwise writes f(x, alpha y) with whatever layout is there.
func (b *builder) elementwise(f binaryNode, x, y ir.Arg, alpha float64) {
	if b.intElementwise(f, x, y, alpha) {
		return
	}
	if rank := b.n.Out().Type.Rank(); channelsIn[rank] != nil {
		var vs []*ir.Value
		ok := true
		for _, a := range []ir.Arg{x, y} {
			if v := a.Value(); v != nil {
				vs = append(vs, v)
				ok = ok && (v.Type.Rank() == rank || isConst(v) || v.Type.Rank() == 0)
			}
		}
		if ok && b.prefersNHWC(vs...) {
			p, q := b.operandNHWC(x, rank), b.operandNHWC(y, rank)
			q = b.times(q, alpha)
			b.bound(b.node(f(xnnpack.XNNBinary{Input1ID: p, Input2ID: q, OutputID: b.fuseNHWC()})))
			return
		}
	}
	p, q := b.operand(x), b.operand(y)
	q = b.times(q, alpha)
	b.bound(b.node(f(xnnpack.XNNBinary{Input1ID: p, Input2ID: q, OutputID: b.fuse()})))
}

func (b *builder) times(x uint32, alpha float64) uint32 {
	if alpha == 1 {
		return x
	}
	return b.binary(nodeMultiply, x, b.scalar(alpha), b.like(x))
}

// operand is a tensor, or a number as a tensor without dimensions.
func (b *builder) operand(a ir.Arg) uint32 {
	if v := a.Value(); v != nil {
		return b.in(v)
	}
	f, _ := a.Float()
	return b.scalar(f)
}

// operandNHWC is an operand of an operation on rank dimensions with the channels innermost.
func (b *builder) operandNHWC(a ir.Arg, rank int) uint32 {
	v := a.Value()
	switch {
	case v == nil || v.Type.Rank() == 0:
		return b.operand(a)
	case v.Type.Rank() == rank:
		return b.inNHWC(v)
	}
	in := partition.Weight(v)
	sizes := append([]int64(nil), in.Data.Sizes...)
	for len(sizes) < rank {
		sizes = append([]int64{1}, sizes...)
	}
	return b.weight(in, &form{split: sizes, perm: channelsIn[rank]})
}

// activation is the node that clamps n's result, where nobody else reads that: its work is done by n's own node.
func (b *builder) activation(n *ir.Node) *ir.Node {
	id := n.Op
	if same := n.Info().SameAs; same != ops.Unknown {
		id = same
	}
	if id == ops.AtenMaximumDefault || id == ops.AtenMinimumDefault {
		return nil // the delegate passes over the bounds of these nodes
	}
	v := n.Out()
	if v.NumUses() != 1 || v.IsOutput() {
		return nil
	}
	u := v.Users()[0]
	if u.Graph() != b.g || u.In(0) != v {
		return nil
	}
	if _, _, ok := bounds(u); !ok {
		return nil
	}
	return u
}

// fuse declares the result of the node at hand, or of the activation behind it.
func (b *builder) fuse() uint32 { return b.outOf(b.fusedOut(b.n)) }

func (b *builder) fuseNHWC() uint32 { return b.outNHWC(b.fusedOut(b.n)) }

// fusedOut is the result of n, or of the activation behind it, which is done then.
func (b *builder) fusedOut(n *ir.Node) *ir.Value {
	if u := b.activation(n); u != nil {
		b.fused[u] = true
		return u.Out()
	}
	return n.Out()
}

// bound gives x the bounds of the activation that fuse found.
func (b *builder) bound(x *xnnpack.XNode) { b.boundOf(x, b.n) }

func (b *builder) boundOf(x *xnnpack.XNode, n *ir.Node) {
	u := b.activation(n)
	if u == nil {
		return
	}
	lo, hi, _ := bounds(u)
	x.OutputMinMax = &xnnpack.OutputMinMax{OutputMin: float32(lo), OutputMax: float32(hi)}
}

func weightOf(v *ir.Value) *ir.Input { return partition.Weight(v) }
