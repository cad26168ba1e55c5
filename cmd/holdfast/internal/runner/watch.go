//go:build unix

package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/supervise"
)

// A watch follows one command and its lease until nothing of the command is
// left. One goroutine uses it.
//
// The order that keeps INVARIANT I3 for processes: the command's group is gone
// before the lease's deadline, which is before the store can grant the lock to
// somebody else. So the group must be asked to end, and be killed, well before
// the deadline if no renewal has moved it by then.
type watch struct {
	Job
	lease   *holdfast.Lease
	group   *supervise.Group
	signals <-chan os.Signal
	maxEnd  time.Time // of MaxHold; zero if there is none

	timer   *time.Timer     // when to look at the lease next, or to kill
	lost    <-chan struct{} // of the lease's context; nil once that was seen
	exited  <-chan struct{} // of the command; nil once that was seen
	verdict error           // why the group is being stopped; nil if it is not
	killing bool            // KILL is due at killAt
	killAt  time.Time       // when the timer fires, if killing
	ending  bool            // a signal that asks to end was forwarded
}

func newWatch(j Job, lease *holdfast.Lease, group *supervise.Group, signals <-chan os.Signal) *watch {
	w := &watch{
		Job: j, lease: lease, group: group, signals: signals,
		timer: time.NewTimer(0), lost: lease.Context().Done(), exited: group.Exited(),
	}
	if j.Opts.MaxHold > 0 {
		w.maxEnd = time.Now().Add(j.Opts.MaxHold)
	}
	return w
}

// loop returns when the group is gone, or when the command has ended on its
// own and left processes in the background.
func (w *watch) loop() {
	defer w.timer.Stop()
	for {
		select {
		case <-w.group.Gone():
			return
		case <-w.exited:
			if !w.ending && (w.verdict == nil || w.ignores(w.verdict)) {
				return
			}
			w.exited = nil
			w.killIn(w.KillAfter)
		case <-w.lost:
			w.lost = nil
			w.stop(w.lostVerdict())
		case <-w.timer.C:
			w.tick()
		case <-w.group.Stopped():
			w.suspend()
		case s := <-w.signals:
			w.forward(s.(syscall.Signal))
		}
	}
}

// tick kills what was asked to end, or looks whether the lease was renewed.
func (w *watch) tick() {
	if w.killing {
		w.signal(syscall.SIGKILL)
		return
	}
	if w.verdict != nil {
		return // ignored
	}
	lead := w.margin()
	if w.OnLost != Kill {
		lead += w.KillAfter
	}
	deadline := w.lease.Deadline()
	if left := time.Until(deadline) - lead; left > 0 {
		if w.OnLost != Ignore {
			w.group.Until(deadline.Add(-w.margin() / 2))
		}
		// Often enough for the warden to know of each renewal in good time.
		w.timer.Reset(min(left, TTL(w.Opts)/4))
		return
	}
	verdict := w.lostVerdict()
	if w.ignores(verdict) {
		// A renewal may still come; if not, the lease's context says so.
		w.timer.Reset(w.margin())
		return
	}
	w.stop(verdict)
}

// ignores reports whether the command may run on in spite of verdict: on after
// a loss, if the user says so, but never beyond MaxHold.
func (w *watch) ignores(verdict error) bool {
	var e *exit.Error
	isMaxHold := errors.As(verdict, &e) && e.Status == exit.MaxHold
	return w.OnLost == Ignore && !isMaxHold
}

// margin is what KILL must be ahead of the deadline for the group to be gone
// in time.
func (w *watch) margin() time.Duration { return Margin(w.Opts) }

// Margin is the part of the TTL that is left when the command must be gone.
func Margin(o holdfast.AcquireOptions) time.Duration {
	return min(max(TTL(o)/10, 20*time.Millisecond), 500*time.Millisecond)
}

// MinTTL is the shortest TTL that leaves time to stop a command.
const MinTTL = 100 * time.Millisecond

