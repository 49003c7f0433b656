package mlx

import (
	"encoding/binary"
	"math"

	"github.com/lathe-ml/lathe/codegen/fb/mlx"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/partition"

	"github.com/x448/float16"
)

var normRules = map[ops.ID]rule{
	ops.AtenLayerNormDefault:                           layerNorm,
	ops.AtenNativeLayerNormDefault:                     layerNorm,
	ops.AtenRmsNormDefault:                             rmsNorm,
	ops.AtenUnderFusedRmsNormDefault:                   rmsNorm,
	ops.AtenGroupNormDefault:                           groupNorm,
	ops.AtenNativeGroupNormDefault:                     groupNorm,
	ops.AtenBatchNormDefault:                           batchNorm,
	ops.AtenUnderNativeBatchNormLegitNoTrainingDefault: batchNorm,
}

// unread tells whether nobody reads the results beside the first.
func (m *match) unread() bool {
	for _, o := range m.n.Outs[1:] {
		if o.NumUses() > 0 {
			m.no("the mean or the deviation beside the result")
			return false
		}
	}
	return true
}

// lastDims is what layer_norm and rms_norm run over, as one dimension.
func (m *match) lastDims() (k int, ok bool) {
	k = len(m.arg(1).List())
	if k == 0 || k > m.typ(0).Rank() {
		m.no("no dimension to run over")
		return 0, false
	}
	if k > 1 {
		if _, ok := ir.ConstInts(m.typ(0).Shape[m.typ(0).Rank()-k:]); !ok {
			m.no("several dimensions of sizes that are not constant")
			return 0, false
		}
	}
	return k, true
}

func (m *match) overLast(node func(b *builder, x, out mlx.Tid, vector func(v *ir.Value) *mlx.Tid)) emit {
	if !m.unread() || !m.out().DType.IsFloat() {
		return m.no("integers")
	}
	k, ok := m.lastDims()
	if !ok {
		return nil
	}
	x, d := m.in(0), m.out().DType
	if k == 1 {
		return func(b *builder) {
			node(b, b.in(x), b.out(0), func(v *ir.Value) *mlx.Tid {
				if v == nil {
					return nil
				}
				t := b.inAs(v, d)
				return &t
			})
		}
	}
	shape := x.Type.Shape
	lead := shape[:len(shape)-k]
	size, _ := sym.Prod(shape[len(shape)-k:]...).IsConst()
	return func(b *builder) {
		flat, y := b.temp(d), b.temp(d)
		b.emit(&mlx.ReshapeNode{X: b.in(x), Out: flat, Shape: append(b.ints(lead), lit(size))})
		node(b, flat, y, func(v *ir.Value) *mlx.Tid {
			if v == nil {
				return nil
			}
			t := b.vector(v, d, []int64{size})
			return &t
		})
		b.emit(&mlx.ReshapeNode{X: y, Out: b.out(0), Shape: b.viewShape(shape)})
	}
}

// vector is v with other sizes: a constant is stored so.
func (b *builder) vector(v *ir.Value, d ops.DType, sizes []int64) mlx.Tid {
	if in := partition.Weight(v); in != nil && in.Data.DType == d {
		if _, taken := b.of[v]; !taken || b.tensors[b.of[v]].kind == kindConst {
			return b.weight(in, &form{sizes: sizes})
		}
	}
	out := b.temp(d)
	b.emit(&mlx.ReshapeNode{X: b.inAs(v, d), Out: out, Shape: lits(sizes)})
	return out
}

func layerNorm(m *match) emit {
	eps, ok := m.n.ArgNamed("eps").Float()
	if !ok {
		return m.no("a computed epsilon")
	}
	w, bias := m.n.ArgNamed("weight").Value(), m.n.ArgNamed("bias").Value()
	return m.overLast(func(b *builder, x, out mlx.Tid, vector func(*ir.Value) *mlx.Tid) {
		b.emit(&mlx.LayerNormNode{X: x, Out: out, Weight: vector(w), Bias: vector(bias), Eps: float32(eps)})
	})
}

func rmsNorm(m *match) emit {
	d := m.out().DType
	eps, ok := m.arg(3).Float()
	if m.arg(3).IsNone() {
		eps, ok = epsilon(d), true
	}
	if !ok {
		return m.no("a computed epsilon")
	}
	w := m.arg(2).Value()
	return m.overLast(func(b *builder, x, out mlx.Tid, vector func(*ir.Value) *mlx.Tid) {
		b.emit(&mlx.RMSNormNode{X: x, Out: out, Weight: vector(w), Eps: float32(eps)})
	})
}

// epsilon is torch's default: the distance from one to the next number.
func epsilon(d ops.DType) float64 {
	switch d {
	case ops.Float16:
		return math.Ldexp(1, -10)
	case ops.BFloat16:
		return math.Ldexp(1, -7)
	}
	return math.Ldexp(1, -23)
}

