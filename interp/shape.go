package interp

import (
	"slices"
	"strings"

	"github.com/lathe-ml/lathe/ops"
)

func castAll(ts []*Tensor) []*Tensor {
	vs := make([]Value, len(ts))
	for i, t := range ts {
		vs[i] = t
	}
	d := resultType(vs...)
	out := make([]*Tensor, len(ts))
	for i, t := range ts {
		out[i] = cast(t, d)
	}
	return out
}

// cat joins tensors of one dtype along a dimension. Empty 1-d tensors are passed over, as torch does.
func cat(ts []*Tensor, d int64) *Tensor {
	if len(ts) == 0 {
		fail("cat of no tensors")
	}
	ts = castAll(ts)
	kept := slices.DeleteFunc(slices.Clone(ts), func(t *Tensor) bool { return t.Rank() == 1 && t.Sizes[0] == 0 })
	if len(kept) == 0 {
		return compactCopy(ts[0])
	}
	first := kept[0]
	if first.Rank() == 0 {
		fail("cat of 0-d tensors")
	}
	k := dim(d, first.Rank())
	sizes := slices.Clone(first.Sizes)
	sizes[k] = 0
	for _, t := range kept {
		if t.Rank() != first.Rank() {
			fail("cat of tensors of %d and %d dimensions", first.Rank(), t.Rank())
		}
		for i, n := range t.Sizes {
			if i != k && n != first.Sizes[i] {
				fail("cat along dimension %d of shapes %v and %v", k, first.Sizes, t.Sizes)
			}
		}
		sizes[k] += t.Sizes[k]
	}
	o := NewTensor(first.DType, sizes...)
	at := int64(0)
	for _, t := range kept {
		if t.Numel() > 0 {
			writeInto(slice(o, k, at, at+t.Sizes[k], 1), t)
		}
		at += t.Sizes[k]
	}
	o.storage.written = false
	return o
}

func evalCat(c *Call) ([]Value, error) { return one(cat(c.Ts(0), c.intOr(1, 0))) }

func stack(ts []*Tensor, d int64) *Tensor {
	us := make([]*Tensor, len(ts))
	for i, t := range ts {
		us[i] = unsqueeze(t, dim(d, t.Rank()+1))
	}
	if len(us) == 0 {
		fail("stack of no tensors")
	}
	return cat(us, int64(dim(d, us[0].Rank())))
}

func evalStack(c *Call) ([]Value, error) { return one(stack(c.Ts(0), c.intOr(1, 0))) }

// evalHstack joins along the second dimension (the first of 1-d tensors), vstack the first, dstack the third.
func evalHstack(c *Call) ([]Value, error) {
	ts := c.Ts(0)
	d := int64(0)
	rank := map[string]int{"hstack": 1, "vstack": 2, "row_stack": 2, "dstack": 3, "column_stack": 2}[c.base()]
	for i, t := range ts {
		switch {
		case c.base() == "column_stack" && t.Rank() <= 1:
			ts[i] = reshape(t, []int64{t.Numel(), 1})
		default:
			for ts[i].Rank() < rank {
				at := 0
				if rank == 3 && ts[i].Rank() == 2 {
					at = 2
				} else if rank == 3 && ts[i].Rank() == 1 {
					ts[i] = unsqueeze(ts[i], 0)
					at = 2
				}
				ts[i] = unsqueeze(ts[i], at)
			}
		}
	}
	switch c.base() {
	case "hstack":
		if len(ts) > 0 && ts[0].Rank() > 1 {
			d = 1
		}
	case "column_stack":
		d = 1
	case "dstack":
		d = 2
	}
	return one(cat(ts, d))
}

