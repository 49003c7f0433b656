// Package ettest opens the ExecuTorch runtime for tests.
package ettest

import (
	"testing"

	"github.com/lathe-ml/lathe/internal/etrt"
	"github.com/lathe-ml/lathe/internal/needs"
)

// Open returns the runtime. Without one the test is skipped, saying so; under CI that is a failure, for a check that
// never runs is none.
func Open(tb testing.TB) *etrt.Runtime {
	tb.Helper()
	rt, err := etrt.Open()
	needs.Installed(tb, "the runtime", err)
	return rt
}
