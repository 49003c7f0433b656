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
	"github.com/lathe-ml/lathe/internal/needs"
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
	cxx := needs.Compiler(t)
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

// chains are programs that become one kernel, or two. What stands in capitals is replaced by each of the types.
var chains = []struct {
	name, types, kernels, src string
	sizes                     []int64
}{
	{"any size, with rows, columns and single numbers spread", "", "MetalKernel 1, Multiply 0, Add 0, Sigmoid 0", `sym s0 in [1, 8] hint 2
sym s1 in [1, 9] hint 3
graph @forward(%x: f32[s0, 3, 8] user, %b: f32[3, 1] user, %c: f32[s0, 1, 1] user, %w: f32[8] param "w", %n: f32[] param "n") -> (%6) {
  %1 = aten.mul.Tensor(%x, %w): f32[s0, 3, 8]
  %2 = aten.add.Tensor(%b, %1): f32[s0, 3, 8]
  %3 = aten.mul.Tensor(%2, %n): f32[s0, 3, 8]
  %4 = aten.sub.Tensor(%3, %c): f32[s0, 3, 8]
  %5 = aten.sigmoid(%4): f32[s0, 3, 8]
  %6 = aten.mul.Tensor(%5, %x): f32[s0, 3, 8]
}`, []int64{1, 2, 7}},
	{"a result larger than each input", "", "MetalKernel 1, Add 0", `sym s0 in [1, 8] hint 2
graph @forward(%x: f32[s0, 1, 4] user, %y: f32[5, 1] user) -> (%2) {
  %1 = aten.add.Tensor(%x, %y): f32[s0, 5, 4]
  %2 = aten.exp(%1): f32[s0, 5, 4]
}`, []int64{1, 3}},
	{"floats", "f32 f16 bf16", "MetalKernel 1", `sym s0 in [1, 8] hint 2
graph @forward(%x: f32[s0, 5] user, %y: f32[5] user) -> (%14) {
  %1 = aten._to_copy(%x, dtype=dtype(TYPE)): TYPE[s0, 5]
  %2 = aten.mul.Tensor(%1, 0.1): TYPE[s0, 5]
  %3 = aten.add.Tensor(%2, 1): TYPE[s0, 5]
  %4 = aten.silu(%3): TYPE[s0, 5]
  %5 = aten.abs(%4): TYPE[s0, 5]
  %6 = aten.sqrt(%5): TYPE[s0, 5]
  %7 = aten.maximum(%6, %2): TYPE[s0, 5]
  %8 = aten.relu(%7): TYPE[s0, 5]
  %9 = aten.square(%8): TYPE[s0, 5]
  %10 = aten.neg(%9): TYPE[s0, 5]
  %11 = aten.minimum(%10, %8): TYPE[s0, 5]
  %12 = aten.div.Tensor(%11, 3.0): TYPE[s0, 5]
  %13 = aten._to_copy(%12, dtype=dtype(f32)): f32[s0, 5]
  %14 = aten.mul.Tensor(%13, %y): f32[s0, 5]
}`, []int64{1, 4}},
	{"functions", "", "MetalKernel 1", `graph @forward(%x: f32[40] user) -> (%14) {
  %1 = aten.abs(%x): f32[40]
  %2 = aten.add.Tensor(%1, 0.5): f32[40]
  %3 = aten.log(%2): f32[40]
  %4 = aten.rsqrt(%2): f32[40]
  %5 = aten.sin(%3): f32[40]
  %6 = aten.cos(%4): f32[40]
  %7 = aten.tanh(%5): f32[40]
  %8 = aten.reciprocal(%2): f32[40]
  %9 = aten.floor(%8): f32[40]
  %10 = aten.ceil(%7): f32[40]
  %11 = aten.add.Tensor(%9, %10): f32[40]
  %12 = aten.trunc(%2): f32[40]
  %13 = aten.mul.Tensor(%6, %12): f32[40]
  %14 = aten.sub.Tensor(%13, %11): f32[40]
}`, nil},
	{"integers", "u8 i8 i16 i32 i64", "MetalKernel 1", `graph @forward(%a: i64[3, 4] user, %b: i64[4] user) -> (%6) {
  %x = aten._to_copy(%a, dtype=dtype(TYPE)): TYPE[3, 4]
  %y = aten._to_copy(%b, dtype=dtype(TYPE)): TYPE[4]
  %1 = aten.add.Tensor(%x, %y): TYPE[3, 4]
  %2 = aten.mul.Tensor(%1, 3): TYPE[3, 4]
  %3 = aten.sub.Tensor(%2, %y): TYPE[3, 4]
  %4 = aten.gt.Tensor(%3, %x): bool[3, 4]
  %5 = aten.where.self(%4, %3, %1): TYPE[3, 4]
  %6 = aten.add.Tensor(%5, 1): TYPE[3, 4]
}`, nil},
	{"truth values", "", "MetalKernel 1", `graph @forward(%x: f32[3, 4] user, %p: bool[4] user, %q: bool[3, 4] user) -> (%8) {
  %1 = aten.lt.Scalar(%x, 0.5): bool[3, 4]
  %2 = aten.logical_and(%1, %p): bool[3, 4]
  %3 = aten.logical_not(%q): bool[3, 4]
  %4 = aten.logical_or(%2, %3): bool[3, 4]
  %5 = aten.ne.Tensor(%4, %q): bool[3, 4]
  %6 = aten.le.Scalar(%x, -0.25): bool[3, 4]
  %7 = aten.eq.Tensor(%5, %6): bool[3, 4]
  %8 = aten.where.self(%7, %x, %x): f32[3, 4]
}`, nil},
	{"sizes that may be none stay with MLX's own nodes", "", "MetalKernel 0, Exp 1", `sym s0 in [0, 8] hint 2
graph @forward(%x: f32[s0, 4] user) -> (%2) {
  %1 = aten.add.Tensor(%x, 1.0): f32[s0, 4]
  %2 = aten.exp(%1): f32[s0, 4]
}`, []int64{0, 3}},
}

// Chains of element-wise operators run as kernels in a whole program, at several sizes in one load.
func TestChainPrograms(t *testing.T) {
	rt := open(t)
	if _, err := exec.LookPath("c++"); err != nil {
		t.Skip("SKIPPED, needs a C++ compiler: ", err)
	}
	for _, c := range chains {
		for _, d := range append(strings.Fields(c.types), "")[:max(1, len(strings.Fields(c.types)))] {
			t.Run(strings.TrimSpace(c.name+" "+d), func(t *testing.T) {
				checkBehaviour(t, rt, behaviour{src: strings.ReplaceAll(c.src, "TYPE", d), nodes: c.kernels, sizes: c.sizes, fuse: true})
			})
		}
	}
}

// A kernel of an engineer's stands for an operator that nothing else computes.
func TestOwnKernel(t *testing.T) {
	cxx := needs.Compiler(t)
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
