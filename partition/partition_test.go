package partition_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ir/text"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/partition"
	"github.com/lathe-ml/lathe/passes"
)

// fake takes the operators in its list.
type fake struct {
	takes string
	owns  bool
	small int
	seen  []*ir.Graph
}

func (f *fake) Name() string              { return "fake" }
func (f *fake) Caps() partition.Caps      { return f }
func (f *fake) Pipeline() passes.Pipeline { return nil }
func (f *fake) OwnsBuffer(*ir.Input) bool { return f.owns }
func (f *fake) Moves(n *ir.Node) bool {
	return n.Info().Schema.Base == "permute" || n.Info().Schema.Base == "view"
}

func (f *fake) Decline(nodes []*ir.Node) string {
	if len(nodes) < f.small {
		return "too small"
	}
	return ""
}

func (f *fake) Match(n *ir.Node) (partition.Plan, *ir.Diag) {
	if strings.Contains(f.takes, n.Info().Schema.Base) {
		return true, nil
	}
	return nil, n.Diag("op", "not taken", "")
}

func (f *fake) Lower(_ context.Context, g *ir.Graph) (*partition.Lowered, error) {
	f.seen = append(f.seen, g)
	return &partition.Lowered{ID: fmt.Sprint(len(f.seen))}, nil
}

