package sym

import (
	"math"
	"strconv"
	"strings"
)

const (
	maxSympyText = 64 << 10 // bytes of an expression in a saved program
	maxSympyNest = 200
)

// SympyOptions says how ParseSympy reads names. The zero value is usable.
type SympyOptions struct {
	// Symbol returns the expression of a symbol; nil means Symbol(name).
	// Assumptions are the keyword arguments that were true, for instance
	// "positive" and "integer"; there are none in the plain form.
	Symbol func(name string, assumptions []string) (Expr, error)

	// Source returns the expression of a guard's source text, for instance
	// L['x'].size()[0]; nil means that such text is an error.
	Source func(text string) (Expr, error)
}

// ParseSympy reads a size expression as torch.export saves it: the text of a
// SymPy tree, Add(Mul(Integer(2), Symbol('s27', positive=True, integer=True)),
// Integer(1)), or its plain form, 2*s27 + 1. Nothing is evaluated as code.
// Length and nesting are bounded. Exact rational results, as s0/2, stand for
// integers in saved programs and become floor divisions.
func ParseSympy(src string, opt SympyOptions) (Expr, error) {
	p := sympy{opt: opt}
	p.start(src, maxSympyText, maxSympyNest)
	v := p.or()
	if p.err == nil && p.tok.kind != tokEnd {
		p.unexpected("the end")
	}
	e := p.toExpr(0, v)
	if p.err != nil {
		return Expr{}, p.err
	}
	return e, nil
}

type sympy struct {
	lexer
	opt SympyOptions
}

// value is an operand while reading: a number num/den, an infinity, or a
// structure that only a certain function takes.
type value struct {
	num, den Expr // den is the constant 1 but for exact quotients of integers
	inf      int8 // sign of an infinity
	items    []value
	what     valueKind
}

type valueKind uint8

const (
	isExpr valueKind = iota
	isTuple
	isString
)

func of(e Expr) value { return value{num: e, den: Const(1)} }

func (v value) whole() bool { return v.what == isExpr && v.inf == 0 && v.den.IsConstValue(1) }

func (v value) isInt() bool { return v.what == isExpr && v.inf == 0 && v.num.Kind() == Int }

// expr checks that v is an expression in itself.
func (p *sympy) expr(pos int, v value) bool {
	switch {
	case p.err != nil:
		return false
	case v.what != isExpr:
		p.fail(pos, "a list or string where a number should stand")
	case v.num.isBad():
		p.fail(pos, "%v", v.num.Err())
	case v.den.isBad():
		p.fail(pos, "%v", v.den.Err())
	default:
		return true
	}
	return false
}

// toExpr returns v where an integer, a bool or a float is wanted.
func (p *sympy) toExpr(pos int, v value) Expr {
	if !p.expr(pos, v) {
		return Expr{}
	}
	if v.inf != 0 {
		p.fail(pos, "infinity where a size should stand")
		return Expr{}
	}
	if v.whole() {
		return v.num
	}
	return p.check(pos, FloorDiv(v.num, v.den))
}

// toFloat returns v as an operand of float arithmetic.
func (p *sympy) toFloat(pos int, v value) Expr {
	if !p.expr(pos, v) {
		return Expr{}
	}
	if v.inf != 0 {
		return ConstFloat(math.Inf(int(v.inf)))
	}
	if v.whole() {
		return v.num
	}
	return p.check(pos, TrueDiv(v.num, v.den))
}

func (p *sympy) check(pos int, e Expr) Expr {
	if err := e.Err(); err != nil {
		p.fail(pos, "%v", err)
	}
	return e
}

// quotient returns num/den with common factors divided out.
func (p *sympy) quotient(pos int, num, den Expr) value {
	if p.check(pos, num).isBad() || p.check(pos, den).isBad() {
		return of(Expr{})
	}
	if den.IsConstValue(0) {
		p.fail(pos, "division by zero")
		return of(Expr{})
	}
	if den.IsConstValue(1) {
		return of(num)
	}
	ta, tb := polyOf(num), polyOf(den)
	if q, ok := divTerms(ta, tb); ok {
		return of(fromTerms(q))
	}
	g := gcdTerms(ta, tb)
	if tb[0].c < 0 {
		if n, ok := mulInt(g.c, -1); ok {
			g.c = n
		}
	}
	if g.c != 1 || len(g.m) > 0 {
		num, den = fromTerms(divByTerm(ta, g)), fromTerms(divByTerm(tb, g))
	}
	return value{num: num, den: den}
}

