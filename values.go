package lathe

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lathe-ml/lathe/internal/etrt"
	"github.com/lathe-ml/lathe/internal/npz"
	"github.com/lathe-ml/lathe/internal/safetensors"
	"github.com/lathe-ml/lathe/interp"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ops"
)

// Value is what programs take and give: a *interp.Tensor, int64, float64, bool, string, []Value, or nil for None.
type Value = interp.Value

// Arrays are tensors by name, as .npz and .safetensors files hold them.
type Arrays map[string]*interp.Tensor

// ReadArrays reads a .npz or .safetensors file.
func ReadArrays(path string) (Arrays, error) {
	as := Arrays{}
	switch filepath.Ext(path) {
	case ".npz":
		list, err := npz.Read(path)
		if err != nil {
			return nil, arraysDiag(path, err)
		}
		for name, a := range list {
			d, ok := ops.ParseDType(a.DType)
			if !ok {
				return nil, arraysDiag(path, fmt.Errorf("%q: element type %s is not known", name, a.DType))
			}
			strides := rowMajor(a.Shape)
			if a.Fortran {
				slices.Reverse(a.Shape)
				strides = rowMajor(a.Shape)
				slices.Reverse(a.Shape)
				slices.Reverse(strides)
			}
			if as[name], err = interp.NewView(d, a.Shape, strides, 0, interp.NewStorage(a.Data)); err != nil {
				return nil, arraysDiag(path, fmt.Errorf("%q: %w", name, err))
			}
		}
	case ".safetensors":
		f, err := safetensors.Open(path)
		if err != nil {
			return nil, arraysDiag(path, err)
		}
		defer f.Close() //nolint:errcheck // only read
		for name, t := range f.Tensors {
			d, ok := ops.ParseDType(t.Torch())
			if !ok {
				return nil, arraysDiag(path, fmt.Errorf("%q: element type %s is not known", name, t.DType))
			}
			if as[name], err = interp.FromBytes(d, t.Shape, bytes.Clone(t.Data)); err != nil {
				return nil, arraysDiag(path, fmt.Errorf("%q: %w", name, err))
			}
		}
	default:
		return nil, &UsageError{fmt.Errorf("%s: arrays come in .npz and .safetensors files", path)}
	}
	return as, nil
}

func arraysDiag(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &ir.Diag{Code: "no-file", Msg: err.Error(), Entry: path, Try: "check the path"}
	}
	return &ir.Diag{Code: "bad-arrays", Msg: err.Error(), Entry: path, Try: "write the file again with numpy.savez or safetensors"}
}

// WriteFile writes a .npz or .safetensors file, which appears whole or not at all.
func (as Arrays) WriteFile(path string) error {
	var b bytes.Buffer
	switch filepath.Ext(path) {
	case ".npz":
		list := map[string]npz.Array{}
		for name, t := range as {
			list[name] = npz.Array{DType: t.DType.Torch(), Shape: t.Sizes, Data: t.Bytes()}
		}
		if err := npz.Write(&b, list); err != nil {
			return arraysDiag(path, err)
		}
	case ".safetensors":
		list := map[string]safetensors.Tensor{}
		for name, t := range as {
			list[name] = safetensors.Tensor{DType: safetensors.DTypeOf(t.DType.Torch()), Shape: t.Sizes, Data: t.Bytes()}
		}
		if err := safetensors.Write(&b, list); err != nil {
			return arraysDiag(path, err)
		}
	default:
		return &UsageError{fmt.Errorf("%s: arrays go to .npz and .safetensors files", path)}
	}
	return WriteFile(path, b.Bytes())
}

func rowMajor(sizes []int64) []int64 {
	st := make([]int64, len(sizes))
	n := int64(1)
	for i := len(sizes) - 1; i >= 0; i-- {
		st[i] = n
		n *= max(sizes[i], 1)
	}
	return st
}

