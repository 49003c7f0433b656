package pte

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/kr/pretty"

	"github.com/lathe-ml/lathe/codegen/fb"
	fbp "github.com/lathe-ml/lathe/codegen/fb/program"
)

// stream is a blob that can only be streamed, as computed weights are.
type stream []byte

func (s stream) Size() int64 { return int64(len(s)) }
func (s stream) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(s)
	return int64(n), err
}

func fill(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		seed = seed*167 + 13
		b[i] = seed ^ byte(i>>8)
	}
	return b
}

func staticTensor(t ScalarType, sizes ...int32) *Tensor {
	x := &Tensor{Type: t, Sizes: sizes}
	for i := range sizes {
		x.DimOrder = append(x.DimOrder, uint8(i))
	}
	return x
}

// sampleProgram uses every part of the model.
func sampleProgram() *Program {
	p := &Program{}
	w := fill(12, 1)
	weight := staticTensor(ScalarFloat, 3)
	weight.Data = p.AddConstant(Bytes(w))
	tied := staticTensor(ScalarInt, 3)
	tied.Data = p.AddConstant(Bytes(bytes.Clone(w)))
	other := staticTensor(ScalarByte, 7)
	other.Data = p.AddConstant(Bytes(fill(7, 2)))
	state := staticTensor(ScalarHalf, 2, 2)
	state.Alloc = &Allocation{Memory: 1, Offset: 16}
	state.Data = p.AddInitial(Bytes(fill(8, 3)))
	far := staticTensor(ScalarFloat)
	far.Alloc = &Allocation{Memory: 2, Offset: 5 << 32}
	bound := &Tensor{Type: ScalarFloat, Sizes: []int32{2, 3}, DimOrder: []uint8{1, 0}, Dynamism: DynamicBound, Layout: 1, RequiresGrad: true}
	ext := staticTensor(ScalarFloat, 4)
	ext.Extra = &TensorExtra{Name: "layers.0.weight", Location: External}
	p.Plans = []*Plan{{
		Name: "forward", InputSpec: `[1, {"type": "builtins.tuple"}]`, OutputSpec: "[1]",
		Values: []Value{
			weight, tied, other, state, far, bound, ext,
			Null{},
			Int(-7), Bool(true), Double(2.5), String("tanh"),
			IntList{8, 8},
			DoubleList{1.5, -2},
			BoolList{true, false, true},
			TensorList{0, 1},
			OptionalTensorList{5, -1},
		},
		Inputs: []int32{5}, Outputs: []int32{4, 3},
		Chains: []*Chain{{
			Inputs: []int32{}, Outputs: []int32{},
			Instructions: []Instruction{
				KernelCall{0, []int32{0, 1, 8, 4}}, DelegateCall{0, []int32{5, 4}}, MoveCall{3, 4}, JumpFalseCall{9, 5}, FreeCall{5},
			},
			Stack: [][]Frame{{{"m.py", 3, "forward", "x + y"}}, {}, {}, {}, {}},
		}},
		Operators: []Operator{{"aten::add", "out"}, {"aten::sym_size", ""}},
		Delegates: []*Delegate{
			{"XnnpackBackend", Bytes(fill(100, 4)), []CompileSpec{{"mode", []byte{1, 2}}}},
			{"MLXBackend", Bytes(fill(100, 4)), nil},
			{"Empty", Bytes{}, nil},
		},
		BufferSizes:   []int64{0, 24, 6 << 32},
		BufferDevices: []BufferDevice{{2, CUDA, 1}},
	}, {Name: "other", BufferSizes: []int64{0}, Inputs: []int32{}, Outputs: []int32{}}}
	big := fill(70_000, 5)
	p.Named = []NamedData{
		{Key: "a", Data: Bytes(big)},
		{Key: "b", Data: Bytes(fill(5, 6)), Align: 4096},
		{Key: "c", Data: stream(big)},
	}
	return p
}

