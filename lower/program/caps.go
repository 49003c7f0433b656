package program

import (
	"fmt"
	"math"
	"strings"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/partition"
)

// Caps is what the stock runtime does without a delegate: its kernels, its operators on scalars, and what costs nothing
// because two tensors can share memory.
type Caps struct{}

var _ partition.Caps = Caps{}

// planKind tells the ways to lower a node.
type planKind uint8

const (
	planKernel  planKind = iota // a call of a kernel
	planReshape                 // the same bytes under another shape
	planPart                    // a run of the bytes, where they lie together; a copy by the kernel otherwise
	planScalar                  // an operator on scalars
	planItem                    // a tensor's only element
	planNothing                 // nothing at run time: the result is an expression or the argument itself
	planCond
	planWhile
	planScan
	planMap
	planDelegate
)

// plan is the way to lower one node.
type plan struct {
	kind   planKind
	kernel *ops.KernelInfo
	args   []feed // of the kernel, in order
	prim   string // the operator on scalars
}

// feed tells what one argument of a kernel is given.
type feed struct {
	kind feedKind
	arg  int // place among the node's arguments
	val  ir.Arg
}

type feedKind uint8

const (
	feedArg      feedKind = iota // the node's argument
	feedConst                    // val
	feedOut                      // the next result
	feedOuts                     // all results as one list
	feedDimOrder                 // the dim order of the first result
	feedWrap                     // the node's argument, a scalar, as a tensor without dimensions of type val
)

// Match gives the way to lower n.
func (Caps) Match(n *ir.Node) (partition.Plan, *ir.Diag) {
	p, d := match(n)
	if d != nil {
		return nil, d
	}
	return p, nil
}

// unknownOp refuses an operator that has no row, with the names that come nearest.
func unknownOp(n *ir.Node) *ir.Diag {
	msg := "the operator is not in the table"
	if near := ops.Nearest(n.OpName(), 3); len(near) > 0 {
		msg += "; nearest are " + strings.Join(near, ", ")
	}
	return n.Diag("unknown-op", msg, "rewrite the model without it, or add a row to ops/table")
}

func match(n *ir.Node) (*plan, *ir.Diag) {
	if p, d, ok := matchSpecial(n); ok {
		return p, d
	}
	for _, o := range n.Outs {
		if d := checkResult(n, o); d != nil {
			return nil, d
		}
	}
	if n.Op == ops.Unknown {
		return nil, unknownOp(n)
	}
	name := n.Info().Kernel
	if name == "" {
		return nil, n.Diag("no-kernel", "the runtime has no kernel for it", tryAnother)
	}
	k := ops.LookupKernel(name)
	if k == nil {
		return nil, n.Diag("no-kernel", fmt.Sprintf("the runtime has no kernel %s", name), tryAnother)
	}
	return matchKernel(n, k)
}

// tryAnother is for operators that neither kernels nor decompositions serve.
const tryAnother = "write the line with other operators (lathe ops lists them), or give it a decomposition (docs/add-an-op.md)"

// checkResult refuses results that the runtime cannot hold.
func checkResult(n *ir.Node, o *ir.Value) *ir.Diag {
	if !o.Type.IsTensor() {
		return nil
	}
	if _, ok := scalarTypes[o.Type.DType]; !ok {
		return n.Diag("dtype", fmt.Sprintf("the runtime has no tensors of %s", o.Type.DType), "")
	}
	if o.Type.Rank() > maxRank {
		return n.Diag("rank", fmt.Sprintf("a tensor of %d dimensions: the runtime's kernels take up to %d", o.Type.Rank(), maxRank), "")
	}
	return nil
}

// maxRank is the number of dimensions that the runtime's kernels reserve room for.
const maxRank = 16

