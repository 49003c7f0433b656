package mlx

import (
	"math"

	"github.com/lathe-ml/lathe/codegen/fb/mlx"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ops"
)

var inf = math.Inf(1)

type binaryNode func(a, c, out mlx.Tid) mlx.OpNode

func addNode(a, c, out mlx.Tid) mlx.OpNode { return &mlx.AddNode{A: a, B: c, Out: out} }
func subNode(a, c, out mlx.Tid) mlx.OpNode { return &mlx.SubtractNode{A: a, B: c, Out: out} }
func mulNode(a, c, out mlx.Tid) mlx.OpNode { return &mlx.MultiplyNode{A: a, B: c, Out: out} }
func divNode(a, c, out mlx.Tid) mlx.OpNode { return &mlx.DivideNode{A: a, B: c, Out: out} }
func remNode(a, c, out mlx.Tid) mlx.OpNode { return &mlx.RemainderNode{A: a, B: c, Out: out} }
func powNode(a, c, out mlx.Tid) mlx.OpNode { return &mlx.PowerNode{A: a, B: c, Out: out} }
func maxNode(a, c, out mlx.Tid) mlx.OpNode { return &mlx.MaximumNode{A: a, B: c, Out: out} }
func minNode(a, c, out mlx.Tid) mlx.OpNode { return &mlx.MinimumNode{A: a, B: c, Out: out} }
func andNode(a, c, out mlx.Tid) mlx.OpNode { return &mlx.LogicalAndNode{A: a, B: c, Out: out} }
func orNode(a, c, out mlx.Tid) mlx.OpNode  { return &mlx.LogicalOrNode{A: a, B: c, Out: out} }
func ltNode(a, c, out mlx.Tid) mlx.OpNode  { return &mlx.LessNode{A: a, B: c, Out: out} }
func leNode(a, c, out mlx.Tid) mlx.OpNode  { return &mlx.LessEqualNode{A: a, B: c, Out: out} }
func gtNode(a, c, out mlx.Tid) mlx.OpNode  { return &mlx.GreaterNode{A: a, B: c, Out: out} }
func geNode(a, c, out mlx.Tid) mlx.OpNode  { return &mlx.GreaterEqualNode{A: a, B: c, Out: out} }
func eqNode(a, c, out mlx.Tid) mlx.OpNode  { return &mlx.EqualNode{A: a, B: c, Out: out} }
func neNode(a, c, out mlx.Tid) mlx.OpNode  { return &mlx.NotEqualNode{A: a, B: c, Out: out} }
func atan2Node(a, c, out mlx.Tid) mlx.OpNode {
	return &mlx.Atan2Node{A: a, B: c, Out: out}
}

func logAddExpNode(a, c, out mlx.Tid) mlx.OpNode {
	return &mlx.LogAddExpNode{A: a, B: c, Out: out}
}
func bitAndNode(a, c, out mlx.Tid) mlx.OpNode { return &mlx.BitwiseAndNode{A: a, B: c, Out: out} }
func bitOrNode(a, c, out mlx.Tid) mlx.OpNode  { return &mlx.BitwiseOrNode{A: a, B: c, Out: out} }
func bitXorNode(a, c, out mlx.Tid) mlx.OpNode { return &mlx.BitwiseXorNode{A: a, B: c, Out: out} }