// TTL is the length of possession that o asks for.
func TTL(o holdfast.AcquireOptions) time.Duration {
	if o.MaxHold > 0 {
		return min(o.TTL, o.MaxHold)
	}
	return o.TTL
}

// lostVerdict says why the lease is over, or about to be.
func (w *watch) lostVerdict() error {
	cause := context.Cause(w.lease.Context())
	// The library's deadline for MaxHold is earlier than MaxHold by its margin
	// for clock drift, and by the time that the acquire took.
	slack := w.margin() + w.KillAfter + TTL(w.Opts)/20 + 100*time.Millisecond
	if errors.Is(cause, holdfast.ErrMaxHold) || !w.maxEnd.IsZero() && cause == nil && time.Until(w.maxEnd) < slack {
		return exit.With(exit.MaxHold, fmt.Errorf("%s %q: --max-hold %s is over; the command was stopped", w.verb, w.Name, w.Opts.MaxHold))
	}
	if cause == nil {
		cause = errors.New("the store does not answer, and the lease is about to end")
	}
	return exit.With(exit.Lost, fmt.Errorf("%s %q: %w; the command was stopped", w.verb, w.Name, cause))
}

// stop ends the group, before the deadline if that is still ahead.
func (w *watch) stop(verdict error) {
	if w.verdict != nil {
		return
	}
	w.verdict = verdict
	w.Status.lost(w.lease, verdict)
	switch {
	case w.ignores(verdict):
		w.Warn("%s %q: the lock is lost, and the command runs on without it", w.verb, w.Name)
	case w.OnLost == Kill:
		w.killIn(0)
	default:
		w.signal(syscall.SIGTERM)
		w.killIn(w.KillAfter)
	}
}

// killIn arranges for KILL after d, or earlier if the deadline demands it or
// if that was arranged before. From then on the timer does not look at the
// lease, so the deadline counts even if there is no sign of a loss yet.
func (w *watch) killIn(d time.Duration) {
	if !w.ignores(w.verdict) {
		d = min(d, time.Until(w.lease.Deadline())-w.margin())
	}
	if w.killing {
		d = min(d, time.Until(w.killAt))
	}
	w.killing, w.killAt = true, time.Now().Add(d)
	w.timer.Reset(max(d, 0))
}

// forward passes a signal on to the group.
func (w *watch) forward(sig syscall.Signal) {
	if sig == syscall.SIGTSTP {
		w.suspend()
		return
	}
	w.signal(sig)
	if supervise.Ends(sig) {
		w.ending = true
	}
}

// suspend stops the job as Ctrl-Z does. While it is stopped nothing renews the
// lease, so it may be lost when the job goes on.
func (w *watch) suspend() {
	w.group.Suspend()
	if !w.lease.Valid() && w.OnLost != Ignore {
		// It must not run one instruction more, so not TERM first, which
		// continues a stopped group.
		w.signal(syscall.SIGKILL)
		w.stop(w.lostVerdict())
		return
	}
	w.group.Resume()
}

func (w *watch) signal(sig syscall.Signal) {
	if err := w.group.Signal(sig); err != nil {
		w.Warn("%s %q: signal %v to the command: %v", w.verb, w.Name, sig, err)
	}
}

// lateRelease bounds the release after the command had to be stopped: most
// likely the store is out of reach, and the lock is free soon anyhow.
const lateRelease = time.Second

// end gives the lock back and returns the status of the job.
func (w *watch) end(ctx context.Context) error {
	status := w.group.Status()
	w.Status.exited(w.lease, status)
	if w.verdict != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, lateRelease)
		defer cancel()
	}
	lost := w.release(ctx, w.lease)
	switch {
	case w.ignores(w.verdict):
	case w.verdict != nil:
		return w.verdict
	case lost:
		return exit.With(exit.Lost, fmt.Errorf("%s %q: the lock was lost while the command ran, which ended with status %d", w.verb, w.Name, status))
	}
	if status == 0 {
		return nil
	}
	return &exit.Error{Status: status}
}
