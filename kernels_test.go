package lathe_test

import (
	"context"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lathe-ml/lathe"
	"github.com/lathe-ml/lathe/internal/etrt"
	"github.com/lathe-ml/lathe/internal/mlxrt"
	"github.com/lathe-ml/lathe/internal/needs"
)

// A kernel is begun, filled in, and serves the operator in a compile; without it the operator has no way to run.
func TestKernels(t *testing.T) {
	dir := t.TempDir()
	in, out, kernels := filepath.Join(dir, "m.ir"), filepath.Join(dir, "m.pte"), filepath.Join(dir, "kernels")
	src := "graph @forward(%x: f32[4, 3] user) -> (%1, %2) {\n  %1, %2 = aten.cummax(%x, 1): f32[4, 3], i64[4, 3]\n}\n"
	if err := os.WriteFile(in, []byte(src), 0o644); err != nil {
		t.Fatal(err)
	}
	names, err := lathe.KernelStub("aten.cummax", kernels)
	if err != nil || len(names) != 2 {
		t.Fatalf("%v: %v", names, err)
	}
	if _, err := lathe.KernelStub("aten.cummax", kernels); err == nil {
		t.Error("a stub was written over")
	}
	o := lathe.Options{Inputs: []lathe.Input{{Path: in}}, Output: out, Backend: "mlx", Kernels: kernels}
	rep, err := lathe.Compile(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(rep.Regions) != 1 || len(rep.Outside) != 0 {
		t.Errorf("%d regions, outside %v", len(rep.Regions), rep.Outside)
	}
	b, err := os.ReadFile(out)
	if err != nil || !strings.Contains(string(b), "thread_position_in_grid") {
		t.Errorf("the program does not hold the kernel: %v", err)
	}
	o.Backend = "portable"
	if _, err := lathe.Compile(context.Background(), o); err == nil || !strings.Contains(err.Error(), "takes no Metal kernels") {
		t.Errorf("%v", err)
	}
	if _, err := lathe.KernelStub("aten.add_.Tensor", kernels); err == nil || !strings.Contains(err.Error(), "writes to an argument") {
		t.Errorf("%v", err)
	}
}

// A kernel that was filled in runs in a compiled program between nodes of MLX's own, at any size: as C++ here, thread by
// thread. Its threads take a row each, it reads a setting and writes two results of different types.
func TestKernelRuns(t *testing.T) {
	rt, err := mlxrt.Open()
	needs.Installed(t, "MLX", err)
	needs.Compiler(t)
	dir := t.TempDir()
	kernels := filepath.Join(dir, "kernels")
	names, err := lathe.KernelStub("aten.cummax", kernels)
	if err != nil {
		t.Fatal(err)
	}
	edit := func(ext, from, to string) {
		t.Helper()
		for _, n := range names {
			if filepath.Ext(n) != ext {
				continue
			}
			b, err := os.ReadFile(n)
			if err != nil || !strings.Contains(string(b), from) {
				t.Fatalf("%s has no %q: %v", n, from, err)
			}
			if err := os.WriteFile(n, []byte(strings.Replace(string(b), from, to, 1)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	edit(".json", `"threads": "element"`, `"threads": "row"`)
	edit(".metal", "// values[i] = self[i];\n", `static_assert(dim == 1, "the last dimension");
int n = self_shape[1], best = 0;
for (int j = 0; j < n; ++j) {
  if (self[i * n + j] >= self[i * n + best]) best = j;
  values[i * n + j] = self[i * n + best];
  indices[i * n + j] = best;
}
`)
	in, out := filepath.Join(dir, "m.ir"), filepath.Join(dir, "m.pte")
	src := `sym s0 in [1, 8] hint 2
graph @forward(%x: f32[s0, 4] user) -> (%3, %4) {
  %1 = aten.neg(%x): f32[s0, 4]
  %2, %4 = aten.cummax(%1, 1): f32[s0, 4], i64[s0, 4]
  %3 = aten.mul.Tensor(%2, 2.0): f32[s0, 4]
}
`
	if err := os.WriteFile(in, []byte(src), 0o644); err != nil {
		t.Fatal(err)
	}
	o := lathe.Options{Inputs: []lathe.Input{{Path: in}}, Output: out, Backend: "mlx", Kernels: kernels}
	if _, err := lathe.Compile(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	p, err := rt.Load(t.Context(), out)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, c := range []struct {
		x, values []float32
		indices   []int64
	}{
		{[]float32{3, 1, 2, 0}, []float32{-6, -2, -2, 0}, []int64{0, 1, 1, 3}},
		{[]float32{0, 0, 1, -1, -4, 5, -4, 2}, []float32{0, 0, 0, 2, 8, 8, 8, 8}, []int64{0, 1, 1, 3, 0, 0, 2, 2}},
	} {
		shape := []int64{int64(len(c.x) / 4), 4}
		x := &etrt.Tensor{DType: etrt.F32, Shape: shape}
		values := &etrt.Tensor{DType: etrt.F32, Shape: shape}
		indices := &etrt.Tensor{DType: etrt.I64, Shape: shape}
		for i, f := range c.x {
			x.Data = binary.LittleEndian.AppendUint32(x.Data, math.Float32bits(f))
			values.Data = binary.LittleEndian.AppendUint32(values.Data, math.Float32bits(c.values[i]))
			indices.Data = binary.LittleEndian.AppendUint64(indices.Data, uint64(c.indices[i]))
		}
		got, err := p.Run("forward", []etrt.Value{etrt.TensorValue(x)})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []*etrt.Tensor{values, indices} {
			if err := etrt.CompareTensors(got[i].Tensor, want, 0, 0); err != nil {
				t.Errorf("%d rows, result %d: %v", shape[0], i, err)
			}
		}
	}
}
