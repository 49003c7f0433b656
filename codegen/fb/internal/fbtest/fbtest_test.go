package fbtest

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	flatbuffers "github.com/google/flatbuffers/go"
	"github.com/kr/pretty"

	"github.com/lathe-ml/lathe/codegen/fb"
)

func ptr[T any](v T) *T { return &v }

// all is what testdata/all.bin holds, which flatc made from JSON.
func all() *Root {
	return &Root{
		I8: 7, U8: 200, I16: -300, U16: 12, I32: -70000, U32: 4000000000, I64: -5, U64: math.MaxUint64,
		F32: 0.25, F64: -2.5, Kind: KindSeven,
		OptInt: ptr[int32](0), OptFloat: ptr[float32](0), OptBool: ptr(false), OptKind: ptr(KindNone),
		Point:  &Point{A: -1, B: 3.5, C: 65535, D: true, K: KindSeven},
		Must:   Point{A: 1, B: -1.25, C: 2, K: KindOne},
		Points: []Point{{A: 1, B: 2, C: 3, D: true}, {A: -1, B: -2, C: 4, K: KindOne}},
		Bytes:  []byte{1, 2, 3, 4, 5}, Shorts: []int16{-1, 2}, Bools: []bool{true, false, true},
		Kinds: []Kind{KindOne, KindSeven}, Strings: []string{"", "a", "bc"}, Doubles: []float64{0.5, -0.5},
		Trees: []*Tree{
			{Value: &Leaf{Name: "x", N: 4}},
			{Kids: []*Tree{{Value: &Other{Name: "y", N: -1}}}},
		},
		Tree:    &Tree{Value: &Tree{Kids: []*Tree{}}},
		Any:     &Other{Name: "z"},
		Ordered: &Ordered{Second: 2, First: "1st", Any: &Leaf{Name: "w", N: -1}},
		Need:    []int32{},
	}
}

func TestReadsWhatFlatcWrote(t *testing.T) {
	b, err := os.ReadFile("testdata/all.bin")
	if err != nil {
		t.Fatal(err)
	}
	got, err := UnmarshalRoot(b)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, all()) {
		t.Error(pretty.Diff(all(), got))
	}
}

func TestRoundTrip(t *testing.T) {
	defaults := NewRoot()
	defaults.Need = []int32{}
	if defaults.U16 != 65535 || defaults.Kind != KindOne || !defaults.Yes {
		t.Errorf("defaults are lost: %+v", defaults)
	}
	for _, want := range []*Root{all(), defaults, {Need: []int32{}}} {
		b, err := want.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		got, err := UnmarshalRoot(b)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Error(pretty.Diff(want, got))
		}
	}
}

// TestForceAlign looks at the bytes: the official Go generator drops the attribute.
func TestForceAlign(t *testing.T) {
	mark := []byte("sixteen-aligned!")
	for n := range 40 {
		r := all()
		r.Strings = []string{strings.Repeat("s", n)}
		r.Bytes = append(bytes.Clone(mark), make([]byte, n)...)
		r.Shorts = []int16{0x5a5a, 0x5b5b, 0x5c5c}
		b, err := r.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if at := bytes.Index(b, mark); at < 0 || at%16 != 0 {
			t.Errorf("n=%d: bytes at %d", n, at)
		}
		if at := bytes.Index(b, []byte{0x5a, 0x5a, 0x5b, 0x5b, 0x5c, 0x5c}); at < 0 || at%8 != 0 {
			t.Errorf("n=%d: shorts at %d", n, at)
		}
	}
}