func (p *sympy) add(pos int, xs []value) value {
	var inf int8
	floats, whole := false, true
	for _, x := range xs {
		if !p.expr(pos, x) {
			return of(Expr{})
		}
		if x.inf != 0 {
			if inf == -x.inf {
				p.fail(pos, "difference of infinities")
			}
			inf = x.inf
		}
		floats = floats || x.inf == 0 && x.num.Kind() == Float
		whole = whole && x.whole()
	}
	switch {
	case inf != 0:
		return value{inf: inf}
	case floats:
		var es []Expr
		for _, x := range xs {
			es = append(es, p.toFloat(pos, x))
		}
		return of(p.check(pos, Sum(es...)))
	case whole:
		es := make([]Expr, len(xs))
		for i, x := range xs {
			es[i] = x.num
		}
		return of(p.check(pos, Sum(es...)))
	}
	sum := of(Expr{})
	for _, x := range xs {
		sum = p.quotient(pos, Add(Mul(sum.num, x.den), Mul(x.num, sum.den)), Mul(sum.den, x.den))
	}
	return sum
}

func (p *sympy) mul(pos int, xs []value) value {
	out := of(Const(1))
	for i, x := range xs {
		if !p.expr(pos, x) || !p.expr(pos, out) {
			return of(Expr{})
		}
		switch {
		case i == 0:
			out = x
		case out.inf != 0 || x.inf != 0:
			s := p.sign(pos, out) * p.sign(pos, x)
			out = value{inf: s}
		case out.num.Kind() == Float || x.num.Kind() == Float:
			out = of(p.check(pos, Mul(p.toFloat(pos, out), p.toFloat(pos, x))))
		default:
			out = p.quotient(pos, Mul(out.num, x.num), Mul(out.den, x.den))
		}
	}
	return out
}

// sign returns the sign of an operand of a product with an infinity.
func (p *sympy) sign(pos int, v value) int8 {
	if v.inf != 0 {
		return v.inf
	}
	if k, ok := v.num.IsConst(); ok && k != 0 {
		return int8(cmpInt(k, 0))
	}
	p.fail(pos, "product of an infinity and %s", short(v.num))
	return 1
}

func (p *sympy) neg(pos int, v value) value { return p.mul(pos, []value{of(Const(-1)), v}) }

func (p *sympy) pow(pos int, b, x value) value {
	if !p.expr(pos, b) || !p.expr(pos, x) {
		return of(Expr{})
	}
	if b.inf == 0 && b.isInt() && x.isInt() {
		if n, ok := x.num.IsConst(); ok && x.whole() {
			if n < 0 && n > -maxPower {
				k := Const(-n)
				return p.quotient(pos, Pow(b.den, k), Pow(b.num, k))
			}
			return p.quotient(pos, Pow(b.num, Const(n)), Pow(b.den, Const(n)))
		}
		if x.whole() {
			return p.quotient(pos, Pow(b.num, x.num), Pow(b.den, x.num))
		}
		if x.num.IsConstValue(1) && x.den.IsConstValue(2) {
			return of(p.check(pos, Unary("sqrt", p.toFloat(pos, b))))
		}
	}
	return of(p.check(pos, Pow(ToFloat(p.toFloat(pos, b)), p.toFloat(pos, x))))
}

func (p *sympy) div(pos int, a, b value) value {
	if !p.expr(pos, a) || !p.expr(pos, b) {
		return of(Expr{})
	}
	if !a.isInt() || !b.isInt() {
		return of(p.trueDiv(pos, a, b))
	}
	return p.quotient(pos, Mul(a.num, b.den), Mul(a.den, b.num))
}

