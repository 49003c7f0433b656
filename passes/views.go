package passes

import (
	"fmt"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// viewKind groups the operators whose result shows the elements of their input.
type viewKind uint8

const (
	notView      viewKind = iota
	viewSame              // the input itself
	viewShape             // the same elements in row-major order under another shape
	viewPermute           // dimensions in another order
	viewSlice             // a range of one dimension
	viewSelect            // one index of one dimension, which goes away
	viewDiagonal          //
	viewExpand            // dimensions repeated without a copy
	viewStrided           // as_strided
	viewDType             // the same bytes as another type
	viewReal              // complex numbers as pairs, and back
	viewComplex           //
	viewOther             // a view that nothing can be written through
)

// viewKindOf tells how result i of n shows input 0, by the operator alone; mayAlias tells whether it does in n.
func viewKindOf(n *ir.Node) viewKind {
	s := &n.Info().Schema
	if n.Op == ops.Unknown || s.NS != "aten" {
		return notView
	}
	switch s.Base {
	case "alias", "detach", "lift", "lift_fresh", "contiguous", "to", "positive", "resolve_conj", "resolve_neg", "pin_memory", "cpu",
		"_autocast_to_full_precision", "_autocast_to_reduced_precision", "type_as",
		"dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout":
		return viewSame
	case "conj", "_conj":
		if in := n.In(0); in != nil && !in.Type.DType.IsComplex() {
			return viewSame
		}
		return viewOther
	case "view":
		if s.Overload == "dtype" {
			return viewDType
		}
		return viewShape
	case "_unsafe_view", "reshape", "_reshape_alias", "view_as", "reshape_as", "flatten", "ravel", "unflatten", "squeeze", "unsqueeze",
		"atleast_1d", "atleast_2d", "atleast_3d":
		return viewShape
	case "permute", "transpose", "t", "numpy_T", "mT", "movedim", "moveaxis", "swapaxes", "swapdims":
		return viewPermute
	case "mH", "matrix_H", "adjoint":
		if in := n.In(0); in != nil && !in.Type.DType.IsComplex() {
			return viewPermute
		}
		return viewOther
	case "slice", "narrow", "split", "split_with_sizes", "chunk", "tensor_split", "hsplit", "vsplit", "dsplit":
		if s.Overload == "Tensor" && s.Base == "narrow" {
			return viewOther
		}
		return viewSlice
	case "select", "unbind":
		return viewSelect
	case "diagonal", "linalg_diagonal":
		return viewDiagonal
	case "expand", "expand_as", "broadcast_to", "broadcast_tensors", "meshgrid":
		return viewExpand
	case "as_strided":
		return viewStrided
	case "view_as_real":
		return viewReal
	case "view_as_complex":
		return viewComplex
	case "real":
		if in := n.In(0); in != nil && !in.Type.DType.IsComplex() {
			return viewSame
		}
		return viewOther
	case "imag", "unfold":
		return viewOther
	}
	if n.Info().View {
		return viewOther
	}
	return notView
}

// viewed is the input that result i of a view shows.
func viewed(n *ir.Node, i int) *ir.Value {
	a := n.Arg(0)
	if a.Kind() == ir.ArgList {
		if i < len(a.List()) {
			return a.List()[i].Value()
		}
		return nil
	}
	return a.Value()
}

// mayAlias tells whether result i of n shares the storage of the input it shows, as PyTorch would have it: some operators
// copy where they must. sure is false where the strides do not tell.
func mayAlias(n *ir.Node, i int) (alias, sure bool) {
	in := viewed(n, i)
	if in == nil || !in.Type.IsTensor() {
		return false, true
	}
	t, out := in.Type, n.Outs[i].Type
	s := &n.Info().Schema
	switch s.Base {
	case "contiguous":
		f, _ := n.ArgNamed("memory_format").Str()
		return hasFormat(t, f), true
	case "to", "type_as", "_autocast_to_full_precision", "_autocast_to_reduced_precision":
		if cp, _ := n.ArgNamed("copy").Bool(); cp || t.DType != out.DType {
			return false, true
		}
		f, _ := n.ArgNamed("memory_format").Str()
		return f == "" || f == "preserve_format" || hasFormat(t, f), true
	case "dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout":
		train, _ := n.ArgNamed("train").Bool()
		p, ok := n.ArgNamed("p").Float()
		return !train || ok && p == 0, true
	case "_unsafe_view", "lift":
		return false, true
	case "reshape", "reshape_as", "flatten", "ravel":
		return viewable(n.Graph().Syms, t, out.Shape)
	}
	return true, true
}

// hasFormat tells whether a tensor lies in memory as the memory format says.
func hasFormat(t ir.Type, format string) bool {
	switch format {
	case "", "contiguous_format":
		return t.Contiguous()
	case "preserve_format":
		return true
	case "channels_last", "channels_last_3d":
		order := channelsLast(t.Rank())
		if order == nil || (format == "channels_last") != (t.Rank() == 4) {
			return false
		}
		want := ir.Type{DType: t.DType, Shape: t.Shape, Strides: stridesOf(t.Shape, order)}
		return sameStrides(t, want)
	}
	return false
}

// channelsLast is the order of dimensions of a channels-last tensor, nil for other ranks than 4 and 5.
func channelsLast(rank int) []int {
	switch rank {
	case 4:
		return []int{0, 2, 3, 1}
	case 5:
		return []int{0, 2, 3, 4, 1}
	}
	return nil
}

// stridesOf are the strides of a dense tensor with that order of dimensions.
func stridesOf(shape []sym.Expr, order []int) []sym.Expr {
	st := make([]sym.Expr, len(shape))
	k := sym.Const(1)
	for i := len(order) - 1; i >= 0; i-- {
		st[order[i]] = k
		k = sym.Mul(k, shape[order[i]])
	}
	return st
}

// sameStrides compares strides where the size is not one.
func sameStrides(a, b ir.Type) bool {
	x, y := strides(a), strides(b)
	for i, e := range a.Shape {
		if e.IsConstValue(1) {
			continue
		}
		if !x[i].Equal(y[i]) {
			return false
		}
	}
	return true
}

func strides(t ir.Type) []sym.Expr {
	if t.Strides != nil {
		return t.Strides
	}
	return ir.ContiguousStrides(t.Shape)
}

// viewable tells whether a tensor can be seen under another shape without a copy. Sizes that are not constant count as at
// export, which fixed the answer then; sure is false where a size was unknown even there.
func viewable(tab *sym.Table, t ir.Type, shape []sym.Expr) (ok, sure bool) {
	if t.Contiguous() {
		return true, true
	}
	known := true
	hint := func(es []sym.Expr) []int64 {
		ks := make([]int64, len(es))
		for i, e := range es {
			k, err := sym.Eval(e, tab)
			if err != nil {
				known = false
			}
			ks[i] = k
		}
		return ks
	}
	size, stride, want := hint(t.Shape), hint(strides(t)), hint(shape)
	if !known {
		return false, false
	}
	for _, k := range size {
		if k == 0 {
			return true, true
		}
	}
	v := len(want) - 1
	if len(size) == 0 {
		return true, true
	}
	base := stride[len(size)-1]
	have, need := int64(1), int64(1)
	for d := len(size) - 1; d >= 0; d-- {
		have *= size[d]
		if d > 0 && (size[d-1] == 1 || stride[d-1] == have*base) {
			continue
		}
		for v >= 0 && (need < have || want[v] == 1) {
			need *= want[v]
			v--
		}
		if need != have {
			return false, true
		}
		if d > 0 {
			base = stride[d-1]
			have, need = 1, 1
		}
	}
	return v < 0, true
}

// permOf is the order of dimensions of a permuting view: result dimension i is input dimension perm[i].
func permOf(n *ir.Node) ([]int, bool) {
	in := n.In(0)
	if in == nil {
		return nil, false
	}
	r := in.Type.Rank()
	perm := make([]int, r)
	for i := range perm {
		perm[i] = i
	}
	dim := func(i int) (int, bool) {
		k, ok := n.Arg(i).Int()
		return wrapDim(k, r), ok
	}
	s := &n.Info().Schema
	switch s.Base {
	case "permute":
		ks, ok := n.Arg(1).IntList()
		if !ok || len(ks) != r {
			return nil, false
		}
		for i, k := range ks {
			perm[i] = wrapDim(k, r)
		}
		return perm, isPerm(perm)
	case "transpose", "swapaxes", "swapdims":
		a, okA := dim(1)
		b, okB := dim(2)
		if !okA || !okB {
			return nil, false
		}
		if r == 0 {
			return perm, true
		}
		if a < 0 || b < 0 || a >= r || b >= r {
			return nil, false
		}
		perm[a], perm[b] = perm[b], perm[a]
		return perm, true
	case "t":
		if r == 2 {
			perm[0], perm[1] = 1, 0
		}
		return perm, r <= 2
	case "numpy_T":
		for i := range perm {
			perm[i] = r - 1 - i
		}
		return perm, true
	case "mT", "mH", "matrix_H", "adjoint":
		if r >= 2 {
			perm[r-1], perm[r-2] = r-2, r-1
		}
		return perm, true
	case "movedim", "moveaxis":
		var src, dst []int64
		if s.Overload == "int" {
			a, okA := n.Arg(1).Int()
			b, okB := n.Arg(2).Int()
			if !okA || !okB {
				return nil, false
			}
			src, dst = []int64{a}, []int64{b}
		} else {
			var okA, okB bool
			src, okA = n.Arg(1).IntList()
			dst, okB = n.Arg(2).IntList()
			if !okA || !okB || len(src) != len(dst) {
				return nil, false
			}
		}
		for i := range perm {
			perm[i] = -1
		}
		moved := make([]bool, r)
		for i := range src {
			a, b := wrapDim(src[i], r), wrapDim(dst[i], r)
			if a < 0 || b < 0 || a >= r || b >= r {
				return nil, false
			}
			perm[b], moved[a] = a, true
		}
		next := 0
		for i := range perm {
			if perm[i] >= 0 {
				continue
			}
			for next < r && moved[next] {
				next++
			}
			if next == r {
				return nil, false
			}
			perm[i] = next
			next++
		}
		return perm, isPerm(perm)
	}
	return nil, false
}

func isPerm(p []int) bool {
	seen := make([]bool, len(p))
	for _, k := range p {
		if k < 0 || k >= len(p) || seen[k] {
			return false
		}
		seen[k] = true
	}
	return true
}

func invertPerm(p []int) []int {
	q := make([]int, len(p))
	for i, k := range p {
		q[k] = i
	}
	return q
}

func isIdentity(p []int) bool {
	for i, k := range p {
		if i != k {
			return false
		}
	}
	return true
}

// wrapDim counts negative dimensions from the end.
func wrapDim(k int64, rank int) int {
	if k < 0 {
		k += int64(max(rank, 1))
	}
	return int(k)
}

func intArgs(ks []int) ir.Arg {
	l := make([]ir.Arg, len(ks))
	for i, k := range ks {
		l[i] = ir.Int(int64(k))
	}
	return ir.List(l...)
}

// shapeArg is a tensor's shape as an argument.
func shapeArg(v *ir.Value) ir.Arg { return ir.SymInts(v.Type.Shape...) }

// sliceOf is result i of a slicing view as a range of one dimension of its input.
func sliceOf(n *ir.Node, i int) (dim int, start, end, step sym.Expr, ok bool) {
	in := n.In(0)
	if in == nil || i >= len(n.Outs) {
		return
	}
	r := in.Type.Rank()
	step = sym.Const(1)
	s := &n.Info().Schema
	switch s.Base {
	case "slice":
		k, okD := n.Arg(1).Int()
		dim = wrapDim(k, r)
		st, okS := n.Arg(4).Expr()
		if !okD || !okS || dim < 0 || dim >= r {
			return dim, start, end, step, false
		}
		size := in.Type.Shape[dim]
		start, okA := sliceBound(n.Graph().Syms, n.Arg(2), size, sym.Const(0))
		end, okB := sliceBound(n.Graph().Syms, n.Arg(3), size, size)
		return dim, start, end, st, okA && okB
	case "narrow":
		k, okD := n.Arg(1).Int()
		dim = wrapDim(k, r)
		st, okS := n.Arg(2).Expr()
		ln, okL := n.Arg(3).Expr()
		if !okD || !okS || !okL || dim < 0 || dim >= r {
			return dim, start, end, step, false
		}
		if c, isC := st.IsConst(); isC && c < 0 {
			st = sym.Add(st, in.Type.Shape[dim])
		}
		return dim, st, sym.Add(st, ln), step, true
	case "hsplit":
		dim = 1
		if r == 1 {
			dim = 0
		}
	case "vsplit":
		dim = 0
	case "dsplit":
		dim = 2
	default:
		k, okD := n.ArgNamed("dim").Int()
		if !okD {
			return dim, start, end, step, false
		}
		dim = wrapDim(k, r)
	}
	if dim < 0 || dim >= r {
		return dim, start, end, step, false
	}
	for j := range i {
		start = sym.Add(start, n.Outs[j].Type.Shape[dim])
	}
	return dim, start, sym.Add(start, n.Outs[i].Type.Shape[dim]), step, true
}

// sliceBound is a bound of a slice as torch clamps it; ok is false where its sign is not known.
func sliceBound(tab *sym.Table, a ir.Arg, size, none sym.Expr) (sym.Expr, bool) {
	if a.IsNone() {
		return none, true
	}
	e, ok := a.Expr()
	if !ok {
		return e, false
	}
	if neg, known := tab.ProveLt(e, sym.Const(0)); known && neg {
		e = sym.Max(sym.Add(e, size), sym.Const(0))
	} else if !known {
		return e, false
	}
	return tab.Simplify(sym.Min(e, size)), true
}

// selectOf is result i of select or unbind: the dimension that goes away and the index.
func selectOf(n *ir.Node, i int) (dim int, index sym.Expr, ok bool) {
	in := n.In(0)
	if in == nil {
		return
	}
	k, okD := n.ArgNamed("dim").Int()
	dim = wrapDim(k, in.Type.Rank())
	if !okD || dim < 0 || dim >= in.Type.Rank() {
		return dim, index, false
	}
	if n.Info().Schema.Base == "unbind" {
		return dim, sym.Const(int64(i)), true
	}
	index, ok = n.ArgNamed("index").Expr()
	if c, isC := index.IsConst(); isC && c < 0 {
		index = sym.Add(index, in.Type.Shape[dim])
	}
	return dim, index, ok
}

// applyView builds result i of the view n again, of another value in place of the one that it shows.
func applyView(b *ir.Builder, n *ir.Node, i int, x *ir.Value) *ir.Value {
	switch viewKindOf(n) {
	case viewSame:
		return x
	case viewShape:
		return op.AtenViewDefault(b, x, shapeArg(n.Outs[i]))
	case viewSlice:
		if dim, start, end, step, ok := sliceOf(n, i); ok {
			return op.AtenSliceTensor(b, x, op.KW("dim", ir.Int(int64(dim))), op.KW("start", ir.SymInt(start)), op.KW("end", ir.SymInt(end)), op.KW("step", ir.SymInt(step)))
		}
	case viewSelect:
		if dim, index, ok := selectOf(n, i); ok {
			return op.AtenSelectInt(b, x, ir.Int(int64(dim)), ir.SymInt(index))
		}
	case viewExpand:
		return op.AtenExpandDefault(b, x, shapeArg(n.Outs[i]))
	case viewStrided:
		d := &Decomp{Builder: b, N: n}
		if vs := d.protect(func() []*ir.Value { return d.strided(x) }); vs != nil {
			return vs[0]
		}
	}
	if len(n.Outs) != 1 || n.Arg(0).Kind() == ir.ArgList {
		b.Fail(fmt.Errorf("%s cannot be built again", n.OpName()))
		return nil
	}
	args := append([]ir.Arg(nil), n.Args()...)
	args[0] = ir.Ref(x)
	m := op.New(b, n.Op, args)
	if m == nil {
		return nil
	}
	return m.Out()
}

// writeView gives the value of what result i of the view n shows after w was written to that result; before is its value
// until then. Empty why means that it worked.
func writeView(b *ir.Builder, n *ir.Node, i int, before, w *ir.Value) (after *ir.Value, why string) {
	switch viewKindOf(n) {
	case viewSame:
		return w, ""
	case viewShape:
		return op.AtenViewDefault(b, w, shapeArg(before)), ""
	case viewPermute:
		perm, ok := permOf(n)
		if !ok {
			return nil, "its dimensions are not constant"
		}
		return op.AtenPermuteDefault(b, w, intArgs(invertPerm(perm))), ""
	case viewSlice:
		dim, start, end, step, ok := sliceOf(n, i)
		if !ok {
			return nil, "the sign of a bound is not known"
		}
		if start.IsConstValue(0) && step.IsConstValue(1) && end.Equal(before.Type.Shape[dim]) {
			return w, ""
		}
		return op.AtenSliceScatterDefault(b, before, w, op.KW("dim", ir.Int(int64(dim))), op.KW("start", ir.SymInt(start)), op.KW("end", ir.SymInt(end)), op.KW("step", ir.SymInt(step))), ""
	case viewSelect:
		dim, index, ok := selectOf(n, i)
		if !ok {
			return nil, "its dimension or index is not known"
		}
		return op.AtenSelectScatterDefault(b, before, w, ir.Int(int64(dim)), ir.SymInt(index)), ""
	case viewDiagonal:
		return op.AtenDiagonalScatterDefault(b, before, w, op.KW("offset", n.ArgNamed("offset")), op.KW("dim1", n.ArgNamed("dim1")), op.KW("dim2", n.ArgNamed("dim2"))), ""
	case viewExpand:
		if ir.EqualShape(before.Type.Shape, w.Type.Shape) {
			return w, ""
		}
		if before.Type.Numel().Equal(w.Type.Numel()) {
			return op.AtenViewDefault(b, w, shapeArg(before)), ""
		}
		return nil, "several of its elements are one in memory"
	case viewStrided:
		d := &Decomp{Builder: b, N: n}
		if vs := d.protect(func() []*ir.Value { return d.stridedWrite(before, w) }); vs != nil {
			return vs[0], ""
		}
		return nil, "its sizes or strides are not known"
	case viewDType:
		return op.AtenViewDtype(b, w, ir.DTypeArg(before.Type.DType)), ""
	case viewReal:
		return op.AtenViewAsComplexDefault(b, w), ""
	case viewComplex:
		return op.AtenViewAsRealDefault(b, w), ""
	}
	return nil, "nothing can be written through " + n.OpName()
}
