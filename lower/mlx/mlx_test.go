package mlx

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"strings"
	"testing"

	fbmlx "github.com/lathe-ml/lathe/codegen/fb/mlx"
	"github.com/lathe-ml/lathe/codegen/mlxpayload"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ir/text"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/partition"
)

// payload lowers a text all of whose nodes the delegate takes.
func payload(t *testing.T, src string) *fbmlx.MLXGraph {
	t.Helper()
	g, err := text.Parse(src, text.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g.Stage = ops.StageEdge
	rep, err := partition.Partition(context.Background(), g, Backend{})
	if err != nil {
		t.Fatal(err)
	}
	if len(rep.Regions) != 1 || len(rep.Outside) != 0 {
		t.Fatalf("%d regions, outside: %v", len(rep.Regions), rep.Outside)
	}
	low := rep.Regions[0].Node.Attr.(*partition.Lowered)
	var b bytes.Buffer
	if _, err := low.Payload.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	p, err := mlxpayload.Unmarshal(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return p.Graph
}

// Temporaries do not grow with the number of layers.
func TestTemporariesByDepth(t *testing.T) {
	stack := func(depth int) *fbmlx.MLXGraph {
		var b strings.Builder
		b.WriteString("graph @forward(%x: f32[2, 4] user")
		for i := range depth {
			fmt.Fprintf(&b, ", %%w%d: f32[4, 4] param \"w%d\" = [%s]", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("%d.0, ", i+1), 16), ", "))
		}
		fmt.Fprintf(&b, ") -> (%%y%d) {\n", depth-1)
		last := "x"
		for i := range depth {
			fmt.Fprintf(&b, "  %%y%d = aten.linear(%%%s, %%w%d): f32[2, 4]\n", i, last, i)
			last = fmt.Sprintf("y%d", i)
		}
		b.WriteString("}")
		return payload(t, b.String())
	}
	few, many := stack(4), stack(32)
	if few.NumTempTensors != many.NumTempTensors || many.NumConstantTensors != 32 {
		t.Errorf("%d temporaries at depth 4, %d at depth 32, %d constants", few.NumTempTensors, many.NumTempTensors, many.NumConstantTensors)
	}
}

// Nor do they with whole blocks of a decoder, whose states live on beside them.
func TestTemporariesByBlocks(t *testing.T) {
	stack := func(depth int) *fbmlx.MLXGraph {
		var in, b strings.Builder
		weight := func(name string, sizes ...int) {
			n := 1
			for _, s := range sizes {
				n *= s
			}
			fmt.Fprintf(&in, ", %%%s: f32%s param \"%s\" = [%s]", name, strings.ReplaceAll(fmt.Sprint(sizes), " ", ", "), name, strings.TrimSuffix(strings.Repeat("0.5, ", n), ", "))
		}
		last := "x"
		for i := range depth {
			v := func(s string) string { return fmt.Sprintf("%s_%d", s, i) }
			say := func(out, format string, args ...any) {
				fmt.Fprintf(&b, "  %%%s = %s\n", v(out), fmt.Sprintf(format, args...))
			}
			for _, w := range []string{"q", "k", "v", "o"} {
				weight(v("w"+w), 4, 4)
			}
			say("n", "aten.rms_norm(%%%s, [4]): f32[1, 3, 4]", last)
			for _, w := range []string{"q", "k", "v"} {
				say(w+"l", "aten.linear(%%%s, %%%s): f32[1, 3, 4]", v("n"), v("w"+w))
				say(w+"w", "aten.view(%%%s, [1, 3, 2, 2]): f32[1, 3, 2, 2]", v(w+"l"))
				say(w+"t", "aten.permute(%%%s, [0, 2, 1, 3]): f32[1, 2, 3, 2]{12, 2, 4, 1}", v(w+"w"))
			}
			say("qr", "lathe.rope(%%%s, %%f): f32[1, 2, 3, 2]", v("qt"))
			say("kr", "lathe.rope(%%%s, %%f): f32[1, 2, 3, 2]", v("kt"))
			say("a", "aten.scaled_dot_product_attention(%%%s, %%%s, %%%s): f32[1, 2, 3, 2]", v("qr"), v("kr"), v("vt"))
			say("at", "aten.permute(%%%s, [0, 2, 1, 3]): f32[1, 3, 2, 2]{12, 2, 6, 1}", v("a"))
			say("av", "aten.reshape(%%%s, [1, 3, 4]): f32[1, 3, 4]", v("at"))
			say("o", "aten.linear(%%%s, %%%s): f32[1, 3, 4]", v("av"), v("wo"))
			say("y", "aten.add.Tensor(%%%s, %%%s): f32[1, 3, 4]", last, v("o"))
			last = v("y")
		}
		return payload(t, fmt.Sprintf("graph @forward(%%x: f32[1, 3, 4] user, %%f: f32[1] param \"f\" = [1.0]%s) -> (%%%s) {\n%s}", in.String(), last, b.String()))
	}
	two, eight := stack(2), stack(8)
	if two.NumTempTensors != eight.NumTempTensors || two.NumValues != eight.NumValues {
		t.Errorf("%d temporaries and %d values at depth 2, %d and %d at depth 8", two.NumTempTensors, two.NumValues, eight.NumTempTensors, eight.NumValues)
	}
	if n := len(eight.InstructionChains[0].Instructions); n != 4*len(two.InstructionChains[0].Instructions) {
		t.Errorf("%d instructions at depth 8, %d at depth 2", n, len(two.InstructionChains[0].Instructions))
	}
}

