//go:build !unix

package pte

import (
	"io"
	"os"
)

// mapFile reads the file: there is no mapping here.
func mapFile(f *os.File, size int) (data []byte, unmap func() error, err error) {
	data = make([]byte, size)
	_, err = io.ReadFull(f, data)
	return data, func() error { return nil }, err
}
