package program

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ops"
)

// A strided tensor is written as Compact gives it, whatever the strides; pieces of the buffer's size and more included.
func TestBlobGathers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	store := make([]byte, 9<<20)
	for i := range store {
		store[i] = byte(r.Uint32())
	}
	for _, d := range []*ir.Data{
		{DType: ops.Float32, Sizes: []int64{3, 4, 5}, Strides: []int64{1, 3, 12}, Offset: 7},
		{DType: ops.Int8, Sizes: []int64{4, 3}, Strides: []int64{0, 2}},
		{DType: ops.Float16, Sizes: []int64{2, 2 << 20}, Strides: []int64{3, 1}},
		{DType: ops.Int64, Sizes: []int64{1000, 1001}, Strides: []int64{1, 1000}},
		{DType: ops.Int64, Sizes: []int64{3, 0, 2}, Strides: []int64{1, 1, 2}},
		{DType: ops.Uint8, Sizes: []int64{5}, Strides: []int64{3}},
	} {
		d.Storage = ir.MemStorage(store)
		want, err := d.Compact()
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		b := Blob(d)
		n, err := b.WriteTo(&got)
		if err != nil {
			t.Fatal(err)
		}
		if n != b.Size() || !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%v by %v: %d bytes, %d in all; the contents differ: %v", d.Sizes, d.Strides, n, b.Size(), !bytes.Equal(got.Bytes(), want))
		}
	}
}
