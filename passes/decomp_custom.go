package passes

import (
	"math"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// cached attends to the first places of a cache, heads before places: query i of a causal one sees what is at start+i and
// before.
func (d *Decomp) cached(q, k, v, mask *ir.Value, causal bool, start, end sym.Expr, scale ir.Arg) *ir.Value {
	k, v = d.slice(k, 2, 0, end), d.slice(v, 2, 0, end)
	if causal {
		row := d.add(d.grid(ir.Dim(q, -2), 0, 2), start)
		mask = d.ge(row, d.grid(end, 1, 2))
	}
	return d.attention(q, k, v, mask, false, scale, true)
}

func decompMlxSdpa(d *Decomp) []*ir.Value {
	start, ok := d.N.Arg(3).Expr()
	if !ok || floatArg(d.named("dropout_p"), 0) != 0 {
		return nil
	}
	q := d.in(0)
	y := d.cached(q, d.in(1), d.in(2), d.N.In(4), boolArg(d.named("is_causal")), start, sym.Add(start, q.Type.Shape[2]), d.named("scale"))
	if y == nil {
		return nil
	}
	return d.back(y)
}

func decompLlamaSdpa(d *Decomp) []*ir.Value {
	start, ok := d.N.Arg(3).Expr()
	if !ok || floatArg(d.named("drpout_p"), 0) != 0 {
		return nil
	}
	q, k, v := d.swap(d.in(0), 1, 2), d.swap(d.in(1), 1, 2), d.swap(d.in(2), 1, 2)
	mask := d.N.In(4)
	end := sym.Add(start, q.Type.Shape[2])
	if mask != nil {
		end = k.Type.Shape[2]
	}
	y := d.cached(q, k, v, mask, boolArg(d.named("is_causal")), start, end, d.named("scale"))
	if y == nil {
		return nil
	}
	return d.back(d.swap(y, 1, 2))
}

// decompMlxRope rotates pairs of features by angles that grow with the position.
func decompMlxRope(d *Decomp) []*ir.Value {
	x := d.in(0)
	n, okN := d.N.Arg(1).Int()
	pos, okP := d.N.Arg(2).Expr()
	if !okN || !okP || n <= 0 || n%2 != 0 || x.Type.Rank() != 4 {
		return nil
	}
	half := n / 2
	t := x.Type.Shape[2]
	scale, base := floatArg(d.named("scale"), 1), floatArg(d.named("base"), 500000)
	at := d.cast(d.add(d.grid(t, 0, 2), pos), ops.Float32)
	var angle *ir.Value
	switch f := d.N.In(6); {
	case f == nil:
		inv := make([]float64, half)
		for j := range inv {
			inv[j] = math.Pow(base, -2*float64(j)/float64(n))
		}
		v, ok := d.constant("frequencies", ops.Float32, []int64{half}, inv)
		if !ok {
			return nil
		}
		angle = d.mul(d.mul(at, v), scale)
	case f.Type.Rank() == 1:
		angle = d.mul(d.div(at, d.cast(f, ops.Float32)), scale)
	default:
		angle = d.cast(d.view(f, t, sym.Const(half)), ops.Float32)
	}
	return one(d.rotate(x, n, angle, boolArg(d.named("traditional"))))
}

// decompRope has frequencies instead of their inverses, and perhaps a start for each sequence.
func decompRope(d *Decomp) []*ir.Value {
	x, inv, starts := d.in(0), d.in(1), d.N.In(3)
	start, okS := d.N.Arg(2).Expr()
	half, okH := inv.Type.Shape[0].IsConst()
	if !okS || !okH {
		return nil
	}
	at := d.add(d.grid(x.Type.Shape[2], 2, 4), start)
	if starts != nil {
		one := sym.Const(1)
		at = d.add(at, d.view(starts, starts.Type.Shape[0], one, one, one))
	}
	angle := d.mul(d.cast(at, ops.Float32), d.cast(inv, ops.Float32))
	return one(d.rotate(x, 2*half, angle, boolArg(d.named("traditional"))))
}

// rotate turns pairs of the first n features by angles, whose sines and cosines are rounded to x's type.
func (d *Decomp) rotate(x *ir.Value, n int64, angle *ir.Value, traditional bool) *ir.Value {
	half := n / 2
	cos, sin := d.cast(d.cos(angle), x.Type.DType), d.cast(d.sin(angle), x.Type.DType)
	rot := d.slice(x, 3, 0, n)
	var a, b *ir.Value
	if traditional {
		a, b = d.step(rot, 3, 0, n, 2), d.step(rot, 3, 1, n, 2)
	} else {
		a, b = d.slice(rot, 3, 0, half), d.slice(rot, 3, half, n)
	}
	re := d.sub(d.mul(a, cos), d.mul(b, sin))
	im := d.add(d.mul(a, sin), d.mul(b, cos))
	var y *ir.Value
	if traditional {
		y = d.view(d.stack(4, re, im), rot.Type.Shape...)
	} else {
		y = d.cat(3, re, im)
	}
	if rest := x.Type.Shape[3]; !rest.IsConstValue(n) {
		y = d.cat(3, y, d.slice(x, 3, n, rest))
	}
	return y
}

// rowsAt picks along the first dimension by an index of any shape; without one it gives x.
func (d *Decomp) rowsAt(x, idx *ir.Value) *ir.Value {
	if idx == nil {
		return x
	}
	flat := d.take(x, 0, d.view(idx, idx.Type.Numel()))
	return d.view(flat, join(idx.Type.Shape, x.Type.Shape[1:])...)
}

func decompMlxGatherMm(d *Decomp) []*ir.Value {
	a, b := d.rowsAt(d.in(0), d.named("lhs_indices").Value()), d.rowsAt(d.in(1), d.named("rhs_indices").Value())
	return one(d.matmul(a, b))
}

func decompMlxTqNorm(d *Decomp) []*ir.Value {
	x := d.opmath(d.in(0))
	return d.back(d.pnorm(x, 2, true, x.Type.Rank()-1))
}

// Frequencies and shifts of Fourier transforms, which are real; the transforms themselves are pass complex-to-real's.

func decompFftFreq(d *Decomp) []*ir.Value {
	n, ok := d.N.Arg(0).Int()
	step := floatArg(d.N.Arg(1), 1)
	t := d.N.Out().Type
	k, okK := t.Shape[0].IsConst()
	if !ok || !okK || n < 1 {
		return nil
	}
	vals := make([]float64, k)
	for i := range vals {
		f := float64(i)
		if d.N.Info().Schema.Base == "fft_fftfreq" && int64(i) >= (n+1)/2 {
			f -= float64(n)
		}
		vals[i] = f / (float64(n) * step)
	}
	v, ok := d.constant("frequencies", t.DType, []int64{k}, vals)
	if !ok {
		return nil
	}
	return one(v)
}

func decompFftShift(d *Decomp) []*ir.Value {
	x := d.in(0)
	dims := d.dims(d.N.Arg(1), x)
	var shifts []sym.Expr
	for _, k := range dims {
		half := sym.FloorDiv(x.Type.Shape[k], sym.Const(2))
		if d.N.Info().Schema.Base == "fft_ifftshift" {
			half = sym.Sub(x.Type.Shape[k], half)
		}
		shifts = append(shifts, half)
	}
	return one(d.v(op.AtenRollDefault(d.Builder, x, ir.SymInts(shifts...), op.KW("dims", intArgs(dims)))))
}
