package interp

import (
	"math"
	"slices"
	"sort"

	"github.com/lathe-ml/lathe/ops"
)

// evalEmbedding looks rows up.
func evalEmbedding(c *Call) ([]Value, error) {
	w, idx := c.T(0), c.T(1)
	if classOf(idx.DType) != classInt {
		fail("embedding by indices of %s", idx.DType)
	}
	need(w, 2, "weight")
	v := idx.ints()
	for _, k := range v {
		if k < 0 || k >= w.Sizes[0] {
			fail("index %d of an embedding of %d rows", k, w.Sizes[0])
		}
	}
	return one(indexRows(w, 0, v).withSizes(append(slices.Clone(idx.Sizes), w.Sizes[1])...))
}

// evalIndexSelect picks slices of a dimension.
func evalIndexSelect(c *Call) ([]Value, error) {
	t, idx := c.T(0), c.T(2)
	if idx.Rank() > 1 {
		fail("index_select by an index of shape %v", idx.Sizes)
	}
	if t.Rank() == 0 {
		if v := idx.ints(); len(v) != 1 || v[0] != 0 {
			fail("index_select of a 0-d tensor")
		}
		return one(compactCopy(t))
	}
	return one(indexRows(t, dim(c.Int(1), t.Rank()), idx.ints()))
}

// indexing is the resolved form of x[i, …]: the places of x (row-major) that the result's elements have, and the
// result's shape.
type indexing struct {
	sizes []int64
	at    []int64
}

// expandIndices turns bool masks into index vectors.
func expandIndices(t *Tensor, idx []*Tensor) []*Tensor {
	var out []*Tensor
	d := 0
	for _, ix := range idx {
		if ix == nil {
			out = append(out, nil)
			d++
			continue
		}
		if ix.DType != ops.Bool && ix.DType != ops.Uint8 {
			out = append(out, ix)
			d++
			continue
		}
		for k, n := range ix.Sizes {
			if d+k >= t.Rank() || t.Sizes[d+k] != n {
				fail("mask %v for dimensions %v from %d on", ix.Sizes, t.Sizes, d)
			}
		}
		if ix.Rank() == 0 {
			fail("indexing by a 0-d mask")
		}
		cols, n := nonzero(ix)
		for _, col := range cols {
			out = append(out, fromInts(ops.Int64, []int64{n}, col))
		}
		d += ix.Rank()
	}
	return out
}

// nonzero gives for each dimension the indices of the elements that are not zero.
func nonzero(t *Tensor) (cols [][]int64, n int64) {
	cols = make([][]int64, t.Rank())
	idx := make([]int64, t.Rank())
	for _, b := range t.bools() {
		if b {
			for i := range cols {
				cols[i] = append(cols[i], idx[i])
			}
			n++
		}
		count(idx, t.Sizes)
	}
	return cols, n
}

func resolveIndex(t *Tensor, idx []*Tensor) indexing {
	idx = expandIndices(t, idx)
	if len(idx) > t.Rank() {
		fail("%d indices for %d dimensions", len(idx), t.Rank())
	}
	var shapes [][]int64
	first, last, n := -1, -1, 0
	for i, ix := range idx {
		if ix == nil {
			continue
		}
		if classOf(ix.DType) != classInt {
			fail("indexing by %s", ix.DType)
		}
		shapes = append(shapes, ix.Sizes)
		if first < 0 {
			first = i
		}
		last = i
		n++
	}
	common := broadcast(shapes...)
	strides := contiguous(t.Sizes)
	// The offset that the index tensors together give, for each element of their common shape.
	offs := make([]int64, numel(common))
	for i, ix := range idx {
		if ix == nil {
			continue
		}
		for p, k := range wrapIndices(compact(expandTo(ix, common)).ints(), t.Sizes[i]) {
			offs[p] += k * strides[i]
		}
	}
	// Where the index tensors are adjacent, their dimensions take their place; otherwise they come first.
	var before, after []int
	adjacent := n > 0 && last-first+1 == n
	for i := range t.Sizes {
		if i < len(idx) && idx[i] != nil {
			continue
		}
		if adjacent && i < first {
			before = append(before, i)
		} else {
			after = append(after, i)
		}
	}
	places := func(ds []int) (sizes, at []int64) {
		at = []int64{0}
		for _, d := range ds {
			sizes = append(sizes, t.Sizes[d])
			next := make([]int64, 0, int64(len(at))*t.Sizes[d])
			for _, o := range at {
				for k := range t.Sizes[d] {
					next = append(next, o+k*strides[d])
				}
			}
			at = next
		}
		return sizes, at
	}
	bs, bat := places(before)
	as, aat := places(after)
	r := indexing{sizes: append(append(bs, common...), as...)}
	r.at = make([]int64, 0, len(bat)*len(offs)*len(aat))
	for _, b := range bat {
		for _, o := range offs {
			for _, a := range aat {
				r.at = append(r.at, b+o+a)
			}
		}
	}
	return r
}