func (p *sympy) trueDiv(pos int, a, b value) Expr {
	x, y := p.toFloat(pos, a), p.toFloat(pos, b)
	if f, ok := floatConst(y); ok && f == 0 && p.err == nil {
		p.fail(pos, "division by zero")
	}
	return p.check(pos, TrueDiv(x, y))
}

// floorDiv returns a // b, exactly also of quotients.
func (p *sympy) floorDiv(pos int, a, b value) value {
	v := p.div(pos, a, b)
	if p.err != nil {
		return of(Expr{})
	}
	if v.num.Kind() == Float {
		return of(p.check(pos, Floor(v.num)))
	}
	return of(p.check(pos, FloorDiv(v.num, v.den)))
}

func (p *sympy) mod(pos int, a, b value) value {
	x, y := p.toExpr(pos, a), p.toExpr(pos, b)
	if y.IsConstValue(0) && p.err == nil {
		p.fail(pos, "modulo by zero")
	}
	return of(p.check(pos, Mod(x, y)))
}

func (p *sympy) relation(pos int, o op, a, b value) value {
	if !p.expr(pos, a) || !p.expr(pos, b) {
		return of(Expr{})
	}
	switch {
	case a.inf != 0 || b.inf != 0:
		// Integers and infinities compare by sign.
		if a.inf == 0 && a.num.Kind() != Int || b.inf == 0 && b.num.Kind() != Int {
			return of(p.check(pos, relation(o, p.toFloat(pos, a), p.toFloat(pos, b))))
		}
		return of(ConstBool(holds(o, cmpInt(int64(a.inf), int64(b.inf)))))
	case a.whole() && b.whole():
		return of(p.check(pos, relation(o, a.num, b.num)))
	case a.num.Kind() == Float || b.num.Kind() == Float:
		return of(p.check(pos, relation(o, p.toFloat(pos, a), p.toFloat(pos, b))))
	}
	d, ok := Mul(a.den, b.den).IsConst()
	if !ok || d <= 0 {
		p.fail(pos, "comparison of a quotient with a symbol in its denominator")
		return of(Expr{})
	}
	return of(p.check(pos, relation(o, Mul(a.num, b.den), Mul(b.num, a.den))))
}

func (p *sympy) extremum(pos int, o op, xs []value) value {
	lose := int8(1) // the infinity that never wins
	if o == opMax {
		lose = -1
	}
	var es []Expr
	d := Const(1)
	for _, x := range xs {
		if !p.expr(pos, x) {
			return of(Expr{})
		}
		switch x.inf {
		case 0:
			d = Mul(d, x.den)
		case -lose:
			return x
		}
	}
	if _, ok := d.IsConst(); !ok {
		d = Const(1)
	}
	for _, x := range xs {
		switch {
		case x.inf != 0:
		case d.IsConstValue(1):
			es = append(es, p.toExpr(pos, x))
		default:
			// With a common positive denominator the order is that of the numerators.
			q := p.mul(pos, []value{x, of(d)})
			es = append(es, p.toExpr(pos, q))
		}
	}
	if p.err != nil {
		return of(Expr{})
	}
	if len(es) == 0 {
		return value{inf: lose}
	}
	m := p.check(pos, extremum(o, es, unbounded))
	if m.Kind() == Float {
		return of(m)
	}
	return p.quotient(pos, m, d)
}

// The grammar is Python's, weakest operator first.

func (p *sympy) isOp(text string) bool { return p.tok.kind == tokOp && p.tok.text == text }

func (p *sympy) or() value {
	return p.junction("or", Or, func() value { return p.junction("and", And, p.not) })
}

func (p *sympy) junction(word string, f func(...Expr) Expr, next func() value) value {
	pos := p.tok.pos
	v := next()
	if p.tok.kind != tokName || p.tok.text != word {
		return v
	}
	xs := []Expr{p.toExpr(pos, v)}
	for p.accept(word) {
		xs = append(xs, p.toExpr(pos, next()))
	}
	return of(p.check(pos, f(xs...)))
}

