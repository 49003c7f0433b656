package pt2

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/infer"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/pt2/archive"
	"github.com/lathe-ml/lathe/pt2/pickle"
	"github.com/lathe-ml/lathe/pt2/schema"
)

const tryFlatten = "make the weights plain before the export (torchao.utils.unwrap_tensor_subclass), or keep to torchao's own classes"

// pickled is a record that torch.save wrote: a zip file within the archive.
type pickled struct {
	key    string // of the entry
	c      *archive.Archive
	base   int64 // of the zip file in the archive's file
	stored bool
	value  any
}

// wrapped is a weight that is a tensor subclass: tensors that torchao's classes compute with. Where the graph takes it
// apart itself, the parts become inputs; where it goes whole into an operator, the class's arithmetic is put before that.
type wrapped struct {
	sub   *pickle.Subclass
	rec   *pickled
	a     *Archive
	like  *ir.Input // kind and name of the weight
	name  string    // of its value
	parts map[string]*ir.Value
	inner map[string]*wrapped
}

// open reads the pickle of a record. The record's tensors stay where they are.
func (a *Archive) open(e *archive.Entry) (*pickled, error) {
	return a.openAllowing(e, pickle.AllowWeights)
}

func (a *Archive) openAllowing(e *archive.Entry, allow func(pickle.Global) bool) (*pickled, error) {
	if p := a.pickles[e.Name()]; p != nil {
		return p, nil
	}
	p := &pickled{key: e.Name()}
	b, ok := e.View()
	if ok {
		p.base, _, p.stored = e.FileRange()
	} else {
		var err error
		if b, err = e.Bytes(); err != nil {
			return nil, archiveDiag(a.c.Path(), err)
		}
	}
	text := b
	if len(b) >= 2 && string(b[:2]) == "PK" {
		var err error
		if p.c, err = archive.NewPickled(b, e.FullName()); err != nil {
			return nil, a.innerDiag(e, err)
		}
		pkl, err := p.c.Get("data.pkl")
		if err == nil {
			text, err = pkl.Bytes()
		}
		if err != nil {
			return nil, a.innerDiag(e, err)
		}
	}
	v, err := pickle.Load(text, allow)
	if err == nil {
		p.value, err = pickle.Torch(v)
	}
	if err != nil {
		return nil, a.diag(CodeWeight, e.Name(), tryFlatten, "the record is a pickle that is not read: %v", err)
	}
	a.pickles[e.Name()] = p
	return p, nil
}

// innerDiag is archiveDiag for the archive that an entry is.
func (a *Archive) innerDiag(e *archive.Entry, err error) *ir.Diag {
	d := archiveDiag(a.c.Path(), err)
	inner := d.Entry
	if d.File == "" { // about all of it
		inner = ""
	}
	d.File, d.Entry = a.c.Path(), e.Name()
	if inner != "" {
		d.Entry += ":" + inner
	}
	return d
}

func (a *Archive) pickled(e *archive.Entry, name string) (*ir.Data, *wrapped, error) {
	p, err := a.open(e)
	if err != nil {
		return nil, nil, err
	}
	return a.pickledValue(p, name, p.value)
}

func (a *Archive) pickledValue(p *pickled, name string, v any) (*ir.Data, *wrapped, error) {
	switch v := v.(type) {
	case *pickle.Tensor:
		d, err := a.view(p, v)
		if err != nil {
			return nil, nil, a.diag(CodeWeight, p.key, tryCopy, "%s: %v", clean(name), err)
		}
		return d, nil, nil
	case *pickle.Subclass:
		return nil, newWrapped(a, p, v), nil
	}
	return nil, nil, a.diag(CodeWeight, p.key, tryFlatten, "%s: the pickle holds no tensor", clean(name))
}

func newWrapped(a *Archive, p *pickled, s *pickle.Subclass) *wrapped {
	return &wrapped{a: a, rec: p, sub: s, parts: map[string]*ir.Value{}, inner: map[string]*wrapped{}}
}

