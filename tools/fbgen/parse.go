package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// schema is what the files of one root schema declare, in order of declaration.
type schema struct {
	decls  []*decl
	byName map[string]*decl
	ident  string
	root   string
	seen   map[string]bool
}

type declKind int

const (
	kindTable declKind = iota
	kindStruct
	kindEnum
	kindUnion
)

type decl struct {
	kind    declKind
	name    string
	doc     []string
	fields  []*field  // table, struct
	base    string    // enum
	values  []enumVal // enum
	members []member  // union
	pos     string
}

type enumVal struct {
	name  string
	value int64
	doc   []string
}

// member is an arm of a union: its name and the table that it holds.
type member struct{ name, table string }

type field struct {
	name       string
	typ        string
	vector     bool
	def        string // as written; "" for none
	optional   bool   // scalar with default null, or a string that is absent when empty
	required   bool
	deprecated bool
	align      int
	id         int // slot; of a union: the value's slot, its tag stands before it
	hasID      bool
	doc        []string
}

type token struct {
	text string
	kind byte // 'i' identifier or number, 's' string, 'p' punctuation, 'd' doc comment, 0 end
	line int
}

type parser struct {
	file string
	toks []token
	s    *schema
	doc  []string
}

type syntaxError struct{ error }

// parse reads the schema file at path and what it includes.
func parse(path string) (s *schema, err error) {
	s = &schema{byName: map[string]*decl{}, seen: map[string]bool{}}
	defer func() {
		if r := recover(); r != nil {
			se, ok := r.(syntaxError)
			if !ok {
				panic(r)
			}
			s, err = nil, se.error
		}
	}()
	if err := s.file(path); err != nil {
		return nil, err
	}
	if err := s.resolve(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *schema) file(path string) error {
	if s.seen[path] {
		return nil
	}
	s.seen[path] = true
	src, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	toks, err := scan(filepath.Base(path), string(src))
	if err != nil {
		return err
	}
	// Only the root schema's identifier and root type count.
	ident, root := s.ident, s.root
	p := &parser{file: filepath.Base(path), toks: toks, s: s}
	p.schemaFile(filepath.Dir(path))
	if len(s.seen) > 1 && ident != "" {
		s.ident, s.root = ident, root
	}
	return nil
}

func scan(file, src string) ([]token, error) {
	var toks []token
	line := 1
	for i := 0; i < len(src); {
		c := src[i]
		switch {
		case c == '\n':
			line++
			i++
		case c == ' ' || c == '\t' || c == '\r':
			i++
		case strings.HasPrefix(src[i:], "//"):
			end := strings.IndexByte(src[i:], '\n')
			if end < 0 {
				end = len(src) - i
			}
			if text := src[i : i+end]; strings.HasPrefix(text, "///") {
				toks = append(toks, token{strings.TrimSpace(text[3:]), 'd', line})
			}
			i += end
		case c == '"':
			end := strings.IndexAny(src[i+1:], "\"\n")
			if end < 0 || src[i+1+end] != '"' {
				return nil, fmt.Errorf("%s:%d: string does not end", file, line)
			}
			toks = append(toks, token{src[i+1 : i+1+end], 's', line})
			i += end + 2
		case isWord(c) || c == '-' || c == '+':
			j := i + 1
			for j < len(src) && (isWord(src[j]) || src[j] == '.' || (src[j] == '-' || src[j] == '+') && (src[j-1] == 'e' || src[j-1] == 'E') && src[i] < 'A') {
				j++
			}
			toks = append(toks, token{src[i:j], 'i', line})
			i = j
		case strings.IndexByte("{}()[]:;,=", c) >= 0:
			toks = append(toks, token{string(c), 'p', line})
			i++
		default:
			return nil, fmt.Errorf("%s:%d: unexpected character %q", file, line, c)
		}
	}
	return append(toks, token{"", 0, line}), nil
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func (p *parser) failf(format string, args ...any) {
	panic(syntaxError{fmt.Errorf("%s:%d: %s", p.file, p.toks[0].line, fmt.Sprintf(format, args...))})
}

// peek gives the next token, having put doc comments before it aside.
func (p *parser) peek() token {
	for p.toks[0].kind == 'd' {
		p.doc = append(p.doc, p.toks[0].text)
		p.toks = p.toks[1:]
	}
	return p.toks[0]
}

func (p *parser) next() token {
	t := p.peek()
	if t.kind != 0 {
		p.toks = p.toks[1:]
	}
	return t
}

func (p *parser) accept(text string) bool {
	if t := p.peek(); t.kind == 'p' && t.text == text {
		p.next()
		return true
	}
	return false
}

func (p *parser) expect(text string) {
	if !p.accept(text) {
		p.failf("want %q, have %q", text, p.peek().text)
	}
}

func (p *parser) word() string {
	t := p.peek()
	if t.kind != 'i' {
		p.failf("want a name, have %q", t.text)
	}
	return p.next().text
}

func (p *parser) str() string {
	t := p.peek()
	if t.kind != 's' {
		p.failf("want a string, have %q", t.text)
	}
	return p.next().text
}

func (p *parser) takeDoc() []string {
	d := p.doc
	p.doc = nil
	return d
}

func (p *parser) schemaFile(dir string) {
	for {
		p.doc = nil
		t := p.peek()
		if t.kind == 0 {
			return
		}
		doc := p.takeDoc()
		switch w := p.word(); w {
		case "include":
			if err := p.s.file(filepath.Join(dir, p.str())); err != nil {
				p.failf("include: %v", err)
			}
			p.expect(";")
		case "namespace", "file_extension", "attribute":
			p.next()
			p.expect(";")
		case "file_identifier":
			p.s.ident = p.str()
			if len(p.s.ident) != 4 {
				p.failf("file identifier %q is not of 4 characters", p.s.ident)
			}
			p.expect(";")
		case "root_type":
			p.s.root = p.word()
			p.expect(";")
		case "table", "struct":
			d := p.declare(kindTable, doc)
			if w == "struct" {
				d.kind = kindStruct
			}
			p.expect("{")
			for !p.accept("}") {
				d.fields = append(d.fields, p.field())
			}
		case "enum":
			d := p.declare(kindEnum, doc)
			p.expect(":")
			d.base = p.word()
			if i, ok := scalars[d.base]; !ok || i.float || d.base == "bool" {
				p.failf("enum %s of %s", d.name, d.base)
			}
			p.enum(d)
		case "union":
			d := p.declare(kindUnion, doc)
			p.expect("{")
			for !p.accept("}") {
				m := member{name: p.word()}
				m.table = m.name
				if p.accept(":") {
					m.table = p.word()
				}
				d.members = append(d.members, m)
				if !p.accept(",") {
					p.expect("}")
					break
				}
			}
		default:
			p.failf("%q is not supported", w)
		}
	}
}

func (p *parser) declare(k declKind, doc []string) *decl {
	d := &decl{kind: k, doc: doc, pos: fmt.Sprintf("%s:%d", p.file, p.toks[0].line)}
	d.name = p.word()
	if p.s.byName[d.name] != nil {
		p.failf("%s is declared twice", d.name)
	}
	p.s.byName[d.name] = d
	p.s.decls = append(p.s.decls, d)
	return d
}

func (p *parser) enum(d *decl) {
	p.expect("{")
	next := int64(0)
	for !p.accept("}") {
		p.peek()
		v := enumVal{doc: p.takeDoc(), name: p.word(), value: next}
		if p.accept("=") {
			n, err := strconv.ParseInt(p.word(), 0, 64)
			if err != nil {
				p.failf("value of %s: %v", v.name, err)
			}
			v.value = n
		}
		next = v.value + 1
		d.values = append(d.values, v)
		if !p.accept(",") {
			p.expect("}")
			break
		}
	}
}

func (p *parser) field() *field {
	p.peek()
	f := &field{doc: p.takeDoc(), name: p.word()}
	p.expect(":")
	f.vector = p.accept("[")
	f.typ = p.word()
	// Types of included files are named with their namespace or without.
	f.typ = f.typ[strings.LastIndexByte(f.typ, '.')+1:]
	if f.vector {
		p.expect("]")
	}
	if p.accept("=") {
		f.def = p.word()
		if f.def == "null" {
			f.def, f.optional = "", true
		}
	}
	if p.accept("(") {
		for {
			switch a := p.word(); a {
			case "required":
				f.required = true
			case "deprecated":
				f.deprecated = true
			case "optional":
				f.optional = true
			case "force_align", "id":
				p.expect(":")
				n, err := strconv.Atoi(p.word())
				if err != nil || n < 0 {
					p.failf("%s of %s", a, f.name)
				}
				if a == "id" {
					f.id, f.hasID = n, true
				} else {
					f.align = n
				}
			default:
				p.failf("attribute %s is not supported", a)
			}
			if !p.accept(",") {
				break
			}
		}
		p.expect(")")
	}
	p.expect(";")
	return f
}

type scalarInfo struct {
	goType string
	size   int
	float  bool
}

var scalars = map[string]scalarInfo{
	"bool": {"bool", 1, false},
	"byte": {"int8", 1, false}, "int8": {"int8", 1, false}, "ubyte": {"uint8", 1, false}, "uint8": {"uint8", 1, false},
	"short": {"int16", 2, false}, "int16": {"int16", 2, false}, "ushort": {"uint16", 2, false}, "uint16": {"uint16", 2, false},
	"int": {"int32", 4, false}, "int32": {"int32", 4, false}, "uint": {"uint32", 4, false}, "uint32": {"uint32", 4, false},
	"long": {"int64", 8, false}, "int64": {"int64", 8, false}, "ulong": {"uint64", 8, false}, "uint64": {"uint64", 8, false},
	"float": {"float32", 4, true}, "float32": {"float32", 4, true}, "double": {"float64", 8, true}, "float64": {"float64", 8, true},
}

// resolve checks names and gives every field its slot.
func (s *schema) resolve() error {
	for _, d := range s.decls {
		bad := func(format string, args ...any) error {
			return fmt.Errorf("%s: %s: %s", d.pos, d.name, fmt.Sprintf(format, args...))
		}
		for _, m := range d.members {
			if t := s.byName[m.table]; t == nil || t.kind != kindTable {
				return bad("%s is no table", m.table)
			}
		}
		slot, ids := 0, 0
		used := map[int]bool{}
		for _, f := range d.fields {
			_, scalar := scalars[f.typ]
			t := s.byName[f.typ]
			switch {
			case !scalar && f.typ != "string" && t == nil:
				return bad("%s has unknown type %s", f.name, f.typ)
			case f.align != 0 && (!f.vector || f.align&(f.align-1) != 0 || f.align > 32):
				return bad("%s: force_align %d", f.name, f.align)
			case t != nil && t.kind == kindUnion && f.vector:
				return bad("%s: vectors of unions are not supported", f.name)
			case d.kind == kindStruct && (f.vector || f.hasID || f.def != "" || f.typ == "string" || t != nil && t.kind != kindEnum):
				return bad("%s: structs hold plain scalars here", f.name)
			case f.optional && !f.vector && !scalar && f.typ != "string" && (t == nil || t.kind != kindEnum):
				return bad("%s: only scalars and strings can be optional", f.name)
			}
			if t != nil && t.kind == kindEnum && !f.vector && f.def != "" && t.value(f.def) == nil {
				return bad("%s: %s has no value %s", f.name, f.typ, f.def)
			}
			union := t != nil && t.kind == kindUnion
			if f.hasID {
				ids++
			} else {
				if union {
					slot++
				}
				f.id = slot
				slot++
			}
			if used[f.id] || union && (f.id == 0 || used[f.id-1]) {
				return bad("%s: id %d is taken", f.name, f.id)
			}
			used[f.id] = true
			if union {
				used[f.id-1] = true
			}
		}
		if ids != 0 && ids != len(d.fields) {
			return bad("either all fields have an id or none")
		}
		for i := range len(used) {
			if !used[i] {
				return bad("no field has id %d", i)
			}
		}
	}
	if s.root != "" {
		if t := s.byName[s.root]; t == nil || t.kind != kindTable {
			return fmt.Errorf("root type %s is no table", s.root)
		}
	}
	return nil
}

func (d *decl) value(name string) *enumVal {
	for i := range d.values {
		if d.values[i].name == name {
			return &d.values[i]
		}
	}
	return nil
}
