package passes

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ops"
)

// RemoveNoops drops nodes that give their input back.
var RemoveNoops = Pass{
	Name: "remove-noops",
	Doc: "Removes conversions to the type a tensor has, copies, and views that change nothing. Copies into another memory format stay: " +
		"they say how the result is to lie in memory.",
	Run: func(ctx *Context, g *ir.Graph) error {
		if g.Stage == ops.StageAten {
			return nil
		}
		return each(g, func(n *ir.Node) error {
			if v := sameAsInput(n); v != nil {
				dropNode(ctx, n, v, "noop")
			}
			return nil
		})
	},
}

// sameAsInput is the value that n gives back unchanged, or nil.
func sameAsInput(n *ir.Node) *ir.Value {
	s := &n.Info().Schema
	in := n.In(0)
	if s.NS != "aten" || in == nil || !in.Type.IsTensor() || len(n.Outs) != 1 {
		return nil
	}
	switch s.Base {
	case "clone", "contiguous", "to", "_to_copy", "type_as":
		if !keepsFormat(n) {
			return nil
		}
		// There and back again through a type that holds all numbers of the first.
		if d := in.Def; changesType(d) && keepsFormat(d) {
			x := d.In(0)
			if from := x.Type.DType; from == n.Out().Type.DType && from != in.Type.DType && holdsAll(in.Type.DType, from) {
				return x
			}
		}
		return in
	case "view", "_unsafe_view", "reshape", "expand", "expand_as", "broadcast_to", "flatten", "ravel", "squeeze", "view_as", "reshape_as",
		"atleast_1d", "atleast_2d", "atleast_3d", "unflatten", "sum_to_size":
		if s.Overload != "dtype" {
			return in
		}
	case "permute", "transpose", "t", "movedim", "swapaxes", "swapdims", "numpy_T", "mT", "moveaxis":
		if p, ok := permOf(n); ok && isIdentity(p) {
			return in
		}
	case "slice", "narrow":
		// An end beyond the tensor's is the tensor's: the result's size tells.
		_, start, _, step, ok := sliceOf(n, 0)
		if ok && start.IsConstValue(0) && step.IsConstValue(1) && ir.EqualShape(in.Type.Shape, n.Out().Type.Shape) {
			return in
		}
	case "mul", "div":
		if f, ok := n.Arg(1).Float(); ok && f == 1 && n.Arg(1).Value() == nil && n.ArgNamed("rounding_mode").IsNone() {
			return in
		}
	case "add", "sub":
		// A float zero would turn -0 into 0.
		if k, ok := n.Arg(1).Int(); ok && k == 0 && n.Arg(1).Kind() == ir.ArgInt && in.Type.DType.IsInt() {
			return in
		}
	case "repeat", "tile":
		if ks, ok := n.Arg(1).IntList(); ok {
			for _, k := range ks {
				if k != 1 {
					return nil
				}
			}
			return in
		}
	case "slice_scatter", "index_copy", "index_add", "scatter", "scatter_add":
		// Nothing is written.
		for v := range n.Inputs() {
			if v.Type.IsTensor() && v.Type.Numel().IsConstValue(0) {
				return in
			}
		}
	case "pad", "constant_pad_nd":
		if ks, ok := n.Arg(1).IntList(); ok {
			for _, k := range ks {
				if k != 0 {
					return nil
				}
			}
			return in
		}
	}
	return nil
}

// keepsFormat tells whether a copy lies in memory as what it is made of.
func keepsFormat(n *ir.Node) bool {
	t := n.In(0).Type
	f, _ := n.ArgNamed("memory_format").Str()
	return f == "" || f == "preserve_format" || f == "contiguous_format" && t.Contiguous() || hasFormat(t, f)
}

// changesType tells nodes that change the element type of a tensor and nothing else.
func changesType(n *ir.Node) bool {
	if n == nil || n.In(0) == nil || !n.In(0).Type.IsTensor() || len(n.Outs) != 1 {
		return false
	}
	s := &n.Info().Schema
	return s.NS == "aten" && (s.Base == "to" || s.Base == "_to_copy" || s.Base == "type_as") && ir.EqualShape(n.In(0).Type.Shape, n.Out().Type.Shape)
}

// holdsAll tells whether every number of the type from is one of the type to.
func holdsAll(to, from ops.DType) bool {
	// The bits of an integer's magnitude, or of a float's significand.
	bits := map[ops.DType]int{
		ops.Bool: 1, ops.Uint8: 8, ops.Int8: 7, ops.Int16: 15, ops.Int32: 31, ops.Int64: 63,
		ops.BFloat16: 8, ops.Float16: 11, ops.Float32: 24, ops.Float64: 53,
	}
	if bits[to] == 0 || bits[from] == 0 || bits[to] < bits[from] {
		return false
	}
	switch {
	case from == ops.Bool:
		return true
	case from.IsFloat():
		// Float16 has fewer exponents than BFloat16.
		return to == ops.Float32 || to == ops.Float64
	case to == ops.Uint8:
		return false
	}
	return true
}
