package exit

import (
	"fmt"
	"testing"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/onetime"
	"github.com/holdfast-locks/holdfast/wire/codes"
)

// TestEveryCodeHasAStatus: no error ends in a status that nobody has chosen.
func TestEveryCodeHasAStatus(t *testing.T) {
	for _, c := range codes.All() {
		if statuses[c.Name] == OK {
			t.Errorf("%s has no status", c.Name)
		}
	}
	if len(statuses) != len(codes.All()) {
		t.Errorf("%d statuses for %d codes", len(statuses), len(codes.All()))
	}
}

func TestStatusOf(t *testing.T) {
	for want, errs := range map[int][]error{
		Busy:         {&holdfast.HeldError{}, &holdfast.InProgressError{}},
		NotPermitted: {holdfast.ErrPermission},
		Config:       {holdfast.ErrUnsupported, holdfast.ErrKindMismatch, holdfast.ErrFingerprint},
		Usage:        {holdfast.ErrInvalid, onetime.ErrMalformed},
		Not:          {onetime.ErrUnknown, onetime.ErrExpired, onetime.ErrRevoked, onetime.ErrRedeemed},
		Unavailable:  {holdfast.ErrUnavailable, holdfast.ErrOutcomeUnknown, holdfast.ErrLost, fmt.Errorf("of no class")},
	} {
		for _, err := range errs {
			if got := StatusOf(fmt.Errorf("acquire: %w", err)); got != want {
				t.Errorf("%v: status %d, want %d", err, got, want)
			}
		}
	}
}
