package interp

import (
	"math"
)

// gates computes x Wᵀ + b for a step.
func gates(x, w, b *Tensor) []float64 { return cast(linear(x, w, b), x.DType).floats() }

// cell advances a recurrent cell by one step: h (and c of an lstm) of shape [B, H].
func cell(kind string, x, h, cs, wih, whh, bih, bhh *Tensor) (nh, nc *Tensor) {
	gi, gh := gates(x, wih, bih), gates(h, whh, bhh)
	return cellFrom(kind, gi, gh, h, cs, h.DType)
}

func cellFrom(kind string, gi, gh []float64, h, cs *Tensor, d DType) (nh, nc *Tensor) {
	b, n := int(h.Sizes[0]), int(h.Sizes[1])
	hv := h.floats()
	out := make([]float64, b*n)
	switch kind {
	case "lstm":
		cv := cs.floats()
		oc := make([]float64, b*n)
		for r := range b {
			for j := range n {
				g := func(k int) float64 { p := (r*4+k)*n + j; return gi[p] + gh[p] }
				i, f, z, o := sigmoid(g(0)), sigmoid(g(1)), math.Tanh(g(2)), sigmoid(g(3))
				c := f*cv[r*n+j] + i*z
				oc[r*n+j] = c
				out[r*n+j] = o * math.Tanh(c)
			}
		}
		return fromFloats(d, h.Sizes, out), fromFloats(d, h.Sizes, oc)
	case "gru":
		for r := range b {
			for j := range n {
				p := func(k int) int { return (r*3+k)*n + j }
				rs, z := sigmoid(gi[p(0)]+gh[p(0)]), sigmoid(gi[p(1)]+gh[p(1)])
				m := math.Tanh(gi[p(2)] + rs*gh[p(2)])
				out[r*n+j] = (hv[r*n+j]-m)*z + m
			}
		}
	case "rnn_tanh":
		for i := range out {
			out[i] = math.Tanh(gi[i] + gh[i])
		}
	case "rnn_relu":
		for i := range out {
			out[i] = relu(gi[i] + gh[i])
		}
	}
	return fromFloats(d, h.Sizes, out), nil
}

// evalRnn runs layers of recurrent cells over a sequence: lstm, gru, rnn_tanh, rnn_relu.
func evalRnn(c *Call) ([]Value, error) {
	kind := c.base()
	x := c.T(0)
	hx := c.Ts(1)
	params := c.Ts(2)
	hasBias, layers, dropout, train, bi, batchFirst := c.Bool(3), int(c.Int(4)), c.Float(5), c.Bool(6), c.Bool(7), c.Bool(8)
	if train && dropout > 0 && layers > 1 {
		fail("dropout between recurrent layers in training has no reference result")
	}
	single := x.Rank() == 2
	if single {
		d := 1
		if batchFirst {
			d = 0
		}
		x = unsqueeze(x, d)
		for i, h := range hx {
			if h.Rank() == 2 {
				hx[i] = unsqueeze(h, 1)
			}
		}
	}
	need(x, 3, "the sequence")
	if batchFirst {
		x = transpose(x, 0, 1)
	}
	dirs := 1
	if bi {
		dirs = 2
	}
	per := 2
	if hasBias {
		per = 4
	}
	proj := kind == "lstm" && len(params) == layers*dirs*(per+1)
	if proj {
		per++
	}
	if len(params) != layers*dirs*per {
		fail("%d weights for %d layers in %d directions", len(params), layers, dirs)
	}
	steps := x.Sizes[0]
	var hs, cs []*Tensor
	for l := range layers {
		var outs []*Tensor
		for dir := range dirs {
			k := l*dirs + dir
			p := params[k*per : (k+1)*per]
			wih, whh := p[0], p[1]
			var bih, bhh, whr *Tensor
			if hasBias {
				bih, bhh = p[2], p[3]
			}
			if proj {
				whr = p[per-1]
			}
			h := selectDim(hx[0], 0, int64(k))
			var cst *Tensor
			if kind == "lstm" {
				cst = selectDim(hx[1], 0, int64(k))
			}
			// All steps' input gates at once.
			gi := linear(x, wih, bih)
			ys := make([]*Tensor, steps)
			for s := range steps {
				t := s
				if dir == 1 {
					t = steps - 1 - s
				}
				gh := gates(h, whh, bhh)
				g := selectDim(gi, 0, t).floats()
				if proj {
					_, cst = cellFrom(kind, g, gh, cst, cst, x.DType)
					// The output gate acts on the cell before the projection.
					n := int(cst.Sizes[1])
					cv := cst.floats()
					full := make([]float64, len(cv))
					for i := range full {
						r, j := i/n, i%n
						q := (r*4+3)*n + j
						full[i] = sigmoid(g[q]+gh[q]) * math.Tanh(cv[i])
					}
					h = linear(fromFloats(x.DType, cst.Sizes, full), whr, nil)
				} else {
					h, cst = cellFrom(kind, g, gh, h, cst, x.DType)
				}
				ys[t] = h
			}
			if steps == 0 {
				fail("a sequence without steps")
			}
			outs = append(outs, stack(ys, 0))
			hs = append(hs, h)
			if cst != nil {
				cs = append(cs, cst)
			}
		}
		x = cat(outs, 2)
	}
	if batchFirst {
		x = compact(transpose(x, 0, 1))
	}
	res := []*Tensor{x, stack(hs, 0)}
	if kind == "lstm" {
		res = append(res, stack(cs, 0))
	}
	outs := make([]Value, len(res))
	for i, t := range res {
		if single {
			d := 1
			if i == 0 && batchFirst {
				d = 0
			}
			t = squeeze(t, only(d, 3))
		}
		outs[i] = compact(t)
	}
	return outs, nil
}

// evalRnnCell advances one cell: lstm_cell, gru_cell, rnn_tanh_cell, rnn_relu_cell.
func evalRnnCell(c *Call) ([]Value, error) {
	kind := c.base()[:len(c.base())-len("_cell")]
	x, hx := c.T(0), c.Ts(1)
	single := x.Rank() == 1
	up := func(t *Tensor) *Tensor {
		if t != nil && single {
			return unsqueeze(t, 0)
		}
		return t
	}
	var cst *Tensor
	if kind == "lstm" {
		cst = up(hx[1])
	}
	h, cst := cell(kind, up(x), up(hx[0]), cst, c.T(2), c.T(3), c.optT(4), c.optT(5))
	down := func(t *Tensor) *Tensor {
		if single {
			return t.withSizes(t.Sizes[1:]...)
		}
		return t
	}
	if kind == "lstm" {
		return []Value{down(h), down(cst)}, nil
	}
	return one(down(h))
}
