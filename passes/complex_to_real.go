package passes

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// ComplexToReal computes with complex numbers as pairs.
var ComplexToReal = Pass{
	Name: "complex-to-real",
	Doc: "Replaces complex tensors between real ones by real tensors with a last dimension of two, and Fourier transforms by products with " +
		"matrices of sines and cosines.",
	Run: func(ctx *Context, g *ir.Graph) error {
		if g.Stage == ops.StageAten {
			return nil
		}
		c := &complexer{ctx: ctx, g: g, pairs: map[*ir.Value]pair{}}
		return c.run()
	},
}

// pair is a complex tensor as its real and imaginary part.
type pair struct{ re, im *ir.Value }

type complexer struct {
	ctx   *Context
	g     *ir.Graph
	pairs map[*ir.Value]pair
	dead  []*ir.Node
}

func isComplex(v *ir.Value) bool { return v != nil && v.Type.IsTensor() && v.Type.DType.IsComplex() }

func (c *complexer) run() error {
	for n := range c.g.Nodes() {
		touched := strings.HasPrefix(n.Info().Schema.Base, "fft_") || n.Info().Schema.Base == "stft"
		for v := range n.Inputs() {
			touched = touched || isComplex(v)
		}
		for _, o := range n.Outs {
			touched = touched || isComplex(o)
		}
		if !touched || n.Info().Kernel != "" && c.ctx.legal(n) == nil && !c.known(n) {
			continue
		}
		if err := c.node(n); err != nil {
			return err
		}
	}
	for i := len(c.dead) - 1; i >= 0; i-- {
		n := c.dead[i]
		unused := true
		for _, o := range n.Outs {
			unused = unused && o.NumUses() == 0
		}
		if unused {
			c.g.Erase(n)
		}
	}
	return nil
}

// known tells whether an input is one that this pass has taken apart.
func (c *complexer) known(n *ir.Node) bool {
	for v := range n.Inputs() {
		if _, ok := c.pairs[v]; ok {
			return true
		}
	}
	return false
}

// node replaces n where its complex inputs are pairs. What it does not know stays, and so do the complex values it reads.
func (c *complexer) node(n *ir.Node) error {
	for v := range n.Inputs() {
		if _, ok := c.pairs[v]; isComplex(v) && !ok {
			return nil
		}
	}
	rule := complexRules[n.Info().Schema.Base]
	if rule == nil || n.Info().Schema.NS != "aten" || len(n.Outs) != 1 || !c.ctx.Allow(n, n.Info().Schema.Base) {
		return nil
	}
	b := ir.NewBuilder(c.g, n, n.Origin.Derive(c.ctx.pass+"#"+n.Info().Schema.Base))
	d := &complexNode{Decomp{Builder: b, N: n}, c}
	re, im, ok := d.apply(rule)
	if b.Err != nil {
		return fmt.Errorf("%s at %s: %w", n.OpName(), n.Origin, b.Err)
	}
	if !ok {
		return nil
	}
	c.dead = append(c.dead, n)
	if isComplex(n.Out()) {
		c.pairs[n.Out()] = pair{re, im}
		return nil
	}
	n.Out().ReplaceAllUses(re)
	return nil
}

// complexNode is a Decomp whose complex inputs are pairs.
type complexNode struct {
	Decomp
	c *complexer
}

// complexRule gives the parts of the result; a real result is the first alone.
type complexRule func(d *complexNode) (re, im *ir.Value, ok bool)

func (d *complexNode) apply(rule complexRule) (re, im *ir.Value, ok bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, isBail := r.(bail); !isBail {
				panic(r)
			}
			ok = false
		}
	}()
	re, im, ok = rule(d)
	if ok && isComplex(d.N.Out()) && im == nil {
		im = d.zeros(re)
	}
	return re, im, ok
}

// p is input i as a pair; a real tensor or a number has no imaginary part.
func (d *complexNode) p(i int) pair {
	v := d.N.In(i)
	if q, ok := d.c.pairs[v]; ok && v != nil {
		return q
	}
	return pair{re: d.real(i)}
}

func (d *complexNode) real(i int) *ir.Value {
	a := d.N.Arg(i)
	if v := a.Value(); v != nil && v.Type.IsTensor() {
		return v
	}
	return d.scalar(a, d.part())
}

