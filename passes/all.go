package passes

// All lists the passes of this package in the order of their names.
func All() []Pass {
	return []Pass{CSE, DCE}
}
