package interp

import (
	"slices"
	"strings"

	"github.com/lathe-ml/lathe/ops"
)

// viewed is the result of a view operator: the view itself, a copy for the _copy twins, and for the in-place ones the
// tensor with its geometry replaced.
func (c *Call) viewed(v *Tensor) ([]Value, error) {
	switch {
	case strings.HasSuffix(c.base(), "_copy"):
		return one(compactCopy(v))
	case c.Op.Info().Mutates:
		t := c.T(0)
		t.Sizes, t.Strides, t.Offset = v.Sizes, v.Strides, v.Offset
		return one(t)
	}
	return one(v)
}

func (c *Call) viewedList(vs []*Tensor) ([]Value, error) {
	outs := make([]Value, len(vs))
	for i, v := range vs {
		if strings.HasSuffix(c.base(), "_copy") {
			v = compactCopy(v)
		}
		outs[i] = v
	}
	return outs, nil
}

// same geometry over the same storage, as a tensor of its own.
func alias(t *Tensor) *Tensor {
	v := *t
	v.wrapped = false
	return &v
}

// evalAlias gives the input itself.
func evalAlias(c *Call) ([]Value, error) { return c.viewed(alias(c.T(0))) }

// inferSizes fills in the size that is -1.
func inferSizes(sizes []int64, n int64) []int64 {
	out := slices.Clone(sizes)
	at, known := -1, int64(1)
	for i, s := range sizes {
		switch {
		case s == -1 && at < 0:
			at = i
		case s < 0:
			fail("shape %v is not valid", sizes)
		default:
			known *= s
		}
	}
	if at >= 0 {
		if known == 0 || n%known != 0 {
			fail("shape %v does not fit %d elements", sizes, n)
		}
		out[at] = n / known
	} else if known != n {
		fail("shape %v does not fit %d elements", sizes, n)
	}
	return out
}

// viewStrides are the strides that make t look like sizes without a copy, nil where there are none.
func viewStrides(t *Tensor, sizes []int64) []int64 {
	if t.Numel() == 0 {
		return contiguous(sizes)
	}
	// Runs of old dimensions that continue one another are each divided among new dimensions from the right.
	st := make([]int64, len(sizes))
	j := len(sizes) - 1
	for i := len(t.Sizes) - 1; i >= 0; {
		base, run := t.Strides[i], t.Sizes[i]
		i--
		for i >= 0 && (t.Sizes[i] == 1 || t.Strides[i] == base*run) {
			run *= t.Sizes[i]
			i--
		}
		if run == 1 {
			continue
		}
		got, step := int64(1), base
		for j >= 0 && got < run {
			st[j] = step
			got *= sizes[j]
			step *= sizes[j]
			j--
		}
		if got != run {
			return nil
		}
	}
	for ; j >= 0; j-- {
		st[j] = 1
		if j+1 < len(sizes) {
			st[j] = st[j+1] * max(sizes[j+1], 1)
		}
		if sizes[j] != 1 {
			return nil
		}
	}
	return st
}

func reshape(t *Tensor, sizes []int64) *Tensor {
	sizes = inferSizes(sizes, t.Numel())
	if slices.Equal(sizes, t.Sizes) {
		return alias(t)
	}
	if st := viewStrides(t, sizes); st != nil {
		return t.view(sizes, st, t.Offset)
	}
	return compactCopy(t).withSizes(sizes...)
}

// evalView gives other sizes. Where the strides do not allow a view it copies: in a functional graph views are values, and
// a pass may have dropped the copy that made the strides right.
func evalView(c *Call) ([]Value, error) { return c.viewed(reshape(c.T(0), c.Ints(1))) }

func evalReshapeAs(c *Call) ([]Value, error) { return c.viewed(reshape(c.T(0), c.T(1).Sizes)) }

// evalViewDtype sees the bytes as another type.
func evalViewDtype(c *Call) ([]Value, error) {
	t, d := c.T(0), c.dtypeOr(1, ops.DTypeNone)
	return c.viewed(bitcast(t, d))
}

