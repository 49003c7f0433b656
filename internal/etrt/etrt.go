// Package etrt runs ExecuTorch programs in the stock runtime, through the runner built by `make runtime` from
// tools/oracle/et. Every program gets a process of its own: a kernel that aborts becomes an error here.
package etrt

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Version is the release of the runtime this package drives.
const Version = "1.5.1"

const (
	helloMagic = 0x5254454c
	protocol   = 1
)

// ErrNotBuilt is what Open returns, wrapped, when there is no runner.
var ErrNotBuilt = errors.New("the ExecuTorch runner is not built: run `make runtime` (or set LATHE_ET_RUNNER)")

// Runtime is an installed runner.
type Runtime struct{ path string }

// Open finds the runner: LATHE_ET_RUNNER, or the one `make runtime` put into the user's cache.
func Open() (*Runtime, error) {
	path := os.Getenv("LATHE_ET_RUNNER")
	if path == "" {
		dir := os.Getenv("LATHE_RUNTIME")
		if dir == "" {
			cache, err := os.UserCacheDir()
			if err != nil {
				return nil, fmt.Errorf("%w: %w", ErrNotBuilt, err)
			}
			dir = filepath.Join(cache, "lathe", "executorch-"+Version)
		}
		path = filepath.Join(dir, "runner")
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotBuilt, err)
	}
	return &Runtime{path: path}, nil
}

// Kernel is one operator the runtime registers. Key is empty for a kernel that takes any dtype and dim order.
type Kernel struct{ Name, Key string }

// Kernels lists what the runtime's libraries register.
func (r *Runtime) Kernels(ctx context.Context) ([]Kernel, error) {
	out, err := exec.CommandContext(ctx, r.path, "--kernels").Output()
	if err != nil {
		return nil, fmt.Errorf("listing kernels: %w", err)
	}
	var ks []Kernel
	for line := range strings.Lines(string(out)) {
		name, key, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		ks = append(ks, Kernel{Name: name, Key: key})
	}
	return ks, nil
}

// Error is a failure the runtime reported.
type Error struct {
	Code     uint32   // the runtime's error code, 0 when the process died
	Name     string   // its name, such as "OperatorMissing"
	Stage    string   // what was being done: "load program", "load method", "set inputs", "execute", …
	Missing  []string // operators without a kernel, for OperatorMissing
	Log      string   // what the runtime logged
	ExitInfo string   // how the process ended, when it died
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("ExecuTorch: " + e.Stage + ": ")
	if e.ExitInfo != "" {
		b.WriteString("the runtime's process died: " + e.ExitInfo)
	} else {
		fmt.Fprintf(&b, "error 0x%x %s", e.Code, e.Name)
	}
	if len(e.Missing) > 0 {
		b.WriteString(" " + strings.Join(e.Missing, ", "))
	}
	if log := strings.TrimSpace(e.Log); log != "" {
		b.WriteString("\n" + log)
	}
	return b.String()
}

// Names of the runtime's error codes, for matching Error.Name.
const (
	OperatorMissing = "OperatorMissing"
	NotSupported    = "NotSupported"
	InvalidArgument = "InvalidArgument"
	InvalidProgram  = "InvalidProgram"
	NotFound        = "NotFound" // a delegate's backend is not in the runtime
)

type config struct {
	data string
	args []string
}

// Option changes how a program is loaded.
type Option func(*config)

// WithData names the .ptd file that holds the program's external tensors.
func WithData(path string) Option { return func(c *config) { c.data = path } }

// WithThreads sets the size of the runtime's thread pool; it chooses for itself otherwise.
func WithThreads(n int) Option {
	return func(c *config) { c.args = append(c.args, "--threads", strconv.Itoa(n)) }
}

// WithPoison fills planned memory with 0xA5 instead of zeros, which uncovers reads of what nothing wrote.
func WithPoison() Option { return func(c *config) { c.args = append(c.args, "--poison") } }

