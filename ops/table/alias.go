package table

import "github.com/lathe-ml/lathe/ops"

var alias = []ops.Row{
	{
		Schema: "aten::absolute(Tensor self) -> Tensor",
		Doc:    "The same as aten.abs.",
		SameAs: "aten.abs.default",
	},
	{
		Schema: "aten::absolute_(Tensor(a!) self) -> Tensor(a!)",
		Doc:    "The same as aten.abs_.",
		SameAs: "aten.abs_.default",
	},
	{
		Schema: "aten::arccos(Tensor self) -> Tensor",
		Doc:    "The same as aten.acos.",
		SameAs: "aten.acos.default",
	},
	{
		Schema: "aten::arccos_(Tensor(a!) self) -> Tensor(a!)",
		Doc:    "The same as aten.acos_.",
		SameAs: "aten.acos_.default",
	},
	{
		Schema: "aten::arccosh(Tensor self) -> Tensor",
		Doc:    "The same as aten.acosh.",
		SameAs: "aten.acosh.default",
	},
	{
		Schema: "aten::arccosh_(Tensor(a!) self) -> Tensor(a!)",
		Doc:    "The same as aten.acosh_.",
		SameAs: "aten.acosh_.default",
	},
	{
		Schema: "aten::arcsin(Tensor self) -> Tensor",
		Doc:    "The same as aten.asin.",
		SameAs: "aten.asin.default",
	},
	{
		Schema: "aten::arcsin_(Tensor(a!) self) -> Tensor(a!)",
		Doc:    "The same as aten.asin_.",
		SameAs: "aten.asin_.default",
	},
	{
		Schema: "aten::arcsinh(Tensor self) -> Tensor",
		Doc:    "The same as aten.asinh.",
		SameAs: "aten.asinh.default",
	},
	{
		Schema: "aten::arcsinh_(Tensor(a!) self) -> Tensor(a!)",
		Doc:    "The same as aten.asinh_.",
		SameAs: "aten.asinh_.default",
	},
	{
		Schema: "aten::arctan(Tensor self) -> Tensor",
		Doc:    "The same as aten.atan.",
		SameAs: "aten.atan.default",
	},
	{
		Schema: "aten::arctan_(Tensor(a!) self) -> Tensor(a!)",
		Doc:    "The same as aten.atan_.",
		SameAs: "aten.atan_.default",
	},
	{
		Schema: "aten::arctanh(Tensor self) -> Tensor",
		Doc:    "The same as aten.atanh.",
		SameAs: "aten.atanh.default",
	},
	{
		Schema: "aten::arctanh_(Tensor(a!) self) -> Tensor(a!)",
		Doc:    "The same as aten.atanh_.",
		SameAs: "aten.atanh_.default",
	},
	{
		Schema: "aten::arctan2(Tensor self, Tensor other) -> Tensor",
		Doc:    "The same as aten.atan2.",
		SameAs: "aten.atan2.default",
	},
	{
		Schema: "aten::arctan2_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
		Doc:    "The same as aten.atan2_.",
		SameAs: "aten.atan2_.default",
	},
	{
		Schema: "aten::fix(Tensor self) -> Tensor",
		Doc:    "The same as aten.trunc.",
		SameAs: "aten.trunc.default",
	},
	{
		Schema: "aten::fix_(Tensor(a!) self) -> Tensor(a!)",
		Doc:    "The same as aten.trunc_.",
		SameAs: "aten.trunc_.default",
	},
	{
		Schema: "aten::negative(Tensor self) -> Tensor",
		Doc:    "The same as aten.neg.",
		SameAs: "aten.neg.default",
	},
	{
		Schema: "aten::negative_(Tensor(a!) self) -> Tensor(a!)",
		Doc:    "The same as aten.neg_.",
		SameAs: "aten.neg_.default",
	},
	{
		Schema: "aten::clip(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
		Doc:    "The same as aten.clamp.",
		SameAs: "aten.clamp.default",
	},
	{
		Schema: "aten::clip_(Tensor(a!) self, Scalar? min=None, Scalar? max=None) -> Tensor(a!)",
		Doc:    "The same as aten.clamp_.",
		SameAs: "aten.clamp_.default",
	},
	{
		Schema: "aten::clip.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
		Doc:    "The same as aten.clamp.Tensor.",
		SameAs: "aten.clamp.Tensor",
	},
	{
		Schema: "aten::clip_.Tensor(Tensor(a!) self, Tensor? min=None, Tensor? max=None) -> Tensor(a!)",
		Doc:    "The same as aten.clamp_.Tensor.",
		SameAs: "aten.clamp_.Tensor",
	},
	{
		Schema: "aten::multiply.Tensor(Tensor self, Tensor other) -> Tensor",
		Doc:    "The same as aten.mul.Tensor.",
		SameAs: "aten.mul.Tensor",
	},
	{
		Schema: "aten::multiply_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
		Doc:    "The same as aten.mul_.Tensor.",
		SameAs: "aten.mul_.Tensor",
	},
	{
		Schema: "aten::multiply.Scalar(Tensor self, Scalar other) -> Tensor",
		Doc:    "The same as aten.mul.Scalar.",
		SameAs: "aten.mul.Scalar",
	},
	{
		Schema: "aten::multiply_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
		Doc:    "The same as aten.mul_.Scalar.",
		SameAs: "aten.mul_.Scalar",
	},
	{
		Schema: "aten::subtract.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
		Doc:    "The same as aten.sub.Tensor.",
		SameAs: "aten.sub.Tensor",
	},
	{
		Schema: "aten::subtract_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
		Doc:    "The same as aten.sub_.Tensor.",
		SameAs: "aten.sub_.Tensor",
	},
	{
		Schema: "aten::subtract.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
		Doc:    "The same as aten.sub.Scalar.",
		SameAs: "aten.sub.Scalar",
	},
	{
		Schema: "aten::subtract_.Scalar(Tensor(a!) self, Scalar other, Scalar alpha=1) -> Tensor(a!)",
		Doc:    "The same as aten.sub_.Scalar.",
		SameAs: "aten.sub_.Scalar",
	},
	{
		Schema: "aten::divide.Tensor(Tensor self, Tensor other) -> Tensor",
		Doc:    "The same as aten.div.Tensor.",
		SameAs: "aten.div.Tensor",
	},
	{
		Schema: "aten::divide_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
		Doc:    "The same as aten.div_.Tensor.",
		SameAs: "aten.div_.Tensor",
	},
	{
		Schema: "aten::divide.Scalar(Tensor self, Scalar other) -> Tensor",
		Doc:    "The same as aten.div.Scalar.",
		SameAs: "aten.div.Scalar",
	},
	{
		Schema: "aten::divide_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
		Doc:    "The same as aten.div_.Scalar.",
		SameAs: "aten.div_.Scalar",
	},
	{
		Schema: "aten::divide.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
		Doc:    "The same as aten.div.Tensor_mode.",
		SameAs: "aten.div.Tensor_mode",
	},
	{
		Schema: "aten::divide_.Tensor_mode(Tensor(a!) self, Tensor other, *, str? rounding_mode) -> Tensor(a!)",
		Doc:    "The same as aten.div_.Tensor_mode.",
		SameAs: "aten.div_.Tensor_mode",
	},
	{
		Schema: "aten::divide.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor",
		Doc:    "The same as aten.div.Scalar_mode.",
		SameAs: "aten.div.Scalar_mode",
	},
	{
		Schema: "aten::divide_.Scalar_mode(Tensor(a!) self, Scalar other, *, str? rounding_mode) -> Tensor(a!)",
		Doc:    "The same as aten.div_.Scalar_mode.",
		SameAs: "aten.div_.Scalar_mode",
	},
	{
		Schema: "aten::true_divide.Tensor(Tensor self, Tensor other) -> Tensor",
		Doc:    "The same as aten.div.Tensor.",
		SameAs: "aten.div.Tensor",
	},
	{
		Schema: "aten::true_divide_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
		Doc:    "The same as aten.div_.Tensor.",
		SameAs: "aten.div_.Tensor",
	},
	{
		Schema: "aten::true_divide.Scalar(Tensor self, Scalar other) -> Tensor",
		Doc:    "The same as aten.div.Scalar.",
		SameAs: "aten.div.Scalar",
	},
	{
		Schema: "aten::true_divide_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
		Doc:    "The same as aten.div_.Scalar.",
		SameAs: "aten.div_.Scalar",
	},
	{
		Schema: "aten::greater.Tensor(Tensor self, Tensor other) -> Tensor",
		Doc:    "The same as aten.gt.Tensor.",
		SameAs: "aten.gt.Tensor",
	},
	{
		Schema: "aten::greater_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
		Doc:    "The same as aten.gt_.Tensor.",
		SameAs: "aten.gt_.Tensor",
	},
	{
		Schema: "aten::greater.Scalar(Tensor self, Scalar other) -> Tensor",
		Doc:    "The same as aten.gt.Scalar.",
		SameAs: "aten.gt.Scalar",
	},
	{
		Schema: "aten::greater_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
		Doc:    "The same as aten.gt_.Scalar.",
		SameAs: "aten.gt_.Scalar",
	},
	{
		Schema: "aten::greater_equal.Tensor(Tensor self, Tensor other) -> Tensor",
		Doc:    "The same as aten.ge.Tensor.",
		SameAs: "aten.ge.Tensor",
	},
	{
		Schema: "aten::greater_equal_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
		Doc:    "The same as aten.ge_.Tensor.",
		SameAs: "aten.ge_.Tensor",
	},
	{
		Schema: "aten::greater_equal.Scalar(Tensor self, Scalar other) -> Tensor",
		Doc:    "The same as aten.ge.Scalar.",
		SameAs: "aten.ge.Scalar",
	},
	{
		Schema: "aten::greater_equal_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
		Doc:    "The same as aten.ge_.Scalar.",
		SameAs: "aten.ge_.Scalar",
	},
	{
		Schema: "aten::less.Tensor(Tensor self, Tensor other) -> Tensor",
		Doc:    "The same as aten.lt.Tensor.",
		SameAs: "aten.lt.Tensor",
	},
	{
		Schema: "aten::less_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
		Doc:    "The same as aten.lt_.Tensor.",
		SameAs: "aten.lt_.Tensor",
	},
	{
		Schema: "aten::less.Scalar(Tensor self, Scalar other) -> Tensor",
		Doc:    "The same as aten.lt.Scalar.",
		SameAs: "aten.lt.Scalar",
	},
	{
		Schema: "aten::less_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
		Doc:    "The same as aten.lt_.Scalar.",
		SameAs: "aten.lt_.Scalar",
	},
	{
		Schema: "aten::less_equal.Tensor(Tensor self, Tensor other) -> Tensor",
		Doc:    "The same as aten.le.Tensor.",
		SameAs: "aten.le.Tensor",
	},
	{
		Schema: "aten::less_equal_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
		Doc:    "The same as aten.le_.Tensor.",
		SameAs: "aten.le_.Tensor",
	},
	{
		Schema: "aten::less_equal.Scalar(Tensor self, Scalar other) -> Tensor",
		Doc:    "The same as aten.le.Scalar.",
		SameAs: "aten.le.Scalar",
	},
	{
		Schema: "aten::less_equal_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
		Doc:    "The same as aten.le_.Scalar.",
		SameAs: "aten.le_.Scalar",
	},
	{
		Schema: "aten::not_equal.Tensor(Tensor self, Tensor other) -> Tensor",
		Doc:    "The same as aten.ne.Tensor.",
		SameAs: "aten.ne.Tensor",
	},
	{
		Schema: "aten::not_equal_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
		Doc:    "The same as aten.ne_.Tensor.",
		SameAs: "aten.ne_.Tensor",
	},
	{
		Schema: "aten::not_equal.Scalar(Tensor self, Scalar other) -> Tensor",
		Doc:    "The same as aten.ne.Scalar.",
		SameAs: "aten.ne.Scalar",
	},
	{
		Schema: "aten::not_equal_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
		Doc:    "The same as aten.ne_.Scalar.",
		SameAs: "aten.ne_.Scalar",
	},
	{
		Schema: "aten::concat(Tensor[] tensors, int dim=0) -> Tensor",
		Doc:    "The same as aten.cat.",
		SameAs: "aten.cat.default",
	},
	{
		Schema: "aten::concatenate(Tensor[] tensors, int dim=0) -> Tensor",
		Doc:    "The same as aten.cat.",
		SameAs: "aten.cat.default",
	},
	{
		Schema: "aten::moveaxis.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
		Doc:    "The same as aten.movedim.intlist.",
		SameAs: "aten.movedim.intlist",
	},
	{
		Schema: "aten::row_stack(Tensor[] tensors) -> Tensor",
		Doc:    "The same as aten.vstack.",
		SameAs: "aten.vstack.default",
	},
	{
		Schema: "aten::special_expit(Tensor self) -> Tensor",
		Doc:    "The same as aten.sigmoid.",
		SameAs: "aten.sigmoid.default",
	},
	{
		Schema: "aten::special_psi(Tensor self) -> Tensor",
		Doc:    "The same as aten.digamma.",
		SameAs: "aten.digamma.default",
	},
	{
		Schema: "aten::special_digamma(Tensor self) -> Tensor",
		Doc:    "The same as aten.digamma.",
		SameAs: "aten.digamma.default",
	},
	{
		Schema: "aten::special_gammaln(Tensor self) -> Tensor",
		Doc:    "The same as aten.lgamma.",
		SameAs: "aten.lgamma.default",
	},
	{
		Schema: "aten::special_gammainc(Tensor self, Tensor other) -> Tensor",
		Doc:    "The same as aten.igamma.",
		SameAs: "aten.igamma.default",
	},
	{
		Schema: "aten::special_gammaincc(Tensor self, Tensor other) -> Tensor",
		Doc:    "The same as aten.igammac.",
		SameAs: "aten.igammac.default",
	},
	{
		Schema: "aten::special_multigammaln(Tensor self, int p) -> Tensor",
		Doc:    "The same as aten.mvlgamma.",
		SameAs: "aten.mvlgamma.default",
	},
	{
		Schema: "aten::special_polygamma(int n, Tensor self) -> Tensor",
		Doc:    "The same as aten.polygamma.",
		SameAs: "aten.polygamma.default",
	},
	{
		Schema: "aten::special_logit(Tensor self, float? eps=None) -> Tensor",
		Doc:    "The same as aten.logit.",
		SameAs: "aten.logit.default",
	},
	{
		Schema: "aten::special_round(Tensor self, *, int decimals=0) -> Tensor",
		Doc:    "The same as aten.round.decimals.",
		SameAs: "aten.round.decimals",
	},
	{
		Schema: "aten::special_sinc(Tensor self) -> Tensor",
		Doc:    "The same as aten.sinc.",
		SameAs: "aten.sinc.default",
	},
	{
		Schema: "aten::special_xlogy(Tensor self, Tensor other) -> Tensor",
		Doc:    "The same as aten.xlogy.Tensor.",
		SameAs: "aten.xlogy.Tensor",
	},
	{
		Schema: "aten::special_xlogy.self_scalar(Scalar self, Tensor other) -> Tensor",
		Doc:    "The same as aten.xlogy.Scalar_Self.",
		SameAs: "aten.xlogy.Scalar_Self",
	},
	{
		Schema: "aten::special_xlogy.other_scalar(Tensor self, Scalar other) -> Tensor",
		Doc:    "The same as aten.xlogy.Scalar_Other.",
		SameAs: "aten.xlogy.Scalar_Other",
	},
	{
		Schema: "aten::special_logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
		Doc:    "The same as aten.logsumexp.",
		SameAs: "aten.logsumexp.default",
	},
	{
		Schema: "aten::special_exp2(Tensor self) -> Tensor",
		Doc:    "The same as aten.exp2.",
		SameAs: "aten.exp2.default",
	},
	{
		Schema: "aten::special_expm1(Tensor self) -> Tensor",
		Doc:    "The same as aten.expm1.",
		SameAs: "aten.expm1.default",
	},
	{
		Schema: "aten::special_log1p(Tensor self) -> Tensor",
		Doc:    "The same as aten.log1p.",
		SameAs: "aten.log1p.default",
	},
	{
		Schema: "aten::special_erf(Tensor self) -> Tensor",
		Doc:    "The same as aten.erf.",
		SameAs: "aten.erf.default",
	},
	{
		Schema: "aten::special_erfc(Tensor self) -> Tensor",
		Doc:    "The same as aten.erfc.",
		SameAs: "aten.erfc.default",
	},
	{
		Schema: "aten::special_erfinv(Tensor self) -> Tensor",
		Doc:    "The same as aten.erfinv.",
		SameAs: "aten.erfinv.default",
	},
	{
		Schema: "aten::special_i0(Tensor self) -> Tensor",
		Doc:    "The same as aten.i0.",
		SameAs: "aten.i0.default",
	},
	{
		Schema: "aten::special_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
		Doc:    "The same as aten.softmax.int.",
		SameAs: "aten.softmax.int",
	},
	{
		Schema: "aten::special_log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
		Doc:    "The same as aten.log_softmax.int.",
		SameAs: "aten.log_softmax.int",
	},
	{
		Schema: "aten::trapz.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
		Doc:    "The same as aten.trapezoid.x.",
		SameAs: "aten.trapezoid.x",
	},
	{
		Schema: "aten::trapz.dx(Tensor y, *, float dx=1.0, int dim=-1) -> Tensor",
		Doc:    "The same as aten.trapezoid.dx.",
		SameAs: "aten.trapezoid.dx",
	},
	{
		Schema: "aten::permute_copy(Tensor self, int[] dims) -> Tensor",
		Doc:    "The same as aten.permute, as a copy.",
		SameAs: "aten.permute.default",
		Infer:  "inferCopyTwin",
	},
	{
		Schema: "aten::alias_copy(Tensor self) -> Tensor",
		Doc:    "The same as aten.alias, as a copy.",
		SameAs: "aten.alias.default",
		Infer:  "inferCopyTwin",
	},
	{
		Schema: "aten::detach_copy(Tensor self) -> Tensor",
		Doc:    "The same as aten.detach, as a copy.",
		SameAs: "aten.detach.default",
		Infer:  "inferCopyTwin",
	},
	{
		Schema: "aten::expand_copy(Tensor self, SymInt[] size, *, bool implicit=False) -> Tensor",
		Doc:    "The same as aten.expand, as a copy.",
		SameAs: "aten.expand.default",
		Infer:  "inferCopyTwin",
	},
	{
		Schema: "aten::narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor",
		Doc:    "The same as aten.narrow, as a copy.",
		SameAs: "aten.narrow.default",
		Infer:  "inferCopyTwin",
	},
	{
		Schema: "aten::slice_copy.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor",
		Doc:    "The same as aten.slice.Tensor, as a copy.",
		SameAs: "aten.slice.Tensor",
		Infer:  "inferCopyTwin",
	},
	{
		Schema: "aten::split_copy.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]",
		Doc:    "The same as aten.split.Tensor, as a copy.",
		SameAs: "aten.split.Tensor",
		Infer:  "inferCopyTwin",
	},
	{
		Schema: "aten::split_with_sizes_copy(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]",
		Doc:    "The same as aten.split_with_sizes, as a copy.",
		SameAs: "aten.split_with_sizes.default",
		Infer:  "inferCopyTwin",
	},
	{
		Schema: "aten::squeeze_copy(Tensor self) -> Tensor",
		Doc:    "The same as aten.squeeze, as a copy.",
		SameAs: "aten.squeeze.default",
		Infer:  "inferCopyTwin",
	},
	{
		Schema: "aten::squeeze_copy.dim(Tensor self, int dim) -> Tensor",
		Doc:    "The same as aten.squeeze.dim, as a copy.",
		SameAs: "aten.squeeze.dim",
		Infer:  "inferCopyTwin",
	},
	{
		Schema: "aten::squeeze_copy.dims(Tensor self, int[] dim) -> Tensor",
		Doc:    "The same as aten.squeeze.dims, as a copy.",
		SameAs: "aten.squeeze.dims",
		Infer:  "inferCopyTwin",
	},
	{
		Schema: "aten::t_copy(Tensor self) -> Tensor",
		Doc:    "The same as aten.t, as a copy.",
		SameAs: "aten.t.default",
		Infer:  "inferCopyTwin",
	},
	{
		Schema: "aten::unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor",
		Doc:    "The same as aten.unfold, as a copy.",
		SameAs: "aten.unfold.default",
		Infer:  "inferCopyTwin",
	},
	{
		Schema: "aten::unsqueeze_copy(Tensor self, int dim) -> Tensor",
		Doc:    "The same as aten.unsqueeze, as a copy.",
		SameAs: "aten.unsqueeze.default",
		Infer:  "inferCopyTwin",
	},
	{
		Schema: "aten::view_copy(Tensor self, SymInt[] size) -> Tensor",
		Doc:    "The same as aten.view, as a copy.",
		SameAs: "aten.view.default",
		Infer:  "inferCopyTwin",
	},
	{
		Schema: "aten::view_copy.dtype(Tensor self, ScalarType dtype) -> Tensor",
		Doc:    "The same as aten.view.dtype, as a copy.",
		SameAs: "aten.view.dtype",
		Infer:  "inferCopyTwin",
	},
	{
		Schema: "aten::view_as_real_copy(Tensor self) -> Tensor",
		Doc:    "The same as aten.view_as_real, as a copy.",
		SameAs: "aten.view_as_real.default",
		Infer:  "inferCopyTwin",
	},
	{
		Schema: "aten::view_as_complex_copy(Tensor self) -> Tensor",
		Doc:    "The same as aten.view_as_complex, as a copy.",
		SameAs: "aten.view_as_complex.default",
		Infer:  "inferCopyTwin",
	},
	{
		Schema: "aten::diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor",
		Doc:    "The same as aten.diagonal, as a copy.",
		SameAs: "aten.diagonal.default",
		Infer:  "inferCopyTwin",
	},
	{
		Schema: "aten::as_strided_copy(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor",
		Doc:    "The same as aten.as_strided, as a copy.",
		SameAs: "aten.as_strided.default",
		Infer:  "inferCopyTwin",
	},
	{
		Schema: "aten::_conj_copy(Tensor self) -> Tensor",
		Doc:    "The same as aten._conj, as a copy.",
		SameAs: "aten._conj.default",
		Infer:  "inferCopyTwin",
	},
	{
		Schema: "aten::_reshape_alias_copy(Tensor self, SymInt[] size, SymInt[] stride) -> Tensor",
		Doc:    "The same as aten._reshape_alias, as a copy.",
		SameAs: "aten._reshape_alias.default",
		Infer:  "inferCopyTwin",
	},
	{
		Schema: "aten::transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor",
		Doc:    "The same as aten.transpose.int, as a copy.",
		SameAs: "aten.transpose.int",
		Infer:  "inferCopyTwin",
	},
	{
		Schema: "aten::select_copy.int(Tensor self, int dim, SymInt index) -> Tensor",
		Doc:    "The same as aten.select.int, as a copy.",
		SameAs: "aten.select.int",
		Infer:  "inferCopyTwin",
	},
	{
		Schema: "aten::unbind_copy.int(Tensor self, int dim=0) -> Tensor[]",
		Doc:    "The same as aten.unbind.int, as a copy.",
		SameAs: "aten.unbind.int",
		Infer:  "inferCopyTwin",
	},
	{
		Schema: "aten::moveaxis.int(Tensor(a) self, int source, int destination) -> Tensor(a)",
		Doc:    "The same as aten.movedim.int.",
		SameAs: "aten.movedim.int",
	},
}
