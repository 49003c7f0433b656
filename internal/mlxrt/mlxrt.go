// Package mlxrt runs programs with MLX delegates where there is no Apple machine: the payloads over MLX's own Python package
// on the CPU, the kernels between them in the stock ExecuTorch runtime. Memory is that of the plan: planned tensors live
// in the program's arenas, so a plan that lets one live value overwrite another shows.
package mlxrt

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/lathe-ml/lathe/codegen/fb"
	fbmlx "github.com/lathe-ml/lathe/codegen/fb/mlx"
	"github.com/lathe-ml/lathe/internal/etrt"
)

//go:embed mlxrun.py
var script string

// ErrNotBuilt is what Open returns, wrapped, when there is no Python with MLX.
var ErrNotBuilt = errors.New("no Python with MLX: run `make mlx` (or set LATHE_MLX_PYTHON)")

// Runtime is a Python that has MLX, and the ExecuTorch runtime for kernels outside of delegates.
type Runtime struct {
	// Poison fills planned memory with 0xA5 instead of zeros, which uncovers reads of what nothing wrote.
	Poison bool

	python string
	et     *etrt.Runtime // nil when not built
}

// Open finds Python: LATHE_MLX_PYTHON, or what `make mlx` put into the user's cache.
func Open() (*Runtime, error) {
	python := os.Getenv("LATHE_MLX_PYTHON")
	if python == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNotBuilt, err)
		}
		python = filepath.Join(cache, "lathe", "mlx-python")
	}
	if _, err := os.Stat(python); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotBuilt, err)
	}
	r := &Runtime{python: python}
	if et, err := etrt.Open(); err == nil {
		r.et = et
	}
	return r, nil
}

// process is a Python with loaded payloads.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr strings.Builder
}

func (r *Runtime) start(ctx context.Context) (*process, error) {
	p := &process{cmd: exec.CommandContext(ctx, r.python, "-c", script)}
	p.cmd.Stderr = &p.stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("starting MLX: %w", err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting MLX: %w", err)
	}
	p.out = bufio.NewReaderSize(out, 1<<16)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting MLX: %w", err)
	}
	return p, nil
}

func (p *process) close() {
	p.in.Close()
	p.cmd.Process.Kill() //nolint:errcheck // gone already is as good
	p.cmd.Wait()         //nolint:errcheck // killed on purpose
}

var le = binary.LittleEndian

// Error is a payload that the delegate would not load or run.
type Error struct{ Reason string }

func (e *Error) Error() string { return "MLX: " + e.Reason }

func (p *process) call(req []byte) ([]byte, error) {
	if len(req) > 1<<32-1 {
		return nil, errors.New("MLX: constants of 4 GB and more do not fit this checker")
	}
	if _, err := p.in.Write(le.AppendUint32(nil, uint32(len(req)))); err == nil {
		_, err = p.in.Write(req)
		if err != nil {
			return nil, p.died()
		}
	}
	var n [4]byte
	if _, err := io.ReadFull(p.out, n[:]); err != nil {
		return nil, p.died()
	}
	b := make([]byte, le.Uint32(n[:]))
	if _, err := io.ReadFull(p.out, b); err != nil || len(b) < 5 {
		return nil, p.died()
	}
	if b[0] == 0 {
		return nil, &Error{Reason: string(b[5:])}
	}
	return b[1:], nil
}

func (p *process) died() error {
	p.in.Close()
	p.cmd.Wait() //nolint:errcheck // the state says more
	return fmt.Errorf("MLX: the process died: %s\n%s", p.cmd.ProcessState, p.stderr.String())
}

func appendString(b []byte, s string) []byte {
	return append(le.AppendUint32(b, uint32(len(s))), s...)
}

func (p *process) load(handle int, graph *fbmlx.MLXGraph, constant func(name string) ([]byte, error)) error {
	req := le.AppendUint32([]byte{'L'}, uint32(handle))
	req = appendString(req, string(fb.AppendJSON(nil, graph)))
	at := len(req)
	req = le.AppendUint32(req, 0)
	count := uint32(0)
	for _, s := range graph.NamedSlots {
		if s.Slot.SlotType != fbmlx.SlotTypeTensorSlot || s.Slot.Idx >= graph.NumConstantTensors {
			continue
		}
		data, err := constant(s.Name)
		if err != nil {
			return err
		}
		req = appendString(req, s.Name)
		req = le.AppendUint64(req, uint64(len(data)))
		req = append(req, data...)
		count++
	}
	le.PutUint32(req[at:], count)
	_, err := p.call(req)
	return err
}

// run executes a loaded payload. Inputs are contiguous tensors and ints; wanted says for each output whether it is a tensor,
// and of which type.
func (p *process) run(handle int, inputs []etrt.Value, wanted []etrt.Value) ([]etrt.Value, error) {
	req := le.AppendUint32([]byte{'R'}, uint32(handle))
	req = le.AppendUint32(req, uint32(len(inputs)))
	for i, v := range inputs {
		req = append(req, byte(v.Kind))
		switch v.Kind {
		case etrt.KindInt:
			req = le.AppendUint64(req, uint64(v.Int))
		case etrt.KindTensor:
			req = append(req, byte(v.Tensor.DType), byte(len(v.Tensor.Shape)))
			for _, s := range v.Tensor.Shape {
				req = le.AppendUint64(req, uint64(s))
			}
			req = le.AppendUint64(req, uint64(len(v.Tensor.Data)))
			req = append(req, v.Tensor.Data...)
		default:
			return nil, &Error{Reason: fmt.Sprintf("argument %d is a %s: the delegate takes tensors and ints", i, v.Kind)}
		}
	}
	req = le.AppendUint32(req, uint32(len(wanted)))
	for _, v := range wanted {
		if v.Kind == etrt.KindTensor {
			req = append(req, byte(etrt.KindTensor), byte(v.Tensor.DType))
		} else {
			req = append(req, byte(etrt.KindInt))
		}
	}
	b, err := p.call(req)
	if err != nil {
		return nil, err
	}
	n := le.Uint32(b)
	b = b[4:]
	outs := make([]etrt.Value, n)
	for i := range outs {
		kind := etrt.Kind(b[0])
		if kind == etrt.KindInt {
			outs[i] = etrt.IntValue(int64(le.Uint64(b[1:])))
			b = b[9:]
			continue
		}
		t := &etrt.Tensor{DType: etrt.DType(b[1]), Shape: make([]int64, b[2])}
		b = b[3:]
		for d := range t.Shape {
			t.Shape[d] = int64(le.Uint64(b))
			b = b[8:]
		}
		size := le.Uint64(b)
		t.Data, b = b[8:8+size], b[8+size:]
		outs[i] = etrt.TensorValue(t)
	}
	return outs, nil
}
