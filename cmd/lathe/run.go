package main

import (
	"fmt"
	"io"

	"github.com/lathe-ml/lathe"
	"github.com/lathe-ml/lathe/internal/etrt"
	"github.com/lathe-ml/lathe/interp"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/tools/oracle/cases"
)

// data are the flags that say on what a program runs.
type data struct {
	Inputs []string `help:"Inputs, by name or in order; a file a call (.npz or .safetensors)." placeholder:"FILE" sep:"none"`
	Expect []string `help:"Outputs to compare with, a file a call." placeholder:"FILE" sep:"none"`
	Case   string   `help:"A folder with case.json: recorded calls, compared with their outputs." placeholder:"DIR"`
	Seed   *uint64  `help:"Of random inputs, in place of those that the export recorded, and of random operators; 1 where there are none." placeholder:"N"`
	RTol   *float64 `name:"rtol" help:"Relative tolerance of a comparison; 1e-3, or the case's, without." placeholder:"X"`
	ATol   *float64 `name:"atol" help:"Absolute tolerance; 1e-4, or the case's, without." placeholder:"X"`
}

// script is what is run on a program and what is to come of it.
type script struct {
	calls      [][]lathe.Value
	want       [][]lathe.Value // nil where nothing is known
	stateful   bool            // all calls to one loaded program
	method     string
	rtol, atol float64
	close      func()
}

func (d *data) seed() uint64 {
	if d.Seed == nil {
		return 1
	}
	return *d.Seed
}

// load reads the flags' files for a program that is open. Without any the inputs are those of the export, where the file
// has them and no seed asks for others, or random.
func (d *data) load(r *lathe.Runner) (*script, error) {
	s := &script{stateful: true, rtol: 1e-3, atol: 1e-4, close: func() {}}
	switch {
	case d.Case != "":
		if len(d.Inputs)+len(d.Expect) > 0 {
			return nil, &lathe.UsageError{Err: fmt.Errorf("--case brings its own inputs and outputs")}
		}
		if err := s.loadCase(d.Case); err != nil {
			return nil, err
		}
	case len(d.Inputs) == 0:
		in := r.Recorded()
		if in == nil || d.Seed != nil {
			var err error
			if in, err = r.Random(d.seed()); err != nil {
				return nil, err
			}
		}
		s.calls = append(s.calls, in)
	}
	for _, path := range d.Inputs {
		as, err := lathe.ReadArrays(path)
		if err != nil {
			return nil, err
		}
		calls, err := r.Bind(as)
		if err != nil {
			return nil, err
		}
		s.calls = append(s.calls, calls...)
	}
	for _, path := range d.Expect {
		as, err := lathe.ReadArrays(path)
		if err != nil {
			return nil, err
		}
		outs := outputsOf(as)
		if len(outs) == 0 {
			return nil, &ir.Diag{Code: "bad-arrays", Msg: "no outputs in it", Entry: path, Try: "name them out0, out1, … or c0_out_000, …"}
		}
		s.want = append(s.want, outs...)
	}
	if len(s.want) > 0 && len(s.want) != len(s.calls) {
		return nil, &lathe.UsageError{Err: fmt.Errorf("outputs of %d calls for %d calls", len(s.want), len(s.calls))}
	}
	if d.RTol != nil {
		s.rtol = *d.RTol
	}
	if d.ATol != nil {
		s.atol = *d.ATol
	}
	return s, nil
}

func (s *script) loadCase(dir string) error {
	c, err := cases.Load(dir)
	if err != nil {
		return err
	}
	s.close = func() { c.Close() } // it was only read
	s.stateful, s.method, s.rtol, s.atol = c.Stateful, c.Method, c.RTol, c.ATol
	convert := func(list *[][]lathe.Value, vs []etrt.Value) error {
		out, err := lathe.FromRuntime(vs)
		*list = append(*list, out)
		return err
	}
	for _, call := range c.Calls {
		if err := convert(&s.calls, call.In); err != nil {
			return err
		}
		if !c.Compare() {
			continue
		}
		if err := convert(&s.want, call.Out); err != nil {
			return err
		}
	}
	return nil
}

