package sim

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/redislock"
)

// A spy is an engine that compares the library's requests and the engine's replies with what the
// oracle has seen in the store.
type spy struct {
	*redislock.Engine
	oracle *oracle
	host   *host
}

func (s *spy) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	s.oracle.asks(req.LeaseID, s.host)
	s.oracle.sends(req.LeaseID)
	sent := time.Now()
	reply, err := s.Engine.Acquire(ctx, req)
	if err == nil && reply.Outcome == driver.Granted {
		s.oracle.confirm("acquire", req.Name, req.LeaseID, sent)
	}
	return reply, err
}

func (s *spy) AcquireAll(ctx context.Context, reqs []driver.AcquireRequest) (driver.AllReply, error) {
	for _, req := range reqs {
		s.oracle.asks(req.LeaseID, s.host)
		s.oracle.sends(req.LeaseID)
	}
	sent := time.Now()
	reply, err := s.Engine.AcquireAll(ctx, reqs)
	for _, req := range reqs {
		if err == nil && reply.Outcome == driver.Granted {
			s.oracle.confirm("acquire all", req.Name, req.LeaseID, sent)
		}
	}
	return reply, err
}

func (s *spy) Extend(ctx context.Context, reqs []driver.ExtendRequest) []error {
	for _, req := range reqs {
		s.oracle.renews(req.LeaseID, s.host)
	}
	s.oracle.count("renewals")
	sent := time.Now()
	errs := s.Engine.Extend(ctx, reqs)
	for i, err := range errs {
		switch id := reqs[i].LeaseID; {
		case err == nil:
			s.oracle.confirm("extend", reqs[i].Name, id, sent)
		case errors.Is(err, driver.ErrLost):
			time.AfterFunc(asksWhy+time.Millisecond, func() { s.oracle.isOver(id) })
		}
	}
	return errs
}

// asksWhy is how long, after the reply that a lease is lost, the library may look for the author
// of a break before it ends the lease: see TestSlowInquiryDelaysLittle.
const asksWhy = 250 * time.Millisecond

func (s *spy) Refresh(ctx context.Context, reqs []driver.RefreshRequest) []driver.RefreshReply {
	for _, req := range reqs {
		s.oracle.sends(req.LeaseID)
	}
	sent := time.Now()
	replies := s.Engine.Refresh(ctx, reqs)
	for i, r := range replies {
		if r.Err == nil && r.Outcome == driver.Granted {
			s.oracle.confirm("refresh", reqs[i].Name, reqs[i].LeaseID, sent)
		}
	}
	return replies
}

func (s *spy) Release(ctx context.Context, req driver.ReleaseRequest) error {
	err := s.Engine.Release(ctx, req)
	if err == nil || req.Cancel && errors.Is(err, driver.ErrLost) {
		s.oracle.ends(req.LeaseID)
	}
	return err
}

func (s *spy) Complete(ctx context.Context, req driver.CompleteRequest) error {
	err := s.Engine.Complete(ctx, req)
	if err == nil {
		s.oracle.ends(req.LeaseID)
	}
	return err
}

// confirm checks a successful reply: the store must have had the lease since the request was
// sent. INVARIANT I4.
func (o *oracle) confirm(op, name string, id holdfast.LeaseID, sent time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen[id].Before(sent) {
		o.violateLocked("%s of lease %s of %s was confirmed; the store did not have it", op, short(id), name)
	}
}

// mostRequests is how many requests a waiter may send in a second: one in each 10 ms, and some
// that other clients cause.
const mostRequests = 150

// sends counts the requests of a waiter. INVARIANT I7: no waiter spins.
func (o *oracle) sends(id holdfast.LeaseID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.counts["requests of waiters"]++
	second := time.Now().Unix()
	r := o.rates[id]
	if r.second != second {
		r = rate{second: second}
	}
	if r.n++; r.n == mostRequests {
		o.violateLocked("the waiter of lease %s has sent %d requests within a second", short(id), r.n)
	}
	o.rates[id] = r
}

// A rate is how many requests were sent in one second.
type rate struct {
	second int64
	n      int
}

// ends records that the store has confirmed the end of a lease ID. INVARIANT I5: no copy of its
// acquire may be granted afterwards.
func (o *oracle) ends(id holdfast.LeaseID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended[id] = true
}
