package lathe_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/lathe-ml/lathe"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
)

func ExampleCompile() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	report, err := lathe.Compile(context.Background(), lathe.Options{
		Inputs:  []lathe.Input{{Path: "testdata/llama/model.pt2"}},
		Output:  filepath.Join(dir, "llama.pte"),
		Backend: "xnnpack",
		Dims:    map[string]sym.Range{"s44": {Min: 2, Max: 4}, "s70": {Min: 2, Max: 128}, "s36": {Min: 2, Max: 512}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(filepath.Base(report.Output), "runs on", report.Backend)
	for _, m := range report.Methods {
		fmt.Println("method", m.Name, "has open sizes left:", len(m.Assumed) > 0)
	}
	// Output:
	// llama.pte runs on xnnpack
	// method forward has open sizes left: false
}

// What is wrong with a model is told by diagnostics, all in one error.
func ExampleCompile_refused() {
	_, err := lathe.Compile(context.Background(), lathe.Options{
		Inputs:  []lathe.Input{{Path: "testdata/llama/model.pt2"}},
		Backend: "portable",
		Dims:    map[string]sym.Range{"batch": {Min: 1, Max: 8}},
	})
	if diags, ok := ir.AsDiags(err); ok {
		for _, d := range diags {
			fmt.Println(d.Code, d.Msg)
			fmt.Println("try:", d.Try)
		}
	}
	_, err = lathe.Compile(context.Background(), lathe.Options{})
	var usage *lathe.UsageError
	fmt.Println(errors.As(err, &usage), err)
	// Output:
	// dim method forward has no size called "batch"
	// try: its sizes are s44, s70, s36
	// true nothing to compile
}
