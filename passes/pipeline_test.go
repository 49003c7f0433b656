package passes_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/text"
	"github.com/lathe-ml/lathe/passes"
)

func TestNames(t *testing.T) {
	var names []string
	for _, p := range passes.All() {
		names = append(names, p.Name)
		if p.Doc == "" || p.Run == nil {
			t.Errorf("%s has no doc or nothing to run", p.Name)
		}
		if _, err := os.Stat(strings.ReplaceAll(p.Name, "-", "_") + ".go"); err != nil {
			t.Errorf("%s: its file is called otherwise", p.Name)
		}
		if cases, _ := filepath.Glob(filepath.Join("testdata", p.Name, "*.txtar")); len(cases) == 0 {
			t.Errorf("%s has no golden case", p.Name)
		}
	}
	if !slices.IsSorted(names) {
		t.Errorf("not in order: %v", names)
	}
}

func TestParse(t *testing.T) {
	p, err := passes.Parse(" remove-detach, dce ,cse")
	if err != nil || p.String() != "remove-detach,dce,cse" {
		t.Errorf("%s, %v", p, err)
	}
	if got := p.Without("dce").String(); got != "remove-detach,cse" {
		t.Error(got)
	}
	if _, err := passes.Parse("remove-detatch"); err == nil || !strings.Contains(err.Error(), `is "remove-detach" meant`) {
		t.Error(err)
	}
	own := passes.Pass{Name: "mine", Run: func(*passes.Context, *ir.Graph) error { return nil }}
	if p, err := passes.Parse("mine,dce", own); err != nil || len(p) != 2 {
		t.Error(p, err)
	}
	q, err := passes.Parse(passes.Portable().String())
	if err != nil || q.String() != passes.Portable().String() {
		t.Error("a printed pipeline reads back to another", err)
	}
}

func TestOrder(t *testing.T) {
	known := map[string]bool{}
	for _, p := range passes.All() {
		known[p.Name] = true
	}
	for _, f := range passes.Order() {
		if !known[f.First] || !known[f.Then] || f.Why == "" {
			t.Errorf("%+v names a pass that is not there, or gives no reason", f)
		}
	}
	if broken := passes.CheckOrder(passes.Portable(), passes.Order()); len(broken) > 0 {
		t.Errorf("%+v", broken)
	}
	p, err := passes.Parse("cse,functionalize")
	if err != nil {
		t.Fatal(err)
	}
	if broken := passes.CheckOrder(p, passes.Order()); len(broken) != 1 || broken[0].First != "functionalize" {
		t.Errorf("%+v", broken)
	}
}

const relus = `graph @f(%x: f32[2] user) -> (%4) stage edge {
  %1 = aten.alias(%x) : f32[2]
  %2 = aten.relu(%1) : f32[2]
  %3 = aten.alias(%2) : f32[2]
  %4 = aten.neg(%3) : f32[2]
}`

func parse(t *testing.T, src string) *ir.Graph {
	t.Helper()
	g, err := text.Parse(src, text.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A bisection that leaves one rewrite on changes exactly that, and marks it in the log.
func TestBisect(t *testing.T) {
	run := func(pattern string) (log string, aliases int) {
		t.Helper()
		m, err := passes.ParseMatcher(pattern)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		g := parse(t, relus)
		if err := (passes.Pipeline{passes.RemoveDetach}).Run(&passes.Context{Bisect: m, BisectOut: &out}, g); err != nil {
			t.Fatal(err)
		}
		return out.String(), strings.Count(text.String(g), "aten.alias")
	}
	if _, n := run("y"); n != 0 {
		t.Errorf("all on: %d aliases are left", n)
	}
	log, n := run("vn")
	if n != 2 || strings.Count(log, "[bisect-match 0x") != 2 {
		t.Errorf("all off: %d aliases are left, log %s", n, log)
	}
	_, rest, _ := strings.Cut(log, "[bisect-match ")
	id := rest[:18]
	if _, n := run("+" + id[1:]); n != 1 {
		t.Errorf("%s alone on: %d aliases are left", id, n)
	}
	if _, n := run("!+" + id[1:]); n != 1 {
		t.Errorf("%s alone off: %d aliases are left", id, n)
	}
	if _, n := run("y-" + id[1:]); n != 1 {
		t.Errorf("all but %s on: %d aliases are left", id, n)
	}
}

func TestMatcher(t *testing.T) {
	for _, tt := range []struct {
		pattern string
		id      uint64
		on      bool
	}{
		{"", 5, true},
		{"y", 5, true},
		{"n", 5, false},
		{"!y", 5, false},
		{"!n", 5, true},
		{"01", 5, true},
		{"01", 7, false},
		{"x5", 0x15, true},
		{"x15", 0x25, false},
		{"1+0", 4, true},
		{"y-01", 5, false},
		{"y-01", 6, true},
		{"1-11", 3, false},
		{"1-11+111", 7, true},
	} {
		m, err := passes.ParseMatcher(tt.pattern)
		if err != nil || m.Enabled(tt.id) != tt.on {
			t.Errorf("%q at %#x: %v, %v", tt.pattern, tt.id, m.Enabled(tt.id), err)
		}
	}
	for _, bad := range []string{"x", "2", "+", "y+", "01z", "v", "x00000000000000000"} {
		if _, err := passes.ParseMatcher(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func TestHooks(t *testing.T) {
	var out strings.Builder
	var times []passes.Timing
	dir := t.TempDir()
	ctx := &passes.Context{Hooks: []passes.Hook{passes.VerifyHook(), passes.PrintHook(&out, "remove-detach"), passes.DumpHook(dir), passes.TimingHook(&times)}}
	g := parse(t, relus)
	if err := (passes.Pipeline{passes.RemoveDetach, passes.DCE}).Run(ctx, g); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), "; @f after remove-detach: 2 rewrites\n") || strings.Contains(out.String(), "alias") {
		t.Error(out.String())
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.ir"))
	if len(files) != 2 || filepath.Base(files[0]) != "f.01.remove-detach.ir" {
		t.Error(files)
	}
	if len(times) != 2 || times[0].Changes != 2 || times[0].Nodes != 2 {
		t.Errorf("%+v", times)
	}
	bad := passes.Pass{Name: "bad", Run: func(_ *passes.Context, g *ir.Graph) error { g.First().Out().Index = 7; return nil }}
	err := (passes.Pipeline{bad}).Run(ctx, g)
	if err == nil || !strings.Contains(err.Error(), "pass bad") {
		t.Error(err)
	}
	if _, isDiag := ir.AsDiags(err); isDiag {
		t.Error("a fault of a pass must not look like one of the user's program")
	}
}

// The example in the documentation is the one that is tested.
func TestDocumentedExample(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "docs", "add-a-pass.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, code, ok := strings.Cut(string(doc), "```go\n")
	code, _, closed := strings.Cut(code, "   ```\n")
	if !ok || !closed {
		t.Fatal("no code in the documentation")
	}
	src, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	if code = strings.ReplaceAll("\n"+code, "\n   ", "\n"); !strings.Contains(string(src), strings.TrimSpace(code)) {
		t.Errorf("the documentation shows other code than example_test.go:\n%s", code)
	}
}
