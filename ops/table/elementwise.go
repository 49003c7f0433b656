package table

import "github.com/lathe-ml/lathe/ops"

var elementwise = []ops.Row{
	{
		Schema: "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
		Doc:    "self + alpha*other with broadcasting and type promotion.",
		Infer:  "inferBinary", Interp: "evalAdd", Kernel: "aten::add.out",
	},
}
