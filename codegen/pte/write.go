package pte

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/lathe-ml/lathe/internal/wholefile"

	fbp "github.com/lathe-ml/lathe/codegen/fb/program"
)

// Options are choices of the writers. The zero value is what the official emitter
// chooses.
type Options struct {
	// ConstantAlign is the alignment of each constant within its segment; 0 for 16,
	// which the runtime's kernels expect.
	ConstantAlign int
	// SegmentAlign is the alignment of segments within the file; 0 for 128.
	SegmentAlign int
	// Progress, when not nil, is told bytes written and bytes in all, now and then.
	Progress func(done, total int64)
}

func (o Options) withDefaults() (Options, error) {
	if o.ConstantAlign == 0 {
		o.ConstantAlign = 16
	}
	if o.SegmentAlign == 0 {
		o.SegmentAlign = 128
	}
	for _, a := range []int{o.ConstantAlign, o.SegmentAlign} {
		if a < 1 || a&(a-1) != 0 {
			return o, fmt.Errorf("alignment %d is no power of two", a)
		}
	}
	return o, nil
}

// Write writes p as a .pte file. The bytes depend on p and o alone.
func Write(w io.Writer, p *Program, o Options) error {
	l, err := layoutProgram(p, o)
	if err != nil {
		return fmt.Errorf("pte: %w", err)
	}
	if err := l.writeTo(context.Background(), w, o.Progress); err != nil {
		return fmt.Errorf("pte: %w", err)
	}
	return nil
}

// WriteFile writes p to the file path, which appears whole or keeps what it had: the
// bytes go to a temporary file beside it first. ctx ends the writing early.
func WriteFile(ctx context.Context, path string, p *Program, o Options) error {
	return WriteFiles(ctx, path, p, "", nil, o)
}

// WriteFiles is WriteFile with the weights that lie apart, d, in a data file. Both
// appear, or both keep what they had.
func WriteFiles(ctx context.Context, path string, p *Program, dataPath string, d *Data, o Options) error {
	l, err := layoutProgram(p, o)
	if err != nil {
		return fmt.Errorf("pte: %w", err)
	}
	out, err := wholefile.Create(path)
	if err != nil {
		return err
	}
	var data *wholefile.File
	if d != nil {
		if data, err = writeData(ctx, dataPath, d, o); err != nil {
			return out.Discard(err)
		}
	}
	if err = l.writeTo(ctx, out.F, o.Progress); err == nil {
		if data == nil {
			return out.Commit()
		}
		if err = data.Commit(); err == nil {
			return out.Commit()
		}
		return out.Discard(err)
	}
	if data != nil {
		err = data.Discard(err)
	}
	return out.Discard(err)
}

// writeData writes a data file that is still to be committed.
func writeData(ctx context.Context, path string, d *Data, o Options) (*wholefile.File, error) {
	l, err := layoutData(d, o)
	if err != nil {
		return nil, fmt.Errorf("ptd: %w", err)
	}
	f, err := wholefile.Create(path)
	if err != nil {
		return nil, err
	}
	if err := l.writeTo(ctx, f.F, o.Progress); err != nil {
		return nil, f.Discard(err)
	}
	return f, nil
}

const (
	extendedMagic  = "eh00"
	extendedLength = 32
	// The header goes between the identifier and the rest of the flatbuffer, whose
	// alignment it must keep.
	extendedPadded = 32
)

// layoutProgram decides where everything goes, and makes the head of the file.
func layoutProgram(p *Program, o Options) (*layout, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := p.Check(); err != nil {
		return nil, err
	}
	w := &fbp.Program{
		Version:             p.Version,
		ExecutionPlan:       make([]*fbp.ExecutionPlan, len(p.Plans)),
		ConstantBuffer:      []*fbp.Buffer{},
		BackendDelegateData: []*fbp.BackendDelegateInlineData{},
	}
	segs := segmenter{align: int64(o.SegmentAlign), maxAlign: int64(o.SegmentAlign)}

	// The first segment is the constants', also when there are none.
	offsets, err := segs.addPieces(p.Constants, int64(o.ConstantAlign))
	if err != nil {
		return nil, fmt.Errorf("constants: %w", err)
	}
	w.ConstantSegment = &fbp.SubsegmentOffsets{SegmentIndex: 0, Offsets: offsets}
	if len(p.Initial) > 1 {
		index := len(segs.table)
		offsets, err := segs.addPieces(p.Initial, int64(o.ConstantAlign))
		if err != nil {
			return nil, fmt.Errorf("initial values: %w", err)
		}
		w.MutableDataSegments = []*fbp.SubsegmentOffsets{{SegmentIndex: uint32(index), Offsets: offsets}}
	}

	payloads := newDeduper()
	segmentOf := map[int]uint32{}
	for i, plan := range p.Plans {
		wp, err := planToWire(plan)
		if err != nil {
			return nil, fmt.Errorf("method %q: %w", plan.Name, err)
		}
		w.ExecutionPlan[i] = wp
		for j, d := range plan.Delegates {
			if d.Payload.Size() == 0 {
				// A segment without bytes cannot be loaded.
				wp.Delegates[j].Processed = &fbp.BackendDelegateDataReference{
					Location: fbp.DataLocationInline, Index: uint32(len(w.BackendDelegateData)),
				}
				w.BackendDelegateData = append(w.BackendDelegateData, &fbp.BackendDelegateInlineData{Data: []byte{}})
				continue
			}
			u, err := payloads.add(d.Payload)
			if err != nil {
				return nil, fmt.Errorf("method %q: delegates[%d]: %w", plan.Name, j, err)
			}
			s, ok := segmentOf[u]
			if !ok {
				s = segs.add(d.Payload, 1)
				segmentOf[u] = s
			}
			wp.Delegates[j].Processed = &fbp.BackendDelegateDataReference{Location: fbp.DataLocationSegment, Index: s}
		}
	}
	refs, err := segs.addNamed(p.Named)
	if err != nil {
		return nil, err
	}
	for i, n := range p.Named {
		w.NamedData = append(w.NamedData, &fbp.NamedData{Key: n.Key, SegmentIndex: refs[i]})
	}
	for _, s := range segs.table {
		w.Segments = append(w.Segments, &fbp.DataSegment{Offset: uint64(s.off), Size: uint64(s.size)})
	}

	buf, err := w.Marshal()
	if err != nil {
		return nil, err
	}
	size := int64(len(buf) + extendedPadded)
	base := alignUp(size, segs.maxAlign)
	h := spliceHeader(buf, extendedPadded)
	copy(h[8:], extendedMagic)
	binary.LittleEndian.PutUint32(h[12:], extendedLength)
	binary.LittleEndian.PutUint64(h[16:], uint64(size))
	if segs.end > 0 {
		// Base and size are zero when there is nothing to load.
		binary.LittleEndian.PutUint64(h[24:], uint64(base))
		binary.LittleEndian.PutUint64(h[32:], uint64(segs.end))
	}
	return &layout{head: h, base: base, pieces: segs.pieces, end: segs.end}, nil
}

