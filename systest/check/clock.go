//go:build unix

package check

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now returns the current time in nanoseconds of the monotonic clock, which all processes of a
// machine share and which is never set.
func Now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic("no monotonic clock: " + err.Error())
	}
	return ts.Nano()
}

// Instant converts t, which must have a monotonic reading, to the clock of Now. The result may be
// a little early if the process is interrupted meanwhile.
func Instant(t time.Time) int64 {
	now := Now()
	return now + int64(time.Until(t))
}
