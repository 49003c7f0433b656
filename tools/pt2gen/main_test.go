package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// TestUpToDate generates again and compares.
func TestUpToDate(t *testing.T) {
	in, err := os.Open("../../pt2/schema/schema.facts")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	fs, err := parseFacts(in)
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := generate(fs).Render(&got); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("../../pt2/schema/zschema.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Error("pt2/schema/zschema.go is not what the facts give: run go generate ./pt2/schema")
	}
}

// A description as torch ships it, in small, and the facts it gives.
const yaml = `# made by a tool
Kind:
  kind: enum
  fields:
    A: 0
    B: 7
Leaf:
  kind: union
  fields:
    as_none:
      type: bool
    as_lists:
      type: List[List[Root]]
    as_map:
      type: Dict[str, List[int]]
Root:
  kind: struct
  fields:
    leaf:
      type: Leaf
    kind:
      type: Optional[Kind]
      default: None
    names:
      type: List[str]
      default: '[]'
Unused:
  kind: struct
  fields:
    x:
      type: int
SCHEMA_VERSION:
- 8
- 3
`

const want = `
version 8.3

struct Root
  leaf Leaf
  kind Kind?
  names [str]?

union Leaf
  as_none bool
  as_lists [[Root]]
  as_map {[int]}

enum Kind
  A 0
  B 7
`

func TestFromYAML(t *testing.T) {
	fs, err := fromYAML(strings.NewReader(yaml), "Root")
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := fs.write(&got); err != nil {
		t.Fatal(err)
	}
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
	again, err := parseFacts(strings.NewReader(head + got.String()))
	if err != nil {
		t.Fatal(err)
	}
	got.Reset()
	if err := again.write(&got); err != nil || got.String() != want {
		t.Errorf("read back (%v):\n%s", err, got.String())
	}
	if _, err := fromYAML(strings.NewReader(strings.Replace(yaml, "Leaf:\n", "Other:\n", 1)), "Root"); err == nil {
		t.Error("a type that is not declared is accepted")
	}
}

func TestParseFactsRefuses(t *testing.T) {
	for _, text := range []string{"struct\n", "field x\n", "  a int\n", "struct A\n  a int? b\n", "struct A\n  a [int\n", "struct A\n  a B\n", "enum A\n  a x\n", "struct A\nstruct A\n"} {
		if _, err := parseFacts(strings.NewReader(text)); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
