package archive

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	localSize    = 30 // fixed parts of the records
	dirSize      = 46
	endSize      = 22
	end64Size    = 56
	locator64    = 20
	maxEntries   = 1 << 20
	maxName      = 1 << 12
	methodStored = 0
	methodFlate  = 8

	// Compressed entries are inflated into memory, so there are limits.
	maxInflated  = 1 << 30  // bytes of one entry
	sumInflated  = 2 << 30  // bytes of all
	freeInflated = 16 << 20 // bytes that may be compressed at any ratio
	maxRatio     = 200
)

var le = binary.LittleEndian

var signatures = []struct{ magic, what, try string }{
	{"PK\x03\x04", "a zip file without its directory: truncated, or still being written", "copy or download it again"},
	{"\x7fELF", "an ELF binary, not an archive of torch.export.save", ""},
	{"GGUF", "a GGUF file, not an archive of torch.export.save", "export the model with torch.export.export"},
	{"\x80\x02", "a Python pickle, not an archive of torch.export.save", "save with torch.export.save, not torch.save"},
	{"\x89HDF", "an HDF5 file, not an archive of torch.export.save", ""},
}

// notZip says what a file without a zip directory is.
func (a *Archive) notZip() error {
	if len(a.data) == 0 {
		return a.errorf("", "the file is empty", tryExport)
	}
	for _, s := range signatures {
		if bytes.HasPrefix(a.data, []byte(s.magic)) {
			return a.errorf("", s.what, s.try)
		}
	}
	if len(a.data) >= 8 && string(a.data[4:6]) == "ET" {
		return a.errorf("", "an ExecuTorch program, which is what lathe writes", "give the .pt2 file it was made from")
	}
	return a.errorf("", "not a zip file, so not an archive of torch.export.save", tryExport)
}

// findEnd returns the offset of the record that ends the directory.
func (a *Archive) findEnd() (int, bool) {
	d := a.data
	lo := max(0, len(d)-endSize-0xffff)
	for i := len(d) - endSize; i >= lo; i-- {
		if d[i] == 'P' && string(d[i:i+4]) == "PK\x05\x06" && i+endSize+int(le.Uint16(d[i+20:])) <= len(d) {
			return i, true
		}
	}
	return 0, false
}

