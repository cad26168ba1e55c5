package sqlitelock

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/holdfast-locks/holdfast/driver"
)

// systemClock returns the clock of this host. Unlike its namesake on Linux,
// CLOCK_MONOTONIC_RAW on macOS counts while the machine sleeps; unlike
// CLOCK_MONOTONIC it is not computed from the wall clock.
func systemClock() (clock, error) {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return clock{}, fmt.Errorf("the boot ID is %w: %w", driver.ErrUnsupported, err)
	}
	return bootClock(id, unix.CLOCK_MONOTONIC_RAW, 0)
}
