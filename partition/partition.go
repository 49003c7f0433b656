package partition

import (
	"context"
	"fmt"
	"slices"
	"sort"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// Target is what stands for a region in the graph: a node of this name with the backend's *Lowered as its Attr.
const Target = "lathe.delegate"

// Thrifty is a backend that gives back regions which cost more than they give.
type Thrifty interface {
	// Decline says why the nodes had better stay outside, "" where they had not.
	Decline(nodes []*ir.Node) string
}

// Mover is a backend that tells nodes which compute nothing: a chain of such goes to the region that reads it.
type Mover interface {
	Moves(n *ir.Node) bool
}

// Stateful is a backend that can keep a buffer inside a region, which then reads and writes it where nobody else does.
type Stateful interface {
	OwnsBuffer(in *ir.Input) bool
}

// Report says how a graph was divided.
type Report struct {
	Regions []Region
	Outside []Outside
}

// Region is a part of the graph that a delegate runs.
type Region struct {
	Name  string
	Graph *ir.Graph
	// Ops counts its nodes by operator.
	Ops map[string]int
	// Ends are the nodes outside that take what it gives, and why they are not inside; each once.
	Ends []Outside
	Node *ir.Node
}

// Outside is a node that stays with the runtime's kernels.
type Outside struct {
	Node *ir.Node
	Why  *ir.Diag
}

// Partition moves what the backend takes into regions, lowers each and leaves a node in its place. Nested graphs are
// divided likewise. The regions are few: nodes of the same level, counted by how often a path from the inputs left the
// backend, make one region, connected or not; no path leaves a region and comes back.
func Partition(ctx context.Context, g *ir.Graph, b Backend) (*Report, error) {
	rep := &Report{}
	if err := divide(ctx, g, b, rep); err != nil {
		return nil, err
	}
	return rep, nil
}

func divide(ctx context.Context, g *ir.Graph, b Backend, rep *Report) error {
	d := &divider{g: g, b: b, why: map[*ir.Node]*ir.Diag{}, level: map[*ir.Node]int{}, in: map[*ir.Node]bool{}, binds: map[string]*ir.Node{}}
	for s, bind := range g.Bindings() {
		if bind.Value.Def != nil {
			d.binds[s] = bind.Value.Def
		}
	}
	caps := b.Caps()
	for n := range g.Nodes() {
		if _, why := caps.Match(n); why != nil {
			d.why[n] = why
			continue
		}
		d.in[n] = true
	}
	d.levels()
	d.sink()
	if t, ok := b.(Thrifty); ok {
		for {
			declined := false
			for _, nodes := range d.regions() {
				if why := t.Decline(nodes); why != "" {
					declined = true
					for _, n := range nodes {
						delete(d.in, n)
						d.why[n] = n.Diag("not-worth-it", why, "")
					}
				}
			}
			if !declined {
				break
			}
			d.levels()
			d.sink()
		}
	}
	d.join()
	regions := d.regions()
	d.schedule()
	for _, nodes := range regions {
		if err := ctx.Err(); err != nil {
			return err
		}
		r := d.extract(nodes, len(rep.Regions))
		low, err := b.Lower(ctx, r.Graph)
		if err != nil {
			return fmt.Errorf("region %s: %w", r.Name, err)
		}
		r.Node.Attr = low
		rep.Regions = append(rep.Regions, *r)
	}
	for n := range g.Nodes() {
		if why := d.why[n]; why != nil {
			rep.Outside = append(rep.Outside, Outside{n, why})
		}
		for _, h := range n.Graphs() {
			if err := divide(ctx, h, b, rep); err != nil {
				return err
			}
		}
	}
	return nil
}

type divider struct {
	g     *ir.Graph
	b     Backend
	why   map[*ir.Node]*ir.Diag
	in    map[*ir.Node]bool
	level map[*ir.Node]int
	// binds are the nodes that tell a symbol.
	binds map[string]*ir.Node
}

// needs calls f for every node that n has to come after.
func (d *divider) needs(n *ir.Node, f func(*ir.Node)) {
	for v := range n.Inputs() {
		if v.Def != nil && v.Def.Graph() == d.g {
			f(v.Def)
		}
	}
	if len(d.binds) == 0 {
		return
	}
	visit := func(e sym.Expr) {
		for _, s := range sym.Symbols(e) {
			if m := d.binds[s]; m != nil && m != n {
				f(m)
			}
		}
	}
	for _, a := range n.Args() {
		a.EachExpr(visit)
	}
	for _, o := range n.Outs {
		o.Type.EachSymbol(visit)
	}
}

// ordered tells nodes that keep their order among each other: what draws random numbers or has an effect.
func ordered(n *ir.Node) bool {
	i := n.Info()
	return n.Op == ops.Unknown || i.Random || i.Effect || i.Mutates
}

func (d *divider) levels() {
	clear(d.level)
	last := 0
	for n := range d.g.Nodes() {
		l := 0
		d.needs(n, func(m *ir.Node) {
			k := d.level[m]
			if d.in[n] && !d.in[m] {
				k++
			}
			l = max(l, k)
		})
		if ordered(n) && !d.in[n] {
			l = max(l, last)
			last = l
		}
		d.level[n] = l
	}
}

// sink moves nodes inside that nothing inside their region uses to the first region that does, so that less crosses the
// edges. A node stays where one of its inputs is made, unless that moves along.
func (d *divider) sink() {
	for n := range d.g.Backward() {
		if !d.in[n] || ordered(n) {
			continue
		}
		least, free := -1, true
		for _, o := range n.Outs {
			for _, u := range o.Users() {
				if u.IsReturn() || !d.in[u] {
					free = false
					break
				}
				if l := d.level[u]; least < 0 || l < least {
					least = l
				}
			}
			o.Type.EachSymbol(func(e sym.Expr) {
				for _, s := range sym.Symbols(e) {
					free = free && d.binds[s] != n
				}
			})
		}
		// What it reads of another node would have to cross an edge instead, unless that moves along.
		d.needs(n, func(m *ir.Node) {
			if d.in[m] && !d.follows(m, n) {
				free = false
			}
		})
		if free && least > d.level[n] {
			d.level[n] = least
		}
	}
}

// join moves a whole region to the first later one that reads it, or to the next, where nothing outside reads it.
func (d *divider) join() {
	regions := d.regions()
	for i := len(regions) - 2; i >= 0; i-- {
		nodes := regions[i]
		level := d.level[nodes[0]]
		least, free := -1, true
		for _, n := range nodes {
			for _, m := range d.binds {
				free = free && m != n
			}
			free = free && !ordered(n)
			for _, o := range n.Outs {
				for _, u := range o.Users() {
					switch l := d.level[u]; {
					case u.IsReturn():
					case !d.in[u]:
						free = false
					case l > level && (least < 0 || l < least):
						least = l
					}
				}
			}
		}
		if !free {
			continue
		}
		if least < 0 {
			least = d.level[regions[i+1][0]]
		}
		for _, n := range nodes {
			d.level[n] = least
		}
		// It was the only one of its level, so that the places of those before it stay.
		regions = d.regions()
	}
}

// follows tells whether m is there for n alone, and both only move data.
func (d *divider) follows(m, n *ir.Node) bool {
	b, ok := d.b.(Mover)
	if !ok || !b.Moves(m) || !b.Moves(n) || ordered(m) {
		return false
	}
	for _, o := range m.Outs {
		for _, u := range o.Users() {
			if u != n {
				return false
			}
		}
	}
	return true
}

// regions gives the nodes inside by level, in order.
func (d *divider) regions() [][]*ir.Node {
	by := map[int][]*ir.Node{}
	var ls []int
	for n := range d.g.Nodes() {
		if !d.in[n] {
			continue
		}
		l := d.level[n]
		if by[l] == nil {
			ls = append(ls, l)
		}
		by[l] = append(by[l], n)
	}
	sort.Ints(ls)
	out := make([][]*ir.Node, len(ls))
	for i, l := range ls {
		out[i] = by[l]
	}
	return out
}

// schedule puts the nodes in the order of their levels, those inside before those outside of the same level.
func (d *divider) schedule() {
	var nodes []*ir.Node
	for n := range d.g.Nodes() {
		nodes = append(nodes, n)
	}
	key := func(n *ir.Node) int {
		k := 2 * d.level[n]
		if !d.in[n] {
			k++
		}
		return k
	}
	sorted := sort.SliceIsSorted(nodes, func(i, j int) bool { return key(nodes[i]) < key(nodes[j]) })
	if sorted {
		return
	}
	sort.SliceStable(nodes, func(i, j int) bool { return key(nodes[i]) < key(nodes[j]) })
	for _, n := range nodes {
		d.g.Move(n, d.g.Ret())
	}
}

// extract makes a graph of its own of a region's nodes and puts a node in their place.
func (d *divider) extract(nodes []*ir.Node, index int) *Region {
	g := d.g
	name := fmt.Sprintf("%s_%s_%d", g.Root().Name, d.b.Name(), index)
	h := ir.NewGraph(name, g.Syms)
	h.Stage, h.Entry, h.Method = ops.StageBackend, g.Root().Entry, g.Root().Name
	r := &Region{Name: name, Graph: h, Ops: map[string]int{}}
	inside := map[*ir.Node]bool{}
	for _, n := range nodes {
		inside[n] = true
		r.Ops[n.OpName()]++
	}
	owned := d.owned(inside)
	to := map[*ir.Value]*ir.Value{}
	var args []ir.Arg
	input := func(v *ir.Value) *ir.Value {
		if w, ok := to[v]; ok {
			return w
		}
		from := Weight(v)
		if v.Input != nil && owned[v.Input] {
			from = v.Input
		}
		if from != nil {
			in := h.AddInput(v.Name, from.Kind, from.Target, v.Type)
			in.Data, in.Persistent = from.Data, from.Persistent
			to[v] = in.Value
			return in.Value
		}
		in := h.AddInput(v.Name, ir.InputUser, "", v.Type)
		args = append(args, ir.RefAny(v))
		to[v] = in.Value
		return in.Value
	}
	told := map[string]bool{}
	var exprs []sym.Expr
	for _, n := range nodes {
		as := make([]ir.Arg, n.NumArgs())
		for i, a := range n.Args() {
			as[i] = a.Map(input)
			a.EachExpr(func(e sym.Expr) { exprs = append(exprs, e) })
		}
		types := make([]ir.Type, len(n.Outs))
		for i, o := range n.Outs {
			types[i] = o.Type
			o.Type.EachSymbol(func(e sym.Expr) { exprs = append(exprs, e) })
		}
		c := h.NewNode(h.Ret(), n.Op, as, types, n.Origin)
		c.Target, c.ArgNames, c.Attr = n.Target, n.ArgNames, n.Attr
		for i, o := range n.Outs {
			c.Outs[i].Name = o.Name
			to[o] = c.Outs[i]
		}
	}
	// Sizes that no input of the region tells come as numbers.
	for s, bind := range h.Bindings() {
		told[s] = bind.Value.Input != nil || inside[d.binds[s]]
	}
	for _, e := range exprs {
		for _, s := range sym.Symbols(e) {
			if told[s] {
				continue
			}
			told[s] = true
			h.AddInput("", ir.InputUser, "", ir.IntType(sym.Symbol(s)))
			args = append(args, ir.SymInt(sym.Symbol(s)))
		}
	}
	var outs []ir.Output
	var rets []ir.Arg
	ret := g.Ret()
	for i, o := range g.Outputs {
		if v := ret.In(i); o.Kind == ir.OutputBufferMutation && owned[o.Target] {
			// A buffer that is only ever overwritten is read by no node.
			outs = append(outs, ir.Output{Kind: ir.OutputBufferMutation, Target: input(o.Target.Value).Input})
			rets = append(rets, ir.Ref(to[v]))
		}
	}
	var results []*ir.Value
	ends := map[*ir.Node]bool{}
	for _, n := range nodes {
		for _, o := range n.Outs {
			leaves := false
			for _, u := range o.Users() {
				switch {
				case u.IsReturn():
					leaves = leaves || d.returned(o, owned)
				case !inside[u]:
					leaves = true
					if !ends[u] && d.why[u] != nil {
						ends[u] = true
						r.Ends = append(r.Ends, Outside{u, d.why[u]})
					}
				}
			}
			if leaves {
				results = append(results, o)
				outs = append(outs, ir.Output{})
				rets = append(rets, ir.RefAny(to[o]))
			}
		}
	}
	h.SetOutputs(outs, rets)
	types := make([]ir.Type, len(results))
	for i, o := range results {
		types[i] = o.Type
	}
	r.Node = g.NewNode(nodes[0], ops.Unknown, []ir.Arg{ir.List(args...)}, types, nodes[0].Origin.Derive("partition#"+d.b.Name()))
	r.Node.Target, r.Node.ArgNames = Target, []string{"inputs"}
	d.disown(owned)
	for i, o := range results {
		r.Node.Outs[i].Name = o.Name
		o.ReplaceAllUses(r.Node.Outs[i])
	}
	for i := len(nodes) - 1; i >= 0; i-- {
		g.Erase(nodes[i])
	}
	return r
}

// returned tells whether the graph returns v other than as the new contents of a buffer that the region owns.
func (d *divider) returned(v *ir.Value, owned map[*ir.Input]bool) bool {
	return slices.ContainsFunc(v.Returned(), func(i int) bool { return !owned[d.g.Outputs[i].Target] })
}

// owned are the buffers that only this region reads and writes, where the backend keeps such.
func (d *divider) owned(inside map[*ir.Node]bool) map[*ir.Input]bool {
	own := map[*ir.Input]bool{}
	s, ok := d.b.(Stateful)
	if !ok || d.g.Parent != nil {
		return own
	}
next:
	for i, o := range d.g.Outputs {
		if o.Kind != ir.OutputBufferMutation {
			continue
		}
		v := d.g.Ret().In(i)
		if v == nil || v.Def == nil || !inside[v.Def] || !s.OwnsBuffer(o.Target) {
			continue
		}
		for _, u := range o.Target.Value.Users() {
			if !inside[u] {
				continue next
			}
		}
		own[o.Target] = true
	}
	return own
}

// disown takes the write-backs that regions do themselves out of the graph's outputs.
func (d *divider) disown(owned map[*ir.Input]bool) {
	if len(owned) == 0 {
		return
	}
	var outs []ir.Output
	var args []ir.Arg
	for i, o := range d.g.Outputs {
		if o.Kind == ir.OutputBufferMutation && owned[o.Target] {
			continue
		}
		outs = append(outs, o)
		args = append(args, d.g.Ret().Arg(i))
	}
	d.g.SetOutputs(outs, args)
}
