package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lathe-ml/lathe/internal/etrt/ettest"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/pt2"
	"github.com/lathe-ml/lathe/tools/oracle/cases"
)

// TestEveryArgument replays the calls with arguments away from their defaults (tools/fixtures/op_args.py): each argument is
// honoured, or the node is refused. Then it walks the rows of the tables and counts the arguments with a default for which a
// recorded program has another value.
func TestEveryArgument(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED, too long for -short: the recorded arguments")
	}
	root := unpack(t, "opargs.tar.bz2")
	names, err := cases.Find(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []struct {
		name          string
		least, refuse int
	}{
		// The counts of right programs only rise, those of refused ones only fall.
		{reference, 337, 3},
		{"portable", 320, 20},
		{"xnnpack", 320, 20},
	} {
		t.Run(b.name, func(t *testing.T) {
			var rt runtimes
			if b.name != reference {
				rt.et = ettest.Open(t)
			}
			counts := map[string]int{}
			for i, r := range replay(t.Context(), rt, config{root: root}, names, b.name, t.TempDir()) {
				counts[r.class]++
				if r.class != right && r.class != refused {
					t.Errorf("%s: %s%s", names[i], r.class, r.text)
				}
			}
			line := fmt.Sprintf("%s: %d programs of arguments, %d right, %d refused", b.name, len(names), counts[right], counts[refused])
			fmt.Println(line)
			if counts[right] < b.least || counts[refused] > b.refuse {
				t.Errorf("%s; at least %d right and at most %d refused are wanted", line, b.least, b.refuse)
			}
		})
	}

	walked := map[string]bool{}
	walkArguments(t, root, walked)
	walkArguments(t, unpack(t, "opcorpus.tar.bz2"), walked)
	total, missing := 0, map[string]int{}
	for _, id := range ops.All() {
		s := id.Info().Schema
		for _, a := range s.Args {
			switch {
			case !a.HasDefault || unsaid[a.Name]:
				continue
			case s.NS != "aten":
				// The operators of other libraries are recorded with the handed cases.
				continue
			}
			total++
			if !walked[id.String()+" "+a.Name] {
				missing[a.Name]++
				t.Logf("not walked: %s of %s", a.Name, id)
			}
		}
	}
	n := 0
	for _, k := range slices.Sorted(maps.Keys(missing)) {
		n += missing[k]
	}
	fmt.Printf("%d of %d arguments of aten operators away from their defaults\n", total-n, total)
	const least = 663
	if total-n < least {
		t.Errorf("%d arguments are walked, %d are wanted", total-n, least)
	}
}

// unsaid are arguments that change nothing which a program could show: where and how memory is had, and random numbers.
var unsaid = map[string]bool{"device": true, "pin_memory": true, "layout": true, "generator": true, "requires_grad": true, "non_blocking": true}

// walkArguments notes the operators and arguments that have another value than the default in the programs under root.
func walkArguments(t *testing.T, root string, walked map[string]bool) {
	t.Helper()
	names, err := cases.Find(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		a, err := pt2.Open(filepath.Join(root, name, "model.pt2"))
		if err != nil {
			t.Fatal(err)
		}
		p, err := a.Load()
		if err == nil { // the replay counts what is refused
			for _, m := range p.Methods {
				m.Walk(func(g *ir.Graph) {
					for n := range g.Nodes() {
						if n.Op == ops.Unknown {
							continue
						}
						for i, s := range n.Info().Schema.Args {
							if s.HasDefault && !op.IsDefault(n.Op, i, n.Arg(i)) {
								walked[n.Op.String()+" "+s.Name] = true
							}
						}
					}
				})
			}
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
