//go:build unix

package supervise

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootTime returns the time of bootClock, which means the same in every process.
func bootTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(bootClock, &ts); err != nil {
		panic("holdfast: no boot-time clock: " + err.Error())
	}
	return time.Duration(ts.Nano())
}
