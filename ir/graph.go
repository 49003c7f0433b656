package ir

import (
	"fmt"
	"iter"
	"slices"

	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// Program is what an archive holds: one graph a method over shared weights.
type Program struct {
	Methods []*Graph
}

// Method finds a graph by name, or nil.
func (p *Program) Method(name string) *Graph {
	for _, g := range p.Methods {
		if g.Name == name {
			return g
		}
	}
	return nil
}

// InputKind tells what feeds a graph input.
type InputKind uint8

// The kinds of inputs. Operand is an input of a nested graph.
const (
	InputUser InputKind = iota
	InputParam
	InputBuffer
	InputConst
	InputOperand
)

var inputKindNames = [...]string{"user", "param", "buffer", "const", "operand"}

// String is the kind's name in IR text.
func (k InputKind) String() string { return inputKindNames[k] }

// Input is a graph input.
type Input struct {
	Value  *Value
	Kind   InputKind
	Target string // the parameter's, buffer's or constant's name in the model
	// Persistent is false for buffers that the state dict leaves out.
	Persistent bool
	// Data is the initial contents of a parameter, buffer or constant; nil where the text of a graph came without.
	Data *Data
	// Fixed is the value that an export specialised a user input to; None otherwise.
	Fixed Arg
	// HasFixed tells that Fixed is meant, None included.
	HasFixed bool
}

// OutputKind tells where a graph output goes.
type OutputKind uint8

// The kinds of outputs: to the user, or written back to a buffer or to a user input.
const (
	OutputUser OutputKind = iota
	OutputBufferMutation
	OutputInputMutation
)

// Output describes one output; its argument is the argument of the return node at the same place.
type Output struct {
	Kind OutputKind
	// Target is the input written back to; nil for OutputUser.
	Target *Input
}

// Graph is a list of nodes in order, with inputs and outputs.
type Graph struct {
	Name   string
	Inputs []*Input
	// Outputs describe the arguments of Ret, place by place. Write-backs come first.
	Outputs []Output
	// Syms is the symbol table, shared with nested graphs.
	Syms *sym.Table
	// InSpec and OutSpec are the pytree specs as JSON text, empty for nested graphs.
	InSpec, OutSpec string
	// Parent is the node that holds a nested graph.
	Parent *Node
	// Stage is the level that the graph has reached; ir/verify checks it.
	Stage ops.Stage
	// InputNames are the user inputs' names by place as the model's author knows them; may be empty.
	InputNames []string
	// File is the archive that the graph came from and Entry the entry in it, for diagnostics.
	File, Entry string
	// Method is, for a delegate's region, the name of the graph that it was taken from; empty otherwise.
	Method string

	head, tail *Node // sentinel-free doubly linked list; tail is ret
	ret        *Node
	numNodes   int

	// targets are the names of the first known inputs, each with the last number that was added to make another of it.
	targets map[string]int
	known   int
}

// NewGraph makes an empty graph with a return node without outputs.
func NewGraph(name string, syms *sym.Table) *Graph {
	if syms == nil {
		syms = &sym.Table{}
	}
	g := &Graph{Name: name, Syms: syms}
	g.ret = &Node{graph: g, isRet: true, large: true}
	g.head, g.tail = g.ret, g.ret
	return g
}

// Node is one operation.
type Node struct {
	Op ops.ID
	// Target is the name of an operator without a row (Op is ops.Unknown); ArgNames then names its arguments.
	Target   string
	ArgNames []string
	// Outs are the results, those of Tensor[] in line.
	Outs   []*Value
	Origin *Origin
	// Attr is what a backend hangs on a node of its own (a delegate's region, for one).
	Attr any

	args       []Arg
	graph      *Graph
	prev, next *Node
	order      int
	isRet      bool
	erased     bool
	// large nodes leave no stale uses, as looking through their arguments would take long: return nodes, and those that
	// are made with many arguments.
	large bool
}

// Value is a result of a node or an input of a graph.
type Value struct {
	Name string
	Type Type
	// Def is the node that makes the value, nil for inputs; Index its place among the results or inputs.
	Def   *Node
	Index int
	// Input is set for inputs.
	Input *Input

	uses  []use // with repeats; may hold stale entries of nodes that are not large
	nuses int   // true count of references
	graph *Graph
}

// use is a reference by argument arg of a node.
type use struct {
	node *Node
	arg  int
}

// manyArgs is the number of arguments, elements of lists included, from which on a node is large.
const manyArgs = 32

// OpName is the operator's name.
func (n *Node) OpName() string {
	if n.isRet {
		return "return"
	}
	if n.Op == ops.Unknown {
		return n.Target
	}
	return n.Op.String()
}

// Info is the table's facts of the operator.
func (n *Node) Info() *ops.Info { return n.Op.Info() }

// Graph is the graph that holds the node.
func (n *Node) Graph() *Graph { return n.graph }

// IsReturn tells the return node.
func (n *Node) IsReturn() bool { return n.isRet }

// Erased tells nodes that were taken out of their graph.
func (n *Node) Erased() bool { return n.erased }

// Args are the arguments in schema order, defaults filled in; not to be written to.
func (n *Node) Args() []Arg { return n.args }

// NumArgs is the number of arguments.
func (n *Node) NumArgs() int { return len(n.args) }

// Arg is the argument at place i, None past the end.
func (n *Node) Arg(i int) Arg {
	if i < 0 || i >= len(n.args) {
		return None
	}
	return n.args[i]
}

// ArgNamed is the argument of the schema's name, None where there is none.
func (n *Node) ArgNamed(name string) Arg {
	if n.Op == ops.Unknown {
		for i, a := range n.ArgNames {
			if a == name {
				return n.Arg(i)
			}
		}
		return None
	}
	return n.Arg(n.Info().ArgIndex(name))
}

// In is the value at argument i, or nil.
func (n *Node) In(i int) *Value { return n.Arg(i).v }

// Out is the first result, or nil.
func (n *Node) Out() *Value {
	if len(n.Outs) == 0 {
		return nil
	}
	return n.Outs[0]
}

// Prev and Next walk the list; the node after the last is the return node, after that nil.
func (n *Node) Prev() *Node { return n.prev }

// Next is the node after n.
func (n *Node) Next() *Node { return n.next }

// Inputs gives the values that n refers to, in order, with repeats; not those used inside its nested graphs.
func (n *Node) Inputs() iter.Seq[*Value] {
	return func(yield func(*Value) bool) {
		stop := false
		for _, a := range n.args {
			a.Each(func(v *Value) {
				if !stop && !yield(v) {
					stop = true
				}
			})
			if stop {
				return
			}
		}
	}
}

// Graphs gives the nested graphs of n.
func (n *Node) Graphs() []*Graph {
	var gs []*Graph
	for _, a := range n.args {
		if a.kind == ArgGraph {
			gs = append(gs, a.more().g)
		}
		for _, e := range a.more().list {
			if e.kind == ArgGraph {
				gs = append(gs, e.more().g)
			}
		}
	}
	return gs
}

// SetArg replaces argument i.
func (n *Node) SetArg(i int, a Arg) {
	n.args[i].Each(func(v *Value) { v.dropUse(n, i) })
	n.args[i] = a
	n.adopt(i)
}

// SetArgs replaces all arguments.
func (n *Node) SetArgs(as []Arg) {
	n.dropUses()
	n.args = as
	for i := range as {
		n.adopt(i)
	}
}

func (n *Node) dropUses() {
	for i, a := range n.args {
		a.Each(func(v *Value) { v.dropUse(n, i) })
	}
}

// adopt enters what argument i refers to.
func (n *Node) adopt(i int) {
	a := n.args[i]
	a.Each(func(v *Value) { v.addUse(n, i) })
	if a.kind == ArgGraph {
		a.more().g.Parent = n
	}
	for _, e := range a.more().list {
		if e.kind == ArgGraph {
			e.more().g.Parent = n
		}
	}
}

func (v *Value) addUse(n *Node, arg int) {
	v.uses = append(v.uses, use{n, arg})
	v.nuses++
}

// dropUse only counts where n is not large; stale entries are swept when most are stale, so that editing a value with many
// users stays linear.
func (v *Value) dropUse(n *Node, arg int) {
	v.nuses--
	if n.large {
		for i := len(v.uses) - 1; i >= 0; i-- {
			if v.uses[i] == (use{n, arg}) {
				v.uses = slices.Delete(v.uses, i, i+1)
				break
			}
		}
	}
	if len(v.uses) > 32 && len(v.uses) > 4*v.nuses {
		v.sweep()
	}
}

func (v *Value) sweep() {
	seen := make(map[*Node]bool, v.nuses)
	kept := make([]use, 0, v.nuses)
	for _, u := range v.uses {
		n := u.node
		switch {
		case n.large:
			kept = append(kept, u)
		case !n.erased && !seen[n]:
			seen[n] = true
			for i, a := range n.args {
				a.Each(func(w *Value) {
					if w == v {
						kept = append(kept, use{n, i})
					}
				})
			}
		}
	}
	v.uses = kept
}

// NumUses counts the references to v, repeats and the return node included.
func (v *Value) NumUses() int { return v.nuses }

// Users gives the distinct nodes that refer to v, in the order they began to; the return node is one of them. The slice
// is the caller's.
func (v *Value) Users() []*Node {
	if v.nuses == 0 {
		return nil
	}
	// As many entries as references: none is stale.
	exact := len(v.uses) == v.nuses
	out := make([]*Node, 0, len(v.uses))
	var seen map[*Node]bool
	if len(v.uses) > 8 {
		seen = make(map[*Node]bool, len(v.uses))
	}
	for _, u := range v.uses {
		n := u.node
		if n.erased {
			continue
		}
		if seen != nil {
			if seen[n] {
				continue
			}
			seen[n] = true
		} else if slices.Contains(out, n) {
			continue
		}
		if exact || n.large || n.refers(v) {
			out = append(out, n)
		}
	}
	return out
}

func (n *Node) refers(v *Value) bool {
	for w := range n.Inputs() {
		if w == v {
			return true
		}
	}
	return false
}

// Graph is the graph in which v is defined.
func (v *Value) Graph() *Graph { return v.graph }

// IsOutput tells whether the return node refers to v.
func (v *Value) IsOutput() bool {
	return slices.ContainsFunc(v.uses, func(u use) bool { return u.node.isRet })
}

// Returned gives the places at which the return node refers to v.
func (v *Value) Returned() []int {
	var at []int
	for _, u := range v.uses {
		if u.node.isRet {
			at = append(at, u.arg)
		}
	}
	return at
}

// Origin is the origin of the node that makes v, or nil.
func (v *Value) Origin() *Origin {
	if v.Def != nil {
		return v.Def.Origin
	}
	return nil
}

// ReplaceAllUses makes every user of v refer to w instead.
func (v *Value) ReplaceAllUses(w *Value) {
	if v == w {
		return
	}
	for _, n := range v.Users() {
		n.ReplaceUses(v, w)
	}
}

// ReplaceUses makes n refer to w wherever it refers to v.
func (n *Node) ReplaceUses(v, w *Value) {
	replace := func(i int) {
		m := n.args[i].Map(func(x *Value) *Value {
			if x == v {
				return w
			}
			return x
		})
		if !sameRef(m, n.args[i]) {
			n.SetArg(i, m)
		}
	}
	if !n.large {
		for i := range n.args {
			replace(i)
		}
		return
	}
	var at []int
	for _, u := range v.uses {
		if u.node == n {
			at = append(at, u.arg)
		}
	}
	// From the last on, as that is where a use is taken out of the list at once.
	slices.Sort(at)
	for _, i := range slices.Backward(slices.Compact(at)) {
		replace(i)
	}
}

// Nodes walks the nodes in order without the return node. The node at hand may be erased, nodes may be inserted before
// it (not visited) or after it (visited).
func (g *Graph) Nodes() iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		for n := g.head; n != nil && !n.isRet; {
			next := n.next
			if !yield(n) {
				return
			}
			if !n.erased {
				next = n.next
			}
			n = next
		}
	}
}

