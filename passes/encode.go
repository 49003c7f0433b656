package passes

import (
	"encoding/binary"
	"math"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ops"
)

// encode writes numbers as elements of a type, rounded to nearest even.
func encode(t ir.DType, vals []float64) []byte {
	le := binary.LittleEndian
	var b []byte
	for _, f := range vals {
		switch t {
		case ops.Float64:
			b = le.AppendUint64(b, math.Float64bits(f))
		case ops.Float32:
			b = le.AppendUint32(b, math.Float32bits(float32(f)))
		case ops.BFloat16:
			b = le.AppendUint16(b, bfloat16Bits(float32(f)))
		case ops.Float16:
			b = le.AppendUint16(b, float16Bits(f))
		case ops.Int64, ops.Uint64:
			b = le.AppendUint64(b, uint64(int64(f)))
		case ops.Int32, ops.Uint32:
			b = le.AppendUint32(b, uint32(int64(f)))
		case ops.Int16, ops.Uint16:
			b = le.AppendUint16(b, uint16(int64(f)))
		default:
			b = append(b, byte(int64(f)))
		}
	}
	return b
}

func bfloat16Bits(f float32) uint16 {
	u := math.Float32bits(f)
	if f != f {
		return uint16(u>>16) | 0x40
	}
	return uint16((u + 0x7fff + u>>16&1) >> 16)
}

func float16Bits(f float64) uint16 {
	sign := uint16(0)
	if math.Signbit(f) {
		sign, f = 0x8000, -f
	}
	switch {
	case f != f:
		return sign | 0x7e00
	case f >= 65520:
		return sign | 0x7c00
	case f < 0x1p-14:
		return sign | uint16(math.RoundToEven(f*0x1p24))
	}
	exp := math.Floor(math.Log2(f))
	if math.Ldexp(1, int(exp)) > f {
		exp--
	}
	m := math.RoundToEven(math.Ldexp(f, 10-int(exp))) // 1024…2048
	return sign | uint16(int(exp+14)<<10+int(m))
}
