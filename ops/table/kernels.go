package table

import "github.com/lathe-ml/lathe/ops"

// Kernels lists the kernels that the stock runtime (portable, optimized, quantized) registers.
var Kernels = []ops.Kernel{
	{Schema: "aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)"},
}
