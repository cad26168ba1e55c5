//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/render"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/runner"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/store"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/ticket"
	"github.com/holdfast-locks/holdfast/driver"
)

// holdFlags are the flags of hold as they were given.
type holdFlags struct {
	runFlags
	length time.Duration
	extend bool
}

func (a *app) holdCommand() *cobra.Command {
	var f holdFlags
	cmd := &cobra.Command{
		Use:   "hold NAME --for DURATION --reason TEXT",
		Short: "Hold a lock yourself, without a process: a freeze, a machine under repair",
		Long: `Hold takes the lock NAME for you, for all of DURATION: no process renews it, and
nothing gives it back before unless you do, with holdfast release NAME, as the same
user on this host. Others take it away with holdfast break NAME.

Others see that a person holds it, until when and why. A store may bound DURATION:
30 days on most, 5 minutes on a quorum.

Hold again is refused, with status 75. With --extend it makes your own hold last for
DURATION from now, at least.

The exit status is 0, or
  64  wrong arguments                  75  somebody has the lock, perhaps you
  69  the store cannot be reached      77  the store refuses our rights
  74  standard output cannot be written
  78  the store cannot do this, or DURATION is too long for it; --extend: you do
      not hold NAME
  79  --extend: your hold has ended, or was broken`,
		Example: `  holdfast hold deploy --for 48h --reason 'freeze: release 1.4'
  holdfast hold deploy --extend --for 24h`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return f.hushed(a.hold(cmd, &f, args)) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	durationVar(flags, &f.length, "for", 0, "hold it for `DURATION`; required")
	flags.StringVar(&f.reason, "reason", "", "`TEXT` that says why, for others; required")
	flags.BoolVar(&f.extend, "extend", false, "make your own hold last longer")
	f.defineWait(flags)
	f.defineMode(flags)
	flags.IntVar(&f.slots, "slots", 0, "hold one of `N` slots; all who use NAME must say the same")
	flags.IntVar(&f.permits, "permits", 1, "hold `K` of the slots; only with --slots")
	flags.StringArrayVar(&f.labels, "label", nil, "`KEY=VALUE` shown to others; may be repeated")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no messages about the lock")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "tell what happens to the lock")
	return a.withJSON(cmd)
}

func (a *app) hold(cmd *cobra.Command, f *holdFlags, args []string) error {
	job, err := f.job(cmd, args)
	if err != nil {
		return err
	}
	if err := a.outlives("hold"); err != nil {
		return err
	}
	box, on, found, err := a.ticketsOf(ticket.Hold, args[0])
	missing := errors.Is(err, ticket.ErrNone)
	switch {
	case err != nil && !missing:
		return err
	case f.extend && missing:
		return exit.With(exit.Config, fmt.Errorf("hold %q: you do not hold it on %s", args[0], on))
	case f.extend:
		return a.prolong(cmd.Context(), found[0], f.length)
	}
	for _, t := range found {
		if err := a.dropDead(cmd.Context(), box, t); err != nil {
			return err
		}
	}
	o := job.Opts
	t := ticket.Ticket{Kind: ticket.Hold, Store: on, Name: args[0], Mode: o.Mode, Limit: o.Limit, Permits: o.Permits, PID: os.Getpid()}
	a.holder.Person = true
	a.note(box, &t)
	err = a.take(cmd.Context(), &f.jobFlags, &job, func() error { return a.heldByPerson(cmd.Context(), &job, box, &t) })
	if e := (*exit.Error)(nil); t.Token == 0 && errors.As(err, &e) && (e.Status == exit.Busy || e.Status == exit.Config) {
		box.Drop(t) // the client has made sure that there is no lease
	}
	return err
}

// job checks the arguments of hold. Nothing has happened yet.
func (f *holdFlags) job(cmd *cobra.Command, args []string) (j runner.Job, err error) {
	switch {
	case len(args) != 1:
		return j, usage("hold: want one NAME")
	case f.length < holdfast.MinTTL || f.length > holdfast.MaxTTL:
		return j, usage("hold: --for %s: want up to %s, and more than nothing: how long you hold the lock", f.length, holdfast.MaxTTL)
	case strings.TrimSpace(f.reason) == "" && !f.extend:
		return j, usage("hold: no reason given: say with --reason why you hold the lock")
	}
	if err := driver.CheckName(args[0]); err != nil {
		return j, usage("hold: %w", err)
	}
	j.Names, f.busy, f.ttl = args, exit.Busy, f.length
	err = f.acquisition(cmd, &j)
	j.Opts.KeepAlive = holdfast.KeepAliveOff
	return j, err
}

// heldByPerson takes the lock and leaves it in the store.
func (a *app) heldByPerson(ctx context.Context, job *runner.Job, box ticket.Box, t *ticket.Ticket) error {
	lease, err := job.Acquire(ctx, "hold")
	if err != nil {
		if errors.Is(err, holdfast.ErrInvalid) { // of the store: the arguments were checked
			return exit.With(exit.Config, err)
		}
		return err
	}
	t.LeaseID, t.Token = lease.ID(), lease.Token()
	if err := box.Put(*t); err != nil {
		_ = lease.Release(ctx) // the client goes on trying
		return exit.With(exit.Output, fmt.Errorf("hold %q: its lease ID cannot be kept: %w", t.Name, err))
	}
	if err := lease.Leave(); err != nil {
		return exit.With(exit.Lost, err)
	}
	return a.tellHold(*t, job.Opts.TTL)
}

// tellHold prints until when the lock is held.
func (a *app) tellHold(t ticket.Ticket, length time.Duration) error {
	return a.answer(leaseView{t.Name, true, length.Milliseconds()}, fmt.Sprintf(
		"%s is held for %s, until %s: holdfast release gives it back\n", render.Plain(t.Name), length, time.Now().Add(length).Format("Mon 2 Jan 15:04:05")))
}

// dropDead refuses a second hold of the same name. A ticket whose lease is over is
// cancelled first, because its acquire may still be under way.
func (a *app) dropDead(ctx context.Context, box ticket.Box, t ticket.Ticket) error {
	p := possession{verb: "hold", name: t.Name, leaseID: t.LeaseID}
	err := a.withClient(ctx, nil, func(c *holdfast.Client, _ store.Choice) error {
		h, err := p.find(ctx, c)
		switch {
		case errors.Is(err, holdfast.ErrLost):
			return nil
		case err != nil:
			return exit.FromStore(err)
		}
		return exit.With(exit.Busy, fmt.Errorf("hold %q: you hold it already, for another %s: holdfast hold --extend makes that longer, "+
			"holdfast release %s gives it back", t.Name, render.Short(h.ExpiresIn), quote(t.Name)))
	})
	if err != nil {
		return err
	}
	if err := a.giveBack(ctx, t); err != nil && !errors.Is(err, holdfast.ErrLost) {
		return exit.FromStore(err)
	}
	box.Drop(t)
	return nil
}

// prolong makes a hold last longer.
func (a *app) prolong(ctx context.Context, t ticket.Ticket, length time.Duration) error {
	p := possession{verb: "hold", name: t.Name, leaseID: t.LeaseID, token: max(t.Token, 1)}
	return p.inStore(a, ctx, func(ctx context.Context, c *holdfast.Client) error {
		l, err := p.adopt(ctx, c, length)
		if err != nil {
			return err
		}
		if err := l.Leave(); err != nil {
			return err
		}
		return a.tellHold(t, length)
	})
}

// releaseHold gives back what hold has taken.
func (a *app) releaseHold(ctx context.Context, name string) error {
	if err := driver.CheckName(name); err != nil {
		return usage("release: %w", err)
	}
	box, on, found, err := a.ticketsOf(ticket.Hold, name)
	switch {
	case errors.Is(err, ticket.ErrNone) && a.asked.Getenv("HOLDFAST_NAME") == name:
		return a.release(ctx)
	case errors.Is(err, ticket.ErrNone):
		return exit.With(exit.Config, fmt.Errorf("release %q: you do not hold it on %s: holdfast show tells who does, and holdfast break takes it away", name, on))
	case err != nil:
		return err
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
		return exit.With(exit.Lost, fmt.Errorf("release %q: your hold has ended before, or was broken", name))
	}
	return nil
}
