package interp

import (
	"math"
	"slices"
	"strings"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ops"
)

// evalNumber computes Python's operators and functions on numbers: _operator.*, torch.sym_*, math.*, round.
func evalNumber(c *Call) ([]Value, error) {
	name := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(c.base(), "_"), "sym_"), "_")
	a := c.Args[0]
	if t, ok := a.(*Tensor); ok {
		a = t.item()
	}
	num := func(i int) Value {
		v := c.Args[i]
		if t, ok := v.(*Tensor); ok {
			v = t.item()
		}
		return v
	}
	switch name {
	case "ite":
		if b, _ := asBool(a); b {
			return one(num(1))
		}
		return one(num(2))
	case "not":
		b, ok := asBool(a)
		if !ok {
			fail("not of %s", kindName(a))
		}
		return one(!b)
	case "sum":
		var s Value = int64(0)
		l, _ := a.([]Value)
		for _, v := range l {
			s = number("add", s, v)
		}
		return one(s)
	case "fresh_size":
		return one(a)
	case "int":
		if f, ok := a.(float64); ok {
			return one(truncInt(f))
		}
		k, ok := asInt(a)
		if !ok {
			fail("int of %s", kindName(a))
		}
		return one(k)
	case "float":
		return one(mustFloat(a))
	case "trunc", "ceil", "floor":
		if k, ok := a.(int64); ok {
			return one(k)
		}
		f := map[string]func(float64) float64{"trunc": math.Trunc, "ceil": math.Ceil, "floor": math.Floor}[name]
		return one(truncInt(f(mustFloat(a))))
	case "round":
		if c.Op.Info().Schema.NS == "builtins" {
			if c.has(1) {
				p := math.Pow10(int(c.Int(1)))
				if k, ok := a.(int64); ok {
					return one(int64(math.RoundToEven(float64(k)*p) / p))
				}
				return one(math.RoundToEven(mustFloat(a)*p) / p)
			}
			return one(truncInt(math.RoundToEven(mustFloat(a))))
		}
	case "neg", "pos", "abs":
		switch x := a.(type) {
		case float64:
			return one(map[string]float64{"neg": -x, "pos": x, "abs": math.Abs(x)}[name])
		default:
			k, ok := asInt(x)
			if !ok {
				fail("%s of %s", name, kindName(a))
			}
			return one(map[string]int64{"neg": -k, "pos": k, "abs": max(k, -k)}[name])
		}
	}
	if f, ok := map[string]func(float64) float64{
		"sqrt": math.Sqrt, "sin": math.Sin, "cos": math.Cos, "tan": math.Tan, "asin": math.Asin, "acos": math.Acos, "atan": math.Atan,
		"sinh": math.Sinh, "cosh": math.Cosh, "tanh": math.Tanh, "log2": math.Log2,
	}[name]; ok {
		return one(f(mustFloat(a)))
	}
	if len(c.Args) != 2 {
		fail("no function %s of numbers", c.base())
	}
	return one(number(name, a, num(1)))
}

