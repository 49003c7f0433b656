// Package schema is the archive's model.json and its weight lists as Go structures, with a decoder that is fast, has a
// bounded depth and knows exactly the schema: structures and their decoding are generated from schema.facts.
package schema

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"

	"github.com/lathe-ml/lathe/internal/shuffle"
)

// Nesting deeper than this is an attack: real programs stay below fifty, eight for each conditional in a conditional.
const maxDepth = 2000

// A list of nodes longer than this many bytes is decoded by several goroutines.
const splitMin = 256 << 10

// Error says where in the JSON text what was found.
type Error struct {
	// Path is the place as a path of fields: graph_module.graph.nodes[3].inputs[0].arg.
	Path string
	// Off is the offset in bytes.
	Off int
	Msg string
}

// Error is "path: message (byte N)".
func (e *Error) Error() string {
	p := e.Path
	if p == "" {
		p = "top level"
	}
	return fmt.Sprintf("%s: %s (byte %d)", p, e.Msg, e.Off)
}

// under puts a path in front of the error's.
func under(err error, path string) error {
	var e *Error
	if errors.As(err, &e) {
		switch {
		case e.Path == "":
			e.Path = path
		case e.Path[0] == '[':
			e.Path = path + e.Path
		default:
			e.Path = path + "." + e.Path
		}
	}
	return err
}

// Opt is an optional scalar.
type Opt[T any] struct {
	V  T
	OK bool
}

// Entry is one entry of a JSON object that is used as a dictionary.
type Entry[T any] struct {
	Key   string
	Value T
}

// Dict is a dictionary in the order of the text.
type Dict[T any] []Entry[T]

// Get finds the first entry of a small dictionary.
func (d Dict[T]) Get(key string) (v T, ok bool) {
	for i := range d {
		if d[i].Key == key {
			return d[i].Value, true
		}
	}
	return v, false
}

// unread is the metadata that is stepped over: it repeats the history of every node at length, and nobody here reads it.
const unread = "from_node"

type decoder struct {
	b     []byte
	i     int
	depth int
	strs  map[string]string // decoded strings by their text
	skips *skips
	pool  *pool // of the workers; nil in a worker and where nothing is to be split
}

// skips are the names of unknown fields.
type skips struct {
	sync.Mutex
	names []string
}

func (s *skips) add(name string) {
	s.Lock()
	defer s.Unlock()
	if len(s.names) < 16 && !slices.Contains(s.names, name) {
		s.names = append(s.names, name)
	}
}

type pool struct {
	wg     sync.WaitGroup
	failed atomic.Bool
}

// decode runs f over the whole text. It gives the names of fields that the schema does not know.
func decode(b []byte, f func(*decoder) error) (unknown []string, err error) {
	if bytes.HasPrefix(b, []byte("\xef\xbb\xbf")) {
		return nil, &Error{Msg: "the text begins with a byte order mark, which JSON does not allow"}
	}
	run := func(p *pool) error {
		d := &decoder{b: b, strs: map[string]string{}, skips: &skips{}, pool: p}
		err := f(d)
		if p != nil {
			p.wg.Wait()
		}
		if err == nil {
			if d.space(); d.i < len(b) {
				err = d.fail("text after the value")
			}
		}
		unknown = d.skips.names
		return err
	}
	p := &pool{}
	if err = run(p); err == nil && !p.failed.Load() {
		slices.Sort(unknown)
		return unknown, nil
	}
	// Once more in order, for the first error and its path.
	if err = run(nil); err == nil {
		err = errors.New("schema: workers disagree with the sequential decoder")
	}
	return nil, err
}

func (d *decoder) fail(format string, args ...any) error {
	return &Error{Off: d.i, Msg: fmt.Sprintf(format, args...)}
}

func (d *decoder) space() {
	for d.i < len(d.b) {
		switch d.b[d.i] {
		case ' ', '\n', '\t', '\r':
			d.i++
		default:
			return
		}
	}
}