func TestMarshalRefuses(t *testing.T) {
	for _, c := range []struct {
		want string
		edit func(r *Root)
	}{
		{"Tree is nil", func(r *Root) { r.Trees = []*Tree{nil} }},
		{"Leaf is nil", func(r *Root) { r.Any = (*Leaf)(nil) }},
		{"beyond", func(r *Root) { r.Bytes = make([]byte, 1<<30) }},
	} {
		r := all()
		c.edit(r)
		if _, err := r.Marshal(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
}

// TestDamage changes bytes and cuts the end: reading gives a value or an error.
func TestDamage(t *testing.T) {
	good, err := all().Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for i := range good {
		for _, x := range []byte{1, 0x7f, 0x80, 0xff} {
			b := bytes.Clone(good)
			b[i] ^= x
			if r, err := UnmarshalRoot(b); err == nil {
				if _, err := r.Marshal(); err != nil {
					t.Errorf("byte %d ^ %#x: read, but not written: %v", i, x, err)
				}
			}
		}
	}
	root := int(flatbuffers.GetUOffsetT(good))
	for n := range root + 4 {
		if _, err := UnmarshalRoot(good[:n]); err == nil {
			t.Errorf("%d bytes of %d are read", n, len(good))
		}
	}
}

func TestErrorsNameTheField(t *testing.T) {
	b := flatbuffers.NewBuilder(0)
	// A leaf without its required name, in trees[0].value.
	b.StartObject(2)
	leaf := b.EndObject()
	b.StartObject(3)
	b.PrependByteSlot(1, 1, 0)
	b.PrependUOffsetTSlot(2, leaf, 0)
	tree := b.EndObject()
	b.StartVector(4, 1, 4)
	b.PrependUOffsetT(tree)
	trees := b.EndVector(1)
	b.StartVector(4, 0, 4)
	need := b.EndVector(0)
	b.StartObject(32)
	b.PrependStructSlot(18, Point{}.pack(&fb.Encoder{Builder: b}), 0)
	b.PrependUOffsetTSlot(26, trees, 0)
	b.PrependUOffsetTSlot(31, need, 0)
	b.FinishWithFileIdentifier(b.EndObject(), []byte(Identifier))
	_, err := UnmarshalRoot(b.FinishedBytes())
	if err == nil || !strings.Contains(err.Error(), "trees[0].value: required field name is missing") {
		t.Errorf("error: %v", err)
	}
	if _, err := UnmarshalRoot([]byte("\x08\x00\x00\x00NOPE")); err == nil || !strings.Contains(err.Error(), `identifier "NOPE", want FBT1`) {
		t.Errorf("error: %v", err)
	}
}

// TestBombs reads buffers whose shared offsets describe far more than they hold.
func TestBombs(t *testing.T) {
	b := flatbuffers.NewBuilder(0)
	b.StartObject(3)
	tree := b.EndObject()
	// Ten levels of a thousand kids, all the same table.
	for range 10 {
		b.StartVector(4, 1000, 4)
		for range 1000 {
			b.PrependUOffsetT(tree)
		}
		kids := b.EndVector(1000)
		b.StartObject(3)
		b.PrependUOffsetTSlot(0, kids, 0)
		tree = b.EndObject()
	}
	finish := func(tree flatbuffers.UOffsetT) []byte {
		b.StartVector(4, 0, 4)
		need := b.EndVector(0)
		b.StartObject(32)
		b.PrependStructSlot(18, Point{}.pack(&fb.Encoder{Builder: b}), 0)
		b.PrependUOffsetTSlot(27, tree, 0)
		b.PrependUOffsetTSlot(31, need, 0)
		b.FinishWithFileIdentifier(b.EndObject(), []byte(Identifier))
		return b.FinishedBytes()
	}
	if _, err := UnmarshalRoot(finish(tree)); err == nil || !strings.Contains(err.Error(), "more ") {
		t.Errorf("wide: %v", err)
	}
	b.Reset()
	b.StartObject(3)
	tree = b.EndObject()
	for range 1000 {
		b.StartObject(3)
		b.PrependByteSlot(1, 3, 0)
		b.PrependUOffsetTSlot(2, tree, 0)
		tree = b.EndObject()
	}
	if _, err := UnmarshalRoot(finish(tree)); err == nil || !strings.Contains(err.Error(), "deep") {
		t.Errorf("deep: %v", err)
	}
}

func TestDump(t *testing.T) {
	r := all()
	r.F64 = math.Inf(1)
	r.Bytes = make([]byte, 100)
	js := fb.AppendJSON(nil, r)
	var m map[string]any
	if err := json.Unmarshal(js, &m); err != nil {
		t.Fatalf("%v in\n%s", err, js)
	}
	for field, want := range map[string]any{
		"kind": "KIND_SEVEN", "f64": "+Inf", "i64": float64(-5), "opt_int": float64(0), "point": map[string]any{"a": float64(-1), "b": 3.5, "c": float64(65535), "d": true, "k": "KIND_SEVEN"},
		"any": map[string]any{"Other": map[string]any{"name": "z", "n": float64(0)}}, "bytes": map[string]any{"size": float64(100)},
	} {
		if !reflect.DeepEqual(m[field], want) {
			t.Errorf("%s: %v, want %v", field, m[field], want)
		}
	}
	text := string(fb.AppendText(nil, r))
	for _, want := range []string{
		"kind: KIND_SEVEN\n", "bytes: <100 bytes>\n", `any: Other{name: "z", n: 0}` + "\n", `strings: ["", "a", "bc"]` + "\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("text has no %q:\n%s", want, text)
		}
	}
}

func FuzzUnmarshal(f *testing.F) {
	b, err := all().Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := UnmarshalRoot(b)
		if err != nil {
			return
		}
		c, err := r.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		again, err := UnmarshalRoot(c)
		if err != nil {
			t.Fatal(err)
		}
		// Compared as text: NaN is not equal to itself.
		if x, y := fb.AppendJSON(nil, r), fb.AppendJSON(nil, again); !bytes.Equal(x, y) {
			t.Fatalf("changed:\n%s\n%s", x, y)
		}
	})
}
