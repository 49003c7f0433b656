package table

import "github.com/lathe-ml/lathe/ops"

// Kernels lists the kernels that the stock runtime (portable, optimized, quantized) registers. What they take and where
// they err was measured: every kernel was called on the samples of PyTorch's own operator tests, in every element type, with
// special values, mixed types and channels-last operands, and compared with PyTorch (tools/oracle/et/probe.py).
//
// An instruction's arguments are those of the schema, in order, and one more for the result: the out argument again, and
// any of them where there are several. The runtime's scalar operators (executorch_prim, aten::sym_size.int, aten::sym_numel,
// aten::_local_scalar_dense) take their arguments and the result alone.
var Kernels = []ops.Kernel{
	{
		Schema: "aten::_adaptive_avg_pool2d.out(Tensor self, SymInt[2] output_size, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Floats,
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::_cdist_forward.out(Tensor x1, Tensor x2, float p, int? compute_mode, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Set(ops.Float32, ops.Float64),
		Faults: []string{ops.FaultChannelsLast},
		Notes:  "p=0 counts a NaN as one.",
	},
	{
		Schema: "aten::_conj_physical.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Set(ops.Complex64, ops.Complex128),
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::_fft_c2r.out(Tensor self, int[] dim, int normalization, SymInt last_dim_size, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Set(ops.Complex64, ops.Complex128), Out: ops.Set(ops.Float32, ops.Float64),
	},
	{
		Schema: "aten::_fft_r2c.out(Tensor self, int[] dim, int normalization, bool onesided, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Set(ops.Float32, ops.Float64), Out: ops.Set(ops.Complex64, ops.Complex128),
		Faults: []string{ops.FaultTwoSided},
		Notes:  "One-sided only.",
	},
	{
		Schema: "aten::_local_scalar_dense(Tensor self) -> Scalar",
		DTypes: ops.Ints | ops.Bools | ops.Set(ops.Float32, ops.Float64),
		Notes:  "The last argument receives the scalar.",
	},
	{
		Schema: "aten::_log_softmax.out(Tensor self, int dim, bool half_to_float, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Set(ops.Float16, ops.BFloat16, ops.Float32),
		Faults: []string{ops.FaultChannelsLast},
		Notes:  "float64 is refused although _softmax takes it.",
	},
	{
		Schema: "aten::_native_batch_norm_legit.no_stats_out(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, float eps, *, Tensor(a!) out, Tensor(b!) save_mean, Tensor(c!) save_invstd) -> (Tensor(a!), Tensor(b!), Tensor(c!))",
		DTypes: ops.Floats,
		Faults: []string{ops.FaultMixedDType, ops.FaultHalf, ops.FaultDouble},
		Notes:  "The variance is a difference of squares: an input whose mean is a hundred times its spread loses its digits. Half precision sums in that precision.",
	},
	{
		Schema: "aten::_native_batch_norm_legit.out(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) running_var, bool training, float momentum, float eps, *, Tensor(d!) out, Tensor(e!) save_mean, Tensor(f!) save_invstd) -> (Tensor(d!), Tensor(e!), Tensor(f!))",
		DTypes: ops.Floats,
		Faults: []string{ops.FaultChannelsLast, ops.FaultMixedDType, ops.FaultTraining},
		Notes:  "Inference only.",
	},
	{
		Schema: "aten::_native_batch_norm_legit_no_training.out(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, float momentum, float eps, *, Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2) -> (Tensor(a!), Tensor(b!), Tensor(c!))",
		DTypes: ops.Floats,
		Faults: []string{ops.FaultChannelsLast, ops.FaultMixedDType, ops.FaultHalfEps},
	},
	{
		Schema: "aten::_pdist_forward.out(Tensor self, float p=2., *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Set(ops.Float32, ops.Float64),
		Notes:  "p=0 counts a NaN as one.",
	},
	{
		Schema: "aten::_softmax.out(Tensor self, int dim, bool half_to_float, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Floats,
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::_to_copy.out(Tensor self, *, bool non_blocking=False, MemoryFormat? memory_format=None, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool,
		Out:    ops.RealBool,
		Faults: []string{ops.FaultChannelsLast, ops.FaultMemoryFormat, ops.FaultNonBlocking},
		Notes:  "Contiguous memory format only.",
	},
	{
		Schema: "aten::_upsample_bilinear2d_aa.out(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Set(ops.Float32, ops.Float64),
		Faults: []string{ops.FaultNoResize, ops.FaultScales, ops.FaultDouble},
		Notes:  "uint8 gives zeros.",
	},
	{
		Schema: "aten::abs.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Real | ops.Set(ops.Complex64, ops.Complex128), Out: ops.Real,
		Notes: "Complex magnitudes overflow early.",
	},
	{
		Schema: "aten::acos.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Floats,
	},
	{
		Schema: "aten::acosh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Floats,
	},
	{
		Schema: "aten::add.Scalar_out(Tensor self, Scalar other, Scalar alpha=1, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool,
		Faults: []string{ops.FaultScalarPromotion},
		Notes:  "An integer tensor with a float scalar is refused; add.out with a 0-d tensor takes it.",
	},
	{
		Schema: "aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool | ops.Set(ops.Complex64), Out: ops.RealBool | ops.Set(ops.Complex64, ops.Complex128),
		Notes: "A uint8 tensor with a negative alpha is refused.",
	},
	{
		Schema: "aten::addmm.out(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Real,
		Faults: []string{ops.FaultHalfSum},
		Notes:  "Half precision accumulates in half precision.",
	},
	{
		Schema: "aten::alias_copy.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool | ops.Uints | ops.Set(ops.Complex64, ops.Complex128, ops.Float8E4M3FN, ops.Float8E5M2),
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::amax.out(Tensor self, int[1] dim=[], bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool,
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::amin.out(Tensor self, int[1] dim=[], bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool,
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::any.all_out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Bools | ops.Set(ops.Uint8),
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::any.dims_out(Tensor self, int[]? dim=None, bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Bools | ops.Set(ops.Uint8),
	},
	{
		Schema: "aten::any.out(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Bools | ops.Set(ops.Uint8),
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::arange.out(Scalar end, *, Tensor(a!) out) -> Tensor(a!)",
		Out:    ops.Real,
		Faults: []string{ops.FaultBounds},
	},
	{
		Schema: "aten::arange.start_out(Scalar start, Scalar end, Scalar step=1, *, Tensor(a!) out) -> Tensor(a!)",
		Out:    ops.Real,
		Faults: []string{ops.FaultBounds},
		Notes:  "Bool scalars are refused.",
	},
	{
		Schema: "aten::argmax.out(Tensor self, int? dim=None, bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Real, Out: ops.Set(ops.Int64),
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::argmin.out(Tensor self, int? dim=None, bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Real, Out: ops.Set(ops.Int64),
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::as_strided_copy.out(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool | ops.Set(ops.Complex64, ops.Complex128),
		Faults: []string{ops.FaultStrides},
	},
	{
		Schema: "aten::asin.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Floats,
	},
	{
		Schema: "aten::asinh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Floats,
	},
	{
		Schema: "aten::atan.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Floats,
	},
	{
		Schema: "aten::atan2.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Floats,
	},
	{
		Schema: "aten::atanh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Floats,
	},
	{
		Schema: "aten::avg_pool2d.out(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Floats | ops.Set(ops.Int64),
		Faults: []string{ops.FaultHalfSum, ops.FaultChannelsLast},
		Notes:  "Half precision accumulates in half precision.",
	},
	{
		Schema: "aten::bitwise_and.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Ints | ops.Bools,
	},
	{
		Schema: "aten::bitwise_and.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Ints | ops.Bools,
	},
	{
		Schema: "aten::bitwise_left_shift.Tensor_Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Ints,
		Notes:  "Shifts by less than none or by more than the type has bits are undefined.",
	},
	{
		Schema: "aten::bitwise_left_shift.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Ints,
		Notes:  "Shifts by less than none or by more than the type has bits are undefined.",
	},
	{
		Schema: "aten::bitwise_not.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Ints | ops.Bools,
	},
	{
		Schema: "aten::bitwise_or.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Ints | ops.Bools,
	},
	{
		Schema: "aten::bitwise_or.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Ints | ops.Bools,
	},
	{
		Schema: "aten::bitwise_right_shift.Tensor_Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Ints,
		Notes:  "Shifts by less than none or by more than the type has bits are undefined.",
	},
	{
		Schema: "aten::bitwise_right_shift.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Ints,
		Notes:  "Shifts by less than none or by more than the type has bits are undefined.",
	},
	{
		Schema: "aten::bitwise_xor.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Ints | ops.Bools,
	},
	{
		Schema: "aten::bitwise_xor.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Ints | ops.Bools,
	},
	{
		Schema: "aten::bmm.out(Tensor self, Tensor mat2, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Real | ops.Set(ops.Complex64, ops.Complex128),
	},
	{
		Schema: "aten::cat.out(Tensor[] tensors, int dim=0, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool | ops.Set(ops.Complex64, ops.Complex128),
		Faults: []string{ops.FaultChannelsLast, ops.FaultMixedDType},
		Notes:  "Inputs of unlike types are not converted: int32 with float32 copies the bits. A complex list with an empty tensor gives zeros.",
	},
	{
		Schema: "aten::ceil.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Floats,
		Notes:  "Integers go through floating point.",
	},
	{
		Schema: "aten::clamp.Tensor_out(Tensor self, Tensor? min=None, Tensor? max=None, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Real,
	},
	{
		Schema: "aten::clamp.out(Tensor self, Scalar? min=None, Scalar? max=None, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Real,
		Faults: []string{ops.FaultScalarRange},
		Notes:  "Bounds outside the range of an integer type are refused.",
	},
	{
		Schema: "aten::clone.out(Tensor self, *, MemoryFormat? memory_format=None, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool | ops.Uints | ops.Set(ops.Complex64, ops.Complex128, ops.Float8E4M3FN, ops.Float8E5M2),
	},
	{
		Schema: "aten::constant_pad_nd.out(Tensor self, SymInt[] pad, Scalar value=0, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool,
		Faults: []string{ops.FaultChannelsLast, ops.FaultNegativePad},
	},
	{
		Schema: "aten::convolution.out(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Floats | ops.Set(ops.Int64),
		Faults: []string{ops.FaultHalfSum, ops.FaultRankOver4},
		Notes:  "Half precision accumulates in half precision. Inputs of 3 or 4 dimensions only.",
	},
	{
		Schema: "aten::convolution_backward.out(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool[3] output_mask, *, Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2) -> (Tensor(a!), Tensor(b!), Tensor(c!))",
		DTypes: ops.Floats,
		Notes:  "Not measured.",
	},
	{
		Schema: "aten::copy.out(Tensor self, Tensor src, bool non_blocking=False, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool,
	},
	{
		Schema: "aten::copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)",
		DTypes: ops.RealBool,
	},
	{
		Schema: "aten::cos.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Floats,
	},
	{
		Schema: "aten::cosh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Floats,
	},
	{
		Schema: "aten::cumsum.out(Tensor self, int dim, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Real,
		Faults: []string{ops.FaultHalfSum, ops.FaultChannelsLast, ops.FaultRank0},
		Notes:  "bfloat16 accumulates in bfloat16.",
	},
	{
		Schema: "aten::detach_copy.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Floats | ops.Uints | ops.Set(ops.Complex128, ops.Float8E4M3FN, ops.Float8E5M2),
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::diagonal_copy.out(Tensor self, int offset=0, int dim1=0, int dim2=1, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool | ops.Set(ops.Complex64, ops.Complex128),
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::div.Scalar_mode_out(Tensor self, Scalar other, *, str? rounding_mode, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Real,
		Faults: []string{ops.FaultWideInteger},
	},
	{
		Schema: "aten::div.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Floats,
	},
	{
		Schema: "aten::div.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Floats | ops.Set(ops.Complex64, ops.Complex128),
		Notes: "Complex operands are wrong when they broadcast.",
	},
	{
		Schema: "aten::div.out_mode(Tensor self, Tensor other, *, str? rounding_mode, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Real,
		Faults: []string{ops.FaultWideInteger},
		Notes:  "int64 above 2^53 loses low bits when truncating.",
	},
	{
		Schema: "aten::elu.out(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Floats,
	},
	{
		Schema: "aten::embedding.out(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool | ops.Uints | ops.Set(ops.Complex64, ops.Complex128, ops.Float8E4M3FN, ops.Float8E5M2),
	},
	{
		Schema: "aten::empty.out(SymInt[] size, *, MemoryFormat? memory_format=None, Tensor(a!) out) -> Tensor(a!)",
		Out:    ops.RealBool | ops.Set(ops.Complex64),
	},
	{
		Schema: "aten::eq.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Bools,
	},
	{
		Schema: "aten::eq.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Bools,
	},
	{
		Schema: "aten::erf.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Floats,
	},
	{
		Schema: "aten::exp.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Floats,
	},
	{
		Schema: "aten::expand_copy.out(Tensor self, SymInt[] size, *, bool implicit=False, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool | ops.Uints | ops.Set(ops.Complex64, ops.Complex128, ops.Float8E4M3FN, ops.Float8E5M2),
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::expm1.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Floats,
	},
	{
		Schema: "aten::fill.Scalar_out(Tensor self, Scalar value, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool,
	},
	{
		Schema: "aten::fill.Tensor_out(Tensor self, Tensor value, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool,
	},
	{
		Schema: "aten::flip.out(Tensor self, int[] dims, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool,
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::floor.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Floats,
		Notes:  "Integers go through floating point.",
	},
	{
		Schema: "aten::floor_divide.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Real,
		Notes:  "Quotients of floats that are infinite or zero by zero differ from torch.",
	},
	{
		Schema: "aten::fmod.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Real,
		Faults: []string{ops.FaultWideInteger, ops.FaultScalarRange},
		Notes:  "A scalar outside the range of an integer type is wrapped.",
	},
	{
		Schema: "aten::fmod.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Real,
		Faults: []string{ops.FaultWideInteger},
	},
	{
		Schema: "aten::full.out(SymInt[] size, Scalar fill_value, *, Tensor(a!) out) -> Tensor(a!)",
		Out:    ops.RealBool,
	},
	{
		Schema: "aten::full_like.out(Tensor self, Scalar fill_value, *, MemoryFormat? memory_format=None, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool | ops.Set(ops.Complex64), Out: ops.RealBool,
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::gather.out(Tensor self, int dim, Tensor index, *, bool sparse_grad=False, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool,
		Faults: []string{ops.FaultChannelsLast, ops.FaultIndex64},
	},
	{
		Schema: "aten::ge.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Bools,
	},
	{
		Schema: "aten::ge.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Bools,
	},
	{
		Schema: "aten::gelu.out(Tensor self, *, str approximate='none', Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Floats,
	},
	{
		Schema: "aten::glu.out(Tensor self, int dim=-1, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Floats,
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::grid_sampler_2d.out(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Floats,
		Faults: []string{ops.FaultHalfSum, ops.FaultChannelsLast},
		Notes:  "A NaN in the grid reads as outside; half precision computes in half precision.",
	},
	{
		Schema: "aten::gt.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Bools,
	},
	{
		Schema: "aten::gt.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Bools,
	},
	{
		Schema: "aten::hardtanh.out(Tensor self, Scalar min_val=-1, Scalar max_val=1, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Real,
	},
	{
		Schema: "aten::index.Tensor_out(Tensor self, Tensor?[] indices, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool | ops.Set(ops.Complex64),
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::index_put.out(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool,
	},
	{
		Schema: "aten::index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor(a!)",
		DTypes: ops.RealBool,
	},
	{
		Schema: "aten::index_select.out(Tensor self, int dim, Tensor index, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool | ops.Uints | ops.Set(ops.Complex64, ops.Complex128, ops.Float8E4M3FN, ops.Float8E5M2),
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::isinf.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Bools,
	},
	{
		Schema: "aten::isnan.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Bools,
	},
	{
		Schema: "aten::le.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Bools,
	},
	{
		Schema: "aten::le.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Bools,
	},
	{
		Schema: "aten::leaky_relu.out(Tensor self, Scalar negative_slope=0.01, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Floats,
	},
	{
		Schema: "aten::lift_fresh_copy.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Uints | ops.Set(ops.Int64, ops.Float32, ops.Complex128, ops.Float8E4M3FN, ops.Float8E5M2),
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::linear.out(Tensor input, Tensor weight, Tensor? bias=None, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Floats,
		Faults: []string{ops.FaultVector, ops.FaultChannelsLast},
	},
	{
		Schema: "aten::log.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Floats,
	},
	{
		Schema: "aten::log10.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Floats,
	},
	{
		Schema: "aten::log1p.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Floats,
	},
	{
		Schema: "aten::log2.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Floats,
	},
	{
		Schema: "aten::logical_and.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Bools,
	},
	{
		Schema: "aten::logical_not.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Bools,
	},
	{
		Schema: "aten::logical_or.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Bools,
	},
	{
		Schema: "aten::logical_xor.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Bools,
	},
	{
		Schema: "aten::logit.out(Tensor self, float? eps=None, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Ints | ops.Bools | ops.Set(ops.Float32, ops.Float64), Out: ops.Set(ops.Float32, ops.Float64),
		Notes: "Half precision is refused.",
	},
	{
		Schema: "aten::lt.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Bools,
	},
	{
		Schema: "aten::lt.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Bools,
	},
	{
		Schema: "aten::masked_fill.Scalar_out(Tensor self, Tensor mask, Scalar value, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Floats,
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::masked_scatter.out(Tensor self, Tensor mask, Tensor source, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool,
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::masked_select.out(Tensor self, Tensor mask, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool,
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::max.dim_max(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) max, Tensor(b!) max_values) -> (Tensor(a!) values, Tensor(b!) indices)",
		DTypes: ops.RealBool,
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::max.unary_out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool,
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::max_pool2d_with_indices.out(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False, *, Tensor(a!) out, Tensor(b!) indices) -> (Tensor(a!), Tensor(b!))",
		DTypes: ops.Real,
		Faults: []string{ops.FaultNaN},
		Notes:  "A NaN in a window is passed over; torch returns it.",
	},
	{
		Schema: "aten::max_pool2d_with_indices_backward.grad_input(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, int[2] dilation, bool ceil_mode, Tensor indices, *, Tensor(a!) grad_input) -> Tensor(a!)",
		DTypes: ops.Floats,
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::maximum.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool,
	},
	{
		Schema: "aten::mean.dtype_out(Tensor self, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Floats,
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::mean.out(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Floats,
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::min.dim_min(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) min, Tensor(b!) min_indices) -> (Tensor(a!) values, Tensor(b!) indices)",
		DTypes: ops.RealBool,
	},
	{
		Schema: "aten::min.unary_out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool,
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::minimum.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool,
	},
	{
		Schema: "aten::mm.out(Tensor self, Tensor mat2, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Real,
	},
	{
		Schema: "aten::mul.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool,
	},
	{
		Schema: "aten::mul.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.RealBool | ops.Set(ops.Complex64, ops.Complex128),
	},
	{
		Schema: "aten::narrow_copy.out(Tensor self, int dim, SymInt start, SymInt length, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool | ops.Uints | ops.Set(ops.Complex64, ops.Complex128, ops.Float8E4M3FN, ops.Float8E5M2),
		Faults: []string{ops.FaultChannelsLast, ops.FaultNegativeDim, ops.FaultNegativeStart},
	},
	{
		Schema: "aten::native_dropout.out(Tensor input, float p, bool? train, *, Tensor(a!) out0, Tensor(b!) out1) -> (Tensor(a!), Tensor(b!))",
		DTypes: ops.Floats | ops.Uints | ops.Set(ops.Complex128, ops.Float8E4M3FN, ops.Float8E5M2),
		Notes:  "Training draws random numbers.",
	},
	{
		Schema: "aten::native_group_norm.out(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, float eps, *, Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2) -> (Tensor(a!), Tensor(b!), Tensor(c!))",
		DTypes: ops.Floats,
		Faults: []string{ops.FaultChannelsLast, ops.FaultMixedDType, ops.FaultDouble, ops.FaultHalfEps},
		Notes:  "Weight and bias must have the input's type. The variance is a difference of squares: an input whose mean is a hundred times its spread loses its digits.",
	},
	{
		Schema: "aten::native_layer_norm.out(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps, *, Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2) -> (Tensor(a!), Tensor(b!), Tensor(c!))",
		DTypes: ops.Floats,
		Faults: []string{ops.FaultChannelsLast, ops.FaultMixedDType, ops.FaultDouble, ops.FaultHalf},
		Notes:  "Weight and bias must have the input's type. The variance is a difference of squares: an input whose mean is a hundred times its spread loses its digits. Half precision is wrong from 256 elements a row on.",
	},
	{
		Schema: "aten::ne.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Bools,
	},
	{
		Schema: "aten::ne.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Bools,
	},
	{
		Schema: "aten::neg.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Real,
	},
	{
		Schema: "aten::nonzero.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Set(ops.Int64),
	},
	{
		Schema: "aten::ones.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)",
		Out:    ops.RealBool,
	},
	{
		Schema: "aten::permute_copy.out(Tensor self, int[] dims, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool | ops.Set(ops.Complex64, ops.Complex128),
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::pixel_shuffle.out(Tensor self, int upscale_factor, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool | ops.Set(ops.Complex64, ops.Complex128),
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::pixel_unshuffle.out(Tensor self, int downscale_factor, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool | ops.Uints | ops.Set(ops.Complex64, ops.Complex128, ops.Float8E4M3FN, ops.Float8E5M2),
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::pow.Scalar_out(Scalar self, Tensor exponent, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Real,
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::pow.Tensor_Scalar_out(Tensor self, Scalar exponent, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Real,
		Faults: []string{ops.FaultWideInteger},
		Notes:  "int64 above 2^53 loses low bits.",
	},
	{
		Schema: "aten::pow.Tensor_Tensor_out(Tensor self, Tensor exponent, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Real,
		Faults: []string{ops.FaultNegativeExponent},
		Notes:  "Integers with a negative exponent give the lowest value, torch gives 0.",
	},
	{
		Schema: "aten::prod.int_out(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Floats | ops.Set(ops.Int64),
	},
	{
		Schema: "aten::prod.out(Tensor self, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Floats | ops.Set(ops.Int64),
	},
	{
		Schema: "aten::rand.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)",
		Out:    ops.Floats,
	},
	{
		Schema: "aten::randn.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)",
		Out:    ops.Floats,
	},
	{
		Schema: "aten::reciprocal.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Floats,
	},
	{
		Schema: "aten::reflection_pad1d.out(Tensor self, SymInt[2] padding, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Real | ops.Set(ops.Complex64, ops.Complex128),
	},
	{
		Schema: "aten::reflection_pad2d.out(Tensor self, SymInt[4] padding, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Real | ops.Set(ops.Complex64, ops.Complex128),
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::reflection_pad3d.out(Tensor self, SymInt[6] padding, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Real | ops.Set(ops.Complex64, ops.Complex128),
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::relu.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Real,
	},
	{
		Schema: "aten::remainder.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Floats | ops.Set(ops.Uint8, ops.Int64),
		Faults: []string{ops.FaultDouble, ops.FaultSignOfDividend},
		Notes:  "Integers follow the sign of the dividend.",
	},
	{
		Schema: "aten::remainder.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Real,
		Faults: []string{ops.FaultDouble, ops.FaultSignOfDividend},
		Notes:  "Integers follow the sign of the dividend.",
	},
	{
		Schema: "aten::repeat.out(Tensor self, SymInt[] repeats, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool | ops.Uints | ops.Set(ops.Complex64, ops.Complex128, ops.Float8E4M3FN, ops.Float8E5M2),
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::repeat_interleave.Tensor_out(Tensor repeats, *, SymInt? output_size=None, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Set(ops.Int64),
	},
	{
		Schema: "aten::replication_pad1d.out(Tensor self, SymInt[2] padding, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Real | ops.Set(ops.Complex64, ops.Complex128),
	},
	{
		Schema: "aten::replication_pad2d.out(Tensor self, SymInt[4] padding, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Real | ops.Set(ops.Complex64, ops.Complex128),
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::replication_pad3d.out(Tensor self, SymInt[6] padding, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Real | ops.Set(ops.Complex64, ops.Complex128),
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::roll.out(Tensor self, SymInt[1] shifts, int[1] dims=[], *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool | ops.Uints | ops.Set(ops.Complex128, ops.Float8E4M3FN, ops.Float8E5M2),
		Faults: []string{ops.FaultChannelsLast, ops.FaultNoDims},
		Notes:  "Every shift needs its dimension: a roll of the flattened tensor is refused.",
	},
	{
		Schema: "aten::round.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Floats,
		Notes:  "Integers go through floating point.",
	},
	{
		Schema: "aten::rsqrt.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Floats,
	},
	{
		Schema: "aten::rsub.Scalar_out(Tensor self, Scalar other, Scalar alpha=1, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Real,
	},
	{
		Schema: "aten::scalar_tensor.out(Scalar s, *, Tensor(a!) out) -> Tensor(a!)",
		Out:    ops.RealBool,
	},
	{
		Schema: "aten::scatter.src_out(Tensor self, int dim, Tensor index, Tensor src, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool,
		Faults: []string{ops.FaultChannelsLast, ops.FaultIndex64},
	},
	{
		Schema: "aten::scatter.value_out(Tensor self, int dim, Tensor index, Scalar value, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Set(ops.Int64),
		Faults: []string{ops.FaultChannelsLast, ops.FaultIndex64},
	},
	{
		Schema: "aten::scatter_add.out(Tensor self, int dim, Tensor index, Tensor src, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool,
		Faults: []string{ops.FaultIndex64},
	},
	{
		Schema: "aten::select_copy.int_out(Tensor self, int dim, SymInt index, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool | ops.Uints | ops.Set(ops.Complex64, ops.Complex128, ops.Float8E4M3FN, ops.Float8E5M2),
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::select_scatter.out(Tensor self, Tensor src, int dim, SymInt index, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool,
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::sigmoid.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Floats,
	},
	{
		Schema: "aten::sign.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool,
		Faults: []string{ops.FaultNaN},
		Notes:  "The sign of a NaN is NaN; torch gives 0.",
	},
	{
		Schema: "aten::sin.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Floats,
	},
	{
		Schema: "aten::sinh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Floats,
	},
	{
		Schema: "aten::slice_copy.Tensor_out(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool | ops.Uints | ops.Set(ops.Complex64, ops.Complex128, ops.Float8E4M3FN, ops.Float8E5M2),
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::slice_scatter.out(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool,
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::split_copy.Tensor_out(Tensor self, SymInt split_size, int dim=0, *, Tensor(a!)[] out) -> ()",
		DTypes: ops.RealBool,
		Faults: []string{ops.FaultChannelsLast, ops.FaultNoResize},
	},
	{
		Schema: "aten::split_with_sizes_copy.out(Tensor self, SymInt[] split_sizes, int dim=0, *, Tensor(a!)[] out) -> ()",
		DTypes: ops.RealBool,
	},
	{
		Schema: "aten::sqrt.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Floats,
	},
	{
		Schema: "aten::squeeze_copy.dim_out(Tensor self, int dim, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool | ops.Uints | ops.Set(ops.Complex64, ops.Complex128, ops.Float8E4M3FN, ops.Float8E5M2),
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::squeeze_copy.dims_out(Tensor self, int[] dim, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool | ops.Uints | ops.Set(ops.Complex64, ops.Complex128, ops.Float8E4M3FN, ops.Float8E5M2),
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::stack.out(Tensor[] tensors, int dim=0, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool,
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::sub.Scalar_out(Tensor self, Scalar other, Scalar alpha=1, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Real,
	},
	{
		Schema: "aten::sub.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Real | ops.Set(ops.Complex64),
		Notes:  "A uint8 tensor with a negative alpha is refused.",
	},
	{
		Schema: "aten::sum.IntList_out(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool | ops.Set(ops.Complex64, ops.Complex128), Out: ops.Real | ops.Set(ops.Complex64, ops.Complex128),
		Faults: []string{ops.FaultChannelsLast, ops.FaultOneDim, ops.FaultRank0},
		Notes:  "Over one dimension, tensors of the result's type are summed in single precision; over several they are not.",
	},
	{
		Schema: "aten::sym_numel(Tensor self) -> SymInt",
		Notes:  "The last argument receives the int.",
	},
	{
		Schema: "aten::sym_size.int(Tensor self, int dim) -> SymInt",
		Faults: []string{ops.FaultNegativeDim},
		Notes:  "The last argument receives the int.",
	},
	{
		Schema: "aten::t_copy.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool | ops.Set(ops.Complex64, ops.Complex128),
	},
	{
		Schema: "aten::tan.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Floats,
	},
	{
		Schema: "aten::tanh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool, Out: ops.Floats,
	},
	{
		Schema: "aten::topk.values(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True, *, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)",
		DTypes: ops.Real,
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::transpose_copy.int_out(Tensor self, int dim0, int dim1, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool | ops.Set(ops.Complex64, ops.Complex128),
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::tril.out(Tensor self, SymInt diagonal=0, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool,
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::trunc.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Floats,
		Notes:  "Integers go through floating point.",
	},
	{
		Schema: "aten::unbind_copy.int_out(Tensor self, int dim=0, *, Tensor(a!)[] out) -> ()",
		DTypes: ops.RealBool,
		Faults: []string{ops.FaultChannelsLast, ops.FaultNoResize},
	},
	{
		Schema: "aten::unfold_copy.out(Tensor self, int dimension, int size, int step, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool,
		Faults: []string{ops.FaultChannelsLast, ops.FaultRank0},
	},
	{
		Schema: "aten::unsqueeze_copy.out(Tensor self, int dim, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool | ops.Uints | ops.Set(ops.Complex64, ops.Complex128, ops.Float8E4M3FN, ops.Float8E5M2),
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::upsample_bilinear2d.vec_out(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Floats,
		Notes:  "float64 computes in float32.",
	},
	{
		Schema: "aten::upsample_nearest2d.vec_out(Tensor input, SymInt[]? output_size, float[]? scale_factors, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Floats,
	},
	{
		Schema: "aten::var.correction_out(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Floats,
		Faults: []string{ops.FaultHalfSum},
		Notes:  "bfloat16 accumulates in bfloat16, off by 3 %.",
	},
	{
		Schema: "aten::var.out(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Floats,
		Faults: []string{ops.FaultHalfSum, ops.FaultChannelsLast},
	},
	{
		Schema: "aten::var_mean.correction_out(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False, Tensor(a!) out0, Tensor(b!) out1) -> (Tensor(a!), Tensor(b!))",
		DTypes: ops.Floats,
		Faults: []string{ops.FaultHalfSum},
		Notes:  "bfloat16 accumulates in bfloat16, off by 3 %.",
	},
	{
		Schema: "aten::view_as_real_copy.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Set(ops.Complex64, ops.Complex128), Out: ops.Set(ops.Float32, ops.Float64),
	},
	{
		Schema: "aten::view_copy.out(Tensor self, SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool | ops.Uints | ops.Set(ops.Complex64, ops.Complex128, ops.Float8E4M3FN, ops.Float8E5M2),
		Faults: []string{ops.FaultChannelsLast},
	},
	{
		Schema: "aten::where.self_out(Tensor condition, Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Bools, Out: ops.RealBool,
		Faults: []string{ops.FaultZeroDimPromotion},
		Notes:  "The result must have the type that promotion gives without torch's exception for 0-d operands.",
	},
	{
		Schema: "aten::zeros.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)",
		Out:    ops.RealBool | ops.Set(ops.Complex64),
	},
	{
		Schema: "dim_order_ops::_clone_dim_order.out(Tensor self, *, bool non_blocking=False, int[]? dim_order=None, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool,
		Faults: []string{ops.FaultNonBlocking},
		Notes:  "The dim order given must be the result's, contiguous or channels-last; without one the orders must agree.",
	},
	{Schema: "dim_order_ops::_empty_dim_order.out(int[] size, *, int[]? dim_order=None, Tensor(a!) out) -> Tensor(a!)"},
	{
		Schema: "dim_order_ops::_to_dim_order_copy.out(Tensor self, *, bool non_blocking=False, int[]? dim_order=None, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.RealBool | ops.Set(ops.Complex64),
		Faults: []string{ops.FaultNonBlocking},
		Notes:  "The dim order given must be the result's, contiguous or channels-last; without one the orders must agree. Complex converts to complex only.",
	},
	{
		Schema: "et_copy::_d2h_copy.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		Faults: []string{ops.FaultHost},
		Notes:  "Refuses when both sides are host memory.",
	},
	{
		Schema: "et_copy::_h2d_copy.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
		Faults: []string{ops.FaultHost},
		Notes:  "Refuses when both sides are host memory.",
	},
	{Schema: "executorch_prim::add.Scalar(Scalar a, Scalar b) -> Scalar"},
	{
		Schema: "executorch_prim::ceil.Scalar(Scalar a) -> Scalar",
		Notes:  "Floats only.",
	},
	{Schema: "executorch_prim::eq.Scalar(Scalar a, Scalar b) -> bool"},
	{
		Schema: "executorch_prim::et_copy_index.tensor(Tensor(a!) copy_to, Tensor copy_from, SymInt index) -> Tensor(a!)",
		Notes:  "Copies copy_from to row index of copy_to, growing it to index+1 rows; takes no out argument.",
	},
	{
		Schema: "executorch_prim::et_view.default(Tensor self, SymInt[] size, Tensor(a!) out) -> Tensor(a!)",
		Notes:  "The result may share memory with self; sizes may hold one -1.",
	},
	{Schema: "executorch_prim::floordiv.Scalar(Scalar a, Scalar b) -> Scalar"},
	{
		Schema: "executorch_prim::floordiv.int(SymInt a, SymInt b) -> SymInt",
		Faults: []string{ops.FaultSignOfDividend},
		Notes:  "Rounds -7 // 2 to -3; floordiv.Scalar is right.",
	},
	{Schema: "executorch_prim::ge.Scalar(Scalar a, Scalar b) -> bool"},
	{Schema: "executorch_prim::gt.Scalar(Scalar a, Scalar b) -> bool"},
	{Schema: "executorch_prim::le.Scalar(Scalar a, Scalar b) -> bool"},
	{Schema: "executorch_prim::lt.Scalar(Scalar a, Scalar b) -> bool"},
	{
		Schema: "executorch_prim::mod.Scalar(SymInt a, SymInt b) -> SymInt",
		Faults: []string{ops.FaultSignOfDividend},
		Notes:  "Ints only, with the sign of the dividend.",
	},
	{
		Schema: "executorch_prim::mod.int(SymInt a, SymInt b) -> SymInt",
		Faults: []string{ops.FaultSignOfDividend},
		Notes:  "With the sign of the dividend.",
	},
	{Schema: "executorch_prim::mul.Scalar(Scalar a, Scalar b) -> Scalar"},
	{
		Schema: "executorch_prim::neg.Scalar(Scalar a) -> Scalar",
		Notes:  "Not for bools.",
	},
	{
		Schema: "executorch_prim::round.Scalar(Scalar a) -> Scalar",
		Notes:  "Floats only; half to even.",
	},
	{Schema: "executorch_prim::sub.Scalar(Scalar a, Scalar b) -> Scalar"},
	{Schema: "executorch_prim::sym_float.Scalar(Scalar a) -> Scalar"},
	{Schema: "executorch_prim::sym_int.Scalar(Scalar a) -> Scalar"},
	{Schema: "executorch_prim::sym_ite.Scalar(Scalar b, Scalar t, Scalar f) -> Scalar"},
	{
		Schema: "executorch_prim::sym_max.Scalar(Scalar a, Scalar b) -> Scalar",
		Notes:  "Ints only.",
	},
	{
		Schema: "executorch_prim::sym_min.Scalar(Scalar a, Scalar b) -> Scalar",
		Notes:  "Ints only.",
	},
	{
		Schema: "executorch_prim::sym_not.Scalar(Scalar a) -> bool",
		Notes:  "Bools only.",
	},
	{Schema: "executorch_prim::truediv.Scalar(Scalar a, Scalar b) -> Scalar"},
	{
		Schema: "executorch_prim::trunc.Scalar(Scalar a) -> Scalar",
		Notes:  "Floats only.",
	},
	{
		Schema: "quantized_decomposed::add.out(Tensor a, float a_scale, int a_zero_point, int a_quant_min, int a_quant_max, Tensor b, float b_scale, int b_zero_point, int b_quant_min, int b_quant_max, float out_scale, int out_zero_point, int out_quant_min, int out_quant_max, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Set(ops.Uint8),
		Notes:  "uint8 only.",
	},
	{
		Schema: "quantized_decomposed::choose_qparams.Tensor_out(Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype, *, Tensor(a!) scale_out, Tensor(b!) zero_point_out) -> (Tensor(a!), Tensor(b!))",
		DTypes: ops.Set(ops.Float32), Out: ops.Set(ops.Float64),
		Notes: "Scale float64, zero point int64, one element each. A dynamic quantization in half precision aborts the process.",
	},
	{
		Schema: "quantized_decomposed::choose_qparams_per_token_asymmetric.out(Tensor input, ScalarType dtype, *, Tensor(a!) scale_out, Tensor(b!) zero_point_out) -> (Tensor(a!), Tensor(b!))",
		DTypes: ops.Set(ops.Float32), Out: ops.Set(ops.Float64),
		Faults: []string{ops.FaultWideScales},
	},
	{
		Schema: "quantized_decomposed::dequantize_per_channel.out(Tensor input, Tensor scales, Tensor? zero_points, int axis, int quant_min, int quant_max, ScalarType dtype, *, ScalarType? out_dtype=None, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Set(ops.Uint8, ops.Int8, ops.Int16, ops.Int32, ops.Uint16), Out: ops.Set(ops.Float16, ops.Float32, ops.Float64),
		Notes: "Scales float32 or float64, zero points int32, int64 or none.",
	},
	{
		Schema: "quantized_decomposed::dequantize_per_tensor.Tensor_out(Tensor input, Tensor scale, Tensor zero_point, int quant_min, int quant_max, ScalarType dtype, *, ScalarType? out_dtype=None, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Set(ops.Uint8, ops.Int8, ops.Int16, ops.Int32, ops.Uint16), Out: ops.Set(ops.Float16, ops.Float32, ops.Float64),
		Notes: "Scale float64, zero point int64, one element each.",
	},
	{
		Schema: "quantized_decomposed::dequantize_per_tensor.out(Tensor input, float scale, int zero_point, int quant_min, int quant_max, ScalarType dtype, *, ScalarType? out_dtype=None, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Set(ops.Uint8, ops.Int8, ops.Int16, ops.Int32, ops.Uint16), Out: ops.Set(ops.Float16, ops.Float32, ops.Float64),
	},
	{
		Schema: "quantized_decomposed::dequantize_per_token.out(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, ScalarType dtype, ScalarType output_dtype, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Set(ops.Int8), Out: ops.Set(ops.Float16, ops.Float32),
		Notes: "Scales float32 or float64, zero points int32 or int64.",
	},
	{
		Schema: "quantized_decomposed::embedding_2bit.dtype_out(Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, int weight_quant_min, int weight_quant_max, Tensor indices, ScalarType? dtype=None, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Set(ops.Uint8), Out: ops.Set(ops.Float16, ops.BFloat16, ops.Float32),
		Notes: "Four values a byte, the first in the low bits, stored plus 2. Zero points have the type of the result.",
	},
	{
		Schema: "quantized_decomposed::embedding_2bit.out(Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, int weight_quant_min, int weight_quant_max, Tensor indices, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Set(ops.Uint8), Out: ops.Set(ops.Float16, ops.BFloat16, ops.Float32),
		Notes: "Four values a byte, the first in the low bits, stored plus 2. Zero points have the type of the result.",
	},
	{
		Schema: "quantized_decomposed::embedding_4bit.dtype_out(Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, int weight_quant_min, int weight_quant_max, Tensor indices, ScalarType? dtype=None, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Set(ops.Uint8), Out: ops.Set(ops.Float16, ops.BFloat16, ops.Float32),
		Notes: "Two values a byte, the first in the high half, stored plus 8. Zero points have the type of the result.",
	},
	{
		Schema: "quantized_decomposed::embedding_4bit.out(Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, int weight_quant_min, int weight_quant_max, Tensor indices, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Set(ops.Uint8), Out: ops.Set(ops.Float16, ops.BFloat16, ops.Float32),
		Notes: "Two values a byte, the first in the high half, stored plus 8. Zero points have the type of the result.",
	},
	{
		Schema: "quantized_decomposed::embedding_byte.dtype_out(Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, int weight_quant_min, int weight_quant_max, Tensor indices, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Set(ops.Uint8, ops.Int8), Out: ops.Set(ops.Float16, ops.BFloat16, ops.Float32),
		Faults: []string{ops.FaultIndex64},
		Notes:  "Zero points have the type of the result. Groups along the columns.",
	},
	{
		Schema: "quantized_decomposed::embedding_byte.out(Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, int weight_quant_min, int weight_quant_max, Tensor indices, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Set(ops.Uint8, ops.Int8), Out: ops.Set(ops.Float16, ops.BFloat16, ops.Float32),
		Faults: []string{ops.FaultIndex64},
		Notes:  "Zero points have the type of the result. Groups along the columns.",
	},
	{
		Schema: "quantized_decomposed::mixed_linear.out(Tensor input, Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, ScalarType? dtype=None, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Set(ops.Float16, ops.Float32),
		Notes:  "Weight int8 with one scale a row, no zero points; scales of the input's type.",
	},
	{
		Schema: "quantized_decomposed::mixed_mm.out(Tensor input, Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Set(ops.Float16, ops.Float32),
		Notes:  "Weight int8 with one scale a row of the reduced dimension, no zero points; scales of the input's type.",
	},
	{
		Schema: "quantized_decomposed::quantize_per_channel.out(Tensor input, Tensor scales, Tensor zero_points, int axis, int quant_min, int quant_max, ScalarType dtype, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Set(ops.Float16, ops.Float32, ops.Float64), Out: ops.Set(ops.Uint8, ops.Int8, ops.Int16, ops.Int32, ops.Uint16),
		Faults: []string{ops.FaultWideScales},
	},
	{
		Schema: "quantized_decomposed::quantize_per_tensor.Tensor_out(Tensor input, Tensor scale, Tensor zero_point, int quant_min, int quant_max, ScalarType dtype, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Set(ops.Float16, ops.Float32, ops.Float64), Out: ops.Set(ops.Uint8, ops.Int8, ops.Int16, ops.Int32, ops.Uint16),
		Notes: "Scale float64, zero point int64, one element each.",
	},
	{
		Schema: "quantized_decomposed::quantize_per_tensor.out(Tensor input, float scale, int zero_point, int quant_min, int quant_max, ScalarType dtype, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Set(ops.Float16, ops.Float32, ops.Float64), Out: ops.Set(ops.Uint8, ops.Int8, ops.Int16, ops.Int32, ops.Uint16),
	},
	{
		Schema: "quantized_decomposed::quantize_per_token.out(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, ScalarType dtype, *, Tensor(a!) out) -> Tensor(a!)",
		DTypes: ops.Set(ops.Float16, ops.Float32), Out: ops.Set(ops.Int8),
		Faults: []string{ops.FaultWideScales},
	},
}
