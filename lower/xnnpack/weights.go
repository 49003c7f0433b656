package xnnpack

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/x448/float16"

	"github.com/lathe-ml/lathe/codegen/fb/xnnpack"
	"github.com/lathe-ml/lathe/codegen/xnnpayload"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/partition"
)

// form says how a weight is to lie: its sizes replaced by split, its dimensions permuted, then its sizes replaced by sizes.
type form struct {
	split []int64
	perm  []int
	sizes []int64
}

// shaped is in's data in another form, and a name for it.
func shaped(in *ir.Input, f *form) (*ir.Data, string) {
	return reshapedData(in.Data, partition.WeightKey(in), f)
}

// reshapedData is data called key in another form, and its name then.
func reshapedData(d *ir.Data, key string, f *form) (*ir.Data, string) {
	if f == nil {
		return d, key
	}
	if f.split != nil {
		d = resized(d, f.split)
		key += fmt.Sprintf("#view%v", f.split)
	}
	if f.perm != nil {
		st := d.Strides
		if st == nil {
			st = ir.RowMajor(d.Sizes)
		}
		e := *d
		e.Sizes, e.Strides = ir.Permuted(d.Sizes, f.perm), ir.Permuted(st, f.perm)
		d = &e
		key += fmt.Sprintf("#permute%v", f.perm)
	}
	if f.sizes != nil {
		d = resized(d, f.sizes)
		key += fmt.Sprintf("#view%v", f.sizes)
	}
	return d, key
}

// resized is d's elements in order under other sizes.
func resized(d *ir.Data, sizes []int64) *ir.Data {
	e := *d
	if !d.Contiguous() {
		e.Storage, e.Offset = gathered{d}, 0
	}
	e.Sizes, e.Strides = sizes, nil
	return &e
}

// gathered is a storage of the elements of a tensor row-major.
type gathered struct{ d *ir.Data }

func (s gathered) Size() int64            { return s.d.Numel() * s.d.DType.Size() }
func (s gathered) Bytes() ([]byte, error) { return s.d.Compact() }

// weight is the constant value of a parameter, buffer or constant.
func (b *builder) weight(in *ir.Input, f *form) uint32 {
	d, key := shaped(in, f)
	if b.wide && (d.DType == ops.Float16 || d.DType == ops.BFloat16) {
		return b.constant("f32 "+key, d.Sizes, xnnpack.XNNDatatypeFp32, func() partition.Blob { return widened(d) })
	}
	return b.constant(key, d.Sizes, datatype(d.DType), func() partition.Blob { return dataBlob(d) })
}

// constant is a constant value; equal keys stand for equal contents.
func (b *builder) constant(key string, sizes []int64, d xnnpack.XNNDatatype, data func() partition.Blob) uint32 {
	name := key + fmt.Sprintf("/%v/%d", sizes, d)
	if id, ok := b.consts[name]; ok {
		return id
	}
	id := b.define(ir.Consts(sizes...), d, xnnpayload.InvalidID, 0, b.data(key, data))
	b.consts[name] = id
	return id
}

// packed is a constant value of its own: the delegate forgets the bytes of what it packs, so that they cannot also be
// read as they are.
func (b *builder) packed(key string, sizes []int64, d xnnpack.XNNDatatype, data func() partition.Blob) uint32 {
	name := "packed " + key + fmt.Sprintf("/%v/%d", sizes, d)
	if id, ok := b.consts[name]; ok {
		return id
	}
	id := b.define(ir.Consts(sizes...), d, xnnpayload.InvalidID, 0, b.data(key, data))
	b.consts[name] = id
	return id
}

// packedWeight is a weight for a node that packs it.
func (b *builder) packedWeight(in *ir.Input, f *form) uint32 {
	d, key := shaped(in, f)
	if b.wide && (d.DType == ops.Float16 || d.DType == ops.BFloat16) {
		return b.packed("f32 "+key, d.Sizes, xnnpack.XNNDatatypeFp32, func() partition.Blob { return widened(d) })
	}
	return b.packed(key, d.Sizes, datatype(d.DType), func() partition.Blob { return dataBlob(d) })
}

// packedAsIs is a weight for a node that packs it, in the type that it has.
func (b *builder) packedAsIs(in *ir.Input) uint32 {
	wide := b.wide
	defer func() { b.wide = wide }()
	b.wide = false
	return b.packedWeight(in, nil)
}

