package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/lathe-ml/lathe"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/passes"
)

// target are the flags that choose and change a pipeline.
type target struct {
	Backend  string   `help:"Who runs the program: ${backends}; ${backend} without." default:"${backend}" enum:"${backends}" placeholder:"NAME"`
	Quantize string   `help:"Make integers of weights: 2w, 4w, 8w, or with activations 8da4w, 8da8w; :N for groups of N that share a scale." placeholder:"linear=4w:32,embedding=8w"`
	Dim      []string `help:"Bounds of a size that the export left open." placeholder:"NAME=MIN..MAX" sep:"none"`
}

func (t target) options(o *lathe.Options) error {
	o.Backend = t.Backend
	var err error
	if o.Quantize, err = passes.ParseQuantization(t.Quantize); err != nil {
		return &lathe.UsageError{Err: fmt.Errorf("--quantize: %w", err)}
	}
	for _, d := range t.Dim {
		name, r, err := parseDim(d)
		if err != nil {
			return err
		}
		if o.Dims == nil {
			o.Dims = map[string]sym.Range{}
		}
		o.Dims[name] = r
	}
	return nil
}

type compileCmd struct {
	target
	Model           string   `arg:"" optional:"" help:"The archive (.pt2), or a program as IR text that holds its weights."`
	Out             string   `short:"o" help:"The file to write; by default the model's name with .pte." placeholder:"OUT.pte"`
	Method          []string `help:"A method's name and its archive; may be repeated." placeholder:"NAME=FILE.pt2" sep:"none"`
	ExternalWeights string   `help:"Write the weights to this file (.ptd) instead of into the program." placeholder:"FILE.ptd"`
	Pipeline        string   `help:"The passes to run instead of the backend's." placeholder:"SPEC"`
	Skip            []string `help:"A pass to leave out." placeholder:"PASS"`
	PrintAfter      []string `help:"Print the IR after a pass, or after all." placeholder:"PASS|all"`
	Dump            string   `help:"A folder for the IR after every pass." placeholder:"DIR"`
	VerifyEach      bool     `help:"Check the IR after every pass and evaluate it: outputs must be those of the program as imported."`
	Inputs          []string `help:"Inputs for --verify-each, those of the export or random ones without; a file a call (.npz or .safetensors)." placeholder:"FILE" sep:"none"`
	Kernels         string   `help:"A folder of Metal kernels for operators, for the backend mlx; lathe kernel stub begins one." placeholder:"DIR"`
	FuseKernels     bool     `help:"Make one Metal kernel of each chain of element-wise operators, for the backend mlx."`
	Report          []string `help:"Write a report; the name ends in .html, .json or .md." placeholder:"FILE" sep:"none"`
}

func (c *compileCmd) Run(e *env) error {
	o := &e.opts
	*o = lathe.Options{Output: c.Out, ExternalWeights: c.ExternalWeights, Pipeline: c.Pipeline, Skip: c.Skip, Kernels: c.Kernels, FuseKernels: c.FuseKernels}
	if err := c.options(o); err != nil {
		return err
	}
	if c.Model != "" {
		o.Inputs = append(o.Inputs, lathe.Input{Path: c.Model})
	}
	named := map[string]bool{}
	for _, m := range c.Method {
		name, path, ok := strings.Cut(m, "=")
		if !ok || name == "" || path == "" {
			return &lathe.UsageError{Err: fmt.Errorf("--method %s: want NAME=FILE.pt2", m)}
		}
		if named[name] {
			return &lathe.UsageError{Err: fmt.Errorf("--method %s: a method of that name is given already", m)}
		}
		named[name] = true
		o.Inputs = append(o.Inputs, lathe.Input{Path: path, Method: name})
	}
	slices.SortStableFunc(o.Inputs, func(a, b lathe.Input) int { return strings.Compare(a.Method, b.Method) })
	for _, f := range c.Report {
		if err := lathe.CheckReportName(f); err != nil {
			return err
		}
		if _, err := os.Stat(filepath.Dir(f)); err != nil {
			return &lathe.UsageError{Err: fmt.Errorf("--report %s: its folder is not there", f)}
		}
	}
	o.VerifyEach = c.VerifyEach
	if len(c.Inputs) > 0 {
		calls, err := c.calls(e, o.Inputs)
		if err != nil {
			return err
		}
		o.VerifyCalls = calls
	}
	if err := printAfter(e, o, c.PrintAfter); err != nil {
		return err
	}
	if c.Dump != "" {
		if err := os.MkdirAll(c.Dump, 0o777); err != nil {
			return err
		}
		o.Hooks = append(o.Hooks, passes.DumpHook(c.Dump))
	}
	bar := e.progress()
	o.Progress = bar.update
	rep, err := lathe.Compile(e, *o)
	bar.close()
	if err != nil {
		return err
	}
	for _, n := range rep.Notes {
		e.note(n)
	}
	for _, f := range c.Report {
		if err := rep.WriteFile(f); err != nil {
			return err
		}
	}
	return nil
}

// calls reads the inputs for --verify-each.
func (c *compileCmd) calls(e *env, in []lathe.Input) ([][]lathe.Value, error) {
	if !c.VerifyEach || len(in) != 1 {
		return nil, &lathe.UsageError{Err: errors.New("--inputs are for --verify-each and one method; lathe verify takes a method of several")}
	}
	r, err := lathe.OpenRunner(e, in[0].Path, lathe.RunOptions{Engine: lathe.EngineReference})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	s, err := (&data{Inputs: c.Inputs}).load(r)
	if err != nil {
		return nil, err
	}
	return s.calls, nil
}

// printAfter prints the IR after passes of the pipeline at hand.
func printAfter(e *env, o *lathe.Options, names []string) error {
	if len(names) == 0 {
		return nil
	}
	p, err := o.Passes()
	if err != nil {
		return err
	}
	for _, name := range names {
		if name != "all" && len(p.Without(name)) == len(p) {
			return &lathe.UsageError{Err: fmt.Errorf("--print-after %s: the pipeline has no such pass: %s", name, p)}
		}
		o.Hooks = append(o.Hooks, passes.PrintHook(e.stdout, name))
	}
	return nil
}

func parseDim(s string) (string, sym.Range, error) {
	name, bounds, ok := strings.Cut(s, "=")
	lo, hi, isRange := strings.Cut(bounds, "..")
	if !isRange {
		hi = lo
	}
	r := sym.Range{Min: math.MinInt64, Max: math.MaxInt64}
	var err error
	if lo != "" {
		r.Min, err = strconv.ParseInt(lo, 10, 64)
	}
	if err == nil && hi != "" {
		r.Max, err = strconv.ParseInt(hi, 10, 64)
	}
	if !ok || err != nil || name == "" || bounds == "" || r.Empty() {
		return "", r, &lathe.UsageError{Err: fmt.Errorf("--dim %s: want NAME=MIN..MAX", s)}
	}
	return name, r, nil
}
