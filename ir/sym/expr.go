// Package sym holds the symbolic integers of a program's shapes, and the
// booleans and floats computed from them.
//
// An Expr denotes an exact mathematical integer (or a float64, or a truth
// value): intermediate results never wrap. A constant needs no allocation, and
// integer expressions are kept as polynomials over atoms (symbols, floor
// divisions, remainders, maxima, …) in one order, so that two expressions that
// are equal as polynomials are Equal and print alike.
package sym

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// Kind is what an expression evaluates to.
type Kind uint8

// The kinds of expressions. Invalid is the kind of an expression whose Err is
// not nil.
const (
	Int Kind = iota
	Bool
	Float
	Invalid
)

// String returns the kind's name in lower case.
func (k Kind) String() string {
	switch k {
	case Int:
		return "int"
	case Bool:
		return "bool"
	case Float:
		return "float"
	}
	return "invalid"
}

type op uint8

// The order of these constants is the order of atoms in a printed monomial.
const (
	opSymbol op = iota
	opPoly
	opBool
	opFloat
	opFloorDiv
	opMod
	opMax
	opMin
	opAbs
	opPow // integer power whose exponent is not a small constant
	opAddBig
	opMulBig // sums and products left alone: a coefficient would overflow, or too many terms
	opBitAnd
	opBitOr
	opBitXor
	opDense // 1 if sizes and strides are non-overlapping and dense, else 0
	opWhere
	opEq
	opNe
	opLe
	opGe
	opLt
	opGt
	opAnd
	opOr
	opNot
	opToFloat
	opTrueDiv
	opFloatAdd
	opFloatMul
	opFloatPow
	opFloor
	opCeil
	opTrunc
	opRound
	opTruncFloat
	opRoundDecimal
	opUnary // named float function
	opBad
)

// Limits on one expression. What would exceed them becomes an invalid
// expression (see Err) instead of taking unbounded time.
const (
	maxSize  = 1 << 13 // nodes, counted as a tree
	maxDepth = 300
	maxTerms = 64      // largest product of sums that is multiplied out
	maxPower = 1 << 10 // largest total degree of a monomial
)

// Expr is an immutable symbolic expression. The zero value is the integer 0.
// Compare with Equal: == compares identities.
type Expr struct {
	k int64
	n *node // nil: the integer constant k
}

type node struct {
	op    op
	kind  Kind
	size  int32
	depth int32
	hash  uint64
	name  string  // symbol, unary function, or the message of an invalid expression
	f     float64 // opFloat
	args  []Expr
	terms []term // opPoly: sorted, coefficients nonzero
}

type term struct {
	c int64
	m []factor // sorted; empty for the constant term
}

type factor struct {
	x Expr // an atom: an integer expression that is neither a constant nor a polynomial
	p int32
}

// Const returns the integer k.
func Const(k int64) Expr { return Expr{k: k} }

// ConstBool returns the truth value b.
func ConstBool(b bool) Expr {
	if b {
		return exprTrue
	}
	return exprFalse
}

// ConstFloat returns the float64 f.
func ConstFloat(f float64) Expr {
	if math.IsNaN(f) {
		f = math.NaN() // one representation
	}
	n := &node{op: opFloat, kind: Float, size: 1, depth: 1, f: f}
	n.hash = mix(uint64(opFloat)+1, math.Float64bits(f))
	return Expr{n: n}
}

var (
	exprTrue  = newBool(1)
	exprFalse = newBool(0)
)

func newBool(k int64) Expr {
	return Expr{k: k, n: &node{op: opBool, kind: Bool, size: 1, depth: 1, hash: mix(uint64(opBool)+1, uint64(k))}}
}

