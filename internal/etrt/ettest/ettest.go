// Package ettest opens the ExecuTorch runtime for tests.
package ettest

import (
	"os"
	"testing"

	"github.com/lathe-ml/lathe/internal/etrt"
)

// Open returns the runtime. Without one the test is skipped, saying so; under CI that is a failure, for a check that
// never runs is none.
func Open(tb testing.TB) *etrt.Runtime {
	tb.Helper()
	rt, err := etrt.Open()
	if err != nil {
		if os.Getenv("CI") != "" {
			tb.Fatal(err)
		}
		tb.Skip("SKIPPED, needs the runtime: ", err)
	}
	return rt
}
