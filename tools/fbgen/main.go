// Command fbgen writes the Go types of a FlatBuffers schema: a struct per table and
// struct, an interface per union, and code that packs them with the flatbuffers
// builder and reads them back from bytes that nobody has checked.
//
//	fbgen -o program/zprogram.go program.fbs
//
// It differs from flatc's output in what Lathe needs: force_align on vectors is kept,
// reading never panics and is bounded, and the structs are plain values.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	out := flag.String("o", "", "file to write; its folder names the package")
	flag.Parse()
	if flag.NArg() != 1 || *out == "" {
		fmt.Fprintln(os.Stderr, "usage: fbgen -o FILE.go SCHEMA.fbs")
		os.Exit(2)
	}
	if err := run(*out, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "fbgen:", err)
		os.Exit(1)
	}
}

func run(out, path string) error {
	s, err := parse(path)
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(filepath.Dir(out))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	return generate(s, filepath.Base(dir), filepath.Base(path)).Save(out)
}
