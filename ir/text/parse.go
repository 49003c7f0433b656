package text

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// Options are the reader's choices.
type Options struct {
	// Data gives the contents of the parameter, buffer or constant of that name; nil where it has none.
	Data func(name string) *ir.Data
}

// Error is a fault of the text with its place, both counted from one.
type Error struct {
	Line, Col int
	Msg       string
}

// Error is "line:column: message".
func (e *Error) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Col, e.Msg) }

// Parse reads a text of exactly one root graph.
func Parse(src string, o Options) (*ir.Graph, error) {
	p, err := ParseProgram(src, o)
	if err != nil {
		return nil, err
	}
	if len(p.Methods) != 1 {
		return nil, fmt.Errorf("the text has %d graphs, not one", len(p.Methods))
	}
	return p.Methods[0], nil
}

// ParseProgram reads any number of root graphs. Contents named alike are the same Data in all of them where Options.Data
// says so.
func ParseProgram(src string, o Options) (prog *ir.Program, err error) {
	p := &parser{src: src, o: o}
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(*Error)
			if !ok {
				panic(r)
			}
			prog, err = nil, e
		}
	}()
	prog = &ir.Program{}
	for p.skip(); p.pos < len(p.src); p.skip() {
		g := p.root()
		if prog.Method(g.Name) != nil {
			p.fail("graph @%s is here twice", g.Name)
		}
		prog.Methods = append(prog.Methods, g)
	}
	return prog, nil
}

// Limits of nesting: text from elsewhere must not exhaust the stack.
const (
	maxDepth = 100
	maxRank  = 64
)

type parser struct {
	src   string
	pos   int
	o     Options
	depth int
	syms  *sym.Table
	locs  []pendingLoc
}

type pendingLoc struct {
	n        *ir.Node
	loc, pos int
}

// fail ends the parse; ParseProgram turns it into an error.
func (p *parser) fail(format string, args ...any) { p.failAt(p.pos, format, args...) }

func (p *parser) failAt(pos int, format string, args ...any) {
	pos = min(pos, len(p.src))
	line := 1 + strings.Count(p.src[:pos], "\n")
	start := strings.LastIndexByte(p.src[:pos], '\n') + 1
	panic(&Error{line, 1 + utf8.RuneCountInString(p.src[start:pos]), fmt.Sprintf(format, args...)})
}

// skip passes white space and comments (; to the end of the line).
func (p *parser) skip() {
	for p.pos < len(p.src) {
		switch c := p.src[p.pos]; {
		case c == ' ' || c == '\n' || c == '\t' || c == '\r':
			p.pos++
		case c == ';':
			if i := strings.IndexByte(p.src[p.pos:], '\n'); i >= 0 {
				p.pos += i
			} else {
				p.pos = len(p.src)
			}
		default:
			return
		}
	}
}

// here is the place of the next byte that is not white space.
func (p *parser) here() int {
	p.skip()
	return p.pos
}

// peek is the next byte that is not white space, 0 at the end.
func (p *parser) peek() byte {
	p.skip()
	if p.pos < len(p.src) {
		return p.src[p.pos]
	}
	return 0
}

// accept passes c if it is next.
func (p *parser) accept(c byte) bool {
	if p.peek() == c {
		p.pos++
		return true
	}
	return false
}

func (p *parser) expect(c byte) {
	if !p.accept(c) {
		p.fail("expected %q, found %s", c, p.found())
	}
}

func (p *parser) found() string {
	p.skip()
	rest := p.src[p.pos:]
	if rest == "" {
		return "the end"
	}
	i := 0
	for i < len(rest) && isIdentByte(rest[i]) {
		i++
	}
	if i == 0 {
		_, i = utf8.DecodeRuneInString(rest)
	}
	return strconv.Quote(rest[:min(i, 40)])
}

// word is the identifier that is next, without passing it.
func (p *parser) word() string {
	p.skip()
	i := p.pos
	for i < len(p.src) && isIdentByte(p.src[i]) {
		i++
	}
	return p.src[p.pos:i]
}

