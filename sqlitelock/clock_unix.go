//go:build linux || darwin

package sqlitelock

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-locks/holdfast/driver"
)

// bootClock returns the clock of this host for one boot: the system clock with the given number,
// less an offset.
func bootClock(bootID string, number int32, offset time.Duration) (clock, error) {
	boot := func() (time.Duration, error) {
		var t unix.Timespec
		if err := unix.ClockGettime(number, &t); err != nil {
			return 0, err
		}
		return time.Duration(t.Nano()) - offset, nil
	}
	if _, err := boot(); err != nil {
		return clock{}, fmt.Errorf("the boot-time clock is %w: %w", driver.ErrUnsupported, err)
	}
	return clock{bootID: bootID, boot: boot, wall: time.Now}, nil
}
