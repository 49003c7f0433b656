package pt2

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/infer"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/pt2/pytree"
	"github.com/lathe-ml/lathe/pt2/schema"
)

// More faults than this in one program are not told.
const maxDiags = 50

const tryGraph = "the archive is damaged or was edited by hand; export the model again"

// importer turns one saved program into a graph.
type importer struct {
	a     *Archive
	entry string
	name  string
	ep    *schema.ExportedProgram

	syms    *sym.Table
	exprs   map[string]sym.Expr // by their text
	badText map[string]bool     // expressions that are told to be wrong
	origins *origins
	weights *payloads
	consts  *payloads
	diags   ir.Diags
}

// scope is a graph at hand: the names of an archive are those of one graph.
type scope struct {
	*importer
	g       *ir.Graph
	sg      *schema.Graph
	path    string // in the JSON
	values  map[string]*ir.Value
	tensors map[string]*schema.TensorMeta
	ints    map[string]*schema.SymInt
	floats  map[string]*schema.SymFloat
	bools   map[string]*schema.SymBool
	wraps   map[string]*wrapped // tensor subclasses, which are no values
	lost    map[string]bool     // values that are missing or of no known type, by a fault that is told
	// distrusted are values whose recorded type is known to be wrong, and what comes of them.
	distrusted map[string]bool
	// autocast is the type of autocast around the graph, inner that of the graphs of the node at hand.
	autocast, inner ops.DType
}

func (im *importer) full() bool { return len(im.diags) >= maxDiags }

func (im *importer) add(d *ir.Diag) {
	if !im.full() {
		im.diags = append(im.diags, d)
	}
}

func (im *importer) fail(code, format string, args ...any) {
	im.add(im.a.diag(code, im.entry, tryGraph, format, args...))
}

// errTold marks what follows from a fault that is told already.
var errTold = errors.New("told already")

// failAt tells an error, unless it follows from one that is told.
func (im *importer) failAt(at string, err error) {
	if !errors.Is(err, errTold) {
		im.fail(CodeGraph, "%s: %v", at, err)
	}
}

func (im *importer) run() (*ir.Graph, error) {
	im.syms = &sym.Table{}
	im.exprs, im.badText = map[string]sym.Expr{}, map[string]bool{}
	im.origins = newOrigins()
	var err error
	if im.weights, err = im.a.payloads("weights", im.name); err != nil {
		return nil, err
	}
	if im.consts, err = im.a.payloads("constants", im.name); err != nil {
		return nil, err
	}
	im.ranges()
	method := im.name
	if method == "model" {
		method = "forward"
	}
	g := ir.NewGraph(method, im.syms)
	g.File, g.Entry = im.a.c.Path(), im.entry
	s := im.scope(g, &im.ep.GraphModule.Graph, "graph_module.graph")
	tokens := s.inputs()
	if len(im.diags) == 0 {
		s.spec()
	}
	s.guards()
	s.nodes()
	s.outputs(tokens)
	if err := im.diags.Err(); err != nil {
		return nil, err
	}
	return g, nil
}

func (im *importer) scope(g *ir.Graph, sg *schema.Graph, path string) *scope {
	s := &scope{
		importer: im, g: g, sg: sg, path: path,
		values:     make(map[string]*ir.Value, len(sg.TensorValues)),
		tensors:    index(im, path+".tensor_values", sg.TensorValues),
		ints:       index(im, path+".sym_int_values", sg.SymIntValues),
		floats:     index(im, path+".sym_float_values", sg.SymFloatValues),
		bools:      index(im, path+".sym_bool_values", sg.SymBoolValues),
		wraps:      map[string]*wrapped{},
		lost:       map[string]bool{},
		distrusted: map[string]bool{},
	}
	return s
}

func index[T any](im *importer, path string, d schema.Dict[T]) map[string]*T {
	m := make(map[string]*T, len(d))
	for i := range d {
		if m[d[i].Key] != nil {
			im.fail(CodeGraph, "%s: %q stands twice", path, d[i].Key)
		}
		m[d[i].Key] = &d[i].Value
	}
	return m
}

