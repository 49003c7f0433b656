package mlx

import (
	"bufio"
	"fmt"
	"io"

	"github.com/lathe-ml/lathe/codegen/fb/mlx"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/partition"
)

// packed is a quantized weight in the form that the delegate multiplies by or takes rows from: rows of unsigned numbers of
// a few bits in 32-bit words, least significant first, and for each group of a row a scale and, in mode affine, a bias:
// weight = scale*number + bias.
type packed struct {
	mode  string
	bits  int64
	group int64
	// lead are the sizes before the quantized dimension, which is last; cols its size.
	lead []int64
	cols int64
	// perm brings the dimensions of the tensor into that order, nil where they are.
	perm []int
	out  ops.DType // of the dequantized tensor

	q, scale, zero *ir.Input // zero is nil for none
	global         *ir.Input // a factor of the whole tensor, nil for none
	low            int64     // the number that is stored as zero
	ready          bool      // q's bytes are the words already
	cross          bool      // scale and zero have groups first, rows second
	summand        bool      // zero is added to a scaled number, not subtracted before
	coarse         int64     // the group of scale and zero; a multiple of group
	gguf           *gguf     // q holds blocks of this kind; there is no scale beside it
}

// groups are the sizes that the delegate has kernels for, coarsest first.
var groups = []int64{128, 64, 32, 16}

// legalGroup is the coarsest group of the delegate that g is a multiple of, 0 for none. A coarser group is a row of finer
// ones with the same scale.
func legalGroup(g int64) int64 {
	for _, k := range groups {
		if g > 0 && g%k == 0 {
			return k
		}
	}
	return 0
}

// unpack gives the packed form of a tensor that is dequantized from constants, or says why it has none. It returns nothing
// at all for a tensor that is not dequantized.
func unpack(v *ir.Value) (p *packed, why string) {
	if v == nil || v.Def == nil {
		return nil, ""
	}
	n := v.Def
	weight := func(name string) *ir.Input {
		w := n.ArgNamed(name).Value()
		if w == nil {
			return nil
		}
		return partition.Weight(w)
	}
	switch n.Op {
	case ops.TorchaoDequantizeAffineDefault:
		p = &packed{mode: "affine", q: weight("input"), scale: weight("scale"), zero: weight("zero_point"), out: v.Type.DType}
		if n.ArgNamed("zero_point").Value() != nil && p.zero == nil {
			return nil, "a zero point that is computed"
		}
		return p.affine(n)
	case ops.TorchaoDequantizeInt4TensorDefault:
		p = &packed{
			mode: "affine", bits: 4, q: weight("qdata"), scale: weight("scale"), zero: weight("zero_point"), out: v.Type.DType,
			ready: true, cross: true,
		}
		g, ok := n.ArgNamed("group_size").Int()
		if p.q == nil || p.scale == nil || p.zero == nil || !ok || p.q.Data.DType.Size() != 1 || len(p.q.Data.Sizes) != 2 {
			return nil, "weights that are computed"
		}
		p.lead, p.cols, p.coarse, p.group = p.q.Data.Sizes[:1], 2*p.q.Data.Sizes[1], g, legalGroup(g)
		return p.fits()
	case ops.TorchaoDequantizeNvfp4Default:
		p = &packed{
			mode: "nvfp4", bits: 4, group: 16, coarse: 16, q: weight("qdata"), scale: weight("scale"), global: weight("per_tensor_scale"),
			out: v.Type.DType, ready: true,
		}
		g, ok := n.ArgNamed("block_size").Int()
		if p.q == nil || p.scale == nil || p.global == nil || !ok || g != 16 || len(p.q.Data.Sizes) != 2 {
			return nil, "weights that are computed, or blocks of another size than 16"
		}
		p.lead, p.cols = p.q.Data.Sizes[:1], p.q.Data.Sizes[1]*p.q.Data.DType.Size()*2
		return p.fits()
	case ops.TorchaoDequantizeGgufDefault:
		return unpackGGUF(n, weight("weight"))
	case ops.TorchaoDequantizeMxDefault:
		p = &packed{mode: "mxfp8", bits: 8, group: 32, coarse: 32, q: weight("qdata"), scale: weight("scale"), out: v.Type.DType, ready: true}
		g, ok := n.ArgNamed("block_size").Int()
		d, okd := n.ArgNamed("elem_dtype").DType()
		if p.q == nil || p.scale == nil || !ok || g != 32 || !okd || len(p.q.Data.Sizes) != 2 {
			return nil, "weights that are computed, or blocks of another size than 32"
		}
		p.lead, p.cols = p.q.Data.Sizes[:1], p.q.Data.Sizes[1]
		switch {
		case d == ops.Float8E4M3FN && p.q.Data.DType.Size() == 1:
		case d == ops.Float4E2M1FNX2 && p.q.Data.DType.Size() == 1:
			p.mode, p.bits = "mxfp4", 4
			p.cols *= 2
		default:
			return nil, fmt.Sprintf("elements of %s in blocks", d)
		}
		return p.fits()
	}
	return nil, ""
}

