//go:build unix

package supervise

import (
	"os/signal"

	"golang.org/x/sys/unix"
)

// Suspend stops the group and this process, as Ctrl-Z is to stop a job, and
// returns when this process is continued. The group is still stopped then:
// the caller decides whether it may go on, and calls Resume, or ends it.
//
// Without a shell that could continue it, this process is not stopped, and
// Suspend returns at once.
func (g *Group) Suspend() {
	g.Signal(unix.SIGSTOP) // also those that caught or ignored SIGTSTP
	g.tty.takeBack(g.pgid)
	// The rest of the job first, which a shell thinks of as one with us.
	signal.Ignore(unix.SIGTSTP)
	unix.Kill(0, unix.SIGTSTP)
	stopSelf()
	g.catchStop()
}

// catchStop has Ctrl-Z delivered to the caller when it reaches this process
// and not the group: stopped alone, this process could not keep the group's
// promises.
func (g *Group) catchStop() { signal.Notify(g.signals, unix.SIGTSTP) }

// Resume continues the group, in the foreground if this process is there.
func (g *Group) Resume() {
	g.tty.give(g.pgid)
	g.Signal(unix.SIGCONT)
}
