package driver_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/holdfast-locks/holdfast/driver"
)

// TestModeIsTextInJSON: people and other languages read modes by their names.
func TestModeIsTextInJSON(t *testing.T) {
	for mode, want := range map[driver.Mode]string{
		driver.Exclusive: `"exclusive"`, driver.Shared: `"shared"`, driver.Semaphore: `"semaphore"`,
	} {
		text, err := json.Marshal(mode)
		if err != nil || string(text) != want {
			t.Errorf("%s: %s, %v; want %s", mode, text, err, want)
		}
		back := driver.Mode(-1)
		if err := json.Unmarshal(text, &back); err != nil || back != mode {
			t.Errorf("%s: read back as %s, %v", text, back, err)
		}
	}
	for _, mode := range []driver.Mode{-1, driver.Semaphore + 1} {
		if text, err := json.Marshal(mode); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%s: %s, %v; want ErrInvalid", mode, text, err)
		}
	}
	for _, text := range []string{`"Shared"`, `""`, `"upgradable"`, `"exclusive "`} {
		mode := driver.Shared
		if err := json.Unmarshal([]byte(text), &mode); !errors.Is(err, driver.ErrInvalid) || mode != driver.Shared {
			t.Errorf("%s: %s, %v; want ErrInvalid and no change", text, mode, err)
		}
	}
}
