// Command mlxdoc writes docs/mlx.md from the rules of lower/mlx: operator by operator the nodes that it becomes and what
// is declined. It reads the source, so that the page says what the rules do.
package main

import (
	"bufio"
	"bytes"
	_ "embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"github.com/lathe-ml/lathe/ops"
)

// proof names a case for each operator: a program that is compiled and run on MLX.
//
//go:embed proof.tsv
var proof string

// shared are files whose functions serve all rules: what they emit says nothing of one.
var shared = map[string]bool{"payload.go": true, "exprs.go": true, "slots.go": true, "caps.go": true}

// source is the package as the generator sees it.
type source struct {
	funcs map[string]*ast.FuncDecl // by name, those of methods with a dot
	rules map[string]entry         // by the identifier of the operator
}

type entry struct {
	value  ast.Expr
	family string
}

func main() {
	root := "."
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		root = filepath.Join("..", root)
	}
	out, err := page(root)
	if err == nil {
		err = os.WriteFile(filepath.Join(root, "docs", "mlx.md"), out, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mlxdoc:", err)
		os.Exit(1)
	}
}

func read(dir string) (*source, error) {
	s := &source{funcs: map[string]*ast.FuncDecl{}, rules: map[string]entry{}}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	for _, f := range files {
		name := filepath.Base(f)
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, f, nil, 0)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && !shared[name] {
				name := fn.Name.Name
				if fn.Recv != nil {
					name = "." + name
				}
				s.funcs[name] = fn
			}
		}
		family, isOps := strings.CutPrefix(strings.TrimSuffix(name, ".go"), "ops_")
		if !isOps {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			kv, ok := n.(*ast.KeyValueExpr)
			if !ok {
				return true
			}
			if sel, ok := kv.Key.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == "ops" {
					s.rules[sel.Sel.Name] = entry{kv.Value, family}
				}
			}
			return true
		})
	}
	return s, nil
}

// reach collects the nodes and the refusals of everything that e leads to.
func (s *source) reach(e ast.Node, nodes, no map[string]bool, seen map[string]bool) {
	var visit func(n ast.Node) bool
	visit = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			// The key of a struct's field is no function.
			ast.Inspect(n.Value, visit)
			return false
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "mlx" {
				if name, isNode := strings.CutSuffix(strings.TrimPrefix(n.Sel.Name, "New"), "Node"); isNode && name != "Op" {
					nodes[name] = true
				}
				return false
			}
			ast.Inspect(n.X, visit)
			return false
		case *ast.Ident:
			if n.Obj == nil || n.Obj.Kind == ast.Fun {
				s.follow(n.Name, nodes, no, seen)
			}
		case *ast.CallExpr:
			sel, ok := n.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if sel.Sel.Name != "no" {
				s.follow("."+sel.Sel.Name, nodes, no, seen)
			} else if len(n.Args) > 0 {
				if lit, ok := n.Args[0].(*ast.BasicLit); ok {
					if text, err := strconv.Unquote(lit.Value); err == nil && !strings.HasPrefix(text, "%") {
						no[plain(text)] = true
					}
				}
			}
		}
		return true
	}
	ast.Inspect(e, visit)
}

func (s *source) follow(name string, nodes, no, seen map[string]bool) {
	if fn := s.funcs[name]; fn != nil && !seen[name] {
		seen[name] = true
		s.reach(fn.Body, nodes, no, seen)
	}
}

// plain puts dots in the places of what a message fills in.
func plain(text string) string {
	for _, verb := range []string{"%s", "%d", "%q", "%v", "%T"} {
		text = strings.ReplaceAll(text, verb, "…")
	}
	return text
}

// idents maps the identifiers of operators to their names.
func idents(root string) (map[string]string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "ops", "zops.go"), nil, 0)
	if err != nil {
		return nil, err
	}
	m := map[string]string{}
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, sp := range g.Specs {
			v := sp.(*ast.ValueSpec)
			if len(v.Values) != 1 {
				continue
			}
			if lit, ok := v.Values[0].(*ast.BasicLit); ok {
				if k, err := strconv.Atoi(lit.Value); err == nil {
					m[v.Names[0].Name] = ops.ID(k).Info().Name
				}
			}
		}
	}
	return m, nil
}

func page(root string) ([]byte, error) {
	s, err := read(filepath.Join(root, "lower", "mlx"))
	if err != nil {
		return nil, err
	}
	names, err := idents(root)
	if err != nil {
		return nil, err
	}
	cases := map[string]string{}
	for sc := bufio.NewScanner(strings.NewReader(proof)); sc.Scan(); {
		op, name, _ := strings.Cut(sc.Text(), "\t")
		cases[op] = name
	}
	byFamily := map[string][]string{}
	for id, e := range s.rules {
		if names[id] == "" { // a map of element types
			delete(s.rules, id)
			continue
		}
		byFamily[e.family] = append(byFamily[e.family], id)
	}
	var families []string
	for f := range byFamily {
		families = append(families, f)
	}
	sort.Strings(families)
	var b bytes.Buffer
	b.WriteString(`<!-- Generated by tools/mlxdoc from lower/mlx. -->

# What the MLX delegate takes

`)
	fmt.Fprintf(&b, "%d operators have a rule. Element types: bool, 8-, 16-, 32- and 64-bit signed integers, 8- and 32-bit unsigned ones, half, bfloat16 and\n", len(s.rules))
	b.WriteString(`single precision; a node with others stays with the runtime's kernels. Sizes may be symbols: the delegate computes them
with sums, products, quotients and remainders, from which comparisons, minima and maxima are made. An operator without a
rule is taken apart until its parts have one; what has neither stays outside, and the report says why.

A rule's nodes are those that it may become; conversions of element types between are not listed. "Not" is what the rule
declines, beside computed settings. The last column is a recorded program with the operator, which is compiled and run on
MLX; rows/ and corpus/ lie in tools/casecheck/testdata, where TestRowsOfMLX replays them.
`)
	for _, f := range families {
		ids := byFamily[f]
		sort.Slice(ids, func(i, j int) bool { return names[ids[i]] < names[ids[j]] })
		fmt.Fprintf(&b, "\n## %s\n\n| operator | nodes | not | case |\n|---|---|---|---|\n", f)
		for _, id := range ids {
			nodes, no := map[string]bool{}, map[string]bool{}
			s.reach(s.rules[id].value, nodes, no, map[string]bool{})
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", strings.TrimSuffix(names[id], ".default"), list(nodes, ", "), list(no, "; "), cases[names[id]])
		}
	}
	return b.Bytes(), nil
}

func list(m map[string]bool, sep string) string {
	var l []string
	for k := range m {
		l = append(l, strings.ReplaceAll(k, "|", "\\|"))
	}
	sort.Strings(l)
	return strings.Join(l, sep)
}
