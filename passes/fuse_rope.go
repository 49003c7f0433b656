package passes

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// FuseRope finds rotary position embeddings that are written out.
var FuseRope = Pass{
	Name: "fuse-rope",
	Doc: "Replaces x*cos(p*f) + rotate_half(x)*sin(p*f) and its relatives by one rope: halves or neighbours as pairs, all features or " +
		"the first ones, angles scaled, positions counted or given.",
	Run: func(ctx *Context, g *ir.Graph) error {
		if g.Stage == ops.StageAten {
			return nil
		}
		return each(g, func(n *ir.Node) error {
			switch n.Op {
			case ops.AtenSliceScatterDefault, ops.AtenSelectScatterDefault:
				writesBack(ctx, n)
			case ops.AtenAddTensor:
				return fuseRope(ctx, n, rotatedSum(n))
			case ops.AtenCatDefault:
				if r := rotatedHalves(n); r != nil {
					return fuseRope(ctx, n, r)
				}
				return widenRope(ctx, n)
			}
			return nil
		})
	},
}

// rotation is x rotated by tables of cosines and sines.
type rotation struct {
	x, cos, sin *ir.Value
	traditional bool
}

// rotatedSum recognises x*cos + r(x)*sin, where r makes (a, b) of a pair into (-b, a).
func rotatedSum(n *ir.Node) *rotation {
	if f, ok := n.ArgNamed("alpha").Float(); ok && f != 1 {
		return nil
	}
	for i := range 2 {
		straight, turned := productOf(n.In(i)), productOf(n.In(1-i))
		if straight == nil || turned == nil {
			continue
		}
		for j := range 2 {
			x, traditional := turnedFrom(turned.In(j))
			if x == nil {
				continue
			}
			for k := range 2 {
				if straight.In(k) == x {
					return &rotation{x, straight.In(1 - k), turned.In(1 - j), traditional}
				}
			}
		}
	}
	return nil
}

func productOf(v *ir.Value) *ir.Node {
	if v == nil || v.Def == nil || v.Def.Op != ops.AtenMulTensor || v.Def.In(0) == nil || v.Def.In(1) == nil {
		return nil
	}
	return v.Def
}

// turnedFrom is the x whose pairs (a, b) stand as (-b, a) in v.
func turnedFrom(v *ir.Value) (x *ir.Value, traditional bool) {
	if v == nil || v.Def == nil {
		return nil, false
	}
	if n := v.Def; n.Op == ops.AtenCatDefault {
		b, a, ok := twoOf(n, v.Type.Rank(), v.Type.Rank()-1)
		if ok && isNeg(b) {
			return halvesOf(a, b.Def.In(0), false), false
		}
		return nil, false
	}
	// Neighbours: stack((-b, a), -1), and the last two dimensions joined.
	n := v.Def
	if viewKindOf(n) != viewShape || n.In(0) == nil || n.In(0).Def == nil || n.In(0).Def.Op != ops.AtenStackDefault {
		return nil, false
	}
	s := n.In(0)
	b, a, ok := twoOf(s.Def, s.Type.Rank(), s.Type.Rank()-1)
	if !ok || !isNeg(b) || v.Type.Rank() != s.Type.Rank()-1 || !ir.EqualShape(v.Type.Shape[:v.Type.Rank()-1], s.Type.Shape[:v.Type.Rank()-1]) {
		return nil, false
	}
	return halvesOf(a, b.Def.In(0), true), true
}

// twoOf are the two parts of a join of two along dim.
func twoOf(n *ir.Node, rank, dim int) (first, second *ir.Value, ok bool) {
	l := n.Arg(0).List()
	d, isConst := n.ArgNamed("dim").Int()
	if len(l) != 2 || !isConst || wrapDim(d, rank) != dim {
		return nil, nil, false
	}
	return l[0].Value(), l[1].Value(), l[0].Value() != nil && l[1].Value() != nil
}

func isNeg(v *ir.Value) bool { return v.Def != nil && v.Def.Op == ops.AtenNegDefault }

