package passes

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/lathe-ml/lathe/interp"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// DefaultFoldLimit is the number of bytes up to which const-fold computes constants that could be computed by the program.
const DefaultFoldLimit = 64 << 10

// ConstFold computes at compile time what does not depend on inputs.
var ConstFold = Pass{
	Name: "const-fold",
	Doc: "Computes what depends on parameters and constants alone: small results at once, and results of any size of operators that the " +
		"program cannot run, whose bytes are made when the program is written.",
	Run: func(ctx *Context, g *ir.Graph) error {
		if g.Stage == ops.StageAten {
			return nil
		}
		f := &folder{ctx: ctx, g: g, limit: ctx.FoldLimit, known: map[*ir.Value]*ir.Data{}}
		if f.limit == 0 {
			f.limit = DefaultFoldLimit
		}
		return f.run()
	},
}

type folder struct {
	ctx   *Context
	g     *ir.Graph
	limit int64
	known map[*ir.Value]*ir.Data
}

func (f *folder) run() error {
	written := map[*ir.Input]bool{}
	for _, o := range f.g.Outputs {
		if o.Target != nil {
			written[o.Target] = true
		}
	}
	for _, in := range f.g.Inputs {
		if (in.Kind == ir.InputParam || in.Kind == ir.InputConst) && in.Data != nil && !written[in] {
			f.known[in.Value] = in.Data
		}
	}
	for n := range f.g.Nodes() {
		f.evaluate(n)
	}
	for n := range f.g.Nodes() {
		f.replace(n)
	}
	return nil
}

// evaluate notes the results of a node whose arguments are all constant. Nothing is computed yet for results above the
// limit.
func (f *folder) evaluate(n *ir.Node) {
	info := n.Info()
	if n.Op == ops.Unknown || !interp.Supported(n.Op) || info.Random || info.Effect || info.Mutates || len(n.Outs) == 0 || len(n.Graphs()) > 0 {
		return
	}
	for v := range n.Inputs() {
		if f.known[v] == nil {
			return
		}
	}
	constant := true
	for _, a := range n.Args() {
		a.EachExpr(func(sym.Expr) { constant = false })
	}
	total := int64(0)
	for _, o := range n.Outs {
		if _, ok := o.Type.Sizes(); !ok || !o.Type.IsTensor() {
			return
		}
		k, _ := o.Type.Numel().IsConst()
		total += k * o.Type.DType.Size()
	}
	if !constant || total > f.limit && f.ctx.legal(n) == nil {
		return
	}
	call := &foldCall{op: n.Op, args: make([]foldArg, n.NumArgs())}
	for i, a := range n.Args() {
		call.args[i] = f.arg(a)
	}
	if total <= f.limit {
		outs, err := call.run()
		if err != nil || len(outs) != len(n.Outs) {
			return // the program will say what is wrong with it
		}
		for i, o := range n.Outs {
			t, ok := outs[i].(*interp.Tensor)
			sizes, _ := o.Type.Sizes()
			if !ok || t.DType != o.Type.DType || !equalInts(t.Sizes, sizes) {
				return
			}
			f.known[o] = ir.NewData(t.DType, sizes, append([]byte(nil), t.Bytes()...))
		}
		return
	}
	for i, o := range n.Outs {
		sizes, _ := o.Type.Sizes()
		k, _ := o.Type.Numel().IsConst()
		f.known[o] = &ir.Data{DType: o.Type.DType, Sizes: sizes, Storage: &foldStorage{call, i, k * o.Type.DType.Size()}}
	}
}