func repeat(t *Tensor, reps []int64) *Tensor {
	if len(reps) < t.Rank() {
		fail("%d repeats for %d dimensions", len(reps), t.Rank())
	}
	for t.Rank() < len(reps) {
		t = unsqueeze(t, 0)
	}
	// Each dimension becomes a pair (repeat, size) of which the first is spread.
	var sizes, final []int64
	v := alias(t)
	v.Strides = nil
	for i, n := range t.Sizes {
		if reps[i] < 0 {
			fail("repeat %d is negative", reps[i])
		}
		sizes = append(sizes, reps[i], n)
		v.Strides = append(v.Strides, 0, t.Strides[i])
		final = append(final, reps[i]*n)
	}
	v.Sizes = sizes
	return compactCopy(v).withSizes(final...)
}

// evalRepeat repeats along each dimension: repeat, tile.
func evalRepeat(c *Call) ([]Value, error) {
	t, reps := c.T(0), c.Ints(1)
	if c.base() == "tile" {
		for len(reps) < t.Rank() {
			reps = slices.Insert(slices.Clone(reps), 0, 1)
		}
	}
	return one(repeat(t, reps))
}

// indexRows gathers slices of a dimension.
func indexRows(t *Tensor, d int, idx []int64) *Tensor {
	v := transpose(t, 0, d)
	sizes := slices.Clone(v.Sizes)
	n := sizes[0]
	sizes[0] = int64(len(idx))
	o := NewTensor(t.DType, sizes...)
	rows := compact(v)
	sz := t.DType.Size()
	row := numel(sizes[1:]) * sz
	if row > 0 {
		src := rows.storage.b[rows.Offset*sz:]
		for i, k := range idx {
			if k < 0 || k >= n {
				fail("index %d of dimension %d, which has %d elements", k, d, n)
			}
			copy(o.storage.b[int64(i)*row:int64(i+1)*row], src[k*row:(k+1)*row])
		}
	} else {
		for _, k := range idx {
			if k < 0 || k >= n {
				fail("index %d of dimension %d, which has %d elements", k, d, n)
			}
		}
	}
	return compact(transpose(o, 0, d))
}

// evalRepeatInterleave repeats each element of a dimension, or gives the places of such a repetition.
func evalRepeatInterleave(c *Call) ([]Value, error) {
	if c.overload() == "Tensor" {
		var idx []int64
		reps := c.T(0)
		for i, n := range reps.ints() {
			if n < 0 {
				fail("repeat %d is negative", n)
			}
			for range n {
				idx = append(idx, int64(i))
			}
		}
		return one(fromInts(reps.DType, []int64{int64(len(idx))}, idx))
	}
	t := c.T(0)
	if !c.has(2) {
		t = reshape(t, []int64{-1})
	}
	d := dim(c.intOr(2, 0), t.Rank())
	if t.Rank() == 0 {
		t = reshape(t, []int64{1})
	}
	n := t.Sizes[d]
	var reps []int64
	if r, ok := c.Args[1].(*Tensor); ok {
		reps = r.ints()
	} else {
		reps = []int64{c.Int(1)}
	}
	if len(reps) != 1 && int64(len(reps)) != n {
		fail("%d repeats for %d elements", len(reps), n)
	}
	var idx []int64
	for i := range n {
		k := reps[0]
		if len(reps) > 1 {
			k = reps[i]
		}
		if k < 0 {
			fail("repeat %d is negative", k)
		}
		for range k {
			idx = append(idx, i)
		}
	}
	return one(indexRows(t, d, idx))
}

// evalFlip reverses dimensions: flip, fliplr, flipud.
func evalFlip(c *Call) ([]Value, error) {
	t := c.T(0)
	var ds []int64
	switch c.base() {
	case "fliplr":
		ds = []int64{1}
	case "flipud":
		ds = []int64{0}
	default:
		ds = c.Ints(1)
	}
	return one(flip(t, ds))
}

func flip(t *Tensor, ds []int64) *Tensor {
	v := alias(t)
	v.Strides = slices.Clone(t.Strides)
	if t.Numel() > 0 {
		for _, d := range ds {
			k := dim(d, t.Rank())
			if t.Rank() == 0 {
				continue
			}
			v.Offset += (t.Sizes[k] - 1) * v.Strides[k]
			v.Strides[k] = -v.Strides[k]
		}
	}
	return compactCopy(v)
}

