package text

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ops"
)

// data prints the contents of a small constant as a list in row-major order. Floats are the shortest text that reads back
// to the same bits; what has no decimal form (other NaNs, eight-bit floats, complex numbers) is hexadecimal.
func (p *printer) data(d *ir.Data) {
	b, err := d.Compact()
	if err != nil {
		return // the contents cannot be read: left to Options.Data like a large constant
	}
	p.s(" = [")
	size := int(d.DType.Size())
	for i := 0; i*size < len(b); i++ {
		if i > 0 {
			p.s(", ")
		}
		p.buf = appendElem(p.buf, d.DType, b[i*size:(i+1)*size])
	}
	p.s("]")
}

func appendElem(out []byte, d ir.DType, b []byte) []byte {
	le := binary.LittleEndian
	raw := func() []byte {
		out = append(out, "0x"...)
		for i := len(b) - 1; i >= 0; i-- {
			out = hex.AppendEncode(out, b[i:i+1])
		}
		return out
	}
	switch d {
	case ops.Bool:
		if b[0] > 1 {
			return raw()
		}
		return strconv.AppendBool(out, b[0] != 0)
	case ops.Uint8:
		return strconv.AppendUint(out, uint64(b[0]), 10)
	case ops.Int8:
		return strconv.AppendInt(out, int64(int8(b[0])), 10)
	case ops.Uint16:
		return strconv.AppendUint(out, uint64(le.Uint16(b)), 10)
	case ops.Int16:
		return strconv.AppendInt(out, int64(int16(le.Uint16(b))), 10)
	case ops.Uint32:
		return strconv.AppendUint(out, uint64(le.Uint32(b)), 10)
	case ops.Int32:
		return strconv.AppendInt(out, int64(int32(le.Uint32(b))), 10)
	case ops.Uint64:
		return strconv.AppendUint(out, le.Uint64(b), 10)
	case ops.Int64:
		return strconv.AppendInt(out, int64(le.Uint64(b)), 10)
	case ops.Float16, ops.BFloat16, ops.Float32:
		var f float32
		switch d {
		case ops.Float16:
			f = halfToFloat(le.Uint16(b))
		case ops.BFloat16:
			f = math.Float32frombits(uint32(le.Uint16(b)) << 16)
		default:
			f = math.Float32frombits(le.Uint32(b))
		}
		if f != f && string(b) != string(quietNaN(d)) {
			return raw()
		}
		return appendFloat(out, float64(f), 32)
	case ops.Float64:
		f := math.Float64frombits(le.Uint64(b))
		if f != f && string(b) != string(quietNaN(d)) {
			return raw()
		}
		return appendFloat(out, f, 64)
	}
	return raw()
}

// quietNaN is the NaN that prints as "nan".
func quietNaN(d ir.DType) []byte {
	switch d {
	case ops.Float16:
		return []byte{0x00, 0x7e}
	case ops.BFloat16:
		return []byte{0xc0, 0x7f}
	case ops.Float32:
		return []byte{0, 0, 0xc0, 0x7f}
	}
	return []byte{0, 0, 0, 0, 0, 0, 0xf8, 0x7f}
}

// parseElem is the inverse of appendElem.
func parseElem(d ir.DType, s string) ([]byte, error) {
	size := int(d.Size())
	b := make([]byte, 8)
	le := binary.LittleEndian
	bad := func() ([]byte, error) { return nil, fmt.Errorf("%q is no %s", s, d) }
	if len(s) > 2 && s[:2] == "0x" {
		h, err := hex.DecodeString(s[2:])
		if err != nil || len(h) != size {
			return bad()
		}
		for i, j := 0, len(h)-1; i < j; i, j = i+1, j-1 {
			h[i], h[j] = h[j], h[i]
		}
		return h, nil
	}
	switch {
	case s == "nan" && ops.Floats.Has(d):
		return quietNaN(d), nil
	case d == ops.Bool:
		switch s {
		case "true":
			return []byte{1}, nil
		case "false":
			return []byte{0}, nil
		}
		return bad()
	case d.IsInt() && d.IsSigned():
		k, err := strconv.ParseInt(s, 10, size*8)
		if err != nil {
			return bad()
		}
		le.PutUint64(b, uint64(k))
	case d.IsInt():
		k, err := strconv.ParseUint(s, 10, size*8)
		if err != nil {
			return bad()
		}
		le.PutUint64(b, k)
	case d == ops.Float64:
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return bad()
		}
		le.PutUint64(b, math.Float64bits(f))
	case d == ops.Float32 || d == ops.BFloat16 || d == ops.Float16:
		f, err := strconv.ParseFloat(s, 32)
		if err != nil {
			return bad()
		}
		bits := math.Float32bits(float32(f))
		switch d {
		case ops.Float32:
			le.PutUint32(b, bits)
		case ops.BFloat16:
			if bits&0xffff != 0 {
				return nil, fmt.Errorf("%q has more digits than a bf16", s)
			}
			le.PutUint16(b, uint16(bits>>16))
		default:
			h := floatToHalf(float32(f))
			if halfToFloat(h) != float32(f) {
				return nil, fmt.Errorf("%q has more digits than an f16", s)
			}
			le.PutUint16(b, h)
		}
	default:
		return bad()
	}
	return b[:size], nil
}

func halfToFloat(h uint16) float32 {
	sign := uint32(h>>15) << 31
	exp := uint32(h>>10) & 31
	frac := uint32(h) & 0x3ff
	switch exp {
	case 0:
		f := float32(frac) * (1.0 / (1 << 24))
		if sign != 0 {
			f = -f
			if frac == 0 {
				f = math.Float32frombits(sign)
			}
		}
		return f
	case 31:
		return math.Float32frombits(sign | 0xff<<23 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}

// floatToHalf is right for numbers that a half holds exactly, which are all that parseElem lets through.
func floatToHalf(f float32) uint16 {
	bits := math.Float32bits(f)
	sign := uint16(bits>>16) & 0x8000
	exp := int(bits>>23)&0xff - 112
	switch {
	case exp >= 31:
		h := sign | 31<<10 | uint16(bits>>13)&0x3ff
		return h
	case exp <= 0:
		if exp < -10 {
			return sign
		}
		frac := bits&0x7fffff | 1<<23
		return sign | uint16(frac>>uint(14-exp))
	}
	return sign | uint16(exp)<<10 | uint16(bits>>13)&0x3ff
}
