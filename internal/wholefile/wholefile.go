// Package wholefile writes files that appear whole or not at all: what was there before stays until the new contents are
// complete.
package wholefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// File is a file in the making. Either Commit or Discard comes last.
type File struct {
	// F takes the contents.
	F *os.File
	// path is what the contents are for, temp where they lie; empty for a pipe or device, which has nothing to keep.
	path, temp string
}

// Create begins a file. An existing one has to be writable and keeps its mode; what a link names is replaced, not the
// link. Errors are *fs.PathError with path in them.
func Create(path string) (*File, error) {
	f := &File{path: path}
	err := f.create()
	return f, f.named(err)
}

func (f *File) create() error {
	mode := fs.FileMode(0o666)
	target := f.path
	st, err := os.Stat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(f.path); err == nil {
			return &fs.PathError{Op: "write", Path: f.path, Err: errors.New("a link to a file that does not exist")}
		}
	case err != nil:
		return err
	default:
		// A directory or a file that may not be written says so here; replacing it would go around that.
		old, err := os.OpenFile(f.path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		if !st.Mode().IsRegular() {
			f.F = old
			return nil
		}
		if err := old.Close(); err != nil {
			return err
		}
		mode = st.Mode().Perm()
		if target, err = filepath.EvalSymlinks(f.path); err != nil {
			return err
		}
	}
	// Unlike os.CreateTemp this lets the umask decide on the mode, as for any output.
	for i := 0; ; i++ {
		f.temp = filepath.Join(filepath.Dir(target), fmt.Sprintf(".lathe-%d-%d.tmp", os.Getpid(), i))
		f.F, err = os.OpenFile(f.temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
		if os.IsExist(err) && i < 1000 {
			continue
		}
		if err == nil {
			f.path = target
		}
		return err
	}
}

// Commit puts the contents in place. Where it fails the file is as it was.
func (f *File) Commit() error {
	if err := f.F.Close(); err != nil {
		return f.named(errors.Join(err, f.remove()))
	}
	if f.temp == "" {
		return nil
	}
	if err := os.Rename(f.temp, f.path); err != nil {
		return f.named(errors.Join(err, f.remove()))
	}
	return nil
}

// Discard leaves the file as it was. It gives err back, with the file's name in it, for use in a return.
func (f *File) Discard(err error) error {
	_ = f.F.Close() // its contents are of no use
	return errors.Join(f.named(err), f.remove())
}

func (f *File) remove() error {
	if f.temp == "" {
		return nil
	}
	return os.Remove(f.temp)
}

// named gives errors of the temporary file the name that the user knows.
func (f *File) named(err error) error {
	var p *fs.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &p) && (p.Path == f.temp || p.Path == f.path):
		return &fs.PathError{Op: "write", Path: f.path, Err: p.Err}
	case errors.As(err, &l):
		return &fs.PathError{Op: "write", Path: f.path, Err: l.Err}
	}
	return err
}

// Write makes path hold what write writes, or leaves it as it was.
func Write(path string, write func(f *os.File) error) error {
	f, err := Create(path)
	if err != nil {
		return err
	}
	if err := write(f.F); err != nil {
		return f.Discard(err)
	}
	return f.Commit()
}
