package pt2

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/pt2/pickle"
	"github.com/lathe-ml/lathe/pt2/schema"
)

// payloads is one of an archive's lists of tensors: weights or constants by their names in the model.
type payloads struct {
	entry  string // of the list
	dir    string // of the records
	absent bool
	m      map[string]*schema.PayloadMeta
	// saved is a whole state dict that torch.save wrote, the form of older releases.
	saved *pickled
	dict  *pickle.Dict
}

func (a *Archive) payloads(kind, method string) (*payloads, error) {
	p := &payloads{dir: "data/" + kind + "/", m: map[string]*schema.PayloadMeta{}}
	p.entry = p.dir + method + "_" + kind + "_config.json"
	if _, ok := a.c.Lookup(p.entry); !ok {
		e, ok := a.c.Lookup(p.dir + method + ".pt")
		if p.absent = !ok; p.absent {
			return p, nil
		}
		p.entry = e.Name()
		var err error
		if p.saved, err = a.open(e); err != nil {
			return nil, err
		}
		if p.dict, ok = p.saved.value.(*pickle.Dict); !ok {
			return nil, a.diag(CodeWeight, p.entry, tryCopy, "the pickle holds no dictionary of weights")
		}
		return p, nil
	}
	text, err := a.read(p.entry)
	if err != nil {
		return nil, err
	}
	cfg, unknown, err := schema.DecodePayloadConfig(text)
	if err != nil {
		return nil, a.jsonDiag(p.entry, err)
	}
	for _, u := range unknown {
		a.note("%s: field %q is not known and left unread", p.entry, u)
	}
	for i := range cfg.Config {
		e := &cfg.Config[i]
		if p.m[e.Key] != nil {
			return nil, a.diag(CodeJSON, p.entry, tryExport, "%q stands twice", e.Key)
		}
		p.m[e.Key] = &e.Value
	}
	return p, nil
}

// find gives the contents of a parameter, buffer or constant; not found where the list does not have it.
func (a *Archive) find(p *payloads, name string) (d *ir.Data, w *wrapped, found bool, err error) {
	if m := p.m[name]; m != nil {
		d, w, err = a.tensor(p, name, m)
		return d, w, true, err
	}
	if p.dict != nil {
		if v, ok := p.dict.Get(name); ok {
			d, w, err = a.pickledValue(p.saved, name, v)
			return d, w, true, err
		}
	}
	return nil, nil, false, nil
}

// tensor makes the contents of a parameter, buffer or constant: a view of its record, checked against its size. A tensor
// subclass is given as such.
func (a *Archive) tensor(p *payloads, name string, m *schema.PayloadMeta) (*ir.Data, *wrapped, error) {
	entry := p.dir + m.PathName
	bad := func(format string, args ...any) (*ir.Data, *wrapped, error) {
		return nil, nil, a.diag(CodeWeight, entry, tryCopy, "%s: %s", name, fmt.Sprintf(format, args...))
	}
	if m.TensorMeta == nil && !m.UsePickle {
		return bad("%s does not say what the record holds", p.entry)
	}
	rec, ok := a.c.Lookup(entry)
	if !ok {
		return bad("the record is missing")
	}
	if m.UsePickle {
		return a.pickled(rec, name)
	}
	d, err := metaData(m.TensorMeta)
	if err != nil {
		return bad("%v", err)
	}
	d.Entry = entry
	d.Storage = a.storage(rec)
	if err := checkSpan(d); err != nil {
		return bad("%v", err)
	}
	return d, nil, nil
}

// checkSpan tells whether the storage has all that the tensor views.
func checkSpan(d *ir.Data) error {
	need, ok := span(d)
	if !ok {
		return fmt.Errorf("sizes %v with strides %v are beyond all bounds", d.Sizes, d.Strides)
	}
	if have := d.Storage.Size(); need > have {
		return fmt.Errorf("the record has %d of %d bytes", have, need)
	}
	return nil
}

