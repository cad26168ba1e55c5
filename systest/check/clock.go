//go:build unix

package check

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now returns the present instant as nanoseconds of the monotonic clock, which
// all processes of a machine share, and which nothing sets.
func Now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic("no monotonic clock: " + err.Error())
	}
	return ts.Nano()
}

// Instant returns t, which must have a monotonic reading, as Now would, or a
// little earlier if the process is interrupted meanwhile.
func Instant(t time.Time) int64 {
	now := Now()
	return now + int64(time.Until(t))
}
