package main

import (
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	rs, err := parseRules("ir/sym:\nir: ops ir/sym\nlower: ir\nlower/program: ir\n.: ir lower\nops:\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to, want string }{
		{"ir", "ops", ""},
		{"ir", "ir/sym", ""},
		{"ir/sym", "ir", "does not allow"},
		{"ir", "lower/mlx", "does not allow"},
		{"lower/mlx", "ir/sym", ""},
		{"lower/mlx", "lower/xnnpack", "do not know each other"},
		{"lower/mlx/ops", "lower/mlx", ""},
		{".", "lower/mlx", ""},
		{"extra", "ir", "no line"},
	} {
		got := rs.check(c.from, c.to)
		if c.want == "" && got != "" || c.want != "" && !strings.Contains(got, c.want) {
			t.Errorf("%s -> %s: %q, want %q", c.from, c.to, got, c.want)
		}
	}
	if _, err := parseRules("a: b\na: c"); err == nil {
		t.Error("a folder with two lines is accepted")
	}
}
