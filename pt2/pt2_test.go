package pt2

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
	"github.com/lathe-ml/lathe/ops"
)

// open loads one program of testdata, which tools/fixtures/pt2_archives.py makes.
func testGraph(t *testing.T, name string) *ir.Graph {
	t.Helper()
	p, a, err := load(filepath.Join("testdata", name+".pt2"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	if len(p.Methods) != 1 || p.Methods[0].Name != "forward" {
		t.Fatalf("methods %v", p.Methods)
	}
	return p.Methods[0]
}

func input(t *testing.T, g *ir.Graph, target string) *ir.Input {
	t.Helper()
	for _, in := range g.Inputs {
		if in.Target == target {
			return in
		}
	}
	t.Fatalf("no input %s", target)
	return nil
}

func node(t *testing.T, g *ir.Graph, name string) *ir.Node {
	t.Helper()
	for n := range g.Nodes() {
		for _, o := range n.Outs {
			if o.Name == name {
				return n
			}
		}
	}
	t.Fatalf("no node %s", name)
	return nil
}

func contents(t *testing.T, in *ir.Input) []byte {
	t.Helper()
	b, err := in.Data.Compact()
	if err != nil {
		t.Fatalf("%s: %v", in.Target, err)
	}
	return b
}

// plain computes the weight that the graph's dequantization gives from the parts of a tensor subclass.
func plain(t *testing.T, g *ir.Graph, n *ir.Node) []byte {
	t.Helper()
	part := func(i int) []byte { return contents(t, n.In(i).Input) }
	f32 := func(b []byte, i int) float32 { return math.Float32frombits(le32(b[4*i:])) }
	rows, cols := n.Out().Type.Shape[0], n.Out().Type.Shape[1]
	r, _ := rows.IsConst()
	c, _ := cols.IsConst()
	out := make([]byte, 0, 4*r*c)
	put := func(f float32) {
		u := math.Float32bits(f)
		out = append(out, byte(u), byte(u>>8), byte(u>>16), byte(u>>24))
	}
	switch n.OpName() {
	case "torchao.dequantize_nvfp4.default":
		q, s, all := part(0), part(1), f32(part(2), 0)
		e2m1 := [8]float32{0, 0.5, 1, 1.5, 2, 3, 4, 6}
		for i := range int(r * c) {
			code := q[i/2] >> (4 * (i % 2)) & 15
			v := e2m1[code&7]
			if code&8 != 0 {
				v = float32(math.Copysign(float64(v), -1))
			}
			put(v * (all * e4m3(s[i/16])))
		}
	case "torchao.dequantize_gguf.default":
		if kind, _ := n.Arg(1).Str(); kind != "q6_k" {
			t.Fatalf("blocks of kind %q", kind)
		}
		raw := part(0)
		for i := range int(r * c) {
			b, k := raw[i/256*210:], i%256
			low := b[k/128*64+k/32%2*32+k%32] >> (k / 64 % 2 * 4) & 15
			high := b[128+k/128*32+k%32] >> (k / 32 % 4 * 2) & 3
			d := math.Ldexp(1+float64(int(b[209])&3<<8|int(b[208]))/1024, int(b[209]>>2)-15)
			put(float32(d) * float32(int8(b[192+k/16])) * float32(int(high)<<4+int(low)-32))
		}
	case "torchao.dequantize_affine.default":
		q, s, z := part(0), part(2), part(3)
		block := int(c) / (len(z) / int(r))
		for i := range int(r * c) {
			put(float32(int(int8(q[i]))-int(int8(z[i/block]))) * f32(s, i/block))
		}
	default:
		t.Fatalf("the weight comes from %s", n.OpName())
	}
	return out
}

func le32(b []byte) uint32 {
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

func e4m3(b byte) float32 {
	m, e := float64(b&7), int(b>>3&15)
	f := math.Ldexp(1+m/8, e-7)
	if e == 0 {
		f = math.Ldexp(m/8, -6)
	}
	if b&0x80 != 0 {
		f = -f
	}
	return float32(f)
}

// TestWeights compares every weight with what torch has.
func TestWeights(t *testing.T) {
	text, err := os.ReadFile("testdata/weights.json")
	if err != nil {
		t.Fatal(err)
	}
	type truth struct {
		DType  string
		Shape  []int64
		SHA256 string
	}
	var all map[string]map[string]truth
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	if len(all) < 9 {
		t.Fatalf("%d archives", len(all))
	}
	for name, weights := range all {
		t.Run(name, func(t *testing.T) {
			g := testGraph(t, name)
			for target, w := range weights {
				var b []byte
				if target == "0.weight" {
					b = plain(t, g, node(t, g, "linear").In(1).Def)
				} else {
					in := input(t, g, target)
					b = contents(t, in)
					if d, ok := ops.ParseDType(w.DType); !ok || in.Data.DType != d || fmt.Sprint(in.Data.Sizes) != fmt.Sprint(w.Shape) {
						t.Errorf("%s is %s%v, torch has %s%v", target, in.Data.DType, in.Data.Sizes, w.DType, w.Shape)
					}
				}
				if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != w.SHA256 {
					t.Errorf("%s: %d bytes differ from torch's", target, len(b))
				}
			}
		})
	}
}

func TestSharedStorage(t *testing.T) {
	g := testGraph(t, "state")
	w, v := input(t, g, "w"), input(t, g, "v")
	if w.Data.Storage != v.Data.Storage {
		t.Error("the tied weights w and v have two storages")
	}
	row, turned := input(t, g, "row").Data, input(t, g, "turned").Data
	if row.Storage != turned.Storage || row.Offset != 6 || !reflect.DeepEqual(turned.Strides, []int64{1, 6}) {
		t.Errorf("row at %d, turned with strides %v, in one storage: %v", row.Offset, turned.Strides, row.Storage == turned.Storage)
	}
	if s := input(t, g, "spread").Data.Strides; !reflect.DeepEqual(s, []int64{0, 1}) {
		t.Errorf("spread has strides %v", s)
	}
	if in := input(t, g, "loose"); in.Persistent || in.Kind != ir.InputBuffer {
		t.Errorf("loose: kind %s, persistent %v", in.Kind, in.Persistent)
	}
	fs, ok := w.Data.Storage.(ir.FileStorage)
	if !ok {
		t.Fatal("w does not lie in the file")
	}
	file, err := os.ReadFile("testdata/state.pt2")
	if err != nil {
		t.Fatal(err)
	}
	_, off := fs.FileRange()
	if got := contents(t, w); !bytes.Equal(got, file[off:off+fs.Size()]) || off%64 != 0 {
		t.Errorf("the file at %d does not hold w", off)
	}
	// The parts of a pickled weight lie in the file, too.
	g = testGraph(t, "int4")
	q := input(t, g, "0.weight.qdata")
	if fs, ok = q.Data.Storage.(ir.FileStorage); !ok {
		t.Fatal("qdata does not lie in the file")
	}
	if file, err = os.ReadFile("testdata/int4.pt2"); err != nil {
		t.Fatal(err)
	}
	_, off = fs.FileRange()
	if !bytes.Equal(contents(t, q), file[off:off+fs.Size()]) {
		t.Errorf("the file at %d does not hold qdata", off)
	}
}

func outputKinds(g *ir.Graph) string {
	var s []string
	for i, o := range g.Outputs {
		k := [...]string{"user", "buffer", "input"}[o.Kind]
		if o.Target != nil {
			k += ":" + o.Target.Target
		}
		a := g.Ret().Arg(i)
		switch {
		case a.Value() != nil:
			k += "=%" + a.Value().Name
		case a.IsNone():
			k += "=None"
		default:
			if e, ok := a.Expr(); ok {
				k += "=" + e.String()
			} else if f, ok := a.Float(); ok {
				k += fmt.Sprintf("=%g", f)
			} else if t, ok := a.Str(); ok {
				k += fmt.Sprintf("=%q", t)
			}
		}
		s = append(s, k)
	}
	return strings.Join(s, " ")
}

func TestOutputs(t *testing.T) {
	for name, want := range map[string]string{
		"decomposed": "buffer:count=%add input:y=%mul user=%add_4 user=%add_5",
		"state":      "user=%add_3 user=%add_4",
		"kinds":      `user=%add user=s86 + 1 user=None user="mean" user=2.5 user=%clamp`,
		"shapes":     "user=%add user=%reshape user=%zeros user=%getitem user=%getitem_1",
	} {
		if got := outputKinds(testGraph(t, name)); got != want {
			t.Errorf("%s: outputs %s, want %s", name, got, want)
		}
	}
}

func TestInputKinds(t *testing.T) {
	g := testGraph(t, "kinds")
	want := []string{"x f32[8, 3]", "n int(s86)", "d.scale f32[3]", "d.rest.0 f32[]", "mode str mean", "none none", "flag bool true", "f float 2.5"}
	var got []string
	for i, in := range g.UserInputs() {
		s := g.InputNames[i] + " " + in.Value.Type.String()
		if in.HasFixed {
			if f, ok := in.Fixed.Str(); ok {
				s += " " + f
			} else if in.Fixed.Kind() == ir.ArgBool {
				b, _ := in.Fixed.Bool()
				s += fmt.Sprint(" ", b)
			} else if f, ok := in.Fixed.Float(); ok {
				s += fmt.Sprint(" ", f)
			}
		}
		got = append(got, s)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("inputs %q, want %q", got, want)
	}
	s, ok := g.Syms.Get("s86")
	if !ok || s.Range.Min != 1 || s.Range.Max != 8 || s.Hint != 4 {
		t.Errorf("s86 is %+v", s)
	}
	if c := node(t, g, "clamp").ArgNamed("max"); c.Kind() != ir.ArgFloat {
		t.Errorf("clamp's max is %v", c)
	} else if f, _ := c.Float(); !math.IsInf(f, 1) {
		t.Errorf("clamp's max is %g", f)
	}
}

func TestShapes(t *testing.T) {
	g := testGraph(t, "shapes")
	for name, want := range map[string]string{"x": "f32[2*s65]", "y": "f32[2*s65 + 1]"} {
		if got := input(t, g, name).Value.Type.String(); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if got := node(t, g, "zeros").Out().Type.String(); got != "f32[u0, 2]" {
		t.Errorf("zeros is %s", got)
	}
	u, _ := g.Syms.Get("u0")
	if u.Range.Min != 1 || u.Range.Max != 5 || u.HasHint {
		t.Errorf("u0 is %+v", u)
	}
	// The sizes of a split are expressions, its results are in line.
	n := node(t, g, "getitem_1")
	es, ok := n.ArgNamed("split_sizes").ExprList()
	if !ok || len(n.Outs) != 2 || es[1].String() != "2*s65 - 1" {
		t.Errorf("split with sizes %v and %d results", es, len(n.Outs))
	}
}

func TestGuards(t *testing.T) {
	for text, want := range map[string]string{
		"L['x'].size()[0]": "x size 0", "L['a'][0]['k'].size()[12]": "a.0.k size 12", "L['n']": "n  0",
		"L['x'].stride()[0]": "", "x": "", "L['x": "", "L['x'].size()[-1]": "", "L['x'].size()[0": "",
	} {
		path, what, dim, err := parseSource(text)
		if got := fmt.Sprint(path, " ", what, " ", dim); (err != nil) != (want == "") || err == nil && got != want {
			t.Errorf("%s: got %s and %v", text, got, err)
		}
	}
	m := parts(t, "shapes")
	for name, b := range m {
		m[name] = bytes.Replace(b, []byte(`"guards_code": [`), []byte(`"guards_code": ["((L['x'].size()[0]) % 12) == 0", "f(L['x'])", "L['x'].size()[0] <= 100", `), 1)
	}
	p, err := loadBytes(pack(t, m))
	if err != nil {
		t.Fatal(err)
	}
	syms := p.Methods[0].Syms
	if s, _ := syms.Get("s65"); s.Range.Max != 50 {
		t.Errorf("s65 is %+v", s)
	}
	x := input(t, p.Methods[0], "x").Value.Type.Shape[0]
	if is, known := syms.ProveEq(sym.Mod(x, sym.Const(12)), sym.Const(0)); !is || !known {
		t.Errorf("%s is not known to be divisible by 12", x)
	}
}

func TestNested(t *testing.T) {
	g := testGraph(t, "control")
	var names []string
	g.Walk(func(h *ir.Graph) {
		names = append(names, fmt.Sprintf("%s/%d/%d", h.Name, len(h.Inputs), len(h.Outputs)))
	})
	want := []string{
		"forward/4/3", "true_graph_0/3/1", "false_graph_0/3/1", "scan_combine_graph_0/2/2", "while_loop_cond_graph_0/2/1",
		"while_loop_body_graph_0/2/2",
	}
	if !reflect.DeepEqual(names, want) {
		t.Errorf("graphs %v, want %v", names, want)
	}
	for _, h := range node(t, g, "getitem").Graphs() {
		if h.Parent == nil || h.Root() != g || h.Inputs[0].Kind != ir.InputOperand {
			t.Errorf("%s does not hang in the graph", h.Name)
		}
	}
}

// TestAutocast checks that the casts of autocast stand in the graph.
func TestAutocast(t *testing.T) {
	g := testGraph(t, "autocast")
	var got []string
	g.Walk(func(h *ir.Graph) {
		for n := range h.Nodes() {
			if n.OpName() == "aten.to.dtype" && slices.Contains(n.Origin.Chain(), "import#autocast") {
				for _, u := range n.Out().Users() {
					got = append(got, fmt.Sprintf("%s %s to %s", u.OpName(), n.In(0).Type.DType, n.Out().Type.DType))
				}
			}
		}
	})
	want := []string{
		"aten.linear.default f32 to bf16", "aten.linear.default f32 to bf16", "aten.linear.default f32 to bf16",
		"aten.mse_loss.default bf16 to f32", "aten.mse_loss.default bf16 to f32",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("casts %q, want %q", got, want)
	}
}

func TestOrigins(t *testing.T) {
	g := testGraph(t, "mlp")
	n := node(t, g, "linear")
	if w := n.Origin.Where(); w != `"model.py":29 forward` || n.Origin.Module != "a" || n.Origin.Class != "torch.nn.modules.linear.Linear" {
		t.Errorf("linear comes from %s, module %q of %q", w, n.Origin.Module, n.Origin.Class)
	}
	if fs := n.Origin.Frames; len(fs) != 2 || !fs[1].Library || !strings.HasPrefix(fs[0].Code, "return torch.relu(") {
		t.Errorf("frames %+v", fs)
	}
}

func TestParseStack(t *testing.T) {
	fs := parseStack("File \"/m/net.py\", line 3, in forward\n    x = f(\x1b[31m\n  File \"C:\\v\\Lib\\site-packages\\torch\\nn\\f.py\", line 9, in g\n" +
		"  File \"/v/site-packages/transformers/m.py\", line 4, in h\n    " + strings.Repeat("é", 300) + "\nnoise\n  File \"bad\", line x, in y\n" +
		"  File \"/usr/lib/python3.11/contextlib.py\", line 1, in inner\n  File \"<eval_with_key>.3\", line 2, in forward")
	var got []string
	for _, f := range fs {
		got = append(got, fmt.Sprintf("%s:%d %s %v", f.File, f.Line, f.Func, f.Library))
	}
	want := []string{
		`/m/net.py:3 forward false`, `C:\v\Lib\site-packages\torch\nn\f.py:9 g true`, "/v/site-packages/transformers/m.py:4 h false",
		"/usr/lib/python3.11/contextlib.py:1 inner true", "<eval_with_key>.3:2 forward true",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("frames\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if c := fs[0].Code; c != `x = f(\x1b[31m` {
		t.Errorf("code %q is not escaped", c)
	}
	if c := fs[2].Code; len(c) > 220 || !strings.HasSuffix(c, "…") {
		t.Errorf("code of %d bytes is not cut", len(c))
	}
	if w := (&ir.Origin{Frames: fs}).Where(); w != `"/v/site-packages/transformers/m.py":4 h` {
		t.Errorf("the model's line is %s", w)
	}
	deep := parseStack(strings.Repeat("File \"a.py\", line 1, in f\n", 1000) + "File \"last.py\", line 2, in g")
	if len(deep) != maxFrames || deep[maxFrames-1].File != "last.py" {
		t.Errorf("%d frames of a deep stack", len(deep))
	}
}

func TestParseModules(t *testing.T) {
	for text, want := range map[string][2]string{
		"": {"", ""},
		"L__self__,,m.Net;L__self___a,a,torch.nn.Linear": {"a", "torch.nn.Linear"},
		"k,L['self'].layers.0.mlp,m.MLP":                 {"layers.0.mlp", "m.MLP"},
		"k,a@2,m.A":                                      {"a", "m.A"},
		"k,x[';'].y,m.B":                                 {"x[';'].y", "m.B"},
		"_e,_empty_nn_module_stack_from_metadata_hook,torch.nn.modules.module": {"", ""},
	} {
		if p, c := parseModules(text); p != want[0] || c != want[1] {
			t.Errorf("%q: module %q of %q, want %q", text, p, c, want)
		}
	}
}

// parts are the entries of an archive of testdata.
func parts(t testing.TB, name string) map[string][]byte {
	t.Helper()
	z, err := zip.OpenReader(filepath.Join("testdata", name+".pt2"))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	m := map[string][]byte{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		m[f.Name] = b
	}
	return m
}

func pack(t testing.TB, m map[string][]byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	for _, name := range slices.Sorted(maps.Keys(m)) {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err == nil {
			_, err = w.Write(m[name])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func loadBytes(b []byte) (*ir.Program, error) {
	a, err := New(b, "test.pt2")
	if err != nil {
		return nil, err
	}
	return a.Load()
}

// TestRefuse damages good archives, one place at a time.
func TestRefuse(t *testing.T) {
	const (
		model   = "models/model.json"
		weights = "data/weights/model_weights_config.json"
	)
	for _, c := range []struct{ archive, entry, old, new, code, msg string }{
		{"mlp", model, `"outputs": [{"as_tensor": {"name": "linear"}}]`, `"outputs": [{"as_tensor": {"name": "relu"}}]`, CodeGraph, "defined twice"},
		{"mlp", model, `{"name": "self", "arg": {"as_tensor": {"name": "linear"}}`, `{"name": "self", "arg": {"as_tensor": {"name": "relu"}}`, CodeGraph, "cycle"},
		{"mlp", model, `{"name": "self", "arg": {"as_tensor": {"name": "linear"}}`, `{"name": "self", "arg": {"as_tensor": {"name": "nix"}}`, CodeGraph, `"nix" is not defined`},
		{"mlp", model, `{"name": "self", "arg": {"as_tensor": {"name": "linear"}}`, `{"name": "me", "arg": {"as_tensor": {"name": "linear"}}`, CodeGraph, "argument me is not in the operator's schema"},
		{"mlp", model, `{"name": "self", "arg": {"as_tensor": {"name": "linear"}}`, `{"name": "self", "arg": {"as_string": "linear"}`, CodeGraph, "string where tensor should be"},
		{"mlp", model, `{"name": "self", "arg": {"as_tensor": {"name": "linear"}}`, `{"name": "self", "arg": {"as_tensors": []}`, CodeGraph, "list where tensor should be"},
		{"mlp", model, `{"name": "self", "arg": {"as_tensor": {"name": "linear"}}, "kind": 1}`, ``, CodeGraph, "argument self is missing"},
		{"mlp", model, `"outputs": [{"as_tensor": {"name": "relu"}}]`, `"outputs": [{"as_tensor": {"name": "relu"}}, {"as_tensor": {"name": "add"}}]`, CodeGraph, "2 results, the operator's schema has 1"},
		{"mlp", model, `"outputs": [{"as_tensor": {"name": "relu"}}]`, `"outputs": [{"as_tensor": {"name": "nix"}}]`, CodeGraph, `tensor_values has no "nix"`},
		{"mlp", model, `"outputs": [{"as_tensor": {"name": "add_1"}}]`, `"outputs": [{"as_tensor": {"name": "add"}}]`, CodeGraph, `output_specs[0] is "add_1"`},
		{"mlp", model, `{"user_output": {"arg": {"as_tensor": {"name": "add_1"}}}}`, `{"buffer_mutation": {"arg": {"name": "add_1"}, "buffer_name": "nix"}}`, CodeGraph, `the buffer "nix"`},
		{"mlp", model, `{"user_output": {"arg": {"as_tensor": {"name": "add_1"}}}}`, `{"user_input_mutation": {"arg": {"name": "add_1"}, "user_input_name": "nix"}}`, CodeGraph, `the input "nix"`},
		{"mlp", model, `{"user_output": {"arg": {"as_tensor": {"name": "add_1"}}}}`, `{"buffer_mutation": {"arg": {"name": "add_1"}, "buffer_name": "shift"}}`, CodeGraph, "does not fit"},
		{"mlp", model, `{"user_output": {"arg": {"as_tensor": {"name": "add_1"}}}}`, `{"gradient_to_parameter": {"arg": {"name": "add_1"}, "parameter_name": "x"}}`, CodeUnsupported, "gradient_to_parameter"},
		{"mlp", model, `{"user_input": {"arg": {"as_tensor": {"name": "x"}}}}`, `{"custom_obj": {"arg": {"name": "x", "class_fqn": "c"}, "custom_obj_name": "o"}}`, CodeUnsupported, "custom_obj"},
		{"mlp", model, `"parameter_name": "a.weight"`, `"parameter_name": "a.wait"`, CodeWeight, "param a.wait is in no list"},
		{"mlp", model, `"schema_version": {"major": 8`, `"schema_version": {"major": 9`, CodeVersion, "written by torch 2.13"},
		{"mlp", model, `"schema_version": {"major": 8, "minor": 20}`, `"schema_version": {"major": 7, "minor": 3}, "graph_module": 3`, CodeVersion, "schema version 7.3"},
		{"mlp", model, `\"children_spec\": [{\"type\": null, \"context\": null`, `\"children_spec\": [{\"type\": 1, \"context\": null`, CodeGraph, "spec"},
		{"mlp", model, `{\"type\": null, \"context\": null, \"children_spec\": []}]}, {`, `{\"type\": null, \"context\": null, \"children_spec\": []}, {\"type\": null, \"context\": null, \"children_spec\": []}]}, {`, CodeGraph, "2 leaves, the program 1 inputs"},
		{"mlp", model, `{"user_output": {"arg": {"as_tensor": {"name": "add_1"}}}}`, `{"user_input_mutation": {"arg": {"name": "add_1"}, "user_input_name": "x"}}`, CodeGraph, "does not fit"},
		{"mlp", model, `"inputs": [{"as_tensor": {"name": "p_a_weight"}}`, `"inputs": [{"as_int": 3}`, CodeGraph, `input_specs[0] is "p_a_weight"`},
		{"mlp", model, `"out_spec": "[1, {\"type\": null, \"context\": null, \"children_spec\": []}]"`, `"out_spec": "[1, {\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": []}]"`, CodeGraph, "0 leaves, the program 1 outputs"},
		{"mlp", weights, `"a.bias": {`, `"a.buyers": {`, CodeWeight, "a.bias"},
		{"mlp", weights, `{"as_int": 6}, {"as_int": 4}`, `{"as_int": 6}, {"as_int": 5}`, CodeWeight, "96 of 100 bytes"},
		{"mlp", weights, `{"as_int": 6}, {"as_int": 4}`, `{"as_int": 4611686018427387904}, {"as_int": 4611686018427387904}`, CodeWeight, "beyond all bounds"},
		{"mlp", weights, `{"as_int": 6}, {"as_int": 4}`, `{"as_int": 4}, {"as_int": 6}`, CodeWeight, "in the graph"},
		{"mlp", weights, `{"as_int": 6}, {"as_int": 4}`, `{"as_int": 6}`, CodeWeight, "1 sizes and 2 strides"},
		{"mlp", weights, `"storage_offset": {"as_int": 0}`, `"storage_offset": {"as_int": 9223372036854775807}`, CodeWeight, "beyond all bounds"},
		{"mlp", weights, `"storage_offset": {"as_int": 0}`, `"storage_offset": {"as_int": 1}`, CodeWeight, "96 of 100 bytes"},
		{"mlp", weights, `"path_name": "weight_0"`, `"path_name": "weight_77"`, CodeWeight, "the record is missing"},
		{"mlp", weights, `"path_name": "weight_0"`, `"path_name": "../../models/model.json"`, CodeWeight, "the record is missing"},
		{"mlp", weights, `"dtype": 7`, `"dtype": 0`, CodeWeight, "element type UNKNOWN"},
		{"mlp", weights, `"layout": 7`, `"layout": 1`, CodeWeight, "layout SparseCoo"},
		{"mlp", weights, `"use_pickle": false`, `"use_pickle": true`, CodeWeight, "pickle"},
		{"mlp", weights, `{"config"`, `{"config": {}, "config"`, CodeJSON, "stands twice"},
		{"kinds", model, `"expr_str": "Symbol('s86', `, `"expr_str": "__import__('os'`, CodeGraph, "expression"},
		{"kinds", model, `"expr_str": "Symbol('s86', integer=True)"`, `"expr_str": "3.5"`, CodeGraph, "not an integer"},
		{"kinds", model, `"min_val": 0, "max_val": 8`, `"min_val": 9, "max_val": 8`, CodeGraph, "empty"},
		{"int4", model, `torch.ops.torchao.dequantize_affine.default`, `torch.ops.nix.default`, "", ""},
		{"int4", model, `{"name": "attr", "arg": {"as_string": "qdata"}`, `{"name": "attr", "arg": {"as_string": "nix"}`, CodeGraph, `no attribute "nix"`},
		{"int4", model, `{"name": "attr", "arg": {"as_string": "qdata"}`, `{"name": "attr", "arg": {"as_string": "scale"}`, CodeGraph, "the weight's"},
		{"nvfp4", model, `torch.ops.aten.linear.default`, `torch.ops.aten.bilinear.default`, CodeGraph, "is not known"},
	} {
		m := parts(t, c.archive)
		found := false
		for name, b := range m {
			if strings.HasSuffix(name, c.entry) {
				m[name] = []byte(strings.Replace(string(b), c.old, c.new, 1))
				found = !bytes.Equal(m[name], b)
			}
		}
		if !found {
			t.Errorf("%s: %q is not in %s", c.archive, c.old, c.entry)
			continue
		}
		_, err := loadBytes(pack(t, m))
		if c.code == "" {
			if err != nil {
				t.Errorf("%s with %q: %v", c.archive, c.new, err)
			}
			continue
		}
		ds, ok := ir.AsDiags(err)
		if !ok {
			t.Errorf("%s with %q: got %v, want %s", c.archive, c.new, err, c.msg)
			continue
		}
		hit := false
		for _, d := range ds {
			hit = hit || d.Code == c.code && strings.Contains(d.Error(), c.msg)
			if d.File != "test.pt2" || d.Entry == "" || d.Try == "" {
				t.Errorf("%s with %q: %v lacks file, entry or advice", c.archive, c.new, d)
			}
		}
		if !hit {
			t.Errorf("%s with %q: got %v, want %s: %s", c.archive, c.new, err, c.code, c.msg)
		}
	}
}

// TestFollowing tells a fault once, not at every node that it reaches.
func TestFollowing(t *testing.T) {
	for name, c := range map[string]struct{ old, new string }{
		"input":   {`{"user_input": {"arg": {"as_tensor": {"name": "x"}}}}`, `{"user_input": {"arg": {"as_tensor": {"name": "y"}}}}`},
		"missing": {`"x": {"dtype"`, `"y": {"dtype"`},
	} {
		m := parts(t, "mlp")
		for entry, b := range m {
			if strings.HasSuffix(entry, "models/model.json") {
				m[entry] = bytes.Replace(b, []byte(c.old), []byte(c.new), 1)
				if bytes.Equal(m[entry], b) {
					t.Fatalf("%s: %q is not in it", name, c.old)
				}
			}
		}
		_, err := loadBytes(pack(t, m))
		if ds, _ := ir.AsDiags(err); len(ds) != 1 {
			t.Errorf("%s: %d diagnostics, want one:\n%v", name, len(ds), err)
		}
	}
}

// TestDamagedWeight names the entry of a weight whose contents were changed, when they are read.
func TestDamagedWeight(t *testing.T) {
	b := pack(t, parts(t, "mlp"))
	at := bytes.Index(b, []byte("/weights/weight_0")) + len("/weights/weight_0")
	b[at+4]++
	p, err := loadBytes(b)
	if err != nil {
		t.Fatal(err)
	}
	st := input(t, p.Methods[0], "a.weight").Data.Storage
	_, readErr := st.Bytes()
	_, writeErr := st.(io.WriterTo).WriteTo(io.Discard)
	for _, err := range []error{readErr, writeErr} {
		ds, ok := ir.AsDiags(err)
		if !ok || ds[0].Code != CodeArchive || !strings.HasSuffix(ds[0].Entry, "data/weights/weight_0") || !strings.Contains(ds[0].Msg, "CRC") || ds[0].Try == "" {
			t.Errorf("got %v", err)
		}
	}
}

// TestUnknownOperator keeps an operator without a row, with the names of its arguments.
func TestUnknownOperator(t *testing.T) {
	m := parts(t, "mlp")
	for name, b := range m {
		m[name] = bytes.Replace(b, []byte("torch.ops.aten.relu.default"), []byte("torch.ops.nolib.nothere.default"), 1)
	}
	p, err := loadBytes(pack(t, m))
	if err != nil {
		t.Fatal(err)
	}
	n := node(t, p.Methods[0], "relu")
	if n.Op != ops.Unknown || n.Target != "nolib.nothere.default" || n.ArgNamed("self").Value() == nil {
		t.Errorf("got %s with arguments %v", n.OpName(), n.ArgNames)
	}
}

// TestOlderWeights reads the weights as older releases saved them, in one pickle.
func TestOlderWeights(t *testing.T) {
	saved, err := os.ReadFile("testdata/mlp_weights.pt")
	if err != nil {
		t.Fatal(err)
	}
	m := parts(t, "mlp")
	for name := range m {
		if strings.Contains(name, "/data/weights/") {
			delete(m, name)
		}
	}
	m["mlp/data/weights/model.pt"] = saved
	p, err := loadBytes(pack(t, m))
	if err != nil {
		t.Fatal(err)
	}
	want := testGraph(t, "mlp")
	for _, in := range p.Methods[0].Inputs {
		if in.Kind != ir.InputUser && !bytes.Equal(contents(t, in), contents(t, input(t, want, in.Target))) {
			t.Errorf("%s differs", in.Target)
		}
	}
	saved[len(saved)/2] ^= 1
	for name, b := range map[string][]byte{"damaged": saved, "cut": saved[:len(saved)/2], "none": {}} {
		m["mlp/data/weights/model.pt"] = b
		p, err := loadBytes(pack(t, m))
		if err == nil {
			for _, in := range p.Methods[0].Inputs {
				if in.Data != nil && err == nil {
					_, err = in.Data.Compact()
				}
			}
		}
		if err == nil {
			t.Errorf("%s weights are accepted", name)
		}
	}
}

func TestSampleInputs(t *testing.T) {
	_, a, err := load("testdata/kinds.pt2")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	g, err := a.LoadMethod("model")
	if err != nil {
		t.Fatal(err)
	}
	ss, err := a.SampleInputs(g)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range ss {
		switch {
		case s.Tensor != nil:
			got = append(got, fmt.Sprint(s.Tensor.DType, s.Tensor.Sizes))
		case s.Value.Kind() == ir.ArgStr:
			t, _ := s.Value.Str()
			got = append(got, t)
		default:
			f, ok := s.Value.Float()
			got = append(got, fmt.Sprint(f, ok))
		}
	}
	want := []string{"f32 [8 3]", "4 true", "f32 [3]", "f32 []", "mean", "0 false", "1 true", "2.5 true"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNotAnArchive(t *testing.T) {
	if _, err := Open("testdata/none.pt2"); err == nil {
		t.Error("a file that is not there is opened")
	} else if d, ok := ir.AsDiags(err); !ok || d[0].Try == "" {
		t.Errorf("%v is no diagnostic", err)
	}
	if _, err := Open("testdata/weights.json"); err == nil {
		t.Error("a text file is opened as an archive")
	}
}

func FuzzImport(f *testing.F) {
	base := map[string]map[string][]byte{}
	names := []string{"mlp", "kinds", "control", "int4", "decomposed"}
	for i, n := range names {
		base[n] = parts(f, n)
		for name, b := range base[n] {
			if strings.HasSuffix(name, "models/model.json") {
				f.Add(uint8(i), b)
			}
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, text []byte) {
		m := map[string][]byte{}
		for name, b := range base[names[int(which)%len(names)]] {
			if strings.HasSuffix(name, "models/model.json") {
				b = text
			}
			m[name] = b
		}
		p, err := loadBytes(pack(t, m))
		if err == nil {
			for _, g := range p.Methods {
				g.NameValues()
			}
			return
		}
		if _, ok := ir.AsDiags(err); !ok {
			t.Errorf("%v is no diagnostic", err)
		}
	})
}

func FuzzWeights(f *testing.F) {
	base := parts(f, "nvfp4")
	var pickleAt, configAt string
	for name := range base {
		switch {
		case strings.HasSuffix(name, "weights/weight_0"):
			pickleAt = name
		case strings.HasSuffix(name, "model_weights_config.json"):
			configAt = name
		}
	}
	f.Add(base[pickleAt], base[configAt])
	f.Fuzz(func(t *testing.T, record, config []byte) {
		m := map[string][]byte{}
		for name, b := range base {
			m[name] = b
		}
		m[pickleAt], m[configAt] = record, config
		p, err := loadBytes(pack(t, m))
		if err != nil {
			if _, ok := ir.AsDiags(err); !ok {
				t.Errorf("%v is no diagnostic", err)
			}
			return
		}
		for _, in := range p.Methods[0].Inputs {
			if in.Data != nil {
				_, _ = in.Data.Compact()
			}
		}
	})
}

// BenchmarkLoad loads the archive that LATHE_PT2 names, or a small one.
func BenchmarkLoad(b *testing.B) {
	path := os.Getenv("LATHE_PT2")
	if path == "" {
		path = "testdata/mlp.pt2"
	}
	b.ReportAllocs()
	for b.Loop() {
		_, a, err := load(path)
		if err != nil {
			b.Fatal(err)
		}
		a.Close()
	}
}
