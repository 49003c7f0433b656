package mlx

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/lathe-ml/lathe/ir"
	"github.com/x448/float16"
)

// gguf is a kind of llama.cpp's k-quants: blocks of 256 numbers with the scales of their groups beside them. Unpacked, scales
// and biases are kept in single precision: a bias takes most of a number away again, so that its rounding would show.
type gguf struct {
	block int64 // bytes
	bits  int64
	group int64
	// read gives a block's numbers, counted from zero, and of each group what they are times and what is added then.
	read func(b []byte, q *[256]byte, scale, bias []float32)
}

const ggufNumbers = 256 // of a block

var ggufKinds = map[string]*gguf{
	"q4_k": {block: 144, bits: 4, group: 32, read: func(b []byte, q *[256]byte, scale, bias []float32) { readQ45K(b, nil, b[16:], q, scale, bias) }},
	"q5_k": {block: 176, bits: 5, group: 32, read: func(b []byte, q *[256]byte, scale, bias []float32) { readQ45K(b, b[16:48], b[48:], q, scale, bias) }},
	"q6_k": {block: 210, bits: 6, group: 16, read: readQ6K},
}

func half(b []byte) float32 { return float16.Frombits(uint16(b[0]) | uint16(b[1])<<8).Float32() }

// readQ45K reads two factors in half precision, eight pairs of a scale and a minimum in six bits each, which these factors
// multiply, and numbers of four bits: low halves of 32 bytes, then the high ones. A fifth bit stands in a plane of its own.
func readQ45K(b, high, low []byte, q *[256]byte, scale, bias []float32) {
	d, dmin, s := half(b), half(b[2:]), b[4:16]
	for g := range 8 {
		sc, mn := s[g%4]&63, s[g%4+4]&63
		if g >= 4 {
			sc, mn = s[g+4]&15|s[g-4]>>6<<4, s[g+4]>>4|s[g]>>6<<4
		}
		scale[g], bias[g] = d*float32(sc), -dmin*float32(mn)
		for i := range 32 {
			x := low[g/2*32+i] >> (g % 2 * 4) & 15
			if high != nil {
				x |= high[i] >> g & 1 << 4
			}
			q[g*32+i] = x
		}
	}
}

// readQ6K reads low halves, two high bits four to a byte, sixteen signed scales and the factor of all. The numbers count
// from -32.
func readQ6K(b []byte, q *[256]byte, scale, bias []float32) {
	d := half(b[208:])
	for i := range q {
		h, k, j := i/128, i/32%4, i%32
		low := b[h*64+k%2*32+j] >> (k / 2 * 4) & 15
		q[i] = low | b[128+h*32+j]>>(2*k)&3<<4
	}
	for g := range 16 {
		scale[g] = d * float32(int8(b[192+g]))
		bias[g] = -32 * scale[g]
	}
}

// unpackGGUF is unpack for rows of blocks.
func unpackGGUF(n *ir.Node, q *ir.Input) (*packed, string) {
	kind, _ := n.ArgNamed("ggml_type").Str()
	f := ggufKinds[kind]
	switch {
	case q == nil:
		return nil, "weights that are computed"
	case f == nil:
		return nil, fmt.Sprintf("blocks of kind %q", kind)
	case q.Data.DType.Size() != 1 || len(q.Data.Sizes) != 2 || q.Data.Sizes[1]%f.block != 0 || q.Data.Sizes[1] == 0:
		return nil, "rows that are no whole blocks"
	case !n.Out().Type.DType.IsFloat() || scalarType(n.Out().Type.DType) < 0:
		return nil, fmt.Sprintf("weights unpacked to %s", n.Out().Type.DType)
	}
	return &packed{
		mode: "affine", bits: f.bits, group: f.group, coarse: f.group, lead: q.Data.Sizes[:1], cols: q.Data.Sizes[1] / f.block * ggufNumbers,
		out: n.Out().Type.DType, q: q, gguf: f,
	}, ""
}

// ggufPart is one of the constants that blocks are unpacked into.
type ggufPart int

const (
	ggufWords ggufPart = iota
	ggufScales
	ggufBiases
)

// ggufBlob is a part of a weight kept in blocks, made while it is written.
type ggufBlob struct {
	p    *packed
	part ggufPart
}

func (b *ggufBlob) Size() int64 {
	n := b.p.rows() * b.p.cols
	if b.part == ggufWords {
		return n * b.p.bits / 8
	}
	return n / b.p.group * b.p.scaleType().Size()
}

func (b *ggufBlob) WriteTo(w io.Writer) (int64, error) {
	raw, err := b.p.q.Data.Compact()
	if err != nil {
		return 0, err
	}
	f := b.p.gguf
	out := bufio.NewWriterSize(w, 1<<16)
	var q [256]byte
	var factors [2][16]float32
	groups := ggufNumbers / f.group
	scratch := make([]byte, 0, 256)
	n := int64(0)
	for ; int64(len(raw)) >= f.block; raw = raw[f.block:] {
		f.read(raw[:f.block], &q, factors[0][:groups], factors[1][:groups])
		scratch = scratch[:0]
		switch b.part {
		case ggufWords:
			scratch = packBits(scratch, q[:], uint(f.bits))
		case ggufScales:
			scratch = appendFloats(scratch, factors[0][:groups])
		case ggufBiases:
			scratch = appendFloats(scratch, factors[1][:groups])
		}
		k, err := out.Write(scratch)
		n += int64(k)
		if err != nil {
			return n, err
		}
	}
	return n, out.Flush()
}

// packBits appends numbers of a few bits, least significant first. They fill whole bytes.
func packBits(dst, q []byte, bits uint) []byte {
	var acc, have uint
	for _, x := range q {
		acc |= uint(x) << have
		for have += bits; have >= 8; have -= 8 {
			dst = append(dst, byte(acc))
			acc >>= 8
		}
	}
	return dst
}

func appendFloats(dst []byte, fs []float32) []byte {
	for _, f := range fs {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(f))
	}
	return dst
}
