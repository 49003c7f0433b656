// Package mlxpayload writes and reads the payload that ExecuTorch's MLX delegate gets: a
// header and the graph as a flatbuffer. Weights are not in it: they are named data of
// the program. It knows the format, never a graph of ours.
package mlxpayload

import (
	"encoding/binary"
	"fmt"
	"reflect"

	"github.com/lathe-ml/lathe/codegen/fb/mlx"
)

const (
	magic        = "MLX0"
	headerLength = 24
	align        = 16
)

// Payload is a graph, and data behind it that the runtime of 1.5.1 does not use.
type Payload struct {
	Graph *mlx.MLXGraph
	Data  []byte
}

// Marshal gives the payload's bytes. It fails on what [Check] finds.
func (p *Payload) Marshal() ([]byte, error) {
	if err := Check(p.Graph); err != nil {
		return nil, fmt.Errorf("MLX payload: %w", err)
	}
	fb, err := p.Graph.Marshal()
	if err != nil {
		return nil, fmt.Errorf("MLX payload: %w", err)
	}
	end := headerLength + len(fb)
	off := (end + align - 1) &^ (align - 1)
	out := make([]byte, off, off+len(p.Data))
	copy(out[4:], magic)
	binary.LittleEndian.PutUint64(out[8:], uint64(off))
	binary.LittleEndian.PutUint64(out[16:], uint64(len(p.Data)))
	copy(out[headerLength:], fb)
	return append(out, p.Data...), nil
}

// Unmarshal reads a payload, of which no byte is trusted. Data aliases b.
func Unmarshal(b []byte) (*Payload, error) {
	p, err := unmarshal(b)
	if err == nil {
		err = Check(p.Graph)
	}
	if err != nil {
		return nil, fmt.Errorf("MLX payload: %w", err)
	}
	return p, nil
}

func unmarshal(b []byte) (*Payload, error) {
	if len(b) < headerLength || string(b[4:8]) != magic {
		return nil, fmt.Errorf("no header %s", magic)
	}
	total := uint64(len(b))
	off, size := binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])
	if off < headerLength || off > total || size > total-off {
		return nil, fmt.Errorf("data of %d bytes at %d of %d", size, off, total)
	}
	g, err := mlx.UnmarshalMLXGraph(b[headerLength:off])
	if err != nil {
		return nil, err
	}
	return &Payload{Graph: g, Data: b[off : off+size]}, nil
}

// Check tells what in g the runtime would follow out of bounds: slots, chains, names.
// Shapes and dtypes are not looked at.
func Check(g *mlx.MLXGraph) error {
	if g == nil {
		return fmt.Errorf("no graph")
	}
	fixed := uint64(g.NumConstantTensors) + uint64(g.NumInputTensors) + uint64(g.NumOutputTensors) + uint64(g.NumMutableBufferTensors)
	c := checker{tensors: fixed + uint64(g.NumTempTensors), values: uint64(g.NumValues)}
	chain := func(what string, i int64) error {
		if i < 0 || i >= int64(len(g.InstructionChains)) {
			return fmt.Errorf("%s: chain %d of %d", what, i, len(g.InstructionChains))
		}
		return nil
	}
	if err := chain("main_chain_idx", int64(g.MainChainIdx)); err != nil {
		return err
	}
	if g.InitChainIdx != -1 {
		if err := chain("init_chain_idx", int64(g.InitChainIdx)); err != nil {
			return err
		}
	}
	for i, ch := range g.InstructionChains {
		if ch == nil {
			return fmt.Errorf("instruction_chains[%d] is nil", i)
		}
		for j, in := range ch.Instructions {
			if in == nil || in.Op == nil {
				return fmt.Errorf("instruction_chains[%d].instructions[%d] is nil", i, j)
			}
			err := c.walk(reflect.ValueOf(in.Op).Elem(), "")
			if err == nil {
				switch n := in.Op.(type) {
				case *mlx.IfNode:
					if err = chain("then_chain_idx", int64(n.ThenChainIdx)); err == nil {
						err = chain("else_chain_idx", int64(n.ElseChainIdx))
					}
				case *mlx.ScanNode:
					err = chain("body_chain_idx", int64(n.BodyChainIdx))
				}
			}
			if err != nil {
				return fmt.Errorf("instruction_chains[%d].instructions[%d] %s: %w", i, j, reflect.TypeOf(in.Op).Elem().Name(), err)
			}
		}
	}
	for _, m := range []struct {
		what string
		list []*mlx.SlotVariant
	}{{"input_map", g.InputMap}, {"output_map", g.OutputMap}, {"mutable_buffer_map", g.MutableBufferMap}} {
		for i, s := range m.list {
			if err := c.slot(s); err != nil {
				return fmt.Errorf("%s[%d]: %w", m.what, i, err)
			}
		}
	}
	for i, n := range g.NamedSlots {
		if n == nil {
			return fmt.Errorf("named_slots[%d] is nil", i)
		}
		if err := c.slot(n.Slot); err != nil {
			return fmt.Errorf("named_slots[%d] %q: %w", i, n.Name, err)
		}
	}
	if n := uint64(len(g.TensorMeta)); n > fixed {
		return fmt.Errorf("tensor_meta has %d entries for %d tensors", n, fixed)
	}
	return nil
}

