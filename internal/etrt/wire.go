package etrt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

var le = binary.LittleEndian

// encoder builds a request frame; the layout is written at the top of tools/oracle/et/runner.cpp.
type encoder struct{ b []byte }

func (e *encoder) u8(v uint8)   { e.b = append(e.b, v) }
func (e *encoder) u32(v uint32) { e.b = le.AppendUint32(e.b, v) }
func (e *encoder) u64(v uint64) { e.b = le.AppendUint64(e.b, v) }
func (e *encoder) str(s string) { e.u32(uint32(len(s))); e.b = append(e.b, s...) }

func (e *encoder) bool(v bool) {
	if v {
		e.u8(1)
	} else {
		e.u8(0)
	}
}

func (e *encoder) tensor(t *Tensor) error {
	if t == nil {
		return errors.New("no tensor")
	}
	order, err := t.DimOrder()
	if err != nil {
		return err
	}
	size := t.DType.Size()
	if size == 0 {
		return fmt.Errorf("element type %s cannot be passed", t.DType)
	}
	for _, s := range t.Shape {
		if s < 0 || s > math.MaxInt32 {
			return fmt.Errorf("size %d is not one the runtime can hold", s)
		}
	}
	if want := t.Numel() * int64(size); want != int64(len(t.Data)) {
		return fmt.Errorf("%s%v needs %d bytes, has %d", t.DType, t.Shape, want, len(t.Data))
	}
	e.u8(uint8(t.DType))
	e.u8(uint8(len(t.Shape)))
	for _, s := range t.Shape {
		e.u64(uint64(s))
	}
	e.b = append(e.b, order...)
	e.u64(uint64(len(t.Data)))
	e.b = append(e.b, t.Data...)
	return nil
}

func (e *encoder) value(v Value) error {
	e.u8(uint8(v.Kind))
	switch v.Kind {
	case KindNone:
	case KindTensor:
		return e.tensor(v.Tensor)
	case KindString:
		e.str(v.Str)
	case KindFloat:
		e.u64(math.Float64bits(v.Float))
	case KindInt:
		e.u64(uint64(v.Int))
	case KindBool:
		e.bool(v.Bool)
	case KindBools:
		e.u32(uint32(len(v.Bools)))
		for _, b := range v.Bools {
			e.bool(b)
		}
	case KindFloats:
		e.u32(uint32(len(v.Floats)))
		for _, f := range v.Floats {
			e.u64(math.Float64bits(f))
		}
	case KindInts:
		e.u32(uint32(len(v.Ints)))
		for _, i := range v.Ints {
			e.u64(uint64(i))
		}
	case KindTensors, KindOptionalTensors:
		e.u32(uint32(len(v.Tensors)))
		for i, t := range v.Tensors {
			if v.Kind == KindOptionalTensors {
				e.bool(t != nil)
				if t == nil {
					continue
				}
			}
			if err := e.tensor(t); err != nil {
				return fmt.Errorf("entry %d: %w", i, err)
			}
		}
	default:
		return fmt.Errorf("%s cannot be passed", v.Kind)
	}
	return nil
}

func (e *encoder) values(vs []Value) error {
	e.u32(uint32(len(vs)))
	for i, v := range vs {
		if err := e.value(v); err != nil {
			return fmt.Errorf("input %d: %w", i, err)
		}
	}
	return nil
}

// decoder reads a reply frame. The first shortfall sticks in err and everything read after it is zero.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) take(n uint64) []byte {
	if d.err == nil && n > uint64(len(d.b)) {
		d.err = errors.New("reply of the runner is cut short")
	}
	if d.err != nil {
		return nil
	}
	p := d.b[:n:n]
	d.b = d.b[n:]
	return p
}

func (d *decoder) u8() uint8 {
	if p := d.take(1); p != nil {
		return p[0]
	}
	return 0
}

func (d *decoder) u32() uint32 {
	if p := d.take(4); p != nil {
		return le.Uint32(p)
	}
	return 0
}

func (d *decoder) u64() uint64 {
	if p := d.take(8); p != nil {
		return le.Uint64(p)
	}
	return 0
}

func (d *decoder) str() string { return string(d.take(uint64(d.u32()))) }

// shape reads a rank, that many sizes and the dim order, and returns strides unless the order is the index order.
func (d *decoder) shape() (shape, strides []int64) {
	rank := int(d.u8())
	shape = make([]int64, rank)
	for i := range shape {
		shape[i] = int64(d.u64())
	}
	order := d.take(uint64(rank))
	plain := true
	for i, o := range order {
		plain = plain && int(o) == i
		if int(o) >= rank {
			d.err = fmt.Errorf("dim order %v of rank %d", order, rank)
		}
	}
	if plain || d.err != nil {
		return shape, nil
	}
	strides = make([]int64, rank)
	step := int64(1)
	for i := rank - 1; i >= 0; i-- {
		strides[order[i]] = step
		step *= shape[order[i]]
	}
	return shape, strides
}

func (d *decoder) tensor() *Tensor {
	t := &Tensor{DType: DType(d.u8())}
	t.Shape, t.Strides = d.shape()
	t.Data = d.take(d.u64())
	return t
}

func (d *decoder) value() Value {
	v := Value{Kind: Kind(d.u8())}
	switch v.Kind {
	case KindNone:
	case KindTensor:
		v.Tensor = d.tensor()
	case KindString:
		v.Str = d.str()
	case KindFloat:
		v.Float = math.Float64frombits(d.u64())
	case KindInt:
		v.Int = int64(d.u64())
	case KindBool:
		v.Bool = d.u8() != 0
	case KindBools:
		for n := d.u32(); n > 0 && d.err == nil; n-- {
			v.Bools = append(v.Bools, d.u8() != 0)
		}
	case KindFloats:
		for n := d.u32(); n > 0 && d.err == nil; n-- {
			v.Floats = append(v.Floats, math.Float64frombits(d.u64()))
		}
	case KindInts:
		for n := d.u32(); n > 0 && d.err == nil; n-- {
			v.Ints = append(v.Ints, int64(d.u64()))
		}
	case KindTensors, KindOptionalTensors:
		for n := d.u32(); n > 0 && d.err == nil; n-- {
			if v.Kind == KindOptionalTensors && d.u8() == 0 {
				v.Tensors = append(v.Tensors, nil)
				continue
			}
			v.Tensors = append(v.Tensors, d.tensor())
		}
	default:
		if d.err == nil {
			d.err = fmt.Errorf("reply with a value of %s", v.Kind)
		}
	}
	return v
}

func (d *decoder) values() []Value {
	var vs []Value
	for n := d.u32(); n > 0 && d.err == nil; n-- {
		vs = append(vs, d.value())
	}
	return vs
}
