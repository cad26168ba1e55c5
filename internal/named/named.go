// Package named gives numbered constants their names.
package named

import (
	"fmt"
	"slices"
)

// Of returns the name of one of the values that count from 0, or its type and number if
// it has none.
func Of[T ~int](value T, kind string, names ...string) string {
	if value < 0 || int(value) >= len(names) {
		return fmt.Sprintf("%s(%d)", kind, int(value))
	}
	return names[value]
}

// Text returns the name of a value, and fails for a value without a name.
func Text[T ~int](value T, names ...string) ([]byte, error) {
	if value < 0 || int(value) >= len(names) {
		return nil, fmt.Errorf("%T %d has no name: want one of %q", value, int(value), names)
	}
	return []byte(names[value]), nil
}

// Parse sets a value by its name.
func Parse[T ~int](text []byte, value *T, names ...string) error {
	i := slices.Index(names, string(text))
	if i < 0 {
		return fmt.Errorf("%.40q: want one of %q", text, names)
	}
	*value = T(i)
	return nil
}
