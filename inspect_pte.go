package lathe

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/lathe-ml/lathe/codegen/fb"
	"github.com/lathe-ml/lathe/codegen/mlxpayload"
	"github.com/lathe-ml/lathe/codegen/pte"
	"github.com/lathe-ml/lathe/codegen/xnnpayload"
	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/lower/program"
)

// ProgramInfo describes an ExecuTorch program.
type ProgramInfo struct {
	File      string          `json:"file"`
	Format    Format          `json:"format"`
	Bytes     int64           `json:"bytes"`
	Version   uint32          `json:"version"`
	Plans     []PlanInfo      `json:"plans"`
	Constants []BlobInfo      `json:"constants"`
	Initial   []BlobInfo      `json:"initial_values"`
	Named     []NamedBlobInfo `json:"named_data"`
}

// PlanInfo describes one method of a program.
type PlanInfo struct {
	Name    string      `json:"name"`
	Inputs  []ValueInfo `json:"inputs"`
	Outputs []ValueInfo `json:"outputs"`
	// Values are all values by index, in the words of the instructions.
	Values       []string       `json:"values"`
	Instructions []string       `json:"instructions"`
	Kernels      []OpCount      `json:"kernels"`
	Delegates    []DelegateInfo `json:"delegates"`
	// Planned are the bytes of each memory area.
	Planned []int64 `json:"planned_bytes"`
}

// DelegateInfo is one lowered region.
type DelegateInfo struct {
	ID    string `json:"id"`
	Bytes int64  `json:"bytes"`
	// Specs are the options that the backend gets with its payload, values quoted as Go strings.
	Specs map[string]string `json:"specs,omitempty"`
	// Payload is the payload's contents, where Lathe can read them.
	Payload json.RawMessage `json:"payload,omitempty"`
	Fault   string          `json:"fault,omitempty"`

	text string
}

// BlobInfo is data in the file.
type BlobInfo struct {
	Index int   `json:"index"`
	Bytes int64 `json:"bytes"`
}

// NamedBlobInfo is data that is found by key.
type NamedBlobInfo struct {
	Key   string `json:"key"`
	Bytes int64  `json:"bytes"`
}

// InspectProgram describes the .pte file at path. Errors about its contents are *ir.Diag.
func InspectProgram(path string) (info *ProgramInfo, err error) {
	f, err := pte.Open(path)
	if err != nil {
		return nil, programDiag(path, err)
	}
	defer f.Close()
	info = &ProgramInfo{File: path, Format: FormatPTE, Version: f.Version}
	if st, err := os.Stat(path); err == nil {
		info.Bytes = st.Size()
	}
	info.Constants, info.Initial = blobs(f.Constants), blobs(f.Initial)
	for _, n := range f.Named {
		info.Named = append(info.Named, NamedBlobInfo{n.Key, n.Data.Size()})
	}
	for _, p := range f.Plans {
		info.Plans = append(info.Plans, planInfo(p))
	}
	return info, nil
}

func programDiag(path string, err error) error {
	if _, ok := ir.AsDiags(err); ok {
		return err
	}
	return &ir.Diag{Code: "bad-program", Msg: err.Error(), Entry: path, Try: "compile the program again"}
}

// blobs leaves out what is reserved for "no data".
func blobs(bs []pte.Blob) []BlobInfo {
	var out []BlobInfo
	for i, b := range bs {
		if b != nil {
			out = append(out, BlobInfo{i, b.Size()})
		}
	}
	return out
}

func planInfo(p *pte.Plan) PlanInfo {
	info := PlanInfo{Name: p.Name}
	if len(p.BufferSizes) > 1 {
		info.Planned = p.BufferSizes[1:]
	}
	for _, v := range p.Values {
		info.Values = append(info.Values, pteValueText(v))
	}
	for _, i := range p.Inputs {
		info.Inputs = append(info.Inputs, pteValueInfo(p, i))
	}
	for _, i := range p.Outputs {
		info.Outputs = append(info.Outputs, pteValueInfo(p, i))
	}
	counts := map[string]int{}
	for _, c := range p.Chains {
		for _, in := range c.Instructions {
			text := instructionText(p, in)
			info.Instructions = append(info.Instructions, text)
			if k, ok := in.(pte.KernelCall); ok {
				counts[operatorName(p.Operators[k.Op])]++
			}
		}
	}
	for name, n := range counts {
		info.Kernels = append(info.Kernels, OpCount{Op: name, Count: n, Known: true})
	}
	sortCounts(info.Kernels)
	for _, d := range p.Delegates {
		info.Delegates = append(info.Delegates, delegateInfo(d))
	}
	return info
}