// ranges enters the range constraints into the symbol table.
func (im *importer) ranges() {
	for i := range im.ep.RangeConstraints {
		c := &im.ep.RangeConstraints[i]
		r := sym.NoRange
		if c.Value.MinVal.OK {
			r.Min = c.Value.MinVal.V
		}
		// The exporter's infinities are the largest numbers but one, too.
		if c.Value.MaxVal.OK && c.Value.MaxVal.V < math.MaxInt64-1 {
			r.Max = c.Value.MaxVal.V
		}
		if r.Empty() {
			im.fail(CodeGraph, "range_constraints.%s: the range from %d to %d is empty", c.Key, r.Min, r.Max)
			continue
		}
		e, err := im.parse(c.Key)
		if err == nil {
			if name, ok := e.IsSymbol(); ok {
				s, _ := im.syms.Get(name)
				s.Range = r
				err = im.syms.Add(s)
			} else if _, ok := e.IsConst(); !ok {
				err = im.syms.Constrain(e, r)
			}
		}
		if err != nil {
			im.fail(CodeGraph, "range_constraints.%s: %v", clean(c.Key), err)
		}
	}
}

// parse reads an expression; its symbols come into the table.
func (im *importer) parse(text string) (sym.Expr, error) {
	if e, ok := im.exprs[text]; ok {
		return e, nil
	}
	if im.badText[text] {
		return sym.Expr{}, errTold
	}
	e, err := sym.ParseSympy(text, sym.SympyOptions{Symbol: func(name string, assumptions []string) (sym.Expr, error) {
		if _, ok := im.syms.Get(name); !ok {
			s := sym.Sym{Name: name, Range: sym.NoRange}
			for _, a := range assumptions {
				switch a {
				case "positive":
					s.Range.Min = max(s.Range.Min, 1)
				case "nonnegative":
					s.Range.Min = max(s.Range.Min, 0)
				}
			}
			if err := im.syms.Add(s); err != nil {
				return sym.Expr{}, err
			}
		}
		return sym.Symbol(name), nil
	}})
	if err == nil {
		err = e.Err()
	}
	if err != nil {
		im.badText[text] = true
		return sym.Expr{}, fmt.Errorf("expression %s: %w", clean(text), err)
	}
	im.exprs[text] = e
	return e, nil
}

// int reads a size, stride or integer value.
func (im *importer) int(i *schema.SymInt) (sym.Expr, error) {
	if i.Arm == schema.SymIntAsInt {
		return sym.Const(i.AsInt()), nil
	}
	x := i.AsExpr()
	e, err := im.parse(x.ExprStr)
	if err != nil {
		return e, err
	}
	if e.Kind() != sym.Int {
		return e, fmt.Errorf("expression %s is a %s, not an integer", clean(x.ExprStr), e.Kind())
	}
	if x.Hint != nil && x.Hint.Arm == schema.SymExprHintAsInt {
		if name, ok := e.IsSymbol(); ok {
			if s, ok := im.syms.Get(name); ok && !s.HasHint {
				s.Hint, s.HasHint = x.Hint.AsInt(), true
				if err := im.syms.Add(s); err != nil {
					return e, err
				}
			}
		}
	}
	return e, nil
}

// tensorType reads a tensor value's type.
func (s *scope) tensorType(name string) (ir.Type, error) {
	m := s.tensors[name]
	if m == nil {
		return ir.Type{}, fmt.Errorf("tensor_values has no %q", name)
	}
	t := ir.Type{DType: dtypeOf(m.Dtype)}
	fail := func(format string, args ...any) (ir.Type, error) {
		return t, fmt.Errorf("tensor_values.%s: %w", name, fmt.Errorf(format, args...))
	}
	if t.DType == ops.DTypeNone {
		return fail("element type %s", m.Dtype)
	}
	if m.Layout != schema.LayoutStrided {
		return fail("layout %s: only strided tensors are compiled", m.Layout)
	}
	if len(m.Sizes) != len(m.Strides) {
		return fail("%d sizes and %d strides", len(m.Sizes), len(m.Strides))
	}
	t.Shape = make([]sym.Expr, len(m.Sizes))
	t.Strides = make([]sym.Expr, len(m.Sizes))
	for i := range m.Sizes {
		var err error
		if t.Shape[i], err = s.int(&m.Sizes[i]); err != nil {
			return fail("size %d: %w", i, err)
		}
		if s.syms.Range(t.Shape[i]).Max < 0 {
			return fail("size %d is %s", i, t.Shape[i])
		}
		if t.Strides[i], err = s.int(&m.Strides[i]); err != nil {
			return fail("stride %d: %w", i, err)
		}
		t.Strides[i] = s.syms.Simplify(t.Strides[i])
		if s.syms.Range(t.Strides[i]).Max < 0 {
			return fail("stride %d is %s", i, t.Strides[i])
		}
	}
	t.Strides = t.NormStrides()
	return t, nil
}

