package pte

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"

	fbf "github.com/lathe-ml/lathe/codegen/fb/flattensor"
)

// Data is a data file (.ptd): blobs by key that stand outside of the program. A tensor
// whose Location is External is looked up there by its name.
type Data struct {
	Version uint32
	Entries []DataEntry
}

// DataEntry is one blob of a data file.
type DataEntry struct {
	Key  string
	Data Blob
	// Align is as in [NamedData].
	Align int
	// Layout is what the blob holds; nil when it is no tensor. The runtime compares it
	// with an external tensor's own type and shape.
	Layout *TensorLayout
}

// TensorLayout is type, shape and dim order of a tensor's bytes.
type TensorLayout struct {
	Type     ScalarType
	Sizes    []int32
	DimOrder []uint8
}

const (
	dataMagic  = "FH01"
	dataLength = 40
	dataPadded = 48
)

// Check tells what in d is out of bounds or contradicts itself.
func (d *Data) Check() error {
	seen := map[string]bool{}
	for i, e := range d.Entries {
		switch {
		case e.Data == nil:
			return fmt.Errorf("named_data[%d] %q is nil", i, e.Key)
		case seen[e.Key]:
			return fmt.Errorf("named_data[%d]: %q stands twice", i, e.Key)
		case e.Align < 0 || e.Align&(e.Align-1) != 0:
			return fmt.Errorf("named_data[%d] %q: alignment %d is no power of two", i, e.Key, e.Align)
		}
		seen[e.Key] = true
		l := e.Layout
		if l == nil {
			continue
		}
		n, err := NBytes(l.Type, l.Sizes)
		if err == nil {
			err = checkDimOrder(l.DimOrder, len(l.Sizes))
		}
		if err == nil && n > e.Data.Size() {
			err = fmt.Errorf("%d bytes for %v of %v, which needs %d", e.Data.Size(), l.Sizes, l.Type, n)
		}
		if err != nil {
			return fmt.Errorf("named_data[%d] %q: %w", i, e.Key, err)
		}
	}
	return nil
}

// WriteData writes d as a .ptd file; equal contents are stored once.
func WriteData(w io.Writer, d *Data, o Options) error {
	l, err := layoutData(d, o)
	if err == nil {
		err = l.writeTo(context.Background(), w, o.Progress)
	}
	if err != nil {
		return fmt.Errorf("ptd: %w", err)
	}
	return nil
}

func layoutData(d *Data, o Options) (*layout, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := d.Check(); err != nil {
		return nil, err
	}
	segs := segmenter{align: int64(o.SegmentAlign), maxAlign: int64(o.SegmentAlign)}
	named := make([]NamedData, len(d.Entries))
	for i, e := range d.Entries {
		named[i] = NamedData{Key: e.Key, Data: e.Data, Align: e.Align}
	}
	refs, err := segs.addNamed(named)
	if err != nil {
		return nil, err
	}
	w := &fbf.FlatTensor{Version: d.Version, Segments: []*fbf.DataSegment{}, NamedData: []*fbf.NamedData{}}
	for i, e := range d.Entries {
		n := &fbf.NamedData{Key: e.Key, SegmentIndex: refs[i]}
		if l := e.Layout; l != nil {
			n.TensorLayout = &fbf.TensorLayout{
				ScalarType: fbf.ScalarType(l.Type), Sizes: nonNil(l.Sizes), DimOrder: nonNil(l.DimOrder),
			}
		}
		w.NamedData = append(w.NamedData, n)
	}
	for _, s := range segs.table {
		w.Segments = append(w.Segments, &fbf.DataSegment{Offset: uint64(s.off), Size: uint64(s.size)})
	}
	buf, err := w.Marshal()
	if err != nil {
		return nil, err
	}
	base := alignUp(int64(len(buf)+dataPadded), segs.maxAlign)
	h := spliceHeader(buf, dataPadded)
	copy(h[8:], dataMagic)
	binary.LittleEndian.PutUint32(h[12:], dataLength)
	binary.LittleEndian.PutUint64(h[16:], dataPadded)
	binary.LittleEndian.PutUint64(h[24:], uint64(len(buf)))
	binary.LittleEndian.PutUint64(h[32:], uint64(base))
	binary.LittleEndian.PutUint64(h[40:], uint64(segs.end))
	return &layout{head: h, base: base, pieces: segs.pieces, end: segs.end}, nil
}

