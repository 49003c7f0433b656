// Command bench times compiles from process start to file written, and prints a markdown table. It is `make bench`.
//
//	go run ./bench [-n RUNS] [-backends LIST] [ARCHIVE …]
//	go run ./bench -growth [-only KIND] [-scale FACTOR] [-n RUNS] [-backends LIST]
//
// Without an archive it takes the bundled language model; tools/fixtures/big_models.py makes one of 1.2 GB, to be named with
// -big. For each it also times a copy of the archive, by which the bar for large models goes, and reports the peak of the
// memory that is the process's own, without the pages of mapped files. LATHE_OFFICIAL_PYTHON is a Python in which the
// official pipeline is installed: it then compiles the same archives in the same run, once each. With -growth it compiles
// made-up programs that are large in one way each, at two sizes, and prints how the time grows with the size; -only and
// -scale take one kind, and other sizes.
package main

import (
	_ "embed"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("bench: ")
	n := flag.Int("n", 5, "runs of each")
	backends := flag.String("backends", "portable,xnnpack,mlx", "backends to compile for")
	grow := flag.Bool("growth", false, "compile made-up programs at two sizes")
	only := flag.String("only", "", "the only kind of made-up programs")
	scale := flag.Float64("scale", 1, "size of made-up programs in proportion to the usual one")
	big := flag.String("big", "", "an archive of 1.2 GB, made with LATHE_OFFICIAL_PYTHON where it is not there")
	flag.Parse()
	archives := flag.Args()
	if len(archives) == 0 {
		archives = []string{filepath.Join("testdata", "llama", "model.pt2")}
	}
	err := build(func(bin, dir string) error {
		if *grow {
			return growth(bin, dir, *n, strings.Split(*backends, ","), *only, *scale)
		}
		b := &bench{bin: bin, dir: dir, n: *n, python: os.Getenv("LATHE_OFFICIAL_PYTHON")}
		if *big != "" {
			if err := b.makeBig(*big); err != nil {
				return err
			}
			archives = append(archives, *big)
		}
		return b.run(strings.Split(*backends, ","), archives)
	})
	if err != nil {
		log.Fatal(err)
	}
}

// build makes the command in a folder that goes away after use.
func build(use func(bin, dir string) error) error {
	dir, err := os.MkdirTemp("", "lathe-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // nothing to be done about it
	bin := filepath.Join(dir, "lathe")
	cmd := exec.Command("go", "build", "-o", bin, "./cmd/lathe")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("building: %w", err)
	}
	return use(bin, dir)
}

// bench compiles archives.
type bench struct {
	bin, dir string
	n        int
	python   string // with the official pipeline; empty without
}

// makeBig makes the large archive where it is not there.
func (b *bench) makeBig(path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if b.python == "" {
		return fmt.Errorf("%s is not there; tools/fixtures/big_models.py makes it, LATHE_OFFICIAL_PYTHON says with which Python", path)
	}
	cmd := exec.Command(b.python, filepath.Join("tools", "fixtures", "big_models.py"), "qwen3-0.6b", path)
	if msg, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("making %s: %w\n%s", path, err, msg)
	}
	return nil
}

// The bars. A small archive compiles in smallTime; a larger one in copies times what its copy takes, and slack more; both
// within ownMemory beyond the cache of files.
const (
	smallArchive = 10 << 20
	smallTime    = 50 * time.Millisecond
	copies       = 1.5
	slack        = 500 * time.Millisecond
	ownMemory    = 300 << 20
)

// result is what the runs of one command took.
type result struct {
	times []time.Duration // sorted
	own   int64           // memory that belongs to no file, at its peak; zero where the system does not tell
}

func (r result) median() time.Duration { return r.times[len(r.times)/2] }

func repeat(n int, once func() (time.Duration, int64, error)) (r result, err error) {
	for range n {
		d, m, err := once()
		if err != nil {
			return r, err
		}
		r.times, r.own = append(r.times, d), max(r.own, m)
	}
	slices.Sort(r.times)
	return r, nil
}