// evalRot90 turns in the plane of two dimensions.
func evalRot90(c *Call) ([]Value, error) {
	t := c.T(0)
	ds := c.Ints(2)
	if len(ds) != 2 {
		fail("rot90 in %d dimensions", len(ds))
	}
	a, b := dim(ds[0], t.Rank()), dim(ds[1], t.Rank())
	switch ((c.intOr(1, 1) % 4) + 4) % 4 {
	case 1:
		return one(compactCopy(transpose(flip(t, []int64{int64(b)}), a, b)))
	case 2:
		return one(flip(t, ds))
	case 3:
		return one(compactCopy(transpose(flip(t, []int64{int64(a)}), a, b)))
	}
	return one(compactCopy(t))
}

func roll(t *Tensor, d int, k int64) *Tensor {
	n := t.Sizes[d]
	if n == 0 {
		return t
	}
	k = ((k % n) + n) % n
	return cat([]*Tensor{slice(t, d, n-k, n, 1), slice(t, d, 0, n-k, 1)}, int64(d))
}

// evalRoll moves elements around the end of dimensions; without dimensions, of the flattened tensor.
func evalRoll(c *Call) ([]Value, error) {
	t := c.T(0)
	shifts, ds := c.Ints(1), c.Ints(2)
	if len(ds) == 0 {
		if len(shifts) != 1 {
			fail("%d shifts without dimensions", len(shifts))
		}
		if t.Numel() == 0 {
			return one(compactCopy(t))
		}
		return one(roll(reshape(t, []int64{-1}), 0, shifts[0]).withSizes(t.Sizes...))
	}
	if len(ds) != len(shifts) {
		fail("%d shifts for %d dimensions", len(shifts), len(ds))
	}
	for i, d := range ds {
		t = roll(t, dim(d, t.Rank()), shifts[i])
	}
	return one(compactCopy(t))
}

// padIndex maps a padded place to a source place, -1 for none.
func padIndex(mode string, i, n int64) int64 {
	if i >= 0 && i < n {
		return i
	}
	switch mode {
	case "reflect":
		if i < 0 {
			i = -i
		} else {
			i = 2*(n-1) - i
		}
		if i < 0 || i >= n {
			fail("reflection padding is not smaller than the dimension of %d", n)
		}
		return i
	case "replicate":
		return min(max(i, 0), n-1)
	case "circular":
		return ((i % n) + n) % n
	}
	return -1
}

// pad pads the last dimensions; ps holds (before, after) pairs from the last dimension on. Negative ones cut off.
func pad(t *Tensor, ps []int64, mode string, value Value) *Tensor {
	if len(ps)%2 != 0 || len(ps)/2 > t.Rank() {
		fail("padding %v of %d dimensions", ps, t.Rank())
	}
	if mode == "constant" {
		sizes := slices.Clone(t.Sizes)
		src := t
		type span struct {
			d       int
			at, len int64
		}
		var spans []span
		for i := 0; i < len(ps); i += 2 {
			d := t.Rank() - 1 - i/2
			before, after := ps[i], ps[i+1]
			sizes[d] += before + after
			if sizes[d] < 0 {
				fail("padding %v leaves nothing of dimension %d", ps, d)
			}
			lo, hi := max(0, -before), t.Sizes[d]-max(0, -after)
			if hi < lo {
				hi = lo
			}
			src = slice(src, d, lo, hi, 1)
			spans = append(spans, span{d, max(0, before), hi - lo})
		}
		o := fill(t.DType, sizes, value)
		dst := o
		for _, s := range spans {
			dst = slice(dst, s.d, s.at, s.at+s.len, 1)
		}
		if src.Numel() > 0 {
			writeInto(dst, src)
		}
		return o
	}
	for i := 0; i < len(ps); i += 2 {
		d := t.Rank() - 1 - i/2
		n := t.Sizes[d]
		out := n + ps[i] + ps[i+1]
		if out < 0 || n == 0 && out > 0 {
			fail("padding %v of shape %v", ps, t.Sizes)
		}
		before := ps[i]
		if mode == "circular" {
			if ps[i] > n || ps[i+1] > n {
				fail("circular padding is larger than the dimension of %d", n)
			}
			// What is cut off does not come back on the other side.
			t = slice(t, d, max(0, -before), n-max(0, -ps[i+1]), 1)
			n, before = t.Sizes[d], max(0, before)
		}
		if mode == "reflect" && (ps[i] >= n || ps[i+1] >= n) {
			fail("reflection padding is not smaller than the dimension of %d", n)
		}
		idx := make([]int64, out)
		for k := range idx {
			idx[k] = padIndex(mode, int64(k)-before, n)
		}
		t = indexRows(t, d, idx)
	}
	return compactCopy(t)
}

