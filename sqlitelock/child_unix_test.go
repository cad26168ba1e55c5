//go:build unix

package sqlitelock

import (
	"syscall"
	"time"
)

// processorTime is what this process has used until now.
func processorTime() (time.Duration, error) {
	var u syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), err
}