// plain gives a comparable copy: blobs become size and digest, empty slices nil.
func plain(t *testing.T, p *Program) any {
	t.Helper()
	conv := func(b Blob) Blob {
		if b == nil {
			return nil
		}
		sum, err := digest(b)
		if err != nil {
			t.Fatal(err)
		}
		return Bytes(fmt.Sprintf("%d %x", b.Size(), sum))
	}
	c := &Program{Version: p.Version}
	for _, b := range p.Constants {
		c.Constants = append(c.Constants, conv(b))
	}
	for _, b := range p.Initial {
		c.Initial = append(c.Initial, conv(b))
	}
	for _, n := range p.Named {
		c.Named = append(c.Named, NamedData{Key: n.Key, Data: conv(n.Data)})
	}
	for _, plan := range p.Plans {
		d := *plan
		d.Delegates = nil
		for _, x := range plan.Delegates {
			y := *x
			y.Payload = conv(x.Payload)
			d.Delegates = append(d.Delegates, &y)
		}
		c.Plans = append(c.Plans, &d)
	}
	emptyToNil(reflect.ValueOf(c))
	return c
}

func emptyToNil(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			emptyToNil(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			emptyToNil(v.Field(i))
		}
	case reflect.Interface:
		emptyToNil(v.Elem())
	case reflect.Slice:
		if v.Len() == 0 && v.CanSet() {
			v.SetZero()
		}
		for i := range v.Len() {
			emptyToNil(v.Index(i))
		}
	}
}

func diffPrograms(t *testing.T, want, got *Program) {
	t.Helper()
	if d := pretty.Diff(plain(t, want), plain(t, got)); len(d) > 0 {
		t.Errorf("programs differ (want, got):\n%s", pretty.Sprint(d))
	}
}

func write(t *testing.T, p *Program, o Options) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, p, o); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRoundTrip(t *testing.T) {
	p := sampleProgram()
	data := write(t, p, Options{})
	got, err := Read(data)
	if err != nil {
		t.Fatal(err)
	}
	diffPrograms(t, p, got)
	if again := write(t, sampleProgram(), Options{}); !bytes.Equal(data, again) {
		t.Error("the same program gave other bytes")
	}
}

// TestOfficialFixtures reads programs that the official emitter made and writes them
// again: the same program must come back.
func TestOfficialFixtures(t *testing.T) {
	files, err := filepath.Glob("testdata/*.pte")
	if err != nil || len(files) == 0 {
		t.Fatal("no fixtures", err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Read(data)
		if err != nil {
			t.Fatal(name, err)
		}
		q, err := Read(write(t, p, Options{}))
		if err != nil {
			t.Fatal(name, err)
		}
		diffPrograms(t, p, q)
	}
}

// head reads what the runtime reads first.
func head(t *testing.T, data []byte) (programSize, base, segments uint64) {
	t.Helper()
	if string(data[4:12]) != "ET12eh00" {
		t.Fatalf("identifiers %q", data[4:12])
	}
	if n := binary.LittleEndian.Uint32(data[12:]); n != 32 {
		t.Errorf("extended header of %d bytes, want 32", n)
	}
	return binary.LittleEndian.Uint64(data[16:]), binary.LittleEndian.Uint64(data[24:]), binary.LittleEndian.Uint64(data[32:])
}

func TestHeaderAndAlignment(t *testing.T) {
	for _, c := range []struct {
		o                 Options
		constant, segment uint64
	}{
		{Options{}, 16, 128},
		{Options{ConstantAlign: 64, SegmentAlign: 4096}, 64, 4096},
		{Options{ConstantAlign: 256, SegmentAlign: 16}, 256, 16},
	} {
		data := write(t, sampleProgram(), c.o)
		size, base, segments := head(t, data)
		if base%c.segment != 0 || base%c.constant != 0 || base < size || base+segments != uint64(len(data)) {
			t.Errorf("%+v: program of %d bytes, %d bytes of segments at %d, file of %d bytes", c.o, size, segments, base, len(data))
		}
		w, err := fbp.UnmarshalProgram(data[:size])
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range w.Segments {
			if (base+s.Offset)%c.segment != 0 {
				t.Errorf("%+v: segment %d at %d", c.o, i, base+s.Offset)
			}
		}
		start := base + w.Segments[w.ConstantSegment.SegmentIndex].Offset
		for i, off := range w.ConstantSegment.Offsets {
			if (start+off)%c.constant != 0 {
				t.Errorf("%+v: constant %d at %d", c.o, i, start+off)
			}
		}
		for _, n := range w.NamedData {
			if n.Key == "b" && (base+w.Segments[n.SegmentIndex].Offset)%4096 != 0 {
				t.Errorf("%+v: b is not at a multiple of the 4096 it asked for", c.o)
			}
		}
	}
}

// TestStoredOnce counts what equal contents become.
func TestStoredOnce(t *testing.T) {
	data := write(t, sampleProgram(), Options{})
	size, _, _ := head(t, data)
	w, err := fbp.UnmarshalProgram(data[:size])
	if err != nil {
		t.Fatal(err)
	}
	// Constants, first values, one payload for two delegates, two named blobs for three.
	if len(w.Segments) != 5 {
		t.Errorf("%d segments, want 5", len(w.Segments))
	}
	if o := w.ConstantSegment.Offsets; len(o) != 4 || o[0] != 0 || o[1] != 0 || o[2] != 0 || o[3] != 16 {
		t.Errorf("constants at %v, want [0 0 0 16]", o)
	}
	if n := w.NamedData; n[0].SegmentIndex != n[2].SegmentIndex || n[0].SegmentIndex == n[1].SegmentIndex {
		t.Errorf("named data in segments %d, %d, %d", n[0].SegmentIndex, n[1].SegmentIndex, n[2].SegmentIndex)
	}
	if n := bytes.Count(data, fill(70_000, 5)); n != 1 {
		t.Errorf("large data is stored %d times", n)
	}
}

type keyed struct {
	stream
	key string
	n   *int
}

func (k keyed) ContentKey() string { return k.key }
func (k keyed) WriteTo(w io.Writer) (int64, error) {
	*k.n++
	return k.stream.WriteTo(w)
}

func TestDeduper(t *testing.T) {
	big := fill(100_000, 7)
	edit := func(at int) []byte {
		b := bytes.Clone(big)
		b[at] ^= 1
		return b
	}
	writes := 0
	d := newDeduper()
	var got []int
	for _, b := range []Blob{
		Bytes(big), Bytes(bytes.Clone(big)), stream(big),
		Bytes(edit(5)), Bytes(edit(10_000)), stream(edit(10_000)), stream(edit(99_999)),
		Bytes{},
		stream{},
		Bytes("a"), Bytes("b"), stream("a"),
		keyed{stream("x"), "k1", &writes},
		keyed{stream("x"), "k2", &writes},
		keyed{stream("x"), "k1", &writes},
	} {
		i, err := d.add(b)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, i)
	}
	want := []int{0, 0, 0, 1, 2, 2, 3, 4, 4, 5, 6, 5, 7, 8, 7}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("classes %v, want %v", got, want)
	}
	if writes != 0 {
		t.Errorf("blobs with a key were computed %d times", writes)
	}
}

