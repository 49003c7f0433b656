package program_test

import (
	"testing"

	"github.com/lathe-ml/lathe/internal/etrt"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/text"
	"github.com/lathe-ml/lathe/lower/program"
)

// Sizes without a bound may all be half as large again as at export, or one of them three quarters; the program runs at
// those and refuses what is larger.
func TestSizesWithoutBound(t *testing.T) {
	g, err := text.Parse(`sym s0 in [2, inf] hint 2
sym s1 in [2, inf] hint 8
graph @forward(%x: f32[s0, s1] user) -> (%2) {
  %1 = aten.mul.Tensor(%x, 2): f32[s0, s1]
  %2 = aten.relu.default(%1): f32[s0, s1]
}`, text.Options{})
	if err != nil {
		t.Fatal(err)
	}
	res, err := program.Lower(&ir.Program{Methods: []*ir.Graph{g}}, program.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := res.Methods[0]
	// The one buffer that all three share.
	if m.Planned != 4*3*12 || m.Exported != 4*2*8 {
		t.Errorf("%d bytes are planned, %d for the sizes at export; want %d and %d", m.Planned, m.Exported, 4*3*12, 4*2*8)
	}
	want := []program.AssumedBound{{Symbol: "s0", Max: 3, Alone: 3, Exported: 2}, {Symbol: "s1", Max: 12, Alone: 14, Exported: 8}}
	if len(m.Assumed) != 2 || m.Assumed[0] != want[0] || m.Assumed[1] != want[1] {
		t.Errorf("assumed %v, want %v", m.Assumed, want)
	}
	run := load(t, res.Program)
	for _, c := range []struct {
		rows, cols int64
		ok         bool
	}{{2, 8, true}, {3, 12, true}, {2, 14, true}, {3, 13, false}, {2, 19, false}} {
		x, y := make([]float32, c.rows*c.cols), make([]float32, c.rows*c.cols)
		for i := range x {
			x[i] = float32(i - 5)
			y[i] = max(2*x[i], 0)
		}
		shape := []int64{c.rows, c.cols}
		outs, err := run.Run("forward", []etrt.Value{f32(shape, x...)})
		switch {
		case !c.ok && err == nil:
			t.Errorf("%v is taken", shape)
		case c.ok && err != nil:
			t.Errorf("%v: %v", shape, err)
		case c.ok && show(outs[0]) != show(f32(shape, y...)):
			t.Errorf("%v: %s", shape, show(outs[0]))
		}
	}
}

// A size is given room by itself however often it stands in a shape; what the program bounds is planned for the bound.
func TestRoomOfOneSize(t *testing.T) {
	g, err := text.Parse(`sym s0 in [2, inf] hint 8
sym s1 in [2, 10] hint 4
graph @forward(%x: f32[s0, s0] user, %y: f32[s0, s1] user) -> (%1, %2) {
  %1 = aten.relu.default(%x): f32[s0, s0]
  %2 = aten.relu.default(%y): f32[s0, s1]
}`, text.Options{})
	if err != nil {
		t.Fatal(err)
	}
	res, err := program.Lower(&ir.Program{Methods: []*ir.Graph{g}}, program.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n, want := res.Methods[0].Planned, int64(4*14*14+4*14*10); n != want {
		t.Errorf("%d bytes are planned, want %d", n, want)
	}
}

// Batch normalization writes its result over an operand that nobody reads again, and only then.
func TestBatchNormInPlace(t *testing.T) {
	for _, c := range []struct {
		name, ret string
		bytes     int64
	}{
		{"dead operand", "%2", 4 * 16},
		{"operand wanted", "%2, %1", 2 * 4 * 16},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, err := text.Parse(`graph @forward(%x: f32[1, 2, 2, 4] user, %m: f32[2] user, %v: f32[2] user) -> (`+c.ret+`) {
  %1 = aten.relu.default(%x): f32[1, 2, 2, 4]
  %2, %3, %4 = aten._native_batch_norm_legit_no_training.default(%1, none, none, %m, %v, 0.1, 0.0): f32[1, 2, 2, 4], f32[0], f32[0]
}`, text.Options{})
			if err != nil {
				t.Fatal(err)
			}
			res, err := program.Lower(&ir.Program{Methods: []*ir.Graph{g}}, program.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if n, want := res.Methods[0].Planned, c.bytes+2*16; n != want {
				t.Errorf("%d bytes are planned, want %d", n, want)
			}
			run := load(t, res.Program)
			x := []float32{-1, 1, 2, 3, 4, 5, 6, 7, 8, 9, -10, 11, 12, 13, 14, 15}
			relu, y := make([]float32, 16), make([]float32, 16)
			for i := range x {
				relu[i] = max(x[i], 0)
				y[i] = (relu[i] - float32(i/8)) / float32(2-i/8)
			}
			outs, err := run.Run("forward", []etrt.Value{f32([]int64{1, 2, 2, 4}, x...), f32([]int64{2}, 0, 1), f32([]int64{2}, 4, 1)})
			if err != nil {
				t.Fatal(err)
			}
			shape := []int64{1, 2, 2, 4}
			if got, want := show(outs[0]), show(f32(shape, y...)); got != want {
				t.Errorf("%s, want %s", got, want)
			}
			if len(outs) > 1 {
				if got, want := show(outs[1]), show(f32(shape, relu...)); got != want {
					t.Errorf("the operand is %s, want %s", got, want)
				}
			}
		})
	}
}
