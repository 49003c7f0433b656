package program_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/lathe-ml/lathe/codegen/pte"
	"github.com/lathe-ml/lathe/internal/etrt"
	"github.com/lathe-ml/lathe/interp"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/text"
	"github.com/lathe-ml/lathe/lower/program"
	"github.com/lathe-ml/lathe/ops"
)

const (
	clInput = `f32[2, 3, 4, 5]{60, 1, 15, 3}`
	plain   = `f32[2, 3, 4, 5]`
)

// layoutCases use every kernel that channels-last values go through, in a program that begins with %x and returns %r.
var layoutCases = map[string]string{
	"convolution":             `%r = aten.convolution.default(%a, %w, %b, stride=[1, 2], padding=[1, 1], dilation=[1, 1], transposed=false, output_padding=[0, 0], groups=1): f32[2, 2, 4, 3]`,
	"convolution, transposed": `%r = aten.convolution.default(%a, %wt, %b, stride=[1, 1], padding=[1, 1], dilation=[1, 1], transposed=true, output_padding=[0, 0], groups=1): f32[2, 2, 4, 5]`,
	"convolution, groups":     `%r = aten.convolution.default(%a, %wg, none, stride=[1, 1], padding=[0, 0], dilation=[1, 2], transposed=false, output_padding=[0, 0], groups=3): f32[2, 3, 3, 3]`,
	"max_pool2d_with_indices": `%r, %i = aten.max_pool2d_with_indices.default(%a, kernel_size=[2, 3], stride=[1, 2], padding=[1, 1], dilation=[1, 1], ceil_mode=true): f32[2, 3, 5, 3], i64[2, 3, 5, 3]`,
	"abs":                     `%r = aten.abs.default(%a): ` + plain,
	"add":                     `%r = aten.add.Tensor(%a, %x, alpha=2): ` + plain,
	"clamp":                   `%r = aten.clamp.default(%a, 0.5, 3.0): ` + plain,
	"div":                     `%r = aten.div.Tensor(%x, %p): ` + plain,
	"elu":                     `%r = aten.elu.default(%x): ` + plain,
	"exp":                     `%r = aten.exp.default(%x): ` + plain,
	"gelu":                    `%r = aten.gelu.default(%x, approximate="tanh"): ` + plain,
	"hardtanh":                `%r = aten.hardtanh.default(%x, min_val=-1.5, max_val=2.5): ` + plain,
	"leaky_relu":              `%r = aten.leaky_relu.default(%x, 0.5): ` + plain,
	"mul":                     `%r = aten.mul.Tensor(%a, %x): ` + plain,
	"neg":                     `%r = aten.neg.default(%a): ` + plain,
	"relu":                    `%r = aten.relu.default(%x): ` + plain,
	"rsqrt":                   `%r = aten.rsqrt.default(%p): ` + plain,
	"sigmoid":                 `%r = aten.sigmoid.default(%a): ` + plain,
	"sqrt":                    `%r = aten.sqrt.default(%p): ` + plain,
	"sub":                     `%r = aten.sub.Tensor(%x, %a): ` + plain,
	"tanh":                    `%r = aten.tanh.default(%a): ` + plain,
}

// Values stay channels-last through every kernel that is said to take them, and give what the interpreter gives.
func TestKeptLayouts(t *testing.T) {
	for _, k := range program.LayoutKernels() {
		if layoutCases[k] == "" {
			t.Errorf("no case for %s", k)
		}
	}
	for name, line := range layoutCases {
		t.Run(name, func(t *testing.T) {
			src := `graph @forward(%x: ` + clInput + ` user, %w: f32[2, 3, 3, 3] user, %wt: f32[3, 2, 3, 3] user, %wg: f32[3, 1, 2, 2] user, %b: f32[2] user, %v: f32[3] user, %c: f32[3] user) -> (%r) {
  %a = aten.relu.default(%x): ` + plain + `
  %p = aten.exp.default(%x): ` + plain + `
  ` + line + `
}`
			code, want, got := runLayout(t, src)
			if got != want {
				t.Errorf("%s, want %s", got, want)
			}
			if last := code[len(code)-1]; !strings.HasSuffix(last, "_clone_dim_order.out") || strings.Contains(strings.Join(code[:len(code)-1], " "), "clone") {
				t.Errorf("the layout is not undone at the end alone: %v", code)
			}
		})
	}
}