func (s *scope) define(name string, v *ir.Value) {
	if s.values[name] != nil {
		s.fail(CodeGraph, "value %q is defined twice", name)
		return
	}
	s.values[name] = v
}

// inputs makes the graph's inputs from the signature and gives the names of effect tokens.
func (s *scope) inputs() (tokens map[string]bool) {
	tokens = map[string]bool{}
	specs := s.ep.GraphModule.Signature.InputSpecs
	if len(specs) != len(s.sg.Inputs) {
		s.fail(CodeGraph, "the graph has %d inputs, the signature %d (graph_module.signature.input_specs)", len(s.sg.Inputs), len(specs))
		for i := range s.sg.Inputs {
			s.lost[argName(&s.sg.Inputs[i])] = true
		}
		return
	}
	for i := range specs {
		sp, arg := &specs[i], &s.sg.Inputs[i]
		at := fmt.Sprintf("graph_module.signature.input_specs[%d]", i)
		same := func(name string) bool {
			got := argName(arg)
			if got == name {
				return true
			}
			s.fail(CodeGraph, "%s is %q, the graph's input %d is %q", at, name, i, got)
			s.lost[name], s.lost[got] = true, true
			return false
		}
		weight := func(kind ir.InputKind, name, target string, persistent bool) {
			if !same(name) {
				return
			}
			t, err := s.tensorType(name)
			if err != nil {
				s.failAt(at, err)
				s.lost[name] = true
				return
			}
			s.weight(&ir.Input{Kind: kind, Target: target, Persistent: persistent}, name, t)
		}
		switch sp.Arm {
		case schema.InputSpecParameter:
			p := sp.Parameter()
			weight(ir.InputParam, p.Arg.Name, p.ParameterName, true)
		case schema.InputSpecBuffer:
			p := sp.Buffer()
			weight(ir.InputBuffer, p.Arg.Name, p.BufferName, p.Persistent)
		case schema.InputSpecTensorConstant:
			p := sp.TensorConstant()
			weight(ir.InputConst, p.Arg.Name, p.TensorConstantName, false)
		case schema.InputSpecUserInput:
			a := &sp.UserInput().Arg
			if !same(argName(a)) {
				continue
			}
			s.userInput(at, a, ir.InputUser)
		case schema.InputSpecConstantInput:
			c := sp.ConstantInput()
			s.constantInput(c.Name, &c.Value)
		case schema.InputSpecToken:
			name := sp.Token().Arg.Name
			tokens[name] = true
			s.define(name, nil)
		default:
			s.add(s.a.diag(CodeUnsupported, s.entry, "keep script objects out of the exported module",
				"%s: input kind %s cannot be compiled", at, sp.Arm))
		}
	}
	return tokens
}

// argName is the name of the value that an argument is, empty for constants and lists.
func argName(a *schema.Argument) string {
	switch a.Arm {
	case schema.ArgumentAsTensor:
		return a.AsTensor().Name
	case schema.ArgumentAsSymInt:
		return a.AsSymInt().AsName()
	case schema.ArgumentAsSymFloat:
		return a.AsSymFloat().AsName()
	case schema.ArgumentAsSymBool:
		return a.AsSymBool().AsName()
	case schema.ArgumentAsCustomObj:
		return a.AsCustomObj().Name
	}
	return ""
}

// userInput makes an input from a value that the caller, or the node around a nested graph, gives.
func (s *scope) userInput(at string, a *schema.Argument, kind ir.InputKind) {
	name := argName(a)
	fixed, isFixed := ir.None, false
	var t ir.Type
	var err error
	switch a.Arm {
	case schema.ArgumentAsTensor:
		t, err = s.tensorType(name)
	case schema.ArgumentAsSymInt, schema.ArgumentAsSymFloat, schema.ArgumentAsSymBool:
		if name != "" {
			t, err = s.scalarType(a.Arm, name)
			break
		}
		fallthrough
	default:
		fixed, err = s.arg(a)
		isFixed = true
		if t = constType(fixed); fixed.Kind() == ir.ArgList {
			err = fmt.Errorf("a list (%s) where a single value should be", a.Arm)
		}
	}
	if err != nil {
		s.failAt(at, err)
		s.lost[name] = true
		return
	}
	in := s.g.AddInput(name, kind, name, t)
	in.Fixed, in.HasFixed = fixed, isFixed
	if name != "" {
		s.define(name, in.Value)
	}
}

