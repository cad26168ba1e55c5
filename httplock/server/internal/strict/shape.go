package strict

import (
	"encoding/json"
	"reflect"
	"strings"
	"sync"
)

// Shapes remember what the types look like that were read. The zero Shapes is ready to
// use, by several at the same time.
type Shapes struct{ all sync.Map } // of *shape, by reflect.Type

// A shape is what JSON for a type looks like. That of a type which may be anything is nil.
type shape struct {
	of       reflect.Type
	fields   []field // of a struct
	elem     *shape  // of a list or a map
	anything bool    // elem is nil because it may be anything
	plain    bool    // a quick can read it
}

// A field is one of a struct.
type field struct {
	name string // in JSON
	of   *shape
	at   int // its index in the struct; -1 if a quick cannot read it
}

// shapeOf returns the shape of a type.
func (s *Shapes) shapeOf(t reflect.Type) *shape {
	if known, ok := s.all.Load(t); ok {
		return known.(*shape)
	}
	found := (building{}).shape(t)
	s.all.Store(t, found)
	return found
}

// building are the shapes that are being made: a type may be in itself.
type building map[reflect.Type]*shape

func (b building) shape(t reflect.Type) *shape {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if anything(t) {
		return nil
	}
	if made, ok := b[t]; ok {
		return made
	}
	made := &shape{of: t}
	b[t] = made
	switch t.Kind() {
	case reflect.Struct:
		made.fields = b.fields(t)
	case reflect.Slice, reflect.Array, reflect.Map:
		made.elem = b.shape(t.Elem())
		made.anything = made.elem == nil
	}
	made.plain = isPlain(t, made.fields)
	return made
}

// anything reports whether what is in a value cannot be told by its type. A struct that
// reads itself, and an object, have the same fields: it takes other forms besides.
func anything(t reflect.Type) bool {
	return t.Kind() == reflect.Interface || t.Kind() != reflect.Struct && reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
}

// fields returns the fields of a struct, those of structs that it embeds included.
func (b building) fields(t reflect.Type) (all []field) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		at := i
		if strings.Contains(options, "string") {
			at = -1 // its JSON is text, whatever it is
		}
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
		case f.Anonymous && name == "":
			embedded := f.Type
			if embedded.Kind() == reflect.Pointer {
				embedded = embedded.Elem()
			}
			for _, inner := range b.fields(embedded) {
				inner.at = -1
				all = append(all, inner)
			}
		case name == "":
			all = append(all, field{f.Name, b.shape(f.Type), at})
		default:
			all = append(all, field{name, b.shape(f.Type), at})
		}
	}
	return all
}
