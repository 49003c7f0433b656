package mlxrt

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-ml/lathe/codegen/fb/mlx"
	"github.com/lathe-ml/lathe/internal/etrt"
)

func f32(shape []int64, vs ...float32) etrt.Value {
	t := &etrt.Tensor{DType: etrt.F32, Shape: shape}
	for _, v := range vs {
		t.Data = binary.LittleEndian.AppendUint32(t.Data, math.Float32bits(v))
	}
	return etrt.TensorValue(t)
}

func i64(shape []int64, vs ...int64) etrt.Value {
	t := &etrt.Tensor{DType: etrt.I64, Shape: shape}
	for _, v := range vs {
		t.Data = binary.LittleEndian.AppendUint64(t.Data, uint64(v))
	}
	return etrt.TensorValue(t)
}

func lit(v int64) *mlx.IntOrVid { return &mlx.IntOrVid{Literal: v} }

func lits(vs ...int64) []*mlx.IntOrVid {
	var l []*mlx.IntOrVid
	for _, v := range vs {
		l = append(l, lit(v))
	}
	return l
}

func vid(i uint32) *mlx.IntOrVid { return &mlx.IntOrVid{IsVid: true, Vid: &mlx.Vid{Idx: i}} }
func tid(i uint32) mlx.Tid       { return mlx.Tid{Idx: i} }

// payload makes a graph of inputs 0…, then outputs, then a mutable buffer of four floats, then ten temps; other chains
// follow the main one.
func payload(inputs, outputs int, chains ...[]mlx.OpNode) *mlx.MLXGraph {
	g := &mlx.MLXGraph{
		Version: "1", InitChainIdx: -1, NumInputTensors: uint32(inputs), NumOutputTensors: uint32(outputs),
		NumMutableBufferTensors: 1, NumTempTensors: 10, NumValues: 4,
	}
	for i := range inputs + outputs + 1 {
		s := &mlx.SlotVariant{Idx: uint32(i)}
		switch {
		case i < inputs:
			g.InputMap = append(g.InputMap, s)
		case i < inputs+outputs:
			g.OutputMap = append(g.OutputMap, s)
		default:
			g.MutableBufferMap = append(g.MutableBufferMap, s)
		}
		m := &mlx.TensorMeta{ScalarType: int8(etrt.F32), Shape: []*mlx.ShapeDim{{Value: 4}}}
		if i < inputs+outputs {
			m = nil
		}
		g.TensorMeta = append(g.TensorMeta, m)
	}
	for _, nodes := range chains {
		c := &mlx.InstructionChain{}
		for _, n := range nodes {
			c.Instructions = append(c.Instructions, &mlx.Instruction{Op: n})
		}
		g.InstructionChains = append(g.InstructionChains, c)
	}
	return g
}

