//go:build unix && !linux

package supervise

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// sysProcAttr asks for a group of its own. There is no parent-death signal
// outside Linux: a command outlives a supervisor that was killed.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// adoptOrphans does nothing: orphans are process 1's, which reaps them.
func adoptOrphans() {}

// stopSelf stops this process if its parent is a shell with job control, which
// can continue it. (The kernel would decide that for SIGTSTP, but package
// signal cannot restore the default action of a signal that it has handled.)
func stopSelf() {
	parent := unix.Getppid()
	group, err := unix.Getpgid(parent)
	session, err2 := unix.Getsid(parent)
	own, err3 := unix.Getsid(0)
	if errors.Join(err, err2, err3) == nil && session == own && group != unix.Getpgrp() {
		unix.Kill(unix.Getpid(), unix.SIGSTOP)
	}
}

// noSuchGroup reports whether err, from kill, says that the group is empty.
// A group of nothing but zombies is EPERM on BSD systems.
func noSuchGroup(err error) bool {
	return errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EPERM)
}
