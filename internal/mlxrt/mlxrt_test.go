package mlxrt

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-ml/lathe/internal/needs"
	"github.com/lathe-ml/lathe/tools/oracle/cases"
)

func open(t *testing.T) *Runtime {
	t.Helper()
	rt, err := Open()
	needs.Installed(t, "MLX", err)
	return rt
}

// The executor knows every node of the schema, and no other.
func TestNodes(t *testing.T) {
	rt := open(t)
	f, err := os.Open(filepath.Join("..", "..", "codegen", "fb", "mlx.fbs"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var want []string
	in := false
	for s := bufio.NewScanner(f); s.Scan(); {
		line := strings.TrimSpace(s.Text())
		switch {
		case strings.HasPrefix(line, "union OpNode"):
			in = true
		case in && strings.HasPrefix(line, "}"):
			in = false
		case in:
			for w := range strings.FieldsFuncSeq(line, func(r rune) bool { return r == ',' || r == ' ' }) {
				if strings.HasSuffix(w, "Node") {
					want = append(want, w)
				}
			}
		}
	}
	out, err := exec.Command(rt.python, "-c", script, "--nodes").Output()
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Fields(string(out))
	slices.Sort(want)
	slices.Sort(got)
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("the executor has %v\nthe schema %v", got, want)
	}
}

// The programs the official pipeline made give what PyTorch recorded: this judges the executor.
func TestOfficialPrograms(t *testing.T) {
	rt := open(t)
	dir, err := cases.Dir(filepath.Join("..", "..", "..", "shared", "cases"))
	if err != nil {
		t.Skip("SKIPPED, needs the handed cases: ", err)
	}
	programs, err := filepath.Glob(filepath.Join(dir, "models", "*", "official_mlx.pte"))
	if err != nil || len(programs) == 0 {
		t.Fatalf("no official programs below %s: %v", dir, err)
	}
	for _, path := range programs {
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			c, err := cases.Load(filepath.Dir(path))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if err := c.CheckWith(func() (cases.Program, error) { return rt.Load(context.Background(), path) }); err != nil {
				t.Error(err)
			}
		})
	}
}
