// Package ops holds the identities and facts of operators. The rows of ops/table are the one source of truth; what this
// package serves at run time (ids, schemas, effects, kernels) is generated from them by tools/opgen.
package ops

import (
	"fmt"
	"strconv"
	"strings"
)

// Row is one operator of the table, as an engineer writes it.
type Row struct {
	// Schema is the operator's torch schema with defaults and alias marks.
	Schema string
	// Doc says in one or two sentences what it computes.
	Doc string
	// DTypes are the element types that the first tensor argument may have; zero means any.
	DTypes DTypeSet
	// Infer names the rule of package ir/infer: func(c *Call) ([]ir.Type, error).
	Infer string
	// Interp names the function of package interp: func(c *Call) ([]Value, error).
	Interp string
	// Decomp names the one-step decomposition of package passes: func(d *Decomp) []*ir.Value; empty where there is none.
	Decomp string
	// Kernel is the runtime kernel that serves the operator ("aten::add.out"), as listed in Kernels; empty where none does.
	Kernel string
	// SameAs is the operator that computes the same from the same arguments (aten.abs.default of aten.absolute.default,
	// aten.permute.default of aten.permute_copy.default): what the row leaves empty is taken from there.
	SameAs string
	// Functional is the pure operator of an in-place one where its name is not the same without the underscore.
	Functional string
	// Random marks operators that draw random numbers, Effect those that must stay although nobody reads them.
	Random, Effect bool
	// Stages are those in which the operator is legal; zero means StageAten and, if it mutates and aliases nothing, all others.
	Stages StageSet
	// Limits says what is known not to work, for docs/ops.
	Limits string
}

// Kernel is one out-variant kernel of the stock ExecuTorch runtime.
type Kernel struct {
	// Schema is the out variant's schema: its argument order is that of the instruction.
	Schema string
	// DTypes are the element types of the first tensor argument that the kernel takes; zero means any.
	DTypes DTypeSet
	// Out are the element types of the out argument where they differ from DTypes.
	Out DTypeSet
	// Faults are conditions under which the kernel refuses or errs, by key, for the legality checks of lower/program.
	Faults []string
	// Notes is prose for docs/ops.
	Notes string
}

// Stage is a level of the IR with its own legality.
type Stage uint8

// The stages, in the order of the pipeline.
const (
	StageAten Stage = iota
	StageEdge
	StageBackend
	StageLowered
)

// String is the stage's name.
func (s Stage) String() string { return [...]string{"aten", "edge", "backend", "lowered"}[s] }

// StageSet is a set of stages.
type StageSet uint8

// In makes a StageSet.
func In(ss ...Stage) StageSet {
	var r StageSet
	for _, s := range ss {
		r |= 1 << s
	}
	return r
}

// Has tells whether s holds st.
func (s StageSet) Has(st Stage) bool { return s&(1<<st) != 0 }

// ArgType is the type of a schema argument without its marks.
type ArgType uint8

// The argument types of torch's schema language.
const (
	TTensor ArgType = iota
	TInt            // int and SymInt
	TFloat          // float and SymFloat
	TBool           // bool and SymBool
	TScalar
	TStr
	TDType // ScalarType
	TLayout
	TDevice
	TMemoryFormat
	TGenerator
	TGraph // a nested graph of a higher-order operator
	TAny   // whatever the archive holds (operator.* and prim operators)
)

var argTypeNames = map[string]ArgType{
	"Tensor": TTensor, "int": TInt, "SymInt": TInt, "float": TFloat, "SymFloat": TFloat, "bool": TBool, "SymBool": TBool,
	"Scalar": TScalar, "str": TStr, "ScalarType": TDType, "Layout": TLayout, "Device": TDevice, "MemoryFormat": TMemoryFormat,
	"Generator": TGenerator, "Graph": TGraph, "Any": TAny,
}

// Arg is an argument of a schema.
type Arg struct {
	Name string
	Type ArgType
	// Opt means that None is allowed; List that it is a list (of Size elements where the schema says so, a single value
	// standing for all of them); ElemOpt that elements may be None.
	Opt, List, ElemOpt bool
	Size               int8
	// KwOnly marks arguments after the star.
	KwOnly bool
	// Alias is the alias set letter, zero without; Write tells that the operator writes to the argument.
	Alias byte
	Write bool
	// HasDefault and Default (source text: "None", "1", "[0, 1]", "True", "contiguous_format", "'mean'").
	HasDefault bool
	Default    string
}

