package table

import "github.com/lathe-ml/lathe/ops"

var dimOrder = []ops.Row{
	{
		Schema: "dim_order_ops::_to_dim_order_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool non_blocking=False, int[]? dim_order=None) -> Tensor",
		Doc:    "A copy as another element type and with the given order of dimensions in memory.",
		Infer:  "inferToDimOrderCopy",
		Interp: "evalTo",
		Kernel: "dim_order_ops::_to_dim_order_copy.out",
	},
	{
		Schema: "dim_order_ops::_clone_dim_order(Tensor self, *, bool non_blocking=False, int[]? dim_order=None) -> Tensor",
		Doc:    "A copy with the given order of dimensions in memory.",
		Infer:  "inferCloneDimOrder",
		Interp: "evalClone",
		Kernel: "dim_order_ops::_clone_dim_order.out",
	},
	{
		Schema: "dim_order_ops::_empty_dim_order(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, int[]? dim_order=None) -> Tensor",
		Doc:    "A tensor with the given order of dimensions in memory whose elements have no meaning; zeros here.",
		Infer:  "inferEmptyDimOrder",
		Interp: "evalFull",
		Kernel: "dim_order_ops::_empty_dim_order.out",
	},
	{
		Schema: "et_copy::_h2d_copy(Tensor self) -> Tensor",
		Doc:    "A copy from the host to a device.",
		Infer:  "inferUnary",
		Interp: "evalClone",
		Decomp: "decompClone",
		Kernel: "et_copy::_h2d_copy.out",
	},
	{
		Schema: "et_copy::_d2h_copy(Tensor self) -> Tensor",
		Doc:    "A copy from a device to the host.",
		Infer:  "inferUnary",
		Interp: "evalClone",
		Decomp: "decompClone",
		Kernel: "et_copy::_d2h_copy.out",
	},
}