// view makes the contents of a pickled tensor: a view of a record of the inner zip file.
func (a *Archive) view(p *pickled, t *pickle.Tensor) (*ir.Data, error) {
	if p.c == nil {
		return nil, fmt.Errorf("a pickle without records")
	}
	entry := "data/" + t.Key
	e, ok := p.c.Lookup(entry)
	if !ok {
		return nil, fmt.Errorf("the record %s of the pickle is missing", clean(entry))
	}
	d := &ir.Data{DType: t.DType, Sizes: t.Sizes, Strides: t.Strides, Offset: t.Offset, Entry: p.key + ":" + entry}
	if d.Contiguous() {
		d.Strides = nil
	}
	d.Storage = a.storageAt(p.key+":"+e.Name(), e, p.base, p.stored)
	return d, checkSpan(d)
}

// part makes the input for a tensor attribute, once.
func (w *wrapped) part(g *ir.Graph, attr string) (*ir.Value, error) {
	if v := w.parts[attr]; v != nil {
		return v, nil
	}
	av, ok := w.sub.Attr(attr)
	if !ok {
		return nil, fmt.Errorf("%s %s has no attribute %q", clean(w.sub.Class), w.like.Target, attr)
	}
	t, ok := av.(*pickle.Tensor)
	if !ok {
		return nil, fmt.Errorf("attribute %q of %s %s is no tensor", attr, clean(w.sub.Class), w.like.Target)
	}
	d, err := w.a.view(w.rec, t)
	if err != nil {
		return nil, fmt.Errorf("%s.%s: %w", w.like.Target, attr, err)
	}
	return w.add(g, attr, d), nil
}

// add makes an input of the weight.
func (w *wrapped) add(g *ir.Graph, attr string, d *ir.Data) *ir.Value {
	t := ir.Type{DType: d.DType, Shape: ir.Consts(d.Sizes...)}
	if d.Strides != nil {
		t.Strides = ir.Consts(d.Strides...)
	}
	in := g.AddInput(w.name+"_"+attr, w.like.Kind, w.like.Target+"."+attr, t)
	in.Persistent, in.Data = w.like.Persistent, d
	w.parts[attr] = in.Value
	return in.Value
}

// unwrap deals with the tensor subclasses among a node's arguments. A node that only takes one apart or passes it on is
// done then; for others the plain tensors stand under the subclasses' names until restore.
func (s *scope) unwrap(op string, ins []schema.NamedArgument, outs []schema.Argument, origin *ir.Origin) (done bool, restore func(), err error) {
	restore = func() {}
	if len(s.wraps) == 0 {
		return false, restore, nil
	}
	var given []string
	for i := range ins {
		if n := argName(&ins[i].Arg); n != "" && s.wraps[n] != nil && !slices.Contains(given, n) {
			given = append(given, n)
		}
	}
	if len(given) == 0 {
		return false, restore, nil
	}
	out := ""
	if len(outs) == 1 {
		out = argName(&outs[0])
	}
	w := s.wraps[given[0]]
	switch op {
	case "export.access_subclass_inner_tensor.default":
		if len(ins) != 2 || out == "" {
			return true, restore, fmt.Errorf("%d arguments and %d results", len(ins), len(outs))
		}
		return true, restore, s.access(w, ins[1].Arg.AsString(), out)
	case "aten.detach.default", "aten.alias.default":
		s.wraps[out] = w
		return true, restore, nil
	}
	for _, n := range given {
		v, e := s.plain(s.wraps[n], op, ins, outs, origin)
		if e != nil {
			return false, restore, e
		}
		s.values[n] = v
	}
	return false, func() {
		for _, n := range given {
			delete(s.values, n)
		}
	}, nil
}

