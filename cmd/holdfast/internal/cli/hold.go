//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/keeper"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/runner"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/show"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

func (a *app) holdCommand() *cobra.Command {
	var f jobFlags
	cmd := &cobra.Command{
		Use:   "hold NAME --for DURATION --reason TEXT",
		Short: "Hold a lock yourself, without a process: for a freeze, or a machine under repair",
		Long: `Hold takes the lock NAME for you, without a process. It ends after DURATION, with holdfast
release NAME by the same user on this host, or with holdfast break NAME by anyone. Others see
that a person holds it, until when, and why. DURATION may be up to 30 days on most stores, and
5 minutes on a quorum. A reboot ends all locks in a file.

The exit status is 0, or
   75  another client, or you, have the lock
   78  DURATION is too long for the store; with --extend: you do not hold NAME
   79  with --extend: your hold has ended, or was broken
Others: holdfast --help.`,
		Example: `  holdfast hold deploy --for 48h --reason 'freeze: release 1.4'
  holdfast hold deploy --extend --for 24h`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return f.hushed(a.hold(&f, args)) },
	}
	f.define(cmd, "for extend no-wait wait exclusive shared slots permits reason quiet verbose label")
	return a.withJSON(cmd)
}

func (a *app) hold(f *jobFlags, args []string) error {
	switch {
	case len(args) != 1:
		return usage("hold: want one NAME, and flags: holdfast hold NAME --for 2h --reason TEXT")
	case !f.cmd.Flags().Changed("for"):
		return usage("hold: no time given: want --for DURATION, such as 2h or 3d")
	case strings.TrimSpace(f.opts.Reason) == "" && !f.extend:
		return usage("hold: no reason given: want --reason TEXT, which others see")
	}
	ctx := f.cmd.Context()
	job, err := a.jobOf(f, args[0])
	if err != nil {
		return err
	}
	job.Opts.TTL, job.Opts.KeepAlive = f.length, holdfast.KeepAliveOff
	if err := a.outlives("hold"); err != nil {
		return err
	}
	box, on, found, err := a.ticketsOf(keeper.HoldTicket, args[0])
	switch {
	case err != nil:
		return err
	case f.extend && len(found) == 0:
		return exit.Errorf(exit.Config, "hold %q: you do not hold it on %s", args[0], on)
	case f.extend:
		t := ticket{"hold", found[0]}
		t.Token = max(t.Token, 1)
		if err := t.prolonged(a, ctx, f.length, func(time.Duration) error { return nil }); err != nil {
			return err
		}
		left, _ := t.remaining(a, ctx) // an earlier hold may last longer
		return a.tellHold(t.Ticket, max(f.length, left.Round(time.Second)))
	}
	for _, t := range found {
		if err := a.dropDead(ctx, box, t); err != nil {
			return err
		}
	}
	t := keeper.Ticket{Kind: keeper.HoldTicket, Store: on, Name: args[0], PID: os.Getpid()}
	s := a.session()
	s.holder.Person = true
	s.wrap = func(e driver.Engine) driver.Engine { return noted{driver.Forward{Engine: e}, box, &t} }
	err = s.take(ctx, f, &job, func() error { return a.heldByPerson(ctx, &job, box, &t) })
	if t.Token == 0 && exit.Is(err, exit.Busy, exit.Config) {
		box.Drop(t) // the client has ensured that there is no lease
	}
	return err
}

// heldByPerson takes the lock and leaves it in the store.
func (a *app) heldByPerson(ctx context.Context, job *runner.Job, box keeper.Box, t *keeper.Ticket) error {
	lease, err := job.Acquire(ctx, "hold")
	job.Line.End()
	if err != nil {
		if errors.Is(err, holdfast.ErrInvalid) { // from the store: the arguments were checked
			return &exit.Error{Status: exit.Config, Err: err, Engine: true}
		}
		return err
	}
	t.LeaseID, t.Token = lease.ID(), lease.Token()
	if err := box.Put(*t); err != nil {
		_ = lease.Release(ctx) // the client keeps trying
		return exit.Errorf(exit.Output, "hold %q: its lease ID cannot be kept: %w", t.Name, err)
	}
	if _, err := lease.Leave(); err != nil {
		return exit.With(exit.Lost, err)
	}
	return a.tellHold(*t, job.Opts.TTL)
}