func (b *bench) run(backends, archives []string) error {
	if b.python == "" {
		fmt.Println("The official pipeline is skipped: LATHE_OFFICIAL_PYTHON names no Python that has it.")
		fmt.Println()
	}
	fmt.Println("| archive | MB | what | median | fastest | bar | own memory at peak | official | its own memory at peak |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|")
	missed := 0
	for _, a := range archives {
		st, err := os.Stat(a)
		if err != nil {
			return err
		}
		out := filepath.Join(b.dir, "out")
		copied, err := repeat(b.n, func() (time.Duration, int64, error) { return copyFile(a, out) })
		if err != nil {
			return fmt.Errorf("copy of %s: %w", a, err)
		}
		os.Remove(out) //nolint:errcheck // it takes room, no more
		row := func(what string, r result, bar, official, memory string) {
			fmt.Printf("| %s | %.1f | %s | %.0f ms | %.0f ms | %s | %s | %s | %s |\n", filepath.Base(a), float64(st.Size())/1e6, what, ms(r.median()),
				ms(r.times[0]), bar, megabytes(r.own), official, memory)
		}
		row("copy", copied, "–", "–", "–")
		for _, backend := range backends {
			r, err := repeat(b.n, func() (time.Duration, int64, error) {
				os.Remove(out + ".pte") //nolint:errcheck // it may not be there
				return timed(exec.Command(b.bin, "compile", a, "--backend", backend, "-o", out+".pte"))
			})
			if err != nil {
				return fmt.Errorf("compile of %s for %s: %w", a, backend, err)
			}
			limit := smallTime
			if st.Size() > smallArchive {
				limit = time.Duration(copies*float64(copied.median())) + slack
			}
			bar := fmt.Sprintf("%.0f ms, met", ms(limit))
			if r.median() > limit || r.own > ownMemory {
				bar = fmt.Sprintf("%.0f ms, MISSED", ms(limit))
				missed++
			}
			official, memory := b.official(a, backend, out+".pte")
			row("compile for "+backend, r, bar, official, memory)
		}
	}
	fmt.Printf("\nThe bar: %v for archives up to %d MB, %g × the copy + %v for larger ones; %d MB of own memory. Missed: %d.\n", smallTime, smallArchive>>20, copies, slack, ownMemory>>20, missed)
	return nil
}

//go:embed official.py
var officialScript string

// official times the official pipeline once.
func (b *bench) official(archive, backend, out string) (took, memory string) {
	if b.python == "" {
		return "–", "–"
	}
	defer os.Remove(out) //nolint:errcheck // it takes room, no more
	d, own, err := timed(exec.Command(b.python, "-c", officialScript, archive, backend, out))
	if err != nil {
		lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
		log.Printf("the official pipeline on %s for %s: %s", archive, backend, lines[len(lines)-1])
		return "fails", "–"
	}
	return fmt.Sprintf("%.1f s", d.Seconds()), megabytes(own)
}

func megabytes(n int64) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprintf("%d MB", n>>20)
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func copyFile(from, to string) (time.Duration, int64, error) {
	os.Remove(to) //nolint:errcheck // it may not be there
	start := time.Now()
	src, err := os.Open(from)
	if err != nil {
		return 0, 0, err
	}
	defer src.Close() //nolint:errcheck // only read
	dst, err := os.Create(to)
	if err != nil {
		return 0, 0, err
	}
	if _, err := io.Copy(dst, src); err != nil {
		return 0, 0, err
	}
	err = dst.Close()
	return time.Since(start), 0, err
}

// timed runs a command and samples its anonymous memory, which mapped weights do not count in.
func timed(cmd *exec.Cmd) (time.Duration, int64, error) {
	var msg strings.Builder
	cmd.Stderr = &msg
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	done := make(chan struct{})
	peak := make(chan int64)
	go func() {
		var m int64
		for {
			m = max(m, anonymous(cmd.Process.Pid))
			select {
			case <-done:
				peak <- m
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	err := cmd.Wait()
	d := time.Since(start)
	close(done)
	m := <-peak
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, msg.String())
	}
	return d, m, err
}

// anonymous is the resident memory of a process that belongs to no file, zero where the system does not tell.
func anonymous(pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		var kb int64
		if _, err := fmt.Sscanf(line, "RssAnon: %d kB", &kb); err == nil {
			return kb << 10
		}
	}
	return 0
}
