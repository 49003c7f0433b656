package passes

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// The decompositions are written with short methods that take values and plain numbers alike. A method whose node cannot
// be made ends the decomposition (see bail), so that a result is never nil.

// v checks the result of a constructor.
func (d *Decomp) v(x *ir.Value) *ir.Value {
	if d.Err != nil || x == nil {
		d.Fail(fmt.Errorf("no result"))
		panic(bail{})
	}
	return x
}

// outs checks a node of several results.
func (d *Decomp) outs(n *ir.Node) []*ir.Value {
	if d.Err != nil || n == nil {
		d.Fail(fmt.Errorf("no results"))
		panic(bail{})
	}
	return n.Outs
}

func one(v *ir.Value) []*ir.Value { return []*ir.Value{v} }

// arg makes an argument of a value, number, bool or expression.
func (d *Decomp) arg(x any) ir.Arg {
	switch x := x.(type) {
	case ir.Arg:
		return x
	case *ir.Value:
		return ir.Ref(x)
	case int:
		return ir.Int(int64(x))
	case int64:
		return ir.Int(x)
	case float64:
		return ir.Float(x)
	case bool:
		return ir.Bool(x)
	case sym.Expr:
		return ir.SymInt(x)
	}
	panic(fmt.Sprintf("passes: %T is no argument", x))
}

// in is the tensor at argument i; a number there becomes a tensor of the type that it counts as.
func (d *Decomp) in(i int) *ir.Value { return d.tensor(d.N.Arg(i)) }

func (d *Decomp) named(name string) ir.Arg { return d.N.ArgNamed(name) }

// tensor is a value as it is, or a number as a 0-d tensor that does not widen the node's result.
func (d *Decomp) tensor(a ir.Arg) *ir.Value {
	if v := a.Value(); v != nil && v.Type.IsTensor() {
		return v
	}
	t := ops.DTypeNone
	for v := range d.N.Inputs() {
		if v.Type.IsTensor() {
			t = v.Type.DType
			break
		}
	}
	k := numberKind(a)
	if t == ops.DTypeNone || k > kindOf(t) {
		t = map[int]ir.DType{0: ops.Bool, 1: ops.Int64, 2: ops.Float32, 3: ops.Complex64}[k]
	}
	return d.scalar(a, t)
}

// scalar is a number as a 0-d tensor.
func (d *Decomp) scalar(x any, t ir.DType) *ir.Value {
	return d.v(op.AtenScalarTensorDefault(d.Builder, d.arg(x), op.KW("dtype", ir.DTypeArg(t))))
}

// kindOf orders types by category: bool, integer, float, complex.
func kindOf(t ir.DType) int {
	switch {
	case t == ops.Bool:
		return 0
	case t.IsInt():
		return 1
	case t.IsComplex():
		return 3
	}
	return 2
}

func numberKind(a ir.Arg) int {
	switch a.Kind() {
	case ir.ArgBool:
		return 0
	case ir.ArgInt:
		return 1
	case ir.ArgComplex:
		return 3
	case ir.ArgValue:
		switch a.Value().Type.Kind {
		case ir.KindBool:
			return 0
		case ir.KindInt:
			return 1
		}
	}
	return 2
}

func isTensor(a ir.Arg) bool {
	v := a.Value()
	return v != nil && v.Type.IsTensor()
}

// pick builds the tensor form of a binary operator, or the form with a number as the second operand.
func (d *Decomp) pick(tensors, number ops.ID, x, y any) *ir.Value {
	a, b := d.arg(x), d.arg(y)
	id := tensors
	if !isTensor(b) {
		id = number
	}
	args := op.Defaults(id)
	args[0], args[1] = a, b
	n := op.New(d.Builder, id, args)
	if n == nil {
		return d.v(nil)
	}
	return d.v(n.Out())
}

func (d *Decomp) add(x, y any) *ir.Value {
	if !isTensor(d.arg(x)) {
		x, y = y, x
	}
	return d.pick(ops.AtenAddTensor, ops.AtenAddScalar, x, y)
}

func (d *Decomp) sub(x, y any) *ir.Value {
	if a := d.arg(x); !isTensor(a) {
		return d.v(op.AtenRsubScalar(d.Builder, d.arg(y).Value(), a))
	}
	return d.pick(ops.AtenSubTensor, ops.AtenSubScalar, x, y)
}

