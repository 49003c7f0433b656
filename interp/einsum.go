package interp

import (
	"slices"
	"strings"
)

// evalEinsum sums products over named dimensions. Operands are folded from the left two at a time, as torch does, each
// pair as one batched matrix product.
func evalEinsum(c *Call) ([]Value, error) {
	eq := strings.ReplaceAll(c.Str(0), " ", "")
	ts := c.Ts(1)
	lhs, rhs, explicit := strings.Cut(eq, "->")
	terms := strings.Split(lhs, ",")
	if len(terms) != len(ts) || len(ts) == 0 {
		fail("einsum %q of %d operands", eq, len(ts))
	}
	// An ellipsis stands for the dimensions '0', '1', … counted from the right.
	ell := 0
	for i, term := range terms {
		if k := strings.Index(term, "..."); k >= 0 {
			ell = max(ell, ts[i].Rank()-(len(term)-3))
		}
	}
	names := func(n int) string {
		var b strings.Builder
		for k := ell - n; k < ell; k++ {
			b.WriteByte(byte('0' + k))
		}
		return b.String()
	}
	count := map[rune]int{}
	size := map[rune]int64{}
	for i, term := range terms {
		if k := strings.Index(term, "..."); k >= 0 {
			n := ts[i].Rank() - (len(term) - 3)
			if n < 0 {
				fail("einsum term %q of a tensor of %d dimensions", term, ts[i].Rank())
			}
			term = term[:k] + names(n) + term[k+3:]
		}
		if len(term) != ts[i].Rank() {
			fail("einsum term %q of a tensor of %d dimensions", terms[i], ts[i].Rank())
		}
		for _, ch := range term {
			count[ch]++
		}
		terms[i], ts[i] = takeDiagonals(term, ts[i])
		for k, ch := range terms[i] {
			n := ts[i].Sizes[k]
			if old, ok := size[ch]; ok && old != n && old != 1 && n != 1 {
				fail("einsum dimension %c has sizes %d and %d", ch, old, n)
			}
			size[ch] = max(size[ch], n)
			if n == 0 {
				size[ch] = 0
			}
		}
	}
	out := strings.ReplaceAll(rhs, "...", names(ell))
	if !explicit {
		out = names(ell)
		var once []rune
		for ch, n := range count {
			if n == 1 && (ch < '0' || ch > '9') {
				once = append(once, ch)
			}
		}
		slices.Sort(once)
		out += string(once)
	}
	for _, ch := range out {
		if count[ch] == 0 {
			fail("einsum result dimension %c is in no operand", ch)
		}
	}
	term, t := terms[0], ts[0]
	for i := 1; i < len(ts); i++ {
		term, t = contract(term, t, terms[i], ts[i], func(ch rune) bool {
			if strings.ContainsRune(out, ch) {
				return true
			}
			for _, later := range terms[i+1:] {
				if strings.ContainsRune(later, ch) {
					return true
				}
			}
			return false
		}, size)
	}
	// What is left over is summed.
	var red []int64
	var keep []rune
	for k, ch := range []rune(term) {
		if strings.ContainsRune(out, ch) {
			keep = append(keep, ch)
		} else {
			red = append(red, int64(k))
		}
	}
	if len(red) > 0 {
		t = reduceSum(t, red, false, t.DType)
	}
	order := make([]int, 0, len(keep))
	for _, ch := range out {
		order = append(order, slices.Index(keep, ch))
	}
	return one(compactCopy(permute(t, order)))
}

// takeDiagonals makes every name of a term occur once.
func takeDiagonals(term string, t *Tensor) (string, *Tensor) {
	for i := 0; i < len(term); i++ {
		j := strings.IndexByte(term[i+1:], term[i])
		if j < 0 {
			continue
		}
		j += i + 1
		if t.Sizes[i] != t.Sizes[j] {
			fail("einsum diagonal of dimensions of %d and %d", t.Sizes[i], t.Sizes[j])
		}
		ch := term[i]
		t = diagonal(t, 0, i, j)
		rest := term[:i] + term[i+1:j] + term[j+1:]
		return takeDiagonals(rest+string(ch), t)
	}
	return term, t
}

// contract multiplies two operands and sums the dimensions that nobody needs any more.
func contract(ta string, a *Tensor, tb string, b *Tensor, needed func(rune) bool, size map[rune]int64) (string, *Tensor) {
	d := sameTypes("einsum", a, b)
	// Names of one operand alone that are not needed are summed first.
	a, ta = sumAlone(ta, a, tb, needed)
	b, tb = sumAlone(tb, b, ta, needed)
	var batch, sum, onlyA, onlyB []rune
	for _, ch := range ta {
		switch {
		case !strings.ContainsRune(tb, ch):
			onlyA = append(onlyA, ch)
		case needed(ch):
			batch = append(batch, ch)
		default:
			sum = append(sum, ch)
		}
	}
	for _, ch := range tb {
		if !strings.ContainsRune(ta, ch) {
			onlyB = append(onlyB, ch)
		}
	}
	lay := func(term string, t *Tensor, groups ...[]rune) *Tensor {
		var order []int
		var sizes, merged []int64
		for _, g := range groups {
			n := int64(1)
			for _, ch := range g {
				order = append(order, strings.IndexRune(term, ch))
				sizes = append(sizes, size[ch])
				n *= size[ch]
			}
			merged = append(merged, n)
		}
		return compact(expandTo(permute(t, order), sizes)).withSizes(merged...)
	}
	o := product(lay(ta, a, batch, onlyA, sum), lay(tb, b, batch, onlyB, sum), d, nil)
	term := string(batch) + string(onlyA) + string(onlyB)
	var sizes []int64
	for _, ch := range term {
		sizes = append(sizes, size[ch])
	}
	return term, o.withSizes(sizes...)
}

func sumAlone(term string, t *Tensor, other string, needed func(rune) bool) (*Tensor, string) {
	var red []int64
	var kept strings.Builder
	for k, ch := range []rune(term) {
		if strings.ContainsRune(other, ch) || needed(ch) {
			kept.WriteRune(ch)
		} else {
			red = append(red, int64(k))
		}
	}
	if len(red) == 0 {
		return t, term
	}
	return reduceSum(t, red, false, t.DType), kept.String()
}
