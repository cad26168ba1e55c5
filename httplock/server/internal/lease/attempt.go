package lease

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/limit"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/internal/codes"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

// An Attempt is one acquisition. Its lease ID follows from the client's key and never
// changes: a repeated request, at this server or another, continues where the last one
// stopped. Without a key the lease ID is random, and a failed attempt is cancelled.
type Attempt struct {
	R     *door.Request
	Want  wire.LeaseRequest
	Req   driver.AcquireRequest
	Async bool // the place is to be kept when the wait ends

	store *Store
	keyed bool // the caller has a key

	began     time.Time      // before the first request was sent
	Blocker   driver.Blocker // of the last reply Held
	sent      time.Time      // when the request of that reply was sent
	uncertain bool           // a request without a definite reply may have been carried out
	gaveUp    bool           // the place

	repeated bool  // an earlier request had the same key
	seen     found // its lease or place, as last seen
	unseen   bool  // the store knows the lease ID, but had no lease or place of it
}

// A Grant is what the store has granted.
type Grant struct {
	Token uint64
	Sent  time.Time // the time before the granted request was sent: the whole TTL counts from it (INVARIANT I3)

	Repeated bool            // an earlier request with the same key took the lease
	holder   lockinfo.Holder // of such a lease, as the store has it
	ends     time.Time       // when such a lease ends at the earliest; zero if unknown
}

// Begin reads a request for a lease, and checks all that can be checked without the store:
// its form, the client's rights and limits, and that the server takes new work.
func (d *Store) Begin(r *door.Request) (*Attempt, error) {
	var want wire.LeaseRequest
	if err := r.Read(&want); err != nil {
		return nil, err
	}
	if want.Names != nil {
		return nil, door.Invalid("names: a stream holds one lock: want a name")
	}
	return d.NewAttempt(r, want)
}

// NewAttempt does as Begin, after the body was read.
func (d *Store) NewAttempt(r *door.Request, want wire.LeaseRequest) (*Attempt, error) {
	a, err := d.Checked(r, want)
	if err != nil {
		return nil, err
	}
	return a, a.Admit(caller.Acquire, ForLock)
}

// Checked returns an attempt for a valid request. Call Admit next.
func (d *Store) Checked(r *door.Request, want wire.LeaseRequest) (a *Attempt, err error) {
	a = &Attempt{store: d, R: r, Want: want}
	a.Req, err = acquireRequest(r, &a.Want)
	return a, err
}

// Admit checks the rights of the client, and makes the lease ID.
func (a *Attempt) Admit(right caller.Rights, use Purpose) error {
	a.R.BodyDone() // the attempt keeps only a short part of it
	if err := a.R.Need(right, a.Req.Name); err != nil {
		return err
	}
	if err := a.identify(use); err != nil {
		return err
	}
	return a.R.House.Limits.Leases(a.R.Caller, a.Req.TTL, a.counted())
}

// counted returns the key under which the limits count the lease.
func (a *Attempt) counted() string { return limit.Lease(a.Req.Name, a.Req.LeaseID) }

// identify makes the lease ID: from the key, if the caller has one.
func (a *Attempt) identify(use Purpose) error {
	if err := a.R.NewWork(); err != nil {
		return err
	}
	// A hold needs a key: it lasts for days, even if its reply was lost.
	if a.keyed = HasKey(a.R) || use == ForHold; !a.keyed {
		a.Req.LeaseID = Labelled(lockinfo.NewLeaseID(), hasLabels(&a.Want))
		return nil
	}
	ctx, cancel := a.R.Budgeted()
	defer cancel()
	a.Req.First, a.Async = true, prefersAsync(a.R.Header)
	id, err := a.store.LeaseID(ctx, a.R, a.Req.Name, use)
	if err == nil {
		a.Req.LeaseID = Labelled(id, hasLabels(&a.Want))
	}
	return err
}

// send sends the request until the store answers. INVARIANT I6: each copy has the
// same lease ID. sent is a time before the answered copy was sent (INVARIANT I3).
func (a *Attempt) send(ctx context.Context) (reply driver.AcquireReply, sent time.Time, err error) {
	f := ask.Until(ctx, RequestTimeout, func(ctx context.Context) (err error) {
		sent = time.Now()
		reply, err = a.store.House.Engine.Acquire(ctx, a.Req)
		a.uncertain = a.uncertain || err != nil && !driver.Definite(err)
		return err
	})
	return reply, sent, f.Effective()
}

// Wait requests the lock, and waits for it up to limit or until ctx ends. ctx must end when
// the client disconnects. If ctx ends or the server drains, the place of a client with a key
// stays in the queue for its waiter TTL. It also stays if the client prefers that: the error
// is then a *queuedError. Any other wait without success leaves no place. changed, which may be
// nil, is called for each change of the blocker.
func (a *Attempt) Wait(ctx context.Context, limit time.Duration, changed func(driver.Blocker)) (Grant, error) {
	g, err := a.waited(ctx, limit, changed)
	if err != nil && !a.keyed && (a.uncertain || a.Blocker.Place > 0 && !a.gaveUp) {
		abandon(a)
	}
	limits := a.R.House.Limits
	switch {
	case err == nil:
		limits.Renewed(a.R.Caller, a.counted(), a.Req.TTL)
	case errors.As(err, new(*queuedError)), !Definite(err), a.seen.there: // a lease may exist, now or soon
	default:
		limits.Ended(a.R.Caller, a.counted())
	}
	return g, err
}

// Definite reports whether no lease exists after err.
func Definite(err error) bool {
	return errors.As(err, new(*DoneError)) || door.RefusalOf(err).Code != codes.Of(driver.ErrOutcomeUnknown).Name
}

// answer describes the lease for the client. It has the terms of this request; those of an
// earlier one are the same, see compare.
func (a *Attempt) answer(g Grant) wire.Lease {
	v := wire.Lease{
		LeaseID: string(a.Req.LeaseID), Name: a.Req.Name, Mode: a.Req.Mode.Kind(), Token: wire.TokenOf(g.Token),
		TTLMS: a.Want.TTLMS, ExpiresInMS: a.Left(g),
	}
	if g.Repeated {
		v.Repeated, v.Holder = true, new(wire.WhoOf(g.holder))
	}
	return v
}

// Left returns how many milliseconds are left of a lease.
func (a *Attempt) Left(g Grant) int64 {
	return max(Left(a.TTL(), g.Sent), time.Until(g.ends.Add(-a.LockDelay())).Milliseconds())
}

// TTL returns how long the holder has the lease. The store keeps it longer by the lock delay.
func (a *Attempt) TTL() time.Duration       { return MS(a.Want.TTLMS) }
func (a *Attempt) LockDelay() time.Duration { return MS(a.Want.LockDelayMS) }

// Left returns how many milliseconds are left of d, counted from an instant.
func Left(d time.Duration, from time.Time) int64 {
	return max(0, d-time.Since(from)).Milliseconds()
}
