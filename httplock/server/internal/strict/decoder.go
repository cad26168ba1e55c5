package strict

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// A decoder reads JSON that is known to be well formed.
type decoder struct {
	rest  []byte
	depth int
}

// value reads the next value into v, which is zero.
func (d *decoder) value(s *shape, v reflect.Value) *fault {
	kind := s.of.Kind()
	switch next := d.next(); {
	case s.anything:
	case next == 'n':
		return &fault{why: fmt.Sprintf(": want %s, got null", want(s.of))}
	case kind == reflect.Pointer:
		v.Set(reflect.New(s.of.Elem()))
		return d.value(s.elem, v.Elem())
	case next == '{' && kind == reflect.Struct:
		return d.nested(s, v, d.object)
	case next == '{' && kind == reflect.Map:
		return d.nested(s, v, d.entries)
	case s.itself:
	case next == '[' && kind == reflect.Slice:
		return d.nested(s, v, d.list)
	case next == '"' && kind == reflect.String:
		text, f := d.text()
		v.SetString(string(text))
		return f
	case kind == reflect.Bool && (next == 't' || next == 'f'):
		v.SetBool(next == 't')
		d.rest = d.rest[len(d.word()):]
		return nil
	case (v.CanInt() || v.CanUint()) && d.number(v):
		return nil
	}
	return d.whole(s, v)
}

func (d *decoder) nested(s *shape, v reflect.Value, read func(*shape, reflect.Value) *fault) *fault {
	if d.depth == MaxDepth {
		return errDeep
	}
	d.depth++
	d.rest = d.rest[1:]
	f := read(s, v)
	d.depth--
	return f
}

var (
	errDeep = &fault{why: fmt.Sprintf(": it is nested more than %d deep", MaxDepth)}
	errHalf = &fault{why: `: half a pair of \u escapes`}

	// errOther is never returned: Unmarshal replaces it with the error of encoding/json.
	errOther = &fault{why: " is of another type"}
)

func (d *decoder) object(s *shape, v reflect.Value) *fault {
	seen := make([]bool, len(s.fields))
	for d.more() {
		key, f := d.key()
		i := s.index(key)
		switch {
		case f != nil:
			return f
		case i < 0:
			return s.unknown(string(key))
		case seen[i]:
			return &fault{s.fields[i].name, " is given twice"}
		}
		seen[i] = true
		if f := d.field(s.fields[i].of, v.FieldByIndex(s.fields[i].at)); f != nil {
			return f.in(s.fields[i].name)
		}
	}
	return nil
}

// field reads the value of a field. A null counts as absent.
func (d *decoder) field(s *shape, v reflect.Value) *fault {
	if d.next() == 'n' {
		return d.whole(s, v)
	}
	return d.value(s, v)
}

// entries reads an object into a map.
func (d *decoder) entries(s *shape, v reflect.Value) *fault {
	v.Set(reflect.MakeMap(s.of))
	for d.more() {
		text, f := d.key()
		key, value := reflect.ValueOf(string(text)).Convert(s.of.Key()), reflect.New(s.of.Elem()).Elem()
		switch {
		case f != nil:
			return f
		case v.MapIndex(key).IsValid():
			return &fault{key.String(), " is given twice"}
		}
		if f := d.value(s.elem, value); f != nil {
			return f.in(key.String())
		}
		v.SetMapIndex(key, value)
	}
	return nil
}

func (d *decoder) list(s *shape, v reflect.Value) *fault {
	v.Set(reflect.MakeSlice(s.of, 0, 0))
	for n := 0; d.more(); n++ {
		v.Grow(1)
		v.SetLen(n + 1)
		if f := d.value(s.elem, v.Index(n)); f != nil {
			return f.in("[" + strconv.Itoa(n) + "]")
		}
	}
	return nil
}

// number reads a whole number. It reports whether it has read one.
func (d *decoder) number(v reflect.Value) bool {
	word := d.word()
	n, err := strconv.ParseInt(string(word), 10, v.Type().Bits())
	switch {
	case err != nil || n < 0 && v.CanUint():
		return false
	case v.CanInt():
		v.SetInt(n)
	default:
		v.SetUint(uint64(n))
	}
	d.rest = d.rest[len(word):]
	return true
}

// whole reads a value with encoding/json.
func (d *decoder) whole(s *shape, v reflect.Value) *fault {
	begin, depth := d.rest, d.depth
	for one := true; one || depth > d.depth; one = false {
		switch d.next() {
		case '"':
			if text := d.quoted(); !s.anything && !paired(text) {
				return errHalf
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if depth > MaxDepth {
			return errDeep
		}
		d.rest = d.rest[max(1, len(d.word())):]
	}
	if json.Unmarshal(begin[:len(begin)-len(d.rest)], v.Addr().Interface()) != nil {
		return errOther
	}
	return nil
}

// more skips a comma, or the end of an object or a list, and reports whether another element
// follows.
func (d *decoder) more() bool {
	next := d.next()
	if next == ',' || next == '}' || next == ']' {
		d.rest = d.rest[1:]
	}
	return next != '}' && next != ']'
}

// next skips space, and returns the next byte without skipping it.
func (d *decoder) next() byte {
	for strings.IndexByte(" \t\r\n", d.rest[0]) >= 0 {
		d.rest = d.rest[1:]
	}
	return d.rest[0]
}

// word returns the text up to the next space or delimiter.
func (d *decoder) word() []byte {
	n := 0
	for n < len(d.rest) && strings.IndexByte(`,:"{}[]`+" \t\r\n", d.rest[n]) < 0 {
		n++
	}
	return d.rest[:n]
}

// key skips a key and its colon, and returns the key.
func (d *decoder) key() ([]byte, *fault) {
	d.next()
	key, f := d.text()
	d.next()
	d.rest = d.rest[1:]
	return key, f
}

// text skips a string, and returns its content.
func (d *decoder) text() ([]byte, *fault) {
	quoted := d.quoted()
	switch {
	case bytes.IndexByte(quoted, '\\') < 0:
		return quoted[1 : len(quoted)-1], nil
	case !paired(quoted):
		return nil, errHalf
	}
	var text string
	_ = json.Unmarshal(quoted, &text) // it is well formed
	return []byte(text), nil
}

// paired reports whether a string has no half of a surrogate pair. encoding/json replaces such a
// half with U+FFFD, so that two names would become one.
func paired(text []byte) bool {
	return bytes.IndexByte(text, '\\') < 0 || !halves().Match(others().ReplaceAll(text, nil))
}

// others are the escapes that are not half of a pair. Both are compiled at the first escape, so
// that not every start of the command pays for them.
var (
	others = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\\(u[dD][89abAB]..\\u[dD][c-fC-F]|[^u])`) })
	halves = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\\u[dD][89a-fA-F]`) })
)

// quoted skips a string, and returns it with its quotes.
func (d *decoder) quoted() []byte {
	end := 1
	for ; d.rest[end] != '"'; end++ {
		if d.rest[end] == '\\' {
			end++
		}
	}
	text := d.rest[:end+1]
	d.rest = d.rest[end+1:]
	return text
}