// part is the type of the parts of the complex values at hand.
func (d *complexNode) part() ir.DType {
	t := d.N.Out().Type.DType
	if !t.IsComplex() {
		for v := range d.N.Inputs() {
			if isComplex(v) {
				t = v.Type.DType
			}
		}
	}
	switch t {
	case ops.Complex128:
		return ops.Float64
	case ops.ComplexHalf:
		return ops.Float16
	case ops.Float64: // a real result of a real signal
		return t
	}
	return ops.Float32
}

func (d *complexNode) plus(a, b *ir.Value, f func(x, y any) *ir.Value) *ir.Value {
	switch {
	case a == nil && b == nil:
		return nil
	case b == nil:
		return a
	case a == nil:
		return f(d.zeros(b), b)
	}
	return f(a, b)
}

func (d *complexNode) times(a, b pair) pair {
	if b.im == nil {
		a, b = b, a
	}
	if a.im == nil {
		r := pair{re: d.mul(a.re, b.re)}
		if b.im != nil {
			r.im = d.mul(a.re, b.im)
		}
		return r
	}
	return pair{d.sub(d.mul(a.re, b.re), d.mul(a.im, b.im)), d.add(d.mul(a.re, b.im), d.mul(a.im, b.re))}
}

func (d *complexNode) square(x *ir.Value) *ir.Value { return d.mul(x, x) }

// each applies a function to both parts.
func (d *complexNode) each(p pair, f func(x *ir.Value) *ir.Value) (re, im *ir.Value, ok bool) {
	re = f(p.re)
	if p.im != nil {
		im = f(p.im)
	}
	return re, im, true
}

// again builds the node once more of a part of its first input.
func (d *complexNode) again(x *ir.Value) *ir.Value {
	args := slices.Clone(d.N.Args())
	args[0] = ir.Ref(x)
	n := op.New(d.Builder, d.N.Op, args)
	if n == nil {
		return d.v(nil)
	}
	return d.v(n.Out())
}

var complexRules map[string]complexRule

func init() {
	same := func(d *complexNode) (re, im *ir.Value, ok bool) { return d.each(d.p(0), d.again) }
	complexRules = map[string]complexRule{
		"view_as_complex": func(d *complexNode) (re, im *ir.Value, ok bool) {
			x := d.in(0)
			r := x.Type.Rank() - 1
			return d.pickAt(x, r, 0), d.pickAt(x, r, 1), true
		},
		"view_as_real": func(d *complexNode) (re, im *ir.Value, ok bool) {
			p := d.p(0)
			return d.stack(p.re.Type.Rank(), p.re, d.imag(p)), nil, true
		},
		"complex": func(d *complexNode) (re, im *ir.Value, ok bool) {
			s := d.N.Out().Type.Shape
			return d.expand(d.in(0), s...), d.expand(d.in(1), s...), true
		},
		"polar": func(d *complexNode) (re, im *ir.Value, ok bool) {
			r, a := d.in(0), d.in(1)
			return d.mul(r, d.cos(a)), d.mul(r, d.sin(a)), true
		},
		"real": func(d *complexNode) (re, im *ir.Value, ok bool) { return d.p(0).re, nil, true },
		"imag": func(d *complexNode) (re, im *ir.Value, ok bool) { return d.imag(d.p(0)), nil, true },
		"abs": func(d *complexNode) (re, im *ir.Value, ok bool) {
			p := d.p(0)
			return d.sqrt(d.add(d.square(p.re), d.square(d.imag(p)))), nil, true
		},
		"angle": func(d *complexNode) (re, im *ir.Value, ok bool) {
			p := d.p(0)
			return d.v(op.AtenAtan2Default(d.Builder, d.imag(p), p.re)), nil, true
		},
		"conj": conjugate, "_conj": conjugate, "_conj_physical": conjugate,
		"neg": func(d *complexNode) (re, im *ir.Value, ok bool) { return d.each(d.p(0), d.neg) },
		"add": func(d *complexNode) (re, im *ir.Value, ok bool) { return d.sum2(d.add) },
		"sub": func(d *complexNode) (re, im *ir.Value, ok bool) { return d.sum2(d.sub) },
		"mul": func(d *complexNode) (re, im *ir.Value, ok bool) {
			r := d.times(d.p(0), d.p(1))
			return r.re, r.im, true
		},
		"div": func(d *complexNode) (re, im *ir.Value, ok bool) {
			if !d.N.ArgNamed("rounding_mode").IsNone() {
				return nil, nil, false
			}
			a, b := d.p(0), d.p(1)
			if b.im == nil {
				return d.each(a, func(x *ir.Value) *ir.Value { return d.div(x, b.re) })
			}
			n := d.add(d.square(b.re), d.square(b.im))
			r := d.times(a, pair{b.re, d.neg(b.im)})
			return d.div(r.re, n), d.div(r.im, n), true
		},
		"exp": func(d *complexNode) (re, im *ir.Value, ok bool) {
			p := d.p(0)
			e := d.exp(p.re)
			return d.mul(e, d.cos(d.imag(p))), d.mul(e, d.sin(d.imag(p))), true
		},
		"mm": product, "bmm": product, "matmul": product,
		"sum": same, "mean": same,
		"_to_copy": converted, "to": converted,
		"cat": joined, "stack": joined,
		"fft_fft": fourier, "fft_ifft": fourier, "fft_rfft": fourier, "fft_irfft": fourier, "fft_hfft": fourier, "fft_ihfft": fourier,
		"fft_fft2": fourierN, "fft_ifft2": fourierN, "fft_rfft2": fourierN, "fft_irfft2": fourierN,
		"fft_fftn": fourierN, "fft_ifftn": fourierN, "fft_rfftn": fourierN, "fft_irfftn": fourierN,
		"stft": shortTime, "istft": backFromShortTime,
	}
	for _, s := range []string{
		"view", "reshape", "_unsafe_view", "flatten", "unflatten", "squeeze", "unsqueeze", "permute", "transpose", "t", "movedim", "slice", "select", "narrow",
		"expand", "clone", "contiguous", "detach", "alias", "index", "index_select", "flip", "roll", "repeat", "constant_pad_nd", "diagonal", "swapaxes",
	} {
		complexRules[s] = same
	}
}

