// Command casecheck compiles the handed cases, twice with the same result, runs them in the stock runtime and counts what
// came out right, a line a backend. It is `make cases`.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/lathe-ml/lathe"
	"github.com/lathe-ml/lathe/internal/etrt"
	"github.com/lathe-ml/lathe/internal/mlxrt"
	"github.com/lathe-ml/lathe/internal/shuffle"
	"github.com/lathe-ml/lathe/interp"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/partition"
	"github.com/lathe-ml/lathe/tools/oracle/cases"
	"github.com/lathe-ml/lathe/tools/oracle/judge"
)

type config struct {
	archives, root, only, tag string
	// official is a folder with official MLX programs of cases, beyond those that lie with the cases.
	official string
	// known are failures that are put up with, by "backend case", with their reasons.
	known            map[string]string
	backends         []string
	verbose, figures bool
	jobs             int
}

func main() {
	var c config
	var backends, known string
	flag.StringVar(&c.archives, "archives", os.Getenv("LATHE_CASE_ARCHIVES"), "folder with index.tsv and unpack")
	flag.StringVar(&backends, "backends", strings.Join(append([]string{reference}, lathe.Backends()...), ","), "backends to check, and the reference engine")
	flag.StringVar(&c.only, "only", "", "cases whose name begins so")
	flag.StringVar(&c.tag, "tag", "", "cases with this tag")
	flag.BoolVar(&c.verbose, "v", false, "a line for every case, not only for those that are not right")
	flag.BoolVar(&c.figures, "figures", false, "compare planned memory and instructions with the recorded official ones")
	flag.StringVar(&c.official, "official", "", "folder with MLX programs that the official pipeline made, called as the cases with + for /, to compare figures with")
	flag.IntVar(&c.jobs, "j", runtime.NumCPU(), "cases at a time")
	flag.StringVar(&known, "known", filepath.Join("tools", "casecheck", "known.txt"), "failures that are put up with: backend, case, reason; a line each")
	flag.Parse()
	if err := c.readKnown(known); err != nil {
		fmt.Fprintln(os.Stderr, "casecheck:", err)
		os.Exit(2)
	}
	c.backends = strings.Split(backends, ",")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, c); err != nil {
		fmt.Fprintln(os.Stderr, "casecheck:", err)
		os.Exit(1)
	}
}

