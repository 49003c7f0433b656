package ir

import "io"

// Storage is a run of bytes that one or more tensors view. Bytes may be mapped from a file or made when asked for, so
// they are to be asked for as late as possible and never written to.
type Storage interface {
	// Size is the number of bytes.
	Size() int64
	// Bytes gives the contents.
	Bytes() ([]byte, error)
}

// FileStorage is a storage that lies in a file as it is, so that a writer can copy it without reading it.
type FileStorage interface {
	Storage
	// FileRange gives the file's descriptor and the offset at which the storage begins.
	FileRange() (file interface{ Fd() uintptr }, offset int64)
}

// StreamStorage is a storage that is made when asked for and can be written piece by piece, so that it need not fit in
// memory.
type StreamStorage interface {
	Storage
	WriteTo(w io.Writer) (int64, error)
}

// Data is a tensor's contents: a view of a storage.
type Data struct {
	DType DType
	Sizes []int64
	// Strides are in elements; nil means contiguous.
	Strides []int64
	// Offset is in elements.
	Offset  int64
	Storage Storage
	// Entry is the archive entry, for diagnostics.
	Entry string
}

// MemStorage is a storage in memory.
type MemStorage []byte

// Size is the number of bytes.
func (m MemStorage) Size() int64 { return int64(len(m)) }

// Bytes gives the contents.
func (m MemStorage) Bytes() ([]byte, error) { return m, nil }

// NewData is a contiguous tensor over bytes in memory (little-endian).
func NewData(d DType, sizes []int64, b []byte) *Data {
	return &Data{DType: d, Sizes: sizes, Storage: MemStorage(b)}
}

// Numel is the number of elements.
func (d *Data) Numel() int64 {
	n := int64(1)
	for _, s := range d.Sizes {
		n *= s
	}
	return n
}

// Contiguous tells whether the elements lie row-major without gaps.
func (d *Data) Contiguous() bool {
	if d.Strides == nil {
		return true
	}
	n := int64(1)
	for i := len(d.Sizes) - 1; i >= 0; i-- {
		if d.Sizes[i] != 1 && d.Strides[i] != n {
			return false
		}
		n *= max(d.Sizes[i], 1)
	}
	return true
}

// Compact gives the elements row-major, Numel*DType.Size() bytes: a part of the storage where they lie so, else a copy.
func (d *Data) Compact() ([]byte, error) {
	b, err := d.Storage.Bytes()
	if err != nil {
		return nil, err
	}
	sz := d.DType.Size()
	n := d.Numel()
	if d.Contiguous() {
		return b[d.Offset*sz : (d.Offset+n)*sz], nil
	}
	out := make([]byte, 0, n*sz)
	if n == 0 {
		return out, nil
	}
	idx := make([]int64, len(d.Sizes))
	pos := d.Offset
	for {
		out = append(out, b[pos*sz:(pos+1)*sz]...)
		i := len(idx) - 1
		for ; i >= 0; i-- {
			idx[i]++
			pos += d.Strides[i]
			if idx[i] < d.Sizes[i] {
				break
			}
			pos -= d.Sizes[i] * d.Strides[i]
			idx[i] = 0
		}
		if i < 0 {
			return out, nil
		}
	}
}

// WriteTo writes the elements row-major, Numel*DType.Size() bytes, in pieces where they do not lie so.
func (d *Data) WriteTo(w io.Writer) (int64, error) {
	sz := d.DType.Size()
	size := d.Numel() * sz
	if d.Contiguous() {
		if st, ok := d.Storage.(StreamStorage); ok && d.Offset == 0 && st.Size() == size {
			return st.WriteTo(w)
		}
		p, err := d.Compact()
		if err != nil {
			return 0, err
		}
		n, err := w.Write(p)
		return int64(n), err
	}
	src, err := d.Storage.Bytes()
	if err != nil || size == 0 {
		return 0, err
	}
	return d.gather(w, src, size)
}

// gatherBytes is how much of a strided tensor is put together at a time.
const gatherBytes = 1 << 20

// gather writes the elements of a strided tensor row-major.
func (d *Data) gather(w io.Writer, src []byte, total int64) (int64, error) {
	size := d.DType.Size()
	last := len(d.Sizes) - 1
	run, step := d.Sizes[last], d.Strides[last]*size
	buf := make([]byte, 0, min(gatherBytes+size, total))
	var written int64
	flush := func() error {
		n, err := w.Write(buf)
		written += int64(n)
		buf = buf[:0]
		return err
	}
	idx := make([]int64, last)
	pos := d.Offset * size
	for {
		at := pos
		for k := int64(0); k < run; {
			n := int64(1)
			if step == size {
				n = min(run-k, max(1, (gatherBytes-int64(len(buf)))/size))
			}
			buf = append(buf, src[at:at+n*size]...)
			k += n
			at += n * step
			if len(buf) >= gatherBytes {
				if err := flush(); err != nil {
					return written, err
				}
			}
		}
		i := last - 1
		for ; i >= 0; i-- {
			idx[i]++
			pos += d.Strides[i] * size
			if idx[i] < d.Sizes[i] {
				break
			}
			pos -= d.Sizes[i] * d.Strides[i] * size
			idx[i] = 0
		}
		if i < 0 {
			err := flush()
			return written, err
		}
	}
}