// halvesOf is the tensor of whose last dimension a is the first half and b the second, or a the even places and b the odd.
func halvesOf(a, b *ir.Value, interleaved bool) *ir.Value {
	var src [2]*ir.Value
	var from, to, step [2]sym.Expr
	for i, v := range []*ir.Value{a, b} {
		n := v.Def
		if n == nil || viewKindOf(n) != viewSlice || n.In(0) == nil {
			return nil
		}
		dim, s, e, st, ok := sliceOf(n, v.Index)
		if !ok || dim != v.Type.Rank()-1 {
			return nil
		}
		src[i], from[i], to[i], step[i] = n.In(0), s, e, st
	}
	x := src[0]
	size, ok := ir.Dim(x, -1).IsConst()
	if !ok || src[1] != x || size%2 != 0 {
		return nil
	}
	if interleaved {
		if from[0].IsConstValue(0) && from[1].IsConstValue(1) && step[0].IsConstValue(2) && step[1].IsConstValue(2) && to[0].IsConstValue(size) && to[1].IsConstValue(size) {
			return x
		}
		return nil
	}
	if from[0].IsConstValue(0) && to[0].IsConstValue(size/2) && from[1].IsConstValue(size/2) && to[1].IsConstValue(size) && step[0].IsConstValue(1) && step[1].IsConstValue(1) {
		return x
	}
	return nil
}

// rotatedHalves recognises cat(a*cos - b*sin, b*cos + a*sin) for halves a and b of x.
func rotatedHalves(n *ir.Node) *rotation {
	rank := n.Out().Type.Rank()
	first, second, ok := twoOf(n, rank, rank-1)
	if !ok || first.Def == nil || second.Def == nil || first.Def.Op != ops.AtenSubTensor || second.Def.Op != ops.AtenAddTensor {
		return nil
	}
	for _, m := range []*ir.Node{first.Def, second.Def} {
		if f, ok := m.ArgNamed("alpha").Float(); ok && f != 1 {
			return nil
		}
	}
	ac, bs := productOf(first.Def.In(0)), productOf(first.Def.In(1))
	p, q := productOf(second.Def.In(0)), productOf(second.Def.In(1))
	if ac == nil || bs == nil || p == nil || q == nil {
		return nil
	}
	has := func(m *ir.Node, u, v *ir.Value) bool {
		return m.In(0) == u && m.In(1) == v || m.In(0) == v && m.In(1) == u
	}
	for i := range 2 {
		for j := range 2 {
			a, c, b, s := ac.In(i), ac.In(1-i), bs.In(j), bs.In(1-j)
			if x := halvesOf(a, b, false); x != nil && (has(p, b, c) && has(q, a, s) || has(p, a, s) && has(q, b, c)) {
				return &rotation{x: x, cos: c, sin: s}
			}
		}
	}
	return nil
}

// table is a table of cosines or sines of positions times frequencies, with its dimensions as they stood.
type table struct {
	trig          ops.ID
	pos, inv      *ir.Value
	scale         float64
	doubled, each bool // a frequency stands in both halves, or twice in a row
}

// tableOf looks through views, copies and factors to what the angles are made of.
func tableOf(v *ir.Value) *table {
	t := &table{scale: 1}
	for depth := 0; depth < 40 && v != nil && v.Def != nil; depth++ {
		n := v.Def
		if in := sameRows(v); in != nil {
			v = in
			continue
		}
		switch n.Op {
		case ops.AtenCosDefault, ops.AtenSinDefault:
			if t.trig != 0 || n.In(0).Type.DType != ops.Float32 {
				return nil
			}
			t.trig = n.Op
			v = n.In(0)
			continue
		case ops.AtenToDtype, ops.AtenToDevice, ops.AtenUnderToCopyDefault:
			// The table is rounded after the cosine, its angles are not.
			if t.trig != 0 && (n.In(0).Type.DType != ops.Float32 || v.Type.DType != ops.Float32) {
				return nil
			}
			v = n.In(0)
			continue
		case ops.AtenMulTensor, ops.AtenMulScalar:
			if f, ok := n.Arg(1).Float(); ok && n.Arg(1).Value() == nil && t.trig == 0 {
				t.scale *= f
				v = n.In(0)
				continue
			}
			if t.trig != 0 && (lastIsOne(n.In(0)) && t.product(n.In(0), n.In(1)) || lastIsOne(n.In(1)) && t.product(n.In(1), n.In(0))) {
				return t
			}
			return nil
		case ops.AtenMatmulDefault, ops.AtenBmmDefault:
			if t.trig != 0 && lastIsOne(n.In(0)) && t.product(n.In(0), n.In(1)) {
				return t
			}
			return nil
		}
		switch {
		case n.Op == ops.AtenCatDefault && !t.doubled && !t.each:
			rank := v.Type.Rank()
			a, b, ok := twoOf(n, rank, rank-1)
			if !ok || a != b {
				return nil
			}
			t.doubled, v = true, a
		case n.Op == ops.AtenRepeatInterleaveSelfInt && !t.doubled && !t.each:
			k, okK := n.Arg(1).Int()
			d, okD := n.ArgNamed("dim").Int()
			if !okK || !okD || k != 2 || wrapDim(d, v.Type.Rank()) != v.Type.Rank()-1 {
				return nil
			}
			t.each, v = true, n.In(0)
		case t.trig != 0 && viewKindOf(n) == viewPermute && n.In(0) != nil && n.In(0).Def != nil:
			// The product of a column of frequencies and a row of positions, turned around.
			p, ok := permOf(n)
			m := n.In(0).Def
			if r := len(p); !ok || r < 2 || p[r-1] != r-2 || p[r-2] != r-1 || !isIdentity(p[:r-2]) || m.Op != ops.AtenMatmulDefault && m.Op != ops.AtenBmmDefault {
				return nil
			}
			if m.In(0).Type.Rank() > 1 && lastIsOne(m.In(0)) && t.product(m.In(1), m.In(0)) {
				return t
			}
			return nil
		default:
			return nil
		}
	}
	return nil
}

