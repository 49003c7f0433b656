package xnnpack

import (
	"context"
	"fmt"

	"github.com/lathe-ml/lathe/codegen/fb/xnnpack"
	"github.com/lathe-ml/lathe/codegen/xnnpayload"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/partition"
)

// Flags of values.
const (
	flagInput  = 1
	flagOutput = 2
)

// Flags of nodes.
const (
	flagTransposeWeights = 0x01 // also of the second matrix of a batched product
	flagAlignCorners     = 0x08
	flagKeepDims         = 0x40
)

// builder writes the nodes of a region.
type builder struct {
	g       *ir.Graph
	n       *ir.Node // at hand
	err     error
	payload *xnnpayload.Payload
	named   []partition.Named
	keys    map[string]uint32 // constant data by key
	inputs  map[*ir.Value]uint32
	outputs map[*ir.Value]uint32 // external ids of what the region gives out

	values []value
	// plain are the values as torch has them, nhwc the same with the channels innermost. A value is in one, or both.
	plain, nhwc map[*ir.Value]uint32
	// later writes nodes that only move data, when somebody asks for them.
	later  map[*ir.Value]func()
	consts map[string]uint32 // constant values by key and form
	// fused are nodes whose work is part of another's.
	fused map[*ir.Node]bool
	// wide tells that float16 is seen as float32: what the node at hand reads is converted, and what it writes, narrow, back.
	wide    bool
	narrow  []narrowed
	widened map[uint32]uint32
	// scales are those of int8 values.
	scales intScales
	// exact tells that sums of products of what int8 stands for are computed on numbers.
	exact bool
	// dynamic are values quantized when the program runs, by what they are made of.
	dynamic map[uint32]uint32
}

// value is what is known of a value of the payload.
type value struct {
	shape []sym.Expr
	dtype xnnpack.XNNDatatype
	quant xnnpack.XNNQuantParams
}

func newBuilder(g *ir.Graph) *builder {
	scales := moveIntegers(g)
	b := &builder{
		g: g, scales: scales, exact: scales.products(g) < fewProducts, payload: &xnnpayload.Payload{Graph: &xnnpack.XNNGraph{Version: "0", ConstantData: []*xnnpack.ConstantDataOffset{{}}}},
		keys: map[string]uint32{}, inputs: map[*ir.Value]uint32{}, outputs: map[*ir.Value]uint32{},
		plain: map[*ir.Value]uint32{}, nhwc: map[*ir.Value]uint32{}, later: map[*ir.Value]func(){}, consts: map[string]uint32{},
		fused: map[*ir.Node]bool{}, dynamic: map[uint32]uint32{}, widened: map[uint32]uint32{},
	}
	return b
}

func (b *builder) failf(format string, args ...any) {
	if b.err == nil {
		err := fmt.Errorf(format, args...)
		if b.n != nil {
			err = b.n.Diag("xnnpack", err.Error(), "report this: the node was taken for the delegate and could not be written")
		}
		b.err = err
	}
}

// build writes the region's nodes.
func (b *builder) build(ctx context.Context) error {
	var external uint32
	for _, in := range b.g.Inputs {
		if partition.Weight(in.Value) != nil {
			continue
		}
		b.inputs[in.Value] = external
		external++
	}
	for i, o := range b.g.Outputs {
		v := b.g.Ret().In(i)
		if o.Kind != ir.OutputUser || v == nil {
			return fmt.Errorf("region %s: output %d is no tensor", b.g.Name, i)
		}
		b.outputs[v] = external
		external++
	}
	b.payload.Graph.NumExterns = external
	for _, in := range b.g.Inputs {
		id, ok := b.inputs[in.Value]
		if !ok || !in.Value.Type.IsTensor() || in.Value.NumUses() == 0 {
			continue
		}
		t := in.Value.Type
		b.plain[in.Value] = b.declare(value{t.Shape, datatype(t.DType), b.quantOf(in.Value)}, id, flagInput, 0)
	}
	for n := range b.g.Nodes() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if b.fused[n] {
			continue
		}
		e, why := planOf(&match{n: n, taken: true, bytes: b.isInteger(n)})
		if why != nil {
			return why
		}
		b.n = n
		e(b)
		if b.err != nil {
			return b.err
		}
	}
	b.n = nil
	for i := range b.g.Outputs {
		b.giveOut(b.g.Ret().In(i))
	}
	return b.err
}

// isInteger tells nodes that moveIntegers put on int8.
func (b *builder) isInteger(n *ir.Node) bool {
	if len(n.Outs) == 0 || n.Op == ops.QuantizedDecomposedQuantizePerTensorDefault {
		return false
	}
	_, ok := b.scales[n.Outs[0]]
	return ok
}

func datatype(d ops.DType) xnnpack.XNNDatatype {
	switch d {
	case ops.Float32:
		return xnnpack.XNNDatatypeFp32
	case ops.Float16:
		return xnnpack.XNNDatatypeFp16
	case ops.BFloat16:
		return xnnpack.XNNDatatypeBf16
	case ops.Int8:
		return xnnpack.XNNDatatypeQint8
	}
	return xnnpack.XNNDatatypeInvalid
}

