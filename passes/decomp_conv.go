package passes

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ir/sym"
)

// spread makes a list of n out of a single number.
func spread(a ir.Arg, n int) ir.Arg {
	if a.Kind() == ir.ArgList {
		l := a.List()
		if len(l) == 1 && n > 1 {
			a = l[0]
		} else {
			return a
		}
	}
	l := make([]ir.Arg, n)
	for i := range l {
		l[i] = a
	}
	return ir.List(l...)
}

// convolution builds the general form; an input without a batch gets one for the while.
func (d *Decomp) convolution(stride, pad, dilation, outPad ir.Arg, transposed bool, groups ir.Arg) []*ir.Value {
	x, w := d.in(0), d.in(1)
	n := w.Type.Rank() - 2
	batched := x.Type.Rank() == n+2
	if !batched {
		x = d.unsqueeze(x, 0)
	}
	if outPad.IsNone() {
		outPad = ir.Int(0)
	}
	y := d.v(op.AtenConvolutionDefault(d.Builder, x, w, d.N.In(2), spread(stride, n), spread(pad, n), spread(dilation, n), ir.Bool(transposed), spread(outPad, n), groups))
	if !batched {
		y = d.squeeze(y, 0)
	}
	return one(y)
}

func decompConv(d *Decomp) []*ir.Value {
	return d.convolution(d.named("stride"), d.named("padding"), d.named("dilation"), ir.None, false, d.named("groups"))
}

func decompConvTranspose(d *Decomp) []*ir.Value {
	return d.convolution(d.named("stride"), d.named("padding"), d.named("dilation"), d.named("output_padding"), true, d.named("groups"))
}

func decompUnderConvolution(d *Decomp) []*ir.Value {
	t, ok := d.named("transposed").Bool()
	if !ok {
		return nil
	}
	return d.convolution(d.named("stride"), d.named("padding"), d.named("dilation"), d.named("output_padding"), t, d.named("groups"))
}

// decompConvPadding is a convolution whose padding is named. For "same" the side after gets one more where the sum is odd.
func decompConvPadding(d *Decomp) []*ir.Value {
	x, w := d.in(0), d.in(1)
	n := w.Type.Rank() - 2
	mode, _ := d.named("padding").Str()
	stride, dil := spread(d.named("stride"), n), spread(d.named("dilation"), n)
	if mode == "valid" {
		return d.convolution(stride, ir.Int(0), dil, ir.None, false, d.named("groups"))
	}
	ds, ok := dil.IntList()
	if mode != "same" || !ok || len(ds) != n {
		return nil
	}
	pads := make([]ir.Arg, n)
	extra := make([]ir.Arg, 2*n) // from the last dimension on, as pad counts
	odd := false
	for i := range n {
		k, ok := w.Type.Shape[2+i].IsConst()
		if !ok {
			return nil
		}
		total := ds[i] * (k - 1)
		pads[i] = ir.Int(total / 2)
		extra[2*(n-1-i)], extra[2*(n-1-i)+1] = ir.Int(0), ir.Int(total%2)
		odd = odd || total%2 == 1
	}
	if odd {
		x = d.v(op.AtenConstantPadNdDefault(d.Builder, x, ir.List(extra...)))
	}
	batched := x.Type.Rank() == n+2
	if !batched {
		x = d.unsqueeze(x, 0)
	}
	y := d.v(op.AtenConvolutionDefault(d.Builder, x, w, d.N.In(2), stride, ir.List(pads...), dil, ir.Bool(false), spread(ir.Int(0), n), d.named("groups")))
	if !batched {
		y = d.squeeze(y, 0)
	}
	return one(y)
}