// constType is the type of a constant argument.
func constType(a ir.Arg) ir.Type {
	switch a.Kind() {
	case ir.ArgInt:
		e, _ := a.Expr()
		return ir.IntType(e)
	case ir.ArgFloat:
		return ir.ScalarType(ir.KindFloat)
	case ir.ArgBool:
		return ir.ScalarType(ir.KindBool)
	case ir.ArgNone:
		return ir.ScalarType(ir.KindNone)
	}
	return ir.ScalarType(ir.KindStr)
}

func (s *scope) constantInput(name string, v *schema.ConstantValue) {
	var a ir.Arg
	switch v.Arm {
	case schema.ConstantValueAsInt:
		a = ir.Int(v.AsInt())
	case schema.ConstantValueAsFloat:
		a = ir.Float(v.AsFloat())
	case schema.ConstantValueAsBool:
		a = ir.Bool(v.AsBool())
	case schema.ConstantValueAsString:
		a = ir.Str(v.AsString())
	}
	in := s.g.AddInput(name, ir.InputUser, name, constType(a))
	in.Fixed, in.HasFixed = a, true
	s.define(name, in.Value)
}

// scalarType is the type of a named integer, float or bool.
func (s *scope) scalarType(arm schema.ArgumentArm, name string) (ir.Type, error) {
	switch arm {
	case schema.ArgumentAsSymInt:
		i := s.ints[name]
		if i == nil {
			return ir.Type{}, fmt.Errorf("sym_int_values has no %q", name)
		}
		e, err := s.int(i)
		if err != nil {
			return ir.Type{}, fmt.Errorf("sym_int_values.%s: %w", name, err)
		}
		return ir.IntType(e), nil
	case schema.ArgumentAsSymFloat:
		if s.floats[name] == nil {
			return ir.Type{}, fmt.Errorf("sym_float_values has no %q", name)
		}
		return ir.ScalarType(ir.KindFloat), nil
	}
	if s.bools[name] == nil {
		return ir.Type{}, fmt.Errorf("sym_bool_values has no %q", name)
	}
	return ir.ScalarType(ir.KindBool), nil
}

// weight makes the input of a parameter, buffer or constant like the one given, with its contents.
func (s *scope) weight(like *ir.Input, name string, t ir.Type) {
	lists := [2]*payloads{s.weights, s.consts}
	if !like.Persistent {
		lists[0], lists[1] = lists[1], lists[0]
	}
	var data *ir.Data
	found := false
	for _, l := range lists {
		d, w, ok, err := s.a.find(l, like.Target)
		if !ok {
			continue
		}
		found = true
		if err != nil {
			if dg, ok := ir.AsDiags(err); ok {
				s.add(dg[0])
			}
			break
		}
		dtype, sizes := ops.DTypeNone, []int64(nil)
		if w != nil {
			dtype, sizes = w.sub.DType, w.sub.Sizes
		} else {
			dtype, sizes = d.DType, d.Sizes
		}
		want, ok := t.Sizes()
		if !ok || !slices.Equal(sizes, want) || t.DType != dtype {
			s.add(s.a.diag(CodeWeight, l.entry, tryGraph, "%s is %s%v here and %s in the graph (%s)", like.Target, dtype, sizes, t, s.entry))
			break
		}
		if w != nil {
			w.like, w.name = like, name
			s.wraps[name] = w
			return
		}
		data = d
		break
	}
	switch {
	case found:
	case lists[0].absent:
		s.add(s.a.diag(CodeArchive, lists[0].entry, tryGraph, "the entry is missing, %s %s is to be in it", like.Kind, like.Target))
	default:
		s.add(s.a.diag(CodeWeight, lists[0].entry, tryGraph, "%s %s is in no list of the archive", like.Kind, like.Target))
	}
	in := s.g.AddInput(name, like.Kind, like.Target, t)
	in.Persistent, in.Data = like.Persistent, data
	s.define(name, in.Value)
}

// spec keeps the pytree specs of the program's call and the names of its inputs.
func (s *scope) spec() {
	for i := range s.ep.GraphModule.ModuleCallGraph {
		c := &s.ep.GraphModule.ModuleCallGraph[i]
		if c.Fqn != "" || c.Signature == nil {
			continue
		}
		s.g.InSpec, s.g.OutSpec = c.Signature.InSpec, c.Signature.OutSpec
		users := len(s.g.UserInputs())
		if in, err := pytree.Parse(c.Signature.InSpec); err != nil {
			s.fail(CodeGraph, "module_call_graph[%d].signature.in_spec: %v", i, err)
		} else if names := in.Paths(c.Signature.ForwardArgNames); len(names) == users {
			s.g.InputNames = names
		} else {
			s.fail(CodeGraph, "module_call_graph[%d].signature.in_spec has %d leaves, the program %d inputs", i, len(names), users)
		}
		if out, err := pytree.Parse(c.Signature.OutSpec); err != nil {
			s.fail(CodeGraph, "module_call_graph[%d].signature.out_spec: %v", i, err)
		} else if n := s.returned(); out.Leaves() != n {
			s.fail(CodeGraph, "module_call_graph[%d].signature.out_spec has %d leaves, the program %d outputs", i, out.Leaves(), n)
		}
		return
	}
}