func divide(t *testing.T, f *fake, src string) (*ir.Graph, *partition.Report) {
	t.Helper()
	g, err := text.Parse(src, text.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rep, err := partition.Partition(context.Background(), g, f)
	if err != nil {
		t.Fatal(err)
	}
	checkOrder(t, g)
	for _, h := range f.seen {
		checkOrder(t, h)
	}
	return g, rep
}

// checkOrder fails where a value is used before it is made or outside its graph.
func checkOrder(t *testing.T, g *ir.Graph) {
	t.Helper()
	have := map[*ir.Value]bool{}
	for _, in := range g.Inputs {
		have[in.Value] = true
	}
	see := func(n *ir.Node) {
		for v := range n.Inputs() {
			if !have[v] {
				t.Errorf("graph %s: %s uses %q before it is made", g.Name, n.OpName(), v.Name)
			}
		}
		for _, o := range n.Outs {
			have[o] = true
		}
	}
	for n := range g.Nodes() {
		see(n)
	}
	see(g.Ret())
}

// A path that leaves the backend and comes back makes two regions; what is on no such path joins either.
func TestRegions(t *testing.T) {
	f := &fake{takes: "relu mul"}
	g, rep := divide(t, f, `graph @forward(%x: f32[2] user, %w: f32[2] param "w" = [1.0, 2.0]) -> (%5, %6) {
  %1 = aten.relu.default(%x): f32[2]
  %2 = aten.neg.default(%1): f32[2]
  %3 = aten.mul.Tensor(%2, %w): f32[2]
  %4 = aten.relu.default(%w): f32[2]
  %5 = aten.mul.Tensor(%3, %4): f32[2]
  %6 = aten.relu.default(%x): f32[2]
}`)
	if len(rep.Regions) != 2 || len(rep.Outside) != 1 {
		t.Fatalf("%d regions, %d outside\n%s", len(rep.Regions), len(rep.Outside), text.String(g))
	}
	// The relu of the weight goes where it is used, so that it does not cross an edge.
	if got := rep.Regions[1].Ops["aten.relu.default"]; got != 1 {
		t.Errorf("the second region has %d relu\n%s", got, text.String(rep.Regions[1].Graph))
	}
	if ends := rep.Regions[0].Ends; len(ends) != 1 || ends[0].Node.OpName() != "aten.neg.default" {
		t.Errorf("the first region ends at %v", ends)
	}
	if in := rep.Regions[1].Graph.Inputs; len(in) != 2 || in[1].Kind != ir.InputParam || in[1].Data == nil {
		t.Errorf("the weight does not come along:\n%s", text.String(rep.Regions[1].Graph))
	}
}

func TestSmallRegionsAreGivenBack(t *testing.T) {
	f := &fake{takes: "relu mul", small: 2}
	_, rep := divide(t, f, `graph @forward(%x: f32[2] user) -> (%3) {
  %1 = aten.relu.default(%x): f32[2]
  %2 = aten.neg.default(%1): f32[2]
  %3 = aten.mul.Tensor(%2, %2): f32[2]
}`)
	if len(rep.Regions) != 0 || len(rep.Outside) != 3 || rep.Outside[0].Why.Msg != "too small" {
		t.Errorf("%d regions, outside %v", len(rep.Regions), rep.Outside)
	}
}

// What only moves data goes to the region that reads it, chains of it too.
func TestMovesFollow(t *testing.T) {
	f := &fake{takes: "relu mul permute view"}
	g, rep := divide(t, f, `graph @forward(%x: f32[2, 2] user, %y: f32[2, 2] user) -> (%5) {
  %1 = aten.permute.default(%x, [1, 0]): f32[2, 2]{1, 2}
  %2 = aten.view.default(%1, [4]): f32[4]
  %3 = aten.neg.default(%y): f32[2, 2]
  %4 = aten.view.default(%3, [4]): f32[4]
  %5 = aten.mul.Tensor(%2, %4): f32[4]
}`)
	if len(rep.Regions) != 1 || rep.Regions[0].Graph.NumNodes() != 4 {
		t.Errorf("%d regions\n%s", len(rep.Regions), text.String(g))
	}
}

// A region that only a later one reads is part of that.
func TestRegionsJoin(t *testing.T) {
	f := &fake{takes: "relu mul"}
	g, rep := divide(t, f, `graph @forward(%x: f32[2] user, %y: f32[2] user) -> (%5, %6) {
  %1 = aten.relu.default(%x): f32[2]
  %2 = aten.mul.Tensor(%1, %1): f32[2]
  %3 = aten.neg.default(%y): f32[2]
  %4 = aten.mul.Tensor(%2, %3): f32[2]
  %5 = aten.mul.Tensor(%4, %1): f32[2]
  %6 = aten.mul.Tensor(%2, %2): f32[2]
}`)
	if len(rep.Regions) != 1 || rep.Regions[0].Graph.NumNodes() != 5 {
		t.Errorf("%d regions\n%s", len(rep.Regions), text.String(g))
	}
}

func TestStateStaysInside(t *testing.T) {
	f := &fake{takes: "add mul", owns: true}
	g, rep := divide(t, f, `graph @forward(%b: f32[2] buffer "b" = [1.0, 2.0], %x: f32[2] user) -> (mut %b = %1, %2) {
  %1 = aten.add.Tensor(%b, %x): f32[2]
  %2 = aten.mul.Tensor(%1, %x): f32[2]
}`)
	if len(g.Outputs) != 1 || len(rep.Regions[0].Graph.Outputs) != 2 || rep.Regions[0].Graph.Outputs[0].Kind != ir.OutputBufferMutation {
		t.Errorf("%s\n%s", text.String(g), text.String(rep.Regions[0].Graph))
	}
}

func TestSizesCrossEdges(t *testing.T) {
	f := &fake{takes: "full"}
	_, rep := divide(t, f, `sym u0 in [0, 4] hint 2
graph @forward(%n: i64[] user) -> (%2) {
  %1 = aten.item.default(%n): int(u0)
  %2 = aten.full.default([u0], 1.0): f32[u0]
}`)
	if len(rep.Regions) != 1 {
		t.Fatal("no region")
	}
	if in := rep.Regions[0].Graph.Inputs; len(in) != 1 || in[0].Value.Type.Kind != ir.KindInt {
		t.Errorf("the size does not come as an input:\n%s", text.String(rep.Regions[0].Graph))
	}
}

// On any graph, with any choice of nodes, the order is kept and no region depends on itself.
func TestAnyGraph(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	typ := ir.StaticType(ops.Float32, 2)
	relu, neg := ops.Lookup("aten.relu"), ops.Lookup("aten.neg")
	add := ops.Lookup("aten.add.Tensor")
	for round := range 200 {
		g := ir.NewGraph("forward", &sym.Table{})
		vs := []*ir.Value{g.AddInput("x", ir.InputUser, "", typ).Value}
		pick := func() ir.Arg { return ir.Ref(vs[max(0, len(vs)-1-r.IntN(6))]) }
		for range 1 + r.IntN(40) {
			var n *ir.Node
			switch r.IntN(3) {
			case 0:
				n = g.NewNode(g.Ret(), relu, []ir.Arg{pick()}, []ir.Type{typ}, nil)
			case 1:
				n = g.NewNode(g.Ret(), neg, []ir.Arg{pick()}, []ir.Type{typ}, nil)
			default:
				n = g.NewNode(g.Ret(), add, []ir.Arg{pick(), pick(), ir.Int(1)}, []ir.Type{typ}, nil)
			}
			vs = append(vs, n.Out())
		}
		g.SetOutputs([]ir.Output{{}, {}}, []ir.Arg{ir.Ref(vs[len(vs)-1]), pick()})
		f := &fake{takes: "relu add", small: r.IntN(3)}
		before := 0
		for n := range g.Nodes() {
			if _, d := f.Match(n); d == nil {
				before++
			}
		}
		rep, err := partition.Partition(context.Background(), g, f)
		if err != nil {
			t.Fatal(err)
		}
		checkOrder(t, g)
		after := 0
		for _, reg := range rep.Regions {
			checkOrder(t, reg.Graph)
			after += reg.Graph.NumNodes()
		}
		for _, o := range rep.Outside {
			if o.Why.Msg == "too small" {
				after++
			}
		}
		if before != after {
			t.Fatalf("round %d: %d nodes are taken, %d arrived", round, before, after)
		}
	}
}
