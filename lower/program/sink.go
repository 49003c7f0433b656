package program

import (
	"slices"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/partition"
)

// sink moves nodes down to where their results are first wanted, as long as that keeps less memory busy: what the node
// makes is larger than what it would keep alive by reading later.
func (m *method) sink(g *ir.Graph) {
	g.Number()
	s := &sinker{m: m, g: g, roots: map[*ir.Value]*ir.Value{}, reads: map[*ir.Value][]*ir.Node{}, anchor: map[*ir.Node]*ir.Node{}}
	for n := range g.Nodes() {
		view := false
		if p, d := match(n); d == nil && (p.kind == planReshape || p.kind == planPart) {
			view = true
			for _, o := range n.Outs {
				s.roots[o] = s.root(n.In(0))
			}
		}
		for v := range n.Inputs() {
			if r := s.root(v); !view {
				s.reads[r] = append(s.reads[r], n)
			}
		}
	}
	for v := range g.Ret().Inputs() {
		s.reads[s.root(v)] = append(s.reads[s.root(v)], g.Ret())
	}
	// Delegates make much at once: which way is better shows in the whole.
	order := s.order(false)
	if slices.ContainsFunc(order, isDelegate) {
		if o := s.order(true); s.peak(o) < s.peak(order) {
			order = o
		}
	}
	for _, n := range order {
		g.Move(n, g.Ret())
	}
}

// order is the nodes as they are to stand.
func (s *sinker) order(delegates bool) []*ir.Node {
	clear(s.anchor)
	for n := range s.g.Backward() {
		if isDelegate(n) && !delegates {
			continue
		}
		if t := s.target(n); t != nil && (t != n.Next() || s.anchor[t] != nil) {
			s.anchor[n] = t
		}
	}
	under := map[*ir.Node][]*ir.Node{}
	var stay []*ir.Node
	for n := range s.g.Nodes() {
		if a := s.anchor[n]; a != nil {
			under[a] = append(under[a], n)
		} else {
			stay = append(stay, n)
		}
	}
	order := make([]*ir.Node, 0, s.g.NumNodes())
	var place func(n *ir.Node)
	place = func(n *ir.Node) {
		for _, k := range under[n] {
			place(k)
		}
		if !n.IsReturn() {
			order = append(order, n)
		}
	}
	for _, n := range stay {
		place(n)
	}
	place(s.g.Ret())
	return order
}

// peak is the most bytes of values wanted at one time when nodes run in the order.
func (s *sinker) peak(order []*ir.Node) int64 {
	at := make(map[*ir.Node]int, len(order))
	for i, n := range order {
		at[n] = i + 1
	}
	end := len(order) + 1
	changes := make([]int64, end+2)
	add := func(v *ir.Value, first int) {
		last := first
		for _, u := range s.reads[v] {
			if u.IsReturn() {
				last = end
				break
			}
			last = max(last, at[u])
		}
		n := roundUp(s.bytes(v))
		changes[first] += n
		changes[last+1] -= n
	}
	for _, in := range s.g.Inputs {
		add(in.Value, 0)
	}
	for i, n := range order {
		for _, o := range n.Outs {
			if s.root(o) == o {
				add(o, i+1)
			}
		}
	}
	var now, most int64
	for _, c := range changes {
		now += c
		most = max(most, now)
	}
	return most
}

func isDelegate(n *ir.Node) bool {
	_, ok := n.Attr.(*partition.Lowered)
	return ok
}

type sinker struct {
	m *method
	g *ir.Graph
	// roots are the values whose memory views show.
	roots map[*ir.Value]*ir.Value
	reads map[*ir.Value][]*ir.Node
	// anchor is the node in front of which another goes.
	anchor map[*ir.Node]*ir.Node
}

func (s *sinker) root(v *ir.Value) *ir.Value {
	if r, ok := s.roots[v]; ok {
		return r
	}
	return v
}

// place is the number of the node at whose place n ends up.
func (s *sinker) place(n *ir.Node) int {
	for s.anchor[n] != nil {
		n = s.anchor[n]
	}
	return n.Order()
}

// target is the node in front of which n should go, nil where it should stay.
func (s *sinker) target(n *ir.Node) *ir.Node {
	if ordered(n) || len(n.Graphs()) > 0 || s.binds(n) {
		return nil
	}
	var users []*ir.Node
	var made int64
	for _, o := range n.Outs {
		made += s.bytes(o)
		for _, u := range o.Users() {
			if !slices.Contains(users, u) {
				users = append(users, u)
			}
		}
		if len(users) > manyUses {
			return nil
		}
	}
	if len(users) == 0 {
		return nil
	}
	// The only user, or the first place at which one of several stands.
	t := users[0]
	if len(users) > 1 {
		for i, u := range users {
			for s.anchor[u] != nil {
				u = s.anchor[u]
			}
			if i == 0 || u.Order() < t.Order() {
				t = u
			}
		}
	}
	at := s.place(t)
	var kept int64
	var seen []*ir.Value
	for v := range n.Inputs() {
		r := s.root(v)
		if slices.Contains(seen, r) {
			continue
		}
		seen = append(seen, r)
		if r.Input != nil && s.m.written[r.Input] || len(s.reads[r]) > manyUses {
			return nil
		}
		last := -1
		for _, u := range s.reads[r] {
			if u != n {
				last = max(last, s.place(u))
			}
		}
		if last < at {
			kept += s.bytes(r)
		}
	}
	if p, d := match(n); d == nil && (p.kind == planReshape || p.kind == planPart) {
		return t
	}
	if made < kept {
		return nil
	}
	return t
}

// ordered tells nodes that keep their order among each other: what draws random numbers or has an effect. A delegate's
// state is its own.
func ordered(n *ir.Node) bool {
	return !isDelegate(n) && (n.Op == ops.Unknown || !n.Info().Pure())
}

// binds tells whether n says how large something is.
func (s *sinker) binds(n *ir.Node) bool {
	found := false
	for _, o := range n.Outs {
		if o.Type.Kind == ir.KindInt {
			return true
		}
		o.Type.EachSymbol(func(e sym.Expr) {
			for _, name := range sym.Symbols(e) {
				if b, ok := s.m.binds[name]; ok && b.Value == o {
					found = true
				}
			}
		})
	}
	return found
}

// bytes is the planned memory of a value; weights have none.
func (s *sinker) bytes(v *ir.Value) int64 {
	if !v.Type.IsTensor() || v.Input != nil && v.Input.Kind != ir.InputUser && v.Input.Kind != ir.InputOperand {
		return 0
	}
	sizes, _ := s.m.rooms.upper(v.Type.Shape)
	for _, k := range sizes {
		if k > upperLimit {
			return 0
		}
	}
	return product(sizes) * v.Type.DType.Size()
}
