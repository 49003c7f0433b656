package program

import (
	"slices"

	"github.com/lathe-ml/lathe/ir/sym"
)

// Memory is kept from load on for the largest sizes that a method takes. Where the program leaves a size without a bound,
// the size at export is the only hint. Planning for just that would refuse every longer call, and room in every size at
// once would multiply: so all such sizes together may be half as large again as at export, or any one of them three
// quarters while the others stay. More (a batch of four for one of two, say) makes plans larger than the official one of
// the same model. Whoever needs more, or less, says so with a bound.
const (
	togetherNum, togetherDen = 3, 2
	aloneNum, aloneDen       = 7, 4
)

// rooms are the sizes that memory is planned for where the program does not bound them.
type rooms struct {
	syms *sym.Table
	// free are the symbols without a bound that have a size at export, as far as they were asked for.
	free map[string]*AssumedBound
	// ranges are those of expressions so far: most tensors share theirs.
	ranges map[sym.Expr]sym.Range
}

func newRooms(syms *sym.Table) *rooms {
	return &rooms{syms: syms, free: map[string]*AssumedBound{}, ranges: map[sym.Expr]sym.Range{}}
}

// assumed is what is planned for the symbol of that name, nil where the program bounds it or nothing is known of it.
func (r *rooms) assumed(name string) *AssumedBound {
	if a, ok := r.free[name]; ok {
		return a
	}
	s, ok := r.syms.Get(name)
	if !ok || !s.HasHint || s.Range.HasMax() {
		return nil
	}
	a := &AssumedBound{Symbol: name, Exported: max(s.Hint, s.Range.Min)}
	a.Max = max((s.Hint*togetherNum+togetherDen-1)/togetherDen, s.Range.Min)
	a.Alone = max(s.Hint*aloneNum/aloneDen, a.Max)
	r.free[name] = a
	return a
}

// upper is the most elements that a tensor of the shape is planned for, as sizes of its dimensions, and which of those
// vary. A size that nothing bounds is negative or above upperLimit.
func (r *rooms) upper(shape []sym.Expr) (sizes []int64, dynamic bool) {
	var names []string
	for _, e := range shape {
		if _, ok := e.IsConst(); ok {
			continue
		}
		for _, name := range sym.Symbols(e) {
			if r.assumed(name) != nil && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	sizes, dynamic = r.within(shape, "")
	most := product(sizes)
	for _, name := range names {
		if alone, _ := r.within(shape, name); product(alone) > most {
			sizes, most = alone, product(alone)
		}
	}
	return sizes, dynamic
}

// within gives the sizes of a shape where the symbol alone is as large as it may be by itself, or all are as large as they
// may be together when there is none of that name.
func (r *rooms) within(shape []sym.Expr, alone string) (sizes []int64, dynamic bool) {
	return r.bound(shape, func(name string, a *AssumedBound) int64 {
		switch alone {
		case "":
			return a.Max
		case name:
			return a.Alone
		}
		return a.Exported
	})
}

// exported gives the sizes of a shape with the sizes at export for those that have no bound.
func (r *rooms) exported(shape []sym.Expr) []int64 {
	sizes, _ := r.bound(shape, func(_ string, a *AssumedBound) int64 { return a.Exported })
	return sizes
}

// bound gives the largest sizes of a shape with what most says for symbols without a bound, and whether they vary.
func (r *rooms) bound(shape []sym.Expr, most func(name string, a *AssumedBound) int64) (sizes []int64, dynamic bool) {
	bound := func(name string) sym.Range {
		s := r.syms.SymRange(name)
		if a := r.assumed(name); a != nil {
			s.Max = most(name, a)
		}
		return s
	}
	sizes = make([]int64, len(shape))
	for i, e := range shape {
		if k, ok := e.IsConst(); ok {
			sizes[i] = k
			continue
		}
		known, ok := r.ranges[e]
		if !ok {
			known = r.syms.Range(e)
			r.ranges[e] = known
		}
		sizes[i] = known.Max
		if known.Min != known.Max {
			dynamic = true
			sizes[i] = min(sizes[i], sym.Bounds(e, bound).Max)
		}
	}
	return sizes, dynamic
}

// product is the number of elements, held below 2^62.
func product(sizes []int64) int64 {
	n := int64(1)
	for _, k := range sizes {
		if k <= 0 {
			return 0
		}
		if n > 1<<62/k {
			return 1 << 62
		}
		n *= k
	}
	return n
}
