package text_test

import (
	"math"
	"strings"
	"testing"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ir/text"
	"github.com/lathe-ml/lathe/ops"
)

// full holds every construct of the syntax in the form that the printer gives it.
const full = `sym s0 in [1, 2048] hint 7
sym u3 in [-inf, inf]
graph @forward(
    %x: f32[s0, 4] user,
    %n: int(s0 + 1) user "n" fixed 5,
    %none: none user fixed none,
    %w: bf16[2, 3]{1, 2} param "layers.0.weight" = [1.0, -0.0, 3.0040553e+38, nan, inf, 0x7fc1],
    %q: i8[4096, 8]!affine(block=[1, 32], qmin=-8, qmax=7, real=f32) param "q",
    %buf: f32[s0, 4] buffer "cache" transient,
    %c: bool[] const "c0" = [true],
    %"odd name": u8[2] const "c1" = [0, 255]
) -> (mut %buf = %1, mut %x = %y, %1, 3, s0//2, none, 1.5) stage edge {
  %1 = aten.add.Tensor(%x, %buf)                    : f32[s0, 4]  @0
  %y = aten.add.Tensor(%1, %x, alpha=2.5)           : f32[s0, 4]  @1
  %a, %b = "my.op"(%y, scale=1.0, "name with blank"=[none, %1, [s0 % 4, 2]], flag=true, d=dtype(f16), l=layout(strided), m=memory(channels_last), dev=device("cuda:0"), z=complex(1.0, -inf), s="a\tb"): f32[s0, 4], int(u3)  @2
  "my.effect"(%a)  @3
  %2 = "higher_order.map"(f=graph @body(%e: f32[4], %k: f32[4] param "p") -> (%3) {
    %3 = aten.add.Tensor(%e, %k)                    : f32[4]
  }, xs=[%y])                                       : f32[s0, 4]
}
names "x", "n"
inspec ` + "`{\"a\": 1}`" + `
outspec "x"
entry "models/model.json"
frame #0 = "model.py":3 main "y = f(x)"
frame #1 = "model.py":9 "<lambda>" in #0
loc @0 = "modeling.py":134 forward ` + "`s = \"x\"`" + ` in #1, module layers.0, class torch.nn.Linear, name add
loc @1 = "modeling.py":134 forward library, module layers.0, via decompose#linear, via "odd rule"
loc @2 = 
loc @3 = name other, from @0, via fuse#x, via fold-views#y
`

