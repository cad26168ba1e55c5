package driver

import (
	"fmt"
	"strconv"
)

// A Mode says which leases of a name are compatible.
type Mode int

const (
	Exclusive Mode = iota // one lease
	Shared                // any number of shared leases, or one exclusive
	Semaphore             // leases with at most Limit permits together
)

func (m Mode) String() string {
	switch m {
	case Exclusive:
		return "exclusive"
	case Shared:
		return "shared"
	case Semaphore:
		return "semaphore"
	}
	return "Mode(" + strconv.Itoa(int(m)) + ")"
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
