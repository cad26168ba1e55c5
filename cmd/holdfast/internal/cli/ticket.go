//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/ticket"
	"github.com/holdfast-locks/holdfast/driver"
)

// box is where tickets of this user are.
func (a *app) box() (ticket.Box, error) {
	dir, err := a.asked.StateDir()
	if err != nil {
		return "", exit.With(exit.Config, err)
	}
	return ticket.Box(filepath.Join(dir, "tickets")), nil
}

// noted is an engine whose acquires leave a ticket before they are sent.
type noted struct {
	driver.Forward
	box    ticket.Box
	ticket *ticket.Ticket // the latest; LeaseID is set here
}

// Acquire writes the ticket of a lease ID once: a repeat has the same one.
func (n noted) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	if n.ticket.LeaseID != req.LeaseID {
		if n.ticket.LeaseID != "" { // its place was lost, and the client cancels it
			n.box.Drop(*n.ticket)
		}
		n.ticket.LeaseID = req.LeaseID
		if err := n.box.Put(*n.ticket); err != nil {
			return driver.AcquireReply{}, fmt.Errorf("%w: its lease ID cannot be kept: %w", driver.ErrInvalid, err)
		}
	}
	return n.Forward.Acquire(ctx, req)
}

// note has the acquires of this program leave a ticket.
func (a *app) note(box ticket.Box, t *ticket.Ticket) {
	a.wrap = func(e driver.Engine) driver.Engine { return noted{driver.Forward{Engine: e}, box, t} }
}

// ticketsOf returns the tickets for a name on the store that counts, which it names.
// Those of commands that still ask for their lease are theirs.
func (a *app) ticketsOf(kind, name string) (box ticket.Box, on string, found []ticket.Ticket, err error) {
	choice, err := a.choose()
	if err != nil {
		return "", "", nil, err
	}
	if box, err = a.box(); err != nil {
		return "", "", nil, err
	}
	found, err = box.Get(kind, choice.Public(), name)
	if err != nil && !errors.Is(err, ticket.ErrNone) {
		return box, choice.Public(), nil, exit.With(exit.Config, err)
	}
	found = slices.DeleteFunc(found, func(t ticket.Ticket) bool { return t.Token == 0 && lives(t.PID) })
	if len(found) == 0 {
		return box, choice.Public(), nil, ticket.ErrNone
	}
	return box, choice.Public(), found, nil
}

// lives reports whether there is a process of that number. If it is another's by now
// its ticket stays for a while.
func lives(pid int) bool {
	err := syscall.Kill(pid, 0)
	return pid > 0 && (err == nil || errors.Is(err, syscall.EPERM))
}

// giveBackTries is how often a request to give a lease back is sent, each within
// giveBackTime.
const (
	giveBackTries = 3
	giveBackTime  = 5 * time.Second
)

// giveBack ends the lease of a ticket, and cancels the acquire if that is still under
// way. INVARIANT I5.
func (a *app) giveBack(ctx context.Context, t ticket.Ticket) error {
	engine, _, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer engine.Close()
	for range giveBackTries {
		one, cancel := context.WithTimeout(ctx, giveBackTime)
		err = engine.Release(one, driver.ReleaseRequest{Name: t.Name, LeaseID: t.LeaseID, Cancel: true})
		cancel()
		if err == nil || driver.Permanent(err) || errors.Is(err, driver.ErrLost) {
			break
		}
	}
	return err
}