// Backward walks the nodes from the last to the first; the node at hand may be erased.
func (g *Graph) Backward() iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		for n := g.ret.prev; n != nil; {
			prev := n.prev
			if !yield(n) {
				return
			}
			n = prev
		}
	}
}

// NumNodes counts the nodes without the return node and without those of nested graphs.
func (g *Graph) NumNodes() int { return g.numNodes }

// First is the first node, the return node in an empty graph.
func (g *Graph) First() *Node { return g.head }

// Ret is the return node; its arguments are the outputs.
func (g *Graph) Ret() *Node { return g.ret }

// Number gives each node its place in the list (the return node last), for Order.
func (g *Graph) Number() {
	i := 0
	for n := g.head; n != nil; n = n.next {
		n.order = i
		i++
	}
}

// Order is the place that the last Number of the graph gave the node.
func (n *Node) Order() int { return n.order }

// AddInput appends an input and gives its value.
func (g *Graph) AddInput(name string, kind InputKind, target string, t Type) *Input {
	in := &Input{Kind: kind, Target: target}
	in.Value = &Value{Name: name, Type: t, Index: len(g.Inputs), Input: in, graph: g}
	g.Inputs = append(g.Inputs, in)
	return in
}

// AddConst appends a constant input with data and gives its value. The name is made unique.
func (g *Graph) AddConst(name string, d *Data) *Value {
	unique := g.uniqueTarget(name)
	t := Type{DType: d.DType, Shape: Consts(d.Sizes...)}
	if d.Strides != nil {
		t.Strides = Consts(d.Strides...)
	}
	in := g.AddInput("", InputConst, unique, t)
	in.Data = d
	return in.Value
}

