//go:build unix

package archive

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

func mapFile(f *os.File, size int64) ([]byte, func() error, error) {
	if int64(int(size)) != size {
		return nil, nil, fmt.Errorf("%d bytes do not fit the address space", size)
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, err
	}
	return data, func() error { return unix.Munmap(data) }, nil
}

// release drops whole pages only: the bytes around the entry may be in use.
func release(data []byte, offset, size int64) {
	page := int64(os.Getpagesize())
	lo, hi := (offset+page-1)/page*page, (offset+size)/page*page
	if lo < hi {
		// Advice: nothing depends on it.
		_ = unix.Madvise(data[lo:hi], unix.MADV_DONTNEED)
	}
}
