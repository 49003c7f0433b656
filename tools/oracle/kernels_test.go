// Package oracle_test judges the operator table by the runtime.
package oracle_test

import (
	"context"
	"slices"
	"testing"

	"github.com/lathe-ml/lathe/internal/etrt/ettest"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/ops/table"
)

// The table's kernels are exactly those the runtime registers.
func TestKernelTable(t *testing.T) {
	registered, err := ettest.Open(t).Kernels(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, k := range registered {
		want = append(want, k.Name)
		if k.Key != "" {
			t.Errorf("%s is registered for %s alone: the table has no place for that", k.Name, k.Key)
		}
	}
	for _, k := range table.Kernels {
		s, err := ops.ParseSchema(k.Schema)
		if err != nil {
			t.Error(err)
			continue
		}
		name := s.NS + "::" + s.Base
		if s.Overload != "" {
			name += "." + s.Overload
		}
		got = append(got, name)
	}
	slices.Sort(want)
	if !slices.IsSorted(got) {
		t.Error("the table is not sorted by name")
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		for _, n := range want {
			if !slices.Contains(got, n) {
				t.Errorf("%s is registered and not in the table", n)
			}
		}
		for _, n := range got {
			if !slices.Contains(want, n) {
				t.Errorf("%s is in the table and not registered", n)
			}
		}
	}
}
