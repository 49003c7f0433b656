package infer_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/infer"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

var someDTypes = []ops.DType{ops.Float32, ops.Float32, ops.Float32, ops.Int64, ops.Int64, ops.Bool, ops.BFloat16, ops.Int8, ops.Uint8, ops.Complex64, ops.Uint32, ops.Float8E4M3FN}

func randomTensor(r *rand.Rand) *ir.Value {
	t := ir.Type{DType: someDTypes[r.IntN(len(someDTypes))]}
	for range r.IntN(6) {
		if r.IntN(5) == 0 {
			t.Shape = append(t.Shape, sym.Symbol([]string{"s0", "s1", "u0"}[r.IntN(3)]))
		} else {
			t.Shape = append(t.Shape, sym.Const(int64(r.IntN(5))))
		}
	}
	if r.IntN(3) == 0 {
		for range t.Shape {
			t.Strides = append(t.Strides, sym.Const(int64(r.IntN(9))))
		}
	}
	return &ir.Value{Type: t}
}

func randomGraph(r *rand.Rand) *ir.Graph {
	g := ir.NewGraph("nested", nil)
	for i := range r.IntN(4) {
		g.AddInput(fmt.Sprintf("a%d", i), ir.InputOperand, "", randomTensor(r).Type)
	}
	var args []ir.Arg
	for _, in := range g.Inputs {
		args = append(args, ir.RefAny(in.Value))
	}
	if r.IntN(2) == 0 {
		args = append(args, ir.None)
	}
	g.SetOutputs(make([]ir.Output, len(args)), args)
	return g
}

func randomArg(r *rand.Rand, a *ops.Arg, list bool) ir.Arg {
	if list {
		var l []ir.Arg
		for range r.IntN(5) {
			l = append(l, randomArg(r, a, false))
		}
		return ir.List(l...)
	}
	typ := a.Type
	if r.IntN(12) == 0 { // something else altogether
		typ = ops.ArgType(r.IntN(int(ops.TAny) + 1))
	}
	if a.Opt && r.IntN(2) == 0 || r.IntN(40) == 0 {
		return ir.None
	}
	switch typ {
	case ops.TTensor:
		if r.IntN(10) == 0 {
			return ir.Float(1.5)
		}
		return ir.RefAny(randomTensor(r))
	case ops.TInt:
		if r.IntN(8) == 0 {
			return ir.SymInt(sym.Symbol("s0"))
		}
		return ir.Int(int64(r.IntN(9) - 3))
	case ops.TFloat:
		return ir.Float(r.NormFloat64())
	case ops.TBool:
		return ir.Bool(r.IntN(2) == 0)
	case ops.TScalar:
		return []ir.Arg{ir.Int(2), ir.Float(0.5), ir.Bool(true), ir.Complex(1, 2), ir.Float(-3)}[r.IntN(5)]
	case ops.TStr:
		return ir.Str([]string{"", "same", "reflect", "circular", "ij,jk->ik", "...i,i", "xy", "floor", "ASYMMETRIC"}[r.IntN(9)])
	case ops.TDType:
		return ir.DTypeArg(someDTypes[r.IntN(len(someDTypes))])
	case ops.TLayout:
		return ir.Layout("strided")
	case ops.TMemoryFormat:
		return ir.MemoryFormat([]string{"contiguous_format", "preserve_format", "channels_last", "channels_last_3d", "odd"}[r.IntN(5)])
	case ops.TDevice:
		return ir.Device("cpu")
	case ops.TGraph:
		return ir.GraphArg(randomGraph(r))
	}
	return []ir.Arg{ir.Int(3), ir.Float(2), ir.Bool(true), ir.RefAny(randomTensor(r)), ir.List(ir.RefAny(randomTensor(r))), ir.None}[r.IntN(6)]
}

// TestOddArguments gives every rule arguments that fit the schema badly: it may refuse them, it may not panic.
func TestOddArguments(t *testing.T) {
	g := ir.NewGraph("test", nil)
	for _, s := range []sym.Sym{
		{Name: "s0", Range: sym.Range{Min: 2, Max: 64}, Hint: 4, HasHint: true},
		{Name: "s1", Range: sym.Range{Min: 1, Max: 9}, Hint: 3, HasHint: true},
		{Name: "u0", Range: sym.Range{Min: 0, Max: 100}},
	} {
		if err := g.Syms.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	refused, given := 0, 0
	for _, id := range ops.All() {
		if !infer.Has(id) {
			continue
		}
		r := rand.New(rand.NewPCG(1, uint64(id)))
		s := &id.Info().Schema
		for range 60 {
			args := make([]ir.Arg, len(s.Args))
			for i := range s.Args {
				args[i] = randomArg(r, &s.Args[i], s.Args[i].List)
			}
			func() {
				defer func() {
					if p := recover(); p != nil {
						t.Errorf("%s panics: %v", id, p)
					}
				}()
				if _, err := infer.Predict(g, id, args); err != nil {
					refused++
				} else {
					given++
				}
			}()
		}
	}
	t.Logf("%d refused, %d given a type", refused, given)
	if refused == 0 || given == 0 {
		t.Error("the arguments are all of one kind")
	}
}