func bitcast(t *Tensor, d DType) *Tensor {
	a, b := t.DType.Size(), d.Size()
	v := alias(t)
	v.DType = d
	if a == b {
		return v
	}
	v.Sizes, v.Strides = slices.Clone(t.Sizes), slices.Clone(t.Strides)
	last := len(v.Sizes) - 1
	if last < 0 {
		fail("a 0-d tensor of %s cannot be seen as %s", t.DType, d)
	}
	if v.Strides[last] != 1 {
		fail("the last dimension must have stride 1 to be seen as %s", d)
	}
	if a > b {
		k := a / b
		v.Sizes[last] *= k
		v.Offset *= k
		for i := range v.Strides[:last] {
			v.Strides[i] *= k
		}
		return v
	}
	k := b / a
	if v.Sizes[last]%k != 0 || v.Offset%k != 0 {
		fail("%d elements of %s are no whole number of %s", v.Sizes[last], t.DType, d)
	}
	v.Sizes[last] /= k
	v.Offset /= k
	for i := range v.Strides[:last] {
		if v.Strides[i]%k != 0 {
			fail("strides %v do not divide by %d", t.Strides, k)
		}
		v.Strides[i] /= k
	}
	return v
}

func transpose(t *Tensor, a, b int) *Tensor {
	v := alias(t)
	if len(t.Sizes) == 0 {
		return v
	}
	v.Sizes, v.Strides = slices.Clone(t.Sizes), slices.Clone(t.Strides)
	v.Sizes[a], v.Sizes[b] = v.Sizes[b], v.Sizes[a]
	v.Strides[a], v.Strides[b] = v.Strides[b], v.Strides[a]
	return v
}

// evalTranspose swaps two dimensions.
func evalTranspose(c *Call) ([]Value, error) {
	t := c.T(0)
	return c.viewed(transpose(t, dim(c.Int(1), t.Rank()), dim(c.Int(2), t.Rank())))
}

// evalT swaps the dimensions of a matrix: t, mT, numpy_T reverses all.
func evalT(c *Call) ([]Value, error) {
	t := c.T(0)
	n := t.Rank()
	switch c.base() {
	case "numpy_T":
		order := make([]int, n)
		for i := range order {
			order[i] = n - 1 - i
		}
		return c.viewed(permute(t, order))
	case "mT", "mH", "adjoint", "matrix_H":
		if n < 2 {
			fail("a tensor of %d dimensions is no matrix", n)
		}
		v := transpose(t, n-2, n-1)
		if t.DType.IsComplex() && c.base() != "mT" {
			v = conj(v)
		}
		return c.viewed(v)
	}
	if n > 2 {
		fail("t takes at most 2 dimensions, not %d", n)
	}
	if n < 2 {
		return c.viewed(alias(t))
	}
	return c.viewed(transpose(t, 0, 1))
}

func conj(t *Tensor) *Tensor {
	return fromComplexes(t.DType, t.Sizes, mapSlice(t.complexes(), func(z complex128) complex128 { return complex(real(z), -imag(z)) }))
}

// evalConj conjugates; the lazy view of torch is a value here.
func evalConj(c *Call) ([]Value, error) {
	t := c.T(0)
	if !t.DType.IsComplex() {
		return one(alias(t))
	}
	return one(conj(t))
}

func permute(t *Tensor, order []int) *Tensor {
	v := alias(t)
	v.Sizes, v.Strides = make([]int64, len(order)), make([]int64, len(order))
	for i, d := range order {
		v.Sizes[i], v.Strides[i] = t.Sizes[d], t.Strides[d]
	}
	return v
}

// evalPermute puts dimensions in another order.
func evalPermute(c *Call) ([]Value, error) {
	t := c.T(0)
	ds := c.Ints(1)
	if len(ds) != t.Rank() {
		fail("%d dimensions to permute a tensor of %d", len(ds), t.Rank())
	}
	order := make([]int, len(ds))
	seen := make([]bool, len(ds))
	for i, d := range ds {
		order[i] = dim(d, t.Rank())
		if seen[order[i]] {
			fail("dimension %d is named twice", d)
		}
		seen[order[i]] = true
	}
	return c.viewed(permute(t, order))
}

