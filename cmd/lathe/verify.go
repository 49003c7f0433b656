package main

import (
	"fmt"
	"io"

	"github.com/lathe-ml/lathe"
	"github.com/lathe-ml/lathe/internal/etrt"
)

type verifyCmd struct {
	target
	data
	Model    string   `arg:"" help:"A .pt2 archive or IR text."`
	Method   string   `help:"The method to verify." placeholder:"NAME"`
	Pipeline string   `help:"The passes to check instead of the backend's." placeholder:"SPEC"`
	Skip     []string `help:"A pass to leave out." placeholder:"PASS"`
}

func (c *verifyCmd) Run(e *env) error {
	o := lathe.VerifyOptions{Method: c.Method, Seed: c.Seed}
	if err := c.options(&o.Compile); err != nil {
		return err
	}
	o.Compile.Inputs = []lathe.Input{{Path: c.Model}}
	o.Compile.Pipeline, o.Compile.Skip = c.Pipeline, c.Skip
	e.opts = o.Compile
	// A reference runner tells what the inputs are called and makes random ones.
	r, err := lathe.OpenRunner(e, c.Model, lathe.RunOptions{Engine: lathe.EngineReference, Method: c.Method, Seed: c.Seed})
	if err != nil {
		return err
	}
	s, err := c.load(r.Bind, r.Random)
	r.Close()
	if err != nil {
		return err
	}
	defer s.close()
	if o.Method == "" {
		o.Method = s.method
	}
	o.Calls, o.Want, o.Stateful, o.RTol, o.ATol = s.calls, s.want, s.stateful, s.rtol, s.atol
	o.Runtime, err = etrt.Open()
	if err != nil {
		o.Runtime = nil
		e.note(err.Error())
	}
	steps, err := lathe.Verify(e, o)
	perr := e.print(steps, func(w io.Writer) error {
		for _, st := range steps {
			text := "agrees"
			switch {
			case st.Skipped != "":
				text = "skipped: " + st.Skipped
			case st.Unchanged:
				text = "nothing changed"
			}
			if _, err := fmt.Fprintf(w, "%-28s %s\n", st.Name, text); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return perr
}