func (d *Decomp) mul(x, y any) *ir.Value {
	if !isTensor(d.arg(x)) {
		x, y = y, x
	}
	return d.pick(ops.AtenMulTensor, ops.AtenMulScalar, x, y)
}

func (d *Decomp) div(x, y any) *ir.Value {
	if a := d.arg(x); !isTensor(a) {
		x = d.scalar(a, d.arg(y).Value().Type.DType)
	}
	return d.pick(ops.AtenDivTensor, ops.AtenDivScalar, x, y)
}

// floorDiv divides integers, rounding down.
func (d *Decomp) floorDiv(x, y any) *ir.Value {
	if isTensor(d.arg(y)) {
		return d.v(op.AtenDivTensorMode(d.Builder, d.arg(x).Value(), d.arg(y).Value(), ir.Str("floor")))
	}
	return d.v(op.AtenDivScalarMode(d.Builder, d.arg(x).Value(), d.arg(y), ir.Str("floor")))
}

func (d *Decomp) lt(x, y any) *ir.Value { return d.pick(ops.AtenLtTensor, ops.AtenLtScalar, x, y) }
func (d *Decomp) le(x, y any) *ir.Value { return d.pick(ops.AtenLeTensor, ops.AtenLeScalar, x, y) }
func (d *Decomp) gt(x, y any) *ir.Value { return d.pick(ops.AtenGtTensor, ops.AtenGtScalar, x, y) }
func (d *Decomp) ge(x, y any) *ir.Value { return d.pick(ops.AtenGeTensor, ops.AtenGeScalar, x, y) }
func (d *Decomp) eq(x, y any) *ir.Value { return d.pick(ops.AtenEqTensor, ops.AtenEqScalar, x, y) }
func (d *Decomp) ne(x, y any) *ir.Value { return d.pick(ops.AtenNeTensor, ops.AtenNeScalar, x, y) }

func (d *Decomp) max(x, y any) *ir.Value {
	if isTensor(d.arg(y)) {
		return d.v(op.AtenMaximumDefault(d.Builder, d.arg(x).Value(), d.arg(y).Value()))
	}
	return d.v(op.AtenClampDefault(d.Builder, d.arg(x).Value(), op.KW("min", d.arg(y))))
}

func (d *Decomp) min(x, y any) *ir.Value {
	if isTensor(d.arg(y)) {
		return d.v(op.AtenMinimumDefault(d.Builder, d.arg(x).Value(), d.arg(y).Value()))
	}
	return d.v(op.AtenClampDefault(d.Builder, d.arg(x).Value(), op.KW("max", d.arg(y))))
}

func (d *Decomp) clamp(x *ir.Value, lo, hi any) *ir.Value {
	return d.v(op.AtenClampDefault(d.Builder, x, op.KW("min", d.arg(lo)), op.KW("max", d.arg(hi))))
}

func (d *Decomp) pow(x, y any) *ir.Value {
	if !isTensor(d.arg(x)) {
		return d.v(op.AtenPowScalar(d.Builder, d.arg(x), d.arg(y).Value()))
	}
	return d.pick(ops.AtenPowTensorTensor, ops.AtenPowTensorScalar, x, y)
}

func (d *Decomp) and(x, y *ir.Value) *ir.Value { return d.v(op.AtenLogicalAndDefault(d.Builder, x, y)) }

func (d *Decomp) or(x, y *ir.Value) *ir.Value { return d.v(op.AtenLogicalOrDefault(d.Builder, x, y)) }

func (d *Decomp) not(x *ir.Value) *ir.Value { return d.v(op.AtenLogicalNotDefault(d.Builder, x)) }

