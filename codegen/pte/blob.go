package pte

import (
	"io"
	"os"
)

// Blob is a run of bytes that can write itself, any number of times, the same bytes
// each time. Size is exact: WriteTo writes that many bytes or fails.
//
// A blob may say more about itself, which makes writing cheaper:
//   - [FileRange]: it is a part of a file and is copied by the kernel.
//   - [Mapped]: its bytes are in (mapped) memory.
//   - [Keyed]: its content has an identity, so that computed blobs (packed weights)
//     need not be computed twice to find equal ones.
type Blob interface {
	Size() int64
	WriteTo(w io.Writer) (int64, error)
}

// FileRange is a blob that is Size bytes of File from Offset on.
type FileRange interface {
	Blob
	File() *os.File
	Offset() int64
}

// Mapped is a blob whose bytes can be read in place. They must not be changed.
type Mapped interface {
	Blob
	Bytes() []byte
}

// Keyed is a blob whose content is named by a key: blobs with equal non-empty keys
// have equal bytes, blobs with different non-empty keys are never merged.
type Keyed interface {
	Blob
	ContentKey() string
}

// Bytes is a blob in memory.
type Bytes []byte

// Size is the length.
func (b Bytes) Size() int64 { return int64(len(b)) }

// WriteTo writes all bytes.
func (b Bytes) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(b)
	return int64(n), err
}

// Bytes gives the bytes themselves.
func (b Bytes) Bytes() []byte { return b }