// evalMovedim moves dimensions to other places.
func evalMovedim(c *Call) ([]Value, error) {
	t := c.T(0)
	src, dst := c.Ints(1), c.Ints(2)
	if len(src) != len(dst) {
		fail("%d sources, %d destinations", len(src), len(dst))
	}
	n := t.Rank()
	order := make([]int, n)
	for i := range order {
		order[i] = -1
	}
	used := make([]bool, n)
	for i := range src {
		s, d := dim(src[i], n), dim(dst[i], n)
		if n == 0 {
			continue
		}
		if used[s] || order[d] >= 0 {
			fail("a dimension is named twice in moving %v to %v", src, dst)
		}
		order[d] = s
		used[s] = true
	}
	next := 0
	for i := range order {
		if order[i] >= 0 {
			continue
		}
		for used[next] {
			next++
		}
		order[i] = next
		used[next] = true
	}
	return c.viewed(permute(t, order))
}

// evalExpand spreads dimensions of one element; -1 keeps a size.
func evalExpand(c *Call) ([]Value, error) {
	t := c.T(0)
	sizes := slices.Clone(c.Ints(1))
	lead := len(sizes) - t.Rank()
	if lead < 0 {
		fail("shape %v has fewer dimensions than the tensor's %v", sizes, t.Sizes)
	}
	for i := range sizes {
		if sizes[i] == -1 {
			if i < lead {
				fail("-1 stands for a new dimension in %v", sizes)
			}
			sizes[i] = t.Sizes[i-lead]
		}
	}
	return c.viewed(expandTo(alias(t), sizes))
}

func evalExpandAs(c *Call) ([]Value, error) { return c.viewed(expandTo(alias(c.T(0)), c.T(1).Sizes)) }

func squeeze(t *Tensor, in []bool) *Tensor {
	v := alias(t)
	v.Sizes, v.Strides = nil, nil
	for i, n := range t.Sizes {
		if n == 1 && in[i] {
			continue
		}
		v.Sizes, v.Strides = append(v.Sizes, n), append(v.Strides, t.Strides[i])
	}
	return v
}

// evalSqueeze drops dimensions of one element.
func evalSqueeze(c *Call) ([]Value, error) {
	t := c.T(0)
	if c.overload() == "" {
		return c.viewed(squeeze(t, dims(nil, t.Rank())))
	}
	in := make([]bool, t.Rank())
	for _, d := range c.Ints(1) {
		if k := dim(d, t.Rank()); t.Rank() > 0 {
			in[k] = true
		}
	}
	return c.viewed(squeeze(t, in))
}

func unsqueeze(t *Tensor, d int) *Tensor {
	v := alias(t)
	stride := int64(1)
	if d < len(t.Sizes) {
		stride = t.Sizes[d] * t.Strides[d]
	}
	v.Sizes = slices.Insert(slices.Clone(t.Sizes), d, 1)
	v.Strides = slices.Insert(slices.Clone(t.Strides), d, stride)
	return v
}

// evalUnsqueeze inserts a dimension of one element.
func evalUnsqueeze(c *Call) ([]Value, error) {
	t := c.T(0)
	return c.viewed(unsqueeze(t, dim(c.Int(1), t.Rank()+1)))
}

// slice is elements start, start+step, … before end of a dimension.
func slice(t *Tensor, d int, start, end, step int64) *Tensor {
	n := t.Sizes[d]
	if step <= 0 {
		fail("slice step %d is not positive", step)
	}
	if start < 0 {
		start = max(start+n, 0)
	}
	if end < 0 {
		end = max(end+n, 0)
	}
	start, end = min(start, n), min(end, n)
	v := alias(t)
	v.Sizes, v.Strides = slices.Clone(t.Sizes), slices.Clone(t.Strides)
	v.Sizes[d] = max(0, (end-start+step-1)/step)
	if v.Sizes[d] == 0 {
		return v
	}
	v.Offset += start * t.Strides[d]
	v.Strides[d] *= step
	return v
}

const lastIndex = 1<<63 - 1

// sliceOf reads the arguments dim, start, end, step that begin at i.
func (c *Call) sliceOf(t *Tensor, i int) *Tensor {
	d := dim(c.intOr(i, 0), t.Rank())
	if t.Rank() == 0 {
		fail("slice of a 0-d tensor")
	}
	return slice(t, d, c.intOr(i+1, 0), c.intOr(i+2, lastIndex), c.intOr(i+3, 1))
}

func evalSlice(c *Call) ([]Value, error) { return c.viewed(c.sliceOf(c.T(0), 1)) }

