package lathe

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/lathe-ml/lathe/interp"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/text"
	"github.com/lathe-ml/lathe/ir/verify"
	"github.com/lathe-ml/lathe/lower/program"
	"github.com/lathe-ml/lathe/passes"
)

// Reduce makes a graph smaller as long as the given test finds the fault in it, and gives the smallest graph it came to:
// outputs are dropped and nodes are cut out, their results becoming inputs. Contents of weights are dropped, too, where the
// fault does not need them. The graph itself stays as it is.
func Reduce(ctx context.Context, g *ir.Graph, fails func(ctx context.Context, g *ir.Graph) bool) (*ir.Graph, error) {
	cur, err := clone(g)
	if err != nil {
		return nil, err
	}
	if !fails(ctx, cur) {
		return nil, ErrNoFault
	}
	r := &reducer{ctx: ctx, cur: cur, fails: fails}
	r.attempt(func(h *ir.Graph) bool {
		for _, in := range h.Inputs {
			in.Data = nil
		}
		return true
	})
	for r.pass() && ctx.Err() == nil { //nolint:revive // each pass works on what the last one left
	}
	return r.cur, ctx.Err()
}

type reducer struct {
	ctx   context.Context
	cur   *ir.Graph
	fails func(ctx context.Context, g *ir.Graph) bool
}

// attempt edits a copy and keeps it where the fault is still in it. edit gives false where there is nothing to do.
func (r *reducer) attempt(edit func(h *ir.Graph) bool) bool {
	if r.ctx.Err() != nil {
		return false
	}
	h, err := clone(r.cur)
	if err != nil || !edit(h) {
		return false
	}
	ok := false
	_ = guard("reduction", func() error { // a cut may break what a pass relies on; then it is no smaller fault
		if err := (passes.Pipeline{passes.DCE}).Run(&passes.Context{}, h); err != nil {
			return err
		}
		dropUnusedInputs(h)
		if ds := verify.Graph(h); len(ds) > 0 {
			return ds
		}
		// What is kept is what its text says, and the test may change what it is given.
		back, err := clone(h)
		if err != nil {
			return err
		}
		ok = smaller(h, r.cur) && r.fails(r.ctx, back)
		return nil
	})
	if ok {
		r.cur = h
	}
	return ok
}

// smaller compares nodes, then outputs, then the text, in which contents of weights stand.
func smaller(a, b *ir.Graph) bool {
	return cmp.Or(cmp.Compare(countNodes(a), countNodes(b)), cmp.Compare(len(a.Outputs), len(b.Outputs)),
		cmp.Compare(len(text.String(a)), len(text.String(b))), cmp.Compare(withData(a), withData(b))) < 0
}

func withData(g *ir.Graph) (n int) {
	for _, in := range g.Inputs {
		if in.Data != nil {
			n++
		}
	}
	return n
}

func countNodes(g *ir.Graph) (n int) {
	g.Walk(func(h *ir.Graph) { n += h.NumNodes() })
	return n
}

// pass tries every way to make the graph smaller once and tells whether one worked.
func (r *reducer) pass() bool {
	shrunk := false
	for i := len(r.cur.Outputs) - 1; i >= 0 && len(r.cur.Outputs) > 1; i-- {
		if r.attempt(func(h *ir.Graph) bool { return dropOutput(h, i) }) {
			shrunk = true
		}
	}
	for i := 0; i < len(r.cur.Outputs); i++ {
		for k := 0; k < operands(r.cur, i); k++ {
			if r.attempt(func(h *ir.Graph) bool { return giveOperand(h, i, k) }) {
				shrunk, k = true, -1
			}
		}
	}
	for size := max(r.cur.NumNodes()/2, 1); ; size /= 2 {
		for at := r.cur.NumNodes() - size; at > -size; at -= size {
			if r.attempt(func(h *ir.Graph) bool { return cut(h, at, at+size) }) {
				shrunk = true
			}
		}
		if size == 1 {
			return shrunk
		}
	}
}

func dropOutput(h *ir.Graph, i int) bool {
	if i >= len(h.Outputs) {
		return false
	}
	args := append([]ir.Arg{}, h.Ret().Args()...)
	outs := append([]ir.Output{}, h.Outputs...)
	h.SetOutputs(append(outs[:i], outs[i+1:]...), append(args[:i], args[i+1:]...))
	h.OutSpec = ""
	return true
}

// operands counts the tensors that the node of output i reads.
func operands(h *ir.Graph, i int) (n int) {
	if v := h.Ret().In(i); v != nil && v.Def != nil {
		for x := range v.Def.Inputs() {
			if x.Type.IsTensor() {
				n++
			}
		}
	}
	return n
}

// giveOperand makes an output of the k-th tensor that the node of output i reads, in its place.
func giveOperand(h *ir.Graph, i, k int) bool {
	if h.Outputs[i].Kind != ir.OutputUser {
		return false
	}
	for x := range h.Ret().In(i).Def.Inputs() {
		if !x.Type.IsTensor() {
			continue
		}
		if k == 0 {
			h.Ret().SetArg(i, ir.Ref(x))
			h.OutSpec = ""
			return true
		}
		k--
	}
	return false
}

// cut makes inputs of the results of the nodes from place lo to before hi.
func cut(h *ir.Graph, lo, hi int) bool {
	i, cut := 0, false
	for n := range h.Nodes() {
		if i >= lo && i < hi {
			for k, o := range n.Outs {
				if o.NumUses() == 0 {
					continue
				}
				name := o.Name
				if name == "" {
					name = fmt.Sprintf("cut_%d_%d", i, k)
				}
				o.ReplaceAllUses(h.AddInput(name, ir.InputUser, "", o.Type).Value)
			}
			h.Erase(n)
			cut = true
		}
		i++
	}
	h.InSpec, h.InputNames = "", nil
	return cut
}