// number computes a binary operator of Python numbers.
func number(name string, a, b Value) Value {
	_, fa := a.(float64)
	_, fb := b.(float64)
	x, okA := asFloat(a)
	y, okB := asFloat(b)
	if !okA || !okB {
		if name == "eq" || name == "ne" {
			return (a == b) == (name == "eq")
		}
		fail("%s of %s and %s", name, kindName(a), kindName(b))
	}
	if !fa && !fb {
		p, _ := asInt(a)
		q, _ := asInt(b)
		ba, isA := a.(bool)
		bb, isB := b.(bool)
		switch name {
		case "add":
			return p + q
		case "sub":
			return p - q
		case "mul":
			return p * q
		case "floordiv":
			return floorDivInt(p, q, ops.Int64)
		case "mod":
			return p - q*floorDivInt(p, q, ops.Int64)
		case "truediv":
			return x / float64(divisor(q))
		case "pow":
			if q < 0 {
				return math.Pow(x, y)
			}
			return powInt(p, q, ops.Int64)
		case "and":
			if isA && isB {
				return ba && bb
			}
			return p & q
		case "or":
			if isA && isB {
				return ba || bb
			}
			return p | q
		case "xor":
			if isA && isB {
				return ba != bb
			}
			return p ^ q
		case "lshift":
			return p << max(q, 0)
		case "rshift":
			return p >> max(q, 0)
		case "max":
			return max(p, q)
		case "min":
			return min(p, q)
		case "eq":
			return p == q
		case "ne":
			return p != q
		case "lt":
			return p < q
		case "le":
			return p <= q
		case "gt":
			return p > q
		case "ge":
			return p >= q
		}
		fail("no operator %s of integers", name)
	}
	switch name {
	case "add":
		return x + y
	case "sub":
		return x - y
	case "mul":
		return x * y
	case "truediv", "floordiv", "mod":
		if y == 0 {
			fail("division by zero")
		}
		switch name {
		case "truediv":
			return x / y
		case "floordiv":
			return floorDiv(x, y)
		}
		return remainder(x, y)
	case "pow":
		return math.Pow(x, y)
	case "max":
		return max(x, y)
	case "min":
		return min(x, y)
	case "eq":
		return x == y
	case "ne":
		return x != y
	case "lt":
		return x < y
	case "le":
		return x <= y
	case "gt":
		return x > y
	case "ge":
		return x >= y
	}
	fail("no operator %s of floats", name)
	return nil
}

// evalItem is a tensor's only element as a number.
func evalItem(c *Call) ([]Value, error) { return one(c.T(0).item()) }

// evalSymSize gives a size, or all of them.
func evalSymSize(c *Call) ([]Value, error) {
	t := c.T(0)
	if len(c.Args) > 1 {
		d := dim(c.Int(1), t.Rank())
		if t.Rank() == 0 {
			fail("size of a 0-d tensor")
		}
		return one(t.Sizes[d])
	}
	outs := make([]Value, t.Rank())
	for i, n := range t.Sizes {
		outs[i] = n
	}
	return outs, nil
}

func evalSymStride(c *Call) ([]Value, error) {
	t := c.T(0)
	if len(c.Args) > 1 {
		return one(t.Strides[dim(c.Int(1), t.Rank())])
	}
	outs := make([]Value, t.Rank())
	for i, n := range t.Strides {
		outs[i] = n
	}
	return outs, nil
}

func evalSymNumel(c *Call) ([]Value, error) { return one(c.T(0).Numel()) }

func evalSymStorageOffset(c *Call) ([]Value, error) { return one(c.T(0).Offset) }

// evalSizeQuery answers questions about a tensor's type.
func evalSizeQuery(c *Call) ([]Value, error) {
	t := c.T(0)
	switch c.base() {
	case "dim":
		return one(int64(t.Rank()))
	case "is_same_size":
		return one(slices.Equal(t.Sizes, c.T(1).Sizes))
	case "is_complex":
		return one(t.DType.IsComplex())
	case "is_floating_point":
		return one(classOf(t.DType) == classFloat)
	case "is_nonzero":
		b, _ := asBool(t.item())
		return one(b)
	case "is_contiguous":
		f := c.format()
		if f == "" {
			f = "contiguous_format"
		}
		want := denseStrides(t, f)
		for i, n := range t.Sizes {
			if n != 1 && t.Strides[i] != want[i] {
				return one(false)
			}
		}
		return one(true)
	}
	fail("no query %s", c.base())
	return nil, nil
}

func evalShapeAsTensor(c *Call) ([]Value, error) {
	t := c.T(0)
	return one(fromInts(ops.Int64, []int64{int64(t.Rank())}, slices.Clone(t.Sizes)))
}

// evalAssert fails where a tensor is zero.
func evalAssert(c *Call) ([]Value, error) {
	t := c.T(0)
	if t.Numel() != 1 {
		fail("an assertion on a tensor of %d elements", t.Numel())
	}
	if !t.bools()[0] {
		msg := "assertion failed"
		if i := c.index("assert_msg"); c.has(i) {
			msg = "assertion failed: " + c.Str(i)
		}
		fail("%s", msg)
	}
	return c.depToken()
}

