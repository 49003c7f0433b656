package mlx

import (
	"math"

	"github.com/lathe-ml/lathe/codegen/fb/mlx"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/partition"
)

var customRules = map[ops.ID]rule{
	ops.MlxGatherMmDefault:            gatherMm,
	ops.MlxGatherQmmDefault:           gatherQmm,
	ops.MlxMoeGatherInputsDefault:     moeGather,
	ops.MlxMoeScatterOutputsDefault:   moeScatter,
	ops.MlxSampleDefault:              sample,
	ops.KvcacheUpdateAndAttendDefault: updateAndAttend,
	ops.LlamaGatedDeltaRuleDefault:    deltaRule,
	ops.LlamaCustomSdpaDefault:        llamaSdpa,
	ops.MlxTqNormDefault:              tqNorm,
	ops.MlxTq4CompressDefault:         tqCompress,
	ops.MlxTqDequantDefault:           tqDequant,
	ops.MlxTestVaddDefault:            elementwise(addNode, nil),
}

// sorted tells the delegate whether experts come in order: what moe_gather_inputs decided, or what a tensor says.
func (b *builder) sorted(v *ir.Value) *mlx.IntOrVid {
	if v == nil {
		return lit(0)
	}
	if n := v.Def; n != nil && n.Op == ops.AtenFullDefault {
		if k, ok := n.Arg(1).Float(); ok {
			return lit(int64(k))
		}
		if yes, ok := n.Arg(1).Bool(); ok && yes {
			return lit(1)
		}
	}
	t := b.raw(v)
	if x, ok := b.flags[t.Idx]; ok {
		return b.copyInt(x)
	}
	out := b.item(t)
	if len(b.scopes) == 1 {
		b.flags[t.Idx] = vidOf(out)
	}
	return vidOf(out)
}

func gatherMm(m *match) emit {
	x, w, rhs, lhs, flag := m.in(0), m.in(1), m.in(2), m.in(3), m.in(4)
	if !m.out().DType.IsFloat() {
		return m.no("a product of integers")
	}
	return func(b *builder) {
		n := &mlx.GatherMmNode{A: b.in(x), B: b.in(w), RhsIndices: b.indices(rhs), LhsIndices: b.indices(lhs)}
		n.SortedIndicesFlag = b.sorted(flag)
		n.Out = b.out(0)
		b.emit(n)
	}
}

func (b *builder) indices(v *ir.Value) *mlx.Tid {
	if v == nil {
		return nil
	}
	t := b.index(v)
	return &t
}

// gatherQmm is gather_mm with the weights of each expert as numbers in a byte, or two in one; a group's weights are
// scale*number + bias.
func gatherQmm(m *match) emit {
	x, rhs, lhs := m.in(0), m.in(4), m.in(5)
	transposed, ok := m.arg(6).Bool()
	group, ok2 := m.intArg(7)
	bits, ok3 := m.intArg(8)
	mode, ok4 := m.arg(9).Str()
	if !ok || !ok2 || !ok3 || !ok4 || mode != "affine" || !transposed {
		return m.no("computed settings, a mode other than affine, or weights that are not transposed")
	}
	q, s := partition.Weight(m.in(1)), partition.Weight(m.in(2))
	var bias *ir.Input
	if v := m.in(3); v != nil {
		if bias = partition.Weight(v); bias == nil {
			return m.no("biases that are computed")
		}
	}
	if q == nil || s == nil || len(q.Data.Sizes) != 3 || legalGroup(group) != group || group < 32 {
		return m.no("weights that are computed, or groups of another size than 32, 64 or 128")
	}
	p := &packed{
		mode: "affine", bits: bits, group: group, coarse: group, q: q, scale: s, zero: bias, summand: true, low: -(1 << (bits - 1)),
		lead: q.Data.Sizes[:2], cols: q.Data.Sizes[2], out: m.out().DType,
	}
	switch {
	case q.Data.DType == ops.Uint8 && bits == 4:
		p.ready, p.cols = true, 2*p.cols
	case q.Data.DType != ops.Int8:
		return m.no("numbers kept as %s", q.Data.DType)
	}
	if bits < 2 || bits == 7 || bits > 8 {
		return m.no("numbers of %d bits", bits)
	}
	if _, why := p.fits(); why != "" {
		return m.no("%s", why)
	}
	flag := m.in(10)
	return func(b *builder) {
		p := p
		if !p.ready && !b.within(p) {
			// The numbers are whole bytes, whatever the argument says of their width.
			wide := *p
			wide.bits, wide.low = 8, -128
			p = &wide
		}
		n := &mlx.GatherQmmNode{
			X: b.in(x), W: b.words(p), Scales: b.scales(p), Biases: b.biases(p), RhsIndices: b.indices(rhs), LhsIndices: b.indices(lhs),
			Transpose: true, GroupSize: int32(group), Bits: int32(p.bits), Mode: mode, SortedIndicesFlag: b.sorted(flag),
		}
		n.Out = b.temp(promote(p.out, p.scaleType()))
		b.emit(n)
		b.finally(0, n.Out)
	}
}