func (p *sympy) not() value {
	pos := p.tok.pos
	if p.tok.kind != tokName || !p.accept("not") {
		return p.comparison()
	}
	if !p.enter() {
		return of(Expr{})
	}
	defer p.leave()
	return of(p.check(pos, Not(p.toExpr(pos, p.not()))))
}

func (p *sympy) comparison() value {
	pos := p.tok.pos
	a := p.binary(0)
	var parts []Expr
	for p.tok.kind == tokOp {
		o, ok := relOps[p.tok.text]
		if !ok {
			break
		}
		p.next()
		b := p.binary(0)
		parts = append(parts, p.relation(pos, o, a, b).num)
		a = b
	}
	switch len(parts) {
	case 0:
		return a
	case 1:
		return of(parts[0])
	}
	return of(p.check(pos, And(parts...)))
}

// sympyOps are the binary operators by rising strength.
var sympyOps = [][]string{{"|"}, {"^"}, {"&"}, {"<<", ">>"}, {"+", "-"}, {"*", "/", "//", "%"}}

func (p *sympy) binary(level int) value {
	if level == len(sympyOps) {
		return p.unary()
	}
	pos := p.tok.pos
	v := p.binary(level + 1)
	var sum []value // operands of a sum, added in one go
	for p.tok.kind == tokOp {
		o := p.tok.text
		found := false
		for _, s := range sympyOps[level] {
			found = found || s == o
		}
		if !found {
			break
		}
		p.next()
		b := p.binary(level + 1)
		if p.err != nil {
			return of(Expr{})
		}
		switch o {
		case "+", "-":
			if o == "-" {
				b = p.neg(pos, b)
			}
			if sum == nil {
				sum = []value{v}
			}
			sum = append(sum, b)
		case "*":
			v = p.mul(pos, []value{v, b})
		case "/":
			v = p.div(pos, v, b)
		case "//":
			v = p.floorDiv(pos, v, b)
		case "%":
			v = p.mod(pos, v, b)
		default:
			v = of(p.check(pos, binaryFuncs[o](p.toExpr(pos, v), p.toExpr(pos, b))))
		}
	}
	if sum != nil {
		return p.add(pos, sum)
	}
	return v
}

var binaryFuncs = map[string]func(a, b Expr) Expr{
	"|": BitOr, "^": BitXor, "&": BitAnd, "<<": LShift, ">>": RShift,
}

func (p *sympy) unary() value {
	pos := p.tok.pos
	if p.tok.kind != tokOp || !strings.Contains("-+~", p.tok.text) {
		return p.power()
	}
	o := p.tok.text
	p.next()
	if o == "-" && p.tok.kind == tokInt {
		if k, err := strconv.ParseInt("-"+p.tok.text, 10, 64); err == nil && k == math.MinInt64 {
			p.next()
			return of(Const(k))
		}
	}
	if !p.enter() {
		return of(Expr{})
	}
	defer p.leave()
	v := p.unary()
	switch o {
	case "-":
		return p.neg(pos, v)
	case "~":
		e := p.toExpr(pos, v)
		if e.Kind() == Int {
			return of(p.check(pos, Sub(Const(-1), e)))
		}
		return of(p.check(pos, Not(e)))
	}
	return v
}

func (p *sympy) power() value {
	pos := p.tok.pos
	b := p.atom()
	if !p.isOp("**") {
		return b
	}
	if !p.enter() {
		return of(Expr{})
	}
	defer p.leave()
	p.next()
	return p.pow(pos, b, p.unary())
}

func (p *sympy) integer(pos int, text string) Expr {
	k, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		p.fail(pos, "integer %.40s does not fit 64 bits", text)
	}
	return Const(k)
}

func (p *sympy) float(pos int, text string) Expr {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		p.fail(pos, "malformed float %.40q", text)
	}
	return ConstFloat(f)
}

