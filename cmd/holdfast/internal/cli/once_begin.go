//go:build unix

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/control"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/keep"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/runner"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/store"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/supervise"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/ticket"
	"github.com/holdfast-locks/holdfast/driver"
)

// onceStep carries out "begin KEY", "complete KEY" or "fail KEY".
func (a *app) onceStep(cmd *cobra.Command, f *onceFlags, words []string) error {
	step := words[0]
	if len(words) != 2 {
		return usage("once %s: want one KEY; to run a command under the key %q, put -- before it", step, step)
	}
	a.verb, a.subject = "once "+step, subjectOf(words[1:])
	var wrong error
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if !slices.Contains(append([]string{"store", "store-file"}, steps[step]...), flag.Name) {
			wrong = usage("once %s: --%s is not for this", step, flag.Name)
		}
	})
	if wrong != nil {
		return wrong
	}
	if err := driver.CheckName(words[1]); err != nil {
		return usage("once %s: %w", step, err)
	}
	if err := a.outlives("once " + step); err != nil {
		return err
	}
	switch ctx := cmd.Context(); step {
	case "begin":
		a.defaultTTL(cmd, &f.ttl)
		return a.onceBegin(cmd, f, words[1])
	case "complete":
		value := []byte(f.value)
		if !cmd.Flags().Changed("value") {
			var err error
			if value, err = readInput(cmd, holdfast.MaxOnceResult); err != nil {
				return usage("once complete: %w", err)
			}
		}
		return a.onceEnd(ctx, words[1], control.Request{Do: control.Complete, Value: value})
	default:
		return a.onceEnd(ctx, words[1], control.Request{Do: control.Fail})
	}
}

// onceBegin prints do, done or busy. What it prints is the whole of the answer: a
// script that sees nothing, because this process was killed, does nothing.
func (a *app) onceBegin(cmd *cobra.Command, f *onceFlags, key string) error {
	script, err := scriptOf(cmd, "once begin", f.pid)
	if err != nil {
		return err
	}
	job := runner.Job{Names: []string{key}}
	if err := f.waiting(cmd, &job); err != nil {
		return err
	}
	if f.ttl < runner.MinTTL {
		return usage("once begin: --ttl %s: want at least %s", f.ttl, runner.MinTTL)
	}
	job.Opts.MaxHold = f.maxHold
	a.holder.User, a.holder.Host = userAndHost()
	if script != nil {
		a.holder.PID, a.holder.Program = script.PID, supervise.ProgramOf(script.PID)
	}
	job.Busy = exit.Busy
	return f.hushed(a.take(cmd.Context(), &f.jobFlags, &job, func() error { return a.beginRun(cmd.Context(), f, &job, script) }))
}

// beginRun begins the work, and leaves its lease to a keeper, or in the store.
func (a *app) beginRun(ctx context.Context, f *onceFlags, job *runner.Job, script *keep.Script) error {
	began, key := time.Now(), job.Names[0]
	run, result, err := job.Client.OnceBegin(ctx, key, &holdfast.OnceOptions{
		TTL: f.ttl, Retention: f.retention, Await: !job.Try, Wait: job.Opts.Wait, WholeTTL: true, Fingerprint: f.fingerprint,
		MaxResult: f.maxOutput, MaxHold: f.maxHold, Reason: f.reason, Labels: job.Opts.Labels,
	})
	switch {
	case errors.Is(err, holdfast.ErrInProgress), errors.Is(err, holdfast.ErrHeld):
		return cmp.Or(a.printState("busy\n"), exit.With(exit.Busy, err))
	case err != nil:
		return exit.FromStore(err)
	case run == nil:
		text := "done\n"
		if f.replay {
			text += string(result.Value)
		}
		return a.printState(text)
	}
	lease := run.Lease()
	t := ticket.Ticket{
		Kind: ticket.Once, Store: job.Store, Name: key, LeaseID: lease.ID(), Token: lease.Token(),
		TTL: f.ttl, Retention: f.retention, Fingerprint: f.fingerprint, MaxResult: f.maxOutput,
	}
	if err := a.leaveRun(ctx, began, job, run, script, t); err != nil {
		_ = run.Fail(ctx) // the client goes on trying
		return err
	}
	return nil
}

