package passes

import (
	"strings"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

func decompLinear(d *Decomp) []*ir.Value {
	x, w := d.in(0), d.in(1)
	if w.Type.Rank() == 1 {
		y := d.matmul(x, w)
		if b := d.N.In(2); b != nil {
			y = d.add(y, b)
		}
		return one(y)
	}
	wt := d.swap(w, 0, 1)
	out := d.N.Out().Type.Shape
	flat := x
	if x.Type.Rank() != 2 {
		lead := x.Type.Shape[:x.Type.Rank()-1]
		flat = d.view(x, sym.Prod(lead...), ir.Dim(x, -1))
	}
	var y *ir.Value
	if b := d.N.In(2); b != nil {
		y = d.v(op.AtenAddmmDefault(d.Builder, b, flat, wt))
	} else {
		y = d.mm(flat, wt)
	}
	return one(d.view(y, out...))
}

func decompMatmul(d *Decomp) []*ir.Value {
	a, b := d.in(0), d.in(1)
	ra, rb := a.Type.Rank(), b.Type.Rank()
	out := d.N.Out().Type.Shape
	switch {
	case ra == 0 || rb == 0:
		return nil
	case ra == 1 && rb == 1:
		return one(d.v(op.AtenDotDefault(d.Builder, a, b)))
	case ra == 2 && rb == 2:
		return one(d.mm(a, b))
	case ra == 2 && rb == 1:
		return one(d.squeeze(d.mm(a, d.unsqueeze(b, 1)), 1))
	case ra == 1 && rb == 2:
		return one(d.squeeze(d.mm(d.unsqueeze(a, 0), b), 0))
	case ra == 1:
		return one(d.squeeze(d.matmul(d.unsqueeze(a, 0), b), -2))
	case rb == 1:
		return one(d.squeeze(d.matmul(a, d.unsqueeze(b, 1)), -1))
	case rb == 2:
		// One product over all rows.
		lead := a.Type.Shape[:ra-1]
		y := d.mm(d.view(a, sym.Prod(lead...), ir.Dim(a, -1)), b)
		return one(d.view(y, out...))
	}
	batch := out[:len(out)-2]
	n := sym.Prod(batch...)
	m, k, p := ir.Dim(a, -2), ir.Dim(a, -1), ir.Dim(b, -1)
	a = d.view(d.expand(a, join(batch, dimsOf(m, k))...), n, m, k)
	b = d.view(d.expand(b, join(batch, dimsOf(k, p))...), n, k, p)
	return one(d.view(d.bmm(a, b), out...))
}

// decompMmDtype is a product in a wider type than its operands.
func decompMmDtype(d *Decomp) []*ir.Value {
	t := d.N.Out().Type.DType
	s := &d.N.Info().Schema
	if s.Base == "addmm" {
		return one(d.v(op.AtenAddmmDefault(d.Builder, d.cast(d.in(0), t), d.cast(d.in(1), t), d.cast(d.in(2), t), op.KW("beta", d.named("beta")), op.KW("alpha", d.named("alpha")))))
	}
	a, b := d.cast(d.in(0), t), d.cast(d.in(1), t)
	if s.Base == "bmm" {
		return one(d.bmm(a, b))
	}
	return one(d.mm(a, b))
}

// factor is a factor of axpy; integers are scaled by its integer part.
func (d *Decomp) factor(name string) ir.Arg {
	a := d.named(name)
	if f, ok := a.Float(); ok && kindOf(d.N.Out().Type.DType) == 1 {
		return ir.Int(int64(f))
	}
	return a
}

// axpy is beta*x + alpha*y.
func (d *Decomp) axpy(x, y *ir.Value) *ir.Value {
	beta, alpha := d.factor("beta"), d.factor("alpha")
	if !alpha.Equal(ir.Int(1)) || !beta.Equal(ir.Int(1)) {
		x, y = d.opmathFloat(x), d.opmathFloat(y)
	}
	if !alpha.Equal(ir.Int(1)) {
		y = d.mul(y, alpha)
	}
	if f, ok := beta.Float(); ok && f == 0 {
		return d.expand(y, d.N.Out().Type.Shape...)
	}
	if !beta.Equal(ir.Int(1)) {
		x = d.mul(x, beta)
	}
	return d.add(x, y)
}

func decompAddmm(d *Decomp) []*ir.Value {
	return d.back(d.axpy(d.in(0), d.mm(d.in(1), d.in(2))))
}

func decompBaddbmm(d *Decomp) []*ir.Value {
	t := d.N.Out().Type.DType
	return d.back(d.axpy(d.cast(d.in(0), t), d.bmm(d.cast(d.in(1), t), d.cast(d.in(2), t))))
}

func decompAddbmm(d *Decomp) []*ir.Value {
	return d.back(d.axpy(d.in(0), d.sum(d.bmm(d.in(1), d.in(2)), false, 0)))
}

func decompAddmv(d *Decomp) []*ir.Value {
	return d.back(d.axpy(d.in(0), d.v(op.AtenMvDefault(d.Builder, d.in(1), d.in(2)))))
}

func decompAddr(d *Decomp) []*ir.Value {
	return d.back(d.axpy(d.in(0), d.mul(d.unsqueeze(d.in(1), 1), d.in(2))))
}

func decompAddmmActivation(d *Decomp) []*ir.Value {
	y := d.v(op.AtenAddmmDefault(d.Builder, d.in(0), d.in(1), d.in(2), op.KW("beta", d.named("beta")), op.KW("alpha", d.named("alpha"))))
	if boolArg(d.named("use_gelu")) {
		return one(d.v(op.AtenGeluDefault(d.Builder, y)))
	}
	return one(d.v(op.AtenReluDefault(d.Builder, y)))
}

func decompMv(d *Decomp) []*ir.Value {
	return one(d.squeeze(d.mm(d.in(0), d.unsqueeze(d.in(1), 1)), 1))
}

func decompDot(d *Decomp) []*ir.Value {
	return one(d.view(d.mm(d.unsqueeze(d.in(0), 0), d.unsqueeze(d.in(1), 1))))
}

func decompVdot(d *Decomp) []*ir.Value {
	x := d.in(0)
	if x.Type.DType.IsComplex() {
		x = d.v(op.AtenUnderConjPhysicalDefault(d.Builder, x))
	}
	return one(d.v(op.AtenDotDefault(d.Builder, x, d.in(1))))
}

func decompInner(d *Decomp) []*ir.Value {
	a, b := d.in(0), d.in(1)
	if a.Type.Rank() == 0 || b.Type.Rank() == 0 {
		return one(d.mul(a, b))
	}
	dims := func(v *ir.Value) ir.Arg { return ir.Ints(int64(v.Type.Rank() - 1)) }
	return one(d.v(op.AtenTensordotDefault(d.Builder, a, b, dims(a), dims(b))))
}

func decompOuter(d *Decomp) []*ir.Value {
	return one(d.mul(d.unsqueeze(d.in(0), 1), d.in(1)))
}

// sumTo sums a dimension away where the other operand has one there.
func (d *Decomp) sumTo(x *ir.Value, dim int, other sym.Expr) *ir.Value {
	if !other.IsConstValue(1) {
		return x
	}
	return d.cast(d.sum(x, true, dim), d.N.Out().Type.DType)
}

func decompTensordot(d *Decomp) []*ir.Value {
	a, b := d.in(0), d.in(1)
	da, db := d.dimList(2, a), d.dimList(3, b)
	t := d.N.Out().Type.DType
	a, b = d.cast(a, t), d.cast(b, t)
	freeA, freeB := otherDims(a.Type.Rank(), da), otherDims(b.Type.Rank(), db)
	k := sym.Const(1)
	for i, x := range da {
		size := a.Type.Shape[x]
		if size.IsConstValue(1) || b.Type.Shape[db[i]].IsConstValue(1) {
			// Of two sizes where one is one, torch sums the other first.
			if !size.Equal(b.Type.Shape[db[i]]) {
				a, b = d.sumTo(a, x, b.Type.Shape[db[i]]), d.sumTo(b, db[i], size)
				size = one1
			}
		}
		k = sym.Mul(k, size)
	}
	x := d.view(d.permute(a, append(append([]int(nil), freeA...), da...)...), sym.Prod(pickDims(a, freeA)...), k)
	y := d.view(d.permute(b, append(append([]int(nil), db...), freeB...)...), k, sym.Prod(pickDims(b, freeB)...))
	return one(d.view(d.mm(x, y), d.N.Out().Type.Shape...))
}

// dimList are the dimensions of argument i, not all of them where the list is empty.
func (d *Decomp) dimList(i int, x *ir.Value) []int {
	ks, _ := d.N.Arg(i).IntList()
	out := make([]int, len(ks))
	for j, k := range ks {
		out[j] = wrapDim(k, x.Type.Rank())
	}
	return out
}

func otherDims(r int, taken []int) []int {
	var out []int
next:
	for i := range r {
		for _, t := range taken {
			if t == i {
				continue next
			}
		}
		out = append(out, i)
	}
	return out
}

func pickDims(x *ir.Value, dims []int) []sym.Expr {
	out := make([]sym.Expr, len(dims))
	for i, k := range dims {
		out[i] = x.Type.Shape[k]
	}
	return out
}

func decompMultiDot(d *Decomp) []*ir.Value {
	ms := append([]*ir.Value(nil), d.N.Arg(0).Values()...)
	n := len(ms)
	if n < 2 {
		return nil
	}
	if ms[0].Type.Rank() == 1 {
		ms[0] = d.unsqueeze(ms[0], 0)
	}
	if ms[n-1].Type.Rank() == 1 {
		ms[n-1] = d.unsqueeze(ms[n-1], 1)
	}
	// The order of products that multiplies least, where the sizes are known.
	size := make([]int64, n+1)
	for i, m := range ms {
		r, okR := m.Type.Shape[0].IsConst()
		c, okC := m.Type.Shape[1].IsConst()
		if !okR || !okC {
			r, c = 1, 1
		}
		size[i], size[i+1] = r, c
	}
	cost := make([][]int64, n)
	cut := make([][]int, n)
	for i := range n {
		cost[i], cut[i] = make([]int64, n), make([]int, n)
	}
	for span := 1; span < n; span++ {
		for i := 0; i+span < n; i++ {
			j := i + span
			cost[i][j] = -1
			for k := i; k < j; k++ {
				c := cost[i][k] + cost[k+1][j] + size[i]*size[k+1]*size[j+1]
				if cost[i][j] < 0 || c < cost[i][j] {
					cost[i][j], cut[i][j] = c, k
				}
			}
		}
	}
	var product func(i, j int) *ir.Value
	product = func(i, j int) *ir.Value {
		if i == j {
			return ms[i]
		}
		return d.mm(product(i, cut[i][j]), product(cut[i][j]+1, j))
	}
	return one(d.view(product(0, n-1), d.N.Out().Type.Shape...))
}

func decompVecdot(d *Decomp) []*ir.Value {
	x, y := d.in(0), d.in(1)
	if x.Type.DType.IsComplex() {
		x = d.v(op.AtenUnderConjPhysicalDefault(d.Builder, x))
	}
	p := d.mul(x, y)
	k, _ := d.named("dim").Int()
	return one(d.sum(p, false, wrapDim(k, p.Type.Rank())))
}

func decompMatrixPower(d *Decomp) []*ir.Value {
	x := d.in(0)
	n, ok := d.N.Arg(1).Int()
	if !ok || n < 0 || n > 1<<16 {
		return nil
	}
	var y *ir.Value
	if n == 0 {
		r := x.Type.Rank()
		eye := d.eq(d.grid(x.Type.Shape[r-2], 0, 2), d.grid(x.Type.Shape[r-1], 1, 2))
		return one(d.expand(d.cast(eye, x.Type.DType), x.Type.Shape...))
	}
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			if y == nil {
				y = x
			} else {
				y = d.matmul(y, x)
			}
		}
		if n > 1 {
			x = d.matmul(x, x)
		}
	}
	return one(y)
}