func (p *sympy) atom() value {
	t := p.tok
	switch t.kind {
	case tokInt:
		p.next()
		return of(p.integer(t.pos, t.text))
	case tokFloat:
		p.next()
		return of(p.float(t.pos, t.text))
	case tokName:
		p.next()
		switch {
		case p.isOp("("):
			return p.call(t)
		case p.isOp("[") || p.isOp("."):
			return p.source(t)
		}
		switch t.text {
		case "true", "True":
			return of(exprTrue)
		case "false", "False":
			return of(exprFalse)
		case "oo", "int_oo":
			return value{inf: 1}
		case "nan", "zoo":
			p.fail(t.pos, "%s where a size should stand", t.text)
			return of(Expr{})
		}
		return of(p.symbol(t.pos, t.text, nil))
	case tokOp:
		if t.text == "(" {
			return p.paren()
		}
	}
	p.unexpected("an operand")
	return of(Expr{})
}

func (p *sympy) symbol(pos int, name string, assumptions []string) Expr {
	if p.err != nil {
		return Expr{}
	}
	if err := checkName(name); err != nil || p.opt.Symbol == nil {
		return p.check(pos, Symbol(name))
	}
	e, err := p.opt.Symbol(name, assumptions)
	if err != nil {
		p.fail(pos, "%v", err)
	}
	return p.check(pos, e)
}

// paren reads a parenthesized expression or a tuple.
func (p *sympy) paren() value {
	if !p.enter() {
		return of(Expr{})
	}
	defer p.leave()
	p.next()
	v := p.or()
	if !p.isOp(",") {
		p.expect(")")
		return v
	}
	items := []value{v}
	for p.accept(",") {
		if p.isOp(")") {
			break
		}
		items = append(items, p.or())
	}
	p.expect(")")
	return value{what: isTuple, items: items}
}

// source reads what follows a name: subscripts, attributes and calls without
// arguments.
func (p *sympy) source(name token) value {
	end := name.pos + len(name.text)
	for p.err == nil {
		switch {
		case p.accept("["):
			p.accept("-")
			if p.tok.kind != tokInt && p.tok.kind != tokString {
				p.unexpected("an index")
			}
			p.next()
			end = p.tok.pos + 1
			p.expect("]")
		case p.accept("."):
			end = p.tok.pos + len(p.tok.text)
			if p.tok.kind != tokName {
				p.unexpected("an attribute")
			}
			p.next()
		case p.accept("("):
			end = p.tok.pos + 1
			p.expect(")")
		default:
			text := p.src[name.pos:end]
			if p.opt.Source == nil {
				p.fail(name.pos, "%.60s where a symbol should stand", text)
				return of(Expr{})
			}
			e, err := p.opt.Source(text)
			if err != nil {
				p.fail(name.pos, "%v", err)
			}
			return of(p.check(name.pos, e))
		}
	}
	return of(Expr{})
}

// call reads the arguments of a function, of which name is the name, and
// applies it.
func (p *sympy) call(name token) value {
	if !p.enter() {
		return of(Expr{})
	}
	defer p.leave()
	p.next()
	var args []value
	var text string
	var assumptions []string
	for n := 0; p.err == nil && !p.accept(")"); n++ {
		if n > 0 {
			p.expect(",")
		}
		t := p.tok
		if t.kind == tokString {
			p.next()
			if n == 0 {
				text = t.text
			}
			args = append(args, value{what: isString})
			continue
		}
		if t.kind == tokName {
			// A keyword argument: name=constant.
			save := p.lexer
			p.next()
			if p.accept("=") {
				v := p.tok
				if v.kind != tokName && v.kind != tokInt {
					p.unexpected("a value")
				}
				p.next()
				if v.text == "True" {
					assumptions = append(assumptions, t.text)
				}
				continue
			}
			p.lexer = save
		}
		args = append(args, p.or())
	}
	if p.err != nil {
		return of(Expr{})
	}
	return p.apply(name, args, text, assumptions)
}

