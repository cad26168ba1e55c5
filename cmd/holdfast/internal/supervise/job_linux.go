package supervise

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A job is what descends from the command of a warden.
type job struct {
	warden  Process
	pgid    int
	earlier map[identity]bool // children of this process that are not of the job
	mark    string
	fallen  *atomic.Bool // the warden is dead: its job was given to this process
}

func newJob(warden, pgid int, earlier []Process, mark string) job {
	j := job{pgid: pgid, mark: mark, earlier: map[identity]bool{}, fallen: new(atomic.Bool)}
	j.warden, _ = look(warden)
	for _, p := range earlier {
		j.earlier[p.identity()] = true
	}
	return j
}

// children returns the children of this process, those that it had before it
// became this program.
func children() (found []Process) {
	for _, pid := range lister()(os.Getpid()) {
		if p, ok := look(pid); ok {
			found = append(found, p)
		}
	}
	return found
}

// isChildless reports whether this process has no children, and so nothing below
// it that could become one. Process 1 adopts other orphans as well. Their list
// takes a hundred times as long.
func isChildless() bool {
	err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WALL|unix.WNOHANG|unix.WNOWAIT, nil)
	return errors.Is(err, unix.ECHILD) && os.Getpid() != 1
}

// walk calls visit for each process of the job that lives, parents first.
func (j *job) walk(visit func(Process)) {
	living := func(p Process) {
		if !p.dead {
			visit(p)
		}
	}
	if j.fallen.Load() {
		j.walkOrphans(living)
	} else {
		below(j.warden, lister(), living)
	}
}

// walkOrphans visits what descends from this process, except from the children
// that it had before the job began. If it had any, their orphans come here as
// well, and only the mark tells whose a process is.
func (j *job) walkOrphans(visit func(Process)) {
	for _, child := range children() {
		if j.earlier[child.identity()] || child.PID == j.warden.PID || len(j.earlier) > 0 && !child.isMarked(j.mark) {
			continue
		}
		visit(child)
		below(child, lister(), visit)
	}
}

// tell sends sig once to all processes that are there. Walks are repeated until
// two in a row find no new process that was there when the first began: one that
// is given to another parent during a walk is found by the next.
// Only then is the signal sent, so that what a process starts when it hears of
// it, to clean up, is left in peace. The jobs within the job are left to their
// own supervisors, except for what stops and continues everything.
func (j *job) tell(sig unix.Signal) error {
	var there []Process
	seen, began := map[identity]bool{}, uint64(bootTime()/tick)
	for round, quiet := 0, 0; round < maxRounds && quiet < 2; round++ {
		quiet++
		for _, p := range j.audience(sig) {
			if !seen[p.identity()] {
				seen[p.identity()] = true
				there = append(there, p)
				if p.start <= began {
					quiet = 0
				}
			}
		}
	}
	var errs []error
	for _, p := range there {
		err := p.send(sig)
		if err == nil && (sig == unix.SIGTERM || sig == unix.SIGHUP) {
			err = p.send(unix.SIGCONT)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", p, err))
		}
	}
	return errors.Join(errs...)
}

// tick is the unit in which the kernel tells when a process began.
const tick = 10 * time.Millisecond

// maxRounds bounds the walks for a job that never stops forking. KILL gets it.
const maxRounds = 16

// audience returns the processes that are to get sig.
func (j *job) audience(sig unix.Signal) []Process {
	nested := map[int]bool{} // wardens and, below them, those that are not to get it
	var to []Process
	j.walk(func(p Process) { // parents first
		switch {
		case p.isWarden():
			nested[p.PID] = true
		case nested[p.parent] && sig != unix.SIGSTOP && sig != unix.SIGCONT:
			nested[p.PID] = true
		case (sig == unix.SIGUSR1 || sig == unix.SIGUSR2) && p.group != j.pgid:
		default:
			to = append(to, p)
		}
	})
	return to
}

// kill sends KILL to all processes that are there, to each as soon as it is found:
// one that has got it starts no others.
func (j *job) kill() (found int, refused []Process) {
	j.walk(func(p Process) {
		found++
		if err := p.send(unix.SIGKILL); err != nil {
			refused = append(refused, p)
		}
	})
	return found, refused
}

// left returns the processes that are there, except the wardens of jobs within the
// job.
func (j *job) left() (left []Process) {
	j.walk(func(p Process) {
		if !p.isWarden() && p.lives() {
			left = append(left, p)
		}
	})
	return left
}

// outliveWarden is called when the warden is dying, and returns when nothing of
// the job is left: when this process has no more children or, if it had some
// before the job began, when two walks in a row have found none of the job's.
func (j *job) outliveWarden(r reaped) {
	<-r.wardenDead // until then it may have children, although its files are closed
	j.fallen.Store(true)
	for quiet := 0; quiet < 2; {
		select {
		case <-r.childless:
			return
		case <-time.After(fallenPause):
		}
		if quiet++; len(j.earlier) == 0 || len(j.left()) > 0 {
			quiet = 0
		}
	}
}

// fallenPause is the time between two walks through a job without a warden.
const fallenPause = 5 * time.Millisecond

// awaitGroup has nothing to wait for: a process that has left the group is below
// the warden all the same.
func awaitGroup(int) {}

// bootClock goes on while the machine is suspended.
const bootClock = unix.CLOCK_BOOTTIME

// sysProcAttr asks for a group of its own, and for death with its parent; the
// syscall package covers the case that the parent died before that was set.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// adoptOrphans makes descendants whose parent ends children of this process.
// Without it they would be children of process 1, and their job would be unknown.
func adoptOrphans() {
	unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}
