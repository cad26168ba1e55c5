// Package strict decodes JSON and refuses everything ambiguous.
package strict

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"unicode/utf8"
)

// MaxDepth is how deep objects and lists may be nested.
const MaxDepth = 32

// Unmarshal does as json.Unmarshal, and refuses what json.Unmarshal guesses or ignores: an
// unknown field, a field that is there twice, a name in other capitals, null except as a field,
// text that is not UTF-8, half a pair of UTF-16, and nesting deeper than MaxDepth. The error
// names the field. After an error v may have changed.
//
// v points to a zero value. Its type does not contain itself, the keys of its maps are strings,
// its embedded structs are not pointers, and no field has the option string. A field of type
// json.RawMessage may contain anything. A struct may have an UnmarshalJSON, if that reads
// objects as json.Unmarshal would.
func Unmarshal(data []byte, v any) error { return new(Shapes).Unmarshal(data, v) }

// Unmarshal does as the function Unmarshal, and examines each type only once.
func (s *Shapes) Unmarshal(data []byte, v any) error {
	if !utf8.Valid(data) {
		return errors.New("the text is not UTF-8")
	}
	into := reflect.ValueOf(v).Elem()
	var f *fault
	if json.Valid(data) {
		d := decoder{rest: data}
		if f = d.value(s.shape(into.Type()), into); f == nil {
			return nil
		}
	}
	if f != nil && f.why != errOther.why {
		return f
	}
	// encoding/json explains what is malformed, or of another type.
	err := json.Unmarshal(data, reflect.New(into.Type()).Interface())
	if f == nil {
		return err
	}
	return &fault{f.at, ": " + plain(err)}
}

// plain describes an error in terms of JSON instead of Go.
func plain(err error) string {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Sprintf("want %s, got %s", want(wrong.Type), wrong.Value)
	}
	return err.Error()
}

// A fault is an error at a place in the JSON.
type fault struct{ at, why string }

func (f *fault) Error() string { return quoted(f.at) + f.why }

// in returns the fault with a key in front of its path.
func (f *fault) in(key string) *fault {
	if f.at != "" && f.at[0] != '[' {
		key += "."
	}
	return &fault{key + f.at, f.why}
}

func quoted(path string) string {
	if path == "" {
		return "the value"
	}
	return fmt.Sprintf("field %q", path)
}

// want returns what to write for a value of type t.
func want(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return fmt.Sprintf("a whole number of at most %d bits", t.Bits())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return fmt.Sprintf("a whole number, 0 or more, of at most %d bits", t.Bits())
	case reflect.String:
		return "text"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return "something else"
}
