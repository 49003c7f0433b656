package ir

import (
	"bytes"
	"fmt"
	"slices"
)

// maxCompare is the number of elements up to which Equal compares contents of constants.
const maxCompare = 64

// Equal tells whether two root graphs are the same but for the names of values: inputs, symbols, nodes, types, origins,
// outputs, nested graphs.
func Equal(a, b *Graph) bool { return Diff(a, b) == "" }

// Diff names the first difference between two root graphs that Equal sees, empty without one.
func Diff(a, b *Graph) string {
	if !slices.Equal(a.Syms.All(), b.Syms.All()) {
		return fmt.Sprintf("symbols: %v and %v", a.Syms.All(), b.Syms.All())
	}
	if a.InSpec != b.InSpec || a.OutSpec != b.OutSpec || a.Entry != b.Entry || !slices.Equal(a.InputNames, b.InputNames) {
		return "specs, entry or input names"
	}
	return diffGraph(a, b)
}

func diffGraph(a, b *Graph) string {
	where := "graph @" + a.Name + ": "
	if a.Name != b.Name || a.Parent == nil && a.Stage != b.Stage {
		return fmt.Sprintf("%sname or stage: @%s %s and @%s %s", where, a.Name, a.Stage, b.Name, b.Stage)
	}
	if len(a.Inputs) != len(b.Inputs) || len(a.Outputs) != len(b.Outputs) || a.numNodes != b.numNodes {
		return fmt.Sprintf("%s%d inputs, %d nodes, %d outputs and %d, %d, %d", where,
			len(a.Inputs), a.numNodes, len(a.Outputs), len(b.Inputs), b.numNodes, len(b.Outputs))
	}
	twin := make(map[*Value]*Value, len(a.Inputs)+a.numNodes)
	for i, in := range a.Inputs {
		other := b.Inputs[i]
		twin[in.Value] = other.Value
		if d := diffInput(in, other); d != "" {
			return fmt.Sprintf("%sinput %d: %s", where, i, d)
		}
	}
	n, m := a.head, b.head
	for i := 0; !n.isRet; i, n, m = i+1, n.next, m.next {
		if d := diffNode(n, m, twin); d != "" {
			return fmt.Sprintf("%snode %d: %s", where, i, d)
		}
	}
	for i, o := range a.Outputs {
		p := b.Outputs[i]
		if o.Kind != p.Kind || (o.Target == nil) != (p.Target == nil) || o.Target != nil && twin[o.Target.Value] != p.Target.Value {
			return fmt.Sprintf("%soutput %d: kind or target", where, i)
		}
	}
	return diffArgs(a.ret.args, b.ret.args, twin)
}

func diffInput(a, b *Input) string {
	switch {
	case a.Kind != b.Kind || a.Target != b.Target || a.Kind == InputBuffer && a.Persistent != b.Persistent:
		return fmt.Sprintf("%s %q and %s %q", a.Kind, a.Target, b.Kind, b.Target)
	case a.HasFixed != b.HasFixed || !a.Fixed.Equal(b.Fixed):
		return "fixed value"
	case a.Data != nil && b.Data != nil && a.Data.Numel() <= maxCompare:
		x, errX := a.Data.Compact()
		y, errY := b.Data.Compact()
		if a.Data.DType != b.Data.DType || !slices.Equal(a.Data.Sizes, b.Data.Sizes) || errX != nil || errY != nil || !bytes.Equal(x, y) {
			return "contents"
		}
	}
	return diffType(a.Value.Type, b.Value.Type)
}

func diffType(a, b Type) string {
	same := a.Equal(b) && (a.Quant == nil) == (b.Quant == nil)
	if same && a.Quant != nil {
		p, q := *a.Quant, *b.Quant
		same = p.Scheme == q.Scheme && slices.Equal(p.Block, q.Block) && p.QMin == q.QMin && p.QMax == q.QMax && p.Real == q.Real
	}
	if same {
		return ""
	}
	return fmt.Sprintf("type %s and %s", a, b)
}

func diffNode(a, b *Node, twin map[*Value]*Value) string {
	if a.Op != b.Op || a.Target != b.Target || len(a.Outs) != len(b.Outs) {
		return fmt.Sprintf("%s with %d results and %s with %d", a.OpName(), len(a.Outs), b.OpName(), len(b.Outs))
	}
	for i := range max(len(a.ArgNames), len(b.ArgNames)) {
		if i < len(a.ArgNames) && i < len(b.ArgNames) && a.ArgNames[i] == b.ArgNames[i] {
			continue
		}
		if i < len(a.ArgNames) && a.ArgNames[i] != "" || i < len(b.ArgNames) && b.ArgNames[i] != "" {
			return a.OpName() + ": names of arguments"
		}
	}
	if d := diffArgs(a.args, b.args, twin); d != "" {
		return a.OpName() + ": " + d
	}
	for i, o := range a.Outs {
		twin[o] = b.Outs[i]
		if d := diffType(o.Type, b.Outs[i].Type); d != "" {
			return fmt.Sprintf("%s: result %d: %s", a.OpName(), i, d)
		}
	}
	x, y := a.Origin, b.Origin
	if (x == nil) != (y == nil) || x != nil &&
		(!slices.Equal(x.Frames, y.Frames) || x.Module != y.Module || x.Class != y.Class || x.Name != y.Name || !slices.Equal(x.Chain(), y.Chain())) {
		return fmt.Sprintf("%s: origin %q and %q", a.OpName(), x, y)
	}
	return ""
}

func diffArgs(a, b []Arg, twin map[*Value]*Value) string {
	if len(a) != len(b) {
		return fmt.Sprintf("%d and %d arguments", len(a), len(b))
	}
	for i := range a {
		if d := diffArg(a[i], b[i], twin); d != "" {
			return fmt.Sprintf("argument %d: %s", i, d)
		}
	}
	return ""
}

func diffArg(a, b Arg, twin map[*Value]*Value) string {
	if a.kind != b.kind {
		return "kind"
	}
	switch a.kind {
	case ArgValue:
		if twin[a.v] != b.v {
			return "another value"
		}
	case ArgList:
		return diffArgs(a.more().list, b.more().list, twin)
	case ArgGraph:
		return diffGraph(a.more().g, b.more().g)
	default:
		if !a.Equal(b) {
			return "another constant"
		}
	}
	return ""
}
