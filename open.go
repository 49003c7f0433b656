package lathe

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/lathe-ml/lathe/codegen/pte"
	"github.com/lathe-ml/lathe/interp"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ir/text"
	"github.com/lathe-ml/lathe/ir/verify"
	"github.com/lathe-ml/lathe/pt2"
)

// Format tells files apart.
type Format string

// The formats that Lathe reads.
const (
	FormatPT2 Format = "pt2" // an archive of torch.export.save
	FormatIR  Format = "ir"  // a program as IR text
	FormatPTE Format = "pte" // an ExecuTorch program
	FormatPTD Format = "ptd" // an ExecuTorch data file
)

// Sniff tells a file's format by its first bytes, and by its name where those say nothing.
func Sniff(path string) (Format, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", &ir.Diag{Code: "no-file", Msg: err.Error(), Entry: path, Try: "check the path"}
	}
	defer f.Close()
	head := make([]byte, 4096)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", &ir.Diag{Code: "no-file", Msg: err.Error(), Entry: path, Try: "check that the file is readable"}
	}
	head = head[:n]
	switch {
	case pte.IsProgram(head):
		return FormatPTE, nil
	case pte.IsData(head):
		return FormatPTD, nil
	case bytes.HasPrefix(head, []byte("PK")):
		return FormatPT2, nil
	}
	switch ext := filepath.Ext(path); ext {
	case ".pt2", ".pte", ".ptd", ".ir":
		return Format(ext[1:]), nil
	}
	if bytes.Contains(head, []byte("graph @")) {
		return FormatIR, nil
	}
	return "", &ir.Diag{
		Code: "unknown-format", Msg: "neither a .pt2 archive, IR text nor a .pte program", Entry: path,
		Try: "give a file that torch.export.save or lathe wrote",
	}
}

// Model is an opened program. Its weights may lie in the file it came from: Close comes after their last use.
type Model struct {
	*ir.Program
	Path   string
	Format Format
	// Notes are remarks on the file that do no harm.
	Notes   []string
	archive *pt2.Archive // nil for text
	close   func()
}

// Recorded gives the inputs with which a program of the archive was exported, where it holds them and they are within the
// sizes of the program; nil elsewhere.
func (m *Model) Recorded(g *ir.Graph) []Value {
	if m.archive == nil {
		return nil
	}
	samples, err := m.archive.SampleInputs(g)
	if err != nil {
		return nil // random ones do as well
	}
	var out []Value
	for i, s := range modelSlots(g) {
		v := samples[i]
		if v.Tensor == nil {
			out = append(out, argValue(v.Value))
			continue
		}
		p, err := v.Tensor.Compact()
		if err != nil {
			return nil
		}
		x, err := interp.FromBytes(v.Tensor.DType, v.Tensor.Sizes, bytes.Clone(p))
		if err != nil {
			return nil
		}
		for d, e := range s.typ.Shape {
			if !g.Syms.Range(e).Contains(x.Sizes[d]) {
				return nil // --dim asks for other sizes
			}
		}
		out = append(out, s.layOut(x))
	}
	return out
}

// Open reads a program from an archive or from IR text. Errors about the contents are ir.Diags, all there are.
func Open(path string) (*Model, error) {
	f, err := Sniff(path)
	if err != nil {
		return nil, err
	}
	m := &Model{Path: path, Format: f}
	switch f {
	case FormatPT2:
		a, err := pt2.Open(path)
		if err != nil {
			return nil, err
		}
		m.archive, m.close = a, func() { a.Close() } // it was only read
		if m.Program, err = a.Load(); err != nil {
			m.Close()
			return nil, err
		}
		m.Notes = a.Notes()
	case FormatIR:
		src, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if m.Program, err = text.ParseProgram(string(src), text.Options{}); err != nil {
			return nil, textDiag(path, err)
		}
		if err := checkText(path, m.Program); err != nil {
			return nil, err
		}
	default:
		return nil, notModel(path, f)
	}
	if len(m.Methods) == 0 {
		m.Close()
		return nil, &ir.Diag{Code: "bad-archive", Msg: "no program in it", Entry: path, Try: "export the model again"}
	}
	return m, nil
}

func notModel(path string, f Format) error {
	return &ir.Diag{
		Code: "wrong-format", Msg: fmt.Sprintf("a .%s file is no model to compile", f), Entry: path,
		Try: "give the .pt2 archive that it was made from",
	}
}

// checkText holds a program that somebody wrote against the rules of its stage: passes rely on them.
func checkText(path string, p *ir.Program) error {
	var all ir.Diags
	for _, g := range p.Methods {
		for _, d := range verify.Graph(g) {
			d.Code, d.Try = "bad-text", "mend the text"
			if d.Entry == "" {
				d.Entry = path
			}
			all = append(all, d)
		}
	}
	return all.Err()
}

// textDiag makes a diagnostic of a fault of IR text.
func textDiag(path string, err error) error {
	var e *text.Error
	if !errors.As(err, &e) {
		return err
	}
	return &ir.Diag{Code: "bad-text", Msg: e.Msg, Entry: fmt.Sprintf("%s:%d:%d", path, e.Line, e.Col), Try: "mend the text"}
}

// Close gives the file back.
func (m *Model) Close() {
	if m.close != nil {
		m.close()
	}
}

// clone copies a root graph by way of its text; contents of weights are shared.
func clone(g *ir.Graph) (*ir.Graph, error) {
	data := map[string]*ir.Data{}
	for _, in := range g.Inputs {
		if in.Data != nil {
			data[in.Target] = in.Data
		}
	}
	return text.Parse(text.String(g), text.Options{Data: func(name string) *ir.Data { return data[name] }})
}
