package leasedoor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/peer"
	"github.com/holdfast-locks/holdfast/wire"
	"github.com/holdfast-locks/holdfast/wire/codes"
)

// A stream is one answer to POST /v1/leases?hold=1. Its goroutine is that of the handler,
// and all that it does stands in docs/hold-stream.md: what it writes when, and what each
// way to end does to the lease.
type stream struct {
	*attempt
	times  holdTimes
	form   holdForm
	grant  grant
	out    lines
	told   chan *ending // what ends the stream from outside; holds one
	began  bool         // the line is written that says which lease it is
	closed bool         // the client is given up: a line could not be written

	arrivals *peer.Arrivals
	heard    time.Time // when everything that was written before had arrived

	full   time.Duration // the most that remained of the lease
	asking atomic.Bool   // the store is asked about the lease, beside the stream
	asked  time.Time     // when it was, if the client renews
}

// A holdForm is what the query of a request says.
type holdForm struct {
	direct       bool // the end of the connection is that of the client
	clientRenews bool
}

// onClose says what the end of the connection does to the lease.
func (f holdForm) onClose() string {
	switch {
	case f.direct:
		return "release"
	case f.clientRenews:
		return "run_out"
	}
	return "free_later"
}

func (f holdForm) renew() string {
	if f.clientRenews {
		return "client"
	}
	return "server"
}

// lease answers POST /v1/leases.
func (d *leases) lease(w http.ResponseWriter, r *door.Request) error {
	if wantsHold(r) {
		return d.hold(w, r)
	}
	return d.acquire(w, r)
}

// wantsHold reports whether a request for a lease is for a stream that holds it.
func wantsHold(r *door.Request) bool { return r.URL.Query().Has("hold") }

// holdFormOf reads the query of a request.
func holdFormOf(r *door.Request) (f holdForm, err error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return f, door.Invalid("the query is not one: " + err.Error())
	}
	for _, p := range []struct {
		name string
		want []string
	}{{"hold", []string{"1"}}, {"direct", []string{"0", "1"}}, {"renew", []string{"server", "client"}}} {
		if values, there := q[p.name]; there && (len(values) != 1 || !slices.Contains(p.want, values[0])) {
			return f, door.Invalid(fmt.Sprintf("%s is %q in the query: want one of %q", p.name, values, p.want))
		}
		delete(q, p.name)
	}
	for name := range q {
		return f, door.Invalid(fmt.Sprintf("there is no %q in the query of a stream: hold, direct and renew are", name))
	}
	f.clientRenews = r.URL.Query().Get("renew") == "client"
	switch r.URL.Query().Get("direct") {
	case "":
		f.direct = r.Caller.Direct && !forwarded(r.Header)
	case "1":
		f.direct = true
	}
	return f, nil
}

// forwarded reports whether a proxy says that it has sent the request on: one on this
// host is a loopback peer, and its connection is not that of the client.
func forwarded(h http.Header) bool {
	for _, name := range []string{"Forwarded", "Via", "X-Forwarded-For", "X-Real-Ip"} {
		if len(h.Values(name)) > 0 {
			return true
		}
	}
	return false
}

