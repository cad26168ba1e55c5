//go:build unix && !linux

package supervise

import (
	"errors"
	"os/signal"

	"golang.org/x/sys/unix"
)

// stopSelf stops this process if its parent is a shell with job control, which
// can continue it. (The kernel would decide that for SIGTSTP, but package
// signal cannot restore the default action of a signal that it has handled.)
func stopSelf() {
	parent := unix.Getppid()
	group, err := unix.Getpgid(parent)
	session, err2 := unix.Getsid(parent)
	own, err3 := unix.Getsid(0)
	if errors.Join(err, err2, err3) == nil && session == own && group != unix.Getpgrp() {
		_ = unix.Kill(unix.Getpid(), unix.SIGSTOP)
	}
}

// DefaultStop restores the default action of SIGTSTP as far as this system allows: processes that
// this one starts do not ignore it.
func DefaultStop() { signal.Reset(unix.SIGTSTP) }
