// Package msl writes the bodies of Metal kernels as MLX takes them: the text between the braces of a function whose
// parameters MLX declares from the names and types of inputs and outputs. It knows no graph.
package msl

import (
	"fmt"
	"hash/fnv"
	"math"
	"strconv"
	"strings"
)

// Type is an element type by the name that MLX's headers give it.
type Type string

// The element types.
const (
	Bool     Type = "bool"
	Uint8    Type = "uint8_t"
	Int8     Type = "int8_t"
	Int16    Type = "int16_t"
	Int32    Type = "int32_t"
	Uint32   Type = "uint32_t"
	Int64    Type = "int64_t"
	Float16  Type = "float16_t"
	BFloat16 Type = "bfloat16_t"
	Float32  Type = "float"
)

// Float tells floating types.
func (t Type) Float() bool { return t == Float16 || t == BFloat16 || t == Float32 }

// Kernel is a kernel as a MetalKernelNode holds it.
type Kernel struct {
	Name    string
	Source  string
	Inputs  []string
	Outputs []string
}

// Op is an operation on elements.
type Op string

// forms are the operations as expressions of their operands a, b and c.
var forms = map[Op]string{
	"add": "a + b", "sub": "a - b", "mul": "a * b", "div": "a / b", "neg": "-a", "max": "a > b || a != a ? a : b", "min": "a < b || a != a ? a : b",
	"lt": "a < b", "le": "a <= b", "gt": "a > b", "ge": "a >= b", "eq": "a == b", "ne": "a != b",
	"and": "a && b", "or": "a || b", "not": "!a", "where": "a ? b : c", "cast": "a", "square": "a * a", "abs": "a < 0 ? -a : a",
	"exp": "metal::precise::exp(a)", "log": "metal::precise::log(a)", "sqrt": "metal::precise::sqrt(a)", "rsqrt": "1 / metal::precise::sqrt(a)",
	"sin": "metal::precise::sin(a)", "cos": "metal::precise::cos(a)", "tanh": "metal::precise::tanh(a)",
	"floor": "metal::floor(a)", "ceil": "metal::ceil(a)", "trunc": "metal::trunc(a)", "reciprocal": "1 / a",
	"sigmoid": "1 / (1 + metal::precise::exp(-a))", "silu": "a / (1 + metal::precise::exp(-a))",
	"relu": "a > 0 || a != a ? a : 0",
}

// Has tells whether there is such an operation.
func Has(op Op) bool { _, ok := forms[op]; return ok }

// Step makes an element of others.
type Step struct {
	Op Op
	// Args are elements by number: inputs first, then the results of steps.
	Args []int
	Type Type
	// Const is the element itself where Op is "const".
	Const float64
}

// Input is a tensor that a chain reads.
type Input struct {
	Type Type
	// Dims are the input's dimensions by those of the result: the one that runs along each, -1 for none. Nil is an input of
	// the result's shape; an input without dimensions has an empty list.
	Dims []int
}

// Size is a size of the result: a number, or where that is zero the size of an input's dimension.
type Size struct {
	Const      int64
	Input, Dim int
}

// Chain is a computation on elements, place by place of the result; inputs are spread over its shape.
type Chain struct {
	Inputs []Input
	Steps  []Step
	// Shape is the result's. It is needed where an input has other dimensions.
	Shape []Size
}