func decompBilinear(d *Decomp) []*ir.Value {
	x, y, w := d.in(0), d.in(1), d.in(2)
	// out[n, o] = sum over i, j of x[n, i] w[o, i, j] y[n, j].
	lead := x.Type.Shape[:x.Type.Rank()-1]
	n := sym.Prod(lead...)
	o, i, j := w.Type.Shape[0], w.Type.Shape[1], w.Type.Shape[2]
	fx, fy := d.view(x, n, i), d.view(y, n, j)
	xw := d.mm(fx, d.view(d.permute(w, 1, 0, 2), i, sym.Mul(o, j)))
	z := d.sum(d.mul(d.view(xw, n, o, j), d.unsqueeze(fy, 1)), false, 2)
	z = d.view(z, d.N.Out().Type.Shape...)
	if b := d.N.In(3); b != nil {
		z = d.add(z, b)
	}
	return d.back(z)
}

// decompEinsum multiplies the operands from the left to the right, each pair as one batched product.
func decompEinsum(d *Decomp) []*ir.Value {
	eq, _ := d.N.Arg(0).Str()
	vals := d.N.Arg(1).Values()
	eq = strings.ReplaceAll(eq, " ", "")
	lhs, rhs, explicit := strings.Cut(eq, "->")
	terms := strings.Split(lhs, ",")
	if len(terms) != len(vals) || len(vals) == 0 {
		return nil
	}
	// Dimensions of an ellipsis are named from the right by letters that no equation has.
	ellipsis := 0
	for i, t := range terms {
		if k := strings.Index(t, "..."); k >= 0 {
			ellipsis = max(ellipsis, vals[i].Type.Rank()-(len(t)-3))
		}
	}
	if ellipsis < 0 || ellipsis > 20 {
		return nil
	}
	dots := func(n int) string {
		s := ""
		for k := n; k > 0; k-- {
			s += string(rune('0' + k))
		}
		return s
	}
	for i, t := range terms {
		if k := strings.Index(t, "..."); k >= 0 {
			n := vals[i].Type.Rank() - (len(t) - 3)
			if n < 0 {
				return nil
			}
			terms[i] = t[:k] + dots(n) + t[k+3:]
		}
		if len(terms[i]) != vals[i].Type.Rank() {
			return nil
		}
	}
	if explicit {
		rhs = strings.Replace(rhs, "...", dots(ellipsis), 1)
	} else {
		rhs = dots(ellipsis)
		for c := byte('A'); c <= 'z'; c++ {
			if strings.Count(strings.Join(terms, ""), string(c)) == 1 {
				rhs += string(c)
			}
		}
	}
	t := d.N.Out().Type.DType
	// A letter twice in one operand takes the diagonal.
	for i := range vals {
		vals[i] = d.cast(vals[i], t)
		for {
			a, b := repeated(terms[i])
			if a < 0 {
				break
			}
			vals[i] = d.v(op.AtenDiagonalDefault(d.Builder, vals[i], op.KW("dim1", ir.Int(int64(a))), op.KW("dim2", ir.Int(int64(b)))))
			c := terms[i][a]
			terms[i] = terms[i][:a] + terms[i][a+1:b] + terms[i][b+1:] + string(c)
		}
	}
	x, xs := vals[0], terms[0]
	for i := 1; i < len(vals); i++ {
		keep := rhs + strings.Join(terms[i+1:], "")
		x, xs = d.contract(x, xs, vals[i], terms[i], keep)
	}
	// What is left over sums away; the rest comes into the order asked for.
	var gone []int
	left := ""
	for i := range len(xs) {
		if strings.IndexByte(rhs, xs[i]) < 0 {
			gone = append(gone, i)
		} else {
			left += xs[i : i+1]
		}
	}
	if len(gone) > 0 {
		x = d.sum(x, false, gone...)
	}
	perm := make([]int, len(rhs))
	for i := range len(rhs) {
		if perm[i] = strings.IndexByte(left, rhs[i]); perm[i] < 0 {
			return nil
		}
	}
	return one(d.view(d.permute(x, perm...), d.N.Out().Type.Shape...))
}

