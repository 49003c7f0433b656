package xnnpack

import (
	"math"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/partition"
	"github.com/lathe-ml/lathe/passes"
)

// AttentionMasks gives every attention a mask that the delegate can add.
var AttentionMasks = passes.Pass{
	Name: "attention-masks",
	Doc: "Makes the masks of attention finite numbers to add, causal ones written out; rows that a mask hides all of give zeros by a factor. " +
		"Layers that share a mask share what is made of it.",
	Run: func(ctx *passes.Context, g *ir.Graph) error {
		var err error
		g.Walk(func(h *ir.Graph) {
			for n := range h.Nodes() {
				if e := finiteMask(ctx, n); e != nil && err == nil {
					err = e
				}
			}
		})
		return err
	},
}

// maxHalf is the largest number in float16. Its negation stands for minus infinity in masks, as that of the largest in
// float32 does there: no score lifts it, and it can be added to any.
const (
	maxHalf  = 65504
	maxBrain = 0x1.fep127
)

func finiteMask(ctx *passes.Context, n *ir.Node) error {
	if n.Op != ops.AtenScaledDotProductAttentionDefault || heldType(n.Out().Type) != "" {
		return nil
	}
	causal, ok := n.ArgNamed("is_causal").Bool()
	mask := n.In(3)
	if !ok || causal && mask != nil || mask == nil && !causal || mask != nil && finite(mask) {
		return nil
	}
	b, ok := ctx.Rewrite(n, "finite")
	if !ok {
		return nil
	}
	dtype, hidden := n.Out().Type.DType, -math.MaxFloat32
	switch dtype {
	case ops.Float16:
		hidden = -maxHalf
	case ops.BFloat16:
		hidden = -maxBrain
	}
	number := func(f float64) *ir.Value {
		return op.AtenFullDefault(b, ir.List(), ir.Float(f), op.KW("dtype", ir.DTypeArg(dtype)))
	}
	var seen *ir.Value
	switch {
	case causal:
		count := func(e sym.Expr, d int64) *ir.Value {
			v := op.AtenArangeStartStep(b, ir.Int(0), ir.SymInt(e), op.KW("dtype", ir.DTypeArg(ops.Int64)))
			if b.Err != nil {
				return nil
			}
			return op.AtenUnsqueezeDefault(b, v, ir.Int(d))
		}
		row, column := count(ir.Dim(n.In(0), -2), 1), count(ir.Dim(n.In(1), -2), 0)
		if b.Err == nil {
			mask = op.AtenWhereSelf(b, op.AtenGeTensor(b, row, column), number(0), number(hidden))
		}
	case mask.Type.DType == ops.Bool:
		seen = mask
		mask = op.AtenWhereSelf(b, mask, number(0), number(hidden))
	case mask.Type.DType == dtype:
		seen = op.AtenNeScalar(b, mask, ir.Float(math.Inf(-1)))
		mask = op.AtenClampDefault(b, mask, op.KW("min", ir.Float(hidden)))
	default:
		return nil
	}
	kw := []ir.Named{op.KW("attn_mask", ir.RefAny(mask))}
	for _, name := range []string{"dropout_p", "scale", "enable_gqa"} {
		kw = append(kw, op.KW(name, n.ArgNamed(name)))
	}
	if b.Err != nil {
		return b.Err
	}
	y := op.AtenScaledDotProductAttentionDefault(b, n.In(0), n.In(1), n.In(2), kw...)
	if seen != nil && b.Err == nil && seen.Type.Rank() > 0 {
		some := op.AtenAnyDims(b, seen, op.KW("dim", ir.Ints(-1)), op.KW("keepdim", ir.Bool(true)))
		y = op.AtenMulTensor(b, y, op.AtenUnderToCopyDefault(b, some, op.KW("dtype", ir.DTypeArg(dtype))))
	}
	if b.Err != nil {
		return b.Err
	}
	n.Graph().Replace(n, y)
	return nil
}

// finite tells values none of whose elements is infinite, by what makes them.
func finite(v *ir.Value) bool {
	n := v.Def
	if n == nil {
		return finiteConstant(v)
	}
	number := func(a ir.Arg) bool {
		f, ok := a.Float()
		return ok && !math.IsInf(f, 0) && math.Abs(f) <= math.MaxFloat32
	}
	switch n.Op {
	case ops.AtenFullDefault, ops.AtenFullLikeDefault:
		return number(n.Arg(1))
	case ops.AtenScalarTensorDefault:
		return number(n.Arg(0))
	case ops.AtenZerosDefault, ops.AtenZerosLikeDefault, ops.AtenOnesDefault, ops.AtenOnesLikeDefault:
		return true
	case ops.AtenClampDefault:
		lo := n.Arg(1)
		return number(lo)
	case ops.AtenWhereSelf:
		return finite(n.In(1)) && finite(n.In(2))
	case ops.AtenWhereScalar:
		return number(n.Arg(1)) && number(n.Arg(2))
	case ops.AtenWhereScalarSelf:
		return number(n.Arg(1)) && finite(n.In(2))
	case ops.AtenWhereScalarOther:
		return finite(n.In(1)) && number(n.Arg(2))
	case ops.AtenExpandDefault, ops.AtenViewDefault, ops.AtenReshapeDefault, ops.AtenUnsqueezeDefault, ops.AtenSqueezeDim, ops.AtenSqueezeDims,
		ops.AtenSliceTensor, ops.AtenSelectInt, ops.AtenPermuteDefault, ops.AtenTransposeInt, ops.AtenCloneDefault, ops.AtenContiguousDefault:
		return finite(n.In(0))
	}
	return false
}

// finiteConstant looks at a mask that was computed when the program was compiled.
func finiteConstant(v *ir.Value) bool {
	in := partition.Weight(v)
	if in == nil || in.Kind != ir.InputConst || heldType(in.Value.Type) != "" || in.Data.Numel() > maxMask {
		return false
	}
	if _, ok := in.Data.Storage.(ir.MemStorage); !ok {
		return false
	}
	fs, err := readFloats(in.Data)
	if err != nil {
		return false
	}
	for _, f := range fs {
		if math.IsInf(float64(f), 0) || f != f {
			return false
		}
	}
	return true
}

// maxMask bounds the elements of a constant that are looked at.
const maxMask = 1 << 20
