package xnnpack

import (
	"math"
	"slices"

	"github.com/lathe-ml/lathe/codegen/fb/xnnpack"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

var viewRules = map[ops.ID]rule{
	ops.AtenViewDefault:            reshape,
	ops.AtenReshapeDefault:         reshape,
	ops.AtenUnderUnsafeViewDefault: reshape,
	ops.AtenFlattenUsingInts:       reshape,
	ops.AtenUnflattenInt:           reshape,
	ops.AtenUnsqueezeDefault:       reshape,
	ops.AtenSqueezeDefault:         reshape,
	ops.AtenSqueezeDim:             reshape,
	ops.AtenSqueezeDims:            reshape,
	ops.AtenPermuteDefault:         permute,
	ops.AtenTransposeInt:           permute,
	ops.AtenTDefault:               permute,
	ops.AtenExpandDefault:          expand,
	ops.AtenSliceTensor:            slice,
	ops.AtenSelectInt:              selectOne,
	ops.AtenCatDefault:             cat,
	ops.AtenStackDefault:           stack,
	ops.AtenSplitTensor:            split,
	ops.AtenSplitWithSizesDefault:  split,
	ops.AtenChunkDefault:           split,
	ops.AtenUnbindInt:              unbind,
	ops.AtenConstantPadNdDefault:   pad,
}

// moves are the operators that compute nothing.
var moves = func() map[ops.ID]bool {
	m := map[ops.ID]bool{ops.AtenCloneDefault: true, ops.AtenContiguousDefault: true}
	for id := range viewRules {
		m[id] = true
	}
	return m
}()

// rearranges are the moves that are worth a delegate's call where a program has nothing else.
var rearranges = map[ops.ID]bool{
	ops.AtenCatDefault: true, ops.AtenStackDefault: true, ops.AtenPermuteDefault: true, ops.AtenTransposeInt: true, ops.AtenTDefault: true,
	ops.AtenSliceTensor: true, ops.AtenConstantPadNdDefault: true, ops.AtenViewDefault: true, ops.AtenReshapeDefault: true,
}

// reshape gives the same elements another shape. The delegate infers one size; others have to be constant.
func reshape(m *match) emit {
	if !m.floats() {
		return nil
	}
	if symbolic(m.out().Shape) > 1 && !ir.EqualShape(m.out().Shape, m.in(0).Type.Shape) {
		return m.no("a shape with several sizes that vary")
	}
	return func(b *builder) {
		x, out := b.n.In(0), b.n.Out()
		b.later[out] = func() {
			if ir.EqualShape(x.Type.Shape, out.Type.Shape) {
				b.alias(out, x)
				return
			}
			in := b.in(x)
			b.reshapeTo(in, b.outOf(out))
		}
	}
}

// reshaped is x under another shape with at most one size that is not constant.
func (b *builder) reshaped(x uint32, shape ...sym.Expr) uint32 {
	return b.reshapeTo(x, b.resized(x, shape))
}

func (b *builder) reshapeTo(x, out uint32) uint32 {
	shape := b.values[out].shape
	n := &xnnpack.XNNStaticReshape{NumDims: uint32(len(shape)), NewShape: make([]uint32, len(shape)), InputID: x, OutputID: out}
	for i, e := range shape {
		if k, ok := e.IsConst(); ok {
			n.NewShape[i] = uint32(k)
		}
	}
	b.node(n)
	return out
}

// permutation is that of a node that permutes dimensions.
func permutation(n *ir.Node) ([]int, bool) {
	x := n.In(0)
	if x == nil || !x.Type.IsTensor() {
		return nil, false
	}
	r := x.Type.Rank()
	axis := func(k int64) int {
		if k < 0 {
			k += int64(r)
		}
		return int(k)
	}
	switch n.Op {
	case ops.AtenPermuteDefault:
		ks, ok := n.Arg(1).IntList()
		if !ok || len(ks) != r {
			return nil, false
		}
		p := make([]int, r)
		for i, k := range ks {
			if p[i] = axis(k); p[i] < 0 || p[i] >= r {
				return nil, false
			}
		}
		return p, true
	case ops.AtenTransposeInt:
		i, ok := n.Arg(1).Int()
		j, ok2 := n.Arg(2).Int()
		p, q := axis(i), axis(j)
		if !ok || !ok2 || p < 0 || q < 0 || p >= r || q >= r {
			return nil, false
		}
		return swapped(r, p, q), true
	case ops.AtenTDefault:
		if r == 2 {
			return []int{1, 0}, true
		}
	}
	return nil, false
}

// permute is written when somebody asks for it: products read through it, and convolutions want what it makes.
func permute(m *match) emit {
	if !m.floats() {
		return nil
	}
	perm, ok := permutation(m.n)
	if !ok {
		return m.no("a permutation that is not constant")
	}
	return func(b *builder) {
		x, out := b.n.In(0), b.n.Out()
		b.later[out] = func() { b.permute(x, out, perm) }
	}
}

func (b *builder) permute(x, out *ir.Value, perm []int) {
	if in := weightOf(x); in != nil {
		b.plain[out] = b.weight(in, &form{perm: perm})
		return
	}
	id, hasPlain := b.find(b.plain, x)
	other, hasNHWC := b.nhwc[x]
	switch {
	case hasNHWC && slices.Equal(perm, channelsIn[len(perm)]):
		b.plain[out] = other
	case hasPlain && slices.Equal(perm, channelsOut[len(perm)]):
		b.nhwc[out] = id
	case !hasPlain && hasNHWC:
		// The transpose back and this one are one.
		p := make([]int, len(perm))
		for i, d := range perm {
			p[i] = axisNHWC(len(perm), d)
		}
		b.transposeTo(other, p, b.outOf(out))
	default:
		b.transposeTo(b.in(x), perm, b.outOf(out))
	}
}

func (b *builder) transpose(x uint32, perm []int) uint32 {
	return b.transposeTo(x, perm, b.resized(x, ir.Permuted(b.values[x].shape, perm)))
}

func (b *builder) transposeTo(x uint32, perm []int, out uint32) uint32 {
	n := &xnnpack.XNNStaticTranspose{NumDims: uint32(len(perm)), InputID: x, OutputID: out}
	for _, p := range perm {
		n.Perm = append(n.Perm, uint32(p))
	}
	b.node(n)
	return out
}

// expand repeats what has size one: by writing it side by side, or not at all where an operation spreads it anyway.
func expand(m *match) emit {
	if !m.floats() {
		return nil
	}
	from, to := m.in(0).Type.Shape, m.out().Shape
	lead := len(to) - len(from)
	var axes []int
	var counts []int64
	for i := range to {
		if i >= lead && from[i-lead].Equal(to[i]) {
			continue
		}
		k, ok := to[i].IsConst()
		if !ok || k > maxRepeat {
			return m.no("it repeats as often as a size says that varies, or very often")
		}
		if k > 1 {
			axes, counts = append(axes, i), append(counts, k)
		}
	}
	if lead > 0 && symbolic(to) > 1 {
		return m.no("a shape with several sizes that vary")
	}
	return func(b *builder) {
		x, out := b.n.In(0), b.n.Out()
		b.later[out] = func() {
			if ir.EqualShape(from, to) {
				b.alias(out, x)
				return
			}
			id := b.in(x)
			if lead > 0 {
				shape := slices.Concat(ir.Consts(slices.Repeat([]int64{1}, lead)...), from)
				if len(axes) == 0 {
					b.reshapeTo(id, b.outOf(out))
					return
				}
				id = b.reshaped(id, shape...)
			}
			for i, a := range axes {
				parts := slices.Repeat([]uint32{id}, int(counts[i]))
				if i == len(axes)-1 {
					b.concatenate(a, parts, b.outOf(out))
					return
				}
				shape := slices.Clone(b.values[id].shape)
				shape[a] = sym.Const(counts[i])
				id = b.concatenate(a, parts, b.resized(id, shape))
			}
		}
	}
}

// maxRepeat bounds how often expand writes something.
const maxRepeat = 32

// concatenate joins values along an axis; more than the delegate's node takes are joined in steps.
func (b *builder) concatenate(axis int, xs []uint32, out uint32) uint32 {
	if len(xs) == 1 {
		b.node(&xnnpack.XNNCopy{InputID: xs[0], OutputID: out})
		return out
	}
	const most = 5
	for len(xs) > most {
		// Groups of five, then groups of those.
		var next []uint32
		for c := range slices.Chunk(xs, most) {
			if len(c) == 1 {
				next = append(next, c[0])
				continue
			}
			shape := slices.Clone(b.values[c[0]].shape)
			total := sym.Const(0)
			for _, id := range c {
				total = sym.Add(total, b.values[id].shape[axis])
			}
			shape[axis] = total
			next = append(next, b.concatenate(axis, c, b.resized(c[0], shape)))
		}
		xs = next
	}
	ids := [most]uint32{}
	copy(ids[:], xs)
	n := xnnpack.XNNConcatenate{
		Axis: uint32(axis), Input1ID: ids[0], Input2ID: ids[1], Input3ID: ids[2], Input4ID: ids[3], Input5ID: ids[4], OutputID: out,
	}
	switch len(xs) {
	case 2:
		x := xnnpack.XNNConcatenate2(n)
		b.node(&x)
	case 3:
		x := xnnpack.XNNConcatenate3(n)
		b.node(&x)
	case 4:
		x := xnnpack.XNNConcatenate4(n)
		b.node(&x)
	case 5:
		x := xnnpack.XNNConcatenate5(n)
		b.node(&x)
	}
	return out
}

// tensors are the values of a list argument, all of which the delegate holds.
func (m *match) tensors(i int) []*ir.Value {
	vs := m.arg(i).Values()
	for _, v := range vs {
		if v == nil {
			m.no("a list that holds None")
			return nil
		}
	}
	if len(vs) == 0 {
		m.no("an empty list")
	}
	return vs
}

func cat(m *match) emit {
	if !m.floats() {
		return nil
	}
	vs := m.tensors(0)
	if vs == nil {
		return nil
	}
	rank := m.out().Rank()
	for _, v := range vs {
		if v.Type.Rank() != rank {
			return m.no("tensors of several ranks")
		}
	}
	d, ok := m.dim(1, rank)
	if !ok {
		return nil
	}
	return func(b *builder) {
		ids := make([]uint32, len(vs))
		if b.prefersNHWC(vs...) {
			for i, v := range vs {
				ids[i] = b.inNHWC(v)
			}
			b.concatenate(axisNHWC(rank, d), ids, b.outNHWC(b.n.Out()))
			return
		}
		for i, v := range vs {
			ids[i] = b.in(v)
		}
		b.concatenate(d, ids, b.out(0))
	}
}

// stack joins along a new dimension.
func stack(m *match) emit {
	if !m.floats() {
		return nil
	}
	vs := m.tensors(0)
	if vs == nil {
		return nil
	}
	d, ok := m.dim(1, m.out().Rank())
	if !ok {
		return nil
	}
	shape := slices.Clone(m.out().Shape)
	shape[d] = sym.Const(1)
	if symbolic(shape) > 1 {
		return m.no("a shape with several sizes that vary")
	}
	return func(b *builder) {
		ids := make([]uint32, len(vs))
		for i, v := range vs {
			ids[i] = b.reshaped(b.in(v), shape...)
		}
		b.concatenate(d, ids, b.out(0))
	}
}

// theRest is a size larger than any: the delegate stops where the input ends.
const theRest = math.MaxInt32

// part writes the elements [at, at+size) of dimension d of x to out. A size of zero stands for all of a dimension, but only
// from its beginning.
func (b *builder) part(x uint32, d int, at, size int64, out uint32) uint32 {
	shape := b.values[x].shape
	n := &xnnpack.XNNStaticSlice{
		NumDims: uint32(len(shape)), Offsets: make([]uint32, len(shape)), Sizes: make([]uint32, len(shape)), InputID: x, OutputID: out,
	}
	n.Offsets[d], n.Sizes[d] = uint32(at), uint32(size)
	b.node(n)
	return out
}

// cut writes a part of x's dimension d as v.
func (b *builder) cut(x, v *ir.Value, d int, at, size int64) {
	if b.prefersNHWC(x) {
		in := b.inNHWC(x)
		b.part(in, axisNHWC(x.Type.Rank(), d), at, size, b.outNHWC(v))
		return
	}
	in := b.in(x)
	b.part(in, d, at, size, b.outOf(v))
}

// slice with a constant beginning and step 1, to a constant end or to the end.
func slice(m *match) emit {
	if !m.floats() {
		return nil
	}
	x := m.in(0)
	d, ok := m.dim(1, x.Type.Rank())
	if !ok {
		return nil
	}
	if step, ok := m.arg(4).Int(); !ok || step != 1 {
		return m.no("a step other than 1")
	}
	have, want := x.Type.Shape[d], m.out().Shape[d]
	if have.Equal(want) {
		return func(b *builder) {
			from, out := b.n.In(0), b.n.Out()
			b.later[out] = func() { b.alias(out, from) }
		}
	}
	at := int64(0)
	if a := m.arg(2); !a.IsNone() {
		if at, ok = a.Int(); !ok {
			return m.no("a beginning that is computed")
		}
	}
	total, constant := have.IsConst()
	if at < 0 {
		if !constant {
			return m.no("a beginning counted from an end that varies")
		}
		at = max(at+total, 0)
	}
	size, ok := want.IsConst()
	if !ok {
		// The rest after a constant beginning.
		if !sym.Sub(have, sym.Const(at)).Equal(want) {
			return m.no("an end that is computed")
		}
		size = theRest
	}
	return func(b *builder) {
		from, out := b.n.In(0), b.n.Out()
		b.later[out] = func() { b.cut(from, out, d, at, size) }
	}
}

// selectOne takes one index of a dimension, which goes away.
func selectOne(m *match) emit {
	if !m.floats() {
		return nil
	}
	x := m.in(0)
	d, ok := m.dim(1, x.Type.Rank())
	if !ok {
		return nil
	}
	at, ok := m.arg(2).Int()
	if !ok {
		return m.no("an index that is computed")
	}
	if at < 0 {
		total, ok := x.Type.Shape[d].IsConst()
		if !ok {
			return m.no("an index counted from an end that varies")
		}
		at += total
	}
	if symbolic(m.out().Shape) > 1 {
		return m.no("a shape with several sizes that vary")
	}
	return func(b *builder) {
		from, out := b.n.In(0), b.n.Out()
		b.later[out] = func() { b.pickOne(from, out, d, at) }
	}
}

func (b *builder) pickOne(x, v *ir.Value, d int, at int64) {
	in := b.in(x)
	shape := slices.Clone(b.values[in].shape)
	shape[d] = sym.Const(1)
	t := b.part(in, d, at, 1, b.resized(in, shape))
	b.reshapeTo(t, b.outOf(v))
}

// split cuts a dimension of constant size.
func split(m *match) emit {
	if !m.floats() {
		return nil
	}
	x := m.in(0)
	d, ok := m.dim(2, x.Type.Rank())
	if !ok {
		return nil
	}
	var sizes []int64
	for _, o := range m.n.Outs {
		k, ok := o.Type.Shape[d].IsConst()
		if !ok {
			return m.no("parts whose size varies")
		}
		sizes = append(sizes, k)
	}
	return func(b *builder) {
		from, at := b.n.In(0), int64(0)
		for i, o := range b.n.Outs {
			begin, size := at, sizes[i]
			b.later[o] = func() { b.cut(from, o, d, begin, size) }
			at += size
		}
	}
}

// unbind takes the indices of a dimension apart.
func unbind(m *match) emit {
	if !m.floats() {
		return nil
	}
	d, ok := m.dim(1, m.in(0).Type.Rank())
	if !ok {
		return nil
	}
	if len(m.n.Outs) == 0 || symbolic(m.n.Out().Type.Shape) > 1 {
		return m.no("a shape with several sizes that vary")
	}
	return func(b *builder) {
		from := b.n.In(0)
		for i, o := range b.n.Outs {
			b.later[o] = func() { b.pickOne(from, o, d, int64(i)) }
		}
	}
}

// pad with a constant, never cutting off.
func pad(m *match) emit {
	if !m.floats() {
		return nil
	}
	ks, ok := m.arg(1).IntList()
	value, ok2 := m.arg(2).Float()
	if m.arg(2).IsNone() {
		value, ok2 = 0, true
	}
	if !ok || !ok2 {
		return m.no("amounts that are computed")
	}
	rank := m.in(0).Type.Rank()
	if len(ks)%2 != 0 || len(ks) > 2*rank {
		return m.no("%d amounts for %d dimensions", len(ks), rank)
	}
	pre, post := make([]uint32, rank), make([]uint32, rank)
	for i := 0; i < len(ks); i += 2 {
		if ks[i] < 0 || ks[i+1] < 0 {
			return m.no("a negative amount")
		}
		d := rank - 1 - i/2
		pre[d], post[d] = uint32(ks[i]), uint32(ks[i+1])
	}
	return func(b *builder) {
		x, out := b.n.In(0), b.n.Out()
		b.later[out] = func() {
			n := &xnnpack.XNNStaticConstantPad{PrePaddings: pre, PostPaddings: post, PaddingValue: float32(value)}
			if b.prefersNHWC(x) {
				n.PrePaddings, n.PostPaddings = ir.Permuted(pre, channelsIn[rank]), ir.Permuted(post, channelsIn[rank])
				n.InputID = b.inNHWC(x)
				n.OutputID = b.outNHWC(out)
			} else {
				n.InputID = b.in(x)
				n.OutputID = b.outOf(out)
			}
			b.node(n)
		}
	}
}
