package mlxrt

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	fbmlx "github.com/lathe-ml/lathe/codegen/fb/mlx"
	"github.com/lathe-ml/lathe/codegen/mlxpayload"
	"github.com/lathe-ml/lathe/codegen/pte"
	"github.com/lathe-ml/lathe/internal/etrt"
	"github.com/lathe-ml/lathe/interp"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ir/text"
	lower "github.com/lathe-ml/lathe/lower/mlx"
	"github.com/lathe-ml/lathe/lower/program"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/partition"
	"github.com/lathe-ml/lathe/passes"
)

// behaviour is a program in IR text and what its payload must look like: nodes and how many of each, "-" for none. The
// values are those of the interpreter, which is judged by PyTorch elsewhere, for each size in sizes of the symbol s0.
type behaviour struct {
	name  string
	src   string
	nodes string
	sizes []int64
	// regions is how many there are, one where it is zero; outside how many nodes are in none.
	regions, outside int
	// raw leaves mutation in the text for the passes to take out.
	raw bool
	// fuse makes kernels of chains.
	fuse bool
	also func(t *testing.T, g *fbmlx.MLXGraph)
}

const sdpaHead = "aten.scaled_dot_product_attention"

var behaviours = []behaviour{
	{name: "sdpa of rank 4", nodes: "Sdpa 1, ExpandDims 0, Squeeze 0", src: `graph @forward(%q: f32[1, 4, 6, 8] user, %k: f32[1, 4, 6, 8] user, %v: f32[1, 4, 6, 8] user) -> (%1) {
  %1 = ` + sdpaHead + `(%q, %k, %v): f32[1, 4, 6, 8]
}`},
	{name: "sdpa of rank 3 is lifted", nodes: "Sdpa 1, ExpandDims 3, Squeeze 1", src: `graph @forward(%q: f32[4, 6, 8] user, %k: f32[4, 6, 8] user, %v: f32[4, 6, 8] user) -> (%1) {
  %1 = ` + sdpaHead + `(%q, %k, %v): f32[4, 6, 8]
}`},
	{name: "sdpa of rank 2 is lifted twice", nodes: "Sdpa 1, ExpandDims 6, Squeeze 1", src: `graph @forward(%q: f32[6, 8] user, %k: f32[6, 8] user, %v: f32[6, 8] user) -> (%1) {
  %1 = ` + sdpaHead + `(%q, %k, %v): f32[6, 8]
}`},
	{name: "sdpa of rank 5 is taken apart", nodes: "Sdpa 0", src: `graph @forward(%q: f32[2, 1, 4, 6, 8] user, %k: f32[2, 1, 4, 6, 8] user, %v: f32[2, 1, 4, 6, 8] user) -> (%1) {
  %1 = ` + sdpaHead + `(%q, %k, %v): f32[2, 1, 4, 6, 8]
}`},
	{name: "one sdpa that is declined leaves its sibling whole", nodes: "Sdpa 1", src: `graph @forward(%q: f32[1, 4, 6, 8] user, %w: f32[2, 1, 4, 6, 8] user) -> (%1, %2) {
  %1 = ` + sdpaHead + `(%q, %q, %q): f32[1, 4, 6, 8]
  %2 = ` + sdpaHead + `(%w, %w, %w): f32[2, 1, 4, 6, 8]
}`},
	{name: "sdpa over batches of different sizes", nodes: "Sdpa 0", src: `graph @forward(%q: f32[2, 4, 6, 8] user, %k: f32[1, 4, 6, 8] user) -> (%1) {
  %1 = ` + sdpaHead + `(%q, %k, %k): f32[2, 4, 6, 8]
}`},
	{name: "grouped heads are not repeated", nodes: "Sdpa 1, Repeat 0", src: `graph @forward(%q: f32[1, 4, 6, 8] user, %k: f32[1, 2, 6, 8] user, %v: f32[1, 2, 6, 8] user) -> (%3) {
  %1 = aten.repeat_interleave.self_int(%k, 2, dim=1): f32[1, 4, 6, 8]
  %2 = aten.repeat_interleave.self_int(%v, 2, dim=1): f32[1, 4, 6, 8]
  %3 = ` + sdpaHead + `(%q, %1, %2): f32[1, 4, 6, 8]
}`},
	{name: "grouped heads as transformers writes them", nodes: "Sdpa 1, BroadcastTo 0, Reshape 0", src: `graph @forward(%q: f32[1, 4, 6, 8] user, %k: f32[1, 2, 6, 8] user) -> (%4) {
  %1 = aten.unsqueeze(%k, 2): f32[1, 2, 1, 6, 8]
  %2 = aten.expand(%1, [1, 2, 2, 6, 8]): f32[1, 2, 2, 6, 8]{96, 48, 0, 8, 1}
  %3 = aten.reshape(%2, [1, 4, 6, 8]): f32[1, 4, 6, 8]
  %4 = ` + sdpaHead + `(%q, %3, %3): f32[1, 4, 6, 8]
}`},
	{name: "a repeat of the sequence stays", nodes: "Sdpa 1, Repeat 2", src: `graph @forward(%q: f32[4, 6, 8] user, %k: f32[4, 3, 8] user, %v: f32[4, 3, 8] user) -> (%3) {
  %1 = aten.repeat_interleave.self_int(%k, 2, dim=1): f32[4, 6, 8]
  %2 = aten.repeat_interleave.self_int(%v, 2, dim=1): f32[4, 6, 8]
  %3 = ` + sdpaHead + `(%q, %1, %2): f32[4, 6, 8]
}`},
	{name: "causal", nodes: "Sdpa 1", src: `graph @forward(%q: f32[1, 4, 6, 8] user) -> (%1) {
  %1 = ` + sdpaHead + `(%q, %q, %q, is_causal=true): f32[1, 4, 6, 8]
}`},
	{name: "causal of rank 4 over more keys than queries", nodes: "Sdpa 1, Slice 2", src: `graph @forward(%q: f32[1, 4, 6, 8] user, %k: f32[1, 4, 16, 8] user) -> (%1) {
  %1 = ` + sdpaHead + `(%q, %k, %k, is_causal=true): f32[1, 4, 6, 8]
}`},
	{name: "causal of rank 3 over more keys than queries", nodes: "Sdpa 0", src: `graph @forward(%q: f32[4, 6, 8] user, %k: f32[4, 16, 8] user) -> (%1) {
  %1 = ` + sdpaHead + `(%q, %k, %k, is_causal=true): f32[4, 6, 8]
}`},
	{name: "roll with and without dimensions", nodes: "Roll 2", src: `graph @forward(%x: f32[3, 4] user) -> (%1, %2) {
  %1 = aten.roll(%x, [1], [0]): f32[3, 4]
  %2 = aten.roll(%x, [2]): f32[3, 4]
}`},
	{name: "views of views are one", nodes: "Reshape 1", src: `graph @forward(%x: f32[2, 3, 4] user) -> (%2) {
  %1 = aten.view(%x, [6, 4]): f32[6, 4]
  %2 = aten.view(%1, [3, 8]): f32[3, 8]
}`},
	{name: "views of views of any size", nodes: "Reshape 1", sizes: []int64{1, 3}, src: `sym s0 in [1, 8] hint 2
graph @forward(%x: f32[s0, 12] user) -> (%2) {
  %1 = aten.view(%x, [s0, 3, 4]): f32[s0, 3, 4]
  %2 = aten.view(%1, [s0, 2, 6]): f32[s0, 2, 6]
}`},
	{name: "permutations join", nodes: "Transpose 1", src: `graph @forward(%x: f32[2, 3, 4] user) -> (%2) {
  %1 = aten.permute(%x, [1, 0, 2]): f32[3, 2, 4]{4, 12, 1}
  %2 = aten.permute(%1, [0, 2, 1]): f32[3, 4, 2]{4, 1, 12}
}`},
	{name: "what is dead is written over", nodes: "Exp 2, Log 1", src: `graph @forward(%x: f32[4] user) -> (%3) {
  %1 = aten.exp(%x): f32[4]
  %2 = aten.log(%1): f32[4]
  %3 = aten.exp(%2): f32[4]
}`, also: func(t *testing.T, g *fbmlx.MLXGraph) {
		n := g.InstructionChains[0].Instructions[1].Op.(*fbmlx.LogNode)
		if n.X != n.Out || g.NumTempTensors != 0 {
			t.Errorf("log from %v to %v, %d temporaries", n.X, n.Out, g.NumTempTensors)
		}
	}},
	{name: "a sum is written over its dead operand", nodes: "Exp 1, Add 1, Neg 1", sizes: []int64{1, 5}, src: `sym s0 in [1, 8] hint 2
graph @forward(%x: f32[s0] user, %y: f32[s0] user) -> (%3) {
  %1 = aten.exp(%x): f32[s0]
  %2 = aten.add.Tensor(%1, %y): f32[s0]
  %3 = aten.neg(%2): f32[s0]
}`, also: func(t *testing.T, g *fbmlx.MLXGraph) {
		if n := g.InstructionChains[0].Instructions[1].Op.(*fbmlx.AddNode); n.A != n.Out {
			t.Errorf("the sum of %v goes to %v", n.A, n.Out)
		}
	}},
	{name: "variances far from zero in half precision", nodes: "Var 1, Std 1", src: `graph @forward(%x: f32[4, 8] user) -> (%3, %5) {
  %1 = aten.add.Scalar(%x, 100.0): f32[4, 8]
  %2 = aten._to_copy(%1, dtype=bf16): bf16[4, 8]
  %3 = aten.var.correction(%2, [1], correction=1.0): bf16[4]
  %4 = aten._to_copy(%1, dtype=f16): f16[4, 8]
  %5 = aten.std.correction(%4, [1], correction=0.0): f16[4]
}`},
	{name: "rms norm", nodes: "RMSNorm 1, Rsqrt 0", src: `graph @forward(%x: f32[2, 3, 8] user, %w: f32[8] param "w" = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]) -> (%6) {
  %1 = aten.pow.Tensor_Scalar(%x, 2): f32[2, 3, 8]
  %2 = aten.mean.dim(%1, [-1], keepdim=true): f32[2, 3, 1]
  %3 = aten.add.Tensor(%2, 1e-06): f32[2, 3, 1]
  %4 = aten.rsqrt(%3): f32[2, 3, 1]
  %5 = aten.mul.Tensor(%x, %4): f32[2, 3, 8]
  %6 = aten.mul.Tensor(%w, %5): f32[2, 3, 8]
}`},
	{name: "experts of sorted rows", nodes: "GatherMm 1, Item 0, Full 0", src: `graph @forward(%w: f32[3, 3, 5] param "w" = [` + strings.TrimSuffix(strings.Repeat("1.0, 2.0, 3.0, ", 15), ", ") + `], %x: f32[6, 3] user, %l: f32[6, 3] user) -> (%6) {
  %1 = aten.argmax(%l, dim=1): i64[6]
  %2, %3 = aten.sort(%1): i64[6], i64[6]
  %4 = aten.to.dtype(%2, f32): f32[6]
  %5 = aten.histc(%4, bins=3, max=2): f32[3]
  %c = aten.cumsum(%5, 0, dtype=i32): i32[3]
  %6 = transformers.grouped_mm_fallback(%x, %w, %c): f32[6, 5]
}`},
	{name: "a rope of counted positions, and one of positions that are given", nodes: "Rope 2, Cos 0, Sin 0", sizes: []int64{1, 5}, src: `sym s0 in [1, 8] hint 2
graph @forward(%f: f32[2] param "f" = [1.0, 0.3], %x: f32[2, 3, s0, 4] user, %w: i64[2, 1] param "w" = [7, 1000]) -> (%1, %3) {
  %1 = lathe.rope(%x, %f, start=s0): f32[2, 3, s0, 4]
  %2 = aten.view(%w, [2]): i64[2]
  %3 = lathe.rope(%x, %f, starts=%2, traditional=true): f32[2, 3, s0, 4]
}`},
	{name: "sizes are computed while it runs", sizes: []int64{2, 7}, nodes: "ARange 1", src: `sym s0 in [1, 8] hint 2
graph @forward(%x: f32[s0, 3] user) -> (%2, %3) {
  %1 = aten.arange(s0 * 3 + max(s0, 4) - 1): i64[3*s0 + max(4, s0) - 1]
  %2 = aten.add.Tensor(%1, (s0 + 1)//2): i64[3*s0 + max(4, s0) - 1]
  %3 = aten.reshape(%x, [3 * s0]): f32[3*s0]
}`},
	{name: "a buffer is written in place", nodes: "SliceUpdate 1, IdCopy 0", src: `graph @forward(%b: f32[4, 2] buffer "b" = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], %x: f32[1, 2] user) -> (mut %b = %1, %2) {
  %1 = aten.slice_scatter(%b, %x, 0, 1, 2): f32[4, 2]
  %2 = aten.mul.Tensor(%1, 2.0): f32[4, 2]
}`, also: func(t *testing.T, g *fbmlx.MLXGraph) {
		if n := g.InstructionChains[0].Instructions[0].Op.(*fbmlx.SliceUpdateNode); n.Dst != n.Out || g.NumMutableBufferTensors != 1 {
			t.Errorf("from %v to %v", n.Dst, n.Out)
		}
	}},
	{name: "a buffer keeps its initial value and is returned as it was", nodes: "IdCopy 1, Add 1", src: `graph @forward(%b: f32[2] buffer "b" = [1.0, 2.0], %x: f32[2] user) -> (mut %b = %1, %1) {
  %1 = aten.add.Tensor(%b, %x): f32[2]
}`, also: func(t *testing.T, g *fbmlx.MLXGraph) {
		if g.InitChainIdx < 0 {
			t.Error("no init chain")
		}
	}},
	{name: "two buffers trade places", src: `graph @forward(%a: f32[2] buffer "a" = [1.0, 2.0], %b: f32[2] buffer "b" = [3.0, 4.0], %x: f32[2] user) -> (mut %a = %1, mut %b = %2, %3) {
  %1 = aten.mul.Tensor(%b, 2.0): f32[2]
  %2 = aten.mul.Tensor(%a, 3.0): f32[2]
  %3 = aten.sub.Tensor(%a, %b): f32[2]
}`},
	{name: "a conditional", nodes: "If 1, ItemInt 1", src: `graph @forward(%p: bool[] user, %x: f32[3] user) -> (%1) {
  %1 = higher_order.cond(%p, graph @t(%y: f32[3] operand) -> (%2) {
    %2 = aten.sin(%y): f32[3]
  }, graph @f(%z: f32[3] operand) -> (%4) {
    %3 = aten.cos(%z): f32[3]
    %4 = aten.add.Tensor(%3, %3): f32[3]
  }, [%x]): f32[3]
}`},
	{name: "a scan", nodes: "Scan 1", src: `graph @forward(%h: f32[3] user, %x: f32[4, 3] user, %w: f32[3] user) -> (%1, %2) {
  %1, %2 = higher_order.scan(graph @step(%a: f32[3] operand, %b: f32[3] operand, %c: f32[3] operand) -> (%4, %5) {
    %3 = aten.mul.Tensor(%a, %c): f32[3]
    %4 = aten.add.Tensor(%3, %b): f32[3]
    %5 = aten.sin(%4): f32[3]
  }, [%h], [%x], [%w]): f32[3], f32[4, 3]
}`},
	{name: "the gated delta rule keeps its state", raw: true, nodes: "Scan 1", src: `graph @forward(%q: f32[1, 5, 2, 4] user, %v: f32[1, 5, 4, 3] user, %g: f32[1, 5, 4] user, %b: f32[1, 5, 4] user, %s: f32[1, 4, 3, 4] buffer "s" = [` +
		strings.TrimSuffix(strings.Repeat("0.5, ", 48), ", ") + `]) -> (%3) {
  %1 = aten.sigmoid(%g): f32[1, 5, 4]
  %2 = aten.sigmoid(%b): f32[1, 5, 4]
  %3 = mlx.gated_delta_rule(%q, %q, %v, %1, %2, %s): f32[1, 5, 4, 3]
}`},
	{name: "a map", nodes: "Scan 1", src: `graph @forward(%x: f32[4, 3] user, %w: f32[3] user) -> (%1) {
  %1 = higher_order.map_impl(graph @step(%b: f32[3] operand, %c: f32[3] operand) -> (%2) {
    %2 = aten.mul.Tensor(%b, %c): f32[3]
  }, [%x], [%w]): f32[4, 3]
}`},
	{name: "a node of 64-bit floats stays outside", outside: 2, src: `graph @forward(%x: f32[3] user) -> (%3) {
  %1 = aten.sin(%x): f32[3]
  %2 = aten._to_copy(%1, dtype=f64): f64[3]
  %3 = aten.neg(%2): f64[3]
}`},
	{name: "places from the end", src: `graph @forward(%x: f32[5, 3] user, %v: f32[2, 3] user) -> (%2, %3) {
  %1 = aten.full([2], -2, dtype=i64): i64[2]
  %2 = aten.index.Tensor(%x, [%1]): f32[2, 3]
  %3 = aten.index_put(%x, [%1], %v, accumulate=true): f32[5, 3]
}`},
	{name: "whole quotients beyond the precision of floats", src: `graph @forward(%x: i64[4] user) -> (%3, %4) {
  %1 = aten.mul.Tensor(%x, 123456789123): i64[4]
  %2 = aten.sub.Tensor(%1, 7): i64[4]
  %3 = aten.floor_divide(%2, 7): i64[4]
  %4 = aten.div.Tensor_mode(%2, -3, rounding_mode="trunc"): i64[4]
}`},
	{name: "floored quotients that division rounds up", nodes: "FloorDivide 0", src: `graph @forward(%x: f32[9] user, %w: f32[9] param "w" = [1.0, 0.3, 0.6, 6.0, -0.3, 5.0, -1.0, inf, 0.0], %u: f32[9] param "u" = [0.1, 0.1, 0.2, 0.2, 0.1, 0.0, inf, 2.0, -3.0]) -> (%1, %2, %3) {
  %1 = aten.floor_divide(%w, %u): f32[9]
  %2 = aten.div.Scalar_mode(%w, 0.1, rounding_mode="floor"): f32[9]
  %3 = aten.floor_divide(%x, %u): f32[9]
}`},
	{name: "integer powers with negative exponents", src: `graph @forward(%x: f32[2] user, %w: i64[7] param "w" = [2, 1, -1, -1, 0, -3, 5], %u: i64[7] param "u" = [-1, -2, -3, -4, 0, 5, 62]) -> (%1, %2, %3) {
  %1 = aten.pow.Tensor_Tensor(%w, %u): i64[7]
  %2 = aten.pow.Scalar(-1, %u): i64[7]
  %3 = aten.neg(%x): f32[2]
}`},
	{name: "sizes down to zero", sizes: []int64{0, 1, 3}, src: `sym s0 in [0, 9] hint 4
graph @forward(%x: f32[s0, 2] user) -> (%1, %2, %3, %4) {
  %1 = aten.full([s0, 2], 2.5, dtype=dtype(f32)): f32[s0, 2]
  %2 = aten.full([s0], s0, dtype=dtype(i64)): i64[s0]
  %3 = aten.arange.start_step(1, 2*s0 + 1, 2, dtype=dtype(i64)): i64[s0]
  %4 = aten.add.Tensor(%x, %1): f32[s0, 2]
}`},
	{name: "products with llama.cpp's blocks", nodes: "QuantizedMatmul 2, Dequantize 1, Addmm 1", src: `graph @forward(%x: f32[3, 256] user, %a: u8[2, 144] param "a", %b: u8[2, 176] param "b", %c: u8[2, 210] param "c", %u: f32[2] param "u" = [1.0, -2.0]) -> (%2, %4, %6) {
  %1 = torchao.dequantize_gguf(%a, "q4_k", dtype(f32)): f32[2, 256]
  %2 = aten.linear(%x, %1): f32[3, 2]
  %3 = torchao.dequantize_gguf(%b, "q5_k", dtype(f32)): f32[2, 256]
  %4 = aten.linear(%x, %3, %u): f32[3, 2]
  %5 = torchao.dequantize_gguf(%c, "q6_k", dtype(f32)): f32[2, 256]
  %6 = aten.linear(%x, %5): f32[3, 2]
}`},
	{name: "rows of llama.cpp's blocks", nodes: "Dequantize 3, Take 9", src: `graph @forward(%i: bool[3] user, %a: u8[2, 144] param "a", %b: u8[2, 176] param "b", %c: u8[2, 210] param "c", %u: f32[2] param "u" = [1.0, -2.0]) -> (%2, %4, %6) {
  %at = aten._to_copy(%i, dtype=dtype(i64)): i64[3]
  %1 = torchao.dequantize_gguf(%a, "q4_k", dtype(f32)): f32[2, 256]
  %2 = aten.embedding(%1, %at): f32[3, 256]
  %3 = torchao.dequantize_gguf(%b, "q5_k", dtype(f32)): f32[2, 256]
  %4 = aten.embedding(%3, %at): f32[3, 256]
  %5 = torchao.dequantize_gguf(%c, "q6_k", dtype(f32)): f32[2, 256]
  %6 = aten.embedding(%5, %at): f32[3, 256]
}`},
	{name: "a grouped product of any number of rows", nodes: "GatherMm 1, Addmm 0", sizes: []int64{1, 6}, src: `sym s0 in [1, 8] hint 2
graph @forward(%x: f32[s0, 4] user, %w: f32[3, 4, 5] param "w", %o: i32[3] param "o" = [1, 1, 4]) -> (%1) {
  %1 = transformers.grouped_mm_fallback(%x, %w, %o): f32[s0, 5]
}`},
	{name: "matrices that indices pick are not copied", nodes: "GatherMm 3, Take 0, Addmm 0, Remainder 2", sizes: []int64{1, 5}, src: `sym s0 in [1, 8] hint 2
graph @forward(%x: f32[s0, 4] user, %p: bool[s0] user, %w: f32[3, 5, 4] param "w") -> (%4, %9, %13) {
  %1 = aten._to_copy(%p, dtype=dtype(i64)): i64[s0]
  %at = aten.sub.Tensor(%1, 1): i64[s0]
  %2 = aten.index.Tensor(%w, [%at]): f32[s0, 5, 4]
  %3 = aten.unsqueeze(%x, -1): f32[s0, 4, 1]
  %4 = aten.bmm(%2, %3): f32[s0, 5, 1]
  %6 = aten.index_select(%w, 0, %1): f32[s0, 5, 4]
  %7 = aten.transpose.int(%6, 1, 2): f32[s0, 4, 5]{20, 1, 4}
  %8 = aten.unsqueeze(%x, 1): f32[s0, 1, 4]
  %9 = aten.matmul(%8, %7): f32[s0, 1, 5]
  %5 = aten.slice.Tensor(%x, 1, 0, 3): f32[s0, 3]{4, 1}
  %10, %11 = aten.topk(%5, 1): f32[s0, 1], i64[s0, 1]
  %12 = aten.squeeze.dim(%11, 1): i64[s0]
  %14 = aten.index.Tensor(%w, [%12]): f32[s0, 5, 4]
  %13 = aten.bmm(%14, %3): f32[s0, 5, 1]
}`},
	{name: "random numbers are spread as they should be", nodes: "RandomBits 3", src: `graph @forward(%x: f32[2] user) -> (%5, %9, %13, %15) {
  %1 = aten.rand([64, 64]): f32[64, 64]
  %2 = aten.ge.Scalar(%1, 0.0): bool[64, 64]
  %3 = aten.lt.Scalar(%1, 1.0): bool[64, 64]
  %4 = aten.logical_and(%2, %3): bool[64, 64]
  %5 = aten.all(%4): bool[]
  %6 = aten.mean(%1): f32[]
  %7 = aten.sub.Tensor(%6, 0.5): f32[]
  %8 = aten.abs(%7): f32[]
  %9 = aten.lt.Scalar(%8, 0.05): bool[]
  %10 = aten.randn([64, 64], dtype=f32): f32[64, 64]
  %11 = aten.mean(%10): f32[]
  %12 = aten.abs(%11): f32[]
  %13 = aten.lt.Scalar(%12, 0.15): bool[]
  %14 = aten.std.correction(%10): f32[]
  %15 = aten.round(%14): f32[]
}`},
	{name: "elements written along a dimension", nodes: "IndexCopy 1, ScatterAdd 0", sizes: []int64{1, 4}, src: `sym s0 in [1, 8] hint 2
graph @forward(%x: f32[s0, 5] user, %p: bool[s0, 5] user, %v: f32[s0, 7] user) -> (%3) {
  %1 = aten._to_copy(%p, dtype=i64): i64[s0, 5]
  %2 = aten.slice.Tensor(%1, 1, 0, 1): i64[s0, 1]{5, 1}
  %3 = aten.scatter.src(%x, 1, %2, %v): f32[s0, 5]
}`},
	{name: "a source spread over a mask", nodes: "Where 1", sizes: []int64{1, 4}, src: `sym s0 in [1, 8] hint 2
graph @forward(%x: f32[s0, 6] user, %m: bool[s0, 6] user, %v: f32[9, 6] user) -> (%1) {
  %1 = aten.masked_scatter(%x, %m, %v): f32[s0, 6]
}`},
	{name: "convolution with padding on one side and a cut result", src: `graph @forward(%x: f32[1, 2, 6] user, %w: f32[3, 2, 4] param "w", %u: f32[2, 3, 2] param "u") -> (%1, %2) {
  %1 = aten.conv1d.padding(%x, %w, padding="same"): f32[1, 3, 6]
  %2 = aten.conv_transpose1d(%x, %u, stride=[2], padding=[3]): f32[1, 3, 6]
}`},
}

