package interp

import (
	"slices"

	"github.com/lathe-ml/lathe/ops"
)

// gemm computes out[m, n] = a[m, k] * b[n, k]: the right operand has its rows along k. It adds in order of k, in blocks of
// four by four results.
func gemm(out, a, b []float64, m, n, k int) {
	parallel((m+3)/4, max(1, 1<<16/(4*n*k+1)), func(lo, hi int) { gemmRows(out, a, b, lo*4, min(hi*4, m), n, k) })
}

func gemmSerial(out, a, b []float64, m, n, k int) { gemmRows(out, a, b, 0, m, n, k) }

// gemmRows computes rows lo to hi.
func gemmRows(out, a, b []float64, lo, m, n, k int) {
	for i := lo; i < m; i += 4 {
		if m-i < 4 {
			for r := i; r < m; r++ {
				row := a[r*k : r*k+k]
				for j := range n {
					out[r*n+j] = dot(row, b[j*k:j*k+k])
				}
			}
			break
		}
		a0, a1, a2, a3 := a[i*k:i*k+k], a[(i+1)*k:(i+1)*k+k], a[(i+2)*k:(i+2)*k+k], a[(i+3)*k:(i+3)*k+k]
		j := 0
		for ; j+1 < n; j += 2 {
			b0, b1 := b[j*k:j*k+k], b[(j+1)*k:(j+1)*k+k]
			var s00, s01, s10, s11, s20, s21, s30, s31 float64
			for p, x := range b0 {
				y := b1[p]
				u, v := a0[p], a1[p]
				s00 += u * x
				s01 += u * y
				s10 += v * x
				s11 += v * y
				u, v = a2[p], a3[p]
				s20 += u * x
				s21 += u * y
				s30 += v * x
				s31 += v * y
			}
			o := out[i*n+j:]
			o[0], o[1] = s00, s01
			o[n], o[n+1] = s10, s11
			o[2*n], o[2*n+1] = s20, s21
			o[3*n], o[3*n+1] = s30, s31
		}
		if j < n {
			b0 := b[j*k : j*k+k]
			out[i*n+j] = dot(a0, b0)
			out[(i+1)*n+j] = dot(a1, b0)
			out[(i+2)*n+j] = dot(a2, b0)
			out[(i+3)*n+j] = dot(a3, b0)
		}
	}
}

func dot(a, b []float64) float64 {
	s := 0.0
	b = b[:len(a)]
	for i, x := range a {
		s += x * b[i]
	}
	return s
}

// dotSlice multiplies matrices of any ring: out[m, n] = a[m, k] * b[n, k].
func dotSlice[T int64 | complex128](out, a, b []T, m, n, k int) {
	for i := range m {
		for j := range n {
			var s T
			x, y := a[i*k:i*k+k], b[j*k:j*k+k]
			for p := range x {
				s += x[p] * y[p]
			}
			out[i*n+j] = s
		}
	}
}

// product is the matrix product [B, m, k] x [B, n, k] transposed to [B, m, n], of two tensors of one dtype with row-major
// meaning of their dimensions (any strides). post, where given, changes each exact sum before it is rounded; i counts
// results.
func product(a, bT *Tensor, d DType, post func(i int, s float64) float64) *Tensor {
	bsz, m, k, n := a.Sizes[0], a.Sizes[1], a.Sizes[2], bT.Sizes[1]
	if bT.Sizes[2] != k || bT.Sizes[0] != bsz {
		fail("product of shapes %v and %v", a.Sizes, transpose(bT, 1, 2).Sizes)
	}
	sizes := []int64{bsz, m, n}
	mk, nk, mn := m*k, n*k, m*n
	switch classOf(a.DType) {
	case classInt:
		x, y, out := a.ints(), bT.ints(), make([]int64, numel(sizes))
		for i := range bsz {
			dotSlice(out[i*mn:(i+1)*mn], x[i*mk:(i+1)*mk], y[i*nk:(i+1)*nk], int(m), int(n), int(k))
		}
		return fromInts(d, sizes, out)
	case classComplex:
		x, y, out := a.complexes(), bT.complexes(), make([]complex128, numel(sizes))
		for i := range bsz {
			dotSlice(out[i*mn:(i+1)*mn], x[i*mk:(i+1)*mk], y[i*nk:(i+1)*nk], int(m), int(n), int(k))
		}
		return fromComplexes(d, sizes, out)
	}
	x, y, out := a.floats(), bT.floats(), make([]float64, numel(sizes))
	for i := range bsz {
		gemm(out[i*mn:(i+1)*mn], x[i*mk:(i+1)*mk], y[i*nk:(i+1)*nk], int(m), int(n), int(k))
	}
	if post != nil {
		for i := range out {
			out[i] = post(i, out[i])
		}
	}
	return fromFloats(d, sizes, out)
}

