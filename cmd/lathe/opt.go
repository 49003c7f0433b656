package main

import (
	"io"

	"github.com/lathe-ml/lathe"
	"github.com/lathe-ml/lathe/ir/text"
	"github.com/lathe-ml/lathe/passes"
)

type optCmd struct {
	target
	In         string   `arg:"" help:"IR text, or an archive."`
	Pipeline   string   `help:"The passes to run; none without." placeholder:"SPEC"`
	Out        string   `short:"o" help:"The file to write; standard output without." placeholder:"OUT.ir"`
	PrintAfter []string `help:"Print the IR after a pass, or after all." placeholder:"PASS|all"`
}

func (c *optCmd) Run(e *env) error {
	o := &e.opts
	*o = lathe.Options{Inputs: []lathe.Input{{Path: c.In}}, Pipeline: c.Pipeline}
	if err := c.options(o); err != nil {
		return err
	}
	o.Hooks = append(o.Hooks, passes.VerifyHook())
	if err := printAfter(e, o, c.PrintAfter); err != nil {
		return err
	}
	m, err := lathe.Transform(e, *o)
	if err != nil {
		return err
	}
	defer m.Close()
	return e.output(c.Out, func(w io.Writer) error { return text.PrintProgram(w, m.Program) })
}
