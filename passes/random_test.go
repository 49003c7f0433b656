package passes_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/lathe-ml/lathe/golden"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ir/text"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/passes"
)

// mutating makes a random program of views, copies, pure operators and writes through views of inputs and buffers.
func mutating(r *rand.Rand, steps int) (*ir.Graph, error) {
	g := ir.NewGraph("f", nil)
	b := ir.NewBuilder(g, nil, nil)
	vals := []*ir.Value{
		g.AddInput("b0", ir.InputBuffer, "b0", ir.StaticType(ops.Float32, 2, 6)).Value,
		g.AddInput("b1", ir.InputBuffer, "b1", ir.StaticType(ops.Float32, 3, 2, 2)).Value,
		g.AddInput("x", ir.InputUser, "", ir.StaticType(ops.Float32, 4, 3)).Value,
	}
	pick := func() *ir.Value { return vals[r.IntN(len(vals))] }
	run := func(id ops.ID, args ...ir.Arg) []*ir.Value {
		n := op.New(b, id, args)
		if n == nil {
			return nil
		}
		return n.Outs
	}
	for range steps {
		v := pick()
		rank := v.Type.Rank()
		sizes, _ := v.Type.Sizes()
		dim := int64(0)
		if rank > 0 {
			dim = int64(r.IntN(rank))
		}
		var outs []*ir.Value
		switch k := r.IntN(17); {
		case k == 0 && rank > 0:
			outs = run(ops.AtenSelectInt, ir.Ref(v), ir.Int(dim), ir.Int(r.Int64N(sizes[dim])))
		case k == 1 && rank > 0:
			lo := r.Int64N(sizes[dim])
			hi := lo + 1 + r.Int64N(sizes[dim]-lo)
			outs = run(ops.AtenSliceTensor, ir.Ref(v), ir.Int(dim), ir.Int(lo), ir.Int(hi), ir.Int(1+r.Int64N(2)))
		case k == 2 && rank > 1:
			outs = run(ops.AtenTransposeInt, ir.Ref(v), ir.Int(dim), ir.Int(int64(r.IntN(rank))))
		case k == 3:
			n, _ := v.Type.Numel().IsConst()
			if n%2 == 0 {
				outs = run(ops.AtenReshapeDefault, ir.Ref(v), ir.Ints(n/2, 2))
			} else {
				outs = run(ops.AtenReshapeDefault, ir.Ref(v), ir.Ints(-1))
			}
		case k == 4:
			outs = run(ops.AtenUnsqueezeDefault, ir.Ref(v), ir.Int(dim))
		case k == 5 && rank > 0 && sizes[dim] > 1:
			outs = run(ops.AtenChunkDefault, ir.Ref(v), ir.Int(2), ir.Int(dim))
		case k == 6 && rank > 0 && sizes[dim] > 1:
			outs = run(ops.AtenUnbindInt, ir.Ref(v), ir.Int(dim))
		case k == 7 && rank > 1:
			outs = run(ops.AtenDiagonalDefault, ir.Ref(v), ir.Int(0), ir.Int(0), ir.Int(int64(rank-1)))
		case k == 8:
			outs = run(ops.AtenCloneDefault, ir.Ref(v), ir.None)
		case k == 9:
			outs = run(ops.AtenContiguousDefault, ir.Ref(v), ir.MemoryFormat("contiguous_format"))
		case k == 10:
			outs = run(ops.AtenReluDefault, ir.Ref(v))
		case k == 11:
			outs = run(ops.AtenMulInplaceScalar, ir.Ref(v), ir.Float(0.5+r.Float64()))
		case k == 12:
			outs = run(ops.AtenFillInplaceScalar, ir.Ref(v), ir.Float(r.Float64()))
		case k == 13:
			// Any tensor of the same shape, itself or a view of it included.
			for range 8 {
				if w := pick(); ir.EqualShape(w.Type.Shape, v.Type.Shape) {
					// Torch forbids partly overlapping operands; values that are copied first cannot overlap.
					c := run(ops.AtenCloneDefault, ir.Ref(w), ir.None)
					if c != nil {
						outs = run(ops.AtenAddInplaceTensor, ir.Ref(v), ir.Ref(c[0]), ir.Int(1))
					}
					break
				}
			}
		case k == 14:
			outs = run(ops.AtenDetachInplaceDefault, ir.Ref(v))
		case k == 16 && v.Type.Contiguous():
			if n, _ := v.Type.Numel().IsConst(); n >= 4 {
				outs = run(ops.AtenAsStridedDefault, ir.Ref(v), ir.Ints(2, 2), ir.Ints(1+r.Int64N(2), 1), ir.None)
			}
		case k == 15 && rank > 0:
			outs = run(ops.AtenUnsqueezeInplaceDefault, ir.Ref(run(ops.AtenCloneDefault, ir.Ref(v), ir.None)[0]), ir.Int(dim))
		}
		if b.Err != nil {
			return nil, b.Err
		}
		vals = append(vals, outs...)
	}
	var outs []ir.Output
	var args []ir.Arg
	for range 4 {
		outs, args = append(outs, ir.Output{}), append(args, ir.Ref(pick()))
	}
	g.SetOutputs(outs, args)
	return g, nil
}

// Programs that write through views in all ways compute the same without mutation, and after the whole pipeline.
func TestRandomMutation(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		g, err := mutating(r, 6+r.IntN(25))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		src := text.String(g)
		for _, pipe := range []passes.Pipeline{{passes.Functionalize}, passes.Portable()} {
			before, err := text.Parse(src, text.Options{})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			after, err := text.Parse(src, text.Options{})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			fail := func(err error) {
				t.Fatalf("seed %d, %s: %v\n%s\nbecame\n%s", seed, pipe, err, src, text.String(after))
			}
			if err := pipe.Run(&passes.Context{Hooks: []passes.Hook{passes.VerifyHook()}}, after); err != nil {
				fail(err)
			}
			for n := range after.Nodes() {
				if n.Info().Mutates {
					fail(fmt.Errorf("%s is left", n.OpName()))
				}
			}
			if err := golden.Compare(before, after, golden.Evaluation{RTol: 1e-5, ATol: 1e-6, Seed: seed}); err != nil {
				fail(err)
			}
		}
	}
}
