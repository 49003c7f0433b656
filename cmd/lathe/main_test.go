package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/lathe-ml/lathe/internal/etrt"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"lathe": func() { os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)) },
	})
}

// TestScript runs testdata/script. LATHE_UPDATE=1 rewrites what the scripts compare output with.
func TestScript(t *testing.T) {
	data, err := filepath.Abs(filepath.Join("..", "..", "testdata"))
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:           filepath.Join("testdata", "script"),
		UpdateScripts: os.Getenv("LATHE_UPDATE") != "",
		Setup: func(e *testscript.Env) error {
			e.Setenv("DATA", data)
			e.Setenv("TMPDIR", e.WorkDir)
			// Scripts have no home of their own; the runtime lies in the user's cache.
			if cache, err := os.UserCacheDir(); err == nil {
				e.Setenv("XDG_CACHE_HOME", cache)
			}
			e.Setenv("LATHE_ET_RUNNER", os.Getenv("LATHE_ET_RUNNER"))
			return nil
		},
		Condition: func(cond string) (bool, error) {
			if cond != "runtime" {
				return false, fmt.Errorf("condition %q is not known", cond)
			}
			_, err := etrt.Open()
			if err != nil && os.Getenv("CI") != "" {
				return false, err // a check that never runs is none
			}
			return err == nil, nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"truncate": truncate,
			"exitcode": exitcode,
		},
	})
}

// truncate N FROM TO copies the first N bytes.
func truncate(ts *testscript.TestScript, neg bool, args []string) {
	var n int
	if _, err := fmt.Sscan(args[0], &n); neg || len(args) != 3 || err != nil {
		ts.Fatalf("usage: truncate N FROM TO")
	}
	b, err := os.ReadFile(ts.MkAbs(args[1]))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), b[:min(n, len(b))], 0o666))
}

// exitcode N ARG... runs lathe and wants that exit code.
func exitcode(ts *testscript.TestScript, neg bool, args []string) {
	var want int
	if _, err := fmt.Sscan(args[0], &want); neg || err != nil {
		ts.Fatalf("usage: exitcode N ARG...")
	}
	err := ts.Exec("lathe", args[1:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// TestSignals ends a compile in order when the system asks for it, so that no half-written file stays.
func TestSignals(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		ctx, stop := interruptible(context.Background())
		p, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = p.Signal(s)
		}
		if err != nil {
			t.Fatal(err)
		}
		<-ctx.Done()
		stop()
	}
}

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"it is: ä模 %":            "it is: ä模 %",
		"two\n\tlines":           "two\n\tlines",
		"\x1b[31mred\x00\r":      `\x1b[31mred\x00\r`,
		"left\u202eto right":     `left\u202eto right`,
		"\xff":                   `\ufffd`,
		"0123456789abcdefghijkl": "0123456789abcdefghij…",
	} {
		if got := plain(in, 20); got != want {
			t.Errorf("%q gives %q, want %q", in, got, want)
		}
	}
}
