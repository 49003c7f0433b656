package lathe_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lathe-ml/lathe"
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
