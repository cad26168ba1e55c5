// Package strict reads JSON as whoever wrote it meant it, or not at all.
package strict

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"unicode/utf8"
)

// MaxDepth is how many objects and lists may stand in each other.
const MaxDepth = 32

// Unmarshal does as json.Unmarshal, and refuses what that guesses at or leaves out: a
// field that v lacks, that stands twice, or whose name has other capitals; null other than
// as a field; text that is not UTF-8, or half a pair of UTF-16; and what is nested deeper
// than MaxDepth. The error names the field. Then v may have been changed.
//
// A field of type json.RawMessage may contain anything: it goes back as it came. A struct
// may have an UnmarshalJSON of its own, if it reads objects as json.Unmarshal would.
func Unmarshal(data []byte, v any) error { return new(Shapes).Unmarshal(data, v) }

// Unmarshal is the function of that name, which looks at each type once only.
func (s *Shapes) Unmarshal(data []byte, v any) error {
	if !utf8.Valid(data) {
		return errors.New("the text is not UTF-8")
	}
	into := reflect.ValueOf(v).Elem()
	of := s.shapeOf(into.Type())
	if into.IsZero() {
		if of.quickly(data, into) {
			return nil
		}
		into.SetZero()
	}
	return s.slowly(data, v, of)
}

// slowly reads whatever is right, and says what is wrong.
func (s *Shapes) slowly(data []byte, v any, of *shape) error {
	if err := json.Unmarshal(data, v); err != nil {
		return plain(err)
	}
	w := walk{rest: data}
	return w.value(of, nil, 0)
}

// plain says what is wrong in the words of JSON, not in those of Go.
func plain(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	return fmt.Errorf("%s: want %s, got %s", quoted(wrong.Field), want(wrong.Type), wrong.Value)
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
