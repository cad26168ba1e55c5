package strict

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A walk compares JSON, known to be well formed, with the shape of the value that it was
// decoded into.
type walk struct{ rest []byte }

// A path locates a value. It becomes text in an error only.
type path struct {
	up    *path // nil: it is the whole
	key   string
	index int // in a list; then there is no key
}

func (p *path) String() string {
	switch {
	case p == nil:
		return ""
	case p.key == "":
		return p.up.String() + "[" + strconv.Itoa(p.index) + "]"
	case p.up.String() == "":
		return p.key
	}
	return p.up.String() + "." + p.key
}

// value goes over the next value. of is nil if it may contain anything.
func (w *walk) value(of *shape, at *path, depth int) error {
	switch next := w.next(); {
	case depth >= MaxDepth && (next == '{' || next == '['):
		return fmt.Errorf("%s: it is nested more than %d deep", quoted(at.String()), MaxDepth)
	case next == '{':
		return w.object(of, at, depth+1)
	case next == '[':
		return w.list(of, at, depth+1)
	case next == '"':
		if text := w.text(); of != nil && !paired(text) {
			return fmt.Errorf(`%s: half a pair of \u escapes`, quoted(at.String()))
		}
		return nil
	}
	n := 0
	for n < len(w.rest) && strings.IndexByte(",]} \t\r\n", w.rest[n]) < 0 {
		n++
	}
	word := w.rest[:n]
	w.rest = w.rest[n:]
	if of != nil && string(word) == "null" {
		return fmt.Errorf("%s: want %s, got null", quoted(at.String()), want(of.of))
	}
	return nil
}

func (w *walk) object(of *shape, at *path, depth int) error {
	w.rest = w.rest[1:]
	var few [16]string
	seen := few[:0]
	for w.next() != '}' {
		key, err := w.key()
		if err != nil {
			return fmt.Errorf("%s: %w", quoted(at.String()), err)
		}
		below := path{up: at, key: key}
		if of != nil && slices.Contains(seen, key) {
			return fmt.Errorf("%s is given twice", quoted(below.String()))
		}
		seen = append(seen, key)
		inner, err := w.below(of, &below)
		if err != nil {
			return err
		}
		if err := w.value(inner, &below, depth); err != nil {
			return err
		}
		w.comma()
	}
	w.rest = w.rest[1:]
	return nil
}

// below returns the shape of the value of a key: nil if it may be anything. A field may be
// null, which counts as absent.
func (w *walk) below(of *shape, at *path) (*shape, error) {
	switch {
	case of == nil:
		return nil, nil
	case of.elem != nil || of.anything:
		return of.elem, nil
	}
	for i := range of.fields {
		if of.fields[i].name == at.key {
			if w.null() {
				return nil, nil
			}
			return of.fields[i].of, nil
		}
	}
	for _, f := range of.fields {
		if strings.EqualFold(f.name, at.key) {
			return nil, fmt.Errorf("%s is not known: it is %q", quoted(at.String()), f.name)
		}
	}
	return nil, fmt.Errorf("%s is not known", quoted(at.String()))
}

func (w *walk) list(of *shape, at *path, depth int) error {
	w.rest = w.rest[1:]
	if of != nil {
		of = of.elem
	}
	for n := 0; w.next() != ']'; n++ {
		if err := w.value(of, &path{up: at, index: n}, depth); err != nil {
			return err
		}
		w.comma()
	}
	w.rest = w.rest[1:]
	return nil
}

// next returns the next byte that is not space, without going over it.
func (w *walk) next() byte {
	for {
		switch c := w.rest[0]; c {
		case ' ', '\t', '\r', '\n':
			w.rest = w.rest[1:]
		default:
			return c
		}
	}
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
	switch {
	case bytes.IndexByte(text, '\\') < 0:
		key = string(text[1 : len(text)-1])
	case !paired(text):
		return "", fmt.Errorf(`half a pair of \u escapes`)
	default:
		if err := json.Unmarshal(text, &key); err != nil {
			return "", err
		}
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
