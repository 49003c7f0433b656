package mlx

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/lathe-ml/lathe/codegen/fb"
	"github.com/lathe-ml/lathe/codegen/mlxpayload"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/text"
	"github.com/lathe-ml/lathe/lower/program"
	"github.com/lathe-ml/lathe/partition"
	"github.com/lathe-ml/lathe/passes"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden runs the passes, divides and lowers the graphs in testdata and compares the reports and the payloads as text.
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
			got := &txtar.Archive{Comment: ar.Comment, Files: []txtar.File{ar.Files[0]}}
			got.Files = append(got.Files, golden(t, string(ar.Files[0].Data))...)
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

// golden gives the report of a graph's division and its payloads, read back.
func golden(t *testing.T, src string) []txtar.File {
	t.Helper()
	g, err := text.Parse(src, text.Options{})
	if err != nil {
		t.Fatal(err)
	}
	legal := func(n *ir.Node) *ir.Diag {
		if _, why := (Caps{}).Match(n); why == nil {
			return nil
		}
		return program.Legal(n)
	}
	if err := (Backend{}).Pipeline().Run(&passes.Context{Target: Name, Legal: legal, Hooks: []passes.Hook{passes.VerifyHook()}}, g); err != nil {
		t.Fatal(err)
	}
	rep, err := partition.Partition(t.Context(), g, Backend{})
	if err != nil {
		t.Fatal(err)
	}
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
		low := r.Node.Attr.(*partition.Lowered)
		for _, n := range low.Named {
			fmt.Fprintf(&report, "  %d bytes %s\n", n.Data.Size(), n.Key)
		}
		var b bytes.Buffer
		if _, err := low.Payload.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		p, err := mlxpayload.Unmarshal(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		payload.Write(fb.AppendText(nil, p.Graph))
	}
	return []txtar.File{{Name: "report", Data: report.Bytes()}, {Name: "payload", Data: payload.Bytes()}}
}