func (c *config) readKnown(path string) error {
	c.known = map[string]string{}
	if path == "" {
		return nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for i, l := range strings.Split(string(b), "\n") {
		if l = strings.TrimSpace(l); l == "" || l[0] == '#' {
			continue
		}
		f := strings.SplitN(l, " ", 3)
		if len(f) < 3 {
			return fmt.Errorf("%s:%d: want backend, case and reason", path, i+1)
		}
		c.known[f[0]+" "+f[1]] = f[2]
	}
	return nil
}

func run(ctx context.Context, c config) error {
	root, err := cases.Dir(c.archives)
	if err != nil {
		return err
	}
	c.root = root
	names, err := selected(c)
	if err != nil {
		return err
	}
	rt, err := open(c)
	if err != nil {
		return err
	}
	// The programs must not depend on how the work goes.
	defer shuffle.Start(1)()
	tmp, err := os.MkdirTemp("", "casecheck")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // nothing to be done about it
	bad := 0
	for _, backend := range c.backends {
		results := make([]result, len(names))
		var wg sync.WaitGroup
		next := make(chan int)
		for w := range c.jobs {
			wg.Go(func() {
				out := filepath.Join(tmp, fmt.Sprintf("%d.pte", w))
				for i := range next {
					results[i] = check(ctx, rt, c, names[i], backend, out)
				}
			})
		}
		for i := range names {
			if ctx.Err() != nil {
				break
			}
			next <- i
		}
		close(next)
		wg.Wait()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		counts := map[string]int{}
		for i, r := range results {
			counts[r.class]++
			why, known := c.known[backend+" "+names[i]]
			switch {
			case known && r.good():
				bad++
				r.text += "; it is listed as a known failure: take it off the list"
			case known:
				r.text = ", as known: " + why
			case !r.good():
				bad++
			}
			if c.verbose || known || !r.good() || c.figures && r.worse {
				fmt.Printf("%s %s: %s%s\n", backend, names[i], r.class, r.text)
			}
		}
		line := fmt.Sprintf("%s: %d cases", backend, len(names))
		for _, k := range classes {
			if counts[k] > 0 {
				line += fmt.Sprintf(", %d %s", counts[k], k)
			}
		}
		fmt.Println(line)
	}
	if bad > 0 {
		return fmt.Errorf("%d are not as they should be", bad)
	}
	return nil
}

// runtimes are what runs the programs.
type runtimes struct {
	et  *etrt.Runtime
	mlx *mlxrt.Runtime
}

func open(c config) (rt runtimes, err error) {
	if rt.et, err = etrt.Open(); err == nil && slices.Contains(c.backends, "mlx") {
		if rt.mlx, err = mlxrt.Open(); err == nil {
			rt.mlx.Poison = true
		}
	}
	return rt, err
}

func (rt runtimes) load(ctx context.Context, backend, path string) (cases.Program, error) {
	if backend == "mlx" {
		return rt.mlx.Load(ctx, path)
	}
	return rt.et.Load(ctx, path, etrt.WithPoison())
}

// The classes of outcomes, in the order of the summary.
const (
	right     = "right"
	refusedOK = "refused as asked"
	compiled  = "compiled only"
	refused   = "refused"
	accepted  = "not refused"
	wrong     = "wrong"
	broken    = "broken"
	skipped   = "not for it"
)

var classes = []string{right, refusedOK, compiled, refused, accepted, wrong, broken, skipped}

type result struct {
	class, text string
	// worse tells that a figure is above the official one.
	worse bool
}

func (r result) good() bool {
	return r.class == right || r.class == refusedOK || r.class == compiled || r.class == skipped
}

func selected(c config) ([]string, error) {
	var names []string
	if c.tag == "" {
		all, err := cases.Find(c.root)
		if err != nil {
			return nil, err
		}
		names = all
	} else {
		es, err := cases.Index(filepath.Join(c.archives, "index.tsv"))
		if err != nil {
			return nil, err
		}
		for _, e := range es {
			if e.HasTag(c.tag) {
				names = append(names, e.Name)
			}
		}
	}
	return slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, c.only) }), nil
}

// check compiles and runs one case.
func check(ctx context.Context, rt runtimes, c config, name, backend, out string) (r result) {
	defer func() {
		if p := recover(); p != nil {
			r = result{class: broken, text: fmt.Sprintf(": panic: %v", p)}
		}
	}()
	fail := func(class string, err error) result {
		return result{class: class, text: ": " + strings.ReplaceAll(err.Error(), "\n", "\n    ")}
	}
	cs, err := cases.Load(filepath.Join(c.root, name))
	if err != nil {
		return fail(broken, err)
	}
	defer cs.Close() //nolint:errcheck // only read
	if backend == reference {
		return interpret(cs)
	}
	expect := cs.Expect(backend)
	os.Remove(out) //nolint:errcheck // may not be there
	o := lathe.Options{Inputs: []lathe.Input{{Path: cs.Model()}}, Output: out, Backend: backend}
	rep, err := lathe.Compile(ctx, o)
	if serr := same(ctx, o, err); serr != nil {
		return fail(broken, serr)
	}
	if err != nil {
		if _, ok := ir.AsDiags(err); !ok {
			return fail(broken, err)
		}
		if _, serr := os.Stat(out); serr == nil {
			return fail(broken, fmt.Errorf("refused, but left a file: %w", err))
		}
		switch {
		case strings.HasPrefix(expect, "refuse: ") && strings.Contains(err.Error(), strings.TrimPrefix(expect, "refuse: ")),
			strings.HasSuffix(expect, "or refuse"), cs.Hostile:
			return result{class: refusedOK}
		}
		return fail(refused, err)
	}
	if strings.HasPrefix(expect, "refuse") || cs.Hostile {
		return result{class: accepted}
	}
	if strings.HasPrefix(expect, "compiles") {
		return result{class: compiled}
	}
	if err := cs.CheckWith(func() (cases.Program, error) { return rt.load(ctx, backend, out) }); err != nil {
		return fail(wrong, err)
	}
	r = result{class: right}
	if c.figures {
		r.text, r.worse = figures(cs.Dir, backend, rep)
		if backend == "mlx" {
			text, worse, err := mlxFigures(cs.Dir, out, c.officialPrograms(name))
			if err != nil {
				return fail(broken, err)
			}
			r.text, r.worse = r.text+text, r.worse || worse
		}
	}
	return r
}