// evalPad pads: constant_pad_nd, pad with its modes, reflection_pad, replication_pad, circular.
func evalPad(c *Call) ([]Value, error) {
	t, ps := c.T(0), c.Ints(1)
	mode := "constant"
	var value Value = int64(0)
	switch b := c.base(); {
	case b == "constant_pad_nd":
		value = c.Args[2]
	case strings.HasPrefix(b, "reflection"):
		mode = "reflect"
	case strings.HasPrefix(b, "replication"):
		mode = "replicate"
	case b == "_pad_circular":
		mode = "circular"
	case b == "_pad_enum":
		modes := []string{"reflect", "replicate", "circular", "constant"}
		k := c.Int(2)
		if k < 0 || k >= int64(len(modes)) {
			fail("padding mode %d is not known", k)
		}
		mode = modes[k]
		value = c.Args[3]
	default:
		mode, value = c.Str(2), c.Args[3]
	}
	if value == nil {
		value = int64(0)
	}
	switch mode {
	case "constant", "reflect", "replicate", "circular":
	default:
		fail("padding mode %q is not known", mode)
	}
	return one(pad(t, ps, mode, value))
}

// evalPixelShuffle moves channels into space, pixel_unshuffle back.
func evalPixelShuffle(c *Call) ([]Value, error) {
	t, r := c.T(0), c.Int(1)
	k := t.Rank() - 3
	if k < 0 || r <= 0 {
		fail("%s of shape %v by %d", c.base(), t.Sizes, r)
	}
	lead := slices.Clone(t.Sizes[:k])
	ch, h, w := t.Sizes[k], t.Sizes[k+1], t.Sizes[k+2]
	order := make([]int, k, k+5)
	for i := range order {
		order[i] = i
	}
	with := func(s ...int64) []int64 { return append(slices.Clone(lead), s...) }
	if c.base() == "pixel_shuffle" {
		if ch%(r*r) != 0 {
			fail("%d channels do not divide by %d", ch, r*r)
		}
		v := reshape(t, with(ch/(r*r), r, r, h, w))
		v = compactCopy(permute(v, append(order, k, k+3, k+1, k+4, k+2)))
		return one(v.withSizes(with(ch/(r*r), h*r, w*r)...))
	}
	if h%r != 0 || w%r != 0 {
		fail("%dx%d does not divide by %d", h, w, r)
	}
	v := reshape(t, with(ch, h/r, r, w/r, r))
	v = compactCopy(permute(v, append(order, k, k+2, k+4, k+1, k+3)))
	return one(v.withSizes(with(ch*r*r, h/r, w/r)...))
}

// evalChannelShuffle interleaves groups of channels.
func evalChannelShuffle(c *Call) ([]Value, error) {
	t, g := c.T(0), c.Int(1)
	if t.Rank() < 3 || g <= 0 || t.Sizes[1]%g != 0 {
		fail("channel_shuffle of shape %v in %d groups", t.Sizes, g)
	}
	sizes := append([]int64{t.Sizes[0], g, t.Sizes[1] / g}, t.Sizes[2:]...)
	return one(compactCopy(transpose(reshape(t, sizes), 1, 2)).withSizes(t.Sizes...))
}