// Kernel writes the chain; the last step is the result. Each step is rounded to its own type, as the single kernels would
// do, and computed in single precision where that is less. Equal chains have equal names.
func (c *Chain) Kernel() (*Kernel, error) {
	if len(c.Steps) == 0 {
		return nil, fmt.Errorf("msl: a chain without steps")
	}
	var b strings.Builder
	b.WriteString("uint i = thread_position_in_grid.x;\n")
	k := &Kernel{Outputs: []string{"y"}}
	var types []Type
	if err := c.places(&b); err != nil {
		return nil, err
	}
	for i, in := range c.Inputs {
		name := "x" + strconv.Itoa(i)
		k.Inputs = append(k.Inputs, name)
		types = append(types, in.Type)
		fmt.Fprintf(&b, "%s v%d = %s;\n", in.Type, i, in.element(name))
	}
	for _, s := range c.Steps {
		n := len(types)
		value := ""
		if s.Op == "const" {
			value = literal(s.Const, s.Type)
		} else {
			form, ok := forms[s.Op]
			if !ok {
				return nil, fmt.Errorf("msl: no operation %q", s.Op)
			}
			wide := widest(types, s)
			for i, a := range s.Args {
				if a < 0 || a >= n {
					return nil, fmt.Errorf("msl: step %d reads element %d", n-len(c.Inputs), a)
				}
				operand := fmt.Sprintf("v%d", a)
				if types[a] != wide && types[a] != Bool {
					operand = fmt.Sprintf("%s(%s)", wide, operand)
				}
				form = replaceName(form, string(rune('a'+i)), operand)
			}
			value = form
		}
		fmt.Fprintf(&b, "%s v%d = %s(%s);\n", s.Type, n, s.Type, value)
		types = append(types, s.Type)
	}
	fmt.Fprintf(&b, "y[i] = v%d;\n", len(types)-1)
	k.Source = b.String()
	h := fnv.New64a()
	h.Write([]byte(k.Source))
	k.Name = fmt.Sprintf("lathe_chain_%016x", h.Sum64())
	return k, nil
}

// places computes the coordinates in the result that inputs of other shapes need: p0, p1, …
func (c *Chain) places(b *strings.Builder) error {
	needed := map[int]bool{}
	first := len(c.Shape)
	for i, in := range c.Inputs {
		if len(in.Dims) != 0 && len(in.Dims) != len(c.Shape) {
			return fmt.Errorf("msl: input %d has %d dimensions for a result of %d", i, len(in.Dims), len(c.Shape))
		}
		for d, from := range in.Dims {
			if from >= 0 {
				needed[d], first = true, min(first, d)
			}
		}
	}
	if len(needed) == 0 {
		return nil
	}
	b.WriteString("uint rest = i;\n")
	for d := len(c.Shape) - 1; d >= first; d-- {
		s := c.Shape[d]
		size := strconv.FormatInt(s.Const, 10)
		if s.Const == 0 {
			size = fmt.Sprintf("uint(x%d_shape[%d])", s.Input, s.Dim)
		}
		switch {
		case needed[d] && d == 0:
			b.WriteString("uint p0 = rest;\n")
		case needed[d]:
			fmt.Fprintf(b, "uint p%d = rest %% %s;\n", d, size)
		}
		if d > first {
			fmt.Fprintf(b, "rest /= %s;\n", size)
		}
	}
	return nil
}

// element is the input's element at the place at hand.
func (in Input) element(name string) string {
	switch {
	case in.Dims == nil:
		return name + "[i]"
	case len(in.Dims) == 0:
		return name // MLX hands a tensor without dimensions over as its element
	}
	var terms []string
	for d, from := range in.Dims {
		if from >= 0 {
			terms = append(terms, fmt.Sprintf("p%d * %s_strides[%d]", d, name, from))
		}
	}
	if len(terms) == 0 {
		return name + "[0]"
	}
	return name + "[" + strings.Join(terms, " + ") + "]"
}

// widest is the type that a step is computed in: single precision for floats, the operands' own type for integers.
func widest(types []Type, s Step) Type {
	w := s.Type
	for _, a := range s.Args {
		if a < 0 || a >= len(types) {
			continue
		}
		t := types[a]
		if t.Float() {
			return Float32
		}
		if w == Bool {
			w = t
		}
	}
	if w.Float() {
		return Float32
	}
	return w
}

// replaceName puts an operand in place of a name of one letter that stands alone.
func replaceName(form, name, operand string) string {
	var b strings.Builder
	word := func(c byte) bool {
		return c == '_' || c == ':' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	}
	for i := 0; i < len(form); i++ {
		alone := form[i] == name[0] && (i == 0 || !word(form[i-1])) && (i+1 == len(form) || !word(form[i+1]))
		if alone {
			b.WriteString(operand)
		} else {
			b.WriteByte(form[i])
		}
	}
	return b.String()
}

func literal(f float64, t Type) string {
	switch {
	case t == Bool:
		return strconv.FormatBool(f != 0)
	case !t.Float():
		return strconv.FormatInt(int64(f), 10)
	case math.IsNaN(f):
		return "NAN"
	case math.IsInf(f, 1):
		return "INFINITY"
	case math.IsInf(f, -1):
		return "-INFINITY"
	}
	s := strconv.FormatFloat(f, 'g', -1, 32)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s + "f"
}
