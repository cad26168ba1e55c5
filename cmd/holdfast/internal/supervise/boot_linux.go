package supervise

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootTime reads a clock that goes on while the machine is suspended, as a
// number that means the same in every process.
func bootTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("holdfast: no boot-time clock: " + err.Error())
	}
	return time.Duration(ts.Nano())
}
