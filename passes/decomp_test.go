package passes_test

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lathe-ml/lathe/golden"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/infer"
	"github.com/lathe-ml/lathe/ir/text"
	"github.com/lathe-ml/lathe/ir/verify"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/passes"
)

// sample is a line of testdata/decompositions.txt: inputs, a bar, a node.
type sample struct {
	line   int
	src    string
	g      *ir.Graph
	op     ops.ID
	bounds map[string][2]float64
	tol    float64
}

// readSample makes a graph of one node whose result types the shape rules give. used are the results that are returned.
func readSample(line int, src string) (*sample, error) {
	s := &sample{line: line, src: src, bounds: map[string][2]float64{}, tol: 2e-5}
	if before, after, ok := strings.Cut(src, " tol "); ok {
		f, err := strconv.ParseFloat(strings.TrimSpace(after), 64)
		if err != nil {
			return nil, err
		}
		src, s.tol = before, f
	}
	ins, expr, ok := strings.Cut(src, "|")
	if !ok {
		return nil, fmt.Errorf("no bar")
	}
	used := -1
	if u, e, ok := strings.Cut(expr, " = "); ok {
		k, err := strconv.Atoi(strings.TrimSpace(u))
		if err != nil {
			return nil, err
		}
		used, expr = k, e
	}
	var params []string
	for _, in := range strings.Split(ins, ";") {
		in = strings.TrimSpace(in)
		if in == "" {
			continue
		}
		decl, bounds, ok := strings.Cut(in, " in ")
		if ok {
			name, _, _ := strings.Cut(decl, ":")
			var lo, hi float64
			if _, err := fmt.Sscan(bounds, &lo, &hi); err != nil {
				return nil, err
			}
			s.bounds[name] = [2]float64{lo, hi}
		}
		params = append(params, "%"+decl+" user")
	}
	const head = "sym s0 in [1, 100] hint 3\n"
	g, err := text.Parse(head+"graph @f("+strings.Join(params, ", ")+") -> () {\n"+expr+"\n}\n", text.Options{})
	if err != nil {
		return nil, err
	}
	n := g.First()
	if n.IsReturn() {
		return nil, fmt.Errorf("no node")
	}
	types, err := infer.Types(g, n.Op, n.Args())
	if err != nil {
		return nil, err
	}
	g.Stage = ops.StageEdge
	m := g.NewNode(g.Ret(), n.Op, slices.Clone(n.Args()), types, nil)
	g.Erase(n)
	var outs []ir.Output
	var args []ir.Arg
	for i, o := range m.Outs {
		if (used < 0 || i < used) && o.Type.IsTensor() {
			outs, args = append(outs, ir.Output{}), append(args, ir.RefAny(o))
		}
	}
	g.SetOutputs(outs, args)
	s.g, s.op = g, m.Op
	return s, nil
}

func readSamples(t *testing.T) []*sample {
	t.Helper()
	f, err := os.Open("testdata/decompositions.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []*sample
	sc := bufio.NewScanner(f)
	for line := 1; sc.Scan(); line++ {
		src := strings.TrimSpace(sc.Text())
		if src == "" || src[0] == '#' {
			continue
		}
		s, err := readSample(line, src)
		if err != nil {
			t.Errorf("line %d: %s: %v", line, src, err)
			continue
		}
		all = append(all, s)
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// Every sample is taken apart as far as it goes, must come down to kernels, and gives what the operator gives.
func TestDecompositions(t *testing.T) {
	for _, s := range readSamples(t) {
		t.Run(strconv.Itoa(s.line)+"_"+s.op.String(), func(t *testing.T) {
			t.Parallel()
			before, err := text.Parse(text.String(s.g), text.Options{})
			if err != nil {
				t.Fatal(err)
			}
			declined := s.g.First()
			legal := func(n *ir.Node) *ir.Diag {
				if n == declined {
					return n.Diag("declined", "under test", "")
				}
				return passes.TableLegal(n)
			}
			pipe := passes.Pipeline{passes.Decompose, passes.DCE}
			if err := pipe.Run(&passes.Context{Legal: legal, Hooks: []passes.Hook{passes.VerifyHook()}}, s.g); err != nil {
				t.Fatalf("%s: %v", s.src, err)
			}
			if ds := verify.Graph(s.g); len(ds) > 0 {
				t.Fatalf("%s: %v", s.src, ds)
			}
			for n := range s.g.Nodes() {
				if n == declined {
					t.Fatalf("%s is not taken apart:\n%s", s.src, text.String(s.g))
				}
				if n.Info().Kernel == "" && !free(n) {
					t.Errorf("%s leaves %s, for which there is no kernel", s.src, n.OpName())
				}
			}
			err = golden.Compare(before, s.g, golden.Evaluation{RTol: s.tol, ATol: s.tol, Bounds: s.bounds})
			if err != nil {
				t.Errorf("%s: %v\n%s", s.src, err, text.String(s.g))
			}
		})
	}
}

// free tells operators that the lowering serves without a kernel.
func free(n *ir.Node) bool {
	switch n.Op {
	case ops.HigherOrderScanDefault, ops.AtenViewDefault, ops.AtenPermuteDefault, ops.AtenExpandDefault, ops.AtenSplitWithSizesDefault, ops.AtenViewAsRealDefault:
		return true
	}
	return false
}

// Every operator that has a decomposition has a sample of it, but for those that draw random numbers or are given away whole.
func TestEveryDecompositionHasASample(t *testing.T) {
	have := map[ops.ID]bool{}
	for _, s := range readSamples(t) {
		have[s.op] = true
	}
	for _, id := range ops.All() {
		info := id.Info()
		if !passes.HasDecomp(id) || have[id] || info.Random || info.SameAs != ops.Unknown || unsampled[id.String()] != "" {
			continue
		}
		t.Errorf("%s has a decomposition and no sample", id)
	}
}

// unsampled are operators that have no sample, and why.
var unsampled = map[string]string{
	"aten._to_cpu.default":                                          "a list of tensors as they are",
	"aten._autocast_to_full_precision.default":                      "depends on a mode of the exporting process",
	"aten._autocast_to_reduced_precision.default":                   "depends on a mode of the exporting process",
	"aten._scaled_dot_product_fused_attention_overrideable.default": "the interpreter does not have it",
	"aten._scaled_mm.default":                                       "float8 has no kernels",
	"aten.argwhere.default":                                         "its size depends on data",
	"aten.repeat_interleave.self_Tensor":                            "its size depends on data",
	"aten.complex.default":                                          "complex numbers have no kernels",
	"aten.imag.default":                                             "complex numbers have no kernels",
	"aten.polar.default":                                            "complex numbers have no kernels",
	"quantized_decomposed.choose_qparams_per_token.default":         "PyTorch's types for it differ from what it computes",
	"quantized_decomposed.mixed_mm.default":                         "the kernel scales rows, PyTorch has no definition",
	"higher_order.associative_scan.default":                         "takes a graph: a golden case of decompose has it",
}
