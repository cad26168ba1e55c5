//go:build unix

package keeper

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
)

// A Possession is a *holdfast.Lease or *holdfast.Leases: of several leases it has the earliest
// deadline, and the context that ends first.
type Possession interface {
	Context() context.Context
	Extend(ctx context.Context, ttl time.Duration) error
	Heartbeat()
	Valid() bool
	Remaining() time.Duration
	Deadline() time.Time
	Release(ctx context.Context) error
}

// A Desk answers requests about a lease.
type Desk struct {
	What    string           // the name or names of the lock, as messages show them
	LeaseID holdfast.LeaseID // of the first lease
	Lease   Possession

	Pulse    *Pulse // of the work under the lease
	Extended func() // called when the lease was extended; may be nil

	// End handles requests that end a lease. Answer has checked that the request names this
	// lease.
	End func(ctx context.Context, r Request) Answer
}

// Answer is a Handler.
func (d Desk) Answer(ctx context.Context, r Request) Answer {
	if r.LeaseID != "" && r.LeaseID != string(d.LeaseID) {
		return d.refuse(exit.Config, r.Do, errors.New("the lease of the environment is not the one at HOLDFAST_SOCKET"))
	}
	switch r.Do {
	case Check, Heartbeat, Extend:
		return d.live(ctx, r)
	case Release, Complete, Fail:
		return d.End(ctx, r)
	}
	return d.refuse(exit.Config, r.Do, errors.New("it is not known to the process that keeps the lease, which is of another version"))
}

// live handles requests for which the lease must be valid.
func (d Desk) live(ctx context.Context, r Request) Answer {
	if !d.Lease.Valid() {
		return d.lost(r.Do)
	}
	switch r.Do {
	case Heartbeat:
		d.Lease.Heartbeat()
		d.Pulse.Beat()
	case Extend:
		err := d.Lease.Extend(ctx, time.Duration(r.TTLMS)*time.Millisecond)
		switch {
		case errors.Is(err, holdfast.ErrLost):
			return d.lost(r.Do)
		case err != nil:
			return Answer{Status: exit.StatusOf(err), Error: err.Error()}
		}
		if d.Extended != nil {
			d.Extended()
		}
	}
	return Answer{LeftMS: d.Lease.Remaining().Milliseconds()}
}

// lost returns the reply for a lease that has ended.
func (d Desk) lost(verb string) Answer {
	cause := context.Cause(d.Lease.Context())
	if cause == nil || errors.Is(cause, context.Canceled) {
		cause = errors.New("the lease has ended")
	}
	return d.refuse(exit.Lost, verb, cause)
}

func (d Desk) refuse(status int, verb string, err error) Answer {
	return Answer{Status: status, Error: fmt.Sprintf("%s %s: %v", verb, d.What, err)}
}

// A Pulse records until when the work under a lease has to report progress.
type Pulse struct {
	patience time.Duration // how long the next report may take; 0: no limit
	due      atomic.Pointer[time.Time]
}

// NewPulse returns a pulse that has just beaten.
func NewPulse(patience time.Duration) *Pulse {
	p := &Pulse{patience: patience}
	p.Beat()
	return p
}

// Beat notes a report of progress.
func (p *Pulse) Beat() { p.Grace(p.patience) }

// Grace gives the next report more time: d from now on.
func (p *Pulse) Grace(d time.Duration) { p.due.Store(new(time.Now().Add(max(d, p.patience)))) }

// Stop notes that the work reports a failure: no time is left.
func (p *Pulse) Stop() { p.due.Store(new(time.Now())) }

// Left returns how long the next report may take. bounded is false if it may take for ever.
func (p *Pulse) Left() (left time.Duration, bounded bool) {
	return time.Until(*p.due.Load()), p.patience > 0
}
