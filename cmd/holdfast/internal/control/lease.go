//go:build unix

package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
)

// A Possession is a lease, or several that are held together.
type Possession interface {
	Context() context.Context
	Extend(ctx context.Context, ttl time.Duration) error
	Progress()
	Valid() bool
	Remaining() time.Duration
}

// A Desk answers what is asked about a lease. Its functions may be nil.
type Desk struct {
	What    string           // its name, or names, as messages show them
	LeaseID holdfast.LeaseID // of the first
	Lease   Possession

	Extended   func() // the lease lasts longer now
	Progressed func()

	// End answers what ends a lease; it has checked that the lease is the one that
	// is meant.
	End func(ctx context.Context, r Request) Answer
}

// Answer is a Handler.
func (d Desk) Answer(ctx context.Context, r Request) Answer {
	if r.LeaseID != "" && r.LeaseID != string(d.LeaseID) {
		return d.refuse(exit.Config, r.Do, errors.New("the lease of the environment is not the one at HOLDFAST_SOCKET"))
	}
	switch r.Do {
	case Check, Progress, Extend:
		return d.live(ctx, r)
	case Release, Complete, Fail:
		return d.End(ctx, r)
	}
	return d.refuse(exit.Config, r.Do, errors.New("it is not known to the process that keeps the lease, which is of another version"))
}

// live answers what only a lease that may be trusted can do.
func (d Desk) live(ctx context.Context, r Request) Answer {
	if !d.Lease.Valid() {
		return d.lost(r.Do)
	}
	switch r.Do {
	case Progress:
		d.Lease.Progress()
		call(d.Progressed)
	case Extend:
		err := d.Lease.Extend(ctx, time.Duration(r.TTLMS)*time.Millisecond)
		switch {
		case errors.Is(err, holdfast.ErrLost):
			return d.lost(r.Do)
		case err != nil:
			return Answer{Status: exit.StatusOf(err), Error: err.Error()}
		}
		call(d.Extended)
	}
	return Answer{LeftMS: d.Lease.Remaining().Milliseconds()}
}

func call(f func()) {
	if f != nil {
		f()
	}
}

// lost says why the lease is over.
func (d Desk) lost(verb string) Answer {
	cause := context.Cause(d.Lease.Context())
	if cause == nil || errors.Is(cause, context.Canceled) {
		cause = errors.New("the lease is over")
	}
	return d.refuse(exit.Lost, verb, cause)
}

func (d Desk) refuse(status int, verb string, err error) Answer {
	return Answer{Status: status, Error: fmt.Sprintf("%s %s: %v", verb, d.What, err)}
}
