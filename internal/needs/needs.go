// Package needs is for tests that need what is not everywhere: a runtime, a compiler.
package needs

import (
	"os"
	"os/exec"
	"testing"
)

// Installed skips the test where err says that what it needs is not there, telling so. Under CI that is a failure, for a
// check that never runs is none.
func Installed(tb testing.TB, what string, err error) {
	tb.Helper()
	switch {
	case err == nil:
	case os.Getenv("CI") != "":
		tb.Fatal(err)
	default:
		tb.Skip("SKIPPED, needs "+what+": ", err)
	}
}

// Compiler is the path of the C++ compiler.
func Compiler(tb testing.TB) string {
	tb.Helper()
	path, err := exec.LookPath("c++")
	Installed(tb, "a C++ compiler", err)
	return path
}
