package strict

import (
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Shapes are a cache of the shapes of types. The zero Shapes is ready to use, by several
// goroutines.
type Shapes struct{ all sync.Map } // of *shape, by reflect.Type

// A shape describes the JSON of a type.
type shape struct {
	of       reflect.Type
	anything bool    // any JSON will do
	itself   bool    // the type unmarshals itself, except from an object
	fields   []field // of a struct
	elem     *shape  // of a pointer, a list or a map
}

// A field is a field of a struct, or of a struct that is embedded in it.
type field struct {
	name string // in JSON
	at   []int  // for reflect.Value.FieldByIndex
	of   *shape
}

// shape returns the shape of a type that does not contain itself.
func (s *Shapes) shape(t reflect.Type) *shape {
	if known, ok := s.all.Load(t); ok {
		return known.(*shape)
	}
	to := reflect.PointerTo(t)
	json := to.Implements(reflect.TypeFor[json.Unmarshaler]())
	made := &shape{
		of: t, itself: json || to.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()),
		anything: t.Kind() == reflect.Interface || json && t.Kind() != reflect.Struct,
	}
	switch t.Kind() {
	case reflect.Struct:
		made.fields = s.fields(t)
	case reflect.Pointer, reflect.Slice, reflect.Map:
		made.elem = s.shape(t.Elem())
	}
	s.all.Store(t, made)
	return made
}

// fields returns the fields of a struct, including fields of embedded structs.
func (s *Shapes) fields(t reflect.Type) (all []field) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			for _, inner := range s.fields(f.Type) {
				inner.at = slices.Concat(f.Index, inner.at)
				all = append(all, inner)
			}
		case name != "-" && f.IsExported():
			all = append(all, field{cmp.Or(name, f.Name), f.Index, s.shape(f.Type)})
		}
	}
	return all
}

// index returns the index of the field with a name in JSON, or -1.
func (s *shape) index(name []byte) int {
	for i := range s.fields {
		if s.fields[i].name == string(name) {
			return i
		}
	}
	return -1
}

// unknown returns the fault of a name that no field has.
func (s *shape) unknown(name string) *fault {
	for _, f := range s.fields {
		if strings.EqualFold(f.name, name) {
			return &fault{name, fmt.Sprintf(" is not known: it is %q", f.name)}
		}
	}
	return &fault{name, " is not known"}
}
