// Package golden runs the cases of passes: txtar files with a graph before and after.
//
// The comment of a file says what to do, a line each:
//
//	run: functionalize,dce        the pipeline
//	target: mlx                   the backend that the pipeline is for; portable without it
//	illegal: aten.relu.default    operators that the backend declines, with a star for a prefix: aten.max_pool*.
//	                              Without a line the operator table decides
//	want: slice_scatter           text that must be in the result
//	not: add_                     text that must not
//	tol: 1e-3 1e-3                relative and absolute tolerance of the evaluation; 1e-5 and 1e-6 without it
//	input: idx in 0 4             bounds of the numbers that the input idx gets
//	size: s0 = 3                  the value of a symbol, its hint without it
//	eval: no, WHY                 the graphs are not evaluated
//
// The files are in.ir, out.ir and, where there are diagnostics, diags. Both graphs are verified, printed and parsed, and
// evaluated twice on the same inputs, state carried over: outputs, written inputs and buffers must be equal.
package golden

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/lathe-ml/lathe/interp"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ir/text"
	"github.com/lathe-ml/lathe/ir/verify"
	"github.com/lathe-ml/lathe/passes"
)

var update = flag.Bool("update", false, "rewrite out.ir and diags of the golden cases")

// Config tells a harness what the cases of a folder may use.
type Config struct {
	// Passes are known beside those of package passes.
	Passes []passes.Pass
	// Legal is the legality of cases without a line of their own; nil leaves it to the operator table.
	Legal func(n *ir.Node) *ir.Diag
}

// Run runs every *.txtar below dir as a test of its name.
func Run(t *testing.T, dir string, cfg Config) {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(path) == ".txtar" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatalf("no cases below %s", dir)
	}
	for _, f := range files {
		name, _ := filepath.Rel(dir, f)
		t.Run(strings.TrimSuffix(filepath.ToSlash(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			runFile(t, f, cfg)
		})
	}
}

// script is what the comment of a case says.
type script struct {
	run, target string
	illegal     []string
	want, not   []string
	rtol, atol  float64
	bounds      map[string][2]float64
	sizes       map[string]int64
	noEval      bool
}

func parseScript(comment string) (*script, error) {
	s := &script{target: "portable", rtol: 1e-5, atol: 1e-6, bounds: map[string][2]float64{}, sizes: map[string]int64{}}
	for _, line := range strings.Split(comment, "\n") {
		key, val, ok := strings.Cut(line, ":")
		val = strings.TrimSpace(val)
		if !ok || strings.ContainsAny(key, " \t") {
			continue // prose
		}
		bad := fmt.Errorf("cannot read %q", line)
		f := strings.Fields(val)
		switch key {
		case "run":
			s.run = val
		case "target":
			s.target = val
		case "illegal":
			s.illegal = append(s.illegal, f...)
		case "want":
			s.want = append(s.want, val)
		case "not":
			s.not = append(s.not, val)
		case "tol":
			var err1, err2 error
			if len(f) != 2 {
				return nil, bad
			}
			s.rtol, err1 = strconv.ParseFloat(f[0], 64)
			s.atol, err2 = strconv.ParseFloat(f[1], 64)
			if err1 != nil || err2 != nil {
				return nil, bad
			}
		case "input":
			if len(f) != 4 || f[1] != "in" {
				return nil, bad
			}
			lo, err1 := strconv.ParseFloat(f[2], 64)
			hi, err2 := strconv.ParseFloat(f[3], 64)
			if err1 != nil || err2 != nil {
				return nil, bad
			}
			s.bounds[f[0]] = [2]float64{lo, hi}
		case "size":
			if len(f) != 3 || f[1] != "=" {
				return nil, bad
			}
			k, err := strconv.ParseInt(f[2], 10, 64)
			if err != nil {
				return nil, bad
			}
			s.sizes[f[0]] = k
		case "eval":
			if !strings.HasPrefix(val, "no, ") {
				return nil, fmt.Errorf("%q gives no reason", line)
			}
			s.noEval = true
		default:
			return nil, fmt.Errorf("%q is no directive", key)
		}
	}
	if s.run == "" {
		return nil, fmt.Errorf("no run line")
	}
	return s, nil
}

func (s *script) legal(n *ir.Node) *ir.Diag {
	for _, pat := range s.illegal {
		prefix, star := strings.CutSuffix(pat, "*")
		if n.OpName() == pat || star && strings.HasPrefix(n.OpName(), prefix) {
			return n.Diag("declined", "the case declines it", "")
		}
	}
	return nil
}

