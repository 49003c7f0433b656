package schema

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/lathe-ml/lathe/internal/shuffle"
)

// program is a text with one node, whose argument is given.
func program(arg string) string {
	node := `{"target": "t", "inputs": [{"name": "x", "arg": ` + arg + `, "kind": 1}], "outputs": [], "metadata": {"a": "b"}}`
	return `{"graph_module": {"graph": {"inputs": [], "outputs": [], "nodes": [` + node + `], "tensor_values": {},
		"sym_int_values": {}, "sym_bool_values": {}}, "signature": {"input_specs": [], "output_specs": []},
		"module_call_graph": []}, "opset_version": {"aten": 10}, "range_constraints": {},
		"schema_version": {"major": 8, "minor": 20}}`
}

func TestArgument(t *testing.T) {
	for _, c := range []struct {
		text string
		ok   func(a *Argument) bool
	}{
		{`{"as_int": -9223372036854775808}`, func(a *Argument) bool { return a.AsInt() == math.MinInt64 }},
		{`{"as_int": 9223372036854775807}`, func(a *Argument) bool { return a.AsInt() == math.MaxInt64 }},
		{`{"as_float": 0.5}`, func(a *Argument) bool { return a.AsFloat() == 0.5 }},
		{`{"as_float": 2}`, func(a *Argument) bool { return a.AsFloat() == 2 }},
		{`{"as_float": "-Infinity"}`, func(a *Argument) bool { return math.IsInf(a.AsFloat(), -1) }},
		{`{"as_float": Infinity}`, func(a *Argument) bool { return math.IsInf(a.AsFloat(), 1) }},
		{`{"as_float": -Infinity}`, func(a *Argument) bool { return math.IsInf(a.AsFloat(), -1) }},
		{`{"as_float": "NaN"}`, func(a *Argument) bool { return math.IsNaN(a.AsFloat()) }},
		{`{"as_floats": [NaN, 1e3]}`, func(a *Argument) bool { return math.IsNaN(a.AsFloats()[0]) && a.AsFloats()[1] == 1000 }},
		{`{"as_bool": true}`, (*Argument).AsBool},
		{`{"as_none": true}`, func(a *Argument) bool { return a.Arm == ArgumentAsNone && !a.AsBool() }},
		{`{"as_tensor": {"name": "q"}}`, func(a *Argument) bool { return a.AsTensor().Name == "q" }},
		{`{"as_tensors": []}`, func(a *Argument) bool { return a.AsTensors() != nil && len(a.AsTensors()) == 0 }},
		{`{"as_string": "a\u00e9\ud83d\ude00\n\"\\"}`, func(a *Argument) bool { return a.AsString() == "aé😀\n\"\\" }},
		{`{"as_string": "\ud83d!"}`, func(a *Argument) bool { return a.AsString() == "�!" }},
		{`{"as_scalar_type": 13}`, func(a *Argument) bool { return a.AsScalarType() == ScalarTypeBFLOAT16 }},
		{`{"as_sym_ints": [{"as_int": 3}, {"as_name": "s"}]}`, func(a *Argument) bool {
			s := a.AsSymInts()
			return s[0].AsInt() == 3 && s[1].AsName() == "s"
		}},
		{`{"as_nested_tensors": [[{"name": "a"}], []]}`, func(a *Argument) bool { return a.AsNestedTensors()[0][0].Name == "a" }},
		{`{"as_complex": {"real": 1, "imag": "NaN"}}`, func(a *Argument) bool { return a.AsComplex().Real == 1 }},
		{`{"as_device": {"type": "cuda", "index": 1, "later": [{}, [], {"a": [1, -2.5e-3, null]}]}}`, func(a *Argument) bool {
			return a.AsDevice().Index == Opt[int64]{1, true}
		}},
		{`{"as_string_to_argument": {"k": {"as_int": 4}}}`, func(a *Argument) bool { return a.AsStringToArgument()[0].Value.AsInt() == 4 }},
	} {
		p, _, err := DecodeExportedProgram([]byte(program(c.text)))
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if a := &p.GraphModule.Graph.Nodes[0].Inputs[0].Arg; !c.ok(a) {
			t.Errorf("%s: decoded as %+v", c.text, *a)
		}
	}
}