func (p *parser) acceptWord(w string) bool {
	if p.word() == w {
		p.pos += len(w)
		return true
	}
	return false
}

func (p *parser) expectWord(w string) {
	if !p.acceptWord(w) {
		p.fail("expected %q, found %s", w, p.found())
	}
}

// ident is a bare or quoted name.
func (p *parser) ident() string {
	if c := p.peek(); c == '"' || c == '`' {
		return p.str()
	}
	w := p.word()
	if w == "" {
		p.fail("expected a name, found %s", p.found())
	}
	p.pos += len(w)
	return w
}

func (p *parser) str() string {
	p.skip()
	q, err := strconv.QuotedPrefix(p.src[p.pos:])
	if err != nil || q[0] == '\'' {
		p.fail("expected a string, found %s", p.found())
	}
	s, err := strconv.Unquote(q)
	if err != nil {
		p.fail("bad string")
	}
	p.pos += len(q)
	return s
}

func (p *parser) integer() int64 {
	p.skip()
	i := p.pos
	if i < len(p.src) && p.src[i] == '-' {
		i++
	}
	for i < len(p.src) && '0' <= p.src[i] && p.src[i] <= '9' {
		i++
	}
	k, err := strconv.ParseInt(p.src[p.pos:i], 10, 64)
	if err != nil {
		p.fail("expected an integer, found %s", p.found())
	}
	p.pos = i
	return k
}

func (p *parser) nest() {
	if p.depth++; p.depth > maxDepth {
		p.fail("nested more than %d deep", maxDepth)
	}
}

func (p *parser) root() *ir.Graph {
	p.syms = &sym.Table{}
	p.locs = nil
	for p.acceptWord("sym") {
		p.sym()
	}
	g := p.graph(nil)
	p.trailer(g)
	return g
}

func (p *parser) sym() {
	at := p.here()
	s := sym.Sym{Name: p.ident()}
	p.expectWord("in")
	p.expect('[')
	s.Range.Min = p.bound(math.MinInt64)
	p.expect(',')
	s.Range.Max = p.bound(math.MaxInt64)
	p.expect(']')
	if p.acceptWord("hint") {
		s.HasHint, s.Hint = true, p.integer()
	}
	if _, dup := p.syms.Get(s.Name); dup {
		p.failAt(at, "symbol %s is here twice", s.Name)
	}
	if err := p.syms.Add(s); err != nil {
		p.failAt(at, "%v", err)
	}
}

func (p *parser) bound(open int64) int64 {
	p.skip()
	start := p.pos
	if p.pos < len(p.src) && p.src[p.pos] == '-' {
		p.pos++
	}
	if p.acceptWord("inf") {
		if p.src[start] == '-' != (open < 0) {
			p.failAt(start, "this end of a range cannot be infinite")
		}
		return open
	}
	p.pos = start
	return p.integer()
}

// scope holds the values of one graph by name.
type scope struct {
	g    *ir.Graph
	vals map[string]*ir.Value
}

func (p *parser) define(s *scope, name string, v *ir.Value, at int) {
	if s.vals[name] != nil {
		p.failAt(at, "%%%s is defined twice", name)
	}
	s.vals[name] = v
	if !isNumber(name) {
		v.Name = name
	}
}

// graph reads from "graph" to the closing brace.
func (p *parser) graph(parent *scope) *ir.Graph {
	p.nest()
	defer func() { p.depth-- }()
	p.expectWord("graph")
	p.expect('@')
	s := &scope{g: ir.NewGraph(p.ident(), p.syms), vals: map[string]*ir.Value{}}
	p.expect('(')
	for first := true; !p.accept(')'); first = false {
		if !first {
			p.expect(',')
		}
		p.input(s, parent != nil)
	}
	p.expect('-')
	p.expect('>')
	p.expect('(')
	// Outputs name values that come later: they are read again after the body.
	outs := p.pos
	p.passOutputs()
	if p.acceptWord("stage") {
		p.stage(s.g)
	}
	p.expect('{')
	for !p.accept('}') {
		p.node(s)
	}
	end := p.pos
	p.pos = outs
	p.outputs(s)
	p.pos = end
	return s.g
}