// zeros is the imaginary part of a real number, which may be infinite.
func (d *complexNode) zeros(re *ir.Value) *ir.Value {
	return d.v(op.AtenZerosLikeDefault(d.Builder, re))
}

func (d *complexNode) imag(p pair) *ir.Value {
	if p.im != nil {
		return p.im
	}
	return d.zeros(p.re)
}

func conjugate(d *complexNode) (re, im *ir.Value, ok bool) {
	p := d.p(0)
	return p.re, d.neg(d.imag(p)), true
}

func converted(d *complexNode) (re, im *ir.Value, ok bool) {
	if !isComplex(d.N.Out()) {
		return nil, nil, false
	}
	t := d.part()
	return d.each(d.p(0), func(x *ir.Value) *ir.Value { return d.cast(x, t) })
}

// sum2 adds or subtracts part by part, with alpha where there is one.
func (d *complexNode) sum2(f func(x, y any) *ir.Value) (re, im *ir.Value, ok bool) {
	if a := d.N.ArgNamed("alpha"); !a.IsNone() && !a.Equal(ir.Int(1)) {
		return nil, nil, false
	}
	a, b := d.p(0), d.p(1)
	s := d.N.Out().Type.Shape
	re = f(a.re, b.re)
	if im = d.plus(a.im, b.im, f); im != nil {
		im = d.expand(im, s...)
	}
	return re, im, true
}

func product(d *complexNode) (re, im *ir.Value, ok bool) {
	mul := func(x, y *ir.Value) *ir.Value {
		n := op.New(d.Builder, d.N.Op, []ir.Arg{ir.Ref(x), ir.Ref(y)})
		if n == nil {
			return d.v(nil)
		}
		return d.v(n.Out())
	}
	a, b := d.p(0), d.p(1)
	ai, bi := d.imag(a), d.imag(b)
	return d.Decomp.sub(mul(a.re, b.re), mul(ai, bi)), d.add(mul(a.re, bi), mul(ai, b.re)), true
}

func joined(d *complexNode) (re, im *ir.Value, ok bool) {
	var res, ims []ir.Arg
	for _, v := range d.N.Arg(0).Values() {
		p, isPair := d.c.pairs[v]
		if !isPair {
			p = pair{re: d.cast(v, d.part())}
		}
		res, ims = append(res, ir.Ref(p.re)), append(ims, ir.Ref(d.imag(p)))
	}
	build := func(l []ir.Arg) *ir.Value {
		args := slices.Clone(d.N.Args())
		args[0] = ir.List(l...)
		n := op.New(d.Builder, d.N.Op, args)
		if n == nil {
			return d.v(nil)
		}
		return d.v(n.Out())
	}
	return build(res), build(ims), true
}

