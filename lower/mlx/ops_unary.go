package mlx

import (
	"github.com/lathe-ml/lathe/codegen/fb/mlx"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ops"
)

type unaryNode func(x, out mlx.Tid) mlx.OpNode

var unaryRules = map[ops.ID]rule{
	ops.AtenSiluDefault:          unary(func(x, out mlx.Tid) mlx.OpNode { return &mlx.SiluNode{X: x, Out: out} }),
	ops.AtenSigmoidDefault:       unary(func(x, out mlx.Tid) mlx.OpNode { return &mlx.SigmoidNode{X: x, Out: out} }),
	ops.AtenTanhDefault:          unary(func(x, out mlx.Tid) mlx.OpNode { return &mlx.TanhNode{X: x, Out: out} }),
	ops.AtenRsqrtDefault:         unary(func(x, out mlx.Tid) mlx.OpNode { return &mlx.RsqrtNode{X: x, Out: out} }),
	ops.AtenExpDefault:           unary(func(x, out mlx.Tid) mlx.OpNode { return &mlx.ExpNode{X: x, Out: out} }),
	ops.AtenSqrtDefault:          unary(func(x, out mlx.Tid) mlx.OpNode { return &mlx.SqrtNode{X: x, Out: out} }),
	ops.AtenReciprocalDefault:    unary(func(x, out mlx.Tid) mlx.OpNode { return &mlx.ReciprocalNode{X: x, Out: out} }),
	ops.AtenSinDefault:           unary(func(x, out mlx.Tid) mlx.OpNode { return &mlx.SinNode{X: x, Out: out} }),
	ops.AtenCosDefault:           unary(func(x, out mlx.Tid) mlx.OpNode { return &mlx.CosNode{X: x, Out: out} }),
	ops.AtenTanDefault:           unary(func(x, out mlx.Tid) mlx.OpNode { return &mlx.TanNode{X: x, Out: out} }),
	ops.AtenAsinDefault:          unary(func(x, out mlx.Tid) mlx.OpNode { return &mlx.ArcsinNode{X: x, Out: out} }),
	ops.AtenAcosDefault:          unary(func(x, out mlx.Tid) mlx.OpNode { return &mlx.ArccosNode{X: x, Out: out} }),
	ops.AtenAtanDefault:          unary(func(x, out mlx.Tid) mlx.OpNode { return &mlx.ArctanNode{X: x, Out: out} }),
	ops.AtenSinhDefault:          unary(func(x, out mlx.Tid) mlx.OpNode { return &mlx.SinhNode{X: x, Out: out} }),
	ops.AtenCoshDefault:          unary(func(x, out mlx.Tid) mlx.OpNode { return &mlx.CoshNode{X: x, Out: out} }),
	ops.AtenAsinhDefault:         unary(func(x, out mlx.Tid) mlx.OpNode { return &mlx.ArcsinhNode{X: x, Out: out} }),
	ops.AtenAcoshDefault:         unary(func(x, out mlx.Tid) mlx.OpNode { return &mlx.ArccoshNode{X: x, Out: out} }),
	ops.AtenAtanhDefault:         unary(func(x, out mlx.Tid) mlx.OpNode { return &mlx.ArctanhNode{X: x, Out: out} }),
	ops.AtenLogDefault:           unary(func(x, out mlx.Tid) mlx.OpNode { return &mlx.LogNode{X: x, Out: out} }),
	ops.AtenLog2Default:          unary(func(x, out mlx.Tid) mlx.OpNode { return &mlx.Log2Node{X: x, Out: out} }),
	ops.AtenLog10Default:         unary(func(x, out mlx.Tid) mlx.OpNode { return &mlx.Log10Node{X: x, Out: out} }),
	ops.AtenLog1pDefault:         unary(func(x, out mlx.Tid) mlx.OpNode { return &mlx.Log1pNode{X: x, Out: out} }),
	ops.AtenErfDefault:           unary(func(x, out mlx.Tid) mlx.OpNode { return &mlx.ErfNode{X: x, Out: out} }),
	ops.AtenExpm1Default:         unary(func(x, out mlx.Tid) mlx.OpNode { return &mlx.Expm1Node{X: x, Out: out} }),
	ops.AtenSquareDefault:        unary(func(x, out mlx.Tid) mlx.OpNode { return &mlx.SquareNode{X: x, Out: out} }),
	ops.AtenNegDefault:           unary(func(x, out mlx.Tid) mlx.OpNode { return &mlx.NegNode{X: x, Out: out} }),
	ops.AtenAbsDefault:           integral(func(x, out mlx.Tid) mlx.OpNode { return &mlx.AbsNode{X: x, Out: out} }, ops.Uint8, ops.Uint32, ops.Bool),
	ops.AtenSignDefault:          integral(func(x, out mlx.Tid) mlx.OpNode { return &mlx.SignNode{X: x, Out: out} }, ops.Bool),
	ops.AtenFloorDefault:         integral(func(x, out mlx.Tid) mlx.OpNode { return &mlx.FloorNode{X: x, Out: out} }, anyInt...),
	ops.AtenCeilDefault:          integral(func(x, out mlx.Tid) mlx.OpNode { return &mlx.CeilNode{X: x, Out: out} }, anyInt...),
	ops.AtenTruncDefault:         integral(func(x, out mlx.Tid) mlx.OpNode { return &mlx.TruncNode{X: x, Out: out} }, anyInt...),
	ops.AtenRoundDefault:         integral(func(x, out mlx.Tid) mlx.OpNode { return &mlx.RoundNode{X: x, Out: out} }, anyInt...),
	ops.AtenLogicalNotDefault:    logicalNot,
	ops.AtenBitwiseNotDefault:    bitwiseNot,
	ops.AtenIsnanDefault:         isNaN,
	ops.AtenIsinfDefault:         isInf,
	ops.AtenReluDefault:          relu,
	ops.AtenLeakyReluDefault:     leakyRelu,
	ops.AtenGeluDefault:          gelu,
	ops.AtenHardtanhDefault:      clamp,
	ops.AtenRelu6Default:         relu6,
	ops.AtenClampDefault:         clamp,
	ops.AtenClampTensor:          clamp,
	ops.AtenClampMinDefault:      clampOne,
	ops.AtenClampMinTensor:       clampOne,
	ops.AtenClampMaxDefault:      clampOne,
	ops.AtenClampMaxTensor:       clampOne,
	ops.AtenUnderToCopyDefault:   convert,
	ops.AtenToDtype:              convert,
	ops.AtenCloneDefault:         identity,
	ops.AtenContiguousDefault:    identity,
	ops.AtenAliasDefault:         identity,
	ops.AtenDetachDefault:        identity,
	ops.AtenLiftFreshCopyDefault: identity,
}

