// Package safetensors reads and writes .safetensors files. Files are mapped into memory, not read.
package safetensors

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
)

// Sizes of one element by the format's names of element types.
var sizes = map[string]int64{
	"BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2,
	"I32": 4, "U32": 4, "F32": 4, "I64": 8, "U64": 8, "F64": 8, "C64": 8,
}

var torchNames = map[string]string{
	"BOOL": "bool", "U8": "uint8", "I8": "int8", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
	"F8_E8M0": "float8_e8m0fnu", "I16": "int16", "U16": "uint16", "F16": "float16", "BF16": "bfloat16", "I32": "int32",
	"U32": "uint32", "F32": "float32", "I64": "int64", "U64": "uint64", "F64": "float64", "C64": "complex64",
}

// DTypeOf returns the format's name ("F32") of torch's element type ("float32"), "" when it has none.
func DTypeOf(torch string) string {
	for st, t := range torchNames {
		if t == torch {
			return st
		}
	}
	return ""
}

// A header longer than this is damage, not a file anybody writes.
const maxHeader = 100 << 20

// Tensor is one entry: row-major, little-endian. In an opened file Data points into the mapping and must not be written.
type Tensor struct {
	DType string // the format's name, such as "F32" or "BF16"
	Shape []int64
	Data  []byte
}

// Torch returns torch's name of the element type, such as "float32".
func (t Tensor) Torch() string { return torchNames[t.DType] }

// File is an opened file.
type File struct {
	Tensors  map[string]Tensor
	Metadata map[string]string
	close    func() error
}

// Close unmaps the file; no Data of it may be used afterwards.
func (f *File) Close() error { return f.close() }

type entry struct {
	DType   string    `json:"dtype"`
	Shape   []int64   `json:"shape"`
	Offsets [2]uint64 `json:"data_offsets"`
}

// Open maps a file and checks its header: every tensor's bytes must lie in the file and fit its shape.
func Open(path string) (*File, error) {
	data, closer, err := mapFile(path)
	if err != nil {
		return nil, err
	}
	f, err := parse(data)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), closer())
	}
	f.close = closer
	return f, nil
}

func parse(data []byte) (*File, error) {
	if len(data) < 8 {
		return nil, errors.New("not a safetensors file: shorter than its 8-byte header length")
	}
	n := binary.LittleEndian.Uint64(data)
	if n > maxHeader || n > uint64(len(data)-8) {
		return nil, fmt.Errorf("header of %d bytes does not fit a file of %d", n, len(data))
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data[8:8+n], &raw); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	body := data[8+n:]
	f := &File{Tensors: make(map[string]Tensor, len(raw))}
	for name, msg := range raw {
		if name == "__metadata__" {
			if err := json.Unmarshal(msg, &f.Metadata); err != nil {
				return nil, fmt.Errorf("metadata: %w", err)
			}
			continue
		}
		var e entry
		if err := json.Unmarshal(msg, &e); err != nil {
			return nil, fmt.Errorf("tensor %q: %w", name, err)
		}
		want, err := nbytes(e.DType, e.Shape)
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", name, err)
		}
		lo, hi := e.Offsets[0], e.Offsets[1]
		if lo > hi || hi > uint64(len(body)) {
			return nil, fmt.Errorf("tensor %q: bytes [%d, %d) lie outside the %d bytes of data", name, lo, hi, len(body))
		}
		if hi-lo != uint64(want) {
			return nil, fmt.Errorf("tensor %q: %s%v needs %d bytes, the entry has %d", name, e.DType, e.Shape, want, hi-lo)
		}
		f.Tensors[name] = Tensor{DType: e.DType, Shape: e.Shape, Data: body[lo:hi:hi]}
	}
	return f, nil
}

func nbytes(dtype string, shape []int64) (int64, error) {
	n, ok := sizes[dtype]
	if !ok {
		return 0, fmt.Errorf("element type %q is not known", dtype)
	}
	for _, s := range shape {
		if s < 0 || (s > 0 && n > math.MaxInt64/s) {
			return 0, fmt.Errorf("shape %v is not possible", shape)
		}
		n *= s
	}
	return n, nil
}

// Write writes tensors in the order of their names, so that equal input gives equal bytes.
func Write(w io.Writer, tensors map[string]Tensor) error {
	head := make(map[string]entry, len(tensors))
	names := slices.Sorted(maps.Keys(tensors))
	off := uint64(0)
	for _, name := range names {
		t := tensors[name]
		want, err := nbytes(t.DType, t.Shape)
		if err != nil {
			return fmt.Errorf("tensor %q: %w", name, err)
		}
		if want != int64(len(t.Data)) {
			return fmt.Errorf("tensor %q: %s%v needs %d bytes, has %d", name, t.DType, t.Shape, want, len(t.Data))
		}
		shape := t.Shape
		if shape == nil {
			shape = []int64{}
		}
		head[name] = entry{t.DType, shape, [2]uint64{off, off + uint64(want)}}
		off += uint64(want)
	}
	h, err := json.Marshal(head)
	if err != nil {
		return err
	}
	for len(h)%8 != 0 {
		h = append(h, ' ')
	}
	b := bufio.NewWriter(w)
	// bufio keeps the first error for Flush.
	b.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(h)))) //nolint:errcheck
	b.Write(h)                                                     //nolint:errcheck
	for _, name := range names {
		b.Write(tensors[name].Data) //nolint:errcheck
	}
	return b.Flush()
}
