package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/lathe-ml/lathe"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/text"
)

type diffCmd struct {
	A string `arg:"" help:"A .pt2, .ir or .pte file."`
	B string `arg:"" help:"Another."`
}

func (c *diffCmd) Run(e *env) error {
	d, err := lathe.Diff(c.A, c.B)
	if err != nil {
		return err
	}
	if d == "" {
		return nil
	}
	err = e.print(map[string]string{"diff": d}, func(w io.Writer) error {
		_, err := io.WriteString(w, d)
		return err
	})
	return errors.Join(err, errDiffers)
}

// errDiffers gives the exit code without a message: the difference was printed.
var errDiffers = errors.New("")

type bisectCmd struct{ verifyFlags }

func (c *bisectCmd) Run(e *env) error {
	o, done, err := c.prepare(e)
	if err != nil {
		return err
	}
	defer done()
	rs, err := lathe.Bisect(e, o)
	if err != nil {
		return noFault(err, c.Model)
	}
	return e.print(rs, func(w io.Writer) error {
		what := fmt.Sprintf("%d rewrites make it fail: with all others off and these on it does, without one of them it does not:", len(rs))
		if len(rs) == 1 {
			what = "One rewrite makes it fail: with all others off it does, without it it does not:"
		}
		if _, err := fmt.Fprintln(w, what); err != nil {
			return err
		}
		for _, r := range rs {
			if _, err := fmt.Fprintf(w, "%016x %s\n", r.ID, r.Text); err != nil {
				return err
			}
		}
		return nil
	})
}

func noFault(err error, path string) error {
	if errors.Is(err, lathe.ErrNoFault) || errors.Is(err, lathe.ErrNotRefused) {
		return &ir.Diag{Code: "no-fault", Msg: err.Error(), Entry: path, Try: "give the inputs, the backend or the passes with which it fails"}
	}
	return err
}

type reduceCmd struct {
	verifyFlags
	Refusal string `help:"Keep what makes compiling fail with this text, instead of what makes verifying fail." placeholder:"TEXT"`
	Out     string `short:"o" help:"The file to write; standard output without." placeholder:"OUT.ir"`
}

func (c *reduceCmd) Run(e *env) error {
	o, done, err := c.prepare(e)
	if err != nil {
		return err
	}
	defer done()
	var g *ir.Graph
	if c.Refusal != "" {
		g, err = lathe.ReduceRefusal(e, o, func(err error) bool { return strings.Contains(err.Error(), c.Refusal) })
	} else {
		g, err = lathe.ReduceModel(e, o)
	}
	if err != nil {
		return noFault(err, c.Model)
	}
	return e.output(c.Out, func(w io.Writer) error { return text.Print(w, g) })
}

type viewCmd struct {
	File string `arg:"" help:"A .pt2, .ir or .pte file."`
	Out  string `short:"o" help:"The page to write; by default the file's name with .html." placeholder:"OUT.html"`
}

func (c *viewCmd) Run(e *env) error {
	out := c.Out
	if out == "" {
		out = c.File + ".html"
	}
	return e.output(out, func(w io.Writer) error { return lathe.View(w, c.File) })
}