var binaryRules = map[ops.ID]rule{
	ops.AtenAddTensor:          addSub(addNode, orNode),
	ops.AtenAddScalar:          addSub(addNode, orNode),
	ops.AtenSubTensor:          addSub(subNode, nil),
	ops.AtenSubScalar:          addSub(subNode, nil),
	ops.AtenRsubTensor:         rsub,
	ops.AtenRsubScalar:         rsub,
	ops.AtenMulTensor:          elementwise(mulNode, andNode),
	ops.AtenMulScalar:          elementwise(mulNode, andNode),
	ops.AtenDivTensor:          elementwise(divNode, nil),
	ops.AtenDivScalar:          elementwise(divNode, nil),
	ops.AtenDivTensorMode:      divMode,
	ops.AtenDivScalarMode:      divMode,
	ops.AtenFloorDivideDefault: floorDivide,
	ops.AtenFloorDivideScalar:  floorDivide,
	ops.AtenRemainderTensor:    elementwise(remNode, nil),
	ops.AtenRemainderScalar:    elementwise(remNode, nil),
	ops.AtenFmodTensor:         fmodRule,
	ops.AtenFmodScalar:         fmodRule,
	ops.AtenPowTensorTensor:    power,
	ops.AtenPowTensorScalar:    powScalar,
	ops.AtenPowScalar:          power,
	ops.AtenMaximumDefault:     elementwise(maxNode, orNode),
	ops.AtenMinimumDefault:     elementwise(minNode, andNode),
	ops.AtenMaxOther:           elementwise(maxNode, orNode),
	ops.AtenMinOther:           elementwise(minNode, andNode),
	ops.AtenAtan2Default:       elementwise(atan2Node, nil),
	ops.AtenLogaddexpDefault:   elementwise(logAddExpNode, nil),
	ops.AtenLogicalAndDefault:  logical(andNode),
	ops.AtenLogicalOrDefault:   logical(orNode),
	ops.AtenLogicalXorDefault:  logical(neNode),
	ops.AtenBitwiseAndTensor:   elementwise(bitAndNode, andNode),
	ops.AtenBitwiseAndScalar:   elementwise(bitAndNode, andNode),
	ops.AtenBitwiseOrTensor:    elementwise(bitOrNode, orNode),
	ops.AtenBitwiseOrScalar:    elementwise(bitOrNode, orNode),
	ops.AtenBitwiseXorTensor:   elementwise(bitXorNode, neNode),
	ops.AtenBitwiseXorScalar:   elementwise(bitXorNode, neNode),
	ops.AtenLtTensor:           compare(ltNode),
	ops.AtenLtScalar:           compare(ltNode),
	ops.AtenLeTensor:           compare(leNode),
	ops.AtenLeScalar:           compare(leNode),
	ops.AtenGtTensor:           compare(gtNode),
	ops.AtenGtScalar:           compare(gtNode),
	ops.AtenGeTensor:           compare(geNode),
	ops.AtenGeScalar:           compare(geNode),
	ops.AtenEqTensor:           compare(eqNode),
	ops.AtenEqScalar:           compare(eqNode),
	ops.AtenNeTensor:           compare(neNode),
	ops.AtenNeScalar:           compare(neNode),
	ops.AtenWhereSelf:          where,
	ops.AtenWhereScalarOther:   where,
	ops.AtenWhereScalarSelf:    where,
	ops.AtenWhereScalar:        where,
	ops.AtenMaskedFillScalar:   maskedFill,
	ops.AtenMaskedFillTensor:   maskedFill,
}

// elementwise is a node that computes in the result's element type; onBool is the one that stands for it on bools.
func elementwise(node, onBool binaryNode) rule {
	return func(m *match) emit { return pointwise(m, m.arg(0), m.arg(1), m.out().DType, node, onBool) }
}

func pointwise(m *match, x, y ir.Arg, d ops.DType, node, onBool binaryNode) emit {
	if d == ops.Bool {
		node = onBool
		if node == nil {
			return m.no("it does not compute this on bools")
		}
	}
	if !numeric(x, d) || !numeric(y, d) {
		return m.no("an operand does not fit %s", d)
	}
	return func(b *builder) {
		p, q := b.pair(x, y, d)
		b.emit(node(p, q, b.out(0)))
	}
}

