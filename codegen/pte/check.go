package pte

import (
	"fmt"
	"math"
)

// Check tells what in p the runtime would follow out of bounds: indices of values,
// operators, delegates, data and memory, and data shorter than its tensor. The
// writer and the reader both call it. It names the part that is wrong, not the op:
// a program has no op names beyond its operators.
func (p *Program) Check() error {
	if len(p.Constants) > 0 && p.Constants[0] != nil {
		return fmt.Errorf("constants[0] is reserved and must be nil")
	}
	if len(p.Initial) > 0 && p.Initial[0] != nil {
		return fmt.Errorf("initial[0] is reserved and must be nil")
	}
	for i, b := range p.Constants {
		if i > 0 && b == nil {
			return fmt.Errorf("constants[%d] is nil", i)
		}
	}
	for i, b := range p.Initial {
		if i > 0 && b == nil {
			return fmt.Errorf("initial[%d] is nil", i)
		}
	}
	names := map[string]bool{}
	for i, n := range p.Named {
		switch {
		case n.Data == nil:
			return fmt.Errorf("named data %q (%d) is nil", n.Key, i)
		case names[n.Key]:
			return fmt.Errorf("named data %q stands twice", n.Key)
		case n.Align < 0 || n.Align&(n.Align-1) != 0:
			return fmt.Errorf("named data %q: alignment %d is no power of two", n.Key, n.Align)
		}
		names[n.Key] = true
	}
	clear(names)
	for i, plan := range p.Plans {
		if plan == nil {
			return fmt.Errorf("execution_plan[%d] is nil", i)
		}
		if names[plan.Name] {
			return fmt.Errorf("method %q stands twice", plan.Name)
		}
		names[plan.Name] = true
		if err := p.checkPlan(plan); err != nil {
			return fmt.Errorf("method %q: %w", plan.Name, err)
		}
	}
	return nil
}

func (p *Program) checkPlan(plan *Plan) error {
	values := func(what string, idx []int32) error {
		for i, v := range idx {
			if v < 0 || int(v) >= len(plan.Values) {
				return fmt.Errorf("%s[%d]: value %d of %d", what, i, v, len(plan.Values))
			}
		}
		return nil
	}
	tensors := func(idx []int32, none bool) error {
		for i, v := range idx {
			if none && v == -1 {
				continue
			}
			if v < 0 || int(v) >= len(plan.Values) {
				return fmt.Errorf("items[%d]: value %d of %d", i, v, len(plan.Values))
			}
			switch plan.Values[v].(type) {
			case *Tensor:
			case Null:
				if !none {
					return fmt.Errorf("items[%d]: value %d is None, not a tensor", i, v)
				}
			default:
				return fmt.Errorf("items[%d]: value %d is %T, not a tensor", i, v, plan.Values[v])
			}
		}
		return nil
	}
	if err := values("inputs", plan.Inputs); err != nil {
		return err
	}
	if err := values("outputs", plan.Outputs); err != nil {
		return err
	}
	for i, n := range plan.BufferSizes {
		if n < 0 {
			return fmt.Errorf("non_const_buffer_sizes[%d] is %d", i, n)
		}
	}
	for i, d := range plan.BufferDevices {
		if d.Buffer < 0 || int(d.Buffer) >= len(plan.BufferSizes) {
			return fmt.Errorf("non_const_buffer_device[%d]: buffer %d of %d", i, d.Buffer, len(plan.BufferSizes))
		}
	}
	for i, v := range plan.Values {
		var err error
		switch v := v.(type) {
		case nil:
			err = fmt.Errorf("nil")
		case *Tensor:
			err = p.checkTensor(plan, v)
		case IntList:
			for j, x := range v {
				if x < 0 || x >= int64(len(plan.Values)) {
					err = fmt.Errorf("items[%d]: value %d of %d", j, x, len(plan.Values))
					break
				}
				if _, ok := plan.Values[x].(Int); !ok {
					err = fmt.Errorf("items[%d]: value %d is %T, not an int", j, x, plan.Values[x])
					break
				}
			}
		case TensorList:
			err = tensors(v, false)
		case OptionalTensorList:
			err = tensors(v, true)
		}
		if err != nil {
			return fmt.Errorf("values[%d]: %w", i, err)
		}
	}
	for i, d := range plan.Delegates {
		if d == nil || d.Payload == nil {
			return fmt.Errorf("delegates[%d] has no payload", i)
		}
	}
	for i, c := range plan.Chains {
		if c == nil {
			return fmt.Errorf("chains[%d] is nil", i)
		}
		if len(c.Stack) != 0 && len(c.Stack) != len(c.Instructions) {
			return fmt.Errorf("chains[%d]: %d stack traces for %d instructions", i, len(c.Stack), len(c.Instructions))
		}
		if err := values("chain inputs", c.Inputs); err != nil {
			return err
		}
		if err := values("chain outputs", c.Outputs); err != nil {
			return err
		}
		for j, in := range c.Instructions {
			var err error
			switch in := in.(type) {
			case KernelCall:
				if in.Op < 0 || int(in.Op) >= len(plan.Operators) {
					err = fmt.Errorf("operator %d of %d", in.Op, len(plan.Operators))
				} else {
					err = values("args", in.Args)
				}
			case DelegateCall:
				if in.Delegate < 0 || int(in.Delegate) >= len(plan.Delegates) {
					err = fmt.Errorf("delegate %d of %d", in.Delegate, len(plan.Delegates))
				} else {
					err = values("args", in.Args)
				}
			case MoveCall:
				err = values("move", []int32{in.From, in.To})
			case JumpFalseCall:
				// A jump may end the chain: one past the last instruction.
				if in.Target < 0 || int(in.Target) > len(c.Instructions) {
					err = fmt.Errorf("jump to %d of %d", in.Target, len(c.Instructions))
				} else {
					err = values("condition", []int32{in.Cond})
				}
			case FreeCall:
				err = values("free", []int32{in.Value})
			default:
				err = fmt.Errorf("no instruction: %T", in)
			}
			if err != nil {
				return fmt.Errorf("chains[%d].instructions[%d]: %w", i, j, err)
			}
		}
	}
	return nil
}

