package quorumlock

import (
	"context"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// Release implements driver.Engine. It returns when a majority of the members has carried it out;
// the janitors repeat the request to the others until they answer.
func (e *engine) Release(ctx context.Context, req driver.ReleaseRequest) error {
	req.KeepFor = min(req.KeepFor, e.opts.MaxTTL)
	if err := e.enter(ctx); err != nil {
		return err
	}
	defer e.running.Done()
	r := e.newRelease(req)
	answers := sendAll(e, e.timeout(r.ttl), func(ctx context.Context, i int) (uint64, error) {
		return e.members[i].Withdraw(ctx, r.request)
	})
	err := r.collect(ctx, answers)
	if err == nil || isLost(err) {
		e.ledger.end(req.LeaseID)
		e.ledger.learn(req.Name, r.token|1, r.lead)
	}
	e.running.Go(func() { r.finish(answers) })
	return err
}

// A release is one call of Release in progress. Its caller's goroutine uses it until collect
// returns; then finish does.
type release struct {
	*engine
	request driver.WithdrawRequest
	ttl     time.Duration // of the lease; 0 if unknown
	keepEnd time.Time     // when KeepFor ends, even for members that get the request late
	lead    time.Duration // of the next proposal

	received int     // number of answers
	token    uint64  // of the lease that was ended
	ended    int     // number of members that have ended it
	lost     []int   // members that had no such lease
	failed   []int   // members without a definite answer
	causes   []error // the errors of failed
}

// newRelease makes the request to the members. A member ends every lease of this ID, whichever
// engine has proposed it. The token is the greatest that this engine knows, so that members accept
// no copy of an earlier proposal that is still in flight (INVARIANT I5).
func (e *engine) newRelease(req driver.ReleaseRequest) *release {
	lease, latest := e.ledger.read(req.LeaseID)
	r := &release{engine: e, ttl: lease.ttl, request: driver.WithdrawRequest{
		Name: req.Name, LeaseID: req.LeaseID, Released: true, KeepFor: req.KeepFor, Cancel: req.Cancel,
		Token: latest.token,
	}}
	r.lead = latest.lead
	if lease.token > latest.token {
		r.request.Token, r.lead = lease.token, lease.lead
	}
	r.lead = max(r.lead, e.lead())
	r.request.Lead = e.lift(r.lead)
	if req.KeepFor > 0 {
		r.keepEnd = time.Now().Add(req.KeepFor)
	}
	return r
}

// collect waits until the outcome is certain, or cannot be.
//
//	a majority has ended it                      released
//	a majority cannot have had it                ErrLost
//	no member has ended it, or may have          missing: nothing was released
//	otherwise                                    unknown
func (r *release) collect(ctx context.Context, answers <-chan result[uint64]) error {
	for r.received < len(r.members) {
		a, _, err := next(ctx, r.engine, answers, nil)
		if err != nil {
			return err
		}
		switch r.receive(a); {
		case r.ended >= r.quorum: // the others no longer form a lease
			return nil
		case len(r.lost) > len(r.members)-r.quorum: // the others are too few for a lease
			return driver.ErrLost
		}
	}
	return r.unclear(r.causes, r.ended > 0)
}

// receive records one member's answer.
func (r *release) receive(a result[uint64]) {
	r.received++
	switch {
	case a.err == nil:
		r.ended++
		r.token = max(r.token, a.value)
	case isLost(a.err):
		r.lost = append(r.lost, a.from)
	default:
		r.failed = append(r.failed, a.from)
		r.causes = append(r.causes, a.err)
	}
}

// finish waits for the slower members, and passes the request to the janitors of those that failed.
// If the token was unknown before, the request also goes to members that did not have the lease, so
// that none of them repairs it.
func (r *release) finish(answers <-chan result[uint64]) {
	for r.received < len(r.members) {
		r.receive(<-answers)
	}
	again := r.failed
	if r.token > r.request.Token {
		r.request.Token = r.token
		again = append(again, r.lost...)
	}
	w := newWithdrawal(r.request, r.ttl)
	w.keepEnd = r.keepEnd
	for _, i := range again {
		r.janitors[i].add(w)
	}
}
