//go:build unix

package supervise

import (
	"os/signal"

	"golang.org/x/sys/unix"
)

// A tty is the controlling terminal on standard input, if that is one.
type tty struct{ there bool }

func findTerminal() tty {
	_, err := unix.IoctlGetInt(unix.Stdin, unix.TIOCGPGRP)
	return tty{there: err == nil}
}

// foreground reports whether pgid is the foreground group.
func (t tty) foreground(pgid int) bool {
	fg, err := unix.IoctlGetInt(unix.Stdin, unix.TIOCGPGRP)
	return err == nil && fg == pgid
}

// mayGive reports whether this process is in the foreground, and so may give
// that to the command: one that runs in the background takes the terminal from
// nobody.
//
// From then on this process is in the background. It must be able to write
// messages and to take the terminal back without being stopped for it; a
// supervisor that is stopped supervises nothing. The command is the warden's
// child and does not inherit this.
func (t tty) mayGive() bool {
	if !t.there || !t.foreground(unix.Getpgrp()) {
		return false
	}
	signal.Ignore(unix.SIGTTOU)
	return true
}

// give puts pgid into the foreground if this process is there.
func (t tty) give(pgid int) {
	if t.mayGive() {
		unix.IoctlSetPointerInt(unix.Stdin, unix.TIOCSPGRP, pgid)
	}
}

// takeBack returns the foreground from pgid to this process's group.
func (t tty) takeBack(pgid int) {
	if t.there && t.foreground(pgid) {
		t.take()
	}
}

// take puts this process's group into the foreground.
func (t tty) take() {
	unix.IoctlSetPointerInt(unix.Stdin, unix.TIOCSPGRP, unix.Getpgrp())
}
