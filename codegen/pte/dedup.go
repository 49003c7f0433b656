package pte

import (
	"bytes"
	"crypto/sha256"
	"hash/maphash"
	"io"
	"os"
)

// deduper finds blobs of equal content. Only blobs of equal size are looked at; most
// differ in a few sampled bytes, and only those that do not are compared whole.
type deduper struct {
	seed  maphash.Seed
	bySiz map[int64]*sizeClass
	byKey map[string]int // "size/key" of keyed blobs
	blobs []Blob         // the unique ones
}

type sizeClass struct {
	first   int // its print is not taken until a second blob of the size comes
	byPrint map[uint64][]int
}

func newDeduper() *deduper {
	return &deduper{seed: maphash.MakeSeed(), bySiz: map[int64]*sizeClass{}, byKey: map[string]int{}}
}

// add gives the index in d.blobs of a blob with the content of b.
func (d *deduper) add(b Blob) (int, error) {
	if k, ok := b.(Keyed); ok && k.ContentKey() != "" {
		key := string(appendInt(nil, b.Size())) + k.ContentKey()
		if i, ok := d.byKey[key]; ok {
			return i, nil
		}
		d.byKey[key] = d.keep(b)
		return d.byKey[key], nil
	}
	c := d.bySiz[b.Size()]
	if c == nil {
		i := d.keep(b)
		d.bySiz[b.Size()] = &sizeClass{first: i}
		return i, nil
	}
	if sameRange(b, d.blobs[c.first]) {
		return c.first, nil
	}
	if c.byPrint == nil {
		p, err := d.print(d.blobs[c.first])
		if err != nil {
			return 0, err
		}
		c.byPrint = map[uint64][]int{p: {c.first}}
	}
	p, err := d.print(b)
	if err != nil {
		return 0, err
	}
	for _, i := range c.byPrint[p] {
		same, err := equal(b, d.blobs[i])
		if err != nil || same {
			return i, err
		}
	}
	i := d.keep(b)
	c.byPrint[p] = append(c.byPrint[p], i)
	return i, nil
}

func (d *deduper) keep(b Blob) int {
	d.blobs = append(d.blobs, b)
	return len(d.blobs) - 1
}

func appendInt(b []byte, n int64) []byte {
	for range 8 {
		b = append(b, byte(n))
		n >>= 8
	}
	return b
}

func sameRange(a, b Blob) bool {
	x, ok := a.(FileRange)
	if !ok {
		return false
	}
	y, ok := b.(FileRange)
	return ok && x.File() != nil && x.File() == y.File() && x.Offset() == y.Offset()
}

const sample = 4096

// print hashes samples of b, or all of it when b can only be streamed.
func (d *deduper) print(b Blob) (uint64, error) {
	var h maphash.Hash
	h.SetSeed(d.seed)
	n := b.Size()
	if n > 4*sample {
		if m, ok := b.(Mapped); ok && m.Bytes() != nil {
			v := m.Bytes()
			for _, at := range []int64{0, n / 2, n - sample} {
				h.Write(v[at : at+sample])
			}
			return h.Sum64(), nil
		}
		if r, ok := b.(FileRange); ok && r.File() != nil {
			buf := make([]byte, sample)
			for _, at := range []int64{0, n / 2, n - sample} {
				if _, err := r.File().ReadAt(buf, r.Offset()+at); err != nil {
					return 0, err
				}
				h.Write(buf)
			}
			return h.Sum64(), nil
		}
	}
	// A streamed blob must agree with a mapped one of the same content.
	if n <= 4*sample {
		_, err := b.WriteTo(&h)
		return h.Sum64(), err
	}
	s := &sampler{h: &h, at: []int64{0, n / 2, n - sample}}
	_, err := b.WriteTo(s)
	return h.Sum64(), err
}

// sampler hashes the samples of a stream.
type sampler struct {
	h   *maphash.Hash
	at  []int64
	pos int64
}

func (s *sampler) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		if len(s.at) == 0 {
			s.pos += int64(len(b))
			break
		}
		skip := min(max(s.at[0]-s.pos, 0), int64(len(b)))
		b, s.pos = b[skip:], s.pos+skip
		take := min(s.at[0]+sample-s.pos, int64(len(b)))
		s.h.Write(b[:take])
		b, s.pos = b[take:], s.pos+take
		if s.pos == s.at[0]+sample {
			s.at = s.at[1:]
		}
	}
	return n, nil
}

func equal(a, b Blob) (bool, error) {
	if sameRange(a, b) {
		return true, nil
	}
	x, xok := a.(Mapped)
	y, yok := b.(Mapped)
	if xok && yok && x.Bytes() != nil && y.Bytes() != nil {
		return bytes.Equal(x.Bytes(), y.Bytes()), nil
	}
	ha, err := digest(a)
	if err != nil {
		return false, err
	}
	hb, err := digest(b)
	return ha == hb, err
}

func digest(b Blob) (sum [32]byte, err error) {
	h := sha256.New()
	if _, err := writeBlob(h, b); err != nil {
		return sum, err
	}
	h.Sum(sum[:0])
	return sum, nil
}

// writeBlob writes b to w and fails unless it wrote as many bytes as it said.
func writeBlob(w io.Writer, b Blob) (int64, error) {
	n, err := b.WriteTo(w)
	if err == nil && n != b.Size() {
		err = &sizeError{n, b.Size()}
	}
	return n, err
}

// section is bytes [off, off+size) of a file, mapped at data when data is not nil.
type section struct {
	f    *os.File
	off  int64
	data []byte
}

func (s section) Size() int64    { return int64(len(s.data)) }
func (s section) File() *os.File { return s.f }
func (s section) Offset() int64  { return s.off }
func (s section) Bytes() []byte  { return s.data }
func (s section) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(s.data)
	return int64(n), err
}