func (d *Decomp) neg(x *ir.Value) *ir.Value     { return d.v(op.AtenNegDefault(d.Builder, x)) }
func (d *Decomp) abs(x *ir.Value) *ir.Value     { return d.v(op.AtenAbsDefault(d.Builder, x)) }
func (d *Decomp) exp(x *ir.Value) *ir.Value     { return d.v(op.AtenExpDefault(d.Builder, x)) }
func (d *Decomp) log(x *ir.Value) *ir.Value     { return d.v(op.AtenLogDefault(d.Builder, x)) }
func (d *Decomp) log1p(x *ir.Value) *ir.Value   { return d.v(op.AtenLog1pDefault(d.Builder, x)) }
func (d *Decomp) sqrt(x *ir.Value) *ir.Value    { return d.v(op.AtenSqrtDefault(d.Builder, x)) }
func (d *Decomp) rsqrt(x *ir.Value) *ir.Value   { return d.v(op.AtenRsqrtDefault(d.Builder, x)) }
func (d *Decomp) sigmoid(x *ir.Value) *ir.Value { return d.v(op.AtenSigmoidDefault(d.Builder, x)) }
func (d *Decomp) tanh(x *ir.Value) *ir.Value    { return d.v(op.AtenTanhDefault(d.Builder, x)) }
func (d *Decomp) sin(x *ir.Value) *ir.Value     { return d.v(op.AtenSinDefault(d.Builder, x)) }
func (d *Decomp) cos(x *ir.Value) *ir.Value     { return d.v(op.AtenCosDefault(d.Builder, x)) }
func (d *Decomp) floor(x *ir.Value) *ir.Value   { return d.v(op.AtenFloorDefault(d.Builder, x)) }
func (d *Decomp) isNaN(x *ir.Value) *ir.Value   { return d.v(op.AtenIsnanDefault(d.Builder, x)) }
func (d *Decomp) reciprocal(x *ir.Value) *ir.Value {
	return d.v(op.AtenReciprocalDefault(d.Builder, x))
}

// where picks elements; numbers become tensors of the other side's type.
func (d *Decomp) where(c *ir.Value, x, y any) *ir.Value {
	a, b := d.arg(x), d.arg(y)
	var t ir.DType
	switch {
	case isTensor(a):
		t = a.Value().Type.DType
	case isTensor(b):
		t = b.Value().Type.DType
	default:
		t = d.N.Out().Type.DType
	}
	side := func(a ir.Arg) *ir.Value {
		if isTensor(a) {
			return a.Value()
		}
		return d.scalar(a, t)
	}
	return d.v(op.AtenWhereSelf(d.Builder, c, side(a), side(b)))
}

// cast converts to an element type; nothing where it is that.
func (d *Decomp) cast(x *ir.Value, t ir.DType) *ir.Value {
	if x.Type.DType == t {
		return x
	}
	return d.v(op.AtenUnderToCopyDefault(d.Builder, x, op.KW("dtype", ir.DTypeArg(t))))
}

// opmath is x in the type that PyTorch computes in: float32 for half types, float32 for integers in float operators.
func (d *Decomp) opmath(x *ir.Value) *ir.Value {
	switch t := x.Type.DType; {
	case t == ops.Float16 || t == ops.BFloat16, t == ops.Bool, t.IsInt():
		return d.cast(x, ops.Float32)
	}
	return x
}

// widened is the node in float32 where its operands are of a half type, nil elsewhere.
func (d *Decomp) widened() []*ir.Value {
	half := func(t ir.DType) bool { return t == ops.Float16 || t == ops.BFloat16 }
	args := make([]ir.Arg, d.N.NumArgs())
	some := false
	for i, a := range d.N.Args() {
		args[i] = a
		if v := a.Value(); v != nil && v.Type.IsTensor() && half(v.Type.DType) {
			args[i], some = ir.Ref(d.cast(v, ops.Float32)), true
		}
		if t, ok := a.DType(); ok && half(t) {
			args[i] = ir.DTypeArg(ops.Float32)
		}
	}
	if !some {
		return nil
	}
	n := op.New(d.Builder, d.N.Op, args)
	outs := append([]*ir.Value(nil), d.outs(n)...)
	for i, o := range d.N.Outs {
		if o.Type.IsTensor() {
			outs[i] = d.cast(outs[i], o.Type.DType)
		}
	}
	return outs
}

// back converts a result computed in opmath to the type of the node's first result.
func (d *Decomp) back(x *ir.Value) []*ir.Value { return one(d.cast(x, d.N.Out().Type.DType)) }

func (d *Decomp) view(x *ir.Value, shape ...sym.Expr) *ir.Value {
	if ir.EqualShape(x.Type.Shape, shape) {
		return x
	}
	return d.v(op.AtenViewDefault(d.Builder, x, ir.SymInts(shape...)))
}