// Ret is a result of a schema.
type Ret struct {
	Name  string
	Type  ArgType
	Opt   bool
	List  bool
	Alias byte
	Write bool
}

// Schema is a parsed schema.
type Schema struct {
	NS, Base, Overload string
	Args               []Arg
	Rets               []Ret
}

// Name is the name used in archives and IR text: aten.add.Tensor, aten.relu.default.
func (s *Schema) Name() string {
	o := s.Overload
	if o == "" {
		o = "default"
	}
	return s.NS + "." + s.Base + "." + o
}

// ParseSchema reads torch's schema syntax: "ns::name.overload(Type(a!)[2]? name=default, *, …) -> (Type, …)".
func ParseSchema(src string) (*Schema, error) {
	fail := func(why string) (*Schema, error) { return nil, fmt.Errorf("ops: schema %q: %s", src, why) }
	ns, rest, ok := strings.Cut(src, "::")
	if !ok {
		return fail("no namespace")
	}
	open := strings.IndexByte(rest, '(')
	arrow := strings.LastIndex(rest, "->")
	if open < 0 || arrow < open {
		return fail("no argument list or result")
	}
	s := &Schema{NS: ns}
	s.Base, s.Overload, _ = strings.Cut(strings.TrimSpace(rest[:open]), ".")
	argSrc := strings.TrimSpace(rest[open:arrow])
	if !strings.HasSuffix(argSrc, ")") {
		return fail("argument list not closed")
	}
	kw := false
	for _, a := range splitTop(argSrc[1 : len(argSrc)-1]) {
		if a == "*" {
			kw = true
			continue
		}
		arg, err := parseArg(a)
		if err != nil {
			return fail(err.Error())
		}
		arg.KwOnly = kw
		s.Args = append(s.Args, arg)
	}
	ret := strings.TrimSpace(rest[arrow+2:])
	if strings.HasPrefix(ret, "(") && strings.HasSuffix(ret, ")") {
		ret = ret[1 : len(ret)-1]
	}
	for _, r := range splitTop(ret) {
		arg, err := parseArg(r)
		if err != nil {
			return fail(err.Error())
		}
		s.Rets = append(s.Rets, Ret{Name: arg.Name, Type: arg.Type, Opt: arg.Opt, List: arg.List, Alias: arg.Alias, Write: arg.Write})
	}
	return s, nil
}

func splitTop(s string) []string {
	var out []string
	depth, start := 0, 0
	quote := byte(0)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '(' || c == '[':
			depth++
		case c == ')' || c == ']':
			depth--
		case c == ',' && depth == 0:
			out = append(out, strings.TrimSpace(s[start:i]))
			start = i + 1
		}
	}
	if t := strings.TrimSpace(s[start:]); t != "" {
		out = append(out, t)
	}
	return out
}

func parseArg(s string) (Arg, error) {
	var a Arg
	decl, def, hasDef := strings.Cut(s, "=")
	if hasDef {
		a.HasDefault, a.Default = true, strings.TrimSpace(def)
	}
	decl = strings.TrimSpace(decl)
	i := 0
	for i < len(decl) && (decl[i] >= 'a' && decl[i] <= 'z' || decl[i] >= 'A' && decl[i] <= 'Z' || decl[i] == '_') {
		i++
	}
	t, ok := argTypeNames[decl[:i]]
	if !ok {
		return a, fmt.Errorf("unknown type in %q", s)
	}
	a.Type = t
	for i < len(decl) {
		switch decl[i] {
		case '(':
			j := strings.IndexByte(decl[i:], ')')
			if j < 2 {
				return a, fmt.Errorf("bad alias mark in %q", s)
			}
			mark := decl[i+1 : i+j]
			a.Alias, a.Write = mark[0], strings.Contains(mark, "!")
			i += j + 1
		case '[':
			j := strings.IndexByte(decl[i:], ']')
			if j < 0 {
				return a, fmt.Errorf("bad list in %q", s)
			}
			if a.Opt {
				a.Opt, a.ElemOpt = false, true
			}
			a.List = true
			if n := decl[i+1 : i+j]; n != "" {
				k, err := strconv.Atoi(n)
				if err != nil || k < 1 || k > 127 {
					return a, fmt.Errorf("bad list size in %q", s)
				}
				a.Size = int8(k)
			}
			i += j + 1
		case '?':
			a.Opt = true
			i++
		case ' ':
			a.Name = strings.TrimSpace(decl[i:])
			i = len(decl)
		default:
			return a, fmt.Errorf("bad type in %q", s)
		}
	}
	return a, nil
}
