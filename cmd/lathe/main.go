// Command lathe compiles PyTorch programs for devices.
package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/signal"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/lathe-ml/lathe"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
)

type cli struct {
	Compile compileCmd `cmd:"" help:"Compile a .pt2 archive into a .pte program."`
}

type compileCmd struct {
	Model   string            `arg:"" optional:"" help:"The archive." type:"existingfile"`
	Out     string            `short:"o" name:"out" help:"The file to write; by default the model's name with .pte."`
	Backend string            `help:"Target: ${backends}." default:"portable"`
	Method  map[string]string `help:"A method's name and its archive; may be repeated." placeholder:"NAME=FILE"`
	Dim     []string          `help:"Bounds of a size that the export left open." placeholder:"NAME=MIN..MAX"`
}

func (c *compileCmd) Run(ctx context.Context) error {
	o := lathe.Options{Output: c.Out, Backend: c.Backend, Dims: map[string]sym.Range{}}
	if c.Model != "" {
		o.Inputs = append(o.Inputs, lathe.Input{Path: c.Model})
	}
	for name, path := range c.Method {
		o.Inputs = append(o.Inputs, lathe.Input{Path: path, Method: name})
	}
	for _, d := range c.Dim {
		name, r, err := parseDim(d)
		if err != nil {
			return err
		}
		o.Dims[name] = r
	}
	rep, err := lathe.Compile(ctx, o)
	if err != nil {
		return err
	}
	for _, n := range rep.Notes {
		fmt.Fprintln(os.Stderr, "note:", n)
	}
	return nil
}

func parseDim(s string) (string, sym.Range, error) {
	name, bounds, ok := strings.Cut(s, "=")
	lo, hi, isRange := strings.Cut(bounds, "..")
	if !isRange {
		hi = lo
	}
	r := sym.Range{Min: math.MinInt64, Max: math.MaxInt64}
	var err error
	if lo != "" {
		r.Min, err = strconv.ParseInt(lo, 10, 64)
	}
	if err == nil && hi != "" {
		r.Max, err = strconv.ParseInt(hi, 10, 64)
	}
	if !ok || err != nil {
		return "", r, fmt.Errorf("--dim %s: want NAME=MIN..MAX", s)
	}
	return name, r, nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	k := kong.Parse(&cli{}, kong.Vars{"backends": strings.Join(lathe.Backends(), ", ")},
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Description("Compiles PyTorch programs for devices."))
	if err := k.Run(); err != nil {
		if ds, ok := ir.AsDiags(err); ok {
			for _, d := range ds {
				fmt.Fprintln(os.Stderr, "error:", d)
				if d.Try != "" {
					fmt.Fprintln(os.Stderr, "  try:", d.Try)
				}
			}
		} else {
			fmt.Fprintln(os.Stderr, "error:", err)
		}
		os.Exit(1)
	}
}
