// Package xnnpayload writes and reads the payload that ExecuTorch's XNNPACK delegate
// gets: a header, the graph as a flatbuffer, and constant data behind it. It knows the
// format, never a graph of ours.
package xnnpayload

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"

	"github.com/lathe-ml/lathe/codegen/fb/xnnpack"
)

// InvalidID is the id of a value that is not there, such as an absent bias.
const InvalidID = math.MaxUint32

// NoOffset is the offset of a constant that is found by name.
const NoOffset = math.MaxUint64

const (
	magic        = "XH00"
	headerLength = 30
	align        = 16
)

// Payload is a graph and the constants that stand behind it. Weights usually are not
// among them: they are named data of the program (ConstantDataOffset.NamedKey).
type Payload struct {
	Graph *xnnpack.XNNGraph
	// Data is addressed by ConstantDataOffset.Offset.
	Data []byte
}

// AddData appends b to the constant data, aligned, and gives its entry for
// Graph.ConstantData.
func (p *Payload) AddData(b []byte) *xnnpack.ConstantDataOffset {
	p.Data = append(p.Data, make([]byte, pad(len(p.Data)))...)
	c := &xnnpack.ConstantDataOffset{Offset: uint64(len(p.Data)), Size: uint64(len(b))}
	p.Data = append(p.Data, b...)
	return c
}

func pad(n int) int { return -n & (align - 1) }

// Marshal gives the payload's bytes. It fails on what [Payload.Check] finds.
func (p *Payload) Marshal() ([]byte, error) {
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("XNNPACK payload: %w", err)
	}
	fb, err := p.Graph.Marshal()
	if err != nil {
		return nil, fmt.Errorf("XNNPACK payload: %w", err)
	}
	head := headerLength + pad(headerLength)
	data := head + len(fb) + pad(len(fb))
	out := make([]byte, data, data+len(p.Data))
	copy(out[4:], magic)
	binary.LittleEndian.PutUint16(out[8:], headerLength)
	binary.LittleEndian.PutUint32(out[10:], uint32(head))
	binary.LittleEndian.PutUint32(out[14:], uint32(len(fb)))
	binary.LittleEndian.PutUint32(out[18:], uint32(data))
	binary.LittleEndian.PutUint64(out[22:], uint64(len(p.Data)))
	copy(out[head:], fb)
	return append(out, p.Data...), nil
}

// Unmarshal reads a payload, of which no byte is trusted. Data aliases b.
func Unmarshal(b []byte) (*Payload, error) {
	p, err := unmarshal(b)
	if err == nil {
		err = p.Check()
	}
	if err != nil {
		return nil, fmt.Errorf("XNNPACK payload: %w", err)
	}
	return p, nil
}

func unmarshal(b []byte) (*Payload, error) {
	if len(b) < headerLength || string(b[4:8]) != magic {
		return nil, fmt.Errorf("no header %s", magic)
	}
	if n := binary.LittleEndian.Uint16(b[8:]); n < headerLength {
		return nil, fmt.Errorf("header of %d bytes", n)
	}
	total := uint64(len(b))
	off, size := uint64(binary.LittleEndian.Uint32(b[10:])), uint64(binary.LittleEndian.Uint32(b[14:]))
	data, dataSize := uint64(binary.LittleEndian.Uint32(b[18:])), binary.LittleEndian.Uint64(b[22:])
	if off > total || size > total-off {
		return nil, fmt.Errorf("flatbuffer of %d bytes at %d of %d", size, off, total)
	}
	if data < off+size || data > total || dataSize > total-data {
		return nil, fmt.Errorf("constant data of %d bytes at %d of %d", dataSize, data, total)
	}
	g, err := xnnpack.UnmarshalXNNGraph(b[off:off+size], "XN00")
	if err != nil {
		return nil, err
	}
	return &Payload{Graph: g, Data: b[data : data+dataSize]}, nil
}