func selectDim(t *Tensor, d int, k int64) *Tensor {
	if len(t.Sizes) == 0 {
		fail("select of a 0-d tensor")
	}
	n := t.Sizes[d]
	if k < -n || k >= n {
		fail("index %d of dimension %d, which has %d elements", k, d, n)
	}
	if k < 0 {
		k += n
	}
	v := alias(t)
	v.Offset += k * t.Strides[d]
	v.Sizes = slices.Delete(slices.Clone(t.Sizes), d, d+1)
	v.Strides = slices.Delete(slices.Clone(t.Strides), d, d+1)
	return v
}

func evalSelect(c *Call) ([]Value, error) {
	t := c.T(0)
	return c.viewed(selectDim(t, dim(c.Int(1), t.Rank()), c.Int(2)))
}

// evalNarrow takes length elements of a dimension from start.
func evalNarrow(c *Call) ([]Value, error) {
	t := c.T(0)
	d := dim(c.Int(1), t.Rank())
	if t.Rank() == 0 {
		fail("narrow of a 0-d tensor")
	}
	start, length, n := c.Int(2), c.Int(3), t.Sizes[d]
	if start < 0 {
		start += n
	}
	if length < 0 || start < 0 || start > n-length {
		fail("%d elements from %d on of dimension %d, which has %d", length, c.Int(2), d, n)
	}
	return c.viewed(slice(t, d, start, start+length, 1))
}

func splitSizes(t *Tensor, sizes []int64, d int) []*Tensor {
	vs := make([]*Tensor, len(sizes))
	at := int64(0)
	for i, n := range sizes {
		if n < 0 {
			fail("split size %d is negative", n)
		}
		vs[i] = slice(t, d, at, at+n, 1)
		at += n
	}
	if at != t.Sizes[d] {
		fail("split sizes %v do not add up to %d", sizes, t.Sizes[d])
	}
	return vs
}

// evalSplit cuts a dimension into pieces of one size, or of the given sizes.
func evalSplit(c *Call) ([]Value, error) {
	t := c.T(0)
	d := dim(c.intOr(2, 0), t.Rank())
	if t.Rank() == 0 {
		fail("split of a 0-d tensor")
	}
	if _, list := c.Args[1].([]Value); list {
		return c.viewedList(splitSizes(t, c.Ints(1), d))
	}
	k, n := c.Int(1), t.Sizes[d]
	if k < 0 || k == 0 && n > 0 {
		fail("split size %d", k)
	}
	if n == 0 {
		return c.viewedList([]*Tensor{t})
	}
	var sizes []int64
	for at := int64(0); at < n; at += k {
		sizes = append(sizes, min(k, n-at))
	}
	return c.viewedList(splitSizes(t, sizes, d))
}

// evalChunk cuts a dimension into at most so many pieces.
func evalChunk(c *Call) ([]Value, error) {
	t := c.T(0)
	d := dim(c.intOr(2, 0), t.Rank())
	k, n := c.Int(1), t.Sizes[d]
	if k <= 0 {
		fail("%d chunks", k)
	}
	step := (n + k - 1) / k
	var sizes []int64
	if step == 0 {
		sizes = make([]int64, k)
	}
	for at := int64(0); at < n; at += step {
		sizes = append(sizes, min(step, n-at))
	}
	return c.viewedList(splitSizes(t, sizes, d))
}

// evalTensorSplit cuts a dimension into so many pieces, or at the given indices: tensor_split, hsplit, vsplit, dsplit.
func evalTensorSplit(c *Call) ([]Value, error) {
	t := c.T(0)
	var d int
	switch c.base() {
	case "tensor_split":
		d = dim(c.intOr(2, 0), t.Rank())
	case "hsplit":
		d = min(1, t.Rank()-1)
	case "vsplit":
		d = 0
	case "dsplit":
		d = 2
	}
	if d >= t.Rank() {
		fail("a tensor of %d dimensions cannot be split", t.Rank())
	}
	n := t.Sizes[d]
	var vs []*Tensor
	if _, list := c.Args[1].([]Value); list {
		at := int64(0)
		for _, k := range append(slices.Clone(c.Ints(1)), n) {
			vs = append(vs, slice(t, d, at, k, 1))
			at = k
		}
		return c.viewedList(vs)
	}
	k := c.Int(1)
	if k <= 0 {
		fail("%d sections", k)
	}
	at := int64(0)
	for i := range k {
		s := n / k
		if i < n%k {
			s++
		}
		vs = append(vs, slice(t, d, at, at+s, 1))
		at += s
	}
	return c.viewedList(vs)
}