func repeated(s string) (a, b int) {
	for i := range len(s) {
		if j := strings.IndexByte(s[i+1:], s[i]); j >= 0 {
			return i, i + 1 + j
		}
	}
	return -1, -1
}

// contract multiplies two operands and sums the letters that nobody needs later.
func (d *Decomp) contract(x *ir.Value, xs string, y *ir.Value, ys, keep string) (*ir.Value, string) {
	has := func(s string, c byte) bool { return strings.IndexByte(s, c) >= 0 }
	// Letters of one operand alone that are summed go first.
	reduce := func(v *ir.Value, s, other string) (*ir.Value, string) {
		var dims []int
		rest := ""
		for i := range len(s) {
			if !has(other, s[i]) && !has(keep, s[i]) {
				dims = append(dims, i)
			} else {
				rest += s[i : i+1]
			}
		}
		if len(dims) == 0 {
			return v, s
		}
		return d.sum(v, false, dims...), rest
	}
	x, xs = reduce(x, xs, ys)
	y, ys = reduce(y, ys, xs)
	var batch, inner, freeX, freeY string
	for i := range len(xs) {
		c := xs[i]
		switch {
		case !has(ys, c):
			freeX += string(c)
		case has(keep, c):
			batch += string(c)
		default:
			inner += string(c)
		}
	}
	for i := range len(ys) {
		if !has(xs, ys[i]) {
			freeY += ys[i : i+1]
		}
	}
	size := func(c byte) sym.Expr {
		if i := strings.IndexByte(xs, c); i >= 0 && !x.Type.Shape[i].IsConstValue(1) {
			return x.Type.Shape[i]
		}
		if i := strings.IndexByte(ys, c); i >= 0 {
			return y.Type.Shape[i]
		}
		return one1
	}
	sizes := func(s string) []sym.Expr {
		var out []sym.Expr
		for i := range len(s) {
			out = append(out, size(s[i]))
		}
		return out
	}
	arrange := func(v *ir.Value, s, order string) *ir.Value {
		perm := make([]int, len(order))
		for i := range len(order) {
			perm[i] = strings.IndexByte(s, order[i])
		}
		return d.expand(d.permute(v, perm...), sizes(order)...)
	}
	b, m, k, p := sizes(batch), sizes(freeX), sizes(inner), sizes(freeY)
	xm := d.view(arrange(x, xs, batch+freeX+inner), sym.Prod(b...), sym.Prod(m...), sym.Prod(k...))
	ym := d.view(arrange(y, ys, batch+inner+freeY), sym.Prod(b...), sym.Prod(k...), sym.Prod(p...))
	var z *ir.Value
	if inner == "" {
		z = d.mul(xm, ym)
	} else {
		z = d.bmm(xm, ym)
	}
	return d.view(z, join(b, m, p)...), batch + freeX + freeY
}

