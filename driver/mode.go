package driver

import "fmt"

// A Mode says which leases of a name are compatible.
type Mode int

const (
	Exclusive Mode = iota // one lease
	Shared                // any number of shared leases, or one exclusive
	Semaphore             // leases with at most Limit permits together
)

func (m Mode) String() string {
	return nameOf(m, "Mode", "exclusive", "shared", "semaphore")
}

// nameOf returns the name of one of the values that count from 0, or its type and
// number if it has none.
func nameOf[T ~int](value T, kind string, names ...string) string {
	if value < 0 || int(value) >= len(names) {
		return fmt.Sprintf("%s(%d)", kind, int(value))
	}
	return names[value]
}

// MarshalText returns the mode's name. It fails for a number that is not a mode.
func (m Mode) MarshalText() ([]byte, error) {
	if m < Exclusive || m > Semaphore {
		return nil, fmt.Errorf("%w mode %d", ErrInvalid, int(m))
	}
	return []byte(m.String()), nil
}

// UnmarshalText sets the mode by its name. Another text is an error that wraps
// ErrInvalid, and leaves the mode as it is.
func (m *Mode) UnmarshalText(text []byte) error {
	for of := Exclusive; of <= Semaphore; of++ {
		if of.String() == string(text) {
			*m = of
			return nil
		}
	}
	return fmt.Errorf("%w mode %q: want exclusive, shared or semaphore", ErrInvalid, text)
}
