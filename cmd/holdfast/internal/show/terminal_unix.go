//go:build unix

package show

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/supervise"
)

// A Terminal is the terminal that controls this process.
type Terminal struct{ fd int }

// foreground returns the process group in the foreground.
func (t *Terminal) foreground() (int, error) { return unix.IoctlGetInt(t.fd, unix.TIOCGPGRP) }

// Ours reports whether this process is in the foreground. If it is not, another process has the
// screen, and a write may stop this process (SIGTTOU).
func (t *Terminal) Ours() bool {
	group, err := t.foreground()
	return err == nil && group == unix.Getpgrp()
}

// size returns 0 for a dimension that the terminal does not know. ok is false if t is
// not a terminal.
func (t *Terminal) size() (columns, rows int, ok bool) {
	size, err := unix.IoctlGetWinsize(t.fd, unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0, false
	}
	return int(size.Col), int(size.Row), true
}

// Catch delivers changes of the window size to the channel, and Ctrl-Z, which then does not stop
// this process: see IsStop. The caller must call Release.
func (*Terminal) Catch(signals chan<- os.Signal) {
	signal.Notify(signals, unix.SIGWINCH, unix.SIGTSTP)
}

// Release undoes Catch.
func (*Terminal) Release(signals chan<- os.Signal) {
	signal.Stop(signals)
	signal.Ignore(unix.SIGTSTP)
	supervise.DefaultStop()
}

// IsStop reports whether s is Ctrl-Z.
func (*Terminal) IsStop(s os.Signal) bool { return s == unix.SIGTSTP }

// Stop stops this process as Ctrl-Z would have done without Catch, and returns when
// it is continued.
func (*Terminal) Stop(signals chan<- os.Signal) {
	supervise.StopSelf()
	signal.Notify(signals, unix.SIGTSTP)
}
