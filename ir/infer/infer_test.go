package infer_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/infer"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// call is a line of testdata/types.jsonl, written by tools/fixtures/op_types.py.
type call struct {
	Op   string
	Args map[string]json.RawMessage
	Out  []json.RawMessage
	Syms map[string]int64 // sizes at export of the symbols
}

// tensor is a tensor's type; sizes of results that depend on data are "?".
type tensor struct {
	T      string
	S      []any
	St     []any
	F      *string
	C      []float64
	Str    *string
	DType  string
	MF     string
	Layout string
	Device string
	Sym    string
	E      string
}

func decode(raw json.RawMessage) (ir.Arg, *tensor, error) {
	s := strings.TrimSpace(string(raw))
	switch {
	case s == "null":
		return ir.None, nil, nil
	case s == "true" || s == "false":
		return ir.Bool(s == "true"), nil, nil
	case strings.HasPrefix(s, "["):
		var l []json.RawMessage
		if err := json.Unmarshal(raw, &l); err != nil {
			return ir.None, nil, err
		}
		as := make([]ir.Arg, len(l))
		for i, e := range l {
			a, t, err := decode(e)
			if err != nil {
				return ir.None, nil, err
			}
			if t != nil {
				a = ir.RefAny(&ir.Value{Type: t.typ()})
			}
			as[i] = a
		}
		return ir.List(as...), nil, nil
	case strings.HasPrefix(s, "{"):
		var t tensor
		if err := json.Unmarshal(raw, &t); err != nil {
			return ir.None, nil, err
		}
		switch {
		case t.F != nil:
			f, ok := map[string]float64{"inf": math.Inf(1), "-inf": math.Inf(-1), "nan": math.NaN()}[*t.F]
			if !ok {
				return ir.None, nil, fmt.Errorf("float %q", *t.F)
			}
			return ir.Float(f), nil, nil
		case t.C != nil:
			return ir.Complex(t.C[0], t.C[1]), nil, nil
		case t.Str != nil:
			return ir.Str(*t.Str), nil, nil
		case t.DType != "":
			d, ok := ops.ParseDType(t.DType)
			if !ok {
				return ir.None, nil, fmt.Errorf("dtype %q", t.DType)
			}
			return ir.DTypeArg(d), nil, nil
		case t.MF != "":
			return ir.MemoryFormat(t.MF), nil, nil
		case t.Layout != "":
			return ir.Layout(t.Layout), nil, nil
		case t.Device != "":
			return ir.Device(t.Device), nil, nil
		case t.E != "":
			e, err := sym.ParseSympy(t.E, sym.SympyOptions{})
			return ir.SymInt(e), nil, err
		case t.Sym != "":
			k := map[string]ir.Kind{"int": ir.KindInt, "float": ir.KindFloat, "bool": ir.KindBool}[t.Sym]
			return ir.RefAny(&ir.Value{Type: ir.ScalarType(k)}), nil, nil
		}
		if t.T == "" {
			return ir.None, nil, fmt.Errorf("argument %s", s)
		}
		return ir.RefAny(&ir.Value{Type: t.typ()}), &t, nil
	}
	if strings.ContainsAny(s, ".eE") {
		var f float64
		err := json.Unmarshal(raw, &f)
		return ir.Float(f), nil, err
	}
	var k int64
	err := json.Unmarshal(raw, &k)
	return ir.Int(k), nil, err
}

func (t *tensor) typ() ir.Type {
	d, ok := ops.ParseDType(t.T)
	if !ok {
		panic("dtype " + t.T)
	}
	r := ir.Type{DType: d, Shape: exprs(t.S)}
	if t.St != nil {
		r.Strides = exprs(t.St)
	}
	return r
}

func exprs(sizes []any) []sym.Expr {
	var es []sym.Expr
	for i, s := range sizes {
		switch s := s.(type) {
		case float64:
			es = append(es, sym.Const(int64(s)))
		case string:
			if s == "?" {
				es = append(es, sym.Symbol(fmt.Sprintf("data%d", i)))
				continue
			}
			e, err := sym.ParseSympy(s, sym.SympyOptions{})
			if err != nil {
				panic(err)
			}
			es = append(es, e)
		}
	}
	return es
}

// TestTorch compares the rules with the types that torch gave.
func TestTorch(t *testing.T) { testCalls(t, dataFile("types.jsonl"), 1000) }

// TestTorchSymbolic does so for symbolic sizes: what the rules give has to be provably equal to torch's expressions.
func TestTorchSymbolic(t *testing.T) { testCalls(t, dataFile("symbolic.jsonl"), 500) }