// returned counts what the program gives its caller.
func (s *scope) returned() (n int) {
	for i := range s.ep.GraphModule.Signature.OutputSpecs {
		switch s.ep.GraphModule.Signature.OutputSpecs[i].Arm {
		case schema.OutputSpecUserOutput, schema.OutputSpecLossOutput:
			n++
		}
	}
	return n
}

func (s *scope) nodes() {
	for i := range s.sg.Nodes {
		if s.full() {
			return
		}
		n := &s.sg.Nodes[i]
		s.node(i, n)
		*n = schema.Node{} // the text's form is not needed any more
	}
}

// target is an operator's name in the table: torch.ops.aten.add.Tensor is aten.add.Tensor.
func target(t string) string { return strings.TrimPrefix(t, "torch.ops.") }

func (s *scope) node(i int, n *schema.Node) {
	inputs, outputs := n.Inputs, n.Outputs
	name := target(n.Target)
	// An operator with an ordered effect is wrapped with its token; order is what the list of nodes is.
	if name == "higher_order.with_effects" && len(inputs) >= 2 && inputs[1].Arg.Arm == schema.ArgumentAsOperator && len(outputs) > 0 {
		name = target(inputs[1].Arg.AsOperator())
		s.token(&outputs[0])
		inputs, outputs = inputs[2:], outputs[1:]
	}
	own := n.Name.V
	if own == "" && len(outputs) > 0 {
		own = argName(&outputs[0])
	}
	stack, _ := n.Metadata.Get("stack_trace")
	modules, _ := n.Metadata.Get("nn_module_stack")
	origin := s.origins.origin(own, stack, modules)
	id := ops.Lookup(name)
	bad := func(err error) {
		if errors.Is(err, errTold) {
			return
		}
		s.add(&ir.Diag{
			Code: CodeGraph, Op: name, Node: own, Origin: origin, File: s.a.c.Path(), Entry: s.entry, Try: tryGraph,
			Msg: fmt.Sprintf("%s.nodes[%d] %s: %v", s.path, i, clean(own), err),
		})
	}

	s.inner = s.autocast
	if name == "higher_order.wrap_with_autocast" {
		s.inner = autocastOf(inputs)
	}

	var args []ir.Arg
	var argNames []string
	done, restore, err := s.unwrap(name, inputs, outputs, origin)
	if done {
		if err != nil {
			bad(err)
		}
		return
	}
	defer restore()
	switch {
	case err != nil:
	case id == ops.Unknown:
		args, argNames, err = s.freeArgs(inputs)
	default:
		args, err = s.schemaArgs(id, inputs)
	}
	if err != nil {
		bad(err)
	}
	types, names, terr := s.results(id, outputs)
	lost := terr != nil || errors.Is(err, errTold)
	if terr != nil {
		bad(terr)
	}
	if err == nil && terr == nil && infer.Has(id) {
		e := s.compare(id, args, types, names)
		if e != nil && s.autocast != ops.DTypeNone {
			if cast, ok := s.autocastArgs(id, args, types, names, origin); ok {
				args, e = cast, nil
			}
		}
		if e != nil {
			bad(e)
			lost = true
		}
	}
	if err != nil || args == nil {
		args = make([]ir.Arg, len(args))
	}
	m := s.g.NewNode(s.g.Ret(), id, args, types, origin)
	if id == ops.Unknown {
		m.Target, m.ArgNames = name, argNames
	}
	for k, v := range m.Outs {
		v.Name = names[k]
		if names[k] == "" {
			continue
		}
		if s.values[names[k]] != nil {
			bad(fmt.Errorf("value %q is defined twice", names[k]))
			continue
		}
		if lost {
			s.lost[names[k]] = true
			continue
		}
		s.values[names[k]] = v
	}
}

func (s *scope) token(a *schema.Argument) {
	if n := argName(a); n != "" {
		s.values[n] = nil
	}
}

