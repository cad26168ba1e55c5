// Package streamdoor answers with streams that hold a lock: the lease lasts as long as the
// connection, or moves with its client to another server.
package streamdoor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/lease"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/peer"
	"github.com/holdfast-locks/holdfast/internal/codes"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

// streams has the handlers.
type streams struct {
	*lease.Store
	holds holds
}

// Open returns the store of h, whose leases streams can hold, and the handler of requests for a
// stream. Call leave when the server drains: it leaves the leases of all streams, so that their
// clients can continue at another server.
func Open(h *door.House) (s *lease.Store, answer door.Func, leave func()) {
	d := &streams{holds: holds{all: map[lockinfo.LeaseID]*hold{}}}
	d.Store = lease.New(h, func(name string, id lockinfo.LeaseID) { d.holds.end(name, id, &ending{event: "released"}) })
	deaf := func() {}
	if teller := h.Features.LossTeller; teller != nil {
		deaf = teller.OnLoss(d.holds.onLoss)
	}
	return d.Store, d.hold, func() {
		deaf()
		d.holds.leave()
	}
}

// A stream is one response to POST /v1/leases?hold=1. It runs on the goroutine of the
// handler. docs/reference/hold-stream.md specifies what it writes when, and how each ending affects
// the lease.
type stream struct {
	*lease.Attempt
	door    *streams
	times   holdTimes
	form    holdForm
	grant   lease.Grant
	out     lines
	endings chan *ending // an ending from outside; has room for one
	began   bool         // the line "acquired" was written
	closed  bool         // a line could not be written: the server has given up the client

	arrivals *peer.Arrivals
	heard    time.Time // when everything that was written before had arrived

	full   time.Duration // the most that remained of the lease
	asking atomic.Bool   // a request about the lease is under way
	asked  time.Time     // when verify last ran, if the client renews
}

// hold answers POST /v1/leases?hold=1.
//
// This goroutine lasts as long as the lock is held, and most of its cost is its stack. The
// stack shrinks from 16 KiB to 8 KiB only if less than 4 KiB are in use, so functions that
// need much stack run aside.
func (d *streams) hold(w http.ResponseWriter, r *door.Request) error {
	s, err := d.newStream(w, r)
	if err != nil {
		return err
	}
	leave, err := r.House.Limits.Stream(r.Caller)
	if err != nil {
		return err
	}
	defer leave()
	return s.run()
}

// newStream returns the stream for a request.
func (d *streams) newStream(w http.ResponseWriter, r *door.Request) (s *stream, err error) {
	began := time.Now()
	s = &stream{door: d, heard: began, endings: make(chan *ending, 1), arrivals: peer.ArrivalsOf(peer.Of(r.Context()))}
	if s.form, err = holdFormOf(r); err != nil {
		return nil, err
	}
	if fault := r.Aside(func() { s.Attempt, err = d.Begin(r) }); fault != nil || err != nil {
		return nil, errors.Join(fault, err)
	}
	s.Async = false // a refused stream keeps no place
	if s.times = (holdTimes{s.TTL()}); s.TTL() < minHoldTTL {
		return nil, door.Invalid(fmt.Sprintf("ttl_ms is %d: want %d or more for a stream", s.Want.TTLMS, minHoldTTL.Milliseconds()))
	}
	s.out = lines{Stream: door.NewStream(w, "application/x-ndjson", s.times.silence()), aside: r.Aside, began: began}
	return s, nil
}

// run takes the lock, holds it, and writes the last line.
func (s *stream) run() error {
	h := s.door.holds.take(s.Req.LeaseID)
	defer s.door.holds.drop(h)
	var err error
	if s.grant, err = s.await(); err != nil {
		return s.refuse(h, err)
	}
	s.finish(s.keep(h))
	return nil
}

// refuse ends a stream without the lock: with a line, if it has written one before.
func (s *stream) refuse(h *hold, err error) error {
	draining := s.R.NewWork()
	switch {
	case s.gone():
		s.giveUpPlace(h)
		return nil
	case !s.out.Open:
		return cmp.Or(draining, err)
	case draining != nil, errors.Is(err, door.ErrRevoked): // the client can continue with the same key and a new token
		s.finish(&ending{event: "moved"})
	default:
		p := s.R.Problem(err)
		s.finish(&ending{event: "refused", code: p.Code, detail: p.Detail})
	}
	return nil
}

