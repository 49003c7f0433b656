package passes

import (
	"encoding/binary"
	"math"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/ops"
)

// CSE computes equal things once.
var CSE = Pass{
	Name: "cse",
	Doc:  "Replaces a node by an earlier one with the same operator, arguments and result types.",
	Run: func(ctx *Context, g *ir.Graph) error {
		if g.Stage == ops.StageAten {
			return nil // results may alias and be written to
		}
		g.Walk(func(h *ir.Graph) { shareEqual(ctx, h) })
		return nil
	},
}

func shareEqual(ctx *Context, g *ir.Graph) {
	ids := map[*ir.Value]uint64{}
	seen := map[string]*ir.Node{}
	var key []byte
	for n := range g.Nodes() {
		info := n.Info()
		if n.Op == ops.Unknown || info.Random || info.Effect || info.Mutates || len(n.Outs) == 0 || len(n.Graphs()) > 0 {
			continue
		}
		key = binary.LittleEndian.AppendUint16(key[:0], uint16(n.Op))
		for _, a := range n.Args() {
			key = appendKey(key, a, ids)
		}
		first, ok := seen[string(key)]
		if !ok {
			seen[string(key)] = n
			continue
		}
		if sameTypes(first, n) && ctx.Allow(n, "equal") {
			g.Replace(n, first.Outs...)
		}
	}
}

// sameTypes also tells apart two results that the data decides: each has its own symbol.
func sameTypes(a, b *ir.Node) bool {
	if len(a.Outs) != len(b.Outs) {
		return false
	}
	for i, o := range a.Outs {
		if !o.Type.Equal(b.Outs[i].Type) {
			return false
		}
	}
	return true
}

// appendKey adds an argument to a key that is equal for equal arguments only.
func appendKey(key []byte, a ir.Arg, ids map[*ir.Value]uint64) []byte {
	le := binary.LittleEndian
	key = append(key, byte(a.Kind()))
	text := func(s string) {
		key = binary.AppendUvarint(key, uint64(len(s)))
		key = append(key, s...)
	}
	switch a.Kind() {
	case ir.ArgValue:
		id, ok := ids[a.Value()]
		if !ok {
			id = uint64(len(ids))
			ids[a.Value()] = id
		}
		key = binary.AppendUvarint(key, id)
	case ir.ArgInt:
		e, _ := a.Expr()
		text(e.String())
	case ir.ArgFloat, ir.ArgComplex:
		re, im, _ := a.Complex()
		key = le.AppendUint64(key, math.Float64bits(re))
		key = le.AppendUint64(key, math.Float64bits(im))
	case ir.ArgBool:
		v, _ := a.Bool()
		if v {
			key = append(key, 1)
		} else {
			key = append(key, 0)
		}
	case ir.ArgDType:
		d, _ := a.DType()
		key = append(key, byte(d))
	case ir.ArgStr, ir.ArgLayout, ir.ArgMemory, ir.ArgDevice:
		s, _ := a.Str()
		text(s)
	case ir.ArgList:
		key = binary.AppendUvarint(key, uint64(len(a.List())))
		for _, e := range a.List() {
			key = appendKey(key, e, ids)
		}
	}
	return key
}
