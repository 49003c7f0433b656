package passes

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/x448/float16"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// QuantScheme says how the weights of a kind of layer become integers: symmetrically, with a scale for each group of a
// row. It is torchao's IntxWeightOnlyConfig, or Int8DynamicActivationIntxWeightConfig.
type QuantScheme struct {
	// Bits are 2, 4 or 8.
	Bits int
	// Group is the number of elements of a row that share a scale; zero stands for all.
	Group int64
	// Dynamic quantizes what the weight is multiplied with, too, to 8 bits, a scale for each row, when the program runs.
	Dynamic bool
}

// String spells the scheme as ParseQuantization reads it: 4w:32, 8da8w.
func (s QuantScheme) String() string {
	name := fmt.Sprintf("%dw", s.Bits)
	if s.Dynamic {
		name = "8da" + name
	}
	if s.Group > 0 {
		name += fmt.Sprintf(":%d", s.Group)
	}
	return name
}

// Quantization says which layers become integers and how; nil leaves them as they are.
type Quantization struct {
	Linear, Embedding *QuantScheme
}

// String spells it as ParseQuantization reads it.
func (q Quantization) String() string {
	var parts []string
	if q.Linear != nil {
		parts = append(parts, "linear="+q.Linear.String())
	}
	if q.Embedding != nil {
		parts = append(parts, "embedding="+q.Embedding.String())
	}
	return strings.Join(parts, ",")
}

// ParseQuantization reads linear=SCHEME,embedding=SCHEME. A scheme is 2w, 4w or 8w for weights alone, 8da4w or 8da8w for
// activations, too, and :N after it for groups of N elements that share a scale. Without, 4w and 2w have groups of 32 and
// 8w a scale for each row; :0 asks for the latter.
func ParseQuantization(spec string) (Quantization, error) {
	var q Quantization
	if spec == "" {
		return q, nil
	}
	for _, part := range strings.Split(spec, ",") {
		layer, scheme, ok := strings.Cut(strings.TrimSpace(part), "=")
		var at **QuantScheme
		switch layer {
		case "linear":
			at = &q.Linear
		case "embedding":
			at = &q.Embedding
		default:
			return q, fmt.Errorf("%q: want linear=SCHEME or embedding=SCHEME", part)
		}
		if *at != nil {
			return q, fmt.Errorf("%s twice", layer)
		}
		if !ok {
			return q, fmt.Errorf("%q: want %s=SCHEME", part, layer)
		}
		s, err := parseScheme(scheme)
		if err != nil {
			return q, err
		}
		if s.Dynamic && layer == "embedding" {
			return q, fmt.Errorf("%q: an embedding has no activations to quantize; want 2w, 4w or 8w", part)
		}
		*at = &s
	}
	return q, nil
}

func parseScheme(spec string) (s QuantScheme, err error) {
	name, group, grouped := strings.Cut(spec, ":")
	switch name {
	case "2w", "4w", "8w":
		s.Bits = int(name[0] - '0')
	case "8da4w", "8da8w":
		s.Bits, s.Dynamic = int(name[3]-'0'), true
	default:
		return s, fmt.Errorf("scheme %q: there are 2w, 4w, 8w, 8da4w and 8da8w, with :N for groups of N", spec)
	}
	if !grouped {
		if s.Bits < 8 {
			s.Group = 32
		}
		return s, nil
	}
	if s.Group, err = strconv.ParseInt(group, 10, 64); err != nil || s.Group < 0 || s.Group == 1 {
		return s, fmt.Errorf("scheme %q: a group is a number of elements, 2 or more, or 0 for a whole row", spec)
	}
	return s, nil
}

// Pass is the pass that quantizes. It leaves alone, and says so, what has no weight that could become integers.
func (q Quantization) Pass() Pass {
	return Pass{
		Name:  "quantize",
		Doc:   "Makes integers of the weights of linear layers and embeddings as --quantize asks, and dequantizes them where they are read: " + q.String() + ".",
		Lossy: "weights are rounded",
		Run: func(ctx *Context, g *ir.Graph) error {
			if g.Stage == ops.StageAten {
				return &OrderError{First: "functionalize", Then: "quantize", Why: "a weight that is written to is none"}
			}
			r := &quantizer{ctx: ctx, g: g, written: map[*ir.Input]bool{}, made: map[string]*quantConsts{}}
			for _, o := range g.Outputs {
				if o.Target != nil {
					r.written[o.Target] = true
				}
			}
			return r.run(q)
		},
	}
}

