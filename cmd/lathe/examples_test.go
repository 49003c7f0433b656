package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/lathe-ml/lathe"
)

// Every command shows examples, and the parser takes each of them.
func TestExamples(t *testing.T) {
	var c cli
	parser, err := kong.New(&c, kong.Vars{
		"version": "lathe", "backends": strings.Join(lathe.Backends(), ","), "backend": lathe.DefaultBackend(),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, cmd := range parser.Model.Leaves(false) {
		n := 0
		for line := range strings.Lines(cmd.Detail) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), " > ")
			args, ok := strings.CutPrefix(line, "lathe ")
			if !ok {
				continue
			}
			n++
			if _, err := parser.Parse(words(args)); err != nil {
				t.Errorf("%s: %q: %v", cmd.FullPath(), line, err)
			}
		}
		if n == 0 {
			t.Errorf("%s has no example", cmd.FullPath())
		}
		var out, errs bytes.Buffer
		if code := run(t.Context(), append(strings.Fields(cmd.Path()), "--help"), &out, &errs); code != exitOK {
			t.Errorf("%s --help: exit %d, %s", cmd.FullPath(), code, &errs)
		}
		if !strings.Contains(out.String(), "Examples:") {
			t.Errorf("%s --help shows none:\n%s", cmd.FullPath(), &out)
		}
	}
}

// words splits a line at spaces outside of quotes.
func words(line string) []string {
	var out []string
	for i, part := range strings.Split(line, `"`) {
		if i%2 == 1 {
			out = append(out, part)
		} else {
			out = append(out, strings.Fields(part)...)
		}
	}
	return out
}
