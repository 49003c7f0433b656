// Package text is the written form of the IR. The printer and the parser belong together: Parse(Print(g)) equals g, and
// what is printed depends on the graph alone. A root graph reads
//
//	sym s0 in [1, 2048] hint 7
//	graph @forward(%x: f32[s0, 4096] user, %w: bf16[4096, 4096] param "up.weight") -> (%3) {
//	  %1 = aten.t(%w)                                   : bf16[4096, 4096]{1, 4096}
//	  %2 = aten.mm(%x, %1)                              : bf16[s0, 4096]  @0
//	  %3 = aten.sum.dim_IntList(%2, dim=[-1], keepdim=true): bf16[s0, 1]
//	}
//	loc @0 = "modeling.py":134 forward, module layers.0, via decompose#linear
//
// Nodes stand one a line, types always, arguments that have their default not at all. A write-back is an output
// `mut %buffer = %new`. Contents of small constants follow their type (`= [1.0, 2.0]`), larger ones are left to the
// reader's Options.Data by name.
package text

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ops"
)

// MaxInline is the number of elements up to which a constant's contents are printed.
const MaxInline = 64

// typeColumn is where the types of short lines begin.
const typeColumn = 52

// Print writes a root graph with its symbols and origins.
func Print(w io.Writer, g *ir.Graph) error {
	b := bufio.NewWriter(w)
	newPrinter(b, g).root(g)
	return b.Flush()
}

// PrintProgram writes the methods one after the other.
func PrintProgram(w io.Writer, p *ir.Program) error {
	b := bufio.NewWriter(w)
	for i, g := range p.Methods {
		if i > 0 {
			b.WriteByte('\n')
		}
		newPrinter(b, g).root(g)
	}
	return b.Flush()
}

// String is a root graph as text.
func String(g *ir.Graph) string {
	var b strings.Builder
	Print(&b, g) // a strings.Builder does not fail
	return b.String()
}

// Lines gives the function that writes a node of g, or of a graph in it, on one line, without its nested graphs' bodies and
// origin.
func Lines(g *ir.Graph) func(n *ir.Node) string {
	var s strings.Builder
	p := newPrinter(bufio.NewWriter(&s), g.Root())
	p.brief = true
	return func(n *ir.Node) string {
		s.Reset()
		p.buf = p.buf[:0]
		p.node(n, 0)
		p.w.Flush()
		return strings.Join(strings.Fields(s.String()), " ")
	}
}

type printer struct {
	w     *bufio.Writer
	buf   []byte // the line at hand
	names map[*ir.Value]string
	brief bool

	locs    map[*ir.Origin]int
	locText map[string]int
	locList []string
	frames  map[frameKey]int
	frList  []string
	stacks  map[*ir.Frame]stackKey // a shared slice's stack is looked up once
}

type frameKey struct {
	outer int
	ir.Frame
}

type stackKey struct {
	n, id int
}

func newPrinter(w *bufio.Writer, g *ir.Graph) *printer {
	return &printer{
		w: w, names: Names(g), locs: map[*ir.Origin]int{}, locText: map[string]int{}, frames: map[frameKey]int{},
		stacks: map[*ir.Frame]stackKey{},
	}
}

// Names gives the names that the values of a root graph have in text: their own where those are unique, without names
// that are numbers, which only number what has no name.
func Names(g *ir.Graph) map[*ir.Value]string {
	names := map[*ir.Value]string{}
	taken := map[string]bool{}
	var order []*ir.Value
	each := func(v *ir.Value) {
		order = append(order, v)
		if v.Name == "" || isNumber(v.Name) || taken[v.Name] {
			return
		}
		taken[v.Name] = true
		names[v] = v.Name
	}
	g.Walk(func(h *ir.Graph) {
		for _, in := range h.Inputs {
			each(in.Value)
		}
		for n := range h.Nodes() {
			for _, o := range n.Outs {
				each(o)
			}
		}
	})
	number := 0
	next := map[string]int{}
	for _, v := range order {
		if _, ok := names[v]; ok {
			continue
		}
		if v.Name == "" || isNumber(v.Name) {
			number++
			names[v] = strconv.Itoa(number)
			continue
		}
		for {
			next[v.Name]++
			name := v.Name + "_" + strconv.Itoa(next[v.Name])
			if !taken[name] {
				taken[name] = true
				names[v] = name
				break
			}
		}
	}
	return names
}

