//go:build unix

package runner

import (
	"encoding/json"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/linewriter"
	"github.com/holdfast-locks/holdfast/wire"
)

// A Status reports events to a program that started us, one JSON object on a
// line each. A nil Status reports nothing.
type Status struct {
	lines *linewriter.Writer
}

// OpenStatus reports the events of a job's locks to an open file descriptor, which the command does not inherit. The caller must Close it.
func OpenStatus(fd int) (*Status, error) {
	if fd < 3 {
		return nil, fmt.Errorf("file descriptor %d: want 3 or more", fd)
	}
	// A descriptor that is closed on exec was not handed to this program: it
	// is one that the program has opened for its own use.
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC != 0 {
		return nil, fmt.Errorf("file descriptor %d is not open", fd)
	}
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err != nil || flags&unix.O_ACCMODE == unix.O_RDONLY {
		return nil, fmt.Errorf("file descriptor %d is not open for writing", fd)
	}
	unix.CloseOnExec(fd)
	return &Status{linewriter.New(os.NewFile(uintptr(fd), "status"))}, nil
}

// Close waits a moment until the events are written.
func (s *Status) Close() {
	if s != nil {
		s.lines.Close()
	}
}

// Waiting reports that somebody else has the lock called name.
func (s *Status) Waiting(name, reason string) {
	s.write(wire.Event{Event: "waiting", Name: name, Reason: reason})
}

func (s *Status) acquired(h hold) { s.writeAll(h, "acquired") }
func (s *Status) released(h hold) { s.writeAll(h, "released") }

// lost reports the lease that is over, or else that all are about to be.
func (s *Status) lost(h hold, why error) {
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

// exited reports the end of the command, of which there is one however many
// locks it has.
func (s *Status) exited(h hold, status int) {
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
