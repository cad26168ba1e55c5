//go:build unix

// Package supervise runs one command so that whatever the command starts can be
// signalled, waited for and ended together with it. It knows nothing of locks.
//
// On Linux the job is the command and all that descends from it, whatever
// group, session or parent a process has given itself: the command's parent is
// a warden, a second process of this program, which the kernel makes the parent
// of every orphan below it. So the job is what is below the warden, and nothing
// else. On other systems the job is the command's process group.
//
// A process can supervise one job at a time, one after the other, and must not start
// other children: Run makes it the reaper of all its children.
package supervise

import (
	"os"
	"os/signal"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Command is what to run. Path is the file, Args begins with the name of
// the command, Env is the whole environment. The command gets this process's
// standard input, error and, unless Stdout is another file, output, and what
// other descriptors this process has inherited.
type Command struct {
	Path string
	Args []string
	Env  []string

	// Mark is an entry of Env that no other job has. It is only used where
	// descent alone no longer tells whose a process is.
	Mark string

	Stdout *os.File // nil: this process's

	// KillAt is the first argument of Tree.Until, for a process that is stopped in
	// the instant in which the command starts; zero: no end.
	KillAt time.Time

	// Signals gets SIGTSTP, from when the command is started, and what the
	// command sends to its parent; see Tree.Suspend.
	Signals chan<- os.Signal
}

// A Tree is a command that was started, and all that descends from it. Its
// methods are for one goroutine.
type Tree struct {
	pgid    int
	warden  *warden
	job     job
	signals chan<- os.Signal

	ending              // guarded by exited
	fallen  atomic.Bool // the warden has ended before the job
	exited  chan struct{}
	gone    chan struct{}
	stopped chan struct{}
}

// An ending is how the command has ended.
type ending struct {
	status    int  // or 128 + n
	signalled bool // a signal has ended it
	cut       bool // the warden had begun to kill the job
}

// A Start is a warden that waits for its command. It takes some milliseconds to
// be there, in which the caller can do other things. It must be run or closed.
type Start struct {
	reaper *reaper
	begun  chan struct{} // closed when what follows is known
	warden *warden
	err    error // there is no warden
	alone  bool  // this process had no children before
}

// Prepare starts a warden for a command with standard output stdout; nil: this
// process's. It does not wait for that: fork and exec of a program of this size
// take as long as opening a store.
func Prepare(stdout *os.File) *Start { return prepare(stdout, &reaper{}) }

// Next prepares another command of this process, with this process's standard output, when what
// s has run is gone and its Tree is closed.
func (s *Start) Next() *Start { return prepare(nil, s.reaper) }

func prepare(stdout *os.File, r *reaper) *Start {
	s := &Start{reaper: r, begun: make(chan struct{})}
	go func() { // ends when the warden has begun to load its program
		defer close(s.begun)
		s.begin(stdout)
	}()
	return s
}

func (s *Start) begin(stdout *os.File) {
	s.alone = isChildless()
	s.warden, s.err = startWarden(stdout)
}

// Close ends a warden that has run nothing. It does nothing otherwise.
func (s *Start) Close() {
	<-s.begun
	if s.err == nil {
		_ = s.warden.orders.Close()
	}
}

// Run runs the command. The whole job is killed when this process ends before
// Tree.Close, however that comes about. If this process is in the foreground of
// the terminal on its standard input, the command's group takes over the
// foreground.
//
// The error is the one of fork or exec; nothing runs then.
func (s *Start) Run(c Command) (*Tree, error) {
	<-s.begun
	if s.err != nil {
		return nil, s.err
	}
	adoptOrphans() // should the warden die, they come to this process
	r := s.reaper.watch(s.warden.pid)
	if s.warden.hasEnded() { // somebody has killed it meanwhile
		s.reaper.forget()
		s.Close()
		if s.begin(c.Stdout); s.err != nil {
			return nil, s.err
		}
		r = s.reaper.watch(s.warden.pid)
	}
	t := &Tree{
		signals: c.Signals,
		warden:  s.warden,
		exited:  make(chan struct{}),
		gone:    make(chan struct{}),
		stopped: make(chan struct{}, 1),
	}
	var earlier []Process
	if !s.alone {
		earlier = slices.DeleteFunc(children(), func(p Process) bool { return p.PID == t.warden.pid })
	}
	t.catchStop() // Ctrl-Z from the command's first instant on
	var err error
	foreground := mayGiveTerminal()
	if t.pgid, err = t.warden.run(c, foreground); err != nil {
		if foreground { // the group that was to be there may have been given it
			takeTerminal()
		}
		t.warden.dismiss()
		return nil, err
	}
	t.job = newJob(t.warden.pid, t.pgid, earlier, c.Mark)
	go t.follow(r) // ends when the job is gone; Gone tells
	return t, nil
}

// follow notes what the warden reports, until the job is gone.
func (t *Tree) follow(r reaped) {
	hasExited, cut := false, false
	exit := func(status int, signalled bool) {
		if !hasExited {
			hasExited, t.ending = true, ending{status, signalled, cut}
			close(t.exited)
		}
	}
	for {
		report, err := t.warden.report()
		if err != nil { // the warden is dead, and the kernel has killed the command
			t.fallen.Store(true)
			exit(128+int(unix.SIGKILL), true)
			t.job.outliveWarden(r)
			close(t.gone)
			return
		}
		switch report.what {
		case reportStopped:
			t.noteStop(syscall.Signal(report.n))
		case reportSignal:
			select {
			case t.signals <- syscall.Signal(report.n):
			default: // as package signal does without a listener
			}
		case reportCut:
			cut = true
		case reportExited:
			exit(report.n, false)
		case reportSignalled:
			exit(128+report.n, true)
		case reportGone:
			close(t.gone)
			return
		}
	}
}

// noteStop reports a stop that is meant for the whole job. SIGSTOP is not: it
// is sent to one process, by somebody who will continue it.
func (t *Tree) noteStop(sig syscall.Signal) {
	switch sig {
	case unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU:
		select {
		case t.stopped <- struct{}{}:
		default:
		}
	}
}

// Exited is closed when the command itself has ended.
func (t *Tree) Exited() <-chan struct{} { return t.exited }

// Gone is closed when no process of the job is left.
func (t *Tree) Gone() <-chan struct{} { return t.gone }

// Stopped delivers a value when the command was stopped from the keyboard or
// for use of the terminal. The caller should call Suspend.
func (t *Tree) Stopped() <-chan struct{} { return t.stopped }

// Status is the exit status of the command, or 128 + n if signal n ended it.
// It is valid once Exited is closed.
func (t *Tree) Status() int { return t.status }

// Signalled reports whether a signal has ended the command, whatever it was
// that sent it. It is valid once Exited is closed.
func (t *Tree) Signalled() bool { return t.signalled }

// Cut reports whether the warden had begun to kill the job, because its time
// had passed, when the command ended; see Until. It is valid once Exited is
// closed.
func (t *Tree) Cut() bool { return t.cut }

// Fallen reports whether the warden has ended before the job. No process would end
// the job then if this process died, so it must be ended now.
func (t *Tree) Fallen() bool { return t.fallen.Load() }

// Signal sends sig once to every process of the job, parents first; what a
// process starts when it hears of it is not told. USR1 and USR2, which mean
// nothing to most programs, are for the command's own group only. Those that
// this process may not signal are named by the error. A process that is stopped
// is continued when it is asked to end, since it could not obey otherwise.
func (t *Tree) Signal(sig syscall.Signal) error {
	if t.isGone() {
		return nil
	}
	return t.job.tell(sig)
}

// Kill sends KILL to every process of the job and of jobs within it.
// The job is gone when Gone says so; until then the caller has to repeat it,
// because there may be new processes. It returns how many were there, and those
// that this process may not kill.
func (t *Tree) Kill() (found int, refused []Process) {
	if t.isGone() {
		return 0, nil
	}
	return t.job.kill()
}

// Left returns the processes of the job that are still there.
func (t *Tree) Left() []Process {
	if t.isGone() {
		return nil
	}
	return t.job.left()
}

func (t *Tree) isGone() bool {
	select {
	case <-t.gone:
		return true
	default:
		return false
	}
}

// Until has the job killed at the instant at even if this process is stopped
// then. A later call replaces it.
func (t *Tree) Until(at time.Time) { t.warden.until(at) }

// Close takes the terminal back. The command must have ended; its background processes live
// on.
func (t *Tree) Close() {
	t.warden.dismiss()
	signal.Reset(unix.SIGTSTP)
	takeBackTerminal(t.pgid)
}
