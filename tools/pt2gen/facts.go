package main

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// A decl is one declaration of the facts file.
type decl struct {
	kind   string // struct, union or enum
	name   string
	fields []field
}

// A field of a struct, an arm of a union or a code of an enum.
type field struct {
	name string
	typ  typ
	opt  bool // may be absent or null
	code int  // of an enum
}

// A typ is a scalar, a declared name, or a list or dict (by name) of elem.
type typ struct {
	name string // bool int float str, a declared name, "list" or "dict"
	elem *typ
}

func (t typ) String() string {
	switch t.name {
	case "list":
		return "[" + t.elem.String() + "]"
	case "dict":
		return "{" + t.elem.String() + "}"
	}
	return t.name
}

func parseType(s string) (typ, error) {
	n := len(s)
	if n > 2 && (s[0] == '[' && s[n-1] == ']' || s[0] == '{' && s[n-1] == '}') {
		e, err := parseType(s[1 : n-1])
		if err != nil {
			return typ{}, err
		}
		if s[0] == '[' {
			return typ{name: "list", elem: &e}, nil
		}
		return typ{name: "dict", elem: &e}, nil
	}
	if s == "" || strings.ContainsAny(s, "[]{}?, ") {
		return typ{}, fmt.Errorf("type %q", s)
	}
	return typ{name: s}, nil
}

// facts is a parsed facts file.
type facts struct {
	major, minor int
	decls        []decl
}

// parseFacts reads the notation described at the head of pt2/schema/schema.facts.
func parseFacts(r io.Reader) (*facts, error) {
	f := &facts{}
	sc := bufio.NewScanner(r)
	for line := 1; sc.Scan(); line++ {
		text, _, _ := strings.Cut(sc.Text(), "#")
		w := strings.Fields(text)
		if len(w) == 0 {
			continue
		}
		bad := func(why string) (*facts, error) { return nil, fmt.Errorf("line %d: %s: %q", line, why, sc.Text()) }
		if text[0] != ' ' {
			switch {
			case w[0] == "version" && len(w) == 2:
				if _, err := fmt.Sscanf(w[1], "%d.%d", &f.major, &f.minor); err != nil {
					return bad("version")
				}
			case (w[0] == "struct" || w[0] == "union" || w[0] == "enum") && len(w) == 2:
				f.decls = append(f.decls, decl{kind: w[0], name: w[1]})
			default:
				return bad("not a declaration")
			}
			continue
		}
		if len(f.decls) == 0 || len(w) != 2 {
			return bad("not a field")
		}
		d := &f.decls[len(f.decls)-1]
		fl := field{name: w[0]}
		var err error
		if d.kind == "enum" {
			fl.code, err = strconv.Atoi(w[1])
		} else {
			t := w[1]
			if u, ok := strings.CutSuffix(t, "?"); ok {
				fl.opt, t = true, u
			}
			fl.typ, err = parseType(t)
		}
		if err != nil {
			return bad(err.Error())
		}
		d.fields = append(d.fields, fl)
	}
	if err := sc.Err(); err != nil {
		return nil, err
	}
	return f, f.check()
}

func (f *facts) find(name string) *decl {
	for i := range f.decls {
		if f.decls[i].name == name {
			return &f.decls[i]
		}
	}
	return nil
}

func (f *facts) check() error {
	seen := map[string]bool{}
	for _, d := range f.decls {
		if seen[d.name] {
			return fmt.Errorf("%s is declared twice", d.name)
		}
		seen[d.name] = true
		if len(d.fields) > 64 {
			return fmt.Errorf("%s has more than 64 fields", d.name)
		}
		if d.kind == "enum" {
			continue
		}
		for _, fl := range d.fields {
			t := &fl.typ
			for t.elem != nil {
				t = t.elem
			}
			if !slices.Contains(scalars, t.name) && f.find(t.name) == nil {
				return fmt.Errorf("%s.%s: type %s is not declared", d.name, fl.name, t.name)
			}
		}
	}
	return nil
}

var scalars = []string{"bool", "int", "float", "str"}

