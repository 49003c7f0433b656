package lathe

import (
	"context"
	"fmt"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/passes"
)

// maxJudged is the size of weights up to which a program is evaluated after every pass while it is compiled: the reference
// engine takes its time.
const maxJudged = 256 << 20

// eachJudge evaluates a method while it is compiled, after every pass.
type eachJudge struct {
	v   *verifier
	on  string // which inputs
	why string // why it cannot; empty where it does
}

// judgeEach begins with the program as imported.
func judgeEach(ctx context.Context, g *ir.Graph, o Options) (*eachJudge, error) {
	j := &eachJudge{v: &verifier{o: VerifyOptions{Compile: o, Calls: o.VerifyCalls, Stateful: true, Seed: 1}}}
	size := int64(0)
	for _, in := range g.Inputs {
		if in.Data != nil {
			size += in.Data.Numel() * in.Data.DType.Size()
		}
	}
	if size > maxJudged {
		j.why = fmt.Sprintf("its weights take %d MB, more than the %d MB up to which that is done while compiling; lathe verify does it", size>>20, maxJudged>>20)
		return j, nil
	}
	j.on = "the given inputs"
	if j.v.o.Calls == nil && o.recorded != nil {
		if in := o.recorded(g); in != nil {
			j.on, j.v.o.Calls = "the inputs of the export", [][]Value{in}
		}
	}
	if j.v.o.Calls == nil {
		j.on = "random inputs"
		in, err := NewReference(g, 1).Random(1)
		if err != nil {
			j.why = "it takes inputs that cannot be made at random: " + err.Error()
			return j, nil
		}
		j.v.o.Calls = [][]Value{in}
	}
	err := guard("evaluation", func() error { return j.v.start(ctx, g) })
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		j.why = "the reference engine cannot run it as imported: " + err.Error()
	}
	return j, nil
}

// hook checks the graph after every pass; without evaluation where that cannot be.
func (j *eachJudge) hook(ctx context.Context) passes.Hook {
	if j.why != "" {
		return passes.VerifyHook()
	}
	return passes.Hook{After: func(_ *passes.Context, p passes.Pass, g *ir.Graph) error { return j.v.check(ctx, p, g) }}
}

// note says what came of it.
func (j *eachJudge) note() string {
	if j.why != "" {
		return "passes were held to the rules of the IR, but not evaluated: " + j.why
	}
	changed := 0
	var lossy string
	for _, s := range j.v.steps {
		if !s.Unchanged {
			changed++
		}
		if s.Lossy != "" {
			lossy += "; " + s.Name + " changes outputs as it may (" + s.Lossy + ")"
		}
	}
	return fmt.Sprintf("%d passes, %d of which changed something, gave the outputs of the program as imported on %s%s", len(j.v.steps), changed, j.on, lossy)
}