// Values are those of the PyTorch operator a node stands for.
func TestNodeValues(t *testing.T) {
	rt := open(t)
	p, err := rt.start(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	x := f32([]int64{2, 3}, 0, 1, 2, 3, 4, 5)
	for i, tc := range []struct {
		name   string
		graph  *mlx.MLXGraph
		in     []etrt.Value
		want   etrt.Value
		refuse string
	}{
		{
			name: "gather along the last axis, an index from the end",
			graph: payload(2, 1, []mlx.OpNode{&mlx.GatherNode{
				X: tid(0), Indices: []mlx.Tid{tid(1)}, Out: tid(2), Axes: []int32{1}, SliceSizes: []int32{2, 1},
			}}),
			in: []etrt.Value{x, i64([]int64{2}, 2, -3)}, want: f32([]int64{2, 2, 1}, 2, 5, 0, 3),
		},
		{
			name: "scatter_add with an index twice",
			graph: payload(3, 1, []mlx.OpNode{&mlx.ScatterAddNode{
				X: tid(0), Indices: tid(1), Updates: tid(2), Out: tid(3), Axis: 1,
			}}),
			in:   []etrt.Value{x, i64([]int64{2, 2}, 0, 0, 2, 1), f32([]int64{2, 2}, 10, 20, 30, 40)},
			want: f32([]int64{2, 3}, 30, 1, 2, 3, 44, 35),
		},
		{
			name: "slice_update with bounds from the end",
			graph: payload(2, 1, []mlx.OpNode{&mlx.SliceUpdateNode{
				Dst: tid(0), Update: tid(1), Out: tid(2), Axis: lit(-1), Start: lit(-2), Stop: lit(math.MaxInt64), Step: 1,
			}}),
			in: []etrt.Value{x, f32([]int64{2, 2}, 7, 8, 9, 10)}, want: f32([]int64{2, 3}, 0, 7, 8, 3, 9, 10),
		},
		{
			name: "index_copy",
			graph: payload(3, 1, []mlx.OpNode{&mlx.IndexCopyNode{
				Dst: tid(0), Update: tid(1), Indices: tid(2), Out: tid(3), Axis: 1,
			}}),
			in: []etrt.Value{x, f32([]int64{2, 2}, 7, 8, 9, 10), i64([]int64{2}, 2, 0)}, want: f32([]int64{2, 3}, 8, 1, 7, 10, 4, 9),
		},
		{
			name: "index_copy outside",
			graph: payload(3, 1, []mlx.OpNode{&mlx.IndexCopyNode{
				Dst: tid(0), Update: tid(1), Indices: tid(2), Out: tid(3), Axis: 1,
			}}),
			in: []etrt.Value{x, f32([]int64{2, 1}, 7, 8), i64([]int64{1}, 3)}, refuse: "index 3 of 3",
		},
		{
			name: "floor division of negative integers",
			graph: payload(2, 1, []mlx.OpNode{
				&mlx.FloorDivideNode{A: tid(0), B: tid(1), Out: tid(4)}, &mlx.AsTypeNode{X: tid(4), Out: tid(2), ScalarType: int8(etrt.I64)},
			}),
			in: []etrt.Value{i64([]int64{4}, 7, -7, 7, -8), i64([]int64{4}, 2, 2, -2, 2)}, want: i64([]int64{4}, 3, -4, -4, -4),
		},
		{
			name: "sizes as values: reshape to (2 * 3) // 2 rows",
			graph: payload(1, 1, []mlx.OpNode{
				&mlx.SymSizeNode{A: tid(0), Dim: -1, Out: mlx.Vid{Idx: 0}},
				&mlx.MultiplyIntNode{A: vid(0), B: lit(2), Out: mlx.Vid{Idx: 1}},
				&mlx.FloorDivideIntNode{A: vid(1), B: lit(2), Out: mlx.Vid{Idx: 2}},
				&mlx.ReshapeNode{X: tid(0), Out: tid(1), Shape: []*mlx.IntOrVid{vid(2), lit(-1)}},
			}),
			in: []etrt.Value{x}, want: f32([]int64{3, 2}, 0, 1, 2, 3, 4, 5),
		},
		{
			name: "an if takes one chain",
			graph: payload(1, 1,
				[]mlx.OpNode{&mlx.IfNode{Cond: lit(0), ThenChainIdx: 1, ElseChainIdx: 2}},
				[]mlx.OpNode{&mlx.NegNode{X: tid(0), Out: tid(1)}},
				[]mlx.OpNode{&mlx.SquareNode{X: tid(0), Out: tid(1)}}),
			in: []etrt.Value{f32([]int64{2}, 2, 3)}, want: f32([]int64{2}, 4, 9),
		},
		{
			name: "a scan stacks what its body leaves",
			graph: payload(2, 1,
				[]mlx.OpNode{
					&mlx.IdCopyNode{X: tid(1), Out: tid(5)},
					&mlx.ScanNode{Originals: []mlx.Tid{tid(0)}, Sliced: []mlx.Tid{tid(4)}, Outputs: []mlx.Tid{tid(2)}, Carry: []mlx.Tid{tid(5)}, BodyChainIdx: 1, ScanAxis: 1},
				},
				[]mlx.OpNode{&mlx.AddNode{A: tid(5), B: tid(4), Out: tid(5)}, &mlx.IdCopyNode{X: tid(5), Out: tid(2)}}),
			in: []etrt.Value{x, f32([]int64{2}, 0, 10)}, want: f32([]int64{2, 3}, 0, 1, 3, 13, 17, 22),
		},
		{
			name:   "an empty range is refused",
			graph:  payload(0, 1, []mlx.OpNode{&mlx.ARangeNode{Out: tid(0), Start: lit(3), Stop: lit(3), Step: lit(1)}}),
			refuse: "arange: invalid dimension 0",
		},
		{
			name:   "a slot nobody wrote",
			graph:  payload(0, 1, []mlx.OpNode{&mlx.NegNode{X: tid(5), Out: tid(0)}}),
			refuse: "tensor 5 is read before it is written",
		},
		{
			name: "full of bools",
			graph: payload(0, 1, []mlx.OpNode{
				&mlx.FullNode{Out: tid(4), Shape: lits(2), V: &mlx.FloatOrVid{Literal: 1}, ScalarType: int8(etrt.Bool)},
				&mlx.BitwiseAndNode{A: tid(4), B: tid(4), Out: tid(5)}, &mlx.AsTypeNode{X: tid(5), Out: tid(0), ScalarType: int8(etrt.I64)},
			}),
			want: i64([]int64{2}, 1, 1),
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := p.load(i, tc.graph, nil)
			var out []etrt.Value
			if err == nil {
				out, err = p.run(i, tc.in, []etrt.Value{{Kind: etrt.KindTensor, Tensor: &etrt.Tensor{DType: wanted(tc.want)}}})
			}
			if tc.refuse != "" {
				var e *Error
				if !errors.As(err, &e) || !strings.Contains(e.Reason, tc.refuse) {
					t.Errorf("%v, want %q", err, tc.refuse)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, want := out[0].Tensor, tc.want.Tensor
			if got.DType != want.DType || !slices.Equal(got.Shape, want.Shape) || string(got.Data) != string(want.Data) {
				t.Errorf("%s%v % x\nwant %s%v % x", got.DType, got.Shape, got.Data, want.DType, want.Shape, want.Data)
			}
		})
	}
}

func wanted(v etrt.Value) etrt.DType {
	if v.Tensor == nil {
		return etrt.F32
	}
	return v.Tensor.DType
}

// A mutable buffer starts as zeros, or as the init chain leaves it, and lasts from call to call.
func TestBuffer(t *testing.T) {
	rt := open(t)
	p, err := rt.start(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	// Input 0, output 1, buffer 2.
	g := payload(1, 1,
		[]mlx.OpNode{&mlx.AddNode{A: tid(2), B: tid(0), Out: tid(2)}, &mlx.IdCopyNode{X: tid(2), Out: tid(1)}},
		[]mlx.OpNode{&mlx.FullNode{Out: tid(2), Shape: lits(4), V: &mlx.FloatOrVid{Literal: 100}, ScalarType: int8(etrt.F32)}})
	for _, init := range []int32{-1, 1} {
		g.InitChainIdx = init
		if err := p.load(0, g, nil); err != nil {
			t.Fatal(err)
		}
		for call := 1; call <= 2; call++ {
			one := f32([]int64{4}, 1, 2, 3, 4)
			out, err := p.run(0, []etrt.Value{one}, []etrt.Value{one})
			if err != nil {
				t.Fatal(err)
			}
			start := float32(0)
			if init == 1 {
				start = 100
			}
			k := float32(call)
			if want := f32([]int64{4}, start+k, start+2*k, start+3*k, start+4*k); string(out[0].Tensor.Data) != string(want.Tensor.Data) {
				t.Errorf("init chain %d, call %d: % x, want % x", init, call, out[0].Tensor.Data, want.Tensor.Data)
			}
		}
	}
}
