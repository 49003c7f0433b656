package xnnpack

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/lathe-ml/lathe/codegen/fb/xnnpack"
	"github.com/lathe-ml/lathe/codegen/xnnpayload"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/lower/lowertest"
	"github.com/lathe-ml/lathe/partition"
)

func prepare(t *testing.T, src string) (*ir.Graph, *partition.Report) {
	t.Helper()
	return lowertest.Divide(t, Backend{}, src)
}

func TestGolden(t *testing.T) { lowertest.Golden(t, Backend{}, dump) }

// dump writes a payload as text: values with their shapes and data, then nodes.
func dump(t *testing.T, b *bytes.Buffer, low *partition.Lowered) {
	t.Helper()
	var raw bytes.Buffer
	if _, err := low.Payload.WriteTo(&raw); err != nil {
		t.Fatal(err)
	}
	p, err := xnnpayload.Unmarshal(raw.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[string]int64{}
	for _, n := range low.Named {
		sizes[n.Key] = n.Data.Size()
	}
	fmt.Fprintf(b, "payload with %d external values\n", p.Graph.NumExterns)
	for _, x := range p.Graph.Xvalues {
		v, q := tensorOf(x)
		fmt.Fprintf(b, "  %%%d: %s%v", v.IDOut, v.Datatype, v.Dims)
		switch {
		case v.Flags == flagInput:
			fmt.Fprintf(b, " input %d", v.ExternalID)
		case v.Flags == flagOutput:
			fmt.Fprintf(b, " output %d", v.ExternalID)
		case v.ConstantBufferIdx != 0:
			fmt.Fprintf(b, " constant of %d bytes", sizes[p.Graph.ConstantData[v.ConstantBufferIdx].NamedKey])
		}
		if q != nil {
			fmt.Fprintf(b, " %s%+v", reflect.TypeOf(q).Elem().Name(), reflect.ValueOf(q).Elem().Interface())
		}
		b.WriteByte('\n')
	}
	for _, n := range p.Graph.Xnodes {
		ins, outs := operands(n.XnodeUnion)
		fmt.Fprintf(b, "  %s%s -> %s", strings.TrimPrefix(reflect.TypeOf(n.XnodeUnion).Elem().Name(), "XNN"), ids(ins), ids(outs))
		v := reflect.ValueOf(n.XnodeUnion).Elem()
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; !strings.HasSuffix(name, "ID") && !v.Field(i).IsZero() {
				fmt.Fprintf(b, " %s=%v", name, v.Field(i))
			}
		}
		if m := n.OutputMinMax; m != nil {
			fmt.Fprintf(b, " in [%v, %v]", m.OutputMin, m.OutputMax)
		}
		b.WriteByte('\n')
	}
}

func ids(xs []uint32) string {
	var s []string
	for _, x := range xs {
		if x == xnnpayload.InvalidID {
			s = append(s, "-")
			continue
		}
		s = append(s, fmt.Sprintf("%%%d", x))
	}
	return "(" + strings.Join(s, ", ") + ")"
}

// TestCheck finds what the delegate would not look at.
func TestCheck(t *testing.T) {
	_, rep := prepare(t, `graph @forward(%x: f32[2, 3] user, %w: f32[4, 3] param "w" = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]) -> (%2) {
  %1 = aten.linear.default(%x, %w): f32[2, 4]
  %2 = aten.tanh.default(%1): f32[2, 4]
}`)
	low := rep.Regions[0].Node.Attr.(*partition.Lowered)
	read := func() *xnnpayload.Payload {
		var raw bytes.Buffer
		if _, err := low.Payload.WriteTo(&raw); err != nil {
			t.Fatal(err)
		}
		p, err := xnnpayload.Unmarshal(raw.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if err := check(read(), low.Named, 2); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		want string
		edit func(g *xnnpack.XNNGraph)
	}{
		{"bytes of data for fp32 [4 5]", func(g *xnnpack.XNNGraph) {
			for _, x := range g.Xvalues {
				if v, _ := tensorOf(x); v.ConstantBufferIdx != 0 {
					v.Dims[1] = 5
				}
			}
		}},
		{"no 48 bytes are named", func(g *xnnpack.XNNGraph) { g.ConstantData[1].NamedKey = "other" }},
		{"before it is written", func(g *xnnpack.XNNGraph) { g.Xnodes[0], g.Xnodes[1] = g.Xnodes[1], g.Xnodes[0] }},
		{"once more", func(g *xnnpack.XNNGraph) { g.Xnodes = append(g.Xnodes, g.Xnodes[1]) }},
		{"is given out and never written", func(g *xnnpack.XNNGraph) { g.Xnodes = g.Xnodes[:1] }},
		{"external value 7", func(g *xnnpack.XNNGraph) {
			v, _ := tensorOf(g.Xvalues[0])
			v.ExternalID = 7
		}},
	} {
		p := read()
		c.edit(p.Graph)
		if err := check(p, low.Named, 2); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
}
