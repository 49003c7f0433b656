package lathe

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/text"
)

// Diff compares two files of any format, as text without origins, and gives a unified diff; empty where they say the
// same. Of programs with contents it also tells which weights differ.
func Diff(a, b string) (string, error) {
	ta, wa, err := diffText(a)
	if err != nil {
		return "", err
	}
	tb, wb, err := diffText(b)
	if err != nil {
		return "", err
	}
	out := string(diff.Diff(a, ta, b, tb))
	names := slices.Concat(sortedKeys(wa), sortedKeys(wb))
	slices.Sort(names)
	for _, n := range slices.Compact(names) {
		x, inA := wa[n]
		y, inB := wb[n]
		switch {
		case inA && inB && x != y:
			out += fmt.Sprintf("weight %q has other contents\n", n)
		case inA != inB && len(wa) > 0 && len(wb) > 0:
			out += fmt.Sprintf("weight %q is in one only\n", n)
		}
	}
	return out, nil
}

// diffText is a file as text, and the fingerprints of its weights.
func diffText(path string) ([]byte, map[string]uint64, error) {
	f, err := Sniff(path)
	if err != nil {
		return nil, nil, err
	}
	var b bytes.Buffer
	if f == FormatPTE {
		info, err := InspectProgram(path)
		if err != nil {
			return nil, nil, err
		}
		if err := info.WriteText(&b); err != nil {
			return nil, nil, err
		}
		_, rest, _ := bytes.Cut(b.Bytes(), []byte("\n")) // the first line names the file
		return rest, nil, nil
	}
	m, err := Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer m.Close()
	sums := map[string]uint64{}
	for _, g := range m.Methods {
		for _, in := range g.Inputs {
			if in.Data == nil {
				continue
			}
			w, err := in.Data.Compact()
			if err != nil {
				return nil, nil, err
			}
			sums[in.Target] = fingerprint(w)
		}
		g.Walk(func(h *ir.Graph) {
			for n := range h.Nodes() {
				n.Origin = nil
			}
		})
		g.Entry = ""
	}
	if err := text.PrintProgram(&b, m.Program); err != nil {
		return nil, nil, err
	}
	return b.Bytes(), sums, nil
}

func fingerprint(b []byte) uint64 { return maphash.Bytes(seed, b) }

var seed = maphash.MakeSeed()
