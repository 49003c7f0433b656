package npz

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// The file was written by numpy.savez(x=arange(6, dtype=float32).reshape(2, 3), f=asfortranarray(int64 2 by 2), s=int8(7)).
func TestReadsNumPy(t *testing.T) {
	got, err := Read(filepath.Join("testdata", "numpy.npz"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Array{
		"x": {DType: "float32", Shape: []int64{2, 3}, Data: []byte{0, 0, 0, 0, 0, 0, 128, 63, 0, 0, 0, 64, 0, 0, 64, 64, 0, 0, 128, 64, 0, 0, 160, 64}},
		"f": {DType: "int64", Shape: []int64{2, 2}, Fortran: true, Data: le(0, 2, 1, 3)},
		"s": {DType: "int8", Data: []byte{7}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

func le(ks ...byte) []byte {
	var b []byte
	for _, k := range ks {
		b = append(b, k, 0, 0, 0, 0, 0, 0, 0)
	}
	return b
}

func TestRoundTrip(t *testing.T) {
	want := map[string]Array{
		"a": {DType: "bool", Shape: []int64{3}, Data: []byte{1, 0, 1}}, "b": {DType: "float64", Shape: []int64{0, 2}, Data: []byte{}},
		"c": {DType: "int16", Shape: []int64{1, 2}, Data: []byte{1, 2, 3, 4}},
	}
	path := filepath.Join(t.TempDir(), "x.npz")
	var b bytes.Buffer
	if err := Write(&b, want); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	got, err := Read(path)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	if err := WriteArray(&b, Array{DType: "bfloat16"}); err == nil {
		t.Error("bfloat16 written")
	}
}

func TestRefuses(t *testing.T) {
	array := func(head string, data string) string {
		return "\x93NUMPY\x01\x00" + string([]byte{byte(len(head)), byte(len(head) >> 8)}) + head + data
	}
	for name, src := range map[string]string{
		"empty": "", "other": "PK345678", "short header": "\x93NUMPY\x01\x00\x50\x00{'descr'", "long header": "\x93NUMPY\x02\x00\xff\xff\xff\xff",
		"object": array("{'descr': '|O8', 'fortran_order': False, 'shape': (1,), }\n", "12345678"),
		"big":    array("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }\n", "1234"),
		"short":  array("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", "1234"),
		"long":   array("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }\n", "12345"),
		"huge":   array("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }\n", ""),
	} {
		if a, err := ReadArray(strings.NewReader(src)); err == nil {
			t.Errorf("%s: %v", name, a)
		}
	}
}