// quantizer quantizes the layers of one graph.
type quantizer struct {
	ctx     *Context
	g       *ir.Graph
	written map[*ir.Input]bool
	// made are the constants so far, by weight and scheme: layers that share a weight share its integers.
	made map[string]*quantConsts
}

type quantConsts struct{ numbers, scale *ir.Value }

func (r *quantizer) run(q Quantization) error {
	for _, k := range []struct {
		what   string
		scheme *QuantScheme
		layer  func(n *ir.Node) (quantLayer, bool)
	}{
		{"linear", q.Linear, linearLayer}, {"embedding", q.Embedding, embeddingLayer},
	} {
		if k.scheme == nil {
			continue
		}
		done, inner := 0, 0
		left := map[string][]string{}
		err := each(r.g, func(n *ir.Node) error {
			l, ok := k.layer(n)
			if !ok {
				return nil
			}
			if n.Graph() != r.g {
				inner++
				return nil
			}
			in, why := r.weight(l.weight, k.scheme)
			if why != "" {
				left[why] = append(left[why], cmp.Or(in, "the one at "+n.Origin.String()))
				return nil
			}
			b, ok := r.ctx.Rewrite(n, k.what)
			if !ok {
				return nil
			}
			done++
			x, w := r.layer(b, l, k.scheme)
			return r.ctx.replace(b, n, l.rebuild(b, x, w))
		})
		if err != nil {
			return err
		}
		r.ctx.Quantized += done
		r.note(k.what, k.scheme, done, inner, left)
	}
	return nil
}

// note says what was done, and what was not.
func (r *quantizer) note(what string, s *QuantScheme, done, inner int, left map[string][]string) {
	r.ctx.Notes = append(r.ctx.Notes, fmt.Sprintf("quantized to %s: %d of the %s layers", s, done, what))
	if inner > 0 {
		r.ctx.Notes = append(r.ctx.Notes, fmt.Sprintf("not quantized: %d of the %s layers, which are inside of conditionals or loops", inner, what))
	}
	const most = 4
	for _, why := range slices.Sorted(maps.Keys(left)) {
		names := left[why]
		n := len(names)
		slices.Sort(names)
		if names = slices.Compact(names); len(names) > most {
			names = append(names[:most:most], fmt.Sprintf("and %d more", len(names)-most))
		}
		r.ctx.Notes = append(r.ctx.Notes, fmt.Sprintf("not quantized: %d of the %s layers, as %s: %s", n, what, why, strings.Join(names, ", ")))
	}
}

// quantLayer is a node that reads a weight: rows are output channels or entries.
type quantLayer struct {
	weight *ir.Value
	// input is what the weight is multiplied with, nil for an embedding.
	input   *ir.Value
	rebuild func(b *ir.Builder, input, weight *ir.Value) *ir.Value
}

// linearLayer reads linear layers, also in the form that an export after decomposition has: a product with the transposed
// weight.
func linearLayer(n *ir.Node) (quantLayer, bool) {
	switch n.Op {
	case ops.AtenLinearDefault:
		return quantLayer{n.In(1), n.In(0), func(b *ir.Builder, x, w *ir.Value) *ir.Value {
			return op.AtenLinearDefault(b, x, w, op.KW("bias", ir.Ref(n.In(2))))
		}}, true
	case ops.AtenMmDefault, ops.AtenMatmulDefault:
		if w := transposed(n.In(1)); w != nil {
			return quantLayer{w, n.In(0), func(b *ir.Builder, x, w *ir.Value) *ir.Value { return op.AtenLinearDefault(b, x, w) }}, true
		}
	case ops.AtenAddmmDefault:
		beta, alpha := n.ArgNamed("beta"), n.ArgNamed("alpha")
		if w := transposed(n.In(2)); w != nil && isOne(beta) && isOne(alpha) && n.In(0).Type.Rank() == 1 {
			return quantLayer{w, n.In(1), func(b *ir.Builder, x, w *ir.Value) *ir.Value {
				return op.AtenLinearDefault(b, x, w, op.KW("bias", ir.Ref(n.In(0))))
			}}, true
		}
	}
	return quantLayer{}, false
}

