// Package lathe compiles PyTorch programs for devices: what torch.export.save wrote in, an ExecuTorch program out.
package lathe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lathe-ml/lathe/codegen/pte"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/lower/mlx"
	"github.com/lathe-ml/lathe/lower/program"
	"github.com/lathe-ml/lathe/lower/xnnpack"
	"github.com/lathe-ml/lathe/partition"
	"github.com/lathe-ml/lathe/passes"
)

// Portable is the name of the target without a delegate.
const Portable = "portable"

// backends lists the delegates; a backend is its folder and its line here.
var backends = []partition.Backend{xnnpack.Backend{}, mlx.Backend{}}

// Backends names the targets that Compile takes.
func Backends() []string {
	names := []string{Portable}
	for _, b := range backends {
		names = append(names, b.Name())
	}
	return names
}

// DefaultBackend is the target when none is asked for: XNNPACK, in a build that has it.
func DefaultBackend() string {
	if names := Backends(); slices.Contains(names, "xnnpack") {
		return "xnnpack"
	}
	return Portable
}

func backendNamed(name string) (partition.Backend, error) {
	if name == Portable {
		return nil, nil
	}
	for _, b := range backends {
		if b.Name() == name {
			return b, nil
		}
	}
	return nil, &UsageError{fmt.Errorf("no backend is called %q; there are %s", name, strings.Join(Backends(), ", "))}
}

// Input is an archive to compile.
type Input struct {
	Path string
	// Method renames the archive's only program; empty keeps the names in the archive.
	Method string
}

// Options are what Compile is asked for.
type Options struct {
	Inputs []Input
	// Output is the file to write; empty means the first input's name with .pte.
	Output string
	// ExternalWeights is a data file (.ptd) for the weights; empty keeps them in the program.
	ExternalWeights string
	// Backend is one of Backends; empty means DefaultBackend.
	Backend string
	// Dims bounds sizes that the export left open, by the name of the symbol.
	Dims map[string]sym.Range
	// Pipeline replaces the backend's passes, by names; Skip leaves some out.
	Pipeline string
	Skip     []string
	// Quantize makes integers of weights; its pass comes after those that find what the weights are.
	Quantize passes.Quantization
	// Kernels is a folder of Metal kernels (see KernelStub) and FuseKernels makes one kernel of each chain of element-wise
	// operators, for the backend mlx.
	Kernels     string
	FuseKernels bool
	// Hooks watch the passes.
	Hooks []passes.Hook
	// VerifyEach evaluates every method in the reference engine, as imported and after each pass, and ends the compile where
	// an output becomes another. VerifyCalls are the inputs; without any they are those of the export, or random. Notes say what cannot be judged.
	VerifyEach  bool
	VerifyCalls [][]Value
	// Bisect switches single rewrites off, and BisectOut is where their marks go.
	Bisect    *passes.Matcher
	BisectOut io.Writer
	// Program are choices of the plan.
	Program program.Options
	// Progress, when not nil, is told the stage at work and how far it is.
	Progress func(stage string, done, total int64)

	// ran, when not nil, is told what the passes have to say of a method.
	ran func(method string, pc *passes.Context)
	// recorded, when not nil, gives the inputs of the export of a method.
	recorded func(g *ir.Graph) []Value
	// note, when not nil, takes remarks on a method.
	note func(method, text string)
}

// Report says what was made.
type Report struct {
	Output  string
	Backend string
	Bytes   int64
	// Notes are remarks that do no harm: of the archive, and bounds assumed for sizes without one.
	Notes []string
	// Methods are the plans, Regions and Outside what the delegate runs and what it does not.
	Methods []program.MethodReport
	partition.Report

	// models are the files that methods come from.
	models map[*ir.Graph]*Model
}

