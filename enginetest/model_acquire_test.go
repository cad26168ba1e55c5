package enginetest_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

func (e *engine) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	if err := driver.CheckSupport(e.caps, req); err != nil {
		switch {
		case e.fault == "unsupported mode is served as exclusive" && req.Mode != driver.Exclusive:
			req.Mode, req.Permits, req.Limit = driver.Exclusive, 0, 0
		case e.fault == "unsupported queue is ignored" && req.Queue:
			req.Queue = false
		case e.fault == "unsupported Once is ignored" && req.Once:
			req.Once = false
		case e.fault == "TTL beyond MaxTTL is served" && errors.Is(err, driver.ErrInvalid):
		case e.fault == "unsupported replicas are ignored" && req.Replicas > 0:
		default:
			return driver.AcquireReply{}, err
		}
	}
	now, err := e.enter(ctx)
	if err != nil {
		if e.fault == "clean-up ends the lease of a repeat" {
			time.AfterFunc(100*time.Millisecond, func() {
				_ = e.Release(context.WithoutCancel(ctx), driver.ReleaseRequest{Name: req.Name, LeaseID: req.LeaseID})
			})
		}
		return driver.AcquireReply{}, err
	}
	defer e.mu.Unlock()
	if e.fault == "strange names are refused" && strings.ContainsAny(req.Name, "\\") {
		return driver.AcquireReply{}, driver.ErrInvalid
	}
	return e.acquire(req, now)
}

func (e *engine) acquire(req driver.AcquireRequest, now time.Time) (driver.AcquireReply, error) {
	n := e.settled(req.Name, now)
	if reply, decided := e.decided(n, req, now); decided {
		return reply, nil
	}
	if err := e.check(n, req, now); err != nil {
		return driver.AcquireReply{}, err
	}
	free := e.fits(n, req) && !e.mustWait(n, req)
	if e.fault == "check and record are two steps" {
		e.pause(time.Millisecond)
	}
	if !free {
		return e.refuse(n, req, now), nil
	}
	if e.fault == "grant keeps a place" && req.Queue {
		e.enqueue(n, req, now)
	}
	l := e.grant(n, req, now, now.Add(req.TTL))
	return driver.AcquireReply{Outcome: driver.Granted, Token: l.token}, nil
}

// pause lets others at the store, for a fault.
func (e *engine) pause(d time.Duration) {
	e.mu.Unlock()
	runtime.Gosched()
	time.Sleep(d)
	e.mu.Lock()
}

// decided answers a request whose answer does not depend on what is in the
// way.
func (e *engine) decided(n *entry, req driver.AcquireRequest, now time.Time) (reply driver.AcquireReply, decided bool) {
	if now.Before(e.tombstones[req.LeaseID]) && (e.fault != "AcquireAll ignores cancels" || !e.allAtOnce) {
		return driver.AcquireReply{Outcome: driver.Cancelled}, true
	}
	if l := e.find(n, req.LeaseID, "Acquire"); l != nil && e.fault != "repeat is refused" {
		return e.repeat(n, l, req, now), true
	}
	once := req.Once && e.fault != "record ignores Once" || e.fault == "record binds everybody"
	if once && n.record != nil && (e.fault != "record is told only if free" || len(n.leases) == 0) {
		if e.fault == "Recorded gives a place" && req.Queue {
			e.enqueue(n, req, now)
		}
		return driver.AcquireReply{Outcome: driver.Recorded, Record: e.out(n.record.data)}, true
	}
	return driver.AcquireReply{}, false
}

// check fails if the request may not be made of n.
func (e *engine) check(n *entry, req driver.AcquireRequest, now time.Time) error {
	var there []driver.AcquireRequest
	for _, l := range n.leases {
		there = append(there, l.req)
	}
	for _, p := range n.queue {
		there = append(there, p.req)
	}
	for _, other := range there {
		if kind(other) != kind(req) && e.fault != "kinds are not compared" &&
			(e.fault != "limits are not compared" || other.Limit == 0 || req.Limit == 0) {
			return fmt.Errorf("%w: the name is used otherwise", driver.ErrKindMismatch)
		}
	}
	tooFar := req.MinToken > uint64(now.Add(driver.MaxTokenLead).UnixMicro())
	switch e.fault {
	case "MinToken is not bounded":
		tooFar = false
	case "MinToken is bounded where a lease is granted":
		tooFar = tooFar && e.fits(n, req)
	}
	if tooFar {
		return fmt.Errorf("%w MinToken: it is too far ahead", driver.ErrInvalid)
	}
	return nil
}

// kind is the limit of a semaphore, and 0 of other locks.
func kind(req driver.AcquireRequest) int {
	if req.Mode == driver.Semaphore {
		return req.Limit
	}
	return 0
}

// mustWait reports whether somebody else has a place.
func (e *engine) mustWait(n *entry, req driver.AcquireRequest) bool {
	switch {
	case e.fault == "unqueued requests barge" && !req.Queue && !e.allAtOnce,
		e.fault == "AcquireAll barges" && e.allAtOnce,
		e.fault == "queued requests barge" && req.Queue,
		e.fault == "readers overtake writers" && req.Mode == driver.Shared,
		e.fault == "expiry is left to the next comer" && len(n.leases) == 0:
		return false
	}
	return len(n.queue) > 0
}