// spliceHeader makes room for a header of n bytes behind a flatbuffer's identifier.
func spliceHeader(buf []byte, n int) []byte {
	h := make([]byte, 8+n, n+len(buf))
	binary.LittleEndian.PutUint32(h, binary.LittleEndian.Uint32(buf)+uint32(n))
	copy(h[4:], buf[4:8])
	return append(h, buf[8:]...)
}

// DataFile is an open data file. Its blobs are views of the mapped file and die with
// Close.
type DataFile struct {
	*Data
	f     *os.File
	unmap func() error
}

// Close gives the mapping and the file back.
func (f *DataFile) Close() error {
	err := f.unmap()
	if cerr := f.f.Close(); err == nil {
		err = cerr
	}
	return err
}

// OpenData maps and reads the data file path, checked as [Open] does.
func OpenData(path string) (*DataFile, error) {
	f, data, unmap, err := openMapped(path)
	if err != nil {
		return nil, err
	}
	d, err := readData(data, f)
	if err != nil {
		_ = unmap()
		_ = f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &DataFile{d, f, unmap}, nil
}

// ReadData reads a data file in memory; its blobs alias data.
func ReadData(data []byte) (*Data, error) { return readData(data, nil) }

// IsData tells whether head, the first bytes of a file (12 suffice), can be those of a
// data file.
func IsData(head []byte) bool {
	return len(head) >= 12 && string(head[4:6]) == "FT" && string(head[8:12]) == dataMagic
}

func readData(data []byte, f *os.File) (*Data, error) {
	if !IsData(data) || len(data) < 8+dataLength {
		return nil, fmt.Errorf("no data file: the identifiers FT01 and FH01 are missing")
	}
	if n := binary.LittleEndian.Uint32(data[12:]); n < dataLength {
		return nil, fmt.Errorf("header: length %d", n)
	}
	total := uint64(len(data))
	off, size := binary.LittleEndian.Uint64(data[16:]), binary.LittleEndian.Uint64(data[24:])
	base, dataSize := binary.LittleEndian.Uint64(data[32:]), binary.LittleEndian.Uint64(data[40:])
	switch {
	case off > total || size > total-off:
		return nil, fmt.Errorf("header: flatbuffer of %d bytes at %d of %d; the file is cut off or damaged", size, off, total)
	case base > total || dataSize > total-base:
		return nil, fmt.Errorf("header: %d bytes of segments at %d of %d; the file is cut off or damaged", dataSize, base, total)
	}
	w, err := fbf.UnmarshalFlatTensor(data[:off+size])
	if err != nil {
		return nil, fmt.Errorf("flat tensor: %w", err)
	}
	area := data[base : base+dataSize]
	d := &Data{Version: w.Version}
	for i, n := range w.NamedData {
		if int64(n.SegmentIndex) >= int64(len(w.Segments)) {
			return nil, fmt.Errorf("named_data[%d] %q: segment %d of %d", i, n.Key, n.SegmentIndex, len(w.Segments))
		}
		s := w.Segments[n.SegmentIndex]
		if s.Offset > dataSize || s.Size > dataSize-s.Offset {
			return nil, fmt.Errorf("segments[%d]: %d bytes at %d of %d bytes of segment data", n.SegmentIndex, s.Size, s.Offset, dataSize)
		}
		e := DataEntry{Key: n.Key, Data: section{f, int64(base + s.Offset), area[s.Offset : s.Offset+s.Size : s.Offset+s.Size]}}
		if l := n.TensorLayout; l != nil {
			e.Layout = &TensorLayout{ScalarType(l.ScalarType), l.Sizes, l.DimOrder}
		}
		d.Entries = append(d.Entries, e)
	}
	if err := d.Check(); err != nil {
		return nil, err
	}
	return d, nil
}
