// Package pt2 is the front end: it opens what torch.export.save writes and imports its programs into the IR. Weights stay
// in the file; nothing in an archive is ever executed.
package pt2

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lathe-ml/lathe/ir"
	"github.com/lathe-ml/lathe/pt2/archive"
	"github.com/lathe-ml/lathe/pt2/schema"
)

// Codes of the front end's diagnostics.
const (
	CodeArchive     = "bad-archive"      // the container or its bookkeeping
	CodeVersion     = "archive-version"  // written by a release that is not read
	CodeJSON        = "bad-json"         // text that is not of the schema
	CodeWeight      = "bad-weight"       // a weight that does not fit its record
	CodeGraph       = "bad-graph"        // a graph that contradicts itself or an operator's schema
	CodeUnsupported = "unsupported-type" // a kind of value that cannot be compiled
)

const tryCopy = "the archive is damaged; copy or export it again"

const tryExport = "export the model again with torch.export.save of torch 2.9 to 2.15"

// Archive is an opened .pt2 file. The programs loaded from it refer to its weights, so it must stay open while they are
// in use. Its methods are for one goroutine; the weights may be read by several.
type Archive struct {
	c     *archive.Archive
	notes []string
	// storages by entry: tied weights share one.
	storages map[string]ir.Storage
	pickles  map[string]*pickled
}

// Open opens an archive and checks that it is a PyTorch program. Errors are *ir.Diag.
func Open(path string) (*Archive, error) {
	c, err := archive.Open(path)
	if err != nil {
		return nil, archiveDiag(path, err)
	}
	return open(c), nil
}

// New reads an archive that is in memory; name stands for its path in errors.
func New(data []byte, name string) (*Archive, error) {
	c, err := archive.New(data, name)
	if err != nil {
		return nil, archiveDiag(name, err)
	}
	return open(c), nil
}

func open(c *archive.Archive) *Archive {
	return &Archive{c: c, notes: slices.Clone(c.Notes()), storages: map[string]ir.Storage{}, pickles: map[string]*pickled{}}
}

// archiveDiag makes a diagnostic of what the container's reader says.
func archiveDiag(path string, err error) *ir.Diag {
	d := &ir.Diag{Code: CodeArchive, Entry: path, Try: tryExport}
	var e *archive.Error
	if !errors.As(err, &e) {
		d.Msg = fmt.Sprintf("%s cannot be read: %v", path, err)
		d.Try = "check the path and that the file is readable"
		return d
	}
	d.Msg = e.Reason
	if e.Err != nil {
		d.Msg += ": " + e.Err.Error()
	}
	if e.Entry != "" {
		d.File, d.Entry = path, clean(e.Entry)
	}
	if e.Try != "" {
		d.Try = e.Try
	}
	return d
}

// Close releases the file. No weight of it may be used afterwards.
func (a *Archive) Close() error { return a.c.Close() }

// Notes are remarks on the archive that do no harm, such as fields of a newer schema.
func (a *Archive) Notes() []string { return a.notes }

func (a *Archive) note(format string, args ...any) {
	if s := fmt.Sprintf(format, args...); !slices.Contains(a.notes, s) {
		a.notes = append(a.notes, s)
	}
}

func (a *Archive) diag(code, entry, try, format string, args ...any) *ir.Diag {
	return &ir.Diag{Code: code, File: a.c.Path(), Entry: clean(entry), Try: try, Msg: fmt.Sprintf(format, args...)}
}

// read gives the contents of an entry.
func (a *Archive) read(name string) ([]byte, error) {
	e, err := a.c.Get(name)
	if err != nil {
		return nil, archiveDiag(a.c.Path(), err)
	}
	b, err := e.Bytes()
	if err != nil {
		return nil, archiveDiag(a.c.Path(), err)
	}
	return b, nil
}

// MethodNames lists the programs in the archive in order of name.
func (a *Archive) MethodNames() []string { return a.c.Models() }

// Load imports every program of the archive. The error is ir.Diags with everything found wrong.
func (a *Archive) Load() (*ir.Program, error) {
	names := a.MethodNames()
	p := &ir.Program{}
	var ds ir.Diags
	for _, n := range names {
		g, err := a.LoadMethod(n)
		if err != nil {
			some, ok := ir.AsDiags(err)
			if !ok {
				return nil, err
			}
			ds = append(ds, some...)
			continue
		}
		p.Methods = append(p.Methods, g)
	}
	if err := ds.Err(); err != nil {
		return nil, err
	}
	return p, nil
}

// LoadMethod imports one program. A program saved as "model" is the method "forward".
func (a *Archive) LoadMethod(name string) (*ir.Graph, error) {
	entry := "models/" + name + ".json"
	text, err := a.read(entry)
	if err != nil {
		return nil, err
	}
	ep, unknown, err := schema.DecodeExportedProgram(text)
	if verr := a.checkVersion(entry, text, ep); verr != nil {
		return nil, verr
	}
	if err != nil {
		return nil, a.jsonDiag(entry, err)
	}
	for _, u := range unknown {
		a.note("%s: field %q is not known and left unread", entry, u)
	}
	im := &importer{a: a, entry: entry, name: name, ep: ep}
	return im.run()
}

// checkVersion looks at the schema version, in a text that could not be decoded too.
func (a *Archive) checkVersion(entry string, text []byte, ep *schema.ExportedProgram) error {
	var v schema.SchemaVersion
	var torch string
	if ep != nil {
		v, torch = ep.SchemaVersion, ep.TorchVersion.V
	} else {
		var err error
		if v, torch, err = schema.Version(text); err != nil {
			return nil // the text is damaged, which the caller reports
		}
	}
	if torch == "" {
		torch = "2.4 or older"
	}
	if v.Major != schema.Major {
		return a.diag(CodeVersion, entry, tryExport,
			"written by torch %.40s with schema version %d.%d, version %d is read", torch, v.Major, v.Minor, schema.Major)
	}
	if v.Minor > schema.Minor {
		a.note("%s: schema version %d.%d of torch %.40s is newer than %d.%d; what is new in it is left unread",
			entry, v.Major, v.Minor, torch, schema.Major, schema.Minor)
	}
	return nil
}

func (a *Archive) jsonDiag(entry string, err error) *ir.Diag {
	msg := err.Error()
	var e *schema.Error
	if errors.As(err, &e) {
		msg = e.Error()
	}
	return a.diag(CodeJSON, entry, "the archive is damaged, or newer than Lathe: copy it again, or "+tryExport, "%s", msg)
}
