package passes

import (
	"math"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// attention is softmax(q k^T scale + mask) v. Rows that the mask hides all of give zeros, as PyTorch's safe softmax has it.
// Half types are computed in float32.
func (d *Decomp) attention(q, k, v, mask *ir.Value, causal bool, scale ir.Arg, gqa bool) *ir.Value {
	q, k, v = d.opmath(q), d.opmath(k), d.opmath(v)
	e, ok := ir.Dim(q, -1).IsConst()
	s, given := scale.Float()
	switch {
	case given:
	case ok:
		s = 1 / math.Sqrt(float64(e))
	default:
		return nil
	}
	if gqa {
		k, v = d.shareHeads(k, q), d.shareHeads(v, q)
	}
	scores := d.matmul(d.mul(q, s), d.swap(k, -2, -1))
	l, n := ir.Dim(q, -2), ir.Dim(k, -2)
	if causal {
		if mask != nil {
			return nil
		}
		scores = d.where(d.ge(d.grid(l, 0, 2), d.grid(n, 1, 2)), scores, negInf)
		return d.matmul(d.softmax(scores, scores.Type.Rank()-1), v)
	}
	if mask == nil {
		return d.matmul(d.softmax(scores, scores.Type.Rank()-1), v)
	}
	var seen *ir.Value
	if mask.Type.DType == ops.Bool {
		scores = d.where(mask, scores, negInf)
		seen = mask
	} else {
		scores = d.add(scores, d.opmath(mask))
		seen = d.ne(mask, negInf)
	}
	p := d.softmax(scores, scores.Type.Rank()-1)
	p = d.where(d.any(seen, true, seen.Type.Rank()-1), p, 0.0)
	return d.matmul(p, v)
}

// shareHeads repeats the heads of keys or values for groups of query heads.
func (d *Decomp) shareHeads(x, q *ir.Value) *ir.Value {
	r := x.Type.Rank()
	have, want := ir.Dim(x, -3), ir.Dim(q, -3)
	if have.Equal(want) {
		return x
	}
	n := sym.FloorDiv(want, have)
	s := x.Type.Shape
	y := d.expand(d.unsqueeze(x, r-2), insert(s, r-2, n)...)
	return d.view(y, with(s, r-3, want)...)
}

func decompSdpa(d *Decomp) []*ir.Value {
	if p := floatArg(d.named("dropout_p"), 0); p != 0 {
		return nil
	}
	y := d.attention(d.in(0), d.in(1), d.in(2), d.N.In(3), boolArg(d.named("is_causal")), d.named("scale"), boolArg(d.named("enable_gqa")))
	if y == nil {
		return nil
	}
	return d.back(y)
}

// alone gives the first result where nobody reads the others.
func (d *Decomp) alone(y *ir.Value) []*ir.Value {
	if y == nil {
		return nil
	}
	out := make([]*ir.Value, len(d.N.Outs))
	for _, o := range d.N.Outs[1:] {
		if o.NumUses() > 0 {
			return nil
		}
	}
	out[0] = d.cast(y, d.N.Out().Type.DType)
	return out
}

func decompSdpaMath(d *Decomp) []*ir.Value {
	if p := floatArg(d.named("dropout_p"), 0); p != 0 || !d.named("dropout_mask").IsNone() {
		return nil
	}
	return d.alone(d.attention(d.in(0), d.in(1), d.in(2), d.N.In(3), boolArg(d.named("is_causal")), d.named("scale"), boolArg(d.named("enable_gqa"))))
}

func decompSdpaFlashCpu(d *Decomp) []*ir.Value {
	if p := floatArg(d.named("dropout_p"), 0); p != 0 {
		return nil
	}
	return d.alone(d.attention(d.in(0), d.in(1), d.in(2), d.named("attn_mask").Value(), boolArg(d.named("is_causal")), d.named("scale"), false))
}

func decompSdpaFused(d *Decomp) []*ir.Value {
	if p := floatArg(d.named("dropout_p"), 0); p != 0 {
		return nil
	}
	return d.alone(d.attention(d.in(0), d.in(1), d.in(2), d.named("attn_bias").Value(), boolArg(d.named("is_causal")), d.named("scale"), false))
}
