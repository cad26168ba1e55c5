//go:build unix

// Package supervise runs one command in a process group of its own, so that
// whatever the command starts can be signalled, waited for and ended together
// with it. It knows nothing of locks.
//
// A group holds the command and all its descendants, except those that moved
// to a group or session of their own, as daemons and the jobs of an
// interactive shell do: these are out of reach.
//
// A process can supervise one group at a time, and must not start other
// children meanwhile: Start makes it the reaper of all its descendants.
package supervise

import (
	"errors"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Command is what to run. Path is the file, Args begins with the name of
// the command, Env is the whole environment. The command gets this process's
// standard input, error and, unless Stdout is another file, output.
type Command struct {
	Path string
	Args []string
	Env  []string

	Stdout *os.File // nil: this process's

	// Signals gets SIGTSTP, from when the command is started; see Group.Suspend.
	Signals chan<- os.Signal
}

// A Group is a command that was started and the process group that it leads.
// Its methods are for one goroutine.
type Group struct {
	pgid    int
	tty     terminal
	warden  *warden
	signals chan<- os.Signal

	status  int // guarded by exited
	exited  chan struct{}
	gone    chan struct{}
	stopped chan struct{}
}

// Start runs the command. Its group is killed when this process ends before
// Close, however that comes about. If this process is in the foreground of the
// terminal on its standard input, the group takes over the foreground.
//
// The error is that of fork or exec; nothing runs then.
func Start(c Command) (*Group, error) {
	g := &Group{
		signals: c.Signals,
		tty:     findTerminal(),
		exited:  make(chan struct{}),
		gone:    make(chan struct{}),
		stopped: make(chan struct{}, 1),
	}
	adoptOrphans()
	var err error
	if g.warden, err = startWarden(); err != nil {
		return nil, err
	}
	g.catchStop() // Ctrl-Z from the command's first instant on
	started := make(chan error)
	go g.run(c, started) // ends when the group is gone; Gone tells
	if err := <-started; err != nil {
		g.warden.dismiss()
		return nil, err
	}
	g.warden.guard(g.pgid)
	return g, nil
}

// run starts the command and waits until its group is gone.
func (g *Group) run(c Command, started chan<- error) {
	// The kernel ties the parent-death signal to the thread that forked, not
	// to the process. This thread therefore has to last as long as the
	// command does.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	stdout := uintptr(unix.Stdout)
	if c.Stdout != nil {
		stdout = c.Stdout.Fd()
	}
	pid, err := syscall.ForkExec(c.Path, c.Args, &syscall.ProcAttr{
		Env:   c.Env,
		Files: []uintptr{0, stdout, 2},
		Sys:   sysProcAttr(),
	})
	runtime.KeepAlive(c.Stdout)
	if err != nil {
		started <- err
		return
	}
	g.pgid = pid
	g.tty.give(g.pgid)
	started <- nil

	g.reapLeader()
	close(g.exited)
	// From here on the group ID is free for reuse as soon as the group is
	// empty, so that must be noticed soon: it ends all signalling.
	for wait := time.Millisecond; !g.empty(); wait = min(2*wait, 10*time.Millisecond) {
		time.Sleep(wait)
	}
	close(g.gone)
}

// reapLeader waits for the command and notes its status. It also reaps the
// orphans that this process has adopted.
func (g *Group) reapLeader() {
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, unix.WUNTRACED, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil: // ECHILD: somebody else has reaped the command
			return
		case pid != g.pgid:
		case ws.Stopped():
			g.noteStop(ws.StopSignal())
		case ws.Signaled():
			g.status = 128 + int(ws.Signal())
			return
		case ws.Exited():
			g.status = ws.ExitStatus()
			return
		}
	}
}

// noteStop reports a stop that is meant for the whole job. SIGSTOP is not: it
// is sent to one process, by somebody who will continue it.
func (g *Group) noteStop(sig unix.Signal) {
	switch sig {
	case unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU:
		select {
		case g.stopped <- struct{}{}:
		default:
		}
	}
}

// empty reports whether no process of the group is left, zombies included.
func (g *Group) empty() bool {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		if err != nil || pid <= 0 {
			break
		}
	}
	return noSuchGroup(unix.Kill(-g.pgid, 0))
}

// Exited is closed when the command itself has ended.
func (g *Group) Exited() <-chan struct{} { return g.exited }

// Gone is closed when no process of the group is left.
func (g *Group) Gone() <-chan struct{} { return g.gone }

// Stopped delivers a value when the command was stopped from the keyboard or
// for use of the terminal. The caller should call Suspend.
func (g *Group) Stopped() <-chan struct{} { return g.stopped }

// Status is the exit status of the command, or 128 + n if signal n ended it.
// It is valid once Exited is closed.
func (g *Group) Status() int { return g.status }

// Signal sends sig to every process of the group. A group that is gone is no
// error. A group that is stopped is continued when it is asked to end, since
// it could not obey otherwise.
func (g *Group) Signal(sig syscall.Signal) error {
	select {
	case <-g.gone:
		return nil
	default:
	}
	err := unix.Kill(-g.pgid, sig)
	if err == nil && (sig == unix.SIGTERM || sig == unix.SIGHUP) {
		err = unix.Kill(-g.pgid, unix.SIGCONT)
	}
	if noSuchGroup(err) {
		return nil
	}
	return err
}

// Until has the group killed at t even if this process is stopped then. A
// later call replaces t.
func (g *Group) Until(t time.Time) { g.warden.until(t) }

// Close gives the terminal back. The command must have ended; what it left
// behind lives on.
func (g *Group) Close() {
	g.warden.dismiss()
	signal.Reset(unix.SIGTSTP)
	g.tty.takeBack(g.pgid)
}
