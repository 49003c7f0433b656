package etrt_test

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-ml/lathe/internal/etrt"
	"github.com/lathe-ml/lathe/internal/etrt/ettest"
)

func i32(shape []int64, vs ...int32) *etrt.Tensor {
	t := &etrt.Tensor{DType: etrt.I32, Shape: shape}
	for _, v := range vs {
		t.Data = binary.LittleEndian.AppendUint32(t.Data, uint32(v))
	}
	return t
}

func ints(t *etrt.Tensor) []int32 {
	var vs []int32
	for b := t.Data; len(b) >= 4; b = b[4:] {
		vs = append(vs, int32(binary.LittleEndian.Uint32(b)))
	}
	return vs
}

func TestDimOrder(t *testing.T) {
	for _, tc := range []struct {
		shape, strides []int64
		want           []uint8 // nil: refused
	}{
		{[]int64{2, 3}, nil, []uint8{0, 1}},
		{[]int64{2, 3}, []int64{1, 2}, []uint8{1, 0}},
		{[]int64{2, 3, 4, 5}, []int64{60, 1, 15, 3}, []uint8{0, 2, 3, 1}},
		{[]int64{2, 1}, []int64{1, 7}, []uint8{0, 1}}, // a stride of a single element says nothing
		{[]int64{2, 3}, []int64{6, 2}, nil},           // gaps
		{[]int64{2, 3}, []int64{0, 1}, nil},           // broadcast
		{[]int64{0, 3}, []int64{9, 9}, []uint8{0, 1}},
	} {
		got, err := (&etrt.Tensor{Shape: tc.shape, Strides: tc.strides}).DimOrder()
		if (err != nil) != (tc.want == nil) || err == nil && !slices.Equal(got, tc.want) {
			t.Errorf("%v %v: %v %v, want %v", tc.shape, tc.strides, got, err, tc.want)
		}
	}
}

func TestPermute(t *testing.T) {
	in := []byte{0, 1, 2, 3, 4, 5} // index order of a 2x3
	mem := etrt.Permute(in, 1, []int64{2, 3}, []uint8{1, 0}, false)
	if want := []byte{0, 3, 1, 4, 2, 5}; !slices.Equal(mem, want) {
		t.Errorf("memory order %v, want %v", mem, want)
	}
	if back := etrt.Permute(mem, 1, []int64{2, 3}, []uint8{1, 0}, true); !slices.Equal(back, in) {
		t.Errorf("back %v", back)
	}
}

func TestCallKernel(t *testing.T) {
	rt := ettest.Open(t)
	p, err := rt.Start(context.Background(), etrt.WithThreads(1))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	out := i32([]int64{2}, 0, 0)
	got, err := p.CallKernel("aten::add.out", []etrt.Value{
		etrt.TensorValue(i32([]int64{2}, 1, 2)), etrt.TensorValue(i32([]int64{2}, 10, 20)), etrt.IntValue(2), etrt.TensorValue(out),
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []int32{21, 42}; !slices.Equal(ints(got[3].Tensor), want) {
		t.Errorf("add: %v, want %v", ints(got[3].Tensor), want)
	}
	got, err = p.CallKernel("aten::permute_copy.out", []etrt.Value{
		etrt.TensorValue(i32([]int64{2, 3}, 0, 1, 2, 3, 4, 5)), etrt.IntsValue([]int64{1, 0}), etrt.TensorValue(i32([]int64{3, 2}, 0, 0, 0, 0, 0, 0)),
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []int32{0, 3, 1, 4, 2, 5}; !slices.Equal(ints(got[2].Tensor), want) {
		t.Errorf("permute_copy: %v, want %v", ints(got[2].Tensor), want)
	}
	var e *etrt.Error
	if _, err := p.CallKernel("aten::no_such.out", []etrt.Value{etrt.None()}); !errors.As(err, &e) || e.Name != etrt.OperatorMissing {
		t.Errorf("missing kernel: %v", err)
	}
	// A kernel that is handed the wrong kind of value aborts. That must end as an error, here and for whoever calls next.
	_, err = p.CallKernel("aten::permute_copy.out", []etrt.Value{etrt.IntValue(1), etrt.IntValue(1), etrt.IntValue(1)})
	if !errors.As(err, &e) || !strings.Contains(e.ExitInfo, "abort") || e.Log == "" {
		t.Errorf("aborting kernel: %v", err)
	}
	if _, again := p.CallKernel("aten::add.out", []etrt.Value{etrt.None()}); !errors.Is(again, err) {
		t.Errorf("after the abort: %v", again)
	}
}

func TestLoadRefusesDamage(t *testing.T) {
	rt := ettest.Open(t)
	path := filepath.Join(t.TempDir(), "x.pte")
	if err := os.WriteFile(path, make([]byte, 256), 0o666); err != nil {
		t.Fatal(err)
	}
	var e *etrt.Error
	if _, err := rt.Load(context.Background(), path); !errors.As(err, &e) || e.Name != etrt.InvalidProgram || e.Stage != "load program" {
		t.Errorf("%v", err)
	}
	if _, err := rt.Load(context.Background(), path+".none"); !errors.As(err, &e) || e.Name != "AccessFailed" {
		t.Errorf("%v", err)
	}
}

func TestKernels(t *testing.T) {
	ks, err := ettest.Open(t).Kernels(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(ks, etrt.Kernel{Name: "aten::add.out"}) {
		t.Errorf("no aten::add.out among %d kernels", len(ks))
	}
}