// Where keeping a layout makes more copies than undoing it at once, or larger ones, or a kernel does not take it, it is undone at once.
func TestLayoutsNotKept(t *testing.T) {
	for name, body := range map[string]string{
		"two results": `%1 = aten.relu.default(%x): ` + plain + `
  %2 = aten.neg.default(%1): ` + plain,
		"a larger result": `%1 = aten.convolution.default(%x, %w, none, stride=[1, 1], padding=[0, 0], dilation=[1, 1], transposed=false, output_padding=[0, 0], groups=1): f32[2, 8, 4, 5]
  %2 = aten.sum.dim_IntList(%1, dim=[0, 1, 2, 3]): f32[]`,
		"a kernel that refuses it": `%1 = aten.avg_pool2d.default(%x, kernel_size=[2, 2], stride=[2, 1]): f32[2, 3, 2, 4]
  %2 = aten.relu.default(%1): f32[2, 3, 2, 4]`,
		"another kernel": `%1 = aten.flip.default(%x, dims=[1]): ` + plain + `
  %2 = aten.relu.default(%1): ` + plain,
		"another operand of another layout": `%1 = aten.add.Tensor(%x, %y): ` + plain + `
  %2 = aten.relu.default(%1): ` + plain,
		"a result of another element type": `%1 = aten.gt.Scalar(%x, other=1): bool[2, 3, 4, 5]
  %2 = aten.logical_not.default(%1): bool[2, 3, 4, 5]`,
	} {
		t.Run(name, func(t *testing.T) {
			ret := "%2"
			if name == "two results" {
				ret = "%1, %2"
			}
			src := `graph @forward(%x: ` + clInput + ` user, %w: f32[8, 3, 1, 1] user, %y: ` + plain + ` user) -> (` + ret + `) {
  ` + body + `
}`
			code, want, got := runLayout(t, src)
			if got != want {
				t.Errorf("%s, want %s", got, want)
			}
			if !strings.HasSuffix(code[0], "_clone_dim_order.out") || strings.Contains(strings.Join(code[1:], " "), "clone") {
				t.Errorf("the layout is not undone at once: %v", code)
			}
		})
	}
}

// runLayout runs a program in the interpreter and in the runtime, where inputs lie as their types say, and gives the calls.
func runLayout(t *testing.T, src string) (code []string, want, got string) {
	t.Helper()
	ctx := context.Background()
	g, err := text.Parse(src, text.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var ins []interp.Value
	var feed []etrt.Value
	for k, in := range g.Inputs {
		sizes, _ := in.Value.Type.Sizes()
		xs := make([]float32, 1)
		for _, s := range sizes {
			xs = make([]float32, len(xs)*int(s))
		}
		for i := range xs {
			xs[i] = float32((i*7+k*3)%11)/2 - 1.5
			if in.Value.Name == "v" {
				xs[i] = float32(i + 1)
			}
		}
		v := f32(sizes, xs...)
		x, err := interp.FromBytes(ops.Float32, sizes, append([]byte(nil), v.Tensor.Data...))
		if err != nil {
			t.Fatal(err)
		}
		ins = append(ins, x)
		if in.Value.Name == "x" {
			v.Tensor.Data = etrt.Permute(v.Tensor.Data, 4, sizes, []uint8{0, 2, 3, 1}, false)
			v.Tensor.Strides = []int64{60, 1, 15, 3}
		}
		feed = append(feed, v)
	}
	session, err := interp.New(g, interp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all, err := session.Run(ctx, ins)
	if err != nil {
		t.Fatal(err)
	}
	res, err := program.Lower(&ir.Program{Methods: []*ir.Graph{g}}, program.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := res.Program.Plans[0]
	for _, in := range m.Chains[0].Instructions {
		if c, ok := in.(pte.KernelCall); ok {
			code = append(code, m.Operators[c.Op].Name+"."+m.Operators[c.Op].Overload)
		}
	}
	run := load(t, res.Program)
	outs, err := run.Run("forward", feed)
	if err != nil {
		t.Fatal(err)
	}
	// Both round sums and functions in their own way: four digits.
	digits := func(v etrt.Value) string {
		if v.Tensor.DType != etrt.F32 {
			return show(v)
		}
		var s []string
		for b := v.Tensor.Data; len(b) > 0; b = b[4:] {
			x := fmt.Sprintf("%.4f", math.Float32frombits(binary.LittleEndian.Uint32(b)))
			s = append(s, strings.Replace(x, "-0.0000", "0.0000", 1))
		}
		return fmt.Sprint(v.Tensor.Shape, s)
	}
	for i, o := range outs {
		w := all[i].(*interp.Tensor)
		dt := etrt.F32
		if w.DType == ops.Bool {
			dt = etrt.Bool
		}
		want += digits(etrt.Value{Kind: etrt.KindTensor, Tensor: &etrt.Tensor{DType: dt, Shape: w.Sizes, Data: w.Bytes()}})
		got += digits(o)
	}
	return code, want, got
}
