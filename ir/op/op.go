// Package op makes nodes: one typed constructor an operator (generated), which fills in defaults and infers the types of
// the results.
package op

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/infer"
	"github.com/lathe-ml/lathe/ops"
)

// KW is an optional argument of a constructor.
func KW(name string, a ir.Arg) ir.Named { return ir.Named{Name: name, Arg: a} }

// New makes a node of any operator from complete arguments in schema order and infers its result types. Where the
// builder has failed, or fails now, the result is nil.
func New(b *ir.Builder, id ops.ID, args []ir.Arg) *ir.Node {
	if b.Err != nil {
		return nil
	}
	types, err := infer.Types(b.G, id, args)
	if err != nil {
		b.Fail(fmt.Errorf("%s: %w", id, err))
		return nil
	}
	return b.Raw(id, args, types...)
}

func build(b *ir.Builder, id ops.ID, required []ir.Named, kw []ir.Named) *ir.Node {
	if b.Err != nil {
		return nil
	}
	args := Defaults(id)
	for _, l := range [2][]ir.Named{required, kw} {
		for _, a := range l {
			i := id.Info().ArgIndex(a.Name)
			if i < 0 {
				b.Fail(fmt.Errorf("%s has no argument %s", id, a.Name))
				return nil
			}
			args[i] = a.Arg
		}
	}
	return New(b, id, args)
}

func out(n *ir.Node) *ir.Value {
	if n == nil {
		return nil
	}
	return n.Out()
}

var defaults = struct {
	sync.RWMutex
	m map[ops.ID][]ir.Arg
}{m: map[ops.ID][]ir.Arg{}}

// Defaults gives a fresh argument list with the schema's defaults, None where there is none.
func Defaults(id ops.ID) []ir.Arg {
	defaults.RLock()
	d, ok := defaults.m[id]
	defaults.RUnlock()
	if !ok {
		s := &id.Info().Schema
		d = make([]ir.Arg, len(s.Args))
		for i := range s.Args {
			d[i] = ParseDefault(&s.Args[i])
		}
		defaults.Lock()
		defaults.m[id] = d
		defaults.Unlock()
	}
	return append([]ir.Arg(nil), d...)
}

// IsDefault tells whether argument i of the operator has its default value.
func IsDefault(id ops.ID, i int, a ir.Arg) bool {
	s := &id.Info().Schema
	return i < len(s.Args) && s.Args[i].HasDefault && Default(id, i).Equal(a)
}

// Default is the default of argument i, None where there is none.
func Default(id ops.ID, i int) ir.Arg {
	defaults.RLock()
	d, ok := defaults.m[id]
	defaults.RUnlock()
	if !ok {
		d = Defaults(id)
	}
	return d[i]
}

// ParseDefault is the default that a schema gives an argument, None where it gives none.
func ParseDefault(a *ops.Arg) ir.Arg {
	src := a.Default
	if !a.HasDefault || src == "None" {
		return ir.None
	}
	if strings.HasPrefix(src, "[") {
		var l []ir.Arg
		for _, e := range strings.Split(strings.Trim(src, "[]"), ",") {
			if e = strings.TrimSpace(e); e != "" {
				l = append(l, scalarDefault(a.Type, e))
			}
		}
		return ir.List(l...)
	}
	d := scalarDefault(a.Type, src)
	if a.List && a.Size > 0 {
		l := make([]ir.Arg, a.Size)
		for i := range l {
			l[i] = d
		}
		return ir.List(l...)
	}
	return d
}

func scalarDefault(t ops.ArgType, src string) ir.Arg {
	switch src {
	case "True":
		return ir.Bool(true)
	case "False":
		return ir.Bool(false)
	}
	if len(src) >= 2 && (src[0] == '\'' || src[0] == '"') {
		return ir.Str(src[1 : len(src)-1])
	}
	switch t {
	case ops.TDType:
		// torch prints "long" for the int64 default of a few operators.
		switch src {
		case "long":
			return ir.DTypeArg(ops.Int64)
		case "float":
			return ir.DTypeArg(ops.Float32)
		}
	case ops.TLayout:
		return ir.Layout(src)
	case ops.TMemoryFormat:
		return ir.MemoryFormat(src)
	case ops.TDevice:
		return ir.Device(src)
	case ops.TStr:
		return ir.Str(src)
	}
	switch src {
	case "Mean":
		return ir.Int(1)
	case "Sum":
		return ir.Int(2)
	}
	if k, err := strconv.ParseInt(src, 10, 64); err == nil {
		if t == ops.TFloat {
			return ir.Float(float64(k))
		}
		return ir.Int(k)
	}
	if f, err := strconv.ParseFloat(src, 64); err == nil {
		return ir.Float(f)
	}
	if d, ok := ops.ParseDType(src); ok {
		return ir.DTypeArg(d)
	}
	panic(fmt.Sprintf("op: default %q of %s is not understood", src, strconv.Itoa(int(t))))
}