// giveOut makes sure that v is written to the memory of the call.
func (b *builder) giveOut(v *ir.Value) {
	id := b.in(v)
	if b.err != nil || b.isExternalOutput(id, b.outputs[v]) {
		return
	}
	out := b.declare(value{v.Type.Shape, b.values[id].dtype, b.values[id].quant}, b.outputs[v], flagOutput, 0)
	b.node(&xnnpack.XNNCopy{InputID: id, OutputID: out})
}

func (b *builder) isExternalOutput(id, external uint32) bool {
	v, _ := tensorOf(b.payload.Graph.Xvalues[id])
	return v.Flags == flagOutput && v.ExternalID == external
}

// define declares a value. The sizes written are those of the export; the delegate follows the sizes of the call.
func (b *builder) define(shape []sym.Expr, d xnnpack.XNNDatatype, external, flags, constant uint32) uint32 {
	return b.declare(value{shape: shape, dtype: d}, external, flags, constant)
}

func (b *builder) declare(v value, external, flags, constant uint32) uint32 {
	id := uint32(len(b.payload.Graph.Xvalues))
	t := b.tensorValue(id, v.shape, v.dtype, external, flags, constant)
	var u xnnpack.XValueUnion = t
	if v.quant != nil {
		u = &xnnpack.XNNQuantizedTensorValue{TensorValue: t, QuantParams: v.quant}
	}
	b.payload.Graph.Xvalues = append(b.payload.Graph.Xvalues, &xnnpack.XValue{XvalueUnion: u})
	b.values = append(b.values, v)
	switch flags {
	case flagInput:
		b.payload.Graph.InputIDs = append(b.payload.Graph.InputIDs, id)
	case flagOutput:
		b.payload.Graph.OutputIDs = append(b.payload.Graph.OutputIDs, id)
	}
	return id
}

func (b *builder) tensorValue(id uint32, shape []sym.Expr, d xnnpack.XNNDatatype, external, flags, constant uint32) *xnnpack.XNNTensorValue {
	dims := make([]uint32, len(shape))
	for i, e := range shape {
		k, err := sym.Eval(e, b.g.Root().Syms)
		if err != nil || k < 1 {
			k = 1
		}
		dims[i] = uint32(k)
	}
	return &xnnpack.XNNTensorValue{
		Datatype: d, NumDims: uint32(len(dims)), Dims: dims, ExternalID: external, Flags: flags, IDOut: id, ConstantBufferIdx: constant,
	}
}

// temp is a new value of that shape.
func (b *builder) temp(shape []sym.Expr, d xnnpack.XNNDatatype) uint32 {
	return b.define(shape, d, xnnpayload.InvalidID, 0, 0)
}

// like is a new value of the shape and type of another.
func (b *builder) like(id uint32) uint32 { return b.resized(id, b.values[id].shape) }

// resized is a new value of the type of another.
func (b *builder) resized(id uint32, shape []sym.Expr) uint32 {
	v := b.values[id]
	v.shape = shape
	return b.declare(v, xnnpayload.InvalidID, 0, 0)
}

func (b *builder) node(u xnnpack.XNodeUnion) *xnnpack.XNode {
	x := &xnnpack.XNode{XnodeUnion: u}
	b.payload.Graph.Xnodes = append(b.payload.Graph.Xnodes, x)
	return x
}

// in is the value of v as torch has it.
func (b *builder) in(v *ir.Value) uint32 {
	if b.wide && isHalf(v.Type) {
		if in := partition.Weight(v); in != nil {
			return b.weight(in, nil)
		}
		return b.widen(v, b.in)
	}
	if id, ok := b.find(b.plain, v); ok {
		return id
	}
	if in := partition.Weight(v); in != nil {
		id := b.weight(in, nil)
		b.plain[v] = id
		return id
	}
	id, ok := b.nhwc[v]
	if !ok {
		b.failf("%s is read before it is there", v.Name)
		return 0
	}
	out := b.outOf(v)
	b.transposeTo(id, channelsOut[v.Type.Rank()], out)
	return out
}

func (b *builder) find(m map[*ir.Value]uint32, v *ir.Value) (uint32, bool) {
	if f := b.later[v]; f != nil {
		delete(b.later, v)
		at, wide := b.n, b.wide
		b.n, b.wide = v.Def, false
		f()
		b.n, b.wide = at, wide
	}
	id, ok := m[v]
	return id, ok
}

// out declares the node's result i.
func (b *builder) out(i int) uint32 { return b.outOf(b.n.Outs[i]) }

// outOf declares v, in the memory of the call where the region gives it out.
func (b *builder) outOf(v *ir.Value) uint32 {
	if b.wide && isHalf(v.Type) {
		return b.widenOut(v, v.Type.Shape, b.outOf)
	}
	external, flags := uint32(xnnpayload.InvalidID), uint32(0)
	if e, ok := b.outputs[v]; ok {
		external, flags = e, flagOutput
	}
	id := b.declare(value{v.Type.Shape, datatype(v.Type.DType), b.quantOf(v)}, external, flags, 0)
	b.plain[v] = id
	return id
}