func operatorName(o pte.Operator) string {
	if o.Overload == "" {
		return o.Name
	}
	return o.Name + "." + o.Overload
}

func delegateInfo(d *pte.Delegate) DelegateInfo {
	info := DelegateInfo{ID: d.ID, Bytes: d.Payload.Size()}
	for _, s := range d.Specs {
		if info.Specs == nil {
			info.Specs = map[string]string{}
		}
		info.Specs[s.Key] = strconv.Quote(string(s.Value))
	}
	table, err := payloadTable(d)
	switch {
	case err != nil:
		info.Fault = err.Error()
	case table != nil:
		info.Payload = fb.AppendJSON(nil, table)
		info.text = string(fb.AppendText(nil, table))
	}
	return info
}

// payloadTable reads a delegate's payload; nil for backends whose format is not known.
func payloadTable(d *pte.Delegate) (any, error) {
	var read func([]byte) (any, error)
	switch d.ID {
	case "MLXBackend":
		read = func(b []byte) (any, error) {
			p, err := mlxpayload.Unmarshal(b)
			if err != nil {
				return nil, err
			}
			return p.Graph, nil
		}
	case "XnnpackBackend":
		read = func(b []byte) (any, error) {
			p, err := xnnpayload.Unmarshal(b)
			if err != nil {
				return nil, err
			}
			return p.Graph, nil
		}
	default:
		return nil, nil
	}
	b, err := blobBytes(d.Payload)
	if err != nil {
		return nil, err
	}
	return read(b)
}

func blobBytes(b pte.Blob) ([]byte, error) {
	if m, ok := b.(pte.Mapped); ok {
		return m.Bytes(), nil
	}
	var buf strings.Builder
	if _, err := b.WriteTo(&buf); err != nil {
		return nil, err
	}
	return []byte(buf.String()), nil
}

func pteValueInfo(p *pte.Plan, i int32) ValueInfo {
	info := ValueInfo{Name: fmt.Sprintf("%%%d", i)}
	switch v := p.Values[i].(type) {
	case *pte.Tensor:
		info.Kind, info.DType = "tensor", torchName(v.Type)
		for _, s := range v.Sizes {
			text := strconv.Itoa(int(s))
			if v.Dynamism == pte.DynamicBound {
				text = "<=" + text
			}
			info.Shape = append(info.Shape, text)
		}
		info.Layout = dimOrderText(v.DimOrder)
	case pte.Null:
		info.Kind = "none"
	case pte.Int:
		info.Kind, info.Fixed = "int", fmt.Sprint(int64(v))
	case pte.Double:
		info.Kind, info.Fixed = "float", fmt.Sprint(float64(v))
	case pte.Bool:
		info.Kind, info.Fixed = "bool", fmt.Sprint(bool(v))
	case pte.String:
		info.Kind, info.Fixed = "str", strconv.Quote(string(v))
	default:
		info.Kind = "list"
	}
	return info
}

func torchName(t pte.ScalarType) string {
	if d, ok := program.DType(t); ok {
		return d.Torch()
	}
	return t.String()
}

func dimOrderText(order []uint8) string {
	plain := true
	for i, d := range order {
		plain = plain && int(d) == i
	}
	switch {
	case plain:
		return "contiguous"
	case slices.Equal(order, []uint8{0, 2, 3, 1}), slices.Equal(order, []uint8{0, 2, 3, 4, 1}):
		return "channels-last"
	}
	return "dims " + joinInts(order, ",")
}

