package mlxrt

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	fbmlx "github.com/lathe-ml/lathe/codegen/fb/mlx"
	"github.com/lathe-ml/lathe/codegen/mlxpayload"
	"github.com/lathe-ml/lathe/codegen/msl"
	"github.com/lathe-ml/lathe/interp"
	"github.com/lathe-ml/lathe/ir"
	lower "github.com/lathe-ml/lathe/lower/mlx"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/partition"
)

// shim is enough of Metal to run a kernel's body thread by thread as C++.
const shim = `#include <cmath>
#include <cstdint>
#include <cstdio>
typedef unsigned int uint;
namespace metal {
namespace precise {
inline float exp(float x) { return std::exp(x); }
inline float log(float x) { return std::log(x); }
inline float sqrt(float x) { return std::sqrt(x); }
inline float sin(float x) { return std::sin(x); }
inline float cos(float x) { return std::cos(x); }
inline float tanh(float x) { return std::tanh(x); }
}
inline float floor(float x) { return std::floor(x); }
inline float ceil(float x) { return std::ceil(x); }
inline float trunc(float x) { return std::trunc(x); }
}
struct uint3 { uint x, y, z; };
`

// payloadOf lowers a graph with the backend and gives its only region's payload.
func payloadOf(t *testing.T, g *ir.Graph, b lower.Backend) *fbmlx.MLXGraph {
	t.Helper()
	rep, err := partition.Partition(context.Background(), g, b)
	if err != nil {
		t.Fatal(err)
	}
	if len(rep.Regions) != 1 || len(rep.Outside) != 0 {
		t.Fatalf("%d regions, outside %v", len(rep.Regions), rep.Outside)
	}
	raw, err := blobBytes(rep.Regions[0].Node.Attr.(*partition.Lowered).Payload)
	if err != nil {
		t.Fatal(err)
	}
	p, err := mlxpayload.Unmarshal(raw)
	if err != nil {
		t.Fatal(err)
	}
	return p.Graph
}

// A chain of element-wise operators becomes one kernel, whose source, run thread by thread, gives what the interpreter gives.
func TestChainKernels(t *testing.T) {
	cxx, err := exec.LookPath("c++")
	if err != nil {
		t.Skip("SKIPPED, needs a C++ compiler: ", err)
	}
	for i, body := range []string{
		`  %1 = aten.mul.Tensor(%x, %y): f32[6, 5]
  %2 = aten.sigmoid(%1): f32[6, 5]
  %3 = aten.add.Tensor(%2, 0.25): f32[6, 5]
  %4 = aten.exp(%3): f32[6, 5]`,
		`  %1 = aten.lt.Tensor(%x, %y): bool[6, 5]
  %2 = aten.where.self(%1, %x, %y): f32[6, 5]
  %3 = aten.abs(%2): f32[6, 5]
  %4 = aten.maximum(%3, %y): f32[6, 5]`,
		`  %1 = aten.silu(%x): f32[6, 5]
  %2 = aten.relu(%y): f32[6, 5]
  %3 = aten.sub.Tensor(%1, %2): f32[6, 5]
  %4 = aten.div.Tensor(%3, 3.0): f32[6, 5]`,
		`  %1 = aten.neg(%x): f32[6, 5]
  %2 = aten.floor(%1): f32[6, 5]
  %3 = aten.tanh(%2): f32[6, 5]
  %4 = aten.minimum(%3, %y): f32[6, 5]`,
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			src := "graph @forward(%x: f32[6, 5] user, %y: f32[6, 5] user) -> (%4) {\n" + body + "\n}"
			g := payloadOf(t, parse(t, src), lower.Backend{FuseKernels: true})
			in := g.InstructionChains[0].Instructions
			if len(in) != 1 {
				t.Fatalf("%d instructions", len(in))
			}
			n := in[0].Op.(*fbmlx.MetalKernelNode)
			runKernel(t, cxx, n, parse(t, src), 30)
		})
	}
}

