// Package interp is the reference interpreter: PyTorch's semantics of every operator, one file per operator family. It
// judges every pass.
//
// Real floats are computed in float64 and rounded once to the result's type, which is closer to the exact result than any
// order of float32 operations; integers are computed in int64 and wrap to their type. Views alias their storage, so that
// graphs with in-place operators run as PyTorch runs them.
package interp

import (
	"fmt"
	"strings"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ops"
)

// Value is a *Tensor, int64, float64, bool, string, complex128, DType, a list ([]Value), a nested graph (*ir.Graph) or nil
// for None.
type Value any

// Fn computes an operator. It gives the results in order, those of Tensor[] in line. For an operator that writes to an
// argument it gives the new contents, which the interpreter copies into the argument by the schema's marks.
type Fn func(c *Call) ([]Value, error)

// Call is what an operator's function sees.
type Call struct {
	Op ops.ID
	// Args are complete and in schema order.
	Args []Value
	// Results is the number of results that the node has.
	Results int

	run *run // nil outside of a session
}

// opError is an error found deep inside an operator; the node boundary turns it into a diagnostic.
type opError struct{ msg string }

func (e *opError) Error() string { return e.msg }

func fail(format string, args ...any) { panic(&opError{fmt.Sprintf(format, args...)}) }

// Apply runs an operator on complete arguments in schema order. Results of in-place operators are written to their
// arguments.
func Apply(op ops.ID, args []Value) ([]Value, error) {
	return apply(&Call{Op: op, Args: args})
}

// fns is the generated dispatch; control flow reaches it from inside, so that it cannot be named where it is initialized.
var fns []Fn

func init() { fns = dispatch[:] }

// Supported tells whether the interpreter has a function for the operator.
func Supported(op ops.ID) bool { return int(op) < len(fns) && fns[op] != nil }

func apply(c *Call) (outs []Value, err error) {
	if !Supported(c.Op) {
		return nil, &opError{"the interpreter has no function for it"}
	}
	info := c.Op.Info()
	if len(c.Args) != len(info.Schema.Args) {
		return nil, &opError{fmt.Sprintf("%d arguments, the schema has %d", len(c.Args), len(info.Schema.Args))}
	}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *opError:
			err = r
		default:
			err = &opError{fmt.Sprintf("its arguments (%s) do not fit one another: %v", describeArgs(info, c.Args), r)}
		}
	}()
	if level, n := unbatch(c.Args); level > 0 && info.Schema.NS != "torch._functorch.predispatch" {
		return mapBatched(c, level, n)
	}
	if outs, err = fns[c.Op](c); err != nil {
		return nil, err
	}
	if info.Mutates {
		return writeBack(c, info, outs)
	}
	if !info.View && info.Schema.NS == "aten" && !aliases[info.Schema.Base] {
		detach(c.Args, outs)
	}
	return outs, nil
}

// aliases are the operators whose result may be an argument although their schema does not say so: a later write to one
// shows in the other, in PyTorch and here.
var aliases = map[string]bool{
	"dropout": true, "alpha_dropout": true, "feature_dropout": true, "feature_alpha_dropout": true, "type_as": true,
	"atleast_1d": true, "atleast_2d": true, "atleast_3d": true, "meshgrid": true, "broadcast_tensors": true, "sum_to_size": true,
	"_unsafe_view": true, "unsafe_chunk": true, "unsafe_split": true, "unsafe_split_with_sizes": true, "lift": true, "_to_cpu": true,
}

// detach gives results a storage of their own where a function handed an argument through.
func detach(args, outs []Value) {
	for i, o := range outs {
		t, ok := o.(*Tensor)
		if ok && sharesStorage(args, t.storage) {
			outs[i] = compactCopy(t)
		}
	}
}

func sharesStorage(args []Value, s *Storage) bool {
	for _, a := range args {
		switch x := a.(type) {
		case *Tensor:
			if x.storage == s {
				return true
			}
		case []Value:
			if sharesStorage(x, s) {
				return true
			}
		}
	}
	return false
}

func describeArgs(info *ops.Info, args []Value) string {
	var parts []string
	for i, a := range args {
		if a != nil {
			parts = append(parts, info.Schema.Args[i].Name+" "+describe(a))
		}
	}
	return strings.Join(parts, ", ")
}

