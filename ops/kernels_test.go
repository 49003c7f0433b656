package ops_test

import (
	"strings"
	"testing"

	"github.com/lathe-ml/lathe/ops"
)

// unused are kernels that serve no row, with reasons.
var unused = map[string]string{
	"aten::_native_batch_norm_legit.out":                "refuses training mode; outside of it the form without statistics to update serves",
	"aten::convolution_backward.out":                    "a gradient",
	"aten::max_pool2d_with_indices_backward.grad_input": "a gradient",
}

// Every kernel that the stock runtime registers serves a row, but those that compute sizes: lower/program writes them for
// expressions.
func TestKernelsAreReachable(t *testing.T) {
	served := map[string]bool{}
	for _, id := range ops.All() {
		served[id.Info().Kernel] = true
	}
	for _, k := range ops.AllKernels() {
		switch why := unused[k.Name]; {
		case strings.HasPrefix(k.Name, "executorch_prim::"):
		case !served[k.Name] && why == "":
			t.Errorf("%s serves no operator", k.Name)
		case served[k.Name] && why != "":
			t.Errorf("%s serves an operator; it is listed as unused (%s)", k.Name, why)
		}
	}
}
