// Package lowertest runs the golden files of a backend: how graphs are divided, and the payloads as text.
package lowertest

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/text"
	"github.com/lathe-ml/lathe/lower/program"
	"github.com/lathe-ml/lathe/partition"
	"github.com/lathe-ml/lathe/passes"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Divide runs a backend's passes over the graph in src and divides it.
func Divide(t *testing.T, b partition.Backend, src string) (*ir.Graph, *partition.Report) {
	t.Helper()
	g, err := text.Parse(src, text.Options{})
	if err != nil {
		t.Fatal(err)
	}
	caps := b.Caps()
	legal := func(n *ir.Node) *ir.Diag {
		if _, why := caps.Match(n); why == nil {
			return nil
		}
		return program.Legal(n)
	}
	if err := b.Pipeline().Run(&passes.Context{Target: b.Name(), Legal: legal, Hooks: []passes.Hook{passes.VerifyHook()}}, g); err != nil {
		t.Fatal(err)
	}
	rep, err := partition.Partition(t.Context(), g, b)
	if err != nil {
		t.Fatal(err)
	}
	return g, rep
}

// Golden divides and lowers the graphs in testdata/*.txtar and compares the reports and the payloads, which dump writes as text
// as they are read back.
func Golden(t *testing.T, b partition.Backend, dump func(t *testing.T, out *bytes.Buffer, low *partition.Lowered)) {
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
			_, rep := Divide(t, b, string(ar.Files[0].Data))
			var report, payload bytes.Buffer
			for _, o := range rep.Outside {
				fmt.Fprintf(&report, "outside: %s: %s\n", o.Node.OpName(), o.Why.Msg)
			}
			for i, r := range rep.Regions {
				fmt.Fprintf(&report, "region %d:", i)
				for n := range r.Graph.Nodes() {
					fmt.Fprintf(&report, " %s", n.OpName())
				}
				report.WriteByte('\n')
				for _, e := range r.Ends {
					fmt.Fprintf(&report, "  ends at %s: %s\n", e.Node.OpName(), e.Why.Msg)
				}
				dump(t, &payload, r.Node.Attr.(*partition.Lowered))
			}
			got := txtar.Format(&txtar.Archive{Comment: ar.Comment, Files: []txtar.File{
				ar.Files[0], {Name: "report", Data: report.Bytes()}, {Name: "payload", Data: payload.Bytes()},
			}})
			if *update {
				if err := os.WriteFile(f, got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}