// next skips white space and gives the next byte without taking it, 0 at the end.
func (d *decoder) next() byte {
	if d.i < len(d.b) {
		if c := d.b[d.i]; c > ' ' {
			return c
		}
	}
	d.space()
	if d.i < len(d.b) {
		return d.b[d.i]
	}
	return 0
}

// found names what stands at the cursor.
func (d *decoder) found() string {
	switch c := d.next(); {
	case c == 0 && d.i >= len(d.b):
		return "the end of the text"
	case c == '{':
		return "an object"
	case c == '[':
		return "an array"
	case c == '"':
		return "a string"
	case c == '-' || c >= '0' && c <= '9':
		return "a number"
	case bytes.HasPrefix(d.b[d.i:], []byte("null")):
		return "null"
	case c == 't' || c == 'f':
		return "a bool"
	default:
		return strconv.QuoteRune(rune(c))
	}
}

func (d *decoder) want(what string) error {
	err := d.fail("%s where %s should be", d.found(), what)
	if c := d.next(); c == '[' || c == '{' {
		// Say so where what stands here is beyond all bounds too.
		if e := d.skip(); e != nil {
			return e
		}
	}
	return err
}

func (d *decoder) enter() error {
	if d.depth++; d.depth > maxDepth {
		return d.fail("nested deeper than %d levels", maxDepth)
	}
	return nil
}

// null takes a null.
func (d *decoder) null() bool {
	if d.next() == 'n' && bytes.HasPrefix(d.b[d.i:], []byte("null")) {
		d.i += 4
		return true
	}
	return false
}

// object decodes an object: f decodes the value of a key and tells the field's bit, zero for none. The bits of the fields
// that were there are given back.
func (d *decoder) object(f func(key []byte) (bit uint64, err error)) (seen uint64, err error) {
	if d.next() != '{' {
		return 0, d.want("an object")
	}
	if err := d.enter(); err != nil {
		return 0, err
	}
	d.i++
	if d.next() == '}' {
		d.i++
		d.depth--
		return 0, nil
	}
	for {
		start := d.i
		key, err := d.key()
		if err != nil {
			return 0, err
		}
		bit, err := f(key)
		if err != nil {
			return 0, under(err, string(key))
		}
		if seen&bit != 0 {
			d.i = start
			return 0, d.fail("field %q stands twice", key)
		}
		seen |= bit
		if more, err := d.more('}'); err != nil || !more {
			return seen, err
		}
	}
}

// more takes a comma (true) or the closing bracket.
func (d *decoder) more(closing byte) (bool, error) {
	switch d.next() {
	case ',':
		d.i++
		return true, nil
	case closing:
		d.i++
		d.depth--
		return false, nil
	}
	return false, d.want("',' or '" + string(closing) + "'")
}

// key takes a key and the colon. The bytes are valid until the next call where the key has escapes.
func (d *decoder) key() ([]byte, error) {
	raw, esc, err := d.raw()
	if err != nil {
		return nil, err
	}
	if esc {
		s, err := d.unescape(raw)
		if err != nil {
			return nil, err
		}
		raw = []byte(s)
	}
	if d.next() != ':' {
		return nil, d.want("':'")
	}
	d.i++
	return raw, nil
}

// raw takes a string and gives the text between its quotes.
func (d *decoder) raw() (raw []byte, escaped bool, err error) {
	if d.next() != '"' {
		return nil, false, d.want("a string")
	}
	start := d.i + 1
	end := endOfString(d.b, start)
	if end < 0 {
		d.i = len(d.b)
		return nil, false, d.fail("the text ends within a string")
	}
	raw = d.b[start:end]
	d.i = end + 1
	return raw, bytes.IndexByte(raw, '\\') >= 0, nil
}