// matchKernel tells how to feed kernel k from n's arguments.
func matchKernel(n *ir.Node, k *ops.KernelInfo) (*plan, *ir.Diag) {
	no := func(format string, args ...any) (*plan, *ir.Diag) {
		return nil, n.Diag("kernel-limit", fmt.Sprintf("kernel %s: ", k.Name)+fmt.Sprintf(format, args...), "")
	}
	s := &n.Info().Schema
	p := &plan{kind: planKernel, kernel: k, args: make([]feed, 0, len(k.Schema.Args))}
	used := make([]bool, n.NumArgs())
	outs := 0
	firstTensor := ops.DTypeNone
	for i := range k.Schema.Args {
		ka := &k.Schema.Args[i]
		if ka.Write && n.Info().ArgIndex(ka.Name) < 0 {
			if ka.List {
				p.args = append(p.args, feed{kind: feedOuts})
				outs = len(n.Outs)
				continue
			}
			p.args = append(p.args, feed{kind: feedOut})
			outs++
			continue
		}
		j := n.Info().ArgIndex(ka.Name)
		if j < 0 {
			switch {
			case ka.Name == "dim_order":
				p.args = append(p.args, feed{kind: feedDimOrder})
			case ka.HasDefault || ka.Opt:
				p.args = append(p.args, feed{kind: feedConst, val: op.ParseDefault(ka)})
			default:
				return no("it needs an argument %s, which the operator has not", ka.Name)
			}
			continue
		}
		used[j] = true
		a := n.Arg(j)
		if a.IsNone() && !ka.Opt {
			if !ka.HasDefault {
				return no("argument %s may not be None", ka.Name)
			}
			p.args = append(p.args, feed{kind: feedConst, val: op.ParseDefault(ka)})
			continue
		}
		f := feed{kind: feedArg, arg: j}
		if v, ok := harmless(n, k, ka, a); ok && !a.IsNone() {
			p.args = append(p.args, feed{kind: feedConst, val: v})
			continue
		}
		if v := a.Value(); ka.Type == ops.TTensor && !ka.List && !a.IsNone() && (v == nil || !v.Type.IsTensor()) {
			d, ok := wrapDType(n, a)
			if !ok {
				return no("argument %s is no tensor", ka.Name)
			}
			f = feed{kind: feedWrap, arg: j, val: ir.DTypeArg(d)}
		} else if why := checkArg(ka, a); why != "" {
			return no("argument %s %s", ka.Name, why)
		}
		if ka.Type == ops.TTensor && firstTensor == ops.DTypeNone {
			for _, v := range a.Values() {
				if v != nil {
					firstTensor = v.Type.DType
					break
				}
			}
		}
		p.args = append(p.args, f)
	}
	if outs != len(n.Outs) {
		return no("it gives %d results, the operator %d", outs, len(n.Outs))
	}
	for j, u := range used {
		if u {
			continue
		}
		if why := ignorable(&s.Args[j], n, j); why != "" {
			return no("argument %s %s", s.Args[j].Name, why)
		}
	}
	if firstTensor != ops.DTypeNone && !k.DTypes.Has(firstTensor) {
		return no("it does not take %s", firstTensor)
	}
	if o := n.Out(); o != nil && o.Type.IsTensor() && !k.Out.Has(o.Type.DType) {
		return no("it does not give %s", o.Type.DType)
	}
	for _, f := range k.Faults {
		check, ok := faults[f]
		if !ok {
			return no("condition %q is not known", f)
		}
		if why := check(n); why != "" {
			return no("%s", why)
		}
	}
	return p, nil
}

// wrapDType is the element type of the tensor that stands for the scalar a among n's tensor operands. The scalar must not
// widen the operation as a tensor where torch's promotion of plain numbers would not.
func wrapDType(n *ir.Node, a ir.Arg) (ops.DType, bool) {
	var t ops.DType
	for v := range n.Inputs() {
		if v.Type.IsTensor() {
			t = v.Type.DType
			break
		}
	}
	if t == ops.DTypeNone {
		return t, false
	}
	switch a.Kind() {
	case ir.ArgBool:
		return ops.Bool, true
	case ir.ArgInt:
		if t == ops.Bool {
			return ops.Int64, true
		}
		if k, ok := a.Int(); ok && t.IsInt() && !fitsInt(t, k) {
			return ops.Int64, true
		}
		return t, true
	case ir.ArgFloat:
		if t.IsFloat() {
			return t, true
		}
		return ops.Float32, true
	case ir.ArgValue:
		// A number that is computed: the kernel that makes a tensor of it converts.
		switch k := a.Value().Type.Kind; {
		case k == ir.KindBool:
			return ops.Bool, true
		case k == ir.KindInt && t != ops.Bool, k == ir.KindFloat && t.IsFloat():
			return t, true
		case k == ir.KindInt:
			return ops.Int64, true
		case k == ir.KindFloat:
			return ops.Float32, true
		}
	}
	return t, false
}