func TestRoundTrip(t *testing.T) {
	src := full
	g, err := text.Parse(src, text.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := text.String(g)
	if got != src {
		t.Errorf("printed:\n%s\nwant:\n%s", got, src)
	}
	h, err := text.Parse(got, text.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if d := ir.Diff(g, h); d != "" {
		t.Error(d)
	}
}

func TestNamesDependOnTheGraphAlone(t *testing.T) {
	g := ir.NewGraph("f", nil)
	x := g.AddInput("x", ir.InputUser, "", ir.StaticType(ops.Float32, 2)).Value
	ty := ir.StaticType(ops.Float32, 2)
	var last *ir.Value
	for _, name := range []string{"", "x", "x", "x_1", "7", ""} {
		args := []ir.Arg{ir.Ref(x), ir.Ref(x), ir.Int(1)}
		n := g.NewNode(g.Ret(), ops.AtenAddTensor, args, []ir.Type{ty}, nil)
		last = n.Out()
		last.Name = name
	}
	g.SetOutputs([]ir.Output{{}}, []ir.Arg{ir.Ref(last)})
	got := text.String(g)
	for _, want := range []string{"%1 =", "%x_2 =", "%x_3 =", "%x_1 =", "%2 =", "%3 ="} {
		if strings.Count(got, want) != 1 {
			t.Errorf("%s is not there once:\n%s", want, got)
		}
	}
	g.NameValues()
	if again := text.String(g); again != got {
		t.Errorf("after NameValues:\n%s\nbefore:\n%s", again, got)
	}
}

func TestErrorsTellThePlace(t *testing.T) {
	const head = "graph @f(%x: f32[2] user) -> (%x) {\n"
	for _, tt := range []struct{ src, want string }{
		{"", "0 graphs"},
		{"graph", "1:6: expected '@', found the end"},
		{head + "  %y = aten.nosuch(%x) : f32[2]\n}", "2:8: no operator is called aten.nosuch"},
		{head + "  %y = aten.add.Tensor(%x, %z) : f32[2]\n}", "2:29: %z is not defined before this"},
		{head + "  %y = aten.add.Tensor(%x) : f32[2]\n}", "2:8: aten.add.Tensor needs the argument other"},
		{head + "  %y = aten.add.Tensor(%x, %x, alpha=1, alpha=2) : f32[2]\n}", "2:41: argument alpha is here twice"},
		{head + "  %y = aten.add.Tensor(%x, %x, beta=1) : f32[2]\n}", "2:32: aten.add.Tensor has no argument beta"},
		{head + "  %x = aten.add.Tensor(%x, %x) : f32[2]\n}", "2:4: %x is defined twice"},
		{head + "  %y = aten.add.Tensor(%x, %x) : f32[2] @3\n}", "2:42: loc @3 is missing"},
		{head + "  %y = aten.add.Tensor(%x, %x) : g32[2]\n}", "2:34: expected a type"},
		{"graph @f(%x: f32[2] const \"c\" = [1.0]) -> () {}", "1:33: 1 elements, f32[2] has 2"},
		{"graph @f(%x: i8[1] const \"c\" = [200]) -> () {}", `1:33: "200" is no i8`},
		{"graph @f(%x: f32[1000000, 1000000] const \"c\" = []) -> () {}", "at most 64"},
		{"sym s0 in [4, 2]\ngraph @f() -> () {}", "1:5: symbol s0"},
		{"sym s0 in [inf, 2]\ngraph @f() -> () {}", "1:12: this end"},
		{head + "  \"o\"(" + strings.Repeat("[", 1000) + "\n}", "nested more than"},
	} {
		_, err := text.Parse(tt.src, text.Options{})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.60q: %v, want %s", tt.src, err, tt.want)
		}
	}
}

func TestDataByReference(t *testing.T) {
	const src = "graph @f(%w: f32[100] param \"w\", %b: f32[2] buffer \"b\" = [1.0, 2.0]) -> () {\n}\n"
	want := ir.NewData(ops.Float32, []int64{100}, make([]byte, 400))
	g, err := text.Parse(src, text.Options{Data: func(name string) *ir.Data {
		if name == "w" {
			return want
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if g.Inputs[0].Data != want || g.Inputs[1].Data == nil {
		t.Errorf("data %v and %v", g.Inputs[0].Data, g.Inputs[1].Data)
	}
	if got := text.String(g); got != src {
		t.Errorf("printed %s", got)
	}
}

// Every bit pattern of the small element types, and some of the large, is read back.
func TestElements(t *testing.T) {
	check := func(d ops.DType, b []byte) {
		t.Helper()
		n := int64(len(b)) / d.Size()
		g := ir.NewGraph("f", nil)
		in := g.AddInput("c", ir.InputConst, "c", ir.StaticType(d, n))
		in.Data = ir.NewData(d, []int64{n}, b)
		h, err := text.Parse(text.String(g), text.Options{})
		if err != nil {
			t.Fatalf("%s: %v", d, err)
		}
		got, err := h.Inputs[0].Data.Compact()
		if err != nil || string(got) != string(b) {
			t.Fatalf("%s: % x became % x (%v)", d, b, got, err)
		}
	}
	for _, d := range []ops.DType{ops.Float16, ops.BFloat16, ops.Int16, ops.Uint16, ops.Float8E4M3FN, ops.Int8, ops.Uint8} {
		for i := 0; i < 1<<16; i += 32 {
			var b []byte
			for j := i; j < i+32; j++ {
				b = append(b, byte(j), byte(j>>8))
			}
			check(d, b)
		}
	}
	for _, bits := range []uint64{0, 1, math.Float64bits(math.Pi), math.Float64bits(math.Copysign(0, -1)), 1<<63 - 1, math.MaxUint64, 0x7ff8000000000000, 0x7ff0000000000000, 0x7fc000007fc00000, 0x0000000100000001} {
		b := make([]byte, 16)
		for i := range 16 {
			b[i] = byte(bits >> (8 * (i % 8)))
		}
		for _, d := range []ops.DType{ops.Float64, ops.Float32, ops.Int64, ops.Uint64, ops.Int32, ops.Uint32, ops.Complex64, ops.Complex128} {
			check(d, b)
		}
	}
}

// big makes a graph of n nodes.
func big(n int) *ir.Graph {
	tab := &sym.Table{}
	if err := tab.Add(sym.Sym{Name: "s0", Range: sym.Range{Min: 1, Max: 100}}); err != nil {
		panic(err)
	}
	g := ir.NewGraph("f", tab)
	ty := ir.TensorType(ops.Float32, sym.Symbol("s0"), sym.Const(4))
	v := g.AddInput("x", ir.InputUser, "", ty).Value
	frames := []ir.Frame{{File: "a.py", Line: 1, Func: "main", Code: "f(x)"}, {File: "b.py", Line: 2, Func: "f"}}
	for range n {
		o := &ir.Origin{Frames: frames, Module: "m"}
		v = g.NewNode(g.Ret(), ops.AtenAddTensor, []ir.Arg{ir.Ref(v), ir.Ref(v), ir.Int(1)}, []ir.Type{ty}, o.Derive("p#r")).Out()
	}
	g.SetOutputs([]ir.Output{{}}, []ir.Arg{ir.Ref(v)})
	return g
}

func TestLargeGraph(t *testing.T) {
	g := big(20000)
	h, err := text.Parse(text.String(g), text.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if d := ir.Diff(g, h); d != "" {
		t.Error(d)
	}
}

func BenchmarkPrint(b *testing.B) {
	g := big(100000)
	for b.Loop() {
		text.String(g)
	}
}

func BenchmarkParse(b *testing.B) {
	s := text.String(big(100000))
	for b.Loop() {
		if _, err := text.Parse(s, text.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(full)
	f.Add("graph @f() -> () {\n}\n")
	f.Fuzz(func(t *testing.T, src string) {
		p, err := text.ParseProgram(src, text.Options{})
		if err != nil {
			return
		}
		for _, g := range p.Methods {
			s := text.String(g)
			h, err := text.Parse(s, text.Options{})
			if err != nil {
				t.Fatalf("%v in what was printed:\n%s", err, s)
			}
			if d := ir.Diff(g, h); d != "" {
				t.Fatalf("%s\n%s", d, s)
			}
			if again := text.String(h); again != s {
				t.Fatalf("prints differ:\n%s\n%s", s, again)
			}
		}
	})
}
