package sym

import (
	"fmt"
	"strings"
)

// SyntaxError says where the text of an expression is wrong.
type SyntaxError struct {
	Src string // the text, shortened around Pos
	Pos int    // byte offset in the full text
	Msg string
}

// Error returns the message with the place.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("expression %q, at offset %d: %s", e.Src, e.Pos, e.Msg)
}

type tokenKind uint8

const (
	tokEnd tokenKind = iota
	tokInt
	tokFloat
	tokName
	tokString // Python string, without its quotes
	tokOp
)

type token struct {
	kind tokenKind
	text string
	pos  int
}

// lexer splits the text of both syntaxes, which share Python's tokens. It keeps
// the first error.
type lexer struct {
	src   string
	pos   int
	tok   token // the current token
	depth int
	limit int // on depth
	err   error
}

func (l *lexer) start(src string, maxLen, maxNest int) {
	l.src, l.limit = src, maxNest
	if len(src) > maxLen {
		l.fail(0, "text of %d bytes is longer than %d", len(src), maxLen)
		return
	}
	l.next()
}

// fail records an error at pos and ends the input.
func (l *lexer) fail(pos int, format string, args ...any) {
	if l.err == nil {
		lo, hi := max(0, pos-30), min(len(l.src), pos+30)
		s := l.src[lo:hi]
		if lo > 0 {
			s = "..." + s
		}
		if hi < len(l.src) {
			s += "..."
		}
		l.err = &SyntaxError{Src: s, Pos: pos, Msg: fmt.Sprintf(format, args...)}
	}
	l.tok = token{pos: len(l.src)}
	l.pos = len(l.src)
}

// enter counts one level of nesting; leave ends it.
func (l *lexer) enter() bool {
	if l.depth++; l.depth > l.limit {
		l.fail(l.tok.pos, "nested more than %d deep", l.limit)
		return false
	}
	return true
}

func (l *lexer) leave() { l.depth-- }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func (l *lexer) next() {
	s, i := l.src, l.pos
	for i < len(s) && (s[i] == ' ' || s[i] == '\t' || s[i] == '\n' || s[i] == '\r') {
		i++
	}
	start := i
	if i == len(s) {
		l.pos, l.tok = i, token{pos: i}
		return
	}
	kind := tokOp
	switch c := s[i]; {
	case isNameByte(c, true):
		kind = tokName
		for i < len(s) && isNameByte(s[i], false) {
			i++
		}
	case isDigit(c) || c == '.' && i+1 < len(s) && isDigit(s[i+1]):
		kind = tokInt
		for i < len(s) && isDigit(s[i]) {
			i++
		}
		if i < len(s) && s[i] == '.' {
			kind = tokFloat
			for i++; i < len(s) && isDigit(s[i]); i++ {
			}
		}
		if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
			j := i + 1
			if j < len(s) && (s[j] == '+' || s[j] == '-') {
				j++
			}
			if j < len(s) && isDigit(s[j]) {
				kind = tokFloat
				for i = j; i < len(s) && isDigit(s[i]); i++ {
				}
			}
		}
		if i < len(s) && isNameByte(s[i], false) {
			l.fail(start, "malformed number")
			return
		}
	case c == '\'' || c == '"':
		end := strings.IndexByte(s[i+1:], c)
		if end < 0 || strings.IndexByte(s[i+1:i+1+end], '\\') >= 0 {
			l.fail(start, "malformed string")
			return
		}
		l.pos = i + end + 2
		l.tok = token{tokString, s[i+1 : i+1+end], start}
		return
	default:
		i++
		if i < len(s) {
			switch s[start : i+1] {
			case "**", "//", "<<", ">>", "<=", ">=", "==", "!=":
				i++
			}
		}
		if i == start+1 && strings.IndexByte("+-*/%<>&|^~()[],.=", c) < 0 {
			l.fail(start, "unexpected character %q", c)
			return
		}
	}
	l.pos, l.tok = i, token{kind, s[start:i], start}
}

// accept skips the operator or word text if it is next.
func (l *lexer) accept(text string) bool {
	if (l.tok.kind == tokOp || l.tok.kind == tokName) && l.tok.text == text {
		l.next()
		return true
	}
	return false
}

func (l *lexer) expect(text string) {
	if !l.accept(text) {
		l.unexpected(fmt.Sprintf("%q", text))
	}
}

func (l *lexer) unexpected(want string) {
	if l.tok.kind == tokEnd {
		l.fail(l.tok.pos, "ends where %s should stand", want)
	} else {
		l.fail(l.tok.pos, "%.40q where %s should stand", l.tok.text, want)
	}
}
