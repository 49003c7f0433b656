package interp

import (
	"math"
	"slices"

	"github.com/lathe-ml/lathe/ops"
)

// order gives for each line along a dimension the permutation that sorts it; equal elements keep their order, NaN is the
// largest.
func order(t *Tensor, d int, descending bool, f func(line []int64, perm []int)) {
	cmp := comparer(t)
	along(t.Sizes, d, func(line []int64) {
		perm := make([]int, len(line))
		for i := range perm {
			perm[i] = i
		}
		slices.SortStableFunc(perm, func(a, b int) int {
			k := cmp(line[a], line[b])
			if descending {
				return -k
			}
			return k
		})
		f(line, perm)
	})
}

// comparer compares elements by place.
func comparer(t *Tensor) func(a, b int64) int {
	if classOf(t.DType) == classInt {
		v := t.ints()
		return func(a, b int64) int {
			x, y := unsignedOrder(v[a], t.DType), unsignedOrder(v[b], t.DType)
			switch {
			case x < y:
				return -1
			case x > y:
				return 1
			}
			return 0
		}
	}
	if t.DType.IsComplex() {
		fail("complex numbers have no order")
	}
	v := t.floats()
	return func(a, b int64) int {
		x, y := v[a], v[b]
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		case math.IsNaN(x) && !math.IsNaN(y):
			return 1
		case math.IsNaN(y) && !math.IsNaN(x):
			return -1
		}
		return 0
	}
}

// sorted gives the elements sorted along a dimension and where they were.
func sorted(t *Tensor, d int, descending bool) (vals, idx *Tensor) {
	at, where := make([]int64, t.Numel()), make([]int64, t.Numel())
	order(t, d, descending, func(line []int64, perm []int) {
		for i, p := range perm {
			at[line[i]], where[line[i]] = line[p], int64(p)
		}
	})
	return gatherAt(t, t.Sizes, at), fromInts(ops.Int64, t.Sizes, where)
}

// evalSort sorts along a dimension: sort, argsort, msort.
func evalSort(c *Call) ([]Value, error) {
	t := c.T(0)
	d := int64(-1)
	if c.base() == "msort" {
		d = 0
	}
	vals, idx := sorted(t, dim(c.intOr(c.index("dim"), d), t.Rank()), c.Bool(c.index("descending")))
	switch c.base() {
	case "argsort":
		return one(idx)
	case "msort":
		return one(vals)
	}
	return []Value{vals, idx}, nil
}

// evalTopk gives the k largest or smallest elements along a dimension, sorted.
func evalTopk(c *Call) ([]Value, error) {
	t, k := c.T(0), c.Int(1)
	d := dim(c.intOr(2, -1), t.Rank())
	scalar := t.Rank() == 0
	if scalar {
		t = reshape(t, []int64{1})
	}
	if k < 0 || k > t.Sizes[d] {
		fail("the %d largest of %d", k, t.Sizes[d])
	}
	vals, idx := sorted(t, d, c.Bool(3))
	vals, idx = compact(slice(vals, d, 0, k, 1)), compact(slice(idx, d, 0, k, 1))
	if scalar {
		vals, idx = vals.withSizes(), idx.withSizes()
	}
	return []Value{vals, idx}, nil
}

// pick gives from each line along a dimension one element and its place.
func pick(t *Tensor, d int, keep bool, choose func(line []int64) int) (vals, idx *Tensor) {
	sizes := slices.Clone(t.Sizes)
	if len(sizes) > 0 {
		if keep {
			sizes[d] = 1
		} else {
			sizes = slices.Delete(sizes, d, d+1)
		}
	}
	var at, where []int64
	along(t.Sizes, d, func(line []int64) {
		if len(line) == 0 {
			fail("no element to choose from in shape %v", t.Sizes)
		}
		k := choose(line)
		at, where = append(at, line[k]), append(where, int64(k))
	})
	return gatherAt(t, sizes, at), fromInts(ops.Int64, sizes, where)
}