func equalInts(a, b []int64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// replace makes constants of results that the rest of the graph needs. What costs nothing to make stays as it is.
func (f *folder) replace(n *ir.Node) {
	data := make([]*ir.Data, len(n.Outs))
	needed := false
	for i, o := range n.Outs {
		if f.known[o] == nil {
			return
		}
		for _, u := range o.Users() {
			if u.IsReturn() || len(u.Outs) == 0 || f.known[u.Outs[0]] == nil {
				data[i] = f.known[o]
			}
		}
		needed = needed || data[i] != nil
	}
	if !needed || f.cheap(n) || !f.ctx.Allow(n, n.Info().Schema.Base) {
		return
	}
	vs := make([]*ir.Value, len(n.Outs))
	for i, d := range data {
		if d == nil {
			if n.Outs[i].NumUses() > 0 {
				d = f.known[n.Outs[i]]
			} else {
				continue
			}
		}
		v := f.g.AddConst(foldName(n, i, d), d)
		v.Name = n.Outs[i].Name
		f.known[v] = d
		vs[i] = v
	}
	f.g.Replace(n, vs...)
}

// cheap tells nodes that are as good as a constant: those that make numbers of nothing, and views of what lies in the file
// anyway.
func (f *folder) cheap(n *ir.Node) bool {
	if f.ctx.legal(n) != nil {
		return false
	}
	inputs := 0
	for v := range n.Inputs() {
		inputs++
		if v.Def != nil {
			return false
		}
	}
	switch n.Op {
	case ops.AtenFullDefault, ops.AtenScalarTensorDefault:
		return true
	}
	return inputs > 0 && viewKindOf(n) == viewShape
}

// foldName is the same for the same contents, in all methods of a program.
func foldName(n *ir.Node, i int, d *ir.Data) string {
	h := sha256.New()
	if s, ok := d.Storage.(*foldStorage); ok {
		s.call.describe(h.Write)
	} else if b, err := d.Compact(); err == nil {
		h.Write(b)
	}
	fmt.Fprintf(writer(h.Write), "%d %s %v", i, d.DType, d.Sizes)
	return "folded." + n.Info().Schema.Base + "." + hex.EncodeToString(h.Sum(nil)[:8])
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

// foldCall is an operator with constant arguments.
type foldCall struct {
	op   ops.ID
	args []foldArg
}

type foldArg struct {
	data *ir.Data
	list []foldArg
	a    ir.Arg
}

func (f *folder) arg(a ir.Arg) foldArg {
	if v := a.Value(); v != nil {
		return foldArg{data: f.known[v]}
	}
	if a.Kind() == ir.ArgList {
		l := make([]foldArg, len(a.List()))
		for i, e := range a.List() {
			l[i] = f.arg(e)
		}
		return foldArg{list: l}
	}
	return foldArg{a: a}
}

func (x foldArg) value() (interp.Value, error) {
	switch {
	case x.data != nil:
		b, err := x.data.Compact()
		if err != nil {
			return nil, err
		}
		return interp.FromBytes(x.data.DType, x.data.Sizes, b)
	case x.list != nil:
		l := make([]interp.Value, len(x.list))
		for i, e := range x.list {
			v, err := e.value()
			if err != nil {
				return nil, err
			}
			l[i] = v
		}
		return l, nil
	}
	return interp.Constant(x.a), nil
}

func (c *foldCall) run() ([]interp.Value, error) {
	args := make([]interp.Value, len(c.args))
	for i, a := range c.args {
		v, err := a.value()
		if err != nil {
			return nil, err
		}
		args[i] = v
	}
	return interp.Apply(c.op, args)
}

// describe writes what decides the result without reading weights.
func (c *foldCall) describe(w writer) {
	fmt.Fprintf(w, "%s(", c.op)
	for _, a := range c.args {
		a.describe(w)
	}
}

func (x foldArg) describe(w writer) {
	switch {
	case x.data != nil:
		if s, ok := x.data.Storage.(*foldStorage); ok {
			fmt.Fprintf(w, "#%d ", s.out)
			s.call.describe(w)
			return
		}
		fmt.Fprintf(w, "%s %s %v %v %d;", x.data.Entry, x.data.DType, x.data.Sizes, x.data.Strides, x.data.Offset)
		if x.data.Entry == "" {
			if b, err := x.data.Compact(); err == nil {
				w(b)
			}
		}
	case x.list != nil:
		for _, e := range x.list {
			e.describe(w)
		}
	default:
		fmt.Fprintf(w, "%v;", interp.Constant(x.a))
	}
}

// foldStorage is a result of an operator on constants, computed when its bytes are asked for.
type foldStorage struct {
	call *foldCall
	out  int
	size int64
}

// Size is the number of bytes.
func (s *foldStorage) Size() int64 { return s.size }

// Bytes computes the result.
func (s *foldStorage) Bytes() ([]byte, error) {
	outs, err := s.call.run()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.call.op, err)
	}
	t, ok := outs[s.out].(*interp.Tensor)
	if !ok || t.Numel()*t.DType.Size() != s.size {
		return nil, fmt.Errorf("%s: its result is not of the size that was inferred", s.call.op)
	}
	return t.Bytes(), nil
}
