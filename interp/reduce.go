package interp

import (
	"math"
	"math/cmplx"
	"slices"
	"strings"

	"github.com/lathe-ml/lathe/ops"
)

// reduction lays a tensor out for a reduction: the reduced dimensions last and merged, so that each of outer results is
// made from inner consecutive elements.
type reduction struct {
	t            *Tensor // [outer, inner], any strides
	outer, inner int64
	sizes        []int64 // of the result
}

func (t *Tensor) reduction(in []bool, keep bool) reduction {
	var order, red []int
	r := reduction{outer: 1, inner: 1}
	for i, n := range t.Sizes {
		if in[i] {
			red = append(red, i)
			r.inner *= n
			if keep {
				r.sizes = append(r.sizes, 1)
			}
			continue
		}
		order = append(order, i)
		r.outer *= n
		r.sizes = append(r.sizes, n)
	}
	r.t = permute(t, append(order, red...))
	return r
}

// rows calls f with each row of floats.
func (r reduction) rows(f func(i int64, row []float64)) {
	v := r.t.floats()
	for i := range r.outer {
		f(i, v[i*r.inner:(i+1)*r.inner])
	}
}

func (r reduction) intRows(f func(i int64, row []int64)) {
	v := r.t.ints()
	for i := range r.outer {
		f(i, v[i*r.inner:(i+1)*r.inner])
	}
}

// floats reduces each row of floats to one number.
func (r reduction) floats(d DType, f func(row []float64) float64) *Tensor {
	out := make([]float64, r.outer)
	r.rows(func(i int64, row []float64) { out[i] = f(row) })
	return fromFloats(d, r.sizes, out)
}

func sumFloats(row []float64) float64 {
	s := 0.0
	for _, x := range row {
		s += x
	}
	return s
}

// sumType is the dtype of a sum or product: integers and bools become int64.
func sumType(d DType) DType {
	if classOf(d) == classInt {
		return ops.Int64
	}
	return d
}

func reduceSum(t *Tensor, ds []int64, keep bool, d DType) *Tensor {
	return fold(t, dims(ds, t.Rank()), keep, d, "sum")
}

// fold computes a sum or product in the class of d.
func fold(t *Tensor, in []bool, keep bool, d DType, op string) *Tensor {
	r := t.reduction(in, keep)
	switch classOf(d) {
	case classInt:
		r.t = cast(r.t, d)
		out := make([]int64, r.outer)
		r.intRows(func(i int64, row []int64) {
			if op == "prod" {
				p := int64(1)
				for _, x := range row {
					p *= x
				}
				out[i] = p
				return
			}
			for _, x := range row {
				out[i] += x
			}
		})
		return fromInts(d, r.sizes, out)
	case classFloat:
		if op == "prod" {
			return r.floats(d, func(row []float64) float64 {
				p := 1.0
				for _, x := range row {
					p *= x
				}
				return p
			})
		}
		return r.floats(d, sumFloats)
	}
	v := r.t.complexes()
	out := make([]complex128, r.outer)
	for i := range r.outer {
		p := complex(1, 0)
		for _, z := range v[i*r.inner : (i+1)*r.inner] {
			out[i] += z
			p = mulComplex(p, z)
		}
		if op == "prod" {
			out[i] = p
		}
	}
	return fromComplexes(d, r.sizes, out)
}

// reduced reads the arguments dim and keepdim by name.
func (c *Call) reduced(t *Tensor) (in []bool, keep bool) {
	var ds []int64
	if i := c.index("dim"); c.has(i) {
		ds = c.Ints(i)
	}
	return dims(ds, t.Rank()), c.Bool(c.index("keepdim"))
}

// evalSum adds over dimensions: sum, nansum, prod.
func evalSum(c *Call) ([]Value, error) {
	t := c.T(0)
	d := c.dtypeOr(c.index("dtype"), sumType(t.DType))
	in, keep := c.reduced(t)
	op := "sum"
	if c.base() == "prod" {
		op = "prod"
	}
	if c.base() == "nansum" && classOf(t.DType) == classFloat {
		t = mapFloats(t, t.DType, func(x float64) float64 {
			if math.IsNaN(x) {
				return 0
			}
			return x
		})
	}
	if half(d) && d != t.DType {
		t = cast(t, d)
	}
	return one(fold(t, in, keep, d, op))
}

// evalMean averages over dimensions: mean, nanmean.
func evalMean(c *Call) ([]Value, error) {
	t := c.T(0)
	in, keep := c.reduced(t)
	d := c.dtypeOr(c.index("dtype"), t.DType)
	if classOf(d) == classInt {
		fail("mean has no meaning for %s", d)
	}
	return one(mean(t, in, keep, d, c.base() == "nanmean"))
}