// evalKthvalue gives the k-th smallest element.
func evalKthvalue(c *Call) ([]Value, error) {
	t, k := c.T(0), int(c.Int(1))
	d := dim(c.intOr(2, -1), t.Rank())
	vals, idx := pick(t, d, c.Bool(3), func(line []int64) int {
		if k < 1 || k > len(line) {
			fail("element %d of %d", k, len(line))
		}
		return ranked(t, line)[k-1]
	})
	return []Value{vals, idx}, nil
}

func ranked(t *Tensor, line []int64) []int {
	cmp := comparer(t)
	perm := make([]int, len(line))
	for i := range perm {
		perm[i] = i
	}
	slices.SortStableFunc(perm, func(a, b int) int { return cmp(line[a], line[b]) })
	return perm
}

// evalMedian gives the lower median; a NaN wins unless NaNs are left out.
func evalMedian(c *Call) ([]Value, error) {
	t := c.T(0)
	all := c.overload() == ""
	if all {
		t = reshape(t, []int64{-1})
		if t.Numel() == 0 {
			return one(fill(t.DType, nil, math.NaN()))
		}
	}
	d := dim(c.intOr(1, 0), t.Rank())
	skip := c.base() == "nanmedian"
	v := t.floats()
	vals, idx := pick(t, d, c.Bool(2) && !all, func(line []int64) int {
		n := len(line)
		perm := ranked(t, line)
		nans := 0
		for _, k := range line {
			if math.IsNaN(v[k]) {
				nans++
			}
		}
		if nans > 0 && !skip {
			return slices.IndexFunc(line, func(k int64) bool { return math.IsNaN(v[k]) })
		}
		if nans == n {
			return 0
		}
		return perm[(n-nans-1)/2]
	})
	if all {
		return one(vals)
	}
	return []Value{vals, idx}, nil
}

// evalMode gives the most frequent element, the smallest of equals, and its last place.
func evalMode(c *Call) ([]Value, error) {
	t := c.T(0)
	d := dim(c.intOr(1, -1), t.Rank())
	cmp := comparer(t)
	vals, idx := pick(t, d, c.Bool(2), func(line []int64) int {
		perm := ranked(t, line)
		best, count := 0, 0
		for i := 0; i < len(perm); {
			j := i
			for j < len(perm) && cmp(line[perm[i]], line[perm[j]]) == 0 {
				j++
			}
			if j-i > count {
				best, count = perm[j-1], j-i
			}
			i = j
		}
		return best
	})
	return []Value{vals, idx}, nil
}

// evalQuantile interpolates between sorted elements: quantile, nanquantile.
func evalQuantile(c *Call) ([]Value, error) {
	t, q := c.T(0), c.T(1)
	if q.wrapped {
		q = scalarTensor(t.DType, c.Args[1])
	}
	keep := c.Bool(3)
	rank := t.Rank()
	d := 0
	if c.has(2) {
		d = dim(c.Int(2), rank)
	} else {
		t = reshape(t, []int64{-1})
	}
	mode := "linear"
	if i := c.index("interpolation"); c.has(i) {
		mode = c.Str(i)
	}
	skip := c.base() == "nanquantile"
	v := t.floats()
	sizes := slices.Clone(t.Sizes)
	if len(sizes) > 0 {
		sizes = slices.Delete(sizes, d, d+1)
	}
	lines := int(numel(sizes))
	qs := q.floats()
	out := make([]float64, len(qs)*lines)
	l := 0
	along(t.Sizes, d, func(line []int64) {
		s := make([]float64, 0, len(line))
		nan := false
		for _, k := range line {
			if math.IsNaN(v[k]) {
				nan = true
				if skip {
					continue
				}
			}
			s = append(s, v[k])
		}
		slices.SortFunc(s, cmpFloat)
		for i, p := range qs {
			if p < 0 || p > 1 {
				fail("quantile %v is not between 0 and 1", p)
			}
			x := math.NaN()
			if len(s) > 0 && (skip || !nan) {
				pos := p * float64(len(s)-1)
				lo, hi := math.Floor(pos), math.Ceil(pos)
				a, b := s[int(lo)], s[int(hi)]
				switch mode {
				case "linear":
					x = a + (b-a)*(pos-lo)
				case "lower":
					x = a
				case "higher":
					x = b
				case "midpoint":
					x = (a + b) / 2
				case "nearest":
					x = s[int(math.RoundToEven(pos))]
				default:
					fail("interpolation %q is not known", mode)
				}
			}
			out[i*lines+l] = x
		}
		l++
	})
	final := slices.Clone(sizes)
	if keep {
		if c.has(2) {
			final = slices.Insert(final, d, 1)
		} else {
			final = ones(rank)
		}
	}
	if q.Rank() > 0 {
		final = slices.Insert(final, 0, int64(len(qs)))
	}
	return one(fromFloats(t.DType, final, out))
}

