package etrt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Compare reports every difference between what was computed and what is wanted: kinds, shapes and element types must
// agree exactly, integers and bools too, floats within atol + rtol*|want|. A NaN equals a NaN. When more values were
// computed than are wanted, the last ones count; absent values on either side are passed over.
func Compare(got, want []Value, rtol, atol float64) error {
	present := func(vs []Value) []Value {
		return slices.DeleteFunc(slices.Clone(vs), func(v Value) bool { return v.Kind == KindNone })
	}
	g, w := present(got), present(want)
	if len(g) < len(w) {
		return fmt.Errorf("%d outputs, %d wanted", len(g), len(w))
	}
	g = g[len(g)-len(w):]
	var errs []error
	for i := range w {
		if err := compareValue(g[i], w[i], rtol, atol); err != nil {
			errs = append(errs, fmt.Errorf("output %d: %w", i, err))
		}
	}
	return errors.Join(errs...)
}

func compareValue(g, w Value, rtol, atol float64) error {
	if g.Kind != w.Kind {
		return fmt.Errorf("%s, want %s", g.Kind, w.Kind)
	}
	switch w.Kind {
	case KindTensor:
		return CompareTensors(g.Tensor, w.Tensor, rtol, atol)
	case KindInt:
		if g.Int != w.Int {
			return fmt.Errorf("%d, want %d", g.Int, w.Int)
		}
	case KindBool:
		if g.Bool != w.Bool {
			return fmt.Errorf("%t, want %t", g.Bool, w.Bool)
		}
	case KindFloat:
		if !near(g.Float, w.Float, rtol, atol) {
			return fmt.Errorf("%g, want %g", g.Float, w.Float)
		}
	case KindString:
		if g.Str != w.Str {
			return fmt.Errorf("%q, want %q", g.Str, w.Str)
		}
	case KindInts:
		if !slices.Equal(g.Ints, w.Ints) {
			return fmt.Errorf("%v, want %v", g.Ints, w.Ints)
		}
	default:
		return fmt.Errorf("%s values are not compared", w.Kind)
	}
	return nil
}

func near(g, w, rtol, atol float64) bool {
	if g == w || (math.IsNaN(g) && math.IsNaN(w)) {
		return true
	}
	if math.IsInf(w, 0) || math.IsInf(g, 0) {
		return false
	}
	return math.Abs(g-w) <= atol+rtol*math.Abs(w)
}

// CompareTensors reports how a tensor differs from the wanted one: how many elements, the worst and where it is.
func CompareTensors(g, w *Tensor, rtol, atol float64) error {
	if g.DType != w.DType || !slices.Equal(g.Shape, w.Shape) {
		return fmt.Errorf("%s%v, want %s%v", g.DType, g.Shape, w.DType, w.Shape)
	}
	g, err := g.Contiguous()
	if err != nil {
		return err
	}
	if w, err = w.Contiguous(); err != nil {
		return err
	}
	if len(g.Data) != len(w.Data) {
		return fmt.Errorf("%d bytes, want %d", len(g.Data), len(w.Data))
	}
	exact := false
	switch w.DType {
	case Bool, U8, I8, I16, I32, I64, U16, U32, U64:
		exact = true
	}
	size, parts := w.DType.Size(), 1
	switch w.DType {
	case ComplexHalf, Complex64, Complex128:
		size, parts = size/2, 2
	}
	bad, worst, at := 0, -1.0, 0
	for i := 0; i*size < len(w.Data); i++ {
		gb, wb := g.Data[i*size:(i+1)*size], w.Data[i*size:(i+1)*size]
		if string(gb) == string(wb) {
			continue
		}
		gv, wv := decode(w.DType, gb), decode(w.DType, wb)
		if !exact && near(gv, wv, rtol, atol) {
			continue
		}
		bad++
		if d := math.Abs(gv - wv); d > worst || math.IsNaN(d) && worst < math.Inf(1) {
			worst, at = d, i
			if math.IsNaN(d) {
				worst = math.Inf(1)
			}
		}
	}
	if bad == 0 {
		return nil
	}
	gb, wb := g.Data[at*size:(at+1)*size], w.Data[at*size:(at+1)*size]
	return fmt.Errorf("%s%v: %d of %d elements differ, the worst at %v: %v, want %v (rtol %g, atol %g)",
		w.DType, w.Shape, bad, len(w.Data)/size, position(at/parts, w.Shape), decode(w.DType, gb), decode(w.DType, wb), rtol, atol)
}

func position(i int, shape []int64) []int64 {
	p := make([]int64, len(shape))
	for d := len(shape) - 1; d >= 0; d-- {
		p[d] = int64(i) % shape[d]
		i /= int(shape[d])
	}
	return p
}

// decode gives an element (or one part of a complex one) as a float64. 64-bit integers beyond 2^53 lose their low bits
// here; equality is decided on the bytes.
func decode(d DType, b []byte) float64 {
	le := binary.LittleEndian
	switch d {
	case Bool, U8:
		return float64(b[0])
	case I8:
		return float64(int8(b[0]))
	case I16:
		return float64(int16(le.Uint16(b)))
	case U16:
		return float64(le.Uint16(b))
	case I32:
		return float64(int32(le.Uint32(b)))
	case U32:
		return float64(le.Uint32(b))
	case I64:
		return float64(int64(le.Uint64(b)))
	case U64:
		return float64(le.Uint64(b))
	case F32, Complex64:
		return float64(math.Float32frombits(le.Uint32(b)))
	case F64, Complex128:
		return math.Float64frombits(le.Uint64(b))
	case BF16:
		return float64(math.Float32frombits(uint32(le.Uint16(b)) << 16))
	case F16, ComplexHalf:
		return small(uint32(le.Uint16(b)), 5, 10, true)
	case F8E5M2:
		return small(uint32(b[0]), 5, 2, true)
	case F8E4M3:
		return small(uint32(b[0]), 4, 3, false)
	}
	return math.NaN()
}

// small decodes a float of 1+e+m bits. Without infinities, the top exponent is an ordinary one but for the all-ones
// mantissa, which is NaN.
func small(v uint32, e, m uint, infinities bool) float64 {
	sign := 1.0
	if v>>(e+m)&1 == 1 {
		sign = -1
	}
	exp, man := int(v>>m&(1<<e-1)), v&(1<<m-1)
	bias := 1<<(e-1) - 1
	switch {
	case infinities && exp == 1<<e-1:
		if man == 0 {
			return sign * math.Inf(1)
		}
		return math.NaN()
	case !infinities && exp == 1<<e-1 && man == 1<<m-1:
		return math.NaN()
	case exp == 0:
		return sign * math.Ldexp(float64(man), 1-bias-int(m))
	}
	return sign * math.Ldexp(float64(man)+float64(uint32(1)<<m), exp-bias-int(m))
}

// Floats gives the elements in index order as float64s: of complex ones the real parts, of 64-bit integers beyond 2^53
// without their low bits.
func (t *Tensor) Floats() ([]float64, error) {
	c, err := t.Contiguous()
	if err != nil {
		return nil, err
	}
	size := c.DType.Size()
	if size == 0 {
		return nil, fmt.Errorf("%s has no element size", c.DType)
	}
	out := make([]float64, 0, len(c.Data)/size)
	for b := c.Data; len(b) >= size; b = b[size:] {
		out = append(out, decode(c.DType, b[:size]))
	}
	return out, nil
}
