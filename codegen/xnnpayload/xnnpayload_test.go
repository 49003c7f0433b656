package xnnpayload

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/kr/pretty"

	"github.com/lathe-ml/lathe/codegen/fb"
	"github.com/lathe-ml/lathe/codegen/fb/xnnpack"
)

// sample is a small graph with every kind of value.
func sample() *Payload {
	p := &Payload{Graph: &xnnpack.XNNGraph{Version: "0", NumExterns: 2, InputIDs: []uint32{0}, OutputIDs: []uint32{3}}}
	g := p.Graph
	g.ConstantData = []*xnnpack.ConstantDataOffset{
		{}, {Offset: NoOffset, Size: 12, NamedKey: "weight"}, p.AddData([]byte{1, 2, 3}), p.AddData(make([]byte, 16)),
	}
	value := func(id, external, flags uint32, dims ...uint32) *xnnpack.XNNTensorValue {
		return &xnnpack.XNNTensorValue{
			Datatype: xnnpack.XNNDatatypeFp32, NumDims: uint32(len(dims)), Dims: dims, ExternalID: external, Flags: flags, IDOut: id,
		}
	}
	weight := value(1, InvalidID, 0, 4, 3)
	weight.Datatype, weight.ConstantBufferIdx = xnnpack.XNNDatatypeQcint8, 1
	g.Xvalues = []*xnnpack.XValue{
		{XvalueUnion: value(0, 0, 1, 2, 3)},
		{XvalueUnion: &xnnpack.XNNQuantizedTensorValue{
			TensorValue: weight, QuantParams: &xnnpack.PerChannelQuant{Scale: []float32{}, ScaleBufferIdx: 3, NumScales: 4},
		}},
		{XvalueUnion: value(2, InvalidID, 0, 2, 4)},
		{XvalueUnion: value(3, 1, 2, 2, 8)},
	}
	g.Xnodes = []*xnnpack.XNode{
		{
			XnodeUnion:   &xnnpack.XNNFullyConnected{Input1ID: 0, FilterID: 1, BiasID: InvalidID, OutputID: 2},
			OutputMinMax: &xnnpack.OutputMinMax{OutputMin: 0, OutputMax: float32(math.Inf(1))},
		},
		{XnodeUnion: &xnnpack.XNNConcatenate2{Axis: 1, Input1ID: 2, Input2ID: 2, Input3ID: 77, OutputID: 3}, DebugHandle: 5},
	}
	return p
}

func TestRoundTrip(t *testing.T) {
	b, err := sample().Marshal()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Unmarshal(b)
	if err != nil {
		t.Fatal(err)
	}
	if want := sample(); !reflect.DeepEqual(got, want) {
		t.Error(pretty.Diff(want, got))
	}
	if string(b[4:8]) != "XH00" || binary.LittleEndian.Uint16(b[8:]) != 30 || binary.LittleEndian.Uint32(b[10:]) != 32 {
		t.Errorf("header % x", b[:32])
	}
	if string(b[36:40]) != "XN01" {
		t.Errorf("identifier %q", b[36:40])
	}
	if at := bytes.LastIndex(b, []byte{1, 2, 3}); at%16 != 0 || uint32(at) != binary.LittleEndian.Uint32(b[18:]) {
		t.Errorf("data at %d, header says %d", at, binary.LittleEndian.Uint32(b[18:]))
	}
}

// TestOfficial reads a payload that the official lowering wrote.
func TestOfficial(t *testing.T) {
	b, err := os.ReadFile("testdata/linear.bin")
	if err != nil {
		t.Fatal(err)
	}
	p, err := Unmarshal(b)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Graph.Xnodes) != 1 || len(p.Graph.Xvalues) != 4 {
		t.Fatalf("%d nodes, %d values", len(p.Graph.Xnodes), len(p.Graph.Xvalues))
	}
	if _, ok := p.Graph.Xnodes[0].XnodeUnion.(*xnnpack.XNNFullyConnected); !ok {
		t.Errorf("node %T", p.Graph.Xnodes[0].XnodeUnion)
	}
	c, err := p.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Unmarshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(p, again) {
		t.Error(pretty.Diff(p, again))
	}
}