// evalMeshgrid spreads vectors over a grid.
func evalMeshgrid(c *Call) ([]Value, error) {
	ts := c.Ts(0)
	xy := c.index("indexing") >= 0 && c.Str(c.index("indexing")) == "xy" && len(ts) >= 2
	if xy {
		ts[0], ts[1] = ts[1], ts[0]
	}
	sizes := make([]int64, len(ts))
	for i, t := range ts {
		sizes[i] = t.Numel()
	}
	vs := make([]*Tensor, len(ts))
	for i, t := range ts {
		s := slices.Repeat([]int64{1}, len(ts))
		s[i] = sizes[i]
		vs[i] = expandTo(reshape(t, s), sizes)
	}
	if xy {
		vs[0], vs[1] = vs[1], vs[0]
	}
	return c.viewedList(vs)
}

func evalBroadcastTensors(c *Call) ([]Value, error) {
	ts := c.Ts(0)
	var shapes [][]int64
	for _, t := range ts {
		shapes = append(shapes, t.Sizes)
	}
	sizes := broadcast(shapes...)
	for i, t := range ts {
		ts[i] = expandTo(alias(t), sizes)
	}
	return c.viewedList(ts)
}

// evalCartesianProd lists the tuples of elements of vectors.
func evalCartesianProd(c *Call) ([]Value, error) {
	ts := c.Ts(0)
	if len(ts) == 1 {
		return one(compactCopy(ts[0]))
	}
	sizes := make([]int64, len(ts))
	for i, t := range ts {
		sizes[i] = t.Numel()
	}
	cols := make([]*Tensor, len(ts))
	for i, t := range ts {
		s := slices.Repeat([]int64{1}, len(ts))
		s[i] = sizes[i]
		cols[i] = compactCopy(expandTo(reshape(t, s), sizes)).withSizes(-1 * -numel(sizes))
	}
	return one(stack(cols, 1))
}

// evalCombinations lists the r-element choices of a vector.
func evalCombinations(c *Call) ([]Value, error) {
	t, r, again := c.T(0), int(c.intOr(1, 2)), c.Bool(2)
	n := t.Numel()
	if r == 0 {
		return one(NewTensor(t.DType, 0))
	}
	var idx []int64
	pick := make([]int64, r)
	var rec func(k int, from int64)
	rec = func(k int, from int64) {
		if k == r {
			idx = append(idx, pick...)
			return
		}
		for i := from; i < n; i++ {
			pick[k] = i
			next := i + 1
			if again {
				next = i
			}
			rec(k+1, next)
		}
	}
	rec(0, 0)
	return one(indexRows(t, 0, idx).withSizes(int64(len(idx)/r), int64(r)))
}

// evalBlockDiag puts matrices on the diagonal.
func evalBlockDiag(c *Call) ([]Value, error) {
	ts := castAll(c.Ts(0))
	var rows, cols int64
	for i, t := range ts {
		switch t.Rank() {
		case 0:
			ts[i] = reshape(t, []int64{1, 1})
		case 1:
			ts[i] = unsqueeze(t, 0)
		case 2:
		default:
			fail("block_diag of a tensor of %d dimensions", t.Rank())
		}
		rows, cols = rows+ts[i].Sizes[0], cols+ts[i].Sizes[1]
	}
	d := ops.Float32
	if len(ts) > 0 {
		d = ts[0].DType
	}
	o := NewTensor(d, rows, cols)
	var r, k int64
	for _, t := range ts {
		if t.Numel() > 0 {
			writeInto(slice(slice(o, 0, r, r+t.Sizes[0], 1), 1, k, k+t.Sizes[1], 1), t)
		}
		r, k = r+t.Sizes[0], k+t.Sizes[1]
	}
	return one(o)
}