// tellHold prints when the hold ends.
func (a *app) tellHold(t keeper.Ticket, length time.Duration) error {
	return a.answer(leaseView{t.Name, true, length.Milliseconds()}, fmt.Sprintf(
		"%s is held for %s, until %s: holdfast release %s ends that\n", show.Plain(t.Name), short(length), show.Clock(time.Now().Add(length)), quote(t.Name)))
}

// dropDead refuses a second hold of the same name. It cancels a ticket whose lease has
// ended, because its acquire request may still be in flight.
func (a *app) dropDead(ctx context.Context, box keeper.Box, t keeper.Ticket) error {
	left, err := ticket{"hold", t}.remaining(a, ctx)
	switch {
	case err == nil:
		return exit.Errorf(exit.Busy, "hold %q: you hold it already, for another %s: holdfast hold --extend makes that longer, "+
			"holdfast release %s ends it", t.Name, lockinfo.Span(left), quote(t.Name))
	case !exit.Is(err, exit.Lost):
		return err
	}
	if err := a.giveBack(ctx, t); err != nil && !errors.Is(err, holdfast.ErrLost) {
		return exit.FromStore(err)
	}
	box.Drop(t)
	return nil
}

// releaseHold ends a hold of this user.
func (a *app) releaseHold(ctx context.Context, name string) error {
	if err := driver.CheckName(name); err != nil {
		return usage("release: %w", err)
	}
	box, on, found, err := a.ticketsOf(keeper.HoldTicket, name)
	switch {
	case err != nil:
		return err
	case len(found) == 0 && a.getenv("HOLDFAST_NAME") == name:
		return a.release(ctx)
	case len(found) == 0:
		return exit.Errorf(exit.Config, "release %q: you do not hold it on %s: holdfast show prints who does, and holdfast break takes the lock away", name, on)
	}
	held := false
	for _, t := range found {
		err := a.giveBack(ctx, t)
		if err != nil && !errors.Is(err, holdfast.ErrLost) {
			return exit.FromStore(err)
		}
		held = held || err == nil
		box.Drop(t)
	}
	if !held {
		return exit.Errorf(exit.Lost, "release %q: your hold had ended, or was broken", name)
	}
	return nil
}

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
		if n.ticket.LeaseID != "" { // its place was lost, and the client cancels the request
			n.box.Drop(*n.ticket)
		}
		n.ticket.LeaseID = req.LeaseID
		if err := n.box.Put(*n.ticket); err != nil {
			return driver.AcquireReply{}, fmt.Errorf("%w: its lease ID cannot be kept: %w", driver.ErrInvalid, err)
		}
	}
	return n.Forward.Acquire(ctx, req)
}

// ticketsOf returns the tickets for a name, and the URL of their store. It leaves out the tickets
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
	found = slices.DeleteFunc(found, func(t keeper.Ticket) bool { return t.Token == 0 && lives(t.PID) })
	return box, choice.Public(), found, exit.With(exit.Config, err)
}

// lives reports whether a process with that PID exists. If another process has the PID now, the
// ticket stays for a while.
func lives(pid int) bool {
	err := syscall.Kill(pid, 0)
	return pid > 0 && (err == nil || errors.Is(err, syscall.EPERM))
}

// giveBackTries is how often a release request is sent. Each may take giveBackTime.
const (
	giveBackTries = 3
	giveBackTime  = 5 * time.Second
)

// giveBack ends the lease of a ticket, and cancels its acquire request if that is still in
// flight. INVARIANT I5.
func (a *app) giveBack(ctx context.Context, t keeper.Ticket) error {
	engine, err := a.session().open(ctx)
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
