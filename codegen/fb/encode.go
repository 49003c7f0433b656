package fb

import (
	"fmt"
	"unsafe"

	flatbuffers "github.com/google/flatbuffers/go"
)

// maxBuffer is what the builder can grow to; beyond it, it panics.
const maxBuffer = 1 << 30

// Encoder builds a flatbuffer. Like [Decoder], it keeps the first fault and lets
// generated code go on.
type Encoder struct {
	*flatbuffers.Builder
	err error
}

// NewEncoder gives an empty encoder.
func NewEncoder() *Encoder { return &Encoder{Builder: flatbuffers.NewBuilder(4096)} }

// Failf keeps a fault, the first one.
func (e *Encoder) Failf(format string, args ...any) {
	if e.err == nil {
		e.err = fmt.Errorf(format, args...)
	}
}

// OK tells whether n more bytes can be written.
func (e *Encoder) OK(n int) bool {
	if e.err == nil && int64(n)+int64(e.Offset())+4096 > maxBuffer {
		e.Failf("flatbuffer grows beyond %d bytes; keep large data outside of it", maxBuffer)
	}
	return e.err == nil
}

// Bytes ends the buffer with root as its root table, and ident, when not empty, as its
// file identifier.
func (e *Encoder) Bytes(root flatbuffers.UOffsetT, ident string) ([]byte, error) {
	if !e.OK(0) {
		return nil, e.err
	}
	if ident == "" {
		e.Finish(root)
	} else {
		e.FinishWithFileIdentifier(root, []byte(ident))
	}
	return e.FinishedBytes(), nil
}

// PackBytes writes a vector of bytes at a multiple of align; 0 for nil.
func PackBytes(e *Encoder, v []byte, align int) flatbuffers.UOffsetT {
	if v == nil || !e.OK(len(v)) {
		return 0
	}
	// Padding comes first, so that CreateByteVector's own needs none.
	e.Prep(max(align, 4), len(v))
	return e.CreateByteVector(v)
}

// PackNumbers writes a vector of scalars at a multiple of align; 0 for nil.
func PackNumbers[T Number](e *Encoder, v []T, align int) flatbuffers.UOffsetT {
	var zero T
	size := int(unsafe.Sizeof(zero))
	if v == nil || !e.OK(len(v)*size) {
		return 0
	}
	e.StartVector(size, len(v), max(size, align))
	for i := len(v) - 1; i >= 0; i-- {
		place(e.Builder, v[i])
	}
	return e.EndVector(len(v))
}

func place[T Number](b *flatbuffers.Builder, v T) {
	switch unsafe.Sizeof(v) {
	case 1:
		b.PlaceUint8(*(*uint8)(unsafe.Pointer(&v)))
	case 2:
		b.PlaceUint16(*(*uint16)(unsafe.Pointer(&v)))
	case 4:
		b.PlaceUint32(*(*uint32)(unsafe.Pointer(&v)))
	case 8:
		b.PlaceUint64(*(*uint64)(unsafe.Pointer(&v)))
	}
}

// PackBools writes a vector of bools; 0 for nil.
func PackBools(e *Encoder, v []bool, align int) flatbuffers.UOffsetT {
	if v == nil {
		return 0
	}
	b := make([]byte, len(v))
	for i, x := range v {
		if x {
			b[i] = 1
		}
	}
	return PackBytes(e, b, align)
}

// PackString writes s, also when empty. Equal strings are stored once.
func PackString(e *Encoder, s string) flatbuffers.UOffsetT {
	if !e.OK(len(s)) {
		return 0
	}
	return e.CreateSharedString(s)
}

// PackStrings writes a vector of strings; 0 for nil.
func PackStrings(e *Encoder, v []string) flatbuffers.UOffsetT {
	if v == nil {
		return 0
	}
	offs := make([]flatbuffers.UOffsetT, len(v))
	for i, s := range v {
		offs[i] = PackString(e, s)
	}
	return packOffsets(e, offs)
}

// PackObjects writes a vector of tables; 0 for nil.
func PackObjects[T any](e *Encoder, v []*T, pack func(*T, *Encoder) flatbuffers.UOffsetT) flatbuffers.UOffsetT {
	if v == nil {
		return 0
	}
	offs := make([]flatbuffers.UOffsetT, len(v))
	for i, o := range v {
		offs[i] = pack(o, e)
	}
	return packOffsets(e, offs)
}

func packOffsets(e *Encoder, offs []flatbuffers.UOffsetT) flatbuffers.UOffsetT {
	if !e.OK(4 * len(offs)) {
		return 0
	}
	e.StartVector(4, len(offs), 4)
	for i := len(offs) - 1; i >= 0; i-- {
		e.PrependUOffsetT(offs[i])
	}
	return e.EndVector(len(offs))
}

// PackStructs writes a vector of structs; 0 for nil.
func PackStructs[T any](e *Encoder, v []T, size, align int, pack func(T, *Encoder) flatbuffers.UOffsetT) flatbuffers.UOffsetT {
	if v == nil || !e.OK(size*len(v)) {
		return 0
	}
	e.StartVector(size, len(v), align)
	for i := len(v) - 1; i >= 0; i-- {
		pack(v[i], e)
	}
	return e.EndVector(len(v))
}

// PackScalar writes a scalar field unless it equals def.
func PackScalar[T Number](e *Encoder, slot int, v, def T) {
	if same(v, def) {
		return
	}
	e.Prep(int(unsafe.Sizeof(v)), 0)
	place(e.Builder, v)
	e.Slot(slot)
}

// same compares bits: a NaN equals itself and -0 is not the default 0.
func same[T Number](a, b T) bool {
	switch unsafe.Sizeof(a) {
	case 4:
		return *(*uint32)(unsafe.Pointer(&a)) == *(*uint32)(unsafe.Pointer(&b))
	case 8:
		return *(*uint64)(unsafe.Pointer(&a)) == *(*uint64)(unsafe.Pointer(&b))
	}
	return a == b
}

// PackOptScalar writes a scalar field when v is not nil.
func PackOptScalar[T Number](e *Encoder, slot int, v *T) {
	if v == nil {
		return
	}
	e.Prep(int(unsafe.Sizeof(*v)), 0)
	place(e.Builder, *v)
	e.Slot(slot)
}

// PackBool writes a bool field unless it equals def.
func PackBool(e *Encoder, slot int, v, def bool) { e.PrependBoolSlot(slot, v, def) }

// PackOptBool writes a bool field when v is not nil.
func PackOptBool(e *Encoder, slot int, v *bool) {
	if v != nil {
		e.PrependBool(*v)
		e.Slot(slot)
	}
}

// PackRef writes an offset field unless it is 0.
func PackRef(e *Encoder, slot int, off flatbuffers.UOffsetT) {
	if e.err == nil {
		e.PrependUOffsetTSlot(slot, off, 0)
	}
}

// PackObject writes a table; 0 for nil.
func PackObject[T any](e *Encoder, o *T, pack func(*T, *Encoder) flatbuffers.UOffsetT) flatbuffers.UOffsetT {
	if o == nil {
		return 0
	}
	return pack(o, e)
}

// PackOptString writes s, or nothing when it is empty.
func PackOptString(e *Encoder, s string) flatbuffers.UOffsetT {
	if s == "" {
		return 0
	}
	return PackString(e, s)
}

// NonNil turns nil into an empty slice, for vectors that must be present.
func NonNil[S ~[]E, E any](s S) S {
	if s == nil {
		return S{}
	}
	return s
}