// affine reads the arguments of torchao's dequantize_affine.
func (p *packed) affine(n *ir.Node) (*packed, string) {
	block, ok := n.ArgNamed("block_size").IntList()
	lo, ok2 := n.ArgNamed("quant_min").Int()
	hi, ok3 := n.ArgNamed("quant_max").Int()
	if p.q == nil || p.scale == nil || !ok || !ok2 || !ok3 {
		return nil, "weights or settings that are computed"
	}
	q := p.q.Data
	if q.DType != ops.Int8 && q.DType != ops.Uint8 {
		return nil, fmt.Sprintf("numbers kept as %s", q.DType)
	}
	for p.bits = 2; p.bits <= 8 && hi-lo+1 != 1<<p.bits; p.bits++ {
	}
	if p.bits > 8 || p.bits == 7 {
		return nil, fmt.Sprintf("numbers from %d to %d", lo, hi)
	}
	p.low = lo
	at := -1
	for i, k := range block {
		if k != 1 && at >= 0 {
			return nil, "blocks over several dimensions"
		}
		if k != 1 {
			at = i
		}
	}
	rank := len(q.Sizes)
	if at < 0 || rank < 2 || len(block) != rank {
		return nil, "blocks of single elements"
	}
	p.coarse = block[at]
	p.group = legalGroup(p.coarse)
	if at != rank-1 {
		for i := range rank {
			if i != at {
				p.perm = append(p.perm, i)
			}
		}
		p.perm = append(p.perm, at)
	}
	sizes := q.Sizes
	if p.perm != nil {
		sizes = ir.Permuted(sizes, p.perm)
	}
	p.lead, p.cols = sizes[:rank-1], sizes[rank-1]
	for _, in := range []*ir.Input{p.scale, p.zero} {
		if in == nil {
			continue
		}
		if len(in.Data.Sizes) != rank {
			return nil, "scales of another rank than the weights"
		}
		for i, k := range in.Data.Sizes {
			want := q.Sizes[i]
			if i == at {
				want /= p.coarse
			}
			if k != want {
				return nil, "scales that do not fit the blocks"
			}
		}
	}
	return p.fits()
}

// fits checks sizes and element types.
func (p *packed) fits() (*packed, string) {
	if p.group == 0 || p.coarse == 0 || p.cols%p.coarse != 0 {
		return nil, fmt.Sprintf("groups of %d, which are no multiple of 16", p.coarse)
	}
	if p.cols*p.bits%32 != 0 {
		return nil, fmt.Sprintf("rows of %d numbers, which do not fill whole words", p.cols)
	}
	rows := p.rows()
	if p.q.Data.Numel()*p.q.Data.DType.Size() != rows*p.cols*p.storedBits()/8 {
		return nil, "numbers that do not fill the weight"
	}
	if p.scale.Data.Numel() != rows*p.cols/p.coarse || p.zero != nil && p.zero.Data.Numel() != rows*p.cols/p.coarse {
		return nil, "scales that do not fit the weight"
	}
	if p.mode == "affine" {
		if _, ok := decode(p.scale.Data.DType, nil); !ok && scalarType(p.scale.Data.DType) < 0 {
			return nil, fmt.Sprintf("scales of %s", p.scale.Data.DType)
		}
	} else if p.scale.Data.DType.Size() != 1 {
		return nil, fmt.Sprintf("scales of %s", p.scale.Data.DType)
	}
	return p, ""
}

func (p *packed) storedBits() int64 {
	if p.ready {
		return p.bits
	}
	return 8
}

