package supervise

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A job is the command of a warden and all its descendants.
type job struct {
	warden  Process
	pgid    int
	earlier []Process // children of this process that are not of the job
	mark    string
	fallen  *atomic.Bool // the warden is dead, and this process has adopted its job
}

func newJob(warden, pgid int, earlier []Process, mark string) job {
	j := job{pgid: pgid, mark: mark, earlier: earlier, fallen: new(atomic.Bool)}
	j.warden, _ = look(warden)
	return j
}

// children returns the children of this process, including those from before it became this
// program.
func children() (found []Process) {
	for _, pid := range lister()(os.Getpid()) {
		if p, ok := look(pid); ok {
			found = append(found, p)
		}
	}
	return found
}

// isChildless reports whether this process has no children, and so no descendants that could
// become its children. It is false for process 1, which adopts other orphans as well. A list of
// the children takes a hundred times as long.
func isChildless() bool {
	err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WALL|unix.WNOHANG|unix.WNOWAIT, nil)
	return errors.Is(err, unix.ECHILD) && os.Getpid() != 1
}

// walk calls visit for each living process of the job, parents first.
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

// walkOrphans visits the descendants of this process, except the children that it had before the
// job began, and theirs. If it had any, it adopts their orphans as well, and only the mark tells
// which job a process belongs to.
func (j *job) walkOrphans(visit func(Process)) {
	for _, child := range children() {
		wasThere := func(p Process) bool { return p.identity() == child.identity() }
		if slices.ContainsFunc(j.earlier, wasThere) || child.PID == j.warden.PID || len(j.earlier) > 0 && !child.isMarked(j.mark) {
			continue
		}
		visit(child)
		below(child, lister(), visit)
	}
}

// tell sends sig once to each process that the job has now. It repeats walks until two in a row
// find no new process from before the first walk: a process that gets another parent during one
// walk is found by the next. Only then does it send the signal, so that processes which others
// start in response, to clean up, do not get it. Jobs within the job are left to their own
// supervisors, except for STOP and CONT.
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

// tick is the unit in which the kernel reports when a process began.
const tick = 10 * time.Millisecond

// maxRounds bounds the walks through a job that never stops forking. KILL still ends such a job.
const maxRounds = 16

// audience returns the processes that get sig.
func (j *job) audience(sig unix.Signal) []Process {
	nested := map[int]bool{} // wardens, and the processes below them that do not get sig
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

// kill sends KILL to each process of the job as soon as it is found: a killed process starts no
// others.
func (j *job) kill() (found int, refused []Process) {
	j.walk(func(p Process) {
		found++
		if err := p.send(unix.SIGKILL); err != nil {
			refused = append(refused, p)
		}
	})
	return found, refused
}

// left returns the living processes of the job, except the wardens of jobs within it.
func (j *job) left() (left []Process) {
	j.walk(func(p Process) {
		if !p.isWarden() && p.Lives() {
			left = append(left, p)
		}
	})
	return left
}

// outliveWarden is called when the warden is dying. It returns when nothing of the job is left:
// this process has no more children or, if it had some before the job began, two walks in a row
// have found no process of the job.
func (j *job) outliveWarden(r reaped) {
	<-r.wardenDead // until then the warden may have children, although its files are closed
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

// awaitGroup does nothing: a process that has left the group is still below the warden.
func awaitGroup(int) {}

// bootClock goes on while the machine is suspended.
const bootClock = unix.CLOCK_BOOTTIME

// sysProcAttr asks for a process group of its own, and for death with the parent. Package syscall
// covers the case that the parent dies before that is set.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// adoptOrphans makes this process the parent of its orphaned descendants. Without it they would
// be children of process 1, and their job would be unknown.
func adoptOrphans() {
	unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}