// apply applies a function of SymPy or of torch.utils._sympy.functions.
func (p *sympy) apply(name token, args []value, text string, assumptions []string) value {
	pos := name.pos
	want := func(least, most int) bool {
		if len(args) < least || len(args) > most {
			p.fail(pos, "%s with %d arguments", name.text, len(args))
			return false
		}
		return true
	}
	str := func() bool { return want(1, 1) && (args[0].what == isString || !p.mistyped(pos, name.text)) }
	es := func(least, most int) []Expr {
		if !want(least, most) {
			return nil
		}
		out := make([]Expr, len(args))
		for i, a := range args {
			out[i] = p.toExpr(pos, a)
		}
		if p.err != nil {
			return nil
		}
		return out
	}
	none := of(Expr{})

	switch name.text {
	case "Symbol", "Dummy":
		if !str() {
			return none
		}
		return of(p.symbol(pos, text, assumptions))
	case "Integer":
		if !want(1, 1) {
			return none
		}
		if args[0].what == isString {
			return of(p.integer(pos, text))
		}
		return of(p.toExpr(pos, args[0]))
	case "Float":
		if !want(1, 1) {
			return none
		}
		if args[0].what == isString {
			return of(p.float(pos, text))
		}
		return of(ToFloat(p.toFloat(pos, args[0])))
	case "Rational":
		if !want(2, 2) {
			return none
		}
		return p.div(pos, args[0], args[1])
	case "Add":
		return p.add(pos, args)
	case "Mul":
		return p.mul(pos, args)
	case "Pow", "PowByNatural", "FloatPow":
		if !want(2, 2) {
			return none
		}
		return p.pow(pos, args[0], args[1])
	case "FloorDiv", "CleanDiv":
		if !want(2, 2) {
			return none
		}
		return p.floorDiv(pos, args[0], args[1])
	case "CeilDiv":
		if !want(2, 2) {
			return none
		}
		return p.neg(pos, p.floorDiv(pos, p.neg(pos, args[0]), args[1]))
	case "Mod", "PythonMod":
		if !want(2, 2) {
			return none
		}
		return p.mod(pos, args[0], args[1])
	case "ModularIndexing":
		if !want(3, 3) {
			return none
		}
		return p.mod(pos, p.floorDiv(pos, args[0], args[1]), args[2])
	case "IntTrueDiv", "FloatTrueDiv":
		if !want(2, 2) {
			return none
		}
		return of(p.trueDiv(pos, args[0], args[1]))
	case "Max", "max", "Min", "min":
		if !want(1, many) {
			return none
		}
		if name.text == "Max" || name.text == "max" {
			return p.extremum(pos, opMax, args)
		}
		return p.extremum(pos, opMin, args)
	case "Piecewise":
		return p.piecewise(pos, args)
	case "ExprCondPair", "Tuple":
		return value{what: isTuple, items: args}
	case "Where", "ITE":
		if e := es(3, 3); e != nil {
			return of(p.check(pos, Where(e[0], e[1], e[2])))
		}
	case "Not":
		if e := es(1, 1); e != nil {
			return of(p.check(pos, Not(e[0])))
		}
	case "And":
		if e := es(0, many); e != nil {
			return of(p.check(pos, And(e...)))
		}
	case "Or":
		if e := es(0, many); e != nil {
			return of(p.check(pos, Or(e...)))
		}
	case "Xor":
		if e := es(2, many); e != nil {
			x := e[0]
			for _, y := range e[1:] {
				if x.Kind() == Bool && y.Kind() == Bool {
					x = Ne(x, y)
				} else {
					x = bad("exclusive or of numbers")
				}
			}
			return of(p.check(pos, x))
		}
	case "Identity":
		if want(1, 1) {
			return args[0]
		}
	case "LShift", "RShift":
		if e := es(2, 2); e != nil {
			if k, ok := e[1].IsConst(); ok && k < 0 {
				p.fail(pos, "negative shift count")
				return none
			}
			if name.text == "LShift" {
				return of(p.check(pos, LShift(e[0], e[1])))
			}
			return of(p.check(pos, RShift(e[0], e[1])))
		}
	case "BitwiseFn_bitwise_and", "BitwiseFn_bitwise_or", "BitwiseFn_bitwise_xor":
		if e := es(2, 2); e != nil {
			o := map[byte]op{'a': opBitAnd, 'o': opBitOr, 'x': opBitXor}[name.text[len("BitwiseFn_bitwise_")]]
			return of(p.check(pos, bitwise(o, e[0], e[1])))
		}
	case "IsNonOverlappingAndDenseIndicator":
		if e := es(0, many); e != nil {
			return of(p.check(pos, textFuncs["dense"].make(e)))
		}
	case "floor", "FloorToInt", "ceiling", "CeilToInt":
		if want(1, 1) {
			return p.round(pos, name.text[0] == 'f' || name.text[0] == 'F', args[0])
		}
	case "TruncToInt", "RoundToInt", "TruncToFloat", "ToFloat", "Abs", "abs":
		if want(1, 1) {
			if args[0].isInt() && !args[0].whole() && (name.text == "Abs" || name.text == "abs") {
				return p.quotient(pos, Abs(args[0].num), Abs(args[0].den))
			}
			x := p.toFloat(pos, args[0])
			if p.err == nil {
				return of(p.check(pos, floatFuncs[name.text](x)))
			}
		}
	case "RoundDecimal":
		if want(2, 2) {
			return of(p.check(pos, RoundDecimal(p.toFloat(pos, args[0]), p.toExpr(pos, args[1]))))
		}
	default:
		if o, ok := sympyRelations[name.text]; ok {
			if want(2, 2) {
				return p.relation(pos, o, args[0], args[1])
			}
			return none
		}
		fn := strings.TrimPrefix(name.text, "OpaqueUnaryFn_")
		if _, ok := unaryFuncs[fn]; ok {
			if want(1, 1) {
				return of(p.check(pos, Unary(fn, p.toFloat(pos, args[0]))))
			}
			return none
		}
		p.fail(pos, "unknown function %.60q", name.text)
	}
	return none
}

