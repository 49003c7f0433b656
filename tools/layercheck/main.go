// Command layercheck holds the imports of the module against layers.txt and fails on an arrow that it does not allow.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"sort"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("layercheck: ")
	file := flag.String("layers", "layers.txt", "the rules")
	flag.Parse()
	src, err := os.ReadFile(*file)
	if err != nil {
		log.Fatal(err)
	}
	rules, err := parseRules(string(src))
	if err != nil {
		log.Fatal(err)
	}
	pkgs, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedImports | packages.NeedModule, Tests: true}, "./...")
	if err != nil {
		log.Fatal(err)
	}
	bad := map[string]bool{}
	for _, p := range pkgs {
		if p.Module == nil || len(p.Errors) > 0 {
			continue
		}
		// Tests may use what they like to judge with; the rules bind what is shipped.
		if strings.Contains(p.ID, "[") || strings.HasSuffix(p.ID, ".test") {
			continue
		}
		from := rel(p.Module.Path, p.PkgPath)
		for imp := range p.Imports {
			if imp != p.Module.Path && !strings.HasPrefix(imp, p.Module.Path+"/") {
				continue
			}
			if why := rules.check(from, rel(p.Module.Path, imp)); why != "" {
				bad[why] = true
			}
		}
	}
	if len(bad) == 0 {
		return
	}
	lines := make([]string, 0, len(bad))
	for l := range bad {
		lines = append(lines, l)
	}
	sort.Strings(lines)
	for _, l := range lines {
		fmt.Fprintln(os.Stderr, l)
	}
	os.Exit(1)
}

// rel is the package's folder below the module, "." for the root.
func rel(module, pkg string) string {
	if pkg == module {
		return "."
	}
	return strings.TrimPrefix(pkg, module+"/")
}

// ruleSet maps a folder to the folders it may import.
type ruleSet map[string][]string

func parseRules(src string) (ruleSet, error) {
	rs := ruleSet{}
	for i, line := range strings.Split(src, "\n") {
		line, _, _ = strings.Cut(line, "#")
		if strings.TrimSpace(line) == "" {
			continue
		}
		folder, allowed, ok := strings.Cut(line, ":")
		folder = strings.TrimSpace(folder)
		if !ok || folder == "" {
			return nil, fmt.Errorf("line %d: want folder: folders", i+1)
		}
		if _, dup := rs[folder]; dup {
			return nil, fmt.Errorf("line %d: %s has two lines", i+1, folder)
		}
		rs[folder] = strings.Fields(allowed)
	}
	return rs, nil
}

// owner is the longest folder with a line that holds pkg.
func (rs ruleSet) owner(pkg string) string {
	for f := pkg; ; {
		if _, ok := rs[f]; ok {
			return f
		}
		i := strings.LastIndexByte(f, '/')
		if i < 0 {
			return ""
		}
		f = f[:i]
	}
}

// check says why from may not import to, empty where it may.
func (rs ruleSet) check(from, to string) string {
	owner := rs.owner(from)
	if owner == "" {
		return fmt.Sprintf("%s has no line in the rules", from)
	}
	if backendOf(from) != "" && backendOf(to) != "" && backendOf(from) != backendOf(to) && backendOf(to) != "program" {
		return fmt.Sprintf("%s imports %s: backends do not know each other", from, to)
	}
	if within(to, owner) && rs.owner(to) == owner {
		return ""
	}
	for _, a := range rs[owner] {
		if within(to, a) {
			return ""
		}
	}
	return fmt.Sprintf("%s imports %s, which the line of %s does not allow", from, to, owner)
}

func within(pkg, folder string) bool {
	return pkg == folder || folder != "." && strings.HasPrefix(pkg, folder+"/")
}

// backendOf is the backend's name for packages under lower/, empty for others.
func backendOf(pkg string) string {
	rest, ok := strings.CutPrefix(pkg, "lower/")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, "/")
	return name
}