// toRuntime makes the runtime's form of a value. Tensors that are dense keep their layout, others become contiguous.
func toRuntime(v Value) (etrt.Value, error) {
	switch x := v.(type) {
	case nil:
		return etrt.None(), nil
	case int64:
		return etrt.IntValue(x), nil
	case float64:
		return etrt.FloatValue(x), nil
	case bool:
		return etrt.BoolValue(x), nil
	case string:
		return etrt.StringValue(x), nil
	case *interp.Tensor:
		d, err := etrt.ParseDType(x.DType.Torch())
		if err != nil {
			return etrt.Value{}, err
		}
		t := &etrt.Tensor{DType: d, Shape: x.Sizes, Data: x.Bytes()}
		if !x.IsContiguous() {
			laid := &etrt.Tensor{Shape: x.Sizes, Strides: x.Strides}
			if order, err := laid.DimOrder(); err == nil {
				t.Data, t.Strides = etrt.Permute(t.Data, d.Size(), x.Sizes, order, false), x.Strides
			}
		}
		return etrt.TensorValue(t), nil
	}
	return etrt.Value{}, fmt.Errorf("%T is no value of a program", v)
}

// fromRuntime is the other way.
func fromRuntime(v etrt.Value) (Value, error) {
	switch v.Kind {
	case etrt.KindNone:
		return nil, nil
	case etrt.KindInt:
		return v.Int, nil
	case etrt.KindFloat:
		return v.Float, nil
	case etrt.KindBool:
		return v.Bool, nil
	case etrt.KindString:
		return v.Str, nil
	case etrt.KindTensor:
		d, ok := ops.ParseDType(v.Tensor.DType.String())
		if !ok {
			return nil, fmt.Errorf("element type %s is not known", v.Tensor.DType)
		}
		st := v.Tensor.Strides
		if st == nil {
			st = rowMajor(v.Tensor.Shape)
		}
		return interp.NewView(d, v.Tensor.Shape, st, 0, interp.NewStorage(v.Tensor.Data))
	case etrt.KindInts:
		var l []Value
		for _, k := range v.Ints {
			l = append(l, k)
		}
		return l, nil
	}
	return nil, fmt.Errorf("a value of kind %s", v.Kind)
}

// ToRuntime makes the runtime's form of values.
func ToRuntime(vs []Value) ([]etrt.Value, error) {
	out := make([]etrt.Value, len(vs))
	for i, v := range vs {
		var err error
		if out[i], err = toRuntime(v); err != nil {
			return nil, fmt.Errorf("value %d: %w", i, err)
		}
	}
	return out, nil
}

// FromRuntime makes values of the runtime's form of them.
func FromRuntime(vs []etrt.Value) ([]Value, error) {
	out := make([]Value, len(vs))
	for i, v := range vs {
		var err error
		if out[i], err = fromRuntime(v); err != nil {
			return nil, fmt.Errorf("value %d: %w", i, err)
		}
	}
	return out, nil
}

// Compare tells every difference between what was computed and what is wanted: floats within atol + rtol*|want|, all else
// exact. Where more was computed than is wanted (mutated inputs come first), the last values count; None is passed over.
func Compare(got, want []Value, rtol, atol float64) error {
	g, err := ToRuntime(got)
	if err != nil {
		return err
	}
	w, err := ToRuntime(want)
	if err != nil {
		return err
	}
	return etrt.Compare(g, w, rtol, atol)
}

// Summary says in a line what a value is: type, bounds, mean, first elements.
func Summary(v Value) string {
	x, ok := v.(*interp.Tensor)
	if !ok {
		switch v := v.(type) {
		case nil:
			return "None"
		case string:
			return fmt.Sprintf("str %q", v)
		case int64:
			return fmt.Sprintf("int %d", v)
		case float64:
			return fmt.Sprintf("float %g", v)
		case bool:
			return fmt.Sprintf("bool %t", v)
		}
		return fmt.Sprint(v)
	}
	name := fmt.Sprintf("%s[%s]", x.DType.Torch(), joinInts(x.Sizes, ", "))
	rv, err := toRuntime(x)
	if err != nil {
		return name
	}
	fs, err := rv.Tensor.Floats()
	if err != nil || len(fs) == 0 {
		return name
	}
	lo, hi, sum, nans := math.Inf(1), math.Inf(-1), 0.0, 0
	for _, f := range fs {
		if math.IsNaN(f) {
			nans++
			continue
		}
		lo, hi, sum = min(lo, f), max(hi, f), sum+f
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  min %.6g  max %.6g  mean %.6g", name, lo, hi, sum/float64(len(fs)-nans))
	if nans > 0 {
		fmt.Fprintf(&b, "  %d NaN", nans)
	}
	b.WriteString("  [")
	for i, f := range fs {
		if i == 4 {
			b.WriteString(" …")
			break
		}
		if i > 0 {
			b.WriteString(" ")
		}
		fmt.Fprintf(&b, "%.5g", f)
	}
	return b.String() + "]"
}
