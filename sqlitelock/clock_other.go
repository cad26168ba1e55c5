//go:build !linux && !darwin

package sqlitelock

import (
	"fmt"
	"runtime"

	"github.com/holdfast-locks/holdfast/driver"
)

// systemClock fails: a lock needs a clock that all processes share, that cannot be set, and
// that counts while the machine sleeps.
func systemClock() (clock, error) {
	return clock{}, fmt.Errorf("%s is %w: it needs the boot-time clock of Linux or macOS", runtime.GOOS, driver.ErrUnsupported)
}
