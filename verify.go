package lathe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/lathe-ml/lathe/interp"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/text"
	"github.com/lathe-ml/lathe/ir/verify"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/passes"
)

// VerifyOptions say what a model is verified on.
type VerifyOptions struct {
	// Compile is the compile to check; its Inputs name the model.
	Compile Options
	// Method may be empty where there is one.
	Method string
	// Calls are the inputs; Want what must come of them, nil where nothing is known: the program as imported is the measure then.
	Calls, Want [][]Value
	// Stateful makes all calls to one loaded program.
	Stateful bool
	// RTol and ATol are the tolerances against Want. Against the imported program each output has the tolerance of its type.
	RTol, ATol float64
	Seed       uint64
	// Judge makes the last step: it runs the compiled program. NoJudge says why there is none.
	Judge   *Judge
	NoJudge string

	// pipeline replaces the backend's, for tests that plant a wrong pass.
	pipeline passes.Pipeline
}

// stepRuntime is the step of the compiled program.
const stepRuntime = "runtime"

// Step is one thing that Verify checked.
type Step struct {
	// Name is import, "pass NAME", or "runtime".
	Name  string `json:"step"`
	Nodes int    `json:"nodes,omitempty"`
	// By names what ran the compiled program.
	By string `json:"by,omitempty"`
	// Skipped says why the step was not run; empty where it was.
	Skipped string `json:"skipped,omitempty"`
	// Unchanged tells that a pass changed nothing, so that there was nothing to evaluate.
	Unchanged bool `json:"unchanged,omitempty"`
	// Lossy says why and how the outputs after a pass differ that may change them; later steps are held to those.
	Lossy string `json:"lossy,omitempty"`
}

// Verify evaluates a method as imported, after every pass and as compiled, and gives the steps that agreed. Each graph is
// evaluated as parsed back from its text. The error names the first step that does not agree, and the first node in it
// whose value is another, as ir.Diags.
func Verify(ctx context.Context, o VerifyOptions) (steps []Step, err error) {
	var rep Report
	prog, closeAll, err := load(o.Compile, &rep)
	defer closeAll()
	if err != nil {
		return nil, err
	}
	m := &Model{Program: prog, Path: o.Compile.Inputs[0].Path}
	g, err := m.method(o.Method)
	if err != nil {
		return nil, err
	}
	return verifyGraph(ctx, o, g)
}

// verifyGraph verifies one graph, which the passes change.
func verifyGraph(ctx context.Context, o VerifyOptions, g *ir.Graph) ([]Step, error) {
	c := &o.Compile
	if c.Backend == "" {
		c.Backend = DefaultBackend()
	}
	backend, err := c.backend()
	if err != nil {
		return nil, err
	}
	p := o.pipeline
	if p == nil {
		if p, err = c.Passes(); err != nil {
			return nil, err
		}
	}
	v := &verifier{o: o}
	if err := v.start(ctx, g); err != nil {
		return nil, err
	}
	v.steps = append(v.steps, Step{Name: "import", Nodes: g.NumNodes()})
	c.Hooks = append(slices.Clone(c.Hooks), passes.Hook{After: func(_ *passes.Context, q passes.Pass, g *ir.Graph) error {
		return v.check(ctx, q, g)
	}})
	if err := c.run(ctx, p, g, legality(backend)); err != nil {
		return v.steps, err
	}
	return v.steps, v.runtime(ctx, g)
}

type verifier struct {
	o     VerifyOptions
	steps []Step
	// last is the graph of the step before, prev its text.
	last *ir.Graph
	prev string
	// base are the outputs of the program as imported, for each call.
	base [][]Value
	// steps8 tells that the program quantizes numbers while it runs: another last bit may then become another step of
	// eight bits, of which whole rows consist.
	steps8 bool
}

// start evaluates the program as imported.
func (v *verifier) start(ctx context.Context, g *ir.Graph) error {
	h, src, err := reparse(g)
	if err != nil {
		return &BugError{Doing: "import", Method: g.Name, Err: err}
	}
	if v.base, err = v.evaluate(ctx, h, nil); err != nil {
		return err
	}
	if v.o.Want != nil {
		for k, outs := range v.base {
			if err := Compare(outs, v.o.Want[k], v.o.RTol, v.o.ATol); err != nil {
				return ir.Diags{{Code: "differs", Msg: fmt.Sprintf("import: call %d: %v", k, err), File: g.File, Entry: g.Entry, Try: "the reference engine does not do what PyTorch did"}}
			}
		}
	}
	v.last, v.prev, v.steps8 = h, src, quantizesRows(h)
	return nil
}

