package passes

import (
	"fmt"
	"strings"
)

// Matcher decides which rewrites are on, by the pattern that golang.org/x/tools/cmd/bisect passes to the program it runs:
// "y", "n", or suffixes of the rewrites' identities in binary ("01") or hexadecimal ("x5f"), each added by + or taken out
// by -; a leading "!" turns the answer around, "v" prints every site, "q" none.
type Matcher struct {
	verbose, quiet, invert bool
	terms                  []term
}

type term struct {
	mask, bits uint64
	in         bool
}

// ParseMatcher reads a pattern; the empty one gives nil, which leaves all on.
func ParseMatcher(pattern string) (*Matcher, error) {
	if pattern == "" {
		return nil, nil
	}
	bad := fmt.Errorf("bad bisection pattern %q", pattern)
	m := &Matcher{}
	p := pattern
	for p != "" && strings.ContainsRune("vq!", rune(p[0])) {
		switch p[0] {
		case 'v':
			m.verbose = true
		case 'q':
			m.quiet = true
		default:
			m.invert = !m.invert
		}
		p = p[1:]
	}
	if p == "n" {
		m.invert = !m.invert
		p = "y"
	}
	for first := true; p != ""; first = false {
		in := true
		if p[0] == '+' || p[0] == '-' {
			in = p[0] == '+'
			p = p[1:]
		} else if !first {
			return nil, bad
		}
		end := strings.IndexAny(p, "+-")
		if end < 0 {
			end = len(p)
		}
		t, ok := parseTerm(p[:end])
		if !ok {
			return nil, bad
		}
		t.in = in
		m.terms = append(m.terms, t)
		p = p[end:]
	}
	if len(m.terms) == 0 {
		return nil, bad
	}
	return m, nil
}

func parseTerm(s string) (t term, ok bool) {
	if s == "y" {
		return term{}, true
	}
	width := uint64(1)
	if strings.HasPrefix(s, "x") {
		width = 4
		s = s[1:]
	}
	if s == "" || uint64(len(s))*width > 64 {
		return t, false
	}
	for _, c := range s {
		d := strings.IndexRune("0123456789abcdef", c)
		if d < 0 || d >= 1<<width {
			return t, false
		}
		t.mask = t.mask<<width | (1<<width - 1)
		t.bits = t.bits<<width | uint64(d)
	}
	return t, true
}

func (m *Matcher) match(id uint64) bool {
	for i := len(m.terms) - 1; i >= 0; i-- {
		if t := m.terms[i]; id&t.mask == t.bits {
			return t.in
		}
	}
	return false
}

// Enabled tells whether the rewrite of that identity is on.
func (m *Matcher) Enabled(id uint64) bool { return m == nil || m.match(id) != m.invert }

// Printed tells whether the rewrite is to be written to the log.
func (m *Matcher) Printed(id uint64) bool {
	return m != nil && !m.quiet && (m.verbose || m.match(id))
}

// Marker is the text in a line of the log by which the tool knows the rewrite.
func Marker(id uint64) string { return fmt.Sprintf("[bisect-match 0x%016x]", id) }