func TestBehaviours(t *testing.T) {
	rt := open(t)
	for _, c := range behaviours {
		t.Run(c.name, func(t *testing.T) { checkBehaviour(t, rt, c) })
	}
}

func parse(t *testing.T, src string) *ir.Graph {
	t.Helper()
	g, err := text.Parse(src, text.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g.Stage = ops.StageEdge
	r := rand.New(rand.NewPCG(3, 4))
	for _, in := range g.Inputs {
		if in.Kind != ir.InputUser && in.Data == nil {
			sizes, _ := in.Value.Type.Sizes()
			in.Data = ir.NewData(in.Value.Type.DType, sizes, randomTensor(r, in.Value.Type.DType, sizes).Data)
		}
	}
	return g
}

func randomTensor(r *rand.Rand, d ops.DType, sizes []int64) *etrt.Tensor {
	n := int64(1)
	for _, k := range sizes {
		n *= k
	}
	x := &etrt.Tensor{DType: etrt.F32, Shape: append([]int64{}, sizes...)}
	switch d {
	case ops.Bool:
		x.DType = etrt.Bool
	case ops.Int64:
		x.DType = etrt.I64
	case ops.Uint8:
		x.DType = etrt.U8
	}
	for range n {
		switch d {
		case ops.Bool:
			x.Data = append(x.Data, byte(r.IntN(2)))
		case ops.Uint8:
			x.Data = append(x.Data, byte(r.IntN(256)))
			if len(x.Data)%2 == 0 {
				x.Data[len(x.Data)-1] &= 0xbf // two bytes are a finite number in half precision
			}
		case ops.Int64:
			v := uint64(int64(r.IntN(2000001) - 1000000))
			for range 8 {
				x.Data = append(x.Data, byte(v))
				v >>= 8
			}
		default:
			x = f32Append(x, float32(r.NormFloat64()))
		}
	}
	return x
}

func f32Append(x *etrt.Tensor, f float32) *etrt.Tensor {
	v := f32(nil, f)
	x.DType, x.Data = etrt.F32, append(x.Data, v.Tensor.Data...)
	return x
}

func checkBehaviour(t *testing.T, rt *Runtime, c behaviour) {
	ctx := context.Background()
	g, ref := parse(t, c.src), parse(t, c.src)
	if c.raw {
		g.Stage, ref.Stage = ops.StageAten, ops.StageAten
	}
	caps := lower.Caps{}
	pc := &passes.Context{Target: "mlx", Hooks: []passes.Hook{passes.VerifyHook()}, Legal: func(n *ir.Node) *ir.Diag {
		if _, d := caps.Match(n); d == nil {
			return nil
		}
		return program.Legal(n)
	}}
	if err := (lower.Backend{FuseKernels: c.fuse}).Pipeline().Run(pc, g); err != nil {
		t.Fatal(err)
	}
	rep, err := partition.Partition(ctx, g, lower.Backend{FuseKernels: c.fuse})
	if err != nil {
		t.Fatal(err)
	}
	if len(rep.Regions) != max(c.regions, 1) || len(rep.Outside) != c.outside {
		t.Errorf("%d regions, %d nodes outside\n%s", len(rep.Regions), len(rep.Outside), text.String(g))
	}
	for _, r := range rep.Regions {
		low := r.Node.Attr.(*partition.Lowered)
		b, err := blobBytes(low.Payload)
		if err != nil {
			t.Fatal(err)
		}
		p, err := mlxpayload.Unmarshal(b)
		if err != nil {
			t.Fatal(err)
		}
		checkNodes(t, p.Graph, c.nodes)
		if c.also != nil {
			c.also(t, p.Graph)
		}
	}
	res, err := program.Lower(&ir.Program{Methods: []*ir.Graph{g}}, program.Options{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "out.pte")
	if err := pte.WriteFile(ctx, path, res.Program, pte.Options{}); err != nil {
		t.Fatal(err)
	}
	compare(t, rt, path, ref, c.sizes)
}

func checkNodes(t *testing.T, g *fbmlx.MLXGraph, want string) {
	t.Helper()
	have := map[string]int{}
	for _, ch := range g.InstructionChains {
		for _, in := range ch.Instructions {
			name := fmt.Sprintf("%T", in.Op)
			have[strings.TrimSuffix(name[strings.LastIndexByte(name, '.')+1:], "Node")]++
		}
	}
	for _, w := range strings.Split(want, ", ") {
		var name string
		var n int
		if k, _ := fmt.Sscan(w, &name, &n); k == 2 && have[name] != n {
			t.Errorf("%d %s, want %d: %v", have[name], name, n, have)
		}
	}
}

// compare runs the program and the interpreter twice on the same random inputs, keeping state.
func compare(t *testing.T, rt *Runtime, path string, ref *ir.Graph, sizes []int64) {
	t.Helper()
	if sizes == nil {
		sizes = []int64{0, 0}
	}
	r := rand.New(rand.NewPCG(1, 2))
	p, err := rt.Load(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s, err := interp.New(ref, interp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range sizes {
		var in []etrt.Value
		var want []interp.Value
		for _, u := range ref.UserInputs() {
			var shape []int64
			for _, e := range u.Value.Type.Shape {
				k, err := sym.Eval(e, sym.MapEnv{"s0": size})
				if err != nil {
					t.Fatal(err)
				}
				shape = append(shape, k)
			}
			x := randomTensor(r, u.Value.Type.DType, shape)
			in = append(in, etrt.TensorValue(x))
			y, err := interp.FromBytes(u.Value.Type.DType, shape, x.Data)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, y)
		}
		got, err := p.Run("forward", in)
		if err != nil {
			t.Fatal(err)
		}
		outs, err := s.Run(context.Background(), want)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(outs) {
			t.Fatalf("%d results, %d wanted", len(got), len(outs))
		}
		for i, o := range outs {
			y := o.(*interp.Tensor)
			w := &etrt.Tensor{DType: got[i].Tensor.DType, Shape: append([]int64{}, y.Sizes...), Data: y.Bytes()}
			if err := etrt.CompareTensors(got[i].Tensor, w, 1e-4, 1e-4); err != nil {
				t.Errorf("size %d, result %d: %v", size, i, err)
			}
		}
	}
}
