package sqlitelock

import (
	"fmt"
	"time"

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
	boot := func() (time.Duration, error) {
		var t unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC_RAW, &t); err != nil {
			return 0, err
		}
		return time.Duration(t.Nano()), nil
	}
	if _, err := boot(); err != nil {
		return clock{}, fmt.Errorf("the boot-time clock is %w: %w", driver.ErrUnsupported, err)
	}
	return clock{bootID: id, boot: boot, wall: time.Now}, nil
}
