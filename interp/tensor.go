package interp

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unsafe"

	"github.com/lathe-ml/lathe/ops"
)

// DType is the element type of a tensor.
type DType = ops.DType

// Storage is the bytes that one or more tensors view.
type Storage struct {
	b []byte
	// lent says that the bytes are not the interpreter's: they are copied before the first write.
	lent bool
	// written tells that a program wrote to the storage.
	written bool
}

// Tensor is a view of a storage. Sizes, strides and offset count elements.
type Tensor struct {
	DType   DType
	Sizes   []int64
	Strides []int64
	Offset  int64

	storage *Storage
	// wrapped marks a Python number that stands where a tensor may: it does not take part in promotion as a tensor does.
	wrapped bool
}

// maxBytes bounds a single tensor, so that a wrong size is an error and not the end of the process.
const maxBytes = 1 << 36

// NewStorage lends bytes to a storage; they are never written to.
func NewStorage(b []byte) *Storage {
	if len(b) > 0 && uintptr(unsafe.Pointer(&b[0]))%8 != 0 {
		c := alignedBytes(int64(len(b)))
		copy(c, b)
		return &Storage{b: c}
	}
	return &Storage{b: b, lent: true}
}

func alignedBytes(n int64) []byte {
	if n == 0 {
		return nil
	}
	w := make([]uint64, (n+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(&w[0])), n)
}

// own makes the storage writable.
func (s *Storage) own() {
	if s.lent {
		c := alignedBytes(int64(len(s.b)))
		copy(c, s.b)
		s.b, s.lent = c, false
	}
	s.written = true
}

// NewTensor makes a contiguous tensor of zeros. A shape that is negative or too large panics with an error that the
// interpreter's node boundary reports.
func NewTensor(d DType, sizes ...int64) *Tensor {
	n := numel(sizes)
	if d.Size() > 0 && n > maxBytes/d.Size() {
		fail("a tensor of shape %v is too large", sizes)
	}
	sizes = slices.Clone(sizes)
	return &Tensor{DType: d, Sizes: sizes, Strides: contiguous(sizes), storage: &Storage{b: alignedBytes(n * d.Size())}}
}

// NewView makes a tensor over a storage. It is an error when elements lie outside of it.
func NewView(d DType, sizes, strides []int64, offset int64, s *Storage) (*Tensor, error) {
	if len(sizes) != len(strides) {
		return nil, fmt.Errorf("%d sizes, %d strides", len(sizes), len(strides))
	}
	lo, hi := offset, offset
	empty := false
	for i, n := range sizes {
		if n < 0 {
			return nil, fmt.Errorf("size %d is negative", n)
		}
		if n == 0 {
			empty = true
			continue
		}
		step, over := mulOverflows(n-1, strides[i])
		if over {
			return nil, fmt.Errorf("shape %v with strides %v lies outside its storage", sizes, strides)
		}
		if strides[i] > 0 {
			hi += step
		} else {
			lo += step
		}
		if hi < 0 || lo > offset {
			return nil, fmt.Errorf("shape %v with strides %v lies outside its storage", sizes, strides)
		}
	}
	if !empty && (lo < 0 || hi >= int64(len(s.b))/max(d.Size(), 1)) {
		return nil, fmt.Errorf("shape %v with strides %v and offset %d needs more than the %d bytes of its storage", sizes, strides, offset, len(s.b))
	}
	return &Tensor{DType: d, Sizes: sizes, Strides: strides, Offset: offset, storage: s}, nil
}

func mulOverflows(a, b int64) (int64, bool) {
	if a == 0 || b == 0 {
		return 0, false
	}
	p := a * b
	return p, p/b != a || p > math.MaxInt64/4 || p < math.MinInt64/4
}

// FromBytes makes a contiguous tensor over row-major little-endian bytes, which are lent.
func FromBytes(d DType, sizes []int64, b []byte) (*Tensor, error) {
	return NewView(d, slices.Clone(sizes), contiguous(sizes), 0, NewStorage(b))
}

// Bytes gives the elements row-major, little-endian. The slice may be the storage itself: it is not to be written to.
func (t *Tensor) Bytes() []byte {
	if t.IsContiguous() {
		sz := t.DType.Size()
		if t.Numel() == 0 {
			return nil
		}
		return t.storage.b[t.Offset*sz : (t.Offset+t.Numel())*sz]
	}
	return compactCopy(t).storage.b
}