func mean(t *Tensor, in []bool, keep bool, d DType, skipNaN bool) *Tensor {
	r := t.reduction(in, keep)
	if d.IsComplex() {
		s := fold(t, in, keep, ops.Complex128, "sum")
		return fromComplexes(d, r.sizes, mapSlice(s.complexes(), func(z complex128) complex128 { return z / complex(float64(r.inner), 0) }))
	}
	return r.floats(d, func(row []float64) float64 {
		if !skipNaN {
			return sumFloats(row) / float64(len(row))
		}
		s, n := 0.0, 0
		for _, x := range row {
			if !math.IsNaN(x) {
				s += x
				n++
			}
		}
		return s / float64(n)
	})
}

// moments gives mean and sum of squared deviations of a row.
func moments(row []float64) (mean, m2 float64) {
	mean = sumFloats(row) / float64(len(row))
	for _, x := range row {
		m2 += (x - mean) * (x - mean)
	}
	return mean, m2
}

// evalVar computes var, std and the pairs with mean.
func evalVar(c *Call) ([]Value, error) {
	t := c.T(0)
	in, keep := c.reduced(t)
	corr := 1.0
	if i := c.index("correction"); c.has(i) {
		corr = c.Float(i)
	} else if i := c.index("unbiased"); i >= 0 && !c.Bool(i) {
		corr = 0
	}
	root := strings.HasPrefix(c.base(), "std")
	finish := func(m2, n float64) float64 {
		v := m2 / max(0, n-corr)
		if root {
			return math.Sqrt(v)
		}
		return v
	}
	r := t.reduction(in, keep)
	v, m := make([]float64, r.outer), make([]float64, r.outer)
	var outV, outM *Tensor
	if t.DType.IsComplex() {
		zs, zm := r.t.complexes(), make([]complex128, r.outer)
		for i := range r.outer {
			row := zs[i*r.inner : (i+1)*r.inner]
			for _, z := range row {
				zm[i] += z / complex(float64(r.inner), 0)
			}
			for _, z := range row {
				a := cmplx.Abs(z - zm[i])
				v[i] += a * a
			}
			v[i] = finish(v[i], float64(r.inner))
		}
		outV, outM = fromFloats(t.DType.ToReal(), r.sizes, v), fromComplexes(t.DType, r.sizes, zm)
	} else {
		if classOf(t.DType) == classInt {
			fail("%s has no meaning for %s", c.base(), t.DType)
		}
		r.rows(func(i int64, row []float64) {
			mu, m2 := moments(row)
			m[i], v[i] = mu, finish(m2, float64(len(row)))
		})
		outV, outM = fromFloats(t.DType, r.sizes, v), fromFloats(t.DType, r.sizes, m)
	}
	if strings.HasSuffix(c.base(), "_mean") {
		return []Value{outV, outM}, nil
	}
	return one(outV)
}

// evalAllAny tells whether all or any elements are true: all, any, _is_all_true, _is_any_true.
func evalAllAny(c *Call) ([]Value, error) {
	t := c.T(0)
	in, keep := c.reduced(t)
	all := c.base() == "all" || c.base() == "_is_all_true"
	if i := c.index("dim"); i >= 0 && c.has(i) && c.overload() == "dims" && len(c.Ints(i)) == 0 { // over no dimension: element by element
		clear(in)
	}
	r := t.reduction(in, keep)
	v := r.t.bools()
	out := make([]bool, r.outer)
	for i := range out {
		row := v[int64(i)*r.inner : int64(i+1)*r.inner]
		out[i] = slices.Contains(row, !all) != all
	}
	o := fromBools(r.sizes, out)
	if t.DType == ops.Uint8 { // kept from before torch had bools
		o = cast(o, ops.Uint8)
	}
	return one(o)
}

// best finds the place of the largest (or smallest) element: the first of equals, and a NaN before all.
func best[T int64 | float64](row []T, less func(a, b T) bool) int64 {
	k := 0
	for i, x := range row {
		if x != x {
			return int64(i)
		}
		if less(row[k], x) {
			k = i
		}
	}
	return int64(k)
}

func orderInt(d DType, smallest bool) func(a, b int64) bool {
	return func(a, b int64) bool {
		a, b = unsignedOrder(a, d), unsignedOrder(b, d)
		if smallest {
			return b < a
		}
		return a < b
	}
}

func orderFloat(smallest bool) func(a, b float64) bool {
	if smallest {
		return func(a, b float64) bool { return b < a }
	}
	return func(a, b float64) bool { return a < b }
}