var floatFuncs = map[string]func(Expr) Expr{
	"TruncToInt": Trunc, "RoundToInt": Round, "TruncToFloat": TruncFloat, "ToFloat": ToFloat, "Abs": Abs, "abs": Abs,
}

var sympyRelations = map[string]op{
	"Equality": opEq, "Eq": opEq, "Unequality": opNe, "Ne": opNe,
	"StrictLessThan": opLt, "Lt": opLt, "LessThan": opLe, "Le": opLe,
	"StrictGreaterThan": opGt, "Gt": opGt, "GreaterThan": opGe, "Ge": opGe,
}

func (p *sympy) mistyped(pos int, name string) bool {
	p.fail(pos, "%s without a string", name)
	return true
}

// round rounds down or up; quotients of integers exactly.
func (p *sympy) round(pos int, down bool, v value) value {
	switch {
	case !p.expr(pos, v):
		return of(Expr{})
	case v.inf != 0:
		return v
	case v.num.Kind() == Float && down:
		return of(p.check(pos, Floor(v.num)))
	case v.num.Kind() == Float:
		return of(p.check(pos, Ceil(v.num)))
	case down:
		return of(p.check(pos, FloorDiv(v.num, v.den)))
	}
	return of(p.check(pos, CeilDiv(v.num, v.den)))
}

// piecewise takes pairs of an expression and the condition under which it is
// the value; the last condition must be true.
func (p *sympy) piecewise(pos int, args []value) value {
	if len(args) == 0 {
		p.fail(pos, "Piecewise without arguments")
	}
	var out Expr
	for i := len(args) - 1; i >= 0 && p.err == nil; i-- {
		pair := args[i]
		if pair.what != isTuple || len(pair.items) != 2 {
			p.fail(pos, "Piecewise takes pairs of an expression and a condition")
			break
		}
		x, c := p.toExpr(pos, pair.items[0]), p.toExpr(pos, pair.items[1])
		if p.err != nil {
			break
		}
		if i == len(args)-1 {
			if v, ok := c.IsBool(); !ok || !v {
				p.fail(pos, "the last condition of Piecewise is not true")
			}
			out = x
			continue
		}
		out = p.check(pos, Where(c, x, out))
	}
	return of(out)
}
