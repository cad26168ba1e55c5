package sqlitelock

import (
	"time"

	"golang.org/x/sys/unix"
)

// brief sleeps for less than a millisecond. time.Sleep takes at least that long in
// a process that has nothing else to do.
func brief(d time.Duration) {
	t := unix.NsecToTimespec(d.Nanoseconds())
	_ = unix.Nanosleep(&t, nil) // a signal may end it early
}
