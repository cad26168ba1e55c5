package driver_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// TestClass checks the class of each kind of error, wrapped and joined as engines return it.
func TestClass(t *testing.T) {
	tests := []struct {
		err                 error
		class               error
		definite, permanent bool
	}{
		{nil, nil, false, false},
		{errors.New("connection reset"), nil, false, false},
		{context.DeadlineExceeded, nil, false, false},
		{driver.ErrOutcomeUnknown, nil, false, false},
		{driver.ErrUnavailable, driver.ErrUnavailable, true, false},
		{driver.ErrLost, driver.ErrLost, true, true},
		{&lockinfo.BrokenError{}, driver.ErrLost, true, true},
		{driver.ErrInvalid, driver.ErrInvalid, true, true},
		{driver.ErrUnsupported, driver.ErrUnsupported, true, true},
		{driver.ErrPermission, driver.ErrPermission, true, true},
		{driver.ErrKindMismatch, driver.ErrKindMismatch, true, true},
		{driver.ErrClosed, driver.ErrClosed, true, true},
		{fmt.Errorf("%w: %w", driver.ErrUnavailable, driver.ErrPermission), driver.ErrPermission, true, true},
		{fmt.Errorf("%w: %w", driver.ErrUnavailable, context.Canceled), driver.ErrUnavailable, true, false},
	}
	for _, test := range tests {
		err := test.err
		if err != nil {
			err = fmt.Errorf("store: %w", err)
		}
		if got := driver.Class(err); got != test.class {
			t.Errorf("%v is of class %v, want %v", err, got, test.class)
		}
		if driver.Definite(err) != test.definite || driver.Permanent(err) != test.permanent {
			t.Errorf("%v: definite %t, permanent %t", err, driver.Definite(err), driver.Permanent(err))
		}
	}
}