func (p *Program) checkTensor(plan *Plan, t *Tensor) error {
	if t == nil {
		return fmt.Errorf("nil tensor")
	}
	if err := checkDimOrder(t.DimOrder, len(t.Sizes)); err != nil {
		return err
	}
	n, err := t.NBytes()
	if err != nil {
		return err
	}
	if t.Alloc != nil {
		m := t.Alloc.Memory
		if m == 0 || int64(m) >= int64(len(plan.BufferSizes)) {
			return fmt.Errorf("memory %d of %d", m, len(plan.BufferSizes))
		}
		size := plan.BufferSizes[m]
		if t.Alloc.Offset > math.MaxInt64 || int64(t.Alloc.Offset) > size || size-int64(t.Alloc.Offset) < n {
			return fmt.Errorf("%d bytes at %d of memory %d of %d bytes", n, t.Alloc.Offset, m, size)
		}
	}
	if t.Extra != nil && t.Extra.Location == External {
		if t.Extra.Name == "" {
			return fmt.Errorf("external data without a name")
		}
		return nil
	}
	if t.Data == 0 {
		return nil
	}
	what, blobs := "constants", p.Constants
	if t.Alloc != nil {
		what, blobs = "initial", p.Initial
	}
	if int64(t.Data) >= int64(len(blobs)) {
		return fmt.Errorf("%s[%d] of %d", what, t.Data, len(blobs))
	}
	if have := blobs[t.Data].Size(); have < n {
		return fmt.Errorf("%s[%d] has %d bytes, the tensor %v of %v needs %d", what, t.Data, have, t.Sizes, t.Type, n)
	}
	return nil
}

func checkDimOrder(order []uint8, rank int) error {
	if len(order) != rank {
		return fmt.Errorf("dim order %v for rank %d", order, rank)
	}
	var seen [256]bool
	for _, d := range order {
		if int(d) >= rank || seen[d] {
			return fmt.Errorf("dim order %v is no permutation", order)
		}
		seen[d] = true
	}
	return nil
}
