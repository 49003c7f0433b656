// Command lathe compiles PyTorch programs for devices. It is thin: what it does is in package lathe.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/lathe-ml/lathe"
)

// Exit codes.
const (
	exitOK    = 0
	exitInput = 1 // the input cannot be compiled or checked
	exitUsage = 2
	exitBug   = 3
)

// grace is how long a command may take to tidy up after a signal.
const grace = 5 * time.Second

type cli struct {
	Globals

	Compile    compileCmd    `cmd:"" help:"Compile .pt2 archives into a .pte program."`
	Inspect    inspectCmd    `cmd:"" help:"Describe a .pt2, .ir or .pte file."`
	Run        runCmd        `cmd:"" help:"Run a program on inputs, in the reference engine or in the stock runtime."`
	Verify     verifyCmd     `cmd:"" help:"Evaluate a program at every step of a compile and name the first that differs."`
	Diff       diffCmd       `cmd:"" help:"Compare two files, as text without origins; exit 1 where they differ."`
	Bisect     bisectCmd     `cmd:"" help:"Find the rewrites that make a program give other outputs."`
	Reduce     reduceCmd     `cmd:"" help:"Make a program that fails as small as it goes."`
	View       viewCmd       `cmd:"" help:"Write a page that shows a file, for a browser."`
	Opt        optCmd        `cmd:"" help:"Run passes over a program and print the IR."`
	Kernel     kernelCmd     `cmd:"" help:"Write Metal kernels for operators that the MLX delegate lacks."`
	Ops        opsCmd        `cmd:"" help:"List the operators that Lathe knows, or tell all about one."`
	Passes     passesCmd     `cmd:"" help:"List the passes, or the pipeline of a backend with the reasons for its order."`
	Completion completionCmd `cmd:"" help:"Print a completion script for a shell."`
}

// Globals are the flags of every command.
type Globals struct {
	JSON    bool             `name:"json" help:"Write output and diagnostics as JSON, a diagnostic a line."`
	Version kong.VersionFlag `help:"Print the version."`
}

// env is what a command works with.
type env struct {
	context.Context
	Globals
	args           []string
	stdout, stderr io.Writer
	parser         *kong.Kong
	// command is what was called, as in "lathe kernel stub".
	command string
	// opts are those of the compile at hand, for a reproducer.
	opts lathe.Options
}

func main() {
	ctx, stop := interruptible(context.Background())
	defer stop()
	context.AfterFunc(ctx, func() {
		stop() // a second signal ends at once
		time.Sleep(grace)
		fmt.Fprintln(os.Stderr, "lathe: interrupted")
		os.Exit(exitInput)
	})
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// interruptible gives a context that ends when the user or the system asks for an end: what is half written is then removed.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
}

// run is the whole command; it gives the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (code int) {
	var c cli
	exited := -1
	parser, err := kong.New(&c,
		kong.Name("lathe"), kong.Description("Compiles PyTorch programs that torch.export saved into ExecuTorch programs."),
		kong.Vars{"version": "lathe " + lathe.Version(), "backends": strings.Join(lathe.Backends(), ","), "backend": lathe.DefaultBackend()},
		kong.Writers(stdout, stderr), kong.Exit(func(code int) { exited = code }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true}),
	)
	if err != nil {
		fmt.Fprintln(stderr, "lathe:", err)
		return exitBug
	}
	e := &env{Context: ctx, args: args, stdout: stdout, stderr: stderr, parser: parser}
	defer func() {
		if r := recover(); r != nil {
			code = e.fail(&lathe.BugError{Doing: "command", Err: fmt.Errorf("panic: %v", r), Stack: debug.Stack()})
		}
	}()
	k, err := parser.Parse(args)
	if exited >= 0 { // help or version was asked for
		return exited
	}
	if err != nil {
		var at *kong.ParseError
		if errors.As(err, &at) {
			k = at.Context
		}
		fmt.Fprintf(stderr, "lathe: %v\nTry: %s --help\n", err, commandOf(k))
		return exitUsage
	}
	e.Globals, e.command = c.Globals, commandOf(k)
	if err := k.Run(e); err != nil {
		return e.fail(err)
	}
	return exitOK
}

// commandOf names the command that was parsed, as far as it was.
func commandOf(k *kong.Context) string {
	name := "lathe"
	if k == nil {
		return name
	}
	for _, p := range k.Path {
		if p.Command != nil {
			name += " " + p.Command.Name
		}
	}
	return name
}

// fail tells an error and gives the exit code for it.
func (e *env) fail(err error) int {
	var usage *lathe.UsageError
	var bug *lathe.BugError
	switch {
	case errors.As(err, &bug):
		path, werr := bug.WriteReproducer(append([]string{"lathe"}, e.args...), e.opts)
		if werr != nil {
			path = "nowhere, it could not be written: " + werr.Error()
		}
		e.report(diagnostic{Severity: "bug", Code: "bug", Message: bug.Error(), Try: "report it with the reproducer", Reproducer: path})
		return exitBug
	case errors.Is(err, errDiffers):
		return exitInput
	case errors.As(err, &usage):
		fmt.Fprintf(e.stderr, "lathe: %v\nTry: %s --help\n", err, e.command)
		return exitUsage
	case errors.Is(err, context.Canceled):
		e.report(diagnostic{Severity: "error", Code: "interrupted", Message: "interrupted"})
		return exitInput
	}
	e.reportError(err)
	return exitInput
}

// output writes what f writes to the file at path, which appears whole or not at all; to standard output without a path.
func (e *env) output(path string, f func(w io.Writer) error) error {
	if path == "" || path == "-" {
		return f(e.stdout)
	}
	var b bytes.Buffer
	if err := f(&b); err != nil {
		return err
	}
	return lathe.WriteFile(path, b.Bytes())
}
