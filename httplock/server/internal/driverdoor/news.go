package driverdoor

import (
	"cmp"
	"net/http"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/internal/form"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
)

const (
	// pingEach is how often a stream sends an empty line. Clients take a stream for broken
	// after three times as long.
	pingEach = form.Silence / 3

	// lineLimit is how long a client may take to receive a line.
	lineLimit = 15 * time.Second
)

// stream sends a client its notices and losses. A new stream of the client ends the old one.
func (d *desk) stream(w http.ResponseWriter, r *door.Request) error {
	leave, err := mayFollow(r)
	if err != nil {
		return err
	}
	defer leave()
	key, ok := clientOf(r)
	if !ok {
		return door.Invalid(form.Client + ": want 32 hexadecimal digits in lower case, drawn by each client")
	}
	s, replaced := d.attach(key)
	defer d.detach(s, replaced)
	if teller := d.house.Features.LossTeller; teller != nil {
		// A loss goes to every client that may have held the lease.
		stop := teller.OnLoss(func(l driver.Loss) {
			if r.Caller.May(caller.Acquire, l.Name) || r.Caller.May(caller.Once, l.Name) {
				s.lose(l)
			}
		})
		defer stop()
	}
	out := newLines(w, lineLimit)
	out.write(form.Message{}) // the stream is open
	ping := time.NewTicker(pingEach)
	defer ping.Stop()
	for out.sent() {
		select {
		case <-s.wake:
			for _, m := range d.take(s) {
				out.write(m)
			}
		case <-ping.C:
			if r.Revoked() {
				return nil
			}
			out.write(form.Message{})
		case <-d.house.Draining: // the client opens one at another server
			return nil
		case <-replaced:
			return nil
		case <-d.closed:
			return nil
		case <-r.Context().Done():
			return nil
		}
	}
	return nil
}

// attach makes a new stream the stream of its session. It must end when the channel is closed.
func (d *desk) attach(key sessionKey) (*session, chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.sessionLocked(key)
	if s.stream != nil {
		close(s.stream)
	}
	s.stream = make(chan struct{})
	if len(s.notices) > 0 || len(s.losses) > 0 {
		s.wakeLocked() // the old stream may have taken the signal
	}
	return s, s.stream
}

func (d *desk) detach(s *session, stream chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.stream == stream {
		s.stream = nil
		s.leaveLocked()
	}
}

func (d *desk) take(s *session) []form.Message {
	d.mu.Lock()
	defer d.mu.Unlock()
	return s.takeLocked()
}

// mayFollow counts a stream of the caller, until leave is called.
func mayFollow(r *door.Request) (leave func(), err error) {
	var nothing form.Nothing
	if err := cmp.Or(r.Read(&nothing), r.NewWork()); err != nil {
		return nil, err
	}
	r.BodyDone()
	return r.House.Limits.Stream(r.Caller)
}
