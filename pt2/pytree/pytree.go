// Package pytree reads the pytree specs of a saved program: how its flat inputs and outputs nest in the containers of the
// model's author. Types are names here; nothing has to be registered.
package pytree

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Spec is a node of the tree. A leaf has no type.
type Spec struct {
	// Type is the container's name: builtins.dict, transformers.cache_utils:StaticCache.
	Type string
	// Context is the container's own data as JSON text ("null", `["a", "b"]`), empty for leaves.
	Context  string
	Children []*Spec
}

// The version of the JSON form.
const version = 1

// Parse reads the JSON form, [1, {"type": …, "context": …, "children_spec": […]}].
func Parse(text string) (*Spec, error) {
	var parts []json.RawMessage
	if err := json.Unmarshal([]byte(text), &parts); err != nil {
		return nil, fmt.Errorf("pytree spec: %w", err)
	}
	var v int
	if len(parts) != 2 || json.Unmarshal(parts[0], &v) != nil {
		return nil, fmt.Errorf("pytree spec: not a pair of version and tree")
	}
	if v != version {
		return nil, fmt.Errorf("pytree spec: version %d, %d is known", v, version)
	}
	var n node
	if err := json.Unmarshal(parts[1], &n); err != nil {
		return nil, fmt.Errorf("pytree spec: %w", err)
	}
	return n.spec(), nil
}

type node struct {
	Type     *string         `json:"type"`
	Context  json.RawMessage `json:"context"`
	Children []node          `json:"children_spec"`
}

func (n *node) spec() *Spec {
	s := &Spec{}
	if n.Type == nil || *n.Type == "" {
		return s
	}
	s.Type = *n.Type
	// The context is JSON text within a JSON string.
	if json.Unmarshal(n.Context, &s.Context) != nil {
		s.Context = string(n.Context)
	}
	s.Children = make([]*Spec, len(n.Children))
	for i := range n.Children {
		s.Children[i] = n.Children[i].spec()
	}
	return s
}

// Leaf tells whether s is a leaf.
func (s *Spec) Leaf() bool { return s.Type == "" }

// Leaves counts the leaves.
func (s *Spec) Leaves() int {
	if s.Leaf() {
		return 1
	}
	n := 0
	for _, c := range s.Children {
		n += c.Leaves()
	}
	return n
}

// Paths names every leaf by its way from the root, past_key_values.0 for one, in order. A root that is the pair of
// arguments and keyword arguments of a call takes its first level from names (the parameters of forward) and the keywords.
func (s *Spec) Paths(names []string) []string {
	var out []string
	if len(s.Children) == 2 && base(s.Type) == "tuple" && base(s.Children[0].Type) == "tuple" && base(s.Children[1].Type) == "dict" {
		for i, c := range s.Children[0].Children {
			name := "arg" + strconv.Itoa(i)
			if i < len(names) {
				name = names[i]
			}
			out = c.paths(name, out)
		}
		kw := s.Children[1]
		for i, key := range kw.Keys() {
			out = kw.Children[i].paths(key, out)
		}
		return out
	}
	return s.paths("", out)
}

func (s *Spec) paths(at string, out []string) []string {
	if s.Leaf() {
		return append(out, at)
	}
	keys := s.Keys()
	for i, c := range s.Children {
		p := keys[i]
		if at != "" {
			p = at + "." + p
		}
		out = c.paths(p, out)
	}
	return out
}

// Keys names the children: by the strings of a context that is a list of as many, by their place otherwise.
func (s *Spec) Keys() []string {
	var keys []string
	if json.Unmarshal([]byte(s.Context), &keys) != nil || len(keys) != len(s.Children) {
		keys = make([]string, len(s.Children))
		for i := range keys {
			keys[i] = strconv.Itoa(i)
		}
	}
	return keys
}

// base is the last part of a type's name: module.Class and module:Class give Class.
func base(name string) string {
	if i := strings.LastIndexAny(name, ".:"); i >= 0 {
		return name[i+1:]
	}
	return name
}

// Mentions tells whether a container of the tree, or a string anywhere in a container's context, is of the class: its
// full name or the part behind the last dot or colon. (A cache of caches keeps the classes of its parts in its context.)
func (s *Spec) Mentions(class string) bool {
	found := false
	s.Names(func(name string) {
		found = found || name == class || base(name) == class
	})
	return found
}

// Names calls f with the type of every container and with every string in the contexts, keys of objects left out.
func (s *Spec) Names(f func(string)) {
	if s.Leaf() {
		return
	}
	f(s.Type)
	names(s.Context, 0, f)
	for _, c := range s.Children {
		c.Names(f)
	}
}

// names looks through JSON text, and through strings that are JSON text themselves.
func names(text string, depth int, f func(string)) {
	if depth > 8 || text == "" {
		return
	}
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return
	}
	var visit func(v any)
	visit = func(v any) {
		switch v := v.(type) {
		case string:
			f(v)
			if v != "" && strings.IndexByte(`[{"`, v[0]) >= 0 {
				names(v, depth+1, f)
			}
		case []any:
			for _, e := range v {
				visit(e)
			}
		case map[string]any:
			for _, e := range v {
				visit(e)
			}
		}
	}
	visit(v)
}
