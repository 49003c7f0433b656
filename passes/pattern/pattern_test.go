package pattern_test

import (
	"testing"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/text"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/passes/pattern"
)

const src = `graph @f(%x: f32[2] user, %y: f32[2] user) -> (%silu, %twisted, %other, %shared, %norm) stage edge {
  %s = aten.sigmoid(%x)                             : f32[2]
  %silu = aten.mul.Tensor(%x, %s)                   : f32[2]
  %s2 = aten.sigmoid(%y)                            : f32[2]
  %twisted = aten.mul.Tensor(%s2, %y)               : f32[2]
  %s3 = aten.sigmoid(%x)                            : f32[2]
  %other = aten.mul.Tensor(%y, %s3)                 : f32[2]
  %shared = aten.add.Tensor(%s3, 2.5, alpha=3)      : f32[2]
  %sq = aten.pow.Tensor_Scalar(%x, exponent=2)      : f32[2]
  %norm = aten.mean.dim(%sq, dim=[-1], keepdim=true): f32[1]
}`

func values(t *testing.T) map[string]*ir.Value {
	t.Helper()
	g, err := text.Parse(src, text.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]*ir.Value{}
	for _, in := range g.Inputs {
		m[in.Value.Name] = in.Value
	}
	for n := range g.Nodes() {
		m[n.Out().Name] = n.Out()
	}
	return m
}

func TestMatch(t *testing.T) {
	v := values(t)
	x := pattern.Any("x")
	sigmoid := pattern.Op(ops.AtenSigmoidDefault, x)
	silu := pattern.Op(ops.AtenMulTensor, x, sigmoid)
	square := pattern.OneOf(pattern.Op(ops.AtenSquareDefault, x), pattern.Op(ops.AtenPowTensorScalar, x, pattern.Is(2)))
	for _, tt := range []struct {
		name, value string
		p           *pattern.Pattern
		want        string // what x is bound to, empty where the pattern does not match
	}{
		{"in order", "silu", silu, "x"},
		{"not in order", "twisted", silu, ""},
		{"in either order", "twisted", silu.Commutes(), "y"},
		{"not the same value", "other", silu.Commutes(), ""},
		{"used once", "silu", pattern.Op(ops.AtenMulTensor, x, sigmoid.Once()), "x"},
		{"used twice", "other", pattern.Op(ops.AtenMulTensor, pattern.Any(""), sigmoid.Once()), ""},
		{"an alternative", "sq", square, "x"},
		{"another number", "sq", pattern.Op(ops.AtenPowTensorScalar, x, pattern.Is(3)), ""},
		{"an argument by name", "norm", pattern.Op(ops.AtenMeanDim, square).With("keepdim", pattern.True), "x"},
		{"another argument by name", "shared", pattern.Op(ops.AtenAddTensor, sigmoid).With("alpha", pattern.Equals(1)), ""},
		{"any operand", "shared", pattern.Op(ops.AtenAddTensor, nil, pattern.Number("k")).With("alpha", pattern.Equals(3)), "none"},
		{"another operator", "shared", pattern.Op(ops.AtenMulTensor, x).Or(ops.AtenAddTensor), "s3"},
		{"an input", "x", sigmoid, ""},
	} {
		m, ok := tt.p.Match(v[tt.value])
		got := ""
		if ok {
			got = "none"
			if b := m.Value("x"); b != nil {
				got = b.Name
			}
		}
		if got != tt.want {
			t.Errorf("%s: x is %q, want %q", tt.name, got, tt.want)
		}
	}
	m, _ := pattern.Op(ops.AtenAddTensor, nil, pattern.Number("k")).As("sum").Match(v["shared"])
	if m.Number("k") != 2.5 || m.Value("sum") != v["shared"] || m.Value("nothing") != nil {
		t.Errorf("bound %v and %v", m.Number("k"), m.Value("sum"))
	}
}

// A choice that fails further on is taken back.
func TestBacktracking(t *testing.T) {
	v := values(t)
	x, y := pattern.Any("x"), pattern.Any("y")
	p := pattern.Op(ops.AtenMulTensor, pattern.OneOf(y, x), pattern.Op(ops.AtenSigmoidDefault, x))
	m, ok := p.Match(v["silu"])
	if !ok || m.Value("x") != v["x"] {
		t.Errorf("matched %v, x is %v", ok, m.Value("x"))
	}
	both := pattern.Op(ops.AtenMulTensor, pattern.OneOf(y.As("x"), y), pattern.Op(ops.AtenSigmoidDefault, x))
	if m, ok := both.Match(v["other"]); !ok || m.Value("y") != v["y"] || m.Value("x") != v["x"] {
		t.Errorf("matched %v: x is %v, y is %v", ok, m.Value("x"), m.Value("y"))
	}
}