// data is the index of named data.
func (b *builder) data(key string, data func() partition.Blob) uint32 {
	if i, ok := b.keys[key]; ok {
		return i
	}
	i := uint32(len(b.payload.Graph.ConstantData))
	name := contentKey([]byte(key))[:32]
	blob := data()
	b.payload.Graph.ConstantData = append(b.payload.Graph.ConstantData, &xnnpack.ConstantDataOffset{
		Offset: xnnpayload.NoOffset, Size: uint64(blob.Size()), NamedKey: name,
	})
	b.named = append(b.named, partition.Named{Key: name, Data: blob, Align: dataAlign})
	b.keys[key] = i
	return i
}

// dataAlign is what the delegate expects of constant data, in bytes.
const dataAlign = 16

// scalar is a constant without dimensions, of the type that the node at hand computes in.
func (b *builder) scalar(f float64) uint32 {
	d := b.float()
	raw := memBlob(numberBytes([]float32{float32(f)}, d))
	return b.constant(contentKey(raw), nil, d, func() partition.Blob { return raw })
}

// memBlob is a run of bytes in memory.
type memBlob []byte

func (m memBlob) Size() int64 { return int64(len(m)) }

func (m memBlob) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(m)
	return int64(n), err
}

// dataBlob gives the elements of d row-major: a range of the archive's file where they lie so.
func dataBlob(d *ir.Data) partition.Blob {
	size := d.Numel() * d.DType.Size()
	if d.Contiguous() {
		if fs, ok := d.Storage.(ir.FileStorage); ok {
			f, off := fs.FileRange()
			if file, ok := f.(*os.File); ok {
				return &fileBlob{gatherBlob{d, size}, file, off + d.Offset*d.DType.Size()}
			}
		}
	}
	return &gatherBlob{d, size}
}

// gatherBlob gathers the elements when they are written.
type gatherBlob struct {
	d    *ir.Data
	size int64
}

func (b *gatherBlob) Size() int64 { return b.size }

func (b *gatherBlob) WriteTo(w io.Writer) (int64, error) { return b.d.WriteTo(w) }

// fileBlob lies in the archive's file as it is.
type fileBlob struct {
	gatherBlob
	file *os.File
	off  int64
}

func (b *fileBlob) File() *os.File { return b.file }

func (b *fileBlob) Offset() int64 { return b.off }

// madeBlob is computed when it is written.
type madeBlob struct {
	size int64
	make func() ([]byte, error)
}

func (b *madeBlob) Size() int64 { return b.size }

func (b *madeBlob) WriteTo(w io.Writer) (int64, error) {
	p, err := b.make()
	if err != nil {
		return 0, err
	}
	if int64(len(p)) != b.size {
		return 0, fmt.Errorf("%d bytes of constant data, not %d", len(p), b.size)
	}
	n, err := w.Write(p)
	return int64(n), err
}

// readFloats gives the elements of a tensor of float32, float16 or bfloat16.
func readFloats(d *ir.Data) ([]float32, error) {
	p, err := d.Compact()
	if err != nil {
		return nil, err
	}
	if d.DType == ops.BFloat16 {
		fs := make([]float32, len(p)/2)
		for i := range fs {
			fs[i] = fromBFloat16(binary.LittleEndian.Uint16(p[2*i:]))
		}
		return fs, nil
	}
	if d.DType == ops.Float16 {
		fs := make([]float32, len(p)/2)
		for i := range fs {
			fs[i] = float16.Frombits(binary.LittleEndian.Uint16(p[2*i:])).Float32()
		}
		return fs, nil
	}
	fs := make([]float32, len(p)/4)
	for i := range fs {
		fs[i] = math.Float32frombits(binary.LittleEndian.Uint32(p[4*i:]))
	}
	return fs, nil
}

func floatBytes(fs []float32) []byte {
	p := make([]byte, 0, 4*len(fs))
	for _, f := range fs {
		p = binary.LittleEndian.AppendUint32(p, math.Float32bits(f))
	}
	return p
}

// contentKey names bytes by what they are.
func contentKey(p []byte) string {
	h := sha256.Sum256(p)
	return hex.EncodeToString(h[:])
}