// access gives an attribute of a subclass the name of the node that takes it out.
func (s *scope) access(w *wrapped, attr, out string) error {
	av, _ := w.sub.Attr(attr)
	if sub, ok := av.(*pickle.Subclass); ok {
		in := w.inner[attr]
		if in == nil {
			in = newWrapped(s.a, w.rec, sub)
			in.name = w.name + "_" + attr
			in.like = &ir.Input{Kind: w.like.Kind, Target: w.like.Target + "." + attr, Persistent: w.like.Persistent}
			w.inner[attr] = in
		}
		s.wraps[out] = in
		return nil
	}
	v, err := w.part(s.g, attr)
	if err != nil {
		return err
	}
	t, err := s.tensorType(out)
	if err != nil {
		return err
	}
	if t.DType != v.Type.DType || !ir.EqualShape(t.Shape, v.Type.Shape) {
		return fmt.Errorf("tensor_values says that %s is %s, the weight's %q is %s", out, t, attr, v.Type)
	}
	if s.values[out] != nil {
		return fmt.Errorf("value %q is defined twice", out)
	}
	s.values[out] = v
	return nil
}

// whole lists the operators for which the classes compute with their plain form.
var whole = []string{
	"aten.linear.default", "aten.embedding.default", "aten.t.default", "aten.mm.default", "aten.addmm.default", "aten.matmul.default",
	"aten.transpose.int", "aten.numpy_T.default", "aten._to_copy.default", "aten.to.dtype", "aten.to.dtype_layout", "aten.to.device",
}

// plain puts the class's arithmetic into the graph, as torchao's and ExecuTorch's Python has it, and gives the plain weight.
func (s *scope) plain(w *wrapped, op string, ins []schema.NamedArgument, outs []schema.Argument, origin *ir.Origin) (*ir.Value, error) {
	refuse := func(format string, args ...any) (*ir.Value, error) {
		return nil, fmt.Errorf("the weight %s is a tensor subclass, %s: %s", w.like.Target, clean(w.sub.Class), fmt.Sprintf(format, args...))
	}
	if !slices.Contains(whole, op) {
		return refuse("%s with it is not known", op)
	}
	f := forms[w.sub.Base()]
	if f == nil || !strings.HasPrefix(w.sub.Class, "torchao.") && !strings.HasPrefix(w.sub.Class, "executorch.") {
		return refuse("its arithmetic is not known")
	}
	real := w.sub.DType
	switch {
	case op == "aten.linear.default" && f.asInput:
		if len(ins) > 0 {
			if v, err := s.value(argName(&ins[0].Arg)); err == nil && v != nil {
				real = v.Type.DType
			}
		}
	case strings.HasPrefix(op, "aten._to_copy.") || strings.HasPrefix(op, "aten.to."):
		if len(outs) == 1 {
			if t, err := s.tensorType(argName(&outs[0])); err == nil {
				real = t.DType
			}
		}
	}
	id := ops.Lookup(f.op)
	if id == ops.Unknown {
		return refuse("%s is not in the table", f.op)
	}
	args, err := f.args(w, s.g)
	if err != nil {
		return refuse("%v", err)
	}
	args = append(args, ir.DTypeArg(real))
	types := []ir.Type{ir.StaticType(real, w.sub.Sizes...)}
	if infer.Has(id) {
		if err := s.compare(id, args, types, []string{w.name}); err != nil {
			return refuse("%v", err)
		}
	}
	n := s.g.NewNode(s.g.Ret(), id, args, types, origin.Derive("import#unwrap"))
	n.Out().Name = w.name
	return n.Out(), nil
}

// form is how a class's plain form is computed: by an operator that torchao or ExecuTorch's exporter defines for it.
type form struct {
	op string
	// asInput: a linear takes the weight in the element type of its input.
	asInput bool
	// args are the operator's arguments but for the last, the element type of the result.
	args func(w *wrapped, g *ir.Graph) ([]ir.Arg, error)
}

