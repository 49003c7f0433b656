package main

import (
	"io"
	"strings"

	"github.com/lathe-ml/lathe"
	"github.com/lathe-ml/lathe/ir"
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
	if len(list) == 0 {
		return &ir.Diag{Code: "no-op", Msg: "no operator's name contains " + strings.Join(c.Words, " or "), Try: "lathe ops lists them all"}
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
