package passes

import (
	"bufio"
	"errors"
	"io"
	"slices"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// QuantizedEmbedding looks integers up instead of numbers.
var QuantizedEmbedding = Pass{
	Name: "quantized-embedding",
	Doc:  "Takes rows from a quantized table and dequantizes these alone: with one kernel where the runtime has it, a table of 4 bits then being kept packed.",
	Run: func(ctx *Context, g *ir.Graph) error {
		if g.Stage == ops.StageAten {
			return nil
		}
		written := map[*ir.Input]bool{}
		for _, o := range g.Outputs {
			if o.Target != nil {
				written[o.Target] = true
			}
		}
		packed := map[*ir.Input]*ir.Value{}
		for n := range g.Nodes() {
			t, ok := readTable(n)
			if !ok || written[t.numbers] {
				continue
			}
			b, ok := ctx.Rewrite(n, "rows")
			if !ok {
				continue
			}
			v := t.kernel(b, n, packed)
			if v == nil || b.Err == nil && ctx.legal(v.Def) != nil {
				if v != nil {
					g.Erase(v.Def)
				}
				v = t.rows(b, n)
			}
			if err := ctx.replace(b, n, v); err != nil {
				return err
			}
		}
		return nil
	},
}

// quantTable is a constant table of integers that an embedding reads dequantized.
type quantTable struct {
	deq     *ir.Node
	numbers *ir.Input
	group   int64
	lo, hi  int64
}

func readTable(n *ir.Node) (t quantTable, ok bool) {
	if n.Op != ops.AtenEmbeddingDefault || n.In(0).Def == nil || n.In(0).Def.Op != ops.TorchaoDequantizeAffineDefault {
		return t, false
	}
	t.deq = n.In(0).Def
	x := t.deq.In(0)
	if x == nil || x.Input == nil || x.Input.Data == nil || x.Input.Kind == ir.InputUser || x.Type.DType != ops.Int8 || x.Type.Rank() != 2 {
		return t, false
	}
	t.numbers = x.Input
	block, okB := t.deq.ArgNamed("block_size").IntList()
	lo, okL := t.deq.ArgNamed("quant_min").Int()
	hi, okH := t.deq.ArgNamed("quant_max").Int()
	if !okB || !okL || !okH || len(block) != 2 || block[0] != 1 || block[1] <= 0 || t.scale() == nil {
		return t, false
	}
	t.group, t.lo, t.hi = block[1], lo, hi
	return t, t.scale().Type.Rank() == 2
}

func (t quantTable) scale() *ir.Value { return t.deq.ArgNamed("scale").Value() }

// zero is the zero points, nil where they are none or known to be zero.
func (t quantTable) zero() *ir.Value {
	v := t.deq.ArgNamed("zero_point").Value()
	if v == nil || v.Input == nil || v.Input.Data == nil || v.Input.Kind == ir.InputUser {
		return v
	}
	p, err := v.Input.Data.Compact()
	if err != nil || slices.ContainsFunc(p, func(x byte) bool { return x != 0 }) {
		return v
	}
	return nil
}

// kernel is the look-up as one node, nil where there is none for the table.
func (t quantTable) kernel(b *ir.Builder, n *ir.Node, packed map[*ir.Input]*ir.Value) *ir.Value {
	if t.zero() != nil {
		return nil
	}
	lo, hi, idx, dtype := ir.Int(t.lo), ir.Int(t.hi), n.In(1), op.KW("dtype", ir.DTypeArg(n.Out().Type.DType))
	x := t.deq.In(0)
	d := t.numbers.Data
	if t.lo != -8 || t.hi != 7 || d.Sizes[1]%2 != 0 || t.group%2 != 0 {
		return op.QuantizedDecomposedEmbeddingByteDtype(b, x, t.scale(), nil, lo, hi, idx, dtype)
	}
	w := packed[t.numbers]
	if w == nil {
		w = n.Graph().AddConst(t.numbers.Target+".packed", &ir.Data{
			DType: ops.Uint8, Sizes: []int64{d.Sizes[0], d.Sizes[1] / 2}, Storage: nibbles{d}, Entry: d.Entry,
		})
		packed[t.numbers] = w
	}
	return op.QuantizedDecomposedEmbedding4bitDtype(b, w, t.scale(), nil, lo, hi, idx, dtype)
}

// rows takes rows of integers and of scales, and dequantizes them.
func (t quantTable) rows(b *ir.Builder, n *ir.Node) *ir.Value {
	idx := n.In(1)
	take := func(v *ir.Value) *ir.Value {
		if v == nil {
			return nil
		}
		return op.AtenEmbeddingDefault(b, v, idx)
	}
	block := make([]sym.Expr, n.Out().Type.Rank())
	for i := range block {
		block[i] = sym.Const(1)
	}
	block[len(block)-1] = sym.Const(t.group)
	return op.TorchaoDequantizeAffineDefault(b, take(t.deq.In(0)), ir.SymInts(block...), take(t.scale()), take(t.zero()), t.deq.ArgNamed("input_dtype"),
		op.KW("quant_min", ir.Int(t.lo)), op.KW("quant_max", ir.Int(t.hi)), op.KW("output_dtype", ir.DTypeArg(n.Out().Type.DType)))
}

// nibbles is the storage of integers of 4 bits, plus 8, two to a byte, the first in the high half.
type nibbles struct{ from *ir.Data }

// Size is the number of bytes.
func (s nibbles) Size() int64 { return s.from.Numel() / 2 }

// Bytes packs the integers.
func (s nibbles) Bytes() ([]byte, error) {
	out := make(appender, 0, s.Size())
	_, err := s.WriteTo(&out)
	return out, err
}

// WriteTo packs the integers piece by piece.
func (s nibbles) WriteTo(w io.Writer) (int64, error) {
	p := &nibbleWriter{w: bufio.NewWriterSize(w, 1<<16)}
	if _, err := s.from.WriteTo(p); err != nil {
		return p.n, err
	}
	return p.n, p.w.Flush()
}

type nibbleWriter struct {
	w    *bufio.Writer
	n    int64
	high byte
	half bool
}

func (p *nibbleWriter) Write(xs []byte) (int, error) {
	for i, b := range xs {
		x := int8(b)
		if x < -8 || x > 7 {
			return i, errors.New("a number outside of 4 bits in a table of such")
		}
		if p.half = !p.half; p.half {
			p.high = byte(x+8) << 4
			continue
		}
		if err := p.w.WriteByte(p.high | byte(x+8)); err != nil {
			return i, err
		}
		p.n++
	}
	return len(xs), nil
}
