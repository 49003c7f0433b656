package mlx

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"sort"

	"github.com/lathe-ml/lathe/codegen/fb/mlx"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/partition"
)

// written are the fields of nodes that name what the node makes.
// What a scan carries is read as well.
var written = map[string]bool{"Out": true, "Outs": true, "Outputs": true, "Sliced": true, "Carry": true}

var (
	tidType = reflect.TypeFor[mlx.Tid]()
	vidType = reflect.TypeFor[mlx.Vid]()
)

// walk calls ft and fv for each tensor and value that a node names.
func walk(op mlx.OpNode, ft func(t *mlx.Tid, write bool), fv func(v *mlx.Vid, write bool)) {
	v := reflect.ValueOf(op).Elem()
	for i := range v.NumField() {
		write := written[v.Type().Field(i).Name]
		walkField(v.Field(i), write, ft, fv)
	}
}

func walkField(v reflect.Value, write bool, ft func(t *mlx.Tid, write bool), fv func(v *mlx.Vid, write bool)) {
	switch v.Type() {
	case tidType:
		ft(v.Addr().Interface().(*mlx.Tid), write)
		return
	case vidType:
		fv(v.Addr().Interface().(*mlx.Vid), write)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			walkField(v.Elem(), write, ft, fv)
		}
	case reflect.Slice:
		switch v.Type().Elem().Kind() {
		case reflect.Struct, reflect.Pointer:
			for i := range v.Len() {
				walkField(v.Index(i), write, ft, fv)
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			walkField(v.Field(i), write, ft, fv)
		}
	}
}

func noVid(*mlx.Vid, bool) {}

// each calls f for the tensors of op itself.
func (b *builder) each(op mlx.OpNode, f func(t *mlx.Tid, write bool)) { walk(op, f, noVid) }

// eachNested calls f for the tensors of the chains that op runs.
func (b *builder) eachNested(op mlx.OpNode, f func(t *mlx.Tid, write bool)) {
	for _, i := range chainsOf(op) {
		for _, o := range b.chains[i].ops {
			walk(o, f, noVid)
			b.eachNested(o, f)
		}
	}
}

func chainsOf(op mlx.OpNode) []uint32 {
	switch n := op.(type) {
	case *mlx.IfNode:
		return []uint32{n.ThenChainIdx, n.ElseChainIdx}
	case *mlx.ScanNode:
		return []uint32{uint32(n.BodyChainIdx)}
	}
	return nil
}

// span is the time from the first making of a thing to its last use.
type span struct{ first, last int }

func (s *span) touch(at int) {
	s.first, s.last = min(s.first, at), max(s.last, at)
}

