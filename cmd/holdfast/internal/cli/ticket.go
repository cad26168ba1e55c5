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
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/keeper"
	"github.com/holdfast-locks/holdfast/driver"
)

// box returns the directory with the tickets of this user.
func (a *app) box() (keeper.Box, error) {
	dir, err := a.asked.StateDir()
	if err != nil {
		return "", exit.With(exit.Config, err)
	}
	return keeper.Box(filepath.Join(dir, "tickets")), nil
}

// noted is an engine that writes a ticket before each acquire request.
type noted struct {
	driver.Forward
	box    keeper.Box
	ticket *keeper.Ticket // the latest; LeaseID is set here
}

// Acquire writes the ticket of a lease ID once: a repeated request has the same ID.
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

// ticketsOf returns the tickets for a name, and the URL of their store. It leaves out those
// of commands that are still acquiring.
func (a *app) ticketsOf(kind, name string) (box keeper.Box, on string, found []keeper.Ticket, err error) {
	choice, err := a.choose()
	if err != nil {
		return "", "", nil, err
	}
	if box, err = a.box(); err != nil {
		return "", "", nil, err
	}
	found, err = box.Get(kind, choice.Public(), name)
	if err != nil && !errors.Is(err, keeper.ErrNone) {
		return box, choice.Public(), nil, exit.With(exit.Config, err)
	}
	found = slices.DeleteFunc(found, func(t keeper.Ticket) bool { return t.Token == 0 && lives(t.PID) })
	if len(found) == 0 {
		return box, choice.Public(), nil, keeper.ErrNone
	}
	return box, choice.Public(), found, nil
}

// lives reports whether a process of that number exists. If another process has the number
// now, the ticket stays for a while.
func lives(pid int) bool {
	err := syscall.Kill(pid, 0)
	return pid > 0 && (err == nil || errors.Is(err, syscall.EPERM))
}

// giveBackTries is how often a release request is sent, each with giveBackTime to answer.
const (
	giveBackTries = 3
	giveBackTime  = 5 * time.Second
)

// giveBack ends the lease of a ticket, and cancels its acquire request if that is still in
// flight. INVARIANT I5.
func (a *app) giveBack(ctx context.Context, t keeper.Ticket) error {
	engine, _, err := a.session().open(ctx)
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
