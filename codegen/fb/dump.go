package fb

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unicode"
)

const (
	// maxDumpBytes is the longest byte vector that dumps show; of longer ones they tell
	// the size.
	maxDumpBytes = 64
	// maxLine is how long a value may be to stand on one line of a text dump.
	maxLine = 160
)

// AppendJSON appends v as JSON: generated tables, and structs built like them. Fields
// keep their order; a value in an interface (a union) is wrapped in an object with its
// type's name; enums are named; of long byte vectors, and of anything with a Size
// method, only {"size": n} is told. Numbers that JSON cannot hold become strings.
func AppendJSON(b []byte, v any) []byte { return appendJSON(b, reflect.ValueOf(v)) }

// AppendText appends v as text for people: a line for what fits on one, indented blocks
// for the rest; fields that are zero or empty are left out.
func AppendText(b []byte, v any) []byte {
	return appendBlock(b, reflect.ValueOf(v), 0)
}

type sizer interface{ Size() int64 }

// leaf gives the text of a value without parts, and whether it must be quoted.
func leaf(v reflect.Value) (s string, quote, ok bool) {
	switch v.Kind() {
	case reflect.Bool:
		return strconv.FormatBool(v.Bool()), false, true
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if e, ok := v.Interface().(fmt.Stringer); ok {
			return e.String(), true, true
		}
		return strconv.FormatInt(v.Int(), 10), false, true
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if e, ok := v.Interface().(fmt.Stringer); ok {
			return e.String(), true, true
		}
		return strconv.FormatUint(v.Uint(), 10), false, true
	case reflect.Float32, reflect.Float64:
		f := v.Float()
		return strconv.FormatFloat(f, 'g', -1, v.Type().Bits()), math.IsNaN(f) || math.IsInf(f, 0), true
	case reflect.String:
		return v.String(), true, true
	}
	return "", false, false
}

// size tells the size of a value that dumps do not show.
func size(v reflect.Value) (int64, bool) {
	if v.Kind() == reflect.Interface && !v.IsNil() {
		if s, ok := v.Interface().(sizer); ok {
			return s.Size(), true
		}
	}
	if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 && v.Len() > maxDumpBytes {
		return int64(v.Len()), true
	}
	return 0, false
}

// unionName names the dynamic type of a union.
func unionName(v reflect.Value) string {
	t := v.Type()
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Name()
}

// fieldName is the schema's name, or what the schema would call the field.
func fieldName(f reflect.StructField) string {
	if n := f.Tag.Get("json"); n != "" {
		return n
	}
	var b strings.Builder
	for i, r := range f.Name {
		if unicode.IsUpper(r) {
			if i > 0 && (unicode.IsLower(rune(f.Name[i-1])) || i+1 < len(f.Name) && unicode.IsLower(rune(f.Name[i+1]))) {
				b.WriteByte('_')
			}
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}

func appendString(b []byte, s string) []byte {
	q, err := json.Marshal(s)
	if err != nil {
		return strconv.AppendQuote(b, s)
	}
	return append(b, q...)
}

func appendJSON(b []byte, v reflect.Value) []byte {
	if s, quote, ok := leaf(v); ok {
		if quote {
			return appendString(b, s)
		}
		return append(b, s...)
	}
	if n, ok := size(v); ok {
		return fmt.Appendf(b, `{"size":%d}`, n)
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return append(b, "null"...)
		}
		return appendJSON(b, v.Elem())
	case reflect.Interface:
		if v.IsNil() {
			return append(b, "null"...)
		}
		b = appendString(append(b, '{'), unionName(v.Elem()))
		return append(appendJSON(append(b, ':'), v.Elem()), '}')
	case reflect.Slice:
		b = append(b, '[')
		for i := range v.Len() {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, v.Index(i))
		}
		return append(b, ']')
	case reflect.Struct:
		b = append(b, '{')
		for i, first := 0, true; i < v.NumField(); i++ {
			f := v.Type().Field(i)
			if !f.IsExported() {
				continue
			}
			if !first {
				b = append(b, ',')
			}
			first = false
			b = append(appendString(b, fieldName(f)), ':')
			b = appendJSON(b, v.Field(i))
		}
		return append(b, '}')
	}
	return append(b, "null"...)
}

