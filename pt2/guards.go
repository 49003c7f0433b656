package pt2

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/sym"
)

// guards enters into the symbol table what the exported program checks of its inputs: ((3*L['x'].size()[0]) % 12) == 0.
// They are facts that help to simplify sizes; one that is not understood is left out.
func (s *scope) guards() {
	if len(s.g.InputNames) == 0 {
		return
	}
	byPath := map[string]*ir.Value{}
	for i, in := range s.g.UserInputs() {
		byPath[s.g.InputNames[i]] = in.Value
	}
	opt := sym.SympyOptions{Source: func(text string) (sym.Expr, error) {
		path, what, dim, err := parseSource(text)
		if err != nil {
			return sym.Expr{}, err
		}
		v := byPath[path]
		if v == nil {
			return sym.Expr{}, fmt.Errorf("no input %s", path)
		}
		switch t := v.Type; {
		case what == "" && t.Kind == ir.KindInt && t.Known:
			return t.Sym, nil
		case what == "size" && t.IsTensor() && dim < t.Rank():
			return t.Shape[dim], nil
		}
		return sym.Expr{}, fmt.Errorf("%s of %s", what, path)
	}}
	for _, text := range s.ep.GuardsCode {
		e, err := sym.ParseSympy(text, opt)
		if err != nil || e.Kind() != sym.Bool {
			continue
		}
		if err := s.syms.Assume(e); err != nil {
			s.a.note("%s: guard %s: %v", s.entry, clean(text), err)
		}
	}
}

// parseSource reads L['a'][0]['k'].size()[1]: the way to an input, a.0.k, and what of it (size of dimension 1).
func parseSource(text string) (path, what string, dim int, err error) {
	bad := fmt.Errorf("source %s", clean(text))
	rest, ok := strings.CutPrefix(text, "L")
	if !ok {
		return "", "", 0, bad
	}
	var parts []string
	for strings.HasPrefix(rest, "[") {
		var key string
		if key, rest, ok = strings.Cut(rest[1:], "]"); !ok || key == "" {
			return "", "", 0, bad
		}
		parts = append(parts, strings.Trim(key, `'"`))
	}
	path = strings.Join(parts, ".")
	if rest == "" {
		return path, "", 0, nil
	}
	key, ok := strings.CutPrefix(rest, ".size()[")
	if key, ok2 := strings.CutSuffix(key, "]"); ok && ok2 {
		if dim, err = strconv.Atoi(key); err == nil && dim >= 0 {
			return path, "size", dim, nil
		}
	}
	return "", "", 0, bad
}
