package passes

import (
	"fmt"
	"hash/fnv"
	"io"

	"github.com/lathe-ml/lathe/ir"
)

// Pass is one transformation of a graph.
type Pass struct {
	// Name is what a user types: remove-detach. The file is called after it.
	Name string
	// Doc says in a sentence what it does.
	Doc string
	// Lossy says why results may differ after it, in words for a report; empty for passes that keep them.
	Lossy string
	// Run transforms a root graph, its nested graphs included. An error is a bug or a broken input; what the user's program
	// asks for and cannot have is reported to the context, so that one run tells all of it.
	Run func(ctx *Context, g *ir.Graph) error
}

// Context is what passes share in one run.
type Context struct {
	// Target is the backend that the pipeline is for: portable, xnnpack, mlx, cuda.
	Target string
	// Legal tells why a node cannot go to the backend, nor run as a kernel, as it is; nil where it can. A Context without
	// asks TableLegal.
	Legal func(n *ir.Node) *ir.Diag
	// FoldLimit is the number of bytes up to which const-fold makes new constants of what could run, too; zero means
	// DefaultFoldLimit, a negative one that only what cannot run is folded.
	FoldLimit int64
	// Hooks are called around each pass.
	Hooks []Hook
	// Bisect switches single rewrites off; nil leaves all on.
	Bisect *Matcher
	// BisectOut is where the marks of a bisection are written.
	BisectOut io.Writer
	// Diags are the diagnostics of all passes so far.
	Diags ir.Diags
	// Notes are remarks for the user that do no harm.
	Notes []string
	// Quantized counts the layers whose weights became integers.
	Quantized int

	pass    string
	changes int
	sites   map[string]int
}

// Hook watches a pipeline. Its functions may be nil; an error of one ends the run.
type Hook struct {
	Before func(ctx *Context, p Pass, g *ir.Graph) error
	After  func(ctx *Context, p Pass, g *ir.Graph) error
}

// Report adds a diagnostic; the run goes on.
func (c *Context) Report(d *ir.Diag) {
	if d != nil {
		c.Diags = append(c.Diags, d)
	}
}

// Changes counts the rewrites that the pass at hand made.
func (c *Context) Changes() int { return c.changes }

// legal asks Legal, or the table.
func (c *Context) legal(n *ir.Node) *ir.Diag {
	if c.Legal != nil {
		return c.Legal(n)
	}
	return TableLegal(n)
}

// Allow is asked by a pass before each rewrite of a node by one of its rules; a bisection answers no for some.
func (c *Context) Allow(n *ir.Node, rule string) bool {
	if c.Bisect != nil {
		id := c.site(n, rule)
		on := c.Bisect.Enabled(id)
		if c.Bisect.Printed(id) && c.BisectOut != nil {
			fmt.Fprintf(c.BisectOut, "%s %s#%s %s %s\n", Marker(id), c.pass, rule, n.OpName(), n.Origin)
		}
		if !on {
			return false
		}
	}
	c.changes++
	return true
}

// site is the identity of a rewrite: pass, rule, operator and origin, and a count of those alike. It is the same in every
// run of the same program, whatever rewrites are off elsewhere, as far as possible.
func (c *Context) site(n *ir.Node, rule string) uint64 {
	key := fmt.Sprintf("%s#%s %s %s", c.pass, rule, n.OpName(), n.Origin)
	if n.Origin != nil {
		key += " " + n.Origin.Name
	}
	if c.sites == nil {
		c.sites = map[string]int{}
	}
	k := c.sites[key]
	c.sites[key]++
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d", key, k)
	x := h.Sum64()
	// The pattern looks at the low bits: spread all over them.
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	return x ^ x>>33
}

// Rewrite begins a rewrite of n by one of the pass's rules: a builder in front of n whose nodes get n's origin with the
// rule added. ok is false where a bisection switched the rewrite off.
func (c *Context) Rewrite(n *ir.Node, rule string) (b *ir.Builder, ok bool) {
	if !c.Allow(n, rule) {
		return nil, false
	}
	return ir.NewBuilder(n.Graph(), n, n.Origin.Derive(c.pass+"#"+rule)), true
}

// replace ends a rewrite: n's results become vs. An error of the builder is a bug of the rule.
func (c *Context) replace(b *ir.Builder, n *ir.Node, vs ...*ir.Value) error {
	if b.Err != nil {
		return fmt.Errorf("%s on %s at %s: %w", c.pass, n.OpName(), n.Origin, b.Err)
	}
	n.Graph().Replace(n, vs...)
	return nil
}

// each calls f for every node of g and its nested graphs, those of a node before the node.
func each(g *ir.Graph, f func(n *ir.Node) error) error {
	for n := range g.Nodes() {
		for _, h := range n.Graphs() {
			if err := each(h, f); err != nil {
				return err
			}
		}
		if err := f(n); err != nil {
			return err
		}
	}
	return nil
}
