package leasedoor

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/wire"
	"github.com/holdfast-locks/holdfast/wire/codes"
)

// An attempt is one acquisition under way. Its lease ID is that of the caller's key, so it
// never takes another: a request that comes again, at this server or another, goes on
// where the last one stopped.
type attempt struct {
	door *leases
	r    *door.Request
	want wire.LeaseRequest
	req  driver.AcquireRequest

	blocker driver.Blocker // of the last answer of Held
	sent    time.Time      // when the request was sent that has it
}

// A grant is what the store has granted.
type grant struct {
	token uint64
	sent  time.Time // before the request was sent that was granted: the whole TTL counts from it (INVARIANT I3)
}

// begin reads a request for a lease, and checks all that can be checked without the store:
// its form, the caller's rights and limits, and that the server takes new work. Whoever is
// answered by wait, or does not call it, need not end the attempt.
func (d *leases) begin(r *door.Request) (*attempt, error) {
	a := &attempt{door: d, r: r}
	if err := r.Read(&a.want); err != nil {
		return nil, err
	}
	var err error
	if a.req, err = acquireRequest(r, &a.want); err != nil {
		return nil, err
	}
	return a, a.admit(caller.Acquire, forLock)
}

// admit checks whether the caller may ask, and makes the lease ID.
func (a *attempt) admit(right caller.Rights, use purpose) error {
	if err := a.r.Need(right, a.req.Name); err != nil {
		return err
	}
	key, err := keyOf(a.r)
	if err != nil {
		return err
	}
	if err := a.r.NewWork(); err != nil {
		return err
	}
	ctx, cancel, err := a.r.Budgeted()
	if err != nil {
		return err
	}
	defer cancel()
	if a.req.LeaseID, err = a.door.leaseID(ctx, a.r, a.req.Name, key, use); err != nil {
		return err
	}
	a.req.LeaseID = withMinHold(a.req.LeaseID, a.want.MinHoldMS > 0)
	return a.r.House.Limits.Lease(a.r.Caller, a.req.LeaseID, a.req.TTL)
}

// ask sends the request until the store has answered it. INVARIANT I6: each copy has the
// same lease ID. sent is from before the copy was sent that was answered (INVARIANT I3).
func (a *attempt) ask(ctx context.Context) (reply driver.AcquireReply, sent time.Time, err error) {
	f := ask.Until(ctx, requestTimeout, func(ctx context.Context) (err error) {
		sent = time.Now()
		reply, err = a.door.house.Engine.Acquire(ctx, a.req)
		return err
	})
	return reply, sent, f.Effective()
}

// wait asks for the lock, and waits for it for as long as limit, or until ctx ends, which
// must end when the caller hangs up: then the place in the queue stays for its waiter TTL.
// If the wait is over before that, because of limit or because the server drains, the
// error is a *queuedError if there is a place. told, which may be nil, hears of each change
// of what is in the way.
func (a *attempt) wait(ctx context.Context, limit time.Duration, told func(driver.Blocker)) (grant, error) {
	g, err := a.waited(ctx, limit, told)
	limits, queued := a.r.House.Limits, (*queuedError)(nil)
	switch {
	case err == nil:
		limits.Renewed(a.r.Caller, a.req.LeaseID, a.req.TTL)
	case errors.As(err, &queued), !definite(err): // there may be a lease soon, or be one already
	default:
		limits.Ended(a.r.Caller, a.req.LeaseID)
	}
	return g, err
}

// definite reports whether err says that there is no lease.
func definite(err error) bool {
	var done *doneError
	return errors.As(err, &done) || door.RefusalOf(err).Code != codes.Of(driver.ErrOutcomeUnknown).Name
}

// answer returns what the caller is told of a lease.
func (a *attempt) answer(g grant) wire.Lease {
	return wire.Lease{
		LeaseID: string(a.req.LeaseID), Name: a.req.Name, Mode: a.req.Mode.String(), Token: wire.TokenOf(g.token),
		TTLMS: a.req.TTL.Milliseconds(), ExpiresInMS: left(a.req.TTL, g.sent),
	}
}

// left returns how many milliseconds are left of d, counted from an instant.
func left(d time.Duration, from time.Time) int64 {
	return max(0, d-time.Since(from)).Milliseconds()
}
