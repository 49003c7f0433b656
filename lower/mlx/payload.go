package mlx

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/lathe-ml/lathe/codegen/fb/mlx"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/partition"

	"github.com/x448/float16"
)

// builder writes the instructions of a region. Tensors and values have numbers of their own while it does; finish gives
// them their slots.
type builder struct {
	g        *ir.Graph
	n        *ir.Node // at hand
	err      error
	caps     Caps
	fuse     bool // chains become kernels
	bindings map[string]ir.Binding

	tensors []*tensor
	of      map[*ir.Value]uint32
	casts   []map[castKey]mlx.Tid // by chain, innermost last
	consts  map[string]uint32
	// transposes are matrices of the main chain by what they are the transpose of.
	transposes map[uint32]mlx.Tid
	// flags are tensors of one number whose value a slot holds as well.
	flags   map[uint32]*mlx.IntOrVid
	inputs  []*mlx.SlotVariant
	buffers []uint32

	numVids uint32
	vids    map[*ir.Value]mlx.Vid
	scopes  []map[uint64][]computed

	// chain is the one that instructions go to; chains[0] is the main chain.
	chain  *chain
	chains []*chain
	init   *chain
}

// chain is a run of instructions; its index is its place in the payload.
type chain struct {
	ops []mlx.OpNode
}

type tensorKind uint8

const (
	kindTemp tensorKind = iota
	kindConst
	kindInput
	kindOutput
	kindBuffer
)

// tensor is what a slot will hold.
type tensor struct {
	kind  tensorKind
	dtype ops.DType
	typ   ir.Type // of constants, inputs, outputs and buffers
	data  partition.Blob
	name  string
	slot  uint32
	// same is set where the tensor turned out to be another: what is written back to a buffer is made in it.
	same *tensor
}

type castKey struct {
	t uint32
	d ops.DType
}

func newBuilder(g *ir.Graph, caps Caps) *builder {
	b := &builder{
		g: g, caps: caps, bindings: g.Bindings(), of: map[*ir.Value]uint32{}, consts: map[string]uint32{}, vids: map[*ir.Value]mlx.Vid{}, transposes: map[uint32]mlx.Tid{}, flags: map[uint32]*mlx.IntOrVid{},
		init: &chain{},
	}
	b.push(&chain{})
	return b
}

func (b *builder) failf(format string, args ...any) {
	if b.err == nil {
		err := fmt.Errorf(format, args...)
		if b.n != nil {
			err = b.n.Diag("mlx", err.Error(), "report this: the node was taken for the delegate and could not be written")
		}
		b.err = err
	}
}

// push makes c the chain that instructions go to; what was computed outside is known inside.
func (b *builder) push(c *chain) {
	b.chains = append(b.chains, c)
	b.chain = c
	b.scopes = append(b.scopes, map[uint64][]computed{})
	b.casts = append(b.casts, map[castKey]mlx.Tid{})
}

// inside runs f with instructions going to a new chain and gives the chain's index.
func (b *builder) inside(f func()) uint32 {
	outer := b.chain
	i := uint32(len(b.chains))
	b.push(&chain{})
	f()
	b.chain = outer
	b.scopes = b.scopes[:len(b.scopes)-1]
	b.casts = b.casts[:len(b.casts)-1]
	return i
}

// ifElse runs one of two chains; a literal condition leaves only one, in place.
func (b *builder) ifElse(cond *mlx.IntOrVid, then, els func()) {
	if !cond.IsVid {
		if cond.Literal != 0 {
			then()
		} else {
			els()
		}
		return
	}
	n := &mlx.IfNode{Cond: b.copyInt(cond)}
	n.ThenChainIdx = b.inside(then)
	n.ElseChainIdx = b.inside(els)
	b.emit(n)
}

func (b *builder) emit(op mlx.OpNode) { b.chain.ops = append(b.chain.ops, op) }

func (b *builder) newTensor(t *tensor) uint32 {
	b.tensors = append(b.tensors, t)
	return uint32(len(b.tensors) - 1)
}

func (b *builder) newVid() mlx.Vid {
	b.numVids++
	return mlx.Vid{Idx: b.numVids - 1}
}

// temp is a new tensor of element type d.
func (b *builder) temp(d ops.DType) mlx.Tid {
	return mlx.Tid{Idx: b.newTensor(&tensor{dtype: d})}
}

// dtype is the element type that t has in the delegate.
func (b *builder) dtype(t mlx.Tid) ops.DType { return b.tensors[t.Idx].dtype }

