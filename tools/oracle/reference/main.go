// Command reference runs recorded cases in the reference interpreter, straight from their archives, and compares with
// what PyTorch gave. It prints a line per failing case and counts per group, and fails where a case does.
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lathe-ml/lathe/interp"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/pt2"
	"github.com/lathe-ml/lathe/tools/oracle/cases"
	"github.com/lathe-ml/lathe/tools/oracle/judge"
)

func main() {
	archives := flag.String("archives", "../shared/cases", "the folder with the cases' unpack script")
	types := flag.Bool("types", false, "also compare every result with the type the graph gives it")
	slow := flag.Duration("slow", 0, "name cases that take longer")
	flag.Parse()
	failed, err := run(*archives, flag.Args(), *types, *slow)
	if err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(2)
	}
	if failed > 0 {
		os.Exit(1)
	}
}

// run checks the cases whose name holds one of the words, or all.
func run(archives string, words []string, types bool, slow time.Duration) (failed int, err error) {
	dir, err := cases.Dir(archives)
	if err != nil {
		return 0, err
	}
	names, err := cases.Find(dir)
	if err != nil {
		return 0, err
	}
	good, all := map[string]int{}, map[string]int{}
	for _, name := range names {
		group, _, _ := strings.Cut(name, "/")
		if group == "peer" {
			group = strings.Join(strings.SplitN(name, "/", 3)[:2], "/")
		}
		if len(words) > 0 && !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(name, w) }) {
			continue
		}
		c, err := cases.Load(filepath.Join(dir, name))
		if err != nil {
			return failed, err
		}
		if c.Hostile || len(c.Calls) == 0 {
			continue
		}
		start := time.Now()
		all[group]++
		if err := check(c, types); err != nil {
			failed++
			fmt.Printf("%s: %v\n", name, err)
		} else {
			good[group]++
		}
		if d := time.Since(start); slow > 0 && d > slow {
			fmt.Printf("%s: %v\n", name, d.Round(time.Millisecond))
		}
		if err := c.Close(); err != nil {
			return failed, err
		}
	}
	for _, g := range slices.Sorted(maps.Keys(all)) {
		fmt.Printf("reference %s: %d of %d\n", g, good[g], all[g])
	}
	return failed, nil
}

// check runs every call of a case and compares.
func check(c *cases.Case, types bool) error {
	a, err := pt2.Open(c.Model())
	if err != nil {
		return err
	}
	defer a.Close()
	g, err := method(a, c.Method)
	if err != nil {
		return err
	}
	return judge.Check(c, g, interp.Options{CheckTypes: types})
}

func method(a *pt2.Archive, name string) (*ir.Graph, error) {
	p, err := a.Load()
	if err != nil {
		return nil, err
	}
	if g := p.Method(name); g != nil {
		return g, nil
	}
	if len(p.Methods) == 1 {
		return p.Methods[0], nil
	}
	return nil, fmt.Errorf("no method %q", name)
}
