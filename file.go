package lathe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/lathe-ml/lathe/internal/wholefile"
	"github.com/lathe-ml/lathe/ir"
)

// WriteFile writes a file that appears whole or not at all.
func WriteFile(path string, data []byte) error {
	return writeDiag(path, wholefile.Write(path, func(f *os.File) error {
		_, err := f.Write(data)
		return err
	}))
}

// writeDiag makes a diagnostic of what went wrong while a file was written; what is wrong with the input stays as it is.
func writeDiag(path string, err error) error {
	if _, ok := ir.AsDiags(err); ok || err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	msg := err.Error()
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		path, msg = p.Path, p.Err.Error()
	}
	return &ir.Diag{
		Code: "cannot-write", Msg: "the file cannot be written: " + msg, Entry: path,
		Try: "check that the folder is there, that you may write to it and that it has room",
	}
}

// checkFiles refuses to write where it reads, or twice to one file.
func (o Options) checkFiles() error {
	type use struct{ what, path string }
	uses := []use{{"output", o.Output}}
	if o.ExternalWeights != "" {
		uses = append(uses, use{"data file", o.ExternalWeights})
	}
	outputs := len(uses)
	for _, in := range o.Inputs {
		uses = append(uses, use{"input", in.Path})
	}
	for i, a := range uses[:outputs] {
		for _, b := range uses[i+1:] {
			if sameFile(a.path, b.path) {
				return &UsageError{fmt.Errorf("%s and %s are the same file, %s", a.what, b.what, a.path)}
			}
		}
	}
	return nil
}

// sameFile tells whether two names are those of one file, there or not. A device may be written to more than once.
func sameFile(a, b string) bool {
	sa, errA := os.Stat(a)
	sb, errB := os.Stat(b)
	if errA == nil && errB == nil {
		return sa.Mode().IsRegular() && os.SameFile(sa, sb)
	}
	absA, errA := filepath.Abs(a)
	absB, errB := filepath.Abs(b)
	return errA == nil && errB == nil && absA == absB
}