// finish drops what nobody reads, gives every tensor and value its slot and makes the graph.
func (b *builder) finish() (*mlx.MLXGraph, []partition.Named, error) {
	outputs := b.outputs()
	b.joinTransposes(outputs)
	b.sweep(outputs)
	b.dropChains()

	spans := map[*tensor]*span{}
	vspans := map[uint32]*span{}
	clock := 0
	var run func(c *chain)
	run = func(c *chain) {
		for _, op := range c.ops {
			clock++
			start := clock
			for _, i := range chainsOf(op) {
				run(b.chains[i])
			}
			if len(chainsOf(op)) > 0 {
				clock++
			}
			_, loop := op.(*mlx.ScanNode)
			tensorAt := func(t *tensor, at int) {
				s := spans[t]
				if s == nil {
					s = &span{math.MaxInt, -1}
					spans[t] = s
				}
				s.touch(at)
			}
			walk(op, func(t *mlx.Tid, write bool) {
				x := b.resolve(t.Idx)
				tensorAt(x, clock)
				if loop {
					tensorAt(x, start)
				}
			}, func(v *mlx.Vid, write bool) {
				s := vspans[v.Idx]
				if s == nil {
					s = &span{math.MaxInt, -1}
					vspans[v.Idx] = s
				}
				s.touch(clock)
				if loop {
					s.touch(start)
				}
			})
			if loop {
				// What the body reads of the outside must outlast every round.
				b.eachNested(op, func(t *mlx.Tid, write bool) {
					x := b.resolve(t.Idx)
					if s := spans[x]; s.first < start {
						s.touch(clock)
					}
				})
			}
		}
	}
	run(b.chains[0])
	end := clock + 1

	g := &mlx.MLXGraph{Version: "1", InitChainIdx: -1}
	var order [5][]*tensor
	place := func(t *tensor) {
		order[t.kind] = append(order[t.kind], t)
	}
	// Inputs keep their places, read or not; constants go by first use.
	for _, t := range b.tensors {
		if t.same == nil && (t.kind == kindInput || t.kind == kindBuffer) {
			place(t)
		}
	}
	var outs []*mlx.SlotVariant
	for _, o := range outputs {
		if o.t == nil {
			s := vspans[o.vid]
			if s == nil {
				s = &span{math.MaxInt, -1}
				vspans[o.vid] = s
			}
			s.touch(end)
			continue
		}
		if o.t.kind == kindTemp {
			o.t.kind = kindOutput
			place(o.t)
		}
	}
	used := func(c *chain) {
		for _, op := range c.ops {
			walk(op, func(t *mlx.Tid, _ bool) {
				if x := b.resolve(t.Idx); x.kind == kindConst && x.slot == 0 {
					x.slot = 1
					place(x)
				}
			}, noVid)
		}
	}
	for _, c := range b.chains {
		used(c)
	}
	used(b.init)
	for _, o := range outputs {
		if o.t != nil && o.t.kind == kindConst && o.t.slot == 0 {
			o.t.slot = 1
			place(o.t)
		}
	}
	slot := uint32(0)
	for _, k := range []tensorKind{kindConst, kindInput, kindOutput, kindBuffer} {
		for _, t := range order[k] {
			t.slot = slot
			slot++
			g.TensorMeta = append(g.TensorMeta, meta(b.g, t))
		}
	}
	g.NumConstantTensors, g.NumInputTensors = uint32(len(order[kindConst])), uint32(len(order[kindInput]))
	g.NumOutputTensors, g.NumMutableBufferTensors = uint32(len(order[kindOutput])), uint32(len(order[kindBuffer]))

	var temps []*tensor
	for t := range spans {
		if t.kind == kindTemp {
			temps = append(temps, t)
		}
	}
	index := map[*tensor]int{}
	for i, t := range b.tensors {
		index[t] = i
	}
	sort.Slice(temps, func(i, j int) bool {
		if a, c := spans[temps[i]].first, spans[temps[j]].first; a != c {
			return a < c
		}
		return index[temps[i]] < index[temps[j]]
	})
	ts := make([]span, len(temps))
	for i, t := range temps {
		ts[i] = *spans[t]
	}
	// What is dead before a result is made stays in the result's slot.
	var made []int
	for _, t := range order[kindOutput] {
		made = append(made, spans[t].first)
	}
	slots, n := color(ts, made)
	results := uint32(len(made))
	for i, t := range temps {
		if k := slots[i]; k < results {
			t.slot = order[kindOutput][k].slot
		} else {
			t.slot = slot + k - results
		}
	}
	g.NumTempTensors = n - results

	// Integer inputs are there from the start.
	for _, s := range b.inputs {
		if s.SlotType != mlx.SlotTypeTensorSlot {
			if vspans[s.Idx] == nil {
				vspans[s.Idx] = &span{0, 0}
			}
			vspans[s.Idx].touch(0)
		}
	}
	var vids []uint32
	for v := range vspans {
		vids = append(vids, v)
	}
	sort.Slice(vids, func(i, j int) bool {
		if a, c := vspans[vids[i]].first, vspans[vids[j]].first; a != c {
			return a < c
		}
		return vids[i] < vids[j]
	})
	vs := make([]span, len(vids))
	for i, v := range vids {
		vs[i] = *vspans[v]
	}
	vslots, nv := color(vs, nil)
	vslot := map[uint32]uint32{}
	for i, v := range vids {
		vslot[v] = vslots[i]
	}
	g.NumValues = nv

	renumber := func(c *chain) *mlx.InstructionChain {
		out := &mlx.InstructionChain{Instructions: []*mlx.Instruction{}}
		for _, op := range c.ops {
			walk(op, func(t *mlx.Tid, _ bool) { t.Idx = b.resolve(t.Idx).slot }, func(v *mlx.Vid, _ bool) { v.Idx = vslot[v.Idx] })
			out.Instructions = append(out.Instructions, &mlx.Instruction{Op: op})
		}
		return out
	}
	for _, c := range b.chains {
		g.InstructionChains = append(g.InstructionChains, renumber(c))
	}
	if len(b.init.ops) > 0 {
		g.InitChainIdx = int32(len(g.InstructionChains))
		g.InstructionChains = append(g.InstructionChains, renumber(b.init))
	}
	for _, s := range b.inputs {
		idx := vslot[s.Idx]
		if s.SlotType == mlx.SlotTypeTensorSlot {
			idx = b.tensors[s.Idx].slot
		}
		g.InputMap = append(g.InputMap, &mlx.SlotVariant{Idx: idx, SlotType: s.SlotType})
	}
	for _, o := range outputs {
		if o.t != nil {
			outs = append(outs, &mlx.SlotVariant{Idx: o.t.slot, SlotType: mlx.SlotTypeTensorSlot})
		} else {
			outs = append(outs, &mlx.SlotVariant{Idx: vslot[o.vid], SlotType: mlx.SlotTypeIntValueSlot})
		}
	}
	g.OutputMap = outs
	for _, t := range order[kindBuffer] {
		g.MutableBufferMap = append(g.MutableBufferMap, &mlx.SlotVariant{Idx: t.slot, SlotType: mlx.SlotTypeTensorSlot})
	}
	var named []partition.Named
	for i, t := range order[kindConst] {
		key := fmt.Sprintf("%s/%d", b.g.Name, i)
		g.NamedSlots = append(g.NamedSlots, &mlx.NamedSlot{Name: key, Slot: &mlx.SlotVariant{Idx: t.slot, SlotType: mlx.SlotTypeTensorSlot}})
		named = append(named, partition.Named{Key: key, Data: t.data, Align: 16})
	}
	return g, named, b.err
}

