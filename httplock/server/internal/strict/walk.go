package strict

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// A walk goes through JSON that is known to be well formed, beside the type that it was
// read into.
type walk struct {
	rest  []byte
	known map[reflect.Type][]field
}

// A field is one of a struct.
type field struct {
	name string // in JSON
	of   reflect.Type
}

// value goes over the next value. of is nil if it may contain anything.
func (w *walk) value(of reflect.Type, path string, depth int) error {
	for of != nil && of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of != nil && anything(of) {
		of = nil
	}
	switch next := w.next(); {
	case depth >= MaxDepth && (next == '{' || next == '['):
		return fmt.Errorf("%s: it is nested more than %d deep", quoted(path), MaxDepth)
	case next == '{':
		return w.object(of, path, depth+1)
	case next == '[':
		return w.list(of, path, depth+1)
	case next == '"':
		if text := w.text(); of != nil && !paired(text) {
			return fmt.Errorf(`%s: half a pair of \u escapes`, quoted(path))
		}
		return nil
	}
	n := bytes.IndexAny(w.rest, ",]} \t\r\n")
	if n < 0 {
		n = len(w.rest)
	}
	word := w.rest[:n]
	w.rest = w.rest[n:]
	if of != nil && string(word) == "null" {
		return fmt.Errorf("%s: want %s, got null", quoted(path), want(of))
	}
	return nil
}

// anything reports whether what is in a value cannot be told by its type. A struct that
// reads itself, and an object, have the same fields: it takes other forms besides.
func anything(of reflect.Type) bool {
	return of.Kind() == reflect.Interface || of.Kind() != reflect.Struct && reflect.PointerTo(of).Implements(reflect.TypeFor[json.Unmarshaler]())
}

func (w *walk) object(of reflect.Type, path string, depth int) error {
	w.rest = w.rest[1:]
	var seen []string
	for w.next() != '}' {
		key, err := w.key()
		if err != nil {
			return fmt.Errorf("%s: %w", quoted(path), err)
		}
		below := path + "." + key
		if path == "" {
			below = key
		}
		if of != nil && slices.Contains(seen, key) {
			return fmt.Errorf("%s stands twice", quoted(below))
		}
		seen = append(seen, key)
		inner, err := w.below(of, below, key)
		if err != nil {
			return err
		}
		if err := w.value(inner, below, depth); err != nil {
			return err
		}
		w.comma()
	}
	w.rest = w.rest[1:]
	return nil
}

// below returns the type of what key leads to in a value of type of: nil if that may be
// anything. A field may be null, which is as if it were not there.
func (w *walk) below(of reflect.Type, path, key string) (reflect.Type, error) {
	switch {
	case of == nil:
		return nil, nil
	case of.Kind() == reflect.Map:
		return of.Elem(), nil
	}
	fields := w.fields(of)
	n := slices.IndexFunc(fields, func(f field) bool { return f.name == key })
	switch {
	case n >= 0 && w.null():
		return nil, nil
	case n >= 0:
		return fields[n].of, nil
	}
	for _, f := range fields {
		if strings.EqualFold(f.name, key) {
			return nil, fmt.Errorf("%s is not known: it is %q", quoted(path), f.name)
		}
	}
	return nil, fmt.Errorf("%s is not known", quoted(path))
}

func (w *walk) list(of reflect.Type, path string, depth int) error {
	w.rest = w.rest[1:]
	if of != nil {
		of = of.Elem()
	}
	for n := 0; w.next() != ']'; n++ {
		if err := w.value(of, path+"["+strconv.Itoa(n)+"]", depth); err != nil {
			return err
		}
		w.comma()
	}
	w.rest = w.rest[1:]
	return nil
}

// fields returns the fields of a struct, those of structs that it embeds included.
func (w *walk) fields(of reflect.Type) []field {
	if known, ok := w.known[of]; ok {
		return known
	}
	var all []field
	for i := range of.NumField() {
		f := of.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
		case f.Anonymous && name == "":
			embedded := f.Type
			if embedded.Kind() == reflect.Pointer {
				embedded = embedded.Elem()
			}
			all = append(all, w.fields(embedded)...)
		case name == "":
			all = append(all, field{f.Name, f.Type})
		default:
			all = append(all, field{name, f.Type})
		}
	}
	w.known[of] = all
	return all
}

// next returns the next byte that is not space, without going over it.
func (w *walk) next() byte {
	w.rest = bytes.TrimLeft(w.rest, " \t\r\n")
	return w.rest[0]
}

// null reports whether null is next.
func (w *walk) null() bool { return w.next() == 'n' }

// comma goes over a comma, if there is one.
func (w *walk) comma() {
	if w.next() == ',' {
		w.rest = w.rest[1:]
	}
}

// key goes over a key and its colon.
func (w *walk) key() (string, error) {
	var key string
	text := w.text()
	if !paired(text) {
		return "", fmt.Errorf(`half a pair of \u escapes`)
	}
	if err := json.Unmarshal(text, &key); err != nil {
		return "", err
	}
	w.next()
	w.rest = w.rest[1:]
	return key, nil
}

// text goes over a string, and returns it with its quotes.
func (w *walk) text() []byte {
	end := 1
	for ; w.rest[end] != '"'; end++ {
		if w.rest[end] == '\\' {
			end++
		}
	}
	text := w.rest[:end+1]
	w.rest = w.rest[end+1:]
	return text
}

// paired reports whether text has no half of a surrogate pair, in whose place
// encoding/json puts U+FFFD: two names would become one.
func paired(text []byte) bool {
	for {
		i := bytes.IndexByte(text, '\\')
		if i < 0 {
			return true
		}
		text = text[i+1:]
		if text[0] != 'u' {
			text = text[1:]
			continue
		}
		switch first := unit(text); {
		case first >= 0xD800 && first < 0xDC00:
			if len(text) < 11 || text[5] != '\\' || text[6] != 'u' {
				return false
			}
			if second := unit(text[6:]); second < 0xDC00 || second > 0xDFFF {
				return false
			}
			text = text[11:]
		case first >= 0xDC00 && first <= 0xDFFF:
			return false
		default:
			text = text[5:]
		}
	}
}

// unit returns the number of an escape whose "uXXXX" text begins with.
func unit(text []byte) uint64 {
	n, _ := strconv.ParseUint(string(text[1:5]), 16, 16) // the JSON is well formed
	return n
}
