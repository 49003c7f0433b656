package passes

import (
	"fmt"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/infer"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// Functionalize removes mutation.
var Functionalize = Pass{
	Name: "functionalize",
	Doc: "Replaces in-place operators by pure ones: a write through a view becomes a new value of what it views, later reads of other views " +
		"are made from that, and inputs that were written become write-back outputs. Ends the stage aten.",
	Run: func(ctx *Context, g *ir.Graph) error {
		if g.Stage != ops.StageAten {
			return nil
		}
		f := &functionalizer{ctx: ctx, views: map[*ir.Value]*viewOf{}}
		if err := f.run(g); err != nil {
			return err
		}
		f.writeBack(g)
		if len(ctx.Diags) == 0 {
			g.Walk(func(h *ir.Graph) { h.Stage = ops.StageEdge })
		}
		return nil
	},
}

// storage is memory that values share. Each write makes a new value of the whole and counts one generation more.
type storage struct {
	root, cur *ir.Value
	gen       int
}

// viewOf tells what a value of the graph shows of which storage. Values of one tensor (the result of an in-place operator
// and its input) share it.
type viewOf struct {
	s *storage
	// parent is what the view n shows as its result i; nil for the whole storage.
	parent *viewOf
	n      *ir.Node
	i      int
	// cur is the value after generation gen.
	cur *ir.Value
	gen int
	// shown is the type of what parent was when the view was taken.
	shown ir.Type
	// unsure is set where it is not known whether this shares parent's storage or is a copy.
	unsure bool
}

type functionalizer struct {
	ctx   *Context
	views map[*ir.Value]*viewOf
	dead  []*ir.Node // replaced, erased when their users are rewritten
}

func (f *functionalizer) viewOf(v *ir.Value) *viewOf {
	w, ok := f.views[v]
	if !ok {
		w = &viewOf{s: &storage{root: v, cur: v}, cur: v}
		f.views[v] = w
	}
	return w
}

// current is the value that v has now, made before n where it has to be made anew.
func (f *functionalizer) current(v *ir.Value, n *ir.Node) (*ir.Value, error) {
	w, ok := f.views[v]
	if !ok {
		return v, nil
	}
	return f.refresh(w, n)
}

func (f *functionalizer) refresh(w *viewOf, n *ir.Node) (*ir.Value, error) {
	if w.gen == w.s.gen {
		return w.cur, nil
	}
	if w.parent == nil {
		w.cur, w.gen = w.s.cur, w.s.gen
		return w.cur, nil
	}
	if w.unsure {
		f.ctx.Report(w.n.Diag("alias", "whether its result shares memory with its input, which is written to later, cannot be told from the strides", "copy the tensor with clone() before it is written to"))
	}
	p, err := f.refresh(w.parent, n)
	if err != nil {
		return nil, err
	}
	b := ir.NewBuilder(n.Graph(), n, w.n.Origin.Derive(f.ctx.pass+"#view-again"))
	cur := applyView(b, w.n, w.i, p)
	if b.Err != nil {
		return nil, fmt.Errorf("%s at %s: %w", w.n.OpName(), w.n.Origin, b.Err)
	}
	w.cur, w.gen = cur, w.s.gen
	return cur, nil
}

// write makes val the value of w and carries it into everything that w shows.
// The nodes go before at, n is the writer.
func (f *functionalizer) write(w *viewOf, val *ir.Value, n, at *ir.Node) error {
	b := ir.NewBuilder(n.Graph(), at, n.Origin.Derive(f.ctx.pass+"#write"))
	type change struct {
		w   *viewOf
		val *ir.Value
	}
	changes := []change{{w, val}}
	for ; w.parent != nil; w = w.parent {
		if w.unsure {
			f.ctx.Report(w.n.Diag("alias", "its result is written to, and whether it shares memory with its input cannot be told from the strides", "copy the tensor with clone() before it is written to"))
		}
		before, err := f.refresh(w.parent, at)
		if err != nil {
			return err
		}
		after, why := writeView(b, w.n, w.i, before, val)
		if b.Err != nil {
			return fmt.Errorf("%s at %s: %w", w.n.OpName(), w.n.Origin, b.Err)
		}
		if why != "" {
			f.ctx.Report(n.Diag("write-through-view", fmt.Sprintf("writes through %s, which cannot be undone: %s", w.n.OpName(), why), "write to the tensor itself, or to a copy"))
			return nil
		}
		val = after
		changes = append(changes, change{w.parent, val})
	}
	w.s.cur = val
	w.s.gen++
	for _, c := range changes {
		c.w.cur, c.w.gen = c.val, w.s.gen
	}
	return nil
}

func (f *functionalizer) run(g *ir.Graph) error {
	f.shareInputs(g)
	for n := range g.Nodes() {
		if err := f.node(n); err != nil {
			return err
		}
	}
	if err := f.readCurrent(g.Ret()); err != nil {
		return err
	}
	for i := len(f.dead) - 1; i >= 0; i-- {
		n := f.dead[i]
		if n.Graph() != g {
			continue
		}
		for _, o := range n.Outs {
			if o.NumUses() > 0 {
				return fmt.Errorf("%s at %s is still used", n.OpName(), n.Origin)
			}
		}
		g.Erase(n)
	}
	f.dead = f.dead[:0]
	return nil
}

// shareInputs ties inputs whose contents are the same memory seen alike. Where they overlap in another way, a write to one
// of them is refused when it comes.
func (f *functionalizer) shareInputs(g *ir.Graph) {
	first := map[ir.Storage]*ir.Input{}
	for _, in := range g.Inputs {
		if in.Data == nil || !isComparable(in.Data.Storage) {
			continue
		}
		other, ok := first[in.Data.Storage]
		if !ok {
			first[in.Data.Storage] = in
			continue
		}
		if a, b := in.Value.Type, other.Value.Type; a.Equal(b) && in.Data.Offset == other.Data.Offset {
			f.views[in.Value] = f.viewOf(other.Value)
		}
	}
}

// isComparable tells storages that can be map keys; MemStorage, a slice, cannot.
func isComparable(s ir.Storage) bool {
	_, mem := s.(ir.MemStorage)
	return s != nil && !mem
}

// readCurrent makes n refer to the values that its inputs have now.
func (f *functionalizer) readCurrent(n *ir.Node) error {
	for i, a := range n.Args() {
		var err error
		changed := false
		m := a.Map(func(v *ir.Value) *ir.Value {
			w, e := f.current(v, n)
			if e != nil {
				err = e
				return v
			}
			changed = changed || w != v
			return w
		})
		if err != nil {
			return err
		}
		if changed {
			n.SetArg(i, m)
		}
	}
	return nil
}

func (f *functionalizer) node(n *ir.Node) error {
	if n.Op == ops.AtenBatchNormDefault || n.Op == ops.AtenInstanceNormDefault {
		if done, err := f.norm(n); done || err != nil {
			return err
		}
	}
	if len(n.Graphs()) > 0 {
		return f.nested(n)
	}
	info := n.Info()
	switch {
	case info.Mutates:
		return f.mutation(n)
	case n.Op == ops.Unknown:
		return f.readCurrent(n)
	}
	if viewKindOf(n) == notView {
		return f.readCurrent(n)
	}
	// Whether memory is shared is told by the strides that the program had, not by those of values made anew.
	shown := make([]*ir.Value, len(n.Outs))
	aliases, sures := make([]bool, len(n.Outs)), make([]bool, len(n.Outs))
	for i := range n.Outs {
		shown[i] = viewed(n, i)
		aliases[i], sures[i] = mayAlias(n, i)
	}
	if err := f.readCurrent(n); err != nil {
		return err
	}
	for i, o := range n.Outs {
		alias, sure := aliases[i], sures[i]
		if shown[i] == nil || !o.Type.IsTensor() || sure && !alias {
			continue
		}
		p := f.viewOf(shown[i])
		if viewKindOf(n) == viewStrided {
			return f.strided(n, p)
		}
		f.views[o] = &viewOf{s: p.s, parent: p, n: n, i: i, cur: o, gen: p.s.gen, shown: shown[i].Type, unsure: !sure}
	}
	return nil
}

// strided replaces as_strided, which alone of all operators counts in memory, by picking elements of the whole storage.
func (f *functionalizer) strided(n *ir.Node, p *viewOf) error {
	shown := p
	whole := p
	for whole.parent != nil {
		whole = whole.parent
	}
	off := n.ArgNamed("storage_offset")
	if off.IsNone() {
		e, ok := f.offset(shown)
		if !ok {
			f.ctx.Report(n.Diag("alias", "counts in the memory of a tensor whose place in it cannot be told", "give as_strided a storage_offset"))
			return nil
		}
		off = ir.SymInt(e)
	}
	if !whole.s.root.Type.Contiguous() {
		f.ctx.Report(n.Diag("alias", "counts in the memory of a tensor that is not contiguous", "make the tensor contiguous before as_strided"))
		return nil
	}
	n.SetArg(n.Info().ArgIndex("storage_offset"), off)
	if whole.s.root.Input != nil && whole.s.gen == 0 {
		// An input stays as it lies in memory whatever passes do.
		n.SetArg(0, ir.RefAny(whole.s.root))
		f.views[n.Out()] = &viewOf{s: whole.s, parent: whole, n: n, cur: n.Out()}
		return nil
	}
	// Made like any other view of a storage that has changed.
	f.views[n.Out()] = &viewOf{s: whole.s, parent: whole, n: n, gen: -1}
	f.dead = append(f.dead, n)
	f.ctx.changes++
	return nil
}

// offset is where a view begins in its storage, in elements.
func (f *functionalizer) offset(w *viewOf) (sym.Expr, bool) {
	if w.parent == nil {
		return sym.Const(0), true
	}
	e, ok := f.offset(w.parent)
	if !ok {
		return e, false
	}
	st := strides(w.shown)
	switch viewKindOf(w.n) {
	case viewSame, viewShape, viewPermute, viewExpand:
		return e, true
	case viewSlice:
		dim, start, _, _, ok := sliceOf(w.n, w.i)
		return sym.Add(e, sym.Mul(start, st[dim])), ok
	case viewSelect:
		dim, index, ok := selectOf(w.n, w.i)
		return sym.Add(e, sym.Mul(index, st[dim])), ok
	case viewStrided:
		return w.n.ArgNamed("storage_offset").Expr()
	}
	return e, false
}

// mutation replaces an in-place operator.
func (f *functionalizer) mutation(n *ir.Node) error {
	s := &n.Info().Schema
	self := n.In(0)
	switch s.Base {
	case "detach_", "requires_grad_":
		f.views[n.Out()] = f.viewOf(self)
		f.dead = append(f.dead, n)
		return nil
	case "squeeze_", "unsqueeze_", "transpose_", "t_", "swapaxes_", "swapdims_", "as_strided_":
		return f.reshapeInPlace(n)
	case "resize_":
		if !ir.EqualShape(n.Out().Type.Shape, self.Type.Shape) {
			f.ctx.Report(n.Diag("resize", "changes the size of a tensor in place", "make a new tensor of that size"))
		}
		f.views[n.Out()] = f.viewOf(self)
		f.dead = append(f.dead, n)
		return nil
	}
	// The places as the program names them, before they become values.
	targets := make([]*ir.Value, len(s.Args))
	for i, a := range s.Args {
		if !a.Write {
			continue
		}
		if a.List {
			f.ctx.Report(n.Diag("mutation", "writes to a list of tensors", ""))
			return f.readCurrent(n)
		}
		targets[i] = n.In(i)
	}
	if err := f.readCurrent(n); err != nil {
		return err
	}
	b := ir.NewBuilder(n.Graph(), n, n.Origin.Derive(f.ctx.pass+"#"+s.Base))
	written, results, why := pureTwin(b, n)
	if b.Err != nil {
		return fmt.Errorf("%s at %s: %w", n.OpName(), n.Origin, b.Err)
	}
	if why != "" {
		f.ctx.Report(n.Diag("mutation", why, ""))
		return nil
	}
	f.ctx.changes++
	for i, v := range targets {
		if v == nil || written[i] == nil {
			continue
		}
		val := likeTarget(b, written[i], n.In(i))
		if b.Err != nil {
			return fmt.Errorf("%s at %s: %w", n.OpName(), n.Origin, b.Err)
		}
		w := f.viewOf(v)
		if err := f.write(w, val, n, n); err != nil {
			return err
		}
	}
	for i, r := range s.Rets {
		if i >= len(n.Outs) {
			break
		}
		if r.Write {
			for k, a := range s.Args {
				if a.Write && a.Alias == r.Alias && targets[k] != nil {
					f.views[n.Outs[i]] = f.viewOf(targets[k])
				}
			}
			continue
		}
		if i < len(results) && results[i] != nil {
			n.Outs[i].ReplaceAllUses(results[i])
		}
	}
	f.dead = append(f.dead, n)
	return nil
}

// likeTarget gives a new value the element type and shape of the tensor that it is written to.
func likeTarget(b *ir.Builder, v, target *ir.Value) *ir.Value {
	if b.Err != nil {
		return nil
	}
	if v.Type.DType != target.Type.DType {
		v = op.AtenUnderToCopyDefault(b, v, op.KW("dtype", ir.DTypeArg(target.Type.DType)))
	}
	if v != nil && !ir.EqualShape(v.Type.Shape, target.Type.Shape) {
		v = op.AtenExpandDefault(b, v, shapeArg(target))
	}
	return v
}

// pureTwin builds the pure form of an in-place operator from its current arguments: the new value of each written argument
// and the other results.
func pureTwin(b *ir.Builder, n *ir.Node) (written map[int]*ir.Value, results []*ir.Value, why string) {
	info := n.Info()
	s := &info.Schema
	written = map[int]*ir.Value{}
	switch s.NS + "." + s.Base {
	case "aten.copy_":
		src := n.Arg(1)
		v := src.Value()
		if v == nil || !v.Type.IsTensor() {
			v = op.AtenScalarTensorDefault(b, src, op.KW("dtype", ir.DTypeArg(n.In(0).Type.DType)))
		}
		written[0] = v
		return written, nil, ""
	case "llama.update_cache":
		written[1] = writeRange(b, n.In(1), n.In(0), 1, n.Arg(2))
		return written, []*ir.Value{dummy(b, n)}, ""
	case "llama.update_cache_with_indices":
		// Row i of the batch goes to places indices[i] of its cache.
		value, cache, idx := n.In(0), n.In(1), n.In(3)
		rows := op.AtenArangeDefault(b, ir.SymInt(value.Type.Shape[0]), op.KW("dtype", ir.DTypeArg(ops.Int64)))
		if b.Err != nil {
			return nil, nil, ""
		}
		rows = op.AtenUnsqueezeDefault(b, rows, ir.Int(1))
		written[1] = op.AtenIndexPutDefault(b, cache, ir.Refs(rows, idx), value)
		return written, []*ir.Value{dummy(b, n)}, ""
	case "mlx.gated_delta_rule":
		y, last := deltaRule(b, n)
		written[5] = last
		return written, []*ir.Value{y}, ""
	case "mlx.kv_cache_update":
		v, why := ringUpdate(b, n)
		written[0] = v
		return written, []*ir.Value{dummy(b, n)}, why
	case "aten.fill_diagonal_":
		x := n.In(0)
		if wrap, _ := n.ArgNamed("wrap").Bool(); wrap && x.Type.Rank() == 2 {
			if tall, known := b.G.Syms.ProveGt(x.Type.Shape[0], sym.Add(x.Type.Shape[1], sym.Const(1))); tall || !known {
				return nil, nil, "fills a wrapped diagonal"
			}
		}
		if x.Type.Rank() != 2 {
			return nil, nil, "fills the diagonal of a tensor that is no matrix"
		}
		d := op.AtenDiagonalDefault(b, x)
		if b.Err != nil {
			return nil, nil, ""
		}
		d = op.AtenFullDefault(b, shapeArg(d), n.Arg(1), op.KW("dtype", ir.DTypeArg(x.Type.DType)))
		written[0] = op.AtenDiagonalScatterDefault(b, x, d)
		return written, nil, ""
	}
	id := info.Functional
	if id == ops.Unknown && s.Overload != "" {
		id = ops.Lookup(s.NS + "." + s.Base) // the out variants of operators that have no twin by name
	}
	if id == ops.Unknown || id.Info().Mutates {
		return nil, nil, "is an in-place operator without a pure form"
	}
	twin := &id.Info().Schema
	args := op.Defaults(id)
	for i, a := range twin.Args {
		k := info.ArgIndex(a.Name)
		if k < 0 && i < len(s.Args) && s.Args[i].Type == a.Type && id.Info().ArgIndex(s.Args[i].Name) < 0 {
			k = i // the twin calls it otherwise: dropout_(self), dropout(input)
		}
		if k < 0 {
			if !a.HasDefault {
				return nil, nil, "its pure form needs the argument " + a.Name
			}
			continue
		}
		args[i] = n.Arg(k)
	}
	var m *ir.Node
	if infer.Has(id) {
		m = op.New(b, id, args)
	} else {
		types := make([]ir.Type, len(n.Outs))
		for i, o := range n.Outs {
			types[i] = o.Type
		}
		m = b.Raw(id, args, types...)
	}
	if m == nil {
		return nil, nil, ""
	}
	// Results in place of written arguments come by the schema's marks; those past the in-place operator's own stand for
	// the written arguments in order.
	results = make([]*ir.Value, len(n.Outs))
	returned := map[byte]bool{}
	for i, r := range s.Rets {
		if i >= len(m.Outs) {
			break
		}
		if !r.Write {
			if i < len(results) {
				results[i] = m.Outs[i]
			}
			continue
		}
		returned[r.Alias] = true
		for k, a := range s.Args {
			if a.Write && a.Alias == r.Alias {
				written[k] = m.Outs[i]
			}
		}
	}
	next := len(s.Rets)
	for k, a := range s.Args {
		if !a.Write || returned[a.Alias] {
			continue
		}
		if next >= len(m.Outs) {
			return nil, nil, "its pure form " + id.String() + " does not give the new value of " + a.Name
		}
		written[k] = m.Outs[next]
		next++
	}
	return written, results, ""
}

// dummy is the result without meaning that cache updates return.
func dummy(b *ir.Builder, n *ir.Node) *ir.Value {
	if n.Out() == nil || n.Out().NumUses() == 0 {
		return nil
	}
	return op.AtenZerosDefault(b, shapeArg(n.Out()), op.KW("dtype", ir.DTypeArg(n.Out().Type.DType)))
}

// writeRange writes src over dst from start on along a dimension.
func writeRange(b *ir.Builder, dst, src *ir.Value, dim int, start ir.Arg) *ir.Value {
	st, ok := start.Expr()
	if !ok {
		b.Fail(fmt.Errorf("the start of a write is no integer"))
		return nil
	}
	end := sym.Add(st, src.Type.Shape[dim])
	return op.AtenSliceScatterDefault(b, dst, src, op.KW("dim", ir.Int(int64(dim))), op.KW("start", ir.SymInt(st)), op.KW("end", ir.SymInt(end)))
}

// deltaRule is mlx::gated_delta_rule as the pure llama::gated_delta_rule, which has heads before time and the state the
// other way round.
func deltaRule(b *ir.Builder, n *ir.Node) (y, last *ir.Value) {
	q, k, v := n.In(0), n.In(1), n.In(2)
	heads := v.Type.Shape[2]
	swap := func(x *ir.Value, dims ...int64) *ir.Value {
		if x == nil {
			return nil
		}
		return op.AtenPermuteDefault(b, x, ir.Ints(dims...))
	}
	forHeads := func(x *ir.Value) *ir.Value {
		if !x.Type.Shape[2].Equal(heads) {
			x = op.AtenRepeatInterleaveSelfInt(b, x, ir.SymInt(sym.FloorDiv(heads, x.Type.Shape[2])), op.KW("dim", ir.Int(2)))
		}
		return swap(x, 0, 2, 1, 3)
	}
	state := swap(n.In(5), 0, 1, 3, 2)
	m := op.LlamaGatedDeltaRuleDefault(b, forHeads(q), forHeads(k), swap(v, 0, 2, 1, 3), swap(n.In(3), 0, 2, 1), swap(n.In(4), 0, 2, 1), state)
	if m == nil {
		return nil, nil
	}
	return swap(m.Outs[0], 0, 2, 1, 3), swap(m.Outs[1], 0, 1, 3, 2)
}

// ringUpdate is mlx::kv_cache_update: a range, or with a ring size places that wrap around.
func ringUpdate(b *ir.Builder, n *ir.Node) (*ir.Value, string) {
	cache, src := n.In(0), n.In(1)
	ring, ok := n.Arg(3).Expr()
	st, okS := n.Arg(2).Expr()
	if !ok || !okS {
		return nil, "its start or ring size is no integer"
	}
	if ring.IsConstValue(0) {
		return writeRange(b, cache, src, 2, n.Arg(2)), ""
	}
	if src.Type.Shape[2].IsConstValue(1) {
		return writeRange(b, cache, src, 2, ir.SymInt(sym.Mod(st, ring))), ""
	}
	places := op.AtenArangeStartStep(b, ir.SymInt(st), ir.SymInt(sym.Add(st, src.Type.Shape[2])), op.KW("dtype", ir.DTypeArg(ops.Int64)))
	places = op.AtenRemainderScalar(b, places, ir.SymInt(ring))
	return op.AtenIndexCopyDefault(b, cache, ir.Int(2), places, src), ""
}

// reshapeInPlace is an in-place operator that changes only how a tensor sees its storage.
func (f *functionalizer) reshapeInPlace(n *ir.Node) error {
	self := n.In(0)
	if err := f.readCurrent(n); err != nil {
		return err
	}
	name := n.Info().Schema
	base := name.Base[:len(name.Base)-1]
	over := name.Overload
	if base == "transpose" {
		over = "int"
	}
	if over != "" {
		base += "." + over
	}
	id := ops.Lookup("aten." + base)
	if id == ops.Unknown {
		f.ctx.Report(n.Diag("mutation", "is an in-place operator without a pure form", ""))
		return nil
	}
	b := ir.NewBuilder(n.Graph(), n, n.Origin.Derive(f.ctx.pass+"#"+name.Base))
	m := op.New(b, id, append([]ir.Arg(nil), n.Args()...))
	if b.Err != nil {
		return fmt.Errorf("%s at %s: %w", n.OpName(), n.Origin, b.Err)
	}
	f.ctx.changes++
	p := f.viewOf(self)
	// Both names show the tensor as it is from now on.
	w := &viewOf{s: p.s, parent: p, n: m, cur: m.Out(), gen: p.s.gen}
	f.views[n.Out()], f.views[self] = w, w
	f.dead = append(f.dead, n)
	return nil
}

// norm is a batch norm in training mode, which writes its running statistics although its schema does not say so.
func (f *functionalizer) norm(n *ir.Node) (done bool, err error) {
	train := n.ArgNamed("training")
	if n.Op == ops.AtenInstanceNormDefault {
		train = n.ArgNamed("use_input_stats")
	}
	if t, ok := train.Bool(); ok && !t || n.ArgNamed("running_mean").IsNone() {
		return false, nil
	}
	if n.Op == ops.AtenInstanceNormDefault {
		f.ctx.Report(n.Diag("training", "an instance norm that tracks statistics in training mode", "call model.eval() before the export"))
		return true, f.readCurrent(n)
	}
	mean, variance := n.In(3), n.In(4)
	if err := f.readCurrent(n); err != nil {
		return true, err
	}
	b := ir.NewBuilder(n.Graph(), n, n.Origin.Derive(f.ctx.pass+"#batch_norm"))
	a := n.Args()
	m := op.AtenUnderNativeBatchNormLegitFunctionalDefault(b, n.In(0), n.In(1), n.In(2), n.In(3), n.In(4), ir.Bool(true), a[6], a[7])
	if b.Err != nil {
		f.ctx.Report(n.Diag("training", b.Err.Error(), "call model.eval() before the export"))
		return true, f.readCurrent(n)
	}
	f.ctx.changes++
	for i, v := range []*ir.Value{mean, variance} {
		if err := f.write(f.viewOf(v), m.Outs[3+i], n, n); err != nil {
			return true, err
		}
	}
	n.Outs[0].ReplaceAllUses(m.Outs[0])
	f.dead = append(f.dead, n)
	return true, nil
}

// nested functionalizes the graphs of n. Operands that a branch writes to become results of the node.
func (f *functionalizer) nested(n *ir.Node) error {
	written := map[int]bool{}
	type branch struct {
		g   *ir.Graph
		sub *functionalizer
	}
	var branches []branch
	for _, h := range n.Graphs() {
		sub := &functionalizer{ctx: f.ctx, views: map[*ir.Value]*viewOf{}}
		if err := sub.run(h); err != nil {
			return err
		}
		for i, in := range h.Inputs {
			if sub.changed(in) != nil {
				written[i] = true
			}
		}
		branches = append(branches, branch{h, sub})
	}
	if len(written) == 0 {
		return f.readCurrent(n)
	}
	operands, ok := operandsArg(n)
	if !ok {
		f.ctx.Report(n.Diag("mutation", "its body writes to a tensor from outside", "carry the tensor as a value and write it after the loop"))
		return f.readCurrent(n)
	}
	places := make([]*ir.Value, 0, len(written)) // as the program names them
	var order []int
	for i, a := range n.Arg(operands).List() {
		if written[i] {
			order = append(order, i)
			places = append(places, a.Value())
		}
	}
	if err := f.readCurrent(n); err != nil {
		return err
	}
	for _, br := range branches {
		outs := append([]ir.Output(nil), br.g.Outputs...)
		args := append([]ir.Arg(nil), br.g.Ret().Args()...)
		for _, i := range order {
			in := br.g.Inputs[i]
			v := br.sub.changed(in)
			if v == nil {
				v = in.Value
			}
			outs = append(outs, ir.Output{})
			args = append(args, ir.RefAny(v))
		}
		br.g.SetOutputs(outs, args)
	}
	types := make([]ir.Type, 0, len(n.Outs)+len(order))
	for _, o := range n.Outs {
		types = append(types, o.Type)
	}
	for _, v := range places {
		types = append(types, ir.TensorType(v.Type.DType, v.Type.Shape...))
	}
	f.ctx.changes++
	g := n.Graph()
	m := g.NewNode(n, n.Op, append([]ir.Arg(nil), n.Args()...), types, n.Origin.Derive(f.ctx.pass+"#branch-writes"))
	old := len(n.Outs)
	for i, o := range n.Outs {
		o.ReplaceAllUses(m.Outs[i])
		m.Outs[i].Name = o.Name
		if w, ok := f.views[o]; ok {
			f.views[m.Outs[i]] = w
		}
	}
	g.Erase(n)
	for k, v := range places {
		if err := f.write(f.viewOf(v), m.Outs[old+k], m, m.Next()); err != nil {
			return err
		}
	}
	return nil
}

// operandsArg is the argument whose list feeds the inputs of the nested graphs, for operators that run them once.
func operandsArg(n *ir.Node) (int, bool) {
	switch n.Op {
	case ops.HigherOrderCondDefault:
		return 3, true
	}
	return 0, false
}

// changed is the last value of a written input, nil for one that was not.
func (f *functionalizer) changed(in *ir.Input) *ir.Value {
	w, ok := f.views[in.Value]
	if !ok || w.s.gen == 0 || w.s.cur == w.s.root {
		return nil
	}
	return w.s.cur
}

// writeBack makes outputs of the inputs that were written: buffers in their order, then user inputs, then what was there.
func (f *functionalizer) writeBack(g *ir.Graph) {
	var outs []ir.Output
	var args []ir.Arg
	have := map[*ir.Input]bool{}
	shared := storages(g)
	for i, o := range g.Outputs {
		if o.Kind != ir.OutputUser {
			have[o.Target] = true
			outs = append(outs, o)
			args = append(args, g.Ret().Arg(i))
		}
	}
	for _, kind := range []ir.OutputKind{ir.OutputBufferMutation, ir.OutputInputMutation} {
		for _, in := range g.Inputs {
			if (in.Kind == ir.InputUser) != (kind == ir.OutputInputMutation) || have[in] {
				continue
			}
			v := f.changed(in)
			if v == nil {
				continue
			}
			if f.overlaps(shared, in) {
				f.ctx.Report(&ir.Diag{
					Code: "alias", Msg: fmt.Sprintf("%s %q is written to and shares memory with another tensor of the model in part", in.Kind, in.Target),
					Node: in.Value.Name, File: g.File, Entry: g.Entry, Try: "give the buffer memory of its own with clone()",
				})
			}
			outs = append(outs, ir.Output{Kind: kind, Target: in})
			args = append(args, ir.RefAny(v))
		}
	}
	if len(outs) == 0 {
		return
	}
	for i, o := range g.Outputs {
		if o.Kind == ir.OutputUser {
			outs = append(outs, o)
			args = append(args, g.Ret().Arg(i))
		}
	}
	g.SetOutputs(outs, args)
}

// storages groups the inputs by where their contents lie.
func storages(g *ir.Graph) map[ir.Storage][]*ir.Input {
	by := map[ir.Storage][]*ir.Input{}
	for _, in := range g.Inputs {
		if in.Data != nil && isComparable(in.Data.Storage) {
			by[in.Data.Storage] = append(by[in.Data.Storage], in)
		}
	}
	return by
}

// overlaps tells whether the storage of a written input is seen by another input in another way.
func (f *functionalizer) overlaps(shared map[ir.Storage][]*ir.Input, in *ir.Input) bool {
	if in.Data == nil || !isComparable(in.Data.Storage) {
		return false
	}
	for _, other := range shared[in.Data.Storage] {
		if other != in && f.viewOf(other.Value) != f.viewOf(in.Value) && other.Value.NumUses() > 0 {
			return true
		}
	}
	return false
}
