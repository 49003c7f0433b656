package program

import (
	"strings"
	"testing"

	"github.com/lathe-ml/lathe/ir/text"
	"github.com/lathe-ml/lathe/ops"
)

// A condition that the table names and nobody checks would let a program run into it.
func TestEveryFaultIsChecked(t *testing.T) {
	for _, k := range ops.AllKernels() {
		for _, f := range k.Faults {
			if faults[f] == nil {
				t.Errorf("%s: condition %q is not checked", k.Name, f)
			}
		}
	}
}

// The kernel of narrow answers 0x12 to a beginning counted from the end, which torch allows.
func TestNarrowFromTheEnd(t *testing.T) {
	g, err := text.Parse(`graph @forward(%x: f32[4, 6] user) -> (%1, %2) {
  %1 = aten.narrow.default(%x, -1, 3, 2): f32[4, 2]{6, 1}
  %2 = aten.narrow.default(%x, -1, -3, 2): f32[4, 2]{6, 1}
}`, text.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"", "from the end"}
	i := 0
	for n := range g.Nodes() {
		d := Legal(n)
		if want[i] == "" && d != nil || want[i] != "" && (d == nil || !strings.Contains(d.Msg, want[i])) {
			t.Errorf("node %d: %v, want %q", i, d, want[i])
		}
		i++
	}
}
