package main

import (
	"os"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"
)

// progress shows on a terminal how far a compile is; elsewhere nothing.
type progress struct {
	p     *mpb.Progress
	bar   *mpb.Bar
	stage string
}

// minShown is the number of bytes from which writing is worth a bar.
const minShown = 64 << 20

func (e *env) progress() *progress {
	f, ok := e.stderr.(*os.File)
	if !ok || e.JSON || !term.IsTerminal(int(f.Fd())) {
		return &progress{}
	}
	return &progress{p: mpb.New(mpb.WithOutput(f), mpb.WithWidth(60))}
}

func (p *progress) update(stage string, done, total int64) {
	if p.p == nil {
		return
	}
	p.stage = stage
	if p.bar == nil {
		if total > 0 && total < minShown {
			return
		}
		p.bar = p.p.New(0, mpb.BarStyle(),
			mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return p.stage }, decor.WC{W: 24, C: decor.DindentRight})),
			mpb.AppendDecorators(decor.CountersKibiByte("% .1f / % .1f")))
	}
	if total > 0 {
		p.bar.SetTotal(total, false)
		p.bar.SetCurrent(done)
	}
}

// close takes the bar away.
func (p *progress) close() {
	if p.p == nil {
		return
	}
	if p.bar != nil {
		p.bar.Abort(true)
	}
	p.p.Wait()
}
