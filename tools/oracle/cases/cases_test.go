package cases

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lathe-ml/lathe/internal/etrt"
	"github.com/lathe-ml/lathe/internal/etrt/ettest"
)

func TestChannelsLast(t *testing.T) {
	for _, tc := range []struct {
		shape, strides []int64
		want           bool
	}{
		{[]int64{2, 3, 4, 5}, []int64{60, 1, 15, 3}, true},
		{[]int64{2, 3, 4, 5}, []int64{60, 20, 5, 1}, false},
		{[]int64{2, 3, 4, 5}, []int64{60, 20, 1, 4}, false}, // a transpose is handed over contiguous
		{[]int64{2, 1, 4, 5}, []int64{20, 1, 5, 1}, false},  // one channel: contiguous as well
		{[]int64{1, 3, 2, 4, 5}, []int64{120, 1, 60, 15, 3}, true},
		{[]int64{3, 4}, []int64{1, 3}, false},
	} {
		if got := channelsLast(tc.shape, tc.strides) != nil; got != tc.want {
			t.Errorf("%v %v: %t", tc.shape, tc.strides, got)
		}
	}
}

// The programs the official pipeline made must give what PyTorch recorded: this judges the runner and this package.
func TestOfficialPrograms(t *testing.T) {
	rt := ettest.Open(t)
	dir, err := Dir(filepath.Join("..", "..", "..", "..", "shared", "cases"))
	if err != nil {
		t.Skip("SKIPPED, needs the handed cases: ", err)
	}
	programs, err := filepath.Glob(filepath.Join(dir, "models", "*", "official_xnnpack.pte"))
	if err != nil || len(programs) == 0 {
		t.Fatalf("no official programs below %s: %v", dir, err)
	}
	for _, pte := range programs {
		t.Run(filepath.Base(filepath.Dir(pte)), func(t *testing.T) {
			c, err := Load(filepath.Dir(pte))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if err := c.Check(context.Background(), rt, pte); err != nil {
				t.Error(err)
			}
			// The delegate these were made for is not part of the runtime: load must say so by code and name.
			mlx := strings.Replace(pte, "_xnnpack", "_mlx", 1)
			if _, err := os.Stat(mlx); err != nil {
				t.Fatal(err)
			}
			var e *etrt.Error
			if err := c.Check(context.Background(), rt, mlx); !errors.As(err, &e) || e.Name != "NotFound" {
				t.Errorf("loading a program for an absent backend: %v", err)
			}
		})
	}
}