// gatherAt picks elements of t by row-major place.
func gatherAt(t *Tensor, sizes, at []int64) *Tensor {
	return indexRows(reshape(compact(t), []int64{t.Numel()}), 0, at).withSizes(sizes...)
}

// evalIndex is x[i, …] with index tensors, masks and None.
func evalIndex(c *Call) ([]Value, error) {
	t := c.T(0)
	r := resolveIndex(t, c.Ts(1))
	return one(gatherAt(t, r.sizes, r.at))
}

// accumulator reads and writes elements of one class by place.
type accumulator struct {
	t *Tensor // contiguous, its own
	i []int64
	f []float64
	z []complex128
}

// newAccumulator holds a copy of t's elements.
func newAccumulator(t *Tensor) *accumulator {
	a := &accumulator{t: t}
	switch classOf(t.DType) {
	case classInt:
		a.i = slices.Clone(t.ints())
	case classFloat:
		a.f = slices.Clone(t.floats())
	default:
		a.z = slices.Clone(t.complexes())
	}
	return a
}

func (a *accumulator) tensor() *Tensor {
	switch {
	case a.f != nil:
		return fromFloats(a.t.DType, a.t.Sizes, a.f)
	case a.z != nil:
		return fromComplexes(a.t.DType, a.t.Sizes, a.z)
	}
	if classOf(a.t.DType) != classInt { // an empty tensor
		return NewTensor(a.t.DType, a.t.Sizes...)
	}
	return fromInts(a.t.DType, a.t.Sizes, a.i)
}

// put combines element k with element j of src.
func (a *accumulator) put(k int64, src *accumulator, j int, mode string) {
	switch {
	case a.f != nil:
		x, y := &a.f[k], src.f[j]
		switch mode {
		case "set":
			*x = y
		case "add", "sum", "mean":
			*x += y
		case "mul", "multiply", "prod":
			*x *= y
		case "amax":
			*x = maxNaN(*x, y)
		case "amin":
			*x = minNaN(*x, y)
		default:
			fail("reduction %q is not known", mode)
		}
	case a.z != nil:
		x, y := &a.z[k], src.z[j]
		switch mode {
		case "set":
			*x = y
		case "add", "sum", "mean":
			*x += y
		case "mul", "multiply", "prod":
			*x = mulComplex(*x, y)
		default:
			fail("reduction %q of complex numbers", mode)
		}
	default:
		x, y := &a.i[k], src.i[j]
		switch mode {
		case "set":
			*x = y
		case "add", "sum", "mean":
			*x += y
		case "mul", "multiply", "prod":
			*x *= y
		case "amax":
			*x = maxInt(*x, y, a.t.DType)
		case "amin":
			*x = minInt(*x, y, a.t.DType)
		default:
			fail("reduction %q is not known", mode)
		}
		if a.t.DType == ops.Bool && *x != 0 {
			*x = 1
		}
	}
}

// reset sets element k to the neutral element of a reduction.
func (a *accumulator) reset(k int64, mode string) {
	switch {
	case a.f != nil:
		a.f[k] = map[string]float64{"sum": 0, "mean": 0, "prod": 1, "amax": math.Inf(-1), "amin": math.Inf(1)}[mode]
	case a.i != nil:
		lo, hi := intRange(a.t.DType)
		a.i[k] = map[string]int64{"sum": 0, "mean": 0, "prod": 1, "amax": lo, "amin": hi}[mode]
	default:
		a.z[k] = map[string]complex128{"sum": 0, "mean": 0, "prod": 1}[mode]
	}
}

func (a *accumulator) divide(k, n int64) {
	switch {
	case a.f != nil:
		a.f[k] /= float64(n)
	case a.i != nil:
		a.i[k] = floorDivInt(a.i[k], n, a.t.DType)
	default:
		a.z[k] /= complex(float64(n), 0)
	}
}

