package ir_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ops"
)

// What values know of their users is what a look at all arguments finds, after any edits, for small nodes and for those
// with many arguments.
func TestUses(t *testing.T) {
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 1))
		g := ir.NewGraph("f", nil)
		typ := ir.StaticType(ops.Float32, 2)
		for range 3 {
			g.AddInput("", ir.InputUser, "", typ)
		}
		var nodes []*ir.Node
		values := func() (vs []*ir.Value) {
			for _, in := range g.Inputs {
				vs = append(vs, in.Value)
			}
			for _, n := range nodes {
				vs = append(vs, n.Outs...)
			}
			return vs
		}
		arg := func() ir.Arg {
			vs := values()
			ref := func() ir.Arg { return ir.Ref(vs[r.IntN(len(vs))]) }
			if r.IntN(3) > 0 {
				return ref()
			}
			l := make([]ir.Arg, r.IntN(6)*r.IntN(12))
			for i := range l {
				l[i] = ref()
			}
			return ir.List(l...)
		}
		args := func() []ir.Arg {
			as := make([]ir.Arg, 1+r.IntN(4))
			if r.IntN(5) == 0 {
				as = make([]ir.Arg, r.IntN(80))
			}
			for i := range as {
				as[i] = arg()
			}
			return as
		}
		for range 150 {
			switch k := r.IntN(10); {
			case k < 3:
				nodes = append(nodes, g.NewNode(g.Ret(), ops.Unknown, args(), []ir.Type{typ}, nil))
			case k < 5 && len(nodes) > 0:
				if n := nodes[r.IntN(len(nodes))]; n.NumArgs() > 0 {
					n.SetArg(r.IntN(n.NumArgs()), arg())
				}
			case k < 6 && len(nodes) > 0:
				nodes[r.IntN(len(nodes))].SetArgs(args())
			case k < 8:
				vs := values()
				vs[r.IntN(len(vs))].ReplaceAllUses(vs[r.IntN(len(vs))])
			case k < 9:
				as := make([]ir.Arg, r.IntN(40))
				for i := range as {
					vs := values()
					as[i] = ir.Ref(vs[r.IntN(len(vs))])
				}
				g.SetOutputs(make([]ir.Output, len(as)), as)
			default:
				i := slices.IndexFunc(nodes, func(n *ir.Node) bool { return n.Out().NumUses() == 0 })
				if i >= 0 {
					g.Erase(nodes[i])
					nodes = slices.Delete(nodes, i, i+1)
				}
			}
			count := map[*ir.Value]int{}
			users := map[*ir.Value]map[*ir.Node]bool{}
			for _, n := range append(slices.Clone(nodes), g.Ret()) {
				for v := range n.Inputs() {
					count[v]++
					if users[v] == nil {
						users[v] = map[*ir.Node]bool{}
					}
					users[v][n] = true
				}
			}
			for i, v := range values() {
				us := v.Users()
				if v.NumUses() != count[v] || len(us) != len(users[v]) || v.IsOutput() != users[v][g.Ret()] {
					t.Fatalf("seed %d: value %d counts %d of %d uses, %d of %d users", seed, i, v.NumUses(), count[v], len(us), len(users[v]))
				}
				for _, n := range us {
					if !users[v][n] {
						t.Fatalf("seed %d: value %d names a node that does not use it", seed, i)
					}
				}
			}
		}
	}
}

// Constants never share a name, whatever inputs come and go.
func TestConstNames(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	g := ir.NewGraph("f", nil)
	for range 500 {
		switch {
		case r.IntN(4) == 0 && len(g.Inputs) > 0:
			g.RemoveInput(g.Inputs[r.IntN(len(g.Inputs))])
		case r.IntN(4) == 0:
			// One that the model brought.
			name := []string{"a", "a_1", "a_2", "a_1_1", "b"}[r.IntN(5)]
			if !slices.ContainsFunc(g.Inputs, func(in *ir.Input) bool { return in.Target == name }) {
				g.AddInput("", ir.InputConst, name, ir.StaticType(ops.Float32))
			}
		default:
			g.AddConst([]string{"a", "a_1", "b"}[r.IntN(3)], ir.NewData(ops.Float32, nil, make([]byte, 4)))
		}
		seen := map[string]bool{}
		for i, in := range g.Inputs {
			if seen[in.Target] || in.Value.Index != i {
				t.Fatalf("input %d, %q, has index %d", i, in.Target, in.Value.Index)
			}
			seen[in.Target] = true
		}
	}
}