// Program is a program loaded in a process of its own. Methods keep their state between runs. Calls are serialized.
type Program struct {
	mu     sync.Mutex
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr *tail
	dead   error
}

// Start runs the runtime without a program, for CallKernel.
func (r *Runtime) Start(ctx context.Context, opts ...Option) (*Program, error) {
	p, _, err := r.start(ctx, opts)
	return p, err
}

// Load starts a process and loads the program at path. Cancelling ctx kills the process.
func (r *Runtime) Load(ctx context.Context, path string, opts ...Option) (*Program, error) {
	p, c, err := r.start(ctx, opts)
	if err != nil {
		return nil, err
	}
	var e encoder
	e.u8('L')
	e.str(path)
	e.str(c.data)
	if _, err := p.call(e.b, "load program"); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (r *Runtime) start(ctx context.Context, opts []Option) (*Program, config, error) {
	var c config
	for _, o := range opts {
		o(&c)
	}
	p := &Program{cmd: exec.CommandContext(ctx, r.path, c.args...), stderr: &tail{max: 16 << 10}}
	p.cmd.Stderr = p.stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, c, fmt.Errorf("starting the runtime: %w", err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, c, fmt.Errorf("starting the runtime: %w", err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, c, fmt.Errorf("starting the runtime: %w", err)
	}
	p.in, p.out = in, bufio.NewReaderSize(out, 1<<16)
	hello, err := p.frame()
	if err != nil {
		return nil, c, p.died("start")
	}
	d := decoder{b: hello}
	if d.u32() != helloMagic || d.u32() != protocol || d.err != nil {
		p.Close()
		return nil, c, errors.New("the ExecuTorch runner is of another version: run `make runtime` again")
	}
	return p, c, nil
}

// Close ends the process. It returns no error: nothing is left to be done about one.
func (p *Program) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead == nil {
		p.dead = errors.New("the program is closed")
		p.in.Close()
		p.cmd.Process.Kill() //nolint:errcheck // gone already is as good
		p.cmd.Wait()         //nolint:errcheck // killed on purpose
	}
}

func (p *Program) frame() ([]byte, error) {
	var n [4]byte
	if _, err := io.ReadFull(p.out, n[:]); err != nil {
		return nil, err
	}
	b := make([]byte, le.Uint32(n[:]))
	_, err := io.ReadFull(p.out, b)
	return b, err
}

// died reaps the process and describes its end. It is called with p.mu held, or before p is shared.
func (p *Program) died(stage string) error {
	p.in.Close()
	p.cmd.Wait() //nolint:errcheck // the state says more
	err := &Error{Stage: stage, ExitInfo: p.cmd.ProcessState.String(), Log: p.stderr.String()}
	p.dead = err
	return err
}

var missingOp = regexp.MustCompile(`Missing operator: \[\d+\] (\S+)`)

func (p *Program) call(req []byte, stage string) (*decoder, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead != nil {
		return nil, p.dead
	}
	if _, err := p.in.Write(append(le.AppendUint32(nil, uint32(len(req))), req...)); err != nil {
		return nil, p.died(stage)
	}
	b, err := p.frame()
	if err != nil {
		return nil, p.died(stage)
	}
	d := &decoder{b: b}
	code, name, where, log := d.u32(), d.str(), d.str(), d.str()
	if d.err != nil {
		return nil, d.err
	}
	if code == 0 {
		return d, nil
	}
	e := &Error{Code: code, Name: strings.TrimPrefix(name, "Error::"), Stage: where, Log: log}
	for _, m := range missingOp.FindAllStringSubmatch(log, -1) {
		e.Missing = append(e.Missing, m[1])
	}
	return nil, e
}

// Run executes a method on the inputs, given in the order of its inputs, and returns its outputs. The tensors returned
// are copies. A failure of the runtime is an *Error.
func (p *Program) Run(method string, inputs []Value) ([]Value, error) {
	var e encoder
	e.u8('R')
	e.str(method)
	if err := e.values(inputs); err != nil {
		return nil, fmt.Errorf("method %s: %w", method, err)
	}
	d, err := p.call(e.b, "method "+method)
	if err != nil {
		return nil, err
	}
	vs := d.values()
	return vs, d.err
}

// Prepare loads a method (resolves its operators, starts its delegates) without running it.
func (p *Program) Prepare(method string) error {
	var e encoder
	e.u8('P')
	e.str(method)
	_, err := p.call(e.b, "load method "+method)
	return err
}

// Bench runs a method warmup+rounds times on the same inputs and returns how long each of the last rounds took. State
// moves on with every round.
func (p *Program) Bench(method string, inputs []Value, warmup, rounds int) ([]time.Duration, error) {
	var e encoder
	e.u8('B')
	e.str(method)
	if err := e.values(inputs); err != nil {
		return nil, fmt.Errorf("method %s: %w", method, err)
	}
	e.u32(uint32(warmup))
	e.u32(uint32(rounds))
	d, err := p.call(e.b, "method "+method)
	if err != nil {
		return nil, err
	}
	var ts []time.Duration
	for n := d.u32(); n > 0 && d.err == nil; n-- {
		ts = append(ts, time.Duration(d.u64()))
	}
	return ts, d.err
}

// CallKernel calls a registered kernel ("aten::add.out") on its arguments in schema order, out arguments last, and
// returns them all as the kernel left them.
func (p *Program) CallKernel(name string, args []Value) ([]Value, error) {
	var e encoder
	e.u8('K')
	e.str(name)
	if err := e.values(args); err != nil {
		return nil, fmt.Errorf("kernel %s: %w", name, err)
	}
	d, err := p.call(e.b, "kernel "+name)
	if err != nil {
		return nil, err
	}
	vs := d.values()
	return vs, d.err
}

// Meta describes an input or output of a method. DType, Shape, Strides and Planned are set for tensors; Shape is the
// upper bound where sizes vary, and Strides is nil for the index order.
type Meta struct {
	Kind    Kind
	Name    string
	DType   DType
	Shape   []int64
	Strides []int64
	Planned bool // its memory is part of the method's arenas
}

// Method describes a method of a program.
type Method struct {
	Name         string
	Inputs       []Meta
	Outputs      []Meta
	Arenas       []int64  // bytes of planned memory, per arena
	Backends     []string // delegates used
	Instructions int
}

// Methods describes the program's methods.
func (p *Program) Methods() ([]Method, error) {
	d, err := p.call([]byte{'M'}, "describe methods")
	if err != nil {
		return nil, err
	}
	var ms []Method
	for n := d.u32(); n > 0 && d.err == nil; n-- {
		m := Method{Name: d.str()}
		m.Inputs = d.metas()
		m.Outputs = d.metas()
		for k := d.u32(); k > 0 && d.err == nil; k-- {
			m.Arenas = append(m.Arenas, int64(d.u64()))
		}
		for k := d.u32(); k > 0 && d.err == nil; k-- {
			m.Backends = append(m.Backends, d.str())
		}
		m.Instructions = int(d.u64())
		ms = append(ms, m)
	}
	return ms, d.err
}

func (d *decoder) metas() []Meta {
	var ms []Meta
	for n := d.u32(); n > 0 && d.err == nil; n-- {
		m := Meta{Kind: Kind(d.u8()), Name: d.str()}
		if d.u8() != 0 {
			m.DType = DType(d.u8())
			m.Shape, m.Strides = d.shape()
			m.Planned = d.u8() != 0
		}
		ms = append(ms, m)
	}
	return ms
}

// tail keeps the last max bytes written to it.
type tail struct {
	mu  sync.Mutex
	buf bytes.Buffer
	max int
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Write(p)
	if over := t.buf.Len() - t.max; over > 0 {
		t.buf.Next(over)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}
