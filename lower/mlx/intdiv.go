package mlx

import (
	"math"

	"github.com/lathe-ml/lathe/codegen/fb/mlx"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ops"
)

// magnitude bounds the absolute values of integers, as far as the graph tells: infinity where it does not.
func magnitude(g *ir.Graph, a ir.Arg) float64 { return bound(g, a, 24) }

func bound(g *ir.Graph, a ir.Arg, depth int) float64 {
	if e, ok := a.Expr(); ok && a.Value() == nil {
		r := g.Root().Syms.Range(e)
		if !r.HasMin() || !r.HasMax() {
			return math.Inf(1)
		}
		return max(math.Abs(float64(r.Min)), math.Abs(float64(r.Max)))
	}
	if f, ok := a.Float(); ok {
		return math.Abs(f)
	}
	v := a.Value()
	if v == nil || depth == 0 {
		return math.Inf(1)
	}
	if v.Type.IsTensor() {
		switch v.Type.DType {
		case ops.Bool:
			return 1
		case ops.Int8, ops.Uint8, ops.Int16:
			return math.Ldexp(1, int(8*v.Type.DType.Size()))
		}
	}
	n := v.Def
	if n == nil {
		return math.Inf(1)
	}
	arg := func(i int) float64 { return bound(g, n.Arg(i), depth-1) }
	places := func(dim int) float64 {
		x := n.In(0)
		if x == nil || x.Type.Rank() == 0 {
			return 1
		}
		d, ok := n.Arg(dim).Int()
		if !ok {
			return bound(g, ir.SymInt(x.Type.Numel()), depth-1)
		}
		return bound(g, ir.SymInt(ir.Dim(x, int(d))), depth-1)
	}
	switch n.Op {
	case ops.AtenArangeDefault:
		return arg(0)
	case ops.AtenArangeStart, ops.AtenArangeStartStep:
		return max(arg(0), arg(1))
	case ops.AtenViewDefault, ops.AtenReshapeDefault, ops.AtenUnderUnsafeViewDefault, ops.AtenUnsqueezeDefault, ops.AtenSqueezeDim,
		ops.AtenSqueezeDims, ops.AtenSqueezeDefault, ops.AtenPermuteDefault, ops.AtenTransposeInt, ops.AtenExpandDefault,
		ops.AtenSliceTensor, ops.AtenSelectInt, ops.AtenCloneDefault, ops.AtenContiguousDefault, ops.AtenRepeatDefault,
		ops.AtenFlipDefault, ops.AtenIndexTensor, ops.AtenIndexSelectDefault, ops.AtenGatherDefault, ops.AtenNegDefault,
		ops.AtenAbsDefault, ops.AtenFloorDivideDefault, ops.AtenRollDefault, ops.AtenRepeatInterleaveSelfInt:
		return arg(0)
	case ops.AtenToDtype, ops.AtenUnderToCopyDefault:
		if x := n.In(0); x != nil && !x.Type.DType.IsFloat() {
			return arg(0)
		}
	case ops.AtenArgmaxDefault, ops.AtenArgminDefault, ops.AtenArgsortDefault:
		return places(1)
	case ops.AtenTopkDefault:
		if v == n.Outs[1] {
			return places(2)
		}
		return arg(0)
	case ops.AtenSortDefault, ops.AtenMaxDim, ops.AtenMinDim:
		if v == n.Outs[1] {
			return places(1)
		}
		return arg(0)
	case ops.AtenAddTensor, ops.AtenAddScalar, ops.AtenSubTensor, ops.AtenSubScalar:
		if f, ok := n.ArgNamed("alpha").Float(); ok && f == 1 {
			return arg(0) + arg(1)
		}
	case ops.AtenMulTensor, ops.AtenMulScalar:
		return arg(0) * arg(1)
	case ops.AtenRemainderTensor, ops.AtenRemainderScalar:
		return arg(1)
	case ops.AtenMaximumDefault, ops.AtenMinimumDefault:
		return max(arg(0), arg(1))
	case ops.AtenWhereSelf:
		return max(arg(1), arg(2))
	case ops.AtenClampDefault:
		if !n.Arg(1).IsNone() && !n.Arg(2).IsNone() {
			return max(arg(1), arg(2))
		}
	case ops.AtenFullDefault:
		return arg(1)
	case ops.AtenZerosDefault, ops.AtenZerosLikeDefault, ops.AtenOnesDefault, ops.AtenOnesLikeDefault:
		return 1
	}
	return math.Inf(1)
}

