package xnnpack

import (
	"math"

	"github.com/lathe-ml/lathe/codegen/fb/xnnpack"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ops"
)

// unaryNode makes a node of one input and one output.
type unaryNode func(x xnnpack.XNNUnary) xnnpack.XNodeUnion

var (
	nodeSigmoid   unaryNode = func(x xnnpack.XNNUnary) xnnpack.XNodeUnion { n := xnnpack.XNNSigmoid(x); return &n }
	nodeTanh      unaryNode = func(x xnnpack.XNNUnary) xnnpack.XNodeUnion { n := xnnpack.XNNTanh(x); return &n }
	nodeExp       unaryNode = func(x xnnpack.XNNUnary) xnnpack.XNodeUnion { n := xnnpack.XNNExp(x); return &n }
	nodeLog       unaryNode = func(x xnnpack.XNNUnary) xnnpack.XNodeUnion { n := xnnpack.XNNLog(x); return &n }
	nodeAbs       unaryNode = func(x xnnpack.XNNUnary) xnnpack.XNodeUnion { n := xnnpack.XNNAbs(x); return &n }
	nodeNegate    unaryNode = func(x xnnpack.XNNUnary) xnnpack.XNodeUnion { n := xnnpack.XNNNegate(x); return &n }
	nodeFloor     unaryNode = func(x xnnpack.XNNUnary) xnnpack.XNodeUnion { n := xnnpack.XNNFloor(x); return &n }
	nodeCeiling   unaryNode = func(x xnnpack.XNNUnary) xnnpack.XNodeUnion { n := xnnpack.XNNCeiling(x); return &n }
	nodeSqrt      unaryNode = func(x xnnpack.XNNUnary) xnnpack.XNodeUnion { n := xnnpack.XNNSquareRoot(x); return &n }
	nodeRsqrt     unaryNode = func(x xnnpack.XNNUnary) xnnpack.XNodeUnion { n := xnnpack.XNNReciprocalSquareRoot(x); return &n }
	nodeSquare    unaryNode = func(x xnnpack.XNNUnary) xnnpack.XNodeUnion { n := xnnpack.XNNSquare(x); return &n }
	nodeSin       unaryNode = func(x xnnpack.XNNUnary) xnnpack.XNodeUnion { n := xnnpack.XNNSin(x); return &n }
	nodeCos       unaryNode = func(x xnnpack.XNNUnary) xnnpack.XNodeUnion { n := xnnpack.XNNCos(x); return &n }
	nodeHardswish unaryNode = func(x xnnpack.XNNUnary) xnnpack.XNodeUnion { n := xnnpack.XNNHardswish(x); return &n }
	nodeGelu      unaryNode = func(x xnnpack.XNNUnary) xnnpack.XNodeUnion { n := xnnpack.XNNGelu(x); return &n }
	nodeSoftmax   unaryNode = func(x xnnpack.XNNUnary) xnnpack.XNodeUnion { n := xnnpack.XNNSoftmax(x); return &n }
	nodeClamp     unaryNode = func(x xnnpack.XNNUnary) xnnpack.XNodeUnion { n := xnnpack.XNNClamp(x); return &n }
	nodePool      unaryNode = func(x xnnpack.XNNUnary) xnnpack.XNodeUnion { n := xnnpack.XNNGlobalAvgPooling2d(x); return &n }
)