// evalIndexPut writes values where x[i, …] reads.
func evalIndexPut(c *Call) ([]Value, error) {
	t, v := c.T(0), c.T(2)
	if v.DType != t.DType && !(v.wrapped || v.Rank() == 0) {
		fail("values of %s into a tensor of %s", v.DType, t.DType)
	}
	r := resolveIndex(t, c.Ts(1))
	return one(putAt(t, r, v, c.Bool(3)))
}

func putAt(t *Tensor, r indexing, v *Tensor, accumulate bool) *Tensor {
	v = cast(v, t.DType)
	for v.Rank() > len(r.sizes) && v.Sizes[0] == 1 {
		v = squeeze(v, only(0, v.Rank()))
	}
	src := newAccumulator(compact(expandTo(v, r.sizes)))
	dst := newAccumulator(t)
	mode := "set"
	if accumulate {
		mode = "add"
	}
	for j, k := range r.at {
		dst.put(k, src, j, mode)
	}
	return dst.tensor()
}

// evalUnsafeMaskedIndex is x[i, …] where a mask is true, a fill elsewhere; indices outside count only where it is true.
func evalUnsafeMaskedIndex(c *Call) ([]Value, error) {
	t, mask := c.T(0), c.T(1)
	r := resolveIndex(t, clampIndices(t, c.Ts(2)))
	o := gatherAt(t, r.sizes, r.at)
	m := expandTo(mask, r.sizes)
	return one(choose(m, o, scalarTensor(t.DType, c.Args[3]), r.sizes))
}

func clampIndices(t *Tensor, idx []*Tensor) []*Tensor {
	out := slices.Clone(idx)
	for i, ix := range idx {
		if ix != nil && classOf(ix.DType) == classInt && ix.DType != ops.Bool {
			n := t.Sizes[i]
			out[i] = fromInts(ops.Int64, ix.Sizes, mapSlice(ix.ints(), func(k int64) int64 { return min(max(k, -n), n-1) }))
		}
	}
	return out
}

// evalUnsafeMaskedIndexPutAccumulate adds values where a mask is true.
func evalUnsafeMaskedIndexPutAccumulate(c *Call) ([]Value, error) {
	t, mask, v := c.T(0), c.T(1), c.T(3)
	r := resolveIndex(t, clampIndices(t, c.Ts(2)))
	zero := NewTensor(t.DType)
	return one(putAt(t, r, choose(expandTo(mask, r.sizes), cast(v, t.DType), zero, r.sizes), true))
}

// evalIndexSet writes slices of a dimension: index_copy, index_add, index_fill, index_reduce.
func evalIndexSet(c *Call) ([]Value, error) {
	t, idx := c.T(0), c.T(2)
	d := dim(c.Int(1), t.Rank())
	scalar := t.Rank() == 0
	if scalar {
		t = reshape(t, []int64{1})
	}
	if idx.Rank() > 1 {
		fail("%s by an index of shape %v", c.base(), idx.Sizes)
	}
	ks := idx.ints()
	n := t.Sizes[d]
	name := c.pure()
	if name == "index_fill" {
		ks = wrapIndices(ks, n)
	}
	for _, k := range ks {
		if k < 0 || k >= n {
			fail("index %d of dimension %d, which has %d elements", k, d, n)
		}
	}
	sizes := slices.Clone(t.Sizes)
	sizes[d] = int64(len(ks))
	var src *Tensor
	mode := "set"
	switch name {
	case "index_fill":
		v := c.T(3)
		if v.Rank() != 0 {
			fail("index_fill by a value of shape %v", v.Sizes)
		}
		src = expandTo(cast(v, t.DType), sizes)
	default:
		src = c.T(3)
		if src.DType != t.DType && !src.wrapped {
			fail("%s of %s into %s", name, src.DType, t.DType)
		}
		if src.Rank() == 0 {
			src = expandTo(src, sizes)
		}
		if !slices.Equal(src.Sizes, sizes) {
			fail("%s by a source of shape %v, %v is wanted", name, src.Sizes, sizes)
		}
	}
	src = compact(cast(src, t.DType))
	switch name {
	case "index_add":
		mode = "add"
		if a := c.Args[c.index("alpha")]; asComplex(a) != 1 {
			src = binaries["mul"].apply(src, wrapFor(a), t.DType)
		}
	case "index_reduce":
		mode = c.Str(4)
	}
	dst, from := newAccumulator(t), newAccumulator(src)
	inner := numel(t.Sizes[d+1:])
	outer := numel(t.Sizes[:d])
	hits := make([]int64, n)
	if name == "index_reduce" {
		include := c.Bool(5)
		if include {
			for i := range hits {
				hits[i] = 1
			}
		} else {
			for _, k := range ks {
				for o := range outer {
					for i := range inner {
						dst.reset((o*n+k)*inner+i, mapReduce(mode))
					}
				}
			}
		}
	}
	m := int64(len(ks))
	for o := range outer {
		for j, k := range ks {
			for i := range inner {
				dst.put((o*n+k)*inner+i, from, int((o*m+int64(j))*inner+i), mapReduce(mode))
			}
		}
	}
	if mode == "mean" {
		for _, k := range ks {
			hits[k]++
		}
		for o := range outer {
			for k, h := range hits {
				for i := range inner {
					if h > 0 {
						dst.divide((o*n+int64(k))*inner+i, h)
					}
				}
			}
		}
	}
	out := dst.tensor()
	if scalar {
		out = out.withSizes()
	}
	return one(out)
}

