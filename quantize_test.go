package lathe

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-ml/lathe/interp"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/passes"
)

// quantCase is a model of one element type and what torchao made of it, recorded by tools/fixtures/quantize.py.
type quantCase struct {
	name, path string
	tensors    Arrays
	specs      []string
	rtol, atol float64
}

func quantCases(t *testing.T) []*quantCase {
	t.Helper()
	var cs []*quantCase
	for _, c := range []*quantCase{{name: "f32", rtol: 1e-5, atol: 1e-5}, {name: "bf16", rtol: 2e-2, atol: 2e-2}, {name: "f16", rtol: 2e-3, atol: 2e-3}} {
		c.path = filepath.Join("testdata", "quantize", c.name+".pt2")
		var err error
		if c.tensors, err = ReadArrays(filepath.Join("testdata", "quantize", c.name+".safetensors")); err != nil {
			t.Fatal(err)
		}
		specs := map[string]bool{}
		for n := range c.tensors {
			if spec, _, ok := strings.Cut(n, "/"); ok {
				specs[spec] = true
			}
		}
		if c.specs = slices.Sorted(maps.Keys(specs)); len(c.specs) < 5 {
			t.Fatalf("%s: schemes %v", c.name, c.specs)
		}
		cs = append(cs, c)
	}
	return cs
}

func (c *quantCase) tensor(t *testing.T, name string) *interp.Tensor {
	t.Helper()
	v := c.tensors[name]
	if v == nil {
		t.Fatalf("nothing recorded for %s", name)
	}
	return v
}

func parseQuantization(t *testing.T, spec string) passes.Quantization {
	t.Helper()
	q, err := passes.ParseQuantization(spec)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// Integers and scales are those of torchao, bit for bit, those of a tied weight are there once, and the program gives what
// torchao's gives in eager.
func TestQuantizeAsTorchao(t *testing.T) {
	for _, c := range quantCases(t) {
		for _, spec := range c.specs {
			t.Run(c.name+"/"+spec, func(t *testing.T) {
				m, err := Transform(t.Context(), Options{
					Inputs: []Input{{Path: c.path}}, Backend: Portable, Quantize: parseQuantization(t, spec), Pipeline: "inline-wrappers,functionalize,remove-noops,dce",
				})
				if err != nil {
					t.Fatal(err)
				}
				defer m.Close()
				g := m.Methods[0]
				made, wanted := map[string]bool{}, map[string]bool{}
				for _, in := range g.Inputs {
					if in.Kind == ir.InputConst {
						p, err := in.Data.Compact()
						if err != nil {
							t.Fatal(err)
						}
						if int64(len(p)) != in.Data.Storage.Size() {
							t.Errorf("%s: %d bytes of %d", in.Target, len(p), in.Data.Storage.Size())
						}
						made[in.Data.DType.String()+string(p)] = true
					}
				}
				for name, w := range c.tensors {
					if !strings.HasPrefix(name, spec+"/") || !strings.HasSuffix(name, ".qdata") && !strings.HasSuffix(name, ".scale") {
						continue
					}
					key := w.DType.String() + string(w.Bytes())
					if !made[key] {
						t.Errorf("%s is not among the program's constants", name)
					}
					wanted[key] = true
				}
				consts := 0
				for _, in := range g.Inputs {
					if in.Kind == ir.InputConst {
						consts++
					}
				}
				if consts != len(wanted) {
					t.Errorf("%d constants, torchao has %d different ones", consts, len(wanted))
				}
				outs, err := NewReference(g, 0).Run(t.Context(), []Value{c.tensor(t, "ids")})
				if err != nil {
					t.Fatal(err)
				}
				if err := Compare(outs, []Value{c.tensor(t, spec+"/out")}, c.rtol, c.atol); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// Every step of a compile gives the quantized result, as does the stock runtime.
func TestVerifyQuantized(t *testing.T) {
	for _, c := range quantCases(t) {
		for _, backend := range Backends() {
			for _, spec := range c.specs {
				o := VerifyOptions{
					Compile: Options{Inputs: []Input{{Path: c.path}}, Backend: backend, Quantize: parseQuantization(t, spec)},
					Calls:   [][]Value{{c.tensor(t, "ids")}}, Want: [][]Value{{c.tensor(t, "eager")}}, RTol: c.rtol, ATol: c.atol, Judge: openJudge(t, backend),
				}
				steps, err := Verify(t.Context(), o)
				if err != nil {
					t.Errorf("%s %s %s: %v", c.name, backend, spec, err)
					continue
				}
				i := slices.IndexFunc(steps, func(s Step) bool { return s.Name == "pass quantize" })
				if i < 0 || steps[i].Lossy == "" {
					t.Errorf("%s %s %s: steps %v", c.name, backend, spec, steps)
				}
			}
		}
	}
}

// What cannot be quantized is named, and a request that nothing fulfils is refused.
func TestQuantizeRefuses(t *testing.T) {
	c := quantCases(t)[0]
	out := filepath.Join(t.TempDir(), "x.pte")
	o := Options{Inputs: []Input{{Path: c.path}}, Backend: Portable, Output: out, Quantize: parseQuantization(t, "linear=4w:64")}
	rep, err := Compile(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(rep.Notes, "\n")
	for _, want := range []string{"quantized to 4w:64: 2 of the linear layers", "not quantized: 1 of the linear layers, as rows of 32 are no multiple of 64: down.weight"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes lack %q:\n%s", want, notes)
		}
	}
	o.Quantize = parseQuantization(t, "linear=4w:48")
	o.Output = filepath.Join(t.TempDir(), "y.pte")
	_, err = Compile(t.Context(), o)
	ds, ok := ir.AsDiags(err)
	if !ok || ds[0].Code != "quantize" || !strings.Contains(err.Error(), "linear=4w:48") {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(o.Output); err == nil {
		t.Error("a file was written")
	}
	for _, spec := range []string{"linear", "linear=", "linear=3w", "conv=4w", "linear=4w:1", "linear=4w:x", "embedding=8da8w", "linear=4w,linear=8w", "linear=4w:-32"} {
		if _, err := passes.ParseQuantization(spec); err == nil {
			t.Errorf("%q is taken", spec)
		}
	}
}

// The integers of a tied weight are in the file once, and the numbers that they came from are not.
func TestQuantizedFileHoldsIntegersOnly(t *testing.T) {
	c := quantCases(t)[0]
	out := filepath.Join(t.TempDir(), "x.pte")
	// Without const-fold, which makes floats of weights as small as these again.
	o := Options{Inputs: []Input{{Path: c.path}}, Backend: Portable, Output: out, Quantize: parseQuantization(t, "linear=8w,embedding=8w"), Skip: []string{"const-fold"}}
	if _, err := Compile(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	table := c.tensor(t, "linear=4w:32,embedding=8w/embed.qdata").Bytes()
	if n := bytes.Count(raw, table); n != 1 {
		t.Errorf("the table's integers are there %d times", n)
	}
	if floats := 4 * 64 * 32; len(raw) > 3*floats {
		t.Errorf("%d bytes", len(raw))
	}
}