// Compile compiles archives into one program file, which appears whole or not at all. Errors in the input are ir.Diags.
func Compile(ctx context.Context, o Options) (*Report, error) {
	if len(o.Inputs) == 0 {
		return nil, &UsageError{errors.New("nothing to compile")}
	}
	if o.Backend == "" {
		o.Backend = DefaultBackend()
	}
	if o.Output == "" {
		in := o.Inputs[0].Path
		if f, err := Sniff(in); err == nil && (f == FormatPTE || f == FormatPTD) {
			return nil, notModel(in, f)
		}
		if len(o.Inputs) > 1 && o.Inputs[0].Method != "" {
			return nil, &UsageError{errors.New("several methods make one program: say with -o what it is called")}
		}
		o.Output = strings.TrimSuffix(in, filepath.Ext(in)) + ".pte"
	}
	if err := o.checkFiles(); err != nil {
		return nil, err
	}
	backend, err := o.backend()
	if err != nil {
		return nil, err
	}
	rep := &Report{Output: o.Output, Backend: o.Backend}
	prog, closeAll, err := load(o, rep)
	defer closeAll()
	if err != nil {
		return nil, err
	}
	var missing ir.Diags
	for _, g := range prog.Methods {
		missing = append(missing, missingData(g)...)
	}
	if err := missing.Err(); err != nil {
		return nil, err
	}
	quantized := 0
	o.recorded = func(g *ir.Graph) []Value { return rep.models[g].Recorded(g) }
	o.note = func(method, text string) { rep.Notes = append(rep.Notes, "method "+method+": "+text) }
	o.ran = func(method string, pc *passes.Context) {
		quantized += pc.Quantized
		for _, n := range pc.Notes {
			o.note(method, n)
		}
	}
	for _, g := range prog.Methods {
		part, err := transform(ctx, g, backend, o)
		if err != nil {
			return nil, err
		}
		if part != nil {
			rep.Regions = append(rep.Regions, part.Regions...)
			rep.Outside = append(rep.Outside, part.Outside...)
		}
	}
	if err := o.noneQuantized(quantized, rep.Notes); err != nil {
		return nil, err
	}
	o.Program.External = o.ExternalWeights != ""
	var lowered *program.Result
	err = guard("lowering", func() (err error) {
		lowered, err = program.Lower(prog, o.Program)
		return err
	})
	if err != nil {
		return nil, asBug(err, "", "")
	}
	rep.Methods = lowered.Methods
	for _, m := range lowered.Methods {
		for _, n := range m.Notes {
			rep.Notes = append(rep.Notes, "method "+m.Name+": "+n)
		}
		for _, a := range m.Assumed {
			rep.Notes = append(rep.Notes, fmt.Sprintf("method %s: size %s has no bound; memory is planned for up to %s (--dim %s=%d..MAX says another)", m.Name, a.Symbol, planned(a, m.Assumed), a.Symbol, least(prog.Method(m.Name), a.Symbol)))
		}
	}
	var opts pte.Options
	if o.Progress != nil {
		opts.Progress = func(done, total int64) { o.Progress("write", done, total) }
	}
	if err := pte.WriteFiles(ctx, o.Output, lowered.Program, o.ExternalWeights, lowered.Data, opts); err != nil {
		return nil, writeDiag(o.Output, err)
	}
	if st, err := os.Stat(o.Output); err == nil {
		rep.Bytes = st.Size()
	}
	return rep, nil
}

// least is the smallest that a size may be.
func least(g *ir.Graph, symbol string) int64 {
	s, _ := g.Syms.Get(symbol)
	return s.Range.Min
}

// noneQuantized refuses a request to quantize that did nothing.
func (o Options) noneQuantized(layers int, notes []string) error {
	asked := o.Quantize.String()
	if asked == "" || layers > 0 {
		return nil
	}
	return ir.Diags{{
		Code: "quantize", Msg: "no layer could be quantized to " + asked + "; " + strings.Join(notes, "; "), Entry: o.Inputs[0].Path,
		Try: "ask for layers that the model has, and for groups that divide their rows",
	}}
}

// planned says how large a size without a bound may be.
func planned(a program.AssumedBound, all []program.AssumedBound) string {
	switch {
	case len(all) == 1:
		return fmt.Sprint(a.Alone)
	case a.Alone > a.Max:
		return fmt.Sprintf("%d, or %d alone", a.Max, a.Alone)
	}
	return fmt.Sprint(a.Max)
}

// Transform runs the passes that the options name over the inputs' programs, none without Options.Pipeline, and gives
// what they make of them. Weights lie in the files: Close comes after their last use.
func Transform(ctx context.Context, o Options) (*Model, error) {
	if o.Backend == "" {
		o.Backend = DefaultBackend()
	}
	backend, err := o.backend()
	if err != nil {
		return nil, err
	}
	p, err := o.Passes()
	if err != nil {
		return nil, err
	}
	if o.Pipeline == "" {
		p = o.quantizeOnly()
	}
	var rep Report
	prog, closeAll, err := load(o, &rep)
	if err != nil {
		closeAll()
		return nil, err
	}
	m := &Model{Program: prog, Path: o.Inputs[0].Path, Notes: rep.Notes, close: closeAll}
	for _, g := range prog.Methods {
		if err := o.run(ctx, p, g, legality(backend)); err != nil {
			closeAll()
			return nil, err
		}
	}
	return m, nil
}

