package interp

import (
	"slices"

	"github.com/lathe-ml/lathe/ops"
)

// conv holds a convolution over any number of space dimensions.
type conv struct {
	stride, pad, dilation, outPad []int64
	// padAfter differs from pad for "same" padding of an odd sum.
	padAfter   []int64
	groups     int64
	transposed bool
}

// run convolves x [N, C, …] with w; w is [O, C/groups, …], or [C, O/groups, …] where transposed.
func (cv conv) run(x, w, bias *Tensor) *Tensor {
	d := sameTypes("convolution", x, w)
	nd := w.Rank() - 2
	if nd < 1 {
		fail("a convolution with weight %v", w.Sizes)
	}
	single := x.Rank() == nd+1
	if single {
		x = unsqueeze(x, 0)
	}
	need(x, nd+2, "the convolution's input")
	if cv.groups <= 0 || x.Sizes[1]%cv.groups != 0 {
		fail("%d channels in %d groups", x.Sizes[1], cv.groups)
	}
	for i := range nd {
		if cv.stride[i] <= 0 || cv.dilation[i] <= 0 {
			fail("stride %v, dilation %v", cv.stride, cv.dilation)
		}
	}
	var o *Tensor
	switch {
	case d.IsComplex():
		// Parts are convolved by themselves: (a+bi)(c+di) = ac - bd + (ad + bc)i.
		re := func(t *Tensor) *Tensor { return cast(compact(selectDim(asReal(t), t.Rank(), 0)), ops.Float64) }
		im := func(t *Tensor) *Tensor { return cast(compact(selectDim(asReal(t), t.Rank(), 1)), ops.Float64) }
		f := cv.real
		ac, bd, ad, bc := f(re(x), re(w), ops.Float64), f(im(x), im(w), ops.Float64), f(re(x), im(w), ops.Float64), f(im(x), re(w), ops.Float64)
		p, q, r, s := ac.floats(), bd.floats(), ad.floats(), bc.floats()
		z := make([]complex128, len(p))
		for i := range z {
			z[i] = complex(p[i]-q[i], r[i]+s[i])
		}
		o = fromComplexes(d, ac.Sizes, z)
		if bias != nil {
			o = binaries["add"].apply(o, reshape(bias, append([]int64{-1}, slices.Repeat([]int64{1}, nd)...)), d)
		}
	default:
		o = cv.realBias(x, w, bias, d)
	}
	if single {
		o = o.withSizes(o.Sizes[1:]...)
	}
	return o
}

func (cv conv) real(x, w *Tensor, d DType) *Tensor { return cv.realBias(x, w, nil, d) }

func (cv conv) realBias(x, w, bias *Tensor, d DType) *Tensor {
	nd := w.Rank() - 2
	n, ch, g := x.Sizes[0], x.Sizes[1], cv.groups
	in, k := x.Sizes[2:], w.Sizes[2:]
	var oc int64 // of a group
	if cv.transposed {
		if w.Sizes[0] != ch {
			fail("transposed convolution of %d channels with weight %v", ch, w.Sizes)
		}
		oc = w.Sizes[1]
	} else {
		if w.Sizes[1]*g != ch || w.Sizes[0]%g != 0 {
			fail("convolution of %d channels in %d groups with weight %v", ch, g, w.Sizes)
		}
		oc = w.Sizes[0] / g
	}
	if bias != nil && bias.Numel() != oc*g {
		fail("convolution with a bias of shape %v and %d channels", bias.Sizes, oc*g)
	}
	out := make([]int64, nd)
	for i := range out {
		if cv.transposed {
			out[i] = (in[i]-1)*cv.stride[i] - 2*cv.pad[i] + cv.dilation[i]*(k[i]-1) + cv.outPad[i] + 1
		} else {
			out[i] = (in[i]+cv.pad[i]+cv.padAfter[i]-cv.dilation[i]*(k[i]-1)-1)/cv.stride[i] + 1
			if in[i]+cv.pad[i]+cv.padAfter[i] < cv.dilation[i]*(k[i]-1)+1 {
				fail("kernel %v with dilation %v does not fit the input %v", k, cv.dilation, in)
			}
		}
		if out[i] <= 0 && !(cv.transposed && out[i] == 0) {
			fail("the convolution's result would have size %v", out)
		}
	}
	cg := ch / g
	np, kp, ip := int(numel(out)), int(numel(k)), int(numel(in))
	cols := int(cg) * kp
	src := x.floats()
	dst := make([]float64, n*g*oc*int64(np))
	// taps[p*kp+t] is the place in the input that tap t of output p reads, -1 outside.
	taps := cv.taps(in, k, out)
	// The weight of a group as rows over (channel, tap).
	wr := w
	if cv.transposed {
		wr = compact(transpose(w.withSizes(append([]int64{g, cg, oc}, k...)...), 1, 2))
	}
	wv := wr.floats()
	var bv []float64
	if bias != nil {
		bv = bias.floats()
	}
	for b := range n {
		for gi := range g {
			xs := src[(b*ch+gi*cg)*int64(ip):]
			ws := wv[gi*oc*int64(cols):]
			ds := dst[(b*g+gi)*oc*int64(np):]
			if oc <= 2 && cg == 1 { // depthwise
				parallel(int(oc), max(1, 1<<16/(np*kp+1)), func(lo, hi int) {
					for o := lo; o < hi; o++ {
						wrow := ws[o*kp : (o+1)*kp]
						for p := range np {
							s := 0.0
							for t, at := range taps[p*kp : (p+1)*kp] {
								if at >= 0 {
									s += wrow[t] * xs[at]
								}
							}
							ds[o*np+p] = s
						}
					}
				})
				continue
			}
			// Blocks of output places keep the unfolded input small.
			const block = 512
			parallel((np+block-1)/block, max(1, 1<<16/(block*cols*int(oc)/64+1)), func(lo, hi int) {
				col := make([]float64, block*cols)
				tmp := make([]float64, block*int(oc))
				for p0 := lo * block; p0 < min(hi*block, np); p0 += block {
					m := min(block, np-p0)
					for p := range m {
						row := col[p*cols : (p+1)*cols]
						tp := taps[(p0+p)*kp : (p0+p+1)*kp]
						for c := range int(cg) {
							plane := xs[c*ip : (c+1)*ip]
							r := row[c*kp : (c+1)*kp]
							for t, at := range tp {
								if at >= 0 {
									r[t] = plane[at]
								} else {
									r[t] = 0
								}
							}
						}
					}
					gemmSerial(tmp, ws, col, int(oc), m, cols)
					for o := range int(oc) {
						copy(ds[o*np+p0:o*np+p0+m], tmp[o*m:(o+1)*m])
					}
				}
			})
		}
	}
	if bv != nil {
		for i := range dst {
			dst[i] += bv[(i/np)%len(bv)]
		}
	}
	return fromFloats(d, append([]int64{n, g * oc}, out...), dst)
}

