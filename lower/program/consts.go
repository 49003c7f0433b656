package program

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/lathe-ml/lathe/codegen/pte"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ops"

	"github.com/x448/float16"
)

// hold gives the constant tensor t its contents: in the program, or in the data file under its name. The runtime compares
// the shapes there, so that other shapes of the same bytes have keys of their own.
func (m *method) hold(t *tensor) {
	if m.data == nil || t.name == "" {
		t.meta.Data = m.constantData(t.data)
		return
	}
	key := t.name
	for i := 1; ; i++ {
		d, taken := m.external[key]
		if !taken {
			m.external[key] = t.data
			m.data.Entries = append(m.data.Entries, pte.DataEntry{
				Key: key, Data: Blob(t.data), Layout: &pte.TensorLayout{Type: t.meta.Type, Sizes: t.meta.Sizes, DimOrder: t.meta.DimOrder},
			})
			break
		}
		if d == t.data && slices.Equal(m.layout(key).Sizes, t.meta.Sizes) {
			break
		}
		key = fmt.Sprintf("%s#%d", t.name, i)
	}
	t.meta.Extra = &pte.TensorExtra{Name: key, Location: pte.External}
}

func (l *lowering) layout(key string) *pte.TensorLayout {
	for _, e := range l.data.Entries {
		if e.Key == key {
			return e.Layout
		}
	}
	return nil
}

// constantData gives the index of d among the program's constants.
func (l *lowering) constantData(d *ir.Data) uint32 {
	i, ok := l.constants[d]
	if !ok {
		i = l.prog.AddConstant(Blob(d))
		l.constants[d] = i
	}
	return i
}

func (l *lowering) initialData(d *ir.Data) uint32 {
	i, ok := l.initial[d]
	if !ok {
		i = l.prog.AddInitial(Blob(d))
		l.initial[d] = i
	}
	return i
}

// Blob gives the elements of d row-major, as the program file holds them: a range of the archive's file where they lie so,
// otherwise gathered when they are written.
func Blob(d *ir.Data) pte.Blob {
	size := d.Numel() * d.DType.Size()
	if d.Contiguous() {
		if fs, ok := d.Storage.(ir.FileStorage); ok {
			f, off := fs.FileRange()
			if file, ok := f.(*os.File); ok {
				return &fileBlob{dataBlob{d, size}, file, off + d.Offset*d.DType.Size()}
			}
		}
	}
	return &dataBlob{d, size}
}

type dataBlob struct {
	d    *ir.Data
	size int64
}

func (b *dataBlob) Size() int64 { return b.size }

func (b *dataBlob) WriteTo(w io.Writer) (int64, error) { return b.d.WriteTo(w) }

type fileBlob struct {
	dataBlob
	file *os.File
	off  int64
}

func (b *fileBlob) File() *os.File { return b.file }

func (b *fileBlob) Offset() int64 { return b.off }

// wrap is a tensor without dimensions that holds the number a, a constant where that is known.
func (m *method) wrap(d ops.DType, a ir.Arg) int32 {
	if _, ok := a.Float(); !ok {
		x := m.scalar(a)
		t := m.newTensor(ir.StaticType(d), m.newBuffer())
		m.call("aten::scalar_tensor", "out", x, t.index, t.index)
		return t.index
	}
	b, ok := encodeScalar(d, a)
	if !ok {
		m.failf("kernel-limit", "", "a number cannot be held as %s", d)
		return m.none()
	}
	key := "w" + string(rune(d)) + string(b)
	if i, ok := m.interned[key]; ok {
		return i
	}
	t := m.newTensor(ir.StaticType(d), nil)
	t.data = ir.NewData(d, nil, b)
	t.meta.Data = m.constantData(t.data)
	m.interned[key] = t.index
	return t.index
}

func encodeScalar(d ops.DType, a ir.Arg) ([]byte, bool) {
	f, okf := a.Float()
	k, oki := a.Int()
	le := binary.LittleEndian
	switch d {
	case ops.Float32:
		return le.AppendUint32(nil, math.Float32bits(float32(f))), okf
	case ops.Float64:
		return le.AppendUint64(nil, math.Float64bits(f)), okf
	case ops.Float16:
		return le.AppendUint16(nil, float16.Fromfloat32(float32(f)).Bits()), okf
	case ops.BFloat16:
		return le.AppendUint16(nil, bfloat16(float32(f))), okf
	case ops.Bool:
		v, ok := a.Bool()
		if v {
			return []byte{1}, ok
		}
		return []byte{0}, ok
	}
	if !d.IsInt() || !oki {
		return nil, false
	}
	return le.AppendUint64(nil, uint64(k))[:d.Size()], true
}

// bfloat16 rounds to the nearest, ties to even.
func bfloat16(f float32) uint16 {
	b := math.Float32bits(f)
	if f != f {
		return 0x7fc0
	}
	return uint16((b + 0x7fff + (b>>16)&1) >> 16)
}
