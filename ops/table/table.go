// Package table is the operator table: one row per operator, grouped in files by family.
package table

import "github.com/lathe-ml/lathe/ops"

// Family is a group of rows: a file here and a page of docs/ops.
type Family struct {
	// Name is the file's name, Title the page's heading.
	Name, Title string
	Rows        []ops.Row
}

// Families gives the groups in order of name.
func Families() []Family { return families }

// Rows gives every row in order of family.
func Rows() []ops.Row {
	var all []ops.Row
	for _, f := range families {
		all = append(all, f.Rows...)
	}
	return all
}

var families = []Family{
	{"activation", "Activations", activation},
	{"alias", "Other names", alias},
	{"attention", "Attention", attention},
	{"compare", "Comparisons", compare},
	{"control", "Control flow and assertions", control},
	{"conv", "Convolutions", conv},
	{"create", "Factories", create},
	{"custom", "Custom operators", custom},
	{"dim_order", "Dimension order", dimOrder},
	{"elementwise_binary", "Element-wise functions of several operands", elementwiseBinary},
	{"elementwise_unary", "Element-wise functions of one operand", elementwiseUnary},
	{"fft", "Fourier transforms", fft},
	{"index", "Indexing, gathering and scattering", index},
	{"loss", "Losses", loss},
	{"matmul", "Matrix products and linear algebra", matmul},
	{"norm", "Normalisation", norm},
	{"pool", "Pooling", pool},
	{"prim", "Numbers", prim},
	{"quant", "Quantization", quant},
	{"random", "Random numbers", random},
	{"recurrent", "Recurrent networks", recurrent},
	{"reduce", "Reductions and cumulative functions", reduce},
	{"resize", "Resizing and sampling", resize},
	{"shape", "Joining, padding, copying and converting", shape},
	{"sort", "Sorting and distinct elements", sort},
	{"view", "Views", view},
}