func (p *packed) rows() int64 {
	n := int64(1)
	for _, k := range p.lead {
		n *= k
	}
	return n
}

// scaleType is the element type of scales and biases in the delegate.
func (p *packed) scaleType() ops.DType {
	switch {
	case p.mode != "affine":
		return ops.Uint8
	case p.gguf != nil:
		return ops.Float32
	}
	return p.scale.Data.DType
}

func (p *packed) key(what string) string {
	k := fmt.Sprintf("%s#%s.%s.%d.%d.%v", partition.WeightKey(p.q), what, p.mode, p.bits, p.group, p.perm)
	if what != "words" && p.gguf == nil {
		k += partition.WeightKey(p.scale)
		if p.zero != nil {
			k += partition.WeightKey(p.zero)
		}
	}
	return k
}

func join(lead []int64, k int64) []int64 { return append(append([]int64(nil), lead...), k) }

// words is the constant of the packed numbers.
func (b *builder) words(p *packed) mlx.Tid {
	t := ir.StaticType(ops.Uint32, join(p.lead, p.cols*p.bits/32)...)
	switch {
	case p.gguf != nil:
		return b.blobConstant(p.key("words"), t, &ggufBlob{p: p, part: ggufWords})
	case p.ready:
		return b.blobConstant(p.key("words"), t, dataBlob(p.q.Data))
	}
	return b.blobConstant(p.key("words"), t, &packBlob{p})
}

// scales is the constant of the groups' scales.
func (b *builder) scales(p *packed) mlx.Tid {
	t := ir.StaticType(p.scaleType(), join(p.lead, p.cols/p.group)...)
	switch {
	case p.gguf != nil:
		return b.blobConstant(p.key("scales"), t, &ggufBlob{p: p, part: ggufScales})
	case p.coarse == p.group && p.perm == nil && !p.cross:
		return b.blobConstant(p.key("scales"), t, dataBlob(p.scale.Data))
	}
	return b.blobConstant(p.key("scales"), t, &groupBlob{p: p, in: p.scale})
}

// biases is the constant of the groups' biases, nil where the mode has none.
func (b *builder) biases(p *packed) *mlx.Tid {
	if p.mode != "affine" {
		return nil
	}
	var blob partition.Blob = &groupBlob{p: p, in: p.scale, bias: true}
	if p.gguf != nil {
		blob = &ggufBlob{p: p, part: ggufBiases}
	}
	t := b.blobConstant(p.key("biases"), ir.StaticType(p.scaleType(), join(p.lead, p.cols/p.group)...), blob)
	return &t
}

// wholeScale gives the factor of the whole tensor, nil where it is one.
func (b *builder) wholeScale(p *packed) *mlx.Tid {
	if p.global == nil {
		return nil
	}
	raw, err := p.global.Data.Compact()
	fs, ok := decode(p.global.Data.DType, raw)
	if err != nil || !ok || len(fs) != 1 {
		b.failf("%s: no factor of the whole tensor", p.global.Target)
		return nil
	}
	if fs[0] == 1 {
		return nil
	}
	t := b.float(p.out, fs[0])
	return &t
}

// dequantize writes the node that unpacks words to out.
func (b *builder) dequantize(p *packed, w, scales mlx.Tid, biases *mlx.Tid) mlx.Tid {
	d := scalarType(p.out)
	n := &mlx.DequantizeNode{
		W: w, Scales: scales, Biases: biases, GroupSize: int32(p.group), Bits: int32(p.bits), Mode: p.mode, Dtype: &d, Out: b.temp(p.out),
	}
	b.emit(n)
	t := n.Out
	if g := b.wholeScale(p); g != nil {
		out := b.temp(p.out)
		b.emit(mulNode(t, *g, out))
		t = out
	}
	return t
}

// ordered gives the elements of in in the order of the packed weight's rows and groups.
func (p *packed) ordered(in *ir.Input) ([]byte, error) { return p.inOrder(in).Compact() }

func (p *packed) inOrder(in *ir.Input) *ir.Data {
	d := *in.Data
	st := d.Strides
	if st == nil {
		st = ir.RowMajor(d.Sizes)
	}
	switch {
	case p.cross:
		d.Sizes, d.Strides = ir.Permuted(d.Sizes, []int{1, 0}), ir.Permuted(st, []int{1, 0})
	case p.perm != nil:
		d.Sizes, d.Strides = ir.Permuted(d.Sizes, p.perm), ir.Permuted(st, p.perm)
	}
	return &d
}

