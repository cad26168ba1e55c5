package strict

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"
)

// A quick decodes JSON as programs write it for small structs: without space, escapes and
// null, with text, whole numbers, true and false, strictly and in one pass. It gives up at
// anything else, valid or not: then slowly decodes the text. It saves 4 to 7 % of the
// processor time of a pair of requests at 64 callers (docs/adr/0031).
type quick struct{ rest []byte }

// quickly reads data into the zero value v. If it gives up, v has changed.
func (s *shape) quickly(data []byte, v reflect.Value) bool {
	q := quick{data}
	return q.value(s, v) && len(q.rest) == 0
}

// isPlain reports whether a quick can read values of type t.
func isPlain(t reflect.Type, fields []field) bool {
	to := reflect.PointerTo(t)
	if to.Implements(reflect.TypeFor[json.Unmarshaler]()) || to.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return false
	}
	switch k := t.Kind(); k {
	case reflect.Struct:
		return len(fields) <= 64 // seen has one bit for each
	default:
		return k == reflect.Bool || k == reflect.String || k >= reflect.Int && k <= reflect.Uint64
	}
}

func (q *quick) value(s *shape, v reflect.Value) bool {
	if s == nil || !s.plain || v.Kind() != s.of.Kind() { // a pointer to it has another one
		return false
	}
	switch k := v.Kind(); {
	case k == reflect.Struct:
		return q.object(s, v)
	case k == reflect.String:
		text, ok := q.text()
		v.SetString(string(text))
		return ok
	case k == reflect.Bool:
		yes := q.skip("true")
		v.SetBool(yes)
		return yes || q.skip("false")
	case k <= reflect.Int64:
		n, ok := q.number()
		v.SetInt(int64(n))
		return ok && !v.OverflowInt(int64(n))
	default:
		n, ok := q.number()
		v.SetUint(n)
		return ok && !v.OverflowUint(n)
	}
}

func (q *quick) object(s *shape, v reflect.Value) bool {
	if !q.skip("{") {
		return false
	}
	if q.skip("}") {
		return true
	}
	for seen := uint64(0); ; {
		key, ok := q.text()
		i := s.index(key)
		if !ok || !q.skip(":") || i < 0 || seen&(1<<i) != 0 {
			return false
		}
		seen |= 1 << i
		if !q.value(s.fields[i].of, v.Field(s.fields[i].at)) {
			return false
		}
		if !q.skip(",") {
			return q.skip("}")
		}
	}
}

// index returns the index of the field with a name; -1 if a quick cannot read it.
func (s *shape) index(name []byte) int {
	for i := range s.fields {
		if f := &s.fields[i]; f.name == string(name) {
			if f.at < 0 {
				return -1
			}
			return i
		}
	}
	return -1
}

// text goes over a string, and returns what is in it. The whole is known to be UTF-8.
func (q *quick) text() (text []byte, ok bool) {
	if !q.skip(`"`) {
		return nil, false
	}
	end := bytes.IndexByte(q.rest, '"')
	if end < 0 {
		return nil, false
	}
	text, q.rest = q.rest[:end], q.rest[end+1:]
	for _, c := range text {
		if c < ' ' || c == '\\' {
			return nil, false
		}
	}
	return text, true
}

// number goes over a whole number, 0 or more, of 18 digits at most.
func (q *quick) number() (n uint64, ok bool) {
	i := 0
	for i < len(q.rest) && q.rest[i] >= '0' && q.rest[i] <= '9' && i <= 18 {
		n = 10*n + uint64(q.rest[i]-'0')
		i++
	}
	ok = i > 0 && i <= 18 && (i == 1 || q.rest[0] != '0')
	q.rest = q.rest[i:]
	return n, ok
}

func (q *quick) skip(next string) bool {
	if len(q.rest) < len(next) || string(q.rest[:len(next)]) != next {
		return false
	}
	q.rest = q.rest[len(next):]
	return true
}