var unaryRules = map[ops.ID]rule{
	ops.AtenSigmoidDefault:      wide(unary(nodeSigmoid)),
	ops.AtenTanhDefault:         wide(unary(nodeTanh)),
	ops.AtenExpDefault:          wide(unary(nodeExp)),
	ops.AtenLogDefault:          wide(unary(nodeLog)),
	ops.AtenAbsDefault:          unary(nodeAbs),
	ops.AtenNegDefault:          unary(nodeNegate),
	ops.AtenFloorDefault:        unary(nodeFloor),
	ops.AtenCeilDefault:         unary(nodeCeiling),
	ops.AtenSqrtDefault:         wide(unary(nodeSqrt)),
	ops.AtenRsqrtDefault:        wide(unary(nodeRsqrt)),
	ops.AtenSquareDefault:       unary(nodeSquare),
	ops.AtenSinDefault:          wide(unary(nodeSin)),
	ops.AtenCosDefault:          wide(unary(nodeCos)),
	ops.AtenHardswishDefault:    wide(unary(nodeHardswish)),
	ops.AtenReciprocalDefault:   wide(reciprocal),
	ops.AtenReluDefault:         clamp,
	ops.AtenRelu6Default:        clamp,
	ops.AtenHardtanhDefault:     clamp,
	ops.AtenClampDefault:        clamp,
	ops.AtenClampMinDefault:     clamp,
	ops.AtenClampMaxDefault:     clamp,
	ops.AtenHardsigmoidDefault:  wide(hardsigmoid),
	ops.AtenGeluDefault:         wide(gelu),
	ops.AtenSiluDefault:         wide(silu),
	ops.AtenGluDefault:          wide(glu),
	ops.AtenEluDefault:          wide(elu),
	ops.AtenLeakyReluDefault:    wide(leakyRelu),
	ops.AtenPreluDefault:        wide(prelu),
	ops.AtenPowTensorScalar:     wide(pow),
	ops.AtenCloneDefault:        clone,
	ops.AtenContiguousDefault:   clone,
	ops.AtenUnderSoftmaxDefault: wide(softmax),
	ops.AtenSoftmaxInt:          wide(softmax),
}

// apply writes a unary node from x to out.
func (b *builder) apply(f unaryNode, x, out uint32) uint32 {
	b.node(f(xnnpack.XNNUnary{InputID: x, OutputID: out}))
	return out
}

// map1 writes what f makes of the node's first input in whatever layout that is there.
func (b *builder) map1(f func(x, out uint32)) {
	x := b.n.In(0)
	if b.prefersNHWC(x) {
		f(b.inNHWC(x), b.outNHWC(b.n.Out()))
		return
	}
	in := b.in(x)
	f(in, b.out(0))
}

func unary(f unaryNode) rule {
	return func(m *match) emit {
		if !m.floats() {
			return nil
		}
		return func(b *builder) { b.map1(func(x, out uint32) { b.apply(f, x, out) }) }
	}
}

// bounds are those of a node that clamps its first input.
func bounds(n *ir.Node) (lo, hi float64, ok bool) {
	lo, hi = math.Inf(-1), math.Inf(1)
	at := func(i int, to *float64) {
		if a := n.Arg(i); !a.IsNone() && ok {
			*to, ok = a.Float()
		}
	}
	ok = true
	switch n.Op {
	case ops.AtenReluDefault:
		lo = 0
	case ops.AtenRelu6Default:
		lo, hi = 0, 6
	case ops.AtenHardtanhDefault, ops.AtenClampDefault:
		at(1, &lo)
		at(2, &hi)
	case ops.AtenClampMinDefault:
		at(1, &lo)
	case ops.AtenClampMaxDefault:
		at(1, &hi)
	default:
		return 0, 0, false
	}
	// Bounds that cross, or are no numbers, have an order of their own in torch.
	return lo, hi, ok && lo <= hi && lo == lo && hi == hi
}

// clamp between constants.
func clamp(m *match) emit {
	if !m.floats() {
		return nil
	}
	lo, hi, ok := bounds(m.n)
	if !ok {
		return m.no("bounds that are computed, or cross")
	}
	return func(b *builder) { b.map1(func(x, out uint32) { b.clamp(x, out, lo, hi) }) }
}

func (b *builder) clamp(x, out uint32, lo, hi float64) uint32 {
	n := b.node(nodeClamp(xnnpack.XNNUnary{InputID: x, OutputID: out}))
	n.OutputMinMax = &xnnpack.OutputMinMax{OutputMin: float32(lo), OutputMax: float32(hi)}
	return out
}

