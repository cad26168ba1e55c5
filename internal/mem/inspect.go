package mem

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// Duties shown here. The state is of one instant: holders in the order of their grants,
// waiters in the order of the queue, with durations and no instants. A read of an unknown
// name creates nothing (INVARIANT I11).

// Inspect implements driver.Engine.
func (e *Engine) Inspect(ctx context.Context, name string) (lockinfo.LockState, error) {
	return answer(ctx, e, func(now time.Time) (lockinfo.LockState, error) {
		l := e.locks[name]
		if l == nil { // never used, which is not an error: do not create it
			return lockinfo.LockState{Name: name}, nil
		}
		e.settleLocked(name, now)
		return l.describe(name, now), nil
	})
}

// describe returns the state of a settled lock. Holders are copies, with labels that the
// caller may change. Other engines may show only the first places of a long queue.
func (l *lock) describe(name string, now time.Time) lockinfo.LockState {
	d := lockinfo.LockState{Name: name, LastToken: l.lastToken, QueueLength: len(l.queue)}
	for _, h := range l.leases {
		d.Mode = d.Mode.Plus(h.mode)
		d.Holders = append(d.Holders, h.describe(now))
	}
	for _, p := range l.queue {
		d.Queue = append(d.Queue, lockinfo.Place{
			LeaseID: p.req.LeaseID, Mode: p.req.Mode, Holder: copyHolder(p.req.Holder),
			Since: now.Sub(p.asked), ExpiresIn: p.until.Sub(now),
		})
	}
	return d
}

// List implements driver.Lister.
func (e *Engine) List(ctx context.Context, prefix string) iter.Seq2[lockinfo.LockState, error] {
	return driver.Listed(func() ([]lockinfo.LockState, error) { return e.used(ctx, prefix) })
}

// used returns the locks that List yields. It takes a snapshot, so that the
// caller's loop body may use the engine.
func (e *Engine) used(ctx context.Context, prefix string) ([]lockinfo.LockState, error) {
	return answer(ctx, e, func(now time.Time) ([]lockinfo.LockState, error) {
		var locks []lockinfo.LockState
		for name, l := range e.touched {
			if !strings.HasPrefix(name, prefix) {
				continue
			}
			e.settleLocked(name, now)
			if l.idle() {
				delete(e.touched, name) // until its next request: List skips names that are only remembered
			} else {
				locks = append(locks, l.describe(name, now))
			}
		}
		return locks, nil
	})
}

// idle reports whether the lock has no holder and no waiter.
func (l *lock) idle() bool { return len(l.leases) == 0 && len(l.queue) == 0 }
