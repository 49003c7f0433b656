package pte

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"sort"

	fbp "github.com/lathe-ml/lathe/codegen/fb/program"
)

// File is an open program file. Its blobs are views of the mapped file and die with
// Close.
type File struct {
	*Program
	f     *os.File
	unmap func() error
}

// Close gives the mapping and the file back.
func (f *File) Close() error {
	err := f.unmap()
	if cerr := f.f.Close(); err == nil {
		err = cerr
	}
	return err
}

// Open maps and reads the program file path. Every offset in it is checked; the error
// of a damaged file names the part. The file must not change while it is open.
func Open(path string) (*File, error) {
	f, data, unmap, err := openMapped(path)
	if err != nil {
		return nil, err
	}
	p, err := read(data, f)
	if err != nil {
		_ = unmap()
		_ = f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &File{p, f, unmap}, nil
}

func openMapped(path string) (*os.File, []byte, func() error, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", path)
	}
	if err == nil && st.Size() > math.MaxInt {
		err = fmt.Errorf("%s is too large to map", path)
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, nil, err
	}
	data, unmap, err := mapFile(f, int(st.Size()))
	if err != nil {
		_ = f.Close()
		return nil, nil, nil, err
	}
	return f, data, unmap, nil
}

// Read reads a program file in memory; its blobs alias data.
func Read(data []byte) (*Program, error) { return read(data, nil) }

// IsProgram tells whether head, the first bytes of a file (8 suffice), can be those of
// a program file.
func IsProgram(head []byte) bool {
	return len(head) >= 8 && string(head[4:6]) == "ET"
}

// extendedHeader is the part of the file that tells where segments are.
type extendedHeader struct {
	programSize, base, dataSize int64
}

// readExtended finds the header; ok is false when the file has none.
func readExtended(data []byte) (h extendedHeader, ok bool, err error) {
	if len(data) < 8+24 || string(data[8:12]) != extendedMagic {
		return extendedHeader{programSize: int64(len(data))}, false, nil
	}
	n := binary.LittleEndian.Uint32(data[12:])
	if n < 24 || int64(n) > int64(len(data)-8) {
		return h, false, fmt.Errorf("extended header: length %d", n)
	}
	size, base, dataSize := binary.LittleEndian.Uint64(data[16:]), binary.LittleEndian.Uint64(data[24:]), uint64(0)
	if n >= extendedLength {
		dataSize = binary.LittleEndian.Uint64(data[32:])
	}
	total := uint64(len(data))
	switch {
	case size < 8 || size > total:
		return h, false, fmt.Errorf("extended header: program of %d bytes in a file of %d; the file is cut off or damaged", size, total)
	case base != 0 && base < size || base > total:
		return h, false, fmt.Errorf("extended header: segments at %d of a file of %d bytes; the file is cut off or damaged", base, total)
	case dataSize > total-base:
		return h, false, fmt.Errorf("extended header: %d bytes of segments at %d of a file of %d bytes; the file is cut off or damaged", dataSize, base, total)
	}
	return extendedHeader{int64(size), int64(base), int64(dataSize)}, true, nil
}

