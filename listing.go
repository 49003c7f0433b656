package lathe

import (
	"io"
	"strings"
	"text/tabwriter"

	"github.com/lathe-ml/lathe/interp"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/partition"
	"github.com/lathe-ml/lathe/passes"
)

// OpInfo is what the tables say of an operator.
type OpInfo struct {
	Op     string   `json:"op"`
	Schema string   `json:"schema"`
	Doc    string   `json:"doc,omitempty"`
	DTypes []string `json:"dtypes,omitempty"`
	Stages []string `json:"stages"`
	// Kernel is the runtime kernel that serves it, and Decomposes tells that simpler operators can stand for it.
	Kernel     string `json:"kernel,omitempty"`
	Decomposes bool   `json:"decomposes,omitempty"`
	// Reference tells that the reference engine has it.
	Reference bool     `json:"reference"`
	Effects   []string `json:"effects,omitempty"`
	Limits    string   `json:"limits,omitempty"`
	// Delegate is the backend asked for, where it takes nodes of the operator whose types and arguments have a form there.
	Delegate string `json:"delegate,omitempty"`
}

// Ops lists the operators whose names contain one of the words; all of them without words. With the name of a backend it
// tells which of them that backend takes.
func Ops(backend string, words ...string) ([]OpInfo, error) {
	var takes partition.Lister
	if backend != "" {
		b, err := backendNamed(backend)
		if err != nil {
			return nil, err
		}
		if b != nil {
			takes, _ = b.Caps().(partition.Lister)
		}
	}
	var out []OpInfo
	for _, id := range ops.All() {
		i := id.Info()
		hit := len(words) == 0
		for _, w := range words {
			hit = hit || strings.Contains(i.Name, w)
		}
		if hit {
			o := opInfo(id, i)
			if takes != nil && takes.Takes(id) {
				o.Delegate = backend
			}
			out = append(out, o)
		}
	}
	return out, nil
}

func opInfo(id ops.ID, i *ops.Info) OpInfo {
	o := OpInfo{
		Op: i.Name, Schema: i.Text, Doc: i.Doc, Kernel: i.Kernel, Decomposes: passes.HasDecomp(id), Reference: interp.Supported(id), Limits: i.Limits,
	}
	for _, d := range i.DTypes.List() {
		o.DTypes = append(o.DTypes, d.Torch())
	}
	for s := ops.StageAten; s <= ops.StageLowered; s++ {
		if i.Stages.Has(s) {
			o.Stages = append(o.Stages, s.String())
		}
	}
	for _, e := range []struct {
		is   bool
		name string
	}{{i.Mutates, "writes"}, {i.View, "view"}, {i.Random, "random"}, {i.Effect, "effect"}} {
		if e.is {
			o.Effects = append(o.Effects, e.name)
		}
	}
	return o
}

// WriteOps writes the operators for people: a line each, or everything about a single one.
func WriteOps(out io.Writer, list []OpInfo) error {
	w := &printer{w: tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)}
	if len(list) == 1 {
		o := list[0]
		w.line("%s", o.Schema)
		for _, l := range [][2]string{
			{"doc", o.Doc},
			{"dtypes", strings.Join(o.DTypes, " ")},
			{"stages", strings.Join(o.Stages, " ")},
			{"effects", strings.Join(o.Effects, " ")},
			{"runs as", o.how()},
			{"limits", o.Limits},
		} {
			if l[1] != "" {
				w.line("  %s\t%s", l[0], l[1])
			}
		}
		return w.close()
	}
	for _, o := range list {
		w.line("%s\t%s\t%s", o.Op, o.how(), strings.Join(o.Effects, " "))
	}
	return w.close()
}

func (o OpInfo) how() string {
	var how []string
	if o.Delegate != "" {
		how = append(how, "delegated to "+o.Delegate)
	}
	if o.Kernel != "" {
		how = append(how, "kernel "+o.Kernel)
	}
	if o.Decomposes {
		how = append(how, "decomposition")
	}
	if !o.Reference {
		how = append(how, "not in the reference engine")
	}
	return strings.Join(how, ", ")
}

// PassInfo describes a pass.
type PassInfo struct {
	Name string `json:"name"`
	Doc  string `json:"doc"`
	// Before are the passes of the list that it must precede, with the reasons.
	Before []OrderInfo `json:"before,omitempty"`
}

// OrderInfo is a reason for an order.
type OrderInfo struct {
	Pass string `json:"pass"`
	Why  string `json:"why"`
}

// Passes describes the passes of a target in their order; all passes there are for an empty name.
func Passes(target string) ([]PassInfo, error) {
	p := passes.Pipeline(passes.All())
	facts := passes.Order()
	if target != "" {
		var err error
		if p, err = PipelineFor(target); err != nil {
			return nil, err
		}
	}
	var out []PassInfo
	for _, q := range p {
		i := PassInfo{Name: q.Name, Doc: q.Doc}
		for _, f := range facts {
			if f.First == q.Name && len(p) > len(p.Without(f.Then)) {
				i.Before = append(i.Before, OrderInfo{f.Then, f.Why})
			}
		}
		out = append(out, i)
	}
	return out, nil
}

// WritePasses writes passes for people.
func WritePasses(out io.Writer, list []PassInfo) error {
	w := &printer{w: tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)}
	for _, p := range list {
		w.line("%s\t%s", p.Name, p.Doc)
		for _, o := range p.Before {
			w.line("\tbefore %s: %s", o.Pass, o.Why)
		}
	}
	return w.close()
}
