//go:build unix

package runner

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/keeper"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/supervise"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A watch follows one command and what it holds until nothing of the job is left.
// One goroutine uses it.
//
// The order that keeps INVARIANT I3 for processes: the command and all its descendants are gone
// before the hold's deadline, and the store grants no lock of the hold to another client before
// that deadline. So they must get TERM, and KILL, well before the deadline unless a renewal has
// moved it by then.
type watch struct {
	Job
	held   hold
	tree   *supervise.Tree
	maxEnd time.Time // of MaxHold; zero if there is none

	pulse    *keeper.Pulse        // of the heartbeats of the job
	extended chan chan<- struct{} // the lease was extended; the watch closes what it receives when the warden knows

	timer   *time.Timer         // when to check the lease next, or to kill
	lost    <-chan struct{}     // of the hold's context; nil once that was seen
	exited  <-chan struct{}     // of the command; nil once that was seen
	verdict *exit.Error         // why the job is being stopped; nil if it is not
	killing bool                // KILL is due at killAt
	killAt  time.Time           // when the timer fires, if killing
	ending  bool                // the job had a signal to end
	looked  time.Time           // when the lease was checked last
	pause   time.Duration       // between the last two checks
	kills   int                 // how often KILL was sent
	refused []supervise.Process // processes that this one may not kill
}

// newWatch returns the watch of a tree that runs under held, which was acquired at the given
// time.
func newWatch(j Job, held hold, acquired time.Time, tree *supervise.Tree) *watch {
	w := &watch{
		Job: j, held: held, tree: tree,
		pulse: keeper.NewPulse(j.Opts.StallAfter), extended: make(chan chan<- struct{}),
		timer: time.NewTimer(0), lost: held.Context().Done(), exited: tree.Exited(), looked: time.Now(),
	}
	if j.Opts.MaxHold > 0 {
		w.maxEnd = acquired.Add(j.Opts.MaxHold)
	}
	w.open()
	return w
}

// loop returns when the job is gone, when the command has ended by itself and left processes in
// the background, or when some processes cannot be killed. It closes the tree.
func (w *watch) loop() {
	defer w.tree.Close()
	defer w.timer.Stop()
	for w.refused == nil {
		select {
		case <-w.tree.Gone():
			if w.exited != nil { // both came while this process was stopped
				w.commandEnded()
			}
			return
		case <-w.exited:
			w.exited = nil
			if w.commandEnded() {
				return
			}
		case <-w.lost:
			w.lost = nil
			w.stop(w.lostVerdict())
		case <-w.timer.C:
			w.tick()
		case done := <-w.extended:
			if !w.killing {
				w.tick()
			}
			close(done)
		case <-w.tree.Stopped():
			w.suspend()
		case s := <-w.Signals:
			w.forward(s.(syscall.Signal))
		}
	}
}

// commandEnded decides what happens to the rest of the job when the command itself has ended. It
// reports whether the rest is left alone.
func (w *watch) commandEnded() bool {
	isLost := w.verdict != nil && !w.ignores(w.verdict)
	switch {
	case !isLost && w.endedByLoss():
		// The lease has expired by the warden's clock: nothing of the job may go on.
		w.stop(w.lostVerdict())
		w.killIn(0)
	case w.tree.Fallen():
		// Nothing would end the job in our place if we died or were stopped.
		w.Warn("%s %s: the warden of the command was killed, so the job is ended", w.verb, Quoted(w.Names))
		w.killIn(0)
	case isLost || w.ending: // the rest got the signal as well, and has KillAfter to end
		w.killIn(w.KillAfter)
	case w.endedBySignal():
		// The processes that it leaves were not put into the background on purpose. They may not
		// have got the signal, so they get TERM now.
		w.ending = true
		w.signal(syscall.SIGTERM)
		w.killIn(w.KillAfter)
	case !w.WaitChildren:
		// The processes that it leaves are meant to go on without the lock.
		w.nameLeft()
		return true
	}
	return false
}