func fitsInt(d ops.DType, k int64) bool {
	bits := d.Size() * 8
	if !d.IsSigned() {
		return k >= 0 && (bits == 64 || k < 1<<bits)
	}
	return bits == 64 || k >= -(1<<(bits-1)) && k < 1<<(bits-1)
}

// ignorable tells why the operator's argument j, which the kernel does not have, cannot be left out; "" where it can.
func ignorable(a *ops.Arg, n *ir.Node, j int) string {
	v := n.Arg(j)
	if v.IsNone() {
		return ""
	}
	switch a.Name {
	case "dtype", "device", "memory_format", "non_blocking", "copy", "implicit":
		// The result's type says the dtype; there is one device and values have no layout of their own.
		return ""
	case "layout":
		if s, ok := v.Str(); ok && s == "strided" {
			return ""
		}
	case "pin_memory":
		if b, ok := v.Bool(); ok && !b {
			return ""
		}
	}
	if op.IsDefault(n.Op, j, n.Arg(j)) {
		return ""
	}
	return "is not an argument of it"
}

// checkArg tells why a cannot be given to the kernel's argument, "" where it can.
func checkArg(ka *ops.Arg, a ir.Arg) string {
	if a.IsNone() {
		return ""
	}
	if ka.List {
		if a.Kind() != ir.ArgList {
			if ka.Size > 0 {
				return checkElem(ka.Type, a)
			}
			return "is no list"
		}
		for _, e := range a.List() {
			if e.IsNone() {
				if ka.ElemOpt {
					continue
				}
				return "holds None"
			}
			if why := checkElem(ka.Type, e); why != "" {
				return why
			}
			if ka.Type == ops.TFloat || ka.Type == ops.TBool {
				// Lists of these are part of the file and cannot hold what is computed.
				if e.Value() != nil {
					return "holds a computed number"
				}
			}
		}
		return ""
	}
	return checkElem(ka.Type, a)
}

func checkElem(t ops.ArgType, a ir.Arg) string {
	v := a.Value()
	kind := func(ks ...ir.Kind) bool {
		for _, k := range ks {
			if v != nil && v.Type.Kind == k {
				return true
			}
		}
		return false
	}
	ok := false
	switch t {
	case ops.TTensor:
		ok = kind(ir.KindTensor)
	case ops.TInt:
		_, isInt := a.Expr()
		ok = isInt || kind(ir.KindInt)
	case ops.TFloat:
		_, isInt := a.Expr()
		ok = a.Kind() == ir.ArgFloat || isInt || kind(ir.KindFloat)
	case ops.TBool:
		_, isInt := a.Int()
		ok = a.Kind() == ir.ArgBool || isInt || kind(ir.KindBool)
	case ops.TScalar:
		_, isInt := a.Expr()
		ok = a.Kind() == ir.ArgFloat || isInt || kind(ir.KindInt, ir.KindFloat, ir.KindBool)
	case ops.TStr:
		ok = a.Kind() == ir.ArgStr
	case ops.TDType:
		d, isDType := a.DType()
		_, held := scalarTypes[d]
		ok = isDType && held
	case ops.TMemoryFormat:
		s, _ := a.Str()
		_, ok = memoryFormats[s]
	case ops.TLayout:
		s, _ := a.Str()
		_, ok = layouts[s]
	case ops.TDevice:
		ok = a.Kind() == ir.ArgDevice
	}
	if !ok {
		return "has a value that it does not take"
	}
	return ""
}

// upperLimit is the largest number of elements or size that the runtime's 32-bit sizes hold.
const upperLimit = math.MaxInt32
