package program

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/lathe-ml/lathe/ir"
)

// align is what the runtime's kernels expect of planned memory, in bytes.
const align = 16

// buffer is a run of planned memory that one or more tensors share, and when it is needed: from instruction first to
// instruction last, both included.
type buffer struct {
	size int64
	// exported is the bytes needed at the sizes of the export.
	exported    int64
	first, last int
	offset      int64
	memory      uint32
	// kept is set where the contents outlive what the graph's values say: state, results, what a loop carries.
	kept bool
	// values are those that lie here.
	values []*ir.Value
	// seen is the last question of a timeIndex that this is an answer to.
	seen int
}

func (b *buffer) touch(at int) {
	b.first = min(b.first, at)
	b.last = max(b.last, at)
}

// planMemory places buffers so that two which are needed at the same time do not overlap, and gives the bytes needed. Of
// several orders the best result is kept; which that is depends on the buffers alone.
func planMemory(bufs []*buffer) int64 {
	var live []*buffer
	for _, b := range bufs {
		b.offset = 0
		if b.size > 0 {
			live = append(live, b)
		}
	}
	if len(live) == 0 {
		return 0
	}
	floor := peak(live)
	best := int64(math.MaxInt64)
	offsets := make([]int64, len(live))
	keep := func(total int64) bool {
		if total < best {
			best = total
			for i, b := range live {
				offsets[i] = b.offset
			}
		}
		return best == floor
	}
	bySize := func(a, b *buffer) int { return cmp.Compare(b.size, a.size) }
	byStart := func(a, b *buffer) int { return cmp.Compare(a.first, b.first) }
	byArea := func(a, b *buffer) int {
		return cmp.Compare(float64(b.size)*float64(b.last-b.first+1), float64(a.size)*float64(a.last-a.first+1))
	}
	byLength := func(a, b *buffer) int { return cmp.Compare(b.last-b.first, a.last-a.first) }
	orders := [][]func(a, b *buffer) int{
		{bySize, byLength, byStart},
		{bySize, byStart},
		{byArea, byStart},
		{byLength, bySize, byStart},
		{byStart, bySize},
	}
	done := keep(placeInTime(live))
	work, idx := placeWork, newTimeIndex(live)
	var bestOrder []*buffer
	for _, o := range orders {
		if done || work <= 0 {
			break
		}
		order := slices.Clone(live)
		slices.SortStableFunc(order, func(a, b *buffer) int {
			for _, f := range o {
				if c := f(a, b); c != 0 {
					return c
				}
			}
			return 0
		})
		if total, ok := place(order, idx, &work); ok {
			if total < best || bestOrder == nil {
				bestOrder = order
			}
			done = keep(total)
		}
	}
	// What ends up on top goes first the next time, as long as there is something to gain.
	order := bestOrder
	for range maxRounds {
		if done || work <= 0 || order == nil {
			break
		}
		top := 0
		for i, b := range order {
			if b.offset+b.size > order[top].offset+order[top].size {
				top = i
			}
		}
		order = append([]*buffer{order[top]}, slices.Delete(slices.Clone(order), top, top+1)...)
		total, ok := place(order, idx, &work)
		if !ok {
			break
		}
		done = keep(total)
	}
	for i, b := range live {
		b.offset = offsets[i]
	}
	return best
}

// maxRounds bounds the attempts to improve a plan.
const maxRounds = 200

// peak is the most bytes needed at one time, which no plan can go below.
func peak(bufs []*buffer) int64 {
	type event struct {
		at   int
		size int64
	}
	evs := make([]event, 0, 2*len(bufs))
	for _, b := range bufs {
		evs = append(evs, event{b.first, roundUp(b.size)}, event{b.last + 1, -roundUp(b.size)})
	}
	slices.SortFunc(evs, func(a, b event) int {
		if c := cmp.Compare(a.at, b.at); c != 0 {
			return c
		}
		return cmp.Compare(a.size, b.size)
	})
	var now, most int64
	for _, e := range evs {
		now += e.size
		most = max(most, now)
	}
	return most
}

func roundUp(n int64) int64 { return (n + align - 1) / align * align }

// timeIndex finds the placed buffers that overlap a span of time. Time is cut into cells; a buffer stands in the cells it
// touches, or in the list of long ones when those are many.
type timeIndex struct {
	cell  int
	cells [][]*buffer
	long  []*buffer
	// asked counts the questions.
	asked int
}

const longCells = 16

func newTimeIndex(bufs []*buffer) *timeIndex {
	end := 0
	for _, b := range bufs {
		end = max(end, b.last)
		b.seen = 0
	}
	cell := max(1, end/4096)
	return &timeIndex{cell: cell, cells: make([][]*buffer, end/cell+1)}
}

// reset takes all buffers out.
func (t *timeIndex) reset() {
	for i := range t.cells {
		t.cells[i] = t.cells[i][:0]
	}
	t.long = t.long[:0]
}

