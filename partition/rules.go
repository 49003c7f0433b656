package partition

import (
	"maps"

	"github.com/lathe-ml/lathe/ops"
)

// Rules are a backend's, by operator.
type Rules[R any] map[ops.ID]R

// JoinRules is the rules of several families as one table.
func JoinRules[R any](families ...map[ops.ID]R) Rules[R] {
	all := Rules[R]{}
	for _, f := range families {
		maps.Copy(all, f)
	}
	return all
}

// Of is the rule of an operator, or of the one that means the same and has the same arguments; false where neither has
// one.
func (r Rules[R]) Of(id ops.ID) (R, bool) {
	if id == ops.Unknown {
		var none R
		return none, false
	}
	if rule, ok := r[id]; ok {
		return rule, true
	}
	i := id.Info()
	if i.SameAs == ops.Unknown || len(i.Schema.Args) != len(i.SameAs.Info().Schema.Args) {
		var none R
		return none, false
	}
	rule, ok := r[i.SameAs]
	return rule, ok
}
