package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

// What is committed is what the table gives.
func TestGenerated(t *testing.T) {
	out := t.TempDir()
	if err := run(root, out, false); err != nil {
		t.Fatal(err)
	}
	n := 0
	err := filepath.WalkDir(out, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		n++
		rel, err := filepath.Rel(out, path)
		if err != nil {
			return err
		}
		want, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		have, err := os.ReadFile(filepath.Join(root, rel))
		if err != nil {
			return err
		}
		if string(have) != string(want) {
			t.Errorf("%s is not what tools/opgen makes; run go generate ./ops", rel)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n < 10 {
		t.Errorf("only %d files were generated", n)
	}
	// A page of a family that is gone would stay behind.
	pages, err := os.ReadDir(filepath.Join(root, "docs", "ops"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pages {
		if _, err := os.Stat(filepath.Join(out, "docs", "ops", p.Name())); err != nil {
			t.Errorf("docs/ops/%s is made of no family", p.Name())
		}
	}
}

func TestIdent(t *testing.T) {
	rows, err := load()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"aten.add.Tensor":           "AtenAddTensor",
		"aten.add_.Tensor":          "AtenAddInplaceTensor",
		"aten._softmax.default":     "AtenUnderSoftmaxDefault",
		"aten.softmax.int":          "AtenSoftmaxInt",
		"aten.__and__.Tensor":       "AtenDunderAndTensor",
		"aten.__iand__.Tensor":      "AtenDunderIandInplaceTensor",
		"aten.sum.dim_IntList":      "AtenSumDimIntList",
		"_operator.ge.default":      "OperatorGeDefault",
		"higher_order.cond.default": "HigherOrderCondDefault",
	}
	for _, r := range rows {
		if w, ok := want[r.name]; ok {
			if r.ident != w {
				t.Errorf("%s is %s, want %s", r.name, r.ident, w)
			}
			delete(want, r.name)
		}
	}
	for n := range want {
		t.Errorf("%s has no row", n)
	}
}

// Twins: an in-place operator's pure one is found, and an operator that is the same as another takes its functions.
func TestTwins(t *testing.T) {
	rows, err := load()
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]row{}
	for _, r := range rows {
		byName[r.name] = r
	}
	abs, absolute := byName["aten.abs.default"], byName["aten.absolute.default"]
	if absolute.Infer != abs.Infer || absolute.Interp != abs.Interp || abs.Infer == "" {
		t.Errorf("aten.absolute names %q and %q, aten.abs %q and %q", absolute.Infer, absolute.Interp, abs.Infer, abs.Interp)
	}
	for _, r := range rows {
		if strings.HasSuffix(r.schema.Base, "_") && !strings.HasSuffix(r.schema.Base, "__") {
			if mut, _ := effects(r.schema); !mut && r.schema.NS == "aten" && r.schema.Base != "requires_grad_" {
				t.Errorf("%s is named like an in-place operator and writes to nothing", r.name)
			}
		}
	}
}

// TestComplete: every name of a row is a function or kernel, and every such function is named by a row.
func TestComplete(t *testing.T) {
	if err := run(root, t.TempDir(), true); err != nil {
		t.Error(err)
	}
}
