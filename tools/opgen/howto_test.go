package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The example of docs/add-an-op.md is the code that runs: each block stands in the file named above it.
func TestHowTo(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join(root, "docs", "add-an-op.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)\n   `([^`\n]+)`\n   ```[a-z]*\n(.*?)\n   ```\n").FindAllStringSubmatch(string(doc), -1)
	if len(blocks) != 5 {
		t.Fatalf("%d examples, want 5", len(blocks))
	}
	for _, b := range blocks {
		src, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(b[1])))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(src), b[2]) {
			t.Errorf("%s does not hold this example any more:\n%s", b[1], b[2])
		}
	}
	rows, err := load()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.name == "aten.trace.default" {
			for _, fn := range []string{r.Infer, r.Interp, r.Decomp} {
				if !strings.Contains(string(doc), "func "+fn+"(") {
					t.Errorf("the row names %s, which the page does not show", fn)
				}
			}
			return
		}
	}
	t.Error("aten.trace has no row")
}
