package ops

import "sync"

// ID identifies an operator of the table. Zero is Unknown: a target that the table does not hold.
type ID uint16

// Unknown is the id of operators without a row.
const Unknown ID = 0

// Info is what the table says of an operator, as generated.
type Info struct {
	Name    string // aten.add.Tensor
	Schema  Schema
	Text    string // the schema as written
	Doc     string
	DTypes  DTypeSet
	Kernel  string
	Limits  string
	Decomp  bool
	Random  bool
	Effect  bool
	Mutates bool // writes to an argument
	View    bool // its result may alias an argument, nothing is written
	// Functional is the pure twin of an in-place operator, Unknown without.
	Functional ID
	// SameAs computes the same from the same arguments, Unknown where the operator stands for itself. Rules that look for an
	// operator need to know only the one that others are the same as.
	SameAs ID
	Stages StageSet
}

// unknown is what has to be thought of an operator without a row: it may write to its arguments, so that it must not go
// although nobody reads its results.
var unknown = Info{Effect: true}

// Info gives the facts of id.
func (id ID) Info() *Info {
	if id > 0 && int(id) < len(infos) {
		return &infos[id]
	}
	return &unknown
}

// String is the operator's name.
func (id ID) String() string {
	if id == Unknown {
		return "unknown"
	}
	return id.Info().Name
}

// Pure tells that the operator neither writes, aliases, draws random numbers nor has an effect.
func (i *Info) Pure() bool { return !i.Mutates && !i.Random && !i.Effect }

// ArgIndex is the position of the named argument, or -1.
func (i *Info) ArgIndex(name string) int {
	for k := range i.Schema.Args {
		if i.Schema.Args[k].Name == name {
			return k
		}
	}
	return -1
}

var byName = sync.OnceValue(func() map[string]ID {
	m := make(map[string]ID, len(infos))
	for i := 1; i < len(infos); i++ {
		m[infos[i].Name] = ID(i)
	}
	return m
})

// Lookup finds an operator by name; a missing ".default" is supplied.
func Lookup(name string) ID {
	m := byName()
	if id, ok := m[name]; ok {
		return id
	}
	return m[name+".default"]
}

// All gives every id of the table in order of name.
func All() []ID {
	ids := make([]ID, 0, len(infos)-1)
	for i := 1; i < len(infos); i++ {
		ids = append(ids, ID(i))
	}
	return ids
}

var kernelByName = sync.OnceValue(func() map[string]*KernelInfo {
	m := make(map[string]*KernelInfo, len(kernels))
	for i := range kernels {
		m[kernels[i].Name] = &kernels[i]
	}
	return m
})

// KernelInfo is a runtime kernel, as generated from the table.
type KernelInfo struct {
	Name   string // aten::add.out
	Schema Schema
	Kernel
}

// LookupKernel finds a runtime kernel by "ns::name.overload", or nil.
func LookupKernel(name string) *KernelInfo { return kernelByName()[name] }

// AllKernels gives the kernels of the stock runtime in order of name.
func AllKernels() []KernelInfo { return kernels }