// divideInts gives the integer x/y, rounded down or towards zero. The delegate divides integers as 32-bit floats, so the
// rest is taken off first, which leaves a product of y, and a quotient beyond the precision of floats is found in parts:
// that of the product, then that of what is still missing.
func (b *builder) divideInts(x, y mlx.Tid, d ops.DType, towardZero bool, most float64) mlx.Tid {
	two := func(node binaryNode, e ops.DType, p, q mlx.Tid) mlx.Tid {
		out := b.temp(e)
		b.emit(node(p, q, out))
		return out
	}
	var rest mlx.Tid
	if towardZero {
		rest = b.fmod(x, y, d)
	} else {
		rest = two(remNode, d, x, y)
	}
	left := two(subNode, d, x, rest)
	var quotient mlx.Tid
	for part := 0; ; part++ {
		f, r, q := b.temp(ops.Float32), b.temp(ops.Float32), b.temp(d)
		b.emit(divNode(left, y, f))
		b.emit(&mlx.RoundNode{X: f, Out: r})
		b.emit(&mlx.AsTypeNode{X: r, Out: q, ScalarType: scalarType(d)})
		if part == 0 {
			quotient = q
		} else {
			quotient = two(addNode, d, quotient, q)
		}
		// Each part has 21 bits that are certain.
		if most = math.Ldexp(most, -21); most <= 1 {
			return quotient
		}
		left = two(subNode, d, left, two(mulNode, d, q, y))
	}
}

// exactInts bounds integers whose quotients FloorDivideNode rounds down right: as 32-bit floats they and the quotients are
// exact enough.
const exactInts = 1 << 23

// floorDivideInts is x/y rounded down for divisors of at most divisor, which is less than exactInts/2: a first quotient in
// floats leaves a rest that is smaller by the precision of floats, until the rest and the divisor are exact as floats.
func (b *builder) floorDivideInts(x, y mlx.Tid, d ops.DType, most, divisor float64) mlx.Tid {
	two := func(node binaryNode, p, q mlx.Tid) mlx.Tid {
		out := b.temp(d)
		b.emit(node(p, q, out))
		return out
	}
	var quotient mlx.Tid
	for part := 0; ; part++ {
		f, q := b.temp(ops.Float32), b.temp(d)
		b.emit(&mlx.FloorDivideNode{A: x, B: y, Out: f})
		b.emit(&mlx.AsTypeNode{X: f, Out: q, ScalarType: scalarType(d)})
		if part == 0 {
			quotient = q
		} else {
			quotient = two(addNode, quotient, q)
		}
		if most < exactInts {
			return quotient
		}
		x = two(subNode, x, two(mulNode, q, y))
		most = math.Ldexp(most, -22) + divisor
	}
}

// fmod is the rest of x/y with the sign of x.
func (b *builder) fmod(x, y mlx.Tid, d ops.DType) mlx.Tid {
	ax, ay, r, s, out := b.temp(d), b.temp(d), b.temp(d), b.temp(d), b.temp(d)
	b.emit(&mlx.AbsNode{X: x, Out: ax})
	b.emit(&mlx.AbsNode{X: y, Out: ay})
	b.emit(remNode(ax, ay, r))
	b.emit(&mlx.SignNode{X: x, Out: s})
	b.emit(mulNode(r, s, out))
	return out
}

// largest is the greatest absolute value of an integer type.
func largest(d ops.DType) float64 { return math.Ldexp(1, int(8*d.Size()-1)) }