// endedByLoss reports whether the command was killed because the lease had ended while this
// process was stopped and did not notice.
func (w *watch) endedByLoss() bool {
	killed := w.tree.Status == exit.Signal(syscall.SIGKILL) && w.kills == 0
	return w.OnLost != Ignore && (w.tree.Cut || killed && w.left() < w.margin())
}

// endedBySignal reports whether a signal that this process did not forward, such as Ctrl-C, has
// ended the command. Shells and many other programs that catch such a signal exit with the status
// that names it.
func (w *watch) endedBySignal() bool {
	return w.tree.Signalled || supervise.Ends(syscall.Signal(w.tree.Status-exit.Signal(0)))
}

// left returns how long the lease may still be trusted, by either clock.
func (w *watch) left() time.Duration {
	if w.OnLost == Ignore {
		return time.Until(w.held.Deadline())
	}
	return w.held.Remaining()
}

// lookEvery is how often the lease is checked. The timer follows a clock that stops while the
// machine is suspended; the lease also follows one that does not.
const lookEvery = time.Second

// tick kills a job that was asked to end, or checks whether the lease was renewed.
func (w *watch) tick() {
	if w.killing || w.tree.Fallen() {
		w.kill()
		return
	}
	if w.verdict != nil {
		return // ignored
	}
	w.pause, w.looked = time.Since(w.looked), time.Now()
	idle, bounded := w.pulse.Left()
	bounded = bounded && w.OnLost != Ignore
	if bounded && idle <= 0 {
		w.stop(w.stopped(exit.Lost, w.Names, fmt.Errorf("%w for %s", holdfast.ErrStalled, w.Opts.StallAfter)))
		return
	}
	lead := w.margin()
	if w.OnLost != Kill {
		lead += w.KillAfter
	}
	if left := w.left() - lead; left > 0 {
		if w.OnLost != Ignore {
			w.tree.Until(w.killBy(w.held))
		}
		// Often enough for the warden to know of each renewal in good time.
		next := min(left, TTL(w.Opts)/4, lookEvery)
		if bounded {
			next = min(next, idle)
		}
		w.timer.Reset(next)
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

// kill sends KILL to the job and schedules the next round: there may be new processes, and the
// lock is not released until the job is gone.
func (w *watch) kill() {
	found, refused := w.tree.Kill()
	w.kills++
	if found == len(refused) && found > 0 && w.kills > 1 {
		w.refused = refused
		return
	}
	w.timer.Reset(min(time.Millisecond<<min(w.kills, 10), maxKillPause))
}

// maxKillPause is the longest pause between two rounds of kill.
const maxKillPause = 50 * time.Millisecond

// ignores reports whether the command may run on in spite of verdict: after a
// loss, with --on-lost ignore, but never beyond MaxHold.
func (w *watch) ignores(verdict *exit.Error) bool {
	return w.OnLost == Ignore && (verdict == nil || verdict.Status != exit.MaxHold)
}

// margin returns how long before the deadline KILL must be sent for the job to be gone in time.
func (j *Job) margin() time.Duration { return keeper.Margin(TTL(j.Opts)) }

// killBy returns when the warden kills the job unless this process moves that time. This process
// would kill it at the same time.
func (j Job) killBy(held hold) time.Time { return held.Deadline().Add(-j.margin()) }

// MinTTL is the shortest TTL that leaves time to stop a command.
const MinTTL = 100 * time.Millisecond

// TTL is the time for which o holds the lock without a renewal.
func TTL(o holdfast.AcquireOptions) time.Duration {
	if o.MaxHold > 0 {
		return min(o.TTL, o.MaxHold)
	}
	return o.TTL
}

// asleep returns for how long this process did nothing, if it failed to renew the lease in time
// because it or the machine was stopped. Otherwise it returns 0.
func (w *watch) asleep() time.Duration {
	pause := max(w.pause, time.Since(w.looked))
	if ttl := TTL(w.Opts); pause < ttl/4+max(ttl/12, 250*time.Millisecond) {
		return 0
	}
	return pause
}

// lostVerdict returns a verdict that names the lease that has ended or is about to, and why.
func (w *watch) lostVerdict() *exit.Error {
	names := w.Names
	lease, cause := w.held.lost()
	if lease != nil {
		names = []string{lease.Name()}
	}
	// The library's deadline for MaxHold is earlier than MaxHold by its margin
	// for clock drift, and by the time that the acquire took: on a busy machine,
	// or far from the store, that is a good part of the TTL.
	slack := w.margin() + w.KillAfter + TTL(w.Opts)/4 + 100*time.Millisecond
	if errors.Is(cause, holdfast.ErrMaxHold) || !w.maxEnd.IsZero() && cause == nil && time.Until(w.maxEnd) < slack {
		return w.stopped(exit.MaxHold, w.Names, fmt.Errorf("--max-hold %s has expired", w.Opts.MaxHold))
	}
	asleep := w.asleep()
	switch {
	case cause == nil && w.Opts.KeepAlive == holdfast.KeepAliveOff:
		cause = errUnextended
	case asleep > 0 && (cause == nil || holdfast.LossCause(cause) == "deadline"):
		cause = fmt.Errorf("%w (for %s)", errAsleep, lockinfo.Span(asleep))
	case cause == nil:
		cause = errUnanswered
	}
	return w.stopped(exit.Lost, names, cause)
}

// stopped returns the verdict on a job that is stopped because of the locks with these names.
func (w *watch) stopped(status int, names []string, cause error) *exit.Error {
	return &exit.Error{Status: status, Err: fmt.Errorf("%s %s: %w; the command was stopped", w.verb, Quoted(names), cause)}
}

// stop ends the job, before the deadline if that is still ahead.
func (w *watch) stop(verdict *exit.Error) {
	if w.verdict != nil {
		return
	}
	w.verdict = verdict
	w.Status.lost(w.held, verdict)
	switch {
	case w.ignores(verdict):
		w.Warn("%s %s: the lock is lost, and the command runs on without it", w.verb, Quoted(w.Names))
	case w.OnLost == Kill:
		w.killIn(0)
	default:
		w.signal(syscall.SIGTERM)
		w.killIn(w.KillAfter)
	}
}

// killIn schedules KILL after d, or earlier if the deadline requires it or an earlier time was
// set. From then on the timer does not check the lease, so the deadline counts even without a
// sign of a loss.
func (w *watch) killIn(d time.Duration) {
	if !w.ignores(w.verdict) {
		d = min(d, w.left()-w.margin())
	}
	if w.killing {
		d = min(d, time.Until(w.killAt))
	}
	w.killing, w.killAt = true, time.Now().Add(d)
	w.timer.Reset(max(d, 0))
}

// forward passes a signal on to the job.
func (w *watch) forward(sig syscall.Signal) {
	if sig == syscall.SIGTSTP {
		w.suspend()
		return
	}
	w.signal(sig)
	if w.ends(sig) {
		w.ending = true
		if w.onEnd != nil {
			w.onEnd(sig)
		}
		if w.exited == nil { // --wait-children
			w.killIn(w.KillAfter)
		}
	}
}

// suspend stops the job as Ctrl-Z does. While the job is stopped, nothing renews the lease, so it
// may be lost when the job continues.
func (w *watch) suspend() {
	w.tree.Suspend()
	if !w.held.Valid() && w.OnLost != Ignore {
		// The job must not run another instruction. TERM would continue it, so it gets KILL
		// first.
		w.kill()
		w.stop(w.lostVerdict())
		return
	}
	w.tree.Resume()
}

func (w *watch) signal(sig syscall.Signal) {
	if err := w.tree.Signal(sig); err != nil {
		w.Warn("%s %s: signal %v to the command: %v", w.verb, Quoted(w.Names), sig, err)
	}
}