// results gives the types and names of a node's results, lists in line.
func (s *scope) results(id ops.ID, outs []schema.Argument) (types []ir.Type, names []string, err error) {
	one := func(a *schema.Argument) {
		var t ir.Type
		var e error
		name := argName(a)
		switch a.Arm {
		case schema.ArgumentAsTensor:
			t, e = s.tensorType(name)
		case schema.ArgumentAsSymInt, schema.ArgumentAsSymFloat, schema.ArgumentAsSymBool:
			if name == "" {
				e = fmt.Errorf("a constant (%s) among the results", a.Arm)
				break
			}
			t, e = s.scalarType(a.Arm, name)
		case schema.ArgumentAsNone:
			t = ir.ScalarType(ir.KindNone)
		default:
			e = fmt.Errorf("%s among the results", a.Arm)
		}
		if e != nil && err == nil {
			err = e
		}
		types, names = append(types, t), append(names, name)
	}
	tensor := func(t schema.TensorArgument) {
		ty, e := s.tensorType(t.Name)
		if e != nil && err == nil {
			err = e
		}
		types, names = append(types, ty), append(names, t.Name)
	}
	rets := id.Info().Schema.Rets
	if id != ops.Unknown && len(rets) == 0 && len(outs) == 1 && outs[0].Arm == schema.ArgumentAsNone {
		return nil, nil, nil // Python's None, which stands for no result
	}
	list := id == ops.Unknown || len(rets) == 1 && rets[0].List
	for i := range outs {
		a := &outs[i]
		switch a.Arm {
		case schema.ArgumentAsTensors:
			for _, t := range a.AsTensors() {
				tensor(t)
			}
		case schema.ArgumentAsOptionalTensors:
			l := a.AsOptionalTensors()
			for k := range l {
				if l[k].Arm == schema.OptionalTensorArgumentAsNone {
					types, names = append(types, ir.ScalarType(ir.KindNone)), append(names, "")
					continue
				}
				tensor(l[k].AsTensor())
			}
		case schema.ArgumentAsNestedTensors:
			for _, l := range a.AsNestedTensors() {
				for _, t := range l {
					tensor(t)
				}
			}
		default:
			one(a)
			continue
		}
		if !list && (i >= len(rets) || !rets[i].List) && err == nil {
			err = fmt.Errorf("result %d is a list, the operator's schema has a single value", i)
		}
	}
	if !list && len(outs) != len(rets) && err == nil {
		err = fmt.Errorf("%d results, the operator's schema has %d", len(outs), len(rets))
	}
	return types, names, err
}

// compare checks the archive's types against the operator's rule.
func (s *scope) compare(id ops.ID, args []ir.Arg, types []ir.Type, names []string) error {
	want, err := infer.Predict(s.g, id, args)
	if err != nil {
		return err
	}
	if len(want) != len(types) {
		return fmt.Errorf("%d results, the operator gives %d", len(types), len(want))
	}
	for i, w := range want {
		got := types[i]
		if got.Kind == ir.KindNone {
			continue
		}
		differ := got.Kind != w.Kind
		if !differ && got.IsTensor() {
			differ = got.DType != w.DType || !s.maybeEqual(got.Shape, w.Shape)
		}
		if differ && s.misjudged(id, args, got, w) {
			types[i] = w
			s.distrusted[names[i]] = true
			continue
		}
		if differ {
			w.Strides, got.Strides = nil, nil
			return fmt.Errorf("tensor_values says that %s is %s, the operator gives %s", names[i], got, w)
		}
	}
	return nil
}

// misjudged tells that got is what export makes of the states of an LSTM without gradients, a dimension of one too many, or
// comes of such a value.
func (s *scope) misjudged(id ops.ID, args []ir.Arg, got, want ir.Type) bool {
	if got.DType != want.DType || !got.IsTensor() {
		return false
	}
	if id == ops.AtenLstmInput {
		return len(got.Shape) == len(want.Shape)+1 && s.maybeEqual(slices.Delete(slices.Clone(got.Shape), 1, 2), want.Shape) && got.Shape[1].IsConstValue(1)
	}
	found := false
	for _, a := range args {
		a.Each(func(v *ir.Value) { found = found || s.distrusted[v.Name] })
	}
	return found
}

// maybeEqual tells that nothing shows the shapes to differ.
func (s *scope) maybeEqual(a, b []sym.Expr) bool {
	if len(a) != len(b) {
		return false
	}
	for d := range a {
		if eq, known := s.syms.ProveEq(a[d], b[d]); known && !eq {
			return false
		}
	}
	return true
}