// same compiles once more and tells whether that gives the same program, or the same refusal: workers go as shuffle has
// them, and maps are never in the same order twice.
func same(ctx context.Context, o lathe.Options, first error) error {
	was := o.Output
	o.Output += ".again"
	defer os.Remove(o.Output) //nolint:errcheck // not there after a refusal
	_, err := lathe.Compile(ctx, o)
	if first != nil || err != nil {
		if first == nil || err == nil || first.Error() != err.Error() {
			return fmt.Errorf("a second compile says something else: %v, at first: %v", err, first)
		}
		return nil
	}
	a, err := os.ReadFile(was)
	if err != nil {
		return err
	}
	b, err := os.ReadFile(o.Output)
	if err != nil {
		return err
	}
	if !bytes.Equal(a, b) {
		return fmt.Errorf("a second compile gives another program, of %d bytes instead of %d", len(b), len(a))
	}
	return nil
}

// reference is the name of the reference engine among the backends.
const reference = "reference"

// interpret runs one case in the reference engine, straight from its archive.
func interpret(cs *cases.Case) result {
	if cs.Hostile || len(cs.Calls) == 0 {
		return result{class: skipped}
	}
	m, err := lathe.Open(cs.Model())
	if err != nil {
		return result{class: refused, text: ": " + err.Error()}
	}
	defer m.Close()
	g := m.Program.Method(cs.Method)
	if g == nil {
		return result{class: broken, text: fmt.Sprintf(": no method %q", cs.Method)}
	}
	if err := judge.Check(cs, g, interp.Options{}); err != nil {
		return result{class: wrong, text: ": " + err.Error()}
	}
	return result{class: right}
}

// officialFigures is what is recorded of the official pipeline for a case and a backend: op counts as the partitioner saw
// them where the lowering was followed, calls of delegates and kernels where the program was.
type officialFigures struct {
	Planned      []int64        `json:"planned_bytes"`
	Instructions int            `json:"instructions"`
	Called       map[string]int `json:"left"`
	OK           bool           `json:"ok"`
	Delegates    int            `json:"delegates"`
	Delegated    int            `json:"n_delegated_ops"`
	Left         map[string]int `json:"non_delegated"`
	Ran          bool           `json:"run_ok"`
	Calls        int            `json:"delegate_calls"`
	Kernels      map[string]int `json:"kernel_calls"`
	Whole        bool           `json:"fully_delegated"`
	Nodes        map[string]int `json:"node_counts"`
}

// figures compares with what is recorded of the official pipeline.
func figures(dir, backend string, rep *lathe.Report) (text string, worse bool) {
	var all map[string]officialFigures
	b, err := os.ReadFile(filepath.Join(dir, "official.json"))
	if err != nil || json.Unmarshal(b, &all) != nil {
		return "", false
	}
	o, ok := all[backend]
	if !ok {
		return "", false
	}
	var planned, exported, officialPlanned int64
	instructions := 0
	for _, m := range rep.Methods {
		planned += m.Planned
		exported += m.Exported
		instructions += m.Instructions
	}
	for _, n := range o.Planned {
		officialPlanned += n
	}
	if officialPlanned > 0 {
		text += fmt.Sprintf(" planned %d of %d,", planned, officialPlanned)
		// Where sizes have no bound, the official plan holds what was exported and nothing larger.
		if exported < planned {
			text += fmt.Sprintf(" %d for the sizes at export,", exported)
		}
		worse = planned > officialPlanned
	}
	if o.Instructions > 0 {
		text += fmt.Sprintf(" instructions %d of %d,", instructions, o.Instructions)
		worse = worse || instructions > o.Instructions
	}
	if len(o.Called) > 0 {
		ours, theirs := 0, copies(o.Called)
		for _, m := range rep.Methods {
			ours += copies(m.Kernels)
		}
		text += fmt.Sprintf(" copies %d of %d,", ours, theirs)
		worse = worse || ours > theirs
	}
	regions, left := o.Delegates, o.Left
	if o.Ran {
		regions, left = o.Calls, o.Kernels
	}
	if backend == "portable" || !o.OK && !o.Ran {
		return strings.TrimSuffix(text, ","), worse
	}
	delegated := 0
	for _, r := range rep.Regions {
		for _, n := range r.Ops {
			delegated += n
		}
	}
	text += fmt.Sprintf(" regions %d of %d, ops delegated %d of %d", len(rep.Regions), regions, delegated, o.Delegated)
	lost := leftMore(rep.Outside, left)
	if len(lost) > 0 {
		text += ", left outside beyond the official ones: " + strings.Join(lost, ", ")
	}
	return text, worse || len(rep.Regions) > regions || len(lost) > 0
}