// endOfString finds the closing quote of the string whose text begins at i, or -1.
func endOfString(b []byte, i int) int {
	for {
		k := bytes.IndexByte(b[i:], '"')
		if k < 0 {
			return -1
		}
		end := i + k
		n := 0
		for j := end - 1; j >= i && b[j] == '\\'; j-- {
			n++
		}
		if n%2 == 0 {
			return end
		}
		// The quote is escaped; what follows begins without a pending backslash.
		i = end + 1
	}
}

// str takes a string; equal strings are stored once.
func (d *decoder) str(out *string) error {
	raw, esc, err := d.raw()
	if err != nil {
		return err
	}
	// The key is not copied: the text outlives the decoder.
	if s, ok := d.strs[string(raw)]; ok {
		*out = s
		return nil
	}
	if !utf8.Valid(raw) {
		return d.fail("string is not UTF-8")
	}
	for _, c := range raw {
		if c < ' ' {
			return d.fail("control character in a string")
		}
	}
	var s string
	if esc {
		if s, err = d.unescape(raw); err != nil {
			return err
		}
	} else {
		s = string(raw)
	}
	if len(raw) > 0 {
		d.strs[unsafe.String(&raw[0], len(raw))] = s
	}
	*out = s
	return nil
}

func (d *decoder) unescape(raw []byte) (string, error) {
	var b strings.Builder
	b.Grow(len(raw))
	for len(raw) > 0 {
		k := bytes.IndexByte(raw, '\\')
		if k < 0 {
			b.Write(raw)
			break
		}
		b.Write(raw[:k])
		raw = raw[k+1:]
		if len(raw) == 0 {
			return "", d.fail("bad escape in a string")
		}
		c := raw[0]
		raw = raw[1:]
		switch c {
		case '"', '\\', '/':
			b.WriteByte(c)
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case 'b':
			b.WriteByte('\b')
		case 'f':
			b.WriteByte('\f')
		case 'u':
			r, ok := hex4(raw)
			if !ok {
				return "", d.fail("bad \\u escape in a string")
			}
			raw = raw[4:]
			if utf16.IsSurrogate(r) {
				r2, ok := rune(0), false
				if len(raw) >= 6 && raw[0] == '\\' && raw[1] == 'u' {
					r2, ok = hex4(raw[2:])
				}
				if r = utf16.DecodeRune(r, r2); ok && r != utf8.RuneError {
					raw = raw[6:]
				} else {
					r = utf8.RuneError
				}
			}
			b.WriteRune(r)
		default:
			return "", d.fail("bad escape in a string")
		}
	}
	return b.String(), nil
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range b[:4] {
		r <<= 4
		switch {
		case c >= '0' && c <= '9':
			r |= rune(c - '0')
		case c >= 'a' && c <= 'f':
			r |= rune(c-'a') + 10
		case c >= 'A' && c <= 'F':
			r |= rune(c-'A') + 10
		default:
			return 0, false
		}
	}
	return r, true
}

func (d *decoder) bool(out *bool) error {
	switch d.next() {
	case 't':
		if bytes.HasPrefix(d.b[d.i:], []byte("true")) {
			d.i += 4
			*out = true
			return nil
		}
	case 'f':
		if bytes.HasPrefix(d.b[d.i:], []byte("false")) {
			d.i += 5
			*out = false
			return nil
		}
	}
	return d.want("true or false")
}

