package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func parseText(t *testing.T, text string) (*schema, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s.fbs")
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return parse(path)
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"table T { a: Nope; }", "unknown type Nope"},
		{"table T { a: int; }\ntable T {}", "s.fbs:2: T is declared twice"},
		{"table T { a: int (id: 1); b: int (id: 1); }", "id 1 is taken"},
		{"table T { a: int (id: 0); b: int (id: 2); }", "no field has id 1"},
		{"table T { a: int (id: 1); b: int; }", "all fields have an id or none"},
		{"table T { a: [ubyte] (force_align: 12); }", "force_align 12"},
		{"table T { a: ubyte (force_align: 16); }", "force_align 16"},
		{"struct S { a: string; }", "plain scalars"},
		{"union U { Nope }", "Nope is no table"},
		{"table A {}\nunion U { A }\ntable T { a: [U]; }", "vectors of unions"},
		{"enum E : byte { A }\ntable T { a: E = B; }", "E has no value B"},
		{"enum E : float { A }", "enum E of float"},
		{"table T { a: int (key); }", "attribute key"},
		{"table T { a: int", `want ";"`},
		{"root_type T;", "root type T is no table"},
		{`file_identifier "LONGER";`, "not of 4 characters"},
		{`include "missing.fbs";`, "missing.fbs"},
		{`namespace "x`, "does not end"},
		{"rpc_service S {}", "not supported"},
		{"table T { a: [int] = null (optional); b: U = null; }\ntable U {}", "only scalars and strings"},
		{"%", "unexpected character"},
	} {
		if _, err := parseText(t, c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, want one with %q", c.text, err, c.want)
		}
	}
}

func TestNames(t *testing.T) {
	for in, want := range map[string]string{
		"num_dims": "NumDims", "input1_id": "Input1ID", "STATIC": "Static", "DYNAMIC_BOUND": "DynamicBound",
		"CPU": "CPU", "x": "X", "a_min": "AMin", "QINT8": "Qint8",
	} {
		if got := goName(in); got != want {
			t.Errorf("goName(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestSlots checks that a union takes two slots, and a deprecated field keeps its own.
func TestSlots(t *testing.T) {
	s, err := parseText(t, "table A {}\nunion U { A }\ntable T { a: int; u: U; gone: int (deprecated); b: int; }\nroot_type T;")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"a": 0, "u": 2, "gone": 3, "b": 4}
	for _, f := range s.byName["T"].fields {
		if f.id != want[f.name] {
			t.Errorf("%s has slot %d, want %d", f.name, f.id, want[f.name])
		}
	}
	var b bytes.Buffer
	if err := generate(s, "p", "s.fbs").Render(&b); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); strings.Contains(text, "Gone") || !strings.Contains(text, "StartObject(5)") {
		t.Errorf("deprecated field or number of slots:\n%s", text)
	}
}
