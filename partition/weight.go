package partition

import (
	"fmt"

	"github.com/lathe-ml/lathe/ir"
)

// Weight gives the parameter, buffer or constant that v is, also where v is what a conditional or a loop hands unchanged
// to a graph inside; nil for other values and for what the program writes to.
func Weight(v *ir.Value) *ir.Input {
	in := v.Input
	for in != nil && in.Kind == ir.InputOperand {
		g := in.Value.Graph()
		n := g.Parent
		if n == nil {
			return nil
		}
		i := in.Value.Index
		var operands []ir.Arg
		switch n.OpName() {
		case "higher_order.cond.default":
			operands = n.ArgNamed("operands").List()
		case "higher_order.while_loop.default":
			carried := len(n.ArgNamed("carried_inputs").List())
			if i < carried {
				return nil
			}
			i, operands = i-carried, n.ArgNamed("additional_inputs").List()
		case "higher_order.scan.default":
			moving := len(n.ArgNamed("init").List()) + len(n.ArgNamed("xs").List())
			if i < moving {
				return nil
			}
			i, operands = i-moving, n.ArgNamed("additional_inputs").List()
		case "higher_order.map_impl.default":
			moving := len(n.ArgNamed("xs").List())
			if i < moving {
				return nil
			}
			i, operands = i-moving, n.ArgNamed("pos_args").List()
		}
		if i >= len(operands) || operands[i].Value() == nil {
			return nil
		}
		in = operands[i].Value().Input
	}
	if in == nil || in.Kind == ir.InputUser || in.Data == nil {
		return nil
	}
	g := in.Value.Graph()
	for i, o := range g.Outputs {
		if o.Target == in && g.Ret().In(i) != in.Value {
			return nil
		}
	}
	return in
}

// WeightKey names the contents of a weight: the place in the archive where that is known, so that weights which share it are
// one. The method's name keeps apart methods of several archives, whose weights may lie at the same places; where two methods
// do share a weight, the writer of the file finds equal bytes and stores them once.
func WeightKey(in *ir.Input) string {
	d, method := in.Data, in.Value.Graph().Root().Method
	if fs, ok := d.Storage.(ir.FileStorage); ok {
		_, off := fs.FileRange()
		return fmt.Sprintf("%s@%d.%d.%d.%v.%v.%s", method, off, fs.Size(), d.Offset, d.Sizes, d.Strides, d.DType)
	}
	return method + "=" + in.Target
}