// product takes the factors of the angles: positions, which are the same for all features, and frequencies.
func (t *table) product(pos, inv *ir.Value) bool {
	if pos == nil || inv == nil {
		return false
	}
	pos, inv = stripRows(pos, true), stripRows(inv, false)
	dims := withoutOnes(inv.Type.Shape)
	if len(dims) != 1 || inv.Type.DType != ops.Float32 || len(withoutOnes(pos.Type.Shape)) > 2 {
		return false
	}
	_, ok := dims[0].IsConst()
	t.pos, t.inv = pos, inv
	return ok
}

func lastIsOne(v *ir.Value) bool {
	return v != nil && v.Type.Rank() > 0 && ir.Dim(v, -1).IsConstValue(1)
}

func withoutOnes(shape []sym.Expr) []sym.Expr {
	var out []sym.Expr
	for _, e := range shape {
		if !e.IsConstValue(1) {
			out = append(out, e)
		}
	}
	return out
}

// sameRows is the value that v shows with ones among its dimensions moved, its rows repeated along whole dimensions, or one
// of its equal rows; nil where v is no such view.
func sameRows(v *ir.Value) *ir.Value {
	n := v.Def
	if n == nil || n.Op == ops.Unknown || len(n.Outs) != 1 || n.In(0) == nil || n.Arg(0).Kind() == ir.ArgList {
		return nil
	}
	in := n.In(0)
	switch viewKindOf(n) {
	case viewSame:
		if in.Type.DType == v.Type.DType {
			return in
		}
	case viewShape:
		if ir.EqualShape(withoutOnes(in.Type.Shape), withoutOnes(v.Type.Shape)) {
			return in
		}
	case viewExpand:
		if repeatsWhole(in.Type.Shape, v.Type.Shape) {
			return in
		}
	case viewSlice:
		if d, _, _, _, ok := sliceOf(n, 0); ok && uniform(in, d, 12) {
			return in
		}
	case viewSelect:
		if d, ok := n.Arg(1).Int(); ok && n.Op == ops.AtenSelectInt && uniform(in, wrapDim(d, in.Type.Rank()), 12) {
			return in
		}
	}
	if n.Op == ops.AtenCloneDefault {
		return in
	}
	return nil
}

// repeatsWhole tells whether an expansion repeats all that there is: no dimension behind one that tells elements apart.
func repeatsWhole(from, to []sym.Expr) bool {
	tells := false
	for i, e := range from {
		if tells && !e.Equal(to[len(to)-len(from)+i]) {
			return false
		}
		tells = tells || !e.IsConstValue(1)
	}
	return true
}

// stripRows looks through such views, and conversions of integers to single precision where they are wanted.
func stripRows(v *ir.Value, ints bool) *ir.Value {
	for v.Def != nil {
		in := sameRows(v)
		if in == nil && (isConversion(v.Def) || v.Def.Op == ops.AtenToDevice) {
			if x := v.Def.In(0); x.Type.DType == v.Type.DType || ints && v.Type.DType == ops.Float32 && x.Type.DType.IsInt() {
				in = x
			}
		}
		if in == nil {
			break
		}
		v = in
	}
	return v
}

