package mlxpayload

import (
	"bytes"
	"encoding/binary"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/kr/pretty"

	"github.com/lathe-ml/lathe/codegen/fb"
	"github.com/lathe-ml/lathe/codegen/fb/mlx"
)

func lit(v int64) *mlx.IntOrVid  { return &mlx.IntOrVid{Literal: v} }
func vid(i uint32) *mlx.IntOrVid { return &mlx.IntOrVid{Vid: &mlx.Vid{Idx: i}, IsVid: true} }

// sample is a small graph with branches, values, optional slots and vectors of slots.
func sample() *mlx.MLXGraph {
	g := mlx.NewMLXGraph()
	g.Version = "1"
	g.NumConstantTensors, g.NumInputTensors, g.NumOutputTensors, g.NumTempTensors, g.NumValues = 1, 1, 1, 1, 2
	t := func(i uint32) mlx.Tid { return mlx.Tid{Idx: i} }
	scale := float32(0.5)
	mm := mlx.NewAddmmNode()
	mm.Mat1, mm.Mat2, mm.Out, mm.Bias = t(1), t(0), t(3), &mlx.Tid{Idx: 0}
	rope := mlx.NewRopeNode()
	rope.X, rope.Out, rope.Offset = t(1), t(3), &mlx.VidOrTid{Vid: &mlx.Vid{Idx: 1}, IsVid: true}
	ops := func(ops ...mlx.OpNode) *mlx.InstructionChain {
		c := &mlx.InstructionChain{}
		for _, o := range ops {
			c.Instructions = append(c.Instructions, &mlx.Instruction{Op: o})
		}
		return c
	}
	g.InstructionChains = []*mlx.InstructionChain{
		ops(
			&mlx.SymSizeNode{A: t(1), Dim: 0, Out: mlx.Vid{Idx: 0}},
			mm,
			&mlx.ReshapeNode{X: t(3), Out: t(3), Shape: []*mlx.IntOrVid{vid(0), lit(-1)}},
			&mlx.ConcatenateNode{Tensors: []mlx.Tid{t(3), t(1)}, Out: t(3), Axis: -1},
			rope,
			&mlx.TakeNode{X: t(3), Out: t(3), Index: &mlx.IntOrVidOrTid{Kind: 2, Tid: &mlx.Tid{Idx: 1}}},
			&mlx.UpdateAndAttendNode{Q: t(1), K: t(1), V: t(1), Position: t(1), Out: t(2), Scale: &scale},
			&mlx.IfNode{Cond: vid(1), ThenChainIdx: 1, ElseChainIdx: 2},
		),
		ops(&mlx.IdCopyNode{X: t(3), Out: t(2)}),
		ops(&mlx.NoopNode{}),
	}
	g.InputMap = []*mlx.SlotVariant{{Idx: 1}}
	g.OutputMap = []*mlx.SlotVariant{{Idx: 2}, {Idx: 1, SlotType: mlx.SlotTypeIntValueSlot}}
	g.MutableBufferMap = []*mlx.SlotVariant{}
	g.NamedSlots = []*mlx.NamedSlot{{Name: "w", Slot: &mlx.SlotVariant{Idx: 0}}}
	g.TensorMeta = []*mlx.TensorMeta{{Shape: []*mlx.ShapeDim{{Value: -1, MinValue: 1, MaxValue: 8}, {Value: 3}}, ScalarType: 6, DimOrder: []byte{0, 1}}}
	return g
}