func read(data []byte, f *os.File) (*Program, error) {
	if !IsProgram(data) {
		return nil, fmt.Errorf("no ExecuTorch program: the file identifier ET12 is missing")
	}
	h, extended, err := readExtended(data)
	if err != nil {
		return nil, err
	}
	w, err := fbp.UnmarshalProgram(data[:h.programSize])
	if err != nil {
		return nil, fmt.Errorf("program: %w", err)
	}
	area := data[len(data):]
	if extended && h.base != 0 {
		area = data[h.base:]
		if h.dataSize != 0 {
			area = area[:h.dataSize]
		}
	}
	segs := make([]section, len(w.Segments))
	for i, s := range w.Segments {
		if s.Offset > uint64(len(area)) || s.Size > uint64(len(area))-s.Offset {
			return nil, fmt.Errorf("segments[%d]: %d bytes at %d of %d bytes of segment data", i, s.Size, s.Offset, len(area))
		}
		segs[i] = section{f, h.base + int64(s.Offset), area[s.Offset : s.Offset+s.Size : s.Offset+s.Size]}
	}
	segment := func(what string, i uint32) (section, error) {
		if int64(i) >= int64(len(segs)) {
			return section{}, fmt.Errorf("%s: segment %d of %d", what, i, len(segs))
		}
		return segs[i], nil
	}

	p := &Program{Version: w.Version}
	initialBase := make([]uint32, len(w.MutableDataSegments))
	initialLen := 0
	for i, m := range w.MutableDataSegments {
		// Index 0 of each segment is reserved; one reserved entry is enough for all.
		initialBase[i] = uint32(max(initialLen-1, 0))
		initialLen = max(initialLen-1, 0) + max(len(m.Offsets), 1)
	}
	for i, wp := range w.ExecutionPlan {
		plan, err := planFromWire(wp, initialBase)
		if err != nil {
			return nil, fmt.Errorf("execution_plan[%d]: %w", i, err)
		}
		for j, d := range wp.Delegates {
			if plan.Delegates[j].Payload, err = delegatePayload(w, d, segment); err != nil {
				return nil, fmt.Errorf("execution_plan[%d].delegates[%d]: %w", i, j, err)
			}
		}
		p.Plans = append(p.Plans, plan)
	}

	constSizes, initialSizes := p.dataSizes()
	switch {
	case len(w.ConstantBuffer) > 0:
		if w.ConstantSegment != nil && len(w.ConstantSegment.Offsets) > 0 {
			return nil, fmt.Errorf("constants stand both in the flatbuffer and in a segment")
		}
		p.Constants = make([]Blob, len(w.ConstantBuffer))
		for i, b := range w.ConstantBuffer[1:] {
			p.Constants[i+1] = Bytes(nonNil(b.Storage))
		}
	case w.ConstantSegment != nil && len(w.ConstantSegment.Offsets) > 1:
		if p.Constants, err = pieces("constant_segment", w.ConstantSegment, segment, constSizes, 0); err != nil {
			return nil, err
		}
	}
	for i, m := range w.MutableDataSegments {
		what := fmt.Sprintf("mutable_data_segments[%d]", i)
		part, err := pieces(what, m, segment, initialSizes, initialBase[i])
		if err != nil {
			return nil, err
		}
		if len(p.Initial) > 0 {
			part = part[1:]
		}
		p.Initial = append(p.Initial, part...)
	}
	for i, n := range w.NamedData {
		s, err := segment(fmt.Sprintf("named_data[%d] %q", i, n.Key), n.SegmentIndex)
		if err != nil {
			return nil, err
		}
		p.Named = append(p.Named, NamedData{Key: n.Key, Data: s})
	}
	// The reserved entry alone says nothing.
	if len(p.Constants) == 1 {
		p.Constants = nil
	}
	if len(p.Initial) == 1 {
		p.Initial = nil
	}
	if err := p.Check(); err != nil {
		return nil, err
	}
	return p, nil
}

func delegatePayload(w *fbp.Program, d *fbp.BackendDelegate, segment func(string, uint32) (section, error)) (Blob, error) {
	if d.Processed == nil {
		return nil, fmt.Errorf("no data reference")
	}
	switch i := d.Processed.Index; d.Processed.Location {
	case fbp.DataLocationInline:
		if int64(i) >= int64(len(w.BackendDelegateData)) {
			return nil, fmt.Errorf("inline data %d of %d", i, len(w.BackendDelegateData))
		}
		return Bytes(nonNil(w.BackendDelegateData[i].Data)), nil
	case fbp.DataLocationSegment:
		return segment("processed", i)
	}
	return nil, fmt.Errorf("data location %v", d.Processed.Location)
}

// dataSizes gives, per index of Constants and Initial that a tensor names, how many
// bytes tensors need of it.
func (p *Program) dataSizes() (constants, initial map[uint32]int64) {
	constants, initial = map[uint32]int64{}, map[uint32]int64{}
	for _, plan := range p.Plans {
		for _, v := range plan.Values {
			t, ok := v.(*Tensor)
			if !ok || t.Data == 0 || t.Extra != nil && t.Extra.Location == External {
				continue
			}
			n, err := t.NBytes()
			if err != nil {
				// Check says what is wrong with it.
				continue
			}
			sizes := constants
			if t.Alloc != nil {
				sizes = initial
			}
			sizes[t.Data] = max(sizes[t.Data], n)
		}
	}
	return constants, initial
}

// pieces cuts a segment at its offsets. The file does not keep the pieces' sizes: a
// piece is as long as tensors need it, or else reaches to the next piece. Index i of
// sizes is piece i-base.
func pieces(what string, w *fbp.SubsegmentOffsets, segment func(string, uint32) (section, error), sizes map[uint32]int64, base uint32) ([]Blob, error) {
	s, err := segment(what, w.SegmentIndex)
	if err != nil {
		return nil, err
	}
	n := uint64(len(s.data))
	sorted := append([]uint64{n}, w.Offsets...)
	sort.Slice(sorted, func(i, j int) bool { return sorted[i] < sorted[j] })
	blobs := make([]Blob, max(len(w.Offsets), 1))
	for i, off := range w.Offsets {
		if i == 0 {
			continue
		}
		if off > n {
			return nil, fmt.Errorf("%s: offsets[%d] is %d, the segment has %d bytes", what, i, off, n)
		}
		var end uint64
		if size, ok := sizes[base+uint32(i)]; ok {
			if uint64(size) > n-off {
				return nil, fmt.Errorf("%s: offsets[%d]: %d bytes at %d of %d", what, i, size, off, n)
			}
			end = off + uint64(size)
		} else {
			next := sort.Search(len(sorted), func(k int) bool { return sorted[k] > off })
			end = n
			if next < len(sorted) {
				end = min(n, sorted[next])
			}
		}
		blobs[i] = section{s.f, s.off + int64(off), s.data[off:end:end]}
	}
	return blobs, nil
}
