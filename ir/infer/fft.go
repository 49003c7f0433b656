package infer

import (
	"slices"
	"strings"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

func (c *Call) checkNorm() {
	switch s := c.str("norm"); s {
	case "", "backward", "ortho", "forward":
	default:
		failf("norm is %q; backward, ortho and forward are known", s)
	}
}

// bins is the number of frequencies that a real signal of n samples has.
func (c *Call) bins(n sym.Expr) sym.Expr {
	return c.simp(sym.Add(sym.FloorDiv(n, sym.Const(2)), sym.Const(1)))
}

// twice is the default length of the real signal of m frequencies.
func (c *Call) twice(m sym.Expr) sym.Expr {
	return c.simp(sym.Mul(sym.Sub(m, sym.Const(1)), sym.Const(2)))
}

// spectrum sets the sizes of a transform: the last of dims is the one that halves or doubles.
func (c *Call) spectrum(kind string, x ir.Type, dims []int, sizes []sym.Expr) ([]ir.Type, error) {
	c.checkNorm()
	d := floatOf(x.DType)
	shape := append([]sym.Expr(nil), x.Shape...)
	for i, k := range dims {
		if sizes != nil && !sizes[i].IsConstValue(-1) {
			shape[k] = sizes[i]
		}
	}
	out := d.ToComplex()
	if len(dims) > 0 {
		l := dims[len(dims)-1]
		given := sizes != nil && !sizes[len(sizes)-1].IsConstValue(-1)
		switch kind {
		case "rfft", "ihfft":
			if d.IsComplex() {
				failf("self is %s, a real type is needed", d)
			}
			shape[l] = c.bins(shape[l])
		case "irfft", "hfft":
			out = d.ToReal()
			if !given {
				shape[l] = c.twice(x.Shape[l])
			}
		}
		for _, k := range dims {
			if c.never(sym.Ge(shape[k], sym.Const(1))) {
				failf("dimension %d has %s points", k, shape[k])
			}
		}
	}
	return one(c.fftLayout(out, c.fftInput(x, dims, sizes), shape, dims, kind))
}

// fftInput is x cut or padded to the sizes of a transform.
func (c *Call) fftInput(x ir.Type, dims []int, sizes []sym.Expr) ir.Type {
	if sizes == nil {
		return x
	}
	for i, d := range dims {
		switch n := sizes[i]; {
		case n.IsConstValue(-1) || c.eq(n, x.Shape[d]):
		case c.holds(sym.Lt(n, x.Shape[d])):
			x = c.sliceOf(x, d, sym.Const(0), n, sym.Const(1))
		default:
			shape := append([]sym.Expr(nil), x.Shape...)
			shape[d] = n
			x = c.keepsFormat(x, shape)
		}
	}
	return x
}

// fftLayout: the transformed dimensions lie innermost, those of complex transforms by decreasing stride of the input.
func (c *Call) fftLayout(d ops.DType, x ir.Type, shape []sym.Expr, dims []int, kind string) ir.Type {
	st := strides(x)
	byStride := func(ds []int) []int {
		ds = slices.Clone(ds)
		slices.SortStableFunc(ds, func(a, b int) int {
			switch {
			case c.holds(sym.Gt(st[a], st[b])):
				return -1
			case c.holds(sym.Lt(st[a], st[b])):
				return 1
			}
			return 0
		})
		return ds
	}
	order := func(ds []int) []int {
		var rest []int
		for i := range shape {
			if !slices.Contains(ds, i) {
				rest = append(rest, i)
			}
		}
		return append(byStride(rest), ds...)
	}
	if len(dims) == 0 {
		return c.preserved(d, ir.Type{DType: d, Shape: shape, Strides: x.Strides})
	}
	last := dims[len(dims)-1]
	switch kind {
	case "rfft", "ihfft":
		return dense(d, shape, order(append(byStride(dims[:len(dims)-1]), last)))
	case "irfft", "hfft":
		if len(dims) > 1 {
			st = strides(dense(d, shape, order(byStride(dims[:len(dims)-1]))))
		}
		return dense(d, shape, order([]int{last}))
	}
	return dense(d, shape, order(byStride(dims)))
}

func (c *Call) transform() string { return strings.TrimPrefix(c.Op.Info().Schema.Base, "fft_") }

func inferFft1(c *Call) ([]ir.Type, error) {
	x := c.x()
	if x.Rank() == 0 {
		failf("self has no dimensions")
	}
	d := c.dim("dim", x.Rank())
	var sizes []sym.Expr
	if n, ok := c.optExpr("n"); ok {
		sizes = []sym.Expr{n}
	}
	return c.spectrum(c.transform(), x, []int{d}, sizes)
}

func inferFftn(c *Call) ([]ir.Type, error) {
	x := c.x()
	sizes, sized := c.optExprs("s")
	ds, given := c.indexDims("dim", x)
	switch {
	case given:
	case sized:
		for i := range sizes {
			ds = append(ds, x.Rank()-len(sizes)+i)
		}
		if len(sizes) > x.Rank() {
			failf("s has %d elements, self %d dimensions", len(sizes), x.Rank())
		}
	default:
		ds = identity(x.Rank())
	}
	if sized && len(sizes) != len(ds) {
		failf("s has %d elements, dim %d", len(sizes), len(ds))
	}
	if !sized {
		sizes = nil
	}
	return c.spectrum(strings.TrimRight(c.transform(), "2n"), x, ds, sizes)
}

func inferFftC2C(c *Call) ([]ir.Type, error) {
	x := c.x()
	if !x.DType.IsComplex() {
		failf("self is %s, a complex type is needed", x.DType)
	}
	ds, _ := c.indexDims("dim", x)
	return one(c.fftLayout(x.DType, x, x.Shape, ds, "fft"))
}

func inferFftR2C(c *Call) ([]ir.Type, error) {
	x := c.x()
	if !x.DType.IsFloat() {
		failf("self is %s, a real floating point type is needed", x.DType)
	}
	ds, _ := c.indexDims("dim", x)
	shape := append([]sym.Expr(nil), x.Shape...)
	if len(ds) > 0 && c.bool("onesided") {
		l := ds[len(ds)-1]
		shape[l] = c.bins(shape[l])
	}
	return one(c.fftLayout(x.DType.ToComplex(), x, shape, ds, "rfft"))
}

func inferFftC2R(c *Call) ([]ir.Type, error) {
	x := c.x()
	if !x.DType.IsComplex() {
		failf("self is %s, a complex type is needed", x.DType)
	}
	ds, _ := c.indexDims("dim", x)
	shape := append([]sym.Expr(nil), x.Shape...)
	if len(ds) > 0 {
		shape[ds[len(ds)-1]] = c.expr("last_dim_size")
	}
	return one(c.fftLayout(x.DType.ToReal(), x, shape, ds, "irfft"))
}

func inferFftFreq(c *Call) ([]ir.Type, error) {
	n := c.expr("n")
	if c.transform() == "rfftfreq" {
		n = c.bins(n)
	}
	return one(ir.TensorType(c.dtypeOr("dtype", ops.Float32), n))
}

func inferFftShift(c *Call) ([]ir.Type, error) {
	x := c.x()
	c.dims("dim", x.Rank())
	return one(ir.TensorType(x.DType, x.Shape...))
}

// inferStft: frequencies by frames; the frames lie one after the other in memory.
func inferStft(c *Call) ([]ir.Type, error) {
	x := c.x()
	rank("self", x, 1, 2)
	n := c.int("n_fft")
	if n < 1 {
		failf("n_fft is %d", n)
	}
	hop, ok := c.optInt("hop_length")
	if !ok {
		hop = n / 4
	}
	if hop < 1 {
		failf("hop_length is %d", hop)
	}
	if w, ok := c.optTensor("window"); ok {
		l, given := c.optInt("win_length")
		if !given {
			l = n
		}
		rank("window", w, 1)
		c.same("the size of window and win_length", w.Shape[0], sym.Const(l))
	}
	length := x.Shape[x.Rank()-1]
	if c.has("center") && c.bool("center") {
		length = sym.Add(length, sym.Const(2*(n/2)))
	}
	room := sym.Sub(length, sym.Const(n))
	if c.never(sym.Ge(room, sym.Const(0))) {
		failf("n_fft is %d, the signal has %s samples", n, length)
	}
	frames := c.simp(sym.Add(sym.FloorDiv(room, sym.Const(hop)), sym.Const(1)))
	bins := n
	if a := c.arg("onesided"); a.IsNone() && !x.DType.IsComplex() || !a.IsNone() && c.bool("onesided") {
		bins = n/2 + 1
	}
	var lead []sym.Expr
	order := []int{1, 0}
	if x.Rank() == 2 {
		lead = []sym.Expr{x.Shape[0]}
		order = []int{0, 2, 1}
	}
	t := dense(floatOf(x.DType).ToComplex(), append(lead, sym.Const(bins), frames), order)
	if !c.bool("return_complex") {
		if c.arg("return_complex").IsNone() && !x.DType.IsComplex() {
			failf("return_complex has to be given for real input")
		}
		return one(asReal(t))
	}
	return one(t)
}

// asReal is a complex tensor seen as real.
func asReal(x ir.Type) ir.Type {
	t := ir.Type{DType: x.DType.ToReal(), Shape: inserted(x.Shape, x.Rank(), sym.Const(2))}
	if x.Strides != nil {
		for _, s := range x.Strides {
			t.Strides = append(t.Strides, sym.Mul(s, sym.Const(2)))
		}
		t.Strides = append(t.Strides, sym.Const(1))
	}
	return t
}

func inferIstft(c *Call) ([]ir.Type, error) {
	x := c.x()
	if !x.DType.IsComplex() {
		failf("self is %s, a complex type is needed", x.DType)
	}
	rank("self", x, 2, 3)
	n := c.int("n_fft")
	hop, ok := c.optInt("hop_length")
	if !ok {
		hop = n / 4
	}
	frames := x.Shape[x.Rank()-1]
	length := sym.Add(sym.Const(n), sym.Mul(sym.Const(hop), sym.Sub(frames, sym.Const(1))))
	if l, ok := c.optExpr("length"); ok {
		length = l
	} else if c.bool("center") {
		length = sym.Sub(length, sym.Const(2*(n/2)))
	}
	d := x.DType.ToReal()
	if c.bool("return_complex") {
		d = x.DType
	}
	return one(ir.TensorType(d, append(append([]sym.Expr(nil), x.Shape[:x.Rank()-2]...), c.simp(length))...))
}
