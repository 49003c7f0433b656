package mlxrt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/lathe-ml/lathe"
	"github.com/lathe-ml/lathe/codegen/mlxpayload"
	"github.com/lathe-ml/lathe/codegen/pte"
	"github.com/lathe-ml/lathe/tools/oracle/cases"
)

// official is what the official pipeline made of a case.
type official struct {
	LowerOK       bool           `json:"lower_ok"`
	OK            bool           `json:"ok"`
	DelegateCalls int            `json:"delegate_calls"`
	Delegates     int            `json:"delegates"`
	Whole         bool           `json:"fully_delegated"`
	NodeCounts    map[string]int `json:"node_counts"`
}

// made is what ours is.
type made struct{ regions, nodes, temps, outside int }

// TestCases compiles the handed programs for MLX and runs them on it. LATHE_MLX_CASES selects cases by parts of their
// names or by tags ("tag:spine"); without it the test is skipped, as it takes minutes.
func TestCases(t *testing.T) {
	pick := os.Getenv("LATHE_MLX_CASES")
	if pick == "" {
		t.Skip("LATHE_MLX_CASES is not set")
	}
	rt := open(t)
	dir := os.Getenv("LATHE_CASES")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		dir = filepath.Join(cache, "lathe", "cases")
	}
	names, err := cases.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	ran, right, more := map[string]int{}, map[string]int{}, 0
	for _, n := range names {
		c, err := cases.Load(filepath.Join(dir, filepath.FromSlash(n)))
		if err != nil {
			t.Fatal(err)
		}
		if c.Hostile || !chosen(c, n, pick) || c.Expect("mlx") == "" {
			c.Close()
			continue
		}
		group := filepath.Dir(n)
		ran[group]++
		if t.Run(n, func(t *testing.T) { more += checkCase(t, rt, c) }) {
			right[group]++
		}
		c.Close()
	}
	var groups []string
	for g := range ran {
		groups = append(groups, g)
	}
	sort.Strings(groups)
	for _, g := range groups {
		t.Logf("%s: %d of %d right", g, right[g], ran[g])
	}
	t.Logf("%d cases take more regions, nodes or temporaries than the official program", more)
}

func chosen(c *cases.Case, name, pick string) bool {
	for _, p := range strings.Split(pick, ",") {
		if tag, ok := strings.CutPrefix(p, "tag:"); ok {
			for _, x := range c.Tags {
				if x == tag {
					return true
				}
			}
		} else if strings.Contains(name, p) {
			return true
		}
	}
	return false
}

func checkCase(t *testing.T, rt *Runtime, c *cases.Case) (more int) {
	ctx := context.Background()
	out := filepath.Join(t.TempDir(), "out.pte")
	expect := c.Expect("mlx")
	rep, err := lathe.Compile(ctx, lathe.Options{Inputs: []lathe.Input{{Path: c.Model()}}, Output: out, Backend: "mlx"})
	if want, ok := strings.CutPrefix(expect, "refuse: "); ok {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		return 0
	}
	if err != nil {
		if strings.Contains(expect, "refuse") {
			t.Logf("refused: %v", err)
			return 0
		}
		t.Error(shorten(err))
		return 0
	}
	for _, o := range rep.Outside {
		t.Logf("outside: %.300s", o.Why)
	}
	m, err := measure(out)
	if err != nil {
		t.Fatal(err)
	}
	m.outside = len(rep.Outside)
	if b, err := os.ReadFile(filepath.Join(c.Dir, "official.json")); err == nil {
		var all map[string]json.RawMessage
		var o official
		if json.Unmarshal(b, &all) == nil && json.Unmarshal(all["mlx"], &o) == nil && (o.LowerOK || o.OK) {
			regions := max(o.DelegateCalls, o.Delegates)
			theirs := made{regions: max(regions, 1), nodes: 1 << 30, temps: 1 << 30}
			if o.NodeCounts != nil && o.Whole {
				theirs.nodes = 0
				for _, k := range o.NodeCounts {
					theirs.nodes += k
				}
			}
			if pte := filepath.Join(c.Dir, "official_mlx.pte"); fileThere(pte) {
				if theirs, err = measure(pte); err != nil {
					t.Fatal(err)
				}
			}
			what := fmt.Sprintf("%+v, the official program %+v", m, theirs)
			if m.regions > theirs.regions || m.nodes > theirs.nodes || m.temps > theirs.temps {
				what = "MORE: " + what
				more++
			}
			t.Log(what)
		}
	}
	err = c.CheckWith(func() (cases.Program, error) { return rt.Load(ctx, out) })
	switch {
	case err != nil && expect == "compiles or refuse":
		t.Log(err)
	case err != nil:
		t.Error(err)
	}
	return more
}

// shorten leaves the first few of many diagnostics.
func shorten(err error) string {
	lines := strings.Split(err.Error(), "\n")
	if n := len(lines); n > 4 {
		lines = append(lines[:4], fmt.Sprintf("and %d more", n-4))
	}
	return strings.Join(lines, "\n")
}

func fileThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func measure(path string) (made, error) {
	var m made
	f, err := pte.Open(path)
	if err != nil {
		return m, err
	}
	defer f.Close() //nolint:errcheck // only read
	for _, plan := range f.Plans {
		for _, d := range plan.Delegates {
			if d.ID != delegateID {
				return m, errors.New("a delegate called " + d.ID)
			}
			b, err := blobBytes(d.Payload)
			if err != nil {
				return m, err
			}
			p, err := mlxpayload.Unmarshal(b)
			if err != nil {
				return m, err
			}
			m.regions++
			m.temps += int(p.Graph.NumTempTensors)
			for _, c := range p.Graph.InstructionChains {
				m.nodes += len(c.Instructions)
			}
		}
	}
	return m, nil
}
