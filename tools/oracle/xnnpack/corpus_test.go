// Package xnnpack checks single operators through the XNNPACK delegate: each recorded call of an operator becomes a
// program, runs in the stock runtime and must give PyTorch's result.
package xnnpack

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/lathe-ml/lathe/codegen/pte"
	"github.com/lathe-ml/lathe/internal/etrt"
	"github.com/lathe-ml/lathe/internal/etrt/ettest"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/op"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/lower/program"
	"github.com/lathe-ml/lathe/lower/xnnpack"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/partition"
	"github.com/lathe-ml/lathe/passes"
)

const corpus = "../../../interp/testdata/corpus.jsonl.gz"

// recorded is one call of an operator, as tools/fixtures/interp_corpus.py writes it.
type recorded struct {
	Op   string
	Args map[string]json.RawMessage
	Out  []json.RawMessage
}

type tensor struct {
	D  string
	S  []int64
	St []int64
	O  int64
	B  string
}

// at is the place in the storage of the element with that number.
func (t *tensor) at(k int64) int64 {
	if t.St == nil {
		return k
	}
	place := t.O
	for d := len(t.S) - 1; d >= 0; d-- {
		place += k % t.S[d] * t.St[d]
		k /= t.S[d]
	}
	return place
}

// call is a graph of one operator with the inputs that it is to be fed.
type call struct {
	g      *ir.Graph
	inputs []etrt.Value
	consts bool // all tensors but the first are constants
	first  bool
}

// errSkip marks calls that no delegate of floats is asked for.
var errSkip = errors.New("not of floats")

func (c *call) tensor(raw json.RawMessage) (ir.Arg, error) {
	var t tensor
	if err := json.Unmarshal(raw, &t); err != nil {
		return ir.None, err
	}
	b, err := base64.StdEncoding.DecodeString(t.B)
	n := int64(1)
	for _, k := range t.S {
		n *= k
	}
	if err != nil || t.D != "f32" || t.St != nil || int64(len(b)) != 4*n || n == 0 {
		return ir.None, errSkip
	}
	typ := ir.StaticType(ops.Float32, t.S...)
	if c.consts && c.first {
		return ir.Ref(c.g.AddConst("c", ir.NewData(ops.Float32, t.S, b))), nil
	}
	c.first = true
	c.inputs = append(c.inputs, etrt.Value{Kind: etrt.KindTensor, Tensor: &etrt.Tensor{DType: etrt.F32, Shape: t.S, Data: b}})
	return ir.Ref(c.g.AddInput("x", ir.InputUser, "", typ).Value), nil
}

func (c *call) arg(raw json.RawMessage) (ir.Arg, error) {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return ir.None, err
	}
	switch v := v.(type) {
	case nil:
		return ir.None, nil
	case bool:
		return ir.Bool(v), nil
	case string:
		return ir.Str(v), nil
	case float64:
		return ir.Int(int64(v)), nil
	case []any:
		var parts []json.RawMessage
		if err := json.Unmarshal(raw, &parts); err != nil {
			return ir.None, err
		}
		var l []ir.Arg
		for _, p := range parts {
			a, err := c.arg(p)
			if err != nil {
				return a, err
			}
			l = append(l, a)
		}
		return ir.List(l...), nil
	case map[string]any:
		if f, ok := v["f"].(string); ok {
			x, err := strconv.ParseFloat(f, 64)
			return ir.Float(x), err
		}
		if d, ok := v["dt"].(string); ok {
			t, known := ops.ParseDType(d)
			if !known {
				return ir.None, errSkip
			}
			return ir.DTypeArg(t), nil
		}
		if v["d"] != nil {
			return c.tensor(raw)
		}
	}
	return ir.None, errSkip
}

func build(r recorded, consts bool) (*call, error) {
	id := ops.Lookup(r.Op)
	c := &call{g: ir.NewGraph("forward", &sym.Table{}), consts: consts}
	info := id.Info()
	if id == ops.Unknown || info.Mutates || info.Random {
		return nil, errSkip
	}
	args := op.Defaults(id)
	for i := range info.Schema.Args {
		raw, ok := r.Args[info.Schema.Args[i].Name]
		if !ok {
			continue
		}
		a, err := c.arg(raw)
		if err != nil {
			return nil, err
		}
		if f, ok := a.Str(); ok && info.Schema.Args[i].Type == ops.TMemoryFormat {
			a = ir.MemoryFormat(f)
		}
		args[i] = a
	}
	b := ir.NewBuilder(c.g, nil, nil)
	n := op.New(b, id, args)
	if b.Err != nil {
		return nil, errSkip
	}
	var outs []ir.Output
	var rets []ir.Arg
	for _, o := range n.Outs {
		if !o.Type.IsTensor() {
			return nil, errSkip
		}
		outs, rets = append(outs, ir.Output{}), append(rets, ir.RefAny(o))
	}
	c.g.SetOutputs(outs, rets)
	c.g.NameValues()
	return c, nil
}