func runFile(t *testing.T, path string, cfg Config) {
	ar, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := parseScript(string(ar.Comment))
	if err != nil {
		t.Fatal(err)
	}
	src, ok := file(ar, "in.ir")
	if !ok {
		t.Fatal("no in.ir")
	}
	g := parse(t, "in.ir", src)
	before := parse(t, "in.ir", src)
	pipe, err := passes.Parse(s.run, cfg.Passes...)
	if err != nil {
		t.Fatal(err)
	}
	ctx := &passes.Context{Target: s.target, Legal: cfg.Legal, Hooks: []passes.Hook{passes.VerifyHook()}}
	if len(s.illegal) > 0 {
		ctx.Legal = s.legal
	}
	diags := ""
	if err := pipe.Run(ctx, g); err != nil {
		ds, ok := ir.AsDiags(err)
		if !ok {
			t.Fatal(err)
		}
		diags = ds.Error() + "\n"
	}
	got := text.String(g)
	parse(t, "the result", got)
	check := func(name, got string) {
		want, _ := file(ar, name)
		if got == want {
			return
		}
		if *update {
			set(ar, name, got)
			return
		}
		t.Errorf("%s:\n%s", name, difference(want, got))
	}
	check("out.ir", got)
	check("diags", diags)
	if *update {
		if err := os.WriteFile(path, txtar.Format(ar), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// Origins name the rules, and so operators that are gone.
	body, _, _ := strings.Cut(got, "\nframe #")
	body, _, _ = strings.Cut(body, "\nloc @")
	for _, w := range s.want {
		if !strings.Contains(body, w) {
			t.Errorf("the result has no %q", w)
		}
	}
	for _, w := range s.not {
		if strings.Contains(body, w) {
			t.Errorf("the result has %q", w)
		}
	}
	if s.noEval || diags != "" {
		return
	}
	if err := Compare(before, g, s.options()); err != nil {
		t.Error(err)
	}
}

func (s *script) options() Evaluation {
	return Evaluation{RTol: s.rtol, ATol: s.atol, Bounds: s.bounds, Sizes: s.sizes}
}

func file(ar *txtar.Archive, name string) (string, bool) {
	for _, f := range ar.Files {
		if f.Name == name {
			return string(f.Data), true
		}
	}
	return "", false
}

func set(ar *txtar.Archive, name, data string) {
	for i, f := range ar.Files {
		if f.Name == name {
			if data == "" {
				ar.Files = slices.Delete(ar.Files, i, i+1)
				return
			}
			ar.Files[i].Data = []byte(data)
			return
		}
	}
	if data != "" {
		ar.Files = append(ar.Files, txtar.File{Name: name, Data: []byte(data)})
	}
}

// parse reads a graph, verifies it, and checks that its text reads back to it.
func parse(t *testing.T, what, src string) *ir.Graph {
	t.Helper()
	g, err := text.Parse(src, text.Options{})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if ds := verify.Graph(g); len(ds) > 0 {
		t.Fatalf("%s: %v", what, ds)
	}
	h, err := text.Parse(text.String(g), text.Options{})
	if err != nil {
		t.Fatalf("%s, printed and read again: %v", what, err)
	}
	if d := ir.Diff(g, h); d != "" {
		t.Fatalf("%s, printed and read again, is another graph: %s", what, d)
	}
	return g
}

// difference shows the lines where two texts part.
func difference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	i := 0
	for i < len(w) && i < len(g) && w[i] == g[i] {
		i++
	}
	j := 0
	for j < len(w)-i && j < len(g)-i && w[len(w)-1-j] == g[len(g)-1-j] {
		j++
	}
	var b strings.Builder
	fmt.Fprintf(&b, "from line %d on\n", i+1)
	for _, l := range w[i : len(w)-j] {
		b.WriteString("  - " + l + "\n")
	}
	for _, l := range g[i : len(g)-j] {
		b.WriteString("  + " + l + "\n")
	}
	return b.String()
}

// Evaluation says how graphs are evaluated.
type Evaluation struct {
	RTol, ATol float64
	// Bounds are those of the numbers in an input, by the name of its value.
	Bounds map[string][2]float64
	// Sizes are the values of symbols; those not named have their hint.
	Sizes map[string]int64
	// Seed makes other inputs.
	Seed uint64
}

// Compare evaluates two graphs of the same inputs twice, each with its own state, and gives the first difference between
// outputs, written inputs or state.
func Compare(a, b *ir.Graph, o Evaluation) error {
	run := func(g *ir.Graph) (outs, state map[string]interp.Value, err error) {
		s, err := interp.New(g, interp.Options{RandomData: true, Seed: o.Seed})
		if err != nil {
			return nil, nil, err
		}
		outs, state = map[string]interp.Value{}, map[string]interp.Value{}
		for call := range 2 {
			in, err := o.inputs(g, call)
			if err != nil {
				return nil, nil, err
			}
			res, err := s.Run(context.Background(), in)
			if err != nil {
				return nil, nil, fmt.Errorf("call %d: %w", call, err)
			}
			// What aliases state or an input is overwritten by the next call.
			keep := func(key string, v interp.Value) error {
				if t, ok := v.(*interp.Tensor); ok {
					c, err := interp.FromBytes(t.DType, t.Sizes, bytes.Clone(t.Bytes()))
					if err != nil {
						return err
					}
					v = c
				}
				outs[key] = v
				return nil
			}
			for i, v := range res {
				if err := keep(fmt.Sprintf("call %d, output %d", call, i), v); err != nil {
					return nil, nil, err
				}
			}
			for i, v := range in {
				if err := keep(fmt.Sprintf("call %d, input %d after it", call, i), v); err != nil {
					return nil, nil, err
				}
			}
		}
		for _, in := range g.Inputs {
			if t := s.State().Tensor(in.Target); t != nil && in.Kind == ir.InputBuffer {
				state[fmt.Sprintf("%s %q", in.Kind, in.Target)] = t
			}
		}
		return outs, state, nil
	}
	wantOut, wantState, err := run(a)
	if err != nil {
		return fmt.Errorf("before: %w", err)
	}
	gotOut, gotState, err := run(b)
	if err != nil {
		return fmt.Errorf("after: %w", err)
	}
	if len(gotOut) != len(wantOut) {
		return fmt.Errorf("%d outputs and inputs before, %d after", len(wantOut), len(gotOut))
	}
	for _, m := range []struct{ want, got map[string]interp.Value }{{wantOut, gotOut}, {wantState, gotState}} {
		for k, g := range m.got {
			if err := o.equal(m.want[k], g); err != nil {
				return fmt.Errorf("%s: %w", k, err)
			}
		}
	}
	return nil
}

// inputs makes the user inputs of a call.
func (o Evaluation) inputs(g *ir.Graph, call int) ([]interp.Value, error) {
	env := sym.MapEnv{}
	for _, s := range g.Syms.All() {
		if s.HasHint {
			env[s.Name] = s.Hint
		}
		if k, ok := o.Sizes[s.Name]; ok {
			env[s.Name] = k
		}
	}
	var in []interp.Value
	for i, u := range g.UserInputs() {
		t := u.Value.Type
		if u.HasFixed {
			in = append(in, interp.ConstValue(u.Fixed))
			continue
		}
		switch t.Kind {
		case ir.KindTensor:
			sizes := make([]int64, len(t.Shape))
			for d, e := range t.Shape {
				k, err := sym.Eval(e, env)
				if err != nil {
					return nil, fmt.Errorf("size %s of input %d: %w", e, i, err)
				}
				sizes[d] = k
			}
			x := interp.Random(o.Seed+uint64(call), "input "+strconv.Itoa(i), t.DType, sizes)
			if b, ok := o.Bounds[u.Value.Name]; ok {
				var err error
				if x, err = within(x, b[0], b[1]); err != nil {
					return nil, err
				}
			}
			in = append(in, x)
		case ir.KindInt:
			k := int64(3)
			if t.Known {
				var err error
				if k, err = sym.Eval(t.Sym, env); err != nil {
					return nil, fmt.Errorf("input %d: %w", i, err)
				}
			}
			in = append(in, k)
		case ir.KindFloat:
			in = append(in, 0.5)
		case ir.KindBool:
			in = append(in, true)
		case ir.KindNone:
			in = append(in, nil)
		default:
			return nil, fmt.Errorf("input %d is of kind %s", i, t.Kind)
		}
	}
	return in, nil
}

// within moves numbers into [lo, hi).
func within(x *interp.Tensor, lo, hi float64) (*interp.Tensor, error) {
	v := x.Floats()
	for i, f := range v {
		if x.DType.IsFloat() {
			v[i] = lo + (f+0.5)*(hi-lo)
		} else {
			v[i] = lo + math.Mod(f, hi-lo)
		}
	}
	return interp.FromFloats(x.DType, x.Sizes, v)
}

func (o Evaluation) equal(want, got interp.Value) error {
	w, okW := want.(*interp.Tensor)
	g, okG := got.(*interp.Tensor)
	if !okW || !okG {
		if okW != okG || want != got {
			return fmt.Errorf("%v before, %v after", want, got)
		}
		return nil
	}
	if w.DType != g.DType || !slices.Equal(w.Sizes, g.Sizes) {
		return fmt.Errorf("%s%v before, %s%v after", w.DType, w.Sizes, g.DType, g.Sizes)
	}
	if w.DType.IsComplex() {
		if !bytes.Equal(w.Bytes(), g.Bytes()) {
			return fmt.Errorf("complex numbers differ")
		}
		return nil
	}
	rtol, atol := o.RTol, o.ATol
	if !w.DType.IsFloat() {
		rtol, atol = 0, 0
	}
	x, y := w.Floats(), g.Floats()
	for i := range x {
		if x[i] == y[i] || x[i] != x[i] && y[i] != y[i] {
			continue
		}
		if !(math.Abs(x[i]-y[i]) <= atol+rtol*math.Abs(x[i])) {
			return fmt.Errorf("element %d of %s%v is %g before and %g after", i, w.DType, w.Sizes, x[i], y[i])
		}
	}
	return nil
}
