package xnnpack

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/lathe-ml/lathe/codegen/fb/xnnpack"
	"github.com/lathe-ml/lathe/codegen/xnnpayload"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/text"
	"github.com/lathe-ml/lathe/lower/program"
	"github.com/lathe-ml/lathe/partition"
	"github.com/lathe-ml/lathe/passes"
)

var update = flag.Bool("update", false, "write the golden files anew")

// prepare runs the passes and divides the graph.
func prepare(t *testing.T, src string) (*ir.Graph, *partition.Report) {
	t.Helper()
	g, err := text.Parse(src, text.Options{})
	if err != nil {
		t.Fatal(err)
	}
	legal := func(n *ir.Node) *ir.Diag {
		if _, why := plan(n); why == nil {
			return nil
		}
		return program.Legal(n)
	}
	if err := Pipeline().Run(&passes.Context{Target: Name, Legal: legal, Hooks: []passes.Hook{passes.VerifyHook()}}, g); err != nil {
		t.Fatal(err)
	}
	rep, err := partition.Partition(context.Background(), g, Backend{})
	if err != nil {
		t.Fatal(err)
	}
	return g, rep
}

// TestGolden divides and lowers the graphs in testdata and compares the reports and the payloads as text.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden files", err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(f)
			if err != nil {
				t.Fatal(err)
			}
			_, rep := prepare(t, string(ar.Files[0].Data))
			got := &txtar.Archive{Comment: ar.Comment, Files: []txtar.File{ar.Files[0]}}
			var b bytes.Buffer
			for _, o := range rep.Outside {
				fmt.Fprintf(&b, "outside: %s: %s\n", o.Node.OpName(), o.Why.Msg)
			}
			for i, r := range rep.Regions {
				fmt.Fprintf(&b, "region %d:", i)
				for n := range r.Graph.Nodes() {
					fmt.Fprintf(&b, " %s", n.OpName())
				}
				b.WriteByte('\n')
				for _, e := range r.Ends {
					fmt.Fprintf(&b, "  ends at %s: %s\n", e.Node.OpName(), e.Why.Msg)
				}
			}
			got.Files = append(got.Files, txtar.File{Name: "report", Data: bytes.Clone(b.Bytes())})
			b.Reset()
			for _, r := range rep.Regions {
				dump(t, &b, r.Node.Attr.(*partition.Lowered))
			}
			got.Files = append(got.Files, txtar.File{Name: "payload", Data: b.Bytes()})
			want, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				if err := os.WriteFile(f, txtar.Format(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if s := txtar.Format(got); !bytes.Equal(s, want) {
				t.Errorf("got\n%s\nwant\n%s", s, want)
			}
		})
	}
}

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
