//go:build !linux && !darwin

package sqlitelock

import (
	"fmt"
	"runtime"

	"github.com/holdfast-locks/holdfast/driver"
)

// systemClock fails: without a clock that all processes share, that nobody
// can set and that counts while the machine sleeps, a lock would not be one.
func systemClock() (clock, error) {
	return clock{}, fmt.Errorf("%s is %w: it needs the boot-time clock of Linux or macOS", runtime.GOOS, driver.ErrUnsupported)
}
