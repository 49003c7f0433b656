package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lathe-ml/lathe/internal/etrt/ettest"
	"github.com/lathe-ml/lathe/tools/oracle/cases"
)

// TestVersions replays programs that releases of torch wrote (tools/fixtures/version_archives.py): each is read, and right.
func TestVersions(t *testing.T) {
	root := unpack(t, "versions.tar.bz2")
	names, err := cases.Find(root)
	if err != nil {
		t.Fatal(err)
	}
	perRelease := map[string]int{}
	for _, n := range names {
		release, _, _ := strings.Cut(n, "-")
		perRelease[release]++
	}
	for _, r := range []string{"2.9.1", "2.10.0", "2.11.0", "2.12.1", "2.13.0", "2.14.1", "2.15.0"} {
		if perRelease[r] < 10 {
			t.Errorf("%d programs of torch %s, at least 10 are wanted", perRelease[r], r)
		}
	}
	for _, b := range []string{reference, "portable", "xnnpack"} {
		t.Run(b, func(t *testing.T) {
			var rt runtimes
			if b != reference {
				rt.et = ettest.Open(t)
			}
			right := 0
			for i, r := range replay(t.Context(), rt, config{root: root}, names, b, t.TempDir()) {
				if r.good() {
					right++
				} else {
					t.Errorf("%s: %s%s", names[i], r.class, r.text)
				}
			}
			fmt.Printf("%s: %d programs of %d releases, %d right\n", b, len(names), len(perRelease), right)
		})
	}
}