// outputsOf finds outputs by their names, call by call.
func outputsOf(as lathe.Arrays) [][]lathe.Value {
	var calls [][]lathe.Value
	for c := 0; ; c++ {
		var outs []lathe.Value
		for i := 0; ; i++ {
			x := as[outName(c, i)]
			if x == nil && c == 0 {
				x = as[fmt.Sprintf("out%d", i)]
			}
			if x == nil {
				break
			}
			outs = append(outs, x)
		}
		if outs == nil {
			return calls
		}
		calls = append(calls, outs)
	}
}

func outName(call, i int) string { return fmt.Sprintf("c%d_out_%03d", call, i) }

type runCmd struct {
	target
	data
	File            string `arg:"" help:"A .pt2, .ir or .pte file."`
	Engine          string `help:"reference (the interpreter; for models) or executorch (the stock runtime; for .pte files)." enum:",reference,executorch" default:"" placeholder:"NAME"`
	Method          string `help:"The method to run." placeholder:"NAME"`
	Threads         int    `help:"Threads of the ExecuTorch runtime." placeholder:"N"`
	ExternalWeights string `help:"The weights (.ptd) of a .pte file that was compiled without them." placeholder:"FILE.ptd"`
	Output          string `help:"A file for the outputs (.npz or .safetensors)." placeholder:"FILE"`
}

// runResult is the JSON form of the output.
type runResult struct {
	Call    int      `json:"call"`
	Outputs []string `json:"outputs"`
	// Differs says how the outputs differ from the expected ones; empty where they agree or nothing is expected.
	Differs string `json:"differs,omitempty"`
}

func (c *runCmd) Run(e *env) error {
	o := lathe.RunOptions{Engine: c.Engine, Method: c.Method, Seed: c.seed(), Threads: c.Threads, ExternalWeights: c.ExternalWeights}
	if err := c.options(&o.Compile); err != nil {
		return err
	}
	e.opts = o.Compile
	e.opts.Inputs = []lathe.Input{{Path: c.File}}
	r, err := lathe.OpenRunner(e, c.File, o)
	if err != nil {
		return err
	}
	defer r.Close()
	for _, n := range r.Notes {
		e.note(n)
	}
	s, err := c.load(r)
	if err != nil {
		return err
	}
	defer s.close()
	var results []runResult
	outputs := lathe.Arrays{}
	for k, in := range s.calls {
		if k > 0 && !s.stateful {
			if err := r.Reset(e); err != nil {
				return err
			}
		}
		outs, err := r.Run(e, in)
		if err != nil {
			return err
		}
		res := runResult{Call: k}
		for i, v := range outs {
			res.Outputs = append(res.Outputs, lathe.Summary(v))
			if x, ok := v.(*interp.Tensor); ok {
				outputs[outName(k, i)] = x
			}
		}
		if s.want != nil {
			if err := lathe.Compare(outs, s.want[k], s.rtol, s.atol); err != nil {
				res.Differs = err.Error()
			}
		}
		results = append(results, res)
	}
	if c.Output != "" {
		if err := outputs.WriteFile(c.Output); err != nil {
			return err
		}
	}
	err = e.print(results, func(w io.Writer) error {
		for _, res := range results {
			for i, s := range res.Outputs {
				if _, err := fmt.Fprintf(w, "call %d output %d: %s\n", res.Call, i, s); err != nil {
					return err
				}
			}
			if s.want != nil && res.Differs == "" {
				if _, err := fmt.Fprintf(w, "call %d: agrees with the expected outputs (rtol %g, atol %g)\n", res.Call, s.rtol, s.atol); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	var diags ir.Diags
	for _, res := range results {
		if res.Differs != "" {
			diags = append(diags, &ir.Diag{Code: "differs", Msg: fmt.Sprintf("call %d: %s", res.Call, res.Differs), Entry: c.File, Try: "lathe verify names the first step that differs"})
		}
	}
	return diags.Err()
}
