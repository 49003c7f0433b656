package judge_test

import (
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/lathe-ml/lathe/interp"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/lower/program"
	"github.com/lathe-ml/lathe/passes"
	"github.com/lathe-ml/lathe/pt2"
	"github.com/lathe-ml/lathe/tools/oracle/cases"
	"github.com/lathe-ml/lathe/tools/oracle/judge"
)

// legal asks the stock runtime.
func legal(n *ir.Node) *ir.Diag {
	_, d := program.Caps{}.Match(n)
	return d
}

// TestPipeline takes the handed programs through the portable pipeline and interprets what comes out. LATHE_JUDGE selects
// cases by a part of their name ("/" has them all) or by a tag ("tag:spine"); without it the test is skipped.
func TestPipeline(t *testing.T) {
	pick := os.Getenv("LATHE_JUDGE")
	if pick == "" {
		t.Skip("LATHE_JUDGE is not set")
	}
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
	left := map[string]int{}
	for _, n := range names {
		c, err := cases.Load(filepath.Join(dir, filepath.FromSlash(n)))
		if err != nil {
			t.Fatal(err)
		}
		if !selected(c, n, pick) {
			c.Close()
			continue
		}
		t.Run(n, func(t *testing.T) { check(t, c, left) })
		c.Close()
	}
	var ops []string
	for o := range left {
		ops = append(ops, o)
	}
	sort.Slice(ops, func(i, j int) bool { return left[ops[i]] > left[ops[j]] })
	for _, o := range ops {
		t.Logf("%4d nodes without a way to run: %s", left[o], o)
	}
}

func selected(c *cases.Case, name, pick string) bool {
	if c.Hostile {
		return false
	}
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

func check(t *testing.T, c *cases.Case, left map[string]int) {
	a, err := pt2.Open(c.Model())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	p, err := a.Load()
	if err != nil {
		t.Fatal(err)
	}
	g := p.Method(c.Method)
	if g == nil {
		g = p.Methods[0]
	}
	before := judge.Check(c, g, interp.Options{})
	if before != nil {
		t.Logf("before any pass: %v", before)
	}
	ctx := &passes.Context{Target: "portable", Legal: legal, Hooks: []passes.Hook{passes.VerifyHook()}}
	if err := passes.Portable().Run(ctx, g); err != nil {
		t.Fatal(err)
	}
	g.Walk(func(h *ir.Graph) {
		for n := range h.Nodes() {
			if d := legal(n); d != nil {
				left[n.OpName()+": "+d.Msg]++
				t.Logf("cannot run: %s", d)
			}
		}
	})
	if err := judge.Check(c, g, interp.Options{}); err != nil {
		if before == nil {
			t.Error(err)
		} else {
			t.Logf("after the passes: %v", err)
		}
	}
}
