package exit

import (
	"fmt"
	"slices"
	"testing"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/codes"
	"github.com/holdfast-locks/holdfast/onetime"
)

// TestEveryCodeHasAStatus checks that each code either has a status or is listed here without one.
func TestEveryCodeHasAStatus(t *testing.T) {
	later := []string{ // for these the same command may succeed later
		"store-unavailable", "outcome-unknown", "closed", "not-replicated", "too-many-attempts",
		"broken", "lost", "max-hold", "stalled", "left", "token-stale", "marks-full",
	}
	for _, c := range codes.All() {
		if _, chosen := statuses[c.Name]; chosen == slices.Contains(later, c.Name) {
			t.Errorf("%s: want it in statuses or in the list of those that are not", c.Name)
		}
	}
	if len(statuses)+len(later) != len(codes.All()) {
		t.Errorf("%d statuses and %d without for %d codes", len(statuses), len(later), len(codes.All()))
	}
}

func TestStatusOf(t *testing.T) {
	for want, errs := range map[int][]error{
		Busy:         {&holdfast.HeldError{}, &holdfast.InProgressError{}},
		NotPermitted: {holdfast.ErrPermission},
		Config:       {holdfast.ErrUnsupported, holdfast.ErrKindMismatch, holdfast.ErrFingerprint, holdfast.ErrDeadlock},
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
