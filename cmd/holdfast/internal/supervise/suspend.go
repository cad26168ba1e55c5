//go:build unix

package supervise

import (
	"os/signal"

	"golang.org/x/sys/unix"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/terminal"
)

// Suspend stops the job and this process, as Ctrl-Z is to stop a job, and
// returns when this process is continued. The job is still stopped then: the
// caller decides whether it may go on, and calls Resume, or ends it.
//
// Without a shell that could continue it, this process is not stopped, and
// Suspend returns at once.
func (t *Tree) Suspend() {
	_ = t.Signal(unix.SIGSTOP) // for those that caught or ignored SIGTSTP
	t.tty.takeBack(t.pgid)
	// The rest of our own group first: to a shell it is one job with us.
	signal.Ignore(unix.SIGTSTP)
	unix.Kill(0, unix.SIGTSTP)
	terminal.StopSelf()
	t.catchStop()
}

// catchStop has Ctrl-Z delivered to the caller when it reaches this process
// and not the job: stopped alone, this process could not keep the job's
// promises.
func (t *Tree) catchStop() { signal.Notify(t.signals, unix.SIGTSTP) }

// Resume continues the job, in the foreground if this process is there.
func (t *Tree) Resume() {
	t.tty.give(t.pgid)
	_ = t.Signal(unix.SIGCONT)
}
