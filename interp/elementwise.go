package interp

import (
	"math"
	"math/cmplx"
	"strings"

	"github.com/lathe-ml/lathe/ops"
)

// pure is the operator's base name without the underscore of in-place operators and the prefix of special functions.
func (c *Call) pure() string {
	b := c.base()
	if strings.HasPrefix(b, "__") {
		return b
	}
	b = strings.TrimSuffix(strings.TrimPrefix(b, "special_"), "_")
	if n, ok := synonyms[b]; ok {
		return n
	}
	return b
}

// synonyms maps names that torch has for another's sake.
var synonyms = map[string]string{
	"absolute": "abs", "negative": "neg", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan",
	"arctanh": "atanh", "arctan2": "atan2", "subtract": "sub", "multiply": "mul", "divide": "div", "true_divide": "div", "fix": "trunc",
	"greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le", "not_equal": "ne", "gammainc": "igamma",
	"gammaincc": "igammac", "multigammaln": "mvlgamma", "gammaln": "lgamma", "psi": "digamma", "expit": "sigmoid",
}

// unary is an element-wise function of one operand: f for floats; i for integers, where nil means that they become floats;
// z for complex numbers.
type unary struct {
	f func(float64) float64
	i func(int64) int64
	z func(complex128) complex128
}

func same(i int64) int64 { return i }

var unaries = map[string]unary{
	"abs":         {f: math.Abs, i: func(x int64) int64 { return max(x, -x) }},
	"neg":         {f: func(x float64) float64 { return -x }, i: func(x int64) int64 { return -x }, z: func(x complex128) complex128 { return -x }},
	"positive":    {f: func(x float64) float64 { return x }, i: same, z: func(x complex128) complex128 { return x }},
	"square":      {f: func(x float64) float64 { return x * x }, i: func(x int64) int64 { return x * x }, z: func(x complex128) complex128 { return x * x }},
	"ceil":        {f: math.Ceil, i: same},
	"floor":       {f: math.Floor, i: same},
	"trunc":       {f: math.Trunc, i: same},
	"round":       {f: math.RoundToEven, i: same},
	"frac":        {f: func(x float64) float64 { return x - math.Trunc(x) }, i: func(int64) int64 { return 0 }},
	"sign":        {f: sign, i: signInt},
	"sgn":         {f: sign, i: signInt, z: sgn},
	"relu":        {f: relu, i: func(x int64) int64 { return max(x, 0) }},
	"relu6":       {f: func(x float64) float64 { return clampNaN(x, 0, 6) }, i: func(x int64) int64 { return min(max(x, 0), 6) }},
	"bitwise_not": {i: func(x int64) int64 { return ^x }},

	"acos":       {f: math.Acos, z: cmplx.Acos},
	"acosh":      {f: math.Acosh, z: cmplx.Acosh},
	"asin":       {f: math.Asin, z: cmplx.Asin},
	"asinh":      {f: math.Asinh, z: cmplx.Asinh},
	"atan":       {f: math.Atan, z: cmplx.Atan},
	"atanh":      {f: math.Atanh, z: cmplx.Atanh},
	"cos":        {f: math.Cos, z: cmplx.Cos},
	"cosh":       {f: math.Cosh, z: cmplx.Cosh},
	"sin":        {f: math.Sin, z: cmplx.Sin},
	"sinh":       {f: math.Sinh, z: cmplx.Sinh},
	"tan":        {f: math.Tan, z: cmplx.Tan},
	"tanh":       {f: math.Tanh, z: cmplx.Tanh},
	"exp":        {f: math.Exp, z: cmplx.Exp},
	"exp2":       {f: math.Exp2},
	"expm1":      {f: math.Expm1},
	"log":        {f: math.Log, z: cmplx.Log},
	"log10":      {f: math.Log10, z: cmplx.Log10},
	"log1p":      {f: math.Log1p},
	"log2":       {f: math.Log2, z: func(x complex128) complex128 { return cmplx.Log(x) / complex(math.Ln2, 0) }},
	"sqrt":       {f: math.Sqrt, z: cmplx.Sqrt},
	"rsqrt":      {f: func(x float64) float64 { return 1 / math.Sqrt(x) }, z: func(x complex128) complex128 { return 1 / cmplx.Sqrt(x) }},
	"reciprocal": {f: func(x float64) float64 { return 1 / x }, z: func(x complex128) complex128 { return 1 / x }},
	"sigmoid":    {f: sigmoid, z: func(x complex128) complex128 { return 1 / (1 + cmplx.Exp(-x)) }},
	"erf":        {f: math.Erf},
	"erfc":       {f: math.Erfc},
	"erfinv":     {f: math.Erfinv},
	"erfcx":      {f: erfcx},
	"lgamma":     {f: lgamma},
	"digamma":    {f: digamma},
	"deg2rad":    {f: func(x float64) float64 { return x * (math.Pi / 180) }},
	"rad2deg":    {f: func(x float64) float64 { return x * (180 / math.Pi) }},
	"sinc":       {f: sinc},
	"i0":         {f: besselI0},
	"i0e":        {f: func(x float64) float64 { return besselIe(0, x) }},
	"i1":         {f: besselI1},
	"i1e":        {f: func(x float64) float64 { return besselIe(1, x) }},
	"ndtr":       {f: func(x float64) float64 { return 0.5 * math.Erfc(-x/math.Sqrt2) }},
	"ndtri":      {f: func(x float64) float64 { return -math.Sqrt2 * math.Erfcinv(2*x) }},
	"log_ndtr":   {f: logNdtr},
	"entr":       {f: entr},
	"bessel_j0":  {f: math.J0},
	"bessel_j1":  {f: math.J1},
	"bessel_y0":  {f: math.Y0},
	"bessel_y1":  {f: math.Y1},

	"silu":        {f: func(x float64) float64 { return x * sigmoid(x) }},
	"mish":        {f: func(x float64) float64 { return x * math.Tanh(softplus(x, 1, 20)) }},
	"log_sigmoid": {f: func(x float64) float64 { return -softplus(-x, 1, math.Inf(1)) }},
	"hardsigmoid": {f: func(x float64) float64 { return clampNaN(x+3, 0, 6) / 6 }},
	"hardswish":   {f: func(x float64) float64 { return x * clampNaN(x+3, 0, 6) / 6 }},
	"selu": {f: func(x float64) float64 {
		return elu(x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1)
	}},
	"tanhshrink": {f: func(x float64) float64 { return x - math.Tanh(x) }},
	"softsign":   {f: func(x float64) float64 { return x / (1 + math.Abs(x)) }},
}

