package program_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-ml/lathe/codegen/pte"
	"github.com/lathe-ml/lathe/internal/etrt"
	"github.com/lathe-ml/lathe/internal/etrt/ettest"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/text"
	"github.com/lathe-ml/lathe/lower/program"
	"github.com/lathe-ml/lathe/ops"
)

func f32(shape []int64, xs ...float32) etrt.Value {
	b := make([]byte, 0, 4*len(xs))
	for _, x := range xs {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return etrt.Value{Kind: etrt.KindTensor, Tensor: &etrt.Tensor{DType: etrt.F32, Shape: shape, Data: b}}
}

func i64(shape []int64, xs ...int64) etrt.Value {
	b := make([]byte, 0, 8*len(xs))
	for _, x := range xs {
		b = binary.LittleEndian.AppendUint64(b, uint64(x))
	}
	return etrt.Value{Kind: etrt.KindTensor, Tensor: &etrt.Tensor{DType: etrt.I64, Shape: shape, Data: b}}
}

func boolean(x bool) etrt.Value {
	b := []byte{0}
	if x {
		b[0] = 1
	}
	return etrt.Value{Kind: etrt.KindTensor, Tensor: &etrt.Tensor{DType: etrt.Bool, Data: b}}
}

// show prints a value in a few characters, for comparison.
func show(v etrt.Value) string {
	switch v.Kind {
	case etrt.KindTensor:
		var xs []string
		t := v.Tensor
		for i := 0; i < len(t.Data); i += t.DType.Size() {
			switch t.DType {
			case etrt.F32:
				x := math.Float32frombits(binary.LittleEndian.Uint32(t.Data[i:]))
				if x == 0 {
					x = 0 // of either sign
				}
				xs = append(xs, fmt.Sprint(x))
			case etrt.I64:
				xs = append(xs, fmt.Sprint(int64(binary.LittleEndian.Uint64(t.Data[i:]))))
			default:
				xs = append(xs, fmt.Sprint(t.Data[i]))
			}
		}
		return fmt.Sprintf("%s%v(%s)", t.DType, t.Shape, strings.Join(xs, " "))
	case etrt.KindInt:
		return fmt.Sprint(v.Int)
	case etrt.KindFloat:
		return fmt.Sprintf("%gf", v.Float)
	case etrt.KindBool:
		return fmt.Sprint(v.Bool)
	}
	return "none"
}

type call struct {
	in   []etrt.Value
	want string // outputs, separated by "; "
}

// The expected values are those of PyTorch for the programs in comments or of arithmetic a reader can follow.
var programs = []struct {
	name  string
	ir    string
	calls []call // in one loaded program
	// check looks at the plan; "" where all is well.
	check func(p *pte.Plan) string
}{
	{
		name: "add",
		ir: `graph @forward(%x: f32[2] user, %w: f32[2] param "w" = [1.0, 2.0]) -> (%1, 3, none, 1.5, true) {
  %1 = aten.add.Tensor(%x, %w, alpha=2): f32[2]
}`,
		calls: []call{{[]etrt.Value{f32([]int64{2}, 10, 20)}, "float32[2](12 24); 3; none; 1.5f; true"}},
	},
	{
		name: "views cost nothing",
		ir: `graph @forward(%x: f32[2, 3] user) -> (%3, %4) {
  %1 = aten.view.default(%x, size=[3, 2]): f32[3, 2]
  %2 = aten.unsqueeze.default(%1, dim=0): f32[1, 3, 2]
  %3 = aten.mul.Tensor(%2, %2): f32[1, 3, 2]
  %4 = aten.select.int(%3, dim=1, index=1): f32[1, 2]
}`,
		calls: []call{{[]etrt.Value{f32([]int64{2, 3}, 1, 2, 3, 4, 5, 6)}, "float32[1 3 2](1 4 9 16 25 36); float32[1 2](9 16)"}},
		check: instructions(1),
	},
	{
		name: "sizes at run time",
		ir: `sym s0 in [1, 8] hint 3
graph @forward(%x: f32[s0, 2] user, %y: f32[2*s0 + 1] user) -> (%1, %2, %3, s0, 2*s0 - 3) {
  %1 = aten.view.default(%x, size=[2*s0]): f32[2*s0]
  %2 = aten.full.default([s0, 2], 7.0): f32[s0, 2]
  %3 = aten.slice.Tensor(%y, dim=0, start=1, end=s0): f32[s0 - 1]
}`,
		calls: []call{
			{[]etrt.Value{f32([]int64{1, 2}, 1, 2), f32([]int64{3}, 5, 6, 7)}, "float32[2](1 2); float32[1 2](7 7); float32[0](); 1; -1"},
			{[]etrt.Value{f32([]int64{2, 2}, 1, 2, 3, 4), f32([]int64{5}, 5, 6, 7, 8, 9)}, "float32[4](1 2 3 4); float32[2 2](7 7 7 7); float32[1](6); 2; 1"},
		},
	},
	{
		name: "a counter keeps its first value and its state",
		ir: `graph @forward(%n: i64[] buffer "n" = [40], %x: i64[] user) -> (mut %n = %1, %1) {
  %1 = aten.add.Tensor(%n, %x): i64[]
}`,
		calls: []call{
			{[]etrt.Value{i64(nil, 2)}, "int64[](42)"},
			{[]etrt.Value{i64(nil, 3)}, "int64[](45)"},
		},
		check: instructions(1),
	},
	{
		name: "the old contents are returned",
		ir: `graph @forward(%n: f32[2] buffer "n" = [1.0, 2.0], %x: f32[2] user) -> (mut %n = %1, %n, %2) {
  %1 = aten.add.Tensor(%n, %x): f32[2]
  %2 = aten.view.default(%n, size=[2, 1]): f32[2, 1]
}`,
		calls: []call{
			{[]etrt.Value{f32([]int64{2}, 10, 10)}, "float32[2](1 2); float32[2 1](1 2)"},
			{[]etrt.Value{f32([]int64{2}, 10, 10)}, "float32[2](11 12); float32[2 1](11 12)"},
		},
	},
	{
		name: "two buffers change places",
		ir: `graph @forward(%a: f32[2] buffer "a" = [1.0, 2.0], %b: f32[2] buffer "b" = [3.0, 4.0], %x: f32[2] user) -> (mut %a = %b, mut %b = %a, %1) {
  %1 = aten.add.Tensor(%a, %x): f32[2]
}`,
		calls: []call{
			{[]etrt.Value{f32([]int64{2}, 0, 0)}, "float32[2](1 2)"},
			{[]etrt.Value{f32([]int64{2}, 0, 0)}, "float32[2](3 4)"},
			{[]etrt.Value{f32([]int64{2}, 0, 0)}, "float32[2](1 2)"},
		},
	},
	{
		name: "an input is mutated and comes back first",
		ir: `graph @forward(%x: f32[2] user, %y: f32[2] user) -> (mut %x = %1, %2, %x) {
  %1 = aten.mul.Tensor(%x, %y): f32[2]
  %2 = aten.add.Tensor(%1, %y): f32[2]
}`,
		calls: []call{{[]etrt.Value{f32([]int64{2}, 2, 3), f32([]int64{2}, 5, 7)}, "float32[2](10 21); float32[2](15 28); float32[2](2 3)"}},
	},
	{
		name: "a cache is written in place",
		ir: `graph @forward(%c: f32[3, 2] buffer "c" = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0], %i: i64[1] user, %x: f32[1, 2] user) -> (mut %c = %1, %2) {
  %1 = aten.index_put.default(%c, indices=[%i], values=%x): f32[3, 2]
  %2 = aten.mul.Tensor(%1, %1): f32[3, 2]
}`,
		calls: []call{
			{[]etrt.Value{i64([]int64{1}, 1), f32([]int64{1, 2}, 1, 2)}, "float32[3 2](0 0 1 4 0 0)"},
			{[]etrt.Value{i64([]int64{1}, 2), f32([]int64{1, 2}, 3, 4)}, "float32[3 2](0 0 1 4 9 16)"},
		},
		check: instructions(2),
	},
	{
		name: "the same value twice, an input, a constant",
		ir: `graph @forward(%x: f32[1] user, %w: f32[1] param "w" = [9.0]) -> (%1, %1, %x, %w) {
  %1 = aten.relu.default(%x): f32[1]
}`,
		calls: []call{{[]etrt.Value{f32([]int64{1}, -2)}, "float32[1](0); float32[1](0); float32[1](-2); float32[1](9)"}},
	},
	{
		name: "several results",
		ir: `graph @forward(%x: f32[2, 4] user) -> (%a, %b, %v, %i) {
  %a, %b = aten.split.Tensor(%x, split_size=2, dim=1): f32[2, 2], f32[2, 2]
  %v, %i = aten.topk.default(%x, k=1): f32[2, 1], i64[2, 1]
}`,
		calls: []call{{
			[]etrt.Value{f32([]int64{2, 4}, 1, 2, 3, 4, 8, 7, 6, 5)},
			"float32[2 2](1 2 8 7); float32[2 2](3 4 6 5); float32[2 1](4 8); int64[2 1](3 0)",
		}},
	},
	{
		name: "channels last input",
		ir: `graph @forward(%x: f32[1, 2, 2, 2]{8, 1, 4, 2} user) -> (%1) {
  %1 = aten.add.Tensor(%x, %x): f32[1, 2, 2, 2]{8, 1, 4, 2}
}`,
		calls: []call{{
			[]etrt.Value{{Kind: etrt.KindTensor, Tensor: &etrt.Tensor{
				DType: etrt.F32, Shape: []int64{1, 2, 2, 2}, Strides: []int64{8, 1, 4, 2},
				Data: f32(nil, 1, 5, 2, 6, 3, 7, 4, 8).Tensor.Data,
			}}},
			"float32[1 2 2 2](2 4 6 8 10 12 14 16)",
		}},
	},
	{
		name: "two conditionals alive at once",
		ir: `graph @forward(%p: bool[] user, %q: bool[] user, %x: f32[2] user) -> (%3, %1, %2) {
  %1 = higher_order.cond.default(%p, true_fn=graph @t1(%a: f32[2] operand) -> (%t1) {
    %t1 = aten.add.Tensor(%a, %a): f32[2]
  }, false_fn=graph @f1(%b: f32[2] operand) -> (%f2) {
    %f1 = aten.mul.Tensor(%b, %b): f32[2]
    %f2 = aten.neg.default(%f1): f32[2]
  }, operands=[%x]): f32[2]
  %2 = higher_order.cond.default(%q, true_fn=graph @t2(%c: f32[2] operand) -> (%c) {
  }, false_fn=graph @f2(%d: f32[2] operand) -> (%g2) {
    %g1 = aten.mul.Tensor(%d, %d): f32[2]
    %g2 = aten.mul.Tensor(%g1, %d): f32[2]
  }, operands=[%x]): f32[2]
  %3 = aten.sub.Tensor(%1, %2): f32[2]
}`,
		calls: []call{
			{[]etrt.Value{boolean(true), boolean(true), f32([]int64{2}, 2, 3)}, "float32[2](2 3); float32[2](4 6); float32[2](2 3)"},
			{[]etrt.Value{boolean(true), boolean(false), f32([]int64{2}, 2, 3)}, "float32[2](-4 -21); float32[2](4 6); float32[2](8 27)"},
			{[]etrt.Value{boolean(false), boolean(true), f32([]int64{2}, 2, 3)}, "float32[2](-6 -12); float32[2](-4 -9); float32[2](2 3)"},
			{[]etrt.Value{boolean(false), boolean(false), f32([]int64{2}, 2, 3)}, "float32[2](-12 -36); float32[2](-4 -9); float32[2](8 27)"},
		},
	},
	{
		name: "while",
		ir: `graph @forward(%n: i64[] user, %x: f32[2] user) -> (%1, %2) {
  %1, %2 = higher_order.while_loop.default(graph @c(%a: i64[] operand, %b: f32[2] operand, %k: f32[2] operand) -> (%c1) {
    %c1 = aten.gt.Scalar(%a, other=0): bool[]
  }, graph @b(%d: i64[] operand, %e: f32[2] operand, %m: f32[2] operand) -> (%b1, %b2) {
    %o = aten.scalar_tensor.default(1, dtype=dtype(i64)): i64[]
    %b1 = aten.sub.Tensor(%d, %o): i64[]
    %b2 = aten.mul.Tensor(%e, %m): f32[2]
  }, carried_inputs=[%n, %x], additional_inputs=[%x]): i64[], f32[2]
}`,
		calls: []call{
			{[]etrt.Value{i64(nil, 2), f32([]int64{2}, 2, 3)}, "int64[](0); float32[2](8 27)"},
			{[]etrt.Value{i64(nil, 0), f32([]int64{2}, 2, 3)}, "int64[](0); float32[2](2 3)"},
		},
	},
	{
		name: "scan",
		ir: `graph @forward(%i: f32[2] user, %x: f32[3, 2] user) -> (%1, %2) {
  %1, %2 = higher_order.scan.default(graph @c(%a: f32[2] operand, %b: f32[2] operand) -> (%c1, %c2) {
    %c1 = aten.add.Tensor(%a, %b): f32[2]
    %c2 = aten.mul.Tensor(%c1, %c1): f32[2]
  }, init=[%i], xs=[%x], additional_inputs=[]): f32[2], f32[3, 2]
}`,
		calls: []call{
			{[]etrt.Value{f32([]int64{2}, 1, 0), f32([]int64{3, 2}, 1, 2, 3, 4, 5, 6)}, "float32[2](10 12); float32[3 2](4 4 25 36 100 144)"},
			{[]etrt.Value{f32([]int64{2}, 0, 0), f32([]int64{3, 2}, 1, 1, 1, 1, 1, 1)}, "float32[2](3 3); float32[3 2](1 1 4 4 9 9)"},
		},
	},
	{
		name: "map",
		ir: `graph @forward(%x: f32[3, 2] user, %k: f32[2] user) -> (%1) {
  %1 = higher_order.map_impl.default(graph @c(%a: f32[2] operand, %b: f32[2] operand) -> (%c1) {
    %c1 = aten.add.Tensor(%a, %b): f32[2]
  }, xs=[%x], pos_args=[%k]): f32[3, 2]
}`,
		calls: []call{
			{[]etrt.Value{f32([]int64{3, 2}, 1, 2, 3, 4, 5, 6), f32([]int64{2}, 10, 20)}, "float32[3 2](11 22 13 24 15 26)"},
		},
	},
	{
		name: "an unbacked size",
		ir: `sym u0 in [0, 6] hint 2
graph @forward(%x: f32[3, 2] user) -> (%2, u0) {
  %1 = aten.nonzero.default(%x): i64[u0, 2]
  %2 = aten.add.Tensor(%1, %1): i64[u0, 2]
}`,
		calls: []call{
			{[]etrt.Value{f32([]int64{3, 2}, 0, 2, 0, 0, 5, 0)}, "int64[2 2](0 2 4 0); 2"},
			{[]etrt.Value{f32([]int64{3, 2}, 0, 0, 0, 0, 0, 0)}, "int64[0 2](); 0"},
		},
	},
	{
		name: "a number from a tensor",
		ir: `sym u0 in [0, 3] hint 2
graph @forward(%x: f32[3] user, %n: i64[] user) -> (%2, u0 + 1) {
  %1 = aten.item.default(%n): int(u0)
  %2 = aten.slice.Tensor(%x, dim=0, start=0, end=u0): f32[u0]
}`,
		calls: []call{
			{[]etrt.Value{f32([]int64{3}, 1, 2, 3), i64(nil, 2)}, "float32[2](1 2); 3"},
		},
	},
	{
		name: "numbers among tensors",
		ir: `sym s0 in [0, 6] hint 2
graph @forward(%x: f32[s0] user, %n: i64[] user) -> (%1, %2, %3, %4) {
  %1 = aten.mul.Tensor(%x, 2.5): f32[s0]
  %2 = aten.add.Tensor(%x, s0 + 1): f32[s0]
  %3 = aten.add.Tensor(%n, 3): i64[]
  %4 = aten.mul.Tensor(%n, 0.5): f32[]
}`,
		calls: []call{
			{[]etrt.Value{f32([]int64{2}, 2, 4), i64(nil, 5)}, "float32[2](5 10); float32[2](5 7); int64[](8); float32[](2.5)"},
		},
	},
	{
		name: "parts of varying size",
		ir: `sym s0 in [1, 6] hint 2
graph @forward(%x: f32[s0, 2] user) -> (%1, %2) {
  %1, %2 = aten.split_with_sizes.default(%x, split_sizes=[1, 1], dim=1): f32[s0, 1], f32[s0, 1]
}`,
		calls: []call{
			{[]etrt.Value{f32([]int64{2, 2}, 1, 2, 3, 4)}, "float32[2 1](1 3); float32[2 1](2 4)"},
			{[]etrt.Value{f32([]int64{1, 2}, 1, 2)}, "float32[1 1](1); float32[1 1](2)"},
		},
	},
	{
		name: "a view without elements", // as of no register tokens, for a batch of any size
		ir: `sym s0 in [1, 6] hint 2
graph @forward(%x: f32[s0, 2] user, %e: f32[s0, 0] user) -> (%2) {
  %1 = aten.view.default(%e, size=[s0, 0, 2]) : f32[s0, 0, 2]
  %3 = aten.view.default(%x, size=[s0, 1, 2]) : f32[s0, 1, 2]
  %2 = aten.cat.default([%1, %3], dim=1)      : f32[s0, 1, 2]
}`,
		calls: []call{
			{[]etrt.Value{f32([]int64{2, 2}, 1, 2, 3, 4), f32([]int64{2, 0})}, "float32[2 1 2](1 2 3 4)"},
		},
	},
	{
		name: "arithmetic on sizes",
		ir: `sym s0 in [0, 20] hint 3
sym s1 in [1, 20] hint 3
graph @forward(%x: f32[s0] user, %y: f32[s1] user) -> ((s0 - 7)//3, (s0 - 7) % 3, max(s0, s1), min(s0, 2*s1), s0*s0 - s1) {
}`,
		calls: []call{
			{[]etrt.Value{f32([]int64{2}, 1, 2), f32([]int64{3}, 1, 2, 3)}, "-2; 1; 3; 2; 1"},
			{[]etrt.Value{f32([]int64{9}, make([]float32, 9)...), f32([]int64{3}, 1, 2, 3)}, "0; 2; 9; 6; 78"},
		},
	},
}

func instructions(most int) func(p *pte.Plan) string {
	return func(p *pte.Plan) string {
		if n := len(p.Chains[0].Instructions); n > most {
			return fmt.Sprintf("%d instructions, %d are enough", n, most)
		}
		return ""
	}
}

// load opens a program in the runtime, its memory poisoned, until the test ends.
func load(t *testing.T, p *pte.Program) *etrt.Program {
	t.Helper()
	rt := ettest.Open(t)
	path := filepath.Join(t.TempDir(), "p.pte")
	if err := pte.WriteFile(t.Context(), path, p, pte.Options{}); err != nil {
		t.Fatal(err)
	}
	run, err := rt.Load(context.Background(), path, etrt.WithPoison())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { run.Close() })
	return run
}