// Storage is what the tensor views.
func (t *Tensor) Storage() *Storage { return t.storage }

// Rank is the number of dimensions.
func (t *Tensor) Rank() int { return len(t.Sizes) }

// Numel is the number of elements.
func (t *Tensor) Numel() int64 { return numel(t.Sizes) }

// String says dtype and shape.
func (t *Tensor) String() string {
	parts := make([]string, len(t.Sizes))
	for i, s := range t.Sizes {
		parts[i] = fmt.Sprint(s)
	}
	return t.DType.String() + "[" + strings.Join(parts, ", ") + "]"
}

// IsContiguous tells whether the elements lie row-major without gaps.
func (t *Tensor) IsContiguous() bool {
	n := int64(1)
	for i := len(t.Sizes) - 1; i >= 0; i-- {
		if t.Sizes[i] == 0 {
			return true
		}
		if t.Sizes[i] != 1 && t.Strides[i] != n {
			return false
		}
		n *= t.Sizes[i]
	}
	return true
}

func numel(sizes []int64) int64 {
	n := int64(1)
	for _, s := range sizes {
		if s < 0 {
			fail("size %d of shape %v is negative", s, sizes)
		}
		if s > 0 && n > math.MaxInt64/s {
			fail("a tensor of shape %v is too large", sizes)
		}
		n *= s
	}
	return n
}

func contiguous(sizes []int64) []int64 {
	st := make([]int64, len(sizes))
	n := int64(1)
	for i := len(sizes) - 1; i >= 0; i-- {
		st[i] = n
		n *= max(sizes[i], 1)
	}
	return st
}

// view is a tensor over the same storage.
func (t *Tensor) view(sizes, strides []int64, offset int64) *Tensor {
	v, err := NewView(t.DType, sizes, strides, offset, t.storage)
	if err != nil {
		fail("%v", err)
	}
	return v
}

// withSizes is a contiguous tensor's storage seen with other sizes of the same number of elements.
func (t *Tensor) withSizes(sizes ...int64) *Tensor {
	if numel(sizes) != t.Numel() {
		fail("shape %v has not the %d elements of %v", sizes, t.Numel(), t.Sizes)
	}
	c := compact(t)
	return c.view(sizes, contiguous(sizes), c.Offset)
}

// elems is the whole storage as elements of T.
func elems[T any](t *Tensor) []T {
	var z T
	b := t.storage.b
	n := len(b) / int(unsafe.Sizeof(z))
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), n)
}

// flat is the elements of a contiguous tensor; writing to them writes to the tensor.
func flat[T any](t *Tensor) []T {
	n := t.Numel()
	if n == 0 {
		return nil
	}
	return elems[T](t)[t.Offset : t.Offset+n]
}

// walk calls f for each run of the last dimension: the offset of its first element and the place of it in row-major order.
// Dimensions that continue one another are merged first.
func walk(sizes, strides []int64, offset int64, f func(off, pos, n, stride int64)) {
	var sz, st []int64
	for i, n := range sizes {
		if n == 0 {
			return
		}
		if n == 1 {
			continue
		}
		if k := len(sz) - 1; k >= 0 && st[k] == strides[i]*n {
			sz[k] *= n
			st[k] = strides[i]
			continue
		}
		sz, st = append(sz, n), append(st, strides[i])
	}
	if len(sz) == 0 {
		f(offset, 0, 1, 1)
		return
	}
	last := len(sz) - 1
	idx := make([]int64, last)
	pos := int64(0)
	for {
		f(offset, pos, sz[last], st[last])
		pos += sz[last]
		d := last - 1
		for ; d >= 0; d-- {
			idx[d]++
			offset += st[d]
			if idx[d] < sz[d] {
				break
			}
			offset -= st[d] * sz[d]
			idx[d] = 0
		}
		if d < 0 {
			return
		}
	}
}

func gatherInto[T any](dst, src []T, t *Tensor) {
	walk(t.Sizes, t.Strides, t.Offset, func(off, pos, n, stride int64) {
		d := dst[pos : pos+n]
		if stride == 1 {
			copy(d, src[off:off+n])
			return
		}
		for i := range d {
			d[i] = src[off]
			off += stride
		}
	})
}