// Slots are numbered constants, inputs, outputs, buffers, temporaries; integer inputs and sizes share the values.
func TestSlots(t *testing.T) {
	g := payload(t, `sym s0 in [1, 8] hint 2
sym s1 in [0, 9] hint 2
graph @forward(%w: f32[3] param "w" = [1.0, 2.0, 3.0], %n: int(s1) user, %b: f32[3] buffer "b" = [0.0, 0.0, 0.0], %x: f32[s0, 3] user) -> (mut %b = %3, %4) {
  %1 = aten.mul.Tensor(%x, %w): f32[s0, 3]
  %2 = aten.sum.dim_IntList(%1, [0]): f32[3]
  %3 = aten.add.Tensor(%b, %2): f32[3]
  %4 = aten.mul.Tensor(%3, s1 + 1): f32[3]
}`)
	if g.NumConstantTensors != 1 || g.NumInputTensors != 1 || g.NumOutputTensors != 1 || g.NumMutableBufferTensors != 1 {
		t.Fatalf("%d constants, %d inputs, %d outputs, %d buffers", g.NumConstantTensors, g.NumInputTensors, g.NumOutputTensors, g.NumMutableBufferTensors)
	}
	if s := g.InputMap; len(s) != 2 || s[1].SlotType != fbmlx.SlotTypeIntValueSlot || s[0].Idx != 1 {
		t.Errorf("%d inputs", len(s))
	}
	if g.OutputMap[0].Idx != 2 || g.MutableBufferMap[0].Idx != 3 {
		t.Errorf("output %d, buffer %d", g.OutputMap[0].Idx, g.MutableBufferMap[0].Idx)
	}
	if d := g.TensorMeta[1].Shape[0]; d.Value != -1 || d.MinValue != 1 || d.MaxValue != 8 {
		t.Errorf("the input's first size is %+v", *d)
	}
}

// No two things that live at one time have one number, none lives in a place that is taken, and no more numbers are used than
// things live at once.
func TestColor(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		spans := make([]span, r.IntN(40))
		for i := range spans {
			f := r.IntN(50)
			spans[i] = span{f, f + r.IntN(12)}
		}
		sort.Slice(spans, func(i, j int) bool { return spans[i].first < spans[j].first })
		taken := make([]int, r.IntN(4))
		for i := range taken {
			taken[i] = r.IntN(60)
		}
		numbers, n := color(spans, taken)
		most := 0
		for at := range 64 {
			live := map[uint32]int{}
			for i, s := range spans {
				// A thing is there from the end of its making to its last use.
				if s.first <= at && (at < s.last || at == s.first) {
					if k := int(numbers[i]); k < len(taken) && at >= taken[k] {
						t.Fatalf("at %d %v has number %d, which is taken from %d", at, s, k, taken[k])
					}
					if j, taken := live[numbers[i]]; taken {
						t.Fatalf("at %d %v and %v have number %d", at, spans[j], s, numbers[i])
					}
					live[numbers[i]] = i
				}
			}
			most = max(most, len(live))
		}
		if int(n) > most+len(taken) {
			t.Fatalf("%d numbers for %d at once: %v", n, most, spans)
		}
	}
}

func TestLegalGroup(t *testing.T) {
	for g, want := range map[int64]int64{16: 16, 32: 32, 64: 64, 128: 128, 256: 128, 5376: 128, 48: 16, 96: 32, 5: 0, 24: 0, 0: 0} {
		if got := legalGroup(g); got != want {
			t.Errorf("groups of %d become %d, want %d", g, got, want)
		}
	}
}

