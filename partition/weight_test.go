package partition_test

import (
	"testing"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/partition"
)

// placed is a storage at a place of some file.
type placed struct {
	ir.MemStorage
	offset int64
}

func (p placed) FileRange() (interface{ Fd() uintptr }, int64) { return nil, p.offset }

// Weights of two archives may lie at equal places: only the method tells them apart.
func TestWeightKeyOfTwoArchives(t *testing.T) {
	key := func(method string, offset int64) string {
		g := ir.NewGraph(method+"_xnnpack_0", nil)
		g.Method = method
		in := g.AddInput("w", ir.InputParam, "l.weight", ir.StaticType(ops.Float32, 2))
		in.Data = &ir.Data{DType: ops.Float32, Sizes: []int64{2}, Storage: placed{ir.MemStorage(make([]byte, 8)), offset}}
		return partition.WeightKey(in)
	}
	if key("a", 64) == key("b", 64) {
		t.Error("two methods name different weights alike")
	}
	if again := key("a", 64); key("a", 64) != again || again == key("a", 128) {
		t.Error("within a method the place does not decide")
	}
}
