package table

import "github.com/lathe-ml/lathe/ops"

var sort = []ops.Row{
	{
		Schema: "aten::sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
		Doc:    "Elements in order along a dimension, and their indices.",
		DTypes: ops.RealBool,
		Infer:  "inferSort",
		Interp: "evalSort",
		Decomp: "decompSort",
	},
	{
		Schema: "aten::sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
		Doc:    "Elements in order along a dimension, and their indices.",
		DTypes: ops.RealBool,
		Infer:  "inferSort",
		Interp: "evalSort",
		Decomp: "decompSort",
	},
	{
		Schema: "aten::argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor",
		Doc:    "The indices that sort along a dimension.",
		DTypes: ops.RealBool,
		Infer:  "inferArgsort",
		Interp: "evalSort",
		Decomp: "decompArgsort",
	},
	{
		Schema: "aten::argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
		Doc:    "The indices that sort along a dimension.",
		DTypes: ops.RealBool,
		Infer:  "inferArgsort",
		Interp: "evalSort",
		Decomp: "decompArgsort",
	},
	{
		Schema: "aten::msort(Tensor self) -> Tensor",
		Doc:    "Elements in order along the first dimension.",
		DTypes: ops.RealBool,
		Infer:  "inferUnary",
		Interp: "evalSort",
		Decomp: "decompMsort",
	},
	{
		Schema: "aten::topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)",
		Doc:    "The k largest or smallest elements along a dimension, and their indices.",
		DTypes: ops.Real,
		Infer:  "inferTopk",
		Interp: "evalTopk",
		Kernel: "aten::topk.values",
	},
	{
		Schema: "aten::topk.values(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True, *, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)",
		Doc:    "The k largest or smallest elements along a dimension, and their indices.",
		DTypes: ops.Real,
		Infer:  "inferTopk",
		Interp: "evalTopk",
	},
	{
		Schema: "aten::unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> (Tensor, Tensor, Tensor)",
		Doc:    "Runs of equal elements made one, with inverse indices and counts.",
		DTypes: ops.RealBool,
		Infer:  "inferUniqueConsecutive",
		Interp: "evalUnique",
	},
	{
		Schema: "aten::_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
		Doc:    "The distinct elements, with inverse indices and counts.",
		Infer:  "inferUnique2",
		Interp: "evalUnique",
	},
	{
		Schema: "aten::_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)",
		Doc:    "The distinct elements, with inverse indices.",
		Infer:  "inferUnique",
		Interp: "evalUnique",
	},
	{
		Schema: "aten::unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
		Doc:    "The distinct slices along a dimension, with inverse indices and counts.",
		Infer:  "inferUniqueDim",
		Interp: "evalUnique",
	},
}