func decompIntMm(d *Decomp) []*ir.Value {
	// Products of eight-bit numbers are exact in float32 up to 2^24, and in float64 always.
	a, b := d.in(0), d.in(1)
	t := ops.Float64
	if k, ok := ir.Dim(a, -1).IsConst(); ok && k <= 1024 {
		t = ops.Float32
	}
	return d.back(d.mm(d.cast(a, t), d.cast(b, t)))
}

// decompGroupedMm multiplies groups of rows by one matrix each. The ends of the groups are data: each row multiplies with
// every matrix, and the products of other groups are masked.
func decompGroupedMm(d *Decomp) []*ir.Value {
	x, w := d.in(0), d.in(1)
	offs := d.named("offs").Value()
	if offs == nil || x.Type.Rank() != 2 || w.Type.Rank() != 3 {
		if offs == nil && x.Type.Rank() == 3 && w.Type.Rank() == 3 {
			return d.back(d.bmm(x, w))
		}
		return nil
	}
	group := d.groupOf(x, offs)
	groups, ok := w.Type.Shape[0].IsConst()
	if !ok {
		return nil
	}
	var y *ir.Value
	for k := range groups {
		p := d.mm(x, d.pickAt(w, 0, k))
		p = d.where(d.unsqueeze(d.eq(group, int(k)), 1), p, 0.0)
		if y == nil {
			y = p
		} else {
			y = d.add(y, p)
		}
	}
	if b := d.named("bias").Value(); b != nil {
		return nil
	}
	return d.back(y)
}

