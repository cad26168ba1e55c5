//go:build unix

package supervise

import (
	"os/signal"

	"golang.org/x/sys/unix"
)

// A terminal is the controlling terminal on standard input, if that is one.
type terminal struct{ there bool }

func findTerminal() terminal {
	_, err := unix.IoctlGetInt(unix.Stdin, unix.TIOCGPGRP)
	return terminal{there: err == nil}
}

// foreground reports whether pgid is the foreground group.
func (t terminal) foreground(pgid int) bool {
	fg, err := unix.IoctlGetInt(unix.Stdin, unix.TIOCGPGRP)
	return err == nil && fg == pgid
}

// give puts pgid into the foreground if this process is there: one that runs
// in the background takes the terminal from nobody.
func (t terminal) give(pgid int) {
	if !t.there || !t.foreground(unix.Getpgrp()) {
		return
	}
	unix.IoctlSetPointerInt(unix.Stdin, unix.TIOCSPGRP, pgid)
	// From now on this process is in the background. It must be able to write
	// messages and to take the terminal back without being stopped for it; a
	// supervisor that is stopped supervises nothing. The command was started
	// before and does not inherit this.
	signal.Ignore(unix.SIGTTOU)
	// The command may have been stopped for reading before it had the right.
	unix.Kill(-pgid, unix.SIGCONT)
}

// takeBack returns the foreground from pgid to this process's group.
func (t terminal) takeBack(pgid int) {
	if t.there && t.foreground(pgid) {
		unix.IoctlSetPointerInt(unix.Stdin, unix.TIOCSPGRP, unix.Getpgrp())
	}
}