// hold answers POST /v1/leases?hold=1.
//
// What lasts as long as the lock is held is this goroutine. Most of what a stream costs is
// its stack, which shrinks from 16 KiB to 8 only if less than 4 are in use: so what stays
// on it is small, and what needs much of it runs aside.
func (d *leases) hold(w http.ResponseWriter, r *door.Request) error {
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

// newStream returns the stream that a request asks for.
func (d *leases) newStream(w http.ResponseWriter, r *door.Request) (s *stream, err error) {
	began := time.Now()
	s = &stream{heard: began, told: make(chan *ending, 1), arrivals: peer.ArrivalsOf(peer.Of(r.Context()))}
	if s.form, err = holdFormOf(r); err != nil {
		return nil, err
	}
	if fault := r.Aside(func() { s.attempt, err = d.begin(r) }); fault != nil || err != nil {
		return nil, errors.Join(fault, err)
	}
	if s.times = (holdTimes{s.req.TTL}); s.req.TTL < minHoldTTL {
		return nil, door.Invalid(fmt.Sprintf("ttl_ms is %d: want %d or more for a stream", s.want.TTLMS, minHoldTTL.Milliseconds()))
	}
	s.out = lines{w: w, aside: r.Aside, control: http.NewResponseController(w), began: began, patience: s.times.silence()}
	return s, nil
}

// run takes the lock, holds it, and says how that ended.
func (s *stream) run() error {
	h := s.door.holds.take(s.req.LeaseID)
	defer s.door.holds.drop(h)
	if err := s.take(); err != nil {
		return s.refuse(h, err)
	}
	s.say(s.keep(h))
	return nil
}

// take waits for the lock.
func (s *stream) take() (err error) {
	s.grant, err = s.await()
	return err
}

// refuse says why there is no lock: by a line, if there was one before.
func (s *stream) refuse(h *hold, err error) error {
	switch queued := (*queuedError)(nil); {
	case s.gone():
		s.giveUpPlace(h)
		return nil
	case s.r.NewWork() != nil:
		err = s.r.NewWork()
		if s.out.open {
			s.say(&ending{event: "moved"})
			return nil
		}
	case errors.As(err, &queued):
		// Its place lasts for a while: the same key keeps it.
		err = s.stillHeld()
	}
	if s.out.open {
		refusal := door.RefusalOf(err)
		s.say(&ending{event: "refused", code: refusal.Code, detail: refusal.Detail})
		return nil
	}
	return err
}

// stillHeld is the refusal of a wait that is over.
func (s *stream) stillHeld() error {
	return &door.Refusal{
		Status: http.StatusConflict, Code: "lock-held", Again: time.Second,
		Detail: s.about(s.blocker.Possession()),
		More: func(p *wire.Problem) {
			p.Holders, p.QueueLength = []wire.Blocker{wire.BlockerOf(s.blocker)}, &s.blocker.Queue
		},
	}
}

// gone reports whether the client has hung up, or has stopped to listen.
func (s *stream) gone() bool { return s.closed || s.r.Context().Err() != nil }

// await waits for the lock, and says meanwhile who is in the way.
func (s *stream) await() (grant, error) {
	type result struct {
		grant grant
		err   error
	}
	ctx, cancel := context.WithCancel(s.r.Context())
	defer cancel()
	limit := ms(s.want.WaitMS)
	blocked, done := make(chan driver.Blocker, 1), make(chan result, 1)
	var told func(driver.Blocker)
	if limit > 0 {
		told = func(b driver.Blocker) { replace(blocked, b) }
	}
	go func() {
		var r result
		if fault := s.r.Guard(func() { r.grant, r.err = s.wait(ctx, limit, told) }); fault != nil {
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
			if err = s.listening(); err == nil {
				err = s.out.ping(s.out.age(), driver.Never)
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

// replace puts v into c, which holds one, in place of what nobody has taken.
func replace[T any](c chan T, v T) {
	for {
		select {
		case c <- v:
			return
		default:
		}
		select {
		case <-c:
		default:
		}
	}
}

// errSilent says that what was written has not arrived for too long.
var errSilent = errors.New("nothing that was written was acknowledged any more")

// listening returns errSilent if nothing that was written has arrived for too long. It is
// called before each line, so that what it waits for is what was written at s.heard.
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

// An ending is how a stream ends, and what is said of it; nil if nobody hears it.
type ending struct {
	event  string // of the last line
	code   string
	cause  string
	detail string
}

// lossOf returns the ending of a lease that is over because of err.
func lossOf(err error) *ending {
	switch {
	case errors.Is(err, holdfast.ErrLeft):
		return &ending{event: "moved"}
	case !errors.Is(err, holdfast.ErrLost):
		return &ending{event: "released"}
	}
	return &ending{event: "lost", code: codes.Of(err).Name, cause: holdfast.LossCause(err), detail: err.Error()}
}

// lastPatience is for the last line, which need not arrive.
const lastPatience = time.Second

// say writes the last line, if there is one.
func (s *stream) say(e *ending) {
	if e == nil {
		return
	}
	line := s.out.line(e.event)
	line.Code, line.Cause, line.Detail = e.code, e.cause, e.detail
	if e.code == "lock-held" {
		line.Place, line.QueueLength, line.Holders = s.blocker.Place, s.blocker.Queue, []wire.Blocker{wire.BlockerOf(s.blocker)}
	}
	s.out.patience = min(s.out.patience, lastPatience)
	_ = s.out.write(line) // whoever is gone needs none
}
