package partition_test

import (
	"testing"

	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/partition"
)

func TestRules(t *testing.T) {
	r := partition.JoinRules(map[ops.ID]string{ops.AtenAbsDefault: "abs"}, map[ops.ID]string{ops.AtenAddTensor: "add"})
	for _, c := range []struct {
		id   ops.ID
		want string
		ok   bool
	}{
		{ops.AtenAbsDefault, "abs", true},
		{ops.AtenAbsoluteDefault, "abs", true},
		{ops.AtenAddTensor, "add", true},
		{ops.AtenAbsoluteInplaceDefault, "", false}, // the same as an operator that writes, which has no rule
		{ops.AtenMmDefault, "", false},
		{ops.Unknown, "", false},
	} {
		if got, ok := r.Of(c.id); got != c.want || ok != c.ok {
			t.Errorf("rule of %s: %q, %v, want %q, %v", c.id, got, ok, c.want, c.ok)
		}
	}
}