// transform is a discrete Fourier transform along one dimension from n places (cut or filled with zeros) to m: forward or
// back, times scale.
func (d *complexNode) transform(p pair, dim int, n, m int64, forward bool, scale float64) (pair, bool) {
	have, ok := p.re.Type.Shape[dim].IsConst()
	if !ok || n < 1 || n*m > 1<<24 {
		return pair{}, false
	}
	fit := func(x *ir.Value) *ir.Value {
		if x == nil {
			return nil
		}
		switch {
		case have > n:
			return d.slice(x, dim, 0, n)
		case have < n:
			pads := make([]sym.Expr, 2*(x.Type.Rank()-dim))
			pads[len(pads)-1] = sym.Const(n - have)
			return d.padded(x, ir.Float(0), pads...)
		}
		return x
	}
	p.re, p.im = fit(p.re), fit(p.im)
	cos, sin := make([]float64, n*m), make([]float64, n*m)
	sign := -1.0
	if !forward {
		sign = 1
	}
	for i := range n {
		for k := range m {
			a := 2 * math.Pi * float64(i*k%n) / float64(n)
			cos[i*m+k], sin[i*m+k] = scale*math.Cos(a), sign*scale*math.Sin(a)
		}
	}
	t := p.re.Type.DType
	cv, ok1 := d.constant("dft", t, []int64{n, m}, cos)
	sv, ok2 := d.constant("dft", t, []int64{n, m}, sin)
	if !ok1 || !ok2 {
		return pair{}, false
	}
	last := p.re.Type.Rank() - 1
	along := func(x, w *ir.Value) *ir.Value {
		if dim != last {
			x = d.swap(x, dim, last)
		}
		if x.Type.Rank() == 1 {
			x = d.squeeze(d.matmul(d.unsqueeze(x, 0), w), 0)
		} else {
			x = d.matmul(x, w)
		}
		if dim != last {
			x = d.swap(x, dim, last)
		}
		return x
	}
	r := pair{along(p.re, cv), along(p.re, sv)}
	if p.im != nil {
		r.re = d.Decomp.sub(r.re, along(p.im, sv))
		r.im = d.add(r.im, along(p.im, cv))
	}
	return r, true
}

// fromHalf completes the second half of a spectrum of a real signal of n places along dim.
func (d *complexNode) fromHalf(p pair, dim int, n int64) (pair, bool) {
	have, ok := p.re.Type.Shape[dim].IsConst()
	if !ok {
		return p, false
	}
	half := n/2 + 1
	fit := func(x *ir.Value) *ir.Value {
		switch {
		case have > half:
			return d.slice(x, dim, 0, half)
		case have < half:
			pads := make([]sym.Expr, 2*(x.Type.Rank()-dim))
			pads[len(pads)-1] = sym.Const(half - have)
			return d.padded(x, ir.Float(0), pads...)
		}
		return x
	}
	re, im := fit(p.re), fit(d.imag(p))
	if n-half < 1 {
		return pair{re, im}, true
	}
	mirror := func(x *ir.Value) *ir.Value { return d.flip(d.slice(x, dim, 1, 1+n-half), dim) }
	return pair{d.cat(dim, re, mirror(re)), d.cat(dim, im, d.neg(mirror(im)))}, true
}

// fourierScale is the factor of a transform of n places under a normalization.
func fourierScale(norm string, n int64, forward bool) float64 {
	switch norm {
	case "ortho":
		return 1 / math.Sqrt(float64(n))
	case "forward":
		if forward {
			return 1 / float64(n)
		}
		return 1
	}
	if forward {
		return 1
	}
	return 1 / float64(n)
}

// real input of a Fourier transform in the type of the parts.
func (d *complexNode) signal() pair {
	p := d.p(0)
	p.re = d.cast(p.re, d.part())
	return p
}

