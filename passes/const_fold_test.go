package passes_test

import (
	"bytes"
	"testing"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/passes"
)

// readStorage counts how often its bytes are asked for.
type readStorage struct {
	b     []byte
	reads int
}

func (s *readStorage) Size() int64 { return int64(len(s.b)) }

func (s *readStorage) Bytes() ([]byte, error) {
	s.reads++
	return s.b, nil
}

// A large result of an operator that cannot run is computed when its bytes are asked for, not in the pass.
func TestFoldLater(t *testing.T) {
	g := parse(t, `graph @f(%w: i8[64, 64] param "w", %x: f32[64] user) -> (%2) stage edge {
  %1 = aten._to_copy(%w, dtype=f32) : f32[64, 64]
  %2 = aten.add.Tensor(%1, %x) : f32[64, 64]
}`)
	st := &readStorage{b: bytes.Repeat([]byte{3}, 64*64)}
	g.Inputs[0].Data = &ir.Data{DType: ops.Int8, Sizes: []int64{64, 64}, Storage: st, Entry: "w"}
	ctx := &passes.Context{FoldLimit: 16, Legal: func(n *ir.Node) *ir.Diag {
		if n.Op == ops.AtenUnderToCopyDefault {
			return n.Diag("no-kernel", "declined", "")
		}
		return nil
	}}
	if err := (passes.Pipeline{passes.ConstFold, passes.DCE}).Run(ctx, g); err != nil {
		t.Fatal(err)
	}
	if st.reads != 0 {
		t.Errorf("the weight was read %d times", st.reads)
	}
	if g.NumNodes() != 1 || len(g.Inputs) != 2 {
		t.Fatalf("%d nodes and %d inputs are left", g.NumNodes(), len(g.Inputs))
	}
	d := g.Inputs[1].Data
	b, err := d.Compact()
	if err != nil {
		t.Fatal(err)
	}
	if d.DType != ops.Float32 || len(b) != 4*64*64 || !bytes.Equal(b[:4], []byte{0, 0, 0x40, 0x40}) {
		t.Errorf("%s, %d bytes, % x", d.DType, len(b), b[:4])
	}
}
