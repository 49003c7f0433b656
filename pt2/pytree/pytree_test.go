package pytree

import (
	"reflect"
	"testing"
)

const (
	call = `[1, {"type": "builtins.tuple", "context": "null", "children_spec": [
		{"type": "builtins.tuple", "context": "null", "children_spec": [
			{"type": null, "context": null, "children_spec": []},
			{"type": "builtins.list", "context": "null", "children_spec": [
				{"type": null, "context": null, "children_spec": []},
				{"type": "builtins.dict", "context": "[\"k\", \"v\"]", "children_spec": [
					{"type": null, "context": null, "children_spec": []},
					{"type": null, "context": null, "children_spec": []}]}]}]},
		{"type": "builtins.dict", "context": "[\"mask\", \"none\"]", "children_spec": [
			{"type": null, "context": null, "children_spec": []},
			{"type": "builtins.tuple", "context": "null", "children_spec": []}]}]}]`
	caches = `[1, {"type": "lib.caches:Pair", "context": "{\"parts\": [{\"p\": \"lib.caches:StaticCache\"}, \"{\\\"p\\\": \\\"lib.caches:Inner\\\"}\"]}",
		"children_spec": [{"type": null, "context": null, "children_spec": []}, {"type": "lib.outputs.Out", "context": "[\"logits\"]",
			"children_spec": [{"type": null, "context": null, "children_spec": []}]}]}]`
)

func TestPaths(t *testing.T) {
	s, err := Parse(call)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"x", "ys.0", "ys.1.k", "ys.1.v", "mask"}
	if got := s.Paths([]string{"x", "ys", "mask"}); !reflect.DeepEqual(got, want) || s.Leaves() != len(want) {
		t.Errorf("%d leaves, paths %v, want %v", s.Leaves(), got, want)
	}
	if s, err = Parse(caches); err != nil {
		t.Fatal(err)
	}
	if got, want := s.Paths(nil), []string{"0", "1.logits"}; !reflect.DeepEqual(got, want) {
		t.Errorf("paths %v, want %v", got, want)
	}
}

func TestMentions(t *testing.T) {
	s, err := Parse(caches)
	if err != nil {
		t.Fatal(err)
	}
	for class, want := range map[string]bool{
		"Pair": true, "lib.caches:Pair": true, "StaticCache": true, "lib.caches:StaticCache": true, "Inner": true, "Out": true,
		"Cache": false, "parts": false, "lib.StaticCache": false,
	} {
		if got := s.Mentions(class); got != want {
			t.Errorf("Mentions(%q) = %v", class, got)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"", "null", "[]", "[1]", "[2, {}]", `[1, 3]`, `[1, {"type": 3}]`, `{"a": 1}`} {
		if s, err := Parse(text); err == nil {
			t.Errorf("%s: read as %+v", text, s)
		}
	}
}