// nested imports the graph of a higher-order operator.
func (s *scope) nested(ga *schema.GraphArgument) (*ir.Graph, error) {
	g := ir.NewGraph(ga.Name, s.syms)
	g.File, g.Entry = s.a.c.Path(), s.entry
	n := s.scope(g, &ga.Graph, s.path+"."+ga.Name)
	n.autocast = s.inner
	before := len(s.diags)
	for i := range ga.Graph.Inputs {
		n.userInput(fmt.Sprintf("%s.inputs[%d]", n.path, i), &ga.Graph.Inputs[i], ir.InputOperand)
	}
	n.nodes()
	args := make([]ir.Arg, 0, len(ga.Graph.Outputs))
	for i := range ga.Graph.Outputs {
		a, err := n.arg(&ga.Graph.Outputs[i])
		if err != nil {
			s.failAt(fmt.Sprintf("%s.outputs[%d]", n.path, i), err)
		}
		if a.Kind() == ir.ArgList {
			args = append(args, a.List()...)
			continue
		}
		args = append(args, a)
	}
	if len(s.diags) > before {
		return g, nil // told already
	}
	g.SetOutputs(make([]ir.Output, len(args)), args)
	return g, nil
}

// outputs sets what the program returns, write-backs first.
func (s *scope) outputs(tokens map[string]bool) {
	specs := s.ep.GraphModule.Signature.OutputSpecs
	if len(specs) != len(s.sg.Outputs) {
		s.fail(CodeGraph, "the graph has %d outputs, the signature %d (graph_module.signature.output_specs)", len(s.sg.Outputs), len(specs))
		return
	}
	var back, user []ir.Output
	var backArgs, userArgs []ir.Arg
	byTarget := map[string]*ir.Input{}
	byName := map[string]*ir.Input{}
	for _, in := range s.g.Inputs {
		if in.Kind == ir.InputUser {
			byName[in.Value.Name] = in
		} else {
			byTarget[in.Kind.String()+" "+in.Target] = in
		}
	}
	for i := range specs {
		sp, arg := &specs[i], &s.sg.Outputs[i]
		at := fmt.Sprintf("graph_module.signature.output_specs[%d]", i)
		var o ir.Output
		var name string
		switch sp.Arm {
		case schema.OutputSpecUserOutput:
			name = argName(&sp.UserOutput().Arg)
		case schema.OutputSpecLossOutput:
			name = sp.LossOutput().Arg.Name
		case schema.OutputSpecBufferMutation:
			m := sp.BufferMutation()
			name = m.Arg.Name
			o = ir.Output{Kind: ir.OutputBufferMutation, Target: byTarget["buffer "+m.BufferName]}
			if o.Target == nil {
				s.fail(CodeGraph, "%s: the buffer %q that it writes to is no input", at, m.BufferName)
				continue
			}
		case schema.OutputSpecParameterMutation:
			m := sp.ParameterMutation()
			name = m.Arg.Name
			o = ir.Output{Kind: ir.OutputBufferMutation, Target: byTarget["param "+m.ParameterName]}
			if o.Target == nil {
				s.fail(CodeGraph, "%s: the parameter %q that it writes to is no input", at, m.ParameterName)
				continue
			}
		case schema.OutputSpecUserInputMutation:
			m := sp.UserInputMutation()
			name = m.Arg.Name
			o = ir.Output{Kind: ir.OutputInputMutation, Target: byName[m.UserInputName]}
			if o.Target == nil {
				s.fail(CodeGraph, "%s: the input %q that it writes to is none", at, m.UserInputName)
				continue
			}
		case schema.OutputSpecToken:
			continue
		default:
			s.add(s.a.diag(CodeUnsupported, s.entry, "export the model for inference, without a loss and gradients",
				"%s: output kind %s cannot be compiled", at, sp.Arm))
			continue
		}
		if got := argName(arg); got != name {
			s.fail(CodeGraph, "%s is %q, the graph's output %d is %q", at, name, i, got)
			continue
		}
		if tokens[name] && name != "" {
			continue
		}
		a, err := s.arg(arg)
		if err == nil && (a.Kind() == ir.ArgList || a.Kind() == ir.ArgGraph) {
			err = fmt.Errorf("%s where a single value should be", arg.Arm)
		}
		if err != nil {
			s.failAt(fmt.Sprintf("graph_module.graph.outputs[%d]", i), err)
			continue
		}
		if o.Kind == ir.OutputUser {
			user, userArgs = append(user, o), append(userArgs, a)
			continue
		}
		if v := a.Value(); v == nil || v.Type.DType != o.Target.Value.Type.DType || !s.maybeEqual(v.Type.Shape, o.Target.Value.Type.Shape) {
			s.fail(CodeGraph, "%s: %q does not fit %q, which it is written to", at, name, o.Target.Target)
			continue
		}
		back, backArgs = append(back, o), append(backArgs, a)
	}
	if len(s.diags) == 0 {
		s.g.SetOutputs(append(back, user...), append(backArgs, userArgs...))
	}
}

