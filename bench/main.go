// Command bench times compiles from process start to file written, and prints a markdown table. It is `make bench`.
//
//	go run ./bench [-n RUNS] [-backends LIST] [ARCHIVE …]
//	go run ./bench -growth [-only KIND] [-scale FACTOR] [-n RUNS] [-backends LIST]
//
// Without an archive it takes the bundled language model; tools/fixtures/big_qwen3.py makes one of 1.2 GB. For each it also
// times a copy of the archive, the bound that a compile of a large model is held to, and reports the peak of the memory
// that is the process's own, without the pages of mapped files. With -growth it compiles made-up programs that are large in
// one way each, at two sizes, and prints how the time grows with the size; -only and -scale take one kind, and other sizes.
package main

import (
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
	flag.Parse()
	archives := flag.Args()
	if len(archives) == 0 {
		archives = []string{filepath.Join("testdata", "llama", "model.pt2")}
	}
	err := build(func(bin, dir string) error {
		if *grow {
			return growth(bin, dir, *n, strings.Split(*backends, ","), *only, *scale)
		}
		return run(bin, dir, *n, strings.Split(*backends, ","), archives)
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

func run(bin, dir string, n int, backends, archives []string) error {
	fmt.Println("| archive | MB | what | median | fastest | own memory at peak |")
	fmt.Println("|---|---|---|---|---|---|")
	for _, a := range archives {
		st, err := os.Stat(a)
		if err != nil {
			return err
		}
		row := func(what string, once func() (time.Duration, int64, error)) error {
			var times []time.Duration
			var peak int64
			for range n {
				d, m, err := once()
				if err != nil {
					return fmt.Errorf("%s of %s: %w", what, a, err)
				}
				times, peak = append(times, d), max(peak, m)
			}
			slices.Sort(times)
			memory := "–"
			if peak > 0 {
				memory = fmt.Sprintf("%d MB", peak>>20)
			}
			fmt.Printf("| %s | %.1f | %s | %.0f ms | %.0f ms | %s |\n", filepath.Base(a), float64(st.Size())/1e6, what, ms(times[len(times)/2]), ms(times[0]), memory)
			return nil
		}
		out := filepath.Join(dir, "out")
		if err := row("copy", func() (time.Duration, int64, error) { return copyFile(a, out) }); err != nil {
			return err
		}
		for _, b := range backends {
			err := row("compile for "+b, func() (time.Duration, int64, error) {
				os.Remove(out + ".pte") //nolint:errcheck // it may not be there
				return timed(exec.Command(bin, "compile", a, "--backend", b, "-o", out+".pte"))
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
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