func (p *parser) stage(g *ir.Graph) {
	at := p.here()
	w := p.ident()
	for st := ops.StageAten; st <= ops.StageLowered; st++ {
		if st.String() == w {
			g.Stage = st
			return
		}
	}
	p.failAt(at, "no stage is called %q", w)
}

// passOutputs passes the text of an output list up to its closing parenthesis.
func (p *parser) passOutputs() {
	depth := 1
	for {
		switch c := p.peek(); c {
		case 0:
			p.fail("output list is not closed")
		case '"', '`':
			p.str()
			continue
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		case '{':
			p.fail("output list is not closed")
		}
		p.pos++
		if depth == 0 {
			return
		}
	}
}

func (p *parser) outputs(s *scope) {
	var outs []ir.Output
	var args []ir.Arg
	for first := true; !p.accept(')'); first = false {
		if !first {
			p.expect(',')
		}
		var o ir.Output
		if p.acceptWord("mut") {
			at := p.here()
			v := p.value(s)
			if v.Input == nil {
				p.failAt(at, "%%%s is no input", v.Name)
			}
			o.Target = v.Input
			o.Kind = ir.OutputBufferMutation
			if v.Input.Kind == ir.InputUser {
				o.Kind = ir.OutputInputMutation
			}
			p.expect('=')
		}
		outs = append(outs, o)
		args = append(args, p.arg(s, ops.TAny))
	}
	s.g.SetOutputs(outs, args)
}

var inputKinds = map[string]ir.InputKind{
	"user": ir.InputUser, "param": ir.InputParam, "buffer": ir.InputBuffer, "const": ir.InputConst, "operand": ir.InputOperand,
}

func (p *parser) input(s *scope, nested bool) {
	p.expect('%')
	at := p.here()
	name := p.ident()
	p.expect(':')
	t := p.typ()
	kind, ok := inputKinds[p.word()]
	switch {
	case ok:
		p.pos += len(p.word())
	case nested:
		kind = ir.InputOperand
	default:
		p.fail("expected the kind of input %%%s, found %s", name, p.found())
	}
	in := s.g.AddInput("", kind, "", t)
	p.define(s, name, in.Value, at)
	if c := p.peek(); c == '"' || c == '`' {
		in.Target = p.str()
	}
	in.Persistent = kind == ir.InputBuffer && !p.acceptWord("transient")
	if p.acceptWord("fixed") {
		in.HasFixed = true
		in.Fixed = p.arg(s, ops.TAny)
	}
	switch {
	case p.accept('='):
		in.Data = p.data(t)
	case p.o.Data != nil && in.Target != "" && kind != ir.InputUser && kind != ir.InputOperand:
		in.Data = p.o.Data(in.Target)
	}
}

// data reads contents and lays them out as the type's strides say.
func (p *parser) data(t ir.Type) *ir.Data {
	at := p.here()
	sizes, ok := t.Sizes()
	if !t.IsTensor() || !ok {
		p.fail("contents need a tensor type with constant sizes")
	}
	n := int64(1)
	for _, k := range sizes {
		if k < 0 || k > MaxInline {
			p.fail("contents of a tensor of %s: at most %d elements are written so", t, MaxInline)
		}
		if n *= k; n > MaxInline {
			p.fail("contents of a tensor of %s: at most %d elements are written so", t, MaxInline)
		}
	}
	size := t.DType.Size()
	var flat []byte
	p.expect('[')
	for first := true; !p.accept(']'); first = false {
		if !first {
			p.expect(',')
		}
		p.skip()
		start := p.pos
		for p.pos < len(p.src) && (isIdentByte(p.src[p.pos]) || p.src[p.pos] == '-' || p.src[p.pos] == '+') {
			p.pos++
		}
		b, err := parseElem(t.DType, p.src[start:p.pos])
		if err != nil {
			p.failAt(start, "%v", err)
		}
		flat = append(flat, b...)
	}
	if int64(len(flat)) != n*size {
		p.failAt(at, "%d elements, %s has %d", int64(len(flat))/size, t, n)
	}
	d := ir.NewData(t.DType, sizes, flat)
	strides := t.NormStrides()
	if strides == nil || n == 0 {
		return d
	}
	st, ok := ir.ConstInts(strides)
	if !ok {
		p.failAt(at, "contents of a tensor with symbolic strides")
	}
	span := int64(1)
	for i, k := range st {
		if k < 0 || k > 1<<20 {
			p.failAt(at, "stride %d of a tensor with contents", k)
		}
		span += (sizes[i] - 1) * k
	}
	laid := make([]byte, span*size)
	idx := make([]int64, len(sizes))
	for i := int64(0); i < n; i++ {
		pos := int64(0)
		rest := i
		for j := len(sizes) - 1; j >= 0; j-- {
			idx[j] = rest % sizes[j]
			rest /= sizes[j]
			pos += idx[j] * st[j]
		}
		copy(laid[pos*size:], flat[i*size:(i+1)*size])
	}
	d.Storage, d.Strides = ir.MemStorage(laid), st
	return d
}

