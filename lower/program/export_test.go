package program

import (
	"maps"
	"slices"
)

// LayoutKernels are the kernels that channels-last values go through.
func LayoutKernels() []string {
	return slices.Sorted(maps.Keys(maps.Collect(func(yield func(string, bool) bool) {
		for _, m := range []map[string]bool{layoutFirst, layoutAll} {
			for k := range m {
				if !yield(k, true) {
					return
				}
			}
		}
	})))
}