type checker struct{ tensors, values uint64 }

func (c checker) slot(s *mlx.SlotVariant) error {
	if s == nil {
		return fmt.Errorf("no slot")
	}
	if s.SlotType == mlx.SlotTypeTensorSlot {
		return c.tid(s.Idx)
	}
	return c.vid(s.Idx)
}

func (c checker) tid(i uint32) error {
	if uint64(i) >= c.tensors {
		return fmt.Errorf("tensor slot %d of %d", i, c.tensors)
	}
	return nil
}

func (c checker) vid(i uint32) error {
	if uint64(i) >= c.values {
		return fmt.Errorf("value slot %d of %d", i, c.values)
	}
	return nil
}

func (c checker) optVid(v *mlx.Vid) error {
	if v == nil {
		return fmt.Errorf("no value slot")
	}
	return c.vid(v.Idx)
}

// walk looks at every slot that the fields of a node name.
func (c checker) walk(v reflect.Value, name string) error {
	err := func() error {
		switch x := v.Interface().(type) {
		case mlx.Tid:
			return c.tid(x.Idx)
		case mlx.Vid:
			return c.vid(x.Idx)
		case mlx.IntOrVid:
			if x.IsVid {
				return c.optVid(x.Vid)
			}
			return nil
		case mlx.FloatOrVid:
			if x.IsVid {
				return c.optVid(x.Vid)
			}
			return nil
		case mlx.VidOrTid:
			if x.IsVid {
				return c.optVid(x.Vid)
			}
			if x.Tid == nil {
				return fmt.Errorf("no tensor slot")
			}
			return c.tid(x.Tid.Idx)
		case mlx.IntOrVidOrTid:
			switch {
			case x.Kind == 0:
				return nil
			case x.Kind == 1:
				return c.optVid(x.Vid)
			case x.Kind == 2 && x.Tid != nil:
				return c.tid(x.Tid.Idx)
			}
			return fmt.Errorf("kind %d without a slot", x.Kind)
		}
		switch v.Kind() {
		case reflect.Pointer:
			if !v.IsNil() {
				return c.walk(v.Elem(), "")
			}
		case reflect.Struct:
			for i := range v.NumField() {
				if err := c.walk(v.Field(i), v.Type().Field(i).Tag.Get("json")); err != nil {
					return err
				}
			}
		case reflect.Slice:
			switch v.Type().Elem().Kind() {
			case reflect.Struct, reflect.Pointer:
				for i := range v.Len() {
					if err := c.walk(v.Index(i), fmt.Sprintf("[%d]", i)); err != nil {
						return err
					}
				}
			}
		}
		return nil
	}()
	if err != nil && name != "" {
		return fmt.Errorf("%s: %w", name, err)
	}
	return err
}