// quantizesRows tells whether a program finds scales of numbers while it runs.
func quantizesRows(g *ir.Graph) (found bool) {
	g.Walk(func(h *ir.Graph) {
		for n := range h.Nodes() {
			switch n.Op {
			case ops.TorchaoChooseQparamsAffineDefault, ops.QuantizedDecomposedChooseQparamsTensor, ops.QuantizedDecomposedChooseQparamsSymmetricTensor,
				ops.QuantizedDecomposedChooseQparamsPerTokenDefault, ops.QuantizedDecomposedChooseQparamsPerTokenAsymmetricDefault,
				ops.QuantizedDecomposedUnderChooseQparamsPerTokenAsymmetricImplDefault:
				found = true
			}
		}
	})
	return found
}

// reparse gives a graph as read back from its text.
func reparse(g *ir.Graph) (*ir.Graph, string, error) {
	src := text.String(g)
	h, err := clone(g)
	if err != nil {
		return nil, src, fmt.Errorf("its text cannot be read back: %w", err)
	}
	if d := ir.Diff(g, h); d != "" {
		return nil, src, fmt.Errorf("its text reads back as another graph: %s", d)
	}
	return h, src, nil
}

// check looks at the graph after a pass.
func (v *verifier) check(ctx context.Context, q passes.Pass, g *ir.Graph) error {
	pass := q.Name
	if ds := verify.Graph(g); len(ds) > 0 {
		return &BugError{Doing: "pass", Method: g.Name, Pass: pass, Err: errors.New(ds.Error())}
	}
	h, src, err := reparse(g)
	if err != nil {
		return &BugError{Doing: "pass", Method: g.Name, Pass: pass, Err: err}
	}
	step := Step{Name: "pass " + pass, Nodes: g.NumNodes()}
	if src == v.prev {
		step.Unchanged = true
		v.steps = append(v.steps, step)
		return nil
	}
	outs, err := v.evaluate(ctx, h, nil)
	if err != nil {
		return fmt.Errorf("after pass %s: %w", pass, err)
	}
	for k := range outs {
		err := v.compare(outs[k], k)
		if err != nil && q.Lossy == "" {
			return ir.Diags{v.blame(ctx, pass, k, h, err)}
		}
		if err != nil && step.Lossy == "" {
			step.Lossy = fmt.Sprintf("%s: call %d: %v", q.Lossy, k, err)
		}
	}
	if q.Lossy != "" {
		step.Lossy = cmp.Or(step.Lossy, q.Lossy+", within the tolerance")
		v.base, v.o.Want, v.steps8 = outs, nil, quantizesRows(h)
	}
	v.last, v.prev = h, src
	v.steps = append(v.steps, step)
	return nil
}

// compare holds a call's outputs against what is wanted.
func (v *verifier) compare(outs []Value, call int) error {
	var errs []error
	if v.o.Want != nil {
		errs = append(errs, Compare(outs, v.o.Want[call], v.o.RTol, v.o.ATol))
	}
	return errors.Join(append(errs, v.compareEach(outs, v.base[call]))...)
}

// compareEach holds values against values with the tolerance of their types.
func (v *verifier) compareEach(got, want []Value) error {
	// The runtime gives mutated inputs first.
	if len(got) > len(want) {
		got = got[len(got)-len(want):]
	}
	if len(got) != len(want) {
		return fmt.Errorf("%d outputs, %d wanted", len(got), len(want))
	}
	var errs []error
	for i := range want {
		r, a := tolerance(want[i])
		if v.steps8 {
			r, a = max(r, 5e-2), max(a, 1e-1)
		}
		if err := Compare(got[i:i+1], want[i:i+1], r, a); err != nil {
			errs = append(errs, fmt.Errorf("output %d of %d: %w", i, len(want), err))
		}
	}
	return errors.Join(errs...)
}

// tolerance is what rewrites of real arithmetic may change in a type.
func tolerance(v Value) (rtol, atol float64) {
	x, ok := v.(*interp.Tensor)
	if !ok {
		return 1e-9, 1e-9
	}
	switch x.DType {
	case ops.Float64, ops.Complex128:
		return 1e-7, 1e-9
	case ops.Float32, ops.Complex64:
		return 1e-3, 1e-4
	}
	return 5e-2, 5e-2
}

