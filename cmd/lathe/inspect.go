package main

import (
	"encoding/json"
	"io"

	"github.com/lathe-ml/lathe"
)

type inspectCmd struct {
	File string `arg:"" help:"A .pt2, .ir or .pte file."`
}

func (c *inspectCmd) Run(e *env) error {
	info, err := lathe.Inspect(c.File)
	if err != nil {
		return err
	}
	return e.print(info, info.WriteText)
}

// print writes v as JSON where that is asked for, otherwise as text.
func (e *env) print(v any, text func(io.Writer) error) error {
	if !e.JSON {
		return text(e.stdout)
	}
	enc := json.NewEncoder(e.stdout)
	enc.SetIndent("", " ")
	return enc.Encode(v)
}
