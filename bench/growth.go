package main

import (
	"archive/zip"
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// growth compiles programs of one kind at two sizes, one twice the other, and prints how the processor time grows: 2.0 is
// linear.
func growth(bin, dir string, n int, backends []string, only string, scale float64) error {
	fmt.Println("| program | size | what | time | twice the size | factor |")
	fmt.Println("|---|---|---|---|---|---|")
	for _, k := range kinds {
		if only != "" && only != k.name {
			continue
		}
		size := max(1, int(float64(k.size)*scale))
		var paths [2]string
		for i := range paths {
			paths[i] = filepath.Join(dir, fmt.Sprintf("%s%d.pt2", k.name, i+1))
			if err := writeSynthetic(paths[i], k.make, (i+1)*size); err != nil {
				return fmt.Errorf("writing %s: %w", k.name, err)
			}
		}
		for _, b := range backends {
			var best [2]time.Duration
			for i, p := range paths {
				for range n {
					cmd := exec.Command(bin, "compile", p, "--backend", b, "-o", filepath.Join(dir, "growth.pte"))
					if _, _, err := timed(cmd); err != nil {
						return fmt.Errorf("%s for %s: %w", k.name, b, err)
					}
					if d := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(); best[i] == 0 || d < best[i] {
						best[i] = d
					}
				}
			}
			fmt.Printf("| %s | %d | compile for %s | %.0f ms | %.0f ms | %.1f |\n", k.name, size, b, ms(best[0]), ms(best[1]), float64(best[1])/float64(best[0]))
		}
		for _, p := range paths {
			os.Remove(p) //nolint:errcheck // the folder goes away anyhow
		}
	}
	return nil
}

// kinds are the ways in which programs are large, and the sizes at which it shows.
var kinds = []struct {
	name string
	size int
	make func(p *synthetic, n int)
}{
	{"deep", 50_000, deep},
	{"wide", 25_000, wide},
	{"outputs", 10_000, outputs},
	{"inputs", 10_000, inputs},
	{"weights", 10_000, weights},
	{"symbols", 10_000, symbols},
	{"buffers", 5_000, buffers},
	{"writes", 5_000, writes},
	{"views", 20_000, views},
	{"lists", 10_000, lists},
	{"pieces", 10_000, pieces},
	{"fills", 10_000, fills},
	{"returns", 10_000, returns},
	{"regions", 5_000, regions},
	{"lives", 10_000, lives},
}

// deep is a chain of n nodes.
func deep(p *synthetic, n int) {
	x := p.input("x", "4")
	for i := range n {
		x = p.node([]string{"mul", "add", "relu"}[i%3], "4", x)
	}
	p.output(x)
}

// wide is n nodes that read the input alone, and a tree of sums over them.
func wide(p *synthetic, n int) {
	x := p.input("x", "4")
	row := make([]string, n)
	for i := range row {
		row[i] = p.node("mul", "4", x)
	}
	p.output(p.sum("4", row))
}

// outputs is n nodes that are all returned.
func outputs(p *synthetic, n int) {
	x := p.input("x", "4")
	for range n {
		p.output(p.node("mul", "4", x))
	}
}

// inputs is n inputs, summed.
func inputs(p *synthetic, n int) {
	row := make([]string, n)
	for i := range row {
		row[i] = p.input(fmt.Sprintf("x%d", i), "4")
	}
	p.output(p.sum("4", row))
}

// weights is n parameters, one after the other added to the input.
func weights(p *synthetic, n int) {
	x := p.input("x", "4")
	for i := range n {
		x = p.node("add", "4", x, p.state(fmt.Sprintf("w%d", i), true))
	}
	p.output(x)
}

// symbols is n inputs, each of a length of its own, of which the program asserts something, alone and with the next.
func symbols(p *synthetic, n int) {
	row := make([]string, n)
	last, lastSize := "", ""
	for i := range row {
		s := fmt.Sprintf("s%d", i)
		p.ranges = append(p.ranges, fmt.Sprintf(`%q: {"min_val": 2, "max_val": %d}`, s, 64+i%64))
		x := p.input(fmt.Sprintf("x%d", i), s)
		expr := symbol(s)
		size := p.size(x, expr)
		p.assert(size, expr, 3)
		if i > 0 {
			expr = fmt.Sprintf("Add(%s, %s)", symbol(last), symbol(s))
			p.assert(p.plus(lastSize, size, expr), expr, 7)
		}
		last, lastSize = s, size
		row[i] = p.node("sum", "", x)
	}
	p.output(p.sum("", row))
}

// buffers is n buffers that are added to in place.
func buffers(p *synthetic, n int) {
	x := p.input("x", "4")
	for i := range n {
		p.node("add_", "4", p.state(fmt.Sprintf("b%d", i), false), x)
	}
	p.output(p.node("relu", "4", x))
}

// writes is n elements of one buffer that are written to through views.
func writes(p *synthetic, n int) {
	x := p.input("x", "4")
	b := p.state("b", false)
	for i := range n {
		p.node("copy_", "1", p.slice("1", b, i%4, i%4+1), p.slice("1", x, i%3, i%3+1))
	}
	p.output(p.node("relu", "4", b))
}

// views is a chain of n views with a node in front of every tenth.
func views(p *synthetic, n int) {
	x := p.input("x", "4")
	for i := range n {
		if i%10 == 0 {
			x = p.node("relu", "4", x)
		}
		x = p.node("view", "4", x)
	}
	p.output(x)
}

// lists joins n values.
func lists(p *synthetic, n int) {
	x := p.input("x", "4")
	row := make([]string, n)
	for i := range row {
		row[i] = p.node("mul", "4", x)
	}
	p.output(p.node("cat", fmt.Sprint(4*n), row...))
}

// pieces takes a value apart into n and sums them.
func pieces(p *synthetic, n int) {
	x := p.input("x", fmt.Sprint(n))
	x = p.node("relu", fmt.Sprint(n), x)
	row := make([]string, n)
	outs := make([]string, n)
	for i := range row {
		row[i] = p.name("piece")
		p.value(row[i], "")
		outs[i] = fmt.Sprintf(`{"name": %q}`, row[i])
	}
	p.raw(p.name("unbind"), "torch.ops.aten.unbind.int", fmt.Sprintf(`{"as_tensors": [%s]}`, strings.Join(outs, ", ")), "self", tensor(x), "dim", `{"as_int": 0}`)
	p.output(p.sum("", row))
}

// fills adds n constants that the compiler has to make.
func fills(p *synthetic, n int) {
	x := p.input("x", "4")
	for range n {
		x = p.node("add", "4", x, p.node("full", "4"))
	}
	p.output(x)
}

// returns gives one value n times.
func returns(p *synthetic, n int) {
	x := p.node("relu", "4", p.input("x", "4"))
	for range n {
		p.output(x)
	}
}

// regions alternates what most delegates take with what they do not.
func regions(p *synthetic, n int) {
	x := p.input("x", "4")
	for range n {
		x = p.node("roll", "4", p.node("mul", "4", x))
	}
	p.output(x)
}

// lives is n values of many sizes that are read where they are made and again at the end, in another order.
func lives(p *synthetic, n int) {
	x := p.input("x", "997")
	row, sums := make([]string, n), make([]string, 2*n)
	for i := range row {
		size := 1 + i*331%997
		row[i] = p.node("relu", fmt.Sprint(size), p.slice(fmt.Sprint(size), x, 0, size))
		sums[i] = p.node("sum", "", row[i])
	}
	for i := range row {
		sums[n+i] = p.node("sum", "", row[i*7919%n])
	}
	p.output(p.sum("", sums))
}

// synthetic is a program in the making, as pieces of its JSON.
type synthetic struct {
	ins, outs, inSpecs, outSpecs, nodes, values, ints, bools, ranges, config []string

	weights, last int
}

func tensor(name string) string { return fmt.Sprintf(`{"as_tensor": {"name": %q}}`, name) }

// meta is a tensor's type: one dimension, whose size is a number or a symbol, or none.
func meta(size string) string {
	sizes, strides := "", `{"as_int": 1}`
	switch {
	case size == "":
		strides = ""
	case size[0] == 's':
		sizes = fmt.Sprintf(`{"as_expr": {"expr_str": "Symbol('%s', positive=True, integer=True)", "hint": {"as_int": 8}}}`, size)
	default:
		sizes = fmt.Sprintf(`{"as_int": %s}`, size)
	}
	return fmt.Sprintf(`{"dtype": 7, "sizes": [%s], "requires_grad": false, "device": {"type": "cpu", "index": null}, "strides": [%s], "storage_offset": {"as_int": 0}, "layout": 7}`, sizes, strides)
}

func (p *synthetic) value(name, size string) {
	p.values = append(p.values, fmt.Sprintf("%q: %s", name, meta(size)))
}

func (p *synthetic) input(name, size string) string {
	p.value(name, size)
	p.ins = append(p.ins, tensor(name))
	p.inSpecs = append(p.inSpecs, fmt.Sprintf(`{"user_input": {"arg": %s}}`, tensor(name)))
	return name
}

// state is a parameter or a buffer of four elements.
func (p *synthetic) state(name string, param bool) string {
	arg := "v_" + name
	p.value(arg, "4")
	p.ins = append(p.ins, tensor(arg))
	if param {
		p.inSpecs = append(p.inSpecs, fmt.Sprintf(`{"parameter": {"arg": {"name": %q}, "parameter_name": %q}}`, arg, name))
	} else {
		p.inSpecs = append(p.inSpecs, fmt.Sprintf(`{"buffer": {"arg": {"name": %q}, "buffer_name": %q, "persistent": true}}`, arg, name))
	}
	p.config = append(p.config, fmt.Sprintf(`%q: {"path_name": "weight_%d", "is_param": %t, "use_pickle": false, "tensor_meta": %s}`, name, p.weights, param, meta("4")))
	p.weights++
	return arg
}

func (p *synthetic) output(name string) {
	p.outs = append(p.outs, tensor(name))
	p.outSpecs = append(p.outSpecs, fmt.Sprintf(`{"user_output": {"arg": %s}}`, tensor(name)))
}

// raw appends a node with arguments as pairs of name and JSON.
func (p *synthetic) raw(name, target, out string, args ...string) {
	var in []string
	for i := 0; i < len(args); i += 2 {
		in = append(in, fmt.Sprintf(`{"name": %q, "arg": %s, "kind": 1}`, args[i], args[i+1]))
	}
	p.nodes = append(p.nodes, fmt.Sprintf(`{"target": %q, "inputs": [%s], "outputs": [%s], "metadata": {"stack_trace": "File \"model.py\", line %d, in forward\n    x = f(x)"}, "is_hop_single_tensor_return": null, "name": %q}`,
		target, strings.Join(in, ", "), out, p.last%1000, name))
}

func (p *synthetic) name(base string) string {
	p.last++
	return fmt.Sprintf("%s_%d", base, p.last)
}

// node appends an operator; where it wants a second operand that is not given, a number of its own.
func (p *synthetic) node(op, size string, in ...string) string {
	name := p.name(op)
	p.value(name, size)
	var args []string
	if len(in) > 0 {
		args = append(args, "self", tensor(in[0]))
	}
	target := op + ".Tensor"
	switch op {
	case "cat":
		names := make([]string, len(in))
		for i, s := range in {
			names[i] = fmt.Sprintf(`{"name": %q}`, s)
		}
		target, args = op+".default", []string{"tensors", fmt.Sprintf(`{"as_tensors": [%s]}`, strings.Join(names, ", "))}
	case "full":
		target = op + ".default"
		args = append(args, "size", fmt.Sprintf(`{"as_ints": [%s]}`, size), "fill_value", fmt.Sprintf(`{"as_float": %d.5}`, p.last))
	case "roll":
		target = op + ".default"
		args = append(args, "shifts", `{"as_ints": [1]}`, "dims", `{"as_ints": [0]}`)
	case "relu", "sum":
		target = op + ".default"
	case "view":
		target = op + ".default"
		args = append(args, "size", fmt.Sprintf(`{"as_ints": [%s]}`, size))
	case "copy_":
		target = op + ".default"
		args = append(args, "src", tensor(in[1]))
	default:
		other := fmt.Sprintf(`{"as_float": %d.5}`, p.last)
		if len(in) > 1 {
			other = tensor(in[1])
		}
		args = append(args, "other", other)
	}
	p.raw(name, "torch.ops.aten."+target, tensor(name), args...)
	return name
}

// sum adds values up as a balanced tree.
func (p *synthetic) sum(size string, row []string) string {
	for len(row) > 1 {
		var next []string
		for i := 0; i+1 < len(row); i += 2 {
			next = append(next, p.node("add", size, row[i], row[i+1]))
		}
		if len(row)%2 == 1 {
			next = append(next, row[len(row)-1])
		}
		row = next
	}
	return row[0]
}

func (p *synthetic) slice(size, x string, from, to int) string {
	name := p.name("slice")
	p.value(name, size)
	p.raw(name, "torch.ops.aten.slice.Tensor", tensor(name), "self", tensor(x), "dim", `{"as_int": 0}`, "start", fmt.Sprintf(`{"as_int": %d}`, from), "end", fmt.Sprintf(`{"as_int": %d}`, to))
	return name
}

func symbol(name string) string {
	return fmt.Sprintf("Symbol('%s', positive=True, integer=True)", name)
}

func symInt(name string) string { return fmt.Sprintf(`{"as_sym_int": {"as_name": %q}}`, name) }

// size is the length of x, which is the expression.
func (p *synthetic) size(x, expr string) string {
	name := p.name("sym_size")
	p.ints = append(p.ints, fmt.Sprintf(`%q: {"as_expr": {"expr_str": %q, "hint": {"as_int": 8}}}`, name, expr))
	p.raw(name, "torch.ops.aten.sym_size.int", symInt(name), "self", tensor(x), "dim", `{"as_int": 0}`)
	return name
}

func (p *synthetic) plus(a, b, expr string) string {
	name := p.name("add")
	p.ints = append(p.ints, fmt.Sprintf(`%q: {"as_expr": {"expr_str": %q, "hint": {"as_int": 16}}}`, name, expr))
	p.raw(name, "_operator.add", symInt(name), "a", symInt(a), "b", symInt(b))
	return name
}

// assert states that a size, which is the expression, is not below k.
func (p *synthetic) assert(size, expr string, k int) {
	ge := p.name("ge")
	p.bools = append(p.bools, fmt.Sprintf(`%q: {"as_expr": {"expr_str": "%s >= %d"}}`, ge, expr, k))
	p.raw(ge, "_operator.ge", fmt.Sprintf(`{"as_sym_bool": {"as_name": %q}}`, ge), "a", symInt(size), "b", fmt.Sprintf(`{"as_int": %d}`, k))
	p.raw(p.name("_assert_scalar"), "torch.ops.aten._assert_scalar.default", "", "self", fmt.Sprintf(`{"as_sym_bool": {"as_name": %q}}`, ge), "assert_msg", `{"as_string": "too short"}`)
}

// writeSynthetic makes an archive of a program.
func writeSynthetic(path string, fill func(p *synthetic, n int), n int) error {
	var p synthetic
	fill(&p, n)
	// State comes before what the user gives.
	var ins, specs [2][]string
	for i, s := range p.inSpecs {
		user := 0
		if strings.HasPrefix(s, `{"user_input"`) {
			user = 1
		}
		ins[user], specs[user] = append(ins[user], p.ins[i]), append(specs[user], s)
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // closed below
	w := bufio.NewWriterSize(f, 1<<20)
	z := zip.NewWriter(w)
	entry := func(name string, pieces ...any) {
		e, cerr := z.CreateHeader(&zip.FileHeader{Name: "model/" + name, Method: zip.Store})
		if err = firstOf(err, cerr); err != nil {
			return
		}
		for _, x := range pieces {
			switch x := x.(type) {
			case string:
				_, cerr = e.Write([]byte(x))
			case []byte:
				_, cerr = e.Write(x)
			case []string:
				_, cerr = e.Write([]byte(strings.Join(x, ",\n")))
			}
			err = firstOf(err, cerr)
		}
	}
	var four bytes.Buffer
	for i := range p.weights {
		four.Reset()
		_ = binary.Write(&four, binary.LittleEndian, []float32{float32(i), 1, 2, 3})
		entry(fmt.Sprintf("data/weights/weight_%d", i), slices.Clone(four.Bytes()))
	}
	entry("data/weights/model_weights_config.json", `{"config": {`, p.config, `}}`)
	entry("data/constants/model_constants_config.json", `{"config": {}}`)
	entry("models/model.json", `{"graph_module": {"graph": {"inputs": [`, slices.Concat(ins[0], ins[1]), `], "outputs": [`, p.outs, `], "nodes": [`, p.nodes,
		`], "tensor_values": {`, p.values, `}, "sym_int_values": {`, p.ints, `}, "sym_bool_values": {`, p.bools, `}, "is_single_tensor_return": false,
		"custom_obj_values": {}}, "signature": {"input_specs": [`, slices.Concat(specs[0], specs[1]), `], "output_specs": [`, p.outSpecs, `]},
		"module_call_graph": []}, "opset_version": {"aten": 10}, "range_constraints": {`, p.ranges, `}, "schema_version": {"major": 8, "minor": 20},
		"verifiers": [], "torch_version": "2.13.0"}`)
	entry("archive_format", "pt2")
	entry("archive_version", "0")
	entry("byteorder", "little")
	return firstOf(err, z.Close(), w.Flush(), f.Close())
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
