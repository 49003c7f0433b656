package xnnpack

import (
	"math"
	"slices"
	"testing"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ops"
)

// Scales of groups lie as two bfloat16 each: together they are the scale, and neither is zero, which the delegate refuses.
func TestSplitScales(t *testing.T) {
	in := func(fs ...float32) *quantWeight {
		return &quantWeight{scale: &ir.Input{Data: &ir.Data{
			DType: ops.Float32, Sizes: []int64{int64(len(fs))}, Storage: ir.MemStorage(floatBytes(fs)),
		}}}
	}
	if _, fine, err := in(0.5, 2).splitScales(); err != nil || fine != nil {
		t.Errorf("exact scales have a rest: %v %v", fine, err)
	}
	if got, fine, err := in(0.01, 0.3, 1.00390625, math.MaxFloat32).roundScales(); err != nil || fine != nil ||
		!slices.Equal(got, []uint16{0x3c24, 0x3e9a, 0x3f80, 0x7f7f}) {
		t.Errorf("rounded to %x %v %v", got, fine, err)
	}
	scales := []float32{0.01, 0.5, 0.3, 1e-30}
	coarse, fine, err := in(scales...).splitScales()
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range scales {
		if coarse[i] == 0 || fine[i] == 0 {
			t.Errorf("%g: a scale of zero", s)
		}
		got := float64(fromBFloat16(coarse[i])) + float64(fromBFloat16(fine[i]))
		if d := got/float64(s) - 1; d > 0 && d > 1e-6 || d < -1e-4 {
			t.Errorf("%g: split to %g", s, got)
		}
	}
}