// output is one of the region's results: a tensor, or a value where t is nil.
type output struct {
	t   *tensor
	vid uint32
}

func (b *builder) outputs() []output {
	var outs []output
	for i, o := range b.g.Outputs {
		if o.Kind == ir.OutputBufferMutation {
			continue
		}
		a := b.g.Ret().Arg(i)
		v := a.Value()
		if v != nil && v.Type.IsTensor() {
			t := b.resolve(b.raw(v).Idx)
			if t.typ.Shape == nil && t.kind == kindTemp {
				t.typ = v.Type
			}
			outs = append(outs, output{t: t})
			continue
		}
		vid, ok := b.vids[v]
		if !ok {
			b.failf("result %d is no tensor and no integer", i)
		}
		outs = append(outs, output{vid: vid.Idx})
	}
	return outs
}

// joinTransposes makes one of two transpositions in a row, as those behind a convolution and of the model, where nobody else
// reads what lies between.
func (b *builder) joinTransposes(outputs []output) {
	reads, writes := map[*tensor]int{}, map[*tensor]int{}
	for _, c := range append([]*chain{b.init}, b.chains...) {
		for _, op := range c.ops {
			b.each(op, func(t *mlx.Tid, write bool) {
				if x := b.resolve(t.Idx); write {
					writes[x]++
				} else {
					reads[x]++
				}
			})
		}
	}
	for _, o := range outputs {
		if o.t != nil {
			reads[o.t]++
		}
	}
	for _, c := range b.chains {
		made, wrote := map[*tensor]int{}, map[*tensor]int{} // by which instruction of the chain
		for i, op := range c.ops {
			if len(chainsOf(op)) > 0 {
				clear(made) // its chains may write
			}
			if t, ok := op.(*mlx.TransposeNode); ok {
				x := b.resolve(t.X.Idx)
				if at, ok := made[x]; ok && reads[x] == 1 {
					first := c.ops[at].(*mlx.TransposeNode)
					if w, ok := wrote[b.resolve(first.X.Idx)]; !ok || w < at {
						perm := make([]int32, len(t.Perm))
						for k, d := range t.Perm {
							perm[k] = first.Perm[d]
						}
						t.X, t.Perm = first.X, perm
						c.ops[at] = nil
					}
				}
				if out := b.resolve(t.Out.Idx); out.kind == kindTemp && writes[out] == 1 {
					made[out] = i
				}
			}
			b.each(op, func(t *mlx.Tid, write bool) {
				if write {
					wrote[b.resolve(t.Idx)] = i
				}
			})
		}
		c.ops = slices.DeleteFunc(c.ops, func(op mlx.OpNode) bool { return op == nil })
	}
}

