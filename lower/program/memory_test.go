package program

import (
	"math/rand/v2"
	"testing"
)

func randomBuffers(r *rand.Rand, n int) []*buffer {
	bufs := make([]*buffer, n)
	for i := range bufs {
		first := r.IntN(n)
		length := r.IntN(8)
		switch r.IntN(20) {
		case 0:
			length = r.IntN(n)
		case 1:
			first, length = 0, n
		}
		bufs[i] = &buffer{size: r.Int64N(1000) * r.Int64N(3), first: first, last: min(first+length, n)}
	}
	return bufs
}

// Whatever the buffers, those needed at the same time lie apart, aligned, within the total; and the total is not far above
// what no plan can beat.
func TestPlanMemory(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 300 {
		bufs := randomBuffers(r, 1+r.IntN(60))
		total := planMemory(bufs)
		for i, a := range bufs {
			if a.offset%align != 0 || a.offset+a.size > total {
				t.Fatalf("round %d: a buffer of %d bytes at %d in %d", round, a.size, a.offset, total)
			}
			for _, b := range bufs[:i] {
				inTime := a.first <= b.last && b.first <= a.last
				inSpace := a.offset < b.offset+b.size && b.offset < a.offset+a.size
				if inTime && inSpace {
					t.Fatalf("round %d: [%d,%d] at %d+%d and [%d,%d] at %d+%d overlap", round,
						a.first, a.last, a.offset, a.size, b.first, b.last, b.offset, b.size)
				}
			}
		}
		var live []*buffer
		for _, b := range bufs {
			if b.size > 0 {
				live = append(live, b)
			}
		}
		if floor := peak(live); total < floor || total > floor*3/2 {
			t.Errorf("round %d: %d bytes, %d are needed", round, total, floor)
		}
	}
}

// A plan for very many buffers must come in time that grows with their number, not its square.
func TestPlanManyBuffers(t *testing.T) {
	bufs := randomBuffers(rand.New(rand.NewPCG(3, 4)), 100_000)
	if total, floor := planMemory(bufs), peak(bufs); total < floor {
		t.Errorf("%d bytes, %d are needed", total, floor)
	}
}

func TestPlanDependsOnBuffersAlone(t *testing.T) {
	a, b := randomBuffers(rand.New(rand.NewPCG(5, 6)), 200), randomBuffers(rand.New(rand.NewPCG(5, 6)), 200)
	planMemory(a)
	planMemory(b)
	for i := range a {
		if a[i].offset != b[i].offset {
			t.Fatalf("buffer %d at %d and at %d", i, a[i].offset, b[i].offset)
		}
	}
}