func fourier(d *complexNode) (re, im *ir.Value, ok bool) {
	p := d.signal()
	dim := d.dim(2, d.N.In(0))
	base := d.N.Info().Schema.Base
	size, okS := p.re.Type.Shape[dim].IsConst()
	n, given := d.N.Arg(1).Int()
	norm, _ := d.named("norm").Str()
	if !okS {
		return nil, nil, false
	}
	r, ok := d.oneTransform(p, base, dim, size, n, given, norm)
	if !ok {
		return nil, nil, false
	}
	return r.re, r.im, true
}

// oneTransform is one of the transforms by name along a dimension; n is the signal's length where given.
func (d *complexNode) oneTransform(p pair, base string, dim int, size, n int64, given bool, norm string) (pair, bool) {
	switch base {
	case "fft_fft", "fft_ifft":
		if !given {
			n = size
		}
		forward := base == "fft_fft"
		return d.transform(p, dim, n, n, forward, fourierScale(norm, n, forward))
	case "fft_rfft":
		if !given {
			n = size
		}
		return d.transform(p, dim, n, n/2+1, true, fourierScale(norm, n, true))
	case "fft_ihfft":
		if !given {
			n = size
		}
		return d.transform(p, dim, n, n/2+1, false, fourierScale(norm, n, false))
	case "fft_irfft", "fft_hfft":
		if !given {
			n = 2 * (size - 1)
		}
		q, ok := d.fromHalf(p, dim, n)
		if !ok {
			return q, false
		}
		forward := base == "fft_hfft"
		r, ok := d.transform(q, dim, n, n, forward, fourierScale(norm, n, forward))
		r.im = nil
		return r, ok
	}
	return pair{}, false
}

// fourierN transforms dimension after dimension; the real one is the last.
func fourierN(d *complexNode) (re, im *ir.Value, ok bool) {
	p := d.signal()
	x := d.N.In(0)
	norm, _ := d.named("norm").Str()
	sizes, given := d.N.Arg(1).IntList()
	dims := d.dims(d.N.Arg(2), x)
	if given && d.N.Arg(2).IsNone() {
		dims = lastDims(x.Type.Rank(), len(sizes))
	}
	if given && len(sizes) != len(dims) {
		return nil, nil, false
	}
	base := d.N.Info().Schema.Base
	realIn := base == "fft_rfft2" || base == "fft_rfftn"
	realOut := base == "fft_irfft2" || base == "fft_irfftn"
	forward := base == "fft_fft2" || base == "fft_fftn" || realIn
	step := func(i int, name string) bool {
		size, isConst := p.re.Type.Shape[dims[i]].IsConst()
		if !isConst {
			return false
		}
		n, have := int64(0), false
		if given && sizes[i] != -1 {
			n, have = sizes[i], true
		}
		p, ok = d.oneTransform(p, name, dims[i], size, n, have, norm)
		return ok
	}
	full := "fft_ifft"
	if forward {
		full = "fft_fft"
	}
	last := len(dims) - 1
	if realIn && !step(last, "fft_rfft") {
		return nil, nil, false
	}
	for i := range dims {
		if (realIn || realOut) && i == last {
			continue
		}
		if !step(i, full) {
			return nil, nil, false
		}
	}
	if realOut && !step(last, "fft_irfft") {
		return nil, nil, false
	}
	return p.re, p.im, true
}

// shortTime is stft without centering: frames times window, then one transform.
func shortTime(d *complexNode) (re, im *ir.Value, ok bool) {
	x := d.in(0)
	n, okN := d.named("n_fft").Int()
	hop, okH := d.named("hop_length").Int()
	win, okW := d.named("win_length").Int()
	if !okN || boolArg(d.named("center")) || x.Type.DType.IsComplex() {
		return nil, nil, false
	}
	if !okH {
		hop = n / 4
	}
	if !okW {
		win = n
	}
	w := d.named("window").Value()
	if isComplex(w) || boolArg(d.named("align_to_window")) {
		return nil, nil, false
	}
	one := true
	if a := d.named("onesided"); !a.IsNone() {
		one = boolArg(a)
	}
	r := x.Type.Rank()
	frames := d.v(op.AtenUnfoldDefault(d.Builder, x, ir.Int(int64(r-1)), ir.Int(n), ir.Int(hop)))
	if w != nil {
		w = d.cast(w, frames.Type.DType)
	} else if win < n {
		w = d.full(1.0, frames.Type.DType, sym.Const(win))
	}
	if w != nil {
		if left := (n - win) / 2; win < n {
			w = d.padded(w, ir.Float(0), ir.Consts(left, n-win-left)...)
		}
		frames = d.mul(frames, w)
	}
	scale := 1.0
	if boolArg(d.named("normalized")) {
		scale = 1 / math.Sqrt(float64(n))
	}
	m := n
	if one {
		m = n/2 + 1
	}
	p, ok := d.transform(pair{re: frames}, r, n, m, true, scale)
	if !ok {
		return nil, nil, false
	}
	p.re, p.im = d.swap(p.re, -1, -2), d.swap(p.im, -1, -2)
	if !isComplex(d.N.Out()) {
		return d.stack(p.re.Type.Rank(), p.re, p.im), nil, true
	}
	return p.re, p.im, true
}