// What a constant and named data share stands in the constants' segment, and both read it there.
func TestConstantsAndNamedDataShare(t *testing.T) {
	p := &Program{Plans: []*Plan{{Name: "forward", BufferSizes: []int64{0}}}}
	same, other := fill(70_000, 7), fill(70_000, 8)
	p.AddConstant(Bytes(other))
	p.AddConstant(Bytes(same))
	p.Named = []NamedData{{Key: "same", Data: Bytes(same), Align: 16}, {Key: "new", Data: Bytes(fill(64, 9)), Align: 16}}
	data := write(t, p, Options{})
	if n := bytes.Count(data, same); n != 1 {
		t.Errorf("stored %d times", n)
	}
	size, base, _ := head(t, data)
	w, err := fbp.UnmarshalProgram(data[:size])
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]byte{same, fill(64, 9)} {
		s := w.Segments[w.NamedData[i].SegmentIndex]
		if at := base + s.Offset; s.Size != uint64(len(want)) || at%16 != 0 || !bytes.Equal(data[at:at+s.Size], want) {
			t.Errorf("named data %d stands at %d, %d bytes", i, at, s.Size)
		}
	}
	if _, err := Read(data); err != nil {
		t.Error(err)
	}
}

// A constant without elements still makes a segment: the runtime takes one without bytes for none.
func TestEmptyConstant(t *testing.T) {
	p := &Program{Plans: []*Plan{{Name: "forward", BufferSizes: []int64{0}}}}
	p.AddConstant(Bytes(nil))
	data := write(t, p, Options{})
	size, _, _ := head(t, data)
	w, err := fbp.UnmarshalProgram(data[:size])
	if err != nil {
		t.Fatal(err)
	}
	if n := w.Segments[0].Size; n == 0 {
		t.Error("the segment of the constants is empty")
	}
}