// uniqueTarget gives name, with a number where an input has it already.
func (g *Graph) uniqueTarget(name string) string {
	if g.targets == nil {
		g.targets = make(map[string]int, len(g.Inputs))
	}
	// Inputs that came since the last time.
	for ; g.known < len(g.Inputs); g.known++ {
		g.targets[g.Inputs[g.known].Target] |= 0
	}
	unique := name
	for {
		if _, taken := g.targets[unique]; !taken {
			return unique
		}
		g.targets[name]++
		unique = fmt.Sprintf("%s_%d", name, g.targets[name])
	}
}

// RemoveInput takes out an input that nobody uses.
func (g *Graph) RemoveInput(in *Input) {
	g.RemoveInputs(func(x *Input) bool { return x == in })
}

// RemoveInputs takes out the inputs that drop says, which nobody may use.
func (g *Graph) RemoveInputs(drop func(*Input) bool) {
	kept := g.Inputs[:0]
	for _, in := range g.Inputs {
		if !drop(in) {
			in.Value.Index = len(kept)
			kept = append(kept, in)
		} else if in.Value.nuses > 0 {
			panic("ir: RemoveInput of an input in use")
		}
	}
	clear(g.Inputs[len(kept):])
	g.Inputs = kept
	g.targets, g.known = nil, 0
}

