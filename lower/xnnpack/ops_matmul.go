package xnnpack

import (
	"github.com/lathe-ml/lathe/codegen/fb/xnnpack"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/partition"
)

var matmulRules = map[ops.ID]rule{
	ops.AtenLinearDefault:  wide(linear),
	ops.AtenAddmmDefault:   wide(addmm),
	ops.AtenMmDefault:      wide(matmul),
	ops.AtenBmmDefault:     wide(matmul),
	ops.AtenMatmulDefault:  wide(matmul),
	ops.AtenBaddbmmDefault: wide(addmm),
}

// matrix is a constant matrix seen through transposes: the weight, and whether it is to be read as it lies transposed.
func matrix(v *ir.Value) (in *ir.Input, transposed, ok bool) {
	for v.Def != nil && isSwap(v.Def) {
		v, transposed = v.Def.In(0), !transposed
	}
	in = partition.Weight(v)
	return in, transposed, in != nil && len(in.Data.Sizes) == 2
}

// isSwap tells nodes that exchange the last two dimensions and nothing else.
func isSwap(n *ir.Node) bool {
	x := n.In(0)
	if x == nil || !x.Type.IsTensor() {
		return false
	}
	r := x.Type.Rank()
	perm, ok := permutation(n)
	if !ok || r < 2 {
		return false
	}
	for i, p := range perm {
		want := i
		switch i {
		case r - 2:
			want = r - 1
		case r - 1:
			want = r - 2
		}
		if p != want {
			return false
		}
	}
	return true
}

// linear is x wT + bias.
func linear(m *match) emit {
	x, w, bias := m.in(0), m.in(1), m.in(2)
	if !m.floats() {
		return nil
	}
	if x.Type.Rank() == 0 || w.Type.Rank() != 2 {
		return m.no("a weight that is no matrix")
	}
	if bias != nil && bias.Type.Rank() != 1 {
		return m.no("a bias of %d dimensions", bias.Type.Rank())
	}
	if e := quantizedLinear(m); e != nil {
		return e
	}
	if in, t, ok := matrix(w); ok {
		if bias == nil || isConst(bias) {
			return func(b *builder) { b.fullyConnected(x, in, t, bias) }
		}
		return func(b *builder) {
			y := b.connect(x, in, t, nil, func() uint32 { return b.temp(b.n.Out().Type.Shape, b.float()) })
			b.bound(b.node(nodeAdd(xnnpack.XNNBinary{Input1ID: y, Input2ID: b.in(bias), OutputID: b.fuse()})))
		}
	}
	if x.Type.Rank() < 2 {
		return m.no("a vector and a matrix that is computed")
	}
	return func(b *builder) {
		if bias == nil {
			b.multiply(x, w, true, b.out(0))
			return
		}
		y := b.multiply(x, w, true, b.temp(b.n.Out().Type.Shape, b.float()))
		b.bound(b.node(nodeAdd(xnnpack.XNNBinary{Input1ID: y, Input2ID: b.in(bias), OutputID: b.fuse()})))
	}
}

// fullyConnected writes the node at hand with its activation.
func (b *builder) fullyConnected(x *ir.Value, w *ir.Input, transposed bool, bias *ir.Value) {
	b.connect(x, w, transposed, bias, b.fuse)
	b.bound(b.last())
}

func (b *builder) last() *xnnpack.XNode {
	return b.payload.Graph.Xnodes[len(b.payload.Graph.Xnodes)-1]
}

// connect writes x wT + bias to out.
func (b *builder) connect(x *ir.Value, w *ir.Input, transposed bool, bias *ir.Value, out func() uint32) uint32 {
	// A matrix of 16-bit floats is stored as it is, also where the sums are float32.
	n := &xnnpack.XNNFullyConnected{BiasID: noValue}
	if x.Type.DType == ops.BFloat16 && w.Data.DType == ops.BFloat16 {
		b.wide = false
		n.Input1ID = b.in(x)
		b.wide = true
	} else {
		n.Input1ID = b.in(x)
	}
	n.OutputID = out()
	n.FilterID = b.packedAsIs(w)
	if transposed {
		n.Flags = flagTransposeWeights
	}
	if bias != nil {
		if bias.Type.DType == ops.BFloat16 {
			n.BiasID = b.packedWeight(partition.Weight(bias), nil)
		} else {
			n.BiasID = b.packedAsIs(partition.Weight(bias))
		}
	}
	b.node(n)
	return n.OutputID
}

// multiply writes the matrix product of x and y to out, y transposed if it is said to be or seen through a transpose.
func (b *builder) multiply(x, y *ir.Value, transposed bool, out uint32) uint32 {
	for y.Def != nil && isSwap(y.Def) && y.Def.Graph() == b.g {
		y, transposed = y.Def.In(0), !transposed
	}
	n := xnnpack.XNNBinary{Input1ID: b.in(x), Input2ID: b.in(y), OutputID: out}
	if transposed {
		n.Flags = flagTransposeWeights
	}
	b.node(nodeMatmul(n))
	return out
}

// matmul of matrices, any number of them.
func matmul(m *match) emit {
	if !m.floats() {
		return nil
	}
	x, y := m.in(0), m.in(1)
	if x.Type.Rank() == 0 || y.Type.Rank() < 2 || x.Type.Rank() < 2 && y.Type.Rank() != 2 {
		return m.no("a product with a vector")
	}
	if in, t, ok := matrix(y); ok {
		return func(b *builder) { b.fullyConnected(x, in, !t, nil) }
	}
	if x.Type.Rank() < 2 {
		return m.no("a product with a vector")
	}
	return func(b *builder) { b.multiply(x, y, false, b.out(0)) }
}

// addmm is beta c + alpha x y.
func addmm(m *match) emit {
	if !m.floats() {
		return nil
	}
	c, x, y := m.in(0), m.in(1), m.in(2)
	beta, ok := m.n.ArgNamed("beta").Float()
	alpha, ok2 := m.n.ArgNamed("alpha").Float()
	if !ok || !ok2 {
		return m.no("factors that are computed")
	}
	in, t, known := matrix(y)
	if known && alpha == 1 && beta == 1 && isConst(c) && isBias(c, m.out().Shape) {
		return func(b *builder) { b.fullyConnected(x, in, !t, c) }
	}
	return func(b *builder) {
		shape := b.n.Out().Type.Shape
		out := b.temp(shape, b.float())
		if known {
			b.connect(x, in, !t, nil, func() uint32 { return out })
		} else {
			b.multiply(x, y, false, out)
		}
		if beta == 0 {
			b.binary(nodeMultiply, out, b.scalar(alpha), b.out(0))
			return
		}
		p, q := b.times(out, alpha), b.times(b.in(c), beta)
		b.bound(b.node(nodeAdd(xnnpack.XNNBinary{Input1ID: p, Input2ID: q, OutputID: b.fuse()})))
	}
}

// isBias tells a vector that is added to the last dimension of that shape.
func isBias(v *ir.Value, shape []sym.Expr) bool {
	return v.Type.Rank() == 1 && v.Type.Shape[0].Equal(shape[len(shape)-1])
}
