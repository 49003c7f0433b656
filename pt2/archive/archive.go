// Package archive reads the .pt2 container of torch.export.save: a zip file with
// one folder, whose entries are stored uncompressed so that weights can be used
// where they lie.
//
// Nothing in the file is trusted. The directory is checked whole when the archive
// is opened (names, counts, local headers, overlaps), contents against their
// checksums when they are first used. Time and memory are linear in the number
// of entries; no entry is ever written to disk under its own name.
package archive

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// Error says what is wrong with an archive.
type Error struct {
	File   string // path of the archive
	Entry  string // full name of the entry, empty when it is not about one
	Reason string
	Try    string // what the user can do, may be empty
	Err    error  // cause, may be nil
}

// Error returns the parts in one line. Names are quoted: they come from the file.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Entry != "" {
		fmt.Fprintf(&b, ": entry %s", quoteName(e.Entry))
	}
	b.WriteString(": " + e.Reason)
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	if e.Try != "" {
		b.WriteString(" (" + e.Try + ")")
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// quoteName leaves plain names alone, escapes others, and cuts long ones.
func quoteName(s string) string {
	if len(s) > 200 {
		s = s[:200] + "..."
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return fmt.Sprintf("%q", s)
		}
	}
	return s
}

const tryExport = "save the program again with torch.export.save"

// Archive is an open archive. It may be used by several goroutines.
type Archive struct {
	path    string
	data    []byte // the whole file: mapped, or in memory
	file    *os.File
	unmap   func() error
	root    string // folder of the entries with its slash, or empty
	entries []*Entry
	byName  map[string]*Entry // by name below the root
	notes   []string
	models  []string
	version string
}

// Open maps the file at path and checks its directory. Errors about its contents
// are *Error.
func Open(path string) (*Archive, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open archive: %w", err)
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = &Error{File: path, Reason: "not a regular file"}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	a := &Archive{path: path, file: f}
	if st.Size() > 0 {
		if a.data, a.unmap, err = mapFile(f, st.Size()); err != nil {
			f.Close()
			return nil, fmt.Errorf("map archive %s: %w", path, err)
		}
	}
	if err := guard(a, "", a.read); err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
}

// New reads an archive that is in memory; name stands for its path in errors.
// The archive keeps data.
func New(data []byte, name string) (*Archive, error) {
	a := &Archive{path: name, data: data}
	if err := a.read(); err != nil {
		return nil, err
	}
	return a, nil
}

// NewPickled reads what torch.save writes, in memory: a zip file with data.pkl and
// the records that it names. The .pt2 container nests such files.
func NewPickled(data []byte, name string) (*Archive, error) {
	a := &Archive{path: name, data: data}
	all, err := a.readDirectory()
	if err != nil {
		return nil, err
	}
	if err := a.findRoot(all, "data.pkl"); err != nil {
		return nil, err
	}
	return a, a.checkOrder()
}

// Close unmaps the file. Slices the archive gave out must not be used any more.
func (a *Archive) Close() error {
	var err error
	if a.unmap != nil {
		err = a.unmap()
	}
	a.unmap, a.data = nil, nil
	if a.file != nil {
		if e := a.file.Close(); err == nil {
			err = e
		}
		a.file = nil
	}
	return err
}

// Path returns the path the archive was opened at.
func (a *Archive) Path() string { return a.path }

// File returns the open file, nil for an archive in memory.
func (a *Archive) File() *os.File { return a.file }

// Size returns the size of the file in bytes.
func (a *Archive) Size() int64 { return int64(len(a.data)) }

// Root returns the name of the archive's folder, without a slash.
func (a *Archive) Root() string { return strings.TrimSuffix(a.root, "/") }

// Notes returns what is odd but harmless, for the user.
func (a *Archive) Notes() []string { return a.notes }

// Models returns the names of the programs, sorted: NAME of each models/NAME.json.
func (a *Archive) Models() []string { return a.models }

// Version returns the contents of .data/version, the version of PyTorch's file
// container, or "" where there is none.
func (a *Archive) Version() string { return a.version }

// Entries returns the entries below the root in the order of the directory.
func (a *Archive) Entries() []*Entry { return a.entries }

// Lookup returns the entry of that name below the root, for instance
// models/model.json.
func (a *Archive) Lookup(name string) (*Entry, bool) {
	e, ok := a.byName[name]
	return e, ok
}

// Get returns the entry of that name below the root, or an *Error.
func (a *Archive) Get(name string) (*Entry, error) {
	if e, ok := a.byName[name]; ok {
		return e, nil
	}
	return nil, a.errorf(a.root+name, "no such entry in the archive", tryExport)
}

// List returns the entries whose names below the root start with prefix.
func (a *Archive) List(prefix string) []*Entry {
	var out []*Entry
	for _, e := range a.entries {
		if strings.HasPrefix(e.name, prefix) {
			out = append(out, e)
		}
	}
	return out
}

func (a *Archive) errorf(entry, reason, try string, args ...any) *Error {
	return &Error{File: a.path, Entry: entry, Reason: fmt.Sprintf(reason, args...), Try: try}
}

