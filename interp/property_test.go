package interp

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/lathe-ml/lathe/ops"
)

func iota64(sizes ...int64) *Tensor {
	v := make([]int64, numel(sizes))
	for i := range v {
		v[i] = int64(i)
	}
	return fromInts(ops.Int64, sizes, v)
}

// drawView makes a random chain of views of a fresh tensor whose elements are their places in the storage.
func drawView(t *rapid.T) *Tensor {
	sizes := rapid.SliceOfN(rapid.Int64Range(0, 4), 1, 4).Draw(t, "sizes")
	v := iota64(sizes...)
	for range rapid.IntRange(0, 4).Draw(t, "steps") {
		if v.Rank() == 0 {
			break
		}
		d := rapid.IntRange(0, v.Rank()-1).Draw(t, "dim")
		switch rapid.IntRange(0, 5).Draw(t, "op") {
		case 0:
			v = transpose(v, d, rapid.IntRange(0, v.Rank()-1).Draw(t, "with"))
		case 1:
			lo := rapid.Int64Range(0, 4).Draw(t, "from")
			v = slice(v, d, lo, lo+rapid.Int64Range(0, 4).Draw(t, "len"), rapid.Int64Range(1, 3).Draw(t, "step"))
		case 2:
			v = unsqueeze(v, d)
		case 3:
			if v.Sizes[d] > 0 {
				v = selectDim(v, d, rapid.Int64Range(-v.Sizes[d], v.Sizes[d]-1).Draw(t, "index"))
			}
		case 4:
			if v.Sizes[d] == 1 {
				s := slices.Clone(v.Sizes)
				s[d] = rapid.Int64Range(0, 3).Draw(t, "spread")
				v = expandTo(v, s)
			}
		case 5:
			if v.Rank() > 1 {
				v = diagonal(v, rapid.Int64Range(-2, 2).Draw(t, "offset"), d, (d+1)%v.Rank())
			}
		}
	}
	return v
}

// at is the place in the storage of an element, by the strides alone.
func at(t *Tensor, idx []int64) int64 {
	o := t.Offset
	for i, k := range idx {
		o += k * t.Strides[i]
	}
	return o
}

func TestViewsReadTheirStorage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawView(t)
		got := v.ints()
		idx := make([]int64, v.Rank())
		for i := range got {
			if want := at(v, idx); got[i] != want {
				t.Fatalf("%v strides %v offset %d: element %v is %d, want %d", v, v.Strides, v.Offset, idx, got[i], want)
			}
			count(idx, v.Sizes)
		}
	})
}

func TestReshapeKeepsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawView(t)
		// A random factorization of the number of elements.
		var sizes []int64
		for n := v.Numel(); ; {
			var divisors []int64
			for k := int64(1); k <= n; k++ {
				if n%k == 0 {
					divisors = append(divisors, k)
				}
			}
			if n == 0 {
				sizes = append(sizes, 0)
				break
			}
			k := rapid.SampledFrom(divisors).Draw(t, "factor")
			sizes = append(sizes, k)
			if n /= k; n == 1 || len(sizes) > 5 {
				sizes = append(sizes, n)
				break
			}
		}
		r := reshape(v, sizes)
		if !slices.Equal(r.ints(), v.ints()) {
			t.Fatalf("%v strides %v as %v is %v, want %v", v, v.Strides, sizes, r.ints(), v.ints())
		}
		if st := viewStrides(v, sizes); st != nil && r.storage != v.storage {
			t.Fatalf("%v strides %v as %v has strides %v but was copied", v, v.Strides, sizes, st)
		}
	})
}

func TestWritesReachTheirStorage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawView(t)
		want := slices.Clone(elems[int64](v))
		src := iota64(v.Sizes...)
		vals := src.ints()
		idx := make([]int64, v.Rank())
		for i := range vals {
			want[at(v, idx)] = vals[i]
			count(idx, v.Sizes)
		}
		writeInto(v, src)
		if got := elems[int64](v); !slices.Equal(got, want) {
			t.Fatalf("%v strides %v: storage %v, want %v", v, v.Strides, got, want)
		}
	})
}

func TestBroadcastRepeats(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		full := rapid.SliceOfN(rapid.Int64Range(1, 3), 1, 4).Draw(t, "shape")
		part := func(name string) *Tensor {
			s := slices.Clone(full[rapid.IntRange(0, len(full)-1).Draw(t, name):])
			for i := range s {
				if rapid.Bool().Draw(t, name+" one") {
					s[i] = 1
				}
			}
			return iota64(s...)
		}
		a, b := part("a"), part("b")
		sizes := broadcast(a.Sizes, b.Sizes)
		got := binaries["sub"].apply(a, b, ops.Int64)
		if !slices.Equal(got.Sizes, sizes) {
			t.Fatalf("%v - %v has shape %v, want %v", a, b, got.Sizes, sizes)
		}
		pick := func(x *Tensor, idx []int64) int64 {
			k := int64(0)
			for i, n := range x.Sizes {
				j := idx[len(idx)-len(x.Sizes)+i]
				if n == 1 {
					j = 0
				}
				k = k*n + j
			}
			return k
		}
		idx := make([]int64, len(sizes))
		for i, g := range got.ints() {
			if want := pick(a, idx) - pick(b, idx); g != want {
				t.Fatalf("element %d of %v - %v is %d, want %d", i, a, b, g, want)
			}
			count(idx, sizes)
		}
	})
}

