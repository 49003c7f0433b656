package main

import (
	"fmt"

	"github.com/lathe-ml/lathe"
)

type kernelCmd struct {
	Stub kernelStubCmd `cmd:"" help:"Begin a kernel: a Metal source to fill in and a manifest, typed as the operator is."`
}

type kernelStubCmd struct {
	Op  string `arg:"" help:"The operator, such as aten.sinc."`
	Out string `short:"o" help:"The folder to write into; compile takes it as --kernels." default:"kernels" placeholder:"DIR"`
}

func (c *kernelStubCmd) Run(e *env) error {
	names, err := lathe.KernelStub(c.Op, c.Out)
	if err != nil {
		return err
	}
	for _, n := range names {
		if _, err := fmt.Fprintln(e.stdout, n); err != nil {
			return err
		}
	}
	return nil
}
