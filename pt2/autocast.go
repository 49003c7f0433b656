package pt2

import (
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/pt2/schema"
)

// autocastOf reads what a wrap_with_autocast node sets for the graph within: the element type of the operators that
// autocast runs in less precision, DTypeNone where it is off. The arguments are device type, element type, enabled, ….
func autocastOf(ins []schema.NamedArgument) ops.DType {
	if len(ins) < 3 || !ins[2].Arg.AsBool() {
		return ops.DTypeNone
	}
	if ins[1].Arg.Arm == schema.ArgumentAsScalarType {
		return dtypeOf(ins[1].Arg.AsScalarType())
	}
	if ins[0].Arg.AsString() == "cpu" {
		return ops.BFloat16
	}
	return ops.Float16
}

// autocast makes the casts explicit that torch does while it runs a node within autocast. Which they are tell the types
// in the archive: operands go to autocast's type or to float32, whichever gives the results that the archive has.
func (s *scope) autocastArgs(id ops.ID, args []ir.Arg, types []ir.Type, names []string, origin *ir.Origin) ([]ir.Arg, bool) {
	for _, to := range []ops.DType{s.autocast, ops.Float32} {
		var made []*ir.Node
		cast := func(v *ir.Value) *ir.Value {
			if !v.Type.IsTensor() {
				return v
			}
			switch v.Type.DType {
			case to:
				return v
			case ops.Float32, ops.Float16, ops.BFloat16:
			default:
				return v
			}
			a := op.Defaults(ops.AtenToDtype)
			a[0], a[1] = ir.Ref(v), ir.DTypeArg(to)
			t := v.Type
			t.DType = to
			n := s.g.NewNode(s.g.Ret(), ops.AtenToDtype, a, []ir.Type{t}, origin.Derive("import#autocast"))
			made = append(made, n)
			return n.Out()
		}
		out := make([]ir.Arg, len(args))
		for i, a := range args {
			out[i] = a.Map(cast)
		}
		if len(made) > 0 && s.compare(id, out, types, names) == nil {
			return out, true
		}
		for _, n := range made {
			s.g.Erase(n)
		}
	}
	return nil, false
}
