// Package cases reads exported programs with recorded inputs and PyTorch's outputs, and checks what a program computed
// against them. A case is a folder with model.pt2, case.json and io.safetensors.
package cases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/lathe-ml/lathe/internal/etrt"
	"github.com/lathe-ml/lathe/internal/safetensors"
)

// Entry is a line of the index.
type Entry struct {
	Name  string // folder below the root, such as "models/bert"
	Tags  []string
	Dtype string
	What  string
}

// HasTag reports whether the entry carries a tag.
func (e Entry) HasTag(tag string) bool {
	for _, t := range e.Tags {
		if t == tag {
			return true
		}
	}
	return false
}

// Dir returns the folder with the unpacked cases: LATHE_CASES, or the one the `unpack` script beside the archives makes, or
// has made in the user's cache. archives is the folder that holds the script.
func Dir(archives string) (string, error) {
	if d := os.Getenv("LATHE_CASES"); d != "" {
		return d, nil
	}
	out, err := exec.Command(filepath.Join(archives, "unpack")).Output()
	if err != nil {
		if cache, cerr := os.UserCacheDir(); cerr == nil {
			dir := filepath.Join(cache, "lathe", "cases")
			if _, serr := os.Stat(dir); serr == nil {
				return dir, nil
			}
		}
		return "", fmt.Errorf("no cases: LATHE_CASES is not set and %s/unpack failed: %w", archives, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Index reads an index.tsv: a header line, then one case a line.
func Index(path string) ([]Entry, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	cols := strings.Split(lines[0], "\t")
	var es []Entry
	for i, line := range lines[1:] {
		f := strings.Split(line, "\t")
		if len(f) != len(cols) {
			return nil, fmt.Errorf("%s:%d: %d columns, the header has %d", path, i+2, len(f), len(cols))
		}
		var e Entry
		for k, c := range cols {
			switch c {
			case "case":
				e.Name = f[k]
			case "tags":
				e.Tags = strings.FieldsFunc(f[k], func(r rune) bool { return r == ',' || r == ' ' })
			case "dtype":
				e.Dtype = f[k]
			case "what":
				e.What = f[k]
			}
		}
		es = append(es, e)
	}
	return es, nil
}

// Find lists the folders below root that hold a case.json, by their paths below root, sorted.
func Find(root string) ([]string, error) {
	var names []string
	err := filepath.WalkDir(root, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.Name() != "case.json" {
			return err
		}
		rel, err := filepath.Rel(root, filepath.Dir(p))
		names = append(names, filepath.ToSlash(rel))
		return err
	})
	return names, err
}

// Case is a loaded case. Its tensors point into the mapped file until Close.
type Case struct {
	Name     string
	Dir      string
	Method   string
	RTol     float64
	ATol     float64
	Stateful bool // all calls go to one loaded program, in order
	Hostile  bool // a damaged or malicious archive
	Tags     []string
	Calls    []Call
	Info     map[string]any

	expect     map[string]string
	expectText string
	io         *safetensors.File
}

// Call is one execution: flattened inputs, and what PyTorch gave for them.
type Call struct{ In, Out []etrt.Value }

// Model is the path of the exported program.
func (c *Case) Model() string { return filepath.Join(c.Dir, "model.pt2") }

// Expect says what is expected of a backend: "right", "refuse: TEXT", "right or refuse", "compiles or refuse". A hostile
// case has one text for all.
func (c *Case) Expect(backend string) string {
	if e, ok := c.expect[backend]; ok {
		return e
	}
	return c.expectText
}

// Compare reports whether values are to be compared; a case with random outputs only has to run.
func (c *Case) Compare() bool {
	v, ok := c.Info["compare"].(bool)
	return !ok || v
}

// Close unmaps the case's tensors.
func (c *Case) Close() error {
	if c.io == nil {
		return nil
	}
	return c.io.Close()
}

type jsonValue struct {
	Kind    string          `json:"kind"`
	Key     string          `json:"key"`
	DType   string          `json:"dtype"`
	Strides []int64         `json:"strides"`
	Value   json.RawMessage `json:"value"`
}

// Load reads the case in dir.
func Load(dir string) (*Case, error) {
	var j struct {
		Name     string          `json:"name"`
		Method   string          `json:"method"`
		RTol     float64         `json:"rtol"`
		ATol     float64         `json:"atol"`
		Stateful bool            `json:"stateful"`
		Hostile  bool            `json:"hostile"`
		Tags     []string        `json:"tags"`
		Expect   json.RawMessage `json:"expect"`
		Info     map[string]any  `json:"info"`
		Calls    []struct {
			In  []jsonValue `json:"in"`
			Out []jsonValue `json:"out"`
		} `json:"calls"`
	}
	path := filepath.Join(dir, "case.json")
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, &j); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	c := &Case{
		Name: j.Name, Dir: dir, Method: j.Method, RTol: j.RTol, ATol: j.ATol, Stateful: j.Stateful, Hostile: j.Hostile,
		Tags: j.Tags, Info: j.Info,
	}
	if len(j.Expect) > 0 && json.Unmarshal(j.Expect, &c.expectText) != nil {
		if err := json.Unmarshal(j.Expect, &c.expect); err != nil {
			return nil, fmt.Errorf("%s: expect: %w", path, err)
		}
	}
	if len(j.Calls) == 0 {
		return c, nil
	}
	if c.io, err = safetensors.Open(filepath.Join(dir, "io.safetensors")); err != nil {
		return nil, err
	}
	for i, call := range j.Calls {
		in, err := c.values(call.In)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: call %d, input %w", path, i, err), c.Close())
		}
		out, err := c.values(call.Out)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: call %d, output %w", path, i, err), c.Close())
		}
		c.Calls = append(c.Calls, Call{In: in, Out: out})
	}
	return c, nil
}