// readDirectory reads and checks the directory and every local header. It looks
// nowhere else for entries: weights and sample inputs may be zip files themselves.
func (a *Archive) readDirectory() ([]*Entry, error) {
	d := a.data
	end, ok := a.findEnd()
	if !ok {
		return nil, a.notZip()
	}
	if extra := len(d) - end - endSize - int(le.Uint16(d[end+20:])); extra > 0 {
		a.notes = append(a.notes, "bytes after the end of the archive are ignored")
	}
	if le.Uint16(d[end+4:]) != 0 && le.Uint16(d[end+4:]) != 0xffff {
		return nil, a.errorf("", "one disk of a zip file of several", "join the parts first")
	}
	count, size, offset := uint64(le.Uint16(d[end+10:])), uint64(le.Uint32(d[end+12:])), uint64(le.Uint32(d[end+16:]))
	limit := uint64(end) // where the directory must end
	if loc := end - locator64; loc >= 0 && string(d[loc:loc+4]) == "PK\x06\x07" {
		at := le.Uint64(d[loc+8:])
		if at > uint64(loc) || uint64(loc)-at < end64Size || string(d[at:at+4]) != "PK\x06\x06" {
			return nil, a.errorf("", "the zip64 directory record is not where its locator says", tryExport)
		}
		count, size, offset = le.Uint64(d[at+32:]), le.Uint64(d[at+40:]), le.Uint64(d[at+48:])
		limit = at
	} else if count == 0xffff || size == 0xffffffff || offset == 0xffffffff {
		return nil, a.errorf("", "a zip64 archive without its zip64 record", tryExport)
	}
	switch {
	case count == 0:
		return nil, a.errorf("", "the archive has no entries", tryExport)
	case count > maxEntries:
		return nil, a.errorf("", "the archive claims %d entries, more than %d", tryExport, count, maxEntries)
	case size > limit || offset > limit-size:
		return nil, a.errorf("", "the directory (%d bytes at %d) is outside the file of %d bytes: truncated or damaged", "copy or download it again", size, offset, len(d))
	case offset+size != limit:
		return nil, a.errorf("", "the directory does not end where the end record starts: bytes were put in front of the archive or inside it", tryExport)
	case count > size/dirSize:
		return nil, a.errorf("", "%d entries do not fit a directory of %d bytes", tryExport, count, size)
	}

	dir := d[offset : offset+size]
	block := make([]Entry, count)
	all := make([]*Entry, count)
	seen := make(map[string]struct{}, count)
	var inflated uint64
	for i := range all {
		e := &block[i]
		e.archive = a
		n, err := a.readRecord(e, dir, int64(offset))
		if err != nil {
			return nil, err
		}
		dir = dir[n:]
		if _, twice := seen[e.full]; twice {
			return nil, a.errorf(e.full, "duplicate entry name", tryExport)
		}
		seen[e.full] = struct{}{}
		if e.method == methodFlate {
			if inflated += uint64(e.size); inflated > sumInflated {
				return nil, a.errorf(e.full, "compressed entries add up to more than %d bytes", "store entries without compression, as torch.export.save does", int64(sumInflated))
			}
		}
		all[i] = e
	}
	if len(dir) > 0 {
		return nil, a.errorf("", "%d bytes of the directory are left after its %d entries", tryExport, len(dir), count)
	}

	byOffset := slices.Clone(all)
	slices.SortStableFunc(byOffset, func(x, y *Entry) int {
		switch {
		case x.header < y.header:
			return -1
		case x.header > y.header:
			return 1
		}
		return 0
	})
	for i, e := range byOffset[1:] {
		if prev := byOffset[i]; prev.offset+prev.packed > e.header {
			return nil, a.errorf(e.full, "overlaps entry %s", tryExport, quoteName(prev.full))
		}
	}
	return all, nil
}

// madeByUnix is the system whose file modes are the upper half of a record's outer attributes.
const madeByUnix = 3

