// Command audit looks at the modules that Lathe is built from.
//
//	audit licences         fails where a module has a licence that is not on the list
//	audit vulndb SRC OUT   makes the database that govulncheck reads out of the OSV files in SRC
//	audit findings         reads govulncheck's JSON and fails where a vulnerable module is called
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	err := errors.New("usage: audit licences | vulndb SRC OUT | findings")
	switch {
	case len(os.Args) == 2 && os.Args[1] == "licences":
		err = licences()
	case len(os.Args) == 4 && os.Args[1] == "vulndb":
		err = vulndb(os.Args[2], os.Args[3])
	case len(os.Args) == 2 && os.Args[1] == "findings":
		err = findings(os.Stdin)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "audit:", err)
		os.Exit(1)
	}
}

// marks are phrases by which a licence's text is known, in the order in which they are looked for.
var marks = []struct {
	name    string
	phrases []string
	ok      bool
}{
	{"AGPL", []string{"GNU AFFERO GENERAL PUBLIC LICENSE"}, false},
	{"LGPL", []string{"GNU LESSER GENERAL PUBLIC LICENSE"}, false},
	{"GPL", []string{"GNU GENERAL PUBLIC LICENSE"}, false},
	{"Apache-2.0", []string{"Apache License", "Version 2.0"}, true},
	{"MPL-2.0", []string{"Mozilla Public License", "2.0"}, true},
	{"BSD", []string{"Redistribution and use in source and binary forms"}, true},
	{"MIT", []string{"Permission is hereby granted, free of charge"}, true},
	{"ISC", []string{"Permission to use, copy, modify, and", "distribute this software for any purpose"}, true},
	{"Unlicense", []string{"This is free and unencumbered software released into the public domain"}, true},
}

// classify names the licence of a text and tells whether it is on the list.
func classify(text string) (name string, ok bool) {
	text = strings.Join(strings.Fields(text), " ")
	for _, m := range marks {
		if !slices.ContainsFunc(m.phrases, func(p string) bool { return !strings.Contains(text, p) }) {
			return m.name, m.ok
		}
	}
	return "unknown", false
}

// licences prints the licence of every module in the build or its tests.
func licences() error {
	out, err := exec.Command("go", "list", "-deps", "-test", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}{{end}}", "./...").Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	slices.Sort(lines)
	var bad []string
	for _, l := range slices.Compact(lines) {
		f := strings.Split(l, "\t")
		if len(f) != 3 {
			continue
		}
		name, ok, err := licenceOf(f[2])
		if err != nil {
			return err
		}
		fmt.Printf("%-14s %s %s\n", name, f[0], f[1])
		if !ok {
			bad = append(bad, f[0])
		}
	}
	if len(bad) > 0 {
		return fmt.Errorf("no licence on the list: %s", strings.Join(bad, ", "))
	}
	return nil
}

func licenceOf(dir string) (name string, ok bool, err error) {
	es, err := os.ReadDir(dir)
	if err != nil {
		return "", false, err
	}
	for _, e := range es {
		n := strings.ToUpper(e.Name())
		if e.IsDir() || !strings.HasPrefix(n, "LICEN") && !strings.HasPrefix(n, "COPYING") && !strings.HasPrefix(n, "UNLICENSE") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return "", false, err
		}
		if name, ok = classify(string(b)); ok {
			return name, ok, nil
		}
	}
	if name == "" {
		name = "none"
	}
	return name, false, nil
}

// osv is what the index needs of a report.
type osv struct {
	ID       string    `json:"id"`
	Modified time.Time `json:"modified"`
	Aliases  []string  `json:"aliases,omitempty"`
	Affected []struct {
		Package struct {
			Name string `json:"name"`
		} `json:"package"`
		Ranges []struct {
			Events []struct {
				Fixed string `json:"fixed"`
			} `json:"events"`
		} `json:"ranges"`
	} `json:"affected"`
}

type moduleIndex struct {
	Path  string       `json:"path"`
	Vulns []moduleVuln `json:"vulns"`
}

type moduleVuln struct {
	ID       string    `json:"id"`
	Modified time.Time `json:"modified"`
	Fixed    string    `json:"fixed,omitempty"`
}

type vulnIndex struct {
	ID       string    `json:"id"`
	Modified time.Time `json:"modified"`
	Aliases  []string  `json:"aliases,omitempty"`
}

func vulndb(src, out string) error {
	files, err := filepath.Glob(filepath.Join(src, "*.json"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("no reports in %s", src)
	}
	for _, d := range []string{"ID", "index"} {
		if err := os.MkdirAll(filepath.Join(out, d), 0o777); err != nil {
			return err
		}
	}
	modules := map[string][]moduleVuln{}
	var vulns []vulnIndex
	var newest time.Time
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		var o osv
		if err := json.Unmarshal(b, &o); err != nil {
			return fmt.Errorf("%s: %w", f, err)
		}
		if o.Modified.After(newest) {
			newest = o.Modified
		}
		vulns = append(vulns, vulnIndex{o.ID, o.Modified, o.Aliases})
		for _, a := range o.Affected {
			v := moduleVuln{ID: o.ID, Modified: o.Modified}
			for _, r := range a.Ranges {
				for _, e := range r.Events {
					if e.Fixed != "" {
						v.Fixed = e.Fixed
					}
				}
			}
			modules[a.Package.Name] = append(modules[a.Package.Name], v)
		}
		if err := os.WriteFile(filepath.Join(out, "ID", o.ID+".json"), b, 0o666); err != nil {
			return err
		}
	}
	var list []moduleIndex
	for path, vs := range modules {
		list = append(list, moduleIndex{path, vs})
	}
	slices.SortFunc(list, func(a, b moduleIndex) int { return strings.Compare(a.Path, b.Path) })
	for name, v := range map[string]any{"db": map[string]time.Time{"modified": newest}, "modules": list, "vulns": vulns} {
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(out, "index", name+".json"), b, 0o666); err != nil {
			return err
		}
	}
	fmt.Printf("%d reports of vulnerabilities\n", len(vulns))
	return nil
}

// finding is what govulncheck found; the trace ends, at its first place, in what is vulnerable.
type finding struct {
	OSV          string `json:"osv"`
	FixedVersion string `json:"fixed_version"`
	Trace        []struct {
		Module   string `json:"module"`
		Function string `json:"function"`
	} `json:"trace"`
}

// findings prints what govulncheck found to be called and fails where it is in a module. A fault of the standard library is
// mended by another toolchain, which is not this tree's to choose.
func findings(r io.Reader) error {
	bad := map[string]bool{}
	dec := json.NewDecoder(r)
	for {
		var m struct {
			Finding *finding `json:"finding"`
		}
		err := dec.Decode(&m)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		f := m.Finding
		if f == nil || len(f.Trace) == 0 || f.Trace[0].Function == "" {
			continue // not called
		}
		line := fmt.Sprintf("%s in %s, fixed in %s", f.OSV, f.Trace[0].Module, f.FixedVersion)
		if _, seen := bad[line]; seen {
			continue
		}
		bad[line] = f.Trace[0].Module != "stdlib"
		fmt.Println(line)
	}
	n := 0
	for _, b := range bad {
		if b {
			n++
		}
	}
	if n > 0 {
		return fmt.Errorf("%d vulnerabilities are called", n)
	}
	return nil
}