func (p *parser) node(s *scope) {
	type result struct {
		name string
		pos  int
	}
	var results []result
	for p.peek() == '%' {
		p.pos++
		at := p.here()
		results = append(results, result{p.ident(), at})
		if !p.accept(',') {
			break
		}
	}
	if len(results) > 0 {
		p.expect('=')
	}
	at := p.here()
	var id ops.ID
	var target string
	if c := p.peek(); c == '"' || c == '`' {
		target = p.str()
		if target == "" {
			p.failAt(at, "an operator without a name")
		}
	} else {
		name := p.ident()
		if id = ops.Lookup(name); id == ops.Unknown {
			p.failAt(at, "no operator is called %s; one that the table does not hold is written in quotes", name)
		}
	}
	p.expect('(')
	args, names := p.args(s, id, at)
	var types []ir.Type
	if len(results) > 0 {
		p.expect(':')
		for i := range results {
			if i > 0 {
				p.expect(',')
			}
			types = append(types, p.typ())
		}
	}
	n := s.g.NewNode(s.g.Ret(), id, args, types, nil)
	n.Target, n.ArgNames = target, names
	for i, r := range results {
		p.define(s, r.name, n.Outs[i], r.pos)
	}
	if p.accept('@') {
		at := p.here()
		p.locs = append(p.locs, pendingLoc{n, p.index(), at})
	}
}

func (p *parser) index() int {
	at := p.here()
	k := p.integer()
	if k < 0 || k > math.MaxInt32 {
		p.failAt(at, "number %d is out of range", k)
	}
	return int(k)
}

// args reads arguments to the closing parenthesis. The names are those of an unknown operator.
func (p *parser) args(s *scope, id ops.ID, opPos int) (args []ir.Arg, names []string) {
	var schema []ops.Arg
	var given []bool
	if id != ops.Unknown {
		schema = id.Info().Schema.Args
		args = op.Defaults(id)
		given = make([]bool, len(args))
	}
	named := false
	for k := 0; !p.accept(')'); k++ {
		if k > 0 {
			p.expect(',')
		}
		at := p.here()
		name, hasName := p.argName()
		if id == ops.Unknown {
			args = append(args, p.arg(s, ops.TAny))
			names = append(names, name)
			named = named || hasName
			continue
		}
		i := k
		if hasName {
			named = true
			if i = id.Info().ArgIndex(name); i < 0 {
				p.failAt(at, "%s has no argument %s", id, name)
			}
		} else if named {
			p.failAt(at, "an argument by place after one by name")
		}
		if i >= len(schema) {
			p.failAt(at, "%s has %d arguments", id, len(schema))
		}
		if given[i] {
			p.failAt(at, "argument %s is here twice", schema[i].Name)
		}
		given[i] = true
		args[i] = p.arg(s, schema[i].Type)
	}
	for i := range schema {
		if !given[i] && !schema[i].HasDefault {
			p.failAt(opPos, "%s needs the argument %s", id, schema[i].Name)
		}
	}
	if !named {
		names = nil
	}
	return args, names
}

