package xnnpack

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/lathe-ml/lathe/codegen/fb/xnnpack"
	"github.com/lathe-ml/lathe/codegen/xnnpayload"
	"github.com/lathe-ml/lathe/partition"
)

// check tells what in a payload the delegate would not look at before it reads or writes out of bounds: constants whose
// bytes are not those of their shape, values that are read before a node wrote them, external values that are not those
// of the call.
func check(p *xnnpayload.Payload, named []partition.Named, externals int) error {
	if err := p.Check(); err != nil {
		return err
	}
	sizes := map[string]int64{}
	for _, n := range named {
		if have, ok := sizes[n.Key]; ok && have != n.Data.Size() {
			return fmt.Errorf("named data %q has two sizes", n.Key)
		}
		sizes[n.Key] = n.Data.Size()
	}
	data := func(i uint32) (int64, error) {
		c := p.Graph.ConstantData[i]
		size, ok := sizes[c.NamedKey]
		if !ok || uint64(size) != c.Size {
			return 0, fmt.Errorf("constant %d: no %d bytes are named %q", i, c.Size, c.NamedKey)
		}
		return size, nil
	}
	written := map[uint32]bool{xnnpayload.InvalidID: true}
	seen := map[uint32]bool{}
	outputs := map[uint32]bool{}
	for _, x := range p.Graph.Xvalues {
		v, q := tensorOf(x)
		if v.ExternalID != xnnpayload.InvalidID {
			if int(v.ExternalID) >= externals || seen[v.ExternalID] {
				return fmt.Errorf("external value %d of %d", v.ExternalID, externals)
			}
			seen[v.ExternalID] = true
			if v.Flags == flagInput {
				written[v.IDOut] = true
			} else {
				outputs[v.IDOut] = true
			}
		}
		if v.ConstantBufferIdx == 0 {
			continue
		}
		written[v.IDOut] = true
		have, err := data(v.ConstantBufferIdx)
		if err != nil {
			return err
		}
		if want := constantSize(v); want != have {
			return fmt.Errorf("value %d: %d bytes of data for %s %v", v.IDOut, have, v.Datatype, v.Dims)
		}
		switch q := q.(type) {
		case *xnnpack.PerChannelQuant:
			have, err := data(q.ScaleBufferIdx)
			if err != nil {
				return err
			}
			if int(q.ChannelDim) >= len(v.Dims) || q.NumScales != v.Dims[q.ChannelDim] || have != 4*int64(q.NumScales) {
				return fmt.Errorf("value %d: %d scales for dimension %d of %v", v.IDOut, q.NumScales, q.ChannelDim, v.Dims)
			}
		case *xnnpack.PerChannelGroupQuant:
			have, err := data(q.ScaleBufferIdx)
			if err != nil {
				return err
			}
			if len(v.Dims) != 2 || q.GroupSize <= 0 || int64(q.NumScales)*int64(q.GroupSize) != int64(v.Dims[0])*int64(v.Dims[1]) || have != 2*int64(q.NumScales) {
				return fmt.Errorf("value %d: %d scales for groups of %d in %v", v.IDOut, q.NumScales, q.GroupSize, v.Dims)
			}
		}
	}
	for i, x := range p.Graph.Xnodes {
		ins, outs := operands(x.XnodeUnion)
		for _, id := range ins {
			if !written[id] {
				return fmt.Errorf("node %d, %T, reads value %d before it is written", i, x.XnodeUnion, id)
			}
		}
		for _, id := range outs {
			if written[id] {
				return fmt.Errorf("node %d, %T, writes value %d once more", i, x.XnodeUnion, id)
			}
			written[id] = true
		}
	}
	for id := range outputs {
		if !written[id] {
			return fmt.Errorf("value %d is given out and never written", id)
		}
	}
	return nil
}

func tensorOf(x *xnnpack.XValue) (*xnnpack.XNNTensorValue, xnnpack.XNNQuantParams) {
	switch u := x.XvalueUnion.(type) {
	case *xnnpack.XNNTensorValue:
		return u, nil
	case *xnnpack.XNNQuantizedTensorValue:
		return u.TensorValue, u.QuantParams
	}
	return &xnnpack.XNNTensorValue{}, nil
}

// constantSize is the number of bytes that the delegate reads for v.
func constantSize(v *xnnpack.XNNTensorValue) int64 {
	n := int64(1)
	for i, d := range v.Dims {
		k := int64(d)
		if i == len(v.Dims)-1 && (v.Datatype == xnnpack.XNNDatatypeQcint4 || v.Datatype == xnnpack.XNNDatatypeQbint4) {
			k = (k + 1) / 2 // two to a byte, rows begin at a byte
		}
		n *= k
	}
	switch v.Datatype {
	case xnnpack.XNNDatatypeFp32, xnnpack.XNNDatatypeQint32, xnnpack.XNNDatatypeQcint32, xnnpack.XNNDatatypeInt32:
		return 4 * n
	case xnnpack.XNNDatatypeFp16, xnnpack.XNNDatatypeBf16:
		return 2 * n
	}
	return n
}

// operands gives the ids that a node reads and those that it writes.
func operands(u xnnpack.XNodeUnion) (ins, outs []uint32) {
	v := reflect.ValueOf(u).Elem()
	t := v.Type()
	n := xnnpayload.CatInputs(u)
	for i := range t.NumField() {
		name := t.Field(i).Name
		if v.Field(i).Kind() != reflect.Uint32 || !strings.HasSuffix(name, "ID") {
			continue
		}
		id := uint32(v.Field(i).Uint())
		var place int
		switch {
		case strings.HasPrefix(name, "Output"):
			outs = append(outs, id)
		case n > 0 && parse(name, &place) && place > n:
			// A field for inputs that this member of the union has not.
		default:
			ins = append(ins, id)
		}
	}
	return ins, outs
}

func parse(name string, place *int) bool {
	k, err := fmt.Sscanf(name, "Input%dID", place)
	return err == nil && k == 1
}
