//go:build unix && !linux

package supervise

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Process is what is left of a job: its process group. On this system the descendants of a
// process are unknown once their parent has ended.
type Process struct{ PID int }

// String returns p as messages show it.
func (p Process) String() string { return fmt.Sprintf("process group %d", p.PID) }

// A job is the process group of a warden's command.
type job struct{ pgid int }

func newJob(_, pgid int, _ []Process, _ string) job { return job{pgid} }

// children returns nothing: children are not needed here.
func children() []Process { return nil }

// isChildless returns true: children are not needed here.
func isChildless() bool { return true }

// tell sends sig to the group.
func (j *job) tell(sig unix.Signal) error {
	err := unix.Kill(-j.pgid, sig)
	if err == nil && (sig == unix.SIGTERM || sig == unix.SIGHUP) {
		err = unix.Kill(-j.pgid, unix.SIGCONT)
	}
	if noSuchGroup(err) {
		return nil
	}
	return err
}

// kill sends KILL to the group.
func (j *job) kill() (found int, refused []Process) {
	if noSuchGroup(unix.Kill(-j.pgid, unix.SIGKILL)) {
		return 0, nil
	}
	return 1, nil
}

// left returns the group, if it still exists.
func (j *job) left() []Process {
	if noSuchGroup(unix.Kill(-j.pgid, 0)) {
		return nil
	}
	return []Process{{j.pgid}}
}

// outliveWarden returns when the group is empty.
func (j *job) outliveWarden(reaped) { awaitGroup(j.pgid) }

// awaitGroup returns when the group is empty. Its number can be reused then, so it returns soon:
// no signal may be sent to the group afterwards.
func awaitGroup(pgid int) {
	for wait := time.Millisecond; !noSuchGroup(unix.Kill(-pgid, 0)); wait = min(2*wait, 10*time.Millisecond) {
		time.Sleep(wait)
	}
}

// noSuchGroup reports whether err, from kill, says that the group is empty. On BSD systems a
// group of zombies only is EPERM.
func noSuchGroup(err error) bool {
	return errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EPERM)
}

// bootClock is the monotonic clock. Systems differ in whether it stops while the machine is
// suspended.
const bootClock = unix.CLOCK_MONOTONIC

// sysProcAttr asks for a process group of its own. There is no parent-death signal outside Linux.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// adoptOrphans does nothing: process 1 adopts and reaps orphans.
func adoptOrphans() {}

// ProgramOf returns nothing: there is no common way to ask.
func ProgramOf(int) string { return "" }
