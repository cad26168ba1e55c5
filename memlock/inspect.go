package memlock

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// Duties shown here. What people are shown is as of one instant, holders in the
// order of their grants and waiters in that of the queue, with durations and no
// instants. Asking leaves nothing behind: anybody can ask about any name
// (INVARIANT I11).

// Inspect implements driver.Engine.
func (e *Engine) Inspect(ctx context.Context, name string) (driver.Lock, error) {
	now, err := e.enter(ctx)
	if err != nil {
		return driver.Lock{}, err
	}
	defer e.mu.Unlock()
	l := e.locks[name]
	if l == nil { // never used, which is not an error; and it is not remembered for that
		return driver.Lock{Name: name}, nil
	}
	e.settleLocked(name, now)
	return l.describe(name, now), nil
}

// describe says what there is of a lock that is settled. Holders are copies: what
// the caller does to their labels changes nothing here. Of a long queue an engine
// may show the first places only; here it costs nobody anything to show all.
func (l *lock) describe(name string, now time.Time) driver.Lock {
	d := driver.Lock{Name: name, LastToken: l.lastToken, QueueLength: len(l.queue)}
	for _, h := range l.leases {
		d.Mode, d.Limit = h.need.Mode, h.need.Limit
		d.Holders = append(d.Holders, h.describe(now))
	}
	for _, p := range l.queue {
		d.Queue = append(d.Queue, driver.Waiting{
			LeaseID: p.req.LeaseID, Mode: p.req.Mode, Permits: p.req.Permits, Holder: copyHolder(p.req.Holder),
			Since: now.Sub(p.asked), ExpiresIn: p.until.Sub(now),
		})
	}
	return d
}

// List implements driver.Lister.
func (e *Engine) List(ctx context.Context, prefix string) iter.Seq2[driver.Lock, error] {
	return driver.Listed(func() ([]driver.Lock, error) { return e.used(ctx, prefix) })
}

// used returns the locks that List yields. It takes a snapshot, so that the
// caller's loop body may use the engine.
func (e *Engine) used(ctx context.Context, prefix string) ([]driver.Lock, error) {
	now, err := e.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer e.mu.Unlock()
	var locks []driver.Lock
	for name, l := range e.locks {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		e.settleLocked(name, now)
		if len(l.leases) > 0 || len(l.queue) > 0 {
			locks = append(locks, l.describe(name, now))
		}
	}
	return locks, nil
}
