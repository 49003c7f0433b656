package passes_test

import (
	"testing"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ir/verify"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/passes"
)

// large makes a chain of blocks with views, writes to a buffer, a weight that everybody uses, and work for most passes.
func large(tb testing.TB, blocks int) *ir.Graph {
	tb.Helper()
	g := ir.NewGraph("f", nil)
	w := g.AddInput("w", ir.InputParam, "w", ir.StaticType(ops.Float32, 4, 4)).Value
	buf := g.AddInput("b", ir.InputBuffer, "b", ir.StaticType(ops.Float32, 8, 4)).Value
	x := g.AddInput("x", ir.InputUser, "", ir.StaticType(ops.Float32, 2, 4)).Value
	b := ir.NewBuilder(g, nil, &ir.Origin{Module: "m"})
	inplace := func(id ops.ID, args ...ir.Arg) {
		n := op.New(b, id, args)
		if n == nil {
			tb.Fatal(b.Err)
		}
	}
	for i := range blocks {
		x = op.AtenSiluDefault(b, op.AtenLinearDefault(b, x, w))
		x = op.AtenViewDefault(b, op.AtenViewDefault(b, x, ir.Ints(8)), ir.Ints(2, 4))
		x = op.AtenTransposeInt(b, op.AtenTransposeInt(b, x, ir.Int(0), ir.Int(1)), ir.Int(0), ir.Int(1))
		row := op.AtenSelectInt(b, buf, ir.Int(0), ir.Int(int64(i%8)))
		inplace(ops.AtenAddInplaceTensor, ir.Ref(row), ir.Ref(op.AtenSelectInt(b, x, ir.Int(0), ir.Int(0))), ir.Int(1))
		x = op.AtenAddTensor(b, x, op.AtenReluDefault(b, x))
		op.AtenReluDefault(b, x)
	}
	if b.Err != nil {
		tb.Fatal(b.Err)
	}
	g.SetOutputs([]ir.Output{{}}, []ir.Arg{ir.Ref(x)})
	return g
}

func TestLargeGraph(t *testing.T) {
	g := large(t, 200)
	if err := passes.Portable().Run(&passes.Context{Hooks: []passes.Hook{passes.VerifyHook()}}, g); err != nil {
		t.Fatal(err)
	}
	if ds := verify.Graph(g); len(ds) > 0 {
		t.Error(ds)
	}
}

// BenchmarkPortable tells whether the pipeline grows with the number of nodes.
func BenchmarkPortable(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		b.Run(map[int]string{1000: "12k", 10000: "120k"}[n], func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				g := large(b, n)
				b.StartTimer()
				if err := passes.Portable().Run(&passes.Context{}, g); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
