//go:build unix

package supervise

import (
	"os/signal"

	"golang.org/x/sys/unix"
)

// Suspend stops the job and this process, as Ctrl-Z does, and returns when this process is
// continued. The job is still stopped then: the caller calls Resume, or ends it.
//
// Without a shell that could continue this process, it is not stopped, and Suspend returns at
// once.
func (t *Tree) Suspend() {
	_ = t.Signal(unix.SIGSTOP) // for processes that catch or ignore SIGTSTP
	takeBackTerminal(t.pgid)
	// The rest of our own group first: to a shell it is one job with us.
	signal.Ignore(unix.SIGTSTP)
	unix.Kill(0, unix.SIGTSTP)
	StopSelf()
	t.catchStop()
}

// catchStop has Ctrl-Z delivered to the caller when it reaches this process and not the job. If
// this process alone were stopped, it could not supervise the job.
func (t *Tree) catchStop() { signal.Notify(t.signals, unix.SIGTSTP) }

// Resume continues the job, in the foreground if this process is in the foreground.
func (t *Tree) Resume() {
	giveTerminal(t.pgid)
	_ = t.Signal(unix.SIGCONT)
}

// StopSelf stops this process as Ctrl-Z does, although package signal has handled
// SIGTSTP, and returns when it is continued. Without a shell that could continue it,
// the process does not stop. Afterwards Ctrl-Z stops it until SIGTSTP is caught again.
func StopSelf() {
	signal.Ignore(unix.SIGTSTP)
	stopSelf()
}
