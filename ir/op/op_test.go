package op

import (
	"testing"

	"github.com/lathe-ml/lathe/ops"
)

// Every default of every schema is understood, and a default is recognised as one.
func TestDefaults(t *testing.T) {
	for _, id := range ops.All() {
		d := Defaults(id)
		for i := range d {
			if a := id.Info().Schema.Args[i]; a.HasDefault && !IsDefault(id, i, d[i]) {
				t.Errorf("%s: default of %s is not its own default", id, a.Name)
			}
		}
	}
}