// evalUnbind gives the slices along a dimension.
func evalUnbind(c *Call) ([]Value, error) {
	t := c.T(0)
	d := dim(c.intOr(1, 0), t.Rank())
	if t.Rank() == 0 {
		fail("unbind of a 0-d tensor")
	}
	vs := make([]*Tensor, t.Sizes[d])
	for i := range vs {
		vs[i] = selectDim(t, d, int64(i))
	}
	return c.viewedList(vs)
}

// evalFlatten merges dimensions start to end.
func evalFlatten(c *Call) ([]Value, error) {
	t := c.T(0)
	if t.Rank() == 0 {
		return c.viewed(reshape(t, []int64{1}))
	}
	a, b := dim(c.intOr(1, 0), t.Rank()), dim(c.intOr(2, -1), t.Rank())
	if a > b {
		fail("flatten from dimension %d to %d", a, b)
	}
	sizes := slices.Clone(t.Sizes[:a])
	sizes = append(sizes, numel(t.Sizes[a:b+1]))
	return c.viewed(reshape(t, append(sizes, t.Sizes[b+1:]...)))
}

func evalRavel(c *Call) ([]Value, error) {
	return c.viewed(reshape(compact(c.T(0)), []int64{-1}))
}

// evalUnflatten divides a dimension.
func evalUnflatten(c *Call) ([]Value, error) {
	t := c.T(0)
	d := dim(c.Int(1), t.Rank())
	mid := inferSizes(c.Ints(2), t.Sizes[d])
	sizes := append(slices.Clone(t.Sizes[:d]), mid...)
	return c.viewed(reshape(t, append(sizes, t.Sizes[d+1:]...)))
}

// evalAsStrided sees the storage with any geometry.
func evalAsStrided(c *Call) ([]Value, error) {
	t := c.T(0)
	return c.viewed(t.view(c.Ints(1), c.Ints(2), c.intOr(3, t.Offset)))
}

// evalAsStridedScatter writes into such a view of a copy.
func evalAsStridedScatter(c *Call) ([]Value, error) {
	t := compactCopy(c.T(0))
	writeInto(t.view(c.Ints(2), c.Ints(3), c.intOr(4, 0)), c.T(1))
	return one(t)
}

func diagonal(t *Tensor, offset int64, a, b int) *Tensor {
	if a == b {
		fail("the diagonal of dimension %d with itself", a)
	}
	v := alias(t)
	var n int64
	if offset >= 0 {
		n = min(t.Sizes[a], t.Sizes[b]-offset)
		v.Offset += offset * t.Strides[b]
	} else {
		n = min(t.Sizes[a]+offset, t.Sizes[b])
		v.Offset -= offset * t.Strides[a]
	}
	v.Sizes, v.Strides = nil, nil
	for i := range t.Sizes {
		if i != a && i != b {
			v.Sizes, v.Strides = append(v.Sizes, t.Sizes[i]), append(v.Strides, t.Strides[i])
		}
	}
	if n <= 0 {
		n, v.Offset = 0, t.Offset
	}
	v.Sizes, v.Strides = append(v.Sizes, n), append(v.Strides, t.Strides[a]+t.Strides[b])
	return v
}

// diagonalOf reads the arguments offset, dim1, dim2 by name.
func (c *Call) diagonalOf(t *Tensor) *Tensor {
	def := [2]int64{0, 1}
	if c.base() == "linalg_diagonal" {
		def = [2]int64{-2, -1}
	}
	return diagonal(t, c.intOr(c.index("offset"), 0), dim(c.intOr(c.index("dim1"), def[0]), t.Rank()), dim(c.intOr(c.index("dim2"), def[1]), t.Rank()))
}

func evalDiagonal(c *Call) ([]Value, error) { return c.viewed(c.diagonalOf(c.T(0))) }