func scatterFrom[T any](dst, src []T, t *Tensor) {
	walk(t.Sizes, t.Strides, t.Offset, func(off, pos, n, stride int64) {
		s := src[pos : pos+n]
		if stride == 1 {
			copy(dst[off:off+n], s)
			return
		}
		for i := range s {
			dst[off] = s[i]
			off += stride
		}
	})
}

// compact is t, or a row-major copy where it is not contiguous.
func compact(t *Tensor) *Tensor {
	if t.IsContiguous() {
		return t
	}
	return compactCopy(t)
}

// compactCopy is a row-major copy with a storage of its own.
func compactCopy(t *Tensor) *Tensor {
	c := NewTensor(t.DType, t.Sizes...)
	switch t.DType.Size() {
	case 1:
		gatherInto(elems[uint8](c), elems[uint8](t), t)
	case 2:
		gatherInto(elems[uint16](c), elems[uint16](t), t)
	case 4:
		gatherInto(elems[uint32](c), elems[uint32](t), t)
	case 8:
		gatherInto(elems[uint64](c), elems[uint64](t), t)
	case 16:
		gatherInto(elems[complex128](c), elems[complex128](t), t)
	}
	return c
}

// writeInto writes src into dst with broadcasting and cast.
func writeInto(dst, src *Tensor) {
	if dst.storage == src.storage && dst.Offset == src.Offset && dst.DType == src.DType &&
		slices.Equal(dst.Sizes, src.Sizes) && slices.Equal(dst.Strides, src.Strides) {
		return
	}
	s := cast(expandTo(src, dst.Sizes), dst.DType)
	if s.storage == dst.storage || !s.IsContiguous() {
		s = compactCopy(s)
	}
	dst.storage.own()
	switch dst.DType.Size() {
	case 1:
		scatterFrom(elems[uint8](dst), flat[uint8](s), dst)
	case 2:
		scatterFrom(elems[uint16](dst), flat[uint16](s), dst)
	case 4:
		scatterFrom(elems[uint32](dst), flat[uint32](s), dst)
	case 8:
		scatterFrom(elems[uint64](dst), flat[uint64](s), dst)
	case 16:
		scatterFrom(elems[complex128](dst), flat[complex128](s), dst)
	}
}

// expandTo broadcasts t to sizes as a view.
func expandTo(t *Tensor, sizes []int64) *Tensor {
	if slices.Equal(t.Sizes, sizes) {
		return t
	}
	if len(sizes) < len(t.Sizes) {
		fail("shape %v does not broadcast to %v", t.Sizes, sizes)
	}
	st := make([]int64, len(sizes))
	lead := len(sizes) - len(t.Sizes)
	for i, n := range t.Sizes {
		switch {
		case n == sizes[lead+i]:
			st[lead+i] = t.Strides[i]
		case n != 1:
			fail("shape %v does not broadcast to %v", t.Sizes, sizes)
		}
	}
	numel(sizes) // no size is negative
	return &Tensor{DType: t.DType, Sizes: slices.Clone(sizes), Strides: st, Offset: t.Offset, storage: t.storage}
}

// broadcast is the common shape of shapes.
func broadcast(shapes ...[]int64) []int64 {
	rank := 0
	for _, s := range shapes {
		rank = max(rank, len(s))
	}
	out := make([]int64, rank)
	for i := range out {
		out[i] = 1
	}
	for _, s := range shapes {
		lead := rank - len(s)
		for i, n := range s {
			o := &out[lead+i]
			switch {
			case *o == 1:
				*o = n
			case n != 1 && n != *o:
				fail("shapes %v do not broadcast", shapes)
			}
		}
	}
	return out
}

// class is the arithmetic that a dtype is computed in.
type class uint8

const (
	classInt   class = iota // bool and integers, in int64
	classFloat              // real floats, in float64, rounded once
	classComplex
)

func classOf(d DType) class {
	switch {
	case d.IsComplex():
		return classComplex
	case d.IsFloat():
		return classFloat
	}
	return classInt
}

