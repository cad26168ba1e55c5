// Package memlock is an engine that keeps locks in the memory of one process:
// the reference for the other engines, and the store for tests of programs
// that use package holdfast.
//
// It measures time with time.Now, so a test inside a testing/synctest bubble
// runs leases of hours in no time.
//
// # Concurrency
//
// An Engine is safe for concurrent use. It starts no goroutine and no timer:
// a lease that ran out is noticed by the next request for its name.
package memlock

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/driver/mailbox"
)

// An Engine is a store and its only connection. Use New to make one; two
// engines share nothing.
type Engine struct {
	losses  driver.Losses
	watches mailbox.Box[struct{}]

	mu         sync.Mutex // guards the rest
	closed     bool
	locks      map[string]*lock
	tombstones map[driver.LeaseID]time.Time // cancelled lease IDs, and until when
	deposits   map[driver.Digest]*deposit
	prunable   prunable  // the deposits, by when they are due
	sweepAt    time.Time // when sweepLocked next looks for what is forgotten
}

var (
	_ driver.Engine      = (*Engine)(nil)
	_ driver.Queuer      = (*Engine)(nil)
	_ driver.Downgrader  = (*Engine)(nil)
	_ driver.AllAcquirer = (*Engine)(nil)
	_ driver.Recorder    = (*Engine)(nil)
	_ driver.Vault       = (*Engine)(nil)
	_ driver.Lister      = (*Engine)(nil)
	_ driver.Breaker     = (*Engine)(nil)
	_ driver.LossTeller  = (*Engine)(nil)
)

// New returns an engine with an empty store.
func New() *Engine {
	return &Engine{
		locks:      map[string]*lock{},
		tombstones: map[driver.LeaseID]time.Time{},
		deposits:   map[driver.Digest]*deposit{},
	}
}

// Capabilities implements driver.Engine.
func (e *Engine) Capabilities() driver.Capabilities {
	return driver.Capabilities{
		Shared: true, Semaphore: true, Queue: true, Break: true, Losses: true,
		AcquireAll: true, Records: true, OneTime: true, List: true,
	}
}

// Close implements driver.Engine. The store is gone with its only engine.
func (e *Engine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	return nil
}

// enter locks e.mu and returns the present time, or fails without the lock.
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

// settleLocked returns the lock of a name as of now: without what has ended,
// and with the lock handed over to whoever is next.
func (e *Engine) settleLocked(name string, now time.Time) *lock {
	l := e.locks[name]
	if l == nil {
		l = &lock{}
		e.locks[name] = l
	}
	l.purge(now)
	e.serveLocked(l, now)
	return l
}

// cancelledLocked reports whether the lease ID was cancelled. INVARIANT I5.
func (e *Engine) cancelledLocked(id driver.LeaseID, now time.Time) bool {
	return now.Before(e.tombstones[id])
}

// sweepLocked forgets, once a minute at most, what the contract lets the
// store forget: cancelled lease IDs after TombstoneTTL and tokens after
// TokenMemory. INVARIANT I11.
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
		forget := time.UnixMicro(int64(l.lastToken)).Add(driver.TokenMemory)
		if l.unused() && now.After(forget) {
			delete(e.locks, name)
		}
	}
}
