package passes

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// maxUnroll is the number of steps up to which a recurrence is written out; longer ones, and those of a length that varies,
// become a scan. A delegate that has no loops takes more.
func (d *Decomp) maxUnroll() int64 {
	if d.Target == "mlx" {
		return 256
	}
	return 32
}

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
	t, known := x.Type.Shape[0].IsConst()
	if known && t < 1 {
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
			var y *ir.Value
			if known && t <= d.maxUnroll() {
				y, cur = d.unroll(gates, cur, full, t, k == 1, f)
			} else {
				y, cur = d.loop(gates, cur, full, k == 1, f)
			}
			outs = append(outs, y)
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

// unroll writes t steps out, from the last to the first where backward; it gives all outputs and the last states.
func (d *Decomp) unroll(gates *ir.Value, states, w []*ir.Value, t int64, backward bool, f step) (*ir.Value, []*ir.Value) {
	steps := make([]*ir.Value, t)
	for j := range t {
		i := j
		if backward {
			i = t - 1 - j
		}
		states = f(d.pickAt(gates, 0, i), states, w)
		steps[i] = states[0]
	}
	return d.stack(0, steps...), states
}

// loop does so by a scan over the steps.
func (d *Decomp) loop(gates *ir.Value, states, w []*ir.Value, backward bool, f step) (*ir.Value, []*ir.Value) {
	if backward {
		gates = d.flip(gates, 0)
	}
	h := ir.NewGraph("step", d.G.Syms)
	h.Stage = d.G.Stage
	inner := make([]*ir.Value, len(states))
	for i, s := range states {
		inner[i] = h.AddInput("", ir.InputOperand, "", ir.TensorType(s.Type.DType, s.Type.Shape...)).Value
	}
	x := h.AddInput("", ir.InputOperand, "", ir.TensorType(gates.Type.DType, gates.Type.Shape[1:]...)).Value
	innerW := make([]*ir.Value, len(w))
	var more []*ir.Value
	for i := 1; i < len(w); i++ {
		if w[i] != nil && i != 2 { // the input's weight and bias are in the gates
			innerW[i] = h.AddInput("", ir.InputOperand, "", w[i].Type).Value
			more = append(more, w[i])
		}
	}
	outer := d.Builder
	d.Builder = ir.NewBuilder(h, nil, outer.Origin)
	res := d.protect(func() []*ir.Value { return f(x, inner, innerW) })
	err := d.Err
	d.Builder = outer
	if err != nil || res == nil {
		d.Fail(err)
		panic(bail{})
	}
	outs := append(append([]*ir.Value(nil), res...), res[0])
	args := make([]ir.Arg, len(outs))
	for i, o := range outs {
		args[i] = ir.Ref(o)
	}
	h.SetOutputs(make([]ir.Output, len(outs)), args)
	n := d.outs(op.New(d.Builder, ops.HigherOrderScanDefault, []ir.Arg{ir.GraphArg(h), ir.Refs(states...), ir.Refs(gates), ir.Refs(more...)}))
	y := n[len(states)]
	if backward {
		y = d.flip(y, 0)
	}
	return y, n[:len(states)]
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

// decompAssociativeScan combines from the first to the last: a scan whose carried values are also what it stacks.
func decompAssociativeScan(d *Decomp) []*ir.Value {
	h := d.N.Arg(0).Graph()
	xs := d.N.Arg(1).Values()
	if h == nil || len(xs) == 0 || len(h.Outputs) != len(xs) {
		return nil
	}
	size := xs[0].Type.Shape[0]
	if size.IsConstValue(0) || size.IsConstValue(1) {
		return xs
	}
	if more, known := d.G.Syms.ProveGt(size, one1); !known || !more {
		return nil
	}
	var first, rest []*ir.Value
	for _, x := range xs {
		first = append(first, d.pickAt(x, 0, 0))
		rest = append(rest, d.slice(x, 0, 1, size))
	}
	outs := h.Ret().Args()
	h.SetOutputs(make([]ir.Output, 2*len(outs)), append(append([]ir.Arg(nil), outs...), outs...))
	n := d.outs(op.New(d.Builder, ops.HigherOrderScanDefault, []ir.Arg{ir.GraphArg(h), ir.Refs(first...), ir.Refs(rest...), d.N.Arg(2)}))
	var res []*ir.Value
	for i := range xs {
		res = append(res, d.cat(0, d.unsqueeze(first[i], 0), n[len(xs)+i]))
	}
	return res
}