type integer interface {
	~uint8 | ~int8 | ~int16 | ~int32 | ~int64 | ~uint16 | ~uint32 | ~uint64
}

func widen[S, D integer | float32 | float64](src []S) []D {
	out := make([]D, len(src))
	for i, v := range src {
		out[i] = D(v)
	}
	return out
}

func mapSlice[S, D any](src []S, f func(S) D) []D {
	out := make([]D, len(src))
	for i, v := range src {
		out[i] = f(v)
	}
	return out
}

// floats is the elements of any dtype as float64, row-major; complex ones lose their imaginary part. Not to be written to.
func (t *Tensor) floats() []float64 {
	c := compact(t)
	switch t.DType {
	case ops.Float32:
		return widen[float32, float64](flat[float32](c))
	case ops.Float64:
		return flat[float64](c)
	case ops.BFloat16:
		return mapSlice(flat[uint16](c), func(h uint16) float64 { return float64(bf16to32(h)) })
	case ops.Float16:
		return mapSlice(flat[uint16](c), func(h uint16) float64 { return float64(f16to32(h)) })
	case ops.Bool, ops.Uint8:
		return widen[uint8, float64](flat[uint8](c))
	case ops.Int8:
		return widen[int8, float64](flat[int8](c))
	case ops.Int16:
		return widen[int16, float64](flat[int16](c))
	case ops.Int32:
		return widen[int32, float64](flat[int32](c))
	case ops.Int64:
		return widen[int64, float64](flat[int64](c))
	case ops.Uint16:
		return widen[uint16, float64](flat[uint16](c))
	case ops.Uint32:
		return widen[uint32, float64](flat[uint32](c))
	case ops.Uint64:
		return widen[uint64, float64](flat[uint64](c))
	case ops.Float8E4M3FN:
		return mapSlice(flat[uint8](c), f8e4m3fn.decode)
	case ops.Float8E5M2:
		return mapSlice(flat[uint8](c), f8e5m2.decode)
	case ops.Float8E4M3FNUZ:
		return mapSlice(flat[uint8](c), f8e4m3fnuz.decode)
	case ops.Float8E5M2FNUZ:
		return mapSlice(flat[uint8](c), f8e5m2fnuz.decode)
	case ops.Float8E8M0FNU:
		return mapSlice(flat[uint8](c), e8m0decode)
	case ops.ComplexHalf, ops.Complex64, ops.Complex128:
		return mapSlice(c.complexes(), func(z complex128) float64 { return real(z) })
	}
	fail("elements of %s have no numbers", t.DType)
	return nil
}

// ints is the elements of any dtype as int64, row-major; floats are truncated. Not to be written to.
func (t *Tensor) ints() []int64 {
	c := compact(t)
	switch t.DType {
	case ops.Bool, ops.Uint8:
		return widen[uint8, int64](flat[uint8](c))
	case ops.Int8:
		return widen[int8, int64](flat[int8](c))
	case ops.Int16:
		return widen[int16, int64](flat[int16](c))
	case ops.Int32:
		return widen[int32, int64](flat[int32](c))
	case ops.Int64:
		return flat[int64](c)
	case ops.Uint16:
		return widen[uint16, int64](flat[uint16](c))
	case ops.Uint32:
		return widen[uint32, int64](flat[uint32](c))
	case ops.Uint64:
		return widen[uint64, int64](flat[uint64](c))
	}
	return mapSlice(t.floats(), truncInt)
}

// truncInt is C's conversion on the machines torch runs on: what does not fit becomes the smallest integer.
func truncInt(f float64) int64 {
	if f >= -0x1p63 && f < 0x1p63 {
		return int64(f)
	}
	return math.MinInt64
}

// complexes is the elements of any dtype as complex128, row-major. Not to be written to.
func (t *Tensor) complexes() []complex128 {
	c := compact(t)
	switch t.DType {
	case ops.Complex64:
		return mapSlice(flat[complex64](c), func(z complex64) complex128 { return complex128(z) })
	case ops.Complex128:
		return flat[complex128](c)
	case ops.ComplexHalf:
		return mapSlice(flat[[2]uint16](c), func(z [2]uint16) complex128 {
			return complex(float64(f16to32(z[0])), float64(f16to32(z[1])))
		})
	}
	return mapSlice(t.floats(), func(f float64) complex128 { return complex(f, 0) })
}

