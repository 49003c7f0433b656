package ir

import (
	"fmt"
	"strings"
)

// Frame is one line of the model's source.
type Frame struct {
	File string
	Line int
	Func string
	Code string
	// Library marks lines of torch and of Python itself, below the model's own.
	Library bool
}

// Origin tells where a node comes from: lines and module of the user's model, and the rules that made it.
type Origin struct {
	// Frames are the model's stack, innermost last.
	Frames []Frame
	// Module is the path of the module in the model ("layers.0.mlp") and Class its type.
	Module, Class string
	// Name is the name of the archive's node.
	Name string
	// Via is the pass#rule that made the node from one with origin From; empty for nodes of the archive.
	Via  string
	From *Origin
}

// Derive is the origin of a node that pass#rule makes from one with origin o.
func (o *Origin) Derive(via string) *Origin {
	d := &Origin{Via: via, From: o}
	if o != nil {
		d.Frames, d.Module, d.Class, d.Name = o.Frames, o.Module, o.Class, o.Name
	}
	return d
}

// Chain lists the rules from the first to the last.
func (o *Origin) Chain() []string {
	var c []string
	for p := o; p != nil; p = p.From {
		if p.Via != "" {
			c = append(c, p.Via)
		}
	}
	for i, j := 0, len(c)-1; i < j; i, j = i+1, j-1 {
		c[i], c[j] = c[j], c[i]
	}
	return c
}

// Frame is the innermost line that is the model's own, the innermost of all where only a library's are known, nil for an
// empty stack.
func (o *Origin) Frame() *Frame {
	if o == nil || len(o.Frames) == 0 {
		return nil
	}
	for i := len(o.Frames) - 1; i >= 0; i-- {
		if !o.Frames[i].Library {
			return &o.Frames[i]
		}
	}
	return &o.Frames[len(o.Frames)-1]
}

// Where is the innermost line of the model: `"modeling.py":134 forward`.
func (o *Origin) Where() string {
	f := o.Frame()
	if f == nil {
		return ""
	}
	return fmt.Sprintf("%q:%d %s", f.File, f.Line, f.Func)
}

// String is one line for dumps: place, module, rules.
func (o *Origin) String() string {
	if o == nil {
		return ""
	}
	var parts []string
	if w := o.Where(); w != "" {
		parts = append(parts, w)
	}
	if o.Module != "" {
		parts = append(parts, "module "+o.Module)
	}
	for _, v := range o.Chain() {
		parts = append(parts, "via "+v)
	}
	return strings.Join(parts, ", ")
}
