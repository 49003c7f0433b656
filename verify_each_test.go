package lathe

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/passes"
)

// breakSilu is a hook that makes another operator of the first SiLU after a pass: the graph stays legal and is wrong.
func breakSilu(pass string) passes.Hook {
	return passes.Hook{After: func(_ *passes.Context, p passes.Pass, g *ir.Graph) error {
		if p.Name != pass {
			return nil
		}
		for n := range g.Nodes() {
			if n.Op == ops.AtenSiluDefault {
				b := ir.NewBuilder(g, n, n.Origin.Derive(pass+"#wrong"))
				g.Replace(n, op.AtenSigmoidDefault(b, n.In(0)))
				return b.Err
			}
		}
		return nil
	}}
}

func TestCompileVerifyEach(t *testing.T) {
	for _, backend := range Backends() {
		o := Options{Inputs: []Input{{Path: llama}}, Backend: backend, Output: filepath.Join(t.TempDir(), "x.pte"), VerifyEach: true}
		rep, err := Compile(t.Context(), o)
		if err != nil {
			t.Fatalf("%s: %v", backend, err)
		}
		if notes := strings.Join(rep.Notes, "\n"); !strings.Contains(notes, "gave the outputs of the program as imported on the inputs of the export") {
			t.Errorf("%s: notes %s", backend, notes)
		}
	}
}

// A legal but wrong rewrite ends the compile with pass, node and line, and no file.
func TestCompileVerifyEachFindsAWrongRule(t *testing.T) {
	o := Options{
		Inputs: []Input{{Path: llama}}, Backend: Portable, Output: filepath.Join(t.TempDir(), "x.pte"), VerifyEach: true,
		Hooks: []passes.Hook{breakSilu("remove-noops")},
	}
	_, err := Compile(t.Context(), o)
	ds, ok := ir.AsDiags(err)
	if !ok || len(ds) != 1 {
		t.Fatalf("error %v", err)
	}
	d := ds[0]
	if d.Code != "differs" || d.Op != "aten.sigmoid.default" || d.Node == "" || !strings.Contains(d.Msg, "after pass remove-noops it is the first that differs") {
		t.Errorf("diagnostic %+v", d)
	}
	if f := d.Origin.Frame(); f == nil || f.Line == 0 {
		t.Errorf("frame %+v", f)
	}
	if _, err := os.Stat(o.Output); err == nil {
		t.Error("a file was written")
	}
	o.VerifyEach = false
	if _, err := Compile(t.Context(), o); err != nil {
		t.Errorf("the planted rewrite is not legal, so that this shows nothing: %v", err)
	}
}

// What cannot be evaluated is said to be so, and the rules of the IR are checked all the same.
func TestCompileVerifyEachCannotJudge(t *testing.T) {
	o := Options{
		Inputs: []Input{{Path: llama}}, Backend: Portable, Output: filepath.Join(t.TempDir(), "x.pte"), VerifyEach: true,
		VerifyCalls: [][]Value{{}},
	}
	rep, err := Compile(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if notes := strings.Join(rep.Notes, "\n"); !strings.Contains(notes, "not evaluated: the reference engine cannot run it as imported") {
		t.Errorf("notes %s", notes)
	}
}

// Without inputs a model runs on those of its export, as long as they are within the sizes asked for.
func TestRecordedInputs(t *testing.T) {
	o := RunOptions{Engine: EngineReference}
	r, err := OpenRunner(t.Context(), llama, o)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	in := r.Recorded()
	if len(in) != len(r.Inputs()) {
		t.Fatalf("%d of %d inputs", len(in), len(r.Inputs()))
	}
	if outs, err := r.Run(t.Context(), in); err != nil || len(outs) == 0 {
		t.Errorf("outputs %v, %v", outs, err)
	}
	o.Compile.Dims = map[string]sym.Range{"s70": {Min: 7, Max: 9}}
	far, err := OpenRunner(t.Context(), llama, o)
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	if far.Recorded() != nil {
		t.Error("inputs of two tokens where seven are asked for")
	}
}
