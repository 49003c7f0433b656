package mlx

import (
	"math"

	"github.com/lathe-ml/lathe/codegen/fb/mlx"
	"github.com/lathe-ml/lathe/codegen/msl"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// custom is the rule of a kernel that an engineer wrote.
func custom(k *msl.Manifest) rule {
	return func(m *match) emit {
		var ins []*ir.Value
		for _, p := range k.Inputs {
			v := m.n.ArgNamed(argOf(p)).Value()
			if v == nil || !v.Type.IsTensor() {
				return m.no("kernel %s: argument %s is no tensor", k.Name, argOf(p))
			}
			if !typed(p, v.Type.DType) {
				return m.no("kernel %s is not written for %s of %s", k.Name, p.Name, v.Type.DType)
			}
			ins = append(ins, v)
		}
		if len(k.Outputs) != len(m.n.Outs) {
			return m.no("kernel %s gives %d results, the operator %d", k.Name, len(k.Outputs), len(m.n.Outs))
		}
		for i, o := range m.n.Outs {
			if !o.Type.IsTensor() || !typed(k.Outputs[i], o.Type.DType) {
				return m.no("kernel %s is not written for a result of %s", k.Name, o.Type)
			}
		}
		settings := make([]int32, len(k.Settings))
		kinds := make([]int8, len(k.Settings))
		for i, p := range k.Settings {
			a := m.n.ArgNamed(argOf(p))
			if d, ok := a.DType(); ok && scalarType(d) >= 0 {
				settings[i], kinds[i] = int32(scalarType(d)), 2
				continue
			}
			v, ok := a.Int()
			if !ok || v != int64(int32(v)) {
				return m.no("kernel %s: setting %s is no constant integer, bool or element type", k.Name, argOf(p))
			}
			settings[i] = int32(v)
			if a.Kind() == ir.ArgBool {
				kinds[i] = 1
			}
		}
		outs := m.n.Outs
		threads := outs[0].Type.Numel()
		if k.Threads == "row" {
			if outs[0].Type.Rank() == 0 {
				return m.no("kernel %s: a result without rows", k.Name)
			}
			threads = sym.Prod(outs[0].Type.Shape[:outs[0].Type.Rank()-1]...)
		}
		if why := expressible(threads); why != "" {
			return m.no("kernel %s: %s", k.Name, why)
		}
		return func(b *builder) {
			n := metalKernel("lathe_"+k.Name, k.Source, b.int(threads), int64(k.Group))
			n.Header = k.Header
			for i, p := range k.Inputs {
				n.Inputs, n.InputNames = append(n.Inputs, b.in(ins[i])), append(n.InputNames, p.Name)
			}
			for i, p := range k.Settings {
				n.TemplateArgNames = append(n.TemplateArgNames, p.Name)
				n.TemplateArgKinds, n.TemplateArgValues = append(n.TemplateArgKinds, kinds[i]), append(n.TemplateArgValues, settings[i])
			}
			for i, p := range k.Outputs {
				b.kernelOut(n, p.Name, b.out(i), outs[i].Type)
			}
			b.emit(n)
		}
	}
}

func argOf(p msl.Param) string {
	if p.Arg != "" {
		return p.Arg
	}
	return p.Name
}

func typed(p msl.Param, d ops.DType) bool {
	for _, t := range p.Types {
		if t == d.Torch() {
			return true
		}
	}
	return len(p.Types) == 0
}

func metalKernel(name, source string, threads *mlx.IntOrVid, group int64) *mlx.MetalKernelNode {
	n := mlx.NewMetalKernelNode()
	n.Name, n.Source = name, source
	n.Grid = []*mlx.IntOrVid{threads, lit(1), lit(1)}
	n.Threadgroup = []*mlx.IntOrVid{lit(group), lit(1), lit(1)}
	return n
}

func (b *builder) kernelOut(n *mlx.MetalKernelNode, name string, t mlx.Tid, typ ir.Type) {
	n.Outputs, n.OutputNames = append(n.Outputs, t), append(n.OutputNames, name)
	n.OutputShapesFlat = append(n.OutputShapesFlat, b.ints(typ.Shape)...)
	n.OutputShapeLengths = append(n.OutputShapeLengths, int32(typ.Rank()))
	n.OutputDtypes = append(n.OutputDtypes, scalarType(typ.DType))
}

// chainOps are the element-wise operators that a chain may hold.
var chainOps = map[ops.ID]msl.Op{
	ops.AtenAddTensor: "add", ops.AtenAddScalar: "add", ops.AtenSubTensor: "sub", ops.AtenSubScalar: "sub", ops.AtenMulTensor: "mul",
	ops.AtenMulScalar: "mul", ops.AtenDivTensor: "div", ops.AtenDivScalar: "div", ops.AtenNegDefault: "neg",
	ops.AtenMaximumDefault: "max", ops.AtenMinimumDefault: "min", ops.AtenExpDefault: "exp", ops.AtenLogDefault: "log",
	ops.AtenSqrtDefault: "sqrt", ops.AtenRsqrtDefault: "rsqrt", ops.AtenSinDefault: "sin", ops.AtenCosDefault: "cos",
	ops.AtenTanhDefault: "tanh", ops.AtenSigmoidDefault: "sigmoid", ops.AtenSiluDefault: "silu", ops.AtenReluDefault: "relu",
	ops.AtenAbsDefault: "abs", ops.AtenFloorDefault: "floor", ops.AtenCeilDefault: "ceil", ops.AtenTruncDefault: "trunc",
	ops.AtenReciprocalDefault: "reciprocal", ops.AtenSquareDefault: "square", ops.AtenWhereSelf: "where",
	ops.AtenLtTensor: "lt", ops.AtenLtScalar: "lt", ops.AtenLeTensor: "le", ops.AtenLeScalar: "le", ops.AtenGtTensor: "gt",
	ops.AtenGtScalar: "gt", ops.AtenGeTensor: "ge", ops.AtenGeScalar: "ge", ops.AtenEqTensor: "eq", ops.AtenEqScalar: "eq",
	ops.AtenNeTensor: "ne", ops.AtenNeScalar: "ne", ops.AtenLogicalAndDefault: "and", ops.AtenLogicalOrDefault: "or",
	ops.AtenLogicalNotDefault: "not", ops.AtenToDtype: "cast", ops.AtenUnderToCopyDefault: "cast",
}

var mslTypes = map[ops.DType]msl.Type{
	ops.Bool: msl.Bool, ops.Uint8: msl.Uint8, ops.Int8: msl.Int8, ops.Int16: msl.Int16, ops.Int32: msl.Int32, ops.Uint32: msl.Uint32,
	ops.Int64: msl.Int64, ops.Float16: msl.Float16, ops.BFloat16: msl.BFloat16, ops.Float32: msl.Float32,
}

// maxChainInputs is the number of tensors that one kernel reads.
const maxChainInputs = 16

// spreads tells whether a tensor of one shape is spread over another by repeating dimensions of size one alone, and not by
// chance at some sizes.
func spreads(from, to []sym.Expr) bool {
	if len(from) > len(to) {
		return false
	}
	for i, e := range from {
		if !e.IsConstValue(1) && !e.Equal(to[len(to)-len(from)+i]) {
			return false
		}
	}
	return true
}

// links tells whether n may stand in a chain: it works on elements and, beside conversions, of one type.
func links(n *ir.Node) bool {
	op, ok := chainOps[n.Op]
	if !ok || len(n.Outs) != 1 || n.Out().Type.Rank() == 0 {
		return false
	}
	if f, ok := n.ArgNamed("alpha").Float(); !n.ArgNamed("alpha").IsNone() && (!ok || f != 1) {
		return false
	}
	for _, e := range n.Out().Type.Shape {
		if n.Graph().Root().Syms.Range(e).Min < 1 { // a grid without threads
			return false
		}
	}
	var d ops.DType
	for i, a := range n.Args() {
		v := a.Value()
		if v == nil {
			if i > 1 || i > 0 && op == "cast" {
				continue
			}
			if f, ok := a.Float(); !ok || d.IsInt() && f != math.Trunc(f) {
				return false
			}
			continue
		}
		if !v.Type.IsTensor() || !spreads(v.Type.Shape, n.Out().Type.Shape) {
			return false
		}
		if op == "where" && i == 0 || op == "cast" {
			continue
		}
		if d == ops.DTypeNone {
			d = v.Type.DType
		}
		if v.Type.DType != d {
			return false
		}
	}
	switch op {
	case "cast":
		// A float that is no integer's is undefined in Metal.
		return n.In(0).Type.DType.IsFloat() && n.Out().Type.DType.IsFloat()
	case "lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not":
		return true
	}
	return d != ops.Bool && n.Out().Type.DType == d && (d.IsFloat() || op == "add" || op == "sub" || op == "mul" || op == "where")
}

// chainsIn finds the chains of g: the nodes of each, in order, by the last one, whose result is all that leaves it.
func chainsIn(g *ir.Graph) map[*ir.Node][]*ir.Node {
	taken := map[*ir.Node]bool{}
	out := map[*ir.Node][]*ir.Node{}
	for root := range g.Backward() {
		if taken[root] || !links(root) {
			continue
		}
		in := map[*ir.Node]bool{root: true}
		for grown := true; grown; {
			grown = false
			for n := range in {
				for v := range n.Inputs() {
					d := v.Def
					if d == nil || in[d] || taken[d] || d.Graph() != g || !links(d) || !ir.EqualShape(v.Type.Shape, root.Out().Type.Shape) {
						continue
					}
					inside := true
					for _, u := range v.Users() {
						inside = inside && in[u]
					}
					if inside {
						in[d], grown = true, true
					}
				}
			}
		}
		if len(in) < 2 {
			continue
		}
		var nodes []*ir.Node
		reads := map[*ir.Value]bool{}
		for n := range g.Nodes() {
			if !in[n] {
				continue
			}
			nodes = append(nodes, n)
			for v := range n.Inputs() {
				if v.Def == nil || !in[v.Def] {
					reads[v] = true
				}
			}
		}
		if len(reads) == 0 || len(reads) > maxChainInputs {
			continue
		}
		for n := range in {
			taken[n] = true
		}
		out[root] = nodes
	}
	return out
}

// spread gives the dimensions of a shape by those of the one that it is spread over, nil where they are the same.
func spread(from, to []sym.Expr) []int {
	if ir.EqualShape(from, to) {
		return nil
	}
	dims := make([]int, 0, len(to))
	if len(from) == 0 {
		return dims
	}
	for d := range to {
		at := d - (len(to) - len(from))
		if at < 0 || from[at].IsConstValue(1) {
			at = -1
		}
		dims = append(dims, at)
	}
	return dims
}

// chainKernel writes nodes as one kernel.
func (b *builder) chainKernel(nodes []*ir.Node) {
	last := nodes[len(nodes)-1].Out()
	c := &msl.Chain{}
	at := map[*ir.Value]int{}
	var reads []*ir.Value
	inside := map[*ir.Node]bool{}
	for _, n := range nodes {
		inside[n] = true
	}
	for _, n := range nodes {
		for v := range n.Inputs() {
			if _, have := at[v]; !have && (v.Def == nil || !inside[v.Def]) {
				at[v] = len(reads)
				reads = append(reads, v)
				c.Inputs = append(c.Inputs, msl.Input{Type: mslTypes[v.Type.DType], Dims: spread(v.Type.Shape, last.Type.Shape)})
			}
		}
	}
	for d, e := range last.Type.Shape {
		size := msl.Size{}
		if k, ok := e.IsConst(); ok {
			size.Const = k
		} else {
			for i, v := range reads {
				if at := d - (last.Type.Rank() - v.Type.Rank()); at >= 0 && v.Type.Shape[at].Equal(e) {
					size.Input, size.Dim = i, at
				}
			}
		}
		c.Shape = append(c.Shape, size)
	}
	add := func(s msl.Step) int {
		c.Steps = append(c.Steps, s)
		return len(reads) + len(c.Steps) - 1
	}
	for _, n := range nodes {
		op := chainOps[n.Op]
		d := n.In(0).Type.DType
		s := msl.Step{Op: op, Type: mslTypes[n.Out().Type.DType]}
		for i, a := range n.Args() {
			if v := a.Value(); v != nil {
				s.Args = append(s.Args, at[v])
				continue
			}
			if i > 1 || op == "cast" {
				break
			}
			f, ok := a.Float()
			if !ok {
				break
			}
			t := mslTypes[d]
			if d.IsFloat() {
				t = msl.Float32 // a number is not rounded to the tensor's type
			}
			s.Args = append(s.Args, add(msl.Step{Op: "const", Const: f, Type: t}))
		}
		at[n.Out()] = add(s)
	}
	k, err := c.Kernel()
	if err != nil {
		b.failf("%v", err)
		return
	}
	node := metalKernel(k.Name, k.Source, b.int(last.Type.Numel()), 256)
	node.InputNames = k.Inputs
	for _, v := range reads {
		node.Inputs = append(node.Inputs, b.in(v))
	}
	b.kernelOut(node, k.Outputs[0], b.out(0), last.Type)
	b.emit(node)
}