// omit tells what a text dump leaves out of a struct of n fields: what is not there, and
// the zeros of large structs unless they name something.
func omit(f reflect.StructField, v reflect.Value, n int) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Slice:
		return v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0
	case reflect.String, reflect.Bool:
		return v.IsZero()
	case reflect.Struct:
		return false
	}
	name := fieldName(f)
	return v.IsZero() && n > 5 && !strings.HasSuffix(name, "id") && !strings.HasSuffix(name, "idx")
}

// only gives the field of a struct that has but one: the field says it all.
func only(v reflect.Value) (reflect.Value, bool) {
	if v.NumField() == 1 && v.Type().Field(0).IsExported() {
		return v.Field(0), true
	}
	return v, false
}

// appendLine appends v on one line, or gives false when it is longer than limit.
func appendLine(b []byte, v reflect.Value, limit int) ([]byte, bool) {
	start := len(b)
	if s, quote, ok := leaf(v); ok {
		if quote && v.Kind() == reflect.String {
			b = strconv.AppendQuote(b, s)
		} else {
			b = append(b, s...)
		}
		return b, len(b)-start <= limit
	}
	if n, ok := size(v); ok {
		return fmt.Appendf(b, "<%d bytes>", n), true
	}
	ok := true
	part := func(v reflect.Value) {
		if ok {
			b, ok = appendLine(b, v, limit-(len(b)-start))
		}
	}
	fields := func(v reflect.Value) {
		b = append(b, '{')
		for i, first := 0, true; i < v.NumField() && ok; i++ {
			f := v.Type().Field(i)
			if !f.IsExported() || omit(f, v.Field(i), v.NumField()) {
				continue
			}
			if !first {
				b = append(b, ", "...)
			}
			first = false
			b = append(append(b, fieldName(f)...), ": "...)
			part(v.Field(i))
		}
		b = append(b, '}')
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return append(b, "nil"...), true
		}
		part(v.Elem())
	case reflect.Interface:
		if v.IsNil() {
			return append(b, "nil"...), true
		}
		b = append(b, unionName(v.Elem())...)
		e := reflect.Indirect(v.Elem())
		if e.Kind() != reflect.Struct {
			b = append(b, ' ')
			part(e)
		} else {
			fields(e)
		}
	case reflect.Slice:
		b = append(b, '[')
		for i := 0; i < v.Len() && ok; i++ {
			if i > 0 {
				b = append(b, ", "...)
			}
			part(v.Index(i))
		}
		b = append(b, ']')
	case reflect.Struct:
		if one, is := only(v); is {
			part(one)
		} else {
			fields(v)
		}
	}
	return b, ok && len(b)-start <= limit
}

func appendBlock(b []byte, v reflect.Value, depth int) []byte {
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	item := func(name string, e reflect.Value) {
		for range depth {
			b = append(b, "  "...)
		}
		b = append(append(b, name...), ':')
		n := len(b)
		line, ok := appendLine(append(b, ' '), e, maxLine)
		if ok {
			b = append(line, '\n')
			return
		}
		b = b[:n]
		if e.Kind() == reflect.Interface {
			b = append(append(b, ' '), unionName(e.Elem())...)
			e = e.Elem()
		}
		if e = reflect.Indirect(e); e.Kind() != reflect.Struct && e.Kind() != reflect.Slice {
			// A long string stands on its line all the same.
			line, _ := appendLine(append(b, ' '), e, math.MaxInt)
			b = append(line, '\n')
			return
		}
		b = appendBlock(append(b, '\n'), e, depth+1)
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if f.IsExported() && !omit(f, v.Field(i), v.NumField()) {
				item(fieldName(f), v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			item(strconv.Itoa(i), v.Index(i))
		}
	default:
		b, _ = appendLine(b, v, math.MaxInt)
		b = append(b, '\n')
	}
	return b
}