// evalUnique gives the distinct elements (or slices), the place of each element among them, and counts.
func evalUnique(c *Call) ([]Value, error) {
	t := c.T(0)
	consecutive := c.base() == "unique_consecutive"
	flag := func(name string) bool { return c.Bool(c.index(name)) }
	wantInverse, wantCounts := flag("return_inverse"), flag("return_counts")
	if i := c.index("dim"); c.has(i) {
		return uniqueSlices(t, dim(c.Int(i), t.Rank()), consecutive)
	}
	f := reshape(t, []int64{-1})
	cmp := comparer(f)
	perm := make([]int64, f.Numel())
	for i := range perm {
		perm[i] = int64(i)
	}
	if !consecutive {
		slices.SortStableFunc(perm, cmp)
	}
	inverse := make([]int64, len(perm))
	var at, counts []int64
	for i, p := range perm {
		if i == 0 || cmp(perm[i-1], p) != 0 || isNaNAt(f, p) {
			at, counts = append(at, p), append(counts, 0)
		}
		inverse[p] = int64(len(at) - 1)
		counts[len(counts)-1]++
	}
	n := int64(len(at))
	outs := []Value{gatherAt(f, []int64{n}, at), fromInts(ops.Int64, t.Sizes, inverse)}
	if !wantInverse && c.base() != "_unique2" {
		outs[1] = NewTensor(ops.Int64, 0)
	}
	if c.base() == "_unique" {
		return outs, nil
	}
	if wantCounts {
		return append(outs, fromInts(ops.Int64, []int64{n}, counts)), nil
	}
	return append(outs, NewTensor(ops.Int64, 0)), nil
}

func isNaNAt(t *Tensor, k int64) bool {
	return classOf(t.DType) == classFloat && math.IsNaN(t.floats()[k])
}

func uniqueSlices(t *Tensor, d int, consecutive bool) ([]Value, error) {
	rows := compact(transpose(t, 0, d))
	n := rows.Sizes[0]
	inner := numel(rows.Sizes[1:])
	cmp := comparer(rows)
	cmpRow := func(a, b int64) int {
		for i := range inner {
			if k := cmp(a*inner+i, b*inner+i); k != 0 {
				return k
			}
		}
		return 0
	}
	perm := make([]int64, n)
	for i := range perm {
		perm[i] = int64(i)
	}
	if !consecutive {
		slices.SortStableFunc(perm, cmpRow)
	}
	inverse := make([]int64, n)
	var at, counts []int64
	for i, p := range perm {
		if i == 0 || cmpRow(perm[i-1], p) != 0 {
			at, counts = append(at, p), append(counts, 0)
		}
		inverse[p] = int64(len(at) - 1)
		counts[len(counts)-1]++
	}
	return []Value{
		indexRows(t, d, at), fromInts(ops.Int64, []int64{n}, inverse), fromInts(ops.Int64, []int64{int64(len(at))}, counts),
	}, nil
}