func TestRoundTrip(t *testing.T) {
	b, err := (&Payload{Graph: sample(), Data: []byte{9}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Unmarshal(b)
	if err != nil {
		t.Fatal(err)
	}
	if want := (&Payload{Graph: sample(), Data: []byte{9}}); !reflect.DeepEqual(got, want) {
		t.Error(pretty.Diff(want, got))
	}
	off := binary.LittleEndian.Uint64(b[8:])
	if string(b[:8]) != "\x00\x00\x00\x00MLX0" || off%16 != 0 || off+1 != uint64(len(b)) || binary.LittleEndian.Uint64(b[16:]) != 1 {
		t.Errorf("header % x of %d bytes", b[:24], len(b))
	}
}

// Kernels that several nodes run are written once; those that differ at their very end are all there.
func TestStringsOnce(t *testing.T) {
	prefix := strings.Repeat("float y = x * 2.0f; ", 100)
	header := "#include <metal_math> // for all of them"
	bytesFor := func(ends ...string) []byte {
		g := sample()
		for _, end := range ends {
			k := mlx.NewMetalKernelNode()
			k.Name, k.Source, k.Header = "double_it", prefix+end, header
			k.Outputs, k.Inputs = []mlx.Tid{{Idx: 2}}, []mlx.Tid{{Idx: 1}}
			g.InstructionChains[0].Instructions = append(g.InstructionChains[0].Instructions, &mlx.Instruction{Op: k})
		}
		b, err := (&Payload{Graph: g}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	same := bytesFor("same", "same", "same", "same", "same")
	if n, h := bytes.Count(same, []byte(prefix)), bytes.Count(same, []byte(header)); n != 1 || h != 1 {
		t.Errorf("five equal kernels: %d sources, %d headers", n, h)
	}
	other := bytesFor("a", "b", "c", "a")
	for _, end := range []string{"a", "b", "c"} {
		if n := bytes.Count(other, []byte(prefix+end+"\x00")); n != 1 {
			t.Errorf("source with the end %q stands there %d times", end, n)
		}
	}
}

// TestOfficial reads a payload that the official lowering wrote.
func TestOfficial(t *testing.T) {
	b, err := os.ReadFile("testdata/vit.bin")
	if err != nil {
		t.Fatal(err)
	}
	p, err := Unmarshal(b)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(p.Graph.InstructionChains[0].Instructions); n != 78 {
		t.Errorf("%d instructions, want 78", n)
	}
	if n := len(p.Graph.NamedSlots); n != 44 {
		t.Errorf("%d named slots, want 44: 42 weights, an input, an output", n)
	}
	c, err := p.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Unmarshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(p, again) {
		t.Error(pretty.Diff(p, again))
	}
}

func TestRefuses(t *testing.T) {
	op := func(g *mlx.MLXGraph, i int) mlx.OpNode { return g.InstructionChains[0].Instructions[i].Op }
	for _, c := range []struct {
		want string
		edit func(g *mlx.MLXGraph)
	}{
		{"instructions[1] AddmmNode: mat1: tensor slot 4 of 4", func(g *mlx.MLXGraph) { op(g, 1).(*mlx.AddmmNode).Mat1.Idx = 4 }},
		{"bias: tensor slot 9 of 4", func(g *mlx.MLXGraph) { op(g, 1).(*mlx.AddmmNode).Bias.Idx = 9 }},
		{"out: value slot 2 of 2", func(g *mlx.MLXGraph) { op(g, 0).(*mlx.SymSizeNode).Out.Idx = 2 }},
		{"shape: [0]: value slot 5 of 2", func(g *mlx.MLXGraph) { op(g, 2).(*mlx.ReshapeNode).Shape[0].Vid.Idx = 5 }},
		{"shape: [0]: no value slot", func(g *mlx.MLXGraph) { op(g, 2).(*mlx.ReshapeNode).Shape[0].Vid = nil }},
		{"tensors: [1]: tensor slot 7", func(g *mlx.MLXGraph) { op(g, 3).(*mlx.ConcatenateNode).Tensors[1].Idx = 7 }},
		{"offset: no tensor slot", func(g *mlx.MLXGraph) { op(g, 4).(*mlx.RopeNode).Offset.IsVid = false }},
		{"index: kind 3", func(g *mlx.MLXGraph) { op(g, 5).(*mlx.TakeNode).Index.Kind = 3 }},
		{"RopeNode.offset is required", func(g *mlx.MLXGraph) { op(g, 4).(*mlx.RopeNode).Offset = nil }},
		{"else_chain_idx: chain 3 of 3", func(g *mlx.MLXGraph) { op(g, 7).(*mlx.IfNode).ElseChainIdx = 3 }},
		{"main_chain_idx: chain 3 of 3", func(g *mlx.MLXGraph) { g.MainChainIdx = 3 }},
		{"init_chain_idx: chain -2", func(g *mlx.MLXGraph) { g.InitChainIdx = -2 }},
		{"output_map[1]: value slot 2 of 2", func(g *mlx.MLXGraph) { g.OutputMap[1].Idx = 2 }},
		{`named_slots[0] "w": tensor slot 4`, func(g *mlx.MLXGraph) { g.NamedSlots[0].Slot.Idx = 4 }},
		{"tensor_meta has 4 entries for 3", func(g *mlx.MLXGraph) {
			for range 3 {
				g.TensorMeta = append(g.TensorMeta, g.TensorMeta[0])
			}
		}},
		{"instructions[0] is nil", func(g *mlx.MLXGraph) { g.InstructionChains[2].Instructions[0].Op = nil }},
	} {
		g := sample()
		c.edit(g)
		if _, err := (&Payload{Graph: g}).Marshal(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
}

func TestDamage(t *testing.T) {
	good, err := (&Payload{Graph: sample()}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for i := range good {
		for _, x := range []byte{1, 0x80, 0xff} {
			b := bytes.Clone(good)
			b[i] ^= x
			if p, err := Unmarshal(b); err == nil {
				if _, err := p.Marshal(); err != nil {
					t.Errorf("byte %d ^ %#x: read, but not written: %v", i, x, err)
				}
			}
		}
		if _, err := Unmarshal(good[:i]); err == nil {
			t.Errorf("the first %d bytes of %d are read", i, len(good))
		}
	}
}

func FuzzUnmarshal(f *testing.F) {
	b, err := (&Payload{Graph: sample()}).Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Unmarshal(b)
		if err != nil {
			return
		}
		c, err := p.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		q, err := Unmarshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if x, y := fb.AppendJSON(nil, p), fb.AppendJSON(nil, q); !bytes.Equal(x, y) {
			t.Fatalf("changed:\n%s\n%s", x, y)
		}
	})
}