// backFromShortTime is istft: transforms back, times window, added where they overlap, over the sum of the window's squares.
func backFromShortTime(d *complexNode) (re, im *ir.Value, ok bool) {
	p := d.p(0)
	n, okN := d.named("n_fft").Int()
	hop, okH := d.named("hop_length").Int()
	win, okW := d.named("win_length").Int()
	w := d.named("window").Value()
	if !okN || isComplex(w) || isComplex(d.N.Out()) {
		return nil, nil, false
	}
	if !okH {
		hop = n / 4
	}
	if !okW {
		win = n
	}
	p.re, p.im = d.swap(p.re, -1, -2), d.swap(d.imag(p), -1, -2) // frames, bins
	r := p.re.Type.Rank()
	bins, okB := p.re.Type.Shape[r-1].IsConst()
	frames := p.re.Type.Shape[r-2]
	if !okB {
		return nil, nil, false
	}
	half := bins != n
	if a := d.named("onesided"); !a.IsNone() {
		half = boolArg(a)
	}
	if half {
		if p, ok = d.fromHalf(p, r-1, n); !ok {
			return nil, nil, false
		}
		// A real signal has no imaginary part at zero.
		p.im = d.where(d.eq(d.grid(sym.Const(n), r-1, r), int64(0)), 0.0, p.im)
	}
	scale := 1 / float64(n)
	if boolArg(d.named("normalized")) {
		scale = 1 / math.Sqrt(float64(n))
	}
	if p, ok = d.transform(p, r-1, n, n, false, scale); !ok {
		return nil, nil, false
	}
	t := p.re.Type.DType
	if w != nil {
		w = d.cast(w, t)
	} else {
		w = d.full(1.0, t, sym.Const(win))
	}
	if left := (n - win) / 2; win < n {
		w = d.padded(w, ir.Float(0), ir.Consts(left, n-win-left)...)
	}
	lead := p.re.Type.Shape[:r-2]
	total := sym.Add(sym.Const(n), sym.Mul(sym.Const(hop), sym.Sub(frames, one1)))
	at := d.view(d.add(d.mul(d.grid(frames, 0, 2), hop), d.grid(sym.Const(n), 1, 2)), sym.Mul(frames, sym.Const(n)))
	overlap := func(x *ir.Value, lead []sym.Expr) *ir.Value {
		flat := d.view(x, join(lead, dimsOf(sym.Mul(frames, sym.Const(n))))...)
		return d.put(d.full(0.0, t, join(lead, dimsOf(total))...), len(lead), at, flat, true)
	}
	y := overlap(d.mul(p.re, w), lead)
	norm := overlap(d.expand(d.mul(w, w), frames, sym.Const(n)), nil)
	y = d.div(y, d.where(d.gt(norm, 1e-11), norm, 1.0))
	start := int64(0)
	if boolArg(d.named("center")) {
		start = n / 2
	}
	size := ir.Dim(d.N.Out(), -1)
	end := sym.Add(sym.Const(start), size)
	if more := sym.Sub(end, total); !more.Equal(sym.Const(0)) {
		k, isConst := more.IsConst()
		if !d.N.ArgNamed("length").IsNone() && !isConst {
			return nil, nil, false
		}
		if isConst && k > 0 {
			pads := make([]sym.Expr, 2)
			pads[0], pads[1] = sym.Const(0), sym.Const(k)
			y = d.padded(y, ir.Float(0), pads...)
		}
	}
	return d.slice(y, len(lead), start, end), nil, true
}