// evalScatterView writes src into a view of a copy: slice_scatter, select_scatter, diagonal_scatter.
func evalScatterView(c *Call) ([]Value, error) {
	t := compactCopy(c.T(0))
	var v *Tensor
	switch c.base() {
	case "slice_scatter":
		v = c.sliceOf(t, 2)
	case "select_scatter":
		v = selectDim(t, dim(c.Int(2), t.Rank()), c.Int(3))
	case "diagonal_scatter":
		v = c.diagonalOf(t)
	}
	src := c.T(1)
	if !slices.Equal(src.Sizes, v.Sizes) && c.base() != "slice_scatter" {
		fail("src is %v, the slice %v", src.Sizes, v.Sizes)
	}
	writeInto(v, src)
	return one(t)
}

// evalUnfold gives windows of a dimension.
func evalUnfold(c *Call) ([]Value, error) {
	t := c.T(0)
	d := dim(c.Int(1), t.Rank())
	size, step := c.Int(2), c.Int(3)
	v := alias(t)
	if t.Rank() == 0 {
		return c.viewed(t.view([]int64{size}, []int64{1}, t.Offset))
	}
	if size < 0 || size > t.Sizes[d] || step <= 0 {
		fail("windows of %d at steps of %d in a dimension of %d", size, step, t.Sizes[d])
	}
	v.Sizes, v.Strides = append(slices.Clone(t.Sizes), size), append(slices.Clone(t.Strides), t.Strides[d])
	v.Sizes[d] = (t.Sizes[d]-size)/step + 1
	v.Strides[d] *= step
	return c.viewed(v)
}

// evalViewAsReal sees complex numbers as pairs.
func evalViewAsReal(c *Call) ([]Value, error) {
	t := c.T(0)
	if !t.DType.IsComplex() {
		fail("view_as_real of %s", t.DType)
	}
	return c.viewed(asReal(t))
}

func asReal(t *Tensor) *Tensor {
	v := alias(t)
	v.DType = t.DType.ToReal()
	v.Sizes, v.Strides = append(slices.Clone(t.Sizes), 2), append(slices.Clone(t.Strides), 1)
	for i := range t.Strides {
		v.Strides[i] *= 2
	}
	v.Offset *= 2
	return v
}

// evalViewAsComplex sees pairs as complex numbers.
func evalViewAsComplex(c *Call) ([]Value, error) {
	t := c.T(0)
	last := t.Rank() - 1
	if last < 0 || t.Sizes[last] != 2 {
		fail("view_as_complex of shape %v, whose last dimension is not 2", t.Sizes)
	}
	if t.DType.ToComplex().ToReal() != t.DType || classOf(t.DType) != classFloat {
		fail("view_as_complex of %s", t.DType)
	}
	ok := t.Strides[last] == 1 && t.Offset%2 == 0
	for _, s := range t.Strides[:last] {
		ok = ok && s%2 == 0
	}
	if !ok {
		t = compactCopy(t)
	}
	v := alias(t)
	v.DType = t.DType.ToComplex()
	v.Sizes, v.Strides = slices.Clone(t.Sizes[:last]), slices.Clone(t.Strides[:last])
	for i := range v.Strides {
		v.Strides[i] /= 2
	}
	v.Offset /= 2
	return c.viewed(v)
}

// evalReal gives the real or imaginary part as a view.
func evalReal(c *Call) ([]Value, error) {
	t := c.T(0)
	if !t.DType.IsComplex() {
		if c.base() == "imag" {
			fail("imag of %s", t.DType)
		}
		return one(alias(t))
	}
	k := int64(0)
	if c.base() == "imag" {
		k = 1
	}
	return one(selectDim(asReal(t), t.Rank(), k))
}

// evalAtleast adds dimensions of one element until there are so many.
func evalAtleast(c *Call) ([]Value, error) {
	pad := func(t *Tensor) *Tensor {
		switch c.base() {
		case "atleast_1d":
			if t.Rank() == 0 {
				return reshape(t, []int64{1})
			}
		case "atleast_2d":
			switch t.Rank() {
			case 0:
				return reshape(t, []int64{1, 1})
			case 1:
				return unsqueeze(t, 0)
			}
		case "atleast_3d":
			switch t.Rank() {
			case 0:
				return reshape(t, []int64{1, 1, 1})
			case 1:
				return unsqueeze(unsqueeze(t, 0), 2)
			case 2:
				return unsqueeze(t, 2)
			}
		}
		return alias(t)
	}
	var vs []*Tensor
	for _, t := range c.Ts(0) {
		vs = append(vs, pad(t))
	}
	return c.viewedList(vs)
}

