package interp

import (
	"bufio"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lathe-ml/lathe/ops"
)

// corpusCase is one operator call with PyTorch's results, recorded by tools/fixtures/interp_corpus.py.
type corpusCase struct {
	Op   string
	Args map[string]json.RawMessage
	Out  []json.RawMessage
}

func decodeValue(raw json.RawMessage) (Value, error) {
	var v any
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	return decodeAny(v)
}

func decodeAny(v any) (Value, error) {
	switch x := v.(type) {
	case nil, bool, string:
		return x, nil
	case json.Number:
		return x.Int64()
	case []any:
		l := make([]Value, len(x))
		for i, e := range x {
			var err error
			if l[i], err = decodeAny(e); err != nil {
				return nil, err
			}
		}
		return l, nil
	case map[string]any:
		switch {
		case x["f"] != nil:
			return parsePy(x["f"].(string))
		case x["z"] != nil:
			l := x["z"].([]any)
			re, err := parsePy(l[0].(string))
			im, err2 := parsePy(l[1].(string))
			return complex(re, im), errors.Join(err, err2)
		case x["dt"] != nil:
			d, ok := ops.ParseDType(x["dt"].(string))
			if !ok {
				return nil, fmt.Errorf("dtype %v", x["dt"])
			}
			return d, nil
		}
		return decodeTensor(x)
	}
	return nil, fmt.Errorf("%T", v)
}

func parsePy(s string) (float64, error) { return strconv.ParseFloat(s, 64) }

func decodeTensor(x map[string]any) (*Tensor, error) {
	d, ok := ops.ParseDType(x["d"].(string))
	if !ok {
		return nil, fmt.Errorf("dtype %v", x["d"])
	}
	list := func(k string) []int64 {
		var out []int64
		for _, e := range x[k].([]any) {
			n, _ := e.(json.Number).Int64()
			out = append(out, n)
		}
		return out
	}
	b, err := base64.StdEncoding.DecodeString(x["b"].(string))
	if err != nil {
		return nil, err
	}
	sizes := list("s")
	if x["st"] != nil {
		o, _ := x["o"].(json.Number).Int64()
		return NewView(d, sizes, list("st"), o, NewStorage(b))
	}
	return FromBytes(d, sizes, b)
}

// tolerance is how far a result may be from PyTorch's: a few roundings of what the type is computed in.
func tolerance(d DType) (rtol, atol float64) {
	switch d {
	case ops.Float64, ops.Complex128:
		return 1e-9, 1e-10
	case ops.BFloat16:
		return 0x1p-7, 1e-6
	case ops.Float16:
		return 0x1p-10, 1e-6
	case ops.Float32, ops.Complex64:
		return 3e-5, 3e-6
	}
	return 0, 0
}

// loose lists operators that PyTorch itself computes less exactly in half types, with the absolute tolerance: attention
// rounds its probabilities before they weigh the values, resizing its weights.
var loose = map[string]float64{
	"aten.scaled_dot_product_attention.default": 0x1p-7, "mlx.custom_sdpa.default": 0x1p-7, "aten.upsample_trilinear3d.default": 0x1p-7,
}

func compare(got, want Value, op string) error {
	w, ok := want.(*Tensor)
	if !ok {
		if f, isF := want.(float64); isF {
			g, isG := got.(float64)
			if !isG || math.Abs(f-g) > 1e-6*math.Abs(f) && !(math.IsNaN(f) && math.IsNaN(g)) {
				return fmt.Errorf("%v, want %v", got, want)
			}
			return nil
		}
		if got != want {
			return fmt.Errorf("%v, want %v", got, want)
		}
		return nil
	}
	g, ok := got.(*Tensor)
	if !ok {
		return fmt.Errorf("%T, want %s", got, w)
	}
	if g.DType != w.DType || !slices.Equal(g.Sizes, w.Sizes) {
		return fmt.Errorf("%s, want %s", g, w)
	}
	rtol, atol := tolerance(w.DType)
	if half(w.DType) {
		atol = max(atol, loose[op])
	}
	near := func(a, b float64) bool {
		return a == b || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= atol+rtol*math.Abs(b)
	}
	if classOf(w.DType) == classInt {
		gv, wv := g.ints(), w.ints()
		for i := range wv {
			if gv[i] != wv[i] {
				return fmt.Errorf("%s: element %d is %d, want %d", w, i, gv[i], wv[i])
			}
		}
		return nil
	}
	gv, wv := g.complexes(), w.complexes()
	for i := range wv {
		if !near(real(gv[i]), real(wv[i])) || !near(imag(gv[i]), imag(wv[i])) {
			return fmt.Errorf("%s: element %d is %v, want %v", w, i, gv[i], wv[i])
		}
	}
	return nil
}

// TestCorpus compares every recorded operator call with PyTorch's results.
func TestCorpus(t *testing.T) {
	f, err := os.Open("testdata/corpus.jsonl.gz")
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
	n := 0
	covered := map[ops.ID]bool{}
	for line := 1; sc.Scan(); line++ {
		n++
		var c corpusCase
		if err := json.Unmarshal(sc.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		id := ops.Lookup(c.Op)
		if id == ops.Unknown {
			t.Errorf("line %d: %s has no row", line, c.Op)
			continue
		}
		covered[id] = true
		info := id.Info()
		args := make([]Value, len(info.Schema.Args))
		desc := make([]string, len(args))
		for i, a := range info.Schema.Args {
			raw, ok := c.Args[a.Name]
			if !ok {
				continue
			}
			if args[i], err = decodeValue(raw); err != nil {
				t.Fatalf("line %d: %s: argument %s: %v", line, c.Op, a.Name, err)
			}
			desc[i] = a.Name + "=" + describeArg(args[i])
		}
		got, err := Apply(id, args)
		if err != nil {
			t.Errorf("line %d: %s(%s): %v", line, c.Op, strings.Join(desc, ", "), err)
			continue
		}
		if len(got) != len(c.Out) {
			t.Errorf("line %d: %s: %d results, want %d", line, c.Op, len(got), len(c.Out))
			continue
		}
		for i, raw := range c.Out {
			want, err := decodeValue(raw)
			if err != nil {
				t.Fatal(err)
			}
			if err := compare(got[i], want, c.Op); err != nil {
				t.Errorf("line %d: %s(%s): result %d: %v", line, c.Op, strings.Join(desc, ", "), i, err)
			}
		}
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	if n < 2500 || len(covered) < 700 {
		t.Errorf("%d cases of %d operators: the corpus is not whole", n, len(covered))
	}
}

func describeArg(v Value) string {
	switch x := v.(type) {
	case *Tensor:
		if x.Numel() <= 8 {
			return fmt.Sprintf("%s%v", x, x.complexes())
		}
		return x.String()
	case []Value:
		var l []string
		for _, e := range x {
			l = append(l, describeArg(e))
		}
		return "[" + strings.Join(l, " ") + "]"
	}
	return fmt.Sprint(v)
}
