package mlxrt

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/lathe-ml/lathe"
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
	m, err := Measure(out)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(c.Dir, "official.json")); err == nil {
		var all map[string]json.RawMessage
		var o official
		if json.Unmarshal(b, &all) == nil && json.Unmarshal(all["mlx"], &o) == nil && (o.LowerOK || o.OK) {
			regions := max(o.DelegateCalls, o.Delegates)
			theirs := Figures{Regions: max(regions, 1), Nodes: 1 << 30, Temps: 1 << 30}
			if o.NodeCounts != nil && o.Whole {
				theirs.Nodes = 0
				for _, k := range o.NodeCounts {
					theirs.Nodes += k
				}
			}
			if pte := filepath.Join(c.Dir, "official_mlx.pte"); fileThere(pte) {
				if theirs, err = Measure(pte); err != nil {
					t.Fatal(err)
				}
			}
			what := fmt.Sprintf("%+v, %d outside, the official program %+v", m, len(rep.Outside), theirs)
			if m.Regions > theirs.Regions || m.Nodes > theirs.Nodes || m.Temps > theirs.Temps {
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