// A packed weight stands for the same numbers as before, whatever its bits, and however coarse its groups were.
func TestPack(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const rows, cols = 3, 256
	for _, bits := range []int64{2, 3, 4, 5, 6, 8} {
		for _, coarse := range []int64{32, 128, 256} {
			low := -(int64(1) << (bits - 1))
			q := make([]byte, rows*cols)
			for i := range q {
				q[i] = byte(int8(low + r.Int64N(1<<bits)))
			}
			groups := cols / coarse
			var scale, zero []byte
			for range rows * groups {
				scale = binary.LittleEndian.AppendUint32(scale, math.Float32bits(float32(r.Float64()+0.5)))
				zero = append(zero, byte(int8(r.IntN(7)-3)))
			}
			in := func(name string, d ops.DType, b []byte, sizes ...int64) *ir.Input {
				return &ir.Input{Target: name, Data: ir.NewData(d, sizes, b)}
			}
			p := &packed{
				mode: "affine", bits: bits, low: low, coarse: coarse, group: legalGroup(coarse), lead: []int64{rows}, cols: cols, out: ops.Float32,
				q: in("q", ops.Int8, q, rows, cols), scale: in("s", ops.Float32, scale, rows, groups), zero: in("z", ops.Int8, zero, rows, groups),
			}
			if _, why := p.fits(); why != "" {
				t.Fatal(why)
			}
			words, scales, biases := bytesOf(t, &packBlob{p}), bytesOf(t, &groupBlob{p: p, in: p.scale}), bytesOf(t, &groupBlob{p: p, in: p.scale, bias: true})
			for row := range int64(rows) {
				for col := range int64(cols) {
					at := (row*cols + col) * bits
					n := uint32(0)
					for k := range bits {
						n |= uint32(words[(at+k)/8]>>((at+k)%8)&1) << k
					}
					g := row*(cols/p.group) + col/p.group
					f32 := func(b []byte, i int64) float64 {
						return float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
					}
					got := f32(scales, g)*float64(n) + f32(biases, g)
					c := row*groups + col/coarse
					want := f32(scale, c) * float64(int64(int8(q[row*cols+col]))-int64(int8(zero[c])))
					if math.Abs(got-want) > 1e-4 {
						t.Fatalf("%d bits, groups of %d, row %d column %d: %v, want %v", bits, coarse, row, col, got, want)
					}
				}
			}
		}
	}
}

func bytesOf(t *testing.T, b partition.Blob) []byte {
	t.Helper()
	var w bytes.Buffer
	n, err := b.WriteTo(&w)
	if err != nil || n != b.Size() || int64(w.Len()) != n {
		t.Fatalf("%d bytes of %d: %v", n, b.Size(), err)
	}
	return w.Bytes()
}