func sign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return 0
}

func signInt(x int64) int64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return 0
}

func sgn(z complex128) complex128 {
	if z == 0 {
		return 0
	}
	return z / complex(cmplx.Abs(z), 0)
}

func relu(x float64) float64 {
	if x <= 0 {
		return 0
	}
	return x
}

// clampNaN bounds x and lets NaN pass.
func clampNaN(x, lo, hi float64) float64 {
	if x < lo {
		return lo
	}
	if x > hi {
		return hi
	}
	return x
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func softplus(x, beta, threshold float64) float64 {
	if x*beta > threshold {
		return x
	}
	z := x * beta
	return (max(z, 0) + math.Log1p(math.Exp(-math.Abs(z)))) / beta
}

func elu(x, alpha, scale, inputScale float64) float64 {
	if x < 0 {
		return math.Expm1(x*inputScale) * alpha * scale
	}
	return x * scale
}

// evalUnary computes the element-wise functions of one operand in the table above.
func evalUnary(c *Call) ([]Value, error) {
	u, ok := unaries[c.pure()]
	if !ok {
		fail("no element-wise function %s", c.pure())
	}
	t := c.T(0)
	switch classOf(t.DType) {
	case classInt:
		if u.i != nil {
			switch {
			case t.DType == ops.Bool && c.pure() == "bitwise_not":
				return one(fromInts(t.DType, t.Sizes, mapSlice(t.ints(), func(x int64) int64 { return 1 - x })))
			case t.DType == ops.Bool && c.pure() == "square":
				t = cast(t, ops.Int64)
			}
			return one(fromInts(t.DType, t.Sizes, mapSlice(t.ints(), u.i)))
		}
		return one(mapFloats(cast(t, ops.Float32), ops.Float32, u.f))
	case classFloat:
		if c.pure() == "ndtr" && half(t.DType) {
			// PyTorch composes it of operators that round each.
			r := halfRounder(t.DType)
			u.f = func(x float64) float64 { return r(1+r(math.Erf(r(x/math.Sqrt2)))) / 2 }
		}
		if u.f != nil {
			return one(mapFloats(t, t.DType, u.f))
		}
	case classComplex:
		if u.z != nil {
			return one(fromComplexes(t.DType, t.Sizes, mapSlice(t.complexes(), u.z)))
		}
		if c.pure() == "abs" {
			return one(fromFloats(t.DType.ToReal(), t.Sizes, mapSlice(t.complexes(), cmplx.Abs)))
		}
	}
	fail("%s has no meaning for %s", c.pure(), t.DType)
	return nil, nil
}

// mapFloats applies f to each element in float64.
func mapFloats(t *Tensor, d DType, f func(float64) float64) *Tensor {
	if t.DType == ops.Float32 && d == ops.Float32 {
		c := compact(t)
		o := NewTensor(d, t.Sizes...)
		dst := flat[float32](o)
		for i, x := range flat[float32](c) {
			dst[i] = float32(f(float64(x)))
		}
		return o
	}
	return fromFloats(d, t.Sizes, mapSlice(t.floats(), f))
}

// evalTest computes the predicates of one operand.
func evalTest(c *Call) ([]Value, error) {
	t := c.T(0)
	var p func(float64) bool
	all := false // whether both parts of a complex number must satisfy p
	switch c.pure() {
	case "isnan":
		p = math.IsNaN
	case "isinf":
		p = func(x float64) bool { return math.IsInf(x, 0) }
	case "isposinf":
		p = func(x float64) bool { return math.IsInf(x, 1) }
	case "isneginf":
		p = func(x float64) bool { return math.IsInf(x, -1) }
	case "isfinite":
		p, all = func(x float64) bool { return !math.IsInf(x, 0) && !math.IsNaN(x) }, true
	case "signbit":
		p = math.Signbit
	case "logical_not":
		return one(fromBools(t.Sizes, mapSlice(t.bools(), func(b bool) bool { return !b })))
	case "isreal":
		if t.DType.IsComplex() {
			return one(fromBools(t.Sizes, mapSlice(t.complexes(), func(z complex128) bool { return imag(z) == 0 })))
		}
		p = func(float64) bool { return true }
	default:
		fail("no predicate %s", c.pure())
	}
	if t.DType.IsComplex() {
		return one(fromBools(t.Sizes, mapSlice(t.complexes(), func(z complex128) bool {
			re, im := p(real(z)), p(imag(z))
			return re && im || !all && (re || im)
		})))
	}
	return one(fromBools(t.Sizes, mapSlice(t.floats(), p)))
}

// evalParamUnary computes the activations and other functions of one tensor with numbers as parameters.
func evalParamUnary(c *Call) ([]Value, error) {
	t := c.T(max(c.index("self"), 0))
	d := t.DType
	num := func(name string, def float64) float64 {
		v := c.arg(name)
		if v == nil {
			return def
		}
		f, ok := asFloat(v)
		if !ok {
			fail("argument %s is no number but %s", name, kindName(v))
		}
		return f
	}
	var f func(float64) float64
	switch c.pure() {
	case "gelu":
		f = func(x float64) float64 { return 0.5 * x * math.Erfc(-x/math.Sqrt2) }
		if c.arg("approximate") == "tanh" {
			f = func(x float64) float64 {
				return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
			}
		}
	case "leaky_relu":
		s := num("negative_slope", 0.01)
		f = func(x float64) float64 {
			if x > 0 {
				return x
			}
			return x * s
		}
	case "rrelu": // outside of training
		s := (num("lower", 0.125) + num("upper", 1.0/3)) / 2
		if c.arg("training") == true {
			lo, hi, r := num("lower", 0.125), num("upper", 1.0/3), c.rng()
			f = func(x float64) float64 {
				if x > 0 {
					return x
				}
				return x * (lo + (hi-lo)*r.float())
			}
			break
		}
		f = func(x float64) float64 {
			if x >= 0 {
				return x
			}
			return x * s
		}
	case "elu":
		a, s, in := num("alpha", 1), num("scale", 1), num("input_scale", 1)
		f = func(x float64) float64 { return elu(x, a, s, in) }
	case "celu":
		a := num("alpha", 1)
		f = func(x float64) float64 { return elu(x, a, 1, 1/a) }
	case "softplus":
		b, th := num("beta", 1), num("threshold", 20)
		f = func(x float64) float64 { return softplus(x, b, th) }
	case "hardtanh":
		lo, hi := num("min_val", -1), num("max_val", 1)
		f = func(x float64) float64 { return clampNaN(x, lo, hi) }
	case "hardshrink":
		l := num("lambd", 0.5)
		f = func(x float64) float64 {
			if x >= -l && x <= l {
				return 0
			}
			return x
		}
	case "softshrink":
		l := num("lambd", 0.5)
		f = func(x float64) float64 {
			switch {
			case x > l:
				return x - l
			case x < -l:
				return x + l
			}
			return x * 0
		}
	case "threshold":
		th, v := num("threshold", 0), num("value", 0)
		f = func(x float64) float64 {
			if x <= th {
				return v
			}
			return x
		}
	case "logit":
		d = floatType(d)
		eps := num("eps", -1)
		f = func(x float64) float64 {
			if eps >= 0 {
				x = clampNaN(x, eps, 1-eps)
			}
			return math.Log(x / (1 - x))
		}
		if half(d) { // rounded at each step
			r, exact := halfRounder(d), f
			f = func(x float64) float64 {
				if eps >= 0 {
					return exact(x)
				}
				return math.Log(r(x / r(1-x)))
			}
		}
	case "nan_to_num":
		if classOf(d) == classInt {
			return one(t)
		}
		lo, hi := finiteRange(d)
		n, p, m := num("nan", 0), num("posinf", hi), num("neginf", lo)
		f = func(x float64) float64 {
			switch {
			case math.IsNaN(x):
				return n
			case math.IsInf(x, 1):
				return p
			case math.IsInf(x, -1):
				return m
			}
			return x
		}
	case "round": // round.decimals
		k := int(num("decimals", 0))
		if classOf(d) == classInt {
			if k >= 0 {
				return one(t)
			}
			p := int64(math.Pow10(-k))
			return one(fromInts(d, t.Sizes, mapSlice(t.ints(), func(x int64) int64 {
				return int64(math.RoundToEven(float64(x)/float64(p))) * p
			})))
		}
		f = math.RoundToEven
		if p := math.Pow10(max(k, -k)); k != 0 {
			// The scaled value is rounded to the element type before it is rounded to an integer, as torch does.
			r := rounder(d)
			f = func(x float64) float64 {
				if k > 0 {
					return math.RoundToEven(r(x*p)) / p
				}
				return math.RoundToEven(r(x/p)) * p
			}
		}
	case "polygamma":
		// The in-place form has self first.
		n := int(c.Int(c.index("n")))
		d = floatType(d)
		f = func(x float64) float64 { return polygamma(n, x) }
	case "mvlgamma":
		p := int(c.Int(c.index("p")))
		d = floatType(d)
		f = func(x float64) float64 {
			s := float64(p*(p-1)) / 4 * math.Log(math.Pi)
			for j := range p {
				s += lgamma(x - float64(j)/2)
			}
			return s
		}
	default:
		fail("no function %s", c.pure())
	}
	if c.pure() == "gelu" || c.pure() == "elu" || c.pure() == "softplus" {
		if classOf(d) == classInt {
			fail("%s has no meaning for %s", c.pure(), d)
		}
	}
	return one(mapFloats(t, d, f))
}

// rounder rounds a float64 to what the element type is computed in: float32 for all but float64.
func rounder(d DType) func(float64) float64 {
	if d == ops.Float64 {
		return func(x float64) float64 { return x }
	}
	return func(x float64) float64 { return float64(float32(x)) }
}

func finiteRange(d DType) (lo, hi float64) {
	switch d {
	case ops.Float16:
		hi = 65504
	case ops.BFloat16:
		hi = float64(bf16to32(0x7f7f))
	case ops.Float64:
		hi = math.MaxFloat64
	case ops.Float8E4M3FN:
		hi = 448
	case ops.Float8E5M2, ops.Float8E5M2FNUZ:
		hi = 57344
	case ops.Float8E4M3FNUZ:
		hi = 240
	default:
		hi = math.MaxFloat32
	}
	return -hi, hi
}

// intRange is the smallest and largest value of an integer type; uint64's is cut to int64.
func intRange(d DType) (lo, hi int64) {
	switch d {
	case ops.Bool:
		return 0, 1
	case ops.Uint8:
		return 0, math.MaxUint8
	case ops.Int8:
		return math.MinInt8, math.MaxInt8
	case ops.Int16:
		return math.MinInt16, math.MaxInt16
	case ops.Uint16:
		return 0, math.MaxUint16
	case ops.Int32:
		return math.MinInt32, math.MaxInt32
	case ops.Uint32:
		return 0, math.MaxUint32
	case ops.Uint64:
		return 0, math.MaxInt64
	}
	return math.MinInt64, math.MaxInt64
}

// binary is an element-wise function of two operands of one type.
type binary struct {
	f func(a, b float64) float64
	// i is for integers, given the type they wrap to; nil means that they become floats.
	i func(a, b int64, d DType) int64
	z func(a, b complex128) complex128
	// scalar tells that a 0-d second operand of a half type's operation is not rounded to the half type.
	scalar bool
}

var binaries = map[string]binary{
	"add": {
		f: func(a, b float64) float64 { return a + b }, i: func(a, b int64, _ DType) int64 { return a + b },
		z: func(a, b complex128) complex128 { return a + b },
	},
	"sub": {
		f: func(a, b float64) float64 { return a - b }, i: func(a, b int64, _ DType) int64 { return a - b },
		z: func(a, b complex128) complex128 { return a - b },
	},
	"mul": {
		f: func(a, b float64) float64 { return a * b }, i: func(a, b int64, _ DType) int64 { return a * b },
		z: mulComplex, scalar: true,
	},
	"div":          {f: func(a, b float64) float64 { return a / b }, z: func(a, b complex128) complex128 { return a / b }, scalar: true},
	"divide_trunc": {f: func(a, b float64) float64 { return math.Trunc(a / b) }, i: func(a, b int64, _ DType) int64 { return a / divisor(b) }, scalar: true},
	"floor_divide": {f: floorDiv, i: floorDivInt, scalar: true},
	"remainder":    {f: remainder, i: func(a, b int64, d DType) int64 { return a - b*floorDivInt(a, b, d) }},
	"fmod":         {f: math.Mod, i: func(a, b int64, _ DType) int64 { return a % divisor(b) }},
	"pow":          {f: math.Pow, i: powInt, z: powComplex},
	"float_power":  {f: math.Pow, z: powComplex},
	"maximum":      {f: maxNaN, i: maxInt},
	"minimum":      {f: minNaN, i: minInt},
	"fmax":         {f: func(a, b float64) float64 { return pickNumber(a, b, maxNaN) }, i: maxInt},
	"fmin":         {f: func(a, b float64) float64 { return pickNumber(a, b, minNaN) }, i: minInt},
	"atan2":        {f: func(a, b float64) float64 { return math.Copysign(math.Atan2(a, b), a) }},
	"hypot":        {f: math.Hypot},
	"copysign":     {f: math.Copysign},
	"nextafter":    {f: math.Nextafter},
	"logaddexp":    {f: logaddexp},
	"logaddexp2":   {f: func(a, b float64) float64 { return logaddexp(a*math.Ln2, b*math.Ln2) / math.Ln2 }},
	"xlogy":        {f: xlogy},
	"xlog1py":      {f: func(a, b float64) float64 { return xlogy(a, 1+b) }},
	"heaviside": {f: heaviside, i: func(a, b int64, _ DType) int64 {
		switch {
		case a == 0:
			return b
		case a < 0:
			return 0
		}
		return 1
	}},
	"gcd":           {i: func(a, b int64, _ DType) int64 { return gcd(a, b) }},
	"lcm":           {i: lcm},
	"ldexp":         {f: func(a, b float64) float64 { return a * math.Exp2(b) }},
	"bitwise_and":   {i: func(a, b int64, _ DType) int64 { return a & b }},
	"bitwise_or":    {i: func(a, b int64, _ DType) int64 { return a | b }},
	"bitwise_xor":   {i: func(a, b int64, _ DType) int64 { return a ^ b }},
	"bitwise_left":  {f: func(a, b float64) float64 { return a * math.Exp2(b) }, i: shiftLeft},
	"bitwise_right": {f: func(a, b float64) float64 { return a / math.Exp2(b) }, i: shiftRight},
	"zeta":          {f: zeta},
	"igamma":        {f: func(a, x float64) float64 { p, _ := gammaInc(a, x); return p }},
	"igammac":       {f: func(a, x float64) float64 { _, q := gammaInc(a, x); return q }},
	"vadd":          {f: func(a, b float64) float64 { return a + b }, i: func(a, b int64, _ DType) int64 { return a + b }},
}

// binaryNames maps operators to the function that computes them.
var binaryNames = map[string]string{
	"bitwise_left_shift": "bitwise_left", "__lshift__": "bitwise_left", "__ilshift__": "bitwise_left",
	"bitwise_right_shift": "bitwise_right", "__rshift__": "bitwise_right", "__irshift__": "bitwise_right",
	"__and__": "bitwise_and", "__iand__": "bitwise_and", "__or__": "bitwise_or", "__ior__": "bitwise_or",
	"__xor__": "bitwise_xor", "__ixor__": "bitwise_xor", "rsub": "sub",
}

func mulComplex(a, b complex128) complex128 {
	return complex(real(a)*real(b)-imag(a)*imag(b), real(a)*imag(b)+imag(a)*real(b))
}

func powComplex(a, b complex128) complex128 {
	switch {
	case b == 0:
		return 1
	case b == 2:
		return mulComplex(a, a)
	case b == 0.5:
		return cmplx.Sqrt(a)
	}
	return cmplx.Pow(a, b)
}

func divisor(b int64) int64 {
	if b == 0 {
		fail("integer division by zero")
	}
	return b
}

func floorDivInt(a, b int64, _ DType) int64 {
	q := a / divisor(b)
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

func floorDiv(a, b float64) float64 {
	if b == 0 {
		return a / b
	}
	mod := math.Mod(a, b)
	div := (a - mod) / b
	if mod != 0 && (b < 0) != (mod < 0) {
		div--
	}
	if div == 0 {
		return math.Copysign(0, a/b)
	}
	fl := math.Floor(div)
	if div-fl > 0.5 {
		fl++
	}
	return fl
}

func remainder(a, b float64) float64 {
	mod := math.Mod(a, b)
	if mod != 0 && (b < 0) != (mod < 0) {
		mod += b
	}
	return mod
}

func powInt(a, b int64, _ DType) int64 {
	if b < 0 {
		switch a {
		case 1:
			return 1
		case -1:
			if b%2 == 0 {
				return 1
			}
			return -1
		}
		return 0
	}
	r := int64(1)
	for ; b > 0; b >>= 1 {
		if b&1 != 0 {
			r *= a
		}
		a *= a
	}
	return r
}

func maxNaN(a, b float64) float64 {
	if math.IsNaN(a) || a > b {
		return a
	}
	return b
}

func minNaN(a, b float64) float64 {
	if math.IsNaN(a) || a < b {
		return a
	}
	return b
}

// unsignedOrder maps values so that int64 comparison orders them as their type does.
func unsignedOrder(a int64, d DType) int64 {
	if d == ops.Uint64 {
		return a ^ math.MinInt64
	}
	return a
}

func maxInt(a, b int64, d DType) int64 {
	if unsignedOrder(a, d) > unsignedOrder(b, d) {
		return a
	}
	return b
}

func minInt(a, b int64, d DType) int64 {
	if unsignedOrder(a, d) < unsignedOrder(b, d) {
		return a
	}
	return b
}

func pickNumber(a, b float64, f func(a, b float64) float64) float64 {
	switch {
	case math.IsNaN(a):
		return b
	case math.IsNaN(b):
		return a
	}
	return f(a, b)
}

func logaddexp(a, b float64) float64 {
	if math.IsInf(a, 0) && a == b {
		return a
	}
	m := maxNaN(a, b)
	return m + math.Log1p(math.Exp(-math.Abs(a-b)))
}

func xlogy(a, b float64) float64 {
	if math.IsNaN(b) {
		return b
	}
	if a == 0 {
		return 0
	}
	return a * math.Log(b)
}

func heaviside(a, b float64) float64 {
	switch {
	case a == 0:
		return b
	case a > 0:
		return 1
	}
	return 0 // of NaN, too
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return max(a, -a)
}

func lcm(a, b int64, _ DType) int64 {
	g := gcd(a, b)
	if g == 0 {
		return 0
	}
	v := a / g * b
	return max(v, -v)
}

func width(d DType) int64 {
	if d == ops.Bool {
		return 1
	}
	return d.Size() * 8
}

func shiftLeft(a, b int64, d DType) int64 {
	if b < 0 || b >= width(d) {
		return 0
	}
	return a << b
}

func shiftRight(a, b int64, d DType) int64 {
	w := width(d)
	if d.IsSigned() {
		w--
	}
	if b < 0 || b >= w {
		b = w
	}
	if !d.IsSigned() {
		if b >= 64 {
			return 0
		}
		return int64(uint64(a) >> b)
	}
	return a >> b
}

// pair holds two operands broadcast against each other; an operand of one element is not spread.
func pair(a, b *Tensor) (x, y *Tensor, sizes []int64) {
	sizes = broadcast(a.Sizes, b.Sizes)
	spread := func(t *Tensor) *Tensor {
		if t.Numel() == 1 {
			return t
		}
		return expandTo(t, sizes)
	}
	return spread(a), spread(b), sizes
}

func zip[S, D any](n int64, a, b []S, f func(a, b S) D) []D {
	out := make([]D, n)
	if n == 0 {
		return out
	}
	switch {
	case len(a) == 1 && len(b) == 1:
		v := f(a[0], b[0])
		for i := range out {
			out[i] = v
		}
	case len(b) == 1:
		y := b[0]
		for i, x := range a {
			out[i] = f(x, y)
		}
	case len(a) == 1:
		x := a[0]
		for i, y := range b {
			out[i] = f(x, y)
		}
	default:
		b = b[:len(a)]
		for i, x := range a {
			out[i] = f(x, b[i])
		}
	}
	return out
}

// half tells the types whose arithmetic is done in float32.
func half(d DType) bool { return d == ops.Float16 || d == ops.BFloat16 }

// operands casts two operands to the type they are computed in.
func operands(a, b *Tensor, d DType, keepScalar bool) (x, y *Tensor) {
	if keepScalar && half(d) && b.Rank() == 0 {
		return cast(a, d), cast(b, ops.Float32)
	}
	return cast(a, d), cast(b, d)
}

func (b binary) apply(x, y *Tensor, d DType) *Tensor {
	x, y, sizes := pair(x, y)
	n := numel(sizes)
	switch classOf(d) {
	case classInt:
		if b.i == nil {
			fail("no meaning for %s", d)
		}
		x, y = cast(x, d), cast(y, d)
		return fromInts(d, sizes, zip(n, x.ints(), y.ints(), func(p, q int64) int64 { return b.i(p, q, d) }))
	case classFloat:
		if b.f == nil {
			fail("no meaning for %s", d)
		}
		x, y = operands(x, y, d, b.scalar)
		return fromFloats(d, sizes, zip(n, x.floats(), y.floats(), b.f))
	}
	if b.z == nil {
		fail("no meaning for %s", d)
	}
	x, y = cast(x, d), cast(y, d)
	return fromComplexes(d, sizes, zip(n, x.complexes(), y.complexes(), b.z))
}

// evalBinary computes the element-wise functions of two operands in the table above: tensors, or a tensor and a number.
func evalBinary(c *Call) ([]Value, error) {
	name := c.pure()
	if n, ok := binaryNames[name]; ok {
		name = n
	}
	x, y := c.T(0), c.T(1)
	if c.pure() == "rsub" {
		x, y = y, x
	}
	if i := c.index("rounding_mode"); i >= 0 && c.has(i) {
		switch m := c.Str(i); m {
		case "trunc":
			name = "divide_trunc"
		case "floor":
			name = "floor_divide"
		default:
			fail("rounding_mode %q is not known", m)
		}
	}
	b, ok := binaries[name]
	if !ok {
		fail("no element-wise function %s", name)
	}
	d := resultType(x, y)
	if classOf(d) == classInt && b.i == nil {
		d = ops.Float32
	}
	switch name {
	case "float_power":
		d = ops.Float64
		if x.DType.IsComplex() || y.DType.IsComplex() {
			d = ops.Complex128
		}
	case "pow":
		if classOf(d) == classInt && y.wrapped && y.ints()[0] < 0 {
			fail("an integer to a negative integer power")
		}
		if d == ops.Float64 || classOf(d) != classFloat || !y.wrapped {
			break
		}
		if e := y.floats()[0]; half(d) && e == 3 {
			r := halfRounder(d)
			b.f = func(a, _ float64) float64 { return r(a*a) * a }
		}
	case "divide_trunc":
		if d != ops.Float64 { // the quotient is rounded first: 1/0.1 is 10
			b.f = func(a, b float64) float64 { return math.Trunc(float64(float32(a / b))) }
		}
	case "copysign", "atan2", "hypot", "logaddexp":
		d = floatType(d)
	case "xlogy":
		if half(d) { // the logarithm is rounded, too
			r := halfRounder(d)
			b.f = func(p, q float64) float64 {
				if p == 0 && !math.IsNaN(q) {
					return 0
				}
				return p * r(math.Log(q))
			}
		}
	}
	if i := c.index("alpha"); i >= 0 {
		switch classOf(d) {
		case classInt:
			if k := c.Int(i); k != 1 {
				f := b.i
				b.i = func(a, b int64, d DType) int64 { return f(a, b*k, d) }
			}
		case classFloat:
			if k := c.Float(i); k != 1 {
				if d != ops.Float64 {
					k = float64(float32(k))
				}
				f := b.f
				b.f = func(a, b float64) float64 { return f(a, b*k) }
			}
		default:
			if k := asComplex(c.Args[i]); k != 1 {
				f := b.z
				b.z = func(a, b complex128) complex128 { return f(a, b*k) }
			}
		}
	}
	return one(b.apply(x, y, d))
}

func halfRounder(d DType) func(float64) float64 {
	if d == ops.BFloat16 {
		return func(x float64) float64 { return float64(bf16to32(f32tobf16(float32(x)))) }
	}
	return func(x float64) float64 { return float64(f16to32(f32to16(float32(x)))) }
}

// evalCompare computes the comparisons. Operands are compared in their common type.
func evalCompare(c *Call) ([]Value, error) {
	x, y := c.T(0), c.T(1)
	d := resultType(x, y)
	name := c.pure()
	x, y, sizes := pair(cast(x, d), cast(y, d))
	n := numel(sizes)
	switch classOf(d) {
	case classInt:
		f := orderings[int64](name)
		return one(fromBools(sizes, zip(n, x.ints(), y.ints(), func(a, b int64) bool {
			return f(unsignedOrder(a, d), unsignedOrder(b, d))
		})))
	case classFloat:
		return one(fromBools(sizes, zip(n, x.floats(), y.floats(), orderings[float64](name))))
	}
	if name != "eq" && name != "ne" {
		fail("complex numbers have no order")
	}
	return one(fromBools(sizes, zip(n, x.complexes(), y.complexes(), func(a, b complex128) bool { return (a == b) == (name == "eq") })))
}

func orderings[T int64 | float64](name string) func(a, b T) bool {
	switch name {
	case "eq":
		return func(a, b T) bool { return a == b }
	case "ne":
		return func(a, b T) bool { return a != b }
	case "lt":
		return func(a, b T) bool { return a < b }
	case "le":
		return func(a, b T) bool { return a <= b }
	case "gt":
		return func(a, b T) bool { return a > b }
	case "ge":
		return func(a, b T) bool { return a >= b }
	}
	fail("no comparison %s", name)
	return nil
}

// evalLogical computes and, or, xor of truth values.
func evalLogical(c *Call) ([]Value, error) {
	x, y, sizes := pair(c.T(0), c.T(1))
	var f func(a, b bool) bool
	switch c.pure() {
	case "logical_and":
		f = func(a, b bool) bool { return a && b }
	case "logical_or":
		f = func(a, b bool) bool { return a || b }
	case "logical_xor":
		f = func(a, b bool) bool { return a != b }
	default:
		fail("no function %s", c.pure())
	}
	return one(fromBools(sizes, zip(numel(sizes), x.bools(), y.bools(), f)))
}

// evalClamp bounds by numbers or tensors: clamp, clamp_min, clamp_max, clip.
func evalClamp(c *Call) ([]Value, error) {
	t := c.T(0)
	lo, hi := c.arg("min"), c.arg("max")
	d := resultType(t, lo, hi)
	bound := func(x *Tensor, v Value, name string) *Tensor {
		if v == nil {
			return x
		}
		b, ok := v.(*Tensor)
		if !ok {
			b = wrap(v)
		}
		return binaries[name].apply(x, b, d)
	}
	x := bound(t, lo, "maximum")
	return one(cast(bound(x, hi, "minimum"), d))
}

// evalWhere picks from two operands by a condition.
func evalWhere(c *Call) ([]Value, error) {
	cond, x, y := c.T(0), c.T(1), c.T(2)
	d := resultType(x, y)
	sizes := broadcast(cond.Sizes, x.Sizes, y.Sizes)
	return one(choose(cond, cast(x, d), cast(y, d), sizes))
}

// choose picks elements of x where cond is true and of y elsewhere; both have one dtype.
func choose(cond, x, y *Tensor, sizes []int64) *Tensor {
	out := compactCopy(expandTo(y, sizes))
	m := expandTo(cond, sizes).bools()
	xs := compact(expandTo(x, sizes))
	sz := x.DType.Size()
	if len(m) == 0 {
		return out
	}
	dst, src := out.storage.b, xs.storage.b[xs.Offset*sz:]
	for i, b := range m {
		if b {
			copy(dst[int64(i)*sz:int64(i+1)*sz], src[int64(i)*sz:int64(i+1)*sz])
		}
	}
	return out
}

// evalMaskedFill puts a value where a mask is true.
func evalMaskedFill(c *Call) ([]Value, error) {
	t, mask, v := c.T(0), c.T(1), c.T(2)
	if v.Rank() != 0 {
		fail("the value of masked_fill has %d dimensions, not 0", v.Rank())
	}
	return one(choose(mask, cast(v, t.DType), t, broadcast(t.Sizes, mask.Sizes)))
}

// evalAddcmul computes self + value * tensor1 (*, /) tensor2.
func evalAddcmul(c *Call) ([]Value, error) {
	a, x, y := c.T(0), c.T(1), c.T(2)
	d := resultType(a, x, y)
	div := c.pure() == "addcdiv"
	if div && classOf(d) == classInt {
		fail("addcdiv has no meaning for %s", d)
	}
	sizes := broadcast(a.Sizes, x.Sizes, y.Sizes)
	get := func(t *Tensor) *Tensor { return expandTo(cast(t, d), sizes) }
	v := c.Args[c.index("value")]
	switch classOf(d) {
	case classInt:
		k, _ := asInt(v)
		out := append([]int64(nil), get(a).ints()...)
		p, q := get(x).ints(), get(y).ints()
		for i := range out {
			out[i] += k * p[i] * q[i]
		}
		return one(fromInts(d, sizes, out))
	case classFloat:
		k, _ := asFloat(v)
		out := append([]float64(nil), get(a).floats()...)
		p, q := get(x).floats(), get(y).floats()
		for i := range out {
			if div {
				out[i] += k * p[i] / q[i]
			} else {
				out[i] += k * p[i] * q[i]
			}
		}
		return one(fromFloats(d, sizes, out))
	}
	k := asComplex(v)
	out := append([]complex128(nil), get(a).complexes()...)
	p, q := get(x).complexes(), get(y).complexes()
	for i := range out {
		if div {
			out[i] += k * p[i] / q[i]
		} else {
			out[i] += k * p[i] * q[i]
		}
	}
	return one(fromComplexes(d, sizes, out))
}

// evalLerp interpolates between start and end.
func evalLerp(c *Call) ([]Value, error) {
	a, b, w := c.T(0), c.T(1), c.T(2)
	d := a.DType
	sizes := broadcast(a.Sizes, b.Sizes, w.Sizes)
	av, bv := expandTo(a, sizes).floats(), expandTo(b, sizes).floats()
	wv := expandTo(w, sizes).floats()
	out := make([]float64, len(av))
	for i := range out {
		if math.Abs(wv[i]) < 0.5 {
			out[i] = av[i] + wv[i]*(bv[i]-av[i])
		} else {
			out[i] = bv[i] - (bv[i]-av[i])*(1-wv[i])
		}
	}
	return one(fromFloats(d, sizes, out))
}

// evalIsclose compares within tolerances.
func evalIsclose(c *Call) ([]Value, error) {
	return one(isclose(c.T(0), c.T(1), c.floatOr(2, 1e-5), c.floatOr(3, 1e-8), c.Bool(4)))
}

// evalAllclose tells whether all elements are close.
func evalAllclose(c *Call) ([]Value, error) {
	for _, b := range isclose(c.T(0), c.T(1), c.floatOr(2, 1e-5), c.floatOr(3, 1e-8), c.Bool(4)).bools() {
		if !b {
			return one(false)
		}
	}
	return one(true)
}

func isclose(a, b *Tensor, rtol, atol float64, equalNaN bool) *Tensor {
	x, y, sizes := pair(a, b)
	return fromBools(sizes, zip(numel(sizes), x.floats(), y.floats(), func(p, q float64) bool {
		if p == q || equalNaN && math.IsNaN(p) && math.IsNaN(q) {
			return true
		}
		return !math.IsInf(p, 0) && !math.IsInf(q, 0) && math.Abs(p-q) <= atol+rtol*math.Abs(q)
	}))
}

// evalEqual tells whether two tensors have the same shape and elements.
func evalEqual(c *Call) ([]Value, error) {
	a, b := c.T(0), c.T(1)
	if len(a.Sizes) != len(b.Sizes) {
		return one(false)
	}
	for i := range a.Sizes {
		if a.Sizes[i] != b.Sizes[i] {
			return one(false)
		}
	}
	av, bv := a.complexes(), b.complexes()
	for i := range av {
		if av[i] != bv[i] {
			return one(false)
		}
	}
	return one(true)
}

// evalFrexp splits into mantissa and exponent.
func evalFrexp(c *Call) ([]Value, error) {
	t := c.T(0)
	v := t.floats()
	m, e := make([]float64, len(v)), make([]int64, len(v))
	for i, x := range v {
		f, k := math.Frexp(x)
		m[i], e[i] = f, int64(k)
	}
	return []Value{fromFloats(t.DType, t.Sizes, m), fromInts(ops.Int32, t.Sizes, e)}, nil
}

// evalPrelu is x where positive and weight*x elsewhere, one weight a channel.
func evalPrelu(c *Call) ([]Value, error) {
	t, w := c.T(0), c.T(1)
	if w.Numel() != 1 && t.Rank() > 1 {
		sizes := make([]int64, t.Rank())
		for i := range sizes {
			sizes[i] = 1
		}
		sizes[1] = w.Numel()
		w = w.withSizes(sizes...)
	} else if w.Numel() == 1 {
		w = w.withSizes()
	}
	w = cast(w, t.DType)
	x, y, sizes := pair(t, w)
	return one(fromFloats(t.DType, sizes, zip(numel(sizes), x.floats(), y.floats(), func(a, b float64) float64 {
		if a > 0 {
			return a
		}
		return a * b
	})))
}

// evalGlu gates one half of a dimension by the sigmoid of the other.
func evalGlu(c *Call) ([]Value, error) {
	t := c.T(0)
	d := dim(c.intOr(1, -1), t.Rank())
	n := t.Sizes[d]
	if n%2 != 0 {
		fail("glu halves dimension %d, which has %d elements", d, n)
	}
	a, b := slice(t, d, 0, n/2, 1), slice(t, d, n/2, n, 1)
	return one(fromFloats(t.DType, a.Sizes, zip(a.Numel(), a.floats(), b.floats(), func(x, g float64) float64 { return x * sigmoid(g) })))
}
