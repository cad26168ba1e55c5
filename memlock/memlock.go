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
)

// An Engine is a store and its only connection. Use New to make one; two
// engines share nothing.
type Engine struct {
	mu         sync.Mutex // guards the rest
	closed     bool
	locks      map[string]*lock
	tombstones map[driver.LeaseID]time.Time // cancelled lease IDs, and until when
	watches    map[string]map[*watch]struct{}
	sweepAt    time.Time // when sweepLocked next looks for what is forgotten
}

// A lock is what the engine remembers of one name. It stays after the lease
// has ended, for the last token.
type lock struct {
	lastToken uint64
	lease     *lease // nil or expired if the name is free
}

type lease struct {
	id       driver.LeaseID
	token    uint64
	holder   driver.Holder
	expiry   time.Time
	released bool // kept closed by KeepFor
}

var (
	_ driver.Engine   = (*Engine)(nil)
	_ driver.Notifier = (*Engine)(nil)
	_ driver.Lister   = (*Engine)(nil)
)

// New returns an engine with an empty store.
func New() *Engine {
	return &Engine{
		locks:      map[string]*lock{},
		tombstones: map[driver.LeaseID]time.Time{},
		watches:    map[string]map[*watch]struct{}{},
	}
}

// Capabilities implements driver.Engine.
func (e *Engine) Capabilities() driver.Capabilities { return driver.Capabilities{} }

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

// liveLocked returns the lease of name that has not expired, if there is one.
func (e *Engine) liveLocked(name string, now time.Time) *lease {
	l := e.locks[name]
	if l == nil || l.lease == nil || !now.Before(l.lease.expiry) {
		return nil
	}
	return l.lease
}

// heldLocked returns the live lease of name if it is id's and not released.
func (e *Engine) heldLocked(name string, id driver.LeaseID, now time.Time) *lease {
	l := e.liveLocked(name, now)
	if l == nil || l.id != id || l.released {
		return nil
	}
	return l
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
		forget := time.UnixMicro(int64(l.lastToken)).Add(driver.TokenMemory)
		if e.liveLocked(name, now) == nil && now.After(forget) {
			delete(e.locks, name)
		}
	}
}
