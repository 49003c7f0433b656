package interp

import (
	"os"
	"strings"
	"testing"

	"github.com/lathe-ml/lathe/ir/infer"
	"github.com/lathe-ml/lathe/ops"
)

// Every operator that was seen in exported programs (testdata/seen.txt) has a row, a shape rule and a function here.
func TestSeenOperators(t *testing.T) {
	b, err := os.ReadFile("testdata/seen.txt")
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Fields(string(b))
	if len(names) < 400 {
		t.Fatalf("%d operators", len(names))
	}
	for _, name := range names {
		id := ops.Lookup(name)
		if id == ops.Unknown {
			t.Errorf("%s has no row", name)
			continue
		}
		if int(id) >= len(dispatch) || dispatch[id] == nil {
			t.Errorf("%s has no function", name)
		}
		// The front end replaces parts of tensor subclasses by the tensors they name.
		if !infer.Has(id) && name != "export.access_subclass_inner_tensor.default" {
			t.Errorf("%s has no shape rule", name)
		}
	}
}