// evalDiagEmbed puts the last dimension on the diagonal of two new ones: diag_embed, diagflat and diag of a vector; diag
// of a matrix takes its diagonal.
func evalDiagEmbed(c *Call) ([]Value, error) {
	t := c.T(0)
	off := c.intOr(1, 0)
	d1, d2 := int64(-2), int64(-1)
	switch c.base() {
	case "diagflat":
		t = reshape(t, []int64{-1})
	case "diag":
		if t.Rank() == 2 {
			return one(compactCopy(diagonal(t, off, 0, 1)))
		}
		if t.Rank() != 1 {
			fail("diag of a tensor of %d dimensions", t.Rank())
		}
	default:
		d1, d2 = c.intOr(2, -2), c.intOr(3, -1)
	}
	a, b := dim(d1, t.Rank()+1), dim(d2, t.Rank()+1)
	n := t.Sizes[t.Rank()-1] + max(off, -off)
	sizes := slices.Clone(t.Sizes[:t.Rank()-1])
	for _, d := range []int{min(a, b), max(a, b)} {
		sizes = slices.Insert(sizes, d, n)
	}
	o := NewTensor(t.DType, sizes...)
	if t.Numel() > 0 {
		writeInto(diagonal(o, off, a, b), t)
	}
	return one(o)
}

// evalFillDiagonal writes a value on the main diagonal.
func evalFillDiagonal(c *Call) ([]Value, error) {
	t := compactCopy(c.T(0))
	v := scalarTensor(t.DType, c.Args[1])
	if t.Rank() < 2 {
		fail("fill_diagonal of a tensor of %d dimensions", t.Rank())
	}
	n := slices.Min(t.Sizes)
	var step int64
	for _, s := range t.Strides {
		step += s
	}
	if n > 0 {
		writeInto(t.view([]int64{n}, []int64{step}, 0), v)
		if rows, cols := t.Sizes[0], t.Sizes[1]; c.Bool(2) && t.Rank() == 2 && rows > cols {
			// The diagonal starts again after an empty row.
			at := (cols + 1) * cols
			if at < t.Numel() {
				writeInto(t.view([]int64{(t.Numel() - at + cols) / (cols + 1)}, []int64{cols + 1}, at), v)
			}
		}
	}
	return one(t)
}

// window holds the arguments of im2col and col2im.
type window struct{ kh, kw, dh, dw, ph, pw, sh, sw, oh, ow int64 }

func (c *Call) window(i int, h, w int64) window {
	k, d, p, s := c.intsN(i, 2), c.intsN(i+1, 2), c.intsN(i+2, 2), c.intsN(i+3, 2)
	win := window{kh: k[0], kw: k[1], dh: d[0], dw: d[1], ph: p[0], pw: p[1], sh: s[0], sw: s[1]}
	if win.sh <= 0 || win.sw <= 0 || win.dh <= 0 || win.dw <= 0 || win.kh <= 0 || win.kw <= 0 {
		fail("kernel %v, dilation %v, stride %v", k, d, s)
	}
	win.oh = (h+2*win.ph-win.dh*(win.kh-1)-1)/win.sh + 1
	win.ow = (w+2*win.pw-win.dw*(win.kw-1)-1)/win.sw + 1
	if win.oh <= 0 || win.ow <= 0 {
		fail("no place for a window in %dx%d", h, w)
	}
	return win
}

// each calls f for every element of every window that lies inside: its column row, place among the windows, and source.
func (w window) each(h, wd int64, f func(row, at, src int64)) {
	for ki := range w.kh {
		for kj := range w.kw {
			for oi := range w.oh {
				y := oi*w.sh - w.ph + ki*w.dh
				if y < 0 || y >= h {
					continue
				}
				for oj := range w.ow {
					x := oj*w.sw - w.pw + kj*w.dw
					if x >= 0 && x < wd {
						f(ki*w.kw+kj, oi*w.ow+oj, y*wd+x)
					}
				}
			}
		}
	}
}