func TestRefuses(t *testing.T) {
	for _, c := range []struct {
		want string
		edit func(p *Payload)
	}{
		{"no graph", func(p *Payload) { p.Graph = nil }},
		{"constant_data[2]: 3 bytes at 40 of 32", func(p *Payload) { p.Graph.ConstantData[2].Offset = 40 }},
		{"constant_data[1] has a name", func(p *Payload) { p.Graph.ConstantData[1].Offset = 0 }},
		{"xvalues[1]: constant 9 of 4", func(p *Payload) {
			p.Graph.Xvalues[1].XvalueUnion.(*xnnpack.XNNQuantizedTensorValue).TensorValue.ConstantBufferIdx = 9
		}},
		{"xvalues[1]: constant 4 of 4", func(p *Payload) {
			p.Graph.Xvalues[1].XvalueUnion.(*xnnpack.XNNQuantizedTensorValue).QuantParams.(*xnnpack.PerChannelQuant).ScaleBufferIdx = 4
		}},
		{"num_dims is 3", func(p *Payload) { p.Graph.Xvalues[0].XvalueUnion.(*xnnpack.XNNTensorValue).NumDims = 3 }},
		{"xvalues[2]: id 0 is taken", func(p *Payload) { p.Graph.Xvalues[2].XvalueUnion.(*xnnpack.XNNTensorValue).IDOut = 0 }},
		{"external value 9", func(p *Payload) { p.Graph.OutputIDs[0] = 9 }},
		{"xnodes[0] XNNFullyConnected: filter_id: value 9", func(p *Payload) { p.Graph.Xnodes[0].XnodeUnion.(*xnnpack.XNNFullyConnected).FilterID = 9 }},
		{"input2_id: value 77", func(p *Payload) { p.Graph.Xnodes[1].XnodeUnion.(*xnnpack.XNNConcatenate2).Input2ID = 77 }},
		{"perm has 3 elements, num_dims is 2", func(p *Payload) {
			p.Graph.Xnodes[1].XnodeUnion = &xnnpack.XNNStaticTranspose{NumDims: 2, Perm: []uint32{0, 1, 2}, InputID: 2, OutputID: 3}
		}},
		{"paddings before", func(p *Payload) {
			p.Graph.Xnodes[1].XnodeUnion = &xnnpack.XNNStaticConstantPad{PrePaddings: []uint32{0, 1}, PostPaddings: []uint32{0}, InputID: 2, OutputID: 3}
		}},
		{"xnodes[1] is nil", func(p *Payload) { p.Graph.Xnodes[1].XnodeUnion = nil }},
	} {
		p := sample()
		c.edit(p)
		if _, err := p.Marshal(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
}

func TestDamage(t *testing.T) {
	good, err := sample().Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for i := range good {
		for _, x := range []byte{1, 0x80, 0xff} {
			b := bytes.Clone(good)
			b[i] ^= x
			if p, err := Unmarshal(b); err == nil {
				if _, err := p.Marshal(); err != nil {
					t.Errorf("byte %d ^ %#x: read, but not written: %v", i, x, err)
				}
			}
		}
		if _, err := Unmarshal(good[:i]); err == nil {
			t.Errorf("the first %d bytes of %d are read", i, len(good))
		}
	}
}

func FuzzUnmarshal(f *testing.F) {
	b, err := sample().Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	if b, err = os.ReadFile("testdata/linear.bin"); err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Unmarshal(b)
		if err != nil {
			return
		}
		c, err := p.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		q, err := Unmarshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if x, y := fb.AppendJSON(nil, p), fb.AppendJSON(nil, q); !bytes.Equal(x, y) {
			t.Fatalf("changed:\n%s\n%s", x, y)
		}
	})
}
