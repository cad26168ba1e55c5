//go:build unix

package supervise

import (
	"os/signal"

	"golang.org/x/sys/unix"
)

// inForeground reports whether pgid is the foreground group of the controlling terminal
// on standard input, if that is one.
func inForeground(pgid int) bool {
	fg, err := unix.IoctlGetInt(unix.Stdin, unix.TIOCGPGRP)
	return err == nil && fg == pgid
}

// mayGiveTerminal reports whether this process is in the foreground, and so may give
// that to the command: one that runs in the background takes the terminal from
// nobody.
//
// From then on this process is in the background. It must be able to write
// messages and to take the terminal back without being stopped for it; a
// supervisor that is stopped supervises nothing. The command is the warden's
// child and does not inherit this.
func mayGiveTerminal() bool {
	if !inForeground(unix.Getpgrp()) {
		return false
	}
	signal.Ignore(unix.SIGTTOU)
	return true
}

// giveTerminal puts pgid into the foreground if this process is there.
func giveTerminal(pgid int) {
	if mayGiveTerminal() {
		unix.IoctlSetPointerInt(unix.Stdin, unix.TIOCSPGRP, pgid)
	}
}

// takeBackTerminal returns the foreground from pgid to this process's group.
func takeBackTerminal(pgid int) {
	if inForeground(pgid) {
		takeTerminal()
	}
}

// takeTerminal puts this process's group into the foreground.
func takeTerminal() {
	unix.IoctlSetPointerInt(unix.Stdin, unix.TIOCSPGRP, unix.Getpgrp())
}
