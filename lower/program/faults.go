package program

import (
	"fmt"
	"math"
	"slices"

	"github.com/x448/float16"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/infer"
	"github.com/lathe-ml/lathe/ops"
)

// faults are the conditions, by the keys of the kernel table, under which a kernel refuses or errs. Each tells why n meets
// the condition, "" where it does not.
var faults = map[string]func(n *ir.Node) string{
	// All tensors inside a plan are contiguous.
	ops.FaultChannelsLast: never,
	// matchKernel feeds what these kernels take.
	ops.FaultNegativeDim:  never,
	ops.FaultMemoryFormat: never,
	ops.FaultNonBlocking:  never,
	// What only certain contents of a tensor meet cannot be seen here: the kernels pass NaNs over.
	ops.FaultNaN: never,

	ops.FaultNegativePad: func(n *ir.Node) string {
		for _, a := range n.ArgNamed("pad").List() {
			e, ok := a.Expr()
			if !ok || n.Graph().Syms.Range(e).Min < 0 {
				return "it does not take negative padding"
			}
		}
		return ""
	},
	ops.FaultNegativeStart: func(n *ir.Node) string {
		if e, ok := n.ArgNamed("start").Expr(); ok && n.Graph().Syms.Range(e).Max < 0 {
			return "it does not count a beginning from the end"
		}
		return ""
	},
	ops.FaultIndex64: func(n *ir.Node) string {
		for _, name := range []string{"index", "indices"} {
			if v := n.ArgNamed(name).Value(); v != nil && v.Type.IsTensor() && v.Type.DType != ops.Int64 {
				return fmt.Sprintf("it takes an index of int64, not of %s", v.Type.DType)
			}
		}
		return ""
	},
	ops.FaultSignOfDividend: func(n *ir.Node) string {
		if o := n.Out(); o != nil && (o.Type.DType.IsInt() && o.Type.DType.IsSigned()) {
			return "it gives integer remainders the sign of the dividend"
		}
		return ""
	},
	ops.FaultNegativeExponent: func(n *ir.Node) string {
		if o := n.Out(); o != nil && o.Type.DType.IsInt() && n.In(1) != nil && n.In(1).Type.DType.IsSigned() {
			return "it takes no integers to a negative power"
		}
		return ""
	},
	ops.FaultWideInteger: func(n *ir.Node) string {
		o := n.Out()
		if mode, _ := n.ArgNamed("rounding_mode").Str(); mode == "floor" || o == nil || !o.Type.DType.IsInt() {
			return ""
		}
		return "it computes integers in floating point"
	},
	ops.FaultOneDim: func(n *ir.Node) string {
		x, o := n.In(0), n.Out()
		if x == nil || o == nil || x.Type.DType != o.Type.DType || x.Type.Rank() == 0 || !x.Type.DType.IsInt() && x.Type.DType != ops.Float64 {
			return ""
		}
		if k := len(n.ArgNamed("dim").List()); k == 1 || k == 0 && x.Type.Rank() == 1 {
			return fmt.Sprintf("it sums %s over one dimension in single precision", x.Type.DType)
		}
		return ""
	},
	ops.FaultMixedDType: func(n *ir.Node) string {
		first := ops.DTypeNone
		for v := range n.Inputs() {
			switch {
			case !v.Type.IsTensor():
			case first == ops.DTypeNone:
				first = v.Type.DType
			case v.Type.DType != first:
				return fmt.Sprintf("it does not take %s together with %s", first, v.Type.DType)
			}
		}
		return ""
	},
	ops.FaultZeroDimPromotion: func(n *ir.Node) string {
		a, b := n.ArgNamed("self").Value(), n.ArgNamed("other").Value()
		if a == nil || b == nil || n.Out() == nil {
			return ""
		}
		if d, ok := infer.Promote(a.Type.DType, b.Type.DType); !ok || d != n.Out().Type.DType {
			return fmt.Sprintf("it promotes %s and %s otherwise where one has no dimensions", a.Type.DType, b.Type.DType)
		}
		return ""
	},
	ops.FaultScalarPromotion: func(n *ir.Node) string {
		x, o := n.In(0), n.Out()
		if x != nil && o != nil && x.Type.DType != o.Type.DType && o.Type.DType.IsFloat() && !x.Type.DType.IsFloat() {
			return "it does not take integers with a float"
		}
		return ""
	},
	ops.FaultScalarRange: func(n *ir.Node) string {
		x := n.In(0)
		if x == nil || !x.Type.DType.IsInt() {
			return ""
		}
		for _, a := range n.Args() {
			if k, ok := a.Int(); ok && !fitsInt(x.Type.DType, k) {
				return fmt.Sprintf("%d is out of the range of %s", k, x.Type.DType)
			}
		}
		return ""
	},
	ops.FaultRank0: func(n *ir.Node) string {
		x := n.In(0)
		if x == nil || x.Type.Rank() > 0 {
			return ""
		}
		for _, name := range []string{"dim", "dimension"} {
			if a := n.ArgNamed(name); !a.IsNone() && a.Kind() != ir.ArgList {
				return "it takes no dimension of a tensor without any"
			}
		}
		return ""
	},
	ops.FaultStrides: func(n *ir.Node) string {
		if x := n.In(0); x != nil && !x.Type.Contiguous() {
			return "it counts strides in contiguous memory, which its operand has not in the model"
		}
		return ""
	},
	ops.FaultVector: func(n *ir.Node) string {
		for _, i := range []int{0, 1} {
			if x := n.In(i); x != nil && x.Type.Rank() < 2 {
				return "it takes no vectors"
			}
		}
		return ""
	},
	ops.FaultBounds: func(n *ir.Node) string {
		for _, name := range []string{"start", "end", "step"} {
			switch a := n.ArgNamed(name); {
			case a.Kind() == ir.ArgBool:
				return "it takes no bools"
			case a.Kind() == ir.ArgFloat && !n.Out().Type.DType.IsFloat():
				return "it drops the fractions of bounds too late"
			}
		}
		return ""
	},
	ops.FaultRankOver4: func(n *ir.Node) string {
		if x := n.In(0); x != nil && (x.Type.Rank() < 3 || x.Type.Rank() > 4) {
			return fmt.Sprintf("it takes tensors of 3 or 4 dimensions, not of %d", x.Type.Rank())
		}
		return ""
	},
	ops.FaultNoDims: func(n *ir.Node) string {
		if len(n.ArgNamed("dims").List()) == 0 {
			return "it wants the dimensions named"
		}
		return ""
	},
	ops.FaultTraining: func(n *ir.Node) string {
		if b, ok := n.ArgNamed("training").Bool(); !ok || b {
			return "it does not train"
		}
		return ""
	},
	ops.FaultTwoSided: func(n *ir.Node) string {
		if b, ok := n.ArgNamed("onesided").Bool(); !ok || !b {
			return "it gives one-sided spectra only"
		}
		return ""
	},
	ops.FaultNoResize: func(n *ir.Node) string {
		for _, o := range n.Outs {
			if !o.Type.Static() {
				return "it does not resize its results to sizes known at run time"
			}
		}
		return ""
	},
	ops.FaultHalfSum: func(n *ir.Node) string {
		if x := n.In(0); x != nil && (x.Type.DType == ops.Float16 || x.Type.DType == ops.BFloat16) {
			return fmt.Sprintf("it sums %s in that precision", x.Type.DType)
		}
		return ""
	},
	ops.FaultHalf: func(n *ir.Node) string {
		if x := n.In(0); x != nil && (x.Type.DType == ops.Float16 || x.Type.DType == ops.BFloat16) {
			return fmt.Sprintf("it errs in %s", x.Type.DType)
		}
		return ""
	},
	ops.FaultHalfEps: func(n *ir.Node) string {
		x := n.In(0)
		if x == nil || x.Type.DType != ops.Float16 {
			return "" // bfloat16 has the range of float32
		}
		// Below a normal number what is left of epsilon has few digits. It counts where the variance is about as small.
		eps, ok := n.ArgNamed("eps").Float()
		if r := float64(float16.Fromfloat32(float32(eps)).Float32()); !ok || math.Abs(r-eps) > eps/100 {
			return fmt.Sprintf("its epsilon of %g is %g in %s", eps, r, x.Type.DType)
		}
		return ""
	},
	ops.FaultDouble: func(n *ir.Node) string {
		if x := n.In(0); x != nil && x.Type.DType == ops.Float64 {
			return "it computes float64 in single precision"
		}
		return ""
	},
	ops.FaultScales: func(n *ir.Node) string {
		x, o := n.In(0), n.Out()
		if x == nil || o == nil || x.Type.Rank() != 4 || o.Type.Rank() != 4 {
			return ""
		}
		for i, name := range []string{"scales_h", "scales_w"} {
			s, given := n.ArgNamed(name).Float()
			in, okIn := x.Type.Shape[2+i].IsConst()
			out, okOut := o.Type.Shape[2+i].IsConst()
			if given && (!okIn || !okOut || float64(in)*s != float64(out)) {
				return "it scales by the sizes, not by the factors given"
			}
		}
		return ""
	},
	ops.FaultWideScales: func(n *ir.Node) string {
		if v := n.ArgNamed("scales").Value(); v != nil && v.Type.DType != ops.Float64 {
			return fmt.Sprintf("it takes scales of f64, not of %s", v.Type.DType)
		}
		if v := n.ArgNamed("zero_points").Value(); v != nil && v.Type.DType != ops.Int64 {
			return fmt.Sprintf("it takes zero points of i64, not of %s", v.Type.DType)
		}
		return ""
	},
	ops.FaultHost: func(*ir.Node) string { return "it copies to and from other devices only" },
}

func never(*ir.Node) string { return "" }

// harmless gives what a kernel takes instead of the node's argument a where the difference has no meaning here: a layout
// of a result, a copy that need not wait, an expansion that autograd made, a dimension counted from the end.
func harmless(n *ir.Node, k *ops.KernelInfo, ka *ops.Arg, a ir.Arg) (ir.Arg, bool) {
	switch ka.Name {
	case "memory_format":
		return ir.MemoryFormat("contiguous_format"), true
	case "non_blocking", "implicit":
		return ir.Bool(false), true
	case "dim":
		x := n.In(0)
		if a.Kind() == ir.ArgList && len(a.List()) > 0 && slices.Contains(k.Faults, ops.FaultRank0) && x.Type.Rank() == 0 {
			return ir.List(), true
		}
		if !slices.Contains(k.Faults, ops.FaultNegativeDim) {
			return a, false
		}
		if k, ok := a.Int(); ok && k < 0 && x != nil && x.Type.IsTensor() && x.Type.Rank() > 0 {
			return ir.Int(k + int64(x.Type.Rank())), true
		}
	}
	return a, false
}
