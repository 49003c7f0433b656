package sym

import "strconv"

const (
	maxText     = 1 << 20 // bytes of an expression in the IR's text
	maxTextNest = 2*maxDepth + 10
)

// Parse reads an expression in the text syntax of the IR, as String prints it:
//
//	s0 + 1   2*s0*s1 - 4   (s0 + 7)//8   s0 % 4   s0**2   max(1, s0)
//	s0 >= 2 and not s1 == s2   where(s0 <= 4, s0, 4)   float(s0) / 2.0
//
// Operators bind as in Python. Length and nesting are bounded.
func Parse(s string) (Expr, error) {
	var p parser
	p.start(s, maxText, maxTextNest)
	e := p.or()
	if p.err == nil && p.tok.kind != tokEnd {
		p.unexpected("the end")
	}
	if p.err != nil {
		return Expr{}, p.err
	}
	return e, nil
}

type parser struct{ lexer }

// check turns an invalid expression into an error at pos.
func (p *parser) check(pos int, e Expr) Expr {
	if err := e.Err(); err != nil {
		p.fail(pos, "%v", err)
	}
	return e
}

func (p *parser) or() Expr {
	pos := p.tok.pos
	e := p.and()
	if p.tok.kind != tokName || p.tok.text != "or" {
		return e
	}
	xs := []Expr{e}
	for p.accept("or") {
		xs = append(xs, p.and())
	}
	return p.check(pos, Or(xs...))
}

func (p *parser) and() Expr {
	pos := p.tok.pos
	e := p.not()
	if p.tok.kind != tokName || p.tok.text != "and" {
		return e
	}
	xs := []Expr{e}
	for p.accept("and") {
		xs = append(xs, p.not())
	}
	return p.check(pos, And(xs...))
}

func (p *parser) not() Expr {
	pos := p.tok.pos
	if !p.accept("not") {
		return p.comparison()
	}
	if !p.enter() {
		return Expr{}
	}
	defer p.leave()
	return p.check(pos, Not(p.not()))
}

func (p *parser) comparison() Expr {
	a := p.sum()
	if p.tok.kind != tokOp {
		return a
	}
	o, ok := relOps[p.tok.text]
	if !ok {
		return a
	}
	pos := p.tok.pos
	p.next()
	return p.check(pos, relation(o, a, p.sum()))
}

var relOps = map[string]op{"==": opEq, "!=": opNe, "<": opLt, "<=": opLe, ">": opGt, ">=": opGe}

func (p *parser) sum() Expr {
	pos := p.tok.pos
	e := p.product()
	var xs []Expr
	for p.tok.kind == tokOp && (p.tok.text == "+" || p.tok.text == "-") {
		if xs == nil {
			xs = []Expr{e}
		}
		minus := p.tok.text == "-"
		p.next()
		x := p.product()
		if minus {
			x = Neg(x)
		}
		xs = append(xs, x)
	}
	if xs == nil {
		return e
	}
	return p.check(pos, Sum(xs...))
}

func (p *parser) product() Expr {
	e := p.unary()
	for p.tok.kind == tokOp {
		var f func(a, b Expr) Expr
		switch p.tok.text {
		case "*":
			f = Mul
		case "//":
			f = FloorDiv
		case "/":
			f = TrueDiv
		case "%":
			f = Mod
		default:
			return e
		}
		pos := p.tok.pos
		p.next()
		e = p.check(pos, f(e, p.unary()))
	}
	return e
}

func (p *parser) unary() Expr {
	if p.tok.kind != tokOp || p.tok.text != "-" {
		return p.power()
	}
	pos := p.tok.pos
	p.next()
	if p.tok.kind == tokInt {
		// The smallest integer has no positive counterpart.
		if k, err := strconv.ParseInt("-"+p.tok.text, 10, 64); err == nil {
			text := p.tok
			p.next()
			if p.tok.kind == tokOp && p.tok.text == "**" {
				return p.check(pos, Neg(p.powerOf(p.integer(text))))
			}
			return Const(k)
		}
	}
	if !p.enter() {
		return Expr{}
	}
	defer p.leave()
	return p.check(pos, Neg(p.unary()))
}

