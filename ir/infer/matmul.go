package infer

import (
	"slices"
	"strings"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// second is the name of the other factor: overloads call it differently.
func (c *Call) second() string { return c.first("mat2", "other", "vec", "tensor2", "vec2", "b") }

// inner fails where the sizes that are summed over are known to differ.
func (c *Call) inner(a, b ir.Type, x, y sym.Expr) {
	if c.differ(x, y) {
		failf("%s and %s cannot be multiplied: sizes %s and %s differ", shapeString(a.Shape), shapeString(b.Shape), x, y)
	}
}

func (c *Call) outType(d ops.DType) ops.DType {
	if c.has("out_dtype") {
		return c.dtypeOr("out_dtype", d)
	}
	return d
}

func inferMm(c *Call) ([]ir.Type, error) {
	a, b := c.x(), c.tensor(c.second())
	rank("self", a, 2)
	rank("mat2", b, 2)
	sameDType("self", a, "mat2", b)
	c.inner(a, b, a.Shape[1], b.Shape[0])
	return one(ir.TensorType(c.outType(a.DType), a.Shape[0], b.Shape[1]))
}

func (c *Call) bmm(a, b ir.Type) ir.Type {
	rank("the first factor", a, 3)
	rank("the second factor", b, 3)
	sameDType("the first factor", a, "the second factor", b)
	c.same("the numbers of matrices", a.Shape[0], b.Shape[0])
	c.inner(a, b, a.Shape[2], b.Shape[1])
	return ir.TensorType(c.outType(a.DType), a.Shape[0], a.Shape[1], b.Shape[2])
}

func inferBmm(c *Call) ([]ir.Type, error) { return one(c.bmm(c.x(), c.tensor("mat2"))) }

// adds checks that self can be added to a product.
func (c *Call) adds(t ir.Type) ([]ir.Type, error) {
	x := c.x()
	if !c.has("out_dtype") {
		sameDType("self", x, "the factors", t)
	}
	if x.Rank() > t.Rank() {
		failf("self of shape %s cannot be expanded to %s", shapeString(x.Shape), shapeString(t.Shape))
	}
	c.expandTo(x, t.Shape)
	return one(t)
}

func inferAddmm(c *Call) ([]ir.Type, error) {
	a, b := c.tensor("mat1"), c.tensor("mat2")
	rank("mat1", a, 2)
	rank("mat2", b, 2)
	sameDType("mat1", a, "mat2", b)
	c.inner(a, b, a.Shape[1], b.Shape[0])
	return c.adds(ir.TensorType(c.outType(a.DType), a.Shape[0], b.Shape[1]))
}

func inferBaddbmm(c *Call) ([]ir.Type, error) {
	return c.adds(c.bmm(c.tensor("batch1"), c.tensor("batch2")))
}

func inferAddbmm(c *Call) ([]ir.Type, error) {
	t := c.bmm(c.tensor("batch1"), c.tensor("batch2"))
	t.Shape = t.Shape[1:]
	return c.adds(t)
}

func inferAddmv(c *Call) ([]ir.Type, error) {
	a, b := c.tensor("mat"), c.tensor("vec")
	rank("mat", a, 2)
	rank("vec", b, 1)
	sameDType("mat", a, "vec", b)
	c.inner(a, b, a.Shape[1], b.Shape[0])
	return c.adds(ir.TensorType(a.DType, a.Shape[0]))
}

func inferAddr(c *Call) ([]ir.Type, error) {
	a, b := c.tensor("vec1"), c.tensor("vec2")
	rank("vec1", a, 1)
	rank("vec2", b, 1)
	x := c.x()
	d := resultType(operand{dtype: x.DType, t: x}, operand{dtype: a.DType, t: a}, operand{dtype: b.DType, t: b})
	shape := []sym.Expr{a.Shape[0], b.Shape[0]}
	c.expandTo(x, shape)
	return one(c.elementwise(d, shape, operand{t: x}, operand{t: ir.TensorType(d, shape...)}))
}

func inferMv(c *Call) ([]ir.Type, error) {
	a, b := c.x(), c.tensor("vec")
	rank("self", a, 2)
	rank("vec", b, 1)
	sameDType("self", a, "vec", b)
	c.inner(a, b, a.Shape[1], b.Shape[0])
	return one(ir.TensorType(a.DType, a.Shape[0]))
}

func inferDot(c *Call) ([]ir.Type, error) {
	a, b := c.x(), c.tensor(c.first("tensor", "other"))
	rank("self", a, 1)
	rank("the second vector", b, 1)
	sameDType("self", a, "the second vector", b)
	c.inner(a, b, a.Shape[0], b.Shape[0])
	return one(ir.TensorType(a.DType))
}

func inferInner(c *Call) ([]ir.Type, error) {
	a, b := c.x(), c.tensor("other")
	if a.Rank() == 0 || b.Rank() == 0 {
		return c.mapN(resultType(operand{dtype: a.DType, t: a}, operand{dtype: b.DType, t: b}), operand{dtype: a.DType, t: a},
			operand{dtype: b.DType, t: b})
	}
	sameDType("self", a, "other", b)
	c.inner(a, b, a.Shape[a.Rank()-1], b.Shape[b.Rank()-1])
	return one(ir.TensorType(a.DType, append(append([]sym.Expr(nil), a.Shape[:a.Rank()-1]...), b.Shape[:b.Rank()-1]...)...))
}

func inferOuter(c *Call) ([]ir.Type, error) {
	a, b := c.x(), c.tensor("vec2")
	rank("self", a, 1)
	rank("vec2", b, 1)
	return one(ir.TensorType(resultType(operand{dtype: a.DType, t: a}, operand{dtype: b.DType, t: b}), a.Shape[0], b.Shape[0]))
}

// product is the shape of a matrix product of any ranks.
func (c *Call) product(a, b ir.Type) []sym.Expr {
	if a.Rank() == 0 || b.Rank() == 0 {
		failf("both factors need dimensions, they are %s and %s", shapeString(a.Shape), shapeString(b.Shape))
	}
	as, bs := a.Shape, b.Shape
	if len(as) == 1 {
		as = inserted(as, 0, sym.Const(1))
	}
	if len(bs) == 1 {
		bs = inserted(bs, 1, sym.Const(1))
	}
	n, m := len(as), len(bs)
	c.inner(a, b, as[n-1], bs[m-2])
	shape := append([]sym.Expr(nil), c.broadcast(as[:n-2], bs[:m-2])...)
	if a.Rank() > 1 {
		shape = append(shape, as[n-2])
	}
	if b.Rank() > 1 {
		shape = append(shape, bs[m-1])
	}
	return shape
}

func inferMatmul(c *Call) ([]ir.Type, error) {
	a, b := c.x(), c.tensor("other")
	sameDType("self", a, "other", b)
	return one(c.matmulType(a, b))
}

// matmulType has the strides that torch's decomposition leaves. Where the second factor has more dimensions and the first
// is a matrix or vector, both are transposed, multiplied and transposed back.
func (c *Call) matmulType(a, b ir.Type) ir.Type {
	t := ir.TensorType(a.DType, c.product(a, b)...)
	na, nb := a.Rank(), b.Rank()
	if !(na >= 3 && (nb == 1 || nb == 2) || (na == 1 || na == 2) && nb >= 3) {
		return t
	}
	if transpose := nb > na; transpose && na == 2 && c.folds(b, a) {
		// The product of the transposed operands is [batch…, n, m] with n the columns of b.
		n := t.Rank()
		o := identity(n)
		o[n-2], o[n-1] = n-1, n-2
		return dense(a.DType, t.Shape, o)
	}
	return t
}

// folds tells whether torch folds the leading dimensions of the larger factor into rows: not where that would copy it.
func (c *Call) folds(large, small ir.Type) bool {
	x := large
	if large.Rank() > small.Rank() && small.Rank() <= 2 {
		n := large.Rank()
		x = swapped(large, n-2, n-1)
	}
	if c.empty(x) {
		return true
	}
	st := strides(x)
	n := x.Rank()
	// Folding is free where all leading strides nest.
	for i := 0; i < n-2; i++ {
		if !c.eq(st[i], sym.Mul(st[i+1], x.Shape[i+1])) {
			return false
		}
	}
	return true
}

func inferLinear(c *Call) ([]ir.Type, error) {
	x, w := c.tensor("input"), c.tensor("weight")
	rank("weight", w, 1, 2)
	if x.Rank() == 0 {
		failf("input has no dimensions")
	}
	sameDType("input", x, "weight", w)
	n := x.Rank()
	c.inner(x, w, x.Shape[n-1], w.Shape[w.Rank()-1])
	shape := append([]sym.Expr(nil), x.Shape[:n-1]...)
	if w.Rank() == 2 {
		shape = append(shape, w.Shape[0])
	}
	if b, ok := c.optTensor("bias"); ok {
		sameDType("input", x, "bias", b)
		if b.Rank() > len(shape) {
			failf("bias of shape %s does not fit %s", shapeString(b.Shape), shapeString(shape))
		}
		c.expandTo(b, shape)
	}
	return one(ir.TensorType(x.DType, shape...))
}

func inferBilinear(c *Call) ([]ir.Type, error) {
	a, b, w := c.tensor("input1"), c.tensor("input2"), c.tensor("weight")
	rank("weight", w, 3)
	if a.Rank() == 0 || a.Rank() != b.Rank() {
		failf("input1 has %d dimensions, input2 %d; both need the same, at least one", a.Rank(), b.Rank())
	}
	n := a.Rank() - 1
	for i := range n {
		c.same("the leading sizes of input1 and input2", a.Shape[i], b.Shape[i])
	}
	c.inner(a, w, a.Shape[n], w.Shape[1])
	c.inner(b, w, b.Shape[n], w.Shape[2])
	return one(ir.TensorType(a.DType, append(append([]sym.Expr(nil), a.Shape[:n]...), w.Shape[0])...))
}

// inferEinsum reads the equation; the result is the output's letters, the ellipsis broadcast.
func inferEinsum(c *Call) ([]ir.Type, error) {
	ts := c.tensors("tensors")
	eq := strings.ReplaceAll(c.str("equation"), " ", "")
	left, right, arrow := strings.Cut(eq, "->")
	terms := strings.Split(left, ",")
	if len(terms) != len(ts) {
		failf("the equation %q names %d operands, there are %d", eq, len(terms), len(ts))
	}
	sizes := map[byte]sym.Expr{}
	count := map[byte]int{}
	var dots []sym.Expr
	for i, term := range terms {
		t := ts[i]
		pre, post, dotted := strings.Cut(term, "...")
		letters := len(pre) + len(post)
		if letters > t.Rank() || !dotted && letters != t.Rank() {
			failf("operand %d has %d dimensions, its term %q names %d", i, t.Rank(), term, letters)
		}
		at := func(l byte, e sym.Expr) {
			if !(l >= 'a' && l <= 'z' || l >= 'A' && l <= 'Z') {
				failf("%q is no index letter (equation %q)", l, eq)
			}
			count[l]++
			old, ok := sizes[l]
			switch {
			case !ok || c.is(old, 1):
				sizes[l] = e
			case !c.is(e, 1):
				if c.differ(old, e) {
					failf("index %c has sizes %s and %s (equation %q)", l, old, e, eq)
				}
				if _, isConst := e.IsConst(); isConst {
					sizes[l] = e
				}
			}
		}
		for k := range len(pre) {
			at(pre[k], t.Shape[k])
		}
		for k := range len(post) {
			at(post[k], t.Shape[t.Rank()-len(post)+k])
		}
		dots = c.broadcast(dots, t.Shape[len(pre):t.Rank()-len(post)])
	}
	var shape []sym.Expr
	if !arrow {
		shape = append(shape, dots...)
		for _, span := range [][2]byte{{'A', 'Z'}, {'a', 'z'}} {
			for l := span[0]; l <= span[1]; l++ {
				if count[l] == 1 {
					shape = append(shape, sizes[l])
				}
			}
		}
	} else {
		pre, post, dotted := strings.Cut(right, "...")
		for k := range len(pre) {
			shape = append(shape, c.letter(sizes, pre[k], eq))
		}
		if dotted {
			shape = append(shape, dots...)
		}
		for k := range len(post) {
			shape = append(shape, c.letter(sizes, post[k], eq))
		}
	}
	t := commonType(ts)
	if arrow && len(ts) == 1 && slices.ContainsFunc([]byte(strings.ReplaceAll(left, ".", "")), func(l byte) bool { return strings.IndexByte(right, l) < 0 }) {
		t = sumType(t) // a single operand is summed, and sums of integers are int64
	}
	return one(ir.TensorType(t, shape...))
}

func (c *Call) letter(sizes map[byte]sym.Expr, l byte, eq string) sym.Expr {
	e, ok := sizes[l]
	if !ok {
		failf("index %c of the result stands in no operand (equation %q)", l, eq)
	}
	return e
}

func inferTensordot(c *Call) ([]ir.Type, error) {
	a, b := c.x(), c.tensor("other")
	da, _ := c.indexDims("dims_self", a)
	db, _ := c.indexDims("dims_other", b)
	if len(da) != len(db) {
		failf("dims_self names %d dimensions, dims_other %d", len(da), len(db))
	}
	for i := range da {
		if !c.is(a.Shape[da[i]], 1) && !c.is(b.Shape[db[i]], 1) {
			c.inner(a, b, a.Shape[da[i]], b.Shape[db[i]])
		}
	}
	return one(ir.TensorType(a.DType, append(reduced(a.Shape, da, false, false), reduced(b.Shape, db, false, false)...)...))
}

func inferMultiDot(c *Call) ([]ir.Type, error) {
	ts := c.tensors(c.first("tensors", "matrices"))
	if len(ts) == 0 {
		failf("an empty list of matrices")
	}
	t := ts[0]
	for _, u := range ts[1:] {
		sameDType("a factor", t, "another", u)
		t = ir.TensorType(t.DType, c.product(t, u)...)
	}
	return one(t)
}

func inferVecdot(c *Call) ([]ir.Type, error) {
	a, b := c.tensor("x"), c.tensor("y")
	shape := c.broadcast(a.Shape, b.Shape)
	d := c.dim("dim", len(shape))
	return one(ir.TensorType(resultType(operand{dtype: a.DType, t: a}, operand{dtype: b.DType, t: b}), reduced(shape, []int{d}, false, false)...))
}

// square fails unless the last two dimensions are equal.
func (c *Call) square(x ir.Type) {
	n := x.Rank()
	if n < 2 {
		failf("self has %d dimensions, a matrix is needed", n)
	}
	c.same("the rows and columns of a square matrix", x.Shape[n-2], x.Shape[n-1])
}

func inferMatrixPower(c *Call) ([]ir.Type, error) {
	x := c.x()
	c.square(x)
	return one(ir.TensorType(x.DType, x.Shape...))
}

func inferTrilinear(c *Call) ([]ir.Type, error) {
	var shapes [][]sym.Expr
	first := c.tensor("i1")
	for k, n := range []string{"i1", "i2", "i3"} {
		s := c.tensor(n).Shape
		for _, d := range c.ints([]string{"expand1", "expand2", "expand3"}[k]) {
			s = inserted(s, int(min(max(d, 0), int64(len(s)))), sym.Const(1))
		}
		shapes = append(shapes, s)
	}
	shape := c.broadcast(shapes...)
	ds, _ := c.dims("sumdim", len(shape))
	return one(ir.TensorType(first.DType, reduced(shape, ds, false, false)...))
}

func inferIntMm(c *Call) ([]ir.Type, error) {
	a, b := c.x(), c.tensor(c.second())
	rank("self", a, 2)
	rank("mat2", b, 2)
	if a.DType != ops.Int8 || b.DType != ops.Int8 {
		failf("the factors are %s and %s, int8 is needed", a.DType, b.DType)
	}
	c.inner(a, b, a.Shape[1], b.Shape[0])
	return one(ir.TensorType(ops.Int32, a.Shape[0], b.Shape[1]))
}

// inferGroupedMm: a matrix of rows in groups times a stack of matrices, or other combinations of two and three dimensions.
func inferGroupedMm(c *Call) ([]ir.Type, error) {
	a, b := c.x(), c.tensor(c.second())
	rank("self", a, 2, 3)
	rank("mat2", b, 2, 3)
	sameDType("self", a, "mat2", b)
	c.inner(a, b, a.Shape[a.Rank()-1], b.Shape[b.Rank()-2])
	d := c.outType(a.DType)
	m, n := a.Shape[a.Rank()-2], b.Shape[b.Rank()-1]
	off, grouped := c.optTensor("offs")
	if !grouped && (a.Rank() == 2 || b.Rank() == 2) {
		failf("offs is needed where a factor is a matrix")
	}
	switch {
	case a.Rank() == 2 && b.Rank() == 2:
		return one(ir.TensorType(d, off.Shape[0], m, n))
	case a.Rank() == 3 && b.Rank() == 3:
		c.same("the numbers of matrices", a.Shape[0], b.Shape[0])
		return one(ir.TensorType(d, a.Shape[0], m, n))
	}
	return one(ir.TensorType(d, m, n))
}

func inferGroupedMmFallback(c *Call) ([]ir.Type, error) {
	x, w := c.tensor("input"), c.tensor("weight")
	rank("input", x, 2)
	rank("weight", w, 3)
	sameDType("input", x, "weight", w)
	c.inner(x, w, x.Shape[1], w.Shape[1])
	return one(ir.TensorType(x.DType, x.Shape[0], w.Shape[2]))
}

func inferScaledMm(c *Call) ([]ir.Type, error) {
	a, b := c.x(), c.tensor("mat2")
	rank("self", a, 2)
	rank("mat2", b, 2)
	c.inner(a, b, a.Shape[1], b.Shape[0])
	return one(ir.TensorType(c.outType(a.DType), a.Shape[0], b.Shape[1]))
}

func inferWeightInt8packMm(c *Call) ([]ir.Type, error) {
	a, b := c.x(), c.tensor("mat2")
	rank("self", a, 2)
	rank("mat2", b, 2)
	c.inner(a, b, a.Shape[1], b.Shape[1])
	return one(ir.TensorType(a.DType, a.Shape[0], b.Shape[0]))
}

func inferCdist(c *Call) ([]ir.Type, error) {
	a, b := c.tensor("x1"), c.tensor("x2")
	if a.Rank() < 2 || b.Rank() < 2 {
		failf("x1 and x2 need two dimensions, they are %s and %s", shapeString(a.Shape), shapeString(b.Shape))
	}
	n, m := a.Rank(), b.Rank()
	c.same("the lengths of rows", a.Shape[n-1], b.Shape[m-1])
	shape := append([]sym.Expr(nil), c.broadcast(a.Shape[:n-2], b.Shape[:m-2])...)
	return one(ir.TensorType(promote(a.DType, b.DType), append(shape, a.Shape[n-2], b.Shape[m-2])...))
}

func inferPdist(c *Call) ([]ir.Type, error) {
	x := c.x()
	rank("self", x, 2)
	n := x.Shape[0]
	return one(ir.TensorType(x.DType, c.simp(sym.FloorDiv(sym.Mul(n, sym.Sub(n, sym.Const(1))), sym.Const(2)))))
}

func inferPairwiseDistance(c *Call) ([]ir.Type, error) {
	a, b := c.tensor("x1"), c.tensor("x2")
	shape := c.broadcast(a.Shape, b.Shape)
	if len(shape) == 0 {
		failf("x1 and x2 have no dimensions")
	}
	d := floatOf(resultType(operand{dtype: a.DType, t: a}, operand{dtype: b.DType, t: b})).ToReal()
	return one(ir.TensorType(d, reduced(shape, []int{len(shape) - 1}, false, c.bool("keepdim"))...))
}

func inferCosineSimilarity(c *Call) ([]ir.Type, error) {
	a, b := c.tensor("x1"), c.tensor("x2")
	shape := c.broadcast(a.Shape, b.Shape)
	d := floatOf(resultType(operand{dtype: a.DType, t: a}, operand{dtype: b.DType, t: b}))
	return one(ir.TensorType(d, reduced(shape, []int{c.dim("dim", len(shape))}, false, false)...))
}

func inferDet(c *Call) ([]ir.Type, error) {
	x := c.x()
	c.square(x)
	return one(ir.TensorType(x.DType, x.Shape[:x.Rank()-2]...))
}

// columns is a batch of matrices laid out column by column, as LAPACK leaves them.
func columns(d ops.DType, shape []sym.Expr) ir.Type {
	o := identity(len(shape))
	n := len(o)
	o[n-2], o[n-1] = n-1, n-2
	return dense(d, shape, o)
}

func inferInverse(c *Call) ([]ir.Type, error) {
	x := c.x()
	c.square(x)
	return one(columns(x.DType, x.Shape))
}

func inferInvEx(c *Call) ([]ir.Type, error) {
	x := c.x()
	c.square(x)
	return []ir.Type{columns(x.DType, x.Shape), ir.TensorType(ops.Int32, x.Shape[:x.Rank()-2]...)}, nil
}

func inferLinalgSolve(c *Call) ([]ir.Type, error) {
	a, b := c.tensor("A"), c.tensor("B")
	c.square(a)
	sameDType("A", a, "B", b)
	n := a.Rank()
	if b.Rank() == 1 || b.Rank() == n-1 && ir.EqualShape(b.Shape, a.Shape[:n-1]) {
		return one(ir.TensorType(b.DType, append(append([]sym.Expr(nil), c.broadcast(a.Shape[:n-2], b.Shape[:b.Rank()-1])...), b.Shape[b.Rank()-1])...))
	}
	m := b.Rank()
	if m < 2 {
		failf("B has %d dimensions, two are needed", m)
	}
	shape := append([]sym.Expr(nil), c.broadcast(a.Shape[:n-2], b.Shape[:m-2])...)
	shape = append(shape, b.Shape[m-2:]...)
	if !c.bool("left") {
		return one(ir.TensorType(b.DType, shape...))
	}
	return one(columns(b.DType, shape))
}

func inferSolveTriangular(c *Call) ([]ir.Type, error) {
	a, b := c.x(), c.tensor("B")
	c.square(a)
	sameDType("self", a, "B", b)
	n, m := a.Rank(), b.Rank()
	if m < 2 {
		failf("B has %d dimensions, two are needed", m)
	}
	shape := append([]sym.Expr(nil), c.broadcast(a.Shape[:n-2], b.Shape[:m-2])...)
	shape = append(shape, b.Shape[m-2:]...)
	return one(columns(b.DType, shape))
}

func inferCholesky(c *Call) ([]ir.Type, error) {
	x := c.x()
	c.square(x)
	return one(columns(x.DType, x.Shape))
}

func inferTriangularSolve(c *Call) ([]ir.Type, error) {
	b, a := c.x(), c.tensor("A")
	c.square(a)
	n, m := a.Rank(), b.Rank()
	if m < 2 {
		failf("self has %d dimensions, two are needed", m)
	}
	lead := c.broadcast(a.Shape[:n-2], b.Shape[:m-2])
	xs := append(append([]sym.Expr(nil), lead...), b.Shape[m-2:]...)
	as := append(append([]sym.Expr(nil), lead...), a.Shape[n-2:]...)
	return []ir.Type{columns(b.DType, xs), columns(a.DType, as)}, nil
}