// number takes a JSON number and tells whether it is written as an integer.
func (d *decoder) number() (text []byte, integer bool, err error) {
	d.next()
	b, i := d.b, d.i
	digits := func() bool {
		n := i
		for i < len(b) && b[i] >= '0' && b[i] <= '9' {
			i++
		}
		return i > n
	}
	if i < len(b) && b[i] == '-' {
		i++
	}
	first := i
	if !digits() || i > first+1 && b[first] == '0' {
		return nil, false, d.want("a number")
	}
	integer = true
	if i < len(b) && b[i] == '.' {
		i++
		integer = false
		if !digits() {
			return nil, false, d.fail("bad number")
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		integer = false
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if !digits() {
			return nil, false, d.fail("bad number")
		}
	}
	text = b[d.i:i]
	d.i = i
	return text, integer, nil
}

func (d *decoder) int(out *int64) error {
	start := d.i
	text, integer, err := d.number()
	if err != nil {
		return err
	}
	if !integer {
		d.i = start
		return d.fail("%.40s where an integer should be", text)
	}
	neg := text[0] == '-'
	digits := text
	if neg {
		digits = text[1:]
	}
	var n uint64
	for _, c := range digits {
		k := uint64(c - '0')
		if n > (math.MaxUint64-k)/10 {
			n = math.MaxUint64
			break
		}
		n = n*10 + k
	}
	limit := uint64(math.MaxInt64)
	if neg {
		limit++
	}
	if n > limit {
		d.i = start
		return d.fail("integer %.40s does not fit 64 bits", text)
	}
	if neg {
		*out = -int64(n)
	} else {
		*out = int64(n)
	}
	return nil
}

// float takes a number, or one that is not finite, quoted or bare.
func (d *decoder) float(out *float64) error {
	quote := d.next() == '"'
	if quote {
		d.i++
	}
	for _, w := range [...]struct {
		text string
		f    float64
	}{{"NaN", math.NaN()}, {"Infinity", math.Inf(1)}, {"-Infinity", math.Inf(-1)}} {
		if bytes.HasPrefix(d.b[d.i:], []byte(w.text)) {
			d.i += len(w.text)
			if quote {
				if d.i >= len(d.b) || d.b[d.i] != '"' {
					return d.fail("bad number in quotes")
				}
				d.i++
			}
			*out = w.f
			return nil
		}
	}
	if quote {
		d.i--
		return d.want("a number")
	}
	text, _, err := d.number()
	if err != nil {
		return err
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return d.fail("number %.40s does not fit a float64", text)
	}
	*out = f
	return nil
}

// skip takes a value of any kind, without recursion.
func (d *decoder) skip() error {
	var open []byte // the brackets that are to close
	for {
		if len(open) > 0 && open[len(open)-1] == '}' {
			if _, err := d.key(); err != nil {
				return err
			}
		}
		switch c := d.next(); {
		case c == '{' || c == '[':
			if err := d.enter(); err != nil {
				return err
			}
			d.i++
			open = append(open, c+2) // both pairs lie two apart in ASCII
			if d.next() != c+2 {
				continue
			}
		case c == '"':
			if _, _, err := d.raw(); err != nil {
				return err
			}
		case c == 't' || c == 'f':
			var b bool
			if err := d.bool(&b); err != nil {
				return err
			}
		case c == 'n' && d.null():
		default:
			var f float64
			if err := d.float(&f); err != nil {
				return err
			}
		}
		for {
			if len(open) == 0 {
				return nil
			}
			closing := open[len(open)-1]
			if d.next() == closing {
				d.i++
				d.depth--
				open = open[:len(open)-1]
				continue
			}
			if d.next() != ',' {
				return d.want("',' or '" + string(closing) + "'")
			}
			d.i++
			break
		}
	}
}

func (d *decoder) unknown(key []byte) (uint64, error) {
	d.skips.add(string(key))
	return 0, d.skip()
}

// missing tells the first required field that was not seen.
func (d *decoder) missing(seen, required uint64, names []string) error {
	for i, n := range names {
		if bit := uint64(1) << i; required&bit != 0 && seen&bit == 0 {
			return d.fail("field %q is missing", n)
		}
	}
	return nil
}

func list[T any](d *decoder, out *[]T, elem func(*decoder, *T) error) error {
	if d.next() != '[' {
		return d.want("an array")
	}
	if err := d.enter(); err != nil {
		return err
	}
	d.i++
	l := []T{}
	if d.next() == ']' {
		d.i++
		d.depth--
		*out = l
		return nil
	}
	for {
		var v T
		if err := elem(d, &v); err != nil {
			return under(err, "["+strconv.Itoa(len(l))+"]")
		}
		l = append(l, v)
		more, err := d.more(']')
		if err != nil {
			return under(err, "["+strconv.Itoa(len(l))+"]")
		}
		if !more {
			*out = l
			return nil
		}
	}
}

func dict[T any](d *decoder, out *Dict[T], elem func(*decoder, *T) error) error {
	l := Dict[T]{}
	_, err := d.object(func(key []byte) (uint64, error) {
		if string(key) == unread {
			return 0, d.skip()
		}
		if !utf8.Valid(key) {
			return 0, d.fail("name is not UTF-8")
		}
		e := Entry[T]{Key: d.intern(key)}
		if err := elem(d, &e.Value); err != nil {
			return 0, err
		}
		l = append(l, e)
		return 0, nil
	})
	*out = l
	return err
}

func (d *decoder) intern(b []byte) string {
	if s, ok := d.strs[string(b)]; ok {
		return s
	}
	s := string(b)
	d.strs[s] = s
	return s
}

// splitList is list for long lists: the ends of the elements are found by counting brackets, then workers decode the
// elements in place while this decoder goes on behind the list. An error of a worker is found again in order.
func splitList[T any](d *decoder, out *[]T, elem func(*decoder, *T) error) error {
	if d.pool == nil || len(d.b)-d.i < splitMin || d.next() != '[' {
		return list(d, out, elem)
	}
	starts, end, ok := elements(d.b, d.i)
	if !ok || len(starts) < 2 {
		return list(d, out, elem)
	}
	l := make([]T, len(starts))
	*out = l
	workers := shuffle.Workers(min(runtime.GOMAXPROCS(0), 8))
	batch := max(16, min(1024, len(starts)/(4*workers)))
	order := shuffle.Order((len(l) + batch - 1) / batch)
	var taken atomic.Int64
	depth, skips, pool, b := d.depth+1, d.skips, d.pool, d.b
	for range workers {
		pool.wg.Add(1)
		go func() {
			defer pool.wg.Done()
			w := &decoder{b: b, depth: depth, strs: map[string]string{}, skips: skips}
			for !pool.failed.Load() {
				shuffle.Pause()
				i := int(taken.Add(1)) - 1
				if i*batch >= len(l) {
					return
				}
				if order != nil {
					i = order[i]
				}
				for k := i * batch; k < min((i+1)*batch, len(l)); k++ {
					w.i = starts[k]
					if err := elem(w, &l[k]); err != nil {
						pool.failed.Store(true)
						return
					}
					stop := end - 1
					if k+1 < len(starts) {
						stop = starts[k+1] - 1
					}
					if w.space(); w.i != stop {
						pool.failed.Store(true)
						return
					}
				}
			}
		}()
	}
	d.i = end
	return nil
}

// elements finds the elements of the array that begins at i and the place behind it. It only counts brackets; not ok
// means that the text is damaged.
func elements(b []byte, i int) (starts []int, end int, ok bool) {
	depth := 0
	i++
	starts = append(starts, i)
	for i < len(b) {
		switch b[i] {
		case '"':
			e := endOfString(b, i+1)
			if e < 0 {
				return nil, 0, false
			}
			i = e
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return starts, i + 1, true
			}
			depth--
		case ',':
			if depth == 0 {
				starts = append(starts, i+1)
			}
		}
		i++
	}
	return nil, 0, false
}

// Version finds the schema version and the version of torch in a model.json that need not be of a known schema.
func Version(b []byte) (v SchemaVersion, torch string, err error) {
	have := false
	_, err = decode(b, func(d *decoder) error {
		d.pool = nil
		_, err := d.object(func(key []byte) (uint64, error) {
			switch string(key) {
			case "schema_version":
				have = true
				return 0, d.decSchemaVersion(&v)
			case "torch_version":
				return 0, d.str(&torch)
			}
			return 0, d.skip()
		})
		return err
	})
	if err == nil && !have {
		err = &Error{Msg: `field "schema_version" is missing`}
	}
	return v, torch, err
}