// writeBack copies the results that stand for a written argument into it, and gives the argument in their place. A
// function may have written itself and given the argument.
func writeBack(c *Call, info *ops.Info, outs []Value) ([]Value, error) {
	for i, r := range info.Schema.Rets {
		if !r.Write || i >= len(outs) {
			continue
		}
		for k, a := range info.Schema.Args {
			if !a.Write || a.Alias != r.Alias {
				continue
			}
			dst, ok := c.Args[k].(*Tensor)
			if !ok {
				continue
			}
			src, ok := outs[i].(*Tensor)
			if !ok {
				return nil, &opError{fmt.Sprintf("argument %s is written with %T", a.Name, outs[i])}
			}
			if src != dst {
				if !canCast(src.DType, dst.DType) && info.Schema.Base != "copy_" {
					return nil, &opError{fmt.Sprintf("a result of %s does not go into %s", src.DType, dst.DType)}
				}
				writeInto(dst, src)
			}
			outs[i] = dst
		}
	}
	return outs, nil
}

// canCast is torch's can_cast: no category is lost.
func canCast(from, to DType) bool {
	if from.IsComplex() && !to.IsComplex() || from.IsFloat() && classOf(to) == classInt {
		return false
	}
	return from == ops.Bool || to != ops.Bool
}

func one(t Value) ([]Value, error) { return []Value{t}, nil }

func (c *Call) argName(i int) string { return c.Op.Info().Schema.Args[i].Name }

// arg is the place of the schema's argument.
func (c *Call) arg(name string) Value {
	i := c.Op.Info().ArgIndex(name)
	if i < 0 {
		return nil
	}
	return c.Args[i]
}

// index is the place of the schema's argument; operators whose overloads differ in their arguments find them by name.
func (c *Call) index(name string) int { return c.Op.Info().ArgIndex(name) }

func (c *Call) base() string { return c.Op.Info().Schema.Base }

func (c *Call) overload() string { return c.Op.Info().Schema.Overload }

// T is the tensor at argument i; a number there becomes a 0-d tensor that counts as a number in promotion.
func (c *Call) T(i int) *Tensor {
	t := c.optT(i)
	if t == nil {
		fail("argument %s is missing", c.argName(i))
	}
	return t
}

func (c *Call) optT(i int) *Tensor {
	if i < 0 || i >= len(c.Args) {
		return nil
	}
	switch x := c.Args[i].(type) {
	case nil:
		return nil
	case *Tensor:
		return x
	case int64, float64, bool, complex128:
		return wrap(x)
	}
	fail("argument %s is no tensor but %s", c.argName(i), kindName(c.Args[i]))
	return nil
}

// wrap is a Python number as a 0-d tensor of the widest type of its kind.
func wrap(v Value) *Tensor {
	d := numberType(v)
	switch d {
	case ops.Float32:
		d = ops.Float64
	case ops.Complex64:
		d = ops.Complex128
	}
	t := scalarTensor(d, v)
	t.wrapped = true
	return t
}

func kindName(v Value) string {
	switch x := v.(type) {
	case nil:
		return "None"
	case *Tensor:
		return "a tensor " + x.String()
	case int64:
		return "an int"
	case float64:
		return "a float"
	case bool:
		return "a bool"
	case string:
		return "a string"
	case complex128:
		return "a complex number"
	case []Value:
		return "a list"
	case DType:
		return "a dtype"
	case *ir.Graph:
		return "a graph"
	case *batched:
		return "a tensor under vmap"
	}
	return fmt.Sprintf("%T", v)
}

// Ts is the list of tensors at argument i, nil where an element is None.
func (c *Call) Ts(i int) []*Tensor {
	l, ok := c.Args[i].([]Value)
	if !ok {
		if t := c.optT(i); t != nil {
			return []*Tensor{t}
		}
		return nil
	}
	ts := make([]*Tensor, len(l))
	for k, v := range l {
		switch x := v.(type) {
		case nil:
		case *Tensor:
			ts[k] = x
		default:
			if _, ok := numberOf(x); !ok {
				fail("element %d of argument %s is no tensor but %s", k, c.argName(i), kindName(v))
			}
			ts[k] = wrap(x)
		}
	}
	return ts
}

func numberOf(v Value) (Value, bool) {
	switch v.(type) {
	case int64, float64, bool, complex128:
		return v, true
	}
	return nil, false
}

// has tells whether argument i is given.
func (c *Call) has(i int) bool { return i >= 0 && i < len(c.Args) && c.Args[i] != nil }

// Int is the integer at argument i.
func (c *Call) Int(i int) int64 {
	k, ok := asInt(c.Args[i])
	if !ok {
		fail("argument %s is no int but %s", c.argName(i), kindName(c.Args[i]))
	}
	return k
}

func (c *Call) intOr(i int, def int64) int64 {
	if !c.has(i) {
		return def
	}
	return c.Int(i)
}

func asInt(v Value) (int64, bool) {
	switch x := v.(type) {
	case int64:
		return x, true
	case bool:
		if x {
			return 1, true
		}
		return 0, true
	case float64:
		if x == float64(int64(x)) {
			return int64(x), true
		}
	case *Tensor:
		if x.Numel() == 1 && classOf(x.DType) == classInt {
			return x.ints()[0], true
		}
	}
	return 0, false
}