// metaData reads a description of plain numbers.
func metaData(t *schema.TensorMeta) (*ir.Data, error) {
	d := &ir.Data{DType: dtypeOf(t.Dtype)}
	if d.DType == ops.DTypeNone {
		return nil, fmt.Errorf("element type %s", t.Dtype)
	}
	if t.Layout != schema.LayoutStrided {
		return nil, fmt.Errorf("layout %s where a strided tensor should be", t.Layout)
	}
	ints := func(what string, l []schema.SymInt) ([]int64, error) {
		ks := make([]int64, len(l))
		for i := range l {
			if l[i].Arm != schema.SymIntAsInt {
				return nil, fmt.Errorf("a symbolic %s", what)
			}
			if ks[i] = l[i].AsInt(); ks[i] < 0 {
				return nil, fmt.Errorf("%s %d", what, ks[i])
			}
		}
		return ks, nil
	}
	var err error
	if d.Sizes, err = ints("size", t.Sizes); err != nil {
		return nil, err
	}
	if d.Strides, err = ints("stride", t.Strides); err != nil {
		return nil, err
	}
	if len(d.Sizes) != len(d.Strides) {
		return nil, fmt.Errorf("%d sizes and %d strides", len(d.Sizes), len(d.Strides))
	}
	off, err := ints("storage offset", []schema.SymInt{t.StorageOffset})
	if err != nil {
		return nil, err
	}
	d.Offset = off[0]
	if d.Contiguous() {
		d.Strides = nil
	}
	return d, nil
}

// span is the number of bytes from the storage's begin to the last element's end; not ok where it or the number of
// elements does not fit.
func span(d *ir.Data) (int64, bool) {
	strides := d.Strides
	if strides == nil {
		strides = make([]int64, len(d.Sizes))
		n := int64(1)
		for i := len(d.Sizes) - 1; i >= 0; i-- {
			strides[i] = n
			if n = satMul(n, max(d.Sizes[i], 1)); n == math.MaxInt64 {
				return 0, false
			}
		}
	}
	n, last := int64(1), d.Offset
	for i, s := range d.Sizes {
		if s == 0 {
			return 0, true
		}
		n = satMul(n, s)
		last = satAdd(last, satMul(s-1, strides[i]))
	}
	end := satMul(satAdd(last, 1), d.DType.Size())
	bytes := satMul(n, d.DType.Size())
	return end, end != math.MaxInt64 && bytes != math.MaxInt64
}

// satMul and satAdd are for numbers that are not negative; what does not fit is MaxInt64.
func satMul(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}

func satAdd(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

var dtypes = map[schema.ScalarType]ops.DType{
	schema.ScalarTypeBYTE: ops.Uint8, schema.ScalarTypeCHAR: ops.Int8, schema.ScalarTypeSHORT: ops.Int16,
	schema.ScalarTypeINT: ops.Int32, schema.ScalarTypeLONG: ops.Int64, schema.ScalarTypeHALF: ops.Float16,
	schema.ScalarTypeFLOAT: ops.Float32, schema.ScalarTypeDOUBLE: ops.Float64, schema.ScalarTypeCOMPLEXHALF: ops.ComplexHalf,
	schema.ScalarTypeCOMPLEXFLOAT: ops.Complex64, schema.ScalarTypeCOMPLEXDOUBLE: ops.Complex128, schema.ScalarTypeBOOL: ops.Bool,
	schema.ScalarTypeBFLOAT16: ops.BFloat16, schema.ScalarTypeUINT16: ops.Uint16, schema.ScalarTypeUINT32: ops.Uint32,
	schema.ScalarTypeUINT64: ops.Uint64, schema.ScalarTypeFLOAT8E4M3FN: ops.Float8E4M3FN,
	schema.ScalarTypeFLOAT8E5M2: ops.Float8E5M2, schema.ScalarTypeFLOAT8E4M3FNUZ: ops.Float8E4M3FNUZ,
	schema.ScalarTypeFLOAT8E5M2FNUZ: ops.Float8E5M2FNUZ, schema.ScalarTypeFLOAT8E8M0FNU: ops.Float8E8M0FNU,
}

// dtypeOf is DTypeNone for the schema's UNKNOWN.
func dtypeOf(t schema.ScalarType) ops.DType { return dtypes[t] }