// dropUnusedInputs also takes out what a caller would feed: the reduced graph is nobody's model.
func dropUnusedInputs(h *ir.Graph) {
	for i := len(h.Inputs) - 1; i >= 0; i-- {
		in := h.Inputs[i]
		written := false
		for _, o := range h.Outputs {
			written = written || o.Target == in
		}
		if in.Value.NumUses() == 0 && !written {
			h.RemoveInput(in)
			h.InSpec, h.InputNames = "", nil
		}
	}
}

// ReduceModel reduces a method of the model in o to a smallest graph on which Verify finds the same fault: outputs that
// differ from those of the graph as it is, or a bug of the same pass. It runs on the first call of o; what is cut out is
// given the values that it had in it.
func ReduceModel(ctx context.Context, o VerifyOptions) (*ir.Graph, error) {
	o.Judge = nil
	m, err := Open(o.Compile.Inputs[0].Path)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	g, err := m.method(o.Method)
	if err != nil {
		return nil, err
	}
	if g, err = clone(g); err != nil {
		return nil, err
	}
	nameAll(g)
	known := map[string]Value{}
	_ = guard("evaluation", func() error { // what cannot be had is made at random
		return recordValues(ctx, g, o, known)
	})
	want := faultOf(ctx, o, g, known)
	if want == "" {
		return nil, ErrNoFault
	}
	return Reduce(ctx, g, func(ctx context.Context, h *ir.Graph) bool { return faultOf(ctx, o, h, known) == want })
}

// nameAll gives a name to every result that has none, by which its value is found again when it is cut.
func nameAll(g *ir.Graph) {
	taken := map[string]bool{}
	for _, in := range g.Inputs {
		taken[in.Value.Name] = true
	}
	var unnamed []*ir.Value
	for n := range g.Nodes() {
		for _, v := range n.Outs {
			if taken[v.Name] = true; v.Name == "" {
				unnamed = append(unnamed, v)
			}
		}
	}
	k := 0
	for _, v := range unnamed {
		for ; taken[fmt.Sprintf("v%d", k)]; k++ { //nolint:revive // looks for one that is free
		}
		v.Name = fmt.Sprintf("v%d", k)
		k++
	}
}

// maxRecorded is how many bytes of values a reduction keeps.
const maxRecorded = 1 << 29

// recordValues notes inputs and results of a call by their names.
func recordValues(ctx context.Context, g *ir.Graph, o VerifyOptions, known map[string]Value) error {
	if len(o.Calls) == 0 {
		return nil
	}
	size := int64(0)
	note := func(name string, v Value) {
		if x, ok := v.(*interp.Tensor); ok {
			size += x.Numel() * x.DType.Size()
		}
		if name == "" || size > maxRecorded {
			return
		}
		if c, err := copyValues([]Value{v}); err == nil {
			known[name] = c[0]
		}
	}
	for i, in := range g.UserInputs() {
		if i < len(o.Calls[0]) {
			note(in.Value.Name, o.Calls[0][i])
		}
	}
	args, err := copyValues(o.Calls[0])
	if err != nil {
		return err
	}
	s, err := interp.New(g, interp.Options{Seed: o.Seed, RandomData: true, Observe: func(n *ir.Node, outs []interp.Value) error {
		if n.Graph() == g {
			for i, v := range n.Outs {
				note(v.Name, outs[i])
			}
		}
		return nil
	}})
	if err != nil {
		return err
	}
	_, err = s.Run(ctx, args)
	return err
}

// ErrNotRefused is what ReduceRefusal returns where compiling is not refused so.
var ErrNotRefused = errors.New("compiling is not refused with that text: there is nothing to reduce")

// ReduceRefusal reduces a method of the model in o to a smallest graph that compiling refuses in the same way.
func ReduceRefusal(ctx context.Context, o VerifyOptions, same func(error) bool) (*ir.Graph, error) {
	backend, err := o.Compile.backend()
	if err != nil {
		return nil, err
	}
	m, err := Open(o.Compile.Inputs[0].Path)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	g, err := m.method(o.Method)
	if err != nil {
		return nil, err
	}
	small, err := Reduce(ctx, g, func(ctx context.Context, h *ir.Graph) bool {
		_, err := transform(ctx, h, backend, o.Compile)
		if err == nil {
			err = guard("lowering", func() error {
				_, err := program.Lower(&ir.Program{Methods: []*ir.Graph{h}}, o.Compile.Program)
				return err
			})
		}
		return err != nil && same(err)
	})
	if errors.Is(err, ErrNoFault) {
		err = ErrNotRefused
	}
	return small, err
}

// faultOf names how verifying g on known values fails; empty where it does not.
func faultOf(ctx context.Context, o VerifyOptions, g *ir.Graph, known map[string]Value) (kind string) {
	err := guard("verify", func() error {
		in, err := NewReference(g, o.Seed).Random(o.Seed)
		if err != nil {
			return nil // nothing can be said of it
		}
		for i, s := range g.UserInputs() {
			if v, ok := known[s.Value.Name]; ok {
				in[i] = v
			}
		}
		o.Calls, o.Want = [][]Value{in}, nil
		h, err := clone(g)
		if err != nil {
			return nil
		}
		_, err = verifyGraph(ctx, o, h)
		return err
	})
	return faultKind(err)
}