func mapReduce(mode string) string {
	switch mode {
	case "add":
		return "sum"
	case "multiply":
		return "prod"
	}
	return mode
}

// eachIndex calls f for every element of an index tensor along a dimension: its row-major place, and the place in a
// tensor of the given sizes that it names.
func eachIndex(idx *Tensor, sizes []int64, d int, f func(j int, k int64)) {
	st := contiguous(sizes)
	pos := make([]int64, len(idx.Sizes))
	for j, k := range idx.ints() {
		if len(sizes) == 0 {
			if k != 0 {
				fail("index %d of a 0-d tensor", k)
			}
			f(j, 0)
			continue
		}
		n := sizes[d]
		if k < 0 || k >= n {
			fail("index %d of dimension %d, which has %d elements", k, d, n)
		}
		at := k * st[d]
		for i, p := range pos {
			if i != d {
				at += p * st[i]
			}
		}
		f(j, at)
		count(pos, idx.Sizes)
	}
}

func checkIndexShape(idx, t *Tensor, d int, what string) {
	if max(idx.Rank(), 1) != max(t.Rank(), 1) {
		fail("an index of %d dimensions for %s of %d", idx.Rank(), what, t.Rank())
	}
	for i, n := range idx.Sizes {
		if t.Rank() > 0 && i != d && n > t.Sizes[i] {
			fail("an index of shape %v for %s of shape %v", idx.Sizes, what, t.Sizes)
		}
	}
}

// evalGather picks along a dimension by an index of the result's shape.
func evalGather(c *Call) ([]Value, error) {
	t, idx := c.T(0), c.T(2)
	d := dim(c.Int(1), t.Rank())
	return one(gather(t, d, idx))
}

func gather(t *Tensor, d int, idx *Tensor) *Tensor {
	if idx.Numel() == 0 {
		return NewTensor(t.DType, idx.Sizes...) // of any rank, as torch has it
	}
	checkIndexShape(idx, t, d, "a tensor")
	idx1, t1 := idx, t
	if t.Rank() == 0 {
		t1 = reshape(t, []int64{1})
	}
	if idx.Rank() == 0 {
		idx1 = reshape(idx, []int64{1})
	}
	at := make([]int64, idx.Numel())
	eachIndex(idx1, t1.Sizes, d, func(j int, k int64) { at[j] = k })
	return gatherAt(t1, idx.Sizes, at)
}

// evalTakeAlongDim is gather with broadcasting; without a dimension, of the flattened tensor.
func evalTakeAlongDim(c *Call) ([]Value, error) {
	t, idx := c.T(0), c.T(1)
	if !c.has(2) {
		return one(gather(reshape(t, []int64{-1}), 0, reshape(idx, []int64{-1})))
	}
	d := dim(c.Int(2), t.Rank())
	ts, is := slices.Clone(t.Sizes), slices.Clone(idx.Sizes)
	if len(ts) != len(is) {
		fail("take_along_dim of shapes %v and %v", t.Sizes, idx.Sizes)
	}
	n, m := ts[d], is[d]
	ts[d], is[d] = 1, 1
	common := broadcast(ts, is)
	ts, is = slices.Clone(common), slices.Clone(common)
	ts[d], is[d] = n, m
	ix := compact(expandTo(idx, is))
	return one(gather(expandTo(t, ts), d, fromInts(ops.Int64, is, wrapIndices(ix.ints(), n))))
}

