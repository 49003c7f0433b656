package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/lathe-ml/lathe"
	"github.com/lathe-ml/lathe/ir/text"
	"github.com/lathe-ml/lathe/ir/verify"
)

func newParser(c *cli) (*kong.Kong, error) {
	return kong.New(c, kong.Vars{
		"version": "lathe", "backends": strings.Join(lathe.Backends(), ","), "backend": lathe.DefaultBackend(),
	})
}

// Every command shows examples, and the parser takes each of them.
func TestExamples(t *testing.T) {
	var c cli
	parser, err := newParser(&c)
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

// The command lines of the README are taken by the parser, and its IR is a program.
func TestReadme(t *testing.T) {
	src, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var c cli
	parser, err := newParser(&c)
	if err != nil {
		t.Fatal(err)
	}
	commands, programs := 0, 0
	for i, block := range strings.Split(string(src), "```") {
		if i%2 == 0 {
			continue
		}
		lang, body, _ := strings.Cut(block, "\n")
		if strings.Contains(body, "graph @") {
			programs++
			p, err := text.ParseProgram(body, text.Options{})
			if err != nil {
				t.Errorf("%v in\n%s", err, body)
				continue
			}
			for _, g := range p.Methods {
				if ds := verify.Graph(g); len(ds) > 0 {
					t.Errorf("%v in\n%s", ds, body)
				}
			}
		}
		if lang != "sh" {
			continue
		}
		for line := range strings.Lines(body) {
			line, _, _ = strings.Cut(line, "#")
			if args, ok := strings.CutPrefix(line, "lathe "); ok {
				commands++
				if _, err := parser.Parse(words(args)); err != nil {
					t.Errorf("lathe %s: %v", args, err)
				}
			}
		}
	}
	if commands < 20 || programs == 0 {
		t.Errorf("%d commands and %d programs found", commands, programs)
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
