package main

import (
	"archive/tar"
	"compress/bzip2"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lathe-ml/lathe"
	"github.com/lathe-ml/lathe/internal/etrt/ettest"
	"github.com/lathe-ml/lathe/internal/mlxrt"
	"github.com/lathe-ml/lathe/internal/needs"
	"github.com/lathe-ml/lathe/tools/oracle/cases"
)

// unpack lays out recorded programs as folders of cases.
func unpack(t *testing.T, name string) string {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read
	dir := t.TempDir()
	for r := tar.NewReader(bzip2.NewReader(f)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		p := filepath.Join(dir, filepath.FromSlash(h.Name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err == nil {
			err = os.WriteFile(p, b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestOperatorCorpus replays the recorded programs of the operators (tools/fixtures/op_corpus.py and op_pack.py): the
// interpreter and the compiled programs give what PyTorch gave, or refuse. MLX starts a process a program and takes every
// eighth.
func TestOperatorCorpus(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED, too long for -short: the recorded operator programs")
	}
	root := unpack(t, "opcorpus.tar.bz2")
	all, err := cases.Find(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []struct {
		name                 string
		every, least, refuse int
	}{
		// The counts of right programs only rise, those of refused ones only fall.
		{reference, 1, 1923, 3},
		{"portable", 1, 1850, 76},
		{"xnnpack", 1, 1850, 76},
		{"mlx", 8, 225, 16},
	} {
		t.Run(b.name, func(t *testing.T) {
			var rt runtimes
			var err error
			if b.name != reference {
				rt.et = ettest.Open(t)
			}
			if b.name == "mlx" {
				rt.mlx, err = mlxrt.Open()
				needs.Installed(t, "MLX", err)
			}
			var names []string
			for i, n := range all {
				if i%b.every == 0 {
					names = append(names, n)
				}
			}
			results := replay(t.Context(), rt, config{root: root}, names, b.name, t.TempDir())
			counts := map[string]int{}
			for i, r := range results {
				counts[r.class]++
				if r.class != right && r.class != refused {
					t.Errorf("%s: %s%s", names[i], r.class, r.text)
				}
			}
			line := fmt.Sprintf("%s: %d operator programs", b.name, len(names))
			for _, k := range []string{right, refused, wrong, broken} {
				line += fmt.Sprintf(", %d %s", counts[k], k)
			}
			fmt.Println(line)
			if counts[right] < b.least || counts[refused] > b.refuse {
				t.Errorf("%s; at least %d right and at most %d refused are wanted", line, b.least, b.refuse)
			}
		})
	}
}

// Every operator that docs/mlx.md lists has a program that proves it. Those that are recorded here are wholly delegated and
// give on MLX what PyTorch gave; the others are among the handed cases.
func TestRowsOfMLX(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED, too long for -short: programs for the operators of the MLX delegate")
	}
	roots := map[string]string{"rows": unpack(t, "mlxrows.tar.bz2"), "corpus": unpack(t, "opcorpus.tar.bz2")}
	table, err := os.ReadFile(filepath.Join("..", "mlxdoc", "proof.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	ran := map[string]bool{}
	for line := range strings.Lines(string(table)) {
		op, name, _ := strings.Cut(strings.TrimSpace(line), "\t")
		set, name, _ := strings.Cut(name, "/")
		root := roots[set]
		if root == "" || ran[set+"/"+name] {
			continue
		}
		ran[set+"/"+name] = true
		t.Run(op, func(t *testing.T) {
			cs, err := cases.Load(filepath.Join(root, name))
			if err != nil {
				t.Fatal(err)
			}
			defer cs.Close() //nolint:errcheck // only read
			out := filepath.Join(t.TempDir(), "out.pte")
			rep, err := lathe.Compile(t.Context(), lathe.Options{Inputs: []lathe.Input{{Path: cs.Model()}}, Output: out, Backend: "mlx"})
			if err != nil {
				t.Fatal(err)
			}
			if len(rep.Regions) != 1 || len(rep.Outside) != 0 {
				t.Errorf("%d regions, outside: %v", len(rep.Regions), rep.Outside)
			}
			rt, err := mlxrt.Open()
			needs.Installed(t, "MLX", err)
			if err := cs.CheckWith(func() (cases.Program, error) { return rt.Load(t.Context(), out) }); err != nil {
				t.Error(err)
			}
		})
	}
	if len(ran) < 50 {
		t.Errorf("%d programs", len(ran))
	}
}

// replay checks cases, as many at a time as there are processors.
func replay(ctx context.Context, rt runtimes, c config, names []string, backend, tmp string) []result {
	results := make([]result, len(names))
	var wg sync.WaitGroup
	next := make(chan int)
	for w := range runtime.NumCPU() {
		wg.Go(func() {
			out := filepath.Join(tmp, fmt.Sprintf("%d.pte", w))
			for i := range next {
				results[i] = check(ctx, rt, c, names[i], backend, out)
			}
		})
	}
	for i := range slices.All(names) {
		next <- i
	}
	close(next)
	wg.Wait()
	return results
}