// evalScatter writes along a dimension by an index: scatter, scatter_add, scatter_reduce.
func evalScatter(c *Call) ([]Value, error) {
	t, idx := c.T(0), c.T(2)
	d := dim(c.Int(1), t.Rank())
	src := c.T(3)
	mode := "set"
	include := true
	switch c.pure() {
	case "scatter_add":
		mode = "add"
	case "scatter_reduce":
		mode, include = c.Str(4), c.Bool(5)
	default:
		if i := c.index("reduce"); i >= 0 {
			mode = c.Str(i)
		}
	}
	checkIndexShape(idx, t, d, "scatter into a tensor")
	if _, number := numberOf(c.Args[3]); number {
		src = expandTo(cast(src, t.DType), idx.Sizes)
	} else {
		if src.DType != t.DType {
			fail("scatter of %s into %s", src.DType, t.DType)
		}
		checkIndexShape(idx, src, -1, "a source")
	}
	// The part of the source that the index covers.
	for i, n := range idx.Sizes {
		if i < src.Rank() && src.Sizes[i] != n {
			src = slice(src, i, 0, n, 1)
		}
	}
	from, dst := newAccumulator(compact(src)), newAccumulator(t)
	ix := idx
	if idx.Rank() == 0 && t.Rank() > 0 {
		ix = reshape(idx, []int64{1})
	}
	sizes := t.Sizes
	mode = mapReduce(mode)
	hits := map[int64]int64{}
	if !include {
		eachIndex(ix, sizes, d, func(_ int, k int64) { dst.reset(k, mode) })
	}
	eachIndex(ix, sizes, d, func(j int, k int64) {
		dst.put(k, from, j, mode)
		if mode == "mean" {
			hits[k]++
		}
	})
	for k, h := range hits {
		if include {
			h++
		}
		dst.divide(k, h)
	}
	return one(dst.tensor())
}

// evalMaskedSelect picks the elements where a mask is true.
func evalMaskedSelect(c *Call) ([]Value, error) {
	t, mask := c.T(0), c.T(1)
	sizes := broadcast(t.Sizes, mask.Sizes)
	var at []int64
	for i, b := range expandTo(mask, sizes).bools() {
		if b {
			at = append(at, int64(i))
		}
	}
	return one(gatherAt(expandTo(t, sizes), []int64{int64(len(at))}, at))
}

// evalMaskedScatter writes successive elements of a source where a mask is true.
func evalMaskedScatter(c *Call) ([]Value, error) {
	t, mask, src := c.T(0), c.T(1), c.T(2)
	sameTypes("masked_scatter", t, src)
	sizes := broadcast(t.Sizes, mask.Sizes)
	dst, from := newAccumulator(compact(expandTo(t, sizes))), newAccumulator(compact(src))
	j := 0
	for i, b := range expandTo(mask, sizes).bools() {
		if b {
			if int64(j) >= src.Numel() {
				fail("masked_scatter by a source of %d elements", src.Numel())
			}
			dst.put(int64(i), from, j, "set")
			j++
		}
	}
	return one(dst.tensor())
}

// evalPut writes elements of the flattened tensor.
func evalPut(c *Call) ([]Value, error) {
	t, idx, src := c.T(0), c.T(1), c.T(2)
	sameTypes("put", t, src)
	if idx.Numel() != src.Numel() {
		fail("put of %d elements at %d places", src.Numel(), idx.Numel())
	}
	mode := "set"
	if c.Bool(3) {
		mode = "add"
	}
	dst, from := newAccumulator(t), newAccumulator(compact(src))
	for j, k := range wrapIndices(idx.ints(), t.Numel()) {
		dst.put(k, from, j, mode)
	}
	return one(dst.tensor())
}

