package ops

import (
	"slices"
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	for name, want := range map[string]string{
		"aten.ad.Tensor": "aten.add.Tensor", "aten.rellu.default": "aten.relu.default", "aten.add.Tensor": "aten.add.Tensor",
	} {
		if got := Nearest(name, 3); len(got) == 0 || len(got) > 3 || got[0] != want {
			t.Errorf("%s: got %v, want %s first", name, got, want)
		}
	}
	if got := Nearest(strings.Repeat("x", 200), 3); len(got) != 0 {
		t.Errorf("a name like nothing is near %v", got)
	}
	got := Nearest("aten.sum.dim", 4)
	if !slices.IsSortedFunc(got, func(a, b string) int { return distance("aten.sum.dim", a) - distance("aten.sum.dim", b) }) {
		t.Errorf("%v is not sorted", got)
	}
}