func isOne(a ir.Arg) bool {
	f, ok := a.Float()
	k, isInt := a.Int()
	return ok && f == 1 || isInt && k == 1
}

// transposed is the matrix that v transposes, nil for other values.
func transposed(v *ir.Value) *ir.Value {
	if v == nil || v.Def == nil || v.Type.Rank() != 2 {
		return nil
	}
	n := v.Def
	switch n.Op {
	case ops.AtenTDefault:
		return n.In(0)
	case ops.AtenPermuteDefault:
		if p, ok := n.ArgNamed("dims").IntList(); ok && len(p) == 2 && (p[0]+2)%2 == 1 && (p[1]+2)%2 == 0 {
			return n.In(0)
		}
	case ops.AtenTransposeInt:
		a, okA := n.Arg(1).Int()
		b, okB := n.Arg(2).Int()
		if okA && okB && (a+2)%2 != (b+2)%2 {
			return n.In(0)
		}
	}
	return nil
}

func embeddingLayer(n *ir.Node) (quantLayer, bool) {
	if n.Op != ops.AtenEmbeddingDefault {
		return quantLayer{}, false
	}
	return quantLayer{n.In(0), nil, func(b *ir.Builder, _, w *ir.Value) *ir.Value {
		return op.AtenEmbeddingDefault(b, w, n.In(1), op.KW("padding_idx", n.ArgNamed("padding_idx")))
	}}, true
}

// weight says why a weight cannot become integers, and what it is called.
func (r *quantizer) weight(v *ir.Value, s *QuantScheme) (name, why string) {
	in := v.Input
	if in == nil || in.Kind == ir.InputUser || in.Kind == ir.InputOperand {
		return "", "the weights are computed"
	}
	name = in.Target
	d := in.Data
	switch {
	case r.written[in]:
		return name, "the program writes to the weights"
	case d == nil:
		return name, "the contents of the weights are not known"
	case d.DType != ops.Float32 && d.DType != ops.Float16 && d.DType != ops.BFloat16:
		return name, fmt.Sprintf("the weights hold %s", d.DType)
	case len(d.Sizes) != 2 || d.Numel() == 0:
		return name, "the weights are no matrices"
	case s.Group > 0 && d.Sizes[1]%s.Group != 0:
		return name, fmt.Sprintf("rows of %d are no multiple of %d", d.Sizes[1], s.Group)
	}
	return name, ""
}

// layer gives what stands for the input and the weight of a layer.
func (r *quantizer) layer(b *ir.Builder, l quantLayer, s *QuantScheme) (x, w *ir.Value) {
	in := l.weight.Input
	d := in.Data
	group := cmp.Or(s.Group, d.Sizes[1])
	key := fmt.Sprintf("%s/%d.%d", dataKey(d), s.Bits, group)
	c := r.made[key]
	if c == nil {
		t := &quantized{from: d, target: in.Target, bits: s.Bits, group: group}
		name := fmt.Sprintf("%s.%dw:%d", in.Target, s.Bits, group)
		scales := []int64{d.Sizes[0], d.Sizes[1] / group}
		c = &quantConsts{
			numbers: r.g.AddConst(name+".qdata", &ir.Data{DType: ops.Int8, Sizes: d.Sizes, Storage: quantNumbers{t}, Entry: d.Entry}),
			scale:   r.g.AddConst(name+".scale", &ir.Data{DType: d.DType, Sizes: scales, Storage: quantScales{t}, Entry: d.Entry}),
		}
		r.made[key] = c
	}
	lo, hi := quantLimits(s.Bits)
	w = op.TorchaoDequantizeAffineDefault(b, c.numbers, ir.Ints(1, group), c.scale, nil, ir.DTypeArg(ops.Int8),
		op.KW("quant_min", ir.Int(lo)), op.KW("quant_max", ir.Int(hi)), op.KW("output_dtype", ir.DTypeArg(d.DType)))
	if x = l.input; s.Dynamic {
		x = dynamicRows(b, x)
	}
	return x, w
}

