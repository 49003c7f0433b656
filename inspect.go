package lathe

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/passes"
	"github.com/lathe-ml/lathe/pt2/pytree"
)

// ModelInfo describes an archive or a program in IR text.
type ModelInfo struct {
	File    string       `json:"file"`
	Format  Format       `json:"format"`
	Bytes   int64        `json:"bytes"`
	Methods []MethodInfo `json:"methods"`
	Weights []WeightInfo `json:"weights"`
	// WeightBytes counts each storage once.
	WeightBytes int64    `json:"weight_bytes"`
	Notes       []string `json:"notes,omitempty"`
}

// MethodInfo describes one graph.
type MethodInfo struct {
	Name    string       `json:"name"`
	Stage   string       `json:"stage"`
	Nodes   int          `json:"nodes"`
	Symbols []SymbolInfo `json:"symbols,omitempty"`
	Inputs  []ValueInfo  `json:"inputs"`
	Outputs []ValueInfo  `json:"outputs"`
	// Mutations are what the program writes to, found by following aliases.
	Mutations []MutationInfo `json:"mutations,omitempty"`
	Ops       []OpCount      `json:"ops"`
	// PytreeTypes are the named containers of inputs and outputs.
	PytreeTypes []string `json:"pytree_types,omitempty"`
}

// SymbolInfo is a dynamic size.
type SymbolInfo struct {
	Name string `json:"name"`
	// Range is like "[2, 2048]".
	Range string `json:"range"`
	Hint  *int64 `json:"hint,omitempty"`
}

// ValueInfo is an input or output.
type ValueInfo struct {
	Name string `json:"name"`
	// Path is the way from the arguments of forward: past_key_values.0.
	Path  string   `json:"path,omitempty"`
	Kind  string   `json:"kind"`
	DType string   `json:"dtype,omitempty"`
	Shape []string `json:"shape,omitempty"`
	// Layout is contiguous, channels-last, or the dimensions from the outermost to the innermost in memory.
	Layout string `json:"layout,omitempty"`
	// Fixed is the value that the export specialised a scalar input to.
	Fixed string `json:"fixed,omitempty"`
}

// MutationInfo is something that the program writes to.
type MutationInfo struct {
	Kind   string `json:"kind"` // buffer or input
	Target string `json:"target"`
}

// OpCount is how often an operator occurs, nested graphs included.
type OpCount struct {
	Op    string `json:"op"`
	Count int    `json:"count"`
	// Known is false for operators that Lathe has no row for.
	Known bool `json:"known"`
}

// WeightInfo is a parameter, buffer or constant.
type WeightInfo struct {
	Name    string  `json:"name"`
	Kind    string  `json:"kind"`
	DType   string  `json:"dtype"`
	Sizes   []int64 `json:"sizes"`
	Strides []int64 `json:"strides,omitempty"`
	Offset  int64   `json:"offset,omitempty"`
	Bytes   int64   `json:"bytes"`
	Entry   string  `json:"entry,omitempty"`
	// SharedWith is the first weight over the same storage.
	SharedWith string `json:"shared_with,omitempty"`
}

// Info is the description of a file: a *ModelInfo or a *ProgramInfo.
type Info interface {
	WriteText(out io.Writer) error
}

// Inspect describes the file at path.
func Inspect(path string) (Info, error) {
	f, err := Sniff(path)
	if err != nil {
		return nil, err
	}
	if f == FormatPTE {
		return InspectProgram(path)
	}
	m, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	return InspectModel(m), nil
}

// InspectModel describes an opened model.
func InspectModel(m *Model) *ModelInfo {
	info := &ModelInfo{File: m.Path, Format: m.Format, Notes: m.Notes}
	if st, err := os.Stat(m.Path); err == nil {
		info.Bytes = st.Size()
	}
	first := map[ir.Storage]string{}
	seen := map[string]bool{}
	for _, g := range m.Methods {
		info.Methods = append(info.Methods, methodInfo(g))
		for _, in := range g.Inputs {
			if in.Kind == ir.InputUser || in.Kind == ir.InputOperand || seen[in.Target] {
				continue
			}
			seen[in.Target] = true
			w := WeightInfo{Name: in.Target, Kind: in.Kind.String(), DType: in.Value.Type.DType.Torch()}
			w.Sizes, _ = in.Value.Type.Sizes()
			if d := in.Data; d != nil {
				w.Sizes, w.Offset, w.Entry = d.Sizes, d.Offset, d.Entry
				if !d.Contiguous() {
					w.Strides = d.Strides
				}
				w.Bytes = d.Numel() * d.DType.Size()
				if !reflect.TypeOf(d.Storage).Comparable() {
					info.WeightBytes += d.Storage.Size()
				} else if other, ok := first[d.Storage]; ok {
					w.SharedWith = other
				} else {
					first[d.Storage] = in.Target
					info.WeightBytes += d.Storage.Size()
				}
			}
			info.Weights = append(info.Weights, w)
		}
	}
	return info
}