// The check finds what the delegate would read out of bounds.
func TestCheck(t *testing.T) {
	good := func() (*fbmlx.MLXGraph, []partition.Named) {
		m := func() *fbmlx.TensorMeta {
			d := fbmlx.NewShapeDim()
			d.Value = 2
			return &fbmlx.TensorMeta{Shape: []*fbmlx.ShapeDim{d}, ScalarType: 6}
		}
		return &fbmlx.MLXGraph{
			NumConstantTensors: 1, NumOutputTensors: 1, NumTempTensors: 1, InitChainIdx: -1, TensorMeta: []*fbmlx.TensorMeta{m(), m()},
			InstructionChains: []*fbmlx.InstructionChain{{Instructions: []*fbmlx.Instruction{
				{Op: &fbmlx.ExpNode{X: fbmlx.Tid{Idx: 0}, Out: fbmlx.Tid{Idx: 2}}},
				{Op: &fbmlx.ExpNode{X: fbmlx.Tid{Idx: 2}, Out: fbmlx.Tid{Idx: 1}}},
			}}},
			OutputMap:  []*fbmlx.SlotVariant{{Idx: 1}},
			NamedSlots: []*fbmlx.NamedSlot{{Name: "w", Slot: &fbmlx.SlotVariant{Idx: 0}}},
		}, []partition.Named{{Key: "w", Data: memBlob(make([]byte, 8))}}
	}
	g, named := good()
	if err := check(g, named); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(g *fbmlx.MLXGraph, named []partition.Named){
		"has 4 bytes, its shape asks for 8": func(_ *fbmlx.MLXGraph, named []partition.Named) { named[0].Data = memBlob(make([]byte, 4)) },
		"no data is named":                  func(_ *fbmlx.MLXGraph, named []partition.Named) { named[0].Key = "v" },
		"constant 0 has no data":            func(g *fbmlx.MLXGraph, _ []partition.Named) { g.NamedSlots = nil },
		"before it is written": func(g *fbmlx.MLXGraph, _ []partition.Named) {
			i := g.InstructionChains[0].Instructions
			i[0], i[1] = i[1], i[0]
		},
		"tensor slot 3 of 3": func(g *fbmlx.MLXGraph, _ []partition.Named) {
			g.InstructionChains[0].Instructions[0].Op.(*fbmlx.ExpNode).Out.Idx = 3
		},
		"result 0 is never written": func(g *fbmlx.MLXGraph, _ []partition.Named) { g.InstructionChains[0].Instructions = nil },
	} {
		g, named := good()
		spoil(g, named)
		if err := check(g, named); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Sizes are computed by the delegate's five operations as the expressions say.
func TestExpressions(t *testing.T) {
	for _, src := range []string{
		"s0 + 1", "2*s0 - s1", "s0//3", "s0 % 4", "max(s0, s1, 5)", "min(s0, s1)", "abs(s0 - s1)", "where(s0 < s1, s0, 4)",
		"where(s0 == 7 and not s1 >= 3, 1, 2)", "where(s0 != s1 or s0 <= 2, s1, s0)", "s0**3", "-s0//2",
	} {
		e, err := sym.Parse(src)
		if err != nil {
			t.Fatal(err)
		}
		if why := expressible(e); why != "" {
			t.Errorf("%s: %s", src, why)
			continue
		}
		for s0 := int64(0); s0 < 12; s0++ {
			for _, s1 := range []int64{1, 3, 9} {
				want, err := sym.Eval(e, sym.MapEnv{"s0": s0, "s1": s1})
				if err != nil {
					t.Fatal(err)
				}
				if got := evaluate(t, e, map[string]int64{"s0": s0, "s1": s1}); got != want {
					t.Errorf("%s with %d and %d: %d, want %d", src, s0, s1, got, want)
				}
			}
		}
	}
	if expressible(sym.BitAnd(sym.Symbol("s0"), sym.Const(3))) == "" {
		t.Error("s0 & 3 has no form in the delegate")
	}
}

// evaluate runs the instructions that compute e.
func evaluate(t *testing.T, e sym.Expr, env map[string]int64) int64 {
	t.Helper()
	g := ir.NewGraph("forward", nil)
	names := []string{"s0", "s1"}
	for _, s := range names {
		g.AddInput(s, ir.InputUser, "", ir.IntType(sym.Symbol(s)))
	}
	b := newBuilder(g, Caps{})
	if err := b.build(context.Background()); err != nil {
		t.Fatal(err)
	}
	x := b.int(e)
	if b.err != nil {
		t.Fatal(b.err)
	}
	vals := map[uint32]int64{}
	for i, s := range b.inputs {
		vals[s.Idx] = env[names[i]]
	}
	get := func(v *fbmlx.IntOrVid) int64 {
		if v.IsVid {
			return vals[v.Vid.Idx]
		}
		return v.Literal
	}
	floor := func(a, c int64) int64 {
		q := a / c
		if a%c != 0 && (a < 0) != (c < 0) {
			q--
		}
		return q
	}
	for _, op := range b.chain.ops {
		switch n := op.(type) {
		case *fbmlx.AddIntNode:
			vals[n.Out.Idx] = get(n.A) + get(n.B)
		case *fbmlx.SubtractIntNode:
			vals[n.Out.Idx] = get(n.A) - get(n.B)
		case *fbmlx.MultiplyIntNode:
			vals[n.Out.Idx] = get(n.A) * get(n.B)
		case *fbmlx.FloorDivideIntNode:
			vals[n.Out.Idx] = floor(get(n.A), get(n.B))
		case *fbmlx.ModIntNode:
			vals[n.Out.Idx] = get(n.A) - get(n.B)*floor(get(n.A), get(n.B))
		default:
			t.Fatalf("%T", op)
		}
	}
	return get(x)
}

// A node that is declined says why.
func TestWhy(t *testing.T) {
	for src, want := range map[string]string{
		`graph @forward(%x: f64[2] user) -> (%1) {
  %1 = aten.neg(%x): f64[2]
}`: "it has no f64",
		`graph @forward(%x: f32[2, 4] user) -> (%1, %2) {
  %1, %2 = aten.max_pool1d_with_indices(%x, [2]): f32[2, 2], i64[2, 2]
}`: "the places of the maxima",
		`graph @forward(%x: f32[2] user, %m: bool[2] user) -> (%1) {
  %1 = aten.nonzero(%m): i64[u0, 1]
}`: "no node for it",
	} {
		g, err := text.Parse("sym u0 in [0, 9]\n"+src, text.Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, d := Caps{}.Match(g.First())
		if d == nil || !strings.Contains(d.Msg, want) {
			t.Errorf("%v, want %q", d, want)
		}
	}
}