// evalNonzero lists the places of elements that are not zero: as rows, or (nonzero_numpy) one vector a dimension;
// nonzero_static pads or cuts to a size.
func evalNonzero(c *Call) ([]Value, error) {
	t := c.T(0)
	if t.Rank() == 0 && c.base() == "nonzero_numpy" {
		t = reshape(t, []int64{1})
	}
	cols, n := nonzero(t)
	if c.base() == "nonzero_numpy" {
		outs := make([]Value, len(cols))
		for i, col := range cols {
			outs[i] = fromInts(ops.Int64, []int64{n}, col)
		}
		return outs, nil
	}
	rows := n
	pad := int64(-1)
	if c.base() == "nonzero_static" {
		rows, pad = c.Int(c.index("size")), c.intOr(c.index("fill_value"), -1)
	}
	r := int64(t.Rank())
	out := make([]int64, rows*r)
	for i := range out {
		out[i] = pad
	}
	for d, col := range cols {
		for i, k := range col {
			if int64(i) < rows {
				out[int64(i)*r+int64(d)] = k
			}
		}
	}
	return one(fromInts(ops.Int64, []int64{rows, r}, out))
}

// evalIsin tells which elements are among others.
func evalIsin(c *Call) ([]Value, error) {
	x, y := c.T(0), c.T(1)
	d := resultType(x, y)
	invert := c.Bool(3)
	set := map[float64]bool{}
	setInt := map[int64]bool{}
	if classOf(d) == classInt {
		for _, k := range y.ints() {
			setInt[k] = true
		}
		return one(fromBools(x.Sizes, mapSlice(x.ints(), func(k int64) bool { return setInt[k] != invert })))
	}
	for _, k := range cast(y, d).floats() {
		set[k] = true
	}
	return one(fromBools(x.Sizes, mapSlice(cast(x, d).floats(), func(k float64) bool { return set[k] != invert })))
}

// evalSearchsorted finds where values would go into sorted sequences: searchsorted, bucketize.
func evalSearchsorted(c *Call) ([]Value, error) {
	var seq, v *Tensor
	outInt32 := c.Bool(c.index("out_int32"))
	right := c.Bool(c.index("right"))
	if c.base() == "bucketize" {
		v, seq = c.T(0), c.T(1)
	} else {
		seq, v = c.T(0), c.T(1)
		if i := c.index("side"); c.has(i) {
			right = c.Str(i) == "right"
		}
	}
	if seq.Rank() == 0 {
		fail("boundaries are a 0-d tensor")
	}
	n := seq.Sizes[seq.Rank()-1]
	sv := seq.floats()
	if i := c.index("sorter"); c.has(i) {
		order := c.T(i).ints()
		s2 := make([]float64, len(sv))
		for j := range s2 {
			s2[j] = sv[int64(j)/n*n+order[j]]
		}
		sv = s2
	}
	vals := v.floats()
	out := make([]int64, len(vals))
	per := int64(1)
	if v.Rank() > 0 {
		per = max(v.Sizes[v.Rank()-1], 1)
	}
	for i, x := range vals {
		row := sv
		if seq.Rank() > 1 {
			r := int64(i) / per
			row = sv[r*n : (r+1)*n]
		}
		out[i] = int64(sort.Search(len(row), func(k int) bool {
			if right {
				return row[k] > x || math.IsNaN(row[k]) && !math.IsNaN(x)
			}
			return row[k] >= x || math.IsNaN(row[k])
		}))
		if math.IsNaN(x) && right {
			out[i] = int64(len(row))
		}
	}
	d := ops.Int64
	if outInt32 {
		d = ops.Int32
	}
	return one(fromInts(d, v.Sizes, out))
}

// evalBincount counts how often each integer occurs, or adds up weights.
func evalBincount(c *Call) ([]Value, error) {
	t := c.T(0)
	n := c.intOr(2, 0)
	v := t.ints()
	for _, k := range v {
		if k < 0 {
			fail("bincount of %d", k)
		}
		n = max(n, k+1)
	}
	if w := c.optT(1); w != nil {
		out := make([]float64, n)
		for i, x := range w.floats() {
			out[v[i]] += x
		}
		d := w.DType
		if d != ops.Float32 {
			d = ops.Float64
		}
		return one(fromFloats(d, []int64{n}, out))
	}
	out := make([]int64, n)
	for _, k := range v {
		out[k]++
	}
	return one(fromInts(ops.Int64, []int64{n}, out))
}