// fits reports whether a request may be granted beside the leases of n.
func (s *store) fits(n *entry, req driver.AcquireRequest) bool {
	if len(n.leases) == 0 && (req.Mode != driver.Semaphore || n.leaked == 0) {
		return true
	}
	kept := slices.ContainsFunc(n.leases, func(l *lease) bool { return l.released })
	switch {
	case kept && s.fault == "KeepFor is ignored for others",
		kept && s.fault == "KeepFor is ignored for its own lease ID" && n.leases[0].req.LeaseID == req.LeaseID:
		return true
	case kept && s.fault == "KeepFor closes the name to all":
		return false
	case req.Mode == driver.Semaphore:
		return s.taken(n)+s.permits(req) <= req.Limit
	}
	switch {
	case n.mode == driver.Shared && req.Mode == driver.Shared:
		return s.fault != "one shared lease at a time"
	case n.mode == driver.Shared:
		return s.fault == "exclusive beside shared"
	case req.Mode == driver.Shared:
		return s.fault == "shared beside exclusive"
	}
	return s.fault == "grants over a lease that was extended" && n.leases[0].extended
}

// taken returns how many permits the leases of n have.
func (s *store) taken(n *entry) int {
	sum := n.leaked
	for _, l := range n.leases {
		if !l.released || s.fault != "KeepFor gives permits back" {
			sum += s.permits(l.req)
		}
	}
	if s.fault == "semaphore has one permit too many" {
		sum--
	}
	return sum
}

func (s *store) permits(req driver.AcquireRequest) int {
	if s.fault == "every request takes one permit" {
		return 1
	}
	return req.Permits
}

// grant records a lease for req until expiry.
func (s *store) grant(n *entry, req driver.AcquireRequest, now, expiry time.Time) *lease {
	switch s.fault {
	case "expires a tenth early":
		expiry = expiry.Add(-expiry.Sub(now) / 10)
	case "reader shortens the others":
		for _, l := range n.leases {
			if expiry.Before(l.expiry) {
				l.expiry = expiry
			}
		}
	}
	if len(n.leases) == 0 && (s.fault != "mode of the first lease stays" || n.last == 0) {
		n.mode = req.Mode
	}
	if s.fault != "holder is not copied" {
		req.Holder.Labels = maps.Clone(req.Holder.Labels)
	}
	l := &lease{req: req, token: s.nextToken(n, req, now), expiry: expiry}
	n.leases = append(n.leases, l)
	if s.fault == "latest grant is listed first" {
		slices.Reverse(n.leases)
	}
	return l
}

// nextToken draws the token of a grant.
func (s *store) nextToken(n *entry, req driver.AcquireRequest, now time.Time) uint64 {
	token := max(n.last+1, uint64(now.UnixMicro()))
	if s.fault == "token is a counter" {
		token = n.last + 1
	}
	if s.fault != "MinToken is ignored" {
		token = max(token, req.MinToken+1)
	}
	switch s.fault {
	case "tokens are all alike":
		token = 1
	case "token is beyond MaxToken":
		token += driver.MaxToken
	}
	if s.fault != "lift is forgotten" || req.MinToken == 0 {
		n.last = max(n.last, token)
	}
	return token
}

// repeat answers an acquire of a live lease's own ID.
func (e *engine) repeat(n *entry, l *lease, req driver.AcquireRequest, now time.Time) driver.AcquireReply {
	switch expiry := now.Add(req.TTL); {
	case e.fault == "repeat shortens":
		l.expiry = expiry
	case e.fault == "repeat does not lengthen":
	case expiry.After(l.expiry):
		l.expiry = expiry
	}
	switch e.fault {
	case "repeat changes the token":
		n.last++
		l.token = n.last
	case "repeat undoes Downgrade":
		n.mode = req.Mode
	}
	return driver.AcquireReply{Outcome: driver.Granted, Token: l.token}
}

// refuse answers a request that has to wait.
func (e *engine) refuse(n *entry, req driver.AcquireRequest, now time.Time) driver.AcquireReply {
	if e.fault == "refusal lengthens the lease in the way" && req.TTL > 10*time.Second && !req.Queue && len(n.leases) > 0 {
		n.leases[0].expiry = now.Add(req.TTL)
	}
	reply := e.blocker(n, now)
	if req.Queue || e.fault == "place without asking" {
		reply.Place = e.enqueue(n, req, now)
	}
	if e.fault == "watch begins with the answer" && req.Queue {
		e.pause(100 * time.Millisecond)
		for w := range e.watches {
			w.deaf = w.deaf && w.id != req.LeaseID
		}
	}
	return reply
}

// blocker describes the lease that ends first.
func (e *engine) blocker(n *entry, now time.Time) driver.AcquireReply {
	reply := driver.AcquireReply{Outcome: driver.Held}
	if len(n.leases) == 0 {
		return reply
	}
	l := slices.MinFunc(n.leases, func(a, b *lease) int { return a.expiry.Compare(b.expiry) })
	switch e.fault {
	case "refusal names the first lease":
		l = n.leases[0]
	case "refusal names the last to end":
		l = slices.MaxFunc(n.leases, func(a, b *lease) int { return a.expiry.Compare(b.expiry) })
	}
	reply.Holder, reply.ExpiresIn = e.holder(l.req), l.expiry.Sub(now)
	switch e.fault {
	case "refusal drops the holder":
		reply.Holder = driver.Holder{}
	case "refusal drops the labels":
		reply.Holder.Labels = nil
	case "refusal says the whole TTL":
		reply.ExpiresIn = 8 * time.Second
	case "refusal says what is left in seconds":
		reply.ExpiresIn /= 1000
	case "refusal shows the token":
		reply.Token = l.token
	}
	return reply
}

// holder returns what may be shown of the holder of req.
func (s *store) holder(req driver.AcquireRequest) driver.Holder {
	h := req.Holder
	if s.fault != "holder is not copied" {
		h.Labels = maps.Clone(h.Labels)
	}
	return h
}