// load opens the inputs and puts their programs together. The function closes them.
func load(o Options, rep *Report) (prog *ir.Program, closeAll func(), err error) {
	prog = &ir.Program{}
	rep.models = map[*ir.Graph]*Model{}
	var opened []*Model
	closeAll = func() {
		for _, m := range opened {
			m.Close()
		}
	}
	var diags ir.Diags
	for _, in := range o.Inputs {
		m, err := Open(in.Path)
		if err != nil {
			ds, ok := ir.AsDiags(err)
			if !ok {
				return nil, closeAll, err
			}
			diags = append(diags, ds...)
			continue
		}
		opened = append(opened, m)
		rep.Notes = append(rep.Notes, m.Notes...)
		if in.Method != "" {
			if len(m.Methods) != 1 {
				diags = append(diags, &ir.Diag{
					Code: "methods", Msg: fmt.Sprintf("it holds %d programs; one name cannot stand for them", len(m.Methods)), Entry: in.Path,
					Try: "give the file without a name",
				})
				continue
			}
			m.Methods[0].Name = in.Method
		}
		for _, g := range m.Methods {
			if prog.Method(g.Name) != nil {
				diags = append(diags, &ir.Diag{
					Code: "methods", Msg: fmt.Sprintf("two programs are called %q", g.Name), Entry: in.Path, Try: "name them with --method NAME=FILE",
				})
				continue
			}
			prog.Methods = append(prog.Methods, g)
			rep.models[g] = m
		}
	}
	if err := diags.Err(); err != nil {
		return nil, closeAll, err
	}
	for _, g := range prog.Methods {
		if err := bindDims(g, o.Dims); err != nil {
			return nil, closeAll, err
		}
	}
	return prog, closeAll, nil
}

// missingData tells the weights that came without contents: IR text holds those of small ones only.
func missingData(g *ir.Graph) ir.Diags {
	var names []string
	for _, in := range g.Inputs {
		if in.Kind != ir.InputUser && in.Data == nil && in.Value.Type.IsTensor() {
			names = append(names, fmt.Sprintf("%s %q", in.Kind, in.Target))
		}
	}
	if len(names) == 0 {
		return nil
	}
	const most = 5
	list := strings.Join(names[:min(most, len(names))], ", ")
	if n := len(names) - most; n > 0 {
		list += fmt.Sprintf(" and %d more", n)
	}
	return ir.Diags{{
		Code: "no-data", Msg: fmt.Sprintf("method %s: the contents of %s are not known; IR text holds those of small weights only", g.Name, list), File: g.File, Entry: g.Entry,
		Try: "compile the archive that the text was made from, with --pipeline to run the passes of your choice",
	}}
}

// bindDims narrows the ranges of symbols as the user asks.
func bindDims(g *ir.Graph, dims map[string]sym.Range) error {
	names := make([]string, 0, len(dims))
	for name := range dims {
		names = append(names, name)
	}
	slices.Sort(names)
	var diags ir.Diags
	for _, name := range names {
		s, ok := g.Syms.Get(name)
		if !ok {
			var have []string
			for _, s := range g.Syms.All() {
				have = append(have, s.Name)
			}
			diags = append(diags, &ir.Diag{
				Code: "dim", Msg: fmt.Sprintf("method %s has no size called %q", g.Name, name), File: g.File, Entry: g.Entry,
				Try: "its sizes are " + strings.Join(have, ", "),
			})
			continue
		}
		r := s.Range.Intersect(dims[name])
		if r.Empty() {
			diags = append(diags, &ir.Diag{
				Code: "dim", Msg: fmt.Sprintf("size %s of method %s is within %v at export; %v has nothing in common with that", name, g.Name, s.Range, dims[name]),
				File: g.File, Entry: g.Entry, Try: "export the model again with other bounds",
			})
			continue
		}
		s.Range = r
		if err := g.Syms.Add(s); err != nil {
			return err
		}
	}
	return diags.Err()
}

// PipelineFor gives the passes of a target.
func PipelineFor(target string) (passes.Pipeline, error) {
	b, err := backendNamed(target)
	if err != nil {
		return nil, err
	}
	return pipelineOf(b), nil
}