func methodInfo(g *ir.Graph) MethodInfo {
	mi := MethodInfo{Name: g.Name, Stage: g.Stage.String(), Mutations: mutations(g)}
	for _, s := range g.Syms.All() {
		si := SymbolInfo{Name: s.Name, Range: s.Range.String()}
		if s.HasHint {
			si.Hint = &s.Hint
		}
		mi.Symbols = append(mi.Symbols, si)
	}
	paths := leafPaths(g)
	for i, in := range g.UserInputs() {
		v := valueInfo(in.Value)
		if i < len(paths) {
			v.Path = paths[i]
		}
		if in.HasFixed {
			v.Fixed = argText(in.Fixed)
		}
		mi.Inputs = append(mi.Inputs, v)
	}
	for i, a := range g.Ret().Args() {
		if g.Outputs[i].Kind != ir.OutputUser {
			continue
		}
		if v := a.Value(); v != nil {
			mi.Outputs = append(mi.Outputs, valueInfo(v))
			continue
		}
		mi.Outputs = append(mi.Outputs, ValueInfo{Kind: "constant", Fixed: argText(a)})
	}
	counts := map[string]*OpCount{}
	g.Walk(func(h *ir.Graph) {
		for n := range h.Nodes() {
			mi.Nodes++
			c := counts[n.OpName()]
			if c == nil {
				c = &OpCount{Op: n.OpName(), Known: n.Op != ops.Unknown}
				counts[c.Op] = c
			}
			c.Count++
		}
	})
	for _, c := range counts {
		mi.Ops = append(mi.Ops, *c)
	}
	sortCounts(mi.Ops)
	mi.PytreeTypes = pytreeTypes(g.InSpec, g.OutSpec)
	return mi
}

// sortCounts puts the most frequent first.
func sortCounts(cs []OpCount) {
	slices.SortFunc(cs, func(a, b OpCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Op, b.Op))
	})
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// leafPaths names the user's inputs by their way from the arguments of forward; nil where the spec does not fit them.
func leafPaths(g *ir.Graph) []string {
	spec, err := pytree.Parse(g.InSpec)
	if err != nil || spec.Leaves() != len(g.UserInputs()) {
		return nil
	}
	return spec.Paths(g.InputNames)
}

func pytreeTypes(specs ...string) []string {
	var names []string
	for _, text := range specs {
		s, err := pytree.Parse(text)
		if err != nil {
			continue
		}
		s.Names(func(n string) {
			// Containers of Python itself are called builtins or collections; strings in contexts are mostly keys.
			if strings.ContainsAny(n, ".:") && !strings.HasPrefix(n, "builtins.") && !slices.Contains(names, n) {
				names = append(names, n)
			}
		})
	}
	slices.Sort(names)
	return names
}

func valueInfo(v *ir.Value) ValueInfo {
	t := v.Type
	i := ValueInfo{Name: v.Name, Kind: t.Kind.String()}
	if t.IsTensor() {
		i.DType, i.Shape, i.Layout = t.DType.Torch(), exprs(t.Shape), Layout(t)
	} else if t.Known {
		i.Shape = []string{t.Sym.String()}
	}
	return i
}

