package xnnpack

import (
	"slices"

	"github.com/lathe-ml/lathe/codegen/fb/xnnpack"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

var reduceRules = map[ops.ID]rule{
	ops.AtenMeanDefault:   wide(mean(true)),
	ops.AtenMeanDim:       wide(mean(true)),
	ops.AtenSumDefault:    wide(mean(false)),
	ops.AtenSumDimIntList: wide(mean(false)),
	ops.AtenVarCorrection: wide(variance),
	ops.AtenVarDim:        wide(variance),
	ops.AtenMaxDim:        wide(largest),
}

// axes are the dimensions that a reduction runs over, in order; all where none are given.
func (m *match) axes(a ir.Arg) ([]int, bool) {
	rank := m.in(0).Type.Rank()
	ks, ok := a.IntList()
	if k, one := a.Int(); one {
		ks, ok = []int64{k}, true
	}
	if a.IsNone() || ok && len(ks) == 0 {
		all := make([]int, rank)
		for i := range all {
			all[i] = i
		}
		return all, rank > 0
	}
	if !ok {
		return nil, false
	}
	var ds []int
	for _, k := range ks {
		d, ok := m.axis(k, rank)
		if !ok {
			return nil, false
		}
		ds = append(ds, d)
	}
	slices.Sort(ds)
	return ds, len(slices.Compact(slices.Clone(ds))) == len(ds)
}

// consecutive tells whether ds is a run of dimensions.
func consecutive(ds []int) bool { return len(ds) > 0 && ds[len(ds)-1]-ds[0] == len(ds)-1 }

func product(shape []sym.Expr) sym.Expr {
	n := sym.Const(1)
	for _, e := range shape {
		n = sym.Mul(n, e)
	}
	return n
}

// mean over a run of dimensions, or a sum: by the mean over the two middle ones of four, or a product where the run is
// the end.
func mean(isMean bool) rule {
	return func(m *match) emit {
		if !m.floats() {
			return nil
		}
		ds, ok := m.axes(m.n.ArgNamed("dim"))
		if !ok || !consecutive(ds) {
			return m.no("dimensions that do not lie side by side")
		}
		shape, out := m.in(0).Type.Shape, m.out().Shape
		first, last := ds[0], ds[len(ds)-1]
		count, constant := product(shape[first : last+1]).IsConst()
		if !isMean && !constant {
			return m.no("a sum over a size that varies")
		}
		keep, _ := m.n.ArgNamed("keepdim").Bool()
		if isMean && len(shape) == 4 && first == 2 && last == 3 {
			return func(b *builder) {
				if b.intMean(keep) {
					return
				}
				x, v := b.n.In(0), b.n.Out()
				in := b.inNHWC(x)
				if keep {
					b.node(nodePool(xnnpack.XNNUnary{InputID: in, OutputID: b.outNHWC(v), Flags: flagKeepDims}))
					return
				}
				b.node(nodePool(xnnpack.XNNUnary{InputID: in, OutputID: b.out(0)}))
			}
		}
		if last == len(shape)-1 && constant {
			if len(ds) > 1 && symbolic(shape) > 1 || !keep && symbolic(out) > 1 {
				return m.no("a shape with several sizes that vary")
			}
			return func(b *builder) {
				x := b.rows(b.in(b.n.In(0)), len(ds))
				whole := len(ds) == 1 && keep
				switch {
				case whole && isMean:
					b.binary(nodeDivide, b.rowSum(x, 1), b.scalar(float64(count)), b.out(0))
				case whole:
					b.rowSumTo(x, count, 1, b.out(0))
				default:
					t := b.rowSum(x, 1)
					if isMean {
						t = b.binary(nodeDivide, t, b.scalar(float64(count)), b.like(t))
					}
					b.reshapeTo(t, b.out(0))
				}
			}
		}
		before, after := product(shape[:first]), product(shape[last+1:])
		middle := []sym.Expr{before, sym.Const(1), product(shape[first : last+1]), after}
		if symbolic(middle) > 1 || symbolic([]sym.Expr{before, after}) > 1 || symbolic(out) > 1 {
			return m.no("a shape with several sizes that vary")
		}
		return func(b *builder) {
			x := b.reshaped(b.in(b.n.In(0)), middle...)
			t := b.temp([]sym.Expr{before, after}, b.float())
			b.node(nodePool(xnnpack.XNNUnary{InputID: x, OutputID: t}))
			if !isMean {
				t = b.binary(nodeMultiply, t, b.scalar(float64(count)), b.like(t))
			}
			b.reshapeTo(t, b.out(0))
		}
	}
}

// variance over trailing dimensions of constant sizes.
func variance(m *match) emit {
	if !m.floats() {
		return nil
	}
	ds, ok := m.axes(m.n.ArgNamed("dim"))
	shape := m.in(0).Type.Shape
	if !ok || !consecutive(ds) || ds[len(ds)-1] != len(shape)-1 {
		return m.no("other dimensions than the last")
	}
	count, constant := product(shape[ds[0]:]).IsConst()
	correction := 1.0
	if m.n.Op == ops.AtenVarDim {
		if unbiased, _ := m.n.ArgNamed("unbiased").Bool(); !unbiased {
			correction = 0
		}
	} else if a := m.n.ArgNamed("correction"); !a.IsNone() {
		if correction, ok = a.Float(); !ok {
			return m.no("a correction that is computed")
		}
	}
	keep, _ := m.n.ArgNamed("keepdim").Bool()
	if !constant || float64(count) <= correction {
		return m.no("a size that varies, or too few elements")
	}
	if (len(ds) > 1 || !keep) && symbolic(shape) > 1 {
		return m.no("a shape with several sizes that vary")
	}
	return func(b *builder) {
		t := b.centered(b.rows(b.in(b.n.In(0)), len(ds)))
		t = b.apply(nodeSquare, t, b.like(t))
		t = b.rowSum(t, 1/(float64(count)-correction))
		b.reshapeTo(t, b.out(0))
	}
}

// largest is the maximum along a dimension of constant size whose place nobody asks for: a pool with one window over the rows
// of an image whose channels are what comes behind them. The window passes over NaN; amax and amin, which the official
// lowering leaves to kernels, stay there.
func largest(m *match) emit {
	if !m.firstOnly() {
		return nil
	}
	shape, out := m.in(0).Type.Shape, m.out().Shape
	if len(shape) == 0 {
		return m.no("a tensor without dimensions")
	}
	d, ok := m.dim(1, len(shape))
	if !ok {
		return nil
	}
	count, constant := shape[d].IsConst()
	if !constant || count < 2 || count > maxWindow {
		return m.no("a size that varies, of one element or very many")
	}
	rows := []sym.Expr{product(shape[:d]), sym.Const(count), sym.Const(1), product(shape[d+1:])}
	if symbolic(rows) > 1 || symbolic(out) > 1 {
		return m.no("a shape with several sizes that vary")
	}
	return func(b *builder) {
		x := b.reshaped(b.in(b.n.In(0)), rows...)
		t := b.resized(x, []sym.Expr{rows[0], sym.Const(1), sym.Const(1), rows[3]})
		n := xnnpack.XNNMaxPooling2d{
			PoolingHeight: uint32(count), PoolingWidth: 1, StrideHeight: uint32(count), StrideWidth: 1,
			DilationHeight: 1, DilationWidth: 1, InputID: x, OutputID: t, Flags: flagKeepDims,
		}
		b.node(&n)
		b.reshapeTo(t, b.out(0))
	}
}

// maxWindow bounds the window of a pool.
const maxWindow = 1 << 20
