package schema

//go:generate go run ../../tools/pt2gen
