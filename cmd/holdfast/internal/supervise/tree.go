//go:build unix

// Package supervise runs one command, so that the caller can signal, await and end it together
// with all processes that it starts. It knows nothing of locks.
//
// On Linux the job is the command and all its descendants, whatever group, session or parent a
// process has given itself. The command's parent is a warden, a second process of this program.
// The kernel makes the warden the parent of every orphan below it, so the job is exactly the
// processes below the warden. On other systems the job is the command's process group.
//
// A process can supervise several jobs, one after the other, and must not start other children:
// Run makes it the reaper of all its children.
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

// A Command is what to run. Path is the file, Args begins with the name of the command, Env is
// the whole environment. The command gets this process's standard input and error, its standard
// output unless Stdout is another file, and the other descriptors that this process has
// inherited.
type Command struct {
	Path string
	Args []string
	Env  []string

	// Mark is an entry of Env that no other job has. It is used only where descent no longer
	// tells which job a process belongs to.
	Mark string

	Stdout *os.File // nil: this process's

	// KillAt acts as a first call of Tree.Until, in case this process is stopped just when the
	// command starts; zero: no limit.
	KillAt time.Time

	// Signals gets SIGTSTP, from the start of the command on, and the signals that the command
	// sends to its parent; see Tree.Suspend.
	Signals chan<- os.Signal
}

// A Tree is a command that was started, and all its descendants. Its methods are for one
// goroutine.
type Tree struct {
	pgid    int
	warden  *warden
	job     job
	signals chan<- os.Signal

	Ending              // valid once Exited is closed
	fallen  atomic.Bool // the warden has ended before the job
	exited  chan struct{}
	gone    chan struct{}
	stopped chan struct{}
}

// An Ending is how the command has ended.
type Ending struct {
	Status    int  // the exit status, or 128 + n if signal n ended the command
	Signalled bool // a signal, from any sender, has ended the command
	Cut       bool // the warden had begun to kill the job because its time had passed; see Tree.Until
}

// A Start is a warden that waits for its command. The warden takes some milliseconds to start;
// the caller can do other things meanwhile. The caller must call Run or Close.
type Start struct {
	reaper *reaper
	begun  chan struct{} // closed when the fields below are set
	warden *warden
	err    error // why there is no warden
	alone  bool  // this process had no children before
}

// Prepare starts a warden for a command whose standard output is stdout; nil: this process's. It
// does not wait for the warden: fork and exec of a program of this size take as long as opening a
// store.
func Prepare(stdout *os.File) *Start { return prepare(stdout, &reaper{}) }

// Next prepares another command, with this process's standard output. The job of s must be gone,
// and its Tree closed.
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

// Close ends a warden that has run nothing. Otherwise it does nothing.
func (s *Start) Close() {
	<-s.begun
	if s.err == nil {
		_ = s.warden.orders.Close()
	}
}

// Run runs the command. The whole job is killed if this process ends before Tree.Close, for
// whatever reason. If this process is in the foreground of the terminal on its standard input,
// the command's group takes over the foreground.
//
// The error comes from fork or exec; nothing runs then.
func (s *Start) Run(c Command) (*Tree, error) {
	<-s.begun
	if s.err != nil {
		return nil, s.err
	}
	adoptOrphans() // if the warden dies, this process adopts them
	r := s.reaper.watch(s.warden.pid)
	if s.warden.hasEnded() { // it was killed meanwhile
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
		if foreground { // the command's group may have got it
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
			hasExited, t.Ending = true, Ending{status, signalled, cut}
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

// noteStop reports a stop that is meant for the whole job. SIGSTOP is not: its sender stops one
// process, and will continue it.
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

// Fallen reports whether the warden has ended before the job. Then nothing would end the job if
// this process died, so the caller must end it now.
func (t *Tree) Fallen() bool { return t.fallen.Load() }

// Signal sends sig once to every process of the job, parents first. Processes that are started in
// response do not get it. USR1 and USR2, which mean nothing to most programs, go to the command's
// own group only. The error names the processes that this one may not signal. A stopped process
// that is asked to end is continued, since it could not obey otherwise.
func (t *Tree) Signal(sig syscall.Signal) error {
	if t.isGone() {
		return nil
	}
	return t.job.tell(sig)
}

// Kill sends KILL to every process of the job and of jobs within it. The caller must repeat it
// until Gone is closed, because there may be new processes. It returns the number of processes
// that it found, and those that this process may not kill.
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

// Until has the job killed at the given time, even if this process is stopped then. A later call
// replaces the time.
func (t *Tree) Until(at time.Time) { t.warden.until(at) }

// Close takes the terminal back. The command must have ended; its background processes go on.
func (t *Tree) Close() {
	t.warden.dismiss()
	signal.Reset(unix.SIGTSTP)
	takeBackTerminal(t.pgid)
}