// evalHistc counts elements in equal bins.
func evalHistc(c *Call) ([]Value, error) {
	t := c.T(0)
	bins := c.intOr(1, 100)
	lo, hi := c.floatOr(2, 0), c.floatOr(3, 0)
	v := t.floats()
	if lo == hi && len(v) > 0 {
		lo, hi = slices.Min(v), slices.Max(v)
	}
	if lo == hi {
		lo, hi = lo-1, hi+1
	}
	if bins <= 0 || lo > hi || math.IsInf(lo, 0) || math.IsInf(hi, 0) {
		fail("histc of %d bins from %v to %v", bins, lo, hi)
	}
	out := make([]float64, bins)
	for _, x := range v {
		if !(x >= lo && x <= hi) {
			continue
		}
		k := int64((x - lo) * float64(bins) / (hi - lo))
		out[min(k, bins-1)]++
	}
	return one(fromFloats(t.DType, []int64{bins}, out))
}

// evalEmbeddingRenorm shrinks the rows that are looked up.
func evalEmbeddingRenorm(c *Call) ([]Value, error) {
	w, idx := compactCopy(c.T(0)), c.T(1)
	limit, p := c.Float(2), c.Float(3)
	for _, k := range idx.ints() {
		row := selectDim(w, 0, k)
		if n := norm(row.floats(), p); n > limit {
			s := limit / (n + 1e-7)
			writeInto(row, mapFloats(row, w.DType, func(x float64) float64 { return x * s }))
		}
	}
	return one(w)
}

// evalEmbeddingBag reduces rows that are looked up in bags. It gives the result, the bag of each index, bag sizes, and the
// places of maxima; embedding_bag alike.
func evalEmbeddingBag(c *Call) ([]Value, error) {
	w, idx, offs := c.T(0), c.T(1), c.T(2)
	mode := c.intOr(c.index("mode"), 0)
	weights := c.optT(c.index("per_sample_weights"))
	last := c.Bool(c.index("include_last_offset"))
	padIdx := int64(-1)
	if i := c.index("padding_idx"); c.has(i) {
		padIdx = c.Int(i)
		if padIdx < 0 && c.base() == "embedding_bag" {
			padIdx += w.Sizes[0]
		}
	}
	ks, os := idx.ints(), offs.ints()
	bags := int64(len(os))
	if last {
		bags--
	}
	dimN := w.Sizes[1]
	wv := w.floats()
	var sw []float64
	if weights != nil {
		sw = weights.floats()
	}
	out := make([]float64, bags*dimN)
	maxAt := make([]int64, bags*dimN)
	bagOf, size := make([]int64, len(ks)), make([]int64, bags)
	for b := range bags {
		end := int64(len(ks))
		if b+1 < int64(len(os)) {
			end = os[b+1]
		}
		row := out[b*dimN : (b+1)*dimN]
		for i := os[b]; i < end; i++ {
			k := ks[i]
			bagOf[i] = b
			if k < 0 || k >= w.Sizes[0] {
				fail("index %d of an embedding of %d rows", k, w.Sizes[0])
			}
			if k == padIdx {
				continue
			}
			for d := range dimN {
				x := wv[k*dimN+d]
				if sw != nil {
					x *= sw[i]
				}
				switch {
				case mode != 2:
					row[d] += x
				case size[b] == 0 || x > row[d]:
					row[d], maxAt[b*dimN+d] = x, k
				}
			}
			size[b]++
		}
		if last && b == bags-1 {
			// torch counts the last bag up to the end of the indices, whatever the last offset says.
			size[b] += int64(len(ks)) - end
		}
		if mode == 1 && size[b] > 0 {
			for d := range row {
				row[d] /= float64(size[b])
			}
		}
	}
	// What PyTorch leaves in the other results depends on the path it takes.
	it := idx.DType
	if offs.DType == ops.Int64 {
		it = ops.Int64
	}
	where := fromInts(it, []int64{int64(len(ks))}, bagOf)
	if mode == 0 {
		size = make([]int64, len(os))
		plain := w.DType == ops.Float32 || w.DType == ops.Float16 || w.DType == ops.BFloat16 && weights == nil
		if padIdx < 0 && plain && w.Strides[1] == 1 {
			where = NewTensor(it, 0)
		}
	}
	sizes := fromInts(it, []int64{int64(len(size))}, size)
	mi := NewTensor(it, bags)
	switch {
	case mode == 2:
		mi = fromInts(it, []int64{bags, dimN}, maxAt)
	case len(size) == int(bags):
		mi = compactCopy(sizes)
	}
	return []Value{fromFloats(w.DType, []int64{bags, dimN}, out), where, sizes, mi}, nil
}