// Symbol returns the symbol of that name. Names are identifiers other than the
// words of the text syntax; anything else gives an invalid expression. Symbols
// named zf or zuf and a number, as PyTorch names them, are floats, all others
// integers.
func Symbol(name string) Expr {
	if err := checkName(name); err != nil {
		return bad("%v", err)
	}
	n := &node{op: opSymbol, kind: Int, size: 1, depth: 1, name: name}
	if isFloatName(name) {
		n.kind = Float
	}
	n.hash = hashString(uint64(opSymbol)+1, name)
	return Expr{n: n}
}

func isFloatName(name string) bool {
	rest, ok := strings.CutPrefix(name, "zuf")
	if !ok {
		rest, ok = strings.CutPrefix(name, "zf")
	}
	if !ok || rest == "" {
		return false
	}
	for i := range len(rest) {
		if rest[i] < '0' || rest[i] > '9' {
			return false
		}
	}
	return true
}

func checkName(name string) error {
	if name == "" || len(name) > 128 {
		return fmt.Errorf("bad symbol name %.40q", name)
	}
	for i := range len(name) {
		if !isNameByte(name[i], i == 0) {
			return fmt.Errorf("bad symbol name %.40q", name)
		}
	}
	if reserved[name] {
		return fmt.Errorf("symbol name %q is a word of the expression syntax", name)
	}
	return nil
}

func isNameByte(c byte, first bool) bool {
	return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || !first && '0' <= c && c <= '9'
}

// IsConst returns the value of an integer constant.
func (e Expr) IsConst() (int64, bool) { return e.k, e.n == nil }

// IsConstValue reports whether e is the integer k.
func (e Expr) IsConstValue(k int64) bool { return e.n == nil && e.k == k }

// IsSymbol returns the name of an expression that is one symbol.
func (e Expr) IsSymbol() (string, bool) {
	if e.n != nil && e.n.op == opSymbol {
		return e.n.name, true
	}
	return "", false
}

// IsBool returns the value of a constant truth value.
func (e Expr) IsBool() (value, ok bool) {
	if e.n != nil && e.n.op == opBool {
		return e.k != 0, true
	}
	return false, false
}

// IsFloat returns the value of a float constant.
func (e Expr) IsFloat() (float64, bool) {
	if e.n != nil && e.n.op == opFloat {
		return e.n.f, true
	}
	return 0, false
}

// Kind returns what e evaluates to.
func (e Expr) Kind() Kind {
	if e.n == nil {
		return Int
	}
	return e.n.kind
}

// Err returns why e is not an expression: operands of the wrong kind, a bad
// symbol name, or more nodes than one expression may have. Operations on an
// invalid expression give an invalid expression; evaluating one returns Err.
func (e Expr) Err() error {
	if e.n != nil && e.n.op == opBad {
		return errors.New(e.n.name)
	}
	return nil
}

// Hash returns a value that is the same for Equal expressions, in every run.
func (e Expr) Hash() uint64 {
	if e.n == nil {
		return mix(0, uint64(e.k))
	}
	return e.n.hash
}

// Equal reports whether a and b are the same expression. Equal expressions
// have equal values; the reverse holds for polynomials, and for the rest as far
// as simplification goes (see Table.ProveEq).
func (e Expr) Equal(b Expr) bool {
	if e.n == b.n {
		return e.k == b.k
	}
	if e.n == nil || b.n == nil || e.n.hash != b.n.hash {
		return false
	}
	return compare(e, b) == 0
}

func bad(format string, args ...any) Expr {
	msg := fmt.Sprintf(format, args...)
	return Expr{n: &node{op: opBad, kind: Invalid, size: 1, depth: 1, name: msg, hash: hashString(uint64(opBad)+1, msg)}}
}

func (e Expr) isBad() bool { return e.n != nil && e.n.op == opBad }

func (e Expr) is(o op) bool { return e.n != nil && e.n.op == o }

func (e Expr) size() int32 {
	if e.n == nil {
		return 1
	}
	return e.n.size
}

func (e Expr) depth() int32 {
	if e.n == nil {
		return 1
	}
	return e.n.depth
}

