package program

import (
	"testing"

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