// within tells whether all numbers of p fit its bits.
func (b *builder) within(p *packed) bool {
	q, err := p.q.Data.Compact()
	if err != nil {
		b.failf("%s: %v", p.q.Target, err)
		return false
	}
	for _, c := range q {
		if x := int64(int8(c)) - p.low; x < 0 || x >= 1<<p.bits {
			return false
		}
	}
	return true
}

// moeGather repeats each token for each of its experts: sorted by expert where the tokens are many, as they come otherwise.
func moeGather(m *match) emit {
	x, experts := m.in(0), m.in(1)
	k, ok := m.intArg(2)
	cutoff, ok2 := m.intArg(3)
	if !ok || !ok2 || k < 1 || cutoff < 1 || x.Type.Rank() != 2 {
		return m.no("computed settings")
	}
	tokens := x.Type.Shape[0]
	return func(b *builder) {
		d := b.dtype(b.raw(x))
		rows, which, flag, back := b.outAs(0, d), b.outAs(1, ops.Int32), b.outAs(2, ops.Int32), b.outAs(3, ops.Int32)
		many := b.floorDiv(b.sub(b.int(tokens), lit(1)), lit(cutoff))
		if !many.IsVid && many.Literal != 0 {
			many = lit(1)
		}
		b.flags[flag.Idx] = many
		toInt := func(t, out mlx.Tid) { b.emit(&mlx.AsTypeNode{X: t, Out: out, ScalarType: scalarType(ops.Int32)}) }
		said := func(v float64) {
			b.emit(&mlx.FullNode{Shape: []*mlx.IntOrVid{}, V: &mlx.FloatOrVid{Literal: v}, ScalarType: scalarType(ops.Int32), Out: flag})
		}
		et := b.dtype(b.raw(experts))
		flatten := func() mlx.Tid {
			t := b.temp(et)
			b.emit(&mlx.ReshapeNode{X: b.raw(experts), Out: t, Shape: []*mlx.IntOrVid{lit(-1)}})
			return t
		}
		b.ifElse(many, func() {
			flat, order, order32, inverse := flatten(), b.temp(ops.Uint32), b.temp(ops.Int32), b.temp(ops.Uint32)
			b.emit(&mlx.ArgsortNode{X: flat, Out: order})
			toInt(order, order32)
			b.emit(&mlx.ArgsortNode{X: order32, Out: inverse})
			toInt(inverse, back)
			sorted := b.temp(et)
			take(b, flat, order32, sorted, 0)
			toInt(sorted, which)
			row, row32, picked := b.temp(ops.Float32), b.temp(ops.Int32), b.temp(d)
			b.emit(&mlx.FloorDivideNode{A: order32, B: b.scalar(ops.Int32, ir.Int(k)), Out: row})
			toInt(row, row32)
			take(b, b.raw(x), row32, picked, 0)
			b.emit(&mlx.ExpandDimsNode{X: picked, Out: rows, Axis: -2})
			said(1)
		}, func() {
			repeated := b.temp(d)
			b.emit(&mlx.RepeatNode{X: b.raw(x), Out: repeated, Repeats: lit(k)})
			b.emit(&mlx.ExpandDimsNode{X: repeated, Out: rows, Axis: -2})
			toInt(flatten(), which)
			said(0)
			t := scalarType(ops.Int32)
			b.emit(&mlx.ARangeNode{Out: back, Start: lit(0), Stop: b.int(sym.Mul(tokens, sym.Const(k))), Step: lit(1), ScalarType: &t})
		})
	}
}

