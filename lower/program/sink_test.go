package program_test

import (
	"testing"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/text"
	"github.com/lathe-ml/lathe/lower/program"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/partition"
)

// A delegate runs after what needs less memory before it, unless that would keep more alive.
func TestSinkDelegates(t *testing.T) {
	for _, c := range []struct {
		name, ir string
		// reads are the delegate's operands; it makes three results.
		reads []string
		bytes int64
	}{
		{
			"a large value that the delegate does not read", `graph @forward(%x: f32[100] user) -> (%s) {
  %e = aten._to_copy.default(%x, dtype=dtype(f64)): f64[100]
  %s = aten.amax.default(%e, dim=[0]): f64[]
}`,
			[]string{"x"},
			4*400 + 16,
		},
		{
			"a large value that it reads", `graph @forward(%x: f32[100] user) -> (%s) {
  %e = aten._to_copy.default(%x, dtype=dtype(f64)): f64[100]
  %s = aten.amax.default(%e, dim=[0]): f64[]
}`,
			[]string{"x", "e"},
			800 + 4*400,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, err := text.Parse(c.ir, text.Options{})
			if err != nil {
				t.Fatal(err)
			}
			at := g.First()
			named := map[string]*ir.Value{"x": g.Inputs[0].Value}
			for n := range g.Nodes() {
				named[n.Out().Name] = n.Out()
				for _, r := range c.reads {
					if r == n.Out().Name {
						at = n.Next()
					}
				}
			}
			var args []*ir.Value
			for _, r := range c.reads {
				args = append(args, named[r])
			}
			typ := ir.StaticType(ops.Float32, 100)
			d := g.NewNode(at, ops.Unknown, []ir.Arg{ir.Refs(args...)}, []ir.Type{typ, typ, typ}, nil)
			d.Target, d.ArgNames, d.Attr = partition.Target, []string{"inputs"}, &partition.Lowered{ID: "Test"}
			outs, rets := g.Outputs, append([]ir.Arg(nil), g.Ret().Args()...)
			for _, o := range d.Outs {
				outs, rets = append(outs, ir.Output{}), append(rets, ir.Ref(o))
			}
			g.SetOutputs(outs, rets)
			res, err := program.Lower(&ir.Program{Methods: []*ir.Graph{g}}, program.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if n := res.Methods[0].Planned; n != c.bytes {
				t.Errorf("%d bytes are planned, want %d", n, c.bytes)
			}
		})
	}
}