func testCalls(t *testing.T, path string, least int) {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	bad := map[string][]string{}
	n := 0
	seen := map[ops.ID]bool{}
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		var c call
		if err := json.Unmarshal(sc.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		n++
		seen[ops.Lookup(c.Op)] = true
		if why := compare(&c); why != "" {
			bad[c.Op] = append(bad[c.Op], why+"\n\t\t"+sc.Text())
		}
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	var names []string
	for o := range bad {
		names = append(names, o)
	}
	sort.Strings(names)
	for _, o := range names {
		t.Errorf("%s: %d calls, such as %s", o, len(bad[o]), bad[o][0])
	}
	t.Logf("%d calls of %d operators", n, len(seen))
	if n < least {
		t.Errorf("only %d calls: the test data is not whole", n)
	}
}

// divides are operators that take sizes to divide one another, or to be equal: torch's expression and the rule's agree where
// they do, which the symbols' ranges do not say. They are compared at the sizes of the call.
var divides = map[string]bool{
	"view": true, "_unsafe_view": true, "reshape": true, "flatten": true, "unflatten": true, "cat": true, "channel_shuffle": true,
	"pixel_unshuffle": true,
}

// loose are operators whose results torch's decompositions lay out in an order of their own where the operands are neither
// contiguous nor channels-last, or broadcast in ways that leave the order open. Nothing but the layout depends on it.
var loose = map[string]bool{
	"aten.copysign.Tensor": true, "aten.floor_divide.default": true, "aten.kron.default": true, "aten.linalg_solve.default": true,
	"aten.logaddexp.default": true, "aten.logical_and.default": true, "aten.logical_or.default": true,
	"aten.margin_ranking_loss.default": true, "aten.mvlgamma.default": true, "aten.quantile.default": true,
	"aten.nanquantile.default": true, "aten.normal.Tensor_Tensor": true, "aten.renorm.default": true, "aten.stack.default": true,
	"aten._native_batch_norm_legit.default": true,
}

func compare(c *call) string {
	id := ops.Lookup(c.Op)
	if id == ops.Unknown {
		return "no row"
	}
	args := op.Defaults(id)
	for name, raw := range c.Args {
		i := id.Info().ArgIndex(name)
		if i < 0 {
			return "no argument " + name
		}
		a, _, err := decode(raw)
		if err != nil {
			return err.Error()
		}
		args[i] = a
	}
	g := ir.NewGraph("test", nil)
	for name, v := range c.Syms {
		if err := g.Syms.Add(sym.Sym{Name: name, Range: sym.Range{Min: 2, Max: math.MaxInt64}, Hint: v, HasHint: true}); err != nil {
			return err.Error()
		}
	}
	got, err := infer.Predict(g, id, args)
	if err != nil {
		return err.Error()
	}
	if len(c.Out) == 1 && strings.HasPrefix(string(c.Out[0]), "[") {
		var l []json.RawMessage
		if err := json.Unmarshal(c.Out[0], &l); err != nil {
			return err.Error()
		}
		c.Out = l
	}
	if len(got) != len(c.Out) {
		return fmt.Sprintf("%d results, torch gives %d", len(got), len(c.Out))
	}
	for i, raw := range c.Out {
		a, want, err := decode(raw)
		switch {
		case err != nil:
			return err.Error()
		case want == nil:
			if k := kindOf(a); k != got[i].Kind {
				return fmt.Sprintf("result %d is %s, torch gives %s", i, got[i], k)
			}
			continue
		}
		w := want.typ()
		same := got[i].IsTensor() && got[i].DType == w.DType && got[i].Rank() == w.Rank()
		for d := 0; same && d < w.Rank(); d++ {
			if s, ok := w.Shape[d].IsSymbol(); ok && strings.HasPrefix(s, "data") {
				w.Shape[d], w.Strides = got[i].Shape[d], got[i].Strides
				continue
			}
			eq, known := g.Syms.ProveEq(got[i].Shape[d], w.Shape[d])
			if !known && divides[strings.TrimSuffix(strings.Split(c.Op, ".")[1], "_copy")] {
				x, _ := sym.Eval(got[i].Shape[d], g.Syms)
				y, _ := sym.Eval(w.Shape[d], g.Syms)
				eq = x == y
				w.Shape[d] = got[i].Shape[d]
				w.Strides = got[i].Strides
			}
			same = eq
		}
		if same && !loose[c.Op] {
			same = sameStrides(g.Syms, w, got[i])
		}
		if !same {
			return fmt.Sprintf("result %d is %s, torch gives %s", i, got[i], w)
		}
	}
	return ""
}

func sameStrides(t *sym.Table, a, b ir.Type) bool {
	if a.Numel().IsConstValue(0) {
		return true
	}
	x, y := a.NormStrides(), b.NormStrides()
	if x == nil {
		x = ir.ContiguousStrides(a.Shape)
	}
	if y == nil {
		y = ir.ContiguousStrides(b.Shape)
	}
	for i := range x {
		if a.Shape[i].IsConstValue(1) {
			continue
		}
		if eq, known := t.ProveEq(x[i], y[i]); !eq {
			// Torch counts sizes that may be zero as one in some strides and not in others.
			p, perr := sym.Eval(x[i], t)
			q, qerr := sym.Eval(y[i], t)
			if known || perr != nil || qerr != nil || p != q {
				return false
			}
		}
	}
	return true
}

func kindOf(a ir.Arg) ir.Kind {
	if v := a.Value(); v != nil {
		return v.Type.Kind
	}
	switch a.Kind() {
	case ir.ArgInt:
		return ir.KindInt
	case ir.ArgFloat:
		return ir.KindFloat
	case ir.ArgBool:
		return ir.KindBool
	case ir.ArgStr:
		return ir.KindStr
	}
	return ir.KindNone
}

// dataFile is a file of testdata, or of a folder that was just recorded.
func dataFile(name string) string {
	if dir := os.Getenv("LATHE_TYPES"); dir != "" {
		return filepath.Join(dir, name)
	}
	return filepath.Join("testdata", name)
}
