package interp_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-ml/lathe/interp"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/text"
	"github.com/lathe-ml/lathe/ops"
)

func parse(t *testing.T, src string) *ir.Graph {
	t.Helper()
	g, err := text.Parse(src, text.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func f32(sizes []int64, v ...float64) *interp.Tensor {
	t, err := interp.FromFloats(ops.Float32, sizes, v)
	if err != nil {
		panic(err)
	}
	return t
}

func session(t *testing.T, src string, o interp.Options) *interp.Session {
	t.Helper()
	s, err := interp.New(parse(t, src), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustRun(t *testing.T, s *interp.Session, in ...interp.Value) []interp.Value {
	t.Helper()
	out, err := s.Run(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func wantFloats(t *testing.T, what string, v interp.Value, want ...float64) {
	t.Helper()
	x, ok := v.(*interp.Tensor)
	if !ok || !slices.Equal(x.Floats(), want) {
		t.Errorf("%s is %v, want %v", what, v, want)
		if ok {
			t.Log(x.Floats())
		}
	}
}

// A quotient of 32-bit floats is rounded before it is cut, and not before it is rounded down. The values are PyTorch's.
func TestRoundedQuotients(t *testing.T) {
	s := session(t, `graph @f(%x: f32[4] user) -> (%1, %2) {
  %1 = aten.div.Scalar_mode(%x, 0.1, rounding_mode="trunc") : f32[4]
  %2 = aten.div.Scalar_mode(%x, 0.1, rounding_mode="floor") : f32[4]
}
`, interp.Options{})
	out := mustRun(t, s, f32([]int64{4}, 1, 0.3, -1, 6))
	wantFloats(t, "trunc", out[0], 10, 3, -10, 60)
	wantFloats(t, "floor", out[1], 9, 3, -10, 59)
}

// Before functionalization a write through a view of a view shows in the base, in the other views and in the state.
func TestWritesThroughViews(t *testing.T) {
	s := session(t, `graph @f(%x: f32[2] user, %b: f32[2, 3] buffer "b" = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]) -> (%5, %sum) {
  %t = aten.transpose.int(%b, 0, 1)      : f32[3, 2]{1, 3}
  %r = aten.select.int(%t, 0, 1)         : f32[2]{3}
  %5 = aten.slice.Tensor(%b, 1, 1, 3)    : f32[2, 2]{3, 1}
  %a = aten.add_.Tensor(%r, %x)          : f32[2]{3}
  %sum = aten.sum.default(%b)            : f32[]
}
`, interp.Options{})
	out := mustRun(t, s, f32([]int64{2}, 10, 20))
	wantFloats(t, "the other view", out[0], 11, 2, 24, 5)
	wantFloats(t, "the sum", out[1], 45)
	wantFloats(t, "the state", s.State().Tensor("b"), 0, 11, 2, 3, 24, 5)
	out = mustRun(t, s, f32([]int64{2}, 10, 20))
	wantFloats(t, "the sum of the next call", out[1], 75)
}

// A write-back goes to state and to the caller's tensor after everything is computed; an output that aliases them keeps
// the value it had.
func TestWriteBacks(t *testing.T) {
	s := session(t, `graph @f(%x: f32[2] user, %b: f32[2] buffer "b" = [1.0, 2.0]) -> (mut %b = %n, mut %x = %m, %v, %b) {
  %v = aten.view.default(%b, [2])        : f32[2]
  %n = aten.add.Tensor(%b, %x)           : f32[2]
  %m = aten.mul.Tensor(%n, %n)           : f32[2]
}
`, interp.Options{})
	x := f32([]int64{2}, 1, 1)
	out := mustRun(t, s, x)
	if len(out) != 2 {
		t.Fatalf("%d outputs, want the user's 2", len(out))
	}
	wantFloats(t, "an alias of the buffer", out[0], 1, 2)
	wantFloats(t, "the buffer as output", out[1], 1, 2)
	wantFloats(t, "the input", x, 4, 9)
	wantFloats(t, "the state", s.State().Tensor("b"), 2, 3)
}

func TestSymbols(t *testing.T) {
	src := `sym s0 in [3, 8] hint 4
graph @f(%x: f32[s0, 2] user, %y: f32[2*s0 + 1] user, %k: int(s0 - 1) user) -> (%1) {
  %1 = aten.slice.Tensor(%y, 0, s0//2, s0 + 1) : f32[s0 + 1 - s0//2]
}
names "tokens", "mask", "count"
`
	s := session(t, src, interp.Options{CheckTypes: true})
	out := mustRun(t, s, f32([]int64{3, 2}, make([]float64, 6)...), f32([]int64{7}, 0, 1, 2, 3, 4, 5, 6), int64(2))
	wantFloats(t, "the slice", out[0], 1, 2, 3)
	for name, c := range map[string]struct {
		in   []interp.Value
		want string
	}{
		"out of range":  {[]interp.Value{f32([]int64{9, 2}, make([]float64, 18)...), f32([]int64{19}, make([]float64, 19)...), int64(8)}, "input 0 (tokens): dimension 0"},
		"inconsistent":  {[]interp.Value{f32([]int64{3, 2}, make([]float64, 6)...), f32([]int64{9}, make([]float64, 9)...), int64(2)}, "input 1 (mask): dimension 0: is 9"},
		"wrong int":     {[]interp.Value{f32([]int64{3, 2}, make([]float64, 6)...), f32([]int64{7}, make([]float64, 7)...), int64(5)}, "input 2 (count)"},
		"wrong rank":    {[]interp.Value{f32([]int64{6}, make([]float64, 6)...), f32([]int64{7}, make([]float64, 7)...), int64(2)}, "input 0 (tokens): is f32[6]"},
		"no tensor":     {[]interp.Value{3.5, f32([]int64{7}, make([]float64, 7)...), int64(2)}, "input 0 (tokens): is a float"},
		"count":         {[]interp.Value{int64(1)}, "1 inputs, the program takes 3"},
		"constant size": {[]interp.Value{f32([]int64{3, 3}, make([]float64, 9)...), f32([]int64{7}, make([]float64, 7)...), int64(2)}, "dimension 1: is 3, 2 is wanted"},
	} {
		_, err := s.Run(context.Background(), c.in)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// Control flow, a size known only when it runs, and a nested graph that runs several times.
func TestControlFlow(t *testing.T) {
	s := session(t, controlFlow, interp.Options{CheckTypes: true})
	x := f32([]int64{6}, 1, -2, 3, -4, 0, 6)
	out := mustRun(t, s, x, boolTensor(true))
	wantFloats(t, "cond", out[0], -1, 2, -3, 4, 0, -6)
	wantFloats(t, "while", out[1], 8, -16, 24, -32, 0, 48)
	if n := out[2].(*interp.Tensor); !slices.Equal(n.Sizes, []int64{3, 2}) {
		t.Errorf("the size found at run time gave %s", n)
	}
	out = mustRun(t, s, x, boolTensor(false))
	if got := out[0].(*interp.Tensor).Floats()[0]; math.Abs(got-math.E) > 1e-6 {
		t.Errorf("the other branch gave %v", got)
	}
}

const controlFlow = `sym u0 in [0, 6]
graph @f(%x: f32[6] user, %p: bool[] user) -> (%c, %w1, %n) {
  %c = higher_order.cond(%p, graph @a(%e: f32[6] operand) -> (%na) {
    %na = aten.neg.default(%e) : f32[6]
  }, graph @b(%e2: f32[6] operand) -> (%ex) {
    %ex = aten.exp.default(%e2) : f32[6]
  }, [%x]) : f32[6]
  %i = aten.full.default([], 0, dtype=dtype(i64)) : i64[]
  %w0, %w1 = higher_order.while_loop(graph @cond(%k: i64[] operand, %v: f32[6] operand) -> (%lt) {
    %lt = aten.lt.Scalar(%k, 3) : bool[]
  }, graph @body(%k2: i64[] operand, %v2: f32[6] operand) -> (%kk, %vv) {
    %kk = aten.add.Scalar(%k2, 1) : i64[]
    %vv = aten.mul.Scalar(%v2, 2) : f32[6]
  }, [%i, %x], []) : i64[], f32[6]
  %m = aten.gt.Scalar(%x, 0) : bool[6]
  %s = aten.masked_select.default(%x, %m) : f32[u0]
  %n = aten.full.default([u0, 2], u0) : i64[u0, 2]
}
`

func boolTensor(b bool) *interp.Tensor {
	v := byte(0)
	if b {
		v = 1
	}
	t, err := interp.FromBytes(ops.Bool, nil, []byte{v})
	if err != nil {
		panic(err)
	}
	return t
}

// Bad graphs and values are errors that name operator and place, never a panic.
func TestErrorsNameTheNode(t *testing.T) {
	loc := ` @0
}
loc @0 = "model.py":7 forward, module layers.3
`
	for name, c := range map[string]struct{ node, want string }{
		"shapes":      {`%1 = aten.mm.default(%x, %x) : f32[2, 3]`, "aten.mm.default: matmul of shapes [2 3] and [2 3]"},
		"index":       {`%1 = aten.select.int(%x, 0, 5) : f32[3]`, "index 5 of dimension 0"},
		"assertion":   {`%1 = aten._assert_scalar.default(false, "too long") : none`, "too long"},
		"unknown":     {`%1 = "my.op"(%x) : f32[2, 3]`, "my.op: the interpreter does not know the operator"},
		"huge":        {`%1 = aten.full.default([99999999999, 99999999], 1.0) : f32[2]`, "too large"},
		"argument":    {`%1 = aten.view.default(%x, "abc") : f32[6]`, "argument size is no int but a string"},
		"type":        {`%1 = aten.neg.default(%x) : f32[3, 2]`, "its type says f32[3, 2]"},
		"int divison": {`%1 = aten.floor_divide.Scalar(%i, 0) : i64[]`, "division by zero"},
	} {
		out := "%1"
		if strings.Contains(c.node, ": none") {
			c.node = strings.TrimSuffix(strings.TrimPrefix(c.node, "%1 = "), " : none")
			out = "%x"
		}
		src := "graph @f(%x: f32[2, 3] user, %i: i64[] user) -> (" + out + ") {\n  " + c.node + loc
		g, err := text.Parse(src, text.Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		s, err := interp.New(g, interp.Options{CheckTypes: true})
		if err != nil {
			t.Fatal(err)
		}
		i, err := interp.FromBytes(ops.Int64, nil, make([]byte, 8))
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Run(context.Background(), []interp.Value{f32([]int64{2, 3}, make([]float64, 6)...), i})
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		ds, ok := ir.AsDiags(err)
		if !ok || ds[0].Origin.Where() != `"model.py":7 forward` || ds[0].Origin.Module != "layers.3" {
			t.Errorf("%s: %v has no place", name, err)
		}
		if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestMissingContents(t *testing.T) {
	src := `graph @f(%w: f32[4] param "w", %u: f32[4] param "u") -> (%1) {
  %1 = aten.add.Tensor(%w, %u) : f32[4]
}
`
	if _, err := interp.New(parse(t, src), interp.Options{}); err == nil || !strings.Contains(err.Error(), `"w"`) {
		t.Errorf("a parameter without contents: %v", err)
	}
	a := mustRun(t, session(t, src, interp.Options{RandomData: true, Seed: 1}))[0].(*interp.Tensor).Floats()
	b := mustRun(t, session(t, src, interp.Options{RandomData: true, Seed: 1}))[0].(*interp.Tensor).Floats()
	c := mustRun(t, session(t, src, interp.Options{RandomData: true, Seed: 2}))[0].(*interp.Tensor).Floats()
	if !slices.Equal(a, b) || slices.Equal(a, c) {
		t.Errorf("random contents: %v, again %v, of another seed %v", a, b, c)
	}
}

// Every value is seen by its hook, those of nested graphs too, and the hook can stop the run.
func TestObserve(t *testing.T) {
	var seen []string
	o := interp.Options{Observe: func(n *ir.Node, outs []interp.Value) error {
		seen = append(seen, n.Out().Name)
		return nil
	}}
	mustRun(t, session(t, controlFlow, o), f32([]int64{6}, 1, 2, 3, 4, 5, 6), boolTensor(true))
	for name, count := range map[string]int{"c": 1, "na": 1, "ex": 0, "kk": 3, "lt": 4, "n": 1} {
		if got := countOf(seen, name); got != count {
			t.Errorf("%%%s was seen %d times, want %d", name, got, count)
		}
	}
	stop := errors.New("stop")
	o.Observe = func(n *ir.Node, _ []interp.Value) error {
		if n.Out().Name == "kk" {
			return stop
		}
		return nil
	}
	s := session(t, controlFlow, o)
	if _, err := s.Run(context.Background(), []interp.Value{f32([]int64{6}, 1, 2, 3, 4, 5, 6), boolTensor(true)}); !errors.Is(err, stop) {
		t.Errorf("the hook's error became %v", err)
	}
}

func countOf(l []string, s string) int {
	n := 0
	for _, x := range l {
		if x == s {
			n++
		}
	}
	return n
}

// A caller's tensor in another layout is laid out as the program has it, and written back where it is mutated.
func TestInputLayout(t *testing.T) {
	s := session(t, `graph @f(%x: f32[2, 3]{1, 2} user) -> (%v) {
  %v = aten.as_strided.default(%x, [6], [1], 0)  : f32[6]
  %y = aten.add_.Scalar(%x, 1)                   : f32[2, 3]{1, 2}
}
`, interp.Options{})
	x := f32([]int64{2, 3}, 0, 1, 2, 3, 4, 5)
	out := mustRun(t, s, x)
	wantFloats(t, "the storage", out[0], 1, 4, 2, 5, 3, 6)
	wantFloats(t, "the caller's tensor", x, 1, 2, 3, 4, 5, 6)
}

// An operator without a row that sees no tensor and whose result nobody reads does not matter.
func TestNeedlessUnknown(t *testing.T) {
	s := session(t, `graph @f(%x: f32[1] user) -> (%1) {
  %n = "aten.promote_types.default"(dtype(i64), dtype(i64)) : none
  %1 = aten.neg.default(%x)                                 : f32[1]
}
`, interp.Options{})
	wantFloats(t, "the result", mustRun(t, s, f32([]int64{1}, 2))[0], -2)
}

// An index for scatter may be longer than the tensor along the dimension, and names elements more than once.
func TestScatterLongIndex(t *testing.T) {
	s := session(t, `graph @f(%x: f32[2] user, %v: f32[5] user, %i: i64[5] param "i" = [0, 1, 1, 0, 1]) -> (%1, %2) {
  %1 = aten.scatter_add(%x, dim=0, index=%i, src=%v)                       : f32[2]
  %2 = aten.scatter_reduce.two(%x, dim=0, index=%i, src=%v, reduce="amax") : f32[2]
}
`, interp.Options{})
	out := mustRun(t, s, f32([]int64{2}, 10, 2), f32([]int64{5}, 1, 2, 3, 4, 5))
	wantFloats(t, "add", out[0], 15, 12)
	wantFloats(t, "amax", out[1], 10, 5)
}