// extreme gives values and places of the extremes over dimensions.
func extreme(t *Tensor, in []bool, keep, smallest bool) (vals, idx *Tensor) {
	r := t.reduction(in, keep)
	if r.inner == 0 && r.outer > 0 {
		fail("no element to choose from in shape %v", t.Sizes)
	}
	at := make([]int64, r.outer)
	if classOf(t.DType) == classInt {
		less := orderInt(t.DType, smallest)
		out := make([]int64, r.outer)
		r.intRows(func(i int64, row []int64) {
			at[i] = best(row, less)
			out[i] = row[at[i]]
		})
		vals = fromInts(t.DType, r.sizes, out)
	} else {
		if t.DType.IsComplex() {
			fail("complex numbers have no order")
		}
		less := orderFloat(smallest)
		vals = r.floats(t.DType, func(row []float64) float64 { return row[best(row, less)] })
		r.rows(func(i int64, row []float64) { at[i] = best(row, less) })
	}
	return vals, fromInts(ops.Int64, r.sizes, at)
}

// evalExtreme computes max and min over all, over a dimension (with places), or of two tensors; amax and amin over
// several dimensions.
func evalExtreme(c *Call) ([]Value, error) {
	if c.overload() == "other" {
		x, y := c.T(0), c.T(1)
		name := map[string]string{"max": "maximum", "min": "minimum"}[c.base()]
		return one(binaries[name].apply(x, y, resultType(x, y)))
	}
	t := c.T(0)
	in, keep := c.reduced(t)
	smallest := strings.HasSuffix(c.base(), "min")
	vals, idx := extreme(t, in, keep, smallest)
	if c.overload() == "dim" {
		return []Value{vals, idx}, nil
	}
	return one(vals)
}

func evalAminmax(c *Call) ([]Value, error) {
	t := c.T(0)
	in, keep := c.reduced(t)
	lo, _ := extreme(t, in, keep, true)
	hi, _ := extreme(t, in, keep, false)
	return []Value{lo, hi}, nil
}

// evalArgExtreme gives the place of the largest or smallest element, of the flattened tensor without a dimension.
func evalArgExtreme(c *Call) ([]Value, error) {
	t := c.T(0)
	in, keep := c.reduced(t)
	_, idx := extreme(t, in, keep, c.base() == "argmin")
	return one(idx)
}

// evalCountNonzero counts what is not zero.
func evalCountNonzero(c *Call) ([]Value, error) {
	t := c.T(0)
	in, _ := c.reduced(t)
	r := t.reduction(in, false)
	v := r.t.bools()
	out := make([]int64, r.outer)
	for i, b := range v {
		if b {
			out[int64(i)/r.inner]++
		}
	}
	return one(fromInts(ops.Int64, r.sizes, out))
}

func logsumexp(row []float64) float64 {
	m := math.Inf(-1)
	for _, x := range row {
		m = maxNaN(m, x)
	}
	if math.IsInf(m, 0) || math.IsNaN(m) {
		if len(row) == 0 || math.IsInf(m, -1) {
			return math.Inf(-1)
		}
		return m
	}
	s := 0.0
	for _, x := range row {
		s += math.Exp(x - m)
	}
	return m + math.Log(s)
}

// evalLogsumexp is the logarithm of a sum of exponentials.
func evalLogsumexp(c *Call) ([]Value, error) {
	t := c.T(0)
	in, keep := c.reduced(t)
	return one(t.reduction(in, keep).floats(floatType(t.DType), logsumexp))
}

// norm is the vector norm of a row.
func norm(row []float64, p float64) float64 {
	switch {
	case p == 0:
		n := 0.0
		for _, x := range row {
			if x != 0 {
				n++
			}
		}
		return n
	case math.IsInf(p, 1):
		m := 0.0
		for _, x := range row {
			m = maxNaN(m, math.Abs(x))
		}
		return m
	case math.IsInf(p, -1):
		m := math.Inf(1)
		for _, x := range row {
			m = minNaN(m, math.Abs(x))
		}
		return m
	case p == 1:
		s := 0.0
		for _, x := range row {
			s += math.Abs(x)
		}
		return s
	case p == 2:
		s := 0.0
		for _, x := range row {
			s += x * x
		}
		return math.Sqrt(s)
	}
	s := 0.0
	for _, x := range row {
		s += math.Pow(math.Abs(x), p)
	}
	return math.Pow(s, 1/p)
}