// dynamicRows quantizes rows to eight bits and back when the program runs.
func dynamicRows(b *ir.Builder, x *ir.Value) *ir.Value {
	block := make([]sym.Expr, x.Type.Rank())
	for i := range block {
		block[i] = sym.Const(1)
	}
	block[len(block)-1] = x.Type.Shape[len(block)-1]
	lo, hi := op.KW("quant_min", ir.Int(-128)), op.KW("quant_max", ir.Int(127))
	int8s := ir.DTypeArg(ops.Int8)
	choose := op.TorchaoChooseQparamsAffineDefault(b, x, ir.Str("ASYMMETRIC"), ir.SymInts(block...), int8s, lo, hi, op.KW("zero_point_dtype", int8s))
	if choose == nil {
		return nil
	}
	scale, zero := choose.Outs[0], choose.Outs[1]
	q := op.TorchaoQuantizeAffineDefault(b, x, ir.SymInts(block...), scale, zero, int8s, lo, hi)
	return op.TorchaoDequantizeAffineDefault(b, q, ir.SymInts(block...), scale, zero, int8s, lo, hi, op.KW("output_dtype", ir.DTypeArg(x.Type.DType)))
}

// dataKey names contents by where they lie.
func dataKey(d *ir.Data) string {
	at := fmt.Sprintf("%p", d)
	if fs, ok := d.Storage.(ir.FileStorage); ok {
		f, off := fs.FileRange()
		at = fmt.Sprintf("%d@%d", f.Fd(), off)
	}
	return fmt.Sprintf("%s.%d.%v.%v.%s", at, d.Offset, d.Sizes, d.Strides, d.DType)
}

func quantLimits(bits int) (lo, hi int64) { return -1 << (bits - 1), 1<<(bits-1) - 1 }

// quantized is a weight matrix as integers of so many bits, with a scale for each group of a row. The arithmetic is that
// of the weight's type: each step is rounded to it.
type quantized struct {
	from   *ir.Data
	target string
	bits   int
	group  int64
}

// chunks calls f for runs of whole groups, in order: with their numbers and scales, which are good until f returns.
func (q *quantized) chunks(f func(xs, scales []float32) error) error {
	raw, err := q.from.Compact()
	if err != nil {
		return err
	}
	lo, hi := quantLimits(q.bits)
	half := float32(hi-lo) / 2
	group, size := int(q.group), int(q.from.DType.Size())
	n := min(max(pieceElems/group, 1), len(raw)/(size*group))
	xs, scales := make([]float32, n*group), make([]float32, n)
	for done := 0; len(raw) > 0; done += n {
		n = min(n, len(raw)/(size*group))
		xs, scales = xs[:n*group], scales[:n]
		decodeFloats(xs, raw, q.from.DType)
		raw = raw[n*group*size:]
		for i := range scales {
			most := uint32(0)
			for _, x := range xs[i*group : (i+1)*group] {
				most = max(most, math.Float32bits(x)&^(1<<31)) // in the order of the numbers, NaN last
			}
			if most >= 0x7f800000 {
				row := int64(done+i) * q.group / q.from.Sizes[1]
				return &ir.Diag{
					Code: "quantize", Msg: fmt.Sprintf("weight %q holds numbers that are not finite, in row %d", q.target, row), Entry: q.from.Entry,
					Try: "look at the model's weights, or leave out --quantize",
				}
			}
			scales[i] = max(q.round(math.Float32frombits(most)/half), q.tiny())
		}
		if err := f(xs, scales); err != nil {
			return err
		}
	}
	return nil
}

// tiny is the smallest scale.
func (q *quantized) tiny() float32 {
	if q.from.DType == ops.Float16 {
		return 0x1p-14
	}
	return 0x1p-126
}