func TestRefuse(t *testing.T) {
	const at = "graph_module.graph.nodes[0].inputs[0].arg"
	for _, c := range []struct{ arg, path, msg string }{
		{`{}`, at, "no arm"},
		{`{"as_thing": 1}`, at + ".as_thing", "unknown arm"},
		{`{"as_int": 1, "as_bool": true}`, at + ".as_bool", "a second arm beside as_int"},
		{`{"as_int": 1000000000000000000000000000000}`, at + ".as_int", "does not fit 64 bits"},
		{`{"as_int": 9223372036854775808}`, at + ".as_int", "does not fit 64 bits"},
		{`{"as_int": -9223372036854775809}`, at + ".as_int", "does not fit 64 bits"},
		{`{"as_int": 1.0}`, at + ".as_int", "an integer"},
		{`{"as_int": 01}`, at + ".as_int", "a number"},
		{`{"as_int": null}`, at + ".as_int", "null where a number"},
		{`{"as_float": 1e999}`, at + ".as_float", "float64"},
		{`{"as_float": "1.5"}`, at + ".as_float", "a string where a number"},
		{`{"as_bool": 1}`, at + ".as_bool", "true or false"},
		{`{"as_ints": [1, 2,]}`, at + ".as_ints[2]", "a number"},
		{`{"as_ints": [1 2]}`, at + ".as_ints[1]", "','"},
		{`{"as_ints": {"a": 1}}`, at + ".as_ints", "an object where an array"},
		{`{"as_scalar_type": 99}`, at + ".as_scalar_type", "unknown code 99"},
		{`{"as_string": "a` + "\n" + `"}`, at + ".as_string", "control character"},
		{`{"as_string": "a` + "\xff" + `"}`, at + ".as_string", "UTF-8"},
		{`{"as_string": "\x"}`, at + ".as_string", "escape"},
		{`{"as_string": ` + strings.Repeat("[", 200000) + strings.Repeat("]", 200000) + `}`, at + ".as_string", "nested deeper"},
		{`{"as_device": {"type": "cpu", "type": "cpu"}}`, at + ".as_device", `field "type" stands twice`},
		{`{"as_device": {}}`, at + ".as_device", `field "type" is missing`},
		{`{"as_device": {"type": "cpu", "x": [}}}`, at + ".as_device.x", "a number"},
		{`{"as_device": {"type": "cpu", "x": {"a": 1]}}}`, at + ".as_device.x", "'}'"},
		{`{"as_device": {"type": "cpu", "x": [1, "a": 2]}}}`, at + ".as_device.x", "']'"},
	} {
		_, _, err := DecodeExportedProgram([]byte(program(c.arg)))
		var e *Error
		if !errors.As(err, &e) || e.Path != c.path || !strings.Contains(e.Msg, c.msg) {
			t.Errorf("%.80s: got %v, want %s: …%s…", c.arg, err, c.path, c.msg)
		}
	}
	for i, whole := 0, program(`{"as_int": 1}`); i < len(whole); i++ {
		if _, _, err := DecodeExportedProgram([]byte(whole[:i])); err == nil {
			t.Errorf("the first %d of %d bytes are accepted", i, len(whole))
		}
	}
	if _, _, err := DecodeExportedProgram([]byte("\xef\xbb\xbf" + program(`{"as_int": 1}`))); err == nil {
		t.Error("a byte order mark is accepted")
	}
	if _, _, err := DecodeExportedProgram([]byte(program(`{"as_int": 1}`) + "x")); err == nil {
		t.Error("text behind the value is accepted")
	}
}

func TestUnknownFields(t *testing.T) {
	text := strings.Replace(program(`{"as_int": 1}`), `"outputs"`, `"zeta": {"a": [1, {}]}, "alpha": "x", "outputs"`, 1)
	_, unknown, err := DecodeExportedProgram([]byte(text))
	if err != nil || fmt.Sprint(unknown) != "[alpha zeta]" {
		t.Errorf("got %v, %v", unknown, err)
	}
}

// long is a text whose nodes are decoded by workers: n nodes, the argument of node k replaced.
func long(n, k int, arg string) string {
	one := program(`{"as_int": 7}`)
	i, j := strings.Index(one, `{"target"`), strings.Index(one, `], "tensor_values"`)
	var b strings.Builder
	b.WriteString(one[:i])
	for m := range n {
		if m > 0 {
			b.WriteString(", ")
		}
		node := one[i:j]
		if m == k {
			node = strings.Replace(node, `{"as_int": 7}`, arg, 1)
		}
		b.WriteString(node)
	}
	b.WriteString(one[j:])
	return b.String()
}

