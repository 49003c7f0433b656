package interp

import (
	"runtime"
	"sync"

	"github.com/lathe-ml/lathe/internal/shuffle"
)

// parallel calls f on pieces of [0, n). Pieces are independent, so results do not depend on how many there are. small is
// the number of items below which it does not pay.
func parallel(n, small int, f func(lo, hi int)) {
	k := min(shuffle.Workers(runtime.GOMAXPROCS(0)), n/max(small, 1))
	if k <= 1 {
		if n > 0 {
			f(0, n)
		}
		return
	}
	var wg sync.WaitGroup
	var once sync.Once
	var failed any
	for i := range k {
		wg.Add(1)
		go func() {
			defer wg.Done()
			defer func() {
				// A panic crosses to the caller, whose node boundary reports it.
				if r := recover(); r != nil {
					once.Do(func() { failed = r })
				}
			}()
			shuffle.Pause()
			f(n*i/k, n*(i+1)/k)
		}()
	}
	wg.Wait()
	if failed != nil {
		panic(failed)
	}
}
