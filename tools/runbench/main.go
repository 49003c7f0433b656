// Command runbench compares the run time of Lathe's XNNPACK programs with that of programs which the official pipeline
// made of the same models: same runtime, same inputs, the two taking turns, with 1 and 2 threads. A line a model with the size
// of the files and of the planned memory, and one for the sum of each kind: language (token ids go in), vision (images do)
// and audio.
//
// Cases are those with a file official_xnnpack.pte: some handed ones, small, and those of real size that
// tools/fixtures/run_models.py writes, for LATHE_CASES.
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/lathe-ml/lathe"
	"github.com/lathe-ml/lathe/internal/etrt"
	"github.com/lathe-ml/lathe/tools/oracle/cases"
)

const official = "official_xnnpack.pte"

func main() {
	archives := flag.String("archives", os.Getenv("LATHE_CASE_ARCHIVES"), "folder with index.tsv and unpack")
	only := flag.String("only", "", "cases whose name begins so")
	turns := flag.Int("turns", 15, "how often the two take turns")
	rounds := flag.Int("rounds", 20, "runs in a turn")
	flag.Parse()
	if err := run(context.Background(), *archives, *only, *turns, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "runbench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, archives, only string, turns, rounds int) error {
	root, err := cases.Dir(archives)
	if err != nil {
		return err
	}
	names, err := cases.Find(root)
	if err != nil {
		return err
	}
	rt, err := etrt.Open()
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "runbench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // nothing to be done about it
	tw := tabwriter.NewWriter(os.Stdout, 2, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "case\tthreads\tlathe µs\tofficial µs\tratio\tbytes\tofficial\tplanned\tofficial")
	sums := map[string]*[2][2]float64{}
	for _, name := range names {
		dir := filepath.Join(root, name)
		if _, err := os.Stat(filepath.Join(dir, official)); err != nil || !strings.HasPrefix(name, only) {
			continue
		}
		out := filepath.Join(tmp, "lathe.pte")
		if _, err := lathe.Compile(ctx, lathe.Options{Inputs: []lathe.Input{{Path: filepath.Join(dir, "model.pt2")}}, Output: out, Backend: "xnnpack"}); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		cs, err := cases.Load(dir)
		if err != nil {
			return err
		}
		for i, threads := range []int{1, 2} {
			a, b, err := compare(ctx, rt, cs, [2]string{out, filepath.Join(dir, official)}, threads, turns, rounds)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			for _, k := range []string{kind(cs), "all"} {
				if sums[k] == nil {
					sums[k] = &[2][2]float64{}
				}
				sums[k][i][0] += a.us
				sums[k][i][1] += b.us
			}
			fmt.Fprintf(tw, "%s\t%d\t%.1f\t%.1f\t%.2f\t%d\t%d\t%d\t%d\n", name, threads, a.us, b.us, a.us/b.us, a.bytes, b.bytes, a.planned, b.planned)
		}
		cs.Close() //nolint:errcheck // only read
	}
	for _, k := range []string{"language", "vision", "audio", "all"} {
		if sums[k] == nil {
			continue
		}
		for i, s := range sums[k] {
			fmt.Fprintf(tw, "%s\t%d\t%.1f\t%.1f\t%.2f\n", k, i+1, s[0], s[1], s[0]/s[1])
		}
	}
	return tw.Flush()
}

type figures struct {
	us             float64 // the least median of a turn
	bytes, planned int64
}

// compare lets two programs take turns over the first call of a case.
func compare(ctx context.Context, rt *etrt.Runtime, cs *cases.Case, paths [2]string, threads, turns, rounds int) (a, b figures, err error) {
	fs := [2]*figures{&a, &b}
	var ps [2]*etrt.Program
	for i, path := range paths {
		st, err := os.Stat(path)
		if err != nil {
			return a, b, err
		}
		if ps[i], err = rt.Load(ctx, path, etrt.WithThreads(threads)); err != nil {
			return a, b, err
		}
		defer ps[i].Close()
		ms, err := ps[i].Methods()
		if err != nil {
			return a, b, err
		}
		fs[i].bytes, fs[i].us = st.Size(), math.Inf(1)
		for _, n := range ms[0].Arenas {
			fs[i].planned += n
		}
	}
	inputs := cs.Calls[0].In
	for turn := range turns {
		for k := range ps {
			i := (k + turn) % 2
			ds, err := ps[i].Bench(cs.Method, inputs, rounds/4, rounds)
			if err != nil {
				return a, b, err
			}
			slices.Sort(ds)
			fs[i].us = min(fs[i].us, float64(ds[len(ds)/2])/float64(time.Microsecond))
		}
	}
	return a, b, nil
}

// kind is what a model is for, by what goes in.
func kind(cs *cases.Case) string {
	kind := "audio"
	for _, v := range cs.Calls[0].In {
		switch {
		case v.Tensor == nil:
		case v.Tensor.DType == etrt.I64:
			return "language"
		case len(v.Tensor.Shape) == 4:
			kind = "vision"
		}
	}
	return kind
}