// round rounds to the weight's type.
func (q *quantized) round(x float32) float32 {
	switch q.from.DType {
	case ops.Float16:
		return float16.Fromfloat32(x).Float32()
	case ops.BFloat16:
		return roundBFloat16(x)
	}
	return x
}

func roundBFloat16(x float32) float32 {
	b := math.Float32bits(x)
	return math.Float32frombits((b + 0x7fff + b>>16&1) &^ 0xffff)
}

// decodeFloats reads as many floats as xs holds.
func decodeFloats(xs []float32, raw []byte, d ops.DType) {
	le := binary.LittleEndian
	switch d {
	case ops.Float16:
		for i := range xs {
			xs[i] = float16.Frombits(le.Uint16(raw[2*i:])).Float32()
		}
	case ops.BFloat16:
		for i := range xs {
			xs[i] = math.Float32frombits(uint32(le.Uint16(raw[2*i:])) << 16)
		}
	default:
		for i := range xs {
			xs[i] = math.Float32frombits(le.Uint32(raw[4*i:]))
		}
	}
}

// pieceElems is how many numbers are quantized at a time, whole groups of them.
const pieceElems = 1 << 15

// appender collects what is written.
type appender []byte

func (a *appender) Write(p []byte) (int, error) {
	*a = append(*a, p...)
	return len(p), nil
}

// quantNumbers is the storage of the integers, a byte each.
type quantNumbers struct{ *quantized }

// Size is the number of bytes.
func (q quantNumbers) Size() int64 { return q.from.Numel() }

// Bytes computes the integers.
func (q quantNumbers) Bytes() ([]byte, error) {
	out := make(appender, 0, q.Size())
	_, err := q.WriteTo(&out)
	return out, err
}

// WriteTo computes the integers piece by piece.
func (q quantNumbers) WriteTo(w io.Writer) (written int64, err error) {
	low, high := quantLimits(q.bits)
	lo, hi := int32(low), int32(high)
	group := int(q.group)
	var buf []byte
	err = q.chunks(func(xs, scales []float32) error {
		buf = slices.Grow(buf[:0], len(xs))[:len(xs)]
		for i, scale := range scales {
			inverse := q.round(1 / scale)
			from, to := xs[i*group:(i+1)*group], buf[i*group:(i+1)*group]
			switch q.from.DType {
			case ops.Float32:
				for k, x := range from {
					to[k] = byte(min(max(nearest(float32(x*inverse)), lo), hi))
				}
			case ops.BFloat16:
				for k, x := range from {
					to[k] = byte(min(max(nearest(roundBFloat16(float32(x*inverse))), lo), hi))
				}
			default:
				for k, x := range from {
					to[k] = byte(min(max(nearest(q.round(float32(x*inverse))), lo), hi))
				}
			}
		}
		n, err := w.Write(buf)
		written += int64(n)
		return err
	})
	return written, err
}

// nearest rounds a small number to the nearest integer, to an even one in the middle: what is added leaves no room for a
// fraction.
func nearest(x float32) int32 {
	const room = 3 << 22
	return int32(float32(x+room) - room)
}

// quantScales is the storage of the scales, in the weight's type.
type quantScales struct{ *quantized }

// Size is the number of bytes.
func (q quantScales) Size() int64 { return q.from.Numel() / q.group * q.from.DType.Size() }

// Bytes computes the scales.
func (q quantScales) Bytes() ([]byte, error) {
	out := make(appender, 0, q.Size())
	_, err := q.WriteTo(&out)
	return out, err
}

// WriteTo computes the scales piece by piece.
func (q quantScales) WriteTo(w io.Writer) (written int64, err error) {
	le := binary.LittleEndian
	var buf []byte
	err = q.chunks(func(_, scales []float32) error {
		buf = buf[:0]
		for _, scale := range scales {
			switch q.from.DType {
			case ops.Float16:
				buf = le.AppendUint16(buf, float16.Fromfloat32(scale).Bits())
			case ops.BFloat16:
				buf = le.AppendUint16(buf, uint16(math.Float32bits(scale)>>16))
			default:
				buf = le.AppendUint32(buf, math.Float32bits(scale))
			}
		}
		n, err := w.Write(buf)
		written += int64(n)
		return err
	})
	return written, err
}
