package pt2

import (
	"errors"
	"io"
	"os"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/pt2/archive"
)

// record is the storage that an entry of the archive is. Its Bytes and WriteTo check the entry's checksum.
type record struct {
	e *archive.Entry
}

// storedRecord is a record that lies in the file as it is.
type storedRecord struct {
	record
	file   *os.File
	offset int64
}

var (
	_ ir.FileStorage = (*storedRecord)(nil)
	_ io.WriterTo    = (*record)(nil)
)

// Size is the number of bytes.
func (r *record) Size() int64 { return r.e.Size() }

// Bytes gives the contents, mapped where they are stored.
func (r *record) Bytes() ([]byte, error) {
	b, err := r.e.Bytes()
	return b, recordError(err)
}

// WriteTo streams the contents and checks them on the way.
func (r *record) WriteTo(w io.Writer) (int64, error) {
	n, err := r.e.WriteTo(w)
	return n, recordError(err)
}

// recordError makes a diagnostic of what is wrong with the archive; what the writer says stays.
func recordError(err error) error {
	var e *archive.Error
	if !errors.As(err, &e) {
		return err
	}
	return archiveDiag(e.File, err)
}

// Release lets the system drop the pages that Bytes or WriteTo brought in.
func (r *record) Release() { r.e.Release() }

// FileRange is the archive's file and the place of the record in it.
func (r *storedRecord) FileRange() (file interface{ Fd() uintptr }, offset int64) {
	return r.file, r.offset
}

// storage gives the one storage of an entry, the same for every tensor that views it.
func (a *Archive) storage(e *archive.Entry) ir.Storage { return a.storageAt(e.Name(), e, 0, true) }

// storageAt is storage for an entry of an archive that begins at base of the file, where it lies there as it is.
func (a *Archive) storageAt(key string, e *archive.Entry, base int64, stored bool) ir.Storage {
	if st := a.storages[key]; st != nil {
		return st
	}
	var st ir.Storage = &record{e}
	if off, _, ok := e.FileRange(); ok && stored && a.c.File() != nil {
		st = &storedRecord{record{e}, a.c.File(), base + off}
	}
	a.storages[key] = st
	return st
}

// madeStorage is made from others when it is asked for.
type madeStorage struct {
	size int64
	make func() ([]byte, error)
}

// Size is the number of bytes.
func (m *madeStorage) Size() int64 { return m.size }

// Bytes makes the contents anew.
func (m *madeStorage) Bytes() ([]byte, error) { return m.make() }