// decompConvolution makes a three-dimensional convolution of two-dimensional ones, one for each place of the kernel along
// depth.
func decompConvolution(d *Decomp) []*ir.Value {
	if vs := d.widened(); vs != nil {
		return vs
	}
	x, w := d.in(0), d.in(1)
	if w.Type.Rank() != 5 {
		return nil
	}
	stride, okS := spread(d.N.Arg(3), 3).IntList()
	pad, okP := spread(d.N.Arg(4), 3).IntList()
	dil, okD := spread(d.N.Arg(5), 3).IntList()
	outPad, okO := spread(d.N.Arg(7), 3).IntList()
	kd, okK := w.Type.Shape[2].IsConst()
	transposed, okT := d.N.Arg(6).Bool()
	if !okS || !okP || !okD || !okO || !okK || !okT || pad[0] < 0 {
		return nil
	}
	n, c, depth := x.Type.Shape[0], x.Type.Shape[1], x.Type.Shape[2]
	out := d.N.Out().Type.Shape
	plane := func(v, weight *ir.Value) *ir.Value {
		return d.v(op.AtenConvolutionDefault(d.Builder, v, weight, nil, ir.Ints(stride[1:]...), ir.Ints(pad[1:]...), ir.Ints(dil[1:]...), ir.Bool(transposed), ir.Ints(outPad[1:]...), d.N.Arg(8)))
	}
	var y *ir.Value
	if !transposed {
		if pad[0] > 0 {
			x = d.v(op.AtenConstantPadNdDefault(d.Builder, x, ir.Ints(0, 0, 0, 0, pad[0], pad[0])))
		}
		do := out[2]
		for k := range kd {
			start := k * dil[0]
			end := sym.Add(sym.Mul(sym.Sub(do, one1), sym.Const(stride[0])), sym.Const(start+1))
			part := d.permute(d.step(x, 2, start, end, stride[0]), 0, 2, 1, 3, 4)
			p := plane(d.view(part, sym.Mul(n, do), c, x.Type.Shape[3], x.Type.Shape[4]), d.pickAt(w, 2, k))
			if y == nil {
				y = p
			} else {
				y = d.add(y, p)
			}
		}
		y = d.permute(d.view(y, n, do, out[1], out[3], out[4]), 0, 2, 1, 3, 4)
	} else {
		flat := d.view(d.permute(x, 0, 2, 1, 3, 4), sym.Mul(n, depth), c, x.Type.Shape[3], x.Type.Shape[4])
		// Depth of the sum before padding is cut off: (D-1)*stride + dilation*(kd-1) + 1 + output padding.
		full := sym.Add(sym.Mul(sym.Sub(depth, one1), sym.Const(stride[0])), sym.Const(dil[0]*(kd-1)+1+outPad[0]))
		for k := range kd {
			p := d.view(plane(flat, d.pickAt(w, 2, k)), n, depth, out[1], out[3], out[4])
			if stride[0] > 1 {
				p = d.unsqueeze(p, 2)
				p = d.v(op.AtenConstantPadNdDefault(d.Builder, p, ir.Ints(0, 0, 0, 0, 0, 0, 0, stride[0]-1)))
				p = d.view(p, n, sym.Mul(depth, sym.Const(stride[0])), out[1], out[3], out[4])
				p = d.slice(p, 1, 0, sym.Add(sym.Mul(sym.Sub(depth, one1), sym.Const(stride[0])), one1))
			}
			before := k * dil[0]
			after := sym.Sub(full, sym.Add(p.Type.Shape[1], sym.Const(before)))
			p = d.v(op.AtenConstantPadNdDefault(d.Builder, p, ir.List(ir.Int(0), ir.Int(0), ir.Int(0), ir.Int(0), ir.Int(0), ir.Int(0), ir.Int(before), ir.SymInt(after))))
			if y == nil {
				y = p
			} else {
				y = d.add(y, p)
			}
		}
		if pad[0] > 0 {
			y = d.slice(y, 1, pad[0], sym.Add(sym.Const(pad[0]), out[2]))
		}
		y = d.permute(y, 0, 2, 1, 3, 4)
	}
	if b := d.N.In(2); b != nil {
		y = d.add(y, d.perChannel(b, 5))
	}
	return one(d.view(y, out...))
}

func decompConvTbc(d *Decomp) []*ir.Value {
	x, w := d.in(0), d.in(1) // time, batch, channel; the weight is k, in, out
	y := d.v(op.AtenConv1dDefault(d.Builder, d.permute(x, 1, 2, 0), d.permute(w, 2, 1, 0), op.KW("bias", ir.Ref(d.in(2))), op.KW("padding", ir.List(d.N.Arg(3)))))
	return one(d.permute(y, 2, 0, 1))
}
