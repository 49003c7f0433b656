package fb

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unsafe"
)

const (
	maxDepth = 64
	// maxObjects bounds what one buffer can make us allocate: offsets may be shared,
	// so a small buffer can describe a huge tree.
	maxObjects = 8 << 20
)

// Decoder reads a flatbuffer that may be damaged or hostile: every access is checked,
// nesting and the number of objects are bounded. The first fault is kept and
// everything read after it is zero, so generated code need not test each step.
type Decoder struct {
	buf     []byte
	err     error
	depth   int
	objects int   // left to be made
	bytes   int64 // left to be copied
	strings map[int]string
	path    []step
}

type step struct {
	name  string
	index int // -1: the field itself
}

// NewDecoder reads buf. Byte vectors of the result alias it.
func NewDecoder(buf []byte) *Decoder {
	objects := min(len(buf)/4+64, maxObjects)
	return &Decoder{buf: buf, objects: objects, bytes: 4*int64(len(buf)) + 4096, strings: map[int]string{}}
}

// Err is the first fault found, with the path of fields that led to it.
func (d *Decoder) Err() error { return d.err }

func (d *Decoder) fail(format string, args ...any) {
	if d.err != nil {
		return
	}
	var b strings.Builder
	for _, s := range d.path {
		if s.index >= 0 {
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(s.name)
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	d.err = fmt.Errorf("%s%s", b.String(), fmt.Sprintf(format, args...))
}

func (d *Decoder) push(name string, index int) { d.path = append(d.path, step{name, index}) }
func (d *Decoder) pop()                        { d.path = d.path[:len(d.path)-1] }

func (d *Decoder) u16(pos int) int { return int(binary.LittleEndian.Uint16(d.buf[pos:])) }
func (d *Decoder) u32(pos int) int { return int(binary.LittleEndian.Uint32(d.buf[pos:])) }

// Table is a checked position of a table within a decoder's buffer. The zero Table has
// no fields.
type Table struct {
	d              *Decoder
	pos, vt, vtLen int
}

// Root checks the file identifier, unless idents is empty, and gives the root table.
func (d *Decoder) Root(idents ...string) Table {
	// Offsets are 32 bits of which the upper half is unusable for the builders of the
	// field; a limit here keeps sums far from overflow.
	if len(d.buf) < 8 || int64(len(d.buf)) > math.MaxInt32 {
		d.fail("flatbuffer of %d bytes", len(d.buf))
		return Table{}
	}
	if got := string(d.buf[4:8]); len(idents) > 0 {
		ok := false
		for _, want := range idents {
			ok = ok || got == want
		}
		if !ok {
			d.fail("file identifier %q, want %s", got, strings.Join(idents, " or "))
			return Table{}
		}
	}
	return d.table(d.u32(0))
}

func (d *Decoder) table(pos int) Table {
	if d.err != nil {
		return Table{}
	}
	n := len(d.buf)
	if pos%4 != 0 || pos <= 0 || pos > n-4 {
		d.fail("table at offset %d of %d bytes", pos, n)
		return Table{}
	}
	vt := pos - int(int32(d.u32(pos)))
	if vt < 0 || vt > n-4 || vt%2 != 0 {
		d.fail("table at %d: vtable at offset %d of %d bytes", pos, vt, n)
		return Table{}
	}
	// The vtable's second number, the table's size, is not to be trusted even in good
	// files: builders share vtables between tables of different sizes.
	vtLen := d.u16(vt)
	if vtLen < 4 || vtLen%2 != 0 || vtLen > n-vt {
		d.fail("table at %d: vtable length %d", pos, vtLen)
		return Table{}
	}
	if d.objects--; d.objects < 0 {
		d.fail("more objects than its %d bytes can mean", n)
		return Table{}
	}
	return Table{d: d, pos: pos, vt: vt, vtLen: vtLen}
}

// field gives the position of field id's size bytes; 0 when it is absent.
func (t Table) field(id, size, align int) int {
	if t.d == nil || t.d.err != nil {
		return 0
	}
	slot := 4 + 2*id
	if slot+2 > t.vtLen {
		return 0
	}
	off := t.d.u16(t.vt + slot)
	if off == 0 {
		return 0
	}
	if off < 4 || t.pos+off > len(t.d.buf)-size {
		t.d.fail("field %d at %d of %d bytes", id, t.pos+off, len(t.d.buf))
		return 0
	}
	if (t.pos+off)%align != 0 {
		t.d.fail("field %d at offset %d is not aligned to %d", id, t.pos+off, align)
		return 0
	}
	return t.pos + off
}

// ref follows the offset at pos to something of at least 4 bytes.
func (d *Decoder) ref(pos int) int {
	if d.err != nil {
		return 0
	}
	to := pos + d.u32(pos)
	if to == pos || to%4 != 0 || to > len(d.buf)-4 {
		d.fail("offset to %d of %d bytes", to, len(d.buf))
		return 0
	}
	return to
}

// vector gives start and length of the vector in field id; start 0 when absent.
func (t Table) vector(id, elem, align int) (start, n int) {
	p := t.field(id, 4, 4)
	if p == 0 {
		return 0, 0
	}
	return t.d.vectorAt(t.d.ref(p), elem, align)
}

func (d *Decoder) vectorAt(pos, elem, align int) (start, n int) {
	if d.err != nil {
		return 0, 0
	}
	n, start = d.u32(pos), pos+4
	if int64(n)*int64(elem) > int64(len(d.buf)-start) {
		d.fail("vector of %d elements of %d bytes at %d of %d bytes", n, elem, pos, len(d.buf))
		return 0, 0
	}
	if n > 0 && start%align != 0 {
		d.fail("vector at offset %d is not aligned to %d", start, align)
		return 0, 0
	}
	return start, n
}

func (d *Decoder) charge(n int64) bool {
	if d.bytes -= n; d.bytes < 0 {
		d.fail("more data than its %d bytes can mean", len(d.buf))
	}
	return d.err == nil
}

// Number is any scalar of a schema but bool. Enums have such a type beneath.
type Number interface {
	~int8 | ~uint8 | ~int16 | ~uint16 | ~int32 | ~uint32 | ~int64 | ~uint64 | ~float32 | ~float64
}

// Load reads a little-endian scalar from the front of b.
func Load[T Number](b []byte) T {
	var v T
	switch unsafe.Sizeof(v) {
	case 1:
		*(*uint8)(unsafe.Pointer(&v)) = b[0]
	case 2:
		*(*uint16)(unsafe.Pointer(&v)) = binary.LittleEndian.Uint16(b)
	case 4:
		*(*uint32)(unsafe.Pointer(&v)) = binary.LittleEndian.Uint32(b)
	case 8:
		*(*uint64)(unsafe.Pointer(&v)) = binary.LittleEndian.Uint64(b)
	}
	return v
}

// Scalar reads field id, or gives def when it is absent.
func Scalar[T Number](t Table, id int, def T) T {
	size := int(unsafe.Sizeof(def))
	if p := t.field(id, size, size); p != 0 {
		return Load[T](t.d.buf[p : p+size])
	}
	return def
}

// OptScalar reads field id, nil when it is absent.
func OptScalar[T Number](t Table, id int) *T {
	var v T
	size := int(unsafe.Sizeof(v))
	if p := t.field(id, size, size); p != 0 {
		v = Load[T](t.d.buf[p : p+size])
		return &v
	}
	return nil
}

// Bool reads field id, or gives def when it is absent.
func Bool(t Table, id int, def bool) bool {
	if p := t.field(id, 1, 1); p != 0 {
		return t.d.buf[p] != 0
	}
	return def
}

// OptBool reads field id, nil when it is absent.
func OptBool(t Table, id int) *bool {
	if p := t.field(id, 1, 1); p != 0 {
		v := t.d.buf[p] != 0
		return &v
	}
	return nil
}

// Required faults when field id of that name is absent.
func Required(t Table, id int, name string) {
	if t.d != nil && t.d.err == nil && t.field(id, 1, 1) == 0 {
		t.d.fail("required field %s is missing", name)
	}
}

// Numbers copies the vector in field id; nil when absent.
func Numbers[T Number](t Table, id int, name string, align int) []T {
	if t.d == nil || t.d.err != nil {
		return nil
	}
	var v T
	size := int(unsafe.Sizeof(v))
	t.d.push(name, -1)
	defer t.d.pop()
	start, n := t.vector(id, size, max(size, align))
	if start == 0 || !t.d.charge(int64(n)*int64(size)) {
		return nil
	}
	out := make([]T, n)
	for i := range out {
		p := start + i*size
		out[i] = Load[T](t.d.buf[p : p+size])
	}
	return out
}

// ByteVector gives the vector of bytes in field id, aliasing the buffer; nil when
// absent.
func ByteVector(t Table, id int, name string, align int) []byte {
	if t.d == nil || t.d.err != nil {
		return nil
	}
	t.d.push(name, -1)
	defer t.d.pop()
	start, n := t.vector(id, 1, align)
	if start == 0 {
		return nil
	}
	return t.d.buf[start : start+n : start+n]
}

// Bools copies the vector in field id; nil when absent.
func Bools(t Table, id int, name string, align int) []bool {
	b := ByteVector(t, id, name, align)
	if b == nil || !t.d.charge(int64(len(b))) {
		return nil
	}
	out := make([]bool, len(b))
	for i := range b {
		out[i] = b[i] != 0
	}
	return out
}

func (d *Decoder) stringAt(pos int) string {
	if d.err != nil {
		return ""
	}
	if s, ok := d.strings[pos]; ok {
		return s
	}
	start, n := d.vectorAt(pos, 1, 1)
	if d.err != nil {
		return ""
	}
	if start+n >= len(d.buf) || d.buf[start+n] != 0 {
		d.fail("string of %d bytes at %d does not end in a zero byte", n, pos)
		return ""
	}
	if !d.charge(int64(n)) {
		return ""
	}
	s := string(d.buf[start : start+n])
	d.strings[pos] = s
	return s
}

// String reads the string in field id; "" when absent.
func String(t Table, id int, name string) string {
	p := t.field(id, 4, 4)
	if p == 0 {
		return ""
	}
	t.d.push(name, -1)
	defer t.d.pop()
	return t.d.stringAt(t.d.ref(p))
}

// Strings reads the vector of strings in field id; nil when absent.
func Strings(t Table, id int, name string) []string {
	if t.d == nil || t.d.err != nil {
		return nil
	}
	t.d.push(name, -1)
	defer t.d.pop()
	start, n := t.vector(id, 4, 4)
	if start == 0 || !t.d.charge(16*int64(n)) {
		return nil
	}
	out := make([]string, n)
	for i := range out {
		t.d.push("", i)
		out[i] = t.d.stringAt(t.d.ref(start + 4*i))
		t.d.pop()
		if t.d.err != nil {
			return nil
		}
	}
	return out
}

// Object reads the table in field id with unpack; nil when absent.
func Object[T any](t Table, id int, name string, unpack func(Table) *T) *T {
	p := t.field(id, 4, 4)
	if p == 0 {
		return nil
	}
	t.d.push(name, -1)
	defer t.d.pop()
	return object(t.d, p, unpack)
}

func object[T any](d *Decoder, p int, unpack func(Table) *T) *T {
	if d.depth++; d.depth > maxDepth {
		d.fail("nested more than %d deep", maxDepth)
	}
	defer func() { d.depth-- }()
	t := d.table(d.ref(p))
	if d.err != nil {
		return nil
	}
	o := unpack(t)
	if d.err != nil {
		return nil
	}
	return o
}

// Objects reads the vector of tables in field id; nil when absent.
func Objects[T any](t Table, id int, name string, unpack func(Table) *T) []*T {
	if t.d == nil || t.d.err != nil {
		return nil
	}
	t.d.push(name, -1)
	defer t.d.pop()
	start, n := t.vector(id, 4, 4)
	if start == 0 || !t.d.charge(8*int64(n)) {
		return nil
	}
	out := make([]*T, n)
	for i := range out {
		t.d.push("", i)
		out[i] = object(t.d, start+4*i, unpack)
		t.d.pop()
		if t.d.err != nil {
			return nil
		}
	}
	return out
}

// Union reads the union whose tag is field id-1 and whose value is field id. unpack
// gives nil for a tag that it does not know.
func Union[T any](t Table, id int, name string, unpack func(tag uint8, t Table) (T, bool)) (u T) {
	if t.d == nil || t.d.err != nil {
		return u
	}
	d := t.d
	d.push(name, -1)
	defer d.pop()
	tag := Scalar[uint8](t, id-1, 0)
	p := t.field(id, 4, 4)
	if d.err != nil {
		return u
	}
	if (tag == 0) != (p == 0) {
		d.fail("union has tag %d but value present is %t", tag, p != 0)
		return u
	}
	if p == 0 {
		return u
	}
	if d.depth++; d.depth > maxDepth {
		d.fail("nested more than %d deep", maxDepth)
	}
	defer func() { d.depth-- }()
	v := d.table(d.ref(p))
	if d.err != nil {
		return u
	}
	got, ok := unpack(tag, v)
	if !ok {
		d.fail("unknown union member %d", tag)
	}
	if d.err != nil {
		return u
	}
	return got
}

// Struct gives the bytes of the struct in field id; nil when absent.
func Struct(t Table, id, size, align int) []byte {
	if p := t.field(id, size, align); p != 0 {
		return t.d.buf[p : p+size]
	}
	return nil
}

// Structs reads the vector of structs in field id; nil when absent.
func Structs[T any](t Table, id int, name string, size, align int, unpack func([]byte) T) []T {
	if t.d == nil || t.d.err != nil {
		return nil
	}
	t.d.push(name, -1)
	defer t.d.pop()
	start, n := t.vector(id, size, align)
	if start == 0 || !t.d.charge(int64(n)*int64(size)) {
		return nil
	}
	out := make([]T, n)
	for i := range out {
		p := start + i*size
		out[i] = unpack(t.d.buf[p : p+size])
	}
	return out
}

// UnknownName is the text for a value v that enum does not name.
func UnknownName(enum string, v int64) string { return enum + "(" + strconv.FormatInt(v, 10) + ")" }
