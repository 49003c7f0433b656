// Package npz reads and writes NumPy's .npz files: arrays by name in a zip file.
package npz

import (
	"archive/zip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Array is one array. Data is little-endian and row-major, or column-major where Fortran says so.
type Array struct {
	DType   string // torch's name, such as "float32"
	Shape   []int64
	Fortran bool
	Data    []byte
}

// maxArray bounds one array in memory.
const maxArray = 1 << 34

var dtypes = map[string]struct {
	torch string
	size  int64
}{
	"b1": {"bool", 1}, "u1": {"uint8", 1}, "i1": {"int8", 1}, "i2": {"int16", 2}, "u2": {"uint16", 2}, "i4": {"int32", 4}, "u4": {"uint32", 4},
	"i8": {"int64", 8}, "u8": {"uint64", 8}, "f2": {"float16", 2}, "f4": {"float32", 4}, "f8": {"float64", 8}, "c8": {"complex64", 8}, "c16": {"complex128", 16},
}

// Read reads all arrays of a file.
func Read(path string) (map[string]Array, error) {
	z, err := zip.OpenReader(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer z.Close()
	out := map[string]Array{}
	for _, f := range z.File {
		a, err := readFile(f)
		if err != nil {
			return nil, fmt.Errorf("%s: %q: %w", path, f.Name, err)
		}
		out[strings.TrimSuffix(f.Name, ".npy")] = a
	}
	return out, nil
}

func readFile(f *zip.File) (a Array, err error) {
	r, err := f.Open()
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return ReadArray(r)
}

var header = regexp.MustCompile(`^\{'descr': '([<>|=])([a-zA-Z]\d+)', 'fortran_order': (True|False), 'shape': \(([\d, ]*)\), \}\s*$`)

// ReadArray reads one array in the .npy form.
func ReadArray(r io.Reader) (Array, error) {
	var a Array
	head := make([]byte, 8)
	if _, err := io.ReadFull(r, head); err != nil {
		return a, err
	}
	if string(head[:6]) != "\x93NUMPY" {
		return a, errors.New("no .npy array")
	}
	var n uint32
	if head[6] == 1 {
		var short uint16
		if err := binary.Read(r, binary.LittleEndian, &short); err != nil {
			return a, err
		}
		n = uint32(short)
	} else if err := binary.Read(r, binary.LittleEndian, &n); err != nil {
		return a, err
	}
	if n > 1<<16 {
		return a, fmt.Errorf("a header of %d bytes", n)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return a, err
	}
	m := header.FindStringSubmatch(string(text))
	if m == nil {
		return a, fmt.Errorf("header %.80q is not understood", text)
	}
	t, ok := dtypes[m[2]]
	if !ok || m[1] == ">" {
		return a, fmt.Errorf("element type %s%s is not supported; .safetensors files hold more types", m[1], m[2])
	}
	a.DType, a.Fortran = t.torch, m[3] == "True"
	size := t.size
	for _, s := range strings.FieldsFunc(m[4], func(c rune) bool { return c == ',' || c == ' ' }) {
		k, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return a, err
		}
		if k > 0 && size > maxArray/k {
			return a, errors.New("the array is too large")
		}
		size *= k
		a.Shape = append(a.Shape, k)
	}
	// Not allocated at once: the header may promise more than there is.
	data, err := io.ReadAll(io.LimitReader(r, size+1))
	if err != nil {
		return a, err
	}
	if int64(len(data)) != size {
		return a, fmt.Errorf("%d bytes, the header says %d", len(data), size)
	}
	a.Data = data
	return a, nil
}

// Write writes arrays in the order of their names.
func Write(w io.Writer, arrays map[string]Array) error {
	z := zip.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(arrays)) {
		f, err := z.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: zip.Store})
		if err != nil {
			return err
		}
		if err := WriteArray(f, arrays[name]); err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
	}
	return z.Close()
}

// WriteArray writes one array in the .npy form.
func WriteArray(w io.Writer, a Array) error {
	code := ""
	for c, t := range dtypes {
		if t.torch == a.DType {
			code = c
			if t.size == 1 {
				code = "|" + code
			} else {
				code = "<" + code
			}
		}
	}
	if code == "" {
		return fmt.Errorf("NumPy has no element type %s; a .safetensors file can hold it", a.DType)
	}
	dims := make([]string, len(a.Shape))
	for i, k := range a.Shape {
		dims[i] = strconv.FormatInt(k, 10)
	}
	shape := strings.Join(dims, ", ")
	if len(dims) == 1 {
		shape += ","
	}
	order := "False"
	if a.Fortran {
		order = "True"
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }", code, order, shape)
	// NumPy pads so that the elements are aligned.
	text += strings.Repeat(" ", 63-(10+len(text))%64) + "\n"
	head := append([]byte("\x93NUMPY\x01\x00"), byte(len(text)), byte(len(text)>>8))
	_, err := w.Write(slices.Concat(head, []byte(text), a.Data))
	return err
}
