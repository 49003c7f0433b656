// Package table is the operator table: one row per operator, grouped in files by family.
package table

import "github.com/lathe-ml/lathe/ops"

// Rows gives every row; the order is of no meaning.
func Rows() []ops.Row {
	var all []ops.Row
	for _, f := range families {
		all = append(all, f...)
	}
	return all
}

// families lists the row groups, one per file.
var families = [][]ops.Row{
	activation,
	alias,
	attention,
	compare,
	control,
	conv,
	create,
	custom,
	dimOrder,
	elementwiseBinary,
	elementwiseUnary,
	fft,
	index,
	loss,
	matmul,
	norm,
	pool,
	prim,
	quant,
	random,
	recurrent,
	reduce,
	resize,
	shape,
	sort,
	view,
}