// moeScatter undoes moeGather.
func moeScatter(m *match) emit {
	down, flag, back := m.in(0), m.in(1), m.in(2)
	if down.Type.Rank() != 3 || !down.Type.Shape[1].IsConstValue(1) {
		return m.no("data of another form than rows of one")
	}
	shape := m.out().Shape
	return func(b *builder) {
		d := b.dtype(b.raw(down))
		out := b.outAs(0, d)
		rows := b.temp(d)
		b.emit(&mlx.SqueezeNode{X: b.raw(down), Out: rows, Dims: []int32{-2}})
		b.ifElse(b.sorted(flag), func() {
			picked := b.temp(d)
			take(b, rows, b.index(back), picked, 0)
			b.emit(&mlx.ReshapeNode{X: picked, Out: out, Shape: b.viewShape(shape)})
		}, func() {
			b.emit(&mlx.ReshapeNode{X: rows, Out: out, Shape: b.viewShape(shape)})
		})
	}
}

// sample draws a token by the Gumbel trick from logits over temperature, of the k most likely and of the least set whose
// probability reaches p. A temperature of zero takes the most likely.
func sample(m *match) emit {
	logits, temperature, topK, topP, seed := m.in(0), m.in(1), m.in(2), m.in(3), m.in(4)
	shape := logits.Type.Shape
	if len(shape) == 0 || !logits.Type.DType.IsFloat() {
		return m.no("logits without dimensions")
	}
	vocabulary, ok := shape[len(shape)-1].IsConst()
	if !ok {
		return m.no("a vocabulary of a size that is not constant")
	}
	const f32 = ops.Float32
	axis := int32(len(shape) - 1)
	return func(b *builder) {
		hot := b.temp(ops.Bool)
		td := b.dtype(b.raw(temperature))
		b.emit(gtNode(b.raw(temperature), b.scalar(td, ir.Int(0)), hot))
		flag := b.item(hot)
		out := b.outAs(0, ops.Uint32)
		t := func() mlx.Tid { return b.temp(f32) }
		neg := func(x mlx.Tid) mlx.Tid {
			y := t()
			b.emit(&mlx.NegNode{X: x, Out: y})
			return y
		}
		descending := func(x mlx.Tid) mlx.Tid {
			y := t()
			b.emit(&mlx.SortNode{X: neg(x), Out: y, Axis: axis})
			return neg(y)
		}
		two := func(node binaryNode, d ops.DType, x, y mlx.Tid) mlx.Tid {
			z := b.temp(d)
			b.emit(node(x, y, z))
			return z
		}
		pick := func(c, x, y mlx.Tid) mlx.Tid {
			z := t()
			b.emit(&mlx.WhereNode{Condition: c, X: x, Y: y, Out: z})
			return z
		}
		b.ifElse(vidOf(flag), func() {
			bits := &mlx.RandomBitsNode{Out: b.temp(ops.Uint32), Shape: b.ints(shape), Width: 4}
			if seed != nil {
				v := b.item(b.raw(seed))
				bits.Seed = &v
			}
			b.emit(bits)
			u := two(divNode, f32, b.cast(bits.Out, f32), b.float(f32, math.MaxUint32))
			// One itself would have an infinite logarithm of its logarithm.
			u = two(minNode, f32, u, b.float(f32, 1-math.Ldexp(1, -24)))
			log := func(x mlx.Tid) mlx.Tid {
				y := t()
				b.emit(&mlx.LogNode{X: x, Out: y})
				return neg(y)
			}
			gumbel := log(log(u))

			scaled := two(divNode, f32, b.inAs(logits, f32), b.inAs(temperature, f32))
			k := two(minNode, ops.Int64, b.inAs(topK, ops.Int64), b.scalar(ops.Int64, ir.Int(vocabulary)))
			least := t()
			b.emit(&mlx.TakeNode{X: descending(scaled), Index: index(b.sub(vidOf(b.item(k)), lit(1))), Out: least, Axis: axis})
			edge := t()
			b.emit(&mlx.ExpandDimsNode{X: least, Out: edge, Axis: axis})
			low := b.float(f32, -inf)
			scaled = pick(two(ltNode, ops.Bool, scaled, edge), low, scaled)

			p := t()
			b.emit(&mlx.SoftmaxNode{X: scaled, Out: p, Axis: axis})
			order := descending(p)
			sum := mlx.NewCumsumNode()
			sum.X, sum.Out, sum.Axis = order, t(), axis
			b.emit(sum)
			before := two(subNode, f32, sum.Out, order)
			kept := pick(two(gtNode, ops.Bool, before, b.inAs(topP, f32)), b.float(f32, inf), order)
			floor := t()
			b.emit(minReduce(kept, floor, []int32{axis}, true))
			masked := pick(two(ltNode, ops.Bool, p, floor), low, scaled)
			b.emit(&mlx.ArgmaxNode{X: two(addNode, f32, masked, gumbel), Out: out, Axis: axis})
		}, func() {
			b.emit(&mlx.ArgmaxNode{X: b.raw(logits), Out: out, Axis: axis})
		})
	}
}

