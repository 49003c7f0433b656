// Command testrun runs `go test` on the packages it is given and prints what that prints, then says plainly which tests
// were skipped and why. With -strict a skipped test is a failure, unless its reason matches -allow.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

func main() {
	strict := flag.Bool("strict", false, "fail where a test is skipped")
	allow := flag.String("allow", "^$", "reasons for which a test may be skipped even so")
	flag.Parse()
	re, err := regexp.Compile(*allow)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		os.Exit(2)
	}
	ok, err := run(flag.Args(), *strict, re)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func run(args []string, strict bool, allow *regexp.Regexp) (ok bool, err error) {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	skips, err := report(out, os.Stdout)
	ok = cmd.Wait() == nil && err == nil
	for _, s := range skips {
		if strict && !allow.MatchString(s.why) {
			fmt.Printf("FAIL: skipped: %s: %s\n", s.why, strings.Join(s.tests, ", "))
			ok = false
			continue
		}
		fmt.Printf("skipped: %s: %s\n", s.why, strings.Join(s.tests, ", "))
	}
	return ok, err
}

// event is a line of test2json.
type event struct {
	Action, Package, Test, Output string
}

// skip is a reason and the tests it holds for.
type skip struct {
	why   string
	tests []string
}

// report prints what go test prints without -v: the packages' lines, and the output of tests that fail.
func report(r io.Reader, w io.Writer) ([]skip, error) {
	held := map[[2]string][]string{}
	var skips []skip
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<24)
	for in.Scan() {
		var e event
		if json.Unmarshal(in.Bytes(), &e) != nil {
			fmt.Fprintln(w, in.Text()) // of the build
			continue
		}
		key := [2]string{e.Package, e.Test}
		switch e.Action {
		case "output", "build-output":
			switch {
			case e.Test != "":
				held[key] = append(held[key], e.Output)
			case e.Output != "PASS\n":
				fmt.Fprint(w, e.Output)
			}
		case "pass":
			delete(held, key)
		case "skip":
			if e.Test == "" {
				continue // a package without tests
			}
			skips = addSkip(skips, e, held[key])
			delete(held, key)
		case "fail":
			for _, l := range held[key] {
				if !strings.HasPrefix(l, "=== ") {
					fmt.Fprint(w, l)
				}
			}
			delete(held, key)
		}
	}
	return skips, in.Err()
}

var place = regexp.MustCompile(`^\s*\S+\.go:\d+: `)

func addSkip(skips []skip, e event, lines []string) []skip {
	why := "no reason given"
	for _, l := range lines {
		if loc := place.FindStringIndex(l); loc != nil {
			why = strings.TrimSpace(l[loc[1]:])
		}
	}
	name := e.Package[strings.LastIndexByte(e.Package, '/')+1:] + "." + e.Test
	i := slices.IndexFunc(skips, func(s skip) bool { return s.why == why })
	if i < 0 {
		return append(skips, skip{why, []string{name}})
	}
	skips[i].tests = append(skips[i].tests, name)
	return skips
}
