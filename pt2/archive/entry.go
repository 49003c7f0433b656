package archive

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"runtime/debug"
	"sync"
)

// Entry is one entry of an archive.
type Entry struct {
	archive *Archive
	full    string // with the root
	name    string // below the root
	method  uint16
	crc     uint32
	header  int64 // offset of the local header
	offset  int64 // offset of the data
	packed  int64 // bytes in the file
	size    int64 // bytes of contents

	once sync.Once
	data []byte // contents, once checked
	err  error
}

// Name returns the name below the root, for instance data/weights/weight_0.
func (e *Entry) Name() string { return e.name }

// FullName returns the name with the root, as in the zip directory.
func (e *Entry) FullName() string { return e.full }

// Size returns the number of bytes of the contents.
func (e *Entry) Size() int64 { return e.size }

// Stored reports whether the contents lie in the file as they are.
func (e *Entry) Stored() bool { return e.method == methodStored }

// FileRange returns where the contents of a stored entry lie in the file.
func (e *Entry) FileRange() (offset, size int64, ok bool) { return e.offset, e.size, e.Stored() }

// Errorf returns an *Error about the entry, for those who read its contents.
func (e *Entry) Errorf(format string, args ...any) *Error {
	return &Error{File: e.archive.path, Entry: e.full, Reason: fmt.Sprintf(format, args...)}
}

// Bytes returns the contents, checked against the checksum the first time. The
// slice is the mapped file itself when the entry is stored; it must not be
// changed, and not be used after Close.
func (e *Entry) Bytes() ([]byte, error) {
	e.once.Do(func() {
		e.err = guard(e.archive, e.full, func() (err error) {
			e.data, err = e.contents()
			return err
		})
	})
	return e.data, e.err
}

// View returns the contents of a stored entry without reading them, so without a
// check. Call Verify, or use WriteTo, before the bytes reach an output.
func (e *Entry) View() ([]byte, bool) {
	if !e.Stored() {
		return nil, false
	}
	return e.raw(), true
}

func (e *Entry) raw() []byte { return e.archive.data[e.offset : e.offset+e.packed : e.offset+e.packed] }

func (e *Entry) contents() ([]byte, error) {
	if e.Stored() {
		b := e.raw()
		return b, e.checkSum(crc32.ChecksumIEEE(b))
	}
	src := bytes.NewReader(e.raw())
	b, err := io.ReadAll(io.LimitReader(flate.NewReader(src), e.size+1))
	if err != nil {
		return nil, &Error{File: e.archive.path, Entry: e.full, Reason: "damaged compressed data", Err: err}
	}
	if int64(len(b)) != e.size || src.Len() > 0 {
		return nil, e.Errorf("compressed data is not of the %d bytes the directory says", e.size)
	}
	return b, e.checkSum(crc32.ChecksumIEEE(b))
}

func (e *Entry) checkSum(sum uint32) error {
	if sum == e.crc {
		return nil
	}
	return &Error{
		File: e.archive.path, Entry: e.full,
		Reason: fmt.Sprintf("CRC mismatch: contents have %08x, the directory says %08x", sum, e.crc),
		Try:    "the file is damaged: copy or download it again",
	}
}

// Verify reads the contents and compares their checksum, without keeping them in
// memory.
func (e *Entry) Verify() error {
	_, err := e.WriteTo(io.Discard)
	return err
}

// WriteTo writes the contents to w and checks them on the way, in constant
// memory when the entry is stored. A mismatch is found at the end: what was
// written is then to be thrown away.
func (e *Entry) WriteTo(w io.Writer) (int64, error) {
	if !e.Stored() {
		b, err := e.Bytes()
		if err != nil {
			return 0, err
		}
		n, err := w.Write(b)
		return int64(n), err
	}
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	var sum uint32
	var done int64
	for done < e.size {
		b := (*buf)[:min(e.size-done, int64(len(*buf)))]
		if _, err := e.ReadAt(b, done); err != nil {
			return done, err
		}
		sum = crc32.Update(sum, crc32.IEEETable, b)
		n, err := w.Write(b)
		done += int64(n)
		if err != nil {
			return done, err
		}
	}
	return done, e.checkSum(sum)
}

var buffers = sync.Pool{New: func() any {
	b := make([]byte, 1<<20)
	return &b
}}

// ReadAt reads contents at an offset, unchecked. It reads the file rather than
// the mapping, so that large weights do not stay in memory.
func (e *Entry) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, e.Errorf("read at offset %d", off)
	}
	if off >= e.size {
		return 0, io.EOF
	}
	want := p[:min(int64(len(p)), e.size-off)]
	n := 0
	switch {
	case !e.Stored():
		b, err := e.Bytes()
		if err != nil {
			return 0, err
		}
		n = copy(want, b[off:])
	case e.archive.file == nil:
		n = copy(want, e.raw()[off:])
	default:
		var err error
		if n, err = e.archive.file.ReadAt(want, e.offset+off); n < len(want) {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return n, &Error{File: e.archive.path, Entry: e.full, Reason: "cannot be read", Err: err}
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Release lets the system drop the pages of the mapping that hold the entry. The
// bytes stay readable.
func (e *Entry) Release() {
	if e.Stored() && e.archive.unmap != nil {
		release(e.archive.data, e.offset, e.size)
	}
}

// guard turns a fault while reading the mapping into an error: the file may be
// cut short by another process while it is mapped.
func guard(a *Archive, entry string, f func() error) (err error) {
	if a.unmap == nil {
		return f()
	}
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		r := recover()
		if r == nil {
			return
		}
		if _, fault := r.(interface{ Addr() uintptr }); !fault {
			panic(r)
		}
		err = &Error{File: a.path, Entry: entry, Reason: "the file became shorter while it was read", Try: "wait until it is written whole"}
	}()
	return f()
}