func TestPrograms(t *testing.T) {
	for _, c := range programs {
		t.Run(c.name, func(t *testing.T) {
			g, err := text.Parse(c.ir, text.Options{})
			if err != nil {
				t.Fatal(err)
			}
			res, err := program.Lower(&ir.Program{Methods: []*ir.Graph{g}}, program.Options{})
			if err != nil {
				t.Fatal(err)
			}
			p := res.Program
			if c.check != nil {
				if why := c.check(p.Plans[0]); why != "" {
					t.Error(why)
				}
			}
			run := load(t, p)
			for i, call := range c.calls {
				outs, err := run.Run("forward", call.in)
				if err != nil {
					t.Fatalf("call %d: %v", i, err)
				}
				var got []string
				for _, o := range outs {
					got = append(got, show(o))
				}
				if s := strings.Join(got, "; "); s != call.want {
					t.Errorf("call %d: %s, want %s", i, s, call.want)
				}
			}
		})
	}
}

func TestExternalWeights(t *testing.T) {
	g, err := text.Parse(`graph @forward(%x: f32[2] user, %w: f32[2] param "w" = [1.0, 2.0], %v: f32[1, 2] param "v" = [3.0, 4.0]) -> (%3) {
  %1 = aten.view.default(%w, size=[1, 2]): f32[1, 2]
  %2 = aten.add.Tensor(%1, %v): f32[1, 2]
  %4 = aten.mul.Tensor(%2, %w): f32[1, 2]
  %3 = aten.add.Tensor(%4, %x): f32[1, 2]
}`, text.Options{})
	if err != nil {
		t.Fatal(err)
	}
	res, err := program.Lower(&ir.Program{Methods: []*ir.Graph{g}}, program.Options{External: true})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	prog, data := filepath.Join(dir, "p.pte"), filepath.Join(dir, "p.ptd")
	ctx := context.Background()
	if err := pte.WriteFiles(ctx, prog, res.Program, data, res.Data, pte.Options{}); err != nil {
		t.Fatal(err)
	}
	if n := len(res.Program.Constants); n > 0 {
		t.Errorf("%d constants are in the program", n)
	}
	run, err := ettest.Open(t).Load(ctx, prog, etrt.WithData(data))
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	outs, err := run.Run("forward", []etrt.Value{f32([]int64{2}, 10, 20)})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := show(outs[0]), "float32[1 2](14 32)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// What one method writes and another reads is state in both, at one place of a memory of its own.
func TestSharedState(t *testing.T) {
	p, err := text.ParseProgram(`graph @get(%x: f32[2] user, %n: f32[2] buffer "n" = [1.0, 2.0]) -> (%1) {
  %1 = aten.add.Tensor(%n, %x): f32[2]
}
graph @set(%n: f32[2] buffer "n" = [1.0, 2.0], %own: f32[2] buffer "own" = [1.0, 2.0], %x: f32[2] user) -> (mut %n = %2, mut %own = %2, %2) {
  %2 = aten.mul.Tensor(%x, %x): f32[2]
}`, text.Options{})
	if err != nil {
		t.Fatal(err)
	}
	res, err := program.Lower(p, program.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, plan := range res.Program.Plans {
		var in []string
		for _, v := range plan.Values {
			if x, ok := v.(*pte.Tensor); ok && x.Alloc != nil && x.Alloc.Memory == 2 {
				in = append(in, fmt.Sprintf("%d %d", x.Alloc.Offset, x.Data))
			}
		}
		if want := []string{"0 1"}; !slices.Equal(in, want) || !slices.Equal(plan.BufferSizes[2:], []int64{16}) {
			t.Errorf("method %s has %v in the shared memory of %v", plan.Name, in, plan.BufferSizes)
		}
	}
	run := load(t, res.Program)
	for method, want := range map[string]string{"get": "float32[2](4 6)", "set": "float32[2](9 16)"} {
		outs, err := run.Run(method, []etrt.Value{f32([]int64{2}, 3, 4)})
		if err != nil {
			t.Fatal(err)
		}
		if got := show(outs[0]); got != want {
			t.Errorf("%s: %s, want %s", method, got, want)
		}
	}
}

// A graph of very many nodes is lowered in time that grows with their number.
func TestLargeGraph(t *testing.T) {
	g := ir.NewGraph("forward", nil)
	typ := ir.StaticType(ops.Float32, 2, 3)
	v := g.AddInput("x", ir.InputUser, "", typ).Value
	first := v
	add, view := ops.Lookup("aten.add.Tensor"), ops.Lookup("aten.view")
	flat := ir.StaticType(ops.Float32, 6)
	for i := range 50_000 {
		if i%3 == 2 {
			w := g.NewNode(g.Ret(), view, []ir.Arg{ir.Ref(v), ir.Ints(6)}, []ir.Type{flat}, nil).Out()
			v = g.NewNode(g.Ret(), view, []ir.Arg{ir.Ref(w), ir.Ints(2, 3)}, []ir.Type{typ}, nil).Out()
			continue
		}
		v = g.NewNode(g.Ret(), add, []ir.Arg{ir.Ref(v), ir.Ref(first), ir.Int(1)}, []ir.Type{typ}, nil).Out()
	}
	g.SetOutputs([]ir.Output{{}}, []ir.Arg{ir.Ref(v)})
	res, err := program.Lower(&ir.Program{Methods: []*ir.Graph{g}}, program.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if m := res.Methods[0]; m.Planned > 4*32 {
		t.Errorf("%d bytes are planned", m.Planned)
	}
}

// What cannot be lowered is refused with a diagnostic that names it.
func TestRefusals(t *testing.T) {
	for _, c := range []struct{ name, ir, want string }{
		{"no kernel", `graph @forward(%x: f32[2, 2] user) -> (%1) {
  %1 = aten.triu.default(%x): f32[2, 2]
}`, "aten.triu"},
		{"no bound", `sym u0 in [0, inf]
graph @forward(%n: i64[] user) -> (%2) {
  %1 = aten.item.default(%n): int(u0)
  %2 = aten.full.default([u0], 1.0): f32[u0]
}`, "--dim u0="},
		{"no contents", `graph @forward(%x: f32[2] user, %w: f32[2] param "w") -> (%1) {
  %1 = aten.add.Tensor(%x, %w): f32[2]
}`, `param "w" comes without its contents`},
		{"an element type that the kernel has not", `graph @forward(%x: c64[2] user) -> (%1) {
  %1 = aten.relu.default(%x): c64[2]
}`, "does not take c64"},
		{"an argument that the kernel has not", `graph @forward(%x: f32[2] user) -> (%1) {
  %1 = "my.op"(%x): f32[2]
}`, "my.op"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, err := text.Parse(c.ir, text.Options{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = program.Lower(&ir.Program{Methods: []*ir.Graph{g}}, program.Options{})
			ds, ok := ir.AsDiags(err)
			if !ok || len(ds) != 1 {
				t.Fatalf("%v, want one diagnostic", err)
			}
			if s := ds[0].Error() + ds[0].Try; !strings.Contains(s, c.want) {
				t.Errorf("%s, want it to say %q", s, c.want)
			}
		})
	}
}

// Inputs in the caller's memory take no planned memory; what the program writes to them it writes there.
func TestCallersInputs(t *testing.T) {
	g, err := text.Parse(`graph @forward(%c: f32[64, 2] user, %i: i64[1] user, %x: f32[2] user) -> (mut %c = %2, %4) {
  %1 = aten.view.default(%x, size=[1, 2]): f32[1, 2]
  %2 = aten.index_put.default(%c, indices=[%i], values=%1): f32[64, 2]
  %3 = aten.slice.Tensor(%2, dim=0, start=0, end=2): f32[2, 2]
  %4 = aten.mul.Tensor(%3, %3): f32[2, 2]
}`, text.Options{})
	if err != nil {
		t.Fatal(err)
	}
	res, err := program.Lower(&ir.Program{Methods: []*ir.Graph{g}}, program.Options{CallerInputs: true})
	if err != nil {
		t.Fatal(err)
	}
	if n := res.Methods[0].Planned; n > 64 {
		t.Errorf("%d bytes are planned", n)
	}
	run := load(t, res.Program)
	for call := range 2 {
		cache := make([]float32, 128)
		cache[0] = float32(call)
		outs, err := run.Run("forward", []etrt.Value{f32([]int64{64, 2}, cache...), i64([]int64{1}, 1), f32([]int64{2}, 3, 4)})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := show(outs[1]), fmt.Sprintf("float32[2 2](%d 0 9 16)", call); got != want {
			t.Errorf("call %d: %s, want %s", call, got, want)
		}
		cache[2], cache[3] = 3, 4
		if got, want := show(outs[0]), show(f32([]int64{64, 2}, cache...)); got != want {
			t.Errorf("call %d: the input is %s, want %s", call, got, want)
		}
	}
}
