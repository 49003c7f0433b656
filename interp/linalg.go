package interp

import (
	"math"
	"math/cmplx"
	"slices"

	"github.com/lathe-ml/lathe/ops"
)

// singularValues of a row-major matrix, by one-sided Jacobi rotations.
func singularValues(m []float64, rows, cols int) []float64 {
	a := slices.Clone(m)
	if rows < cols {
		t := make([]float64, len(a))
		for i := range rows {
			for j := range cols {
				t[j*rows+i] = a[i*cols+j]
			}
		}
		a, rows, cols = t, cols, rows
	}
	for range 60 {
		off := 0.0
		for p := range cols {
			for q := p + 1; q < cols; q++ {
				var x, y, z float64
				for i := range rows {
					u, v := a[i*cols+p], a[i*cols+q]
					x, y, z = x+u*u, y+v*v, z+u*v
				}
				if z == 0 {
					continue
				}
				off = max(off, math.Abs(z)/math.Sqrt(x*y))
				t := (y - x) / (2 * z)
				k := 1 / (math.Abs(t) + math.Sqrt(1+t*t))
				if t < 0 {
					k = -k
				}
				cs := 1 / math.Sqrt(1+k*k)
				sn := cs * k
				for i := range rows {
					u, v := a[i*cols+p], a[i*cols+q]
					a[i*cols+p], a[i*cols+q] = cs*u-sn*v, sn*u+cs*v
				}
			}
		}
		if off < 1e-15 {
			break
		}
	}
	sv := make([]float64, cols)
	for j := range sv {
		s := 0.0
		for i := range rows {
			s += a[i*cols+j] * a[i*cols+j]
		}
		sv[j] = math.Sqrt(s)
	}
	slices.SortFunc(sv, func(x, y float64) int {
		switch {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	return sv
}

// luSolve eliminates with pivots: b, of m columns, becomes the solution; the determinant of a is given back.
func luSolve(a, b []complex128, n, m int) (det complex128) {
	det = 1
	for k := range n {
		p := k
		for i := k + 1; i < n; i++ {
			if cmplx.Abs(a[i*n+k]) > cmplx.Abs(a[p*n+k]) {
				p = i
			}
		}
		if p != k {
			det = -det
			for j := range n {
				a[k*n+j], a[p*n+j] = a[p*n+j], a[k*n+j]
			}
			for j := range m {
				b[k*m+j], b[p*m+j] = b[p*m+j], b[k*m+j]
			}
		}
		piv := a[k*n+k]
		det *= piv
		if piv == 0 {
			return 0
		}
		for i := k + 1; i < n; i++ {
			f := a[i*n+k] / piv
			if f == 0 {
				continue
			}
			for j := k; j < n; j++ {
				a[i*n+j] -= f * a[k*n+j]
			}
			for j := range m {
				b[i*m+j] -= f * b[k*m+j]
			}
		}
	}
	for k := n - 1; k >= 0; k-- {
		for j := range m {
			s := b[k*m+j]
			for i := k + 1; i < n; i++ {
				s -= a[k*n+i] * b[i*m+j]
			}
			b[k*m+j] = s / a[k*n+k]
		}
	}
	return det
}

// square gives batch count and order of square matrices.
func square(t *Tensor) (batch, n int64) {
	r := t.Rank()
	if r < 2 || t.Sizes[r-1] != t.Sizes[r-2] {
		fail("shape %v is no batch of square matrices", t.Sizes)
	}
	return numel(t.Sizes[:r-2]), t.Sizes[r-1]
}

// evalDet computes determinants: det, linalg_det, logdet.
func evalDet(c *Call) ([]Value, error) {
	t := c.T(0)
	batch, n := square(t)
	v := slices.Clone(t.complexes())
	out := make([]complex128, batch)
	for i := range out {
		out[i] = luSolve(v[int64(i)*n*n:int64(i+1)*n*n], nil, int(n), 0)
		if c.base() == "logdet" {
			if !t.DType.IsComplex() && real(out[i]) < 0 {
				out[i] = cmplx.NaN()
			} else {
				out[i] = cmplx.Log(out[i])
			}
		}
	}
	return one(fromComplexes(t.DType, t.Sizes[:t.Rank()-2], out))
}

func inverse(t *Tensor) (o *Tensor, singular []int64) {
	batch, n := square(t)
	v := slices.Clone(t.complexes())
	out := make([]complex128, len(v))
	singular = make([]int64, batch)
	for i := range batch {
		b := out[i*n*n : (i+1)*n*n]
		for k := range n {
			b[k*n+k] = 1
		}
		if luSolve(v[i*n*n:(i+1)*n*n], b, int(n), int(n)) == 0 {
			singular[i] = 1
		}
	}
	return fromComplexes(t.DType, t.Sizes, out), singular
}

// evalInverse inverts matrices; the _ex form also tells which are singular.
func evalInverse(c *Call) ([]Value, error) {
	t := c.T(0)
	o, singular := inverse(t)
	if c.base() == "linalg_inv_ex" {
		return []Value{o, fromInts(ops.Int32, t.Sizes[:t.Rank()-2], singular)}, nil
	}
	if slices.Contains(singular, 1) {
		fail("a matrix is singular")
	}
	return one(o)
}

// evalCholesky factors positive definite matrices.
func evalCholesky(c *Call) ([]Value, error) {
	t := c.T(0)
	batch, n := square(t)
	upper := c.Bool(1)
	v := t.complexes()
	out := make([]complex128, len(v))
	info := make([]int64, batch)
	for b := range batch {
		a, l := v[b*n*n:(b+1)*n*n], out[b*n*n:(b+1)*n*n]
		for j := range n {
			for i := j; i < n; i++ {
				s := a[i*n+j]
				if upper {
					s = cmplx.Conj(a[j*n+i])
				}
				for k := range j {
					s -= l[i*n+k] * cmplx.Conj(l[j*n+k])
				}
				if i == j {
					if real(s) <= 0 && info[b] == 0 {
						info[b] = j + 1
					}
					l[i*n+j] = complex(math.Sqrt(real(s)), 0)
				} else {
					l[i*n+j] = s / l[j*n+j]
				}
			}
		}
	}
	o := fromComplexes(t.DType, t.Sizes, out)
	if upper {
		o = transpose(o, t.Rank()-2, t.Rank()-1)
		if t.DType.IsComplex() {
			o = conj(o)
		}
		o = compact(o)
	}
	if c.base() == "linalg_cholesky_ex" {
		return []Value{o, fromInts(ops.Int32, t.Sizes[:t.Rank()-2], info)}, nil
	}
	for _, k := range info {
		if k != 0 {
			fail("a matrix is not positive definite")
		}
	}
	return one(o)
}

// evalSolve solves linear systems: linalg_solve, linalg_solve_triangular, triangular_solve.
func evalSolve(c *Call) ([]Value, error) {
	a, b := c.T(0), c.T(1)
	left := true
	if i := c.index("left"); i >= 0 {
		left = c.Bool(i)
	}
	vec := false
	switch c.base() {
	case "linalg_solve":
		vec = b.Rank() == 1 || b.Rank() == a.Rank()-1 && slices.Equal(b.Sizes, a.Sizes[:a.Rank()-1])
		if vec {
			b = unsqueeze(b, b.Rank())
		}
	case "linalg_solve_triangular":
		a = triangle(a, c.Bool(c.index("upper")), c.Bool(c.index("unitriangular")))
	case "triangular_solve":
		a, b = b, a
		coef := a
		a = triangle(a, c.Bool(2), c.Bool(4))
		if c.Bool(3) {
			a = transpose(a, a.Rank()-2, a.Rank()-1)
		}
		return []Value{solve(a, b), compactCopy(coef)}, nil
	}
	if !left {
		r := a.Rank()
		o := solve(transpose(a, r-2, r-1), transpose(b, b.Rank()-2, b.Rank()-1))
		return one(compact(transpose(o, o.Rank()-2, o.Rank()-1)))
	}
	o := solve(a, b)
	if vec {
		o = squeeze(o, only(o.Rank()-1, o.Rank()))
	}
	return one(compact(o))
}

// triangle is the triangle of a matrix that a solver reads.
func triangle(a *Tensor, upper, unit bool) *Tensor {
	_, n := square(a)
	v := slices.Clone(a.complexes())
	for p := range v {
		i, j := int64(p)/n%n, int64(p)%n
		switch {
		case i == j && unit:
			v[p] = 1
		case upper && j < i, !upper && j > i:
			v[p] = 0
		}
	}
	return fromComplexes(a.DType, a.Sizes, v)
}

func solve(a, b *Tensor) *Tensor {
	d := sameTypes("solve", a, b)
	ra, rb := a.Rank(), b.Rank()
	_, n := square(a)
	if rb < 2 || b.Sizes[rb-2] != n {
		fail("solve of shapes %v and %v", a.Sizes, b.Sizes)
	}
	m := b.Sizes[rb-1]
	lead := broadcast(a.Sizes[:ra-2], b.Sizes[:rb-2])
	av := slices.Clone(compact(expandTo(a, append(slices.Clone(lead), n, n))).complexes())
	sizes := append(slices.Clone(lead), n, m)
	bv := slices.Clone(compact(expandTo(b, sizes)).complexes())
	for i := range numel(lead) {
		if luSolve(av[i*n*n:(i+1)*n*n], bv[i*n*m:(i+1)*n*m], int(n), int(m)) == 0 && n > 0 {
			fail("a matrix is singular")
		}
	}
	return fromComplexes(d, sizes, bv)
}

// evalMatrixPower multiplies a matrix with itself.
func evalMatrixPower(c *Call) ([]Value, error) {
	t, k := c.T(0), c.Int(1)
	_, n := square(t)
	wide := widest(t.DType)
	p := cast(t, wide)
	if k < 0 {
		p, _ = inverse(p)
		k = -k
	}
	o := compactCopy(expandTo(identity(wide, n), t.Sizes))
	for ; k > 0; k >>= 1 {
		if k&1 == 1 {
			o = matmul(o, p)
		}
		p = matmul(p, p)
	}
	return one(cast(o, t.DType))
}

func widest(d DType) DType {
	if d.IsComplex() {
		return ops.Complex128
	}
	return ops.Float64
}

func identity(d DType, n int64) *Tensor {
	o := NewTensor(d, n, n)
	if n > 0 {
		writeInto(diagonal(o, 0, 0, 1), scalarTensor(d, int64(1)))
	}
	return o
}

// evalMatrixExp is the exponential of a matrix: scaled down by a power of two, summed as a series, squared back up.
func evalMatrixExp(c *Call) ([]Value, error) {
	t := c.T(0)
	_, n := square(t)
	d := widest(t.DType)
	a := cast(t, d)
	limit := 0.0
	for _, z := range a.complexes() {
		limit = max(limit, cmplx.Abs(z))
	}
	s := max(0, int(math.Ceil(math.Log2(max(limit*float64(n), 1e-300))))+4)
	a = binaries["mul"].apply(a, wrap(math.Ldexp(1, -s)), d)
	o := compactCopy(expandTo(identity(d, n), t.Sizes))
	term := o
	for k := 1; k <= 18; k++ {
		term = binaries["mul"].apply(matmul(term, a), wrap(1/float64(k)), d)
		o = binaries["add"].apply(o, term, d)
	}
	for range s {
		o = matmul(o, o)
	}
	return one(cast(o, t.DType))
}

// evalCross is the product of vectors in three dimensions.
func evalCross(c *Call) ([]Value, error) {
	a, b := c.T(0), c.T(1)
	sizes := broadcast(a.Sizes, b.Sizes)
	a, b = expandTo(a, sizes), expandTo(b, sizes)
	d := len(sizes) - 1
	if c.has(2) {
		d = dim(c.Int(2), len(sizes))
	} else if c.base() == "cross" {
		if d = slices.Index(sizes, 3); d < 0 {
			fail("no dimension of shape %v has 3 elements", sizes)
		}
	}
	if sizes[d] != 3 {
		fail("cross over a dimension of %d elements", sizes[d])
	}
	dt := resultType(a, b)
	at := func(t *Tensor, i int64) *Tensor { return selectDim(t, d, (i+3)%3) }
	parts := make([]*Tensor, 3)
	for i := range parts {
		k := int64(i)
		p := binaries["mul"].apply(at(a, k+1), at(b, k+2), dt)
		q := binaries["mul"].apply(at(a, k+2), at(b, k+1), dt)
		if classOf(dt) == classFloat {
			x, y, u, v := at(a, k+1).floats(), at(b, k+2).floats(), at(a, k+2).floats(), at(b, k+1).floats()
			w := make([]float64, len(x))
			for j := range w {
				w[j] = x[j]*y[j] - u[j]*v[j]
			}
			parts[i] = fromFloats(dt, p.Sizes, w)
			continue
		}
		parts[i] = binaries["sub"].apply(p, q, dt)
	}
	return one(stack(parts, int64(d)))
}

// evalCov is the covariance of the rows of a matrix, corrcoef their correlation.
func evalCov(c *Call) ([]Value, error) {
	return one(cov(c.T(0), c.floatOr(c.index("correction"), 1), c.optT(c.index("fweights")), c.optT(c.index("aweights"))))
}

func cov(t *Tensor, correction float64, fw, aw *Tensor) *Tensor {
	scalarOut := t.Rank() < 2
	if t.Rank() < 2 {
		t = reshape(t, []int64{1, t.Numel()})
	}
	d := floatType(t.DType)
	rows, n := int(t.Sizes[0]), int(t.Sizes[1])
	v := t.floats()
	w := make([]float64, n)
	sumW, sumWA := 0.0, 0.0
	for i := range w {
		w[i] = 1
		if fw != nil {
			w[i] *= fw.floats()[i]
		}
		a := 1.0
		if aw != nil {
			a = aw.floats()[i]
			w[i] *= a
		}
		sumW += w[i]
		sumWA += w[i] * a
	}
	div := sumW - correction
	if aw != nil {
		div = sumW - correction*sumWA/sumW
	}
	div = max(div, 0)
	cent := make([]float64, len(v))
	for r := range rows {
		m := 0.0
		for i := range n {
			m += w[i] * v[r*n+i]
		}
		m /= sumW
		for i := range n {
			cent[r*n+i] = v[r*n+i] - m
		}
	}
	out := make([]float64, rows*rows)
	for i := range rows {
		for j := range rows {
			s := 0.0
			for k := range n {
				s += w[k] * cent[i*n+k] * cent[j*n+k]
			}
			out[i*rows+j] = s / div
		}
	}
	o := fromFloats(d, []int64{int64(rows), int64(rows)}, out)
	if scalarOut {
		return o.withSizes()
	}
	return o
}

func evalCorrcoef(c *Call) ([]Value, error) {
	t := c.T(0)
	o := cov(cast(t, ops.Float64), 1, nil, nil)
	d := floatType(t.DType)
	if o.Rank() == 0 {
		return one(mapFloats(o, d, func(x float64) float64 { return x / x }))
	}
	v := slices.Clone(o.floats())
	n := int(o.Sizes[0])
	out := make([]float64, len(v))
	for i := range n {
		for j := range n {
			out[i*n+j] = clampNaN(v[i*n+j]/math.Sqrt(v[i*n+i])/math.Sqrt(v[j*n+j]), -1, 1)
		}
	}
	return one(fromFloats(d, o.Sizes, out))
}
