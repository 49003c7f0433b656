package mlx

import (
	"fmt"

	"github.com/lathe-ml/lathe/codegen/fb/mlx"
	"github.com/lathe-ml/lathe/codegen/mlxpayload"
	"github.com/lathe-ml/lathe/partition"
)

// check tells what in a payload the delegate would not look at before it reads or writes out of bounds: slots, constants
// whose bytes are not those of their shape, tensors that are read before anything wrote them.
func check(g *mlx.MLXGraph, named []partition.Named) error {
	if err := mlxpayload.Check(g); err != nil {
		return err
	}
	sizes := map[string]int64{}
	for _, n := range named {
		if have, ok := sizes[n.Key]; ok && have != n.Data.Size() {
			return fmt.Errorf("named data %q has two sizes", n.Key)
		}
		sizes[n.Key] = n.Data.Size()
	}
	has := make([]bool, g.NumConstantTensors)
	for _, s := range g.NamedSlots {
		size, ok := sizes[s.Name]
		if !ok {
			return fmt.Errorf("no data is named %q", s.Name)
		}
		if s.Slot.Idx >= g.NumConstantTensors {
			continue
		}
		has[s.Slot.Idx] = true
		m := g.TensorMeta[s.Slot.Idx]
		want := elementSize(m.ScalarType)
		for _, d := range m.Shape {
			if d.Value < 0 {
				return fmt.Errorf("constant %q has a size that is not constant", s.Name)
			}
			want *= int64(d.Value)
		}
		if size != want {
			return fmt.Errorf("constant %q has %d bytes, its shape asks for %d", s.Name, size, want)
		}
	}
	for i, ok := range has {
		if !ok {
			return fmt.Errorf("constant %d has no data", i)
		}
	}
	return checkReads(g)
}

func elementSize(t int8) int64 {
	switch t {
	case 2, 5, 15:
		return 2
	case 3, 6, 28:
		return 4
	case 4:
		return 8
	}
	return 1
}

// checkReads follows the chains and finds what is read before it is written.
func checkReads(g *mlx.MLXGraph) error {
	fixed := g.NumConstantTensors + g.NumInputTensors + g.NumOutputTensors
	written := map[uint32]bool{}
	for i := range g.NumConstantTensors + g.NumInputTensors {
		written[i] = true
	}
	for i := range g.NumMutableBufferTensors {
		written[fixed+i] = true
	}
	values := map[uint32]bool{}
	for _, s := range g.InputMap {
		if s.SlotType != mlx.SlotTypeTensorSlot {
			values[s.Idx] = true
		}
	}
	var err error
	var run func(i uint32)
	run = func(i uint32) {
		for j, in := range g.InstructionChains[i].Instructions {
			var outs, vouts []uint32
			walk(in.Op, func(t *mlx.Tid, write bool) {
				if write {
					outs = append(outs, t.Idx)
				} else if !written[t.Idx] && err == nil {
					err = fmt.Errorf("instruction %d of chain %d, %T, reads tensor %d before it is written", j, i, in.Op, t.Idx)
				}
			}, func(v *mlx.Vid, write bool) {
				if write {
					vouts = append(vouts, v.Idx)
				} else if !values[v.Idx] && err == nil {
					err = fmt.Errorf("instruction %d of chain %d, %T, reads value %d before it is written", j, i, in.Op, v.Idx)
				}
			})
			if s, ok := in.Op.(*mlx.ScanNode); ok {
				for _, t := range s.Sliced {
					written[t.Idx] = true
				}
			}
			for _, k := range chainsOf(in.Op) {
				run(k)
			}
			for _, o := range outs {
				written[o] = true
			}
			for _, o := range vouts {
				values[o] = true
			}
		}
	}
	run(g.MainChainIdx)
	if err != nil {
		return err
	}
	for i, s := range g.OutputMap {
		if s.SlotType == mlx.SlotTypeTensorSlot && !written[s.Idx] {
			return fmt.Errorf("result %d is never written", i)
		}
	}
	return nil
}
