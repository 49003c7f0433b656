package pte

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
)

// layout is a file that has been decided on: its head, then pieces at offsets from
// base, ascending.
type layout struct {
	head   []byte
	base   int64
	pieces []piece
	end    int64 // of the last segment, from base
}

func (l *layout) size() int64 {
	if l.end == 0 {
		return int64(len(l.head))
	}
	return l.base + l.end
}

type sizeError struct{ have, want int64 }

func (e *sizeError) Error() string {
	return fmt.Sprintf("data source gave %d bytes, it promised %d", e.have, e.want)
}

const (
	bufferSize = 256 << 10
	// Larger pieces bypass the buffer.
	directSize = 64 << 10
	// Writes are cut so that cancelling takes effect soon.
	chunkSize = 32 << 20
)

// sink counts, cuts and, when cancelled, fails what goes to a file.
type sink struct {
	ctx      context.Context
	w        io.Writer
	n        int64
	total    int64
	progress func(done, total int64)
}

func (s *sink) Write(b []byte) (int, error) {
	done := 0
	for {
		if err := context.Cause(s.ctx); err != nil {
			return done, err
		}
		n, err := s.w.Write(b[done:min(len(b), done+chunkSize)])
		done += n
		s.advance(int64(n))
		if err != nil || done == len(b) {
			return done, err
		}
	}
}

func (s *sink) advance(n int64) {
	s.n += n
	if s.progress != nil {
		s.progress(s.n, s.total)
	}
}

var zeros [4096]byte

// writeTo writes the file to w, by the kernel where both ends are files.
func (l *layout) writeTo(ctx context.Context, w io.Writer, progress func(done, total int64)) error {
	s := &sink{ctx: ctx, w: w, total: l.size(), progress: progress}
	dst, _ := w.(*os.File)
	buf := bufio.NewWriterSize(s, bufferSize)
	if _, err := buf.Write(l.head); err != nil {
		return err
	}
	pos := int64(len(l.head))
	pad := func(to int64) error {
		for pos < to {
			n, err := buf.Write(zeros[:min(to-pos, int64(len(zeros)))])
			pos += int64(n)
			if err != nil {
				return err
			}
		}
		return nil
	}
	for _, p := range l.pieces {
		if err := pad(l.base + p.off); err != nil {
			return err
		}
		n := p.blob.Size()
		if n < directSize {
			if _, err := writeBlob(buf, p.blob); err != nil {
				return err
			}
			pos += n
			continue
		}
		if err := buf.Flush(); err != nil {
			return err
		}
		done := int64(0)
		if r, ok := p.blob.(FileRange); ok && dst != nil && r.File() != nil {
			var err error
			if done, err = s.copyRange(dst, r); err != nil {
				return err
			}
		}
		if done == 0 && n > 0 {
			if _, err := writeBlob(s, p.blob); err != nil {
				return err
			}
		}
		pos += n
	}
	if err := pad(l.size()); err != nil {
		return err
	}
	return buf.Flush()
}

// copyRange lets the kernel copy r to the end of dst. It gives 0 when the kernel
// cannot, so that the caller copies instead.
func (s *sink) copyRange(dst *os.File, r FileRange) (int64, error) {
	n, done := r.Size(), int64(0)
	for done < n {
		if err := context.Cause(s.ctx); err != nil {
			return done, err
		}
		k, err := kernelCopy(dst, r.File(), r.Offset()+done, int(min(n-done, chunkSize)))
		if err != nil {
			return done, err
		}
		if k == 0 {
			if done == 0 {
				return 0, nil
			}
			return done, &sizeError{done, n}
		}
		done += int64(k)
		s.advance(int64(k))
	}
	return done, nil
}
