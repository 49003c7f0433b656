package main

import (
	"io"

	"github.com/lathe-ml/lathe"
)

type opsCmd struct {
	Words   []string `arg:"" optional:"" help:"Parts of names to look for."`
	Backend string   `help:"Tell which of them a backend takes, where types and arguments allow: ${backends}." enum:",${backends}" default:"" placeholder:"NAME"`
}

func (c *opsCmd) Run(e *env) error {
	list, err := lathe.Ops(c.Backend, c.Words...)
	if err != nil {
		return err
	}
	return e.print(list, func(w io.Writer) error { return lathe.WriteOps(w, list) })
}

type passesCmd struct {
	Backend string `help:"The pipeline of a backend: ${backends}." enum:",${backends}" default:"" placeholder:"NAME"`
}

func (c *passesCmd) Run(e *env) error {
	list, err := lathe.Passes(c.Backend)
	if err != nil {
		return err
	}
	return e.print(list, func(w io.Writer) error { return lathe.WritePasses(w, list) })
}
