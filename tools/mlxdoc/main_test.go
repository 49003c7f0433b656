package main

import (
	"bytes"
	"os"
	"testing"
)

// docs/mlx.md is what the rules say today.
func TestPageIsUpToDate(t *testing.T) {
	want, err := page("../..")
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile("../../docs/mlx.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, want) {
		t.Error("docs/mlx.md is out of date: run go generate ./lower/mlx")
	}
	for line := range bytes.Lines(want) {
		if bytes.HasPrefix(line, []byte("| `")) && bytes.HasSuffix(line, []byte("|  |\n")) {
			t.Errorf("no case proves the row %s", line)
		}
	}
	for _, row := range []string{"| `aten.conv2d` | ", "Conv2D", "| `aten.abs` | Abs |", "| `aten.linear` | "} {
		if !bytes.Contains(want, []byte(row)) {
			t.Errorf("the page does not have %q", row)
		}
	}
}
