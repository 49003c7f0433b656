package ir

// RowMajor are the strides, in elements, of a contiguous tensor of those sizes.
func RowMajor(sizes []int64) []int64 {
	s := make([]int64, len(sizes))
	n := int64(1)
	for i := len(sizes) - 1; i >= 0; i-- {
		s[i] = n
		n *= max(sizes[i], 1)
	}
	return s
}

// Permuted is what stands in xs for each dimension after they are permuted: element i of the result is xs[perm[i]].
func Permuted[T any](xs []T, perm []int) []T {
	out := make([]T, len(perm))
	for i, p := range perm {
		out[i] = xs[p]
	}
	return out
}
