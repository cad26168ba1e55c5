package mem

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/driver/mailbox"
	"github.com/holdfast-locks/holdfast/internal/whole"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// Duties shown here. Every request is one atomic step of the store, under e.mu; the names of
// methods that need the mutex end in Locked. Only the store's clock decides when something ends
// (INVARIANT I8): step reads it once, under the mutex, for the whole request. A request to a
// closed engine, or with an ended context, changes nothing. Useless data is deleted without a
// request for it (INVARIANT I11).

// An Engine is a store and its only connection. Use New to make one; two
// engines share nothing.
type Engine struct {
	losses    driver.Losses
	watches   mailbox.Box[struct{}] // has a mutex of its own, which is locked after mu
	chronicle *chronicle            // nil without history

	mu         sync.Mutex // guards the rest
	closed     bool
	locks      map[string]*lock               // by name
	touched    map[string]*lock               // a subset of locks, with all that have a holder or a waiter
	tombstones map[lockinfo.LeaseID]time.Time // cancelled lease IDs, and until when
	deposits   map[driver.Digest]*deposit
	prunable   prunable  // the deposits, in the order in which they are due
	sweepAt    time.Time // when sweepLocked sweeps next
}

var _ whole.Engine = (*Engine)(nil)

// Options are the options of memlock.New.
type Options struct{ History bool }

// New returns an engine with an empty store. Nil is default.
func New(opts *Options) *Engine {
	e := &Engine{
		locks:      map[string]*lock{},
		touched:    map[string]*lock{},
		tombstones: map[lockinfo.LeaseID]time.Time{},
		deposits:   map[driver.Digest]*deposit{},
	}
	if opts != nil && opts.History {
		e.chronicle = &chronicle{born: time.Now()}
	}
	return e
}

// Capabilities implements driver.Engine. There are no replicas to wait for, and
// any TTL will do.
func (e *Engine) Capabilities() driver.Capabilities {
	return driver.Capabilities{
		Shared: true, Semaphore: true, Queue: true, Break: true, Losses: true,
		AcquireAll: true, Records: true, OneTime: true, List: true,
		History: e.chronicle != nil,
	}
}

// Close implements driver.Engine. The store ends with its only engine. It touches no lease.
func (e *Engine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	return nil
}

// step carries a request out as one step of the store, or fails without a call of do. It reads
// the clock under the mutex, because an earlier reading could be older than the recorded state.
func (e *Engine) step(ctx context.Context, do func(now time.Time) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return fmt.Errorf("the engine was %w", driver.ErrClosed)
	}
	return do(time.Now())
}

// answer is step for a request that has a reply.
func answer[Reply any](ctx context.Context, e *Engine, do func(now time.Time) (Reply, error)) (reply Reply, err error) {
	err = e.step(ctx, func(now time.Time) (err error) {
		reply, err = do(now)
		return err
	})
	return reply, err
}

// each answers a batch request by request, in one step of the store. If the step fails, each
// reply is failed(err).
func each[Request, Reply any](ctx context.Context, e *Engine, reqs []Request, failed func(error) Reply, one func(Request, time.Time) Reply) []Reply {
	replies, err := answer(ctx, e, func(now time.Time) (replies []Reply, err error) {
		for _, req := range reqs {
			replies = append(replies, one(req, now))
		}
		return replies, nil
	})
	if err != nil {
		return slices.Repeat([]Reply{failed(err)}, len(reqs))
	}
	return replies
}

// settleLocked returns the lock of a name as of now: it purges expired leases and places, and
// hands the lock over to the next waiters. Every request that makes a decision about a name
// begins with it, so that no decision is made while a hand-over is due.
func (e *Engine) settleLocked(name string, now time.Time) *lock {
	l := e.locks[name]
	if l == nil {
		l = &lock{ledger: e.chronicle.open(name)}
		e.locks[name] = l
	}
	e.touched[name] = l
	l.purge(now)
	e.serveLocked(l, now)
	return l
}

// cancelledLocked reports whether the lease ID was cancelled: the tombstone stops a request
// that arrives after its own cancel. INVARIANT I5.
func (e *Engine) cancelledLocked(id lockinfo.LeaseID, now time.Time) bool {
	return now.Before(e.tombstones[id])
}

// sweepLocked deletes, once a minute at most, the data that the contract lets the store forget:
// cancelled lease IDs after TombstoneTTL and tokens after TokenMemory. Requests that create data
// call it, so that such data does not pile up. INVARIANT I11.
func (e *Engine) sweepLocked(now time.Time) {
	if now.Before(e.sweepAt) {
		return
	}
	e.sweepAt = now.Add(driver.TombstoneTTL)
	maps.DeleteFunc(e.tombstones, func(_ lockinfo.LeaseID, until time.Time) bool { return !now.Before(until) })
	for name, l := range e.locks {
		l.purge(now)
		// A token is microseconds since 1970, and so shows its age. A token that is ahead of
		// the clock is kept longer by that time, because the next must still be greater.
		// INVARIANT I2.
		forget := time.UnixMicro(int64(l.lastToken)).Add(driver.TokenMemory)
		if l.unused() && now.After(forget) {
			delete(e.locks, name)
		}
		if l.idle() {
			delete(e.touched, name)
		}
	}
}