// argName passes `name=`.
func (p *parser) argName() (string, bool) {
	p.skip()
	start := p.pos
	var name string
	switch c := p.peek(); {
	case c == '"' || c == '`':
		name = p.str()
	default:
		name = p.word()
		p.pos += len(name)
	}
	if name == "" || p.peek() != '=' || strings.HasPrefix(p.src[p.pos:], "==") {
		p.pos = start
		return "", false
	}
	p.pos++
	return name, true
}

func (p *parser) value(s *scope) *ir.Value {
	p.expect('%')
	at := p.here()
	name := p.ident()
	v := s.vals[name]
	if v == nil {
		p.failAt(at, "%%%s is not defined before this", name)
	}
	return v
}

func (p *parser) arg(s *scope, typ ops.ArgType) ir.Arg {
	p.nest()
	defer func() { p.depth-- }()
	switch c := p.peek(); c {
	case '%':
		return ir.RefAny(p.value(s))
	case '"', '`':
		at := p.here()
		t := p.str()
		if typ == ops.TDevice {
			return ir.Device(t)
		}
		if typ == ops.TDType || typ == ops.TLayout || typ == ops.TMemoryFormat {
			p.failAt(at, "a string is not what this argument takes")
		}
		return ir.Str(t)
	case '[':
		p.pos++
		var l []ir.Arg
		for !p.accept(']') {
			if len(l) > 0 {
				p.expect(',')
			}
			l = append(l, p.arg(s, typ))
		}
		return ir.List(l...)
	}
	at := p.here()
	w := p.word()
	after := at + len(w)
	call := after < len(p.src) && p.src[after] == '('
	switch {
	case w == "none":
		p.pos = after
		return ir.None
	case w == "graph":
		return ir.GraphArg(p.graph(s))
	case call && w == "complex":
		p.pos = after + 1
		re := p.float()
		p.expect(',')
		im := p.float()
		p.expect(')')
		return ir.Complex(re, im)
	case call && (w == "dtype" || w == "layout" || w == "memory" || w == "device"):
		p.pos = after + 1
		a := p.named(w)
		p.expect(')')
		return a
	case typ == ops.TDType:
		return p.named("dtype")
	case typ == ops.TLayout:
		return p.named("layout")
	case typ == ops.TMemoryFormat:
		return p.named("memory")
	}
	text := p.passExpr()
	switch text {
	case "true", "false":
		return ir.Bool(text == "true")
	}
	if isFloatText(text) {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			p.failAt(at, "bad number %q", text)
		}
		return ir.Float(f)
	}
	return ir.SymInt(p.parseExpr(text, at))
}

func (p *parser) named(kind string) ir.Arg {
	at := p.here()
	w := p.ident()
	switch kind {
	case "dtype":
		d, ok := ops.ParseDType(w)
		if !ok {
			p.failAt(at, "no element type is called %q", w)
		}
		return ir.DTypeArg(d)
	case "layout":
		return ir.Layout(w)
	case "memory":
		return ir.MemoryFormat(w)
	}
	return ir.Device(w)
}

func (p *parser) float() float64 {
	p.skip()
	at := p.here()
	text := p.passExpr()
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !isFloatText(text) {
		p.failAt(at, "expected a float, found %q", text)
	}
	return f
}

// isFloatText tells a float literal from an integer expression.
func isFloatText(s string) bool {
	switch s {
	case "nan", "inf", "-inf":
		return true
	}
	s = strings.TrimPrefix(s, "-")
	if s == "" || s[0] < '0' || s[0] > '9' {
		return false
	}
	dot := false
	for i := range len(s) {
		switch c := s[i]; {
		case '0' <= c && c <= '9':
		case c == '.' || c == 'e':
			dot = true
		case (c == '-' || c == '+') && s[i-1] == 'e':
		default:
			return false
		}
	}
	return dot
}