// runKernel runs the kernel as C++ on the inputs that the interpreter gets.
func runKernel(t *testing.T, cxx string, n *fbmlx.MetalKernelNode, ref *ir.Graph, threads int) {
	t.Helper()
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(5, 6))
	data := map[string][]byte{}
	var want []interp.Value
	for i, u := range ref.UserInputs() {
		sizes, _ := u.Value.Type.Sizes()
		x := randomTensor(r, ops.Float32, sizes)
		data[n.InputNames[i]] = x.Data
		y, err := interp.FromBytes(ops.Float32, sizes, x.Data)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, y)
	}
	var c strings.Builder
	c.WriteString(shim)
	var params, args []string
	for _, name := range n.InputNames {
		params, args = append(params, "const float* "+name), append(args, name)
		fmt.Fprintf(&c, "static const float %s[] = {", name)
		for b := data[name]; len(b) > 0; b = b[4:] {
			fmt.Fprintf(&c, "%#.9gf,", math.Float32frombits(binary.LittleEndian.Uint32(b)))
		}
		c.WriteString("};\n")
	}
	name := n.OutputNames[0]
	fmt.Fprintf(&c, "static float %s[%d];\n", name, threads)
	fmt.Fprintf(&c, "void kernel(%s, float* %s, uint3 thread_position_in_grid) {\n%s}\n", strings.Join(params, ", "), name, n.Source)
	fmt.Fprintf(&c, "int main() { for (uint i = 0; i < %d; ++i) kernel(%s, %s, {i, 0, 0}); fwrite(%s, 4, %d, stdout); }\n", threads, strings.Join(args, ", "), name, name, threads)
	src := filepath.Join(dir, "k.cpp")
	if err := os.WriteFile(src, []byte(c.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "k")
	if out, err := exec.Command(cxx, "-std=c++17", "-O1", "-o", bin, src).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, n.Source)
	}
	out, err := exec.Command(bin).Output()
	if err != nil {
		t.Fatal(err)
	}
	s, err := interp.New(ref, interp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.Run(context.Background(), want)
	if err != nil {
		t.Fatal(err)
	}
	y := res[0].(*interp.Tensor).Bytes()
	if len(out) != len(y) {
		t.Fatalf("%d bytes, want %d", len(out), len(y))
	}
	for i := 0; i < len(y); i += 4 {
		a, b := math.Float32frombits(binary.LittleEndian.Uint32(out[i:])), math.Float32frombits(binary.LittleEndian.Uint32(y[i:]))
		if math.Abs(float64(a-b)) > 1e-5*(1+math.Abs(float64(b))) {
			t.Fatalf("element %d: %v, want %v\n%s", i/4, a, b, n.Source)
		}
	}
}

// A kernel of an engineer's stands for an operator that nothing else computes.
func TestOwnKernel(t *testing.T) {
	cxx, err := exec.LookPath("c++")
	if err != nil {
		t.Skip("SKIPPED, needs a C++ compiler: ", err)
	}
	dir := t.TempDir()
	m := &msl.Manifest{
		Op: "aten.sinc.default", Inputs: []msl.Param{{Name: "self", Types: []string{"float32"}}}, Outputs: []msl.Param{{Name: "out"}},
		Threads: "element", Group: 64,
	}
	source, manifest, err := msl.Stub(m, "The sine of pi x over pi x.")
	if err != nil {
		t.Fatal(err)
	}
	source = strings.Replace(source, "// out[i] = self[i];\n", "float a = 3.14159265358979f * self[i];\nout[i] = a == 0 ? 1 : metal::precise::sin(a) / a;\n", 1)
	for name, b := range map[string][]byte{"sinc.metal": []byte(source), "sinc.json": manifest} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kernels, err := msl.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	src := "graph @forward(%x: f32[7] user) -> (%1) {\n  %1 = aten.sinc(%x): f32[7]\n}"
	g := payloadOf(t, parse(t, src), lower.Backend{Kernels: kernels})
	n := g.InstructionChains[0].Instructions[0].Op.(*fbmlx.MetalKernelNode)
	if n.Name != "lathe_sinc" || n.Grid[0].Literal != 7 || n.Threadgroup[0].Literal != 64 || !bytes.Contains([]byte(n.Source), []byte("sin(a)")) {
		t.Errorf("%+v", n)
	}
	runKernel(t, cxx, n, parse(t, src), 7)
}
