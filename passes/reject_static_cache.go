package passes

import (
	"encoding/json"
	"strings"

	"github.com/lathe-ml/lathe/ir"
)

// RejectStaticCache refuses programs that take a static key/value cache as an input.
var RejectStaticCache = Pass{
	Name: "reject-static-cache",
	Doc:  "Refuses a program with a StaticCache among its inputs, also inside another cache, for backends that cannot write to an input.",
	Run: func(ctx *Context, g *ir.Graph) error {
		for _, spec := range []string{g.InSpec, g.OutSpec} {
			if spec != "" && namesType(spec, "StaticCache", 0) {
				ctx.Report(&ir.Diag{
					Code: "static-cache",
					Msg: "StaticCache is not supported by the ExecuTorch MLX backend. " +
						"Use DynamicCache or set cache_implementation='dynamic' in GenerationConfig.",
					File: g.File, Entry: g.Entry,
					Try: "export the model with a DynamicCache, or compile for another backend",
				})
				return ctx.Diags.Err()
			}
		}
		return nil
	},
}

// maxSpecDepth bounds texts within texts: a context is JSON in a string of JSON.
const maxSpecDepth = 8

// namesType tells whether a pytree spec names a type module.name or module:name, as a node's or in a node's context.
func namesType(text, name string, depth int) bool {
	if depth > maxSpecDepth || !strings.Contains(text, name) {
		return false
	}
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return false
	}
	var walk func(v any) bool
	walk = func(v any) bool {
		switch v := v.(type) {
		case string:
			if at := strings.LastIndexAny(v, ".:"); at > 0 && v[at+1:] == name {
				return true
			}
			return namesType(v, name, depth+1)
		case []any:
			for _, e := range v {
				if walk(e) {
					return true
				}
			}
		case map[string]any:
			for _, e := range v {
				if walk(e) {
					return true
				}
			}
		}
		return false
	}
	return walk(v)
}