// vectorNorm is a norm over dimensions.
func vectorNorm(t *Tensor, p float64, in []bool, keep bool, d DType) *Tensor {
	if t.DType.IsComplex() {
		t = fromFloats(ops.Float64, t.Sizes, mapSlice(t.complexes(), cmplx.Abs))
	}
	return t.reduction(in, keep).floats(d, func(row []float64) float64 { return norm(row, p) })
}

// evalNorm computes vector norms: linalg_vector_norm, norm, dist, frobenius_norm.
func evalNorm(c *Call) ([]Value, error) {
	t := c.T(0)
	if c.base() == "dist" {
		x, y := c.T(0), c.T(1)
		d := resultType(x, y)
		t = binaries["sub"].apply(x, y, d)
		return one(vectorNorm(t, c.floatOr(2, 2), dims(nil, t.Rank()), false, d.ToReal()))
	}
	p := 2.0
	for _, name := range []string{"ord", "p"} {
		if i := c.index(name); c.has(i) {
			p = c.Float(i)
		}
	}
	in, keep := c.reduced(t)
	d := c.dtypeOr(c.index("dtype"), t.DType.ToReal())
	if classOf(d) == classInt {
		fail("%s has no meaning for %s", c.base(), d)
	}
	return one(vectorNorm(t, p, in, keep, d.ToReal()))
}

// evalMatrixNorm computes norms of matrices: Frobenius, nuclear and operator norms.
func evalMatrixNorm(c *Call) ([]Value, error) {
	t := c.T(0)
	d := c.dtypeOr(c.index("dtype"), t.DType).ToReal()
	ds := []int64{-2, -1}
	if i := c.index("dim"); c.has(i) {
		ds = c.Ints(i)
	}
	keep := c.Bool(c.index("keepdim"))
	ord := c.arg("ord")
	if ord == nil {
		ord = "fro"
	}
	if c.base() == "linalg_norm" {
		if !c.has(c.index("ord")) {
			if i := c.index("dim"); c.has(i) {
				return one(vectorNorm(t, 2, dims(ds, t.Rank()), keep, d))
			}
			return one(vectorNorm(t, 2, dims(nil, t.Rank()), keep, d))
		}
		if !c.has(c.index("dim")) && t.Rank() == 1 {
			ds = []int64{0}
		}
		if f, ok := asFloat(ord); ok && len(ds) == 1 {
			return one(vectorNorm(t, f, dims(ds, t.Rank()), keep, d))
		}
	}
	if len(ds) != 2 {
		fail("a matrix norm over %d dimensions", len(ds))
	}
	in := dims(ds, t.Rank())
	if ord == "fro" {
		return one(vectorNorm(t, 2, in, keep, d))
	}
	a, b := dim(ds[0], t.Rank()), dim(ds[1], t.Rank())
	if t.Numel() == 0 {
		return one(vectorNorm(t, 2, in, keep, d)) // every norm of nothing is zero
	}
	if p, ok := asFloat(ord); ok && (math.Abs(p) == 1 || math.IsInf(p, 0)) {
		sumDim, maxDim := a, b
		if math.IsInf(p, 0) {
			sumDim, maxDim = b, a
		}
		s := vectorNorm(t, 1, only(sumDim, t.Rank()), true, ops.Float64)
		v, _ := extreme(s, only(maxDim, t.Rank()), true, p < 0)
		if !keep {
			v = squeeze(v, in)
		}
		return one(cast(compact(v), d))
	}
	r := t.reduction(in, keep)
	order := []int{}
	for i := range t.Sizes {
		if i != a && i != b {
			order = append(order, i)
		}
	}
	m := permute(t, append(order, a, b)).floats()
	rows, cols := t.Sizes[a], t.Sizes[b]
	out := make([]float64, r.outer)
	for i := range out {
		sv := singularValues(m[int64(i)*rows*cols:int64(i+1)*rows*cols], int(rows), int(cols))
		switch {
		case ord == "nuc":
			out[i] = sumFloats(sv)
		case mustFloat(ord) == 2:
			out[i] = slices.Max(sv)
		case mustFloat(ord) == -2:
			out[i] = slices.Min(sv)
		default:
			fail("matrix norm %v is not known", ord)
		}
	}
	return one(fromFloats(d, r.sizes, out))
}

func only(d, rank int) []bool {
	in := make([]bool, rank)
	if rank > 0 {
		in[d] = true
	}
	return in
}

// along calls f for each line of a dimension with the places of its elements in row-major order.
func along(sizes []int64, d int, f func(line []int64)) {
	if len(sizes) == 0 {
		f([]int64{0})
		return
	}
	n, inner := sizes[d], int64(1)
	for _, s := range sizes[d+1:] {
		inner *= s
	}
	outer := int64(1)
	for _, s := range sizes[:d] {
		outer *= s
	}
	line := make([]int64, n)
	for o := range outer {
		for i := range inner {
			for k := range line {
				line[k] = (o*n+int64(k))*inner + i
			}
			f(line)
		}
	}
}