// uniform tells whether all of v along dim is the same.
func uniform(v *ir.Value, dim, depth int) bool {
	if depth == 0 || dim < 0 || dim >= v.Type.Rank() {
		return false
	}
	if v.Type.Shape[dim].IsConstValue(1) {
		return true
	}
	n := v.Def
	if n == nil || n.Op == ops.Unknown || len(n.Outs) != 1 {
		return false
	}
	switch n.Op {
	case ops.AtenCosDefault, ops.AtenSinDefault, ops.AtenToDtype, ops.AtenToDevice, ops.AtenUnderToCopyDefault, ops.AtenMulTensor, ops.AtenMulScalar,
		ops.AtenCloneDefault:
		for in := range n.Inputs() {
			d := dim - v.Type.Rank() + in.Type.Rank()
			if d >= 0 && !uniform(in, d, depth-1) {
				return false
			}
		}
		return true
	case ops.AtenExpandDefault:
		d := dim - v.Type.Rank() + n.In(0).Type.Rank()
		return d < 0 || uniform(n.In(0), d, depth-1)
	case ops.AtenUnsqueezeDefault:
		at, ok := n.Arg(1).Int()
		if !ok {
			return false
		}
		if k := wrapDim(at, v.Type.Rank()); dim > k {
			dim--
		}
		return uniform(n.In(0), dim, depth-1)
	case ops.AtenSliceTensor:
		return uniform(n.In(0), dim, depth-1)
	case ops.AtenPermuteDefault, ops.AtenTransposeInt:
		p, ok := permOf(n)
		return ok && uniform(n.In(0), p[dim], depth-1)
	case ops.AtenMatmulDefault:
		a, b := n.In(0), n.In(1)
		if dim >= v.Type.Rank()-2 || a.Type.Rank() != v.Type.Rank() || b.Type.Rank() != v.Type.Rank() {
			return false
		}
		return uniform(a, dim, depth-1) && uniform(b, dim, depth-1)
	}
	return false
}

// writesBack drops the writing of a part of a tensor into the place that it was read from, or in which the same stands: how
// the rows of several position lists are put together where there is one list alone.
func writesBack(ctx *Context, n *ir.Node) {
	x, src := n.In(0), n.In(1)
	if src == nil || src.Def == nil {
		return
	}
	if n.Op == ops.AtenSelectScatterDefault {
		if d, ok := n.Arg(2).Int(); ok && src.Def.Op == ops.AtenSelectInt && src.Def.In(0) == x {
			rank := x.Type.Rank()
			from, okF := src.Def.Arg(1).Int()
			if okF && wrapDim(from, rank) == wrapDim(d, rank) && uniform(x, wrapDim(d, rank), 12) {
				dropNode(ctx, n, x, "same-rows")
			}
		}
		return
	}
	if src.Def.Op != ops.AtenSliceTensor || !equalRows(x, src.Def.In(0)) {
		return
	}
	dim, start, end, step, ok := sliceOf(src.Def, 0)
	if !ok {
		return
	}
	d, okD := n.Arg(2).Int()
	size := x.Type.Shape[dim]
	first, okS := sliceBound(n.Graph().Syms, n.Arg(3), size, sym.Const(0))
	last, okE := sliceBound(n.Graph().Syms, n.Arg(4), size, size)
	by, okB := n.Arg(5).Expr()
	if okD && okS && okE && okB && wrapDim(d, x.Type.Rank()) == dim && first.Equal(start) && last.Equal(end) && by.Equal(step) {
		dropNode(ctx, n, x, "same-rows")
	}
}

// equalRows tells whether two values are one, or rows of one tensor whose rows are all the same.
func equalRows(a, b *ir.Value) bool {
	if a == b {
		return true
	}
	if a.Def == nil || b.Def == nil || a.Def.Op != ops.AtenSelectInt || b.Def.Op != ops.AtenSelectInt || a.Def.In(0) != b.Def.In(0) {
		return false
	}
	p, okP := a.Def.Arg(1).Int()
	q, okQ := b.Def.Arg(1).Int()
	rank := a.Def.In(0).Type.Rank()
	return okP && okQ && wrapDim(p, rank) == wrapDim(q, rank) && uniform(a.Def.In(0), wrapDim(p, rank), 12)
}

