package pt2

import (
	"archive/zip"
	"fmt"
	"io"
	"os"
	"strings"
)

// container is the zip file: entries by their name below the root folder.
type container struct {
	file    *os.File
	entries map[string]*zip.File
	names   []string
}

func openContainer(path string) (*container, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	z, err := zip.NewReader(f, st.Size())
	if err != nil {
		f.Close()
		return nil, err
	}
	c := &container{file: f, entries: map[string]*zip.File{}}
	for _, e := range z.File {
		_, name, _ := strings.Cut(e.Name, "/")
		if c.entries[name] != nil {
			f.Close()
			return nil, fmt.Errorf("entry %s stands twice", e.Name)
		}
		c.entries[name] = e
		c.names = append(c.names, name)
	}
	return c, nil
}

func (c *container) close() error { return c.file.Close() }

func (c *container) has(name string) bool { return c.entries[name] != nil }

func (c *container) read(name string) ([]byte, error) {
	e := c.entries[name]
	if e == nil {
		return nil, fmt.Errorf("entry %s is missing", name)
	}
	r, err := e.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// record is a weight's storage in the archive.
type record struct {
	c *container
	e *zip.File
}

func (c *container) record(name string) *record { return &record{c, c.entries[name]} }

// Size is the number of bytes.
func (r *record) Size() int64 { return int64(r.e.UncompressedSize64) }

// Bytes reads the record.
func (r *record) Bytes() ([]byte, error) {
	rc, err := r.e.Open()
	if err != nil {
		return nil, err
	}
	defer rc.Close()
	return io.ReadAll(rc)
}

// FileRange is the place of the record in the archive.
func (r *record) FileRange() (file interface{ Fd() uintptr }, offset int64) {
	off, _ := r.e.DataOffset()
	return r.c.file, off
}
