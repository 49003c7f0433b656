package passes

import (
	"fmt"
	"strings"

	"github.com/lathe-ml/lathe/ir"
)

// Pipeline is passes in the order in which they run.
type Pipeline []Pass

// String lists the names as Parse reads them: remove-detach,functionalize,decompose.
func (p Pipeline) String() string {
	names := make([]string, len(p))
	for i, q := range p {
		names[i] = q.Name
	}
	return strings.Join(names, ",")
}

// Without is the pipeline without the named passes.
func (p Pipeline) Without(names ...string) Pipeline {
	var out Pipeline
next:
	for _, q := range p {
		for _, n := range names {
			if q.Name == n {
				continue next
			}
		}
		out = append(out, q)
	}
	return out
}

// Parse reads a list of names. The passes are looked up in known, then in All.
func Parse(spec string, known ...Pass) (Pipeline, error) {
	byName := map[string]Pass{}
	for _, l := range [2][]Pass{All(), known} {
		for _, p := range l {
			byName[p.Name] = p
		}
	}
	var out Pipeline
	for _, name := range strings.Split(spec, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		p, ok := byName[name]
		if !ok {
			return nil, fmt.Errorf("no pass is called %q%s", name, suggest(name, byName))
		}
		out = append(out, p)
	}
	return out, nil
}

// suggest names a pass that is spelled almost so.
func suggest(name string, known map[string]Pass) string {
	best, least := "", min(4, 1+len(name)/2) // so few letters may be wrong that the name can still be told
	for k := range known {
		if d := distance(name, k); d < least || d == least && k < best {
			best, least = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; is %q meant?", best)
}

func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diag := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diag
			if a[i] != b[j] {
				cost++
			}
			diag = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// Run runs the passes on a root graph. The diagnostics of all of them are the error at the end; a fault of a pass or a
// hook ends the run at once.
func (p Pipeline) Run(ctx *Context, g *ir.Graph) error {
	for _, q := range p {
		ctx.pass, ctx.changes = q.Name, 0
		for _, h := range ctx.Hooks {
			if h.Before != nil {
				if err := h.Before(ctx, q, g); err != nil {
					return fmt.Errorf("before %s: %w", q.Name, err)
				}
			}
		}
		if err := q.Run(ctx, g); err != nil {
			if len(ctx.Diags) > 0 {
				return ctx.Diags // the pass went wrong over what they say
			}
			if _, ok := ir.AsDiags(err); ok {
				return err
			}
			return fmt.Errorf("pass %s: %w", q.Name, err)
		}
		for _, h := range ctx.Hooks {
			if h.After != nil {
				if err := h.After(ctx, q, g); err != nil {
					return fmt.Errorf("after %s: %w", q.Name, err)
				}
			}
		}
	}
	return ctx.Diags.Err()
}

// OrderFact says that one pass runs before another and why. It holds for pipelines that have both.
type OrderFact struct {
	First, Then string
	Why         string
}

// OrderError says that a pass cannot run because another has not: the pipeline is wrong, not the program.
type OrderError OrderFact

// Error tells what is to run first.
func (e *OrderError) Error() string { return e.Then + ": " + e.Why + ": run " + e.First + " before it" }

// CheckOrder gives the facts that a pipeline breaks.
func CheckOrder(p Pipeline, facts []OrderFact) []OrderFact {
	var broken []OrderFact
	for _, f := range facts {
		last := -1
		for i, q := range p {
			if q.Name == f.First {
				last = i
				break
			}
		}
		for i, q := range p {
			if q.Name == f.Then && i < last {
				broken = append(broken, f)
				break
			}
		}
	}
	return broken
}
