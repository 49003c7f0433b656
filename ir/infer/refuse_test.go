package infer_test

import (
	"strings"
	"testing"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/infer"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ops"
)

func val(d ops.DType, sizes ...int64) ir.Arg {
	return ir.RefAny(&ir.Value{Type: ir.StaticType(d, sizes...)})
}

func f32(sizes ...int64) ir.Arg { return val(ops.Float32, sizes...) }

// TestRefused holds calls that torch refuses too; the messages name what is wrong with which argument.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		op   string
		args []any // name, argument, …
		want string
	}{
		{"aten.add.Tensor", []any{"self", f32(2, 3), "other", f32(2, 4)}, "cannot be broadcast"},
		{"aten.add.Tensor", []any{"self", val(ops.Int64, 2), "other", val(ops.Int64, 2), "alpha", ir.Float(0.5)}, "alpha"},
		{"aten.sub.Tensor", []any{"self", val(ops.Bool, 2), "other", val(ops.Bool, 2)}, "logical_xor"},
		{"aten.add_.Tensor", []any{"self", val(ops.Int64, 2), "other", f32(2)}, "cannot be written"},
		{"aten.add_.Tensor", []any{"self", f32(2), "other", f32(3, 2)}, "cannot be written"},
		{"aten.add.Tensor", []any{"self", val(ops.Uint16, 2), "other", val(ops.Int32, 2)}, "no common type"},
		{"aten.bitwise_and.Tensor", []any{"self", f32(2), "other", f32(2)}, "integers or bools"},
		{"aten.pow.Tensor_Scalar", []any{"self", val(ops.Int32, 2), "exponent", ir.Int(-1)}, "negative integer"},
		{"aten.mm.default", []any{"self", f32(2, 3), "mat2", f32(4, 5)}, "cannot be multiplied"},
		{"aten.mm.default", []any{"self", f32(2, 3), "mat2", val(ops.Float16, 3, 5)}, "both have to be the same"},
		{"aten.linear.default", []any{"input", f32(2, 3), "weight", f32(5, 4)}, "cannot be multiplied"},
		{"aten.linear.default", []any{"input", f32(2, 3), "weight", f32(5, 3), "bias", f32(4)}, "cannot be expanded"},
		{"aten.bmm.default", []any{"self", f32(2, 3, 4), "mat2", f32(3, 4, 5)}, "numbers of matrices"},
		{"aten.view.default", []any{"self", f32(2, 3), "size", ir.Ints(4, 2)}, "elements"},
		{"aten.view.default", []any{"self", f32(2, 3), "size", ir.Ints(-1, -1)}, "more than one size of -1"},
		{"aten.view.default", []any{"self", f32(2, 3), "size", ir.Ints(-1, 4)}, "does not fit"},
		{"aten.permute.default", []any{"self", f32(2, 3), "dims", ir.Ints(0, 0)}, "twice"},
		{"aten.permute.default", []any{"self", f32(2, 3), "dims", ir.Ints(0)}, "2 dimensions"},
		{"aten.select.int", []any{"self", f32(2, 3), "dim", ir.Int(1), "index", ir.Int(3)}, "out of range"},
		{"aten.select.int", []any{"self", f32(2, 3), "dim", ir.Int(2), "index", ir.Int(0)}, "dim is 2"},
		{"aten.expand.default", []any{"self", f32(2, 3), "size", ir.Ints(2, 4)}, "cannot be expanded"},
		{"aten.cat.default", []any{"tensors", ir.List(f32(2, 3), f32(2, 4)), "dim", ir.Int(0)}, "only dimension 0 may differ"},
		{"aten.stack.default", []any{"tensors", ir.List(f32(2), f32(3))}, "all have to be of one shape"},
		{"aten.split_with_sizes.default", []any{"self", f32(5), "split_sizes", ir.Ints(2, 2)}, "sum up to 4"},
		{"aten.mean.dim", []any{"self", val(ops.Int64, 2, 3), "dim", ir.Ints(0)}, "floating point"},
		{"aten.sum.dim_IntList", []any{"self", f32(2, 3), "dim", ir.Ints(0, -2)}, "twice"},
		{"aten.max.dim", []any{"self", f32(0, 3), "dim", ir.Int(0)}, "no elements"},
		{"aten.conv2d.default", []any{"input", f32(1, 3, 8, 8), "weight", f32(4, 2, 3, 3)}, "channels"},
		{"aten.conv2d.default", []any{"input", f32(1, 3, 2, 2), "weight", f32(4, 3, 3, 3)}, "kernel spans"},
		{"aten.conv2d.padding", []any{"input", f32(1, 3, 8, 8), "weight", f32(4, 3, 3, 3), "padding", ir.Str("same"), "stride", ir.Ints(2, 2)}, "stride of one"},
		{"aten.max_pool2d.default", []any{"self", f32(1, 3, 8, 8), "kernel_size", ir.Ints(2, 2), "padding", ir.Ints(2, 2)}, "half of the kernel"},
		{"aten.layer_norm.default", []any{"input", f32(2, 3), "normalized_shape", ir.Ints(4)}, "does not fit"},
		{"aten.batch_norm.default", []any{
			"input", f32(2, 3, 4), "weight", f32(4), "training", ir.Bool(false), "momentum", ir.Float(0.1), "eps", ir.Float(1e-5),
			"cudnn_enabled", ir.Bool(true),
		}, "number of channels"},
		{"aten.group_norm.default", []any{"input", f32(2, 5, 4), "num_groups", ir.Int(2)}, "multiple of 2"},
		{"aten.embedding.default", []any{"weight", f32(5, 3), "indices", f32(2)}, "int64 or int32"},
		{"aten.gather.default", []any{"self", f32(2, 3), "dim", ir.Int(0), "index", val(ops.Int64, 2)}, "dimensions"},
		{"aten.scatter.src", []any{"self", f32(2, 3), "dim", ir.Int(0), "index", val(ops.Int64, 2, 4), "src", f32(2, 4)}, "index has size 4"},
		{"aten.index.Tensor", []any{"self", f32(2, 3), "indices", ir.List(val(ops.Bool, 3))}, "mask"},
		{"aten.index.Tensor", []any{"self", f32(2), "indices", ir.List(f32(2))}, "integers or bools"},
		{"aten.masked_fill.Scalar", []any{"self", f32(2), "mask", val(ops.Int64, 2), "value", ir.Float(1)}, "mask is i64"},
		{"aten.where.self", []any{"condition", f32(2), "self", f32(2), "other", f32(2)}, "condition is f32"},
		{"aten.topk.default", []any{"self", f32(3), "k", ir.Int(4)}, "k is 4"},
		{"aten.arange.start_step", []any{"start", ir.Int(0), "end", ir.Int(4), "step", ir.Int(-1)}, "do not fit the step"},
		{"aten.scaled_dot_product_attention.default", []any{"query", f32(1, 2, 4, 8), "key", f32(1, 2, 4, 6), "value", f32(1, 2, 4, 8)}, "feature sizes"},
		{"aten.einsum.default", []any{"equation", ir.Str("ij,jk->il"), "tensors", ir.List(f32(2, 3), f32(3, 4))}, "stands in no operand"},
		{"aten.pixel_shuffle.default", []any{"self", f32(1, 3, 2, 2), "upscale_factor", ir.Int(2)}, "channels"},
		{"aten.item.default", []any{"self", f32(2)}, "one is needed"},
		{"aten.glu.default", []any{"self", f32(2, 3)}, "multiple of 2"},
		{"aten.view_as_complex.default", []any{"self", f32(2, 3)}, "has to be 2"},
		{"aten.fft_rfft.default", []any{"self", val(ops.Complex64, 4)}, "real type"},
	} {
		id := ops.Lookup(c.op)
		if id == ops.Unknown {
			t.Errorf("%s has no row", c.op)
			continue
		}
		args := op.Defaults(id)
		for i := 0; i < len(c.args); i += 2 {
			k := id.Info().ArgIndex(c.args[i].(string))
			if k < 0 {
				t.Fatalf("%s has no argument %s", c.op, c.args[i])
			}
			args[k] = c.args[i+1].(ir.Arg)
		}
		ts, err := infer.Predict(ir.NewGraph("test", nil), id, args)
		switch {
		case err == nil:
			t.Errorf("%s: accepted as %v, want an error with %q", c.op, ts, c.want)
		case !strings.Contains(err.Error(), c.want):
			t.Errorf("%s: %q lacks %q", c.op, err, c.want)
		}
	}
}
