package pt2

import (
	"strconv"
	"strings"

	"github.com/lathe-ml/lathe/ir"
)

// A stack deeper than this, and a line of source longer than that, is cut.
const (
	maxFrames = 64
	maxCode   = 200
)

// origins makes the origins of nodes; equal stacks are parsed once.
type origins struct {
	stacks  map[string][]ir.Frame
	modules map[string][2]string
}

func newOrigins() *origins {
	return &origins{stacks: map[string][]ir.Frame{}, modules: map[string][2]string{}}
}

func (o *origins) origin(name, stack, modules string) *ir.Origin {
	fs, ok := o.stacks[stack]
	if !ok {
		fs = parseStack(stack)
		o.stacks[stack] = fs
	}
	m, ok := o.modules[modules]
	if !ok {
		m[0], m[1] = parseModules(modules)
		o.modules[modules] = m
	}
	return &ir.Origin{Frames: fs, Module: m[0], Class: m[1], Name: name}
}

// parseStack reads Python's traceback text: `File "f.py", line 3, in forward`, followed by the line of source.
func parseStack(s string) []ir.Frame {
	var fs []ir.Frame
	for s != "" {
		var line string
		line, s, _ = strings.Cut(s, "\n")
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, `File "`); ok {
			file, rest, ok := strings.Cut(rest, `", line `)
			if !ok {
				continue
			}
			num, fn, _ := strings.Cut(rest, ", in ")
			n, err := strconv.Atoi(strings.TrimSpace(num))
			if err != nil || n < 0 {
				continue
			}
			if len(fs) == maxFrames {
				// The innermost lines are those wanted.
				copy(fs, fs[1:])
				fs = fs[:maxFrames-1]
			}
			fs = append(fs, ir.Frame{File: clean(file), Line: n, Func: clean(fn), Library: library(file)})
			continue
		}
		if len(fs) > 0 && fs[len(fs)-1].Code == "" {
			fs[len(fs)-1].Code = clean(line)
		}
	}
	return fs
}

// clean makes text fit for messages: what is not printable is escaped, what is long is cut.
func clean(s string) string {
	cut := ""
	if len(s) > maxCode {
		s, cut = strings.ToValidUTF8(s[:maxCode], ""), "…"
	}
	if strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		q := strconv.Quote(s)
		s = strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
	}
	return s + cut
}

// library tells files that are not the model's: torch and its relatives, generated code, Python's own library.
func library(file string) bool {
	if strings.HasPrefix(file, "<") {
		return true
	}
	file = strings.ReplaceAll(file, `\`, "/")
	for _, dir := range [...]string{"/site-packages/", "/dist-packages/"} {
		if _, pkg, ok := strings.Cut(file, dir); ok {
			for _, p := range [...]string{"torch/", "torchao/", "functorch/"} {
				if strings.HasPrefix(pkg, p) {
					return true
				}
			}
			return false
		}
	}
	if strings.HasPrefix(file, "torch/") {
		return true // the exporter writes some paths of its own in a short form
	}
	_, lib, ok := strings.Cut(file, "/lib/python3")
	return ok && strings.Contains(lib, "/")
}

// parseModules reads a module stack, "key,path,class;…", outermost first, and gives path and class of the innermost.
func parseModules(s string) (path, class string) {
	last := s
	depth := 0
	for i := len(s) - 1; i >= 0; i-- {
		switch s[i] {
		case ')', ']':
			depth++
		case '(', '[':
			depth--
		case ';':
			if depth == 0 {
				last = s[i+1:]
				i = -1
			}
		}
	}
	_, rest, ok := strings.Cut(last, ",")
	if !ok {
		return "", ""
	}
	i := strings.LastIndexByte(rest, ',')
	if i < 0 {
		return "", ""
	}
	path, class = rest[:i], rest[i+1:]
	if strings.HasPrefix(path, "_empty_nn_module_stack") {
		return "", "" // the exporter's word for none
	}
	path, _, _ = strings.Cut(path, "@")
	path = strings.TrimPrefix(strings.TrimPrefix(path, "L['self']"), ".")
	return clean(path), clean(class)
}
