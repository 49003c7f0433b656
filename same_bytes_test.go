package lathe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/lathe-ml/lathe/internal/shuffle"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/passes"
)

// everything compiles and gives all that a user gets to see: the files and the report, or the refusal.
func everything(t *testing.T, o Options, dir string) []byte {
	t.Helper()
	o.Output = filepath.Join(dir, "out.pte")
	if o.ExternalWeights != "" {
		o.ExternalWeights = filepath.Join(dir, o.ExternalWeights)
	}
	rep, err := Compile(t.Context(), o)
	if err != nil {
		return []byte(err.Error())
	}
	all, err := json.Marshal(rep.file())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{o.Output, o.ExternalWeights} {
		if name == "" {
			continue
		}
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b...)
	}
	return all
}

// differs compiles again and again with everything shuffled that must not matter, and tells whether one result is not as
// the others are. Go shuffles the order of maps in each loop by itself.
func differs(t *testing.T, o Options, times int) bool {
	t.Helper()
	var first []byte
	for seed := range uint64(times) {
		stop := shuffle.Start(seed) // 0 is the undisturbed compile
		got := everything(t, o, t.TempDir())
		stop()
		if seed == 0 {
			first = got
		} else if !bytes.Equal(got, first) {
			return true
		}
	}
	return false
}

func TestSameBytes(t *testing.T) {
	models, err := filepath.Glob(filepath.Join("pt2", "testdata", "*.pt2"))
	if err != nil || len(models) == 0 {
		t.Fatal(err, models)
	}
	models = append(models, llama, filepath.Join("testdata", "counter", "model.pt2"), filepath.Join("testdata", "channels_last", "model.pt2"))
	for _, path := range models {
		for _, backend := range Backends() {
			t.Run(path+"/"+backend, func(t *testing.T) {
				o := Options{Inputs: []Input{{Path: path}}, Backend: backend}
				if differs(t, o, 8) {
					t.Error("the program depends on something else than the input")
				}
				o.ExternalWeights, o.FuseKernels = "out.ptd", backend == "mlx"
				if differs(t, o, 4) {
					t.Error("the program with a file of weights depends on something else than the input")
				}
			})
		}
	}
}

// What TestSameBytes is to find: something planted that depends on the order of a map, and on the order of workers.
func TestSameBytesCanFail(t *testing.T) {
	plants := map[string]func(g *ir.Graph){
		"order of a map": func(g *ir.Graph) {
			seen := map[*ir.Node]int{}
			for n := range g.Nodes() {
				seen[n] = len(seen)
			}
			for _, i := range seen {
				g.Name = fmt.Sprintf("m%d", i)
				break
			}
		},
		"order of workers": func(g *ir.Graph) {
			var wg sync.WaitGroup
			var once sync.Once
			order := shuffle.Order(8)
			for i := range 8 {
				if order != nil {
					i = order[i]
				}
				wg.Go(func() {
					shuffle.Pause()
					once.Do(func() { g.Name = fmt.Sprintf("m%d", i) })
				})
			}
			wg.Wait()
		},
		"number of workers": func(g *ir.Graph) { g.Name = fmt.Sprintf("m%d", shuffle.Workers(2)) },
	}
	for name, plant := range plants {
		t.Run(name, func(t *testing.T) {
			o := Options{Inputs: []Input{{Path: llama}}, Backend: Portable, Hooks: []passes.Hook{{
				Before: func(_ *passes.Context, p passes.Pass, g *ir.Graph) error {
					if p.Name == passes.DCE.Name {
						plant(g)
					}
					return nil
				},
			}}}
			if !differs(t, o, 8) {
				t.Error("not found")
			}
		})
	}
}