// mk makes a node, or an invalid expression where an argument is one or a limit
// is exceeded. It keeps args.
func mk(o op, kind Kind, args ...Expr) Expr { return mkNamed(o, kind, "", args...) }

func mkNamed(o op, kind Kind, name string, args ...Expr) Expr {
	n := &node{op: o, kind: kind, args: args, name: name}
	h := hashString(uint64(o)+1, name)
	size, depth := int64(1), int32(0)
	for _, a := range args {
		if a.isBad() {
			return a
		}
		h = mix(h, a.Hash())
		size += int64(a.size())
		depth = max(depth, a.depth())
	}
	return finish(n, h, size, depth)
}

func mkPoly(ts []term) Expr {
	n := &node{op: opPoly, kind: Int, terms: ts}
	h := uint64(opPoly) + 1
	size, depth := int64(1), int32(0)
	for _, t := range ts {
		h = mix(h, uint64(t.c))
		size++
		for _, f := range t.m {
			h = mix(mix(h, f.x.Hash()), uint64(f.p))
			size += int64(f.x.size())
			depth = max(depth, f.x.depth())
		}
	}
	return finish(n, h, size, depth)
}

func finish(n *node, h uint64, size int64, depth int32) Expr {
	if size > maxSize {
		return bad("expression has more than %d nodes", maxSize)
	}
	if depth >= maxDepth {
		return bad("expression is nested more than %d deep", maxDepth)
	}
	n.hash, n.size, n.depth = h, int32(size), depth+1
	return Expr{n: n}
}

func mix(h, x uint64) uint64 {
	h ^= x + 0x9e3779b97f4a7c15 + h<<6 + h>>2
	h *= 0xff51afd7ed558ccd
	return h ^ h>>32
}

func hashString(h uint64, s string) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 0x100000001b3
	}
	return mix(h, uint64(len(s)))
}

// compare is a total order on expressions that depends on their structure alone.
func compare(a, b Expr) int {
	if a.n == b.n {
		return cmpInt(a.k, b.k)
	}
	if a.n == nil {
		return -1
	}
	if b.n == nil {
		return 1
	}
	x, y := a.n, b.n
	if x.op != y.op {
		return cmpInt(int64(x.op), int64(y.op))
	}
	switch x.op {
	case opBool:
		return cmpInt(a.k, b.k)
	case opFloat:
		return cmpInt(int64(math.Float64bits(x.f)), int64(math.Float64bits(y.f)))
	case opSymbol:
		return compareNames(x.name, y.name)
	case opPoly:
		for i := range min(len(x.terms), len(y.terms)) {
			if c := compareMonomials(x.terms[i].m, y.terms[i].m); c != 0 {
				return c
			}
			if c := cmpInt(x.terms[i].c, y.terms[i].c); c != 0 {
				return c
			}
		}
		return cmpInt(int64(len(x.terms)), int64(len(y.terms)))
	}
	if c := strings.Compare(x.name, y.name); c != 0 {
		return c
	}
	for i := range min(len(x.args), len(y.args)) {
		if c := compare(x.args[i], y.args[i]); c != 0 {
			return c
		}
	}
	return cmpInt(int64(len(x.args)), int64(len(y.args)))
}

func cmpInt(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// compareNames orders s2 before s10.
func compareNames(a, b string) int {
	if a == b {
		return 0
	}
	pa, da := splitDigits(a)
	pb, db := splitDigits(b)
	if c := strings.Compare(pa, pb); c != 0 {
		return c
	}
	ta, tb := strings.TrimLeft(da, "0"), strings.TrimLeft(db, "0")
	if c := cmpInt(int64(len(ta)), int64(len(tb))); c != 0 {
		return c
	}
	if c := strings.Compare(ta, tb); c != 0 {
		return c
	}
	return strings.Compare(a, b)
}

func splitDigits(s string) (prefix, digits string) {
	i := len(s)
	for i > 0 && '0' <= s[i-1] && s[i-1] <= '9' {
		i--
	}
	return s[:i], s[i:]
}
