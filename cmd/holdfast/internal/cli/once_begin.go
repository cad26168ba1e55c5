//go:build unix

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/keeper"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/runner"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/store"
)

func (a *app) onceBeginCommand() *cobra.Command {
	var f onceFlags
	var pid int
	cmd := &cobra.Command{
		Use:   "begin KEY [flags]",
		Short: "Print do, done or busy, for a script that does the work itself",
		Long: `Begin prints one word, and exits with 0, or 75 for busy:
  do    do the work, then call holdfast once complete KEY, or once fail KEY
  done  it was done already
  busy  another client is doing it
With --pid $$ a keeper renews the lease until the script ends. Without it, the work must be
done within --ttl. The other statuses are those in holdfast --help.`,
		Example: `  case "$(holdfast once begin charge-42 --pid $$)" in do) ./charge.sh 42 | holdfast once complete charge-42;; esac
  holdfast once begin import --ttl 1h`,
		Args: onKeys(names(1, 1)),
		RunE: func(cmd *cobra.Command, args []string) error { return a.onceBegin(cmd, &f, pid, args[0]) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.SetNormalizeFunc(ofFlock)
	flags.IntVar(&pid, "pid", 0, "renew the lease until the process `PID` ends: $$ in a script")
	f.defineWait(flags)
	f.defineRecord(flags)
	f.defineHolder(flags)
	return cmd
}

func (a *app) onceCompleteCommand() *cobra.Command {
	var text string
	cmd := &cobra.Command{
		Use:   "complete KEY",
		Short: "Record the result of work that once begin has begun, from standard input",
		Example: `  ./charge.sh 42 | holdfast once complete charge-42
  holdfast once complete charge-42 --value 'receipt 7'`,
		Args: onKeys(names(1, 1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			value := []byte(text)
			if !cmd.Flags().Changed("value") {
				var err error
				if value, err = readInput(cmd, holdfast.MaxOnceResult); err != nil {
					return usage("once complete: %w", err)
				}
			}
			return a.onceEnd(cmd.Context(), args[0], keeper.Request{Do: keeper.Complete, Value: value})
		},
	}
	cmd.Flags().StringVar(&text, "value", "", "the result is `TEXT` instead of standard input")
	return cmd
}

func (a *app) onceFailCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "fail KEY",
		Short: "End work that once begin has begun, and leave the key free",
		Example: `  holdfast once fail charge-42
  ./charge.sh 42 >out && holdfast once complete charge-42 <out || holdfast once fail charge-42`,
		Args: onKeys(names(1, 1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.onceEnd(cmd.Context(), args[0], keeper.Request{Do: keeper.Fail})
		},
	}
}

// onceBegin prints do, done or busy. A script that reads nothing, because this process was
// killed, does nothing.
func (a *app) onceBegin(cmd *cobra.Command, f *onceFlags, pid int, key string) error {
	if err := a.outlives("once begin"); err != nil {
		return err
	}
	a.defaultTTL(cmd, &f.ttl)
	f.busy = exit.Busy
	script, err := scriptOf(cmd, "once begin", pid)
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
	s := a.session()
	s.holder = holderOf(script)
	return f.hushed(s.take(cmd.Context(), &f.jobFlags, &job, func() error { return a.beginRun(cmd.Context(), f, &job, script) }))
}

// beginRun begins the work, and leaves its lease to a keeper, or in the store.
func (a *app) beginRun(ctx context.Context, f *onceFlags, job *runner.Job, script *keeper.Script) error {
	began, key := time.Now(), job.Names[0]
	run, err := job.Client.OnceBegin(ctx, key, &holdfast.OnceOptions{
		TTL: f.ttl, Retention: f.retention, Await: job.Await(), WholeTTL: true, Fingerprint: f.fingerprint,
		MaxResult: f.maxOutput, MaxHold: f.maxHold, Reason: f.reason, Labels: job.Opts.Labels,
	})
	switch {
	case errors.Is(err, holdfast.ErrInProgress), errors.Is(err, holdfast.ErrHeld):
		return cmp.Or(a.printState("busy\n"), exit.With(exit.Busy, err))
	case err != nil:
		return exit.FromStore(err)
	case run.Replayed():
		text := "done\n"
		if f.replay {
			text += string(run.Result().Value)
		}
		return a.printState(text)
	}
	lease := run.Lease()
	t := keeper.Ticket{
		Kind: keeper.OnceTicket, Store: job.Store, Name: key, LeaseID: lease.ID(), Token: lease.Token(),
		TTL: f.ttl, Retention: f.retention, Fingerprint: f.fingerprint, MaxResult: f.maxOutput,
	}
	if err := a.leaveRun(ctx, began, job, run, script, t); err != nil {
		_ = run.Fail(ctx) // the client goes on trying
		return err
	}
	return nil
}

// leaveRun hands the run over. The ticket is written before the script learns of the run.
func (a *app) leaveRun(ctx context.Context, began time.Time, job *runner.Job, run *holdfast.OnceRun, script *keeper.Script, t keeper.Ticket) error {
	box, err := a.box()
	if err != nil {
		return err
	}
	var kept *keeper.Keeper
	if script != nil {
		if script.HasEnded() {
			return exit.With(exit.Usage, fmt.Errorf("once begin %q: process %d has ended", t.Name, script.PID))
		}
		job.Opts.TTL = t.TTL
		once := &keeper.Once{Retention: t.Retention, Fingerprint: t.Fingerprint, MaxResult: t.MaxResult}
		if kept, err = a.startKeeper(began, job, run.Lease(), script, once); err != nil {
			return err
		}
		t.Socket = kept.Socket
	}
	before, _ := box.Get(t.Kind, t.Store, t.Name) // of runs that have ended: this one has the key
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
	case kept == nil:
		return err
	case err != nil:
		kept.Cancel()
		return err
	}
	if err := kept.Commit(); err != nil {
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
func (a *app) onceEnd(ctx context.Context, key string, r keeper.Request) error {
	if err := a.outlives("once " + r.Do); err != nil {
		return err
	}
	box, on, found, err := a.ticketsOf(keeper.OnceTicket, key)
	switch {
	case errors.Is(err, keeper.ErrNone):
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

// endAdopted ends a run that has no keeper.
func (a *app) endAdopted(ctx context.Context, t keeper.Ticket, r keeper.Request) error {
	return a.session().withClient(ctx, func(c *holdfast.Client, _ store.Choice) error {
		run, err := c.OnceAdopt(ctx, holdfast.NewHandle(t.Name, t.LeaseID, t.Token, holdfast.Exclusive), &holdfast.OnceOptions{
			TTL: t.TTL, Retention: t.Retention, Fingerprint: t.Fingerprint, MaxResult: t.MaxResult,
		})
		switch {
		case err != nil:
		case run.Replayed() && r.Do == keeper.Complete: // by an earlier call, whose answer was lost
			return nil
		case run.Replayed():
			err = fmt.Errorf("%w: it is done", holdfast.ErrLost)
		case r.Do == keeper.Complete:
			if err = run.Complete(ctx, r.Value); errors.Is(err, holdfast.ErrInvalid) {
				_, _ = run.Leave() // the run goes on
				return exit.With(exit.TooLong, err)
			}
		default:
			err = run.Fail(ctx)
		}
		if errors.Is(err, holdfast.ErrLost) {
			return exit.With(exit.Lost, fmt.Errorf("once %s %q: the run has ended: it expired, or was broken; nothing is recorded", r.Do, t.Name))
		}
		return exit.FromStore(err)
	})
}