// depToken hands the token of the functional forms on.
func (c *Call) depToken() ([]Value, error) {
	if i := c.index("dep_token"); i >= 0 {
		return one(compactCopy(c.T(i)))
	}
	return nil, nil
}

// evalAssertScalar fails where a number is zero.
func evalAssertScalar(c *Call) ([]Value, error) {
	b, ok := asBool(c.Args[0])
	if !ok {
		fail("an assertion on %s", kindName(c.Args[0]))
	}
	if !b {
		fail("assertion failed: %s", c.Str(1))
	}
	return c.depToken()
}

// evalSymConstrainRange fails where a number is out of range.
func evalSymConstrainRange(c *Call) ([]Value, error) {
	k := c.Int(0)
	lo, hi := int64(math.MinInt64), int64(math.MaxInt64)
	if strings.HasSuffix(c.base(), "for_size") {
		lo = 0
	}
	lo = c.intOr(c.index("min"), lo)
	hi = c.intOr(c.index("max"), hi)
	if k < lo || k > hi {
		fail("%d is not in [%d, %d]", k, lo, hi)
	}
	return c.depToken()
}

// evalAssertTensorMetadata fails where a tensor is not of the shape or dtype that the export saw.
func evalAssertTensorMetadata(c *Call) ([]Value, error) {
	t := c.T(0)
	if c.has(1) {
		if s := c.Ints(1); !slices.Equal(s, t.Sizes) {
			fail("a tensor has shape %v, %v was exported", t.Sizes, s)
		}
	}
	if d := c.dtypeOr(3, t.DType); d != t.DType {
		fail("a tensor is %s, %s was exported", t.DType, d)
	}
	return nil, nil
}

func evalMakeDepToken(c *Call) ([]Value, error) { return one(NewTensor(ops.Float32)) }

// evalNothing is for operators without a meaning here.
func evalNothing(*Call) ([]Value, error) { return nil, nil }

// evalPrint is silent: the interpreter's output is its results.
func evalPrint(*Call) ([]Value, error) { return nil, nil }

// evalAliasPair gives both tensors.
func evalAliasPair(c *Call) ([]Value, error) {
	return []Value{alias(c.T(0)), alias(c.T(1))}, nil
}

func (c *Call) graphArg(i int) *ir.Graph {
	g, ok := c.Args[i].(*ir.Graph)
	if !ok {
		fail("argument %s is no graph but %s", c.argName(i), kindName(c.Args[i]))
	}
	return g
}

func (c *Call) listArg(i int) []Value {
	l, ok := c.Args[i].([]Value)
	if !ok && c.Args[i] != nil {
		return []Value{c.Args[i]}
	}
	return l
}

// call runs a nested graph.
func (c *Call) call(g *ir.Graph, args []Value) ([]Value, error) {
	if c.run == nil {
		fail("%s needs a session to run its graph", c.base())
	}
	outs, err := c.run.graph(g, args)
	if err != nil {
		return nil, &nestedError{err}
	}
	return outs, nil
}

// nestedError is of a node of a nested graph, which has said all: the node that holds the graph adds nothing.
type nestedError struct{ err error }

func (e *nestedError) Error() string { return e.err.Error() }

func (e *nestedError) Unwrap() error { return e.err }

// evalCond runs one of two graphs.
func evalCond(c *Call) ([]Value, error) {
	b, ok := asBool(c.Args[0])
	if !ok {
		fail("the predicate is no bool but %s", kindName(c.Args[0]))
	}
	g := c.graphArg(1)
	if !b {
		g = c.graphArg(2)
	}
	return c.call(g, c.listArg(3))
}

// maxIterations bounds a loop, so that a condition that never turns false is an error.
const maxIterations = 1 << 24

// evalWhileLoop runs the body as long as the condition holds.
func evalWhileLoop(c *Call) ([]Value, error) {
	cond, body := c.graphArg(0), c.graphArg(1)
	carried, extra := slices.Clone(c.listArg(2)), c.listArg(3)
	for range maxIterations {
		outs, err := c.call(cond, append(slices.Clone(carried), extra...))
		if err != nil {
			return nil, err
		}
		b, ok := false, false
		if len(outs) == 1 {
			b, ok = asBool(outs[0])
		}
		if !ok {
			fail("the condition gives no bool")
		}
		if !b {
			return carried, nil
		}
		if outs, err = c.call(body, append(slices.Clone(carried), extra...)); err != nil {
			return nil, err
		}
		if len(outs) != len(carried) {
			fail("the body gives %d values, the loop carries %d", len(outs), len(carried))
		}
		copy(carried, outs)
	}
	fail("more than %d iterations", maxIterations)
	return nil, nil
}

