package driver_test

import (
	"errors"
	"testing"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// TestEventKinds checks that each kind has a unique name, which is also its name in JSON, and that
// other texts are refused.
func TestEventKinds(t *testing.T) {
	seen := map[string]bool{}
	for k := lockinfo.HistoryGap; k <= lockinfo.HistoryCompleted; k++ {
		text, err := k.MarshalText()
		read := lockinfo.HistoryKind(-1)
		if err != nil || seen[string(text)] || read.UnmarshalText(text) != nil || read != k {
			t.Errorf("%v: %q, %v, read as %v", k, text, err, read)
		}
		seen[string(text)] = true
		if k.Begins() && k.Ends() {
			t.Errorf("%v both begins and ends a lease", k)
		}
	}
	if got := lockinfo.HistoryHandedOver.String(); got != "handed over" || !seen["handed_over"] {
		t.Errorf("HistoryHandedOver is %q", got)
	}
	k := lockinfo.HistoryLost
	if _, err := (lockinfo.HistoryCompleted + 1).MarshalText(); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("a number that is not a kind: %v, want ErrInvalid", err)
	}
	if err := k.UnmarshalText([]byte("handed over")); !errors.Is(err, driver.ErrInvalid) || k != lockinfo.HistoryLost {
		t.Errorf("a text that is not a kind: %v, %v", k, err)
	}
}