func sameTypes(what string, ts ...*Tensor) DType {
	for _, t := range ts[1:] {
		if t != nil && t.DType != ts[0].DType {
			fail("%s of %s and %s", what, ts[0].DType, t.DType)
		}
	}
	return ts[0].DType
}

func need(t *Tensor, rank int, what string) {
	if t.Rank() != rank {
		fail("%s has shape %v, %d dimensions are wanted", what, t.Sizes, rank)
	}
}

// matmul is torch.matmul with its rules for vectors and batches.
func matmul(a, b *Tensor) *Tensor {
	d := sameTypes("matmul", a, b)
	if a.Rank() == 0 || b.Rank() == 0 {
		fail("matmul of shapes %v and %v", a.Sizes, b.Sizes)
	}
	va, vb := a.Rank() == 1, b.Rank() == 1
	if va {
		a = unsqueeze(a, 0)
	}
	if vb {
		b = unsqueeze(b, 1)
	}
	ra, rb := a.Rank(), b.Rank()
	if a.Sizes[ra-1] != b.Sizes[rb-2] {
		fail("matmul of shapes %v and %v", a.Sizes, b.Sizes)
	}
	lead := broadcast(a.Sizes[:ra-2], b.Sizes[:rb-2])
	m, k, n := a.Sizes[ra-2], a.Sizes[ra-1], b.Sizes[rb-1]
	final := slices.Clone(lead)
	var o *Tensor
	if rb == 2 || numel(b.Sizes[:rb-2]) == 1 {
		// One right operand: the batch joins the rows.
		rows := numel(lead) * m
		x := compact(expandTo(a, append(slices.Clone(lead), m, k)))
		o = product(x.withSizes(1, rows, k), transpose(reshape(b, []int64{1, k, n}), 1, 2), d, nil)
	} else {
		x := compact(expandTo(a, append(slices.Clone(lead), m, k)))
		y := compact(transpose(expandTo(b, append(slices.Clone(lead), k, n)), len(lead), len(lead)+1))
		o = product(x.withSizes(numel(lead), m, k), y.withSizes(numel(lead), n, k), d, nil)
	}
	if !va {
		final = append(final, m)
	}
	if !vb {
		final = append(final, n)
	}
	return o.withSizes(final...)
}

// evalMatmul computes matmul, mm, bmm, mv, dot, inner, linalg_vecdot and their like.
func evalMatmul(c *Call) ([]Value, error) {
	a, b := c.T(0), c.T(1)
	switch c.base() {
	case "mm":
		need(a, 2, "self")
		need(b, 2, "mat2")
	case "bmm":
		need(a, 3, "self")
		need(b, 3, "mat2")
		if a.Sizes[0] != b.Sizes[0] {
			fail("bmm of shapes %v and %v", a.Sizes, b.Sizes)
		}
	case "mv":
		need(a, 2, "self")
		need(b, 1, "vec")
	case "dot", "vdot":
		need(a, 1, "self")
		need(b, 1, "other")
		if a.Sizes[0] != b.Sizes[0] {
			fail("%s of shapes %v and %v", c.base(), a.Sizes, b.Sizes)
		}
		if c.base() == "vdot" && a.DType.IsComplex() {
			a = conj(a)
		}
	}
	o := matmul(a, b)
	if i := c.index("out_dtype"); c.has(i) {
		// The sums are rounded to the wider type alone.
		d := c.dtypeOr(i, o.DType)
		o = matmul(cast(a, d), cast(b, d))
	}
	return one(o)
}

