package form

import (
	"fmt"
	"slices"

	"github.com/holdfast-locks/holdfast/driver"
)

// An Outcome is a driver.Outcome, which has a name on the wire.
type Outcome driver.Outcome

var outcomes = []string{driver.Held: "held", driver.Granted: "granted", driver.Cancelled: "cancelled", driver.Recorded: "recorded", driver.Spent: "spent"}

// MarshalText implements encoding.TextMarshaler.
func (o Outcome) MarshalText() ([]byte, error) { return nameOf(outcomes, int(o)) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (o *Outcome) UnmarshalText(text []byte) error { return numberOf(outcomes, text, o) }

// A State is a driver.VaultState.
type State driver.VaultState

var states = []string{
	driver.Unknown: driver.Unknown.String(), driver.Fresh: driver.Fresh.String(), driver.Redeemed: driver.Redeemed.String(),
	driver.Revoked: driver.Revoked.String(), driver.Expired: driver.Expired.String(),
}

// MarshalText implements encoding.TextMarshaler.
func (s State) MarshalText() ([]byte, error) { return nameOf(states, int(s)) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *State) UnmarshalText(text []byte) error { return numberOf(states, text, s) }

// A Level is a driver.Level.
type Level driver.Level

var levels = []string{driver.OK: driver.OK.String(), driver.Warn: driver.Warn.String(), driver.Fail: driver.Fail.String()}

// MarshalText implements encoding.TextMarshaler.
func (l Level) MarshalText() ([]byte, error) { return nameOf(levels, int(l)) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *Level) UnmarshalText(text []byte) error { return numberOf(levels, text, l) }

func nameOf(names []string, n int) ([]byte, error) {
	if n < 0 || n >= len(names) {
		return nil, fmt.Errorf("form: no name for %d: want one of %q", n, names)
	}
	return []byte(names[n]), nil
}

func numberOf[N ~int](names []string, text []byte, n *N) error {
	i := slices.Index(names, string(text))
	if i < 0 {
		return fmt.Errorf("form: %.40q: want one of %q", text, names)
	}
	*n = N(i)
	return nil
}