func pipelineOf(b partition.Backend) passes.Pipeline {
	if b == nil {
		return program.Pipeline()
	}
	return b.Pipeline()
}

// legality tells why a node can go neither to the target nor to a kernel of the runtime as it is.
func legality(b partition.Backend) func(n *ir.Node) *ir.Diag {
	if b == nil {
		return program.Legal
	}
	caps := b.Caps()
	return func(n *ir.Node) *ir.Diag {
		if _, d := caps.Match(n); d == nil {
			return nil
		}
		return program.Legal(n)
	}
}

// Passes is the pipeline that the options ask for.
func (o Options) Passes() (passes.Pipeline, error) {
	b, err := o.backend()
	if err != nil {
		return nil, err
	}
	p := pipelineOf(b)
	if o.Pipeline != "" {
		if p, err = passes.Parse(o.Pipeline, append(p, o.Quantize.Pass())...); err != nil {
			return nil, &UsageError{err}
		}
	}
	for _, s := range o.Skip {
		if len(p.Without(s)) == len(p) {
			return nil, &UsageError{fmt.Errorf("the pipeline has no pass called %q: %s", s, p)}
		}
	}
	return withQuantize(p, o.Quantize).Without(o.Skip...), nil
}

// quantizeOnly is the passes that it takes to quantize, none where that is not asked for.
func (o Options) quantizeOnly() passes.Pipeline {
	if o.Quantize == (passes.Quantization{}) {
		return nil
	}
	return withQuantize(passes.Pipeline{passes.InlineWrappers, passes.Functionalize, passes.RemoveDetach, passes.RemoveNoops}, o.Quantize)
}

// withQuantize puts the pass that quantizes where weights are seen plainly: behind functionalization, and behind the
// copies and aliases that mean nothing, where the pipeline removes them.
func withQuantize(p passes.Pipeline, q passes.Quantization) passes.Pipeline {
	pass := q.Pass()
	if q == (passes.Quantization{}) || len(p.Without(pass.Name)) < len(p) {
		return p
	}
	at := 0
	for i, x := range p {
		if x.Name == passes.Functionalize.Name {
			at = i + 1
		}
		if x.Name == passes.RemoveNoops.Name {
			at = i + 1
			break
		}
	}
	return slices.Insert(slices.Clone(p), at, pass)
}

// transform runs the passes of the target on one graph and gives the target's delegate what it takes.
func transform(ctx context.Context, g *ir.Graph, backend partition.Backend, o Options) (*partition.Report, error) {
	p, err := o.Passes()
	if err != nil {
		return nil, err
	}
	before := o
	if o.VerifyEach {
		judge, err := judgeEach(ctx, g, o)
		if err != nil {
			return nil, err
		}
		before.Hooks = append(slices.Clone(o.Hooks), judge.hook(ctx))
		defer func() {
			if o.note != nil {
				o.note(g.Name, judge.note())
			}
		}()
		// Regions are no nodes that can be evaluated: what comes after them is held to the rules alone.
		o.Hooks = append(slices.Clone(o.Hooks), passes.VerifyHook())
	}
	if err := before.run(ctx, p, g, legality(backend)); err != nil || backend == nil {
		return nil, err
	}
	var rep *partition.Report
	err = guard("partitioning", func() (err error) {
		rep, err = partition.Partition(ctx, g, backend)
		return err
	})
	if err != nil {
		return nil, asBug(err, g.Name, "")
	}
	// What the backend gave back may be more than the kernels take whole.
	return rep, o.run(ctx, passes.Pipeline{passes.Decompose, passes.CentreNorms, passes.CSE, passes.DCE}, g, program.Legal)
}

// run runs passes on one graph.
func (o Options) run(ctx context.Context, p passes.Pipeline, g *ir.Graph, legal func(*ir.Node) *ir.Diag) error {
	at := ""
	watch := passes.Hook{Before: func(_ *passes.Context, q passes.Pass, _ *ir.Graph) error {
		at = q.Name
		if o.Progress != nil {
			o.Progress(q.Name, 0, 0)
		}
		return ctx.Err()
	}}
	pc := &passes.Context{Target: o.Backend, Legal: legal, Hooks: append([]passes.Hook{watch}, o.Hooks...), Bisect: o.Bisect, BisectOut: o.BisectOut}
	err := asBug(guard("pass", func() error { return p.Run(pc, g) }), g.Name, at)
	if o.ran != nil && err == nil {
		o.ran(g.Name, pc)
	}
	return err
}