// evalInner sums products over the last dimensions: inner, linalg_vecdot.
func evalInner(c *Call) ([]Value, error) {
	a, b := c.T(0), c.T(1)
	if c.base() == "linalg_vecdot" {
		d := c.intOr(c.index("dim"), -1)
		if a.DType.IsComplex() {
			a = conj(a)
		}
		p := binaries["mul"].apply(a, b, sameTypes("vecdot", a, b))
		if classOf(p.DType) == classFloat {
			x, y, sizes := pair(a, b)
			p = fromFloats(ops.Float64, sizes, zip(numel(sizes), x.floats(), y.floats(), func(x, y float64) float64 { return x * y }))
		}
		return one(reduceSum(p, []int64{d}, false, a.DType))
	}
	if a.Rank() == 0 || b.Rank() == 0 {
		return one(binaries["mul"].apply(a, b, resultType(a, b)))
	}
	k := a.Sizes[a.Rank()-1]
	if b.Sizes[b.Rank()-1] != k {
		fail("inner of shapes %v and %v", a.Sizes, b.Sizes)
	}
	x, y := reshape(a, []int64{1, -1, k}), reshape(b, []int64{1, -1, k})
	if k == 0 {
		x = reshape(a, []int64{1, numel(a.Sizes[:a.Rank()-1]), 0})
		y = reshape(b, []int64{1, numel(b.Sizes[:b.Rank()-1]), 0})
	}
	sizes := append(slices.Clone(a.Sizes[:a.Rank()-1]), b.Sizes[:b.Rank()-1]...)
	return one(product(x, y, sameTypes("inner", a, b), nil).withSizes(sizes...))
}

// linear is x times weight transposed plus bias, summed exactly and rounded once.
func linear(x, w, bias *Tensor) *Tensor {
	d := sameTypes("linear", x, w, bias)
	wv := w.Rank() == 1
	if wv {
		w = unsqueeze(w, 0)
	}
	if w.Rank() != 2 || x.Rank() == 0 || x.Sizes[x.Rank()-1] != w.Sizes[1] {
		fail("linear of input %v and weight %v", x.Sizes, w.Sizes)
	}
	k, n := w.Sizes[1], w.Sizes[0]
	lead := x.Sizes[:x.Rank()-1]
	var post func(i int, s float64) float64
	if bias != nil {
		if bias.Rank() > 1 || bias.Numel() != n && bias.Numel() != 1 {
			fail("linear with a bias of shape %v and %d outputs", bias.Sizes, n)
		}
		if classOf(d) != classFloat {
			o := linear(x, w, nil)
			return binaries["add"].apply(o, bias, d)
		}
		b := bias.floats()
		post = func(i int, s float64) float64 { return s + b[i%len(b)] }
	}
	o := product(compact(x).withSizes(1, numel(lead), k), unsqueeze(w, 0), d, post)
	final := append(slices.Clone(lead), n)
	if wv {
		final = slices.Clone(lead)
	}
	return o.withSizes(final...)
}

func evalLinear(c *Call) ([]Value, error) {
	return one(linear(c.T(0), c.T(1), c.optT(2)))
}

// evalAddmm computes beta*self + alpha*(product): addmm, addmv, addbmm, baddbmm, addr.
func evalAddmm(c *Call) ([]Value, error) {
	self, a, b := c.T(0), c.T(1), c.T(2)
	d := c.dtypeOr(c.index("out_dtype"), sameTypes(c.base(), a, b))
	beta, alpha := c.Args[c.index("beta")], c.Args[c.index("alpha")]
	var final []int64
	switch c.pure() {
	case "addmm", "_addmm_activation":
		need(a, 2, "mat1")
		need(b, 2, "mat2")
		final = []int64{a.Sizes[0], b.Sizes[1]}
		a, b = unsqueeze(a, 0), transpose(unsqueeze(b, 0), 1, 2)
	case "addmv":
		need(a, 2, "mat")
		need(b, 1, "vec")
		final = []int64{a.Sizes[0]}
		a, b = unsqueeze(a, 0), reshape(b, []int64{1, 1, b.Sizes[0]})
	case "addr":
		need(a, 1, "vec1")
		need(b, 1, "vec2")
		final = []int64{a.Sizes[0], b.Sizes[0]}
		a, b = reshape(a, []int64{1, a.Sizes[0], 1}), reshape(b, []int64{1, b.Sizes[0], 1})
	case "baddbmm":
		need(a, 3, "batch1")
		need(b, 3, "batch2")
		final = []int64{a.Sizes[0], a.Sizes[1], b.Sizes[2]}
		b = transpose(b, 1, 2)
	case "addbmm":
		need(a, 3, "batch1")
		need(b, 3, "batch2")
		// The batch joins the summed dimension.
		final = []int64{a.Sizes[1], b.Sizes[2]}
		k := a.Sizes[0] * a.Sizes[2]
		a = reshape(permute(a, []int{1, 0, 2}), []int64{1, final[0], k})
		b = transpose(reshape(b, []int64{1, k, final[1]}), 1, 2)
	}
	s := expandTo(self, final)
	if classOf(d) == classFloat {
		be, al := mustFloat(beta), mustFloat(alpha)
		var sv []float64
		if be != 0 {
			sv = s.floats()
		}
		o := product(a, b, d, func(i int, x float64) float64 {
			x *= al
			if be != 0 {
				x += be * sv[i]
			}
			return x
		}).withSizes(final...)
		if c.base() == "_addmm_activation" {
			f := relu
			if c.Bool(c.index("use_gelu")) {
				f = gelu
			}
			o = mapFloats(o, d, f)
		}
		return one(o)
	}
	p := product(a, b, d, nil).withSizes(final...)
	p = binaries["mul"].apply(p, wrapFor(alpha), d)
	if z := asComplex(beta); z != 0 {
		p = binaries["add"].apply(binaries["mul"].apply(s, wrapFor(beta), d), p, d)
	}
	return one(p)
}