func (c *Case) values(js []jsonValue) ([]etrt.Value, error) {
	vs := make([]etrt.Value, len(js))
	for i, j := range js {
		var err error
		switch v := &vs[i]; j.Kind {
		case "tensor":
			v.Kind = etrt.KindTensor
			v.Tensor, err = c.tensor(j)
		case "int":
			v.Kind = etrt.KindInt
			err = json.Unmarshal(j.Value, &v.Int)
		case "float":
			v.Kind = etrt.KindFloat
			v.Float, err = parseFloat(j.Value)
		case "bool":
			v.Kind = etrt.KindBool
			err = json.Unmarshal(j.Value, &v.Bool)
		case "str":
			v.Kind = etrt.KindString
			err = json.Unmarshal(j.Value, &v.Str)
		case "none":
		default:
			err = fmt.Errorf("kind %q is not known", j.Kind)
		}
		if err != nil {
			return nil, fmt.Errorf("%d: %w", i, err)
		}
	}
	return vs, nil
}

// parseFloat reads a JSON number, or the text form JSON has to use for what is not finite.
func parseFloat(raw json.RawMessage) (float64, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return strconv.ParseFloat(text, 64)
	}
	var f float64
	err := json.Unmarshal(raw, &f)
	return f, err
}

func (c *Case) tensor(j jsonValue) (*etrt.Tensor, error) {
	st, ok := c.io.Tensors[j.Key]
	if !ok {
		return nil, fmt.Errorf("io.safetensors has no %q", j.Key)
	}
	name := st.Torch()
	data, shape := st.Data, st.Shape
	if j.DType != "" && j.DType != name {
		return nil, fmt.Errorf("%q is %s in io.safetensors, %s in case.json", j.Key, name, j.DType)
	}
	d, err := etrt.ParseDType(name)
	if err != nil {
		return nil, err
	}
	t := &etrt.Tensor{DType: d, Shape: shape, Data: data}
	if order := channelsLast(shape, j.Strides); order != nil {
		t.Data = etrt.Permute(data, d.Size(), shape, order, false)
		t.Strides = j.Strides
	}
	return t, nil
}

// channelsLast returns the dim order when the strides are those of a channels-last tensor and not of a contiguous one;
// every other layout is handed over contiguous.
func channelsLast(shape, strides []int64) []uint8 {
	orders := map[int][]uint8{4: {0, 2, 3, 1}, 5: {0, 2, 3, 4, 1}}
	order := orders[len(shape)]
	if order == nil || len(strides) != len(shape) {
		return nil
	}
	got, err := (&etrt.Tensor{Shape: shape, Strides: strides}).DimOrder()
	if err != nil {
		return nil
	}
	plain := true
	for i, d := range got {
		plain = plain && int(d) == i
	}
	if plain {
		return nil
	}
	step := int64(1)
	for i := len(order) - 1; i >= 0; i-- {
		if shape[order[i]] != 1 && strides[order[i]] != step {
			return nil
		}
		step *= shape[order[i]]
	}
	return order
}

// Program is a loaded program, in whatever runs it.
type Program interface {
	Run(method string, inputs []etrt.Value) ([]etrt.Value, error)
	Close()
}

// Check runs every call of the case on a compiled program in the ExecuTorch runtime and compares.
func (c *Case) Check(ctx context.Context, rt *etrt.Runtime, program string, opts ...etrt.Option) error {
	return c.CheckWith(func() (Program, error) { return rt.Load(ctx, program, opts...) })
}

// CheckWith runs every call of the case on the program that load gives and compares. It returns the first failure, or all
// differences of the first call that differs.
func (c *Case) CheckWith(load func() (Program, error)) error {
	var p Program
	defer func() {
		if p != nil {
			p.Close()
		}
	}()
	for i, call := range c.Calls {
		if p == nil || !c.Stateful {
			if p != nil {
				p.Close()
				p = nil
			}
			q, err := load()
			if err != nil {
				return err
			}
			p = q
		}
		got, err := p.Run(c.Method, call.In)
		if err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
		if err := c.CompareCall(i, got); err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
	}
	return nil
}

// CompareCall compares what a program returned for a call with the record. Outputs before the recorded ones are
// mutated inputs and are not compared; absent values may be left out.
func (c *Case) CompareCall(call int, got []etrt.Value) error {
	if !c.Compare() {
		return nil
	}
	return etrt.Compare(got, c.Calls[call].Out, c.RTol, c.ATol)
}
