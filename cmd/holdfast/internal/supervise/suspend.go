//go:build unix

package supervise

import (
	"os/signal"

	"golang.org/x/sys/unix"
)

// Suspend stops the job and this process, as Ctrl-Z is to stop a job, and
// returns when this process is continued. The job is still stopped then: the
// caller decides whether it may go on, and calls Resume, or ends it.
//
// Without a shell that could continue it, this process is not stopped, and
// Suspend returns at once.
func (t *Tree) Suspend() {
	_ = t.Signal(unix.SIGSTOP) // for those that caught or ignored SIGTSTP
	takeBackTerminal(t.pgid)
	// The rest of our own group first: to a shell it is one job with us.
	signal.Ignore(unix.SIGTSTP)
	unix.Kill(0, unix.SIGTSTP)
	StopSelf()
	t.catchStop()
}

// catchStop has Ctrl-Z delivered to the caller when it reaches this process
// and not the job: stopped alone, this process could not keep the job's
// promises.
func (t *Tree) catchStop() { signal.Notify(t.signals, unix.SIGTSTP) }

// Resume continues the job, in the foreground if this process is there.
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
