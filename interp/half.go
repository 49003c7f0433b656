package interp

import "math"

// f16to32 widens an IEEE half.
func f16to32(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exp, man := uint32(h>>10)&0x1f, uint32(h)&0x3ff
	switch {
	case exp == 0x1f:
		return math.Float32frombits(sign | 0x7f800000 | man<<13)
	case exp != 0:
		return math.Float32frombits(sign | (exp+112)<<23 | man<<13)
	case man == 0:
		return math.Float32frombits(sign)
	}
	v := float32(man) * (1.0 / (1 << 24))
	if sign != 0 {
		return -v
	}
	return v
}

// f32to16 rounds to the nearest half, ties to even.
func f32to16(f float32) uint16 {
	b := math.Float32bits(f)
	sign := uint16(b>>16) & 0x8000
	a := b & 0x7fffffff
	switch {
	case a > 0x7f800000:
		return sign | 0x7e00
	case a >= 0x477ff000: // rounds past the largest half
		return sign | 0x7c00
	case a < 0x38800000: // below the smallest normal half: count in units of 2^-24
		return sign | uint16(math.RoundToEven(float64(math.Float32frombits(a))*(1<<24)))
	}
	a += 0xfff + a>>13&1
	return sign | uint16(a>>13-112<<10)
}

func bf16to32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// f32tobf16 rounds to the nearest bfloat16, ties to even.
func f32tobf16(f float32) uint16 {
	b := math.Float32bits(f)
	if b&0x7fffffff > 0x7f800000 {
		return 0x7fc0
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// f8format is a float of eight bits.
type f8format struct {
	exp, man, bias int
	// fnuz has one zero and one NaN, 0x80; otherwise ieee tells whether the top exponent holds infinities and NaNs or only
	// its last mantissa is a NaN.
	fnuz, ieee bool
}

var (
	f8e4m3fn   = f8format{exp: 4, man: 3, bias: 7}
	f8e5m2     = f8format{exp: 5, man: 2, bias: 15, ieee: true}
	f8e4m3fnuz = f8format{exp: 4, man: 3, bias: 8, fnuz: true}
	f8e5m2fnuz = f8format{exp: 5, man: 2, bias: 16, fnuz: true}
)

func (f f8format) decode(b uint8) float64 {
	if f.fnuz && b == 0x80 {
		return math.NaN()
	}
	e, m := int(b>>f.man)&(1<<f.exp-1), int(b)&(1<<f.man-1)
	var v float64
	switch {
	case f.ieee && e == 1<<f.exp-1 && m == 0:
		v = math.Inf(1)
	case f.ieee && e == 1<<f.exp-1, !f.ieee && !f.fnuz && b&0x7f == 0x7f:
		return math.NaN()
	case e == 0:
		v = math.Ldexp(float64(m), 1-f.bias-f.man)
	default:
		v = math.Ldexp(float64(m+1<<f.man), e-f.bias-f.man)
	}
	if b&0x80 != 0 {
		return -v
	}
	return v
}

func (f f8format) encode(v float64) uint8 {
	var sign uint8
	if math.Signbit(v) {
		sign, v = 0x80, -v
	}
	nan, over := sign|0x7f, sign|0x7e // without infinities, what is too large becomes the largest
	if f.ieee {
		over = sign | 0x7c
	}
	if f.fnuz {
		nan, over = 0x80, 0x80
	}
	if math.IsNaN(v) {
		return nan
	}
	if math.IsInf(v, 0) {
		return over
	}
	if v == 0 {
		if f.fnuz {
			return 0
		}
		return sign
	}
	_, e := math.Frexp(v) // v = m * 2^e, m in [0.5, 1)
	e = max(e-1, 1-f.bias)
	code := math.RoundToEven(math.Ldexp(v, f.man-e)) // in units of the last place
	bits := int(code) + (e+f.bias-1)<<f.man
	limit := 0x7f // the NaN, where the top exponent holds numbers
	if f.ieee {
		limit = 0x7c
	}
	if f.fnuz {
		limit = 0x80
	}
	if bits >= limit {
		return over
	}
	if bits == 0 && f.fnuz {
		return 0
	}
	return sign | uint8(bits)
}

func e8m0decode(b uint8) float64 {
	if b == 0xff {
		return math.NaN()
	}
	return math.Ldexp(1, int(b)-127)
}

// e8m0encode rounds to a power of two; the sign is dropped, as torch does.
func e8m0encode(v float64) uint8 {
	b := math.Float32bits(float32(v))
	e, m := b>>23&0xff, b&0x7fffff
	if e == 0xff {
		return 0xff
	}
	if m > 0x400000 || m == 0x400000 && e > 0 {
		e++
	}
	return uint8(e)
}