func decompCdist(d *Decomp) []*ir.Value {
	x, y := d.in(0), d.in(1)
	p := floatArg(d.N.Arg(2), 2)
	r := x.Type.Rank()
	diff := d.sub(d.unsqueeze(x, r-1), d.unsqueeze(y, y.Type.Rank()-2))
	return one(d.pnorm(diff, p, false, diff.Type.Rank()-1))
}

func decompEuclideanDist(d *Decomp) []*ir.Value {
	x, y := d.in(0), d.in(1)
	diff := d.sub(d.unsqueeze(x, x.Type.Rank()-1), d.unsqueeze(y, y.Type.Rank()-2))
	return one(d.pnorm(diff, 2, false, diff.Type.Rank()-1))
}

func decompPairwiseDistance(d *Decomp) []*ir.Value {
	x, y := d.in(0), d.in(1)
	diff := d.add(d.sub(x, y), floatArg(d.named("eps"), 1e-6))
	return d.back(d.pnorm(diff, floatArg(d.N.Arg(2), 2), boolArg(d.named("keepdim")), diff.Type.Rank()-1))
}

func decompCosineSimilarity(d *Decomp) []*ir.Value {
	x, y := d.opmath(d.in(0)), d.opmath(d.in(1))
	shape := d.mul(x, y)
	k, _ := d.N.Arg(2).Int()
	dim := wrapDim(k, shape.Type.Rank())
	x, y = d.expand(x, shape.Type.Shape...), d.expand(y, shape.Type.Shape...)
	eps := floatArg(d.named("eps"), 1e-8)
	nx := d.max(d.sqrt(d.sum(d.mul(x, x), true, dim)), eps)
	ny := d.max(d.sqrt(d.sum(d.mul(y, y), true, dim)), eps)
	return d.back(d.sum(d.mul(d.div(x, nx), d.div(y, ny)), false, dim))
}

