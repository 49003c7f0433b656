package passes

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/text"
	"github.com/lathe-ml/lathe/ir/verify"
)

// BugError is a fault of a pass, not of the user's program.
type BugError struct {
	Pass string
	Err  error
}

// Error names the pass.
func (e *BugError) Error() string { return fmt.Sprintf("pass %s: %v", e.Pass, e.Err) }

// Unwrap is the fault.
func (e *BugError) Unwrap() error { return e.Err }

// VerifyHook checks the graph after every pass.
func VerifyHook() Hook {
	return Hook{After: func(_ *Context, p Pass, g *ir.Graph) error {
		if ds := verify.Graph(g); len(ds) > 0 {
			// Not as diagnostics: those are the user's faults, these are ours.
			return &BugError{p.Name, errors.New(ds.Error())}
		}
		return nil
	}}
}

// PrintHook prints the graph after the named pass, or after each for "all".
func PrintHook(w io.Writer, name string) Hook {
	return Hook{After: func(ctx *Context, p Pass, g *ir.Graph) error {
		if name != "all" && name != p.Name {
			return nil
		}
		if _, err := fmt.Fprintf(w, "; @%s after %s: %d rewrites\n", g.Name, p.Name, ctx.Changes()); err != nil {
			return err
		}
		return text.Print(w, g)
	}}
}

// DumpHook writes the graph after each pass to a numbered file of dir.
func DumpHook(dir string) Hook {
	k := map[*ir.Graph]int{}
	return Hook{After: func(_ *Context, p Pass, g *ir.Graph) (err error) {
		k[g]++
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%s.%02d.%s.ir", filepath.Base(g.Name), k[g], p.Name)))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		return text.Print(f, g)
	}}
}

// Timing is what one pass took.
type Timing struct {
	Pass    string
	Time    time.Duration
	Nodes   int // of the root graph, after the pass
	Changes int
}

// TimingHook appends to ts.
func TimingHook(ts *[]Timing) Hook {
	var start time.Time
	return Hook{
		Before: func(*Context, Pass, *ir.Graph) error {
			start = time.Now()
			return nil
		},
		After: func(ctx *Context, p Pass, g *ir.Graph) error {
			*ts = append(*ts, Timing{p.Name, time.Since(start), g.NumNodes(), ctx.Changes()})
			return nil
		},
	}
}