func updateAndAttend(m *match) emit {
	q, k, v, pos := m.in(0), m.in(1), m.in(2), m.in(3)
	layer, ok := m.intArg(4)
	scale, ok2 := m.arg(5).Float()
	if !ok || !ok2 || pos.Type.DType != ops.Int32 && pos.Type.DType != ops.Int64 {
		return m.no("computed settings")
	}
	d := m.out().DType
	return func(b *builder) {
		l, s, t := int32(layer), float32(scale), scalarType(d)
		b.emit(&mlx.UpdateAndAttendNode{
			Q: b.in(q), K: b.in(k), V: b.in(v), Position: b.in(pos), LayerID: &l, Scale: &s, OutDtype: &t, Out: b.out(0),
		})
	}
}

// llamaSdpa is attention to the first start_pos + length entries of a cache with the sequence before the heads.
func llamaSdpa(m *match) emit {
	q, k, v, mask := m.in(0), m.in(1), m.in(2), m.in(4)
	start, ok := m.arg(3).Expr()
	dropout, ok2 := m.arg(5).Float()
	causal, ok3 := m.arg(6).Bool()
	size, ok4 := ir.Dim(q, -1).IsConst()
	if !ok || !ok2 || !ok3 || !ok4 || dropout != 0 || q.Type.Rank() != 4 {
		return m.no("dropout, computed settings, or a rank other than 4")
	}
	scale := 1 / math.Sqrt(float64(size))
	if a := m.arg(7); !a.IsNone() {
		if scale, ok = a.Float(); !ok {
			return m.no("a computed scale")
		}
	}
	if causal && mask != nil {
		return m.no("a mask beside a causal one")
	}
	d := q.Type.DType
	stop := sym.Add(start, q.Type.Shape[1])
	heads := []int32{0, 2, 1, 3}
	return func(b *builder) {
		swap := func(x mlx.Tid) mlx.Tid {
			out := b.temp(d)
			b.emit(&mlx.TransposeNode{X: x, Out: out, Perm: heads})
			return out
		}
		n := &mlx.SdpaNode{Q: swap(b.in(q)), Scale: float32(scale), Causal: causal, Mask: b.optional(mask), Out: b.temp(d)}
		n.K = b.firstRows(swap(b.inAs(k, d)), b.int(stop))
		n.V = b.firstRows(swap(b.inAs(v, d)), b.int(stop))
		b.emit(n)
		b.emit(&mlx.TransposeNode{X: n.Out, Out: b.out(0), Perm: heads})
	}
}

// tqNorm is the length of each row, summed up in single precision.
func tqNorm(m *match) emit {
	x := m.in(0)
	rank := x.Type.Rank()
	if rank == 0 || !x.Type.DType.IsFloat() {
		return m.no("rows without dimensions, or of integers")
	}
	return func(b *builder) {
		s, sum, root := b.temp(ops.Float32), b.temp(ops.Float32), b.temp(ops.Float32)
		b.emit(&mlx.SquareNode{X: b.inAs(x, ops.Float32), Out: s})
		b.emit(sumNode(s, sum, []int32{int32(rank - 1)}, true))
		b.emit(&mlx.SqrtNode{X: sum, Out: root})
		b.finally(0, root)
	}
}

// tqCompress counts the boundaries below each element and keeps two counts in a byte, the first in the high half.
func tqCompress(m *match) emit {
	x, edges := m.in(0), m.in(1)
	rank := x.Type.Rank()
	if rank == 0 || edges.Type.Rank() != 1 || !edges.Type.Shape[0].IsConstValue(15) {
		return m.no("other than 15 boundaries")
	}
	return func(b *builder) {
		d := x.Type.DType
		col, above, count := b.temp(d), b.temp(ops.Bool), b.temp(ops.Int32)
		b.emit(&mlx.ExpandDimsNode{X: b.in(x), Out: col, Axis: -1})
		b.emit(gtNode(col, b.inAs(edges, d), above))
		b.emit(sumNode(b.cast(above, ops.Int32), count, []int32{int32(rank)}, false))
		half := func(at int64) mlx.Tid {
			s := mlx.NewSliceNode()
			s.X, s.Axis, s.Start, s.Stop, s.Step, s.Out = count, lit(int64(rank-1)), lit(at), lit(far), 2, b.temp(ops.Int32)
			b.emit(s)
			return s.Out
		}
		high, byteOf := b.temp(ops.Int32), b.temp(ops.Int32)
		b.emit(mulNode(half(0), b.scalar(ops.Int32, ir.Int(16)), high))
		b.emit(addNode(high, half(1), byteOf))
		b.finally(0, byteOf)
	}
}