// passExpr passes the text up to a comma or closing bracket.
func (p *parser) passExpr() string {
	p.skip()
	start := p.pos
	depth := 0
	for ; p.pos < len(p.src); p.pos++ {
		switch c := p.src[p.pos]; c {
		case '(', '[':
			depth++
		case ')', ']', '}':
			if depth--; depth < 0 {
				return strings.TrimSpace(p.src[start:p.pos])
			}
		case ',':
			if depth == 0 {
				return strings.TrimSpace(p.src[start:p.pos])
			}
		case '\n', '{', '%', '=', '"', '`':
			// % is the remainder only between blanks, = only in comparisons.
			if c == '%' && p.pos > start && p.src[p.pos-1] == ' ' && p.pos+1 < len(p.src) && p.src[p.pos+1] == ' ' {
				continue
			}
			if c == '=' && p.pos > start && strings.IndexByte("=!<>", p.src[p.pos-1]) >= 0 || strings.HasPrefix(p.src[p.pos:], "==") {
				continue
			}
			return strings.TrimSpace(p.src[start:p.pos])
		}
	}
	return strings.TrimSpace(p.src[start:p.pos])
}

func (p *parser) expr() sym.Expr {
	p.skip()
	at := p.here()
	return p.parseExpr(p.passExpr(), at)
}

func (p *parser) parseExpr(text string, at int) sym.Expr {
	if k, err := strconv.ParseInt(text, 10, 64); err == nil && text[0] != '+' {
		return sym.Const(k)
	}
	if text == "" {
		p.failAt(at, "expected an expression, found %s", p.found())
	}
	e, err := sym.Parse(text)
	if err != nil {
		p.failAt(at, "%v", err)
	}
	return e
}

var scalarKinds = map[string]ir.Kind{
	"int": ir.KindInt, "float": ir.KindFloat, "bool": ir.KindBool, "str": ir.KindStr, "none": ir.KindNone, "object": ir.KindObject,
}

func (p *parser) typ() ir.Type {
	at := p.here()
	w := p.word()
	p.pos += len(w)
	tensor := p.pos < len(p.src) && p.src[p.pos] == '['
	if kind, ok := scalarKinds[w]; ok && !tensor {
		t := ir.ScalarType(kind)
		if kind == ir.KindInt && p.pos < len(p.src) && p.src[p.pos] == '(' {
			p.pos++
			t = ir.IntType(p.expr())
			p.expect(')')
		}
		return t
	}
	d, ok := ops.ParseDType(w)
	if w == "none" {
		ok = true // a tensor whose element type was not known
	}
	if !ok || !tensor {
		p.failAt(at, "expected a type, found %s", strconv.Quote(w))
	}
	t := ir.Type{DType: d, Shape: p.dims('[', ']')}
	if p.pos < len(p.src) && p.src[p.pos] == '{' {
		t.Strides = p.dims('{', '}')
		if len(t.Strides) != len(t.Shape) {
			p.failAt(at, "%d strides for %d dimensions", len(t.Strides), len(t.Shape))
		}
	}
	if p.pos < len(p.src) && p.src[p.pos] == '!' {
		p.pos++
		t.Quant = p.quant()
	}
	return t
}

func (p *parser) dims(open, closing byte) []sym.Expr {
	p.expect(open)
	es := []sym.Expr{}
	for !p.accept(closing) {
		if len(es) > 0 {
			p.expect(',')
		}
		if len(es) == maxRank {
			p.fail("more than %d dimensions", maxRank)
		}
		es = append(es, p.expr())
	}
	return es
}

func (p *parser) quant() *ir.Quant {
	q := &ir.Quant{Scheme: p.ident()}
	p.expect('(')
	p.expectWord("block")
	p.expect('=')
	p.expect('[')
	for !p.accept(']') {
		if len(q.Block) > 0 {
			p.expect(',')
		}
		q.Block = append(q.Block, p.integer())
	}
	field := func(name string) {
		p.expect(',')
		p.expectWord(name)
		p.expect('=')
	}
	field("qmin")
	q.QMin = p.integer()
	field("qmax")
	q.QMax = p.integer()
	field("real")
	at := p.here()
	d, ok := ops.ParseDType(p.ident())
	if !ok {
		p.failAt(at, "no such element type")
	}
	q.Real = d
	p.expect(')')
	return q
}