// pair gives two operands that MLX computes in element type d. Where its own promotion does so nothing is converted.
func (b *builder) pair(x, y ir.Arg, d ops.DType) (p, q mlx.Tid) {
	v, w := x.Value(), y.Value()
	if v != nil && w != nil && v.Type.IsTensor() && w.Type.IsTensor() && promote(v.Type.DType, w.Type.DType) == d {
		return b.in(v), b.in(w)
	}
	return b.operand(x, d), b.operand(y, d)
}

func logical(node binaryNode) rule {
	return func(m *match) emit {
		x, y := m.in(0), m.in(1)
		return func(b *builder) { b.emit(node(b.inAs(x, ops.Bool), b.inAs(y, ops.Bool), b.out(0))) }
	}
}

func compare(node binaryNode) rule {
	return func(m *match) emit {
		x, y := m.arg(0), m.arg(1)
		d := torchPromote(x, y)
		if d == ops.Bool {
			d = ops.Int32
		}
		if !numeric(x, d) || !numeric(y, d) {
			return m.no("an operand does not fit %s", d)
		}
		return func(b *builder) {
			p, q := b.pair(x, y, d)
			b.emit(node(p, q, b.out(0)))
		}
	}
}

// addSub is x ± alpha*y.
func addSub(node, onBool binaryNode) rule {
	return func(m *match) emit {
		x, y, alpha := m.arg(0), m.arg(1), m.n.ArgNamed("alpha")
		d := m.out().DType
		if k, ok := alpha.Float(); alpha.IsNone() || ok && k == 1 {
			return pointwise(m, x, y, d, node, onBool)
		}
		if !numeric(x, d) || !numeric(y, d) || !numeric(alpha, d) || d == ops.Bool {
			return m.no("an operand does not fit %s", d)
		}
		return func(b *builder) {
			t := b.temp(d)
			b.emit(mulNode(b.operand(y, d), b.operand(alpha, d), t))
			b.emit(node(b.operand(x, d), t, b.out(0)))
		}
	}
}

// rsub is y - alpha*x.
func rsub(m *match) emit {
	x, y, alpha := m.arg(0), m.arg(1), m.n.ArgNamed("alpha")
	d := m.out().DType
	if k, ok := alpha.Float(); !alpha.IsNone() && (!ok || k != 1) {
		return m.no("a factor other than 1")
	}
	return pointwise(m, y, x, d, subNode, nil)
}

func powScalar(m *match) emit {
	x, d := m.in(0), m.out().DType
	if e, ok := m.arg(1).Float(); ok && e == 2 && d != ops.Bool {
		return func(b *builder) { b.emit(&mlx.SquareNode{X: b.inAs(x, d), Out: b.out(0)}) }
	}
	return elementwise(powNode, nil)(m)
}

// power leaves integers whose exponent may be negative: MLX gives 0 for all of them, torch not for 1 and -1.
func power(m *match) emit {
	if y := m.in(1); m.out().DType.IsInt() && (y == nil || y.Type.DType.IsSigned()) {
		return m.no("integer powers with exponents that may be negative")
	}
	return elementwise(powNode, nil)(m)
}

func divMode(m *match) emit {
	mode, _ := m.n.ArgNamed("rounding_mode").Str()
	d := m.out().DType
	x, y := m.arg(0), m.arg(1)
	switch {
	case mode == "floor":
		return floorDivide(m)
	case mode == "":
		return pointwise(m, x, y, d, divNode, nil)
	case mode != "trunc":
		return m.no("rounding mode %q", mode)
	}
	if !numeric(x, d) || !numeric(y, d) || d == ops.Bool {
		return m.no("an operand does not fit %s", d)
	}
	if d.IsInt() {
		most := min(magnitude(m.n.Graph(), x), largest(d))
		return func(b *builder) { b.result(0, b.divideInts(b.operand(x, d), b.operand(y, d), d, true, most)) }
	}
	return func(b *builder) {
		q := b.temp(d)
		b.emit(divNode(b.operand(x, d), b.operand(y, d), q))
		b.emit(&mlx.TruncNode{X: q, Out: b.out(0)})
	}
}