var forms = map[string]*form{
	"ExportableNVFP4Tensor": {op: "torchao.dequantize_nvfp4.default", args: attrs("qdata", "scale", "per_tensor_scale", "block_size")},
	"ExportableMXTensor":    {op: "torchao.dequantize_mx.default", asInput: true, args: attrs("qdata", "scale", "elem_dtype", "block_size")},
	"ExportableInt4Tensor":  {op: "torchao.dequantize_int4_tensor.default", asInput: true, args: attrs("qdata", "scale", "zero_point", "group_size")},
	"ExportableGGUFTensor":  {op: "torchao.dequantize_gguf.default", asInput: true, args: attrs("raw", "ggml_type")},
	"NVFP4Tensor":           {op: "torchao.dequantize_nvfp4.default", args: nvfp4},
	"MXTensor":              {op: "torchao.dequantize_mx.default", args: mx},
}

// attrs are attributes as arguments, in order.
func attrs(names ...string) func(w *wrapped, g *ir.Graph) ([]ir.Arg, error) {
	return func(w *wrapped, g *ir.Graph) ([]ir.Arg, error) {
		as := make([]ir.Arg, len(names))
		for i, n := range names {
			v, ok := w.sub.Attr(n)
			if !ok {
				return nil, fmt.Errorf("attribute %s is missing", n)
			}
			switch v := v.(type) {
			case int64:
				as[i] = ir.Int(v)
			case string:
				as[i] = ir.Str(v)
			case pickle.DType:
				if v.DType == ops.DTypeNone {
					return nil, fmt.Errorf("attribute %s is %s, which no tensor has", n, v.Name)
				}
				as[i] = ir.DTypeArg(v.DType)
			case *pickle.Tensor:
				p, err := w.part(g, n)
				if err != nil {
					return nil, err
				}
				as[i] = ir.Ref(p)
			default:
				return nil, fmt.Errorf("attribute %s is a %T", n, v)
			}
		}
		return as, nil
	}
}

// weightOnly refuses classes that quantize the activations, too.
func (w *wrapped) weightOnly() error {
	if v, ok := w.sub.Attr("act_quant_kwargs"); ok && v != nil {
		return fmt.Errorf("it quantizes the activations while it runs")
	}
	if len(w.sub.Sizes) != 2 {
		return fmt.Errorf("it has %d dimensions", len(w.sub.Sizes))
	}
	return nil
}

// tensorAttr gives the contents of a contiguous tensor attribute.
func (w *wrapped) tensorAttr(name string) (*ir.Data, error) {
	v, _ := w.sub.Attr(name)
	t, ok := v.(*pickle.Tensor)
	if !ok {
		return nil, fmt.Errorf("attribute %s is no tensor", name)
	}
	d, err := w.a.view(w.rec, t)
	if err == nil && !d.Contiguous() {
		err = fmt.Errorf("attribute %s is not contiguous", name)
	}
	return d, err
}

// scales gives the block scales row by row. Swizzled they are stored as the GPU wants them: in tiles of 128 rows and four
// columns, of which the rows r, r+32, r+64 and r+96 lie side by side.
func (w *wrapped) scales(block int64, as ops.DType) (*ir.Data, error) {
	d, err := w.tensorAttr("scale")
	if err != nil {
		return nil, err
	}
	rows, cols := w.sub.Sizes[0], w.sub.Sizes[1]/block
	swizzled := false
	if v, ok := w.sub.Attr("is_swizzled_scales"); ok {
		swizzled, _ = v.(bool)
	}
	out := &ir.Data{DType: as, Sizes: []int64{rows, cols}, Storage: d.Storage, Offset: d.Offset, Entry: d.Entry}
	if !swizzled {
		if d.Numel() != rows*cols || d.DType.Size() != as.Size() {
			return nil, fmt.Errorf("scales %v for %d blocks", d.Sizes, rows*cols)
		}
		return out, nil
	}
	tiles := (cols + 3) / 4
	if d.DType.Size() != 1 || as.Size() != 1 || d.Numel() != (rows+127)/128*tiles*512 {
		return nil, fmt.Errorf("scales %v for %d blocks", d.Sizes, rows*cols)
	}
	out.Offset = 0
	out.Storage = &madeStorage{size: rows * cols, make: func() ([]byte, error) {
		src, err := d.Compact()
		if err != nil {
			return nil, err
		}
		b := make([]byte, rows*cols)
		for r := range rows {
			for c := range cols {
				tile := (r/128*tiles + c/4) * 512
				b[r*cols+c] = src[tile+r%32*16+r%128/32*4+c%4]
			}
		}
		return b, nil
	}}
	return out, nil
}