func (t *timeIndex) span(b *buffer) (lo, hi int) {
	return max(b.first, 0) / t.cell, max(b.last, 0) / t.cell
}

func (t *timeIndex) add(b *buffer) {
	lo, hi := t.span(b)
	if hi-lo >= longCells {
		t.long = append(t.long, b)
		return
	}
	for c := lo; c <= hi; c++ {
		t.cells[c] = append(t.cells[c], b)
	}
}

// overlapping appends the placed buffers needed at a time when b is.
func (t *timeIndex) overlapping(out []*buffer, b *buffer) []*buffer {
	t.asked++
	lo, hi := t.span(b)
	for c := lo; c <= hi; c++ {
		for _, o := range t.cells[c] {
			if o.first <= b.last && b.first <= o.last && o.seen != t.asked {
				o.seen = t.asked
				out = append(out, o)
			}
		}
	}
	for _, o := range t.long {
		if o.first <= b.last && b.first <= o.last {
			out = append(out, o)
		}
	}
	return out
}

// placeWork bounds the comparisons of all attempts, so that planning stays near-linear for very large programs.
const placeWork = 3_000_000

// place puts each buffer of the order into the smallest gap that holds it among those placed before it. It gives up when
// the work left is done.
func place(order []*buffer, idx *timeIndex, work *int) (int64, bool) {
	idx.reset()
	var total int64
	var near []*buffer
	for _, b := range order {
		near = idx.overlapping(near[:0], b)
		if *work -= len(near) + 8; *work < 0 {
			return 0, false
		}
		slices.SortFunc(near, func(x, y *buffer) int { return cmp.Compare(x.offset, y.offset) })
		size := roundUp(b.size)
		at, bestGap := int64(-1), int64(math.MaxInt64)
		end := int64(0)
		for _, o := range near {
			if gap := o.offset - end; gap >= size && gap < bestGap {
				at, bestGap = end, gap
			}
			end = max(end, o.offset+roundUp(o.size))
		}
		if at < 0 {
			at = end
		}
		b.offset = at
		total = max(total, at+size)
		idx.add(b)
	}
	return total, true
}

// placeInTime runs through the program, takes for each buffer the smallest free run that holds it and gives it back after
// its last use.
func placeInTime(bufs []*buffer) int64 {
	order := slices.Clone(bufs)
	slices.SortStableFunc(order, func(a, b *buffer) int {
		if c := cmp.Compare(a.first, b.first); c != 0 {
			return c
		}
		return cmp.Compare(b.size, a.size)
	})
	ends := slices.Clone(bufs)
	slices.SortStableFunc(ends, func(a, b *buffer) int { return cmp.Compare(a.last, b.last) })
	var free runs
	var total int64
	e := 0
	for _, b := range order {
		for e < len(ends) && ends[e].last < b.first {
			free.put(ends[e].offset, roundUp(ends[e].size))
			e++
		}
		size := roundUp(b.size)
		if at, ok := free.take(size); ok {
			b.offset = at
			continue
		}
		// A free run at the very end grows.
		if at, n, ok := free.last(); ok && at+n == total {
			free.remove(at, n)
			b.offset = at
			total = at + size
			continue
		}
		b.offset = total
		total += size
	}
	return total
}

// runs are the free runs of memory, by offset and by size.
type runs struct {
	byOffset []run
}

type run struct{ at, n int64 }

func (r *runs) find(at int64) int {
	return sort.Search(len(r.byOffset), func(i int) bool { return r.byOffset[i].at >= at })
}

func (r *runs) put(at, n int64) {
	i := r.find(at)
	if i > 0 && r.byOffset[i-1].at+r.byOffset[i-1].n == at {
		i--
		r.byOffset[i].n += n
	} else {
		r.byOffset = slices.Insert(r.byOffset, i, run{at, n})
	}
	if i+1 < len(r.byOffset) && r.byOffset[i].at+r.byOffset[i].n == r.byOffset[i+1].at {
		r.byOffset[i].n += r.byOffset[i+1].n
		r.byOffset = slices.Delete(r.byOffset, i+1, i+2)
	}
}

func (r *runs) take(n int64) (int64, bool) {
	best := -1
	for i, x := range r.byOffset {
		if x.n >= n && (best < 0 || x.n < r.byOffset[best].n) {
			best = i
		}
	}
	if best < 0 {
		return 0, false
	}
	x := &r.byOffset[best]
	at := x.at
	x.at += n
	x.n -= n
	if x.n == 0 {
		r.byOffset = slices.Delete(r.byOffset, best, best+1)
	}
	return at, true
}

func (r *runs) last() (at, n int64, ok bool) {
	if len(r.byOffset) == 0 {
		return 0, 0, false
	}
	x := r.byOffset[len(r.byOffset)-1]
	return x.at, x.n, true
}

func (r *runs) remove(at, _ int64) {
	i := r.find(at)
	r.byOffset = slices.Delete(r.byOffset, i, i+1)
}