func fmodRule(m *match) emit {
	x, y, d := m.arg(0), m.arg(1), m.out().DType
	if !numeric(x, d) || !numeric(y, d) || d == ops.Bool {
		return m.no("an operand does not fit %s", d)
	}
	return func(b *builder) { b.result(0, b.fmod(b.operand(x, d), b.operand(y, d), d)) }
}

// floorDivide of integers is exact in one node as long as a 32-bit float holds the dividend; the node leaves a float, which
// is cut to an integer where it is read.
func floorDivide(m *match) emit {
	x, y, d := m.arg(0), m.arg(1), m.out().DType
	if d == ops.Bool || !numeric(x, d) || !numeric(y, d) {
		return m.no("an operand does not fit %s", d)
	}
	if d.IsFloat() {
		k, number := y.Float()
		plain := number && y.Value() == nil && k != 0 && !math.IsInf(k, 0)
		return func(b *builder) {
			b.result(0, b.cast(b.floorDivideFloats(b.operand(x, ops.Float32), b.operand(y, ops.Float32), plain), d))
		}
	}
	most, divisor := min(magnitude(m.n.Graph(), x), largest(d)), min(magnitude(m.n.Graph(), y), largest(d))
	return func(b *builder) {
		if most < exactInts {
			b.emit(&mlx.FloorDivideNode{A: b.operand(x, d), B: b.operand(y, d), Out: b.outAs(0, ops.Float32)})
			return
		}
		if divisor < exactInts/2 {
			b.result(0, b.floorDivideInts(b.operand(x, d), b.operand(y, d), d, most, divisor))
			return
		}
		b.result(0, b.divideInts(b.operand(x, d), b.operand(y, d), d, false, most))
	}
}

// floorDivideFloats is the quotient of 32-bit floats rounded down, from what is left by exact division: 1/0.1 is 10 when
// rounded first, as FloorDivideNode has it, and 9 in torch. A plain divisor is neither zero nor infinite.
func (b *builder) floorDivideFloats(x, y mlx.Tid, plain bool) mlx.Tid {
	const d = ops.Float32
	op := func(t ops.DType, node binaryNode, p, q mlx.Tid) mlx.Tid {
		out := b.temp(t)
		b.emit(node(p, q, out))
		return out
	}
	by := y
	if !plain {
		// Over infinity it is -1 or 0: so it is over the greatest number.
		low, high := b.float(d, -math.MaxFloat32), b.float(d, math.MaxFloat32)
		by = b.temp(d)
		b.emit(&mlx.ClipNode{X: y, Out: by, AMin: &low, AMax: &high})
	}
	whole := b.temp(d)
	b.emit(&mlx.RoundNode{X: op(d, divNode, op(d, subNode, x, op(d, remNode, x, by)), by), Out: whole})
	if plain {
		return whole
	}
	out := b.temp(d)
	b.emit(&mlx.WhereNode{Condition: op(ops.Bool, neNode, y, b.float(d, 0)), X: whole, Y: op(d, divNode, x, y), Out: out})
	return out
}

func where(m *match) emit {
	c, x, y, d := m.in(0), m.arg(1), m.arg(2), m.out().DType
	if !numeric(x, d) || !numeric(y, d) {
		return m.no("an operand does not fit %s", d)
	}
	return func(b *builder) {
		p, q := b.pair(x, y, d)
		b.emit(&mlx.WhereNode{Condition: b.inAs(c, ops.Bool), X: p, Y: q, Out: b.out(0)})
	}
}

func maskedFill(m *match) emit {
	x, mask, v, d := m.arg(0), m.in(1), m.arg(2), m.out().DType
	if !numeric(v, d) {
		return m.no("the value does not fit %s", d)
	}
	return func(b *builder) {
		b.emit(&mlx.WhereNode{Condition: b.inAs(mask, ops.Bool), X: b.operand(v, d), Y: b.operand(x, d), Out: b.out(0)})
	}
}