// copies counts the calls of kernels that only move elements.
func copies(called map[string]int) int {
	n := 0
	for name, k := range called {
		if strings.Contains(name, "_copy") || strings.Contains(name, "_clone") {
			n += k
		}
	}
	return n
}

// mlxFigures compares nodes and slots of an MLX program with those of the official one, or with the nodes that are recorded
// of it.
func mlxFigures(dir, program, official string) (text string, worse bool, err error) {
	ours, err := mlxrt.Measure(program)
	if err != nil {
		return "", false, err
	}
	if _, err := os.Stat(official); err == nil {
		theirs, err := mlxrt.Measure(official)
		if err != nil {
			return "", false, err
		}
		return fmt.Sprintf(", nodes %d of %d, temporaries %d of %d, values %d of %d", ours.Nodes, theirs.Nodes, ours.Temps, theirs.Temps, ours.Values, theirs.Values),
			ours.Nodes > theirs.Nodes || ours.Temps > theirs.Temps, nil
	}
	var all map[string]officialFigures
	b, err := os.ReadFile(filepath.Join(dir, "official.json"))
	if err != nil || json.Unmarshal(b, &all) != nil || !all["mlx"].Whole {
		return "", false, nil //nolint:nilerr // most cases have none
	}
	nodes := 0
	for _, n := range all["mlx"].Nodes {
		nodes += n
	}
	return fmt.Sprintf(", nodes %d of %d", ours.Nodes, nodes), ours.Nodes > nodes, nil
}

// officialPrograms is where the official MLX program of a case may be.
func (c config) officialPrograms(name string) string {
	if c.official != "" {
		return filepath.Join(c.official, strings.ReplaceAll(name, "/", "+")+".pte")
	}
	return filepath.Join(c.root, name, "official_mlx.pte")
}

// sameOperator are operators that the two lowerings name differently.
var sameOperator = map[string]string{
	"to_dim_order": "to", "clone_dim_order": "clone", "contiguous": "clone", "local_scalar_dense": "item", "narrow": "slice",
	"addmm": "linear", "mm": "linear", "scalar_tensor": "full", "full_like": "full", "zeros": "full", "ones": "full", "empty": "full",
	"reshape": "view", "unsqueeze": "view", "squeeze": "view", "transpose": "permute", "t": "permute", "split_with_sizes": "split",
}

// leftMore lists the operators of which more stay outside of the regions than the official lowering left. Both sides are
// counted by the operators' names without overloads: what the official lowering delegates and this one does not is in
// the list, at whatever level the two divide composite operators.
func leftMore(outside []partition.Outside, official map[string]int) []string {
	base := func(name string) string {
		if i := strings.LastIndex(name, "::"); i >= 0 {
			name = name[i+2:]
		}
		name = strings.TrimPrefix(name, "aten.")
		name, _, _ = strings.Cut(name, ".")
		name = strings.TrimPrefix(strings.TrimSuffix(strings.TrimSuffix(name, "_copy"), "_"), "_")
		if same, ok := sameOperator[name]; ok {
			return same
		}
		return name
	}
	theirs := map[string]int{}
	for name, n := range official {
		theirs[base(name)] += n
	}
	ours := map[string]int{}
	for _, o := range outside {
		if o.Node.Info().Schema.Base == "" {
			ours[base(o.Node.OpName())]++
			continue
		}
		ours[base(o.Node.Info().Schema.Base)]++
	}
	var lost []string
	for _, name := range slices.Sorted(maps.Keys(ours)) {
		if n := ours[name]; n > theirs[name] {
			lost = append(lost, fmt.Sprintf("%s %d of %d", name, n, theirs[name]))
		}
	}
	return lost
}