// packBlob is the words of a weight whose numbers are kept in a byte each. They are packed while they are written.
type packBlob struct{ p *packed }

func (b *packBlob) Size() int64 { return b.p.rows() * b.p.cols * b.p.bits / 8 }

func (b *packBlob) WriteTo(w io.Writer) (int64, error) {
	q := &packer{
		w: bufio.NewWriterSize(w, 1<<16), bits: uint(b.p.bits), low: uint64(b.p.low), signed: b.p.q.Data.DType == ops.Int8,
	}
	if _, err := b.p.inOrder(b.p.q).WriteTo(q); err != nil {
		return q.n, err
	}
	return q.n, q.w.Flush()
}

// packer packs the numbers that are written to it, a byte each. Rows fill whole words, so words never mix rows.
type packer struct {
	w      *bufio.Writer
	n      int64
	bits   uint
	low    uint64
	signed bool
	acc    uint64
	have   uint
}

func (q *packer) Write(p []byte) (int, error) {
	mask := uint64(1)<<q.bits - 1
	for i, c := range p {
		x := uint64(c)
		if q.signed {
			x = uint64(int64(int8(c)))
		}
		q.acc |= (x - q.low) & mask << q.have
		for q.have += q.bits; q.have >= 8; q.have -= 8 {
			if err := q.w.WriteByte(byte(q.acc)); err != nil {
				return i, err
			}
			q.n++
			q.acc >>= 8
		}
	}
	return len(p), nil
}

// groupBlob is the scales of a weight's groups, or the biases: scale*(low - zero). A scale of a coarser group is repeated.
type groupBlob struct {
	p    *packed
	in   *ir.Input
	bias bool
}

func (b *groupBlob) Size() int64 { return b.p.rows() * b.p.cols / b.p.group * b.p.scaleType().Size() }

func (b *groupBlob) WriteTo(w io.Writer) (int64, error) {
	p := b.p
	s, err := p.ordered(b.in)
	if err != nil {
		return 0, err
	}
	if b.bias {
		if s, err = p.biasBytes(s); err != nil {
			return 0, err
		}
	}
	size, times := p.scaleType().Size(), p.coarse/p.group
	if times == 1 {
		n, err := w.Write(s)
		return int64(n), err
	}
	out := bufio.NewWriterSize(w, 1<<16)
	n := int64(0)
	for ; int64(len(s)) >= size; s = s[size:] {
		for range times {
			k, err := out.Write(s[:size])
			n += int64(k)
			if err != nil {
				return n, err
			}
		}
	}
	return n, out.Flush()
}

func (p *packed) biasBytes(s []byte) ([]byte, error) {
	d := p.scaleType()
	scales, ok := decode(d, s)
	if !ok {
		return nil, fmt.Errorf("scales of %s", d)
	}
	zeros := make([]float64, len(scales))
	if p.zero != nil {
		z, err := p.ordered(p.zero)
		if err != nil {
			return nil, err
		}
		if zeros, ok = decodeNumbers(p.zero.Data.DType, z); !ok || len(zeros) != len(scales) {
			return nil, fmt.Errorf("zero points of %s", p.zero.Data.DType)
		}
	}
	out := make([]byte, 0, len(s))
	for i, f := range scales {
		x := f * (float64(p.low) - zeros[i])
		if p.summand {
			x = f*float64(p.low) + zeros[i]
		}
		e, _ := encode(d, ir.Float(x))
		out = append(out, e...)
	}
	return out, nil
}

// decodeNumbers gives the elements of a tensor of integers or floats.
func decodeNumbers(d ops.DType, p []byte) ([]float64, bool) {
	if d.IsFloat() {
		return decode(d, p)
	}
	if !d.IsInt() {
		return nil, false
	}
	n := int(d.Size())
	out := make([]float64, 0, len(p)/n)
	for ; len(p) >= n; p = p[n:] {
		var x uint64
		for i := n - 1; i >= 0; i-- {
			x = x<<8 | uint64(p[i])
		}
		if d.IsSigned() {
			shift := 64 - 8*uint(n)
			out = append(out, float64(int64(x<<shift)>>shift))
			continue
		}
		out = append(out, float64(x))
	}
	return out, true
}