// Ints is the list of integers at argument i; a single integer is a list of one.
func (c *Call) Ints(i int) []int64 {
	l, ok := c.Args[i].([]Value)
	if !ok {
		if c.Args[i] == nil {
			return nil
		}
		return []int64{c.Int(i)}
	}
	ks := make([]int64, len(l))
	for k, v := range l {
		if ks[k], ok = asInt(v); !ok {
			fail("element %d of argument %s is no int but %s", k, c.argName(i), kindName(v))
		}
	}
	return ks
}

// intsN is a list of n integers, where a list of one stands for all.
func (c *Call) intsN(i, n int) []int64 {
	ks := c.Ints(i)
	if len(ks) == 1 && n > 1 {
		out := make([]int64, n)
		for k := range out {
			out[k] = ks[0]
		}
		return out
	}
	if len(ks) != n {
		fail("argument %s has %d integers, not %d", c.argName(i), len(ks), n)
	}
	return ks
}

// Float is the number at argument i.
func (c *Call) Float(i int) float64 {
	f, ok := asFloat(c.Args[i])
	if !ok {
		fail("argument %s is no number but %s", c.argName(i), kindName(c.Args[i]))
	}
	return f
}

func (c *Call) floatOr(i int, def float64) float64 {
	if !c.has(i) {
		return def
	}
	return c.Float(i)
}

func asFloat(v Value) (float64, bool) {
	switch x := v.(type) {
	case int64:
		return float64(x), true
	case float64:
		return x, true
	case bool:
		if x {
			return 1, true
		}
		return 0, true
	case *Tensor:
		if x.Numel() == 1 && !x.DType.IsComplex() {
			return x.floats()[0], true
		}
	}
	return 0, false
}

func asComplex(v Value) complex128 {
	if z, ok := v.(complex128); ok {
		return z
	}
	if t, ok := v.(*Tensor); ok && t.Numel() == 1 {
		return t.complexes()[0]
	}
	f, ok := asFloat(v)
	if !ok {
		fail("%s is no number", kindName(v))
	}
	return complex(f, 0)
}

// Bool is the truth of argument i; None is false.
func (c *Call) Bool(i int) bool {
	if i < 0 || i >= len(c.Args) {
		return false
	}
	b, ok := asBool(c.Args[i])
	if !ok {
		fail("argument %s is no bool but %s", c.argName(i), kindName(c.Args[i]))
	}
	return b
}

func asBool(v Value) (val, ok bool) {
	switch x := v.(type) {
	case nil:
		return false, true
	case bool:
		return x, true
	case int64:
		return x != 0, true
	case float64:
		return x != 0, true
	case *Tensor:
		if x.Numel() == 1 {
			return x.bools()[0], true
		}
	}
	return false, false
}

// Str is the text at argument i, empty for None.
func (c *Call) Str(i int) string {
	if i < 0 || i >= len(c.Args) {
		return ""
	}
	switch x := c.Args[i].(type) {
	case nil:
		return ""
	case string:
		return x
	}
	fail("argument %s is no string but %s", c.argName(i), kindName(c.Args[i]))
	return ""
}

// dtypeOr is the dtype at argument i, def for None.
func (c *Call) dtypeOr(i int, def DType) DType {
	if i < 0 || i >= len(c.Args) {
		return def
	}
	switch x := c.Args[i].(type) {
	case nil:
		return def
	case DType:
		return x
	}
	fail("argument %s is no dtype but %s", c.argName(i), kindName(c.Args[i]))
	return def
}

// dim wraps a negative dimension of a tensor of some rank; a 0-d tensor has dimension 0.
func dim(d int64, rank int) int {
	n := int64(max(rank, 1))
	if d < -n || d >= n {
		fail("dimension %d of a tensor with %d dimensions", d, rank)
	}
	if d < 0 {
		d += n
	}
	return int(d)
}

// dims wraps a list of dimensions; an empty or absent list means all of them.
func dims(ds []int64, rank int) []bool {
	in := make([]bool, rank)
	if len(ds) == 0 {
		for i := range in {
			in[i] = true
		}
		return in
	}
	for _, d := range ds {
		k := dim(d, rank)
		if rank == 0 {
			continue
		}
		if in[k] {
			fail("dimension %d is named twice", d)
		}
		in[k] = true
	}
	return in
}

// rng is the stream that the operator draws from: the session's, or a fixed one outside of sessions.
func (c *Call) rng() *rng {
	if c.run != nil {
		return c.run.s.rng
	}
	return newRNG(0)
}
