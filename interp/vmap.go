package interp

import "slices"

// batched is a tensor under vmap: one tensor for each place of a dimension that the operators in between do not see.
type batched struct {
	level int64
	items []Value
	// proto stands for an item where there are none, so that their shapes are known.
	proto Value
}

// unbatch finds the innermost level among arguments, and how many items it has.
func unbatch(args []Value) (level int64, n int) {
	for _, v := range args {
		switch x := v.(type) {
		case *batched:
			if x.level > level {
				level, n = x.level, len(x.items)
			}
		case []Value:
			if l, k := unbatch(x); l > level {
				level, n = l, k
			}
		}
	}
	return level, n
}

// itemArgs is the arguments that place i of a level sees; -1 is the place that stands for none.
func itemArgs(args []Value, level int64, i int) []Value {
	out := make([]Value, len(args))
	for k, v := range args {
		switch x := v.(type) {
		case *batched:
			if x.level == level {
				v = x.proto
				if i >= 0 {
					v = x.items[i]
				}
			}
		case []Value:
			v = itemArgs(x, level, i)
		}
		out[k] = v
	}
	return out
}

// mapBatched applies an operator at each place of the innermost level.
func mapBatched(c *Call, level int64, n int) ([]Value, error) {
	if n == 0 {
		outs, err := apply(&Call{Op: c.Op, Args: itemArgs(c.Args, level, -1), Results: c.Results, run: c.run})
		for k, v := range outs {
			outs[k] = &batched{level: level, proto: v}
		}
		return outs, err
	}
	var outs []Value
	for i := range n {
		one, err := apply(&Call{Op: c.Op, Args: itemArgs(c.Args, level, i), Results: c.Results, run: c.run})
		if err != nil {
			return nil, err
		}
		if outs == nil {
			outs = make([]Value, len(one))
			for k := range outs {
				outs[k] = &batched{level: level, items: make([]Value, n)}
			}
		}
		for k, v := range one {
			outs[k].(*batched).items[i] = v
		}
	}
	return outs, nil
}

// evalVmapNesting enters or leaves a level of vmap and gives its number.
func evalVmapNesting(c *Call) ([]Value, error) {
	if c.run == nil {
		fail("vmap needs a session")
	}
	if c.base() == "_vmap_increment_nesting" {
		c.run.levels++
		return one(c.run.levels)
	}
	c.run.levels--
	return one(c.run.levels + 1)
}

// evalAddBatchDim hides a dimension from the operators that follow.
func evalAddBatchDim(c *Call) ([]Value, error) {
	d, level := c.Int(1), c.Int(2)
	if b, ok := c.Args[0].(*batched); ok {
		// A level within another: each item is divided.
		out := &batched{level: b.level}
		for _, it := range b.items {
			v, err := evalAddBatchDim(&Call{Op: c.Op, Args: []Value{it, d, level}, run: c.run})
			if err != nil {
				return nil, err
			}
			out.items = append(out.items, v[0])
		}
		return one(out)
	}
	t := c.T(0)
	k := dim(d, t.Rank())
	if t.Rank() == 0 {
		fail("vmap over a 0-d tensor")
	}
	b := &batched{level: level}
	if t.Sizes[k] == 0 {
		b.proto = NewTensor(t.DType, slices.Delete(slices.Clone(t.Sizes), k, k+1)...)
	}
	for i := range t.Sizes[k] {
		b.items = append(b.items, selectDim(t, k, i))
	}
	return one(b)
}

// evalRemoveBatchDim makes a hidden dimension visible again.
func evalRemoveBatchDim(c *Call) ([]Value, error) {
	return one(removeBatch(c.Args[0], c.Int(1), c.Int(2), c.Int(3)))
}

func removeBatch(v Value, level, size, d int64) Value {
	switch x := v.(type) {
	case *batched:
		if x.level != level {
			out := &batched{level: x.level}
			for _, it := range x.items {
				out.items = append(out.items, removeBatch(it, level, size, d))
			}
			return out
		}
		if lv, n := unbatch(x.items); lv > 0 {
			// Items that are themselves batched at an outer level: that level stays outside.
			out := &batched{level: lv}
			for i := range n {
				out.items = append(out.items, removeBatch(&batched{level: level, items: itemArgs(x.items, lv, i)}, level, size, d))
			}
			return out
		}
		if len(x.items) == 0 {
			p, ok := x.proto.(*Tensor)
			if !ok {
				fail("vmap of %s over nothing", kindName(x.proto))
			}
			return NewTensor(p.DType, slices.Insert(slices.Clone(p.Sizes), dim(d, p.Rank()+1), 0)...)
		}
		ts := make([]*Tensor, len(x.items))
		for i, it := range x.items {
			t, ok := it.(*Tensor)
			if !ok {
				fail("vmap of %s", kindName(it))
			}
			ts[i] = t
		}
		return stack(ts, d)
	case *Tensor:
		k := dim(d, x.Rank()+1)
		sizes := slices.Insert(slices.Clone(x.Sizes), k, size)
		return expandTo(unsqueeze(x, k), sizes)
	}
	fail("vmap of %s", kindName(v))
	return nil
}
