package strict

import (
	"encoding/json"
	"reflect"
	"strings"
	"sync"
)

// Shapes are a cache of the shapes of types. The zero Shapes is ready to use, by several
// goroutines.
type Shapes struct{ all sync.Map } // of *shape, by reflect.Type

// A shape describes the JSON of a type. It is nil for a type that may be anything.
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

// building are the unfinished shapes: a type may contain itself.
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

// anything reports whether values of a type may have any JSON. A struct with an UnmarshalJSON
// still has the fields of its objects.
func anything(t reflect.Type) bool {
	return t.Kind() == reflect.Interface || t.Kind() != reflect.Struct && reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
}

// fields returns the fields of a struct, including those of embedded structs.
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
