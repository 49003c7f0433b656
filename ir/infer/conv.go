package infer

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
)

// convParams are the arguments of a convolution over n dimensions.
type convParams struct {
	n                         int
	stride, pad, dil, outPad  []sym.Expr
	groups                    int64
	transposed, same, noBatch bool
}

func (c *Call) conv(p convParams) ([]ir.Type, error) {
	x, w := c.tensor("input"), c.tensor("weight")
	n := p.n
	rank("weight", w, n+2)
	rank("input", x, n+1, n+2)
	if p.noBatch && x.Rank() != n+2 {
		failf("input has %d dimensions, %d are needed", x.Rank(), n+2)
	}
	sameDType("input", x, "weight", w)
	batch := x.Rank() == n+2
	ch := x.Shape[x.Rank()-n-1]
	space := x.Shape[x.Rank()-n:]
	if p.groups < 1 {
		failf("groups is %d", p.groups)
	}
	g := sym.Const(p.groups)
	out := w.Shape[0]
	if p.transposed {
		c.same("the channels of input and weight", ch, w.Shape[0])
		out = sym.Mul(w.Shape[1], g)
	} else {
		c.same("the channels of input and of weight times groups", ch, sym.Mul(w.Shape[1], g))
	}
	if b, ok := c.optTensor("bias"); ok {
		sameDType("input", x, "bias", b)
		rank("bias", b, 1)
		c.same("the sizes of bias and output channels", b.Shape[0], out)
	}
	var shape []sym.Expr
	if batch {
		shape = append(shape, x.Shape[0])
	}
	shape = append(shape, out)
	for i := range n {
		k := w.Shape[2+i]
		if c.never(sym.Gt(p.stride[i], sym.Const(0))) {
			failf("stride is %s", p.stride[i])
		}
		var e sym.Expr
		span := sym.Mul(p.dil[i], sym.Sub(k, sym.Const(1)))
		switch {
		case p.same:
			e = space[i]
		case p.transposed:
			e = sym.Sum(sym.Mul(sym.Sub(space[i], sym.Const(1)), p.stride[i]), sym.Mul(p.pad[i], sym.Const(-2)), span, p.outPad[i], sym.Const(1))
		default:
			room := sym.Sub(sym.Add(space[i], sym.Mul(p.pad[i], sym.Const(2))), sym.Add(span, sym.Const(1)))
			if c.never(sym.Ge(room, sym.Const(0))) {
				failf("the kernel spans %s elements, the padded input has %s in dimension %d", sym.Add(span, sym.Const(1)),
					sym.Add(space[i], sym.Mul(p.pad[i], sym.Const(2))), i)
			}
			e = sym.Add(sym.FloorDiv(room, p.stride[i]), sym.Const(1))
		}
		shape = append(shape, c.simp(e))
	}
	if n == 1 {
		return one(ir.TensorType(x.DType, shape...))
	}
	// A single sample is a batch of one.
	if !batch {
		x, shape = unsqueezed(x, 0), inserted(shape, 0, sym.Const(1))
	}
	t := ir.TensorType(x.DType, shape...)
	if c.suggestsChannelsLast(x) || c.suggestsChannelsLast(w) {
		t = dense(x.DType, shape, channelsLastOrder(n+2))
	}
	if !batch {
		t = without(t, func(i int) bool { return i == 0 })
	}
	return one(t)
}

func (c *Call) weightDims() int {
	n := c.tensor("weight").Rank() - 2
	if n < 1 || n > 3 {
		failf("weight has %d dimensions, 3 to 5 are needed", n+2)
	}
	return n
}

func inferConvolution(c *Call) ([]ir.Type, error) {
	n := c.weightDims()
	return c.conv(convParams{
		n: n, stride: c.exprsN("stride", n), pad: c.exprsN("padding", n), dil: c.exprsN("dilation", n),
		outPad: c.exprsN("output_padding", n), groups: c.int("groups"), transposed: c.bool("transposed"),
	})
}

func (c *Call) baseDims(prefix string) int { return int(c.Op.Info().Schema.Base[len(prefix)] - '0') }

func inferConv(c *Call) ([]ir.Type, error) {
	n := c.baseDims("conv")
	return c.conv(convParams{
		n: n, stride: c.exprsN("stride", n), pad: c.exprsN("padding", n), dil: c.exprsN("dilation", n), groups: c.int("groups"),
	})
}

func inferConvPadding(c *Call) ([]ir.Type, error) {
	n := c.weightDims()
	p := convParams{n: n, stride: c.exprsN("stride", n), dil: c.exprsN("dilation", n), groups: c.int("groups"), pad: make([]sym.Expr, n)}
	switch s := c.str("padding"); s {
	case "same":
		p.same = true
		for i, e := range p.stride {
			if !c.is(e, 1) {
				failf("padding \"same\" needs a stride of one, dimension %d has %s", i, e)
			}
		}
	case "valid":
	default:
		failf("padding is %q; same and valid are known", s)
	}
	return c.conv(p)
}

func inferConvTranspose(c *Call) ([]ir.Type, error) {
	n := c.baseDims("conv_transpose")
	return c.conv(convParams{
		n: n, stride: c.exprsN("stride", n), pad: c.exprsN("padding", n), dil: c.exprsN("dilation", n),
		outPad: c.exprsN("output_padding", n), groups: c.int("groups"), transposed: true,
	})
}

// inferConvTbc: time, batch, channels.
func inferConvTbc(c *Call) ([]ir.Type, error) {
	x, w := c.x(), c.tensor("weight")
	rank("self", x, 3)
	rank("weight", w, 3)
	t := sym.Add(sym.Sub(sym.Add(x.Shape[0], sym.Mul(c.expr("pad"), sym.Const(2))), w.Shape[0]), sym.Const(1))
	return one(ir.TensorType(x.DType, c.simp(t), x.Shape[1], w.Shape[2]))
}