func isNumber(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

func (p *printer) s(s string) { p.buf = append(p.buf, s...) }

func (p *printer) flush() {
	p.buf = append(p.buf, '\n')
	p.w.Write(p.buf)
	p.buf = p.buf[:0]
}

func (p *printer) indent(depth int) {
	for range depth {
		p.s("  ")
	}
}

func (p *printer) root(g *ir.Graph) {
	for _, s := range g.Syms.All() {
		p.s("sym " + s.Name + " in " + s.Range.String())
		if s.HasHint {
			p.s(" hint ")
			p.buf = strconv.AppendInt(p.buf, s.Hint, 10)
		}
		p.flush()
	}
	p.graph(g, 0)
	p.flush()
	if len(g.InputNames) > 0 {
		p.s("names ")
		for i, n := range g.InputNames {
			if i > 0 {
				p.s(", ")
			}
			p.str(n)
		}
		p.flush()
	}
	clause := func(key, text string) {
		if text != "" {
			p.s(key)
			p.str(text)
			p.flush()
		}
	}
	clause("inspec ", g.InSpec)
	clause("outspec ", g.OutSpec)
	clause("entry ", g.Entry)
	for i, f := range p.frList {
		p.s("frame #" + strconv.Itoa(i) + " = " + f)
		p.flush()
	}
	for i, l := range p.locList {
		p.s("loc @" + strconv.Itoa(i) + " = " + l)
		p.flush()
	}
}

// graph prints from "graph" to the closing brace, which is left in the buffer.
func (p *printer) graph(g *ir.Graph, depth int) {
	p.s("graph @")
	p.ident(g.Name)
	p.s("(")
	long := len(g.Inputs) > 4
	for i, in := range g.Inputs {
		if i > 0 {
			p.s(",")
		}
		if long {
			p.flush()
			p.indent(depth + 2)
		} else if i > 0 {
			p.s(" ")
		}
		p.input(in, g.Parent != nil)
	}
	if long {
		p.flush()
		p.indent(depth)
	}
	p.s(") -> (")
	for i, o := range g.Outputs {
		if i > 0 {
			p.s(", ")
		}
		if o.Target != nil {
			p.s("mut ")
			p.value(o.Target.Value)
			p.s(" = ")
		}
		p.arg(g.Ret().Arg(i), ops.TAny, depth)
	}
	p.s(")")
	if g.Stage != ops.StageAten && g.Parent == nil {
		p.s(" stage " + g.Stage.String())
	}
	p.s(" {")
	p.flush()
	for n := range g.Nodes() {
		p.node(n, depth+1)
		p.flush()
	}
	p.indent(depth)
	p.s("}")
}

func (p *printer) input(in *ir.Input, nested bool) {
	p.value(in.Value)
	p.s(": ")
	p.typ(in.Value.Type)
	if !nested || in.Kind != ir.InputOperand {
		p.s(" " + in.Kind.String())
	}
	if in.Target != "" {
		p.s(" ")
		p.str(in.Target)
	}
	if in.Kind == ir.InputBuffer && !in.Persistent {
		p.s(" transient")
	}
	if in.HasFixed {
		p.s(" fixed ")
		p.arg(in.Fixed, ops.TAny, 0)
	}
	if in.Data != nil && in.Data.Numel() <= MaxInline {
		p.data(in.Data)
	}
}

func (p *printer) node(n *ir.Node, depth int) {
	p.indent(depth)
	for i, o := range n.Outs {
		if i > 0 {
			p.s(", ")
		}
		p.value(o)
	}
	if len(n.Outs) > 0 {
		p.s(" = ")
	}
	if n.Op == ops.Unknown {
		p.s(strconv.Quote(n.Target))
	} else {
		p.s(opText(n.Op))
	}
	p.s("(")
	p.args(n, depth)
	p.s(")")
	if len(n.Outs) > 0 {
		for width := p.width(); width < typeColumn; width++ {
			p.s(" ")
		}
		p.s(": ")
		for i, o := range n.Outs {
			if i > 0 {
				p.s(", ")
			}
			p.typ(o.Type)
		}
	}
	if n.Origin != nil && !p.brief {
		p.s("  @")
		p.buf = strconv.AppendInt(p.buf, int64(p.loc(n.Origin)), 10)
	}
}

func (p *printer) width() int { return utf8.RuneCount(p.buf) }

// opText leaves out ".default".
func opText(id ops.ID) string { return strings.TrimSuffix(id.String(), ".default") }

// args prints tensors by place as far as they come first, all else by name.
func (p *printer) args(n *ir.Node, depth int) {
	var schema []ops.Arg
	if n.Op != ops.Unknown {
		schema = n.Info().Schema.Args
	}
	placed := true
	first := true
	for i, a := range n.Args() {
		typ := ops.TAny
		name := ""
		if n.Op == ops.Unknown {
			if i < len(n.ArgNames) {
				name = n.ArgNames[i]
			}
		} else if i < len(schema) {
			typ, name = schema[i].Type, schema[i].Name
			if schema[i].HasDefault && op.IsDefault(n.Op, i, a) {
				placed = false
				continue
			}
			if placed = placed && typ == ops.TTensor; placed {
				name = ""
			}
		} else {
			name = "extra" + strconv.Itoa(i) // too many arguments: only a dump shows this, the parser refuses it
		}
		if !first {
			p.s(", ")
		}
		first = false
		if name != "" {
			p.ident(name)
			p.s("=")
		}
		p.arg(a, typ, depth)
	}
}

func (p *printer) value(v *ir.Value) {
	p.s("%")
	name, ok := p.names[v]
	if !ok {
		name = "?" + v.Name // no value of this graph: only a dump shows this
	}
	p.ident(name)
}

// ident prints a name bare where it can be read back so.
func (p *printer) ident(s string) {
	if s == "" || strings.HasPrefix(s, ".") {
		p.s(strconv.Quote(s))
		return
	}
	for i := range len(s) {
		if !isIdentByte(s[i]) {
			p.s(strconv.Quote(s))
			return
		}
	}
	p.s(s)
}

func isIdentByte(c byte) bool {
	return c == '_' || c == '.' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// str prints a string in back quotes where escapes would make it hard to read.
func (p *printer) str(s string) {
	if strings.ContainsAny(s, "\"\\") && strconv.CanBackquote(s) {
		p.s("`" + s + "`")
		return
	}
	p.buf = strconv.AppendQuote(p.buf, s)
}

func (p *printer) arg(a ir.Arg, typ ops.ArgType, depth int) {
	switch a.Kind() {
	case ir.ArgNone:
		p.s("none")
	case ir.ArgValue:
		p.value(a.Value())
	case ir.ArgInt:
		e, _ := a.Expr()
		p.buf = e.Append(p.buf)
	case ir.ArgFloat:
		f, _ := a.Float()
		p.buf = appendFloat(p.buf, f, 64)
	case ir.ArgBool:
		v, _ := a.Bool()
		p.buf = strconv.AppendBool(p.buf, v)
	case ir.ArgComplex:
		re, im, _ := a.Complex()
		p.s("complex(")
		p.buf = appendFloat(p.buf, re, 64)
		p.s(", ")
		p.buf = appendFloat(p.buf, im, 64)
		p.s(")")
	case ir.ArgStr:
		s, _ := a.Str()
		p.str(s)
	case ir.ArgDType:
		d, _ := a.DType()
		p.word("dtype", d.String(), typ == ops.TDType)
	case ir.ArgLayout:
		s, _ := a.Str()
		p.word("layout", s, typ == ops.TLayout)
	case ir.ArgMemory:
		s, _ := a.Str()
		p.word("memory", s, typ == ops.TMemoryFormat)
	case ir.ArgDevice:
		s, _ := a.Str()
		p.word("device", s, typ == ops.TDevice)
	case ir.ArgList:
		p.s("[")
		for i, e := range a.List() {
			if i > 0 {
				p.s(", ")
			}
			p.arg(e, typ, depth)
		}
		p.s("]")
	case ir.ArgGraph:
		if p.brief {
			p.s("graph @")
			p.ident(a.Graph().Name)
			return
		}
		p.graph(a.Graph(), depth)
	default:
		panic(fmt.Sprintf("text: argument kind %d", a.Kind()))
	}
}

// word prints a name of a closed set: bare where the schema tells what it is.
func (p *printer) word(kind, s string, known bool) {
	if !known {
		p.s(kind + "(")
	}
	if kind == "device" {
		p.str(s)
	} else {
		p.ident(s)
	}
	if !known {
		p.s(")")
	}
}

func (p *printer) typ(t ir.Type) {
	switch t.Kind {
	case ir.KindTensor:
		p.s(t.DType.String())
		p.s("[")
		for i, e := range t.Shape {
			if i > 0 {
				p.s(", ")
			}
			p.buf = e.Append(p.buf)
		}
		p.s("]")
		if st := t.NormStrides(); st != nil {
			p.s("{")
			for i, e := range st {
				if i > 0 {
					p.s(", ")
				}
				p.buf = e.Append(p.buf)
			}
			p.s("}")
		}
		if q := t.Quant; q != nil {
			p.s("!")
			p.ident(q.Scheme)
			p.s("(block=[")
			for i, k := range q.Block {
				if i > 0 {
					p.s(", ")
				}
				p.buf = strconv.AppendInt(p.buf, k, 10)
			}
			fmt.Fprintf((*appender)(&p.buf), "], qmin=%d, qmax=%d, real=%s)", q.QMin, q.QMax, q.Real)
		}
	case ir.KindInt:
		p.s("int")
		if t.Known {
			p.s("(")
			p.buf = t.Sym.Append(p.buf)
			p.s(")")
		}
	default:
		p.s(t.Kind.String())
	}
}

type appender []byte

func (a *appender) Write(b []byte) (int, error) {
	*a = append(*a, b...)
	return len(b), nil
}

// loc is the number of an origin; equal origins have the same.
func (p *printer) loc(o *ir.Origin) int {
	if id, ok := p.locs[o]; ok {
		return id
	}
	text := p.origin(o)
	id, ok := p.locText[text]
	if !ok {
		id = len(p.locList)
		p.locText[text] = id
		p.locList = append(p.locList, text)
	}
	p.locs[o] = id
	return id
}

// origin lists the facts. A derived origin normally has the facts of the one it comes from, and prints as those and the
// rules; one that differs names the other.
func (p *printer) origin(o *ir.Origin) string {
	var rules []string
	base := o
	for base.Via != "" && (base.From == nil || sameFacts(base, base.From)) {
		rules = append(rules, base.Via)
		if base.From == nil {
			break
		}
		base = base.From
	}
	var q printer
	sep := func() {
		if len(q.buf) > 0 {
			q.s(", ")
		}
	}
	if n := len(base.Frames); n > 0 {
		q.frame(base.Frames[n-1])
		if n > 1 {
			q.s(" in #" + strconv.Itoa(p.stack(base.Frames[:n-1])))
		}
	}
	field := func(key, s string) {
		if s != "" {
			sep()
			q.s(key + " ")
			q.ident(s)
		}
	}
	field("module", base.Module)
	field("class", base.Class)
	field("name", base.Name)
	if base.From != nil && base.Via != "" {
		sep()
		q.s("from @" + strconv.Itoa(p.loc(base.From)))
		rules = append(rules, base.Via)
	}
	for i := len(rules) - 1; i >= 0; i-- {
		sep()
		q.s("via ")
		q.rule(rules[i])
	}
	return string(q.buf)
}

func sameFacts(a, b *ir.Origin) bool {
	if a.Module != b.Module || a.Class != b.Class || a.Name != b.Name || len(a.Frames) != len(b.Frames) {
		return false
	}
	if len(a.Frames) > 0 && &a.Frames[0] == &b.Frames[0] {
		return true
	}
	for i := range a.Frames {
		if a.Frames[i] != b.Frames[i] {
			return false
		}
	}
	return true
}

func (p *printer) frame(f ir.Frame) {
	p.buf = strconv.AppendQuote(p.buf, f.File)
	p.s(":" + strconv.Itoa(f.Line) + " ")
	p.ident(f.Func)
	if f.Code != "" {
		p.s(" ")
		p.str(f.Code)
	}
	if f.Library {
		p.s(" library")
	}
}

func (p *printer) rule(s string) {
	for i := range len(s) {
		if !isIdentByte(s[i]) && s[i] != '#' && s[i] != '-' {
			p.s(strconv.Quote(s))
			return
		}
	}
	p.s(s)
}

// stack is the number of the innermost of frames; each frame is printed once for each stack below it.
func (p *printer) stack(frames []ir.Frame) int {
	last := &frames[len(frames)-1]
	if s, ok := p.stacks[last]; ok && s.n == len(frames) {
		return s.id
	}
	outer := -1
	for i := range frames {
		key := frameKey{outer, frames[i]}
		id, ok := p.frames[key]
		if !ok {
			id = len(p.frList)
			p.frames[key] = id
			var q printer
			q.frame(frames[i])
			if outer >= 0 {
				q.s(" in #" + strconv.Itoa(outer))
			}
			p.frList = append(p.frList, string(q.buf))
		}
		outer = id
	}
	p.stacks[last] = stackKey{len(frames), outer}
	return outer
}

func appendFloat(b []byte, f float64, bits int) []byte {
	switch {
	case f != f:
		return append(b, "nan"...)
	case f > 0 && f*0.5 == f && f != 0:
		return append(b, "inf"...)
	case f < 0 && f*0.5 == f:
		return append(b, "-inf"...)
	}
	start := len(b)
	b = strconv.AppendFloat(b, f, 'g', -1, bits)
	for _, c := range b[start:] {
		if c == '.' || c == 'e' {
			return b
		}
	}
	return append(b, ".0"...)
}