// trailer reads what stands after the body and gives the nodes their origins.
func (p *parser) trailer(g *ir.Graph) {
	var frames [][]ir.Frame
	var locs []*ir.Origin
	entry := func(mark byte, n int) {
		p.expect(mark)
		at := p.here()
		if k := p.index(); k != n {
			p.failAt(at, "expected %c%d, found %c%d", mark, n, mark, k)
		}
		p.expect('=')
	}
	for {
		switch p.word() {
		case "names":
			p.expectWord("names")
			for ok := true; ok; ok = p.accept(',') {
				g.InputNames = append(g.InputNames, p.str())
			}
		case "inspec":
			p.expectWord("inspec")
			g.InSpec = p.str()
		case "outspec":
			p.expectWord("outspec")
			g.OutSpec = p.str()
		case "entry":
			p.expectWord("entry")
			g.Entry = p.str()
		case "frame":
			p.expectWord("frame")
			entry('#', len(frames))
			frames = append(frames, p.frames(frames))
		case "loc":
			p.expectWord("loc")
			entry('@', len(locs))
			locs = append(locs, p.origin(frames, locs))
		default:
			for _, l := range p.locs {
				if l.loc >= len(locs) {
					p.failAt(l.pos, "loc @%d is missing", l.loc)
				}
				l.n.Origin = locs[l.loc]
			}
			return
		}
	}
}

// frames reads a frame and the stack that it stands on.
func (p *parser) frames(known [][]ir.Frame) []ir.Frame {
	var f ir.Frame
	f.File = p.str()
	p.expect(':')
	f.Line = int(p.integer())
	f.Func = p.ident()
	if c := p.peek(); c == '"' || c == '`' {
		f.Code = p.str()
	}
	f.Library = p.acceptWord("library")
	var outer []ir.Frame
	if p.acceptWord("in") {
		p.expect('#')
		at := p.here()
		k := p.index()
		if k >= len(known) {
			p.failAt(at, "frame #%d is not defined before this", k)
		}
		outer = known[k]
	}
	return append(outer[:len(outer):len(outer)], f)
}

func (p *parser) origin(frames [][]ir.Frame, locs []*ir.Origin) *ir.Origin {
	o := &ir.Origin{}
	more := true
	if p.peek() == '"' {
		o.Frames = p.frames(frames)
		more = p.accept(',')
	}
	for more {
		at := p.here()
		switch w := p.word(); w {
		case "module", "class", "name":
			p.expectWord(w)
			s := p.ident()
			switch w {
			case "module":
				o.Module = s
			case "class":
				o.Class = s
			default:
				o.Name = s
			}
		case "from":
			p.expectWord("from")
			p.expect('@')
			k := p.index()
			if k >= len(locs) {
				p.failAt(at, "loc @%d is not defined before this", k)
			}
			if o.From != nil {
				p.failAt(at, "from is here twice")
			}
			o.From = locs[k]
		case "via":
			p.expectWord("via")
			rule := p.rule()
			if o.From != nil && o.Via == "" {
				o.Via = rule
				break
			}
			o = o.Derive(rule)
		default:
			// An origin of which nothing is known is an empty line.
			if o.Frames == nil && o.Module == "" && o.Class == "" && o.Name == "" && o.Via == "" && o.From == nil {
				return o
			}
			p.fail("expected module, class, name, from or via, found %s", p.found())
		}
		more = p.accept(',')
	}
	return o
}

func (p *parser) rule() string {
	if c := p.peek(); c == '"' || c == '`' {
		at := p.pos
		rule := p.str()
		if rule == "" {
			p.failAt(at, "a rule without a name")
		}
		return rule
	}
	start := p.pos
	for p.pos < len(p.src) && (isIdentByte(p.src[p.pos]) || p.src[p.pos] == '#' || p.src[p.pos] == '-') {
		p.pos++
	}
	if p.pos == start {
		p.fail("expected a rule, found %s", p.found())
	}
	return p.src[start:p.pos]
}
