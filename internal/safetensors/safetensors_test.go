package safetensors

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestRoundTrip(t *testing.T) {
	in := map[string]Tensor{
		"b":      {DType: "F32", Shape: []int64{1, 2}, Data: []byte{0, 0, 128, 63, 0, 0, 0, 64}},
		"a":      {DType: "BOOL", Shape: []int64{3}, Data: []byte{1, 0, 1}},
		"scalar": {DType: "I64", Shape: []int64{}, Data: make([]byte, 8)},
		"empty":  {DType: "BF16", Shape: []int64{0, 4}, Data: []byte{}},
	}
	var b bytes.Buffer
	if err := Write(&b, in); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.safetensors")
	if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if !reflect.DeepEqual(f.Tensors, in) {
		t.Errorf("%v, want %v", f.Tensors, in)
	}
	if got := f.Tensors["b"].Torch(); got != "float32" || DTypeOf(got) != "F32" {
		t.Errorf("torch's name %q", got)
	}
}

func TestDamage(t *testing.T) {
	file := func(header string, body int) []byte {
		b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
		return append(append(b, header...), make([]byte, body)...)
	}
	for _, tc := range []struct {
		data []byte
		want string
	}{
		{nil, "shorter than"},
		{[]byte{255, 255, 255, 255, 255, 255, 255, 255, '{'}, "does not fit"},
		{file(`{"a":`, 0), "header"},
		{file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 4), "lie outside"},
		{file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}}`, 8), "lie outside"},
		{file(`{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}`, 8), "needs 12 bytes"},
		{file(`{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,8]}}`, 8), "not possible"},
		{file(`{"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}}`, 0), "not possible"},
		{file(`{"a":{"dtype":"Q9","shape":[],"data_offsets":[0,1]}}`, 1), `"Q9" is not known`},
	} {
		if _, err := parse(tc.data); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: %v, want %q", tc.data, err, tc.want)
		}
	}
}