func (d *Decomp) expand(x *ir.Value, shape ...sym.Expr) *ir.Value {
	if ir.EqualShape(x.Type.Shape, shape) {
		return x
	}
	return d.v(op.AtenExpandDefault(d.Builder, x, ir.SymInts(shape...)))
}

func (d *Decomp) permute(x *ir.Value, perm ...int) *ir.Value {
	if isIdentity(perm) {
		return x
	}
	return d.v(op.AtenPermuteDefault(d.Builder, x, intArgs(perm)))
}

// swap exchanges two dimensions, negative ones counted from the end.
func (d *Decomp) swap(x *ir.Value, a, b int) *ir.Value {
	r := x.Type.Rank()
	perm := make([]int, r)
	for i := range perm {
		perm[i] = i
	}
	a, b = wrapDim(int64(a), r), wrapDim(int64(b), r)
	perm[a], perm[b] = b, a
	return d.permute(x, perm...)
}

func (d *Decomp) unsqueeze(x *ir.Value, dim int) *ir.Value {
	return d.v(op.AtenUnsqueezeDefault(d.Builder, x, ir.Int(int64(dim))))
}

func (d *Decomp) squeeze(x *ir.Value, dim int) *ir.Value {
	return d.v(op.AtenSqueezeDim(d.Builder, x, ir.Int(int64(dim))))
}

func (d *Decomp) slice(x *ir.Value, dim int, start, end any) *ir.Value {
	return d.step(x, dim, start, end, 1)
}

func (d *Decomp) step(x *ir.Value, dim int, start, end, step any) *ir.Value {
	return d.v(op.AtenSliceTensor(d.Builder, x, op.KW("dim", ir.Int(int64(dim))), op.KW("start", d.arg(start)), op.KW("end", d.arg(end)), op.KW("step", d.arg(step))))
}

func (d *Decomp) pickAt(x *ir.Value, dim int, index any) *ir.Value {
	return d.v(op.AtenSelectInt(d.Builder, x, ir.Int(int64(dim)), d.arg(index)))
}

func (d *Decomp) cat(dim int, xs ...*ir.Value) *ir.Value {
	if len(xs) == 1 {
		return xs[0]
	}
	return d.v(op.AtenCatDefault(d.Builder, xs, op.KW("dim", ir.Int(int64(dim)))))
}

func (d *Decomp) stack(dim int, xs ...*ir.Value) *ir.Value {
	return d.v(op.AtenStackDefault(d.Builder, xs, op.KW("dim", ir.Int(int64(dim)))))
}

func (d *Decomp) sum(x *ir.Value, keep bool, dims ...int) *ir.Value {
	return d.v(op.AtenSumDimIntList(d.Builder, x, intArgs(dims), op.KW("keepdim", ir.Bool(keep))))
}

func (d *Decomp) mean(x *ir.Value, keep bool, dims ...int) *ir.Value {
	return d.v(op.AtenMeanDim(d.Builder, x, intArgs(dims), op.KW("keepdim", ir.Bool(keep))))
}

func (d *Decomp) amax(x *ir.Value, keep bool, dims ...int) *ir.Value {
	return d.v(op.AtenAmaxDefault(d.Builder, x, op.KW("dim", intArgs(dims)), op.KW("keepdim", ir.Bool(keep))))
}

func (d *Decomp) amin(x *ir.Value, keep bool, dims ...int) *ir.Value {
	return d.v(op.AtenAminDefault(d.Builder, x, op.KW("dim", intArgs(dims)), op.KW("keepdim", ir.Bool(keep))))
}

// any tells along dims whether an element is not zero.
func (d *Decomp) any(x *ir.Value, keep bool, dims ...int) *ir.Value {
	return d.v(op.AtenAnyDims(d.Builder, x, op.KW("dim", intArgs(dims)), op.KW("keepdim", ir.Bool(keep))))
}

func (d *Decomp) full(value any, t ir.DType, shape ...sym.Expr) *ir.Value {
	return d.v(op.AtenFullDefault(d.Builder, ir.SymInts(shape...), d.arg(value), op.KW("dtype", ir.DTypeArg(t))))
}

