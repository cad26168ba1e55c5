package memlock

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/driver/mailbox"
)

// Duties shown here. Every request is one atomic step of the store: whoever has
// e.mu has the store to itself, and methods that need it end in Locked. Only the
// store's clock decides when something ends (INVARIANT I8): enter reads it once,
// under the mutex, and every step of the request goes by that reading. A closed
// engine, and a context that has ended, change nothing. What nobody needs any
// more goes away by itself (INVARIANT I11).

// An Engine is a store and its only connection. Use New to make one; two
// engines share nothing.
type Engine struct {
	losses    driver.Losses
	watches   mailbox.Box[struct{}] // has a mutex of its own, which is locked after mu
	chronicle *chronicle            // nil without history

	mu         sync.Mutex // guards the rest
	closed     bool
	locks      map[string]*lock             // by name
	tombstones map[driver.LeaseID]time.Time // cancelled lease IDs, and until when
	deposits   map[driver.Digest]*deposit
	prunable   prunable  // the deposits, by when they are due
	sweepAt    time.Time // when sweepLocked next looks for what is forgotten
}

var (
	_ driver.Engine       = (*Engine)(nil)
	_ driver.Queuer       = (*Engine)(nil)
	_ driver.Downgrader   = (*Engine)(nil)
	_ driver.AllAcquirer  = (*Engine)(nil)
	_ driver.Recorder     = (*Engine)(nil)
	_ driver.RecordLister = (*Engine)(nil)
	_ driver.Vault        = (*Engine)(nil)
	_ driver.Lister       = (*Engine)(nil)
	_ driver.Breaker      = (*Engine)(nil)
	_ driver.LossTeller   = (*Engine)(nil)
	_ driver.Historian    = (*Engine)(nil)
)

// Options are what an engine does beyond what New's does.
type Options struct {
	// History keeps the latest events of each name, and tells of them as they
	// happen; see driver.Historian.
	History bool
}

// New returns an engine with an empty store.
func New() *Engine { return NewWith(nil) }

// NewWith is New with options. Nil is default.
func NewWith(opts *Options) *Engine {
	e := &Engine{
		locks:      map[string]*lock{},
		tombstones: map[driver.LeaseID]time.Time{},
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
		AcquireAll: true, Records: true, ListRecords: true, OneTime: true, List: true,
		History: e.chronicle != nil,
	}
}

// Close implements driver.Engine. The store is gone with its only engine. No
// lease is touched: as far as others know, each lasts until its expiry.
func (e *Engine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	return nil
}

// enter locks e.mu and returns the present time, or fails without the lock. It
// is how each request begins. The clock is read under the mutex: a reading from
// before the wait for it could be older than what was recorded meanwhile.
func (e *Engine) enter(ctx context.Context) (time.Time, error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, err
	}
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return time.Time{}, fmt.Errorf("the engine was %w", driver.ErrClosed)
	}
	return time.Now(), nil
}

// each answers a batch request by request, in one step of the store. If the engine
// cannot be entered, it answers each with what failed makes of the error.
func each[Request, Reply any](ctx context.Context, e *Engine, reqs []Request, failed func(error) Reply, answer func(Request, time.Time) Reply) []Reply {
	replies := make([]Reply, len(reqs))
	now, err := e.enter(ctx)
	if err == nil {
		defer e.mu.Unlock()
	}
	for i, req := range reqs {
		if err != nil {
			replies[i] = failed(err)
		} else {
			replies[i] = answer(req, now)
		}
	}
	return replies
}

// settleLocked returns the lock of a name as of now: without what has ended,
// and with the lock handed over to whoever is next. Every request that is about
// one name begins so. That is how an expiry is noticed, which nobody reports,
// and why nobody decides about a name in which something is still due.
func (e *Engine) settleLocked(name string, now time.Time) *lock {
	l := e.locks[name]
	if l == nil {
		l = &lock{ledger: e.chronicle.open(name)}
		e.locks[name] = l
	}
	l.purge(now)
	e.serveLocked(l, now)
	return l
}

// cancelledLocked reports whether the lease ID was cancelled: its tombstone
// stops a request that comes after its own cancel. INVARIANT I5.
func (e *Engine) cancelledLocked(id driver.LeaseID, now time.Time) bool {
	return now.Before(e.tombstones[id])
}

// sweepLocked forgets, once a minute at most, what the contract lets the
// store forget: cancelled lease IDs after TombstoneTTL and tokens after
// TokenMemory. Requests that can leave something behind call it, so that what is
// kept stays in proportion to what was asked in the last minute. INVARIANT I11.
func (e *Engine) sweepLocked(now time.Time) {
	if now.Before(e.sweepAt) {
		return
	}
	e.sweepAt = now.Add(driver.TombstoneTTL)
	for id, until := range e.tombstones {
		if !now.Before(until) {
			delete(e.tombstones, id)
		}
	}
	for name, l := range e.locks {
		l.purge(now)
		// A token is microseconds since 1970, so that its age can be read from
		// it. One that was lifted ahead of the clock is kept for longer by as
		// much: the next one must still be greater. INVARIANT I2.
		forget := time.UnixMicro(int64(l.lastToken)).Add(driver.TokenMemory)
		if l.unused() && now.After(forget) {
			delete(e.locks, name)
		}
	}
}