// Halves and eight-bit floats are the nearest of all their values, ties to even.
func TestRoundingToSmallFloats(t *testing.T) {
	for _, d := range []DType{ops.Float16, ops.BFloat16, ops.Float8E4M3FN, ops.Float8E5M2, ops.Float8E4M3FNUZ, ops.Float8E5M2FNUZ} {
		n := 1 << (8 * d.Size())
		// Every value goes through unchanged.
		all := NewTensor(d, int64(n))
		for i := range n {
			if d.Size() == 1 {
				flat[uint8](all)[i] = uint8(i)
			} else {
				flat[uint16](all)[i] = uint16(i)
			}
		}
		v := all.floats()
		back := fromFloats(d, []int64{int64(n)}, slices.Clone(v)).floats()
		var finite []float64
		for i, x := range v {
			if math.IsInf(x, 0) && d == ops.Float8E4M3FN {
				t.Errorf("%s has an infinity at %#x", d, i)
			}
			if back[i] != x && !(math.IsNaN(x) && math.IsNaN(back[i])) {
				t.Fatalf("%s: %v comes back as %v", d, x, back[i])
			}
			if !math.IsNaN(x) && !math.IsInf(x, 0) {
				finite = append(finite, x)
			}
		}
		slices.Sort(finite)
		finite = slices.Compact(finite)
		// The middle of two neighbours goes to the one whose last bit is zero: to that which a neighbour further on the same
		// side shares twice the step with. It is enough that it is one of the two, and a hair aside that it is the nearer.
		for i := 1; i < len(finite); i += 1 + len(finite)/500 {
			a, b := finite[i-1], finite[i]
			mid := a + (b-a)/2
			quarter := [2]float64{a + (b-a)/4, b - (b-a)/4}
			got := fromFloats(d, []int64{3}, []float64{quarter[0], mid, quarter[1]}).floats()
			if got[0] != a || got[2] != b || got[1] != a && got[1] != b {
				t.Fatalf("%s between %v and %v: %v", d, a, b, got)
			}
		}
	}
}

// Whatever the arguments are, an operator gives an error or results that lie in their storage.
func TestAnyArguments(t *testing.T) {
	r := newRNG(3)
	pickInt := func(n int) int { return int(r.bits32() % uint32(n)) }
	tensor := func() *Tensor {
		d := []DType{ops.Float32, ops.Int64, ops.Bool, ops.BFloat16, ops.Complex64, ops.Uint8}[pickInt(6)]
		sizes := make([]int64, pickInt(5))
		for i := range sizes {
			sizes[i] = int64(pickInt(4))
		}
		return Random(uint64(pickInt(100)), "x", d, sizes)
	}
	scalar := func(a ops.ArgType) Value {
		switch a {
		case ops.TInt:
			return int64(pickInt(7) - 3)
		case ops.TFloat:
			return r.float()*4 - 2
		case ops.TBool:
			return pickInt(2) == 0
		case ops.TScalar:
			return []Value{int64(pickInt(5) - 2), r.float(), true}[pickInt(3)]
		case ops.TStr:
			return []string{"", "mean", "reflect", "abc"}[pickInt(4)]
		case ops.TDType:
			return []Value{ops.Float32, ops.Int64, ops.Bool, ops.Float16}[pickInt(4)]
		case ops.TTensor:
			return tensor()
		}
		return nil
	}
	ran := 0
	for _, id := range ops.All() {
		if !Supported(id) {
			continue
		}
		info := id.Info()
		for range 40 {
			args := make([]Value, len(info.Schema.Args))
			for i, a := range info.Schema.Args {
				switch {
				case a.Opt && pickInt(2) == 0:
				case pickInt(40) == 0:
					args[i] = []Value{nil, "odd", tensor(), int64(3)}[pickInt(4)]
				case a.List:
					l := make([]Value, pickInt(4))
					for k := range l {
						l[k] = scalar(a.Type)
					}
					args[i] = l
				default:
					args[i] = scalar(a.Type)
				}
			}
			outs, err := Apply(id, args)
			if err != nil {
				continue
			}
			ran++
			for _, o := range outs {
				if x, ok := o.(*Tensor); ok {
					if _, err := NewView(x.DType, x.Sizes, x.Strides, x.Offset, x.storage); err != nil {
						t.Errorf("%s gives a tensor outside of its storage: %v", id, err)
					}
				}
			}
		}
	}
	// Most calls are refused, but not all: the test reaches the operators.
	if ran < 2000 {
		t.Errorf("only %d calls gave a result", ran)
	}
}
