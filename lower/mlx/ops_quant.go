package mlx

import (
	"github.com/lathe-ml/lathe/codegen/fb/mlx"
	"github.com/lathe-ml/lathe/ops"
)

var quantRules = map[ops.ID]rule{
	ops.TorchaoDequantizeAffineDefault:     dequantizeRule,
	ops.TorchaoDequantizeInt4TensorDefault: dequantizeRule,
	ops.TorchaoDequantizeNvfp4Default:      dequantizeRule,
	ops.TorchaoDequantizeMxDefault:         dequantizeRule,
	ops.TorchaoDequantizeGgufDefault:       dequantizeRule,
}

// dequantizeRule unpacks a weight as a whole; where a product or a table look-up takes the packed form nobody reads it.
func dequantizeRule(m *match) emit {
	v := m.n.Out()
	p, why := unpack(v)
	if p == nil {
		if why == "" {
			why = "what it dequantizes is computed"
		}
		return m.no("%s", why)
	}
	if why := heldType(v.Type); why != "" {
		return m.no("%s", why)
	}
	return func(b *builder) {
		t := b.dequantize(p, b.words(p), b.scales(p), b.biases(p))
		if p.perm == nil {
			b.result(0, t)
			return
		}
		back := make([]int32, len(p.perm))
		for i, k := range p.perm {
			back[k] = int32(i)
		}
		b.emit(&mlx.TransposeNode{X: t, Out: b.out(0), Perm: back})
	}
}

// quantizedLinear is a product with packed weights, nil where the weights are none.
func quantizedLinear(m *match) emit {
	p, _ := unpack(m.in(1))
	if p == nil || p.perm != nil || len(p.lead) != 1 || p.mode == "affine" && p.group < 32 {
		return nil
	}
	x, bias, d := m.in(0), m.in(2), m.out().DType
	if !d.IsFloat() || x.Type.Rank() == 0 {
		return nil
	}
	return func(b *builder) {
		made := d
		if p.mode == "affine" {
			made = promote(d, p.scaleType())
		}
		n := &mlx.QuantizedMatmulNode{
			X: b.in(x), W: b.words(p), Scales: b.scales(p), Biases: b.biases(p), GroupSize: int32(p.group), Bits: int32(p.bits),
			Mode: p.mode, Transpose: true, Out: b.temp(made),
		}
		b.emit(n)
		t := n.Out
		if g := b.wholeScale(p); g != nil {
			y := b.temp(made)
			b.emit(mulNode(t, b.cast(*g, made), y))
			t = y
		}
		if bias != nil {
			y := b.temp(made)
			b.emit(addNode(t, b.in(bias), y))
			t = y
		}
		b.finally(0, t)
	}
}

// quantizedEmbedding takes packed rows and unpacks only these, nil where the weights are not packed.
func quantizedEmbedding(m *match) emit {
	p, _ := unpack(m.in(0))
	if p == nil || p.perm != nil || len(p.lead) != 1 {
		return nil
	}
	at := m.in(1)
	return func(b *builder) {
		row := func(t mlx.Tid) mlx.Tid {
			out := b.temp(b.dtype(t))
			take(b, t, b.index(at), out, 0)
			return out
		}
		w, s := row(b.words(p)), row(b.scales(p))
		var biases *mlx.Tid
		if t := b.biases(p); t != nil {
			r := row(*t)
			biases = &r
		}
		b.finally(0, b.dequantize(p, w, s, biases))
	}
}
