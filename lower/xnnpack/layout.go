package xnnpack

import (
	"slices"

	"github.com/lathe-ml/lathe/codegen/xnnpayload"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/partition"
)

// The permutations that put the channels, dimension 1, innermost, and back, for tensors of three and four dimensions.
var (
	channelsIn  = map[int][]int{3: {0, 2, 1}, 4: {0, 2, 3, 1}}
	channelsOut = map[int][]int{3: {0, 2, 1}, 4: {0, 3, 1, 2}}
)

// innermost is a shape with the channels innermost.
func innermost(shape []sym.Expr) []sym.Expr { return ir.Permuted(shape, channelsIn[len(shape)]) }

// inNHWC is v, of three or four dimensions, with the channels innermost.
func (b *builder) inNHWC(v *ir.Value) uint32 {
	if b.wide && isHalf(v.Type) {
		if in := partition.Weight(v); in != nil {
			return b.weight(in, &form{perm: channelsIn[len(in.Data.Sizes)]})
		}
		return b.widen(v, b.inNHWC)
	}
	if id, ok := b.find(b.nhwc, v); ok {
		return id
	}
	if in := partition.Weight(v); in != nil {
		id := b.weight(in, &form{perm: channelsIn[len(in.Data.Sizes)]})
		b.nhwc[v] = id
		return id
	}
	id := b.in(v)
	out := b.transpose(id, channelsIn[v.Type.Rank()])
	b.nhwc[v] = out
	return out
}

// outNHWC declares v with the channels innermost.
func (b *builder) outNHWC(v *ir.Value) uint32 {
	if b.wide && isHalf(v.Type) {
		return b.widenOut(v, innermost(v.Type.Shape), b.outNHWC)
	}
	id := b.declare(value{innermost(v.Type.Shape), datatype(v.Type.DType), b.quantOf(v)}, xnnpayload.InvalidID, 0, 0)
	b.nhwc[v] = id
	return id
}

// prefersNHWC tells whether an operation for which the layout makes no difference had better be done with the channels
// innermost: where the larger part of what it reads only exists so.
func (b *builder) prefersNHWC(vs ...*ir.Value) bool {
	votes := 0
	for _, v := range vs {
		if channelsIn[v.Type.Rank()] == nil || isConst(v) {
			continue
		}
		_, hasPlain := b.find(b.plain, v)
		_, hasNHWC := b.nhwc[v]
		switch {
		case hasNHWC && !hasPlain:
			votes++
		case hasPlain && !hasNHWC:
			votes--
		}
	}
	return votes > 0
}

// axisNHWC is where dimension d of rank lies with the channels innermost.
func axisNHWC(rank, d int) int { return slices.Index(channelsIn[rank], d) }
