package main

import (
	"fmt"
	"io"

	"github.com/lathe-ml/lathe"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/passes"
)

// verifyFlags are those of the commands that evaluate a model step by step.
type verifyFlags struct {
	target
	data
	Model    string   `arg:"" help:"A .pt2 archive or IR text."`
	Method   string   `help:"The method to look at." placeholder:"NAME"`
	Pipeline string   `help:"The passes to run instead of the backend's." placeholder:"SPEC"`
	Skip     []string `help:"A pass to leave out." placeholder:"PASS"`
}

// prepare gives the options; done gives back what the inputs lie in.
func (c *verifyFlags) prepare(e *env) (o lathe.VerifyOptions, done func(), err error) {
	o = lathe.VerifyOptions{Method: c.Method, Seed: c.seed()}
	if err := c.options(&o.Compile); err != nil {
		return o, nil, err
	}
	o.Compile.Inputs = []lathe.Input{{Path: c.Model}}
	o.Compile.Pipeline, o.Compile.Skip = c.Pipeline, c.Skip
	e.opts = o.Compile
	if f, err := lathe.Sniff(c.Model); err == nil && f != lathe.FormatPT2 && f != lathe.FormatIR {
		return o, nil, &ir.Diag{
			Code: "wrong-format", Msg: fmt.Sprintf("a .%s file has no steps to evaluate", f), Entry: c.Model,
			Try: "give the .pt2 archive that it was made from; lathe run compares a program with recorded outputs",
		}
	}
	// A reference runner tells what the inputs are called and makes random ones.
	r, err := lathe.OpenRunner(e, c.Model, lathe.RunOptions{Engine: lathe.EngineReference, Method: c.Method, Seed: c.seed()})
	if err != nil {
		return o, nil, err
	}
	defer r.Close()
	s, err := c.load(r)
	if err != nil {
		return o, nil, err
	}
	if o.Method == "" {
		o.Method = s.method
	}
	o.Calls, o.Want, o.Stateful, o.RTol, o.ATol = s.calls, s.want, s.stateful, s.rtol, s.atol
	return o, s.close, nil
}

type verifyCmd struct {
	verifyFlags
	Bisect string `help:"Rewrites to leave on, as golang.org/x/tools/cmd/bisect names them; it puts the pattern for PATTERN." placeholder:"PATTERN"`
}

func (c *verifyCmd) Run(e *env) error {
	o, done, err := c.prepare(e)
	if err != nil {
		return err
	}
	defer done()
	if o.Compile.Bisect, err = passes.ParseMatcher(c.Bisect); err != nil {
		return &lathe.UsageError{Err: err}
	}
	o.Compile.BisectOut = e.stderr
	if o.Judge, err = lathe.OpenJudge(o.Compile.Backend); err != nil {
		o.Judge, o.NoJudge = nil, err.Error()
	}
	steps, err := lathe.Verify(e, o)
	perr := e.print(steps, func(w io.Writer) error {
		for _, st := range steps {
			text := "agrees"
			if st.By != "" {
				text += ", in " + st.By
			}
			switch {
			case st.Skipped != "":
				text = "skipped: " + st.Skipped
			case st.Unchanged:
				text = "nothing changed"
			case st.Lossy != "":
				text = "differs as it may, " + st.Lossy
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
