// Package shuffle disturbs what results must not depend on: how many workers share a job, which of them comes first, and
// which piece of the work is taken when. Checks switch it on and compare; where nobody does, nothing changes. The order of
// maps needs no help: Go draws it anew for every loop.
package shuffle

import (
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"
)

// seed is 0 where nothing is disturbed. Every question draws from a generator of its own, so that workers may ask at once.
var seed, asked atomic.Uint64

// Start disturbs from here on, as the seed says, which is not 0. The function goes back to what was before.
func Start(s uint64) (stop func()) {
	old := seed.Swap(s)
	asked.Store(0)
	return func() { seed.Store(old) }
}

func draw() *rand.Rand {
	s := seed.Load()
	if s == 0 {
		return nil
	}
	return rand.New(rand.NewPCG(s, asked.Add(1)))
}

// Workers is how many workers to use instead of n: n, or any number from 1 to 8.
func Workers(n int) int {
	if r := draw(); r != nil {
		return 1 + r.IntN(8)
	}
	return n
}

// Order says in which order pieces 0 to n-1 are to be taken; nil means as they stand.
func Order(n int) []int {
	if r := draw(); r != nil {
		return r.Perm(n)
	}
	return nil
}

// Pause lets others go first, sometimes.
func Pause() {
	r := draw()
	if r == nil {
		return
	}
	switch r.IntN(4) {
	case 0:
		runtime.Gosched()
	case 1:
		time.Sleep(time.Duration(r.IntN(50)) * time.Microsecond)
	}
}