func pteValueText(v pte.Value) string {
	switch v := v.(type) {
	case *pte.Tensor:
		var b strings.Builder
		b.WriteString(torchName(v.Type) + "[")
		for i, s := range v.Sizes {
			if i > 0 {
				b.WriteString(", ")
			}
			if v.Dynamism == pte.DynamicBound {
				b.WriteString("<=")
			}
			b.WriteString(strconv.Itoa(int(s)))
		}
		b.WriteString("]")
		if l := dimOrderText(v.DimOrder); l != "contiguous" {
			b.WriteString(" " + l)
		}
		switch {
		case v.Extra != nil && v.Extra.Location == pte.External:
			fmt.Fprintf(&b, " external %q", v.Extra.Name)
		case v.Alloc != nil:
			fmt.Fprintf(&b, " at %d:%d", v.Alloc.Memory, v.Alloc.Offset)
			if v.Data != 0 {
				fmt.Fprintf(&b, " initial %d", v.Data)
			}
		case v.Data != 0:
			fmt.Fprintf(&b, " constant %d", v.Data)
		}
		if v.Extra != nil && v.Extra.Name != "" && v.Extra.Location != pte.External {
			fmt.Fprintf(&b, " %q", v.Extra.Name)
		}
		return b.String()
	case pte.Null:
		return "None"
	case pte.String:
		return strconv.Quote(string(v))
	case pte.IntList:
		return "ints of " + fmt.Sprint([]int64(v))
	case pte.TensorList:
		return "tensors " + fmt.Sprint([]int32(v))
	case pte.OptionalTensorList:
		return "tensors or None " + fmt.Sprint([]int32(v))
	}
	return fmt.Sprint(v)
}

func instructionText(p *pte.Plan, in pte.Instruction) string {
	args := func(is []int32) string {
		s := make([]string, len(is))
		for k, i := range is {
			s[k] = fmt.Sprintf("%%%d", i)
		}
		return strings.Join(s, ", ")
	}
	switch c := in.(type) {
	case pte.KernelCall:
		return operatorName(p.Operators[c.Op]) + "(" + args(c.Args) + ")"
	case pte.DelegateCall:
		return fmt.Sprintf("delegate %d %s(%s)", c.Delegate, p.Delegates[c.Delegate].ID, args(c.Args))
	case pte.MoveCall:
		return fmt.Sprintf("move %%%d = %%%d", c.To, c.From)
	case pte.JumpFalseCall:
		return fmt.Sprintf("unless %%%d jump to %d", c.Cond, c.Target)
	case pte.FreeCall:
		return fmt.Sprintf("free %%%d", c.Value)
	}
	return fmt.Sprintf("%T", in)
}

// mostNamed is how many pieces of named data are listed in text: they are named by their contents, which tells a reader little.
const mostNamed = 8

// WriteText writes the description for people.
func (i *ProgramInfo) WriteText(out io.Writer) error {
	w := &printer{w: tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)}
	w.line("%s\t%s, %s, version %d", i.File, formatName(i.Format), sizeText(i.Bytes), i.Version)
	total := func(name string, bs []BlobInfo) {
		var n int64
		for _, b := range bs {
			n += b.Bytes
		}
		if len(bs) > 0 {
			w.line("%s\t%d, %s", name, len(bs), sizeText(n))
		}
	}
	total("constants", i.Constants)
	total("initial values", i.Initial)
	for k, n := range i.Named {
		if k == mostNamed && len(i.Named) > mostNamed+1 {
			rest := int64(0)
			for _, n := range i.Named[k:] {
				rest += n.Bytes
			}
			w.line("named data: %d more\t%s", len(i.Named)-k, sizeText(rest))
			break
		}
		w.line("named data %s\t%s", n.Key, sizeText(n.Bytes))
	}
	for _, p := range i.Plans {
		w.line("\nmethod %s\t%d instructions, %d values, planned memory %v", p.Name, len(p.Instructions), len(p.Values), p.Planned)
		for k, v := range p.Inputs {
			w.line("  input %d\t%s\t%s\t%s", k, v.Name, v.typeText(), v.Layout)
		}
		for k, v := range p.Outputs {
			w.line("  output %d\t%s\t%s\t%s", k, v.Name, v.typeText(), v.Layout)
		}
		for _, c := range p.Kernels {
			w.line("  %d\t%s", c.Count, c.Op)
		}
		w.line("  values")
		for k, v := range p.Values {
			w.line("  %%%d\t%s", k, v)
		}
		w.line("  instructions")
		for k, s := range p.Instructions {
			w.line("  %d\t%s", k, s)
		}
		for k, d := range p.Delegates {
			w.line("  delegate %d\t%s, %s", k, d.ID, sizeText(d.Bytes))
			for _, key := range sortedKeys(d.Specs) {
				w.line("    option %s\t%s", key, d.Specs[key])
			}
			if d.Fault != "" {
				w.line("    payload\tnot readable: %s", d.Fault)
			}
			for _, l := range strings.Split(strings.TrimRight(d.text, "\n"), "\n") {
				w.line("    %s", l)
			}
		}
	}
	return w.close()
}