// bools is the elements of any dtype, true where not zero. Not to be written to.
func (t *Tensor) bools() []bool {
	switch classOf(t.DType) {
	case classInt:
		return mapSlice(t.ints(), func(i int64) bool { return i != 0 })
	case classFloat:
		return mapSlice(t.floats(), func(f float64) bool { return f != 0 })
	}
	return mapSlice(t.complexes(), func(z complex128) bool { return z != 0 })
}

// fromFloats makes a tensor of any dtype from row-major values, rounding each once; it may keep v.
func fromFloats(d DType, sizes []int64, v []float64) *Tensor {
	if d == ops.Float64 && len(v) > 0 {
		return own(d, sizes, unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), len(v)*8))
	}
	t := NewTensor(d, sizes...)
	checkCount(t, len(v))
	switch d {
	case ops.Float64:
		copy(flat[float64](t), v)
	case ops.Float32:
		o := flat[float32](t)
		for i, x := range v {
			o[i] = float32(x)
		}
	case ops.BFloat16:
		o := flat[uint16](t)
		for i, x := range v {
			o[i] = f32tobf16(float32(x))
		}
	case ops.Float16:
		o := flat[uint16](t)
		for i, x := range v {
			o[i] = f32to16(float32(x))
		}
	case ops.Bool:
		o := flat[uint8](t)
		for i, x := range v {
			if x != 0 {
				o[i] = 1
			}
		}
	case ops.Int64:
		o := flat[int64](t)
		for i, x := range v {
			o[i] = truncInt(x)
		}
	case ops.Uint64:
		o := flat[uint64](t)
		for i, x := range v {
			if x >= 0x1p63 && x < 0x1p64 {
				o[i] = uint64(x)
			} else {
				o[i] = uint64(truncInt(x))
			}
		}
	case ops.Int32, ops.Int16, ops.Int8:
		// The machine converts to 32 bits first: what does not fit is the smallest integer, whose low bits are zero.
		w := make([]int64, len(v))
		for i, x := range v {
			if x > -0x1p31-1 && x < 0x1p31 {
				w[i] = int64(x)
			} else {
				w[i] = math.MinInt32
			}
		}
		storeInts(t, w)
	case ops.Uint8, ops.Uint16, ops.Uint32:
		w := make([]int64, len(v))
		for i, x := range v {
			w[i] = truncInt(x)
		}
		storeInts(t, w)
	case ops.Float8E4M3FN:
		storeF8(t, v, f8e4m3fn.encode)
	case ops.Float8E5M2:
		storeF8(t, v, f8e5m2.encode)
	case ops.Float8E4M3FNUZ:
		storeF8(t, v, f8e4m3fnuz.encode)
	case ops.Float8E5M2FNUZ:
		storeF8(t, v, f8e5m2fnuz.encode)
	case ops.Float8E8M0FNU:
		storeF8(t, v, e8m0encode)
	case ops.ComplexHalf, ops.Complex64, ops.Complex128:
		return fromComplexes(d, sizes, mapSlice(v, func(x float64) complex128 { return complex(x, 0) }))
	default:
		fail("elements of %s cannot be stored", d)
	}
	return t
}

func storeF8(t *Tensor, v []float64, enc func(float64) uint8) {
	o := flat[uint8](t)
	for i, x := range v {
		o[i] = enc(float64(float32(x)))
	}
}

func own(d DType, sizes []int64, b []byte) *Tensor {
	sizes = slices.Clone(sizes)
	t := &Tensor{DType: d, Sizes: sizes, Strides: contiguous(sizes), storage: &Storage{b: b}}
	checkCount(t, len(b)/int(d.Size()))
	return t
}

func checkCount(t *Tensor, n int) {
	if int64(n) != t.Numel() {
		fail("%d elements for a tensor of shape %v", n, t.Sizes)
	}
}

func narrow[D integer](o []D, v []int64) {
	for i, x := range v {
		o[i] = D(x)
	}
}