// readRecord reads the first record of dir, whose archive's data ends at limit,
// and checks the local header. It returns the record's length.
func (a *Archive) readRecord(e *Entry, dir []byte, limit int64) (int, error) {
	if len(dir) < dirSize || string(dir[:4]) != "PK\x01\x02" {
		return 0, a.errorf("", "damaged directory", "copy or download the file again")
	}
	flags := le.Uint16(dir[8:])
	e.method, e.crc = le.Uint16(dir[10:]), le.Uint32(dir[16:])
	nameLen, extraLen, commentLen := int(le.Uint16(dir[28:])), int(le.Uint16(dir[30:])), int(le.Uint16(dir[32:]))
	n := dirSize + nameLen + extraLen + commentLen
	if n > len(dir) {
		return 0, a.errorf("", "damaged directory: a record runs past its end", "copy or download the file again")
	}
	e.full = string(dir[dirSize : dirSize+nameLen])
	if reason := badName(e.full); reason != "" {
		return 0, a.errorf(e.full, "%s", tryExport, reason)
	}
	packed, size, header := uint64(le.Uint32(dir[20:])), uint64(le.Uint32(dir[24:])), uint64(le.Uint32(dir[42:]))
	extra := dir[dirSize+nameLen : dirSize+nameLen+extraLen]
	if !zip64Values(extra, &size, &packed, &header) {
		return 0, a.errorf(e.full, "damaged zip64 sizes", tryExport)
	}
	switch {
	case flags&(1|1<<6|1<<13) != 0:
		return 0, a.errorf(e.full, "encrypted", "save the archive without a password")
	case dir[5] == madeByUnix && le.Uint32(dir[38:])>>16&0o170000 == 0o120000:
		return 0, a.errorf(e.full, "a symbolic link; nothing outside of the archive is read", tryExport)
	case e.method != methodStored && e.method != methodFlate:
		return 0, a.errorf(e.full, "compressed by method %d; only stored and deflated entries can be read", "store entries without compression, as torch.export.save does", e.method)
	case header > uint64(limit) || uint64(limit)-header < localSize:
		return 0, a.errorf(e.full, "starts at %d, outside the %d bytes of data: truncated or damaged", "copy or download the file again", header, limit)
	}
	local := a.data[header:limit]
	ln, lx := int(le.Uint16(local[26:])), int(le.Uint16(local[28:]))
	if string(local[:4]) != "PK\x03\x04" || len(local) < localSize+ln+lx {
		return 0, a.errorf(e.full, "no local header at %d", "copy or download the file again", header)
	}
	if name := string(local[localSize : localSize+ln]); name != e.full {
		return 0, a.errorf(e.full, "local header name %s differs from the directory", tryExport, quoteName(name))
	}
	lflags := le.Uint16(local[6:])
	lsize, lpacked := uint64(le.Uint32(local[22:])), uint64(le.Uint32(local[18:]))
	if !zip64Values(local[localSize+ln:localSize+ln+lx], &lsize, &lpacked, nil) {
		return 0, a.errorf(e.full, "damaged zip64 sizes in the local header", tryExport)
	}
	switch {
	case lflags&(1|1<<6|1<<13) != 0:
		return 0, a.errorf(e.full, "encrypted", "save the archive without a password")
	case le.Uint16(local[8:]) != e.method:
		return 0, a.errorf(e.full, "compression method differs between directory and local header", tryExport)
	case lflags&(1<<3) == 0 && (lsize != size || lpacked != packed || le.Uint32(local[14:]) != e.crc):
		// With the flag, the sizes follow the data.
		return 0, a.errorf(e.full, "size or checksum differs between directory and local header", tryExport)
	}
	start := header + uint64(localSize+ln+lx)
	if packed > uint64(limit)-start {
		return 0, a.errorf(e.full, "%d bytes at %d run past the data's end at %d: truncated or damaged", "copy or download the file again", packed, start, limit)
	}
	switch {
	case e.method == methodStored && packed != size:
		return 0, a.errorf(e.full, "stored entry of %d bytes takes %d", tryExport, size, packed)
	case e.method == methodFlate && size > maxInflated:
		return 0, a.errorf(e.full, "compressed entry of %d bytes; at most %d are inflated", "store entries without compression, as torch.export.save does", size, int64(maxInflated))
	case e.method == methodFlate && size > freeInflated && size/maxRatio > packed:
		return 0, a.errorf(e.full, "%d bytes compressed to %d: more than %d to 1", "store entries without compression, as torch.export.save does", size, packed, maxRatio)
	}
	e.header, e.offset, e.packed, e.size = int64(header), int64(start), int64(packed), int64(size)
	return n, nil
}

// zip64Values replaces the values that are all ones by those of the zip64 field.
func zip64Values(extra []byte, size, packed, header *uint64) bool {
	needed := false
	for _, v := range []*uint64{size, packed, header} {
		needed = needed || v != nil && *v == 0xffffffff
	}
	for len(extra) >= 4 {
		id, n := le.Uint16(extra), int(le.Uint16(extra[2:]))
		if len(extra) < 4+n {
			return !needed
		}
		field := extra[4 : 4+n]
		extra = extra[4+n:]
		if id != 1 {
			continue
		}
		for _, v := range []*uint64{size, packed, header} {
			if v == nil || *v != 0xffffffff {
				continue
			}
			if len(field) < 8 {
				return false
			}
			*v, field = le.Uint64(field), field[8:]
		}
		return true
	}
	return !needed
}

// badName returns why a name is not accepted. Entries are never extracted, but
// such a name has no honest use, and tools down the line might extract them.
func badName(s string) string {
	switch {
	case s == "":
		return "entry without a name"
	case len(s) > maxName:
		return "name is too long"
	case !utf8.ValidString(s):
		return "name is not UTF-8"
	case strings.ContainsAny(s, "\x00\\"):
		return "name holds a backslash or NUL"
	case s[0] == '/':
		return "absolute name"
	case len(s) > 1 && s[1] == ':':
		return "name with a drive letter"
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(s, "/"), "/") {
		switch part {
		case "..":
			return "name escapes the archive"
		case ".", "":
			return "name has an empty part"
		}
	}
	return ""
}