// sweep drops instructions whose results nobody reads.
func (b *builder) sweep(outputs []output) {
	live := map[*tensor]bool{}
	liveVid := map[uint32]bool{}
	for _, o := range outputs {
		if o.t != nil {
			live[o.t] = true
		} else {
			liveVid[o.vid] = true
		}
	}
	var keep func(c *chain, all bool)
	keep = func(c *chain, all bool) {
		var kept []mlx.OpNode
		for i := len(c.ops) - 1; i >= 0; i-- {
			op := c.ops[i]
			wanted := all
			switch op.(type) {
			case *mlx.UpdateAndAttendNode:
				wanted = true
			}
			walk(op, func(t *mlx.Tid, write bool) {
				x := b.resolve(t.Idx)
				wanted = wanted || write && (live[x] || x.kind == kindBuffer)
			}, func(v *mlx.Vid, write bool) { wanted = wanted || write && liveVid[v.Idx] })
			if _, ok := op.(*mlx.IfNode); ok {
				for _, k := range chainsOf(op) {
					keep(b.chains[k], all)
					wanted = wanted || len(b.chains[k].ops) > 0
				}
			}
			if !wanted {
				continue
			}
			walk(op, func(t *mlx.Tid, write bool) {
				if !write {
					live[b.resolve(t.Idx)] = true
				}
			}, func(v *mlx.Vid, write bool) {
				if !write {
					liveVid[v.Idx] = true
				}
			})
			if s, ok := op.(*mlx.ScanNode); ok {
				for _, t := range s.Carry {
					live[b.resolve(t.Idx)] = true
				}
				keep(b.chains[s.BodyChainIdx], true)
			}
			kept = append(kept, op)
		}
		for i, j := 0, len(kept)-1; i < j; i, j = i+1, j-1 {
			kept[i], kept[j] = kept[j], kept[i]
		}
		c.ops = kept
	}
	keep(b.chains[0], false)
}

// dropChains leaves out the chains that no instruction runs any more.
func (b *builder) dropChains() {
	to := map[uint32]uint32{0: 0}
	var kept []*chain
	var visit func(i uint32)
	visit = func(i uint32) {
		kept = append(kept, b.chains[i])
		for _, op := range b.chains[i].ops {
			for _, k := range chainsOf(op) {
				to[k] = uint32(len(kept))
				visit(k)
			}
		}
	}
	visit(0)
	for _, c := range kept {
		for _, op := range c.ops {
			switch n := op.(type) {
			case *mlx.IfNode:
				n.ThenChainIdx, n.ElseChainIdx = to[n.ThenChainIdx], to[n.ElseChainIdx]
			case *mlx.ScanNode:
				n.BodyChainIdx = int32(to[uint32(n.BodyChainIdx)])
			}
		}
	}
	b.chains = kept
}

// color gives each of the spans, sorted by their beginning, the least number that is free. What ends where another begins
// makes room for it: an instruction may write where it reads for the last time. The first numbers are there until something
// else takes them for good, each at its time in taken.
func color(spans []span, taken []int) (numbers []uint32, n uint32) {
	numbers = make([]uint32, len(spans))
	until := make([]int, len(taken))
	for i, s := range spans {
		end := s.last
		// What is made and never read still takes its place for that moment.
		if s.last == s.first {
			end++
		}
		k := 0
		for ; k < len(until); k++ {
			if until[k] <= s.first && (k >= len(taken) || end <= taken[k]) {
				break
			}
		}
		if k == len(until) {
			until = append(until, 0)
		}
		until[k] = end
		numbers[i] = uint32(k)
	}
	return numbers, uint32(len(until))
}

// meta is what a payload says of a tensor that is no temporary.
func meta(g *ir.Graph, t *tensor) *mlx.TensorMeta {
	m := &mlx.TensorMeta{ScalarType: scalarType(t.typ.DType), Shape: []*mlx.ShapeDim{}}
	for i, e := range t.typ.Shape {
		m.DimOrder = append(m.DimOrder, uint8(i))
		d := mlx.NewShapeDim()
		if k, ok := e.IsConst(); ok {
			d.Value = int32(min(k, math.MaxInt32))
		} else {
			r := g.Syms.Range(e)
			d.MinValue = int32(min(max(r.Min, 0), math.MaxInt32))
			if r.HasMax() && r.Max <= math.MaxInt32 {
				d.MaxValue = int32(r.Max)
			}
		}
		m.Shape = append(m.Shape, d)
	}
	return m
}
