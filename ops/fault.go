package ops

// Faults of runtime kernels, by key: Kernel.Faults lists those that apply. A program must not run into them; what cannot be
// steered around is refused at compile time.
const (
	// FaultChannelsLast: operands in channels-last order are refused or, for some, read in the wrong order. Kernels without it
	// take operands and result in channels-last order as long as all tensors of rank four have it.
	FaultChannelsLast = "channels-last"
	// FaultNegativeDim: a negative dimension aborts the process.
	FaultNegativeDim = "negative-dim"
	// FaultNegativePad: negative padding is refused.
	FaultNegativePad = "negative-pad"
	// FaultNegativeStart: a beginning counted from the end is refused.
	FaultNegativeStart = "negative-start"
	// FaultIndex64: index tensors must be int64.
	FaultIndex64 = "index-int64"
	// FaultSignOfDividend: integers of unlike sign give the remainder of truncating division, or the quotient off by one.
	FaultSignOfDividend = "sign-of-dividend"
	// FaultNegativeExponent: integers to a negative power are wrong.
	FaultNegativeExponent = "negative-exponent"
	// FaultOneDim: what is reduced over a single dimension is so in single precision.
	FaultOneDim = "one-dim"
	// FaultWideInteger: integers beyond 2^53 lose their low bits, or do not wrap as torch's do.
	FaultWideInteger = "wide-integer"
	// FaultMixedDType: tensors of unlike types, which torch takes, are refused or misread.
	FaultMixedDType = "mixed-dtype"
	// FaultNaN: a NaN does not do what torch does with it.
	FaultNaN = "nan"
	// FaultZeroDimPromotion: the result's type must be the promotion of all operands, 0-d ones included.
	FaultZeroDimPromotion = "zero-dim-promotion"
	// FaultScalarPromotion: an integer tensor with a float scalar is refused.
	FaultScalarPromotion = "scalar-promotion"
	// FaultScalarRange: scalars outside the range of the tensor's integer type are refused or wrap.
	FaultScalarRange = "scalar-range"
	// FaultRank0: a 0-d operand with a dimension given is refused or aborts the process.
	FaultRank0 = "rank-0"
	// FaultVector: operands of fewer than two dimensions are refused.
	FaultVector = "vector"
	// FaultBounds: bools are refused, and integers are computed with the fractions of the bounds.
	FaultBounds = "bounds"
	// FaultRankOver4: only operands of three or four dimensions.
	FaultRankOver4 = "rank-over-4"
	// FaultNoDims: leaving out the dimensions is refused.
	FaultNoDims = "no-dims"
	// FaultTraining: training mode is refused.
	FaultTraining = "training"
	// FaultTwoSided: two-sided spectra are refused.
	FaultTwoSided = "two-sided"
	// FaultMemoryFormat: any memory format but contiguous is refused, preserve included.
	FaultMemoryFormat = "memory-format"
	// FaultNonBlocking: non_blocking=True is refused.
	FaultNonBlocking = "non-blocking"
	// FaultNoResize: results keep the size they were planned with, so that a smaller actual size is refused.
	FaultNoResize = "no-resize"
	// FaultHalfSum: half precision sums in half precision, where torch sums in float32.
	FaultHalfSum = "half-sum"
	// FaultHalf: half precision comes out wrong.
	FaultHalf = "half"
	// FaultHalfEps: epsilon is rounded to the operand's type, in which a small one is zero.
	FaultHalfEps = "half-eps"
	// FaultDouble: float64 is computed in single precision.
	FaultDouble = "double"
	// FaultScales: factors that are not the quotients of the sizes are not heeded.
	FaultScales = "scales"
	// FaultWideScales: scales other than float64 and zero points other than int64 abort the process.
	FaultWideScales = "wide-scales"
	// FaultStrides: strides are counted in the operand's memory, which in a program is contiguous whatever the model says.
	FaultStrides = "strides"
	// FaultHost: copies between host buffers are refused.
	FaultHost = "host"
)
