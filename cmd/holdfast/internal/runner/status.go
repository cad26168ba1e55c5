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
	name  string
	lines *linewriter.Writer
}

// OpenStatus reports the events of the lock called name to an open file
// descriptor, which the command does not inherit. The caller must Close it.
func OpenStatus(fd int, name string) (*Status, error) {
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
	return &Status{name, linewriter.New(os.NewFile(uintptr(fd), "status"))}, nil
}

// Close waits a moment until the events are written.
func (s *Status) Close() {
	if s != nil {
		s.lines.Close()
	}
}

// Waiting reports that somebody else has the lock.
func (s *Status) Waiting(reason string) { s.write(wire.Event{Event: "waiting", Reason: reason}) }

func (s *Status) acquired(l *holdfast.Lease) { s.write(of(l, "acquired")) }
func (s *Status) released(l *holdfast.Lease) { s.write(of(l, "released")) }

func (s *Status) lost(l *holdfast.Lease, why error) {
	e := of(l, "lost")
	e.Reason = why.Error()
	s.write(e)
}

func (s *Status) exited(l *holdfast.Lease, status int) {
	e := of(l, "exited")
	e.Status = &status
	s.write(e)
}

func of(l *holdfast.Lease, name string) wire.Event {
	token := wire.TokenOf(l.Token())
	return wire.Event{Event: name, LeaseID: string(l.ID()), Token: &token}
}

// write reports e, without waiting for the reader.
func (s *Status) write(e wire.Event) {
	if s == nil {
		return
	}
	e.Name = s.name
	line, err := json.Marshal(e)
	if err == nil {
		s.lines.Put(string(line) + "\n")
	}
}
