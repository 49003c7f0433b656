// Package lathe compiles PyTorch programs for devices: what torch.export.save wrote in, an ExecuTorch program out.
package lathe

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lathe-ml/lathe/codegen/pte"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/lower/program"
	"github.com/lathe-ml/lathe/partition"
	"github.com/lathe-ml/lathe/passes"
	"github.com/lathe-ml/lathe/pt2"
)

// Portable is the name of the target without a delegate.
const Portable = "portable"

// backends lists the delegates; a backend is its folder and its line here.
var backends = []partition.Backend{}

// Backends names the targets that Compile takes.
func Backends() []string {
	names := []string{Portable}
	for _, b := range backends {
		names = append(names, b.Name())
	}
	return names
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
	return nil, fmt.Errorf("no backend is called %q; there are %s", name, strings.Join(Backends(), ", "))
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
	// Backend is one of Backends; empty means portable.
	Backend string
	// Dims bounds sizes that the export left open, by the name of the symbol.
	Dims map[string]sym.Range
	// Pipeline replaces the backend's passes, by names; Skip leaves some out.
	Pipeline string
	Skip     []string
	// Hooks watch the passes.
	Hooks []passes.Hook
	// Program are choices of the plan.
	Program program.Options
	// Progress, when not nil, is told the stage at work and how far it is.
	Progress func(stage string, done, total int64)
}

// Report says what was made.
type Report struct {
	Output string
	Bytes  int64
	// Notes are remarks that do no harm: of the archive, and bounds assumed for sizes without one.
	Notes []string
	// Methods are the plans, Regions and Outside what the delegate runs and what it does not.
	Methods []program.MethodReport
	partition.Report
}

// Compile compiles archives into one program file, which appears whole or not at all. Errors in the input are ir.Diags.
func Compile(ctx context.Context, o Options) (*Report, error) {
	if len(o.Inputs) == 0 {
		return nil, fmt.Errorf("nothing to compile")
	}
	if o.Backend == "" {
		o.Backend = Portable
	}
	if o.Output == "" {
		in := o.Inputs[0].Path
		o.Output = strings.TrimSuffix(in, filepath.Ext(in)) + ".pte"
	}
	backend, err := backendNamed(o.Backend)
	if err != nil {
		return nil, err
	}
	prog := &ir.Program{}
	rep := &Report{Output: o.Output}
	var diags ir.Diags
	for _, in := range o.Inputs {
		a, err := pt2.Open(in.Path)
		if err != nil {
			ds, ok := ir.AsDiags(err)
			if !ok {
				return nil, err
			}
			diags = append(diags, ds...)
			continue
		}
		defer a.Close() //nolint:errcheck // only read
		p, err := a.Load()
		rep.Notes = append(rep.Notes, a.Notes()...)
		if err != nil {
			ds, ok := ir.AsDiags(err)
			if !ok {
				return nil, err
			}
			diags = append(diags, ds...)
			continue
		}
		if in.Method != "" {
			if len(p.Methods) != 1 {
				diags = append(diags, &ir.Diag{Code: "methods", Msg: fmt.Sprintf("%s holds %d programs; one name cannot stand for them", in.Path, len(p.Methods))})
				continue
			}
			p.Methods[0].Name = in.Method
		}
		for _, g := range p.Methods {
			if prog.Method(g.Name) != nil {
				diags = append(diags, &ir.Diag{Code: "methods", Msg: fmt.Sprintf("two programs are called %q", g.Name), Entry: g.Entry, Try: "name them with --method NAME=FILE"})
				continue
			}
			prog.Methods = append(prog.Methods, g)
		}
	}
	if err := diags.Err(); err != nil {
		return nil, err
	}
	for _, g := range prog.Methods {
		if err := bindDims(g, o.Dims); err != nil {
			return nil, err
		}
		part, err := transform(ctx, g, backend, o)
		if err != nil {
			return nil, err
		}
		if part != nil {
			rep.Regions = append(rep.Regions, part.Regions...)
			rep.Outside = append(rep.Outside, part.Outside...)
		}
	}
	file, lowered, err := program.Lower(prog, o.Program)
	if err != nil {
		return nil, err
	}
	rep.Methods = lowered.Methods
	for _, m := range lowered.Methods {
		for _, n := range m.Notes {
			rep.Notes = append(rep.Notes, "method "+m.Name+": "+n)
		}
		for _, a := range m.Assumed {
			rep.Notes = append(rep.Notes, fmt.Sprintf("method %s: size %s has no bound; memory is planned for up to %d (--dim %s=1..MAX says another)", m.Name, a.Symbol, a.Max, a.Symbol))
		}
	}
	var opts pte.Options
	if o.Progress != nil {
		opts.Progress = func(done, total int64) { o.Progress("write", done, total) }
	}
	if err := pte.WriteFile(ctx, o.Output, file, opts); err != nil {
		return nil, err
	}
	if st, err := os.Stat(o.Output); err == nil {
		rep.Bytes = st.Size()
	}
	return rep, nil
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
				Code: "dim", Msg: fmt.Sprintf("method %s has no size called %q", g.Name, name), Entry: g.Entry,
				Try: "its sizes are " + strings.Join(have, ", "),
			})
			continue
		}
		r := s.Range.Intersect(dims[name])
		if r.Empty() {
			diags = append(diags, &ir.Diag{
				Code: "dim", Msg: fmt.Sprintf("size %s of method %s is within %v at export; %v has nothing in common with that", name, g.Name, s.Range, dims[name]),
				Entry: g.Entry, Try: "export the model again with other bounds",
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

// transform runs the passes of the target on one graph and gives the target's delegate what it takes.
func transform(ctx context.Context, g *ir.Graph, backend partition.Backend, o Options) (*partition.Report, error) {
	run := func(p passes.Pipeline, legal func(*ir.Node) *ir.Diag) error {
		if o.Pipeline != "" {
			q, err := passes.Parse(o.Pipeline, p...)
			if err != nil {
				return err
			}
			p = q
		}
		return p.Without(o.Skip...).Run(&passes.Context{Target: o.Backend, Legal: legal, Hooks: o.Hooks}, g)
	}
	if backend == nil {
		return nil, run(program.Pipeline(), program.Legal)
	}
	caps := backend.Caps()
	err := run(backend.Pipeline(), func(n *ir.Node) *ir.Diag {
		if _, d := caps.Match(n); d == nil {
			return nil
		}
		return program.Legal(n)
	})
	if err != nil {
		return nil, err
	}
	rep, err := partition.Partition(ctx, g, backend)
	if err != nil {
		return nil, err
	}
	// What the backend gave back may be more than the kernels take whole.
	o.Pipeline = ""
	return rep, run(passes.Pipeline{passes.Decompose, passes.CSE, passes.DCE}, program.Legal)
}