// raw is the tensor of v with whatever element type the delegate gave it: for indices and results.
func (b *builder) raw(v *ir.Value) mlx.Tid {
	if i, ok := b.of[v]; ok {
		return mlx.Tid{Idx: i}
	}
	if in := partition.Weight(v); in != nil {
		t := b.weight(in, nil)
		b.of[v] = t.Idx
		return t
	}
	b.failf("%s reads a tensor that is not there yet", v.Name)
	return mlx.Tid{}
}

// in is the tensor of v with the element type that its type says.
func (b *builder) in(v *ir.Value) mlx.Tid { return b.cast(b.raw(v), v.Type.DType) }

// index is the tensor of v as places in another: any integers will do.
func (b *builder) index(v *ir.Value) mlx.Tid {
	t := b.raw(v)
	if b.dtype(t).IsFloat() {
		return b.cast(t, v.Type.DType)
	}
	return t
}

// inAs is the tensor of v with element type d.
func (b *builder) inAs(v *ir.Value, d ops.DType) mlx.Tid { return b.cast(b.raw(v), d) }

// cast gives t with element type d.
func (b *builder) cast(t mlx.Tid, d ops.DType) mlx.Tid {
	if b.dtype(t) == d {
		return t
	}
	k := castKey{t.Idx, d}
	for i := len(b.casts) - 1; i >= 0; i-- {
		if c, ok := b.casts[i][k]; ok {
			return c
		}
	}
	out := b.temp(d)
	b.emit(&mlx.AsTypeNode{X: t, Out: out, ScalarType: scalarType(d)})
	b.casts[len(b.casts)-1][k] = out
	return out
}

// optional is the tensor of v, nil where there is none.
func (b *builder) optional(v *ir.Value) *mlx.Tid {
	if v == nil {
		return nil
	}
	t := b.in(v)
	return &t
}

// out is the tensor of the node's result i.
func (b *builder) out(i int) mlx.Tid { return b.outAs(i, b.n.Outs[i].Type.DType) }

// outAs is the tensor of result i that the delegate gives element type d.
func (b *builder) outAs(i int, d ops.DType) mlx.Tid {
	v := b.n.Outs[i]
	if t, ok := b.of[v]; ok {
		return mlx.Tid{Idx: t}
	}
	t := b.temp(d)
	b.of[v] = t.Idx
	return t
}

// result makes t the tensor of result i.
func (b *builder) result(i int, t mlx.Tid) { b.of[b.n.Outs[i]] = t.Idx }

// finally gives result i the elements of t in the result's own element type.
func (b *builder) finally(i int, t mlx.Tid) {
	d := b.n.Outs[i].Type.DType
	if b.dtype(t) == d {
		b.result(i, t)
		return
	}
	b.emit(&mlx.AsTypeNode{X: t, Out: b.out(i), ScalarType: scalarType(d)})
}

// scalar is a constant tensor without dimensions.
func (b *builder) scalar(d ops.DType, a ir.Arg) mlx.Tid {
	p, ok := encode(d, a)
	if !ok {
		b.failf("number %s does not fit %s", argText(a), d)
		return mlx.Tid{}
	}
	return b.constant(fmt.Sprintf("scalar.%s.%x", d, reversed(p)), ir.NewData(d, nil, p))
}

func (b *builder) float(d ops.DType, f float64) mlx.Tid { return b.scalar(d, ir.Float(f)) }

func argText(a ir.Arg) string {
	if f, ok := a.Float(); ok {
		return fmt.Sprint(f)
	}
	return "?"
}

func reversed(p []byte) []byte {
	q := make([]byte, len(p))
	for i := range p {
		q[len(p)-1-i] = p[i]
	}
	return q
}

// operand is the tensor that a stands for with element type d: a tensor, or a number as a tensor without dimensions.
func (b *builder) operand(a ir.Arg, d ops.DType) mlx.Tid {
	if v := a.Value(); v != nil && v.Type.IsTensor() {
		return b.inAs(v, d)
	}
	if _, ok := a.Float(); ok {
		return b.scalar(d, a)
	}
	if v := a.Value(); v != nil && v.Type.Known {
		a = ir.SymInt(v.Type.Sym)
	}
	x := b.argInt(a)
	if !x.IsVid {
		return b.scalar(d, ir.Int(x.Literal))
	}
	out := b.temp(d)
	b.emit(&mlx.FullNode{Out: out, V: &mlx.FloatOrVid{Vid: &mlx.Vid{Idx: x.Vid.Idx}, IsVid: true}, ScalarType: scalarType(d), Shape: []*mlx.IntOrVid{}})
	return out
}

