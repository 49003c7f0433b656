package lathe

import (
	"context"
	"errors"

	"github.com/lathe-ml/lathe/internal/etrt"
	"github.com/lathe-ml/lathe/internal/mlxrt"
	"github.com/lathe-ml/lathe/ir"
)

// Judge runs compiled programs, for the last step of Verify.
type Judge struct {
	// Name says what it is: the ExecuTorch runtime, or MLX.
	Name string
	load func(ctx context.Context, path string) (loaded, error)
}

// loaded is a program that keeps its state from call to call.
type loaded interface {
	Run(method string, inputs []etrt.Value) ([]etrt.Value, error)
	Close()
}

// OpenJudge gives what runs programs for a backend on this machine. MLX's payloads run in MLX's Python package, all else in
// the stock runtime. The error says what is not installed.
func OpenJudge(backend string) (*Judge, error) {
	if backend == "mlx" {
		rt, err := mlxrt.Open()
		if err != nil {
			return nil, err
		}
		rt.Poison = true
		return &Judge{"MLX", func(ctx context.Context, path string) (loaded, error) { return rt.Load(ctx, path) }}, nil
	}
	rt, err := etrt.Open()
	if err != nil {
		return nil, err
	}
	return &Judge{"the ExecuTorch runtime", func(ctx context.Context, path string) (loaded, error) { return rt.Load(ctx, path) }}, nil
}

// open makes the program at path ready, which takes the inputs of g.
func (j *Judge) open(ctx context.Context, path string, g *ir.Graph) (*Runner, error) {
	var p loaded
	r := &Runner{inputs: modelSlots(g), syms: g.Syms}
	r.reset = func(ctx context.Context) (err error) {
		if p != nil {
			p.Close()
		}
		p, err = j.load(ctx, path)
		return j.diag(path, err)
	}
	if err := r.reset(ctx); err != nil {
		return nil, err
	}
	r.closes = append(r.closes, func() { p.Close() })
	r.call = func(_ context.Context, in []Value) ([]Value, error) {
		vs, err := ToRuntime(in)
		if err != nil {
			return nil, err
		}
		outs, err := p.Run(g.Name, vs)
		if err != nil {
			return nil, j.diag(path, err)
		}
		return FromRuntime(outs)
	}
	return r, nil
}

func (j *Judge) diag(path string, err error) error {
	var e *mlxrt.Error
	if errors.As(err, &e) {
		return &ir.Diag{Code: "runtime", Msg: e.Error(), Entry: path, Try: "lathe inspect shows the payload's instructions"}
	}
	return runtimeDiag(path, err)
}