// decompTrilinear sums the product of three tensors with dimensions inserted.
func decompTrilinear(d *Decomp) []*ir.Value {
	grow := func(i, dims int) *ir.Value {
		x := d.in(i)
		ks, _ := d.N.Arg(dims).IntList()
		for _, k := range ks {
			x = d.unsqueeze(x, int(k))
		}
		return x
	}
	p := d.mul(d.mul(grow(0, 3), grow(1, 4)), grow(2, 5))
	if ks, _ := d.N.Arg(6).IntList(); len(ks) > 0 {
		p = d.sum(p, false, d.dims(d.N.Arg(6), p)...)
	}
	return one(p)
}

func decompWeightInt8packMm(d *Decomp) []*ir.Value {
	x, w, s := d.in(0), d.in(1), d.in(2)
	y := d.mm(d.opmath(x), d.swap(d.opmath(w), 0, 1))
	return d.back(d.mul(y, d.opmath(s)))
}

func decompScaledMm(d *Decomp) []*ir.Value {
	if !d.named("scale_result").IsNone() {
		return nil
	}
	a := d.mul(d.cast(d.in(0), ops.Float32), d.in(2))
	b := d.mul(d.cast(d.in(1), ops.Float32), d.in(3))
	y := d.mm(a, b)
	if v := d.named("bias").Value(); v != nil {
		y = d.add(y, d.opmath(v))
	}
	return d.back(y)
}

func decompPdist(d *Decomp) []*ir.Value {
	return one(d.v(op.AtenUnderPdistForwardDefault(d.Builder, d.in(0), op.KW("p", d.N.Arg(1)))))
}
