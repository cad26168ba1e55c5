package sqlitelock

import (
	"time"

	"golang.org/x/sys/unix"
)

// brief sleeps for less than a millisecond. In an otherwise idle process time.Sleep takes at least
// that long.
func brief(d time.Duration) {
	t := unix.NsecToTimespec(d.Nanoseconds())
	_ = unix.Nanosleep(&t, nil) // a signal may end it early
}