// Check tells what in p the runtime would follow out of bounds: constants, ids of
// values, lists of other lengths than they say.
func (p *Payload) Check() error {
	g := p.Graph
	if g == nil {
		return fmt.Errorf("no graph")
	}
	size := uint64(len(p.Data))
	for i, c := range g.ConstantData {
		switch {
		case c == nil:
			return fmt.Errorf("constant_data[%d] is nil", i)
		case i == 0:
			// Reserved.
		case c.NamedKey != "":
			if c.Offset != NoOffset {
				return fmt.Errorf("constant_data[%d] has a name, %q, and an offset", i, c.NamedKey)
			}
		case c.Offset > size || c.Size > size-c.Offset:
			return fmt.Errorf("constant_data[%d]: %d bytes at %d of %d", i, c.Size, c.Offset, size)
		}
	}
	constants := max(len(g.ConstantData), len(g.ConstantBuffer))
	constant := func(idx uint32) error {
		if idx != 0 && int64(idx) >= int64(constants) {
			return fmt.Errorf("constant %d of %d", idx, constants)
		}
		return nil
	}
	ids := map[uint32]bool{InvalidID: true}
	for i, v := range g.Xvalues {
		if v == nil {
			return fmt.Errorf("xvalues[%d] is nil", i)
		}
		var t *xnnpack.XNNTensorValue
		var err error
		switch u := v.XvalueUnion.(type) {
		case *xnnpack.XNNTensorValue:
			t = u
		case *xnnpack.XNNQuantizedTensorValue:
			if u == nil {
				break
			}
			t = u.TensorValue
			switch q := u.QuantParams.(type) {
			case *xnnpack.PerChannelQuant:
				err = constant(q.ScaleBufferIdx)
			case *xnnpack.PerChannelGroupQuant:
				err = constant(q.ScaleBufferIdx)
			}
		}
		switch {
		case t == nil:
			err = fmt.Errorf("no tensor value")
		case err != nil:
		case int(t.NumDims) != len(t.Dims):
			err = fmt.Errorf("num_dims is %d for dims %v", t.NumDims, t.Dims)
		case t.IDOut == InvalidID || ids[t.IDOut]:
			err = fmt.Errorf("id %d is taken", t.IDOut)
		default:
			err = constant(t.ConstantBufferIdx)
		}
		if err != nil {
			return fmt.Errorf("xvalues[%d]: %w", i, err)
		}
		ids[t.IDOut] = true
	}
	for _, list := range [][]uint32{g.InputIDs, g.OutputIDs} {
		for _, id := range list {
			if id == InvalidID || !ids[id] {
				return fmt.Errorf("external value %d is not declared", id)
			}
		}
	}
	for i, n := range g.Xnodes {
		if n == nil || n.XnodeUnion == nil {
			return fmt.Errorf("xnodes[%d] is nil", i)
		}
		if err := checkNode(n.XnodeUnion, ids); err != nil {
			return fmt.Errorf("xnodes[%d] %s: %w", i, reflect.TypeOf(n.XnodeUnion).Elem().Name(), err)
		}
	}
	return nil
}

// checkNode looks at all fields named as ids and at lists whose length is told apart.
func checkNode(u xnnpack.XNodeUnion, ids map[uint32]bool) error {
	v := reflect.ValueOf(u).Elem()
	t := v.Type()
	numDims := v.FieldByName("NumDims")
	unused := map[string]bool{}
	if n := CatInputs(u); n > 0 {
		// Five inputs have a field; what the member does not use may hold anything.
		for k := n + 1; k <= 5; k++ {
			unused[fmt.Sprintf("Input%dID", k)] = true
		}
	}
	for i := range t.NumField() {
		f := v.Field(i)
		name := t.Field(i).Name
		switch {
		case f.Kind() == reflect.Uint32 && len(name) > 2 && name[len(name)-2:] == "ID":
			if !unused[name] && !ids[uint32(f.Uint())] {
				return fmt.Errorf("%s: value %d is not declared", t.Field(i).Tag.Get("json"), f.Uint())
			}
		case f.Kind() == reflect.Slice && numDims.IsValid() && uint64(f.Len()) != numDims.Uint():
			return fmt.Errorf("%s has %d elements, num_dims is %d", t.Field(i).Tag.Get("json"), f.Len(), numDims.Uint())
		}
	}
	if p, ok := u.(*xnnpack.XNNStaticConstantPad); ok && len(p.PrePaddings) != len(p.PostPaddings) {
		return fmt.Errorf("%d paddings before, %d behind", len(p.PrePaddings), len(p.PostPaddings))
	}
	return nil
}

// CatInputs is the number of tensors that a concatenation joins, which its node's type tells; 0 for other nodes.
func CatInputs(u xnnpack.XNodeUnion) int {
	switch u.(type) {
	case *xnnpack.XNNConcatenate2:
		return 2
	case *xnnpack.XNNConcatenate3:
		return 3
	case *xnnpack.XNNConcatenate4:
		return 4
	case *xnnpack.XNNConcatenate5:
		return 5
	}
	return 0
}
