package xnnpack

import (
	"encoding/binary"
	"math"

	"github.com/x448/float16"

	"github.com/lathe-ml/lathe/codegen/fb/xnnpack"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/partition"
)

// PyTorch computes float16 in float32 and rounds each result once. Where the delegate's own float16 nodes round so, or do
// better than a case could tell, they are used; elsewhere a node is written for float32 with conversions around it, which
// gives the same. bfloat16 is always written so, but for products with constant matrices, which the delegate has.

// wide has r's node computed in float32 where its tensors are float16.
func wide(r rule) rule {
	return func(m *match) emit {
		if e := r(m); e != nil {
			return m.wide(e)
		}
		return nil
	}
}

// half tells nodes whose result is float16.
func (m *match) half() bool { return len(m.n.Outs) > 0 && isHalf(m.n.Outs[0].Type) }

// brain tells nodes that compute on bfloat16, of which the delegate only has products with constant matrices.
func (m *match) brain() bool {
	return len(m.n.Outs) > 0 && m.n.Outs[0].Type.DType == ops.BFloat16 && !moves[m.n.Op] && m.n.Op != ops.AtenUnderToCopyDefault
}

// wide is e, computed in float32 where the node's result is float16.
func (m *match) wide(e emit) emit {
	if !m.half() {
		return e
	}
	return widely(e)
}

// widely is e in float32.
func widely(e emit) emit {
	return func(b *builder) {
		b.wide = true
		e(b)
		b.wide = false
		out := b.narrow
		b.narrow = nil
		for _, w := range out {
			b.convert(w.id, w.declare(w.v))
		}
	}
}

// narrowed is a result in float32 that has to become float16.
type narrowed struct {
	v       *ir.Value
	id      uint32
	declare func(*ir.Value) uint32
}

// widen is v, as in gives it, in float32.
func (b *builder) widen(v *ir.Value, in func(*ir.Value) uint32) uint32 {
	b.wide = false
	id := in(v)
	b.wide = true
	if d := b.values[id].dtype; d != xnnpack.XNNDatatypeFp16 && d != xnnpack.XNNDatatypeBf16 {
		return id
	}
	if out, ok := b.widened[id]; ok {
		return out
	}
	out := b.temp(b.values[id].shape, xnnpack.XNNDatatypeFp32)
	b.convert(id, out)
	b.widened[id] = out
	return out
}

func (b *builder) widenOut(v *ir.Value, shape []sym.Expr, declare func(*ir.Value) uint32) uint32 {
	id := b.temp(shape, xnnpack.XNNDatatypeFp32)
	b.narrow = append(b.narrow, narrowed{v, id, declare})
	return id
}

// float is the type that the node at hand computes in.
func (b *builder) float() xnnpack.XNNDatatype {
	if !b.wide && len(b.n.Outs) > 0 && isHalf(b.n.Outs[0].Type) {
		return datatype(b.n.Outs[0].Type.DType)
	}
	return xnnpack.XNNDatatypeFp32
}

// exactly tells whether float16 holds f.
func exactly(f float64) bool {
	return math.IsInf(f, 0) || float64(float16.Fromfloat32(float32(f)).Float32()) == f
}

// numberBytes are numbers in a type of the delegate.
func numberBytes(fs []float32, d xnnpack.XNNDatatype) []byte {
	if d != xnnpack.XNNDatatypeFp16 {
		return floatBytes(fs)
	}
	p := make([]byte, 0, 2*len(fs))
	for _, f := range fs {
		p = binary.LittleEndian.AppendUint16(p, float16.Fromfloat32(f).Bits())
	}
	return p
}

// numberSize is the number of bytes of a number.
func numberSize(d xnnpack.XNNDatatype) int64 {
	if d == xnnpack.XNNDatatypeFp16 {
		return 2
	}
	return 4
}

// widened is data of 16-bit floats as float32, made when it is written.
func widened(d *ir.Data) partition.Blob {
	return &madeBlob{4 * d.Numel(), func() ([]byte, error) {
		fs, err := readFloats(d)
		return floatBytes(fs), err
	}}
}

// toCopy changes the type between the floats that the delegate has.
func toCopy(m *match) emit {
	x := m.in(0)
	if !m.held(x) || !m.held(m.n.Out()) {
		return nil
	}
	if x.Type.DType == m.out().DType {
		return clone(m)
	}
	return func(b *builder) { b.map1(b.convert) }
}

var halfRules = map[ops.ID]rule{
	ops.AtenUnderToCopyDefault: toCopy,
}