func (a *Archive) read() error {
	all, err := a.readDirectory()
	if err != nil {
		return err
	}
	if err := a.findRoot(all, formatMarker); err != nil {
		return err
	}
	return a.checkMeta()
}

// formatMarker is the entry that marks an archive's folder.
const formatMarker = "archive_format"

// findRoot finds the folder that holds the marker. PyTorch names it after the
// file; tools that zip a folder again may add folders beside it.
func (a *Archive) findRoot(all []*Entry, marker string) error {
	found := false
	for _, e := range all {
		dir, ok := strings.CutSuffix(e.full, marker)
		if !ok || dir != "" && (!strings.HasSuffix(dir, "/") || strings.Count(dir, "/") != 1) {
			continue
		}
		if found {
			return a.errorf(e.full, "second %s: the file holds more than one archive", "", marker)
		}
		a.root, found = dir, true
	}
	switch {
	case found:
	case marker == formatMarker:
		return a.notExport(all)
	default:
		return a.errorf("", "no %s in it: not written by torch.save", tryExport, marker)
	}
	a.byName = make(map[string]*Entry, len(all))
	outside := 0
	for _, e := range all {
		name, ok := strings.CutPrefix(e.full, a.root)
		if !ok {
			outside++
			continue
		}
		if name == "" || strings.HasSuffix(name, "/") {
			continue // a folder
		}
		e.name = name
		a.byName[name] = e
		a.entries = append(a.entries, e)
	}
	if outside > 0 {
		a.notes = append(a.notes, fmt.Sprintf("%d entries outside the archive's folder %s are ignored", outside, quoteName(a.root)))
	}
	return nil
}

// notExport says what a zip file without archive_format is, if it can tell.
func (a *Archive) notExport(all []*Entry) error {
	entry := "archive_format"
	if len(all) > 0 {
		if dir, _, ok := strings.Cut(all[0].full, "/"); ok {
			entry = dir + "/" + entry
		}
	}
	for _, e := range all {
		base := e.full[strings.LastIndexByte(e.full, '/')+1:]
		switch base {
		case "serialized_exported_program.json":
			return a.errorf(e.full, "saved by torch.export of a PyTorch before 2.8, whose layout is another", "export it again with a current PyTorch")
		case "constants.pkl":
			return a.errorf(e.full, "a TorchScript archive, not one of torch.export", "export the model with torch.export.export and save it with torch.export.save")
		case "data.pkl":
			return a.errorf(e.full, "written by torch.save, not by torch.export.save", "export the model with torch.export.export and save it with torch.export.save")
		}
	}
	return a.errorf(entry, "missing: not an archive of torch.export.save", tryExport)
}

// checkMeta checks the small entries that say what the archive is.
func (a *Archive) checkMeta() error {
	format, _, err := a.text(formatMarker)
	if err != nil {
		return err
	}
	if format != "pt2" {
		return a.errorf(a.root+"archive_format", "format is %q, not \"pt2\"", tryExport, format)
	}
	version, ok, err := a.text("archive_version")
	switch {
	case err != nil:
		return err
	case !ok:
		return a.errorf(a.root+"archive_version", "missing", tryExport)
	case version != "0":
		return a.errorf(a.root+"archive_version", "version is %q, this reader knows version 0", "save it with a PyTorch this release supports, or update Lathe", version)
	}
	if err := a.checkOrder(); err != nil {
		return err
	}
	if a.version, _, err = a.text(".data/version"); err != nil {
		return err
	}
	for _, e := range a.entries {
		name, ok := strings.CutPrefix(e.name, "models/")
		if !ok {
			continue
		}
		if name, ok = strings.CutSuffix(name, ".json"); ok && name != "" && !strings.Contains(name, "/") {
			a.models = append(a.models, name)
		}
	}
	slices.Sort(a.models)
	if len(a.models) == 0 {
		if len(a.List("data/aotinductor/")) > 0 {
			return a.errorf(a.root+"models/", "no exported program, only one compiled by AOTInductor", "save the exported program with torch.export.save")
		}
		return a.errorf(a.root+"models/", "no models/NAME.json in the archive", tryExport)
	}
	return nil
}

// text gives the word that a small entry holds.
func (a *Archive) text(name string) (string, bool, error) {
	e, ok := a.byName[name]
	if !ok {
		return "", false, nil
	}
	const most = 64
	if e.size > most {
		return "", true, a.errorf(e.full, "%d bytes, where a word should stand", tryExport, e.size)
	}
	b, err := e.Bytes()
	return string(bytes.TrimSpace(b)), true, err
}

func (a *Archive) checkOrder() error {
	order, ok, err := a.text("byteorder")
	switch {
	case err != nil:
		return err
	case !ok:
		a.notes = append(a.notes, "no byteorder entry: taken as little-endian")
	case order != "little":
		return a.errorf(a.root+"byteorder", "byte order is %q, only little-endian archives can be read", "save it on a little-endian machine", order)
	}
	return nil
}

var (
	_ io.WriterTo = (*Entry)(nil)
	_ io.ReaderAt = (*Entry)(nil)
)
