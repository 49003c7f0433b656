package program

import "github.com/lathe-ml/lathe/ir"

// faults are the conditions, by the keys of the kernel table, under which a kernel refuses or errs. Each tells why n meets
// the condition, "" where it does not.
var faults = map[string]func(n *ir.Node) string{}
