package infer

import (
	"math"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// indices are the index tensors of an argument by dimension, masks taken apart; the second result tells which dimensions
// are indexed.
func (c *Call) indices(name string, x ir.Type) ([]ir.Type, []bool) {
	var ts []ir.Type
	var set []bool
	for i, a := range c.arg(name).List() {
		v := a.Value()
		if v == nil {
			ts, set = append(ts, ir.Type{}), append(set, false)
			continue
		}
		t := v.Type
		switch t.DType {
		case ops.Bool, ops.Uint8:
			n := c.fresh(sym.Range{Min: 0, Max: math.MaxInt64})
			for d := range t.Shape {
				at := len(ts) + d
				if at >= x.Rank() {
					failf("the mask at place %d has too many dimensions (%s for %s)", i, shapeString(t.Shape), shapeString(x.Shape))
				}
				c.same("the mask's size", t.Shape[d], x.Shape[at])
			}
			if t.Rank() == 0 {
				failf("a mask without dimensions is not supported as an index")
			}
			for range t.Shape {
				ts, set = append(ts, ir.TensorType(ops.Int64, n)), append(set, true)
			}
		case ops.Int64, ops.Int32, ops.Int16, ops.Int8:
			ts, set = append(ts, t), append(set, true)
		default:
			failf("the index at place %d is %s; integers or bools are needed", i, t.DType)
		}
	}
	if len(ts) > x.Rank() {
		failf("%d indices for a tensor of %d dimensions", len(ts), x.Rank())
	}
	return ts, set
}

// indexed is the shape of x at indices and whether the indexed dimensions are adjacent.
func (c *Call) indexed(x ir.Type, ts []ir.Type, set []bool) (shape []sym.Expr, common []sym.Expr, first int, adjacent bool) {
	var shapes [][]sym.Expr
	first, last, count := -1, -1, 0
	for i := range ts {
		if set[i] {
			shapes = append(shapes, ts[i].Shape)
			if first < 0 {
				first = i
			}
			last = i
			count++
		}
	}
	common = c.broadcast(shapes...)
	adjacent = count == 0 || last-first+1 == count
	at := 0
	if adjacent && first >= 0 {
		at = first
	}
	for i, e := range x.Shape {
		if count > 0 && i == at && adjacent {
			shape = append(shape, common...)
		}
		if i >= len(ts) || !set[i] {
			shape = append(shape, e)
		}
	}
	if count > 0 && !adjacent {
		shape = append(append([]sym.Expr(nil), common...), shape...)
	}
	return shape, common, first, adjacent
}

func inferIndex(c *Call) ([]ir.Type, error) {
	x := c.x()
	ts, set := c.indices("indices", x)
	shape, common, first, adjacent := c.indexed(x, ts, set)
	if first < 0 {
		return one(c.preserved(x.DType, x))
	}
	if x.Strides == nil {
		return one(ir.TensorType(x.DType, shape...))
	}
	// The rest keeps the order of x in memory: the result is what an element-wise operator over the restrided input and the
	// indices would give, with the indexed dimensions of stride zero.
	var rs []sym.Expr
	st := strides(x)
	for i := range x.Shape {
		if i == first && adjacent {
			rs = append(rs, make([]sym.Expr, len(common))...)
		}
		if i >= len(ts) || !set[i] {
			rs = append(rs, st[i])
		}
	}
	if !adjacent {
		rs = append(make([]sym.Expr, len(common)), rs...)
	}
	lists := [][]sym.Expr{rs}
	at := first
	if !adjacent {
		at = 0
	}
	for i := range ts {
		if set[i] {
			l := make([]sym.Expr, len(shape))
			copy(l[at:], c.expandStrides(ts[i], common))
			lists = append(lists, l)
		}
	}
	return one(dense(x.DType, shape, c.strideOrder(shape, lists)))
}

func inferIndexPut(c *Call) ([]ir.Type, error) {
	x, v := c.x(), c.tensor("values")
	sameDType("self", x, "values", v)
	ts, set := c.indices("indices", x)
	shape, _, _, _ := c.indexed(x, ts, set)
	if v.Rank() > len(shape) {
		failf("values of shape %s do not fit %s", shapeString(v.Shape), shapeString(shape))
	}
	off := len(shape) - v.Rank()
	for i, e := range v.Shape {
		if !c.is(e, 1) {
			c.same("values of shape "+shapeString(v.Shape)+" do not fit "+shapeString(shape), e, shape[off+i])
		}
	}
	return one(c.preserved(x.DType, x))
}

func inferUnsafeMaskedIndex(c *Call) ([]ir.Type, error) {
	x := c.x()
	ts, set := c.indices("indices", x)
	shape, _, _, _ := c.indexed(x, ts, set)
	return one(ir.TensorType(x.DType, c.broadcast(shape, c.tensor("mask").Shape)...))
}

func inferIndexSelect(c *Call) ([]ir.Type, error) {
	x, i := c.x(), c.tensor("index")
	rank("index", i, 0, 1)
	indexType("index", i.DType)
	d := c.dim("dim", x.Rank())
	shape := append([]sym.Expr(nil), x.Shape...)
	if len(shape) > 0 {
		shape[d] = i.Numel()
	}
	return one(c.keepsFormat(x, shape))
}

func inferIndexCopy(c *Call) ([]ir.Type, error) {
	x, s := c.x(), c.tensor("source")
	sameDType("self", x, "source", s)
	c.slices(x, s)
	return one(ir.TensorType(x.DType, x.Shape...))
}

// slices checks that source has self's shape but for dim, where it has one slice an index.
func (c *Call) slices(x, s ir.Type) {
	i := c.tensor("index")
	rank("index", i, 0, 1)
	indexType("index", i.DType)
	d := c.dim("dim", x.Rank())
	if s.Rank() == 0 || x.Rank() == 0 {
		return
	}
	if s.Rank() != x.Rank() {
		failf("source has %d dimensions, self %d", s.Rank(), x.Rank())
	}
	for k := range x.Shape {
		if k == d {
			c.same("the number of slices and of indices", s.Shape[k], i.Numel())
		} else {
			c.same("the sizes of source and self", s.Shape[k], x.Shape[k])
		}
	}
}

func inferIndexAdd(c *Call) ([]ir.Type, error) {
	x, s := c.x(), c.tensor("source")
	sameDType("self", x, "source", s)
	c.slices(x, s)
	if c.has("reduce") {
		return one(ir.TensorType(x.DType, x.Shape...))
	}
	return one(c.preserved(x.DType, x))
}

func inferIndexFill(c *Call) ([]ir.Type, error) {
	x := c.x()
	i := c.tensor("index")
	rank("index", i, 0, 1)
	if i.DType != ops.Int64 && i.DType != ops.Int32 {
		failf("index is %s, int64 is needed", i.DType)
	}
	c.dim("dim", x.Rank())
	return one(c.preserved(x.DType, x))
}

func inferGather(c *Call) ([]ir.Type, error) {
	x, i := c.x(), c.tensor("index")
	if !c.empty(i) {
		indexType("index", i.DType)
	}
	d := c.dim("dim", x.Rank())
	c.within(x, i, d, "self")
	return one(ir.TensorType(x.DType, i.Shape...))
}

// within checks that index has the rank of x and, but for d, no larger sizes.
func (c *Call) within(x, i ir.Type, d int, what string) {
	if c.empty(i) {
		return
	}
	if max(x.Rank(), 1) != max(i.Rank(), 1) {
		failf("index has %d dimensions, %s %d", i.Rank(), what, x.Rank())
	}
	for k := range min(i.Rank(), x.Rank()) {
		if k != d && c.never(sym.Le(i.Shape[k], x.Shape[k])) {
			failf("index has size %s in dimension %d, %s only %s", i.Shape[k], k, what, x.Shape[k])
		}
	}
}

func inferTake(c *Call) ([]ir.Type, error) {
	x, i := c.x(), c.tensor("index")
	indexType("index", i.DType)
	return one(ir.TensorType(x.DType, i.Shape...))
}

func inferTakeAlongDim(c *Call) ([]ir.Type, error) {
	x, i := c.x(), c.tensor("indices")
	if i.DType != ops.Int64 {
		failf("indices is %s, int64 is needed", i.DType)
	}
	if c.arg("dim").IsNone() {
		return one(ir.TensorType(x.DType, i.Numel()))
	}
	if x.Rank() != i.Rank() {
		failf("indices has %d dimensions, self %d", i.Rank(), x.Rank())
	}
	d := c.dim("dim", x.Rank())
	a, b := append([]sym.Expr(nil), x.Shape...), append([]sym.Expr(nil), i.Shape...)
	if x.Rank() > 0 {
		a[d], b[d] = sym.Const(1), sym.Const(1)
	}
	shape := c.broadcast(a, b)
	if x.Rank() > 0 {
		shape[d] = i.Shape[d]
	}
	return one(ir.TensorType(x.DType, shape...))
}

func inferPut(c *Call) ([]ir.Type, error) {
	x, s := c.x(), c.tensor("source")
	sameDType("self", x, "source", s)
	indexType("index", c.tensor("index").DType)
	return one(c.preserved(x.DType, x))
}

// inferScatter is the rule of everything that writes along a dimension where an index tensor says.
func inferScatter(c *Call) ([]ir.Type, error) {
	x, i := c.x(), c.tensor("index")
	d := c.dim("dim", x.Rank())
	if !c.empty(i) {
		indexType("index", i.DType)
		c.within(x, i, d, "self")
	}
	if c.has("src") {
		s := c.tensor("src")
		sameDType("self", x, "src", s)
		if !c.empty(i) {
			c.within(s, i, -1, "src")
		}
	}
	return one(ir.TensorType(x.DType, x.Shape...))
}

// inferScatterView is the rule of slice_scatter and its kin: self with src written to a view of it.
func inferScatterView(c *Call) ([]ir.Type, error) {
	x, s := c.x(), c.tensor("src")
	if x.Rank() == 0 && c.has("dim") {
		failf("a tensor without dimensions has no part to write to")
	}
	var v ir.Type
	switch c.Op.Info().Schema.Base {
	case "slice_scatter":
		d := c.dim("dim", x.Rank())
		start, ok := c.optExpr("start")
		if !ok {
			start = sym.Const(0)
		}
		end, ok := c.optExpr("end")
		if !ok {
			end = x.Shape[d]
		}
		v = c.sliceOf(x, d, start, end, c.expr("step"))
	case "select_scatter":
		d := c.dim("dim", x.Rank())
		v = without(x, func(i int) bool { return i == d })
	case "diagonal_scatter":
		v = c.diagonal(x, c.dim("dim1", x.Rank()), c.dim("dim2", x.Rank()), c.expr("offset"))
	default:
		v = ir.TensorType(x.DType, c.exprs("size")...)
	}
	if c.Op.Info().Schema.Base == "slice_scatter" {
		c.copies(v, s)
	} else {
		if s.Rank() != v.Rank() {
			failf("src is of shape %s, the place for it %s", shapeString(s.Shape), shapeString(v.Shape))
		}
		for i := range v.Shape {
			c.same("the sizes of src and the place for it", s.Shape[i], v.Shape[i])
		}
	}
	return one(c.preserved(x.DType, x))
}

func inferMaskedFill(c *Call) ([]ir.Type, error) {
	x, m := c.x(), c.tensor("mask")
	if m.DType != ops.Bool && m.DType != ops.Uint8 {
		failf("mask is %s, bool is needed", m.DType)
	}
	if c.has("source") {
		sameDType("self", x, "source", c.tensor("source"))
	}
	if c.has("value") {
		v := c.operand("value")
		if !v.number && v.t.Rank() != 0 {
			failf("value has %d dimensions, none are allowed", v.t.Rank())
		}
		if category(v.dtype) > category(x.DType) && (x.DType == ops.Bool || v.dtype.IsComplex()) && !v.number {
			failf("value of type %s cannot be written to %s", v.dtype, x.DType)
		}
	}
	return one(ir.TensorType(x.DType, c.broadcast(x.Shape, m.Shape)...))
}

func (c *Call) count() sym.Expr { return c.fresh(sym.Range{Min: 0, Max: math.MaxInt64}) }

func inferMaskedSelect(c *Call) ([]ir.Type, error) {
	x, m := c.x(), c.tensor("mask")
	if m.DType != ops.Bool && m.DType != ops.Uint8 {
		failf("mask is %s, bool is needed", m.DType)
	}
	c.broadcast(x.Shape, m.Shape)
	return one(ir.TensorType(x.DType, c.count()))
}

// inferNonzero: the real kernel's rows are strided by columns; torch's meta function says so too.
func inferNonzero(c *Call) ([]ir.Type, error) {
	x := c.x()
	if c.empty(x) {
		return one(ir.StaticType(ops.Int64, 0, int64(x.Rank())))
	}
	n, r := c.count(), sym.Const(int64(x.Rank()))
	return one(ir.Type{DType: ops.Int64, Shape: []sym.Expr{n, r}, Strides: []sym.Expr{sym.Const(1), n}})
}

func inferNonzeroNumpy(c *Call) ([]ir.Type, error) {
	n := c.count()
	ts := make([]ir.Type, max(c.x().Rank(), 1))
	for i := range ts {
		ts[i] = ir.TensorType(ops.Int64, n)
	}
	return ts, nil
}

func inferNonzeroStatic(c *Call) ([]ir.Type, error) {
	return one(ir.TensorType(ops.Int64, c.expr("size"), sym.Const(int64(c.x().Rank()))))
}

func inferEmbedding(c *Call) ([]ir.Type, error) {
	w, i := c.tensor("weight"), c.tensor("indices")
	rank("weight", w, 2)
	indexType("indices", i.DType)
	return one(ir.TensorType(w.DType, append(append([]sym.Expr(nil), i.Shape...), w.Shape[1])...))
}

// inferEmbeddingBag: sums, then what a backward pass needs: the bag of each index, bag sizes, largest indices.
func inferEmbeddingBag(c *Call) ([]ir.Type, error) {
	w, i := c.tensor("weight"), c.tensor("indices")
	off := c.tensor("offsets")
	rank("weight", w, 2)
	rank("indices", i, 1)
	rank("offsets", off, 1)
	indexType("indices", i.DType)
	mode := c.int("mode")
	if mode < 0 || mode > 2 {
		failf("mode is %d; 0 (sum), 1 (mean) and 2 (max) are known", mode)
	}
	n, all := off.Shape[0], off.Shape[0]
	if c.bool("include_last_offset") {
		n = c.simp(sym.Sub(n, sym.Const(1)))
	}
	idx := i.DType
	if off.DType == ops.Int64 {
		idx = ops.Int64
	}
	bag := ir.TensorType(idx, i.Shape[0])
	if c.fastBags(w, mode) {
		bag.Shape[0] = sym.Const(0)
	}
	largest := ir.TensorType(idx, n)
	if mode == 2 {
		largest = ir.TensorType(idx, n, w.Shape[1])
	}
	if mode != 0 { // sums leave as many as there are offsets
		all = n
	}
	return []ir.Type{ir.TensorType(w.DType, n, w.Shape[1]), bag, ir.TensorType(idx, all), largest}, nil
}

// fastBags tells when torch sums bags without remembering the bag of each index.
func (c *Call) fastBags(w ir.Type, mode int64) bool {
	_, weighted := c.optTensor("per_sample_weights")
	if mode != 0 || w.DType != ops.Float32 && w.DType != ops.Float16 && (w.DType != ops.BFloat16 || weighted) || !c.is(strides(w)[1], 1) {
		return false
	}
	pad, given := c.optInt("padding_idx")
	return !given || pad < 0 && c.Op != ops.AtenEmbeddingBagPaddingIdx
}

func inferEmbeddingRenorm(c *Call) ([]ir.Type, error) { return one(c.x()) }

func inferOneHot(c *Call) ([]ir.Type, error) {
	x := c.x()
	if x.DType != ops.Int64 {
		failf("self is %s, int64 is needed", x.DType)
	}
	n := c.expr("num_classes")
	if n.IsConstValue(-1) {
		n = c.count()
	}
	return one(ir.TensorType(ops.Int64, inserted(x.Shape, x.Rank(), n)...))
}

func inferBucketize(c *Call) ([]ir.Type, error) {
	x, b := c.operand("self"), c.tensor("boundaries")
	rank("boundaries", b, 1)
	return one(ir.TensorType(c.searchType(), x.t.Shape...))
}

func (c *Call) searchType() ops.DType {
	if c.bool("out_int32") {
		return ops.Int32
	}
	return ops.Int64
}

func inferSearchsorted(c *Call) ([]ir.Type, error) {
	s, x := c.tensor("sorted_sequence"), c.operand("self")
	if s.Rank() == 0 {
		failf("sorted_sequence has no dimensions")
	}
	if s.Rank() > 1 && !x.number {
		if s.Rank() != x.t.Rank() {
			failf("sorted_sequence has %d dimensions, self %d", s.Rank(), x.t.Rank())
		}
		for i := range s.Rank() - 1 {
			c.same("the leading sizes of sorted_sequence and self", s.Shape[i], x.t.Shape[i])
		}
	}
	return one(ir.TensorType(c.searchType(), x.t.Shape...))
}

func inferFill(c *Call) ([]ir.Type, error) {
	x := c.x()
	if v, ok := c.arg("value"), c.has("value"); ok && v.Value() != nil && v.Value().Type.Rank() > 0 {
		failf("value has %d dimensions, none are allowed", v.Value().Type.Rank())
	}
	return one(c.preserved(x.DType, x))
}
