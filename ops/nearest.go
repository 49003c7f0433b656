package ops

import "slices"

// Nearest gives the names of the table that are most like name, best first, at most n, for messages about an unknown
// operator. Names that share less than half of their letters in order are left out.
func Nearest(name string, n int) []string {
	type near struct {
		name string
		d    int
	}
	var best []near
	for i := 1; i < len(infos); i++ {
		other := infos[i].Name
		limit := max(len(name), len(other)) / 2
		if len(best) == n && n > 0 {
			limit = min(limit, best[n-1].d-1)
		}
		if abs(len(name)-len(other)) > limit {
			continue
		}
		d := distance(name, other)
		if d > limit {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, d+1, func(b near, d int) int { return b.d - d })
		best = slices.Insert(best, at, near{other, d})
		if len(best) > n {
			best = best[:n]
		}
	}
	names := make([]string, len(best))
	for i, b := range best {
		names[i] = b.name
	}
	return names
}

func abs(x int) int { return max(x, -x) }

// distance counts the letters to insert, delete or replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diag := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			d := diag
			if a[i-1] != b[j-1] {
				d = 1 + min(diag, row[j], row[j-1])
			}
			diag, row[j] = row[j], d
		}
	}
	return row[len(b)]
}