// taps lists for each output place and kernel tap the input place it reads.
func (cv conv) taps(in, k, out []int64) []int32 {
	np, kp := numel(out), numel(k)
	if np*kp > 1<<30 {
		fail("a convolution of %d places with %d taps is too large", np, kp)
	}
	taps := make([]int32, np*kp)
	nd := len(in)
	oi, ki := make([]int64, nd), make([]int64, nd)
	for p := range np {
		clear(ki)
		for t := range kp {
			at, ok := int64(0), true
			for i := range nd {
				var y int64
				if cv.transposed {
					y = oi[i] + cv.pad[i] - ki[i]*cv.dilation[i]
					if y%cv.stride[i] != 0 {
						ok = false
						break
					}
					y /= cv.stride[i]
				} else {
					y = oi[i]*cv.stride[i] - cv.pad[i] + ki[i]*cv.dilation[i]
				}
				if y < 0 || y >= in[i] {
					ok = false
					break
				}
				at = at*in[i] + y
			}
			if !ok {
				at = -1
			}
			taps[p*kp+t] = int32(at)
			count(ki, k)
		}
		count(oi, out)
	}
	return taps
}

// count steps a row-major index.
func count(idx, sizes []int64) {
	for i := len(idx) - 1; i >= 0; i-- {
		idx[i]++
		if idx[i] < sizes[i] {
			return
		}
		idx[i] = 0
	}
}

func ones(n int) []int64 { return slices.Repeat([]int64{1}, n) }

// evalConv computes the convolutions: conv1d to conv3d, their transposed forms, convolution, and padding by name.
func evalConv(c *Call) ([]Value, error) {
	x, w, b := c.T(0), c.T(1), c.optT(2)
	if c.base() == "conv_tbc" {
		// [T, B, C] with weight [K, C, O].
		p := c.intOr(3, 0)
		cv := conv{stride: ones(1), pad: []int64{p}, padAfter: []int64{p}, dilation: ones(1), groups: 1}
		return one(compact(permute(cv.run(permute(x, []int{1, 2, 0}), permute(w, []int{2, 1, 0}), b), []int{2, 0, 1})))
	}
	nd := w.Rank() - 2
	if nd < 1 || nd > 3 {
		fail("a convolution with weight %v", w.Sizes)
	}
	list := func(name string, def int64) []int64 {
		if i := c.index(name); c.has(i) {
			if l := c.Ints(i); len(l) > 0 {
				return c.intsN(i, nd)
			}
		}
		return slices.Repeat([]int64{def}, nd)
	}
	cv := conv{stride: list("stride", 1), dilation: list("dilation", 1), groups: c.intOr(c.index("groups"), 1)}
	pi := c.index("padding")
	if mode, ok := c.Args[pi].(string); ok {
		cv.pad, cv.padAfter = make([]int64, nd), make([]int64, nd)
		switch mode {
		case "valid":
		case "same":
			for i := range nd {
				total := cv.dilation[i] * (w.Sizes[2+i] - 1)
				cv.pad[i], cv.padAfter[i] = total/2, total-total/2
				if cv.stride[i] != 1 {
					fail("padding \"same\" with stride %v", cv.stride)
				}
			}
		default:
			fail("padding %q is not known", mode)
		}
	} else {
		cv.pad = list("padding", 0)
		cv.padAfter = cv.pad
	}
	cv.outPad = list("output_padding", 0)
	cv.transposed = c.base() == "conv_transpose1d" || c.base() == "conv_transpose2d" || c.base() == "conv_transpose3d"
	if i := c.index("transposed"); i >= 0 {
		cv.transposed = c.Bool(i)
	}
	if cv.transposed {
		for i, p := range cv.outPad {
			if p < 0 || p >= max(cv.stride[i], cv.dilation[i]) {
				fail("output padding %v is not smaller than stride or dilation", cv.outPad)
			}
		}
	}
	return one(cv.run(x, w, b))
}