// SetOutputs sets what the graph returns.
func (g *Graph) SetOutputs(outs []Output, args []Arg) {
	if len(outs) != len(args) {
		panic("ir: SetOutputs with unequal lengths")
	}
	g.Outputs = outs
	g.ret.SetArgs(args)
}

// NewNode makes a node before at (the return node appends) with results of the given types. The arguments must be
// complete and in schema order.
func (g *Graph) NewNode(at *Node, op ops.ID, args []Arg, types []Type, origin *Origin) *Node {
	n := &Node{Op: op, graph: g, Origin: origin}
	count := len(args)
	for _, a := range args {
		count += len(a.more().list)
	}
	n.large = count >= manyArgs
	n.SetArgs(args)
	n.Outs = make([]*Value, len(types))
	for i, t := range types {
		n.Outs[i] = &Value{Type: t, Def: n, Index: i, graph: g}
	}
	g.insert(n, at)
	return n
}

func (g *Graph) insert(n, at *Node) {
	n.prev, n.next = at.prev, at
	if at.prev != nil {
		at.prev.next = n
	} else {
		g.head = n
	}
	at.prev = n
	g.numNodes++
}

func (g *Graph) unlink(n *Node) {
	if n.prev != nil {
		n.prev.next = n.next
	} else {
		g.head = n.next
	}
	n.next.prev = n.prev
	g.numNodes--
}

// Move puts n before at; the caller answers for the order of definitions and uses.
func (g *Graph) Move(n, at *Node) {
	if n == at || n.next == at {
		return
	}
	g.unlink(n)
	g.insert(n, at)
}

// Erase takes n out. Its results must have no users.
func (g *Graph) Erase(n *Node) {
	for _, o := range n.Outs {
		if o.nuses > 0 {
			panic(fmt.Sprintf("ir: Erase of %s whose result is used", n.OpName()))
		}
	}
	g.unlink(n)
	n.erased = true
	n.dropUses()
}

// Replace makes the users of n's results refer to vs, and erases n. A nil in vs stands for a result nobody uses.
func (g *Graph) Replace(n *Node, vs ...*Value) {
	for i, o := range n.Outs {
		if i < len(vs) && vs[i] != nil {
			if vs[i].Name == "" && vs[i].Def != nil {
				vs[i].Name = o.Name
			}
			o.ReplaceAllUses(vs[i])
		}
	}
	g.Erase(n)
}

// Root is the outermost graph.
func (g *Graph) Root() *Graph {
	for g.Parent != nil {
		g = g.Parent.graph
	}
	return g
}

// UserInputs gives the inputs that the caller feeds.
func (g *Graph) UserInputs() []*Input {
	var ins []*Input
	for _, in := range g.Inputs {
		if in.Kind == InputUser {
			ins = append(ins, in)
		}
	}
	return ins
}