func alignUp(n, a int64) int64 { return (n + a - 1) &^ (a - 1) }

// piece is a blob at an offset from the first segment.
type piece struct {
	off  int64
	blob Blob
}

type extent struct{ off, size int64 }

// segmenter lays segments out one after the other.
type segmenter struct {
	align    int64
	maxAlign int64
	end      int64
	table    []extent
	pieces   []piece
	// held are the contents of the constants and heldAt where each lies.
	held   *deduper
	heldAt []int64
}

// add appends a segment of one blob.
func (s *segmenter) add(b Blob, align int64) uint32 {
	align = max(align, s.align)
	s.maxAlign = max(s.maxAlign, align)
	off := alignUp(s.end, align)
	s.table = append(s.table, extent{off, b.Size()})
	s.pieces = append(s.pieces, piece{off, b})
	s.end = off + b.Size()
	return uint32(len(s.table) - 1)
}

// addPieces appends a segment that holds the blobs, equal ones once, and gives the
// offset of each within it. The first blob is the reserved nil one.
func (s *segmenter) addPieces(blobs []Blob, align int64) ([]uint64, error) {
	s.maxAlign = max(s.maxAlign, align)
	start := alignUp(s.end, max(align, s.align))
	offsets := []uint64{0}
	end := int64(0)
	d := newDeduper()
	var at []int64
	for i, b := range blobs {
		if i == 0 {
			continue
		}
		u, err := d.add(b)
		if err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
		if u == len(at) {
			end = alignUp(end, align)
			at = append(at, end)
			s.pieces = append(s.pieces, piece{start + end, b})
			end += b.Size()
		}
		offsets = append(offsets, uint64(at[u]))
	}
	if end == 0 && len(offsets) > 1 {
		// The runtime takes a segment without bytes for none, and then refuses tensors without elements in it.
		s.pieces = append(s.pieces, piece{start, Bytes{0}})
		end = 1
	}
	if s.held == nil {
		s.held = d
		for _, o := range at {
			s.heldAt = append(s.heldAt, start+o)
		}
	}
	s.table = append(s.table, extent{start, end})
	s.end = start + end
	return offsets, nil
}

// addNamed appends a segment for each distinct content and gives each entry's. What the constants hold already is not
// written once more: its segment lies within theirs.
func (s *segmenter) addNamed(named []NamedData) ([]uint32, error) {
	if s.held == nil {
		s.held = newDeduper() // a data file has no constants
	}
	refs := make([]int, len(named))
	align := map[int]int64{}
	var order []int
	for i, n := range named {
		u, err := s.held.add(n.Data)
		if err != nil {
			return nil, fmt.Errorf("named data %q: %w", n.Key, err)
		}
		refs[i] = u
		if _, ok := align[u]; !ok {
			order = append(order, u)
		}
		align[u] = max(align[u], int64(n.Align), 1)
	}
	segment := map[int]uint32{}
	for _, u := range order {
		b := s.held.blobs[u]
		if u < len(s.heldAt) && b.Size() > 0 && s.heldAt[u]%align[u] == 0 {
			segment[u] = uint32(len(s.table))
			s.table = append(s.table, extent{s.heldAt[u], b.Size()})
			continue
		}
		segment[u] = s.add(b, align[u])
	}
	out := make([]uint32, len(named))
	for i, u := range refs {
		out[i] = segment[u]
	}
	return out, nil
}