// groupNorm is a layer norm over each group, then a factor and a summand a channel.
func groupNorm(m *match) emit {
	x, d := m.in(0), m.out().DType
	if !m.unread() || !d.IsFloat() {
		return m.no("integers")
	}
	eps, ok := m.n.ArgNamed("eps").Float()
	groups, ok2 := m.n.ArgNamed("num_groups").Int()
	if !ok2 {
		groups, ok2 = m.n.ArgNamed("group").Int()
	}
	if !ok || !ok2 || x.Type.Rank() < 2 {
		return m.no("computed settings")
	}
	shape := x.Type.Shape
	channels, ok := shape[1].IsConst()
	if !ok {
		return m.no("a number of channels that is not constant")
	}
	size := sym.Mul(sym.Const(channels/groups), sym.Prod(shape[2:]...))
	if why := expressible(size); why != "" {
		return m.no("%s", why)
	}
	w, bias := m.n.ArgNamed("weight").Value(), m.n.ArgNamed("bias").Value()
	affine := make([]int64, len(shape)-1)
	affine[0] = channels
	for i := 1; i < len(affine); i++ {
		affine[i] = 1
	}
	return func(b *builder) {
		flat, normed, t := b.temp(d), b.temp(d), b.temp(d)
		b.emit(&mlx.ReshapeNode{X: b.in(x), Out: flat, Shape: []*mlx.IntOrVid{lit(-1), b.int(size)}})
		b.emit(&mlx.LayerNormNode{X: flat, Out: normed, Eps: float32(eps)})
		b.emit(&mlx.ReshapeNode{X: normed, Out: t, Shape: b.viewShape(shape)})
		if w != nil {
			y := b.temp(d)
			b.emit(mulNode(t, b.vector(w, d, affine), y))
			t = y
		}
		if bias != nil {
			y := b.temp(d)
			b.emit(addNode(t, b.vector(bias, d, affine), y))
			t = y
		}
		b.result(0, t)
	}
}

// batchNorm with fixed statistics is a factor and a summand a channel; where all are constants, they are computed here.
func batchNorm(m *match) emit {
	x, d := m.in(0), m.out().DType
	if training, ok := m.n.ArgNamed("training").Bool(); ok && training {
		return m.no("statistics of the batch")
	}
	if !m.unread() || !d.IsFloat() || x.Type.Rank() < 2 {
		return m.no("integers, or data without channels")
	}
	eps, ok := m.n.ArgNamed("eps").Float()
	if !ok {
		return m.no("a computed epsilon")
	}
	vs := []*ir.Value{m.in(1), m.in(2), m.in(3), m.in(4)}
	if vs[2] == nil || vs[3] == nil {
		return m.no("statistics of the batch")
	}
	channels, ok := vs[2].Type.Sizes()
	if !ok || len(channels) != 1 {
		return m.no("a number of channels that is not constant")
	}
	affine := []int64{channels[0]}
	for range x.Type.Rank() - 2 {
		affine = append(affine, 1)
	}
	return func(b *builder) {
		if scale, shift, ok := b.foldNorm(vs, eps); ok {
			t := b.temp(d)
			b.emit(mulNode(b.in(x), b.floats(d, affine, scale), t))
			b.emit(addNode(t, b.floats(d, affine, shift), b.out(0)))
			return
		}
		centered, spread, inverse, t := b.temp(d), b.temp(ops.Float32), b.temp(ops.Float32), b.temp(d)
		b.emit(subNode(b.in(x), b.vector(vs[2], d, affine), centered))
		b.emit(addNode(b.vector(vs[3], ops.Float32, affine), b.float(ops.Float32, eps), spread))
		b.emit(&mlx.RsqrtNode{X: spread, Out: inverse})
		b.emit(mulNode(centered, b.cast(inverse, d), t))
		if vs[0] != nil {
			y := b.temp(d)
			b.emit(mulNode(t, b.vector(vs[0], d, affine), y))
			t = y
		}
		if vs[1] != nil {
			y := b.temp(d)
			b.emit(addNode(t, b.vector(vs[1], d, affine), y))
			t = y
		}
		b.result(0, t)
	}
}

// foldNorm computes weight/sqrt(var+eps) and bias - mean*that; ok is false where one of them is no constant.
func (b *builder) foldNorm(vs []*ir.Value, eps float64) (scale, shift []float64, ok bool) {
	var fs [4][]float64
	for i, v := range vs {
		if v == nil {
			continue
		}
		in := partition.Weight(v)
		if in == nil {
			return nil, nil, false
		}
		if t, taken := b.of[v]; taken && b.tensors[t].kind != kindConst {
			return nil, nil, false
		}
		p, err := in.Data.Compact()
		if err != nil {
			b.failf("%s: %v", in.Target, err)
			return nil, nil, false
		}
		if fs[i], ok = decode(in.Data.DType, p); !ok {
			return nil, nil, false
		}
	}
	for i := range fs[2] {
		s := 1 / math.Sqrt(fs[3][i]+eps)
		if fs[0] != nil {
			s *= fs[0][i]
		}
		h := -fs[2][i] * s
		if fs[1] != nil {
			h += fs[1][i]
		}
		scale, shift = append(scale, s), append(shift, h)
	}
	return scale, shift, true
}

// decode gives the elements of a float tensor.
func decode(d ops.DType, p []byte) ([]float64, bool) {
	n := int(d.Size())
	out := make([]float64, 0, len(p)/max(n, 1))
	le := binary.LittleEndian
	for ; len(p) >= n && n > 0; p = p[n:] {
		switch d {
		case ops.Float32:
			out = append(out, float64(math.Float32frombits(le.Uint32(p))))
		case ops.Float16:
			out = append(out, float64(float16.Frombits(le.Uint16(p)).Float32()))
		case ops.BFloat16:
			out = append(out, float64(math.Float32frombits(uint32(le.Uint16(p))<<16)))
		default:
			return nil, false
		}
	}
	return out, true
}