func sliceAll(vs []Value, i int64) []Value {
	out := make([]Value, len(vs))
	for k, v := range vs {
		t, ok := v.(*Tensor)
		if !ok {
			out[k] = v
			continue
		}
		out[k] = compactCopy(selectDim(t, 0, i))
	}
	return out
}

func leading(vs []Value) int64 {
	n := int64(-1)
	for _, v := range vs {
		if t, ok := v.(*Tensor); ok {
			if t.Rank() == 0 || n >= 0 && t.Sizes[0] != n {
				fail("scanned tensors differ in their first dimension")
			}
			n = t.Sizes[0]
		}
	}
	if n < 0 {
		fail("nothing is scanned")
	}
	return n
}

// stackOuts stacks the results of each step.
func stackOuts(steps [][]Value) []Value {
	if len(steps) == 0 {
		fail("no steps over an empty dimension")
	}
	outs := make([]Value, len(steps[0]))
	for k := range outs {
		var ts []*Tensor
		for _, s := range steps {
			t, ok := s[k].(*Tensor)
			if !ok {
				fail("a step gives %s, no tensor", kindName(s[k]))
			}
			ts = append(ts, t)
		}
		outs[k] = stack(ts, 0)
	}
	return outs
}

// evalScan folds a graph over the first dimension: it gives the last carry and the stacked results.
func evalScan(c *Call) ([]Value, error) {
	g := c.graphArg(0)
	carry, xs, extra := slices.Clone(c.listArg(1)), c.listArg(2), c.listArg(3)
	var steps [][]Value
	for i := range leading(xs) {
		args := append(slices.Clone(carry), sliceAll(xs, i)...)
		outs, err := c.call(g, append(args, extra...))
		if err != nil {
			return nil, err
		}
		if len(outs) < len(carry) {
			fail("the graph gives %d values, the scan carries %d", len(outs), len(carry))
		}
		copy(carry, outs[:len(carry)])
		steps = append(steps, slices.Clone(outs[len(carry):]))
	}
	if len(steps[0]) == 0 {
		return carry, nil
	}
	return append(carry, stackOuts(steps)...), nil
}

// evalAssociativeScan gives the running combinations along the first dimension.
func evalAssociativeScan(c *Call) ([]Value, error) {
	g := c.graphArg(0)
	xs, extra := c.listArg(1), c.listArg(2)
	n := leading(xs)
	if n == 0 {
		return slices.Clone(xs), nil
	}
	acc := sliceAll(xs, 0)
	steps := [][]Value{acc}
	for i := int64(1); i < n; i++ {
		outs, err := c.call(g, append(append(slices.Clone(acc), sliceAll(xs, i)...), extra...))
		if err != nil {
			return nil, err
		}
		acc = outs
		steps = append(steps, acc)
	}
	return stackOuts(steps), nil
}

// evalMapImpl maps a graph over the first dimension.
func evalMapImpl(c *Call) ([]Value, error) {
	g := c.graphArg(0)
	xs, extra := c.listArg(1), c.listArg(2)
	var steps [][]Value
	for i := range leading(xs) {
		outs, err := c.call(g, append(sliceAll(xs, i), extra...))
		if err != nil {
			return nil, err
		}
		steps = append(steps, outs)
	}
	return stackOuts(steps), nil
}

// evalWrap runs the wrapped graph: gradients and autocast states do not change what is computed here, since the casts of
// autocast stand in the graph.
func evalWrap(c *Call) ([]Value, error) { return c.call(c.graphArg(1), c.listArg(2)) }

func evalWrapAutocast(c *Call) ([]Value, error) { return c.call(c.graphArg(4), c.listArg(5)) }