// tqDequant looks up what the halves of each byte stand for and multiplies rows by their lengths.
func tqDequant(m *match) emit {
	packed, norms, table := m.in(0), m.in(1), m.in(2)
	rank := packed.Type.Rank()
	if rank == 0 || packed.Type.DType != ops.Uint8 || table.Type.Rank() != 1 {
		return m.no("other than bytes and a table")
	}
	d, shape := m.out().DType, m.out().Shape
	return func(b *builder) {
		quotient, low, both, flat, centers := b.temp(ops.Float32), b.temp(ops.Uint8), b.temp(ops.Uint8), b.temp(ops.Uint8), b.temp(b.dtype(b.in(table)))
		sixteen := b.scalar(ops.Uint8, ir.Int(16))
		b.emit(&mlx.FloorDivideNode{A: b.in(packed), B: sixteen, Out: quotient})
		b.emit(bitAndNode(b.in(packed), b.scalar(ops.Uint8, ir.Int(15)), low))
		b.emit(&mlx.StackNode{Tensors: []mlx.Tid{b.cast(quotient, ops.Uint8), low}, Out: both, Axis: int32(rank)})
		b.emit(&mlx.ReshapeNode{X: both, Out: flat, Shape: b.viewShape(shape)})
		take(b, b.in(table), flat, centers, 0)
		b.emit(mulNode(b.cast(centers, d), b.inAs(norms, d), b.out(0)))
	}
}

// deltaRule runs the gated delta rule as a scan over time: the state decays, is corrected by what it predicts wrong, and is
// read.
func deltaRule(m *match) emit {
	q, k, v, g, beta, state := m.in(0), m.in(1), m.in(2), m.in(3), m.in(4), m.in(5)
	if g.Type.Rank() != 3 || state.Type.Rank() != 4 || !q.Type.Shape[1].Equal(state.Type.Shape[1]) || !k.Type.Shape[1].Equal(state.Type.Shape[1]) {
		return m.no("heads of queries, keys and state that differ, or decays of another form")
	}
	if m.n.Graph().Root().Syms.Range(q.Type.Shape[2]).Min < 1 {
		return m.no("no step at all, perhaps")
	}
	d := state.Type.DType
	return func(b *builder) {
		node := &mlx.ScanNode{ScanAxis: 2}
		s := b.outAs(1, d)
		b.emit(&mlx.IdCopyNode{X: b.in(state), Out: s})
		y := b.outAs(0, d)
		node.Carry, node.Outputs = []mlx.Tid{s}, []mlx.Tid{y}
		var at [5]mlx.Tid
		for i, x := range []*ir.Value{q, k, v, g, beta} {
			at[i] = b.temp(d)
			node.Originals, node.Sliced = append(node.Originals, b.inAs(x, d)), append(node.Sliced, at[i])
		}
		node.BodyChainIdx = int32(b.inside(func() {
			wide := func(x mlx.Tid, axes ...int32) mlx.Tid {
				for _, a := range axes {
					t := b.temp(d)
					b.emit(&mlx.ExpandDimsNode{X: x, Out: t, Axis: a})
					x = t
				}
				return x
			}
			two := func(f binaryNode, x, y mlx.Tid) mlx.Tid {
				t := b.temp(d)
				b.emit(f(x, y, t))
				return t
			}
			decayed := two(mulNode, s, wide(at[3], -1, -1))
			key := wide(at[1], -1)
			predicted := b.temp(d)
			b.emit(sumNode(two(mulNode, decayed, key), predicted, []int32{2}, false))
			delta := two(mulNode, two(subNode, at[2], predicted), wide(at[4], -1))
			next := two(addNode, decayed, two(mulNode, key, wide(delta, -2)))
			b.emit(sumNode(two(mulNode, next, wide(at[0], -1)), y, []int32{2}, false))
			b.emit(&mlx.IdCopyNode{X: next, Out: s})
		}))
		b.emit(node)
	}
}