func TestWorkers(t *testing.T) {
	const n = 20000
	p, _, err := DecodeExportedProgram([]byte(long(n, 12345, `{"as_string": "here"}`)))
	if err != nil {
		t.Fatal(err)
	}
	nodes := p.GraphModule.Graph.Nodes
	if len(nodes) != n || nodes[12345].Inputs[0].Arg.AsString() != "here" || nodes[n-1].Inputs[0].Arg.AsInt() != 7 {
		t.Errorf("%d nodes, node 12345 holds %v", len(nodes), nodes[12345].Inputs[0].Arg)
	}
	for _, arg := range []string{`{"as_int": "x"}`, `{"as_int": 1}]`, `{"as_int": 1} 1`, `{"as_int": 1}}, 3, {"a": {"b": 1}`, `{`} {
		_, _, err = DecodeExportedProgram([]byte(long(n, 12345, arg)))
		var e *Error
		if !errors.As(err, &e) || !strings.HasPrefix(e.Path, "graph_module.graph.nodes[1234") {
			t.Errorf("%s: got %v", arg, err)
		}
	}
}

// Disturbed workers take the elements of a long list in another order; the list is the same.
func TestWorkersInAnyOrder(t *testing.T) {
	var text strings.Builder
	const n = 60_000
	text.WriteByte('[')
	for i := range n {
		if i > 0 {
			text.WriteByte(',')
		}
		fmt.Fprintf(&text, "%d", i)
	}
	text.WriteByte(']')
	if text.Len() < splitMin {
		t.Fatalf("%d bytes are not split", text.Len())
	}
	orders := map[string]bool{}
	for seed := range uint64(6) {
		stop := shuffle.Start(seed + 1)
		var mu sync.Mutex
		var met []int64
		var got []int64
		_, err := decode([]byte(text.String()), func(d *decoder) error {
			return splitList(d, &got, func(d *decoder, v *int64) error {
				if err := d.int(v); err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				met = append(met, *v)
				return nil
			})
		})
		stop()
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != n {
			t.Fatalf("%d elements", len(got))
		}
		for i, v := range got {
			if v != int64(i) {
				t.Fatalf("element %d is %d", i, v)
			}
		}
		orders[fmt.Sprint(met)] = true
	}
	if len(orders) < 2 {
		t.Error("the workers met the elements in the same order each time")
	}
}

func TestVersion(t *testing.T) {
	v, torch, err := Version([]byte(`{"a": [{}], "schema_version": {"major": 5, "minor": 3}, "torch_version": "2.3"}`))
	if err != nil || v.Major != 5 || v.Minor != 3 || torch != "2.3" {
		t.Errorf("got %v %q %v", v, torch, err)
	}
	if _, _, err := Version([]byte(`{}`)); err == nil {
		t.Error("no error without a version")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(program(`{"as_ints": [1, -2]}`)))
	f.Add([]byte(program(`{"as_sym_int": {"as_name": "x"}}`)))
	f.Add([]byte(`{"config": {"w": {"path_name": "weight_0", "is_param": true, "use_pickle": false, "tensor_meta": null}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _, err := DecodeExportedProgram(b)
		if _, _, err2 := DecodeExportedProgram(b); (err == nil) != (err2 == nil) {
			t.Errorf("decoded twice: %v, then %v", err, err2)
		}
		_, _, _ = DecodePayloadConfig(b)
		_, _, _ = Version(b)
	})
}

// BenchmarkDecode decodes the model.json of the archive that LATHE_PT2 names, or a made-up one of 20,000 nodes.
func BenchmarkDecode(b *testing.B) {
	text := []byte(long(20000, -1, ""))
	if path := os.Getenv("LATHE_PT2"); path != "" {
		z, err := zip.OpenReader(path)
		if err != nil {
			b.Fatal(err)
		}
		defer z.Close()
		for _, e := range z.File {
			if strings.Contains(e.Name, "/models/") {
				r, err := e.Open()
				if err != nil {
					b.Fatal(err)
				}
				if text, err = io.ReadAll(r); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := DecodeExportedProgram(text); err != nil {
			b.Fatal(err)
		}
	}
}
