package etrt

import (
	"math"
	"strings"
	"testing"
)

func f32(shape []int64, vs ...float32) Value {
	t := &Tensor{DType: F32, Shape: shape}
	for _, v := range vs {
		b := math.Float32bits(v)
		t.Data = append(t.Data, byte(b), byte(b>>8), byte(b>>16), byte(b>>24))
	}
	return TensorValue(t)
}

func TestCompare(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	want := []Value{f32([]int64{2}, 1, nan), None(), IntValue(3)}
	for _, tc := range []struct {
		name string
		got  []Value
		want string // "" for equal
	}{
		{"within tolerance", []Value{f32([]int64{2}, 1.0005, nan), IntValue(3)}, ""},
		{"mutated inputs come first", []Value{f32([]int64{1}, 9), f32([]int64{2}, 1, nan), IntValue(3)}, ""},
		{"outside tolerance", []Value{f32([]int64{2}, 1.1, nan), IntValue(3)}, "1 of 2 elements differ, the worst at [0]"},
		{"NaN is not a number", []Value{f32([]int64{2}, 1, 7), IntValue(3)}, "the worst at [1]: 7, want NaN"},
		{"infinity is not near", []Value{f32([]int64{2}, inf, nan), IntValue(3)}, "+Inf, want 1"},
		{"shape", []Value{f32([]int64{1, 2}, 1, nan), IntValue(3)}, "float32[1 2], want float32[2]"},
		{"integer", []Value{f32([]int64{2}, 1, nan), IntValue(4)}, "output 1: 4, want 3"},
		{"kind", []Value{f32([]int64{2}, 1, nan), FloatValue(3)}, "float, want int"},
		{"too few", []Value{IntValue(3)}, "1 outputs, 2 wanted"},
	} {
		err := Compare(tc.got, want, 1e-3, 0)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
	}
}

func TestDecode(t *testing.T) {
	for _, tc := range []struct {
		d    DType
		b    []byte
		want float64
	}{
		{F16, []byte{0x00, 0x3c}, 1},
		{F16, []byte{0xff, 0x7b}, 65504},
		{F16, []byte{0x01, 0x80}, -math.Ldexp(1, -24)},
		{F16, []byte{0x00, 0xfc}, math.Inf(-1)},
		{BF16, []byte{0x80, 0x3f}, 1},
		{F8E4M3, []byte{0x7e}, 448},
		{F8E4M3, []byte{0x01}, math.Ldexp(1, -9)},
		{F8E5M2, []byte{0x7b}, 57344},
		{F8E5M2, []byte{0x7c}, math.Inf(1)},
		{I8, []byte{0xff}, -1},
	} {
		if got := decode(tc.d, tc.b); got != tc.want {
			t.Errorf("%s % x: %v, want %v", tc.d, tc.b, got, tc.want)
		}
	}
	if got := decode(F8E4M3, []byte{0x7f}); !math.IsNaN(got) {
		t.Errorf("float8_e4m3fn 7f: %v, want NaN", got)
	}
}