func wrapFor(v Value) *Tensor {
	if t, ok := v.(*Tensor); ok {
		return t
	}
	return wrap(v)
}

// evalOuter multiplies every element of one vector by every element of another.
func evalOuter(c *Call) ([]Value, error) {
	a, b := c.T(0), c.T(1)
	need(a, 1, "self")
	need(b, 1, "vec2")
	return one(binaries["mul"].apply(unsqueeze(a, 1), unsqueeze(b, 0), resultType(a, b)))
}

// evalKron is the Kronecker product.
func evalKron(c *Call) ([]Value, error) {
	a, b := c.T(0), c.T(1)
	n := max(a.Rank(), b.Rank())
	var sa, sb, final []int64
	for i := range n {
		x, y := int64(1), int64(1)
		if k := i - (n - a.Rank()); k >= 0 {
			x = a.Sizes[k]
		}
		if k := i - (n - b.Rank()); k >= 0 {
			y = b.Sizes[k]
		}
		sa, sb, final = append(sa, x, 1), append(sb, 1, y), append(final, x*y)
	}
	return one(binaries["mul"].apply(reshape(a, sa), reshape(b, sb), resultType(a, b)).withSizes(final...))
}

// evalIntMm multiplies int8 matrices into int32: _int_mm, int_matmul, and int_scaled_matmul, which scales the rows.
func evalIntMm(c *Call) ([]Value, error) {
	a, b := c.T(0), c.T(1)
	need(a, 2, "self")
	need(b, 2, "mat2")
	p := product(unsqueeze(a, 0), transpose(unsqueeze(b, 0), 1, 2), ops.Int32, nil)
	o := p.withSizes(a.Sizes[0], b.Sizes[1])
	if c.base() == "int_scaled_matmul" {
		s := c.T(2)
		return one(binaries["mul"].apply(cast(o, s.DType), s, s.DType))
	}
	return one(o)
}

// evalMultiDot multiplies a chain of matrices.
func evalMultiDot(c *Call) ([]Value, error) {
	ts := c.Ts(0)
	if len(ts) == 0 {
		fail("%s of no matrices", c.base())
	}
	o := ts[0]
	for _, t := range ts[1:] {
		o = matmul(o, t)
	}
	return one(o)
}

// evalGroupedMm multiplies groups of rows by a matrix each: _grouped_mm and its fallback. offs holds the ends of the groups
// among the rows (or columns, or summed elements, as the ranks say).
func evalGroupedMm(c *Call) ([]Value, error) {
	a, b := c.T(0), c.T(1)
	d := c.dtypeOr(c.index("out_dtype"), a.DType)
	var ends []int64
	if i := c.index("offs"); c.has(i) {
		ends = c.T(i).ints()
	}
	bias := c.optT(c.index("bias"))
	mm := func(x, y *Tensor) *Tensor {
		return product(unsqueeze(x, 0), transpose(unsqueeze(y, 0), 1, 2), d, nil).withSizes(x.Sizes[0], y.Sizes[1])
	}
	var o *Tensor
	switch {
	case a.Rank() == 2 && b.Rank() == 3:
		o = NewTensor(d, a.Sizes[0], b.Sizes[2])
		at := int64(0)
		for g, e := range ends {
			if e > at {
				writeInto(slice(o, 0, at, e, 1), mm(slice(a, 0, at, e, 1), selectDim(b, 0, int64(g))))
				at = e
			}
		}
	case a.Rank() == 3 && b.Rank() == 2:
		o = NewTensor(d, a.Sizes[1], b.Sizes[1])
		at := int64(0)
		for g, e := range ends {
			if e > at {
				writeInto(slice(o, 1, at, e, 1), mm(selectDim(a, 0, int64(g)), slice(b, 1, at, e, 1)))
				at = e
			}
		}
	case a.Rank() == 2 && b.Rank() == 2:
		o = NewTensor(d, int64(len(ends)), a.Sizes[0], b.Sizes[1])
		at := int64(0)
		for g, e := range ends {
			writeInto(selectDim(o, 0, int64(g)), mm(slice(a, 1, at, e, 1), slice(b, 0, at, e, 1)))
			at = e
		}
	default:
		need(a, 3, "self")
		o = cast(matmul(a, b), d)
	}
	if bias != nil {
		o = binaries["add"].apply(o, bias, d)
	}
	o.storage.written = false
	return one(o)
}

