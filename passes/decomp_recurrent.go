package passes

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ir/sym"
)

// maxUnroll bounds the nodes that a recurrence becomes: layers times steps.
const maxUnroll = 4096

func (d *Decomp) linear(x, w, b *ir.Value) *ir.Value {
	var kw []ir.Named
	if b != nil {
		kw = append(kw, op.KW("bias", ir.Ref(b)))
	}
	return d.v(op.AtenLinearDefault(d.Builder, x, w, kw...))
}

// gates are n equal parts of the last dimension.
func (d *Decomp) gates(x *ir.Value, n int) []*ir.Value {
	r := x.Type.Rank()
	size := sym.FloorDiv(x.Type.Shape[r-1], sym.Const(int64(n)))
	out := make([]*ir.Value, n)
	for i := range n {
		out[i] = d.slice(x, r-1, sym.Mul(size, sym.Const(int64(i))), sym.Mul(size, sym.Const(int64(i+1))))
	}
	return out
}

func (d *Decomp) lstmStep(g *ir.Value, c *ir.Value) (h, cell *ir.Value) {
	p := d.gates(g, 4)
	i, f, o := d.sigmoid(p[0]), d.sigmoid(p[1]), d.sigmoid(p[3])
	cell = d.add(d.mul(f, c), d.mul(i, d.tanh(p[2])))
	return d.mul(o, d.tanh(cell)), cell
}

func (d *Decomp) gruStep(gi, gh, h *ir.Value) *ir.Value {
	a, b := d.gates(gi, 3), d.gates(gh, 3)
	r := d.sigmoid(d.add(a[0], b[0]))
	z := d.sigmoid(d.add(a[1], b[1]))
	n := d.tanh(d.add(a[2], d.mul(r, b[2])))
	return d.add(d.mul(d.sub(h, n), z), n)
}

func decompLstmCell(d *Decomp) []*ir.Value {
	hx := d.N.Arg(1).Values()
	g := d.add(d.linear(d.in(0), d.in(2), d.N.In(4)), d.linear(hx[0], d.in(3), d.N.In(5)))
	h, c := d.lstmStep(g, hx[1])
	return []*ir.Value{h, c}
}

func decompGruCell(d *Decomp) []*ir.Value {
	h := d.in(1)
	return one(d.gruStep(d.linear(d.in(0), d.in(2), d.N.In(4)), d.linear(h, d.in(3), d.N.In(5)), h))
}

func (d *Decomp) activation(x *ir.Value, relu bool) *ir.Value {
	if relu {
		return d.v(op.AtenReluDefault(d.Builder, x))
	}
	return d.tanh(x)
}

func decompRnnCell(d *Decomp) []*ir.Value {
	g := d.add(d.linear(d.in(0), d.in(2), d.N.In(4)), d.linear(d.in(1), d.in(3), d.N.In(5)))
	return one(d.activation(g, d.N.Info().Schema.Base == "rnn_relu_cell"))
}

// step is one direction's recurrence over a step: x is the input's part of the gates.
type step func(x *ir.Value, states []*ir.Value, w []*ir.Value) []*ir.Value

// recurrent unrolls layers, directions and time. states are the initial states, each [layers*directions, batch, size]; the
// results are the output and the last states.
func (d *Decomp) recurrent(x *ir.Value, states []*ir.Value, params []*ir.Value, f step) []*ir.Value {
	biases := boolArg(d.named("has_biases"))
	layers, okL := d.named("num_layers").Int()
	bi := boolArg(d.named("bidirectional"))
	if !okL || boolArg(d.named("train")) && floatArg(d.named("dropout"), 0) != 0 {
		return nil
	}
	batched := x.Type.Rank() == 3
	if !batched {
		x = d.unsqueeze(x, 1)
		for i, s := range states {
			states[i] = d.unsqueeze(s, 1)
		}
	} else if boolArg(d.named("batch_first")) {
		x = d.swap(x, 0, 1)
	}
	dirs := 1
	if bi {
		dirs = 2
	}
	per := 2
	if biases {
		per = 4
	}
	extra := len(params) - int(layers)*dirs*per
	projected := extra == int(layers)*dirs
	if projected {
		per++
	} else if extra != 0 {
		return nil
	}
	t, ok := x.Type.Shape[0].IsConst()
	if !ok || t < 1 || t*layers*int64(dirs) > maxUnroll {
		return nil
	}
	last := make([][]*ir.Value, len(states))
	for l := range int(layers) {
		var outs []*ir.Value
		for k := range dirs {
			at := l*dirs + k
			w := params[at*per : at*per+per]
			// weights in order: input, hidden, [biases], [projection]
			full := make([]*ir.Value, 5)
			full[0], full[1] = w[0], w[1]
			if biases {
				full[2], full[3] = w[2], w[3]
			}
			if projected {
				full[4] = w[per-1]
			}
			cur := make([]*ir.Value, len(states))
			for i, s := range states {
				cur[i] = d.pickAt(s, 0, at)
			}
			gates := d.linear(x, full[0], full[2]) // of all steps at once
			steps := make([]*ir.Value, t)
			for j := range t {
				i := j
				if k == 1 {
					i = t - 1 - j
				}
				cur = f(d.pickAt(gates, 0, i), cur, full)
				steps[i] = cur[0]
			}
			outs = append(outs, d.stack(0, steps...))
			for i := range cur {
				last[i] = append(last[i], cur[i])
			}
		}
		x = d.cat(2, outs...)
	}
	if !batched {
		x = d.squeeze(x, 1)
	} else if boolArg(d.named("batch_first")) {
		x = d.swap(x, 0, 1)
	}
	res := []*ir.Value{x}
	for i := range states {
		s := d.stack(0, last[i]...)
		if !batched {
			s = d.squeeze(s, 1)
		}
		res = append(res, s)
	}
	return res
}

func decompLstm(d *Decomp) []*ir.Value {
	states := append([]*ir.Value(nil), d.N.Arg(1).Values()...)
	return d.recurrent(d.in(0), states, d.N.Arg(2).Values(), func(x *ir.Value, s, w []*ir.Value) []*ir.Value {
		h, c := d.lstmStep(d.add(x, d.linear(s[0], w[1], w[3])), s[1])
		if w[4] != nil {
			h = d.linear(h, w[4], nil)
		}
		return []*ir.Value{h, c}
	})
}

func decompGru(d *Decomp) []*ir.Value {
	return d.recurrent(d.in(0), []*ir.Value{d.in(1)}, d.N.Arg(2).Values(), func(x *ir.Value, s, w []*ir.Value) []*ir.Value {
		return one(d.gruStep(x, d.linear(s[0], w[1], w[3]), s[0]))
	})
}

func decompRnn(d *Decomp) []*ir.Value {
	relu := d.N.Info().Schema.Base == "rnn_relu"
	return d.recurrent(d.in(0), []*ir.Value{d.in(1)}, d.N.Arg(2).Values(), func(x *ir.Value, s, w []*ir.Value) []*ir.Value {
		return one(d.activation(d.add(x, d.linear(s[0], w[1], w[3])), relu))
	})
}
