package lathe

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lathe-ml/lathe/internal/etrt/ettest"
	"github.com/lathe-ml/lathe/internal/needs"
	"github.com/lathe-ml/lathe/interp"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ir/text"
	"github.com/lathe-ml/lathe/lower/program"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/passes"
)

var llama = filepath.Join("testdata", "llama", "model.pt2")

func verifyOptions(t *testing.T, path string) VerifyOptions {
	t.Helper()
	r, err := OpenRunner(t.Context(), path, RunOptions{Engine: EngineReference})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	in, err := r.Random(1)
	if err != nil {
		t.Fatal(err)
	}
	return VerifyOptions{Compile: Options{Inputs: []Input{{Path: path}}, Backend: Portable}, Calls: [][]Value{in}, Seed: 1}
}

// openJudge gives what runs programs for a backend, skipping where it is not installed.
func openJudge(t *testing.T, backend string) *Judge {
	t.Helper()
	ettest.Open(t)
	j, err := OpenJudge(backend)
	needs.Installed(t, "what runs programs for "+backend, err)
	return j
}

func TestVerify(t *testing.T) {
	o := verifyOptions(t, llama)
	steps, err := Verify(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	p := program.Pipeline()
	if len(steps) != len(p)+2 || steps[0].Name != "import" || steps[len(steps)-1].Name != "runtime" {
		t.Errorf("steps %v for %s", steps, p)
	}
	changed := 0
	for _, s := range steps[1 : len(steps)-1] {
		if !s.Unchanged {
			changed++
		}
	}
	if changed < 4 {
		t.Errorf("%d passes changed the program", changed)
	}
	if steps[len(steps)-1].Skipped == "" {
		t.Error("the runtime was not asked for")
	}
}

func TestVerifyInRuntime(t *testing.T) {
	o := verifyOptions(t, llama)
	o.Judge = openJudge(t, Portable)
	steps, err := Verify(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if last := steps[len(steps)-1]; last.Name != "runtime" || last.Skipped != "" {
		t.Errorf("last step %+v", last)
	}
}

func TestVerifyOnMLX(t *testing.T) {
	o := verifyOptions(t, llama)
	o.Compile.Backend = "mlx"
	o.Judge = openJudge(t, "mlx")
	steps, err := Verify(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if last := steps[len(steps)-1]; last.By != "MLX" || last.Skipped != "" {
		t.Errorf("last step %+v", last)
	}
}

// A wrong rule is found, with the pass, the node and its line.
func TestVerifyFindsAWrongRule(t *testing.T) {
	o := verifyOptions(t, llama)
	wrong := passes.Pass{Name: "wrong", Run: func(ctx *passes.Context, g *ir.Graph) error {
		for n := range g.Nodes() {
			if n.Op != ops.AtenSiluDefault {
				continue
			}
			b, ok := ctx.Rewrite(n, "silu")
			if !ok {
				continue
			}
			g.Replace(n, op.AtenSigmoidDefault(b, n.In(0)))
			return b.Err
		}
		return nil
	}}
	o.pipeline = append(program.Pipeline()[:3:3], append(passes.Pipeline{wrong}, program.Pipeline()[3:]...)...)
	steps, err := Verify(t.Context(), o)
	ds, ok := ir.AsDiags(err)
	if !ok || len(ds) != 1 {
		t.Fatalf("error %v", err)
	}
	d := ds[0]
	if d.Code != "differs" || d.Op != "aten.sigmoid.default" || !strings.Contains(d.Msg, "after pass wrong") || !strings.Contains(d.Msg, "elements differ") {
		t.Errorf("diagnostic %+v", d)
	}
	if f := d.Origin.Frame(); f == nil || f.Line == 0 || !strings.HasSuffix(f.File, ".py") {
		t.Errorf("frame %+v", f)
	}
	if d.Origin.Module == "" {
		t.Error("no module")
	}
	if got := steps[len(steps)-1].Name; got != "pass functionalize" {
		t.Errorf("the last step that agreed is %s", got)
	}
}

// A pass that breaks the graph's own rules is a bug, and the reproducer holds the graph before it.
func TestBugHasAReproducer(t *testing.T) {
	o := Options{Inputs: []Input{{Path: llama}}, Backend: Portable, Output: filepath.Join(t.TempDir(), "x.pte")}
	boom := func(_ *passes.Context, p passes.Pass, _ *ir.Graph) error {
		if p.Name == "decompose" {
			panic("boom")
		}
		return nil
	}
	o.Hooks = []passes.Hook{{After: boom}}
	_, err := Compile(t.Context(), o)
	b, ok := err.(*BugError)
	if !ok || b.Pass != "decompose" || b.Method != "forward" || !strings.Contains(b.Error(), "boom") {
		t.Fatalf("error %v", err)
	}
	text := string(b.Reproducer([]string{"lathe", "compile"}, o))
	for _, want := range []string{"lathe compile", "boom", "-- stack --", "-- in.ir --", "graph @forward", "--pipeline decompose"} {
		if !strings.Contains(text, want) {
			t.Errorf("the reproducer lacks %q", want)
		}
	}
	if got, err := filepath.Glob(filepath.Join(filepath.Dir(o.Output), "*")); err != nil || len(got) > 0 {
		t.Errorf("files left: %v, %v", got, err)
	}
}

// plant gives options whose pipeline has a pass that makes the second SiLU that it rewrites wrong.
func plant(t *testing.T) VerifyOptions {
	t.Helper()
	o := verifyOptions(t, llama)
	wrong := passes.Pass{Name: "wrong", Run: func(ctx *passes.Context, g *ir.Graph) error {
		k := 0
		for n := range g.Nodes() {
			if n.Op != ops.AtenSiluDefault {
				continue
			}
			b, ok := ctx.Rewrite(n, "silu")
			if !ok {
				continue
			}
			if k++; k == 2 {
				g.Replace(n, op.AtenSigmoidDefault(b, n.In(0)))
			} else {
				g.Replace(n, op.AtenMulTensor(b, n.In(0), op.AtenSigmoidDefault(b, n.In(0))))
			}
			if b.Err != nil {
				return b.Err
			}
		}
		return nil
	}}
	o.pipeline = append(program.Pipeline()[:3:3], append(passes.Pipeline{wrong}, program.Pipeline()[3:]...)...)
	return o
}

// The second rewrite is wrong only after a first one: both are needed, all others are not.
func TestBisect(t *testing.T) {
	rs, err := Bisect(t.Context(), plant(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(rs) != 2 || rs[0].ID == rs[1].ID {
		t.Fatalf("rewrites %v", rs)
	}
	for _, r := range rs {
		if !strings.HasPrefix(r.Text, "wrong#silu aten.silu.default ") {
			t.Errorf("rewrite %q", r.Text)
		}
	}
	if _, err := Bisect(t.Context(), verifyOptions(t, llama)); err != ErrNoFault {
		t.Errorf("of a right program: %v", err)
	}
}

func TestReduce(t *testing.T) {
	g, err := ReduceModel(t.Context(), plant(t))
	if err != nil {
		t.Fatal(err)
	}
	silus := 0
	for n := range g.Nodes() {
		if n.Op == ops.AtenSiluDefault {
			silus++
		}
	}
	if silus != 2 || g.NumNodes() > 6 {
		t.Errorf("%d nodes, %d of them silu:\n%s", g.NumNodes(), silus, text.String(g))
	}
	if _, err := ReduceModel(t.Context(), verifyOptions(t, llama)); err != ErrNoFault {
		t.Errorf("of a right program: %v", err)
	}
}

func TestDiff(t *testing.T) {
	dir := t.TempDir()
	write := func(name, src string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(src), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const src = "graph @forward(%x: f32[2] user) -> (%y) {\n  %y = aten.relu(%x) : f32[2]\n}\n"
	a, b := write("a.ir", src), write("b.ir", strings.ReplaceAll(src, "relu", "neg"))
	d, err := Diff(a, b)
	if err != nil || !strings.Contains(d, "\n-  %y = aten.relu(%x)") || !strings.Contains(d, "\n+  %y = aten.neg(%x)") {
		t.Errorf("%v\n%s", err, d)
	}
	if d, err := Diff(llama, llama); err != nil || d != "" {
		t.Errorf("a file and itself: %v\n%s", err, d)
	}
}

// A fault that only the recorded values show is reduced on them, not on random ones.
func TestReduceOnRecordedValues(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.ir")
	src := `graph @forward(%x: f32[2] user) -> (%4) {
  %1 = aten.mul.Scalar(%x, other=1000.0) : f32[2]
  %2 = aten.add.Scalar(%1, other=1.0) : f32[2]
  %3 = aten.relu(%2) : f32[2]
  %4 = aten.neg(%3) : f32[2]
}
`
	if err := os.WriteFile(path, []byte(src), 0o666); err != nil {
		t.Fatal(err)
	}
	o := verifyOptions(t, path)
	x, err := interp.FromFloats(ops.Float32, []int64{2}, []float64{3, 4})
	if err != nil {
		t.Fatal(err)
	}
	o.Calls = [][]Value{{x}}
	// Wrong above a thousand only, where random numbers do not go.
	wrong := passes.Pass{Name: "wrong", Run: func(ctx *passes.Context, g *ir.Graph) error {
		for n := range g.Nodes() {
			if n.Op != ops.AtenReluDefault {
				continue
			}
			b, ok := ctx.Rewrite(n, "relu")
			if ok {
				g.Replace(n, op.AtenClampDefault(b, n.In(0), op.KW("min", ir.Float(0)), op.KW("max", ir.Float(1000))))
				return b.Err
			}
		}
		return nil
	}}
	o.pipeline = passes.Pipeline{passes.Functionalize, wrong}
	g, err := ReduceModel(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if g.NumNodes() != 1 {
		t.Errorf("reduced to\n%s", text.String(g))
	}
}
