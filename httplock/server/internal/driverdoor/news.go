package driverdoor

import (
	"net/http"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/internal/form"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
)

// mostLosses bounds the losses that are kept for a slow stream (INVARIANT I11).
const mostLosses = 4096

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
				s.backlog.add(form.Message{Loss: form.LossOf(l)}, mostLosses, nil) // a renewal finds the others
			}
		})
		defer stop()
	}
	out := newLines(w, lineLimit)
	out.add(form.Message{}) // the stream is open
	d.follow(out, r, s.backlog, form.Message{}, replaced)
	return nil
}

// attach makes a new stream the stream of its session. The stream must end when the channel is
// closed.
func (d *desk) attach(key sessionKey) (*session, chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.sessionLocked(key)
	if s.stream != nil {
		close(s.stream)
	}
	s.stream = make(chan struct{})
	door.Replace(s.backlog.wake, struct{}{}) // the old stream may have taken the signal
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