func (w *wrapped) blockSize() (int64, error) {
	v, _ := w.sub.Attr("block_size")
	b, ok := v.(int64)
	if !ok || b <= 0 || w.sub.Sizes[1]%b != 0 {
		return 0, fmt.Errorf("block size %v for %v", v, w.sub.Sizes)
	}
	return b, nil
}

// nvfp4 gives torchao's own class the form of the exportable one: values packed in words of 32 bits, scales row by row.
func nvfp4(w *wrapped, g *ir.Graph) ([]ir.Arg, error) {
	if err := w.weightOnly(); err != nil {
		return nil, err
	}
	block, err := w.blockSize()
	if err != nil {
		return nil, err
	}
	if w.parts["qdata"] == nil {
		q, err := w.tensorAttr("qdata")
		if err != nil {
			return nil, err
		}
		if q.Numel()*q.DType.Size()*2 != w.sub.Sizes[0]*w.sub.Sizes[1] || w.sub.Sizes[1]%8 != 0 || q.Offset*q.DType.Size()%4 != 0 {
			return nil, fmt.Errorf("packed values %v for %v", q.Sizes, w.sub.Sizes)
		}
		w.add(g, "qdata", &ir.Data{
			DType: ops.Uint32, Sizes: []int64{w.sub.Sizes[0], w.sub.Sizes[1] / 8}, Storage: q.Storage,
			Offset: q.Offset * q.DType.Size() / 4, Entry: q.Entry,
		})
	}
	if w.parts["scale"] == nil {
		d, err := w.scales(block, ops.Uint8)
		if err != nil {
			return nil, err
		}
		w.add(g, "scale", d)
	}
	if w.parts["per_tensor_scale"] == nil {
		v, _ := w.sub.Attr("per_tensor_scale")
		if t, ok := v.(*pickle.Tensor); ok {
			if len(t.Sizes) != 0 || t.DType != ops.Float32 {
				return nil, fmt.Errorf("it has a scale for each expert")
			}
			if _, err := w.part(g, "per_tensor_scale"); err != nil {
				return nil, err
			}
		} else {
			one := ir.NewData(ops.Float32, []int64{}, []byte{0, 0, 0x80, 0x3f})
			one.Entry = w.rec.key
			w.add(g, "per_tensor_scale", one)
		}
	}
	return []ir.Arg{ir.Ref(w.parts["qdata"]), ir.Ref(w.parts["scale"]), ir.Ref(w.parts["per_tensor_scale"]), ir.Int(block)}, nil
}

// mx is the same for the classes of the OCP's formats with eight-bit elements.
func mx(w *wrapped, g *ir.Graph) ([]ir.Arg, error) {
	if err := w.weightOnly(); err != nil {
		return nil, err
	}
	block, err := w.blockSize()
	if err != nil {
		return nil, err
	}
	v, _ := w.sub.Attr("elem_dtype")
	elem, ok := v.(pickle.DType)
	if !ok || elem.DType != ops.Float8E4M3FN && elem.DType != ops.Float8E5M2 {
		return nil, fmt.Errorf("elements of type %v", v)
	}
	q, err := w.part(g, "qdata")
	if err != nil {
		return nil, err
	}
	if w.parts["scale"] == nil {
		d, err := w.scales(block, ops.Float8E8M0FNU)
		if err != nil {
			return nil, err
		}
		w.add(g, "scale", d)
	}
	return []ir.Arg{ir.Ref(q), ir.Ref(w.parts["scale"]), ir.DTypeArg(elem.DType), ir.Int(block)}, nil
}
