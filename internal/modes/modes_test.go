package modes_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/modes"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// TestFields checks that every mode survives the way through its fields, and that the JSON of the
// fields does not change.
func TestFields(t *testing.T) {
	for mode, want := range map[lockinfo.Mode]string{
		lockinfo.Exclusive: `{}`, lockinfo.Shared: `{"mode":"shared"}`,
		lockinfo.Permits(2, 5): `{"mode":"semaphore","limit":5,"permits":2}`,
	} {
		f := modes.Of(mode)
		text, err := json.Marshal(f)
		var back modes.Fields
		if err != nil || string(text) != want || json.Unmarshal(text, &back) != nil || back != f {
			t.Errorf("%s: %s, %v, read back as %+v; want %s", mode, text, err, back, want)
		}
		if f.Mode() != mode || f.Check() != nil || f.Kind.String() != mode.Kind() {
			t.Errorf("%s: %+v is %s, %v", mode, f, f.Mode(), f.Check())
		}
	}
}

// TestFieldsOutOfRange checks that values that are not a mode are refused in both forms, and never
// become another mode.
func TestFieldsOutOfRange(t *testing.T) {
	for _, mode := range []lockinfo.Mode{3, 4, 5, 7, lockinfo.Permits(0, 0), lockinfo.Permits(3, 2), lockinfo.Permits(1, lockinfo.MaxLimit+1)} {
		if err := modes.Of(mode).Check(); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("the fields of %s: %v", mode, err)
		}
	}
	for _, f := range []modes.Fields{
		{Limit: 2}, {Permits: 1}, {Kind: modes.Shared, Limit: 2, Permits: 1}, {Kind: modes.Semaphore}, {Kind: modes.Semaphore, Limit: 2},
		{Kind: modes.Semaphore, Limit: 2, Permits: 3}, {Kind: modes.Semaphore, Limit: lockinfo.MaxLimit + 1, Permits: 1}, {Kind: 3}, {Kind: 6}, {Kind: -1}, {Kind: -2},
	} {
		if err := f.Check(); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%+v: %v", f, err)
		}
	}
	for _, f := range []modes.Fields{{Kind: 3}, {Kind: 6}, {Kind: -1}, {Kind: -2}, {Kind: 4}} {
		if text, err := json.Marshal(f); !errors.Is(err, driver.ErrInvalid) || f.Mode().Check() == nil {
			t.Errorf("%+v: %s, %v, mode %s", f, text, err, f.Mode())
		}
	}
	for _, text := range []string{`"Shared"`, `""`, `"2 of 5 permits"`} {
		kind := modes.Shared
		if err := json.Unmarshal([]byte(text), &kind); !errors.Is(err, driver.ErrInvalid) || kind != modes.Shared {
			t.Errorf("%s: %s, %v", text, kind, err)
		}
	}
}
