// Package interp is the reference interpreter: PyTorch's semantics of every operator, one file per operator family. It
// judges every pass.
package interp

// Call is what an operator's function sees.
type Call struct{}

// Value is a tensor, a number, a bool, a string or nil for None.
type Value any

// Fn computes an operator.
type Fn func(c *Call) ([]Value, error)