// constant is a constant tensor with contents of its own. Equal names must hold equal contents.
func (b *builder) constant(name string, d *ir.Data) mlx.Tid {
	return b.blobConstant(name, ir.StaticType(d.DType, d.Sizes...), dataBlob(d))
}

func (b *builder) blobConstant(name string, t ir.Type, data partition.Blob) mlx.Tid {
	i, ok := b.consts[name]
	if !ok {
		i = b.newTensor(&tensor{kind: kindConst, dtype: t.DType, typ: t, data: data, name: name})
		b.consts[name] = i
	}
	return mlx.Tid{Idx: i}
}

// form says how a weight is to lie: its sizes replaced by split, its dimensions permuted, then its sizes replaced by sizes.
type form struct {
	split []int64
	perm  []int
	sizes []int64
}

// weight is the constant of a parameter, buffer or constant; two that lie in the same place are one.
func (b *builder) weight(in *ir.Input, f *form) mlx.Tid {
	d := in.Data
	name := partition.WeightKey(in)
	if f != nil {
		e := *d
		if f.split != nil {
			e = *b.compact(in, &e)
			e.Sizes = f.split
			name += fmt.Sprintf("#view%v", f.split)
		}
		if f.perm != nil {
			st := e.Strides
			if st == nil {
				st = ir.RowMajor(e.Sizes)
			}
			e.Sizes, e.Strides = ir.Permuted(e.Sizes, f.perm), ir.Permuted(st, f.perm)
			name += fmt.Sprintf("#permute%v", f.perm)
		}
		if f.sizes != nil {
			e = *b.compact(in, &e)
			e.Sizes, e.Strides = f.sizes, nil
			name += fmt.Sprintf("#view%v", f.sizes)
		}
		d = &e
	}
	if i, ok := b.consts[name]; ok {
		return mlx.Tid{Idx: i}
	}
	return b.constant(name, d)
}

// compact is d with its elements row-major.
func (b *builder) compact(in *ir.Input, d *ir.Data) *ir.Data {
	if d.Contiguous() {
		e := *d
		e.Strides = nil
		return &e
	}
	p, err := d.Compact()
	if err != nil {
		b.failf("%s: %v", in.Target, err)
	}
	return ir.NewData(d.DType, d.Sizes, p)
}

// floats is a constant of element type d.
func (b *builder) floats(d ops.DType, sizes []int64, fs []float64) mlx.Tid {
	var p []byte
	for _, f := range fs {
		e, ok := encode(d, ir.Float(f))
		if !ok {
			b.failf("number %v does not fit %s", f, d)
			return mlx.Tid{}
		}
		p = append(p, e...)
	}
	return b.bytes(d, sizes, p)
}

// bytes is a constant with the given contents.
func (b *builder) bytes(d ops.DType, sizes []int64, p []byte) mlx.Tid {
	return b.constant(fmt.Sprintf("%s%v.%x", d, sizes, sha256.Sum256(p)), ir.NewData(d, sizes, p))
}

// build writes the region's instructions.
func (b *builder) build(ctx context.Context) error {
	mutable := map[*ir.Input]bool{}
	for _, o := range b.g.Outputs {
		if o.Kind == ir.OutputBufferMutation {
			mutable[o.Target] = true
		}
	}
	for _, in := range b.g.Inputs {
		v := in.Value
		switch {
		case mutable[in]:
			i := b.newTensor(&tensor{kind: kindBuffer, dtype: v.Type.DType, typ: v.Type, name: in.Target})
			b.of[v] = i
			b.buffers = append(b.buffers, i)
			b.initial(in, i)
		case in.Kind != ir.InputUser:
			if in.Data == nil {
				return fmt.Errorf("%s: %s %q has no contents", b.g.Name, in.Kind, in.Target)
			}
		case v.Type.IsTensor():
			i := b.newTensor(&tensor{kind: kindInput, dtype: v.Type.DType, typ: v.Type})
			b.of[v] = i
			b.inputs = append(b.inputs, &mlx.SlotVariant{Idx: i, SlotType: mlx.SlotTypeTensorSlot})
		case v.Type.Kind == ir.KindInt:
			vid := b.newVid()
			b.vids[v] = vid
			b.inputs = append(b.inputs, &mlx.SlotVariant{Idx: vid.Idx, SlotType: mlx.SlotTypeIntValueSlot})
		default:
			return fmt.Errorf("%s: an input of kind %s", b.g.Name, v.Type.Kind)
		}
	}
	b.nodes(ctx, b.g)
	if b.err != nil {
		return b.err
	}
	b.n = nil
	b.writeBack()
	return b.err
}