var anyInt = []ops.DType{ops.Bool, ops.Uint8, ops.Int8, ops.Int16, ops.Int32, ops.Int64, ops.Uint32}

// unary is a node that computes in the result's element type.
func unary(node unaryNode) rule {
	return func(m *match) emit {
		x, d := m.in(0), m.out().DType
		if d == ops.Bool {
			return m.no("it does not compute this on %s", d)
		}
		return func(b *builder) { b.emit(node(b.inAs(x, d), b.out(0))) }
	}
}

// integral is a unary node that leaves elements of the types in same as they are.
func integral(node unaryNode, same ...ops.DType) rule {
	return func(m *match) emit {
		for _, d := range same {
			if m.typ(0).DType == d {
				return identity(m)
			}
		}
		return unary(node)(m)
	}
}

func identity(m *match) emit {
	x := m.in(0)
	if x.Type.DType != m.out().DType {
		return m.no("it changes the element type")
	}
	return func(b *builder) { b.result(0, b.raw(x)) }
}

func convert(m *match) emit {
	x, d := m.in(0), m.out().DType
	return func(b *builder) { b.result(0, b.cast(b.in(x), d)) }
}

func logicalNot(m *match) emit {
	x := m.in(0)
	return func(b *builder) { b.emit(&mlx.LogicalNotNode{X: b.inAs(x, ops.Bool), Out: b.out(0)}) }
}

