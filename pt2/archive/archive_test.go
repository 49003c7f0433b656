package archive

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type item struct {
	name, data string
	method     uint16
}

func good() []item {
	return []item{
		{"m/data/weights/weight_0", strings.Repeat("w", 512), 0},
		{"m/data/weights/model_weights_config.json", `{"config": {}}`, 0},
		{"m/models/model.json", `{"graph_module": {}}`, 0},
		{"m/archive_format", "pt2", 0},
		{"m/archive_version", "0", 0},
		{"m/.data/version", "6\n", 0},
		{"m/byteorder", "little", 0},
	}
}

func pack(t testing.TB, items []item) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, it := range items {
		// Plain records without data descriptors, as Python writes them.
		h := &zip.FileHeader{Name: it.name, Method: it.method}
		packed := []byte(it.data)
		if it.method == zip.Deflate {
			packed = deflate(t, packed)
		}
		h.CRC32 = crc32.ChecksumIEEE([]byte(it.data))
		h.UncompressedSize64, h.CompressedSize64 = uint64(len(it.data)), uint64(len(packed))
		f, err := w.CreateRaw(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(packed); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func deflate(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.CreateHeader(&zip.FileHeader{Name: "x", Method: zip.Deflate})
	if err == nil {
		_, err = f.Write(data)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := r.File[0].OpenRaw()
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(raw)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// set returns items with the data of one replaced, or with one added.
func set(items []item, name, data string) []item {
	for i := range items {
		if items[i].name == name {
			items[i].data = data
			return items
		}
	}
	return append(items, item{name: name, data: data})
}

func without(items []item, names ...string) []item {
	var out []item
	for _, it := range items {
		keep := true
		for _, n := range names {
			keep = keep && it.name != n
		}
		if keep {
			out = append(out, it)
		}
	}
	return out
}

// directoryAt returns the offset of the directory record of an entry.
func directoryAt(t testing.TB, b []byte, name string) int {
	t.Helper()
	i := bytes.LastIndex(b, []byte(name)) - dirSize
	if i < 0 || string(b[i:i+4]) != "PK\x01\x02" {
		t.Fatalf("no directory record of %s", name)
	}
	return i
}

func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.pt2")
	if err := os.WriteFile(path, pack(t, good()), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if a.Root() != "m" || a.Version() != "6" || fmt.Sprint(a.Models()) != "[model]" || len(a.Notes()) > 0 || len(a.Entries()) != 7 {
		t.Errorf("root %s, version %s, models %v, notes %v, %d entries", a.Root(), a.Version(), a.Models(), a.Notes(), len(a.Entries()))
	}
	e, err := a.Get("data/weights/weight_0")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Repeat("w", 512)
	if b, err := e.Bytes(); err != nil || string(b) != want {
		t.Errorf("got %q, %v", b, err)
	}
	off, n, ok := e.FileRange()
	file, err := os.ReadFile(path)
	if err != nil || !ok || string(file[off:off+n]) != want {
		t.Errorf("range %d+%d, %v, %v", off, n, ok, err)
	}
	var out bytes.Buffer
	if n, err := e.WriteTo(&out); n != 512 || err != nil || out.String() != want {
		t.Errorf("copied %d, %v", n, err)
	}
	e.Release()
	buf := make([]byte, 8)
	if n, err := e.ReadAt(buf, 508); n != 4 || err != io.EOF || string(buf[:4]) != "wwww" {
		t.Errorf("read %d, %v", n, err)
	}
	if _, err := e.ReadAt(buf, -1); err == nil {
		t.Error("a negative offset is read")
	}
	if got := len(a.List("data/weights/")); got != 2 {
		t.Errorf("%d entries listed", got)
	}
	var ae *Error
	if _, err := a.Get("models/other.json"); !errors.As(err, &ae) || ae.Entry != "m/models/other.json" {
		t.Errorf("an entry that is not there gives %v", err)
	}
}

func TestAccepted(t *testing.T) {
	deflated := good()
	for i := range deflated {
		deflated[i].method = zip.Deflate
	}
	manyEntries := good()
	for i := range 20000 {
		manyEntries = append(manyEntries, item{name: fmt.Sprintf("m/extra/f%d", i)})
	}
	var described bytes.Buffer // sizes behind the data
	w := zip.NewWriter(&described)
	for _, it := range good() {
		f, err := w.CreateHeader(&zip.FileHeader{Name: it.name})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, it.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	inRoot := good()
	for i := range inRoot {
		inRoot[i].name = strings.TrimPrefix(inRoot[i].name, "m/")
	}
	for name, tt := range map[string]struct {
		data  []byte
		notes int
	}{
		"deflated":         {pack(t, deflated), 0},
		"many entries":     {pack(t, manyEntries), 0},
		"data descriptors": {described.Bytes(), 0},
		"no folder":        {pack(t, inRoot), 0},
		"folder entry":     {pack(t, append([]item{{name: "m/"}}, good()...)), 0},
		"folder beside":    {pack(t, append(good(), item{name: "__MACOSX/m/._x", data: "x"})), 1},
		"bytes behind":     {append(pack(t, good()), "\x00\x00"...), 1},
		"no byte order":    {pack(t, without(good(), "m/byteorder")), 1},
		"zip64":            {zip64(t, pack(t, good())), 0},
	} {
		a, err := New(tt.data, "m.pt2")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(a.Notes()) != tt.notes {
			t.Errorf("%s: notes %q", name, a.Notes())
		}
		e, err := a.Get("models/model.json")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if b, err := e.Bytes(); err != nil || string(b) != `{"graph_module": {}}` {
			t.Errorf("%s: %q, %v", name, b, err)
		}
		for _, e := range a.Entries() {
			if err := e.Verify(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// zip64 moves the numbers of the end record, and the sizes of one entry, into
// zip64 records.
func zip64(t testing.TB, b []byte) []byte {
	t.Helper()
	at := directoryAt(t, b, "m/data/weights/weight_0")
	field := make([]byte, 20)
	le.PutUint16(field, 1)
	le.PutUint16(field[2:], 16)
	le.PutUint64(field[4:], uint64(le.Uint32(b[at+24:])))
	le.PutUint64(field[12:], uint64(le.Uint32(b[at+20:])))
	le.PutUint32(b[at+20:], 0xffffffff)
	le.PutUint32(b[at+24:], 0xffffffff)
	le.PutUint16(b[at+30:], 20)
	end := len(b) - endSize
	tail := at + dirSize + len("m/data/weights/weight_0")
	out := bytes.Join([][]byte{b[:tail], field, b[tail:end]}, nil)
	count, offset := uint64(le.Uint16(b[end+10:])), uint64(le.Uint32(b[end+16:]))
	rec := make([]byte, end64Size+locator64)
	copy(rec, "PK\x06\x06")
	le.PutUint64(rec[4:], end64Size-12)
	le.PutUint64(rec[24:], count)
	le.PutUint64(rec[32:], count)
	le.PutUint64(rec[40:], uint64(len(out))-offset)
	le.PutUint64(rec[48:], offset)
	copy(rec[end64Size:], "PK\x06\x07")
	le.PutUint64(rec[end64Size+8:], uint64(len(out)))
	le.PutUint32(rec[end64Size+16:], 1)
	last := bytes.Clone(b[end:])
	for i := 8; i < 20; i++ {
		last[i] = 0xff
	}
	return append(append(out, rec...), last...)
}

func TestRefused(t *testing.T) {
	b := pack(t, good())
	edit := func(f func(b []byte) []byte) []byte { return f(bytes.Clone(b)) }
	record := func(name string, f func(b []byte, at int)) []byte {
		return edit(func(b []byte) []byte { f(b, directoryAt(t, b, name)); return b })
	}
	const weight, format = "m/data/weights/weight_0", "m/archive_format"
	bomb := pack(t, append(good(), item{"m/models/big.json", strings.Repeat("\x00", freeInflated+1), zip.Deflate}))
	for name, tt := range map[string]struct {
		data          []byte
		entry, reason string
	}{
		"empty":             {nil, "", "empty"},
		"not a zip":         {[]byte("hello, this is not an archive at all"), "", "not a zip file"},
		"a program":         {[]byte("\x10\x00\x00\x00ET12 and so on and so on, long enough"), "", "ExecuTorch program"},
		"a pickle":          {[]byte("\x80\x02}q\x00."), "", "pickle"},
		"half":              {b[:len(b)/2], "", "truncated"},
		"tail cut":          {b[:len(b)-1], "", "truncated"},
		"head cut":          {b[100:], "", "outside the file"},
		"bytes in front":    {append([]byte("junk"), b...), "", "in front"},
		"end record only":   {b[len(b)-endSize:], "", "outside the file"},
		"no entries":        {append([]byte("PK\x05\x06"), make([]byte, 18)...), "", "no entries"},
		"too many entries":  {edit(func(b []byte) []byte { le.PutUint16(b[len(b)-endSize+10:], 60000); return b }), "", "do not fit"},
		"too few entries":   {edit(func(b []byte) []byte { le.PutUint16(b[len(b)-endSize+10:], 3); return b }), "", "are left"},
		"zip64 lost":        {edit(func(b []byte) []byte { le.PutUint16(b[len(b)-endSize+10:], 0xffff); return b }), "", "zip64"},
		"other disk":        {edit(func(b []byte) []byte { b[len(b)-endSize+4] = 1; return b }), "", "several"},
		"directory damaged": {record(weight, func(b []byte, at int) { b[at] = 'X' }), "", "damaged directory"},
		"name too long":     {record("m/byteorder", func(b []byte, at int) { le.PutUint16(b[at+28:], 0xffff) }), "", "past its end"},
		"duplicate":         {pack(t, append(good(), item{name: "m/models/model.json", data: "{}"})), "m/models/model.json", "duplicate"},
		"escape":            {pack(t, append(good(), item{name: "m/../../x"})), "m/../../x", "escapes"},
		"absolute":          {pack(t, append(good(), item{name: "/x"})), "/x", "absolute"},
		"backslash":         {pack(t, append(good(), item{name: `..\x`})), `..\x`, "backslash"},
		"drive":             {pack(t, append(good(), item{name: "C:/x"})), "C:/x", "drive"},
		"empty part":        {pack(t, append(good(), item{name: "m//x"})), "m//x", "empty part"},
		"not UTF-8":         {pack(t, append(good(), item{name: "m/\xff"})), "m/\xff", "UTF-8"},
		"no name":           {pack(t, append(good(), item{name: ""})), "", "without a name"},
		"two archives":      {pack(t, append(good(), item{name: "n/archive_format", data: "pt2"})), "n/archive_format", "more than one"},
		"encrypted":         {record(weight, func(b []byte, at int) { b[at+8] |= 1 }), weight, "encrypted"},
		"symbolic link":     {record(weight, func(b []byte, at int) { b[at+5] = madeByUnix; le.PutUint32(b[at+38:], 0o120777<<16) }), weight, "symbolic link"},
		"other method":      {record(weight, func(b []byte, at int) { b[at+10] = 14 }), weight, "method 14"},
		"method differs":    {record(weight, func(b []byte, at int) { b[at+10] = 8 }), weight, "differs"},
		"size differs":      {record(weight, func(b []byte, at int) { b[at+20]++; b[at+24]++ }), weight, "differs"},
		"overlap": {record(format, func(b []byte, at int) {
			// The second entry's directory record points into the first.
			le.PutUint32(b[at+42:], 0)
		}), format, "differs from the directory"},
		"header outside":  {record(format, func(b []byte, at int) { le.PutUint32(b[at+42:], 1<<31) }), format, "outside"},
		"no header":       {record(format, func(b []byte, at int) { le.PutUint32(b[at+42:], 7) }), format, "no local header"},
		"bomb":            {bomb, "m/models/big.json", "more than 200 to 1"},
		"format missing":  {pack(t, without(good(), "m/archive_format", "m/archive_version", "m/byteorder")), "m/archive_format", "missing"},
		"format other":    {pack(t, set(good(), "m/archive_format", "zip")), "m/archive_format", `"zip"`},
		"format long":     {pack(t, set(good(), "m/archive_format", strings.Repeat("p", 1000))), "m/archive_format", "1000 bytes"},
		"version missing": {pack(t, without(good(), "m/archive_version")), "m/archive_version", "missing"},
		"version other":   {pack(t, set(good(), "m/archive_version", "99")), "m/archive_version", `"99"`},
		"big endian":      {pack(t, set(good(), "m/byteorder", "big")), "m/byteorder", `"big"`},
		"no model":        {pack(t, without(good(), "m/models/model.json")), "m/models/", "no models/NAME.json"},
		"compiled only":   {pack(t, set(without(good(), "m/models/model.json"), "m/data/aotinductor/model/x.so", "")), "m/models/", "AOTInductor"},
		"torch.save":      {pack(t, []item{{name: "m/data.pkl"}}), "m/data.pkl", "torch.save"},
		"TorchScript":     {pack(t, []item{{name: "m/constants.pkl"}, {name: "m/data.pkl"}}), "m/constants.pkl", "TorchScript"},
		"old export":      {pack(t, []item{{name: "archive/serialized_exported_program.json"}}), "archive/serialized_exported_program.json", "before 2.8"},
	} {
		a, err := New(tt.data, "m.pt2")
		var ae *Error
		if !errors.As(err, &ae) {
			t.Errorf("%s: got %v, %v; want an *Error", name, a, err)
			continue
		}
		if ae.Entry != tt.entry || !strings.Contains(ae.Error(), tt.reason) || ae.File != "m.pt2" {
			t.Errorf("%s: %q of entry %q; want %q of %q", name, ae, ae.Entry, tt.reason, tt.entry)
		}
	}
}

func TestOverlap(t *testing.T) {
	// A stored entry that holds the local header of the next inside its data.
	b := pack(t, good())
	at := directoryAt(t, b, "m/data/weights/weight_0")
	for _, off := range []int{20, 24} {
		le.PutUint32(b[at+off:], 800)
	}
	le.PutUint16(b[6:], 8) // the local header leaves the sizes to a descriptor
	var ae *Error
	if _, err := New(b, "m.pt2"); !errors.As(err, &ae) || !strings.Contains(ae.Reason, "overlaps entry m/data/weights/weight_0") {
		t.Errorf("got %v", err)
	}
}

func TestDamagedContents(t *testing.T) {
	for _, method := range []uint16{zip.Store, zip.Deflate} {
		items := good()
		items[0].method, items[2].method = method, method
		b := pack(t, items)
		a, err := New(b, "m.pt2")
		if err != nil {
			t.Fatal(err)
		}
		e, err := a.Get("data/weights/weight_0")
		if err != nil {
			t.Fatal(err)
		}
		b[e.offset+e.packed-1] ^= 0x40
		for what, err := range map[string]error{"verify": e.Verify(), "bytes": func() error { _, err := e.Bytes(); return err }()} {
			var ae *Error
			if !errors.As(err, &ae) || ae.Entry != "m/data/weights/weight_0" {
				t.Errorf("%s of damaged contents, method %d: %v", what, method, err)
			}
		}
		if _, ok := e.View(); ok != (method == zip.Store) {
			t.Errorf("view of method %d: %v", method, ok)
		}
	}

	// A damaged word of the archive itself is found when it is opened.
	b := pack(t, good())
	i := bytes.Index(b, []byte("m/archive_formatpt2"))
	b[i+len("m/archive_format")] = 'q'
	if _, err := New(b, "m.pt2"); err == nil || !strings.Contains(err.Error(), "CRC mismatch") {
		t.Errorf("got %v", err)
	}

	// The directory lies about an inflated size.
	items := good()
	items[0].method = zip.Deflate
	b = pack(t, items)
	at := directoryAt(t, b, "m/data/weights/weight_0")
	le.PutUint32(b[at+24:], 511)
	le.PutUint32(b[22:], 511)
	a, err := New(b, "m.pt2")
	if err != nil {
		t.Fatal(err)
	}
	if e, _ := a.Lookup("data/weights/weight_0"); e.Verify() == nil {
		t.Error("a wrong size is not found")
	}
}

func TestFileCutShort(t *testing.T) {
	items := set(good(), "m/data/weights/weight_0", strings.Repeat("w", 1<<20))
	path := filepath.Join(t.TempDir(), "m.pt2")
	if err := os.WriteFile(path, pack(t, items), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if a.unmap == nil {
		t.Skip("files are not mapped on this system")
	}
	if err := os.Truncate(path, 5000); err != nil {
		t.Skipf("a mapped file cannot be cut here: %v", err)
	}
	e, _ := a.Lookup("data/weights/weight_0")
	if _, err := e.Bytes(); err == nil || !strings.Contains(err.Error(), "shorter") {
		t.Errorf("got %v", err)
	}
	if err := e.Verify(); err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("got %v", err)
	}
}

func TestErrorText(t *testing.T) {
	e := &Error{File: "a.pt2", Entry: "m/\x1b[31m", Reason: "bad", Try: "try that", Err: io.EOF}
	if got, want := e.Error(), `a.pt2: entry "m/\x1b[31m": bad: EOF (try that)`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if !errors.Is(e, io.EOF) {
		t.Error("the cause is lost")
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, err := Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("got %v", err)
	}
}

func FuzzNew(f *testing.F) {
	f.Add(pack(f, good()))
	f.Add(zip64(f, pack(f, good())))
	deflated := good()
	for i := range deflated {
		deflated[i].method = zip.Deflate
	}
	f.Add(pack(f, deflated))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := New(b, "x")
		if err != nil {
			var ae *Error
			if !errors.As(err, &ae) {
				t.Fatalf("error is a %T", err)
			}
			return
		}
		for _, e := range a.Entries() {
			if err := e.Verify(); err != nil {
				continue
			}
			if b, err := e.Bytes(); err != nil || int64(len(b)) != e.Size() {
				t.Errorf("%s: %d of %d bytes, %v", e.FullName(), len(b), e.Size(), err)
			}
		}
	})
}