// argText is a scalar argument for people.
func argText(a ir.Arg) string {
	if e, ok := a.Expr(); ok {
		return e.String()
	}
	if f, ok := a.Float(); ok {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	if b, ok := a.Bool(); ok {
		return strconv.FormatBool(b)
	}
	if s, ok := a.Str(); ok {
		return strconv.Quote(s)
	}
	if d, ok := a.DType(); ok {
		return d.Torch()
	}
	if a.IsNone() {
		return "None"
	}
	return "?"
}

func exprs(es []sym.Expr) []string {
	out := make([]string, len(es))
	for i, e := range es {
		out[i] = e.String()
	}
	return out
}

// Layout names how a tensor of type t lies in memory: contiguous, channels-last, the dimensions from the outermost to
// the innermost ("dims 1,0"), or its strides where it is not dense.
func Layout(t ir.Type) string {
	order, dense := t.DimOrder()
	switch {
	case t.Contiguous():
		return "contiguous"
	case !dense:
		return "strides " + strings.Join(exprs(t.Strides), ",")
	case slices.Equal(order, []int{0, 2, 3, 1}), slices.Equal(order, []int{0, 2, 3, 4, 1}):
		return "channels-last"
	}
	return "dims " + joinInts(order, ",")
}

// mutations finds what the program writes to: the archive's signature does not tell.
func mutations(g *ir.Graph) []MutationInfo {
	if g.Stage == ops.StageAten {
		if h := functional(g); h != nil {
			g = h
		}
	}
	var ms []MutationInfo
	for _, o := range g.Outputs {
		switch o.Kind {
		case ir.OutputBufferMutation:
			ms = append(ms, MutationInfo{"buffer", o.Target.Target})
		case ir.OutputInputMutation:
			ms = append(ms, MutationInfo{"input", o.Target.Value.Name})
		}
	}
	return ms
}

// functional is a copy of g without in-place operators; nil where it cannot be had.
func functional(g *ir.Graph) *ir.Graph {
	p, err := passes.Parse("functionalize")
	if err != nil {
		return nil
	}
	h, err := clone(g)
	if err != nil || p.Run(&passes.Context{}, h) != nil {
		return nil
	}
	return h
}

// WriteText writes the description for people.
func (i *ModelInfo) WriteText(out io.Writer) error {
	w := &printer{w: tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)}
	w.line("%s\t%s, %s", i.File, formatName(i.Format), sizeText(i.Bytes))
	for _, m := range i.Methods {
		w.line("\nmethod %s\t%d nodes, stage %s", m.Name, m.Nodes, m.Stage)
		for _, s := range m.Symbols {
			hint := ""
			if s.Hint != nil {
				hint = fmt.Sprintf("%d at export", *s.Hint)
			}
			w.line("  size %s\t%s\t%s", s.Name, s.Range, hint)
		}
		for k, v := range m.Inputs {
			w.line("  input %d\t%s\t%s\t%s\t%s", k, v.Name, v.typeText(), v.Layout, v.Path)
		}
		for k, v := range m.Outputs {
			w.line("  output %d\t%s\t%s\t%s", k, v.Name, v.typeText(), v.Layout)
		}
		for _, mu := range m.Mutations {
			w.line("  writes to\t%s\t%s", mu.Kind, mu.Target)
		}
		for _, t := range m.PytreeTypes {
			w.line("  pytree type\t%s", t)
		}
		for _, c := range m.Ops {
			unknown := ""
			if !c.Known {
				unknown = "unknown to lathe"
			}
			w.line("  %d\t%s\t%s", c.Count, c.Op, unknown)
		}
	}
	if len(i.Weights) > 0 {
		w.line("\nweights\t%d, %s", len(i.Weights), sizeText(i.WeightBytes))
	}
	for _, x := range i.Weights {
		var more []string
		if x.SharedWith != "" {
			more = append(more, "shares "+x.SharedWith)
		}
		if x.Strides != nil {
			more = append(more, "strides "+joinInts(x.Strides, ","))
		}
		if x.Offset != 0 {
			more = append(more, fmt.Sprintf("offset %d", x.Offset))
		}
		w.line("  %s\t%s\t%s[%s]\t%s\t%s", x.Kind, x.Name, x.DType, joinInts(x.Sizes, ", "), sizeText(x.Bytes), strings.Join(more, ", "))
	}
	for _, n := range i.Notes {
		w.line("note: %s", n)
	}
	return w.close()
}

func (v ValueInfo) typeText() string {
	s := v.Kind
	if v.Kind == "tensor" {
		s = v.DType + "[" + strings.Join(v.Shape, ", ") + "]"
	} else if len(v.Shape) == 1 {
		s += " " + v.Shape[0]
	}
	if v.Fixed != "" {
		s += " = " + v.Fixed
	}
	return s
}

func joinInts[T ~int | ~int32 | ~int64 | ~uint8](ks []T, sep string) string {
	parts := make([]string, len(ks))
	for i, k := range ks {
		parts[i] = strconv.FormatInt(int64(k), 10)
	}
	return strings.Join(parts, sep)
}

func formatName(f Format) string {
	switch f {
	case FormatPT2:
		return "torch.export archive"
	case FormatIR:
		return "IR text"
	case FormatPTE:
		return "ExecuTorch program"
	}
	return "ExecuTorch data"
}

// sizeText is a number of bytes for people.
func sizeText(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 10<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}

// printer collects lines of cells and keeps the first error.
type printer struct {
	w   *tabwriter.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = io.WriteString(p.w, strings.TrimRight(fmt.Sprintf(format, args...), "\t ")+"\n")
	}
}

func (p *printer) close() error {
	if p.err != nil {
		return p.err
	}
	return p.w.Flush()
}
