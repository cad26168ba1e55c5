package driver_test

import (
	"errors"
	"testing"

	"github.com/holdfast-locks/holdfast/driver"
)

// TestEventKinds: each kind has one name of its own, in JSON too, and no other text
// is one.
func TestEventKinds(t *testing.T) {
	seen := map[string]bool{}
	for k := driver.EventGap; k <= driver.EventCompleted; k++ {
		text, err := k.MarshalText()
		read := driver.EventKind(-1)
		if err != nil || seen[string(text)] || read.UnmarshalText(text) != nil || read != k {
			t.Errorf("%v: %q, %v, read as %v", k, text, err, read)
		}
		seen[string(text)] = true
		if k.Begins() && k.Ends() {
			t.Errorf("%v both begins and ends a lease", k)
		}
	}
	if got := driver.EventHandedOver.String(); got != "handed over" || !seen["handed_over"] {
		t.Errorf("EventHandedOver is %q", got)
	}
	k := driver.EventLost
	if _, err := (driver.EventCompleted + 1).MarshalText(); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("a number that is not a kind: %v, want ErrInvalid", err)
	}
	if err := k.UnmarshalText([]byte("handed over")); !errors.Is(err, driver.ErrInvalid) || k != driver.EventLost {
		t.Errorf("a text that is not a kind: %v, %v", k, err)
	}
}
