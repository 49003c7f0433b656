package program_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lathe-ml/lathe/codegen/pte"
	"github.com/lathe-ml/lathe/internal/etrt"
	"github.com/lathe-ml/lathe/internal/etrt/ettest"
	"github.com/lathe-ml/lathe/interp"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/text"
	"github.com/lathe-ml/lathe/lower/program"
	"github.com/lathe-ml/lathe/ops"
)

// maker makes random graphs of views, element-wise nodes, updates and conditionals over twelve numbers.
type maker struct {
	r *rand.Rand
}

var shapes = [][]int64{{2, 6}, {12}, {3, 4}, {1, 12}}

func (m maker) of(vs []*ir.Value, shape ...int64) *ir.Value {
	var fit []*ir.Value
	for _, v := range vs {
		if s, _ := v.Type.Sizes(); v.Type.IsTensor() && v.Type.DType == ops.Float32 && (shape == nil || slices.Equal(s, shape)) {
			fit = append(fit, v)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	// Mostly what was made last, so that values die.
	if m.r.IntN(3) > 0 {
		fit = fit[max(0, len(fit)-4):]
	}
	return fit[m.r.IntN(len(fit))]
}

func node(g *ir.Graph, name string, shape []int64, args ...ir.Arg) *ir.Value {
	return g.NewNode(g.Ret(), ops.Lookup(name), args, []ir.Type{ir.StaticType(ops.Float32, shape...)}, nil).Out()
}

func (m maker) grow(g *ir.Graph, vs []*ir.Value, pred *ir.Value, steps int) []*ir.Value {
	for range steps {
		x := m.of(vs)
		s, _ := x.Type.Sizes()
		switch k := m.r.IntN(12); {
		case k < 2 && len(s) > 0 && s[0]*s[len(s)-1] >= 4:
			to := shapes[m.r.IntN(len(shapes))]
			if n, _ := x.Type.Numel().IsConst(); n == 12 {
				vs = append(vs, node(g, "aten.view", to, ir.Ref(x), ir.Ints(to...)))
			}
		case k == 2:
			if y := m.of(vs, 2, 6); y != nil {
				vs = append(vs, node(g, "aten.select.int", []int64{6}, ir.Ref(y), ir.Int(0), ir.Int(int64(m.r.IntN(2)))))
			}
		case k == 3:
			y, z := m.of(vs, 2, 6), m.of(vs, 6)
			if y != nil && z != nil {
				vs = append(vs, node(g, "aten.select_scatter", []int64{2, 6}, ir.Ref(y), ir.Ref(z), ir.Int(0), ir.Int(int64(m.r.IntN(2)))))
			}
		case k == 4:
			vs = append(vs, node(g, "aten.neg", s, ir.Ref(x)))
		case k == 5:
			vs = append(vs, node(g, "aten.relu", s, ir.Ref(x)))
		case k == 6 && pred != nil:
			y := m.of(vs, 2, 6)
			if y == nil {
				continue
			}
			var branches []ir.Arg
			for _, name := range []string{"then", "else"} {
				h := ir.NewGraph(name, g.Syms)
				a := h.AddInput("", ir.InputOperand, "", x.Type).Value
				b := h.AddInput("", ir.InputOperand, "", y.Type).Value
				c := h.AddInput("", ir.InputOperand, "", pred.Type).Value
				in := m.grow(h, []*ir.Value{a, b}, c, m.r.IntN(4))
				h.SetOutputs([]ir.Output{{}, {}}, []ir.Arg{ir.Ref(m.of(in, 2, 6)), ir.Ref(m.of(in, 2, 6))})
				branches = append(branches, ir.GraphArg(h))
			}
			typ := ir.StaticType(ops.Float32, 2, 6)
			n := g.NewNode(g.Ret(), ops.Lookup("higher_order.cond"),
				[]ir.Arg{ir.Ref(pred), branches[0], branches[1], ir.Refs(x, y, pred)}, []ir.Type{typ, typ}, nil)
			vs = append(vs, n.Outs...)
		default:
			name := []string{"aten.add.Tensor", "aten.sub.Tensor", "aten.maximum"}[m.r.IntN(3)]
			args := []ir.Arg{ir.Ref(x), ir.Ref(m.of(vs, s...))}
			if name != "aten.maximum" {
				args = append(args, ir.Int(1))
			}
			vs = append(vs, node(g, name, s, args...))
		}
	}
	return vs
}

func (m maker) graph() *ir.Graph {
	g := ir.NewGraph("forward", nil)
	typ := ir.StaticType(ops.Float32, 2, 6)
	p := g.AddInput("p", ir.InputUser, "", ir.StaticType(ops.Bool))
	x := g.AddInput("x", ir.InputUser, "", typ)
	ins := []*ir.Input{x}
	for _, name := range []string{"a", "b"} {
		in := g.AddInput(name, ir.InputBuffer, name, typ)
		in.Data = ir.NewData(ops.Float32, []int64{2, 6}, m.numbers())
		ins = append(ins, in)
	}
	vs := []*ir.Value{x.Value, ins[1].Value, ins[2].Value}
	vs = m.grow(g, vs, p.Value, 3+m.r.IntN(25))
	var outs []ir.Output
	var args []ir.Arg
	for i, in := range ins {
		if m.r.IntN(3) == 0 {
			continue
		}
		kind := ir.OutputBufferMutation
		if i == 0 {
			kind = ir.OutputInputMutation
		}
		outs = append(outs, ir.Output{Kind: kind, Target: in})
		args = append(args, ir.Ref(m.of(vs, 2, 6)))
	}
	for range 1 + m.r.IntN(3) {
		outs = append(outs, ir.Output{})
		args = append(args, ir.Ref(m.of(vs)))
	}
	g.SetOutputs(outs, args)
	return g
}

func (m maker) numbers() []byte {
	xs := make([]float32, 12)
	for i := range xs {
		xs[i] = float32(m.r.IntN(9) - 4)
	}
	return f32(nil, xs...).Tensor.Data
}

// Random programs with views, state, mutated inputs and branches give what the interpreter gives, call after call.
func TestRandomPrograms(t *testing.T) {
	ctx := context.Background()
	rt := ettest.Open(t)
	dir := t.TempDir()
	for seed := range uint64(80) {
		m := maker{rand.New(rand.NewPCG(seed, 1))}
		g := m.graph()
		g.NameValues()
		src := text.String(g)
		session, err := interp.New(g, interp.Options{AllOutputs: true})
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, src)
		}
		res, err := program.Lower(&ir.Program{Methods: []*ir.Graph{g}}, program.Options{})
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, src)
		}
		path := filepath.Join(dir, fmt.Sprintf("%d.pte", seed))
		if err := pte.WriteFile(ctx, path, res.Program, pte.Options{}); err != nil {
			t.Fatal(err)
		}
		run, err := rt.Load(ctx, path, etrt.WithPoison())
		if err != nil {
			t.Fatal(err)
		}
		for call := range 3 {
			pb, xb := []byte{byte(m.r.IntN(2))}, m.numbers()
			p, _ := interp.FromBytes(ops.Bool, nil, slices.Clone(pb))
			x, _ := interp.FromBytes(ops.Float32, []int64{2, 6}, slices.Clone(xb))
			all, err := session.Run(ctx, []interp.Value{p, x})
			if err != nil {
				t.Fatalf("seed %d: %v\n%s", seed, err, src)
			}
			var want []string
			for i, o := range g.Outputs {
				if o.Kind == ir.OutputBufferMutation {
					continue
				}
				w := all[i].(*interp.Tensor)
				want = append(want, show(etrt.Value{Kind: etrt.KindTensor, Tensor: &etrt.Tensor{DType: etrt.F32, Shape: w.Sizes, Data: w.Bytes()}}))
			}
			outs, err := run.Run("forward", []etrt.Value{
				{Kind: etrt.KindTensor, Tensor: &etrt.Tensor{DType: etrt.Bool, Data: pb}},
				{Kind: etrt.KindTensor, Tensor: &etrt.Tensor{DType: etrt.F32, Shape: []int64{2, 6}, Data: xb}},
			})
			if err != nil {
				t.Fatalf("seed %d: %v\n%s", seed, err, src)
			}
			var got []string
			for _, o := range outs {
				got = append(got, show(o))
			}
			if !slices.Equal(got, want) {
				t.Errorf("seed %d, call %d:\n%v, want\n%v\n%s", seed, call, got, want, src)
				break
			}
		}
		run.Close()
	}
}