// compile gives the number of regions; a program that the runtime cannot run is none of the delegate's.
func compile(ctx context.Context, g *ir.Graph, path string) (int, error) {
	caps := xnnpack.Backend{}.Caps()
	legal := func(n *ir.Node) *ir.Diag {
		if _, why := caps.Match(n); why == nil {
			return nil
		}
		return program.Legal(n)
	}
	if err := xnnpack.Pipeline().Run(&passes.Context{Target: xnnpack.Name, Legal: legal, Hooks: []passes.Hook{passes.VerifyHook()}}, g); err != nil {
		return 0, err
	}
	rep, err := partition.Partition(ctx, g, xnnpack.Backend{})
	if err != nil {
		return 0, err
	}
	if err := (passes.Pipeline{passes.Decompose, passes.CSE, passes.DCE}).Run(&passes.Context{Legal: program.Legal}, g); err != nil {
		return 0, err
	}
	res, err := program.Lower(&ir.Program{Methods: []*ir.Graph{g}}, program.Options{})
	if err != nil {
		if _, ok := ir.AsDiags(err); ok {
			return 0, nil
		}
		return 0, err
	}
	return len(rep.Regions), pte.WriteFile(ctx, path, res.Program, pte.Options{})
}

func TestCorpus(t *testing.T) {
	rt := ettest.Open(t)
	f, err := os.Open(corpus)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	sc := bufio.NewScanner(z)
	sc.Buffer(nil, 1<<24)
	path := filepath.Join(t.TempDir(), "op.pte")
	ran, covered := 0, map[string]bool{}
	for line := 1; sc.Scan(); line++ {
		var r recorded
		if err := json.Unmarshal(sc.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		for _, consts := range []bool{false, true} {
			c, err := build(r, consts)
			if errors.Is(err, errSkip) || err == nil && consts && len(c.g.Inputs) == len(c.inputs) {
				continue
			}
			if err != nil {
				t.Fatalf("line %d: %v", line, err)
			}
			regions, err := compile(t.Context(), c.g, path)
			if err != nil {
				t.Errorf("line %d: %s: %v", line, r.Op, err)
				continue
			}
			if regions == 0 {
				continue
			}
			ran++
			covered[r.Op] = true
			if err := execute(t.Context(), rt, path, c.inputs, r.Out); err != "" {
				t.Errorf("line %d: %s, constants %v: %s", line, r.Op, consts, err)
			}
		}
	}
	t.Logf("%d calls of %d operators ran with the delegate", ran, len(covered))
	if len(covered) < 100 {
		t.Errorf("only %d operators reach the delegate", len(covered))
	}
}

func execute(ctx context.Context, rt *etrt.Runtime, path string, inputs []etrt.Value, want []json.RawMessage) string {
	p, err := rt.Load(ctx, path, etrt.WithPoison(), etrt.WithThreads(1))
	if err != nil {
		return err.Error()
	}
	defer p.Close()
	got, err := p.Run("forward", inputs)
	if err != nil {
		return err.Error()
	}
	if len(got) != len(want) {
		return "another number of results"
	}
	for i, raw := range want {
		var w tensor
		if err := json.Unmarshal(raw, &w); err != nil {
			return err.Error()
		}
		g := got[i].Tensor
		if w.D != "f32" || g == nil || g.DType != etrt.F32 {
			continue
		}
		if !slices.Equal(g.Shape, w.S) {
			return "another shape"
		}
		b, err := base64.StdEncoding.DecodeString(w.B)
		if err != nil {
			return err.Error()
		}
		for k := range len(g.Data) / 4 {
			x := float64(math.Float32frombits(binary.LittleEndian.Uint32(g.Data[4*k:])))
			y := float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*w.at(int64(k)):])))
			if math.IsNaN(y) || math.IsInf(y, 0) {
				// The delegate's kernels do not keep what is no number: exp of NaN is 0, the square root of infinity NaN.
				continue
			}
			// Its exponentials and norms are a few roundings less exact than PyTorch's.
			if d := math.Abs(x - y); !(d <= 2e-5+1e-4*math.Abs(y)) {
				return "element " + strconv.Itoa(k) + ": " + strconv.FormatFloat(x, 'g', 8, 64) + ", want " + strconv.FormatFloat(y, 'g', 8, 64)
			}
		}
	}
	return ""
}