// leaveRun hands the run over. The ticket is there before anybody is told to work.
func (a *app) leaveRun(ctx context.Context, began time.Time, job *runner.Job, run *holdfast.OnceRun, script *keep.Script, t ticket.Ticket) error {
	box, err := a.box()
	if err != nil {
		return err
	}
	var keeper *keep.Keeper
	if script != nil {
		if script.HasEnded() {
			return exit.With(exit.Usage, fmt.Errorf("once begin %q: process %d has ended", t.Name, script.PID))
		}
		job.Opts.TTL = t.TTL
		once := &keep.Once{Retention: t.Retention, Fingerprint: t.Fingerprint, MaxResult: t.MaxResult}
		if keeper, err = a.startKeeper(began, job, run.Lease(), script, once); err != nil {
			return err
		}
		t.Socket = keeper.Socket
	}
	before, _ := box.Get(t.Kind, t.Store, t.Name) // of runs that are over: this one has the key
	if err = box.Put(t); err != nil {
		err = exit.With(exit.Output, fmt.Errorf("once begin %q: its lease ID cannot be kept: %w", t.Name, err))
	} else {
		err = a.leave(ctx, run.Lease(), func() error { return a.printState("do\n") })
	}
	if err != nil {
		box.Drop(t)
	} else {
		for _, old := range before {
			box.Drop(old)
		}
	}
	switch {
	case keeper == nil:
		return err
	case err != nil:
		keeper.Cancel()
		return err
	}
	if err := keeper.Commit(); err != nil {
		return exit.With(exit.Unavailable, fmt.Errorf("once begin %q: the keeper has ended: %w", t.Name, err))
	}
	return nil
}

// printState prints what a script is to do.
func (a *app) printState(text string) error {
	_, err := io.WriteString(a.stdout, text)
	return exit.With(exit.Output, err)
}

// onceEnd ends the run that begin has begun: by its keeper, or by adopting its lease.
func (a *app) onceEnd(ctx context.Context, key string, r control.Request) error {
	box, on, found, err := a.ticketsOf(ticket.Once, key)
	switch {
	case errors.Is(err, ticket.ErrNone):
		return exit.With(exit.Config, fmt.Errorf("once %s %q: it was not begun by this user on this host, on %s", r.Do, key, on))
	case err != nil:
		return err
	}
	t := found[0]
	p := possession{verb: r.Do, name: key, leaseID: t.LeaseID, socket: t.Socket}
	_, asked, err := p.ask(ctx, r)
	if !asked && err == nil {
		err = a.endAdopted(ctx, t, r)
	}
	e := (*exit.Error)(nil)
	if err == nil || errors.As(err, &e) && e.Status == exit.Lost {
		box.Drop(t)
	}
	return err
}

// endAdopted ends a run that nobody keeps.
func (a *app) endAdopted(ctx context.Context, t ticket.Ticket, r control.Request) error {
	return a.withClient(ctx, nil, func(c *holdfast.Client, _ store.Choice) error {
		run, _, err := c.OnceAdopt(ctx, t.Name, t.LeaseID, t.Token, &holdfast.OnceOptions{
			TTL: t.TTL, Retention: t.Retention, Fingerprint: t.Fingerprint, MaxResult: t.MaxResult,
		})
		switch {
		case err != nil:
		case run == nil && r.Do == control.Complete: // by an earlier call, whose answer was lost
			return nil
		case run == nil:
			err = fmt.Errorf("%w: it is done", holdfast.ErrLost)
		case r.Do == control.Complete:
			if _, err = run.Complete(ctx, r.Value); errors.Is(err, holdfast.ErrInvalid) {
				_ = run.Lease().Leave() // the run goes on
				return exit.With(exit.TooLong, err)
			}
		default:
			err = run.Fail(ctx)
		}
		if errors.Is(err, holdfast.ErrLost) {
			return exit.With(exit.Lost, fmt.Errorf("once %s %q: the run is over: it has expired, or was broken; nothing is recorded", r.Do, t.Name))
		}
		return exit.FromStore(err)
	})
}
