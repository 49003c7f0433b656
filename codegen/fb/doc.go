// Package fb holds our FlatBuffers schemas and what the code generated from them
// shares: a decoder that trusts no byte and an encoder that keeps its first fault.
//
// Each schema NAME.fbs has a package codegen/fb/NAME, written by tools/fbgen. The
// schemas say the wire facts of formats that others define; fields are numbered by
// order, so they are only ever appended to.
package fb

//go:generate go run ../../tools/fbgen -o program/zprogram.go program.fbs
//go:generate go run ../../tools/fbgen -o flattensor/zflattensor.go flattensor.fbs
//go:generate go run ../../tools/fbgen -o xnnpack/zxnnpack.go xnnpack.fbs
//go:generate go run ../../tools/fbgen -o mlx/zmlx.go mlx.fbs
//go:generate go run ../../tools/fbgen -o internal/fbtest/zfbtest.go internal/fbtest.fbs