// gone reports whether the client has disconnected, or was given up.
func (s *stream) gone() bool { return s.closed || s.R.Context().Err() != nil }

// await waits for the lock, and writes lines about the blocker meanwhile.
func (s *stream) await() (lease.Grant, error) {
	type result struct {
		grant lease.Grant
		err   error
	}
	ctx, cancel := context.WithCancel(s.R.Context())
	defer cancel()
	limit := lease.MS(s.Want.WaitMS)
	blocked, done := make(chan driver.Blocker, 1), make(chan result, 1)
	var changed func(driver.Blocker)
	if limit > 0 {
		changed = func(b driver.Blocker) { door.Replace(blocked, b) }
	}
	go func() {
		var r result
		if fault := s.R.Guard(func() { r.grant, r.err = s.Wait(ctx, limit, changed) }); fault != nil {
			r.err = fault
		}
		done <- r
	}()
	ping := time.NewTicker(s.times.ping())
	defer ping.Stop()
	var err error
	for {
		select {
		case r := <-done:
			return r.grant, r.err
		case b := <-blocked:
			err = s.out.write(s.queued(b))
		case <-ping.C:
			if s.R.Revoked() {
				cancel()
				if r := <-done; r.err == nil {
					return r.grant, nil // keep ends it at once
				}
				return lease.Grant{}, door.ErrRevoked
			}
			if err = s.listening(); err == nil {
				err = s.out.ping(s.out.age(), lockinfo.Never)
			}
		}
		if err != nil {
			s.closed = true
			cancel()
			r := <-done
			return r.grant, r.err
		}
	}
}

func (s *stream) queued(b driver.Blocker) wire.HoldLine {
	line := s.out.line("queued")
	line.Place, line.QueueLength, line.Holders = b.Place, b.Queue, []wire.Blocker{wire.BlockerOf(b)}
	line.PingMS, line.QuietMS = s.times.ping().Milliseconds(), s.times.quiet().Milliseconds()
	return line
}

// errSilent means that nothing that was written has arrived for too long.
var errSilent = errors.New("nothing that was written was acknowledged any more")

// listening returns errSilent if nothing that was written has arrived for too long. Call it
// before each line, so that it judges earlier lines only.
func (s *stream) listening() error {
	now := time.Now()
	if arrives, known := s.arrivals.Look(); arrives || !known {
		s.heard = now
	}
	if now.Sub(s.heard) >= s.times.silence() {
		return errSilent
	}
	return nil
}

// An ending is the content of the last line; nil for none.
type ending struct {
	event  string // of the last line
	code   string
	cause  string
	detail string
}

// lossOf returns the ending of a lease that has ended because of err.
func lossOf(err error) *ending {
	switch {
	case errors.Is(err, holdfast.ErrLeft):
		return &ending{event: "moved"}
	case !errors.Is(err, holdfast.ErrLost):
		return &ending{event: "released"}
	}
	return &ending{event: "lost", code: codes.Of(err).Name, cause: holdfast.LossCause(err), detail: err.Error()}
}

// lastPatience bounds the write of the last line, which need not arrive.
const lastPatience = time.Second

// finish writes the last line, unless e is nil.
func (s *stream) finish(e *ending) {
	if e == nil {
		return
	}
	line := s.out.line(e.event)
	line.Code, line.Cause, line.Detail = e.code, e.cause, e.detail
	if e.cause == "deadline" && !s.R.Caller.MayAll(caller.Read, "") {
		line.Detail = driver.ErrLost.Error() // without the address of the store; see Told
	}
	if e.code == "lock-held" {
		line.Place, line.QueueLength, line.Holders = s.Blocker.Place, s.Blocker.Queue, []wire.Blocker{wire.BlockerOf(s.Blocker)}
	}
	s.out.Patience = min(s.out.Patience, lastPatience)
	_ = s.out.write(line) // the client may be gone
}
