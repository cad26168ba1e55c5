// Package modes has the mode of a lock in the three fields in which JSON and the stores
// keep it.
package modes

import (
	"fmt"

	"github.com/holdfast-locks/holdfast/internal/sentinel"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// Fields are one mode.
type Fields struct {
	Kind    Kind `json:"mode,omitzero"`
	Limit   int  `json:"limit,omitempty"`   // 0 unless Kind is Semaphore
	Permits int  `json:"permits,omitempty"` // 0 unless Kind is Semaphore
}

// A Kind is the first field. It is the number of the kind, and its name in JSON.
type Kind int

// The kinds, as the stores number them.
const (
	Exclusive Kind = iota
	Shared
	Semaphore
)

// noKind is the kind of an invalid mode.
const noKind Kind = 3

// Of returns the fields of a mode. For a mode that its Check refuses, it returns fields that
// Fields.Check refuses.
func Of(m lockinfo.Mode) Fields {
	switch m {
	case lockinfo.Exclusive, lockinfo.Shared:
		return Fields{Kind: Kind(m)}
	case lockinfo.Permits(m.Permits(), m.Limit()):
		return Fields{Semaphore, m.Limit(), m.Permits()}
	}
	return Fields{Kind: noKind}
}

// Mode returns the mode with these fields. For an unknown kind it returns a mode that its Check
// refuses.
func (f Fields) Mode() lockinfo.Mode {
	switch f.Kind {
	case Exclusive, Shared:
		return lockinfo.Mode(f.Kind)
	case Semaphore:
		return lockinfo.Permits(f.Permits, f.Limit)
	}
	return lockinfo.Mode(noKind)
}

// Check returns an error that wraps holdfast.ErrInvalid if these are not the fields of a
// mode.
func (f Fields) Check() error {
	switch {
	case f.Kind != Semaphore && (f.Limit != 0 || f.Permits != 0):
		return fmt.Errorf("%w limit %d, permits %d: only mode semaphore has them", sentinel.ErrInvalid, f.Limit, f.Permits)
	case f.Kind == Semaphore && (f.Limit < 1 || f.Limit > lockinfo.MaxLimit):
		return fmt.Errorf("%w limit %d: want 1 to %d", sentinel.ErrInvalid, f.Limit, lockinfo.MaxLimit)
	case f.Kind == Semaphore && (f.Permits < 1 || f.Permits > f.Limit):
		return fmt.Errorf("%w permits %d: want 1 to the limit, %d", sentinel.ErrInvalid, f.Permits, f.Limit)
	}
	return f.Mode().Check()
}

// String returns the name of the kind.
func (k Kind) String() string { return Fields{Kind: k, Limit: 1, Permits: 1}.Mode().Kind() }

// MarshalText returns the name of the kind. It fails for a number that is not a kind.
func (k Kind) MarshalText() ([]byte, error) {
	if k < Exclusive || k > Semaphore {
		return nil, fmt.Errorf("%w mode %d", sentinel.ErrInvalid, int(k))
	}
	return []byte(k.String()), nil
}

// UnmarshalText sets the kind by its name. Another text is an error that wraps
// holdfast.ErrInvalid, and leaves the kind unchanged.
func (k *Kind) UnmarshalText(text []byte) error {
	for of := Exclusive; of <= Semaphore; of++ {
		if of.String() == string(text) {
			*k = of
			return nil
		}
	}
	return fmt.Errorf("%w mode %q: want exclusive, shared or semaphore", sentinel.ErrInvalid, text)
}
