package enginetest_test

import (
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/driver/rules"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

func (e *engine) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	if err := driver.CheckSupport(e.caps, req); err != nil {
		switch {
		case e.fault == "unsupported mode is served as exclusive" && errors.Is(err, driver.ErrUnsupported) && req.Mode != lockinfo.Exclusive,
			e.fault == "mode out of range is served as exclusive" && req.Mode.Check() != nil:
			req.Mode = lockinfo.Exclusive
		case e.fault == "unsupported queue is ignored" && req.Queue:
			req.Queue = false
		case e.fault == "unsupported Once is ignored" && req.Once:
			req.Once = false
		case e.fault == "TTL beyond MaxTTL is served" && errors.Is(err, driver.ErrInvalid) && req.Mode.Check() == nil:
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
		if e.fault == "clean-up ends the lease of a repeat elsewhere" {
			time.AfterFunc(100*time.Millisecond, func() { e.endOthers(req) })
		}
		return driver.AcquireReply{}, err
	}
	defer e.mu.Unlock()
	if e.fault == "strange names are refused" && strings.ContainsAny(req.Name, "\\") {
		return driver.AcquireReply{}, driver.ErrInvalid
	}
	return e.acquire(req, now)
}

// endOthers ends the lease of req if another engine was granted it, for a fault.
func (e *engine) endOthers(req driver.AcquireRequest) {
	e.mu.Lock()
	n := e.names[req.Name]
	ends := n != nil && slices.ContainsFunc(n.leases, func(l *lease) bool { return l.req.LeaseID == req.LeaseID && l.by != e })
	e.mu.Unlock()
	if ends {
		_ = e.Release(context.Background(), driver.ReleaseRequest{Name: req.Name, LeaseID: req.LeaseID})
	}
}

func (e *engine) acquire(req driver.AcquireRequest, now time.Time) (driver.AcquireReply, error) {
	n := e.settled(req.Name, now)
	if reply, decided := e.decided(n, req, now); decided {
		return reply, nil
	}
	if err := e.check(n, req, now); err != nil {
		return driver.AcquireReply{}, err
	}
	free := e.fits(n, req, now) && !e.mustWait(n, req)
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
	if e.fault != "AcquireAll writes only the first" || !e.allAtOnce || len(e.unsaid) == 0 {
		e.noteLease(lockinfo.HistoryAcquired, n, l, now)
	}
	return driver.AcquireReply{Outcome: driver.Granted, Token: l.token}, nil
}

// pause unlocks the store for a while, for a fault.
func (e *engine) pause(d time.Duration) {
	e.mu.Unlock()
	runtime.Gosched()
	time.Sleep(d)
	e.mu.Lock()
}

// decided returns the reply to a request if it does not depend on other leases and places.
func (e *engine) decided(n *entry, req driver.AcquireRequest, now time.Time) (reply driver.AcquireReply, decided bool) {
	if now.Before(e.tombstones[req.LeaseID]) && (e.fault != "AcquireAll ignores cancels" || !e.allAtOnce) {
		return driver.AcquireReply{Outcome: driver.Cancelled}, true
	}
	l := e.find(n, req.LeaseID, "Acquire")
	if e.notFirst(n, l, req, now) {
		return driver.AcquireReply{Outcome: driver.Repeated}, true
	}
	if l != nil && e.fault != "repeat is refused" {
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

// notFirst reports whether a request has First although it is not the first of its lease ID. l is
// the lease of the first request.
func (e *engine) notFirst(n *entry, l *lease, req driver.AcquireRequest, now time.Time) bool {
	i := e.place(n, req.LeaseID, "Queue")
	switch {
	case !req.First || l == nil && i < 0, e.fault == "First is ignored", e.fault == "First looks for no place" && l == nil:
		return false
	case e.fault == "First lengthens" && l != nil:
		l.expiry = now.Add(req.TTL)
	case e.fault == "First refreshes the place" && l == nil:
		n.queue[i].until = now.Add(req.WaiterTTL)
	}
	return true
}

// check returns an error if n does not allow the request.
func (e *engine) check(n *entry, req driver.AcquireRequest, now time.Time) error {
	v, _ := e.look(n, now)
	switch there := v.Taken; {
	case e.fault == "kinds are not compared":
	case e.fault == "limits are not compared" && (v.Held && there.Limit() > 0 || !v.Held && v.Head.Limit() > 0) && req.Mode.Limit() > 0:
	default:
		if err := v.CheckKind(req.Mode); err != nil {
			return err
		}
	}
	_, err := driver.LeastToken(uint64(now.UnixMicro()), req.MinToken)
	if e.fault == "MinToken is not bounded" ||
		e.fault == "MinToken is bounded where a lease is granted" && !e.fits(n, req, now) {
		return nil
	}
	return err
}

// look returns what the rules need to know of n, and the lease that ends first. It counts all that
// was not purged, even if it has expired.
func (s *store) look(n *entry, now time.Time) (v rules.View, first *lease) {
	for _, l := range n.leases {
		mode := s.takes(n.modeOf(l))
		if l.released && s.fault == "KeepFor gives permits back" {
			mode = withPermits(mode, 0)
		}
		if v.AddLease(mode, max(l.expiry.Sub(now), 1)) {
			first = l
		}
	}
	for _, p := range n.queue {
		v.AddPlace(s.takes(p.req.Mode), p.req.Once, max(p.until.Sub(now), 1))
	}
	return v, first
}

// takes returns the mode of the lease that a request with this mode is granted.
func (s *store) takes(mode lockinfo.Mode) lockinfo.Mode {
	if s.fault == "every request takes one permit" {
		return withPermits(mode, 1)
	}
	return mode
}

// withPermits returns a semaphore mode with another number of permits, and any other mode as it is.
func withPermits(mode lockinfo.Mode, n int) lockinfo.Mode {
	if mode.Limit() == 0 {
		return mode
	}
	return lockinfo.Permits(n, mode.Limit())
}

// modeOf returns the mode of a lease.
func (n *entry) modeOf(l *lease) lockinfo.Mode {
	if n.mode.Limit() == 0 && l.req.Mode.Limit() == 0 {
		return n.mode // of all leases: Downgrade changes it
	}
	return l.req.Mode
}

// mustWait reports whether the request must wait behind a place.
func (e *engine) mustWait(n *entry, req driver.AcquireRequest) bool {
	switch {
	case e.fault == "unqueued requests barge" && !req.Queue && !e.allAtOnce,
		e.fault == "AcquireAll barges" && e.allAtOnce,
		e.fault == "queued requests barge" && req.Queue,
		e.fault == "readers overtake writers" && req.Mode == lockinfo.Shared,
		e.fault == "expiry is left to the next comer" && len(n.leases) == 0:
		return false
	}
	return len(n.queue) > 0
}

// fits reports whether a request may be granted together with the leases of n.
func (s *store) fits(n *entry, req driver.AcquireRequest, now time.Time) bool {
	v, _ := s.look(n, now)
	mode := s.takes(req.Mode)
	kept := slices.ContainsFunc(n.leases, func(l *lease) bool { return l.released })
	between := func(there, asks lockinfo.Mode) bool { return v.Held && v.Taken == there && mode == asks }
	switch {
	case kept && s.fault == "KeepFor is ignored for others",
		kept && s.fault == "KeepFor is ignored for its own lease ID" && n.leases[0].req.LeaseID == req.LeaseID,
		s.fault == "exclusive beside shared" && between(lockinfo.Shared, lockinfo.Exclusive),
		s.fault == "shared beside exclusive" && between(lockinfo.Exclusive, lockinfo.Shared),
		s.fault == "grants over a lease that was extended" && between(lockinfo.Exclusive, lockinfo.Exclusive) && n.leases[0].extended:
		return true
	case kept && s.fault == "KeepFor closes the name to all",
		s.fault == "one shared lease at a time" && between(lockinfo.Shared, lockinfo.Shared):
		return false
	case n.leaked > 0 && mode.Limit() > 0:
		return n.leaked+v.Taken.Permits()+mode.Permits() <= mode.Limit()
	case s.fault == "semaphore has one permit too many":
		v.Taken = withPermits(v.Taken, v.Taken.Permits()-1)
	}
	return v.Fits(mode)
}

// grant adds a lease for req that lasts until expiry.
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
	l := &lease{req: req, token: s.nextToken(n, req, now), granted: now, expiry: expiry, by: s.by}
	if s.fault == "AcquireAll does not note when" && s.allAtOnce {
		l.granted = time.Time{}
	}
	n.leases = append(n.leases, l)
	if s.fault == "latest grant is listed first" {
		slices.Reverse(n.leases)
	}
	return l
}

// nextToken returns the token of a new grant.
func (s *store) nextToken(n *entry, req driver.AcquireRequest, now time.Time) uint64 {
	clock, minToken := uint64(now.UnixMicro()), req.MinToken
	switch s.fault {
	case "token is a counter":
		clock = 0
	case "MinToken is ignored":
		minToken = 0
	}
	step := uint64(driver.TokenRange)
	if s.fault == "tokens leave no room" {
		step = 1
	}
	token := max(n.last+step, rules.LeastToken(clock, minToken)) // like rules.NextToken, but even past MaxToken
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

// repeat returns the reply to a repeated acquire of a live lease.
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
	case "repeat begins since anew":
		l.granted = now
	case "repeat undoes Downgrade":
		n.mode = req.Mode
	case "repeat is written":
		e.noteLease(lockinfo.HistoryAcquired, n, l, now)
	}
	return driver.AcquireReply{Outcome: driver.Granted, Token: l.token}
}

// refuse returns the reply to a request that must wait.
func (e *engine) refuse(n *entry, req driver.AcquireRequest, now time.Time) driver.AcquireReply {
	if e.fault == "refusal lengthens the lease in the way" && req.TTL > 10*time.Second && !req.Queue && len(n.leases) > 0 {
		n.leases[0].expiry = now.Add(req.TTL)
	}
	reply := e.blocker(n, now)
	if req.Queue || e.fault == "place without asking" {
		reply.Place = e.enqueue(n, req, now)
		if e.fault != "refusal does not count its own place" {
			reply.Queue = len(n.queue)
		}
	}
	if e.fault == "refusal drops the length of the queue" {
		reply.Queue = 0
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
	v, l := e.look(n, now)
	if l == nil {
		return driver.AcquireReply{Outcome: driver.Held}
	}
	switch e.fault {
	case "refusal names the first lease":
		l = n.leases[0]
	case "refusal names the last to end":
		l = slices.MaxFunc(n.leases, func(a, b *lease) int { return a.expiry.Compare(b.expiry) })
	}
	v.Left = l.expiry.Sub(now)
	reply := driver.AcquireReply{Outcome: driver.Held, Blocker: v.Blocker(e.holding(n, l, now), 0, len(n.queue))}
	switch e.fault {
	case "refusal drops the holder":
		reply.Holder = lockinfo.Holder{}
	case "refusal drops the labels":
		reply.Holder.Labels = nil
	case "refusal says the whole TTL":
		reply.ExpiresIn = 8 * time.Second
	case "refusal says what is left in seconds":
		reply.ExpiresIn /= 1000
	case "refusal shows the token":
		reply.Token = l.token
	case "refusal drops since":
		reply.Since = 0
	case "refusal does not say that it was released":
		reply.Released = false
	case "refusal says that all were released":
		reply.Released = true
	}
	return reply
}

// holding returns the description of a lease.
func (s *store) holding(n *entry, l *lease, now time.Time) lockinfo.Holding {
	h := lockinfo.Holding{
		LeaseID: l.req.LeaseID, Token: l.token, Mode: n.modeOf(l), Holder: s.holder(l.req),
		Since: now.Sub(l.granted), ExpiresIn: l.expiry.Sub(now), Released: l.released,
	}
	if s.fault == "since is read from the token" {
		h.Since = max(now.Sub(time.UnixMicro(int64(l.token))), 0)
	}
	return h
}

// holder returns a copy of the holder of req.
func (s *store) holder(req driver.AcquireRequest) lockinfo.Holder {
	h := req.Holder
	if s.fault != "holder is not copied" {
		h.Labels = maps.Clone(h.Labels)
	}
	return h
}