// evaluate runs the calls on a graph in the reference engine. watch, when not nil, sees every value of the call at hand.
func (v *verifier) evaluate(ctx context.Context, g *ir.Graph, watch func(call int, n *ir.Node, outs []Value) error) ([][]Value, error) {
	var all [][]Value
	var s *interp.Session
	for k, in := range v.o.Calls {
		if s == nil || !v.o.Stateful {
			opts := interp.Options{Seed: v.o.Seed, RandomData: true, CheckTypes: true}
			if watch != nil {
				opts.Observe = func(n *ir.Node, outs []interp.Value) error { return watch(len(all), n, outs) }
			}
			var err error
			if s, err = interp.New(g, opts); err != nil {
				return nil, err
			}
		}
		args, err := copyValues(in)
		if err != nil {
			return nil, err
		}
		outs, err := s.Run(ctx, args)
		if err != nil {
			return nil, fmt.Errorf("call %d: %w", k, err)
		}
		// Outputs may alias state that the next call writes to.
		if outs, err = copyValues(outs); err != nil {
			return nil, err
		}
		all = append(all, outs)
	}
	return all, nil
}

func copyValues(vs []Value) ([]Value, error) {
	rs, err := ToRuntime(vs)
	if err != nil {
		return nil, err
	}
	for i := range rs {
		if t := rs[i].Tensor; t != nil {
			t.Data = slices.Clone(t.Data)
		}
	}
	return FromRuntime(rs)
}

var errEnough = errors.New("enough")

// blame finds the first node after the pass whose value the graph before it computes differently, or did not compute.
func (v *verifier) blame(ctx context.Context, pass string, call int, g *ir.Graph, differs error) *ir.Diag {
	d := &ir.Diag{Code: "differs", File: g.File, Entry: g.Entry, Msg: fmt.Sprintf("after pass %s: call %d: %v", pass, call, differs), Try: "lathe bisect finds the rewrite that does it"}
	before := map[string][]Value{}
	_, err := v.evaluate(ctx, v.last, func(k int, n *ir.Node, outs []Value) error {
		if k > call {
			return errEnough
		}
		if k < call || n.Graph().Parent != nil {
			return nil
		}
		for i, o := range n.Outs {
			if o.Name != "" {
				c, err := copyValues(outs[i : i+1])
				if err != nil {
					continue // of no kind that can be compared
				}
				before[o.Name] = c
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return d
	}
	_, _ = v.evaluate(ctx, g, func(k int, n *ir.Node, outs []Value) error { // ends early on purpose
		if k > call {
			return errEnough
		}
		if k < call || n.Graph().Parent != nil {
			return nil
		}
		for i, o := range n.Outs {
			want, ok := before[o.Name]
			if !ok {
				continue
			}
			if err := v.compareEach(outs[i:i+1], want); err != nil {
				d.Op, d.Node, d.Origin = n.OpName(), o.Name, n.Origin
				d.Msg = fmt.Sprintf("after pass %s it is the first that differs, in call %d: %v", pass, call, err)
				return errEnough
			}
		}
		return nil
	})
	return d
}

// runtime compiles the program and runs it.
func (v *verifier) runtime(ctx context.Context, g *ir.Graph) error {
	judge := v.o.Judge
	if judge == nil {
		return v.skip(stepRuntime, cmp.Or(v.o.NoJudge, "not asked for"))
	}
	path := v.o.Compile.Inputs[0].Path
	if len(missingData(v.last)) > 0 {
		return v.skip(stepRuntime, "weights without contents cannot be compiled")
	}
	c := v.o.Compile
	c.Hooks = nil
	rep, remove, err := compileAside(ctx, path, c)
	if err != nil {
		return err
	}
	defer remove()
	var r *Runner
	for k, in := range v.o.Calls {
		if r == nil {
			if r, err = judge.open(ctx, rep.Output, g); err == nil {
				defer r.Close()
			}
		} else if !v.o.Stateful {
			err = r.Reset(ctx)
		}
		var outs []Value
		if err == nil {
			outs, err = r.Run(ctx, in)
		}
		if lacksDelegate(err) {
			return v.skip(stepRuntime, judge.Name+" here has no delegate for "+v.o.Compile.Backend)
		}
		if err != nil {
			return err
		}
		if v.o.Want != nil {
			err = Compare(outs, v.o.Want[k], v.o.RTol, v.o.ATol)
		} else {
			err = v.compareEach(outs, v.base[k])
		}
		if err != nil {
			return ir.Diags{{
				Code: "differs", Entry: filepath.Base(path), Msg: fmt.Sprintf("in %s: call %d: %v", judge.Name, k, err),
				Try: "every pass agrees: the fault is in the lowering or in a kernel",
			}}
		}
	}
	v.steps = append(v.steps, Step{Name: stepRuntime, By: judge.Name})
	return nil
}

// skip notes why a step was not run.
func (v *verifier) skip(step, why string) error {
	v.steps = append(v.steps, Step{Name: step, Skipped: why})
	return nil
}
