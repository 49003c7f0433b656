package xnnpack

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/partition"
	"github.com/lathe-ml/lathe/passes"
)

// FoldWeights makes floats of quantized weights that no node of the delegate reads as integers.
var FoldWeights = passes.Pass{
	Name: "fold-quantized-weights",
	Doc:  "Replaces the dequantization of int8 weights of convolutions, and of others that are not for linear layers, by constants computed when they are written.",
	Run: func(ctx *passes.Context, g *ir.Graph) error {
		for n := range g.Nodes() {
			w, ok := readDequantized(n)
			if !ok || n.Out().NumUses() == 0 {
				continue
			}
			if _, why := plan(n); why == nil {
				continue
			}
			if !ctx.Allow(n, "fold") {
				continue
			}
			c := g.AddConst(n.Out().Name+"_dequantized", &ir.Data{
				DType: ops.Float32, Sizes: w.data.Data.Sizes, Storage: w, Entry: w.data.Data.Entry,
			})
			g.Replace(n, c)
		}
		return nil
	},
}

// dequantized is the storage of floats that int8 constants stand for, computed when asked for.
type dequantized struct {
	data, scale, zero *ir.Input
	uniform           scale // where scale is nil
	axis              int
}

// readDequantized reads the dequantization of an int8 constant, with one scale or one for each index of an axis.
func readDequantized(n *ir.Node) (*dequantized, bool) {
	w := &dequantized{}
	switch n.Op {
	case ops.QuantizedDecomposedDequantizePerTensorDefault:
		s, ok := n.Arg(1).Float()
		z, ok2 := n.Arg(2).Int()
		if !ok || !ok2 {
			return nil, false
		}
		w.uniform = scale{s, z}
	case ops.QuantizedDecomposedDequantizePerChannelDefault:
		axis, ok := n.ArgNamed("axis").Int()
		w.scale = partition.Weight(n.In(1))
		if !ok || w.scale == nil || w.scale.Data.DType != ops.Float32 {
			return nil, false
		}
		if v := n.In(2); v != nil {
			if w.zero = partition.Weight(v); w.zero == nil {
				return nil, false
			}
		}
		rank := n.In(0).Type.Rank()
		if axis < 0 {
			axis += int64(rank)
		}
		if axis < 0 || axis >= int64(rank) {
			return nil, false
		}
		w.axis = int(axis)
	default:
		return nil, false
	}
	w.data = partition.Weight(n.In(0))
	if w.data == nil || w.data.Data.DType != ops.Int8 || n.Out().Type.DType != ops.Float32 {
		return nil, false
	}
	if w.scale != nil && w.scale.Data.Numel() != w.data.Data.Sizes[w.axis] {
		return nil, false
	}
	return w, w.zero == nil || w.zero.Data.Numel() == w.scale.Data.Numel()
}

// Size is the number of bytes of the floats.
func (w *dequantized) Size() int64 { return 4 * w.data.Data.Numel() }

// Bytes computes the floats.
func (w *dequantized) Bytes() ([]byte, error) {
	p, err := w.data.Data.Compact()
	if err != nil {
		return nil, err
	}
	scales, zeros := []float32{float32(w.uniform.scale)}, []float32{float32(w.uniform.zero)}
	inner, channels := int64(1), int64(1)
	if w.scale != nil {
		if scales, err = readFloats(w.scale.Data); err != nil {
			return nil, err
		}
		channels = int64(len(scales))
		if zeros, err = readIntegers(w.zero, len(scales)); err != nil {
			return nil, err
		}
		for _, k := range w.data.Data.Sizes[w.axis+1:] {
			inner *= k
		}
	}
	out := make([]byte, 0, 4*len(p))
	for i, x := range p {
		c := int64(i) / inner % channels
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits((float32(int8(x))-zeros[c])*scales[c]))
	}
	return out, nil
}

// readIntegers gives zero points as floats, zeros where there are none.
func readIntegers(in *ir.Input, n int) ([]float32, error) {
	fs := make([]float32, n)
	if in == nil {
		return fs, nil
	}
	p, err := in.Data.Compact()
	if err != nil {
		return nil, err
	}
	for i := range fs {
		switch in.Data.DType {
		case ops.Int8:
			fs[i] = float32(int8(p[i]))
		case ops.Int32:
			fs[i] = float32(int32(binary.LittleEndian.Uint32(p[4*i:])))
		case ops.Int64:
			fs[i] = float32(int64(binary.LittleEndian.Uint64(p[8*i:])))
		case ops.Float32:
			fs[i] = math.Float32frombits(binary.LittleEndian.Uint32(p[4*i:]))
		default:
			return nil, fmt.Errorf("zero points %q of %s", in.Target, in.Data.DType)
		}
	}
	return fs, nil
}

// OwnWeights gives each reader of a quantized weight a dequantization of its own, so that they end in one region.
var OwnWeights = passes.Pass{
	Name: "own-quantized-weights",
	Doc:  "Copies the node that dequantizes a weight for each node that reads it: the delegate takes both as one.",
	Run: func(ctx *passes.Context, g *ir.Graph) error {
		g.Walk(func(h *ir.Graph) {
			for n := range h.Nodes() {
				if len(n.Outs) != 1 {
					continue
				}
				if _, ok := readWeight(n.Out()); !ok {
					continue
				}
				if _, why := plan(n); why != nil {
					continue
				}
				users := n.Out().Users()
				for _, u := range users[min(1, len(users)):] {
					if !ctx.Allow(n, "copy") {
						continue
					}
					c := h.NewNode(n, n.Op, append([]ir.Arg(nil), n.Args()...), []ir.Type{n.Out().Type}, n.Origin)
					u.ReplaceUses(n.Out(), c.Out())
				}
			}
		})
		return nil
	},
}
