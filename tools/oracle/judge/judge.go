// Package judge runs exported programs in the reference interpreter: as they are, and after a pipeline of passes, and
// compares both with what PyTorch gave.
package judge

import (
	"context"
	"fmt"

	"github.com/lathe-ml/lathe/internal/etrt"
	"github.com/lathe-ml/lathe/interp"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/tools/oracle/cases"
)

var dtypes = map[etrt.DType]ops.DType{
	etrt.U8: ops.Uint8, etrt.I8: ops.Int8, etrt.I16: ops.Int16, etrt.I32: ops.Int32, etrt.I64: ops.Int64, etrt.F16: ops.Float16,
	etrt.F32: ops.Float32, etrt.F64: ops.Float64, etrt.ComplexHalf: ops.ComplexHalf, etrt.Complex64: ops.Complex64,
	etrt.Complex128: ops.Complex128, etrt.Bool: ops.Bool, etrt.BF16: ops.BFloat16, etrt.F8E5M2: ops.Float8E5M2,
	etrt.F8E4M3: ops.Float8E4M3FN, etrt.U16: ops.Uint16, etrt.U32: ops.Uint32, etrt.U64: ops.Uint64,
}

// program is an interpreter session behind the interface of a loaded program.
type program struct{ s *interp.Session }

// Run calls the graph.
func (p program) Run(_ string, inputs []etrt.Value) ([]etrt.Value, error) {
	in := make([]interp.Value, len(inputs))
	for i, v := range inputs {
		switch v.Kind {
		case etrt.KindTensor:
			x, err := toInterp(v.Tensor)
			if err != nil {
				return nil, fmt.Errorf("input %d: %w", i, err)
			}
			in[i] = x
		case etrt.KindInt:
			in[i] = v.Int
		case etrt.KindFloat:
			in[i] = v.Float
		case etrt.KindBool:
			in[i] = v.Bool
		case etrt.KindString:
			in[i] = v.Str
		case etrt.KindNone:
		default:
			return nil, fmt.Errorf("input %d is a %s", i, v.Kind)
		}
	}
	out, err := p.s.Run(context.Background(), in)
	if err != nil {
		return nil, err
	}
	res := make([]etrt.Value, len(out))
	for i, v := range out {
		switch x := v.(type) {
		case *interp.Tensor:
			res[i] = etrt.TensorValue(fromInterp(x))
		case int64:
			res[i] = etrt.IntValue(x)
		case float64:
			res[i] = etrt.FloatValue(x)
		case bool:
			res[i] = etrt.BoolValue(x)
		case string:
			res[i] = etrt.StringValue(x)
		case nil:
		default:
			return nil, fmt.Errorf("output %d is a %T", i, v)
		}
	}
	return res, nil
}

// Close does nothing.
func (program) Close() {}

func toInterp(t *etrt.Tensor) (*interp.Tensor, error) {
	d, ok := dtypes[t.DType]
	if !ok {
		return nil, fmt.Errorf("element type %s", t.DType)
	}
	if t.Strides == nil {
		return interp.FromBytes(d, t.Shape, t.Data)
	}
	return interp.NewView(d, t.Shape, t.Strides, 0, interp.NewStorage(t.Data))
}

func fromInterp(t *interp.Tensor) *etrt.Tensor {
	x := &etrt.Tensor{Shape: append([]int64{}, t.Sizes...), Data: append([]byte{}, t.Bytes()...)}
	for e, d := range dtypes {
		if d == t.DType {
			x.DType = e
		}
	}
	return x
}

// Check interprets g on the calls of a case and compares.
func Check(c *cases.Case, g *ir.Graph) error {
	return c.CheckWith(func() (cases.Program, error) {
		s, err := interp.New(g, interp.Options{})
		if err != nil {
			return nil, err
		}
		return program{s}, nil
	})
}
