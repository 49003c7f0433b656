package pt2

import (
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/tools/oracle/cases"
)

// root is the folder of the handed cases; without it the tests of whole archives skip.
func root(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("LATHE_CASES")
	if dir == "" {
		t.Skip("LATHE_CASES does not name the folder of unpacked cases")
	}
	return dir
}

func load(path string) (*ir.Program, *Archive, error) {
	a, err := Open(path)
	if err != nil {
		return nil, nil, err
	}
	p, err := a.Load()
	return p, a, err
}

// TestCases imports every handed program: well-formed ones are read, hostile ones refused with an entry and advice.
func TestCases(t *testing.T) {
	dir := root(t)
	names, err := cases.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	read, refused := map[string]int{}, 0
	for _, n := range names {
		group, _, _ := strings.Cut(n, "/")
		c, err := cases.Load(filepath.Join(dir, filepath.FromSlash(n)))
		if err != nil {
			t.Fatal(err)
		}
		p, a, err := load(c.Model())
		switch {
		case c.Hostile && err == nil:
			if unknownOps(p) == 0 {
				t.Errorf("%s: accepted, want: %s", n, c.Expect(""))
			}
			refused++
		case c.Hostile:
			refused++
			ds, ok := ir.AsDiags(err)
			if !ok {
				t.Errorf("%s: %v is no diagnostic", n, err)
			}
			for _, d := range ds {
				if d.Entry == "" || d.Try == "" || d.Code == "" {
					t.Errorf("%s: %q lacks an entry, a code or advice", n, d.Error())
				}
			}
			t.Logf("%s: %.300s", n, err)
		case err != nil:
			t.Errorf("%s: %.600s", n, err)
		default:
			read[group]++
			checkProgram(t, n, p, c)
			for _, g := range p.Methods {
				if _, err := a.SampleInputs(g); err != nil && !strings.HasPrefix(n, "hostile/") {
					t.Errorf("%s: %v", n, err)
				}
			}
			if notes := a.Notes(); len(notes) > 0 {
				t.Logf("%s: notes %q", n, notes)
			}
		}
		if a != nil {
			a.Close()
		}
		c.Close()
	}
	var groups []string
	for g := range read {
		groups = append(groups, g)
	}
	sort.Strings(groups)
	for _, g := range groups {
		t.Logf("%-8s %d read", g, read[g])
	}
	t.Logf("%-8s %d refused", "hostile", refused)
}

func unknownOps(p *ir.Program) int {
	n := 0
	for _, m := range p.Methods {
		m.Walk(func(g *ir.Graph) {
			for nd := range g.Nodes() {
				if nd.Op == 0 {
					n++
				}
			}
		})
	}
	return n
}

// checkProgram compares the program's calls with the recorded ones.
func checkProgram(t *testing.T, name string, p *ir.Program, c *cases.Case) {
	t.Helper()
	for _, g := range p.Methods {
		if g.Name != c.Method && c.Method != "" {
			continue
		}
		users, outs := len(g.UserInputs()), 0
		for _, o := range g.Outputs {
			if o.Kind == ir.OutputUser {
				outs++
			}
		}
		for i, call := range c.Calls {
			if len(call.In) != users || len(call.Out) != outs {
				t.Errorf("%s: call %d has %d inputs and %d outputs, the program %d and %d", name, i, len(call.In), len(call.Out), users, outs)
			}
		}
	}
}
