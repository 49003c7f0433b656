package verify_test

import (
	"strings"
	"testing"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ir/verify"
	"github.com/lathe-ml/lathe/ops"
)

var f32x2 = ir.StaticType(ops.Float32, 2)

func add(g *ir.Graph, a, b *ir.Value) *ir.Node {
	return g.NewNode(g.Ret(), ops.AtenAddTensor, []ir.Arg{ir.Ref(a), ir.Ref(b), ir.Int(1)}, []ir.Type{f32x2}, nil)
}

// sound makes a graph without a fault: x + b, written back to the buffer b.
func sound() (*ir.Graph, *ir.Node) {
	tab := &sym.Table{}
	g := ir.NewGraph("f", tab)
	x := g.AddInput("x", ir.InputUser, "", f32x2)
	b := g.AddInput("b", ir.InputBuffer, "b", f32x2)
	n := add(g, x.Value, b.Value)
	g.SetOutputs([]ir.Output{{Kind: ir.OutputBufferMutation, Target: b}, {}}, []ir.Arg{ir.Ref(n.Out()), ir.Ref(n.Out())})
	return g, n
}

func TestSound(t *testing.T) {
	g, _ := sound()
	if ds := verify.Graph(g); ds != nil {
		t.Error(ds)
	}
}

func TestFaults(t *testing.T) {
	for _, tt := range []struct {
		want string
		harm func(g *ir.Graph, n *ir.Node)
	}{
		{"which is not defined before it", func(g *ir.Graph, n *ir.Node) { m := add(g, n.Out(), n.Out()); g.Move(m, n) }},
		{"which is not defined before it", func(g *ir.Graph, n *ir.Node) {
			h := ir.NewGraph("h", g.Syms)
			h.SetOutputs([]ir.Output{{}}, []ir.Arg{ir.Ref(n.Out())})
			m := g.NewNode(g.Ret(), ops.Unknown, []ir.Arg{ir.GraphArg(h)}, nil, nil)
			m.Target = "higher_order.x"
		}},
		{"uses and has", func(g *ir.Graph, n *ir.Node) { n.Args()[0] = ir.Ref(g.Inputs[1].Value) }},
		{"its rule gives", func(g *ir.Graph, n *ir.Node) { n.Out().Type.DType = ops.Int64 }},
		{"2 arguments, the schema has 3", func(g *ir.Graph, n *ir.Node) { n.SetArgs(n.Args()[:2:2]) }},
		{"argument other: is None", func(g *ir.Graph, n *ir.Node) { n.SetArg(1, ir.None) }},
		{"argument alpha: is of the wrong kind", func(g *ir.Graph, n *ir.Node) { n.SetArg(2, ir.Str("x")) }},
		{"no row of the table", func(g *ir.Graph, n *ir.Node) { g.Stage = ops.StageBackend; n.Op, n.Target = ops.Unknown, "my.op" }},
		{"writes to no input", func(g *ir.Graph, n *ir.Node) { g.Outputs[0].Target = nil }},
		{"is a write-back after a user output", func(g *ir.Graph, n *ir.Node) { g.Outputs[0], g.Outputs[1] = g.Outputs[1], g.Outputs[0] }},
		{"the kind of write-back", func(g *ir.Graph, n *ir.Node) { g.Outputs[0].Target = g.Inputs[0] }},
		{"does not have the type of input", func(g *ir.Graph, n *ir.Node) { g.Inputs[1].Value.Type.Shape = ir.Consts(1) }},
		{"2 outputs and returns 1", func(g *ir.Graph, n *ir.Node) { g.Ret().SetArgs(g.Ret().Args()[:1:1]) }},
		{"symbol s7 is not declared", func(g *ir.Graph, n *ir.Node) { n.SetArg(2, ir.SymInt(sym.Symbol("s7"))) }},
		{"symbol s8 gets its value from no input", func(g *ir.Graph, n *ir.Node) {
			if err := g.Syms.Add(sym.Sym{Name: "s8", Range: sym.Range{Min: 1, Max: 2}}); err != nil {
				t.Fatal(err)
			}
			n.SetArg(2, ir.SymInt(sym.Symbol("s8")))
		}},
		{"empty or there twice", func(g *ir.Graph, n *ir.Node) { g.AddInput("c", ir.InputBuffer, "b", f32x2) }},
		{"is of kind operand", func(g *ir.Graph, n *ir.Node) { g.Inputs[0].Kind = ir.InputOperand }},
		{"its contents are", func(g *ir.Graph, n *ir.Node) {
			g.Inputs[1].Data = ir.NewData(ops.Float32, []int64{3}, make([]byte, 12))
		}},
		{"does not point back", func(g *ir.Graph, n *ir.Node) { n.Out().Index = 1 }},
		{"size 0 is -1", func(g *ir.Graph, n *ir.Node) { n.Out().Type.Shape = ir.Consts(-1) }},
	} {
		g, n := sound()
		tt.harm(g, n)
		if got := verify.Graph(g).Error(); !strings.Contains(got, tt.want) {
			t.Errorf("got %q, want %s", got, tt.want)
		}
	}
}

func TestEveryFaultIsReported(t *testing.T) {
	g, n := sound()
	n.Out().Type.DType = ops.Int64
	n.SetArg(2, ir.SymInt(sym.Symbol("s7")))
	g.Outputs[0].Target = g.Inputs[0]
	if ds := verify.Graph(g); len(ds) < 3 {
		t.Errorf("%d faults: %v", len(ds), ds)
	}
}