// evalIm2col lays the windows of an image out as columns.
func evalIm2col(c *Call) ([]Value, error) {
	t := c.T(0)
	single := t.Rank() == 3
	if single {
		t = unsqueeze(t, 0)
	}
	if t.Rank() != 4 {
		fail("im2col of a tensor of %d dimensions", t.Rank())
	}
	n, ch, h, wd := t.Sizes[0], t.Sizes[1], t.Sizes[2], t.Sizes[3]
	w := c.window(1, h, wd)
	src := t.complexes()
	k, l := w.kh*w.kw, w.oh*w.ow
	out := make([]complex128, n*ch*k*l)
	for p := range n * ch {
		w.each(h, wd, func(row, at, s int64) { out[(p*k+row)*l+at] = src[p*h*wd+s] })
	}
	sizes := []int64{n, ch * k, l}
	if single {
		sizes = sizes[1:]
	}
	return one(fromComplexes(t.DType, sizes, out))
}

// evalCol2im adds columns back into an image.
func evalCol2im(c *Call) ([]Value, error) {
	t := c.T(0)
	single := t.Rank() == 2
	if single {
		t = unsqueeze(t, 0)
	}
	size := c.intsN(1, 2)
	h, wd := size[0], size[1]
	w := c.window(2, h, wd)
	k, l := w.kh*w.kw, w.oh*w.ow
	if t.Rank() != 3 || t.Sizes[1]%k != 0 || t.Sizes[2] != l {
		fail("col2im of shape %v, windows of %d elements at %d places", t.Sizes, k, l)
	}
	n, ch := t.Sizes[0], t.Sizes[1]/k
	src := t.complexes()
	out := make([]complex128, n*ch*h*wd)
	for p := range n * ch {
		w.each(h, wd, func(row, at, s int64) { out[p*h*wd+s] += src[(p*k+row)*l+at] })
	}
	sizes := []int64{n, ch, h, wd}
	if single {
		sizes = sizes[1:]
	}
	return one(fromComplexes(t.DType, sizes, out))
}

// evalPadSequence pads sequences to one length and stacks them.
func evalPadSequence(c *Call) ([]Value, error) {
	ts := castAll(c.Ts(0))
	batchFirst := c.Bool(1)
	left := c.index("padding_side") >= 0 && c.Str(c.index("padding_side")) == "left"
	var longest int64
	for _, t := range ts {
		longest = max(longest, t.Sizes[0])
	}
	for i, t := range ts {
		o := fill(t.DType, append([]int64{longest}, t.Sizes[1:]...), c.floatOr(2, 0))
		at := int64(0)
		if left {
			at = longest - t.Sizes[0]
		}
		writeInto(slice(o, 0, at, at+t.Sizes[0], 1), t)
		ts[i] = o
	}
	if batchFirst {
		return one(stack(ts, 0))
	}
	return one(stack(ts, 1))
}

// evalTrace sums the diagonal of a matrix.
func evalTrace(c *Call) ([]Value, error) {
	t := c.T(0)
	if t.Rank() != 2 {
		fail("trace of a tensor of %d dimensions", t.Rank())
	}
	return one(reduceSum(diagonal(t, 0, 0, 1), nil, false, sumType(t.DType)))
}

// evalVander gives the powers of a vector.
func evalVander(c *Call) ([]Value, error) {
	t := c.T(0)
	n := c.intOr(1, t.Numel())
	cols := make([]*Tensor, n)
	for i := range cols {
		e := int64(i)
		if !c.Bool(2) {
			e = n - 1 - e
		}
		cols[i] = binaries["pow"].apply(t, wrap(e), max(t.DType, ops.Int64))
	}
	if n == 0 {
		return one(NewTensor(t.DType, t.Numel(), 0))
	}
	return one(stack(cols, 1))
}

