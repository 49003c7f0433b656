package msl

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Manifest says how a kernel that an engineer wrote stands for an operator. It lies beside the source, NAME.json beside
// NAME.metal; NAME is the manifest's own choice.
type Manifest struct {
	// Op is the operator that the kernel computes: mylib.fused_gate.default.
	Op string `json:"op"`
	// Inputs are the operator's tensor arguments by name, in the order of the kernel's parameters.
	Inputs []Param `json:"inputs"`
	// Settings are arguments that are constant, as template arguments of the kernel: ints, bools and element types.
	Settings []Param `json:"settings,omitempty"`
	// Outputs are the results by name, all of them. Their shapes and types are those of the program.
	Outputs []Param `json:"outputs"`
	// Threads is what one thread computes: an "element" of the first result, or a "row" of its last dimension.
	Threads string `json:"threads"`
	// Group is the number of threads in a group.
	Group int `json:"group"`
	// Header is text before the function, such as helpers; may be empty.
	Header string `json:"header,omitempty"`

	// Source is the body, from NAME.metal.
	Source string `json:"-"`
	// Name is NAME.
	Name string `json:"-"`
}

// Param is a parameter of a kernel.
type Param struct {
	Name string `json:"name"`
	// Arg is the operator's argument where it has another name.
	Arg string `json:"arg,omitempty"`
	// Types are the element types that the kernel is written for, by torch's names; none means any.
	Types []string `json:"types,omitempty"`
}

// maxManifest bounds a manifest's size.
const maxManifest = 1 << 20

// Load reads the kernels of a folder by operator.
func Load(dir string) (map[string]*Manifest, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s holds no kernels: %w", dir, fs.ErrNotExist)
	}
	out := map[string]*Manifest{}
	var errs []error
	for _, f := range files {
		m, err := load(f)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", f, err))
			continue
		}
		if out[m.Op] != nil {
			errs = append(errs, fmt.Errorf("%s: a second kernel for %s", f, m.Op))
			continue
		}
		out[m.Op] = m
	}
	return out, errors.Join(errs...)
}

func load(path string) (*Manifest, error) {
	if st, err := os.Stat(path); err != nil {
		return nil, err
	} else if st.Size() > maxManifest {
		return nil, fmt.Errorf("%d bytes are no manifest", st.Size())
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	m := &Manifest{}
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.DisallowUnknownFields()
	if err := d.Decode(m); err != nil {
		return nil, err
	}
	src, err := os.ReadFile(strings.TrimSuffix(path, ".json") + ".metal")
	if err != nil {
		return nil, err
	}
	m.Source = string(src)
	m.Name = strings.TrimSuffix(filepath.Base(path), ".json")
	switch {
	case m.Op == "":
		return nil, fmt.Errorf("no operator")
	case len(m.Inputs) == 0 || len(m.Outputs) == 0:
		return nil, fmt.Errorf("a kernel has at least one input and one output")
	case m.Threads != "element" && m.Threads != "row":
		return nil, fmt.Errorf("threads is %q: element and row are known", m.Threads)
	case m.Group < 1 || m.Group > 1024:
		return nil, fmt.Errorf("a group of %d threads: 1 to 1024 are possible", m.Group)
	case strings.TrimSpace(m.Source) == "":
		return nil, fmt.Errorf("the source is empty")
	}
	return m, nil
}

// Stub is the source and the manifest of a kernel that is to be written: every parameter declared, nothing computed.
func Stub(m *Manifest, doc string) (source string, manifest []byte, err error) {
	var b strings.Builder
	fmt.Fprintf(&b, "// %s: %s\n//\n", m.Op, doc)
	b.WriteString("// This is the body of a kernel; MLX writes the function around it. Parameters:\n")
	for _, p := range m.Inputs {
		fmt.Fprintf(&b, "//   %s      input, row-major; %s_shape, %s_strides and %s_ndim are there as well\n", p.Name, p.Name, p.Name, p.Name)
	}
	for _, p := range m.Settings {
		fmt.Fprintf(&b, "//   %s      setting, a template argument\n", p.Name)
	}
	for _, p := range m.Outputs {
		fmt.Fprintf(&b, "//   %s      output\n", p.Name)
	}
	fmt.Fprintf(&b, "// One thread computes one %s of %s.\n\nuint i = thread_position_in_grid.x;\n", m.Threads, m.Outputs[0].Name)
	b.WriteString("// Write the result here, for instance:\n")
	fmt.Fprintf(&b, "// %s[i] = %s[i];\n", m.Outputs[0].Name, m.Inputs[0].Name)
	manifest, err = json.MarshalIndent(m, "", "  ")
	return b.String(), append(manifest, '\n'), err
}