func (b *builder) nodes(ctx context.Context, g *ir.Graph) {
	var chains map[*ir.Node][]*ir.Node
	inChain := map[*ir.Node]bool{}
	if b.fuse {
		chains = chainsIn(g)
		for _, nodes := range chains {
			for _, n := range nodes {
				inChain[n] = true
			}
		}
	}
	for n := range g.Nodes() {
		if b.err == nil {
			b.err = ctx.Err()
		}
		if b.err != nil {
			return
		}
		b.n = n
		if inChain[n] {
			if nodes := chains[n]; nodes != nil {
				b.chainKernel(nodes)
			}
			continue
		}
		e, why := b.caps.plan(n)
		if why != nil {
			b.err = why
			return
		}
		e(b)
	}
}

// initial gives a buffer its first contents; the delegate starts with zeros.
func (b *builder) initial(in *ir.Input, buf uint32) {
	p, err := in.Data.Compact()
	if err != nil {
		b.failf("%s: %v", in.Target, err)
		return
	}
	zero := true
	for _, c := range p {
		if c != 0 {
			zero = false
			break
		}
	}
	if zero {
		return
	}
	c := b.weight(in, nil)
	b.init.ops = append(b.init.ops, &mlx.IdCopyNode{X: c, Out: mlx.Tid{Idx: buf}})
}

// writeBack leaves the new contents of buffers in their slots: made there where nobody wants the old contents any more,
// copied at the end elsewhere.
func (b *builder) writeBack() {
	type copyBack struct{ from, to uint32 }
	var copies []copyBack
	acc := newAccesses(b)
	ret := b.g.Ret()
	for i, o := range b.g.Outputs {
		if o.Kind != ir.OutputBufferMutation {
			continue
		}
		v := ret.In(i)
		from, ok := b.of[v]
		if !ok {
			from = b.raw(v).Idx
		}
		to := b.of[o.Target.Value]
		if from == to {
			continue
		}
		if acc.inPlace(from, to) {
			b.tensors[from].same = b.tensors[to]
			acc.join(from, to)
			continue
		}
		copies = append(copies, copyBack{from, to})
	}
	// A buffer whose old contents another one takes over is saved first.
	for i := range copies {
		if b.resolve(copies[i].from).kind == kindBuffer {
			t := b.temp(b.tensors[copies[i].from].dtype)
			b.emit(&mlx.IdCopyNode{X: mlx.Tid{Idx: copies[i].from}, Out: t})
			copies[i].from = t.Idx
		}
	}
	overwritten := map[uint32]bool{}
	for _, c := range copies {
		overwritten[c.to] = true
	}
	for i, o := range b.g.Outputs {
		v := ret.In(i)
		if o.Kind == ir.OutputBufferMutation || v == nil || !v.Type.IsTensor() {
			continue
		}
		if t := b.raw(v); overwritten[t.Idx] {
			s := b.temp(b.dtype(t))
			b.emit(&mlx.IdCopyNode{X: t, Out: s})
			b.of[v] = s.Idx
		}
	}
	for _, c := range copies {
		from, to := mlx.Tid{Idx: c.from}, mlx.Tid{Idx: c.to}
		if b.dtype(from) != b.dtype(to) {
			b.emit(&mlx.AsTypeNode{X: from, Out: to, ScalarType: scalarType(b.dtype(to))})
			continue
		}
		b.emit(&mlx.IdCopyNode{X: from, Out: to})
	}
}

func (b *builder) resolve(i uint32) *tensor {
	t := b.tensors[i]
	for t.same != nil {
		t = t.same
	}
	return t
}

// accesses tells where in the main chain slots are written and read, nested chains included.
type accesses struct {
	b    *builder
	upTo int // instructions of the main chain that were looked at
	// made is the only instruction that writes a slot, -1 where several do or one in a nested chain.
	made map[uint32]int
	// lastRead is the last instruction that reads a slot or another that shares its memory.
	lastRead map[*tensor]int
	returned map[uint32]bool
}

func newAccesses(b *builder) *accesses {
	return &accesses{b: b, made: map[uint32]int{}, lastRead: map[*tensor]int{}}
}

