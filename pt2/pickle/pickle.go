// Package pickle reads Python pickles as data. Nothing is imported, called or executed: classes and functions are names,
// and what a pickle would build by calling one is recorded as the call. Names that are not allowed are refused.
package pickle

import (
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf8"
)

// A loaded value is one of
//
//	nil, bool, int64, float64, string, []byte
//	Tuple, *List (lists and sets), *Dict
//	Global, *Object, Persistent

// Tuple is a tuple.
type Tuple []any

// List is a list or a set, in order.
type List struct{ Items []any }

// Dict is a dictionary in order.
type Dict struct{ Keys, Values []any }

// Get finds the value of a string key.
func (d *Dict) Get(key string) (any, bool) {
	for i, k := range d.Keys {
		if k == key {
			return d.Values[i], true
		}
	}
	return nil, false
}

// Global is the name of a class, function or constant.
type Global struct{ Module, Name string }

// String is module.name.
func (g Global) String() string { return g.Module + "." + g.Name }

// Object is what a call of Class with Args would give, with the state, items and entries that it would be given then.
type Object struct {
	Class Global
	Args  Tuple
	// KwArgs are the keyword arguments of a constructor, nil mostly.
	KwArgs *Dict
	State  any
	List   List
	Dict   Dict
}

// Persistent is a reference out of the pickle.
type Persistent struct{ ID any }

// Error says what at which byte is wrong.
type Error struct {
	Off int
	Msg string
}

// Error is the message and the place.
func (e *Error) Error() string { return fmt.Sprintf("pickle: %s (byte %d)", e.Msg, e.Off) }

// Torch writes protocol 2; the later ones are Python's own. The text instructions of the first two are not read.
const maxProtocol = 5

type machine struct {
	b     []byte
	i     int
	stack []any
	marks []int
	memo  map[uint64]any
	allow func(Global) bool
}

// Load reads a pickle. Every name in it has to be allowed.
func Load(b []byte, allow func(Global) bool) (v any, err error) {
	m := &machine{b: b, memo: map[uint64]any{}, allow: allow}
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(*Error)
			if !ok {
				panic(r)
			}
			v, err = nil, e
		}
	}()
	for {
		if v, stop := m.step(); stop {
			return v, nil
		}
	}
}

// fail leaves the machine; Load turns it into its error.
func (m *machine) fail(format string, args ...any) {
	panic(&Error{Off: m.i, Msg: fmt.Sprintf(format, args...)})
}

func (m *machine) take(n uint64) []byte {
	if n > uint64(len(m.b)-m.i) {
		m.fail("ends within an instruction")
	}
	b := m.b[m.i : m.i+int(n)]
	m.i += int(n)
	return b
}

func (m *machine) u8() uint64  { return uint64(m.take(1)[0]) }
func (m *machine) u16() uint64 { return uint64(binary.LittleEndian.Uint16(m.take(2))) }
func (m *machine) u32() uint64 { return uint64(binary.LittleEndian.Uint32(m.take(4))) }
func (m *machine) u64() uint64 { return binary.LittleEndian.Uint64(m.take(8)) }

func (m *machine) line() string {
	for k := m.i; k < len(m.b); k++ {
		if m.b[k] == '\n' {
			s := string(m.b[m.i:k])
			m.i = k + 1
			return s
		}
	}
	m.fail("ends within a line")
	return ""
}

func (m *machine) text(b []byte) string {
	if !utf8.Valid(b) {
		m.fail("text is not UTF-8")
	}
	return string(b)
}

func (m *machine) push(v any) { m.stack = append(m.stack, v) }

// floor is the place that may not be popped below: the last mark.
func (m *machine) floor() int {
	if n := len(m.marks); n > 0 {
		return m.marks[n-1]
	}
	return 0
}

func (m *machine) pop() any {
	if len(m.stack) <= m.floor() {
		m.fail("takes more than there is")
	}
	v := m.stack[len(m.stack)-1]
	m.stack = m.stack[:len(m.stack)-1]
	return v
}

func (m *machine) top() any {
	v := m.pop()
	m.push(v)
	return v
}

// popMark takes what is above the last mark.
func (m *machine) popMark() []any {
	if len(m.marks) == 0 {
		m.fail("closes a group that was not opened")
	}
	at := m.floor()
	m.marks = m.marks[:len(m.marks)-1]
	items := append([]any(nil), m.stack[at:]...)
	m.stack = m.stack[:at]
	return items
}

func (m *machine) global(module, name string) Global {
	g := Global{module, name}
	if !m.allow(g) {
		m.fail("%.200q is not among the classes that are known, and nothing is executed", g.String())
	}
	return g
}

func (m *machine) asGlobal(v any) Global {
	g, ok := v.(Global)
	if !ok {
		m.fail("calls a %T", v)
	}
	return g
}

func (m *machine) asTuple(v any) Tuple {
	t, ok := v.(Tuple)
	if !ok {
		m.fail("arguments are a %T", v)
	}
	return t
}

func (m *machine) setItems(to any, items []any) {
	var d *Dict
	switch to := to.(type) {
	case *Dict:
		d = to
	case *Object:
		d = &to.Dict
	default:
		m.fail("sets entries of a %T", to)
	}
	if len(items)%2 != 0 {
		m.fail("a key without a value")
	}
	for i := 0; i < len(items); i += 2 {
		d.Keys, d.Values = append(d.Keys, items[i]), append(d.Values, items[i+1])
	}
}

func (m *machine) extend(to any, items []any) {
	switch to := to.(type) {
	case *List:
		to.Items = append(to.Items, items...)
	case *Object:
		to.List.Items = append(to.List.Items, items...)
	default:
		m.fail("appends to a %T", to)
	}
}

