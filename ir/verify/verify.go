// Package verify checks what must hold of a graph between passes. It reports every fault, not the first.
package verify

import (
	"fmt"
	"slices"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/infer"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// Graph checks a root graph and all nested in it against the rules of its stage. A fault is a bug of whatever made the
// graph, so the diagnostics have the code "verify".
func Graph(g *ir.Graph) ir.Diags {
	c := &checker{root: g, stage: g.Stage, holders: map[*ir.Graph]*ir.Node{}}
	if g.Parent != nil {
		c.add(nil, "the root graph has a parent")
	}
	c.graph(g)
	c.symbols()
	return c.diags
}

type checker struct {
	root    *ir.Graph
	stage   ops.Stage
	diags   ir.Diags
	holders map[*ir.Graph]*ir.Node
}

func (c *checker) add(n *ir.Node, format string, args ...any) {
	msg := fmt.Sprintf(format, args...)
	if n == nil {
		c.diags = append(c.diags, &ir.Diag{Code: "verify", Msg: msg, File: c.root.File, Entry: c.root.Entry})
		return
	}
	d := &ir.Diag{Code: "verify", Msg: msg, Op: n.OpName(), Origin: n.Origin, File: c.root.File, Entry: c.root.Entry}
	if o := n.Out(); o != nil {
		d.Node = o.Name
	}
	c.diags = append(c.diags, d)
}

func (c *checker) graph(g *ir.Graph) {
	if g.Syms != c.root.Syms {
		c.add(nil, "graph @%s has a symbol table of its own", g.Name)
	}
	seen := make(map[*ir.Value]bool, len(g.Inputs)+g.NumNodes())
	uses := make(map[*ir.Value]int, len(g.Inputs)+g.NumNodes())
	c.inputs(g, seen)
	count := 0
	var prev *ir.Node
	for n := g.First(); ; n = n.Next() {
		if n == nil {
			c.add(nil, "graph @%s does not end with its return node", g.Name)
			return
		}
		if n.Prev() != prev || n.Graph() != g || n.Erased() {
			c.add(n, "the list of nodes is broken here")
			return
		}
		prev = n
		for v := range n.Inputs() {
			uses[v]++
			if !seen[v] {
				c.add(n, "refers to %s, which is not defined before it in graph @%s", describe(v), g.Name)
			}
		}
		if n.IsReturn() {
			if n != g.Ret() {
				c.add(n, "is not the return node of graph @%s", g.Name)
			}
			break
		}
		count++
		for i, o := range n.Outs {
			if o.Def != n || o.Index != i || o.Graph() != g || o.Input != nil {
				c.add(n, "result %d does not point back to its node", i)
			}
			if seen[o] {
				c.add(n, "result %d is defined twice", i)
			}
			seen[o] = true
		}
		c.node(n)
	}
	if count != g.NumNodes() {
		c.add(nil, "graph @%s counts %d nodes and has %d", g.Name, g.NumNodes(), count)
	}
	for v := range seen {
		if v.NumUses() != uses[v] {
			c.add(v.Def, "%s counts %d uses and has %d", describe(v), v.NumUses(), uses[v])
		}
	}
	c.outputs(g)
}

func describe(v *ir.Value) string {
	switch {
	case v.Input != nil:
		return fmt.Sprintf("input %q", v.Name)
	case v.Def != nil:
		return fmt.Sprintf("result %q of %s", v.Name, v.Def.OpName())
	}
	return fmt.Sprintf("value %q", v.Name)
}

func (c *checker) inputs(g *ir.Graph, seen map[*ir.Value]bool) {
	type key struct {
		kind   ir.InputKind
		target string
	}
	targets := map[key]bool{}
	for i, in := range g.Inputs {
		v := in.Value
		if v.Input != in || v.Index != i || v.Graph() != g || v.Def != nil {
			c.add(nil, "input %d of graph @%s does not point back to its value", i, g.Name)
		}
		if seen[v] {
			c.add(nil, "input %d of graph @%s is there twice", i, g.Name)
		}
		seen[v] = true
		if nested := g.Parent != nil; nested != (in.Kind == ir.InputOperand) {
			c.add(nil, "input %q of graph @%s is of kind %s", v.Name, g.Name, in.Kind)
		}
		switch in.Kind {
		case ir.InputParam, ir.InputBuffer, ir.InputConst:
			k := key{in.Kind, in.Target}
			if in.Target == "" || targets[k] {
				c.add(nil, "%s input %q: its target %q is empty or there twice", in.Kind, v.Name, in.Target)
			}
			targets[k] = true
		}
		c.typ(nil, v)
		if d := in.Data; d != nil {
			if sizes, ok := v.Type.Sizes(); !v.Type.IsTensor() || !ok || d.DType != v.Type.DType || !slices.Equal(sizes, d.Sizes) {
				c.add(nil, "%s %q is of type %s, its contents are %s%v", in.Kind, in.Target, v.Type, d.DType, d.Sizes)
			}
		}
	}
}

// typ checks that a type is one.
func (c *checker) typ(n *ir.Node, v *ir.Value) {
	t := v.Type
	if t.IsTensor() {
		if t.DType == ops.DTypeNone {
			c.add(n, "%s has no element type", describe(v))
		}
		if t.Strides != nil && len(t.Strides) != len(t.Shape) {
			c.add(n, "%s has %d strides for %d dimensions", describe(v), len(t.Strides), len(t.Shape))
		}
		for i, e := range t.Shape {
			if err := e.Err(); err != nil {
				c.add(n, "%s: size %d: %v", describe(v), i, err)
			} else if k, ok := e.IsConst(); ok && k < 0 {
				c.add(n, "%s: size %d is %d", describe(v), i, k)
			}
		}
		return
	}
	if t.Shape != nil || t.Strides != nil || t.DType != ops.DTypeNone || t.Quant != nil {
		c.add(n, "%s is of kind %s and has a tensor's facts", describe(v), t.Kind)
	}
	if t.Known && t.Kind != ir.KindInt {
		c.add(n, "%s is of kind %s and has an integer's expression", describe(v), t.Kind)
	}
}

func (c *checker) node(n *ir.Node) {
	for _, o := range n.Outs {
		c.typ(n, o)
	}
	for _, h := range n.Graphs() {
		c.nested(n, h)
	}
	if n.Op == ops.Unknown {
		if n.Target == "" {
			c.add(n, "an operator without a name")
		}
		// The front end lets operators through that nobody knows, so that a diagnostic can name all of them.
		if c.stage > ops.StageEdge && n.Attr == nil {
			c.add(n, "no row of the table, so illegal in stage %s", c.stage)
		}
		return
	}
	info := n.Info()
	if !info.Stages.Has(c.stage) {
		c.add(n, "illegal in stage %s", c.stage)
	} else if info.Mutates && c.stage > ops.StageAten {
		c.add(n, "writes to an argument in stage %s", c.stage)
	}
	args := info.Schema.Args
	if n.NumArgs() != len(args) {
		c.add(n, "%d arguments, the schema has %d", n.NumArgs(), len(args))
		return
	}
	ok := true
	for i := range args {
		if why := argFault(n.Arg(i), &args[i]); why != "" {
			c.add(n, "argument %s: %s", args[i].Name, why)
			ok = false
		}
	}
	if ok {
		c.infer(n)
	}
}

// argFault tells what is wrong with an argument for its schema.
func argFault(a ir.Arg, s *ops.Arg) string {
	if a.IsNone() {
		if s.Opt || s.Type == ops.TAny || s.Type == ops.TGenerator || s.HasDefault && s.Default == "None" {
			return ""
		}
		return "is None"
	}
	if v := a.Value(); v != nil && v.Type.Kind == ir.KindNone && s.Opt {
		return ""
	}
	if s.List && s.Type != ops.TAny {
		if a.Kind() != ir.ArgList {
			if s.Size > 0 {
				return elemFault(a, s)
			}
			return "is no list"
		}
		for i, e := range a.List() {
			if e.IsNone() && s.ElemOpt {
				continue
			}
			if why := elemFault(e, s); why != "" {
				return fmt.Sprintf("element %d %s", i, why)
			}
		}
		return ""
	}
	return elemFault(a, s)
}

var scalarArgs = map[ops.ArgType][]ir.ArgKind{
	// A number stands for a tensor of no dimensions, as torch.export writes x + 1.
	ops.TTensor: {ir.ArgInt, ir.ArgFloat, ir.ArgBool, ir.ArgComplex},
	ops.TInt:    {ir.ArgInt, ir.ArgBool}, ops.TFloat: {ir.ArgFloat, ir.ArgInt, ir.ArgBool},
	ops.TBool: {ir.ArgBool, ir.ArgInt}, ops.TScalar: {ir.ArgInt, ir.ArgFloat, ir.ArgBool, ir.ArgComplex},
	ops.TStr: {ir.ArgStr}, ops.TDType: {ir.ArgDType, ir.ArgInt}, ops.TLayout: {ir.ArgLayout}, ops.TDevice: {ir.ArgDevice},
	ops.TMemoryFormat: {ir.ArgMemory}, ops.TGraph: {ir.ArgGraph},
}

var valueKinds = map[ops.ArgType][]ir.Kind{
	ops.TTensor: {ir.KindTensor, ir.KindInt, ir.KindFloat, ir.KindBool},
	ops.TInt:    {ir.KindInt, ir.KindBool}, ops.TFloat: {ir.KindFloat, ir.KindInt}, ops.TBool: {ir.KindBool, ir.KindInt},
	ops.TScalar: {ir.KindInt, ir.KindFloat, ir.KindBool}, ops.TStr: {ir.KindStr},
}

func elemFault(a ir.Arg, s *ops.Arg) string {
	if s.Type == ops.TAny {
		return ""
	}
	if v := a.Value(); v != nil {
		if !slices.Contains(valueKinds[s.Type], v.Type.Kind) {
			return fmt.Sprintf("is %s of kind %s", describe(v), v.Type.Kind)
		}
		return ""
	}
	if !slices.Contains(scalarArgs[s.Type], a.Kind()) {
		return "is of the wrong kind"
	}
	if e, ok := a.Expr(); ok && e.Err() != nil {
		return e.Err().Error()
	}
	return ""
}

// infer compares the result types with those of the rule.
func (c *checker) infer(n *ir.Node) {
	if !infer.Has(n.Op) {
		return
	}
	want, err := infer.Types(n.Graph(), n.Op, n.Args())
	if err != nil {
		c.add(n, "%v", err)
		return
	}
	if len(want) != len(n.Outs) {
		c.add(n, "%d results, its rule gives %d", len(n.Outs), len(want))
		return
	}
	for i, t := range want {
		got := n.Outs[i].Type
		if n.Outs[i].Type.Kind == ir.KindNone && n.Outs[i].NumUses() == 0 {
			continue // a result that the exporting process left out
		}
		if !c.compatible(got, t) {
			c.add(n, "result %d is %s, its rule gives %s", i, got, t)
		}
	}
}

// compatible tells whether two types can be the same. Sizes that differ as expressions may still be equal for all values
// that the symbols can have: only what is proven different, or was at export, is a fault.
func (c *checker) compatible(a, b ir.Type) bool {
	if a.Kind != b.Kind || a.DType != b.DType || len(a.Shape) != len(b.Shape) {
		return false
	}
	for i := range a.Shape {
		if !c.maybeEqual(a.Shape[i], b.Shape[i]) {
			return false
		}
	}
	return a.Kind != ir.KindInt || !a.Known || !b.Known || c.maybeEqual(a.Sym, b.Sym)
}

func (c *checker) maybeEqual(x, y sym.Expr) bool {
	if x.Equal(y) {
		return true
	}
	if eq, known := c.root.Syms.ProveEq(x, y); known {
		return eq
	}
	a, errA := sym.Eval(x, c.root.Syms)
	b, errB := sym.Eval(y, c.root.Syms)
	return errA != nil || errB != nil || a == b
}

func (c *checker) nested(n *ir.Node, h *ir.Graph) {
	if other := c.holders[h]; other != nil {
		c.add(n, "graph @%s belongs to another node too", h.Name)
		return
	}
	c.holders[h] = n
	if h.Parent != n {
		c.add(n, "graph @%s has another parent", h.Name)
	}
	c.graph(h)
}

func (c *checker) outputs(g *ir.Graph) {
	if len(g.Outputs) != g.Ret().NumArgs() {
		c.add(nil, "graph @%s has %d outputs and returns %d", g.Name, len(g.Outputs), g.Ret().NumArgs())
		return
	}
	written := map[*ir.Input]bool{}
	user := false
	for i, o := range g.Outputs {
		if o.Kind == ir.OutputUser {
			user = true
			if o.Target != nil {
				c.add(nil, "output %d of graph @%s is the user's and has a target", i, g.Name)
			}
			continue
		}
		in := o.Target
		switch {
		case in == nil || in.Value.Graph() != g:
			c.add(nil, "output %d of graph @%s writes to no input of it", i, g.Name)
			continue
		case user:
			c.add(nil, "output %d of graph @%s is a write-back after a user output", i, g.Name)
		case written[in]:
			c.add(nil, "output %d of graph @%s writes %q a second time", i, g.Name, in.Value.Name)
		case (o.Kind == ir.OutputInputMutation) != (in.Kind == ir.InputUser || in.Kind == ir.InputOperand):
			c.add(nil, "output %d of graph @%s: the kind of write-back does not fit the %s input %q", i, g.Name, in.Kind, in.Value.Name)
		}
		written[in] = true
		v := g.Ret().In(i)
		if v == nil || !c.compatible(v.Type, in.Value.Type) {
			c.add(nil, "output %d of graph @%s does not have the type of input %q, %s", i, g.Name, in.Value.Name, in.Value.Type)
		}
	}
}

// symbols checks that each symbol in use is declared and gets its value from an input or a node.
func (c *checker) symbols() {
	bound := map[string]bool{}
	c.root.Walk(func(g *ir.Graph) {
		for s := range g.Bindings() {
			bound[s] = true
		}
	})
	reported := map[string]bool{}
	visit := func(n *ir.Node, e sym.Expr) {
		for _, s := range sym.Symbols(e) {
			if reported[s] {
				continue
			}
			if _, ok := c.root.Syms.Get(s); !ok {
				reported[s] = true
				c.add(n, "symbol %s is not declared", s)
			} else if !bound[s] {
				reported[s] = true
				c.add(n, "symbol %s gets its value from no input or node", s)
			}
		}
	}
	c.root.Walk(func(g *ir.Graph) {
		for _, in := range g.Inputs {
			in.Value.Type.EachSymbol(func(e sym.Expr) { visit(nil, e) })
		}
		for n := g.First(); n != nil; n = n.Next() {
			for _, o := range n.Outs {
				o.Type.EachSymbol(func(e sym.Expr) { visit(n, e) })
			}
			for _, a := range n.Args() {
				a.EachExpr(func(e sym.Expr) { visit(n, e) })
			}
		}
	})
}