// evalTileCrop cuts an image into square tiles.
func evalTileCrop(c *Call) ([]Value, error) {
	t, k := c.T(0), c.Int(1)
	if t.Rank() != 3 || k <= 0 || t.Sizes[1]%k != 0 || t.Sizes[2]%k != 0 {
		fail("tiles of %d of shape %v", k, t.Sizes)
	}
	ch, h, w := t.Sizes[0], t.Sizes[1], t.Sizes[2]
	v := reshape(t, []int64{ch, h / k, k, w / k, k})
	return one(compactCopy(permute(v, []int{1, 3, 0, 2, 4})).withSizes(h/k*(w/k), ch, k, k))
}

// evalDiff takes n-th differences along a dimension.
func evalDiff(c *Call) ([]Value, error) {
	t := c.T(0)
	d := dim(c.intOr(2, -1), t.Rank())
	if c.intOr(1, 1) == 0 {
		return one(compactCopy(t))
	}
	parts := []*Tensor{t}
	if p := c.optT(3); p != nil {
		parts = slices.Insert(parts, 0, p)
	}
	if a := c.optT(4); a != nil {
		parts = append(parts, a)
	}
	if len(parts) > 1 {
		t = cat(parts, int64(d))
	}
	for range c.intOr(1, 1) {
		n := t.Sizes[d]
		if n == 0 {
			break
		}
		hi, lo := slice(t, d, 1, n, 1), slice(t, d, 0, n-1, 1)
		if t.DType == ops.Bool {
			t = binaries["bitwise_xor"].apply(hi, lo, t.DType)
		} else {
			t = binaries["sub"].apply(hi, lo, t.DType)
		}
	}
	return one(compactCopy(t))
}

// evalTrapezoid integrates by the trapezoidal rule.
func evalTrapezoid(c *Call) ([]Value, error) {
	y := c.T(0)
	di := c.index("dim")
	d := dim(c.intOr(di, -1), y.Rank())
	n := y.Sizes[d]
	dt := floatType(y.DType)
	if n == 0 {
		sizes := slices.Delete(slices.Clone(y.Sizes), d, d+1)
		return one(NewTensor(dt, sizes...))
	}
	hi, lo := slice(y, d, 1, n, 1), slice(y, d, 0, n-1, 1)
	s := binaries["add"].apply(hi, lo, promoteTypes(y.DType, y.DType))
	step := wrap(c.floatOr(c.index("dx"), 1))
	if i := c.index("x"); i >= 0 {
		x := c.T(i)
		k := x.Rank() - 1
		if x.Rank() > 1 {
			k = dim(c.intOr(di, -1), x.Rank())
		}
		m := x.Sizes[k]
		step = binaries["sub"].apply(slice(x, k, 1, m, 1), slice(x, k, 0, m-1, 1), x.DType)
		if x.Rank() == 1 && d != y.Rank()-1 {
			sizes := slices.Repeat([]int64{1}, y.Rank())
			sizes[d] = m - 1
			step = step.withSizes(sizes...)
		}
		dt = floatType(promoteTypes(dt, x.DType))
	}
	p := binaries["mul"].apply(s, step, dt)
	r := reduceSum(p, []int64{int64(d)}, false, dt)
	return one(mapFloats(r, dt, func(x float64) float64 { return x / 2 }))
}

// evalTake picks elements of the flattened tensor.
func evalTake(c *Call) ([]Value, error) {
	t, idx := c.T(0), c.T(1)
	flatT := reshape(t, []int64{-1})
	return one(indexRows(flatT, 0, wrapIndices(idx.ints(), t.Numel())).withSizes(idx.Sizes...))
}

func wrapIndices(idx []int64, n int64) []int64 {
	out := make([]int64, len(idx))
	for i, k := range idx {
		if k < -n || k >= n {
			fail("index %d is outside of %d elements", k, n)
		}
		if k < 0 {
			k += n
		}
		out[i] = k
	}
	return out
}
