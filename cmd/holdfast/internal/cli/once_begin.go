//go:build unix

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/keeper"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/runner"
)

func (a *app) onceBeginCommand() *cobra.Command {
	var f jobFlags
	cmd := &cobra.Command{
		Use:   "begin KEY [flags]",
		Short: "Print do, done or busy, for a script that does the work itself",
		Long: `Begin prints one word, and exits with 0, or 75 for busy:
  do    do the work, then call holdfast once complete KEY, or once fail KEY
  done  it was done already
  busy  another client is doing it
With --pid $$ a keeper renews the lease until the script ends. Without it, the work must be
done within --ttl. Others: holdfast --help.`,
		Example: `  case "$(holdfast once begin charge-42 --pid $$)" in do) ./charge.sh 42 | holdfast once complete charge-42;; esac
  holdfast once begin import --ttl 1h`,
		Args: onKeys(names(1, 1)),
		RunE: func(cmd *cobra.Command, args []string) error { return a.onceBegin(&f, args[0]) },
	}
	cmd.Flags().SetNormalizeFunc(ofFlock)
	f.define(cmd, "pid no-wait wait retention replay ttl reason quiet | max-hold fingerprint max-output label")
	cmd.Flags().Lookup("pid").Usage = "renew the lease until the process `PID` ends: $$ in a script"
	cmd.Flags().Lookup("max-hold").Usage = onceMaxHold
	return cmd
}

func (a *app) onceCompleteCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "complete KEY",
		Short: "Record the result of work that once begin has begun, from standard input",
		Example: `  ./charge.sh 42 | holdfast once complete charge-42
  printf 'receipt 7' | holdfast once complete charge-42`,
		Args: onKeys(names(1, 1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			value, err := readInput(cmd, holdfast.MaxOnceResult)
			if err != nil {
				return usage("once complete: %w", err)
			}
			return a.onceEnd(cmd.Context(), args[0], keeper.Request{Do: keeper.Complete, Value: value})
		},
	}
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

// once runs a command, unless it was done already: then it prints its recorded output.
func (a *app) once(f *jobFlags, words, command []string) error {
	f.names = words
	return f.reported(func(status *runner.Status) error {
		switch {
		case len(words) == 0:
			return usage("once: no key given")
		case len(words) > 1:
			return usage("once: %q: want one KEY before the --", words[1])
		}
		job, err := a.commandJob(f, command)
		if err != nil {
			return err
		}
		job.Status = status
		once := runner.OnceJob{Job: job, Retention: f.retention, Fingerprint: f.fingerprint, MaxOutput: f.maxOutput}
		ctx := f.cmd.Context()
		return a.session().work(ctx, f, &once.Job, func() error {
			result, err := runner.Once(ctx, once)
			if err != nil || !result.Replayed {
				return err
			}
			if f.verbose || a.screen != nil && !f.quiet { // cron must not send a mail about it
				a.say("once %q: it was done already, under fencing token %d; holdfast once forget makes it run again", words[0], result.Token)
			}
			if !f.replay {
				return nil
			}
			return a.answer(nil, string(result.Value))
		})
	})
}

// onceBegin prints do, done or busy, and leaves the lease to a keeper or in the store. If this
// process is killed, the script reads nothing, and does nothing.
func (a *app) onceBegin(f *jobFlags, key string) error {
	return a.takeForScript(f, key, func(ctx context.Context, job *runner.Job, script *keeper.Script) error {
		began := time.Now()
		run, err := runner.OnceJob{Job: *job, Retention: f.retention, Fingerprint: f.fingerprint, MaxOutput: f.maxOutput}.
			Begin(ctx, "once begin: ended by a signal before the work was begun")
		switch {
		case errors.Is(err, holdfast.ErrInProgress), errors.Is(err, holdfast.ErrHeld):
			return cmp.Or(a.answer(nil, "busy\n"), exit.With(exit.Busy, err))
		case err != nil:
			return err
		case run.Replayed():
			text := "done\n"
			if f.replay {
				text += string(run.Result().Value)
			}
			return a.answer(nil, text)
		}
		record := keeper.Once{Retention: f.retention, Fingerprint: f.fingerprint, MaxResult: f.maxOutput}
		t := keeper.Ticket{
			Kind: keeper.OnceTicket, Store: job.Store, Name: key, LeaseID: run.Lease().ID(), Token: run.Lease().Token(), TTL: job.Opts.TTL, Once: record,
		}
		err = a.handOver(ctx, handOver{began, job, run.Lease(), script, &record}, func(socket string) error {
			t.Socket = socket
			return a.tellRun(t)
		})
		if err != nil {
			_ = run.Fail(ctx) // the client keeps trying; a run that was left stays
		}
		return err
	})
}

// tellRun writes the ticket of a run, and then reports the run to the script.
func (a *app) tellRun(t keeper.Ticket) error {
	box, err := a.box()
	if err != nil {
		return err
	}
	before, _ := box.Get(t.Kind, t.Store, t.Name) // of runs that have ended, since this one has the key
	if err := box.Put(t); err != nil {
		return exit.Errorf(exit.Output, "once begin %q: its lease ID cannot be kept: %w", t.Name, err)
	}
	if err := a.answer(nil, "do\n"); err != nil {
		box.Drop(t)
		return err
	}
	for _, old := range before {
		box.Drop(old)
	}
	return nil
}

// onceEnd ends the run that once begin has begun: through its keeper, or by adopting its lease.
func (a *app) onceEnd(ctx context.Context, key string, r keeper.Request) error {
	if err := a.outlives("once " + r.Do); err != nil {
		return err
	}
	box, on, found, err := a.ticketsOf(keeper.OnceTicket, key)
	switch {
	case err != nil:
		return err
	case len(found) == 0:
		return exit.Errorf(exit.Config, "once %s %q: it was not begun by this user on this host, on %s", r.Do, key, on)
	}
	t := found[0]
	_, asked, err := ticket{r.Do, t}.ask(ctx, r)
	if !asked && err == nil {
		err = a.session().ask(ctx, func(ctx context.Context, c *holdfast.Client) error { return endAdopted(ctx, c, t, r) })
	}
	if err == nil || exit.Is(err, exit.Lost) {
		box.Drop(t)
	}
	return err
}

// endAdopted ends a run that has no keeper.
func endAdopted(ctx context.Context, c *holdfast.Client, t keeper.Ticket, r keeper.Request) error {
	run, err := c.OnceAdopt(ctx, holdfast.NewHandle(t.Name, t.LeaseID, t.Token, holdfast.Exclusive), t.Options(t.TTL))
	switch {
	case err != nil:
	case run.Replayed() && r.Do == keeper.Complete: // an earlier call has done it, and its reply was lost
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
		return exit.Errorf(exit.Lost, "once %s %q: the run has ended: it expired, or was broken; nothing is recorded", r.Do, t.Name)
	}
	return err
}
