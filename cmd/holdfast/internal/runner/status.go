//go:build unix

package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/show"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/wire"
)

// A Status reports events and the result, one JSON object a line, to the program that started
// this one. A nil Status reports nothing.
type Status struct {
	lines *show.Writer
	began time.Time

	mu    sync.Mutex  // guards the rest
	since time.Time   // when the lock was acquired; zero if it was not
	over  time.Time   // when it was released or lost; zero if it was not
	token *wire.Token // of the first lease
	ran   bool        // the command has ended
}

// OpenStatus returns a Status that writes to an open file descriptor, which the command does not
// inherit. The caller must call End.
func OpenStatus(fd int) (*Status, error) {
	if fd < 3 {
		return nil, fmt.Errorf("file descriptor %d: want 3 or more", fd)
	}
	// A close-on-exec descriptor was not passed to this program: the program has opened it for
	// its own use.
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC != 0 {
		return nil, fmt.Errorf("file descriptor %d is not open", fd)
	}
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err != nil || flags&unix.O_ACCMODE == unix.O_RDONLY {
		return nil, fmt.Errorf("file descriptor %d is not open for writing", fd)
	}
	unix.CloseOnExec(fd)
	return &Status{lines: show.NewWriter(os.NewFile(uintptr(fd), "status"), nil), began: time.Now()}, nil
}

// End reports the result of a job for these names. It waits a moment until everything is written.
func (s *Status) End(names []string, err error) {
	if s == nil {
		return
	}
	e := &exit.Error{}
	if err != nil && !errors.As(err, &e) { // from parsing the flags
		e = &exit.Error{Status: exit.Usage, Err: err}
	}
	s.write(s.result(names, e))
	s.lines.Close(e.EndBy)
}

// result returns the last event.
func (s *Status) result(names []string, e *exit.Error) wire.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	waited, held := now.Sub(s.began), time.Duration(0)
	if !s.since.IsZero() {
		if s.over.IsZero() {
			s.over = now
		}
		waited, held = s.since.Sub(s.began), s.over.Sub(s.since)
	}
	v := wire.Event{
		Event: "result", Token: s.token, Outcome: outcome(e, s.ran), Status: &e.Status,
		WaitedMS: wire.Left(waited), HeldMS: wire.Left(held), Reason: e.Error(),
	}
	if len(names) > 0 {
		v.Name = names[0]
	}
	return v
}

// outcome returns the word for how the program ended. The status alone is not enough: a command
// may end with any status.
func outcome(e *exit.Error, ran bool) string {
	words := map[int]string{
		exit.Lost: "lost", exit.MaxHold: "max_hold", exit.Busy: "busy", exit.Unavailable: "unavailable",
		exit.NotPermitted: "not_permitted", exit.Config: "config", exit.Usage: "usage",
		exit.NotExecutable: "not_started", exit.NotFound: "not_started", exit.TooLong: "output", exit.Output: "output",
	}
	switch {
	case ran && e.Err == nil:
		return "exited"
	case errors.Is(e, holdfast.ErrHeld), errors.Is(e, holdfast.ErrInProgress): // with -E it has any status
		return "busy"
	case e.Status == exit.OK:
		return "replayed"
	case e.Status > exit.Signal(0):
		return "signalled"
	}
	return words[e.Status]
}

// Waiting reports the state of the wait; it is for holdfast.AcquireOptions.OnWait.
func (s *Status) Waiting(w holdfast.WaitState) {
	e := wire.Event{Event: "waiting", Name: w.Name, Place: w.Place, QueueLength: w.Queue, WaitedMS: wire.Left(w.Waited)}
	held := &holdfast.HeldError{Holder: w.Holder, Since: w.Since, ExpiresIn: w.ExpiresIn, Released: w.Released, Foreign: w.Foreign}
	e.Reason = held.Error()
	if w.Released || w.Foreign || w.ExpiresIn != 0 {
		by := wire.BlockerOf(driver.Blocker{Holder: w.Holder, Since: w.Since, ExpiresIn: w.ExpiresIn, Released: w.Released, Foreign: w.Foreign})
		e.Holder = &by
	}
	if w.Outage != nil {
		e.Outage, e.Reason = w.Outage.Error(), w.Outage.Error()
	}
	s.write(e)
}

func (s *Status) acquired(h hold) {
	s.note(func() {
		token := wire.TokenOf(h.first().Token())
		s.since, s.token = time.Now(), &token
	})
	s.writeAll(h, "acquired")
}

func (s *Status) released(h hold) {
	s.note(func() { s.over = time.Now() })
	s.writeAll(h, "released")
}

// note calls change, which updates what the result reports.
func (s *Status) note(change func()) {
	if s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		change()
	}
}

// lost reports the lease that has ended, or all leases if none has ended yet.
func (s *Status) lost(h hold, why error) {
	s.note(func() { s.over = time.Now() })
	leases := h.leases
	if l, _ := h.lost(); l != nil {
		leases = []*holdfast.Lease{l}
	}
	for _, l := range leases {
		e := of(l, "lost")
		e.Reason = why.Error()
		s.write(e)
	}
}

// exited reports the end of the command once, however many locks it has.
func (s *Status) exited(h hold, status int) {
	s.note(func() { s.ran = true })
	e := of(h.first(), "exited")
	e.Status = &status
	s.write(e)
}

// writeAll reports an event of each lease.
func (s *Status) writeAll(h hold, name string) {
	for _, l := range h.leases {
		s.write(of(l, name))
	}
}

func of(l *holdfast.Lease, name string) wire.Event {
	token := wire.TokenOf(l.Token())
	return wire.Event{Event: name, Name: l.Name(), LeaseID: string(l.ID()), Token: &token}
}

// write reports e, without waiting for the reader.
func (s *Status) write(e wire.Event) {
	if s == nil {
		return
	}
	line, err := json.Marshal(e)
	if err == nil {
		s.lines.Put(string(line) + "\n")
	}
}