// arange is 0, 1, … n-1.
func (d *Decomp) arange(n sym.Expr, t ir.DType) *ir.Value {
	return d.v(op.AtenArangeStartStep(d.Builder, ir.Int(0), ir.SymInt(n), op.KW("dtype", ir.DTypeArg(t))))
}

// grid is the index along dimension dim of a tensor of the given rank, with ones for the other sizes.
func (d *Decomp) grid(n sym.Expr, dim, rank int) *ir.Value {
	shape := ir.Consts(make([]int64, rank)...)
	for i := range shape {
		shape[i] = sym.Const(1)
	}
	shape[dim] = n
	return d.view(d.arange(n, ops.Int64), shape...)
}

func (d *Decomp) mm(a, b *ir.Value) *ir.Value     { return d.v(op.AtenMmDefault(d.Builder, a, b)) }
func (d *Decomp) bmm(a, b *ir.Value) *ir.Value    { return d.v(op.AtenBmmDefault(d.Builder, a, b)) }
func (d *Decomp) matmul(a, b *ir.Value) *ir.Value { return d.v(op.AtenMatmulDefault(d.Builder, a, b)) }

func (d *Decomp) softmax(x *ir.Value, dim int) *ir.Value {
	return d.v(op.AtenUnderSoftmaxDefault(d.Builder, x, ir.Int(int64(dim)), ir.Bool(false)))
}

func (d *Decomp) take(x *ir.Value, dim int, index *ir.Value) *ir.Value {
	return d.v(op.AtenIndexSelectDefault(d.Builder, x, ir.Int(int64(dim)), index))
}

// constant adds contents to the graph, or finds them there; ok is false inside a nested graph, which has no constants.
func (d *Decomp) constant(name string, t ir.DType, sizes []int64, vals []float64) (*ir.Value, bool) {
	if d.G.Parent != nil {
		return nil, false
	}
	b := encode(t, vals)
	h := sha256.New()
	fmt.Fprintf(h, "%s %v ", t, sizes)
	h.Write(b)
	// Methods of a program share constants by name.
	name += "." + hex.EncodeToString(h.Sum(nil)[:8])
	for _, in := range d.G.Inputs {
		if in.Kind == ir.InputConst && in.Target == name {
			return in.Value, true
		}
	}
	return d.G.AddConst(name, ir.NewData(t, sizes, b)), true
}

// dim is argument i, a dimension of x, counted from the front.
func (d *Decomp) dim(i int, x *ir.Value) int {
	k, ok := d.N.Arg(i).Int()
	if !ok {
		d.Fail(fmt.Errorf("dimension is not constant"))
		panic(bail{})
	}
	return wrapDim(k, x.Type.Rank())
}

// dims are the dimensions of a list argument, all of them where it is None or empty.
func (d *Decomp) dims(a ir.Arg, x *ir.Value) []int {
	r := x.Type.Rank()
	if k, ok := a.Int(); ok {
		return []int{wrapDim(k, r)}
	}
	ks, _ := a.IntList()
	if len(ks) == 0 {
		return allDims(r)
	}
	out := make([]int, len(ks))
	for i, k := range ks {
		out[i] = wrapDim(k, r)
	}
	return out
}

func allDims(r int) []int {
	out := make([]int, r)
	for i := range out {
		out[i] = i
	}
	return out
}

func boolArg(a ir.Arg) bool {
	b, _ := a.Bool()
	return b
}

func floatArg(a ir.Arg, none float64) float64 {
	if f, ok := a.Float(); ok {
		return f
	}
	return none
}

// with is shape with size k at dim.
func with(shape []sym.Expr, dim int, k sym.Expr) []sym.Expr {
	out := append([]sym.Expr(nil), shape...)
	out[dim] = k
	return out
}

// insert is shape with a dimension of size k before dim.
func insert(shape []sym.Expr, dim int, k sym.Expr) []sym.Expr {
	return append(append(append([]sym.Expr(nil), shape[:dim]...), k), shape[dim:]...)
}

func join(parts ...[]sym.Expr) []sym.Expr {
	var out []sym.Expr
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

func dimsOf(es ...sym.Expr) []sym.Expr { return es }

var negInf = math.Inf(-1)

var one1 = sym.Const(1)