func TestNothingToStore(t *testing.T) {
	data := write(t, &Program{Plans: []*Plan{{Name: "forward", BufferSizes: []int64{0}}}}, Options{})
	size, base, segments := head(t, data)
	if size != uint64(len(data)) || base != 0 || segments != 0 {
		t.Errorf("size %d of %d, base %d, segments %d", size, len(data), base, segments)
	}
	if _, err := Read(data); err != nil {
		t.Error(err)
	}
}

func TestCheckRefuses(t *testing.T) {
	tensor := func(p *Program, i int) *Tensor { return p.Plans[0].Values[i].(*Tensor) }
	for _, c := range []struct {
		want string
		edit func(p *Program)
	}{
		{`method "forward": inputs[0]: value 99 of 17`, func(p *Program) { p.Plans[0].Inputs[0] = 99 }},
		{"outputs[1]: value -1", func(p *Program) { p.Plans[0].Outputs[1] = -1 }},
		{"values[0]: constants[9] of 4", func(p *Program) { tensor(p, 0).Data = 9 }},
		{"constants[3] has 7 bytes, the tensor [8] of Byte needs 8", func(p *Program) { tensor(p, 2).Sizes[0] = 8 }},
		{"values[3]: initial[2] of 2", func(p *Program) { tensor(p, 3).Data = 2 }},
		{"memory 3 of 3", func(p *Program) { tensor(p, 3).Alloc.Memory = 3 }},
		{"memory 0 of 3", func(p *Program) { tensor(p, 3).Alloc.Memory = 0 }},
		{"8 bytes at 17 of memory 1 of 24 bytes", func(p *Program) { tensor(p, 3).Alloc.Offset = 17 }},
		{"dim order", func(p *Program) { tensor(p, 5).DimOrder[0] = 0 }},
		{"dim order", func(p *Program) { tensor(p, 5).DimOrder = nil }},
		{"is negative", func(p *Program) { tensor(p, 5).Sizes[0] = -1 }},
		{"does not fit", func(p *Program) {
			x := tensor(p, 5)
			x.Sizes, x.DimOrder = []int32{1 << 30, 1 << 30, 1 << 30}, []uint8{0, 1, 2}
		}},
		{"has no element size", func(p *Program) { tensor(p, 5).Type = 99 }},
		{"external data without a name", func(p *Program) { tensor(p, 6).Extra.Name = "" }},
		{"values[12]: items[0]: value 7 is pte.Null, not an int", func(p *Program) { p.Plans[0].Values[12] = IntList{7} }},
		{"values[12]: items[0]: value -1", func(p *Program) { p.Plans[0].Values[12] = IntList{-1} }},
		{"values[15]: items[0]: value 8 is pte.Int, not a tensor", func(p *Program) { p.Plans[0].Values[15] = TensorList{8} }},
		{"value -1 of 17", func(p *Program) { p.Plans[0].Values[15] = TensorList{-1} }},
		{"is None", func(p *Program) { p.Plans[0].Values[15] = TensorList{7} }},
		{"values[7]: nil", func(p *Program) { p.Plans[0].Values[7] = nil }},
		{"instructions[0]: operator 2 of 2", func(p *Program) { p.Plans[0].Chains[0].Instructions[0] = KernelCall{Op: 2} }},
		{"instructions[1]: delegate 3 of 3", func(p *Program) { p.Plans[0].Chains[0].Instructions[1] = DelegateCall{Delegate: 3} }},
		{"instructions[2]: move[1]", func(p *Program) { p.Plans[0].Chains[0].Instructions[2] = MoveCall{0, 17} }},
		{"jump to 6 of 5", func(p *Program) { p.Plans[0].Chains[0].Instructions[3] = JumpFalseCall{9, 6} }},
		{"free[0]", func(p *Program) { p.Plans[0].Chains[0].Instructions[4] = FreeCall{-1} }},
		{"stack traces", func(p *Program) { p.Plans[0].Chains[0].Stack = make([][]Frame, 2) }},
		{"delegates[2] has no payload", func(p *Program) { p.Plans[0].Delegates[2].Payload = nil }},
		{"non_const_buffer_device[0]: buffer 3 of 3", func(p *Program) { p.Plans[0].BufferDevices[0].Buffer = 3 }},
		{"non_const_buffer_sizes[1] is -1", func(p *Program) { p.Plans[0].BufferSizes[1] = -1 }},
		{`method "forward" stands twice`, func(p *Program) { p.Plans[1].Name = "forward" }},
		{`named data "a" stands twice`, func(p *Program) { p.Named[1].Key = "a" }},
		{"alignment 3", func(p *Program) { p.Named[1].Align = 3 }},
		{"constants[0] is reserved", func(p *Program) { p.Constants[0] = Bytes{} }},
		{"constants[2] is nil", func(p *Program) { p.Constants[2] = nil }},
	} {
		p := sampleProgram()
		c.edit(p)
		if err := Write(io.Discard, p, Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
	if err := Write(io.Discard, sampleProgram(), Options{SegmentAlign: 100}); err == nil {
		t.Error("an alignment of 100 is taken")
	}
}

// TestDamage changes and cuts official files and ours: reading gives a program that can
// be written, or an error, and never reads beyond the file.
func TestDamage(t *testing.T) {
	var files [][]byte
	for _, name := range []string{"portable.pte", "xnnpack.pte"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, data)
	}
	sample := sampleProgram()
	sample.Named = nil
	files = append(files, write(t, sample, Options{SegmentAlign: 16}))
	for k, good := range files {
		size, _, _ := head(t, good)
		for i := range size {
			for _, x := range []byte{1, 0x80, 0xff} {
				b := bytes.Clone(good)
				b[i] ^= x
				p, err := Read(b)
				if err != nil {
					continue
				}
				if err := Write(io.Discard, p, Options{}); err != nil {
					t.Errorf("file %d, byte %d ^ %#x: read, but not written: %v", k, i, x, err)
				}
			}
		}
		for n := range good {
			if _, err := Read(good[:n]); err == nil {
				t.Errorf("file %d: its first %d bytes of %d are read", k, n, len(good))
			}
		}
	}
}

func TestReadErrorsNameThePart(t *testing.T) {
	good := write(t, sampleProgram(), Options{})
	put := func(at int, v uint64) []byte {
		b := bytes.Clone(good)
		binary.LittleEndian.PutUint64(b[at:], v)
		return b
	}
	for _, c := range []struct {
		want string
		data []byte
	}{
		{"no ExecuTorch program", []byte("PK\x03\x04........")},
		{"no ExecuTorch program", nil},
		{"extended header: program of 18446744073709551615 bytes", put(16, math.MaxUint64)},
		{"extended header: segments at 18446744073709551615", put(24, math.MaxUint64)},
		{"bytes of segments", put(32, math.MaxUint64)},
		{"segments[", put(32, 16)},
		{"cut off", good[:len(good)-1]},
	} {
		if _, err := Read(c.data); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
}

// failing is a blob that ends early, with or without saying so.
type failing struct {
	size, gives int64
	err         error
}

func (f failing) Size() int64 { return f.size }
func (f failing) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(make([]byte, f.gives))
	if err == nil {
		err = f.err
	}
	return int64(n), err
}

func TestFileAppearsWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "model.pte")
	if err := os.WriteFile(path, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	full := errors.New("disk full")
	canceled, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupted"))
	for _, c := range []struct {
		ctx  context.Context
		blob Blob
		want string
	}{
		{t.Context(), failing{200_000, 200_000, full}, "disk full"},
		{t.Context(), failing{200_000, 100_000, nil}, "100000 bytes, it promised 200000"},
		{t.Context(), failing{10, 11, nil}, "11 bytes, it promised 10"},
		{canceled, Bytes(make([]byte, 200_000)), "interrupted"},
	} {
		p := sampleProgram()
		p.Named = append(p.Named, NamedData{Key: "last", Data: c.blob})
		err := WriteFile(c.ctx, path, p, Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
		entries, rerr := os.ReadDir(dir)
		if rerr != nil {
			t.Fatal(rerr)
		}
		if b, _ := os.ReadFile(path); string(b) != "old" || len(entries) != 1 {
			t.Errorf("%q: the file holds %q, the folder %v", c.want, b, entries)
		}
	}
	if err := WriteFile(t.Context(), path, sampleProgram(), Options{}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, write(t, sampleProgram(), Options{})) {
		t.Error("the file is not what Write gives")
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v; the old file had 0640", st.Mode(), err)
	}
}

// TestFilesTogether changes neither file where one of them cannot be written.
func TestFilesTogether(t *testing.T) {
	dir := t.TempDir()
	prog, data := filepath.Join(dir, "p.pte"), filepath.Join(dir, "p.ptd")
	for _, path := range []string{prog, data} {
		if err := os.WriteFile(path, []byte("old"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	full := errors.New("disk full")
	bad := Bytes(make([]byte, 200_000))
	for _, c := range []struct{ prog, data Blob }{
		{failing{200_000, 200_000, full}, bad},
		{bad, failing{200_000, 200_000, full}},
	} {
		p, d := sampleProgram(), sampleData()
		p.Named = append(p.Named, NamedData{Key: "last", Data: c.prog})
		d.Entries = append(d.Entries, DataEntry{Key: "last", Data: c.data})
		if err := WriteFiles(t.Context(), prog, p, data, d, Options{}); !errors.Is(err, full) {
			t.Errorf("got %v", err)
		}
		for _, path := range []string{prog, data} {
			if b, _ := os.ReadFile(path); string(b) != "old" {
				t.Errorf("%s was changed", path)
			}
		}
		if es, _ := os.ReadDir(dir); len(es) != 2 {
			t.Errorf("the folder holds %v", es)
		}
	}
}

// TestFileRange writes parts of a file by the kernel's copy, and reads them mapped.
func TestFileRange(t *testing.T) {
	dir := t.TempDir()
	src := filepath.Join(dir, "weights")
	content := fill(3<<20, 9)
	if err := os.WriteFile(src, content, 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(src)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	part := func(off, n int) Blob { return section{f, int64(off), content[off : off+n]} }
	p := &Program{Plans: []*Plan{{Name: "forward", BufferSizes: []int64{0}}}}
	for i, r := range [][2]int{{64, 1 << 20}, {1<<20 + 77, 1 << 20}, {5, 10}, {64, 1 << 20}} {
		x := staticTensor(ScalarByte, int32(r[1]))
		x.Data = p.AddConstant(part(r[0], r[1]))
		p.Plans[0].Values = append(p.Plans[0].Values, x)
		p.Named = append(p.Named, NamedData{Key: string(rune('a' + i)), Data: part(r[0], r[1])})
	}
	var last, total int64
	path := filepath.Join(dir, "out.pte")
	if err := WriteFile(t.Context(), path, p, Options{Progress: func(d, n int64) { last, total = d, n }}); err != nil {
		t.Fatal(err)
	}
	got, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = got.Close() }()
	diffPrograms(t, p, got.Program)
	if st, err := os.Stat(path); err != nil || st.Size() != total || last != total {
		t.Errorf("progress ended at %d of %d", last, total)
	}
	// What was read is a source as well.
	again := filepath.Join(dir, "again.pte")
	if err := WriteFile(t.Context(), again, got.Program, Options{}); err != nil {
		t.Fatal(err)
	}
	a, _ := os.ReadFile(path)
	if b, err := os.ReadFile(again); err != nil || !bytes.Equal(a, b) {
		t.Errorf("read and written again it is another file (%v)", err)
	}
}

func sampleData() *Data {
	return &Data{Entries: []DataEntry{
		{Key: "w", Data: Bytes(fill(24, 1)), Layout: &TensorLayout{ScalarFloat, []int32{2, 3}, []uint8{1, 0}}},
		{Key: "tied", Data: stream(fill(24, 1)), Layout: &TensorLayout{ScalarFloat, []int32{3, 2}, []uint8{0, 1}}},
		{Key: "packed", Data: Bytes(fill(7, 2)), Align: 64},
	}}
}

func TestDataFile(t *testing.T) {
	d := sampleData()
	path := filepath.Join(t.TempDir(), "w.ptd")
	if err := WriteFiles(t.Context(), filepath.Join(t.TempDir(), "p.pte"), sampleProgram(), path, d, Options{}); err != nil {
		t.Fatal(err)
	}
	got, err := OpenData(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = got.Close() }()
	if len(got.Entries) != len(d.Entries) {
		t.Fatalf("%d entries, want %d", len(got.Entries), len(d.Entries))
	}
	for i, e := range got.Entries {
		w := d.Entries[i]
		var a, b bytes.Buffer
		if _, err := e.Data.WriteTo(&a); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Data.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		if e.Key != w.Key || !bytes.Equal(a.Bytes(), b.Bytes()) || !reflect.DeepEqual(e.Layout, w.Layout) {
			t.Errorf("entry %d: %+v, want %+v", i, e, w)
		}
		if off := e.Data.(FileRange).Offset(); off%128 != 0 {
			t.Errorf("entry %d at %d", i, off)
		}
	}
	if a, b := got.Entries[0].Data.(FileRange).Offset(), got.Entries[1].Data.(FileRange).Offset(); a != b {
		t.Errorf("equal data at %d and %d", a, b)
	}
	d.Entries[0].Layout.Sizes[0] = 3
	if err := WriteData(io.Discard, d, Options{}); err == nil || !strings.Contains(err.Error(), `"w": 24 bytes for [3 3] of Float, which needs 36`) {
		t.Errorf("error %v", err)
	}
}

func TestDataDamage(t *testing.T) {
	var buf bytes.Buffer
	if err := WriteData(&buf, sampleData(), Options{SegmentAlign: 16}); err != nil {
		t.Fatal(err)
	}
	good := buf.Bytes()
	for i := range good {
		for _, x := range []byte{1, 0x80, 0xff} {
			b := bytes.Clone(good)
			b[i] ^= x
			if d, err := ReadData(b); err == nil {
				if err := WriteData(io.Discard, d, Options{}); err != nil {
					t.Errorf("byte %d ^ %#x: read, but not written: %v", i, x, err)
				}
			}
		}
		if _, err := ReadData(good[:i]); err == nil {
			t.Errorf("the first %d bytes of %d are read", i, len(good))
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, name := range []string{"portable.pte", "xnnpack.pte"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	var b bytes.Buffer
	p := sampleProgram()
	p.Named = nil
	if err := Write(&b, p, Options{SegmentAlign: 16}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Read(data)
		if err != nil {
			return
		}
		again := func(p *Program) *Program {
			var b bytes.Buffer
			if err := Write(&b, p, Options{}); err != nil {
				t.Fatal(err)
			}
			q, err := Read(b.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			return q
		}
		// Data that no tensor uses reaches to the next piece, so the padding that one
		// writing adds may count to it; a second one changes nothing.
		q := again(p)
		if x, y := fb.AppendJSON(nil, q), fb.AppendJSON(nil, again(q)); !bytes.Equal(x, y) {
			t.Fatalf("changed:\n%s\n%s", x, y)
		}
	})
}

func FuzzReadData(f *testing.F) {
	var b bytes.Buffer
	if err := WriteData(&b, sampleData(), Options{SegmentAlign: 16}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := ReadData(data)
		if err != nil {
			return
		}
		if err := WriteData(io.Discard, d, Options{}); err != nil {
			t.Fatal(err)
		}
	})
}

// TestSeveralMutableSegments reads a file as no writer of ours makes it: first values
// in two segments, of which a tensor names the second.
func TestSeveralMutableSegments(t *testing.T) {
	tensor := func(data uint32, seg uint64, sizes ...int32) *fbp.EValue {
		return &fbp.EValue{Val: &fbp.Tensor{
			ScalarType: fbp.ScalarTypeByte, Sizes: sizes, DimOrder: []uint8{0}, DataBufferIdx: data,
			AllocationInfo:  &fbp.AllocationDetails{MemoryID: 1},
			ExtraTensorInfo: &fbp.ExtraTensorInfo{MutableDataSegmentsIdx: seg},
		}}
	}
	w := &fbp.Program{
		ExecutionPlan: []*fbp.ExecutionPlan{{
			Name:                "forward",
			Values:              []*fbp.EValue{tensor(1, 0, 2), tensor(2, 0, 1), tensor(1, 1, 3)},
			NonConstBufferSizes: []int64{0, 16},
		}},
		Segments: []*fbp.DataSegment{{Offset: 0, Size: 8}, {Offset: 8, Size: 8}},
		MutableDataSegments: []*fbp.SubsegmentOffsets{
			{SegmentIndex: 0, Offsets: []uint64{0, 0, 4}}, {SegmentIndex: 1, Offsets: []uint64{0, 2}},
		},
	}
	buf, err := w.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	file := spliceHeader(buf, extendedPadded)
	copy(file[8:], extendedMagic)
	binary.LittleEndian.PutUint32(file[12:], extendedLength)
	binary.LittleEndian.PutUint64(file[16:], uint64(len(file)))
	binary.LittleEndian.PutUint64(file[24:], uint64(len(file)))
	binary.LittleEndian.PutUint64(file[32:], 16)
	p, err := Read(append(file, "aa..b.....ccc..."...))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"aa", "b", "ccc"} {
		x := p.Plans[0].Values[i].(*Tensor)
		if got := string(p.Initial[x.Data].(Mapped).Bytes()); got != want {
			t.Errorf("tensor %d starts as %q, want %q", i, got, want)
		}
	}
}
