//go:build unix

package sqlitelock

import (
	"syscall"
	"time"
)

// processorTime returns the CPU time that this process has used so far.
func processorTime() (time.Duration, error) {
	var u syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), err
}
