package archive

import (
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

func mapFile(f *os.File, size int64) ([]byte, func() error, error) {
	m, err := windows.CreateFileMapping(windows.Handle(f.Fd()), nil, windows.PAGE_READONLY, 0, 0, nil)
	if err != nil {
		return nil, nil, err
	}
	defer windows.CloseHandle(m) // the view keeps the mapping
	p, err := windows.MapViewOfFile(m, windows.FILE_MAP_READ, 0, 0, uintptr(size))
	if err != nil {
		return nil, nil, err
	}
	// The view is not memory of the Go heap; the pointer is made by way of its
	// address for go vet's sake.
	data := unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&p))), size)
	return data, func() error { return windows.UnmapViewOfFile(p) }, nil
}

func release([]byte, int64, int64) {}