func (p *parser) integer(t token) Expr {
	k, err := strconv.ParseInt(t.text, 10, 64)
	if err != nil {
		p.fail(t.pos, "integer %.40s does not fit 64 bits", t.text)
	}
	return Const(k)
}

func (p *parser) power() Expr { return p.powerOf(p.atom()) }

func (p *parser) powerOf(base Expr) Expr {
	pos := p.tok.pos
	if p.tok.kind != tokOp || !p.accept("**") {
		return base
	}
	if !p.enter() {
		return Expr{}
	}
	defer p.leave()
	return p.check(pos, Pow(base, p.unary()))
}

func (p *parser) atom() Expr {
	t := p.tok
	switch t.kind {
	case tokInt:
		p.next()
		return p.integer(t)
	case tokFloat:
		p.next()
		f, err := strconv.ParseFloat(t.text, 64)
		if err != nil {
			p.fail(t.pos, "float %.40s is out of range", t.text)
		}
		return ConstFloat(f)
	case tokName:
		p.next()
		if p.tok.kind == tokOp && p.tok.text == "(" {
			return p.call(t)
		}
		switch t.text {
		case "true":
			return exprTrue
		case "false":
			return exprFalse
		case "inf", "nan":
			f, _ := strconv.ParseFloat(t.text, 64)
			return ConstFloat(f)
		}
		return p.check(t.pos, Symbol(t.text))
	case tokOp:
		if t.text == "(" {
			if !p.enter() {
				return Expr{}
			}
			defer p.leave()
			p.next()
			e := p.or()
			p.expect(")")
			return e
		}
	}
	p.unexpected("an operand")
	return Expr{}
}

func (p *parser) call(name token) Expr {
	if !p.enter() {
		return Expr{}
	}
	defer p.leave()
	p.next()
	var args []Expr
	for p.err == nil && !p.accept(")") {
		if len(args) > 0 {
			p.expect(",")
		}
		args = append(args, p.or())
	}
	if p.err != nil {
		return Expr{}
	}
	f, ok := textFuncs[name.text]
	if !ok {
		if _, ok := unaryFuncs[name.text]; !ok {
			p.fail(name.pos, "unknown function %.40q", name.text)
			return Expr{}
		}
		f = textFunc{1, 1, func(a []Expr) Expr { return Unary(name.text, a[0]) }}
	}
	if len(args) < f.least || len(args) > f.most {
		p.fail(name.pos, "%s with %d arguments", name.text, len(args))
		return Expr{}
	}
	return p.check(name.pos, f.make(args))
}

type textFunc struct {
	least, most int
	make        func([]Expr) Expr
}

const many = 1 << 16

var textFuncs = map[string]textFunc{
	"max":    {1, many, func(a []Expr) Expr { return Max(a...) }},
	"min":    {1, many, func(a []Expr) Expr { return Min(a...) }},
	"abs":    {1, 1, func(a []Expr) Expr { return Abs(a[0]) }},
	"where":  {3, 3, func(a []Expr) Expr { return Where(a[0], a[1], a[2]) }},
	"float":  {1, 1, func(a []Expr) Expr { return ToFloat(a[0]) }},
	"floor":  {1, 1, func(a []Expr) Expr { return Floor(a[0]) }},
	"ceil":   {1, 1, func(a []Expr) Expr { return Ceil(a[0]) }},
	"trunc":  {1, 1, func(a []Expr) Expr { return Trunc(a[0]) }},
	"truncf": {1, 1, func(a []Expr) Expr { return TruncFloat(a[0]) }},
	"round": {1, 2, func(a []Expr) Expr {
		if len(a) == 2 {
			return RoundDecimal(a[0], a[1])
		}
		return Round(a[0])
	}},
	"bitand": {2, 2, func(a []Expr) Expr { return BitAnd(a[0], a[1]) }},
	"bitor":  {2, 2, func(a []Expr) Expr { return BitOr(a[0], a[1]) }},
	"bitxor": {2, 2, func(a []Expr) Expr { return BitXor(a[0], a[1]) }},
	"dense": {0, many, func(a []Expr) Expr {
		if len(a)%2 != 0 {
			return bad("dense with an odd number of arguments")
		}
		return NonOverlappingAndDense(a[:len(a)/2], a[len(a)/2:])
	}},
}
