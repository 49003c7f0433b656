package lathe

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/lathe-ml/lathe/codegen/msl"
	"github.com/lathe-ml/lathe/lower/mlx"
	"github.com/lathe-ml/lathe/ops"
	"github.com/lathe-ml/lathe/partition"
)

// backend is the backend that the options name, with the kernels that they give it.
func (o Options) backend() (partition.Backend, error) {
	b, err := backendNamed(o.Backend)
	if err != nil || o.Kernels == "" && !o.FuseKernels {
		return b, err
	}
	m, ok := b.(mlx.Backend)
	if !ok {
		return nil, &UsageError{fmt.Errorf("backend %s takes no Metal kernels; %s does", o.Backend, mlx.Name)}
	}
	m.FuseKernels = o.FuseKernels
	if o.Kernels != "" {
		if m.Kernels, err = msl.Load(o.Kernels); err != nil {
			return nil, &UsageError{fmt.Errorf("kernels: %w", err)}
		}
	}
	return m, nil
}

// KernelStub writes the beginnings of a Metal kernel for an operator into a folder: NAME.metal, in which the computation is
// to be filled in, and NAME.json, which says how it is called. It gives the two names; files that are there stay.
func KernelStub(op, dir string) ([]string, error) {
	id := ops.Lookup(op)
	if id == ops.Unknown {
		return nil, &UsageError{fmt.Errorf("no operator is called %q", op)}
	}
	info := id.Info()
	if info.Mutates {
		return nil, &UsageError{fmt.Errorf("%s writes to an argument: a kernel computes results alone", info.Name)}
	}
	m := &msl.Manifest{Op: info.Name, Threads: "element", Group: 256}
	for _, a := range info.Schema.Args {
		switch {
		case a.Type == ops.TTensor && !a.List:
			p := msl.Param{Name: param(a.Name)}
			if p.Name != a.Name {
				p.Arg = a.Name
			}
			for _, d := range info.DTypes.List() {
				if info.DTypes != 0 && !d.IsComplex() && d != ops.Float64 && d.Size() <= 8 {
					p.Types = append(p.Types, d.Torch())
				}
			}
			m.Inputs = append(m.Inputs, p)
		case !a.List && (a.Type == ops.TInt || a.Type == ops.TBool || a.Type == ops.TDType) && !a.Opt:
			p := msl.Param{Name: param(a.Name)}
			if p.Name != a.Name {
				p.Arg = a.Name
			}
			m.Settings = append(m.Settings, p)
		}
	}
	for i, r := range info.Schema.Rets {
		name := r.Name
		if name == "" {
			name = "out"
			if len(info.Schema.Rets) > 1 {
				name = fmt.Sprintf("out%d", i)
			}
		}
		m.Outputs = append(m.Outputs, msl.Param{Name: param(name)})
	}
	if len(m.Inputs) == 0 || len(m.Outputs) == 0 {
		return nil, &UsageError{fmt.Errorf("%s has no tensor to read or none to write", info.Name)}
	}
	source, manifest, err := msl.Stub(m, info.Doc)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	base := filepath.Join(dir, strings.ReplaceAll(strings.TrimSuffix(info.Name, ".default"), ".", "_"))
	names := []string{base + ".metal", base + ".json"}
	for i, b := range [][]byte{[]byte(source), manifest} {
		f, err := os.OpenFile(names[i], os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		if err != nil {
			return nil, &UsageError{err}
		}
		_, err = f.Write(b)
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return nil, err
		}
	}
	return names, nil
}

// param is a name that Metal takes: some of torch's are words of the language.
func param(name string) string {
	switch name {
	case "float", "half", "int", "bool", "device", "constant", "kernel", "thread", "return", "struct":
		return name + "_"
	}
	return name
}
