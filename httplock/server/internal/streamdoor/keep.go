package streamdoor

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/lease"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

// keep holds the lock that was granted until the stream ends, and returns how it ended.
func (s *stream) keep(h *hold) *ending {
	switch {
	case s.silentOnly(): // a silent client: the lease expires
		return nil
	case s.gone():
		s.hungUp(h, nil)
		return nil
	}
	var lease *holdfast.Lease
	var err error
	if fault := s.R.Aside(func() { lease, err = h.attach(s) }); fault != nil || err != nil {
		return s.notHeld(errors.Join(fault, err))
	}
	e, closed := s.hold(lease)
	s.part(h, lease, closed)
	return e
}

// part leaves or ends the lease after the end of the stream, unless another stream has it,
// or it was released.
func (s *stream) part(h *hold, lease *holdfast.Lease, closed bool) {
	switch {
	case !h.detach(s):
	case closed:
		s.hungUp(h, lease)
	default:
		leave(lease)
	}
}

// notHeld returns the ending for a granted lease that could not be attached. Unless the server
// drains, the lease is lost for the client, whatever the error is.
func (s *stream) notHeld(err error) *ending {
	switch {
	case errors.Is(err, errMoved):
		return &ending{event: "moved"}
	case !errors.Is(err, holdfast.ErrLost):
		err = errors.Join(holdfast.ErrLost, s.R.Told(err))
	}
	return lossOf(err)
}

// hold writes lines until something ends the stream. closed reports whether that was the end of
// the connection.
func (s *stream) hold(lease *holdfast.Lease) (e *ending, closed bool) {
	var over <-chan struct{}
	if lease != nil {
		over = lease.Context().Done()
	}
	timer := time.NewTimer(s.times.ping())
	defer timer.Stop()
	for {
		if s.R.Revoked() { // the lease expires unless the client returns with a known token
			return &ending{event: "moved"}, false
		}
		next, err := s.look(lease)
		if errors.Is(err, errEnds) && !lease.Valid() { // it has ended: its context has the cause
			<-over
			return lossOf(context.Cause(lease.Context())), false
		}
		if err != nil {
			return endingOf(err)
		}
		timer.Reset(next)
		select {
		case <-s.R.Context().Done():
			return nil, true
		case <-s.door.House.Draining:
			return &ending{event: "moved"}, false
		case <-over:
			return lossOf(context.Cause(lease.Context())), false
		case e := <-s.endings:
			return e, false
		case <-timer.C:
		}
	}
}

// endingOf returns the ending for an error of look.
func endingOf(err error) (e *ending, closed bool) {
	switch {
	case errors.Is(err, errEnds):
		return &ending{
			event: "lost", code: "lost", cause: "deadline",
			detail: "the lease could not be renewed, and ends soon: stop now",
		}, false
	case errors.Is(err, errSilent):
		return &ending{event: "lost", code: "lost", cause: "silent", detail: errSilent.Error()}, false
	}
	return nil, true
}

// errEnds means that the lease ends so soon that the client must stop.
var errEnds = errors.New("the lease ends")

// look writes the line that is due, if any, and returns when to look again.
func (s *stream) look(lease *holdfast.Lease) (next time.Duration, err error) {
	if lease == nil {
		return s.lookClient()
	}
	// INVARIANT I3: read the age of the line before the remaining time of the lease.
	age := s.out.age()
	remaining := lease.Remaining()
	if err := s.listening(); err != nil {
		return 0, err
	}
	if remaining <= s.times.farewell() {
		return 0, errEnds
	}
	s.freshen(lease, remaining)
	if s.times.vows(remaining) {
		err = s.held(age, remaining)
	}
	return s.times.next(remaining), err
}

// held writes a line that says that the lock was held at this age of the stream. The first such
// line describes the lease.
func (s *stream) held(age, remaining time.Duration) error {
	if s.began {
		return s.out.ping(age, remaining)
	}
	s.began = true
	line := wire.HoldLine{Event: "acquired", AtMS: age.Milliseconds()}
	line.LeaseID, line.Name, line.Mode = string(s.Req.LeaseID), s.Req.Name, s.Req.Mode.Kind()
	line.Token, line.TTLMS = new(wire.TokenOf(s.grant.Token)), s.Want.TTLMS
	line.OnClose, line.Renew = s.onClose(), s.form.renew()
	line.PingMS, line.QuietMS = s.times.ping().Milliseconds(), s.times.quiet().Milliseconds()
	line.ExpiresInMS = wire.Left(remaining)
	return s.out.write(line)
}

// freshen renews a lease that the server's client renews too seldom: see holdTimes.stale.
func (s *stream) freshen(lease *holdfast.Lease, remaining time.Duration) {
	s.full = max(s.full, remaining)
	if s.full-remaining >= s.times.stale() {
		s.background(func(ctx context.Context) { _ = lease.Extend(ctx, s.times.ttl) }) // its context ends with a loss
	}
}

// background runs f on a goroutine, unless the previous one still runs.
func (s *stream) background(f func(context.Context)) {
	if !s.asking.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer s.asking.Store(false)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.R.Context()), lease.RequestTimeout)
		defer cancel()
		_ = s.R.Guard(func() { f(ctx) }) // logs a panic
	}()
}

// lookClient does as look if the client renews: the pings show only that the server lives.
// verify checks the lease every third of its TTL.
func (s *stream) lookClient() (next time.Duration, err error) {
	remaining := lockinfo.Never
	if !s.began {
		remaining, s.asked = max(0, s.TTL()-time.Since(s.grant.Sent)), time.Now()
	}
	if err := s.listening(); err != nil {
		return 0, err
	}
	if time.Since(s.asked) >= s.times.ttl/3 {
		s.asked = time.Now()
		s.background(s.verify)
	}
	return s.times.ping(), s.held(s.out.age(), remaining)
}

// verify ends the stream if the lease has ended. It extends by the shortest TTL, which
// shortens no lease.
func (s *stream) verify(ctx context.Context) {
	req := driver.ExtendRequest{Name: s.Req.Name, LeaseID: s.Req.LeaseID, TTL: holdfast.MinTTL}
	if err := s.door.House.Engine.Extend(ctx, []driver.ExtendRequest{req})[0]; errors.Is(err, driver.ErrLost) {
		s.tell(lossOf(err))
	}
}

// tell ends the stream from outside. The first to do so decides.
func (s *stream) tell(e *ending) {
	select {
	case s.endings <- e:
	default:
	}
}