// evalBilinear is x1ᵀ W x2 for each output.
func evalBilinear(c *Call) ([]Value, error) {
	a, b, w := c.T(0), c.T(1), c.T(2)
	need(w, 3, "weight")
	lead := a.Sizes[:a.Rank()-1]
	n1, n2, no := w.Sizes[1], w.Sizes[2], w.Sizes[0]
	x, y, wv := a.floats(), b.floats(), w.floats()
	rows := int(numel(lead))
	out := make([]float64, rows*int(no))
	for r := range rows {
		for o := range int(no) {
			s := 0.0
			for i := range int(n1) {
				base := (o*int(n1) + i) * int(n2)
				s += x[r*int(n1)+i] * dot(wv[base:base+int(n2)], y[r*int(n2):(r+1)*int(n2)])
			}
			out[r*int(no)+o] = s
		}
	}
	if bias := c.optT(3); bias != nil {
		bv := bias.floats()
		for i := range out {
			out[i] += bv[i%len(bv)]
		}
	}
	return one(fromFloats(a.DType, append(slices.Clone(lead), no), out))
}

// evalTensordot sums products over chosen dimensions.
func evalTensordot(c *Call) ([]Value, error) {
	a, b := c.T(0), c.T(1)
	da, db := c.Ints(2), c.Ints(3)
	if len(da) != len(db) {
		fail("tensordot over %d and %d dimensions", len(da), len(db))
	}
	lay := func(t *Tensor, ds []int64) (*Tensor, []int64) {
		in := make([]bool, t.Rank())
		var red, free []int
		var sizes []int64
		for _, d := range ds {
			k := dim(d, t.Rank())
			in[k] = true
			red = append(red, k)
		}
		for i := range t.Sizes {
			if !in[i] {
				free = append(free, i)
				sizes = append(sizes, t.Sizes[i])
			}
		}
		k := int64(1)
		for _, i := range red {
			k *= t.Sizes[i]
		}
		return compact(permute(t, append(free, red...))).withSizes(1, numel(sizes), k), sizes
	}
	for i := range da {
		x, y := a.Sizes[dim(da[i], a.Rank())], b.Sizes[dim(db[i], b.Rank())]
		switch {
		case x == y:
		case x == 1:
			b = reduceSum(b, []int64{db[i]}, true, b.DType)
		case y == 1:
			a = reduceSum(a, []int64{da[i]}, true, a.DType)
		default:
			fail("tensordot over dimensions of %d and %d", x, y)
		}
	}
	x, sx := lay(a, da)
	y, sy := lay(b, db)
	return one(product(x, y, sameTypes("tensordot", a, b), nil).withSizes(append(sx, sy...)...))
}

// evalTrilinear sums products of three expanded tensors.
func evalTrilinear(c *Call) ([]Value, error) {
	ts := []*Tensor{c.T(0), c.T(1), c.T(2)}
	for i := range ts {
		ds := c.Ints(3 + i)
		slices.Sort(ds)
		for _, d := range ds {
			ts[i] = unsqueeze(ts[i], int(d))
		}
	}
	sizes := broadcast(ts[0].Sizes, ts[1].Sizes, ts[2].Sizes)
	x, y, z := expandTo(ts[0], sizes).floats(), expandTo(ts[1], sizes).floats(), expandTo(ts[2], sizes).floats()
	p := make([]float64, len(x))
	for i := range p {
		p[i] = x[i] * y[i] * z[i]
	}
	return one(reduceSum(fromFloats(ops.Float64, sizes, p), c.Ints(6), false, ts[0].DType))
}