// denseStrides are strides that lay sizes out densely in the given memory format or, for preserve_format, as t is laid out.
func denseStrides(t *Tensor, format string) []int64 {
	var order []int // innermost first
	switch {
	case format == "channels_last" && t.Rank() == 4:
		order = []int{1, 3, 2, 0}
	case format == "channels_last_3d" && t.Rank() == 5:
		order = []int{1, 4, 3, 2, 0}
	case (format == "preserve_format" || format == "") && !t.IsContiguous():
		for i := t.Rank() - 1; i >= 0; i-- {
			order = append(order, i)
		}
		slices.SortStableFunc(order, func(a, b int) int { return int(t.Strides[a] - t.Strides[b]) })
		n := int64(1)
		for _, d := range order {
			if t.Sizes[d] != 1 && t.Strides[d] != n {
				return contiguous(t.Sizes) // with gaps or overlaps
			}
			n *= t.Sizes[d]
		}
	default:
		return contiguous(t.Sizes)
	}
	st := make([]int64, t.Rank())
	n := int64(1)
	for _, d := range order {
		st[d] = n
		n *= max(t.Sizes[d], 1)
	}
	return st
}

// copyAs is a copy in a dtype and memory format.
func copyAs(t *Tensor, d DType, format string) *Tensor {
	o := NewTensor(d, t.Sizes...)
	o.Strides = denseStrides(t, format)
	writeInto(o, t)
	return o
}

func (c *Call) format() string {
	if i := c.index("memory_format"); i >= 0 {
		return c.Str(i)
	}
	return ""
}

// evalClone copies.
func evalClone(c *Call) ([]Value, error) {
	t := c.T(0)
	return one(copyAs(t, t.DType, c.format()))
}

// evalContiguous gives the tensor itself where it is laid out as asked, otherwise a copy.
func evalContiguous(c *Call) ([]Value, error) {
	t := c.T(0)
	f := c.format()
	if f == "" || f == "preserve_format" {
		f = "contiguous_format"
	}
	want := denseStrides(t, f)
	for i, n := range t.Sizes {
		if n != 1 && t.Strides[i] != want[i] {
			return one(copyAs(t, t.DType, f))
		}
	}
	return one(alias(t))
}

// evalTo converts dtype and layout: the to family, _to_copy, type_as and their like.
func evalTo(c *Call) ([]Value, error) {
	t := c.T(0)
	d := t.DType
	switch {
	case c.index("dtype") >= 0:
		d = c.dtypeOr(c.index("dtype"), d)
	case c.index("other") >= 0:
		d = c.T(c.index("other")).DType
	}
	must := strings.HasPrefix(c.base(), "_to_") || c.base() == "convert_element_type"
	if i := c.index("copy"); i >= 0 {
		must = must || c.Bool(i)
	}
	f := c.format()
	if d == t.DType && !must {
		if f == "" || f == "preserve_format" {
			return one(alias(t))
		}
		want := denseStrides(t, f)
		if slices.Equal(want, t.Strides) {
			return one(alias(t))
		}
	}
	return one(copyAs(t, d, f))
}

// evalCopy gives src with the dtype and shape of self.
func evalCopy(c *Call) ([]Value, error) {
	t, src := c.T(0), c.T(1)
	if c.Op.Info().Mutates {
		writeInto(t, src)
		return one(t)
	}
	o := NewTensor(t.DType, t.Sizes...)
	writeInto(o, src)
	return one(o)
}

// evalResize gives a tensor another size over its storage, which grows where it is too small.
func evalResize(c *Call) ([]Value, error) {
	t := c.T(0)
	sizes := slices.Clone(c.Ints(1))
	need := (t.Offset + numel(sizes)) * t.DType.Size()
	if int64(len(t.storage.b)) < need {
		if need > maxBytes {
			fail("a tensor of shape %v is too large", sizes)
		}
		b := alignedBytes(need)
		copy(b, t.storage.b)
		t.storage.b, t.storage.lent = b, false
	}
	t.Sizes, t.Strides = sizes, contiguous(sizes)
	return one(t)
}
