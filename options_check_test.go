package holdfast

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// TestCheck checks that options are found wrong before there is a client.
func TestCheck(t *testing.T) {
	for name, o := range map[string]*AcquireOptions{
		"TTL":    {TTL: time.Millisecond},
		"Wait":   {Wait: -1},
		"reason": {Reason: "a\nb"},
		"long":   {Reason: strings.Repeat("a", 4097)},
		"label":  {Labels: map[string]string{"key": "a\xff"}},
	} {
		if err := o.Check(); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (&AcquireOptions{TTL: time.Second, Reason: "why", Labels: map[string]string{"key": "value"}}).Check(); err != nil {
		t.Error(err)
	}
	for name, o := range map[string]*OnceOptions{
		"Retention":   {Retention: time.Millisecond},
		"MaxResult":   {MaxResult: MaxOnceResult + 1},
		"Fingerprint": {Fingerprint: strings.Repeat("a", 257)},
		"text":        {Fingerprint: "a\tb"},
		"Wait":        {Wait: time.Second},
	} {
		if err := o.Check(); !errors.Is(err, ErrInvalid) {
			t.Errorf("once: %s: %v", name, err)
		}
	}
	if err := (&OnceOptions{Fingerprint: "a hash"}).Check(); err != nil {
		t.Error(err)
	}
}