// hardsigmoid is clamp(x/6 + 1/2, 0, 1).
func hardsigmoid(m *match) emit {
	if !m.floats() {
		return nil
	}
	return func(b *builder) {
		b.map1(func(x, out uint32) {
			t := b.binary(nodeMultiply, x, b.scalar(1.0/6), b.like(x))
			n := b.node(nodeAdd(xnnpack.XNNBinary{Input1ID: t, Input2ID: b.scalar(0.5), OutputID: out}))
			n.OutputMinMax = &xnnpack.OutputMinMax{OutputMin: 0, OutputMax: 1}
		})
	}
}

// gelu is the delegate's where exact; the tanh form is written out.
func gelu(m *match) emit {
	if !m.floats() {
		return nil
	}
	how, _ := m.arg(1).Str()
	switch how {
	case "none":
		return func(b *builder) { b.map1(func(x, out uint32) { b.apply(nodeGelu, x, out) }) }
	case "tanh":
		// x/2 (1 + tanh u) = x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3).
		return func(b *builder) {
			b.map1(func(x, out uint32) {
				k := 2 * math.Sqrt(2/math.Pi)
				t := b.apply(nodeSquare, x, b.like(x))
				t = b.binary(nodeMultiply, t, b.scalar(0.044715*k), b.like(x))
				t = b.binary(nodeAdd, t, b.scalar(k), b.like(x))
				t = b.binary(nodeMultiply, t, x, b.like(x))
				// The delegate's sigmoid of very large numbers is none.
				b.last().OutputMinMax = &xnnpack.OutputMinMax{OutputMin: -128, OutputMax: 128}
				t = b.apply(nodeSigmoid, t, b.like(x))
				b.binary(nodeMultiply, x, t, out)
			})
		}
	}
	return m.no("an approximation called %q", how)
}

func silu(m *match) emit {
	if !m.floats() {
		return nil
	}
	return func(b *builder) {
		b.map1(func(x, out uint32) {
			b.binary(nodeMultiply, x, b.apply(nodeSigmoid, x, b.like(x)), out)
		})
	}
}

// glu is one half along a dimension times the sigmoid of the other.
func glu(m *match) emit {
	if !m.floats() {
		return nil
	}
	x := m.in(0)
	d, ok := m.dim(1, x.Type.Rank())
	if !ok {
		return nil
	}
	size, ok := x.Type.Shape[d].IsConst()
	if !ok {
		return m.no("halves of a size that varies")
	}
	return func(b *builder) {
		in, shape := b.in(x), b.n.Out().Type.Shape
		value := b.part(in, d, 0, size/2, b.resized(in, shape))
		gate := b.part(in, d, size/2, size/2, b.resized(in, shape))
		gate = b.apply(nodeSigmoid, gate, b.like(gate))
		b.binary(nodeMultiply, value, gate, b.out(0))
	}
}

func elu(m *match) emit {
	if !m.floats() {
		return nil
	}
	alpha, ok1 := m.number(1)
	scale, ok2 := m.number(2)
	input, ok3 := m.number(3)
	if !ok1 || !ok2 || !ok3 {
		return nil
	}
	if alpha <= 0 || scale != 1 || input != 1 {
		return m.no("scales other than 1, or an alpha below 0")
	}
	return func(b *builder) {
		b.map1(func(x, out uint32) {
			b.node(&xnnpack.XNNELU{Alpha: float32(alpha), InputID: x, OutputID: out})
		})
	}
}

func leakyRelu(m *match) emit {
	if !m.floats() {
		return nil
	}
	slope, ok := m.number(1)
	if !ok || math.IsNaN(slope) || math.IsInf(slope, 0) {
		return m.no("a slope that is no number")
	}
	return func(b *builder) {
		b.map1(func(x, out uint32) {
			b.node(&xnnpack.XNNLeakyReLU{NegativeSlope: float32(slope), InputID: x, OutputID: out})
		})
	}
}