func (a *accesses) scan() {
	ops := a.b.chains[0].ops
	for ; a.upTo < len(ops); a.upTo++ {
		i := a.upTo
		a.b.each(ops[i], func(t *mlx.Tid, write bool) {
			if !write {
				a.lastRead[a.b.resolve(t.Idx)] = i
			} else if k, ok := a.made[t.Idx]; ok && k != i {
				a.made[t.Idx] = -1
			} else {
				a.made[t.Idx] = i
			}
		})
		a.b.eachNested(ops[i], func(t *mlx.Tid, write bool) {
			if write {
				a.made[t.Idx] = -1
			} else {
				a.lastRead[a.b.resolve(t.Idx)] = i
			}
		})
	}
}

// join says that from lies in the memory of to from now on.
func (a *accesses) join(from, to uint32) {
	if k, ok := a.lastRead[a.b.tensors[from]]; ok {
		root := a.b.resolve(to)
		a.lastRead[root] = max(a.lastRead[root], k)
	}
}

// inPlace tells whether the value from can be made in the buffer to: one instruction of the main chain makes it, and
// nothing reads the buffer after that.
func (a *accesses) inPlace(from, to uint32) bool {
	b := a.b
	f := b.tensors[from]
	if f.kind != kindTemp || f.same != nil || f.dtype != b.tensors[to].dtype {
		return false
	}
	a.scan()
	made, ok := a.made[from]
	if !ok || made < 0 {
		return false
	}
	if last, ok := a.lastRead[b.tensors[to]]; ok && last > made {
		return false
	}
	if a.returned == nil {
		a.returned = map[uint32]bool{}
		for i, o := range b.g.Outputs {
			if v := b.g.Ret().In(i); o.Kind != ir.OutputBufferMutation && v != nil && v.Type.IsTensor() {
				a.returned[b.raw(v).Idx] = true
			}
		}
	}
	return !a.returned[to]
}

// memBlob is a run of bytes in memory.
type memBlob []byte

func (m memBlob) Size() int64   { return int64(len(m)) }
func (m memBlob) Bytes() []byte { return m }
func (m memBlob) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(m)
	return int64(n), err
}

// dataBlob gives the elements of d row-major: a range of the archive's file where they lie so.
func dataBlob(d *ir.Data) partition.Blob {
	size := d.Numel() * d.DType.Size()
	if m, ok := d.Storage.(ir.MemStorage); ok && d.Contiguous() {
		at := d.Offset * d.DType.Size()
		return memBlob(m[at : at+size])
	}
	if d.Contiguous() {
		if fs, ok := d.Storage.(ir.FileStorage); ok {
			f, off := fs.FileRange()
			if file, ok := f.(*os.File); ok {
				return &fileBlob{gatherBlob{d, size}, file, off + d.Offset*d.DType.Size()}
			}
		}
	}
	return &gatherBlob{d, size}
}

type gatherBlob struct {
	d    *ir.Data
	size int64
}

func (b *gatherBlob) Size() int64 { return b.size }

func (b *gatherBlob) WriteTo(w io.Writer) (int64, error) { return b.d.WriteTo(w) }

type fileBlob struct {
	gatherBlob
	file *os.File
	off  int64
}

func (b *fileBlob) File() *os.File { return b.file }
func (b *fileBlob) Offset() int64  { return b.off }

// encode gives the bytes of a number as an element of type d.
func encode(d ops.DType, a ir.Arg) ([]byte, bool) {
	f, okf := a.Float()
	k, oki := a.Int()
	le := binary.LittleEndian
	switch d {
	case ops.Float32:
		return le.AppendUint32(nil, math.Float32bits(float32(f))), okf
	case ops.Float16:
		return le.AppendUint16(nil, float16.Fromfloat32(float32(f)).Bits()), okf
	case ops.BFloat16:
		return le.AppendUint16(nil, bfloat16(float32(f))), okf
	case ops.Bool:
		if okf && f != 0 {
			return []byte{1}, true
		}
		return []byte{0}, okf
	}
	if !d.IsInt() {
		return nil, false
	}
	if !oki {
		if !okf || f != math.Trunc(f) || math.Abs(f) >= 1<<63 {
			return nil, false
		}
		k = int64(f)
	}
	return le.AppendUint64(nil, uint64(k))[:d.Size()], true
}

// bfloat16 rounds to the nearest, ties to even.
func bfloat16(f float32) uint16 {
	x := math.Float32bits(f)
	if f != f {
		return 0x7fc0
	}
	return uint16((x + 0x7fff + (x>>16)&1) >> 16)
}
