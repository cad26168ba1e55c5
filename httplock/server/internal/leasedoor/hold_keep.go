package leasedoor

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/wire"
)

// keep holds the lock that was granted until the stream ends, and returns how it ended.
func (s *stream) keep(h *hold) ending {
	switch {
	case s.silentOnly(): // as silence: it runs out
		return ending{}
	case s.gone():
		s.hungUp(h, nil)
		return ending{}
	}
	lease, err := h.attach(s)
	switch {
	case errors.Is(err, errMoved):
		return ending{event: "moved"}
	case err != nil:
		return lossOf(notHeld(err))
	}
	e, closed := s.hold(lease)
	if !h.detach(s) {
		return e // another stream has the lease, or somebody has released it
	}
	if closed {
		s.hungUp(h, lease)
	} else if lease != nil {
		_ = lease.Leave() // it may be lost: then there is nothing to leave
	}
	return e
}

// notHeld returns why the lease is not held: for the client it is lost, whatever the
// server has met.
func notHeld(err error) error {
	if errors.Is(err, holdfast.ErrLost) {
		return err
	}
	return errors.Join(holdfast.ErrLost, err)
}

// hold writes lines until something ends the stream. closed reports whether it was the
// client, or what is between.
func (s *stream) hold(lease *holdfast.Lease) (e ending, closed bool) {
	var over <-chan struct{}
	if lease != nil {
		over = lease.Context().Done()
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	look := s.lookClient
	if lease != nil {
		look = func() (time.Duration, error) { return s.look(lease) }
	}
	for {
		select {
		case <-s.r.Context().Done():
			return ending{}, true
		case <-s.door.house.Draining:
			return ending{event: "moved"}, false
		case <-over:
			return lossOf(context.Cause(lease.Context())), false
		case e := <-s.told:
			return e, false
		case <-timer.C:
		}
		next, err := look()
		switch loss := (*lossError)(nil); {
		case errors.As(err, &loss):
			return loss.ending, false
		case errors.Is(err, errSilent):
			return ending{event: "lost", code: "lost", cause: "silent", detail: errSilent.Error()}, false
		case err != nil:
			return ending{}, true
		}
		timer.Reset(next)
	}
}

// A lossError says that the stream must say that the lease is lost.
type lossError struct{ ending }

func (*lossError) Error() string { return "lost" }

// look writes what is to be written now of a lease that the server renews, and returns
// when to look again.
func (s *stream) look(lease *holdfast.Lease) (next time.Duration, err error) {
	line := s.heldLine()
	// INVARIANT I3: the line is as old as AtMS says, and so is not good for longer than
	// the lease is as of now.
	remaining := lease.Remaining()
	if err := s.listening(); err != nil {
		return 0, err
	}
	if remaining <= s.times.farewell() {
		return 0, &lossError{ending{
			event: "lost", code: "lost", cause: "deadline",
			detail: "the lease could not be renewed, and ends soon: stop now",
		}}
	}
	s.freshen(lease, remaining)
	if s.times.vows(remaining) {
		line.ExpiresInMS = wire.Left(remaining)
		err, s.began = s.out.write(line), true
	}
	return s.times.next(remaining), err
}

// heldLine returns a line that says that the lock is held: the first says of which lease.
func (s *stream) heldLine() wire.HoldLine {
	if s.began {
		return s.out.line("ping")
	}
	line, token := s.out.line("acquired"), wire.TokenOf(s.grant.token)
	line.LeaseID, line.Name, line.Mode = string(s.req.LeaseID), s.req.Name, s.req.Mode.String()
	line.Token, line.TTLMS = &token, s.req.TTL.Milliseconds()
	line.OnClose, line.Renew = s.form.onClose(), s.form.renew()
	line.PingMS, line.QuietMS = s.times.ping().Milliseconds(), s.times.quiet().Milliseconds()
	return line
}

// freshen renews a lease that the client of this server renews too seldom: see
// holdTimes.stale.
func (s *stream) freshen(lease *holdfast.Lease, remaining time.Duration) {
	s.full = max(s.full, remaining)
	if s.full-remaining >= s.times.stale() {
		s.beside(func(ctx context.Context) { _ = lease.Extend(ctx, s.times.ttl) }) // its context tells of a loss
	}
}

// beside asks the store something, unless it is being asked.
func (s *stream) beside(ask func(context.Context)) {
	if !s.asking.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer s.asking.Store(false)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.r.Context()), requestTimeout)
		defer cancel()
		ask(ctx)
	}()
}

// lookClient is look where the client renews: lines say that the server is there, and
// nothing of the lease. The store is asked now and then whether the lease is live.
func (s *stream) lookClient() (next time.Duration, err error) {
	line := s.heldLine()
	if !s.began {
		s.began = true
		line.ExpiresInMS = wire.Left(max(0, s.req.TTL-time.Since(s.grant.sent)))
		s.asked = time.Now()
	}
	if err := s.listening(); err != nil {
		return 0, err
	}
	if time.Since(s.asked) >= s.times.ttl/3 {
		s.asked = time.Now()
		s.beside(s.verify)
	}
	return s.times.ping(), s.out.write(line)
}

// verify ends the stream if the lease is over. It asks for the shortest TTL, which shortens
// no lease.
func (s *stream) verify(ctx context.Context) {
	req := driver.ExtendRequest{Name: s.req.Name, LeaseID: s.req.LeaseID, TTL: holdfast.MinTTL}
	if err := s.door.house.Engine.Extend(ctx, []driver.ExtendRequest{req})[0]; errors.Is(err, driver.ErrLost) {
		s.tell(lossOf(err))
	}
}

// tell ends the stream from outside. The first to do so decides.
func (s *stream) tell(e ending) {
	select {
	case s.told <- e:
	default:
	}
}