// timeOf is the dimension of x over which the table's positions run: 2 where heads stand before them, 1 where after; -1 where
// the table's dimensions are others.
func timeOf(x, tab *ir.Value) int {
	shape := tab.Type.Shape
	if x.Type.Rank() != 4 || len(shape) > 4 {
		return -1
	}
	one := sym.Const(1)
	full := make([]sym.Expr, 4)
	for i := range full {
		full[i] = one
		if k := i - (4 - len(shape)); k >= 0 {
			full[i] = shape[k]
		}
	}
	xs := x.Type.Shape
	if !full[0].IsConstValue(1) && !full[0].Equal(xs[0]) {
		return -1
	}
	for _, d := range []int{2, 1} {
		if full[3-d].IsConstValue(1) && full[d].Equal(xs[d]) {
			return d
		}
	}
	return -1
}

// countedFrom is the start of positions that are counted up from it, one a step, over all of v.
func countedFrom(v *ir.Value) (start sym.Expr, ok bool) {
	zero := sym.Const(0)
	v = stripRows(v, true)
	if v.Def == nil {
		return zero, false
	}
	n := v.Def
	switch n.Op {
	case ops.AtenArangeDefault:
		return zero, true
	case ops.AtenArangeStart:
		return n.Arg(0).Expr()
	case ops.AtenArangeStartStep:
		if k, isInt := n.ArgNamed("step").Int(); isInt && k == 1 {
			return n.Arg(0).Expr()
		}
	case ops.AtenAddTensor, ops.AtenAddScalar:
		if f, isNumber := n.ArgNamed("alpha").Float(); isNumber && f != 1 || !v.Type.DType.IsInt() {
			return zero, false
		}
		for i := range 2 {
			e, isExpr := n.Arg(1 - i).Expr()
			if isExpr && n.In(i) != nil && n.In(i).Type.IsTensor() {
				from, counted := countedFrom(n.In(i))
				return sym.Add(from, e), counted
			}
		}
	}
	return zero, false
}

func fuseRope(ctx *Context, n *ir.Node, r *rotation) error {
	if r == nil || r.x.Type.Rank() != 4 || !r.x.Type.DType.IsFloat() || r.x.Type.DType == ops.Float64 {
		return nil
	}
	x, d := r.x, r.x.Type.DType
	if n.Out().Type.DType != d || r.cos.Type.DType != d || r.sin.Type.DType != d || !ir.EqualShape(x.Type.Shape, n.Out().Type.Shape) {
		return nil
	}
	cos, sin := tableOf(r.cos), tableOf(r.sin)
	if cos == nil || sin == nil || cos.trig != ops.AtenCosDefault || sin.trig != ops.AtenSinDefault || cos.pos != sin.pos || cos.inv != sin.inv ||
		cos.scale != sin.scale || cos.doubled != sin.doubled || cos.each != sin.each {
		return nil
	}
	time := timeOf(x, r.cos)
	if time < 0 || timeOf(x, r.sin) != time {
		return nil
	}
	half, _ := withoutOnes(cos.inv.Type.Shape)[0].IsConst()
	width, _ := ir.Dim(r.cos, -1).IsConst()
	features, _ := ir.Dim(x, -1).IsConst()
	halves := n.Op == ops.AtenCatDefault
	switch {
	case features != 2*half || !ir.Dim(r.sin, -1).IsConstValue(width):
		return nil
	case halves && (width != half || cos.doubled || cos.each):
		return nil
	case !halves && (width != features || r.traditional != cos.each || r.traditional == cos.doubled):
		return nil
	}
	batch, heads, steps := x.Type.Shape[0], x.Type.Shape[3-time], x.Type.Shape[time]
	count := cos.pos.Type.Numel()
	rows := count.Equal(sym.Mul(batch, steps))
	if !rows && !count.Equal(steps) {
		return nil
	}
	start, counted := countedFrom(cos.pos)
	counted = counted && count.Equal(steps)
	if !counted && !cos.pos.Type.DType.IsInt() {
		return nil
	}
	b, ok := ctx.Rewrite(n, "rope")
	if !ok {
		return nil
	}
	one := sym.Const(1)
	inv := cos.inv
	if inv.Type.Rank() != 1 {
		inv = op.AtenViewDefault(b, inv, ir.Ints(half))
	}
	pairs := op.KW("traditional", ir.Bool(r.traditional))
	swap := ir.Ints(0, 2, 1, 3)
	var y *ir.Value
	switch {
	case counted:
		if time == 1 {
			x = op.AtenPermuteDefault(b, x, swap)
		}
		y = op.LatheRopeDefault(b, x, inv, op.KW("start", ir.SymInt(start)), pairs)
		if time == 1 {
			y = op.AtenPermuteDefault(b, y, swap)
		}
	case steps.IsConstValue(1) && time == 2:
		starts := op.AtenViewDefault(b, cos.pos, ir.SymInts(count))
		y = op.LatheRopeDefault(b, x, inv, op.KW("starts", ir.Ref(starts)), pairs)
	default:
		// Each step becomes a sequence of its own.
		all := sym.Mul(batch, steps)
		starts := cos.pos
		if !rows {
			starts = op.AtenViewDefault(b, starts, ir.SymInts(one, steps))
			starts = op.AtenExpandDefault(b, starts, ir.SymInts(batch, steps))
		}
		starts = op.AtenViewDefault(b, starts, ir.SymInts(all))
		if time == 2 {
			x = op.AtenPermuteDefault(b, x, swap)
		}
		x = op.AtenViewDefault(b, x, ir.SymInts(all, heads, one, sym.Const(features)))
		y = op.LatheRopeDefault(b, x, inv, op.KW("starts", ir.Ref(starts)), pairs)
		y = op.AtenViewDefault(b, y, ir.SymInts(batch, steps, heads, sym.Const(features)))
		if time == 2 {
			y = op.AtenPermuteDefault(b, y, swap)
		}
	}
	if cos.scale != 1 {
		y = op.AtenMulScalar(b, y, ir.Float(cos.scale))
	}
	return ctx.replace(b, n, y)
}