func storeInts(t *Tensor, v []int64) {
	switch t.DType {
	case ops.Uint8:
		narrow(flat[uint8](t), v)
	case ops.Int8:
		narrow(flat[int8](t), v)
	case ops.Int16:
		narrow(flat[int16](t), v)
	case ops.Int32:
		narrow(flat[int32](t), v)
	case ops.Uint16:
		narrow(flat[uint16](t), v)
	case ops.Uint32:
		narrow(flat[uint32](t), v)
	}
}

// fromInts makes a tensor of any dtype from row-major values, wrapping to its width; it may keep v.
func fromInts(d DType, sizes []int64, v []int64) *Tensor {
	switch d {
	case ops.Int64, ops.Uint64:
		if len(v) > 0 {
			return own(d, sizes, unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), len(v)*8))
		}
	case ops.Bool:
		t := NewTensor(d, sizes...)
		checkCount(t, len(v))
		o := flat[uint8](t)
		for i, x := range v {
			if x != 0 {
				o[i] = 1
			}
		}
		return t
	case ops.Uint8, ops.Int8, ops.Int16, ops.Int32, ops.Uint16, ops.Uint32:
		t := NewTensor(d, sizes...)
		checkCount(t, len(v))
		storeInts(t, v)
		return t
	}
	return fromFloats(d, sizes, widen[int64, float64](v))
}

// fromComplexes makes a tensor of any dtype from row-major values; it may keep v.
func fromComplexes(d DType, sizes []int64, v []complex128) *Tensor {
	t := NewTensor(d, sizes...)
	checkCount(t, len(v))
	switch d {
	case ops.Complex64:
		o := flat[complex64](t)
		for i, z := range v {
			o[i] = complex64(z)
		}
	case ops.Complex128:
		copy(flat[complex128](t), v)
	case ops.ComplexHalf:
		o := flat[[2]uint16](t)
		for i, z := range v {
			o[i] = [2]uint16{f32to16(float32(real(z))), f32to16(float32(imag(z)))}
		}
	case ops.Bool:
		o := flat[uint8](t)
		for i, z := range v {
			if z != 0 {
				o[i] = 1
			}
		}
	default:
		return fromFloats(d, sizes, mapSlice(v, func(z complex128) float64 { return real(z) }))
	}
	return t
}

func fromBools(sizes []int64, v []bool) *Tensor {
	t := NewTensor(ops.Bool, sizes...)
	checkCount(t, len(v))
	o := flat[uint8](t)
	for i, x := range v {
		if x {
			o[i] = 1
		}
	}
	return t
}

// cast converts; the same dtype gives t itself.
func cast(t *Tensor, d DType) *Tensor {
	if t.DType == d {
		return t
	}
	switch {
	case t.DType == ops.Uint64 && classOf(d) != classInt:
		return fromFloats(d, t.Sizes, t.floats())
	case classOf(t.DType) == classInt && classOf(d) == classInt:
		v := t.ints()
		if t.DType == ops.Int64 || t.DType == ops.Uint64 {
			v = slices.Clone(v)
		}
		return fromInts(d, t.Sizes, v)
	case t.DType.IsComplex():
		return fromComplexes(d, t.Sizes, t.complexes())
	}
	return fromFloats(d, t.Sizes, t.floats())
}

// scalarTensor is a number as a 0-d tensor.
func scalarTensor(d DType, v Value) *Tensor {
	switch x := v.(type) {
	case int64:
		return fromInts(d, nil, []int64{x})
	case bool:
		if x {
			return fromInts(d, nil, []int64{1})
		}
		return fromInts(d, nil, []int64{0})
	case float64:
		return fromFloats(d, nil, []float64{x})
	case complex128:
		return fromComplexes(d, nil, []complex128{x})
	case *Tensor:
		return cast(x, d)
	}
	fail("%T is no number", v)
	return nil
}

// item is the single element of a tensor as a number.
func (t *Tensor) item() Value {
	if t.Numel() != 1 {
		fail("a tensor of %d elements is no number", t.Numel())
	}
	switch {
	case t.DType == ops.Bool:
		return t.bools()[0]
	case t.DType == ops.Uint64 && t.ints()[0] < 0:
		fail("uint64 value %d does not fit int64", uint64(t.ints()[0]))
	case classOf(t.DType) == classInt:
		return t.ints()[0]
	case classOf(t.DType) == classFloat:
		return t.floats()[0]
	}
	return t.complexes()[0]
}
