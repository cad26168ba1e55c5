//go:build unix

package supervise

import (
	"os/signal"

	"golang.org/x/sys/unix"
)

// inForeground reports whether standard input is the controlling terminal, with pgid as its
// foreground group.
func inForeground(pgid int) bool {
	fg, err := unix.IoctlGetInt(unix.Stdin, unix.TIOCGPGRP)
	return err == nil && fg == pgid
}

// mayGiveTerminal reports whether this process is in the foreground, and so may put the command
// there. A process in the background takes the terminal from no other.
//
// From then on this process is in the background. It must be able to write messages and to take
// the terminal back without being stopped: a stopped supervisor supervises nothing. The command
// is the warden's child and does not inherit this.
func mayGiveTerminal() bool {
	if !inForeground(unix.Getpgrp()) {
		return false
	}
	signal.Ignore(unix.SIGTTOU)
	return true
}

// giveTerminal puts pgid into the foreground if this process is in the foreground.
func giveTerminal(pgid int) {
	if mayGiveTerminal() {
		unix.IoctlSetPointerInt(unix.Stdin, unix.TIOCSPGRP, pgid)
	}
}

// takeBackTerminal puts this process's group into the foreground if pgid is there.
func takeBackTerminal(pgid int) {
	if inForeground(pgid) {
		takeTerminal()
	}
}

// takeTerminal puts this process's group into the foreground.
func takeTerminal() {
	unix.IoctlSetPointerInt(unix.Stdin, unix.TIOCSPGRP, unix.Getpgrp())
}