func (m *machine) get(k uint64) {
	v, ok := m.memo[k]
	if !ok {
		m.fail("refers to %d, which is not remembered", k)
	}
	m.push(v)
}

func (m *machine) long(b []byte) {
	if len(b) > 8 {
		m.fail("an integer of %d bytes", len(b))
	}
	var k uint64
	for i := len(b) - 1; i >= 0; i-- {
		k = k<<8 | uint64(b[i])
	}
	if n := len(b); n > 0 && b[n-1]&0x80 != 0 && n < 8 {
		k |= math.MaxUint64 << (8 * n)
	}
	m.push(int64(k))
}

// step executes one instruction of the pickle machine, which only moves values.
func (m *machine) step() (v any, stop bool) {
	switch op := m.take(1)[0]; op {
	case 0x80: // PROTO
		if p := m.u8(); p > maxProtocol {
			m.fail("protocol %d", p)
		}
	case 0x95: // FRAME
		if n := m.u64(); n > uint64(len(m.b)-m.i) {
			m.fail("ends within a frame")
		}
	case '.': // STOP
		return m.pop(), true
	case '(': // MARK
		m.marks = append(m.marks, len(m.stack))
	case '0': // POP, which takes a mark too
		if len(m.marks) > 0 && m.floor() == len(m.stack) {
			m.popMark()
		} else {
			m.pop()
		}
	case '1': // POP_MARK
		m.popMark()
	case '2': // DUP
		m.push(m.top())
	case 'N':
		m.push(nil)
	case 0x88:
		m.push(true)
	case 0x89:
		m.push(false)
	case 'K': // BININT1
		m.push(int64(m.u8()))
	case 'M': // BININT2
		m.push(int64(m.u16()))
	case 'J': // BININT
		m.push(int64(int32(m.u32())))
	case 0x8a: // LONG1
		m.long(m.take(m.u8()))
	case 0x8b: // LONG4
		m.long(m.take(m.u32()))
	case 'G': // BINFLOAT
		m.push(math.Float64frombits(binary.BigEndian.Uint64(m.take(8))))
	case 'X': // BINUNICODE
		m.push(m.text(m.take(m.u32())))
	case 0x8c: // SHORT_BINUNICODE
		m.push(m.text(m.take(m.u8())))
	case 0x8d: // BINUNICODE8
		m.push(m.text(m.take(m.u64())))
	case 'T': // BINSTRING
		m.push(m.text(m.take(m.u32())))
	case 'U': // SHORT_BINSTRING
		m.push(m.text(m.take(m.u8())))
	case 'B': // BINBYTES
		m.push(m.take(m.u32()))
	case 'C': // SHORT_BINBYTES
		m.push(m.take(m.u8()))
	case 0x8e, 0x96: // BINBYTES8, BYTEARRAY8
		m.push(m.take(m.u64()))
	case ']', 0x8f: // EMPTY_LIST, EMPTY_SET
		m.push(&List{})
	case 0x91: // FROZENSET
		m.push(&List{m.popMark()})
	case 'a': // APPEND
		v := m.pop()
		m.extend(m.top(), []any{v})
	case 'e', 0x90: // APPENDS, ADDITEMS
		items := m.popMark()
		m.extend(m.top(), items)
	case ')': // EMPTY_TUPLE
		m.push(Tuple{})
	case 't': // TUPLE
		m.push(Tuple(m.popMark()))
	case 0x85, 0x86, 0x87: // TUPLE1 to TUPLE3
		t := make(Tuple, op-0x84)
		for i := len(t) - 1; i >= 0; i-- {
			t[i] = m.pop()
		}
		m.push(t)
	case '}': // EMPTY_DICT
		m.push(&Dict{})
	case 's': // SETITEM
		v, k := m.pop(), m.pop()
		m.setItems(m.top(), []any{k, v})
	case 'u': // SETITEMS
		items := m.popMark()
		m.setItems(m.top(), items)
	case 'c': // GLOBAL
		module := m.line()
		m.push(m.global(module, m.line()))
	case 0x93: // STACK_GLOBAL
		name, module := m.pop(), m.pop()
		n, ok1 := name.(string)
		mod, ok2 := module.(string)
		if !ok1 || !ok2 {
			m.fail("a name that is no string")
		}
		m.push(m.global(mod, n))
	case 'R', 0x81: // REDUCE, NEWOBJ
		args := m.asTuple(m.pop())
		m.push(&Object{Class: m.asGlobal(m.pop()), Args: args})
	case 0x92: // NEWOBJ_EX
		kw, ok := m.pop().(*Dict)
		if !ok {
			m.fail("keyword arguments are no dictionary")
		}
		args := m.asTuple(m.pop())
		m.push(&Object{Class: m.asGlobal(m.pop()), Args: args, KwArgs: kw})
	case 'b': // BUILD
		state := m.pop()
		o, ok := m.top().(*Object)
		if !ok {
			m.fail("sets the state of a %T", m.top())
		}
		o.State = state
	case 'Q': // BINPERSID
		m.push(Persistent{m.pop()})
	case 'q': // BINPUT
		m.memo[m.u8()] = m.top()
	case 'r': // LONG_BINPUT
		m.memo[m.u32()] = m.top()
	case 0x94: // MEMOIZE
		m.memo[uint64(len(m.memo))] = m.top()
	case 'h': // BINGET
		m.get(m.u8())
	case 'j': // LONG_BINGET
		m.get(m.u32())
	default:
		m.i--
		m.fail("instruction 0x%02x is not known", op)
	}
	return nil, false
}