// widenRope lets a rope of the first features leave the others as they are: cat(rope(x[..., :k]), x[..., k:]).
func widenRope(ctx *Context, n *ir.Node) error {
	rank := n.Out().Type.Rank()
	y, rest, ok := twoOf(n, rank, rank-1)
	if !ok || rest.Def == nil || viewKindOf(rest.Def) != viewSlice || rest.Def.In(0) == nil {
		return nil
	}
	// Down from the rope's result to the slice, and the views on the way again for the whole.
	var views []*ir.Node
	for y.Def != nil && (viewKindOf(y.Def) == viewShape || y.Def.Op == ops.AtenPermuteDefault) {
		if y.NumUses() != 1 {
			return nil
		}
		views = append(views, y.Def)
		y = y.Def.In(0)
	}
	r := y.Def
	if r == nil || r.Op != ops.LatheRopeDefault || y.NumUses() != 1 {
		return nil
	}
	var before []*ir.Node
	part := r.In(0)
	for part.Def != nil && (viewKindOf(part.Def) == viewShape || part.Def.Op == ops.AtenPermuteDefault) {
		before = append(before, part.Def)
		part = part.Def.In(0)
	}
	if part.Def == nil || viewKindOf(part.Def) != viewSlice {
		return nil
	}
	x := part.Def.In(0)
	dim, s, e, st, ok := sliceOf(part.Def, part.Index)
	dim2, s2, e2, st2, ok2 := sliceOf(rest.Def, rest.Index)
	last := x.Type.Rank() - 1
	if !ok || !ok2 || rest.Def.In(0) != x || dim != last || dim2 != last || !st.IsConstValue(1) || !st2.IsConstValue(1) ||
		!s.IsConstValue(0) || !e.Equal(s2) || !e2.Equal(x.Type.Shape[last]) {
		return nil
	}
	b, ok := ctx.Rewrite(n, "first-features")
	if !ok {
		return nil
	}
	whole := x
	again := func(v *ir.Node) {
		if p, ok := permOf(v); ok && v.Op == ops.AtenPermuteDefault {
			whole = op.AtenPermuteDefault(b, whole, intArgs(p))
			return
		}
		shape := append([]sym.Expr(nil), v.Out().Type.Shape...)
		shape[len(shape)-1] = x.Type.Shape[last]
		whole = op.AtenViewDefault(b, whole, ir.SymInts(shape...))
	}
	for i := len(before) - 1; i >= 0; i-- {
		again(before[i])
	}
	args := append([]ir.Arg(nil), r.Args()...)
	args[0] = ir.Ref(whole)
	m := op.New(b, r.Op, args)
	if m == nil {
		return b.Err
	}
	whole = m.Out()
	for i := len(views) - 1; i >= 0; i-- {
		again(views[i])
	}
	return ctx.replace(b, n, whole)
}