// write prints the declarations in their order.
func (f *facts) write(w io.Writer) error {
	bw := bufio.NewWriter(w)
	fmt.Fprintf(bw, "\nversion %d.%d\n", f.major, f.minor)
	for _, d := range f.decls {
		fmt.Fprintf(bw, "\n%s %s\n", d.kind, d.name)
		for _, fl := range d.fields {
			if d.kind == "enum" {
				fmt.Fprintf(bw, "  %s %d\n", fl.name, fl.code)
				continue
			}
			opt := ""
			if fl.opt {
				opt = "?"
			}
			fmt.Fprintf(bw, "  %s %s%s\n", fl.name, fl.typ, opt)
		}
	}
	return bw.Flush()
}

// fromYAML reads the description that torch ships (torch/_export/serde/schema.yaml) as far as the roots need it. It knows
// the shape of that one file: declarations at column 0, kind and fields at 2, fields at 4, their type and default at 6.
func fromYAML(r io.Reader, roots ...string) (*facts, error) {
	f := &facts{}
	all := map[string]*decl{}
	var d *decl
	var version []int
	sc := bufio.NewScanner(r)
	for line := 1; sc.Scan(); line++ {
		text := sc.Text()
		trimmed := strings.TrimSpace(text)
		if trimmed == "" || trimmed[0] == '#' {
			continue
		}
		if item, ok := strings.CutPrefix(text, "- "); ok {
			n, err := strconv.Atoi(item)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", line, err)
			}
			version = append(version, n)
			continue
		}
		key, val, ok := strings.Cut(trimmed, ":")
		if !ok {
			return nil, fmt.Errorf("line %d: %q", line, text)
		}
		val = strings.TrimSpace(val)
		switch indent := len(text) - len(strings.TrimLeft(text, " ")); indent {
		case 0:
			d = &decl{name: key}
			all[key] = d
		case 2:
			if key == "kind" {
				d.kind = val
			}
		case 4:
			d.fields = append(d.fields, field{name: key})
			if val != "" {
				n, err := strconv.Atoi(val)
				if err != nil {
					return nil, fmt.Errorf("line %d: %w", line, err)
				}
				d.fields[len(d.fields)-1].code = n
			}
		case 6:
			fl := &d.fields[len(d.fields)-1]
			if key == "default" {
				fl.opt = true
				continue
			}
			if in, ok := strings.CutPrefix(val, "Optional["); ok {
				fl.opt = true
				val = strings.TrimSuffix(in, "]")
			}
			val = strings.ReplaceAll(val, "Dict[str, ", "{")
			val = strings.ReplaceAll(val, "List[", "[")
			t, err := parseType(closeBraces(val))
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", line, err)
			}
			fl.typ = t
		default:
			return nil, fmt.Errorf("line %d: %q", line, text)
		}
	}
	if err := sc.Err(); err != nil {
		return nil, err
	}
	if len(version) != 2 {
		return nil, fmt.Errorf("no schema version")
	}
	f.major, f.minor = version[0], version[1]
	var visit func(name string) error
	done := map[string]bool{}
	visit = func(name string) error {
		if done[name] || slices.Contains(scalars, name) {
			return nil
		}
		done[name] = true
		d := all[name]
		if d == nil || d.kind == "" {
			return fmt.Errorf("%s is not declared", name)
		}
		f.decls = append(f.decls, *d)
		if d.kind == "enum" {
			return nil
		}
		for _, fl := range d.fields {
			t := &fl.typ
			for t.elem != nil {
				t = t.elem
			}
			if err := visit(t.name); err != nil {
				return err
			}
		}
		return nil
	}
	for _, r := range roots {
		if err := visit(r); err != nil {
			return nil, err
		}
	}
	return f, f.check()
}

// closeBraces turns each "]" that closes a "{" into "}".
func closeBraces(s string) string {
	b := []byte(s)
	var open []byte
	for i, c := range b {
		switch c {
		case '[', '{':
			open = append(open, c)
		case ']':
			if len(open) > 0 {
				if open[len(open)-1] == '{' {
					b[i] = '}'
				}
				open = open[:len(open)-1]
			}
		}
	}
	return string(b)
}