// prelu is max(x, 0) + w min(x, 0), with a weight for each channel, which is dimension 1.
func prelu(m *match) emit {
	if !m.floats() {
		return nil
	}
	x, w := m.in(0), m.in(1)
	rank := x.Type.Rank()
	if !isConst(w) {
		return m.no("a weight that is computed")
	}
	n, ok := w.Type.Numel().IsConst()
	if !ok || w.Type.Rank() > 1 {
		return m.no("a weight of more than one dimension")
	}
	in := weightOf(w)
	return func(b *builder) {
		nhwc := b.prefersNHWC(x)
		sizes := []int64{n}
		if n > 1 && rank > 2 && !nhwc {
			for range rank - 2 {
				sizes = append(sizes, 1)
			}
		}
		slope := b.weight(in, &form{sizes: sizes})
		b.map1(func(x, out uint32) {
			low := b.clamp(x, b.like(x), math.Inf(-1), 0)
			low = b.binary(nodeMultiply, low, slope, b.like(x))
			high := b.clamp(x, b.like(x), 0, math.Inf(1))
			b.binary(nodeAdd, high, low, out)
		})
	}
}

// pow of constant exponents that have a node.
func pow(m *match) emit {
	if !m.floats() {
		return nil
	}
	p, ok := m.number(1)
	if !ok {
		return nil
	}
	switch p {
	case 2:
		return unary(nodeSquare)(m)
	case 0.5:
		return unary(nodeSqrt)(m)
	case -0.5:
		// The delegate's reciprocal square root of 0 is no number.
		return func(b *builder) {
			b.map1(func(x, out uint32) {
				b.binary(nodeDivide, b.scalar(1), b.apply(nodeSqrt, x, b.like(x)), out)
			})
		}
	case 3:
		return func(b *builder) {
			b.map1(func(x, out uint32) {
				b.binary(nodeMultiply, b.apply(nodeSquare, x, b.like(x)), x, out)
			})
		}
	case -1:
		return reciprocal(m)
	}
	return m.no("exponent %v", p)
}

func reciprocal(m *match) emit {
	if !m.floats() {
		return nil
	}
	return func(b *builder) {
		b.map1(func(x, out uint32) { b.binary(nodeDivide, b.scalar(1), x, out) })
	}
}

// clone gives a value that is the same.
func clone(m *match) emit {
	if !m.floats() {
		return nil
	}
	return func(b *builder) {
		x, out := b.n.In(0), b.n.Out()
		b.later[out] = func() { b.alias(out, x) }
	}
}

// alias makes out what x is, in every form that is there.
func (b *builder) alias(out, x *ir.Value) {
	if isConst(x) {
		b.in(x)
	}
	if id, ok := b.find(b.plain, x); ok {
		b.plain[out] = id
	}
	if id, ok := b.nhwc[x]; ok {
		b.nhwc[out] = id
	}
}

// softmax is over the last dimension of what the delegate is given.
func softmax(m *match) emit {
	if !m.floats() {
		return nil
	}
	rank := m.in(0).Type.Rank()
	if rank == 0 {
		return m.no("a tensor without dimensions")
	}
	d, ok := m.dim(1, rank)
	if !ok {
		return nil
	}
	return func(b *builder) {
		x := b.n.In(0)
		if d == rank-1 {
			in := b.in(x)
			b.apply(nodeSoftmax, in, b.out(0))
			return
		}
		if channelsIn[rank] != nil && d == 1 {
			in := b.inNHWC(x)
			b.apply(nodeSoftmax, in, b.outNHWC(b.n.Out()))
			return
		}
		perm := swapped(rank, d, rank-1)
		t := b.transpose(b.in(x), perm)
		t = b.apply(nodeSoftmax, t, b.like(t))
		b.transposeTo(t, perm, b.out(0))
	}
}

// swapped is the permutation that exchanges two dimensions.
func swapped(rank, i, j int) []int {
	p := make([]int, rank)
	for k := range p {
		p[k] = k
	}
	p[i], p[j] = p[j], p[i]
	return p
}