func bitwiseNot(m *match) emit {
	x := m.in(0)
	if x.Type.DType == ops.Bool {
		return logicalNot(m)
	}
	return func(b *builder) { b.emit(&mlx.BitwiseInvertNode{X: b.in(x), Out: b.out(0)}) }
}

func isNaN(m *match) emit {
	x := m.in(0)
	return func(b *builder) { b.emit(&mlx.NotEqualNode{A: b.in(x), B: b.in(x), Out: b.out(0)}) }
}

func isInf(m *match) emit {
	x := m.in(0)
	if !x.Type.DType.IsFloat() {
		return m.no("whether integers are infinite is not asked")
	}
	d := x.Type.DType
	return func(b *builder) {
		a := b.temp(d)
		b.emit(&mlx.AbsNode{X: b.in(x), Out: a})
		b.emit(&mlx.EqualNode{A: a, B: b.float(d, inf), Out: b.out(0)})
	}
}

func relu(m *match) emit {
	x, d := m.in(0), m.out().DType
	return func(b *builder) { b.emit(&mlx.MaximumNode{A: b.in(x), B: b.scalar(d, ir.Int(0)), Out: b.out(0)}) }
}

func leakyRelu(m *match) emit {
	x, d, slope := m.in(0), m.out().DType, m.arg(1)
	if _, ok := slope.Float(); !ok || !d.IsFloat() {
		return m.no("its slope is computed, or its elements are integers")
	}
	return func(b *builder) {
		positive, scaled := b.temp(ops.Bool), b.temp(d)
		b.emit(&mlx.GreaterEqualNode{A: b.in(x), B: b.float(d, 0), Out: positive})
		b.emit(&mlx.MultiplyNode{A: b.in(x), B: b.scalar(d, slope), Out: scaled})
		b.emit(&mlx.WhereNode{Condition: positive, X: b.in(x), Y: scaled, Out: b.out(0)})
	}
}

func gelu(m *match) emit {
	x := m.in(0)
	approximate, ok := m.arg(1).Str()
	if !ok || approximate != "none" && approximate != "tanh" {
		return m.no("approximation %q", approximate)
	}
	return func(b *builder) { b.emit(&mlx.GeluNode{X: b.in(x), Out: b.out(0), Approximate: approximate}) }
}

func relu6(m *match) emit { return clip(m, ir.Int(0), ir.Int(6)) }

// clamp is clamp and hardtanh: a lower and an upper bound, numbers or tensors.
func clamp(m *match) emit { return clip(m, m.arg(1), m.arg(2)) }

func clampOne(m *match) emit {
	if m.n.Op == ops.AtenClampMinDefault || m.n.Op == ops.AtenClampMinTensor {
		return clip(m, m.arg(1), ir.None)
	}
	return clip(m, ir.None, m.arg(1))
}

func clip(m *match, lo, hi ir.Arg) emit {
	x, d := m.in(0), m.out().DType
	if lo.IsNone() && hi.IsNone() {
		return m.no("it has no bound")
	}
	for _, a := range []ir.Arg{lo, hi} {
		if !a.IsNone() && !numeric(a, d) {
			return m.no("a bound does not fit %s", d)
		}
	}
	return func(b *builder) {
		n := &mlx.ClipNode{X: b.inAs(x, d)}
		if !lo.IsNone() {
			t := b.operand(lo, d)
			n.AMin = &t
		}
		if !hi.IsNone() {
			t := b.operand(hi, d)
			n.AMax = &t
		}
		n.Out = b.out(0)
		b.emit(n)
	}
}

// numeric tells whether a can be an operand of element type d.
func numeric(a ir.Arg, d ops.DType) bool {
	if v := a.Value(); v != nil {
		return v.Type.IsTensor() || v.Type.Known
	}
	if _, ok := a.Float(); ok {
		_, ok = encode(d, a)
		return ok
	}
	_, ok := a.Expr()
	return ok
}
