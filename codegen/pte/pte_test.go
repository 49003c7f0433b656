package pte

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/kr/pretty"
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

// plain gives a comparable copy: blobs become their bytes, empty slices nil.
func plain(t *testing.T, p *Program) any {
	t.Helper()
	conv := func(b Blob) Blob {
		if b == nil {
			return nil
		}
		var buf bytes.Buffer
		if _, err := b.WriteTo(&buf); err != nil {
			t.Fatal(err)
		}
		return Bytes(buf.Bytes())
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
