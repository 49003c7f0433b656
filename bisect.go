package lathe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/passes"
)

// Rewrite is one rewrite of a pass.
type Rewrite struct {
	ID uint64 `json:"id"`
	// Text is pass#rule, operator and origin.
	Text string `json:"rewrite"`
}

// ErrNoFault is what Bisect returns where the program comes out right with every rewrite on.
var ErrNoFault = errors.New("every step agrees: there is nothing to bisect")

// Bisect finds a smallest set of rewrites that make the program give other outputs than it gave as imported, or that end
// the passes with a bug. With those on and all others off it fails; without one of them it does not.
func Bisect(ctx context.Context, o VerifyOptions) ([]Rewrite, error) {
	b := &bisection{ctx: ctx, o: o, texts: map[uint64]string{}}
	all, err := b.try("y")
	if err != nil {
		return nil, err
	}
	if all == "" {
		return nil, ErrNoFault
	}
	b.kind = all
	none, err := b.try("n")
	if err != nil {
		return nil, err
	}
	if none != "" {
		return nil, &ir.Diag{Code: "bisect", Msg: "it fails with every rewrite off, too: " + none, Entry: o.Compile.Inputs[0].Path, Try: "lathe verify names the step"}
	}
	ids, err := b.find(nil, "")
	if err != nil {
		return nil, err
	}
	var out []Rewrite
	for _, id := range ids {
		out = append(out, Rewrite{id, b.texts[id]})
	}
	return out, nil
}

type bisection struct {
	ctx   context.Context
	o     VerifyOptions
	kind  string // how the program fails with all rewrites on
	texts map[uint64]string
	last  []uint64 // the rewrites that the last try's pattern named
}

// find gives the rewrites with the suffix, in binary, that fail together with those of have.
func (b *bisection) find(have []string, suffix string) ([]uint64, error) {
	fails := func(more ...string) (bool, error) {
		p := strings.Join(append(append([]string{}, have...), more...), "+")
		kind, err := b.try(p)
		return kind == b.kind, err
	}
	name := suffix
	if name == "" {
		name = "y"
	}
	ok, err := fails(name)
	if err != nil {
		return nil, err
	}
	var in []uint64
	for _, id := range b.last {
		if strings.HasSuffix(fmt.Sprintf("%064b", id), suffix) {
			in = append(in, id)
		}
	}
	if !ok || len(in) == 0 || len(suffix) > 62 {
		return nil, errors.New("the fault comes and goes with rewrites that do not make it")
	}
	if len(in) == 1 {
		return in, nil
	}
	lo, hi := "0"+suffix, "1"+suffix
	for _, half := range []string{lo, hi} {
		if ok, err = fails(half); err != nil {
			return nil, err
		} else if ok {
			return b.find(have, half)
		}
	}
	// It takes some of both halves.
	right, err := b.find(append(have[:len(have):len(have)], lo), hi)
	if err != nil {
		return nil, err
	}
	for _, id := range right {
		have = append(have[:len(have):len(have)], fmt.Sprintf("x%016x", id))
	}
	left, err := b.find(have, lo)
	return append(left, right...), err
}

// try runs the passes with the rewrites that the pattern names and tells how that fails; empty where it does not.
func (b *bisection) try(pattern string) (string, error) {
	o := b.o
	m, err := passes.ParseMatcher(pattern)
	if err != nil {
		return "", err
	}
	var log bytes.Buffer
	o.Compile.Bisect, o.Compile.BisectOut = m, &log
	_, err = Verify(b.ctx, o)
	b.last = nil
	for _, l := range strings.Split(log.String(), "\n") {
		var id uint64
		if _, serr := fmt.Sscanf(l, "[bisect-match 0x%x]", &id); serr == nil {
			b.last = append(b.last, id)
			_, b.texts[id], _ = strings.Cut(l, "] ")
		}
	}
	if b.ctx.Err() != nil {
		return "", b.ctx.Err()
	}
	return faultKind(err), nil
}

// faultKind names a way to fail: a bug of a pass, or the code of a diagnostic.
func faultKind(err error) string {
	var bug *BugError
	if errors.As(err, &bug) {
		return "bug in " + bug.Pass
	}
	if ds, ok := ir.AsDiags(err); ok {
		return ds[0].Code
	}
	if err != nil {
		return "error"
	}
	return ""
}