// value finds a value by name.
func (s *scope) value(name string) (*ir.Value, error) {
	v, ok := s.values[name]
	if ok {
		return v, nil
	}
	if s.lost[name] {
		return nil, errTold
	}
	if w := s.wraps[name]; w != nil {
		return nil, fmt.Errorf("value %q is a tensor subclass, %s, which has no plain form here", name, clean(w.sub.Class))
	}
	for i := range s.sg.Nodes {
		for k := range s.sg.Nodes[i].Outputs {
			o := &s.sg.Nodes[i].Outputs[k]
			later := argName(o) == name
			for _, t := range o.AsTensors() {
				later = later || t.Name == name
			}
			if later {
				return nil, fmt.Errorf("value %q is used before node %d makes it: the graph has a cycle", name, i)
			}
		}
	}
	return nil, fmt.Errorf("value %q is not defined", name)
}

func isList(a schema.ArgumentArm) bool {
	switch a {
	case schema.ArgumentAsTensors, schema.ArgumentAsInts, schema.ArgumentAsFloats, schema.ArgumentAsBools, schema.ArgumentAsStrings,
		schema.ArgumentAsSymInts, schema.ArgumentAsSymFloats, schema.ArgumentAsSymBools, schema.ArgumentAsOptionalTensors,
		schema.ArgumentAsNestedTensors, schema.ArgumentAsIntLists, schema.ArgumentAsFloatLists:
		return true
	}
	return false
}

// freeArgs converts the arguments of an operator without a schema.
func (s *scope) freeArgs(ins []schema.NamedArgument) (args []ir.Arg, names []string, err error) {
	for i := range ins {
		a, err := s.arg(&ins[i].Arg)
		if err != nil {
			return nil, nil, fmt.Errorf("argument %s: %w", argLabel(ins, i), err)
		}
		args, names = append(args, a), append(names, ins[i].Name)
	}
	return args, names, nil
}

func argLabel(ins []schema.NamedArgument, i int) string {
	if ins[i].Name != "" {
		return clean(ins[i].Name)
	}
	return strconv.Itoa(i)
}

// schemaArgs places the arguments by the operator's schema, defaults filled in.
func (s *scope) schemaArgs(id ops.ID, ins []schema.NamedArgument) ([]ir.Arg, error) {
	sc := &id.Info().Schema
	args := op.Defaults(id)
	given := make([]bool, len(args))
	last := len(args) - 1
	for i := range ins {
		k := i
		if ins[i].Name != "" {
			k = id.Info().ArgIndex(ins[i].Name)
		} else if k == last && sc.Args[k].List && !isList(ins[i].Arg.Arm) {
			// Operands of a higher-order operator that are not in a list: the rest of them is the last argument.
			rest, _, err := s.freeArgs(ins[i:])
			if err == nil {
				args[k], err = fit(ir.List(rest...), &sc.Args[k])
			}
			if err != nil {
				return nil, fmt.Errorf("argument %s: %w", sc.Args[k].Name, err)
			}
			given[k] = true
			break
		}
		if k < 0 || k >= len(args) {
			return nil, fmt.Errorf("argument %s is not in the operator's schema, which has %d arguments", argLabel(ins, i), len(args))
		}
		if given[k] {
			return nil, fmt.Errorf("argument %s is given twice", sc.Args[k].Name)
		}
		given[k] = true
		a, err := s.arg(&ins[i].Arg)
		if err == nil {
			a, err = fit(a, &sc.Args[k])
		}
		if err != nil {
			return nil, fmt.Errorf("argument %s: %w", sc.Args[k].Name, err)
		}
		args[k] = a
	}
	for k := range given {
		if a := &sc.Args[k]; !given[k] && !a.HasDefault && !(a.Opt && a.Type == ops.TGenerator) {
			return nil, fmt.Errorf("argument %s is missing", a.Name)
		}
	}
	return args, nil
}
