package lathe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"strings"

	"golang.org/x/tools/txtar"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/text"
	"github.com/lathe-ml/lathe/passes"
)

// UsageError says that what was asked for makes no sense, whatever the input is.
type UsageError struct{ Err error }

// Error is the message.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap is the cause.
func (e *UsageError) Unwrap() error { return e.Err }

// BugError is a fault of Lathe, not of its input.
type BugError struct {
	// Doing is what Lathe was at: pass, lowering.
	Doing string
	// Method and Pass tell where in a pipeline; empty elsewhere.
	Method, Pass string
	Err          error
	// Stack is that of a panic.
	Stack []byte
}

// Error is the message on one line.
func (e *BugError) Error() string {
	where := e.Doing
	if e.Pass != "" {
		where += " " + e.Pass
	}
	if e.Method != "" {
		where += " on method " + e.Method
	}
	return fmt.Sprintf("bug in lathe, %s: %v", where, e.Err)
}

// Unwrap is the fault.
func (e *BugError) Unwrap() error { return e.Err }

// guard turns a panic of f into a BugError.
func guard(doing string, f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &BugError{Doing: doing, Err: fmt.Errorf("panic: %v", r), Stack: debug.Stack()}
		}
	}()
	return f()
}

// asBug tells faults of Lathe from faults of the input: what is neither a diagnostic nor the system's refusal is ours.
func asBug(err error, method, pass string) error {
	var b *BugError
	var u *UsageError
	var sys *fs.PathError
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.As(err, &u) || errors.As(err, &sys) {
		return err
	}
	var order *passes.OrderError
	if errors.As(err, &order) {
		return &UsageError{order}
	}
	if errors.As(err, &b) {
		b.Method, b.Pass = method, pass
		return err
	}
	var p *passes.BugError
	if _, ok := ir.AsDiags(err); ok && !errors.As(err, &p) {
		return err
	}
	doing := "lowering"
	if pass != "" {
		doing = "pass"
	}
	return &BugError{Doing: doing, Method: method, Pass: pass, Err: err}
}

// errReached ends a pipeline where a reproducer begins.
var errReached = errors.New("reached")

// Reproducer is a txtar archive with what is needed to see the fault again: command, message, stack, and the graph as it
// was before the pass at fault, in.ir, where o and the fault tell it.
func (e *BugError) Reproducer(command []string, o Options) []byte {
	ar := &txtar.Archive{Comment: []byte(fmt.Sprintf("lathe %s\n%s\n%v\n", Version(), strings.Join(command, " "), e.Err))}
	if e.Stack != nil {
		ar.Files = append(ar.Files, txtar.File{Name: "stack", Data: e.Stack})
	}
	if src := e.graphBefore(o); src != "" {
		ar.Files = append(ar.Files, txtar.File{Name: "in.ir", Data: []byte(src)})
		if e.Pass != "" {
			ar.Comment = fmt.Appendf(ar.Comment, "lathe opt in.ir --pipeline %s\n", e.Pass)
		}
	}
	return txtar.Format(ar)
}

// graphBefore runs the pipeline again up to the pass at fault, or whole for a fault of the lowering. All of it is a
// function of the input, so that the graph is the same.
func (e *BugError) graphBefore(o Options) string {
	if len(o.Inputs) == 0 {
		return ""
	}
	o.Hooks, o.Progress = nil, nil
	reached := ""
	_ = guard("reproducing", func() error { // what fails here fails to add to the reproducer, no more
		backend, err := o.backend()
		if err != nil {
			return err
		}
		prog, closeAll, err := load(o, &Report{})
		defer closeAll()
		if err != nil {
			return err
		}
		o.Hooks = []passes.Hook{{Before: func(_ *passes.Context, p passes.Pass, g *ir.Graph) error {
			if p.Name == e.Pass {
				reached = text.String(g)
				return errReached
			}
			return nil
		}}}
		for _, g := range prog.Methods {
			if e.Method != "" && g.Name != e.Method {
				continue
			}
			if _, err := transform(context.Background(), g, backend, o); err != nil {
				return err
			}
			if e.Pass == "" {
				reached = text.String(g)
			}
		}
		return nil
	})
	return reached
}

// WriteReproducer writes the reproducer to a new file in the system's folder for temporary files and gives its path.
func (e *BugError) WriteReproducer(command []string, o Options) (string, error) {
	f, err := os.CreateTemp("", "lathe-bug-*.txtar")
	if err != nil {
		return "", err
	}
	_, err = f.Write(e.Reproducer(command, o))
	return f.Name(), errors.Join(err, f.Close())
}