// evalCumulative computes running sums, products and log-sum-exps along a dimension.
func evalCumulative(c *Call) ([]Value, error) {
	t := c.T(0)
	d := dim(c.Int(1), t.Rank())
	name := c.pure()
	dt := sumType(t.DType)
	if i := c.index("dtype"); i >= 0 {
		dt = c.dtypeOr(i, dt)
	}
	if c.Op.Info().Mutates {
		dt = t.DType
	}
	switch {
	case name == "logcumsumexp":
		v := t.floats()
		out := make([]float64, len(v))
		along(t.Sizes, d, func(line []int64) {
			s := math.Inf(-1)
			for _, k := range line {
				s = logaddexp(s, v[k])
				out[k] = s
			}
		})
		return one(fromFloats(floatType(t.DType), t.Sizes, out))
	case dt.IsComplex():
		v := t.complexes()
		out := make([]complex128, len(v))
		along(t.Sizes, d, func(line []int64) {
			s, p := complex(0, 0), complex(1, 0)
			for _, k := range line {
				s, p = s+v[k], mulComplex(p, v[k])
				out[k] = s
				if name == "cumprod" {
					out[k] = p
				}
			}
		})
		return one(fromComplexes(dt, t.Sizes, out))
	case classOf(dt) == classInt:
		v := cast(t, dt).ints()
		out := make([]int64, len(v))
		along(t.Sizes, d, func(line []int64) {
			s, p := int64(0), int64(1)
			for _, k := range line {
				s, p = s+v[k], p*v[k]
				out[k] = s
				if name == "cumprod" {
					out[k] = p
				}
			}
		})
		return one(fromInts(dt, t.Sizes, out))
	}
	v := cast(t, dt).floats()
	out := make([]float64, len(v))
	along(t.Sizes, d, func(line []int64) {
		s, p := 0.0, 1.0
		for _, k := range line {
			s, p = s+v[k], p*v[k]
			out[k] = s
			if name == "cumprod" {
				out[k] = p
			}
		}
	})
	return one(fromFloats(dt, t.Sizes, out))
}

// evalCumExtreme computes running maxima or minima and their places; the last of equals, and NaN stays.
func evalCumExtreme(c *Call) ([]Value, error) {
	t := c.T(0)
	d := dim(c.Int(1), t.Rank())
	smallest := c.base() == "cummin"
	at := make([]int64, t.Numel())
	if classOf(t.DType) == classInt {
		v := t.ints()
		out := make([]int64, len(v))
		less := orderInt(t.DType, smallest)
		along(t.Sizes, d, func(line []int64) {
			k := 0
			for i, p := range line {
				if !less(v[p], v[line[k]]) {
					k = i
				}
				out[p], at[p] = v[line[k]], int64(k)
			}
		})
		return []Value{fromInts(t.DType, t.Sizes, out), fromInts(ops.Int64, t.Sizes, at)}, nil
	}
	v := t.floats()
	out := make([]float64, len(v))
	less := orderFloat(smallest)
	along(t.Sizes, d, func(line []int64) {
		k := 0
		for i, p := range line {
			if cur := v[line[k]]; math.IsNaN(v[p]) || !math.IsNaN(cur) && !less(v[p], cur) {
				k = i
			}
			out[p], at[p] = v[line[k]], int64(k)
		}
	})
	return []Value{fromFloats(t.DType, t.Sizes, out), fromInts(ops.Int64, t.Sizes, at)}, nil
}

// evalSumToSize sums broadcast dimensions away.
func evalSumToSize(c *Call) ([]Value, error) {
	t, sizes := c.T(0), c.Ints(1)
	lead := t.Rank() - len(sizes)
	if lead < 0 {
		fail("sum_to_size of shape %v to %v", t.Sizes, sizes)
	}
	in := make([]bool, t.Rank())
	any := false
	for i := range in {
		in[i] = i < lead || sizes[i-lead] == 1 && t.Sizes[i] != 1
		any = any || in[i]
		if i >= lead && !in[i] && sizes[i-lead] != t.Sizes[i] {
			fail("sum_to_size of shape %v to %v", t.Sizes, sizes)
		}
	}
	d := t.DType
	if classOf(d) == classInt && (any || len(sizes) == 0) {
		d = ops.Int64
	}
	if !any {
		return one(alias(cast(t, d)))
	}
	return one(fold(t, in, true, d, "sum").withSizes(sizes...))
}
